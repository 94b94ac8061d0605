//! Where the fused operations meet burn: routed to the back end of their tensors at run time, and one node of the autodiff
//! graph for all of them.

#![cfg_attr(
    feature = "tch",
    expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")
)]

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend as _, Backend, backend_extension};

use super::Activation;
use super::operation::{Forward, Kernels, Operation};

/// The operations by their number of tensors, which is all that burn has to know of them.
#[backend_extension(Flex: cfg(feature = "flex"), LibTorch: cfg(feature = "tch"), Autodiff)]
pub(crate) trait Fused: Backend {
    fn fused_one(a: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self>;
    fn fused_two(a: FloatTensor<Self>, b: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self>;
    fn fused_three(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
    /// Output, mean and variance; no gradient flows through the latter two.
    fn fused_norm(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: Operation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

macro_rules! plain {
    ($back_end:ty) => {
        impl Fused for $back_end {
            fn fused_one(a: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self> {
                Self::forward(operation, vec![a], false).output
            }
            fn fused_two(a: FloatTensor<Self>, b: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self> {
                Self::forward(operation, vec![a, b], false).output
            }
            fn fused_three(
                a: FloatTensor<Self>,
                b: FloatTensor<Self>,
                c: FloatTensor<Self>,
                operation: Operation,
            ) -> FloatTensor<Self> {
                Self::forward(operation, vec![a, b, c], false).output
            }
            fn fused_norm(
                a: FloatTensor<Self>,
                b: FloatTensor<Self>,
                c: FloatTensor<Self>,
                operation: Operation,
            ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
                let Forward { output, statistics, .. } = Self::forward(operation, vec![a, b, c], false);
                let [mean, variance] = statistics.expect("an operation with statistics");
                (output, mean, variance)
            }
        }
    };
}
#[cfg(feature = "flex")]
plain!(burn::backend::Flex);
#[cfg(feature = "tch")]
plain!(burn::backend::LibTorch);

impl<B: Kernels, C: CheckpointStrategy> Fused for Autodiff<B, C> {
    fn fused_one(a: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self> {
        record::<B, C, 1>([a], operation).0
    }
    fn fused_two(a: FloatTensor<Self>, b: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self> {
        record::<B, C, 2>([a, b], operation).0
    }
    fn fused_three(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self> {
        record::<B, C, 3>([a, b, c], operation).0
    }
    fn fused_norm(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: Operation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (output, statistics) = record::<B, C, 3>([a, b, c], operation);
        let [mean, variance] = statistics.expect("an operation with statistics");
        (output, Self::from_inner(mean), Self::from_inner(variance))
    }
}

/// A tensor with its place in the graph.
type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

/// Computes `operation` and writes its node into the graph if one of the inputs has a gradient.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the type of the methods has no public name")]
fn record<B: Kernels, C: CheckpointStrategy, const N: usize>(
    inputs: [Tracked<B, C>; N],
    operation: Operation,
) -> (Tracked<B, C>, Option<[FloatTensor<B>; 2]>) {
    // The guards keep the inputs' nodes alive until the new node is registered, so they come before the primitives.
    let nodes = inputs.each_ref().map(|input| input.node());
    let inputs = inputs.into_iter().map(|input| input.into_primitive()).collect();
    let of_inference = matches!(operation, Operation::Conv(settings) if settings.activation != Activation::Identity);
    assert!(!of_inference, "an activation within a convolution has no gradient here");
    match Node(operation).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let Forward { output, statistics, saved } = B::forward(operation, inputs, true);
            (prepared.finish(saved, output), statistics)
        }
        OpsKind::UnTracked(prepared) => {
            let Forward { output, statistics, .. } = B::forward(operation, inputs, false);
            (prepared.finish(output), statistics)
        }
    }
}

/// The node of every fused operation. Its saved tensors live in its state, so gradient checkpointing does not apply to them.
#[derive(Clone, Debug)]
struct Node(Operation);

impl<B: Kernels, const N: usize> Backward<B, N> for Node {
    type State = Vec<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let needed = ops.parents.each_ref().map(Option::is_some);
        let found = B::backward(self.0, ops.state, gradient, &needed);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}
