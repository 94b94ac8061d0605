//! Step 7: what the logits mean, and the loss that follows from it. One file per head.
//!
//! Every loss is unreduced, `[batch]`, so that a strategy can weigh or group it, and computed in log space without any
//! epsilon. pycox adds 1e-7 inside its logarithms; the golden values agree to about that.

mod binary;
mod cox;
mod cox_time;
mod deephit;
mod nnet_survival;
mod partial_likelihood;
mod pc_hazard;
mod pmf;
mod registry;
mod segmentation;

use std::fmt::Debug;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;

use crate::baseline::{Baseline, BaselineFit};
use crate::{CutPoints, IntervalTargets, PredictionGrid, SurvivalError, Targets, TimeScale};

pub use binary::{Binary, BinaryConfig};
pub use cox::{Cox, CoxConfig};
pub use cox_time::{CoxTime, CoxTimeConfig};
pub use deephit::{DeepHit, DeepHitConfig, Ranking};
pub use nnet_survival::{NnetSurvival, NnetSurvivalConfig};
pub use pc_hazard::{PcHazard, PcHazardConfig};
pub use pmf::{Pmf, PmfConfig};
pub use registry::{HeadConfig, HeadSettings, NoSettings, register_head};
pub use segmentation::{Segmentation, SegmentationConfig};

/// A finite number below any logarithm that training can reach: its exponential and its gradient are 0.
const NEVER: f32 = -1e30;

/// Loss and prediction rule: what the outputs of a network mean.
///
/// Most heads read one output per cut point. `cox` reads one output per sample, `cox-time` one per sample and query time;
/// both predict relative to a [`Baseline`] that is fitted on the training part.
pub trait SurvivalHead: Debug + Send + Sync {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// Number of causes of which the outputs are the risks: 1, unless it was built for several
    /// ([`HeadSettings::build_for_causes`]).
    fn n_causes(&self) -> usize {
        1
    }

    /// Number of outputs of the network; of one query time if it reads times.
    fn n_outputs(&self, cut_points: &CutPoints) -> usize;

    /// Loss of every sample: outputs `[batch, n_outputs]` (or one column for each of [`query_times`](Self::query_times)) ->
    /// `[batch]`. The batch loss is the mean over the samples that are [`counted`](Self::counted). `stream` serves heads
    /// that draw controls.
    fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets, stream: &mut ChaCha8Rng) -> Tensor<1>;

    /// As [`subject_losses`](Self::subject_losses), but every sample is compared with the samples of the other half of its
    /// batch only (`half`, `[batch]`, assigns every sample to a half): its loss is the one that it would have if it
    /// alone were added to that half. Losses within a half then do not depend on each other, which chi-square DRO
    /// needs. Heads that [depend on the batch](Self::depends_on_batch) must implement it; for the others it equals
    /// `subject_losses`.
    fn losses_against_other_half(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: &[bool],
        stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        let _ = half;
        self.subject_losses(outputs, targets, stream)
    }

    /// How badly the likelihood alone fits every sample, `[batch]`. Methods that weight groups or samples by their fit
    /// use it where the loss itself depends on the time of an event (on the number of samples compared with it).
    /// Samples are compared with those of the batch or, with `half`, with those of the other half. The default is the
    /// loss, which is right for heads whose loss is a negative log-likelihood.
    fn misfits(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: Option<&[bool]>,
        stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        let _ = half;
        self.subject_losses(outputs, targets, stream)
    }

    /// Which samples have a loss term, `[batch]`. The others have loss 0, and means do not count them: a group without any
    /// counts as absent.
    fn counted(&self, targets: &Targets) -> Vec<bool> {
        vec![true; targets.n()]
    }

    /// Survival at the times of `grid`: outputs `[n, n_outputs]` (or one column per time of the baseline) ->
    /// `[n, n_times]` in `f64`, non-increasing, in [0, 1]. Of several causes 1 minus the cumulative incidence of each, one
    /// block after the other: `[n, n_causes n_times]`.
    ///
    /// # Errors
    /// [`SurvivalError::NoBaseline`] if the head needs one and there is none.
    fn survival(
        &self,
        outputs: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError>;

    /// Outputs for which the prediction of every subject is `hazard`, `[n_cut_points]`, each in (0, 1). The output
    /// layer starts at them, so that training begins with the marginal distribution (see [`marginal_hazard`]). `None`
    /// for heads that a constant has no effect on: their output layer has no bias.
    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>>;

    /// As [`starting_outputs`](Self::starting_outputs) from the hazards of every cause, `[n_causes][n_cut_points]`, whose sum is
    /// below 1 at every cut point.
    fn starting_outputs_of_causes(&self, hazards: &[Vec<f64>]) -> Option<Vec<f64>> {
        self.starting_outputs(&hazards[0])
    }

    /// Whether the curve of every subject is 1 at time 0, so that only later times of a grid distinguish subjects. True
    /// for heads with a baseline, which is 0 before the first event.
    fn starts_at_one(&self) -> bool {
        self.needs_baseline()
    }

    /// Whether it predicts the probability of a class, 1 minus survival of the one interval of [`CutPoints::of_class`], and not
    /// a curve.
    fn predicts_class(&self) -> bool {
        false
    }

    /// The head itself if it predicts masks, the class of every pixel, and not curves: then outputs are `[batch, n_classes n_pixels]`,
    /// targets have [`masks`](Targets::masks), and probabilities take the place of survival.
    fn of_masks(&self) -> Option<&Segmentation> {
        None
    }

    /// Whether a sample's loss depends on the other samples of its batch.
    fn depends_on_batch(&self) -> bool {
        false
    }

    /// Returns an error for a width of the classifier's hidden layer that the head cannot use.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the key, its value and its range.
    fn check_hidden(&self, _hidden: usize) -> Result<(), SurvivalError> {
        Ok(())
    }

    /// How times are scaled for a network that reads them, fitted on the training part; `None` for the others.
    ///
    /// # Errors
    /// [`SurvivalError::TimesAllEqual`] if they do not vary.
    fn time_scale(&self, _train: &Outcomes) -> Result<Option<TimeScale>, SurvivalError> {
        Ok(None)
    }

    /// Times at which a network that reads times is evaluated in training, in the unit of the cohort; empty for the others.
    fn query_times(&self, _targets: &Targets) -> Vec<f64> {
        Vec::new()
    }

    /// Whether curves need a baseline that was fitted on the training part.
    fn needs_baseline(&self) -> bool {
        false
    }

    /// An empty baseline over the event times of the training part; `None` if the head [needs](Self::needs_baseline) none.
    fn baseline_fit(&self, _train: &Outcomes) -> Option<BaselineFit> {
        None
    }
}

