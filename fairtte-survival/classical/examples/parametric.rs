//! Times accelerated failure time models and a logistic hazard on made-up samples: `parametric [SAMPLES ..] [--write FOLDER]`.
//!
//! Ten columns, of which three matter; times are Weibull, about a third is censored. Times are those of the processor, of all threads
//! (on Linux; otherwise of the clock). With `--write` the samples are also written as CSV, for a comparison with other packages on
//! the same numbers.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::error::Error;
use std::fmt::Write as _;
use std::time::Instant;

use fairtte_classical::{
    AftDistribution, AftSettings, CutPointRule, HazardPenalty, LogisticHazardSettings, SurvivalEstimator as _,
};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (mut sizes, mut folder) = (Vec::new(), None);
    while let Some(word) = words.next() {
        if word == "--write" {
            folder = Some(words.next().ok_or("--write needs a folder")?);
        } else {
            sizes.push(word.parse::<usize>()?);
        }
    }
    if sizes.is_empty() {
        sizes.push(1000);
    }
    for n in sizes {
        let (columns, outcomes) = samples(n)?;
        println!("{n} samples, {} events", outcomes.n_events());
        if let Some(folder) = &folder {
            std::fs::write(format!("{folder}/parametric-{n}.csv"), table(&columns, &outcomes)?)?;
        }
        for distribution in [AftDistribution::Weibull, AftDistribution::LogNormal, AftDistribution::LogLogistic] {
            let (model, time) = timed(|| AftSettings { distribution, penalty: 0.0 }.fit(&columns, &outcomes));
            let model = model?;
            let first = model.coefficients[0];
            println!(
                "  {distribution:?}: {time:.6} s, log-likelihood {:.6}, b0 {:.6}",
                model.log_likelihood, first.value
            );
        }
        for intervals in [20, 100] {
            let settings = LogisticHazardSettings {
                cut_points: CutPointRule::Equidistant(intervals),
                penalty: HazardPenalty::None,
                ..LogisticHazardSettings::default()
            };
            let (model, time) = timed(|| settings.fit(&columns, &outcomes));
            let model = model?;
            let first = model.coefficients[0];
            println!(
                "  logistic hazard, {intervals} intervals, {} person-periods: {time:.6} s, log-likelihood {:.6}, b0 {:.6}",
                model.n_person_periods, model.log_likelihood, first.value
            );
        }
    }
    Ok(())
}

/// What a fit returns, and how long it takes: the mean of as many as take 0.3 seconds, because the clock of the processor may tick
/// every 4 milliseconds only.
fn timed<T>(fit: impl Fn() -> T) -> (T, f64) {
    let clock = Instant::now();
    let now = || processor_seconds().unwrap_or_else(|| clock.elapsed().as_secs_f64());
    let (start, mut found, mut fits) = (now(), fit(), 1.0);
    while now() - start < 0.3 {
        found = fit();
        fits += 1.0;
    }
    (found, (now() - start) / fits)
}

/// Time of the processor that all threads have had, as the scheduler of Linux counts it.
fn processor_seconds() -> Option<f64> {
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(std::fs::read_dir("/proc/self/task").ok()?.filter_map(of_thread).sum::<f64>() / 1e9)
}

/// n samples; the event rate depends on columns 0 to 2.
fn samples(n: usize) -> Result<(Array2<f64>, Outcomes), Box<dyn Error>> {
    let mut rng = stream(1, "example/parametric", &[]);
    let columns = Array2::from_shape_fn((n, 10), |_| rng.random::<f64>());
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in columns.rows() {
        let mut wait = || -(1.0 - rng.random::<f64>()).ln();
        let event = (1.0 - row[0] + 0.5 * row[1] - 0.7 * row[2] + 0.8 * wait().ln()).exp();
        let censored = (3.0 * wait()).min(6.0);
        times.push(event.min(censored).max(1e-6));
        events.push(event <= censored);
    }
    Ok((columns, Outcomes::new(times, events)?))
}

fn table(columns: &Array2<f64>, outcomes: &Outcomes) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for column in 0..columns.ncols() {
        write!(text, "x{column},")?;
    }
    text.push_str("time,event\n");
    for (row, (time, event)) in columns.rows().into_iter().zip(outcomes.time().iter().zip(outcomes.event())) {
        for x in row {
            write!(text, "{x:?},")?;
        }
        writeln!(text, "{time:?},{}", u8::from(*event))?;
    }
    Ok(text)
}
