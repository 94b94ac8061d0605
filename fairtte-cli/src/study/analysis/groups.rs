//! Groups per head, starts and backbones.

use fairtte_metrics::statistics::Alternative;

use super::pairs::ShownPair;
use super::plots::{Plot, dot, dots, file_name};
use super::{
    Family, LABELS, METRICS, PairRow, Section, Study, by_trial, columns, mean, metric_columns, of_trial, score, sheet,
    value,
};
use crate::CliError;
use crate::plural::counted;
use crate::report::sheet::Cell;
use crate::report::{Dot, Series};
use crate::study::cells::Block;
use crate::study::choice::{Chosen, best};
use crate::study::points::{Level, Setting, TrialPoints};

/// The groups of every head, and whether they differ over heads and trials.
pub(super) fn section(study: &Study<'_>) -> Result<Section, CliError> {
    let of_study = study.plan.study();
    let (mut rows, mut pairs, mut figures) = (Vec::new(), Vec::new(), Vec::new());
    for setting in study.settings() {
        let levels = &study.points.levels[setting];
        let (mut by_head, mut best_of_heads) = (Vec::new(), Vec::new());
        for head in &of_study.heads.names {
            let trials = study.trials(setting, |cell| {
                cell.block == Block::Base && cell.head == *head && cell.start == of_study.base_start()
            });
            let chosen: Vec<_> = (0..LABELS.len()).map(|metric| best(&trials, metric)).collect::<Result<_, _>>()?;
            for (g, level) in levels.iter().enumerate() {
                let of_group = |metric: usize| chosen[metric].as_ref()?.test.groups.get(g).copied().flatten();
                let mut row = vec![
                    Cell::Text(study.name(setting)),
                    Cell::Text(head.clone()),
                    Cell::Text(level.name.clone()),
                    Cell::Count(level.events_test),
                ];
                row.extend((0..LABELS.len()).map(|metric| score(of_group(metric))));
                rows.push(row);
            }
            by_head.push(trials);
            best_of_heads.push(chosen);
        }
        figures.extend((0..LABELS.len()).map(|metric| figure(study, setting, metric, &best_of_heads)));
        for (metric, label) in LABELS.into_iter().enumerate() {
            for (a, b) in all_pairs(levels.len()) {
                let mut of_pair = Vec::new();
                for trial in by_head.iter().flatten() {
                    let Some(values) = of_trial(trial, metric)? else { continue };
                    if let (Some(Some(first)), Some(Some(second))) = (values.groups.get(a), values.groups.get(b)) {
                        of_pair.push((*first, *second));
                    }
                }
                let names = [&study.name(setting), &levels[a].name, &levels[b].name].map(Clone::clone).to_vec();
                let names = names.into_iter().chain([label.to_owned()]).collect();
                pairs.push(PairRow { names, family: String::new(), pairs: of_pair });
            }
        }
    }
    let family = Family { rows: pairs, alternative: Alternative::TwoSided };
    let caption = "Do two groups differ? One pair per head and trial: metric in the first group, metric in the second.";
    let tested = family.test("p-between-groups", caption, &["setting", "first", "second", "metric"])?;
    let mut header = columns(&["setting", "head", "group"]);
    header.push(("events-test".to_owned(), "events test".to_owned()));
    header.extend(metric_columns(""));
    let mut verdict = vec![format!(
        "{} of {} differences between groups are shown over heads and trials (p below 0.05 after Holm): all trainings share the \
         test samples, so such a difference may lie in those samples.",
        tested.shown.len(),
        tested.n_tests
    )];
    verdict.extend(tested.shown.iter().take(MOST_NAMED).map(worse));
    verdict.extend(tested.too_few());
    Ok(Section {
        id: "groups",
        title: "Groups".to_owned(),
        question: format!("How well does {} predict in every group?", of_study.strategies.base),
        verdict,
        sheets: vec![
            sheet(
                "groups",
                "The best model by the validation part of every head, in the test part.",
                &header,
                rows,
                &[],
            ),
            tested.sheet,
        ],
        plots: figures,
    })
}

/// Differences between groups that are named in words.
const MOST_NAMED: usize = 8;

/// Which group is predicted worse, in words.
fn worse(pair: &ShownPair) -> String {
    let [setting, first, second, metric] = &pair.names[..] else { return String::new() };
    let (higher, lower) = if pair.median > 0.0 { (first, second) } else { (second, first) };
    // An IBS is an error.
    let (of, than, is) = if metric == "IBS" { (higher, lower, "higher") } else { (lower, higher, "lower") };
    let p = if pair.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", pair.p) };
    format!(
        "{setting}: {of} is predicted worse than {than}: {metric} is {is} by {:.3} in the median of {} ({p} after Holm).",
        pair.median.abs(),
        counted(pair.n_pairs, "pair")
    )
}

