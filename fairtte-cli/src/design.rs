//! The columns that an estimator reads: encoded columns of a table, or encoded covariates of images.

use fairtte_classical::Columns;
use fairtte_data::cohort::AttributeColumn;
use fairtte_data::features::{
    Encoding, FeatureChoice, FeatureColumn, FeatureConfig, FeatureMatrix, FeatureTable, TabularFeatures,
};
use fairtte_data::{Cohort, DataError, FittedAttributes};
use fairtte_metrics::Groups;
use ndarray::Array2;

use crate::CliError;
use crate::baseline::{CovariateColumn, CovariateKind};

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
    covariate_table(names, cohort, |column, rows| CovariateColumn::of_rows(column, attributes.all(), rows))
}

/// The same of other samples, each covariate read as its fit read it: a number stays one where these samples have few of its values, and
/// an attribute that was read by its groups is read by them.
///
/// # Errors
/// As [`covariates`].
pub(crate) fn covariates_as_fitted(
    names: &[&str],
    cohort: &Cohort,
    attributes: &FittedAttributes,
    encodings: &TabularFeatures,
) -> Result<FeatureTable, CliError> {
    covariate_table(names, cohort, |column, rows| {
        let fitted = encodings.columns.iter().find(|fitted| fitted.column == column.name);
        let groups = attributes.all().iter().find(|groups| groups.attribute() == column.name);
        let kind = kind_of_fit(fitted.map(|fitted| &fitted.encoding), groups.map_or(&[][..], Groups::levels));
        CovariateColumn::of_kind(kind, column, attributes.all(), rows)
    })
}

/// The columns `names` of all samples, each as `read` reads it.
fn covariate_table(
    names: &[&str],
    cohort: &Cohort,
    read: impl Fn(&AttributeColumn, &[usize]) -> CovariateColumn,
) -> Result<FeatureTable, CliError> {
    let rows = cohort.all_rows();
    let column = |name: &&str| {
        let column = cohort.attributes.iter().find(|column| column.name == *name).ok_or_else(|| {
            let known: Vec<&str> = cohort.attributes.iter().map(|column| column.name.as_str()).collect();
            CliError::unknown_attribute("baseline.covariates", name, &known)
        })?;
        Ok(FeatureColumn { name: (*name).to_owned(), cells: read(column, &rows).values })
    };
    let columns = names.iter().map(column).collect::<Result<Vec<_>, CliError>>()?;
    let samples = cohort.sample_ids(&rows);
    Ok(FeatureTable::new("the covariates", samples, (1..=rows.len()).collect(), columns)?)
}

/// What a fit read of an attribute with these `levels`: its values, or its groups. Groups with the names of numbers are encoded as
/// numbers too; they are then few.
fn kind_of_fit(encoding: Option<&Encoding>, levels: &[String]) -> CovariateKind {
    let is_number = |level: &String| level.parse::<f64>().is_ok_and(f64::is_finite);
    match encoding {
        Some(Encoding::Numeric { .. }) if levels.iter().all(is_number) => {
            CovariateKind::of(levels.iter().map(String::as_str))
        }
        Some(Encoding::Numeric { .. }) => CovariateKind::Numbers,
        _ => CovariateKind::Levels,
    }
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

    #[test]
    fn an_attribute_is_read_as_its_fit_read_it() {
        let levels = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let numeric = Encoding::Numeric { mean: 60.0, standard_deviation: 8.0 };
        let cut = levels(&["<= 60", "> 60"]);
        assert_eq!(kind_of_fit(Some(&numeric), &cut), CovariateKind::Numbers);
        assert_eq!(kind_of_fit(Some(&numeric), &levels(&["1", "2", "3"])), CovariateKind::Levels);
        let many: Vec<String> = (0..12).map(|level| level.to_string()).collect();
        assert_eq!(kind_of_fit(Some(&numeric), &many), CovariateKind::Numbers);
        let categorical = Encoding::Categorical { levels: cut.clone() };
        assert_eq!(kind_of_fit(Some(&categorical), &cut), CovariateKind::Levels);
    }
}
