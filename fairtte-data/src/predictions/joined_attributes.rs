//! Attributes of a cohort, some of which may be columns of the files of predictions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fairtte_metrics::SampleId;

use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::predictions::values::MISSING;

/// The columns of attributes in a file of predictions.
#[derive(Clone, Copy, Debug)]
pub struct PredictedAttributes<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its samples.
    pub samples: &'a [SampleId],
    /// One value per sample.
    pub columns: &'a [AttributeColumn],
}

/// Gives `cohort` the attributes `names` that `files` have as columns, joined by sample. In a column that it has already, a text
/// that R and pandas write for a missing value becomes one. A name that no file has is left out, and a sample that is not in the
/// cohort is passed over: [`match_predictions`](crate::predictions::match_predictions) refuses it.
///
/// # Errors
/// [`DataError::DifferentAttribute`] if two files, or a file and the cohort, give a sample different values.
pub fn join_attributes(
    cohort: &mut Cohort,
    names: &[&str],
    files: &[PredictedAttributes<'_>],
) -> Result<(), DataError> {
    let rows = cohort.samples.iter().enumerate().map(|(row, sample)| (sample.sample_id.clone(), row));
    let row_of: HashMap<SampleId, usize> = rows.collect();
    for name in names {
        let own = cohort.attributes.iter().position(|column| column.name == *name);
        let mut known: Vec<Option<Known>> = vec![None; cohort.n()];
        if let Some(own) = own {
            for (slot, value) in known.iter_mut().zip(&mut cohort.attributes[own].values) {
                value.take_if(|text| MISSING.contains(&text.as_str()));
                *slot = Some(Known { value: value.clone(), file: cohort.source.clone() });
            }
        }
        for file in files {
            file.join(name, &row_of, &mut known)?;
        }
        if own.is_none() && known.iter().any(Option::is_some) {
            let values = known.into_iter().map(|known| known.and_then(|known| known.value)).collect();
            cohort.attributes.push(AttributeColumn::new(*name, values));
        }
    }
    Ok(())
}

/// The value of a sample, with the file that gave it.
#[derive(Clone)]
struct Known {
    value: Option<String>,
    file: PathBuf,
}

impl PredictedAttributes<'_> {
    fn join(
        &self,
        name: &str,
        row_of: &HashMap<SampleId, usize>,
        known: &mut [Option<Known>],
    ) -> Result<(), DataError> {
        let Some(column) = self.columns.iter().find(|column| column.name == name) else { return Ok(()) };
        // As `Table::row` counts: Parquet has no header.
        let first_row =
            if self.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet")) { 1 } else { 2 };
        for (place, (sample, value)) in self.samples.iter().zip(&column.values).enumerate() {
            let Some(row) = row_of.get(sample) else { continue };
            match &known[*row] {
                Some(other) if !is_same(value.as_deref(), other.value.as_deref()) => {
                    let shown = |value: &Option<String>| value.as_deref().unwrap_or("missing").into();
                    return Err(DataError::DifferentAttribute {
                        column: name.into(),
                        sample: sample.to_string().into(),
                        path: self.path.into(),
                        row: place + first_row,
                        value: shown(value),
                        other: other.file.as_path().into(),
                        other_value: shown(&other.value),
                    });
                }
                Some(_) => {}
                None => known[*row] = Some(Known { value: value.clone(), file: self.path.to_owned() }),
            }
        }
        Ok(())
    }
}

