//! Uno's concordance C: Harrell's, with pairs weighted so that the value does not depend on the censoring distribution.
//!
//! ```text
//!       sum over comparable (i, j), T_i < tau, of w_i (1{risk_i > risk_j} + 1/2 1{tied})
//! C  =  --------------------------------------------------------------------------------
//!                   sum over comparable (i, j), T_i < tau, of w_i
//!
//! convention       w_i          who needs a weight                          tied predictions
//! ScikitSurvival   1 / G(T)^2   every event before tau                      closer than 1e-8
//! SurvivalEval     1 / G(T-)^2  events before tau with a comparable sample  closer than 1e-8
//! R                1 / G(T-)^2  events before tau with a comparable sample  equal
//! ```
//!
//! G is the censoring curve, events first, usually of the training sample. G(T) and G(T-) differ only where an event and a
//! censoring share a time; the paper uses G(T) for continuous times, for ties the left limit is right.
//! Source: Uno et al. (2011), <https://doi.org/10.1002/sim.4154>.
//! Golden values: `scikit-survival` 0.28.0 `concordance_index_ipcw`, `SurvivalEVAL` 0.9.0 `concordance(method="Uno")`, R
//! `survival::concordance(timewt = "n/G2")`.

use serde::{Deserialize, Serialize};

use crate::rank::comparable_pairs::for_each_event;
use crate::rank::concordance::ByRisk;
use crate::rank::tied_pairs::{PairSums, TieTest, TiedPairs, no_pair};
use crate::{CensoringCurve, MetricError, Outcomes, Risk};

/// The implementation whose weights are used; the table is at the top of this module's file and in the guide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnoConvention {
    /// 1 / G(T)^2; an event before tau without a weight is an error even if no sample is compared with it.
    #[default]
    ScikitSurvival,
    /// 1 / G(T-)^2, needed only for events that are compared with another sample. For a time beyond the training sample
    /// `SurvivalEVAL` reads G by [`BeyondLastTime::LinearToZero`](crate::estimators::BeyondLastTime::LinearToZero);
    /// that policy belongs to the curve.
    #[serde(rename = "survivaleval")]
    SurvivalEval,
    /// As `SurvivalEval`, with only equal predictions tied.
    R,
}

impl UnoConvention {
    fn weight(self, censoring: &CensoringCurve, time: f64) -> Result<f64, MetricError> {
        let weight = match self {
            Self::ScikitSurvival => censoring.weight_at(time)?,
            Self::SurvivalEval | Self::R => censoring.weight_before(time)?,
        };
        Ok(weight * weight)
    }

    fn tie_test(self) -> TieTest {
        match self {
            Self::ScikitSurvival | Self::SurvivalEval => TieTest::Near,
            Self::R => TieTest::Exact,
        }
    }
}

/// Uno's C with the pairs behind it, all with the earlier event before tau.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnoC {
    /// C in [0, 1]; higher is better, 1/2 = no order.
    pub value: f64,
    /// Comparable pairs: the sum of the next three.
    pub n_comparable: u64,
    /// Comparable pairs in which the earlier event has the higher risk.
    pub n_concordant: u64,
    /// Comparable pairs in which the earlier event has the lower risk.
    pub n_discordant: u64,
    /// Comparable pairs with tied risks.
    pub n_tied_predictions: u64,
    /// Sum of the weights of the concordant pairs.
    pub weighted_concordant: f64,
    /// Sum of the weights of the discordant pairs.
    pub weighted_discordant: f64,
    /// Sum of the weights of the pairs with tied risks; one half of it is in the numerator.
    pub weighted_tied: f64,
}

impl UnoC {
    /// Sum of the weights of all comparable pairs, the denominator of the value.
    pub fn weighted_comparable(&self) -> f64 {
        self.weighted_concordant + self.weighted_discordant + self.weighted_tied
    }
}

