//! Step 4: converts continuous times to the targets that the heads read (Kvamme & Borgan 2021, section 3; pycox
//! `LabTransDiscreteTime` and `LabTransPCHazard`).
//!
//! Cut points are `n` times from 0 to the largest training time: equally spaced, or at quantiles of the training part's
//! Kaplan-Meier curve (`quantiles.rs`). For the discrete heads an event is rounded up to the first cut at or after it, a
//! censoring is rounded down to the last cut at or before it: both claim no more than was observed. A time beyond the
//! last cut becomes a censoring at that cut. Index 0 is time 0: an event at it, and a censoring before the second cut.
//! `pc-hazard` reads the interval that contains the time and the survived fraction of it; pycox lets that fraction
//! exceed 1 beyond the last cut, here observation ends at the last cut. The Cox models read the time itself.
//!
//! Fitted on the training part only. Golden values: pycox 0.3.0 (`3eccdd7`).

use fairtte_metrics::Outcomes;
use serde::{Deserialize, Serialize};

use crate::{SurvivalError, quantiles};

/// How the cut points are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GridKind {
    /// Equally spaced, unless one interval would then contain most events ([`crowded_share`]): then at quantiles.
    #[default]
    Auto,
    /// Equally spaced.
    Equidistant,
    /// At quantiles of the Kaplan-Meier curve of the training part; may give fewer cut points than asked for.
    Quantile,
}

/// Share of the training events in one of `n` equally spaced intervals above which [`GridKind::Auto`] chooses quantiles:
/// 0.3, and at least four times an equal share. Events of one interval are equal to a discrete head, so that it does not
/// learn their order: at 0.3 that is at least one pair of events in eleven. On SUPPORT 0.6 of the events are in the first of
/// 19 intervals.
pub fn crowded_share(n: usize) -> f64 {
    (4.0 / n.max(1) as f64).max(0.3)
}

/// How cut points were placed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChosenGrid {
    /// What was requested.
    pub asked: GridKind,
    /// What was chosen: `equidistant` or `quantile`.
    pub kind: GridKind,
    /// Number of cut points.
    pub n: usize,
    /// Largest share of the training events in one interval of equally spaced cut points.
    pub largest_share: f64,
    /// The share above which `auto` chooses quantiles.
    pub limit: f64,
}

impl std::fmt::Display for ChosenGrid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { asked, kind, n, largest_share, limit } = self;
        let name = if *kind == GridKind::Quantile { "quantile" } else { "equidistant" };
        write!(f, "{name}, {n} cut points")?;
        if *asked == GridKind::Auto {
            let (share, limit) = (100.0 * largest_share, 100.0 * limit);
            write!(
                f,
                " (chosen: of equal intervals the fullest has {share:.0} % of the training events, limit {limit:.0} %)"
            )?;
        }
        Ok(())
    }
}

/// The time grid of a discrete-time model, `[n_intervals]`, starting at 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct CutPoints {
    times: Vec<f64>,
}

impl From<CutPoints> for Vec<f64> {
    fn from(cut_points: CutPoints) -> Self {
        cut_points.times
    }
}

impl TryFrom<Vec<f64>> for CutPoints {
    type Error = String;

    fn try_from(times: Vec<f64>) -> Result<Self, String> {
        Self::check(times.len()).map_err(|error| error.to_string())?;
        let ascend = times[0].to_bits() == 0 && times.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || times.iter().any(|time| !time.is_finite()) {
            return Err("cut points that do not ascend from 0, or are not finite".to_owned());
        }
        Ok(Self { times })
    }
}

/// Interval index and event indicator of every sample, `[n]` each: what the discrete heads read.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalTargets {
    /// Index into the cut points.
    pub index: Vec<usize>,
    /// `true` = event observed within the grid.
    pub event: Vec<bool>,
}

/// The interval that contains the time of every sample, `[n]` each: what a piecewise constant hazard reads.
#[derive(Clone, Debug, PartialEq)]
pub struct PieceTargets {
    /// Interval: m reaches from cut m (exclusive) to cut m + 1 (inclusive).
    pub index: Vec<usize>,
    /// Fraction of that interval before the time, in [0, 1]; 0 for a time of 0.
    pub fraction: Vec<f64>,
    /// `true` = event observed within the grid, after time 0.
    pub event: Vec<bool>,
}

