//! The partial likelihood of Cox as a function of one log hazard per sample, with its gradient.
//!
//! With log hazards f, events at the times `t_k`, `d_k` of them, and `S_k` the sum of exp(f) over the samples at risk at `t_k` (Breslow's
//! handling of ties):
//!
//! ```text
//! loss         = - sum over events i of f_i - log S(T_i)
//! - d loss/d f_i = event_i - exp(f_i) sum over t_k <= T_i of d_k / S_k
//! ```
//!
//! Two walks through the samples in the order of their times: O(n) after one sort.
//! Sources: Cox 1972; Ridgeway 1999 (boosting it); the same sums as `CoxPH` of scikit-survival 0.28, which computes them in O(n^2).

use fairtte_metrics::Outcomes;
use serde::{Deserialize, Serialize};

/// Difference of log hazards from which exp is not used: exp(-500) is far from underflow, also after a sum of 2^32 terms.
const WIDE: f64 = 500.0;

/// Samples by time.
pub(super) struct PartialLikelihood {
    /// Rows, ascending by time.
    rows: Vec<u32>,
    /// Different times, ascending.
    times: Vec<Tied>,
    event: Vec<bool>,
}

/// Samples with the same time.
struct Tied {
    time: f64,
    /// Where the next begin.
    to: usize,
    n_events: u32,
}

/// The cumulative baseline hazard by Breslow's estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Baseline {
    /// Event times, ascending.
    pub(super) times: Vec<f64>,
    /// The logarithm of the cumulative baseline hazard from each on.
    pub(super) log_hazard: Vec<f64>,
}

impl PartialLikelihood {
    /// Of these rows of the outcomes.
    pub(super) fn new(outcomes: &Outcomes, mut rows: Vec<u32>) -> Self {
        let time = outcomes.time();
        rows.sort_by(|a, b| time[*a as usize].total_cmp(&time[*b as usize]));
        let (mut times, mut to) = (Vec::new(), 0);
        for tied in rows.chunk_by(|a, b| time[*a as usize].to_bits() == time[*b as usize].to_bits()) {
            to += tied.len();
            let n_events = tied.iter().map(|row| u32::from(outcomes.event()[*row as usize])).sum();
            times.push(Tied { time: time[tied[0] as usize], to, n_events });
        }
        let event = rows.iter().map(|row| outcomes.event()[*row as usize]).collect();
        Self { rows, times, event }
    }

    /// The loss at log hazards f, `[n]`.
    pub(super) fn loss(&self, f: &[f64]) -> f64 {
        self.walk(f, None)
    }

    /// The loss, and its negative gradient into the places of the rows.
    pub(super) fn negative_gradient(&self, f: &[f64], gradient: &mut [f64]) -> f64 {
        self.walk(f, Some(gradient))
    }

    fn walk(&self, f: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let of_rows = self.rows.iter().map(|row| f[*row as usize]);
        let (least, most) =
            of_rows.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), f| (low.min(f), high.max(f)));
        if most - least < WIDE { self.scaled(f, most, gradient) } else { self.in_logarithms(f, gradient) }
    }

    /// With hazards divided by the highest.
    fn scaled(&self, f: &[f64], most: f64, gradient: Option<&mut [f64]>) -> f64 {
        let hazard: Vec<f64> = self.rows.iter().map(|row| (f[*row as usize] - most).exp()).collect();
        let mut at_risk = vec![0.0; self.times.len()];
        let mut sum = 0.0;
        for (k, tied) in self.tied().rev() {
            sum += hazard[tied].iter().sum::<f64>();
            at_risk[k] = sum;
        }
        let mut loss = 0.0;
        for (k, tied) in self.tied().filter(|(k, _)| self.times[*k].n_events > 0) {
            let log_at_risk = at_risk[k].ln() + most;
            loss += tied.filter(|i| self.event[*i]).map(|i| log_at_risk - f[self.rows[i] as usize]).sum::<f64>();
        }
        if let Some(gradient) = gradient {
            let mut cumulative = 0.0;
            for (k, tied) in self.tied() {
                cumulative += f64::from(self.times[k].n_events) / at_risk[k];
                for i in tied {
                    let event = f64::from(u8::from(self.event[i]));
                    gradient[self.rows[i] as usize] = event - hazard[i] * cumulative;
                }
            }
        }
        loss
    }

    /// For log hazards so different that the lower hazards would vanish beside the highest.
    fn in_logarithms(&self, f: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let log_at_risk = self.log_at_risk(f);
        let mut loss = 0.0;
        for (k, tied) in self.tied() {
            loss += tied.filter(|i| self.event[*i]).map(|i| log_at_risk[k] - f[self.rows[i] as usize]).sum::<f64>();
        }
        if let Some(gradient) = gradient {
            let mut cumulative = f64::NEG_INFINITY;
            for (k, tied) in self.tied() {
                cumulative = log_add(cumulative, f64::from(self.times[k].n_events).ln() - log_at_risk[k]);
                for i in tied {
                    let event = f64::from(u8::from(self.event[i]));
                    gradient[self.rows[i] as usize] = event - (f[self.rows[i] as usize] + cumulative).exp();
                }
            }
        }
        loss
    }

    /// By time, the logarithm of the sum of hazards at risk.
    fn log_at_risk(&self, f: &[f64]) -> Vec<f64> {
        let mut log_at_risk = vec![0.0; self.times.len()];
        let mut sum = f64::NEG_INFINITY;
        for (k, tied) in self.tied().rev() {
            sum = tied.fold(sum, |sum, i| log_add(sum, f[self.rows[i] as usize]));
            log_at_risk[k] = sum;
        }
        log_at_risk
    }

    /// Breslow's estimator of the cumulative baseline hazard, the sum of `d_k / S_k`.
    pub(super) fn baseline(&self, f: &[f64]) -> Baseline {
        let log_at_risk = self.log_at_risk(f);
        let (mut times, mut log_hazard, mut sum) = (Vec::new(), Vec::new(), f64::NEG_INFINITY);
        for (tied, log_at_risk) in self.times.iter().zip(log_at_risk).filter(|(tied, _)| tied.n_events > 0) {
            sum = log_add(sum, f64::from(tied.n_events).ln() - log_at_risk);
            times.push(tied.time);
            log_hazard.push(sum);
        }
        Baseline { times, log_hazard }
    }

    /// The places of the samples of every time.
    fn tied(&self) -> impl DoubleEndedIterator<Item = (usize, std::ops::Range<usize>)> {
        let from = |k: usize| if k == 0 { 0 } else { self.times[k - 1].to };
        (0..self.times.len()).map(move |k| (k, from(k)..self.times[k].to))
    }
}

