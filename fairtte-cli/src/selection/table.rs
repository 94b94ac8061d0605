//! The choice as tables: for the terminal, and in Markdown for a document. Every block has two, one for the metric and one
//! for the difference between groups.

use crate::plural::counted;
use crate::report::{short, wrap};

use super::horizon;
use super::verdict::{Block, Change, Chosen, LossOf, RankComparison, Ranked, Role, Rule, Spread, Standing, Verdict};

/// Columns of a terminal.
const WIDTH: usize = 80;
/// A longer name of a strategy continues on the next line.
const LONGEST_NAME: usize = 28;
const INDENT: usize = 2;
/// Spaces between two columns.
const GAP: usize = 2;

/// Head and rows of one table.
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Running text, then the blocks, then ranks and what could not be trained.
pub(crate) fn terminal(verdict: &Verdict) -> String {
    let mut lines: Vec<String> =
        preamble(verdict, Medium::Text).iter().flat_map(|paragraph| wrap(paragraph, WIDTH)).collect();
    for block in &verdict.blocks {
        lines.push(String::new());
        lines.extend(wrap(&title(block, verdict), WIDTH));
        let warnings = block.warnings.iter().map(|warning| format!("warning: {warning}"));
        lines.extend(warnings.flat_map(|warning| wrap(&warning, WIDTH)));
        for table in tables(block, verdict) {
            lines.extend(plain(&table));
        }
    }
    if !verdict.ranks.is_empty() {
        lines.push(String::new());
        lines.extend(wrap(RANKS, WIDTH));
        lines.extend(all_ranks(verdict).iter().flat_map(|text| wrap(text, WIDTH)));
    }
    for run in &verdict.not_trained {
        lines.push(String::new());
        lines.extend(wrap(&format!("not trained: {}: {}", run.runs.join(", "), run.because), WIDTH));
    }
    lines.join("\n")
}

/// The verdict in Markdown for a document.
pub(crate) fn markdown(verdict: &Verdict) -> String {
    let mut lines: Vec<String> =
        preamble(verdict, Medium::Text).iter().map(|paragraph| format!("- {paragraph}")).collect();
    for block in &verdict.blocks {
        lines.push(format!("\n### {}", title(block, verdict)));
        lines.extend(block.warnings.iter().map(|warning| format!("\n> **Warning:** {warning}")));
        for Table { head, rows } in tables(block, verdict) {
            lines.push(format!("\n| {} |\n|{}", head.join(" | "), "---|".repeat(head.len())));
            let cell = |cell: &String| cell.replace('|', "\\|");
            lines
                .extend(rows.iter().map(|row| format!("| {} |", row.iter().map(cell).collect::<Vec<_>>().join(" | "))));
        }
    }
    if !verdict.ranks.is_empty() {
        lines.push(format!("\n### Ranks over blocks\n\n{RANKS}\n"));
        lines.extend(all_ranks(verdict).iter().map(|text| format!("- {text}")));
    }
    if !verdict.not_trained.is_empty() {
        lines.push("\nNot trained:\n".to_owned());
    }
    lines.extend(verdict.not_trained.iter().map(|run| format!("- {}: {}", run.runs.join(", "), run.because)));
    lines.join("\n") + "\n"
}

pub(super) const RANKS: &str = "Average ranks (1 is best) over blocks of attribute and training seed, each with the model that is \
                     chosen among the trainings of its seed. All blocks share the test subjects: p says whether trainings \
                     differ on these subjects, not in the population. Every metric and gap has a test of its own, and none is \
                     adjusted for the others.";

pub(super) fn title(block: &Block, verdict: &Verdict) -> String {
    let better = if block.higher_is_better { "higher" } else { "lower" };
    let networks = verdict.blocks.iter().any(|other| other.network != block.network);
    let network = if networks { format!("; {}", block.network) } else { String::new() };
    format!("{}, {} ({better} is better){network}", block.attribute, block.label)
}

/// Where the explanation of the columns stands: the page has means over seeds and changes in units of the metric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Text,
    Page,
}

