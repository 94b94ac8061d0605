//! The interface of the fused operations to burn: dispatch to the back end of their tensors at run time, and one type
//! of node in the autodiff graph for all of them.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, AutodiffBackend as _, Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor,
    DispatchTensorKind, ExtensionType, backend_extension,
};

use super::Activation;
use super::chain::{self, Stage};
use super::operation::{Forward, Kernels, Operation};

/// One fused operation or a chain of them: the only interface that burn needs.
#[backend_extension(Flex: cfg(feature = "flex"), LibTorch: cfg(feature = "tch"), Autodiff)]
pub(crate) trait Fused: Backend {
    /// Returns the output and, for batch norm, mean and variance, through which no gradient flows.
    fn fused(#[extension_type] inputs: Tensors<Self>, stages: Vec<Stage>) -> Tensors<Self>;
}

/// Tensors whose number is known only at run time.
pub(crate) struct Tensors<B: Backend>(pub(crate) Vec<FloatTensor<B>>);

impl<B: Backend> ExtensionType<B> for Tensors<B> {
    type Target = Tensors<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Tensors<Dispatch>
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let wrapped = |tensor| DispatchTensor { kind: map_kind(BackendTensor::Float(tensor)), autodiff };
        Tensors(self.0.into_iter().map(wrapped).collect())
    }

    fn map_from_dispatch<F>(target: Tensors<Dispatch>, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(target.0.into_iter().map(|tensor| unwrap_kind(tensor).float()).collect())
    }

    fn routing_tensor(target: &Tensors<Dispatch>) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn routing_float_tensor(target: &Tensors<Dispatch>) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn autodiff_context(target: &Tensors<Dispatch>) -> DispatchAutodiffContext {
        target.0.iter().fold(DispatchAutodiffContext::Disabled, |context, tensor| context.merge(tensor.autodiff))
    }
}

macro_rules! plain {
    ($back_end:ty) => {
        impl Fused for $back_end {
            fn fused(inputs: Tensors<Self>, stages: Vec<Stage>) -> Tensors<Self> {
                let Forward { output, statistics, .. } = chain::forward::<Self>(&stages, inputs.0, false);
                Tensors(std::iter::once(output).chain(statistics.into_iter().flatten()).collect())
            }
        }
    };
}
#[cfg(feature = "flex")]
plain!(burn::backend::Flex);
#[cfg(feature = "tch")]
plain!(burn::backend::LibTorch);

impl<B: Kernels, C: CheckpointStrategy> Fused for Autodiff<B, C> {
    fn fused(Tensors(inputs): Tensors<Self>, stages: Vec<Stage>) -> Tensors<Self> {
        // In burn the number of parents is part of the type of a node.
        match inputs.len() {
            1 => record::<B, C, 1>(inputs, &stages),
            2 => record::<B, C, 2>(inputs, &stages),
            3 => record::<B, C, 3>(inputs, &stages),
            4 => record::<B, C, 4>(inputs, &stages),
            5 => record::<B, C, 5>(inputs, &stages),
            6 => record::<B, C, 6>(inputs, &stages),
            7 => record::<B, C, 7>(inputs, &stages),
            8 => record::<B, C, 8>(inputs, &stages),
            9 => record::<B, C, 9>(inputs, &stages),
            n => unreachable!("no chain has {n} tensors"),
        }
    }
}

/// A tensor with its place in the graph.
type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

