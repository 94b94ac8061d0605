//! Covariates and the unmeasured z of one person.

use fairtte_metrics::seeds::stream;
use ndarray::{Array1, Array2, Axis};
use rand::RngExt as _;

use super::settings::{CovariateSettings, Scale};
use crate::ClassicalError;
use crate::estimator::{Column, check_finite};

/// Standard deviations that become 0 and 1 on the unit scale.
const LIMIT: f64 = 4.0;

/// Where covariates come from.
pub(super) enum Covariates {
    Normal {
        count: usize,
        scale: Scale,
        /// x = `own` (e + `shared` sum(e)) of independent standard normal e.
        own: f64,
        shared: f64,
        /// z = `of_sum` sum(x) + `of_z` e.
        of_sum: f64,
        of_z: f64,
    },
    Given {
        rows: Array2<f64>,
        scale: Scale,
        /// The standardised sum of standardised columns, `[rows]`.
        sums: Array1<f64>,
        correlation: f64,
    },
}

impl Covariates {
    /// With unit variances and correlation r, Sigma = (1 - r) (I + r / (1 - r) J), whose square root is
    /// sqrt(1 - r) (I + `shared` J), J a matrix of ones.
    pub(super) fn normal(settings: &CovariateSettings, of_unmeasured: f64) -> Self {
        let CovariateSettings { count, correlation: r, scale } = *settings;
        let d = count as f64;
        let variance_of_sum = d * (1.0 + (d - 1.0) * r);
        let of_sum = of_unmeasured * d / variance_of_sum;
        Self::Normal {
            count,
            scale,
            own: (1.0 - r).sqrt(),
            shared: ((1.0 + d * r / (1.0 - r)).sqrt() - 1.0) / d,
            of_sum,
            of_z: (1.0 - of_sum * of_sum * variance_of_sum).max(0.0).sqrt(),
        }
    }

    pub(super) fn given(rows: &Array2<f64>, scale: Scale, correlation: f64) -> Result<Self, ClassicalError> {
        if rows.is_empty() {
            return Err(ClassicalError::NoCovariates);
        }
        check_finite(rows)?;
        let (mut scaled, mut sums) = (rows.clone(), Array1::zeros(rows.nrows()));
        for (place, mut column) in scaled.axis_iter_mut(Axis(1)).enumerate() {
            let ends =
                column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
            let is_constant = ends.0 >= ends.1;
            if !is_constant {
                let (mean, deviation) = (column.mean().unwrap_or(0.0), column.std(0.0));
                sums += &column.mapv(|x| (x - mean) / deviation);
            }
            match scale {
                Scale::Unit if is_constant => {
                    let n = rows.nrows();
                    return Err(ClassicalError::Constant { column: Column::new(place), n });
                }
                Scale::Unit => column.mapv_inplace(|x| (x - ends.0) / (ends.1 - ends.0)),
                Scale::None => {}
            }
        }
        let deviation = sums.std(0.0);
        if deviation > 0.0 {
            sums /= deviation;
        }
        Ok(Self::Given { rows: scaled, scale, sums, correlation })
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Normal { count, .. } => *count,
            Self::Given { rows, .. } => rows.ncols(),
        }
    }

    /// Covariates `[d]` and z of person `row`.
    pub(super) fn of(&self, seed: u64, row: usize) -> (Vec<f64>, f64) {
        let own = standard_normal(&mut stream(seed, "generator/unmeasured", &[row as u64]));
        match self {
            Self::Normal { count, scale, own: factor, shared, of_sum, of_z } => {
                let mut rng = stream(seed, "generator/covariates", &[row as u64]);
                let e: Vec<f64> = (0..*count).map(|_| standard_normal(&mut rng)).collect();
                let sum: f64 = e.iter().sum();
                let x: Vec<f64> = e.iter().map(|e| factor * (e + shared * sum)).collect();
                let z = of_sum * x.iter().sum::<f64>() + of_z * own;
                (x.into_iter().map(|x| scaled(x, *scale)).collect(), scaled(z, *scale))
            }
            Self::Given { rows, scale, sums, correlation } => {
                let row = row % rows.nrows();
                let z = correlation * sums[row] + (1.0 - correlation * correlation).sqrt() * own;
                (rows.row(row).to_vec(), scaled(z, *scale))
            }
        }
    }
}

fn scaled(x: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Unit => ((x + LIMIT) / (2.0 * LIMIT)).clamp(0.0, 1.0),
        Scale::None => x,
    }
}

/// A number from the standard normal distribution (Box and Muller 1958).
pub(super) fn standard_normal(rng: &mut impl rand::Rng) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt(), rng.random::<f64>());
    radius * (std::f64::consts::TAU * angle).cos()
}
