//! The numbers of an evaluation as one flat table, for spreadsheets, R and pandas: `evaluation.csv`.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text, write_csv};
use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{
    AttributeDecisions, AttributeReport, Decided, Difference, Estimate, GroupSummary, MetricReport, ModelPair,
    OverTime, OverTimeCurve, ThresholdReport,
};

use super::Page;
use super::rows::is_of_masks;
use crate::baseline::is_shown;

/// One number with its place in the report.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FlatRow {
    metric: String,
    /// Empty for the whole sample.
    attribute: String,
    /// `all`, `group`, the same with `-over-time`, `difference`, or the name of a comparison of all groups.
    kind: &'static str,
    /// The group, or the two groups of a difference.
    level: String,
    value: Option<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
    p: Option<f64>,
    /// Adjusted for all pairs of the attribute; of a gap, for all attributes of the metric.
    p_holm: Option<f64>,
    n: Option<usize>,
    events: Option<usize>,
    subjects: Option<usize>,
    /// Why there is no value, interval or comparison.
    reason: String,
}

/// The rows of all metrics, in the order of the report.
pub(crate) fn rows(report: &EvaluationReport) -> Vec<FlatRow> {
    let of_metrics = report.metrics.iter().flat_map(of_metric);
    let of_decisions = report.decisions.iter().flat_map(|decisions| &decisions.thresholds).flat_map(of_threshold);
    let rows = of_metrics.chain(report.groups_summary.iter().flat_map(of_summary)).chain(of_decisions);
    rows.chain(report.over_time.iter().flat_map(of_times)).collect()
}

/// The rows of a page: those of its report, then those of its baselines.
pub(crate) fn rows_of(page: &Page<'_>) -> Vec<FlatRow> {
    let mut all = rows(page.evaluation);
    all.extend(page.sensitivity.into_iter().flat_map(super::sensitivity::flat_rows));
    let Some(reports) = page.baseline.and_then(|baseline| baseline.reports.as_ref()) else { return all };
    // The first model is the one that is evaluated.
    for (name, report) in reports.models.iter().skip(1) {
        all.extend(report.metrics.iter().filter(|metric| is_shown(name, metric)).flat_map(|m| of_baseline(name, m)));
    }
    all.extend(reports.pairs.iter().flat_map(of_baseline_pair));
    all
}

/// The values of a baseline over all samples and in every group.
fn of_baseline(name: &str, metric: &MetricReport) -> Vec<FlatRow> {
    let row = |attribute: &str, level: &str, estimate: &Estimate| FlatRow {
        level: if level.is_empty() { name.to_owned() } else { format!("{name}: {level}") },
        ..of_estimate(metric, attribute, "baseline", "", estimate)
    };
    let groups = metric.attributes.iter().flat_map(|attribute| {
        attribute.groups.iter().map(|group| row(&attribute.attribute, &group.level, &group.estimate))
    });
    std::iter::once(row("", "", &metric.overall)).chain(groups).collect()
}

/// The differences from a baseline.
fn of_baseline_pair(pair: &ModelPair) -> Vec<FlatRow> {
    let name = format!("{} minus {}", pair.first, pair.second);
    let of = |attribute: &str, kind, level: String, found: &Difference| {
        of_difference(&pair.metric, attribute, kind, level, found)
    };
    let groups = pair.attributes.iter().flat_map(|by| {
        let gap = of(&by.attribute, "baseline-difference-of-gaps", name.clone(), &by.gap);
        let groups = by.groups.iter();
        let group = |(level, found): &(String, Difference)| {
            of(&by.attribute, "baseline-difference", format!("{name}: {level}"), found)
        };
        groups.map(group).chain([gap]).collect::<Vec<_>>()
    });
    std::iter::once(of("", "baseline-difference", name.clone(), &pair.overall)).chain(groups).collect()
}

/// AUC or Brier score of every group at every time, as the metric at that time.
fn of_times(found: &OverTime) -> Vec<FlatRow> {
    let row = |curve: &OverTimeCurve, place: usize| FlatRow {
        metric: format!("{}@{}", found.metric, found.times[place]),
        attribute: curve.attribute.clone().unwrap_or_default(),
        kind: if curve.attribute.is_some() { "group-over-time" } else { "all-over-time" },
        level: curve.level.clone().unwrap_or_default(),
        value: curve.value[place],
        lower: curve.lower[place],
        upper: curve.upper[place],
        n: Some(curve.n),
        events: Some(curve.n_events),
        ..FlatRow::default()
    };
    let of_curve = |curve: &OverTimeCurve| (0..found.times.len()).map(|place| row(curve, place)).collect::<Vec<_>>();
    found.curves.iter().flat_map(of_curve).collect()
}

