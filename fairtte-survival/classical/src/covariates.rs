//! Named covariates and how they become columns of numbers.

use std::collections::BTreeSet;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::ClassicalError;
use crate::estimator::Column;

/// The values of one covariate, `[n]`.
#[derive(Clone, Debug, PartialEq)]
pub enum CovariateValues {
    /// Finite numbers.
    Numbers(Vec<f64>),
    /// Names of levels; the first in sorted order is the reference.
    Levels(Vec<String>),
}

impl CovariateValues {
    fn n(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Levels(values) => values.len(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "numbers",
            Self::Levels(_) => "levels",
        }
    }
}

/// Covariates of n samples, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariates {
    columns: Vec<(String, CovariateValues)>,
}

impl Covariates {
    /// Checks that all columns have the same length and other names, and that numbers are finite.
    ///
    /// # Errors
    /// [`ClassicalError::NoCovariates`], [`ClassicalError::Repeated`], [`ClassicalError::ColumnLength`] or [`ClassicalError::NotFinite`].
    pub fn new(columns: Vec<(String, CovariateValues)>) -> Result<Self, ClassicalError> {
        let expected = columns.first().ok_or(ClassicalError::NoCovariates)?.1.n();
        for (place, (column, values)) in columns.iter().enumerate() {
            let column = || column.clone();
            if columns[..place].iter().any(|(name, _)| *name == column()) {
                return Err(ClassicalError::Repeated { column: column() });
            }
            if values.n() != expected {
                return Err(ClassicalError::ColumnLength { column: column(), found: values.n(), expected });
            }
            if let CovariateValues::Numbers(numbers) = values
                && let Some(row) = numbers.iter().position(|value| !value.is_finite())
            {
                let column = Column { place, name: Some(column()) };
                return Err(ClassicalError::NotFinite { row, column, value: numbers[row] });
            }
        }
        Ok(Self { columns })
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.n())
    }

    /// Names of the columns, in the order given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// The rows at `index`, in that order.
    ///
    /// # Panics
    /// If a row does not exist.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let of_values = |values: &CovariateValues| match values {
            CovariateValues::Numbers(values) => {
                CovariateValues::Numbers(index.iter().map(|row| values[*row]).collect())
            }
            CovariateValues::Levels(values) => {
                CovariateValues::Levels(index.iter().map(|row| values[*row].clone()).collect())
            }
        };
        Self { columns: self.columns.iter().map(|(name, values)| (name.clone(), of_values(values))).collect() }
    }
}

/// How named covariates become columns of numbers: a number is one column, and of levels each but the first has a column of
/// 0 and 1 (dummy coding). Every estimator can be fitted to the columns.
///
/// ```
/// use fairtte_classical::{Coding, CovariateValues, Covariates};
///
/// let sex = ["F", "M", "X", "F"].map(str::to_owned).to_vec();
/// let covariates = Covariates::new(vec![
///     ("age".to_owned(), CovariateValues::Numbers(vec![61.0, 47.0, 55.0, 70.0])),
///     ("sex".to_owned(), CovariateValues::Levels(sex)),
/// ])?;
/// let coding = Coding::of(&covariates);
/// assert_eq!(coding.terms(), ["age", "sex=M", "sex=X"]);
/// assert_eq!(coding.design(&covariates)?.row(1).to_vec(), [47.0, 1.0, 0.0]);
/// # Ok::<(), fairtte_classical::ClassicalError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coding {
    columns: Vec<ColumnCoding>,
}

/// How one covariate becomes columns of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ColumnCoding {
    name: String,
    /// `None` of a number, which is one column. Otherwise the levels, of which each but the first has a column of 0 and 1.
    levels: Option<Vec<String>>,
}

impl Coding {
    /// The coding with the levels that `covariates` have, in sorted order.
    pub fn of(covariates: &Covariates) -> Self {
        let of_column = |(name, values): &(String, CovariateValues)| {
            let levels = match values {
                CovariateValues::Numbers(_) => None,
                CovariateValues::Levels(levels) => {
                    Some(levels.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect())
                }
            };
            ColumnCoding { name: name.clone(), levels }
        };
        Self { columns: covariates.columns.iter().map(of_column).collect() }
    }

    /// Names of the columns: of a number its name, of a level `name=level`.
    pub fn terms(&self) -> Vec<String> {
        self.columns.iter().flat_map(ColumnCoding::terms).collect()
    }

    /// The numbers of all terms, `[n, n_terms]`.
    ///
    /// # Errors
    /// [`ClassicalError::OtherColumns`] or [`ClassicalError::UnknownLevel`].
    pub fn design(&self, covariates: &Covariates) -> Result<Array2<f64>, ClassicalError> {
        let found: Vec<&str> = covariates.names().collect();
        let expected: Vec<&str> = self.columns.iter().map(|coding| coding.name.as_str()).collect();
        if found != expected {
            return Err(ClassicalError::OtherColumns { found: found.join(", "), expected: expected.join(", ") });
        }
        let columns = self.columns.iter().zip(&covariates.columns).map(|(coding, (_, values))| coding.columns(values));
        let columns: Vec<Vec<f64>> = columns.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        Ok(Array2::from_shape_fn((covariates.n(), columns.len()), |(row, term)| columns[term][row]))
    }
}

impl ColumnCoding {
    fn terms(&self) -> Vec<String> {
        match &self.levels {
            None => vec![self.name.clone()],
            Some(levels) => levels.iter().skip(1).map(|level| format!("{}={level}", self.name)).collect(),
        }
    }

    fn columns(&self, values: &CovariateValues) -> Result<Vec<Vec<f64>>, ClassicalError> {
        match (&self.levels, values) {
            (None, CovariateValues::Numbers(values)) => Ok(vec![values.clone()]),
            (Some(levels), CovariateValues::Levels(values)) => {
                if let Some(row) = values.iter().position(|value| !levels.contains(value)) {
                    let (column, level) = (self.name.clone(), values[row].clone());
                    return Err(ClassicalError::UnknownLevel { column, row, level, known: levels.join(", ") });
                }
                let is = |level: &String| values.iter().map(|value| f64::from(u8::from(value == level))).collect();
                Ok(levels.iter().skip(1).map(is).collect())
            }
            _ => Err(ClassicalError::OtherColumns {
                found: format!("{} ({})", self.name, values.kind()),
                expected: format!("{} ({})", self.name, self.kind()),
            }),
        }
    }

    fn kind(&self) -> &'static str {
        if self.levels.is_some() { "levels" } else { "numbers" }
    }
}
