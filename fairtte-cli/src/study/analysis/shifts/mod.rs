//! Trainings on shifted data beside those on the data as they are, scored on the same unshifted test part.

mod charts;

use fairtte_data::shift::ShiftGroup;
use fairtte_metrics::Direction;
use fairtte_metrics::statistics::Alternative;

use self::charts::Compared;
use super::{Family, PairRow, Section, Study, by_trial, columns, equity, mean, of_trial, score, sheet};
use crate::CliError;
use crate::report::sheet::Cell;
use crate::study::cells::{Block, ShiftLevel};
use crate::study::points::{Setting, TrialPoints, Values};

/// What is compared: the metric, its gap, and the metric of the shifted group.
const OF: [&str; 3] = ["metric", "gap", "shifted group"];

/// The shifts; none without any.
pub(super) fn section(study: &Study<'_>) -> Result<Option<Section>, CliError> {
    let of_study = study.plan.study();
    let levels = levels(study);
    if levels.is_empty() {
        return Ok(None);
    }
    let names: Vec<&String> = std::iter::once(&of_study.strategies.base).chain(&of_study.strategies.names).collect();
    let (mut rows, mut pairs, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for setting in study.settings() {
        let group = shifted_group(study, setting);
        for shift in &levels {
            let mut of_shift: Vec<Vec<(f64, f64)>> = vec![Vec::new(); 9];
            for (strategy, name) in names.iter().enumerate() {
                let plain = by_trial(&study.trials(setting, |cell| {
                    study.is_plain(cell)
                        && cell.strategy == **name
                        && (cell.block == Block::Fair || cell.strategy == of_study.strategies.base)
                }));
                let shifted = by_trial(
                    // Cells of [[include]] may differ from the base in more than the shift.
                    &study.trials(setting, |cell| {
                        cell.block == Block::Shift && cell.shift.as_ref() == Some(*shift) && cell.strategy == **name
                    }),
                );
                for (metric, label) in study.labels().into_iter().enumerate() {
                    let mut values: [Vec<(f64, f64)>; 3] = Default::default();
                    for (trial, with) in &shifted {
                        let Some(without) = plain.get(trial) else { continue };
                        let Some((with, without)) = both(with, without, metric)? else { continue };
                        for (of, values) in values.iter_mut().enumerate() {
                            values.extend(pick(&without, of, group).zip(pick(&with, of, group)));
                        }
                    }
                    let mut row = [study.name(setting), (*name).clone(), shift.name.clone(), shift.level.to_string()]
                        .map(Cell::Text)
                        .to_vec();
                    row.extend([Cell::Text(label.to_owned()), Cell::Count(values[0].len())]);
                    for values in &values {
                        row.push(score(mean(values.iter().map(|pair| pair.0)).0));
                        row.push(score(mean(values.iter().map(|pair| pair.1)).0));
                    }
                    rows.push(row);
                    for (of, values) in values.iter().enumerate() {
                        of_shift[3 * of + metric].extend(values);
                    }
                    all.push(Compared { setting, strategy, shift, metric, pairs: values });
                }
            }
            pairs.extend(harm(study, setting, shift, &of_shift));
        }
    }
    let family = Family { rows: pairs, alternative: Alternative::Greater };
    let caption = "Does the shift harm? One pair per strategy and trial; a median difference above 0 is harm.";
    let tested = family.test("p-shift", caption, &["setting", "shift", "level", "of", "metric"])?;
    let mut header = columns(&["setting", "strategy", "shift", "level", "metric", "trials"]);
    for of in ["", "gap ", "group "] {
        header.extend(
            ["unshifted", "shifted"].map(|side| (format!("{of}{side}").replace(' ', "-"), format!("{of}{side}"))),
        );
    }
    let strategies: Vec<String> = names.into_iter().cloned().collect();
    let mut figures = charts::charts(study, &strategies, &levels, &all);
    for shift in of_study.shifts.keys() {
        figures.extend(equity::shifted(study, shift, &levels)?);
    }
    Ok(Some(Section {
        id: "shifts",
        title: "Shifts".to_owned(),
        question: "What does a shift of one group's training data do to the metric, to the gap, and to that group?"
            .to_owned(),
        verdict: std::iter::once(format!(
            "Harm is shown in {} of {} comparisons (one-sided p below 0.05 after Holm).",
            tested.shown.len(),
            tested.n_tests
        ))
        .chain(tested.too_few())
        .collect(),
        sheets: vec![
            sheet(
                "shifts",
                "Means over trials in the unshifted test part, trained on the data as they are and on shifted ones.",
                &header,
                rows,
                &[
                    "Group: the one whose training samples are shifted. Of every trial the kept epoch that is best in the validation part.",
                ],
            ),
            tested.sheet,
        ],
        charts: figures,
    }))
}

/// Pairs of every strategy and trial, by what is compared and metric. The first of a pair is the worse one if the shift harms.
fn harm(study: &Study<'_>, setting: &Setting, shift: &ShiftLevel, of_shift: &[Vec<(f64, f64)>]) -> Vec<PairRow> {
    let mut found = Vec::new();
    for (of, what) in OF.into_iter().enumerate() {
        for (metric, label) in study.labels().into_iter().enumerate() {
            let lower_is_better = of == 1 || study.measures().direction(metric) == Direction::LowerIsBetter;
            let turned =
                |(without, with): &(f64, f64)| if lower_is_better { (*with, *without) } else { (*without, *with) };
            let names = [study.name(setting), shift.name.clone(), shift.level.to_string(), what.to_owned()];
            let names = names.into_iter().chain([label.to_owned()]).collect();
            let family = format!("{} {} {what}", shift.name, shift.level);
            found.push(PairRow { names, family, pairs: of_shift[3 * of + metric].iter().map(turned).collect() });
        }
    }
    found
}

/// All levels of all shifts, in the order of the cells.
fn levels<'a>(study: &Study<'a>) -> Vec<&'a ShiftLevel> {
    let mut levels: Vec<&ShiftLevel> = Vec::new();
    for shift in study.plan.cells().iter().filter_map(|cell| cell.shift.as_ref()) {
        if !levels.contains(&shift) {
            levels.push(shift);
        }
    }
    levels
}

/// The values of two trainings in the test part, if both have any.
fn both(with: &TrialPoints, without: &TrialPoints, metric: usize) -> Result<Option<(Values, Values)>, CliError> {
    Ok(of_trial(with, metric)?.zip(of_trial(without, metric)?))
}

fn pick(values: &Values, of: usize, group: Option<usize>) -> Option<f64> {
    match of {
        0 => values.overall,
        1 => values.gap,
        _ => values.groups.get(group?).copied().flatten(),
    }
}

/// The place of the shifted group among the levels of the setting.
fn shifted_group(study: &Study<'_>, setting: &Setting) -> Option<usize> {
    let levels = &study.points.levels[setting];
    match study.plan.study().shift_group.get(&setting.attribute)? {
        ShiftGroup::Index(index) => (*index < levels.len()).then_some(*index),
        ShiftGroup::Level(name) => levels.iter().position(|level| level.name.eq_ignore_ascii_case(name)),
    }
}
