//! The maximum mean discrepancy between groups: kernels, and the pairs of samples that enter with which coefficient.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::strategies::groups::on_host;
use crate::strategies::numbers::constant;

/// gamma of `DomainBed`.
const DOMAINBED: [f64; 7] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];
/// c of the median-scaled bank.
const MULTIPLIERS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Which Gaussian kernels are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kernels {
    /// gamma from 1e-3 to 1e3 by factors of 10.
    #[serde(rename = "domainbed")]
    #[default]
    DomainBed,
    /// Five widths around the median distance of the batch.
    MedianScaled,
    /// One gamma.
    Single,
}

/// Which mean over kernel values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Over all pairs, including a sample with itself.
    #[default]
    Biased,
    /// Over pairs of two different samples.
    Unbiased,
}

/// |`z_i` - `z_j`|^2: `[n, length]` -> `[n, n]`. Cost O(n^2 length), also in memory.
pub(super) fn squared_distances(z: Tensor<2>) -> Tensor<2> {
    let [n, length] = z.dims();
    let difference = z.clone().reshape([n, 1, length]) - z.reshape([1, n, length]); // [n, n, length]
    difference.square().sum_dim(2).reshape([n, n])
}

/// Sum over the kernels, `[n, n]` -> `[n, n]`.
pub(super) fn kernel_values(distances: &Tensor<2>, gammas: &[f64]) -> Tensor<2> {
    let kernel = |gamma: &f64| (distances.clone() * -gamma).exp();
    gammas.iter().map(kernel).reduce(|sum, kernel| sum + kernel).expect("a bank has a kernel")
}

/// The median of the squared distances of all pairs of two samples (of those that are not 0, where most are), `n >= 2`;
/// `None` if all samples are the same.
pub(super) fn median_squared_distance(distances: &[f64], n: usize) -> Option<f64> {
    let mut pairs: Vec<f64> = (0..n).flat_map(|i| &distances[i * n + i + 1..(i + 1) * n]).copied().collect();
    pairs.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| {
        let half = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
    };
    if pairs.is_empty() || median(&pairs) > 0.0 {
        return pairs.first().map(|_| median(&pairs));
    }
    pairs.retain(|distance| *distance > 0.0);
    (!pairs.is_empty()).then(|| median(&pairs))
}

impl Kernels {
    /// gamma of every kernel, given the squared distances of a batch, `[n, n]`.
    pub(super) fn gammas(self, single: f64, distances: &Tensor<2>) -> Vec<f64> {
        match self {
            Self::DomainBed => DOMAINBED.to_vec(),
            Self::Single => vec![single],
            Self::MedianScaled => {
                let median = median_squared_distance(&on_host(&distances.clone().flatten(0, 1)), distances.dims()[0]);
                // If all distances are 0, every kernel is 1 regardless of gamma.
                MULTIPLIERS
                    .iter()
                    .map(|c| median.map_or(1.0, |median| 1.0 / (2.0 * c * median.max(SMALLEST_MEDIAN))))
                    .collect()
            }
        }
    }
}

/// Below it gamma would exceed the range of `f32`, and the diagonal would be 0 times infinity.
const SMALLEST_MEDIAN: f64 = 1e-30;

/// The term as a weighted sum over kernel values.
#[derive(Debug)]
pub(super) struct Contrast {
    /// Coefficient of the kernel of i and j, `[n, n]`.
    pub(super) coefficients: Vec<f64>,
    /// Pairs of cells behind it.
    pub(super) n_used: usize,
}

impl Contrast {
    /// The mean of MMD^2 over the pairs of groups (within a stratum) of which each has at least `smallest` samples.
    /// `cells` are stratum and group of every sample, `[n]`.
    pub(super) fn new(cells: &[Option<(usize, u32)>], estimator: Estimator, smallest: usize) -> Self {
        let n = cells.len();
        let mut members: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
        for (i, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                members.entry(*cell).or_default().push(i);
            }
        }
        members.retain(|_, samples| samples.len() >= smallest);
        let mut pairs = Vec::new();
        for (position, ((stratum, _), first)) in members.iter().enumerate() {
            let others = members.iter().skip(position + 1).take_while(|((other, _), _)| other == stratum);
            pairs.extend(others.map(|(_, second)| (first, second)));
        }
        let mut coefficients = vec![0.0; n * n];
        let mut add = |rows: &[usize], columns: &[usize], coefficient: f64, diagonal: bool| {
            for i in rows {
                for j in columns.iter().filter(|j| diagonal || i != *j) {
                    coefficients[i * n + j] += coefficient / pairs.len() as f64;
                }
            }
        };
        for (first, second) in &pairs {
            for group in [first, second] {
                let size = group.len() as f64;
                match estimator {
                    Estimator::Biased => add(group, group, 1.0 / (size * size), true),
                    Estimator::Unbiased => add(group, group, 1.0 / (size * (size - 1.0)), false),
                }
            }
            let across = -1.0 / (first.len() * second.len()) as f64;
            add(first, second, across, true);
            add(second, first, across, true);
        }
        Self { coefficients, n_used: pairs.len() }
    }

    /// The term, `[1]`, from the kernel values, `[n, n]`.
    pub(super) fn of(&self, kernels: Tensor<2>) -> Tensor<1> {
        let coefficients = constant(self.coefficients.clone(), kernels.dims(), &kernels);
        (kernels * coefficients).sum()
    }
}
