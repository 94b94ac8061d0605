//! Losses of survival predictions at a time, weighted by the inverse probability of censoring.
//!
//! One place for what the Brier score, the log losses and the scores of `mlr3proba` share: who counts at time t, with
//! which weight, and what the sum is divided by. The conventions are those of [`BrierConvention`].
//!
//! ```text
//! mean(t) = sum over i of w_i(t) * loss(S_i(t), 1{T_i > t}) / N(t)
//! ```
//!
//! Sources and golden values: see `brier_convention.rs` and `integrated_scores.rs`.

use crate::brier::BrierScore;
use crate::brier_convention::BrierConvention;
use crate::curves::{SurvivalCurves, check_grid};
use crate::integration_rule::IntegrationRule;
use crate::reading::Reading;
use crate::{BeyondLastTime, CensoringCurve, MetricError, Outcomes};

/// What `mlr3proba` divides by where G = 0 at an event.
pub(crate) const MLR3PROBA_FLOOR: f64 = 1e-3;

/// The loss of one prediction S at one time, for a sample that is or is not free of the event then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointLoss {
    Squared,
    Absolute,
    /// -log of the probability of what happened, that probability not below `floor`.
    Log {
        floor: f64,
    },
    /// The same with S moved into [`clip`, 1 - `clip`].
    ClippedLog {
        clip: f64,
    },
}

impl PointLoss {
    fn of(self, survival: f64, free: bool) -> f64 {
        let probability = |survival: f64| if free { survival } else { 1.0 - survival };
        match self {
            Self::Squared => (1.0 - probability(survival)).powi(2),
            Self::Absolute => 1.0 - probability(survival),
            Self::Log { floor } => -probability(survival).max(floor).ln(),
            Self::ClippedLog { clip } => -probability(survival.clamp(clip, 1.0 - clip)).ln(),
        }
    }
}

/// Where the weight of an event is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighting {
    /// At the event for events by t, at t for survivors.
    PerTime(BrierConvention),
    /// At the event, at every t; the censored have weight 0 (`mlr3proba` 0.8.0, `proper = TRUE`).
    PerSubject,
}

impl Weighting {
    fn convention(self) -> BrierConvention {
        match self {
            Self::PerTime(convention) => convention,
            Self::PerSubject => BrierConvention::Mlr3proba,
        }
    }
}

/// One sample at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    /// Censored before t: counts in n, adds nothing.
    Absent,
    /// Should count, but G = 0 gives no weight.
    WithoutWeight,
    Counted {
        loss: f64,
        /// G, the inverse of the weight.
        divisor: f64,
    },
}

/// The weighted mean of the losses at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanAt {
    /// `None` if nobody has a weight.
    pub(crate) value: Option<f64>,
    pub(crate) n_without_weight: usize,
    /// Samples the mean is over.
    pub(crate) n_counted: usize,
}

/// Losses of all samples, ready to be read at any of the evaluation times.
pub(crate) struct IpcwLosses<'a> {
    weighting: Weighting,
    loss: PointLoss,
    outcomes: &'a Outcomes,
    curves: &'a SurvivalCurves,
    censoring: CensoringCurve,
    reading: Reading,
    /// G at every event (`None`: 0 and left out); of no use for the censored.
    at_event: Vec<Result<Option<f64>, MetricError>>,
}

impl<'a> IpcwLosses<'a> {
    pub(crate) fn new(
        weighting: Weighting,
        loss: PointLoss,
        outcomes: &'a Outcomes,
        curves: &'a SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<Self, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        check_grid(times)?;
        if outcomes.n() == 0 {
            return Err(MetricError::NoSamples);
        }
        let convention = weighting.convention();
        let censoring = match convention {
            BrierConvention::Pycox | BrierConvention::Mlr3proba => censoring.clone().with_beyond(BeyondLastTime::Hold),
            _ => censoring.clone(),
        };
        let at_event = outcomes.time().iter().map(|time| at_event(convention, &censoring, *time)).collect();
        Ok(Self { weighting, loss, outcomes, curves, censoring, reading, at_event })
    }

