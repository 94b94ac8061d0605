//! Brier score of the cumulative incidence of one cause, and its integral over time.
//!
//! ```text
//! BS(t) = 1/n * sum over i of  w_i(t) (1{T_i <= t, cause} - F_i(t))^2
//! w_i(t) = 1 / G(T_i-) if T_i <= t with an event of any cause, 1 / G(t) if T_i > t, 0 if censored by t
//! ```
//!
//! A sample with another cause by t is known not to have this one, and counts as that: with the outcome 0, and not as
//! censored. G is the censoring curve, of which events of all causes are the opposite.
//! Sources: Schoop, Beyersmann, Schumacher & Binder (2011), <https://doi.org/10.1002/bimj.201000073>; Graf et al. (1999).
//! Golden values: `hazardous` 0.2.0 `brier_score_incidence` and `integrated_brier_score_incidence`, `riskRegression` 2022.11.28 `Score`. The
//! weights are those of `riskRegression` ([`BrierConvention::RiskRegression`]), whose single-event score it is if there is one cause.

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::scores::brier_convention::check_ties;
use crate::scores::integration_rule::IntegrationRule;
use crate::scores::ipcw_losses::{IpcwLosses, PointLoss, Weighting};
use crate::scores::{BrierConvention, BrierScore, PreparedBrier};
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

const CONVENTION: BrierConvention = BrierConvention::RiskRegression;

