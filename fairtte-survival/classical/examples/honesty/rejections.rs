//! How often tests of a gap, of the difference of two groups and of two models reject at 5 % where nothing is to be found.

use fairtte_metrics::{EvaluationSettings, compare_models};
use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, percent};

const METRICS: [&str; 4] = ["c-td", "c-td-ipcw", "auc-td", "ibs"];
const COLUMNS: &str = "n | groups | what differs | metric | permutation test | interval of the difference | two models";

/// What is unequal between groups whose models are equally good.
#[derive(Clone, Copy)]
enum Unequal {
    Nothing,
    Censoring,
    Hazard,
}

pub fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for (n, shares, groups) in [(500, [0.5, 0.5], "50/50"), (500, [0.9, 0.1], "90/10")] {
        for (unequal, what) in
            [(Unequal::Nothing, "nothing"), (Unequal::Censoring, "censoring"), (Unequal::Hazard, "hazard, twice")]
        {
            let name = format!("tests-{n}-{}-{what}", groups.replace('/', "-")).replace([' ', ','], "");
            let rows = move |cohorts| rows(n, shares, unequal, &format!("{n} | {groups} | {what}"), cohorts);
            parts.push(Part::new(name, COLUMNS, 400, rows));
        }
    }
    parts
}

fn rows(n: usize, shares: [f64; 2], unequal: Unequal, what: &str, n_cohorts: u64) -> Vec<String> {
    let mechanism = if matches!(unequal, Unequal::Censoring) { Mechanism::Group(8.0) } else { Mechanism::Random };
    let mut design = Design::new(&shares, &[0.8, 0.8], mechanism, 0.4);
    if matches!(unequal, Unequal::Hazard) {
        design.settings.subgroups.hazards = vec![0.0, 2.0_f64.ln()];
    }
    let curve = design.training();
    let values = design.evaluation(&METRICS);
    let settings = EvaluationSettings { replicates: 200, permutations: 199, ..values.clone() };
    let of_models = EvaluationSettings { replicates: 200, ..values };
    let one = |seed: u64| {
        let cohort = design.draw(n, 1_000 + seed);
        let report = cohort.report(&curve, &settings)?;
        let second = design.predictions(&cohort.generated, 1_000 + seed, "honesty/second");
        let models = [("one", &cohort.curves), ("other", &second)];
        let compared = compare_models(&models, &cohort.subjects(), &cohort.outcomes, &curve, &[], &of_models).ok()?;
        let below = |p: f64| p <= 0.05 + 1e-12;
        let of_metric = |place: usize| {
            let attribute = &report.metrics[place].attributes[0];
            let permutation = attribute.gap_by_chance.as_ref().map(|found| below(found.p_value));
            let pair = &attribute.differences.first()?.difference;
            let excludes = pair.lower.zip(pair.upper).map(|(lower, upper)| lower > 0.0 || upper < 0.0);
            let models = compared.pairs.get(place).and_then(|pair| pair.overall.p_value).map(below);
            Some([permutation, excludes, models])
        };
        Some((0..METRICS.len()).map(|place| of_metric(place).unwrap_or([None; 3])).collect::<Vec<_>>())
    };
    let found: Vec<_> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let row = |place: usize| {
        let share = |kind: usize| {
            let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[place][kind]).collect();
            percent(defined.iter().filter(|rejects| **rejects).count(), defined.len())
        };
        format!("| {what} | {} | {} | {} | {} |", METRICS[place], share(0), share(1), share(2))
    };
    (0..METRICS.len()).map(row).collect()
}
