//! Calibration at one time: do groups of samples with similar predicted risk have the event as often as predicted?
//!
//! Samples are binned by predicted risk p = 1 - S(t). In a bin E is the mean of p, O the observed probability of the
//! event by t, V its variance, and `statistic = sum over bins of (O - E)^2 / V` is compared with a chi-square
//! distribution. What O and V are and how many degrees of freedom remain: [`ObservedRisk`], [`BinVariance`].
//! Sources: Hosmer & Lemeshow (1980), <https://doi.org/10.1080/03610928008827941>; D'Agostino & Nam (2003),
//! <https://doi.org/10.1016/S0169-7161(03)23001-7>; the Greenwood variance after Demler, Paynter & Cook (2015),
//! <https://doi.org/10.1002/sim.6428>. Assumes censoring independent of the event within a bin, and large bins:
//! of true curves of 500 people in ten bins a test at 5 % with the default variance rejected 8 to 13 % of cohorts with random or
//! administrative censoring (`docs/src/honesty.md`).
//! Golden values: `SurvivalEVAL` 0.9.0 `one_calibration`. Where an edge of its equal-size bins cuts tied risks, their order, and with it
//! the result, is that of an unstable sort; here samples of the same risk are always in one bin.

use serde::{Deserialize, Serialize};

use crate::calibration::bins_of_risk::cut_between_risks;
use crate::chi_square::chi_square_upper_tail;
use crate::estimators::KaplanMeier;
use crate::pairwise_sum::{pairwise_mean, pairwise_sum};
use crate::value_or_reason::value_or_reason;
use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

/// With more bins than this a second degree of freedom is subtracted.
const MANY_BINS: usize = 15;
/// The maximum number of bins, more than any sample can fill, so that a mistyped number does not exhaust the memory.
const MAX_BINS: usize = 100_000;

/// How samples are put into bins of predicted risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RiskBinning {
    /// Bins of (nearly) equal size from the highest risk down, the larger ones first (`C`). Samples of the same risk are in one bin, so
    /// that there are fewer bins where many are tied.
    #[default]
    EqualSize,
    /// Bins \[a, b) of equal width over \[0, 1\], the last one closed (`H`); from the lowest risk up.
    EqualWidth,
}

/// How the observed risk of a bin is found under censoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedRisk {
    /// 1 - Kaplan-Meier of the bin at t, its last value held beyond the last time (`DN`, D'Agostino and Nam). Degrees
    /// of freedom: bins - 1, above 15 bins one less; with [`BinVariance::Estimated`] the number of bins.
    #[default]
    KaplanMeier,
    /// Samples censored before t are left out; the share of the others with the event by t. Degrees of freedom:
    /// bins - 2; with [`BinVariance::Estimated`] the number of bins. Biased upwards: those left out had no event by then.
    Uncensored,
}

/// The variance that the squared difference of a bin is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BinVariance {
    /// That of a share with the predicted probability: E (1 - E) / n.
    ExpectedBinomial,
    /// That of the observed risk: Greenwood's for Kaplan-Meier, O (1 - O) / n for the share.
    #[default]
    Estimated,
}

/// Settings of [`one_calibration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OneCalibrationSettings {
    /// Number of bins, 1 to 100000; bins without samples are left out.
    pub n_bins: usize,
    /// How samples are binned.
    pub binning: RiskBinning,
    /// How the observed risk is found.
    pub observed: ObservedRisk,
    /// The variance of a bin.
    pub variance: BinVariance,
}

impl Default for OneCalibrationSettings {
    fn default() -> Self {
        Self {
            n_bins: 10,
            binning: RiskBinning::default(),
            observed: ObservedRisk::default(),
            variance: BinVariance::default(),
        }
    }
}

/// One bin of predicted risk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationBin {
    /// Samples in the bin, without those left out.
    pub n: usize,
    /// Observed probability of the event by t.
    pub observed: f64,
    /// Mean predicted probability of the event by t.
    pub expected: f64,
    /// The variance that the squared difference is divided by; may be 0.
    pub variance: f64,
}

