//! Several models on the same samples: is one better, or fairer, than another by more than chance?
//!
//! Every model is evaluated with the same bootstrap draws, so the difference of two models has a paired interval: the
//! variation of draws that is common to both cancels. Source and definition of the interval and the p value:
//! `paired.rs`. The p values of one metric are also adjusted for each other (Holm): those over all samples, in every
//! group and of the gaps, of all pairs of models. Neither interval nor p value is given in a group with fewer events than
//! `min-events`. A gap is not differentiable where groups are equal: the intervals of a difference of two gaps, and of all else
//! that compares groups, come from simultaneous intervals of all groups (`simultaneous/difference_of_models.rs`).

use serde::{Deserialize, Serialize};

use crate::evaluation::evaluate::{ChosenTimes, Requested, each_metric};
use crate::evaluation::evaluated::{Evaluated, Input, Predictions};
use crate::evaluation::report::{Difference, MetricDescription};
use crate::evaluation::simultaneous::{OfModel, difference_of_models};
use crate::evaluation::summary::{difference, holm, judged, to_adjust};
use crate::evaluation::time_window::Covered;
use crate::fairness::{Comparison, EquityScaling};
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// The differences of every two models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelComparison {
    /// Names of the models, in the order given.
    pub models: Vec<String>,
    /// One entry per metric and pair of models, in this order.
    pub pairs: Vec<ModelPair>,
}

/// Two models in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelPair {
    /// Name of the first model.
    pub first: String,
    /// Name of the second model, whose values are subtracted.
    pub second: String,
    /// Stable name of the metric, as in [`MetricReport`](crate::evaluation::MetricReport).
    pub metric: String,
    /// Whether a higher value of the metric is better.
    pub higher_is_better: bool,
    /// Difference over all samples.
    pub overall: Difference,
    /// One entry per attribute.
    pub attributes: Vec<AttributeDifferences>,
}

impl ModelPair {
    /// The differences whose p values are adjusted together: over all samples, then by attribute in groups and of the gap.
    fn tested_mut(&mut self) -> impl Iterator<Item = &mut Difference> {
        std::iter::once(&mut self.overall).chain(self.attributes.iter_mut().flat_map(AttributeDifferences::tested_mut))
    }
}

/// Two models in the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttributeDifferences {
    /// Name of the attribute.
    pub attribute: String,
    /// Difference in every level, with its name.
    pub groups: Vec<(String, Difference)>,
    /// Gap of the first model minus gap of the second: below 0, the first is fairer.
    pub gap: Difference,
    /// Worst group's value of the first model minus that of the second, whichever groups these are; undefined of a metric
    /// with a target, whose worst values may lie on both sides of it.
    pub worst: Difference,
    /// Difference of the largest distances of a group from the overall value: below 0, the first is fairer.
    pub gap_to_overall: Difference,
    /// Difference of the ratios of smallest to largest value: above 0, the first is fairer.
    pub ratio: Difference,
    /// Difference of the smallest ratios to the overall value: above 0, the first is fairer.
    pub ratio_to_overall: Difference,
    /// Difference in equity scaling (`FairTTE`, E.3): above 0, the first is better in utility and equity together.
    pub equity_scaling: Difference,
    /// Difference in the form of `FairSeg`; see [`EquityScaling::FairSeg`] for metrics where lower is better.
    pub equity_scaling_fair_seg: Difference,
}

impl AttributeDifferences {
    fn tested_mut(&mut self) -> impl Iterator<Item = &mut Difference> {
        self.groups.iter_mut().map(|(_, difference)| difference).chain([&mut self.gap])
    }
}

