//! Which of several training runs to keep, from their metrics on the validation sample.
//!
//! Four criteria ([`SelectionCriterion`]): the best overall utility; the smallest fairness gap among the runs that lose
//! at most a fraction of a base model's utility (`FairTTE`, section 3 and F.3: 5 %); minimax Pareto, the best
//! worst-group utility on the Pareto front of the group utilities; and the smallest distance to the optimum,
//! `sqrt(sum over groups of (u / u* - 1)^2)` with u* the best utility of the group over all runs.
//! Sources: `FairTTE`; Zong et al. (2023) "MEDFAIR", <https://arxiv.org/abs/2210.01725>, section 3.3 and B.4, after
//! Martinez et al. (2020), PMLR 119, 6755-6764, and Han et al. (2021), <https://arxiv.org/abs/2109.08253>. MEDFAIR does
//! not print how the distance is normalised: dividing by the best utility is what its published analysis does.
//!
//! Ties: of runs with exactly the same value of the criterion the one with the better overall utility is chosen, then
//! the one with the smaller gap (an undefined one counts as worst), then the one that comes first in the table. A run
//! that lacks a value the criterion needs is never chosen and takes no part in front or optimum: it is returned as
//! excluded, with the reason.

use serde::{Deserialize, Serialize};

use crate::selection::criterion_values::{
    by_distance, by_gap, by_utility, by_worst_group, compare, compare_defined, utility_limit,
};
use crate::selection::run_table::check_table;
use crate::selection::{Measured, Run, RunTable};
use crate::{Direction, MetricError};

/// Which group is the worst one of minimax Pareto selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorstGroup {
    /// The worst group of each run, as MEDFAIR B.4 defines the criterion.
    #[default]
    OfEachRun,
    /// One group for all runs, the one whose best utility over the runs is the worst (the first one on a tie), as in
    /// MEDFAIR's example and published analysis.
    OfAllRuns,
}

/// The criterion by which a run is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SelectionCriterion {
    /// The best overall utility. Value of a run: its utility.
    BestUtility,
    /// The smallest gap among the runs whose overall utility is worse than `base_utility` by at most `tolerated_loss` of
    /// `|base_utility|` or, if `no_skill` is given, of the skill (how much better than `no_skill` the base is; 0 if it is
    /// worse). A run exactly on the limit is tolerated. Value of a run: its gap.
    ///
    /// 5 % of a C of 0.52 admits 0.494, a model that has learnt nothing and whose gap is that of random predictions;
    /// 5 % of its skill admits 0.519.
    BestFairness {
        /// Overall utility of the base model, which was trained without regard to fairness.
        base_utility: f64,
        /// Tolerated relative loss, 0 to 1; 0.05 in the paper.
        tolerated_loss: f64,
        /// Utility of a model without skill: 0.5 for a C or an AUC, that of the Kaplan-Meier curve for a Brier score.
        /// `None` (the paper): the loss is relative to the utility itself.
        #[serde(default)]
        no_skill: Option<f64>,
    },
    /// The best utility of the worst group among the runs on the Pareto front: no other run is at least as good in every
    /// group and better in one. Value of a run: the utility of its worst group.
    MinimaxPareto {
        /// Which group that is.
        worst_group: WorstGroup,
    },
    /// The smallest relative distance to the best utility of every group. Value of a run: its distance, >= 0.
    DistanceToOptimum,
}

/// The status of a run under a criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStanding {
    /// The run to keep.
    Chosen,
    /// Could have been chosen; another run is better, or as good and first by the tie rule.
    Eligible,
    /// Loses more utility than tolerated: its utility is beyond `limit`.
    TooMuchLoss {
        /// The worst utility that is tolerated.
        limit: f64,
    },
    /// Not on the Pareto front.
    Dominated {
        /// The first run of the table that is at least as good in every group and better in one.
        by: String,
    },
}

/// A run and the value of the criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunValue {
    /// Name of the run.
    pub run: String,
    /// Value of the criterion.
    pub value: f64,
    /// Its status.
    pub standing: RunStanding,
}

