//! The integrated calibration index (ICI) and the calibration slope at one time.
//!
//! ```text
//! p(i) = 1 - S(i, t), x(i) = log(-log S(i, t))
//! o(i) = 1 - exp(-H0(t) exp(f(x(i)))), f a restricted cubic spline of a Cox model of the observed times
//! ICI = mean |o(i) - p(i)|; E50, E90, Emax: median, quantile 0.9 and maximum of |o(i) - p(i)|
//! ```
//!
//! o is the observed risk of samples with that prediction. The spline has three knots, the quantiles 0.1, 0.5 and 0.9 of
//! x. The calibration slope is the coefficient of x in a Cox model on x alone: 1 if the predictions are as spread as the
//! risks, below 1 if they are too extreme.
//!
//! Sources: Austin, Harrell & van Klaveren (2020), doi:10.1002/sim.8570 (ICI, E50, E90, Emax; hazard regression or Cox
//! with splines); Harrell (2015), section 2.4.5 (spline basis); van Houwelingen (2000), doi:10.1002/(SICI)1097-0258
//! (20001230)19:24 (slope). Ties by Efron. For the ICI, S outside
//! [1e-10, 1 - 1e-10] is moved to its end before the logarithms, where the spline is nearly flat; a slope is undefined with such an S of
//! 0 or 1.
//! Golden values: the same model fitted with lifelines 0.30.3 `CoxPHFitter`.
//!
//! Where some samples had a competing event, the model is one of the subdistribution hazard, so that o is a cumulative
//! incidence, and x = log(-log(1 - F)): Austin, Putter, Giardiello & van Klaveren (2022),
//! doi:10.1186/s41512-021-00114-6.
//!
//! Where the knots coincide or there are only two predictions, the spline is a straight line; where all predictions are equal, o is the risk of the baseline
//! alone.

use serde::{Deserialize, Serialize};

use crate::calibration::observed_expected::check_time;
use crate::estimators::cox::{CoxDesign, MOST_COVARIATES, SINGULAR};
use crate::estimators::cox_lanes::{
    LARGEST, Lane, LaneWeights, Start, WIDTH, by_covariate, exp, lanes_from, predictors,
};
use crate::resampling::bootstrap::quantile;
use crate::resampling::lanes::LaneWeights as BlockWeights;
use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

const SMALLEST: f64 = 1e-10;

/// Differences between predicted and smoothed observed risks at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationIndex {
    /// The time, in the unit of the data set.
    pub time: f64,
    /// Mean of |observed - predicted|, in [0, 1].
    pub ici: f64,
    /// Median of |observed - predicted|.
    pub e50: f64,
    /// The quantile 0.9 of |observed - predicted|.
    pub e90: f64,
    /// Maximum of |observed - predicted|.
    pub e_max: f64,
    /// Predicted risk of every sample, `[n]`.
    pub predicted: Vec<f64>,
    /// Smoothed observed risk at every prediction, `[n]`.
    pub observed: Vec<f64>,
}

/// The integrated calibration index of `curves` at `time`; O(n log n).
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::calibration_index;
/// use ndarray::Array2;
///
/// // The predicted risk is right for no sample: all have 0.2, and half of the samples have the event by 5.
/// let outcomes = Outcomes::new((0..10).map(f64::from).collect(), (0..10).map(|k| k <= 5).collect())?;
/// let curves = SurvivalCurves::new(vec![5.0], Array2::from_elem((10, 1), 0.8))?;
/// let found = calibration_index(&outcomes, &curves, 5.0, Reading::Step)?;
/// // 1 - exp(-(1/10 + 1/9 + .. + 1/5)), and not 0.6: the model estimates the hazard.
/// assert!((found.ici - (0.570_6 - 0.2)).abs() < 1e-3);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`]; [`MetricError::LengthMismatch`] if `curves` has not one row per sample;
/// [`MetricError::InvalidSetting`] unless `time` is a finite number >= 0; [`MetricError::BeyondFollowUp`] if no sample is observed
/// then or later; [`MetricError::CalibrationModel`] if the model cannot be fitted.
pub fn calibration_index(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    time: f64,
    reading: Reading,
) -> Result<CalibrationIndex, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    check_time(time)?;
    index_of_risk(outcomes, &[], curves.risk_at(time, reading), time)
}

