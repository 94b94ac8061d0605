//! Columns of a table as inputs of a model.

use fairtte_data::adapters::Tabular;
use fairtte_data::features::{FeatureTable, TabularFeatures, leak_warnings};
use fairtte_data::{Cohort, DataConfig, Part, Split};

use super::Inputs;
use crate::progress::say;
use crate::{CliError, RunFile};

/// The columns of a table as inputs, fitted on the training part.
pub(super) fn features(run: &RunFile, cohort: &Cohort, split: &Split) -> Result<Inputs, CliError> {
    let DataConfig::Tabular(config) = &run.data else {
        return Err(CliError::Bug("features of a data set of images".to_owned()));
    };
    let table = Tabular::new(config.clone()).features()?.aligned(cohort)?;
    let train = split.rows(Part::Train);
    let attributes: Vec<&str> = run.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    let fitted = TabularFeatures::fit(&table, train, &config.feature_config(), &attributes)?;
    for column in &fitted.left_out {
        say(format!("note: {column}"));
    }
    for warning in leak_warnings(&fitted, &table, cohort, train)? {
        say(format!("warning: {warning}"));
    }
    encoded(&table, fitted)
}

/// The features of a table by these encodings.
pub(super) fn encoded(table: &FeatureTable, encodings: TabularFeatures) -> Result<Inputs, CliError> {
    let matrix = encodings.encode(table)?;
    matrix.notes().for_each(|note| say(format!("note: {note}")));
    Ok(Inputs::Features { matrix, encodings })
}