/// Calibration at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OneCalibration {
    /// The time t, in the unit of the data set.
    pub time: f64,
    /// The bins that hold samples, in the order of [`RiskBinning`].
    pub bins: Vec<CalibrationBin>,
    /// Samples in the bins.
    pub n: usize,
    /// Samples left out because they were censored before t ([`ObservedRisk::Uncensored`]).
    pub n_left_out: usize,
    /// Edges between equal-size bins that were moved so that samples of the same predicted risk are in one bin.
    pub n_moved_edges: usize,
    /// sum (O - E)^2 / V; an error if a bin has V = 0 but O is not E.
    #[serde(serialize_with = "value_or_reason")]
    pub statistic: Result<f64, MetricError>,
    /// Degrees of freedom; 0 if the bins leave none.
    pub degrees_of_freedom: usize,
    /// Chi-square upper tail of the statistic; 0 if a bin had a predicted risk of exactly 0 or 1 and the observed risk
    /// differs. An error without degrees of freedom, or if an estimated variance is 0.
    #[serde(serialize_with = "value_or_reason")]
    pub p_value: Result<f64, MetricError>,
}

/// Calibration of `curves` at `time`; O(n log n).
///
/// An event at `time` has happened by then.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::{BinVariance, OneCalibrationSettings, one_calibration};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0, 1.0, 3.0], vec![true, false, true, false])?;
/// let curves = SurvivalCurves::new(vec![0.0], array![[0.25], [0.25], [0.75], [0.75]])?;
/// let settings =
///     OneCalibrationSettings { n_bins: 2, variance: BinVariance::ExpectedBinomial, ..Default::default() };
/// let found = one_calibration(&outcomes, &curves, 2.0, Reading::Step, settings)?;
/// // Half of either bin had the event; 0.75 and 0.25 were predicted: 2 * 0.25^2 / (0.75 * 0.25 / 2).
/// assert!((found.statistic? - 4.0 / 3.0).abs() < 1e-12);
/// assert_eq!(found.degrees_of_freedom, 1);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::LengthMismatch`] if `curves` has not one row per sample,
/// [`MetricError::InvalidSetting`] for a time that is not finite or below 0, a number
/// of bins outside 1..=100000, or a reading that is not valid,
/// [`MetricError::AllCensoredBefore`] if [`ObservedRisk::Uncensored`] leaves no sample.
pub fn one_calibration(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    time: f64,
    reading: Reading,
    settings: OneCalibrationSettings,
) -> Result<OneCalibration, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    check(time, settings.n_bins)?;
    if outcomes.n() == 0 {
        return Err(MetricError::NoSamples);
    }
    let risk = curves.risk_at(time, reading);
    let (rows_of_bins, n_moved_edges) = match settings.binning {
        RiskBinning::EqualSize => equal_size(&risk, settings.n_bins),
        RiskBinning::EqualWidth => (equal_width(&risk, settings.n_bins), 0),
    };
    let mut bins = Vec::with_capacity(rows_of_bins.len());
    for mut rows in rows_of_bins {
        if settings.observed == ObservedRisk::Uncensored {
            rows.retain(|&row| outcomes.event()[row] || outcomes.time()[row] >= time);
        }
        if !rows.is_empty() {
            bins.push(bin(outcomes, &risk, &rows, time, settings)?);
        }
    }
    let n: usize = bins.iter().map(|bin| bin.n).sum();
    if n == 0 {
        return Err(MetricError::AllCensoredBefore { time, n: outcomes.n() });
    }
    let statistic = sum_of_squares(&bins);
    let lost = match (settings.variance, settings.observed) {
        (BinVariance::Estimated, _) => 0,
        (_, ObservedRisk::Uncensored) => 2,
        _ if bins.len() > MANY_BINS => 2,
        _ => 1,
    };
    let degrees_of_freedom = bins.len().saturating_sub(lost);
    let p_value = p_value(&bins, &statistic, degrees_of_freedom, settings.variance);
    let n_left_out = outcomes.n() - n;
    Ok(OneCalibration { time, bins, n, n_left_out, n_moved_edges, statistic, degrees_of_freedom, p_value })
}

fn check(time: f64, n_bins: usize) -> Result<(), MetricError> {
    if !(time.is_finite() && time >= 0.0) {
        let (setting, expected) = ("time of the 1-calibration", "a finite number >= 0");
        return Err(MetricError::InvalidSetting { setting, value: time.to_string(), expected });
    }
    if !(1..=MAX_BINS).contains(&n_bins) {
        let (setting, expected) = ("number of bins of the 1-calibration", "a whole number from 1 to 100000");
        return Err(MetricError::InvalidSetting { setting, value: n_bins.to_string(), expected });
    }
    Ok(())
}

