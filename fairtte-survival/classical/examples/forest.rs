//! Grows a forest of 100 trees on made-up samples and says how long it takes: `forest [SAMPLES]`.
//!
//! Ten columns, of which three matter; times are exponential, a third is censored.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Instant;

use fairtte_classical::{ForestSettings, RandomSurvivalForest, SurvivalModel as _};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n: usize = std::env::args().nth(1).map_or(Ok(1000), |word| word.parse())?;
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
    let outcomes = Outcomes::new(times, events)?;
    let settings = ForestSettings { trees: 100, ..ForestSettings::default() };
    let start = Instant::now();
    let (forest, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, &settings)?;
    println!("{n} samples, {} events: 100 trees in {:.2} s", outcomes.n_events(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let risk = forest.risk(&columns)?;
    println!(
        "risk of all in {:.2} s; highest {:.1}",
        start.elapsed().as_secs_f64(),
        risk.iter().copied().fold(0.0, f64::max)
    );
    let n_out = out_of_bag.risk.iter().flatten().count();
    println!("{n_out} samples are out of the bag of a tree");
    Ok(())
}
