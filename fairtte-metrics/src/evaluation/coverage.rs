//! Whether curves and outcomes cover the same times, and are in the same unit.
//!
//! Outcomes in years beside curves in days, or curves that end before most samples do, give numbers without a meaning. A
//! share of samples outside the curves is reported ([`Coverage`]); ranges that do not fit together are an error
//! ([`check_units`]). A range that is only shorter is no sign of another unit, because curves often end at a horizon (1
//! year of 12). So a moderate difference is an error only if it is near the factor of two units of time **and** the mean
//! curve is far from the Kaplan-Meier curve as it is, and less than half as far after the conversion.

use serde::{Deserialize, Serialize};

use crate::estimators::kaplan_meier::KaplanMeier;
use crate::evaluation::disagreement::{Disagreement, UnitFactor};
use crate::evaluation::time_window::Covered;
use crate::resampling::bootstrap::quantile;
use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

/// Ranges that differ more than this have hardly any overlap.
pub(super) const FAR: f64 = 50.0;

/// Mean distance from the Kaplan-Meier curve, above which a mean curve is far from it.
const DISTANT: f64 = 0.05;

/// Number of times at which the mean curve is compared with the Kaplan-Meier curve.
const N_COMPARED: usize = 32;

/// Number of the smaller unit in the larger, smaller unit, larger unit.
const UNITS: [(f64, &str, &str); 6] = [
    (365.25, "days", "years"),
    (52.18, "weeks", "years"),
    (30.4375, "days", "months"),
    (24.0, "hours", "days"),
    (12.0, "months", "years"),
    (7.0, "days", "weeks"),
];

/// How many units `to` are one unit `from`, for example 365.25 from years to days; `None` unless both are among hours, days,
/// weeks, months and years.
///
/// ```
/// use fairtte_metrics::evaluation::unit_factor;
///
/// assert_eq!(unit_factor("years", "months"), Some(12.0));
/// assert_eq!(unit_factor("days", "weeks"), Some(1.0 / 7.0));
/// assert_eq!(unit_factor("days", "visits"), None);
/// ```
pub fn unit_factor(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (from.trim().to_lowercase(), to.trim().to_lowercase());
    let factor = |(factor, smaller, larger): &(f64, &str, &str)| {
        if (from.as_str(), to.as_str()) == (*larger, *smaller) {
            return Some(*factor);
        }
        ((from.as_str(), to.as_str()) == (*smaller, *larger)).then(|| factor.recip())
    };
    UNITS.iter().find_map(factor)
}

/// The samples observed outside the times of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Coverage {
    /// First time at which the curves are known, in the unit of the data set.
    pub first: f64,
    /// Last time of the curves.
    pub last: f64,
    /// Samples.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// Samples observed to a time before the first.
    pub n_before: usize,
    /// Events among them.
    pub n_events_before: usize,
    /// Samples observed to a time beyond the last.
    pub n_beyond: usize,
    /// Events among them.
    pub n_events_beyond: usize,
}

impl Coverage {
    /// Counts the samples of `outcomes` outside the times of `curves`. O(n).
    ///
    /// ```
    /// use fairtte_metrics::evaluation::Coverage;
    /// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
    /// use ndarray::array;
    ///
    /// let curves = SurvivalCurves::new(vec![0.0, 2.0], array![[1.0, 0.5], [1.0, 0.4]])?;
    /// let outcomes = Outcomes::new(vec![2.0, 3.0], vec![true, false])?;
    /// let coverage = Coverage::of(&outcomes, &curves, Reading::default());
    /// assert_eq!((coverage.n_beyond, coverage.n_events_beyond, coverage.n_before), (1, 0, 0));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    pub fn of(outcomes: &Outcomes, curves: &SurvivalCurves, reading: Reading) -> Self {
        let Covered { first, last } = Covered::by([curves], reading);
        let count = |is_outside: &dyn Fn(f64) -> bool| {
            let rows = outcomes.time().iter().zip(outcomes.event()).filter(|(time, _)| is_outside(**time));
            rows.fold((0, 0), |(n, events), (_, event)| (n + 1, events + usize::from(*event)))
        };
        let ((n_before, n_events_before), (n_beyond, n_events_beyond)) =
            (count(&|time| time < first), count(&|time| time > last));
        let (n, n_events) = (outcomes.n(), outcomes.n_events());
        Self { first, last, n, n_events, n_before, n_events_before, n_beyond, n_events_beyond }
    }

    /// Whether every sample is observed within the times of the curves.
    pub fn is_complete(&self) -> bool {
        self.n_before == 0 && self.n_beyond == 0
    }

    /// What lies outside, with its share, and how it is scored: one sentence per end, none if the coverage is complete.
    pub fn sentences(&self, reading: Reading) -> Vec<String> {
        let beyond = match reading {
            Reading::LinearFromOne => "on the line through (0, 1) and their last value",
            _ => "at their last value",
        };
        let ends = [
            (self.n_before, self.n_events_before, "before the first time", self.first, "at their first value"),
            (self.n_beyond, self.n_events_beyond, "beyond the last time", self.last, beyond),
        ];
        let outside = ends.into_iter().filter(|(n, ..)| *n > 0);
        let sentence = |(n, n_events, place, time, value)| {
            let (samples, events) = (share(n, self.n, "samples"), share(n_events, self.n_events, "events"));
            format!(
                "{samples} and {events} are observed {place} of the curves ({time}): C^td reads the curves there \
                 {value}; AUC^td and IBS have no evaluation times there."
            )
        };
        outside.map(sentence).collect()
    }
}

