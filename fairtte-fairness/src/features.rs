//! The numbers inside a network that stand for a sample: what the sources of bias are computed from.

use crate::Batch;
use burn::tensor::Device;
use fairtte_data::Loader;
use fairtte_models::{ImageEncoder, Noise};
use ndarray::{Array2, Axis, concatenate};
use serde::{Deserialize, Serialize};

use crate::learner::EncoderNetwork;
use crate::network::on_host;
use crate::predict::in_batches;
use crate::{FairnessError, Learner};

/// A place between pixels and curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The features of the backbone, averaged over space: 1,280 numbers of `efficientnet-b0`.
    #[default]
    Backbone,
    /// The representation that the classifier reads, before its dropout: 64 numbers in the paper. For `odr` the mean of
    /// the target code.
    Representation,
}

/// Features of `layer`, `[batch, n_features]`, of an encoder in evaluation mode.
///
/// # Errors
/// [`FairnessError::Model`] if the backbone cannot read the batch.
pub fn features_of(encoder: &ImageEncoder, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
    let pixels = batch.pixels.clone();
    Ok(on_host(match layer {
        Layer::Backbone => encoder.backbone().forward(pixels, &mut Noise::Off)?,
        Layer::Representation => encoder.before_dropout(pixels, &mut Noise::Off)?,
    }))
}

impl<N: EncoderNetwork> Learner<N> {
    /// Features of `layer` in evaluation mode, `[batch, n_features]`; `batch` is on the device without autodiff.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch.
    pub fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        let network = self.network().valid();
        match layer {
            Layer::Backbone => features_of(network.encoder(), batch, layer),
            Layer::Representation => Ok(on_host(network.representation(batch)?)),
        }
    }
}

/// Features of `rows`, `[rows, n_features]`, in their order; `of_batch` computes those of one batch.
///
/// # Errors
/// [`FairnessError::Data`] if a batch cannot be made, and those of `of_batch`.
///
/// # Panics
/// Never: all batches have the same features.
pub fn features(
    loader: &Loader<'_>,
    rows: &[usize],
    device: &Device,
    mut of_batch: impl FnMut(&Batch) -> Result<Array2<f32>, FairnessError>,
) -> Result<Array2<f32>, FairnessError> {
    let mut blocks = Vec::new();
    in_batches(loader, rows, device, |batch| {
        blocks.push(of_batch(batch)?);
        Ok(())
    })?;
    let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
    Ok(if views.is_empty() { Array2::zeros((0, 0)) } else { concatenate(Axis(0), &views).expect("one layer") })
}
