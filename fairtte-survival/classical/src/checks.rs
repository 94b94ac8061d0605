//! What the samples of a fit say about it, beyond what the model keeps: whether hazards are proportional, how well trees predict the
//! samples that they were grown without, and which columns they need for it.

use std::collections::BTreeSet;

use fairtte_metrics::{Outcomes, SubjectId};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::cox::{ChiSquareTest, CoxSamples, ProportionalityTest, TimeTransform};
use crate::forest::{Importance, Sampling};
use crate::{ClassicalError, FittedEstimator};

/// What the samples of a fit say about it; each is `None` of estimators that do not have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FitChecks {
    /// Names of the columns of the fit, `[p]`.
    pub columns: Vec<String>,
    /// Samples of the fit.
    pub n: usize,
    /// Distinct subjects among them. If they are fewer, plain standard errors, which take samples for independent, are too small.
    pub n_subjects: usize,
    /// Of a Cox regression without a penalty: the test of proportional hazards against 1 - S(t-).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proportionality: Option<ProportionalityTest>,
    /// Of Cox coefficients that change with time, without a penalty: Wald's test that none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_variation: Option<ChiSquareTest>,
    /// Of a forest whose trees leave samples out: 1 - Harrell's C of these samples, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_bag_error: Option<f64>,
    /// Of such a forest: by how much C falls if a column is permuted, by column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Importance>,
    /// Why one that the estimator has could not be computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undefined: Vec<String>,
}

impl FitChecks {
    /// Nothing but the counts and the names of the columns `[p]` of samples with these subjects `[n]`.
    pub fn new(names: &[String], subjects: &[SubjectId]) -> Self {
        let n_subjects = subjects.iter().collect::<BTreeSet<_>>().len();
        Self { columns: names.to_vec(), n: subjects.len(), n_subjects, ..Self::default() }
    }
}

impl FittedEstimator {
    /// Checks the fit with its samples: covariates `[n, p]` with names `[p]`, outcomes, and subjects `[n]`. O(n p) of a Cox regression; of a forest
    /// O(trees p n log n), with permutations from its own seed. What cannot be computed is a sentence of
    /// [`undefined`](FitChecks::undefined).
    ///
    /// ```
    /// use fairtte_classical::{Estimator, SurvivalEstimator as _};
    /// use fairtte_metrics::{Outcomes, SubjectId};
    /// use ndarray::Array2;
    ///
    /// // Hazards that rise with the first column.
    /// let x = Array2::from_shape_fn((90, 2), |(row, column)| ((row * (37 + 6 * column)) % 89) as f64 / 89.0);
    /// let time = (0..90).map(|row| (1.0 + ((row * 53) % 83) as f64) / (0.1 + x[[row, 0]])).collect();
    /// let outcomes = Outcomes::new(time, (0..90).map(|row| row % 4 != 0).collect())?;
    /// let names = ["dose", "noise"].map(str::to_owned);
    /// let forest = Estimator::by_name("forest").ok_or("no such estimator")?.fit(&x, &outcomes)?;
    /// let people: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
    /// let checks = forest.checks(&x, &outcomes, &names, &people);
    /// let columns = checks.importance.ok_or("no importance")?.columns;
    /// assert!(checks.out_of_bag_error.is_some_and(|error| error < 0.5) && columns[0].value > columns[1].value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checks(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        names: &[String],
        subjects: &[SubjectId],
    ) -> FitChecks {
        let mut checks = FitChecks::new(names, subjects);
        match self {
            Self::Cox(model) if model.settings().ridge <= 0.0 => {
                let samples = CoxSamples::new(covariates, outcomes).named(names);
                let found = model.proportionality_test(&samples, TimeTransform::default());
                checks.proportionality = kept(found, "proportional hazards", &mut checks.undefined);
            }
            Self::CoxTimeVarying(model) => checks.time_variation = model.time_variation_test(),
            Self::Forest(forest) if forest.settings().sampling != Sampling::All => {
                let error = forest.out_of_bag(covariates).and_then(|found| found.error(outcomes));
                checks.out_of_bag_error = kept(error, "out-of-bag error", &mut checks.undefined);
                let importance = forest.importance(covariates, outcomes, forest.settings().seed);
                checks.importance = kept(importance, "permutation importance", &mut checks.undefined);
            }
            _ => (),
        }
        checks
    }
}

