//! Case mix: who the samples of two cohorts are, and how far apart, in standardised differences.

use std::collections::BTreeSet;

use fairtte_data::Cohort;
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{CohortReports, GroupSummary};
use fairtte_metrics::statistics::{
    standardised_difference_of_levels, standardised_difference_of_means, standardised_difference_of_shares,
};
use fairtte_metrics::{EvaluationReport, Groups, MetricError, SubjectId};
use serde::Serialize;

use crate::CliError;
use crate::scored::Scored;

/// What two cohorts consist of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CaseMix {
    /// Line by line.
    pub(crate) lines: Vec<CaseMixLine>,
}

/// One variable, or one level of an attribute, in both cohorts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CaseMixLine {
    pub(crate) kind: CaseMixKind,
    /// Name of the attribute, for attributes and their levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attribute: Option<String>,
    /// What the numbers are of; the level of an attribute.
    pub(crate) name: String,
    pub(crate) internal: CaseMixCell,
    pub(crate) external: CaseMixCell,
    /// Standardised difference, external minus internal; that of an attribute with levels has no sign. `None` where there is
    /// none.
    pub(crate) smd: Option<f64>,
    /// Why there is none, where there should be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undefined: Option<String>,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CaseMixKind {
    /// A count of the whole cohort.
    Count,
    /// A share.
    Share,
    /// A time.
    Time,
    /// Mean and standard deviation of a number.
    Number,
    /// An attribute, with its levels below.
    Attribute,
    /// A level of an attribute.
    Level,
}

/// The numbers of one cohort; those that a line does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CaseMixCell {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<usize>,
    /// In [0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<f64>,
    /// Mean, or the value of a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deviation: Option<f64>,
}

impl CaseMix {
    /// Name of the line of the time to event or censoring.
    pub(crate) const OBSERVED_TIME: &'static str = "time to event or censoring";

    /// The case mix of the cohorts that `reports` are of.
    ///
    /// # Errors
    /// [`CliError`] if the times of a cohort are no outcomes.
    pub(crate) fn of(internal: &Scored, external: &Scored, reports: &CohortReports) -> Result<Self, CliError> {
        let both = [(internal, &reports.internal), (external, &reports.external)];
        let mut lines = of_all(both)?;
        let samples = [internal, external].map(|scored| Samples { cohort: &scored.cohort, rows: &scored.rows });
        lines.extend(of_attributes(samples, [&internal.groups, &external.groups]));
        Ok(Self { lines })
    }

    /// That of the samples with a class.
    pub(crate) fn of_classes(internal: &WithClass<'_>, external: &WithClass<'_>) -> Self {
        let both = [internal, external];
        let count = |name: &str, of: &dyn Fn(&WithClass<'_>) -> usize| {
            let cells = both.map(|side| CaseMixCell { n: Some(of(side)), ..CaseMixCell::default() });
            line(CaseMixKind::Count, name, cells, None)
        };
        let share = |name: &str, of: &dyn Fn(&WithClass<'_>) -> (usize, usize)| {
            let shares = both.map(of).map(|(n, of)| (of > 0).then(|| n as f64 / of as f64));
            let smd = shares[0].zip(shares[1]).map(|(own, other)| standardised_difference_of_shares(other, own));
            line(CaseMixKind::Share, name, shares.map(|share| CaseMixCell { share, ..CaseMixCell::default() }), smd)
        };
        let n_positive = |side: &WithClass<'_>| side.predictions.n_positive();
        let mut lines = vec![
            count("samples", &|side| side.rows.len()),
            count("subjects", &|side| side.subjects().len()),
            count("positive samples", &n_positive),
            share("positive samples, share", &|side| (n_positive(side), side.rows.len())),
            numbers("predicted probability", both.map(|side| side.predictions.probability())),
        ];
        if both.iter().any(|side| side.n_left_out() > 0) {
            lines.push(share("censored by the horizon, without a class", &|side| (side.n_left_out(), side.cohort.n())));
        }
        let samples = both.map(|side| Samples { cohort: side.cohort, rows: side.rows });
        lines.extend(of_attributes(samples, both.map(|side| side.groups)));
        Self { lines }
    }
}

