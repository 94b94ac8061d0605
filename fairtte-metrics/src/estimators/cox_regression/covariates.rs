//! Named covariates and how they become columns of numbers.

use std::collections::BTreeSet;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::CoxError;

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
    /// [`CoxError::NoCovariates`], [`CoxError::Repeated`], [`CoxError::Length`] or [`CoxError::NotFinite`].
    pub fn new(columns: Vec<(String, CovariateValues)>) -> Result<Self, CoxError> {
        let expected = columns.first().ok_or(CoxError::NoCovariates)?.1.n();
        for (place, (column, values)) in columns.iter().enumerate() {
            let column = || column.clone();
            if columns[..place].iter().any(|(name, _)| *name == column()) {
                return Err(CoxError::Repeated { column: column() });
            }
            if values.n() != expected {
                return Err(CoxError::Length { column: column(), found: values.n(), expected });
            }
            if let CovariateValues::Numbers(numbers) = values
                && let Some(row) = numbers.iter().position(|value| !value.is_finite())
            {
                return Err(CoxError::NotFinite { column: column(), row, value: numbers[row] });
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

/// How one covariate becomes columns of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Coding {
    name: String,
    /// `None` of a number, which is one column. Otherwise the levels, of which each but the first has a column of 0 and 1.
    levels: Option<Vec<String>>,
}

/// The coding that `covariates` have.
pub(super) fn coding_of(covariates: &Covariates) -> Vec<Coding> {
    let of_column = |(name, values): &(String, CovariateValues)| {
        let levels = match values {
            CovariateValues::Numbers(_) => None,
            CovariateValues::Levels(levels) => {
                Some(levels.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect())
            }
        };
        Coding { name: name.clone(), levels }
    };
    covariates.columns.iter().map(of_column).collect()
}

impl Coding {
    /// Names of its columns.
    pub(super) fn terms(&self) -> Vec<String> {
        match &self.levels {
            None => vec![self.name.clone()],
            Some(levels) => levels.iter().skip(1).map(|level| format!("{}={level}", self.name)).collect(),
        }
    }

    fn columns(&self, values: &CovariateValues) -> Result<Vec<Vec<f64>>, CoxError> {
        match (&self.levels, values) {
            (None, CovariateValues::Numbers(values)) => Ok(vec![values.clone()]),
            (Some(levels), CovariateValues::Levels(values)) => {
                if let Some(row) = values.iter().position(|value| !levels.contains(value)) {
                    let (column, level) = (self.name.clone(), values[row].clone());
                    return Err(CoxError::UnknownLevel { column, row, level, known: levels.join(", ") });
                }
                let is = |level: &String| values.iter().map(|value| f64::from(u8::from(value == level))).collect();
                Ok(levels.iter().skip(1).map(is).collect())
            }
            _ => Err(CoxError::OtherColumns {
                found: format!("{} ({})", self.name, values.kind()),
                expected: format!("{} ({})", self.name, self.kind()),
            }),
        }
    }

    fn kind(&self) -> &'static str {
        if self.levels.is_some() { "levels" } else { "numbers" }
    }
}

/// The numbers of all terms, `[n, n_terms]`.
///
/// # Errors
/// [`CoxError::OtherColumns`] or [`CoxError::UnknownLevel`].
pub(super) fn design(coding: &[Coding], covariates: &Covariates) -> Result<Array2<f64>, CoxError> {
    let found: Vec<&str> = covariates.names().collect();
    let expected: Vec<&str> = coding.iter().map(|coding| coding.name.as_str()).collect();
    if found != expected {
        return Err(CoxError::OtherColumns { found: found.join(", "), expected: expected.join(", ") });
    }
    let columns = coding.iter().zip(&covariates.columns).map(|(coding, (_, values))| coding.columns(values));
    let columns: Vec<Vec<f64>> = columns.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    Ok(Array2::from_shape_fn((covariates.n(), columns.len()), |(row, term)| columns[term][row]))
}