/// For example `38 % of the samples (120 of 316)`.
fn share(n: usize, of: usize, what: &str) -> String {
    if n == 0 {
        return format!("none of the {what}");
    }
    let percent = 100.0 * n as f64 / of as f64;
    let digits = usize::from(percent < 10.0);
    format!("{percent:.digits$} % of the {what} ({n} of {of})")
}

/// Checks that the times of `curves` and the observed times can be in the same unit.
///
/// With `L` the last time of the curves and `T` the largest observed time, these are errors: no event within the times of
/// the curves; `L > 50 T`; a median of the observed times above `50 L`; and `L / T` within a factor of 2 of a factor of
/// two units (365.25, 52.18, 30.4375, 24, 12, 7, or an inverse), if the mean distance of the mean curve from the
/// Kaplan-Meier curve is above 0.05 and falls below half of that with the conversion. Outcomes without an event are not
/// checked. O(n log n).
///
/// # Errors
/// [`MetricError::TimesDisagree`] with the ranges and, if one makes them agree, the factor.
pub fn check_units(outcomes: &Outcomes, curves: &SurvivalCurves, reading: Reading) -> Result<(), MetricError> {
    let events = || outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event).map(|(time, _)| *time);
    let covered = Covered::by([curves], reading);
    let mut times = outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    let (Some(&earliest), Some(&latest), Some(mean)) = (times.first(), times.last(), curves.mean()) else {
        return Ok(());
    };
    if events().next().is_none() {
        return Ok(());
    }
    let ranges = Ranges { grid: curves.grid(), mean: &mean, observed: KaplanMeier::fit(outcomes)?, latest };
    let last = covered.last;
    let finding = if events().all(|time| time > last) || events().all(|time| time < covered.first) {
        Disagreement::NoOverlap(ranges.factor())
    } else if last > FAR * latest || quantile(&times, 0.5) > FAR * last {
        Disagreement::HardlyAny(ranges.factor())
    } else {
        match ranges.factor().filter(|factor| ranges.fit_only_by(factor)) {
            Some(factor) => Disagreement::OtherUnits(factor),
            None => return Ok(()),
        }
    };
    Err(MetricError::TimesDisagree { first: curves.grid()[0], last, earliest, latest, finding })
}

/// The mean curve and the observed one, each on its own times.
pub(super) struct Ranges<'a> {
    pub(super) grid: &'a [f64],
    pub(super) mean: &'a [f64],
    pub(super) observed: KaplanMeier,
    pub(super) latest: f64,
}

