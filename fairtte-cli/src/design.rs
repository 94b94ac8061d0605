//! The columns that an estimator reads: encoded columns of a table, or encoded covariates of images.

use std::ops::Range;

use fairtte_classical::Columns;
use fairtte_data::cohort::AttributeColumn;
use fairtte_data::features::{
    Encoding, FeatureChoice, FeatureColumn, FeatureConfig, FeatureMatrix, FeatureTable, FittedColumn, TabularFeatures,
};
use fairtte_data::{Cohort, DataError, FittedAttributes};
use fairtte_metrics::Groups;
use ndarray::Array2;

use crate::CliError;
use crate::baseline::{CovariateColumn, CovariateKind};

/// Names of the features that an estimator reads, of a fit to `rows`. Where it needs independent columns, the first level of a category is
/// the reference and has none. A category without a feature that says that a value is missing has a column per level: samples without a
/// value are the reference then. Of those that are missing in the same rows only the first has, because the levels of each add up to the
/// same.
pub(crate) fn chosen(
    encodings: &TabularFeatures,
    columns: Columns,
    matrix: &FeatureMatrix,
    rows: &[usize],
) -> Vec<String> {
    // Which rows have a value: all, as of the constant, then as of the categories before.
    let mut known = vec![vec![true; rows.len()]];
    let mut has_reference = |column: &FittedColumn, features: Range<usize>| {
        let has_value = |row: &usize| matrix.row(*row)[features.clone()].iter().any(|value| *value > 0.0);
        let own: Vec<bool> = rows.iter().map(has_value).collect();
        let adds_nothing = column.indicator || known.contains(&own);
        if !adds_nothing {
            known.push(own);
        }
        adds_nothing
    };
    let mut first = 0;
    let of_column = |column: &FittedColumn| {
        let features = first..first + column.n_features();
        first = features.end;
        let is_category = matches!(column.encoding, Encoding::Categorical { .. });
        let leaves_out = columns == Columns::Independent && is_category && has_reference(column, features);
        column.names().into_iter().skip(usize::from(leaves_out))
    };
    encodings.columns.iter().flat_map(of_column).collect()
}

/// What `name` in the settings of an estimator on the features `names` stands for: one of them, or those of a column of the table.
pub(crate) fn named(name: &str, names: &[String], encodings: &TabularFeatures) -> Vec<String> {
    let column = encodings.columns.iter().find(|column| column.column == name);
    let features = column.map(FittedColumn::names).unwrap_or_default();
    let of_column: Vec<String> = features.into_iter().filter(|feature| names.contains(feature)).collect();
    // A name that is neither is refused by the fit, which lists those that exist.
    if of_column.is_empty() || names.iter().any(|known| known == name) { vec![name.to_owned()] } else { of_column }
}

