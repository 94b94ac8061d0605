//! Gradients of all parameters of four networks of full size against PyTorch in double precision.
//!
//! `tests/parity/gradients.json` holds a few entries and the norm of each gradient, and the error of PyTorch's own
//! single precision; `parity/gradients.py` writes it and documents how weights are computed. A small multiple of PyTorch's own
//! error is allowed (`of_rounding`): of the worst entry in the network, and of the root of the mean square over the entries that are
//! recorded.

use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;

use super::device;
use super::golden::{formula_values, integers, number, of_rounding};
use crate::Noise;
use crate::backbone::Backbone;
use crate::parity::{FULL_SIZE, Tensors, collect, load, pixels, values};

/// Bound for a gradient that is zero except for rounding, as a share of the network's largest.
const ZERO: f64 = 1e-6;

/// The network of that name among the four that are recorded.
fn recorded(name: &str) -> Value {
    let mut recorded: Value = serde_json::from_str(include_str!("../../parity/gradients.json")).expect("JSON");
    let networks = recorded["networks"].as_array_mut().expect("a list of networks");
    assert_eq!(networks.len(), 4);
    let place = networks.iter().position(|network| network["name"] == name).expect("a recorded network");
    networks.swap_remove(place)
}

#[test]
fn gradients_of_whole_networks_are_those_of_pytorch_efficientnet() {
    check("efficientnet-b0");
}

#[test]
fn gradients_of_whole_networks_are_those_of_pytorch_resnet() {
    check("resnet18");
}

#[test]
fn gradients_of_whole_networks_are_those_of_pytorch_volumes() {
    check("resnet18-3d");
}

#[test]
fn gradients_of_whole_networks_are_those_of_pytorch_vit() {
    check("vit-base/16");
}

fn data(described: &Value) -> TensorData {
    TensorData::new(formula_values(described), integers(&described["shape"]))
}

/// One tensor for each parameter, with values made from its description and its place in the list.
fn tensors(parameters: &[Value], make: impl Fn(usize, &Value) -> Vec<f32>) -> Tensors {
    let tensor = |(place, parameter): (usize, &Value)| {
        let key = parameter["key"].as_str().expect("a key").to_owned();
        (key, TensorData::new(make(place, parameter), integers(&parameter["shape"])))
    };
    parameters.iter().enumerate().map(tensor).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "indices are exact in single precision up to 16 million")]
