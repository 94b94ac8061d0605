//! Samples of a fit, and how they are prepared.

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SubjectId};
use ndarray::{Array1, Array2, ArrayView1, Axis};

use super::ordered::{CoxTies, Ordered, columns_of};
use crate::ClassicalError;
use crate::estimator::{Column, NEVER, check_samples};

/// Covariates and outcomes of n samples, where known with the names of the covariates and the subjects.
#[derive(Clone, Copy, Debug)]
pub struct CoxSamples<'a> {
    pub(super) covariates: &'a Array2<f64>,
    pub(super) outcomes: &'a Outcomes,
    pub(super) names: Option<&'a [String]>,
    pub(super) subjects: Option<&'a [SubjectId]>,
    pub(super) stop: &'a Stop,
}

impl<'a> CoxSamples<'a> {
    /// Covariates `[n, p]`, which errors and coefficients call by their number, with the outcomes of the same samples.
    pub fn new(covariates: &'a Array2<f64>, outcomes: &'a Outcomes) -> Self {
        Self { covariates, outcomes, names: None, subjects: None, stop: &NEVER }
    }

    /// The same with names `[p]`.
    #[must_use]
    pub fn named(self, names: &'a [String]) -> Self {
        Self { names: Some(names), ..self }
    }

    /// The same with the subjects `[n]`: robust standard errors then count the samples of a subject as one (clusters), and
    /// cross-validation keeps them together.
    #[must_use]
    pub fn of_subjects(self, subjects: &'a [SubjectId]) -> Self {
        Self { subjects: Some(subjects), ..self }
    }

    /// The same for a fit that ends soon after another thread sets `stop`.
    #[must_use]
    pub fn until(self, stop: &'a Stop) -> Self {
        Self { stop, ..self }
    }

    /// # Errors
    /// [`ClassicalError::NoCovariates`], [`ClassicalError::Length`], [`ClassicalError::NoEvents`],
    /// [`ClassicalError::NotFinite`], [`ClassicalError::Names`], [`ClassicalError::Metric`] for other subjects.
    pub(super) fn check(&self) -> Result<(), ClassicalError> {
        if let Some(found) = self.names.map(<[String]>::len).filter(|found| *found != self.covariates.ncols()) {
            return Err(ClassicalError::Names { found, expected: self.covariates.ncols() });
        }
        check_samples(self.covariates, self.outcomes).map_err(|error| error.with_names(self.names.unwrap_or(&[])))?;
        if let Some(found) = self.subjects.map(<[SubjectId]>::len).filter(|found| *found != self.outcomes.n()) {
            let (what, expected) = ("subjects", self.outcomes.n());
            return Err(fairtte_metrics::MetricError::LengthMismatch { what, found, expected }.into());
        }
        Ok(())
    }

    /// Names of all columns: those given, otherwise their numbers.
    pub(super) fn all_names(&self) -> Vec<String> {
        match self.names {
            Some(names) => names.to_vec(),
            None => (0..self.covariates.ncols()).map(|place| place.to_string()).collect(),
        }
    }

    /// Places of the columns with these names.
    ///
    /// # Errors
    /// [`ClassicalError::UnknownCovariate`], [`ClassicalError::Repeated`].
    pub(super) fn places(&self, setting: &'static str, wanted: &[String]) -> Result<Vec<usize>, ClassicalError> {
        let names = self.all_names();
        let mut places = Vec::new();
        for name in wanted {
            let Some(place) = names.iter().position(|known| known == name) else {
                return Err(ClassicalError::UnknownCovariate { setting, name: name.clone(), known: names.join(", ") });
            };
            if places.contains(&place) {
                return Err(ClassicalError::Repeated { column: name.clone() });
            }
            places.push(place);
        }
        Ok(places)
    }
}

