//! Metrics of calibration, prepared for an evaluation.

use super::scores::of_selection;
use super::{PreparedMetric, ScoredSample, WeightBlock};
use crate::MetricError;
use crate::calibration::calibration_index::{PreparedCalibrationIndex, PreparedCalibrationSlope};
use crate::calibration::d_calibration::{N_BINS, masses_of_rows};
use crate::calibration::observed_expected::PreparedObservedExpected;
use crate::calibration::{
    BinVariance, DCalibrationConvention, DEFAULT_HAZARD_REPLACEMENT, ObservedRisk, OneCalibrationSettings,
    OwnTimeReading, RiskBinning, calibration_alpha, integrated_calibration, one_calibration as one_calibration_of,
    survival_at_own_time,
};
use crate::estimators::cox_lanes::WIDTH;
use crate::resampling::lanes::LANES;

/// The variance of the predicted risk: the estimated one vanishes in a bin where everybody has the event.
pub(super) const ONE_CALIBRATION: OneCalibrationSettings = OneCalibrationSettings {
    n_bins: 10,
    binning: RiskBinning::EqualSize,
    observed: ObservedRisk::KaplanMeier,
    variance: BinVariance::ExpectedBinomial,
};

type Prepared = Result<Box<dyn PreparedMetric>, MetricError>;

/// What every row adds to the bins of the D-calibration.
struct PreparedDCalibration {
    masses: Vec<[f64; N_BINS]>,
}

impl PreparedMetric for PreparedDCalibration {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let mut shares = [0.0; N_BINS];
        let mut n = 0.0;
        for (masses, weight) in self.masses.iter().zip(weights).filter(|(_, weight)| **weight > 0) {
            let weight = f64::from(*weight);
            n += weight;
            shares.iter_mut().zip(masses).for_each(|(share, mass)| *share += weight * mass);
        }
        Ok(squared_distance(&shares, n))
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        let mut shares = [[0.0; LANES]; N_BINS];
        let mut n = [0_u64; LANES];
        for (masses, weights) in self.masses.iter().zip(draws.rows()) {
            let weights_of = weights.map(f64::from);
            for (shares, mass) in shares.iter_mut().zip(masses).filter(|(_, mass)| **mass > 0.0) {
                shares.iter_mut().zip(weights_of).for_each(|(share, weight)| *share += weight * mass);
            }
            n.iter_mut().zip(weights).for_each(|(n, weight)| *n += u64::from(*weight));
        }
        let value = |draw: usize| {
            let of_draw = shares.map(|shares| shares[draw]);
            (n[draw] > 0).then(|| squared_distance(&of_draw, n[draw] as f64))
        };
        (0..draws.n_draws()).map(value).collect()
    }
}

/// The squared distance of shares, which add up to n, from equal ones.
fn squared_distance(shares: &[f64; N_BINS], n: f64) -> f64 {
    let expected = 1.0 / N_BINS as f64;
    shares.iter().map(|share| (share / n - expected).powi(2)).sum()
}

pub(super) fn d_calibration(sample: &ScoredSample<'_>) -> Prepared {
    if sample.outcomes.n_events() == 0 {
        return Err(MetricError::NoEvents { n: sample.outcomes.n() });
    }
    let reading = OwnTimeReading::from(sample.reading);
    let survival = survival_at_own_time(sample.outcomes, sample.curves, reading)?;
    let rows = survival.into_iter().zip(sample.outcomes.event().iter().copied());
    Ok(Box::new(PreparedDCalibration { masses: masses_of_rows(rows, DCalibrationConvention::Survivaleval) }))
}

impl PreparedMetric for PreparedObservedExpected {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        Ok(self.weighted(weights)?.ratio)
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        self.lanes(draws.rows()).into_iter().take(draws.n_draws()).collect()
    }
}

pub(super) fn observed_expected(sample: &ScoredSample<'_>) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedObservedExpected::new(sample.outcomes, sample.risk_at(horizon), horizon)))
}

impl PreparedMetric for PreparedCalibrationIndex {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.weighted(weights)
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        side_by_side(draws, |first| self.lanes(draws.rows(), first), |weights| self.weighted(weights).ok())
    }
}

/// The values of eight draws at a time, from the first of them on; those that `lanes` leaves out by `exact`.
fn side_by_side(
    draws: &WeightBlock<'_>,
    lanes: impl Fn(usize) -> [Option<f64>; WIDTH],
    exact: impl Fn(&[u32]) -> Option<f64>,
) -> Vec<Option<f64>> {
    let mut values = Vec::with_capacity(draws.n_draws());
    for first in (0..draws.n_draws()).step_by(WIDTH) {
        let found = lanes(first);
        let of_lane = |(lane, found): (usize, Option<f64>)| found.or_else(|| exact(&draws.weights(first + lane)));
        values.extend(found.into_iter().enumerate().take(draws.n_draws() - first).map(of_lane));
    }
    values
}

pub(super) fn ici(sample: &ScoredSample<'_>) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedCalibrationIndex::new(sample.outcomes, &[], &sample.risk_at(horizon), horizon)?))
}

impl PreparedMetric for PreparedCalibrationSlope {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.weighted(weights)
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        side_by_side(draws, |first| self.lanes(draws.rows(), first), |weights| self.weighted(weights).ok())
    }
}

pub(super) fn slope(sample: &ScoredSample<'_>) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedCalibrationSlope::new(sample.outcomes, &[], &sample.risk_at(horizon), horizon)?))
}

pub(super) fn alpha(sample: &ScoredSample<'_>) -> Prepared {
    let reading = OwnTimeReading::from(sample.reading);
    of_selection(sample, move |outcomes, curves| {
        Ok(calibration_alpha(outcomes, curves, reading, DEFAULT_HAZARD_REPLACEMENT)?.alpha)
    })
}

pub(super) fn integrated(sample: &ScoredSample<'_>) -> Prepared {
    let (reading, times) = (sample.reading, sample.times()?.to_vec());
    of_selection(
        sample,
        move |outcomes, curves| Ok(integrated_calibration(outcomes, curves, reading, &times)?.absolute),
    )
}

pub(super) fn one_calibration(sample: &ScoredSample<'_>) -> Prepared {
    let (reading, horizon) = (sample.reading, sample.horizon()?);
    of_selection(sample, move |outcomes, curves| {
        one_calibration_of(outcomes, curves, horizon, reading, ONE_CALIBRATION)?.statistic
    })
}
