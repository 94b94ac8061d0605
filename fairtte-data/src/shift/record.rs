//! The changes of a distribution shift, sample by sample.

use std::fmt;
use std::path::Path;

use fairtte_metrics::{SampleId, SubjectId};
use serde::{Deserialize, Serialize};

use super::config::{ShiftConfig, TimeNoise};
use crate::DataError;
use crate::table::{ColumnValues, write_csv};

/// Settings and effects of a distribution shift, for the run record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShiftRecord {
    /// The settings.
    pub settings: ShiftConfig,
    /// The seed of the run that noise and flips were derived from.
    pub seed: u64,
    /// Name of the group that was changed.
    pub group: String,
    /// Samples of the training part.
    pub n_train: usize,
    /// Training samples of the group.
    pub n_group: usize,
    /// Events among them before the flip.
    pub n_group_events: usize,
    /// Lowest and highest noise in the unit of the times; `None` without noise.
    pub noise_range: Option<[f64; 2]>,
    /// Images that are blurred.
    pub n_blurred: usize,
    /// Times that differ from before.
    pub n_times_changed: usize,
    /// Samples whose range of noise was cut so that the time stays above 0.
    pub n_ranges_cut: usize,
    /// Events that became censored.
    pub n_flipped: usize,
    /// Samples with the inputs of another sample of the group.
    #[serde(default)]
    pub n_permuted: usize,
    /// Samples that left the training part.
    #[serde(default)]
    pub n_left_out: usize,
    /// Every changed sample, in the order of the cohort.
    pub changed: Vec<ChangedSample>,
}

/// One changed sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "what was changed, one column each")]
pub struct ChangedSample {
    /// Its identity.
    pub sample_id: SampleId,
    /// The person.
    pub subject_id: SubjectId,
    /// Whether the image is blurred.
    pub blurred: bool,
    /// Time before.
    pub time_before: f64,
    /// Time after.
    pub time: f64,
    /// Event before.
    pub event_before: bool,
    /// Event after.
    pub event: bool,
    /// The sample whose inputs it has, if not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_of: Option<SampleId>,
    /// Whether it left the training part.
    #[serde(default)]
    pub left_out: bool,
}

impl ShiftRecord {
    /// Writes `sample_id, subject_id, blurred, time_before, time, event_before, event, inputs_of, left_out`, one line per changed
    /// sample in the order of the cohort, atomically; 1 = yes, 0 = no; `inputs_of` is empty of a sample with its own inputs.
    ///
    /// # Errors
    /// [`DataError::Write`] naming `path`.
    pub fn write_csv(&self, path: &Path) -> Result<(), DataError> {
        let text = |of: &dyn Fn(&ChangedSample) -> String| ColumnValues::text(self.changed.iter().map(of));
        let yes = |of: &dyn Fn(&ChangedSample) -> bool| {
            ColumnValues::Integer(self.changed.iter().map(|sample| i64::from(of(sample))).collect())
        };
        let number = |of: &dyn Fn(&ChangedSample) -> f64| ColumnValues::Number(self.changed.iter().map(of).collect());
        let columns = vec![
            ("sample_id".to_owned(), text(&|sample| sample.sample_id.to_string())),
            ("subject_id".to_owned(), text(&|sample| sample.subject_id.to_string())),
            ("blurred".to_owned(), yes(&|sample| sample.blurred)),
            ("time_before".to_owned(), number(&|sample| sample.time_before)),
            ("time".to_owned(), number(&|sample| sample.time)),
            ("event_before".to_owned(), yes(&|sample| sample.event_before)),
            ("event".to_owned(), yes(&|sample| sample.event)),
            (
                "inputs_of".to_owned(),
                text(&|sample| sample.inputs_of.as_ref().map(ToString::to_string).unwrap_or_default()),
            ),
            ("left_out".to_owned(), yes(&|sample| sample.left_out)),
        ];
        write_csv(path, columns)
    }
}

impl fmt::Display for ShiftRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, group, n_group, n_train, .. } = self;
        write!(
            f,
            "distribution shift in the training part, {} {group} ({n_group} of {n_train} samples):",
            settings.attribute
        )?;
        let mut separator = "";
        if let Some(sigma) = settings.blur {
            write!(f, " {} images blurred (sigma {sigma} pixels)", self.n_blurred)?;
            separator = ",";
        }
        if let (Some(noise), Some([low, high])) = (settings.time_noise, self.noise_range) {
            let of_largest = match noise {
                TimeNoise::Absolute(_) => String::new(),
                TimeNoise::Fraction([low, high]) => format!(" ({low} to {high} of the largest training time)"),
            };
            write!(
                f,
                "{separator} noise between {low} and {high}{of_largest} added to {} times",
                self.n_times_changed
            )?;
            if self.n_ranges_cut > 0 {
                write!(f, ", for {} of them only its part that keeps the time above 0", self.n_ranges_cut)?;
            }
            separator = ",";
        }
        if let Some(share) = settings.censoring_flip {
            let n = self.n_group_events;
            write!(f, "{separator} {} of {n} events made censored (share {share})", self.n_flipped)?;
            separator = ",";
        }
        if let Some(share) = settings.permute {
            write!(f, "{separator} {} samples have the inputs of another (share {share})", self.n_permuted)?;
            separator = ",";
        }
        if let Some(share) = settings.undersample {
            write!(f, "{separator} {} samples left out of training (share {share})", self.n_left_out)?;
        }
        Ok(())
    }
}