/// The explanation of every column.
pub(super) fn preamble(verdict: &Verdict, medium: Medium) -> Vec<String> {
    let Verdict { base, n_folds, n_test, n_test_events, replicates, n_seeds, .. } = verdict;
    let control = if verdict.rule == Rule::Fairest { format!("{base}, chosen like the others") } else { base.clone() };
    let level = short(100.0 * verdict.level);
    let units = match medium {
        Medium::Text => {
            "The metric changes in percent of that row, a difference between groups in units of the metric."
        }
        Medium::Page => "Changes are in units of the metric.",
    };
    let part = match n_folds {
        1 => "the test part".to_owned(),
        n => format!(
            "the test parts of {n} folds together, each sample with the curve of the fold that did not train on it"
        ),
    };
    let mut text = vec![
        rule_sentence(verdict),
        format!("Numbers are of {part}: {}, {}.", counted(*n_test, "sample"), counted(*n_test_events, "event")),
    ];
    text.extend(verdict.horizon.as_ref().map(horizon::sentence));
    text.push(format!("change: from the row \"{control}\", so that it shows the strategy and not the rule. {units}"));
    if verdict.rule == Rule::Fairest && medium == Medium::Text {
        text.push(format!(
            "from {base}: the same change from the first row, which has the best metric, as in the paper."
        ));
    }
    text.push(format!(
        "A - B: the signed difference of the two groups between which {base} differs most in the validation part; gap: the \
         largest minus the smallest group."
    ));
    if *replicates > 0 {
        let trainings = match n_seeds {
            0 | 1 => "There is one training seed: intervals and p values compare two trained models and say nothing \
                      about other seeds, so nothing is called different. Set compare.seeds to several."
                .to_owned(),
            n => format!(
                "A draw has {} of the {n} training seeds, drawn with replacement, and the choice is made again among those.",
                n - 1
            ),
        };
        text.push(format!(
            "In brackets: {level} % percentile intervals of {replicates} bootstrap draws of subjects, the same for all \
             models. {trainings}"
        ));
        text.push(format!(
            "p: two-sided, of no change. Holm: p adjusted for all changes of both tables of a block; * where it is at most \
             {}. Only those are called different.",
            short(1.0 - verdict.level)
        ));
        text.extend(too_few_draws(verdict));
    }
    let over_seeds = match medium {
        Medium::Text => "median (smallest to largest)",
        Medium::Page => "mean \u{b1} standard error (number of seeds)",
    };
    text.push(format!(
        "over seeds: {over_seeds} in the test part if the choice is made within each training seed alone."
    ));
    text.push("Candidates are the epochs that the selection rules of each training kept, not all epochs.".to_owned());
    text
}

fn rule_sentence(verdict: &Verdict) -> String {
    let base = &verdict.base;
    let tolerated = short(100.0 * verdict.tolerated_loss);
    let of = match verdict.tolerated_loss_of {
        LossOf::Metric => format!("of the metric of {base}"),
        LossOf::Skill => {
            format!("of the skill of {base} (its metric above 0.5, or below the IBS of the Kaplan-Meier curve)")
        }
    };
    match verdict.rule {
        Rule::Fairest => format!(
            "Chosen in the validation part: of {base} the weights with the best metric; of every other strategy, and of \
             \"{base}, chosen like the others\", those with the smallest gap between groups among those that lose at most \
             {tolerated} % {of}."
        ),
        Rule::Overall => "Chosen in the validation part: the weights with the best metric over all samples.".to_owned(),
        Rule::Minimax => {
            "Chosen in the validation part: the weights with the best worst group among those on the Pareto \
                          front of the groups."
                .to_owned()
        }
        Rule::Dto => "Chosen in the validation part: the weights nearest to the best value of every group.".to_owned(),
    }
}

/// No p value is below 1 / (draws + 1), and Holm multiplies the smallest by the number of changes.
fn too_few_draws(verdict: &Verdict) -> Option<String> {
    let n_changes = |block: &Block| {
        let chosen = block.rows.iter().filter_map(|row| row.chosen.as_ref());
        chosen
            .flat_map(|chosen| [&chosen.change, &chosen.difference_change])
            .flatten()
            .filter(|c| c.p_value.is_some())
            .count()
    };
    let n = verdict.blocks.iter().map(n_changes).max().unwrap_or(0);
    let smallest = n as f64 / (verdict.replicates + 1) as f64;
    (smallest > 1.0 - verdict.level).then(|| {
        format!(
            "With {} draws and {n} changes no adjusted p can be below {smallest:.3}: no change can be called different. Set \
             evaluation.replicates to at least {:.0}.",
            verdict.replicates,
            n as f64 / (1.0 - verdict.level)
        )
    })
}

