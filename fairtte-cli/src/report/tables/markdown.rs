//! A table in Markdown.

use super::{Line, Table, letter, marked_up, marks};

pub(super) fn render(table: &Table) -> String {
    let (footnotes, notes) = table.footnotes();
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let n_columns = table.header.len();
    let mut text = format!("**{}**\n\n", escape(&table.caption));
    text += &row(table.header.iter().map(|name| escape(name)).collect());
    text += &row((0..n_columns).map(|k| if k == 0 { ":---" } else { "---:" }.to_owned()).collect());
    for line in &table.lines {
        match line {
            Line::Heading(name) => {
                let empty = std::iter::repeat_n(String::new(), n_columns.saturating_sub(1));
                text += &row(std::iter::once(format!("**{}**", escape(name))).chain(empty).collect());
            }
            Line::Cells { cells, indented, remarks } => {
                let mut cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
                if let Some(name) = cells.first_mut() {
                    let (indent, marks) = (if *indented { "&emsp;" } else { "" }, marks(remarks, &footnotes));
                    let marks = if marks.is_empty() { marks } else { format!("<sup>{marks}</sup>") };
                    *name = format!("{indent}{name}{marks}");
                }
                text += &row(cells);
            }
            Line::Note(_) => {}
        }
    }
    for (k, footnote) in footnotes.iter().enumerate() {
        text.extend([format!("\n<sup>{}</sup> {}\n", letter(k), escape(footnote))]);
    }
    for note in notes {
        text.extend([format!("\n{}\n", escape(note))]);
    }
    text
}

/// Text as it is, whatever it contains.
pub(in super::super) fn escape(text: &str) -> String {
    let escaped = |c: char, text: &mut String| match c {
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        '&' => text.push_str("&amp;"),
        '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '#' | '^' => text.extend(['\\', c]),
        other => text.push(other),
    };
    marked_up(text, escaped, "<sup>td</sup>")
}
