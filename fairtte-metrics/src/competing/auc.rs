//! Cumulative/dynamic AUC of the predicted incidence of one cause at time t.
//!
//! ```text
//!            sum over cases i, controls j of  g_i h_j (1{F_i(t) > F_j(t)} + 1/2 1{equal})
//! AUC(t) =  ------------------------------------------------------------------------------
//!                      sum over cases i of g_i  *  sum over controls j of h_j
//! ```
//!
//! Cases have the cause by t, with weight g = 1 / G(T-). Who the controls are is a choice ([`Controls`]); those followed
//! beyond t weigh h = 1 / G(t), those who had another cause by t h = 1 / G(T-). G is the censoring curve, of which events of
//! all causes are the opposite. The time average is by trapezoids over the times with a value.
//! Source: Blanche, Dartigues & Jacqmin-Gadda (2013), <https://doi.org/10.1002/sim.5958>, definitions (i) and (ii); Saha &
//! Heagerty (2010), <https://doi.org/10.1111/j.1541-0420.2009.01375.x>. With one cause both are
//! [`AucConvention::RiskRegression`](crate::rank::AucConvention::RiskRegression).
//! Golden values of (ii): `riskRegression` 2022.11.28 `Score`.

use serde::{Deserialize, Serialize};

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::curves::check_grid;
use crate::ids::to_u32;
use crate::rank::AucTd;
use crate::weights::check_weights;
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// Who is compared with those who had the cause by t.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controls {
    /// All who have not had this cause by t: free of every event, or after another one (definition ii; default of
    /// `riskRegression` `Score`, `AUC_2` of `timeROC`).
    #[default]
    WithoutTheCause,
    /// Those free of every event at t (definition i, `AUC_1` of `timeROC`).
    EventFree,
}

/// The AUC of the predicted incidence of `cause` at every one of `times`; higher is better.
///
/// `censoring` is fitted on all causes of the training sample. Only equal predictions are tied. Cost: O(n log n) per time.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Reading};
/// use fairtte_metrics::competing::{CompetingOutcomes, Controls, IncidenceCurves, cause_auc};
/// use ndarray::array;
///
/// // By 2: cause 1, cause 2, neither. The model ranks cause 2 highest.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 1.5, 3.0], vec![1, 2, 0])?;
/// let curves = IncidenceCurves::new(vec![1.0], array![[0.5], [0.75], [0.25]])?;
/// let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)?;
/// let auc = |controls| Ok(cause_auc(&outcomes, 1, &curves, &censoring, Reading::Step, &[2.0], controls)?.values);
/// assert_eq!(auc(Controls::WithoutTheCause)?, [Ok(0.5)]);
/// assert_eq!(auc(Controls::EventFree)?, [Ok(1.0)]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], [`MetricError::LengthMismatch`], [`MetricError::NoSamples`], those of the times and of the
/// reading. A time without case, control or weight has its reason in place of a value.
pub fn cause_auc(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
    controls: Controls,
) -> Result<AucTd, MetricError> {
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    let prepared =
        PreparedCauseAuc::new((&of_cause, &competing), curves.without(), censoring, reading, (times, controls))?;
    Ok(prepared.at_times(&vec![1; outcomes.n()]))
}

/// The AUC at several times, ready for any weights of the samples.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCauseAuc {
    times: Vec<f64>,
    /// 1 / G(T-) of every sample; 0 where it does not exist.
    before: Vec<f64>,
    /// By time, or why a weight does not exist there.
    sorted: Vec<Result<SortedSteps, MetricError>>,
}

/// Cases and controls by falling risk at one time.
#[derive(Clone, Debug)]
struct SortedSteps {
    steps: Vec<Step>,
    /// 1 / G(t), the weight of those followed beyond the time.
    at: f64,
}

/// A sample, whether its prediction equals that of the one before it, and what it is: there is one per sample and time, so it is
/// small.
#[derive(Clone, Copy, Debug)]
struct Step(u32);

impl Step {
    const TIED: u32 = 1 << 31;
    const CASE: u32 = 1 << 30;
    /// Followed beyond the time: a control, whose weight is that of the time.
    const SURVIVOR: u32 = 1 << 29;

    fn new(sample: usize, kind: u32) -> Self {
        let sample = to_u32(sample);
        assert!(sample < Self::SURVIVOR, "fewer than 2^29 samples");
        Self(sample | kind)
    }

