//! A module with its `AdamW`: gradient, accumulation, clipping and step as separate operations, so that a method can
//! act between them.
//!
//! One optimiser updates the parameters of its own module only: a second module in the same graph, such as an adversary, is
//! unchanged.

use std::path::Path;

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Tensor};
use fairtte_data::write_atomically;
use serde::{Deserialize, Serialize};

use crate::gradients::{add, scale, squared_norm};
use crate::strategies::{Phase, Saved, StepContext};
use crate::{FairnessError, check, check_not_negative, check_positive};

/// What the error of gradients that are not finite is about.
pub(crate) const GRADIENT_NORM: &str = "the gradient norm";

/// Settings of `AdamW` (Loshchilov & Hutter 2019; betas 0.9 and 0.999, epsilon 1e-8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// Step size, above 0. The paper searches 1e-4 to 1e-3.
    pub learning_rate: f64,
    /// Decoupled weight decay, at least 0. The paper searches 1e-6 to 1e-4.
    pub weight_decay: f64,
    /// Largest joint L2 norm of all gradients; 0 = no clipping.
    pub gradient_clip: f64,
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        Self { learning_rate: 1e-3, weight_decay: 1e-5, gradient_clip: 5.0 }
    }
}

impl OptimiserConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        let Self { learning_rate, weight_decay, gradient_clip } = *self;
        check_positive("learning-rate", learning_rate)?;
        check_not_negative("weight-decay", weight_decay)?;
        let in_range = gradient_clip >= 0.0 && gradient_clip.is_finite();
        check("gradient-clip", gradient_clip, in_range, "a finite number >= 0 (0 = off)")
    }
}

/// A module and the optimiser of its parameters.
pub struct Trainable<M> {
    /// `None` only within a step: the optimiser updates a tensor in place only if there is no other reference to it.
    module: Option<M>,
    optimiser: ModuleOptimizer,
    config: OptimiserConfig,
    /// Sum of the gradients of the batches since the last step, if several batches make one.
    pending: Option<GradientsParams>,
}

impl<M> std::fmt::Debug for Trainable<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainable").field("config", &self.config).finish_non_exhaustive() // the optimiser has no Debug
    }
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Descent {
    /// Value of the loss.
    pub loss: f64,
    /// L2 norm of this batch's gradient before clipping.
    pub norm: f64,
    /// Further values that were read in the same transfer.
    pub also: Vec<f64>,
}

impl<M: Module> Trainable<M> {
    /// Combines a module, on a device with autodiff, and a fresh optimiser.
    pub fn new(module: M, config: &OptimiserConfig) -> Self {
        Self { module: Some(module), optimiser: optimiser(config), config: *config, pending: None }
    }

    /// The module with its present weights.
    ///
    /// # Panics
    /// If a step before this panicked while the optimiser had the module.
    pub fn module(&self) -> &M {
        self.module.as_ref().expect("the optimiser gives the module back")
    }

    /// Replaces the module; the optimiser keeps its state for the parameters (by their ids).
    pub fn replace(&mut self, module: M) {
        self.module = Some(module);
    }

    /// Gradients of `loss` (`[1]`) for the parameters of this module.
    pub fn gradients(&self, loss: &Tensor<1>, context: &StepContext<'_>) -> GradientsParams {
        context.gradients(loss, self.module())
    }

    /// Makes one step along `gradients`, which are those of one batch, and returns their norm before clipping. If
    /// several batches make a step, gradients are averaged and the weights are updated with the last of them.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if a gradient is not finite; the weights are then unchanged.
    pub fn update(&mut self, gradients: GradientsParams, context: &StepContext<'_>) -> Result<f64, FairnessError> {
        self.update_apart(gradients, context, |_, _| None)
    }

    /// Makes one step down the gradient of `loss` (`[1]`) and returns the gradient norm before clipping.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if the loss or its gradient is not finite; the weights are then unchanged.
    pub fn descend(&mut self, loss: &Tensor<1>, context: &StepContext<'_>) -> Result<f64, FairnessError> {
        Ok(self.descend_reading(loss, &[], context, |_, _| None)?.norm)
    }

    /// As [`descend`](Self::descend); the loss, the norm and the values `also` (`[1]` each) are read in one transfer,
    /// which is the only wait for the device in a step. `apart` may remove gradients whose parameters are updated at
    /// `learning_rate`; the others are then updated at the rate that it returns.
    pub(crate) fn descend_reading(
        &mut self,
        loss: &Tensor<1>,
        also: &[Tensor<1>],
        context: &StepContext<'_>,
        apart: impl FnOnce(&M, &mut GradientsParams) -> Option<(GradientsParams, f64)>,
    ) -> Result<Descent, FairnessError> {
        let (gradients, descent) = self.gradients_reading(loss, also, context)?;
        self.move_along(gradients, descent.norm, context, apart);
        Ok(descent)
    }

    /// Gradients of `loss` (`[1]`); the loss, their norm and the values `also` (`[1]` each) are read in one transfer.
    pub(crate) fn gradients_reading(
        &self,
        loss: &Tensor<1>,
        also: &[Tensor<1>],
        context: &StepContext<'_>,
    ) -> Result<(GradientsParams, Descent), FairnessError> {
        let gradients = self.gradients(loss, context);
        let read: Vec<Tensor<1>> = std::iter::once(loss).chain(also).map(|number| number.clone().inner()).collect();
        let (mut values, norm) = self.measured(&gradients, &read, context)?;
        let loss = values.remove(0);
        Ok((gradients, Descent { loss, norm, also: values }))
    }

