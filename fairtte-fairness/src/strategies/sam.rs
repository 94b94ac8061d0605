//! Sharpness-aware minimisation (Foret et al. 2021, eq. 2-3, arXiv 2010.01412) and its scale-free form ASAM (Kwon et al.
//! 2021, arXiv 2102.11600).
//!
//! Acts on the update; needs no attribute. Two passes over the same batch with the same dropout masks: with g the gradient of
//! the mean loss at w, e = rho g / (|g| + 1e-12), one norm over all parameters; then the gradient at w + e is applied at w.
//! ASAM: T = |w| + eta, e = rho T^2 g / (|T g| + 1e-12). A zero gradient gives e = 0.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `adaptive` | false | | ASAM |
//! | `rho` | 0.05, adaptive 0.5 | > 0 | radius; source 0.05 and 0.5, searched 0.01 to 0.5, MEDFAIR 0.01 to 5 |
//! | `eta` | 0.01 | >= 0 | added to the sizes of the weights; adaptive only |
//!
//! The second pass computes on a copy of the network, so the weights themselves are never perturbed, and running statistics
//! of batch norm advance in the first pass only (both passes normalise with the statistics of the batch). Weight decay and
//! clipping belong to the optimiser's step, at w. Weights without a gradient (frozen ones of a pre-trained start) are not
//! perturbed. With gradient accumulation each small batch has its own e.
//! Survival: nothing to adapt; `DeepHit` ranks and Cox forms risk sets within the batch, the same in both passes.
//! Where we differ from MEDFAIR: its switch for ASAM reads "False" as true, with eta 0, and its learning rate was stepped twice
//! per batch. Golden values: our worked cases `golden/sam.json`.

use crate::Batch;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::one_network::of_one_network;
use super::pass::Pass;
use super::{NETWORK, NamedPart, StepContext, StepReport, Strategy, StrategySettings, TrainingCells};
use crate::gradients::squared_norm;
use crate::trainable::GRADIENT_NORM;
use crate::{FairnessError, Learner, LearnerSpec, SurvivalNetwork, check, check_not_negative, check_positive};

/// Settings of SAM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(!from, deny_unknown_fields))]
#[serde(from = "Written", rename_all = "kebab-case")]
pub struct SamConfig {
    /// Whether the perturbation is scaled by the weights (ASAM).
    #[cfg_attr(feature = "schema", schemars(default))]
    pub adaptive: bool,
    /// Radius of the perturbation, above 0.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub rho: f64,
    /// Added to the sizes of the weights, at least 0; ASAM only.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", extend("default" = ETA)))]
    pub eta: f64,
}

/// The settings in a run file; the default radius depends on `adaptive`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    adaptive: bool,
    rho: Option<f64>,
    eta: Option<f64>,
}

const ETA: f64 = 0.01;

impl From<Written> for SamConfig {
    fn from(written: Written) -> Self {
        let rho = written.rho.unwrap_or(if written.adaptive { 0.5 } else { 0.05 });
        Self { adaptive: written.adaptive, rho, eta: written.eta.unwrap_or(ETA) }
    }
}

impl Default for SamConfig {
    fn default() -> Self {
        Self::from(Written { adaptive: false, rho: None, eta: None })
    }
}

impl StrategySettings for SamConfig {
    fn name(&self) -> &'static str {
        "sam"
    }

    fn summary(&self) -> &'static str {
        "the loss at the worst nearby weights, in two passes (Foret et al. 2021)"
    }

    fn needs_groups(&self) -> bool {
        false
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { adaptive, rho, eta } = *self;
        check_positive("rho", rho)?;
        check_not_negative("eta", eta)?;
        let has_effect = adaptive || eta.total_cmp(&ETA).is_eq();
        check("eta", eta, has_effect, "no value without adaptive = true")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, _cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Sam::new(self, Learner::new(spec, NETWORK)?)?))
    }
}

