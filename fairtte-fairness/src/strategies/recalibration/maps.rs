//! The maps of survival curves, one per group: pure, without a network.
//!
//! The hazard of interval k is h = 1 - `S_k` / `S_(k-1)`, `S_(-1)` = 1; where `S_(k-1)` = 0 it is 1. A sample is at risk in interval
//! k when its index is >= k (a censoring in k counts as surviving k, as in the discrete-time likelihood); D is the number of
//! events.
//!
//! `oe`: S' = S^a, a the root of sum over rows at risk of (1 - (1-h)^a) + prior a = D + prior: it increases in a, so the
//! root is unique. Without rows a = 1.
//! `hazard-intercept`: h' = sigmoid(logit h + b), b the largest of sum over rows at risk of log-likelihood - ridge b^2 / 2, per
//! interval or shared. A hazard of exactly 0 or 1 has no finite logit: it stays, and its row has no influence. Inside
//! an interval the cumulative hazard is stretched evenly: S'(t) = S'_(k-1) (S(t) / `S_(k-1)`)^e, e = log(1-h') /
//! log(1-h), which gives S'_k at the cut and is monotone.
//! `quantile`: F' = phi(F), phi = 1 - Kaplan-Meier estimate of the values `F_i(q_i)` with the event indicators (events before
//! censorings at equal values), a line between the knots (0, 0), the event values, (1, 1).
//!
//! `platt` and `isotonic` are of the probability of a class (`probability.rs`).
//!
//! `oe` and `quantile` act on values of S, so they apply at any time; only `hazard-intercept` needs the cut points.

use serde::{Deserialize, Serialize};

use super::probability;

/// Predicted curves at the cut points with the outcomes on them: rows of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows<'a> {
    /// Survival at the cut points, one slice per sample.
    pub(super) survival: Vec<&'a [f64]>,
    /// Interval of each sample.
    pub(super) index: Vec<usize>,
    /// `true` = event observed in it.
    pub(super) event: Vec<bool>,
}

/// One row at risk in one interval.
#[derive(Clone, Copy, Debug)]
struct AtRisk {
    interval: usize,
    hazard: f64,
    event: bool,
}

impl Rows<'_> {
    /// Number of observed events.
    pub(super) fn n_events(&self) -> usize {
        self.event.iter().filter(|event| **event).count()
    }

    /// Probability of an event by the end of the curve.
    fn probability(&self) -> Vec<f64> {
        self.survival.iter().map(|curve| 1.0 - curve.last().copied().unwrap_or(1.0)).collect()
    }

    fn at_risk(&self) -> Vec<AtRisk> {
        let mut all = Vec::new();
        for ((curve, &index), &event) in self.survival.iter().zip(&self.index).zip(&self.event) {
            let hazards = hazards(curve).take(index + 1).enumerate();
            all.extend(hazards.map(|(interval, hazard)| AtRisk {
                interval,
                hazard,
                event: event && interval == index,
            }));
        }
        all
    }
}

/// Hazard of every interval; 1 where survival at the one before is 0.
fn hazards(curve: &[f64]) -> impl Iterator<Item = f64> + '_ {
    let before = std::iter::once(1.0).chain(curve.iter().copied());
    curve.iter().zip(before).map(|(now, before)| if before > 0.0 { (1.0 - now / before).clamp(0.0, 1.0) } else { 1.0 })
}

/// The map of the curves of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Map {
    /// The exponent a.
    Exponent(f64),
    /// The shift b of every interval.
    Shifts(Vec<f64>),
    /// Knots (F, F') of phi, ascending, from (0, 0) to (1, 1).
    Knots(Vec<(f64, f64)>),
    /// Intercept and slope of the logit of the probability of a class.
    Platt(f64, f64),
    /// Points (p, p') of the probability of a class.
    Isotonic(Vec<(f64, f64)>),
}

impl Map {
    /// Leaves every curve bit-identical.
    pub(super) const UNCHANGED: Self = Self::Exponent(1.0);

    /// The exponent for which expected and observed events agree.
    pub(super) fn exponent(rows: &Rows<'_>, prior: f64) -> Self {
        let hazards: Vec<f64> = rows.at_risk().iter().map(|row| row.hazard).collect();
        Self::Exponent(exponent(&hazards, rows.n_events(), prior))
    }

