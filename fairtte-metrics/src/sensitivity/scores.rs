//! The metrics of the settings for one set of outcomes: values of the whole sample and of every group, without intervals.

use crate::evaluation::evaluate::{ChosenTimes, JOINT, METRICS};
use crate::evaluation::evaluated::Kind;
use crate::evaluation::metrics::{RequestedMetric, ScoredSample};
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::report::MetricDescription;
use crate::finite::finite;
use crate::rank::{TiedPredictions, concordance_td};
use crate::{CensoringCurve, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// The metrics of a report, in its order and with its names.
pub(super) struct Requests {
    names: Vec<String>,
    labels: Vec<String>,
    requested: Vec<RequestedAt>,
    times: Result<Vec<f64>, MetricError>,
}

/// By slice and metric.
pub(super) type Scores = Vec<Vec<Result<f64, MetricError>>>;

impl Requests {
    /// The metrics at evaluation times and a horizon before `end`.
    ///
    /// # Errors
    /// Those of [`EvaluationSettings::validate`] for metrics; [`MetricError::NotBeforeEnd`] for one at a later time.
    pub(super) fn new(settings: &EvaluationSettings, chosen: &ChosenTimes, end: f64) -> Result<Self, MetricError> {
        let asked = settings.requested_metrics()?;
        let at = |(_, requested): &(String, RequestedMetric)| {
            RequestedAt::new(requested, &chosen.horizon).within(chosen.known)
        };
        let requested: Vec<RequestedAt> = asked.iter().map(at).collect();
        let times = chosen.times().map(<[f64]>::to_vec);
        // A horizon of the settings is unknown where no outcome reaches it, after the end.
        let horizon = |at: &RequestedAt| at.shown_horizon().or(settings.horizon.filter(|_| at.metric.has_horizon()));
        let late = requested.iter().filter_map(horizon).find(|time| *time >= end);
        if let Some(time) = late {
            return Err(MetricError::NotBeforeEnd { time, end });
        }
        let known = |name: &str| JOINT.iter().position(|joint| *joint == name).map(|place| METRICS[place]);
        let names = asked.iter().map(|(name, _)| known(name).map_or(name.clone(), |known| known.name.to_owned()));
        let labels = asked
            .iter()
            .zip(&requested)
            .map(|((name, _), at)| known(name).map_or_else(|| at.label(), |known| known.label.to_owned()));
        Ok(Self { names: names.collect(), labels: labels.collect(), requested, times })
    }

    pub(super) fn n(&self) -> usize {
        self.requested.len()
    }

    pub(super) fn kinds(&self) -> Vec<Kind> {
        self.requested.iter().map(|requested| Kind::of(requested.metric)).collect()
    }

    pub(super) fn descriptions(&self) -> Vec<MetricDescription<'_>> {
        let of_place = |place: usize| {
            let metric = self.requested[place].metric;
            let (name, label) = (self.names[place].as_str(), self.labels[place].as_str());
            MetricDescription { name, label, convention: metric.convention(), direction: metric.direction() }
        };
        (0..self.n()).map(of_place).collect()
    }

    /// The metrics of all slices for these outcomes of the drawn samples.
    pub(super) fn scores(
        &self,
        view: &View,
        outcomes: &Outcomes,
        censoring: &CensoringCurve,
        settings: &EvaluationSettings,
    ) -> Scores {
        view.slices.iter().map(|slice| self.of_slice(slice, outcomes, censoring, settings)).collect()
    }

    fn of_slice(
        &self,
        slice: &SliceView,
        outcomes: &Outcomes,
        censoring: &CensoringCurve,
        settings: &EvaluationSettings,
    ) -> Vec<Result<f64, MetricError>> {
        if slice.places.is_empty() {
            return vec![Err(MetricError::NoSamples); self.n()];
        }
        let (outcomes, reading) = (outcomes.select(&slice.places), settings.reading);
        let subjects: Vec<&SubjectId> = slice.subjects.iter().collect();
        let ones = vec![1; slice.places.len()];
        let mut pairs = None;
        let mut of_metric = |requested: &RequestedAt| {
            let RequestedAt { metric, horizon, threshold, .. } = requested;
            let ties = match metric.name() {
                "c-td" => Some(TiedPredictions::Strict),
                "c-td-half" => Some(TiedPredictions::Half),
                _ => None,
            };
            if let Some(ties) = ties {
                // Both from one count of pairs.
                let count = || concordance_td(&outcomes, &slice.curves, reading, TiedPredictions::Strict);
                return pairs.get_or_insert_with(count).clone().map(|pairs| pairs.value_with(ties));
            }
            let sample = ScoredSample {
                outcomes: &outcomes,
                curves: &slice.curves,
                censoring,
                reading,
                risk: settings.risk,
                subjects: &subjects,
                competing: None,
                times: &self.times,
                horizon,
                threshold: *threshold,
            };
            finite("value of the metric", metric.prepare(&sample)?.value(&ones)?)
        };
        self.requested.iter().map(&mut of_metric).collect()
    }
}

/// The drawn samples, by slice: the whole draw, then every level of the attribute.
pub(super) struct View {
    slices: Vec<SliceView>,
}

struct SliceView {
    /// Places among the drawn samples.
    places: Vec<usize>,
    curves: SurvivalCurves,
    subjects: Vec<SubjectId>,
}

impl View {
    pub(super) fn new(
        drawn: &[usize],
        curves: &SurvivalCurves,
        subjects: &[SubjectId],
        groups: Option<&Groups>,
    ) -> Self {
        let slice = |places: Vec<usize>| {
            let rows: Vec<usize> = places.iter().map(|place| drawn[*place]).collect();
            let subjects = rows.iter().map(|row| subjects[*row].clone()).collect();
            SliceView { places, curves: curves.select(&rows), subjects }
        };
        let of_level = |groups: &Groups, level: usize| -> Vec<usize> {
            let is_in = |place: &usize| groups.membership()[drawn[*place]].is_some_and(|of| of.index() == level);
            (0..drawn.len()).filter(is_in).collect()
        };
        let mut slices = vec![slice((0..drawn.len()).collect())];
        if let Some(groups) = groups {
            slices.extend((0..groups.levels().len()).map(|level| slice(of_level(groups, level))));
        }
        Self { slices }
    }
}
