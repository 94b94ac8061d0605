//! Every number against other packages; see `tests/golden/README.md` for where the values come from.
//!
//! Each test prints how many values it compared and asserts that there were some.

#![expect(clippy::unwrap_used, reason = "a golden file that cannot be read fails the test")]

mod records;

use fairtte_metrics::{
    CensoringCurve, CensoringTies, ConcordanceTd, Direction, GroupId, Groups, KaplanMeier, MetricError, Outcomes,
    PerGroup, Reading, SurvivalCurves, TiedPredictions, auc_td, brier_score, concordance_td, integrated_brier_score,
    percentile_interval,
};
use ndarray::{Array2, Axis, concatenate};
use records::{Case, Subset, cases, flags, matrix, numbers, optional_numbers, rows, table};
use serde_json::Value;

const TOLERANCE: f64 = 1e-12;
/// torchsurv computes in float32.
const FLOAT32_TOLERANCE: f64 = 2e-5;

/// Counts what was compared, so that a test cannot pass by comparing nothing.
#[derive(Default)]
struct Tally {
    compared: usize,
    skipped: Vec<String>,
}

impl Tally {
    fn close(&mut self, found: f64, expected: f64, tolerance: f64, what: &dyn Fn() -> String) {
        assert!((found - expected).abs() <= tolerance, "{}: found {found}, expected {expected}", what());
        self.compared += 1;
    }

    fn skip(&mut self, what: String) {
        self.skipped.push(what);
    }

    fn report(mut self, test: &str, at_least: usize) {
        self.skipped.dedup();
        eprintln!("{test}: {} values compared; skipped: {:?}", self.compared, self.skipped);
        assert!(self.compared >= at_least, "{test} compared only {} values", self.compared);
    }
}

/// Calls `check` with every subset whose times this crate accepts.
fn for_each_subset(tally: &mut Tally, mut check: impl FnMut(&mut Tally, &Case, &Subset, &Outcomes)) {
    for case in cases() {
        for subset in &case.subsets {
            match &subset.outcomes {
                Ok(outcomes) => check(tally, &case, subset, outcomes),
                Err(error) => tally.skip(format!("{} {}: {error}", case.name, subset.name)),
            }
        }
    }
}

#[test]
fn strict_concordance_matches_pycox_antolini() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        for record in case.records(subset, "pycox") {
            let (method, steps) = (&record.args["method"], &record.args["steps"]);
            if record.function != "EvalSurv.concordance_td" || method != "antolini" || steps != "post" {
                continue;
            }
            let found = concordance_td(outcomes, &subset.curves, Reading::Step, TiedPredictions::Strict);
            let what = || format!("{} {}", case.name, subset.name);
            match record.value.and_then(Value::as_f64) {
                Some(expected) => tally.close(found.unwrap().value, expected, TOLERANCE, &what),
                // pycox divides by zero where no pair is comparable.
                None => assert!(
                    matches!(found, Err(MetricError::NoEvents { .. } | MetricError::NoComparablePairs { .. })),
                    "{}: {found:?}",
                    what()
                ),
            }
        }
    });
    tally.report("C^td strict, pycox", 10);
}

#[test]
fn half_concordance_matches_survivaleval() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        for record in case.records(subset, "SurvivalEVAL") {
            let (ties, method) = (record.args["ties"].as_str(), record.args["method"].as_str());
            let by_pairs = ties == Some("Risk") || ties == Some("None");
            if record.function != "concordance_time_dependent" || method != Some("Antolini") || !by_pairs {
                continue;
            }
            if case.name.starts_with("s16") {
                tally.skip(format!("{}: pairs within its tolerance of 1e-8, ours is exact", case.name));
                continue;
            }
            let found = concordance_td(outcomes, &subset.curves, Reading::Step, TiedPredictions::Half);
            let what = || format!("{} {} ties {ties:?}", case.name, subset.name);
            let Some(expected) = record.value else {
                assert!(found.is_err(), "{}", what());
                continue;
            };
            let found = found.unwrap();
            let (concordant, equal) = (found.n_concordant as f64, found.n_tied_predictions as f64);
            let comparable = found.n_comparable as f64;
            let number = |key: &str| expected[key].as_f64().unwrap();
            if ties == Some("Risk") {
                tally.close(found.value, number("cindex"), TOLERANCE, &what);
                tally.close(concordant + 0.5 * equal, number("num"), TOLERANCE, &what);
                tally.close(comparable, number("den"), TOLERANCE, &what);
            } else {
                tally.close(concordant, number("num"), TOLERANCE, &what);
                tally.close(comparable - equal, number("den"), TOLERANCE, &what);
            }
        }
    });
    tally.report("C^td half, SurvivalEVAL", 40);
}

