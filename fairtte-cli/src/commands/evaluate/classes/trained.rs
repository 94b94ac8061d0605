//! The samples of a model that was trained here, in the form in which tables of other models are evaluated.

use std::path::PathBuf;

use fairtte_data::Cohort;
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::{CensoringCurve, CensoringTies, Groups, Outcomes};

use super::super::models::read::SampleCounts;
use super::super::notes::about_censoring;
use super::read::{Model, Tables, Times, is_positive, require_both};
use crate::CliError;
use crate::scored::restrict;

/// Samples with their predicted probabilities.
pub(super) struct Trained {
    pub(super) name: String,
    /// File of the probabilities.
    pub(super) path: PathBuf,
    pub(super) cohort: Cohort,
    /// Groups of all samples.
    pub(super) groups: Vec<Groups>,
    /// Class of every sample; `None` if it is censored by the horizon.
    pub(super) positive: Vec<Option<bool>>,
    pub(super) probability: Vec<f64>,
    /// Where the class is made from times.
    pub(super) censoring: Option<Censoring>,
}

/// The samples of the censoring curve of the weighted AUC.
pub(super) struct Censoring {
    pub(super) horizon: f64,
    pub(super) outcomes: Outcomes,
    /// `train` or `evaluated`.
    pub(super) fitted_on: &'static str,
}

impl Trained {
    /// What is evaluated; all metrics but the weighted AUC are of the samples that have a class.
    ///
    /// # Errors
    /// [`CliError::Config`] if one class is absent.
    pub(super) fn tables(self) -> Result<Tables, CliError> {
        let Self { name, path, cohort, groups, positive, probability, censoring } = self;
        let all = cohort.all_rows();
        let times = censoring.map(|Censoring { horizon, outcomes, fitted_on }| {
            Ok::<_, CliError>(Times {
                horizon,
                outcomes: cohort.outcomes(&all)?,
                groups: groups.clone(),
                censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?,
                censoring_sample: about_censoring(&outcomes, fitted_on),
                training: None,
            })
        });
        let times = times.transpose()?;
        let rows: Vec<usize> = all.into_iter().filter(|row| positive[*row].is_some()).collect();
        let positive: Vec<bool> = rows.iter().map(|row| is_positive(&cohort.samples[*row], times.as_ref())).collect();
        require_both(&positive, times.as_ref())?;
        let of_known = rows.iter().map(|row| probability[*row]).collect();
        let ids: Vec<_> = cohort.samples.iter().map(|sample| &sample.sample_id).collect();
        let samples = SampleCounts::of(std::slice::from_ref(&name), &ids, &[ids.iter().copied().collect()])?;
        let model = Model {
            name,
            path,
            n_noisy: 0,
            ignored: Vec::new(),
            probability,
            predictions: ClassPredictions::new(of_known, positive)?,
        };
        Ok(Tables {
            models: vec![model],
            samples,
            has_subjects: true,
            subjects: cohort.subjects(&rows),
            ids: cohort.sample_ids(&rows),
            groups: groups.iter().map(|of| restrict(of, &rows)).collect::<Result<_, _>>()?,
            rows,
            times,
            notes: Vec::new(),
            facts: Vec::new(),
            cohort,
        })
    }
}
