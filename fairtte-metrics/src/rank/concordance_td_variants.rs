//! Time-dependent concordance C^td by the other conventions in use: `pycox` adjusted, `SurvivalEVAL` with its rules for
//! tied pairs, and weighted by the inverse probability of censoring (IPCW).
//!
//! A pair (i, j) is compared by `S_i(T_i)` and `S_j(T_i)`, where i is the earlier event; see
//! [`concordance_td`](crate::rank::concordance_td) for the definition and for the value to report.
//!
//! ```text
//! Antolini      comparable as in the definition; equal predictions count 0 or 1/2
//! Adjusted      also two events at the same time: 1 if their predictions are equal, else 1/2. Sums run over ordered pairs,
//!               so that every pair at one time (two events, or an event and a censoring) counts twice
//! SurvivalEval  predictions within 1e-8 are tied; tied pairs by TiedPairs
//! IPCW          as SurvivalEval, each pair weighted by 1 / G(T_i-)^2 and, with tau, only those with T_i < tau
//! ```
//!
//! Sources: Antolini et al. (2005), <https://doi.org/10.1002/sim.2427>; for the adjustment Ishwaran et al. (2008),
//! <https://doi.org/10.1214/08-AOAS169>, section 5.1; for the weights Uno et al. (2011),
//! <https://doi.org/10.1002/sim.4154>. Golden values: `pycox` 0.3.0 `concordance_td` (`antolini` and `adj_antolini`,
//! steps "post" and "pre"), `SurvivalEVAL` 0.9.0 `concordance_time_dependent` and `SurvivalEvaluator`.

use serde::{Deserialize, Serialize};

use crate::curves::SurvivalCurves;
use crate::rank::comparable_pairs::{Anchor, for_each_event};
use crate::rank::concordance_td::TiedPredictions;
use crate::rank::convention_td::ConventionTd;
use crate::rank::curves_read::CurvesRead;
use crate::rank::tied_pairs::{PairSums, TieTest, TiedPairs, no_pair};
use crate::rank::uno::check_tau;
use crate::{CensoringCurve, MetricError, Outcomes, Reading};

/// C^td by one of the conventions, with the pairs behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConcordanceTdSums {
    /// C^td in [0, 1]; higher is better.
    pub value: f64,
    /// Numerator: the total score, as a number of pairs or a sum of weights.
    pub numerator: f64,
    /// Denominator: the pairs that count, as a number of pairs or a sum of weights.
    pub denominator: f64,
    /// Comparable pairs (of a weighted value: those before tau): the sum of the next three.
    pub n_comparable: u64,
    /// Comparable pairs in which the earlier event has the lower survival.
    pub n_concordant: u64,
    /// Comparable pairs in which the earlier event has the higher survival.
    pub n_discordant: u64,
    /// Comparable pairs with tied predictions.
    pub n_tied_predictions: u64,
    /// Pairs of events at the same time, none of them comparable in the definition.
    pub n_tied_events: u64,
}

/// C^td of `curves` by another convention.
///
/// Cost: O(n log n + n L log k) for L distinct places of event times on the grid with k events each; with a linear
/// reading, O(number of distinct event times * n).
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::rank::{ConventionTd, TiedPairs, concordance_td_with};
/// use ndarray::array;
///
/// // Two events at 1 and a sample that survives: 1 of 2 comparable pairs is concordant, the events are one more pair.
/// let outcomes = Outcomes::new(vec![1.0, 1.0, 2.0], vec![true, true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.7], [0.6]])?;
/// let reading = Reading::Step;
/// let all = concordance_td_with(&outcomes, &curves, reading, ConventionTd::SurvivalEval(TiedPairs::All))?;
/// assert_eq!((all.numerator, all.denominator), (1.5, 3.0));
/// // Adjusted: the two events are compared in both orders, 1/2 each.
/// let adjusted = concordance_td_with(&outcomes, &curves, reading, ConventionTd::Adjusted)?;
/// assert_eq!((adjusted.numerator, adjusted.denominator), (2.0, 4.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::InvalidSetting`] for a
/// refinement factor of 0, [`MetricError::NoEvents`] without events, [`MetricError::NoComparablePairs`] or
/// [`MetricError::OnlyTiedPairs`] if the convention leaves no pair.
pub fn concordance_td_with(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: Reading,
    convention: ConventionTd,
) -> Result<ConcordanceTdSums, MetricError> {
    let predictions = CurvesRead::new(outcomes, curves, reading)?;
    let (test, ties) = match convention {
        ConventionTd::Antolini(_) | ConventionTd::Adjusted => (TieTest::Exact, TiedPairs::Predictions),
        ConventionTd::SurvivalEval(ties) => (TieTest::Near, ties),
    };
    let mut counts = Counts::default();
    let mut adjusted = (0.0, 0.0);
    for_each_event(outcomes, &predictions, test.tolerance(), |anchor| {
        counts.add(anchor);
        let (score, n) = adjustment(anchor);
        adjusted.0 += score;
        adjusted.1 += n;
    });
    counts.n_tied_events /= 2;
    let sums = PairSums {
        concordant: counts.concordant as f64,
        discordant: counts.discordant as f64,
        tied: counts.tied as f64,
        tied_events: counts.n_tied_events as f64,
    };
    let undefined = no_pair(outcomes.n(), outcomes.n_events(), counts.tied);
    let share = match convention {
        ConventionTd::Adjusted => {
            let score = sums.concordant + 0.5 * sums.tied + adjusted.0;
            let total = sums.concordant + sums.discordant + sums.tied + adjusted.1;
            if total > 0.0 { Ok((score, total)) } else { Err(undefined) }
        }
        ConventionTd::Antolini(TiedPredictions::Strict) => {
            sums.share(ties, undefined).map(|(_, total)| (sums.concordant, total))
        }
        ConventionTd::Antolini(TiedPredictions::Half) | ConventionTd::SurvivalEval(_) => sums.share(ties, undefined),
    };
    Ok(counts.finish(share?))
}