    /// Every sample at time `t`, `[n]`.
    pub(crate) fn terms(&self, t: f64) -> Result<Vec<Term>, MetricError> {
        let convention = self.weighting.convention();
        let censored_at_t_survive =
            matches!(convention, BrierConvention::SurvivalEval | BrierConvention::SurvivalEvalUnweighted);
        let at_t = at_survivor(convention, &self.censoring, t);
        let survival = self.survival(t);
        let mut terms = Vec::with_capacity(survival.len());
        for (row, survival) in survival.into_iter().enumerate() {
            let (time, event) = (self.outcomes.time()[row], self.outcomes.event()[row]);
            let free = time > t || (censored_at_t_survive && time >= t && !event);
            let divisor = match self.weighting {
                Weighting::PerTime(_) if free => at_t.clone()?,
                _ if event => self.at_event[row].clone()?,
                _ => {
                    terms.push(Term::Absent);
                    continue;
                }
            };
            let loss = self.loss.of(survival, free);
            terms.push(divisor.map_or(Term::WithoutWeight, |divisor| Term::Counted { loss, divisor }));
        }
        Ok(terms)
    }

    /// The mean at time `t`, divided as the convention says.
    pub(crate) fn mean_at(&self, t: f64) -> Result<MeanAt, MetricError> {
        let (mut sum, mut sum_of_weights, mut n_without_weight) = (0.0, 0.0, 0);
        for term in self.terms(t)? {
            match term {
                Term::Absent => {}
                Term::WithoutWeight => n_without_weight += 1,
                Term::Counted { loss, divisor } => {
                    sum += loss / divisor;
                    sum_of_weights += 1.0 / divisor;
                }
            }
        }
        let n = self.outcomes.n();
        let (divided_by, n_counted) = match self.weighting.convention() {
            BrierConvention::Pycox => (sum_of_weights, n),
            BrierConvention::Mlr3proba => ((n - n_without_weight) as f64, n - n_without_weight),
            _ => (n as f64, n),
        };
        let value = (divided_by > 0.0).then(|| sum / divided_by);
        Ok(MeanAt { value, n_without_weight, n_counted })
    }

    /// The means at all `times`.
    pub(crate) fn score_over(&self, times: &[f64]) -> Result<BrierScore, MetricError> {
        let (mut values, mut n_without_weight) = (Vec::with_capacity(times.len()), Vec::with_capacity(times.len()));
        for &t in times {
            let mean = self.mean_at(t)?;
            values.push(mean.value.ok_or(MetricError::NoWeight { time: t })?);
            n_without_weight.push(mean.n_without_weight);
        }
        Ok(BrierScore { times: times.to_vec(), values, n_without_weight })
    }

    /// S of every sample at `t`. `mlr3proba` starts every curve at 1; elsewhere the reading decides.
    fn survival(&self, t: f64) -> Vec<f64> {
        if self.weighting.convention() == BrierConvention::Mlr3proba && t < self.curves.grid()[0] {
            return vec![1.0; self.curves.n()];
        }
        self.curves.all_at(t, self.reading)
    }
}

/// A mean over time, with what was left out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeMean {
    pub(crate) value: f64,
    /// Pairs of sample and time without a weight.
    pub(crate) n_without_weight: usize,
}

/// Averages the means at `times` by `rule`. The plain mean is over all pairs of sample and time that count.
pub(crate) fn mean_over_time(
    losses: &IpcwLosses<'_>,
    rule: IntegrationRule,
    times: &[f64],
) -> Result<TimeMean, MetricError> {
    rule.check(times)?;
    let means = times.iter().map(|t| losses.mean_at(*t)).collect::<Result<Vec<_>, _>>()?;
    let n_without_weight = means.iter().map(|mean| mean.n_without_weight).sum();
    let value = if rule == IntegrationRule::PlainMean {
        let n_counted: usize = means.iter().map(|mean| mean.n_counted).sum();
        let counted = means.iter().filter_map(|mean| mean.value.map(|value| value * mean.n_counted as f64));
        let sum: f64 = counted.sum();
        if n_counted == 0 {
            return Err(MetricError::NoWeight { time: times[0] });
        }
        sum / n_counted as f64
    } else {
        let defined = |(mean, time): (&MeanAt, &f64)| mean.value.ok_or(MetricError::NoWeight { time: *time });
        let values = means.iter().zip(times).map(defined).collect::<Result<Vec<_>, _>>()?;
        rule.average(times, &values)?
    };
    Ok(TimeMean { value, n_without_weight })
}

