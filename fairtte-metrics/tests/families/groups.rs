//! Gaps, ratios and equity scaling against fairlearn, and bootstrap intervals against numpy and scipy.

use fairtte_metrics::{
    Comparison, ConcordanceTd, Direction, EquityScaling, GroupId, GroupValue, Groups, Interval, IntervalMethod,
    JackknifeValues, MetricError, Outcomes, PerGroup, Reading, Replicated, SurvivalCurves, TiedPredictions,
    concordance_td,
};
use serde_json::Value;

use crate::records::{Case, flags, matrix, numbers, optional_numbers, rows};
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
const UP: Direction = Direction::HigherIsBetter;

/// The gaps and equity-scaled values that follow from the recorded overall and group values of every metric.
pub fn compare_derived(case: &Case, tally: &mut Tally) -> Vec<Verdict> {
    let Some(derived) = case.derived.as_object() else { return vec![Verdict::NotMine] };
    derived.iter().flat_map(|(name, record)| derived_record(name, record, tally)).collect()
}

fn derived_record(what: &str, record: &Value, tally: &mut Tally) -> Vec<Verdict> {
    let values: Vec<(String, Option<f64>)> =
        record["by_group"].as_object().unwrap().iter().map(|(level, value)| (level.clone(), value.as_f64())).collect();
    let groups = per_group(&values);
    tally.at(
        &format!("{what} undefined groups"),
        count(groups.n_undefined()),
        number(&record["n_undefined_groups"]),
        0.0,
    );
    let mut refused = Vec::new();
    let mut check = |name: &str, found: Result<f64, MetricError>| match (found, record[name].as_f64()) {
        (Ok(found), Some(expected)) => tally.at(&format!("{what} {name}"), found, expected, TOLERANCE),
        (Err(error), None) => refused.push(format!("{name}: {}", kind(&error))),
        (found, expected) => tally.mismatch(&format!("{what} {name} found {found:?}, expected {expected:?}")),
    };
    check("gap_max_pairwise", groups.gap());
    // The recorded definition divides the value itself, also where lower is better.
    let overall = record["overall"].as_f64().unwrap_or(f64::NAN);
    let scaled = groups.equity_scaled(EquityScaling::FairSeg, overall, UP);
    check("es", scaled.map(|scaled| scaled.value));
    refused.into_iter().map(Verdict::Refused).chain([Verdict::Compared]).collect()
}

/// The groups of an attribute with these values.
fn per_group(values: &[(String, Option<f64>)]) -> PerGroup<f64> {
    let group = |(level, (name, value)): (usize, &(String, Option<f64>))| GroupValue {
        group: GroupId(u32::try_from(level).unwrap()),
        level: name.clone(),
        n: 0,
        n_events: 0,
        n_subjects: None,
        n_comparable: None,
        value: value.ok_or(MetricError::NoSamples),
    };
    PerGroup { attribute: "group".to_owned(), groups: values.iter().enumerate().map(group).collect(), n_missing: 0 }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// An error without the numbers of the case at hand.
fn kind(error: &MetricError) -> &'static str {
    match error {
        MetricError::TooFewGroups { .. } => "fewer than 2 groups have a value",
        MetricError::NoDefinedGroup { .. } => "no group has a value",
        MetricError::NotFinite { .. } => "the overall value does not exist",
        MetricError::BcaUndefined { .. } => "no BCa interval, with its reason",
        MetricError::JackknifeUndefined { .. } => "undefined without one of the samples",
        MetricError::NoDefinedReplicate { .. } => "no replicate is defined",
        _ => "another typed error",
    }
}

/// `t_fairlearn_gaps.json` and `t_bootstrap.json`.
pub fn compare_table(name: &str, file: &Value, tally: &mut Tally) -> Verdict {
    let compare: fn(&str, &Value, &mut Tally) -> Vec<String> = match name {
        "t_fairlearn_gaps" => fairlearn,
        "t_bootstrap" => bootstrap,
        _ => return Verdict::NotMine,
    };
    let cases = file["cases"].as_array().unwrap().iter();
    let refused: Vec<String> = cases.flat_map(|case| compare(case["name"].as_str().unwrap(), case, tally)).collect();
    if refused.is_empty() {
        return Verdict::Compared;
    }
    tally.book([Verdict::Compared]);
    Verdict::Refused(refused.join("; "))
}

/// The inputs of one case of a table, and the two metrics that the tables are about.
struct Sample {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    risk: Vec<f64>,
}

