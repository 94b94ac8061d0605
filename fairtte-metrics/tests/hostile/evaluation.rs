//! Whole evaluations, groups and what compares them, and the choice of a run.

use fairtte_metrics::evaluation::{RiskOfCurve, Stop, built_in_metrics};
use fairtte_metrics::fairness::{Comparison, EquityScaling, PerGroup};
use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::resampling::{IntervalMethod, Resample, Stratify};
use fairtte_metrics::selection::{Measured, Run, RunTable, SelectionCriterion, WorstGroup, select_run};
use fairtte_metrics::{Direction, EvaluationSettings, Groups, MetricError, compare_models, evaluate};

use super::check::{assert_within, check};
use super::input::{Cohort, Input};

const DIRECTIONS: [Direction; 2] = [Direction::HigherIsBetter, Direction::LowerIsBetter];

pub fn try_all(input: &mut Input<'_>) {
    let settings = settings(input);
    let Some(cohort) = Cohort::new(input) else { return };
    let Cohort { outcomes, curves, censoring, times, .. } = &cohort;
    let n = input.length(outcomes.n());
    let Some(groups) = [input.groups("a", n), input.groups("b", n)].into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let subjects = input.subjects(n);
    let settings = EvaluationSettings { times: input.flag().then(|| times.clone()), ..settings };
    let report = check("evaluate", || evaluate(&subjects, outcomes, curves, censoring, &groups, &settings));
    if let Ok(report) = report {
        for metric in &report.metrics {
            let name = metric.name.split(['@', ':']).next().unwrap_or_default();
            let (lowest, highest) = match name {
                "calibration-slope" | "explained-variation" | "rcll" | "snl" => (f64::MIN, f64::MAX),
                "observed-expected" | "calibration-alpha" | "one-calibration" | "rsbs" | "risl" | "isll" | "nbll" => {
                    (0.0, f64::MAX)
                }
                "net-benefit" => (f64::MIN, 1.0),
                _ => (0.0, 1.0),
            };
            let of_groups = metric.attributes.iter().flat_map(|attribute| &attribute.groups);
            for estimate in of_groups.map(|group| &group.estimate).chain([&metric.overall]) {
                if let Some(value) = estimate.value {
                    assert_within(&metric.name, value, lowest, highest);
                }
                assert_eq!(estimate.value.is_none(), estimate.undefined.is_some(), "a value or its reason");
            }
        }
    }
    let Some(other) = input.curves(outcomes.n()) else { return };
    let models = [("first", curves), ("second", &other)];
    let _ = check("compare_models", || compare_models(&models, &subjects, outcomes, censoring, &groups, &settings));
}

/// Every built-in metric in turn, or a name that is refused.
fn hostile_metrics(input: &mut Input<'_>) -> Vec<String> {
    let names: Vec<String> = built_in_metrics().map(|metric| metric.name().to_owned()).collect();
    let first = names[input.byte() as usize % names.len()].clone();
    let at = |name: &str, at: &str| format!("{name}@{at}");
    let second = names[input.byte() as usize % names.len()].clone();
    let wrong = input.pick(&["ibs@3", "nothing", "brier@", "brier@-1", "brier@nan", ""]);
    match input.byte() % 8 {
        0 => vec![first, wrong.to_owned()],
        1 => Vec::new(),
        2 => vec![at(&first, "2"), second],
        _ => vec![first, second],
    }
}

fn settings(input: &mut Input<'_>) -> EvaluationSettings {
    EvaluationSettings {
        sensitivity: None,
        stop: Stop::default(),
        permutations: input.pick(&[0, 1, 3, usize::MAX]),
        over_time: input.pick(&[0, 1, 2, 5, usize::MAX]),
        replicates: input.pick(&[0, 1, 2, 3, 17, 2, 3, usize::MAX]),
        level: input.level(),
        seed: u64::from(input.byte()),
        resample: input.pick(&[Resample::Subject, Resample::Sample]),
        interval: input.pick(&[IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca]),
        stratify: input.pick(&[
            Stratify::None,
            Stratify::Event,
            Stratify::Attribute("a".to_owned()),
            Stratify::Attribute("z".to_owned()),
        ]),
        reading: input.reading(),
        n_times: input.pick(&[2, 3, 5, 7, 0, 1, usize::MAX]),
        lower_quantile: input.pick(&[0.0, 0.1, 0.5, 1.0, f64::NAN]),
        upper_quantile: input.pick(&[1.0, 0.9, 0.6, 0.0, f64::NAN]),
        metrics: hostile_metrics(input),
        horizon: input.pick(&[None, Some(1.0), Some(0.0), Some(f64::NAN), Some(f64::INFINITY)]),
        risk: input.pick(&[
            RiskOfCurve::NegativeRestrictedMean,
            RiskOfCurve::ExpectedMortality,
            RiskOfCurve::AtHorizon,
        ]),
        min_events: input.pick(&[0, 1, 10, usize::MAX]),
        reference: if input.byte().is_multiple_of(8) { [("a".to_owned(), "0".to_owned())].into() } else { [].into() },
        thresholds: input.pick(&[vec![], vec![], vec![0.3], vec![0.2, 0.2], vec![f64::NAN], vec![1.5]]),
        times: None,
    }
}

