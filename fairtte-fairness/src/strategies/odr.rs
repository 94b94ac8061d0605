//! Orthogonal disentangled representations (Sarhan, Navab, Eslami & Albarqouni 2020, section 2, arXiv 2003.05707).
//!
//! Acts on the representation; needs the attribute in training only. Two codes are computed from the representation,
//! for the task `z_T` ~ N(`mu_T`, `s_T`) and for the group `z_S` ~ N(`mu_S`, `s_S`). The head reads `z_T`, a classifier
//! of the group both. `L_task` + `l_E`(t) mean of sum q log q (classifier on `z_T`, its weights fixed) + `l_OD`(t) mean of
//! (KL(`z_T` || N(`m_T`, I)) + KL(`z_S` || N(`m_S`, I))) + `L_s`, with `m_T` = (0 .. 0, 1 .. 1) orthogonal to `m_S` = (1 .. 1, 0 .. 0)
//! and l(t) = lambda gamma^(t / `t_s`). `L_s`, the cross-entropy on `z_S`, trains classifier and sensitive code and does not
//! reach the encoder that both codes share. Noise is drawn entry by entry in training; prediction reads the mean of `z_T`.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `lambda-entropy` | 0.1 | >= 0, search [0.01, 5] | weight of the entropy on the target code |
//! | `lambda-orthogonality` | 0.001 | >= 0 | weight of the distances, which are sums over the code; at 0.1, with a code of 64, every prediction is the same |
//! | `gamma-entropy`, `gamma-orthogonality` | 1 | > 0, search [0.5, 1.5] | their factors per `schedule-epochs` |
//! | `schedule-epochs` | 20 | > 0 | `t_s`, in epochs; t is the number of samples seen by that of the training part |
//! | `code` | 32 | 2 to 65536 | length of each code; a short one hides more and costs more |
//! | `classifier-learning-rate` | 1e-3 | > 0 | step size of the group classifier (Adam); without weight decay |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Survival: no class is read. Samples without the attribute enter the task and the distances to the priors, which read no
//! group; a batch without two groups has no entropy term and no `L_s`. The classifier (Linear 64, `ReLU`, Linear) learns from
//! `L_s` alone; in MEDFAIR's code it is also trained on the entropy, the noise is one matrix for the whole batch that is
//! also used in prediction, and the distance is taken between draws without gradient. Golden values: our worked cases
//! `golden/odr.json`.

use crate::Batch;
use crate::explain::Traced;
use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use fairtte_data::Sampling;
use fairtte_models::{ImageEncoder, Noise, initialise};
use fairtte_survival::Classifier;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::adversary::{
    Activation, Adversary, AdversarySpec, advantage, adversary_optimiser, cross_entropy, guess, idle_adversary,
    n_trained_groups, negative_entropy,
};
use super::batch_cells::BatchCells;
use super::numbers::constant;
use super::pass::{Pass, survival_of};
use super::{
    Idle, NETWORK, NamedPart, State, StepContext, StepReport, Strategy, StrategySettings, TrainingCells, Warns, Watch,
};
use crate::features::Layer;
use crate::learner::EncoderNetwork;
use crate::network::on_host;
use crate::predict::{CurveRule, Parts, fit_baseline};
use crate::trainable::Trainable;
use crate::{Export, FairnessError, Forward, Learner, LearnerSpec, check};

/// Settings of ODR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OdrConfig {
    /// Weight of the entropy on the target code, at least 0.
    pub lambda_entropy: f64,
    /// Weight of the distances to the priors, at least 0.
    pub lambda_orthogonality: f64,
    /// Factor of `lambda_entropy` per `schedule_epochs`, above 0.
    pub gamma_entropy: f64,
    /// Factor of `lambda_orthogonality` per `schedule_epochs`, above 0.
    pub gamma_orthogonality: f64,
    /// Epochs after which a weight has changed by its factor, above 0.
    pub schedule_epochs: f64,
    /// Length of each code, 2 to 65,536.
    pub code: usize,
    /// Step size of the group classifier, above 0.
    pub classifier_learning_rate: f64,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for OdrConfig {
    fn default() -> Self {
        Self {
            lambda_entropy: 0.1,
            lambda_orthogonality: 0.001,
            gamma_entropy: 1.0,
            gamma_orthogonality: 1.0,
            schedule_epochs: 20.0,
            code: 32,
            classifier_learning_rate: 1e-3,
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for OdrConfig {
    fn name(&self) -> &'static str {
        "odr"
    }

    fn summary(&self) -> &'static str {
        "two orthogonal codes, one for the task and one for the group (Sarhan et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        for (key, weight) in
            [("lambda-entropy", self.lambda_entropy), ("lambda-orthogonality", self.lambda_orthogonality)]
        {
            check(key, weight, weight >= 0.0 && weight.is_finite(), "a finite number >= 0")?;
        }
        for (key, value) in [
            ("gamma-entropy", self.gamma_entropy),
            ("gamma-orthogonality", self.gamma_orthogonality),
            ("schedule-epochs", self.schedule_epochs),
            ("classifier-learning-rate", self.classifier_learning_rate),
        ] {
            check(key, value, value > 0.0 && value.is_finite(), "a finite number > 0")?;
        }
        let in_range = (2..=65_536).contains(&self.code);
        check("code", self.code, in_range, "a whole number from 2 to 65536")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Odr::new(self, spec, cells)?))
    }
}

