//! Fits gradient-boosted Cox regression on made-up samples of growing number and prints time, and its exponent against the number:
//! `boosting [TREES [SAMPLES..]]`, by default 100 trees on 1,000, 10,000 and 50,000 samples.
//!
//! Ten columns, of which three matter; times are exponential, many are censored.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Instant;

use fairtte_classical::{BoostingSettings, GradientBoostedCox, SurvivalModel as _};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (trees, sizes) = numbers.split_first().unwrap_or((&100, &[]));
    let sizes = if sizes.is_empty() { &[1000, 10_000, 50_000] } else { sizes };
    let settings = BoostingSettings { trees: *trees, ..BoostingSettings::default() };
    let mut before: Option<(f64, f64)> = None;
    for &n in sizes {
        let (columns, outcomes) = samples(n)?;
        let start = Instant::now();
        let (model, trace) = GradientBoostedCox::fit(&columns, &outcomes, &settings)?;
        let seconds = start.elapsed().as_secs_f64();
        let exponent = before.map_or(String::new(), |(other, time)| {
            format!(", exponent {:.2}", (seconds / time).ln() / (n as f64 / other).ln())
        });
        before = Some((n as f64, seconds));
        println!("{n} samples, {} events: {trees} trees in {seconds:.3} s{exponent}", outcomes.n_events());
        let start = Instant::now();
        let risk = model.risk(&columns)?;
        let highest = risk.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        println!("  risk of all in {:.3} s, highest {highest:.2}", start.elapsed().as_secs_f64());
        println!(
            "  loss {:.4} per sample, {:.4} without trees",
            trace.losses[*trees] / n as f64,
            trace.losses[0] / n as f64
        );
    }
    Ok(())
}

/// Covariates and outcomes of `n` samples.
fn samples(n: usize) -> Result<(Array2<f64>, Outcomes), Box<dyn std::error::Error>> {
    let mut rng = stream(1, "example/boosting", &[]);
    let columns = Array2::from_shape_fn((n, 10), |_| rng.random::<f64>());
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in columns.rows() {
        let rate = (2.0 * row[0] - row[1] + row[2] * row[2]).exp();
        let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
        let (event, censored) = (waited(rate), waited(1.0));
        times.push(event.min(censored));
        events.push(event <= censored);
    }
    Ok((columns, Outcomes::new(times, events)?))
}
