//! The tables of a page as files of their own, for papers: Markdown and LaTeX.
//!
//! They are made of the same lines as those of the page. Remarks on numbers become footnotes.

pub(super) mod evaluation;
mod external;
mod latex;
pub(super) mod markdown;
mod several;
#[cfg(test)]
mod tests;

use super::format::clean;

pub(crate) use evaluation::tables_of_page;
pub(crate) use external::tables_of_external;
pub(crate) use several::tables_of_models;

/// A table with its texts, not yet escaped.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    /// Stem of the files, unique on the page.
    pub(crate) name: String,
    pub(super) caption: String,
    /// The first column has names, all others numbers.
    pub(super) header: Vec<String>,
    pub(super) lines: Vec<Line>,
}

/// A line of a table.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// The attribute of the groups below.
    Heading(String),
    /// One cell per column, and remarks on them.
    Cells { cells: Vec<String>, indented: bool, remarks: Vec<String> },
    /// A sentence on the lines above.
    Note(String),
}

impl Table {
    /// The table in Markdown: pipes, as GitHub and Pandoc read them.
    pub(crate) fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// The table in LaTeX, for the package `booktabs`.
    pub(crate) fn latex(&self) -> String {
        latex::render(self)
    }

    /// Every different remark once, in the order of the lines, and every note.
    fn footnotes(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut remarks, mut notes) = (Vec::new(), Vec::new());
        for line in &self.lines {
            match line {
                Line::Cells { remarks: of_line, .. } => remarks.extend(of_line.iter().map(String::as_str)),
                Line::Note(note) => notes.push(note.as_str()),
                Line::Heading(_) => {}
            }
        }
        let mut different: Vec<&str> = Vec::new();
        for remark in remarks {
            if !different.contains(&remark) {
                different.push(remark);
            }
        }
        (different, notes)
    }
}

/// The letters of the footnotes of a line, for example `a,c`; empty without remarks.
fn marks(remarks: &[String], footnotes: &[&str]) -> String {
    let place = |remark: &String| footnotes.iter().position(|footnote| *footnote == remark.as_str());
    remarks.iter().filter_map(place).map(letter).collect::<Vec<_>>().join(",")
}

/// `a` to `z`, then `a2` and so on.
fn letter(place: usize) -> String {
    let letter = char::from(b"abcdefghijklmnopqrstuvwxyz"[place % 26]);
    if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26 + 1) }
}

/// The text character by character, each escaped by `escaped`, with the `td` of `C^td` and `AUC^td` put into `raised`.
fn marked_up(text: &str, escaped: impl Fn(char, &mut String), raised: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for (place, part) in clean(text).split("^td").enumerate() {
        if place > 0 {
            result.push_str(raised);
        }
        part.chars().for_each(|c| escaped(c, &mut result));
    }
    result
}