impl OdrConfig {
    /// The weights when each training sample was seen `epochs` times on average.
    fn weights(&self, epochs: f64) -> Weights {
        let scale = self.schedule_epochs;
        Weights {
            entropy: scheduled(self.lambda_entropy, self.gamma_entropy, epochs, scale),
            orthogonality: scheduled(self.lambda_orthogonality, self.gamma_orthogonality, epochs, scale),
        }
    }
}

/// The network that maps pixels to two codes, and the target code to the input of a head.
#[derive(Module, Debug)]
pub struct OdrNetwork {
    encoder: ImageEncoder,
    classifier: Classifier,
    target: CodeLayers,
    sensitive: CodeLayers,
}

/// The layers that map a representation to the parameters of a code.
#[derive(Module, Debug)]
struct CodeLayers {
    mean: Linear,
    log_var: Linear,
}

impl CodeLayers {
    fn forward(&self, representation: Tensor<2>) -> Code {
        Code { mean: self.mean.forward(representation.clone()), log_var: self.log_var.forward(representation) }
    }
}

impl EncoderNetwork for OdrNetwork {
    fn encoder(&self) -> &ImageEncoder {
        &self.encoder
    }

    fn with_encoder(self, encoder: ImageEncoder) -> Self {
        Self { encoder, ..self }
    }
}

impl OdrNetwork {
    fn drawn(spec: &LearnerSpec, code: usize, device: &Device) -> Self {
        let representation = spec.network.encoder.n_representation();
        let linear = || LinearConfig::new(representation, code).with_initializer(Initializer::Zeros).init(device);
        let layers = || CodeLayers { mean: linear(), log_var: linear() };
        let network = Self {
            encoder: spec.network.encoder.build(spec.network.channels, device),
            classifier: Classifier::new(&spec.network.classifier, code, device),
            target: layers(),
            sensitive: layers(),
        };
        initialise(network, spec.weights(NETWORK))
    }

    /// Mean of the target code, which the head reads in evaluation, `[batch, code]`. Call it on `valid()` of a network.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the pixels.
    pub fn target_mean(&self, batch: &Batch) -> Result<Tensor<2>, FairnessError> {
        let representation = self.encoder.forward(batch.pixels.clone(), &mut Noise::Off)?;
        Ok(self.target.forward(representation).value(None))
    }

    /// Outputs in evaluation mode. Call it on `valid()` of a network.
    fn outputs(&self, batch: &Batch, query: &[f64]) -> Result<Array2<f32>, FairnessError> {
        Ok(on_host(self.classifier.forward(self.target_mean(batch)?, query)))
    }
}

/// Two codes with orthogonal priors: the task reads one, and only the other is to contain the group.
#[derive(Debug)]
pub struct Odr {
    config: OdrConfig,
    learner: Learner<OdrNetwork>,
    group_classifier: Trainable<Adversary>,
    n_levels: usize,
    n_training: usize,
    sampling: Sampling,
    /// Share of every group among the samples drawn.
    shares: Vec<f64>,
    state: State<Seen>,
}

/// The state that a resumed run needs besides weights and optimisers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// Training samples seen, with repetitions.
    samples_seen: u64,
}

const GROUP_CLASSIFIER: &str = "group-classifier";
const TARGET_CODE: &str = "nats in the target code";
const ADVANTAGE: &str = "classifier advantage";

/// The mean distance of the target code to its prior is at least the information that the code has about the identity of
/// the sample: below this value there is almost none.
const FEWEST_NATS: f64 = 1.0;