/// Outcomes of some samples in all the forms that the heads read, `[n]` each.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// Observed time in the unit of the cohort.
    pub time: Vec<f64>,
    /// `true` = event observed.
    pub event: Vec<bool>,
    /// Rounded to cut points.
    pub intervals: IntervalTargets,
    /// Within intervals.
    pub pieces: PieceTargets,
    /// What ended the observation within the grid: 0 = nothing, 1 = the event, 2, .. = an event of another cause.
    pub causes: Vec<usize>,
    /// The classes of the pixels, if masks are predicted and these are the samples of a batch.
    pub masks: Option<Masks>,
}

/// The class of every pixel of some samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masks {
    /// Classes from 0, `[n, n_pixels]`, row by row of each mask.
    pub labels: Vec<u8>,
    /// Pixels of one mask, at least 1.
    pub n_pixels: usize,
}

impl Masks {
    /// Number of samples.
    pub fn n(&self) -> usize {
        self.labels.len() / self.n_pixels.max(1)
    }

    /// The classes of the pixels of one sample, `[n_pixels]`.
    ///
    /// # Panics
    /// If `row` is not below [`n`](Self::n).
    pub fn of(&self, row: usize) -> &[u8] {
        &self.labels[row * self.n_pixels..(row + 1) * self.n_pixels]
    }
}

impl Targets {
    /// Number of samples.
    pub fn n(&self) -> usize {
        self.time.len()
    }

    /// The distinct times of the observed events, ascending.
    pub fn event_times(&self) -> Vec<f64> {
        let events = self.time.iter().zip(&self.event).filter(|(_, event)| **event);
        let mut times: Vec<f64> = events.map(|(time, _)| *time).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        times
    }
}

impl CutPoints {
    /// The permitted numbers of cut points: at least 0 and the largest time, at most as many as a network can have
    /// outputs.
    pub const RANGE: std::ops::RangeInclusive<usize> = 2..=10_000;

    /// The grid of a class: the one interval from 0 to 1. A positive sample has its event at 1, a negative one is followed to 1.
    pub fn of_class() -> Self {
        Self { times: vec![0.0, 1.0] }
    }

    /// Checks a number of cut points.
    ///
    /// # Errors
    /// [`SurvivalError::Intervals`] unless `n` is in [`RANGE`](Self::RANGE).
    pub fn check(n: usize) -> Result<(), SurvivalError> {
        if Self::RANGE.contains(&n) { Ok(()) } else { Err(SurvivalError::Intervals { found: n }) }
    }

    /// `n` cut points (or fewer, see [`GridKind::Quantile`]) from 0 to the largest time of `train`. Cost O(n log n) in
    /// its samples.
    ///
    /// # Errors
    /// [`SurvivalError::Intervals`] unless `n` is in [`RANGE`](Self::RANGE), [`SurvivalError::NoEvent`] if no training
    /// sample has an event, [`SurvivalError::TimesAllEqual`] if their times do not differ.
    pub fn fit(train: &Outcomes, n: usize, kind: GridKind) -> Result<Self, SurvivalError> {
        let times = match Self::choose(train, n, kind)?.kind {
            GridKind::Quantile => quantiles::cuts(train, n),
            GridKind::Equidistant | GridKind::Auto => Self::equal(train, n),
        };
        Ok(Self { times })
    }