/// Uno's C of `risk` with weights from `censoring` (fitted on training data).
///
/// `tau` truncates: only events with T < tau (strictly) are compared; `None` compares all. Tied times: an event and a
/// censoring at the same time are comparable, two events are not. Tied predictions count 1/2. Cost: O(n log n).
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Risk};
/// use fairtte_metrics::rank::{UnoConvention, uno_concordance};
///
/// // G = 1 before 2 and 2/3 from 2 on, so the pair of the event at 3 weighs 9/4, those of the event at 1 weigh 1.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, false, true, false])?;
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let risk = Risk::new(vec![0.9, 0.1, 0.5, 0.7])?;
/// let c = uno_concordance(&outcomes, &risk, &censoring, None, UnoConvention::default())?;
/// assert!((c.value - 3.0 / (3.0 + 9.0 / 4.0)).abs() < 1e-15);
/// let early = uno_concordance(&outcomes, &risk, &censoring, Some(3.0), UnoConvention::default())?;
/// assert_eq!((early.value, early.n_comparable), (1.0, 3));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and risk differ in length, [`MetricError::InvalidSetting`] if tau is not a
/// number, [`MetricError::NoEvents`] or [`MetricError::NoComparablePairs`] if nothing is left to compare before tau,
/// [`MetricError::BeyondCensoringCurve`] or [`MetricError::ZeroCensoringSurvival`] if an event that needs a weight has
/// none.
pub fn uno_concordance(
    outcomes: &Outcomes,
    risk: &Risk,
    censoring: &CensoringCurve,
    tau: Option<f64>,
    convention: UnoConvention,
) -> Result<UnoC, MetricError> {
    risk.check_rows(outcomes.n())?;
    let before_tau = check_tau(tau)?;
    let (mut sums, mut first_error) = (PairSums::default(), None);
    let (mut n_concordant, mut n_discordant, mut n_tied_predictions) = (0, 0, 0);
    for_each_event(outcomes, &ByRisk(risk), convention.tie_test().tolerance(), |anchor| {
        let (time, partners) = (outcomes.time()[anchor.row], anchor.all);
        if time >= before_tau {
            return;
        }
        if partners.n == 0 && convention != UnoConvention::ScikitSurvival {
            return;
        }
        match convention.weight(censoring, time) {
            Ok(weight) => {
                sums.concordant += weight * partners.concordant as f64;
                sums.discordant += weight * partners.discordant() as f64;
                sums.tied += weight * partners.tied as f64;
            }
            // Events come from the latest to the earliest, so this ends as the error of the earliest.
            Err(error) => first_error = Some(error),
        }
        n_concordant += partners.concordant;
        n_discordant += partners.discordant();
        n_tied_predictions += partners.tied;
    });
    if let Some(error) = first_error {
        return Err(error);
    }
    let undefined = no_pair(outcomes.n(), outcomes.n_events(), 0);
    let (score, total) = sums.share(TiedPairs::Predictions, undefined)?;
    Ok(UnoC {
        value: score / total,
        n_comparable: n_concordant + n_discordant + n_tied_predictions,
        n_concordant,
        n_discordant,
        n_tied_predictions,
        weighted_concordant: sums.concordant,
        weighted_discordant: sums.discordant,
        weighted_tied: sums.tied,
    })
}

