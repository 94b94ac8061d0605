//! One file per command.

#[cfg(feature = "train")]
mod bench;
mod bias;
mod card;
mod cohort;
#[cfg(feature = "train")]
mod compare;
#[cfg(feature = "train")]
mod demo;
pub(crate) mod evaluate;
mod experiment;
#[cfg(feature = "train")]
mod explain;
mod exports;
#[cfg(feature = "train")]
mod features;
mod inspect;
mod list;
mod manual;
#[cfg(feature = "train")]
mod predict;
mod prepare;
#[cfg(feature = "schema")]
mod schema;
mod select;
mod simulate;
#[cfg(feature = "train")]
mod study;
mod test;
#[cfg(feature = "train")]
mod train;
#[cfg(feature = "train")]
mod weights;

#[cfg(feature = "train")]
use std::path::Path;
use std::sync::Mutex;

use fairtte_data::DataError;
use serde::Serialize;
#[cfg(feature = "train")]
use serde_json::Value;

pub(crate) use self::evaluate::{SETTINGS_OF_CLASSES, warnings_of_class};

use crate::CliError;
use crate::args::{CohortCommand, Command, Common};
use crate::run_file::RunFile;

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<(), CliError> {
    match command {
        #[cfg(feature = "train")]
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Prepare(arguments) => prepare::run(&arguments),
        Command::Cohort(CohortCommand::Check(arguments)) => cohort::check(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        #[cfg(feature = "train")]
        Command::Train(arguments) => train::run(&arguments),
        #[cfg(feature = "train")]
        Command::Predict(arguments) => predict::run(&arguments),
        #[cfg(feature = "train")]
        Command::Features(arguments) => features::run(&arguments),
        #[cfg(feature = "train")]
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::EvaluateMasks(arguments) => evaluate::masks::run(&arguments),
        Command::Bias(arguments) => bias::run(&arguments),
        Command::Experiment(command) => experiment::run(&command),
        Command::Card(arguments) => card::run(&arguments),
        #[cfg(feature = "train")]
        Command::Compare(arguments) => compare::run(&arguments),
        #[cfg(feature = "train")]
        Command::Study(command) => study::run(&command),
        Command::Select(arguments) => select::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        #[cfg(feature = "train")]
        Command::Bench(arguments) => bench::run(&arguments),
        #[cfg(feature = "train")]
        Command::Weights(command) => weights::run(&command),
        #[cfg(feature = "schema")]
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::ManPages(arguments) => manual::pages(&arguments),
    }
}

/// The first error of standard output, of which [`check_printed`] speaks at the end.
static UNPRINTED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Prints a result on standard output, the only place where results are printed. A pipe that is closed early is not an
/// error.
fn print(text: impl std::fmt::Display) {
    use std::io::Write as _;
    if let Err(error) = writeln!(std::io::stdout(), "{text}")
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && let Ok(mut first) = UNPRINTED.lock()
    {
        first.get_or_insert(error);
    }
}

/// Whether all results were printed: a full disk must not leave half of them behind an exit code of 0.
///
/// # Errors
/// [`CliError::Data`] that names standard output.
pub(crate) fn check_printed() -> Result<(), CliError> {
    let error = UNPRINTED.lock().ok().and_then(|mut first| first.take());
    error.map_or(Ok(()), |source| Err(DataError::Write { path: "standard output".into(), source }.into()))
}

/// Prints a result for machines on standard output.
fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::Bug(error.to_string()))?;
    print(text);
    Ok(())
}

/// Refuses to replace a JSON file beside `--output` that is not one of the program's own: the option names the other file alone. `what` is
/// its own kind, which `is_own` recognises.
#[cfg(feature = "train")]
fn require_own_json(beside: &Path, what: &str, is_own: impl Fn(&Value) -> bool) -> Result<(), CliError> {
    let is_own = |bytes: Vec<u8>| serde_json::from_slice(&bytes).is_ok_and(|content| is_own(&content));
    if !beside.exists() || std::fs::read(beside).is_ok_and(is_own) {
        return Ok(());
    }
    let file = beside.display();
    let message = format!("{file} would be overwritten and is no {what}, expected another name");
    Err(CliError::setting("--output", message, None))
}

/// Applies the arguments that take precedence over the run file.
fn override_run(run: &mut RunFile, common: &Common) {
    if let Some(device) = &common.device {
        run.device.clone_from(device);
    }
    if let Some(threads) = common.threads {
        run.threads = threads;
    }
}

/// Most threads that are started; a larger number is a mistake rather than a machine.
const MOST_THREADS: usize = 4096;

/// Sizes the thread pool that burn, decoding and bootstrap share; 0 = one per core.
///
/// # Errors
/// [`CliError::Config`] if the threads cannot be started.
fn use_threads(n: usize) -> Result<(), CliError> {
    if n > MOST_THREADS {
        let message = format!("it is {n}, expected at most {MOST_THREADS}, or 0 for one per core");
        return Err(CliError::setting("threads", message, None));
    }
    // Training runs on one of them, with the stack of a main thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n).stack_size(8 << 20);
    let pool = pool.thread_name(|index| format!("fairtte-{index}")).build_global();
    pool.map_err(|error| CliError::setting("threads", format!("cannot start the threads ({n}): {error}"), None))
}
