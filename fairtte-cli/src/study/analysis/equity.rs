//! Equity scaling of the chosen models over the settings, as it is and where training data are shifted.

use super::charts::RowCharts;
use super::strategies::ChosenOf;
use super::{N_MEASURES, Study};
use crate::CliError;
use crate::args::Rule;
use crate::plural::counted;
use crate::report::Chart;
use crate::study::cells::{Block, ShiftLevel};
use crate::study::choice::{best, by_rule};

/// One figure per metric: a row per strategy, a mark per setting.
pub(super) fn charts(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Vec<Chart> {
    let base = &study.plan.study().strategies.base;
    let mut figures = RowCharts::of(study.measures());
    figures.panel("");
    for name in std::iter::once(base).chain(study.plan.study().others()) {
        figures.row(name);
        for of in chosen {
            let other = || of.others.iter().find(|(other, _)| other == name).and_then(|(_, model)| model.as_ref());
            let model = if name == base { of.base.as_ref() } else { other() };
            figures.dot(of.metric, &study.name(of.setting), model.and_then(|model| model.test.equity_scaling), None);
        }
    }
    figures.charts("es", false, |metric| texts(study.labels()[metric], "", study.settings().len()))
}

/// The same of the trainings with a shift, chosen among themselves by the unshifted validation part: a panel per level.
pub(super) fn shifted(study: &Study<'_>, shift: &str, levels: &[&ShiftLevel]) -> Result<Vec<Chart>, CliError> {
    let (of, rule) = (&study.plan.study().strategies, study.plan.study().rule);
    let mut figures = RowCharts::of(study.measures());
    let of_shift = || levels.iter().filter(|level| level.name == shift);
    for level in of_shift() {
        figures.panel(&if of_shift().count() > 1 { format!("{shift} {}", level.level) } else { String::new() });
        for name in std::iter::once(&of.base).chain(&of.names) {
            figures.row(name);
            for setting in study.settings() {
                let pool = |name: &String| {
                    study.trials(setting, |cell| {
                        cell.block == Block::Shift && cell.shift.as_ref() == Some(*level) && cell.strategy == *name
                    })
                };
                let (of_base, own) = (pool(&of.base), pool(name));
                for metric in 0..N_MEASURES {
                    let best = best(&of_base, metric)?;
                    let utility = best.as_ref().and_then(|model| model.validation.overall);
                    let like_base = utility.map(|utility| (utility, study.plan.study().tolerated_loss));
                    let model = match rule {
                        Rule::Fairest if *name == of.base => best,
                        _ => by_rule(rule, &own, metric, like_base)?,
                    };
                    let value = model.and_then(|model| model.test.equity_scaling);
                    figures.dot(metric, &study.name(setting), value, None);
                }
            }
        }
    }
    let prefix = super::charts::stem(&["es", shift]);
    let told = format!(" with the shift {shift} in training");
    Ok(figures.charts(&prefix, false, |metric| texts(study.labels()[metric], &told, study.settings().len())))
}

fn texts(label: &str, shift: &str, n_settings: usize) -> (String, String, String) {
    let title = format!("Equity scaling of {label}{shift}");
    let caption =
        format!("{title}: the chosen model of every strategy in the test part, {}.", counted(n_settings, "setting"));
    (title, format!("equity scaling of {label} (higher is better)"), caption)
}
