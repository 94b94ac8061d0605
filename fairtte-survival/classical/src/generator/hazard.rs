//! The hazards of the scenarios, as functions of treatment a, covariates x and time t.
//!
//! Those of the benchmark are in its Table 3 (Algorithm 1 and Eq. 2 turn them into times), whose numbers 2 and 3 are
//! printed twice: the first two rows are `constant-1` and `constant-2` here. They are rates: several exceed 1. `gauss`, `piece` and
//! `log-linear` are ours: the benchmark names `gauss_k` and `piece_k` (k covariates) and gives no formula.

use serde::{Deserialize, Serialize};

use super::course::Course;
use crate::ClassicalError;

/// A hazard h(t given a, x), a rate per unit of time; t > 10 is the knee of scenarios 4 and 6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hazard {
    /// No events: the hazard is 0. Only for censoring.
    None,
    /// Printed row 1 (number 2, the `const_1` of its text): 0.5 exp(-2 + a + x0).
    #[serde(rename = "constant-1")]
    Constant1,
    /// Printed row 2 (number 3): 0.5 exp(-2 + a x0 + x0).
    #[serde(rename = "constant-2")]
    Constant2,
    /// 0.3 exp(0.1 a + 0.3 a x0 + 0.2 a x1).
    #[serde(rename = "scenario-1")]
    Scenario1,
    /// 0.3 exp(0.1 a + 0.1 a x0) where x0 > 0, otherwise 0.3 exp(0.1 a + 0.5 a x0). On covariates in (0, 1) the second never acts.
    #[serde(rename = "scenario-2")]
    Scenario2,
    /// 0.5 exp(0.1 a + 0.5 a t).
    #[serde(rename = "scenario-3")]
    Scenario3,
    /// 0.5 exp(0.1 a + 0.05 a t) where t > 10, otherwise 0.5 exp(0.1 a + 0.01 a t).
    #[serde(rename = "scenario-4")]
    Scenario4,
    /// 0.8 exp(0.8 a - 0.05 a t).
    #[serde(rename = "scenario-5")]
    Scenario5,
    /// 0.8 exp(0.8 a - 0.05 a t) where t > 10, otherwise 0.8 exp(0.8 a - 0.01 a t).
    #[serde(rename = "scenario-6")]
    Scenario6,
    /// 0.5 exp(0.3 a x0 - 0.1 a t + 0.1 x2 t).
    #[serde(rename = "scenario-7")]
    Scenario7,
    /// 0.5 exp(-0.3 a x0 + 0.1 a t + 0.01 x2 t).
    #[serde(rename = "scenario-8")]
    Scenario8,
    /// 0.3 exp(0.2 a x0 log(t + 0.01) + 0.2 a).
    #[serde(rename = "scenario-9")]
    Scenario9,
    /// 0.3 exp(0.2 a x0 log(t + 0.01) - 0.1 a x1 log(t + 0.01) + 0.2 a).
    #[serde(rename = "scenario-10")]
    Scenario10,
    /// The censoring hazard of scenario 1: 0.2 exp(0.1 x2).
    #[serde(rename = "censoring-1")]
    Censoring1,
    /// The censoring hazard of scenario 3: 0.3 exp(0.01 x2^2 t).
    #[serde(rename = "censoring-3")]
    Censoring3,
    /// The censoring hazard of scenario 10: 0.1 exp(0.2 x0).
    #[serde(rename = "censoring-10")]
    Censoring10,
    /// Ours: a Gaussian bump over the first covariates.
    Gauss(Gauss),
    /// Ours: piecewise linear in each of the first covariates.
    Piece(Piece),
    /// Ours: log-linear in treatment, covariates, their products, and their products with time.
    LogLinear(LogLinear),
}

/// `rate` exp(`treatment` a + `height` exp(-m / (2 `width`^2))), m = the mean over the first `covariates` of (x - 1/2)^2. Ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Gauss {
    /// Covariates k of the hazard, the first ones.
    pub covariates: usize,
    /// Hazard far from the bump, per unit of time, > 0.
    pub rate: f64,
    /// Logarithm of the hazard ratio of the treated.
    pub treatment: f64,
    /// Logarithm of the hazard on top of the bump relative to the hazard far from it.
    pub height: f64,
    /// Standard deviation of the bump, > 0.
    pub width: f64,
}

impl Default for Gauss {
    fn default() -> Self {
        Self { covariates: 2, rate: 0.2, treatment: 0.5, height: 2.0, width: 0.2 }
    }
}

