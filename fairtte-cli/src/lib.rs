//! The `fairtte` command: arguments, run files, device choice, progress and reports around the library crates.
//!
//! [`main`] is the whole program; [`run_file::RunFile`] is what a run file may say.

#![cfg_attr(
    not(feature = "train"),
    expect(dead_code, unused_imports, reason = "functions of run folders that only the commands that train call")
)]

pub mod args;
mod baseline;
mod case_mix;
mod commands;
mod design;
#[cfg(feature = "train")]
mod device;
mod error;
mod exit;
mod interrupt;
pub mod library;
pub mod memory;
mod merged;
mod method_tests;
mod plural;
mod pooled;
mod prepared;
mod progress;
mod report;
mod run_file;
mod run_folder;
mod samples;
mod scored;
mod selection;
mod sensitivity;
mod shell;
#[cfg(feature = "train")]
mod study;
#[cfg(feature = "train")]
pub mod timing;
mod training_sample;

use std::process::ExitCode;

use clap::Parser as _;

pub use error::CliError;
pub use exit::Exit;
pub use run_file::RunFile;

/// Metrics, and in a build with the feature `train` strategies and heads, of other crates that a program of its own adds;
/// see [`main_with`].
#[derive(Debug, Default)]
pub struct Extensions {
    metrics: Vec<&'static dyn fairtte_metrics::evaluation::Metric>,
    #[cfg(feature = "train")]
    register: Vec<fn() -> Result<(), fairtte_fairness::FairnessError>>,
}

impl Extensions {
    /// Adds a metric: it then works in `[evaluation]` of run files, in `evaluate --metrics`, `list` and reports.
    #[must_use]
    pub fn metric(mut self, metric: &'static dyn fairtte_metrics::evaluation::Metric) -> Self {
        self.metrics.push(metric);
        self
    }

    /// Adds a strategy by its settings: it then works in run files, `list`, `compare`, `select` and reports like those of
    /// FairTTE.
    #[cfg(feature = "train")]
    #[must_use]
    pub fn strategy<S>(mut self) -> Self
    where
        S: fairtte_fairness::strategies::StrategySettings
            + Default
            + serde::Serialize
            + serde::de::DeserializeOwned
            + 'static,
    {
        self.register.push(fairtte_fairness::strategies::register::<S>);
        self
    }

    /// Adds a head by its settings, likewise.
    #[cfg(feature = "train")]
    #[must_use]
    pub fn head<H>(mut self) -> Self
    where
        H: fairtte_survival::HeadSettings + Default + serde::Serialize + serde::de::DeserializeOwned + 'static,
    {
        self.register.push(|| Ok(fairtte_survival::register_head::<H>()?));
        self
    }

    fn register(self) -> Result<(), CliError> {
        for metric in self.metrics {
            fairtte_metrics::evaluation::register_metric(metric)?;
        }
        #[cfg(feature = "train")]
        for register in self.register {
            register()?;
        }
        Ok(())
    }
}

/// As [`main`], with what `extensions` add:
///
/// ```no_run
/// # #[cfg(feature = "train")]
/// # mod with_training {
/// # use fairtte_fairness::strategies::GroupDroConfig as MyStrategyConfig;
/// # use fairtte_survival::DeepHitConfig as MyHeadConfig;
/// use std::process::ExitCode;
///
/// use fairtte_cli::Extensions;
///
/// fn main() -> ExitCode {
///     fairtte_cli::main_with(Extensions::default().strategy::<MyStrategyConfig>().head::<MyHeadConfig>())
/// }
/// # }
/// ```
pub fn main_with(extensions: Extensions) -> ExitCode {
    if let Err(error) = extensions.register() {
        error::print(&error);
        return Exit::Config.into();
    }
    main()
}

/// Parses the arguments, runs the command, and says what went wrong on standard error.
pub fn main() -> ExitCode {
    let arguments = match args::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap answers --help and --version this way too, on standard output. The reader may have closed it: that is no error.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            let _ = error.print();
            return exit.into();
        }
    };
    interrupt::install();
    // A panic is a bug, or a device that failed: its message is out already, and it has its exit code.
    let result = match std::panic::catch_unwind(|| commands::run(arguments.command)) {
        Ok(result) => result,
        #[cfg(feature = "train")]
        Err(panic) => match device::failure(&*panic) {
            Some(error) => Err(error),
            None => return Exit::Bug.into(),
        },
        #[cfg(not(feature = "train"))]
        Err(_) => return Exit::Bug.into(),
    };
    match result.and_then(|()| commands::check_printed()) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => {
            let exit = error.exit();
            error::print(&error);
            exit.into()
        }
    }
}
