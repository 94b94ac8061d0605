//! Observed risks at a time: Kaplan-Meier's, and Aalen and Johansen's of one of two causes, with the interval that a report prints.

use fairtte_classical::generator::Arm;
use fairtte_metrics::competing::{AalenJohansen, IncidenceVariance};
use fairtte_metrics::evaluation::HorizonRisk;
use rayon::prelude::*;

use crate::causes;
use crate::design::{Design, Mechanism};
use crate::table::{Part, percent};

const COLUMNS: &str = "people | censored | observed risk, one kind of event | of one of two causes | \
                       of one of two causes, interval of the curve";

pub fn parts() -> Vec<Part> {
    let part = |(n, censored): (usize, f64)| {
        let name = format!("observed-{n}-{:.0}", 100.0 * censored);
        Part::new(name, COLUMNS, 2_000, move |cohorts| vec![row(n, censored, cohorts)])
    };
    let sizes = [50, 200, 1_000].into_iter().flat_map(|n| [(n, 0.3), (n, 0.7)]);
    sizes.map(part).collect()
}

fn row(n: usize, censored: f64, n_cohorts: u64) -> String {
    let design = Design::new(&[0.5, 0.5], &[0.8, 0.8], Mechanism::Random, censored);
    let (curve, settings) = (design.training(), design.evaluation(&["ibs"]));
    let at = design.times[10];
    let large = design.draw(60_000, 7).generated.survival(Arm::Observed, &[at]).unwrap();
    let truth = 1.0 - large.survival().mean().unwrap();
    let of_causes = causes::Design::new(censored);
    let at = of_causes.times[10];
    let hazards = of_causes.draw(60_000, 7).hazards;
    let of_cause = hazards.iter().map(|hazard| causes::incidence(*hazard, at)).sum::<f64>() / hazards.len() as f64;
    let (cause_curve, cause_settings) = (of_causes.training(), of_causes.evaluation(&["cause-ibs"]));
    let contains = |risk: Option<&HorizonRisk>, truth: f64| {
        let (lower, upper) = risk?.observed_interval?;
        Some(lower <= truth && truth <= upper)
    };
    let one = |seed: u64| -> [Option<bool>; 3] {
        let report = design.draw(n, 1_000 + seed).report(&curve, &settings);
        let cohort = of_causes.draw(n, 1_000 + seed);
        let cause_report = cohort.report(&cause_curve, &cause_settings);
        let risk = |report: &Option<fairtte_metrics::EvaluationReport>, truth: f64| {
            contains(report.as_ref()?.groups_summary[0].at_horizon.as_ref(), truth)
        };
        let curve = AalenJohansen::fit(&cohort.outcomes, 1, IncidenceVariance::default()).ok();
        let of_curve = curve.and_then(|curve| {
            let place = curve.times().partition_point(|time| *time <= at).checked_sub(1)?;
            let (lower, upper) = (*curve.interval(0.95).ok()?.get(place)?)?;
            Some(lower <= of_cause && of_cause <= upper)
        });
        [risk(&report, truth), risk(&cause_report, of_cause), of_curve]
    };
    let found: Vec<[Option<bool>; 3]> = (0..n_cohorts).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[kind]).collect();
        percent(defined.iter().filter(|covered| **covered).count(), defined.len())
    };
    format!("| {n} | {:.0} % | {} |", 100.0 * censored, (0..3).map(cell).collect::<Vec<_>>().join(" | "))
}