/// A metric of every group by head, of the models that are best in the validation part.
fn figure(study: &Study<'_>, setting: &Setting, metric: usize, best_of_heads: &[Vec<Option<Chosen>>]) -> Plot {
    let levels = &study.points.levels[setting];
    let of = |group: usize, chosen: &Vec<Option<Chosen>>| -> Option<Dot> {
        let chosen = chosen[metric].as_ref()?;
        let value = chosen.test.groups.get(group).copied()??;
        Some(Dot { value, interval: study.interval(chosen, metric, &setting.attribute, group) })
    };
    let series = |(group, level): (usize, &Level)| Series {
        name: format!("{} ({})", level.name, counted(level.events_test, "event")),
        dots: best_of_heads.iter().map(|chosen| of(group, chosen)).collect(),
    };
    let name = study.name(setting);
    dots(
        file_name(&["groups", METRICS[metric], &name]),
        format!(
            "{}, {name}: the best model of every head by the validation part, in the test part{}.",
            LABELS[metric],
            if study.samples.is_empty() { "" } else { ", with 95 % intervals over its subjects" }
        ),
        (format!("{} of the groups, {name}", LABELS[metric]), LABELS[metric]),
        study.plan.study().heads.names.clone(),
        levels.iter().enumerate().map(series).collect(),
        None,
    )
}

fn all_pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)))
}

/// Another way to begin, beside the base start; none with one start.
pub(super) fn starts(study: &Study<'_>) -> Result<Option<Section>, CliError> {
    let of_study = study.plan.study();
    if of_study.starts.len() < 2 {
        return Ok(None);
    }
    let base = of_study.base_start();
    let (mut rows, mut pairs, mut figures) = (Vec::new(), Vec::new(), Vec::new());
    for setting in study.settings() {
        let levels = &study.points.levels[setting];
        for start in of_study.starts.keys().filter(|start| *start != base) {
            let mut gaps: [Vec<(f64, f64)>; 3] = Default::default();
            let mut means: Vec<Vec<[Option<f64>; 3]>> = Vec::new();
            for head in &of_study.heads.names {
                let of_start =
                    |name: &str| {
                        by_trial(&study.trials(setting, |cell| {
                            cell.block == Block::Base && cell.head == *head && cell.start == name
                        }))
                    };
                let paired = paired(&of_start(base), &of_start(start));
                let mut differences = vec![[Vec::new(), Vec::new(), Vec::new()]; levels.len()];
                for (with, other) in &paired {
                    for metric in 0..LABELS.len() {
                        let (Some(with), Some(other)) = (of_trial(with, metric)?, of_trial(other, metric)?) else {
                            continue;
                        };
                        gaps[metric].extend(with.gap.zip(other.gap));
                        for (g, (a, b)) in with.groups.iter().zip(&other.groups).enumerate() {
                            differences[g][metric].extend(a.zip(*b).map(|(a, b)| a - b));
                        }
                    }
                }
                let mean_of = |values: &[Vec<f64>; 3]| std::array::from_fn(|m| mean(values[m].iter().copied()).0);
                means.push(differences.iter().map(mean_of).collect());
                for (level, of_level) in levels.iter().zip(&differences) {
                    let names = [study.name(setting), head.clone(), format!("{base} - {start}"), level.name.clone()];
                    let mut row: Vec<Cell> = names.into_iter().map(Cell::Text).collect();
                    row.push(Cell::Count(paired.len()));
                    row.extend(of_level.iter().map(|values| value(mean(values.iter().copied()).0)));
                    rows.push(row);
                }
            }
            figures.extend((0..LABELS.len()).map(|metric| start_figure(study, setting, (base, start), metric, &means)));
            for (metric, pairs_of) in gaps.into_iter().enumerate() {
                let names = vec![study.name(setting), format!("{base}, {start}"), LABELS[metric].to_owned()];
                pairs.push(PairRow { names, family: String::new(), pairs: pairs_of });
            }
        }
    }
    let family = Family { rows: pairs, alternative: Alternative::Less };
    let caption =
        format!("Does {base} narrow the gap? One pair per head and trial: its gap, the gap of the other start.");
    let tested = family.test("p-start", &caption, &["setting", "starts", "metric"])?;
    let mut header = columns(&["setting", "head", "difference", "group", "trials"]);
    header.extend(metric_columns(""));
    Ok(Some(Section {
        id: "starts",
        title: "Starts".to_owned(),
        question: format!("Does {base} predict better in every group than another start, and with a narrower gap?"),
        verdict: std::iter::once(format!(
            "{} of {} narrower gaps are shown (one-sided p below 0.05 after Holm); {} raw p values are above 0.05.",
            tested.shown.len(),
            tested.n_tests,
            tested.n_above
        ))
        .chain(tested.too_few())
        .collect(),
        sheets: vec![
            sheet(
                "starts",
                "Mean over trials of the metric with one start minus that with another, test part.",
                &header,
                rows,
                &[],
            ),
            tested.sheet,
        ],
        plots: figures,
    }))
}

