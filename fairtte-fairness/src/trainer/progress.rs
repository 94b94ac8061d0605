//! What a training reports: sums over an epoch, and one report per epoch.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::monitor::Validation;
use crate::strategies::{Clock, Phase, StepReport, Watch, Watched};
pub use fairtte_records::EpochReport;

/// What is done of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partial {
    /// Batches.
    pub(crate) step: usize,
    /// Sums over them.
    pub(crate) totals: Totals,
}

/// Sums over the batches of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    n_steps: usize,
    n_without_loss: usize,
    /// Batches whose gradients overflowed in f16.
    #[serde(default)]
    n_overflowed: usize,
    task_loss: f64,
    objective: f64,
    gradient_norm: f64,
    absent_groups: usize,
    pub(crate) terms: Vec<(String, f64)>,
    /// Sum of every term, and number of batches that have it.
    #[serde(default)]
    sums: BTreeMap<String, (f64, usize)>,
    rate: f64,
    pub(crate) seconds: f64,
    data_seconds: f64,
    forward_seconds: f64,
    backward_seconds: f64,
    update_seconds: f64,
    pub(crate) validation_seconds: f64,
}

/// The time that a batch took.
pub(crate) struct Took<'a> {
    /// Making it.
    pub(crate) data: Duration,
    /// The step.
    pub(crate) step: Duration,
    /// The times of the step's parts.
    pub(crate) clock: &'a Clock,
}

impl Totals {
    /// Counts a batch without a sample that has a loss term.
    pub(crate) fn skip(&mut self) {
        self.n_steps += 1;
        self.n_without_loss += 1;
    }

    /// Counts a batch whose gradients overflowed in f16; `terms` replace those of the same names.
    pub(crate) fn overflow(&mut self, terms: impl IntoIterator<Item = (String, f64)>, took: &Took<'_>) {
        self.n_steps += 1;
        self.n_overflowed += 1;
        for (name, value) in terms {
            self.terms.retain(|(known, _)| *known != name);
            self.terms.push((name, value));
        }
        self.add_times(took);
    }

    /// Adds a batch.
    pub(crate) fn add(&mut self, step: StepReport, rate: f64, took: &Took<'_>) {
        self.n_steps += 1;
        self.task_loss += step.task_loss;
        self.objective += step.objective;
        self.gradient_norm += step.gradient_norm;
        self.absent_groups += step.absent_groups;
        for (name, value) in &step.terms {
            let (sum, n) = self.sums.entry(name.clone()).or_default();
            (*sum, *n) = (*sum + value, *n + 1);
        }
        self.terms = step.terms;
        self.rate = rate;
        self.add_times(took);
    }

    fn add_times(&mut self, took: &Took<'_>) {
        let (backward, update) = (took.clock.seconds(Phase::Backward), took.clock.seconds(Phase::Update));
        self.data_seconds += took.data.as_secs_f64();
        self.forward_seconds += (took.step.as_secs_f64() - backward - update).max(0.0);
        self.backward_seconds += backward;
        self.update_seconds += update;
    }

    /// The results of the strategy's watches, with `state` the values of its state; a term of the steps is the mean
    /// over the batches that have it.
    pub(crate) fn watched(&self, watches: &[Watch], state: &[(String, f64)]) -> Vec<Watched> {
        let means = self.sums.iter().map(|(name, (sum, n))| (name.clone(), sum / *n as f64));
        let values = state.iter().cloned().chain(means).collect();
        watches.iter().map(|watch| watch.look(&values)).collect()
    }

