//! Predictions of a Cox model for the samples that it is fitted on, without seeing them.

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::resampling::folds_by_subject;
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::{GroupId, MetricError, Outcomes, SubjectId, SurvivalCurves};
use ndarray::{Array2, Axis};

use super::ordered::CoxTies;
use super::regression::CoxRegression;
use crate::ClassicalError;
use crate::covariates::Covariates;

/// Curves of every sample from models that were fitted on the other folds.
#[derive(Clone, Debug)]
pub struct CrossFitted {
    /// Those of the Cox model.
    pub curves: SurvivalCurves,
    /// The Kaplan-Meier curve of the other folds, which no covariate enters.
    pub kaplan_meier: SurvivalCurves,
}

/// Predicts every sample by a model of the subjects in the other folds. Folds keep the samples of a subject together and
/// have about the same share of subjects with an event. A level without samples in the other folds is predicted as the
/// first level. Deterministic for a `seed`. Cost: `n_folds` fits.
///
/// # Errors
/// [`ClassicalError::Setting`] for fewer than two folds, [`ClassicalError::Metric`] for arrays of other lengths, and those of
/// [`CoxRegression::fit`] for any of the folds.
pub fn cross_fitted_curves(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    covariates: &Covariates,
    grid: &[f64],
    (n_folds, seed): (usize, u64),
) -> Result<CrossFitted, ClassicalError> {
    if n_folds < 2 {
        let (setting, value) = ("number of folds", n_folds.to_string());
        return Err(ClassicalError::Setting { setting, value, expected: "at least 2" });
    }
    let n = outcomes.n();
    for (what, found) in [("subjects", subjects.len()), ("covariates", covariates.n())] {
        if found != n {
            return Err(MetricError::LengthMismatch { what, found, expected: n }.into());
        }
    }
    let strata: Vec<Option<GroupId>> = outcomes.event().iter().map(|event| Some(GroupId(u32::from(!event)))).collect();
    let fold_of = folds_by_subject(subjects, &strata, n_folds, (seed, "cox-folds"));
    let mut curves = Array2::ones((n, grid.len()));
    let mut kaplan_meier = Array2::ones((n, grid.len()));
    for fold in 0..n_folds {
        let (held_out, fitted): (Vec<usize>, Vec<usize>) = (0..n).partition(|row| fold_of[*row] == fold);
        if held_out.is_empty() {
            continue;
        }
        let (of_fit, of_covariates) = (outcomes.select(&fitted), covariates.select(&fitted));
        let model = CoxRegression::fit_with_levels_of(covariates, &of_fit, &of_covariates, CoxTies::Efron)?;
        let predicted = model.survival_curves(&covariates.select(&held_out), grid)?;
        let common = kaplan_meier_curves(&KaplanMeier::fit(&of_fit)?, grid, held_out.len())?;
        for (place, row) in held_out.into_iter().enumerate() {
            curves.index_axis_mut(Axis(0), row).assign(&predicted.survival().row(place));
            kaplan_meier.index_axis_mut(Axis(0), row).assign(&common.survival().row(place));
        }
    }
    let curves = SurvivalCurves::new(grid.to_vec(), curves)?;
    Ok(CrossFitted { curves, kaplan_meier: SurvivalCurves::new(grid.to_vec(), kaplan_meier)? })
}