/// The value, or its reason among `undefined`.
fn kept<T>(found: Result<T, ClassicalError>, what: &str, undefined: &mut Vec<String>) -> Option<T> {
    found.map_err(|error| undefined.push(format!("{what}: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;
    use crate::cox::tests::{golden, numbers};
    use crate::{CoxSettings, Estimator, ForestSettings, RandomSurvivalForest, SurvivalEstimator as _};

    /// The subjects of `n` samples, `each` samples in turns.
    fn people(n: usize, each: usize) -> Vec<SubjectId> {
        (0..n).map(|row| SubjectId::new(format!("p{}", row % (n / each)))).collect()
    }

    #[test]
    fn a_cox_fit_is_tested_for_proportional_hazards_unless_it_is_penalised() {
        let golden = golden();
        let outcomes = golden.outcomes("distinct");
        let fit = |ridge: f64| {
            let settings = CoxSettings { ridge, ..CoxSettings::default() };
            let samples = CoxSamples::new(&golden.x, &outcomes).named(&golden.names);
            FittedEstimator::Cox(settings.fit_samples(&samples).unwrap())
        };
        let checks = fit(0.0).checks(&golden.x, &outcomes, &golden.names, &people(outcomes.n(), 1));
        let test = checks.proportionality.as_ref().unwrap();
        assert_eq!(test.transform, TimeTransform::KaplanMeier);
        let FittedEstimator::Cox(model) = fit(0.0) else { panic!("another estimator") };
        let samples = CoxSamples::new(&golden.x, &outcomes).named(&golden.names);
        assert_eq!(*test, model.proportionality_test(&samples, TimeTransform::KaplanMeier).unwrap());
        let names: Vec<&str> = test.covariates.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!((checks.out_of_bag_error, checks.undefined.len()), (None, 0));
        let json = serde_json::to_string(&checks).unwrap();
        assert_eq!(serde_json::from_str::<FitChecks>(&json).unwrap(), checks);
        assert_eq!(
            fit(0.1).checks(&golden.x, &outcomes, &golden.names, &people(outcomes.n(), 1)).proportionality,
            None
        );
        // Other samples than those of the fit.
        let other = golden.x.slice(ndarray::s![.., ..3]).to_owned();
        let refused = fit(0.0).checks(&other, &outcomes, &golden.names[..3], &people(outcomes.n(), 1));
        assert_eq!(refused.undefined, ["proportional hazards: 3 covariates, expected the 4 of the fit"]);
        // A coefficient of x log(t + 0.01) beside that of x, for each covariate.
        let varying = Estimator::by_name("cox-time-varying").unwrap().fit(&golden.x, &outcomes).unwrap();
        let found =
            varying.checks(&golden.x, &outcomes, &golden.names, &people(outcomes.n(), 1)).time_variation.unwrap();
        let recorded = &golden.values["time-varying"]["log"];
        assert_eq!(found.degrees_of_freedom, numbers(&recorded["coefficients"]).len() - golden.names.len());
    }

    #[test]
    fn a_forest_is_tested_on_the_samples_that_its_trees_leave_out() {
        let x = Array2::from_shape_fn((120, 2), |(row, column)| ((row * (37 + 6 * column)) % 113) as f64 / 113.0);
        let time = (0..120).map(|row| (1.0 + ((row * 53) % 107) as f64) / (0.05 + x[[row, 0]])).collect();
        let outcomes = Outcomes::new(time, (0..120).map(|row| row % 4 != 0).collect()).unwrap();
        let names = ["dose", "noise"].map(str::to_owned);
        let of = |sampling: Sampling| {
            let settings = ForestSettings { trees: 60, sampling, seed: 3, ..ForestSettings::default() };
            RandomSurvivalForest::fit(&x, &outcomes, &settings).unwrap()
        };
        let (forest, out_of_bag) = of(Sampling::Bootstrap);
        let importance = forest.importance(&x, &outcomes, 3).unwrap();
        let checks = FittedEstimator::Forest(forest).checks(&x, &outcomes, &names, &people(120, 2));
        assert_eq!((checks.n, checks.n_subjects), (120, 60));
        // The fit returns the same predictions.
        assert_eq!(checks.out_of_bag_error, Some(out_of_bag.error(&outcomes).unwrap()));
        assert!(importance.columns[0].value > importance.columns[1].value, "{importance:?}");
        assert_eq!(checks.importance, Some(importance));
        let (forest, _) = of(Sampling::All);
        let checks = FittedEstimator::Forest(forest).checks(&x, &outcomes, &names, &people(120, 1));
        assert_eq!((checks.out_of_bag_error, checks.importance, checks.undefined.len()), (None, None, 0));
    }
}
