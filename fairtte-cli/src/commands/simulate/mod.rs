//! `fairtte simulate`: a cohort with known causes of every bias, in the generic layout, a table with known hazards, or pictures with
//! masks.

mod discs;
mod hazards;

use fairtte_data::simulated::{SimulationConfig, simulate};
use serde_json::json;

use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Simulate, SimulationKind};
use crate::merged::Merged;
use crate::progress::{Files, say};

pub(super) fn run(arguments: &Simulate) -> Result<(), CliError> {
    let mut merged = Merged::default();
    for file in &arguments.config {
        merged.add_file(file)?;
    }
    merged.set_all(&arguments.set)?;
    if arguments.kind == SimulationKind::Hazards {
        return hazards::run(arguments, merged);
    }
    if arguments.rows.is_some() {
        let message = "only people with known hazards have given covariates, expected --kind hazards".to_owned();
        return Err(CliError::setting("--rows", message, None));
    }
    if arguments.kind == SimulationKind::Discs {
        return discs::run(arguments, merged);
    }
    let config: SimulationConfig = merged.into_config()?;
    config.validate()?;
    use_threads(arguments.threads)?;
    let out = &arguments.output;
    let (n, subjects) = (config.n_images(), config.n_subjects);
    say(format!("simulating {n} images of {subjects} subjects into {}", out.display()));
    if arguments.dry_run && arguments.json {
        let (seed, threads) = (arguments.seed, arguments.threads);
        return print_json(&json!({
            "would": "simulate", "folder": out, "seed": seed, "threads": threads, "settings": config,
        }));
    }
    if arguments.dry_run {
        say(format!("dry run: the seed would be {}", arguments.seed));
        let text = toml::to_string(&config).map_err(|error| CliError::Bug(error.to_string()))?;
        print(text.trim_end());
        return Ok(());
    }
    let files = Files::new("simulating");
    let simulation = simulate(&config, arguments.seed, out, &|done, total| files.update(done, total))?;
    if arguments.json {
        return print_json(&json!({
            "folder": simulation.folder, "manifest": simulation.manifest, "truth": simulation.truth,
            "n-subjects": simulation.n_subjects, "n-images": simulation.n_images, "n-events": simulation.n_events,
            "reused": simulation.reused,
        }));
    }
    let fate = if simulation.reused { "was already there" } else { "written" };
    print(format!(
        "{} images, {} subjects, {} with an observed event; {fate}",
        simulation.n_images, simulation.n_subjects, simulation.n_events
    ));
    print(format!("table: {}", simulation.manifest.display()));
    print(format!("truth: {}", simulation.truth.display()));
    Ok(())
}
