//! `fairtte demo`: all steps on a simulated cohort with a known bias.

use super::evaluate::Shown;
use super::train::train;
use super::{override_run, prepare, print, use_threads};
use crate::CliError;
use crate::args::Demo;
use crate::progress::say;
use crate::run_file::RunFile;

/// The run file of the demo, which `configs/demo.toml` of the repository links to: a package contains its own folder alone.
const RUN_FILE: &str = include_str!("demo.toml");

/// A cohort and a training that take seconds.
const QUICK: [&str; 5] = [
    "data.simulated.n-subjects=160",
    "data.simulated.size=[32, 32]",
    "image.size=[32, 32]",
    "training.epochs=2",
    "evaluation.replicates=100",
];

pub(super) fn run(arguments: &Demo) -> Result<(), CliError> {
    if let Some(set) = arguments.common.set.iter().find(|set| set.starts_with("output=") || set.starts_with("cache=")) {
        return Err(CliError::setting(
            &format!("--set {set}"),
            "the demo keeps all its files in --output".to_owned(),
            None,
        ));
    }
    let quick = QUICK.iter().filter(|_| arguments.quick).map(|set| (*set).to_owned());
    let sets: Vec<String> = quick.chain(arguments.common.set.iter().cloned()).collect();
    let mut run = RunFile::from_text(RUN_FILE, "configs/demo.toml", &sets)?;
    override_run(&mut run, &arguments.common);
    run.output = arguments.output.join("run");
    run.cache = Some(arguments.output.join("cache"));
    say("demo: simulated chest films; those of women show less of the disease than those of men (data.simulated.bias)");
    if arguments.common.dry_run {
        run.check()?;
        run.open_device()?;
        let what = "simulate a cohort, train, predict and evaluate";
        return prepare::dry_run(&run, what, arguments.common.json);
    }
    use_threads(run.threads)?;
    train(&run, Shown::json(arguments.common.json))?;
    if !arguments.common.json {
        print(format!(
            "\nNext: open the report; look at {}/run.toml; change a setting with --set and another --output.",
            run.output.display()
        ));
    }
    Ok(())
}
