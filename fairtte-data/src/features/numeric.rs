//! A table of numbers for every sample, such as the representation of a network.

use std::path::Path;

use fairtte_metrics::SampleId;
use ndarray::Array2;
use rayon::prelude::*;

use crate::DataError;
use crate::nearest::nearest;
use crate::predictions::{SAMPLE, invalid, named_or_either, read_samples};
use crate::table::Table;

/// Numbers of every sample.
#[derive(Clone, Debug, PartialEq)]
pub struct NumericFeatures {
    /// The samples in the order of the file.
    pub samples: Vec<SampleId>,
    /// Names of the dimensions, in the order of the file.
    pub names: Vec<String>,
    /// `[n_samples, n_dimensions]`, all finite.
    pub values: Array2<f64>,
}

/// Reads a table with one row per sample: its name in the column `sample`, or else `sample_id` or `sample`, and numbers
/// in all others. `reserved` names columns that hold outcomes or attributes; they are no features.
///
/// # Errors
/// [`DataError::MissingColumn`] without a column of samples, [`DataError::AmbiguousColumn`], [`DataError::EmptyTable`]
/// without rows, [`DataError::InvalidFeature`] for a reserved column, or if there is no other, [`DataError::InvalidCell`]
/// for a row without sample or a cell that is no finite number, [`DataError::DuplicateSample`], and what [`Table::read`]
/// returns.
pub fn read_numeric_features(
    path: &Path,
    sample: Option<&str>,
    reserved: &[&str],
) -> Result<NumericFeatures, DataError> {
    let table = Table::read(path)?;
    // The option of the cohort holds here too if there is such a column.
    let id = named_or_either(&table, sample.filter(|name| table.has(name)), SAMPLE)?;
    let id = id.ok_or_else(|| DataError::MissingColumn {
        column: sample.unwrap_or(SAMPLE[0]).to_owned(),
        path: path.to_owned(),
        nearest: nearest(SAMPLE[0], table.names()),
    })?;
    let refused = |column: &str, problem: &str| DataError::InvalidFeature {
        column: column.to_owned(),
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let names: Vec<String> = table.names().into_iter().filter(|name| *name != id).map(str::to_owned).collect();
    if let Some(name) = names.iter().find(|name| reserved.contains(&name.as_str())) {
        return Err(refused(name, "it is an outcome, a subject or an attribute, expected features alone"));
    }
    if names.is_empty() {
        return Err(refused(id, "there is no other column, expected features"));
    }
    let samples = read_samples(&table, id)?;
    if samples.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let column = |name: &String| -> Result<Vec<f64>, DataError> {
        let cell = |(row, cell): (usize, Result<f64, String>)| {
            let bad = |text: String| invalid(&table, row, &samples, name, Some(text), "a finite number");
            cell.map_err(bad).and_then(|value| if value.is_finite() { Ok(value) } else { Err(bad(value.to_string())) })
        };
        table.numbers(name)?.into_iter().enumerate().map(cell).collect()
    };
    let columns: Vec<Vec<f64>> = names.par_iter().map(column).collect::<Result<_, _>>()?;
    let values = Array2::from_shape_fn((samples.len(), names.len()), |(row, column)| columns[column][row]);
    Ok(NumericFeatures { samples, names, values })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use ndarray::array;

    use super::*;

    fn read(text: &str, sample: Option<&str>) -> Result<NumericFeatures, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.csv");
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        read_numeric_features(&path, sample, &["time", "sex"]).map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn every_column_but_the_sample_is_a_dimension() {
        let found = read("f1,sample_id,f0\n1,a,-2.5\n3e1,b,4\n", None).unwrap();
        assert_eq!((found.names, found.values), (vec!["f1".into(), "f0".into()], array![[1.0, -2.5], [30.0, 4.0]]));
        assert_eq!(found.samples, ["a".into(), "b".into()]);
        assert_eq!(read("eye,x\na,1\n", Some("eye")).unwrap().names, ["x"]);
        assert_eq!(read("sample,x\na,1\n", Some("eye")).unwrap().names, ["x"], "the usual name is known too");
    }

    #[test]
    fn what_is_no_finite_number_of_one_sample_is_refused_with_its_place() {
        let refused = |text: &str| read(text, None).unwrap_err();
        let cell =
            |value: &str| format!("f0 of sample \"b\" is {value}, expected a finite number (features.csv, row 3)");
        for (text, value) in [("", "empty"), ("NaN", "NaN"), ("inf", "inf"), ("1e999", "inf"), ("left", "left")] {
            assert_eq!(refused(&format!("sample,f0\na,1\nb,{text}\n")), cell(value), "{text}");
        }
        assert!(refused("sample,f0\na,1\na,2\n").contains("features.csv, row 3"));
        let unnamed = "the name of the sample is empty, expected one in every row (features.csv, row 2)";
        assert_eq!(refused("sample,f0\n,1\n"), unnamed);
        assert!(refused("sample,f0,time\na,1,2\n").contains("column \"time\" of features.csv: it is an outcome"));
        assert!(refused("sample\na\n").contains("there is no other column"));
        assert!(refused("name,f0\na,1\n").contains("sample_id"));
        assert!(refused("sample,f0\n").contains("features.csv"));
    }
}
