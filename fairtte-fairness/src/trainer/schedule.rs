//! Step sizes over a training: a factor of every step size, one value per step of the optimisers.
//!
//! With t the step (counted from 0 over all epochs), w the steps of warm-up and T all steps of all epochs:
//! `constant` is 1; `step` is `factor`^floor(epoch / `every`); `cosine` is floor + (1 - floor) (1 + cos(pi (t - w) / (T - w)))
//! / 2 after the warm-up (Loshchilov & Hutter 2017, arXiv 1608.03983, Equation 5 without restarts). Before step w each is
//! multiplied by (t + 1) / w (Goyal et al. 2017, arXiv 1706.02677, section 2.2).
//!
//! | schedule | setting | default | range | meaning |
//! |---|---|---|---|---|
//! | all | `warm-up` | 0 | >= 0 | steps of the optimisers until the full step size |
//! | `step` | `every` | 10 | >= 1 | epochs between two drops |
//! | `step` | `factor` | 0.1 | in (0, 1] | what each drop multiplies by |
//! | `cosine` | `floor` | 0 | in [0, 1) | factor at the end |
//!
//! Warm-up is a number of steps, not a share of the training, so a training with more epochs continues a shorter one
//! exactly, except under `cosine`. Several batches that make one step have one factor.

use serde::{Deserialize, Serialize};

use crate::{FairnessError, check, check_at_least};

/// How step sizes change over a training; in run files `[training.schedule.cosine]`, ..
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ScheduleConfig {
    /// Constant step sizes.
    Constant(ConstantSchedule),
    /// Step sizes that drop every `every` epochs.
    Step(StepSchedule),
    /// Step sizes that fall along half a cosine until the last epoch.
    Cosine(CosineSchedule),
}

/// Settings of the constant schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ConstantSchedule {
    /// Steps of the optimisers until the full step size.
    pub warm_up: usize,
}

/// Settings of the schedule with drops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StepSchedule {
    /// Steps of the optimisers until the full step size.
    pub warm_up: usize,
    /// Epochs between two drops, at least 1.
    pub every: usize,
    /// What each drop multiplies by, in (0, 1].
    pub factor: f64,
}

/// Settings of the cosine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CosineSchedule {
    /// Steps of the optimisers until the full step size.
    pub warm_up: usize,
    /// Factor at the end, in [0, 1).
    pub floor: f64,
}

impl Default for StepSchedule {
    fn default() -> Self {
        Self { warm_up: 0, every: 10, factor: 0.1 }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Constant(ConstantSchedule::default())
    }
}

/// The position of an optimiser step in a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Epoch, counted from 0.
    pub(crate) epoch: usize,
    /// Step within the epoch, counted from 0.
    pub(crate) step: usize,
    /// Steps of an epoch.
    pub(crate) n_steps: usize,
    /// Largest number of epochs.
    pub(crate) epochs: usize,
}

