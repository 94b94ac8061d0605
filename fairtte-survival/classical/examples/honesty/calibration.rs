//! How often tests of calibration reject at 5 % where the model predicts the true curves.

use fairtte_classical::generator::Arm;
use fairtte_metrics::Reading;
use fairtte_metrics::calibration::{
    DCalibrationConvention, OneCalibrationSettings, OwnTimeReading, d_calibration, one_calibration,
};
use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, percent};

const COLUMNS: &str = "n | censoring | censored | D-calibration | 1-calibration";

pub fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for n in [500, 2_000] {
        for mechanism in Mechanism::ALL {
            let name = format!("calibration-{n}-{}", mechanism.name().replace([' ', ','], ""));
            parts.push(Part::new(name, COLUMNS, 500, move |cohorts| {
                [0.3, 0.7].iter().map(|censored| row(n, mechanism, *censored, cohorts)).collect()
            }));
        }
    }
    parts
}

fn row(n: usize, mechanism: Mechanism, censored: f64, n_cohorts: u64) -> String {
    let design = Design::new(&[0.5, 0.5], &[0.0, 0.0], mechanism, censored);
    let last = design.times[19];
    // Fine enough that reading between the times does not matter, to where survival is 0.
    let grid: Vec<f64> = (0..=300).map(|k| last / 50.0 * (1.04_f64.powi(k) - 1.0)).collect();
    let one = |seed: u64| {
        let cohort = design.draw(n, 1_000 + seed);
        let curves = cohort.generated.survival(Arm::Observed, &grid).unwrap();
        let reading = OwnTimeReading::OneBefore(Reading::Linear);
        let d = d_calibration(&cohort.outcomes, &curves, reading, 10, DCalibrationConvention::default()).unwrap();
        let settings = OneCalibrationSettings::default();
        let one = one_calibration(&cohort.outcomes, &curves, design.times[10], Reading::Linear, settings);
        (d.p_value <= 0.05, one.ok().and_then(|found| found.p_value.ok()).map(|p| p <= 0.05))
    };
    let found: Vec<_> = (0..n_cohorts).into_par_iter().map(one).collect();
    let of_one: Vec<bool> = found.iter().filter_map(|found| found.1).collect();
    format!(
        "| {n} | {} | {:.0} % | {} | {} |",
        mechanism.name(),
        100.0 * censored,
        percent(found.iter().filter(|found| found.0).count(), found.len()),
        percent(of_one.iter().filter(|rejects| **rejects).count(), of_one.len())
    )
}
