//! The biasing experiment on tables: `biasing TREES REPEATS OUT.jsonl [TABLE.csv ..]`; without tables, on made-up samples. `ranger:TREES` takes
//! the settings of ranger.
//!
//! A table has the columns `time` and `event` (0 or 1) and covariates: numbers as they are, anything else as one column per value
//! but the most frequent. No quotes, no missing cells. The forest has the settings of randomForestSRC, or those named. Every result is appended to
//! `OUT.jsonl`; what is there already is not computed again.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use fairtte_classical::ForestSettings;
use fairtte_classical::biasing::{BiasingSettings, BiasingTable, CellResult, Measure, analyse, cells, run_cell};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| words.get(place).map_or(Ok(default), |word| word.parse::<usize>());
    let (preset, trees) = words.first().map_or(("rfsrc", "20"), |word| word.split_once(':').unwrap_or(("rfsrc", word)));
    let (trees, repeats) = (trees.parse::<usize>()?, number(1, 2)?);
    let preset = match preset {
        "rfsrc" => ForestSettings::rfsrc(),
        "ranger" => ForestSettings::ranger(),
        other => return Err(format!("the preset is \"{other}\", expected rfsrc or ranger").into()),
    };
    let settings = BiasingSettings { repeats, measures: Measure::ALL.to_vec(), ..BiasingSettings::default() };
    let mut results: Vec<CellResult> = Vec::new();
    let tables = words.get(3..).unwrap_or_default();
    let out = words.get(2).map(Path::new);
    if let Some(text) = out.filter(|path| path.exists()).map(std::fs::read_to_string) {
        results = text?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    }
    let mut file = out.map(|path| std::fs::File::options().create(true).append(true).open(path)).transpose()?;
    let tables: Vec<BiasingTable> = match tables {
        [] => vec![made_up(200)?],
        paths => paths.iter().map(|path| read(Path::new(path))).collect::<Result<_, _>>()?,
    };
    for table in &tables {
        let outcomes = table.outcomes();
        println!("{}: {} samples, {} events", table.name(), outcomes.n(), outcomes.n_events());
        for cell in cells(&settings) {
            if results.iter().any(|result| result.table == table.name() && result.cell == cell) {
                continue;
            }
            let forest = |seed| ForestSettings { trees, seed, ..preset.clone() };
            let result = run_cell(table, cell, &settings, forest)?;
            if let Some(file) = &mut file {
                writeln!(file, "{}", serde_json::to_string(&result)?)?;
            }
            results.push(result);
        }
    }
    for of in analyse(&results)?.measures {
        let means: Vec<String> =
            of.shares.iter().map(|of| of.mean.map_or("-".to_owned(), |mean| format!("{mean:.3}"))).collect();
        let trend =
            of.of_means.map(|trend| format!("slope {:.3}, rho {:.3}", trend.line.slope, trend.rho.unwrap_or(0.0)));
        println!(
            "{:<20} {:<20} {}  {}",
            of.method.name(),
            of.measure.label(),
            means.join(" "),
            trend.unwrap_or_default()
        );
    }
    Ok(())
}

fn read(path: &Path) -> Result<BiasingTable, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let header = lines.next().ok_or("a table without a header")?;
    let rows: Vec<Vec<&str>> = lines.collect();
    if rows.iter().any(|row| row.len() != header.len()) {
        return Err(format!("{}: a row has not {} cells", path.display(), header.len()).into());
    }
    let place = |name: &str| header.iter().position(|known| *known == name).ok_or(format!("no column \"{name}\""));
    let (time, event) = (place("time")?, place("event")?);
    let times = rows.iter().map(|row| row[time].parse()).collect::<Result<_, _>>()?;
    let outcomes = Outcomes::new(times, rows.iter().map(|row| row[event].starts_with('1')).collect())?;
    let (mut columns, mut variables): (Vec<Vec<f64>>, Vec<usize>) = (Vec::new(), Vec::new());
    for column in (0..header.len()).filter(|column| *column != time && *column != event) {
        let cells: Vec<&str> = rows.iter().map(|row| row[column]).collect();
        let encoded = encode(&cells);
        variables.extend(encoded.iter().map(|_| column));
        columns.extend(encoded);
    }
    let covariates = Array2::from_shape_fn((rows.len(), columns.len()), |(row, column)| columns[column][row]);
    let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a table without a name")?;
    Ok(BiasingTable::new(name, covariates, variables, outcomes)?)
}

/// The cells as numbers, or one column per value but the most frequent.
fn encode(cells: &[&str]) -> Vec<Vec<f64>> {
    if let Ok(numbers) = cells.iter().map(|cell| cell.parse::<f64>()).collect() {
        return vec![numbers];
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in cells {
        *counts.entry(*cell).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, n)| **n).map(|(level, _)| *level);
    let levels: BTreeSet<&str> = counts.keys().copied().filter(|level| Some(*level) != most).collect();
    levels.into_iter().map(|level| cells.iter().map(|cell| f64::from(u8::from(*cell == level))).collect()).collect()
}

/// Exponential times that the first of three covariates decides, some censored.
fn made_up(n: usize) -> Result<BiasingTable, Box<dyn Error>> {
    let mut rng = stream(1, "example/biasing", &[]);
    let covariates = Array2::from_shape_fn((n, 3), |_| rng.random::<f64>());
    let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
    let both: Vec<(f64, f64)> = covariates.column(0).iter().map(|x| (waited((3.0 * x).exp()), waited(2.0))).collect();
    let times = both.iter().map(|(event, censored)| event.min(*censored)).collect();
    let events = both.iter().map(|(event, censored)| event <= censored).collect();
    Ok(BiasingTable::new("made up", covariates, vec![0, 1, 2], Outcomes::new(times, events)?)?)
}
