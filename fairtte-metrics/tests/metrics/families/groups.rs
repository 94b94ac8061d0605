//! Gaps, ratios and equity scaling against fairlearn, and bootstrap intervals against numpy and scipy.

use fairtte_metrics::fairness::{Comparison, EquityScaling, GroupValue, PerGroup};
use fairtte_metrics::rank::{ConcordanceTd, TiedPredictions, concordance_td};
use fairtte_metrics::resampling::{Interval, IntervalMethod, JackknifeValues, Replicated};
use fairtte_metrics::{Direction, GroupId, Groups, MetricError, Outcomes, Reading, SurvivalCurves};
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

/// The kind of an error, without the numbers of the case.
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

    /// Harrell's C over all pairs of rows with these weights; risks within 1e-8 of each other count one half.
    ///
    /// A row drawn twice is an event at the same time as itself, so it is not comparable with itself.
    fn harrell(&self, weights: &[u32]) -> Option<f64> {
        let (time, event) = (self.outcomes.time(), self.outcomes.event());
        let (mut comparable, mut concordant) = (0.0, 0.0);
        for i in (0..weights.len()).filter(|&i| event[i]) {
            for j in (0..weights.len()).filter(|&j| time[j] > time[i] || (time[j] >= time[i] && !event[j])) {
                let weight = f64::from(weights[i]) * f64::from(weights[j]);
                let ahead = self.risk[i] - self.risk[j];
                comparable += weight;
                concordant +=
                    if ahead.abs() <= 1e-8 { 0.5 * weight } else { weight * f64::from(u8::from(ahead > 0.0)) };
            }
        }
        (comparable > 0.0).then(|| concordant / comparable)
    }

    /// Harrell's C of some rows.
    fn harrell_of(&self, rows: &[usize]) -> Result<f64, MetricError> {
        let weights: Vec<u32> = (0..self.outcomes.n()).map(|row| u32::from(rows.contains(&row))).collect();
        self.harrell(&weights).ok_or(MetricError::NoSamples)
    }
}

fn fairlearn(name: &str, case: &Value, tally: &mut Tally) -> Vec<String> {
    let sample = Sample::new(case);
    let membership = rows(&case["group"]);
    let n_levels = membership.iter().max().unwrap() + 1;
    let levels = (0..n_levels).map(|level| level.to_string()).collect();
    let membership = membership.iter().map(|level| Some(GroupId(u32::try_from(*level).unwrap()))).collect();
    let groups = Groups::new("group", levels, membership).unwrap();
    let all_rows: Vec<usize> = (0..sample.outcomes.n()).collect();
    let mut refused = Vec::new();
    for metric_name in ["harrell_sksurv", "ctd_pycox_antolini"] {
        let metric = |rows: &[usize]| match metric_name {
            "harrell_sksurv" => sample.harrell_of(rows),
            _ => sample.antolini(rows),
        };
        let found = PerGroup::compute(&groups, &sample.outcomes, None, metric).unwrap();
        let (what, expected) = (format!("{name} {metric_name}"), &case["outputs"][metric_name]);
        refused.extend(fairlearn_record(&what, &found, &metric(&all_rows), expected, tally));
    }
    refused
}

fn fairlearn_record(
    what: &str,
    groups: &PerGroup<f64>,
    overall: &Result<f64, MetricError>,
    expected: &Value,
    tally: &mut Tally,
) -> Vec<String> {
    let mut refused = Vec::new();
    let mut check = |key: &str, found: Result<f64, MetricError>, expected: &Value| match (found, expected.as_f64()) {
        (Ok(found), Some(expected)) => tally.at(&format!("{what} {key}"), found, expected, TOLERANCE),
        (Err(error), None) => refused.push(format!("{key}: {}", kind(&error))),
        (found, expected) => tally.mismatch(&format!("{what} {key} found {found:?}, expected {expected:?}")),
    };
    check("overall", overall.clone(), &expected["overall"]);
    for group in &groups.groups {
        check(&format!("group {}", group.level), group.value.clone(), &expected["by_group"][&group.level]);
    }
    for (key, comparison, direction) in [
        ("difference_between_groups", Comparison::Gap, UP),
        ("difference_to_overall", Comparison::GapToOverall, UP),
        ("ratio_between_groups", Comparison::Ratio, UP),
        ("ratio_to_overall", Comparison::RatioToOverall, UP),
        ("group_min", Comparison::Worst, UP),
        ("group_max", Comparison::Worst, Direction::LowerIsBetter),
        ("es_higher_better", Comparison::EquityScaling(EquityScaling::FairTte), UP),
    ] {
        let found = overall.clone().and_then(|overall| groups.compare(comparison, overall, direction));
        check(key, found, &expected[key]);
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
    for metric_name in ["ctd_antolini", "harrell"] {
        let metric = |weights: &[u32]| match metric_name {
            "harrell" => sample.harrell(weights),
            _ => antolini(weights),
        };
        let replicates: Vec<Option<f64>> = drawn.iter().map(|weights| metric(weights)).collect();
        let left_out = |row: usize| metric(&(0..n).map(|other| u32::from(other != row)).collect::<Vec<_>>());
        let jackknife: Vec<Option<f64>> = (0..n).map(left_out).collect();
        let (what, expected) = (format!("{name} {metric_name}"), &case["outputs"][metric_name]);
        match metric(&vec![1; n]) {
            Some(value) => refused.extend(bootstrap_record(&what, value, &replicates, &jackknife, expected, tally)),
            None => refused.push(format!("{what}: the value does not exist")),
        }
    }
    refused
}

fn bootstrap_record(
    what: &str,
    value: f64,
    replicates: &[Option<f64>],
    jackknife: &[Option<f64>],
    expected: &Value,
    tally: &mut Tally,
) -> Vec<String> {
    tally.at(&format!("{what} theta"), value, number(&expected["theta"]), TOLERANCE);
    optionals_close(tally, &format!("{what} replicates"), replicates, &expected["replicates"]);
    let mut refused = Vec::new();
    let error = Replicated::new(value, replicates).standard_error();
    match (error, expected["se"].as_f64()) {
        (Ok(found), Some(expected)) => tally.at(&format!("{what} se"), found, expected, TOLERANCE),
        (Err(error), None) => refused.push(format!("se: {}", kind(&error))),
        (found, expected) => tally.mismatch(&format!("{what} se found {found:?}, expected {expected:?}")),
    }
    // Only some metrics of the file have jackknife values and BCa.
    let mut sources = vec![jackknife.to_vec()];
    if !expected["jackknife"].is_null() {
        optionals_close(tally, &format!("{what} jackknife"), jackknife, &expected["jackknife"]);
        sources.push(optional_numbers(&expected["jackknife"]));
    }
    let methods = [
        ("percentile_95", IntervalMethod::Percentile),
        ("basic_95", IntervalMethod::Basic),
        ("bca_95_scipy", IntervalMethod::Bca),
    ];
    for (key, method) in methods.into_iter().filter(|(key, _)| !expected[*key].is_null()) {
        for jackknife in &sources {
            let jackknife = JackknifeValues::new(jackknife.clone());
            let found = Replicated::new(value, replicates).with_jackknife(&jackknife).interval(0.95, method);
            refused.extend(interval_close(tally, &format!("{what} {key}"), found, &expected[key]));
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

/// Compares both ends; returns our result where the other package has no interval.
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
