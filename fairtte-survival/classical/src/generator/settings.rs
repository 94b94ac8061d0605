//! Settings of the generator.

use serde::{Deserialize, Serialize};

use super::hazard::Hazard;
use crate::ClassicalError;

/// What is generated. Covariates are counted from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GeneratorSettings {
    /// People, at least 1. With given rows of covariates, they are taken again from the first one where there are too few.
    pub n: usize,
    /// Normal covariates; not used where rows of covariates are given, except for `scale`.
    pub covariates: CovariateSettings,
    /// Hazard of the event.
    pub hazard: Hazard,
    /// Who is treated.
    pub treatment: TreatmentSettings,
    /// Censoring before the end of the follow-up.
    pub censoring: CensoringSettings,
    /// A confounder z that is never a visible covariate.
    pub unmeasured: UnmeasuredSettings,
    /// Covariates that are not visible, although they may change hazards and treatment.
    pub withheld: Vec<usize>,
    /// Subgroups s.
    pub subgroups: SubgroupSettings,
    /// End of the follow-up, and how times are recorded.
    pub follow_up: FollowUpSettings,
}

impl Default for GeneratorSettings {
    /// Scenario 1 of the benchmark with its censoring, 10,000 people with 10 covariates, treated at random, followed for 20
    /// units of time.
    fn default() -> Self {
        Self {
            n: 10_000,
            covariates: CovariateSettings::default(),
            hazard: Hazard::Scenario1,
            treatment: TreatmentSettings::default(),
            censoring: CensoringSettings::default(),
            unmeasured: UnmeasuredSettings::default(),
            withheld: Vec::new(),
            subgroups: SubgroupSettings::default(),
            follow_up: FollowUpSettings::default(),
        }
    }
}

/// Covariates from N(0, Sigma) with unit variances and the same correlation of every two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CovariateSettings {
    /// Their number d, at least 1.
    pub count: usize,
    /// The correlation of every two, in (-1 / (d - 1), 1).
    pub correlation: f64,
    /// How they are scaled.
    pub scale: Scale,
}

impl Default for CovariateSettings {
    fn default() -> Self {
        Self { count: 10, correlation: 0.0, scale: Scale::default() }
    }
}

/// How covariates (and z) are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// To \[0, 1\]: a standard normal x becomes (x + 4) / 8 with values beyond +-4 (6 in 100,000) at the ends, so that a row does not
    /// depend on the others; of given rows, smallest and largest value of each column become 0 and 1.
    #[default]
    Unit,
    /// As they are.
    None,
}

/// Treatment a = 1 with probability sigmoid(logit(`probability`) + `weight` (sum of `confounders`) + `unmeasured` z).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TreatmentSettings {
    /// Probability where the other terms are 0, in (0, 1).
    pub probability: f64,
    /// Covariates that change treatment and hazard (`I_con` of the benchmark): each must be one that the hazard reads.
    pub confounders: Vec<usize>,
    /// Strength of the confounding, `w_c` of the benchmark.
    pub weight: f64,
    /// Effect of the unmeasured z.
    pub unmeasured: f64,
}

impl Default for TreatmentSettings {
    fn default() -> Self {
        Self { probability: 0.5, confounders: Vec::new(), weight: 0.0, unmeasured: 0.0 }
    }
}

/// Censoring with a hazard of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CensoringSettings {
    /// Hazard of the censoring, `none` = none. It may depend on treatment and covariates.
    pub hazard: Hazard,
    /// Factor of that hazard, >= 0.
    pub factor: f64,
    /// Kendall's tau of event and censoring time of one person (given treatment, covariates and z), in (-1, 1): a Clayton copula of their
    /// survival functions, for tau < 0 with one of them reversed. The hazards stay as they are. 0 = independent.
    pub dependence: f64,
}

impl Default for CensoringSettings {
    fn default() -> Self {
        Self { hazard: Hazard::Censoring1, factor: 1.0, dependence: 0.0 }
    }
}

/// A normal z with correlation `correlation` with every covariate (of given rows: with the standardised sum of their standardised
/// columns), scaled as these. Both hazards are multiplied by exp(effect z).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UnmeasuredSettings {
    /// Correlation with every covariate, `rho_c` of the benchmark.
    pub correlation: f64,
    /// Logarithm of the hazard ratio of the event per unit of z.
    pub hazard: f64,
    /// Logarithm of the hazard ratio of the censoring per unit of z.
    pub censoring: f64,
}