/// The same of predicted risks at `time`, `[n]`, where the samples marked in `competing` (empty: none) had a competing event.
pub(crate) fn index_of_risk(
    outcomes: &Outcomes,
    competing: &[bool],
    predicted: Vec<f64>,
    time: f64,
) -> Result<CalibrationIndex, MetricError> {
    let weights = vec![1; outcomes.n()];
    let observed = PreparedCalibrationIndex::new(outcomes, competing, &predicted, time)?.observed(&weights)?;
    let mut errors: Vec<f64> = observed.iter().zip(&predicted).map(|(o, p)| (o - p).abs()).collect();
    let ici = errors.iter().sum::<f64>() / errors.len() as f64;
    errors.sort_by(f64::total_cmp);
    let (e50, e90, e_max) = (quantile(&errors, 0.5), quantile(&errors, 0.9), quantile(&errors, 1.0));
    Ok(CalibrationIndex { time, ici, e50, e90, e_max, predicted, observed })
}

/// The calibration slope of `curves` at `time`: the coefficient of log(-log S) in a Cox model. O(n log n).
///
/// # Errors
/// As [`calibration_index`]; [`MetricError::CalibrationModel`] also if all predictions are equal, and [`MetricError::CertainRisk`] if one
/// is 0 or 1: any number in its place would decide the slope.
pub fn calibration_slope(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    time: f64,
    reading: Reading,
) -> Result<f64, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    check_time(time)?;
    let predicted = curves.risk_at(time, reading);
    PreparedCalibrationSlope::new(outcomes, &[], &predicted, time)?.weighted(&vec![1; outcomes.n()])
}

/// log(-log S) of every predicted risk, centred at their median for numerical stability.
fn centred(risk: &[f64]) -> Vec<f64> {
    let transformed: Vec<f64> =
        risk.iter().map(|risk| (-(1.0 - risk).clamp(SMALLEST, 1.0 - SMALLEST).ln()).ln()).collect();
    let median = quantile(&sorted(&transformed), 0.5);
    transformed.iter().map(|x| x - median).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn check(outcomes: &Outcomes, time: f64) -> Result<(), MetricError> {
    if outcomes.n() == 0 {
        return Err(MetricError::NoSamples);
    }
    let last = outcomes.time().iter().copied().fold(0.0, f64::max);
    if time > last { Err(MetricError::BeyondFollowUp { time, last }) } else { Ok(()) }
}

/// The calibration slope for any weights of the samples.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCalibrationSlope {
    design: CoxDesign,
    start: Start,
    /// Rows whose predicted risk is 0 or 1, without a logarithm; the slope of a sample with one is undefined.
    certain: Vec<usize>,
    time: f64,
}

impl PreparedCalibrationSlope {
    /// `competing` as in [`index_of_risk`].
    pub(crate) fn new(outcomes: &Outcomes, competing: &[bool], risk: &[f64], time: f64) -> Result<Self, MetricError> {
        check(outcomes, time)?;
        let x = centred(risk);
        let design = CoxDesign::new(outcomes, 1, |row| [x[row], 0.0]).with_competing(competing);
        let start = Start::new(&design, design.fit(&vec![1; risk.len()], [0.0; MOST_COVARIATES])?);
        let certain = (0..risk.len()).filter(|row| risk[*row] <= 0.0 || risk[*row] >= 1.0).collect();
        Ok(Self { design, start, certain, time })
    }

    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let n_certain = self.certain.iter().map(|row| weights[*row] as usize).sum();
        if n_certain > 0 {
            let n = weights.iter().map(|weight| *weight as usize).sum();
            return Err(MetricError::CertainRisk { n_certain, n, time: self.time });
        }
        Ok(self.design.fit(weights, self.start.coefficients)?[0])
    }

    /// The same for the eight weight vectors from lane `first` of `rows` on; `None` where [`weighted`](Self::weighted) is needed.
    pub(crate) fn lanes(&self, rows: &[BlockWeights], first: usize) -> [Option<f64>; WIDTH] {
        if self.design.has_competing() || !self.certain.is_empty() {
            return [None; WIDTH];
        }
        LaneWeights::new(&self.design, rows, first).fit(&self.start).map(|found| Some(found?[0]))
    }
}

