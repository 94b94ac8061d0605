//! Every fused operation and its gradients against PyTorch in double precision.
//!
//! `tests/parity/operations.json` holds results only; `parity/operations.py` writes it and documents how inputs are
//! computed, the version of PyTorch, and the error of PyTorch's own single precision. Twice that and a few units in the
//! last place are allowed.

use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;

use super::super::operation::{Convolution, Operation};
use super::super::{self as fast, Activation, calls, fused_conv};
use super::{device, values};
use crate::layers::max_pool_3d;

/// How many times PyTorch's own error in single precision is allowed: twice with kernels, four times by the operations of
/// another device, which sums in other orders and approximates exponentials.
pub(super) fn of_rounding(device: &Device) -> f64 {
    if fast::computes_on_host(device) { 2.0 } else { 4.0 }
}

/// Four units in the last place of the largest value.
const FLOOR: f64 = 5e-7;

#[test]
fn operations_and_gradients_are_those_of_pytorch_in_double_precision() {
    let recorded: Value = serde_json::from_str(include_str!("../../parity/operations.json")).expect("JSON");
    let entries = recorded["entries"].as_array().expect("a list of entries");
    let device = device();
    // Some operations are those of the kernels alone, or of LibTorch, which another device does not have.
    let has_kernels = fast::place::of_device(&device).is_some();
    let is_computed = |entry: &&Value| {
        let entry = Entry(entry);
        let by_burn =
            ["conv2d", "depthwise2d", "conv3d", "activation", "add-relu", "attention", "max-pool2d", "max-pool3d"];
        // A GPU's maximum of a window does not propagate a NaN; inputs with one are refused before.
        let is_about_nan = entry.operation() == "max-pool2d" && entry.name().contains("NaN");
        has_kernels || (by_burn.contains(&entry.operation()) && !is_about_nan)
    };
    let n = entries.iter().filter(is_computed).count();
    eprintln!("{n} of {} operations and configurations", entries.len());
    assert!(n >= 111, "{n}");
    let wrong: Vec<String> =
        entries.iter().filter(is_computed).flat_map(|entry| check(&Entry(entry), &device)).collect();
    assert!(wrong.is_empty(), "{} results of {} entries:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    assert!(entries.len() > 150);
}

/// One operation with its settings, inputs and results.
struct Entry<'a>(&'a Value);

impl Entry<'_> {
    fn name(&self) -> String {
        format!("{} ({})", self.operation(), self.0["name"].as_str().unwrap_or_default())
    }

    fn operation(&self) -> &str {
        self.0["operation"].as_str().expect("the name of an operation")
    }

    fn input(&self, name: &str) -> Option<&Value> {
        self.0["inputs"].as_array()?.iter().find(|input| input["name"] == name)
    }

    fn rank(&self) -> usize {
        self.input("x").and_then(|x| x["shape"].as_array()).map_or(0, Vec::len)
    }

    fn integers<const N: usize>(&self, setting: &str) -> [usize; N] {
        integers(&self.0["settings"][setting]).try_into().expect("as many numbers as axes")
    }

    fn number(&self, setting: &str) -> f64 {
        self.0["settings"][setting].as_f64().expect("a number")
    }

    fn activation(&self) -> Activation {
        match self.0["settings"]["activation"].as_str() {
            Some("identity") => Activation::Identity,
            Some("relu") => Activation::Relu,
            Some("silu") => Activation::Silu,
            Some("gelu") => Activation::Gelu,
            Some("sigmoid") => Activation::Sigmoid,
            other => panic!("{}: activation {other:?}", self.name()),
        }
    }

    fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let input = self.input(name).unwrap_or_else(|| panic!("{}: no input {name}", self.name()));
        let shape: [usize; D] = integers(&input["shape"]).try_into().expect("the rank of the operation");
        Tensor::from_data(TensorData::new(input_values(input), shape), device)
    }
}

pub(super) fn integers(value: &Value) -> Vec<usize> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_u64().and_then(|number| number.try_into().ok()).expect("a count")).collect()
}

/// A number, or the name of one that JSON cannot represent.
pub(super) fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        Some(text) => text.parse().expect("a number"),
        None => value.as_f64().expect("a number"),
    }
}

/// The values of an input, listed or by the formula.
#[expect(clippy::cast_possible_truncation, reason = "the nearest value in single precision is intended")]
fn input_values(input: &Value) -> Vec<f32> {
    match input["values"].as_array() {
        Some(listed) => listed.iter().map(|value| number(value) as f32).collect(),
        None => formula_values(input),
    }
}