/// The curves with S = 1 at time 0 in front, as `SurvivalEvaluator` reads them.
fn from_one(curves: &SurvivalCurves) -> SurvivalCurves {
    if curves.grid()[0] <= 0.0 {
        return curves.clone();
    }
    let grid = [&[0.0], curves.grid()].concat();
    let survival = concatenate![Axis(1), Array2::ones((curves.n(), 1)), curves.survival().view()];
    SurvivalCurves::new(grid, survival).unwrap()
}

#[test]
fn the_linear_reading_matches_survivaleval_inside_the_grid() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        for record in case.records(subset, "SurvivalEVAL") {
            if record.function != "SurvivalEvaluator.concordance_time_dependent" || case.name.starts_with("s16") {
                continue;
            }
            let Some(expected) = record.value else { continue };
            let curves = from_one(&subset.curves);
            let last = curves.grid()[curves.grid().len() - 1];
            let beyond = outcomes.time().iter().zip(outcomes.event()).any(|(time, event)| *event && *time > last);
            if beyond {
                tally.skip(format!("{}: events beyond the grid, where it extrapolates", case.name));
                continue;
            }
            let found = concordance_td(outcomes, &curves, Reading::Linear, TiedPredictions::Half).unwrap();
            let what = || format!("{} {}", case.name, subset.name);
            tally.close(found.value, expected["cindex"].as_f64().unwrap(), TOLERANCE, &what);
        }
    });
    tally.report("C^td linear, SurvivalEVAL", 4);
}

#[test]
fn auc_matches_scikit_survival_and_torchsurv() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        for (package, function, mean, tolerance) in [
            ("scikit-survival", "cumulative_dynamic_auc", "mean", TOLERANCE),
            ("torchsurv", "Auc(cumulative, IPCW self) + integral", "integral", FLOAT32_TOLERANCE),
        ] {
            if package == "torchsurv" && case.name.starts_with("s16") {
                tally.skip(format!("{}: torchsurv tests near ties in float32", case.name));
                continue;
            }
            for record in case.records(subset, package).filter(|record| record.function == function) {
                let Some(expected) = record.value else { continue };
                let what = || format!("{} {} {package} {}", case.name, subset.name, record.censoring);
                let censoring = case.censoring(record.censoring, outcomes);
                let found = auc_td(outcomes, &subset.curves, &censoring, Reading::Step, &subset.tau).unwrap();
                let expected_values = optional_numbers(&expected["auc"]);
                assert_eq!(found.values.len(), expected_values.len(), "{}", what());
                for (found, expected) in found.values.iter().zip(expected_values) {
                    match expected {
                        Some(expected) => tally.close(found.clone().unwrap(), expected, tolerance, &what),
                        None => assert!(found.is_err(), "{}: {found:?}", what()),
                    }
                }
                // scikit-survival has NaN where an undefined time meets a flat curve; torchsurv and we skip it.
                if let Some(expected) = expected[mean].as_f64() {
                    match found.drop_weighted_mean(&KaplanMeier::fit(outcomes).unwrap()) {
                        Ok(found) => tally.close(found, expected, tolerance, &what),
                        // torchsurv returns 0 if survival never drops.
                        Err(error) => {
                            assert!(matches!(error, MetricError::NoSurvivalDrop { .. }) && expected <= 0.0, "{error}");
                        }
                    }
                }
            }
        }
    });
    tally.report("AUC^td, scikit-survival and torchsurv", 60);
}

#[test]
fn brier_scores_match_scikit_survival_and_torchsurv() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        for package in ["scikit-survival", "torchsurv"] {
            for record in case.records(subset, package) {
                let Some(expected) = record.value else { continue };
                let (values, integral, tolerance) = match record.function {
                    "brier_score" => (Some(expected), None, TOLERANCE),
                    "integrated_brier_score" => (None, Some(expected), TOLERANCE),
                    "BrierScore(IPCW self) + integral" => {
                        (Some(&expected["bs"]), Some(&expected["ibs"]), FLOAT32_TOLERANCE)
                    }
                    _ => continue,
                };
                let what = || format!("{} {} {package} {}", case.name, subset.name, record.censoring);
                let censoring = case.censoring(record.censoring, outcomes);
                let (curves, reading, tau) = (&subset.curves, Reading::Step, &subset.tau);
                if let Some(values) = values {
                    let found = brier_score(outcomes, curves, &censoring, reading, tau).unwrap();
                    for (found, expected) in found.values.iter().zip(numbers(values)) {
                        tally.close(*found, expected, tolerance, &what);
                    }
                }
                if let Some(expected) = integral.and_then(Value::as_f64)
                    && tau.len() > 1
                {
                    let found = integrated_brier_score(outcomes, curves, &censoring, reading, tau).unwrap();
                    tally.close(found, expected, tolerance, &what);
                }
            }
        }
    });
    tally.report("Brier and IBS, scikit-survival and torchsurv", 60);
}

