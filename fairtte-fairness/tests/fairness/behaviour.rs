//! Effects of the strategies without an adversary on simulated tables (`common/mod.rs`) with one planted bias each, trained
//! through `fit` with the multilayer perceptron; five seeds, paired with `erm` by seed. The adversarial strategies are in
//! `adversaries.rs`; `domain-independent` and `controlled-attribute`, where the labelling functions differ, in
//! `inside/differing_labels.rs`.
//!
//! Stated before the first run, on seeds 1 to 5:
//! - *The group is visible in the inputs and has no effect on the risk.* MMD^2 between the groups on 600 samples
//!   that were not trained on, with a bank around the median distance of the representation measured (so that a
//!   smaller one is no closer), is under `fair-representation` (median-scaled bank, lambda 10) at most half of
//!   that under `erm`, in all seeds; a fresh linear probe finds the group less often in four of five seeds and by
//!   0.05 on average. The same of the probe under `end` (1 and 1).
//! - *Shares.* `subgroup-rebalancing` draws cells within 0.01 of equal shares over 200 epochs; with `oversample`
//!   exactly.
//! - *A group of 15 % that is not visible in the inputs, in which column 1 lowers the risk as much as it raises
//!   it in the other.* The mean loss of the worse group on new samples is lower than under `erm`: `group-dro` in
//!   all seeds and by 0.05 on average; `febs` (gamma 5) in four of five and by 0.02; `dro-chi-square` (alpha
//!   0.2), which does not read the group, in four of five and by 0.01.
//! - *150 samples, 60 epochs, step size 5e-3.* `sam` (rho 0.2) has the lower loss on new samples after the last
//!   epoch in four of five seeds, by 0.02 on average. `swad` has a lower one than the best epoch of `erm` in four
//!   of five. Neither makes a claim about groups.
//! - *A group that is not visible in the inputs has 2.5 times the hazard.* With `recalibration` the mean over the
//!   groups of |mean curve minus Kaplan-Meier| in the middle of the grid is smaller in all seeds, and at most
//!   half on average.
//!
//! Two claims did not hold. `end` at 1 and 1 lowered the probe in all seeds, but by 0.02 (its MMD^2 was a quarter of
//! that under `erm`). On seeds 101 and 102 the entangling term alone (alpha 0, beta 5) brought the probe from 0.92 to
//! 0.80, and alpha 5 beside it back to 0.89: the disentangling term spreads the directions of a group apart and thereby
//! keeps the difference between the groups. `swad` was worse than the best epoch in all seeds, by 0.08: the source's ratio
//! continues the mean until the loss is 30 % above the valley, far into the overfitting. On seeds 101 and 102 a ratio
//! of 0.05 was as good as the best epoch at step size 5e-3, and better by 0.03 to 0.05 at 2e-2, where single epochs
//! scatter; 0.3 was worse by 0.07 there too.
//!
//! What `group-dro` (eta 0.01) gains here, equal weights gain too: with eta at 0 in its place, which leaves its balanced
//! sampler, the losses are the same. In 300 steps eta times the differences of the losses hardly changes a weight. The
//! further effect of changed weights is measured in docs/src/results/defaults.md.
//!
//! Stated before the run on seeds 11 to 15: `end` (0 and 5) lowers the probe in four of five seeds and by 0.05 on average;
//! `end` (1 and 1) has at most half of the MMD^2 of `erm` in four of five. `swad` (ratio 0.05; 600 samples, 20 epochs, step size
//! 2e-2) has a lower loss than the best epoch of `erm` in four of five, by 0.01 on average.
//!
//! *Controls.* Every claim is made against `erm` and against the method itself with its setting at 0, which has the
//! same sampler, passes and number of draws: `lambda` 0, `alpha` and `beta` 0, `gamma` 0, `alpha` 1; where 0 is rejected
//! a value without effect (`eta` 1e-12, `rho` 1e-12, 1e12 prior events); for `swad` the mean of the last epoch. All
//! claims but one hold against both.
//! *Group DRO* with the minority of 15 %: what it gains over `erm` is the gain of equal group weights (its sampler); on seeds 101
//! and 102 no step size from 0.003 to 1 was better than 1e-12, and 0.03 to 1 were worse, because the few samples of the
//! minority are memorised: their training loss is then the smaller one, and the weights shift to the majority. The
//! test asserts that both agree within 0.02. Its own effect was tested where sizes are equal and one group is harder
//! (2.5 times the hazard, column 1 with the opposite sign, 1,200 samples, 12 epochs). Stated before the run on seeds 1
//! to 5: with `eta` 0.01 and with 0.3 the worse group's loss is lower than with 1e-12 in four of five seeds and by 0.01
//! on average. Found: five by 0.015, and four by 0.025.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the sizes are worth seeing")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::{Plant, Study, Table, Trial, probe, rows_of};
use burn::module::Module as _;
use burn::tensor::Tensor;
use fairtte_data::Sampling;
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{
    AbsentGroup, Cells, DroChiSquareConfig, EndConfig, FairRepresentationConfig, FebsConfig, GroupDroConfig, Kernels,
    RebalancingMode, RecalibrationConfig, RecalibrationMethod, SamConfig, Saved, SubgroupRebalancingConfig, SwadConfig,
};
use fairtte_fairness::{CurveRule, Learner, Strategy, StrategyConfig, predict};
use fairtte_metrics::GroupId;
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_models::Noise;
use fairtte_survival::{NnetSurvival, NoSettings, PredictionGrid};
use ndarray::Array2;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const FRESH: [u64; 5] = [11, 12, 13, 14, 15];
const ERM: StrategyConfig = StrategyConfig::Erm(NoSettings {});

