//! Tests of `src/pretrained.rs`; they need a back end, which `src` does not name.
use crate::Batch;
use burn::tensor::{Device, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_models::{BackboneKind, EncoderConfig, Pixels};
use fairtte_survival::{ClassifierConfig, CutPoints, HeadConfig};

use super::*;
use crate::strategies::{Accumulation, Clock, Saved, StepContext};
use crate::{Learner, LearnerSpec, NetworkSpec, OptimiserConfig, Outputs};

const RATE: f64 = 1e-3;

/// Weights of `small-2d` under the names of this library, without the shift of the last norm if `complete` is false.
fn weights(complete: bool) -> Vec<u8> {
    let mut tensors = Vec::new();
    let widths = [1, 16, 32, 64, 64];
    for layer in 0..4 {
        let (from, to) = (widths[layer], widths[layer + 1]);
        tensors.push((format!("layers.{layer}.conv.weight"), vec![to, from, 3, 3]));
        for part in ["gamma", "beta", "running_mean", "running_var"] {
            if complete || (layer, part) != (3, "beta") {
                tensors.push((format!("layers.{layer}.norm.{part}"), vec![to]));
            }
        }
    }
    let mark = serde_json::json!({ "fairtte.backbone": "small-2d" });
    let mut header = serde_json::Map::from_iter([("__metadata__".to_owned(), mark)]);
    let mut data = Vec::new();
    for (name, shape) in tensors {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        let base = if name.ends_with("weight") { 0.0 } else { 1.0 };
        data.extend((0..n).flat_map(|i| (base + 0.2 * (i as f32 * 0.7).sin()).to_le_bytes()));
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name, entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn pretrained(freeze: Freeze, head_learning_rate: Option<f64>) -> Pretrained {
    let path = PathBuf::from("w.safetensors");
    let file = Arc::new(WeightFile::parse(&path, weights(true)).unwrap());
    let (layout, gray) = (Layout::Auto, Gray::Auto);
    Pretrained { file, config: PretrainedConfig { path, sha256: None, layout, gray, freeze, head_learning_rate } }
}

/// A setting whose steps have the size of the rate.
const PLAIN: OptimiserConfig = OptimiserConfig { learning_rate: RATE, weight_decay: 0.0, gradient_clip: 0.0 };
/// Decay would change a weight without a gradient, and clipping uses all gradients together.
const DECAYING: OptimiserConfig = OptimiserConfig { weight_decay: 0.1, gradient_clip: 1.0, ..PLAIN };

fn learner(pretrained: Option<Pretrained>) -> Learner {
    learner_with(pretrained, PLAIN)
}

fn learner_with(pretrained: Option<Pretrained>, optimiser: OptimiserConfig) -> Learner {
    let spec = LearnerSpec {
        network: NetworkSpec {
            encoder: EncoderConfig::new(BackboneKind::Small2d),
            channels: 1,
            classifier: ClassifierConfig {
                hidden: 16,
                n_outputs: 5,
                bias: true,
                start: None,
                time_scale: None,
                pixel_classes: None,
            },
        },
        optimiser,
        seed: 7,
        device: Device::flex(),
        pretrained,
    };
    Learner::new(&spec, "net").unwrap()
}

/// One step of training.
fn step(learner: &mut Learner) {
    let device = Device::flex().autodiff();
    let values: Vec<f32> = (0..4 * 16 * 16).map(|i| (i as f32 * 0.13).sin()).collect();
    let pixels = burn::tensor::Tensor::from_data(TensorData::new(values, [4, 1, 16, 16]), &device);
    let batch = Batch {
        rows: (0..4).collect(),
        sample_ids: (0..4).map(|i| format!("s{i}").into()).collect(),
        pixels: Pixels::Image(pixels),
        time: vec![1.0, 2.0, 3.0, 4.0],
        event: vec![true; 4],
        competing: vec![0; 4],
        groups: vec![None; 4],
        masks: None,
    };
    let outcomes = Outcomes::new(batch.time.clone(), batch.event.clone()).unwrap();
    let cut_points = CutPoints::equidistant(&outcomes, 5).unwrap();
    let head = HeadConfig::default().build().unwrap();
    let (head, clock) = (head.as_ref(), Clock::default());
    let accumulation = Accumulation::default();
    let cut_points = &cut_points;
    let context = StepContext {
        outputs: Outputs { head, cut_points },
        seed: 7,
        epoch: 0,
        step: 0,
        rate: 1.0,
        accumulation,
        loss_scale: 1.0,
        clock: &clock,
    };
    let forward = learner.forward(&batch, &[], &mut context.noise("pass")).unwrap();
    let loss = forward.outputs.clone().square().mean() + forward.outputs.mean();
    learner.descend(&loss, &context).unwrap();
}

/// Every parameter of the network, in order: whether it is in the backbone, and its values.
fn parameters(learner: &Learner) -> Vec<(String, Vec<f32>)> {
    #[derive(Default)]
    struct Collect(Vec<String>, Vec<(String, Vec<f32>)>);
    impl ModuleVisitor for Collect {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let values = param.val().into_data().try_to_vec().unwrap();
            self.1.push((self.0.join("."), values));
        }
    }
    let mut collect = Collect::default();
    learner.network().visit(&mut collect);
    collect.1
}

/// Names of the parameters of which a bit changed in `n` steps.
fn moved(learner: &mut Learner, n: usize) -> Vec<String> {
    let before = parameters(learner);
    (0..n).for_each(|_| step(learner));
    let changed = before.into_iter().zip(parameters(learner));
    changed.filter(|(a, b)| a != b).map(|((name, _), _)| name).collect()
}

fn in_backbone(name: &str) -> bool {
    name.starts_with("encoder.backbone")
}

#[test]
fn a_network_begins_with_the_weights_of_the_file_and_all_of_it_is_trained() {
    let mut learner = learner(Some(pretrained(Freeze::None, None)));
    let drawn = self::learner(None);
    let (loaded, drawn) = (parameters(&learner), parameters(&drawn));
    for ((name, loaded), (_, drawn)) in loaded.iter().zip(&drawn) {
        assert_eq!(loaded != drawn, in_backbone(name), "{name}");
    }
    assert_eq!(loaded[0].1[1].to_bits(), (0.2 * 0.7_f32.sin()).to_bits());
    assert_eq!(moved(&mut learner, 3).len(), loaded.len(), "running statistics are updated too");
}

#[test]
fn all_but_the_head_stays_to_the_bit() {
    let mut learner = learner_with(Some(pretrained(Freeze::AllButHead, None)), DECAYING);
    let n_head = parameters(&learner).iter().filter(|(name, _)| !in_backbone(name)).count();
    let moved = moved(&mut learner, 3);
    assert!(!moved.iter().any(|name| in_backbone(name)), "{moved:?}");
    assert_eq!(moved.len(), n_head);
}

#[test]
fn frozen_batch_norm_keeps_scale_shift_and_running_statistics() {
    let mut learner = learner_with(Some(pretrained(Freeze::BatchNorm, None)), DECAYING);
    let n = parameters(&learner).len();
    let moved = moved(&mut learner, 3);
    assert!(!moved.iter().any(|name| name.contains(".norm.")), "{moved:?}");
    assert_eq!(moved.len(), n - 16, "four norms with four parameters");
}

#[test]
fn what_stays_still_stays_after_a_checkpoint_was_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for freeze in [Freeze::AllButHead, Freeze::BatchNorm] {
        let mut first = learner_with(Some(pretrained(freeze, Some(1e-2))), DECAYING);
        step(&mut first);
        first.save(folder.path(), "net", Saved::Everything).unwrap();
        let mut second = learner_with(Some(pretrained(freeze, Some(1e-2))), DECAYING);
        second.load(folder.path(), "net", Saved::Everything).unwrap();
        assert_eq!(parameters(&first), parameters(&second));
        let moved = (moved(&mut first, 2), moved(&mut second, 2));
        assert_eq!(moved.0, moved.1);
        assert_eq!(parameters(&first), parameters(&second), "uninterrupted and resumed are identical");
    }
}

#[test]
fn the_first_step_has_the_length_of_its_rate_in_both_groups() {
    // AdamW's first step is rate * g / (|g| + 1e-8): the rate, for a gradient far above 1e-8.
    let mut learner = learner(Some(pretrained(Freeze::None, Some(0.05))));
    let before = parameters(&learner);
    step(&mut learner);
    for ((name, before), (_, after)) in before.iter().zip(&parameters(&learner)) {
        if name.contains("running") {
            continue;
        }
        let expected = if in_backbone(name) { 1e-3 } else { 0.05 };
        let largest = before.iter().zip(after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!((largest / expected - 1.0).abs() < 0.01, "{name}: {largest} instead of {expected}");
    }
}

#[test]
fn weights_that_do_not_fit_are_no_network() {
    let path = PathBuf::from("w.safetensors");
    let file = Arc::new(WeightFile::parse(&path, weights(false)).unwrap());
    let spec = Pretrained { file, ..pretrained(Freeze::None, None) };
    let encoder = EncoderConfig::new(BackboneKind::Small2d).build(1, &Device::flex());
    let error = spec.load(encoder).unwrap_err().to_string();
    assert!(error.contains("missing keys: 1 (first: layers.3.norm.beta"), "{error}");
    let vit = EncoderConfig::new(BackboneKind::VitBase16).build(3, &Device::flex());
    assert!(!vit.backbone().has_batch_norm());
}

#[test]
fn settings_out_of_range_name_their_key() {
    let config = pretrained(Freeze::None, Some(0.0)).config;
    assert!(config.validate().unwrap_err().to_string().starts_with("head-learning-rate is 0, expected"));
    let config = PretrainedConfig { sha256: Some("ab".to_owned()), head_learning_rate: None, ..config };
    assert!(config.validate().unwrap_err().to_string().starts_with("sha256 is ab, expected"));
}
