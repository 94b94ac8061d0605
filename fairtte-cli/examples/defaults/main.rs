//! Trains settings of strategies on the data of a run file and measures the claimed effect of each on samples that were
//! not trained on: the numbers of `docs/src/results/defaults.md`.
//!
//! `cargo run -p fairtte-cli --example defaults -- RUNFILE ATTRIBUTE SETTINGS SEEDS OUT`
//!
//! RUNFILE gives data, split, network, head, optimiser and epochs; ATTRIBUTE is the one that strategies work on. Every line
//! of SETTINGS is `{"name": "..", "strategy": {"group-dro": {"eta": 0.1}}}`; `{"swad": {}}` means the defaults. SEEDS is a
//! list like `1,2,3`. Each training appends one line to OUT; a training whose line exists is not repeated. The strategy
//! and the epochs of the run file's own choice are not read; everything else of it is.

#![expect(clippy::print_stderr, reason = "an example prints its results")]

mod data;
mod measures;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use fairtte_cli::RunFile;
use fairtte_fairness::strategies::Saved;
use fairtte_fairness::{LearnerSpec, StrategyConfig, Trainer};
use serde::{Deserialize, Serialize};

use self::data::World;
use self::measures::Measured;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A line of the settings.
#[derive(Deserialize)]
struct Setting {
    name: String,
    strategy: StrategyConfig,
}

/// A line of the results.
#[derive(Serialize, Deserialize)]
struct Line {
    data: String,
    attribute: String,
    setting: String,
    seed: u64,
    n_epochs: usize,
    best_epoch: usize,
    stopped_early: bool,
    measured: Measured,
    /// Terms reported by the strategy in its last epoch.
    terms: BTreeMap<String, f64>,
    seconds: f64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [run_file, attribute, settings, seeds, out] = words.as_slice() else {
        eprintln!("usage: defaults RUNFILE ATTRIBUTE SETTINGS SEEDS OUT");
        return ExitCode::from(2);
    };
    match run(Path::new(run_file), attribute, Path::new(settings), seeds, Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(run_file: &Path, attribute: &str, settings: &Path, seeds: &str, out: &Path) -> Outcome<()> {
    let run = RunFile::read(&[PathBuf::from(run_file)], &[])?;
    let seeds: Vec<u64> = seeds.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let text = std::fs::read_to_string(settings)?;
    let settings: Vec<Setting> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let done = done(out)?;
    let world = World::read(&run, attribute)?;
    for seed in seeds {
        for setting in &settings {
            let key = (run.name.clone(), attribute.to_owned(), setting.name.clone(), seed);
            if done.contains(&key) {
                continue;
            }
            match train(&run, &world, setting, seed) {
                Ok(line) => append(out, &Line { attribute: attribute.to_owned(), ..line })?,
                Err(error) => eprintln!("{key:?}: {error}"),
            }
        }
    }
    Ok(())
}

fn done(out: &Path) -> Outcome<BTreeSet<(String, String, String, u64)>> {
    if !out.exists() {
        return Ok(BTreeSet::new());
    }
    let key = |text: &str| -> Outcome<_> {
        let line: Line = serde_json::from_str(text)?;
        Ok((line.data, line.attribute, line.setting, line.seed))
    };
    std::fs::read_to_string(out)?.lines().map(key).collect()
}

fn append(out: &Path, line: &Line) -> Outcome<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(out)?;
    let m = &line.measured;
    eprintln!("{} {} seed {}: C^td {:?}, AUC^td {:?}", line.data, line.setting, line.seed, m.test.c_td, m.test.auc_td);
    Ok(writeln!(file, "{}", serde_json::to_string(line)?)?)
}

fn train(run: &RunFile, world: &World, setting: &Setting, seed: u64) -> Outcome<Line> {
    let loader = world.loader()?;
    let spec = LearnerSpec { seed, ..world.spec.clone() };
    setting.strategy.validate()?;
    let mut strategy = setting.strategy.build(&spec, &world.cells)?;
    let folder = tempfile::tempdir()?;
    let data = world.training_data(&loader, seed);
    let stop = AtomicBool::new(false);
    let trained = Trainer::new(&data, &run.training, folder.path()).stop_when(&stop).fit(strategy.as_mut())?;
    let weights = tempfile::tempdir()?;
    strategy.save(weights.path(), Saved::Weights)?;
    let last = trained.epochs.last().ok_or("no epoch")?;
    Ok(Line {
        data: run.name.clone(),
        attribute: String::new(),
        setting: setting.name.clone(),
        seed,
        n_epochs: trained.epochs.len(),
        best_epoch: trained.best_epoch,
        stopped_early: trained.stopped_early,
        measured: Measured::of(world, &loader, strategy.as_ref(), (&setting.strategy, &spec, weights.path()))?,
        terms: last.terms.clone(),
        seconds: trained.epochs.iter().map(|epoch| epoch.seconds).sum(),
    })
}
