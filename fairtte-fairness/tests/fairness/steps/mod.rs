//! Worked training steps of every strategy, through `StrategyConfig::build` and `Strategy::step` as the trainer calls them,
//! against an independent implementation in double precision (`parity/steps.py`, PyTorch; provenance in every file of
//! `golden/steps`).
//!
//! Four batches in a row (all groups; one absent; a single group; one sample of a group; some samples without a group in each),
//! so that optimiser state, group weights and running statistics are as in a training. After every step the report is
//! compared, and every tensor of every network as it is saved: how far it is from its initial value, or that it did not
//! change. Then predictions, for which baselines, maps and averages are fitted. A clipped and an unclipped gradient are
//! among the steps, weight
//! decay is large, and every setting is written out, so that no default matters. Nothing here reads a private field.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]

mod compare;
mod draws;
mod record;
mod world;

use std::collections::BTreeMap;
use std::path::Path;

use compare::{Compared, Moving, Network};
use fairtte_data::Sampling;
use fairtte_fairness::strategies::{Clock, Saved, StepReport};
use fairtte_fairness::{CurveRule, OptimiserConfig, Strategy, StrategyConfig, Validation};
use fairtte_metrics::GroupId;
use fairtte_survival::{HeadConfig, PredictionGrid};
use record::{Formula, Numbers};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use world::{Table, World, class_table, table};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/steps");

fn golden<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{FOLDER}/{name}.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[derive(Deserialize)]
struct Golden {
    strategy: String,
    seed: u64,
    learning_rate: f64,
    weight_decay: f64,
    gradient_clip: f64,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    head: String,
    settings: Json,
    sampling: Drawn,
    weights: BTreeMap<String, BTreeMap<String, Formula>>,
    events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Drawn {
    Shuffled,
    Weighted(Vec<f64>),
    Oversampled(Vec<Option<usize>>),
    WithinGroups(Vec<Option<u32>>),
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Step {
        rows: Vec<usize>,
        step: usize,
        report: Option<Report>,
        report_rounding: Option<BTreeMap<String, f64>>,
        tensors: Option<BTreeMap<String, Network>>,
    },
    Validate {
        loss: Option<f64>,
    },
    Finish,
    Predict {
        rows: Vec<usize>,
        survival: Vec<Vec<f64>>,
        rounding: f64,
    },
    LogTerms {
        terms: BTreeMap<String, f64>,
        rounding: BTreeMap<String, f64>,
    },
    Weights {
        tensors: BTreeMap<String, Network>,
    },
}

#[derive(Deserialize)]
struct Report {
    task_loss: f64,
    objective: f64,
    gradient_norm: f64,
    absent_groups: usize,
    terms: BTreeMap<String, f64>,
}

/// One training in progress.
struct Training<'a> {
    world: &'a World,
    strategy: Box<dyn Strategy>,
    case: &'a Case,
    initial: BTreeMap<String, Numbers>,
    now: BTreeMap<String, Numbers>,
    compared: &'a mut Compared,
}

