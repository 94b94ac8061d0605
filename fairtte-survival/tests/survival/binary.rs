//! The head of a class: cross-entropy, weight and focal loss against torch, and against `nnet-survival` with one interval.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{assert_close, gradient, losses, tensor};
use burn::tensor::Device;
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    Binary, BinaryConfig, ClassifierConfig, CutPoints, HeadSettings as _, NnetSurvival, PredictionGrid, SurvivalHead,
    Targets,
};
use ndarray::{Array2, array, concatenate};

const POSITIVE: [bool; 6] = [true, false, true, false, true, false];

fn logits() -> Array2<f32> {
    array![[0.5], [-1.25], [-3.0], [2.0], [40.0], [30.0]]
}

fn targets() -> Targets {
    CutPoints::of_class().targets("test", &[1.0; 6], &POSITIVE).unwrap()
}

fn head(positive_weight: f64, focal_gamma: f64) -> Binary {
    Binary::new(&BinaryConfig { positive_weight, focal_gamma }).unwrap()
}

/// Weight, gamma, and losses in torch 2.9.0 (float64): `binary_cross_entropy_with_logits(x, y, pos_weight, reduction="none")` times
/// `(1 - p_t) ** gamma` with `p_t = sigmoid(x) * y + (1 - sigmoid(x)) * (1 - y)`.
const GOLDEN_LOSSES: [(f64, f64, [f64; 6]); 4] = [
    (1.0, 0.0, [0.474_076_984, 0.251_929_081, 3.048_587_35, 2.126_928_01, 4.248_354_26e-18, 30.0]),
    (3.0, 0.0, [1.422_230_95, 0.251_929_081, 9.145_762_05, 2.126_928_01, 1.274_506_28e-17, 30.0]),
    (1.0, 2.0, [0.067_573_490_5, 0.012_494_511_4, 2.766_280_44, 1.650_078_18, 0.0, 30.0]),
    (0.25, 1.5, [0.027_493_782_4, 0.026_476_406_2, 0.708_576_629, 1.758_193_17, 0.0, 30.0]),
];

#[test]
fn losses_are_those_of_torch() {
    for (weight, gamma, expected) in GOLDEN_LOSSES {
        let found = losses(&head(weight, gamma), &logits(), &targets());
        assert_close(&found, &expected, 2e-6, &format!("weight {weight}, gamma {gamma}"));
    }
}

#[test]
fn the_fit_of_a_sample_is_its_cross_entropy_whatever_the_weight_and_the_focal_factor() {
    let (_, _, cross_entropy) = GOLDEN_LOSSES[0];
    for (weight, gamma, _) in GOLDEN_LOSSES {
        let x = tensor(&logits(), &Device::flex());
        let found = head(weight, gamma).misfits(x, &targets(), None, &mut stream(1, "controls", &[]));
        let found: Vec<f32> = found.into_data().try_to_vec().unwrap();
        assert_close(&found, &cross_entropy, 2e-6, &format!("weight {weight}, gamma {gamma}"));
    }
}

/// Time 0 has no mass: its hazard in the other head is that of the logit -200.
#[test]
fn it_is_nnet_survival_with_one_interval() {
    let x = logits();
    let with_time_0 = concatenate![ndarray::Axis(1), Array2::from_elem((6, 1), -200.0), x];
    let (one, two) = (losses(&head(1.0, 0.0), &x, &targets()), losses(&NnetSurvival, &with_time_0, &targets()));
    assert_close(&one, &two, 1e-6, "losses");
    let (of_one, of_two) =
        (gradient(&head(1.0, 0.0), &x, &targets()), gradient(&NnetSurvival, &with_time_0, &targets()));
    let of_interval: Vec<f32> = of_two.chunks(2).map(|row| row[1]).collect();
    assert_close(&of_one, &of_interval, 1e-6, "gradients");
    let grid = PredictionGrid::at_cut_points(&CutPoints::of_class());
    let curve = head(1.0, 0.0).survival(x.view(), &grid, None).unwrap();
    let other = NnetSurvival.survival(with_time_0.view(), &grid, None).unwrap();
    assert_eq!(curve, other);
    // 1 - sigmoid(0.5), sigmoid(1.25)
    assert!(
        (curve[[0, 1]] - 0.377_540_668_798_145_4).abs() < 1e-15
            && (curve[[1, 1]] - 0.777_299_861_174_690_8).abs() < 1e-15
    );
    assert_eq!(curve.column(0).to_vec(), [1.0; 6]);
}

#[test]
fn training_starts_at_the_logit_of_the_prevalence() {
    let event: Vec<bool> = (0..1000).map(|i| i % 4 == 0).collect();
    let train = Outcomes::new(vec![1.0; 1000], event).unwrap();
    let found = ClassifierConfig::for_head(&head(1.0, 0.0), &CutPoints::of_class(), &train, 0).unwrap();
    // A twentieth of an event and a tenth of a sample are added, so that a class of none is finite.
    let prevalence: f64 = 250.05 / 1000.1;
    assert_eq!((found.n_outputs, found.bias), (1, true));
    assert!((found.start.unwrap()[0] - (prevalence / (1.0 - prevalence)).ln()).abs() < 1e-12);
}

#[test]
fn gradients_agree_with_finite_differences() {
    let x = array![[0.5_f32], [-1.25], [-3.0], [2.0], [0.0], [1.0]];
    for (weight, gamma) in [(1.0, 0.0), (3.0, 0.0), (1.0, 2.0), (0.25, 1.5)] {
        let head = head(weight, gamma);
        let found = gradient(&head, &x, &targets());
        let step = 1e-2_f32;
        for row in 0..6 {
            let at = |change: f32| {
                let mut moved = x.clone();
                moved[[row, 0]] += change;
                losses(&head, &moved, &targets())[row]
            };
            let expected = (at(step) - at(-step)) / (2.0 * step) / 6.0;
            assert!((found[row] - expected).abs() < 2e-4, "row {row}: {} and {expected}", found[row]);
        }
    }
}

#[test]
fn losses_stay_finite_at_large_outputs_and_settings_have_ranges() {
    let x = Array2::from_shape_fn((6, 1), |(row, _)| if row < 3 { 100.0 } else { -100.0 });
    for (weight, gamma) in [(1.0, 0.0), (1e6, 100.0)] {
        let found = losses(&head(weight, gamma), &x, &targets());
        assert!(found.iter().all(|loss| loss.is_finite() && *loss >= 0.0), "{found:?}");
        let slopes = gradient(&head(weight, gamma), &x, &targets());
        assert!(slopes.iter().all(|slope| slope.is_finite()), "{slopes:?}");
    }
    let refused =
        |positive_weight, focal_gamma| BinaryConfig { positive_weight, focal_gamma }.build().unwrap_err().to_string();
    assert_eq!(refused(0.0, 0.0), "positive-weight is 0, expected a number in (0, 1e6]");
    assert_eq!(refused(1.0, -0.5), "focal-gamma is -0.5, expected a number in [0, 100]");
    assert!(refused(f64::NAN, 0.0).starts_with("positive-weight is NaN") && refused(1.0, f64::NAN).contains("NaN"));
}
