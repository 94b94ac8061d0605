//! Arguments of `evaluate` with a folder that `fairtte predict` wrote.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

/// What the predictions for other data are compared with, and weighted by.
#[derive(Args, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Other data, predicted by a run")]
pub struct External {
    /// Compare the other data with the test part of this run, which predicted them: `external.html`, `external.json`, ..
    #[arg(long, value_name = "RUN", conflicts_with = "predictions")]
    pub internal: Option<PathBuf>,
    /// Sample whose censoring curve weights the other data; the training part of the run if not given and still there
    #[arg(long, value_enum, conflicts_with = "predictions")]
    pub censoring: Option<CensoringOf>,
}

impl External {
    /// Whether nothing was given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Sample that a censoring curve is fitted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CensoringOf {
    /// The training part of the run: the weights that the run's own test part has
    Train,
    /// The other data: right where their follow-up differs
    Own,
}
