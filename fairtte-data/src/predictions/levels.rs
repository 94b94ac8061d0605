//! Values of an attribute that may not be groups of their own: several spellings of one, and words for a missing value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Words that may stand for a missing value; compared in lower case, with spaces for underscores and hyphens.
const NO_VALUE: [&str; 13] = [
    "missing",
    "unknown",
    "other",
    "not reported",
    "not available",
    "not specified",
    "unspecified",
    "undetermined",
    "declined",
    "n/a",
    "na",
    "nan",
    "?",
];
/// A name needs this many letters for its initial to be an abbreviation: blood groups A and AB are two.
const FEWEST_LETTERS: usize = 3;

/// Values of an attribute that may not be groups of their own, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoubtfulLevels {
    /// They differ by case, or one is the initials of another (`F`, `female`, `Female`).
    OneMeaning {
        /// The attribute.
        attribute: String,
        /// The values, sorted.
        values: Vec<String>,
    },
    /// Words that may stand for a missing value (`unknown`, `n/a`).
    NoValue {
        /// The attribute.
        attribute: String,
        /// The values, sorted.
        values: Vec<String>,
    },
}

impl fmt::Display for DoubtfulLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[String]| values.iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Self::OneMeaning { attribute, values } => write!(
                f,
                "{attribute} has the values {}, which differ by case or are initials of each other and are compared as \
                 different values: if they mean the same, write them the same",
                list(values)
            ),
            Self::NoValue { attribute, values } => write!(
                f,
                "{attribute} has {} {}, which may stand for a missing value and {} compared like any other",
                if values.len() == 1 { "the value" } else { "the values" },
                list(values),
                if values.len() == 1 { "is" } else { "are" }
            ),
        }
    }
}

/// The doubtful ones among the `values` of an attribute; numbers are not. Cost: a sort of the distinct values.
pub fn doubtful_levels<'a>(attribute: &str, values: impl IntoIterator<Item = &'a str>) -> Vec<DoubtfulLevels> {
    let values: BTreeSet<&str> = values.into_iter().filter(|value| value.parse::<f64>().is_err()).collect();
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for value in &values {
        by_name.entry(value.trim().to_lowercase()).or_default().push(value);
    }
    // Names with their abbreviation, if that is a value too.
    let mut alike: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, spellings) in &by_name {
        let short = initials(name).filter(|short| by_name.contains_key(short)).unwrap_or_else(|| name.clone());
        alike.entry(short).or_default().extend(spellings);
    }
    let owned = |values: BTreeSet<&str>| values.into_iter().map(str::to_owned).collect();
    let attribute = attribute.to_owned();
    let mut doubtful = Vec::new();
    for values in alike.into_values().filter(|values| values.len() > 1) {
        doubtful.push(DoubtfulLevels::OneMeaning { attribute: attribute.clone(), values: owned(values) });
    }
    let is_no_value = |value: &&str| NO_VALUE.contains(&value.trim().to_lowercase().replace(['_', '-'], " ").as_str());
    let no_value: BTreeSet<&str> = values.into_iter().filter(is_no_value).collect();
    if !no_value.is_empty() {
        doubtful.push(DoubtfulLevels::NoValue { attribute, values: owned(no_value) });
    }
    doubtful
}

/// The first letters of the words of a name in lower case; `None` if it is too short, a Roman number, or no word.
fn initials(name: &str) -> Option<String> {
    let is_roman = name.chars().all(|letter| "ivxlcdm".contains(letter));
    let words: Vec<&str> = name.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let is_word = name.chars().all(|letter| letter.is_alphabetic() || letter == ' ' || letter == '-');
    let n_letters: usize = words.iter().map(|word| word.chars().count()).sum();
    (is_word && !is_roman && n_letters >= FEWEST_LETTERS)
        .then(|| words.iter().filter_map(|word| word.chars().next()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(values: &[&str]) -> Vec<String> {
        doubtful_levels("x", values.iter().copied()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn spellings_of_one_value_are_listed_together() {
        let expected = "x has the values \"F\", \"Female\", \"female\", which differ by case or are initials of each other and \
                        are compared as different values: if they mean the same, write them the same";
        assert_eq!(notes(&["female", "M", "F", "Female", "F"]), [expected]);
        assert!(
            notes(&["AA", "african american", "White"])[0]
                .starts_with("x has the values \"AA\", \"african american\",")
        );
        assert_eq!(notes(&["F", "female", "m", "Male"]).len(), 2, "two pairs");
    }

    #[test]
    fn different_values_are_not_doubted() {
        for values in [&["F", "M"][..], &["I", "II", "III"], &["A", "B", "AB"], &["1", "1.0"], &["Black", "White"]] {
            assert_eq!(notes(values), Vec::<String>::new(), "{values:?}");
        }
        assert_eq!(notes(&["ER+", "ER-", "A+", "A-"]), Vec::<String>::new());
    }

    #[test]
    fn words_for_a_missing_value_are_listed_whatever_their_case() {
        let expected = "x has the values \"Not_Reported\", \"UNKNOWN\", which may stand for a missing value and are compared \
                        like any other";
        assert_eq!(notes(&["White", "UNKNOWN", "Not_Reported"]), [expected]);
        let expected = "x has the value \"n/a\", which may stand for a missing value and is compared like any other";
        assert_eq!(notes(&["a", "n/a"]), [expected]);
    }
}
