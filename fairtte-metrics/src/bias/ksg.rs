//! Mutual information of continuous variables from nearest neighbours, one dimension at a time, in nats.
//!
//! Two continuous variables: `I = psi(n) + psi(k) - mean of [psi(n_x + 1) + psi(n_y + 1)]`, where `n_x` (`n_y`) counts
//! the other samples whose x (y) is nearer than the k-th neighbour in the maximum norm: Kraskov, Stoegbauer &
//! Grassberger, Phys. Rev. E 69 (2004) 066138, estimator 1, <https://doi.org/10.1103/PhysRevE.69.066138>.
//! A continuous and a discrete one: `I = psi(n) + mean of [psi(k_i) - psi(n_i) - psi(m_i)]`, where `m_i` counts all
//! samples nearer than the k-th neighbour of the same class of size `n_i`, `k_i = min(k, n_i - 1)`; a sample that is
//! alone in its class is left out: Ross, `PLoS` ONE 9 (2014) e87357, <https://doi.org/10.1371/journal.pone.0087357>.
//! Negative estimates become 0. Variables are divided by their standard deviation (ddof 0), not centred.
//! Golden values: scikit-learn 1.9.1 `mutual_info_regression`, `mutual_info_classif`, at 1e-6, because those add noise
//! of 1e-10 to break ties. Here no noise is added: a sample at exactly the distance of the k-th neighbour is not
//! "nearer"; where that distance is 0, the samples at distance 0 count. So tied data give a repeatable value, which
//! differs from one with randomly broken ties; the estimators are meant for continuous data.

use ndarray::{ArrayRef2, Axis};

use super::wasserstein::check_finite;
use crate::ids::to_u32;
use crate::{MetricError, parallel};

/// Neighbours used by the paper of Kraskov et al. and by scikit-learn.
pub const DEFAULT_NEIGHBOURS: usize = 3;

/// Mutual information of every dimension of a representation with one variable.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionInformation {
    /// One value per dimension, in nats, >= 0.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The largest of them. A maximum over many noisy values is above 0 also without any dependence.
    pub max: f64,
}

impl DimensionInformation {
    fn new(values: Vec<f64>) -> Self {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let max = values.iter().copied().fold(0.0, f64::max);
        Self { values, mean, max }
    }
}

/// Mutual information of two continuous variables, in nats, >= 0.
///
/// Cost: samples are sorted by x and each is compared with those around it until x alone is farther than the k-th
/// neighbour: about n sqrt(n k) comparisons, at worst O(n^2) (x constant).
///
/// ```
/// use fairtte_metrics::bias::ksg_mutual_information;
///
/// let x: Vec<f64> = (0..100).map(f64::from).collect();
/// let scrambled: Vec<f64> = (0..100).map(|k| f64::from(k * 37 % 101)).collect();
/// assert!(ksg_mutual_information(&x, &x, 3)? > 2.0);
/// assert!(ksg_mutual_information(&x, &scrambled, 3)? < 0.5);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::InvalidSetting`] if `neighbours` is 0,
/// [`MetricError::TooFewSamples`] unless there are more samples than neighbours, [`MetricError::InvalidNumber`] if a
/// number is not finite, [`MetricError::NotFinite`] if a standard deviation is beyond `f64`.
pub fn ksg_mutual_information(x: &[f64], y: &[f64], neighbours: usize) -> Result<f64, MetricError> {
    check(x.len(), y.len(), neighbours)?;
    ksg_scaled(&scaled(x)?, &scaled(y)?, neighbours)
}

/// Mutual information of a continuous variable and a labelling, in nats, >= 0. O(n (k + log n)).
///
/// # Errors
/// As [`ksg_mutual_information`]; [`MetricError::TooFewSamples`] also if no class has two samples. A class may have
/// fewer samples than `neighbours`.
pub fn ksg_mutual_information_discrete(x: &[f64], labels: &[u32], neighbours: usize) -> Result<f64, MetricError> {
    check(x.len(), labels.len(), neighbours)?;
    let scaled = scaled(x)?;
    let mut by_class: Vec<(u32, f64)> = labels.iter().copied().zip(scaled).collect();
    by_class.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let classes: Vec<Vec<f64>> = by_class
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|class| class.len() > 1)
        .map(|class| class.iter().map(|(_, value)| *value).collect())
        .collect();
    let mut all: Vec<f64> = classes.concat();
    if all.is_empty() {
        return Err(MetricError::TooFewSamples { n: 1, expected: 2 });
    }
    all.sort_unstable_by(f64::total_cmp);
    let psi = digamma_table(all.len());
    let mut sum = 0.0;
    for class in &classes {
        let k = neighbours.min(class.len() - 1);
        for (place, value) in class.iter().enumerate() {
            let radius = kth_distance_in(class, place, k);
            sum += psi[k] - psi[class.len()] - psi[n_nearer(&all, *value, radius)];
        }
    }
    Ok((psi[all.len()] + sum / all.len() as f64).max(0.0))
}

