//! The head of masks: cross-entropy and Dice loss per sample, their scaled form and the losses of groups, against torch.
//!
//! Recorded with torch 2.15.0 in float64: `cross_entropy(logits, labels, reduction="none").mean(1)`, `softmax(logits, 1)`, and
//! `1 - (2 * (p * y).sum() + eps) / ((p * p).sum() + (y * y).sum() + eps)` per sample and class, with `p * W` in place of `p` for
//! the scaled form and with the samples of a group in one sum for its loss; gradients of `losses @ [1, -2, 0.5]` by autograd.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{assert_close, gradient, losses, tensor};
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_survival::{
    ClassifierConfig, CutPoints, HeadSettings as _, Masks, PredictionGrid, Segmentation, SegmentationConfig,
    SurvivalHead as _, Targets,
};
use ndarray::Array2;

const CLASSES: usize = 3;
const PIXELS: usize = 6;

fn logits() -> Array2<f32> {
    Array2::from_shape_fn((3, CLASSES * PIXELS), |(b, at)| {
        let (c, p) = (at / PIXELS, at % PIXELS);
        ((5 * b + 7 * c + 3 * p * p + b * c * p) % 13) as f32 / 4.0 - 1.5
    })
}

/// The last mask is empty.
fn masks() -> Masks {
    let labels = vec![0, 1, 1, 0, 1, 1, 1, 2, 2, 1, 2, 2, 0, 0, 0, 0, 0, 0];
    Masks { labels, n_pixels: PIXELS }
}

fn targets() -> Targets {
    let targets = CutPoints::of_class().targets("test", &[1.0; 3], &[true; 3]).unwrap();
    Targets { masks: Some(masks()), ..targets }
}

fn head(config: SegmentationConfig) -> Segmentation {
    Segmentation::new(&SegmentationConfig { pixel_classes: CLASSES, ..config }).unwrap()
}

fn weighted() -> Segmentation {
    let class_weights = vec![0.5, 1.0, 3.0];
    let config = SegmentationConfig { cross_entropy: 0.25, dice: 2.0, epsilon: 0.5, ..Default::default() };
    head(SegmentationConfig { class_weights, ..config })
}

/// Losses, the gradient at the second pixel of every sample and class, and the sum of the magnitudes of the whole gradient.
type Golden = ([f64; 3], [f64; 9], f64);

const USUAL: Golden = (
    [1.331_892_473_125, 0.665_050_375_346, 1.112_460_443_959],
    [
        0.014_478_090_205,
        -0.032_697_857_476,
        0.018_219_767_271,
        -0.061_147_955_79,
        -0.018_517_125_095,
        0.079_665_080_884,
        -0.040_292_933_081,
        0.029_456_489_327,
        0.010_836_443_754,
    ],
    2.617_497_671_831,
);
const WEIGHTED: Golden = (
    [2.170_258_885_288, 1.027_232_993_511, 2.159_073_271_633],
    [
        0.014_163_625_086,
        -0.073_229_392_747,
        0.059_065_767_661,
        -0.186_112_988_233,
        -0.044_956_207_41,
        0.231_069_195_642,
        -0.028_936_829_31,
        0.004_941_446_126,
        0.023_995_383_185,
    ],
    5.060_341_451_972,
);
/// With the scales 0.75, 0.5 and 0.9 of the three samples.
const SCALED: Golden = (
    [1.344_506_514_364, 0.750_749_438_758, 1.119_789_791_451],
    [
        0.014_262_681_289,
        -0.032_363_283_717,
        0.018_100_602_428,
        -0.061_100_638_764,
        -0.017_732_692_998,
        0.078_833_331_762,
        -0.040_168_891_615,
        0.029_365_806_562,
        0.010_803_085_053,
    ],
    2.526_565_048_052,
);