    /// The shifts of the logits of the hazards.
    pub(super) fn shifts(rows: &Rows<'_>, ridge: f64, shared: bool, n_intervals: usize) -> Self {
        let at_risk = rows.at_risk();
        let of = |select: &dyn Fn(usize) -> bool| {
            let chosen = at_risk.iter().filter(|row| select(row.interval));
            let (hazards, events): (Vec<f64>, Vec<bool>) = chosen.map(|row| (row.hazard, row.event)).unzip();
            shift(&hazards, &events, ridge)
        };
        if shared {
            return Self::Shifts(vec![of(&|_| true); n_intervals]);
        }
        Self::Shifts((0..n_intervals).map(|k| of(&|interval| interval == k)).collect())
    }

    /// The distribution of the predicted values at the observed times.
    pub(super) fn knots(rows: &Rows<'_>) -> Self {
        let values = rows.survival.iter().zip(&rows.index).map(|(curve, &index)| 1.0 - curve[index]);
        let mut values: Vec<(f64, bool)> = values.zip(rows.event.iter().copied()).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let (mut knots, mut survival, mut at_risk) = (vec![(0.0, 0.0)], 1.0, values.len());
        for tied in values.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            let n_events = tied.iter().filter(|(_, event)| *event).count();
            survival *= 1.0 - n_events as f64 / at_risk as f64;
            at_risk -= tied.len();
            let inside = tied[0].0 > 0.0 && tied[0].0 < 1.0;
            if n_events > 0 && inside {
                knots.push((tied[0].0, 1.0 - survival));
            }
        }
        knots.push((1.0, 1.0));
        Self::Knots(knots)
    }

    /// The map of the logit of the probability of a class.
    pub(super) fn platt(rows: &Rows<'_>) -> Self {
        let (intercept, slope) = probability::platt(&rows.probability(), &rows.event);
        Self::Platt(intercept, slope)
    }

    /// The non-decreasing map of the probability of a class.
    pub(super) fn isotonic(rows: &Rows<'_>) -> Self {
        Self::Isotonic(probability::isotonic(&rows.probability(), &rows.event))
    }

    /// Whether [`apply`](Self::apply) reads the curve at the cut points.
    pub(super) fn reads_cut_points(&self) -> bool {
        matches!(self, Self::Shifts(_))
    }

    /// One mapped curve, `[n_times]`.
    pub(super) fn apply(&self, curve: &Curve<'_>) -> Vec<f64> {
        let values = curve.survival.iter();
        match self {
            Self::Exponent(a) => values.map(|s| s.powf(*a)).collect(),
            Self::Shifts(shifts) => shift_curve(shifts, curve),
            Self::Knots(knots) => values.map(|s| (1.0 - line(knots, 1.0 - s)).clamp(0.0, 1.0)).collect(),
            Self::Platt(intercept, slope) => of_class(curve, |p| probability::platt_of((*intercept, *slope), p)),
            Self::Isotonic(points) => of_class(curve, |p| probability::isotonic_of(points, p)),
        }
    }
}

/// The curve of a class with its mapped probability: that of time 0 is 0.
fn of_class(curve: &Curve<'_>, map: impl Fn(f64) -> f64) -> Vec<f64> {
    let values = curve.survival.iter().zip(curve.times);
    values.map(|(s, time)| if *time > 0.0 { 1.0 - map(1.0 - s) } else { *s }).collect()
}

/// One predicted curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve<'a> {
    /// Survival at `times`.
    pub(super) survival: &'a [f64],
    /// Ascending.
    pub(super) times: &'a [f64],
    /// Survival at `cuts`.
    pub(super) at_cuts: &'a [f64],
    /// The cut points.
    pub(super) cuts: &'a [f64],
}

/// Mean of the curves of all maps with weights that sum to 1: the prediction without a group.
pub(super) fn average(maps: &[Map], weights: &[f64], curve: &Curve<'_>) -> Vec<f64> {
    let mut sum = vec![0.0; curve.survival.len()];
    for (map, weight) in maps.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
        for (sum, s) in sum.iter_mut().zip(map.apply(curve)) {
            *sum += weight * s;
        }
    }
    sum
}