impl Sample {
    fn new(case: &Value) -> Self {
        Self {
            outcomes: Outcomes::new(numbers(&case["time"]), flags(&case["event"])).unwrap(),
            curves: SurvivalCurves::new(numbers(&case["grid"]), matrix(&case["surv"])).unwrap(),
            risk: numbers(&case["risk"]),
        }
    }

    fn antolini(&self, rows: &[usize]) -> Result<f64, MetricError> {
        let (outcomes, curves) = (self.outcomes.select(rows), self.curves.select(rows));
        concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict).map(|pairs| pairs.value)
    }

    /// Harrell's C over all pairs of rows with these weights; ties within 1e-8 count one half.
    fn harrell(&self, weights: &[u32]) -> Option<f64> {
        let (time, event) = (self.outcomes.time(), self.outcomes.event());
        let (mut comparable, mut concordant) = (0_u64, 0.0);
        for i in (0..weights.len()).filter(|&i| event[i] && weights[i] > 0) {
            for j in (0..weights.len()).filter(|&j| time[j] > time[i] || (time[j] >= time[i] && !event[j])) {
                let (weight, ahead) = (u64::from(weights[i]) * u64::from(weights[j]), self.risk[i] - self.risk[j]);
                // A row and itself, drawn twice, have the same time and are both events: never comparable.
                if time[j] < time[i] || i == j {
                    continue;
                }
                comparable += weight;
                concordant += if ahead.abs() <= 1e-8 { 0.5 } else { f64::from(u8::from(ahead > 0.0)) }
                    * f64::from(u32::try_from(weight).unwrap());
            }
        }
        (comparable > 0).then(|| concordant / f64::from(u32::try_from(comparable).unwrap()))
    }
}

fn fairlearn(name: &str, case: &Value, tally: &mut Tally) -> Vec<String> {
    let sample = Sample::new(case);
    let membership = rows(&case["group"]);
    let n_levels = membership.iter().max().unwrap() + 1;
    let levels = (0..n_levels).map(|level| level.to_string()).collect();
    let membership = membership.iter().map(|level| Some(GroupId(u32::try_from(*level).unwrap()))).collect();
    let groups = Groups::new("group", levels, membership).unwrap();
    let harrell = |rows: &[usize]| {
        let weights: Vec<u32> = (0..sample.outcomes.n()).map(|row| u32::from(rows.contains(&row))).collect();
        sample.harrell(&weights).ok_or(MetricError::NoSamples)
    };
    let antolini = |rows: &[usize]| sample.antolini(rows);
    let metrics: [(&str, &dyn Fn(&[usize]) -> Result<f64, MetricError>); 2] =
        [("harrell_sksurv", &harrell), ("ctd_pycox_antolini", &antolini)];
    let all_rows: Vec<usize> = (0..sample.outcomes.n()).collect();
    let mut refused = Vec::new();
    for (metric_name, metric) in metrics {
        let expected = &case["outputs"][metric_name];
        let found = PerGroup::compute(&groups, &sample.outcomes, None, metric).unwrap();
        let overall = metric(&all_rows);
        let compare = |comparison, direction| found.compare(comparison, overall.clone()?, direction);
        let mut check = |key: &str, value: Result<f64, MetricError>| match (value, expected[key].as_f64()) {
            (Ok(value), Some(expected)) => tally.at(&format!("{name} {metric_name} {key}"), value, expected, TOLERANCE),
            (Err(error), None) => refused.push(format!("{key}: {}", kind(&error))),
            (value, expected) => {
                tally.mismatch(&format!("{name} {metric_name} {key} found {value:?}, expected {expected:?}"));
            }
        };
        check("overall", overall.clone());
        check("difference_between_groups", compare(Comparison::Gap, UP));
        check("difference_to_overall", compare(Comparison::GapToOverall, UP));
        check("ratio_between_groups", compare(Comparison::Ratio, UP));
        check("ratio_to_overall", compare(Comparison::RatioToOverall, UP));
        check("group_min", compare(Comparison::Worst, UP));
        check("group_max", compare(Comparison::Worst, Direction::LowerIsBetter));
        check("es_higher_better", compare(Comparison::EquityScaling(EquityScaling::FairTte), UP));
        for group in &found.groups {
            let expected = &expected["by_group"][&group.level];
            match (&group.value, expected.as_f64()) {
                (Ok(value), Some(expected)) => {
                    tally.at(&format!("{name} {metric_name} group {}", group.level), *value, expected, TOLERANCE);
                }
                (Err(_), None) => {}
                (value, _) => tally.mismatch(&format!("{name} {metric_name} {}: {value:?}, {expected}", group.level)),
            }
        }
    }
    refused
}

