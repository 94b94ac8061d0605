//! Log scores of survival predictions at the observed times: RCLL, SNL and the plain negative log-likelihood.
//!
//! ```text
//! RCLL = mean over i of  -log( f_i(T_i) if event else S_i(T_i) )
//! SNL  = 1/n sum over events of  -log f_i(T_i) / G(T_i)              (as documented)
//!      = mean over events of  -log( f_i(T_i) / G(T_i) )              (as mlr3proba 0.8.0 computes it)
//! NLL  = mean over i of  -log f_i(T_i)                               (censored samples too)
//! ```
//!
//! Sources: Sonabend et al. (2022), "Flexible group fairness metrics for survival analysis", appendix B, equations 3
//! and 4; Avati et al. (2020) and Rindt et al. (2022) for RCLL, which is proper. A curve on a grid has no density of its
//! own, so how f is read is part of every value: see [`EventDensity`]. A density depends on the unit of time and can
//! exceed 1, so these scores can be negative.
//! Golden values: the formulas of `mlr3proba` 0.8.9 (`surv.rcll`, `surv.logloss`) and 0.8.0.

use serde::{Deserialize, Serialize};

use crate::estimators::BeyondLastTime;
use crate::scores::brier_convention::{BrierConvention, check_ties};
use crate::scores::linear_density::LinearCurve;
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// How f and S of a curve on a grid are read at an observed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventDensity {
    /// S runs on straight lines between distinct values, f is its slope; both at least 1e-6 (`mlr3proba` 0.8.9).
    #[default]
    LinearDensity,
    /// f is the drop of S at a grid point equal to T, else 0; S steps, 1 before the grid; a zero is read as 1e-15
    /// (`mlr3proba` 0.8.0). An event off the grid costs 34.5 nats whatever was predicted.
    ExactMass,
    /// f is the drop of S over the grid interval that contains T, the last interval beyond the grid; S and zeros as in
    /// `ExactMass`. The choice for discrete-time models.
    IntervalMass,
}

/// Which survival negative log-likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnlForm {
    /// Weighted by 1/G outside the logarithm, divided by all samples: equation 3 and the documentation of RNLL.
    #[default]
    Documented,
    /// G inside the logarithm, divided by the events: the code of `mlr3proba` 0.8.0; G = 0 is read as 1e-15.
    Mlr3proba,
}

/// A mean of log losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogScore {
    /// The mean, in nats; lower is better.
    pub value: f64,
    /// Samples whose f or S is part of the score.
    pub n_scored: usize,
    /// Those among them whose f, S, or G was replaced by its floor.
    pub n_floored: usize,
}

impl EventDensity {
    /// A probability or density above 0, whose logarithm exists, and whether it was raised to its lower bound.
    fn lift(self, value: f64) -> (f64, bool) {
        match self {
            Self::LinearDensity => (value.max(1e-6), value < 1e-6),
            Self::ExactMass | Self::IntervalMass => lift_zero(value),
        }
    }

    /// f of `row` at `t`.
    fn density(self, curves: &SurvivalCurves, row: usize, t: f64) -> f64 {
        let (grid, survival) = (curves.grid(), curves.curve(row));
        let column = grid.partition_point(|time| *time < t);
        let mass = |k: usize| if k == 0 { 1.0 - survival[0] } else { survival[k - 1] - survival[k] };
        match self {
            Self::LinearDensity => LinearCurve::new(grid, survival.iter().copied()).density(grid, t),
            Self::ExactMass if grid.get(column) == Some(&t) => mass(column),
            Self::ExactMass => 0.0,
            Self::IntervalMass => mass(column.min(grid.len() - 1)),
        }
    }

    /// S of `row` at `t`.
    fn survival(self, curves: &SurvivalCurves, row: usize, t: f64) -> f64 {
        let grid = curves.grid();
        match self {
            Self::LinearDensity => LinearCurve::new(grid, curves.curve(row).iter().copied()).survival(t),
            _ if t < grid[0] => 1.0,
            _ => curves.at(row, t, Reading::Step),
        }
    }
}

