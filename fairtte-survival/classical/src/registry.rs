//! All estimators by name: the table `[estimator.NAME]` of a run file, and what a fit of any of them returns.

use fairtte_metrics::competing::CompetingOutcomes;
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SubjectId, SurvivalCurves};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

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

    /// Fits a model as [`fit_until`](SurvivalEstimator::fit_until) to covariates with `names` `[p]`, which settings, coefficients
    /// and errors use, and with the subjects of the samples `[n]`, which clustered standard errors and folds use.
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
            other => other.fit_until(covariates, outcomes, stop),
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
        match self {
            Self::FineGray(settings) => {
                let of_cause = FineGraySettings { cause, ..settings.clone() };
                of_cause.fit_named(covariates, outcomes, names).map(FittedEstimator::FineGray)
            }
            Self::CauseSpecific(settings) => {
                let fitted = settings.fit_causes(covariates, outcomes, cause, Some((names, subjects)));
                fitted.map(FittedEstimator::CauseSpecific).map_err(|error| error.with_names(names))
            }
            other => Err(ClassicalError::OneKind {
                estimator: other.name(),
                expected: Self::of_causes().collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::MetricError;

    use super::*;

    /// A column per level and the intercept say the same, which a penalty alone settles; the catalogue and the fit agree on it.
    #[test]
    fn a_penalty_takes_a_column_per_level_and_without_one_a_level_is_left_out() {
        let level = |row: usize| (row * 7) % 3;
        let covariates = Array2::from_shape_fn((60, 3), |(row, column)| f64::from(u8::from(level(row) == column)));
        let time: Vec<f64> = (0..60).map(|row| 1.0 + (level(row) * 10 + (row * 37) % 59) as f64).collect();
        let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
        let of = |penalty: f64| {
            let steps = crate::TimeFunction::Steps(vec![30.0]);
            [
                Estimator::Aft(AftSettings { penalty, ..AftSettings::default() }),
                Estimator::Cox(CoxSettings { ridge: penalty, ..CoxSettings::default() }),
                Estimator::CoxTimeVarying(CoxTimeVaryingSettings {
                    ridge: penalty,
                    function: steps,
                    ..CoxTimeVaryingSettings::default()
                }),
            ]
        };
        for estimator in of(0.0) {
            assert_eq!(estimator.columns(), Columns::Independent, "{}", estimator.name());
            let found = estimator.fit(&covariates, &outcomes);
            assert!(matches!(found, Err(ClassicalError::Collinear { .. })), "{found:?}");
        }
        for estimator in of(0.01) {
            assert_eq!(estimator.columns(), Columns::Any, "{}", estimator.name());
            let model = estimator.fit(&covariates, &outcomes).unwrap();
            assert_eq!(model.n_covariates(), 3);
            // Of all coefficients that say the same, the penalty takes those whose standardised sum is 0.
            if let FittedEstimator::Cox(model) = model {
                let scale = |column: usize| covariates.column(column).std(0.0);
                let sum: f64 = (0..3).map(|k| model.coefficients[k].value * scale(k).powi(2)).sum();
                assert!(sum.abs() < 1e-8, "{sum}");
            }
        }
    }

    #[test]
    fn a_flag_that_is_set_ends_every_fit() {
        let covariates = Array2::from_shape_fn((60, 2), |(row, column)| ((row * (7 + 6 * column)) % 61) as f64);
        let time = (0..60).map(|row| 1.0 + ((row * 37) % 59) as f64).collect();
        let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
        let stop = Stop::default();
        stop.set();
        let names = ["a", "b"].map(str::to_owned);
        let subjects: Vec<SubjectId> = (0..60).map(|row| SubjectId::new(row.to_string())).collect();
        for (name, _) in Estimator::CATALOGUE {
            let estimator = Estimator::by_name(name).unwrap();
            let is_stopped = |found: Result<FittedEstimator, ClassicalError>| match found {
                Err(ClassicalError::OfCause { source, .. }) => {
                    matches!(*source, ClassicalError::Metric(MetricError::Stopped))
                }
                found => matches!(found, Err(ClassicalError::Metric(MetricError::Stopped))),
            };
            assert!(is_stopped(estimator.fit_until(&covariates, &outcomes, &stop)), "{name}");
            assert!(is_stopped(estimator.fit_named(&covariates, &outcomes, &names, &subjects, &stop)), "{name}");
        }
    }

    #[test]
    fn every_name_of_the_catalogue_is_an_estimator_that_fits_predicts_and_is_read_again() {
        let covariates = Array2::from_shape_fn((60, 2), |(row, column)| ((row * (7 + 6 * column)) % 61) as f64);
        let noise = |row: usize| ((row * 37) % 59) as f64;
        let time: Vec<f64> = (0..60).map(|row| 1.0 + covariates[[row, 0]] + noise(row)).collect();
        let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
        for (name, _) in Estimator::CATALOGUE {
            let estimator = Estimator::by_name(name).unwrap().with_seed(3);
            assert_eq!(estimator.name(), *name);
            estimator.check().unwrap();
            let text = serde_json::to_string(&estimator).unwrap();
            assert_eq!(serde_json::from_str::<Estimator>(&text).unwrap(), estimator);
            let model = estimator.fit(&covariates, &outcomes).unwrap();
            assert_eq!((model.name(), model.n_covariates()), (*name, 2));
            let kept: FittedEstimator = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
            let grid = [0.0, 20.0, 60.0, 90.0];
            let curves = kept.survival_curves(&covariates, &grid).unwrap();
            assert_eq!(curves, model.survival_curves(&covariates, &grid).unwrap(), "{name}");
            // The sample with the highest risk has the lower curve.
            let risk = kept.risk(&covariates).unwrap();
            let by_risk = |a: &usize, b: &usize| risk[*a].total_cmp(&risk[*b]);
            let (low, high) = ((0..60).min_by(by_risk).unwrap(), (0..60).max_by(by_risk).unwrap());
            assert!(curves.survival()[[high, 2]] < curves.survival()[[low, 2]], "{name}");
            // The event comes early where the first covariate is low.
            assert!(covariates[[high, 0]] < covariates[[low, 0]], "{name}");
        }
        assert_eq!(Estimator::by_name("erm"), None);
    }

    /// 90 samples of which cause 2 is frequent where the covariate is high; cause 7 is the other.
    fn two_causes() -> (Array2<f64>, CompetingOutcomes) {
        let covariates = Array2::from_shape_fn((90, 2), |(row, column)| ((row * (37 + 6 * column)) % 89) as f64 / 89.0);
        let time = (0..90).map(|row| 1.0 + ((row * 53) % 83) as f64 / 10.0 - covariates[[row, 0]]).collect();
        let cause = |row: usize| match ((row * 29) % 13) as f64 / 13.0 {
            u if u < 0.2 => 0,
            u if u < 0.2 + 0.7 * covariates[[row, 0]] => 2,
            _ => 7,
        };
        (covariates.clone(), CompetingOutcomes::new(time, (0..90).map(cause).collect()).unwrap())
    }

    #[test]
    fn numbers_of_causes_may_have_gaps_and_curves_are_one_minus_the_incidence() {
        let (covariates, outcomes) = two_causes();
        let names = ["a", "b"].map(str::to_owned);
        let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
        let grid = [0.0, 3.0, 6.0, 12.0];
        // The same outcomes with causes 1 and 2, by the models of the library.
        let numbered =
            outcomes.cause().iter().map(|cause| [0, 1, 2][usize::from(*cause > 0) + usize::from(*cause > 2)]);
        let plain = CompetingOutcomes::new(outcomes.time().to_vec(), numbered.collect()).unwrap();
        let combined = crate::CauseSpecific::fit(&CoxSettings::default(), &covariates, &plain).unwrap();
        for (cause, number) in [(2, 1), (7, 2)] {
            let fit = |name: &str| {
                let estimator = Estimator::by_name(name).unwrap();
                let fitted = estimator.fit_causes(&covariates, &outcomes, cause, &names, &subjects).unwrap();
                (fitted.survival_curves(&covariates, &grid).unwrap(), fitted)
            };
            let (curves, fitted) = fit("cause-specific");
            let expected = combined.incidence_curves(&covariates, number, &grid).unwrap();
            assert_eq!(curves, *expected.without());
            let risk = fitted.risk(&covariates).unwrap();
            let last = combined.incidence_curves(&covariates, number, &[9.3]).unwrap().incidence();
            assert!(risk.iter().zip(last.column(0)).all(|(a, b)| (a - b).abs() < 1e-15 && *a > 0.0));
            let whats: Vec<String> = fitted.ratios(0.95, &names).into_iter().map(|ratios| ratios.what).collect();
            assert_eq!(whats, ["hazard ratios of cause 2", "hazard ratios of cause 7"]);
            let (curves, fitted) = fit("fine-gray");
            let model = FineGraySettings { cause: number, ..FineGraySettings::default() };
            let model = model.fit(&covariates, &plain).unwrap();
            assert_eq!(curves, *model.incidence_curves(&covariates, &grid).unwrap().without());
            let ratios = fitted.ratios(0.95, &names);
            assert_eq!(ratios[0].what, format!("subdistribution hazard ratios of cause {cause}"));
            let crate::Ratio { name, value: ratio, interval } = &ratios[0].terms[0];
            let (lower, upper) = interval.unwrap();
            let [b, error] = [model.coefficients[0].value, model.coefficients[0].standard_error];
            let reach = 1.959_963_984_540_054 * error;
            assert!(name == "a" && (ratio - b.exp()).abs() < 1e-12);
            assert!((lower - (b - reach).exp()).abs() < 1e-9 && (upper - (b + reach).exp()).abs() < 1e-9);
        }
    }

    #[test]
    fn with_one_kind_of_event_both_are_cox_models_and_no_other_estimator_models_causes() {
        let (covariates, outcomes) = two_causes();
        let events = outcomes.all_causes();
        let grid = [0.0, 2.0, 5.0, 8.0];
        let curves = |estimator: &Estimator| {
            estimator.fit(&covariates, events).unwrap().survival_curves(&covariates, &grid).unwrap()
        };
        let cox = |ties| curves(&Estimator::Cox(CoxSettings { ties, ..CoxSettings::default() }));
        let named = |name: &str| curves(&Estimator::by_name(name).unwrap());
        let pairs = [("cause-specific", crate::CoxTies::Efron), ("fine-gray", crate::CoxTies::Breslow)];
        for (name, ties) in pairs {
            let (own, other) = (named(name), cox(ties));
            let largest = own.survival().iter().zip(other.survival()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest < 1e-9, "{name}: {largest}");
        }
        assert_eq!(Estimator::of_causes().collect::<Vec<_>>(), ["fine-gray", "cause-specific"]);
        let columns = ["a", "b"].map(str::to_owned);
        let cox = Estimator::by_name("cox").unwrap().fit_causes(&covariates, &outcomes, 2, &columns, &[]).unwrap_err();
        assert_eq!(
            cox.to_string(),
            "cox models one kind of event, expected one of fine-gray, cause-specific for one of several causes"
        );
    }

    #[test]
    fn errors_name_cause_and_column() {
        let (mut covariates, outcomes) = two_causes();
        let names = ["age", "copy"].map(str::to_owned);
        let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
        let specific = Estimator::by_name("cause-specific").unwrap();
        let no_event = specific.fit_causes(&covariates, &outcomes, 3, &names, &subjects).unwrap_err().to_string();
        assert_eq!(no_event, "the model of cause 3: no sample has an event, expected at least one");
        let own = covariates.column(0).to_owned();
        covariates.column_mut(1).assign(&own);
        for (name, start) in
            [("cause-specific", "the model of cause 2: covariate \"copy\""), ("fine-gray", "covariate \"copy\"")]
        {
            let estimator = Estimator::by_name(name).unwrap();
            let said = estimator.fit_causes(&covariates, &outcomes, 2, &names, &subjects).unwrap_err().to_string();
            assert!(said.starts_with(start) && said.contains("linear combination of others (\"age\")"), "{said}");
        }
    }
}
