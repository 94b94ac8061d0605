//! The deviance of held-out samples along a path of penalties.

use fairtte_metrics::resampling::folds_by_subject;
use fairtte_metrics::{GroupId, SubjectId};
use ndarray::{Array1, Array2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::CoxElasticNetSettings;
use super::path::{Penalty, path};
use crate::ClassicalError;
use crate::cox::ordered::Ordered;
use crate::cox::samples::{CoxSamples, deviations};

/// The cross-validated partial likelihood deviance by lambda.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LambdaValidation {
    /// Deviance per event, the mean over folds weighted by their events. That of a fold is minus twice the log partial likelihood
    /// of all samples minus that of the samples of the fit, at the coefficients of the fit (van Houwelingen et al. 2006,
    /// doi:10.1002/sim.2353).
    pub deviances: Vec<f64>,
    /// Their standard errors, from the variation between folds.
    pub standard_errors: Vec<f64>,
    /// Place of the lambda with the lowest deviance.
    pub lowest: usize,
    /// Place of the largest lambda whose deviance is within one standard error of the lowest.
    pub one_standard_error: usize,
}

/// Deviance of coefficients with which the risk of a held-out sample is no number.
const WORST: f64 = 1e100;

/// Deviances of one fold, and its events.
struct Fold {
    deviances: Vec<f64>,
    n_events: f64,
}

/// # Errors
/// [`ClassicalError::EventsInOneFold`], [`ClassicalError::NotConverged`]; once the stop of `samples` is set.
pub(super) fn cross_validate(
    samples: &CoxSamples<'_>,
    settings: &CoxElasticNetSettings,
    lambdas: &[f64],
) -> Result<LambdaValidation, ClassicalError> {
    let outcomes = samples.outcomes;
    let own: Vec<SubjectId> = match samples.subjects {
        Some(_) => Vec::new(),
        None => (0..outcomes.n()).map(|row| SubjectId::new(row.to_string())).collect(),
    };
    let subjects = samples.subjects.unwrap_or(&own);
    let strata: Vec<Option<GroupId>> = outcomes.event().iter().map(|event| Some(GroupId(u32::from(!event)))).collect();
    let fold_of = folds_by_subject(subjects, &strata, settings.folds, (settings.seed, "cox-elastic-net"));
    let all = ordered_by(samples, &(0..outcomes.n()).collect::<Vec<_>>(), settings);
    let of_fold = |fold: usize| -> Result<Option<Fold>, ClassicalError> {
        let kept: Vec<usize> = (0..outcomes.n()).filter(|row| fold_of[*row] != fold).collect();
        let n_kept = outcomes.select(&kept).n_events();
        if n_kept == 0 {
            return Err(ClassicalError::EventsInOneFold { n_events: outcomes.n_events() });
        }
        if n_kept == outcomes.n_events() {
            return Ok(None);
        }
        let mut part = ordered_by(samples, &kept, settings);
        let deviation = standardise(&mut part);
        let fitted = path(&part, Penalty { lambdas, l1_ratio: settings.l1_ratio }, samples.stop)?;
        let n_events = (outcomes.n_events() - n_kept) as f64;
        let own_units: Vec<Array1<f64>> = fitted.iter().map(|b| b / &deviation).collect();
        let deviance = |(of_all, of_part): (f64, f64)| {
            let found = -2.0 * (of_all - of_part) / n_events;
            // A risk that the samples of the fit did not show may overflow: no lambda is chosen for it.
            if found.is_finite() { found.min(WORST) } else { WORST }
        };
        let deviances = all.likelihoods(&own_units).into_iter().zip(part.likelihoods(&fitted)).map(deviance).collect();
        Ok(Some(Fold { deviances, n_events }))
    };
    let folds: Result<Vec<Option<Fold>>, ClassicalError> = (0..settings.folds).into_par_iter().map(of_fold).collect();
    let folds: Vec<Fold> = folds?.into_iter().flatten().collect();
    if folds.len() < 2 {
        return Err(ClassicalError::EventsInOneFold { n_events: outcomes.n_events() });
    }
    Ok(validation(&folds, lambdas.len()))
}

fn validation(folds: &[Fold], n_lambdas: usize) -> LambdaValidation {
    let n_events: f64 = folds.iter().map(|fold| fold.n_events).sum();
    let mean = |of: &dyn Fn(&Fold) -> f64| folds.iter().map(|fold| fold.n_events * of(fold)).sum::<f64>() / n_events;
    let deviances: Vec<f64> = (0..n_lambdas).map(|place| mean(&|fold: &Fold| fold.deviances[place])).collect();
    let error = |place: usize| {
        let variance = mean(&|fold: &Fold| (fold.deviances[place] - deviances[place]).powi(2));
        (variance / (folds.len() - 1) as f64).sqrt()
    };
    let standard_errors: Vec<f64> = (0..n_lambdas).map(error).collect();
    let lowest = (0..n_lambdas).min_by(|a, b| deviances[*a].total_cmp(&deviances[*b])).unwrap_or(0);
    let most = deviances[lowest] + standard_errors[lowest];
    let one_standard_error = deviances.iter().position(|deviance| *deviance <= most).unwrap_or(lowest);
    LambdaValidation { deviances, standard_errors, lowest, one_standard_error }
}

/// Some of the samples, with their covariates minus the means of these.
fn ordered_by(samples: &CoxSamples<'_>, rows: &[usize], settings: &CoxElasticNetSettings) -> Ordered {
    let mut x: Array2<f64> = samples.covariates.select(Axis(0), rows);
    if let Some(mean) = x.mean_axis(Axis(0)) {
        x -= &mean;
    }
    let outcomes = samples.outcomes.select(rows);
    Ordered::new((outcomes.time(), outcomes.event()), &vec![0; rows.len()], &x, settings.ties)
}

/// Gives the covariates a standard deviation of 1, but for those that do not vary, and returns what they were divided by.
fn standardise(ordered: &mut Ordered) -> Array1<f64> {
    let mut deviation = deviations(&ordered.x, &Array1::zeros(ordered.x.ncols()));
    deviation.map_inplace(|deviation| *deviation = if *deviation > 0.0 { *deviation } else { 1.0 });
    ordered.x /= &deviation;
    deviation
}
