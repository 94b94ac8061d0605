//! Strata of the outcome, which replace the class label of methods designed for classification.
//!
//! | `kind` | strata |
//! |---|---|
//! | `status-at-horizon` (default) | event by the horizon; under observation after it, whatever happens later; none if censored by it |
//! | `event` | event, censored |
//! | `event-x-bin` | event or censored, in each of `bins` bins of the time grid |
//!
//! The horizon is the median observed event time of the training part: in indices the smallest cut point with at least half
//! of the training events at or before it. It conditions on what is known at one time and not on the event indicator, whose
//! distribution is partly that of censoring, and it does not put an event in the first and in the last year into the
//! same class. Events are binned by the cut point they round up to, censorings by the one they round down to; a
//! censoring at the horizon's cut point is after it. Bins are blocks of cut points of equal number.
//!
//! Where a class is predicted, its one interval makes the classes themselves the strata of the first two kinds, which are then the
//! same: the methods have their published form. `event-x-bin` is refused.
//!
//! The three kinds are definitions of our own (a stratum in place of the class label); `event` is closest to
//! MEDFAIR (Zong et al. 2023).

use std::collections::BTreeMap;

use fairtte_survival::{IntervalTargets, SurvivalHead};
use serde::{Deserialize, Serialize};

use super::TrainingCells;
use crate::{FairnessError, check, check_at_least};

/// The definition of the strata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StratumKind {
    /// Event by the horizon, or under observation after it.
    #[default]
    StatusAtHorizon,
    /// Event, or censored.
    Event,
    /// Event or censored in each bin of the time grid.
    EventXBin,
}

/// Settings of the strata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StratumConfig {
    /// The definition of the strata.
    pub kind: StratumKind,
    /// Number of bins of the time grid for `event-x-bin`, at least 2.
    pub bins: usize,
}

impl Default for StratumConfig {
    fn default() -> Self {
        Self { kind: StratumKind::StatusAtHorizon, bins: 4 }
    }
}

impl StratumConfig {
    /// Refuses bins of time where a class is predicted.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming `stratum.kind`.
    pub fn check_head(&self, head: &dyn SurvivalHead) -> Result<(), FairnessError> {
        let fits = self.kind != StratumKind::EventXBin || !head.predicts_class();
        check("stratum.kind", "event-x-bin", fits, "no bins of time with a class, whose strata are the two classes")
    }

    /// Checks the ranges, and that no setting is without effect.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming `stratum.bins`, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        let key = "stratum.bins";
        let has_effect = self.kind == StratumKind::EventXBin || self.bins == Self::default().bins;
        check(key, self.bins, has_effect, "no value without kind = \"event-x-bin\"")?;
        check_at_least(key, self.bins, 2)
    }
}

/// Training samples below which a cell of group and stratum is rejected.
pub const SMALLEST_CELL: usize = 10;

/// The rule that assigns outcomes to strata, fitted on the training part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strata {
    config: StratumConfig,
    /// Cut point of the horizon.
    horizon: usize,
    n_cut_points: usize,
    /// Whether no sample is censored before the end of the only interval, so that the strata are classes.
    of_class: bool,
}

impl Strata {
    /// Finds the horizon and checks that every cell of group and stratum has at least [`SMALLEST_CELL`] training samples.
    ///
    /// # Errors
    /// [`FairnessError::NoStrata`] without a training event, [`FairnessError::SmallCell`] naming the first cell that has too
    /// few samples.
    pub fn fit(config: &StratumConfig, cells: &TrainingCells, strategy: &'static str) -> Result<Self, FairnessError> {
        let horizon = median_event(&cells.interval, &cells.event).ok_or(FairnessError::NoStrata { strategy })?;
        let of_class = cells.n_cut_points == 2 && cells.interval.iter().all(|q| *q == 1);
        let strata = Self { config: *config, horizon, n_cut_points: cells.n_cut_points, of_class };
        let mut counts = BTreeMap::new();
        for (i, group) in cells.groups.iter().enumerate() {
            if let (Some(group), Some(stratum)) = (group, strata.stratum(cells.interval[i], cells.event[i])) {
                *counts.entry((group.index(), stratum)).or_insert(0_usize) += 1;
            }
        }
        let sizes = cells.counts();
        for group in (0..sizes.len()).filter(|group| sizes[*group] > 0) {
            for stratum in 0..strata.n() {
                let n = counts.get(&(group, stratum)).copied().unwrap_or(0);
                if n < SMALLEST_CELL {
                    let (group, stratum) = (cells.levels[group].clone(), strata.name(stratum));
                    return Err(FairnessError::SmallCell { strategy, group, stratum, n, needed: SMALLEST_CELL });
                }
            }
        }
        Ok(strata)
    }