/// Refuses samples in `rows` with a value that no training sample has in a column that tells the stratum: its features are those of another
/// stratum, or of none. `table` gives the cells of `matrix`; it is read only where there are such samples.
///
/// # Errors
/// [`CliError::Check`] naming column, value and sample.
pub(crate) fn require_known_strata(
    strata: &[String],
    (matrix, encodings): (&FeatureMatrix, &TabularFeatures),
    rows: &[usize],
    table: impl FnOnce() -> Result<FeatureTable, CliError>,
) -> Result<(), CliError> {
    let tells = |column: &FittedColumn| column.names().iter().any(|name| strata.contains(name));
    let columns: Vec<FittedColumn> = encodings.columns.iter().filter(|column| tells(column)).cloned().collect();
    let is_new = |fitted: &FittedColumn| {
        matrix.unknown().iter().any(|unknown| unknown.column == fitted.column)
            || matrix.newly_missing().iter().any(|missing| missing.column == fitted.column)
    };
    if !columns.iter().any(is_new) {
        return Ok(());
    }
    let table = table()?;
    let of_strata = TabularFeatures { columns, ..encodings.clone() };
    for row in rows {
        let encoded = of_strata.encode(&table.select(&[*row]))?;
        let unknown = encoded.unknown().iter().map(|new| (&new.column, format!("\"{}\"", new.value)));
        let missing = encoded.newly_missing().iter().map(|new| (&new.column, "missing".to_owned()));
        if let Some((column, value)) = unknown.chain(missing).next() {
            let sample = &table.sample_ids()[*row];
            let known = of_strata.columns.iter().find(|fitted| fitted.column == *column).map(known_values);
            return Err(CliError::Check(format!(
                "{column} is {value} in sample \"{sample}\", which is no stratum of the fit: expected {}",
                known.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// The values of a column that training samples have, in words.
fn known_values(column: &FittedColumn) -> String {
    match &column.encoding {
        Encoding::Categorical { levels } => format!("one of {}", levels.join(", ")),
        Encoding::Numeric { .. } | Encoding::Presence => "a value".to_owned(),
    }
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
    use fairtte_data::features::MissingPolicy;
    use fairtte_metrics::SampleId;

    use super::*;

    /// Samples s0, s1, .. with these columns.
    fn table_of<const N: usize>(columns: &[(&str, [&str; N])]) -> FeatureTable {
        let samples: Vec<SampleId> = (0..N).map(|k| SampleId::new(format!("s{k}"))).collect();
        let column = |(name, cells): &(&str, [&str; N])| FeatureColumn {
            name: (*name).to_owned(),
            cells: cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec(),
        };
        FeatureTable::new("a table", samples, (1..=N).collect(), columns.iter().map(column).collect()).unwrap()
    }

    /// Encodings without features that say that a value is missing.
    fn encoded_by_means(table: &FeatureTable, train: &[usize]) -> TabularFeatures {
        let (features, missing) = (Some(FeatureChoice::All), MissingPolicy::Mean);
        let config = FeatureConfig { features, missing, ..FeatureConfig::default() };
        TabularFeatures::fit(table, train, &config, &[]).unwrap()
    }

    #[test]
    fn independent_columns_leave_out_the_first_level_and_keep_numbers_and_missing_values() {
        let table = table_of(&[("age", ["40", "50", "60", ""]), ("sex", ["F", "M", "F", "M"])]);
        let encodings = encode_covariates(&table, &[0, 1, 2, 3]).unwrap();
        let matrix = encodings.encode(&table).unwrap();
        let all = [0, 1, 2, 3];
        assert_eq!(chosen(&encodings, Columns::Any, &matrix, &all), ["age", "age:missing", "sex=F", "sex=M"]);
        let names = chosen(&encodings, Columns::Independent, &matrix, &all);
        assert_eq!(names, ["age", "age:missing", "sex=M"]);
        let found = columns(&matrix, &names, &[3, 1]).unwrap();
        assert_eq!(found, ndarray::array![[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]);
        assert!(columns(&matrix, &["height".to_owned()], &[0]).is_err());
        // Of a missing category its own feature tells.
        let told = table_of(&[("sex", ["F", "M", "", "M"]), ("site", ["A", "B", "A", "B"])]);
        let encodings = encode_covariates(&told, &all).unwrap();
        let matrix = encodings.encode(&told).unwrap();
        assert_eq!(chosen(&encodings, Columns::Independent, &matrix, &all), ["sex=M", "sex:missing", "site=B"]);
    }

    #[test]
    fn where_nothing_says_that_a_category_is_missing_its_first_level_is_not_the_same_as_a_missing_one() {
        let table = table_of(&[
            ("sex", ["F", "M", "", "M", "F"]),
            ("site", ["A", "B", "", "A", "B"]),
            ("ward", ["", "X", "Y", "X", "Y"]),
            ("grade", ["low", "high", "low", "high", "low"]),
        ]);
        let all = [0, 1, 2, 3, 4];
        let encodings = encoded_by_means(&table, &all);
        let matrix = encodings.encode(&table).unwrap();
        // Levels of sex and of site add up to the same: one of them has a reference.
        let names = chosen(&encodings, Columns::Independent, &matrix, &all);
        assert_eq!(names, ["sex=F", "sex=M", "site=B", "ward=X", "ward=Y", "grade=low"]);
        // Without the rows in which something is missing every category has one.
        let names = chosen(&encodings, Columns::Independent, &matrix, &[1, 3, 4]);
        assert_eq!(names, ["sex=M", "site=B", "ward=Y", "grade=low"]);
        assert_eq!(chosen(&encodings, Columns::Any, &matrix, &all), encodings.names());
    }

    #[test]
    fn a_column_of_the_table_stands_for_its_features() {
        let table = table_of(&[("age", ["40", "50", "60"]), ("site", ["A", "B", "C"])]);
        let all = [0, 1, 2];
        let encodings = encode_covariates(&table, &all).unwrap();
        let names = chosen(&encodings, Columns::Independent, &encodings.encode(&table).unwrap(), &all);
        assert_eq!(names, ["age", "site=B", "site=C"]);
        assert_eq!(named("site", &names, &encodings), ["site=B", "site=C"]);
        assert_eq!(named("site", &encodings.names(), &encodings), ["site=A", "site=B", "site=C"]);
        for name in ["age", "site=C", "site=A", "height"] {
            assert_eq!(named(name, &names, &encodings), [name], "the fit refuses what is none");
        }
    }

    #[test]
    fn a_stratum_that_no_training_sample_has_is_refused_by_sample() {
        let table = table_of(&[("age", ["40", "50", "60", "", "70"]), ("site", ["A", "B", "A", "Z", ""])]);
        let encodings = encode_covariates(&table, &[0, 1, 2]).unwrap();
        let matrix = encodings.encode(&table).unwrap();
        let check = |stratum: &str, rows: &[usize]| {
            require_known_strata(&[stratum.to_owned()], (&matrix, &encodings), rows, || Ok(table.clone()))
                .map_err(|error| error.to_string())
        };
        let sentence = |what: &str, expected: &str| -> Result<(), String> {
            Err(format!("{what}, which is no stratum of the fit: expected {expected}"))
        };
        assert_eq!(check("site=B", &[0, 4, 3]), sentence("site is missing in sample \"s4\"", "one of A, B"));
        assert_eq!(check("site=B", &[3, 4]), sentence("site is \"Z\" in sample \"s3\"", "one of A, B"));
        assert_eq!(check("age", &[4, 3]), sentence("age is missing in sample \"s3\"", "a value"));
        assert_eq!(check("site=B", &[0, 1, 2]), Ok(()));
        let unread = || Err(CliError::Bug("the table was read".to_owned()));
        assert!(require_known_strata(&[], (&matrix, &encodings), &[3, 4], unread).is_ok());
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
