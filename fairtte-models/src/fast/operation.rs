//! The fused operations as data, and what a back end supplies to compute them.

#[cfg(any(feature = "flex", feature = "tch"))]
use burn::backend::Backend;
#[cfg(any(feature = "flex", feature = "tch"))]
use burn::backend::tensor::FloatTensor;

use crate::kernels::Activation;
#[cfg(any(feature = "flex", feature = "tch"))]
use crate::kernels::adamw::Settings;
use crate::kernels::conv::ConvShape;
use crate::kernels::conv::inverted_residual::BlockShape;

/// An operation, without its tensors; differentiable unless it says otherwise.
///
/// Every back end has kernels for them ([`Kernels`]); they share one type of node in the autodiff graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operation {
    /// `x [batch, inputs, space..]`, `weight [outputs, inputs / groups, kernel..]` and perhaps `bias [outputs]`.
    Conv(Convolution),
    /// `x [batch, channels, space..]`, `gamma`, `beta [channels]`: batch norm by the statistics of the batch, then an
    /// activation. Gives mean and biased variance too.
    BatchNorm { epsilon: f64, activation: Activation },
    /// `x` and `weight` as above, `gamma`, `beta`, `mean`, `variance` and perhaps `bias`, all `[outputs]`: convolution, batch
    /// norm by these statistics, and the activation of the settings. Only for inference.
    NormedConv { settings: Convolution, epsilon: f64 },
    /// `x [batch, inputs, height, width]`, then `weight`, `gamma`, `beta`, `mean` and `variance` of the first convolution, if there is
    /// one, and of the depthwise one, `weight` and `bias` of squeeze and of excite, and the five tensors of the last convolution.
    /// Only for inference.
    InvertedResidual(InvertedResidual),
    /// `x [batch, channels, height, width]`, `gamma`, `beta [channels]`, `weight [channels, 1, kernel..]`: batch norm as above with its
    /// activation, then the depthwise convolution, of a shape that [`normed_depthwise::covers`]. In the memory of this process only.
    ///
    /// [`normed_depthwise::covers`]: crate::kernels::conv::normed_depthwise::covers
    NormedDepthwise { epsilon: f64, activation: Activation, settings: Convolution },
    /// `x [batch, channels, height, width]`, `gamma`, `beta [channels]`, `weight` and `bias` of squeeze and of excite, `[narrow, channels, 1,
    /// 1]` and the other way around: batch norm as above with its activation, then the result times the gates from its means (squeeze with
    /// the same activation, excite, logistic function). In the memory of this process only.
    NormedSqueezeExcite { epsilon: f64, activation: Activation },
    /// `x [batch, channels, space..]`, `scale`, `shift [channels]`: `activation(x * scale + shift)`.
    Affine { activation: Activation },
    /// `x`, of any shape.
    Activate(Activation),
    /// `x [batch, channels, space..]`, `gate [batch, channels, 1..]`: their product.
    Gate,
    /// Two tensors of one shape: `relu(a + b)`.
    AddRelu,
    /// `x [.., width]`, `gamma`, `beta [width]`: layer norm over the last axis.
    LayerNorm { epsilon: f64 },
    /// `x [.., inputs]`, `weight [inputs, outputs]`, `bias [outputs]`: `x weight + bias`.
    Linear,
    /// `qkv [batch, tokens, 3 * heads * width]`, queries, keys and values one after the other, -> `[batch, tokens, heads *
    /// width]`: scaled dot-product attention (Vaswani et al. 2017, equation 1).
    Attention { heads: usize },
    /// `x [batch, channels, height, width]`: maximum over windows.
    MaxPool(Pooling),
    /// `x [batch, channels, height, width]` and perhaps `beside [batch, others, 2 height, 2 width]` -> `[batch, channels + others,
    /// 2 height, 2 width]`: every pixel of `x` four times, and `beside`.
    DoubleBeside { channels: usize },
    /// `x [batch, channels, space..]` -> `[batch, channels, 1..]`: mean over space, which has this size.
    Average { size: [usize; 3] },
}

/// Settings of a convolution over pictures (depth 1) or volumes; `activation` is only used in inference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Convolution {
    pub(crate) stride: [usize; 3],
    pub(crate) padding: [usize; 3],
    pub(crate) groups: usize,
    pub(crate) activation: Activation,
}

