//! Cumulative hazards from which the time after censoring is drawn.

use crate::estimators::KaplanMeier;
use crate::estimators::cox::CoxDesign;
use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

/// The cumulative hazard of a stratum: 0 at time 0, known at its event times, linear between them and constant after the
/// last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CumulativeHazard {
    /// Event times, ascending.
    times: Vec<f64>,
    /// After each of them, ascending and finite.
    hazard: Vec<f64>,
}

impl CumulativeHazard {
    /// -log of Kaplan-Meier. Where the curve falls to 0, because all who were at risk had the event, it would be infinite; there
    /// it grows by 1 (events divided by samples at risk, as in Nelson-Aalen), so that a tilt can still mean no event.
    pub(super) fn of_kaplan_meier(curve: &KaplanMeier) -> Self {
        let (mut times, mut hazard, mut last) = (vec![], vec![], 0.0);
        let at_times = curve.n_events().iter().zip(curve.times()).zip(curve.survival());
        for ((_, time), survival) in at_times.filter(|((n_events, _), _)| **n_events > 0) {
            last = if *survival > 0.0 { -survival.ln() } else { last + 1.0 };
            times.push(*time);
            hazard.push(last);
        }
        Self { times, hazard }
    }

    /// The ends of the interval in front of event time `place`.
    fn before(&self, place: usize) -> (f64, f64) {
        place.checked_sub(1).map_or((0.0, 0.0), |before| (self.times[before], self.hazard[before]))
    }

    /// H(t).
    fn at(&self, t: f64) -> f64 {
        let place = self.times.partition_point(|time| *time <= t);
        let (from, low) = self.before(place);
        let Some((to, high)) = self.times.get(place).zip(self.hazard.get(place)) else { return low };
        low + (t - from) / (to - from) * (high - low)
    }

    /// The time after `from`, not at it, at which H has grown by `growth`; `None` if it never does.
    pub(super) fn time_of_growth(&self, from: f64, growth: f64) -> Option<f64> {
        if self.times.last().is_none_or(|last| from >= *last) {
            return None;
        }
        let target = self.at(from) + growth;
        let place = self.hazard.partition_point(|hazard| *hazard < target);
        let (start, low) = self.before(place);
        let (end, high) = self.times.get(place).zip(self.hazard.get(place))?;
        let share = ((target - low) / (high - low)).clamp(0.0, 1.0);
        // Whoever is censored at a time has no event by it, also where the hazard has no bound.
        Some((start + share * (end - start)).max(from.next_up()))
    }
}

/// A fitted model of one stratum.
#[derive(Clone, Debug)]
pub(super) struct StratumModel {
    hazard: CumulativeHazard,
    /// Coefficient of the prediction, and the value at which the hazard is `hazard`; (0, 0) without a prediction.
    slope: (f64, f64),
}

impl StratumModel {
    /// Kaplan-Meier.
    pub(super) fn kaplan_meier(outcomes: &Outcomes) -> Result<Self, MetricError> {
        let hazard = CumulativeHazard::of_kaplan_meier(&KaplanMeier::fit(outcomes)?);
        Ok(Self { hazard, slope: (0.0, 0.0) })
    }