/// C^td of `curves` with every pair weighted by 1 / G(T-)^2 at its event time, G from `censoring` (events first, fitted on
/// training data).
///
/// `tau` truncates: only events with T < tau (strictly) are compared. Predictions within
/// [`TIE_TOLERANCE`](crate::rank::TIE_TOLERANCE) are tied; tied pairs by `ties`. Only events that are compared with
/// another sample need a weight. Beyond the training sample `SurvivalEVAL` reads G by
/// [`BeyondLastTime::LinearToZero`](crate::estimators::BeyondLastTime::LinearToZero). Cost as [`concordance_td_with`].
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::rank::{TiedPairs, concordance_td_ipcw};
/// use ndarray::array;
///
/// // G = 1 before 2 and 2/3 from 2 on: the pair of the event at 3 weighs 9/4, those of the event at 1 weigh 1.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, false, true, false])?;
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.9], [0.5], [0.3]])?;
/// let reading = Reading::Step;
/// let c = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, None, TiedPairs::Predictions)?;
/// assert!((c.value - 3.0 / (3.0 + 9.0 / 4.0)).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// As [`concordance_td_with`]; [`MetricError::InvalidSetting`] if tau is not a number,
/// [`MetricError::BeyondCensoringCurve`] or [`MetricError::ZeroCensoringSurvival`] if a compared event has no weight.
pub fn concordance_td_ipcw(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: Reading,
    censoring: &CensoringCurve,
    tau: Option<f64>,
    ties: TiedPairs,
) -> Result<ConcordanceTdSums, MetricError> {
    let predictions = CurvesRead::new(outcomes, curves, reading)?;
    let before_tau = check_tau(tau)?;
    let with_tied_events = matches!(ties, TiedPairs::Times | TiedPairs::All);
    let (mut sums, mut counts, mut error) = (PairSums::default(), Counts::default(), None);
    for_each_event(outcomes, &predictions, TieTest::Near.tolerance(), |anchor| {
        let (time, partners) = (outcomes.time()[anchor.row], anchor.all);
        if time >= before_tau {
            return;
        }
        counts.add(anchor);
        if partners.n == 0 && !(with_tied_events && anchor.tied_events > 0) {
            return;
        }
        match censoring.weight_before(time) {
            Ok(weight) => {
                let weight = weight * weight;
                sums.concordant += weight * partners.concordant as f64;
                sums.discordant += weight * partners.discordant() as f64;
                sums.tied += weight * partners.tied as f64;
                sums.tied_events += 0.5 * weight * anchor.tied_events as f64;
            }
            // Events come from the latest to the earliest, so this ends as the error of the earliest.
            Err(reason) => error = Some(reason),
        }
    });
    counts.n_tied_events /= 2;
    if let Some(error) = error {
        return Err(error);
    }
    let undefined = no_pair(outcomes.n(), outcomes.n_events(), counts.tied);
    Ok(counts.finish(sums.share(ties, undefined)?))
}

/// What the pairs at one time add beyond the definition when sums run over ordered pairs: the pairs with the samples
/// censored then for a second time, and those with the other events, which are visited again from the other event.
fn adjustment(anchor: &Anchor) -> (f64, f64) {
    let (censored, equal) = (anchor.same_time, anchor.tied_events_and_predictions as f64);
    let unequal = anchor.tied_events as f64 - equal;
    let score = censored.concordant as f64 + 0.5 * censored.tied as f64 + equal + 0.5 * unequal;
    (score, censored.n as f64 + equal + unequal)
}

#[derive(Default)]
struct Counts {
    concordant: u64,
    discordant: u64,
    tied: u64,
    n_tied_events: u64,
}

impl Counts {
    fn add(&mut self, anchor: &Anchor) {
        self.concordant += anchor.all.concordant;
        self.discordant += anchor.all.discordant();
        self.tied += anchor.all.tied;
        self.n_tied_events += anchor.tied_events;
    }

    fn finish(&self, (numerator, denominator): (f64, f64)) -> ConcordanceTdSums {
        ConcordanceTdSums {
            value: numerator / denominator,
            numerator,
            denominator,
            n_comparable: self.concordant + self.discordant + self.tied,
            n_concordant: self.concordant,
            n_discordant: self.discordant,
            n_tied_predictions: self.tied,
            n_tied_events: self.n_tied_events,
        }
    }
}

#[cfg(test)]
mod tests;
