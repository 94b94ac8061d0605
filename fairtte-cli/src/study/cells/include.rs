//! `[[include]]`: cells beside those of the blocks.

use std::collections::BTreeMap;

use super::{AXES, Block, Cell, ShiftLevel, base_cell, levels};
use crate::CliError;
use crate::study::file::{OneOrMore, StudyFile};

/// The cells of all entries: one per combination of the values of an entry. An axis without a value is that of the base; data
/// sets and attributes without a value are all of the study. `attributes` by data set.
///
/// # Errors
/// [`CliError::Config`] naming the entry, the axis and what is known, and an entry that yields no cell.
pub(super) fn cells(study: &StudyFile, attributes: &[Vec<String>]) -> Result<Vec<Cell>, CliError> {
    let mut found = Vec::new();
    for (i, entry) in study.include.iter().enumerate() {
        check(study, attributes, i, entry)?;
        let of_entry = of_entry(study, attributes, entry)?;
        if of_entry.is_empty() {
            return Err(CliError::setting(&format!("include.{i}"), format!("it includes no cell: {entry:?}"), None));
        }
        found.extend(of_entry);
    }
    Ok(found)
}

/// Sets an axis of a cell to a word.
type Set = fn(&mut Cell, &str);

/// The axes whose words an entry sets as they are.
const PLAIN: [(&str, Set); 4] = [
    ("head", |cell, word| word.clone_into(&mut cell.head)),
    ("start", |cell, word| word.clone_into(&mut cell.start)),
    ("backbone", |cell, word| cell.backbone = Some(word.to_owned())),
    ("strategy", |cell, word| word.clone_into(&mut cell.strategy)),
];

fn of_entry(
    study: &StudyFile,
    attributes: &[Vec<String>],
    entry: &BTreeMap<String, OneOrMore>,
) -> Result<Vec<Cell>, CliError> {
    let is_asked = |axis: &str, word: &str| entry.get(axis).is_none_or(|words| words.words().iter().any(|w| w == word));
    let mut found = Vec::new();
    for (data, of_data) in attributes.iter().enumerate().filter(|(i, _)| is_asked("data", &study.data[*i].name)) {
        for attribute in of_data.iter().filter(|name| is_asked("attribute", name)) {
            let base = base_cell(study, Block::Include, data, attribute);
            let shifts: Vec<Option<ShiftLevel>> = if entry.contains_key("shift") || entry.contains_key("level") {
                let all = levels(study, attribute)?.into_iter();
                let is_in = |of: &ShiftLevel| is_asked("shift", &of.name) && is_asked("level", &of.level.to_string());
                all.filter(is_in).map(Some).collect()
            } else {
                vec![None]
            };
            let mut cells: Vec<Cell> = shifts.into_iter().map(|shift| Cell { shift, ..base.clone() }).collect();
            for (axis, set) in PLAIN {
                let Some(words) = entry.get(axis) else { continue };
                let with = |cell: &Cell, word: &String| {
                    let mut cell = cell.clone();
                    set(&mut cell, word);
                    cell
                };
                cells = cells.iter().flat_map(|cell| words.words().iter().map(|word| with(cell, word))).collect();
            }
            found.extend(cells);
        }
    }
    Ok(found)
}

/// Every axis of an entry exists, and every value that the study file lists elsewhere. Heads and strategies need not be listed:
/// the run file checks their names.
fn check(
    study: &StudyFile,
    attributes: &[Vec<String>],
    i: usize,
    entry: &BTreeMap<String, OneOrMore>,
) -> Result<(), CliError> {
    for (axis, words) in entry {
        let known: Vec<&str> = match axis.as_str() {
            "data" => study.data.iter().map(|data| data.name.as_str()).collect(),
            "attribute" => attributes.iter().flatten().map(String::as_str).collect(),
            "start" => study.starts.keys().map(String::as_str).collect(),
            "backbone" => study.backbones.keys().map(String::as_str).collect(),
            "shift" => study.shifts.keys().map(String::as_str).collect(),
            "head" | "strategy" | "level" => continue,
            _ => {
                let axes = AXES.iter().filter(|axis| **axis != "block").copied().collect::<Vec<_>>().join(", ");
                let message = format!("there is no axis \"{axis}\", expected {axes}");
                return Err(CliError::setting(&format!("include.{i}"), message, None));
            }
        };
        if let Some(unknown) = words.words().iter().find(|word| !known.contains(&word.as_str())) {
            let message = format!("\"{unknown}\", expected one of {}", known.join(", "));
            return Err(CliError::setting(&format!("include.{i}.{axis}"), message, None));
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    /// A study of two data sets, the first with two attributes, and the entries of `[[include]]`.
    fn included(entries: &str) -> Result<Vec<String>, String> {
        let text = format!(
            "name = \"s\"\noutput = \"s\"\nheads = {{ names = [\"pmf\", \"deephit\"] }}\nshift-group = {{ sex = \"F\", age = 1 }}\n\
             data = [{{ name = \"a\", run-file = \"a\" }}, {{ name = \"b\", run-file = \"b\" }}]\n\
             backbones = {{ big = {{}} }}\nshifts = {{ image = {{ blur = [1.0, 2.0] }} }}\n{entries}"
        );
        let study: StudyFile = toml::from_str(&text).unwrap();
        let attributes = [vec!["sex".to_owned(), "age".to_owned()], vec!["sex".to_owned()]];
        let words = |cell: &Cell| AXES.map(|axis| cell.word(axis, &study).unwrap()).join(" ");
        cells(&study, &attributes).map(|cells| cells.iter().map(words).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_is_every_combination_of_its_values_on_the_base() {
        let heads =
            included("[[include]]\nhead = [\"pmf\", \"cox\"]\nstrategy = \"sam\"\nattribute = \"sex\"").unwrap();
        let expected =
            ["a sex pmf", "a sex cox", "b sex pmf", "b sex cox"].map(|cell| format!("include {cell} scratch  sam  "));
        assert_eq!(heads, expected);
        let shifted = included("[[include]]\nshift = \"image\"\nlevel = \"2.0\"\ndata = \"b\"").unwrap();
        assert_eq!(shifted, ["include b sex pmf scratch  erm image 2.0"]);
        let backbone = included("[[include]]\nbackbone = \"big\"\ndata = \"b\"").unwrap();
        assert_eq!(backbone, ["include b sex pmf scratch big erm  "]);
        assert_eq!(included("[[include]]").unwrap().len(), 3, "the base on every data set and attribute");
    }

    #[test]
    fn what_is_unknown_is_named() {
        for (entry, sentence) in [
            ("colour = \"red\"", "include.0: there is no axis \"colour\", expected data, attribute,"),
            ("block = \"fair\"", "include.0: there is no axis \"block\""),
            ("data = \"c\"", "include.0.data: \"c\", expected one of a, b"),
            ("start = [\"scratch\", \"warm\"]", "include.0.start: \"warm\", expected one of scratch"),
            ("data = \"b\"\nattribute = \"age\"", "include.0: it includes no cell"),
            ("shift = \"image\"\nlevel = \"9\"", "include.0: it includes no cell"),
        ] {
            let error = included(&format!("[[include]]\n{entry}")).unwrap_err();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
