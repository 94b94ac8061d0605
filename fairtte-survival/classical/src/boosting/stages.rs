//! Tree after tree, each fitted to the gradient of the loss at the sum of those before it.

use fairtte_metrics::Outcomes;
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use super::partial_likelihood::{Baseline, PartialLikelihood};
use super::settings::{BoostingSettings, EarlyStopping};
use super::tree::{Fitter, RegressionTree, SortedColumns, TreeNode};
use super::{BoostingTrace, HeldOut};
use crate::ClassicalError;
use crate::units::Units;

/// What is drawn for a fit.
pub(super) trait Draws {
    /// Which of the training rows, ascending, a tree is fitted to.
    fn in_bag(&mut self, tree: usize, training: &[u32]) -> Vec<u32>;

    /// Which of the earlier trees a tree is fitted without; at least one.
    fn dropped(&mut self, tree: usize) -> Vec<usize>;
}

/// Draws of units from the streams of a seed.
pub(super) struct Seeded<'a>(pub(super) &'a BoostingSettings, pub(super) &'a Units);

impl Draws for Seeded<'_> {
    fn in_bag(&mut self, tree: usize, training: &[u32]) -> Vec<u32> {
        let mut units = self.1.of_samples(training);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of units")]
        let size = ((self.0.subsample * units.len() as f64) as usize).max(1);
        let mut rng = stream(self.0.seed, "classical/boosting/samples", &[tree as u64]);
        let (chosen, _) = units.partial_shuffle(&mut rng, size);
        self.1.samples_of(chosen, training.iter().copied())
    }

    fn dropped(&mut self, tree: usize) -> Vec<usize> {
        let mut rng = stream(self.0.seed, "classical/boosting/dropped", &[tree as u64]);
        let dropped: Vec<usize> = (0..tree).filter(|_| rng.random::<f64>() < self.0.dropout).collect();
        if dropped.is_empty() { vec![rng.random_range(0..tree)] } else { dropped }
    }
}

/// Rows that are held out, ascending: those of a share of the units with and of those without event.
pub(super) fn held_out(
    outcomes: &Outcomes,
    units: &Units,
    stopping: &EarlyStopping,
    seed: u64,
) -> Result<Vec<u32>, ClassicalError> {
    let rows = || (0_u32..).zip(outcomes.event());
    let with_event = units.of_samples(&rows().filter(|(_, event)| **event).map(|(row, _)| row).collect::<Vec<_>>());
    let of_them = units.samples_of(&with_event, rows().map(|(row, _)| row));
    let others: Vec<u32> = rows().map(|(row, _)| row).filter(|row| of_them.binary_search(row).is_err()).collect();
    let mut chosen = Vec::new();
    for (has_event, mut of_kind) in [(true, with_event), (false, units.of_samples(&others))] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of units")]
        let size = (stopping.share * of_kind.len() as f64).round() as usize;
        if has_event && (size == 0 || size == of_kind.len()) {
            return Err(ClassicalError::Setting {
                setting: "early-stopping.share",
                value: stopping.share.to_string(),
                expected: "a share that leaves events in both parts",
            });
        }
        let mut rng = stream(seed, "classical/boosting/held-out", &[u64::from(has_event)]);
        let (drawn, _) = of_kind.partial_shuffle(&mut rng, size);
        chosen.extend_from_slice(drawn);
    }
    Ok(units.samples_of(&chosen, rows().map(|(row, _)| row)))
}

/// Trees with what each is multiplied by, the baseline, and the course of the fit.
pub(super) struct Fitted {
    pub(super) trees: Vec<RegressionTree>,
    pub(super) factors: Vec<f64>,
    pub(super) baseline: Baseline,
    pub(super) trace: BoostingTrace,
}

