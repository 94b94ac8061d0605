//! The terms of Theorem 1 of the paper for the models of every setting.

use std::collections::BTreeSet;

use fairtte_metrics::bias::{GapBound, PairBound};

use super::intervals::Model;
use super::{Section, Study, sheet};
use crate::CliError;
use crate::report::sheet::Cell;
use crate::report::{number, p_relation};
use crate::study::cells::Block;
use crate::study::choice::best;
use crate::study::points::{Setting, TrialPoints};

/// The strategy whose networks, one per group, stand for the true curves.
const OF_EVERY_GROUP: &str = "controlled-attribute";

/// The trainings of a setting that enter the bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Members {
    /// The best epoch of every training by C^td in the validation part, without shift, with the start and the backbone of the run
    /// file.
    pub(crate) models: Vec<Model>,
    /// The best base model, one of them.
    pub(crate) base: Model,
    /// The best training with one network per group, and the next, from another draw and seed.
    pub(crate) fitted: Vec<Model>,
}

/// The terms of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    /// Names of the groups.
    pub(crate) levels: Vec<String>,
    pub(crate) terms: GapBound,
    /// Place of the base model among the models.
    pub(crate) base: usize,
    /// Trainings that were left out because they predict by the group.
    pub(crate) n_by_group: usize,
    /// Mean distance of a second fit from the first in every group; not a number in a group without samples.
    pub(crate) floor: Option<Vec<f64>>,
}

impl Study<'_> {
    /// The trainings of a setting that enter the bound.
    ///
    /// # Errors
    /// The sentence why there is none; [`CliError`] if a value is not finite.
    pub(crate) fn members(&self, setting: &Setting) -> Result<Result<Members, String>, CliError> {
        let study = self.plan.study();
        let plain = |strategy: Option<&str>| {
            self.trials(setting, |cell| {
                cell.shift.is_none()
                    && cell.backbone.is_none()
                    && cell.start == study.base_start()
                    && matches!(cell.block, Block::Base | Block::Fair)
                    && strategy.is_none_or(|name| cell.strategy == name && cell.head == study.base_head())
            })
        };
        let of = |trials: &[&TrialPoints]| -> Result<Option<Model>, CliError> {
            Ok(best(trials, 0)?.as_ref().map(Model::from))
        };
        let mut fitted = Vec::new();
        let mut left = plain(Some(OF_EVERY_GROUP));
        while let (true, Some(model)) = (fitted.len() < 2, of(&left)?) {
            left.retain(|trial| trial.place != model.place);
            fitted.push(model);
        }
        if fitted.is_empty() {
            return Ok(Err(format!(
                "no training of {OF_EVERY_GROUP} has finished, whose networks stand for the truth"
            )));
        }
        let base = of(&plain(Some(&study.strategies.base)))?;
        let Some(base) = base else { return Ok(Err(format!("no training of {} has finished", study.strategies.base))) };
        // Several places may have the same training.
        let (mut seen, mut models) = (BTreeSet::new(), Vec::new());
        for trial in plain(None) {
            if seen.insert(&self.plan.ids()[trial.place])
                && let Some(model) = of(&[trial])?
            {
                models.push(model);
            }
        }
        if !models.contains(&base) {
            models.push(base);
        }
        Ok(Ok(Members { models, base, fitted }))
    }
}

/// The section; none if the study file does not ask for it.
pub(super) fn section(study: &Study<'_>) -> Option<Section> {
    if study.causes.bounds.is_empty() {
        return None;
    }
    let base = &study.plan.study().strategies.base;
    let (mut rows, mut verdict) = (Vec::new(), Vec::new());
    for (setting, found) in &study.causes.bounds {
        let name = study.name(setting);
        let bound = match found {
            Ok(bound) => bound,
            Err(reason) => {
                verdict.push(format!("{name}: not computed: {}.", reason.trim_end_matches('.')));
                continue;
            }
        };
        for pair in &bound.terms.pairs {
            let (a, b) = pair.groups;
            let between = format!("{} and {}", bound.levels[a.index()], bound.levels[b.index()]);
            let floor = bound.floor.as_ref().map(|of| of[a.index()] + of[b.index()]);
            verdict.push(sentence(&format!("{name}, {between}"), base, pair, (bound.base, floor)));
            let mut row = vec![Cell::Text(name.clone()), Cell::Text(between), Cell::Count(bound.terms.n_models)];
            row.push(Cell::Statistic(pair.gaps[bound.base]));
            row.push(Cell::Statistic(pair.eta));
            row.extend(ends(pair.eta_interval));
            row.push(Cell::or_missing(floor, Cell::Statistic));
            row.push(Cell::Statistic(pair.disparity));
            row.extend(ends(pair.disparity_interval));
            row.push(Cell::or_missing(pair.by_chance.map(|test| test.null_mean), Cell::Statistic));
            row.push(Cell::or_missing(pair.by_chance.map(|test| test.p_value), Cell::P));
            row.push(Cell::Statistic(pair.bound()));
            rows.push(row);
        }
    }
    let by_group: usize = study.causes.bounds.values().flatten().map(|bound| bound.n_by_group).sum();
    let mut notes = vec![
        "With fitted curves in the place of the true ones: those of the network that controlled-attribute trains on a group alone. Errors \
         are mean absolute differences of survival curves over time and test samples.",
        "eta: the smallest error of one model in both groups. Refit: the error of a second fit of those networks, of another draw and \
         seed: the noise in eta. D: \
         the largest difference between groups in how far two models are apart; by chance: its mean over permutations of the groups.",
    ];
    if by_group > 0 {
        notes.push(
            "Trainings that predict by the group of a sample are left out: the theorem is about models that do not.",
        );
    }
    let header = [
        ("setting", "setting"),
        ("groups", "groups"),
        ("models", "models"),
        ("gap-of-base", "gap of base"),
        ("eta", "eta"),
        ("eta-lower", "lower"),
        ("eta-upper", "upper"),
        ("refit", "refit"),
        ("d", "D"),
        ("d-lower", "lower"),
        ("d-upper", "upper"),
        ("d-by-chance", "D by chance"),
        ("p", "p"),
        ("bound", "eta + D"),
    ];
    let header = header.map(|(key, title)| (key.to_owned(), title.to_owned()));
    Some(Section {
        id: "bound",
        title: "Where the gap can come from".to_owned(),
        question: "Do the groups look different to the models, or does the outcome of equal images differ?".to_owned(),
        verdict,
        sheets: vec![sheet(
            "bound",
            "Terms of Theorem 1 of the paper: a gap in error is at most eta + D. 95 % intervals over subjects of the test part.",
            &header,
            rows,
            &notes,
        )],
        charts: Vec::new(),
    })
}

