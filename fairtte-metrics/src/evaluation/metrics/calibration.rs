//! Metrics of calibration, prepared for an evaluation.

use super::scores::of_selection;
use super::{PreparedMetric, ScoredSample};
use crate::MetricError;
use crate::calibration::calibration_index::{PreparedCalibrationIndex, PreparedCalibrationSlope};
use crate::calibration::d_calibration::{N_BINS, masses_of_rows};
use crate::calibration::observed_expected::PreparedObservedExpected;
use crate::calibration::{
    BinVariance, DCalibrationConvention, DEFAULT_HAZARD_REPLACEMENT, ObservedRisk, OneCalibrationSettings,
    OwnTimeReading, RiskBinning, calibration_alpha, integrated_calibration, one_calibration as one_calibration_of,
    survival_at_own_time,
};

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
        let expected = 1.0 / N_BINS as f64;
        Ok(shares.iter().map(|share| (share / n - expected).powi(2)).sum())
    }
}

pub(super) fn d_calibration(sample: &ScoredSample<'_>) -> Prepared {
    if sample.outcomes.n_events() == 0 {
        return Err(MetricError::NoEvents { n: sample.outcomes.n() });
    }
    let reading = OwnTimeReading::OneBefore(sample.reading);
    let survival = survival_at_own_time(sample.outcomes, sample.curves, reading)?;
    let rows = survival.into_iter().zip(sample.outcomes.event().iter().copied());
    Ok(Box::new(PreparedDCalibration { masses: masses_of_rows(rows, DCalibrationConvention::Survivaleval) }))
}

impl PreparedMetric for PreparedObservedExpected {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        Ok(self.weighted(weights)?.ratio)
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
}

pub(super) fn ici(sample: &ScoredSample<'_>) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedCalibrationIndex::new(sample.outcomes, &sample.risk_at(horizon), horizon)?))
}

impl PreparedMetric for PreparedCalibrationSlope {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.weighted(weights)
    }
}

pub(super) fn slope(sample: &ScoredSample<'_>) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedCalibrationSlope::new(sample.outcomes, &sample.risk_at(horizon), horizon)?))
}

pub(super) fn alpha(sample: &ScoredSample<'_>) -> Prepared {
    let reading = OwnTimeReading::OneBefore(sample.reading);
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
