//! Tests of `src/strategies/sam.rs`; they need a back end, which `src` does not name.
use burn::tensor::{DType, Device, TensorData};
use fairtte_survival::HeadConfig;
use serde_json::Value as Json;

use super::super::table::{World, is_statistic, numbers as all_numbers};
use super::super::{Clock, pass};
use super::*;
use crate::OptimiserConfig;

/// x1 w1 + x2 w2 + w3, its parameters in two tensors, over both of which the norm is taken.
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
    tensor.into_data().iter::<f64>().collect()
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
        // The optimisers of the cases, computed here in f64 (burn holds decay and betas in f32).
        let (rate, decay) = (number("learning_rate", 0.0), number("weight_decay", 0.0));
        let step = |(w, g): (&f64, &f64)| match inputs["optimizer"].as_str().unwrap() {
            "sgd" => w - rate * (g + decay * w),
            _ => w - rate * g / (g.abs() + 1e-8), // Adam's first step: both bias corrections cancel the betas
        };
        let (weights, second) = (module.flat(), module.flat_gradients(&second));
        compare(&weights.iter().zip(&second).map(step).collect::<Vec<_>>(), "updated_weights");
    }
    println!("SAM: {n_compared} values of {n_cases} cases compared");
    assert_eq!((n_cases, n_compared), (8, 7 * 18 + 3));
}

#[test]
fn a_weight_without_a_gradient_is_not_perturbed() {
    let device = Device::flex().autodiff();
    let module = Linear::new(&[0.5, -0.3, 0.1], &device);
    let mut gradients = GradientsParams::new();
    gradients.register(module.weights.id, tensor(vec![3.0, 4.0], [2], &Device::flex()));
    let config = SamConfig { adaptive: false, rho: 0.5, eta: 0.01 };
    assert_eq!(config.perturbed(&module, &gradients).flat()[2].to_bits(), 0.1_f64.to_bits());
    let untouched = config.perturbed(&module, &GradientsParams::new());
    assert_eq!(untouched.flat(), module.flat());
}

#[test]
fn the_default_radius_is_that_of_the_form_and_a_setting_without_effect_is_refused() {
    let read = |text: &str| serde_json::from_str::<SamConfig>(text);
    assert_eq!(read("{}").unwrap(), SamConfig { adaptive: false, rho: 0.05, eta: 0.01 });
    let adaptive = read(r#"{"adaptive": true}"#).unwrap();
    assert_eq!(adaptive, SamConfig { adaptive: true, rho: 0.5, eta: 0.01 });
    // What is written out is read back.
    assert_eq!(read(&serde_json::to_string(&adaptive).unwrap()).unwrap(), adaptive);
    assert!(read(r#"{"radius": 1.0}"#).is_err());
    let message = |config: SamConfig| config.validate().unwrap_err().to_string();
    let expected = "rho is 0, expected a finite number > 0";
    assert_eq!(message(SamConfig { rho: 0.0, ..SamConfig::default() }), expected);
    let expected = "eta is 0.5, expected no value without adaptive = true";
    assert_eq!(message(SamConfig { eta: 0.5, ..SamConfig::default() }), expected);
    for eta in [-0.5, f64::INFINITY] {
        let expected = format!("eta is {eta}, expected a finite number >= 0");
        assert_eq!(message(SamConfig { eta, ..adaptive }), expected);
    }
    let learner = Learner::new(&World::new(&HeadConfig::default()).spec(), "network").unwrap();
    assert!(Sam::new(&SamConfig { rho: 0.0, ..SamConfig::default() }, learner).is_err());
}

/// A network after one step: plain, or with SAM of radius `rho`.
fn stepped(world: &World, rho: Option<f64>, weight_decay: f64) -> Vec<(String, Vec<f64>)> {
    let mut spec = world.spec();
    spec.optimiser = OptimiserConfig { weight_decay, gradient_clip: 0.0, ..spec.optimiser };
    let learner = Learner::new(&spec, "network").unwrap();
    let (batch, clock) = (world.batch(&world.train[..24], true), Clock::default());
    let context = world.context(3, &clock);
    let Some(rho) = rho else {
        let mut learner = learner;
        pass::plain_step(&mut learner, NETWORK, &batch, &context).unwrap();
        return all_numbers(learner.network());
    };
    let mut sam = Sam::new(&SamConfig { rho, ..SamConfig::default() }, learner).unwrap();
    let report = sam.step(&batch, &context).unwrap();
    assert!(report.gradient_norm > 0.0 && report.objective >= report.task_loss, "{report:?}");
    all_numbers(sam.learner.network())
}

// The first pass runs at the weights of the plain step with its dropout masks; the second must leave no trace.
#[test]
fn running_statistics_advance_in_the_first_pass_only() {
    let world = World::new(&HeadConfig::default());
    let (plain, sharp) = (stepped(&world, None, 0.0), stepped(&world, Some(0.5), 0.0));
    let mut n_statistics = 0;
    for ((name, plain), (_, sharp)) in plain.iter().zip(&sharp) {
        if is_statistic(name) {
            assert_eq!(plain, sharp, "{name}");
            n_statistics += 1;
        }
    }
    assert_eq!(n_statistics, 4);
    assert_ne!(plain, sharp, "the perturbation changes the step");
}

#[test]
fn a_radius_of_almost_nothing_gives_the_plain_step() {
    let world = World::new(&HeadConfig::default());
    for ((name, plain), (_, sharp)) in stepped(&world, None, 1e-2).iter().zip(&stepped(&world, Some(1e-12), 1e-2)) {
        for (plain, sharp) in plain.iter().zip(sharp) {
            assert!((plain - sharp).abs() < 1e-6, "{name}: {plain} {sharp}");
        }
    }
}

// AdamW's decay is rate x decay x w: at w, not at w + e.
#[test]
fn weight_decay_acts_on_the_weights_before_the_perturbation() {
    let world = World::new(&HeadConfig::default());
    let before = all_numbers(Learner::new(&world.spec(), "network").unwrap().network());
    let (without, with) = (stepped(&world, Some(0.5), 0.0), stepped(&world, Some(0.5), 0.1));
    let rate = world.spec().optimiser.learning_rate;
    for (((name, w), (_, without)), (_, with)) in before.iter().zip(&without).zip(&with) {
        for ((w, without), with) in w.iter().zip(without).zip(with) {
            let expected = if is_statistic(name) { 0.0 } else { rate * 0.1 * w };
            assert!((without - with - expected).abs() < 1e-6, "{name}: {} is not {expected}", without - with);
        }
    }
}
