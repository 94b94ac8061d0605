//! Concordance of the predicted risk of one cause.
//!
//! ```text
//! C(tau) = P(risk_i > risk_j | i has the cause by tau, and j has it later or never)
//!
//! estimated by  sum over pairs of weight (1{risk_i > risk_j} + 1/2 1{equal}) / sum over pairs of weight
//!   j outlives T_i (T_j > T_i, or T_j = T_i censored)        weight 1 / G(T_i-)^2
//!   j had another cause by T_i (T_j <= T_i)                  weight 1 / (G(T_i-) G(T_j-))
//! ```
//!
//! over cases i with `T_i <= tau`. A subject with another cause before `T_i` will never have this one, and is compared as that:
//! Harrell's C of the cause, which counts the other cause as a censoring, leaves these pairs out. G is the censoring curve,
//! of which events of all causes are the opposite.
//! Sources: Wolbers, Blanche, Koller, Witteman & Gerds (2014), <https://doi.org/10.1093/biostatistics/kxt059>, equation 6;
//! they (and `pec` `cindex`) weight the first kind by `1 / (G(T_i-) G(T_i))`, which differs only where an event and a censoring
//! share a time: there a censored sample is comparable and needs `G(T_i-)` twice. With one cause it is Uno's C
//! ([`UnoConvention::R`](crate::rank::UnoConvention::R), but with T <= tau).
//!
//! The time-dependent form reads the predictions of both at the time of the event: `P(F_i(T_i) > F_j(T_i) | T_i < T_j)` over
//! cases i and all samples j that outlive them (Lee, Zame, Yoon & van der Schaar 2018, "`DeepHit`", equation 5,
//! <https://doi.org/10.1609/aaai.v32i1.11842>). Those who are
//! censored or have another cause at `T_i` are compared as well (the paper compares none of them): of neither is it known that the cause
//! came first. It has no weights and no pairs with those who had another cause earlier.
//! Golden values: `hazardous` 0.2.0 `concordance_index_incidence`, `pec` 2022.5.4 `cindex`.

use serde::{Deserialize, Serialize};

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::rank::fenwick::Fenwick;
use crate::rank::uno::check_tau;
use crate::rank::{ConcordanceTd, TiedPredictions, concordance_td};
use crate::weights::check_weights;
use crate::{CensoringCurve, MetricError, Outcomes, Reading, Risk};

/// The concordance of one cause with the pairs behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CauseConcordance {
    /// C in [0, 1]; higher is better, 1/2 = no order.
    pub value: f64,
    /// Pairs of a case and a sample that outlives it.
    pub n_outliving: u64,
    /// Pairs of a case and a sample that had another cause by then.
    pub n_competing: u64,
    /// Sum of the weights of pairs in which the case has the higher risk.
    pub weighted_concordant: f64,
    /// Sum of the weights of pairs with equal risks; one half of it is in the numerator.
    pub weighted_tied: f64,
    /// Sum of the weights of all pairs, the denominator of the value.
    pub weighted_comparable: f64,
}

/// The concordance of `risk` for `cause` with weights from `censoring` (fitted on all causes of the training sample).
///
/// `tau` truncates: only cases with T <= tau are compared; `None` compares all. Two events of the cause at the same time are
/// not comparable. Only equal risks are tied. Cost: O(n log n).
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Risk};
/// use fairtte_metrics::competing::{CompetingOutcomes, cause_concordance};
///
/// // Cause 2 at 1, cause 1 at 2, free until 3. The case is compared with both; the risk of the first is wrong.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0], vec![2, 1, 0])?;
/// let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)?;
/// let c = cause_concordance(&outcomes, 1, &Risk::new(vec![0.9, 0.5, 0.1])?, &censoring, None)?;
/// assert_eq!((c.value, c.n_outliving, c.n_competing), (0.5, 1, 1));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], [`MetricError::LengthMismatch`] if outcomes and risk differ in length,
/// [`MetricError::InvalidSetting`] if tau is not a number, [`MetricError::NoEvents`] or [`MetricError::NoComparablePairs`] if
/// nothing is left to compare, [`MetricError::BeyondCensoringCurve`] or [`MetricError::ZeroCensoringSurvival`] if a pair has
/// no weight.
pub fn cause_concordance(
    outcomes: &CompetingOutcomes,
    cause: u32,
    risk: &Risk,
    censoring: &CensoringCurve,
    tau: Option<f64>,
) -> Result<CauseConcordance, MetricError> {
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    PreparedCauseConcordance::new((&of_cause, &competing), risk, censoring, tau)?.weighted(&vec![1; outcomes.n()])
}