impl Odr {
    /// Draws the weights of both networks.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`]
    /// without two groups in training.
    pub fn new(config: &OdrConfig, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        n_trained_groups(cells, "odr")?;
        let n_levels = cells.levels.len();
        let of_classifier =
            AdversarySpec { n_inputs: config.code, width: 64, activation: Activation::Relu, n_groups: n_levels };
        let learner = Learner::with_network(spec, |device| OdrNetwork::drawn(spec, config.code, device))?;
        let device = spec.device.clone().autodiff();
        let classifier = Adversary::drawn(&of_classifier, spec.weights(GROUP_CLASSIFIER), &device);
        let group_classifier = Trainable::new(classifier, &adversary_optimiser(spec, config.classifier_learning_rate));
        let n_training = cells.groups.len();
        let (sampling, shares) = (cells.sampling(config.balanced_sampler), cells.shares(config.balanced_sampler));
        let (config, state) = (*config, State::default());
        Ok(Self { config, learner, group_classifier, n_levels, n_training, sampling, shares, state })
    }

    /// Encoder, codes and head with their present weights.
    pub fn network(&self) -> &OdrNetwork {
        self.learner.network()
    }

    /// Both codes, the draws from them, and the loss of every sample by the target code.
    fn forward(&self, batch: &Batch, context: &StepContext<'_>) -> Result<Drawn, FairnessError> {
        let network = self.learner.network();
        let representation = network.encoder.forward(batch.pixels.clone(), &mut context.noise(NETWORK))?;
        let target = network.target.forward(representation.clone());
        let sensitive = network.sensitive.forward(representation.clone());
        let target_value = target.value(context.noise("target-code").standard_normal(&target.mean));
        // The cross-entropy of the group trains the layers of the code, not the encoder before them.
        let apart = network.sensitive.forward(representation.detach());
        let sensitive_value = apart.value(context.noise("sensitive-code").standard_normal(&apart.mean));
        let read = |query: &[f64]| {
            let outputs = network.classifier.forward(target_value.clone(), query);
            Ok(Forward { before_dropout: target_value.clone(), representation: target_value.clone(), outputs })
        };
        let pass = Pass::new(batch, context, read)?;
        Ok(Drawn { pass, target, sensitive, sensitive_value })
    }
}

/// The result of a training pass; the representation of `pass` is the draw from the target code.
struct Drawn {
    pass: Pass,
    target: Code,
    sensitive: Code,
    /// A draw from the sensitive code, detached from the shared encoder, `[batch, code]`.
    sensitive_value: Tensor<2>,
}

impl Strategy for Odr {
    fn name(&self) -> &'static str {
        "odr"
    }

    fn sampling(&self) -> Sampling {
        self.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let Drawn { pass, target, sensitive, sensitive_value } = self.forward(batch, context)?;
        let weights = self.config.weights(self.state.0.samples_seen as f64 / self.n_training as f64);
        let [of_target, of_sensitive] = prior_means(self.config.code);
        let kl = [target.kl_to(&of_target), sensitive.kl_to(&of_sensitive)];
        let (task, of_target, of_sensitive) = (pass.task(), kl[0].clone().mean(), kl[1].clone().mean());
        let cells = BatchCells::of_groups(&batch.groups, self.n_levels);
        let (mut entropy, mut of_group) = (task.zeros_like(), task.zeros_like());
        let mut classifier_loss = None;
        if cells.can_compare() {
            let classifier = self.group_classifier.module();
            entropy = negative_entropy(classifier.forward(pass.representation), &cells);
            of_group = cross_entropy(classifier.forward(sensitive_value.clone()), &cells);
            classifier_loss = Some(cross_entropy(classifier.forward(sensitive_value.detach()), &cells));
        }
        // The learner updates its own parameters only: the classifier's weights are fixed in both terms.
        let loss = objective(task.clone(), entropy.clone(), kl, weights) + of_group.clone();
        let read = [task, entropy, of_group, of_target, of_sensitive];
        let descent = self.learner.descend_reading(&loss, &read, context)?;
        match classifier_loss {
            Some(loss) => self.group_classifier.descend(&loss, context)?,
            None => self.group_classifier.update(GradientsParams::new(), context)?, // of earlier batches of this step
        };
        self.state.0.samples_seen += batch.n() as u64;
        let [task_loss, entropy, of_group, of_target, of_sensitive] = descent.also[..] else {
            unreachable!("five numbers were read")
        };
        let mut terms = vec![
            ("entropy term", entropy),
            ("distance to the priors", of_target + of_sensitive),
            ("group cross-entropy", of_group),
            (TARGET_CODE, of_target),
            ("nats in the sensitive code", of_sensitive),
        ];
        if cells.can_compare() {
            terms.push((ADVANTAGE, advantage(of_group, guess(&batch.groups, &self.shares))));
        }
        Ok(StepReport {
            task_loss,
            objective: descent.loss,
            gradient_norm: descent.norm,
            absent_groups: cells.n_absent_groups(),
            terms: terms.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        })
    }

    fn watches(&self) -> Vec<Watch> {
        let empty = Watch {
            name: "empty-code",
            terms: vec![TARGET_CODE.to_owned()],
            idle: Idle::Below(FEWEST_NATS),
            warns: Warns::InTheEnd,
            means: "the code that the head reads contains almost no information about a sample, in nats of its distance to the prior",
            change: "lower strategy.odr.lambda-orthogonality, which keeps the codes at their priors, or strategy.odr.code",
        };
        let means =
            "the classifier never found the group in the sensitive code, so it cannot keep it out of the target code";
        let change = "raise strategy.odr.classifier-learning-rate, or lower strategy.odr.lambda-orthogonality; if the inputs \
                      do not show the group, there is nothing to remove";
        vec![empty, idle_adversary(ADVANTAGE, means, change)]
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let network = self.learner.network().valid();
        let baseline = fit_baseline(&parts.train, |batch, query| network.outputs(batch, query))?;
        self.learner.set_baseline(baseline);
        Ok(())
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let network = self.learner.network().valid();
        survival_of(&self.learner, rule, |query| network.outputs(batch, query))
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let network = self.learner.network().clone().freeze();
        let code = network.target_mean(batch)?;
        self.learner.traced_by(rule, |query| Ok(network.classifier.forward(code, query)))
    }

    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        match layer {
            Layer::Backbone => self.learner.features(batch, layer),
            Layer::Representation => Ok(on_host(self.learner.network().valid().target_mean(batch)?)),
        }
    }

    fn export(&self) -> Result<Export, FairnessError> {
        let OdrNetwork { encoder, classifier, target, .. } = &self.learner.network().valid();
        Export::of_code(encoder, &target.mean, classifier, self.learner.baseline())
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![
            NamedPart::weights(NETWORK, &mut self.learner),
            NamedPart::training(GROUP_CLASSIFIER, &mut self.group_classifier),
            NamedPart::training("odr", &mut self.state),
        ]
    }
}