    /// As [`update`](Self::update), with `apart` as in [`descend_reading`](Self::descend_reading).
    pub(crate) fn update_apart(
        &mut self,
        gradients: GradientsParams,
        context: &StepContext<'_>,
        apart: impl FnOnce(&M, &mut GradientsParams) -> Option<(GradientsParams, f64)>,
    ) -> Result<f64, FairnessError> {
        let norm = self.measured(&gradients, &[], context)?.1;
        self.move_along(gradients, norm, context, apart);
        Ok(norm)
    }

    /// Reads the values `read` and the norm of the gradients, all finite, in one transfer.
    fn measured(
        &self,
        gradients: &GradientsParams,
        read: &[Tensor<1>],
        context: &StepContext<'_>,
    ) -> Result<(Vec<f64>, f64), FairnessError> {
        let sum = squared_norm(self.module(), gradients);
        let numbers: Vec<Tensor<1>> = read.iter().cloned().chain(sum).collect();
        let n = numbers.len();
        let mut values: Vec<f64> = match n {
            0 => Vec::new(), // a module without a gradient and nothing to read
            _ => context.clock.time(Phase::Backward, || Tensor::cat(numbers, 0).into_data().iter::<f64>().collect()),
        };
        let norm = if n > read.len() { values.pop().unwrap_or(0.0).sqrt() } else { 0.0 };
        for (i, value) in values.iter().enumerate() {
            context.require_finite(if i == 0 { "the loss" } else { "a term of the loss" }, *value)?;
        }
        context.require_finite(GRADIENT_NORM, norm)?;
        Ok((values, norm))
    }

    fn move_along(
        &mut self,
        gradients: GradientsParams,
        norm: f64,
        context: &StepContext<'_>,
        apart: impl FnOnce(&M, &mut GradientsParams) -> Option<(GradientsParams, f64)>,
    ) {
        context.clock.time(Phase::Update, || {
            let Some((mut gradients, norm)) = self.accumulated(gradients, norm, context) else { return };
            let largest = self.config.gradient_clip;
            if largest > 0.0 && norm > largest {
                scale(self.module(), &mut gradients, largest / norm);
            }
            let rate = self.config.learning_rate * context.rate;
            match apart(self.module(), &mut gradients) {
                Some((taken, other_rate)) => {
                    self.step(rate, taken);
                    self.step(other_rate * context.rate, gradients);
                }
                None => self.step(rate, gradients),
            }
        });
    }

    fn step(&mut self, rate: f64, gradients: GradientsParams) {
        if let Some(module) = self.module.take() {
            self.module = Some(self.optimiser.step(rate, module, gradients));
        }
    }

    /// The mean gradient of the batches of this step and its norm, once the last of them has arrived.
    fn accumulated(
        &mut self,
        mut gradients: GradientsParams,
        norm: f64,
        context: &StepContext<'_>,
    ) -> Option<(GradientsParams, f64)> {
        if context.accumulation.of == 1 {
            return Some((gradients, norm));
        }
        scale(self.module(), &mut gradients, 1.0 / context.accumulation.of as f64);
        if let Some(pending) = self.pending.take() {
            add(self.module(), &mut gradients, pending);
        }
        if !context.accumulation.last {
            self.pending = Some(gradients);
            return None;
        }
        let squared = squared_norm(self.module(), &gradients);
        let norm = squared.map_or(0.0, |sum| sum.into_data().iter::<f64>().sum::<f64>().sqrt());
        Some((gradients, norm))
    }

    /// Writes `<name>.weights.bpk` and, for [`Saved::Everything`], `<name>.optimiser.bpk` into `folder`. Gradients
    /// accumulated within a step are not saved: checkpoints are written between steps only.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    pub fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        let unusable = |path: &Path, reason: String| FairnessError::Checkpoint { path: path.to_owned(), reason };
        let weights = folder.join(format!("{name}.weights.bpk"));
        // A record holds running statistics as of the batch before, unless the evaluation mode was requested since.
        drop(self.module().valid());
        let bytes = self.module().clone().into_record().into_bytes().map_err(|e| unusable(&weights, e.to_string()))?;
        write_atomically(&weights, |file| std::io::Write::write_all(file, &bytes))?;
        if what == Saved::Everything {
            let optimiser = folder.join(format!("{name}.optimiser.bpk"));
            let bytes = self.optimiser.into_bytes().map_err(|e| unusable(&optimiser, e.to_string()))?;
            write_atomically(&optimiser, |file| std::io::Write::write_all(file, &bytes))?;
        }
        Ok(())
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] naming the file if it cannot be read or does not fit this module.
    pub fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        let unusable = |path: &Path, reason: String| FairnessError::Checkpoint { path: path.to_owned(), reason };
        let weights = folder.join(format!("{name}.weights.bpk"));
        let record = ModuleRecord::from_bytes(read(&weights)?).map_err(|e| unusable(&weights, e.to_string()))?;
        let loaded = self.module().clone().try_load_record(record).map_err(|e| unusable(&weights, e.to_string()))?;
        self.module = Some(loaded);
        self.pending = None;
        if what == Saved::Everything {
            let path = folder.join(format!("{name}.optimiser.bpk"));
            let loaded = optimiser(&self.config).from_bytes(read(&path)?);
            self.optimiser = loaded.map_err(|e| unusable(&path, e.to_string()))?;
        }
        Ok(())
    }
}

fn optimiser(config: &OptimiserConfig) -> ModuleOptimizer {
    #[expect(clippy::cast_possible_truncation, reason = "burn takes the weight decay in f32")]
    let weight_decay = config.weight_decay as f32;
    fairtte_models::adamw(1e-8, weight_decay)
}

pub(crate) fn read(path: &Path) -> Result<Bytes, FairnessError> {
    let bytes = std::fs::read(path)
        .map_err(|error| FairnessError::Checkpoint { path: path.to_owned(), reason: error.to_string() })?;
    Ok(Bytes::from_bytes_vec(bytes))
}
