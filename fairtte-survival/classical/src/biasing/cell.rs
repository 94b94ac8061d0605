//! One method, share and repeat of Algorithm 1.

use fairtte_metrics::seeds::stream;
use fairtte_metrics::{Outcomes, Risk};
use ndarray::{Array2, Axis};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::folds::{folds, halves};
use super::measures::{Scored, baseline_of, censoring_of, event_times};
use super::method::bias;
use super::{Biasing, BiasingSettings, Measure};
use crate::{ClassicalError, SurvivalEstimator, SurvivalModel as _};

/// A table that is biased.
#[derive(Clone, Debug, PartialEq)]
pub struct BiasingTable {
    name: String,
    covariates: Array2<f64>,
    variables: Vec<usize>,
    outcomes: Outcomes,
}

impl BiasingTable {
    /// Keeps covariates `[n, p]` with the outcomes `[n]`. `variables` is the number of the covariate that each column encodes,
    /// `[p]`, ascending: the columns of a covariate with levels have the same. `name` is part of the random numbers.
    ///
    /// # Errors
    /// [`ClassicalError::NoCovariates`], [`ClassicalError::NoEvents`], [`ClassicalError::NotFinite`];
    /// [`ClassicalError::Length`] if covariates and outcomes differ in length, [`ClassicalError::Columns`] if there is not one
    /// number per column.
    pub fn new(
        name: &str,
        covariates: Array2<f64>,
        variables: Vec<usize>,
        outcomes: Outcomes,
    ) -> Result<Self, ClassicalError> {
        crate::estimator::check_samples(&covariates, &outcomes)?;
        let (found, expected) = (variables.len(), covariates.ncols());
        if found != expected {
            return Err(ClassicalError::Columns { found, expected });
        }
        Ok(Self { name: name.to_owned(), covariates, variables, outcomes })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its outcomes, `[n]`.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Its covariates, `[n, p]`.
    pub fn covariates(&self) -> &Array2<f64> {
        &self.covariates
    }
}

/// What is computed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cell {
    /// How the half is biased.
    pub method: Biasing,
    /// Probability with which a sample of it is drawn.
    pub share: f64,
    /// Number of the repeat, from 0.
    pub repeat: usize,
}

/// Loss of a measure in both halves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HalfLosses {
    /// The measure.
    pub measure: Measure,
    /// Mean over the folds of the biased half; `None` if a fold has none.
    pub biased: Option<f64>,
    /// Mean over the folds of the other half; `None` if a fold has none.
    pub unbiased: Option<f64>,
    /// Why there is none, of the first such fold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl HalfLosses {
    /// F = |biased - unbiased|.
    pub fn difference(&self) -> Option<f64> {
        Some((self.biased? - self.unbiased?).abs())
    }
}

/// The result of a cell: one row of a file that can be continued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CellResult {
    /// Name of the table.
    pub table: String,
    /// What was computed.
    #[serde(flatten)]
    pub cell: Cell,
    /// Samples of the biased half before it was biased.
    pub n_half: usize,
    /// Samples of it that were drawn.
    pub n_drawn: usize,
    /// By measure, in the order of the settings.
    pub losses: Vec<HalfLosses>,
}

/// All cells of a table: by method, share and repeat, in this order.
pub fn cells(settings: &BiasingSettings) -> Vec<Cell> {
    let mut all = Vec::with_capacity(settings.methods.len() * settings.shares.len() * settings.repeats);
    for method in &settings.methods {
        for share in &settings.shares {
            all.extend((0..settings.repeats).map(|repeat| Cell { method: *method, share: *share, repeat }));
        }
    }
    all
}

