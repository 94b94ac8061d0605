//! Laws of group comparisons, bootstrap draws and intervals that hold for every input.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]
#![expect(clippy::float_cmp, reason = "the same sums in the same order are equal to the last bit")]

use fairtte_metrics::fairness::{Comparison, EquityScaling, PerGroup};
use fairtte_metrics::rank::{ConcordanceTd, TiedPredictions, concordance_td};
use fairtte_metrics::resampling::{
    Bootstrap, Interval, IntervalMethod, Jackknife, JackknifeValues, Replicated, Resample, paired_difference,
};
use fairtte_metrics::{Direction, GroupId, Groups, MetricError, Outcomes, Reading, SubjectId, SurvivalCurves};
use ndarray::Array2;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const DIRECTIONS: [Direction; 2] = [Direction::HigherIsBetter, Direction::LowerIsBetter];
const METHODS: [IntervalMethod; 3] = [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca];

/// Groups whose rows are the given values, one row each, with the value as the metric.
fn one_row_each(values: &[f64]) -> PerGroup<f64> {
    let n = u32::try_from(values.len()).unwrap();
    let outcomes = Outcomes::new(vec![1.0; values.len()], vec![true; values.len()]).unwrap();
    let levels = (0..n).map(|level| level.to_string()).collect();
    let groups = Groups::new("group", levels, (0..n).map(|level| Some(GroupId(level))).collect()).unwrap();
    PerGroup::compute(&groups, &outcomes, None, |rows| Ok(values[rows[0]])).unwrap()
}

/// Several samples of some subjects, with ties in times and predictions.
#[derive(Clone, Debug)]
struct Sample {
    subject: Vec<u8>,
    time: Vec<f64>,
    event: Vec<bool>,
    survival: Vec<f64>,
}

impl Sample {
    fn permuted(&self, order: &[usize]) -> Self {
        Self {
            subject: order.iter().map(|&row| self.subject[row]).collect(),
            time: order.iter().map(|&row| self.time[row]).collect(),
            event: order.iter().map(|&row| self.event[row]).collect(),
            survival: order.iter().map(|&row| self.survival[row]).collect(),
        }
    }

    fn n(&self) -> usize {
        self.time.len()
    }

    fn subjects(&self) -> Vec<SubjectId> {
        self.subject.iter().map(|subject| SubjectId::new(subject.to_string())).collect()
    }

    fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.time.clone(), self.event.clone()).unwrap()
    }

    fn curves(&self) -> SurvivalCurves {
        let survival = Array2::from_shape_vec((self.n(), 1), self.survival.clone()).unwrap();
        SurvivalCurves::new(vec![0.5], survival).unwrap()
    }

    /// The 90 % interval of C^td by every method.
    fn intervals(&self, seed: u64, max_blocks: usize) -> Option<Vec<Result<Interval, MetricError>>> {
        let prepared = ConcordanceTd::prepare(&self.outcomes(), &self.curves(), Reading::Step).ok()?;
        let value = |weights: &[u32]| Some(prepared.weighted(weights, TiedPredictions::Half).ok()?.value);
        let bootstrap = Bootstrap::new(&self.subjects(), Resample::Subject, 40, seed);
        let jackknife = Jackknife::new(&bootstrap, max_blocks);
        let left_out = (0..jackknife.n_blocks()).map(|block| value(&jackknife.weights(block))).collect();
        let jackknife = jackknife.collect(left_out).unwrap();
        let replicates = bootstrap.map(value);
        let number = Replicated::new(value(&vec![1; self.n()])?, &replicates).with_jackknife(&jackknife);
        Some(METHODS.map(|method| number.interval(0.9, method)).to_vec())
    }
}

prop_compose! {
    fn samples()(
        rows in prop::collection::vec((0..12_u8, 1..9_u8, any::<bool>(), 0..6_u8), 2..40),
    ) -> Sample {
        Sample {
            subject: rows.iter().map(|row| row.0).collect(),
            time: rows.iter().map(|row| f64::from(row.1)).collect(),
            event: rows.iter().map(|row| row.2).collect(),
            survival: rows.iter().map(|row| f64::from(row.3) / 5.0).collect(),
        }
    }
}

fn permuted_samples() -> impl Strategy<Value = (Sample, Vec<usize>)> {
    samples().prop_flat_map(|sample| {
        let order: Vec<usize> = (0..sample.n()).collect();
        (Just(sample), Just(order).prop_shuffle())
    })
}

fn positive_values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((1..1_000_u16).prop_map(|value| f64::from(value) / 1_000.0), 2..6)
}

