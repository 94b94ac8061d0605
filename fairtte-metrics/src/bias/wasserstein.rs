//! Wasserstein distances: how far mass must be moved to turn one sample into another.
//!
//! In one dimension, with distribution functions U and V: `W_1 = integral |U - V|`,
//! `W_p^p = integral over q in (0, 1) of |U^-1(q) - V^-1(q)|^p`, and the energy distance is
//! `sqrt(2 integral (U - V)^2)`. Sliced: `(mean over projections k of W_p^p)^(1/p)`; max-sliced: the largest `W_p`.
//! Sources: Villani, "Optimal Transport" (2009), 2.2; Ramdas, Garcia Trillos & Cuturi (2017),
//! <https://doi.org/10.3390/e19020047>; Bonneel, Rabin, Peyre & Pfister (2015),
//! <https://doi.org/10.1007/s10851-014-0506-3>; Deshpande et al. (2019), arXiv:1904.05877 (max-sliced).
//! POT's `wasserstein_1d(p=2)` returns the squared distance: [`wasserstein_p_power`] here; [`wasserstein_p`] takes the
//! root. Golden values: scipy 1.17.1 `wasserstein_distance`, `energy_distance`; POT 0.9.7 `wasserstein_1d`,
//! `sliced_wasserstein_distance`, `max_sliced_wasserstein_distance`.

use ndarray::{Array2, ArrayRef1, ArrayRef2, Axis};
use rand::RngExt as _;

use crate::{MetricError, seeds};

/// The maximum number of directions, and the maximum number of components of all of them (800 MB).
pub(super) const MAX_PROJECTIONS: usize = 100_000;
const MAX_COMPONENTS: usize = 100_000_000;

/// A finite, weighted sample on the line, sorted once and compared with many others.
///
/// Weights need not add up to 1. Values of weight 0 are left out; equal values stay apart, which changes no distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Ascending.
    values: Vec<f64>,
    /// Weight of all values up to this one; the last entry is the total.
    cumulative: Vec<f64>,
}

impl Distribution {
    /// Every value has the same weight. O(n log n).
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without values, [`MetricError::InvalidNumber`] if one is not finite.
    pub fn new(values: &[f64]) -> Result<Self, MetricError> {
        if values.is_empty() {
            return Err(MetricError::NoSamples);
        }
        check_finite("value", values)?;
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let cumulative = (1..=values.len()).map(|count| count as f64).collect();
        Ok(Self { values, cumulative })
    }

    /// Value `i` has weight `weights[i]` >= 0.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`MetricError::LengthMismatch`] unless there is one weight per value,
    /// [`MetricError::InvalidNumber`] if a weight is negative or not finite, [`MetricError::NoSamples`] if all are 0,
    /// [`MetricError::NotFinite`] if their sum is not finite.
    pub fn weighted(values: &[f64], weights: &[f64]) -> Result<Self, MetricError> {
        if weights.len() != values.len() {
            let (found, expected) = (weights.len(), values.len());
            return Err(MetricError::LengthMismatch { what: "weights", found, expected });
        }
        check_finite("value", values)?;
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            let (value, expected) = (weights[row], "a finite number >= 0");
            return Err(MetricError::InvalidNumber { what: "weight", row, value, expected });
        }
        let mut pairs: Vec<(f64, f64)> = values.iter().copied().zip(weights.iter().copied()).collect();
        pairs.retain(|(_, weight)| *weight > 0.0);
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let running = pairs.iter().scan(0.0, |total, (_, weight)| {
            *total += weight;
            Some(*total)
        });
        let cumulative: Vec<f64> = running.collect();
        match cumulative.last() {
            None => Err(MetricError::NoSamples),
            Some(total) if !total.is_finite() => {
                Err(MetricError::NotFinite { what: "sum of the weights", value: *total })
            }
            Some(_) => Ok(Self { values: pairs.into_iter().map(|(value, _)| value).collect(), cumulative }),
        }
    }

    /// Smallest and largest value of positive weight.
    pub fn range(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    fn total(&self) -> f64 {
        self.cumulative[self.cumulative.len() - 1]
    }

    /// Share of the mass in the first `n` values.
    fn share(&self, n: usize) -> f64 {
        if n == 0 { 0.0 } else { self.cumulative[n - 1] / self.total() }
    }
}

