//! An inspection as text: one line per property, the names aligned.

use std::fmt;

use super::{Inspection, Number, shown_size};
use crate::{AffineSource, ByteOrder, Matrix};

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, fact) in self.facts() {
            writeln!(f, "{name:<17} {fact}")?;
        }
        Ok(())
    }
}

impl Inspection {
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![
            ("path".to_owned(), self.path.display().to_string()),
            ("format".to_owned(), self.shown_format()),
            ("stored size".to_owned(), shown_size(&self.stored_size)),
        ];
        let mut fact = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                facts.push((name.to_owned(), value));
            }
        };
        fact("slices", self.n_slices.map(|n| n.to_string()));
        fact(
            "oriented size",
            self.oriented_size.as_deref().map(|size| format!("{}{}", shown_size(size), self.oriented_how())),
        );
        fact("dtype", Some(self.dtype.clone()));
        fact("channels", Some(self.channels.to_string()));
        let scaling = self.slope.zip(self.intercept);
        fact("slope, intercept", scaling.map(|(slope, shift)| format!("{}, {}", Number(slope), Number(shift))));
        for (name, value) in [("min", self.min), ("max", self.max), ("mean", self.mean)] {
            fact(name, Some(value.map_or_else(|| "none".to_owned(), |value| Number(value).to_string())));
        }
        fact("non-finite values", Some(self.n_non_finite.to_string()));
        let spacing = self.spacing.as_ref();
        fact("spacing", spacing.map(|all| all.iter().map(Number::to_string).collect::<Vec<_>>().join(" x ")));
        fact("stored axes", self.axis_codes.as_ref().map(|codes| format!("run to {codes}")));
        let source = self.affine_source.map(|source| match source {
            AffineSource::Sform => "sform",
            AffineSource::Qform => "qform",
            AffineSource::Spacing => "spacing alone",
            AffineSource::Slices => "the slices",
        });
        fact("affine", self.affine.zip(source).map(|(matrix, source)| format!("{} (from {source})", rows(&matrix))));
        fact("affine of RAS+", self.canonical_affine.as_ref().map(rows));
        fact("EXIF orientation", self.exif_orientation.map(|orientation| orientation.to_string()));
        for value in &self.at {
            let index = value.index.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let shown = |value: &Option<_>| value.as_ref().map_or_else(|| "outside".to_owned(), ToString::to_string);
            let oriented = if self.affine.is_some() { "RAS+" } else { "upright" };
            let text = format!("stored {}, {oriented} {}", shown(&value.stored), shown(&value.oriented));
            fact(&format!("at {index}"), Some(text));
        }
        for note in &self.notes {
            fact("note", Some(note.clone()));
        }
        facts
    }

    fn shown_format(&self) -> String {
        let order = match self.byte_order {
            Some(ByteOrder::Little) => ", little endian",
            Some(ByteOrder::Big) => ", big endian",
            None => "",
        };
        format!("{}{}{order}", self.format, if self.gzip { ", gzipped" } else { "" })
    }

    fn oriented_how(&self) -> &'static str {
        if self.affine.is_some() { " (right, anterior, superior)" } else { "" }
    }
}

/// The first three rows; the last is always 0 0 0 1.
fn rows(matrix: &Matrix) -> String {
    let row = |row: &[f64; 4]| format!("[{}]", row.map(|entry| Number(entry).to_string()).join(", "));
    matrix[..3].iter().map(row).collect::<Vec<_>>().join(" ")
}