impl Trial {
    fn trained(&self, config: &StrategyConfig) -> Box<dyn Strategy> {
        self.trained_in(config, tempfile::tempdir().unwrap().path())
    }

    fn trained_in(&self, config: &StrategyConfig, folder: &Path) -> Box<dyn Strategy> {
        let mut strategy = config.build(&self.study.spec, &self.study.cells).unwrap();
        self.fit(strategy.as_mut(), folder, &AtomicBool::new(false)).unwrap();
        strategy
    }

    /// The strategy after its last epoch, and with the weights of the best epoch.
    fn last_and_chosen(&self, config: &StrategyConfig) -> [Box<dyn Strategy>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let chosen = self.trained_in(config, folder.path());
        let newest = std::fs::read_dir(folder.path().join("checkpoint")).unwrap().next().unwrap().unwrap().path();
        let mut last = config.build(&self.study.spec, &self.study.cells).unwrap();
        last.load(&newest.join("last"), Saved::Weights).unwrap();
        [last, chosen]
    }

    /// Curves of the test part at the cut points.
    fn curves(&self, strategy: &dyn Strategy) -> Array2<f64> {
        let grid = PredictionGrid::at_cut_points(&self.study.cut_points);
        let rule = CurveRule { head: &NnetSurvival, grid: &grid };
        predict(strategy, &self.loader(), &self.test, &rule, &self.study.spec.device).unwrap()
    }

    /// Negative log-likelihood of every sample of the test part, from the curves.
    fn losses(&self, strategy: &dyn Strategy) -> Vec<f64> {
        let outcomes = self.cohort.outcomes(&self.test).unwrap();
        let targets = self.study.cut_points.targets("training", outcomes.time(), outcomes.event()).unwrap().intervals;
        let curves = self.curves(strategy);
        let term = |i: usize| {
            let q = targets.index[i];
            let probability = if targets.event[i] { curves[[i, q - 1]] - curves[[i, q]] } else { curves[[i, q]] };
            -probability.max(1e-9).ln()
        };
        (0..self.test.len()).map(term).collect()
    }

    fn loss(&self, strategy: &dyn Strategy) -> f64 {
        mean(self.losses(strategy))
    }