/// The ICI for any weights of the samples; the knots stay those of the sample.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCalibrationIndex {
    time: f64,
    design: CoxDesign,
    risk: Vec<f64>,
    /// The covariates of every row.
    basis: Vec<[f64; MOST_COVARIATES]>,
    /// The coefficients of the sample, from which those of its replicates are near.
    start: Start,
}

impl PreparedCalibrationIndex {
    /// `competing` as in [`index_of_risk`].
    pub(crate) fn new(outcomes: &Outcomes, competing: &[bool], risk: &[f64], time: f64) -> Result<Self, MetricError> {
        check(outcomes, time)?;
        let x = centred(risk);
        let in_order = sorted(&x);
        let knots = [0.1, 0.5, 0.9].map(|share| quantile(&in_order, share));
        let varies = in_order[in_order.len() - 1] - in_order[0] > 0.0;
        let is_spline = knots[0] < knots[1] && knots[1] < knots[2];
        let mut n_covariates = usize::from(varies) + usize::from(varies && is_spline);
        loop {
            let term = |x: f64| if n_covariates > 1 { spline(x, knots) } else { 0.0 };
            let basis: Vec<_> = x.iter().map(|x| [*x, term(*x)]).collect();
            let design = CoxDesign::new(outcomes, n_covariates, |row| basis[row]).with_competing(competing);
            match design.fit(&vec![1; risk.len()], [0.0; MOST_COVARIATES]) {
                Ok(start) => {
                    let start = Start::new(&design, start);
                    return Ok(Self { time, design, risk: risk.to_vec(), basis, start });
                }
                // Two distinct predictions have no curvature.
                Err(error) if error == SINGULAR && n_covariates > 0 => n_covariates -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The mean of |observed - predicted| over the rows, each as often as its weight says; O(n) per step of the fit.
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let risk = self.smoothed(weights)?;
        let n: u64 = weights.iter().copied().map(u64::from).sum();
        let drawn = self.basis.iter().zip(&self.risk).zip(weights).filter(|(_, weight)| **weight > 0);
        Ok(drawn.map(|((basis, p), weight)| (risk(basis) - p).abs() * f64::from(*weight)).sum::<f64>() / n as f64)
    }

    /// The same for the eight weight vectors from lane `first` of `rows` on; `None` where [`weighted`](Self::weighted) is needed.
    pub(crate) fn lanes(&self, rows: &[BlockWeights], first: usize) -> [Option<f64>; WIDTH] {
        if self.design.has_competing() {
            return [None; WIDTH];
        }
        let weights = LaneWeights::new(&self.design, rows, first);
        let fitted = weights.fit(&self.start);
        if fitted == [None; WIDTH] {
            return [None; WIDTH];
        }
        let coefficients = fitted.map(|found| found.unwrap_or(self.start.coefficients));
        let hazards = weights.baseline(&coefficients, self.time);
        let errors = MeanErrors { index: self, rows, first, coefficients: by_covariate(&coefficients), hazards };
        let found = pulp::Arch::new().dispatch(errors);
        std::array::from_fn(|lane| fitted[lane].map(|_| found[lane]))
    }

    /// The smoothed observed risk at the prediction of every row.
    fn observed(&self, weights: &[u32]) -> Result<Vec<f64>, MetricError> {
        Ok(self.basis.iter().map(self.smoothed(weights)?).collect())
    }

    /// The smoothed observed risk as a function of the covariates.
    fn smoothed(&self, weights: &[u32]) -> Result<impl Fn(&[f64; MOST_COVARIATES]) -> f64, MetricError> {
        let coefficients = self.design.fit(weights, self.start.coefficients)?;
        let hazard = self.design.baseline(weights, coefficients, self.time)?;
        Ok(move |basis: &[f64; MOST_COVARIATES]| {
            let predictor: f64 = basis.iter().zip(coefficients).map(|(x, b)| x * b).sum();
            // As in lanes. A baseline of 0 leaves a risk of 0 however large the factor is, which must not become infinite.
            -(-hazard * predictor.clamp(-LARGEST, LARGEST).exp()).exp_m1()
        })
    }
}

/// The mean of |observed - predicted| in every lane, as a value, so that it can be compiled for several instruction sets.
struct MeanErrors<'a> {
    index: &'a PreparedCalibrationIndex,
    rows: &'a [BlockWeights],
    first: usize,
    coefficients: [Lane; MOST_COVARIATES],
    hazards: Lane,
}

impl pulp::WithSimd for MeanErrors<'_> {
    type Output = Lane;

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set of the machine")]
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Lane {
        let (mut errors, mut n) = ([0.0; WIDTH], [0.0; WIDTH]);
        for ((basis, predicted), weights) in self.index.basis.iter().zip(&self.index.risk).zip(self.rows) {
            let weights = lanes_from(weights, self.first);
            let mut hazard = exp(predictors(*basis, &self.coefficients));
            hazard.iter_mut().zip(self.hazards).for_each(|(hazard, baseline)| *hazard *= -baseline);
            let survival = exp(hazard);
            for lane in 0..WIDTH {
                errors[lane] += (1.0 - survival[lane] - predicted).abs() * weights[lane];
                n[lane] += weights[lane];
            }
        }
        std::array::from_fn(|lane| errors[lane] / n[lane])
    }
}

