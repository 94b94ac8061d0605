//! Effects of the adversarial strategies on simulated tables: column 0 depends on the group (+-1 with deviation 0.5: the
//! best rule is right for 97.7 %), columns 1 and 2 determine the risk, five columns are noise; the group has no effect on
//! the risk.
//!
//! The probe is a fresh linear rule for the group: ridge least squares on the standardised representation of the training
//! samples in evaluation mode, its accuracy measured on 400 new ones; five seeds, paired with `erm` by seed.
//!
//! A first run had 240 samples, 240 steps and every network's step size at 1e-3, and expected each strategy below `erm` by 0.05
//! on average. Only `cfair` came near it (-0.05; `laftr` +0.02 and 0.00, `lnl` and `odr` +0.01). On two other seeds
//! (101, 102) the reasons became visible. `laftr`: an adversary of one step per batch lags; the encoder inverts its
//! predictions (`L_adv` below 0) and back instead of losing the group. With ten steps it keeps up; a step size of
//! 1e-2 instead saturates its L1 loss, and it stops learning at `L_adv` = 0. `lnl`: likewise, the predictor needs the
//! larger step size. `odr`: over 64 entries the distance to the prior empties the sensitive code, the classifier learns
//! nothing there and its entropy is uninformative; a code of 8 with a tenth of the weight hides the group, but it does so
//! without the entropy term too (-0.32 against -0.34).
//!
//! Stated before the run on the seeds below, with 800 samples and 400 steps: each strategy, at the settings of the test, is
//! below `erm` in at least four of five seeds and by at least 0.05 on average; `erm` itself is at 0.85 or above in all.
//!
//! *Controls.* The same is asserted against the method itself with its weights at 0: its passes, second network and noise
//! stay, but it has no effect on the encoder. `odr` loses part of its distance by that (0.16 in place of 0.31: two noisy
//! codes of 8
//! hide part of the group by themselves), and no effect of its entropy term was seen: without it, the distances to the
//! priors alone, the probe is as low (0.007 apart, asserted to be within 0.05).
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the sizes are worth seeing")]

use crate::common::{N_COLUMNS, Study, Table, probe};
use burn::module::Module as _;
use burn::tensor::{Device, Tensor};
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{
    Accumulation, Cfair, CfairConfig, CfairMode, CfairScaling, CfairWeights, Clock, Laftr, LaftrConfig, LaftrMode, Lnl,
    LnlConfig, Odr, OdrConfig, Saved, StepContext, StepReport, StratumConfig, StratumKind,
};
use fairtte_fairness::{
    CurveRule, EncoderNetwork as _, Freeze, Learner, Outputs, Pretrained, PretrainedConfig, Strategy, StrategyConfig,
};
use fairtte_metrics::GroupId;
use fairtte_metrics::seeds::stream;
use fairtte_models::weights::{Gray, Layout, WeightFile};
use fairtte_models::{ImageEncoder, MlpConfig, Noise};
use fairtte_survival::{NnetSurvival, NoSettings, PredictionGrid};
use rand::RngExt as _;

const BATCH: usize = 40;

impl Study {
    fn without_batch_norm(mut self) -> Self {
        self.spec.network.encoder.mlp = Some(MlpConfig { batch_norm: false, ..MlpConfig::default() });
        self
    }

    fn step(&self, strategy: &mut dyn Strategy, rows: &[usize], step: usize, accumulation: Accumulation) -> StepReport {
        let batch = self.train.batch(rows, &Device::flex().autodiff());
        self.accumulate(strategy, &batch, step, accumulation)
    }

    fn step_on(&self, strategy: &mut dyn Strategy, batch: &Batch, step: usize) -> StepReport {
        self.accumulate(strategy, batch, step, Accumulation::default())
    }

