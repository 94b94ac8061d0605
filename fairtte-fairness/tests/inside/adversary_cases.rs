//! Reads the worked cases (`tests/golden/*.json`) and compares tensors in `f64` with them.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use burn::tensor::{Gradients, Tensor};
use fairtte_metrics::GroupId;
use serde_json::Value as Json;

use super::worked_cases::tensor;
pub(crate) use super::worked_cases::{leaf as matrix, numbers, values};

pub(crate) fn number(json: &Json) -> f64 {
    json.as_f64().unwrap()
}

/// Some cases write whole numbers as 1.0.
pub(crate) fn whole(number: f64) -> u32 {
    (0..1000).find(|whole| (f64::from(*whole) - number).abs() < 1e-6).unwrap()
}

pub(crate) fn groups(json: &Json) -> Vec<Option<GroupId>> {
    numbers(json).into_iter().map(|g| Some(GroupId(whole(g)))).collect()
}

pub(crate) fn strata(json: &Json) -> Vec<Option<usize>> {
    numbers(json).into_iter().map(|y| Some(whole(y) as usize)).collect()
}

/// Case `name` of a file.
pub(crate) fn case<'a>(file: &'a Json, name: &str) -> &'a Json {
    file["cases"].as_array().unwrap().iter().find(|case| case["name"].as_str().unwrap().starts_with(name)).unwrap()
}

/// A list with gradients, `[n]`.
pub(crate) fn list(json: &Json) -> Tensor<1> {
    let values = numbers(json);
    let n = values.len();
    tensor(values, [n]).require_grad()
}

/// One number with a gradient, `[1]`.
pub(crate) fn scalar(json: &Json) -> Tensor<1> {
    tensor(vec![number(json)], [1]).require_grad()
}

/// Gradient of a tensor; 0 if it has none.
pub(crate) fn gradient<const D: usize>(gradients: &Gradients, of: &Tensor<D>) -> Vec<f64> {
    of.grad(gradients).map_or_else(|| vec![0.0; of.shape().num_elements()], |gradient| values(&gradient))
}

/// One plain gradient step.
pub(crate) fn descended<const D: usize>(tensor: &Tensor<D>, gradients: &Gradients, rate: f64) -> Tensor<D> {
    Tensor::from_inner(tensor.clone().inner() - tensor.grad(gradients).unwrap() * rate).require_grad()
}

/// Counts the compared numbers.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) n: usize,
}

impl Compared {
    /// Relative 1e-9, absolute 1e-12 near 0.
    pub(crate) fn same(&mut self, what: &str, found: &[f64], expected: &Json) {
        let expected = numbers(expected);
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-9 * expected.abs() + 1e-12, "{what}: {found} is not {expected}");
            self.n += 1;
        }
    }
}

/// The linear model of the worked training steps: z = x W^T, event logit z v + b, mean binary cross-entropy.
#[derive(Debug)]
pub(crate) struct LinearModel {
    pub(crate) x: Tensor<2>,
    pub(crate) event: Tensor<1>,
    pub(crate) weight: Tensor<2>,
    pub(crate) v: Tensor<1>,
    pub(crate) b: Tensor<1>,
}

impl LinearModel {
    pub(crate) fn new(inputs: &Json) -> Self {
        Self {
            x: matrix(&inputs["x"]).detach(),
            event: list(&inputs["event"]).detach(),
            weight: matrix(&inputs["W"]),
            v: list(&inputs["v"]),
            b: scalar(&inputs["b"]),
        }
    }

    pub(crate) fn representation(&self) -> Tensor<2> {
        self.x.clone().matmul(self.weight.clone().transpose())
    }

    /// Mean of log(1 + e^s) - d s.
    pub(crate) fn task(&self, z: &Tensor<2>) -> Tensor<1> {
        let logit = z.clone().matmul(self.v.clone().unsqueeze_dim(1)).flatten(0, 1) + self.b.clone();
        ((logit.clone().exp() + 1.0).log() - logit * self.event.clone()).mean()
    }

    pub(crate) fn descend(&mut self, gradients: &Gradients, rate: f64) {
        self.weight = descended(&self.weight, gradients, rate);
        // The head has no gradient in a pass for the adversary alone.
        if self.v.grad(gradients).is_some() {
            self.v = descended(&self.v, gradients, rate);
            self.b = descended(&self.b, gradients, rate);
        }
    }
}