/// Values by the formula in the header of `parity/operations.py`.
#[expect(clippy::cast_possible_truncation, reason = "the values are exact in single precision")]
pub(super) fn formula_values(input: &Value) -> Vec<f32> {
    let whole = |key: &str| u32::try_from(input[key].as_u64().expect("a count")).expect("32 bits");
    let (seed, bits) = (whole("seed"), if input["bits"].is_null() { 13 } else { whole("bits") });
    let (scale, shift) = (number(&input["scale"]), number(&input["shift"]));
    let n: usize = integers(&input["shape"]).iter().product();
    let mut found: Vec<f32> = (0..n as u32)
        .map(|index| {
            let mut x = index.wrapping_add(seed.wrapping_mul(0x9E37_79B9));
            x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
            x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
            x ^= x >> 16;
            let value = f64::from(x >> (32 - bits)) / f64::from(1_u32 << (bits - 1)) - 1.0;
            (shift + scale * value) as f32
        })
        .collect();
    for (place, value) in input["set"].as_object().into_iter().flatten() {
        found[place.parse::<usize>().expect("an index")] = number(value) as f32;
    }
    found
}

/// Results by name.
type Found = Vec<(&'static str, Vec<f32>)>;

/// Gradients of `sum(y * dy)` with respect to `inputs`, with `y` before them.
fn results<const D: usize>(entry: &Entry, y: Tensor<D>, inputs: Vec<(&'static str, Leaf)>) -> Found {
    let dy = entry.tensor::<D>("dy", &y.device());
    let mut found = vec![("y", values(y.clone().inner()))];
    let gradients = (y * dy).sum().backward();
    for (name, leaf) in inputs {
        let gradient = match leaf {
            Leaf::One(x) => x.grad(&gradients).map(values),
            Leaf::Two(x) => x.grad(&gradients).map(values),
            Leaf::Three(x) => x.grad(&gradients).map(values),
            Leaf::Four(x) => x.grad(&gradients).map(values),
            Leaf::Five(x) => x.grad(&gradients).map(values),
        };
        found.push((name, gradient.unwrap_or_else(|| panic!("{}: no {name}", entry.name()))));
    }
    found
}

/// A tensor of any rank.
enum Leaf {
    One(Tensor<1>),
    Two(Tensor<2>),
    Three(Tensor<3>),
    Four(Tensor<4>),
    Five(Tensor<5>),
}

macro_rules! leaves {
    ($($rank:literal $variant:ident),*) => { $(
        impl From<Tensor<$rank>> for Leaf {
            fn from(tensor: Tensor<$rank>) -> Self {
                Self::$variant(tensor)
            }
        }
    )* };
}
leaves!(1 One, 2 Two, 3 Three, 4 Four, 5 Five);

fn compute(entry: &Entry, device: &Device) -> Found {
    match (entry.operation(), entry.rank()) {
        ("conv2d" | "depthwise2d", _) => {
            let [stride, padding] = ["stride", "padding"].map(|name| entry.integers::<2>(name));
            let by_burn = |x, weight, bias, groups| {
                conv2d(x, weight, bias, ConvOptions::<2>::new(stride, padding, [1; 2], groups))
            };
            convolution::<4>(entry, [1, stride[0], stride[1]], [0, padding[0], padding[1]], device, by_burn)
        }
        ("conv3d", _) => {
            let [stride, padding] = ["stride", "padding"].map(|name| entry.integers::<3>(name));
            let by_burn = |x, weight, bias, groups| {
                let settings = Convolution { stride, padding, groups, activation: Activation::Identity };
                fast::conv3d_by_burn(settings, x, weight, bias)
            };
            convolution::<5>(entry, stride, padding, device, by_burn)
        }
        ("batch-norm", 2) => batch_norm::<2>(entry, device),
        ("batch-norm", 4) => batch_norm::<4>(entry, device),
        ("batch-norm", 5) => batch_norm::<5>(entry, device),
        ("frozen-batch-norm", 2) => frozen_batch_norm::<2>(entry, device),
        ("frozen-batch-norm", 4) => frozen_batch_norm::<4>(entry, device),
        ("frozen-batch-norm", 5) => frozen_batch_norm::<5>(entry, device),
        ("activation", 1) => activation::<1>(entry, device),
        ("activation", 4) => activation::<4>(entry, device),
        ("gate", 4) => {
            let [x, s] = ["x", "s"].map(|name| entry.tensor::<4>(name, device).require_grad());
            results(entry, fast::gate(x.clone(), s.clone()), vec![("d_x", x.into()), ("d_s", s.into())])
        }
        ("gate", 5) => {
            let [x, s] = ["x", "s"].map(|name| entry.tensor::<5>(name, device).require_grad());
            let y = calls::two(x.clone(), s.clone(), Operation::Gate);
            results(entry, y, vec![("d_x", x.into()), ("d_s", s.into())])
        }
        ("add-relu", _) => match entry.input("a").map(|a| integers(&a["shape"]).len()) {
            Some(4) => add_relu::<4>(entry, device),
            Some(5) => add_relu::<5>(entry, device),
            rank => panic!("{}: rank {rank:?}", entry.name()),
        },
        ("layer-norm", 2) => layer_norm::<2>(entry, device),
        ("layer-norm", 3) => layer_norm::<3>(entry, device),
        ("linear", 2) => linear::<2>(entry, device),
        ("linear", 3) => linear::<3>(entry, device),
        ("attention", _) => attention(entry, device),
        ("max-pool2d", _) => {
            let x = entry.tensor::<4>("x", device).require_grad();
            let [kernel, stride, padding] = ["kernel", "stride", "padding"].map(|name| entry.integers(name));
            results(entry, fast::max_pool(x.clone(), kernel, stride, padding), vec![("d_x", x.into())])
        }
        ("max-pool3d", _) => {
            let x = entry.tensor::<5>("x", device).require_grad();
            results(entry, max_pool_3d(x.clone()), vec![("d_x", x.into())])
        }
        (operation, rank) => panic!("{operation} of rank {rank} is not known here"),
    }
}

/// On a device without kernels it is computed `by_burn`, which layers do there.
fn convolution<const D: usize>(
    entry: &Entry,
    stride: [usize; 3],
    padding: [usize; 3],
    device: &Device,
    by_burn: impl Fn(Tensor<D>, Tensor<D>, Option<Tensor<1>>, usize) -> Tensor<D>,
) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let [x, weight] = ["x", "weight"].map(|name| entry.tensor::<D>(name, device).require_grad());
    let bias = entry.input("bias").map(|_| entry.tensor::<1>("bias", device).require_grad());
    let groups = integers(&Value::Array(vec![entry.0["settings"]["groups"].clone()]))[0];
    let settings = Convolution { stride, padding, groups, activation: Activation::Identity };
    let y = match fused_conv(settings, &x, &weight, bias.as_ref()) {
        Some(y) => y,
        None if fast::computes_on_host(device) => panic!("{}: no kernel", entry.name()),
        None => by_burn(x.clone(), weight.clone(), bias.clone(), groups),
    };
    let mut inputs = vec![("d_x", x.into()), ("d_weight", weight.into())];
    inputs.extend(bias.map(|bias| ("d_bias", bias.into())));
    results(entry, y, inputs)
}

fn batch_norm<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let x = entry.tensor::<D>("x", device).require_grad();
    let [gamma, beta] = ["gamma", "beta"].map(|name| entry.tensor::<1>(name, device).require_grad());
    let operation = Operation::BatchNorm { epsilon: entry.number("eps"), activation: entry.activation() };
    let parameters = [&gamma, &beta].map(|parameter| calls::any(parameter.clone())).into();
    let (y, [mean, variance]) = calls::norm(x.clone(), vec![(operation, parameters)]);
    let inputs = vec![("d_x", x.into()), ("d_gamma", gamma.into()), ("d_beta", beta.into())];
    let mut found = results(entry, y, inputs);
    found.extend([("mean", values(mean.inner())), ("variance", values(variance.inner()))]);
    found
}

