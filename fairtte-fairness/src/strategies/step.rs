//! The context of one training step besides its batch, and its report.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::Batch;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};
use fairtte_metrics::seeds::stream;
use fairtte_models::Noise;
use fairtte_survival::Targets;

use crate::FairnessError;
use crate::gradients::scale;
use crate::predict::Outputs;

/// The context of a step besides its batch.
#[derive(Clone, Copy, Debug)]
pub struct StepContext<'a> {
    /// What the outputs mean.
    pub outputs: Outputs<'a>,
    /// Seed of the run.
    pub seed: u64,
    /// Epoch, counted from 0.
    pub epoch: usize,
    /// Batch within the epoch, counted from 0.
    pub step: usize,
    /// Factor of every step size, from the schedule; 1 = as configured.
    pub rate: f64,
    /// The position of this batch among those of one optimiser step.
    pub accumulation: Accumulation,
    /// Factor of the losses before their gradients are taken, which are divided by it; 1 unless the network computes in f16.
    pub loss_scale: f64,
    /// The clock that records the time of the step.
    pub clock: &'a Clock,
}

/// Several batches may make one step of the optimisers: their gradients are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accumulation {
    /// How many batches make this step, at least 1.
    pub of: usize,
    /// Whether this batch is the last of them, with which the weights are updated.
    pub last: bool,
}

impl Default for Accumulation {
    fn default() -> Self {
        Self { of: 1, last: true }
    }
}

/// The phases of the optimisers' part of a step; the rest is the forward pass with the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Gradients, and the wait for the values of the step.
    Backward,
    /// The update of the weights.
    Update,
}

/// Wall-clock time by phase. On a device that computes asynchronously, work is counted in the phase in which the host
/// waits for it.
#[derive(Debug, Default)]
pub struct Clock {
    backward: Cell<Duration>,
    update: Cell<Duration>,
}

impl Clock {
    /// Runs `work` and adds its time to `phase`.
    pub fn time<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let value = work();
        let total = self.cell(phase);
        total.set(total.get() + started.elapsed());
        value
    }

    /// Seconds spent in `phase` so far.
    pub fn seconds(&self, phase: Phase) -> f64 {
        self.cell(phase).get().as_secs_f64()
    }

    fn cell(&self, phase: Phase) -> &Cell<Duration> {
        match phase {
            Phase::Backward => &self.backward,
            Phase::Update => &self.update,
        }
    }
}

impl StepContext<'_> {
    /// The training noise of pass `name` in this step.
    pub fn noise(&self, name: &str) -> Noise {
        Noise::on(stream(self.seed, &format!("noise/{name}"), &[self.epoch as u64, self.step as u64]))
    }

    /// The targets of the head from the outcomes of a training batch.
    ///
    /// # Errors
    /// [`FairnessError::Survival`] for a negative time.
    pub fn targets(&self, batch: &Batch) -> Result<Targets, FairnessError> {
        let Batch { time, event, competing, masks, .. } = batch;
        let targets = self.outputs.cut_points.targets_of_causes("training", time, event, competing)?;
        Ok(Targets { masks: masks.clone(), ..targets })
    }

    /// Times at which a network for this head is evaluated; empty unless it reads times.
    pub fn query_times(&self, targets: &Targets) -> Vec<f64> {
        self.outputs.head.query_times(targets)
    }

    /// Loss of every sample, `[batch]`: 0 for the samples that are not counted. A second call in the same step draws the
    /// same controls.
    pub fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
        let mut controls = stream(self.seed, "controls", &[self.epoch as u64, self.step as u64]);
        self.outputs.head.subject_losses(outputs, targets, &mut controls)
    }

    /// As [`subject_losses`](Self::subject_losses), with every sample compared with the other half of the batch only.
    pub fn losses_against_other_half(&self, outputs: Tensor<2>, targets: &Targets, half: &[bool]) -> Tensor<1> {
        let mut controls = stream(self.seed, "controls", &[self.epoch as u64, self.step as u64]);
        self.outputs.head.losses_against_other_half(outputs, targets, half, &mut controls)
    }

    /// The misfit of every sample by the likelihood alone, `[batch]`
    /// ([`misfits`](fairtte_survival::SurvivalHead::misfits)), with the controls of [`subject_losses`](Self::subject_losses).
    pub fn misfits(&self, outputs: Tensor<2>, targets: &Targets, half: Option<&[bool]>) -> Tensor<1> {
        let mut controls = stream(self.seed, "controls", &[self.epoch as u64, self.step as u64]);
        self.outputs.head.misfits(outputs, targets, half, &mut controls)
    }

    /// Gradients of `loss` (`[1]`) for the parameters of `module`.
    pub fn gradients<M: Module>(&self, loss: &Tensor<1>, module: &M) -> GradientsParams {
        let mut all = self.backward(loss);
        self.clock.time(Phase::Backward, || self.of_module(&mut all, module))
    }

    /// Gradients of `loss` for everything in its graph, [scaled](Self::loss_scale).
    pub(crate) fn backward(&self, loss: &Tensor<1>) -> Gradients {
        self.clock.time(Phase::Backward, || match self.loss_scale {
            1.0 => loss.backward(),
            scale => (loss.clone() * scale).backward(),
        })
    }

    /// Takes the gradients of `module` from those that [`backward`](Self::backward) gave.
    pub(crate) fn of_module<M: Module>(&self, all: &mut Gradients, module: &M) -> GradientsParams {
        let mut gradients = GradientsParams::from_module(all, module);
        // Single precision has no scale: its gradients keep their bits.
        #[expect(clippy::float_cmp, reason = "the scale is a power of two, exactly 1 where there is none")]
        if self.loss_scale != 1.0 {
            scale(module, &mut gradients, 1.0 / self.loss_scale);
        }
        gradients
    }

    /// Checks that a value is finite.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] naming it with epoch and step.
    pub fn require_finite(&self, what: &'static str, value: f64) -> Result<(), FairnessError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(FairnessError::NotFinite { what, value, epoch: self.epoch + 1, step: self.step + 1, samples: Vec::new() })
    }
}

/// The report of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Mean task loss of the samples with a loss term, before any weighting.
    pub task_loss: f64,
    /// The objective that the optimiser minimised.
    pub objective: f64,
    /// L2 norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Groups without a sample in the batch that has a loss term.
    pub absent_groups: usize,
    /// Further terms by name, for example the weight of a group.
    pub terms: Vec<(String, f64)>,
}

/// Terms of the log under their names.
pub(crate) fn named<T, const N: usize>(terms: [(&str, T); N]) -> Vec<(String, T)> {
    terms.map(|(name, term)| (name.to_owned(), term)).into()
}
