//! Cumulative/dynamic time-dependent AUC: at time t, do those who had the event by t have lower survival S(t) than
//! those still free of it?
//!
//! ```text
//!            sum over cases i, controls j of  g_i (1{S_i(t) < S_j(t)} + 1/2 1{tied})
//! AUC(t) =  -------------------------------------------------------------------------
//!                       sum over cases i of g_i  *  number of controls
//! ```
//!
//! with cases `T_i <= t` with event, controls `T_j > t`, and weights `g_i = 1 / G(T_i)` from the censoring curve of
//! the training sample. (A factor 1 / G(t), printed in the paper, is the same for all pairs and cancels.)
//! Summary: the time average by trapezoids (`FairTTE`, E.1.2); as a second summary the mean weighted by the drop of
//! the Kaplan-Meier curve of the evaluated sample.
//! Sources: Uno et al. (2007), <https://doi.org/10.1198/016214507000000149>; Hung & Chiang (2010); Lambert &
//! Chevret (2016), <https://doi.org/10.1177/0962280213515571>, for the weighted mean.
//! Golden values: `scikit-survival` 0.28.0 `cumulative_dynamic_auc`. Where we differ: an undefined time is an error for
//! that time and not NaN; an event time with G = 0 makes only the times that use it undefined.

use crate::rank::auc_convention::AucConvention;
use crate::rank::auc_walk::Walk;
use ndarray::Array2;
use rayon::prelude::*;

use crate::curves::{SurvivalCurves, check_grid};
use crate::estimators::censoring::CensoringCurve;
use crate::estimators::kaplan_meier::KaplanMeier;
use crate::finite::finite;
use crate::ids::to_u32;
use crate::reading::{Position, Reading};
use crate::scores::integrate::time_average;
use crate::weights::weights_in_order;
use crate::{MetricError, Outcomes};

/// Predictions closer than this are tied, as in `scikit-survival`: samples are sorted by 1 - S(t) and a new class of
/// tied samples starts where the step to the next one is larger.
pub const TIE_TOLERANCE: f64 = 1e-8;

/// AUC(t) at every time with its two summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct AucTd {
    /// Evaluation times.
    pub times: Vec<f64>,
    /// AUC at each time, in [0, 1], or the reason why it has none there (no case yet, no control left, ..).
    pub values: Vec<Result<f64, MetricError>>,
    /// Trapezoid mean over the times that have a value; higher is better.
    pub time_average: Result<f64, MetricError>,
}

impl AucTd {
    pub(crate) fn new(times: &[f64], values: Vec<Result<f64, MetricError>>) -> Self {
        let average = average_of_defined(times, &values);
        Self { times: times.to_vec(), values, time_average: average }
    }

    /// Number of times without a value.
    pub fn n_undefined(&self) -> usize {
        self.values.iter().filter(|value| value.is_err()).count()
    }

    /// Mean weighted by the drop of `survival`, the Kaplan-Meier curve of the evaluated sample, between times
    /// (`scikit-survival`): the sum over k of `AUC(t[k]) * (S(t[k-1]) - S(t[k]))`, divided by `1 - S(t[last])`, with
    /// S = 1 before the first time. A single time gives its AUC. A time without a value counts only if survival drops
    /// there (`scikit-survival` returns NaN also where it does not).
    ///
    /// # Errors
    /// The error of the first time without a value at which survival drops; [`MetricError::NoSurvivalDrop`] if it never
    /// drops. If the public fields were set to other values: [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`]
    /// for the times, [`MetricError::LengthMismatch`] unless there is one value per time, [`MetricError::NotFinite`] if
    /// one that counts is not a finite number.
    pub fn drop_weighted_mean(&self, survival: &KaplanMeier) -> Result<f64, MetricError> {
        check_grid(&self.times)?;
        if self.values.len() != self.times.len() {
            let (found, expected) = (self.values.len(), self.times.len());
            return Err(MetricError::LengthMismatch { what: "values over time", found, expected });
        }
        let value_of = |value: &Result<f64, MetricError>| finite("AUC", value.clone()?);
        if let [single] = self.values.as_slice() {
            return value_of(single);
        }
        let (mut before, mut sum) = (1.0, 0.0);
        for (time, value) in self.times.iter().zip(&self.values) {
            let here = survival.at(*time);
            let drop = before - here;
            if drop > 0.0 {
                sum += value_of(value)? * drop;
            }
            before = here;
        }
        if before < 1.0 {
            return finite("mean AUC", (sum / (1.0 - before)).min(1.0));
        }
        Err(MetricError::NoSurvivalDrop { time: self.times[self.times.len() - 1] })
    }

