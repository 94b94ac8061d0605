//! The Brier score as each reference implementation computes it, by name.
//!
//! ```text
//! BS(t) = sum over i of  w_i(t) (1{T_i > t} - S_i(t))^2 / N,  w_i = 1/G(T_i) for events by t, 1/G(t) for survivors
//! ```
//!
//! The conventions differ in G (which ties, left limit or not, beyond its last time, where it is 0), in who is a
//! survivor, and in N. On discrete times they always differ: one example of 12 samples gives 0.192, 0.185, 0.172 and
//! 0.146. Source: Graf et al. (1999), <https://doi.org/10.1002/(SICI)1097-0258(19990915/30)18:17/18%3C2529::AID-SIM274%3E3.0.CO;2-5>.
//! Golden values: `scikit-survival` 0.28.0, `SurvivalEVAL` 0.9.0, `pycox` 0.3.0, R `riskRegression` 2022.11.28,
//! `mlr3proba` 0.8.9 (its formulas), `torchsurv` 0.2.0 (as `scikit-survival`, in `f32`).

use serde::{Deserialize, Serialize};

use crate::scores::brier::BrierScore;
use crate::scores::integration_rule::IntegrationRule;
use crate::scores::ipcw_losses::{IpcwLosses, PointLoss, Weighting, mean_over_time};
use crate::{CensoringCurve, CensoringTies, MetricError, Outcomes, Reading, SurvivalCurves};

/// The implementation whose Brier score is computed.
///
/// | | G | event | survivor | G = 0 | divided by |
/// |---|---|---|---|---|---|
/// | `ScikitSurvival` | events first | 1/G(T) | T > t: 1/G(t) | weight 0, counted | n |
/// | `SurvivalEval` | events first, linear to 0 beyond its last time | 1/G(T-) | T > t or censored at t: 1/G(t-) | error | n |
/// | `SurvivalEvalUnweighted` | not used | 1 | T > t or censored at t: 1 | | n |
/// | `Pycox` | flipped, last value held | 1/G(T-) | T > t: 1/G(t) | error | sum of the weights |
/// | `RiskRegression` | events first | 1/G(T-) | T > t: 1/G(t) | error | n |
/// | `Mlr3proba` | flipped, last value held | 1/G(T), G = 0 read as 0.001 | T > t: 1/G(t) | survivor left out, counted | n left |
///
/// `RiskRegression` is the choice that the literature supports for tied times. Where a package would return infinity
/// or NaN there is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrierConvention {
    /// `scikit-survival`; also `torchsurv`, which computes in `f32` and holds the last value of G
    /// ([`BeyondLastTime::Hold`](crate::estimators::BeyondLastTime::Hold)).
    #[default]
    ScikitSurvival,
    /// `SurvivalEVAL` with IPCW.
    #[serde(rename = "survivaleval")]
    SurvivalEval,
    /// `SurvivalEVAL` without IPCW: a sample censored before t adds nothing and stays in n.
    #[serde(rename = "survivaleval-unweighted")]
    SurvivalEvalUnweighted,
    /// `pycox` `EvalSurv`. Known bug, reproduced: for a sample beyond the last time G was fitted on, "G just before T"
    /// is read one step too early, just before that last time. Not reproduced: where it divides by G = 0 its compiled
    /// loop can stop silently at that sample and return a number that depends on the order of the samples; ours is an
    /// error.
    Pycox,
    /// R `riskRegression::Score` with `cens.model = "km"`.
    #[serde(rename = "riskregression")]
    RiskRegression,
    /// `mlr3proba` `surv.graf` (IPCW at each time, `proper = FALSE`). Before the first grid point S = 1.
    Mlr3proba,
}

impl BrierConvention {
    /// What `SurvivalEvaluator` of `SurvivalEVAL` does with its default settings: without censoring in the evaluated
    /// sample it switches the weights off, regardless of the training sample.
    pub fn survival_evaluator(evaluated: &Outcomes) -> Self {
        if evaluated.event().iter().all(|event| *event) { Self::SurvivalEvalUnweighted } else { Self::SurvivalEval }
    }

    /// How this convention reads an event and a censoring at the same time when it fits G.
    pub fn censoring_ties(self) -> CensoringTies {
        match self {
            Self::Pycox | Self::Mlr3proba => CensoringTies::Flipped,
            _ => CensoringTies::EventsFirst,
        }
    }

