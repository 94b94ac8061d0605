//! How much the values of the chosen models vary between the folds of a cross-validation.

use super::strategies::ChosenOf;
use super::{LABELS, METRICS, Section, Study, score, sheet};
use crate::report::sheet::Cell;

/// The section; `None` without folds.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Section> {
    let folds = study.plan.study().folds;
    if folds < 2 {
        return None;
    }
    let base = &study.plan.study().strategies.base;
    let mut rows = Vec::new();
    for of_setting in chosen.chunks(LABELS.len()) {
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
    for (metric, label) in METRICS.iter().zip(LABELS) {
        columns.push(((*metric).to_owned(), label.to_owned()));
        columns.push((format!("{metric}-se"), "SE".to_owned()));
    }
    Some(Section {
        id: "folds",
        title: "Folds".to_owned(),
        question: format!("How much do the values vary between {folds} folds?"),
        verdict: vec![
            "All values of this page are means over the folds; a gap is that of the groups' means. The standard error is the \
             standard deviation of the folds divided by the square root of their number. The folds share training samples, so it \
             is too small by an unknown amount (Bengio and Grandvalet 2004)."
                .to_owned(),
        ],
        sheets: vec![sheet("folds", "Means and standard errors over the folds, test part.", &columns, rows, &[])],
        charts: Vec::new(),
    })
}