/// The right-censored log loss of `curves`; O(n L), or O(n log L) for masses.
///
/// ```
/// use fairtte_metrics::{Outcomes, SurvivalCurves};
/// use fairtte_metrics::scores::{EventDensity, rcll};
/// use ndarray::array;
///
/// // An event at 1.5, where 0.3 of the probability falls between 1 and 2, and a sample censored where S = 0.5.
/// let outcomes = Outcomes::new(vec![1.5, 2.5], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.9, 0.6], [0.8, 0.5]])?;
/// let score = rcll(&outcomes, &curves, EventDensity::IntervalMass)?;
/// assert!((score.value - -(0.3_f64.ln() + 0.5_f64.ln()) / 2.0).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::NoSamples`] without samples,
/// [`MetricError::NotFinite`] if a density between almost equal grid points overflows.
pub fn rcll(outcomes: &Outcomes, curves: &SurvivalCurves, density: EventDensity) -> Result<LogScore, MetricError> {
    mean_log_loss(outcomes, curves, density, |row, t| {
        if outcomes.event()[row] { density.density(curves, row, t) } else { density.survival(curves, row, t) }
    })
}

/// The negative log-likelihood of `curves` with f for every sample, as if the censored had had their event
/// (`surv.logloss` of `mlr3proba` since 0.8.1). Not proper under censoring; use [`rcll`] or [`snl`].
///
/// # Errors
/// As [`rcll`].
pub fn negative_log_likelihood(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    density: EventDensity,
) -> Result<LogScore, MetricError> {
    mean_log_loss(outcomes, curves, density, |row, t| density.density(curves, row, t))
}

/// The survival negative log-likelihood of `curves` (SNL; RNLL in `mlr3proba`), with weights from `censoring`.
///
/// `censoring` is fitted with flipped ties ([`BrierConvention::censoring_curve`] of `Mlr3proba`), read right-continuously
/// and held beyond its last time. Without any event the documented form is 0: no sample adds to it.
///
/// # Errors
/// Those of [`rcll`]; [`MetricError::InvalidSetting`] for a censoring curve with other ties;
/// [`MetricError::ZeroCensoringSurvival`] if G = 0 at an event (documented form); [`MetricError::NoEvents`] without
/// events (form of `mlr3proba`).
pub fn snl(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    density: EventDensity,
    form: SnlForm,
) -> Result<LogScore, MetricError> {
    curves.check_rows(outcomes.n())?;
    check_ties(BrierConvention::Mlr3proba, censoring)?;
    let (n, n_events) = (outcomes.n(), outcomes.n_events());
    if n == 0 {
        return Err(MetricError::NoSamples);
    }
    if n_events == 0 && form == SnlForm::Mlr3proba {
        return Err(MetricError::NoEvents { n });
    }
    let censoring = censoring.clone().with_beyond(BeyondLastTime::Hold);
    let (mut sum, mut n_floored) = (0.0, 0);
    for (row, &t) in outcomes.time().iter().enumerate().filter(|(row, _)| outcomes.event()[*row]) {
        let f = density.density(curves, row, t);
        let g = censoring.at(t)?;
        match form {
            SnlForm::Documented => {
                if g <= 0.0 {
                    return Err(MetricError::ZeroCensoringSurvival { time: t });
                }
                let (f, lifted) = density.lift(f);
                n_floored += usize::from(lifted);
                sum -= f.ln() / g;
            }
            SnlForm::Mlr3proba => {
                let (g, g_lifted) = lift_zero(g);
                let (ratio, lifted) = density.lift(f / g);
                n_floored += usize::from(lifted || g_lifted);
                sum -= ratio.ln();
            }
        }
    }
    let divisor = if form == SnlForm::Documented { n } else { n_events };
    log_score(sum / divisor as f64, n_events, n_floored)
}

/// Mean of -log `value` over all samples.
fn mean_log_loss(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    density: EventDensity,
    value: impl Fn(usize, f64) -> f64,
) -> Result<LogScore, MetricError> {
    curves.check_rows(outcomes.n())?;
    let n = outcomes.n();
    if n == 0 {
        return Err(MetricError::NoSamples);
    }
    let (mut sum, mut n_floored) = (0.0, 0);
    for (row, &t) in outcomes.time().iter().enumerate() {
        let (value, lifted) = density.lift(value(row, t));
        n_floored += usize::from(lifted);
        sum -= value.ln();
    }
    log_score(sum / n as f64, n, n_floored)
}

/// A density on grid points that almost coincide can overflow.
fn log_score(value: f64, n_scored: usize, n_floored: usize) -> Result<LogScore, MetricError> {
    if value.is_finite() {
        Ok(LogScore { value, n_scored, n_floored })
    } else {
        Err(MetricError::NotFinite { what: "mean log loss", value })
    }
}

