//! Means over training seeds, and changes within a seed.

use super::verdict::{Block, Role, Scores, Standing};

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) n: usize,
    pub(super) value: f64,
    /// Standard deviation (n - 1) over the root of n; `None` for one seed.
    pub(super) standard_error: Option<f64>,
}

impl Mean {
    /// The mean of the values that exist; `None` if there are none.
    pub(super) fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.flatten().collect();
        let n = values.len();
        if n == 0 {
            return None;
        }
        let value = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - value) * (v - value)).sum();
        let standard_error = (n > 1).then(|| (squares / (n - 1) as f64 / n as f64).sqrt());
        Some(Self { n, value, standard_error })
    }

    /// The mean minus and plus its standard error.
    pub(super) fn bar(self) -> Option<(f64, f64)> {
        self.standard_error.map(|error| (self.value - error, self.value + error))
    }
}

/// A number in the test part, of the choice within each seed.
pub(super) fn over_seeds(row: &Standing, of: fn(&Scores) -> Option<f64>) -> Option<Mean> {
    Mean::of(row.seeds.iter().map(|seed| of(&seed.test)))
}

/// The change of the gap from the control row within every seed that both have, in units of the metric; `None` for the
/// control row itself and where no seed has both.
pub(super) fn gap_change(block: &Block, row: &Standing) -> Option<Mean> {
    let control = block.rows.iter().find(|row| row.role == Role::Control).or(block.rows.first())?;
    if row.role != Role::Strategy {
        return None;
    }
    let of_control = |seed: u64| control.seeds.iter().find(|other| other.seed == seed)?.test.gap;
    Mean::of(row.seeds.iter().map(|seed| Some(seed.test.gap? - of_control(seed.seed)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_a_standard_error_from_two_seeds_on() {
        // Deviations -1, 0, 1: variance 1, standard error 1 / root of 3.
        let found = Mean::of([Some(2.0), None, Some(3.0), Some(4.0)].into_iter());
        let expected = Mean { n: 3, value: 3.0, standard_error: Some((1.0_f64 / 3.0).sqrt()) };
        assert_eq!(found, Some(expected));
        assert_eq!(Mean::of([Some(2.0)].into_iter()).and_then(Mean::bar), None);
        assert_eq!(Mean::of([None].into_iter()), None);
    }
}