/// Groups with hostile values, and runs with hostile utilities.
pub fn try_groups(input: &mut Input<'_>) {
    input.may_be_wild();
    let n = input.n();
    let overall = input.any_number();
    let values = (0..8).map(|_| input.any_number()).collect::<Vec<f64>>();
    runs(input);
    for direction in DIRECTIONS {
        for comparison in Comparison::ALL {
            let compared = input.below(5);
            check("Comparison::of", || comparison.of(&values[..compared], overall, direction));
        }
    }
    let (Some(outcomes), m) = (input.outcomes(n), input.length(n)) else { return };
    let (subjects, groups) = (input.subjects(m), [input.groups("a", n), input.groups("b", m), input.groups("c", n)]);
    let groups: Vec<&Groups> = groups.iter().flatten().collect();
    let _ = check("intersection", || Groups::intersection(&groups));
    let _ = check("pairwise_intersections", || Groups::pairwise_intersections(&groups));
    let Some(curves) = input.curves(n) else { return };
    for groups in groups {
        check("sizes", || groups.sizes());
        // A value per group, some of them undefined.
        let metric = |rows: &[usize]| {
            let value = values[rows.len() % values.len()];
            if rows.len() % 5 == 4 { Err(MetricError::NoEvents { n: rows.len() }) } else { Ok(value) }
        };
        let Ok(per_group) = PerGroup::compute(groups, &outcomes, Some(&subjects), metric) else { continue };
        for direction in DIRECTIONS {
            for comparison in Comparison::ALL {
                let _ = check("compare", || per_group.compare(comparison, overall, direction));
            }
            let _ = check("worst", || per_group.worst(direction).map(|(group, value)| (group.level.clone(), value)));
            let _ = check("equity_scaling", || per_group.equity_scaling(overall, direction));
            let form = EquityScaling::FairSeg;
            let _ = check("equity_scaled", || per_group.equity_scaled(form, overall, direction));
        }
        let ratios = [check("ratio", || per_group.ratio()), check("ratio", || per_group.ratio_to_overall(overall))];
        for ratio in ratios.into_iter().flatten() {
            assert_within("ratio", ratio, 0.0, 1.0);
        }
        let _ = check("gap", || (per_group.gap(), per_group.gap_to_overall(overall)));
        check("counts", || (per_group.n_defined(), per_group.n_undefined(), per_group.smaller_than(3).count()));
        check("smallest", || per_group.smallest().map(|group| group.n));
        let pairs = PerGroup::compute(groups, &outcomes, None, |rows| {
            let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
            concordance_td(&outcomes, &curves, fairtte_metrics::Reading::Step, TiedPredictions::Half)
        });
        if let Ok(pairs) = pairs {
            let _ = check("with_comparable", || {
                pairs.clone().with_comparable(|c| c.n_comparable).map(|c| Ok(c.value)).gap()
            });
        }
    }
}

fn runs(input: &mut Input<'_>) {
    let groups: Vec<String> = (0..input.below(4)).map(|group| group.to_string()).collect();
    let measured = |input: &mut Input<'_>| match input.below(8) {
        0 => Measured::Undefined("no".to_owned()),
        _ => Measured::Value(input.number()),
    };
    let run = |input: &mut Input<'_>, number: usize| Run {
        run: (if number == 9 { 0 } else { number }).to_string(),
        utility: measured(input),
        group_utilities: (0..input.length(groups.len())).map(|_| measured(input)).collect(),
        gap: match measured(input) {
            Measured::Value(gap) if input.flag() => Measured::Value(gap.abs()),
            gap => gap,
        },
    };
    let runs = (0..input.below(11)).map(|number| run(input, number)).collect();
    let table = RunTable { direction: input.pick(&DIRECTIONS), groups, runs };
    for criterion in [
        SelectionCriterion::BestUtility,
        SelectionCriterion::BestFairness {
            base_utility: input.any_number(),
            tolerated_loss: input.share(),
            no_skill: input.flag().then(|| input.any_number()),
        },
        SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfEachRun },
        SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfAllRuns },
        SelectionCriterion::DistanceToOptimum,
    ] {
        let _ = check("select_run", || select_run(&table, criterion));
    }
}
