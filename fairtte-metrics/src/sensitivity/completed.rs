//! The metrics of completed data, for every draw and delta.

use crate::evaluation::evaluated::Input;
use crate::resampling::Bootstrap;
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::seeds::stream;
use crate::sensitivity::SensitivitySettings;
use crate::sensitivity::impute::{Models, Sample, Strata, exponentials};
use crate::sensitivity::scores::{Requests, Scores, View};
use crate::{CensoringCurve, CensoringTies, Groups, MetricError, Outcomes, SubjectId, parallel};

/// Imputations of every bootstrap draw (von Hippel & Bartlett 2021 show that 2 are the most efficient choice).
pub(super) const WITHIN: usize = 2;

/// Draws that may take the place of one whose imputation model does not exist.
pub(super) const MOST_REDRAWS: usize = 20;

/// Everything that stays the same over draws and deltas.
pub(super) struct Analysis<'a> {
    pub(super) input: &'a Input<'a>,
    /// The draws of the evaluation, whatever its strata.
    pub(super) bootstrap: &'a Bootstrap,
    pub(super) settings: &'a SensitivitySettings,
    pub(super) sample: &'a Sample<'a>,
    pub(super) strata: &'a Strata,
    pub(super) requests: &'a Requests,
    pub(super) groups: Option<&'a Groups>,
}

/// The metrics of completed data.
pub(super) struct CompletedScores {
    /// By delta and imputation of the sample itself.
    pub(super) imputations: Vec<Vec<Scores>>,
    /// By delta, bootstrap draw and imputation of the draw.
    pub(super) draws: Vec<Vec<[Scores; WITHIN]>>,
    /// Draws without an imputation model that others took the place of, of all imputations of the sample itself.
    pub(super) n_redrawn: usize,
}

impl Analysis<'_> {
    /// Every metric of every imputation and draw, in parallel over them; the result does not depend on the number of threads.
    ///
    /// # Errors
    /// Those of the imputation model, if neither the draw of an imputation of the sample itself nor those that may take its place
    /// have one. A draw of an interval without a model has no values.
    pub(super) fn completed(&self) -> Result<CompletedScores, MetricError> {
        let SensitivitySettings { imputations, replicates, .. } = *self.settings;
        let Input { subjects, settings, outcomes, .. } = *self.input;
        let uncensored = uncensored(self.sample.end)?;
        let all: Vec<usize> = (0..outcomes.n()).collect();
        let view = View::new(&all, self.sample.curves, subjects, self.groups);
        let imputation = |k: usize| {
            // Beyond the draws of any intervals. In a small sample a draw may order the events as predicted, without exception, or
            // have nobody of a group.
            let fit = |again: usize| {
                let drawn = drawn_rows(self.bootstrap, MAX_REPLICATES + k + again * imputations);
                self.strata.fit_for_all(self.sample, &drawn)
            };
            let (mut models, mut n_redrawn) = (fit(0), 0);
            while n_redrawn < MOST_REDRAWS && matches!(models, Err(MetricError::ImputationModel { .. })) {
                n_redrawn += 1;
                models = fit(n_redrawn);
            }
            let mut rng = stream(settings.seed, "sensitivity/imputations", &[k as u64]);
            let exponentials = exponentials(&mut rng, all.len());
            let found = self.at_every_delta(&models?, &all, &view, (&uncensored, &exponentials))?;
            Ok((found, n_redrawn))
        };
        let by_imputation: Vec<(Vec<Scores>, usize)> = parallel::try_map(0..imputations, imputation)?;
        let draw = |b: usize| -> [Vec<Scores>; WITHIN] {
            let drawn = drawn_rows(self.bootstrap, b);
            let models = match self.strata.fit(self.sample, &drawn) {
                Ok(models) => models,
                Err(error) => return std::array::from_fn(|_| self.undefined(&error)),
            };
            let view = View::new(&drawn, self.sample.curves, subjects, self.groups);
            std::array::from_fn(|k| {
                let mut rng = stream(settings.seed, "sensitivity/draws", &[b as u64, k as u64]);
                let exponentials = exponentials(&mut rng, drawn.len());
                let found = self.at_every_delta(&models, &drawn, &view, (&uncensored, &exponentials));
                found.unwrap_or_else(|error| self.undefined(&error))
            })
        };
        let by_draw = parallel::map(0..replicates, draw);
        let deltas = 0..self.settings.deltas.len();
        let of_delta = |delta: usize| by_imputation.iter().map(|(found, _)| found[delta].clone()).collect();
        let of_draws = |delta: usize| {
            by_draw
                .iter()
                .map(|found| std::array::from_fn(|k| found[k][delta].clone()))
                .collect::<Vec<[Scores; WITHIN]>>()
        };
        Ok(CompletedScores {
            imputations: deltas.clone().map(of_delta).collect(),
            draws: deltas.map(of_draws).collect(),
            n_redrawn: by_imputation.iter().map(|(_, n_redrawn)| n_redrawn).sum(),
        })
    }

    /// The metrics of `drawn`, completed by `models`.
    fn at_every_delta(
        &self,
        models: &Models,
        drawn: &[usize],
        view: &View,
        (uncensored, exponentials): (&CensoringCurve, &[f64]),
    ) -> Result<Vec<Scores>, MetricError> {
        let at = |delta: &f64| {
            let outcomes = self.strata.complete(self.sample, models, drawn, *delta, exponentials)?;
            Ok(self.requests.scores(view, &outcomes, uncensored, self.input.settings))
        };
        self.settings.deltas.iter().map(at).collect()
    }

    fn undefined(&self, error: &MetricError) -> Vec<Scores> {
        let n_slices = 1 + self.groups.map_or(0, |groups| groups.levels().len());
        vec![vec![vec![Err(error.clone()); self.requests.n()]; n_slices]; self.settings.deltas.len()]
    }

    /// The metrics of the observed outcomes up to the end, with the censoring weights of the report.
    pub(super) fn observed(&self, censoring: &CensoringCurve, subjects: &[SubjectId]) -> Scores {
        let all: Vec<usize> = (0..self.sample.outcomes.n()).collect();
        let view = View::new(&all, self.sample.curves, subjects, self.groups);
        self.requests.scores(&view, self.sample.outcomes, censoring, self.input.settings)
    }
}

/// The rows of a bootstrap draw, each as often as it was drawn.
pub(super) fn drawn_rows(bootstrap: &Bootstrap, replicate: usize) -> Vec<usize> {
    let weights = bootstrap.weights(replicate);
    weights.iter().enumerate().flat_map(|(row, weight)| std::iter::repeat_n(row, *weight as usize)).collect()
}

/// The censoring curve of completed data before `end`: 1.
fn uncensored(end: f64) -> Result<CensoringCurve, MetricError> {
    CensoringCurve::fit(&Outcomes::new(vec![end], vec![true])?, CensoringTies::EventsFirst)
}