#[test]
fn losses_and_gradients_are_those_of_torch() {
    let usual = head(SegmentationConfig::default());
    let scale = [0.75, 0.5, 0.9];
    for (head, scale, (of_samples, at_pixel, total)) in
        [(&usual, None, USUAL), (&weighted(), None, WEIGHTED), (&usual, Some(&scale[..]), SCALED)]
    {
        let x = tensor(&logits(), &Device::flex().autodiff()).require_grad();
        let found = head.scaled_losses(x.clone(), &targets(), scale);
        let factors = Tensor::<1>::from_data(TensorData::from([1.0_f32, -2.0, 0.5]), &x.device());
        let gradients = (found.clone() * factors).sum().backward();
        let gradient: Vec<f32> = x.grad(&gradients).unwrap().into_data().try_to_vec().unwrap();
        assert_close(&found.into_data().try_to_vec::<f32>().unwrap(), &of_samples, 1e-6, "losses");
        let second: Vec<f32> = gradient.chunks(PIXELS).map(|pixels| pixels[1]).collect();
        assert_close(&second, &at_pixel, 1e-6, "gradients");
        let sum: f64 = gradient.iter().map(|value| f64::from(value.abs())).sum();
        assert_close(&[sum], &[total], 1e-6, "size of the gradient");
    }
}

#[test]
fn the_losses_of_groups_sum_over_the_pixels_of_all_their_samples() {
    let x = tensor(&logits(), &Device::flex());
    let members = [vec![0, 2], vec![1], Vec::new(), vec![0, 1, 2]];
    let found = head(SegmentationConfig::default()).group_losses(x, &targets(), &members);
    let expected = [Some(2.270_970_567_519_786), Some(1.590_227_876_371_388_8), None, Some(1.589_632_042_353_241_3)];
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.is_some(), expected.is_some());
        assert_close(&[found.unwrap_or(0.0)], &[expected.unwrap_or(0.0)], 1e-6, "a group");
    }
}

/// The loss of a batch is that of training, and a mask that is found has none but what the scale leaves: (1 - W)^2 / (1 + W^2).
#[test]
fn the_losses_on_the_host_are_those_of_training() {
    let grid = PredictionGrid::at_cut_points(&CutPoints::of_class());
    for head in [head(SegmentationConfig::default()), weighted()] {
        let probabilities = head.survival(logits().view(), &grid, None).unwrap();
        assert_eq!(probabilities.dim(), (3, CLASSES * PIXELS));
        for row in probabilities.rows() {
            for pixel in 0..PIXELS {
                let total: f64 = (0..CLASSES).map(|class| row[class * PIXELS + pixel]).sum();
                assert!((total - 1.0).abs() < 1e-12);
            }
        }
        let trained = losses(&head, &logits(), &targets());
        assert_close(&head.losses_of(&probabilities.view(), &masks()), &trained, 1e-6, "losses");
    }
    let found = Array2::from_shape_fn((3, CLASSES * PIXELS), |(row, at)| {
        if usize::from(masks().of(row)[at % PIXELS]) == at / PIXELS { 40.0 } else { -40.0 }
    });
    let dice = head(SegmentationConfig { cross_entropy: 0.0, dice: 1.0, ..Default::default() });
    assert_close(&losses(&dice, &found, &targets()), &[0.0; 3], 1e-6, "a mask that is found");
    let x = tensor(&found, &Device::flex());
    let left: Vec<f32> = dice.scaled_losses(x, &targets(), Some(&[0.5; 3])).into_data().try_to_vec().unwrap();
    // (1 - W)^2 / (1 + W^2) = 0.2 of the classes that the mask has: 2, 2 and 1 of 3.
    assert_close(&left, &[0.2 * 2.0 / 3.0, 0.2 * 2.0 / 3.0, 0.2 / 3.0], 1e-5, "what the scale leaves");
    let classes = dice.classes_of(&dice.survival(found.view(), &grid, None).unwrap().row(1));
    assert_eq!(classes, masks().of(1));
}