/// Compares every two of `models` (name and curves) in the metrics of the settings, on the same samples and with the same
/// draws, evaluation times and horizon. The times are covered by the curves of all models, which may have different grids.
///
/// The arguments are those of [`evaluate`](crate::evaluate), which gives the report of a single model;
/// [`evaluate_models`](crate::evaluation::evaluate_models) gives the reports and the differences from one of the models.
/// For a metric of your own see [`compare_metric`](crate::evaluation::compare_metric).
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, Reading, SubjectId, SurvivalCurves, compare_models};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, true, true, false])?;
/// let good = SurvivalCurves::new(vec![1.0], array![[0.1], [0.2], [0.3], [0.4]])?;
/// let bad = SurvivalCurves::new(vec![1.0], array![[0.4], [0.3], [0.2], [0.1]])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let settings = EvaluationSettings { replicates: 50, reading: Reading::Step, ..EvaluationSettings::default() };
/// let models = [("good", &good), ("bad", &bad)];
/// let found = compare_models(&models, &subjects, &outcomes, &censoring, &[], &settings)?;
/// assert_eq!((found.pairs[0].metric.as_str(), found.pairs[0].overall.value), ("c_td_antolini_strict", Some(1.0)));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate); [`MetricError::InvalidSetting`] with fewer than two models;
/// [`MetricError::RepeatedModel`] if two have the same name.
pub fn compare_models(
    models: &[(&str, &SurvivalCurves)],
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<ModelComparison, MetricError> {
    let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
    check_names(&names)?;
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    models.iter().try_for_each(|(_, curves)| curves.check_rows(outcomes.n()))?;
    let (chosen, every_two) = (ChosenTimes::of_models(models, &input, censoring), every_two(models.len()));
    let predictions = predictions(models, censoring, &chosen);
    let compare = |metric: &Requested<'_>| compare_pairs(&names, &every_two, metric.evaluated, metric.place, settings);
    let pairs = each_metric(&input, &predictions, &chosen, false, compare)?;
    Ok(ModelComparison { models: owned(&names), pairs: pairs.into_iter().flatten().collect() })
}

impl ChosenTimes {
    /// The times at which the curves of all models are known.
    pub(crate) fn of_models(models: &[(&str, &SurvivalCurves)], input: &Input<'_>, censoring: &CensoringCurve) -> Self {
        let curves = models.iter().map(|(_, curves)| *curves);
        Self::of(input, censoring, Covered::by(curves, input.settings.reading))
    }
}

/// One entry per model, all with the same times.
pub(crate) fn predictions<'a>(
    models: &[(&str, &'a SurvivalCurves)],
    censoring: &'a CensoringCurve,
    chosen: &'a ChosenTimes,
) -> Vec<Predictions<'a>> {
    models.iter().map(|(_, curves)| Predictions { curves, censoring, times: chosen.times() }).collect()
}

pub(crate) fn every_two(n: usize) -> Vec<(usize, usize)> {
    (0..n).flat_map(|first| (first + 1..n).map(move |second| (first, second))).collect()
}

pub(crate) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Checks that there are at least two models and that their names are distinct.
pub(crate) fn check_names(names: &[&str]) -> Result<(), MetricError> {
    if names.len() < 2 {
        let (setting, value) = ("number of models to compare", names.len().to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "at least 2" });
    }
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return Err(MetricError::RepeatedModel { model: (*name).to_owned() });
        }
    }
    Ok(())
}