/// The metric, and the difference between groups.
fn tables(block: &Block, verdict: &Verdict) -> [Table; 2] {
    let has_control = block.rows.iter().any(|row| row.role == Role::Control);
    let has_weights = block.has_weights();
    let base = has_control.then(|| format!("from {}", verdict.base));
    let contrast =
        block.contrast.as_ref().map_or_else(|| "difference".to_owned(), |c| format!("{} - {}", c.first, c.second));
    let head = |first: &[&str], weights: &[&str], then: &[&str], last: &[&str]| -> Vec<String> {
        let weights = if has_weights { weights } else { &[] };
        let names = first.iter().chain(weights).chain(then).map(|name| (*name).to_owned());
        names.chain(base.clone()).chain(last.iter().map(|name| (*name).to_owned())).collect()
    };
    let n_dashes = |n_weights: usize| 5 + usize::from(has_control) + if has_weights { n_weights } else { 0 };
    let of_metric = |row: &Standing| {
        let Some(chosen) = &row.chosen else {
            let why = format!("none: {}", row.none_because.as_deref().unwrap_or_default());
            return empty(row, n_dashes(2), why);
        };
        let from_base = has_control.then(|| points(chosen.change_from_base.as_ref(), true));
        let mut cells = vec![name(row), number(chosen.test.value)];
        if has_weights {
            cells.extend(horizon::cells(chosen.weighted.as_ref()));
        }
        cells.extend(tested(chosen.change.as_ref(), true));
        cells.extend(from_base);
        cells.extend([spread(row.over_seeds.value), place(chosen)]);
        cells
    };
    let of_groups = |row: &Standing| {
        let Some(chosen) = &row.chosen else { return empty(row, n_dashes(1), "-".to_owned()) };
        let from_base = has_control.then(|| points(chosen.difference_change_from_base.as_ref(), false));
        let mut cells = vec![name(row), number(chosen.test.gap)];
        cells.extend(has_weights.then(|| number(chosen.weighted.as_ref().and_then(|weighted| weighted.gap))));
        cells.push(signed(chosen.test.difference));
        cells.extend(tested(chosen.difference_change.as_ref(), false));
        cells.extend(from_base);
        cells.push(spread(row.over_seeds.gap));
        cells
    };
    let [with_weights, difference, gap_with_weights] = horizon::TITLES;
    let tests = ["change", "p", "Holm"];
    let of_contrast = [contrast.as_str(), "change", "p", "Holm"];
    let metric = head(&["strategy", &block.label], &[with_weights, difference], &tests, &["over seeds", "chosen"]);
    let groups = head(&["strategy", "gap"], &[gap_with_weights], &of_contrast, &["gap over seeds"]);
    [
        Table { head: metric, rows: block.rows.iter().map(of_metric).collect() },
        Table { head: groups, rows: block.rows.iter().map(of_groups).collect() },
    ]
}

pub(super) fn name(row: &Standing) -> String {
    match row.role {
        Role::Control => format!("{}, chosen like the others", row.strategy),
        Role::Base | Role::Strategy => row.strategy.clone(),
    }
}

/// A row without a choice; `n_dashes` is the number of cells between name and last cell.
fn empty(row: &Standing, n_dashes: usize, last: String) -> Vec<String> {
    let dashes = std::iter::repeat_n("-".to_owned(), n_dashes);
    std::iter::once(name(row)).chain(dashes).chain([last]).collect()
}

fn place(chosen: &Chosen) -> String {
    format!("{}, {}", chosen.run, chosen.weights)
}

pub(super) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.3}"))
}

pub(super) fn signed(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), |value| with_sign(value, 3))
}

/// With its sign, except for 0.
pub(super) fn with_sign(value: f64, n_digits: usize) -> String {
    let text = format!("{value:+.n_digits$}");
    if text[1..].bytes().all(|digit| matches!(digit, b'0' | b'.')) { text[1..].to_owned() } else { text }
}

fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => "undefined".to_owned(),
        Some(Spread { n: 1, median, .. }) => format!("{median:.3} (1 seed)"),
        Some(Spread { median, smallest, largest, .. }) => format!("{median:.3} ({smallest:.3} to {largest:.3})"),
    }
}

/// Change with interval, p value, adjusted p value.
fn tested(change: Option<&Change>, in_percent: bool) -> [String; 3] {
    let dash = || "-".to_owned();
    let Some(change) = change else { return [dash(), dash(), dash()] };
    let interval = if in_percent {
        change
            .percent_lower
            .zip(change.percent_upper)
            .map(|(lower, upper)| format!(" [{}, {}]", with_sign(lower, 1), with_sign(upper, 1)))
    } else {
        change
            .lower
            .zip(change.upper)
            .map(|(lower, upper)| format!(" [{}, {}]", with_sign(lower, 3), with_sign(upper, 3)))
    };
    let text = points(Some(change), in_percent) + &interval.unwrap_or_default();
    let p = |p: Option<f64>| p.map_or_else(dash, p_value);
    let mark = if change.different { " *" } else { "" };
    [text, p(change.p_value), p(change.p_holm) + mark]
}

pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// `p = 0.020`, `p < 0.001`.
fn p_is(p: f64) -> String {
    let text = p_value(p);
    if text.starts_with('<') { format!("p {text}") } else { format!("p = {text}") }
}

