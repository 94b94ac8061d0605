//! The sources of bias in the data of every setting, and whether they go along with the gap of the base.

use std::collections::BTreeMap;

use fairtte_metrics::statistics::spearman;

use super::intervals::Model;
use super::strategies::ChosenOf;
use super::{Bound, N_MEASURES, Section, Study, columns, sheet, value};
use crate::CliError;
use crate::plural::counted;
use crate::report::bias::{Found, SourceSummary, SummaryLine};
use crate::report::sheet::Cell;
use crate::report::{Chart, Dot, Panels, RowPanel};
use crate::study::choice::Chosen;
use crate::study::points::Setting;

/// What was measured of every setting, or why it was not.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    pub(crate) sources: BTreeMap<Setting, Result<SourceSummary, String>>,
    pub(crate) bounds: BTreeMap<Setting, Result<Bound, String>>,
}

/// Settings below which there is no rank correlation.
const FEWEST: usize = 3;

/// Settings below which a rank correlation says little.
const FEW_SETTINGS: usize = 10;

impl Study<'_> {
    /// The best base model of every setting by C^td.
    ///
    /// # Errors
    /// [`CliError`] if a value is not finite.
    pub(crate) fn base_models(&self) -> Result<Vec<(Setting, Option<Model>)>, CliError> {
        let all = super::strategies::choose(self)?;
        let first = all.into_iter().filter(|of| of.metric == 0);
        Ok(first.map(|of| (of.setting.clone(), of.base.as_ref().map(Model::from))).collect())
    }
}

/// The section; none if the study file has no `[bias]`.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Result<Option<Section>, CliError> {
    let of = study.causes.sources.iter();
    let measured: Vec<(&Setting, &SourceSummary)> =
        of.clone().filter_map(|(setting, found)| Some((setting, found.as_ref().ok()?))).collect();
    let Some(block) = study.plan.study().bias.filter(|_| !study.causes.sources.is_empty()) else { return Ok(None) };
    let name = |setting: &Setting| study.name(setting);
    let mut verdict: Vec<String> =
        measured.iter().map(|(setting, summary)| format!("{}: {}", name(setting), summary.sentence)).collect();
    verdict.extend(of.filter_map(|(setting, found)| {
        Some(format!("{}: not measured: {}.", name(setting), found.as_ref().err()?.trim_end_matches('.')))
    }));
    let gap = |setting: &Setting, metric: usize| {
        let of = chosen.iter().find(|of| of.setting == setting && of.metric == metric)?;
        of.base.as_ref().and_then(|model: &Chosen| model.test.gap)
    };
    let (correlations, n_settings) = correlations(&measured, gap)?;
    let over = format!("Rank correlations of sources and gaps are over {}", counted(n_settings, "setting"));
    verdict.push(match n_settings {
        0..FEWEST => {
            format!("Whether gaps are wider where a source is larger needs {FEWEST} settings or more; there are {n_settings}.")
        }
        FEWEST..FEW_SETTINGS => format!("{over}: fewer than {FEW_SETTINGS} say nothing about other settings."),
        _ => format!("{over}."),
    });
    let layer = block.features.name();
    let base = &study.plan.study().strategies.base;
    let mut header = columns(&["setting", "source", "between", "value", "by chance", "above chance"]);
    header.push(("p-holm".to_owned(), "p (Holm)".to_owned()));
    let mut of_gap = columns(&["source"]);
    for (metric, label) in study.measures().names().into_iter().zip(study.labels()) {
        of_gap.push((metric.to_owned(), format!("gap {label}")));
        of_gap.push((format!("{metric}-settings"), "settings".to_owned()));
    }
    let mut sheets = vec![sheet(
        "bias-sources",
        &format!(
            "Sources of bias in all samples of every setting; images by the {layer} of the network of the best {base} training by C^td."
        ),
        &header,
        rows(&measured, name),
        &[
            "By chance: mean over permutations of the groups. Separability: AUC with which the features tell the groups apart.",
            "The network was trained on part of these samples, so its features may know more of their times and events.",
        ],
    )];
    if n_settings >= FEWEST {
        sheets.push(sheet(
            "bias-gap",
            &format!(
                "Spearman's correlation over settings of a source above chance with the gap of {base}, test part."
            ),
            &of_gap,
            correlations,
            &["Settings of one data set share samples, so they are not independent."],
        ));
    }
    Ok(Some(Section {
        id: "sources",
        title: "Sources of bias".to_owned(),
        question: "By what do the groups differ before any model, and are gaps wider where they differ more?"
            .to_owned(),
        verdict,
        sheets,
        charts: figure(&measured, name).into_iter().collect(),
    }))
}

