//! A survival curve read as a continuous one, with a density: straight lines between distinct values.
//!
//! Rule of `mlr3proba` 0.8.1 to 0.8.9. Only the first of several equal values is a node, so that no piece is flat;
//! before the first node the line starts at (0, 1); beyond the last one the last slope continues, down to 0; a curve
//! with a single value keeps it everywhere. The density at t is the slope of the interval that ends at t on the grid
//! with t added, or of the first interval if t is its first point. It depends on the unit of time.
//! Golden values: through the scores in `log_scores.rs`.

/// An interval shorter than this share of its end is too short for a difference.
const SHORT: f64 = 1e-9;

/// The nodes of one curve.
pub(crate) struct LinearCurve {
    times: Vec<f64>,
    survival: Vec<f64>,
}

impl LinearCurve {
    /// `survival` never rises, and has one value per point of `grid`, at least one.
    pub(crate) fn new(grid: &[f64], survival: impl Iterator<Item = f64>) -> Self {
        let mut curve = Self { times: Vec::new(), survival: Vec::new() };
        for (time, value) in grid.iter().zip(survival) {
            if curve.survival.last() != Some(&value) {
                curve.times.push(*time);
                curve.survival.push(value);
            }
        }
        curve
    }

    /// S(t).
    pub(crate) fn survival(&self, t: f64) -> f64 {
        let last = self.times.len() - 1;
        if last == 0 {
            return self.survival[0];
        }
        if t < self.times[0] {
            return 1.0 + along(self.survival[0] - 1.0, self.times[0], t);
        }
        let node = self.times.partition_point(|time| *time <= t) - 1;
        if node < last { self.on_line(node, t) } else { self.beyond(t) }
    }

    /// The density at `t`, >= 0; `grid` is the one that the curve was made from.
    pub(crate) fn density(&self, grid: &[f64], t: f64) -> f64 {
        let after = grid.partition_point(|time| *time < t);
        let on_grid = grid.get(after) == Some(&t);
        let next = grid.get(after + usize::from(on_grid));
        let interval = if after > 0 { Some((grid[after - 1], t)) } else { next.map(|next| (t, *next)) };
        // A grid of one point, read at that point, has no interval: its curve is flat.
        interval.map_or(0.0, |(start, end)| self.mean_density(start, end))
    }

    /// The mass from `start` to `end` per unit of time, where no node lies between them.
    ///
    /// It is a difference of two values, as in the reference, so that both round alike; but in an interval as short as
    /// the rounding error it would have no correct digit, and there the slope of the line is used.
    fn mean_density(&self, start: f64, end: f64) -> f64 {
        if end - start > SHORT * end {
            let mass = (1.0 - self.survival(end)) - (1.0 - self.survival(start));
            return (mass / (end - start)).max(0.0);
        }
        let last = self.times.len() - 1;
        if last == 0 || self.survival(end) <= 0.0 {
            return 0.0;
        }
        if start < self.times[0] {
            return (1.0 - self.survival[0]) / self.times[0];
        }
        -self.slope((self.times.partition_point(|time| *time <= start) - 1).min(last - 1))
    }

    /// How much S and the time rise from `node` to the next one.
    fn piece(&self, node: usize) -> (f64, f64) {
        (self.survival[node + 1] - self.survival[node], self.times[node + 1] - self.times[node])
    }

    fn slope(&self, node: usize) -> f64 {
        let (rise, width) = self.piece(node);
        rise / width
    }

    fn on_line(&self, node: usize, t: f64) -> f64 {
        let (rise, width) = self.piece(node);
        along(rise, width, t - self.times[node]) + self.survival[node]
    }

    /// The last line continues, down to 0.
    fn beyond(&self, t: f64) -> f64 {
        let last = self.times.len() - 1;
        let (rise, width) = self.piece(last - 1);
        (self.survival[last] + along(rise, width, t - self.times[last])).max(0.0)
    }
}

/// `rise / width * distance`, also where `width` is so short that the slope overflows.
fn along(rise: f64, width: f64, distance: f64) -> f64 {
    let slope = rise / width;
    if slope.is_finite() { slope * distance } else { rise * (distance / width) }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    const GRID: [f64; 4] = [1.0, 2.0, 3.0, 5.0];

    fn curve() -> LinearCurve {
        LinearCurve::new(&GRID, [0.9, 0.9, 0.5, 0.3].into_iter())
    }

    #[test]
    fn survival_runs_on_lines_through_the_first_of_equal_values() {
        let expected =
            [(0.0, 1.0), (0.5, 0.95), (1.0, 0.9), (2.0, 0.7), (3.0, 0.5), (4.0, 0.4), (7.0, 0.1), (9.0, 0.0)];
        for (t, value) in expected {
            assert_abs_diff_eq!(curve().survival(t), value, epsilon = 1e-15);
        }
    }

    #[test]
    fn the_density_is_the_slope_of_the_interval_that_ends_at_the_time() {
        let expected = [(0.5, 0.1), (1.0, 0.2), (1.5, 0.2), (3.0, 0.2), (4.0, 0.1), (5.0, 0.1), (6.0, 0.1)];
        for (t, value) in expected {
            assert_abs_diff_eq!(curve().density(&GRID, t), value, epsilon = 1e-15);
        }
        // Beyond 8 nothing is left; from 5 to 10 the mass 0.3 spreads over 5.
        assert_abs_diff_eq!(curve().density(&GRID, 10.0), 0.06, epsilon = 1e-15);
        // As close to a grid point as rounding allows.
        assert_abs_diff_eq!(curve().density(&GRID, 3.0_f64.next_up()), 0.1, epsilon = 1e-15);
        assert_abs_diff_eq!(curve().density(&GRID, 1.0_f64.next_up()), 0.2, epsilon = 1e-15);
    }

    #[test]
    fn a_flat_curve_keeps_its_value_and_has_no_density() {
        let flat = LinearCurve::new(&[2.0], [0.4].into_iter());
        assert_eq!((flat.survival(0.0), flat.survival(2.0), flat.survival(9.0)), (0.4, 0.4, 0.4));
        for t in [0.0, 1.0, 2.0, 3.0] {
            assert_eq!(flat.density(&[2.0], t), 0.0);
        }
    }

    #[test]
    fn a_curve_that_starts_at_time_zero_has_a_density_there() {
        let curve = LinearCurve::new(&[0.0, 2.0], [1.0, 0.5].into_iter());
        assert_eq!((curve.survival(0.0), curve.density(&[0.0, 2.0], 0.0)), (1.0, 0.25));
    }

    #[test]
    fn nodes_as_close_as_numbers_can_be_keep_their_values() {
        let least = f64::from_bits(1);
        let curve = LinearCurve::new(&[2.0 * least, 4.0 * least], [0.75, 0.5].into_iter());
        let times = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0].map(|multiple| multiple * least);
        assert_eq!(times.map(|t| curve.survival(t)), [1.0, 0.875, 0.75, 0.625, 0.5, 0.25, 0.0]);
        assert_eq!(curve.survival(1.0), 0.0);
    }
}