/// Fits trees to the rows that are not held out. Samples and settings have been checked.
///
/// # Errors
/// Once `stop` is set.
pub(super) fn fit(
    columns: &Array2<f64>,
    outcomes: &Outcomes,
    settings: &BoostingSettings,
    held_out: Vec<u32>,
    draws: &mut impl Draws,
    stop: &Stop,
) -> Result<Fitted, ClassicalError> {
    let n = outcomes.n();
    let mut is_training = vec![true; n];
    for row in &held_out {
        is_training[*row as usize] = false;
    }
    let rows: Vec<u32> = (0..).zip(&is_training).filter(|(_, training)| **training).map(|(row, _)| row).collect();
    let likelihood = PartialLikelihood::new(outcomes, rows.clone());
    let watch =
        settings.early_stopping.as_ref().map(|stopping| (PartialLikelihood::new(outcomes, held_out.clone()), stopping));
    let sorted = SortedColumns::new(columns);
    let mut fitter = Fitter::new(&sorted, settings);
    let mut sum = Sum { columns, f: vec![0.0; n], trees: Vec::new(), factors: Vec::new() };
    let (mut gradient, mut losses) = (vec![0.0; n], Vec::with_capacity(settings.trees + 1));
    let mut watched = Vec::new();
    for tree in 0..settings.trees {
        stop.check()?;
        let dropped = if settings.dropout > 0.0 && tree > 0 { draws.dropped(tree) } else { Vec::new() };
        if !dropped.is_empty() {
            losses.push(likelihood.loss(&sum.f));
            sum.add(&dropped, -1.0);
        }
        let loss = likelihood.negative_gradient(&sum.f, &mut gradient);
        if dropped.is_empty() {
            losses.push(loss);
        }
        let mut in_bag = is_training.clone();
        if settings.subsample < 1.0 {
            in_bag.fill(false);
            for row in draws.in_bag(tree, &rows) {
                in_bag[row as usize] = true;
            }
        }
        let mut rng = stream(settings.seed, "classical/boosting", &[tree as u64]);
        let grown = fitter.fit(&gradient, &in_bag, &mut rng);
        sum.push(grown, fitter.leaves(), settings.learning_rate, &dropped);
        if let Some((likelihood, stopping)) = &watch {
            watched.push(likelihood.loss(&sum.f));
            if has_stopped(&watched, stopping) {
                break;
            }
        }
    }
    losses.push(likelihood.loss(&sum.f));
    let baseline = likelihood.baseline(&sum.f);
    let rows = held_out.into_iter().map(|row| row as usize).collect();
    let held_out = settings.early_stopping.is_some().then_some(HeldOut { rows, losses: watched });
    let trace = BoostingTrace { losses, held_out };
    Ok(Fitted { trees: sum.trees, factors: sum.factors, baseline, trace })
}

/// Whether the last loss is not below any of the losses before it that are remembered, as soon as there are as many as that.
fn has_stopped(losses: &[f64], stopping: &EarlyStopping) -> bool {
    let (last, before) = losses.split_last().unwrap_or((&0.0, &[]));
    let remembered = &before[before.len().saturating_sub(stopping.patience)..];
    remembered.len() == stopping.patience && !remembered.iter().any(|loss| last + stopping.tolerance < *loss)
}

/// The sum of the trees so far at all rows.
struct Sum<'a> {
    columns: &'a Array2<f64>,
    f: Vec<f64>,
    trees: Vec<RegressionTree>,
    factors: Vec<f64>,
}

impl Sum<'_> {
    /// Adds `times` the contributions of these trees.
    fn add(&mut self, trees: &[usize], times: f64) {
        for tree in trees {
            let factor = times * self.factors[*tree];
            for (row, f) in self.f.iter_mut().enumerate() {
                *f += factor * self.trees[*tree].value(|column| self.columns[[row, column]]);
            }
        }
    }

    /// Adds a tree, and those that were dropped before it with less weight, so that all of them together count as one tree more or
    /// less did before (DART): with k of them, the new one is divided by k + 1, and each of the others is multiplied by k / (k + 1).
    fn push(&mut self, tree: RegressionTree, leaves: &[u32], learning_rate: f64, dropped: &[usize]) {
        let k = dropped.len() as f64;
        for tree in dropped {
            self.factors[*tree] *= k / (k + 1.0);
        }
        self.add(dropped, 1.0);
        let factor = learning_rate / (k + 1.0);
        for (f, leaf) in self.f.iter_mut().zip(leaves) {
            if let TreeNode::Leaf { value } = tree.nodes[*leaf as usize] {
                *f += factor * value;
            }
        }
        self.trees.push(tree);
        self.factors.push(factor);
    }
}
