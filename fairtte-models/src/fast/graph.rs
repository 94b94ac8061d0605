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
            7 => record::<B, C, 7>(inputs, &stages),
            8 => record::<B, C, 8>(inputs, &stages),
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