/// [`ksg_mutual_information`] of every column of `x` `[n, d]` with `y`, in parallel over columns.
///
/// # Errors
/// As [`ksg_mutual_information`]; [`MetricError::NoSamples`] without columns.
pub fn ksg_per_dimension(
    x: &ArrayRef2<f64>,
    y: &[f64],
    neighbours: usize,
) -> Result<DimensionInformation, MetricError> {
    per_column(x, |column| ksg_mutual_information(column, y, neighbours))
}

/// [`ksg_mutual_information_discrete`] of every column of `x` `[n, d]` with `labels`, in parallel over columns.
///
/// # Errors
/// As [`ksg_mutual_information_discrete`]; [`MetricError::NoSamples`] without columns.
pub fn ksg_per_dimension_discrete(
    x: &ArrayRef2<f64>,
    labels: &[u32],
    neighbours: usize,
) -> Result<DimensionInformation, MetricError> {
    per_column(x, |column| ksg_mutual_information_discrete(column, labels, neighbours))
}

fn per_column(
    x: &ArrayRef2<f64>,
    estimate: impl Fn(&[f64]) -> Result<f64, MetricError> + Sync,
) -> Result<DimensionInformation, MetricError> {
    if x.ncols() == 0 {
        return Err(MetricError::NoSamples);
    }
    let columns: Vec<Vec<f64>> = x.axis_iter(Axis(1)).map(|column| column.to_vec()).collect();
    let values = parallel::try_map(&columns, |column| estimate(column))?;
    Ok(DimensionInformation::new(values))
}

fn check(expected: usize, found: usize, neighbours: usize) -> Result<(), MetricError> {
    if found != expected {
        return Err(MetricError::LengthMismatch { what: "values", found, expected });
    }
    if neighbours == 0 {
        let (setting, expected) = ("number of neighbours", "a whole number >= 1");
        return Err(MetricError::InvalidSetting { setting, value: "0".to_owned(), expected });
    }
    if expected == 0 { Err(MetricError::NoSamples) } else { Ok(()) }
}