/// The time-dependent concordance of the predicted incidence of `cause`; higher is better. Cost: O(n log n + n L).
///
/// ```
/// use fairtte_metrics::Reading;
/// use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves, cause_concordance_td};
/// use fairtte_metrics::rank::TiedPredictions;
/// use ndarray::array;
///
/// // The case at 1 outlives no other; both others outlive it, one with a lower and one with a higher predicted incidence.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0], vec![1, 2, 0])?;
/// let curves = IncidenceCurves::new(vec![1.0], array![[0.5], [0.75], [0.25]])?;
/// let c = cause_concordance_td(&outcomes, 1, &curves, Reading::Step, TiedPredictions::Strict)?;
/// assert_eq!((c.value, c.n_comparable), (0.5, 2));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], and those of [`concordance_td`].
pub fn cause_concordance_td(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    reading: Reading,
    ties: TiedPredictions,
) -> Result<ConcordanceTd, MetricError> {
    concordance_td(&outcomes.of_cause(cause)?, curves.without(), reading, ties)
}

/// The concordance of one cause, ready for any weights of the samples.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCauseConcordance {
    n: usize,
    n_events: usize,
    n_ranks: usize,
    /// By time, ascending; at one time competing events first, then cases, then the censored.
    rows: Vec<Row>,
    /// Ends of the rows of one time.
    ends: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Row {
    sample: usize,
    kind: Kind,
    /// Place of its risk among the different ones, ascending.
    rank: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// 1 / G(T-), with T <= tau.
    Competing(Result<f64, MetricError>),
    /// 1 / G(T-), with T <= tau.
    Case(Result<f64, MetricError>),
    /// An event beyond tau, which no case comes after: it needs no weight.
    Late,
    Censored,
}

/// Sums of weights of pairs by the order of their risks.
#[derive(Clone, Copy, Default)]
struct Partners {
    lower: f64,
    tied: f64,
    all: f64,
}

impl PreparedCauseConcordance {
    pub(crate) fn new(
        (outcomes, competing): (&Outcomes, &[bool]),
        risk: &Risk,
        censoring: &CensoringCurve,
        tau: Option<f64>,
    ) -> Result<Self, MetricError> {
        risk.check_rows(outcomes.n())?;
        let tau = check_tau(tau)?;
        let mut different = risk.values().to_vec();
        different.sort_by(f64::total_cmp);
        different.dedup();
        let row = |row: usize| {
            let time = outcomes.time()[row];
            let kind = match (outcomes.event()[row], competing[row]) {
                (false, false) => Kind::Censored,
                _ if time > tau => Kind::Late,
                (true, _) => Kind::Case(censoring.weight_before(time)),
                (false, true) => Kind::Competing(censoring.weight_before(time)),
            };
            let rank = different.partition_point(|value| *value < risk.values()[row]);
            Row { sample: row, kind, rank }
        };
        let mut rows: Vec<Row> = (0..outcomes.n()).map(row).collect();
        let place = |row: &Row| (outcomes.time()[row.sample], row.kind.place());
        rows.sort_by(|a, b| place(a).0.total_cmp(&place(b).0).then(place(a).1.cmp(&place(b).1)));
        let tied = rows.chunk_by(|a, b| place(a).0.total_cmp(&place(b).0).is_eq());
        let ends = tied.scan(0, |end, tied| {
            *end += tied.len();
            Some(*end)
        });
        let ends = ends.collect();
        Ok(Self { n: outcomes.n(), n_events: outcomes.n_events(), n_ranks: different.len(), rows, ends })
    }

    /// C of the sample in which row `i` occurs `weights[i]` times; O(n log n).
    ///
    /// # Errors
    /// Those of [`cause_concordance`].
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<CauseConcordance, MetricError> {
        check_weights(weights, self.n)?;
        let mut sums = Partners::default();
        let n_outliving = self.add_outliving(weights, &mut sums)?;
        let n_competing = self.add_competing(weights, &mut sums)?;
        if sums.all <= 0.0 {
            return Err(if self.n_events == 0 {
                MetricError::NoEvents { n: self.n }
            } else {
                MetricError::NoComparablePairs { n: self.n, n_events: self.n_events }
            });
        }
        Ok(CauseConcordance {
            value: ((sums.lower + 0.5 * sums.tied) / sums.all).min(1.0),
            n_outliving,
            n_competing,
            weighted_concordant: sums.lower,
            weighted_tied: sums.tied,
            weighted_comparable: sums.all,
        })
    }