/// Every two models in the first metric of `evaluated`.
pub(crate) fn compare_evaluated(
    names: &[&str],
    evaluated: &[Evaluated<'_>],
    settings: &EvaluationSettings,
) -> ModelComparison {
    let pairs = compare_pairs(names, &every_two(names.len()), evaluated, 0, settings);
    ModelComparison { models: owned(names), pairs }
}

/// `pairs` (first and second place) of models in one metric of `evaluated`, with the p values that belong together
/// adjusted.
pub(crate) fn compare_pairs(
    names: &[&str],
    pairs: &[(usize, usize)],
    evaluated: &[Evaluated<'_>],
    metric: usize,
    settings: &EvaluationSettings,
) -> Vec<ModelPair> {
    let compare = |(first, second): &(usize, usize)| ModelPair {
        first: names[*first].to_owned(),
        second: names[*second].to_owned(),
        ..Pair { first: &evaluated[*first], second: &evaluated[*second], settings }.metric(metric)
    };
    let mut found: Vec<ModelPair> = pairs.iter().map(compare).collect();
    // Over all samples, in groups and of gaps; a single one stays as it is.
    holm(found.iter_mut().flat_map(ModelPair::tested_mut).filter_map(to_adjust));
    found
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    first: &'a Evaluated<'a>,
    second: &'a Evaluated<'a>,
    settings: &'a EvaluationSettings,
}

impl Pair<'_> {
    /// One metric of the pair; the names of the models are left empty.
    fn metric(&self, metric: usize) -> ModelPair {
        let MetricDescription { name, direction, .. } = self.first.metrics[metric];
        ModelPair {
            first: String::new(),
            second: String::new(),
            metric: name.to_owned(),
            higher_is_better: direction == Direction::HigherIsBetter,
            overall: difference(&self.first.overall(metric), &self.second.overall(metric), self.settings),
            attributes: (0..self.first.attributes.len()).map(|attribute| self.attribute(metric, attribute)).collect(),
        }
    }

    fn attribute(&self, metric: usize, attribute: usize) -> AttributeDifferences {
        let of_comparison = |comparison| self.comparison(metric, attribute, comparison);
        let groups = &self.first.attributes[attribute];
        let of_level = |level: usize| {
            let sampled = |model: &Evaluated<'_>| model.group(metric, attribute, level);
            let found = difference(&sampled(self.first), &sampled(self.second), self.settings);
            judged(found, self.first.counted, groups.groups[level].n_events, self.settings.min_events)
        };
        AttributeDifferences {
            attribute: groups.attribute.clone(),
            groups: groups.groups.iter().enumerate().map(|(k, group)| (group.level.clone(), of_level(k))).collect(),
            gap: of_comparison(Comparison::Gap),
            worst: of_comparison(Comparison::Worst),
            gap_to_overall: of_comparison(Comparison::GapToOverall),
            ratio: of_comparison(Comparison::Ratio),
            ratio_to_overall: of_comparison(Comparison::RatioToOverall),
            equity_scaling: of_comparison(Comparison::EquityScaling(EquityScaling::FairTte)),
            equity_scaling_fair_seg: of_comparison(Comparison::EquityScaling(EquityScaling::FairSeg)),
        }
    }

    /// The difference of what compares the groups; none if it is about different groups, or of worst values that may lie on
    /// both sides of a target.
    fn comparison(&self, metric: usize, attribute: usize, comparison: Comparison) -> Difference {
        let undefined = |reason: String| Difference { undefined: Some(reason), ..Difference::none() };
        let (min_events, models) = (self.settings.min_events, [self.first, self.second]);
        let of_models = models.map(|model| model.compared(metric, attribute, min_events).groups);
        for (own, other) in of_models[0].iter().zip(&of_models[1]) {
            if let (Ok(_), Err(reason)) | (Err(reason), Ok(_)) = (&own.value, &other.value) {
                return undefined(format!(
                    "group \"{}\" has a value of one of the two models only: {reason}",
                    own.level
                ));
            }
        }
        if let (Comparison::Worst, Some(target)) = (comparison, self.first.kinds[metric].target) {
            return undefined(format!(
                "the worst values are those farthest from {target}, above or below it: their difference says nothing"
            ));
        }
        let levels = || (0..of_models[0].len()).filter(|level| of_models[0][*level].value.is_ok());
        let [first, second] = models.map(|model| OfModel {
            compared: model.comparison(metric, attribute, comparison, min_events),
            groups: levels().map(|level| model.group(metric, attribute, level)).collect(),
            overall: model.overall(metric),
        });
        let direction = self.first.metrics[metric].direction;
        difference_of_models(comparison, direction, [&first, &second], self.settings)
    }
}