/// The equalised-odds difference of every attribute, the event rate and the net benefit of treating all.
fn of_threshold(at: &ThresholdReport) -> Vec<FlatRow> {
    let threshold = at.threshold;
    let of_group = |attribute: &str, level: &str, decided: &Decided| {
        let row = |metric: &str, value| FlatRow {
            metric: metric.to_owned(),
            attribute: attribute.to_owned(),
            kind: if attribute.is_empty() { "all" } else { "group" },
            level: level.to_owned(),
            value,
            n: Some(decided.n),
            reason: decided.undefined.clone().unwrap_or_default(),
            ..FlatRow::default()
        };
        let of_all = format!("net-benefit-of-all:{threshold}");
        [row(&format!("event-rate:{threshold}"), decided.event_rate), row(&of_all, decided.net_benefit_of_all)]
    };
    let of_attribute = |attribute: &AttributeDecisions| {
        let odds = &attribute.equalized_odds_difference;
        let odds = of_named(&format!("equalized-odds:{threshold}"), &attribute.attribute, "gap", "", odds);
        let groups = attribute.groups.iter();
        let groups = groups.flat_map(|group| of_group(&attribute.attribute, &group.level, &group.decided));
        groups.chain([odds]).collect::<Vec<_>>()
    };
    let overall = of_group("", "", &at.overall).into_iter();
    overall.chain(at.attributes.iter().flat_map(of_attribute)).collect()
}

/// Share of censored samples, median follow-up, and the risks at the horizon.
fn of_summary(group: &GroupSummary) -> Vec<FlatRow> {
    let row = |metric: &str, value: Option<f64>, ends: Option<(f64, f64)>, reason: Option<&str>| FlatRow {
        metric: metric.to_owned(),
        attribute: group.attribute.clone().unwrap_or_default(),
        kind: if group.attribute.is_some() { "group" } else { "all" },
        level: group.level.clone().unwrap_or_default(),
        value,
        lower: ends.map(|ends| ends.0),
        upper: ends.map(|ends| ends.1),
        n: Some(group.n),
        events: Some(group.n_events),
        subjects: Some(group.n_subjects),
        reason: reason.unwrap_or_default().to_owned(),
        ..FlatRow::default()
    };
    let (risk, reason) = (group.at_horizon.as_ref(), group.at_horizon_undefined.as_deref());
    let not_reached = group.median_follow_up.is_none().then_some("the reverse Kaplan-Meier curve stays above 1/2");
    let competing = group.n_competing.map(|n| row("events-of-other-causes", Some(n as f64), None, None));
    let mut rows = vec![
        row("censored", group.censored, None, None),
        row("median-follow-up", group.median_follow_up, None, not_reached),
        row("observed-risk", risk.map(|r| r.observed), risk.and_then(|r| r.observed_interval), reason),
        row("predicted-risk", risk.map(|r| r.predicted), None, reason),
    ];
    rows.extend(competing);
    rows
}

/// Writes the rows; an absent number is an empty cell.
///
/// # Errors
/// [`DataError`] naming the file if it cannot be written.
pub(crate) fn write(path: &Path, rows: &[FlatRow]) -> Result<(), DataError> {
    write_csv(path, columns(rows))
}

/// The text of the file.
///
/// # Errors
/// [`DataError`] if it cannot be made.
pub(crate) fn text(rows: &[FlatRow]) -> Result<String, DataError> {
    csv_text(columns(rows))
}

/// The columns of the file.
pub(super) fn columns(rows: &[FlatRow]) -> Vec<(String, ColumnValues<'_>)> {
    let text = |of: fn(&FlatRow) -> &str| {
        ColumnValues::Borrowed(rows.iter().map(|row| Some(of(row)).filter(|text| !text.is_empty())).collect())
    };
    let number = |of: fn(&FlatRow) -> Option<f64>| {
        ColumnValues::Text(rows.iter().map(|row| of(row).map(|value| value.to_string())).collect())
    };
    let count = |of: fn(&FlatRow) -> Option<usize>| {
        ColumnValues::Text(rows.iter().map(|row| of(row).map(|n| n.to_string())).collect())
    };
    let columns = [
        ("metric", text(|row| &row.metric)),
        ("attribute", text(|row| &row.attribute)),
        ("kind", text(|row| row.kind)),
        ("level", text(|row| &row.level)),
        ("value", number(|row| row.value)),
        ("lower", number(|row| row.lower)),
        ("upper", number(|row| row.upper)),
        ("p", number(|row| row.p)),
        ("p-holm", number(|row| row.p_holm)),
        ("n", count(|row| row.n)),
        ("events", count(|row| row.events)),
        ("subjects", count(|row| row.subjects)),
        ("reason", text(|row| &row.reason)),
    ];
    columns.map(|(name, values)| (name.to_owned(), values)).into()
}