    /// Adds the pairs of cases with those who outlive them, from the latest case; returns their number.
    fn add_outliving(&self, weights: &[u32], sums: &mut Partners) -> Result<u64, MetricError> {
        let mut later = Fenwick::<u64>::default();
        later.reset(self.n_ranks);
        let mut n_pairs = 0;
        for (place, &end) in self.ends.iter().enumerate().rev() {
            let start = if place == 0 { 0 } else { self.ends[place - 1] };
            let tied = &self.rows[start..end];
            let join = |later: &mut Fenwick, row: &Row| later.add(row.rank, u64::from(weights[row.sample]));
            let (censored, others): (Vec<&Row>, Vec<&Row>) = tied.iter().partition(|row| row.kind == Kind::Censored);
            for row in censored {
                join(&mut later, row);
            }
            for row in &others {
                let (Kind::Case(weight), count) = (&row.kind, u64::from(weights[row.sample])) else { continue };
                let (lower, up_to, all) = (later.sum_to(row.rank), later.sum_to(row.rank + 1), later.total());
                if count * all == 0 {
                    continue;
                }
                n_pairs += count * all;
                sums.add(count as f64 * weight.clone()?.powi(2), lower as f64, (up_to - lower) as f64, all as f64);
            }
            for row in others {
                join(&mut later, row);
            }
        }
        Ok(n_pairs)
    }

    /// Adds the pairs of cases with those who had another cause by then, from the earliest case; returns their number.
    fn add_competing(&self, weights: &[u32], sums: &mut Partners) -> Result<u64, MetricError> {
        let mut before = Fenwick::<f64>::default();
        before.reset(self.n_ranks);
        let (mut n_before, mut n_pairs) = (0, 0);
        // Of a competing event without a weight, why: it matters as soon as a case comes after it.
        let mut unweighted = None;
        // Competing events come before cases at one time.
        for row in &self.rows {
            let count = weights[row.sample];
            match &row.kind {
                _ if count == 0 => {}
                Kind::Competing(weight) => {
                    n_before += u64::from(count);
                    match weight {
                        Ok(weight) => before.add(row.rank, f64::from(count) * weight),
                        Err(reason) => unweighted = unweighted.or(Some(reason)),
                    }
                }
                Kind::Case(weight) if n_before > 0 => {
                    if let Some(reason) = unweighted {
                        return Err(reason.clone());
                    }
                    let (lower, up_to, all) = (before.sum_to(row.rank), before.sum_to(row.rank + 1), before.total());
                    n_pairs += u64::from(count) * n_before;
                    sums.add(f64::from(count) * weight.clone()?, lower, (up_to - lower).max(0.0), all);
                }
                _ => {}
            }
        }
        Ok(n_pairs)
    }
}

impl Kind {
    fn place(&self) -> u8 {
        match self {
            Self::Competing(_) => 0,
            Self::Case(_) | Self::Late => 1,
            Self::Censored => 2,
        }
    }
}

