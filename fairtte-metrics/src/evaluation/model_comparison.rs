//! Several models on the same samples: is one better, or fairer, than another by more than chance?
//!
//! Every model is evaluated with the same bootstrap draws, so the difference of two models has a paired interval:
//! what makes a draw easy or hard for both cancels. Source and definition of the interval and the p value:
//! `paired.rs`. The p values are not adjusted for the number of comparisons.

use serde::{Deserialize, Serialize};

use crate::evaluation::evaluate::METRICS;
use crate::evaluation::evaluated::{Evaluated, Input};
use crate::evaluation::report::Difference;
use crate::evaluation::summary::difference;
use crate::evaluation::time_window::choose_times;
use crate::{
    CensoringCurve, Comparison, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves,
};

/// The differences of every two models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelComparison {
    /// Names of the models, in the order given.
    pub models: Vec<String>,
    /// One entry per pair of models and metric.
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
    /// Stable name of the metric, as in [`MetricReport`](crate::MetricReport).
    pub metric: String,
    /// Whether a higher value of the metric is better.
    pub higher_is_better: bool,
    /// Difference over all samples.
    pub overall: Difference,
    /// One entry per attribute.
    pub attributes: Vec<AttributeDifferences>,
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
    /// Worst group's value of the first model minus that of the second, whichever groups these are.
    pub worst: Difference,
}

/// Compares every two of `models` (name and curves) on the same samples, with the same draws and evaluation times.
///
/// The arguments are those of [`evaluate`](crate::evaluate), which gives the report of a single model.
///
/// ```
/// use fairtte_metrics::{
///     CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, Reading, SubjectId, SurvivalCurves, compare_models,
/// };
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
    if models.len() < 2 {
        let (setting, value) = ("number of models to compare", models.len().to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "at least 2" });
    }
    for (place, (name, _)) in models.iter().enumerate() {
        if models[..place].iter().any(|(before, _)| before == name) {
            return Err(MetricError::RepeatedModel { model: (*name).to_owned() });
        }
    }
    let input = Input { subjects, outcomes, censoring, groups, settings };
    input.check()?;
    let window = choose_times(outcomes, censoring, settings);
    let times = window.as_ref().map(|window| window.times.as_slice()).map_err(MetricError::clone);
    let evaluated: Vec<Evaluated> =
        models.iter().map(|(_, curves)| Evaluated::new(&input, curves, &times)).collect::<Result<_, _>>()?;
    let pairs = (0..models.len()).flat_map(|first| (first + 1..models.len()).map(move |second| (first, second)));
    let compare = |(first, second): (usize, usize)| {
        let pair = Pair { first: &evaluated[first], second: &evaluated[second], settings };
        (0..METRICS.len()).map(move |metric| ModelPair {
            first: models[first].0.to_owned(),
            second: models[second].0.to_owned(),
            ..pair.metric(metric)
        })
    };
    Ok(ModelComparison {
        models: models.iter().map(|(name, _)| (*name).to_owned()).collect(),
        pairs: pairs.flat_map(compare).collect(),
    })
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    first: &'a Evaluated,
    second: &'a Evaluated,
    settings: &'a EvaluationSettings,
}

impl Pair<'_> {
    /// Without the names of the models.
    fn metric(&self, metric: usize) -> ModelPair {
        ModelPair {
            first: String::new(),
            second: String::new(),
            metric: METRICS[metric].name.to_owned(),
            higher_is_better: METRICS[metric].direction == Direction::HigherIsBetter,
            overall: difference(&self.first.overall(metric), &self.second.overall(metric), self.settings),
            attributes: (0..self.first.attributes.len()).map(|attribute| self.attribute(metric, attribute)).collect(),
        }
    }

    fn attribute(&self, metric: usize, attribute: usize) -> AttributeDifferences {
        let direction = METRICS[metric].direction;
        let of_comparison = |comparison| {
            let sampled = |model: &Evaluated| model.comparison(metric, attribute, comparison, direction);
            difference(&sampled(self.first), &sampled(self.second), self.settings)
        };
        let of_level = |level| {
            let sampled = |model: &Evaluated| model.group(metric, attribute, level);
            difference(&sampled(self.first), &sampled(self.second), self.settings)
        };
        let groups = &self.first.attributes[attribute];
        AttributeDifferences {
            attribute: groups.attribute.clone(),
            groups: groups.groups.iter().enumerate().map(|(k, group)| (group.level.clone(), of_level(k))).collect(),
            gap: of_comparison(Comparison::Gap),
            worst: of_comparison(Comparison::Worst),
        }
    }
}
