//! Whether the groups of an attribute are censored differently.
//!
//! One censoring curve weighs the samples of all groups. Where groups are censored differently, the weights are right for none
//! of them, and a gap of the weighted metrics may come from follow-up alone. The test is the log-rank test of k samples with
//! censoring as the event. At tied times samples with an event are no longer at risk of being censored, as in the reverse
//! Kaplan-Meier curve. Statistic Z' V^-1 Z with Z = observed - expected of k - 1 groups and V the hypergeometric covariance,
//! chi-square with k - 1 degrees of freedom under equal censoring. Samples count as independent: with several per subject the
//! p value is too small.
//!
//! Sources: Mantel (1966); Peto & Peto (1972), doi:10.2307/2344317. Golden values: lifelines 0.30.3
//! `multivariate_logrank_test`.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use crate::chi_square::chi_square_upper_tail;
use crate::evaluation::evaluated::Input;
use crate::linear_algebra::cholesky_solve;
use crate::{GroupId, Groups};

/// The censoring of the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CensoringByGroup {
    /// Name of the attribute.
    pub attribute: String,
    /// One entry per level with a sample.
    pub groups: Vec<GroupCensoring>,
    /// Log-rank statistic; `None` with fewer than two groups that are at risk while a sample is censored.
    pub statistic: Option<f64>,
    /// Its degrees of freedom, the number of such groups - 1.
    pub degrees_of_freedom: usize,
    /// p value of equal censoring, in [0, 1]; `None` without a statistic.
    pub p_value: Option<f64>,
}

/// The censoring of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupCensoring {
    /// Name of the level.
    pub level: String,
    /// Censored samples.
    pub n_censored: usize,
    /// How many would be if all groups had the same hazard of being censored at every time.
    pub n_expected: f64,
}

impl GroupCensoring {
    /// Observed / expected, an estimate of the hazard of being censored relative to all samples; `None` if none is expected.
    pub fn ratio(&self) -> Option<f64> {
        (self.n_expected > 0.0).then(|| self.n_censored as f64 / self.n_expected)
    }
}

impl CensoringByGroup {
    /// Groups are taken to be censored differently if the p value of equal censoring is below this ..
    pub const UNEQUAL_P: f64 = 0.01;
    /// .. and one of them is censored at least this many times as fast as another.
    pub const UNEQUAL_TIMES: f64 = 1.5;

    /// How many times as fast the group that is censored most often is censored as the one that is least, infinite if that one is not;
    /// `None` with fewer than two groups, or if no sample is censored.
    pub fn times_as_fast(&self) -> Option<f64> {
        let (most, least) = self.extremes()?;
        let times = most.ratio()? / least.ratio()?;
        (!times.is_nan()).then_some(times)
    }

    /// Whether groups are censored so differently that one censoring curve is right for none of them: then a gap of the IBS is off,
    /// by 0.02 where one of two groups is censored twice as fast and 30 % are censored (`docs/src/honesty.md`).
    pub fn is_unequal(&self) -> bool {
        let times = self.times_as_fast();
        self.p_value.is_some_and(|p| p < Self::UNEQUAL_P) && times.is_some_and(|times| times >= Self::UNEQUAL_TIMES)
    }

    /// The groups that are censored most and least often, relative to all samples; `None` with fewer than two.
    pub fn extremes(&self) -> Option<(&GroupCensoring, &GroupCensoring)> {
        let with_ratio = || self.groups.iter().filter_map(|group| Some((group, group.ratio()?)));
        let most = with_ratio().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = with_ratio().min_by(|a, b| a.1.total_cmp(&b.1))?;
        (with_ratio().count() > 1).then_some((most.0, least.0))
    }
}

/// One entry per attribute. O(n log n + distinct censoring times x k^2) each.
pub(crate) fn censoring_by_group(input: &Input<'_>) -> Vec<CensoringByGroup> {
    let ended = |row: usize| input.outcomes.event()[row] || input.competing.is_some_and(|competing| competing[row]);
    let censored: Vec<bool> = (0..input.outcomes.n()).map(|row| !ended(row)).collect();
    input.groups.iter().map(|groups| of_attribute(input.outcomes.time(), &censored, groups)).collect()
}

