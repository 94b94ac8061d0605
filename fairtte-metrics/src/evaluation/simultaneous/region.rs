//! What two numbers may be together, and the range of a function of both.

use super::folded;

pub(super) type Interval = (f64, f64);

/// A line u a + v b = w, as [u, v, w].
pub(super) type Line = [f64; 3];

/// Numbers a and b of which both, and the change a - b, lie within intervals. It contains the estimates of a and b.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) a: Interval,
    pub(super) b: Interval,
    pub(super) change: Interval,
    pub(super) estimates: [f64; 2],
}

impl Region {
    /// The range of a function whose extremes are where edges of the region, the axes or `lines` cross.
    pub(super) fn range(&self, lines: &[Line], function: impl Fn([f64; 2]) -> f64) -> Interval {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        self.corners(lines).into_iter().map(function).fold(ends, |(low, high), value| (low.min(value), high.max(value)))
    }

    /// The estimates, and the points of the region at which its edges, the axes and `lines` cross.
    pub(super) fn corners(&self, lines: &[Line]) -> Vec<[f64; 2]> {
        let edges = |u: f64, v: f64, (lower, upper): Interval| [[u, v, lower], [u, v, upper]];
        let own =
            edges(1.0, 0.0, self.a).into_iter().chain(edges(0.0, 1.0, self.b)).chain(edges(1.0, -1.0, self.change));
        let lines: Vec<Line> =
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]].into_iter().chain(own).chain(lines.iter().copied()).collect();
        let mut corners = vec![self.estimates];
        for (k, one) in lines.iter().enumerate() {
            corners.extend(lines[..k].iter().filter_map(|two| self.crossing(one, two)));
        }
        corners
    }

    fn crossing(&self, one: &Line, two: &Line) -> Option<[f64; 2]> {
        let determinant = one[0] * two[1] - two[0] * one[1];
        let point =
            [(one[2] * two[1] - two[2] * one[1]) / determinant, (one[0] * two[2] - two[0] * one[2]) / determinant];
        (determinant.abs() > 0.0 && self.contains(point)).then_some(point)
    }

    /// Up to the rounding of a crossing.
    fn contains(&self, [a, b]: [f64; 2]) -> bool {
        let ends = [self.a, self.b, self.change].into_iter().map(|interval| folded(interval).1);
        let slack = 1e-12 * ends.fold(0.0, f64::max);
        let within = |value: f64, (lower, upper): Interval| value >= lower - slack && value <= upper + slack;
        within(a, self.a) && within(b, self.b) && within(a - b, self.change)
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use rand::RngExt as _;

    use super::*;
    use crate::seeds::stream;

    /// The range of a function over a fine grid of the region, and the length of a step.
    fn range_on_a_grid(region: &Region, function: impl Fn([f64; 2]) -> f64) -> (Interval, f64) {
        let steps = 400;
        let at = |(lower, upper): Interval, k: usize| lower + (upper - lower) * k as f64 / f64::from(steps);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for (i, j) in (0..=400).flat_map(|i| (0..=400).map(move |j| (i, j))) {
            let (a, b) = (at(region.a, i), at(region.b, j));
            if a - b >= region.change.0 && a - b <= region.change.1 {
                (least, most) = (least.min(function([a, b])), most.max(function([a, b])));
            }
        }
        let length = (region.a.1 - region.a.0) + (region.b.1 - region.b.0);
        ((least, most), length / f64::from(steps))
    }

    /// Functions of the comparisons, with the line on which that of equity scaling may have an extreme besides.
    #[test]
    fn the_range_is_that_of_a_fine_grid_over_the_region() {
        let mut rng = stream(1, "boxes", &[]);
        for _ in 0..60 {
            let mut interval = |about: f64| -> Interval {
                let wide: f64 = rng.random_range(0.2..1.5);
                (about - wide * rng.random_range(0.1..0.9), about + wide * 0.5)
            };
            let [a, b] = [0.3, -0.2].map(&mut interval);
            let region = Region { a, b, change: interval(0.5), estimates: [0.3, -0.2] };
            let sizes: [fn([f64; 2]) -> f64; 3] =
                [|[a, b]| a.abs() - b.abs(), |[a, b]| (-a.abs()).exp() - (-b.abs()).exp(), |[a, b]| a - b];
            for function in sizes {
                let (found, (on_grid, step)) = (region.range(&[], function), range_on_a_grid(&region, function));
                assert!(found.0 <= on_grid.0 + 1e-12 && found.1 >= on_grid.1 - 1e-12, "{found:?} {on_grid:?}");
                assert_abs_diff_eq!(found.0, on_grid.0, epsilon = 3.0 * step);
                assert_abs_diff_eq!(found.1, on_grid.1, epsilon = 3.0 * step);
            }
        }
    }
}
