//! ODR

use burn::tensor::Tensor;

use super::batch_cells::constant;

/// Weights of the two terms at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weights {
    entropy: f64,
    orthogonality: f64,
}

/// KL(N(mean, exp(`log_var`)) || N(`prior_mean`, 1)) of every sample, `[batch, code]` -> `[batch]`:
/// 1/2 sum over the code of exp(`log_var`) + (mean - `prior_mean`)^2 - 1 - `log_var`.
fn kl_to_prior(mean: Tensor<2>, log_var: Tensor<2>, prior_mean: &[f64]) -> Tensor<1> {
    let prior = constant(prior_mean, &mean).unsqueeze(); // [1, code]
    let of_entry = log_var.clone().exp() + (mean - prior).square() - 1.0 - log_var;
    of_entry.sum_dim(1).flatten(0, 1) / 2.0
}

/// Means of the priors of target and sensitive code: (0 .. 0, 1 .. 1) and (1 .. 1, 0 .. 0), which are orthogonal.
fn prior_means(code: usize) -> [Vec<f64>; 2] {
    let first_half = |i: usize| i < code / 2;
    [(0..code).map(|i| f64::from(!first_half(i))).collect(), (0..code).map(|i| f64::from(first_half(i))).collect()]
}

/// A normal distribution for every sample, `[batch, code]` each.
#[derive(Clone, Debug)]
struct Code {
    mean: Tensor<2>,
    log_var: Tensor<2>,
}

impl Code {
    /// A draw in training, mean + exp(`log_var` / 2) noise entry by entry; the mean without noise.
    fn value(&self, noise: Option<Tensor<2>>) -> Tensor<2> {
        let mean = self.mean.clone();
        match noise {
            Some(noise) => mean + (self.log_var.clone() / 2.0).exp() * noise,
            None => mean,
        }
    }
}

/// lambda gamma^(t / `t_s`).
fn scheduled(lambda: f64, gamma: f64, time: f64, scale: f64) -> f64 {
    lambda * gamma.powf(time / scale)
}

/// What encoder, codes and head descend beside the loss of the sensitive code, `[1]`: the task, the negative entropy of the
/// classifier on the target code, and the distances of both codes (`[batch]` each) from their priors.
fn objective(task: Tensor<1>, negative_entropy: Tensor<1>, kl: [Tensor<1>; 2], weights: Weights) -> Tensor<1> {
    let [of_target, of_sensitive] = kl;
    task + negative_entropy * weights.entropy + (of_target.mean() + of_sensitive.mean()) * weights.orthogonality
}

#[cfg(test)]
#[path = "../../tests/inside/odr.rs"]
mod tests;
