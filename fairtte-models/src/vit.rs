//! Vision Transformer (Dosovitskiy et al. 2021, arXiv 2010.11929) as masked autoencoders are fine-tuned and as `RETFound` uses it
//! (He et al. 2022, arXiv 2111.06377; Zhou et al. 2023, doi 10.1038/s41586-023-06555-x).
//!
//! Patches of 16 x 16, a class token, learned positions, blocks of attention and a dense pair with exact GELU, each
//! after a layer norm (eps 1e-6) and with a shortcut; then the mean over the patch tokens (not the class token) and a
//! layer norm, `fc_norm`. Stochastic depth per sample and branch, rising linearly over the blocks.
//!
//! | timm / `RETFound` key | here |
//! |---|---|
//! | `cls_token` [1, 1, E], `pos_embed` [1, 197, E] | `class_token`, `positions` |
//! | `patch_embed.proj` | `patches` |
//! | `blocks.N.norm1`, `blocks.N.norm2` | `blocks.N.first_norm`, `blocks.N.second_norm` |
//! | `blocks.N.attn.{qkv,proj}`, `blocks.N.mlp.{fc1,fc2}` | `blocks.N.{qkv,project,widen,narrow}` |
//! | `fc_norm` | `norm` |
//! | `norm`, `head`, `mask_token`, `decoder_*` | dropped |
//!
//! | network | E | blocks | heads | parameters (3 channels) |
//! |---|---|---|---|---|
//! | `vit-base/16` | 768 | 12 | 12 | 85,798,656 |
//! | `vit-large/16` | 1024 | 24 | 16 | 303,301,632 |
//!
//! The learned positions are for pictures of 224 x 224. For other sizes their 14 x 14 grid is interpolated in every
//! pass (bicubic, A = -0.75, edges repeated, as PyTorch without anti-aliasing), while `RETFound` interpolates once on
//! import: outputs are equal, but here training continues to change the 14 x 14 grid. Pictures need not be square.

use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::ModelError;
use crate::cubic::taps;
use crate::fast::{self, Activation};
use crate::initialise::UNDRAWN;
use crate::noise::Noise;

const NORM_EPS: f64 = 1e-6;

/// Settings of [`VisionTransformer`], table `[model.vit]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VitConfig {
    /// Probability with which a branch of the last block is dropped for a sample in training, in [0, 1); it rises linearly
    /// from 0 at the first block. Default 0.2, `RETFound`'s for fine-tuning.
    pub drop_path: f64,
}

impl Default for VitConfig {
    fn default() -> Self {
        Self { drop_path: 0.2 }
    }
}

impl VitConfig {
    /// Checks the range.
    ///
    /// # Errors
    /// [`ModelError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), ModelError> {
        if (0.0..1.0).contains(&self.drop_path) {
            return Ok(());
        }
        let (key, expected) = ("vit.drop-path", "a number in [0, 1)");
        Err(ModelError::Setting { key, value: self.drop_path.to_string(), expected })
    }
}

/// Which of the two networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VitSize {
    /// ViT-B/16.
    Base,
    /// ViT-L/16.
    Large,
}

/// The shape of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Length of a token, a multiple of the heads.
    pub(crate) width: usize,
    pub(crate) n_blocks: usize,
    pub(crate) n_heads: usize,
    /// Side of a patch in pixels.
    pub(crate) patch: usize,
    /// Patches along a side of the picture that the positions belong to.
    pub(crate) grid: usize,
}

impl VitSize {
    pub(crate) fn plan(self) -> Plan {
        let (width, n_blocks, n_heads) = match self {
            Self::Base => (768, 12, 12),
            Self::Large => (1024, 24, 16),
        };
        Plan { width, n_blocks, n_heads, patch: VisionTransformer::PATCH, grid: 14 }
    }

    /// Number of features that the network gives.
    pub fn n_features(self) -> usize {
        self.plan().width
    }
}

/// The network up to its pooled and normed features.
#[derive(Module, Debug)]
pub struct VisionTransformer {
    patches: Conv2d,
    class_token: Param<Tensor<3>>,
    positions: Param<Tensor<3>>,
    blocks: Vec<Block>,
    norm: LayerNorm,
    grid: usize,
}

impl VisionTransformer {
    /// Side of a patch; height and width of a picture must be multiples of it.
    pub const PATCH: usize = 16;

    /// Builds the network for `channels` input channels; the weights are not initialised yet. `drop_path` is the
    /// probability, in [0, 1), with which a branch of the last block is dropped in training.
    pub fn new(size: VitSize, channels: usize, drop_path: f64, device: &Device) -> Self {
        Self::with_plan(size.plan(), channels, drop_path, device)
    }