    fn sample(self) -> usize {
        (self.0 & (Self::SURVIVOR - 1)) as usize
    }

    fn is(self, kind: u32) -> bool {
        self.0 & kind != 0
    }
}

impl PreparedCauseAuc {
    pub(crate) fn new(
        (outcomes, competing): (&Outcomes, &[bool]),
        without: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        (times, controls): (&[f64], Controls),
    ) -> Result<Self, MetricError> {
        without.check_rows(outcomes.n())?;
        reading.validate()?;
        check_grid(times)?;
        if outcomes.n() == 0 {
            return Err(MetricError::NoSamples);
        }
        let before = outcomes.time().iter().map(|time| censoring.weight_before(*time).unwrap_or(0.0)).collect();
        let at = |time: &f64| {
            SortedSteps::new((outcomes, competing), &without.all_at(*time, reading), censoring, (*time, controls))
        };
        Ok(Self { times: times.to_vec(), before, sorted: times.iter().map(at).collect() })
    }

    /// The AUC at every time of the sample in which row `i` occurs `weights[i]` times; O(n) per time.
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<AucTd, MetricError> {
        check_weights(weights, self.before.len())?;
        Ok(self.at_times(weights))
    }

    fn at_times(&self, weights: &[u32]) -> AucTd {
        let at = |(sorted, time): (&Result<SortedSteps, MetricError>, &f64)| {
            sorted.as_ref().map_err(MetricError::clone)?.auc(weights, &self.before, *time)
        };
        AucTd::new(&self.times, self.sorted.iter().zip(&self.times).map(at).collect())
    }
}

impl SortedSteps {
    fn new(
        (outcomes, competing): (&Outcomes, &[bool]),
        without: &[f64],
        censoring: &CensoringCurve,
        (t, controls): (f64, Controls),
    ) -> Result<Self, MetricError> {
        let (mut steps, mut at) = (Vec::new(), 0.0);
        for (row, other) in competing.iter().enumerate() {
            let time = outcomes.time()[row];
            if time > t {
                at = censoring.weight_at(t)?;
                steps.push(Step::new(row, Step::SURVIVOR));
            } else if outcomes.event()[row] {
                censoring.weight_before(time)?;
                steps.push(Step::new(row, Step::CASE));
            } else if *other && controls == Controls::WithoutTheCause {
                censoring.weight_before(time)?;
                steps.push(Step::new(row, 0));
            }
        }
        // The lowest probability of staying without the cause is the highest risk.
        steps.sort_by(|a, b| without[a.sample()].total_cmp(&without[b.sample()]));
        for k in 1..steps.len() {
            if without[steps[k].sample()].total_cmp(&without[steps[k - 1].sample()]).is_eq() {
                steps[k].0 |= Step::TIED;
            }
        }
        steps.shrink_to_fit();
        Ok(Self { steps, at })
    }

