//! The iterations that SWAD averages: a pure computation, without a network.
//!
//! Iterations between two evaluations form a segment, closed by the loss of the evaluation at its end (a loss that is not
//! finite counts as infinite). With Ns = `n_converge`, Ne = `n_tolerance`, r = `tolerance_ratio` and segments from 1:
//! start: the first evaluation k >= Ns with finite losses where the smallest of the last Ns is that of segment k - Ns +
//! 1 (ties count); this is the start segment, and threshold = mean + r |mean| of the Ns losses.
//! stop: the first later evaluation at which the last Ne losses all exceed the threshold.
//! end: the last segment from the start on whose loss does not exceed the threshold.
//! Averaged are all iterations from start to end, each with the same weight, regardless of the length of its segment.
//! Not converged: the last segment.
//!
//! The loss of the start segment never exceeds the threshold, so a window of Ne losses above it is after the start: it is
//! enough to count the segments since the last one that was not above. Memory: Ns means before the start; then one mean
//! of the iterations certainly averaged and one of those pending a later segment below the threshold.
//!
//! Where we differ from Algorithm 1: it takes the last segment when training ends before the stop, and with it a tail above
//! the threshold; and it weights segments, not iterations, where they differ in length.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Weights that can be averaged.
pub(crate) trait Averaged: Clone {
    /// self + (other - self) * share, share in (0, 1].
    #[must_use]
    fn toward(self, other: &Self, share: f64) -> Self;
}

/// A mean of weights over iterations.
#[derive(Clone, Debug)]
pub(crate) struct Mean<W> {
    pub(crate) weights: W,
    /// Number of iterations, at least 1.
    pub(crate) n: u64,
}

impl<W: Averaged> Mean<W> {
    fn joined(self, other: &Self) -> Self {
        let n = self.n + other.n;
        Self { weights: self.weights.toward(&other.weights, other.n as f64 / n as f64), n }
    }

    fn add_to(place: &mut Option<Self>, other: Self) {
        *place = Some(match place.take() {
            Some(mean) => mean.joined(&other),
            None => other,
        });
    }
}

/// The start of the averaging and the loss up to which it continues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    /// Evaluation at which it was found, from 1.
    pub(crate) found_at: usize,
    /// First averaged segment, from 1.
    pub(crate) segment: usize,
    /// Largest loss of the valley.
    pub(crate) threshold: f64,
    /// Last segment that is not above the threshold.
    pub(crate) end: usize,
}

/// The counters, without the weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counters {
    /// Number of evaluations.
    pub(crate) n_evaluations: usize,
    /// Losses of the segments in `Valley::recent`.
    pub(crate) recent_losses: VecDeque<Option<f64>>,
    /// The start, once it is found.
    pub(crate) start: Option<Start>,
    /// Evaluation at which the valley ended, from 1.
    pub(crate) stopped_at: Option<usize>,
}

/// The search for the valley, with the means that the result may need.
#[derive(Clone, Debug)]
pub(crate) struct Valley<W> {
    n_converge: usize,
    n_tolerance: usize,
    tolerance_ratio: f64,
    pub(crate) counters: Counters,
    /// Iterations since the last evaluation.
    pub(crate) open: Option<Mean<W>>,
    /// The last Ns segments, oldest first; empty after the start.
    pub(crate) recent: VecDeque<Mean<W>>,
    /// From the start segment to the end segment.
    pub(crate) running: Option<Mean<W>>,
    /// Segments above the threshold since then.
    pub(crate) pending: Option<Mean<W>>,
}

impl<W: Averaged> Valley<W> {
    pub(crate) fn new(n_converge: usize, n_tolerance: usize, tolerance_ratio: f64) -> Self {
        let (open, recent, running, pending) = (None, VecDeque::new(), None, None);
        Self { n_converge, n_tolerance, tolerance_ratio, counters: Counters::default(), open, recent, running, pending }
    }

    /// Adds the weights after one iteration.
    pub(crate) fn add(&mut self, weights: W) {
        Mean::add_to(&mut self.open, Mean { weights, n: 1 });
    }

