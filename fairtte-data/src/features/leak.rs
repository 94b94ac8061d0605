//! Signs that a column is known only after the outcome (target leakage).
//!
//! They are searched for among the training samples only, one column at a time; missing counts as a separate value,
//! since a date of death is present exactly for the dead. The bounds are chosen so that legitimate predictors, which
//! never order events without error, do not reach them; they are not statistical tests. A column without a sign may
//! still leak. The known case is `X_d` of the table `CarpenterFdaData`, which is the event indicator under another
//! name.

use std::collections::BTreeMap;
use std::fmt;

use ndarray::{Axis, aview1};
use ndarray_stats::CorrelationExt as _;
use serde::{Deserialize, Serialize};

use super::fit::{TabularFeatures, folded, number};
use super::table::{FeatureColumn, FeatureTable};
use crate::DataError;
use crate::cohort::{Cohort, Sample};
use crate::table::is_missing;

/// Minimum number of training samples for the search.
const FEWEST_SAMPLES: usize = 10;
/// Samples per distinct value below which values with a single outcome each are not considered evidence.
const SAMPLES_PER_VALUE: usize = 5;
/// Minimum share of the training samples for a value to be examined alone: at the oldest age, for example, all samples
/// may be events.
const LEAST_SHARE: f64 = 0.05;
/// Probability below which samples with a single outcome are not considered chance.
const ACCIDENT: f64 = 1e-9;
/// AUC (probability of ordering an event before a censored sample) that no legitimate predictor reaches.
const SUSPICIOUS_ORDER: f64 = 0.99;
/// Rank correlation with the time that no legitimate predictor reaches.
const SUSPICIOUS_CORRELATION: f64 = 0.95;
/// Share of values equal to the time that is not considered chance.
const SUSPICIOUS_SHARE: f64 = 0.5;

/// A feature that may reveal the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeakWarning {
    /// The column.
    pub column: String,
    /// The sign found.
    pub sign: LeakSign,
}

/// A sign of target leakage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakSign {
    /// Every value has only events or only censored samples.
    #[serde(rename_all = "kebab-case")]
    DeterminesEvent {
        /// Different values, missing counted as one.
        n_values: usize,
        /// Training samples.
        n_samples: usize,
    },
    /// All samples with one value have the same outcome, too many for chance.
    #[serde(rename_all = "kebab-case")]
    ImpliesEvent {
        /// The value; `None` if it is the missing one.
        value: Option<String>,
        /// Whether its samples are events.
        event: bool,
        /// Training samples with it.
        n_samples: usize,
    },
    /// The numbers of events and of censored samples hardly overlap.
    #[serde(rename_all = "kebab-case")]
    OrdersEvent {
        /// Probability that an event has the higher number.
        auc: f64,
    },
    /// Many of the numbers are the time itself.
    #[serde(rename_all = "kebab-case")]
    EqualsTime {
        /// Share of the values.
        share: f64,
    },
    /// The numbers have nearly the order of the times.
    #[serde(rename_all = "kebab-case")]
    FollowsTime {
        /// Spearman's rank correlation.
        rank_correlation: f64,
    },
    /// Whole numbers, all different: more likely identifiers than measurements.
    LooksLikeIdentity,
}

impl fmt::Display for LeakWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = |event: &bool| if *event { "events" } else { "censored" };
        write!(f, "column \"{}\" ", self.column)?;
        match &self.sign {
            LeakSign::DeterminesEvent { n_values, n_samples } => write!(
                f,
                "reveals the event: each of its {n_values} values has only events or only censored samples among \
                 {n_samples} training samples"
            ),
            LeakSign::ImpliesEvent { value: Some(value), event, n_samples } => {
                write!(
                    f,
                    "may reveal the event: all {n_samples} training samples with \"{value}\" are {}",
                    outcome(event)
                )
            }
            LeakSign::ImpliesEvent { value: None, event, n_samples } => {
                write!(
                    f,
                    "may reveal the event: all {n_samples} training samples without a value are {}",
                    outcome(event)
                )
            }
            LeakSign::OrdersEvent { auc } => {
                write!(f, "may reveal the event: it orders events and censored samples with an AUC of {auc:.4}")
            }
            LeakSign::EqualsTime { share } => {
                write!(f, "may reveal the time: {:.1} % of its training values are the time itself", 100.0 * share)
            }
            LeakSign::FollowsTime { rank_correlation } => {
                write!(f, "may reveal the time: its rank correlation with the time is {rank_correlation:.4}")
            }
            LeakSign::LooksLikeIdentity => {
                let advice = "leave it out unless it measures something";
                return write!(
                    f,
                    "looks like an identifier: every training sample has a different whole number; {advice}"
                );
            }
        }?;
        write!(f, "; leave it out unless it is known at time 0")
    }
}

/// The signs, at most one per column, among the columns that `fitted` uses; row `i` of `table` is sample `i` of
/// `cohort`.
///
/// Cost: n log n per column.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::ShapeMismatch`] if `table` is not aligned with `cohort`.
///
/// # Panics
/// If a row is not below the number of samples.
pub fn leak_warnings(
    fitted: &TabularFeatures,
    table: &FeatureTable,
    cohort: &Cohort,
    train_rows: &[usize],
) -> Result<Vec<LeakWarning>, DataError> {
    if table.n() != cohort.n() {
        return Err(DataError::ShapeMismatch { what: "table of features", found: table.n(), expected: cohort.n() });
    }
    let mut warnings = Vec::new();
    if train_rows.len() < FEWEST_SAMPLES {
        return Ok(warnings);
    }
    for column in &fitted.columns {
        let pairs = pairs(table.column(&column.column)?, &cohort.samples, train_rows, &fitted.missing_values);
        if let Some(sign) = sign_in_values(&pairs).or_else(|| sign_in_numbers(&pairs)) {
            warnings.push(LeakWarning { column: column.column.clone(), sign });
        }
    }
    Ok(warnings)
}