    pub(crate) fn report(self, epoch: usize, validation: Validation, watched: Vec<Watched>, best: bool) -> EpochReport {
        let n_with_loss = (self.n_steps - self.n_without_loss - self.n_overflowed).max(1) as f64;
        EpochReport {
            epoch: epoch + 1,
            n_steps: self.n_steps,
            train_loss: self.task_loss / n_with_loss,
            batches_without_loss: self.n_without_loss,
            objective: self.objective / n_with_loss,
            gradient_norm: self.gradient_norm / n_with_loss,
            rate: self.rate,
            validation,
            best,
            absent_groups: self.absent_groups,
            terms: self.terms.into_iter().collect(),
            watched,
            ended: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            seconds: self.seconds,
            data_seconds: self.data_seconds,
            forward_seconds: self.forward_seconds,
            backward_seconds: self.backward_seconds,
            update_seconds: self.update_seconds,
            validation_seconds: self.validation_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use approx::assert_relative_eq;

    use super::*;

    fn step(task_loss: f64, objective: f64, gradient_norm: f64, absent_groups: usize, weight: f64) -> StepReport {
        let terms = vec![("weight".to_owned(), weight)];
        StepReport { task_loss, objective, gradient_norm, absent_groups, terms }
    }

    #[test]
    fn an_epoch_reports_the_sums_and_means_of_its_batches_and_the_terms_of_the_last() {
        let clock = Clock::default();
        clock.time(Phase::Backward, || std::thread::sleep(Duration::from_millis(4)));
        clock.time(Phase::Update, || std::thread::sleep(Duration::from_millis(2)));
        let took = Took { data: Duration::from_millis(250), step: Duration::from_secs(5), clock: &clock };
        let mut totals = Totals::default();
        totals.add(step(1.0, 2.0, 4.0, 1, 0.25), 1.0, &took);
        // A batch without a loss term takes no step.
        totals.skip();
        totals.add(step(2.0, 7.0, 1.0, 4, 0.75), 0.5, &took);
        let report = totals.report(4, Validation::default(), Vec::new(), true);
        assert_eq!((report.epoch, report.n_steps, report.batches_without_loss, report.absent_groups), (5, 3, 1, 5));
        // (1 + 2) / 2, (2 + 7) / 2, (4 + 1) / 2.
        assert_eq!((report.train_loss, report.objective, report.gradient_norm, report.rate), (1.5, 4.5, 2.5, 0.5));
        assert_eq!(report.terms, BTreeMap::from([("weight".to_owned(), 0.75)]));
        let (backward, update) = (clock.seconds(Phase::Backward), clock.seconds(Phase::Update));
        assert_relative_eq!(report.data_seconds, 0.5, max_relative = 1e-12);
        assert_relative_eq!(report.backward_seconds, 2.0 * backward, max_relative = 1e-12);
        assert_relative_eq!(report.update_seconds, 2.0 * update, max_relative = 1e-12);
        assert_relative_eq!(report.forward_seconds, 10.0 - 2.0 * (backward + update), max_relative = 1e-12);
    }

    #[test]
    fn an_epoch_without_any_loss_reports_zero_and_an_older_line_a_rate_of_one() {
        let mut totals = Totals::default();
        totals.skip();
        let report = totals.report(0, Validation::default(), Vec::new(), false);
        assert_eq!((report.train_loss, report.batches_without_loss, report.forward_seconds), (0.0, 1, 0.0));
        // All that there is to say of an epoch in which every batch overflowed.
        let clock = Clock::default();
        let took = Took { data: Duration::from_millis(250), step: Duration::from_secs(1), clock: &clock };
        let mut totals = Totals::default();
        for n in 1..=2 {
            totals.overflow([("steps left out".to_owned(), f64::from(n))], &took);
        }
        let overflowed = totals.report(0, Validation::default(), Vec::new(), false);
        assert_eq!((overflowed.n_steps, overflowed.train_loss, overflowed.batches_without_loss), (2, 0.0, 0));
        assert_eq!((overflowed.data_seconds, overflowed.forward_seconds), (0.5, 2.0), "they took time all the same");
        assert_eq!(overflowed.terms, BTreeMap::from([("steps left out".to_owned(), 2.0)]));
        let mut line = serde_json::to_value(EpochReport { rate: 0.5, ..report }).unwrap();
        line.as_object_mut().unwrap().remove("rate");
        assert_eq!(serde_json::from_value::<EpochReport>(line).unwrap().rate.to_bits(), 1.0_f64.to_bits());
    }
}
