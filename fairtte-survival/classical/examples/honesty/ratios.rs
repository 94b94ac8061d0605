//! Do intervals of ratios of subdistribution hazards (Fine & Gray) and of odds ratios (logistic hazards) contain the truth?

use fairtte_classical::{
    CutPointRule, Estimate, FineGrayModel, FineGraySettings, HazardPenalty, LogisticHazard, LogisticHazardSettings,
};
use fairtte_metrics::Outcomes;
use fairtte_metrics::competing::CompetingOutcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

use crate::design::normal;
use crate::estimators::{EFFECTS, contains};
use crate::table::Part;

const COLUMNS: &str = "people | censoring | Fine & Gray, subdistribution hazard ratios | logistic hazard, odds ratios";
/// Probability that the event of a person with covariates of 0 is of the first cause.
const SHARE: f64 = 0.5;
/// Intervals of the logistic hazards, and their log odds for covariates of 0.
const INTERVALS: u32 = 6;
const LOG_ODDS: f64 = -1.5;

/// Whether the intervals of the three ratios of one cohort contain the truth.
type Covered = [Option<bool>; 3];

pub fn parts() -> Vec<Part> {
    let part = |(n, rate, what): (usize, f64, &'static str)| {
        let name = format!("ratios-{n}-{what}");
        Part::new(name, COLUMNS, 2_000, move |cohorts| vec![row(n, (rate, what), cohorts)])
    };
    [(100, 0.3, "little"), (100, 1.5, "much"), (500, 0.3, "little"), (500, 1.5, "much")].map(part).into()
}

/// Three normal covariates of `n` people.
fn covariates(n: usize, seed: u64) -> Array2<f64> {
    let cells = |row: usize| {
        let mut rng = stream(seed, "honesty/ratios/x", &[row as u64]);
        std::array::from_fn(|_| normal(&mut rng))
    };
    let rows: Vec<[f64; 3]> = (0..n).map(cells).collect();
    Array2::from_shape_fn((n, 3), |(row, place)| rows[row][place])
}

fn effect(x: &Array2<f64>, row: usize) -> f64 {
    x.row(row).iter().zip(EFFECTS).map(|(x, b)| x * b).sum()
}

/// Incidences 1 - (1 - p (1 - exp(-t)))^exp(x b) of the first cause (Fine & Gray 1999, section 5), times of the other with rate 1, and
/// censoring at this rate.
fn of_causes(x: &Array2<f64>, rate: f64, seed: u64) -> CompetingOutcomes {
    let one = |row: usize| {
        let mut rng = stream(seed, "honesty/ratios/causes", &[row as u64]);
        let mut uniform = || rng.random::<f64>();
        let ratio = effect(x, row).exp();
        let of_first = 1.0 - (1.0 - SHARE).powf(ratio);
        let is_first = uniform() < of_first;
        let time = if is_first {
            -(1.0 - (1.0 - (1.0 - uniform() * of_first).powf(1.0 / ratio)) / SHARE).ln()
        } else {
            -(1.0 - uniform()).ln()
        };
        let end = -(1.0 - uniform()).ln() / rate;
        (time.min(end), if end < time { 0 } else { 2 - u32::from(is_first) })
    };
    let (time, cause) = (0..x.nrows()).map(one).unzip();
    CompetingOutcomes::new(time, cause).unwrap()
}

/// Hazards of intervals with the logit -1.5 + x b; who is censored is so at the end of an interval, with a tenth of the rate as its
/// probability.
fn of_intervals(x: &Array2<f64>, rate: f64, seed: u64) -> Outcomes {
    let one = |row: usize| {
        let mut rng = stream(seed, "honesty/ratios/intervals", &[row as u64]);
        let hazard = 1.0 / (1.0 + (-LOG_ODDS - effect(x, row)).exp());
        for interval in 1..INTERVALS {
            if rng.random::<f64>() < hazard {
                return (f64::from(interval) - 0.5, true);
            }
            if rng.random::<f64>() < rate / 10.0 {
                return (f64::from(interval), false);
            }
        }
        let is_event = rng.random::<f64>() < hazard;
        (f64::from(INTERVALS) - if is_event { 0.5 } else { 0.0 }, is_event)
    };
    let (time, event) = (0..x.nrows()).map(one).unzip();
    Outcomes::new(time, event).unwrap()
}

fn covered(estimates: Option<Vec<Estimate>>) -> Covered {
    let Some(estimates) = estimates else { return [None; 3] };
    std::array::from_fn(|place| contains(&estimates[place], EFFECTS[place]))
}

fn row(n: usize, (rate, what): (f64, &str), n_cohorts: u64) -> String {
    let of_fine_gray = |model: FineGrayModel| -> Vec<Estimate> {
        let terms = model.coefficients.iter();
        terms.map(|term| Estimate { value: term.value, standard_error: Some(term.standard_error) }).collect()
    };
    let logistic = LogisticHazardSettings {
        cut_points: CutPointRule::Given((1..=INTERVALS).map(f64::from).collect()),
        penalty: HazardPenalty::None,
        ..LogisticHazardSettings::default()
    };
    let one = |seed: u64| -> [Covered; 2] {
        let x = covariates(n, 1_000 + seed);
        let fine_gray = FineGraySettings::default().fit(&x, &of_causes(&x, rate, 1_000 + seed));
        let hazards = LogisticHazard::fit(&x, &of_intervals(&x, rate, 1_000 + seed), &logistic);
        [covered(fine_gray.ok().map(of_fine_gray)), covered(hazards.ok().map(|model| model.coefficients))]
    };
    let found: Vec<[Covered; 2]> = (0..n_cohorts).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let of_effect = |place: usize| {
            let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[kind][place]).collect();
            100.0 * defined.iter().filter(|covered| **covered).count() as f64 / defined.len() as f64
        };
        (0..EFFECTS.len()).map(|place| format!("{:.1}", of_effect(place))).collect::<Vec<_>>().join(" / ")
    };
    let x = covariates(20_000, 1);
    let censored = of_causes(&x, rate, 1).cause().iter().filter(|cause| **cause == 0).count();
    let without = 20_000 - of_intervals(&x, rate, 1).n_events();
    let shares = [censored, without].map(|of| format!("{:.0} %", of as f64 / 200.0));
    format!("| {n} | {what}: {} | {} | {} |", shares.join(", "), cell(0), cell(1))
}
