//! A new probe for the group: ridge regression of each group's indicator on a representation, fitted on training
//! samples and evaluated on new ones.

use std::cmp::Ordering;

use ndarray::{Array1, Array2, Axis, concatenate};
use serde::{Deserialize, Serialize};

/// Random features of the second probe.
const N_RANDOM: usize = 200;
/// Groups of the test part with fewer samples are left out.
const SMALLEST: usize = 20;
/// Samples of a group that enter the distance between groups: its first ones, so the order of a table must carry no
/// information.
const N_DISTANCE: usize = 300;

/// One part: representations, groups and strata of its samples.
pub struct Side {
    pub values: Array2<f64>,
    pub groups: Vec<Option<usize>>,
    pub strata: Vec<Option<usize>>,
}

#[derive(Serialize, Deserialize)]
pub struct Probed {
    /// Area under the curve of a linear probe, mean over the groups against the rest: 0.5 = no information.
    pub linear: f64,
    /// The same with 200 random rectified features in addition to the representation.
    pub wide: f64,
    /// The area of the wide probe within strata, mean over them.
    pub within: f64,
    /// Squared maximum mean discrepancy, five kernels around the median distance, mean over pairs of groups.
    pub mmd2: f64,
}

pub fn probe(train: &Side, test: &Side, n_groups: usize) -> Probed {
    let (mean, deviation) = scale(&train.values);
    let [a, b] = [train, test].map(|side| (&side.values - &mean) / &deviation);
    let (wide_a, wide_b) = (widened(&a), widened(&b));
    let linear = scores(&a, &train.groups, &b, n_groups);
    let wide = scores(&wide_a, &train.groups, &wide_b, n_groups);
    let all = vec![Some(0); test.groups.len()];
    let within: Vec<f64> = (0..2).map(|y| area(&wide, test, &test.strata, y)).filter(|a| a.is_finite()).collect();
    Probed {
        linear: area(&linear, test, &all, 0),
        wide: area(&wide, test, &all, 0),
        within: within.iter().sum::<f64>() / within.len().max(1) as f64,
        mmd2: mmd2(&b, &test.groups, n_groups),
    }
}

fn scale(values: &Array2<f64>) -> (Array1<f64>, Array1<f64>) {
    let mean = values.mean_axis(Axis(0)).unwrap_or_default();
    let deviation = values.std_axis(Axis(0), 0.0).mapv(|d| if d > 1e-9 { d } else { 1.0 });
    (mean, deviation)
}

/// The representation and rectified random sums of it, the same ones in every call.
fn widened(values: &Array2<f64>) -> Array2<f64> {
    let n = values.ncols();
    let mut state = 88_172_645_463_325_252_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let weights = Array2::from_shape_simple_fn((n, N_RANDOM), || normal() / (n as f64).sqrt());
    let shifts = Array1::from_shape_simple_fn(N_RANDOM, &mut normal);
    let random = (values.dot(&weights) + shifts).mapv(|x| x.max(0.0));
    concatenate(Axis(1), &[values.view(), random.view()]).unwrap_or_else(|_| values.clone())
}

/// Score of every test sample for every group, `[n_groups]` of `[n]`.
fn scores(train: &Array2<f64>, groups: &[Option<usize>], test: &Array2<f64>, n_groups: usize) -> Vec<Array1<f64>> {
    let known: Vec<usize> = (0..groups.len()).filter(|i| groups[*i].is_some()).collect();
    let x = train.select(Axis(0), &known);
    let mean = x.mean_axis(Axis(0)).unwrap_or_default();
    let x = x - &mean;
    let mut system = x.t().dot(&x);
    system.diag_mut().mapv_inplace(|d| d + 0.01 * known.len() as f64);
    let factor = cholesky(system);
    let of_group = |g: usize| {
        let side: Array1<f64> = known.iter().map(|i| f64::from(u8::from(groups[*i] == Some(g)))).collect();
        let side = &side - side.mean().unwrap_or_default();
        test.dot(&solve(&factor, x.t().dot(&side)))
    };
    (0..n_groups).map(of_group).collect()
}

