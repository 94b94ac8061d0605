//! The table of built-in metrics: name, label, convention, direction, and the function that prepares each. Those of
//! decisions at a threshold have a table of their own.

use super::{Metric, PreparedMetric, ScoredSample, calibration, decisions, scores};
use crate::{Direction, MetricError};

/// A built-in metric: everything about it but its function, which is in `scores.rs` or `calibration.rs`.
#[derive(Clone, Copy, Debug)]
struct BuiltIn {
    name: &'static str,
    summary: &'static str,
    label: &'static str,
    convention: &'static str,
    goal: Goal,
    has_horizon: bool,
    prepare: Prepare,
}

type Prepare = fn(&ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError>;

#[derive(Clone, Copy, Debug)]
enum Goal {
    Higher,
    Lower,
    /// A distance, which is best at 0 and never below.
    NoDistance,
    One,
}

impl Metric for BuiltIn {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn label(&self) -> &'static str {
        self.label
    }

    fn convention(&self) -> &'static str {
        self.convention
    }

    fn direction(&self) -> Direction {
        match self.goal {
            Goal::Higher => Direction::HigherIsBetter,
            Goal::Lower | Goal::NoDistance | Goal::One => Direction::LowerIsBetter,
        }
    }

    fn target(&self) -> Option<f64> {
        matches!(self.goal, Goal::One).then_some(1.0)
    }

    fn is_distance(&self) -> bool {
        matches!(self.goal, Goal::NoDistance)
    }

    fn has_horizon(&self) -> bool {
        self.has_horizon
    }

    fn prepare(&self, sample: &ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError> {
        (self.prepare)(sample)
    }
}

/// All built-in metrics, in the order in which they are listed to users.
pub fn built_in_metrics() -> impl Iterator<Item = &'static dyn Metric> {
    BUILT_IN.iter().map(|metric| metric as &'static dyn Metric).chain(decisions::decision_metrics())
}

