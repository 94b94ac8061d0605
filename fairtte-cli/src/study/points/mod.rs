//! The scores of finished trials as the analysis reads them: per place of the manifest, the kept epochs that serve the
//! attribute of its cell.

mod folds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairtte_metrics::Direction;
use fairtte_metrics::fairness::Comparison;

use super::halving::Ladder;
use super::measures::{AUC_WITH_WEIGHTS, Measures, N_MEASURES};
use super::plan::Plan;
use super::scores::{KeptScores, MetricScores, Scores};
use crate::CliError;
use crate::run_folder::read_json;

/// Values of a metric in a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub(crate) overall: Option<f64>,
    pub(crate) gap: Option<f64>,
    pub(crate) equity_scaling: Option<f64>,
    /// In the order of the levels of the setting.
    pub(crate) groups: Vec<Option<f64>>,
    /// Standard error of `overall` over the folds, if there are any.
    pub(crate) standard_error: Option<f64>,
}

impl Values {
    /// That of the group with the worst value; undefined if a group has none.
    pub(crate) fn worst(&self, direction: Direction) -> Option<f64> {
        let groups: Vec<f64> = self.groups.iter().copied().collect::<Option<_>>()?;
        Comparison::Worst.of(&groups, 0.0, direction)
    }
}

/// A kept epoch: validation and test part of every metric of [`Measures`]. With folds the means of the epochs that one rule kept
/// in every fold, and the epoch of the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) epoch: usize,
    /// The first rule that kept it, in every fold.
    pub(crate) rule: String,
    pub(crate) validation: [Values; N_MEASURES],
    pub(crate) test: [Values; N_MEASURES],
    /// The AUC of the test part with weights for censoring; without values unless the class is made from times.
    pub(crate) weighted: Values,
}

/// A finished trial at its place in the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrialPoints {
    pub(crate) place: usize,
    /// Place of the cell.
    pub(crate) cell: usize,
    /// Counted from 0.
    pub(crate) trial: usize,
    pub(crate) measures: Measures,
    pub(crate) points: Vec<Point>,
}

/// A data set with an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting {
    pub(crate) data: usize,
    pub(crate) attribute: String,
}

/// A group of a setting, with the smaller of its numbers of events in the validation and the test part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) n_validation: usize,
    pub(crate) events_validation: usize,
    pub(crate) n_test: usize,
    pub(crate) events_test: usize,
}

/// All finished trials of a study.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) measures: Measures,
    /// Those that a rule may choose.
    pub(crate) trials: Vec<TrialPoints>,
    /// Those that successive halving had stopped and that were trained to the end as an audit.
    pub(crate) audited: Vec<TrialPoints>,
    pub(crate) levels: BTreeMap<Setting, Vec<Level>>,
    /// What successive halving decided, if the study has it.
    pub(crate) ladder: Option<Ladder>,
}

impl Points {
    /// Reads the scores of all finished trials; of a trial with folds, the means over them, once all have finished.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if scores cannot be read, or two trials of a setting have other groups.
    pub(crate) fn read(plan: &Plan) -> Result<Self, CliError> {
        let ladder = Ladder::read(plan)?;
        let measures = plan.measures();
        let mut points = Self { measures, trials: Vec::new(), audited: Vec::new(), levels: BTreeMap::new(), ladder };
        for place in (0..plan.ids().len()).filter(|place| plan.is_first(*place)) {
            let paths: Vec<PathBuf> =
                plan.folds_of(place).map(|place| plan.folder().trial(&plan.ids()[place]).scores()).collect();
            if !paths.iter().all(|path| path.exists()) {
                continue;
            }
            let scores = paths.iter().map(|path| read_json(path)).collect::<Result<Vec<Scores>, _>>()?;
            let (cell, trial) = plan.place(place);
            let of = &plan.cells()[cell];
            let setting = Setting { data: of.data, attribute: of.attribute.clone() };
            let levels = all_levels(&scores, plan.study().folds, &of.attribute)
                .ok_or_else(|| other_groups(&paths[0], &of.attribute, "other trainings of this trial"))?;
            let known = points.levels.entry(setting).or_insert_with(|| levels.clone());
            if *known != levels {
                // A split per attribute is a split per setting, so trials of a setting share groups and parts.
                return Err(other_groups(&paths[0], &of.attribute, "other trials of this setting"));
            }
            let points_of = match &scores[..] {
                [one] => {
                    let of_rule = |kept| Some(point(measures, kept, &of.attribute, serving(kept, &of.attribute)?));
                    one.kept.iter().filter_map(of_rule).collect()
                }
                folds => folds::points(measures, folds, &of.attribute),
            };
            let found = TrialPoints { place, cell, trial, measures, points: points_of };
            match &points.ladder {
                Some(ladder) if ladder.is_audited(cell, trial) => points.audited.push(found),
                // It was finished for another cell.
                Some(ladder) if ladder.is_stopped(cell, trial) => {}
                _ => points.trials.push(found),
            }
        }
        Ok(points)
    }
}

