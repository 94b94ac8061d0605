//! Do methods differ over several settings? Rank tests of all methods, and signed-rank tests of pairs, on values that are in
//! memory or in a table.
//!
//! A setting is a data set, or a data set with an attribute; a trial is one training of all methods with the same seed and
//! draw. Per metric: the mean over trials of every method in every setting gives the average ranks, Friedman's test with
//! the correction for ties, the F of Iman and Davenport, Nemenyi's p values and the critical difference (Demšar, Journal of
//! Machine Learning Research 7 (2006) 1-30); the differences of two methods, one per setting, or per setting and trial, give
//! Wilcoxon's signed-rank test, with Holm's adjustment over the family. [`compare`] is the whole analysis; `report`
//! shows it.

mod arrange;
mod family;
mod pairs;
mod ranks;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use fairtte_metrics::statistics::{Alternative, FriedmanTest, ImanDavenportTest, SignedRankTest};
use fairtte_metrics::{Direction, MetricError};
use serde::Serialize;

use self::arrange::Arranged;

/// Fewest settings for Friedman's test, whose chi-square is not a good approximation for fewer.
pub(crate) const FEWEST_SETTINGS: usize = 5;
/// The largest level of significance that is accepted; 0.95 would be that of an interval.
const LARGEST_LEVEL: f64 = 0.5;

/// One value: that of a method in a setting, in one trial if there are several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) metric: String,
    pub(crate) setting: String,
    pub(crate) method: String,
    pub(crate) trial: Option<String>,
    pub(crate) value: f64,
}

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Goal {
    HigherIsBetter,
    LowerIsBetter,
    /// A gap between groups: not below 0, smaller is better.
    Gap,
}

impl Goal {
    pub(crate) fn direction(self) -> Direction {
        if self == Self::HigherIsBetter { Direction::HigherIsBetter } else { Direction::LowerIsBetter }
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::HigherIsBetter => "higher is better",
            Self::LowerIsBetter => "lower is better",
            Self::Gap => "smaller is better",
        }
    }
}

/// The tests whose p values Holm's method adjusts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Family {
    /// The pairs of one metric; Friedman's test is decided by its own p.
    #[default]
    Metric,
    /// The pairs of all metrics; Friedman's test is decided by p adjusted for all metrics.
    Table,
}

/// What is asked of the values.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The method that all others are compared with: `erm` if not given, or the first one.
    pub(crate) base: Option<String>,
    /// Level of significance.
    pub(crate) level: f64,
    /// Alternative of the signed-rank tests, about the first method minus the second.
    pub(crate) alternative: Alternative,
    /// Test all pairs, not only those with the base.
    pub(crate) all_pairs: bool,
    pub(crate) family: Family,
    /// Goals by metric; every metric of the values has one.
    pub(crate) goals: BTreeMap<String, Goal>,
}

/// The analysis of every metric.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MethodTests {
    pub(crate) level: f64,
    pub(crate) alternative: Alternative,
    pub(crate) all_pairs: bool,
    pub(crate) family: Family,
    /// In the order of the values.
    pub(crate) metrics: Vec<MetricTests>,
}

/// The analysis of one metric.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetricTests {
    pub(crate) metric: String,
    pub(crate) goal: Goal,
    pub(crate) base: String,
    /// In the order of the values; `settings` and `ranks` follow it.
    pub(crate) methods: Vec<String>,
    /// What is asked, as a sentence.
    pub(crate) question: String,
    /// What the tests say, in sentences.
    pub(crate) verdict: Vec<String>,
    /// Fewest and most trials of a method in a setting; `None` without trials.
    pub(crate) trials: Option<(usize, usize)>,
    /// The settings in which every method has a value.
    pub(crate) settings: Vec<SettingValues>,
    /// The other settings, which are not ranked.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) ranks: RankTests,
    pub(crate) pairs: Vec<PairTest>,
}

/// The values of all methods in one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SettingValues {
    pub(crate) setting: String,
    /// Mean over the trials of every method.
    pub(crate) means: Vec<f64>,
    /// Rank of every method, 1 for the best; mid-ranks for ties.
    pub(crate) ranks: Vec<f64>,
}

/// A setting that is not ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LeftOut {
    pub(crate) setting: String,
    /// The methods without a value.
    pub(crate) lacks: Vec<String>,
}

/// Average ranks with the tests of equal ranks.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RankTests {
    /// Settings that are ranked.
    pub(crate) n_settings: usize,
    /// Average rank of every method, 1 is best; empty if no setting is ranked.
    pub(crate) average_ranks: Vec<f64>,
    /// Mean over the settings of every method.
    pub(crate) means: Vec<f64>,
    /// `None` with the reason in `untested`.
    pub(crate) tested: Option<Tested>,
    pub(crate) untested: Option<Untested>,
}

/// Friedman's test, and those that are read after it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Tested {
    pub(crate) friedman: FriedmanTest,
    /// p adjusted for the metrics (Holm), where there are several.
    pub(crate) friedman_p_holm: Option<f64>,
    /// `None` if all settings rank the methods alike, where F is infinite.
    pub(crate) iman_davenport: Option<ImanDavenportTest>,
    /// Whether Friedman's test rejects equal ranks at the level.
    pub(crate) rejects: bool,
    /// p values of all pairs of methods. Read only where Friedman's test rejects.
    pub(crate) nemenyi_p: Vec<Vec<f64>>,
    /// Difference of average ranks at or above which two methods are apart at the level.
    pub(crate) critical_difference: f64,
    /// Methods that are not apart, by place in `methods`, from the best; those that stand alone too.
    pub(crate) cliques: Vec<Vec<usize>>,
}