impl SamConfig {
    /// A copy of `module` at w + e, with running statistics of its own; parameters keep their identities, so that the
    /// gradients of the copy are gradients for the module.
    pub(crate) fn perturbed<M: Module>(&self, module: &M, gradients: &GradientsParams) -> M {
        let copy = module.valid();
        match self.scale(&copy, gradients) {
            Some(scale) => copy.map(&mut Move { gradients, scale, config: *self }).train(),
            None => copy.train(),
        }
    }

    /// rho / (norm + 1e-12), `[1]`; `None` without a gradient. `module` is on the device without autodiff.
    fn scale<M: Module>(&self, module: &M, gradients: &GradientsParams) -> Option<Tensor<1>> {
        Some((self.norm(module, gradients)? + 1e-12).recip() * self.rho)
    }

    /// |g|, or |T g|, over all parameters, `[1]`.
    fn norm<M: Module>(&self, module: &M, gradients: &GradientsParams) -> Option<Tensor<1>> {
        let mut sum = SquaredSum { gradients, config: *self, value: None };
        module.visit(&mut sum);
        sum.value.map(Tensor::sqrt)
    }

    /// T of one tensor of weights; `None` without scaling.
    fn sizes<const D: usize>(&self, weights: Tensor<D>) -> Option<Tensor<D>> {
        self.adaptive.then(|| weights.abs() + self.eta)
    }
}

struct SquaredSum<'a> {
    gradients: &'a GradientsParams,
    config: SamConfig,
    value: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredSum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return };
        let scaled = match self.config.sizes(param.val()) {
            Some(sizes) => sizes * gradient,
            None => gradient,
        };
        let sum = scaled.square().sum();
        self.value = Some(match self.value.take() {
            Some(value) => value + sum,
            None => sum,
        });
    }
}

struct Move<'a> {
    gradients: &'a GradientsParams,
    scale: Tensor<1>,
    config: SamConfig,
}

impl ModuleMapper for Move<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return param };
        param.map(|weights| {
            let scaled = match self.config.sizes(weights.clone()) {
                Some(sizes) => sizes.square() * gradient,
                None => gradient,
            };
            weights + scaled * self.scale.clone().reshape([1; D])
        })
    }
}

/// Minimises the mean loss at the worst nearby weights.
#[derive(Debug)]
pub struct Sam {
    config: SamConfig,
    learner: Learner,
}

impl Sam {
    /// Combines the settings and the network that is trained.
    ///
    /// # Errors
    /// As [`SamConfig::validate`].
    pub fn new(config: &SamConfig, learner: Learner) -> Result<Self, FairnessError> {
        config.validate()?;
        Ok(Self { config: *config, learner })
    }
}

impl Strategy for Sam {
    fn name(&self) -> &'static str {
        "sam"
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        // The same stream name in both passes: both drop the same entries.
        let pass = |network: &SurvivalNetwork| {
            Pass::new(batch, context, |query| network.forward(batch, query, &mut context.noise(NETWORK)))
        };
        let at_weights = pass(self.learner.network())?.task();
        let first = self.learner.gradients(&at_weights, context);
        let perturbed = self.config.perturbed(self.learner.network(), &first);
        let nearby = pass(&perturbed)?.task();
        let read = [at_weights.inner(), nearby.clone().inner()].into_iter();
        let read = read.chain(squared_norm(self.learner.network(), &first)).collect();
        let second = context.gradients(&nearby, &perturbed);
        let losses: Vec<f64> = Tensor::cat(read, 0).into_data().iter::<f64>().collect();
        context.require_finite("the loss", losses[0])?;
        // A gradient that overflowed in f16 makes the perturbed weights NaN, and the loss at them.
        context.require_finite(GRADIENT_NORM, losses.get(2).copied().unwrap_or(0.0).sqrt())?;
        context.require_finite("the loss at the perturbed weights", losses[1])?;
        let gradient_norm = self.learner.update(second, context)?;
        let terms = vec![("sharpness".to_owned(), losses[1] - losses[0])];
        Ok(StepReport { task_loss: losses[0], objective: losses[1], gradient_norm, absent_groups: 0, terms })
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner)]
    }
}

#[cfg(test)]
#[path = "../../tests/inside/sam.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
