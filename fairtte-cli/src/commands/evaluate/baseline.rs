//! `--baseline`: which covariates, and the samples that their models are fitted on.

use std::path::Path;

use fairtte_data::cohort::AttributeColumn;
use fairtte_data::predictions::read_columns;
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::{EvaluationSettings, Groups, Outcomes};

use crate::CliError;
use crate::baseline::{Baseline, CovariateColumn, CovariateKind, CoxModel, Training};
use crate::run_file::RunFile;
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
        let found = path.map(|path| read_columns(path, &names, missing)).transpose()?.flatten();
        let of_train = found.map(|found| {
            let of_column = |column: AttributeColumn| CovariateColumn { name: column.name, values: column.values };
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

    /// Those of `rows` of a cohort: the covariates that were requested, or, if none were, those of `run` that both this cohort and
    /// `train`, the cohort and rows of the fit, have; `None` without any. Without a run they are the attributes with groups: columns
    /// that only its split read, such as a site, have none.
    fn of_cohorts(
        asked: &[&str],
        run: Option<&RunFile>,
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
        let mut names = match run {
            _ if !asked.is_empty() => asked.to_vec(),
            Some(run) => run.covariates(),
            None => attributes_with_groups(cohort, groups),
        };
        names.retain(|name| known.contains(name));
        if names.is_empty() {
            return Ok(None);
        }
        let (of_fit, rows_of_fit) = train.map_or((cohort, rows), |(cohort, _, rows)| (cohort, rows));
        let names: Vec<(&str, CovariateKind)> =
            names.into_iter().map(|name| (name, kind(name, of_fit, rows_of_fit))).collect();
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
        Self::of_cohorts(&asked, None, (cohort, groups), train, rows)
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
/// none were, of those of `run`, without one of all attributes with groups; `None` without any.
pub(super) fn of_cohort(
    list: &[String],
    run: Option<&RunFile>,
    (cohort, groups, split): (&Cohort, &[Groups], Option<&Split>),
    scored: &Scored,
    settings: &EvaluationSettings,
) -> Result<Option<Baseline>, CliError> {
    let train = split.map(|split| (cohort, groups, split.rows(Part::Train)));
    of_cohorts(list, run, (cohort, groups), train, scored, settings)
}

/// The same, fitted on these rows of `train`, which may be another cohort: if no covariates were requested, of those that both
/// have.
pub(super) fn of_cohorts(
    list: &[String],
    run: Option<&RunFile>,
    cohort: (&Cohort, &[Groups]),
    train: Option<(&Cohort, &[Groups], &[usize])>,
    scored: &Scored,
    settings: &EvaluationSettings,
) -> Result<Option<Baseline>, CliError> {
    let asked = named(list)?;
    let Some(inputs) = Inputs::of_cohorts(&asked, run, cohort, train, &scored.rows)? else { return Ok(None) };
    let found = inputs.baseline(scored, settings)?;
    if asked.is_empty() { Ok(Some(found)) } else { refused(found).map(Some) }
}

/// The names of the attributes, then of the groups that are none.
fn covariates_of<'a>(cohort: &'a Cohort, groups: &'a [Groups]) -> Vec<&'a str> {
    let attributes: Vec<&str> = cohort.attributes.iter().map(|column| column.name.as_str()).collect();
    let of_groups = groups.iter().map(Groups::attribute).filter(|name| !attributes.contains(name));
    attributes.iter().copied().chain(of_groups).collect()
}

/// The names of the attributes that have groups.
fn attributes_with_groups<'a>(cohort: &'a Cohort, groups: &[Groups]) -> Vec<&'a str> {
    let names = cohort.attributes.iter().map(|column| column.name.as_str());
    names.filter(|name| groups.iter().any(|groups| groups.attribute() == *name)).collect()
}

/// What `rows` of a cohort, those of the fit, use a covariate as; groups without values are levels.
fn kind(name: &str, cohort: &Cohort, rows: &[usize]) -> CovariateKind {
    let found = cohort.attributes.iter().find(|column| column.name == name);
    found.map_or(CovariateKind::Levels, |column| CovariateKind::of_rows(column, rows))
}

/// The covariates of `rows` of a cohort, each as the fit uses it.
fn columns(
    names: &[(&str, CovariateKind)],
    (cohort, groups): (&Cohort, &[Groups]),
    rows: &[usize],
) -> Vec<CovariateColumn> {
    let column =
        |(name, kind): &(&str, CovariateKind)| match cohort.attributes.iter().find(|column| column.name == *name) {
            Some(column) => Some(CovariateColumn::of_kind(*kind, column, groups, rows)),
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
