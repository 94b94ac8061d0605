//! What counting deaths of another cause as censorings does to the risk of a group, to the gap between groups and to the
//! verdict on a model: `competing_risks [SAMPLES]`.
//!
//! Two groups have the same hazard of the event, 0.10 per year. Group B dies of something else six times as often as group A
//! (0.30 against 0.05 per year), and so has the event less often. The truth is known:
//! F(t) = h1 / (h1 + h2) (1 - exp(-(h1 + h2) t)).

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, IncidenceCurves, IncidenceVariance, cause_brier_score, cause_observed_expected,
};
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{CensoringCurve, CensoringTies, MetricError, Reading};
use ndarray::Array2;
use rand::RngExt as _;

const HORIZON: f64 = 5.0;
const EVENT: f64 = 0.10;
const OTHER: [f64; 2] = [0.05, 0.30];
const CENSORING: f64 = 0.08;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n: usize = std::env::args().nth(1).map_or(Ok(20_000), |word| word.parse())?;
    let outcomes = simulated(n)?;
    let rows = |group: usize| (0..n).filter(|row| row % 2 == group).collect::<Vec<usize>>();
    let truth = OTHER.map(|other| EVENT / (EVENT + other) * (1.0 - (-(EVENT + other) * HORIZON).exp()));
    let of_groups =
        |estimate: &dyn Fn(&CompetingOutcomes) -> Result<f64, MetricError>| -> Result<[f64; 2], MetricError> {
            Ok([estimate(&outcomes.select(&rows(0)))?, estimate(&outcomes.select(&rows(1)))?])
        };
    let naive = of_groups(&|outcomes| Ok(1.0 - KaplanMeier::fit(&outcomes.of_cause(1)?)?.at(HORIZON)))?;
    let curve = |outcomes: &CompetingOutcomes| AalenJohansen::fit(outcomes, 1, IncidenceVariance::Delta);
    let aalen_johansen = of_groups(&|outcomes| curve(outcomes)?.known_at(HORIZON))?;

    println!("{n} samples, {} events, {} deaths of another cause", outcomes.n_events(1), outcomes.n_events(2));
    println!("risk of the event by {HORIZON} years        group A  group B      gap");
    for (name, [a, b]) in [("truth", truth), ("1 - Kaplan-Meier (naive)", naive), ("Aalen-Johansen", aalen_johansen)] {
        println!("  {name:<32} {a:8.4} {b:8.4} {:8.4}", (a - b).abs());
    }

    // Two models: the truth, and 1 - survival of a model that takes deaths for censorings.
    let curves = |risk: [f64; 2]| {
        let values = Array2::from_shape_fn((n, 2), |(row, k)| if k == 0 { 0.0 } else { risk[row % 2] });
        IncidenceCurves::new(vec![0.0, HORIZON], values)
    };
    let net = 1.0 - (-EVENT * HORIZON).exp();
    println!("\nobserved / expected                     group A  group B    Brier");
    for (name, risk) in [("model that knows the truth", truth), ("model of the hazard alone", [net, net])] {
        let curves = curves(risk)?;
        let ratio = |group: usize, naive: Option<f64>| -> Result<f64, MetricError> {
            let (outcomes, curves) = (outcomes.select(&rows(group)), curves.select(&rows(group)));
            let found = cause_observed_expected(&outcomes, 1, &curves, HORIZON, Reading::Step)?;
            Ok(naive.map_or(found.ratio, |observed| observed / found.expected))
        };
        let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)?;
        let brier = cause_brier_score(&outcomes, 1, &curves, &censoring, Reading::Step, &[HORIZON])?.values[0];
        println!("  {name:<32} {:8.4} {:8.4} {brier:8.4}", ratio(0, None)?, ratio(1, None)?);
        let naive = [ratio(0, Some(naive[0]))?, ratio(1, Some(naive[1]))?];
        println!("  {:<32} {:8.4} {:8.4}", "  judged by 1 - Kaplan-Meier", naive[0], naive[1]);
    }
    println!(
        "\nTaken for censorings, deaths hide that group B has the event less often: the gap vanishes, the right model seems to\n\
         underestimate the risk of group B, and a model that overestimates it seems right."
    );
    Ok(())
}

/// Exponential times; even rows are group A, odd ones group B.
fn simulated(n: usize) -> Result<CompetingOutcomes, MetricError> {
    let mut rng = stream(4, "example/competing", &[]);
    let (mut time, mut cause) = (Vec::new(), Vec::new());
    for row in 0..n {
        let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
        let (event, other, censored) = (waited(EVENT), waited(OTHER[row % 2]), waited(CENSORING));
        let first = event.min(other).min(censored);
        time.push(first);
        cause.push(if first >= censored {
            0
        } else if first >= other {
            2
        } else {
            1
        });
    }
    CompetingOutcomes::new(time, cause)
}
