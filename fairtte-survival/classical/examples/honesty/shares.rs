//! Bias of the gap by the share of the smaller group.

use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, mean};

const METRICS: [&str; 3] = ["c-td", "auc-td", "ibs"];
const COLUMNS: &str =
    "n | smaller group | true gap | metric | truth | mean gap | mean corrected gap | events of the smaller group";

pub fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for n in [500, 2_000] {
        for share in [0.02, 0.05, 0.1, 0.2, 0.5] {
            for equal in [true, false] {
                let name = format!("shares-{n}-{share}-{equal}");
                parts.push(Part::new(name, COLUMNS, 300, move |cohorts| rows(n, share, equal, cohorts)));
            }
        }
    }
    parts
}

fn rows(n: usize, share: f64, equal: bool, n_cohorts: u64) -> Vec<String> {
    let noise = if equal { [0.8, 0.8] } else { [0.6, 1.0] };
    // The smaller group is the worse one.
    let design = Design::new(&[1.0 - share, share], &noise, Mechanism::Random, 0.3);
    let settings = design.evaluation(&METRICS);
    let even = Design { settings: Design::new(&[0.5, 0.5], &noise, Mechanism::Random, 0.3).settings, ..design.clone() };
    let curve = design.training();
    let gaps = |metric: &fairtte_metrics::evaluation::MetricReport| {
        let attribute = &metric.attributes[0];
        (attribute.gap.value, attribute.gap_corrected)
    };
    let truth: Vec<f64> = if equal {
        vec![0.0; METRICS.len()]
    } else {
        let report = even.draw(60_000, 7).report(&curve, &settings).unwrap();
        report.metrics.iter().map(|metric| gaps(metric).0.unwrap()).collect()
    };
    let settings = fairtte_metrics::EvaluationSettings { replicates: 100, ..settings };
    let one = |seed: u64| {
        let cohort = design.draw(n, 1_000 + seed);
        let events =
            cohort.groups.rows(fairtte_metrics::GroupId(1)).into_iter().filter(|row| cohort.outcomes.event()[*row]);
        let report = cohort.report(&curve, &settings)?;
        Some((events.count() as f64, report.metrics.iter().map(gaps).collect::<Vec<_>>()))
    };
    let found: Vec<_> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let events = mean(&found.iter().map(|of| of.0).collect::<Vec<_>>()).0;
    let row = |place: usize| {
        let gap: Vec<f64> = found.iter().filter_map(|of| of.1[place].0).collect();
        let corrected: Vec<f64> = found.iter().filter_map(|of| of.1[place].1).collect();
        let ((gap, error), (corrected, corrected_error)) = (mean(&gap), mean(&corrected));
        format!(
            "| {n} | {:.0} % | {} | {} | {:.4} | {gap:.4} ({error:.4}) | {corrected:.4} ({corrected_error:.4}) | {events:.0} |",
            100.0 * share,
            if equal { "none" } else { "yes" },
            METRICS[place],
            truth[place]
        )
    };
    (0..METRICS.len()).map(row).collect()
}
