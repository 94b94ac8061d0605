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

mod network;
mod settings;

use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use fairtte_data::Sampling;
use serde::{Deserialize, Serialize};

use self::network::{Code, prior_means};
use self::settings::Weights;
use super::adversary::{
    Activation, Adversary, AdversarySpec, advantage, cross_entropy, guess, idle_adversary, negative_entropy,
};
use super::batch_cells::BatchCells;
use super::compared::ComparedGroups;
use super::one_network::of_one_network;
use super::pass::Pass;
use super::step::named;
use super::{
    Idle, NETWORK, NamedPart, State, StepContext, StepReport, Strategy, StrategySettings as _, TrainingCells, Warns,
    Watch,
};
use crate::trainable::Trainable;
use crate::{Batch, FairnessError, Forward, Learner, LearnerSpec};

pub use network::OdrNetwork;
pub use settings::OdrConfig;

/// Two codes with orthogonal priors: the task reads one, and only the other is to contain the group.
#[derive(Debug)]
pub struct Odr {
    config: OdrConfig,
    learner: Learner<OdrNetwork>,
    group_classifier: Trainable<Adversary>,
    groups: ComparedGroups,
    n_training: usize,
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
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "odr")?;
        let of_classifier =
            AdversarySpec { n_inputs: config.code, width: 64, activation: Activation::Relu, n_groups: groups.n_levels };
        let learner = Learner::with_network(spec, |device| OdrNetwork::drawn(spec, config.code, device))?;
        let group_classifier = of_classifier.trainable(spec, GROUP_CLASSIFIER, config.classifier_learning_rate);
        let (config, n_training, state) = (*config, cells.groups.len(), State::default());
        Ok(Self { config, learner, group_classifier, groups, n_training, state })
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
        self.groups.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let Drawn { pass, target, sensitive, sensitive_value } = self.forward(batch, context)?;
        let weights = self.config.weights(self.state.0.samples_seen as f64 / self.n_training as f64);
        let [of_target, of_sensitive] = prior_means(self.config.code);
        let kl = [target.kl_to(&of_target), sensitive.kl_to(&of_sensitive)];
        let (task, of_target, of_sensitive) = (pass.task(), kl[0].clone().mean(), kl[1].clone().mean());
        let cells = BatchCells::of_groups(&batch.groups, self.groups.n_levels);
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
        let mut terms = named([
            ("entropy term", entropy),
            ("distance to the priors", of_target + of_sensitive),
            ("group cross-entropy", of_group),
            (TARGET_CODE, of_target),
            ("nats in the sensitive code", of_sensitive),
        ]);
        if cells.can_compare() {
            terms.push((ADVANTAGE.to_owned(), advantage(of_group, guess(&batch.groups, &self.groups.shares))));
        }
        let (objective, gradient_norm, absent_groups) = (descent.loss, descent.norm, cells.n_absent_groups());
        Ok(StepReport { task_loss, objective, gradient_norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        let empty = Watch {
            name: "empty-code",
            terms: vec![TARGET_CODE.to_owned()],
            idle: Idle::Below(FEWEST_NATS),
            warns: Warns::InTheEnd,
            means: "the code that the head reads contains almost no information about a sample, in nats of its distance to the prior",
            change: "lower `lambda-orthogonality`, which keeps the codes at their priors, or `code`",
        };
        let means =
            "the classifier never found the group in the sensitive code, so it cannot keep it out of the target code";
        let change = "raise `classifier-learning-rate`, or lower `lambda-orthogonality`; if the inputs \
                      do not show the group, there is nothing to remove";
        vec![empty, idle_adversary(ADVANTAGE, means, change)]
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![
            NamedPart::weights(NETWORK, &mut self.learner),
            NamedPart::training(GROUP_CLASSIFIER, &mut self.group_classifier),
            NamedPart::training("odr", &mut self.state),
        ]
    }
}

/// The objective of encoder, codes and head besides the loss of the sensitive code, `[1]`: the task, the negative
/// entropy of the classifier on the target code, and the distances of both codes (`[batch]` each) from their priors.
fn objective(task: Tensor<1>, negative_entropy: Tensor<1>, kl: [Tensor<1>; 2], weights: Weights) -> Tensor<1> {
    let [of_target, of_sensitive] = kl;
    task + negative_entropy * weights.entropy + (of_target.mean() + of_sensitive.mean()) * weights.orthogonality
}

#[cfg(test)]
#[path = "../../../tests/inside/odr.rs"]
mod tests;
