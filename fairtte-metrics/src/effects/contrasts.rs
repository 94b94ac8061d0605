//! Effects of a treatment from two curves of every person: without and with it.

use serde::{Deserialize, Serialize};

use super::check_alike;
use super::interval_hazards::IntervalHazards;
use crate::{MetricError, SurvivalCurves};

/// How a mean survival time is computed from a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeanRule {
    /// The sum over times t(k) <= t* of S(t(k)) (t(k) - t(k - 1)), as the benchmark prints it (A.8): too small for a curve that
    /// falls within the intervals.
    EndOfInterval,
    /// Trapezoids between the times, the last one up to t*: exact for lines.
    #[default]
    Trapezoid,
}

/// A contrast of two survival curves of one person.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contrast {
    /// Hazard of the interval that ends at a time, with treatment relative to without.
    HazardRatio {
        /// Place of the interval, counted from 0.
        interval: usize,
    },
    /// S1 - S0 at a time of the curves.
    SurvivalDifference {
        /// Place of the time, counted from 0.
        place: usize,
    },
    /// Difference of the mean survival times up to t*.
    RestrictedMeanDifference {
        /// t*, > 0.
        until: f64,
        /// How the means are computed.
        rule: MeanRule,
    },
    /// S1 / S0 at a time of the curves, the relative probability P(T1 > t) / P(T0 > t). With times recorded as ends of intervals,
    /// P(T >= t(k)) is S at the time before.
    RelativeRisk {
        /// Place of the time, counted from 0.
        place: usize,
    },
}

impl Contrast {
    /// Whether it is a ratio, whose errors are those of its logarithm.
    pub fn is_ratio(self) -> bool {
        matches!(self, Self::HazardRatio { .. } | Self::RelativeRisk { .. })
    }
}

/// Curves of every person without and with treatment.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrasts {
    untreated: SurvivalCurves,
    treated: SurvivalCurves,
}

impl Contrasts {
    /// Keeps the curves of the same persons at the same times.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`], [`MetricError::OtherGrid`], [`MetricError::NoSamples`].
    pub fn new(untreated: SurvivalCurves, treated: SurvivalCurves) -> Result<Self, MetricError> {
        check_alike(&untreated, &treated)?;
        if untreated.n() == 0 {
            return Err(MetricError::NoSamples);
        }
        Ok(Self { untreated, treated })
    }

    /// Number of persons.
    pub fn n(&self) -> usize {
        self.untreated.n()
    }

    /// Times of the curves.
    pub fn grid(&self) -> &[f64] {
        self.untreated.grid()
    }

    /// The contrast of every person, `[n]`; `None` where a survival in the denominator is 0. Hazards are those of
    /// [`IntervalHazards`]. O(n times).
    ///
    /// ```
    /// use fairtte_metrics::SurvivalCurves;
    /// use fairtte_metrics::effects::{Contrast, Contrasts};
    /// use ndarray::array;
    ///
    /// let untreated = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.5]])?;
    /// let treated = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.75]])?;
    /// let contrasts = Contrasts::new(untreated, treated)?;
    /// assert_eq!(contrasts.by_person(Contrast::HazardRatio { interval: 0 })?, [Some(0.5)]);
    /// assert_eq!(contrasts.by_person(Contrast::SurvivalDifference { place: 1 })?, [Some(0.25)]);
    /// assert_eq!(contrasts.by_person(Contrast::RelativeRisk { place: 1 })?, [Some(1.5)]);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] for a place that the curves do not have, or a t* that is not above 0 and at most the last time.
    pub fn by_person(&self, contrast: Contrast) -> Result<Vec<Option<f64>>, MetricError> {
        self.check(contrast)?;
        let both = |place: usize| {
            let survival = |curves: &SurvivalCurves| curves.survival().column(place).to_vec();
            survival(&self.treated).into_iter().zip(survival(&self.untreated))
        };
        Ok(match contrast {
            Contrast::HazardRatio { interval } => {
                let hazards = |curves| IntervalHazards::of(curves).hazards.column(interval).to_vec();
                hazards(&self.treated).into_iter().zip(hazards(&self.untreated)).map(|(h1, h0)| Some(h1 / h0)).collect()
            }
            Contrast::SurvivalDifference { place } => both(place).map(|(s1, s0)| Some(s1 - s0)).collect(),
            Contrast::RelativeRisk { place } => both(place).map(|(s1, s0)| (s0 > 0.0).then(|| s1 / s0)).collect(),
            Contrast::RestrictedMeanDifference { until, rule } => {
                let mean =
                    |curves: &SurvivalCurves, row: usize| restricted_mean(self.grid(), curves.curve(row), until, rule);
                (0..self.n()).map(|row| Some(mean(&self.treated, row) - mean(&self.untreated, row))).collect()
            }
        })
    }

    /// The contrast of the mean curves, that is of a population of these persons, all treated against none treated (the hazard ratio is
    /// Eq. 6 of the benchmark, which conditions on survivors that treatment has made different); `None` where a survival in the
    /// denominator is 0.
    ///
    /// # Errors
    /// As [`by_person`](Self::by_person).
    pub fn of_population(&self, contrast: Contrast) -> Result<Option<f64>, MetricError> {
        let mean = |curves: &SurvivalCurves| {
            let mean = curves.mean().ok_or(MetricError::NoSamples)?;
            let one_row = ndarray::Array2::from_shape_fn((1, mean.len()), |(_, k)| mean[k]);
            SurvivalCurves::new(curves.grid().to_vec(), one_row)
        };
        let of_means = Self { untreated: mean(&self.untreated)?, treated: mean(&self.treated)? };
        Ok(of_means.by_person(contrast)?[0])
    }

    fn check(&self, contrast: Contrast) -> Result<(), MetricError> {
        let n_times = self.grid().len();
        let n_intervals = n_times - usize::from(self.grid()[0] <= 0.0);
        let wrong = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        match contrast {
            Contrast::HazardRatio { interval } if interval >= n_intervals => {
                wrong("interval", interval.to_string(), "the place of an interval of the curves")
            }
            Contrast::SurvivalDifference { place } | Contrast::RelativeRisk { place } if place >= n_times => {
                wrong("place", place.to_string(), "the place of a time of the curves")
            }
            Contrast::RestrictedMeanDifference { until, .. } if !(until > 0.0 && until <= self.grid()[n_times - 1]) => {
                wrong("until", until.to_string(), "a time above 0, at most the last time of the curves")
            }
            _ => Ok(()),
        }
    }
}

/// The mean survival time up to `until` of a curve that starts at (0, 1).
fn restricted_mean(grid: &[f64], curve: &[f64], until: f64, rule: MeanRule) -> f64 {
    let (mut sum, mut before, mut survival) = (0.0, 0.0, 1.0);
    for (time, next) in grid.iter().zip(curve) {
        match rule {
            MeanRule::EndOfInterval if *time > until => break,
            MeanRule::EndOfInterval => sum += next * (time - before),
            MeanRule::Trapezoid => {
                let end = time.min(until);
                let width = time - before;
                // A first time of 0 has no width.
                if width > 0.0 {
                    let at_end = survival + (next - survival) * ((end - before) / width);
                    sum += f64::midpoint(survival, at_end) * (end - before);
                }
                if *time >= until {
                    break;
                }
            }
        }
        (before, survival) = (*time, *next);
    }
    sum
}
