//! Errors of the command line: one sentence, a hint where there is one, and an exit code.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use fairtte_classical::{ClassicalError, Estimator};
use fairtte_data::simulated::SimulationError;
use fairtte_data::{DataError, SettingsOf};
#[cfg(feature = "train")]
use fairtte_fairness::FairnessError;
use fairtte_metrics::MetricError;
#[cfg(feature = "train")]
use fairtte_models::ModelError;
#[cfg(feature = "train")]
use fairtte_survival::SurvivalError;

use crate::exit::Exit;
use crate::report::ReportError;

/// Why a command failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum CliError {
    /// A run file cannot be read.
    #[error("cannot read run file {}: {source}", path.display())]
    ReadRunFile {
        /// The file.
        path: PathBuf,
        /// Message of the operating system.
        source: std::io::Error,
    },
    /// A run file is not TOML.
    #[error("{origin} is not valid TOML: {message}")]
    Toml {
        /// The file or argument, with its line.
        origin: String,
        /// Message of the parser.
        message: String,
    },
    /// A key or value of the run file is wrong.
    #[error("{key}: {message}{place}")]
    Config {
        /// Path of the key, for example `training.epochs`.
        key: String,
        /// What is wrong and what was expected.
        message: String,
        /// The place of the key, if it is known.
        place: String,
        /// The nearest valid key or value.
        #[help]
        help: Option<String>,
    },
    /// A setting of the run file is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Path of the key, for example `strategy.laftr.gamma`.
        key: String,
        /// Value found.
        value: String,
        /// Range in words.
        expected: String,
    },
    /// The run folder belongs to another run.
    #[error("{} holds a run with other settings: {difference}", folder.display())]
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// Every difference.
        difference: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// A file of a run folder is missing or is not what it should be.
    #[error("{}: {problem}", path.display())]
    RunFolder {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The device is unknown or not compiled in.
    #[error("device \"{device}\" {problem}")]
    Device {
        /// The device asked for.
        device: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The device is in this build, but not on this machine, or it is in use or broken.
    #[error("device \"{device}\" {problem}")]
    DeviceUnusable {
        /// The device asked for.
        device: String,
        /// What it reported.
        problem: String,
    },
    /// A process that measured a device ended without a result.
    #[error("device \"{device}\" {problem}")]
    NotMeasured {
        /// The device.
        device: String,
        /// What was not measured, and how the process ended.
        problem: String,
        /// What the exit code of the process means.
        exit: Exit,
    },
    /// A device stopped in the middle of a computation.
    #[error("device \"{device}\" failed: {problem}. A training resumes from its last checkpoint by the same command")]
    DeviceFailed {
        /// The device.
        device: String,
        /// What it reported.
        problem: String,
        /// Whether this process cannot use it any more.
        is_lost: bool,
    },
    /// From the data.
    #[error(transparent)]
    Data(DataError),
    /// From a table, with an argument that solves the problem.
    #[error("{source}")]
    Curves {
        /// What is wrong.
        source: Box<DataError>,
        /// The argument.
        #[help]
        help: String,
    },
    /// A value of a table cannot be used.
    #[error("{problem} ({place})")]
    Cell {
        /// What is wrong and what was expected.
        problem: String,
        /// File, row and column.
        place: String,
        /// What to do.
        #[help]
        help: Option<String>,
    },
    /// From the simulator.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// From training.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Training(FairnessError),
    /// From an estimator.
    #[error(transparent)]
    Estimator(#[from] ClassicalError),
    /// From a metric.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// From the report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Files without a readable image or volume.
    #[error("{what} cannot be read: {sentence}")]
    Refused {
        /// The file, or how many of them.
        what: String,
        /// Why.
        sentence: String,
    },
    /// A prepared data set does not have the expected content.
    #[error("{0}")]
    Check(String),
    /// A bug.
    #[error("{0}; this is a bug in fairtte")]
    Bug(String),
}

impl From<DataError> for CliError {
    /// A setting that is outside its range gets the key under which a run file has it.
    fn from(error: DataError) -> Self {
        match error {
            DataError::InvalidSetting { of, field, value, expected } => {
                Self::Setting { key: key_of(of, field), value, expected: expected.to_owned() }
            }
            other => Self::Data(other),
        }
    }
}

/// The key in a run file of a field of settings that the data crate checks.
fn key_of(of: SettingsOf, field: &str) -> String {
    let table = match of {
        SettingsOf::Adni => "data.adni",
        SettingsOf::Areds => "data.areds",
        SettingsOf::MimicCxr => "data.mimic-cxr",
        SettingsOf::Features => "data.tabular",
        SettingsOf::Outcome => "outcome",
        SettingsOf::Horizon => "task.binary",
        SettingsOf::Split => "split",
        SettingsOf::Shift => "shift",
        SettingsOf::Image => "image",
        SettingsOf::Augmentation => "augmentation",
        _ => return field.to_owned(), // at the top of a run file, or an argument
    };
    if field == table { table.to_owned() } else { format!("{table}.{field}") }
}

#[cfg(feature = "train")]
impl From<FairnessError> for CliError {
    fn from(error: FairnessError) -> Self {
        match error {
            FairnessError::Data(error @ DataError::InvalidSetting { .. }) => error.into(),
            other => Self::Training(other),
        }
    }
}

#[cfg(feature = "train")]
impl From<SurvivalError> for CliError {
    fn from(error: SurvivalError) -> Self {
        Self::Training(error.into())
    }
}

#[cfg(feature = "train")]
impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        Self::Training(error.into())
    }
}

