//! The worked cases of `tests/golden`, in `f64` on flex, with a count of the compared numbers.

use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::Value as Json;

/// Precision of the cases: relative, and absolute near 0.
pub const RELATIVE: f64 = 1e-9;
pub const ABSOLUTE: f64 = 1e-12;

pub fn cases(text: &str) -> Vec<Json> {
    let file: Json = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

pub fn name(case: &Json) -> &str {
    case["name"].as_str().unwrap()
}

/// All numbers of a list, or of a list of lists, in order; a single number counts as a list of one.
pub fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(entries) => entries.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

pub fn whole_numbers(json: &Json) -> Vec<usize> {
    serde_json::from_value(json.clone()).unwrap()
}

pub fn device() -> Device {
    Device::flex().autodiff()
}

/// A list of lists as a tensor with gradients.
pub fn leaf(rows: &Json) -> Tensor<2> {
    let n = rows.as_array().unwrap().len();
    let values = numbers(rows);
    let width = values.len() / n;
    tensor(values, [n, width]).require_grad()
}

pub fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (&device(), DType::F64))
}

pub fn values<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.clone().into_data().try_to_vec().unwrap()
}

/// Derivative of `value` by `leaf`.
pub fn gradient<const D: usize>(value: &Tensor<1>, leaf: &Tensor<D>) -> Vec<f64> {
    leaf.grad(&value.backward()).unwrap().into_data().try_to_vec().unwrap()
}

/// The derivative of `value` by every number of `at`, by central differences.
pub fn differences(at: &[f64], value: impl Fn(Vec<f64>) -> f64) -> Vec<f64> {
    let moved = |position: usize, by: f64| {
        let mut at = at.to_vec();
        at[position] += by;
        value(at)
    };
    (0..at.len()).map(|position| (moved(position, 1e-5) - moved(position, -1e-5)) / 2e-5).collect()
}

/// Number of compared numbers and cases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub numbers: usize,
    pub cases: usize,
}

impl Compared {
    pub fn close(&mut self, what: &str, found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
            let close = (found - expected).abs() <= RELATIVE * expected.abs() + ABSOLUTE;
            assert!(close, "{what} {position}: {found} is not {expected}");
            self.numbers += 1;
        }
    }
}
