//! Losses of survival predictions at a time, weighted by the inverse probability of censoring.
//!
//! The part that the Brier score, the log losses and the scores of `mlr3proba` share: which samples count at time t,
//! with which weight, and what the sum is divided by. The conventions are those of [`BrierConvention`].
//!
//! ```text
//! mean(t) = sum over i of w_i(t) * loss(S_i(t), 1{T_i > t}) / N(t)
//! ```
//!
//! Sources and golden values: see `brier_convention.rs` and `integrated_scores.rs`.

use crate::curves::{SurvivalCurves, check_grid};
use crate::estimators::BeyondLastTime;
use crate::reading::{Position, Reading};
use crate::scores::brier::BrierScore;
use crate::scores::brier_convention::BrierConvention;
use crate::scores::integration_rule::IntegrationRule;
use crate::{CensoringCurve, MetricError, Outcomes};

/// The number that `mlr3proba` divides by where G = 0 at an event.
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

/// One sample that counts at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    /// Should count, but G = 0 gives no weight.
    WithoutWeight,
    Counted {
        loss: f64,
        /// 1 / G.
        weight: f64,
    },
}

/// The factor of a loss: 1 / G, or none.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Known(f64),
    /// G = 0, and the convention leaves the sample out.
    LeftOut,
    /// G is unknown, or 0 where the convention must divide: an error if the sample counts at an evaluation time.
    Undefined,
}

impl Weight {
    fn of(g: &Result<Option<f64>, MetricError>) -> Self {
        match g {
            Ok(Some(g)) => Self::Known(1.0 / g),
            Ok(None) => Self::LeftOut,
            Err(_) => Self::Undefined,
        }
    }
}