/// A run that was excluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExcludedRun {
    /// Name of the run.
    pub run: String,
    /// What it lacks and why.
    pub reason: String,
}

/// The outcome of a selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Selection {
    /// The criterion.
    pub criterion: SelectionCriterion,
    /// Name of the run to keep; `None` if every run is excluded or loses too much utility.
    pub chosen: Option<String>,
    /// Every run that took part, in table order.
    pub runs: Vec<RunValue>,
    /// Every run that did not, in table order.
    pub excluded: Vec<ExcludedRun>,
}

/// Chooses a run from `table`; O(runs^2 groups) for the Pareto front, else O(runs groups).
///
/// ```
/// use fairtte_metrics::Direction;
/// use fairtte_metrics::selection::{Measured, Run, RunTable, SelectionCriterion, select_run};
///
/// let run = |name: &str, utility, gap| Run {
///     run: name.into(),
///     utility: Measured::Value(utility),
///     group_utilities: vec![],
///     gap: Measured::Value(gap),
/// };
/// let runs = vec![run("a", 0.80, 0.10), run("b", 0.77, 0.04), run("c", 0.70, 0.01)];
/// let table = RunTable { direction: Direction::HigherIsBetter, groups: vec![], runs };
/// let fair = SelectionCriterion::BestFairness { base_utility: 0.8, tolerated_loss: 0.05, no_skill: None };
/// // At most 5 % below 0.8 is 0.76, so "c" may not be chosen.
/// assert_eq!(select_run(&table, fair)?.chosen.as_deref(), Some("b"));
/// assert_eq!(select_run(&table, SelectionCriterion::BestUtility)?.chosen.as_deref(), Some("a"));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoRuns`], [`MetricError::RepeatedRun`], [`MetricError::RunGroupsMismatch`],
/// [`MetricError::InvalidRunValue`] if a utility is not finite or a gap is not finite and >= 0,
/// [`MetricError::InvalidSetting`] if the base utility or that without skill is not finite, the tolerated loss is not
/// in \[0, 1\], or a criterion over groups is asked of a table without groups, [`MetricError::ZeroOptimum`] if a
/// distance would be relative to 0.
pub fn select_run(table: &RunTable, criterion: SelectionCriterion) -> Result<Selection, MetricError> {
    check_table(table)?;
    check_criterion(table, criterion)?;
    let (mut taking_part, mut excluded) = (Vec::new(), Vec::new());
    for run in &table.runs {
        match missing_value(run, &table.groups, criterion) {
            None => taking_part.push(run),
            Some(reason) => excluded.push(ExcludedRun { run: run.run.clone(), reason }),
        }
    }
    let mut runs = match criterion {
        SelectionCriterion::BestUtility => by_utility(&taking_part),
        SelectionCriterion::BestFairness { base_utility, tolerated_loss, no_skill } => {
            let limit = utility_limit(table.direction, base_utility, tolerated_loss, no_skill);
            by_gap(table.direction, &taking_part, base_utility, limit)
        }
        SelectionCriterion::MinimaxPareto { worst_group } => by_worst_group(table.direction, &taking_part, worst_group),
        SelectionCriterion::DistanceToOptimum => by_distance(table, &taking_part)?,
    };
    let value_direction = match criterion {
        SelectionCriterion::BestUtility | SelectionCriterion::MinimaxPareto { .. } => table.direction,
        SelectionCriterion::BestFairness { .. } | SelectionCriterion::DistanceToOptimum => Direction::LowerIsBetter,
    };
    let prefer = |a: &usize, b: &usize| {
        compare(value_direction, runs[*a].value, runs[*b].value)
            .then_with(|| compare_defined(table.direction, &taking_part[*a].utility, &taking_part[*b].utility))
            .then_with(|| compare_defined(Direction::LowerIsBetter, &taking_part[*a].gap, &taking_part[*b].gap))
            .then_with(|| b.cmp(a))
    };
    let best = (0..runs.len()).filter(|run| runs[*run].standing == RunStanding::Eligible).max_by(prefer);
    if let Some(best) = best {
        runs[best].standing = RunStanding::Chosen;
    }
    let chosen = best.map(|best| runs[best].run.clone());
    Ok(Selection { criterion, chosen, runs, excluded })
}

