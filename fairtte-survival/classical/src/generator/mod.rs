//! Cohorts of which the truth is known: Algorithm 1 of "Benchmarking survival models: treatment effects, bias, and equity" (anonymous,
//! under review; below *the benchmark*), with hazards of its Table 3 and of our own.
//!
//! Of every person, treatment a ~ Bernoulli(alpha(x)), event time t from the hazard h(t given a, x) and censoring time c from its own
//! hazard, each by inversion of its cumulative hazard, which has a closed form for every hazard here. y = min(t, c), the event is
//! observed where t <= c, and the follow-up ends at a maximum. What is not in the printed algorithm is documented where it is set: the scale of
//! the covariates, dependence of c on t, spread entry, effects of subgroups on the hazards.

mod course;
mod covariates;
mod hazard;
mod people;
mod settings;

use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::Array2;
use rayon::prelude::*;

use self::covariates::Covariates;
pub use self::hazard::{Clock, Gauss, Hazard, LogLinear, Piece};
use self::people::{Person, draw};
pub use self::settings::{
    CensoringSettings, CovariateSettings, FollowUpSettings, GeneratorSettings, Scale, SubgroupSettings, Through,
    TreatmentSettings, UnmeasuredSettings,
};
use crate::ClassicalError;

/// Whose true survival is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// With the treatment that a person has.
    Observed,
    /// As if no person were treated.
    Untreated,
    /// As if everybody were treated.
    Treated,
}

/// People with known truth.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Observed times and events.
    pub outcomes: Outcomes,
    /// Whether treated, `[n]`.
    pub treatment: Vec<bool>,
    /// Probability of the treatment, `[n]`.
    pub propensity: Vec<f64>,
    /// Subgroup, `[n]`, counted from 0; empty without subgroups.
    pub subgroup: Vec<usize>,
    /// All covariates, `[n, d]`, as the hazards read them.
    pub covariates: Array2<f64>,
    /// Places of the covariates that are visible.
    pub visible: Vec<usize>,
    /// The unmeasured z, `[n]`.
    pub unmeasured: Vec<f64>,
    /// True event time with the observed treatment, `[n]`; infinite where the event never comes.
    pub event_time: Vec<f64>,
    /// True event times without and with treatment, `[n]`, of the same random number.
    pub potential_times: Vec<[f64; 2]>,
    /// True time of censoring by hazard or end of follow-up, `[n]`, also where the event came first.
    pub censoring_time: Vec<f64>,
    people: Vec<Person>,
    settings: GeneratorSettings,
}

/// Draws people with normal covariates. The same seed gives the same people, whatever the number of threads; more people do not change
/// the first ones, and people of one seed under other settings have the same random numbers. O(n (d + log n)).
///
/// ```
/// use fairtte_classical::generator::{Arm, GeneratorSettings, generate};
///
/// let settings = GeneratorSettings { n: 100, ..GeneratorSettings::default() };
/// let cohort = generate(&settings, 1)?;
/// let truth = cohort.survival(Arm::Observed, &settings.grid())?;
/// assert_eq!((cohort.outcomes.n(), truth.n(), truth.grid().len()), (100, 100, 201));
/// # Ok::<(), fairtte_classical::ClassicalError>(())
/// ```
///
/// # Errors
/// [`ClassicalError::Setting`] if a setting is outside its range, [`ClassicalError::Overflow`] if a hazard overflows.
pub fn generate(settings: &GeneratorSettings, seed: u64) -> Result<Generated, ClassicalError> {
    settings.check()?;
    let covariates = Covariates::normal(&settings.covariates, settings.unmeasured.correlation);
    generate_from(settings, &covariates, seed)
}

/// As [`generate`], for people with the covariates of given rows `[rows, d]`: person i has those of row i, and of row i - `rows` beyond
/// the last one.
///
/// # Errors
/// As [`generate`]; [`ClassicalError::NoCovariates`] without rows or columns, [`ClassicalError::NotFinite`],
/// [`ClassicalError::Constant`] if a column that is scaled has one value.
pub fn generate_on(settings: &GeneratorSettings, rows: &Array2<f64>, seed: u64) -> Result<Generated, ClassicalError> {
    settings.check_with(rows.ncols())?;
    let covariates = Covariates::given(rows, settings.covariates.scale, settings.unmeasured.correlation)?;
    generate_from(settings, &covariates, seed)
}

