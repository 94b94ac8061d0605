//! The class of every pixel: cross-entropy and Dice loss of masks (`FairSeg`, Tian et al. 2024, ICLR, equations 1 and 6).
//!
//! The outputs are the logits of C classes for every pixel, p the probabilities of the softmax over the classes, y the mask with
//! a 1 for the class of a pixel. Of sample i
//! `CE_i` = - mean over pixels of log p(own class),
//! `D_ic` = 1 - (2 sum p y + eps) / (sum p^2 + sum y^2 + eps), sums over the pixels of i, of class c,
//! `l_i` = lambda1 `CE_i` + lambda2 (1 / C) sum over c of `w_c` `D_ic`. Background is a class.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `pixel-classes` | 2 | 2 to 256 | C, with the background; in run files that of `[task] segmentation` |
//! | `cross-entropy` | 0.5 | >= 0 | lambda1; the source gives no number |
//! | `dice` | 0.5 | >= 0, not both 0 | lambda2 |
//! | `epsilon` | 1e-5 | >= 1e-15 | eps; the source gives no number. Below, its square leaves `f32`, and with it the gradient |
//! | `class-weights` | 1 each | > 0, one per class | `w_c`, Omega of the source |
//!
//! The source sums over the pixels of a whole batch; here over those of a sample, so that every sample has a loss of its own, which
//! strategies weigh and group. A sample's term does not depend on the rest of the batch.
//! Golden values: torch 2.15 (`fairtte-survival/tests/survival/segmentation.rs`).

use burn::tensor::activation::log_softmax;
use burn::tensor::{Tensor, TensorData};
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{HeadSettings, SurvivalHead, constant};
use crate::{Baseline, CutPoints, Masks, PredictionGrid, SurvivalError, Targets};

/// Settings of the head of masks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SegmentationConfig {
    /// Classes of pixels with the background, 2 to 256; that of `[task] segmentation`.
    pub pixel_classes: usize,
    /// Factor of the cross-entropy, at least 0.
    pub cross_entropy: f64,
    /// Factor of the Dice loss, at least 0.
    pub dice: f64,
    /// What is added to both sides of the fraction of the Dice loss, at least 1e-15.
    pub epsilon: f64,
    /// Weights of the classes in the Dice loss, above 0, from the background on; 1 each if not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class_weights: Vec<f64>,
}

impl Default for SegmentationConfig {
    fn default() -> Self {
        Self { pixel_classes: 2, cross_entropy: 0.5, dice: 0.5, epsilon: 1e-5, class_weights: Vec::new() }
    }
}

impl HeadSettings for SegmentationConfig {
    fn name(&self) -> &'static str {
        "segmentation"
    }

    fn summary(&self) -> &'static str {
        "class of every pixel, cross-entropy and Dice (Tian et al. 2024); [task] kind = \"segmentation\""
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(Segmentation::new(self)?))
    }
}

/// The class of every pixel.
#[derive(Clone, Debug, PartialEq)]
pub struct Segmentation {
    config: SegmentationConfig,
    /// Weight of every class, `[n_classes]`.
    weights: Vec<f64>,
}

/// What the Dice loss of every sample and class is made of, `[batch, n_classes]` each.
struct Overlaps {
    /// Sum of p y over the pixels.
    common: Tensor<2>,
    /// Sum of p^2.
    predicted: Tensor<2>,
    /// Sum of y^2.
    truth: Tensor<2>,
}

impl Segmentation {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the setting, its value and its range.
    pub fn new(config: &SegmentationConfig) -> Result<Self, SurvivalError> {
        let SegmentationConfig { pixel_classes: n, cross_entropy, dice, epsilon, ref class_weights } = *config;
        let refused = |key, value, expected| Err(SurvivalError::Setting { key, value, expected });
        if !(2..=256).contains(&n) {
            return refused("pixel-classes", n as f64, "a whole number from 2 to 256");
        }
        for (key, value) in [("cross-entropy", cross_entropy), ("dice", dice)] {
            if !(value >= 0.0 && value.is_finite()) {
                return refused(key, value, "a finite number >= 0");
            }
        }
        if cross_entropy + dice <= 0.0 {
            return refused("dice", dice, "a number above 0 where cross-entropy is 0");
        }
        if !(1e-15..f64::INFINITY).contains(&epsilon) {
            return refused("epsilon", epsilon, "a finite number >= 1e-15");
        }
        if !class_weights.is_empty() && class_weights.len() != n {
            return refused("class-weights", class_weights.len() as f64, "as many weights as pixel-classes, or none");
        }
        if let Some(wrong) = class_weights.iter().find(|weight| !(**weight > 0.0 && weight.is_finite())) {
            return refused("class-weights", *wrong, "finite numbers > 0");
        }
        let weights = if class_weights.is_empty() { vec![1.0; n] } else { class_weights.clone() };
        Ok(Self { config: config.clone(), weights })
    }

