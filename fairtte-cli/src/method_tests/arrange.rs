//! Values as a table of settings x methods x trials.
//!
//! Two values that differ by rounding alone, such as means of the same trials in another order, must tie in ranks: means and
//! differences are rounded to 2^-40 (about 1e-12) of the largest value of the metric.

use std::collections::{BTreeMap, HashMap};

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::RankTable;
use ndarray::Array2;

use super::{Goal, LeftOut, Observation, SettingValues, TestsError};

/// Binary digits that are kept of the largest value.
const DIGITS: i32 = 40;

/// An observation with its place.
type Placed<'a> = (usize, &'a Observation);

/// The observations of every metric, in their order.
pub(super) fn by_metric(observations: &[Observation]) -> Result<Vec<(&str, Vec<Placed<'_>>)>, TestsError> {
    let mut metrics: Vec<(&str, Vec<Placed<'_>>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, observation) in observations.iter().enumerate() {
        let place = *places.entry(&observation.metric).or_insert_with(|| {
            metrics.push((&observation.metric, Vec::new()));
            metrics.len() - 1
        });
        metrics[place].1.push((index, observation));
    }
    let n = observations.iter().filter(|observation| observation.trial.is_some()).count();
    let without = observations.iter().position(|observation| observation.trial.is_none());
    match without {
        Some(index) if n > 0 => {
            let what = what(&observations[index]);
            Err(TestsError::SomeTrials { index, n, total: observations.len(), what })
        }
        _ if metrics.is_empty() => Err(TestsError::NoValues),
        _ => Ok(metrics),
    }
}

fn what(observation: &Observation) -> String {
    let Observation { metric, setting, method, trial, .. } = observation;
    let trial = trial.as_ref().map_or_else(String::new, |trial| format!(", trial \"{trial}\""));
    format!("{metric} of \"{method}\" in setting \"{setting}\"{trial}")
}

/// The values of one metric. Names are in the order of the observations.
#[derive(Debug)]
pub(super) struct Arranged<'a> {
    pub(super) metric: &'a str,
    pub(super) goal: Goal,
    settings: Vec<&'a str>,
    pub(super) methods: Vec<&'a str>,
    has_trials: bool,
    /// By setting and method: values by trial, whose name is empty if there are none.
    cells: Vec<Vec<BTreeMap<&'a str, f64>>>,
    /// By setting, what means and differences are rounded to multiples of; 0 for no rounding.
    units: Vec<f64>,
}