/// Weights of the two terms at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weights {
    entropy: f64,
    orthogonality: f64,
}

/// lambda gamma^(t / `t_s`).
fn scheduled(lambda: f64, gamma: f64, time: f64, scale: f64) -> f64 {
    lambda * gamma.powf(time / scale)
}

/// Means of the priors of target and sensitive code: (0 .. 0, 1 .. 1) and (1 .. 1, 0 .. 0), which are orthogonal.
fn prior_means(code: usize) -> [Vec<f64>; 2] {
    let first_half = |i: usize| i < code / 2;
    [(0..code).map(|i| f64::from(!first_half(i))).collect(), (0..code).map(|i| f64::from(first_half(i))).collect()]
}

/// A normal distribution for every sample, `[batch, code]` each.
#[derive(Clone, Debug)]
struct Code {
    mean: Tensor<2>,
    log_var: Tensor<2>,
}

impl Code {
    /// A draw in training, mean + exp(`log_var` / 2) noise entry by entry; the mean without noise.
    fn value(&self, noise: Option<Tensor<2>>) -> Tensor<2> {
        let mean = self.mean.clone();
        match noise {
            Some(noise) => mean + (self.log_var.clone() / 2.0).exp() * noise,
            None => mean,
        }
    }

    /// KL(N(mean, exp(`log_var`)) || N(`prior_mean`, 1)) of every sample, `[batch]`:
    /// 1/2 sum over the code of exp(`log_var`) + (mean - `prior_mean`)^2 - 1 - `log_var`.
    fn kl_to(&self, prior_mean: &[f64]) -> Tensor<1> {
        let prior = constant(prior_mean.to_vec(), [1, prior_mean.len()], &self.mean);
        let log_var = self.log_var.clone();
        let of_entry = log_var.clone().exp() + (self.mean.clone() - prior).square() - 1.0 - log_var;
        of_entry.sum_dim(1).flatten(0, 1) / 2.0
    }
}

/// The objective of encoder, codes and head besides the loss of the sensitive code, `[1]`: the task, the negative
/// entropy of the classifier on the target code, and the distances of both codes (`[batch]` each) from their priors.
fn objective(task: Tensor<1>, negative_entropy: Tensor<1>, kl: [Tensor<1>; 2], weights: Weights) -> Tensor<1> {
    let [of_target, of_sensitive] = kl;
    task + negative_entropy * weights.entropy + (of_target.mean() + of_sensitive.mean()) * weights.orthogonality
}

#[cfg(test)]
#[path = "../../tests/inside/odr.rs"]
mod tests;
