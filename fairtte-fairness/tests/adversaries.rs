//! What the adversarial strategies do, on simulated tables: column 0 tells the group (+-1 with deviation 0.5: the best rule is
//! right for 97.7 %), columns 1 and 2 the risk, five columns nothing; the group has no part in the risk.
//!
//! The probe is a fresh linear rule for the group: ridge least squares on the standardised representation of the training
//! samples in evaluation mode, its accuracy read on 400 new ones; five seeds, paired with `erm` by seed.
//!
//! A first run had 240 samples, 240 steps and every network's step size at 1e-3, and expected each strategy below `erm` by 0.05
//! on average. Only `cfair` was near it (-0.05; `laftr` +0.02 and 0.00, `lnl` and `odr` +0.01). On two other seeds (101, 102) the
//! reasons showed. `laftr`: an adversary of one step per batch lags; the encoder turns its guesses round (`L_adv` below 0) and
//! back instead of losing the group. With ten steps it keeps up; a step size of 1e-2 instead saturates its L1 loss, and it
//! stops learning at `L_adv` = 0. `lnl`: likewise, the predictor needs the larger step size. `odr`: over 64 entries the
//! distance to the prior empties the sensitive code, the classifier learns nothing there and its entropy says nothing; a
//! code of 8 with a tenth of the weight hides the group, but it does so without the entropy term too (-0.32 against -0.34).
//!
//! Stated before the run on the seeds below, with 800 samples and 400 steps: each strategy, at the settings of the test, is
//! below `erm` in at least four of five seeds and by at least 0.05 on average; `erm` itself is at 0.85 or above in all.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the sizes are worth seeing")]

use burn::module::Module as _;
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_fairness::strategies::{
    Accumulation, Cfair, CfairConfig, CfairMode, Clock, Laftr, LaftrConfig, LaftrMode, Lnl, LnlConfig, Odr, OdrConfig,
    Saved, StepContext, StepReport, TrainingCells,
};
use fairtte_fairness::{
    CurveRule, FairnessError, Learner, LearnerSpec, NetworkSpec, OptimiserConfig, Strategy, StrategyConfig,
};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{GroupId, Outcomes, SampleId};
use fairtte_models::{BackboneKind, Batch, EncoderConfig, Noise, Pixels};
use fairtte_survival::{ClassifierConfig, CutPoints, NnetSurvival, NoSettings, PredictionGrid};
use rand::RngExt as _;

const N_COLUMNS: usize = 8;
const BATCH: usize = 40;

/// A simulated table.
struct Table {
    rows: Vec<[f32; N_COLUMNS]>,
    groups: Vec<Option<GroupId>>,
    time: Vec<f64>,
    event: Vec<bool>,
}

impl Table {
    fn new(n: usize, seed: u64) -> Self {
        let mut stream = stream(seed, "simulate-table", &[n as u64]);
        let mut uniform = || stream.random::<f64>();
        let mut table = Self { rows: Vec::new(), groups: Vec::new(), time: Vec::new(), event: Vec::new() };
        for i in 0..n {
            let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let mut row: [f64; N_COLUMNS] = std::array::from_fn(|_| normal());
            row[0] = (if i % 2 == 0 { -1.0 } else { 1.0 }) + 0.5 * row[0];
            let time = -uniform().max(1e-9).ln() / (row[1] + 0.5 * row[2]).exp();
            let censoring = 3.0 * uniform();
            #[expect(clippy::cast_possible_truncation, reason = "inputs are f32")]
            table.rows.push(row.map(|x| x as f32));
            table.groups.push(Some(GroupId(u32::from(i % 2 == 1))));
            table.time.push(time.min(censoring).max(1e-3));
            table.event.push(time <= censoring);
        }
        table
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Batch {
        let values: Vec<f32> = rows.iter().flat_map(|row| self.rows[*row]).collect();
        Batch {
            rows: rows.to_vec(),
            sample_ids: rows.iter().map(|row| SampleId::new(format!("s{row}"))).collect(),
            pixels: Pixels::Table(Tensor::from_data(TensorData::new(values, [rows.len(), N_COLUMNS]), device)),
            time: rows.iter().map(|row| self.time[*row]).collect(),
            event: rows.iter().map(|row| self.event[*row]).collect(),
            groups: rows.iter().map(|row| self.groups[*row]).collect(),
        }
    }

    fn whole(&self) -> Batch {
        self.batch(&(0..self.rows.len()).collect::<Vec<_>>(), &Device::flex())
    }
}

/// A training part, and what is fitted on it.
struct Study {
    train: Table,
    cut_points: CutPoints,
    spec: LearnerSpec,
    cells: TrainingCells,
}

impl Study {
    fn new(train: Table, seed: u64) -> Self {
        let outcomes = Outcomes::new(train.time.clone(), train.event.clone()).unwrap();
        let cut_points = CutPoints::equidistant(&outcomes, 8).unwrap();
        let encoder = EncoderConfig { dropout: 0.0, ..EncoderConfig::new(BackboneKind::Mlp) };
        let classifier = ClassifierConfig::for_head(&NnetSurvival, &cut_points, &outcomes, encoder.hidden).unwrap();
        let spec = LearnerSpec {
            network: NetworkSpec { encoder, channels: N_COLUMNS, classifier },
            optimiser: OptimiserConfig::default(),
            seed,
            device: Device::flex(),
            pretrained: None,
        };
        let n_levels = train.groups.iter().flatten().map(|group| group.index() + 1).max().unwrap_or(0);
        let cells = TrainingCells {
            attribute: "group".to_owned(),
            levels: (0..n_levels).map(|g| format!("level {g}")).collect(),
            groups: train.groups.clone(),
            event: train.event.clone(),
            interval: cut_points.targets("training", &train.time, &train.event).unwrap().intervals.index,
            n_cut_points: cut_points.n(),
        };
        Self { train, cut_points, spec, cells }
    }

