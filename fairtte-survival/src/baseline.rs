//! The baseline hazard of a Cox model, fitted on the training part (Breslow 1972, J. R. Stat. Soc. B 34; Efron 1977,
//! J. Am. Stat. Assoc. 72; Kvamme, Borgan & Scheel 2019, section 3.3 for networks that read the time).
//!
//! At every event time t with d events, r = sum over the risk set (observed time >= t) of exp(g):
//! Breslow: dH(t) = d / r. Efron: dH(t) = sum_{l < d} 1 / (r - (l / d) `r_D`), `r_D` the sum over the d events.
//! g is g(x), or g(t, x) where the network reads the time. Sums run in logarithms and in `f64`: outputs of +-100 neither
//! overflow nor vanish. Blocks of samples are added one after the other, so that no matrix of all samples and times exists.
//! Golden values: pycox 0.3.0 `compute_baseline_hazards`; R survival 3.5.3 `survfit` and scikit-survival 0.28.

use fairtte_metrics::Outcomes;
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::SurvivalError;

/// How several events at one time are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TiedTimes {
    /// Efron: averages over the possible orders of the tied events (the default of R).
    #[default]
    Efron,
    /// Breslow: compares each of them with the whole risk set.
    Breslow,
}

/// Logarithm of the increment of the cumulative baseline hazard at every event time of the training part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Baseline {
    times: Vec<f64>,
    log_hazards: Vec<f64>,
}

/// The form of a baseline in a file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    times: Vec<f64>,
    log_hazards: Vec<f64>,
}

impl TryFrom<Written> for Baseline {
    type Error = String;

    fn try_from(Written { times, log_hazards }: Written) -> Result<Self, String> {
        if times.is_empty() || times.len() != log_hazards.len() {
            let (n, m) = (times.len(), log_hazards.len());
            return Err(format!(
                "number of times in a baseline: {n}, of hazards: {m}; expected equal numbers, at least 1"
            ));
        }
        let ascend = times[0] >= 0.0 && times.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || times.iter().chain(&log_hazards).any(|x| !x.is_finite()) {
            return Err("a baseline has times that do not ascend from 0, or numbers that are not finite".to_owned());
        }
        Ok(Self { times, log_hazards })
    }
}

impl Baseline {
    /// The distinct event times of the training part, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Logarithms of the increments at [`times`](Self::times).
    pub fn log_hazards(&self) -> &[f64] {
        &self.log_hazards
    }

    /// Cumulative baseline hazard at [`times`](Self::times).
    pub fn cumulative(&self) -> Vec<f64> {
        self.log_cumulative().into_iter().map(f64::exp).collect()
    }

    /// Its logarithm, which stays finite where outputs are large.
    pub(crate) fn log_cumulative(&self) -> Vec<f64> {
        let mut sum = LogSum::EMPTY;
        let add = |log_hazard: &f64| {
            sum.add(*log_hazard);
            sum.value()
        };
        self.log_hazards.iter().map(add).collect()
    }

    /// Number of event times up to `time`.
    pub(crate) fn n_until(&self, time: f64) -> usize {
        self.times.partition_point(|event_time| *event_time <= time)
    }
}

/// A log-sum-exp to which terms are added one by one.
#[derive(Clone, Copy, Debug)]
struct LogSum {
    largest: f64,
    sum: f64,
}

impl LogSum {
    const EMPTY: Self = Self { largest: f64::NEG_INFINITY, sum: 0.0 };

    fn merge(&mut self, other: Self) {
        if other.sum == 0.0 {
            return; // empty; a NaN is propagated
        }
        let largest = self.largest.max(other.largest);
        self.sum = self.sum * (self.largest - largest).exp() + other.sum * (other.largest - largest).exp();
        self.largest = largest;
    }

    fn add(&mut self, x: f64) {
        self.merge(Self { largest: x, sum: 1.0 });
    }

    fn value(self) -> f64 {
        self.largest + self.sum.ln()
    }
}

/// An accumulator for a baseline, to which blocks of training samples are added.
#[derive(Clone, Debug)]
pub struct BaselineFit {
    times: Vec<f64>,
    n_events: Vec<usize>,
    at_risk: Vec<LogSum>,
    tied: Vec<LogSum>,
    ties: TiedTimes,
    reads_time: bool,
}