    /// How `n` cut points are placed for `kind`, with the reason; the number is that asked for. Cost O(n) in the samples of
    /// `train`.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn choose(train: &Outcomes, n: usize, kind: GridKind) -> Result<ChosenGrid, SurvivalError> {
        Self::check(n)?;
        if train.n_events() == 0 {
            return Err(SurvivalError::NoEvent { part: "training", n: train.n() });
        }
        let first = train.time()[0];
        if train.time().iter().all(|time| time.total_cmp(&first).is_eq()) {
            return Err(SurvivalError::TimesAllEqual { part: "training", n: train.n(), time: first });
        }
        let cuts = Self::equal(train, n);
        let mut counts = vec![0_usize; n];
        for (time, _) in train.time().iter().zip(train.event()).filter(|(_, event)| **event) {
            counts[cuts.partition_point(|cut| cut < time).min(n - 1)] += 1;
        }
        // An event at time 0 has the place of the first cut and belongs to no interval.
        let most = counts[1..].iter().max().copied().unwrap_or_default();
        let (largest_share, limit) = (most as f64 / train.n_events() as f64, crowded_share(n - 1));
        let of_auto = if largest_share > limit { GridKind::Quantile } else { GridKind::Equidistant };
        let chosen = if kind == GridKind::Auto { of_auto } else { kind };
        Ok(ChosenGrid { asked: kind, kind: chosen, n, largest_share, limit })
    }

    fn equal(train: &Outcomes, n: usize) -> Vec<f64> {
        let largest = train.time().iter().copied().fold(0.0, f64::max);
        let step = largest / (n - 1) as f64;
        let mut times: Vec<f64> = (0..n).map(|k| k as f64 * step).collect();
        times[n - 1] = largest; // exact, so that the largest training event stays an event
        times
    }

    /// `n` equally spaced cut points from 0 to the largest time of `train`.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn equidistant(train: &Outcomes, n: usize) -> Result<Self, SurvivalError> {
        Self::fit(train, n, GridKind::Equidistant)
    }

    /// The cut points, ascending, first 0.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Number of cut points.
    pub fn n(&self) -> usize {
        self.times.len()
    }

    /// The targets that the heads read, from `time` and `event`, `[n]` each; `part` is named in errors. Cost O(n log
    /// `n_intervals`).
    ///
    /// # Errors
    /// [`SurvivalError::InvalidTime`] for a time that is negative or not a finite number.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn targets(&self, part: &'static str, time: &[f64], event: &[bool]) -> Result<Targets, SurvivalError> {
        self.targets_of_causes(part, time, event, &vec![0; event.len()])
    }

    /// As [`targets`](Self::targets), where an event of another cause may have ended an observation: `competing`, `[n]`, holds
    /// its number, 2, 3, .., and 0 of all others. Such an event rounds up like the event itself.
    ///
    /// # Errors
    /// As [`targets`](Self::targets).
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn targets_of_causes(
        &self,
        part: &'static str,
        time: &[f64],
        event: &[bool],
        competing: &[usize],
    ) -> Result<Targets, SurvivalError> {
        assert_eq!(time.len(), event.len(), "one event indicator per time");
        assert_eq!(time.len(), competing.len(), "one competing cause per time");
        if let Some(row) = time.iter().position(|t| !(t.is_finite() && *t >= 0.0)) {
            return Err(SurvivalError::InvalidTime { part, row, time: time[row] });
        }
        let is_end: Vec<bool> = event.iter().zip(competing).map(|(event, other)| *event || *other > 0).collect();
        let IntervalTargets { index, event: ends } = self.intervals(time, &is_end);
        let cause = |row: usize| match (ends[row], event[row]) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => competing[row],
        };
        let causes: Vec<usize> = (0..time.len()).map(cause).collect();
        Ok(Targets {
            time: time.iter().map(|time| time + 0.0).collect(), // -0 becomes 0
            event: event.to_vec(),
            intervals: IntervalTargets { index, event: causes.iter().map(|cause| *cause == 1).collect() },
            pieces: self.pieces(time, event),
            causes,
            masks: None,
        })
    }

    fn intervals(&self, time: &[f64], event: &[bool]) -> IntervalTargets {
        let last = self.times.len() - 1;
        let (index, event) = time
            .iter()
            .zip(event)
            .map(|(&time, &event)| {
                if time > self.times[last] {
                    (last, false)
                } else if event {
                    (self.times.partition_point(|cut| *cut < time), true)
                } else {
                    (self.times.partition_point(|cut| *cut <= time).saturating_sub(1), false)
                }
            })
            .unzip();
        IntervalTargets { index, event }
    }

    fn pieces(&self, time: &[f64], event: &[bool]) -> PieceTargets {
        let last = self.times[self.times.len() - 1];
        let n = time.len();
        let mut pieces = PieceTargets {
            index: Vec::with_capacity(n),
            fraction: Vec::with_capacity(n),
            event: Vec::with_capacity(n),
        };
        for (&time, &event) in time.iter().zip(event) {
            let observed = time.min(last);
            let right = self.times.partition_point(|cut| *cut < observed).max(1);
            let (from, to) = (self.times[right - 1], self.times[right]);
            pieces.index.push(right - 1);
            pieces.fraction.push(1.0 - (to - observed) / (to - from));
            pieces.event.push(event && time > 0.0 && time <= last);
        }
        pieces
    }
}

#[cfg(test)]
mod tests;