/// The weighted mean of the losses at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanAt {
    /// `None` if no sample has a weight.
    pub(crate) value: Option<f64>,
    pub(crate) n_without_weight: usize,
    /// Samples the mean is over; 0 without a value.
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
    /// The weight of every event; not used for the censored.
    at_event: Vec<Weight>,
    /// The samples that had an event of another cause, none without causes: they stay free of the event, but weigh what an
    /// event at their time weighs.
    competing: &'a [bool],
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
        let at_event =
            outcomes.time().iter().map(|time| Weight::of(&at_event(convention, &censoring, *time))).collect();
        Ok(Self { weighting, loss, outcomes, curves, censoring, reading, at_event, competing: &[] })
    }

    /// The same where the samples marked in `competing`, `[n]`, had an event of another cause.
    pub(crate) fn with_competing(self, competing: &'a [bool]) -> Self {
        Self { competing, ..self }
    }

    /// Number of samples.
    pub(crate) fn n(&self) -> usize {
        self.outcomes.n()
    }

    /// Calls `visit` with row, index of the time, and term of every sample that counts at one of `times`.
    ///
    /// Row by row, because that is how the curves are stored. An error if a sample that counts has no known weight.
    pub(crate) fn visit(&self, times: &[f64], mut visit: impl FnMut(usize, usize, Term)) -> Result<(), MetricError> {
        let convention = self.weighting.convention();
        let censored_at_t_survive =
            matches!(convention, BrierConvention::SurvivalEval | BrierConvention::SurvivalEvalUnweighted);
        let at_times: Vec<AtTime> = times.iter().map(|t| self.at_time(*t)).collect();
        for row in 0..self.n() {
            let (time, event) = (self.outcomes.time()[row], self.outcomes.event()[row]);
            let curve = self.curves.curve(row);
            let survives = |t: f64| time > t || (censored_at_t_survive && time >= t && !event);
            let n_free = times.partition_point(|t| survives(*t));
            // The censored count while they are free, unless the weight is that of their event.
            let competing = self.competing.get(row).copied().unwrap_or(false);
            let n_counted = match (event || competing, self.weighting) {
                (true, _) => times.len(),
                (false, Weighting::PerTime(_)) => n_free,
                (false, Weighting::PerSubject) => 0,
            };
            for (k, at_time) in at_times[..n_counted].iter().enumerate() {
                let free = k < n_free;
                let per_time = free && self.weighting != Weighting::PerSubject;
                match if per_time { at_time.weight } else { self.at_event[row] } {
                    Weight::Known(weight) => {
                        let survival = at_time.position.map_or(1.0, |at| self.reading.value(curve, at));
                        visit(row, k, Term::Counted { loss: self.loss.of(survival, free || competing), weight });
                    }
                    Weight::LeftOut => visit(row, k, Term::WithoutWeight),
                    // Evaluated again, for its error.
                    Weight::Undefined if per_time => drop(at_survivor(convention, &self.censoring, times[k])?),
                    Weight::Undefined => drop(at_event(convention, &self.censoring, time)?),
                }
            }
        }
        Ok(())
    }

    /// The means at `times`, divided as the convention says.
    pub(crate) fn means(&self, times: &[f64]) -> Result<Vec<MeanAt>, MetricError> {
        let mut sums = vec![(0.0, 0.0, 0_usize); times.len()];
        self.visit(times, |_, k, term| {
            let (sum, sum_of_weights, n_without_weight) = &mut sums[k];
            match term {
                Term::WithoutWeight => *n_without_weight += 1,
                Term::Counted { loss, weight } => {
                    *sum += loss * weight;
                    *sum_of_weights += weight;
                }
            }
        })?;
        let n = self.n();
        let mean = |(sum, sum_of_weights, n_without_weight): (f64, f64, usize)| {
            let (divided_by, n_counted) = match self.weighting.convention() {
                BrierConvention::Pycox => (sum_of_weights, if sum_of_weights > 0.0 { n } else { 0 }),
                BrierConvention::Mlr3proba => ((n - n_without_weight) as f64, n - n_without_weight),
                _ => (n as f64, n),
            };
            MeanAt { value: (divided_by > 0.0).then(|| sum / divided_by), n_without_weight, n_counted }
        };
        Ok(sums.into_iter().map(mean).collect())
    }

    /// The means at all `times`, all of them defined.
    pub(crate) fn score_over(&self, times: &[f64]) -> Result<BrierScore, MetricError> {
        let means = self.means(times)?;
        let n_without_weight = means.iter().map(|mean| mean.n_without_weight).collect();
        Ok(BrierScore { times: times.to_vec(), values: defined(&means, times)?, n_without_weight })
    }

    fn at_time(&self, t: f64) -> AtTime {
        let convention = self.weighting.convention();
        let is_known = self.reading == Reading::LinearFromOne;
        let starts_at_one = convention == BrierConvention::Mlr3proba && !is_known && t < self.curves.grid()[0];
        AtTime {
            weight: Weight::of(&at_survivor(convention, &self.censoring, t)),
            position: (!starts_at_one).then(|| self.reading.position(self.curves.grid(), t)),
        }
    }
}

/// What all samples share at one time.
struct AtTime {
    /// The weight of a survivor.
    weight: Weight,
    /// Where the curves are read; `None` before the grid under `mlr3proba`, which starts every curve at 1, unless the reading has a line
    /// there.
    position: Option<Position>,
}

/// The values of the means, or the first time without one.
fn defined(means: &[MeanAt], times: &[f64]) -> Result<Vec<f64>, MetricError> {
    let value = |(mean, time): (&MeanAt, &f64)| mean.value.ok_or(MetricError::NoWeight { time: *time });
    means.iter().zip(times).map(value).collect()
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
    let means = losses.means(times)?;
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
        rule.average(times, &defined(&means, times)?)?
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
    // A line may be so steep that its slope overflows.
    let change = if slope.is_finite() { slope * (t - last) } else { (end - start) * ((t - last) / last) };
    Ok((end + change).max(0.0))
}

/// G(t-) of `pycox`: a time beyond the last one is treated as the last one, and a curve that starts at time 0 has
/// nothing before it.
fn left_limit_of_pycox(censoring: &CensoringCurve, t: f64) -> Result<f64, MetricError> {
    let (first, t) = (censoring.times()[0], t.min(censoring.last_time()));
    if first <= 0.0 && t <= first { censoring.at(first) } else { censoring.left_limit(t) }
}

#[cfg(test)]
mod tests;
