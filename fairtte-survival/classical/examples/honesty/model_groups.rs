//! What compares groups, in one model minus another on the same people: how often intervals contain the truth.

use fairtte_metrics::evaluation::{AttributeDifferences, Difference};
use fairtte_metrics::{CensoringCurve, EvaluationSettings, compare_models};
use rayon::prelude::*;

use crate::design::{Cohort, Design, Mechanism};
use crate::table::{Number, Part, covered, shares};

const METRICS: [&str; 3] = ["c-td", "auc-td", "ibs"];
const KINDS: usize = 8;
const COLUMNS: &str = "censored | groups | second model | metric | everybody | gap | worst | gap to overall | ratio | ratio to overall | ES | ES FairSeg";
/// Shares of the groups, errors of the two models in them, names of groups and case.
type Case = (&'static [f64], [&'static [f64]; 2], &'static str, &'static str);

const CASES: [Case; 5] = [
    (&[0.5, 0.5], [&[0.8, 0.8], &[0.8, 0.8]], "50/50", "no gap in either"),
    (&[0.5, 0.5], [&[0.6, 1.0], &[0.6, 1.0]], "50/50", "the same gap"),
    (&[0.5, 0.5], [&[0.6, 1.0], &[0.8, 0.8]], "50/50", "without the gap"),
    (&[0.1, 0.9], [&[1.0, 0.6], &[0.7, 0.7]], "10/90", "without the gap"),
    (&[0.25; 4], [&[0.8; 4], &[0.8; 4]], "4 x 25", "no gap in either"),
];

pub fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for censored in [0.3_f64, 0.7] {
        for (place, case) in CASES.iter().enumerate() {
            let name = format!("model-groups-{:.0}-{place}", 100.0 * censored);
            parts.push(Part::new(name, COLUMNS, 200, move |cohorts| rows(case, censored, cohorts)));
        }
    }
    parts
}

/// Two models on the same people, by metric.
fn compared(
    [_, second]: &[Design; 2],
    cohort: &Cohort,
    seed: u64,
    (curve, settings): (&CensoringCurve, &EvaluationSettings),
) -> Option<Vec<[Number; KINDS]>> {
    let others = second.predictions(&cohort.generated, seed, "honesty/second");
    let models = [("one", &cohort.curves), ("other", &others)];
    let groups = std::slice::from_ref(&cohort.groups);
    let found = compare_models(&models, &cohort.subjects(), &cohort.outcomes, curve, groups, settings).ok()?;
    Some(found.pairs.iter().map(|pair| numbers(&pair.overall, &pair.attributes[0])).collect())
}

fn numbers(overall: &Difference, of: &AttributeDifferences) -> [Number; KINDS] {
    let number = |found: &Difference| (found.value, found.lower.zip(found.upper));
    [
        number(overall),
        number(&of.gap),
        number(&of.worst),
        number(&of.gap_to_overall),
        number(&of.ratio),
        number(&of.ratio_to_overall),
        number(&of.equity_scaling),
        number(&of.equity_scaling_fair_seg),
    ]
}

fn rows(
    (group_shares, noise, groups, what): &(&[f64], [&[f64]; 2], &str, &str),
    censored: f64,
    n_cohorts: u64,
) -> Vec<String> {
    let first = Design::new(group_shares, noise[0], Mechanism::Random, censored);
    let designs = [first.clone(), Design { noise: noise[1].to_vec(), ..first }];
    let curve = designs[0].training();
    let values = designs[0].evaluation(&METRICS);
    // Models of equal errors differ by nothing.
    let truth: Vec<[Option<f64>; KINDS]> = if noise[0] == noise[1] {
        vec![[Some(0.0); KINDS]; METRICS.len()]
    } else {
        let large = compared(&designs, &designs[0].draw(60_000, 7), 7, (&curve, &values)).unwrap();
        large.iter().map(|numbers| numbers.map(|number| number.0)).collect()
    };
    let settings = EvaluationSettings { replicates: 300, ..values };
    let one = |seed: u64| compared(&designs, &designs[0].draw(500, 1_000 + seed), 1_000 + seed, (&curve, &settings));
    let found: Vec<Vec<[Number; KINDS]>> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let row = |place: usize| {
        let covered = found.iter().map(|cohort| covered(&cohort[place], &truth[place]));
        format!("| {:.0} % | {groups} | {what} | {} | {} |", 100.0 * censored, METRICS[place], shares(covered))
    };
    (0..METRICS.len()).map(row).collect()
}
