//! `fairtte evaluate --cohort` with `--attributes`: columns of the cohort, or of the predictions beside it.

use std::path::{Path, PathBuf};

use fairtte_data::cohort::AttributeColumn;
use fairtte_data::predictions::{
    PredictedAttributes, PredictionTable, join_attributes, read_predictions_with_attributes, with_levels,
};
use fairtte_data::{AttributeConfig, Cohort, FittedAttributes};
use fairtte_metrics::Groups;

use super::outside::{rising, with_help};
use crate::CliError;
use crate::args::Evaluate;

/// The curves of a file, with the columns that `--attributes` names.
pub(super) struct Predicted {
    pub(super) table: PredictionTable,
    columns: Vec<AttributeColumn>,
}

impl Predicted {
    pub(super) fn read(path: &Path, arguments: &Evaluate, configs: &[AttributeConfig]) -> Result<Self, CliError> {
        let names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
        let read = read_predictions_with_attributes(path, rising(arguments), arguments.cause, &names);
        let (table, columns) = read.map_err(with_help)?;
        Ok(Self { table, columns })
    }
}

/// The groups that are compared: all of the cohort, or those of the attributes asked for.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) groups: Vec<Groups>,
    pub(super) notes: Vec<String>,
}

impl Asked {
    /// `files` are those of the predictions; levels and medians are those of `train_rows`, or of all samples with a value if none
    /// of these has one, as where the column is in the predictions only.
    ///
    /// # Errors
    /// [`CliError::Data`] for an attribute that is nowhere, has different values in two files, or cannot be grouped as asked.
    pub(super) fn of(
        cohort: &mut Cohort,
        groups: Vec<Groups>,
        configs: &[AttributeConfig],
        files: &[(&PathBuf, &Predicted)],
        train_rows: &[usize],
    ) -> Result<Self, CliError> {
        if configs.is_empty() {
            return Ok(Self { groups, notes: Vec::new() });
        }
        let names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
        let files: Vec<PredictedAttributes<'_>> = files
            .iter()
            .map(|(path, file)| PredictedAttributes { path, samples: &file.table.samples, columns: &file.columns })
            .collect();
        join_attributes(cohort, &names, &files)?;
        let mut asked = Self::default();
        for config in configs {
            let of_cohort = groups.iter().find(|groups| groups.attribute() == config.name);
            match of_cohort.filter(|_| *config == AttributeConfig::new(&config.name)) {
                Some(groups) => asked.groups.push(groups.clone()),
                None => asked.fit(cohort, config, train_rows)?,
            }
        }
        Ok(asked)
    }

    fn fit(&mut self, cohort: &Cohort, config: &AttributeConfig, train_rows: &[usize]) -> Result<(), CliError> {
        let column = cohort.attributes.iter().find(|column| column.name == config.name);
        let has_value = |row: &usize| column.is_some_and(|column| column.values[*row].is_some());
        let all = cohort.all_rows();
        let rows = if train_rows.iter().any(has_value) { train_rows } else { &all };
        let config = with_levels(cohort, config).map_err(with_help)?;
        let fitted = FittedAttributes::fit(&[config], cohort, rows).map_err(with_help)?;
        self.groups.extend_from_slice(fitted.all());
        self.notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
        Ok(())
    }
}