/// A zero is read as 1e-15; any other value, however small, stays.
fn lift_zero(value: f64) -> (f64, bool) {
    if value > 0.0 { (value, false) } else { (1e-15, true) }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    /// An event on the grid, one between grid points, one beyond the grid, and a censoring before it.
    fn case() -> (Outcomes, SurvivalCurves) {
        let outcomes = Outcomes::new(vec![2.0, 1.5, 4.0, 0.5], vec![true, true, true, false]).unwrap();
        let survival = array![[0.9, 0.6], [0.8, 0.4], [0.7, 0.5], [0.6, 0.1]];
        (outcomes, SurvivalCurves::new(vec![1.0, 2.0], survival).unwrap())
    }

    fn close(score: LogScore, probabilities: &[f64]) {
        let expected = -probabilities.iter().map(|p| p.ln()).sum::<f64>() / probabilities.len() as f64;
        assert_abs_diff_eq!(score.value, expected, epsilon = 1e-13);
    }

    #[test]
    fn rcll_reads_the_density_in_three_ways() {
        let (outcomes, curves) = case();
        let score = |density| rcll(&outcomes, &curves, density).unwrap();
        close(score(EventDensity::IntervalMass), &[0.3, 0.4, 0.2, 1.0]);
        close(score(EventDensity::ExactMass), &[0.3, 1e-15, 1e-15, 1.0]);
        assert_eq!(score(EventDensity::ExactMass).n_floored, 2);
        // Beyond the grid S continues to fall by 0.2 per unit to 0.1 at 4; censored: half way from 1 to 0.6.
        close(score(EventDensity::LinearDensity), &[0.3, 0.4, 0.2, 0.8]);
    }

    #[test]
    fn the_negative_log_likelihood_takes_the_density_of_the_censored_too() {
        let (outcomes, curves) = case();
        let score = negative_log_likelihood(&outcomes, &curves, EventDensity::IntervalMass).unwrap();
        close(score, &[0.3, 0.4, 0.2, 0.4]);
    }

    #[test]
    fn the_two_forms_of_snl_put_the_weight_outside_and_inside_the_logarithm() {
        let (outcomes, curves) = case();
        let censoring = BrierConvention::Mlr3proba.censoring_curve(&outcomes).unwrap();
        // G = 3/4 from 0.5 on, so all three events have weight 4/3.
        let score = |form| snl(&outcomes, &curves, &censoring, EventDensity::IntervalMass, form).unwrap();
        let logs = 0.3_f64.ln() + 0.4_f64.ln() + 0.2_f64.ln();
        assert_abs_diff_eq!(score(SnlForm::Documented).value, -logs / 0.75 / 4.0, epsilon = 1e-14);
        assert_abs_diff_eq!(score(SnlForm::Mlr3proba).value, -logs / 3.0 + 0.75_f64.ln(), epsilon = 1e-14);
        assert_eq!(score(SnlForm::Documented).n_scored, 3);
    }

    #[test]
    fn a_zero_of_g_and_a_sample_without_events_are_named() {
        let (outcomes, curves) = case();
        let train = Outcomes::new(vec![1.0], vec![false]).unwrap();
        let zero = BrierConvention::Mlr3proba.censoring_curve(&train).unwrap();
        let score = |outcomes, form| snl(outcomes, &curves, &zero, EventDensity::IntervalMass, form);
        assert_eq!(score(&outcomes, SnlForm::Documented), Err(MetricError::ZeroCensoringSurvival { time: 2.0 }));
        let floored = score(&outcomes, SnlForm::Mlr3proba).unwrap();
        assert_eq!(floored.n_floored, 3);
        let censored = Outcomes::new(outcomes.time().to_vec(), vec![false; 4]).unwrap();
        assert_eq!(score(&censored, SnlForm::Mlr3proba), Err(MetricError::NoEvents { n: 4 }));
        assert_eq!(score(&censored, SnlForm::Documented).unwrap().value, 0.0);
    }

    #[test]
    fn no_samples_and_missing_curves_are_refused() {
        let (outcomes, curves) = case();
        let none = Outcomes::new(vec![], vec![]).unwrap();
        let empty = curves.select(&[]);
        assert_eq!(rcll(&none, &empty, EventDensity::default()), Err(MetricError::NoSamples));
        assert!(matches!(
            rcll(&outcomes, &empty, EventDensity::default()),
            Err(MetricError::LengthMismatch { found: 0, expected: 4, .. })
        ));
    }
}