/// The distance W1 between two distributions, in the unit of the values: the area between their distribution
/// functions. O(n + m).
///
/// ```
/// use fairtte_metrics::bias::{Distribution, wasserstein_1};
///
/// // Half of the mass moves from 1 to 5.
/// let distance = wasserstein_1(&Distribution::new(&[0.0, 1.0])?, &Distribution::new(&[0.0, 5.0])?)?;
/// assert_eq!(distance, 2.0);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NotFinite`] if the distance is beyond the largest `f64`.
pub fn wasserstein_1(u: &Distribution, v: &Distribution) -> Result<f64, MetricError> {
    representable("Wasserstein distance", integrate_over_cdfs(u, v, f64::abs))
}

/// The energy distance `sqrt(2 integral (U - V)^2)`, in the square root of the unit of the values. O(n + m).
///
/// # Errors
/// [`MetricError::NotFinite`] if the distance is beyond the largest `f64`.
pub fn energy_distance(u: &Distribution, v: &Distribution) -> Result<f64, MetricError> {
    let area = integrate_over_cdfs(u, v, |difference| difference * difference);
    representable("energy distance", 2.0_f64.sqrt() * area.sqrt())
}

/// `W_p^p` (not its root: the convention of POT's `wasserstein_1d`) for `p` >= 1. O(n + m).
///
/// # Errors
/// [`MetricError::InvalidSetting`] unless `p` is a finite number >= 1, [`MetricError::NotFinite`] if the result is
/// beyond the largest `f64`.
pub fn wasserstein_p_power(u: &Distribution, v: &Distribution, p: f64) -> Result<f64, MetricError> {
    check_order(p)?;
    let (mut at_u, mut at_v, mut moved, mut cost) = (0, 0, 0.0, 0.0);
    while at_u < u.values.len() && at_v < v.values.len() {
        let (share_u, share_v) = (u.share(at_u + 1), v.share(at_v + 1));
        let next = share_u.min(share_v);
        cost += (next - moved) * power((u.values[at_u] - v.values[at_v]).abs(), p);
        moved = next;
        at_u += usize::from(share_u <= next);
        at_v += usize::from(share_v <= next);
    }
    representable("Wasserstein distance", cost)
}

/// The distance `W_p = (W_p^p)^(1/p)` for `p` >= 1, in the unit of the values. O(n + m).
///
/// # Errors
/// As [`wasserstein_p_power`].
pub fn wasserstein_p(u: &Distribution, v: &Distribution, p: f64) -> Result<f64, MetricError> {
    wasserstein_p_power(u, v, p).map(|cost| root(cost, p))
}

/// Distances between two samples of vectors along a set of directions.
#[derive(Clone, Debug, PartialEq)]
pub struct SlicedWasserstein {
    /// `(mean over directions of W_p^p)^(1/p)`.
    pub value: f64,
    /// The largest `W_p` of a direction (max-sliced).
    pub max: f64,
    /// `W_p^p` along every direction, in the order of the projections.
    pub powers: Vec<f64>,
}

/// Sliced and max-sliced Wasserstein distance of order `p` between the rows of `x` `[n, d]` and of `y` `[m, d]` along
/// the columns of `projections` `[d, k]` (columns of length 1; see [`seeded_projections`]). O(k (n d + n log n)).
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the numbers of dimensions differ, [`MetricError::NoSamples`] without rows or
/// projections, [`MetricError::InvalidNumber`] if a projected value is not finite, and those of
/// [`wasserstein_p_power`].
pub fn sliced_wasserstein(
    x: &ArrayRef2<f64>,
    y: &ArrayRef2<f64>,
    projections: &ArrayRef2<f64>,
    p: f64,
) -> Result<SlicedWasserstein, MetricError> {
    check_order(p)?;
    let expected = projections.nrows();
    for found in [x.ncols(), y.ncols()] {
        if found != expected {
            return Err(MetricError::LengthMismatch { what: "dimensions", found, expected });
        }
    }
    if projections.ncols() == 0 {
        return Err(MetricError::NoSamples);
    }
    let along = |direction: &ArrayRef1<f64>| {
        let projected = |rows: &ArrayRef2<f64>| Distribution::new(&project(rows, direction));
        wasserstein_p_power(&projected(x)?, &projected(y)?, p)
    };
    let powers: Vec<f64> =
        projections.axis_iter(Axis(1)).map(|direction| along(&direction)).collect::<Result<_, _>>()?;
    let mean = powers.iter().sum::<f64>() / powers.len() as f64;
    let value = representable("sliced Wasserstein distance", root(mean, p))?;
    let max = root(powers.iter().copied().fold(0.0, f64::max), p);
    Ok(SlicedWasserstein { value, max, powers })
}