    /// The same construction of any shape.
    pub(crate) fn with_plan(plan: Plan, channels: usize, drop_path: f64, device: &Device) -> Self {
        let Plan { width, n_blocks, n_heads, patch, grid } = plan;
        let share = |block| if n_blocks > 1 { block as f64 / (n_blocks - 1) as f64 } else { 0.0 };
        Self {
            patches: Conv2dConfig::new([channels, width], [patch; 2])
                .with_stride([patch; 2])
                .with_initializer(UNDRAWN)
                .init(device),
            class_token: UNDRAWN.init([1, 1, width], device),
            positions: UNDRAWN.init([1, 1 + grid * grid, width], device),
            blocks: (0..n_blocks).map(|n| Block::new(width, n_heads, drop_path * share(n), device)).collect(),
            norm: LayerNormConfig::new(width).with_epsilon(NORM_EPS).init(device),
            grid,
        }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.patches.weight.lazy_shape()[1]
    }

    /// Side of a patch, of which height and width of a picture must be multiples.
    pub(crate) fn patch(&self) -> usize {
        self.patches.kernel_size[0]
    }

    /// `[batch, channels, height, width]`, height and width multiples of the patch -> `[batch, E]`.
    pub fn forward(&self, x: Tensor<4>, noise: &mut Noise) -> Tensor<2> {
        let x = fast::conv2d(&self.patches, x); // [batch, E, rows, columns]
        let [batch, width, rows, columns] = x.dims();
        let x = x.reshape([batch, width, rows * columns]).swap_dims(1, 2);
        let class_token = fast::in_type_of(&x, self.class_token.val()).expand([batch, 1, width]);
        let positions = fast::in_type_of(&x, self.positions_for(rows, columns));
        let x = Tensor::cat(vec![class_token, x], 1) + positions;
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x, noise)); // [batch, 1 + patches, E]
        let x = fast::to_single(x.narrow(1, 1, rows * columns)).mean_dim(1);
        fast::layer_norm(&self.norm, NORM_EPS, x).reshape([batch, width])
    }

    /// `[1, 1 + rows * columns, E]`.
    fn positions_for(&self, rows: usize, columns: usize) -> Tensor<3> {
        let positions = self.positions.val();
        let grid = self.grid;
        if (rows, columns) == (grid, grid) {
            return positions;
        }
        let device = positions.device();
        let width = positions.dims()[2];
        let of_class = positions.clone().narrow(1, 0, 1);
        let of_patches = positions.narrow(1, 1, grid * grid).reshape([grid, grid * width]);
        let of_patches = cubic_weights(grid, rows, &device).matmul(of_patches); // [rows, grid * E]
        let of_patches = of_patches.reshape([rows, grid, width]);
        let along = cubic_weights(grid, columns, &device).unsqueeze::<3>().expand([rows, columns, grid]);
        let of_patches = along.matmul(of_patches).reshape([1, rows * columns, width]);
        Tensor::cat(vec![of_class, of_patches], 1)
    }
}

/// Matrix `[to, from]` that resamples a line of `from` points to `to`; weights of a repeated edge add up.
fn cubic_weights(from: usize, to: usize, device: &Device) -> Tensor<2> {
    let mut matrix = vec![0.0_f64; to * from];
    for (row, taps) in matrix.chunks_exact_mut(from).zip(taps(from, to)) {
        for (source, weight) in taps {
            row[source] += weight;
        }
    }
    Tensor::from_data(TensorData::new(matrix, [to, from]).convert::<f32>(), device)
}

/// Attention, then a dense pair, each on normed tokens and with a shortcut.
#[derive(Module, Debug)]
struct Block {
    first_norm: LayerNorm,
    qkv: Linear,
    project: Linear,
    second_norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    n_heads: usize,
    drop: f64,
}

impl Block {
    fn new(width: usize, n_heads: usize, drop: f64, device: &Device) -> Self {
        let linear = |from, to| LinearConfig::new(from, to).with_initializer(UNDRAWN).init(device);
        let norm = || LayerNormConfig::new(width).with_epsilon(NORM_EPS).init(device);
        Self {
            first_norm: norm(),
            qkv: linear(width, 3 * width),
            project: linear(width, width),
            second_norm: norm(),
            widen: linear(width, 4 * width),
            narrow: linear(4 * width, width),
            n_heads,
            drop,
        }
    }

    fn forward(&self, x: Tensor<3>, noise: &mut Noise) -> Tensor<3> {
        let qkv = fast::normed_linear(&self.first_norm, NORM_EPS, &self.qkv, x.clone());
        let attended = fast::linear(&self.project, fast::attention(qkv, self.n_heads));
        let x = x + noise.drop_samples(attended, self.drop);
        let dense = [&self.widen, &self.narrow];
        let found = fast::feed_forward(&self.second_norm, NORM_EPS, dense, Activation::Gelu, x.clone());
        x + noise.drop_samples(found, self.drop)
    }
}

#[cfg(test)]
#[path = "../tests/inside/positions.rs"]
mod tests;