/// The G that divides the loss of an event at `time`; `None` where a zero leaves the sample out.
fn at_event(convention: BrierConvention, censoring: &CensoringCurve, time: f64) -> Result<Option<f64>, MetricError> {
    let positive = |g: f64| if g > 0.0 { Ok(Some(g)) } else { Err(MetricError::ZeroCensoringSurvival { time }) };
    match convention {
        BrierConvention::ScikitSurvival => Ok(Some(censoring.at(time)?).filter(|g| *g > 0.0)),
        BrierConvention::SurvivalEval => positive(left_limit_on_a_line(censoring, time)?),
        BrierConvention::SurvivalEvalUnweighted => Ok(Some(1.0)),
        BrierConvention::Pycox => positive(left_limit_of_pycox(censoring, time)?),
        BrierConvention::RiskRegression => positive(censoring.left_limit(time)?),
        BrierConvention::Mlr3proba => {
            let g = censoring.at(time)?;
            Ok(Some(if g > 0.0 { g } else { MLR3PROBA_FLOOR }))
        }
    }
}

/// The G that divides the loss of a survivor at `t`; `None` where a zero leaves the sample out.
fn at_survivor(convention: BrierConvention, censoring: &CensoringCurve, t: f64) -> Result<Option<f64>, MetricError> {
    let positive = |g: f64| if g > 0.0 { Ok(Some(g)) } else { Err(MetricError::ZeroCensoringSurvival { time: t }) };
    match convention {
        BrierConvention::ScikitSurvival | BrierConvention::Mlr3proba => Ok(Some(censoring.at(t)?).filter(|g| *g > 0.0)),
        BrierConvention::SurvivalEval => positive(left_limit_on_a_line(censoring, t)?),
        BrierConvention::SurvivalEvalUnweighted => Ok(Some(1.0)),
        BrierConvention::Pycox | BrierConvention::RiskRegression => positive(censoring.at(t)?),
    }
}

/// G(t-) of `SurvivalEVAL`: beyond the last time it follows the line from the start of the curve to its end, down to
/// 0. The curve starts at (0, 1), or at its own value if it has a time 0.
fn left_limit_on_a_line(censoring: &CensoringCurve, t: f64) -> Result<f64, MetricError> {
    let (last, end) = (censoring.last_time(), censoring.survival()[censoring.survival().len() - 1]);
    if t <= last {
        return censoring.left_limit(t);
    }
    let start = if censoring.times()[0] > 0.0 { 1.0 } else { censoring.survival()[0] };
    let slope = if last > 0.0 { (end - start) / last } else { 0.0 };
    Ok((end + slope * (t - last)).max(0.0))
}

/// G(t-) of `pycox`: a time beyond the last one is taken for the last one, and a curve that starts at time 0 has
/// nothing before it.
fn left_limit_of_pycox(censoring: &CensoringCurve, t: f64) -> Result<f64, MetricError> {
    let (first, t) = (censoring.times()[0], t.min(censoring.last_time()));
    if first <= 0.0 && t <= first { censoring.at(first) } else { censoring.left_limit(t) }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;
    use crate::CensoringTies;

    #[test]
    fn point_losses_are_those_of_the_probability_of_what_happened() {
        assert_abs_diff_eq!(PointLoss::Squared.of(0.75, true), 0.0625, epsilon = 1e-15);
        assert_abs_diff_eq!(PointLoss::Squared.of(0.75, false), 0.5625, epsilon = 1e-15);
        assert_abs_diff_eq!(PointLoss::Absolute.of(0.75, false), 0.75, epsilon = 1e-15);
        assert_abs_diff_eq!(PointLoss::Log { floor: 1e-3 }.of(1.0, false), 1000.0_f64.ln(), epsilon = 1e-12);
        assert_eq!(PointLoss::Log { floor: 1e-3 }.of(1.0, true), 0.0);
        let clipped = PointLoss::ClippedLog { clip: 0.25 };
        assert_abs_diff_eq!(clipped.of(1.0, true), (4.0_f64 / 3.0).ln(), epsilon = 1e-15);
        assert_abs_diff_eq!(clipped.of(1.0, false), 4.0_f64.ln(), epsilon = 1e-15);
    }

    #[test]
    fn a_curve_that_starts_at_time_zero_has_no_one_before_it() {
        let outcomes = Outcomes::new(vec![0.0, 1.0, 2.0, 2.0], vec![false, true, false, true]).unwrap();
        let flipped = CensoringCurve::fit(&outcomes, CensoringTies::Flipped).unwrap();
        assert_eq!(left_limit_of_pycox(&flipped, 0.0), Ok(0.75));
        assert_eq!(left_limit_of_pycox(&flipped, 1.0), Ok(0.75));
        // Events first: 3/4 at 0 and 0 from 2 on.
        let events_first = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        assert_eq!(left_limit_on_a_line(&events_first, 2.0), Ok(0.75));
        assert_eq!(left_limit_on_a_line(&events_first, 3.0), Ok(0.0));
    }
}
