//! The origin of the labels of a cohort: the rule, its options, and one hash over everything that determines them.
//!
//! The content hash is BLAKE3 over the name and version of the rule, every option with its value, and the cells that
//! the rule and the attributes read, trimmed. It does not depend on the order of rows, on compression, line ends,
//! quotes or columns that are not used, so the same release and the same options give the same 64 digits everywhere.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cohort::Reason;

/// Rule, options and content hash of a cohort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Provenance {
    /// Name of the adapter: `mimic-cxr`.
    pub adapter: String,
    /// The label rule in one sentence.
    pub rule: String,
    /// Version of the label rule; changes whenever the same tables would give different labels.
    pub rule_version: u32,
    /// Every option with the value it had, in the order of the documentation.
    pub options: Vec<(String, String)>,
    /// The reasons for which this data set may leave out a row before images are decoded.
    pub reasons: Vec<Reason>,
    /// Hash over everything that determines the labels; 64 hexadecimal digits.
    pub content_hash: String,
    /// The column that the class of every sample was read from; `None` of data with times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The column with the mask of every sample; `None` of data without masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// Notes for the user about the rows read, one sentence each, for the terminal and the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What the outcomes of the samples of a data set are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutcomeKind {
    /// Times and events.
    #[default]
    Times,
    /// A class that was read: an event is a positive sample, and times mean nothing.
    Class,
    /// Masks: neither times nor events mean anything.
    Masks,
}

impl Provenance {
    /// What the outcomes are.
    pub fn outcome_kind(&self) -> OutcomeKind {
        match (&self.label, &self.mask) {
            (_, Some(_)) => OutcomeKind::Masks,
            (Some(_), None) => OutcomeKind::Class,
            (None, None) => OutcomeKind::Times,
        }
    }
}

/// Hashes the cells that determine the labels, independently of the order of rows.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher {
    tables: Vec<(String, Vec<[u8; 16]>)>,
    /// Buffer for the current row, reused because there are a million rows.
    row: Vec<u8>,
}

impl ContentHasher {
    /// An empty hash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a table called `name`, to which the following rows belong; a fixed name, not that of the file.
    #[must_use]
    pub fn table(mut self, name: &str) -> Self {
        self.tables.push((name.to_owned(), Vec::new()));
        self
    }

    /// Adds one row; an absent cell counts as empty.
    ///
    /// # Panics
    /// If no table was started before.
    pub fn row<'a>(&mut self, cells: impl IntoIterator<Item = Option<&'a str>>) {
        self.row.clear();
        for cell in cells {
            let cell = cell.unwrap_or_default();
            // The length distinguishes "ab" + "c" from "a" + "bc".
            self.row.extend_from_slice(&(cell.len() as u64).to_le_bytes());
            self.row.extend_from_slice(cell.as_bytes());
        }
        let mut digest = [0; 16];
        // In one call: setting up a hasher for many pieces costs more than the few bytes of a row.
        digest.copy_from_slice(&blake3::hash(&self.row).as_bytes()[..16]);
        self.tables.last_mut().expect("a table was named before its rows").1.push(digest);
    }

    /// Adds the rows of another part of the same table.
    pub(crate) fn more_rows(&mut self, part: Self) {
        for (name, rows) in part.tables {
            match self.tables.last_mut() {
                Some((table, all)) if *table == name => all.extend(rows),
                _ => self.tables.push((name, rows)),
            }
        }
    }

    /// Adds all tables of another hasher after those of this one.
    pub fn append(&mut self, other: Self) {
        self.tables.extend(other.tables);
    }

    /// Finishes the hash and returns the provenance; `options` are part of the hash.
    pub fn finish(
        self,
        adapter: &str,
        rule: String,
        rule_version: u32,
        options: Vec<(String, String)>,
        reasons: &[Reason],
    ) -> Provenance {
        let mut hasher = blake3::Hasher::new();
        let mut text = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        text(adapter);
        text(&rule_version.to_string());
        for (key, value) in &options {
            text(key);
            text(value);
        }
        for (name, mut rows) in self.tables {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            hasher.update(&(rows.len() as u64).to_le_bytes());
            rows.par_sort_unstable();
            hasher.update(rows.as_flattened());
        }
        Provenance {
            adapter: adapter.to_owned(),
            rule,
            rule_version,
            options,
            reasons: reasons.to_vec(),
            content_hash: hasher.finalize().to_hex().to_string(),
            label: None,
            mask: None,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(rows: &[[&str; 2]], options: &[(&str, &str)]) -> String {
        let mut hasher = ContentHasher::new().table("patients");
        for row in rows {
            hasher.row(row.iter().map(|cell| Some(*cell)));
        }
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        hasher.finish("made-up", "a rule".to_owned(), 1, options, &[]).content_hash
    }

    #[test]
    fn a_table_in_parts_is_the_same_table() {
        let part = |rows: &[[&str; 1]]| {
            let mut hasher = ContentHasher::new().table("patients");
            for row in rows {
                hasher.row(row.iter().map(|cell| Some(*cell)));
            }
            hasher
        };
        let hash = |hasher: ContentHasher| hasher.finish("made-up", String::new(), 1, Vec::new(), &[]).content_hash;
        let mut parts = ContentHasher::new().table("patients");
        parts.more_rows(part(&[["a"], ["b"]]));
        parts.more_rows(part(&[["c"]]));
        assert_eq!(hash(parts), hash(part(&[["c"], ["b"], ["a"]])));
        let mut two = part(&[["a"], ["b"]]);
        two.append(part(&[["c"]]));
        assert_ne!(hash(two), hash(part(&[["c"], ["b"], ["a"]])), "two tables of the same name are not one table");
    }

    #[test]
    fn the_order_of_rows_is_not_part_of_the_hash_and_everything_else_is() {
        let first = hash(&[["a", "1"], ["b", "2"]], &[]);
        assert_eq!(first.len(), 64);
        assert_eq!(first, hash(&[["b", "2"], ["a", "1"]], &[]));
        for (rows, options) in [
            (vec![["a", "1"]], vec![]),
            (vec![["a", "1"], ["b", "2"], ["b", "2"]], vec![]),
            (vec![["a1", ""], ["b", "2"]], vec![]),
            (vec![["a", "2"], ["b", "1"]], vec![]),
            (vec![["a", "1"], ["b", "2"]], vec![("death", "dod")]),
        ] {
            assert_ne!(first, hash(&rows, &options), "{rows:?} {options:?}");
        }
    }
}
