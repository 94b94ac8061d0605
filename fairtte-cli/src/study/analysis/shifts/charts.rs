//! Figures of shifts: with against without shift, and against the level of the shift.

use toml::Value;

use super::super::charts::{plane, range, stem};
use super::super::{N_MEASURES, Study, mean};
use crate::plural::counted;
use crate::report::{Chart, PlanePanel};
use crate::study::cells::ShiftLevel;
use crate::study::points::Setting;

/// The trials of a strategy in a setting, without and with a shift.
pub(super) struct Compared<'a> {
    pub(super) setting: &'a Setting,
    /// Place of the strategy; the base is the first.
    pub(super) strategy: usize,
    pub(super) shift: &'a ShiftLevel,
    pub(super) metric: usize,
    /// Pairs of the metric, of its gap and of the metric of the shifted group.
    pub(super) pairs: [Vec<(f64, f64)>; 3],
}

impl Compared<'_> {
    fn means(&self, of: usize) -> Option<(f64, f64)> {
        let without = mean(self.pairs[of].iter().map(|pair| pair.0)).0?;
        Some((without, mean(self.pairs[of].iter().map(|pair| pair.1)).0?))
    }
}

/// What the figures over all settings are of, in the order of [`Compared::pairs`].
const OF: [(&str, &str); 3] = [("utility", "Metric"), ("gap", "Gap"), ("group", "Metric of the shifted group")];

/// All figures of the shifts.
pub(super) fn charts(
    study: &Study<'_>,
    strategies: &[String],
    levels: &[&ShiftLevel],
    all: &[Compared<'_>],
) -> Vec<Chart> {
    let mut shifts: Vec<&str> = Vec::new();
    for level in levels {
        if !shifts.contains(&level.name.as_str()) {
            shifts.push(&level.name);
        }
    }
    let mut found = Vec::new();
    for shift in &shifts {
        let here: Vec<&ShiftLevel> = levels.iter().copied().filter(|level| level.name == *shift).collect();
        found.extend((0..OF.len()).filter_map(|of| over_settings(study, strategies, (shift, &here), of, all)));
    }
    for setting in study.settings() {
        found.extend(of_setting(study, strategies, levels, setting, all));
    }
    for shift in &shifts {
        let here: Vec<(&ShiftLevel, f64)> = levels
            .iter()
            .filter(|level| level.name == *shift)
            .filter_map(|level| Some((*level, strength(&level.level)?)))
            .collect();
        if here.len() > 1 {
            let of_setting = |setting| against_level(study, strategies, (shift, &here), setting, all);
            found.extend(study.settings().into_iter().filter_map(of_setting));
        }
    }
    found
}

/// The points of one panel: means without and with the shift.
fn panel<'a>(
    title: String,
    of: usize,
    compared: impl Iterator<Item = &'a Compared<'a>>,
    counts: &mut Vec<usize>,
) -> PlanePanel {
    let mut panel = PlanePanel { title, x: "without shift".to_owned(), y: "with shift".to_owned(), points: Vec::new() };
    for compared in compared {
        if let Some(point) = compared.means(of) {
            counts.push(compared.pairs[of].len());
            panel.points.push((compared.strategy, point));
        }
    }
    panel
}

