//! One encoder, one classifier per group.

use crate::Batch;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use fairtte_metrics::GroupId;
use fairtte_models::{ImageEncoder, Noise, initialise};
use fairtte_survival::Classifier;
use rand_chacha::ChaCha8Rng;

use crate::{EncoderNetwork, FairnessError, NetworkSpec};

/// The network that maps pixels to the input of a head, with a classifier for each group.
#[derive(Module, Debug)]
pub struct DomainNetwork {
    encoder: ImageEncoder,
    classifiers: Vec<Classifier>,
}

impl EncoderNetwork for DomainNetwork {
    fn encoder(&self) -> &ImageEncoder {
        &self.encoder
    }

    fn with_encoder(self, encoder: ImageEncoder) -> Self {
        Self { encoder, ..self }
    }
}

impl DomainNetwork {
    /// Builds the network for `n_groups` groups and draws its weights from `stream`.
    pub fn new(spec: &NetworkSpec, n_groups: usize, stream: ChaCha8Rng, device: &Device) -> Self {
        let encoder = spec.encoder.build(spec.channels, device);
        let classifier = |_| Classifier::new(&spec.classifier, spec.encoder.n_representation(), device);
        initialise(Self { encoder, classifiers: (0..n_groups).map(classifier).collect() }, stream)
    }

    /// Representation `[batch, n_representation]`.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the pixels.
    pub(super) fn represent(&self, batch: &Batch, noise: &mut Noise) -> Result<Tensor<2>, FairnessError> {
        Ok(self.encoder.forward(batch.pixels.clone(), noise)?)
    }

    /// Outputs of the classifier of group `g`, `[batch, n_outputs]`.
    pub(super) fn of_group(&self, g: usize, representation: Tensor<2>, query: &[f64]) -> Tensor<2> {
        self.classifiers[g].forward(representation, query)
    }

    /// The classifiers of all groups.
    pub(super) fn classifiers(&self) -> &[Classifier] {
        &self.classifiers
    }

    #[cfg(test)]
    pub(super) fn classifier(&self, g: usize) -> &Classifier {
        &self.classifiers[g]
    }

    /// Weighted sum of the outputs of all classifiers, `[batch, n_outputs]`; at least one weight must not be 0.
    pub(super) fn combined(&self, weights: &[f64], representation: &Tensor<2>, query: &[f64]) -> Tensor<2> {
        let parts = self.classifiers.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        weighted_sum(parts.map(|(classifier, weight)| (classifier.forward(representation.clone(), query), *weight)))
    }

    /// Outputs of each sample's own classifier, `[batch, n_outputs]`. A sample without a group that has a weight gets the
    /// weighted mean of all classifiers, which receive no gradient from it.
    pub(super) fn own(
        &self,
        groups: &[Option<GroupId>],
        weights: &[f64],
        representation: &Tensor<2>,
        query: &[f64],
    ) -> Tensor<2> {
        let groups: Vec<Option<usize>> = groups.iter().map(|group| super::known(*group, weights)).collect();
        routed(&groups, &representation.device(), |group, rows| {
            let chosen = representation.clone().select(0, rows);
            if let Some(g) = group {
                return self.of_group(g, chosen, query);
            }
            let still = Self { encoder: self.encoder.clone(), classifiers: self.classifiers.clone().no_grad() };
            still.combined(weights, &chosen, query)
        })
    }
}

/// Sum of tensors with constant weights.
pub(super) fn weighted_sum(parts: impl Iterator<Item = (Tensor<2>, f64)>) -> Tensor<2> {
    let scaled = parts.map(|(tensor, weight)| tensor * weight);
    scaled.reduce(|sum, part| sum + part).expect("some group has a weight")
}

/// Passes the rows of each group to `outputs` and joins the results in the order of the batch, `[batch, n_outputs]`. A
/// group without a row is skipped, so that its classifier has no gradient at all.
pub(super) fn routed(
    groups: &[Option<usize>],
    device: &Device,
    mut outputs: impl FnMut(Option<usize>, Tensor<1, Int>) -> Tensor<2>,
) -> Tensor<2> {
    let mut present: Vec<Option<usize>> = groups.to_vec();
    present.sort_unstable();
    present.dedup();
    let (mut parts, mut order) = (Vec::new(), Vec::with_capacity(groups.len()));
    for group in present {
        let rows: Vec<usize> = (0..groups.len()).filter(|i| groups[*i] == group).collect();
        parts.push(outputs(group, indices(&rows, device)));
        order.extend(rows);
    }
    let joined = Tensor::cat(parts, 0); // in `order`
    let mut place = vec![0; order.len()];
    for (position, row) in order.into_iter().enumerate() {
        place[row] = position;
    }
    joined.select(0, indices(&place, device))
}

fn indices(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.iter().map(|row| i64::try_from(*row).expect("a batch fits")).collect();
    let shape = [rows.len()];
    Tensor::from_data(TensorData::new(rows, shape), device)
}