    /// Number of strata.
    pub fn n(&self) -> usize {
        match self.config.kind {
            StratumKind::StatusAtHorizon | StratumKind::Event => 2,
            StratumKind::EventXBin => 2 * self.config.bins,
        }
    }

    /// Stratum of every outcome, `[n]`, from 0; `None` if it is unknown.
    pub fn of(&self, intervals: &IntervalTargets) -> Vec<Option<usize>> {
        intervals.index.iter().zip(&intervals.event).map(|(q, event)| self.stratum(*q, *event)).collect()
    }

    fn stratum(&self, q: usize, event: bool) -> Option<usize> {
        match self.config.kind {
            StratumKind::StatusAtHorizon if event && q <= self.horizon => Some(1),
            StratumKind::StatusAtHorizon => (q >= self.horizon).then_some(0), // an event at it is the arm above
            StratumKind::Event => Some(usize::from(event)),
            StratumKind::EventXBin => {
                let bin = (q * self.config.bins / self.n_cut_points.max(1)).min(self.config.bins - 1);
                Some(2 * bin + usize::from(event))
            }
        }
    }

    /// Description of the stratum.
    fn name(&self, stratum: usize) -> String {
        let status = if stratum % 2 == 1 { "event" } else { "censored" };
        match self.config.kind {
            _ if self.of_class => (if stratum == 1 { "the positive class" } else { "the negative class" }).to_owned(),
            StratumKind::StatusAtHorizon if stratum == 1 => "event by the median event time".to_owned(),
            StratumKind::StatusAtHorizon => "under observation after the median event time".to_owned(),
            StratumKind::Event => status.to_owned(),
            StratumKind::EventXBin => format!("{status} in time bin {} of {}", stratum / 2 + 1, self.config.bins),
        }
    }
}