impl Baseline {
    /// The logarithm of the cumulative baseline hazard at a time; minus infinity before the first event.
    pub(super) fn log_hazard_at(&self, time: f64) -> f64 {
        match self.times.partition_point(|at| *at <= time) {
            0 => f64::NEG_INFINITY,
            n => self.log_hazard[n - 1],
        }
    }
}

/// log(exp(a) + exp(b)).
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use proptest::prelude::*;

    use super::*;

    fn samples() -> impl Strategy<Value = Vec<(u8, bool, f64)>> {
        prop::collection::vec((0..12_u8, any::<bool>(), -3.0..3.0_f64), 1..40)
    }

    fn of(samples: &[(u8, bool, f64)]) -> (PartialLikelihood, Vec<f64>) {
        let outcomes = Outcomes::new(
            samples.iter().map(|(time, _, _)| f64::from(*time)).collect(),
            samples.iter().map(|(_, event, _)| *event).collect(),
        );
        let rows = (0..).take(samples.len()).collect();
        (PartialLikelihood::new(&outcomes.unwrap(), rows), samples.iter().map(|(_, _, f)| *f).collect())
    }

    /// By definition, with a double loop.
    fn loss_by_definition(samples: &[(u8, bool, f64)], f: &[f64]) -> f64 {
        let at_risk = |time: u8| samples.iter().zip(f).filter(move |(other, _)| other.0 >= time);
        let term = |time: u8, own: f64| at_risk(time).map(|(_, f)| f.exp()).sum::<f64>().ln() - own;
        samples.iter().zip(f).filter(|((_, event, _), _)| *event).map(|((time, _, _), f)| term(*time, *f)).sum()
    }

    proptest! {
        #[test]
        fn loss_and_gradient_are_those_of_the_definition_in_both_forms(samples in samples(), shift in -2000.0..2000.0_f64) {
            let (likelihood, f) = of(&samples);
            let expected = loss_by_definition(&samples, &f);
            prop_assert!((likelihood.loss(&f) - expected).abs() < 1e-9 * expected.abs().max(1.0));
            let (mut scaled, mut logarithms) = (vec![f64::NAN; f.len()], vec![f64::NAN; f.len()]);
            // The loss does not change if all log hazards are shifted.
            let shifted: Vec<f64> = f.iter().map(|f| f + shift).collect();
            prop_assert!((likelihood.negative_gradient(&shifted, &mut scaled) - expected).abs() < 1e-8 * expected.abs().max(1.0));
            prop_assert!((likelihood.in_logarithms(&shifted, Some(&mut logarithms)) - expected).abs() < 1e-8 * expected.abs().max(1.0));
            for i in 0..f.len() {
                let at = |step: f64| {
                    let mut moved = f.clone();
                    moved[i] += step;
                    loss_by_definition(&samples, &moved)
                };
                let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
                prop_assert!((scaled[i] + slope).abs() < 1e-6, "{} for {}", scaled[i], -slope);
                prop_assert!((logarithms[i] - scaled[i]).abs() < 1e-9, "{} for {}", logarithms[i], scaled[i]);
            }
        }

        #[test]
        fn the_baseline_is_the_sum_of_events_by_hazards_at_risk(samples in samples()) {
            let (likelihood, f) = of(&samples);
            let baseline = likelihood.baseline(&f);
            for time in 0..13_u8 {
                let at_risk = |time: u8| samples.iter().filter(|s| s.0 >= time).map(|s| s.2.exp()).sum::<f64>();
                let events = samples.iter().filter(|s| s.1 && s.0 <= time);
                let expected: f64 = events.map(|s| 1.0 / at_risk(s.0)).sum();
                let found = baseline.log_hazard_at(f64::from(time) + 0.5).exp();
                prop_assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{} for {}", found, expected);
            }
        }
    }

    #[test]
    fn log_hazards_thousands_apart_give_finite_gradients() {
        let samples = [(1, true, 0.0), (2, true, 3000.0), (3, true, -3000.0), (4, false, 0.0), (5, true, 1.0)];
        let (likelihood, f) = of(&samples);
        let mut gradient = vec![f64::NAN; 5];
        let loss = likelihood.negative_gradient(&f, &mut gradient);
        // First event: 3000 at risk beside 0. Third: 0 and 1 at risk beside -3000. Last: alone at risk.
        let log_sum = 1.0_f64.exp().ln_1p();
        assert!((loss - (3000.0 + 0.0 + (3000.0 + log_sum) + 0.0)).abs() < 1e-9, "{loss}");
        let share = 1.0_f64.exp() / (1.0 + 1.0_f64.exp());
        for (found, expected) in gradient.iter().zip([1.0, -1.0, 1.0, -(1.0 - share), -share]) {
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        }
        assert!(likelihood.baseline(&f).log_hazard.iter().all(|value| value.is_finite()));
    }
}
