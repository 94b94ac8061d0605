//! Arguments of `evaluate` with several `--predictions`.

use std::path::PathBuf;

use clap::Args;
use serde::{Serialize, Serializer};

/// Which models are compared.
#[derive(Args, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Several models")]
pub struct Models {
    /// Names of the models, one per --predictions in the same order; the names of the files if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "predictions", conflicts_with = "run")]
    pub names: Vec<String>,
    /// Model that all others are compared with; the first if not given
    #[arg(long, value_name = "NAME", requires = "predictions", conflicts_with = "run")]
    pub reference_model: Option<String>,
}

impl Models {
    /// Whether nothing was given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One file as a text, as where only one can be given.
pub(super) fn one_or_more<S: Serializer>(files: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    match files {
        [] => serializer.serialize_none(),
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}