    /// Number of classes of a pixel, with the background.
    pub fn n_classes(&self) -> usize {
        self.config.pixel_classes
    }

    /// Factor of the Dice loss.
    pub fn dice_factor(&self) -> f64 {
        self.config.dice
    }

    /// The losses of [`subject_losses`](SurvivalHead::subject_losses) with the probabilities of every sample multiplied by its
    /// `scale`, `[batch]`, inside the Dice loss; the cross-entropy is as it is.
    ///
    /// # Panics
    /// If the targets have no masks of the size of the outputs, or a class that the head does not have.
    pub fn scaled_losses(&self, logits: Tensor<2>, targets: &Targets, scale: Option<&[f64]>) -> Tensor<1> {
        let masks = self.masks(targets, &logits);
        let (n, n_classes) = (targets.n(), self.n_classes());
        let log_p = log_softmax(logits.reshape([n, n_classes, masks.n_pixels]), 1);
        let y = indicators(masks, n_classes, &log_p);
        let cross_entropy = (log_p.clone() * y.clone()).sum_dims_squeeze(&[1, 2]).neg() / masks.n_pixels as f64; // [batch]
        let Overlaps { common, predicted, truth } = overlaps(log_p.exp(), y);
        let (common, predicted) = match scale {
            None => (common, predicted),
            Some(scale) => {
                let of = |values: Vec<f64>| constant(values, [n, 1], &common);
                let squares = of(scale.iter().map(|w| w * w).collect());
                (common.clone() * of(scale.to_vec()), predicted * squares)
            }
        };
        let epsilon = self.config.epsilon;
        let losses = ((common * 2.0 + epsilon) / (predicted + truth + epsilon)).neg() + 1.0; // [batch, n_classes]
        let shares = self.weights.iter().map(|weight| weight / n_classes as f64).collect();
        let shares = constant(shares, [1, n_classes], &losses);
        let dice: Tensor<1> = (losses * shares).sum_dim(1).squeeze_dim(1);
        cross_entropy * self.config.cross_entropy + dice * self.config.dice
    }

    /// The Dice loss of every group of samples of a batch, summed over the classes, with the pixels of all its samples in one
    /// sum: `members` are the places of the samples of every group; `None` for an empty one. On the host, without gradient.
    ///
    /// # Panics
    /// As [`scaled_losses`](Self::scaled_losses).
    pub fn group_losses(&self, logits: Tensor<2>, targets: &Targets, members: &[Vec<usize>]) -> Vec<Option<f64>> {
        let masks = self.masks(targets, &logits);
        let (n, n_classes) = (targets.n(), self.n_classes());
        let log_p = log_softmax(logits.detach().reshape([n, n_classes, masks.n_pixels]), 1);
        let y = indicators(masks, n_classes, &log_p);
        let Overlaps { common, predicted, truth } = overlaps(log_p.exp(), y);
        let sums = Tensor::cat(vec![common, predicted + truth], 1); // [batch, 2 n_classes], read at once
        let sums: Vec<f64> = sums.into_data().iter::<f64>().collect();
        let epsilon = self.config.epsilon;
        let of_class = |members: &[usize], class: usize| {
            let sum = |column: usize| members.iter().map(|row| sums[row * 2 * n_classes + column]).sum::<f64>();
            1.0 - (2.0 * sum(class) + epsilon) / (sum(n_classes + class) + epsilon)
        };
        let of_group = |members: &Vec<usize>| {
            (!members.is_empty()).then(|| (0..n_classes).map(|class| of_class(members, class)).sum())
        };
        members.iter().map(of_group).collect()
    }

