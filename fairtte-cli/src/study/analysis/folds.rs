//! How much the values of the chosen models vary between the folds of a cross-validation, or between training seeds.

use super::strategies::ChosenOf;
use super::{N_MEASURES, Section, Study, score, sheet};
use crate::report::sheet::Cell;

/// The section; `None` with one training per trial.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Section> {
    let (folds, repeats) = (study.plan.study().folds, study.plan.study().repeats);
    let (title, between, over) = match (folds > 1, repeats > 1) {
        (false, false) => return None,
        (true, false) => ("Folds", format!("{folds} folds"), "folds"),
        (false, true) => ("Training seeds", format!("{repeats} training seeds"), "training seeds"),
        (true, true) => {
            ("Folds and training seeds", format!("{folds} folds with {repeats} training seeds each"), "trainings")
        }
    };
    let share = if folds > 1 {
        "The folds share training samples, so it is too small by an unknown amount (Bengio and Grandvalet 2004)."
    } else {
        "It is that of the training alone: all trainings share their samples."
    };
    let base = &study.plan.study().strategies.base;
    let mut rows = Vec::new();
    for of_setting in chosen.chunks(N_MEASURES) {
        let name = study.name(of_setting[0].setting);
        let mut strategies = vec![base];
        strategies.extend(of_setting[0].others.iter().map(|(strategy, _)| strategy));
        for (row, strategy) in strategies.into_iter().enumerate() {
            let mut line = vec![Cell::Text(name.clone()), Cell::Text(strategy.clone())];
            for of in of_setting {
                let model = if row == 0 { of.base.as_ref() } else { of.others[row - 1].1.as_ref() };
                line.push(score(model.and_then(|model| model.test.overall)));
                line.push(score(model.and_then(|model| model.test.standard_error)));
            }
            rows.push(line);
        }
    }
    let mut columns =
        vec![("setting".to_owned(), "setting".to_owned()), ("strategy".to_owned(), "strategy".to_owned())];
    for (metric, label) in study.measures().names().into_iter().zip(study.labels()) {
        columns.push((metric.to_owned(), label.to_owned()));
        columns.push((format!("{metric}-se"), "SE".to_owned()));
    }
    Some(Section {
        id: "folds",
        title: title.to_owned(),
        question: format!("How much do the values vary between {between}?"),
        verdict: vec![format!(
            "All values of this page are means over the {over}; a gap is that of the groups' means. The standard error is the \
             standard deviation of the {over} divided by the square root of their number. {share}"
        )],
        sheets: vec![sheet(
            "folds",
            &format!("Means and standard errors over the {over}, test part."),
            &columns,
            rows,
            &[],
        )],
        charts: Vec::new(),
    })
}