    fn accumulate(
        &self,
        strategy: &mut dyn Strategy,
        batch: &Batch,
        step: usize,
        accumulation: Accumulation,
    ) -> StepReport {
        let clock = Clock::default();
        let (head, cut_points, seed) = (&NnetSurvival, &self.cut_points, self.spec.seed);
        let context = StepContext {
            outputs: Outputs { head, cut_points },
            seed,
            epoch: 0,
            step,
            rate: 1.0,
            accumulation,
            loss_scale: 1.0,
            clock: &clock,
        };
        strategy.step(batch, &context).unwrap()
    }

    /// Trains on batches in an order drawn anew for each epoch; returns the last report.
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

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const EPOCHS: usize = 20;
/// `odr`, against the same without its entropy term.
const ONLY_THE_ENTROPY: &str = "the entropy term of odr";

/// Representation of all samples of a table in evaluation mode.
type Represent<'a> = Box<dyn Fn(&Batch) -> Tensor<2> + 'a>;

/// Probe accuracy under a method, and under the same with its weights at 0.
#[derive(Clone, Copy, Debug)]
struct Method {
    name: &'static str,
    found: f64,
    control: f64,
}

impl Method {
    fn new(name: &'static str, found: f64, control: f64) -> Self {
        Self { name, found, control }
    }
}

/// Probe accuracy of each method on one seed, `erm` first.
fn accuracies(seed: u64) -> Vec<Method> {
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
    let of_erm = survival(learner.network());
    found.push(Method::new("erm", of_erm, of_erm));

    let laftr = |mode, gamma| {
        let config =
            LaftrConfig { mode, gamma, aud_steps: 10, adversary_learning_rate: 1e-3, ..LaftrConfig::default() };
        let mut laftr = Laftr::new(&config, &study.spec, &study.cells).unwrap();
        study.train(&mut laftr, EPOCHS);
        survival(laftr.network())
    };
    let cfair = |lambda| {
        let (mode, scaling, weights) = (CfairMode::Cfair, CfairScaling::Reversal, CfairWeights::Batch);
        let config =
            CfairConfig { mode, lambda, scaling, weights, stratum: StratumConfig::default(), balanced_sampler: false };
        let mut cfair = Cfair::new(&config, &study.spec, &study.cells).unwrap();
        study.train(&mut cfair, EPOCHS);
        survival(cfair.network())
    };
    let lnl = |lambda, mu| {
        let config = LnlConfig { lambda, mu, predictor_learning_rate: 1e-2, balanced_sampler: false };
        let mut lnl = Lnl::new(&config, &study.spec, &study.cells).unwrap();
        study.train(&mut lnl, EPOCHS);
        survival(lnl.network())
    };
    let odr = |lambda_entropy, lambda_orthogonality| {
        let config = OdrConfig {
            lambda_entropy,
            lambda_orthogonality,
            gamma_entropy: 1.0,
            gamma_orthogonality: 1.0,
            schedule_epochs: 20.0,
            code: 8,
            classifier_learning_rate: 1e-3,
            balanced_sampler: false,
        };
        let mut odr = Odr::new(&config, &study.spec, &study.cells).unwrap();
        study.train(&mut odr, EPOCHS);
        let network = odr.network().valid();
        measure(Box::new(move |batch| network.target_mean(batch).unwrap()))
    };
    found.push(Method::new("laftr dp", laftr(LaftrMode::Dp, 1.0), laftr(LaftrMode::Dp, 0.0)));
    found.push(Method::new("laftr eqodd", laftr(LaftrMode::Eqodd, 1.0), laftr(LaftrMode::Eqodd, 0.0)));
    found.push(Method::new("cfair", cfair(1.0), cfair(0.0)));
    found.push(Method::new("lnl", lnl(1.0, 1.0), lnl(0.0, 0.0)));
    found.push(Method::new("odr", odr(1.0, 0.01), odr(0.0, 0.0)));
    found.push(Method::new(ONLY_THE_ENTROPY, found[5].found, odr(0.0, 0.01)));
    found
}

#[test]
fn a_fresh_probe_finds_the_group_less_often_than_without_the_adversary() {
    let by_seed: Vec<Vec<Method>> = SEEDS.iter().map(|seed| accuracies(*seed)).collect();
    let of = |method: usize, number: fn(&Method) -> f64| -> Vec<f64> {
        by_seed.iter().map(|of_seed| number(&of_seed[method])).collect()
    };
    let erm = of(0, |method| method.found);
    assert!(erm.iter().all(|accuracy| *accuracy >= 0.85), "erm forgot the group: {erm:?}");
    for (method, Method { name, .. }) in by_seed[0].iter().enumerate().skip(1) {
        let (found, control) = (of(method, |method| method.found), of(method, |method| method.control));
        for (than, without) in [("erm", &erm), ("its weights at 0", &control)] {
            let gaps: Vec<f64> = found.iter().zip(without).map(|(found, without)| found - without).collect();
            println!("{name}: probe accuracy {found:.3?}, {than} {without:.3?}, minus that {gaps:.3?}");
            if *name == ONLY_THE_ENTROPY {
                // No effect beyond that of the priors was seen.
                assert!(than == "erm" || (gaps.iter().sum::<f64>() / 5.0).abs() < 0.05, "{name}: {gaps:?}");
                continue;
            }
            assert!(gaps.iter().filter(|gap| **gap < 0.0).count() >= 4, "{name} against {than}: {gaps:?}");
            assert!(gaps.iter().sum::<f64>() / 5.0 <= -0.05, "{name} against {than}: {gaps:?}");
        }
    }
}

/// Each strategy in a form whose task is that of `erm`.
fn four() -> [StrategyConfig; 4] {
    [
        StrategyConfig::Laftr(LaftrConfig { mode: LaftrMode::Dp, gamma: 1.0, aud_steps: 1, ..LaftrConfig::default() }),
        StrategyConfig::Cfair(CfairConfig { mode: CfairMode::CfairEo, ..CfairConfig::default() }),
        StrategyConfig::Lnl(LnlConfig { predictor_learning_rate: 1e-3, ..LnlConfig::default() }),
        StrategyConfig::Odr(OdrConfig::default()),
    ]
}

#[test]
fn a_batch_without_two_groups_trains_the_task_as_plain_training_does() {
    let study = Study::new(Table::new(240, 7), 7);
    for only in [None, Some(GroupId(0))] {
        let batch = |step: usize| {
            let rows: Vec<usize> = (step * BATCH..(step + 1) * BATCH).collect();
            let mut batch = study.train.batch(&rows, &Device::flex().autodiff());
            batch.groups.iter_mut().enumerate().for_each(|(i, group)| *group = only.filter(|_| i % 3 > 0));
            batch
        };
        let mut erm = study.erm();
        let reports: Vec<StepReport> = (0..4).map(|step| study.step_on(erm.as_mut(), &batch(step), step)).collect();
        for config in four() {
            let mut strategy = config.build(&study.spec, &study.cells).unwrap();
            for (step, of_erm) in reports.iter().enumerate() {
                let report = study.step_on(strategy.as_mut(), &batch(step), step);
                assert_eq!(report.absent_groups, if only.is_some() { 1 } else { 2 }, "{}", strategy.name());
                if strategy.name() == "odr" {
                    // The entropy term and the group's cross-entropy.
                    assert!(report.terms[0].1.abs() + report.terms[2].1.abs() < 1e-12, "{report:?}");
                } else {
                    assert_eq!((report.task_loss, report.objective), (of_erm.task_loss, of_erm.objective));
                    assert!(report.terms.is_empty(), "{report:?}");
                }
            }
            if strategy.name() != "odr" {
                assert_eq!(study.curves(strategy.as_ref()), study.curves(erm.as_ref()), "{}", strategy.name());
            }
        }
    }
}

// Samples without a group train the network, but do not enter the input of the adversaries: half of a batch without a
// group gives another task loss than that half left out, and the same terms. Without batch norm a sample's representation
// does not depend on the others.
#[test]
fn samples_without_a_group_train_the_task_alone() {
    let study = Study::new(Table::new(240, 8), 8).without_batch_norm();
    let rows: Vec<usize> = (0..2 * BATCH).collect();
    let device = Device::flex().autodiff();
    let (mut whole, known) = (study.train.batch(&rows, &device), study.train.batch(&rows[..BATCH], &device));
    whole.groups[BATCH..].fill(None);
    for config in four() {
        let step = |batch: &Batch| study.step_on(config.build(&study.spec, &study.cells).unwrap().as_mut(), batch, 0);
        let (of_whole, of_known) = (step(&whole), step(&known));
        assert!((of_whole.task_loss - of_known.task_loss).abs() > 1e-3);
        // The distances of ODR's codes to their priors are means over all samples, and its noise is drawn for more of them.
        if !matches!(config, StrategyConfig::Odr(_)) {
            for (of_whole, of_known) in of_whole.terms.iter().zip(&of_known.terms) {
                assert!((of_whole.1 - of_known.1).abs() < 1e-5, "{of_whole:?} {of_known:?}");
            }
            assert!(!of_known.terms.is_empty());
        }
    }
}

#[test]
fn three_groups_and_a_group_of_one_sample_are_trained() {
    let mut table = Table::new(240, 9);
    table.groups[17] = Some(GroupId(2));
    table.groups.iter_mut().step_by(7).for_each(|group| *group = None);
    let study = Study::new(table, 9);
    for config in four() {
        if let StrategyConfig::Cfair(_) = config {
            let error = config.build(&study.spec, &study.cells).err().unwrap();
            let expected = "strategy cfair needs 10 training samples in every cell of group and stratum; group level 2";
            assert!(error.to_string().starts_with(expected), "{error}");
            continue;
        }
        let mut strategy = config.build(&study.spec, &study.cells).unwrap();
        let report = study.train(strategy.as_mut(), 2);
        assert!(report.objective.is_finite() && report.absent_groups <= 1, "{report:?}");
        let with_it = study.step(strategy.as_mut(), &(0..BATCH).collect::<Vec<_>>(), 99, Accumulation::default());
        assert_eq!(with_it.absent_groups, 0);
    }
}

// Without a penalty the encoder keeps column 0; an adversary that learns finds the group in it. Chance is ln 2 = 0.69,
// and 0 for LAFTR's gain, whose maximum is 1.
#[test]
fn an_adversary_that_nobody_resists_finds_the_group() {
    let study = Study::new(Table::new(400, 10), 10);
    let last = |config: &StrategyConfig, term: usize| {
        study.train(config.build(&study.spec, &study.cells).unwrap().as_mut(), 20).terms[term].1
    };
    // Adam's steps hardly depend on the scale of gradients, so a weight of 1e-4 still trains the adversary.
    let laftr = LaftrConfig { mode: LaftrMode::Dp, gamma: 1e-4, aud_steps: 1, ..LaftrConfig::default() };
    let gain = last(&StrategyConfig::Laftr(laftr), 0);
    let cfair = last(&StrategyConfig::Cfair(CfairConfig { lambda: 0.0, ..CfairConfig::default() }), 0);
    let lnl = last(&StrategyConfig::Lnl(LnlConfig { lambda: 0.0, mu: 0.0, ..LnlConfig::default() }), 1);
    let odr = OdrConfig { lambda_entropy: 0.0, lambda_orthogonality: 0.0, ..OdrConfig::default() };
    let odr = last(&StrategyConfig::Odr(odr), 2);
    println!("gain {gain:.3}; cross-entropies {cfair:.3} {lnl:.3} {odr:.3}");
    assert!(gain > 0.6 && cfair < 0.35 && lnl < 0.35 && odr < 0.45);
}

#[test]
fn weights_move_with_the_last_of_the_batches_that_make_a_step() {
    let study = Study::new(Table::new(240, 11), 11).without_batch_norm();
    let rows = |half: usize| (half * BATCH..(half + 1) * BATCH).collect::<Vec<_>>();
    for config in four() {
        let mut strategy = config.build(&study.spec, &study.cells).unwrap();
        let name = strategy.name();
        let before = study.curves(strategy.as_ref());
        study.step(strategy.as_mut(), &rows(0), 0, Accumulation { of: 2, last: false });
        assert_eq!(study.curves(strategy.as_ref()), before, "{name} changes before its step is complete");
        study.step(strategy.as_mut(), &rows(1), 1, Accumulation { of: 2, last: true });
        let after = study.curves(strategy.as_ref());
        assert_ne!(after, before, "{name}");
        // The same two batches with the second one first: the sum of their gradients does not depend on the order.
        if name == "lnl" || name == "odr" {
            continue; // the reversed gradient of the last batch is that of updated weights; noise is drawn by step
        }
        let mut other = config.build(&study.spec, &study.cells).unwrap();
        study.step(other.as_mut(), &rows(1), 0, Accumulation { of: 2, last: false });
        study.step(other.as_mut(), &rows(0), 1, Accumulation { of: 2, last: true });
        for (a, b) in after.iter().zip(study.curves(other.as_ref())) {
            assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
        }
    }
}

// The first of two batches has both groups, the last none: the gradient that the adversary has from the first is not lost.
#[test]
fn a_step_that_ends_with_a_batch_without_groups_moves_the_adversary_by_the_batches_before() {
    let study = Study::new(Table::new(240, 11), 11).without_batch_norm();
    let batch = |half: usize, has_groups: bool| {
        let rows: Vec<usize> = (half * BATCH..(half + 1) * BATCH).collect();
        let mut batch = study.train.batch(&rows, &Device::flex().autodiff());
        batch.groups.iter_mut().for_each(|group| *group = group.filter(|_| has_groups));
        batch
    };
    let folder = tempfile::tempdir().unwrap();
    for config in four() {
        let mut strategy = config.build(&study.spec, &study.cells).unwrap();
        let second = match strategy.name() {
            "laftr" => "adversary",
            "lnl" => "predictor",
            "odr" => "group-classifier",
            _ => continue, // its adversaries are updated with the network
        };
        let weights = |strategy: &mut dyn Strategy| {
            strategy.save(folder.path(), Saved::Everything).unwrap();
            std::fs::read(folder.path().join(format!("{second}.weights.bpk"))).unwrap()
        };
        for (has_groups, moves) in [(true, true), (false, false)] {
            let before = weights(strategy.as_mut());
            let first = Accumulation { of: 2, last: false };
            study.accumulate(strategy.as_mut(), &batch(0, has_groups), 0, first);
            assert!(weights(strategy.as_mut()) == before, "{second} moves before the step is complete");
            study.accumulate(strategy.as_mut(), &batch(1, false), 1, Accumulation { of: 2, last: true });
            let is_moved = weights(strategy.as_mut()) != before;
            assert_eq!(is_moved, moves, "{second}, groups in the first batch: {has_groups}");
        }
    }
}

/// Weights of the default `mlp` backbone, without a pattern that training would find.
fn backbone_weights() -> Vec<u8> {
    let mut tensors = Vec::new();
    for (layer, from) in [N_COLUMNS, 32].into_iter().enumerate() {
        tensors.push((format!("layers.{layer}.dense.weight"), vec![from, 32]));
        tensors.push((format!("layers.{layer}.dense.bias"), vec![32]));
        for part in ["gamma", "beta", "running_mean", "running_var"] {
            tensors.push((format!("layers.{layer}.norm.{part}"), vec![32]));
        }
    }
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), serde_json::json!({ "fairtte.backbone": "mlp" }));
    let mut data: Vec<u8> = Vec::new();
    for (name, shape) in tensors {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        let base = if name.ends_with("gamma") || name.ends_with("var") { 1.0 } else { 0.0 };
        data.extend((0..n).flat_map(|i| (base + 0.3 * (i as f32 * 0.7).sin()).to_le_bytes()));
        header.insert(name, serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

#[test]
fn a_frozen_start_from_a_file_stays_under_every_adversary() {
    let mut study = Study::new(Table::new(240, 12), 12);
    let path = std::path::PathBuf::from("w.safetensors");
    let file = std::sync::Arc::new(WeightFile::parse(&path, backbone_weights()).unwrap());
    let (layout, gray, freeze) = (Layout::Auto, Gray::Auto, Freeze::AllButHead);
    let config = PretrainedConfig { path, sha256: None, layout, gray, freeze, head_learning_rate: Some(1e-2) };
    study.spec.pretrained = Some(Pretrained { file, config });
    let pixels = || study.train.whole().pixels;
    let features = |encoder: &ImageEncoder| -> Vec<f32> {
        encoder.backbone().forward(pixels(), &mut Noise::Off).unwrap().into_data().try_to_vec().unwrap()
    };
    let representation = |encoder: &ImageEncoder| -> Vec<f32> {
        encoder.forward(pixels(), &mut Noise::Off).unwrap().into_data().try_to_vec().unwrap()
    };
    let expected = features(Learner::new(&study.spec, "network").unwrap().network().valid().encoder());
    let check = |name: &str, before: Vec<f32>, encoder: &ImageEncoder| {
        assert_eq!(features(encoder), expected, "{name}");
        assert_ne!(representation(encoder), before, "{name}: the projection is trained");
    };
    let mut laftr = Laftr::new(&LaftrConfig::default(), &study.spec, &study.cells).unwrap();
    let before = representation(laftr.network().valid().encoder());
    study.train(&mut laftr, 1);
    check("laftr", before.clone(), laftr.network().valid().encoder());
    let mut cfair = Cfair::new(&CfairConfig::default(), &study.spec, &study.cells).unwrap();
    study.train(&mut cfair, 1);
    check("cfair", before.clone(), cfair.network().valid().encoder());
    let mut lnl = Lnl::new(&LnlConfig::default(), &study.spec, &study.cells).unwrap();
    study.train(&mut lnl, 1);
    check("lnl", before, lnl.network().valid().encoder());
    let mut odr = Odr::new(&OdrConfig::default(), &study.spec, &study.cells).unwrap();
    let before = representation(odr.network().valid().encoder());
    study.train(&mut odr, 1);
    check("odr", before, odr.network().valid().encoder());
}

#[test]
fn one_group_alone_cannot_be_told_from_another() {
    let mut table = Table::new(240, 13);
    table.groups.fill(Some(GroupId(0)));
    let study = Study::new(table, 13);
    for config in four() {
        let error = config.build(&study.spec, &study.cells).err().unwrap();
        let expected = "needs at least two groups, but all training samples with a value of \
                        attribute \"group\" are in group level 0";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[test]
fn every_option_trains() {
    let study = Study::new(Table::new(800, 14), 14);
    let laftr = |mode, kind| {
        let bins = if kind == StratumKind::EventXBin { 2 } else { StratumConfig::default().bins };
        let stratum = StratumConfig { kind, bins };
        StrategyConfig::Laftr(LaftrConfig { mode, stratum, aud_steps: 2, ..LaftrConfig::default() })
    };
    let cfair = |scaling, weights| {
        StrategyConfig::Cfair(CfairConfig { scaling, weights, lambda: 1.0, ..CfairConfig::default() })
    };
    let options = [
        laftr(LaftrMode::Eqopp0, StratumKind::StatusAtHorizon),
        laftr(LaftrMode::Eqopp1, StratumKind::Event),
        laftr(LaftrMode::Eqodd, StratumKind::EventXBin),
        cfair(CfairScaling::Both, CfairWeights::Batch),
        cfair(CfairScaling::Reversal, CfairWeights::Training),
    ];
    for config in options {
        let mut strategy = config.build(&study.spec, &study.cells).unwrap();
        let first = study.train(strategy.as_mut(), 1);
        let last = study.train(strategy.as_mut(), 10);
        assert!(last.task_loss < first.task_loss && last.terms[0].1.is_finite(), "{config:?}: {first:?} {last:?}");
    }
}