#[test]
fn survival_and_censoring_curves_match_six_packages() {
    let mut tally = Tally::default();
    for_each_subset(&mut tally, |tally, case, subset, outcomes| {
        let kaplan_meier = KaplanMeier::fit(outcomes).unwrap();
        let events_first = CensoringCurve::fit(outcomes, CensoringTies::EventsFirst).unwrap();
        let flipped = CensoringCurve::fit(outcomes, CensoringTies::Flipped).unwrap();
        for package in ["scikit-survival", "lifelines", "SurvivalEVAL", "pycox", "R"] {
            for record in case.records(subset, package) {
                let survival = match record.function {
                    "kaplan_meier_estimator"
                    | "KaplanMeierFitter"
                    | "KaplanMeier"
                    | "utils.kaplan_meier"
                    | "survival::survfit(Surv(time,event)~1)" => kaplan_meier.survival(),
                    "kaplan_meier_estimator(reverse=True)"
                    | "KaplanMeier(reverse=True)"
                    | "prodlim(Hist(time,event)~1, reverse=TRUE)" => events_first.survival(),
                    "utils.kaplan_meier(durations, 1-events)" | "survival::survfit(Surv(time,1-event)~1)" => {
                        flipped.survival()
                    }
                    _ => continue,
                };
                let Some(expected) = record.value else { continue };
                let what = || format!("{} {} {package} {}", case.name, subset.name, record.function);
                let points = numbers(&expected["time"]).into_iter().zip(numbers(&expected["surv"]));
                // Some packages prepend the point (0, 1).
                let points: Vec<(f64, f64)> = points.filter(|(time, _)| *time > 0.0).collect();
                assert_eq!(points.len(), survival.len(), "{}", what());
                for ((time, expected), (found_time, found)) in
                    points.iter().zip(kaplan_meier.times().iter().zip(survival))
                {
                    assert!((time - found_time).abs() <= TOLERANCE, "{}", what());
                    tally.close(*found, *expected, TOLERANCE, &what);
                }
            }
        }
    });
    tally.report("Kaplan-Meier and censoring curves", 200);
}

/// The value of one metric of `derived` in one subset.
fn derived_metric(case: &Case, subset: &Subset, name: &str) -> Option<Result<f64, MetricError>> {
    let outcomes = subset.outcomes.as_ref().ok()?;
    let (metric, censoring) = name.split_once("|cens=").unwrap();
    let (curves, reading) = (&subset.curves, Reading::Step);
    let concordance = |ties| concordance_td(outcomes, curves, reading, ties).map(|found| found.value);
    Some(match metric {
        "ctd.pycox.antolini.post" => concordance(TiedPredictions::Strict),
        "ctd.survivaleval.step.Risk" if !case.name.starts_with("s16") => concordance(TiedPredictions::Half),
        "auc.sksurv" => auc_td(outcomes, curves, &case.censoring(censoring, outcomes), reading, &subset.tau)
            .and_then(|auc| auc.drop_weighted_mean(&KaplanMeier::fit(outcomes)?)),
        "ibs.sksurv" => {
            integrated_brier_score(outcomes, curves, &case.censoring(censoring, outcomes), reading, &subset.tau)
        }
        _ => return None,
    })
}

#[test]
fn gaps_and_equity_scaling_match_the_derived_values() {
    let mut tally = Tally::default();
    for case in cases() {
        let whole = case.subset("all");
        let levels: Vec<&Subset> = case.subsets.iter().filter(|subset| subset.name != "all").collect();
        let mut membership = vec![None; whole.rows.len()];
        for (level, subset) in levels.iter().enumerate() {
            for &row in &subset.rows {
                membership[row] = Some(GroupId(u32::try_from(level).unwrap()));
            }
        }
        let names = levels.iter().map(|subset| subset.name.clone()).collect();
        let groups = Groups::new("group", names, membership).unwrap();
        let Ok(outcomes) = &whole.outcomes else {
            tally.skip(case.name.clone());
            continue;
        };
        for (name, expected) in case.derived.as_object().unwrap() {
            let Some(Ok(overall)) = derived_metric(&case, whole, name) else { continue };
            let metric = |rows: &[usize]| {
                let subset = levels.iter().find(|subset| subset.rows == rows).unwrap();
                derived_metric(&case, subset, name).unwrap()
            };
            let found = PerGroup::compute(&groups, outcomes, None, metric).unwrap();
            let by_group = expected["by_group"].as_object().unwrap();
            let what = || format!("{} {name}", case.name);
            let n_expected = by_group.values().filter(|value| value.is_f64()).count();
            let (Some(expected_overall), true) = (expected["overall"].as_f64(), found.n_defined() == n_expected) else {
                tally.skip(format!("{}: another number of groups has a value", what()));
                continue;
            };
            tally.close(overall, expected_overall, TOLERANCE, &what);
            if n_expected < 2 {
                assert!(matches!(found.gap(), Err(MetricError::TooFewGroups { .. })), "{}", what());
                continue;
            }
            tally.close(found.gap().unwrap(), expected["gap_max_pairwise"].as_f64().unwrap(), TOLERANCE, &what);
            // These records divide the value itself, also for the Brier score.
            let scaled = found.equity_scaling(overall, Direction::HigherIsBetter).unwrap();
            tally.close(scaled, expected["es"].as_f64().unwrap(), TOLERANCE, &what);
        }
    }
    tally.report("gap and equity scaling", 20);
}