    /// Mean loss of both groups in the test part.
    fn loss_by_group(&self, strategy: &dyn Strategy) -> [f64; 2] {
        let losses = self.losses(strategy);
        [0, 1].map(|g| mean(self.of_group(g).into_iter().map(|i| losses[i])))
    }

    /// Positions of a group in the test part.
    fn of_group(&self, g: u32) -> Vec<usize> {
        (0..self.test.len()).filter(|i| self.table.groups[self.test[*i]] == Some(GroupId(g))).collect()
    }

    /// Mean over the groups of |mean curve - Kaplan-Meier| in the middle of the grid.
    fn calibration_error(&self, strategy: &dyn Strategy) -> f64 {
        let cuts = self.study.cut_points.times();
        let middle = cuts.len() / 2;
        let curves = self.curves(strategy);
        mean([0, 1].map(|g| {
            let members = self.of_group(g);
            let rows: Vec<usize> = members.iter().map(|i| self.test[*i]).collect();
            let observed = KaplanMeier::fit(&self.cohort.outcomes(&rows).unwrap()).unwrap().at(cuts[middle]);
            (mean(members.into_iter().map(|i| curves[[i, middle]])) - observed).abs()
        }))
    }

    /// Representation of rows of the table in evaluation mode, for strategies that train one [`Learner`].
    fn representation(&self, strategy: &mut dyn Strategy, rows: &[usize]) -> Tensor<2> {
        let folder = tempfile::tempdir().unwrap();
        strategy.save(folder.path(), Saved::Weights).unwrap();
        let mut learner = Learner::new(&self.study.spec, "network").unwrap();
        learner.load(folder.path(), "network", Saved::Weights).unwrap();
        let loader = self.loader();
        let host = loader.batches(rows, rows.len(), &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
        let batch = Batch::from_host(host, &self.study.spec.device).unwrap();
        learner.network().valid().forward(&batch, &[], &mut Noise::Off).unwrap().representation
    }
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Differences to the first of each seed's values must be below 0 in at least `n_below` seeds, and at most `-size` on average.
fn assert_lower(what: &str, by_seed: &[(f64, f64)], n_below: usize, size: f64) {
    let differences: Vec<f64> = by_seed.iter().map(|(erm, value)| value - erm).collect();
    println!(
        "{what}: (without, it) {by_seed:.3?}, differences {differences:.3?}, mean {:.3}",
        mean(differences.clone())
    );
    assert!(differences.iter().filter(|d| **d < 0.0).count() >= n_below, "{what}: {differences:?}");
    assert!(mean(differences.clone()) <= -size, "{what}: {differences:?}");
}

/// Asserts that there is no effect: the mean difference is at most `size` in either direction.
fn assert_alike(what: &str, by_seed: &[(f64, f64)], size: f64) {
    let differences: Vec<f64> = by_seed.iter().map(|(without, value)| value - without).collect();
    println!(
        "{what}: (without, with) {by_seed:.3?}, differences {differences:.3?}, mean {:.3}",
        mean(differences.clone())
    );
    assert!(mean(differences.clone()).abs() <= size, "{what}: {differences:?}");
}

/// Biased estimate of MMD^2 between the rows of two groups, with kernels around the median squared distance of all pairs.
fn mmd2(rows: &[Vec<f64>], table: &Table) -> f64 {
    let distance = |i: usize, j: usize| rows[i].iter().zip(&rows[j]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let mut all: Vec<f64> =
        (0..rows.len()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| distance(i, j)).collect();
    all.sort_by(f64::total_cmp);
    let median = all[all.len() / 2];
    let kernel = |i: usize, j: usize| -> f64 {
        let squared = distance(i, j);
        [0.25, 0.5, 1.0, 2.0, 4.0].iter().map(|c| (-squared / (2.0 * c * median)).exp()).sum()
    };
    let members = |g| -> Vec<usize> { (0..rows.len()).filter(|i| table.groups[*i] == Some(GroupId(g))).collect() };
    let (a, b) = (members(0), members(1));
    let within = |x: &[usize], y: &[usize]| mean(x.iter().flat_map(|i| y.iter().map(|j| kernel(*i, *j))));
    within(&a, &a) + within(&b, &b) - 2.0 * within(&a, &b)
}

/// MMD^2 between the groups, and accuracy of a fresh probe for them, under each method.
fn traces_of_the_group<const N: usize>(seed: u64, methods: [&StrategyConfig; N]) -> [(f64, f64); N] {
    let trial = Trial::new(600, Plant::default(), seed);
    let (train, test) = (trial.table.part(&trial.train), trial.table.part(&trial.test));
    methods.map(|config| {
        let mut strategy = trial.trained(config);
        let of_train = trial.representation(strategy.as_mut(), &trial.train);
        let of_test = trial.representation(strategy.as_mut(), &trial.test);
        println!("seed {seed}, {}: test loss {:.3}", strategy.name(), trial.loss(strategy.as_ref()));
        (mmd2(&rows_of(&of_test), &test), probe((&of_train, &train), (&of_test, &test)))
    })
}

#[test]
fn matching_distributions_brings_the_groups_closer_and_hides_them_from_a_probe() {
    let frl = |lambda| {
        StrategyConfig::FairRepresentation(FairRepresentationConfig {
            lambda,
            kernels: Kernels::MedianScaled,
            ..FairRepresentationConfig::default()
        })
    };
    let by_seed = SEEDS.map(|seed| traces_of_the_group(seed, [&ERM, &frl(0.0), &frl(10.0)]));
    for (of, k) in [("erm", 0), ("lambda 0", 1)] {
        let mmd = by_seed.map(|found| (found[k].0, found[2].0));
        assert_lower(&format!("fair-representation against {of}: MMD^2"), &mmd, 5, 0.0);
        assert!(mmd.iter().all(|(without, frl)| *frl <= 0.5 * without), "{mmd:?}");
        let probes = by_seed.map(|found| (found[k].1, found[2].1));
        assert_lower(&format!("fair-representation against {of}: probe"), &probes, 4, 0.05);
    }
}

#[test]
fn entangling_strata_hides_the_groups_and_disentangling_shows_them() {
    let end = |alpha, beta| StrategyConfig::End(EndConfig { alpha, beta, ..EndConfig::default() });
    let methods = [&ERM, &end(0.0, 0.0), &end(0.0, 5.0), &end(1.0, 1.0)];
    let by_seed = FRESH.map(|seed| traces_of_the_group(seed, methods));
    for (of, k) in [("erm", 0), ("0 and 0", 1)] {
        let probes = by_seed.map(|found| (found[k].1, found[2].1));
        assert_lower(&format!("end (0 and 5) against {of}: probe"), &probes, 4, 0.05);
        let mmd = by_seed.map(|found| (found[k].0, found[3].0));
        assert_lower(&format!("end (1 and 1) against {of}: MMD^2"), &mmd, 4, 0.0);
        assert!(mmd.iter().filter(|(without, both)| *both <= 0.5 * without).count() >= 4, "{mmd:?}");
    }
    println!("end (1 and 1): probe (erm, it) {:.3?}", by_seed.map(|found| (found[0].1, found[3].1)));
}

#[test]
fn rebalancing_equalises_the_shares_of_the_cells() {
    for seed in SEEDS {
        let study = Study::new(Table::planted(400, seed, Plant { share: 0.15, ..Plant::default() }), seed);
        let cell = |by: Cells, row: usize| {
            let (group, event) = (study.train.groups[row].unwrap().index(), usize::from(study.train.event[row]));
            match by {
                Cells::Group => group,
                Cells::Event => event,
                Cells::GroupXEvent => 2 * group + event,
            }
        };
        let shares = |config: &StrategyConfig, by: Cells, n: usize| -> Vec<f64> {
            let sampling = config.build(&study.spec, &study.cells).unwrap().sampling();
            let rows: Vec<usize> = (0..400).collect();
            let mut counts = vec![0_usize; n];
            for epoch in 0..200 {
                sampling.order(&rows, seed, epoch).unwrap().into_iter().for_each(|row| counts[cell(by, row)] += 1);
            }
            let total: usize = counts.iter().sum();
            counts.into_iter().map(|count| count as f64 / total as f64).collect()
        };
        assert!((shares(&ERM, Cells::Group, 2)[1] - 0.15).abs() < 1e-12, "there is nothing to rebalance");
        for (by, n) in [(Cells::Group, 2), (Cells::Event, 2), (Cells::GroupXEvent, 4)] {
            for (mode, tolerance) in [(RebalancingMode::Resample, 0.01), (RebalancingMode::Oversample, 1e-12)] {
                let config = StrategyConfig::SubgroupRebalancing(SubgroupRebalancingConfig { by, mode });
                let found = shares(&config, by, n);
                println!("seed {seed}, {by:?}, {mode:?}: {found:.4?}");
                assert!(
                    found.iter().all(|share| (share - 1.0 / n as f64).abs() < tolerance),
                    "{by:?} {mode:?}: {found:?}"
                );
            }
        }
    }
}

fn group_dro(eta: f64) -> StrategyConfig {
    let config = GroupDroConfig { eta, adjustment: 0.0, absent: AbsentGroup::Unit, ..GroupDroConfig::default() };
    StrategyConfig::GroupDro(config)
}

/// Loss of the worse group under method `a` and under method `b`, by seed.
fn worse_groups<const N: usize>(by_seed: &[[[f64; 2]; N]; 5], a: usize, b: usize) -> [(f64, f64); 5] {
    let worse = |of_groups: [f64; 2]| of_groups[0].max(of_groups[1]);
    by_seed.map(|found| (worse(found[a]), worse(found[b])))
}

#[test]
fn the_worse_group_loses_less_where_its_labelling_function_differs() {
    let febs = |gamma| StrategyConfig::Febs(FebsConfig { gamma, decay: 0.0, ..FebsConfig::default() });
    let dro_chi_square =
        |alpha| StrategyConfig::DroChiSquare(DroChiSquareConfig { alpha, ..DroChiSquareConfig::default() });
    let methods = [
        ERM,
        febs(0.0),
        febs(5.0),
        dro_chi_square(1.0),
        dro_chi_square(0.2),
        // A step size of 0 is rejected; with 1e-12 the weights stay equal to 9 digits. The sampler is that of the method.
        group_dro(1e-12),
        group_dro(0.01),
    ];
    let plant = Plant { share: 0.15, visible: 0.0, effect: -1.0, ..Plant::default() };
    let by_seed = SEEDS.map(|seed| {
        let trial = Trial::new(600, plant, seed);
        let found = [0, 1, 2, 3, 4, 5, 6].map(|k: usize| trial.loss_by_group(trial.trained(&methods[k]).as_ref()));
        println!(
            "seed {seed}: losses of both groups under erm, febs 0 and 5, chi2 1 and 0.2, dro 0 and 0.01 {found:.3?}"
        );
        found
    });
    let worse = |a, b| worse_groups(&by_seed, a, b);
    let first = |method: usize| by_seed.map(|found| (found[0][0], found[method][0]));
    println!("group 0 (erm, it): dro {:.3?}, febs {:.3?}, chi2 {:.3?}", first(6), first(2), first(4));
    assert_lower("febs against erm", &worse(0, 2), 4, 0.02);
    assert_lower("febs against gamma 0", &worse(1, 2), 4, 0.02);
    assert_lower("dro-chi-square against erm", &worse(0, 4), 4, 0.01);
    assert_lower("dro-chi-square against alpha 1", &worse(3, 4), 4, 0.01);
    assert_lower("group-dro against erm", &worse(0, 6), 5, 0.05);
    assert_lower("equal weights of the groups against erm", &worse(0, 5), 5, 0.05);
    assert_alike("group-dro against equal weights", &worse(5, 6), 0.02);
}

#[test]
fn group_dro_beats_equal_weights_where_one_of_two_equal_groups_is_harder() {
    let plant = Plant { share: 0.5, visible: 0.0, effect: -1.0, hazard: 2.5 };
    let by_seed = SEEDS.map(|seed| {
        let mut trial = Trial::new(1200, plant, seed);
        trial.epochs = 12;
        let found = [1e-12, 0.01, 0.3].map(|eta| trial.loss_by_group(trial.trained(&group_dro(eta)).as_ref()));
        println!("seed {seed}: losses of both groups with eta 1e-12, 0.01, 0.3 {found:.3?}");
        found
    });
    assert_lower("group-dro 0.01 against equal weights", &worse_groups(&by_seed, 0, 1), 4, 0.01);
    assert_lower("group-dro 0.3 against equal weights", &worse_groups(&by_seed, 0, 2), 4, 0.01);
}

#[test]
fn sharpness_aware_steps_overfit_less() {
    // A radius of 0 is rejected; 1e-12 changes no weight by a unit in the last place.
    let sam = |rho| StrategyConfig::Sam(SamConfig { rho, ..SamConfig::default() });
    let by_seed = SEEDS.map(|seed| {
        let mut trial = Trial::new(150, Plant::default(), seed);
        trial.study.spec.optimiser.learning_rate = 5e-3;
        trial.epochs = 60;
        [&ERM, &sam(1e-12), &sam(0.2)]
            .map(|config| trial.last_and_chosen(config).map(|strategy| trial.loss(strategy.as_ref())))
    });
    println!("sam, best epoch: (erm, it) {:.3?}", by_seed.map(|found| (found[0][1], found[2][1])));
    assert_lower("sam against erm, last epoch", &by_seed.map(|found| (found[0][0], found[2][0])), 4, 0.02);
    assert_lower("sam against rho 1e-12, last epoch", &by_seed.map(|found| (found[1][0], found[2][0])), 4, 0.02);
}

#[test]
fn averaged_weights_beat_the_best_epoch_where_steps_are_large() {
    let config = SwadConfig { n_converge: 3, n_tolerance: 6, tolerance_ratio: 0.05, ..SwadConfig::default() };
    let swad = StrategyConfig::Swad(config);
    // No valley is found: the mean of the weights of the last epoch alone.
    let last_epoch = StrategyConfig::Swad(SwadConfig { n_converge: 100, ..config });
    let by_seed = FRESH.map(|seed| {
        let mut trial = Trial::new(600, Plant::default(), seed);
        trial.study.spec.optimiser.learning_rate = 2e-2;
        [&ERM, &last_epoch, &swad].map(|config| trial.loss(trial.trained(config).as_ref()))
    });
    assert_lower("swad against the best epoch of erm", &by_seed.map(|found| (found[0], found[2])), 4, 0.01);
    assert_lower("swad against the mean of the last epoch", &by_seed.map(|found| (found[1], found[2])), 4, 0.01);
}

#[test]
fn recalibration_makes_up_for_a_hazard_that_cannot_be_seen() {
    let plant = Plant { visible: 0.0, hazard: 2.5, ..Plant::default() };
    let errors = SEEDS.map(|seed| {
        let trial = Trial::new(600, plant, seed);
        // So many prior events shrink every exponent to 1: the maps are fitted but change nothing.
        let recalibration = |prior| {
            let config =
                RecalibrationConfig { method: RecalibrationMethod::Oe, prior, ..RecalibrationConfig::default() };
            StrategyConfig::Recalibration(config)
        };
        [ERM, recalibration(1e12), recalibration(1.0)]
            .map(|config| trial.calibration_error(trial.trained(&config).as_ref()))
    });
    for (of, k) in [("erm", 0), ("prior 1e12", 1)] {
        let pairs = errors.map(|found| (found[k], found[2]));
        assert_lower(&format!("recalibration against {of}"), &pairs, 5, 0.0);
        assert!(mean(pairs.map(|e| e.1)) <= 0.5 * mean(pairs.map(|e| e.0)), "{pairs:?}");
    }
}