    /// Sorts everything that does not depend on weights; see [`PreparedAucTd::weighted`].
    ///
    /// Cost: O(L n log n) time and O(L n) memory for L times.
    ///
    /// # Errors
    /// As [`auc_td`].
    pub fn prepare(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<PreparedAucTd, MetricError> {
        Self::prepare_with(outcomes, curves, censoring, reading, times, AucConvention::default())
    }

    /// As [`prepare`](Self::prepare) by another convention.
    ///
    /// # Errors
    /// As [`auc_td`].
    pub fn prepare_with(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
        convention: AucConvention,
    ) -> Result<PreparedAucTd, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        check_grid(times)?;
        Ok(PreparedAucTd::new(outcomes, curves, censoring, reading, times, convention))
    }
}

/// AUC of `curves` at every one of `times`, with weights from `censoring` (fitted on training data).
///
/// Tied times: a sample censored exactly at t is neither case nor control. Tied predictions count 1/2, within
/// [`TIE_TOLERANCE`]. Cost: one sort per time.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::rank::auc_td;
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.1], [0.7, 0.6], [0.6, 0.5]])?;
/// let no_censoring = CensoringCurve::fit(&outcomes, CensoringTies::default())?;
/// let auc = auc_td(&outcomes, &curves, &no_censoring, Reading::Step, &[1.0, 2.0, 3.0])?;
/// // At 1 both controls are above the case; at 2 one of two cases is below the control; at 3 no control is left.
/// assert_eq!((auc.values[0].clone(), auc.values[1].clone(), auc.n_undefined()), (Ok(1.0), Ok(0.5), 1));
/// assert_eq!(auc.time_average, Ok(0.75));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::EmptyGrid`] or
/// [`MetricError::InvalidGrid`] for the times, [`MetricError::InvalidSetting`] for a refinement factor of 0. The errors
/// of single times (no cases, no controls, no censoring weight) are in [`AucTd::values`].
pub fn auc_td(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<AucTd, MetricError> {
    auc_td_with(outcomes, curves, censoring, reading, times, AucConvention::default())
}

/// [`auc_td`] by another convention: see [`AucConvention`].
///
/// # Errors
/// As [`auc_td`].
pub fn auc_td_with(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
    convention: AucConvention,
) -> Result<AucTd, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    check_grid(times)?;
    let (middle, read) = of_curves(curves, reading, times);
    Ok(auc_at_once(outcomes, &middle, read, censoring, times, convention))
}

/// What the samples are sorted by, and what reads predictions at some of the times.
#[expect(clippy::type_complexity, reason = "a closure's type has no name")]
fn of_curves<'a>(
    curves: &'a SurvivalCurves,
    reading: Reading,
    times: &[f64],
) -> (Vec<f64>, impl Fn(&[u32], usize, &[f64]) -> Vec<f64> + Sync + 'a) {
    let middle = curves.all_at(times[times.len() / 2], reading);
    let read = move |order: &[u32], _first: usize, times: &[f64]| {
        let positions: Vec<Position> = times.iter().map(|&t| reading.position(curves.grid(), t)).collect();
        curves.read_block(order, &positions, reading)
    };
    (middle, read)
}

/// The AUC of all samples, each once: as [`PreparedAucTd`] without keeping the walks, which take 4 bytes per sample and time.
fn auc_at_once(
    outcomes: &Outcomes,
    middle: &[f64],
    read: impl Fn(&[u32], usize, &[f64]) -> Vec<f64> + Sync,
    censoring: &CensoringCurve,
    times: &[f64],
    convention: AucConvention,
) -> AucTd {
    let (sorted, samples) = PreparedAucTd::sorted(outcomes, middle, censoring, times, convention);
    let ones = vec![1; outcomes.n()];
    let spoilt = sorted.spoilt(&ones);
    let values = sorted.each_walk(&samples, read, convention, |time, walk| sorted.value(time, &walk, spoilt, &ones));
    AucTd::new(times, values)
}