/// The mean change of a metric from a start to the base start, by head and group.
fn start_figure(
    study: &Study<'_>,
    setting: &Setting,
    (base, start): (&str, &str),
    metric: usize,
    means: &[Vec<[Option<f64>; 3]>],
) -> Plot {
    let levels = &study.points.levels[setting];
    let series = |(group, level): (usize, &Level)| Series {
        name: level.name.clone(),
        dots: means.iter().map(|of_head| dot(of_head[group][metric])).collect(),
    };
    let (name, label) = (study.name(setting), LABELS[metric]);
    dots(
        file_name(&["start", METRICS[metric], &name, start]),
        format!(
            "{label} with {base} minus {label} with {start}, {name}: means over {}.",
            counted(study.plan.study().trials, "trial")
        ),
        (format!("Change of {label} from {start} to {base}, {name}"), &format!("{label}, {base} - {start}")),
        study.plan.study().heads.names.clone(),
        levels.iter().enumerate().map(series).collect(),
        Some(0.0),
    )
}

/// Trials with the same number.
fn paired<'a>(
    first: &std::collections::BTreeMap<usize, &'a TrialPoints>,
    second: &std::collections::BTreeMap<usize, &'a TrialPoints>,
) -> Vec<(&'a TrialPoints, &'a TrialPoints)> {
    first.iter().filter_map(|(trial, one)| Some((*one, *second.get(trial)?))).collect()
}

/// The base with every backbone; none without another backbone.
pub(super) fn backbones(study: &Study<'_>) -> Result<Option<Section>, CliError> {
    let of_study = study.plan.study();
    let mut rows = Vec::new();
    let mut row = |setting: &Setting, name: &str, trials: &[&TrialPoints]| -> Result<(), CliError> {
        let chosen: Vec<_> = (0..LABELS.len()).map(|metric| best(trials, metric)).collect::<Result<_, _>>()?;
        let mut row = vec![Cell::Text(study.name(setting)), Cell::Text(name.to_owned()), Cell::Count(trials.len())];
        row.extend(chosen.iter().map(|chosen| score(chosen.as_ref().and_then(|chosen| chosen.test.overall))));
        row.extend(chosen.iter().map(|chosen| score(chosen.as_ref().and_then(|chosen| chosen.test.gap))));
        rows.push(row);
        Ok(())
    };
    let mut is_any = false;
    for setting in study.settings() {
        for name in of_study.backbones.keys() {
            let trials = study.trials(setting, |cell| cell.backbone.as_ref() == Some(name));
            if trials.is_empty() {
                continue;
            }
            let base = study.trials(setting, |cell| study.is_plain(cell) && cell.block == Block::Base);
            is_any = true;
            row(setting, "of the run file", &base)?;
            row(setting, name, &trials)?;
        }
    }
    if !is_any {
        return Ok(None);
    }
    let mut header = columns(&["setting", "backbone", "trials"]);
    header.extend(metric_columns("").into_iter().chain(metric_columns("gap")));
    let caption = "The best model by the validation part with every backbone, in the test part.";
    Ok(Some(Section {
        id: "backbones",
        title: "Backbones".to_owned(),
        question: "Does another backbone predict better, or more equally?".to_owned(),
        verdict: vec!["One model per row: read differences beside those between trials.".to_owned()],
        sheets: vec![sheet("backbones", caption, &header, rows, &[])],
        plots: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_is_predicted_worse_is_named() {
        let pair = |metric: &str, median: f64| ShownPair {
            names: ["films sex", "F", "M", metric].map(str::to_owned).to_vec(),
            median,
            n_pairs: 8,
            p: 0.0234,
        };
        let sentence = "films sex: M is predicted worse than F: C^td is lower by 0.120 in the median of 8 pairs (p = 0.023 after Holm).";
        assert_eq!(worse(&pair("C^td", 0.12)), sentence);
        assert!(worse(&pair("C^td", -0.12)).starts_with("films sex: F is predicted worse than M: C^td is lower"));
        assert!(worse(&pair("IBS", 0.12)).starts_with("films sex: F is predicted worse than M: IBS is higher"));
    }
}
