//! All estimators by name: the table `[estimator.NAME]` of a run file, and what a fit of any of them returns.

use fairtte_metrics::competing::CompetingOutcomes;
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SubjectId, SurvivalCurves};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::competing::of_one_kind;
use crate::estimator::NEVER;
use crate::{
    AcceleratedFailureTime, AftSettings, BoostingSettings, CauseSpecificCox, CauseSpecificSettings, ClassicalError,
    CoxElasticNetModel, CoxElasticNetSettings, CoxModel, CoxSamples, CoxSettings, CoxTimeVaryingModel,
    CoxTimeVaryingSettings, FineGrayModel, FineGraySettings, ForestSettings, GradientBoostedCox, HazardPenalty,
    LogisticHazard, LogisticHazardSettings, RandomSurvivalForest, SurvivalEstimator, SurvivalModel,
};

/// Defines [`Estimator`] and [`FittedEstimator`] with a variant per line: name in files, settings, model, what it is.
macro_rules! estimators {
    ($($variant:ident($name:literal, $settings:ty, $model:ty, $columns:expr): $summary:literal;)+) => {
        /// An estimator by its name, with its settings.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Estimator {
            $(#[doc = $summary] #[serde(rename = $name)] $variant($settings),)+
        }

        /// A fitted estimator by its name.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum FittedEstimator {
            $(#[doc = $summary] #[serde(rename = $name)] $variant($model),)+
        }

        impl Estimator {
            /// Names with one line each.
            pub const CATALOGUE: &[(&'static str, &'static str)] = &[$(($name, $summary),)+];

            /// Name in run files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// What it is, with its source.
            pub fn summary(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $summary,)+
                }
            }

            /// What the columns of the covariates must be.
            pub fn columns(&self) -> Columns {
                match self {
                    $(Self::$variant(settings) => { let columns: fn(&$settings) -> Columns = $columns; columns(settings) })+
                }
            }
        }

        impl SurvivalEstimator for Estimator {
            type Model = FittedEstimator;

            fn check(&self) -> Result<(), ClassicalError> {
                match self {
                    $(Self::$variant(settings) => settings.check(),)+
                }
            }

            fn fit_until(
                &self,
                covariates: &Array2<f64>,
                outcomes: &Outcomes,
                stop: &Stop,
            ) -> Result<FittedEstimator, ClassicalError> {
                match self {
                    $(Self::$variant(settings) => {
                        SurvivalEstimator::fit_until(settings, covariates, outcomes, stop).map(FittedEstimator::$variant)
                    })+
                }
            }
        }

        impl FittedEstimator {
            /// Name in run files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
        }

        impl SurvivalModel for FittedEstimator {
            fn n_covariates(&self) -> usize {
                match self {
                    $(Self::$variant(model) => model.n_covariates(),)+
                }
            }

            fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
                match self {
                    $(Self::$variant(model) => SurvivalModel::survival_curves(model, covariates, grid),)+
                }
            }

            fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
                match self {
                    $(Self::$variant(model) => SurvivalModel::risk(model, covariates),)+
                }
            }
        }
    };
}

/// What an estimator asks of the columns of its covariates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Any.
    Any,
    /// No column may be a linear combination of others and a constant, so that a category has a column per level but one.
    Independent,
}

/// Without a penalty the levels of a category and the intercept of every interval say the same.
fn logistic_columns(settings: &LogisticHazardSettings) -> Columns {
    match settings.penalty {
        HazardPenalty::L2(_) => Columns::Any,
        HazardPenalty::None => Columns::Independent,
    }
}

/// A penalty on squared coefficients chooses one of all coefficients that say the same.
fn unless_penalised(penalty: f64) -> Columns {
    if penalty > 0.0 { Columns::Any } else { Columns::Independent }
}

