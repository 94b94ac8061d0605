//! The measures of a trained strategy: utility, groups, information on the group in the representation, flatness.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module as _;
use burn::tensor::Tensor;
use fairtte_data::{Loader, Part, Sampling};
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{
    Accumulation, Cfair, Clock, Odr, Sam, SamConfig, Saved, StepContext, Strata, StratumConfig,
};
use fairtte_fairness::{CurveRule, Learner, LearnerSpec, Outputs, Strategy, StrategyConfig, SurvivalNetwork, predict};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Groups, SurvivalCurves, evaluate,
};
use fairtte_models::Noise;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::data::World;
use super::probe::{Probed, Side, probe};

/// Samples of the training part that a probe is fitted on, and that flatness is measured on.
const N_PROBE: usize = 3000;
const N_FLAT: usize = 600;
/// Lengths of the step towards the largest loss.
const RADII: [f64; 2] = [0.1, 0.5];

#[derive(Serialize, Deserialize)]
pub struct Measured {
    pub validation: Scores,
    pub test: Scores,
    /// Standard deviation over the test samples of the survival in the middle of the grid.
    pub spread: f64,
    /// How well a newly trained probe predicts the group; `None` for networks without a single representation.
    pub probed: Option<Probed>,
    /// Largest loss on training samples near the weights minus that at the weights, for each radius.
    pub sharpness: Option<Vec<f64>>,
}

/// Utility in one part, overall and by group.
#[derive(Serialize, Deserialize)]
pub struct Scores {
    pub c_td: Option<f64>,
    pub auc_td: Option<f64>,
    pub ibs: Option<f64>,
    pub nll: f64,
    pub groups: BTreeMap<String, GroupScores>,
}

#[derive(Serialize, Deserialize)]
pub struct GroupScores {
    pub n: usize,
    pub c_td: Option<f64>,
    pub auc_td: Option<f64>,
    pub ibs: Option<f64>,
    pub nll: f64,
    /// Mean predicted survival in the middle of the grid minus that of Kaplan and Meier.
    pub off: f64,
}

/// A strategy, the specification of its learner, and the folder of its weights.
type Kept<'a> = (&'a StrategyConfig, &'a LearnerSpec, &'a Path);

impl Measured {
    pub fn of(world: &World, loader: &Loader<'_>, strategy: &dyn Strategy, kept: Kept<'_>) -> Outcome<Self> {
        let (validation, _) = scores(world, loader, strategy, Part::Validation)?;
        let (test, spread) = scores(world, loader, strategy, Part::Test)?;
        Ok(Self {
            validation,
            test,
            spread,
            probed: probed(world, loader, kept)?,
            sharpness: sharpness(world, loader, kept)?,
        })
    }
}

fn scores(world: &World, loader: &Loader<'_>, strategy: &dyn Strategy, part: Part) -> Outcome<(Scores, f64)> {
    let rows = world.split.rows(part);
    let rule = CurveRule { head: world.head.as_ref(), grid: world.scoring.grid() };
    let survival = predict(strategy, loader, rows, &rule, &world.spec.device)?;
    let outcomes = world.cohort.outcomes(rows)?;
    let train = world.cohort.outcomes(world.split.rows(Part::Train))?;
    let membership = rows.iter().map(|row| world.groups.membership()[*row]).collect();
    let groups = Groups::new(world.groups.attribute(), world.groups.levels().to_vec(), membership)?;
    let settings = EvaluationSettings::default().values_only();
    let curves = SurvivalCurves::new(rule.grid.times().to_vec(), survival.clone())?;
    let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst)?;
    let subjects = world.cohort.subjects(rows);
    let report = evaluate(&subjects, &outcomes, &curves, &censoring, std::slice::from_ref(&groups), &settings)?;
    let losses = losses(world, &survival, rows)?;
    let middle = rule.grid.times()[rule.grid.times().len() / 2];
    let of_group = |g: usize, level: &String| {
        let members = groups.rows(fairtte_metrics::GroupId(u32::try_from(g).unwrap_or(u32::MAX)));
        if members.is_empty() {
            return None;
        }
        let curves = report.curves.iter().find(|curves| curves.level.as_ref() == Some(level))?;
        let observed = at(&curves.kaplan_meier.times, &curves.kaplan_meier.survival, middle);
        let [c_td, auc_td, ibs] = NAMES.map(|name| of_level(&report, name, g));
        let off = at(&curves.predicted.times, &curves.predicted.survival, middle) - observed;
        let nll = mean(members.iter().map(|i| losses[*i]));
        Some((level.clone(), GroupScores { n: members.len(), c_td, auc_td, ibs, nll, off }))
    };
    let by_group = groups.levels().iter().enumerate().filter_map(|(g, level)| of_group(g, level)).collect();
    let [c_td, auc_td, ibs] = NAMES.map(|name| report.metric(name).and_then(|metric| metric.overall.value));
    let column = survival.column(survival.ncols() / 2).to_vec();
    let spread = mean(column.iter().map(|s| (s - mean(column.iter().copied())).powi(2))).sqrt();
    Ok((Scores { c_td, auc_td, ibs, nll: mean(losses.iter().copied()), groups: by_group }, spread))
}

const NAMES: [&str; 3] = ["c_td_antolini_strict", "auc_td", "ibs"];

fn of_level(report: &EvaluationReport, name: &str, level: usize) -> Option<f64> {
    report.metric(name)?.attributes.first()?.groups.get(level)?.estimate.value
}

