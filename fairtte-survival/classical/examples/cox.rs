//! Fits Cox regressions to made-up samples of growing size and says how long it takes: `cox [SAMPLES ..]`.
//!
//! Ten covariates, of which five matter; times are exponential, about a third is censored. The same samples leave the program
//! as a table with `cox --write FILE SAMPLES [COLUMNS]`, so that other programs can be timed on them; `cox --path SAMPLES COLUMNS
//! LAMBDAS` times the first values of lambda of a path of the elastic net without cross-validation and prints it as JSON (`benches/peers/linear.py` puts both beside other packages).

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::error::Error;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Instant;

use fairtte_classical::{
    CoxElasticNetSettings, CoxErrors, CoxSettings, CoxTimeVaryingSettings, LambdaChoice, SurvivalEstimator,
    SurvivalModel as _, TimeFunction,
};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

const N_COVARIATES: usize = 10;
const EFFECTS: [f64; 5] = [0.5, -0.5, 0.3, 0.2, -0.1];

fn samples(n: usize, p: usize) -> Result<(Array2<f64>, Outcomes), Box<dyn Error>> {
    let mut rng = stream(1, "example/cox", &[]);
    let x = Array2::from_shape_fn((n, p), |_| 2.0 * rng.random::<f64>() - 1.0);
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in x.rows() {
        let rate = row.iter().zip(EFFECTS).map(|(x, effect)| x * effect).sum::<f64>().exp();
        let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
        let (event, censored) = (waited(rate), waited(0.5));
        times.push(event.min(censored));
        events.push(event <= censored);
    }
    Ok((x, Outcomes::new(times, events)?))
}

/// Seconds of computing of this thread, which other programs do not lengthen; without Linux the time since the first call.
fn now() -> f64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()));
    nanoseconds.map_or_else(|| FIRST.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Seconds per fit, the mean of as many as take 0.3 seconds; the clock may tick every 4 milliseconds only.
fn seconds<S: SurvivalEstimator>(settings: &S, x: &Array2<f64>, outcomes: &Outcomes) -> Result<f64, Box<dyn Error>> {
    let (start, mut fits) = (now(), 0.0);
    while now() - start < 0.3 {
        settings.fit(x, outcomes)?;
        fits += 1.0;
    }
    Ok((now() - start) / fits)
}

/// Times the first of 100 values of lambda on standardised columns, and prints their coefficients.
fn path(n: usize, p: usize, lambdas: usize) -> Result<(), Box<dyn Error>> {
    let (mut x, outcomes) = samples(n, p)?;
    for mut column in x.columns_mut() {
        let (mean, deviation) = (column.sum() / n as f64, column.std(0.0));
        column.mapv_inplace(|value| (value - mean) / deviation);
    }
    // 100 values end at 0.0001 of the first, as those of a cross-validation do.
    let with = |lambdas: usize, last: f64| CoxElasticNetSettings {
        l1_ratio: 0.9,
        lambdas,
        choice: LambdaChoice::Fixed(last),
        ..CoxElasticNetSettings::default()
    };
    let largest = with(2, 1e-9).fit(&x, &outcomes)?.lambdas[0];
    let settings = with(lambdas, largest * 1e-4_f64.powf((lambdas - 1) as f64 / 99.0));
    let seconds = (0..3).map(|_| seconds(&settings, &x, &outcomes)).collect::<Result<Vec<_>, _>>()?;
    let seconds = seconds.into_iter().fold(f64::INFINITY, f64::min);
    let model = settings.fit(&x, &outcomes)?;
    let record = serde_json::json!({"seconds": seconds, "lambdas": model.lambdas, "path": model.path});
    println!("{record}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [option, n, p, lambdas] = words.as_slice()
        && option == "--path"
    {
        return path(n.parse()?, p.parse()?, lambdas.parse()?);
    }
    if let [option, file, n, columns @ ..] = words.as_slice()
        && option == "--write"
    {
        let (x, outcomes) = samples(n.parse()?, columns.first().map_or(Ok(N_COVARIATES), |p| p.parse())?)?;
        let mut table = String::new();
        (0..x.ncols()).try_for_each(|place| write!(table, "x{place},"))?;
        table.push_str("time,event\n");
        for (row, (time, event)) in x.rows().into_iter().zip(outcomes.time().iter().zip(outcomes.event())) {
            row.iter().try_for_each(|value| write!(table, "{value},"))?;
            writeln!(table, "{time},{}", u8::from(*event))?;
        }
        return Ok(std::fs::write(file, table)?);
    }
    let sizes = if words.is_empty() { vec!["1000".to_owned(), "10000".to_owned()] } else { words };
    let mut before: Option<(f64, f64)> = None;
    for n in sizes {
        let (x, outcomes) = samples(n.parse()?, N_COVARIATES)?;
        let plain = seconds(&CoxSettings::default(), &x, &outcomes)?;
        let robust = seconds(&CoxSettings { errors: CoxErrors::Robust, ..CoxSettings::default() }, &x, &outcomes)?;
        let steps = TimeFunction::Steps(vec![0.5]);
        let varying = seconds(&CoxTimeVaryingSettings { function: steps, ..Default::default() }, &x, &outcomes)?;
        let n = x.nrows() as f64;
        let exponent = before.map_or(String::new(), |(m, then)| {
            format!("; exponent against n {:.2}", (plain / then).ln() / (n / m).ln())
        });
        println!("{n} samples, {} events: {plain:.5} s{exponent}", outcomes.n_events());
        println!("  robust errors {robust:.5} s; coefficients that change once {varying:.5} s");
        before = Some((n, plain));
    }
    let (x, outcomes) = samples(1000, N_COVARIATES)?;
    let start = Instant::now();
    let net = CoxElasticNetSettings { l1_ratio: 0.9, ..CoxElasticNetSettings::default() }.fit(&x, &outcomes)?;
    println!("elastic net, 100 values of lambda, 10 folds, 1000 samples: {:.3} s", start.elapsed().as_secs_f64());
    println!("  covariates with a coefficient: {}", net.selected().collect::<Vec<_>>().join(", "));
    let model = CoxSettings::default().fit(&x, &outcomes)?;
    let first = model.coefficients[0].hazard_ratio(0.95).ok_or("no standard error")?;
    println!("hazard ratio of covariate 0: {:.3} ({:.3} to {:.3}); true 1.649", first.0, first.1, first.2);
    println!("risk of the first sample: {:.3}", model.risk(&x)?[0]);
    Ok(())
}