/// What `run` lacks under `criterion`.
fn missing_value(run: &Run, groups: &[String], criterion: SelectionCriterion) -> Option<String> {
    let missing = |what: &str, measured: &Measured| match measured {
        Measured::Value(_) => None,
        Measured::Undefined(reason) => Some(format!("{what} is undefined: {reason}")),
    };
    match criterion {
        SelectionCriterion::BestUtility => missing("utility", &run.utility),
        SelectionCriterion::BestFairness { .. } => {
            missing("utility", &run.utility).or_else(|| missing("gap", &run.gap))
        }
        SelectionCriterion::MinimaxPareto { .. } | SelectionCriterion::DistanceToOptimum => {
            let mut utilities = groups.iter().zip(&run.group_utilities);
            utilities.find_map(|(group, utility)| missing(&format!("utility of group \"{group}\""), utility))
        }
    }
}

fn check_criterion(table: &RunTable, criterion: SelectionCriterion) -> Result<(), MetricError> {
    let refuse = |setting, value: f64, expected| {
        Err(MetricError::InvalidSetting { setting, value: value.to_string(), expected })
    };
    match criterion {
        SelectionCriterion::BestUtility => Ok(()),
        SelectionCriterion::BestFairness { base_utility, tolerated_loss, no_skill } => {
            if !(0.0..=1.0).contains(&tolerated_loss) {
                return refuse("tolerated loss of utility", tolerated_loss, "a number from 0 to 1");
            }
            if let Some(no_skill) = no_skill.filter(|no_skill| !no_skill.is_finite()) {
                return refuse("utility without skill", no_skill, "a finite number");
            }
            if !utility_limit(table.direction, base_utility, tolerated_loss, no_skill).is_finite() {
                return refuse("base utility", base_utility, "a finite number");
            }
            Ok(())
        }
        SelectionCriterion::MinimaxPareto { .. } | SelectionCriterion::DistanceToOptimum => {
            if table.groups.is_empty() {
                return refuse("number of groups of the run table", 0.0, "at least 1");
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64) -> Measured {
        if value.is_nan() { Measured::Undefined("no events".to_owned()) } else { Measured::Value(value) }
    }

    /// Rows (name, utility, utilities of two groups, gap); NaN stands for undefined.
    fn table(direction: Direction, rows: &[(&str, f64, [f64; 2], f64)]) -> RunTable {
        let run = |&(run, utility, groups, gap): &(&str, f64, [f64; 2], f64)| Run {
            run: run.to_owned(),
            utility: measured(utility),
            group_utilities: groups.map(measured).to_vec(),
            gap: measured(gap),
        };
        RunTable { direction, groups: vec!["F".into(), "M".into()], runs: rows.iter().map(run).collect() }
    }

    fn higher(rows: &[(&str, f64, [f64; 2], f64)]) -> RunTable {
        table(Direction::HigherIsBetter, rows)
    }

    fn chosen(table: &RunTable, criterion: SelectionCriterion) -> Option<String> {
        select_run(table, criterion).unwrap().chosen
    }

    fn values(table: &RunTable, criterion: SelectionCriterion) -> Vec<f64> {
        select_run(table, criterion).unwrap().runs.iter().map(|run| run.value).collect()
    }

    use SelectionCriterion::{BestUtility, DistanceToOptimum};

    const PARETO: SelectionCriterion = SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfEachRun };

    fn fair(base_utility: f64) -> SelectionCriterion {
        SelectionCriterion::BestFairness { base_utility, tolerated_loss: 0.05, no_skill: None }
    }

    #[test]
    fn the_four_criteria_can_choose_four_runs() {
        let table = higher(&[
            ("useful", 0.85, [0.9375, 0.625], 0.3125),
            ("fair", 0.70, [0.625, 0.625], 0.0),
            ("minimax", 0.75, [0.75, 0.8125], 0.0625),
            ("near", 0.80, [0.875, 0.71875], 0.15625),
        ]);
        assert_eq!(chosen(&table, BestUtility).as_deref(), Some("useful"));
        assert_eq!(chosen(&table, fair(0.73)).as_deref(), Some("fair"));
        assert_eq!(chosen(&table, PARETO).as_deref(), Some("minimax"));
        assert_eq!(chosen(&table, DistanceToOptimum).as_deref(), Some("near"));
        assert_eq!(values(&table, PARETO), [0.625, 0.625, 0.75, 0.71875]);
        // The optimum is (0.9375, 0.8125); "near" misses it by 1/15 and 3/26.
        let distance = values(&table, DistanceToOptimum)[3];
        assert!((distance - (1.0_f64 / 225.0 + 9.0 / 676.0).sqrt()).abs() < 1e-15, "{distance}");
    }

    #[test]
    fn five_percent_of_the_skill_is_less_than_five_percent_of_the_value() {
        let loss = |base_utility, no_skill| SelectionCriterion::BestFairness {
            base_utility,
            tolerated_loss: 0.05,
            no_skill: Some(no_skill),
        };
        let none = [0.5, 0.5];
        // 5 % below 0.52 is 0.494; 5 % of the 0.02 above chance leaves 0.519.
        let near_chance = higher(&[("a", 0.52, none, 0.1), ("coin", 0.5, none, 0.0), ("b", 0.5195, none, 0.05)]);
        assert_eq!(chosen(&near_chance, fair(0.52)).as_deref(), Some("coin"));
        assert_eq!(chosen(&near_chance, loss(0.52, 0.5)).as_deref(), Some("b"));
        // Lower is better: 0.02 below 0.2 leaves 0.181.
        let rows = [("a", 0.18, none, 0.1), ("b", 0.1812, none, 0.0), ("c", 0.1809, none, 0.05)];
        let scores = table(Direction::LowerIsBetter, &rows);
        assert_eq!(chosen(&scores, loss(0.18, 0.2)).as_deref(), Some("c"));
        // A base without skill has no skill to lose.
        assert_eq!(chosen(&higher(&[("a", 0.48, none, 0.0)]), loss(0.49, 0.5)), None);
    }

    #[test]
    fn a_dominated_run_names_the_first_run_that_dominates_it() {
        let table = higher(&[("low", 0.5, [0.5, 0.5], 0.0), ("a", 0.6, [0.6, 0.5], 0.1), ("b", 0.6, [0.6, 0.6], 0.0)]);
        let found = select_run(&table, PARETO).unwrap();
        let standings: Vec<RunStanding> = found.runs.into_iter().map(|run| run.standing).collect();
        let dominated = |by: &str| RunStanding::Dominated { by: by.to_owned() };
        assert_eq!(standings, [dominated("a"), dominated("b"), RunStanding::Chosen]);
    }

    #[test]
    fn the_worst_group_is_that_of_each_run_or_one_for_all_runs() {
        // The best of F is 0.9, of M 0.8: M is the worst group of all runs.
        let table =
            higher(&[("a", 0.7, [0.9, 0.6], 0.3), ("b", 0.7, [0.7, 0.75], 0.05), ("c", 0.7, [0.65, 0.8], 0.15)]);
        assert_eq!(chosen(&table, PARETO).as_deref(), Some("b"));
        let of_all = SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfAllRuns };
        assert_eq!(chosen(&table, of_all).as_deref(), Some("c"));
        assert_eq!(values(&table, of_all), [0.6, 0.75, 0.8]);
    }

    #[test]
    fn lower_is_better_mirrors_every_criterion() {
        let rows = [("a", 0.25, [0.125, 0.5], 0.375), ("b", 0.3, [0.25, 0.3125], 0.0625), ("c", 0.26, [0.5, 0.5], 0.0)];
        let table = table(Direction::LowerIsBetter, &rows);
        assert_eq!(chosen(&table, BestUtility).as_deref(), Some("a"));
        // At most 5 % above 0.25 is 0.2625.
        assert_eq!(chosen(&table, fair(0.25)).as_deref(), Some("c"));
        let limited = select_run(&table, fair(0.25)).unwrap();
        assert_eq!(limited.runs[1].standing, RunStanding::TooMuchLoss { limit: 0.2625 });
        assert_eq!(chosen(&table, PARETO).as_deref(), Some("b"));
        assert_eq!(values(&table, PARETO), [0.5, 0.3125, 0.5]);
        assert_eq!(values(&table, DistanceToOptimum)[..2], [0.6, 1.0]);
    }

    #[test]
    fn a_run_exactly_on_the_limit_of_loss_is_tolerated() {
        // In floating point 0.8 - 0.05 * 0.8 is above 0.76.
        let table = higher(&[("on", 0.76, [0.5; 2], 0.0), ("below", 0.7599, [0.5; 2], 0.0)]);
        let found = select_run(&table, fair(0.8)).unwrap();
        assert_eq!(found.chosen.as_deref(), Some("on"));
        assert!(matches!(found.runs[1].standing, RunStanding::TooMuchLoss { .. }));
        assert_eq!(chosen(&table, fair(0.9)), None);
        // A negative utility, such as a log-likelihood, loses by its size.
        assert_eq!(chosen(&higher(&[("a", -1.04, [0.0; 2], 0.0)]), fair(-1.0)).as_deref(), Some("a"));
        assert_eq!(chosen(&higher(&[("a", -1.06, [0.0; 2], 0.0)]), fair(-1.0)), None);
    }

    #[test]
    fn ties_go_to_utility_then_gap_then_the_first_row() {
        let by_utility = higher(&[("a", 0.7, [0.6; 2], 0.1), ("b", 0.8, [0.6; 2], 0.1)]);
        let by_gap = higher(&[("a", 0.7, [0.6; 2], f64::NAN), ("b", 0.7, [0.6; 2], 0.2), ("c", 0.7, [0.6; 2], 0.1)]);
        let by_row = higher(&[("a", 0.7, [0.6; 2], 0.1), ("b", 0.7, [0.6; 2], 0.1)]);
        for criterion in [PARETO, DistanceToOptimum] {
            assert_eq!(chosen(&by_utility, criterion).as_deref(), Some("b"));
            assert_eq!(chosen(&by_gap, criterion).as_deref(), Some("c"));
            assert_eq!(chosen(&by_row, criterion).as_deref(), Some("a"));
        }
        assert_eq!(chosen(&by_gap, BestUtility).as_deref(), Some("c"));
        assert_eq!(chosen(&by_utility, fair(0.7)).as_deref(), Some("b"));
    }

    #[test]
    fn a_run_with_an_undefined_value_is_excluded_with_its_reason_and_moves_no_optimum() {
        let table = higher(&[("a", 0.9, [0.99, f64::NAN], f64::NAN), ("b", 0.7, [0.5, 0.5], 0.0)]);
        for criterion in [PARETO, DistanceToOptimum] {
            let found = select_run(&table, criterion).unwrap();
            assert_eq!(found.chosen.as_deref(), Some("b"));
            let reason = "utility of group \"M\" is undefined: no events".to_owned();
            assert_eq!(found.excluded, [ExcludedRun { run: "a".to_owned(), reason }]);
        }
        assert_eq!(values(&table, DistanceToOptimum), [0.0]);
        assert_eq!(select_run(&table, fair(0.9)).unwrap().excluded[0].reason, "gap is undefined: no events");
        assert_eq!(chosen(&table, BestUtility).as_deref(), Some("a"));
        let nobody = select_run(&higher(&[("a", f64::NAN, [0.5; 2], 0.0)]), BestUtility).unwrap();
        assert_eq!((nobody.chosen, nobody.excluded.len()), (None, 1));
    }

    #[test]
    fn bad_tables_and_settings_are_named() {
        let good = higher(&[("a", 0.7, [0.5, 0.5], 0.0)]);
        let refused = |table: &RunTable, criterion| select_run(table, criterion).unwrap_err();
        assert_eq!(refused(&higher(&[]), BestUtility), MetricError::NoRuns);
        let twice = higher(&[("a", 0.7, [0.5; 2], 0.0), ("a", 0.7, [0.5; 2], 0.0)]);
        assert_eq!(refused(&twice, BestUtility), MetricError::RepeatedRun { run: "a".to_owned() });
        let infinite = higher(&[("a", 0.7, [0.5, f64::INFINITY], 0.0)]);
        assert!(matches!(refused(&infinite, BestUtility), MetricError::InvalidRunValue { .. }));
        assert!(matches!(
            refused(&higher(&[("a", 0.7, [0.5; 2], -0.1)]), BestUtility),
            MetricError::InvalidRunValue { .. }
        ));
        let mut short = good.clone();
        short.groups.pop();
        assert!(matches!(refused(&short, BestUtility), MetricError::RunGroupsMismatch { found: 2, expected: 1, .. }));
        let loss = SelectionCriterion::BestFairness { base_utility: 0.7, tolerated_loss: 1.5, no_skill: None };
        assert!(matches!(refused(&good, loss), MetricError::InvalidSetting { .. }));
        let no_skill = Some(f64::NAN);
        let loss = SelectionCriterion::BestFairness { base_utility: 0.7, tolerated_loss: 0.05, no_skill };
        assert!(matches!(refused(&good, loss), MetricError::InvalidSetting { setting: "utility without skill", .. }));
        assert!(matches!(refused(&good, fair(f64::NAN)), MetricError::InvalidSetting { .. }));
        let zero = higher(&[("a", 0.7, [0.0, 0.5], 0.0)]);
        assert_eq!(refused(&zero, DistanceToOptimum), MetricError::ZeroOptimum { group: "F".to_owned(), best: 0.0 });
        let without = RunTable { groups: vec![], runs: vec![], ..good.clone() };
        assert_eq!(refused(&without, PARETO), MetricError::NoRuns);
    }

    #[test]
    fn a_selection_survives_json() {
        let table = higher(&[("a", 0.9, [0.75, f64::NAN], 0.25), ("b", 0.5, [0.5, 0.5], 0.0)]);
        let found = select_run(&table, fair(0.9)).unwrap();
        let json = serde_json::to_string(&found).unwrap();
        assert!(json.contains(r#""standing":"chosen""#) && json.contains(r#""too-much-loss":{"limit":"#), "{json}");
        assert_eq!(serde_json::from_str::<Selection>(&json).unwrap(), found);
        let table_json = serde_json::to_string(&table).unwrap();
        assert!(table_json.contains(r#"{"undefined":"no events"}"#), "{table_json}");
        assert_eq!(serde_json::from_str::<RunTable>(&table_json).unwrap(), table);
    }

    #[test]
    fn rounding_keeps_no_run_on_the_limit_out_whatever_sign_size_and_direction() {
        // 5 % more or less in decimal digits, of which binary numbers make a loss just above 5 %.
        let on = |direction, base: f64, utility: f64| {
            chosen(&table(direction, &[("on", utility, [0.5; 2], 0.0)]), fair(base)).is_some()
        };
        let (up, down) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        let limits: [(Direction, f64, f64); 6] = [
            (up, 3000.3, 2850.285),
            (up, -0.013, -0.01365),
            (up, -21_002.1, -22_052.205),
            (down, 0.013, 0.01365),
            (down, 21_002.1, 22_052.205),
            (down, -0.021, -0.01995),
        ];
        for (direction, base, utility) in limits {
            let limit = base - 0.05 * base.abs() * if direction == up { 1.0 } else { -1.0 };
            assert_ne!(limit, utility, "the case shows nothing if it is not rounded");
            assert!(on(direction, base, utility), "{direction:?} {base} {utility}");
            let beyond = if direction == up { utility - 1e-9 * base.abs() } else { utility + 1e-9 * base.abs() };
            assert!(!on(direction, base, beyond), "{direction:?} {base} {beyond}");
        }
    }
}
