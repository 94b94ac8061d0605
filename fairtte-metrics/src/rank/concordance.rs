//! Harrell's concordance C: how often the sample with the earlier event has the higher risk.
//!
//! ```text
//! C = sum over comparable (i, j) of (1{risk_i > risk_j} + 1/2 1{tied})  /  number of comparable (i, j)
//! ```
//!
//! (i, j) is comparable if i has an event and either `T_i < T_j`, or `T_i = T_j` and j is censored. Two events at the
//! same time are not comparable; they are counted separately.
//! Sources: Harrell et al. (1996), <https://doi.org/10.1002/(SICI)1097-0258(19960229)15:4%3C361::AID-SIM168%3E3.0.CO;2-4>;
//! the variance is the infinitesimal jackknife of R `survival::concordance` (Therneau & Atkinson, vignette
//! "Concordance").
//! Golden values: `scikit-survival` 0.28.0 `concordance_index_censored`, `lifelines` 0.30.3, `SurvivalEVAL` 0.9.0,
//! `torchsurv` 0.2.0 (float32) and R `concordance(reverse = TRUE)`, value, counts and variance. Where no pair is
//! comparable they raise various errors or return NaN; ours is a typed error.

use serde::{Deserialize, Serialize};

use crate::rank::comparable_pairs::{Cuts, LatestFirst, Predictions, for_each_event};
use crate::rank::fenwick::Fenwick;
use crate::rank::tied_pairs::{PairSums, TieTest, TiedPairs, no_pair};
use crate::{MetricError, Outcomes, Risk};

/// Harrell's C with the pairs behind it.
///
/// Packages use the same word for different counts, so each field gives its names in other packages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HarrellC {
    /// C in [0, 1]; higher is better, 1/2 = no order.
    pub value: f64,
    /// Comparable pairs: the sum of the next three.
    pub n_comparable: u64,
    /// Comparable pairs in which the earlier event has the higher risk.
    pub n_concordant: u64,
    /// Comparable pairs in which the earlier event has the lower risk.
    pub n_discordant: u64,
    /// Comparable pairs with tied risks: `tied_risk` of `scikit-survival`, `tied.x` of R.
    pub n_tied_predictions: u64,
    /// Comparable pairs of an event and a censoring at the same time: `tied_time` of `scikit-survival`. They are part of
    /// the counts above.
    pub n_censored_at_event: u64,
    /// Pairs of events at the same time, none of them comparable: `tied.y` plus `tied.xy` of R.
    pub n_tied_events: u64,
    /// Those of them with tied risks: `tied.xy` of R.
    pub n_tied_events_and_predictions: u64,
    n: usize,
    n_events: usize,
}

impl HarrellC {
    /// C of the same pairs by another rule for tied pairs.
    ///
    /// # Errors
    /// [`MetricError::NoComparablePairs`] or [`MetricError::OnlyTiedPairs`] if the rule leaves no pair.
    pub fn value_with(&self, ties: TiedPairs) -> Result<f64, MetricError> {
        let (score, total) = self.share(ties)?;
        Ok(score / total)
    }

    /// Numerator and denominator of [`value_with`](Self::value_with), in pairs.
    ///
    /// # Errors
    /// As [`value_with`](Self::value_with).
    pub fn share(&self, ties: TiedPairs) -> Result<(f64, f64), MetricError> {
        let sums = PairSums {
            concordant: self.n_concordant as f64,
            discordant: self.n_discordant as f64,
            tied: self.n_tied_predictions as f64,
            tied_events: self.n_tied_events as f64,
        };
        sums.share(ties, no_pair(self.n, self.n_events, self.n_tied_predictions))
    }
}

/// Scores as predictions: the lower the negated risk, the earlier the event.
pub(crate) struct ByRisk<'a>(pub(crate) &'a Risk);

impl Predictions for ByRisk<'_> {
    type Place = ();

    fn place(&self, _time: f64) {}

    fn at(&self, row: usize, (): ()) -> f64 {
        -self.0.values()[row]
    }
}