/// AUC of risks at every one of `times`, as [`auc_td`] of curves: `risk` is `[n, k]` with one column per time, or `[n, 1]` for
/// one risk at all times; higher = the event is expected earlier.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes};
/// use fairtte_metrics::rank::auc_of_risks;
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true; 3])?;
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default())?;
/// let risk = array![[3.0, 0.0], [1.0, 2.0], [2.0, 1.0]];
/// let auc = auc_of_risks(&outcomes, &risk, &censoring, &[1.0, 2.0])?;
/// // At 1 both controls have a lower risk than the case, at 2 one of two cases has a higher one than the control.
/// assert_eq!(auc.values, [Ok(1.0), Ok(0.5)]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// As [`auc_td`], [`MetricError::GridMismatch`] if the columns do not fit, [`MetricError::InvalidRisk`] for a risk that is not
/// finite.
pub fn auc_of_risks(
    outcomes: &Outcomes,
    risk: &Array2<f64>,
    censoring: &CensoringCurve,
    times: &[f64],
) -> Result<AucTd, MetricError> {
    check_grid(times)?;
    if risk.nrows() != outcomes.n() {
        let (found, expected) = (risk.nrows(), outcomes.n());
        return Err(MetricError::LengthMismatch { what: "risk scores", found, expected });
    }
    if risk.ncols() != 1 && risk.ncols() != times.len() {
        return Err(MetricError::GridMismatch { columns: risk.ncols(), n_times: times.len() });
    }
    if let Some(((row, _), risk)) = risk.indexed_iter().find(|(_, risk)| !risk.is_finite()) {
        return Err(MetricError::InvalidRisk { row, risk: *risk });
    }
    let column = |place: usize| if risk.ncols() == 1 { risk.column(0) } else { risk.column(place) };
    let middle: Vec<f64> = column(times.len() / 2).iter().map(|risk| -risk).collect();
    let read = |order: &[u32], first: usize, times: &[f64]| {
        let of_time = |place: usize| {
            let column = column(first + place);
            order.iter().map(move |&row| -column[row as usize]).collect::<Vec<_>>()
        };
        (0..times.len()).flat_map(of_time).collect()
    };
    let convention = AucConvention::ScikitSurvival;
    Ok(auc_at_once(outcomes, &middle, read, censoring, times, convention))
}

/// AUC(t) sorted and ready for any number of weight vectors.
#[derive(Clone, Debug)]
pub struct PreparedAucTd {
    pub(crate) times: Vec<f64>,
    /// Samples by falling S at the middle one of the times. At the other times the order is similar, so that a walk by
    /// falling S reads neighbouring memory in successive steps.
    pub(crate) order: Vec<u32>,
    /// Weights as cases of the events and 0 of the censored, in that order.
    pub(crate) case_weights: Vec<f64>,
    /// The events without such a weight, earliest first.
    pub(crate) without_weight: Vec<EventWithoutWeight>,
    /// The controls and cases at each time, by falling S(t).
    pub(crate) walks: Vec<Walk>,
}

/// An event without a weight: every time at which it is a case is undefined.
#[derive(Clone, Debug)]
pub(crate) struct EventWithoutWeight {
    /// Place in the order.
    pub(crate) place: usize,
    pub(crate) time: f64,
    reason: MetricError,
}

/// Times that are read from the survival matrix together, because a cache line holds several columns; more of them would only
/// take more memory.
const TIMES_READ_TOGETHER: usize = 16;

impl PreparedAucTd {
    fn new(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
        convention: AucConvention,
    ) -> Self {
        let (middle, read) = of_curves(curves, reading, times);
        let (sorted, samples) = Self::sorted(outcomes, &middle, censoring, times, convention);
        let walks = sorted.each_walk(&samples, read, convention, |_, walk| walk);
        Self { walks, ..sorted }
    }

    /// The samples without walks, and time and event in their order; `middle` is a prediction of every sample, lower = at higher
    /// risk, by which all are sorted.
    fn sorted(
        outcomes: &Outcomes,
        middle: &[f64],
        censoring: &CensoringCurve,
        times: &[f64],
        convention: AucConvention,
    ) -> (Self, Vec<(f64, bool)>) {
        let mut order: Vec<u32> = (0..outcomes.n()).map(to_u32).collect();
        order.sort_unstable_by(|&a, &b| middle[b as usize].total_cmp(&middle[a as usize]).then(a.cmp(&b)));
        let samples: Vec<(f64, bool)> =
            order.iter().map(|&row| (outcomes.time()[row as usize], outcomes.event()[row as usize])).collect();
        let (mut case_weights, mut without_weight) = (Vec::with_capacity(order.len()), Vec::new());
        for (place, &(time, event)) in samples.iter().enumerate() {
            let weight = if event { convention.case_weight(censoring, time) } else { Ok(0.0) };
            case_weights.push(*weight.as_ref().unwrap_or(&0.0));
            without_weight.extend(weight.err().map(|reason| EventWithoutWeight { place, time, reason }));
        }
        without_weight.sort_by(|a: &EventWithoutWeight, b| a.time.total_cmp(&b.time));
        (Self { times: times.to_vec(), case_weights, without_weight, walks: Vec::new(), order }, samples)
    }