    /// The loss of every sample from its probabilities, `[n, n_classes n_pixels]`, on the host.
    ///
    /// # Panics
    /// If probabilities and masks are not of the same samples and sizes.
    pub fn losses_of(&self, probabilities: &ArrayView2<'_, f64>, masks: &Masks) -> Vec<f64> {
        let (n_classes, n_pixels) = (self.n_classes(), masks.n_pixels);
        assert_eq!(
            probabilities.dim(),
            (masks.n(), n_classes * n_pixels),
            "one probability per sample, class and pixel"
        );
        let loss = |(row, p): (usize, ndarray::ArrayView1<'_, f64>)| {
            let labels = masks.of(row);
            let own = labels.iter().enumerate().map(|(at, label)| p[usize::from(*label) * n_pixels + at]);
            let log_p: f64 = own.map(|p| p.max(f64::MIN_POSITIVE).ln()).sum();
            let dice = |class: usize| {
                let (mut common, mut both) = (0.0, 0.0);
                for (at, label) in labels.iter().enumerate() {
                    let p = p[class * n_pixels + at];
                    both += p * p;
                    if usize::from(*label) == class {
                        common += p;
                        both += 1.0;
                    }
                }
                1.0 - (2.0 * common + self.config.epsilon) / (both + self.config.epsilon)
            };
            let weighted: f64 = self.weights.iter().enumerate().map(|(class, weight)| weight * dice(class)).sum();
            self.config.dice * weighted / n_classes as f64 - self.config.cross_entropy * log_p / n_pixels as f64
        };
        probabilities.rows().into_iter().enumerate().map(loss).collect()
    }

    /// The most probable class of every pixel, `[n_pixels]`, of the probabilities of one sample, `[n_classes n_pixels]`; of equals the
    /// first.
    ///
    /// # Panics
    /// If the probabilities do not divide into the classes.
    pub fn classes_of(&self, probabilities: &ndarray::ArrayView1<'_, f64>) -> Vec<u8> {
        let n_pixels = probabilities.len() / self.n_classes();
        let best = |at: usize| {
            let mut best = 0;
            for class in 1..self.n_classes() {
                if probabilities[class * n_pixels + at] > probabilities[best * n_pixels + at] {
                    best = class;
                }
            }
            u8::try_from(best).expect("at most 256 classes")
        };
        (0..n_pixels).map(best).collect()
    }

    fn masks<'t>(&self, targets: &'t Targets, logits: &Tensor<2>) -> &'t Masks {
        let masks = targets.masks.as_ref().expect("a training on masks has masks in its batches");
        let expected = [masks.n(), self.n_classes() * masks.n_pixels];
        assert_eq!(logits.dims(), expected, "one logit per sample, class and pixel");
        // A class beyond those of the head would be marked in the next sample.
        let largest = masks.labels.iter().copied().max().unwrap_or_default();
        let n_classes = self.n_classes();
        assert!(usize::from(largest) < n_classes, "a mask has the class {largest}, expected one below {n_classes}");
        masks
    }
}

/// 1 at the class of every pixel, `[batch, n_classes, n_pixels]`.
fn indicators(masks: &Masks, n_classes: usize, like: &Tensor<3>) -> Tensor<3> {
    let (n, n_pixels) = (masks.n(), masks.n_pixels);
    let mut y = vec![0.0_f32; n * n_classes * n_pixels];
    for (at, label) in masks.labels.iter().enumerate() {
        let (row, pixel) = (at / n_pixels, at % n_pixels);
        y[(row * n_classes + usize::from(*label)) * n_pixels + pixel] = 1.0;
    }
    Tensor::from_data(TensorData::new(y, [n, n_classes, n_pixels]), (&like.device(), like.dtype()))
}

fn overlaps(p: Tensor<3>, y: Tensor<3>) -> Overlaps {
    let sum = |x: Tensor<3>| x.sum_dim(2).squeeze_dim::<2>(2);
    Overlaps { common: sum(p.clone() * y.clone()), predicted: sum(p.square()), truth: sum(y) }
}

impl SurvivalHead for Segmentation {
    fn name(&self) -> &'static str {
        "segmentation"
    }

    fn of_masks(&self) -> Option<&Segmentation> {
        Some(self)
    }

    fn n_outputs(&self, _cut_points: &CutPoints) -> usize {
        self.n_classes()
    }

    /// Logits `[batch, n_classes n_pixels]`, those of a class after each other.
    fn subject_losses(&self, logits: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        self.scaled_losses(logits, targets, None)
    }

    /// The probabilities of the classes in place of curves, `[n, n_classes n_pixels]`; they sum to 1 over the classes.
    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        _grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let (n_classes, n_pixels) = (self.n_classes(), logits.ncols() / self.n_classes());
        let mut p = logits.mapv(f64::from);
        for mut row in p.rows_mut() {
            for at in 0..n_pixels {
                let largest = (0..n_classes).map(|c| row[c * n_pixels + at]).fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = (0..n_classes).map(|c| (row[c * n_pixels + at] - largest).exp()).sum();
                for c in 0..n_classes {
                    let value = &mut row[c * n_pixels + at];
                    *value = (*value - largest).exp() / total;
                }
            }
        }
        Ok(p)
    }

    fn starting_outputs(&self, _hazard: &[f64]) -> Option<Vec<f64>> {
        None
    }
}