fn frozen_batch_norm<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let x = entry.tensor::<D>("x", device).require_grad();
    let [gamma, beta] = ["gamma", "beta"].map(|name| entry.tensor::<1>(name, device).require_grad());
    let [mean, variance] = ["mean", "variance"].map(|name| entry.tensor::<1>(name, device));
    let [scale, shift] = fast::norm::scale_and_shift(gamma.clone(), beta.clone(), mean, variance, entry.number("eps"));
    let y = calls::three(x.clone(), scale, shift, Operation::Affine { activation: entry.activation() });
    results(entry, y, vec![("d_x", x.into()), ("d_gamma", gamma.into()), ("d_beta", beta.into())])
}

fn activation<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let x = entry.tensor::<D>("x", device).require_grad();
    results(entry, fast::act(x.clone(), entry.activation()), vec![("d_x", x.into())])
}

fn add_relu<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let [a, b] = ["a", "b"].map(|name| entry.tensor::<D>(name, device).require_grad());
    results(entry, fast::add_relu(a.clone(), b.clone()), vec![("d_a", a.into()), ("d_b", b.into())])
}

fn layer_norm<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let x = entry.tensor::<D>("x", device).require_grad();
    let [gamma, beta] = ["gamma", "beta"].map(|name| entry.tensor::<1>(name, device).require_grad());
    let operation = Operation::LayerNorm { epsilon: entry.number("eps") };
    let y = calls::three(x.clone(), gamma.clone(), beta.clone(), operation);
    results(entry, y, vec![("d_x", x.into()), ("d_gamma", gamma.into()), ("d_beta", beta.into())])
}