pub(super) fn of_metric(metric: &MetricReport) -> Vec<FlatRow> {
    let of_all = of_estimate(metric, "", "all", "", &metric.overall);
    let of_attributes = metric.attributes.iter().flat_map(|attribute| of_attribute(metric, attribute));
    std::iter::once(of_all).chain(of_attributes).collect()
}

fn of_attribute(metric: &MetricReport, attribute: &AttributeReport) -> Vec<FlatRow> {
    let row = |kind, level: &str, estimate| of_estimate(metric, &attribute.attribute, kind, level, estimate);
    let groups = attribute.groups.iter().map(|group| {
        let few = attribute.few_events.contains(&group.level);
        let found = row("group", &group.level, &group.estimate);
        if few && found.reason.is_empty() {
            let few = if is_of_masks(metric) { "few values" } else { "few events" };
            FlatRow { reason: format!("{few}: in no comparison"), ..found }
        } else {
            found
        }
    });
    let worst = attribute.worst_group.as_deref().unwrap_or_default();
    let mut comparisons = vec![
        FlatRow {
            p: attribute.gap_by_chance.as_ref().map(|by_chance| by_chance.p_value),
            p_holm: attribute.gap_by_chance.as_ref().and_then(|by_chance| by_chance.p_holm),
            ..row("gap", "", &attribute.gap)
        },
        row("worst", worst, &attribute.worst),
        row("gap-to-overall", "", &attribute.gap_to_overall),
        row("ratio", "", &attribute.ratio),
        row("ratio-to-overall", "", &attribute.ratio_to_overall),
        row("equity-scaling", "", &attribute.equity_scaling),
        row("equity-scaling-fair-seg", "", &attribute.equity_scaling_fair_seg),
    ];
    comparisons.extend(attribute.equity_scaling_deviation.iter().map(|e| row("equity-scaling-deviation", "", e)));
    let number = |kind, value: f64| FlatRow {
        metric: metric.name.clone(),
        attribute: attribute.attribute.clone(),
        kind,
        value: Some(value),
        ..FlatRow::default()
    };
    comparisons.extend(attribute.gap_corrected.map(|gap| number("gap-corrected", gap)));
    if let Some(by_chance) = &attribute.gap_by_chance {
        comparisons.push(number("gap-by-chance-mean", by_chance.mean));
        comparisons.push(number("gap-by-chance-upper", by_chance.upper));
    }
    let differences = attribute.differences.iter().map(|pair| {
        let level = format!("{} minus {}", pair.first, pair.second);
        of_difference(&metric.name, &attribute.attribute, "difference", level, &pair.difference)
    });
    groups.chain(comparisons).chain(differences).collect()
}

fn of_estimate(metric: &MetricReport, attribute: &str, kind: &'static str, level: &str, of: &Estimate) -> FlatRow {
    of_named(&metric.name, attribute, kind, level, of)
}

/// The same of a metric of this name.
pub(super) fn of_named(metric: &str, attribute: &str, kind: &'static str, level: &str, of: &Estimate) -> FlatRow {
    FlatRow {
        metric: metric.to_owned(),
        attribute: attribute.to_owned(),
        kind,
        level: level.to_owned(),
        value: of.value,
        lower: of.lower,
        upper: of.upper,
        p: None,
        p_holm: None,
        n: Some(of.n),
        events: Some(of.n_events),
        subjects: Some(of.n_subjects),
        reason: of
            .undefined
            .clone()
            .or_else(|| of.interval_undefined.clone())
            .or_else(|| of.caution.clone())
            .unwrap_or_default(),
    }
}

pub(super) fn of_difference(
    metric: &str,
    attribute: &str,
    kind: &'static str,
    level: String,
    of: &Difference,
) -> FlatRow {
    FlatRow {
        metric: metric.to_owned(),
        attribute: attribute.to_owned(),
        kind,
        level,
        value: of.value,
        lower: of.lower,
        upper: of.upper,
        p: of.p_value,
        p_holm: of.p_holm,
        reason: of.undefined.clone().or_else(|| of.caution.clone()).unwrap_or_default(),
        ..FlatRow::default()
    }
}

