//! The columns that an estimator reads: encoded columns of a table, or encoded covariates of images.

use fairtte_classical::Columns;
use fairtte_data::features::{
    Encoding, FeatureChoice, FeatureColumn, FeatureConfig, FeatureMatrix, FeatureTable, TabularFeatures,
};
use fairtte_data::{Cohort, DataError, FittedAttributes};
use ndarray::Array2;

use crate::CliError;
use crate::baseline::CovariateColumn;

/// Names of the features that an estimator reads: where it needs independent columns, the first level of every category is the
/// reference and has none.
pub(crate) fn chosen(encodings: &TabularFeatures, columns: Columns) -> Vec<String> {
    let of_column = |column: &fairtte_data::features::FittedColumn| {
        let reference = matches!(column.encoding, Encoding::Categorical { .. }) && columns == Columns::Independent;
        column.names().into_iter().skip(usize::from(reference))
    };
    encodings.columns.iter().flat_map(of_column).collect()
}

/// The features `names` of `rows`, `[rows, names]`.
///
/// # Errors
/// [`CliError::Bug`] if a feature does not exist: the encodings are those of the fit.
pub(crate) fn columns(matrix: &FeatureMatrix, names: &[String], rows: &[usize]) -> Result<Array2<f64>, CliError> {
    let place = |name: &String| {
        let missing = || CliError::Bug(format!("the encoded columns have no \"{name}\""));
        matrix.names().iter().position(|known| known == name).ok_or_else(missing)
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let value = |(row, column): (usize, usize)| f64::from(matrix.row(rows[row])[places[column]]);
    Ok(Array2::from_shape_fn((rows.len(), names.len()), value))
}

/// The covariates `names` of all samples as a table: raw numbers, and names of groups.
///
/// # Errors
/// [`CliError::Config`] for a covariate that the cohort does not have.
pub(crate) fn covariates(
    names: &[&str],
    cohort: &Cohort,
    attributes: &FittedAttributes,
) -> Result<FeatureTable, CliError> {
    let rows = cohort.all_rows();
    let column = |name: &&str| {
        let column = cohort.attributes.iter().find(|column| column.name == *name).ok_or_else(|| {
            let known: Vec<&str> = cohort.attributes.iter().map(|column| column.name.as_str()).collect();
            CliError::unknown_attribute("baseline.covariates", name, &known)
        })?;
        let cells = CovariateColumn::of_rows(column, attributes.all(), &rows).values;
        Ok(FeatureColumn { name: (*name).to_owned(), cells })
    };
    let columns = names.iter().map(column).collect::<Result<Vec<_>, CliError>>()?;
    let samples = cohort.sample_ids(&rows);
    Ok(FeatureTable::new("the covariates", samples, (1..=rows.len()).collect(), columns)?)
}

/// Encodings of covariates, fitted on the training rows.
///
/// # Errors
/// As [`TabularFeatures::fit`].
pub(crate) fn encode_covariates(table: &FeatureTable, train: &[usize]) -> Result<TabularFeatures, DataError> {
    let all = FeatureConfig { features: Some(FeatureChoice::All), ..FeatureConfig::default() };
    TabularFeatures::fit(table, train, &all, &[])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::SampleId;

    use super::*;

    #[test]
    fn independent_columns_leave_out_the_first_level_and_keep_numbers_and_missing_values() {
        let samples: Vec<SampleId> = (0..4).map(|k| SampleId::new(format!("s{k}"))).collect();
        let column = |name: &str, cells: [&str; 4]| FeatureColumn {
            name: name.to_owned(),
            cells: cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec(),
        };
        let columns_of = vec![column("age", ["40", "50", "60", ""]), column("sex", ["F", "M", "F", "M"])];
        let table = FeatureTable::new("a table", samples, vec![1, 2, 3, 4], columns_of).unwrap();
        let encodings = encode_covariates(&table, &[0, 1, 2, 3]).unwrap();
        let matrix = encodings.encode(&table).unwrap();
        assert_eq!(chosen(&encodings, Columns::Any), ["age", "age:missing", "sex=F", "sex=M"]);
        let names = chosen(&encodings, Columns::Independent);
        assert_eq!(names, ["age", "age:missing", "sex=M"]);
        let found = columns(&matrix, &names, &[3, 1]).unwrap();
        assert_eq!(found, ndarray::array![[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]);
        assert!(columns(&matrix, &["height".to_owned()], &[0]).is_err());
    }
}