/// Lower factor of a positive definite matrix.
fn cholesky(mut matrix: Array2<f64>) -> Array2<f64> {
    let n = matrix.nrows();
    for j in 0..n {
        for k in 0..j {
            let factor = matrix[[j, k]];
            for i in j..n {
                matrix[[i, j]] -= matrix[[i, k]] * factor;
            }
        }
        let root = matrix[[j, j]].max(1e-12).sqrt();
        for i in j..n {
            matrix[[i, j]] /= root;
        }
    }
    matrix
}

fn solve(lower: &Array2<f64>, mut b: Array1<f64>) -> Array1<f64> {
    let n = b.len();
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| lower[[i, k]] * b[k]).sum();
        b[i] = (b[i] - sum) / lower[[i, i]];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| lower[[k, i]] * b[k]).sum();
        b[i] = (b[i] - sum) / lower[[i, i]];
    }
    b
}

/// Mean over the groups of the area under the curve among the samples of one stratum; ties count 1/2.
fn area(scores: &[Array1<f64>], test: &Side, strata: &[Option<usize>], stratum: usize) -> f64 {
    let rows: Vec<usize> =
        (0..strata.len()).filter(|i| strata[*i] == Some(stratum) && test.groups[*i].is_some()).collect();
    let of_group = |(g, scores): (usize, &Array1<f64>)| {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for i in &rows {
            if test.groups[*i] == Some(g) { own.push(scores[*i]) } else { other.push(scores[*i]) }
        }
        (own.len() >= SMALLEST && other.len() >= SMALLEST).then(|| above(&own, &mut other))
    };
    let areas: Vec<f64> = scores.iter().enumerate().filter_map(of_group).collect();
    areas.iter().sum::<f64>() / areas.len() as f64
}

/// Share of pairs in which a value of `own` is above one of `other`.
fn above(own: &[f64], other: &mut [f64]) -> f64 {
    other.sort_by(f64::total_cmp);
    let below = |x: &f64| {
        let less = other.partition_point(|y| y.total_cmp(x) == Ordering::Less);
        let at_most = other.partition_point(|y| y.total_cmp(x) != Ordering::Greater);
        0.5 * (less + at_most) as f64
    };
    own.iter().map(below).sum::<f64>() / (own.len() * other.len()) as f64
}

fn mmd2(values: &Array2<f64>, groups: &[Option<usize>], n_groups: usize) -> f64 {
    let members =
        |g: usize| -> Vec<usize> { (0..groups.len()).filter(|i| groups[*i] == Some(g)).take(N_DISTANCE).collect() };
    let by_group: Vec<Vec<usize>> = (0..n_groups).map(members).filter(|rows| rows.len() >= SMALLEST).collect();
    let mut of_pairs = Vec::new();
    for (at, one) in by_group.iter().enumerate() {
        for other in &by_group[at + 1..] {
            let within = [one, other].map(|rows| distances(values, rows, rows));
            let between = distances(values, one, other);
            let mut all: Vec<f64> = between.iter().copied().collect();
            all.sort_by(f64::total_cmp);
            let median = all[all.len() / 2].max(1e-12);
            let mean = |of: &Array2<f64>| of.iter().map(|d| kernels(*d / median)).sum::<f64>() / of.len() as f64;
            of_pairs.push(mean(&within[0]) + mean(&within[1]) - 2.0 * mean(&between));
        }
    }
    of_pairs.iter().sum::<f64>() / of_pairs.len().max(1) as f64
}

/// Five Gaussian kernels around a squared distance of 1.
fn kernels(squared: f64) -> f64 {
    [0.25, 0.5, 1.0, 2.0, 4.0].iter().map(|width| (-squared / (2.0 * width)).exp()).sum()
}

/// Squared distances between some rows and others.
fn distances(values: &Array2<f64>, some: &[usize], others: &[usize]) -> Array2<f64> {
    let square = |row: usize| values.row(row).dot(&values.row(row));
    let product = values.select(Axis(0), some).dot(&values.select(Axis(0), others).t());
    let between = |(i, j): (usize, usize)| (square(some[i]) + square(others[j]) - 2.0 * product[[i, j]]).max(0.0);
    Array2::from_shape_fn(product.dim(), between)
}