fn shift_curve(shifts: &[f64], curve: &Curve<'_>) -> Vec<f64> {
    let Curve { survival, times, at_cuts, cuts } = *curve;
    let mapped = hazards(at_cuts).zip(shifts).scan(1.0, |s, (h, b)| {
        *s *= 1.0 - shifted(h, *b);
        Some(*s)
    });
    let mapped: Vec<f64> = mapped.collect();
    let at = |(s, time): (&f64, &f64)| {
        // The first cut at or after the time; beyond the last one the shift of the last interval applies.
        let k = cuts.partition_point(|cut| cut < time).min(cuts.len() - 1);
        let (before, after) = if k == 0 { (1.0, 1.0) } else { (at_cuts[k - 1], mapped[k - 1]) };
        if before <= 0.0 {
            return 0.0;
        }
        let hazard = 1.0 - at_cuts[k] / before;
        let exponent = if hazard <= 0.0 {
            shifts[k].exp() // the limit of small hazards
        } else if hazard >= 1.0 {
            1.0 // the limit of certain events
        } else {
            (-shifted(hazard, shifts[k])).ln_1p() / (-hazard).ln_1p()
        };
        after * (s / before).clamp(0.0, 1.0).powf(exponent)
    };
    survival.iter().zip(times).map(at).collect()
}

/// sigmoid(logit h + b), which leaves 0 and 1 unchanged.
fn shifted(hazard: f64, shift: f64) -> f64 {
    if hazard <= 0.0 || hazard >= 1.0 {
        return hazard;
    }
    // h e^b / (1 - h + h e^b), written so that neither end overflows.
    if shift > 0.0 {
        hazard / (hazard + (1.0 - hazard) * (-shift).exp())
    } else {
        let lifted = hazard * shift.exp();
        lifted / (1.0 - hazard + lifted)
    }
}

/// phi(x) on the lines between knots that ascend from 0 to 1.
fn line(knots: &[(f64, f64)], x: f64) -> f64 {
    let after = knots.partition_point(|(at, _)| *at <= x).clamp(1, knots.len() - 1);
    let ((x0, y0), (x1, y1)) = (knots[after - 1], knots[after]);
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

/// The root of sum of (1 - (1-h)^a) + prior a = D + prior in a >= 0; 1 without rows.
fn exponent(hazards: &[f64], n_events: usize, prior: f64) -> f64 {
    if hazards.is_empty() {
        return 1.0;
    }
    let expected = |a: f64| hazards.iter().map(|h| -(a * (-h).ln_1p()).exp_m1()).sum::<f64>() + prior * a;
    let sought = n_events as f64 + prior;
    // Not 0: a hazard of 1 has an infinite logarithm.
    rising_root(f64::MIN_POSITIVE, |a| expected(a) - sought)
}

/// The maximiser of the penalised log-likelihood; 0 without a row that has an influence.
fn shift(hazards: &[f64], events: &[bool], ridge: f64) -> f64 {
    let has_say = |(hazard, _): &(&f64, &bool)| **hazard > 0.0 && **hazard < 1.0;
    let rows: Vec<(f64, f64)> =
        hazards.iter().zip(events).filter(has_say).map(|(h, d)| (*h, f64::from(u8::from(*d)))).collect();
    if rows.is_empty() {
        return 0.0;
    }
    rising_root(f64::NEG_INFINITY, |b| ridge * b - rows.iter().map(|(h, d)| d - shifted(*h, b)).sum::<f64>())
}

/// The root of the increasing `f` at or above `lowest`: brackets that double, then bisection to the last bit. Without a
/// root within 1e9 of 0, which is practically infinite for an exponent or a shift, that bound.
fn rising_root(lowest: f64, f: impl Fn(f64) -> f64) -> f64 {
    const FARTHEST: f64 = 1e9;
    let mut high = 1.0;
    while f(high) < 0.0 {
        if high >= FARTHEST {
            return high;
        }
        high = (high * 2.0).min(FARTHEST);
    }
    let mut low = lowest.max(-1.0);
    while f(low) > 0.0 {
        if low <= lowest.max(-FARTHEST) {
            return low;
        }
        low = (low * 2.0).max(lowest.max(-FARTHEST));
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/recalibration_maps.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing unwrap is a failing test; counts are worth seeing"
)]
mod tests;