/// Computes a cell of a table. `estimator` returns the settings of the estimator for a seed; an estimator without random numbers
/// ignores it. The result depends on table, cell and settings alone, not on other cells. Cost: 2 x folds fits.
///
/// A measure without a value in a fold (no event among its samples) has none in the half, with the reason; so has every measure if
/// the estimator cannot be fitted to the folds of the half.
///
/// # Errors
/// [`ClassicalError::Setting`] for settings out of range.
pub fn run_cell<E: SurvivalEstimator>(
    table: &BiasingTable,
    cell: Cell,
    settings: &BiasingSettings,
    estimator: impl Fn(u64) -> E,
) -> Result<CellResult, ClassicalError> {
    settings.check()?;
    estimator(settings.seed).check()?;
    let counters = [cell.share.to_bits(), cell.repeat as u64];
    let name = format!("biasing/{}/{}", table.name, cell.method.name());
    let mut rng = stream(settings.seed, &name, &counters);
    let [first, second] = halves(table.outcomes.n(), &mut rng);
    let biased = bias(cell.method, &first, cell.share, &table.covariates, &table.variables, &mut rng);
    let mut of_half = |covariates: &Array2<f64>, outcomes: &Outcomes| {
        cross_validated(covariates, outcomes, settings, &estimator, &mut rng)
    };
    let of_biased = of_half(&biased.covariates, &table.outcomes.select(&biased.rows));
    let of_unbiased = of_half(&table.covariates.select(Axis(0), &second), &table.outcomes.select(&second));
    let losses = settings.measures.iter().zip(of_biased.into_iter().zip(of_unbiased));
    let losses = losses.map(|(measure, (biased, unbiased))| {
        let reason = biased.as_ref().err().or(unbiased.as_ref().err()).map(ToString::to_string);
        HalfLosses { measure: *measure, biased: biased.ok(), unbiased: unbiased.ok(), reason }
    });
    let losses = losses.collect();
    Ok(CellResult { table: table.name.clone(), cell, n_half: first.len(), n_drawn: biased.n_drawn, losses })
}

/// By measure, the mean of its values in the folds.
fn cross_validated<E: SurvivalEstimator>(
    covariates: &Array2<f64>,
    outcomes: &Outcomes,
    settings: &BiasingSettings,
    estimator: &impl Fn(u64) -> E,
    rng: &mut ChaCha8Rng,
) -> Vec<Result<f64, ClassicalError>> {
    let folds = folds(outcomes.n(), settings.folds, rng);
    let mut sums: Vec<Result<f64, ClassicalError>> = settings.measures.iter().map(|_| Ok(0.0)).collect();
    for fold in 0..settings.folds {
        // Drawn also if a fold before it failed, so that every fold has its own.
        let estimator = estimator(rng.next_u64());
        let values = of_fold(covariates, outcomes, &folds, fold, &settings.measures, &estimator);
        for (place, sum) in sums.iter_mut().enumerate() {
            let value = match &values {
                Ok(values) => values[place].clone(),
                Err(error) => Err(error.clone()),
            };
            if let Ok(so_far) = sum {
                *sum = value.map(|value| *so_far + value);
            }
        }
    }
    sums.into_iter().map(|sum| sum.map(|sum| sum / settings.folds as f64)).collect()
}

/// By measure, its value in a fold of the estimator that is fitted to the other folds.
fn of_fold<E: SurvivalEstimator>(
    covariates: &Array2<f64>,
    outcomes: &Outcomes,
    folds: &[usize],
    fold: usize,
    measures: &[Measure],
    estimator: &E,
) -> Result<Vec<Result<f64, ClassicalError>>, ClassicalError> {
    let rows =
        |is_test: bool| -> Vec<usize> { (0..folds.len()).filter(|row| (folds[*row] == fold) == is_test).collect() };
    let (training, tested) = (rows(false), rows(true));
    let seen = outcomes.select(&training);
    let model = estimator.fit(&covariates.select(Axis(0), &training), &seen)?;
    let grid = event_times(&seen);
    let covariates = covariates.select(Axis(0), &tested);
    let curves = model.survival_curves(&covariates, &grid)?;
    let risk = Risk::new(model.risk(&covariates)?)?;
    let scored = Scored {
        outcomes: &outcomes.select(&tested),
        curves: &curves,
        risk: &risk,
        baseline: &baseline_of(&seen, &grid, tested.len())?,
        censoring: &censoring_of(&seen)?,
    };
    Ok(measures.iter().map(|measure| Ok(measure.of(&scored)?)).collect())
}