/// The value of a step function or a curve at its last time not above `time`; 1 before the first time.
fn at(times: &[f64], survival: &[f64], time: f64) -> f64 {
    let n = times.iter().take_while(|t| **t <= time).count();
    n.checked_sub(1).map_or(1.0, |last| survival[last])
}

/// Negative logarithm of the probability that each curve (at the cut points) gives to the observation.
fn losses(world: &World, survival: &Array2<f64>, rows: &[usize]) -> Outcome<Vec<f64>> {
    let outcomes = world.cohort.outcomes(rows)?;
    let targets = world.cut_points.targets("test", outcomes.time(), outcomes.event())?.intervals;
    let term = |i: usize| {
        let q = targets.index[i];
        let before = if q == 0 { 1.0 } else { survival[[i, q - 1]] };
        let probability = if targets.event[i] { before - survival[[i, q]] } else { survival[[i, q]] };
        -probability.max(1e-12).ln()
    };
    Ok((0..rows.len()).map(term).collect())
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / f64::max(n, 1.0)
}

/// A function from samples to representations.
type Represent = Box<dyn Fn(&Batch) -> Outcome<Tensor<2>>>;

/// The representation that the head of a strategy reads, in evaluation mode; `None` for those with several networks or
/// heads.
fn represent(world: &World, (config, spec, folder): Kept<'_>) -> Outcome<Option<Represent>> {
    let of = |network: SurvivalNetwork| -> Represent {
        Box::new(move |batch| Ok(network.forward(batch, &[], &mut Noise::Off)?.representation))
    };
    Ok(match config {
        StrategyConfig::DomainIndependent(_) | StrategyConfig::ControlledAttribute(_) => None,
        StrategyConfig::Cfair(config) => {
            let mut strategy = Cfair::new(config, spec, &world.cells)?;
            strategy.load(folder, Saved::Weights)?;
            Some(of(strategy.network().valid()))
        }
        StrategyConfig::Odr(config) => {
            let mut strategy = Odr::new(config, spec, &world.cells)?;
            strategy.load(folder, Saved::Weights)?;
            let network = strategy.network().valid();
            Some(Box::new(move |batch| Ok(network.target_mean(batch)?)))
        }
        _ => {
            let mut learner = Learner::new(spec, "network")?;
            learner.load(folder, "network", Saved::Weights)?;
            Some(of(learner.network().valid()))
        }
    })
}

fn probed(world: &World, loader: &Loader<'_>, kept: Kept<'_>) -> Outcome<Option<Probed>> {
    let Some(represent) = represent(world, kept)? else { return Ok(None) };
    let strata = Strata::fit(&StratumConfig::default(), &world.cells, "defaults")?;
    let side = |rows: &[usize]| -> Outcome<Side> {
        let mut values = Vec::new();
        for host in loader.batches(rows, 256, &Sampling::Sequential, 0, 0)? {
            let representation = represent(&Batch::from_host(host, &world.spec.device)?)?;
            values.extend(representation.into_data().iter::<f64>());
        }
        let outcomes = world.cohort.outcomes(rows)?;
        let intervals = world.cut_points.targets("part", outcomes.time(), outcomes.event())?.intervals;
        Ok(Side {
            values: Array2::from_shape_vec((rows.len(), values.len() / rows.len()), values)?,
            groups: rows
                .iter()
                .map(|row| world.groups.membership()[*row].map(fairtte_metrics::GroupId::index))
                .collect(),
            strata: strata.of(&intervals),
        })
    };
    let train = world.split.rows(Part::Train);
    let (train, test) = (side(&train[..train.len().min(N_PROBE)])?, side(world.split.rows(Part::Test))?);
    Ok(Some(probe(&train, &test, world.groups.levels().len())))
}

/// Sharpness by the first pass of `sam` on one large batch of the training part, without dropout.
fn sharpness(world: &World, loader: &Loader<'_>, (config, spec, folder): Kept<'_>) -> Outcome<Option<Vec<f64>>> {
    use StrategyConfig as S;
    if matches!(config, S::Cfair(_) | S::Odr(_) | S::DomainIndependent(_) | S::ControlledAttribute(_)) {
        return Ok(None);
    }
    let mut spec = spec.clone();
    spec.network.encoder.dropout = 0.0;
    let train = world.split.rows(Part::Train);
    let rows = &train[..train.len().min(N_FLAT)];
    let mut found = Vec::new();
    for rho in RADII {
        let mut sam = Sam::new(&SamConfig { rho, ..SamConfig::default() }, Learner::new(&spec, "network")?)?;
        sam.load(folder, Saved::Weights)?;
        let mut batches = loader.batches(rows, rows.len(), &Sampling::Sequential, 0, 0)?;
        let batch = Batch::from_host(batches.next().ok_or("no batch")?, &spec.device.clone().autodiff())?;
        let (clock, accumulation) = (Clock::default(), Accumulation::default());
        let (head, cut_points) = (world.head.as_ref(), &world.cut_points);
        let (seed, epoch, step, rate) = (spec.seed, 0, 0, 1.0);
        let context = StepContext {
            outputs: Outputs { head, cut_points },
            seed,
            epoch,
            step,
            rate,
            accumulation,
            loss_scale: 1.0,
            clock: &clock,
        };
        let report = sam.step(&batch, &context)?;
        found.extend(report.terms.iter().find(|(name, _)| name == "sharpness").map(|(_, value)| *value));
    }
    Ok(Some(found))
}