/// Numbers of every kind, including NaN and infinity.
fn any_number() -> impl Strategy<Value = f64> {
    let special =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0, 0.0, 5e-324];
    prop_oneof![4 => -1.0..1.0_f64, 1 => prop::num::f64::ANY, 1 => prop::sample::select(special.to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn one_group_has_the_overall_value_and_its_utility(sample in samples()) {
        let (outcomes, curves) = (sample.outcomes(), sample.curves());
        let all = Groups::new("all", vec!["all".to_owned()], vec![Some(GroupId(0)); sample.n()]).unwrap();
        let value = |rows: &[usize]| {
            let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
            Ok(concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Half)?.value)
        };
        let found = PerGroup::compute(&all, &outcomes, Some(&sample.subjects()), value).unwrap();
        let overall = value(&(0..sample.n()).collect::<Vec<_>>());
        prop_assert_eq!(&found.groups[0].value, &overall);
        prop_assert_eq!(found.groups[0].n, sample.n());
        if let Ok(overall) = overall {
            let scaled = found.equity_scaled(EquityScaling::FairTte, overall, Direction::HigherIsBetter).unwrap();
            prop_assert_eq!((scaled.value, scaled.n_groups), (overall, 1));
            let gap_is_refused = matches!(found.gap(), Err(MetricError::TooFewGroups { n_defined: 1, .. }));
            prop_assert!(gap_is_refused);
        }
    }

    #[test]
    fn the_order_of_the_groups_does_not_matter(values in positive_values(), overall in 0.0..1.0_f64) {
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        for (comparison, direction) in Comparison::ALL.into_iter().flat_map(|c| DIRECTIONS.map(|d| (c, d))) {
            let there = one_row_each(&values).compare(comparison, overall, direction).unwrap();
            let back = one_row_each(&reversed).compare(comparison, overall, direction).unwrap();
            prop_assert!((there - back).abs() < 1e-12, "{:?} {} {}", comparison, there, back);
        }
    }

    #[test]
    fn ratios_lie_between_0_and_1_and_gaps_are_no_larger_than_the_range(
        values in positive_values(),
        overall in 0.001..1.0_f64,
    ) {
        let groups = one_row_each(&values);
        let (ratio, to_overall) = (groups.ratio().unwrap(), groups.ratio_to_overall(overall).unwrap());
        prop_assert!((0.0..=1.0).contains(&ratio) && (0.0..=1.0).contains(&to_overall));
        let (gap, distance) = (groups.gap().unwrap(), groups.gap_to_overall(overall).unwrap());
        // Wherever the overall value lies, one end of the range is at least half the gap away.
        prop_assert!((0.0..1.0).contains(&gap) && distance >= gap / 2.0 - 1e-12);
        prop_assert_eq!(gap == 0.0, ratio == 1.0);
        let best = groups.worst(Direction::LowerIsBetter).unwrap().1;
        prop_assert!((best - groups.worst(Direction::HigherIsBetter).unwrap().1 - gap).abs() < 1e-12);
    }

    #[test]
    fn equal_groups_have_no_gap_and_the_full_utility(value in 0.001..1.0_f64, n in 2..6_usize) {
        let groups = one_row_each(&vec![value; n]);
        prop_assert_eq!(groups.gap(), Ok(0.0));
        prop_assert_eq!(groups.gap_to_overall(value), Ok(0.0));
        prop_assert_eq!((groups.ratio(), groups.ratio_to_overall(value)), (Ok(1.0), Ok(1.0)));
        for form in [EquityScaling::FairTte, EquityScaling::FairSeg, EquityScaling::FairSegDeviation] {
            let scaled = groups.equity_scaled(form, value, Direction::HigherIsBetter).unwrap();
            prop_assert!((scaled.value - value).abs() < 1e-12);
            prop_assert_eq!(scaled.n_groups, n);
        }
        let scaled = groups.equity_scaling(value, Direction::LowerIsBetter).unwrap();
        prop_assert_eq!(scaled, 1.0 - value);
    }

    #[test]
    fn no_comparison_of_any_numbers_is_anything_but_finite_or_an_error(
        values in prop::collection::vec(any_number(), 0..5),
        overall in any_number(),
    ) {
        let groups = one_row_each(&values);
        for (comparison, direction) in Comparison::ALL.into_iter().flat_map(|c| DIRECTIONS.map(|d| (c, d))) {
            let found = groups.compare(comparison, overall, direction);
            prop_assert!(found.as_ref().map_or(true, |value| value.is_finite()), "{:?} {:?}", comparison, found);
            let of_values = comparison.of(&values, overall, direction);
            prop_assert!(of_values.is_none_or(f64::is_finite), "{:?} {:?}", comparison, of_values);
            if let Ok(found) = found {
                prop_assert_eq!(Some(found), of_values);
            }
        }
    }

    #[test]
    fn the_order_of_the_samples_does_not_change_an_interval_by_subject(
        (sample, order) in permuted_samples(),
        seed in any::<u64>(),
        max_blocks in 2..20_usize,
    ) {
        prop_assert_eq!(sample.intervals(seed, max_blocks), sample.permuted(&order).intervals(seed, max_blocks));
    }

    #[test]
    fn a_replicate_keeps_the_units_of_every_stratum(
        subject in prop::collection::vec(0..15_u8, 1..50),
        n_strata in 1..4_u8,
        seed in any::<u64>(),
        n_lanes in 0..5_usize,
    ) {
        let subjects: Vec<SubjectId> = subject.iter().map(|subject| SubjectId::new(subject.to_string())).collect();
        let strata: Vec<u8> = subject.iter().map(|subject| subject % n_strata).collect();
        let bootstrap = Bootstrap::stratified(&subjects, Resample::Subject, &strata, 3, seed).unwrap();
        // One row of every subject stands for its unit.
        let mut first_rows: Vec<usize> = (0..subject.len()).collect();
        first_rows.retain(|&row| !subject[..row].contains(&subject[row]));
        prop_assert_eq!(first_rows.len(), bootstrap.n_units());
        for replicate in 0..3 {
            let weights = bootstrap.weights(replicate);
            for stratum in 0..n_strata {
                let of_stratum = || first_rows.iter().filter(|&&row| strata[row] == stratum);
                prop_assert_eq!(of_stratum().map(|&row| weights[row] as usize).sum::<usize>(), of_stratum().count());
            }
            let together = (0..subject.len()).all(|row| {
                let first = subject.iter().position(|other| *other == subject[row]).unwrap();
                weights[row] == weights[first]
            });
            prop_assert!(together);
        }
        let mut block = vec![0; subject.len() * n_lanes];
        bootstrap.weights_block(1, n_lanes, &mut block).unwrap();
        for lane in 0..n_lanes {
            let found: Vec<u32> = (0..subject.len()).map(|row| u32::from(block[row * n_lanes + lane])).collect();
            prop_assert_eq!(found, bootstrap.weights(1 + lane));
        }
    }

    #[test]
    fn an_interval_of_any_numbers_is_ordered_and_finite_or_an_error(
        value in any_number(),
        replicates in prop::collection::vec(prop::option::weighted(0.9, any_number()), 0..30),
        jackknife in prop::collection::vec(prop::option::weighted(0.95, any_number()), 0..8),
        level in -0.1..1.1_f64,
    ) {
        let jackknife = JackknifeValues::new(jackknife);
        let number = Replicated::new(value, &replicates).with_jackknife(&jackknife);
        let n_undefined = replicates.iter().filter(|replicate| replicate.is_none()).count();
        for method in METHODS {
            let Ok(interval) = number.interval(level, method) else { continue };
            prop_assert!(interval.lower.is_finite() && interval.upper.is_finite() && interval.lower <= interval.upper);
            prop_assert_eq!((interval.n_replicates, interval.n_undefined), (replicates.len(), n_undefined));
            let inside = |end: f64| {
                let defined = || replicates.iter().flatten();
                defined().any(|replicate| *replicate <= end) && defined().any(|replicate| *replicate >= end)
            };
            prop_assert!(method == IntervalMethod::Basic || (inside(interval.lower) && inside(interval.upper)));
        }
        prop_assert!(number.standard_error().map_or(true, f64::is_finite));
        prop_assert!(jackknife.acceleration().map_or(true, |acceleration| acceleration.abs() <= 1.0 / 6.0 + 1e-12));
    }

    #[test]
    fn a_wider_level_gives_a_wider_interval(
        replicates in prop::collection::vec((0..100_u8).prop_map(|value| Some(f64::from(value))), 5..40),
        jackknife in prop::collection::vec((0..100_u8).prop_map(|value| Some(f64::from(value))), 2..9),
    ) {
        let jackknife = JackknifeValues::new(jackknife);
        let number = Replicated::new(50.0, &replicates).with_jackknife(&jackknife);
        for method in METHODS {
            if let (Ok(narrow), Ok(wide)) = (number.interval(0.5, method), number.interval(0.9, method)) {
                prop_assert!(wide.lower <= narrow.lower + 1e-9 && narrow.upper <= wide.upper + 1e-9);
            }
        }
    }

    #[test]
    fn a_paired_difference_changes_sign_with_the_order_and_keeps_its_p_value(
        pairs in prop::collection::vec((prop::option::of(0..64_u8), prop::option::of(0..64_u8)), 1..30),
        first in 0..64_u8,
        second in 0..64_u8,
    ) {
        let number = |value: u8| f64::from(value) / 64.0; // exact in binary
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| (pair.0.map(number), pair.1.map(number))).unzip();
        let (a, b) = (Replicated::new(number(first), &a), Replicated::new(number(second), &b));
        let there = paired_difference(&a, &b, 0.9, IntervalMethod::Percentile);
        let back = paired_difference(&b, &a, 0.9, IntervalMethod::Percentile);
        let n_undefined = pairs.iter().filter(|pair| pair.0.is_none() || pair.1.is_none()).count();
        match (there, back) {
            (Ok(there), Ok(back)) => {
                prop_assert_eq!((there.value, there.p_value), (-back.value, back.p_value));
                prop_assert!((there.interval.lower + back.interval.upper).abs() < 1e-12);
                prop_assert!((there.interval.upper + back.interval.lower).abs() < 1e-12);
                prop_assert_eq!(there.interval.n_undefined, n_undefined);
                let smallest = 1.0 / (pairs.len() - n_undefined + 1) as f64;
                prop_assert!(there.p_value.is_none_or(|p| (smallest..=1.0).contains(&p)));
                prop_assert_eq!(there.p_value.is_none(), smallest >= 0.1);
            }
            (there, back) => {
                prop_assert_eq!(n_undefined, pairs.len());
                prop_assert!(there.is_err() && back.is_err());
            }
        }
    }
}