estimators! {
    Cox("cox", CoxSettings, CoxModel, |settings| unless_penalised(settings.ridge)):
        "Cox regression: covariates multiply the hazard (Cox 1972), Efron's or Breslow's ties, ridge penalty, strata";
    CoxElasticNet("cox-elastic-net", CoxElasticNetSettings, CoxElasticNetModel, |_| Columns::Any):
        "Cox regression with an elastic net, whose strength is chosen by cross-validation (Simon et al. 2011)";
    CoxTimeVarying("cox-time-varying", CoxTimeVaryingSettings, CoxTimeVaryingModel, |settings| unless_penalised(settings.ridge)):
        "Cox regression with coefficients that change with time (Therneau & Grambsch 2000)";
    LogisticHazard("logistic-hazard", LogisticHazardSettings, LogisticHazard, logistic_columns):
        "logistic hazard: a logistic regression of the event in every interval of time (Brown 1975), ridge penalty";
    Aft("aft", AftSettings, AcceleratedFailureTime, |settings| unless_penalised(settings.penalty)):
        "accelerated failure time: Weibull, log-normal or log-logistic times by maximum likelihood (Kalbfleisch & Prentice 2002)";
    Forest("forest", ForestSettings, RandomSurvivalForest, |_| Columns::Any):
        "random survival forest: trees split by the log-rank statistic (Ishwaran et al. 2008)";
    Boosting("boosting", BoostingSettings, GradientBoostedCox, |_| Columns::Any):
        "gradient-boosted Cox regression: trees fitted to the gradient of the partial likelihood (Ridgeway 1999)";
    FineGray("fine-gray", FineGraySettings, FineGrayModel, |_| Columns::Independent):
        "Fine & Gray's regression of the subdistribution hazard: covariates change the incidence of one of several causes (1999)";
    CauseSpecific("cause-specific", CauseSpecificSettings, CauseSpecificCox, |_| Columns::Independent):
        "a Cox regression per cause, whose hazards give the incidence of one of several causes (Benichou & Gail 1990)";
}