#[test]
fn gradients_agree_with_finite_differences_and_stay_finite_at_large_logits() {
    let (head, x, step) = (weighted(), logits(), 1e-2_f32);
    let found = gradient(&head, &x, &targets());
    for at in (0..x.len()).step_by(5) {
        let (row, column) = (at / x.ncols(), at % x.ncols());
        let value = |change: f32| {
            let mut moved = x.clone();
            moved[[row, column]] += change;
            losses(&head, &moved, &targets())[row]
        };
        let expected = (value(step) - value(-step)) / (2.0 * step) / 3.0;
        assert!((found[at] - expected).abs() < 2e-4, "{at}: {} and {expected}", found[at]);
    }
    let large = Array2::from_shape_fn(x.dim(), |(row, at)| if (row + at) % 2 == 0 { 100.0 } else { -100.0 });
    let (losses, slopes) = (losses(&head, &large, &targets()), gradient(&head, &large, &targets()));
    assert!(losses.iter().chain(&slopes).all(|value| value.is_finite()), "{losses:?} {slopes:?}");
}

// Of the last mask, which is empty, two classes are neither there nor predicted: their fractions are epsilon / epsilon, and
// the gradient of a fraction has the square of its lower side.
#[test]
fn the_smallest_epsilon_leaves_the_losses_of_absent_classes_and_their_gradients_finite() {
    let head = head(SegmentationConfig { cross_entropy: 0.0, dice: 1.0, epsilon: 1e-15, ..Default::default() });
    let background = Array2::from_shape_fn((3, CLASSES * PIXELS), |(_, at)| if at < PIXELS { 100.0 } else { -100.0 });
    assert_close(&losses(&head, &background, &targets())[2..], &[0.0], 1e-6, "an empty mask that is found");
    let slopes = gradient(&head, &background, &targets());
    assert!(slopes.iter().all(|slope| slope.is_finite()), "{slopes:?}");
}

// Its mark would be that of the first class in the next sample.
#[test]
#[should_panic(expected = "a mask has the class 3, expected one below 3")]
fn a_class_that_the_head_does_not_have_is_refused() {
    let mut labels = masks().labels;
    labels[0] = 3;
    let targets = Targets { masks: Some(Masks { labels, n_pixels: PIXELS }), ..targets() };
    losses(&head(SegmentationConfig::default()), &logits(), &targets);
}

#[test]
fn settings_have_ranges_and_the_network_gets_a_decoder() {
    let refused = |config: SegmentationConfig| config.build().unwrap_err().to_string();
    let usual = SegmentationConfig::default;
    assert_eq!(
        refused(SegmentationConfig { pixel_classes: 1, ..usual() }),
        "pixel-classes is 1, expected a whole number from 2 to 256"
    );
    assert_eq!(refused(SegmentationConfig { dice: -1.0, ..usual() }), "dice is -1, expected a finite number >= 0");
    assert!(refused(SegmentationConfig { cross_entropy: 0.0, dice: 0.0, ..usual() }).contains("above 0"));
    assert!(refused(SegmentationConfig { epsilon: 0.0, ..usual() }).starts_with("epsilon is 0"));
    assert!(refused(SegmentationConfig { epsilon: 1e-16, ..usual() }).ends_with("expected a finite number >= 1e-15"));
    assert!(refused(SegmentationConfig { class_weights: vec![1.0], ..usual() }).contains("as many weights"));
    assert!(refused(SegmentationConfig { class_weights: vec![1.0, 0.0], ..usual() }).contains("finite numbers > 0"));
    let train = Outcomes::new(vec![1.0; 4], vec![true; 4]).unwrap();
    let found = ClassifierConfig::for_head(&head(usual()), &CutPoints::of_class(), &train, 0).unwrap();
    assert_eq!((found.pixel_classes, found.start), (Some(CLASSES), None));
}
