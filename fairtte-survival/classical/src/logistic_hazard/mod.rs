//! The logistic hazard model: logistic regression of an event in each interval of time on covariates.
//!
//! The hazard `h_j` is the probability of an event in interval j for those without one before: `logit h_j(x) = alpha_j + x b`,
//! or `alpha_j + x b + g(j) x c` where effects change over time (Brown 1975, doi:10.2307/2529811; Allison 1982,
//! doi:10.2307/270718; Tutz & Schmid 2016, doi:10.1007/978-3-319-28158-2). exp(b) is a ratio of odds. S at the end of interval j
//! is the product of (1 - h) up to it.

mod cut_points;
mod likelihood;
mod person_periods;

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{MetricError, Outcomes, Reading, SurvivalCurves};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

pub use self::cut_points::{CutPointRule, CutPoints};
use self::person_periods::PersonPeriods;
use crate::estimator::{NEVER, check_covariates, check_samples, linear_predictor};
use crate::newton::maximise;
use crate::{ClassicalError, Estimate, SurvivalEstimator, SurvivalModel};

/// How the effect of covariates on the log odds of the hazard depends on the interval j = 1, 2, ..
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TimeEffects {
    /// Not: x b (default).
    #[default]
    Constant,
    /// x b + j x c.
    Linear,
    /// x b + log(j) x c.
    Logarithmic,
}

impl TimeEffects {
    /// g of the interval at `place`, counted from 0; `None` of constant effects.
    fn at(self, place: usize) -> Option<f64> {
        match self {
            Self::Constant => None,
            Self::Linear => Some((place + 1) as f64),
            Self::Logarithmic => Some(((place + 1) as f64).ln()),
        }
    }
}

/// Whether a sample that is censored within an interval was at risk in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CensoredInterval {
    /// No: it counts in the intervals that it completed (default).
    #[default]
    LeftOut,
    /// Yes, without event.
    AtRisk,
}

/// A penalty of squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Ridge {
    /// Inverse strength, above 0, as `C` of scikit-learn's `LogisticRegression`: what is minimised is c times the sum of the
    /// losses of all person-periods plus half the sum of squares.
    pub c: f64,
    /// Whether b and c are those of covariates with mean 0 and standard deviation 1 (divisor n, over the samples that are at
    /// risk in an interval) when they are squared, so that units do not matter; otherwise of the covariates as they are.
    pub standardise: bool,
    /// Whether the alphas are penalised too: then `alpha_j = a + d_j` with a free intercept a and all `d_j^2` among the
    /// squares, which is scikit-learn's result for one 0/1 column per interval.
    pub intervals: bool,
}

impl Default for Ridge {
    /// c = 1, standardised covariates, free alphas.
    fn default() -> Self {
        Self { c: 1.0, standardise: true, intervals: false }
    }
}

/// Whether coefficients are shrunk towards 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HazardPenalty {
    /// No: the maximum of the likelihood, with standard errors.
    None,
    /// By a penalty of squares; then there are no standard errors.
    L2(Ridge),
}

impl Default for HazardPenalty {
    /// L2 with c = 1, the default of scikit-learn.
    fn default() -> Self {
        Self::L2(Ridge::default())
    }
}

/// Settings of a logistic hazard model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LogisticHazardSettings {
    /// Where the intervals end.
    pub cut_points: CutPointRule,
    /// How effects depend on the interval.
    pub effects: TimeEffects,
    /// Whether coefficients are shrunk.
    pub penalty: HazardPenalty,
    /// Whether a sample that is censored within an interval was at risk in it.
    pub censored: CensoredInterval,
    /// How survival is read between the ends of intervals, where it is known.
    pub reading: Reading,
}

impl Default for LogisticHazardSettings {
    /// 20 intervals at quantiles, constant effects, L2 with c = 1, a constant hazard within each interval.
    fn default() -> Self {
        Self {
            cut_points: CutPointRule::default(),
            effects: TimeEffects::default(),
            penalty: HazardPenalty::default(),
            censored: CensoredInterval::default(),
            reading: Reading::ConstantHazard,
        }
    }
}