fn of_attribute(time: &[f64], censored: &[bool], groups: &Groups) -> CensoringByGroup {
    let present: Vec<_> = groups.ids().filter(|group| !groups.rows(*group).is_empty()).collect();
    let place = |row: usize| groups.membership()[row].and_then(|group| present.iter().position(|id| *id == group));
    let samples: Vec<Sample> = (0..time.len())
        .filter_map(|row| Some(Sample { time: time[row], censored: censored[row], group: place(row)? }))
        .collect();
    let sums = LogRank::of(samples, present.len());
    let (statistic, degrees_of_freedom) = sums.statistic().map_or((None, 0), |(found, freedom)| (Some(found), freedom));
    let group = |(k, id): (usize, &GroupId)| GroupCensoring {
        level: groups.levels()[id.index()].clone(),
        n_censored: groups.rows(*id).iter().filter(|row| censored[**row]).count(),
        n_expected: sums.expected[k],
    };
    CensoringByGroup {
        attribute: groups.attribute().to_owned(),
        groups: present.iter().enumerate().map(group).collect(),
        degrees_of_freedom,
        p_value: statistic.map(|statistic| chi_square_upper_tail(statistic, degrees_of_freedom)),
        statistic,
    }
}

struct Sample {
    time: f64,
    censored: bool,
    group: usize,
}

/// The sums of the log-rank test, by group.
struct LogRank {
    observed: Vec<f64>,
    expected: Vec<f64>,
    covariance: Array2<f64>,
}