fn bootstrap(name: &str, case: &Value, tally: &mut Tally) -> Vec<String> {
    let sample = Sample::new(case);
    let n = sample.outcomes.n();
    let prepared = ConcordanceTd::prepare(&sample.outcomes, &sample.curves, Reading::Step);
    let antolini = |weights: &[u32]| {
        let pairs = prepared.as_ref().ok()?.weighted(weights, TiedPredictions::Strict).ok()?;
        Some(pairs.value)
    };
    let drawn: Vec<Vec<u32>> = case["indices"].as_array().unwrap().iter().map(|drawn| weights_of(drawn, n)).collect();
    let mut refused = Vec::new();
    let metrics: [(&str, &dyn Fn(&[u32]) -> Option<f64>); 2] =
        [("ctd_antolini", &antolini), ("harrell", &|weights| sample.harrell(weights))];
    for (metric_name, metric) in metrics {
        let expected = &case["outputs"][metric_name];
        let what = |key: &str| format!("{name} {metric_name} {key}");
        let replicates: Vec<Option<f64>> = drawn.iter().map(|weights| metric(weights)).collect();
        optionals_close(tally, &what("replicates"), &replicates, &expected["replicates"]);
        let Some(theta) = metric(&vec![1; n]) else {
            refused.push("the value does not exist".to_owned());
            continue;
        };
        tally.at(&what("theta"), theta, number(&expected["theta"]), TOLERANCE);
        let left_out = |row: usize| metric(&(0..n).map(|other| u32::from(other != row)).collect::<Vec<_>>());
        let recomputed: Vec<Option<f64>> = (0..n).map(left_out).collect();
        let mut recorded = recomputed.clone();
        if !expected["jackknife"].is_null() {
            optionals_close(tally, &what("jackknife"), &recomputed, &expected["jackknife"]);
            recorded = optional_numbers(&expected["jackknife"]);
        }
        // `harrell` has all five, `ctd_antolini` no BCa.
        match (Replicated::new(theta, &replicates).standard_error(), expected["se"].as_f64()) {
            (Ok(found), Some(expected)) => tally.at(&what("se"), found, expected, TOLERANCE),
            (Err(error), None) => refused.push(format!("se: {}", kind(&error))),
            (found, expected) => tally.mismatch(&format!("{} found {found:?}, expected {expected:?}", what("se"))),
        }
        for (key, method) in [
            ("percentile_95", IntervalMethod::Percentile),
            ("basic_95", IntervalMethod::Basic),
            ("bca_95_scipy", IntervalMethod::Bca),
        ] {
            if expected[key].is_null() {
                continue;
            }
            for jackknife in [&recorded, &recomputed] {
                let jackknife = JackknifeValues::new(jackknife.clone());
                let found = Replicated::new(theta, &replicates).with_jackknife(&jackknife).interval(0.95, method);
                refused.extend(interval_close(tally, &what(key), found, &expected[key]));
            }
        }
    }
    refused
}

/// How often every row was drawn.
fn weights_of(drawn: &Value, n: usize) -> Vec<u32> {
    let mut weights = vec![0; n];
    for row in rows(drawn) {
        weights[row] += 1;
    }
    weights
}

fn optionals_close(tally: &mut Tally, what: &str, found: &[Option<f64>], expected: &Value) {
    let expected = optional_numbers(expected);
    if found.len() != expected.len() {
        tally.mismatch(&format!("{what}: {} values, expected {}", found.len(), expected.len()));
        return;
    }
    for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
        match (found, expected) {
            (Some(found), Some(expected)) => tally.at(&format!("{what}[{row}]"), *found, *expected, TOLERANCE),
            (None, None) => {}
            _ => tally.mismatch(&format!("{what}[{row}] found {found:?}, expected {expected:?}")),
        }
    }
}

/// Compares both ends; what ours says where the other package has no interval.
fn interval_close(
    tally: &mut Tally,
    what: &str,
    found: Result<Interval, MetricError>,
    expected: &Value,
) -> Option<String> {
    match (found, optional_numbers(expected).as_slice()) {
        (Ok(found), &[Some(lower), Some(upper)]) => {
            tally.at(&format!("{what} lower"), found.lower, lower, TOLERANCE);
            tally.at(&format!("{what} upper"), found.upper, upper, TOLERANCE);
            None
        }
        (Ok(found), _) => Some(format!("{what}: [{}, {}]", found.lower, found.upper)),
        (Err(error), &[Some(_), Some(_)]) => {
            tally.mismatch(&format!("{what}: {error}"));
            None
        }
        (Err(error), _) => Some(format!("{what}: {}", kind(&error))),
    }
}