const BUILT_IN: [BuiltIn; 24] = [
    BuiltIn {
        name: "c-td",
        summary: "time-dependent concordance; pairs with equal predictions count 0 (Antolini et al. 2005)",
        label: "C^td",
        convention: "time-dependent concordance of Antolini et al. (2005); pairs with equal predictions count 0, as in \
                     the paper and pycox `antolini`",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::c_td,
    },
    BuiltIn {
        name: "c-td-half",
        summary: "time-dependent concordance; pairs with equal predictions count 1/2",
        label: "C^td (ties 1/2)",
        convention: "as C^td, but pairs with equal predictions count 1/2",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::c_td_half,
    },
    BuiltIn {
        name: "c-td-adjusted",
        summary: "time-dependent concordance with pycox's adjustment for tied times",
        label: "C^td (adjusted)",
        convention: "as C^td with the treatment of tied times and predictions of pycox `adj_antolini`",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::c_td_adjusted,
    },
    BuiltIn {
        name: "c-td-ipcw",
        summary: "time-dependent concordance with censoring weights 1 / G(T-)^2",
        label: "C^td (IPCW)",
        convention: "as C^td, each pair with the weight 1/G(T-)^2 of its earlier event, G the censoring curve, events \
                     before the last evaluation time; pairs with equal predictions count 1/2",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::c_td_ipcw,
    },
    BuiltIn {
        name: "auc-td",
        summary: "cumulative/dynamic AUC, averaged over the evaluation times",
        label: "AUC^td",
        convention: "cumulative/dynamic AUC with cases weighted by 1/G(T), G the censoring curve, averaged over the \
                     evaluation times by trapezoids",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::auc_td,
    },
    BuiltIn {
        name: "auc",
        summary: "cumulative/dynamic AUC at the horizon",
        label: "AUC",
        convention: "cumulative/dynamic AUC at the horizon with cases weighted by 1/G(T), G the censoring curve",
        goal: Goal::Higher,
        has_horizon: true,
        prepare: scores::auc,
    },
    BuiltIn {
        name: "ibs",
        summary: "integrated Brier score (Graf et al. 1999)",
        label: "IBS",
        convention: "Brier score of Graf et al. (1999) with weights 1/G, G the censoring curve (scikit-survival), \
                     integrated over the evaluation times by trapezoids and divided by their range",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::ibs,
    },
    BuiltIn {
        name: "brier",
        summary: "Brier score at the horizon",
        label: "Brier",
        convention: "Brier score of Graf et al. (1999) at the horizon with weights 1/G, G the censoring curve \
                     (scikit-survival)",
        goal: Goal::Lower,
        has_horizon: true,
        prepare: scores::brier,
    },
    BuiltIn {
        name: "harrell-c",
        summary: "Harrell's concordance of one risk per sample",
        label: "Harrell C",
        convention: "Harrell's C of {risk}; risks within 1e-8 are tied and count \
                     1/2 (scikit-survival)",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::harrell_c,
    },
    BuiltIn {
        name: "uno-c",
        summary: "Uno's concordance of one risk per sample, up to the last evaluation time",
        label: "Uno C",
        convention: "Uno's C of {risk}, with weights 1/G(T)^2, events before the \
                     last evaluation time; risks within 1e-8 are tied and count 1/2 (scikit-survival)",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::uno_c,
    },
    BuiltIn {
        name: "rsbs",
        summary: "reweighted survival Brier score (Sonabend et al.)",
        label: "RSBS",
        convention: "squared loss, weights 1/G(T) of events only, mean over the evaluation times (mlr3proba with proper)",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::rsbs,
    },
    BuiltIn {
        name: "risl",
        summary: "reweighted integrated survival log loss",
        label: "RISL",
        convention: "log loss, weights 1/G(T) of events only, mean over the evaluation times (mlr3proba with proper)",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::risl,
    },
    BuiltIn {
        name: "isll",
        summary: "integrated survival log loss (Graf et al. 1999)",
        label: "ISLL",
        convention: "log loss, weights 1/G(T) of events and 1/G(t) of survivors, mean over the evaluation times \
                     (mlr3proba)",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::isll,
    },
    BuiltIn {
        name: "nbll",
        summary: "integrated negative binomial log-likelihood, as in pycox",
        label: "NBLL",
        convention: "negative binomial log-likelihood with weights 1/G, averaged over the evaluation times by trapezoids \
                     (pycox)",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::nbll,
    },
    BuiltIn {
        name: "snl",
        summary: "survival negative log-likelihood, with censoring weights (Sonabend 2022)",
        label: "SNL",
        convention: "-log f(T) / G(T) of events, f the slope of the straight line between grid points",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::snl,
    },
    BuiltIn {
        name: "rcll",
        summary: "right-censored log loss (Avati et al. 2020)",
        label: "RCLL",
        convention: "-log f(T) of events and -log S(T) of the censored, f the slope of the straight line between grid \
                     points",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: scores::rcll,
    },
    BuiltIn {
        name: "explained-variation",
        summary: "1 - IBS divided by the IBS of Kaplan-Meier (Graf et al. 1999)",
        label: "Explained variation",
        convention: "1 - IBS / IBS of the Kaplan-Meier curve of the same samples, as a share of the loss without a model",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: scores::explained_variation,
    },
    BuiltIn {
        name: "d-calibration",
        summary: "D-calibration: squared distance of the distribution of S(T) from uniform",
        label: "D-calibration",
        convention: "sum over ten bins of (share of S(T) in the bin - 1/10)^2, the censored spread over the bins below \
                     (Haider et al. 2020; distance of Goldstein et al. 2020)",
        goal: Goal::NoDistance,
        has_horizon: false,
        prepare: calibration::d_calibration,
    },
    BuiltIn {
        name: "ici",
        summary: "integrated calibration index at the horizon (Austin et al. 2020)",
        label: "ICI",
        convention: "mean distance of the predicted risk at the horizon from the observed one, smoothed by a Cox model on a \
                     restricted cubic spline with three knots (Austin, Harrell & van Klaveren 2020)",
        goal: Goal::NoDistance,
        has_horizon: true,
        prepare: calibration::ici,
    },
    BuiltIn {
        name: "observed-expected",
        summary: "observed divided by mean predicted risk at the horizon",
        label: "O/E",
        convention: "1 - Kaplan-Meier at the horizon divided by the mean predicted risk; above 1: risk is underestimated",
        goal: Goal::One,
        has_horizon: true,
        prepare: calibration::observed_expected,
    },
    BuiltIn {
        name: "calibration-slope",
        summary: "coefficient of log(-log S) at the horizon in a Cox model",
        label: "Calibration slope",
        convention: "coefficient of log(-log S) at the horizon in a Cox model; below 1: the predictions are too extreme \
                     (van Houwelingen 2000)",
        goal: Goal::One,
        has_horizon: true,
        prepare: calibration::slope,
    },
    BuiltIn {
        name: "calibration-alpha",
        summary: "events divided by the expected number of events (van Houwelingen 2000)",
        label: "Calibration alpha",
        convention: "events divided by the sum of the cumulative hazards -log S(T); above 1: risk is underestimated",
        goal: Goal::One,
        has_horizon: false,
        prepare: calibration::alpha,
    },
    BuiltIn {
        name: "integrated-calibration",
        summary: "mean distance of Kaplan-Meier from the mean curve over the evaluation times",
        label: "Integrated calibration",
        convention: "mean over the evaluation times of the distance of the mean predicted curve from Kaplan-Meier",
        goal: Goal::NoDistance,
        has_horizon: false,
        prepare: calibration::integrated,
    },
    BuiltIn {
        name: "one-calibration",
        summary: "chi-square of observed against predicted risk in ten bins at the horizon",
        label: "1-calibration",
        convention: "sum over ten bins of equal size, fewer where many risks are equal, of (observed - predicted risk)^2 / \
                     variance of the predicted risk at the horizon, observed by Kaplan-Meier (D'Agostino & Nam 2003); grows \
                     with the number of samples and of bins",
        goal: Goal::NoDistance,
        has_horizon: true,
        prepare: calibration::one_calibration,
    },
];