fn other_groups(path: &Path, attribute: &str, than: &str) -> CliError {
    let problem = format!("its groups of {attribute} are not those of {than}; write its threshold as a number");
    CliError::RunFolder { path: path.to_owned(), problem }
}

fn point(measures: Measures, kept: &KeptScores, attribute: &str, rule: &str) -> Point {
    let of = |part: &str, metric: &str| {
        let part = kept.parts.iter().find(|known| known.part == part);
        let found = part.and_then(|part| part.metrics.iter().find(|found| found.metric == metric));
        found.map(|found| values(found, attribute)).unwrap_or_default()
    };
    let all = |part: &str| measures.names().map(|metric| of(part, metric));
    let weighted = of("test", AUC_WITH_WEIGHTS);
    let (epoch, rule) = (kept.epoch, rule.to_owned());
    Point { epoch, rule, validation: all("validation"), test: all("test"), weighted }
}

/// The groups of all folds together, each counted once and not with every seed; `None` if they differ.
fn all_levels(trainings: &[Scores], n_folds: usize, attribute: &str) -> Option<Vec<Level>> {
    let mut all = levels(&trainings[0], attribute);
    for (place, training) in trainings.iter().enumerate().skip(1) {
        let more = levels(training, attribute);
        if more.iter().map(|level| &level.name).ne(all.iter().map(|level| &level.name)) {
            return None;
        }
        if place >= n_folds {
            continue;
        }
        for (level, more) in all.iter_mut().zip(more) {
            level.n_validation += more.n_validation;
            level.events_validation += more.events_validation;
            level.n_test += more.n_test;
            level.events_test += more.events_test;
        }
    }
    Some(all)
}

/// The first rule for this attribute, or for all, that kept an epoch.
fn serving<'a>(kept: &'a KeptScores, attribute: &str) -> Option<&'a str> {
    kept.rules.iter().map(String::as_str).find(|rule| serves(rule, attribute))
}

/// Whether a rule is for this attribute, or for all.
fn serves(rule: &str, attribute: &str) -> bool {
    rule.split_once('@').is_none_or(|(_, of)| of == attribute)
}

fn levels(scores: &Scores, attribute: &str) -> Vec<Level> {
    let groups = |part: &str| {
        let kept = scores.kept.first();
        let part = kept.and_then(|kept| kept.parts.iter().find(|found| found.part == part));
        let of = part.and_then(|part| part.metrics.first()?.attributes.iter().find(|of| of.attribute == attribute));
        of.map(|of| of.groups.clone()).unwrap_or_default()
    };
    let (validation, test) = (groups("validation"), groups("test"));
    let level = |(a, b): (&super::scores::GroupScores, &super::scores::GroupScores)| Level {
        name: a.level.clone(),
        n_validation: a.n,
        events_validation: a.n_events,
        n_test: b.n,
        events_test: b.n_events,
    };
    validation.iter().zip(&test).map(level).collect()
}

fn values(metric: &MetricScores, attribute: &str) -> Values {
    let of = metric.attributes.iter().find(|of| of.attribute == attribute);
    Values {
        overall: metric.overall.value,
        gap: of.and_then(|of| of.gap.value),
        equity_scaling: of.and_then(|of| of.equity_scaling.value),
        groups: of.map(|of| of.groups.iter().map(|group| group.value.value).collect()).unwrap_or_default(),
        standard_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptScores, serving};

    #[test]
    fn an_epoch_serves_the_attributes_that_its_rules_name() {
        let first = |rules: &[&str]| {
            let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
            let kept = KeptScores { epoch: 1, weights: String::new(), rules, parts: Vec::new() };
            serving(&kept, "sex").map(str::to_owned)
        };
        assert_eq!(first(&["gap-c-td@age", "nll"]).as_deref(), Some("nll"), "a rule for all");
        assert_eq!(first(&["gap-c-td@sex", "nll"]).as_deref(), Some("gap-c-td@sex"));
        assert_eq!(first(&["gap-c-td@age", "worst-group-c-td@age"]), None);
    }
}
