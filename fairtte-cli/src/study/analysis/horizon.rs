//! Where a class is made from times: the AUC by which models are chosen and ranked beside that of all samples with weights for
//! censoring.

use fairtte_metrics::Direction;

use super::strategies::ChosenOf;
use super::{Section, Study, columns, score, sheet};
use crate::report::sheet::Cell;
use crate::study::choice::Chosen;
use crate::study::points::Values;

/// Place of the AUC among the metrics of a class.
const AUC: usize = 0;

/// Said below the tables of the chosen models.
pub(super) const NOTE: &str = "AUC, balanced accuracy and BCE are of the samples that have a class; the section \"AUC with weights for censoring\" has the AUC of all.";

/// The models that are chosen by AUC.
fn by_auc<'a>(chosen: &'a [ChosenOf<'a>]) -> impl Iterator<Item = &'a ChosenOf<'a>> {
    chosen.iter().filter(|of| of.metric == AUC)
}

/// Whether one of them has an AUC with weights.
pub(super) fn is_of_times(chosen: &[ChosenOf<'_>]) -> bool {
    by_auc(chosen).flat_map(ChosenOf::models).any(|model| model.weighted.overall.is_some())
}

/// Both AUCs of the models that are chosen by AUC; `None` unless the class is made from times.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Section> {
    if !is_of_times(chosen) {
        return None;
    }
    let base = &study.plan.study().strategies.base;
    let (mut rows, mut differences, mut n_settings, mut n_other) = (Vec::new(), Vec::new(), 0_usize, 0_usize);
    for of in by_auc(chosen) {
        let others = of.others.iter().filter_map(|(name, model)| Some((name, model.as_ref()?)));
        let models: Vec<(&String, &Chosen)> = of.base.iter().map(|model| (base, model)).chain(others).collect();
        for (strategy, model) in &models {
            let difference = difference(model);
            differences.extend(difference);
            rows.push(row(&study.name(of.setting), strategy, model, difference));
        }
        let best = |value: fn(&Chosen) -> Option<f64>| {
            let known = models.iter().filter_map(|(name, model)| Some((*name, value(model)?)));
            known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
        };
        if let (Some(naive), Some(weighted)) = (best(|model| model.test.overall), best(|model| model.weighted.overall))
        {
            n_settings += 1;
            n_other += usize::from(naive != weighted);
        }
    }
    let (low, high) = differences.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), difference| {
        (low.min(*difference), high.max(*difference))
    });
    let mut verdict = vec![
        "Models are chosen, compared and ranked by the AUC of the samples that have a class: a sample censored by the horizon is \
         left out of it. Beside it stands the AUC at the horizon of all test samples, with weights for censoring; models are not \
         chosen or ranked by it."
            .to_owned(),
    ];
    if !differences.is_empty() {
        verdict.push(format!(
            "Over {} chosen models the AUC of the class minus that with weights is between {low:+.3} and {high:+.3}. In {n_other} \
             of {n_settings} settings the strategy with the highest AUC with weights is not the one with the highest AUC without them.",
            differences.len()
        ));
    }
    let header = columns(&[
        "setting",
        "strategy",
        "AUC",
        "AUC with weights",
        "difference",
        "worst group",
        "worst group with weights",
        "gap",
        "gap with weights",
    ]);
    Some(Section {
        id: "horizon",
        title: "AUC with weights for censoring".to_owned(),
        question: "What does leaving out the samples that are censored by the horizon do to the AUC?".to_owned(),
        verdict,
        sheets: vec![sheet(
            "auc-with-weights",
            "AUC of the class, by which models are chosen, and AUC of all samples with weights for censoring; test part.",
            &header,
            rows,
            &["Difference: AUC minus AUC with weights."],
        )],
        charts: Vec::new(),
    })
}

fn difference(model: &Chosen) -> Option<f64> {
    Some(model.test.overall? - model.weighted.overall?)
}

fn row(setting: &str, strategy: &str, model: &Chosen, difference: Option<f64>) -> Vec<Cell> {
    let (naive, weighted) = (&model.test, &model.weighted);
    let worst = |values: &Values| values.worst(Direction::HigherIsBetter);
    let numbers = [naive.overall, weighted.overall, difference, worst(naive), worst(weighted), naive.gap, weighted.gap];
    let names = [setting, strategy].map(|name| Cell::Text(name.to_owned()));
    names.into_iter().chain(numbers.map(score)).collect()
}