fn check(name: &str) {
    let network = recorded(name);
    let known = FULL_SIZE.into_iter().find(|(kind, ..)| kind.name() == name).expect("a network of full size");
    let (kind, _, _, repeats) = known;
    let parameters = network["parameters"].as_array().expect("parameters");
    let channels = integers(&network["input"]["shape"])[1];
    let built = |tensors: &Tensors, device: &Device| load(kind.build(channels, device), repeats, tensors, "", false);

    let device = device();
    let trained = built(&tensors(parameters, |_, parameter| formula_values(parameter)), &device);
    let input = pixels(&data(&network["input"]), &device);
    let features = trained.forward(input, &mut Noise::Off).expect("pixels that the network takes");
    let found: Vec<f64> = values(features.clone().inner()).into_iter().map(f64::from).collect();
    let errors = relative_errors(&network["features"], &found);
    let allowed = of_rounding(&device);
    let bound = allowed * number(&network["features"]["rounding"]);
    assert!(errors.iter().all(|&error| error <= bound), "{name}: features off by {errors:?}, expected {bound:e}");
    let probe = Tensor::from_data(data(&network["probe"]), &device);
    let gradients = (features * probe).sum().backward();
    let gradients = collect(&trained, Some(&gradients));
    drop(trained);

    // Networks whose weights are the index of the parameter, and the index in PyTorch's layout, are built in the same
    // way as the weights, and so give the parameter of each gradient and the places of its entries.
    let of = |backbone: Backbone| collect(&backbone, None).into_iter().map(|found| found.expect("a parameter"));
    let number_of_entries = |parameter: &Value| integers(&parameter["shape"]).iter().product::<usize>();
    let numbered = |place: usize, parameter: &Value| vec![place as f32; number_of_entries(parameter)];
    let places: Vec<f32> = of(built(&tensors(parameters, numbered), &device)).map(|found| found[0]).collect();
    let indexed = |_: usize, parameter: &Value| (0..number_of_entries(parameter)).map(|index| index as f32).collect();
    let orders = of(built(&tensors(parameters, indexed), &device));

    let largest_of_all = number(&network["largest"]);
    let (mut of_ours, mut of_pytorch) = (Errors::default(), Errors::default());
    let mut n_compared = 0;
    for ((gradient, place), order) in gradients.into_iter().zip(places).zip(orders) {
        #[expect(clippy::cast_sign_loss, reason = "it was a place in a list")]
        let parameter = &parameters[place as usize];
        let key = parameter["key"].as_str().expect("a key");
        let gradient = gradient.unwrap_or_else(|| panic!("{name}: {key} has no gradient"));
        n_compared += 1;
        if parameter["zero"] == true {
            let largest = gradient.iter().fold(0.0_f64, |largest, &value| largest.max(f64::from(value).abs()));
            let bound = (allowed * number(&parameter["rounding"]) + ZERO) * largest_of_all;
            assert!(largest <= bound, "{name}, {key}: {largest:e}, expected 0 +- {bound:e}");
            continue;
        }
        of_ours.add(relative_errors(parameter, &in_order(&gradient, &order)));
        of_pytorch.add(vec![number(&parameter["rounding_here"])]);
        of_pytorch.worst = of_pytorch.worst.max(number(&parameter["rounding"]));
    }
    assert_eq!(n_compared, parameters.len(), "{name}");
    eprintln!("{name}: {of_ours:?}, PyTorch's {of_pytorch:?}");
    assert!(of_ours.worst <= allowed * of_pytorch.worst, "{name}: {of_ours:?}, PyTorch's {of_pytorch:?}");
    assert!(of_ours.mean() <= allowed * of_pytorch.mean(), "{name}: {of_ours:?}, PyTorch's {of_pytorch:?}");
}

/// Errors of gradients, each as a share of the largest entry of its parameter.
#[derive(Debug, Default)]
struct Errors {
    worst: f64,
    sum_of_squares: f64,
    n: usize,
}

impl Errors {
    /// Adds the errors of one parameter; the largest of them enters the mean.
    fn add(&mut self, errors: Vec<f64>) {
        let largest = errors.into_iter().fold(0.0, f64::max);
        self.worst = self.worst.max(largest);
        self.sum_of_squares += largest * largest;
        self.n += 1;
    }

    /// Root of the mean square over the parameters.
    fn mean(&self) -> f64 {
        (self.sum_of_squares / self.n.max(1) as f64).sqrt()
    }
}

/// The values reordered: the one at place i moves to the index `order[i]`.
fn in_order(found: &[f32], order: &[f32]) -> Vec<f64> {
    let mut in_order = vec![0.0; found.len()];
    for (&value, &index) in found.iter().zip(order) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = index as usize;
        in_order[index] = f64::from(value);
    }
    in_order
}

/// Differences to the recorded entries, and of the norm, as shares of the largest entry.
fn relative_errors(expected: &Value, found: &[f64]) -> Vec<f64> {
    assert!(found.iter().all(|value| value.is_finite()), "a gradient that is not finite");
    let largest = number(&expected["largest"]);
    let stride = integers(&Value::Array(vec![expected["stride"].clone()]))[0];
    let recorded = expected["values"].as_array().expect("values").iter().map(number);
    let mut errors: Vec<f64> =
        recorded.enumerate().map(|(k, value)| (found[k * stride % found.len()] - value).abs() / largest).collect();
    let norm = found.iter().map(|value| value * value).sum::<f64>().sqrt();
    errors.push((norm - number(&expected["norm"])).abs() / largest / (found.len() as f64).sqrt());
    errors
}