/// The non-linear term of a restricted cubic spline with three knots, divided by the squared range of the knots.
pub(crate) fn spline(x: f64, [first, middle, last]: [f64; 3]) -> f64 {
    let cube = |knot: f64| (x - knot).max(0.0).powi(3);
    let (to_last, to_middle) = ((middle - first) / (last - middle), (last - first) / (last - middle));
    (cube(first) - cube(middle) * to_middle + cube(last) * to_last) / (last - first).powi(2)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::Array2;

    use super::*;

    const HORIZON: f64 = 5.0;

    /// 60 samples with tied times, and risks at the horizon that are far from the observed ones.
    fn sample() -> (Outcomes, Vec<f64>) {
        let risk: Vec<f64> =
            (0..60).map(|k| (0.5 + 0.45 * (1.7 * f64::from(k) + 0.3).sin()).clamp(0.01, 0.99)).collect();
        let time = |(k, risk): (usize, &f64)| (10.0 * (1.2 - risk) * (1.0 + 0.8 * (2.3 * k as f64).cos()) + 0.2).ceil();
        let time = risk.iter().enumerate().map(time).collect();
        (Outcomes::new(time, (0..60).map(|k| k % 3 != 0).collect()).unwrap(), risk)
    }

    fn weights() -> Vec<u32> {
        (0..60).map(|k| k * 7 % 4).collect()
    }

    // lifelines 0.30.3: CoxPHFitter (penalizer 0, precision 1e-12) on the spline basis, rows repeated by their weights; the
    // baseline hazard by Efron's sum with its coefficients; numpy.quantile for E50, E90 and Emax.
    #[test]
    fn indices_and_slopes_are_those_of_lifelines() {
        let (outcomes, risk) = sample();
        let survival = Array2::from_shape_fn((60, 1), |(k, _)| 1.0 - risk[k]);
        let curves = SurvivalCurves::new(vec![HORIZON], survival).unwrap();
        let found = calibration_index(&outcomes, &curves, HORIZON, Reading::Step).unwrap();
        assert_relative_eq!(found.ici, 0.245_566_199_073_606_8, max_relative = 1e-7);
        assert_relative_eq!(found.e50, 0.248_649_155_413_546_87, max_relative = 1e-7);
        assert_relative_eq!(found.e90, 0.422_298_154_023_563_1, max_relative = 1e-7);
        assert_relative_eq!(found.e_max, 0.436_217_825_422_285_8, max_relative = 1e-7);
        let slope = calibration_slope(&outcomes, &curves, HORIZON, Reading::Step).unwrap();
        assert_relative_eq!(slope, 0.784_187_276_316_447_8, max_relative = 1e-7);
    }

    #[test]
    fn without_events_by_the_horizon_the_observed_risk_is_0_at_every_prediction() {
        // A predicted risk of 0 is so far from the others that the factor of its hazard overflows.
        let outcomes = Outcomes::new(vec![7.0, 1.0, 7.0, 7.0, 7.0], vec![true, false, true, false, true]).unwrap();
        let survival = vec![0.625, 1.0, 0.875, 0.8125, 0.8125];
        let curves = SurvivalCurves::new(vec![3.0], Array2::from_shape_vec((5, 1), survival).unwrap()).unwrap();
        let found = calibration_index(&outcomes, &curves, 3.0, Reading::Step).unwrap();
        assert_eq!(found.observed, [0.0; 5]);
        assert_eq!((found.e50, found.e_max), (0.1875, 0.375));
        assert_relative_eq!(found.ici, 0.175, max_relative = 1e-12);
    }

    #[test]
    fn a_weight_is_the_number_of_times_that_a_row_occurs() {
        let (outcomes, risk) = sample();
        let index = PreparedCalibrationIndex::new(&outcomes, &[], &risk, HORIZON).unwrap();
        assert_relative_eq!(index.weighted(&weights()).unwrap(), 0.251_490_573_046_597_7, max_relative = 1e-7);
        let slope = PreparedCalibrationSlope::new(&outcomes, &[], &risk, HORIZON).unwrap();
        assert_relative_eq!(slope.weighted(&weights()).unwrap(), 0.823_929_386_792_596_5, max_relative = 1e-7);
        let ratio = crate::calibration::observed_expected::PreparedObservedExpected::new(&outcomes, risk, HORIZON);
        let ratio = ratio.weighted(&weights()).unwrap();
        assert_relative_eq!(ratio.ratio, 0.468_043_835_927_679_8, max_relative = 1e-12);
        assert_relative_eq!(ratio.observed, 0.232_408_629_406_181_24, max_relative = 1e-12);
    }

    #[test]
    fn eight_weight_vectors_side_by_side_have_the_values_of_each() {
        let (outcomes, risk) = sample();
        let index = PreparedCalibrationIndex::new(&outcomes, &[], &risk, HORIZON).unwrap();
        let slope = PreparedCalibrationSlope::new(&outcomes, &[], &risk, HORIZON).unwrap();
        let weight = |row: usize, lane: usize| u16::try_from((row * row + row * 7 + lane * 5) % 13 % 4).unwrap();
        let block: Vec<BlockWeights> = (0..60).map(|row| std::array::from_fn(|lane| weight(row, lane))).collect();
        let (indices, slopes) = (index.lanes(&block, 8), slope.lanes(&block, 8));
        for lane in 0..WIDTH {
            let weights: Vec<u32> = (0..60).map(|row| weight(row, lane + 8).into()).collect();
            assert_relative_eq!(indices[lane].unwrap(), index.weighted(&weights).unwrap(), max_relative = 1e-7);
            assert_relative_eq!(slopes[lane].unwrap(), slope.weighted(&weights).unwrap(), max_relative = 1e-7);
        }
        assert_eq!(index.lanes(&[[0; _]; 60], 0), [None; WIDTH]);
    }

    #[test]
    fn predictions_that_are_perfect_or_constant_or_separate_the_events_are_handled() {
        let outcomes = Outcomes::new((1..=40).map(f64::from).collect(), vec![true; 40]).unwrap();
        let slope = |risk: Vec<f64>| {
            PreparedCalibrationSlope::new(&outcomes, &[], &risk, 20.0).and_then(|slope| slope.weighted(&[1; 40]))
        };
        assert!(matches!(slope(vec![0.5; 40]), Err(MetricError::CalibrationModel { .. })));
        let separated = (0..40).map(|k| 0.99 - 0.02 * f64::from(k)).collect();
        assert!(matches!(slope(separated), Err(MetricError::CalibrationModel { .. })));
        // Risks of exactly 0 and 1 are moved inside before the logarithms.
        let extreme = (0..40).map(|k| f64::from(k % 2)).collect::<Vec<_>>();
        let index = PreparedCalibrationIndex::new(&outcomes, &[], &extreme, 20.0).unwrap();
        assert!((0.0..=1.0).contains(&index.weighted(&[1; 40]).unwrap()));
        let beyond = PreparedCalibrationIndex::new(&outcomes, &[], &extreme, 41.0).unwrap_err();
        assert_eq!(beyond, MetricError::BeyondFollowUp { time: 41.0, last: 40.0 });
    }
}