/// The values divided by their standard deviation (ddof 0); constant values stay as they are.
fn scaled(values: &[f64]) -> Result<Vec<f64>, MetricError> {
    check_finite("value", values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    let deviation = super::wasserstein::representable("standard deviation", variance.sqrt())?;
    // Constant up to rounding: dividing by the rounding error would amplify it to noise.
    let constant = deviation <= 10.0 * f64::EPSILON * mean.abs().max(f64::MIN_POSITIVE);
    Ok(values.iter().map(|value| if constant { *value } else { value / deviation }).collect())
}

fn ksg_scaled(x: &[f64], y: &[f64], neighbours: usize) -> Result<f64, MetricError> {
    let n = x.len();
    if n <= neighbours {
        return Err(MetricError::TooFewSamples { n, expected: neighbours.saturating_add(1) });
    }
    let mut order: Vec<u32> = (0..to_u32(n)).collect();
    order.sort_unstable_by(|&a, &b| x[a as usize].total_cmp(&x[b as usize]));
    let sorted: Vec<(f64, f64)> = order.iter().map(|&row| (x[row as usize], y[row as usize])).collect();
    let xs: Vec<f64> = sorted.iter().map(|point| point.0).collect();
    let mut ys = y.to_vec();
    ys.sort_unstable_by(f64::total_cmp);
    let psi = digamma_table(n);
    let mut nearest = Vec::with_capacity(neighbours + 1);
    let counted = (0..n).map(|place| {
        let radius = kth_distance(&sorted, place, neighbours, &mut nearest);
        // Both counts include the sample itself: psi(n_x + 1) of the formula.
        psi[n_nearer(&xs, sorted[place].0, radius)] + psi[n_nearer(&ys, sorted[place].1, radius)]
    });
    let mean = counted.sum::<f64>() / n as f64;
    Ok((psi[n] + psi[neighbours] - mean).max(0.0))
}

/// Distance in the maximum norm from the point at `place` to its k-th neighbour among points sorted by x.
fn kth_distance(sorted: &[(f64, f64)], place: usize, k: usize, nearest: &mut Vec<f64>) -> f64 {
    let (x, y) = sorted[place];
    nearest.clear(); // the k smallest distances so far, ascending
    let (mut below, mut above) = (place, place + 1);
    loop {
        let left = below.checked_sub(1).map_or(f64::INFINITY, |next| x - sorted[next].0);
        let right = sorted.get(above).map_or(f64::INFINITY, |point| point.0 - x);
        let bound = if nearest.len() == k { nearest[k - 1] } else { f64::INFINITY };
        // At both ends both distances are infinite; as n > k, k neighbours have been found by then.
        if left.min(right) >= bound {
            return bound;
        }
        let (along_x, neighbour) = if left <= right {
            below -= 1;
            (left, sorted[below])
        } else {
            above += 1;
            (right, sorted[above - 1])
        };
        let distance = along_x.max((neighbour.1 - y).abs());
        if distance < bound {
            nearest.truncate(k - 1);
            nearest.insert(nearest.partition_point(|other| *other <= distance), distance);
        }
    }
}

/// Distance from the value at `place` to its k-th neighbour among ascending values, k < their number.
fn kth_distance_in(sorted: &[f64], place: usize, k: usize) -> f64 {
    let value = sorted[place];
    let (mut below, mut above, mut distance) = (place, place + 1, 0.0);
    for _ in 0..k {
        let left = below.checked_sub(1).map_or(f64::INFINITY, |next| value - sorted[next]);
        let right = sorted.get(above).map_or(f64::INFINITY, |next| next - value);
        if left <= right {
            below -= 1;
            distance = left;
        } else {
            above += 1;
            distance = right;
        }
    }
    distance
}

/// The number of ascending values nearer to `value` than `radius` (itself included), or equal to `value` if `radius` is
/// 0.
fn n_nearer(sorted: &[f64], value: f64, radius: f64) -> usize {
    let near = |distance: f64| if radius > 0.0 { distance < radius } else { distance <= 0.0 };
    let first = sorted.partition_point(|other| *other < value && !near(value - other));
    let last = sorted.partition_point(|other| *other <= value || near(other - value));
    last - first
}

/// psi(0..=n) at whole numbers: psi(1) = -gamma, psi(m + 1) = psi(m) + 1/m. Entry 0 is never read.
fn digamma_table(n: usize) -> Vec<f64> {
    const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;
    let values = (0..=n).scan(-EULER_GAMMA, |psi, m| {
        if m > 1 {
            *psi += 1.0 / (m - 1) as f64;
        }
        Some(*psi)
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::Array2;
    use rand::RngExt as _;
    use statrs::function::gamma::digamma;

    use super::*;
    use crate::seeds;

    fn random(n: usize, name: u64) -> Vec<f64> {
        let mut rng = seeds::stream(11, "ksg", &[name]);
        (0..n).map(|_| rng.random::<f64>()).collect()
    }

    /// The definition with a plain double loop.
    fn by_hand(x: &[f64], y: &[f64], k: usize) -> f64 {
        let (x, y, n) = (scaled(x).unwrap(), scaled(y).unwrap(), x.len());
        let psi = |count: usize| digamma(count as f64);
        let mut sum = 0.0;
        for i in 0..n {
            let others = || (0..n).filter(move |&j| j != i);
            let mut distances: Vec<f64> = others().map(|j| (x[i] - x[j]).abs().max((y[i] - y[j]).abs())).collect();
            distances.sort_by(f64::total_cmp);
            let radius = distances[k - 1];
            let nearer = |z: &[f64]| others().filter(|&j| (z[i] - z[j]).abs() < radius).count();
            sum += psi(nearer(&x) + 1) + psi(nearer(&y) + 1);
        }
        (psi(n) + psi(k) - sum / n as f64).max(0.0)
    }

    #[test]
    fn the_window_finds_what_a_double_loop_finds() {
        for (n, k) in [(5, 3), (40, 1), (150, 3), (150, 10)] {
            let (x, noise) = (random(n, 0), random(n, 1));
            let y: Vec<f64> = x.iter().zip(&noise).map(|(x, e)| x + e).collect();
            let found = ksg_mutual_information(&x, &y, k).unwrap();
            assert_relative_eq!(found, by_hand(&x, &y, k), max_relative = 1e-12, epsilon = 1e-14);
        }
    }

    #[test]
    fn a_gaussian_pair_has_the_information_of_theory() {
        // I = -ln(1 - r^2) / 2; correlation 0.8 from sums of 12 uniform numbers; 3 standard errors at n = 3000.
        let mut rng = seeds::stream(2, "gauss", &[]);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let pairs: Vec<(f64, f64)> = (0..3_000).map(|_| (normal(), normal())).collect();
        let x: Vec<f64> = pairs.iter().map(|(a, _)| *a).collect();
        let y: Vec<f64> = pairs.iter().map(|(a, b)| 0.8 * a + 0.6 * b).collect();
        let found = ksg_mutual_information(&x, &y, 3).unwrap();
        assert!((found + 0.5 * (1.0_f64 - 0.64).ln()).abs() < 0.06, "{found}");
    }

    #[test]
    fn scaling_and_shifting_by_halves_change_nothing_and_tied_values_are_repeatable() {
        let (x, y) = (random(80, 3), random(80, 4));
        let doubled: Vec<f64> = x.iter().map(|x| 2.0 * x).collect();
        assert_relative_eq!(
            ksg_mutual_information(&doubled, &y, 3).unwrap(),
            ksg_mutual_information(&x, &y, 3).unwrap(),
            max_relative = 1e-12,
            epsilon = 1e-14
        );
        let tied: Vec<f64> = (0..80).map(|k| f64::from(k % 2)).collect();
        assert!(ksg_mutual_information(&tied, &tied, 3).unwrap().is_finite());
        assert_eq!(ksg_mutual_information(&[1.0; 9], &[2.0; 9], 3), Ok(0.0));
    }

    #[test]
    fn classes_far_apart_tell_everything_and_single_samples_are_left_out() {
        // scikit-learn 1.9.1: mutual_info_classif(x, labels, random_state=3) = 0.75952381; equal distances make other
        // seeds of its noise give other values.
        let x = [0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3, 50.0];
        let labels = [0, 0, 0, 0, 1, 1, 1, 1, 7];
        let found = ksg_mutual_information_discrete(&x, &labels, 3).unwrap();
        let psi = |count: f64| digamma(count);
        // Within a class of 4 the third neighbour of an end is the other end (3 nearer), of an inner sample the far
        // end (3 nearer).
        let expected = psi(8.0) + psi(3.0) - psi(4.0) - psi(3.0);
        assert_relative_eq!(found, expected, max_relative = 1e-12);
        assert!(ksg_mutual_information_discrete(&[1.0, 2.0], &[0, 1], 3).is_err());
    }

    #[test]
    fn every_dimension_is_estimated_alone() {
        let (a, y) = (random(60, 5), random(60, 6));
        let matrix = Array2::from_shape_fn((60, 2), |(row, column)| if column == 0 { a[row] } else { y[row] });
        let found = ksg_per_dimension(&matrix, &y, DEFAULT_NEIGHBOURS).unwrap();
        assert_eq!(found.values[0], ksg_mutual_information(&a, &y, 3).unwrap());
        assert_eq!(found.max, found.values[1]);
        assert_eq!(found.mean, f64::midpoint(found.values[0], found.values[1]));
        let labels: Vec<u32> = (0..60).map(|row| row % 2).collect();
        let discrete = ksg_per_dimension_discrete(&matrix, &labels, 3).unwrap();
        assert_eq!(discrete.values[1], ksg_mutual_information_discrete(&y, &labels, 3).unwrap());
    }

    #[test]
    fn the_table_of_digamma_is_right() {
        let table = digamma_table(1_000);
        for m in [1, 2, 3, 10, 999, 1_000] {
            assert_relative_eq!(table[m], digamma(m as f64), max_relative = 1e-12);
        }
    }

    #[test]
    fn what_has_no_neighbours_is_refused() {
        assert!(matches!(
            ksg_mutual_information(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 3),
            Err(MetricError::TooFewSamples { n: 3, expected: 4 })
        ));
        assert!(ksg_mutual_information(&[1.0], &[], 3).is_err());
        assert!(ksg_mutual_information(&[1.0, 2.0], &[1.0, 2.0], 0).is_err());
        assert!(ksg_mutual_information(&[1.0, f64::NAN], &[1.0, 2.0], 1).is_err());
        assert!(ksg_mutual_information(&[f64::MAX, f64::MIN], &[1.0, 2.0], 1).is_err());
    }
}