/// Share of the samples at risk that have their event in each interval, `[n_intervals]`, strictly inside (0, 1).
///
/// A twentieth of an event and a tenth of a sample are added to each interval, so that one without events (the first,
/// which is time 0) gets a small hazard and not 0. Cost O(n + `n_intervals`).
///
/// # Panics
/// If an index is not below `n_intervals`.
pub fn marginal_hazard(targets: &IntervalTargets, n_intervals: usize) -> Vec<f64> {
    let (mut events, mut leaving) = (vec![0_usize; n_intervals], vec![0_usize; n_intervals]);
    for (&index, &event) in targets.index.iter().zip(&targets.event) {
        leaving[index] += 1;
        events[index] += usize::from(event);
    }
    let mut at_risk = targets.index.len();
    let hazard = events.into_iter().zip(leaving).map(|(events, leaving)| {
        let hazard = (events as f64 + 0.05) / (at_risk as f64 + 0.1);
        at_risk -= leaving;
        hazard
    });
    hazard.collect()
}

/// As [`marginal_hazard`], of each of `n_causes` causes, `[n_causes][n_intervals]`: an event of one ends the time at risk of all.
/// The twentieth of an event is divided between them.
///
/// # Panics
/// If an index is not below `n_intervals`, or a cause is above `n_causes`.
pub fn marginal_hazards(targets: &Targets, n_causes: usize, n_intervals: usize) -> Vec<Vec<f64>> {
    let mut leaving = vec![0_usize; n_intervals];
    let mut events = vec![vec![0_usize; n_intervals]; n_causes];
    for (&index, &cause) in targets.intervals.index.iter().zip(&targets.causes) {
        leaving[index] += 1;
        if cause > 0 {
            events[cause - 1][index] += 1;
        }
    }
    let at_risk = |interval: usize| leaving[interval..].iter().sum::<usize>() as f64;
    let hazard = |events: Vec<usize>| {
        let of = |(interval, n): (usize, usize)| (n as f64 + 0.05 / n_causes as f64) / (at_risk(interval) + 0.1);
        events.into_iter().enumerate().map(of).collect()
    };
    events.into_iter().map(hazard).collect()
}

/// `[batch, width]` mask, `true` where `select(sample, column)`.
fn mask(batch: usize, width: usize, device: &Device, select: impl Fn(usize, usize) -> bool) -> Tensor<2, Bool> {
    let bits: Vec<bool> = (0..batch).flat_map(|i| (0..width).map(move |m| (i, m))).map(|(i, m)| select(i, m)).collect();
    Tensor::from_data(TensorData::new(bits, [batch, width]), device)
}

/// The mask as numbers in the precision of `like`: 1 where `select(sample, column)`, else 0.
fn indicator(batch: usize, width: usize, like: &Tensor<2>, select: impl Fn(usize, usize) -> bool) -> Tensor<2> {
    mask(batch, width, &like.device(), select).float().cast(like.dtype())
}

/// A tensor of host values in the precision of `like`.
fn constant<const D: usize, const E: usize>(values: Vec<f64>, shape: [usize; D], like: &Tensor<E>) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (&like.device(), like.dtype()))
}

/// The samples that a sample of a batch is compared with, for heads whose losses depend on the batch.
#[derive(Clone, Copy, Debug)]
enum Comparators<'a> {
    /// All samples.
    Batch,
    /// The samples whose entry differs from its own.
    OtherHalf(&'a [bool]),
}

impl Comparators<'_> {
    /// The batch, or the other half if the halves are given.
    fn of(half: Option<&'_ [bool]>) -> Comparators<'_> {
        half.map_or(Comparators::Batch, Comparators::OtherHalf)
    }

    /// Whether sample i is compared with sample j.
    fn admit(self, i: usize, j: usize) -> bool {
        match self {
            Self::Batch => true,
            Self::OtherHalf(half) => half[i] != half[j],
        }
    }
}

/// log sum exp over the columns: `[batch, width]` -> `[batch]`, without overflow.
fn log_sum_exp(x: Tensor<2>) -> Tensor<1> {
    let largest = x.clone().detach().max_dim(1); // [batch, 1]
    let sum = (x - largest.clone()).exp().sum_dim(1);
    (sum.log() + largest).flatten(0, 1)
}