/// A number that is not a metric; `attribute` and level.
pub(super) fn of_number(
    metric: &str,
    (attribute, level): (&str, &str),
    kind: &'static str,
    value: Option<f64>,
    reason: Option<&str>,
) -> FlatRow {
    FlatRow {
        metric: metric.to_owned(),
        attribute: attribute.to_owned(),
        kind,
        level: level.to_owned(),
        value,
        reason: reason.unwrap_or_default().to_owned(),
        ..FlatRow::default()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::test_reports::{estimate, report};
    use super::*;

    #[test]
    fn every_number_of_a_report_is_a_row_and_comes_back_from_the_file() {
        let report = report();
        let rows = rows(&report);
        let of_attribute = |a: &AttributeReport| {
            let of_chance = 2 * usize::from(a.gap_by_chance.is_some()) + usize::from(a.gap_corrected.is_some());
            a.groups.len() + 7 + of_chance + a.differences.len()
        };
        let of_metric = |metric: &MetricReport| 1 + metric.attributes.iter().map(of_attribute).sum::<usize>();
        assert_eq!(rows.len(), report.metrics.iter().map(of_metric).sum::<usize>() + 4 * 6 + 2 * 3);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluation.csv");
        write(&path, &rows).unwrap();
        assert_eq!(text(&rows).unwrap(), std::fs::read_to_string(&path).unwrap());
        let table = fairtte_data::table::Table::read(&path).unwrap();
        assert_eq!(table.n_rows(), rows.len());
        for (name, of) in [("value", (|row| row.value) as fn(&FlatRow) -> Option<f64>), ("p", |row| row.p)] {
            let cells = table.text(name).unwrap().into_iter();
            let read: Vec<Option<f64>> = cells.map(|cell| cell.map(|text| text.parse().unwrap())).collect();
            assert_eq!(read, rows.iter().map(of).collect::<Vec<_>>(), "{name}");
        }
        let observed: Vec<&FlatRow> = rows.iter().filter(|row| row.metric == "observed-risk").collect();
        assert_eq!(
            (observed[1].level.as_str(), observed[1].value, observed[1].lower),
            ("female", Some(0.5), Some(0.3))
        );
        assert_eq!((observed[5].value, observed[5].reason.as_str()), (None, "no sample is followed to time 4"));
        let over_time: Vec<&FlatRow> = rows.iter().filter(|row| row.kind == "group-over-time").collect();
        let (row, none) = (over_time[1], over_time[2]);
        assert_eq!((row.metric.as_str(), row.level.as_str(), row.value), ("auc@4", "female", Some(0.75)));
        assert_eq!((row.lower, row.upper, none.value), (Some(0.65), Some(0.85), None));
        let gap = rows.iter().find(|row| row.kind == "gap").unwrap();
        assert_eq!((gap.value, gap.p), (report.metrics[0].attributes[0].gap.value, Some(0.555)));
        let upper = rows.iter().find(|row| row.kind == "gap-by-chance-upper").unwrap();
        assert_eq!(upper.value, Some(0.148));
        assert!(rows.iter().any(|row| row.kind == "difference" && row.level.contains(" minus ") && row.p.is_some()));
    }

    #[test]
    fn the_caution_of_equalised_odds_is_their_reason() {
        let caution = "12 events in the smallest group, fewer than 30: the interval is too narrow";
        let odds = Estimate { caution: Some(caution.to_owned()), ..estimate(0.2, 0.1, 0.4, [120, 61, 118]) };
        let overall = Decided {
            n: 120,
            n_positive: Some(40),
            n_unknown: Some(3),
            weight: Some(1.0),
            event_rate: Some(0.3),
            net_benefit_of_all: Some(0.1),
            undefined: None,
        };
        let of_sex =
            AttributeDecisions { attribute: "sex".to_owned(), groups: Vec::new(), equalized_odds_difference: odds };
        let rows = of_threshold(&ThresholdReport { threshold: 0.2, overall, attributes: vec![of_sex] });
        let odds = rows.last().unwrap();
        assert_eq!(
            (odds.metric.as_str(), odds.attribute.as_str(), odds.kind, odds.reason.as_str()),
            ("equalized-odds:0.2", "sex", "gap", caution)
        );
        assert_eq!((odds.value, odds.n, odds.events, odds.subjects), (Some(0.2), Some(120), Some(61), Some(118)));
    }
}
