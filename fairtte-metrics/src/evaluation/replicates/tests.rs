//! The fast path against the exact slow one: one weight vector and one group at a time.

use approx::assert_relative_eq;
use ndarray::Array2;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::rank::{AucTd, ConcordanceTd};
use crate::scores::PreparedBrier;
use crate::{CensoringCurve, CensoringTies, GroupId, Groups, MetricError, Outcomes, Reading};

/// Samples with many ties in time and prediction, two attributes with gaps, and weights up to `max_weight`.
#[derive(Clone, Debug)]
struct Case {
    rows: Vec<Row>,
    reading: Reading,
    weights: Vec<u16>,
}

#[derive(Clone, Debug)]
struct Row {
    time: f64,
    event: bool,
    survival: [f64; 3],
    sex: Option<u32>,
    site: Option<u32>,
}

fn row() -> impl Strategy<Value = Row> {
    let level = |n: u32| prop::option::weighted(0.9, 0..n);
    // Tied within the tolerance of 1e-8 of the AUC, or just not.
    let near_tie = prop_oneof![5 => Just(0.0), 1 => Just(1e-15), 1 => Just(3e-9), 1 => Just(8e-9), 1 => Just(1.9e-8)];
    // Tied, 0 with either sign, almost equal, or far away.
    let time = prop_oneof![
        12 => (0..25_u8).prop_map(|k| f64::from(k) / 4.0),
        1 => (1..25_u8).prop_map(|k| f64::from(k) / 4.0 + 1e-9),
        1 => Just(-0.0),
        1 => Just(1e6),
    ];
    (time, any::<bool>(), [0..40_u8, 0..6_u8, 0..6_u8], near_tie, level(2), level(3)).prop_map(
        |(time, event, [a, b, c], near_tie, sex, site)| {
            let first = 1.0 - f64::from(a) / 100.0 - near_tie;
            let second = first - f64::from(b) / 20.0;
            Row { time, event, survival: [first, second, (second - f64::from(c) / 20.0).max(0.0)], sex, site }
        },
    )
}

fn cases(sizes: std::ops::Range<usize>, max_weight: u16) -> impl Strategy<Value = Case> {
    let reading = prop_oneof![
        Just(Reading::Step),
        Just(Reading::Refined { factor: 3 }),
        Just(Reading::Linear),
        Just(Reading::ConstantHazard)
    ];
    prop::collection::vec(row(), sizes).prop_flat_map(move |rows| {
        let n = rows.len() * LANES;
        let weight = prop_oneof![3 => 0..4_u16, 1 => 0..=max_weight];
        (Just(rows), reading.clone(), prop::collection::vec(weight, n)).prop_map(|(rows, reading, weights)| Case {
            rows,
            reading,
            weights,
        })
    })
}

const TIMES: [f64; 4] = [0.5, 2.0, 3.1, 4.5];

impl Case {
    fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.rows.iter().map(|row| row.time).collect(), self.rows.iter().map(|row| row.event).collect())
            .unwrap()
    }

    fn curves(&self) -> SurvivalCurves {
        let survival: Vec<f64> = self.rows.iter().flat_map(|row| row.survival).collect();
        SurvivalCurves::new(vec![0.0, 2.0, 5.0], Array2::from_shape_vec((self.rows.len(), 3), survival).unwrap())
            .unwrap()
    }

    fn groups(&self) -> Vec<Groups> {
        let attribute = |name: &str, n: usize, level: &dyn Fn(&Row) -> Option<u32>| {
            let levels = (0..n).map(|level| level.to_string()).collect();
            Groups::new(name, levels, self.rows.iter().map(|row| level(row).map(GroupId)).collect()).unwrap()
        };
        vec![attribute("sex", 2, &|row| row.sex), attribute("site", 3, &|row| row.site)]
    }

    /// The first block of replicates; and whether every sample has a Brier weight.
    fn fast(&self, censoring: &CensoringCurve) -> (ReplicateValues, bool) {
        let (outcomes, curves, groups) = (self.outcomes(), self.curves(), self.groups());
        let auc = AucTd::prepare(&outcomes, &curves, censoring, self.reading, &TIMES).unwrap();
        let brier = PreparedBrier::new(&outcomes, &curves, censoring, self.reading, &TIMES);
        let plan = BinPlan::new(&outcomes, &curves, self.reading).unwrap();
        let every_row_a_unit: Vec<u32> = (0..).take(self.rows.len()).collect();
        let sorted = Sorted {
            curves: &curves,
            cells: Cells::new(&groups, &plan.order),
            plan,
            ranked: OnceLock::new(),
            auc: Some(SortedAuc::new(auc, &groups, &every_row_a_unit)),
            brier: brier.as_ref().ok().map(|brier| brier.subject_integrals().to_vec()),
        };
        let fast = sorted.values(LANES, |_, out| {
            out.copy_from_slice(&self.weights);
            Ok(())
        });
        (fast.unwrap(), brier.is_ok())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        self.check_with(&censoring())
    }

    fn check_with(&self, censoring: &CensoringCurve) -> Result<(), TestCaseError> {
        let (outcomes, curves, groups) = (self.outcomes(), self.curves(), self.groups());
        let (fast, has_brier) = self.fast(censoring);
        let fast = fast.values;
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let mut slices = vec![all];
        slices.extend(groups.iter().flat_map(|groups| groups.ids().map(|id| groups.rows(id))));
        for lane in [0, 1, LANES - 1] {
            for (slice, rows) in slices.iter().enumerate() {
                let weights: Vec<u32> = rows.iter().map(|&row| u32::from(self.weights[row * LANES + lane])).collect();
                let slow = slow(&outcomes.select(rows), &curves.select(rows), censoring, self.reading, &weights);
                for (metric, (fast, slow)) in fast[lane][slice].iter().zip(slow).enumerate() {
                    // A sample without a Brier weight anywhere leaves the whole fast path without Brier scores.
                    if metric == 3 && !has_brier {
                        continue;
                    }
                    prop_assert_eq!(fast.is_some(), slow.is_some(), "metric {} of slice {}", metric, slice);
                    assert_relative_eq!(
                        fast.unwrap_or(0.0),
                        slow.unwrap_or(0.0),
                        max_relative = 1e-12,
                        epsilon = 1e-15
                    );
                }
            }
        }
        Ok(())
    }
}