/// Harrell's C of `risk`.
///
/// Tied times: an event and a censoring at the same time are comparable, two events are not (they count only by
/// [`TiedPairs::Times`] and [`TiedPairs::All`]). Tied predictions: see [`TieTest`] and [`TiedPairs`]. No censoring
/// weights are used, so under censoring the value depends on the censoring distribution: see
/// [`uno_concordance`](crate::rank::uno_concordance). Cost: O(n log n).
///
/// ```
/// use fairtte_metrics::{Outcomes, Risk};
/// use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
///
/// // Comparable pairs: (0, 1), (0, 2), (1, 2). Only in (1, 2) the earlier event has the lower risk.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false])?;
/// let risk = Risk::new(vec![0.9, 0.1, 0.5])?;
/// let c = harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions)?;
/// assert_eq!((c.n_concordant, c.n_discordant, c.value), (2, 1, 2.0 / 3.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and risk differ in length, [`MetricError::NoEvents`] without events,
/// [`MetricError::NoComparablePairs`] or [`MetricError::OnlyTiedPairs`] if the rule for ties leaves no pair.
pub fn harrell_concordance(
    outcomes: &Outcomes,
    risk: &Risk,
    test: TieTest,
    ties: TiedPairs,
) -> Result<HarrellC, MetricError> {
    risk.check_rows(outcomes.n())?;
    let mut c = HarrellC {
        value: 0.0,
        n_comparable: 0,
        n_concordant: 0,
        n_discordant: 0,
        n_tied_predictions: 0,
        n_censored_at_event: 0,
        n_tied_events: 0,
        n_tied_events_and_predictions: 0,
        n: outcomes.n(),
        n_events: outcomes.n_events(),
    };
    for_each_event(outcomes, &ByRisk(risk), test.tolerance(), |anchor| {
        c.n_comparable += anchor.all.n;
        c.n_concordant += anchor.all.concordant;
        c.n_discordant += anchor.all.discordant();
        c.n_tied_predictions += anchor.all.tied;
        c.n_censored_at_event += anchor.same_time.n;
        c.n_tied_events += anchor.tied_events;
        c.n_tied_events_and_predictions += anchor.tied_events_and_predictions;
    });
    // Each pair of tied events was seen from both sides.
    c.n_tied_events /= 2;
    c.n_tied_events_and_predictions /= 2;
    c.value = c.value_with(ties)?;
    Ok(c)
}

/// Variance of Harrell's C (with [`TiedPairs::Predictions`]) by the infinitesimal jackknife.
///
/// With p comparable pairs, it is the sum over samples k of `(sum over the pairs of k of (score - C) / p)^2`, where a pair
/// scores 1, 1/2 or 0 and belongs to both of its samples. Cost: O(n log n).
///
/// ```
/// use fairtte_metrics::{Outcomes, Risk};
/// use fairtte_metrics::rank::{TieTest, harrell_variance};
///
/// // C = 2/3 of the pairs (0, 1), (0, 2), (1, 2) with scores 1, 1, 0. Sums of score - C: 2/3, -1/3, -1/3.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false])?;
/// let variance = harrell_variance(&outcomes, &Risk::new(vec![0.9, 0.1, 0.5])?, TieTest::Exact)?;
/// assert!((variance - (4.0 + 1.0 + 1.0) / 81.0).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// As [`harrell_concordance`].
pub fn harrell_variance(outcomes: &Outcomes, risk: &Risk, test: TieTest) -> Result<f64, MetricError> {
    let c = harrell_concordance(outcomes, risk, test, TiedPairs::Predictions)?;
    // Twice the score of all pairs of a sample, and their number.
    let mut pairs = vec![(0_u64, 0_u64); outcomes.n()];
    for_each_event(outcomes, &ByRisk(risk), test.tolerance(), |anchor| {
        pairs[anchor.row] = (2 * anchor.all.concordant + anchor.all.tied, anchor.all.n);
    });
    add_pairs_as_later_sample(outcomes, risk, test.tolerance(), &mut pairs);
    let n_comparable = c.n_comparable as f64;
    let influence = |&(twice, n): &(u64, u64)| (0.5 * twice as f64 - c.value * n as f64) / n_comparable;
    Ok(pairs.iter().map(|pair| influence(pair).powi(2)).sum())
}

