//! Cox models of all causes that predict the incidence of one: the estimator of run files.

use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{MetricError, Outcomes, SubjectId, SurvivalCurves};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::cause_specific::CauseSpecific;
use super::fine_gray::of_one_kind;
use crate::estimator::NEVER;
use crate::{ClassicalError, CoxBaseline, CoxModel, CoxSamples, CoxSettings, SurvivalEstimator, SurvivalModel};

/// Settings of a Cox model per cause, the same for all: those of [`CoxSettings`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CauseSpecificSettings(pub CoxSettings);

/// A Cox model per cause, whose hazards give the incidence of one of them ([`CauseSpecific`]).
///
/// Causes without an event in the samples of the fit have no model: their hazard is estimated as 0. So is that of a cause without an
/// event in a stratum that has events of others. The risk is the incidence of the cause at the last event time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CauseSpecificCox {
    /// The cause whose incidence is predicted.
    pub cause: u32,
    /// The causes with an event, ascending; the models are in their order.
    pub causes: Vec<u32>,
    fitted: CauseSpecific<CoxModel>,
}

impl CauseSpecificSettings {
    /// Fits the models to covariates `[n, p]` with `names` `[p]`, which coefficients and errors use, and with the subjects of the
    /// samples `[n]`, which robust standard errors use. Cost: that of a Cox model per cause.
    ///
    /// # Errors
    /// [`ClassicalError::OfCause`] with what [`CoxSettings::fit_samples`] says; [`ClassicalError::NoEvents`] in it if `cause` has no
    /// event.
    pub fn fit_causes(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        cause: u32,
        identities: Option<(&[String], &[SubjectId])>,
    ) -> Result<CauseSpecificCox, ClassicalError> {
        self.fit_causes_until(covariates, outcomes, cause, identities, &NEVER)
    }

    /// As [`fit_causes`](Self::fit_causes) until `stop` is set.
    pub(crate) fn fit_causes_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        cause: u32,
        identities: Option<(&[String], &[SubjectId])>,
        stop: &Stop,
    ) -> Result<CauseSpecificCox, ClassicalError> {
        let mut causes: Vec<u32> = outcomes.cause().iter().copied().filter(|cause| *cause > 0).collect();
        causes.sort_unstable();
        causes.dedup();
        let of_cause = |cause, source| ClassicalError::OfCause { cause, source: Box::new(source) };
        if !causes.contains(&cause) {
            return Err(of_cause(cause, ClassicalError::NoEvents));
        }
        // Numbers of causes may have gaps, the models have none.
        let number =
            |cause: &u32| (1..).zip(&causes).find(|(_, known)| *known == cause).map_or(0, |(number, _)| number);
        let numbers = outcomes.cause().iter().map(number).collect();
        let renumbered = CompetingOutcomes::new(outcomes.time().to_vec(), numbers)?;
        let fit = |number: u32, events: &Outcomes| {
            let samples = CoxSamples::new(covariates, events).until(stop);
            let samples = match identities {
                Some((names, subjects)) => samples.named(names).of_subjects(subjects),
                None => samples,
            };
            self.0.fit_samples(&samples).map_err(|error| of_cause(causes[number as usize - 1], error))
        };
        let mut fitted = CauseSpecific::fit_each(&renumbered, fit)?;
        complete_strata(fitted.models_mut());
        Ok(CauseSpecificCox { cause, causes, fitted })
    }
}

/// Gives every model the strata of all: one without events of a cause has the hazard 0 of it.
fn complete_strata(models: &mut [CoxModel]) {
    let mut known: Vec<Vec<f64>> = Vec::new();
    for baseline in models.iter().flat_map(|model| &model.baselines) {
        if !known.contains(&baseline.stratum) {
            known.push(baseline.stratum.clone());
        }
    }
    for model in models {
        let own: Vec<Vec<f64>> = model.baselines.iter().map(|baseline| baseline.stratum.clone()).collect();
        let without_events = known.iter().filter(|stratum| !own.contains(stratum)).cloned();
        let empty = |stratum| CoxBaseline { stratum, times: Vec::new(), cumulative_hazard: Vec::new() };
        model.baselines.extend(without_events.map(empty));
    }
}

impl CauseSpecificCox {
    /// Names of the columns whose values tell the stratum of a sample.
    pub(crate) fn strata(&self) -> &[String] {
        self.fitted.models().first().map_or(&[][..], |model| model.settings().strata.as_slice())
    }

    /// The model of `cause`; `None` if it had no event.
    pub fn model(&self, cause: u32) -> Option<&CoxModel> {
        let place = self.causes.iter().position(|known| *known == cause)?;
        self.fitted.models().get(place)
    }

    /// Cumulative incidence of [`cause`](Self::cause) at the times of `grid` of samples with these covariates `[n, p]`,
    /// `[n, n_times]`. O(n L) for L event times and cause.
    ///
    /// # Errors
    /// As [`CauseSpecific::incidence_curves`].
    pub fn incidence_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<IncidenceCurves, ClassicalError> {
        let n_causes = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        let unknown = MetricError::UnknownCause { cause: self.cause, n_causes };
        let found = (1..).zip(&self.causes).find(|(_, known)| **known == self.cause);
        let (number, _) = found.ok_or(unknown)?;
        self.fitted.incidence_curves(covariates, number, grid)
    }
}

/// With one kind of event, as the only cause: the curves are those of its Cox model.
impl SurvivalEstimator for CauseSpecificSettings {
    type Model = CauseSpecificCox;

    fn check(&self) -> Result<(), ClassicalError> {
        self.0.check()
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<CauseSpecificCox, ClassicalError> {
        self.fit_causes_until(covariates, &of_one_kind(outcomes)?, 1, None, stop)
    }
}

/// Curves are 1 - F, the probability of not having had the cause.
impl SurvivalModel for CauseSpecificCox {
    fn n_covariates(&self) -> usize {
        self.fitted.models().first().map_or(0, SurvivalModel::n_covariates)
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        Ok(self.incidence_curves(covariates, grid)?.without().clone())
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        let curves = self.incidence_curves(covariates, &[self.fitted.last_time()])?;
        Ok(curves.incidence().column(0).to_vec())
    }
}
