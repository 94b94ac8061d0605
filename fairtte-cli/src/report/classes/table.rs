//! The tables for a terminal.

use fairtte_metrics::evaluation::{ClassModels, HorizonReport};

use super::super::format::{clean, elide, wrap};
use super::super::render_table;
use super::sections::{ClassTable, all};
use super::{ClassPage, class_tables, words};

const INDENT: &str = "  ";
const MIN_WIDTH: usize = 72;
/// Width of the names of rows, if there is room.
const NAMES: usize = 44;

/// What leaving out the censored does comes first; then the metrics, who was evaluated, decisions and criteria.
pub(super) fn render(page: &ClassPage<'_>, width: usize, colour: bool) -> String {
    let width = width.max(MIN_WIDTH);
    let mut text = render_table(page.numbers.evaluation, width, colour);
    let mut extra = String::new();
    for line in wrap(&clean(page.threshold), width) {
        extra.push_str(&line);
        extra.push('\n');
    }
    for line in words::left_out(&page.numbers).iter().flat_map(|said| wrap(&clean(said), width)) {
        extra.push_str(&line);
        extra.push('\n');
    }
    // After the counts and the line on intervals.
    let place = text.find("\n\n").map_or(text.len(), |place| place + 1);
    text.insert_str(place, &extra);
    for table in all(&page.numbers) {
        text.push('\n');
        push(&mut text, &table, width);
    }
    text
}

/// Tables of several models.
pub(super) fn of_models(models: &ClassModels, horizon: &[HorizonReport], width: usize) -> String {
    let mut text = String::new();
    for table in class_tables(models, horizon) {
        text.push('\n');
        push(&mut text, &table, width.max(MIN_WIDTH));
    }
    text
}

/// A table in columns as wide as their texts; columns that do not fit continue below, under the same names.
pub(in super::super) fn push(text: &mut String, table: &ClassTable, width: usize) {
    wrapped(text, "", &table.caption, width);
    let cells = |column: usize| table.rows.iter().filter_map(move |row| row.cells.get(column));
    let wide = |column: usize| {
        let longest = cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(table.header[column + 1].chars().count())
    };
    let names = table.rows.iter().map(|row| row.name.chars().count() + INDENT.len()).max().unwrap_or(0);
    let names = names.clamp(table.header[0].chars().count(), NAMES);
    let mut first = 0;
    let n_columns = table.header.len() - 1;
    while first < n_columns {
        let (mut used, mut end) = (names + 2 + wide(first), first + 1);
        while end < n_columns && used + 2 + wide(end) <= width {
            used += 2 + wide(end);
            end += 1;
        }
        let columns: Vec<usize> = (first..end).collect();
        let line = |name: &str, cell: &dyn Fn(usize) -> String| {
            let mut line = format!("{name:<names$}");
            for column in &columns {
                let cell = format!("  {:>wide$}", cell(*column), wide = wide(*column));
                line.push_str(&cell);
            }
            format!("{}\n", line.trim_end())
        };
        text.push_str(&line("", &|column| table.header[column + 1].clone()));
        for row in &table.rows {
            let indent = if row.kind == "group" { INDENT } else { "" };
            let name = format!("{indent}{}", elide(&clean(&row.name), names - indent.len()));
            text.push_str(&line(&name, &|column| row.cells.get(column).cloned().unwrap_or_default()));
            if let (Some(remark), true) = (&row.remark, end == n_columns) {
                wrapped(text, &INDENT.repeat(2), remark, width);
            }
        }
        first = end;
    }
}

fn wrapped(text: &mut String, indent: &str, sentence: &str, width: usize) {
    for line in wrap(&clean(sentence), width - indent.len()) {
        text.push_str(indent);
        text.push_str(&line);
        text.push('\n');
    }
}
