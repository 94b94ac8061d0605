//! Tests of Cox regression, by subject: the recorded samples, and how values are compared.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

mod definitions;
mod limits;
mod proportionality;
mod recorded;

use std::path::Path;

use approx::assert_relative_eq;
use fairtte_metrics::{Outcomes, SampleId, SubjectId};
use ndarray::{Array1, Array2, Axis, concatenate};
use serde_json::Value;

use super::newton::Concave as _;
use super::ordered::Ordered;
use super::samples::Layout;
use super::score_residuals::score_residuals;
use super::*;
use crate::{ClassicalError, SurvivalEstimator as _, SurvivalModel as _};

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).collect()
}

pub(crate) fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column])
}

/// The recorded samples with the values of `tests/golden/cox.py`.
pub(crate) struct Golden {
    pub(crate) values: Value,
    pub(crate) x: Array2<f64>,
    pub(crate) names: Vec<String>,
}

pub(crate) fn golden() -> Golden {
    let values: Value = serde_json::from_str(include_str!("../../../tests/golden/cox.json")).unwrap();
    let names = values["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    Golden { x: matrix(&values["x"]), names, values }
}

/// The values of `tests/golden/r.R`.
pub(crate) fn of_r() -> Value {
    serde_json::from_str(include_str!("../../../tests/golden/r.json")).unwrap()
}

impl Golden {
    /// Outcomes with the times `tied` or `distinct`.
    pub(crate) fn outcomes(&self, times: &str) -> Outcomes {
        let event = self.values["event"].as_array().unwrap().iter().map(|event| event.as_bool().unwrap()).collect();
        Outcomes::new(numbers(&self.values[times]), event).unwrap()
    }

    /// Covariates of mean 0 and standard deviation 1.
    pub(crate) fn standardised(&self) -> Array2<f64> {
        (&self.x - &self.x.mean_axis(Axis(0)).unwrap()) / &self.x.std_axis(Axis(0), 0.0)
    }

    fn with_stratum(&self) -> (Array2<f64>, Vec<String>) {
        let stratum = Array1::from_vec(numbers(&self.values["stratum"])).insert_axis(Axis(1));
        let names = ["ward".to_owned()].into_iter().chain(self.names.clone()).collect();
        (concatenate![Axis(1), stratum, self.x], names)
    }

    fn subjects(&self) -> Vec<SubjectId> {
        numbers(&self.values["subject"]).iter().map(|number| SubjectId::new(number.to_string())).collect()
    }
}

fn fit(settings: &CoxSettings, x: &Array2<f64>, outcomes: &Outcomes) -> CoxModel {
    settings.fit(x, outcomes).unwrap()
}

pub(crate) fn assert_close(found: impl IntoIterator<Item = f64>, expected: &[f64], tolerance: f64) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} {expected}");
    }
}

pub(crate) fn assert_recorded(terms: &[CoxCoefficient], recorded: &Value, tolerance: f64) {
    assert_close(terms.iter().map(|term| term.value), &numbers(&recorded["coefficients"]), tolerance);
    assert_close(terms.iter().map(|term| term.standard_error.unwrap()), &numbers(&recorded["errors"]), tolerance);
}