    /// A Cox model of `prediction`; Kaplan-Meier if it is the same for all.
    pub(super) fn cox(outcomes: &Outcomes, prediction: &[f64]) -> Result<Self, MetricError> {
        if outcomes.n_events() == 0 {
            return Self::kaplan_meier(outcomes);
        }
        let n = prediction.len() as f64;
        let mean = prediction.iter().sum::<f64>() / n;
        let deviation = (prediction.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
        let first = prediction[0];
        if prediction.iter().all(|value| value.total_cmp(&first).is_eq()) {
            return Self::kaplan_meier(outcomes);
        }
        let design = CoxDesign::new(outcomes, 1, |row| [(prediction[row] - mean) / deviation, 0.0]);
        let weights = vec![1; outcomes.n()];
        let coefficients = design.fit(&weights, [0.0; 2]).map_err(of_imputation)?;
        let (times, hazard) = design.cumulative_hazard(&weights, coefficients).map_err(of_imputation)?;
        Ok(Self { hazard: CumulativeHazard { times, hazard }, slope: (coefficients[0] / deviation, mean) })
    }

    /// The event time after `censored_at` of a sample with this prediction whose hazard is multiplied by exp(`delta`); `None`
    /// if there is none. `exponential` is a draw from the exponential distribution with mean 1.
    pub(super) fn draw(&self, censored_at: f64, prediction: f64, delta: f64, exponential: f64) -> Option<f64> {
        let (slope, mean) = self.slope;
        self.hazard.time_of_growth(censored_at, exponential / (slope * (prediction - mean) + delta).exp())
    }
}

fn of_imputation(error: MetricError) -> MetricError {
    match error {
        MetricError::CalibrationModel { reason } => MetricError::ImputationModel { reason },
        other => other,
    }
}

/// The event time after `censored_at` by the predicted curve of `row`, its hazard multiplied by exp(`delta`); `None` after
/// `end`. Between two times of the grid the hazard is constant; where the curve falls to 0, survival is linear.
pub(super) fn draw_predicted(
    (curves, reading, row): (&SurvivalCurves, Reading, usize),
    (censored_at, end): (f64, f64),
    delta: f64,
    exponential: f64,
) -> Option<f64> {
    let at_censoring = curves.at(row, censored_at, reading);
    if at_censoring <= 0.0 {
        return Some(censored_at.next_up()); // By the curve the event has happened.
    }
    let target = at_censoring * (-exponential / delta.exp()).exp();
    let (mut from, mut high) = (censored_at, at_censoring);
    let grid = curves.grid();
    let after = grid.partition_point(|time| *time <= censored_at);
    let until = grid.partition_point(|time| *time < end);
    for &to in grid[after..until.max(after)].iter().chain([&end]) {
        let low = curves.at(row, to, reading);
        if low <= target && low < high {
            let fall = |value: f64| if low > 0.0 { (high / value).ln() } else { high - value };
            let drawn = from + (fall(target) / fall(low)).clamp(0.0, 1.0) * (to - from);
            return Some(drawn.max(censored_at.next_up()));
        }
        (from, high) = (to, low);
    }
    None
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::array;

    use super::*;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn a_drawn_time_has_the_survival_of_the_tilted_curve_given_that_of_the_censoring() {
        // S is 0.8 after 1, 0.6 after 2, 0.3 after 4 (of two at risk, one censored at 4).
        let rows = [(1.0, true), (2.0, true), (3.0, false), (4.0, true), (4.0, false)];
        let curve = KaplanMeier::fit(&outcomes(&rows)).unwrap();
        let hazard = CumulativeHazard::of_kaplan_meier(&curve);
        assert_eq!(hazard.times, [1.0, 2.0, 4.0]);
        let s = |t: f64| (-hazard.at(t)).exp();
        for (t, expected) in [(0.0, 1.0), (1.0, 0.8), (2.0, 0.6), (4.0, 0.3), (9.0, 0.3)] {
            assert_relative_eq!(s(t), expected, max_relative = 1e-14);
        }
        assert_relative_eq!(s(1.5), (0.8_f64 * 0.6).sqrt(), max_relative = 1e-14);
        let model = StratumModel { hazard: hazard.clone(), slope: (0.5, 1.0) };
        for (c, delta) in [(0.0, 0.0), (0.4, 1.0), (1.5, -0.7), (2.0, 0.3), (3.9, 0.0)] {
            // The hazard ratio of a prediction of 3 is exp(0.5 (3 - 1)) = e.
            let ratio = (1.0_f64 + delta).exp();
            for u in [0.999, 0.9, 0.7, 0.5, 0.3, 0.05] {
                let survives = |t: f64| (s(t) / s(c)).powf(ratio);
                match model.draw(c, 3.0, delta, -f64::ln(u)) {
                    Some(t) => assert_relative_eq!(survives(t), u, max_relative = 1e-9),
                    None => assert!(u < survives(4.0), "{c} {delta} {u}"),
                }
            }
        }
        assert_eq!(model.draw(4.5, 3.0, 40.0, 1.0), None);
    }

    #[test]
    fn where_kaplan_meier_falls_to_zero_the_hazard_grows_by_one() {
        let curve = KaplanMeier::fit(&outcomes(&[(1.0, true), (3.0, true)])).unwrap();
        let hazard = CumulativeHazard::of_kaplan_meier(&curve);
        assert_relative_eq!(hazard.at(9.0), 1.0 + 2.0_f64.ln(), max_relative = 1e-14);
        assert_relative_eq!(hazard.time_of_growth(2.0, 0.25).unwrap(), 2.5, max_relative = 1e-14);
        assert_eq!((hazard.time_of_growth(2.0, 0.6), hazard.time_of_growth(2.0, f64::INFINITY)), (None, None));
        assert_eq!(hazard.time_of_growth(3.0, 0.0), None);
        // Not at the time of the censoring, until which there was no event.
        assert_eq!(hazard.time_of_growth(2.0, 0.0), Some(2.0_f64.next_up()));
    }

    #[test]
    fn an_event_at_time_zero_is_no_division_by_zero() {
        let curve = KaplanMeier::fit(&outcomes(&[(0.0, true), (2.0, true), (2.0, false)])).unwrap();
        let hazard = CumulativeHazard::of_kaplan_meier(&curve);
        assert_relative_eq!((-hazard.at(0.0)).exp(), 2.0 / 3.0, max_relative = 1e-14);
        assert!(hazard.time_of_growth(0.0, 0.1).is_some_and(|t| t > 0.0 && t < 2.0));
    }

    #[test]
    fn the_predicted_curve_of_a_constant_hazard_gives_exponential_times() {
        let grid = [0.0, 0.5, 1.0, 2.0, 4.0];
        let survival = grid.map(|t: f64| (-0.3 * t).exp());
        let curves = SurvivalCurves::new(grid.to_vec(), array![survival]).unwrap();
        let draw =
            |c: f64, delta: f64, e: f64| draw_predicted((&curves, Reading::ConstantHazard, 0), (c, 3.5), delta, e);
        for (c, delta, e) in [(0.0, 0.0, 0.2), (0.7, 1.0, 1.0), (1.2, -1.0, 0.1), (3.0, 2.0, 0.4)] {
            let expected = c + e / (0.3 * f64::exp(delta));
            assert_relative_eq!(draw(c, delta, e).unwrap(), expected, max_relative = 1e-12);
        }
        assert_eq!(draw(1.0, 0.0, 0.76), None);
        assert!(draw(1.0, 0.0, 0.74).is_some_and(|t| t < 3.5));
    }

    #[test]
    fn a_flat_part_of_a_predicted_curve_has_no_event_and_zero_survival_an_event_at_once() {
        let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0, 3.0], array![[1.0, 1.0, 0.5, 0.0]]).unwrap();
        let draw = |c: f64, delta: f64| draw_predicted((&curves, Reading::Linear, 0), (c, 9.0), delta, 1.0);
        assert_relative_eq!(draw(0.2, 45.0).unwrap(), 1.0, max_relative = 1e-12);
        assert_eq!(draw(0.2, -45.0), Some(3.0));
        assert_eq!(draw(3.5, 0.0), Some(3.5_f64.next_up()));
    }
}