/// Says where in a run file the settings are that a library checks.
pub(crate) trait InTable<T> {
    /// Puts `table` before the name of a setting that is outside its range; other errors stay as they are.
    fn in_table(self, table: &str) -> Result<T, CliError>;
}

impl<T, E: Into<CliError>> InTable<T> for Result<T, E> {
    fn in_table(self, table: &str) -> Result<T, CliError> {
        let setting = |key: &str, value: String, expected: String| CliError::Setting {
            key: format!("{table}.{key}"),
            value,
            expected,
        };
        self.map_err(|error| match error.into() {
            CliError::Metric(MetricError::InvalidSetting { setting: key, value, expected })
            | CliError::Simulation(SimulationError::Setting { key, value, expected }) => {
                setting(key, value, expected.to_owned())
            }
            #[cfg(feature = "train")]
            CliError::Training(FairnessError::Setting { key, value, expected }) => setting(key, value, expected),
            #[cfg(feature = "train")]
            CliError::Training(FairnessError::Model(ModelError::Setting { key, value, expected })) => {
                setting(key, value, expected.to_owned())
            }
            #[cfg(feature = "train")]
            CliError::Training(FairnessError::Survival(SurvivalError::Setting { key, value, expected })) => {
                setting(key, value.to_string(), expected.to_owned())
            }
            #[cfg(feature = "train")]
            CliError::Training(FairnessError::Model(ModelError::OtherBackbone { table: other, backbone })) => {
                let message = format!("{table}.backbone is \"{backbone}\", expected no settings of another backbone");
                CliError::setting(&format!("{table}.{other}"), message, None)
            }
            #[cfg(feature = "train")]
            CliError::Training(FairnessError::Model(error @ ModelError::Precision { .. })) => {
                CliError::setting(&format!("{table}.precision"), error.to_string(), None)
            }
            other => other,
        })
    }
}

impl CliError {
    /// An error in a setting that is not due to a single file or argument.
    pub(crate) fn setting(key: &str, message: String, help: Option<&str>) -> Self {
        Self::Config { key: key.to_owned(), message, place: String::new(), help: help.map(str::to_owned) }
    }

    /// An error of an estimator of the run file.
    pub(crate) fn of_estimator(estimator: &Estimator, error: ClassicalError) -> Self {
        match error {
            ClassicalError::Setting { setting, value, expected } => Self::Setting {
                key: format!("estimator.{}.{setting}", estimator.name()),
                value,
                expected: expected.to_owned(),
            },
            other => Self::Estimator(other),
        }
    }

