//! Groups per head, starts and backbones.

use fairtte_metrics::statistics::Alternative;

use super::charts::{RowCharts, metric_axis, range};
use super::pairs::ShownPair;
use super::{Family, N_MEASURES, PairRow, Section, Study, by_trial, columns, mean, of_trial, score, sheet, value};
use crate::CliError;
use crate::plural::counted;
use crate::report::list;
use crate::report::sheet::Cell;
use crate::study::cells::Block;
use crate::study::choice::best;
use crate::study::points::{Setting, TrialPoints};

/// The groups of every head, and whether they differ over heads and trials.
pub(super) fn section(study: &Study<'_>) -> Result<Section, CliError> {
    let of_study = study.plan.study();
    let (mut rows, mut pairs, mut figures) = (Vec::new(), Vec::new(), RowCharts::of(study.measures()));
    let mut n_trials = Vec::new();
    for setting in study.settings() {
        let levels = &study.points.levels[setting];
        figures.panel(&panel_title(study, setting));
        let mut by_head = Vec::new();
        for head in &of_study.heads.names {
            let trials = of_head(study, setting, head);
            let chosen: Vec<_> = (0..N_MEASURES).map(|metric| best(&trials, metric)).collect::<Result<_, _>>()?;
            figures.row(head);
            n_trials.push(trials.len());
            for (g, level) in levels.iter().enumerate() {
                let of_group = |metric: usize| chosen[metric].as_ref()?.test.groups.get(g).copied().flatten();
                let mut row = vec![
                    Cell::Text(study.name(setting)),
                    Cell::Text(head.clone()),
                    Cell::Text(level.name.clone()),
                    Cell::Count(level.events_test),
                ];
                row.extend((0..N_MEASURES).map(|metric| score(of_group(metric))));
                for (metric, model) in chosen.iter().enumerate() {
                    let interval =
                        model.as_ref().and_then(|model| study.interval(model, metric, &setting.attribute, g));
                    figures.dot(metric, &level.name, of_group(metric), interval);
                }
                rows.push(row);
            }
            by_head.push(trials);
        }
        for (metric, label) in study.labels().into_iter().enumerate() {
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
    header.extend(study.metric_columns(""));
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
        charts: figures.charts("groups", false, |metric| {
            let title = format!("{} in every group", study.labels()[metric]);
            let caption = format!(
                "{title}: of every head the best model by the validation part, chosen among {}, in the test part{}.",
                range(&n_trials, "trial"),
                if study.samples.is_empty() { "" } else { ", with 95 % intervals over its subjects" }
            );
            (title, metric_axis(study.measures(), metric), caption)
        }),
    })
}

/// Differences between groups that are named in words.
const MOST_NAMED: usize = 8;

/// Which group is predicted worse, in words.
fn worse(pair: &ShownPair) -> String {
    let [setting, first, second, metric] = &pair.names[..] else { return String::new() };
    let (higher, lower) = if pair.median > 0.0 { (first, second) } else { (second, first) };
    // An IBS and a BCE are errors.
    let (of, than, is) =
        if matches!(metric.as_str(), "IBS" | "BCE") { (higher, lower, "higher") } else { (lower, higher, "lower") };
    let p = if pair.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", pair.p) };
    format!(
        "{setting}: {of} is predicted worse than {than}: {metric} is {is} by {:.3} in the median of {} ({p} after Holm).",
        pair.median.abs(),
        counted(pair.n_pairs, "pair")
    )
}

/// The best trials of a head with the base strategy and start.
fn of_head<'a>(study: &Study<'a>, setting: &Setting, head: &str) -> Vec<&'a TrialPoints> {
    let start = study.plan.study().base_start();
    study.trials(setting, |cell| cell.block == Block::Base && cell.head == *head && cell.start == start)
}