    /// G as this convention fits it on `train`. A package that fits G on the evaluated sample itself by default
    /// (`pycox` `"km"`, `riskRegression`, `torchsurv`) is followed by passing that sample.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without samples.
    pub fn censoring_curve(self, train: &Outcomes) -> Result<CensoringCurve, MetricError> {
        CensoringCurve::fit(train, self.censoring_ties())
    }

    /// The rule by which this convention integrates over time.
    pub fn integration_rule(self) -> IntegrationRule {
        match self {
            Self::Pycox => IntegrationRule::Simpson,
            Self::RiskRegression => IntegrationRule::LeftStepsFromZero,
            _ => IntegrationRule::Trapezoid,
        }
    }
}

/// The Brier score of `curves` at every one of `times` by a named convention.
///
/// `censoring` must have the ties of the convention ([`BrierConvention::censoring_curve`]). Its policy beyond the last
/// time is that of the table above; for `ScikitSurvival` and `RiskRegression` it is the curve's own
/// ([`BeyondLastTime`](crate::estimators::BeyondLastTime)). Cost: O(n) per time.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::scores::{BrierConvention, brier_score_by};
/// use ndarray::array;
///
/// // At t = 2: an event by then (S = 0.2), a censoring at 1.5 (adds nothing), a survivor (S = 0.9). G(2) = 1/2.
/// let outcomes = Outcomes::new(vec![1.0, 1.5, 3.0], vec![true, false, true])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.2], [0.5], [0.9]])?;
/// let score = |convention: BrierConvention| {
///     let censoring = convention.censoring_curve(&outcomes)?;
///     Ok(brier_score_by(convention, &outcomes, &curves, &censoring, Reading::Step, &[2.0])?.values[0])
/// };
/// let close = |a: f64, b: f64| (a - b).abs() < 1e-15;
/// assert!(close(score(BrierConvention::RiskRegression)?, (0.04 + 0.01 * 2.0) / 3.0));
/// assert!(close(score(BrierConvention::Pycox)?, (0.04 + 0.01 * 2.0) / (1.0 + 2.0)));
/// assert!(close(score(BrierConvention::SurvivalEvalUnweighted)?, (0.04 + 0.01) / 3.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::NoSamples`] without samples,
/// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the times, [`MetricError::InvalidSetting`] for a
/// refinement factor of 0 or a curve G with other ties, [`MetricError::BeyondCensoringCurve`] if a weight is needed
/// where G is unknown, [`MetricError::ZeroCensoringSurvival`] where G = 0 must be divided by,
/// [`MetricError::NoWeight`] if no sample has a weight at a time.
pub fn brier_score_by(
    convention: BrierConvention,
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<BrierScore, MetricError> {
    check_ties(convention, censoring)?;
    let weighting = Weighting::PerTime(convention);
    IpcwLosses::new(weighting, PointLoss::Squared, outcomes, curves, censoring, reading, times)?.score_over(times)
}

/// The Brier score averaged over `times`, by a named convention and its own
/// [rule](BrierConvention::integration_rule) or another one.
///
/// # Errors
/// Those of [`brier_score_by`], and [`MetricError::TooFewTimes`] for a single time under a rule that needs two.
pub fn integrated_brier_score_by(
    convention: BrierConvention,
    rule: IntegrationRule,
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<f64, MetricError> {
    check_ties(convention, censoring)?;
    let weighting = Weighting::PerTime(convention);
    let losses = IpcwLosses::new(weighting, PointLoss::Squared, outcomes, curves, censoring, reading, times)?;
    Ok(mean_over_time(&losses, rule, times)?.value)
}

/// Refuses a curve G whose ties are not those of the convention.
pub(crate) fn check_ties(convention: BrierConvention, censoring: &CensoringCurve) -> Result<(), MetricError> {
    let ties_matter = convention != BrierConvention::SurvivalEvalUnweighted;
    if ties_matter && censoring.ties() != convention.censoring_ties() {
        return Err(MetricError::InvalidSetting {
            setting: "way of reading ties of the censoring curve",
            value: format!("{:?}", censoring.ties()),
            expected: "the ties of the convention, see BrierConvention::censoring_curve",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::{Array2, array};

    use super::*;

    /// Times 1 to 3 with an event and a censoring at time 2.
    fn tied() -> (Outcomes, SurvivalCurves) {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 2.0, 3.0], vec![false, true, false, true]).unwrap();
        let survival = array![[0.8, 0.8, 0.4], [0.9, 0.5, 0.2], [0.9, 0.7, 0.6], [1.0, 0.6, 0.1]];
        (outcomes, SurvivalCurves::new(vec![1.0, 2.0, 3.0], survival).unwrap())
    }

    fn at(convention: BrierConvention, t: f64) -> Result<f64, MetricError> {
        let (outcomes, curves) = tied();
        let censoring = convention.censoring_curve(&outcomes)?;
        Ok(brier_score_by(convention, &outcomes, &curves, &censoring, Reading::Step, &[t])?.values[0])
    }

    #[test]
    fn every_convention_gives_its_own_value_worked_out_by_hand() {
        // At t = 2: event with S = 0.5, censored at 2 with S = 0.7, survivor with S = 0.6.
        // G events first: 3/4 from 1, then 3/4 * 1/2; flipped: 3/4, then 3/4 * 2/3 = 1/2.
        let (event, survivor) = (0.25, 0.16);
        let expected = [
            (BrierConvention::ScikitSurvival, (event + survivor) / 0.375 / 4.0),
            (BrierConvention::SurvivalEval, (event + survivor + 0.09) / 0.75 / 4.0),
            (BrierConvention::SurvivalEvalUnweighted, (event + survivor + 0.09) / 4.0),
            (BrierConvention::Pycox, (event / 0.75 + survivor / 0.5) / (1.0 / 0.75 + 2.0)),
            (BrierConvention::RiskRegression, (event / 0.75 + survivor / 0.375) / 4.0),
            (BrierConvention::Mlr3proba, (event + survivor) / 0.5 / 4.0),
        ];
        for (convention, value) in expected {
            assert_abs_diff_eq!(at(convention, 2.0).unwrap(), value, epsilon = 1e-15);
        }
    }

    #[test]
    fn a_curve_with_the_ties_of_another_convention_is_refused() {
        let (outcomes, curves) = tied();
        let flipped = BrierConvention::Pycox.censoring_curve(&outcomes).unwrap();
        let convention = BrierConvention::RiskRegression;
        let found = brier_score_by(convention, &outcomes, &curves, &flipped, Reading::Step, &[2.0]);
        assert!(matches!(found, Err(MetricError::InvalidSetting { .. })), "{found:?}");
    }

    #[test]
    fn pycox_reads_g_of_a_sample_beyond_the_training_sample_one_step_too_early() {
        // Flipped G of the training sample: 2/3 from 1, 1/3 from 2. The event at 5 should read 1/3 and reads 2/3.
        let train = Outcomes::new(vec![1.0, 2.0, 2.0], vec![false, true, false]).unwrap();
        let evaluated = Outcomes::new(vec![5.0, 6.0], vec![true, true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.8]]).unwrap();
        let censoring = BrierConvention::Pycox.censoring_curve(&train).unwrap();
        let found = brier_score_by(BrierConvention::Pycox, &evaluated, &curves, &censoring, Reading::Step, &[5.5]);
        let expected = (0.25 * 1.5 + 0.04 * 3.0) / (1.5 + 3.0);
        assert_abs_diff_eq!(found.unwrap().values[0], expected, epsilon = 1e-15);
    }

    #[test]
    fn survivaleval_extends_g_on_the_line_from_the_start_and_refuses_where_it_reaches_zero() {
        // Events-first G: 1/2 from 1 to the last time 2, so the line falls by 1/4 per unit of time: 1/4 at 3, 0 at 4.
        let convention = BrierConvention::SurvivalEval;
        let train = Outcomes::new(vec![1.0, 2.0], vec![false, true]).unwrap();
        let censoring = convention.censoring_curve(&train).unwrap();
        let evaluated = Outcomes::new(vec![9.0], vec![false]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5]]).unwrap();
        let at = |t| brier_score_by(convention, &evaluated, &curves, &censoring, Reading::Step, &[t]);
        assert_abs_diff_eq!(at(3.0).unwrap().values[0], 0.25 / 0.25, epsilon = 1e-15);
        assert_eq!(at(4.0), Err(MetricError::ZeroCensoringSurvival { time: 4.0 }));
    }

    #[test]
    fn a_zero_of_g_is_an_error_a_weight_of_zero_or_a_floor_by_convention() {
        let train = Outcomes::new(vec![0.5, 1.0], vec![true, false]).unwrap();
        let (outcomes, curves) = tied();
        let score = |convention: BrierConvention| {
            let censoring = convention.censoring_curve(&train).unwrap();
            brier_score_by(convention, &outcomes, &curves, &censoring, Reading::Step, &[2.0])
        };
        let zero = |time| Err(MetricError::ZeroCensoringSurvival { time });
        assert_eq!(score(BrierConvention::RiskRegression), zero(2.0));
        assert_eq!(score(BrierConvention::SurvivalEval), zero(2.0));
        assert_eq!(score(BrierConvention::Pycox), zero(2.0));
        let sksurv = score(BrierConvention::ScikitSurvival).unwrap();
        assert_eq!((sksurv.values[0], sksurv.n_without_weight[0]), (0.0, 2));
        let mlr3 = score(BrierConvention::Mlr3proba).unwrap();
        // The survivor is left out; the event counts 1/0.001 = 1000 times.
        assert_abs_diff_eq!(mlr3.values[0], 250.0 / 3.0, epsilon = 1e-12);
        assert_eq!(mlr3.n_without_weight, [1]);
    }

    #[test]
    fn a_time_at_which_nobody_has_a_weight_is_named() {
        let outcomes = Outcomes::new(vec![1.0, 2.0], vec![false, false]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5]]).unwrap();
        let censoring = BrierConvention::Pycox.censoring_curve(&outcomes).unwrap();
        let found = brier_score_by(BrierConvention::Pycox, &outcomes, &curves, &censoring, Reading::Step, &[2.0]);
        assert_eq!(found, Err(MetricError::NoWeight { time: 2.0 }));
    }

    #[test]
    fn the_evaluator_of_survivaleval_switches_the_weights_off_without_censoring() {
        let all_events = Outcomes::new(vec![1.0, 2.0], vec![true, true]).unwrap();
        assert_eq!(BrierConvention::survival_evaluator(&all_events), BrierConvention::SurvivalEvalUnweighted);
        assert_eq!(BrierConvention::survival_evaluator(&tied().0), BrierConvention::SurvivalEval);
    }

    #[test]
    fn without_censoring_and_ties_all_conventions_agree() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true; 4]).unwrap();
        let survival = Array2::from_shape_fn((4, 3), |(row, k)| 1.0 / (1.0 + (row + 1) as f64 * (k + 1) as f64));
        let curves = SurvivalCurves::new(vec![0.5, 1.5, 3.5], survival).unwrap();
        let score = |convention: BrierConvention| {
            let censoring = convention.censoring_curve(&outcomes).unwrap();
            brier_score_by(convention, &outcomes, &curves, &censoring, Reading::Step, &[1.5, 2.5]).unwrap().values
        };
        let reference = score(BrierConvention::ScikitSurvival);
        for convention in [
            BrierConvention::SurvivalEval,
            BrierConvention::SurvivalEvalUnweighted,
            BrierConvention::Pycox,
            BrierConvention::RiskRegression,
            BrierConvention::Mlr3proba,
        ] {
            for (found, expected) in score(convention).into_iter().zip(&reference) {
                assert_abs_diff_eq!(found, *expected, epsilon = 1e-15);
            }
        }
    }

    #[test]
    fn every_package_integrates_by_its_own_rule() {
        // pycox: scipy's simpson; riskRegression: left steps from 0; scikit-survival, SurvivalEVAL, mlr3proba: trapezoids.
        assert_eq!(BrierConvention::Pycox.integration_rule(), IntegrationRule::Simpson);
        assert_eq!(BrierConvention::RiskRegression.integration_rule(), IntegrationRule::LeftStepsFromZero);
        for convention in [
            BrierConvention::ScikitSurvival,
            BrierConvention::SurvivalEval,
            BrierConvention::SurvivalEvalUnweighted,
            BrierConvention::Mlr3proba,
        ] {
            assert_eq!(convention.integration_rule(), IntegrationRule::Trapezoid, "{convention:?}");
        }
    }
}
