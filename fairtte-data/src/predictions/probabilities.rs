//! `predictions.parquet` of a class: columns `sample_id` and `probability`, the predicted probability of the positive class.

use std::path::Path;

use fairtte_metrics::SampleId;

use super::class_table::{PROBABILITY, probabilities};
use super::file::{SAMPLE, read_samples, refuse_repeated};
use crate::DataError;
use crate::table::{ColumnValues, Table, write_parquet};

/// Probabilities of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilityTable {
    /// The samples in the order of the file.
    pub samples: Vec<SampleId>,
    /// Probability of the positive class, `[n]`, in \[0, 1\].
    pub probability: Vec<f64>,
}

/// Writes the probability of the positive class of every sample as Parquet, atomically.
///
/// # Errors
/// [`DataError::ShapeMismatch`] unless there is one probability per sample, [`DataError::UnmatchedSample`] if a sample appears
/// twice, [`DataError::InvalidProbability`] for a number outside \[0, 1\], [`DataError::Write`].
pub fn write_probabilities(path: &Path, samples: &[SampleId], probability: &[f64]) -> Result<(), DataError> {
    if probability.len() != samples.len() {
        let (what, found, expected) = ("probabilities", probability.len(), samples.len());
        return Err(DataError::ShapeMismatch { what, found, expected });
    }
    refuse_repeated(samples)?;
    if let Some(row) = probability.iter().position(|p| !(0.0..=1.0).contains(p)) {
        let (sample, column) = (samples[row].to_string(), PROBABILITY.to_owned());
        return Err(DataError::InvalidProbability { sample, column, value: probability[row] });
    }
    let ids = ColumnValues::Borrowed(samples.iter().map(|sample| Some(sample.as_str())).collect());
    let columns =
        vec![(SAMPLE[0].to_owned(), ids), (PROBABILITY.to_owned(), ColumnValues::Number(probability.to_vec()))];
    write_parquet(path, columns, &[])
}

/// Reads what [`write_probabilities`] wrote.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::DuplicateSample`], [`DataError::InvalidCell`] or [`DataError::NotProbability`] for
/// a number outside \[0, 1\], and what [`Table::read`] returns.
pub fn read_probabilities(path: &Path) -> Result<ProbabilityTable, DataError> {
    let table = Table::read(path)?;
    let samples = read_samples(&table, SAMPLE[0])?;
    let (probability, _) = probabilities(&table, PROBABILITY, &samples)?;
    Ok(ProbabilityTable { samples, probability })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_read_as_they_were_written_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("predictions.parquet");
        let samples: Vec<SampleId> = ["a", "b", "c"].map(SampleId::from).to_vec();
        let probability = [0.0, 1.0 / 3.0, 1.0];
        write_probabilities(&path, &samples, &probability).unwrap();
        let found = read_probabilities(&path).unwrap();
        assert_eq!((found.samples, found.probability), (samples.clone(), probability.to_vec()));
        let refused = |samples: &[SampleId], probability: &[f64]| {
            write_probabilities(&path, samples, probability).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&samples, &[0.5, 1.5, 0.0]),
            "probability of sample \"b\" is 1.5, expected a number in [0, 1]"
        );
        assert!(refused(&samples, &[0.5, f64::NAN, 0.0]).contains("NaN"));
        assert!(refused(&samples, &[0.5]).contains("probabilities"));
        let twice = [samples[0].clone(), samples[0].clone(), samples[1].clone()];
        assert!(refused(&twice, &probability).contains("\"a\""), "{}", refused(&twice, &probability));
    }
}