/// The samples of a cohort that have a class.
#[derive(Clone, Copy)]
pub(crate) struct WithClass<'a> {
    /// All samples.
    pub(crate) cohort: &'a Cohort,
    /// Those with a class; row `i` of what follows is `rows[i]` of the cohort.
    pub(crate) rows: &'a [usize],
    pub(crate) predictions: &'a ClassPredictions,
    pub(crate) groups: &'a [Groups],
}

impl WithClass<'_> {
    fn subjects(&self) -> BTreeSet<&SubjectId> {
        self.rows.iter().map(|row| &self.cohort.samples[*row].subject_id).collect()
    }

    fn n_left_out(&self) -> usize {
        self.cohort.n() - self.rows.len()
    }
}

/// Some samples of a cohort.
#[derive(Clone, Copy)]
struct Samples<'a> {
    cohort: &'a Cohort,
    rows: &'a [usize],
}

/// The attributes of both cohorts, without intersections.
fn of_attributes(samples: [Samples<'_>; 2], groups: [&[Groups]; 2]) -> Vec<CaseMixLine> {
    let mut lines = Vec::new();
    for own in groups[0] {
        let other = groups[1].iter().find(|other| other.attribute() == own.attribute());
        let is_single = samples[0].cohort.attributes.iter().any(|column| column.name == own.attribute());
        if let Some(other) = other.filter(|_| is_single) {
            lines.extend(of_number(own.attribute(), samples));
            lines.extend(of_levels(own, other));
        }
    }
    lines
}

fn of_all(both: [(&Scored, &EvaluationReport); 2]) -> Result<Vec<CaseMixLine>, CliError> {
    let all = both.map(|(_, report)| report.groups_summary.first());
    let count = |name: &str, of: fn(&EvaluationReport) -> usize| {
        let cells = both.map(|(_, report)| CaseMixCell { n: Some(of(report)), ..CaseMixCell::default() });
        line(CaseMixKind::Count, name, cells, None)
    };
    let mut lines = vec![
        count("samples", |report| report.n),
        count("subjects", |report| report.n_subjects),
        count("events", |report| report.n_events),
    ];
    let of_summary = |of: fn(&GroupSummary) -> Option<f64>| all.map(|group| group.and_then(of));
    let share = |share| CaseMixCell { share, ..CaseMixCell::default() };
    lines.push(line(CaseMixKind::Share, "censored", of_summary(|group| group.censored).map(share), None));
    let median = of_summary(|group| group.median_follow_up);
    let time = |value| CaseMixCell { value, ..CaseMixCell::default() };
    lines.push(line(CaseMixKind::Time, "median follow-up", median.map(time), None));
    let times = [both[0].0.cohort.outcomes(&both[0].0.rows)?, both[1].0.cohort.outcomes(&both[1].0.rows)?];
    lines.push(numbers(CaseMix::OBSERVED_TIME, [times[0].time(), times[1].time()]));
    let observed = of_summary(|group| group.at_horizon.as_ref().map(|risk| risk.observed));
    let smd = observed[0].zip(observed[1]).map(|(own, other)| standardised_difference_of_shares(other, own));
    lines.push(line(CaseMixKind::Share, "observed risk at the horizon", observed.map(share), smd));
    if let Some(horizon) = both[0].1.horizon {
        let risks = both.map(|(scored, report)| -> Vec<f64> {
            let survival = scored.curves.all_at(horizon, report.settings.reading);
            survival.into_iter().map(|survival| 1.0 - survival).collect()
        });
        lines.push(numbers("predicted risk at the horizon", [&risks[0], &risks[1]]));
    }
    Ok(lines)
}

fn line(
    kind: CaseMixKind,
    name: &str,
    [internal, external]: [CaseMixCell; 2],
    smd: Option<Result<f64, MetricError>>,
) -> CaseMixLine {
    let undefined = smd.as_ref().and_then(|smd| smd.as_ref().err()).map(ToString::to_string);
    let smd = smd.and_then(Result::ok);
    CaseMixLine { kind, attribute: None, name: name.to_owned(), internal, external, smd, undefined }
}

/// Mean, standard deviation and standardised difference of two samples of numbers.
fn numbers(name: &str, both: [&[f64]; 2]) -> CaseMixLine {
    let cell = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n);
        let deviation = mean
            .filter(|_| values.len() > 1)
            .map(|mean| (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0)).sqrt());
        CaseMixCell { n: Some(values.len()), value: mean, deviation, share: None }
    };
    let smd = standardised_difference_of_means(both[1], both[0]);
    line(CaseMixKind::Number, name, both.map(cell), Some(smd))
}