    /// Closes the segment with the loss of its evaluation; one without an iteration has no effect.
    pub(crate) fn evaluate(&mut self, loss: f64) {
        let Some(segment) = self.open.take() else { return };
        self.counters.n_evaluations += 1;
        if self.counters.stopped_at.is_some() {
            return;
        }
        let k = self.counters.n_evaluations;
        if self.counters.start.is_some() {
            self.go_on(segment, loss, k);
            let above = self.counters.start.map_or(0, |start| k - start.end);
            self.counters.stopped_at = (above >= self.n_tolerance).then_some(k);
            return;
        }
        self.recent.push_back(segment);
        self.counters.recent_losses.push_back(Some(loss).filter(|loss| loss.is_finite()));
        if self.recent.len() > self.n_converge {
            self.recent.pop_front();
            self.counters.recent_losses.pop_front();
        }
        let losses: Option<Vec<f64>> = self.counters.recent_losses.iter().copied().collect();
        if let Some(losses) = losses
            && losses.len() == self.n_converge
            && losses.iter().all(|loss| losses[0] <= *loss)
        {
            let mean = losses.iter().sum::<f64>() / losses.len() as f64;
            let segment = k + 1 - losses.len();
            let threshold = mean + self.tolerance_ratio * mean.abs();
            self.counters.start = Some(Start { found_at: k, segment, threshold, end: segment });
            self.counters.recent_losses.clear();
            for ((mean, loss), at) in std::mem::take(&mut self.recent).into_iter().zip(losses).zip(segment..) {
                self.go_on(mean, loss, at);
            }
        }
    }

    /// Processes segment `at`, from the start segment on.
    fn go_on(&mut self, segment: Mean<W>, loss: f64, at: usize) {
        let Some(start) = &mut self.counters.start else { return };
        Mean::add_to(&mut self.pending, segment);
        // The mean of equal losses may be a rounding error below them; the start segment belongs to the valley by
        // definition.
        if loss <= start.threshold || at == start.segment {
            start.end = at;
            if let Some(pending) = self.pending.take() {
                Mean::add_to(&mut self.running, pending);
            }
        }
    }

    /// First and last averaged segment, from 1; `None` before the first evaluation.
    pub(crate) fn segments(&self) -> Option<(usize, usize)> {
        match &self.counters.start {
            Some(start) => Some((start.segment, start.end)),
            None => Some((self.counters.n_evaluations, self.counters.n_evaluations)).filter(|(last, _)| *last > 0),
        }
    }

