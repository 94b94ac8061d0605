//! Domain independence (Wang et al. 2020, section 4.3, arXiv 1911.11834; the paper's D.2.4).
//!
//! Acts on the classifier and on prediction: one encoder, one classifier per group; each sample trains the encoder and the
//! classifier of its own group. The attribute is read in training, and in prediction only by `own-group`.
//!
//! | setting | default | values | meaning |
//! |---|---|---|---|
//! | `inference` | `mean-logits` | | the curve of the mean of the outputs of all classifiers |
//! | | | `mean-survival` | the mean of the curves of all classifiers |
//! | | | `share-weighted` | their mean with the training shares of the groups |
//! | | | `share-weighted-logits` | the curve of the mean output with these shares |
//! | | | `own-group` | the curve of the sample's own classifier |
//! | `missing-attribute` | `average` | `average`, `refuse` | `own-group` only: without the attribute the `share-weighted` curve, or an error |
//!
//! Outputs are averaged, not summed as in the source and in MEDFAIR: the order of the samples is the same for one output,
//! but a sum makes curves over-confident. Groups without a training sample are ignored.
//! A classifier whose group is absent from the batch has no gradient: neither weight decay nor momentum changes it. A
//! sample without the attribute trains the task but enters no group's term: its output is the mean of all classifiers, as
//! `mean-logits` predicts, and its gradient goes to the encoder only.
//!
//! Survival: heads that compare samples (`DeepHit`, the Cox heads) compare the outputs of each sample's own classifier,
//! over the whole batch. So the Cox heads have one baseline for all groups: fitted on the outputs of the samples' own classifiers
//! where curves are averaged or `own-group`, and on the averaged outputs where outputs are. Golden values: our worked cases
//! `golden/domain_independence.json`.

mod network;
mod settings;

use burn::module::Module as _;
use fairtte_models::Noise;
use ndarray::Array2;

use super::missing::known;
use super::mixture::{mixture, shares};
use super::pass::{Pass, task_alone};
use super::{NETWORK, NamedPart, StepContext, StepReport, Strategy, StrategySettings as _, TrainingCells};
use crate::explain::Traced;
use crate::features::Layer;
use crate::network::on_host;
use crate::predict::{CurveRule, Parts, fit_baseline};
use crate::{Batch, Combination, EncoderNetwork as _, Export, FairnessError, Forward, Learner, LearnerSpec};

pub use network::DomainNetwork;
pub use settings::{DomainIndependentConfig, DomainInference};

/// A shared encoder with a classifier for each group.
#[derive(Debug)]
pub struct DomainIndependent {
    config: DomainIndependentConfig,
    learner: Learner<DomainNetwork>,
    /// Share of each group in training.
    shares: Vec<f64>,
    /// The same weight for every group that occurs in training.
    equal: Vec<f64>,
}

const NAME: &str = "domain-independent";
const KEY: &str = "missing-attribute";

impl DomainIndependent {
    /// Builds the network for the groups of the training part.
    ///
    /// # Errors
    /// As [`DomainIndependentConfig::validate`] and [`Learner::with_network`]; [`FairnessError::NoGroups`] if no training
    /// sample has a group.
    pub fn new(
        config: &DomainIndependentConfig,
        spec: &LearnerSpec,
        cells: &TrainingCells,
    ) -> Result<Self, FairnessError> {
        config.validate()?;
        cells.require_groups(NAME)?;
        let counts = cells.counts();
        let learner = Learner::with_network(spec, |device| {
            DomainNetwork::new(&spec.network, counts.len(), spec.weights(NETWORK), device)
        })?;
        let present: Vec<usize> = counts.iter().map(|n| usize::from(*n > 0)).collect();
        Ok(Self { config: *config, learner, shares: shares(&counts), equal: shares(&present) })
    }

    /// Weights of the rule, `[n_groups]`.
    fn weights(&self) -> &[f64] {
        match self.config.inference {
            DomainInference::MeanLogits | DomainInference::MeanSurvival => &self.equal,
            _ => &self.shares,
        }
    }