fn linear<const D: usize>(entry: &Entry, device: &Device) -> Found
where
    Leaf: From<Tensor<D>>,
{
    let x = entry.tensor::<D>("x", device).require_grad();
    let weight = entry.tensor::<2>("weight", device).require_grad();
    let bias = entry.tensor::<1>("bias", device).require_grad();
    let y = calls::three(x.clone(), weight.clone().transpose(), bias.clone(), Operation::Linear);
    results(entry, y, vec![("d_x", x.into()), ("d_weight", weight.into()), ("d_bias", bias.into())])
}

fn attention(entry: &Entry, device: &Device) -> Found {
    let parts = ["q", "k", "v"].map(|name| entry.tensor::<4>(name, device).require_grad());
    let [batch, heads, tokens, width] = parts[0].dims();
    let flat = parts.clone().map(|part| part.swap_dims(1, 2).reshape([batch, tokens, heads * width]));
    let y = fast::attention(Tensor::cat(flat.to_vec(), 2), heads);
    let y = y.reshape([batch, tokens, heads, width]).swap_dims(1, 2);
    let [q, k, v] = parts;
    results(entry, y, vec![("d_q", q.into()), ("d_k", k.into()), ("d_v", v.into())])
}

/// What is wrong with the results of an entry.
fn check(entry: &Entry, device: &Device) -> Vec<String> {
    let found = compute(entry, device);
    let results = entry.0["results"].as_array().expect("results");
    assert_eq!(results.len(), found.len(), "{}", entry.name());
    let mut wrong = Vec::new();
    for result in results {
        let name = result["name"].as_str().expect("a name");
        let (_, found) = found.iter().find(|(known, _)| *known == name).expect("a result of that name");
        let (largest, rounding) = (number(&result["largest"]), number(&result["rounding"]));
        let scale = if largest == 0.0 { 1.0 } else { largest };
        let bound = scale * (of_rounding(device) * rounding + FLOOR);
        let listed = |key: &str| result[key].as_array().map(|list| list.iter().map(number).collect::<Vec<_>>());
        let exact = listed("values").expect("values");
        // Where single precision overflows or underflows in PyTorch and double precision does not, either result is
        // accepted.
        let single = listed("single").unwrap_or_else(|| exact.clone());
        let stride = integers(&Value::Array(vec![result["stride"].clone()]))[0];
        let kept: Vec<f64> = found.iter().step_by(stride).map(|&value| f64::from(value)).collect();
        assert_eq!(kept.len(), exact.len(), "{}, {name}", entry.name());
        let near = |found: f64, expected: f64| {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            // Below the smallest normal number the derivative of the logistic function is lost in double precision too.
            let bound = bound.max(FLOOR * expected.abs()).max(f64::from(f32::MIN_POSITIVE));
            same || (found - expected).abs() <= bound
        };
        for (place, (&found, (&expected, &single))) in kept.iter().zip(exact.iter().zip(&single)).enumerate() {
            if !near(found, expected) && !near(found, single) {
                let place = place * stride;
                wrong.push(format!(
                    "{}, {name}[{place}]: {found:e}, expected {expected:e} +- {bound:.1e}",
                    entry.name()
                ));
            }
        }
        if let Some(sum) = result["sum"].as_f64() {
            let total: f64 = found.iter().map(|&value| f64::from(value)).sum();
            if !near_sum(total, sum, bound * found.len() as f64) {
                wrong.push(format!("{}, {name}: sum {total:e}, expected {sum:e}", entry.name()));
            }
        }
    }
    wrong
}

/// Whether the sum of all values is as recorded; NaN is not.
fn near_sum(found: f64, expected: f64, bound: f64) -> bool {
    (found - expected).abs() <= bound
}
