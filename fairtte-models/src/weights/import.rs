//! Weights in our own form: a safetensors file with our names and shapes, and in its metadata where they came from.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::facts::{Facts, facts};
use super::hash::published;
use super::safetensors_file::header;
use super::select::NATIVE_MARK;
use super::{Fit, Layout, sha256};
use crate::{Backbone, ModelError};

/// Metadata on the first origin of the weights, for a file that is imported again.
fn inherited((key, value): &(String, String)) -> Option<(String, String)> {
    let key = match key.strip_prefix("source.") {
        Some(rest) => format!("origin.{rest}"),
        None if key.starts_with("fairtte.") => return None,
        None if key == "notes" => "origin.notes".to_owned(),
        None => key.clone(),
    };
    Some((key, value.clone()))
}

/// What the name of a published file says about its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedHash {
    /// The name contains no hash.
    None,
    /// The digits in the name are the first of its SHA-256.
    Agrees(String),
    /// They are not: the file is a different one, or damaged.
    Differs(String),
}

impl NamedHash {
    /// Compares the name of `path` with the SHA-256 of the file.
    pub fn of(path: &Path, sha256: &str) -> Self {
        match published(path) {
            None => Self::None,
            Some(digits) if sha256.starts_with(digits) => Self::Agrees(digits.to_owned()),
            Some(digits) => Self::Differs(digits.to_owned()),
        }
    }
}

impl Fit<'_> {
    /// Preprocessing and licence of such weights, where they are known; those of a run's own weights are in the file that
    /// was exported beside them.
    pub fn facts(&self, backbone: &Backbone) -> Option<Facts> {
        if self.is_export() { None } else { facts(backbone.kind(), self.layout(), self.is_told()) }
    }

    /// The metadata of an imported file on its origin, by key.
    pub fn provenance(&self, backbone: &Backbone) -> Vec<(String, String)> {
        let file = self.file();
        let name = file.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut entries = vec![
            (NATIVE_MARK, backbone.kind().name().to_owned()),
            ("fairtte.channels", backbone.n_channels().to_string()),
            ("fairtte.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("source.file", name),
            ("source.sha256", sha256(file.bytes())),
            ("source.container", file.container().name().to_owned()),
            ("source.layout", self.layout().name().to_owned()),
        ];
        if !self.notes().is_empty() {
            entries.push(("notes", self.notes().join("; ")));
        }
        if let Some(facts) = self.facts(backbone) {
            let numbers = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
            if !facts.mean.is_empty() {
                entries.push(("input.mean", numbers(facts.mean)));
                entries.push(("input.std", numbers(facts.std)));
            }
            entries.push(("input.resize", facts.resize.to_owned()));
            entries.push(("norm.eps", facts.norm_eps.to_string()));
            entries.push(("licence", facts.licence.to_owned()));
        }
        let mut entries: Vec<(String, String)> =
            entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        if self.is_export() {
            entries.extend(file.metadata().iter().map(|(key, value)| (format!("origin.{key}"), value.clone())));
        } else if self.layout() == Layout::Native {
            entries.extend(file.metadata().iter().filter_map(inherited));
        }
        entries
    }

    /// Writes the weights of `backbone` with their provenance as a safetensors file; needs memory for one tensor at a
    /// time.
    ///
    /// # Errors
    /// As [`require`](Fit::require), before anything is written; [`ModelError::WriteWeights`] if `out` fails, and the
    /// errors of a tensor that cannot be read; in both cases an incomplete file has been written.
    pub fn write(&self, backbone: &Backbone, out: &mut impl Write) -> Result<(), ModelError> {
        self.require()?;
        let metadata: Map<String, Value> =
            self.provenance(backbone).into_iter().map(|(key, value)| (key, Value::from(value))).collect();
        let failed = |error: std::io::Error| ModelError::WriteWeights { reason: error.to_string() };
        out.write_all(&header(metadata, self.shapes())).map_err(failed)?;
        for values in self.all_values() {
            let bytes: Vec<u8> = values?.into_iter().flat_map(f32::to_le_bytes).collect();
            out.write_all(&bytes).map_err(failed)?;
        }
        Ok(())
    }
}
