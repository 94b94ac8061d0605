//! The figures of a section as data: which values of which models, with their names. `report/` draws them.

use serde::Serialize;

use crate::report::{Dot, Dots, Scatter, Series};

/// A figure of a section.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Name of its file, and on the page.
    pub(crate) name: String,
    /// What it shows and how many values are behind it.
    pub(crate) caption: String,
    pub(crate) drawing: Drawing,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(crate) enum Drawing {
    Dots(Dots),
    Scatter(Scatter),
}

/// The files of a section, for `study.json`.
impl Serialize for Plot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

/// A name for files: `films-a sex*` becomes `films-a-sex`.
pub(super) fn file_name(words: &[&str]) -> String {
    let joined = words.join("-");
    let is_plain = |c: char| c.is_alphanumeric() || "._".contains(c);
    // One dash for whatever is between plain characters.
    joined.split(|c: char| !is_plain(c)).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}

/// A value without an interval.
pub(super) fn dot(value: Option<f64>) -> Option<Dot> {
    value.map(|value| Dot { value, interval: None })
}

/// Markers of `series` in a row per category.
pub(super) fn dots(
    name: String,
    caption: String,
    (title, axis): (String, &str),
    categories: Vec<String>,
    series: Vec<Series>,
    reference: Option<f64>,
) -> Plot {
    let drawing = Drawing::Dots(Dots { title, axis: axis.to_owned(), categories, series, reference });
    Plot { name, caption, drawing }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_of_files_have_no_blanks_stars_or_slashes() {
        assert_eq!(file_name(&["groups", "c-td", "Films a sex*"]), "groups-c-td-films-a-sex");
        assert_eq!(file_name(&["shift", "a/b", "{ fraction = [-0.2, 0.2] }"]), "shift-a-b-fraction-0.2-0.2");
    }
}