impl Ranges<'_> {
    /// The last time of the curves.
    fn last(&self) -> f64 {
        self.grid[self.grid.len() - 1]
    }

    /// Of the factors that bring the two ranges within a factor of 2, that with which the curves fit best.
    pub(super) fn factor(&self) -> Option<UnitFactor> {
        let both = |(factor, smaller, larger)| {
            [(smaller, larger, true), (larger, smaller, false)].map(|(curves, outcomes, multiply)| UnitFactor {
                curves,
                outcomes,
                factor,
                multiply,
            })
        };
        let agrees = |factor: &UnitFactor| (0.5..=2.0).contains(&(self.last() / (self.latest * factor.scale())));
        let distance = |factor: &UnitFactor| self.distance(factor.scale());
        let candidates = UNITS.into_iter().flat_map(both).filter(agrees);
        candidates.min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    pub(super) fn fit_only_by(&self, factor: &UnitFactor) -> bool {
        let as_given = self.distance(1.0);
        as_given > DISTANT && self.distance(factor.scale()) < 0.5 * as_given
    }

    /// Mean distance of the mean curve from the Kaplan-Meier curve, of outcome times multiplied by `scale`, where both are
    /// known.
    fn distance(&self, scale: f64) -> f64 {
        let end = self.last().min(self.latest * scale);
        let at = |k: usize| {
            let time = end * (k as f64 / N_COMPARED as f64);
            let predicted = Reading::Linear.value(self.mean, Reading::Linear.position(self.grid, time));
            (predicted - self.observed.at(time / scale)).abs()
        };
        (1..=N_COMPARED).map(at).sum::<f64>() / N_COMPARED as f64
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// 200 samples with a constant hazard of 0.3 per year, followed for at most `years`; times in years times `scale`.
    fn outcomes(years: f64, scale: f64) -> Outcomes {
        let event_time = |k: usize| -(1.0 - (k as f64 + 0.5) / 200.0).ln() / 0.3;
        let rows = (0..200).map(event_time).map(|time| (time.min(years) * scale, time <= years));
        let (time, event) = rows.unzip();
        Outcomes::new(time, event).unwrap()
    }

    /// Curves with a constant hazard per year on 21 times from 0 to `years`, in years times `scale`.
    fn curves(hazard: f64, years: f64, scale: f64) -> SurvivalCurves {
        let time = |k: usize| years * k as f64 / 20.0;
        let survival = Array2::from_shape_fn((200, 21), |(_, k)| (-hazard * time(k)).exp());
        SurvivalCurves::new((0..21).map(|k| time(k) * scale).collect(), survival).unwrap()
    }

    fn check(outcomes: &Outcomes, curves: &SurvivalCurves) -> Result<(), String> {
        check_units(outcomes, curves, Reading::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_pair_of_units_is_recognised_in_both_directions() {
        for (factor, smaller, larger) in UNITS {
            let sentence = |curves, outcomes, verb| {
                format!("they look like {curves} and {outcomes}; {verb} the outcome times by {factor}")
            };
            let long = check(&outcomes(5.0, 1.0), &curves(0.3, 5.0, factor)).unwrap_err();
            assert!(long.contains(&sentence(smaller, larger, "multiply")), "{long}");
            let short = check(&outcomes(5.0, factor), &curves(0.3, 5.0, 1.0)).unwrap_err();
            assert!(short.contains(&sentence(larger, smaller, "divide")), "{short}");
        }
        let days = check(&outcomes(5.0, 1.0), &curves(0.3, 5.0, 365.0)).unwrap_err();
        let ranges =
            "the curves go from 0 to 1825 and the observed times from 0.00834377 to 5: they look like days and years";
        assert!(days.starts_with(ranges), "{days}");
    }

    #[test]
    fn curves_to_a_horizon_and_curves_beyond_the_follow_up_are_legitimate() {
        for (years, horizon) in
            [(12.0, 1.0), (12.0, 0.5), (12.0, 2.0), (5.0, 5.0), (5.0, 20.0), (2.0, 30.0), (1.0, 12.0)]
        {
            for hazard in [0.2, 0.3, 0.4] {
                let found = check(&outcomes(years, 1.0), &curves(hazard, horizon, 1.0));
                assert_eq!(found, Ok(()), "{years} {horizon} {hazard}");
            }
        }
    }

    #[test]
    fn ranges_apart_without_a_unit_between_them_are_refused_too() {
        let far = outcomes(5.0, 1e6);
        let error = check(&far, &curves(0.3, 5.0, 1.0)).unwrap_err();
        assert!(
            error.ends_with("no event lies within the times of the curves, expected the same unit of time"),
            "{error}"
        );
        let error = check(&outcomes(5.0, 1.0), &curves(0.3, 5.0, 1e4)).unwrap_err();
        assert!(error.contains("they hardly overlap, expected the same unit of time; if the unit is"), "{error}");
        let later = SurvivalCurves::new(vec![6.0, 9.0], Array2::from_elem((200, 2), 0.5)).unwrap();
        assert!(check(&outcomes(5.0, 1.0), &later).unwrap_err().contains("no event lies within"));
    }

    #[test]
    fn shares_outside_are_counted_at_both_ends() {
        let outcomes = Outcomes::new(vec![0.5, 1.0, 2.0, 3.0, 4.0], vec![false, true, false, true, true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0, 2.0], Array2::from_elem((5, 2), 0.5)).unwrap();
        let coverage = Coverage::of(&outcomes, &curves, Reading::default());
        assert_eq!(
            coverage.sentences(Reading::default()),
            [
                "20 % of the samples (1 of 5) and none of the events are observed before the first time of the curves \
                 (1): C^td reads the curves there at their first value; AUC^td and IBS have no evaluation times there.",
                "40 % of the samples (2 of 5) and 67 % of the events (2 of 3) are observed beyond the last time of the \
                 curves (2): C^td reads the curves there at their last value; AUC^td and IBS have no evaluation times \
                 there.",
            ]
        );
        let from_one = Coverage::of(&outcomes, &curves, Reading::LinearFromOne);
        assert_eq!((from_one.n_before, from_one.n_beyond), (0, 2));
        assert!(from_one.sentences(Reading::LinearFromOne)[0].contains("on the line through (0, 1)"));
        let whole = SurvivalCurves::new(vec![0.0, 4.0], Array2::from_elem((5, 2), 0.5)).unwrap();
        assert!(Coverage::of(&outcomes, &whole, Reading::default()).is_complete());
    }
}