fn ends(interval: Option<(f64, f64)>) -> [Cell; 2] {
    let end = |value: Option<f64>| Cell::or_missing(value, Cell::Statistic);
    [end(interval.map(|interval| interval.0)), end(interval.map(|interval| interval.1))]
}

/// The bound, and what its terms mean as far as they are more than chance.
fn sentence(which: &str, base: &str, pair: &PairBound, (model, floor): (usize, Option<f64>)) -> String {
    let PairBound { eta, disparity, .. } = pair;
    let gap = pair.gaps[model];
    let looks = "two models are further apart in one group than in the other, so the groups look different to the models, and a \
                 strategy that changes representations can act";
    let outcome = "no model is near the networks of both groups, so the outcome of an image differs between groups or is hard to \
                   predict, and a strategy that changes representations cannot help there";
    let by_chance = pair.by_chance.filter(|test| test.p_value >= LEVEL);
    let no_larger = floor.filter(|floor| floor >= eta);
    let chance = by_chance.map(|test| format!("D is not larger than by chance (p {})", p_relation(test.p_value)));
    let noise = no_larger.map(|floor| {
        format!(
            "eta is not larger than the error of a second fit ({}), so it is no evidence about outcomes",
            number(floor)
        )
    });
    let what = match (chance, noise) {
        (None, None) if disparity > eta => format!("D is the larger term: {looks}"),
        (None, None) => format!("eta is the larger term: {outcome}"),
        (None, Some(noise)) => format!("D is more than chance: {looks}; {noise}"),
        (Some(chance), None) => format!("{chance}; eta: {outcome}"),
        (Some(chance), Some(noise)) => format!("{chance}; {noise}"),
    };
    format!(
        "{which}: the gap in error of {base} is {}, at most eta + D = {} + {}. {what}.",
        number(gap),
        number(*eta),
        number(*disparity)
    )
}

/// The level at which D is called more than chance.
const LEVEL: f64 = 0.05;

#[cfg(test)]
mod tests {
    use fairtte_metrics::GroupId;
    use fairtte_metrics::bias::PermutationTest;

    use super::*;

    #[test]
    fn the_larger_term_is_named_and_chance_is_said() {
        let pair = |eta: f64, disparity: f64, p_value: f64| PairBound {
            groups: (GroupId(0), GroupId(1)),
            n: (5, 6),
            gaps: vec![0.5, 0.0124],
            eta,
            best: 0,
            eta_interval: None,
            disparity,
            most_different: (0, 1),
            disparity_interval: None,
            by_chance: Some(PermutationTest { p_value, null_mean: 0.1, n_permutations: 99, n_undefined: 0 }),
        };
        let of = |pair: &PairBound, floor: f64| sentence("films sex, F and M", "erm", pair, (1, Some(floor)));
        let first = of(&pair(0.05, 0.12, 0.01), 0.01);
        let expected =
            "films sex, F and M: the gap in error of erm is 0.012, at most eta + D = 0.050 + 0.120. D is the larger";
        assert!(first.starts_with(expected) && !first.contains("chance") && !first.contains("second fit"), "{first}");
        assert!(of(&pair(0.13, 0.12, 0.01), 0.01).contains("eta is the larger term: no model"));
        let unclear = of(&pair(0.05, 0.12, 0.01), 0.06);
        assert!(
            unclear.contains("D is more than chance: two models") && unclear.contains("second fit (0.060)"),
            "{unclear}"
        );
        let by_chance = of(&pair(0.05, 0.02, 0.3), 0.01);
        assert!(by_chance.contains("by chance (p = 0.300); eta: no model is near"), "{by_chance}");
        let neither = of(&pair(0.05, 0.2, 0.3), 0.06);
        assert!(neither.contains("by chance (p = 0.300); eta is not larger") && !neither.contains("act"), "{neither}");
    }
}
