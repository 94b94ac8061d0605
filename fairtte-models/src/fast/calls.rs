//! The fused operations as functions of tensors.

use burn::tensor::Tensor;

pub(super) use self::routed::{Any, any};
use super::operation::Operation;

/// An operation and the tensors that it takes besides the output of the operation before it.
pub(super) type Link = (Operation, Vec<Any>);

pub(super) fn one<const D: usize>(a: Tensor<D>, operation: Operation) -> Tensor<D> {
    chain(a, vec![(operation, vec![])])
}

pub(super) fn two<const D: usize, const E: usize>(a: Tensor<D>, b: Tensor<E>, operation: Operation) -> Tensor<D> {
    chain(a, vec![(operation, vec![any(b)])])
}

pub(super) fn three<const D: usize, const E: usize>(
    a: Tensor<D>,
    b: Tensor<E>,
    c: Tensor<1>,
    operation: Operation,
) -> Tensor<D> {
    chain(a, vec![(operation, vec![any(b), any(c)])])
}

/// As [`chain`], with a batch norm in it: output, and mean and variance of the batch.
pub(super) fn norm<const D: usize>(x: Tensor<D>, links: Vec<Link>) -> (Tensor<D>, [Tensor<1>; 2]) {
    let (y, statistics) = routed::run(x, links);
    (y, statistics.expect("an operation with statistics"))
}

/// Applies the operations one after the other. Of several, the graph holds the inputs alone; intermediate tensors are
/// recomputed for the gradients.
pub(super) fn chain<const D: usize>(x: Tensor<D>, links: Vec<Link>) -> Tensor<D> {
    routed::run(x, links).0
}

#[cfg(any(feature = "flex", feature = "tch"))]
mod routed {
    use burn::backend::{Dispatch, DispatchTensor};
    use burn::tensor::Tensor;

    use super::super::chain::Stage;
    use super::super::graph::{Fused as _, Tensors};
    use super::Link;

    /// A tensor of any rank.
    pub(in super::super) type Any = DispatchTensor;

    pub(in super::super) fn any<const D: usize>(tensor: Tensor<D>) -> Any {
        tensor.into_dispatch()
    }

    pub(super) fn run<const D: usize>(x: Tensor<D>, links: Vec<Link>) -> (Tensor<D>, Option<[Tensor<1>; 2]>) {
        let mut tensors = vec![any(x)];
        let stage = |(operation, parameters): Link| {
            let n_parameters = parameters.len();
            tensors.extend(parameters);
            Stage { operation, n_parameters }
        };
        let stages: Vec<Stage> = links.into_iter().map(stage).collect();
        let mut found = Dispatch::fused(Tensors(tensors), stages).0.into_iter();
        let output = Tensor::from_dispatch(found.next().expect("an output"));
        let statistics = found.next().zip(found.next());
        (output, statistics.map(|(mean, variance)| [mean, variance].map(Tensor::from_dispatch)))
    }
}

/// Placeholders for the calls in a build without kernels; [`has_kernels`](super::has_kernels) prevents them from being
/// called.
#[cfg(not(any(feature = "flex", feature = "tch")))]
mod routed {
    use burn::tensor::Tensor;

    use super::Link;

    pub(in super::super) type Any = ();

    pub(in super::super) fn any<const D: usize>(_: Tensor<D>) -> Any {}

    pub(super) fn run<const D: usize>(_: Tensor<D>, links: Vec<Link>) -> (Tensor<D>, Option<[Tensor<1>; 2]>) {
        unreachable!("{links:?}: no device has kernels in this build")
    }
}