impl<'a> Arranged<'a> {
    pub(super) fn new(metric: &'a str, values: &[Placed<'a>], goal: Goal) -> Result<Self, TestsError> {
        let (mut settings, mut methods) = (Names::default(), Names::default());
        for (_, observation) in values {
            settings.add(&observation.setting);
            methods.add(&observation.method);
        }
        if let [method] = methods.names[..] {
            return Err(TestsError::OneMethod { metric: metric.to_owned(), method: method.to_owned() });
        }
        let mut cells = vec![vec![BTreeMap::new(); methods.names.len()]; settings.names.len()];
        let mut first_at = HashMap::new();
        for &(index, observation) in values {
            check(index, observation, goal)?;
            let at = (settings.places[observation.setting.as_str()], methods.places[observation.method.as_str()]);
            let trial = observation.trial.as_deref().unwrap_or_default();
            if cells[at.0][at.1].insert(trial, observation.value).is_some() {
                let first = first_at[&(at, trial)];
                return Err(TestsError::Repeated { index, first, what: what(observation) });
            }
            first_at.insert((at, trial), index);
        }
        let largest = |row: &Vec<BTreeMap<&str, f64>>| {
            row.iter().flat_map(BTreeMap::values).fold(0.0_f64, |largest, value| largest.max(value.abs()))
        };
        let units = cells.iter().map(|row| unit(largest(row))).collect();
        Ok(Self {
            metric,
            goal,
            settings: settings.names,
            methods: methods.names,
            has_trials: values.iter().any(|(_, observation)| observation.trial.is_some()),
            cells,
            units,
        })
    }

    /// Fewest and most trials of a method in a setting, of those that have any.
    pub(super) fn trials(&self) -> Option<(usize, usize)> {
        let counts = || self.cells.iter().flatten().map(BTreeMap::len).filter(|n| *n > 0);
        let range = (counts().min()?, counts().max()?);
        self.has_trials.then_some(range)
    }

    /// The settings with a value of every method, with means and ranks, and the others.
    pub(super) fn settings(&self, direction: Direction) -> Result<(Vec<SettingValues>, Vec<LeftOut>), TestsError> {
        let (mut complete, mut left_out) = (Vec::new(), Vec::new());
        for ((setting, row), unit) in self.settings.iter().zip(&self.cells).zip(&self.units) {
            let setting = (*setting).to_owned();
            let lacks = self.methods.iter().zip(row).filter(|(_, cell)| cell.is_empty());
            let lacks: Vec<String> = lacks.map(|(method, _)| (*method).to_owned()).collect();
            if !lacks.is_empty() {
                left_out.push(LeftOut { setting, lacks });
                continue;
            }
            let means: Vec<f64> = row.iter().map(|cell| mean(cell, *unit)).collect();
            let one_row = Array2::from_shape_fn((1, means.len()), |(_, method)| means[method]);
            let ranks = RankTable::new(one_row, direction)?.average_ranks();
            complete.push(SettingValues { setting, means, ranks });
        }
        Ok((complete, left_out))
    }

    /// Differences of two methods over settings and trials, and how many have a value of one of them only.
    pub(super) fn differences(&self, first: usize, second: usize) -> (Vec<f64>, usize) {
        let (mut differences, mut n_unpaired) = (Vec::new(), 0);
        for (row, unit) in self.cells.iter().zip(&self.units) {
            let (one, other) = (&row[first], &row[second]);
            for (trial, value) in one {
                match other.get(trial) {
                    Some(other) => differences.push((value - other, *unit)),
                    None => n_unpaired += 1,
                }
            }
            n_unpaired += other.keys().filter(|trial| !one.contains_key(*trial)).count();
        }
        (tied_within_units(&differences), n_unpaired)
    }
}

/// The differences, where those whose sizes are no further apart than their unit have the size of the smallest of them, and those within
/// a unit of 0 are 0: settings have different units, so that rounding each to its own would part equal differences.
fn tied_within_units(differences: &[(f64, f64)]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..differences.len()).collect();
    order.sort_by(|a, b| differences[*a].0.abs().total_cmp(&differences[*b].0.abs()));
    let (mut found, mut size) = (vec![0.0; differences.len()], 0.0);
    for place in order {
        let (difference, unit) = differences[place];
        // Also beside a smaller difference of a setting with a smaller unit.
        if difference.abs() <= unit {
            continue;
        }
        if difference.abs() - size > unit {
            size = difference.abs();
        }
        found[place] = size.copysign(difference);
    }
    found
}

/// Divides before it adds, so that the sum is never infinite.
fn mean(cell: &BTreeMap<&str, f64>, unit: f64) -> f64 {
    let n = cell.len() as f64;
    rounded(cell.values().map(|value| value / n).sum(), unit)
}

fn rounded(value: f64, unit: f64) -> f64 {
    if unit > 0.0 { (value / unit).round() * unit } else { value }
}

fn check(index: usize, observation: &Observation, goal: Goal) -> Result<(), TestsError> {
    let Observation { metric, setting, method, value, .. } = observation.clone();
    if !value.is_finite() {
        return Err(TestsError::NotFinite { index, metric, setting, method, value });
    }
    if goal == Goal::Gap && value < 0.0 {
        return Err(TestsError::NegativeGap { index, metric, setting, method, value });
    }
    Ok(())
}

/// A power of two, so that rounding to its multiples is exact.
#[expect(clippy::cast_possible_truncation, reason = "the exponent of a finite number")]
fn unit(largest: f64) -> f64 {
    if largest > 0.0 { 2.0_f64.powi(largest.log2().floor() as i32 - DIGITS) } else { 0.0 }
}

/// Names in the order of their first appearance.
#[derive(Default)]
struct Names<'a> {
    names: Vec<&'a str>,
    places: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: &'a str) {
        self.places.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        });
    }
}
