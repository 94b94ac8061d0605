//! Differences: of two models on the same people, and of one model in two cohorts of other people.

use fairtte_metrics::evaluation::{Difference, ScoredCohort, evaluate_cohorts};
use fairtte_metrics::{EvaluationSettings, compare_models};
use rayon::prelude::*;

use crate::design::{Cohort, Design, Mechanism};
use crate::table::{Part, percent};

const METRICS: [&str; 5] = ["c-td", "c-td-ipcw", "auc-td", "ibs", "observed-expected"];
const COLUMNS: &str =
    "difference of | people | censored | metric | equal: rejected | true difference | contained | rejected";
/// Errors of the models that differ.
const NOISE: [f64; 2] = [0.6, 1.0];
/// Errors of the models that do not.
const SAME: f64 = 0.8;

pub fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for censored in [0.3, 0.7] {
        for second in [None, Some(500), Some(100)] {
            let name = format!(
                "comparisons-{}-{:.0}",
                second.map_or("models".to_owned(), |n| n.to_string()),
                100.0 * censored
            );
            parts.push(Part::new(name, COLUMNS, 400, move |cohorts| rows(second, censored, cohorts)));
        }
    }
    parts
}

/// Two designs with the same people and times, whose models have these errors.
fn designs(censored: f64, noise: [f64; 2]) -> [Design; 2] {
    let first = Design::new(&[0.5, 0.5], &[noise[0]; 2], Mechanism::Random, censored);
    let second = Design { noise: vec![noise[1]; 2], ..first.clone() };
    [first, second]
}

/// Differences by metric: of two models on 500 people without `second`, otherwise of 500 and of so many others.
fn differences(
    [first, second]: &[Design; 2],
    n: [usize; 2],
    other_people: bool,
    seed: u64,
    curve: &fairtte_metrics::CensoringCurve,
    settings: &EvaluationSettings,
) -> Option<Vec<Difference>> {
    let cohort = first.draw(n[0], seed);
    if !other_people {
        let others = second.predictions(&cohort.generated, seed, "honesty/second");
        let models = [("one", &cohort.curves), ("other", &others)];
        let found = compare_models(&models, &cohort.subjects(), &cohort.outcomes, curve, &[], settings).ok()?;
        return Some(found.pairs.into_iter().map(|pair| pair.overall).collect());
    }
    let other = second.draw(n[1], 500_000 + seed);
    let (subjects, other_subjects) = (cohort.subjects(), other.subjects());
    let scored = |of: &'_ Cohort| (of.outcomes.clone(), of.curves.clone());
    let ((outcomes, curves), (other_outcomes, other_curves)) = (scored(&cohort), scored(&other));
    let internal =
        ScoredCohort { subjects: &subjects, outcomes: &outcomes, curves: &curves, censoring: curve, groups: &[] };
    let external = ScoredCohort {
        subjects: &other_subjects,
        outcomes: &other_outcomes,
        curves: &other_curves,
        censoring: curve,
        groups: &[],
    };
    let found = evaluate_cohorts(&internal, &external, settings).ok()?;
    Some(found.metrics.into_iter().map(|metric| metric.overall.difference).collect())
}

fn rows(second: Option<usize>, censored: f64, n_cohorts: u64) -> Vec<String> {
    let (same, unequal) = (designs(censored, [SAME; 2]), designs(censored, NOISE));
    let curve = same[0].training();
    let (other_people, n) = (second.is_some(), [500, second.unwrap_or(500)]);
    let values = unequal[0].evaluation(&METRICS);
    let large = [&unequal[0], &unequal[1]]
        .map(|design| design.draw(60_000, 7).report(&curve, &values).unwrap())
        .map(|report| report.metrics.iter().map(|metric| metric.overall.value).collect::<Vec<_>>());
    // The external minus the internal value, and the first minus the second model.
    let sign = if other_people { -1.0 } else { 1.0 };
    let truth: Vec<f64> = large[0].iter().zip(&large[1]).map(|(a, b)| sign * (a.unwrap() - b.unwrap())).collect();
    let settings = EvaluationSettings { replicates: 300, ..values };
    let one = |designs: &[Design; 2], seed: u64| {
        let found = differences(designs, n, other_people, 1_000 + seed, &curve, &settings)?;
        Some(found.iter().map(|of| of.lower.zip(of.upper)).collect::<Vec<_>>())
    };
    let of = |designs: &[Design; 2]| -> Vec<Vec<Option<(f64, f64)>>> {
        (0..n_cohorts).into_par_iter().filter_map(|seed| one(designs, seed)).collect()
    };
    let (equal, different) = (of(&same), of(&unequal));
    let share = |cohorts: &[Vec<Option<(f64, f64)>>], place: usize, contains: f64, wanted: bool| {
        let defined: Vec<bool> = cohorts
            .iter()
            .filter_map(|of| of[place])
            .map(|(l, u)| (l <= contains && contains <= u) == wanted)
            .collect();
        percent(defined.iter().filter(|is| **is).count(), defined.len())
    };
    let what = if other_people { "two cohorts" } else { "two models" };
    let people = if other_people { format!("{} and {}", n[0], n[1]) } else { n[0].to_string() };
    let row = |place: usize| {
        format!(
            "| {what} | {people} | {:.0} % | {} | {} | {:+.4} | {} | {} |",
            100.0 * censored,
            METRICS[place],
            share(&equal, place, 0.0, false),
            truth[place],
            share(&different, place, truth[place], true),
            share(&different, place, 0.0, false)
        )
    };
    (0..METRICS.len()).map(row).collect()
}
