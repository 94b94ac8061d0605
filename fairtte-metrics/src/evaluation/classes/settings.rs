//! What the metrics of a class are, and what they are computed with.

use serde::{Deserialize, Serialize};

use crate::classification::replicates::{N_CLASS_METRICS, Readings};
use crate::classification::{CalibrationError, Underdiagnosis, check_threshold, check_tnr};
use crate::evaluation::report::MetricDescription;
use crate::{Direction, MetricError};

/// What the metrics of a class are computed with. Keys in a file are written in kebab-case; unknown keys are errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassSettings {
    /// The probability at or above which a sample is called positive, in [0, 1]. Default 0.5.
    pub threshold: f64,
    /// The true negative rate at which the true positive rate is read, between 0 and 1. Default 0.8.
    pub tnr: f64,
    /// Bins of the expected calibration error. Default: 15 of equal width.
    pub calibration_error: CalibrationError,
    /// Which error rate is the underdiagnosis: `missed-disease` (default) or `called-no-finding`.
    pub underdiagnosis: Underdiagnosis,
}

impl Default for ClassSettings {
    fn default() -> Self {
        let (calibration_error, underdiagnosis) = (CalibrationError::default(), Underdiagnosis::default());
        Self { threshold: 0.5, tnr: 0.8, calibration_error, underdiagnosis }
    }
}

impl ClassSettings {
    /// Checks all settings.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with the first bad setting.
    pub fn validate(&self) -> Result<(), MetricError> {
        check_threshold(self.threshold)?;
        check_tnr(self.tnr)?;
        self.calibration_error.validate()
    }

    pub(super) fn readings(&self) -> Readings {
        Readings { threshold: self.threshold, tnr: self.tnr, error: self.calibration_error }
    }
}

const fn metric(
    name: &'static str,
    label: &'static str,
    convention: &'static str,
    is_higher: bool,
) -> MetricDescription<'static> {
    let direction = if is_higher { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    MetricDescription { name, label, convention, direction }
}

/// The metrics of a class, in the order of a report.
pub const CLASS_METRICS: [MetricDescription<'static>; N_CLASS_METRICS] = [
    metric("auc", "AUC", "area under the ROC curve, ties count 1/2", true),
    metric("average-precision", "AP", "sum over thresholds of the rise of recall times precision (scikit-learn)", true),
    metric(
        "bce",
        "BCE",
        "binary cross-entropy in nats, probabilities kept 2^-52 away from 0 and 1 (scikit-learn)",
        false,
    ),
    metric("brier", "Brier", "mean squared distance of the probability from the class", false),
    metric("ece", "ECE", "expected calibration error in bins of the confidence, as the settings say", false),
    metric(
        "calibration-slope",
        "Calibration slope",
        "coefficient of the logit of the probability in a logistic regression",
        true,
    ),
    metric(
        "calibration-intercept",
        "Calibration intercept",
        "intercept of that regression with a coefficient of 1",
        true,
    ),
    metric("accuracy", "Accuracy", "share of samples called what they are at the threshold", true),
    metric(
        "balanced-accuracy",
        "Balanced accuracy",
        "mean of true positive and true negative rate at the threshold",
        true,
    ),
    metric("f1", "F1", "2 TP / (2 TP + FP + FN) at the threshold", true),
    metric("fpr", "FPR", "share of negative samples called positive at the threshold", false),
    metric("fnr", "FNR", "share of positive samples called negative at the threshold", false),
    metric(
        "tpr-at-tnr",
        "TPR at TNR",
        "true positive rate where the true negative rate is that of the settings, interpolated",
        true,
    ),
    metric("selection-rate", "Selection rate", "share of samples called positive at the threshold", true),
];

/// Places in [`CLASS_METRICS`].
pub(super) const ECE: usize = 4;
pub(super) const SLOPE: usize = 5;
pub(super) const INTERCEPT: usize = 6;
pub(super) const ACCURACY: usize = 7;
pub(super) const FPR: usize = 10;
pub(super) const FNR: usize = 11;
pub(super) const SELECTION: usize = 13;
