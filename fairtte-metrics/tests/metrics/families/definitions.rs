//! A second implementation of the definitions, sample by sample and from the formula: the reference where the other
//! package gives no number. Slow and short; nothing here uses an estimator or a metric of the crate.

use fairtte_metrics::rank::AucConvention;
use fairtte_metrics::scores::BrierConvention;
use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};

/// Kaplan-Meier by its product, of events or of censorings.
pub struct Product {
    /// Distinct times, each with the share that survives.
    factors: Vec<(f64, f64)>,
}

impl Product {
    pub fn of_events(sample: &Outcomes) -> Self {
        Self::new(sample, true, false)
    }

    /// Events at the time of a censoring have left, or (flipped) are still at risk.
    pub fn of_censorings(sample: &Outcomes, flipped: bool) -> Self {
        Self::new(sample, false, !flipped)
    }

    fn new(sample: &Outcomes, event: bool, events_have_left: bool) -> Self {
        let rows = || sample.time().iter().zip(sample.event());
        let factor = |u: f64| {
            let leaving = |kind| rows().filter(|row| row.0.total_cmp(&u).is_eq() && *row.1 == kind).count();
            let gone = if events_have_left { leaving(true) } else { 0 };
            let at_risk = rows().filter(|row| *row.0 >= u).count() - gone;
            (u, if leaving(event) > 0 { 1.0 - leaving(event) as f64 / at_risk as f64 } else { 1.0 })
        };
        Self { factors: distinct(sample).into_iter().map(factor).collect() }
    }

    pub fn at(&self, t: f64) -> f64 {
        self.factors.iter().filter(|(u, _)| *u <= t).map(|(_, factor)| factor).product()
    }

    pub fn before(&self, t: f64) -> f64 {
        self.factors.iter().filter(|(u, _)| *u < t).map(|(_, factor)| factor).product()
    }

    fn last(&self) -> f64 {
        self.factors.iter().fold(0.0, |last, (u, _)| u.max(last))
    }

    /// Values at all distinct times.
    pub fn curve(&self) -> Vec<f64> {
        self.factors.iter().map(|(u, _)| self.at(*u)).collect()
    }
}

/// Nelson-Aalen by its sum at all distinct times; events at one time together or one by one.
pub fn cumulative_hazard(sample: &Outcomes, one_by_one: bool) -> Vec<f64> {
    let mut sum = 0.0;
    let step = |u: f64| {
        let at_risk = sample.time().iter().filter(|time| **time >= u).count();
        let rows = sample.time().iter().zip(sample.event());
        let events = rows.filter(|(time, event)| **event && time.total_cmp(&u).is_eq()).count();
        if one_by_one {
            (0..events).map(|k| 1.0 / (at_risk - k) as f64).sum::<f64>()
        } else {
            events as f64 / at_risk as f64
        }
    };
    let mut up_to = |u| {
        sum += step(u);
        sum
    };
    distinct(sample).into_iter().map(&mut up_to).collect()
}

fn distinct(sample: &Outcomes) -> Vec<f64> {
    let mut times = sample.time().to_vec();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// How G is read beyond the last time it was fitted on.
#[derive(Clone, Copy, PartialEq)]
pub enum Beyond {
    Unknown,
    Held,
    /// On the line from 1 at time 0 through the last value, down to 0.
    Line,
}

/// 1 / G(t) or 1 / G(t-); `None` where G is 0 or unknown.
fn weight(g: &Product, beyond: Beyond, t: f64, before: bool) -> Option<f64> {
    let last = g.last();
    let value = match beyond {
        Beyond::Unknown if t > last => None?,
        Beyond::Line if t > last => 1.0 - t * (1.0 - g.at(last)) / last,
        _ if before => g.before(t),
        _ => g.at(t),
    };
    (value > 0.0).then(|| 1.0 / value)
}

/// What a Brier score or an nbll is made from.
pub struct Brier<'a> {
    pub convention: BrierConvention,
    pub log_loss: bool,
    pub outcomes: &'a Outcomes,
    pub curves: &'a SurvivalCurves,
    /// What G is fitted on.
    pub sample: &'a Outcomes,
    pub hold: bool,
}