fn generate_from(
    settings: &GeneratorSettings,
    covariates: &Covariates,
    seed: u64,
) -> Result<Generated, ClassicalError> {
    let d = covariates.count();
    let drawn: Result<Vec<_>, _> =
        (0..settings.n).into_par_iter().map(|row| draw(settings, covariates, seed, row)).collect();
    let drawn = drawn?;
    let values = drawn.iter().flat_map(|(_, found)| found.covariates.iter().copied()).collect();
    let of = |get: fn(&people::Drawn) -> f64| drawn.iter().map(|(_, found)| get(found)).collect::<Vec<f64>>();
    let event = drawn.iter().map(|(_, found)| found.event).collect();
    let subgroups = !settings.subgroups.shares.is_empty();
    Ok(Generated {
        outcomes: Outcomes::new(of(|found| found.time), event)?,
        treatment: drawn.iter().map(|(_, found)| found.treated).collect(),
        propensity: of(|found| found.propensity),
        subgroup: if subgroups { drawn.iter().map(|(_, found)| found.subgroup).collect() } else { Vec::new() },
        covariates: Array2::from_shape_vec((settings.n, d), values).expect("every person has d covariates"),
        visible: (0..d).filter(|place| !settings.withheld.contains(place)).collect(),
        unmeasured: of(|found| found.unmeasured),
        event_time: drawn.iter().map(|(_, found)| found.potential_times[usize::from(found.treated)]).collect(),
        potential_times: drawn.iter().map(|(_, found)| found.potential_times).collect(),
        censoring_time: of(|found| found.censoring_time),
        people: drawn.into_iter().map(|(person, _)| person).collect(),
        settings: settings.clone(),
    })
}

impl Generated {
    /// The settings.
    pub fn settings(&self) -> &GeneratorSettings {
        &self.settings
    }

    /// The covariates that are visible, `[n, visible]`.
    pub fn visible_covariates(&self) -> Array2<f64> {
        self.covariates.select(ndarray::Axis(1), &self.visible)
    }

    /// Treatment (0 or 1) as the first column, then the visible covariates: what a model is fitted to, `[n, 1 + visible]`.
    pub fn inputs(&self) -> Array2<f64> {
        let of = |(row, column): (usize, usize)| match column {
            0 => f64::from(u8::from(self.treatment[row])),
            _ => self.covariates[[row, self.visible[column - 1]]],
        };
        Array2::from_shape_fn((self.treatment.len(), 1 + self.visible.len()), of)
    }

    /// As [`inputs`](Self::inputs) with the treatment of everybody set to `treated`.
    pub fn inputs_if(&self, treated: bool) -> Array2<f64> {
        let mut inputs = self.inputs();
        inputs.column_mut(0).fill(f64::from(u8::from(treated)));
        inputs
    }

    /// True survival of every person at the times of `grid`, given treatment, all covariates, z and subgroup, `[n, n_times]`.
    ///
    /// # Errors
    /// [`ClassicalError::Metric`] if `grid` is no time grid.
    pub fn survival(&self, arm: Arm, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let course = |row: usize| {
            let treated = match arm {
                Arm::Observed => self.treatment[row],
                Arm::Untreated => false,
                Arm::Treated => true,
            };
            self.people[row].event[usize::from(treated)]
        };
        self.curves(grid, |row, t| (-course(row).cumulative(t)).exp())
    }

    /// True G of every person: the probability of no censoring, by hazard or end of follow-up, up to and including each time of
    /// `grid`, `[n, n_times]`.
    ///
    /// # Errors
    /// [`ClassicalError::Metric`] if `grid` is no time grid.
    pub fn censoring_survival(&self, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let FollowUpSettings { maximum, accrual, .. } = self.settings.follow_up;
        let followed = |t: f64| {
            if t >= maximum {
                0.0
            } else if accrual > 0.0 {
                ((maximum - t) / accrual).min(1.0)
            } else {
                1.0
            }
        };
        self.curves(grid, |row, t| (-self.people[row].censoring.cumulative(t)).exp() * followed(t))
    }

    fn curves(&self, grid: &[f64], of: impl Fn(usize, f64) -> f64 + Sync) -> Result<SurvivalCurves, ClassicalError> {
        let mut values = Array2::zeros((self.people.len(), grid.len()));
        let rows: Vec<_> = values.rows_mut().into_iter().enumerate().collect();
        rows.into_par_iter().for_each(|(row, mut curve)| {
            for (value, &t) in curve.iter_mut().zip(grid) {
                *value = of(row, t);
            }
        });
        Ok(SurvivalCurves::new(grid.to_vec(), values)?)
    }
}

#[cfg(test)]
mod tests;