/// `n_projections` directions of `n_dimensions` dimensions, uniform on the sphere, as columns of length 1 `[d, k]`.
/// Direction k is the same whatever their number.
///
/// # Errors
/// [`MetricError::InvalidSetting`] unless there is at least one dimension and 1 to 100,000 projections, of at most
/// 100,000,000 components in all.
pub fn seeded_projections(n_dimensions: usize, n_projections: usize, seed: u64) -> Result<Array2<f64>, MetricError> {
    let invalid = |setting, value: usize, expected| {
        Err(MetricError::InvalidSetting { setting, value: value.to_string(), expected })
    };
    if !(1..=MAX_PROJECTIONS).contains(&n_projections) {
        return invalid("n-projections", n_projections, "a whole number from 1 to 100000");
    }
    if !(1..=MAX_COMPONENTS / n_projections).contains(&n_dimensions) {
        let expected = "a whole number >= 1, and at most 100000000 divided by n-projections";
        return invalid("number of dimensions", n_dimensions, expected);
    }
    let mut projections = Array2::zeros((n_dimensions, n_projections));
    for (k, mut column) in projections.axis_iter_mut(Axis(1)).enumerate() {
        let mut rng = seeds::stream(seed, "bias-projections", &[k as u64]);
        // Normal deviates by Box & Muller (1958); 1 - u lies in (0, 1], where the logarithm is finite.
        let mut normal = || {
            let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        };
        let mut length = 0.0;
        while length <= 0.0 {
            column.mapv_inplace(|_| normal());
            length = column.dot(&column).sqrt();
        }
        column /= length;
    }
    Ok(projections)
}

/// The rows `[n, d]` along one direction `[d]`.
pub(super) fn project(rows: &ArrayRef2<f64>, direction: &ArrayRef1<f64>) -> Vec<f64> {
    rows.dot(direction).to_vec()
}

pub(super) fn check_finite(what: &'static str, values: &[f64]) -> Result<(), MetricError> {
    let bad = values.iter().position(|value| !value.is_finite());
    bad.map_or(Ok(()), |row| {
        Err(MetricError::InvalidNumber { what, row, value: values[row], expected: "a finite number" })
    })
}

pub(super) fn representable(what: &'static str, value: f64) -> Result<f64, MetricError> {
    if value.is_finite() { Ok(value) } else { Err(MetricError::NotFinite { what, value }) }
}

/// The integral of `height(U(x) - V(x))` over x.
fn integrate_over_cdfs(u: &Distribution, v: &Distribution, height: impl Fn(f64) -> f64) -> f64 {
    let (mut n_u, mut n_v, mut area) = (0, 0, 0.0);
    let mut last = u.values[0].min(v.values[0]);
    loop {
        let next = match (u.values.get(n_u), v.values.get(n_v)) {
            (Some(&next_u), Some(&next_v)) => next_u.min(next_v),
            (Some(&next), None) | (None, Some(&next)) => next,
            (None, None) => return area,
        };
        if next > last {
            area += height(u.share(n_u) - v.share(n_v)) * (next - last);
            last = next;
        }
        while u.values.get(n_u).is_some_and(|value| *value <= next) {
            n_u += 1;
        }
        while v.values.get(n_v).is_some_and(|value| *value <= next) {
            n_v += 1;
        }
    }
}

fn check_order(p: f64) -> Result<(), MetricError> {
    if p.is_finite() && p >= 1.0 {
        return Ok(());
    }
    let (setting, expected) = ("order p of the Wasserstein distance", "a finite number >= 1");
    Err(MetricError::InvalidSetting { setting, value: p.to_string(), expected })
}

/// `x^p`, avoiding the slow `powf` for the two orders in use.
#[expect(clippy::float_cmp, reason = "1 and 2 are exact")]
fn power(x: f64, p: f64) -> f64 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x * x
    } else {
        x.powf(p)
    }
}