/// Subgroups s = 0, 1, ..: x0 given s is drawn from N(mean of s, `deviation`^2) on the scale on which hazards read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubgroupSettings {
    /// Probabilities of the subgroups, > 0, with sum 1; none = no subgroups.
    pub shares: Vec<f64>,
    /// Means of x0 (or of z) by subgroup; none = x0 and z do not depend on s.
    pub means: Vec<f64>,
    /// Standard deviation of x0 (or of z) within a subgroup, > 0.
    pub deviation: f64,
    /// What depends on s through `means`.
    pub through: Through,
    /// Logarithms of hazard ratios of the event by subgroup; none = 0.
    pub hazards: Vec<f64>,
    /// Logarithms of hazard ratios of the censoring by subgroup; none = 0.
    pub censoring: Vec<f64>,
}

impl Default for SubgroupSettings {
    fn default() -> Self {
        Self {
            shares: Vec::new(),
            means: Vec::new(),
            deviation: 0.15,
            through: Through::default(),
            hazards: Vec::new(),
            censoring: Vec::new(),
        }
    }
}

/// What depends on the subgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// The covariate x0.
    #[default]
    Covariate,
    /// The unmeasured z.
    Unmeasured,
}

/// The end of the follow-up, and how times are recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FollowUpSettings {
    /// Everybody without an event is censored at this time at the latest (`T_max` of the benchmark), > 0 and finite.
    pub maximum: f64,
    /// Entry is spread over this time: the follow-up of a person ends between `maximum` - `accrual` and `maximum` with equal
    /// probability. From 0 to below `maximum`.
    pub accrual: f64,
    /// Width of the intervals in which times are recorded, > 0: a time becomes the end of its interval, and an event and a censoring in
    /// one interval are an event. Hazards of intervals are then those of Eq. 2. Default: times are recorded as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<f64>,
    /// Times of the true curves, equally spaced from 0 to `maximum`, at least 1 beside 0.
    pub grid: usize,
}

impl Default for FollowUpSettings {
    fn default() -> Self {
        Self { maximum: 20.0, accrual: 0.0, interval: None, grid: 200 }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "numbers and words are passed as they are")]
fn wrong<T>(setting: &'static str, value: impl ToString, expected: &'static str) -> Result<T, ClassicalError> {
    Err(ClassicalError::Setting { setting, value: value.to_string(), expected })
}

/// Checks that all numbers are finite.
fn finite(setting: &'static str, values: &[f64]) -> Result<(), ClassicalError> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => wrong(setting, value, "a finite number"),
        None => Ok(()),
    }
}

impl GeneratorSettings {
    /// Checks the ranges of all settings, for normal covariates.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`] with the first bad setting.
    pub fn check(&self) -> Result<(), ClassicalError> {
        let CovariateSettings { count, correlation, .. } = self.covariates;
        if count == 0 {
            return wrong("covariates.count", 0, "at least 1");
        }
        let others = count as f64 - 1.0;
        if !(correlation < 1.0 && (1.0 + others * correlation) > 0.0) {
            return wrong("covariates.correlation", correlation, "a number above -1 / (count - 1) and below 1");
        }
        let of_z = self.unmeasured.correlation;
        let is_possible = of_z.powi(2) * (count as f64) < 1.0 + others * correlation;
        if !is_possible {
            let expected = "a number whose square is below (1 + (count - 1) covariates.correlation) / count";
            return wrong("unmeasured.correlation", of_z, expected);
        }
        self.check_with(count)
    }

    /// Checks the ranges of all settings, for rows of `count` given covariates.
    pub(super) fn check_with(&self, count: usize) -> Result<(), ClassicalError> {
        if self.n == 0 {
            return wrong("n", 0, "at least 1");
        }
        if self.hazard == Hazard::None {
            return wrong("hazard", "none", "a hazard above 0");
        }
        for (setting, hazard) in [("hazard", &self.hazard), ("censoring.hazard", &self.censoring.hazard)] {
            hazard.check()?;
            if hazard.n_covariates() > count {
                return wrong(
                    setting,
                    format!("one that reads {} covariates", hazard.n_covariates()),
                    "one that reads no more covariates than there are",
                );
            }
        }
        self.check_treatment()?;
        self.check_censoring()?;
        self.check_subgroups()?;
        self.check_follow_up()?;
        match self.withheld.iter().find(|place| **place >= count) {
            Some(place) => wrong("withheld", place, "places of covariates, counted from 0"),
            None if (0..count).all(|place| self.withheld.contains(&place)) => {
                wrong("withheld", "all covariates", "at least one that is visible")
            }
            None => Ok(()),
        }
    }