impl Estimator {
    /// The estimator `name` with default settings.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "cox" => Self::Cox(CoxSettings::default()),
            "cox-elastic-net" => Self::CoxElasticNet(CoxElasticNetSettings::default()),
            "cox-time-varying" => Self::CoxTimeVarying(CoxTimeVaryingSettings::default()),
            "logistic-hazard" => Self::LogisticHazard(LogisticHazardSettings::default()),
            "aft" => Self::Aft(AftSettings::default()),
            "forest" => Self::Forest(ForestSettings::default()),
            "boosting" => Self::Boosting(BoostingSettings::default()),
            "fine-gray" => Self::FineGray(FineGraySettings::default()),
            "cause-specific" => Self::CauseSpecific(CauseSpecificSettings::default()),
            _ => return None,
        })
    }

    /// The same estimator with `seed` added to its own, if it draws random numbers: one seed of a run file changes all that is
    /// random in it.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        let own = match &mut self {
            Self::CoxElasticNet(settings) => &mut settings.seed,
            Self::Forest(settings) => &mut settings.seed,
            Self::Boosting(settings) => &mut settings.seed,
            Self::Cox(_)
            | Self::CoxTimeVarying(_)
            | Self::LogisticHazard(_)
            | Self::Aft(_)
            | Self::FineGray(_)
            | Self::CauseSpecific(_) => return self,
        };
        *own = own.wrapping_add(seed);
        self
    }

    /// The same estimator with other names of columns in its settings: for each those that `names` gives, of which there may be several.
    #[must_use]
    pub fn with_columns(mut self, names: impl Fn(&str) -> Vec<String>) -> Self {
        let columns = match &mut self {
            Self::Cox(settings) | Self::CauseSpecific(CauseSpecificSettings(settings)) => Some(&mut settings.strata),
            Self::CoxTimeVarying(settings) => settings.varying.as_mut(),
            Self::CoxElasticNet(_)
            | Self::LogisticHazard(_)
            | Self::Aft(_)
            | Self::Forest(_)
            | Self::Boosting(_)
            | Self::FineGray(_) => None,
        };
        if let Some(columns) = columns {
            *columns = columns.iter().flat_map(|name| names(name)).collect();
        }
        self
    }

    /// Fits a model as [`fit_until`](SurvivalEstimator::fit_until) to covariates with `names` `[p]`, which settings, coefficients
    /// and errors use, and with the subjects of the samples `[n]`, which clustered standard errors, folds and the draws of trees use.
    ///
    /// # Errors
    /// As [`fit_until`](SurvivalEstimator::fit_until).
    pub fn fit_named(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        names: &[String],
        subjects: &[SubjectId],
        stop: &Stop,
    ) -> Result<FittedEstimator, ClassicalError> {
        let samples = || CoxSamples::new(covariates, outcomes).named(names).of_subjects(subjects).until(stop);
        let fitted = match self {
            Self::Cox(settings) => settings.fit_samples(&samples()).map(FittedEstimator::Cox),
            Self::CoxElasticNet(settings) => settings.fit_samples(&samples()).map(FittedEstimator::CoxElasticNet),
            Self::CoxTimeVarying(settings) => settings.fit_samples(&samples()).map(FittedEstimator::CoxTimeVarying),
            Self::Forest(settings) => {
                settings.fit_subjects(covariates, outcomes, subjects, stop).map(FittedEstimator::Forest)
            }
            Self::Boosting(settings) => {
                settings.fit_subjects(covariates, outcomes, subjects, stop).map(FittedEstimator::Boosting)
            }
            Self::LogisticHazard(_) | Self::Aft(_) => self.fit_until(covariates, outcomes, stop),
            // One kind of event is the only cause.
            Self::FineGray(_) | Self::CauseSpecific(_) => {
                self.fit_causes_until(covariates, &of_one_kind(outcomes)?, 1, names, subjects, stop)
            }
        };
        fitted.map_err(|error| error.with_names(names))
    }

    /// Whether it models the incidence of one of several causes, by [`fit_causes`](Self::fit_causes).
    pub fn models_causes(&self) -> bool {
        matches!(self, Self::FineGray(_) | Self::CauseSpecific(_))
    }

    /// Names of the estimators that model the incidence of one of several causes.
    pub fn of_causes() -> impl Iterator<Item = &'static str> {
        let names = Self::CATALOGUE.iter().map(|(name, _)| *name);
        names.filter(|name| Self::by_name(name).is_some_and(|estimator| estimator.models_causes()))
    }

    /// Fits a model of the incidence of `cause` as [`fit_named`](Self::fit_named). The curves of the fit are 1 minus the incidence.
    ///
    /// # Errors
    /// [`ClassicalError::OneKind`] of an estimator of one kind of event, otherwise as [`fit`](SurvivalEstimator::fit).
    pub fn fit_causes(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        cause: u32,
        names: &[String],
        subjects: &[SubjectId],
    ) -> Result<FittedEstimator, ClassicalError> {
        self.fit_causes_until(covariates, outcomes, cause, names, subjects, &NEVER)
    }

    fn fit_causes_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        cause: u32,
        names: &[String],
        subjects: &[SubjectId],
        stop: &Stop,
    ) -> Result<FittedEstimator, ClassicalError> {
        let fitted = match self {
            Self::FineGray(settings) => {
                let of_cause = FineGraySettings { cause, ..settings.clone() };
                of_cause.fit_columns(covariates, outcomes, names, stop).map(FittedEstimator::FineGray)
            }
            Self::CauseSpecific(settings) => {
                let fitted = settings.fit_causes_until(covariates, outcomes, cause, Some((names, subjects)), stop);
                fitted.map(FittedEstimator::CauseSpecific)
            }
            other => Err(ClassicalError::OneKind {
                estimator: other.name(),
                expected: Self::of_causes().collect::<Vec<_>>().join(", "),
            }),
        };
        fitted.map_err(|error| error.with_names(names))
    }
}

impl FittedEstimator {
    /// Names of the columns whose values tell the stratum of a sample, with a baseline each; none where there are no strata.
    pub fn strata(&self) -> &[String] {
        match self {
            Self::Cox(model) => &model.settings().strata,
            Self::CauseSpecific(model) => model.strata(),
            Self::CoxElasticNet(_)
            | Self::CoxTimeVarying(_)
            | Self::LogisticHazard(_)
            | Self::Aft(_)
            | Self::Forest(_)
            | Self::Boosting(_)
            | Self::FineGray(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests;