/// One row per setting and source.
fn rows(measured: &[(&Setting, &SourceSummary)], name: impl Fn(&Setting) -> String) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for (setting, summary) in measured {
        for line in &summary.lines {
            let mut row = vec![Cell::Text(name(setting)), Cell::Text(line.name.clone())];
            match &line.found {
                Ok(Found { value, chance, corrected, p_holm, between, .. }) => {
                    row.push(Cell::Text(between.clone()));
                    row.extend([*value, *chance, *corrected].map(Cell::Statistic));
                    row.push(Cell::or_missing(*p_holm, Cell::P));
                }
                Err(reason) => {
                    row.push(Cell::Text(reason.clone()));
                    row.extend((0..4).map(|_| Cell::Missing));
                }
            }
            rows.push(row);
        }
    }
    rows
}

/// One row per source, with the correlation and the number of settings of every metric; the largest of these numbers.
fn correlations(
    measured: &[(&Setting, &SourceSummary)],
    gap: impl Fn(&Setting, usize) -> Option<f64>,
) -> Result<(Vec<Vec<Cell>>, usize), CliError> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for line in measured.iter().flat_map(|(_, summary)| &summary.lines) {
        if !names.iter().any(|(key, _)| *key == line.key) {
            names.push((&line.key, &line.name));
        }
    }
    let (mut rows, mut most) = (Vec::new(), 0);
    for (key, name) in names {
        let mut row = vec![Cell::Text(name.to_owned())];
        for metric in 0..N_MEASURES {
            let pair = |(setting, summary): &(&Setting, &SourceSummary)| {
                let line = summary.lines.iter().find(|line| line.key == key)?;
                Some((line.found.as_ref().ok()?.corrected, gap(setting, metric)?))
            };
            let (sources, gaps): (Vec<f64>, Vec<f64>) = measured.iter().filter_map(pair).unzip();
            row.push(value(spearman(&sources, &gaps)?));
            row.push(Cell::Count(gaps.len()));
            most = most.max(gaps.len());
        }
        rows.push(row);
    }
    Ok((rows, most))
}

/// The sources above chance, one panel per setting.
fn figure(measured: &[(&Setting, &SourceSummary)], name: impl Fn(&Setting) -> String) -> Option<Chart> {
    let panel = |(setting, summary): &(&Setting, &SourceSummary)| {
        let sources = summary.lines.iter().filter(|line| line.key != "separability");
        let row = |line: &SummaryLine| {
            let dot = line.found.as_ref().ok().map(|found| {
                let is_shown = found.p_holm.is_some_and(|p| p < 0.05);
                Dot { series: usize::from(!is_shown), value: found.corrected, interval: None }
            });
            (line.name.clone(), dot.into_iter().collect())
        };
        RowPanel { title: name(setting), rows: sources.map(row).collect() }
    };
    let title = "Sources of bias above chance".to_owned();
    let chart = Chart {
        name: "bias-sources".to_owned(),
        caption: format!(
            "{title}: the value minus its mean over permutations of the groups, in all samples of every setting."
        ),
        title,
        series: vec!["p below 0.05 after Holm".to_owned(), "p of 0.05 or more".to_owned()],
        panels: Panels::Rows {
            axis: "source above chance".to_owned(),
            zero: true,
            panels: measured.iter().map(panel).collect(),
        },
    };
    (chart.n_marks() > 0).then_some(chart)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    fn summary(values: &[(&str, Option<f64>)]) -> SourceSummary {
        let line = |(key, above): &(&str, Option<f64>)| SummaryLine {
            key: (*key).to_owned(),
            name: (*key).to_owned(),
            found: above.map_or_else(
                || Err("too few".to_owned()),
                |corrected| {
                    let between = "F and M".to_owned();
                    let p = Some(0.01);
                    Ok(Found { value: corrected + 0.1, chance: 0.1, corrected, interval: None, p, p_holm: p, between })
                },
            ),
        };
        SourceSummary { attribute: "sex".to_owned(), sentence: String::new(), lines: values.iter().map(line).collect() }
    }

    #[test]
    fn sources_are_correlated_with_the_gaps_of_their_own_setting() {
        let settings: Vec<Setting> = (0..4).map(|data| Setting { data, attribute: "sex".to_owned() }).collect();
        let all = [
            summary(&[("a", Some(0.1)), ("b", Some(0.4))]),
            summary(&[("a", Some(0.3)), ("b", None)]),
            summary(&[("a", Some(0.2)), ("b", Some(0.1))]),
            summary(&[("a", Some(0.9)), ("b", Some(0.2))]),
        ];
        let measured: Vec<_> = settings.iter().zip(&all).collect();
        // The last setting has no gap by the first metric.
        let gaps = [0.01, 0.03, 0.02];
        let gap = |setting: &Setting, metric: usize| (metric == 0).then(|| gaps.get(setting.data).copied())?;
        let (rows, most) = correlations(&measured, gap).unwrap();
        let shown: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        assert_eq!(shown[0], ["a", "1", "3", "–", "0", "–", "0"]);
        assert_eq!(shown[1][..3], ["b", "-1", "2"]);
        assert_eq!(most, 3);
        assert_eq!(super::rows(&measured, |setting| setting.data.to_string()).len(), 8);
    }
}