/// Fitted on a sample that ends before the last times: some events have no weight.
fn censoring() -> CensoringCurve {
    let train = Outcomes::new(vec![0.5, 1.0, 3.0, 5.0], vec![false, true, false, true]).unwrap();
    CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap()
}

/// As [`censoring`], but it ends before the last evaluation times: a sample with an event from 3 on makes them
/// undefined.
fn early_censoring() -> CensoringCurve {
    let train = Outcomes::new(vec![0.5, 1.0, 3.0], vec![false, true, false]).unwrap();
    CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap()
}

fn slow(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    weights: &[u32],
) -> Values {
    let pairs =
        ConcordanceTd::prepare(outcomes, curves, reading).unwrap().weighted(weights, TiedPredictions::Strict).ok();
    let auc = AucTd::prepare(outcomes, curves, censoring, reading, &TIMES).unwrap().weighted(weights).unwrap();
    let brier = PreparedBrier::new(outcomes, curves, censoring, reading, &TIMES);
    [
        pairs.map(|pairs| pairs.value),
        pairs.map(|pairs| pairs.value_with(TiedPredictions::Half)),
        auc.time_average.ok(),
        brier.and_then(|brier| brier.weighted(weights)).ok(),
    ]
}

/// The same cases in every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(2_500))]

    #[test]
    fn lanes_equal_one_weight_vector_and_one_group_at_a_time(case in cases(1..60, 6)) {
        case.check()?;
    }

}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn weights_that_overflow_16_bits_in_a_sum_are_still_exact(case in cases(40..60, 60_000)) {
        case.check()?;
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn an_event_without_a_weight_spoils_only_the_replicates_and_groups_it_is_in(case in cases(1..60, 2)) {
        case.check_with(&early_censoring())?;
    }
}

#[test]
fn a_replicate_with_an_auc_at_fewer_times_than_the_sample_is_counted_by_slice() {
    // Cases at 0.25 and 1, a control: without the first one there is no case at 0.5; without both there is no AUC.
    let row = |time, event| Row { time, event, survival: [0.9, 0.5, 0.1], sex: Some(1), site: None };
    let mut weights = vec![1; 3 * LANES];
    weights[3..7].fill(0);
    (weights[9], weights[LANES + 9]) = (0, 0);
    let rows = vec![row(0.25, true), row(1.0, true), row(6.0, false)];
    let found = Case { rows, reading: Reading::Step, weights }.fast(&censoring()).0;
    // All samples, both levels of sex, three sites.
    assert_eq!(found.n_partial_auc, [4, 0, 4, 0, 0, 0]);
    assert_eq!(found.values[9][0][AUC], None);
}

#[test]
fn sums_that_do_not_fit_are_an_error() {
    let n = 40_000;
    let outcomes = Outcomes::new(vec![1.0; n], vec![false; n]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], Array2::ones((n, 1))).unwrap();
    let plan = BinPlan::new(&outcomes, &curves, Reading::Step).unwrap();
    let (cells, ranked) = (Cells::new(&[], &plan.order), OnceLock::new());
    let sorted = Sorted { curves: &curves, cells, plan, ranked, auc: None, brier: None };
    let values = sorted.values(1, |_, out| {
        out.fill(u16::MAX);
        Ok(())
    });
    assert_eq!(values, Err(MetricError::TooManyDraws { replicate: 0 }));
}

#[test]
fn bins_with_many_buckets_and_several_batches_of_them_are_exact() {
    // 700 events with distinct predictions in one bin: more buckets than a byte can number.
    let n = 1_400;
    let rows = (0..n).map(|k| Row {
        time: 1.0 + (k * 37 % 100) as f64 / 100.0,
        event: k % 2 == 0,
        survival: [1.0 - (k * 611 % n) as f64 / (2.0 * n as f64), 0.4, 0.1],
        sex: Some(u32::from(k % 3 == 0)),
        site: None,
    });
    let weights = (0..n * LANES).map(|k| u16::try_from(k * 7919 % 5).unwrap()).collect();
    Case { rows: rows.collect(), reading: Reading::Step, weights }.check().unwrap();
}