/// `rate` exp(`treatment` a + (p(x0) + .. + p(x(k-1))) / sqrt(k)), p(x) = `below` x up to x = 1/2, where its slope becomes `above`.
/// Ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Piece {
    /// Covariates k of the hazard, the first ones.
    pub covariates: usize,
    /// Hazard of covariates 0, per unit of time, > 0.
    pub rate: f64,
    /// Logarithm of the hazard ratio of the treated.
    pub treatment: f64,
    /// Slope up to 1/2.
    pub below: f64,
    /// Slope from 1/2 on.
    pub above: f64,
}

impl Default for Piece {
    fn default() -> Self {
        Self { covariates: 4, rate: 0.2, treatment: 0.5, below: 0.5, above: 3.0 }
    }
}

/// `rate` exp(`treatment` a + b x + a g x + (`time` + `treatment-time` a + d x) c(t)), with b, g, d the vectors `covariates`,
/// `treatment-covariates`, `covariates-time` of the first covariates, and c(t) = t or log(t + 0.01). Ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LogLinear {
    /// Hazard of the untreated with covariates 0 where c(t) = 0, per unit of time, > 0.
    pub rate: f64,
    /// Effect of the treatment.
    pub treatment: f64,
    /// Effects of the first covariates.
    pub covariates: Vec<f64>,
    /// Effects of the products of treatment and first covariates.
    pub treatment_covariates: Vec<f64>,
    /// Effect of c(t).
    pub time: f64,
    /// Effect of the product of treatment and c(t).
    pub treatment_time: f64,
    /// Effects of the products of first covariates and c(t).
    pub covariates_time: Vec<f64>,
    /// The function c.
    pub clock: Clock,
}

impl Default for LogLinear {
    fn default() -> Self {
        Self {
            rate: 1.0,
            treatment: 0.0,
            covariates: Vec::new(),
            treatment_covariates: Vec::new(),
            time: 0.0,
            treatment_time: 0.0,
            covariates_time: Vec::new(),
            clock: Clock::default(),
        }
    }
}

/// The function of time in a log-linear hazard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// t.
    #[default]
    Linear,
    /// log(t + 0.01).
    Log,
}

/// The knee of scenarios 4 and 6.
const KNEE: f64 = 10.0;

impl Hazard {
    /// The number of covariates that the hazard reads: it reads the first ones, or some of them.
    pub fn n_covariates(&self) -> usize {
        match self {
            Self::None | Self::Scenario3 | Self::Scenario4 | Self::Scenario5 | Self::Scenario6 => 0,
            Self::Constant1 | Self::Constant2 | Self::Scenario2 | Self::Scenario9 | Self::Censoring10 => 1,
            Self::Scenario1 | Self::Scenario10 => 2,
            Self::Scenario7 | Self::Scenario8 | Self::Censoring1 | Self::Censoring3 => 3,
            Self::Gauss(gauss) => gauss.covariates,
            Self::Piece(piece) => piece.covariates,
            Self::LogLinear(of) => of.covariates.len().max(of.treatment_covariates.len()).max(of.covariates_time.len()),
        }
    }

    /// Whether the hazard changes with covariate `place`.
    pub fn reads(&self, place: usize) -> bool {
        let at = |effects: &[f64]| effects.get(place).is_some_and(|effect| effect.abs() > 0.0);
        match self {
            Self::Scenario7 | Self::Scenario8 => place == 0 || place == 2,
            Self::Censoring1 | Self::Censoring3 => place == 2,
            Self::LogLinear(of) => at(&of.covariates) || at(&of.treatment_covariates) || at(&of.covariates_time),
            _ => place < self.n_covariates(),
        }
    }