impl SurvivalEstimator for LogisticHazardSettings {
    type Model = LogisticHazard;

    fn check(&self) -> Result<(), ClassicalError> {
        self.cut_points.check()?;
        self.reading.validate().map_err(|error| match error {
            MetricError::InvalidSetting { value, expected, .. } => {
                ClassicalError::Setting { setting: "reading.refined.factor", value, expected }
            }
            other => other.into(),
        })?;
        match self.penalty {
            HazardPenalty::L2(Ridge { c, .. }) if !(c.is_finite() && c > 0.0 && (1.0 / c).is_finite()) => {
                let setting = "penalty.l2.c";
                Err(ClassicalError::Setting { setting, value: c.to_string(), expected: "a finite number above 0" })
            }
            _ => Ok(()),
        }
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<LogisticHazard, ClassicalError> {
        LogisticHazard::fit_until(covariates, outcomes, self, stop)
    }
}

/// The hazard of an interval for covariates 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalHazard {
    /// 0 for all covariates: no sample at risk had an event, or none was at risk. Without a penalty of the alphas the likelihood
    /// then grows as alpha falls without end.
    Zero,
    /// 1 for all covariates: all at risk had an event.
    One,
    /// alpha, the log odds.
    LogOdds(Estimate),
}

/// An interval of a fitted model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interval {
    /// Samples at risk.
    pub n_at_risk: usize,
    /// Events among them.
    pub n_events: usize,
    /// The hazard for covariates 0.
    pub hazard: IntervalHazard,
}

/// A fitted logistic hazard model.
///
/// S is 1 at time 0, the product of (1 - h) at the ends of the intervals, in between what [`LogisticHazardSettings::reading`]
/// says, and constant after the last cut point. The risk is x (b + m c), m the mean of g over the person-periods of the fit: the
/// log odds of the hazard against covariates 0, with constant effects at all times, otherwise on average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogisticHazard {
    /// The settings.
    pub settings: LogisticHazardSettings,
    /// Samples of the fit.
    pub n: usize,
    /// Person-periods: intervals at risk of all samples.
    pub n_person_periods: usize,
    /// Ends of the intervals.
    pub cut_points: CutPoints,
    /// The intervals, `[n_intervals]`.
    pub intervals: Vec<Interval>,
    /// b: what one unit of each covariate adds to the log odds of the hazard, `[p]`.
    pub coefficients: Vec<Estimate>,
    /// c, what g(j) times one unit adds, `[p]`; empty with constant effects.
    pub time_coefficients: Vec<Estimate>,
    /// Mean of g over the person-periods; 0 with constant effects.
    pub mean_time: f64,
    /// Log-likelihood of the person-periods, without penalty.
    pub log_likelihood: f64,
    /// That of the model of alphas alone, without penalty.
    pub log_likelihood_null: f64,
}

impl LogisticHazard {
    /// Fits the model to covariates `[n, p]` and their outcomes by Newton's method with step halving; with J intervals and r
    /// person-periods O(r + n p^2 + n J p) for each of about eight steps. Person-periods are not stored.
    ///
    /// An event at time 0 is in the first interval; after the last cut point everybody is censored. Samples that are at risk in
    /// no interval say nothing.
    ///
    /// # Errors
    /// [`ClassicalError::Constant`] for such a covariate, [`ClassicalError::NotAtRisk`] for one that varies only in samples that
    /// are at risk in no interval, [`ClassicalError::Collinear`] and [`ClassicalError::Separates`] for such
    /// covariates without a penalty, [`ClassicalError::NoEventByLastCut`], [`ClassicalError::NoMixedInterval`];
    /// [`ClassicalError::Setting`] if effects that change over time are seen in one interval only; those of
    /// [`SurvivalEstimator::fit`].
    pub fn fit(
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &LogisticHazardSettings,
    ) -> Result<Self, ClassicalError> {
        Self::fit_until(covariates, outcomes, settings, &NEVER)
    }