#[expect(clippy::float_cmp, reason = "1 and 2 are exact")]
fn root(x: f64, p: f64) -> f64 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x.sqrt()
    } else {
        x.powf(p.recip())
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::array;

    use super::*;

    fn sample(values: &[f64]) -> Distribution {
        Distribution::new(values).unwrap()
    }

    #[test]
    fn two_points_are_as_far_apart_as_they_are() {
        let (u, v) = (sample(&[2.0]), sample(&[5.0]));
        assert_eq!(wasserstein_1(&u, &v), Ok(3.0));
        assert_eq!(wasserstein_p_power(&u, &v, 2.0), Ok(9.0));
        assert_eq!(wasserstein_p(&u, &v, 2.0), Ok(3.0));
        assert_relative_eq!(wasserstein_p(&u, &v, 3.0).unwrap(), 3.0, max_relative = 1e-15);
        assert_relative_eq!(energy_distance(&u, &v).unwrap(), 6.0_f64.sqrt(), max_relative = 1e-15);
    }

    #[test]
    fn a_shift_moves_every_value_by_the_shift_whatever_the_order() {
        let grid: Vec<f64> = (0..100).map(|k| f64::from(k) / 8.0).collect();
        let shifted: Vec<f64> = grid.iter().map(|value| value + 2.5).collect();
        for p in [1.0, 1.5, 2.0, 7.0] {
            let found = wasserstein_p(&sample(&grid), &sample(&shifted), p).unwrap();
            assert_relative_eq!(found, 2.5, max_relative = 1e-13);
        }
    }

    #[test]
    fn weights_are_repeated_values_and_need_not_add_up_to_one() {
        let weighted = Distribution::weighted(&[4.0, 1.0, 9.0], &[3.0, 1.0, 0.0]).unwrap();
        let (repeated, other) = (sample(&[1.0, 4.0, 4.0, 4.0]), sample(&[0.0, 2.0, 7.0]));
        assert_eq!(weighted.range(), (1.0, 4.0)); // the value 9 has no weight
        for measure in [wasserstein_1, energy_distance] {
            assert_relative_eq!(
                measure(&weighted, &other).unwrap(),
                measure(&repeated, &other).unwrap(),
                max_relative = 1e-14
            );
        }
        let (a, b) = (wasserstein_p_power(&weighted, &other, 2.0), wasserstein_p_power(&other, &repeated, 2.0));
        assert_relative_eq!(a.unwrap(), b.unwrap(), max_relative = 1e-14);
    }

    #[test]
    fn the_sliced_distance_of_two_points_is_the_mean_of_their_projections() {
        // Directions (1, 0) and (3/5, 4/5); the points are (4, 3) apart: 4 and 24/5.
        let projections = array![[1.0, 0.6], [0.0, 0.8]];
        let (x, y) = (array![[1.0, 1.0]], array![[5.0, 4.0]]);
        let found = sliced_wasserstein(&x, &y, &projections, 1.0).unwrap();
        assert_relative_eq!(found.value, 4.4, max_relative = 1e-15);
        assert_relative_eq!(found.max, 4.8, max_relative = 1e-15);
        let squared = sliced_wasserstein(&x, &y, &projections, 2.0).unwrap();
        assert_relative_eq!(squared.value, f64::midpoint(16.0, 23.04).sqrt(), max_relative = 1e-15);
        assert!(sliced_wasserstein(&x, &y, &array![[1.0]], 1.0).is_err());
    }

    #[test]
    fn seeded_directions_have_length_one_and_point_everywhere() {
        let projections = seeded_projections(3, 4_000, 7).unwrap();
        assert!(projections.axis_iter(Axis(1)).all(|column| (column.dot(&column) - 1.0).abs() < 1e-12));
        // Uniform on the sphere: every coordinate has mean 0 and mean square 1/3; 4 standard errors are 0.037, 0.019.
        for row in projections.axis_iter(Axis(0)) {
            assert!((row.sum() / 4_000.0).abs() < 0.037);
            assert!((row.dot(&row) / 4_000.0 - 1.0 / 3.0).abs() < 0.019);
        }
        let fewer = seeded_projections(3, 5, 7).unwrap();
        assert_eq!(fewer.column(4), projections.column(4));
        assert_ne!(fewer, seeded_projections(3, 5, 8).unwrap());
        for (n_dimensions, n_projections) in [(3, 0), (0, 3), (1, usize::MAX), (usize::MAX, 1), (1 << 40, 1 << 40)] {
            let refused = seeded_projections(n_dimensions, n_projections, 7);
            assert!(matches!(refused, Err(MetricError::InvalidSetting { .. })));
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert_eq!(Distribution::new(&[]), Err(MetricError::NoSamples));
        assert_eq!(Distribution::weighted(&[1.0], &[0.0]), Err(MetricError::NoSamples));
        assert!(matches!(Distribution::new(&[1.0, f64::NAN]), Err(MetricError::InvalidNumber { row: 1, .. })));
        assert!(matches!(Distribution::weighted(&[1.0], &[-1.0]), Err(MetricError::InvalidNumber { .. })));
        assert!(matches!(Distribution::weighted(&[1.0], &[]), Err(MetricError::LengthMismatch { .. })));
        let far = (sample(&[f64::MAX]), sample(&[f64::MIN]));
        assert!(matches!(wasserstein_1(&far.0, &far.1), Err(MetricError::NotFinite { .. })));
        assert!(matches!(wasserstein_p_power(&far.0, &far.1, 2.0), Err(MetricError::NotFinite { .. })));
        assert!(wasserstein_p(&far.0, &far.1, 0.5).is_err());
    }
}