impl Brier<'_> {
    /// The score at time t; `None` where a weight does not exist.
    pub fn at(&self, t: f64) -> Option<f64> {
        use BrierConvention as B;
        let flipped = matches!(self.convention, B::Pycox | B::Mlr3proba);
        let g = Product::of_censorings(self.sample, flipped);
        let survival_eval = matches!(self.convention, B::SurvivalEval | B::SurvivalEvalUnweighted);
        let beyond = match self.convention {
            B::SurvivalEval => Beyond::Line,
            B::Pycox => Beyond::Held,
            _ if self.hold => Beyond::Held,
            _ => Beyond::Unknown,
        };
        let weigh = |time: f64, before: bool| match self.convention {
            B::SurvivalEvalUnweighted => Some(1.0),
            // A known last G of 0 stays 0, and gives no weight.
            B::ScikitSurvival if g.at(time) <= 0.0 => Some(0.0),
            // One step too early beyond the last time.
            B::Pycox if before && time > g.last() => weight(&g, beyond, g.last(), true),
            _ => weight(&g, beyond, time, before),
        };
        let (mut sum, mut total) = (0.0, 0.0);
        for row in 0..self.outcomes.n() {
            let (time, event) = (self.outcomes.time()[row], self.outcomes.event()[row]);
            let survival = self.curves.at(row, t, Reading::Step);
            let survives = time > t || (survival_eval && !event && time >= t);
            let weight = if survives {
                weigh(t, survival_eval)?
            } else if event {
                weigh(time, self.convention != B::ScikitSurvival)?
            } else {
                0.0
            };
            let outlives = f64::from(u8::from(survives));
            let loss = if self.log_loss {
                let survival = survival.clamp(1e-7, 1.0 - 1e-7);
                -(if survives { survival } else { 1.0 - survival }).ln()
            } else {
                (outlives - survival).powi(2)
            };
            sum += weight * loss;
            total += if self.convention == B::Pycox { weight } else { 1.0 };
        }
        (total > 0.0).then(|| sum / total)
    }

    /// Mean over the range of the times by trapezoids.
    pub fn mean(&self, times: &[f64]) -> Option<f64> {
        let values: Option<Vec<f64>> = times.iter().map(|&t| self.at(t)).collect();
        let values = values.filter(|values| values.len() > 1)?;
        let area = |k: usize| (times[k] - times[k - 1]) * (values[k] + values[k - 1]) / 2.0;
        Some((1..times.len()).map(area).sum::<f64>() / (times[times.len() - 1] - times[0]))
    }
}

/// What a cumulative/dynamic AUC is made from.
pub struct Auc<'a> {
    pub convention: AucConvention,
    pub outcomes: &'a Outcomes,
    pub curves: &'a SurvivalCurves,
    /// What G is fitted on.
    pub sample: &'a Outcomes,
    pub beyond: Beyond,
}

impl Auc<'_> {
    /// The AUC at time t over all pairs of a case and a control; `None` without such pairs or weights.
    pub fn at(&self, t: f64) -> Option<f64> {
        use AucConvention as A;
        let g = Product::of_censorings(self.sample, false);
        let (time, event) = (self.outcomes.time(), self.outcomes.event());
        let tolerance = if self.convention == A::ScikitSurvival { 1e-8 } else { 0.0 };
        let survival_eval = matches!(self.convention, A::SurvivalEval | A::SurvivalEvalNaive);
        let (mut won, mut total) = (0.0, 0.0);
        for i in (0..time.len()).filter(|&i| event[i] && time[i] <= t) {
            let weight = match self.convention {
                A::SurvivalEvalNaive => 1.0,
                convention => weight(&g, self.beyond, time[i], convention != A::ScikitSurvival)?,
            };
            let here = self.curves.at(i, t, Reading::Step);
            for j in (0..time.len()).filter(|&j| time[j] > t || (survival_eval && !event[j] && time[j] >= t)) {
                let ahead = self.curves.at(j, t, Reading::Step) - here;
                won += weight * if ahead.abs() <= tolerance { 0.5 } else { f64::from(u8::from(ahead > 0.0)) };
                total += weight;
            }
        }
        (total > 0.0).then(|| won / total)
    }
}