    /// A list of attributes names one that the run does not have.
    pub(crate) fn unknown_attribute(key: &str, name: &str, known: &[&str]) -> Self {
        let message = format!("\"{name}\" is not an [[attribute]] of this run, expected one of {}", known.join(", "));
        Self::setting(key, message, None)
    }

    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::ReadRunFile { .. }
            | Self::Toml { .. }
            | Self::Config { .. }
            | Self::Setting { .. }
            | Self::OtherRun { .. }
            | Self::Device { .. }
            | Self::DeviceUnusable { .. }
            | Self::Metric(
                MetricError::InvalidSetting { .. }
                | MetricError::InvalidGrid { .. }
                | MetricError::UnknownMetric { .. },
            ) => Exit::Config,
            Self::RunFolder { .. } | Self::Cell { .. } | Self::Metric(_) | Self::Refused { .. } | Self::Check(_) => {
                Exit::Data
            }
            Self::Data(error) => of_data(error),
            Self::Curves { source, .. } => of_data(source),
            Self::Simulation(error) => match error {
                SimulationError::Setting { .. } => Exit::Config,
                _ => Exit::Data,
            },
            #[cfg(feature = "train")]
            Self::Training(error) => of_training(error),
            Self::NotMeasured { exit, .. } => *exit,
            Self::DeviceFailed { .. } => Exit::Training,
            Self::Estimator(ClassicalError::Setting { .. } | ClassicalError::UnknownCovariate { .. }) => Exit::Config,
            Self::Estimator(_) => Exit::Data,
            Self::Report(_) | Self::Bug(_) => Exit::Bug,
        }
    }
}

fn of_data(error: &DataError) -> Exit {
    match error {
        DataError::InvalidSetting { .. }
        | DataError::InvalidAttribute { .. }
        | DataError::UnknownAttribute { .. }
        | DataError::TooManyLevels { .. }
        | DataError::NoSuchValue { .. }
        | DataError::UnknownMissing { .. }
        | DataError::UnknownSite { .. }
        | DataError::InvalidFeature { .. }
        | DataError::Simulation(SimulationError::Setting { .. }) => Exit::Config,
        _ => Exit::Data,
    }
}

#[cfg(feature = "train")]
fn of_training(error: &FairnessError) -> Exit {
    match error {
        FairnessError::Setting { .. }
        | FairnessError::NotExported { .. }
        | FairnessError::Model(ModelError::Setting { .. } | ModelError::OtherBackbone { .. })
        | FairnessError::Survival(SurvivalError::Setting { .. } | SurvivalError::Intervals { .. }) => Exit::Config,
        FairnessError::Survival(
            SurvivalError::NoEvent { .. } | SurvivalError::TimesAllEqual { .. } | SurvivalError::InvalidTime { .. },
        )
        | FairnessError::Model(
            ModelError::ReadWeights { .. } | ModelError::DamagedWeights { .. } | ModelError::WeightsDoNotFit { .. },
        )
        | FairnessError::NoGroups { .. }
        | FairnessError::Checkpoint { .. } => Exit::Data,
        FairnessError::Data(error) => of_data(error),
        FairnessError::Interrupted { .. } => crate::interrupt::exit(),
        _ => Exit::Training,
    }
}

/// Prints the error with its causes as one sentence, and its hint, on standard error, unless that is closed.
pub(crate) fn print(error: &CliError) {
    use std::io::Write as _;
    let terminal = std::io::stderr().is_terminal();
    // Logs are searched line by line: a sentence must not be wrapped there.
    let width = if terminal { console_width() } else { usize::MAX };
    let handler = miette::MietteHandlerOpts::new().width(width).color(terminal).unicode(terminal);
    // Fails only if a handler is already installed, which also prints errors.
    let _ = miette::set_hook(Box::new(move |_| Box::new(handler.clone().build())));
    let mut diagnostic = miette::MietteDiagnostic::new(sentence(error));
    diagnostic.help = miette::Diagnostic::help(error).map(|help| help.to_string());
    let _ = writeln!(std::io::stderr(), "{:?}", miette::Report::new(diagnostic));
}

/// The message and every cause that it does not name already.
pub(crate) fn sentence(error: &CliError) -> String {
    let mut sentence = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        if !sentence.contains(&text) {
            sentence = format!("{sentence}: {text}");
        }
        cause = error.source();
    }
    sentence
}

fn console_width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(120)
}
