//! Tests of `src/strategies/sam.rs`; they need a back end, which `src` does not name.
use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};
use burn::tensor::{DType, Device, TensorData};
use serde_json::Value as Json;

use super::*;

/// x1 w1 + x2 w2 + w3, its parameters in two tensors: the norm must join them.
#[derive(Module, Debug)]
struct Linear {
    weights: Param<Tensor<1>>,
    intercept: Param<Tensor<1>>,
}

fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, DType::F64))
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().try_to_vec::<f64>().unwrap()
}

impl Linear {
    fn new(weights: &[f64], device: &Device) -> Self {
        let param = |values: &[f64]| Param::from_tensor(tensor(values.to_vec(), [values.len()], device));
        Self { weights: param(&weights[..2]), intercept: param(&weights[2..]) }
    }

    /// Mean squared error, `[1]`.
    fn loss(&self, x: &[f64], y: &[f64]) -> Tensor<1> {
        let device = self.weights.val().device();
        let x = tensor(x.to_vec(), [y.len(), 2], &device);
        let predicted = x.matmul(self.weights.val().reshape([2, 1])).reshape([y.len()]) + self.intercept.val();
        (predicted - tensor(y.to_vec(), [y.len()], &device)).square().mean()
    }

    fn flat(&self) -> Vec<f64> {
        [values(self.weights.val()), values(self.intercept.val())].concat()
    }

    fn gradients(&self, x: &[f64], y: &[f64]) -> GradientsParams {
        GradientsParams::from_grads(self.loss(x, y).backward(), self)
    }

    fn flat_gradients(&self, gradients: &GradientsParams) -> Vec<f64> {
        let of = |param: &Param<Tensor<1>>| values(gradients.get::<1>(param.id).unwrap());
        [of(&self.weights), of(&self.intercept)].concat()
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
fn both_passes_are_those_of_the_worked_cases() {
    let golden: Json = serde_json::from_str(include_str!("../golden/sam.json")).unwrap();
    let device = Device::flex().autodiff();
    let (mut n_compared, mut n_cases) = (0, 0);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for case in golden["cases"].as_array().unwrap() {
        let (inputs, expected) = (&case["inputs"], &case["expected"]);
        n_cases += 1;
        let mut compare = |found: &[f64], key: &str| {
            let expected = match &expected[key] {
                Json::Array(_) => numbers(&expected[key]),
                number => vec![number.as_f64().unwrap()],
            };
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let close = (found - expected).abs() <= 1e-9 * expected.abs() + 1e-12;
                assert!(close, "{}, {key}: {found} is not {expected}", case["name"]);
                n_compared += 1;
            }
        };
        let number = |key: &str, default: f64| inputs[key].as_f64().unwrap_or(default);
        let adaptive = inputs["adaptive"].as_bool().unwrap_or(false);
        let config = SamConfig { adaptive, rho: number("rho", 0.0), eta: number("asam_eta", 0.0) };
        if inputs.get("gradient").is_some() {
            let module = Linear::new(&[0.5, -0.3, 0.1], &device);
            let mut gradients = GradientsParams::new();
            let plain = Device::flex();
            gradients.register(module.weights.id, tensor(vec![0.0, 0.0], [2], &plain));
            gradients.register(module.intercept.id, tensor(vec![0.0], [1], &plain));
            let moved = config.perturbed(&module, &gradients).flat();
            compare(&moved.iter().zip(module.flat()).map(|(a, b)| a - b).collect::<Vec<_>>(), "perturbation");
            continue;
        }
        if inputs.get("x").is_some() {
            x = inputs["x"].as_array().unwrap().iter().flat_map(numbers).collect();
            y = numbers(&inputs["y"]);
        }
        let module = Linear::new(&numbers(&inputs["weights"]), &device);
        compare(&values(module.loss(&x, &y)), "loss");
        let gradients = module.gradients(&x, &y);
        compare(&module.flat_gradients(&gradients), "gradient");
        compare(&values(config.norm(&module.valid(), &gradients).unwrap()), "norm");
        let perturbed = config.perturbed(&module, &gradients);
        let difference: Vec<f64> = perturbed.flat().iter().zip(module.flat()).map(|(a, b)| a - b).collect();
        compare(&difference, "perturbation");
        compare(&perturbed.flat(), "perturbed_weights");
        compare(&values(perturbed.loss(&x, &y)), "loss_at_perturbed");
        let second = perturbed.gradients(&x, &y);
        compare(&module.flat_gradients(&second), "gradient_at_perturbed");
        let mut optimiser: ModuleOptimizer = match inputs["optimizer"].as_str().unwrap() {
            "sgd" => {
                let decay = burn::optim::decay::WeightDecayConfig::new(number("weight_decay", 0.0) as f32);
                SgdConfig::new().with_weight_decay(Some(decay)).init()
            }
            _ => AdamConfig::new().with_epsilon(1e-8).init(),
        };
        let updated = optimiser.step(number("learning_rate", 0.0), module, second);
        compare(&updated.flat(), "updated_weights");
    }
    println!("SAM: {n_compared} values of {n_cases} cases compared");
    assert_eq!((n_cases, n_compared), (8, 7 * 18 + 3));
}