    fn fit_until(
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &LogisticHazardSettings,
        stop: &Stop,
    ) -> Result<Self, ClassicalError> {
        settings.check()?;
        check_samples(covariates, outcomes)?;
        let cut_points = settings.cut_points.cut_points(outcomes)?;
        let periods = PersonPeriods::new(covariates, outcomes, &cut_points, settings)?;
        let (parameters, last) = maximise(&periods.likelihood, periods.start(), stop)?;
        let (coefficients, time_coefficients, intervals) = periods.estimates(&parameters, &last);
        Ok(Self {
            settings: settings.clone(),
            n: outcomes.n(),
            n_person_periods: intervals.iter().map(|interval| interval.n_at_risk).sum(),
            cut_points,
            intervals,
            coefficients,
            time_coefficients,
            mean_time: periods.mean_time(),
            log_likelihood: periods.without_penalty(&parameters, last.value),
            log_likelihood_null: periods.log_likelihood_null(),
        })
    }

    /// Hazards of samples with these covariates `[n, p]` in all intervals, `[n, n_intervals]`: the probability of an event in
    /// an interval for those without one before.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`], [`ClassicalError::NotFinite`] or [`ClassicalError::Predictor`] for other covariates.
    pub fn hazards(&self, covariates: &Array2<f64>) -> Result<Array2<f64>, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let (constant, changing) = self.predictors(covariates)?;
        Ok(Array2::from_shape_fn((covariates.nrows(), self.intervals.len()), |(row, place)| {
            match self.intervals[place].hazard {
                IntervalHazard::Zero => 0.0,
                IntervalHazard::One => 1.0,
                IntervalHazard::LogOdds(alpha) => {
                    let change = self.settings.effects.at(place).map_or(0.0, |g| g * changing[row]);
                    1.0 / (1.0 + (-(alpha.value + constant[row] + change)).exp())
                }
            }
        }))
    }

    /// x b and x c, `[n]` each.
    fn predictors(&self, covariates: &Array2<f64>) -> Result<(Vec<f64>, Vec<f64>), ClassicalError> {
        let values = |of: &[Estimate]| of.iter().map(|of| of.value).collect::<Vec<_>>();
        let constant = linear_predictor(covariates, 0.0, &values(&self.coefficients))?;
        Ok((constant, linear_predictor(covariates, 0.0, &values(&self.time_coefficients))?))
    }
}

impl SurvivalModel for LogisticHazard {
    fn n_covariates(&self) -> usize {
        self.coefficients.len()
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let hazards = self.hazards(covariates)?;
        // Checks the grid, before survival is read at its times.
        SurvivalCurves::new(grid.to_vec(), Array2::zeros((0, grid.len())))?;
        let ends: Vec<f64> = [0.0].into_iter().chain(self.cut_points.times().iter().copied()).collect();
        let mut survival = Array2::ones((hazards.nrows(), ends.len()));
        for (mut curve, hazards) in survival.rows_mut().into_iter().zip(hazards.rows()) {
            for (place, hazard) in hazards.iter().enumerate() {
                curve[place + 1] = curve[place] * (1.0 - hazard);
            }
        }
        let known = SurvivalCurves::new(ends, survival)?;
        let mut read = Array2::zeros((hazards.nrows(), grid.len()));
        for (mut column, time) in read.columns_mut().into_iter().zip(grid) {
            column.assign(&ndarray::Array1::from(known.all_at(*time, self.settings.reading)));
        }
        Ok(SurvivalCurves::new(grid.to_vec(), read)?)
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let of_time = self.time_coefficients.iter().map(|c| c.value).chain(std::iter::repeat(0.0));
        let mean: Vec<f64> = self.coefficients.iter().zip(of_time).map(|(b, c)| b.value + self.mean_time * c).collect();
        linear_predictor(covariates, 0.0, &mean)
    }
}

#[cfg(test)]
mod tests;