impl LogRank {
    fn of(mut samples: Vec<Sample>, n_groups: usize) -> Self {
        // At tied times events come first.
        samples.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.censored.cmp(&b.censored)));
        let mut at_risk = vec![0.0; n_groups];
        for sample in &samples {
            at_risk[sample.group] += 1.0;
        }
        let mut sums = Self {
            observed: vec![0.0; n_groups],
            expected: vec![0.0; n_groups],
            covariance: Array2::zeros((n_groups, n_groups)),
        };
        for tied in samples.chunk_by(|a, b| a.time.total_cmp(&b.time).is_eq() && a.censored == b.censored) {
            if tied[0].censored {
                sums.add(tied, &at_risk);
            }
            for sample in tied {
                at_risk[sample.group] -= 1.0;
            }
        }
        sums
    }

    /// Adds the samples that are censored at one time.
    fn add(&mut self, tied: &[Sample], at_risk: &[f64]) {
        let (n, d) = (at_risk.iter().sum::<f64>(), tied.len() as f64);
        for sample in tied {
            self.observed[sample.group] += 1.0;
        }
        let variance = if n > 1.0 { d * (n - d) / (n - 1.0) } else { 0.0 };
        for (j, own) in at_risk.iter().map(|count| count / n).enumerate() {
            self.expected[j] += d * own;
            for (k, other) in at_risk.iter().map(|count| count / n).enumerate() {
                self.covariance[[j, k]] += variance * own * (f64::from(u8::from(j == k)) - other);
            }
        }
    }

    /// The statistic with its degrees of freedom.
    fn statistic(&self) -> Option<(f64, usize)> {
        // A group that was never at risk together with others says nothing.
        let used: Vec<usize> = (0..self.expected.len()).filter(|k| self.covariance[[*k, *k]] > 0.0).collect();
        let (_, used) = used.split_last().filter(|(_, others)| !others.is_empty())?;
        let difference: Array1<f64> = used.iter().map(|k| self.observed[*k] - self.expected[*k]).collect();
        let covariance = Array2::from_shape_fn((used.len(), used.len()), |(j, k)| self.covariance[[used[j], used[k]]]);
        let solved = cholesky_solve(covariance, &difference)?;
        Some((difference.dot(&solved).max(0.0), used.len()))
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    fn groups(of: &[Option<u32>]) -> Groups {
        let levels = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        Groups::new("site", levels, of.iter().map(|group| group.map(GroupId)).collect()).unwrap()
    }

    /// 60 samples in turns of three groups; with `stretched`, those of the first are observed half as long.
    fn sixty(stretched: bool) -> (Vec<f64>, Vec<bool>, Vec<Option<u32>>) {
        let time =
            |k: u32| (1.0 + f64::from(k * 37 % 101) / 10.0) * if stretched && k.is_multiple_of(3) { 0.5 } else { 1.0 };
        (
            (0..60).map(time).collect(),
            (0..60).map(|k: u32| k * 7 % 5 >= 2).collect(),
            (0..60).map(|k| Some(k % 3)).collect(),
        )
    }

    fn found(time: &[f64], censored: &[bool], of: &[Option<u32>]) -> CensoringByGroup {
        of_attribute(time, censored, &groups(of))
    }

    #[test]
    fn statistics_match_lifelines() {
        // lifelines 0.30.3 `multivariate_logrank_test(time, group, ~event)`.
        let (time, censored, of) = sixty(false);
        let three = found(&time, &censored, &of);
        assert_relative_eq!(three.statistic.unwrap(), 0.198_390_794_542_760_04, max_relative = 1e-10);
        assert_relative_eq!(three.p_value.unwrap(), 0.905_565_745_659_372_9, max_relative = 1e-10);
        let of_two: Vec<_> = of.iter().map(|group| group.filter(|group| *group < 2)).collect();
        let two = found(&time, &censored, &of_two);
        assert_relative_eq!(two.statistic.unwrap(), 0.000_849_124_506_506_541_2, max_relative = 1e-9);
        assert_eq!((two.degrees_of_freedom, two.groups.len()), (1, 2));
        // Group a is observed half as long. Three times are tied: those of events are reduced by 1e-6 for lifelines, which
        // would count them as at risk.
        let (time, censored, of) = sixty(true);
        let differing = found(&time, &censored, &of);
        assert_relative_eq!(differing.statistic.unwrap(), 13.764_400_306_828_218, max_relative = 1e-10);
        assert_relative_eq!(differing.p_value.unwrap(), 0.001_025_884_457_175_162_4, max_relative = 1e-9);
        assert_relative_eq!(differing.groups[0].n_expected, 4.959_713_357_250_548, max_relative = 1e-12);
        assert_relative_eq!(differing.groups[1].n_expected, 17.293_143_529_941_027, max_relative = 1e-12);
        let (most, least) = differing.extremes().unwrap();
        assert_eq!((most.level.as_str(), least.level.as_str(), most.n_censored), ("a", "b", 12));
        assert_relative_eq!(most.ratio().unwrap(), 12.0 / 4.959_713_357_250_548, max_relative = 1e-12);
    }

    #[test]
    fn groups_are_unequal_if_the_test_and_the_ratio_say_so() {
        let of = |p: f64, n: [usize; 2]| CensoringByGroup {
            attribute: "site".to_owned(),
            groups: ["a", "b"]
                .into_iter()
                .zip(n)
                .map(|(level, n)| GroupCensoring { level: level.to_owned(), n_censored: n, n_expected: 20.0 })
                .collect(),
            statistic: Some(1.0),
            degrees_of_freedom: 1,
            p_value: Some(p),
        };
        assert_eq!(of(0.5, [30, 20]).times_as_fast(), Some(1.5));
        assert!(of(0.009, [30, 20]).is_unequal() && of(0.009, [20, 30]).is_unequal());
        assert!(!of(0.01, [30, 20]).is_unequal() && !of(0.009, [29, 20]).is_unequal());
        assert!(of(0.009, [30, 0]).is_unequal(), "one group is not censored at all");
        assert_eq!((of(0.009, [0, 0]).times_as_fast(), of(0.009, [0, 0]).is_unequal()), (None, false));
        let (time, censored, membership) = sixty(true);
        assert!(found(&time, &censored, &membership).is_unequal());
        let (time, censored, membership) = sixty(false);
        assert!(!found(&time, &censored, &membership).is_unequal());
        let without = CensoringByGroup { p_value: None, ..of(0.009, [30, 20]) };
        assert!(!without.is_unequal());
    }

    #[test]
    fn at_tied_times_events_leave_the_risk_set_before_censorings() {
        // As above, with the times of events reduced by 1e-6.
        let time = [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0];
        let event = [3, 7];
        let censored: Vec<bool> = (0..10).map(|k| !event.contains(&k)).collect();
        let of: Vec<Option<u32>> = [0, 0, 1, 1, 0, 1, 0, 1, 1, 0].map(Some).to_vec();
        let tied = found(&time, &censored, &of);
        assert_relative_eq!(tied.statistic.unwrap(), 0.180_268_788_948_119_04, max_relative = 1e-10);
        assert_relative_eq!(tied.p_value.unwrap(), 0.671_142_349_278_097_3, max_relative = 1e-10);
    }

    #[test]
    fn one_group_or_nobody_censored_has_no_statistic() {
        let one = found(&[1.0, 2.0], &[true, true], &[Some(0), Some(0)]);
        assert_eq!((one.statistic, one.p_value, one.extremes()), (None, None, None));
        assert_eq!((one.groups[0].n_censored, one.groups[0].n_expected), (2, 2.0));
        let nobody = found(&[1.0, 2.0, 3.0], &[false; 3], &[Some(0), Some(1), None]);
        assert_eq!((nobody.statistic, nobody.groups[0].ratio()), (None, None));
        // Group b leaves before anybody is censored.
        let apart = found(&[1.0, 2.0, 3.0], &[false, true, true], &[Some(1), Some(0), Some(0)]);
        assert_eq!(apart.statistic, None);
    }
}
