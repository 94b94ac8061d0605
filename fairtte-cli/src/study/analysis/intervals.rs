//! Intervals of the chosen models over the subjects of the test part.

use std::collections::BTreeMap;

use fairtte_metrics::evaluation::{SampledMetric, SampledMetrics, SampledValue};
use fairtte_metrics::resampling::{IntervalMethod, Replicated};

use super::strategies::ChosenOf;
use super::{N_MEASURES, Section, Study, columns, score, sheet};
use crate::report::sheet::Cell;
use crate::selection::change;
use crate::study::choice::Chosen;

/// Stable names of the metrics in an evaluation: of one kind of event, of one of several causes, and of a class.
const STABLE: [[&str; N_MEASURES]; 3] = [
    ["c_td_antolini_strict", "auc_td", "ibs"],
    ["cause-c-td", "cause-auc-td", "cause-ibs"],
    ["auc", "balanced-accuracy", "bce"],
];

/// A metric of a model.
fn stable(sampled: &SampledMetrics, metric: usize) -> Option<&SampledMetric> {
    STABLE.iter().find_map(|names| sampled.metric(names[metric]))
}

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// A trained model: the place of its trial in the manifest, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Model {
    pub(crate) place: usize,
    pub(crate) epoch: usize,
}

impl From<&Chosen> for Model {
    fn from(chosen: &Chosen) -> Self {
        Self { place: chosen.place, epoch: chosen.epoch }
    }
}

/// Replicates of chosen models.
pub(crate) type Samples = BTreeMap<Model, SampledMetrics>;

impl Study<'_> {
    /// The percentile interval of a metric of a model in a group.
    pub(super) fn interval(&self, chosen: &Chosen, metric: usize, attribute: &str, group: usize) -> Option<(f64, f64)> {
        let sampled = self.samples.get(&chosen.into())?;
        let group = stable(sampled, metric)?.attribute(attribute)?.groups.get(group)?;
        interval(&group.value)
    }
}

fn interval(sampled: &SampledValue) -> Option<(f64, f64)> {
    let value = *sampled.value.as_ref().ok()?;
    let replicated = Replicated::new(value, &sampled.replicates);
    let found = replicated.interval(LEVEL, IntervalMethod::Percentile).ok()?;
    Some((found.lower, found.upper))
}

/// The changes of the chosen strategies from the base chosen as they are; none without replicates.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Section> {
    if study.samples.is_empty() {
        return None;
    }
    let (mut rows, mut n, mut n_excluding) = (Vec::new(), 0, 0);
    for of in chosen {
        let Some(control) = &of.control else { continue };
        let Some(from) = study.samples.get(&control.into()) else { continue };
        let contrast = contrast(control);
        for (strategy, model) in &of.others {
            let Some(model) = model else { continue };
            let Some(own) = study.samples.get(&model.into()) else { continue };
            let of_metric = stable(own, of.metric).zip(stable(from, of.metric));
            let of_metric = of_metric.map(|(own, from)| change(&own.overall, &from.overall, LEVEL, false));
            let difference = |sampled: &SampledMetrics| -> Option<SampledValue> {
                let groups = &stable(sampled, of.metric)?.attribute(&of.setting.attribute)?.groups;
                let (a, b) = contrast?;
                Some(groups.get(a)?.value.minus(&groups.get(b)?.value))
            };
            let of_groups = difference(own).zip(difference(from)).map(|(own, from)| change(&own, &from, LEVEL, false));
            let names = [study.name(of.setting), study.labels()[of.metric].to_owned(), strategy.clone()];
            let mut row: Vec<Cell> = names.into_iter().map(Cell::Text).collect();
            for change in [of_metric.as_ref(), of_groups.as_ref()] {
                let interval = change.and_then(|change| Some((change.lower?, change.upper?)));
                row.push(score(change.and_then(|change| change.value)));
                row.push(score(interval.map(|interval| interval.0)));
                row.push(score(interval.map(|interval| interval.1)));
                n += usize::from(interval.is_some());
                n_excluding += usize::from(interval.is_some_and(|(a, b)| a > 0.0 || b < 0.0));
            }
            row.push(contrast.map_or(Cell::Missing, |(a, b)| {
                let levels = &study.points.levels[of.setting];
                Cell::Text(format!("{} - {}", levels[a].name, levels[b].name))
            }));
            rows.push(row);
        }
    }
    let base = &study.plan.study().strategies.base;
    let header = columns(&[
        "setting",
        "metric",
        "strategy",
        "change",
        "lower",
        "upper",
        "change of difference",
        "its lower",
        "its upper",
        "difference",
    ]);
    let by_chance = (1.0 - LEVEL) * n as f64;
    Some(Section {
        id: "intervals",
        title: "Intervals".to_owned(),
        question: format!(
            "How far do the changes from {base}, chosen by the same rule, vary with other test subjects?"
        ),
        verdict: vec![format!(
            "{n_excluding} of {n} intervals exclude 0; of equal models about {by_chance:.1} would. The choice among trials is not \
             repeated in the replicates, so the intervals are too short for a claim about a strategy: they are about these two models."
        )],
        sheets: vec![sheet(
            "intervals",
            "Changes of the chosen models in the test part, with 95 % intervals over its subjects (paired bootstrap).",
            &header,
            rows,
            &[
                "The difference is the signed one of the two groups that differ most for the base in the validation part: a gap has no valid bootstrap interval where groups are equal.",
            ],
        )],
        charts: Vec::new(),
    })
}

/// The groups with the largest and the smallest value in the validation part.
fn contrast(base: &Chosen) -> Option<(usize, usize)> {
    let defined = || base.validation.groups.iter().enumerate().filter_map(|(group, value)| Some((group, (*value)?)));
    let largest = defined().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let smallest = defined().min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    (largest != smallest).then_some((largest, smallest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::points::Values;

    #[test]
    fn the_contrast_is_largest_minus_smallest_in_the_validation_part() {
        let with = |groups: &[Option<f64>]| Chosen {
            place: 0,
            trial: 0,
            epoch: 1,
            rule: String::new(),
            validation: Values { groups: groups.to_vec(), ..Values::default() },
            test: Values::default(),
            weighted: Values::default(),
            n_models: 1,
            n_trials: 1,
        };
        assert_eq!(contrast(&with(&[Some(0.5), None, Some(0.9), Some(0.2)])), Some((2, 3)));
        assert_eq!(contrast(&with(&[Some(0.5), None])), None, "one group");
        assert_eq!(contrast(&with(&[])), None);
    }

    #[test]
    fn an_interval_is_of_the_replicates() {
        let replicates: Vec<Option<f64>> = (0..=100).map(|i| Some(f64::from(i) / 100.0)).collect();
        let found = interval(&SampledValue { value: Ok(0.5), replicates });
        assert!(found.is_some_and(|(a, b)| (a - 0.025).abs() < 1e-9 && (b - 0.975).abs() < 1e-9), "{found:?}");
        assert_eq!(interval(&SampledValue { value: Ok(0.5), replicates: Vec::new() }), None);
    }
}
