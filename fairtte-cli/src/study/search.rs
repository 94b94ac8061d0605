//! Ranges of hyper-parameters, and the draw of a trial from them.
//!
//! A draw comes from the stream of (seed of the study, key) at the number of the trial. It depends on nothing else: trial 3
//! has the same learning rate in every cell, so that two cells are compared on true pairs, and another key, more trials or
//! another strategy change no earlier draw.

use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::CliError;

/// The values that a searched key may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Range {
    /// Uniform between two numbers.
    Uniform([f64; 2]),
    /// Uniform in the logarithm between two positive numbers.
    LogUniform([f64; 2]),
    /// Uniform over the whole numbers from the first to the last.
    IntUniform([i64; 2]),
    /// One of these.
    Choice(Vec<Value>),
    /// The same in every trial.
    Fixed(Value),
}

impl Range {
    /// Checks the ends of a range in a table of the study file.
    ///
    /// # Errors
    /// [`CliError::Setting`] naming the key.
    pub(crate) fn check(&self, table: &str, key: &str) -> Result<(), CliError> {
        let wrong = |value: String, expected: &str| {
            Err(CliError::Setting { key: format!("{table}.\"{key}\""), value, expected: expected.to_owned() })
        };
        match self {
            Self::Uniform([low, high]) if !(low.is_finite() && high.is_finite() && low < high) => {
                wrong(format!("[{low}, {high}]"), "two finite numbers, the lower first")
            }
            Self::LogUniform([low, high]) if !(*low > 0.0 && high.is_finite() && low < high) => {
                wrong(format!("[{low}, {high}]"), "two finite numbers above 0, the lower first")
            }
            Self::IntUniform([low, high]) if low >= high => {
                wrong(format!("[{low}, {high}]"), "two whole numbers, the lower first")
            }
            Self::Choice(values) if values.is_empty() => wrong("[]".to_owned(), "at least one value"),
            _ => Ok(()),
        }
    }

    /// The value of a key in a trial, counted from 0.
    pub(crate) fn draw(&self, seed: u64, key: &str, trial: usize) -> Value {
        let mut rng = stream(seed, &format!("study/search/{key}"), &[trial as u64]);
        match self {
            Self::Uniform([low, high]) => Value::Float(low + (high - low) * rng.random::<f64>()),
            Self::LogUniform([low, high]) => {
                let (low, high) = (low.ln(), high.ln());
                Value::Float((low + (high - low) * rng.random::<f64>()).exp())
            }
            Self::IntUniform([low, high]) => Value::Integer(rng.random_range(*low..=*high)),
            Self::Choice(values) => values[rng.random_range(0..values.len())].clone(),
            Self::Fixed(value) => value.clone(),
        }
    }
}

/// The training seed of a repeat of a trial, both counted from 0: below 2^32, so that it is exact in every table that holds numbers as 64-bit floats.
pub(crate) fn training_seed(seed: u64, trial: usize, repeat: usize) -> u32 {
    match repeat {
        // As without repeats.
        0 => stream(seed, "study/training-seed", &[trial as u64]).random(),
        _ => stream(seed, "study/training-seed/repeat", &[trial as u64, repeat as u64]).random(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    fn numbers(range: &Range, n: usize) -> Vec<f64> {
        let number = |value: Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64)).unwrap();
        (0..n).map(|trial| number(range.draw(5, "key", trial))).collect()
    }

    #[test]
    fn draws_fill_their_range_evenly() {
        let n = 4000;
        let shares = |range: Range, edges: [f64; 3]| {
            let drawn = numbers(&range, n);
            let between =
                |low: f64, high: f64| drawn.iter().filter(|x| (low..high).contains(*x)).count() as f64 / n as f64;
            let [low, middle, high] = edges;
            assert!((between(low, high) - 1.0).abs() < 1e-12, "{range:?}");
            between(low, middle)
        };
        assert!((shares(Range::Uniform([-1.0, 3.0]), [-1.0, 0.0, 3.0]) - 0.25).abs() < 0.03);
        // Half of the draws lie below the geometric mean of the ends.
        assert!((shares(Range::LogUniform([1e-4, 1e-2]), [1e-4, 1e-3, 1e-2]) - 0.5).abs() < 0.03);
        assert!((shares(Range::IntUniform([1, 4]), [1.0, 2.0, 5.0]) - 0.25).abs() < 0.03);
        let choice = Range::Choice(vec![Value::Integer(1), Value::Integer(7)]);
        assert!((shares(choice, [1.0, 2.0, 8.0]) - 0.5).abs() < 0.03);
    }

    #[test]
    fn a_draw_depends_on_seed_key_and_trial_alone() {
        let range = Range::LogUniform([1e-4, 1e-3]);
        assert_eq!(range.draw(1, "optimiser.learning-rate", 3), range.draw(1, "optimiser.learning-rate", 3));
        let other =
            [(2, "optimiser.learning-rate", 3), (1, "optimiser.weight-decay", 3), (1, "optimiser.learning-rate", 4)];
        for (seed, key, trial) in other {
            assert_ne!(range.draw(1, "optimiser.learning-rate", 3), range.draw(seed, key, trial));
        }
        let seeds = [(1, 0, 0), (1, 1, 0), (2, 0, 0), (1, 0, 1), (1, 1, 1), (1, 0, 2)];
        let drawn: std::collections::BTreeSet<u32> =
            seeds.into_iter().map(|(seed, trial, repeat)| training_seed(seed, trial, repeat)).collect();
        assert_eq!(drawn.len(), seeds.len());
    }

    #[test]
    fn ends_that_make_no_range_are_refused_by_key() {
        let ranges = [
            ("{ uniform = [1, 1] }", "the lower first"),
            ("{ log-uniform = [0, 1] }", "above 0"),
            ("{ int-uniform = [3, 2] }", "whole numbers"),
            ("{ choice = [] }", "at least one"),
        ];
        for (text, expected) in ranges {
            let table: toml::Table = format!("range = {text}").parse().unwrap();
            let range: Range = table["range"].clone().try_into().unwrap();
            let error = range.check("search", "a.b").unwrap_err().to_string();
            assert!(error.starts_with("search.\"a.b\" is") && error.contains(expected), "{error}");
        }
        assert!(toml::from_str::<std::collections::BTreeMap<String, Range>>("a = { normal = [0, 1] }").is_err());
    }
}