    fn check_treatment(&self) -> Result<(), ClassicalError> {
        let TreatmentSettings { probability, confounders, weight, unmeasured } = &self.treatment;
        if !(*probability > 0.0 && *probability < 1.0) {
            return wrong("treatment.probability", probability, "a number between 0 and 1");
        }
        finite("treatment.weight", &[*weight])?;
        finite("treatment.unmeasured", &[*unmeasured])?;
        match confounders.iter().find(|place| !self.hazard.reads(**place)) {
            Some(place) => wrong("treatment.confounders", place, "covariates that the hazard of the event reads"),
            None => Ok(()),
        }
    }

    fn check_censoring(&self) -> Result<(), ClassicalError> {
        let CensoringSettings { factor, dependence, hazard } = &self.censoring;
        if !(factor.is_finite() && *factor >= 0.0) {
            return wrong("censoring.factor", factor, "a finite number >= 0");
        }
        if !(*dependence > -1.0 && *dependence < 1.0) {
            return wrong("censoring.dependence", dependence, "a number between -1 and 1");
        }
        if *hazard == Hazard::None && dependence.abs() > 0.0 {
            return wrong("censoring.dependence", dependence, "0 where censoring.hazard is none");
        }
        let is_correlation = self.unmeasured.correlation.abs() < 1.0;
        if !is_correlation {
            return wrong("unmeasured.correlation", self.unmeasured.correlation, "a number between -1 and 1");
        }
        finite("unmeasured.hazard", &[self.unmeasured.hazard])?;
        finite("unmeasured.censoring", &[self.unmeasured.censoring])
    }

    fn check_subgroups(&self) -> Result<(), ClassicalError> {
        let SubgroupSettings { shares, means, deviation, hazards, censoring, .. } = &self.subgroups;
        let sum: f64 = shares.iter().sum();
        let are_shares = shares.iter().all(|share| *share > 0.0) && (shares.is_empty() || (sum - 1.0).abs() < 1e-9);
        if !are_shares {
            return wrong("subgroups.shares", format!("{shares:?}"), "numbers > 0 with sum 1");
        }
        for (setting, values) in
            [("subgroups.means", means), ("subgroups.hazards", hazards), ("subgroups.censoring", censoring)]
        {
            finite(setting, values)?;
            if !values.is_empty() && values.len() != shares.len() {
                return wrong(setting, format!("{values:?}"), "as many numbers as subgroups.shares");
            }
        }
        if !(deviation.is_finite() && *deviation > 0.0) {
            return wrong("subgroups.deviation", deviation, "a finite number > 0");
        }
        Ok(())
    }

    fn check_follow_up(&self) -> Result<(), ClassicalError> {
        let FollowUpSettings { maximum, accrual, interval, grid } = &self.follow_up;
        if !(maximum.is_finite() && *maximum > 0.0) {
            return wrong("follow-up.maximum", maximum, "a finite number > 0");
        }
        if !(*accrual >= 0.0 && accrual < maximum) {
            return wrong("follow-up.accrual", accrual, "a number from 0 to below follow-up.maximum");
        }
        if let Some(width) = interval.filter(|width| !(*width > 0.0 && width <= maximum)) {
            return wrong("follow-up.interval", width, "a number above 0, at most follow-up.maximum");
        }
        if *grid == 0 {
            return wrong("follow-up.grid", 0, "at least 1");
        }
        Ok(())
    }

    /// The times of the true curves: 0 and `follow-up.grid` others.
    pub fn grid(&self) -> Vec<f64> {
        let FollowUpSettings { maximum, grid, .. } = self.follow_up;
        (0..=grid).map(|k| maximum * (k as f64 / grid as f64)).collect()
    }
}