/// Adds to every sample the pairs in which it is the survivor.
///
/// Events add their scores to ranges of buckets; a sample is assigned what its bucket receives between its entry and
/// the end.
fn add_pairs_as_later_sample(outcomes: &Outcomes, risk: &Risk, tolerance: f64, pairs: &mut [(u64, u64)]) {
    let prediction = |row: usize| ByRisk(risk).at(row, ());
    let LatestFirst { order, blocks } = LatestFirst::new(outcomes);
    let mut cuts = Cuts::default();
    let events = blocks.iter().flat_map(|block| &order[block.events..block.end]);
    cuts.set(events.map(|&row| prediction(row)), tolerance);
    let mut received = Fenwick::default();
    received.reset(cuts.n_buckets());
    let mut n_events = 0;
    let mut at_entry = vec![(0, 0); outcomes.n()];
    let mut n_entered = 0;
    for block in &blocks {
        let mut enter = |end: usize, received: &Fenwick, n_events: u64| {
            for &row in &order[n_entered..end] {
                at_entry[row] = (received.sum_to(cuts.bucket(prediction(row)) + 1), n_events);
            }
            n_entered = end;
        };
        enter(block.events, &received, n_events);
        for &row in &order[block.events..block.end] {
            let tied = cuts.tied_buckets(prediction(row));
            // One half from the first tied bucket on, another from the first one above.
            received.add(tied.start, 1);
            received.add(tied.end, 1);
        }
        n_events += (block.end - block.events) as u64;
        enter(block.end, &received, n_events);
    }
    for &row in &order[..n_entered] {
        pairs[row].0 += received.sum_to(cuts.bucket(prediction(row)) + 1) - at_entry[row].0;
        pairs[row].1 += n_events - at_entry[row].1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn the_same_word_of_two_packages_is_two_counts() {
        // At 1: events with risks 3, 3, 2 and a censoring with risk 3. At 2: a censoring with risk 1.
        let rows = outcomes(&[(1.0, true), (1.0, true), (1.0, true), (1.0, false), (2.0, false)]);
        let risk = Risk::new(vec![3.0, 3.0, 2.0, 3.0, 1.0]).unwrap();
        let c = harrell_concordance(&rows, &risk, TieTest::Exact, TiedPairs::Predictions).unwrap();
        assert_eq!((c.n_concordant, c.n_discordant, c.n_tied_predictions), (3, 1, 2));
        assert_eq!(c.n_censored_at_event, 3);
        assert_eq!((c.n_tied_events, c.n_tied_events_and_predictions), (3, 1));
        assert_eq!(c.value, 4.0 / 6.0);
        assert_eq!(c.value_with(TiedPairs::All), Ok(5.5 / 9.0));
    }

    #[test]
    fn a_difference_of_a_billionth_is_a_tie_only_within_the_tolerance() {
        let rows = outcomes(&[(1.0, true), (2.0, false)]);
        let risk = Risk::new(vec![0.5, 0.5 + 1e-9]).unwrap();
        let value = |test| harrell_concordance(&rows, &risk, test, TiedPairs::Predictions).unwrap().value;
        assert_eq!((value(TieTest::Near), value(TieTest::Exact)), (0.5, 0.0));
        let dropped = harrell_concordance(&rows, &risk, TieTest::Near, TiedPairs::Dropped);
        assert_eq!(dropped, Err(MetricError::OnlyTiedPairs { n_tied: 1 }));
    }

    #[test]
    fn tied_events_alone_have_a_value_only_where_they_count() {
        let rows = outcomes(&[(1.0, true), (1.0, true)]);
        let risk = Risk::new(vec![1.0, 2.0]).unwrap();
        let value = |ties| harrell_concordance(&rows, &risk, TieTest::Near, ties).map(|c| c.value);
        assert_eq!(value(TiedPairs::Times), Ok(0.5));
        assert_eq!(value(TiedPairs::Predictions), Err(MetricError::NoComparablePairs { n: 2, n_events: 2 }));
    }

    #[test]
    fn no_event_no_sample_and_wrong_lengths_are_errors() {
        let risk = Risk::new(vec![1.0]).unwrap();
        let value = |rows: &[(f64, bool)]| harrell_concordance(&outcomes(rows), &risk, TieTest::Near, TiedPairs::All);
        assert_eq!(value(&[(1.0, false)]), Err(MetricError::NoEvents { n: 1 }));
        assert_eq!(value(&[(1.0, true)]), Err(MetricError::NoComparablePairs { n: 1, n_events: 1 }));
        assert!(matches!(value(&[]), Err(MetricError::LengthMismatch { found: 1, expected: 0, .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_variance_equals_the_sum_over_all_pairs(
            rows in prop::collection::vec((1..9_u8, any::<bool>(), 0..6_u8), 2..50),
            step in prop::sample::select(vec![0.5, 0.6e-8]),
            test in prop::sample::select(vec![TieTest::Near, TieTest::Exact]),
        ) {
            let sample = outcomes(&rows.iter().map(|row| (f64::from(row.0), row.1)).collect::<Vec<_>>());
            let risk = Risk::new(rows.iter().map(|row| f64::from(row.2) * step).collect()).unwrap();
            let (mut pairs, mut score_sum) = (Vec::new(), 0.0);
            for i in (0..rows.len()).filter(|&i| rows[i].1) {
                for j in 0..rows.len() {
                    if rows[j].0 > rows[i].0 || (rows[j].0 == rows[i].0 && !rows[j].1) {
                        let difference = risk.values()[i] - risk.values()[j];
                        let tied = difference.abs() <= test.tolerance();
                        let score = if tied { 0.5 } else { f64::from(u8::from(difference > 0.0)) };
                        pairs.push((i, j, score));
                        score_sum += score;
                    }
                }
            }
            let found = harrell_variance(&sample, &risk, test);
            prop_assert_eq!(found.is_ok(), !pairs.is_empty());
            if let Ok(found) = found {
                let (n, c) = (pairs.len() as f64, score_sum / pairs.len() as f64);
                let mut influence = vec![0.0; rows.len()];
                for (i, j, score) in pairs {
                    influence[i] += (score - c) / n;
                    influence[j] += (score - c) / n;
                }
                let expected: f64 = influence.iter().map(|value| value * value).sum();
                prop_assert!((found - expected).abs() <= 1e-12 * expected + 1e-18, "{} {}", found, expected);
            }
        }
    }
}