/// Which columns are covariates, and which tell the strata.
pub(super) struct Layout {
    /// Places of the covariates.
    pub(super) used: Vec<usize>,
    /// Places of the columns whose values tell the stratum.
    pub(super) strata: Vec<usize>,
    /// Values of those columns in every stratum, in sorted order.
    pub(super) keys: Vec<Vec<f64>>,
    /// Stratum of every sample.
    pub(super) stratum: Vec<usize>,
}

impl Layout {
    pub(super) fn new(covariates: &Array2<f64>, strata: Vec<usize>) -> Self {
        let used = (0..covariates.ncols()).filter(|place| !strata.contains(place)).collect();
        if strata.is_empty() {
            return Self { used, strata, keys: vec![Vec::new()], stratum: vec![0; covariates.nrows()] };
        }
        let rows: Vec<Vec<f64>> = covariates.rows().into_iter().map(|row| key_of(&row, &strata)).collect();
        let mut keys = rows.clone();
        let by_value = |a: &Vec<f64>, b: &Vec<f64>| {
            let different = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
            different.unwrap_or(std::cmp::Ordering::Equal)
        };
        keys.sort_by(by_value);
        keys.dedup();
        let stratum = rows.iter().map(|key| keys.binary_search_by(|known| by_value(known, key)).unwrap_or(0)).collect();
        Self { used, strata, keys, stratum }
    }
}

/// The values that tell the stratum of a row.
pub(super) fn key_of(row: &ArrayView1<'_, f64>, strata: &[usize]) -> Vec<f64> {
    // -0.0 becomes 0.0.
    strata.iter().map(|place| row[*place] + 0.0).collect()
}

/// Covariates of mean 0 and standard deviation 1, in the order of their risk sets.
pub(super) struct Prepared {
    pub(super) mean: Array1<f64>,
    /// Standard deviations, with n in the denominator.
    pub(super) deviation: Array1<f64>,
    pub(super) ordered: Ordered,
}

impl Prepared {
    /// # Errors
    /// [`ClassicalError::Constant`], [`ClassicalError::TooLarge`], by the place in `layout.used`.
    pub(super) fn new(
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        layout: &Layout,
        ties: CoxTies,
    ) -> Result<Self, ClassicalError> {
        let n = outcomes.n();
        let mut x = columns_of(covariates, &layout.used);
        let mean = x.mean_axis(Axis(0)).ok_or(ClassicalError::NoEvents)?;
        let deviation = deviations(&x, &mean);
        if let Some(place) = deviation.iter().position(|deviation| *deviation <= 0.0) {
            return Err(ClassicalError::Constant { column: Column::new(place), n });
        }
        if let Some(place) = deviation.iter().position(|deviation| !deviation.is_finite()) {
            return Err(ClassicalError::TooLarge { column: Column::new(place) });
        }
        let factor = deviation.mapv(f64::recip);
        for mut row in x.rows_mut() {
            row.iter_mut().zip(mean.iter().zip(&factor)).for_each(|(x, (mean, factor))| *x = (*x - mean) * factor);
        }
        let ordered = Ordered::new((outcomes.time(), outcomes.event()), &layout.stratum, &x, ties);
        Ok(Self { mean, deviation, ordered })
    }
}

/// Standard deviations of the columns; exactly 0 of one whose values are all equal.
pub(super) fn deviations(x: &Array2<f64>, mean: &Array1<f64>) -> Array1<f64> {
    let Some(first) = x.rows().into_iter().next() else { return Array1::zeros(x.ncols()) };
    let (mut squares, mut varies) = (Array1::<f64>::zeros(x.ncols()), vec![false; x.ncols()]);
    for row in x.rows() {
        for ((square, varies), ((value, mean), first)) in
            squares.iter_mut().zip(&mut varies).zip(row.iter().zip(mean).zip(&first))
        {
            *square += (value - mean).powi(2);
            *varies |= value.total_cmp(first).is_ne();
        }
    }
    let of_column = |(square, varies): (&f64, bool)| if varies { (square / x.nrows() as f64).sqrt() } else { 0.0 };
    squares.iter().zip(varies).map(of_column).collect()
}
