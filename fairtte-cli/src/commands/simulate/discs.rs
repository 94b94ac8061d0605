//! `fairtte simulate --kind discs`: pictures of optic discs with their masks.

use fairtte_data::simulated::{DiscsConfig, simulate_discs};
use serde_json::json;

use super::super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::Simulate;
use crate::merged::Merged;
use crate::progress::{Files, say};

pub(super) fn run(arguments: &Simulate, merged: Merged) -> Result<(), CliError> {
    let config: DiscsConfig = merged.into_config()?;
    config.validate()?;
    use_threads(arguments.threads)?;
    let (out, n) = (&arguments.output, config.n_subjects);
    say(format!("simulating {n} optic discs with masks into {}", out.display()));
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
    let discs = simulate_discs(&config, arguments.seed, out, &|done, total| files.update(done, total))?;
    if arguments.json {
        return print_json(&json!({
            "folder": out, "manifest": discs.manifest, "n-subjects": n, "n-lower-contrast": discs.n_of_group,
            "reused": discs.reused,
        }));
    }
    let fate = if discs.reused { "was already there" } else { "written" };
    print(format!("{n} pictures with masks, {} with a cup of lower contrast; {fate}", discs.n_of_group));
    print(format!("table: {}", discs.manifest.display()));
    Ok(())
}
