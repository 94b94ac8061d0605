//! A chain of operations as one node of the graph, which does not hold the tensors between them.
//!
//! For the gradients the stages run once more, keeping what each of them needs, and then in reverse (recomputation;
//! Chen et al. 2016, arXiv 1604.06174). A first stage that [repeats](Operation::repeats) keeps what it saved, so that the second time
//! is one pass. The same kernels see the same numbers, so outputs and gradients have the same
//! bits as those of the single operations. A chain of one keeps what its operation keeps, and computes nothing twice.

use burn::backend::tensor::FloatTensor;

use super::operation::{Forward, Kernels, Operation};

/// An operation of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stage {
    pub(crate) operation: Operation,
    /// Number of tensors that it takes besides the output of the previous stage.
    pub(crate) n_parameters: usize,
}

/// Computes the stages; `inputs` are the input of the first stage and then the parameters of each. `keep` is as in
/// [`Kernels::forward`].
pub(super) fn forward<B: Kernels>(stages: &[Stage], inputs: Vec<FloatTensor<B>>, keep: bool) -> Forward<B> {
    if let [only] = stages {
        return B::forward(only.operation, inputs, keep);
    }
    let repeats = stages.first().is_some_and(|stage| stage.operation.repeats());
    let mut saved = if keep { inputs.clone() } else { vec![] };
    let mut inputs = inputs.into_iter();
    let (mut x, mut statistics) = (first(&mut inputs), None);
    for (n, stage) in stages.iter().enumerate() {
        let of_stage = tensors(x, *stage, &mut inputs);
        let keeps = keep && n == 0 && repeats;
        let found = B::forward(stage.operation, of_stage, keeps);
        if keeps {
            saved.splice(..=stage.n_parameters, found.saved);
        }
        (x, statistics) = (found.output, statistics.or(found.statistics));
    }
    Forward { output: x, statistics, saved }
}

/// Gradients with respect to the inputs that are `needed`, given what [`forward`] saved and the gradient of its output.
pub(super) fn backward<B: Kernels>(
    stages: &[Stage],
    saved: Vec<FloatTensor<B>>,
    gradient: FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    if let [only] = stages {
        return B::backward(only.operation, saved, gradient, needed);
    }
    let mut kept = again::<B>(stages, saved);
    let (mut gradient, mut of_parameters) = (Some(gradient), vec![]);
    let mut end = needed.len();
    for (n, stage) in stages.iter().enumerate().rev() {
        let parameters = end - stage.n_parameters..end;
        end = parameters.start;
        // The stages before a later one have parameters, so the gradient of its input is always needed.
        let of_stage: Vec<bool> = std::iter::once(n > 0 || needed[0]).chain(needed[parameters].to_vec()).collect();
        let saved = kept.pop().expect("one entry a stage");
        let of_output = gradient.take().expect("the gradient of a later stage's input");
        let mut found = B::backward(stage.operation, saved, of_output, &of_stage).into_iter();
        gradient = found.next().flatten();
        // A convolution without bias gives an empty place for it.
        of_parameters.push(found.take(stage.n_parameters));
    }
    std::iter::once(gradient).chain(of_parameters.into_iter().rev().flatten()).collect()
}

/// Runs the stages once more, from what [`forward`] saved; returns what the gradients of each of them need.
fn again<B: Kernels>(stages: &[Stage], mut saved: Vec<FloatTensor<B>>) -> Vec<Vec<FloatTensor<B>>> {
    let (mut kept, mut rest) = (Vec::with_capacity(stages.len()), stages);
    let mut x = None;
    if let [stage, behind @ ..] = stages
        && stage.operation.repeats()
    {
        let parameters = saved.split_off(saved.len() - behind.iter().map(|stage| stage.n_parameters).sum::<usize>());
        let repeated = B::repeat(stage.operation, &saved);
        if stage.operation.reads_output() {
            saved.push(repeated.clone());
        }
        x = Some(repeated);
        kept.push(saved);
        (saved, rest) = (parameters, behind);
    }
    let mut inputs = saved.into_iter();
    let mut x = x.or_else(|| inputs.next());
    for (n, stage) in rest.iter().enumerate() {
        let mut of_stage = tensors(x.take().expect("the output of the stage before"), *stage, &mut inputs);
        if n + 1 == rest.len() && matches!(stage.operation, Operation::Linear | Operation::Conv(_)) {
            // Their gradients need input and weights, but not the output.
            of_stage.truncate(2);
            kept.push(of_stage);
            break;
        }
        let Forward { output, saved, .. } = B::forward(stage.operation, of_stage, true);
        x = Some(output);
        kept.push(saved);
    }
    kept
}

fn first<T>(inputs: &mut impl Iterator<Item = T>) -> T {
    inputs.next().expect("an operation takes a tensor")
}

/// The tensors that a stage takes: `x` and then its parameters.
fn tensors<T>(x: T, stage: Stage, inputs: &mut impl Iterator<Item = T>) -> Vec<T> {
    std::iter::once(x).chain(inputs.take(stage.n_parameters)).collect()
}