    fn step(&self, strategy: &mut dyn Strategy, rows: &[usize], step: usize, accumulation: Accumulation) -> StepReport {
        let clock = Clock::default();
        let (head, cut_points, seed) = (&NnetSurvival, &self.cut_points, self.spec.seed);
        let context = StepContext { head, cut_points, seed, epoch: 0, step, rate: 1.0, accumulation, clock: &clock };
        strategy.step(&self.train.batch(rows, &Device::flex().autodiff()), &context).unwrap()
    }

    /// Batches in an order that is drawn anew for each epoch; gives the last report.
    fn train(&self, strategy: &mut dyn Strategy, epochs: usize) -> StepReport {
        let mut last = None;
        for epoch in 0..epochs {
            let mut order: Vec<usize> = (0..self.train.rows.len()).collect();
            let mut stream = stream(self.spec.seed, "order", &[epoch as u64]);
            for i in (1..order.len()).rev() {
                order.swap(i, stream.random_range(0..=i));
            }
            let batches = order.chunks(BATCH).enumerate();
            for (i, rows) in batches {
                last = Some(self.step(strategy, rows, epoch * order.len() + i, Accumulation::default()));
            }
        }
        last.unwrap()
    }

    fn erm(&self) -> Box<dyn Strategy> {
        StrategyConfig::Erm(NoSettings {}).build(&self.spec, &self.cells).unwrap()
    }

    fn curves(&self, strategy: &dyn Strategy) -> Vec<f64> {
        let grid = PredictionGrid::at_cut_points(&self.cut_points);
        let rule = CurveRule { head: &NnetSurvival, grid: &grid };
        strategy.predict(&self.train.whole(), &rule).unwrap().into_raw_vec_and_offset().0
    }
}

/// Accuracy for the group of a linear rule that is fitted on one table and read on another, each `[n, width]`.
fn probe(train: (&Tensor<2>, &Table), test: (&Tensor<2>, &Table)) -> f64 {
    let rows = |tensor: &Tensor<2>| -> Vec<Vec<f64>> {
        let width = tensor.dims()[1];
        let values: Vec<f64> = tensor.clone().into_data().iter::<f64>().collect();
        values.chunks(width).map(<[f64]>::to_vec).collect()
    };
    let side = |table: &Table| -> Vec<f64> {
        table.groups.iter().map(|group| if *group == Some(GroupId(1)) { 1.0 } else { -1.0 }).collect()
    };
    let (mut of_train, mut of_test) = (rows(train.0), rows(test.0));
    let n = of_train.len() as f64;
    for k in 0..of_train[0].len() {
        let mean = of_train.iter().map(|row| row[k]).sum::<f64>() / n;
        let deviation = (of_train.iter().map(|row| (row[k] - mean).powi(2)).sum::<f64>() / n).sqrt().max(1e-12);
        for row in of_train.iter_mut().chain(&mut of_test) {
            row[k] = (row[k] - mean) / deviation;
        }
    }
    let coefficients = least_squares(&of_train, &side(train.1));
    let right = of_test.iter().zip(side(test.1)).filter(|(row, side)| {
        let value: f64 = row.iter().zip(&coefficients).map(|(x, c)| x * c).sum();
        value * side > 0.0
    });
    right.count() as f64 / of_test.len() as f64
}

/// Least squares with a ridge of 0.01 n, by elimination of the normal equations. Rows are centred and groups of
/// equal size, so no constant is needed.
fn least_squares(rows: &[Vec<f64>], side: &[f64]) -> Vec<f64> {
    let (n, width) = (rows.len() as f64, rows[0].len());
    let entry = |j: usize, k: usize| match k {
        k if k == width => rows.iter().zip(side).map(|(row, side)| row[j] * side).sum::<f64>(),
        k => rows.iter().map(|row| row[j] * row[k]).sum::<f64>() + if j == k { 0.01 * n } else { 0.0 },
    };
    let mut system: Vec<Vec<f64>> = (0..width).map(|j| (0..=width).map(|k| entry(j, k)).collect()).collect();
    for pivot in 0..width {
        let row = system[pivot].clone();
        for (j, other) in system.iter_mut().enumerate().filter(|(j, _)| *j != pivot) {
            let factor = other[pivot] / row[pivot];
            debug_assert!(factor.is_finite(), "row {j}");
            for k in pivot..=width {
                other[k] -= factor * row[k];
            }
        }
    }
    (0..width).map(|j| system[j][width] / system[j][j]).collect()
}

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const EPOCHS: usize = 20;

/// Representation of all samples of a table in evaluation mode.
type Represent<'a> = Box<dyn Fn(&Batch) -> Tensor<2> + 'a>;

/// Probe accuracy of each method on one seed, `erm` first.
fn accuracies(seed: u64) -> Vec<(&'static str, f64)> {
    let (study, test) = (Study::new(Table::new(800, seed), seed), Table::new(400, seed));
    let measure = |represent: Represent<'_>| {
        let (of_train, of_test) = (represent(&study.train.whole()), represent(&test.whole()));
        probe((&of_train, &study.train), (&of_test, &test))
    };
    let survival = |network: &fairtte_fairness::SurvivalNetwork| {
        let network = network.valid();
        measure(Box::new(move |batch| network.forward(batch, &[], &mut Noise::Off).unwrap().representation))
    };
    let mut found = Vec::new();

