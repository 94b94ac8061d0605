//! Permutation tests of the five sources of bias, and the regression and rank correlation of the biasing experiment, where nothing is to
//! be found.

use fairtte_classical::biasing::{Biasing, Cell, CellResult, HalfLosses, Measure, analyse};
use fairtte_metrics::bias::{BiasSettings, BiasSource, bias_sources};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{GroupId, Groups, Outcomes, SubjectId};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

use crate::design::normal;
use crate::table::{Part, percent};

const SOURCES: &str = "people | groups | representation | information about the time | about censoring | event times | \
                       censored share";
const TRENDS: &str = "tables | slope of the means | slope over tables | rank correlation of the means";

pub fn parts() -> Vec<Part> {
    let sizes = [(200, 0.5, "50/50"), (200, 0.1, "90/10"), (1_000, 0.1, "90/10")];
    let sources = sizes.into_iter().map(|(n, share, groups)| {
        let name = format!("sources-{n}-{}", groups.replace('/', "-"));
        Part::new(name, SOURCES, 400, move |cohorts| vec![of_sources(n, share, groups, cohorts)])
    });
    let trends = [10, 33]
        .into_iter()
        .map(|tables| Part::new(format!("trends-{tables}"), TRENDS, 2_000, move |runs| vec![of_trends(tables, runs)]));
    sources.chain(trends).collect()
}

/// Eight numbers per person, times and events that have nothing to do with the group or with each other.
fn of_sources(n: usize, share: f64, groups: &str, n_cohorts: u64) -> String {
    let one = |seed: u64| {
        let mut rng = stream(seed, "honesty/sources", &[n as u64]);
        let representation = Array2::from_shape_fn((n, 8), |_| normal(&mut rng));
        let time = (0..n).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
        let event = (0..n).map(|_| rng.random::<f64>() < 0.6).collect();
        let membership = (0..n).map(|row| Some(GroupId(u32::from((row as f64) < share * n as f64)))).collect();
        let groups = Groups::new("group", vec!["0".to_owned(), "1".to_owned()], membership).unwrap();
        let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("{row:06}"))).collect();
        let settings = BiasSettings { n_permutations: 199, n_replicates: 0, seed, ..BiasSettings::default() };
        let outcomes = Outcomes::new(time, event).unwrap();
        let found = bias_sources(&subjects, &representation, &outcomes, &groups, &settings).unwrap();
        BiasSource::ALL.map(|source| Some(found.source(source).estimate.as_ref().ok()?.permutation.p_value))
    };
    let found: Vec<[Option<f64>; 5]> = (0..n_cohorts).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let defined: Vec<f64> = found.iter().filter_map(|cohort| cohort[kind]).collect();
        percent(defined.iter().filter(|p| **p <= 0.05 + 1e-12).count(), defined.len())
    };
    format!("| {n} | {groups} | {} |", (0..5).map(cell).collect::<Vec<_>>().join(" | "))
}

/// Losses of both halves from one distribution, which differs between tables but not between shares.
fn of_trends(n_tables: usize, n_runs: u64) -> String {
    let one = |seed: u64| {
        let mut rng = stream(seed, "honesty/trends", &[n_tables as u64]);
        let mut results = Vec::new();
        for table in 0..n_tables {
            let deviation = 0.02 * (1.0 + normal(&mut rng).abs());
            for cell in (0..100_u32).map(|k| (f64::from(k / 10) / 10.0, (k % 10) as usize)) {
                let mut loss = || Some(0.6 + deviation * normal(&mut rng));
                let (biased, unbiased) = (loss(), loss());
                results.push(CellResult {
                    table: table.to_string(),
                    cell: Cell { method: Biasing::Permutation, share: cell.0, repeat: cell.1 },
                    n_half: 100,
                    n_drawn: 50,
                    losses: vec![HalfLosses { measure: Measure::HarrellC, biased, unbiased, reason: None }],
                });
            }
        }
        let found = analyse(&results).unwrap();
        let [means, tables] = [found.measures[0].of_means.unwrap(), found.measures[0].of_tables.unwrap()];
        [Some(means.slope_p_holm), Some(tables.slope_p_holm), means.rho_p_holm]
    };
    let found: Vec<[Option<f64>; 3]> = (0..n_runs).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let defined: Vec<f64> = found.iter().filter_map(|run| run[kind]).collect();
        percent(defined.iter().filter(|p| **p <= 0.05).count(), defined.len())
    };
    format!("| {n_tables} | {} |", (0..3).map(cell).collect::<Vec<_>>().join(" | "))
}