/// The same text, the same number written differently, or both missing.
fn is_same(one: Option<&str>, other: Option<&str>) -> bool {
    let number = |text: Option<&str>| text?.parse::<f64>().ok().filter(|value| value.is_finite());
    one == other || number(one).zip(number(other)).is_some_and(|(one, other)| one.to_bits() == other.to_bits())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::predictions::{Rising, read_predictions_with_attributes};
    use crate::read_cohort;

    /// The values of `x` after the tables of predictions were joined to a cohort.
    fn joined(cohort: &str, tables: &[&str]) -> Result<Vec<Option<String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (mut cohort, _) = read_cohort(&file("cohort.csv", cohort)).unwrap();
        let shown = |error: DataError| error.to_string().replace(&format!("{}/", folder.path().display()), "");
        let paths: Vec<PathBuf> = tables.iter().enumerate().map(|(k, text)| file(&format!("p{k}.csv"), text)).collect();
        let read = |path: &PathBuf| read_predictions_with_attributes(path, Rising::Refuse, None, &["x"]);
        let tables = paths.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(shown)?;
        let files: Vec<PredictedAttributes<'_>> = paths
            .iter()
            .zip(&tables)
            .map(|(path, (table, columns))| PredictedAttributes { path, samples: &table.samples, columns })
            .collect();
        join_attributes(&mut cohort, &["x"], &files).map_err(shown)?;
        Ok(cohort.attributes.into_iter().find(|column| column.name == "x").map_or_else(Vec::new, |found| found.values))
    }

    fn values(of: [&str; 3]) -> Vec<Option<String>> {
        of.map(|text| (!text.is_empty()).then(|| text.to_owned())).to_vec()
    }

    #[test]
    fn columns_are_joined_by_sample_and_must_agree() {
        let bare = "sample_id,subject_id,time,event\na,a,1,1\nb,b,1,0\nc,c,2,1\n";
        let with = |x: [&str; 3]| {
            let [a, b, c] = x;
            format!("sample_id,subject_id,time,event,x\na,a,1,1,{a}\nb,b,1,0,{b}\nc,c,2,1,{c}\n")
        };
        // In another order, and without one sample.
        let (first, second) = ("sample,x,1\nc,3,0.5\na,1.0,0.5\n", "sample,x,1\na,1,0.5\nb,2,0.5\n");
        assert_eq!(joined(bare, &[first]).unwrap(), values(["1", "", "3"]));
        assert_eq!(joined(bare, &[first, second]).unwrap(), values(["1", "2", "3"]));
        assert_eq!(joined(&with(["1", "NA", "3"]), &[first]).unwrap(), values(["1", "", "3"]));
        assert!(joined(bare, &["sample,1\na,0.5\n"]).unwrap().is_empty());
        let differs = joined(&with(["1", "2", "4"]), &[first]).unwrap_err();
        let expected = "x of sample \"c\" is 3 (p0.csv, row 2) and 4 in cohort.csv, expected the same in both";
        assert_eq!(differs, expected);
        let missing = joined(&with(["1", "", "3"]), &[second]).unwrap_err();
        assert_eq!(
            missing,
            "x of sample \"b\" is 2 (p0.csv, row 3) and missing in cohort.csv, expected the same in both"
        );
        let other = "sample,x,1\na,5,0.5\n";
        let files = joined(bare, &[first, other]).unwrap_err();
        assert_eq!(files, "x of sample \"a\" is 5 (p1.csv, row 2) and 1 in p0.csv, expected the same in both");
    }
    #[test]
    fn rows_of_parquet_are_counted_without_a_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cohort.csv");
        std::fs::write(&path, "sample_id,subject_id,time,event,x\na,a,1,1,1\nb,b,1,0,2\n").unwrap();
        let samples = ["a", "b"].map(SampleId::from);
        let columns = [AttributeColumn::new("x", vec![Some("1".to_owned()), Some("5".to_owned())])];
        for (name, row) in [("p.parquet", "p.parquet, row 2"), ("p.PARQUET", "row 2"), ("p.csv.gz", "row 3")] {
            let (mut cohort, _) = read_cohort(&path).unwrap();
            let file = PredictedAttributes { path: Path::new(name), samples: &samples, columns: &columns };
            let message = join_attributes(&mut cohort, &["x"], &[file]).unwrap_err().to_string();
            assert!(message.starts_with("x of sample \"b\" is 5") && message.contains(&format!("{row})")), "{message}");
        }
    }
}
