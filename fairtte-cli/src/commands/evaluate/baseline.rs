//! `--baseline`: which covariates, and the samples that their models are fitted on.

use std::path::Path;

use fairtte_data::cohort::AttributeColumn;
use fairtte_data::predictions::read_columns;
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::{EvaluationSettings, Groups, Outcomes};

use crate::CliError;
use crate::baseline::{Baseline, CovariateColumn, Training};
use crate::scored::Scored;

/// The covariates that were asked for, each once.
pub(super) fn named(list: &[String]) -> Result<Vec<&str>, CliError> {
    let refused = |message| Err(CliError::setting("--baseline", message, None));
    let names: Vec<&str> = list.iter().map(|name| name.trim()).collect();
    for (place, name) in names.iter().enumerate() {
        if name.is_empty() {
            return refused(format!("covariate {} is empty, expected the name of a column", place + 1));
        }
        if names[..place].contains(name) {
            return refused(format!("\"{name}\" is named twice, expected once"));
        }
    }
    Ok(names)
}

/// The covariate `name` of a table whose columns were asked for.
pub(super) fn column(cohort: &Cohort, name: &str, rows: &[usize]) -> CovariateColumn {
    let found = cohort.attributes.iter().find(|column| column.name == name);
    found.map_or_else(
        || CovariateColumn { name: name.to_owned(), values: vec![None; rows.len()] },
        |column| CovariateColumn::of_rows(column, &[], rows),
    )
}

/// The baseline of one table; fitted on `--train` where that has the covariates, whose values in `missing` are none. `None` without covariates.
pub(super) fn of_table(
    covariates: &[CovariateColumn],
    (path, train, missing): (Option<&Path>, Option<Outcomes>, &[String]),
    scored: &Scored,
    settings: &EvaluationSettings,
    notes: &mut Vec<String>,
) -> Result<Option<Baseline>, CliError> {
    if covariates.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = covariates.iter().map(|column| column.name.as_str()).collect();
    let columns = path.map(|path| read_columns(path, &names)).transpose()?.flatten();
    let of_train = columns.map(|columns| {
        let of_column =
            |column: AttributeColumn| CovariateColumn { name: column.name, values: column.values }.without(missing);
        columns.into_iter().map(of_column).collect::<Vec<_>>()
    });
    let training = train.zip(of_train).map(|(outcomes, columns)| Training { outcomes, columns });
    if training.is_none() && path.is_some() {
        notes.push(format!(
            "--train does not have all of the columns {}: the baseline is fitted on the evaluated samples, each predicted by \
             a fit that did not see its subject.",
            names.join(", ")
        ));
    }
    refused(of_scored(scored, covariates, training.as_ref(), settings)?).map(Some)
}

/// The baseline of a cohort, fitted on its training part if there is a split: of the covariates that were asked for, or, if
/// none were, of all attributes; `None` without any.
pub(super) fn of_cohort(
    list: &[String],
    (cohort, groups, split): (&Cohort, &[Groups], Option<&Split>),
    scored: &Scored,
    settings: &EvaluationSettings,
) -> Result<Option<Baseline>, CliError> {
    let train = split.map(|split| (cohort, groups, split.rows(Part::Train)));
    of_cohorts(list, (cohort, groups), train, scored, settings)
}

/// The same, fitted on these rows of `train`, which may be another cohort: if no covariates were asked for, of the attributes
/// that both have.
pub(super) fn of_cohorts(
    list: &[String],
    (cohort, groups): (&Cohort, &[Groups]),
    train: Option<(&Cohort, &[Groups], &[usize])>,
    scored: &Scored,
    settings: &EvaluationSettings,
) -> Result<Option<Baseline>, CliError> {
    let asked = named(list)?;
    let mut known = covariates_of(cohort, groups);
    known.retain(|name| train.is_none_or(|(cohort, groups, _)| covariates_of(cohort, groups).contains(name)));
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        let message = format!("there is no covariate \"{unknown}\", expected some of {}", known.join(", "));
        return Err(CliError::setting("--baseline", message, None));
    }
    let attributes = cohort.attributes.iter().map(|column| column.name.as_str());
    let names: Vec<&str> =
        if asked.is_empty() { attributes.filter(|name| known.contains(name)).collect() } else { asked.clone() };
    if names.is_empty() {
        return Ok(None);
    }
    let training = train.map(|(cohort, groups, rows)| -> Result<Training, CliError> {
        Ok(Training { outcomes: cohort.outcomes(rows)?, columns: columns(&names, (cohort, groups), rows) })
    });
    let training = training.transpose()?;
    let found = of_scored(scored, &columns(&names, (cohort, groups), &scored.rows), training.as_ref(), settings)?;
    if asked.is_empty() { Ok(Some(found)) } else { refused(found).map(Some) }
}

fn of_scored(
    scored: &Scored,
    columns: &[CovariateColumn],
    train: Option<&Training>,
    settings: &EvaluationSettings,
) -> Result<Baseline, CliError> {
    let (subjects, outcomes) = (scored.cohort.subjects(&scored.rows), scored.cohort.outcomes(&scored.rows)?);
    Baseline::new(&scored.with(&subjects, &outcomes), columns, train, settings)
}

/// The names of the attributes, then of the groups that are none.
fn covariates_of<'a>(cohort: &'a Cohort, groups: &'a [Groups]) -> Vec<&'a str> {
    let attributes: Vec<&str> = cohort.attributes.iter().map(|column| column.name.as_str()).collect();
    let of_groups = groups.iter().map(Groups::attribute).filter(|name| !attributes.contains(name));
    attributes.iter().copied().chain(of_groups).collect()
}

fn columns(names: &[&str], (cohort, groups): (&Cohort, &[Groups]), rows: &[usize]) -> Vec<CovariateColumn> {
    let column = |name: &&str| match cohort.attributes.iter().find(|column| column.name == *name) {
        Some(column) => Some(CovariateColumn::of_rows(column, groups, rows)),
        None => Some(CovariateColumn::of_groups(groups.iter().find(|groups| groups.attribute() == *name)?, rows)),
    };
    names.iter().filter_map(column).collect()
}

/// A baseline that was asked for and does not exist is an error.
fn refused(baseline: Baseline) -> Result<Baseline, CliError> {
    match &baseline.undefined {
        Some(reason) => Err(CliError::setting("--baseline", reason.clone(), None)),
        None => Ok(baseline),
    }
}