impl Partners {
    fn add(&mut self, weight: f64, lower: f64, tied: f64, all: f64) {
        self.lower += weight * lower;
        self.tied += weight * tied;
        self.all += weight * all;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::competing::testing::{Sample, samples};
    use crate::rank::{UnoConvention, uno_concordance};

    /// The definition, pair by pair: C, pairs of the first kind, pairs of the second; `None` without a pair or a weight.
    fn direct(sample: &Sample, risk: &[f64], tau: f64) -> Option<(f64, u64, u64)> {
        let (outcomes, censoring) = (&sample.outcomes, sample.censoring());
        let (time, cause) = (outcomes.time(), outcomes.cause());
        let g = |row: usize| censoring.left_limit(time[row]).unwrap();
        let (mut score, mut total, mut pairs) = (0.0, 0.0, [0; 2]);
        for i in (0..outcomes.n()).filter(|i| cause[*i] == 1 && time[*i] <= tau) {
            for j in 0..outcomes.n() {
                let weight = if time[j] > time[i] || (time[j] == time[i] && cause[j] == 0) {
                    pairs[0] += 1;
                    1.0 / (g(i) * g(i))
                } else if cause[j] == 2 && time[j] <= time[i] {
                    pairs[1] += 1;
                    1.0 / (g(i) * g(j))
                } else {
                    continue;
                };
                total += weight;
                score += weight
                    * if risk[i] > risk[j] {
                        1.0
                    } else if risk[i] < risk[j] {
                        0.0
                    } else {
                        0.5
                    };
            }
        }
        (total > 0.0).then(|| (score / total, pairs[0], pairs[1]))
    }

    proptest! {
        #[test]
        fn the_value_is_the_sum_over_all_pairs(sample in samples(2, 25), tau in 1_u8..9) {
            let (tau, risk) = (f64::from(tau), sample.risk(3.0));
            let censoring = sample.censoring();
            let found = cause_concordance(&sample.outcomes, 1, &Risk::new(risk.clone()).unwrap(), &censoring, Some(tau));
            match (found, direct(&sample, &risk, tau)) {
                (Ok(found), Some((value, outliving, competing))) => {
                    prop_assert!((found.value - value).abs() < 1e-12);
                    prop_assert_eq!((found.n_outliving, found.n_competing), (outliving, competing));
                }
                (found, expected) => prop_assert!(found.is_err() && expected.is_none()),
            }
        }

        #[test]
        fn one_cause_alone_is_unos_concordance(sample in samples(1, 25)) {
            let (risk, censoring) = (Risk::new(sample.risk(3.0)).unwrap(), sample.censoring());
            let own = cause_concordance(&sample.outcomes, 1, &risk, &censoring, None);
            let other = uno_concordance(sample.outcomes.all_causes(), &risk, &censoring, None, UnoConvention::R);
            match (own, other) {
                (Ok(own), Ok(other)) => {
                    prop_assert!((own.value - other.value).abs() < 1e-12);
                    prop_assert_eq!((own.n_outliving, own.n_competing), (other.n_comparable, 0));
                }
                (own, other) => prop_assert_eq!(own.err(), other.err()),
            }
        }

        #[test]
        fn one_cause_alone_is_the_time_dependent_concordance(sample in samples(1, 25)) {
            let (reading, ties) = (Reading::Step, TiedPredictions::Strict);
            let own = cause_concordance_td(&sample.outcomes, 1, &sample.curves, reading, ties);
            prop_assert_eq!(own, concordance_td(sample.outcomes.all_causes(), sample.curves.without(), reading, ties));
        }

        #[test]
        fn a_weight_is_a_repeated_row(sample in samples(2, 20), picked in prop::collection::vec(0_u32..4, 20)) {
            let n = sample.outcomes.n();
            let (weights, censoring, risk) = (&picked[..n], sample.censoring(), sample.risk(3.0));
            let rows: Vec<usize> = (0..n).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
            let prepare = |rows: &[usize]| {
                let outcomes = sample.outcomes.select(rows);
                let (of_cause, competing) = (outcomes.of_cause(1).unwrap(), outcomes.competing(1).unwrap());
                let risk = Risk::new(rows.iter().map(|row| risk[*row]).collect()).unwrap();
                PreparedCauseConcordance::new((&of_cause, &competing), &risk, &censoring, Some(6.0)).unwrap()
            };
            let all: Vec<usize> = (0..n).collect();
            let weighted = prepare(&all).weighted(weights);
            match (weighted, prepare(&rows).weighted(&vec![1; rows.len()])) {
                (Ok(weighted), Ok(repeated)) => {
                    prop_assert!((weighted.value - repeated.value).abs() < 1e-12);
                    prop_assert_eq!(weighted.n_competing, repeated.n_competing);
                    prop_assert_eq!(weighted.n_outliving, repeated.n_outliving);
                }
                (weighted, repeated) => prop_assert_eq!(weighted.is_err(), repeated.is_err()),
            }
        }
    }

    /// All are compared with weight 1, as long as the training sample was followed; nobody needs a weight after the last case.
    #[test]
    fn a_competing_event_after_the_last_case_needs_no_weight() {
        let train = Outcomes::new(vec![1.0, 3.0], vec![true; 2]).unwrap();
        let censoring = CensoringCurve::fit(&train, crate::CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![0.6, 0.9, 0.5, 0.7]).unwrap();
        let c = |cause_of_last: u32, tau| {
            let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 4.0, 5.0], vec![1, 1, 2, cause_of_last]).unwrap();
            cause_concordance(&outcomes, 1, &risk, &censoring, tau)
        };
        // The case at 1 is below two of three who outlive it, that at 2 above both.
        for tau in [None, Some(2.5)] {
            let found = c(0, tau).unwrap();
            assert_eq!((found.value, found.n_outliving, found.n_competing), (0.6, 5, 0));
        }
        assert_eq!(c(1, None), Err(MetricError::BeyondCensoringCurve { time: 4.0, last: 3.0 }));
        assert_eq!(c(1, Some(2.5)).unwrap().value, 0.6);
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        let outcomes = CompetingOutcomes::new(vec![1.0, 2.0], vec![2, 0]).unwrap();
        let censoring = CensoringCurve::fit(outcomes.all_causes(), crate::CensoringTies::EventsFirst).unwrap();
        let risk = Risk::new(vec![0.5, 0.5]).unwrap();
        let c = |cause, tau| cause_concordance(&outcomes, cause, &risk, &censoring, tau);
        assert_eq!(c(1, None), Err(MetricError::NoEvents { n: 2 }));
        assert_eq!(c(2, Some(0.5)), Err(MetricError::NoComparablePairs { n: 2, n_events: 1 }));
        assert_eq!(c(2, None).unwrap().value, 0.5);
        assert!(matches!(c(1, Some(f64::NAN)), Err(MetricError::InvalidSetting { .. })));
        assert!(matches!(c(4, None), Err(MetricError::UnknownCause { .. })));
    }
}