    /// What `found` makes of every time and its walk; `samples` are time and event in order. `read` gives the predictions of
    /// the samples in an order at some of the times, of which the first has this place: `[times, samples]`.
    fn each_walk<T: Send>(
        &self,
        samples: &[(f64, bool)],
        read: impl Fn(&[u32], usize, &[f64]) -> Vec<f64> + Sync,
        convention: AucConvention,
        found: impl Fn(f64, Walk) -> T + Sync,
    ) -> Vec<T> {
        let n = self.order.len();
        let of_chunk = |(number, times): (usize, &[f64])| -> Vec<T> {
            let predictions = read(&self.order, number * TIMES_READ_TOGETHER, times);
            let walk = |(k, &t): (usize, &f64)| {
                let role = |&(time, event): &(f64, bool)| {
                    if convention.is_control(time, event, t) { Some(false) } else { event.then_some(true) }
                };
                let is_case: Vec<Option<bool>> = samples.iter().map(role).collect();
                found(t, Walk::new(&predictions[k * n..][..n], &is_case, convention.tie_tolerance()))
            };
            times.iter().enumerate().map(walk).collect()
        };
        self.times.par_chunks(TIMES_READ_TOGETHER).enumerate().flat_map_iter(of_chunk).collect()
    }

    /// The AUC of the sample in which row `i` occurs `weights[i]` times, as if it were repeated that often.
    ///
    /// The classes of tied predictions are those of the sample that was prepared. Cost: O(L n), no sorting.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if there is not one weight per sample.
    pub fn weighted(&self, weights: &[u32]) -> Result<AucTd, MetricError> {
        let weights = weights_in_order(weights, &self.order)?;
        let spoilt = self.spoilt(&weights);
        let values = self.times.iter().zip(&self.walks);
        let values = values.map(|(&time, walk)| self.value(time, walk, spoilt, &weights));
        Ok(AucTd::new(&self.times, values.collect()))
    }

    /// The event from whose time on one case has no weight.
    fn spoilt(&self, weights: &[u32]) -> Option<&EventWithoutWeight> {
        self.without_weight.iter().find(|event| weights[event.place] > 0)
    }

    fn value(
        &self,
        time: f64,
        walk: &Walk,
        spoilt: Option<&EventWithoutWeight>,
        weights: &[u32],
    ) -> Result<f64, MetricError> {
        match spoilt {
            Some(event) if event.time <= time => Err(event.reason.clone()),
            _ => self.auc_at(time, walk, weights),
        }
    }

    /// AUC at one time; `weights` (copies of each sample) are in order.
    fn auc_at(&self, time: f64, walk: &Walk, weights: &[u32]) -> Result<f64, MetricError> {
        let (mut n_controls_above, mut won, mut total) = (0_u64, 0.0, 0.0);
        for class in walk.classes() {
            let controls = class.iter().filter(|step| !step.is_case());
            let n_tied: u64 = controls.map(|control| u64::from(weights[control.place()])).sum();
            for case in class.iter().filter(|step| step.is_case()).map(|step| step.place()) {
                let case_weight = f64::from(weights[case]) * self.case_weights[case];
                // Fewer than 2^30 samples of fewer than 2^32 copies each: the sum stays below 2^64.
                won += case_weight * (2 * n_controls_above + n_tied) as f64;
                total += case_weight;
            }
            n_controls_above += n_tied;
        }
        if total <= 0.0 {
            return Err(MetricError::NoCases { time });
        }
        if n_controls_above == 0 {
            return Err(MetricError::NoControls { time });
        }
        // Rounding must not lift a perfect ranking above 1.
        Ok((0.5 * won / (total * n_controls_above as f64)).min(1.0))
    }
}

fn average_of_defined(times: &[f64], values: &[Result<f64, MetricError>]) -> Result<f64, MetricError> {
    let defined = times.iter().zip(values).filter_map(|(time, value)| value.as_ref().ok().map(|v| (*time, *v)));
    let (defined_times, defined_values): (Vec<f64>, Vec<f64>) = defined.unzip();
    match values.first() {
        Some(Err(first)) if defined_times.is_empty() => {
            Err(MetricError::UndefinedAtEveryTime { n_times: times.len(), first: Box::new(first.clone()) })
        }
        None => Err(MetricError::EmptyGrid),
        Some(_) => Ok(time_average(&defined_times, &defined_values)),
    }
}

#[cfg(test)]
mod tests;