    /// `before` has the weights of cases and of those who had another cause.
    fn auc(&self, weights: &[u32], before: &[f64], t: f64) -> Result<f64, MetricError> {
        let (mut cases, mut controls, mut score) = (0.0, 0.0, 0.0);
        // Cases with a higher risk than the tied ones, and the tied ones.
        let (mut tied_cases, mut tied_controls) = (0.0, 0.0);
        for step in &self.steps {
            if !step.is(Step::TIED) {
                score += tied_controls * (cases + 0.5 * tied_cases);
                cases += tied_cases;
                controls += tied_controls;
                (tied_cases, tied_controls) = (0.0, 0.0);
            }
            let weight = f64::from(weights[step.sample()]);
            if step.is(Step::CASE) {
                tied_cases += weight * before[step.sample()];
            } else {
                tied_controls += weight * if step.is(Step::SURVIVOR) { self.at } else { before[step.sample()] };
            }
        }
        score += tied_controls * (cases + 0.5 * tied_cases);
        cases += tied_cases;
        controls += tied_controls;
        if cases <= 0.0 {
            return Err(MetricError::NoCases { time: t });
        }
        if controls <= 0.0 {
            return Err(MetricError::NoControls { time: t });
        }
        Ok((score / (cases * controls)).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::competing::testing::{Sample, samples};
    use crate::rank::{AucConvention, auc_td_with};

    /// The definition, pair by pair.
    fn direct(sample: &Sample, t: f64, kind: Controls) -> Option<f64> {
        let (outcomes, censoring) = (&sample.outcomes, sample.censoring());
        let risk = |row: usize| sample.curves.at(row, t, Reading::Step);
        let by_then = |row: usize, cause: u32| outcomes.time()[row] <= t && outcomes.cause()[row] == cause;
        let early = |row: usize| 1.0 / censoring.left_limit(outcomes.time()[row]).unwrap();
        let (mut score, mut total) = (0.0, 0.0);
        for case in (0..outcomes.n()).filter(|row| by_then(*row, 1)) {
            for control in 0..outcomes.n() {
                let weight = if outcomes.time()[control] > t {
                    1.0 / censoring.at(t).unwrap()
                } else if by_then(control, 2) && kind == Controls::WithoutTheCause {
                    early(control)
                } else {
                    continue;
                };
                let weight = weight * early(case);
                total += weight;
                score += weight
                    * if risk(case) > risk(control) {
                        1.0
                    } else if risk(case) < risk(control) {
                        0.0
                    } else {
                        0.5
                    };
            }
        }
        (total > 0.0).then(|| score / total)
    }

    proptest! {
        #[test]
        fn the_auc_is_the_sum_over_all_pairs(sample in samples(2, 25)) {
            prop_assume!(sample.is_known_at(5.0));
            for controls in [Controls::WithoutTheCause, Controls::EventFree] {
                let auc = cause_auc(
                    &sample.outcomes, 1, &sample.curves, &sample.censoring(), Reading::Step, &[3.0, 5.0], controls,
                ).unwrap();
                for (value, t) in auc.values.into_iter().zip([3.0, 5.0]) {
                    match (value, direct(&sample, t, controls)) {
                        (Ok(value), Some(expected)) => prop_assert!((value - expected).abs() < 1e-12),
                        (value, expected) => prop_assert!(value.is_err() && expected.is_none()),
                    }
                }
            }
        }

        #[test]
        fn one_cause_alone_is_the_auc_of_riskregression(sample in samples(1, 25)) {
            let (events, times) = (sample.outcomes.all_causes(), [3.0, 5.0]);
            let (survival, censoring) = (sample.curves.without(), sample.censoring());
            let other =
                auc_td_with(events, survival, &censoring, Reading::Step, &times, AucConvention::RiskRegression).unwrap();
            for controls in [Controls::WithoutTheCause, Controls::EventFree] {
                let own =
                    cause_auc(&sample.outcomes, 1, &sample.curves, &censoring, Reading::Step, &times, controls).unwrap();
                for (own, other) in own.values.iter().zip(&other.values) {
                    match (own, other) {
                        (Ok(own), Ok(other)) => prop_assert!((own - other).abs() < 1e-12),
                        (own, other) => prop_assert_eq!(own.is_err(), other.is_err()),
                    }
                }
            }
        }

        #[test]
        fn a_weight_is_a_repeated_row(sample in samples(2, 20), picked in prop::collection::vec(0_u32..4, 20)) {
            let n = sample.outcomes.n();
            let (weights, censoring) = (&picked[..n], sample.censoring());
            let rows: Vec<usize> = (0..n).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
            prop_assume!(!rows.is_empty());
            let prepare = |rows: &[usize]| {
                let outcomes = sample.outcomes.select(rows);
                let cause = (outcomes.of_cause(1).unwrap(), outcomes.competing(1).unwrap());
                let curves = sample.curves.select(rows);
                let (times, controls) = (&[4.0][..], Controls::WithoutTheCause);
                PreparedCauseAuc::new((&cause.0, &cause.1), curves.without(), &censoring, Reading::Step, (times, controls))
            };
            let all: Vec<usize> = (0..n).collect();
            let weighted = prepare(&all).unwrap().weighted(weights).unwrap();
            let repeated = prepare(&rows).unwrap().weighted(&vec![1; rows.len()]).unwrap();
            match (&weighted.values[0], &repeated.values[0]) {
                (Ok(weighted), Ok(repeated)) => prop_assert!((weighted - repeated).abs() < 1e-12),
                // What cannot be weighted in a part of the rows may be one of those left out.
                (weighted, repeated) => prop_assert!(weighted.is_err() || repeated.is_err()),
            }
        }
    }
}