/// The time before which events count.
pub(crate) fn check_tau(tau: Option<f64>) -> Result<f64, MetricError> {
    match tau {
        Some(tau) if tau.is_nan() => Err(MetricError::InvalidSetting {
            setting: "truncation time tau",
            value: tau.to_string(),
            expected: "a number",
        }),
        _ => Ok(tau.unwrap_or(f64::INFINITY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CensoringTies;
    use crate::estimators::BeyondLastTime;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn the_conventions_differ_where_an_event_and_a_censoring_share_a_time() {
        // Events first: of the two left at 1 after the event, one is censored: G(1) = 1/2, G(1-) = 1, G(2-) = 1/2.
        let rows = outcomes(&[(1.0, true), (1.0, false), (2.0, true)]);
        let censoring = CensoringCurve::fit(&rows, CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![0.5, 0.4, 0.5 + 1e-9]).unwrap();
        let uno = |convention| uno_concordance(&rows, &risk, &censoring, None, convention).unwrap();
        let [sksurv, eval, r] = [UnoConvention::ScikitSurvival, UnoConvention::SurvivalEval, UnoConvention::R].map(uno);
        assert_eq!((sksurv.weighted_concordant, sksurv.weighted_tied, sksurv.value), (4.0, 4.0, 0.75));
        assert_eq!((eval.weighted_concordant, eval.weighted_tied, eval.value), (1.0, 1.0, 0.75));
        assert_eq!((r.weighted_concordant, r.weighted_discordant, r.value), (1.0, 1.0, 0.5));
        assert_eq!((r.n_comparable, r.weighted_comparable()), (2, 2.0));
    }

    #[test]
    fn an_event_without_weight_is_an_error_for_one_convention_even_if_nobody_outlives_it() {
        // The last event has no partner, and G has fallen to 0 at its time in the training sample.
        let rows = outcomes(&[(1.0, true), (2.0, false), (3.0, true)]);
        let train = outcomes(&[(0.5, true), (2.5, false)]);
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![3.0, 2.0, 1.0]).unwrap();
        let uno = |tau, convention| uno_concordance(&rows, &risk, &censoring, tau, convention).map(|c| c.value);
        let zero = Err(MetricError::ZeroCensoringSurvival { time: 3.0 });
        assert_eq!(uno(None, UnoConvention::ScikitSurvival), zero);
        assert_eq!(uno(Some(3.0), UnoConvention::ScikitSurvival), Ok(1.0));
        assert_eq!(uno(None, UnoConvention::SurvivalEval), Ok(1.0));
    }

    #[test]
    fn weights_beyond_the_training_sample_follow_the_policy_of_the_curve() {
        let rows = outcomes(&[(3.0, true), (4.0, false)]);
        let train = outcomes(&[(1.0, false), (2.0, true)]);
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![3.0, 2.0]).unwrap();
        let refused = uno_concordance(&rows, &risk, &censoring, None, UnoConvention::default());
        assert_eq!(refused, Err(MetricError::BeyondCensoringCurve { time: 3.0, last: 2.0 }));
        let line = censoring.with_beyond(BeyondLastTime::LinearToZero);
        let c = uno_concordance(&rows, &risk, &line, None, UnoConvention::SurvivalEval).unwrap();
        assert_eq!(c.weighted_comparable(), 16.0);
    }

    #[test]
    fn nothing_before_tau_is_an_error_and_tau_must_be_a_number() {
        let rows = outcomes(&[(1.0, true), (2.0, false)]);
        let censoring = CensoringCurve::fit(&rows, CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![3.0, 2.0]).unwrap();
        let uno = |tau| uno_concordance(&rows, &risk, &censoring, Some(tau), UnoConvention::default());
        assert_eq!(uno(1.0), Err(MetricError::NoComparablePairs { n: 2, n_events: 1 }));
        assert!(matches!(uno(f64::NAN), Err(MetricError::InvalidSetting { .. })));
        assert_eq!(uno(f64::INFINITY).unwrap().value, 1.0);
    }

    #[test]
    fn pairs_of_all_events_are_counted() {
        // The event at 1 has a higher, a lower and two equal risks after it, the one at 2 one of each.
        let rows = outcomes(&[(1.0, true), (2.0, true), (3.0, false), (4.0, false), (5.0, false)]);
        let censoring = CensoringCurve::fit(&rows, CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![2.0, 2.0, 2.0, 3.0, 1.0]).unwrap();
        let found = uno_concordance(&rows, &risk, &censoring, None, UnoConvention::default()).unwrap();
        assert_eq!((found.n_concordant, found.n_discordant, found.n_tied_predictions), (2, 2, 3));
        assert_eq!((found.n_comparable, found.value), (7, 0.5));
    }
}