impl Convolution {
    /// The shape as the kernels take it, for an input and weights of these sizes.
    pub(crate) fn shape(&self, of_x: &[usize], of_weight: &[usize]) -> ConvShape {
        let Self { stride, padding, groups, .. } = *self;
        let (size, kernel) = (volume(of_x), volume(of_weight));
        ConvShape { batch: of_x[0], inputs: of_x[1], outputs: of_weight[0], size, kernel, stride, padding, groups }
    }
}

/// Settings of an inverted residual block with squeeze and excitation; the batch norms are in the order of the convolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InvertedResidual {
    /// Whether there is a convolution before the depthwise one.
    pub(crate) expands: bool,
    /// Of the depthwise convolution.
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    /// Added to the variances; the first is not used without a first convolution.
    pub(crate) epsilons: [f64; 3],
    /// After the first convolution, the depthwise one and squeeze.
    pub(crate) activation: Activation,
    /// Whether the input is added to the output.
    pub(crate) residual: bool,
}

impl InvertedResidual {
    /// The shape as the kernels take it, for an input and weights of these sizes.
    pub(crate) fn shape(
        &self,
        of_x: &[usize],
        of_depthwise: &[usize],
        of_squeeze: &[usize],
        of_project: &[usize],
    ) -> BlockShape {
        BlockShape {
            batch: of_x[0],
            inputs: of_x[1],
            wide: of_depthwise[0],
            narrow: of_squeeze[0],
            outputs: of_project[0],
            size: [of_x[2], of_x[3]],
            side: of_depthwise[2],
            stride: self.stride,
            padding: self.padding,
        }
    }
}

/// Depth, height and width of a tensor of these sizes; depth is 1 for a picture.
pub(crate) fn volume(sizes: &[usize]) -> [usize; 3] {
    let mut volume = [1; 3];
    let space = sizes.get(2..).unwrap_or_default();
    let from = 3_usize.saturating_sub(space.len());
    for (place, &size) in volume[from..].iter_mut().zip(space) {
        *place = size;
    }
    volume
}

/// Settings of a maximum over windows of a picture, by height and width; the padding holds minus infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pooling {
    /// Height and width of the picture.
    pub(crate) size: [usize; 2],
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
}

impl Operation {
    /// Whether [`Kernels::repeat`] can compute the output again from what [`Kernels::forward`] saved, in one pass.
    #[cfg(any(feature = "flex", feature = "tch"))]
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::BatchNorm { .. }) || self.reads_output()
    }

    /// Whether [`Kernels::backward`] takes the output after what was saved, where it was [repeated](Self::repeats) for another operation.
    #[cfg(any(feature = "flex", feature = "tch"))]
    pub(crate) fn reads_output(self) -> bool {
        matches!(self, Self::NormedSqueezeExcite { .. })
    }
}

/// The result of an operation.
#[cfg(any(feature = "flex", feature = "tch"))]
pub(crate) struct Forward<B: Backend> {
    pub(crate) output: FloatTensor<B>,
    /// Mean and variance of [`Operation::BatchNorm`].
    pub(crate) statistics: Option<[FloatTensor<B>; 2]>,
    /// What [`Kernels::backward`] needs; empty if no gradient is requested.
    pub(crate) saved: Vec<FloatTensor<B>>,
}

/// The fused operations of a back end on plain tensors.
#[cfg(any(feature = "flex", feature = "tch"))]
pub(crate) trait Kernels: Backend {
    /// Computes `operation`; with `keep`, saves what the gradient needs.
    fn forward(operation: Operation, inputs: Vec<FloatTensor<Self>>, keep: bool) -> Forward<Self>;

    /// The output again, with the same bits, from what [`forward`](Self::forward) saved; of operations that
    /// [repeat](Operation::repeats), whose tensors are in the memory of this process.
    fn repeat(operation: Operation, saved: &[FloatTensor<Self>]) -> FloatTensor<Self>;

    /// Gradients with respect to the inputs that are `needed`, in their order, given that of the output.
    fn backward(
        operation: Operation,
        saved: Vec<FloatTensor<Self>>,
        gradient: FloatTensor<Self>,
        needed: &[bool],
    ) -> Vec<Option<FloatTensor<Self>>>;

    /// Step `time`, from 1, of `AdamW` from a parameter, its gradient and both moments: the parameter and its moments.
    fn adamw(tensors: [FloatTensor<Self>; 4], settings: &Settings, time: usize) -> [FloatTensor<Self>; 3];
}