/// The setting with the events of its groups: `films sex: 12 and 9 events`.
fn panel_title(study: &Study<'_>, setting: &Setting) -> String {
    let events: Vec<String> = study.points.levels[setting].iter().map(|level| level.events_test.to_string()).collect();
    format!("{}: {} events", study.name(setting), list(&events))
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
    let (mut rows, mut pairs, mut figures) = (Vec::new(), Vec::new(), RowCharts::of(study.measures()));
    let mut n_pairs = Vec::new();
    for setting in study.settings() {
        let levels = &study.points.levels[setting];
        for start in of_study.starts.keys().filter(|start| *start != base) {
            let mut gaps: [Vec<(f64, f64)>; N_MEASURES] = Default::default();
            figures.panel(&format!("{}: {base} - {start}", study.name(setting)));
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
                    for metric in 0..N_MEASURES {
                        let (Some(with), Some(other)) = (of_trial(with, metric)?, of_trial(other, metric)?) else {
                            continue;
                        };
                        gaps[metric].extend(with.gap.zip(other.gap));
                        for (g, (a, b)) in with.groups.iter().zip(&other.groups).enumerate() {
                            differences[g][metric].extend(a.zip(*b).map(|(a, b)| a - b));
                        }
                    }
                }
                figures.row(head);
                n_pairs.push(paired.len());
                for (level, of_level) in levels.iter().zip(&differences) {
                    for (metric, values) in of_level.iter().enumerate() {
                        figures.dot(metric, &level.name, mean(values.iter().copied()).0, None);
                    }
                    let names = [study.name(setting), head.clone(), format!("{base} - {start}"), level.name.clone()];
                    let mut row: Vec<Cell> = names.into_iter().map(Cell::Text).collect();
                    row.push(Cell::Count(paired.len()));
                    row.extend(of_level.iter().map(|values| value(mean(values.iter().copied()).0)));
                    rows.push(row);
                }
            }
            for (metric, pairs_of) in gaps.into_iter().enumerate() {
                let names = vec![study.name(setting), format!("{base}, {start}"), study.labels()[metric].to_owned()];
                pairs.push(PairRow { names, family: String::new(), pairs: pairs_of });
            }
        }
    }
    let family = Family { rows: pairs, alternative: Alternative::Less };
    let caption =
        format!("Does {base} narrow the gap? One pair per head and trial: its gap, the gap of the other start.");
    let tested = family.test("p-start", &caption, &["setting", "starts", "metric"])?;
    let mut header = columns(&["setting", "head", "difference", "group", "trials"]);
    header.extend(study.metric_columns(""));
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
        charts: figures.charts("start", true, |metric| {
            let title = format!("{} of {base} minus that of another start", study.labels()[metric]);
            let caption = format!("{title}, in every group: means over {} of every head.", range(&n_pairs, "pair"));
            (title, format!("difference of {}", metric_axis(study.measures(), metric)), caption)
        }),
    }))
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
        let chosen: Vec<_> = (0..N_MEASURES).map(|metric| best(trials, metric)).collect::<Result<_, _>>()?;
        let mut row = vec![Cell::Text(study.name(setting)), Cell::Text(name.to_owned()), Cell::Count(trials.len())];
        row.extend(chosen.iter().map(|chosen| score(chosen.as_ref().and_then(|chosen| chosen.test.overall))));
        row.extend(chosen.iter().map(|chosen| score(chosen.as_ref().and_then(|chosen| chosen.test.gap))));
        rows.push(row);
        Ok(())
    };
    let mut is_any = false;
    for setting in study.settings() {
        for name in of_study.backbones.keys() {
            let trials =
                study.trials(setting, |cell| cell.block == Block::Backbone && cell.backbone.as_ref() == Some(name));
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
    header.extend(study.metric_columns("").into_iter().chain(study.metric_columns("gap")));
    let caption = "The best model by the validation part with every backbone, in the test part.";
    Ok(Some(Section {
        id: "backbones",
        title: "Backbones".to_owned(),
        question: "Does another backbone predict better, or more equally?".to_owned(),
        verdict: vec!["One model per row: read differences beside those between trials.".to_owned()],
        sheets: vec![sheet("backbones", caption, &header, rows, &[])],
        charts: Vec::new(),
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