/// Outcomes and curves of one case of a `t_*.json` file.
fn sample(case: &Value) -> (Outcomes, SurvivalCurves) {
    let outcomes = Outcomes::new(numbers(&case["time"]), flags(&case["event"])).unwrap();
    (outcomes, SurvivalCurves::new(numbers(&case["grid"]), matrix(&case["surv"])).unwrap())
}

#[test]
fn group_differences_match_fairlearn() {
    let Some(file) = table("t_fairlearn_gaps.json") else { return };
    let mut tally = Tally::default();
    for case in file["cases"].as_array().unwrap() {
        let (outcomes, curves) = sample(case);
        let membership = rows(&case["group"]);
        let n_levels = membership.iter().max().unwrap() + 1;
        let levels = (0..n_levels).map(|level| level.to_string()).collect();
        let membership = membership.iter().map(|level| Some(GroupId(u32::try_from(*level).unwrap()))).collect();
        let groups = Groups::new("group", levels, membership).unwrap();
        let metric = |rows: &[usize]| {
            let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
            Ok(concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict)?.value)
        };
        let found = PerGroup::compute(&groups, &outcomes, None, metric).unwrap();
        let expected = &case["outputs"]["ctd_pycox_antolini"];
        let number = |key: &str| expected[key].as_f64().unwrap();
        let overall = metric(&(0..outcomes.n()).collect::<Vec<_>>()).unwrap();
        let what = || case["name"].to_string();
        tally.close(overall, number("overall"), TOLERANCE, &what);
        tally.close(found.gap().unwrap(), number("difference_between_groups"), TOLERANCE, &what);
        tally.close(found.gap_to_overall(overall).unwrap(), number("difference_to_overall"), TOLERANCE, &what);
        tally.close(found.ratio().unwrap(), number("ratio_between_groups"), TOLERANCE, &what);
        tally.close(found.worst(Direction::HigherIsBetter).unwrap().1, number("group_min"), TOLERANCE, &what);
        tally.close(found.worst(Direction::LowerIsBetter).unwrap().1, number("group_max"), TOLERANCE, &what);
        let scaled = found.equity_scaling(overall, Direction::HigherIsBetter).unwrap();
        tally.close(scaled, number("es_higher_better"), TOLERANCE, &what);
    }
    tally.report("group differences, fairlearn", 20);
}

#[test]
fn bootstrap_replicates_and_intervals_match_numpy() {
    let Some(file) = table("t_bootstrap.json") else { return };
    let mut tally = Tally::default();
    for case in file["cases"].as_array().unwrap() {
        let (outcomes, curves) = sample(case);
        let expected = &case["outputs"]["ctd_antolini"];
        let prepared = ConcordanceTd::prepare(&outcomes, &curves, Reading::Step).unwrap();
        let what = || case["name"].to_string();
        let mut values = Vec::new();
        for (drawn, expected) in case["indices"].as_array().unwrap().iter().zip(numbers(&expected["replicates"])) {
            let mut weights = vec![0; outcomes.n()];
            for row in rows(drawn) {
                weights[row] += 1;
            }
            let found = prepared.weighted(&weights, TiedPredictions::Strict).unwrap().value;
            tally.close(found, expected, TOLERANCE, &what);
            values.push(found);
        }
        let (lower, upper) = percentile_interval(&values, 0.95).unwrap().unwrap();
        let interval = numbers(&expected["percentile_95"]);
        tally.close(lower, interval[0], TOLERANCE, &what);
        tally.close(upper, interval[1], TOLERANCE, &what);
    }
    tally.report("bootstrap replicates and percentile intervals", 500);
}