/// The Brier score of the predicted incidence of `cause` at every one of `times`; lower is better.
///
/// `censoring` is fitted on all causes of the training sample ([`CompetingOutcomes::all_causes`]), with events first.
/// Cost: O(n) per time.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Reading};
/// use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves, cause_brier_score};
/// use ndarray::array;
///
/// // By 2: cause 1, cause 2, neither.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 1.5, 3.0], vec![1, 2, 1])?;
/// let curves = IncidenceCurves::new(vec![1.0], array![[0.75], [0.5], [0.25]])?;
/// let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)?;
/// let brier = cause_brier_score(&outcomes, 1, &curves, &censoring, Reading::Step, &[2.0])?;
/// assert_eq!(brier.values, [(0.25_f64.powi(2) + 0.5_f64.powi(2) + 0.25_f64.powi(2)) / 3.0]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], and those of [`brier_score_by`](crate::scores::brier_score_by).
pub fn cause_brier_score(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<BrierScore, MetricError> {
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    losses((&of_cause, &competing), curves.without(), censoring, reading, times)?.score_over(times)
}

/// The same averaged over `times` by trapezoids; lower is better.
///
/// # Errors
/// Those of [`cause_brier_score`], and [`MetricError::TooFewTimes`] for a single time.
pub fn integrated_cause_brier_score(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<f64, MetricError> {
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    prepared((&of_cause, &competing), curves.without(), censoring, reading, times)?.weighted(&vec![1; outcomes.n()])
}

/// The integral of every sample's loss over `times`, or the loss at a single time.
pub(crate) fn prepared(
    (outcomes, competing): (&Outcomes, &[bool]),
    without: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<PreparedBrier, MetricError> {
    let losses = losses((outcomes, competing), without, censoring, reading, times)?;
    PreparedBrier::from_losses(&losses, IntegrationRule::Trapezoid, times)
}

/// The loss of every sample at one time.
pub(crate) fn prepared_at(
    (outcomes, competing): (&Outcomes, &[bool]),
    without: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    time: f64,
) -> Result<PreparedBrier, MetricError> {
    let times = [time];
    let losses = losses((outcomes, competing), without, censoring, reading, &times)?;
    PreparedBrier::from_losses(&losses, IntegrationRule::PlainMean, &times)
}

fn losses<'a>(
    (outcomes, competing): (&'a Outcomes, &'a [bool]),
    without: &'a SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<IpcwLosses<'a>, MetricError> {
    check_ties(CONVENTION, censoring)?;
    let weighting = Weighting::PerTime(CONVENTION);
    let losses = IpcwLosses::new(weighting, PointLoss::Squared, outcomes, without, censoring, reading, times)?;
    Ok(losses.with_competing(competing))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::CensoringTies;
    use crate::competing::testing::{Sample, samples};
    use crate::scores::{brier_score_by, integrated_brier_score_by};
    use proptest::prelude::*;

    /// The definition, sample by sample.
    fn direct(sample: &Sample, t: f64) -> f64 {
        let (outcomes, censoring) = (&sample.outcomes, sample.censoring());
        let mut sum = 0.0;
        for row in 0..outcomes.n() {
            let (time, cause) = (outcomes.time()[row], outcomes.cause()[row]);
            let weight = match cause {
                _ if time > t => 1.0 / censoring.at(t).unwrap(),
                0 => 0.0,
                _ => 1.0 / censoring.left_limit(time).unwrap(),
            };
            let happened = if time <= t && cause == 1 { 1.0 } else { 0.0 };
            sum += weight * (happened - sample.curves.at(row, t, Reading::Step)).powi(2);
        }
        sum / outcomes.n() as f64
    }

    proptest! {
        #[test]
        fn the_score_is_the_sum_of_the_definition(sample in samples(2, 30)) {
            let times = [2.0, 3.5, 6.0];
            let censoring = sample.censoring();
            prop_assume!(sample.is_known_at(6.0));
            let found = cause_brier_score(&sample.outcomes, 1, &sample.curves, &censoring, Reading::Step, &times).unwrap();
            for (value, t) in found.values.iter().zip(times) {
                prop_assert!((value - direct(&sample, t)).abs() < 1e-12);
            }
            let integrated =
                integrated_cause_brier_score(&sample.outcomes, 1, &sample.curves, &censoring, Reading::Step, &times);
            let [a, b, c] = times.map(|t| direct(&sample, t));
            prop_assert!((integrated.unwrap() - (0.75 * (a + b) + 1.25 * (b + c)) / 4.0).abs() < 1e-12);
        }

        #[test]
        fn one_cause_alone_is_the_score_of_riskregression(sample in samples(1, 30)) {
            let times = [2.0, 3.5, 6.0];
            let (censoring, events) = (sample.censoring(), sample.outcomes.all_causes());
            let (curves, survival) = (&sample.curves, sample.curves.without());
            let own = cause_brier_score(&sample.outcomes, 1, curves, &censoring, Reading::Step, &times);
            let other = brier_score_by(CONVENTION, events, survival, &censoring, Reading::Step, &times);
            prop_assert_eq!(own, other);
            let own = integrated_cause_brier_score(&sample.outcomes, 1, curves, &censoring, Reading::Step, &times);
            let rule = IntegrationRule::Trapezoid;
            let other = integrated_brier_score_by(CONVENTION, rule, events, survival, &censoring, Reading::Step, &times);
            match (own, other) {
                (Ok(own), Ok(other)) => prop_assert!((own - other).abs() < 1e-12),
                (own, other) => prop_assert_eq!(own, other),
            }
        }
    }

    #[test]
    fn a_censoring_curve_with_other_ties_and_a_cause_that_does_not_exist_are_refused() {
        let outcomes = CompetingOutcomes::new(vec![1.0, 2.0], vec![1, 2]).unwrap();
        let curves = IncidenceCurves::new(vec![1.0], array![[0.5], [0.5]]).unwrap();
        let score = |cause, ties| {
            let censoring = CensoringCurve::fit(outcomes.all_causes(), ties).unwrap();
            cause_brier_score(&outcomes, cause, &curves, &censoring, Reading::Step, &[1.0])
        };
        assert!(matches!(score(1, CensoringTies::Flipped), Err(MetricError::InvalidSetting { .. })));
        let unknown = score(3, CensoringTies::EventsFirst);
        assert_eq!(unknown, Err(MetricError::UnknownCause { cause: 3, n_causes: 2 }));
    }
}
