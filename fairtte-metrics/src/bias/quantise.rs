//! Turns numbers and vectors into labels, so that mutual information can be computed from counts.
//!
//! k-means: centres that minimise the sum of squared distances of the rows to their nearest centre, by Lloyd's
//! iterations from k-means++ starts (a row becomes a centre with probability proportional to its squared distance to
//! the nearest centre so far); the best of several starts is kept. A cluster that loses all of its rows takes the row
//! that is farthest from its own centre. Sources: Lloyd (1982), <https://doi.org/10.1109/TIT.1982.1056489>; Arthur &
//! Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
//! Bins: equal-frequency edges are `numpy.quantile` (linear) at 1/B, 2/B, ..; equal-width edges are the inner points of
//! `numpy.linspace(min, max, B + 1)`; in both a value on an edge belongs to the bin above
//! (`searchsorted(side="right")`), so tied values stay together and bins of tied data may be empty. Golden labels:
//! numpy 2.4.6. Labels of k-means depend on the random numbers, so those of scikit-learn cannot be golden values; a
//! test on separated clusters takes their place.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayRef2, ArrayView1};
use rand::{Rng, RngExt as _};
use rayon::prelude::*;

use super::wasserstein::{check_finite, representable};
use crate::evaluation::Stop;
use crate::ids::to_u32;
use crate::{MetricError, seeds};

/// Sums over rows are formed in blocks of this size and added in order, so that they do not depend on the threads.
const BLOCK: usize = 1024;

/// The maximum number of bins, clusters, starts and iterations: more than any sample needs.
const MAX_COUNT: usize = 1_000_000;