impl BaselineFit {
    /// Takes the event times of `train`; `reads_time`: outputs have one column per event time instead of one column.
    pub fn new(train: &Outcomes, ties: TiedTimes, reads_time: bool) -> Self {
        let events = train.time().iter().zip(train.event()).filter(|(_, event)| **event);
        let mut all: Vec<f64> = events.map(|(time, _)| *time).collect();
        all.sort_by(f64::total_cmp);
        let (event_times, n_events): (Vec<f64>, Vec<usize>) =
            all.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|tied| (tied[0], tied.len())).unzip();
        let empty = vec![LogSum::EMPTY; event_times.len()];
        Self { at_risk: empty.clone(), tied: empty, times: event_times, n_events, ties, reads_time }
    }

    /// The distinct event times, ascending, at which a network that reads the time is evaluated.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Adds training samples: outputs `[n, 1]` or `[n, n_times]`, observed times and event indicators `[n]`.
    /// Cost O(n log `n_times`), or O(n `n_times`) where outputs depend on the time.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn add(&mut self, outputs: &ArrayView2<'_, f32>, time: &[f64], event: &[bool]) {
        assert_eq!((outputs.nrows(), time.len()), (time.len(), event.len()), "one time and event per row of outputs");
        let width = if self.reads_time { self.times.len() } else { 1 };
        assert_eq!(outputs.ncols(), width, "one output per sample, or per event time if the network reads the time");
        for ((row, &time), &event) in outputs.rows().into_iter().zip(time).zip(event) {
            let n_at_risk = self.times.partition_point(|event_time| *event_time <= time);
            let Some(last) = n_at_risk.checked_sub(1) else { continue };
            if self.reads_time {
                for (sum, output) in self.at_risk[..n_at_risk].iter_mut().zip(row) {
                    sum.add(f64::from(*output));
                }
            } else {
                self.at_risk[last].add(f64::from(row[0])); // earlier times follow in `finish`
                if event {
                    self.tied[last].add(f64::from(row[0]));
                }
            }
        }
    }

    /// The baseline of all samples added.
    ///
    /// # Errors
    /// [`SurvivalError::BaselineNotFinite`] if an output was not.
    pub fn finish(mut self) -> Result<Baseline, SurvivalError> {
        if !self.reads_time {
            let mut later = LogSum::EMPTY;
            for sum in self.at_risk.iter_mut().rev() {
                sum.merge(later);
                later = *sum;
            }
        }
        let log_hazard = |k: usize| {
            let (n_events, at_risk) = (self.n_events[k] as f64, self.at_risk[k].value());
            if self.ties == TiedTimes::Breslow || self.reads_time {
                return n_events.ln() - at_risk;
            }
            let share = (self.tied[k].value() - at_risk).exp();
            let terms = (0..self.n_events[k]).map(|l| 1.0 / (1.0 - l as f64 / n_events * share));
            terms.sum::<f64>().ln() - at_risk
        };
        let log_hazards: Vec<f64> = (0..self.times.len()).map(log_hazard).collect();
        if let Some(k) = log_hazards.iter().position(|h| !h.is_finite()) {
            return Err(SurvivalError::BaselineNotFinite { time: self.times[k] });
        }
        Ok(Baseline { times: self.times, log_hazards })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;
    use ndarray::Array2;

    fn fit(outputs: &[f32], ties: TiedTimes) -> Result<Baseline, SurvivalError> {
        let train = Outcomes::new(vec![1.0, 2.0, 2.0, 3.0], vec![false, true, true, true]).unwrap();
        let mut fit = BaselineFit::new(&train, ties, false);
        let outputs = Array2::from_shape_vec((4, 1), outputs.to_vec()).unwrap();
        fit.add(&outputs.view(), train.time(), train.event());
        fit.finish()
    }

    // Computed by hand: exp(g) = 8, 1, 2, 4. At time 2 the risk set has 7, the two events 3; at time 3 there are 4.
    #[test]
    fn both_rules_worked_by_hand() {
        let ln_2 = std::f32::consts::LN_2;
        let outputs = [3.0 * ln_2, 0.0, ln_2, 2.0 * ln_2];
        let breslow = fit(&outputs, TiedTimes::Breslow).unwrap();
        assert_eq!(breslow.times(), [2.0, 3.0]);
        for (found, expected) in breslow.cumulative().iter().zip([2.0 / 7.0, 2.0 / 7.0 + 0.25]) {
            assert!((found - expected).abs() < 1e-7, "{found} {expected}");
        }
        let efron = fit(&outputs, TiedTimes::Efron).unwrap();
        let first = 1.0 / 7.0 + 1.0 / 5.5;
        for (found, expected) in efron.cumulative().iter().zip([first, first + 0.25]) {
            assert!((found - expected).abs() < 1e-7, "{found} {expected}");
        }
    }

    // A network that was evaluated at other times than the event times: the first columns would be taken for them.
    #[test]
    #[should_panic(expected = "or per event time if the network reads the time")]
    fn outputs_at_other_times_than_the_event_times_are_refused() {
        let train = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false]).unwrap();
        let mut fit = BaselineFit::new(&train, TiedTimes::Breslow, true);
        fit.add(&Array2::zeros((3, 3)).view(), train.time(), train.event());
    }

    #[test]
    fn an_output_that_is_no_number_is_an_error_with_the_first_time_it_spoils() {
        let error = fit(&[0.0, 0.0, 0.0, f32::NAN], TiedTimes::Efron).unwrap_err();
        let expected =
            "baseline hazard at time 2 is not a finite number, expected finite outputs for all training samples";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_file_that_is_no_baseline_is_refused() {
        let read = |text: &str| serde_json::from_str::<Baseline>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"times": [1.0, 2.0], "log_hazards": [-1.0, 0.5]}"#).unwrap().times(), [1.0, 2.0]);
        let short = read(r#"{"times": [1.0, 2.0], "log_hazards": [-1.0]}"#).unwrap_err();
        assert!(short.starts_with("number of times in a baseline: 2, of hazards: 1"), "{short}");
        assert!(read(r#"{"times": [2.0, 1.0], "log_hazards": [0.0, 0.0]}"#).unwrap_err().contains("do not ascend"));
        assert!(read(r#"{"times": [], "log_hazards": []}"#).is_err());
    }
}