impl<'a> Training<'a> {
    /// A strategy as the registry builds it, whose networks then get the weights of the case.
    fn new(golden: &Golden, case: &'a Case, world: &'a World, compared: &'a mut Compared) -> Self {
        let config: StrategyConfig = serde_json::from_value(json!({ &golden.strategy: &case.settings })).unwrap();
        let Golden { learning_rate, weight_decay, gradient_clip, .. } = *golden;
        let spec = world.spec(OptimiserConfig { learning_rate, weight_decay, gradient_clip });
        let mut strategy = config.build(&spec, &world.cells()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        strategy.save(folder.path(), Saved::Everything).unwrap();
        for (file, formulas) in &case.weights {
            record::rewrite(folder.path(), file, formulas);
        }
        strategy.load(folder.path(), Saved::Everything).unwrap();
        let initial = networks(strategy.as_mut(), case);
        Self { world, strategy, case, now: initial.clone(), initial, compared }
    }

    fn follow(&mut self, place: &str, event: &Event) {
        match event {
            Event::Step { rows, step, report, report_rounding, tensors } => {
                let clock = Clock::default();
                let batch = self.world.batch(rows, true);
                let found = self.strategy.step(&batch, &self.world.context(*step, &clock)).unwrap();
                if let (Some(report), Some(rounding)) = (report, report_rounding) {
                    self.compare_reports(place, &found, report, rounding);
                }
                if let Some(tensors) = tensors {
                    self.compare_tensors(place, tensors);
                }
            }
            Event::Validate { loss } => {
                self.world.with_parts(|parts| self.strategy.before_validation(parts)).unwrap();
                if let Some(nll) = *loss {
                    self.strategy.after_validation(&Validation { nll, ..Validation::default() }).unwrap();
                }
            }
            Event::Finish => self.world.with_parts(|parts| self.strategy.finish(parts)).unwrap(),
            Event::Predict { rows, survival, rounding } => self.compare_curves(place, rows, survival, *rounding),
            Event::LogTerms { terms, rounding } => {
                let found: BTreeMap<String, f64> = self.strategy.log_terms().into_iter().collect();
                for (name, expected) in terms {
                    self.compared.close(&format!("{place}, {name}"), (found[name], *expected), rounding[name], 1.0);
                }
            }
            Event::Weights { tensors } => self.compare_tensors(place, tensors),
        }
    }

    fn compare_reports(
        &mut self,
        place: &str,
        found: &StepReport,
        expected: &Report,
        rounding: &BTreeMap<String, f64>,
    ) {
        let mut close = |name: &str, found: f64, expected: f64| {
            let size = expected.abs();
            self.compared.close(&format!("{place}, {name}"), (found, expected), rounding[name], size);
        };
        close("task_loss", found.task_loss, expected.task_loss);
        close("objective", found.objective, expected.objective);
        close("gradient_norm", found.gradient_norm, expected.gradient_norm);
        for (name, expected) in &expected.terms {
            let found = found.terms.iter().find(|(other, _)| other == name);
            let found = found.unwrap_or_else(|| panic!("{place}: the report has no {name}")).1;
            close(name, found, *expected);
        }
        assert_eq!(found.absent_groups, expected.absent_groups, "{place}, absent groups");
    }

    fn compare_tensors(&mut self, place: &str, expected: &BTreeMap<String, Network>) {
        let after = networks(self.strategy.as_mut(), self.case);
        for (file, network) in expected {
            let moving = Moving { initial: &self.initial[file], before: &self.now[file], now: &after[file] };
            moving.compare(&format!("{place}, {file}"), network, self.compared);
        }
        self.now = after;
    }

    fn compare_curves(&mut self, place: &str, rows: &[usize], expected: &[Vec<f64>], rounding: f64) {
        let grid = PredictionGrid::at_cut_points(&self.world.cut_points);
        let rule = CurveRule { head: self.world.head.as_ref(), grid: &grid };
        let found = self.strategy.predict(&self.world.batch(rows, false), &rule).unwrap();
        assert_eq!(found.dim(), (rows.len(), expected[0].len()), "{place}");
        for ((row, found), expected) in rows.iter().zip(found.rows()).zip(expected) {
            for (cut, pair) in found.iter().copied().zip(expected.iter().copied()).enumerate() {
                self.compared.close(&format!("{place}, row {row}, cut {cut}"), pair, rounding, 1.0);
            }
        }
    }

    fn compare_sampling(&mut self, place: &str) {
        match (self.strategy.sampling(), &self.case.sampling) {
            (Sampling::Shuffled, Drawn::Shuffled) => {}
            (Sampling::Weighted(found), Drawn::Weighted(expected)) if found.len() == expected.len() => {
                for (found, expected) in found.iter().zip(expected) {
                    self.compared.exact(place, *found, *expected);
                }
            }
            (Sampling::Oversampled(found), Drawn::Oversampled(expected)) if found == *expected => {}
            (Sampling::WithinGroups(found), Drawn::WithinGroups(expected))
                if found == expected.iter().map(|group| group.map(GroupId)).collect::<Vec<_>>() => {}
            (found, expected) => panic!("{place}: sampling {found:?} is not {expected:?}"),
        }
    }
}

/// The networks of the case as the strategy saves them.
fn networks(strategy: &mut dyn Strategy, case: &Case) -> BTreeMap<String, Numbers> {
    let folder = tempfile::tempdir().unwrap();
    strategy.save(folder.path(), Saved::Everything).unwrap();
    case.weights.keys().map(|file| (file.clone(), record::read(folder.path(), file))).collect()
}

fn compare(name: &str) {
    compare_on(name, name, table);
}

/// With the head `binary` on a table of classes.
fn compare_of_a_class(name: &str) {
    compare_on(&format!("class/{name}"), name, class_table);
}

fn compare_on(file: &str, name: &str, table: fn() -> Table) {
    let golden: Golden = golden(file);
    assert_eq!(golden.strategy, name);
    let mut compared = Compared::default();
    for case in &golden.cases {
        let head: HeadConfig = serde_json::from_value(json!({ &case.head: {} })).unwrap();
        let world = World::new(table(), &head, golden.seed);
        let mut training = Training::new(&golden, case, &world, &mut compared);
        let place = format!("{name} ({}), {}", case.name, case.head);
        training.compare_sampling(&place);
        for (k, event) in case.events.iter().enumerate() {
            training.follow(&format!("{place}, event {k}"), event);
        }
    }
    let Compared { numbers, worst } = compared;
    println!("{name}: {numbers} numbers of {} cases, at most {worst:.2} of what is allowed", golden.cases.len());
    assert!(numbers > 100 && !golden.cases.is_empty());
}

macro_rules! worked_steps {
    ($($test:ident = $name:literal),* $(,)?) => {
        const WORKED: &[&str] = &[$($name),*];
        $(#[test] fn $test() { compare($name); })*
    };
}

worked_steps! {
    erm = "erm",
    subgroup_rebalancing = "subgroup-rebalancing",
    group_dro = "group-dro",
    domain_independent = "domain-independent",
    controlled_attribute = "controlled-attribute",
    sam = "sam",
    swad = "swad",
    recalibration = "recalibration",
    laftr = "laftr",
    cfair = "cfair",
    lnl = "lnl",
    odr = "odr",
    fair_representation = "fair-representation",
    end = "end",
    dro_chi_square = "dro-chi-square",
    febs = "febs",
}

macro_rules! worked_steps_of_a_class {
    ($($test:ident = $name:literal),* $(,)?) => {
        const WORKED_OF_A_CLASS: &[&str] = &[$($name),*];
        mod of_a_class {
            $(#[test] fn $test() { super::compare_of_a_class($name); })*
        }
    };
}

// `recalibration` has maps of its own for a class, with worked cases of their own.
worked_steps_of_a_class! {
    erm = "erm",
    subgroup_rebalancing = "subgroup-rebalancing",
    group_dro = "group-dro",
    domain_independent = "domain-independent",
    controlled_attribute = "controlled-attribute",
    sam = "sam",
    swad = "swad",
    laftr = "laftr",
    cfair = "cfair",
    lnl = "lnl",
    odr = "odr",
    fair_representation = "fair-representation",
    end = "end",
    dro_chi_square = "dro-chi-square",
    febs = "febs",
}

#[test]
fn every_strategy_of_the_catalogue_has_worked_steps() {
    for (name, _) in StrategyConfig::catalogue() {
        assert!(WORKED_OF_A_CLASS.contains(&name) || name == "recalibration", "{name}");
        assert!(WORKED.contains(&name) && Path::new(FOLDER).join(format!("{name}.json")).exists(), "{name}");
    }
}