/// A training sample: its cell (`None` if missing) and its outcome.
struct Pair<'a> {
    cell: Option<&'a str>,
    time: f64,
    event: bool,
}

fn pairs<'a>(
    column: &'a FeatureColumn,
    samples: &[Sample],
    train_rows: &[usize],
    missing_values: &[String],
) -> Vec<Pair<'a>> {
    let pair = |&row: &usize| Pair {
        cell: column.cells[row].as_deref().filter(|cell| !is_missing(missing_values, cell)),
        time: samples[row].time,
        event: samples[row].event,
    };
    train_rows.iter().map(pair).collect()
}

/// Signs that need no order of the values.
fn sign_in_values(pairs: &[Pair<'_>]) -> Option<LeakSign> {
    let n = pairs.len();
    let n_events = pairs.iter().filter(|pair| pair.event).count();
    if n_events == 0 || n_events == n {
        return None;
    }
    // Per value: samples and events. Missing counts as a separate value.
    let mut counts: BTreeMap<Option<String>, (usize, usize)> = BTreeMap::new();
    for pair in pairs {
        let (samples, events) = counts.entry(pair.cell.map(folded)).or_insert((0, 0));
        *samples += 1;
        *events += usize::from(pair.event);
    }
    let is_pure = |&(samples, events): &(usize, usize)| events == 0 || events == samples;
    if counts.values().all(is_pure) && counts.len() * SAMPLES_PER_VALUE <= n {
        return Some(LeakSign::DeterminesEvent { n_values: counts.len(), n_samples: n });
    }
    let share = n_events as f64 / n as f64;
    let pure = counts.into_iter().filter(|(_, count)| is_pure(count));
    let (value, (n_samples, events)) = pure.max_by_key(|(_, (samples, _))| *samples)?;
    let chance = if events > 0 { share } else { 1.0 - share };
    let is_accident = chance.powf(n_samples as f64) >= ACCIDENT;
    let is_rare = (n_samples as f64) < LEAST_SHARE * n as f64;
    (!is_accident && !is_rare).then_some(LeakSign::ImpliesEvent { value, event: events > 0, n_samples })
}

/// Signs in the order of the values, where all of them are numbers.
fn sign_in_numbers(pairs: &[Pair<'_>]) -> Option<LeakSign> {
    let present: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.cell.is_some()).collect();
    let numbers: Vec<f64> = present.iter().filter_map(|pair| number(pair.cell?)).collect();
    if numbers.len() < present.len() || numbers.len() < FEWEST_SAMPLES {
        return None;
    }
    let n = numbers.len() as f64;
    let n_equal = present.iter().zip(&numbers).filter(|(pair, number)| pair.time.total_cmp(number).is_eq()).count();
    let share = n_equal as f64 / n;
    // The times of a class are all the same.
    let times_differ = present.iter().any(|pair| pair.time.total_cmp(&present[0].time).is_ne());
    if times_differ && share >= SUSPICIOUS_SHARE {
        return Some(LeakSign::EqualsTime { share });
    }
    let ranks_of_numbers = ranks(&numbers);
    let times: Vec<f64> = present.iter().map(|pair| pair.time).collect();
    let rank_correlation = correlation(&ranks_of_numbers, &ranks(&times));
    if rank_correlation.is_some_and(|correlation| correlation.abs() >= SUSPICIOUS_CORRELATION) {
        return rank_correlation.map(|rank_correlation| LeakSign::FollowsTime { rank_correlation });
    }
    let n_events = present.iter().filter(|pair| pair.event).count() as f64;
    let sum: f64 = present.iter().zip(&ranks_of_numbers).filter(|(pair, _)| pair.event).map(|(_, rank)| rank).sum();
    let auc = (sum - n_events * (n_events + 1.0) / 2.0) / (n_events * (n - n_events));
    // Neither comparison holds if one of the outcomes is absent and the quotient is NaN.
    if auc >= SUSPICIOUS_ORDER || auc <= 1.0 - SUSPICIOUS_ORDER {
        return Some(LeakSign::OrdersEvent { auc });
    }
    let mut ordered = numbers;
    ordered.sort_by(f64::total_cmp);
    let is_whole = ordered.iter().all(|number| number.fract() == 0.0);
    let all_differ = ordered.windows(2).all(|pair| pair[0] < pair[1]);
    (is_whole && all_differ).then_some(LeakSign::LooksLikeIdentity)
}

/// Ranks from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    while begin < order.len() {
        let value = values[order[begin]];
        // In ascending order, a number that is not above the value is equal to it.
        let n_equal = order[begin..].iter().take_while(|&&row| values[row] <= value).count();
        let mean = begin as f64 + f64::midpoint(n_equal as f64, 1.0);
        order[begin..begin + n_equal].iter().for_each(|&row| ranks[row] = mean);
        begin += n_equal;
    }
    ranks
}

/// Pearson's correlation; `None` where one side is constant.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let both = ndarray::stack(Axis(0), &[aview1(a), aview1(b)]).ok()?;
    let correlation = both.pearson_correlation().ok()?[[0, 1]];
    // A constant side has a standard deviation of 0, or of the rounding of its mean.
    let varies = |side: &[f64]| side.iter().any(|value| value.total_cmp(&side[0]).is_ne());
    (varies(a) && varies(b)).then_some(correlation.clamp(-1.0, 1.0))
}