    let mut erm = study.erm();
    study.train(erm.as_mut(), EPOCHS);
    let folder = tempfile::tempdir().unwrap();
    erm.save(folder.path(), Saved::Weights).unwrap();
    let mut learner = Learner::new(&study.spec, "network").unwrap();
    learner.load(folder.path(), "network", Saved::Weights).unwrap();
    found.push(("erm", survival(learner.network())));

    for (name, mode) in [("laftr dp", LaftrMode::Dp), ("laftr eqodd", LaftrMode::Eqodd)] {
        let config = LaftrConfig { mode, aud_steps: 10, ..LaftrConfig::default() };
        let mut laftr = Laftr::new(&config, &study.spec, &study.cells).unwrap();
        study.train(&mut laftr, EPOCHS);
        found.push((name, survival(laftr.network())));
    }
    let config = CfairConfig { lambda: 1.0, ..CfairConfig::default() };
    let mut cfair = Cfair::new(&config, &study.spec, &study.cells).unwrap();
    study.train(&mut cfair, EPOCHS);
    found.push(("cfair", survival(cfair.network())));

    let config = LnlConfig { lambda: 1.0, mu: 1.0, predictor_learning_rate: 1e-2 };
    let mut lnl = Lnl::new(&config, &study.spec, &study.cells).unwrap();
    study.train(&mut lnl, EPOCHS);
    found.push(("lnl", survival(lnl.network())));

    let config = OdrConfig { code: 8, lambda_entropy: 1.0, lambda_orthogonality: 0.01, ..OdrConfig::default() };
    let mut odr = Odr::new(&config, &study.spec, &study.cells).unwrap();
    study.train(&mut odr, EPOCHS);
    let network = odr.network().valid();
    found.push(("odr", measure(Box::new(move |batch| network.target_mean(batch).unwrap()))));
    found
}

#[test]
fn a_fresh_probe_finds_the_group_less_often_than_after_plain_training() {
    let by_seed: Vec<Vec<(&str, f64)>> = SEEDS.iter().map(|seed| accuracies(*seed)).collect();
    for method in 0..by_seed[0].len() {
        let name = by_seed[0][method].0;
        let of_seeds: Vec<f64> = by_seed.iter().map(|of_seed| of_seed[method].1).collect();
        let gaps: Vec<f64> = by_seed.iter().map(|of_seed| of_seed[method].1 - of_seed[0].1).collect();
        println!("{name}: probe accuracy {of_seeds:.3?}, minus erm {gaps:.3?}");
    }
    for method in 1..by_seed[0].len() {
        let name = by_seed[0][method].0;
        let gaps: Vec<f64> = by_seed.iter().map(|of_seed| of_seed[method].1 - of_seed[0].1).collect();
        assert!(gaps.iter().filter(|gap| **gap < 0.0).count() >= 4, "{name}: {gaps:?}");
        assert!(gaps.iter().sum::<f64>() / 5.0 <= -0.05, "{name}: {gaps:?}");
    }
    assert!(by_seed.iter().all(|of_seed| of_seed[0].1 >= 0.85), "erm forgot the group");
}