    /// The averaged weights: of the valley, or of the last segment if none was found; `None` before the first evaluation.
    pub(crate) fn average(&self) -> Option<&Mean<W>> {
        self.running.as_ref().or(self.recent.back())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    #![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
    use super::*;
    use approx::assert_relative_eq;
    use serde_json::Value as Json;

    impl Averaged for f64 {
        fn toward(self, other: &Self, share: f64) -> Self {
            self + (other - self) * share
        }
    }

    /// One weight per segment: a mean of them shows which segments are in it.
    impl Averaged for Vec<f64> {
        fn toward(self, other: &Self, share: f64) -> Self {
            self.iter().zip(other).map(|(a, b)| a + (b - a) * share).collect()
        }
    }

    fn valley<W: Averaged>(inputs: &Json) -> Valley<W> {
        let count = |key: &str| usize::try_from(inputs[key].as_u64().unwrap()).unwrap();
        Valley::new(count("n_converge"), count("n_tolerance"), inputs["tolerance_ratio"].as_f64().unwrap())
    }

    fn losses(inputs: &Json) -> Vec<f64> {
        let losses = inputs["validation_loss"].as_array().unwrap();
        losses.iter().map(|loss| loss.as_f64().unwrap_or(f64::NAN)).collect()
    }

    fn count(json: &Json) -> Option<usize> {
        json.as_u64().map(|n| usize::try_from(n).unwrap())
    }

    fn check_segments<W: Averaged>(valley: &Valley<W>, case: &Json) -> usize {
        let expected = &case["expected"];
        let name = &case["name"];
        let Counters { start, stopped_at, .. } = valley.counters;
        assert_eq!(start.map(|start| start.found_at), count(&expected["converged_at_evaluation"]), "{name}");
        assert_eq!(stopped_at, count(&expected["stopped_at_evaluation"]), "{name}");
        let (first, last) = valley.segments().unwrap();
        assert_eq!(Some(first), count(&expected["start_segment"]), "{name}");
        assert_eq!(Some(last), count(&expected["end_segment"]), "{name}");
        let segments: Vec<usize> = serde_json::from_value(expected["averaged_segments"].clone()).unwrap();
        assert_eq!((first..=last).collect::<Vec<_>>(), segments, "{name}");
        match expected["threshold"].as_f64() {
            Some(threshold) => {
                // Written with 12 digits.
                assert_relative_eq!(start.unwrap().threshold, threshold, max_relative = 1e-11);
            }
            None => assert!(start.is_none(), "{name}"),
        }
        let status = match (start, stopped_at) {
            (None, _) => "not converged: last segment only",
            (Some(_), None) => "valley still alive at the end of training",
            (Some(_), Some(_)) => "valley dead, training stops",
        };
        if let Some(expected) = expected["status"].as_str() {
            assert_eq!(status, expected, "{name}");
        }
        6 + segments.len()
    }

    // Not compared: `end_segment_algorithm_1` (Algorithm 1 keeps the overfitted tail when training ends first), the weights
    // of the released code, and the mean of segment means: conventions that are not used here.
    #[test]
    fn segments_and_weights_are_those_of_the_worked_cases() {
        let golden: Json = serde_json::from_str(include_str!("../../../tests/golden/swad.json")).unwrap();
        let (mut n_compared, mut n_cases) = (0, 0);
        for case in golden["cases"].as_array().unwrap() {
            let (inputs, losses) = (&case["inputs"], losses(&case["inputs"]));
            n_cases += 1;
            if let Some(iterations) = inputs["weight_after_iteration"].as_array() {
                let mut valley = valley::<f64>(inputs);
                let ends: Vec<usize> = serde_json::from_value(inputs["evaluation_after_iterations"].clone()).unwrap();
                for (i, weight) in iterations.iter().enumerate() {
                    valley.add(weight.as_f64().unwrap());
                    if let Some(k) = ends.iter().position(|end| *end == i + 1) {
                        valley.evaluate(losses[k]);
                    }
                }
                n_compared += check_segments(&valley, case) + 2;
                let average = valley.average().unwrap();
                let expected = case["expected"]["averaged_weight"].as_f64().unwrap();
                assert_relative_eq!(average.weights, expected, max_relative = 1e-9);
                let n_iterations = case["expected"]["averaged_iterations"].as_array().unwrap().len();
                assert_eq!(usize::try_from(average.n).unwrap(), n_iterations);
                continue;
            }
            let mut valley = valley::<Vec<f64>>(inputs);
            for (segment, loss) in losses.iter().enumerate() {
                let mut weights = vec![0.0; losses.len()];
                weights[segment] = 1.0;
                valley.add(weights);
                valley.evaluate(*loss);
                let n_held = valley.recent.len()
                    + [&valley.open, &valley.running, &valley.pending].iter().filter(|mean| mean.is_some()).count();
                let most = if valley.counters.start.is_some() { 2 } else { valley.n_converge };
                assert!(n_held <= most, "{n_held} means are held, at most {most} are needed");
            }
            n_compared += check_segments(&valley, case);
            let expected = case["expected"]["segment_weight"].as_array().unwrap();
            for (found, expected) in valley.average().unwrap().weights.iter().zip(expected) {
                assert!((found - expected.as_f64().unwrap()).abs() < 1e-12, "{}: {found} {expected}", case["name"]);
                n_compared += 1;
            }
        }
        println!("SWAD: {n_compared} values of {n_cases} cases compared");
        assert_eq!((n_cases, n_compared), (17, 310));
    }

    #[test]
    fn an_evaluation_without_an_iteration_has_no_effect() {
        let mut valley: Valley<f64> = Valley::new(1, 1, 0.0);
        valley.evaluate(0.5);
        assert!(valley.average().is_none() && valley.segments().is_none());
        valley.add(3.0);
        valley.evaluate(0.5);
        assert_eq!((valley.average().unwrap().weights, valley.segments()), (3.0, Some((1, 1))));
    }
}