impl ScheduleConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        match *self {
            Self::Constant(_) => Ok(()),
            Self::Step(StepSchedule { every, factor, .. }) => {
                check_at_least("schedule.step.every", every, 1)?;
                let in_range = factor > 0.0 && factor <= 1.0;
                check("schedule.step.factor", factor, in_range, "a number in (0, 1]")
            }
            Self::Cosine(CosineSchedule { floor, .. }) => {
                check("schedule.cosine.floor", floor, (0.0..1.0).contains(&floor), "a number in [0, 1)")
            }
        }
    }

    /// Whether the step sizes depend on the number of epochs, so that a training cannot be resumed for more.
    pub fn needs_last_epoch(&self) -> bool {
        matches!(self, Self::Cosine(_))
    }

    /// The factor of every step size at `place`, in (0, 1].
    pub(crate) fn factor(&self, place: Place) -> f64 {
        let t = place.epoch * place.n_steps + place.step;
        let (warm_up, factor) = match *self {
            Self::Constant(ConstantSchedule { warm_up }) => (warm_up, 1.0),
            Self::Step(StepSchedule { warm_up, every, factor }) => {
                let n_drops = i32::try_from(place.epoch / every).unwrap_or(i32::MAX);
                (warm_up, factor.powi(n_drops).max(f64::MIN_POSITIVE))
            }
            Self::Cosine(CosineSchedule { warm_up, floor }) => {
                let n_all = place.epochs.saturating_mul(place.n_steps);
                let n_after = n_all.saturating_sub(warm_up).max(1);
                let share = (t.saturating_sub(warm_up) as f64 / n_after as f64).min(1.0);
                let fallen = f64::midpoint(1.0, (std::f64::consts::PI * share).cos());
                (warm_up, floor + (1.0 - floor) * fallen)
            }
        };
        if t < warm_up { factor * (t + 1) as f64 / warm_up as f64 } else { factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(schedule: ScheduleConfig, n_steps: usize, epochs: usize) -> Vec<f64> {
        let steps = (0..epochs).flat_map(|epoch| (0..n_steps).map(move |step| Place { epoch, step, n_steps, epochs }));
        steps.map(|place| schedule.factor(place)).collect()
    }

    #[test]
    fn warm_up_rises_evenly_and_reaches_the_full_step_size() {
        let constant = ScheduleConfig::Constant(ConstantSchedule { warm_up: 4 });
        assert_eq!(factors(constant, 3, 2), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]);
        assert_eq!(factors(ScheduleConfig::default(), 2, 2), [1.0; 4]);
    }

    #[test]
    fn drops_come_every_so_many_epochs_and_multiply_with_the_warm_up() {
        let step = ScheduleConfig::Step(StepSchedule { warm_up: 2, every: 2, factor: 0.5 });
        assert_eq!(factors(step, 1, 6), [0.5, 1.0, 0.5, 0.5, 0.25, 0.25]);
    }

    #[test]
    fn the_cosine_falls_from_one_to_its_floor_after_the_warm_up() {
        let cosine = ScheduleConfig::Cosine(CosineSchedule { warm_up: 0, floor: 0.2 });
        let found = factors(cosine, 2, 2);
        // cos(0), cos(pi / 4), cos(pi / 2), cos(3 pi / 4)
        let halves = [2.0, 1.0 + 0.5_f64.sqrt(), 1.0, 1.0 - 0.5_f64.sqrt()];
        for (found, half) in found.iter().zip(halves) {
            assert!((found - (0.2 + 0.8 * half / 2.0)).abs() < 1e-15);
        }
        // Three steps an epoch, two epochs: the half of the cosine is reached after the third.
        assert!((factors(cosine, 3, 2)[3] - 0.6).abs() < 1e-15, "{:?}", factors(cosine, 3, 2));
        // Another number of epochs gives other factors from the first one on; the `step` schedule does not depend on it.
        assert!(cosine.needs_last_epoch() && !ScheduleConfig::default().needs_last_epoch());
        assert!(!ScheduleConfig::Step(StepSchedule::default()).needs_last_epoch());
        let warm = ScheduleConfig::Cosine(CosineSchedule { warm_up: 2, floor: 0.0 });
        let found = factors(warm, 2, 2);
        assert_eq!(found[..3], [0.5, 1.0, 1.0]);
        assert!((found[3] - 0.5).abs() < 1e-15, "{found:?}");
    }

    #[test]
    fn a_warm_up_longer_than_the_training_never_ends_and_no_factor_is_zero() {
        let cosine = ScheduleConfig::Cosine(CosineSchedule { warm_up: 10, floor: 0.0 });
        assert_eq!(factors(cosine, 2, 1), [0.1, 0.2]);
        let step = ScheduleConfig::Step(StepSchedule { warm_up: 0, every: 1, factor: 0.1 });
        assert!(factors(step, 1, 400).iter().all(|factor| *factor > 0.0));
        // More steps in all than can be counted: the beginning of the cosine is flat.
        let cosine = ScheduleConfig::Cosine(CosineSchedule::default());
        let place = Place { epoch: 1, step: 0, n_steps: 4, epochs: usize::MAX / 4 + 1 };
        assert!((cosine.factor(place) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let message = |schedule: ScheduleConfig| {
            schedule.validate().map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
        };
        let every = ScheduleConfig::Step(StepSchedule { every: 0, ..StepSchedule::default() });
        assert_eq!(message(every), "schedule.step.every is 0, expected at least 1");
        let factor = ScheduleConfig::Step(StepSchedule { factor: 1.5, ..StepSchedule::default() });
        assert_eq!(message(factor), "schedule.step.factor is 1.5, expected a number in (0, 1]");
        for factor in [0.0, f64::NAN] {
            let step = ScheduleConfig::Step(StepSchedule { factor, ..StepSchedule::default() });
            let expected = format!("schedule.step.factor is {factor}, expected a number in (0, 1]");
            assert_eq!(message(step), expected);
        }
        for (every, factor) in [(1, 1.0), (7, 1e-9)] {
            assert_eq!(message(ScheduleConfig::Step(StepSchedule { every, factor, warm_up: 0 })), "accepted");
        }
        assert_eq!(message(ScheduleConfig::Cosine(CosineSchedule { floor: 0.0, warm_up: 0 })), "accepted");
        let floor = ScheduleConfig::Cosine(CosineSchedule { floor: 1.0, warm_up: 0 });
        assert_eq!(message(floor), "schedule.cosine.floor is 1, expected a number in [0, 1)");
    }
}