/// Smallest cut point with at least half of the events at or before it; `None` without an event.
fn median_event(interval: &[usize], event: &[bool]) -> Option<usize> {
    let mut events: Vec<usize> = interval.iter().zip(event).filter(|(_, event)| **event).map(|(q, _)| *q).collect();
    events.sort_unstable();
    let half = events.len().div_ceil(2);
    half.checked_sub(1).map(|last| events[last])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;
    use fairtte_metrics::GroupId;

    /// Groups of `n` samples each, with outcomes that repeat the four of the list.
    fn cells(n: usize, outcomes: &[(usize, bool)]) -> TrainingCells {
        let of = |i: usize| outcomes[i % outcomes.len()];
        TrainingCells {
            attribute: "sex".to_owned(),
            levels: vec!["Female".to_owned(), "Male".to_owned()],
            groups: (0..2 * n).map(|i| Some(GroupId(u32::from(i >= n)))).collect(),
            event: (0..2 * n).map(|i| of(i).1).collect(),
            interval: (0..2 * n).map(|i| of(i).0).collect(),
            n_cut_points: 8,
        }
    }

    const OUTCOMES: [(usize, bool); 4] = [(2, true), (5, true), (2, false), (7, false)];

    #[test]
    fn the_horizon_is_the_cut_point_that_half_of_the_events_reach() {
        assert_eq!(median_event(&[1, 4, 4, 6, 0], &[true, true, true, true, false]), Some(4));
        assert_eq!(median_event(&[1, 4, 5, 6], &[true; 4]), Some(4));
        assert_eq!(median_event(&[3, 2], &[false; 2]), None);
    }

    #[test]
    fn a_sample_censored_before_the_horizon_has_no_status() {
        let strata = Strata::fit(&StratumConfig::default(), &cells(40, &OUTCOMES), "laftr").unwrap();
        let outcomes = IntervalTargets { index: vec![2, 3, 1, 2, 4], event: vec![true, true, false, false, false] };
        // Half of the events are at cut 2: one at 3 comes later, a censoring at 1 gives no information on cut 2.
        assert_eq!(strata.of(&outcomes), [Some(1), Some(0), None, Some(0), Some(0)]);
    }

    /// A class is an event in the one interval, [0, 1], or none: index 1 for everybody.
    #[test]
    fn the_strata_of_a_class_are_the_classes() {
        for kind in [StratumKind::StatusAtHorizon, StratumKind::Event] {
            let config = StratumConfig { kind, ..StratumConfig::default() };
            let of_class = |n: usize| TrainingCells { n_cut_points: 2, ..cells(n, &[(1, true), (1, false)]) };
            let strata = Strata::fit(&config, &of_class(40), "cfair").unwrap();
            let outcomes = IntervalTargets { index: vec![1; 3], event: vec![true, false, true] };
            assert_eq!((strata.of(&outcomes), strata.n()), (vec![Some(1), Some(0), Some(1)], 2));
            let error = Strata::fit(&config, &of_class(18), "cfair").unwrap_err().to_string();
            assert!(error.ends_with("group Female, the negative class, has 9"), "{error}");
        }
        let head = fairtte_survival::HeadSettings::build(&fairtte_survival::BinaryConfig::default()).unwrap();
        let bins = StratumConfig { kind: StratumKind::EventXBin, bins: 4 };
        let refused = bins.check_head(head.as_ref()).unwrap_err().to_string();
        assert!(refused.contains("event-x-bin") && refused.contains("two classes"), "{refused}");
        assert!(StratumConfig::default().check_head(head.as_ref()).is_ok());
        assert!(bins.check_head(&fairtte_survival::NnetSurvival).is_ok());
    }

    #[test]
    fn bins_are_blocks_of_cut_points() {
        let config = StratumConfig { kind: StratumKind::EventXBin, bins: 2 };
        let outcomes = [(0, true), (3, false), (4, true), (7, false), (0, false), (3, true), (4, false), (7, true)];
        let strata = Strata::fit(&config, &cells(80, &outcomes), "cfair").unwrap();
        let found = strata.of(&IntervalTargets { index: vec![0, 3, 4, 7], event: vec![true, false, true, false] });
        assert_eq!((found, strata.n()), (vec![Some(1), Some(0), Some(3), Some(2)], 4));
    }

    #[test]
    fn every_stratum_has_a_name_and_three_bins_have_six() {
        let config = StratumConfig { kind: StratumKind::EventXBin, bins: 3 };
        let outcomes = [(0, true), (0, false), (3, true), (3, false), (7, true), (7, false)];
        let strata = Strata::fit(&config, &cells(120, &outcomes), "cfair").unwrap();
        let names: Vec<String> = (0..strata.n()).map(|stratum| strata.name(stratum)).collect();
        let name = |status: &str, bin: usize| format!("{status} in time bin {bin} of 3");
        let expected = (1..=3).flat_map(|bin| [name("censored", bin), name("event", bin)]);
        assert_eq!(names, expected.collect::<Vec<_>>());
        // A group in which one of them is missing is rejected, but not a group without samples.
        let mut lacking = cells(120, &outcomes);
        lacking.levels.push("Other".to_owned());
        assert!(Strata::fit(&config, &lacking, "cfair").is_ok());
        for i in 120..240 {
            if lacking.interval[i] == 7 {
                lacking.interval[i] = 3;
            }
        }
        let error = Strata::fit(&config, &lacking, "cfair").unwrap_err().to_string();
        assert!(error.ends_with("group Male, censored in time bin 3 of 3, has 0"), "{error}");
        let event = StratumConfig { kind: StratumKind::Event, ..StratumConfig::default() };
        let strata = Strata::fit(&event, &cells(40, &OUTCOMES), "cfair").unwrap();
        assert_eq!([strata.name(0), strata.name(1)], ["censored", "event"]);
    }

    #[test]
    fn a_cell_with_too_few_samples_is_named() {
        let error = Strata::fit(&StratumConfig::default(), &cells(38, &OUTCOMES), "end").unwrap_err();
        let expected = "strategy end needs 10 training samples in every cell of group and stratum; group Male, \
                        event by the median event time, has 9";
        assert_eq!(error.to_string(), expected);
    }
}