/// Rows by falling risk, cut into at most `n_bins` parts whose sizes differ by at most 1 where nothing is tied; and how many edges ties
/// moved.
fn equal_size(risk: &[f64], n_bins: usize) -> (Vec<Vec<usize>>, usize) {
    let mut rows: Vec<usize> = (0..risk.len()).collect();
    rows.sort_by(|a, b| risk[*b].total_cmp(&risk[*a]));
    let (size, n_larger) = (rows.len() / n_bins, rows.len() % n_bins);
    // Bins beyond the number of samples are empty.
    let ends: Vec<usize> = (1..=n_bins.min(risk.len())).map(|bin| bin * size + bin.min(n_larger)).collect();
    let is_tied = |end: &&usize| **end < rows.len() && risk[rows[**end - 1]].total_cmp(&risk[rows[**end]]).is_eq();
    let n_moved = ends.iter().filter(is_tied).count();
    (cut_between_risks(&rows, risk, ends).into_iter().map(<[usize]>::to_vec).collect(), n_moved)
}

/// Rows by bins of width 1/`n_bins`, the edge k * (1/`n_bins`) belonging to the bin above.
fn equal_width(risk: &[f64], n_bins: usize) -> Vec<Vec<usize>> {
    let width = 1.0 / n_bins as f64;
    let edges: Vec<f64> = (1..n_bins).map(|k| k as f64 * width).collect();
    let mut bins = vec![Vec::new(); n_bins];
    for (row, risk) in risk.iter().enumerate() {
        bins[edges.partition_point(|edge| edge <= risk)].push(row);
    }
    bins
}

fn bin(
    outcomes: &Outcomes,
    risk: &[f64],
    rows: &[usize],
    time: f64,
    settings: OneCalibrationSettings,
) -> Result<CalibrationBin, MetricError> {
    let n = rows.len();
    let expected = pairwise_mean(&rows.iter().map(|&row| risk[row]).collect::<Vec<_>>());
    let (observed, estimated) = match settings.observed {
        ObservedRisk::KaplanMeier => {
            let curve = KaplanMeier::fit(&outcomes.select(rows))?;
            let n_passed = curve.times().partition_point(|passed| *passed <= time);
            // Greenwood's formula has no value where the curve is 0; the variance tends to 0 there.
            let variance = n_passed.checked_sub(1).map_or(0.0, |last| curve.variance()[last].unwrap_or(0.0));
            (1.0 - curve.at(time), variance)
        }
        ObservedRisk::Uncensored => {
            let had_event = |row: &&usize| outcomes.event()[**row] && outcomes.time()[**row] <= time;
            let share = rows.iter().filter(had_event).count() as f64 / n as f64;
            (share, share * (1.0 - share) / n as f64)
        }
    };
    let variance = match settings.variance {
        BinVariance::Estimated => estimated,
        BinVariance::ExpectedBinomial => expected * (1.0 - expected) / n as f64,
    };
    Ok(CalibrationBin { n, observed, expected, variance })
}

/// sum (O - E)^2 / V, where a bin with O = E adds 0 whatever its variance.
fn sum_of_squares(bins: &[CalibrationBin]) -> Result<f64, MetricError> {
    let term = |bin: &CalibrationBin| {
        let square = (bin.observed - bin.expected) * (bin.observed - bin.expected);
        if square > 0.0 { square / bin.variance } else { 0.0 }
    };
    let terms: Vec<f64> = bins.iter().map(term).collect();
    let sum = pairwise_sum(&terms);
    if sum.is_finite() {
        return Ok(sum);
    }
    let largest = (0..terms.len()).max_by(|a, b| terms[*a].total_cmp(&terms[*b])).unwrap_or(0);
    Err(vanishing(largest, &bins[largest]))
}

fn p_value(
    bins: &[CalibrationBin],
    statistic: &Result<f64, MetricError>,
    degrees_of_freedom: usize,
    variance: BinVariance,
) -> Result<f64, MetricError> {
    if degrees_of_freedom == 0 {
        return Err(MetricError::NoDegreesOfFreedom { n_bins: bins.len() });
    }
    if variance == BinVariance::Estimated
        && let Some(bin) = bins.iter().position(|bin| bin.variance <= 0.0)
    {
        return Err(vanishing(bin, &bins[bin]));
    }
    Ok(statistic.as_ref().map_or(0.0, |statistic| chi_square_upper_tail(*statistic, degrees_of_freedom)))
}

fn vanishing(position: usize, bin: &CalibrationBin) -> MetricError {
    let CalibrationBin { observed, expected, variance, .. } = *bin;
    MetricError::VanishingBinVariance { bin: position, observed, expected, variance }
}

#[cfg(test)]
mod tests;