    /// Checks the ranges of its numbers.
    pub(super) fn check(&self) -> Result<(), ClassicalError> {
        let positive = |setting: &'static str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(ClassicalError::Setting { setting, value: value.to_string(), expected: "a finite number > 0" })
            }
        };
        let finite = |setting: &'static str, values: &[f64]| match values.iter().find(|value| !value.is_finite()) {
            Some(value) => {
                Err(ClassicalError::Setting { setting, value: value.to_string(), expected: "a finite number" })
            }
            None => Ok(()),
        };
        let some = |setting: &'static str, count: usize| match count {
            0 => Err(ClassicalError::Setting { setting, value: "0".to_owned(), expected: "at least 1" }),
            _ => Ok(()),
        };
        match self {
            Self::Gauss(of) => {
                some("gauss.covariates", of.covariates)?;
                positive("gauss.rate", of.rate)?;
                positive("gauss.width", of.width)?;
                finite("gauss.treatment", &[of.treatment])?;
                finite("gauss.height", &[of.height])
            }
            Self::Piece(of) => {
                some("piece.covariates", of.covariates)?;
                positive("piece.rate", of.rate)?;
                finite("piece.treatment", &[of.treatment])?;
                finite("piece.below", &[of.below])?;
                finite("piece.above", &[of.above])
            }
            Self::LogLinear(of) => {
                positive("log-linear.rate", of.rate)?;
                finite("log-linear.treatment", &[of.treatment])?;
                finite("log-linear.time", &[of.time])?;
                finite("log-linear.treatment-time", &[of.treatment_time])?;
                finite("log-linear.covariates", &of.covariates)?;
                finite("log-linear.treatment-covariates", &of.treatment_covariates)?;
                finite("log-linear.covariates-time", &of.covariates_time)
            }
            _ => Ok(()),
        }
    }

    /// The hazard of a person with treatment `a` (0 or 1) and covariates `x`, at least [`n_covariates`](Self::n_covariates).
    pub(super) fn course(&self, a: f64, x: &[f64]) -> Course {
        let growth = |rate: f64, log: f64, slope: f64| Course::Growth { rate: rate * log.exp(), slope };
        let knee = |rate: f64, log: f64, before: f64, after: f64| Course::Knee {
            rate: rate * log.exp(),
            before,
            after,
            knee: KNEE,
        };
        match self {
            Self::None => Course::constant(0.0),
            Self::Constant1 => growth(0.5, -2.0 + a + x[0], 0.0),
            Self::Constant2 => growth(0.5, -2.0 + a * x[0] + x[0], 0.0),
            Self::Scenario1 => growth(0.3, 0.1 * a + 0.3 * a * x[0] + 0.2 * a * x[1], 0.0),
            Self::Scenario2 if x[0] > 0.0 => growth(0.3, 0.1 * a + 0.1 * a * x[0], 0.0),
            Self::Scenario2 => growth(0.3, 0.1 * a + 0.5 * a * x[0], 0.0),
            Self::Scenario3 => growth(0.5, 0.1 * a, 0.5 * a),
            Self::Scenario4 => knee(0.5, 0.1 * a, 0.01 * a, 0.05 * a),
            Self::Scenario5 => growth(0.8, 0.8 * a, -0.05 * a),
            Self::Scenario6 => knee(0.8, 0.8 * a, -0.01 * a, -0.05 * a),
            Self::Scenario7 => growth(0.5, 0.3 * a * x[0], -0.1 * a + 0.1 * x[2]),
            Self::Scenario8 => growth(0.5, -0.3 * a * x[0], 0.1 * a + 0.01 * x[2]),
            Self::Scenario9 => Course::Power { rate: 0.3 * (0.2 * a).exp(), power: 0.2 * a * x[0] },
            Self::Scenario10 => Course::Power { rate: 0.3 * (0.2 * a).exp(), power: a * (0.2 * x[0] - 0.1 * x[1]) },
            Self::Censoring1 => growth(0.2, 0.1 * x[2], 0.0),
            Self::Censoring3 => growth(0.3, 0.0, 0.01 * x[2] * x[2]),
            Self::Censoring10 => growth(0.1, 0.2 * x[0], 0.0),
            Self::Gauss(of) => of.course(a, x),
            Self::Piece(of) => of.course(a, x),
            Self::LogLinear(of) => of.course(a, x),
        }
    }
}

impl Gauss {
    fn course(&self, a: f64, x: &[f64]) -> Course {
        let squares: f64 = x[..self.covariates].iter().map(|value| (value - 0.5).powi(2)).sum();
        let bump = (-squares / self.covariates as f64 / (2.0 * self.width.powi(2))).exp();
        Course::constant(self.rate * (self.treatment * a + self.height * bump).exp())
    }
}

impl Piece {
    fn course(&self, a: f64, x: &[f64]) -> Course {
        let piece = |value: &f64| self.below * value.min(0.5) + self.above * (value - 0.5).max(0.0);
        let sum: f64 = x[..self.covariates].iter().map(piece).sum();
        Course::constant(self.rate * (self.treatment * a + sum / (self.covariates as f64).sqrt()).exp())
    }
}

impl LogLinear {
    fn course(&self, a: f64, x: &[f64]) -> Course {
        let sum = |effects: &[f64]| effects.iter().zip(x).map(|(effect, value)| effect * value).sum::<f64>();
        let log = self.treatment * a + sum(&self.covariates) + a * sum(&self.treatment_covariates);
        let slope = self.time + self.treatment_time * a + sum(&self.covariates_time);
        let rate = self.rate * log.exp();
        match self.clock {
            Clock::Linear => Course::Growth { rate, slope },
            Clock::Log => Course::Power { rate, power: slope },
        }
    }
}