/// A panel per level and metric, with the numbers of pairs behind its points.
fn panels(
    labels: [&'static str; N_MEASURES],
    levels: &[&ShiftLevel],
    of: usize,
    all: &[Compared<'_>],
    is_in: impl Fn(&Compared<'_>) -> bool,
    title: impl Fn(&str, &ShiftLevel) -> String,
) -> (Vec<PlanePanel>, Vec<usize>) {
    let (mut panels, mut counts) = (Vec::new(), Vec::new());
    for level in levels {
        for (metric, label) in labels.into_iter().enumerate() {
            let is_of = |compared: &&Compared<'_>| compared.shift == *level && compared.metric == metric;
            let here = all.iter().filter(is_of).filter(|compared| is_in(compared));
            panels.push(panel(title(label, level), of, here, &mut counts));
        }
    }
    (panels, counts)
}

fn over_settings(
    study: &Study<'_>,
    strategies: &[String],
    (shift, levels): (&str, &[&ShiftLevel]),
    of: usize,
    all: &[Compared<'_>],
) -> Option<Chart> {
    let (panels, counts) =
        panels(study.labels(), levels, of, all, |_| true, |label, level| panel_title(label, of, level, levels.len()));
    let title = format!("{} with and without the shift {shift}, all settings", OF[of].1);
    let caption = format!(
        "{title}: a point per strategy and setting ({}), the mean over {}; on the dashed line nothing changes.",
        counted(study.settings().len(), "setting"),
        trials(&counts)
    );
    let stem = stem(&["shift", shift, OF[of].0]);
    plane(stem, title, caption, strategies, (true, false), panels)
}

fn of_setting(
    study: &Study<'_>,
    strategies: &[String],
    levels: &[&ShiftLevel],
    setting: &Setting,
    all: &[Compared<'_>],
) -> Option<Chart> {
    let is_here = |compared: &Compared<'_>| compared.setting == setting;
    let (panels, counts) = panels(study.labels(), levels, 0, all, is_here, |label, level| {
        format!("{label}, {}", level_name(level, levels.len()))
    });
    let name = study.name(setting);
    let title = format!("Metrics with and without shift, {name}");
    let caption = format!(
        "{title}: a point per strategy, the mean over {}; on the dashed line nothing changes.",
        trials(&counts)
    );
    let stem = stem(&["shift", &study.plan.study().data[setting.data].name, &setting.attribute]);
    plane(stem, title, caption, strategies, (true, false), panels)
}

/// Metric and gap against the level, which is 0 without shift.
fn against_level(
    study: &Study<'_>,
    strategies: &[String],
    (shift, levels): (&str, &[(&ShiftLevel, f64)]),
    setting: &Setting,
    all: &[Compared<'_>],
) -> Option<Chart> {
    let mut counts = Vec::new();
    let mut panels = Vec::new();
    for (metric, label) in study.labels().into_iter().enumerate() {
        for (of, what) in [(0, String::new()), (1, "gap of ".to_owned())] {
            let title = format!("{what}{label}");
            let mut panel = PlanePanel { title, x: shift.to_owned(), y: "value".to_owned(), points: Vec::new() };
            for strategy in 0..strategies.len() {
                let mut points = Vec::new();
                for (level, x) in levels {
                    let is = |compared: &&Compared<'_>| {
                        compared.setting == setting
                            && compared.strategy == strategy
                            && compared.shift == *level
                            && compared.metric == metric
                    };
                    let Some(compared) = all.iter().find(is) else { continue };
                    let Some((without, with)) = compared.means(of) else { continue };
                    counts.push(compared.pairs[of].len());
                    if points.is_empty() {
                        points.push((0.0, without));
                    }
                    points.push((*x, with));
                }
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                panel.points.extend(points.into_iter().map(|point| (strategy, point)));
            }
            panels.push(panel);
        }
    }
    let title = format!("Metrics and gaps against the level of {shift}, {}", study.name(setting));
    let caption = format!("{title}: means over {}; level 0 is without shift.", trials(&counts));
    let stem = stem(&["level", shift, &study.plan.study().data[setting.data].name, &setting.attribute]);
    plane(stem, title, caption, strategies, (false, true), panels)
}

/// How strong a level is: the number, or the larger size of the fractions of noise.
fn strength(level: &Value) -> Option<f64> {
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    let of_table = || {
        let values = level.as_table()?.values().filter_map(Value::as_array).flatten();
        values.filter_map(number).map(f64::abs).reduce(f64::max)
    };
    number(level).or_else(of_table)
}

fn panel_title(label: &str, of: usize, level: &ShiftLevel, n_levels: usize) -> String {
    let what = if of == 1 { format!("gap of {label}") } else { label.to_owned() };
    if n_levels > 1 { format!("{what}, {}", level_name(level, n_levels)) } else { what }
}

/// `blur 2`, or `time [-0.2, 0.2]`.
fn level_name(level: &ShiftLevel, n_levels: usize) -> String {
    if n_levels < 2 {
        return level.name.clone();
    }
    match strength(&level.level) {
        Some(strength) => format!("{} {}", level.name, crate::report::short(strength)),
        None => format!("{} {}", level.name, level.level),
    }
}

fn trials(counts: &[usize]) -> String {
    format!("{} of trials", range(counts, "pair"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_a_strength() {
        let level = |text: &str| format!("x = {text}").parse::<toml::Table>().map(|table| table["x"].clone());
        let of = |text: &str| level(text).ok().and_then(|value| strength(&value));
        assert_eq!([of("2"), of("0.9"), of("{ fraction = [-0.2, 0.3] }")], [Some(2.0), Some(0.9), Some(0.3)]);
        assert_eq!(of("\"a\""), None);
    }

    #[test]
    fn counts_of_trials_are_words() {
        assert_eq!(
            [trials(&[1]), trials(&[3, 3]), trials(&[2, 3])],
            ["1 pair of trials", "3 pairs of trials", "2 to 3 pairs of trials"]
        );
    }
}
