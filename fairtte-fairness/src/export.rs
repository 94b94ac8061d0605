//! What leaves this program of a trained model: the tensors that prediction reads, and how their results become curves.
//!
//! A network is a chain: backbone and projection to the representation, for `odr` the mean of the target code, and the
//! classifier to the outputs that the head reads. Parts that several networks share are in the file once. What only
//! training needs (adversaries, the classifier of `odr`, optimisers) is left out. A strategy says by
//! [`Strategy::export`](crate::Strategy::export) what of it is exported; by default it refuses.

use burn::module::Module as _;
use fairtte_models::ImageEncoder;
use fairtte_models::weights::{NamedTensor, encoder_tensors, of_group, tensors};
use fairtte_survival::{Baseline, Classifier};
use serde::{Deserialize, Serialize};

use crate::strategies::{MissingAttribute, RecalibrationMaps};
use crate::{EncoderNetwork as _, FairnessError, Learner, SurvivalNetwork};

/// Prefix of the layers of the classifier.
const CLASSIFIER: &str = "classifier.";
/// Prefix of the mean of a code between representation and classifier.
const CODE: &str = "target.mean.";

/// What prediction needs of a trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Weights by name.
    pub tensors: Vec<NamedTensor>,
    /// The networks that read them.
    pub networks: Vec<ExportedNetwork>,
    /// How the networks make one curve.
    pub combination: Combination,
    /// Maps of the curves of every group, applied at the end.
    pub recalibration: Option<RecalibrationMaps>,
}

/// A chain from inputs to the outputs that the head reads, by the prefixes of its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExportedNetwork {
    /// Index of the group that it belongs to, if it does.
    pub group: Option<usize>,
    /// Prefix of backbone and projection.
    pub encoder: String,
    /// Prefix of the linear layer between representation and classifier, if there is one.
    pub code: Option<String>,
    /// Prefix of the classifier.
    pub classifier: String,
    /// Its weight in [`Combination`]; 1 if there is one network.
    pub weight: f64,
    /// Baseline hazard that belongs to its weights, for the Cox heads.
    pub baseline: Option<Baseline>,
}

/// How several networks make one curve, with their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "rule", deny_unknown_fields)]
pub enum Combination {
    /// There is one network.
    OneNetwork,
    /// The weighted mean of the outputs becomes the curve.
    MeanOfOutputs,
    /// The weighted mean of the curves.
    MeanOfCurves,
    /// The curve of the network of the sample's group.
    #[serde(rename_all = "kebab-case")]
    OwnGroup {
        /// The prediction for a sample without a group: the weighted mean of the curves, or none.
        missing_attribute: MissingAttribute,
    },
}

impl Combination {
    /// In words.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::OneNetwork => "one network, whose curve is the prediction",
            Self::MeanOfOutputs => {
                "outputs of all networks are averaged with their weights; the mean becomes the curve by the rule of the head"
            }
            Self::MeanOfCurves => {
                "the survival curves of all networks, each by the rule of the head, are averaged with their weights"
            }
            Self::OwnGroup { missing_attribute: MissingAttribute::Average } => {
                "the curve of the network of the sample's group; without one the mean of all curves with their weights"
            }
            Self::OwnGroup { missing_attribute: MissingAttribute::Refuse } => {
                "the curve of the network of the sample's group; without one there is no prediction"
            }
        }
    }
}

impl ExportedNetwork {
    /// The only network of a model.
    fn only(baseline: Option<&Baseline>) -> Self {
        Self {
            group: None,
            encoder: String::new(),
            code: None,
            classifier: CLASSIFIER.to_owned(),
            weight: 1.0,
            baseline: baseline.cloned(),
        }
    }
}

impl Export {
    /// A model that consists of `network`.
    ///
    /// # Errors
    /// As [`encoder_tensors`]; [`FairnessError::MasksNotExported`] for a network of masks.
    pub(crate) fn of_network(network: &SurvivalNetwork, baseline: Option<&Baseline>) -> Result<Self, FairnessError> {
        let network = network.valid();
        let mut export = Self::shared(network.encoder(), Combination::OneNetwork)?;
        export.add(CLASSIFIER, network.classifier().ok_or(FairnessError::MasksNotExported)?);
        export.networks.push(ExportedNetwork::only(baseline));
        Ok(export)
    }

    /// A model whose classifier reads the linear layer `code` of the representation.
    pub(crate) fn of_code(
        encoder: &ImageEncoder,
        code: &burn::nn::Linear,
        classifier: &Classifier,
        baseline: Option<&Baseline>,
    ) -> Result<Self, FairnessError> {
        let mut export = Self::shared(encoder, Combination::OneNetwork)?;
        export.tensors.extend(tensors(code).into_iter().map(|tensor| tensor.below(CODE)));
        export.add(CLASSIFIER, classifier);
        export.networks.push(ExportedNetwork { code: Some(CODE.to_owned()), ..ExportedNetwork::only(baseline) });
        Ok(export)
    }

    /// One encoder, with a classifier for every group that has a weight.
    pub(crate) fn of_classifiers(
        encoder: &ImageEncoder,
        classifiers: &[Classifier],
        weights: &[f64],
        baseline: Option<&Baseline>,
        combination: Combination,
    ) -> Result<Self, FairnessError> {
        let mut export = Self::shared(encoder, combination)?;
        let groups = classifiers.iter().zip(weights).enumerate().filter(|(_, (_, weight))| **weight > 0.0);
        for (g, (classifier, weight)) in groups {
            let name = format!("{}{CLASSIFIER}", of_group(g));
            export.add(&name, classifier);
            let only = ExportedNetwork::only(baseline);
            export.networks.push(ExportedNetwork { group: Some(g), classifier: name, weight: *weight, ..only });
        }
        Ok(export)
    }

    /// Several whole networks, by the index of their group and their weight, whose curves are averaged.
    pub(crate) fn of_groups<'a>(
        networks: impl Iterator<Item = (usize, f64, &'a Learner)>,
    ) -> Result<Self, FairnessError> {
        let combination = Combination::MeanOfCurves;
        let mut all = Self { tensors: Vec::new(), networks: Vec::new(), combination, recalibration: None };
        for (g, weight, learner) in networks.filter(|(_, weight, _)| *weight > 0.0) {
            let prefix = of_group(g);
            let one = Self::of_network(learner.network(), learner.baseline())?;
            all.tensors.extend(one.tensors.into_iter().map(|tensor| tensor.below(&prefix)));
            all.networks.extend(one.networks.into_iter().map(|network| ExportedNetwork {
                group: Some(g),
                classifier: format!("{prefix}{}", network.classifier),
                encoder: prefix.clone(),
                weight,
                ..network
            }));
        }
        Ok(all)
    }

    /// A model with `encoder` and no network yet.
    fn shared(encoder: &ImageEncoder, combination: Combination) -> Result<Self, FairnessError> {
        Ok(Self { tensors: encoder_tensors(encoder)?, networks: Vec::new(), combination, recalibration: None })
    }

    fn add(&mut self, prefix: &str, classifier: &Classifier) {
        self.tensors.extend(tensors(classifier).into_iter().map(|tensor| tensor.below(prefix)));
    }
}
