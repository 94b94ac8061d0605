//! The choice as a table: for the terminal, and in Markdown for a document.

use crate::report::wrap;

use super::choose::{Change, Chosen, Rule, Scores, Standing, Verdict};

/// Columns of the table; the first is the strategy.
const WIDTH: usize = 100;
const HEADER: [&str; 6] = ["strategy", "metric", "change", "gap", "change of gap", "chosen"];

/// One block per attribute and metric.
pub(crate) fn terminal(verdict: &Verdict) -> String {
    let mut lines: Vec<String> = preamble(verdict).lines().flat_map(|line| wrap(line, WIDTH)).collect();
    for block in blocks(verdict) {
        let rows: Vec<[String; 6]> = block.iter().map(|standing| cells(standing)).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).chain([HEADER[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("  {}", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        lines.extend([String::new(), title(block[0]), line(&HEADER.map(str::to_owned))]);
        lines.extend(rows.iter().map(|row| line(row)));
    }
    lines.extend(
        verdict.not_trained.iter().map(|run| format!("\nnot trained: {}: {}", run.runs.join(", "), run.because)),
    );
    lines.join("\n")
}

/// The same for a document.
pub(crate) fn markdown(verdict: &Verdict) -> String {
    let mut lines = vec![preamble(verdict)];
    for block in blocks(verdict) {
        let header = format!("| {} |\n|{}", HEADER.join(" | "), "---|".repeat(HEADER.len()));
        lines.extend([format!("\n### {}\n", title(block[0])), header]);
        lines.extend(block.into_iter().map(|standing| {
            let cells = cells(standing).map(|cell| cell.replace('|', "\\|"));
            format!("| {} |", cells.join(" | "))
        }));
    }
    if !verdict.not_trained.is_empty() {
        lines.push("\nNot trained:\n".to_owned());
    }
    lines.extend(verdict.not_trained.iter().map(|run| format!("- {}: {}", run.runs.join(", "), run.because)));
    lines.join("\n") + "\n"
}

/// Rows of one attribute and metric together.
fn blocks(verdict: &Verdict) -> Vec<Vec<&Standing>> {
    let mut blocks: Vec<Vec<&Standing>> = Vec::new();
    for row in &verdict.rows {
        match blocks.last_mut() {
            Some(block) if (&block[0].attribute, &block[0].metric) == (&row.attribute, &row.metric) => block.push(row),
            _ => blocks.push(vec![row]),
        }
    }
    blocks
}

fn title(standing: &Standing) -> String {
    let better = if standing.higher_is_better { "higher" } else { "lower" };
    format!("{}, {} ({better} is better)", standing.attribute, standing.label)
}

fn preamble(verdict: &Verdict) -> String {
    let tolerated = 100.0 * verdict.tolerated_loss;
    let base = &verdict.base;
    let rule = match verdict.rule {
        Rule::Fairest => format!(
            "Chosen in the validation part: of {base} the weights with the best metric, of every other strategy those with \
             the smallest gap between groups among those that lose at most {tolerated:.0} % of the metric of {base}."
        ),
        Rule::Overall => "Chosen in the validation part: the weights with the best metric over all samples.".to_owned(),
        Rule::Minimax => {
            "Chosen in the validation part: the weights with the best worst group among those on the Pareto \
                          front of the groups."
                .to_owned()
        }
        Rule::Dto => "Chosen in the validation part: the weights nearest to the best value of every group.".to_owned(),
    };
    let Verdict { n_test, n_test_events, replicates, .. } = verdict;
    let level = 100.0 * verdict.level;
    let intervals = if *replicates > 0 {
        format!(
            " In brackets {level:.0} % intervals of {replicates} bootstrap draws of subjects, the same for both models; an \
             interval that holds 0 shows no difference."
        )
    } else {
        String::new()
    };
    format!(
        "{rule}\nNumbers are of the test part: {n_test} samples, {n_test_events} events. Changes are relative to {base}, in \
         percent of its value.{intervals}"
    )
}

fn cells(standing: &Standing) -> [String; 6] {
    let Some(chosen) = &standing.chosen else {
        let why = standing.none_because.clone().unwrap_or_default();
        return [standing.strategy.clone(), "-".into(), "-".into(), "-".into(), "-".into(), format!("none: {why}")];
    };
    let Chosen { run, epoch, test, change, gap_change, .. } = chosen;
    let Scores { value, gap } = test;
    let number = |x: Option<f64>| x.map_or_else(|| "undefined".to_owned(), |x| format!("{x:.3}"));
    let place = format!("{run}, epoch {epoch}");
    [
        standing.strategy.clone(),
        number(*value),
        percent(change.as_ref()),
        number(*gap),
        percent(gap_change.as_ref()),
        place,
    ]
}

fn percent(change: Option<&Change>) -> String {
    let Some(change) = change else { return "-".to_owned() };
    let Some(value) = change.percent else { return "undefined".to_owned() };
    match change.percent_lower.zip(change.percent_upper) {
        Some((lower, upper)) => format!("{value:+.1} % [{lower:+.1}, {upper:+.1}]"),
        None => format!("{value:+.1} %"),
    }
}
