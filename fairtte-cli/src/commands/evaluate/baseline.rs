//! `--baseline`: which covariates, and the samples that their models are fitted on.

use std::path::Path;

use fairtte_data::cohort::AttributeColumn;
use fairtte_data::predictions::read_columns;
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::{EvaluationSettings, Groups, Outcomes};

use crate::CliError;
use crate::baseline::{Baseline, CovariateColumn, CoxModel, Training};
use crate::scored::Scored;

/// The covariates that were requested, each once.
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

/// The covariate `name` of a table whose columns were requested.
pub(super) fn column(cohort: &Cohort, name: &str, rows: &[usize]) -> CovariateColumn {
    let found = cohort.attributes.iter().find(|column| column.name == name);
    found.map_or_else(
        || CovariateColumn { name: name.to_owned(), values: vec![None; rows.len()] },
        |column| CovariateColumn::of_rows(column, &[], rows),
    )
}

/// The covariates of the samples that are scored, and the samples of the fit where these are others.
pub(super) struct Inputs {
    columns: Vec<CovariateColumn>,
    training: Option<Training>,
}

impl Inputs {
    /// Those of one table: fitted on `--train` where that has the covariates, whose values in `missing` are none. `None` without
    /// covariates.
    pub(super) fn of_table(
        columns: Vec<CovariateColumn>,
        (path, train, missing): (Option<&Path>, Option<Outcomes>, &[String]),
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, CliError> {
        if columns.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let found = path.map(|path| read_columns(path, &names)).transpose()?.flatten();
        let of_train = found.map(|found| {
            let of_column =
                |column: AttributeColumn| CovariateColumn { name: column.name, values: column.values }.without(missing);
            found.into_iter().map(of_column).collect::<Vec<_>>()
        });
        let training = train.zip(of_train).map(|(outcomes, columns)| Training { outcomes, columns });
        if training.is_none() && path.is_some() {
            notes.push(format!(
                "--train does not have all of the columns {}: the baseline is fitted on the evaluated samples, each predicted by \
                 a fit that did not see its subject.",
                names.join(", ")
            ));
        }
        Ok(Some(Self { columns, training }))
    }

    /// Those of `rows` of a cohort: the covariates that were requested, or, if none were, all attributes that `train`, the
    /// cohort and rows of the fit, has as well; `None` without any.
    fn of_cohorts(
        asked: &[&str],
        (cohort, groups): (&Cohort, &[Groups]),
        train: Option<(&Cohort, &[Groups], &[usize])>,
        rows: &[usize],
    ) -> Result<Option<Self>, CliError> {
        let mut known = covariates_of(cohort, groups);
        known.retain(|name| train.is_none_or(|(cohort, groups, _)| covariates_of(cohort, groups).contains(name)));
        if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
            let message = format!("there is no covariate \"{unknown}\", expected some of {}", known.join(", "));
            return Err(CliError::setting("--baseline", message, None));
        }
        let attributes = cohort.attributes.iter().map(|column| column.name.as_str());
        let names: Vec<&str> =
            if asked.is_empty() { attributes.filter(|name| known.contains(name)).collect() } else { asked.to_vec() };
        if names.is_empty() {
            return Ok(None);
        }
        let training = train.map(|(cohort, groups, rows)| -> Result<Training, CliError> {
            Ok(Training { outcomes: cohort.outcomes(rows)?, columns: columns(&names, (cohort, groups), rows) })
        });
        Ok(Some(Self { columns: columns(&names, (cohort, groups), rows), training: training.transpose()? }))
    }

    /// Those of `rows` of a cohort, fitted on its training part if there is a split; `None` if no covariates were requested.
    pub(super) fn asked_of_cohort(
        list: &[String],
        (cohort, groups, split): (&Cohort, &[Groups], Option<&Split>),
        rows: &[usize],
    ) -> Result<Option<Self>, CliError> {
        let asked = named(list)?;
        if asked.is_empty() {
            return Ok(None);
        }
        let train = split.map(|split| (cohort, groups, split.rows(Part::Train)));
        Self::of_cohorts(&asked, (cohort, groups), train, rows)
    }

    /// What the covariates alone give, beside the model that is scored.
    fn baseline(&self, scored: &Scored, settings: &EvaluationSettings) -> Result<Baseline, CliError> {
        let (subjects, outcomes) = (scored.cohort.subjects(&scored.rows), scored.cohort.outcomes(&scored.rows)?);
        Baseline::new(&scored.with(&subjects, &outcomes), &self.columns, self.training.as_ref(), settings)
    }

    /// The Cox model as one more model, with curves at the times of the metrics.
    pub(super) fn cox(&self, scored: &Scored, settings: &EvaluationSettings) -> Result<CoxModel, CliError> {
        let (subjects, outcomes) = (scored.cohort.subjects(&scored.rows), scored.cohort.outcomes(&scored.rows)?);
        let found = CoxModel::new(&scored.with(&subjects, &outcomes), &self.columns, self.training.as_ref(), settings);
        found.map_err(|reason| CliError::setting("--baseline", reason.to_string(), None))
    }
}

/// The baseline of one table; `None` without covariates.
pub(super) fn of_table(
    columns: Vec<CovariateColumn>,
    train: (Option<&Path>, Option<Outcomes>, &[String]),
    scored: &Scored,
    settings: &EvaluationSettings,
    notes: &mut Vec<String>,
) -> Result<Option<Baseline>, CliError> {
    let inputs = Inputs::of_table(columns, train, notes)?;
    inputs.map(|inputs| refused(inputs.baseline(scored, settings)?)).transpose()
}

/// The baseline of a cohort, fitted on its training part if there is a split: of the covariates that were requested, or, if
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

/// The same, fitted on these rows of `train`, which may be another cohort: if no covariates were requested, of the attributes
/// that both have.
pub(super) fn of_cohorts(
    list: &[String],
    cohort: (&Cohort, &[Groups]),
    train: Option<(&Cohort, &[Groups], &[usize])>,
    scored: &Scored,
    settings: &EvaluationSettings,
) -> Result<Option<Baseline>, CliError> {
    let asked = named(list)?;
    let Some(inputs) = Inputs::of_cohorts(&asked, cohort, train, &scored.rows)? else { return Ok(None) };
    let found = inputs.baseline(scored, settings)?;
    if asked.is_empty() { Ok(Some(found)) } else { refused(found).map(Some) }
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

/// A baseline that was requested and does not exist is an error.
fn refused(baseline: Baseline) -> Result<Baseline, CliError> {
    match &baseline.undefined {
        Some(reason) => Err(CliError::setting("--baseline", reason.clone(), None)),
        None => Ok(baseline),
    }
}
