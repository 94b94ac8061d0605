//! Grows forests on made-up samples of growing number and prints time, memory, and the exponent of the time against the number:
//! `forest [TREES [SAMPLES..]]`, by default 20 trees on 1,000, 10,000 and 50,000 samples.
//!
//! Ten columns, of which three matter; times are exponential, many are censored.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Instant;

use fairtte_classical::{ForestSettings, RandomSurvivalForest, SurvivalModel as _};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (trees, sizes) = numbers.split_first().unwrap_or((&20, &[]));
    let sizes = if sizes.is_empty() { &[1000, 10_000, 50_000] } else { sizes };
    for (name, preset) in [("ranger", ForestSettings::ranger()), ("rfsrc", ForestSettings::rfsrc())] {
        let settings = ForestSettings { trees: *trees, ..preset };
        let mut before: Option<(f64, f64)> = None;
        for &n in sizes {
            let (columns, outcomes) = samples(n)?;
            let start = Instant::now();
            let (forest, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, &settings)?;
            let seconds = start.elapsed().as_secs_f64();
            let exponent = before.map_or(String::new(), |(other, time)| {
                format!(", exponent {:.2}", (seconds / time).ln() / (n as f64 / other).ln())
            });
            before = Some((n as f64, seconds));
            println!("{name}, {n} samples, {} events: {trees} trees in {seconds:.3} s{exponent}", outcomes.n_events());
            println!(
                "  {:.1} MB, out-of-bag error {:.4}",
                forest.size_in_bytes() as f64 / 1e6,
                out_of_bag.error(&outcomes)?
            );
            let start = Instant::now();
            let risk = forest.risk(&columns)?;
            let highest = risk.iter().copied().fold(0.0, f64::max);
            println!("  risk of all in {:.3} s, highest {highest:.1}", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Covariates and outcomes of `n` samples.
fn samples(n: usize) -> Result<(Array2<f64>, Outcomes), Box<dyn std::error::Error>> {
    let mut rng = stream(1, "example/forest", &[]);
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