    /// Averaged curves, or those of each sample's own classifier; `of_group` are the curves of a group's classifier.
    fn curves(
        &self,
        batch: &Batch,
        rule: &CurveRule<'_>,
        of_group: impl Fn(usize) -> Result<Array2<f64>, FairnessError>,
    ) -> Result<Array2<f64>, FairnessError> {
        let is_own = self.config.inference == DomainInference::OwnGroup;
        let group_of = |i: usize| if is_own { known(batch.groups[i], &self.shares) } else { None };
        let is_known = |i: usize| !is_own || group_of(i).is_some();
        self.config.missing_attribute.admit(NAME, KEY, &batch.sample_ids, is_known)?;
        let mut curves = if (0..batch.n()).all(|i| group_of(i).is_some()) {
            Array2::zeros((batch.n(), rule.grid.times().len()))
        } else {
            mixture(self.weights(), &of_group)?.expect("some group occurs in training")
        };
        for g in 0..self.shares.len() {
            let rows: Vec<usize> = (0..batch.n()).filter(|i| group_of(*i) == Some(g)).collect();
            if rows.is_empty() {
                continue;
            }
            let own = of_group(g)?;
            for row in rows {
                curves.row_mut(row).assign(&own.row(row));
            }
        }
        Ok(curves)
    }
}

impl Strategy for DomainIndependent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let network = self.learner.network();
        let pass = Pass::new(batch, context, |query| {
            let representation = network.represent(batch, &mut context.noise(NETWORK))?;
            let outputs = network.own(&batch.groups, &self.equal, &representation, query);
            Ok(Forward { before_dropout: representation.clone(), representation, outputs }) // no term uses them
        })?;
        let descent = self.learner.descend_reading(&pass.task(), &[], context)?;
        let is_absent = |g: &usize| self.shares[*g] > 0.0 && batch.groups.iter().flatten().all(|of| of.index() != *g);
        let absent_groups = (0..self.shares.len()).filter(is_absent).count();
        Ok(task_alone(&descent, descent.loss, absent_groups))
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let network = self.learner.network().valid();
        let baseline = fit_baseline(&parts.train, |batch, query| {
            let representation = network.represent(batch, &mut Noise::Off)?;
            Ok(on_host(if self.config.inference.averages_outputs() {
                network.combined(self.weights(), &representation, query)
            } else {
                network.own(&batch.groups, &self.equal, &representation, query)
            }))
        })?;
        self.learner.set_baseline(baseline);
        Ok(())
    }

    fn needs_group_to_predict(&self) -> bool {
        self.config.inference == DomainInference::OwnGroup
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let network = self.learner.network().valid();
        let representation = network.represent(batch, &mut Noise::Off)?;
        if self.config.inference.averages_outputs() {
            let outputs = |query: &[f64]| Ok(on_host(network.combined(self.weights(), &representation, query)));
            return self.learner.survival_by(rule, outputs);
        }
        self.curves(batch, rule, |g| {
            self.learner.survival_by(rule, |query| Ok(on_host(network.of_group(g, representation.clone(), query))))
        })
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let network = self.learner.network().clone().freeze();
        let representation = network.represent(batch, &mut Noise::Off)?;
        if self.config.inference.averages_outputs() {
            let outputs = |query: &[f64]| Ok(network.combined(self.weights(), &representation, query));
            return self.learner.traced_by(rule, outputs);
        }
        let present: Vec<usize> = (0..self.shares.len()).filter(|g| self.shares[*g] > 0.0).collect();
        let of_group =
            |g: &usize| self.learner.traced_by(rule, |query| Ok(network.of_group(*g, representation.clone(), query)));
        let parts = present.iter().map(of_group).collect::<Result<_, _>>()?;
        Ok(Traced::joined(parts, move |rule, curves| {
            let part = |g: usize| present.iter().position(|of| *of == g).expect("a group with a weight");
            self.curves(batch, rule, |g| curves(part(g)))
        }))
    }

    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        self.learner.features(batch, layer)
    }

    fn export(&self) -> Result<Export, FairnessError> {
        let network = self.learner.network().valid();
        let combination = match self.config.inference {
            DomainInference::OwnGroup => Combination::OwnGroup { missing_attribute: self.config.missing_attribute },
            inference if inference.averages_outputs() => Combination::MeanOfOutputs,
            _ => Combination::MeanOfCurves,
        };
        let (weights, baseline) = (self.weights(), self.learner.baseline());
        Export::of_classifiers(network.encoder(), network.classifiers(), weights, baseline, combination)
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner)]
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/domain_independent.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