/// Why there is no test of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Untested {
    /// No setting has a value of every method.
    NoSetting,
    /// Fewer settings than [`FEWEST_SETTINGS`].
    FewSettings,
    /// All methods tie in every setting.
    AllTied,
}

/// The signed-rank test of two methods.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PairTest {
    pub(crate) first: String,
    /// Its values are subtracted.
    pub(crate) second: String,
    /// Pairs: settings, or settings x trials, with a value of both.
    pub(crate) n_pairs: usize,
    /// Settings, or settings x trials, with a value of one of them only.
    pub(crate) n_unpaired: usize,
    /// Pairs in which the first is better, in which it is worse, and without a difference.
    pub(crate) n_better: usize,
    pub(crate) n_worse: usize,
    pub(crate) n_zero: usize,
    /// Median of first minus second, zeros included.
    pub(crate) median_difference: Option<f64>,
    /// `None` without a pair.
    pub(crate) test: Option<SignedRankTest>,
    /// p adjusted over the family (Holm).
    pub(crate) p_holm: Option<f64>,
}

/// Why values cannot be compared. Numbers of observations are places in the slice that was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TestsError {
    #[error("{metric} of \"{method}\" in setting \"{setting}\" is {value}, expected a finite number")]
    NotFinite { index: usize, metric: String, setting: String, method: String, value: f64 },
    #[error(
        "{metric} of \"{method}\" in setting \"{setting}\" is {value}, expected a number >= 0, because it is a gap (a signed \
         difference has no best end; take its absolute value)"
    )]
    NegativeGap { index: usize, metric: String, setting: String, method: String, value: f64 },
    #[error("{what} appears twice, expected one value")]
    Repeated { index: usize, first: usize, what: String },
    #[error("{n} of {total} values have a trial, expected all or none: the first without one is {what}")]
    SomeTrials { index: usize, n: usize, total: usize, what: String },
    #[error("{metric} has one method, {method}, expected at least two")]
    OneMethod { metric: String, method: String },
    #[error("the base is \"{base}\", which has no value of {metric}, expected one of {}", methods.join(", "))]
    UnknownBase { base: String, metric: String, methods: Vec<String> },
    #[error("the level is {0}, expected a level of significance above 0 and at most {LARGEST_LEVEL}, for example 0.05")]
    Level(f64),
    #[error("{metric} has no direction, expected whether higher or lower values are better")]
    NoGoal { metric: String },
    #[error("there is no value, expected those of at least two methods")]
    NoValues,
    #[error(transparent)]
    Metric(#[from] MetricError),
}

/// Compares the methods of `observations`, metric by metric.
///
/// # Errors
/// [`TestsError`] if a value is not finite, is repeated, or is a gap below 0; if a metric has one method, no goal or not the
/// base; if some values have a trial and some have none; if the level is out of range.
pub(crate) fn compare(observations: &[Observation], question: &Question) -> Result<MethodTests, TestsError> {
    if !(question.level > 0.0 && question.level <= LARGEST_LEVEL) {
        return Err(TestsError::Level(question.level));
    }
    let by_metric = arrange::by_metric(observations)?;
    let mut metrics = Vec::new();
    for (metric, values) in by_metric {
        let goal = *question.goals.get(metric).ok_or_else(|| TestsError::NoGoal { metric: metric.to_owned() })?;
        metrics.push(of_metric(&Arranged::new(metric, &values, goal)?, question)?);
    }
    let mut tests = MethodTests {
        level: question.level,
        alternative: question.alternative,
        all_pairs: question.all_pairs,
        family: question.family,
        metrics,
    };
    family::adjust(&mut tests)?;
    words::speak(&mut tests);
    Ok(tests)
}

fn of_metric(arranged: &Arranged<'_>, question: &Question) -> Result<MetricTests, TestsError> {
    let methods: Vec<String> = arranged.methods.iter().map(|method| (*method).to_owned()).collect();
    let base = base(arranged, question)?;
    let (settings, left_out) = arranged.settings(arranged.goal.direction())?;
    Ok(MetricTests {
        metric: arranged.metric.to_owned(),
        goal: arranged.goal,
        base: methods[base].clone(),
        question: String::new(),
        verdict: Vec::new(),
        trials: arranged.trials(),
        ranks: ranks::rank_tests(&settings, arranged.goal.direction(), question.level)?,
        pairs: pairs::pair_tests(arranged, base, question)?,
        methods,
        settings,
        left_out,
    })
}

/// The place of the base among the methods.
fn base(arranged: &Arranged<'_>, question: &Question) -> Result<usize, TestsError> {
    let place = |name: &str| arranged.methods.iter().position(|method| *method == name);
    let Some(base) = &question.base else { return Ok(place("erm").unwrap_or(0)) };
    place(base).ok_or_else(|| TestsError::UnknownBase {
        base: base.clone(),
        metric: arranged.metric.to_owned(),
        methods: arranged.methods.iter().map(|method| (*method).to_owned()).collect(),
    })
}