fn points(change: Option<&Change>, in_percent: bool) -> String {
    let Some(change) = change else { return "-".to_owned() };
    let value = if in_percent { change.percent } else { change.value };
    match value {
        None => "undefined".to_owned(),
        Some(percent) if in_percent => format!("{} %", with_sign(percent, 1)),
        Some(value) => with_sign(value, 3),
    }
}

/// The table in pieces that fit a terminal, each with the first column; a cell that is too long continues on the next line.
fn plain(table: &Table) -> Vec<String> {
    let Table { head, rows } = table;
    let all = || std::iter::once(head).chain(rows);
    let longest =
        |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let first = longest(0).min(LONGEST_NAME);
    let room = WIDTH - INDENT - first;
    let width = |column: usize| if column == 0 { first } else { longest(column).min(room - GAP) };
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut used = room;
    for column in 1..head.len() {
        let needed = GAP + width(column);
        if used + needed > room {
            pieces.push(vec![0]);
            used = 0;
        }
        used += needed;
        pieces.last_mut().expect("the first column begins a piece").push(column);
    }
    let of_piece = |piece: &Vec<usize>| {
        let columns: Vec<(usize, usize)> = piece.iter().map(|&column| (column, width(column))).collect();
        let lines: Vec<String> = all().flat_map(|row| lines_of(row, &columns)).collect();
        std::iter::once(String::new()).chain(lines).collect::<Vec<_>>()
    };
    pieces.iter().flat_map(of_piece).collect()
}

/// The cells of these columns (place and width), as many lines as the longest of them needs.
fn lines_of(row: &[String], columns: &[(usize, usize)]) -> Vec<String> {
    let cells: Vec<(Vec<String>, usize)> =
        columns.iter().map(|&(place, width)| (wrap(row.get(place).map_or("", String::as_str), width), width)).collect();
    let n_lines = cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
    let line = |k: usize| {
        let texts = cells.iter().map(|(lines, width)| {
            let text = lines.get(k).map_or("", String::as_str);
            format!("{text:<width$}")
        });
        let joined = texts.collect::<Vec<_>>().join(&" ".repeat(GAP));
        format!("{}{}", " ".repeat(INDENT), joined.trim_end())
    };
    (0..n_lines).map(line).collect()
}

/// The ranks over blocks, a text per metric and gap.
pub(super) fn all_ranks(verdict: &Verdict) -> Vec<String> {
    verdict.ranks.iter().map(|comparison| ranks(comparison, 1.0 - verdict.level)).collect()
}

fn ranks(comparison: &RankComparison, alpha: f64) -> String {
    let of = match comparison.of {
        Ranked::Gap => format!("gap in {}", comparison.label),
        Ranked::Metric => comparison.label.clone(),
    };
    let mut by_rank: Vec<(&String, f64)> =
        comparison.methods.iter().zip(comparison.average_ranks.iter().copied()).collect();
    by_rank.sort_by(|a, b| a.1.total_cmp(&b.1));
    let listed: Vec<String> = by_rank.iter().map(|(method, rank)| format!("{method} {rank:.1}")).collect();
    let test = match (comparison.friedman_chi_square, comparison.friedman_p) {
        (Some(chi_square), Some(p)) => format!(" Friedman: chi-square {chi_square:.1}, {}.", p_is(p)),
        _ => String::new(),
    };
    let left_out = match (&comparison.left_out[..], comparison.n_incomplete) {
        ([], 0) => String::new(),
        ([], n) => format!("; left out: {n} without a choice for every method"),
        (methods, n) => format!(
            "; left out: {} (no choice in most blocks), and {n} without a choice for every other method",
            methods.join(", ")
        ),
    };
    let pairs = differing_pairs(comparison, alpha);
    let n = comparison.n_blocks;
    format!("{of}: {}. {n} blocks{left_out}.{test} {}{pairs}.", listed.join(", "), comparison.note)
}

/// The pairs that differ by Nemenyi's test, at the level of Friedman's.
fn differing_pairs(comparison: &RankComparison, alpha: f64) -> String {
    let Some(p) = &comparison.nemenyi_p else { return String::new() };
    let methods = &comparison.methods;
    let pairs = (0..methods.len()).flat_map(|i| (i + 1..methods.len()).map(move |j| (i, j)));
    let differing: Vec<String> = pairs
        .filter(|(i, j)| p[*i][*j] <= alpha)
        .map(|(i, j)| format!("{} and {} ({})", methods[i], methods[j], p_is(p[i][j])))
        .collect();
    match &differing[..] {
        [] => "; Nemenyi's test tells no pair apart".to_owned(),
        pairs => format!("; Nemenyi's test tells apart {}", pairs.join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests;