/// Labels of equal-frequency bins: `n_bins` bins with, as far as ties allow, equally many of the `values`. O(n log n).
///
/// ```
/// use fairtte_metrics::bias::equal_frequency_bins;
///
/// assert_eq!(equal_frequency_bins(&[5.0, 1.0, 9.0, 2.0], 2)?, [1, 0, 1, 0]); // the edge is 3.5
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`] without values, [`MetricError::InvalidNumber`] if one is not finite,
/// [`MetricError::InvalidSetting`] unless `n_bins` is between 1 and 1,000,000.
pub fn equal_frequency_bins(values: &[f64], n_bins: usize) -> Result<Vec<u32>, MetricError> {
    check_bins(values, n_bins)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let width = 1.0 / n_bins as f64; // k times this is `numpy.linspace(0, 1, B + 1)`, to the last bit
    let edges: Vec<f64> = (1..n_bins).map(|k| quantile_edge(&sorted, k as f64 * width)).collect();
    Ok(labels_between(values, &edges))
}

/// Labels of `n_bins` bins of the same width between the smallest and the largest value. O(n log B).
///
/// # Errors
/// As [`equal_frequency_bins`]; [`MetricError::NotFinite`] if the range is beyond the largest `f64`.
pub fn equal_width_bins(values: &[f64], n_bins: usize) -> Result<Vec<u32>, MetricError> {
    check_bins(values, n_bins)?;
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let width = representable("range of the values", high - low)? / n_bins as f64;
    let edges: Vec<f64> = (1..n_bins).map(|k| k as f64 * width + low).collect();
    Ok(labels_between(values, &edges))
}

fn check_bins(values: &[f64], n_bins: usize) -> Result<(), MetricError> {
    check_count("n-bins", n_bins)?;
    if values.is_empty() { Err(MetricError::NoSamples) } else { check_finite("value", values) }
}

fn check_count(setting: &'static str, count: usize) -> Result<(), MetricError> {
    if (1..=MAX_COUNT).contains(&count) {
        return Ok(());
    }
    Err(MetricError::InvalidSetting { setting, value: count.to_string(), expected: "a whole number from 1 to 1000000" })
}

/// Quantile `p` by linear interpolation, rounded exactly as in numpy (from the nearer of two values): an edge that
/// differs in its last bit would put a value equal to it into the other bin.
fn quantile_edge(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = p * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "place lies in [0, last]")]
    let below = (place as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    let (share, step) = (place - below as f64, high - low);
    if step.is_infinite() {
        // The ends of the range of f64 are further apart than its largest number.
        return low * (1.0 - share) + high * share;
    }
    if share < 0.5 { low + step * share } else { high - step * (1.0 - share) }
}

/// The number of ascending `edges` that are not above each value.
fn labels_between(values: &[f64], edges: &[f64]) -> Vec<u32> {
    values.iter().map(|value| to_u32(edges.partition_point(|edge| edge <= value))).collect()
}

/// Settings of k-means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KMeansSettings {
    /// Clusters, 1 to 1,000,000.
    pub n_clusters: usize,
    /// Starts of which the best is kept, 1 to 1,000,000.
    pub n_starts: usize,
    /// Iterations per start, 1 to 1,000,000; a start ends early when no label changes.
    pub max_iterations: usize,
    /// Seed of the starts.
    pub seed: u64,
}

/// Clusters of the rows of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct KMeans {
    /// Cluster of every row, `[n]`.
    pub labels: Vec<u32>,
    /// Mean of the rows of every cluster, `[k, d]`; fewer than asked for if there are fewer distinct rows.
    pub centres: Array2<f64>,
    /// Sum of squared distances of the rows to their centres.
    pub inertia: f64,
    /// Iterations of the start that was kept.
    pub n_iterations: usize,
}

/// Clusters the rows of `matrix` `[n, d]`. O(starts x iterations x n k d), in parallel over rows; the result does not
/// depend on the number of threads. A row at the same distance from several centres goes to the first of them; of
/// equally good starts the first is kept.
///
/// # Errors
/// [`MetricError::NoSamples`] without rows or columns, [`MetricError::InvalidSetting`] for a setting that is not
/// between 1 and 1,000,000,
/// [`MetricError::InvalidNumber`] if a number is not finite, [`MetricError::NotFinite`] if distances are beyond `f64`.
pub fn k_means(matrix: &ArrayRef2<f64>, settings: &KMeansSettings) -> Result<KMeans, MetricError> {
    k_means_until(matrix, settings, &Stop::default())
}

/// [`k_means`] that fails with [`MetricError::Stopped`] before its next iteration once `stop` is set.
///
/// # Errors
/// As [`k_means`].
pub(super) fn k_means_until(
    matrix: &ArrayRef2<f64>,
    settings: &KMeansSettings,
    stop: &Stop,
) -> Result<KMeans, MetricError> {
    let counts = [
        ("n-clusters", settings.n_clusters),
        ("n-starts", settings.n_starts),
        ("max-iterations", settings.max_iterations),
    ];
    counts.into_iter().try_for_each(|(setting, count)| check_count(setting, count))?;
    check_matrix(matrix)?;
    let order = order_of_values(matrix);
    let data: Vec<f64> = order.iter().flat_map(|row| matrix.row(*row).to_vec()).collect();
    let rows = Rows { data: &data, d: matrix.ncols() };
    let stream = |start: usize| seeds::stream(settings.seed, "bias-k-means", &[start as u64]);
    let start = |start: usize| lloyd(rows, settings, stream(start), stop);
    let mut best = start(0)?;
    for number in 1..settings.n_starts {
        let next = start(number)?;
        if next.inertia < best.inertia {
            best = next;
        }
    }
    representable("sum of squared distances", best.inertia)?;
    let mut labels = vec![0; order.len()];
    order.iter().zip(&best.labels).for_each(|(row, label)| labels[*row] = *label);
    Ok(KMeans { labels, ..best })
}

/// The rows ordered by their values, whatever their order in the matrix: starts are drawn by the place of a row. The order of columns is of
/// no effect either, unless rows have the same values in other columns.
fn order_of_values(matrix: &ArrayRef2<f64>) -> Vec<usize> {
    let sorted = |row: ArrayView1<'_, f64>| {
        let mut values = row.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let compare = |a: &[f64], b: &[f64]| {
        let differ = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
        differ.unwrap_or(Ordering::Equal)
    };
    let keys: Vec<Vec<f64>> = matrix.rows().into_iter().map(sorted).collect();
    let mut order: Vec<usize> = (0..matrix.nrows()).collect();
    order.sort_by(|a, b| {
        let by_row = || compare(&matrix.row(*a).to_vec(), &matrix.row(*b).to_vec());
        compare(&keys[*a], &keys[*b]).then_with(by_row)
    });
    order
}

/// Refuses an empty matrix and numbers that are not finite.
pub(super) fn check_matrix(matrix: &ArrayRef2<f64>) -> Result<(), MetricError> {
    if matrix.is_empty() {
        return Err(MetricError::NoSamples);
    }
    let bad = matrix.indexed_iter().find(|(_, value)| !value.is_finite());
    bad.map_or(Ok(()), |((row, _), value)| {
        let (what, expected) = ("component of the representation", "a finite number");
        Err(MetricError::InvalidNumber { what, row, value: *value, expected })
    })
}

/// Rows of `d` numbers each, concatenated.
#[derive(Clone, Copy)]
struct Rows<'a> {
    data: &'a [f64],
    d: usize,
}

impl<'a> Rows<'a> {
    fn n(self) -> usize {
        self.data.len() / self.d
    }

    fn row(self, row: usize) -> &'a [f64] {
        &self.data[row * self.d..(row + 1) * self.d]
    }
}

/// The nearest centre of every row, with the squared distance to it.
type Assignment = Vec<(u32, f64)>;

fn lloyd(rows: Rows<'_>, settings: &KMeansSettings, mut rng: impl Rng, stop: &Stop) -> Result<KMeans, MetricError> {
    let mut centres = plus_plus_centres(rows, settings.n_clusters, &mut rng);
    let mut assignment = assign(rows, &centres);
    let mut n_iterations = 0;
    while n_iterations < settings.max_iterations {
        stop.check()?;
        n_iterations += 1;
        let n_clusters = centres.len() / rows.d;
        fill_empty_clusters(&mut assignment, n_clusters);
        centres = means(rows, &assignment, n_clusters);
        let next = assign(rows, &centres);
        let settled = next.iter().zip(&assignment).all(|(a, b)| a.0 == b.0);
        assignment = next;
        if settled {
            break;
        }
    }
    let inertia = assignment.iter().map(|(_, distance)| distance).sum();
    let centres = Array2::from_shape_vec((centres.len() / rows.d, rows.d), centres).expect("whole rows");
    let labels = assignment.into_iter().map(|(label, _)| label).collect();
    Ok(KMeans { labels, centres, inertia, n_iterations })
}

/// At most `n_clusters` distinct rows drawn by k-means++, concatenated.
fn plus_plus_centres(rows: Rows<'_>, n_clusters: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut chosen = vec![rng.random_range(0..rows.n())];
    let mut nearest = vec![f64::INFINITY; rows.n()];
    while chosen.len() < n_clusters {
        let centre = rows.row(chosen[chosen.len() - 1]);
        nearest.par_iter_mut().zip(rows.data.par_chunks_exact(rows.d)).for_each(|(distance, row)| {
            *distance = distance.min(squared_distance(row, centre));
        });
        let total: f64 = nearest.iter().sum();
        if total <= 0.0 || !total.is_finite() {
            break; // no other row is left
        }
        let mut left = rng.random::<f64>() * total;
        let reached = nearest.iter().position(|distance| {
            left -= distance;
            left < 0.0
        });
        // Rounding may leave a remainder; then the last row that is not a centre is taken.
        let last = nearest.iter().rposition(|distance| *distance > 0.0);
        chosen.extend(reached.or(last));
    }
    chosen.into_iter().flat_map(|row| rows.row(row)).copied().collect()
}

fn assign(rows: Rows<'_>, centres: &[f64]) -> Assignment {
    let nearest = |row: &[f64]| {
        let distances = centres.chunks_exact(rows.d).map(|centre| squared_distance(row, centre));
        let smaller = |best: (u32, f64), (k, distance)| if distance < best.1 { (k, distance) } else { best };
        (0..).zip(distances).fold((0, f64::INFINITY), smaller)
    };
    rows.data.par_chunks_exact(rows.d).map(nearest).collect()
}

/// Gives every empty cluster the row that is farthest from its centre, the first of them if several are.
fn fill_empty_clusters(assignment: &mut Assignment, n_clusters: usize) {
    let mut sizes = vec![0_usize; n_clusters];
    for (label, _) in assignment.iter() {
        sizes[*label as usize] += 1;
    }
    for cluster in (0..n_clusters).filter(|&cluster| sizes[cluster] == 0).collect::<Vec<_>>() {
        let farther = |best: Option<usize>, row: usize| {
            let (label, distance) = assignment[row];
            let free = sizes[label as usize] > 1 && distance > best.map_or(0.0, |best| assignment[best].1);
            if free { Some(row) } else { best }
        };
        if let Some(row) = (0..assignment.len()).fold(None, farther) {
            sizes[assignment[row].0 as usize] -= 1;
            sizes[cluster] = 1;
            assignment[row] = (to_u32(cluster), 0.0);
        }
    }
}

/// The mean row of every cluster; a cluster that is still empty (fewer distinct rows than clusters) is left out.
fn means(rows: Rows<'_>, assignment: &Assignment, n_clusters: usize) -> Vec<f64> {
    let add = |sum: &mut [f64], more: &[f64]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    let block_sums = |(block, labels): (&[f64], &[(u32, f64)])| {
        // The last column counts the rows.
        let mut sums = vec![0.0; n_clusters * (rows.d + 1)];
        for (row, (label, _)) in block.chunks_exact(rows.d).zip(labels) {
            let sum = &mut sums[*label as usize * (rows.d + 1)..][..=rows.d];
            add(sum, row);
            sum[rows.d] += 1.0;
        }
        sums
    };
    let blocks = rows.data.par_chunks(BLOCK * rows.d).zip(assignment.par_chunks(BLOCK));
    let partial: Vec<Vec<f64>> = blocks.map(block_sums).collect();
    let mut sums = vec![0.0; n_clusters * (rows.d + 1)];
    for block in &partial {
        add(&mut sums, block);
    }
    let used = sums.chunks_exact(rows.d + 1).filter(|sum| sum[rows.d] > 0.0);
    used.flat_map(|sum| sum[..rows.d].iter().map(|total| total / sum[rows.d])).collect()
}

/// Eight running sums, which the compiler turns into vector operations; the order of additions is fixed.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let (a_lanes, a_rest) = a.as_chunks::<8>();
    let (b_lanes, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..8 {
            sums[lane] += (x[lane] - y[lane]) * (x[lane] - y[lane]);
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| (x - y) * (x - y)).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::{Axis, array};

    use super::*;

    fn settings(n_clusters: usize) -> KMeansSettings {
        KMeansSettings { n_clusters, n_starts: 4, max_iterations: 100, seed: 1 }
    }

    /// Three clouds of 50 rows around (0, 0, ..), (10, 0, ..) and (0, 10, ..) in `d` dimensions.
    fn clouds(d: usize) -> Array2<f64> {
        let mut rng = seeds::stream(4, "clouds", &[]);
        Array2::from_shape_fn((150, d), |(row, column)| {
            let centre = if row % 3 == column + 1 { 10.0 } else { 0.0 };
            centre + rng.random::<f64>()
        })
    }

    #[test]
    fn clusters_do_not_depend_on_the_order_of_rows_and_columns() {
        // Without any structure, so that other starts end in other clusters.
        let mut rng = seeds::stream(9, "noise", &[]);
        let matrix = Array2::from_shape_fn((60, 3), |_| rng.random::<f64>());
        let order: Vec<usize> = (0..60).map(|row| row * 7 % 60).collect();
        let found = k_means(&matrix, &settings(5)).unwrap();
        let turned = k_means(&matrix.select(Axis(0), &order), &settings(5)).unwrap();
        assert_eq!(turned.labels, order.iter().map(|row| found.labels[*row]).collect::<Vec<_>>());
        let swapped = k_means(&matrix.select(Axis(1), &[2, 0, 1]), &settings(5)).unwrap();
        assert_eq!(swapped.labels, found.labels);
        assert_ne!(k_means(&matrix, &KMeansSettings { seed: 2, ..settings(5) }).unwrap().labels, found.labels);
    }

    #[test]
    fn a_value_on_an_edge_belongs_to_the_bin_above() {
        // numpy 2.4.6: quantile([1, 2, 3, 4, 5], [1/3, 2/3]) = [2.33.., 3.66..]; linspace(1, 5, 5)[1:-1] = [2, 3, 4]
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(equal_frequency_bins(&values, 3).unwrap(), [0, 0, 1, 2, 2]);
        assert_eq!(equal_width_bins(&values, 4).unwrap(), [0, 1, 2, 3, 3]);
        assert_eq!(equal_frequency_bins(&[1.0, 1.0, 1.0, 2.0], 2).unwrap(), [1, 1, 1, 1]); // the edge is 1
        assert_eq!(equal_width_bins(&[7.0, 7.0], 3).unwrap(), [2, 2]);
        assert_eq!(equal_frequency_bins(&values, 1).unwrap(), [0; 5]);
        for n_bins in [0, usize::MAX] {
            assert!(matches!(equal_frequency_bins(&values, n_bins), Err(MetricError::InvalidSetting { .. })));
            assert!(matches!(equal_width_bins(&values, n_bins), Err(MetricError::InvalidSetting { .. })));
        }
        assert_eq!(equal_frequency_bins(&[f64::MIN, f64::MAX], 2).unwrap(), [0, 1]); // the edge is 0
        assert!(equal_width_bins(&[f64::INFINITY], 2).is_err());
        assert!(equal_width_bins(&[f64::MAX, f64::MIN], 2).is_err());
    }

    #[test]
    fn separated_clouds_are_found_with_their_means() {
        for d in [3, 19] {
            let rows = clouds(d);
            let found = k_means(&rows, &settings(3)).unwrap();
            for row in 0..150 {
                assert_eq!(found.labels[row], found.labels[row % 3]);
            }
            let first = rows.select(Axis(0), &(0..150).step_by(3).collect::<Vec<_>>());
            let mean = first.mean_axis(Axis(0)).unwrap();
            let centre = found.centres.row(found.labels[0] as usize);
            assert!(centre.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-12));
            let by_hand: f64 = (0..150)
                .map(|row| {
                    squared_distance(&rows.row(row).to_vec(), &found.centres.row(found.labels[row] as usize).to_vec())
                })
                .sum();
            assert_abs_diff_eq!(found.inertia, by_hand, epsilon = 1e-9);
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_clusters() {
        let mut rng = seeds::stream(4, "noise", &[]);
        let rows = Array2::from_shape_fn((5_000, 5), |_| rng.random::<f64>());
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| k_means(&rows, &settings(7)).unwrap())
        };
        assert_eq!(run(1), run(3));
        // Columns that are not contiguous in memory are the same matrix.
        let transposed = rows.t().as_standard_layout().into_owned();
        assert_eq!(k_means(&transposed.t(), &settings(7)).unwrap(), run(2));
    }

    #[test]
    fn more_starts_never_give_a_worse_sum_of_squares() {
        let mut rng = seeds::stream(9, "noise", &[]);
        let rows = Array2::from_shape_fn((300, 2), |_| rng.random::<f64>());
        let inertia = |n_starts| k_means(&rows, &KMeansSettings { n_starts, ..settings(12) }).unwrap().inertia;
        assert!(inertia(10) < inertia(1));
    }

    #[test]
    fn fewer_distinct_rows_than_clusters_give_fewer_clusters() {
        let rows = array![[1.0], [1.0], [5.0], [5.0], [5.0]];
        let found = k_means(&rows, &settings(4)).unwrap();
        assert_eq!(found.centres.nrows(), 2);
        assert_eq!(found.inertia, 0.0);
        assert_ne!(found.labels[0], found.labels[2]);
    }

    #[test]
    fn an_empty_cluster_takes_the_row_farthest_from_its_centre() {
        let mut assignment = vec![(0, 0.5), (0, 4.0), (2, 9.0), (0, 4.0)];
        fill_empty_clusters(&mut assignment, 3);
        assert_eq!(assignment, [(0, 0.5), (1, 0.0), (2, 9.0), (0, 4.0)]); // row 2 is alone in its cluster
    }

    #[test]
    fn what_cannot_be_clustered_is_refused() {
        let nan = array![[1.0, 2.0], [f64::NAN, 0.0]];
        assert!(matches!(k_means(&nan, &settings(2)), Err(MetricError::InvalidNumber { row: 1, .. })));
        assert!(matches!(k_means(&array![[1.0]], &settings(0)), Err(MetricError::InvalidSetting { .. })));
        assert_eq!(k_means(&Array2::zeros((0, 3)), &settings(2)), Err(MetricError::NoSamples));
        let far = array![[f64::MAX], [f64::MIN]];
        assert!(matches!(k_means(&far, &settings(1)), Err(MetricError::NotFinite { .. })));
    }
}
