//! Grows forests on made-up samples of growing number and prints time, memory, and the exponent of the time against the number:
//! `forest [TREES [SAMPLES..]]`, by default 20 trees on 1,000, 10,000 and 50,000 samples.
//!
//! Ten columns, of which three matter; times are exponential, many are censored.
//!
//! `forest --risks TABLE.csv SETTINGS SEEDS` grows a forest on the rows of a table whose last column is 0 and prints the risks of
//! those where it is 1, a line per seed 0, 1, ..: columns are numbers, the last three the time, the event and that mark; SETTINGS are
//! those of a run file as JSON. `benches/peers/forest.py` puts it beside other packages. `forest --grow SETTINGS SAMPLES..` grows one
//! forest with these settings in place of the presets, for `benches/peers/speed.py`.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Instant;

use fairtte_classical::{ForestSettings, RandomSurvivalForest, SurvivalModel as _};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [option, table, settings, seeds] = words.as_slice()
        && option == "--risks"
    {
        return risks(table, &serde_json::from_str(settings)?, seeds.parse()?);
    }
    if let [option, settings, sizes @ ..] = words.as_slice()
        && option == "--grow"
    {
        let sizes: Vec<usize> = sizes.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
        return grow("settings", &serde_json::from_str(settings)?, &sizes);
    }
    let numbers: Vec<usize> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (trees, sizes) = numbers.split_first().unwrap_or((&20, &[]));
    let sizes = if sizes.is_empty() { &[1000, 10_000, 50_000] } else { sizes };
    for (name, preset) in [("ranger", ForestSettings::ranger()), ("rfsrc", ForestSettings::rfsrc())] {
        grow(name, &ForestSettings { trees: *trees, ..preset }, sizes)?;
    }
    Ok(())
}

/// Grows a forest on each number of samples, and prints time, memory and error.
fn grow(name: &str, settings: &ForestSettings, sizes: &[usize]) -> Result<(), Box<dyn std::error::Error>> {
    let trees = settings.trees;
    let mut before: Option<(f64, f64)> = None;
    for &n in sizes {
        let (columns, outcomes) = samples(n)?;
        let start = Instant::now();
        let (forest, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, settings)?;
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
    Ok(())
}

/// Prints the risks of the marked rows of a table, by forests of the others.
fn risks(table: &str, settings: &ForestSettings, seeds: u64) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(table)?;
    let rows: Result<Vec<Vec<f64>>, _> =
        text.lines().skip(1).map(|line| line.split(',').map(str::parse).collect()).collect();
    let rows = rows?;
    let part = |marked: bool| -> Result<(Array2<f64>, Outcomes), Box<dyn std::error::Error>> {
        let (mut columns, mut times, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            let [covariates @ .., time, event, mark] = row.as_slice() else { return Err("a row has no mark".into()) };
            if (*mark > 0.0) == marked {
                columns.extend(covariates);
                times.push(*time);
                events.push(*event > 0.0);
            }
        }
        let columns = Array2::from_shape_vec((times.len(), columns.len() / times.len().max(1)), columns)?;
        Ok((columns, Outcomes::new(times, events)?))
    };
    let ((columns, outcomes), (others, _)) = (part(false)?, part(true)?);
    for seed in 0..seeds {
        let (forest, _) = RandomSurvivalForest::fit(&columns, &outcomes, &ForestSettings { seed, ..settings.clone() })?;
        let risk: Vec<String> = forest.risk(&others)?.iter().map(f64::to_string).collect();
        println!("{}", risk.join(","));
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