/// The raw values of an attribute that is a number cut into groups.
fn of_number(attribute: &str, [internal, external]: [Samples<'_>; 2]) -> Option<CaseMixLine> {
    let values = |samples: Samples<'_>| -> Option<Vec<f64>> {
        let column = samples.cohort.attributes.iter().find(|column| column.name == attribute)?;
        let known = samples.rows.iter().filter_map(|row| column.values[*row].as_deref());
        known.map(|text| text.parse::<f64>().ok().filter(|value| value.is_finite())).collect()
    };
    let (own, other) = (values(internal)?, values(external)?);
    let distinct: BTreeSet<u64> = own.iter().map(|value| value.to_bits()).collect();
    let found = numbers(attribute, [&own, &other]);
    (distinct.len() > 2).then(|| CaseMixLine { attribute: Some(attribute.to_owned()), ..found })
}

/// The shares of the levels of an attribute among the samples that have one.
fn of_levels(internal: &Groups, external: &Groups) -> Vec<CaseMixLine> {
    let both = [internal, external];
    let more = external.levels().iter().filter(|level| !internal.levels().contains(level));
    let levels: Vec<&String> = internal.levels().iter().chain(more).collect();
    let count = |groups: &Groups, level: &String| {
        let id = groups.ids().find(|id| groups.levels()[id.index()] == *level);
        id.map_or(0, |id| groups.rows(id).len())
    };
    let counts = both.map(|groups| levels.iter().map(|level| count(groups, level)).collect::<Vec<usize>>());
    let known = [0, 1].map(|k| counts[k].iter().sum::<usize>());
    let cell = |n: usize, of: usize| CaseMixCell {
        n: Some(n),
        share: (of > 0).then(|| n as f64 / of as f64),
        ..CaseMixCell::default()
    };
    let attribute = internal.attribute();
    let of_attribute = |line: CaseMixLine| CaseMixLine { attribute: Some(attribute.to_owned()), ..line };
    let smd = standardised_difference_of_levels(&counts[1], &counts[0]);
    let n_known = [0, 1].map(|k| CaseMixCell { n: Some(known[k]), ..CaseMixCell::default() });
    let mut lines = vec![of_attribute(line(CaseMixKind::Attribute, attribute, n_known, Some(smd)))];
    for (place, level) in levels.iter().enumerate() {
        let cells = [0, 1].map(|k| cell(counts[k][place], known[k]));
        let shares = cells[0].share.zip(cells[1].share);
        let smd = shares.map(|(own, other)| standardised_difference_of_shares(other, own));
        lines.push(of_attribute(line(CaseMixKind::Level, level, cells, smd)));
    }
    let missing = [0, 1].map(|k| both[k].n() - known[k]);
    if missing.iter().any(|n| *n > 0) {
        let cells = [0, 1].map(|k| cell(missing[k], both[k].n()));
        lines.push(of_attribute(line(CaseMixKind::Level, "missing", cells, None)));
    }
    lines
}