/// Computes the stages and writes their node into the graph if one of the inputs has a gradient.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the type of the methods has no public name")]
fn record<B: Kernels, C: CheckpointStrategy, const N: usize>(
    inputs: Vec<Tracked<B, C>>,
    stages: &[Stage],
) -> Tensors<Autodiff<B, C>> {
    let inputs: [_; N] = inputs.try_into().unwrap_or_else(|_| unreachable!("the number was asked for"));
    // The guards keep the inputs' nodes alive until the new node is registered, so they come before the primitives.
    let nodes = inputs.each_ref().map(|input| input.node());
    let inputs = inputs.into_iter().map(|input| input.into_primitive()).collect();
    let of_inference = |stage: &Stage| match stage.operation {
        Operation::Conv(settings) => settings.activation != Activation::Identity,
        Operation::NormedConv { .. } | Operation::InvertedResidual(_) => true,
        _ => false,
    };
    assert!(!stages.iter().any(of_inference), "an operation of inference has no gradient");
    let (output, statistics) = match Node(stages.to_vec()).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let Forward { output, statistics, saved } = chain::forward::<B>(stages, inputs, true);
            (prepared.finish(saved, output), statistics)
        }
        OpsKind::UnTracked(prepared) => {
            let Forward { output, statistics, .. } = chain::forward::<B>(stages, inputs, false);
            (prepared.finish(output), statistics)
        }
    };
    let statistics = statistics.into_iter().flatten().map(Autodiff::<B, C>::from_inner);
    Tensors(std::iter::once(output).chain(statistics).collect())
}

/// The node of every fused operation. Its saved tensors live in its state, so gradient checkpointing does not apply to them.
#[derive(Clone, Debug)]
struct Node(Vec<Stage>);

impl<B: Kernels, const N: usize> Backward<B, N> for Node {
    type State = Vec<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let needed = ops.parents.each_ref().map(Option::is_some);
        let found = chain::backward::<B>(&self.0, ops.state, gradient, &needed);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::conv::{Conv2d, Conv2dConfig};
    use burn::nn::{BatchNormConfig, PaddingConfig2d};
    use burn::tensor::Tensor;

    use crate::fast::{self, Activation, Unnormed};

    /// Output, gradient of `x` and gradient of the bias.
    fn trained(y: Tensor<4>, x: &Tensor<4>, conv: &Conv2d) -> [Vec<f32>; 3] {
        fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
            tensor.into_data().try_to_vec().expect("single precision")
        }
        let gradients = (y.clone() * y.clone()).sum().backward();
        let of_x = x.grad(&gradients).expect("of the input");
        let of_bias = conv.bias.as_ref().and_then(|bias| bias.val().grad(&gradients)).expect("of the bias");
        [values(y.inner()), values(of_x), values(of_bias)]
    }

    /// The longest chains, of nine and of six tensors.
    #[test]
    fn a_convolution_with_a_bias_trains_after_excitation_and_after_doubling_as_alone() {
        let device = fast::plain_device().autodiff();
        let tensor = |shape: [usize; 4]| {
            let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|n| (n as f32 * 0.7).sin()).collect();
            Tensor::<1>::from_floats(values.as_slice(), &device).reshape(shape).require_grad()
        };
        let conv = |inputs: usize, outputs: usize, side: usize| {
            let pad = side / 2;
            let config = Conv2dConfig::new([inputs, outputs], [side, side]);
            config.with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad)).init(&device)
        };
        let (squeeze, excite, dense, doubling) = (conv(6, 2, 1), conv(2, 6, 1), conv(6, 4, 3), conv(8, 4, 3));
        let (norm, after) = (BatchNormConfig::new(6).init(&device), BatchNormConfig::new(4).init(&device));
        let (x, beside) = (tensor([2, 6, 5, 7]), tensor([2, 2, 10, 14]));
        let unnormed = || Unnormed::new(x.clone(), &norm, Activation::Silu);
        let excited = || fast::squeeze_excite(unnormed(), [&squeeze, &excite], Activation::Silu);
        let beside = || Some(beside.clone());
        let doubled = || fast::double_beside(unnormed().finish(), beside());
        let identity = Activation::Identity;
        let cases = [
            (&dense, fast::conv_2d_of(&dense, excited()), fast::conv2d(&dense, excited().finish())),
            (
                &doubling,
                fast::doubled_conv_norm_2d(&doubling, &after, unnormed(), beside(), identity).finish(),
                fast::bn_act(&after, fast::conv2d(&doubling, doubled()), identity),
            ),
        ];
        for (conv, together, alone) in cases {
            let [found, expected] = [together, alone].map(|y| trained(y, &x, conv));
            assert!(found[0] == expected[0], "bits of the output");
            for (found, expected) in found.iter().zip(&expected) {
                let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * largest;
                assert!(found.iter().zip(expected).all(near), "{found:?} instead of {expected:?}");
            }
        }
    }
}
