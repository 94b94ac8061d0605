#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use ndarray::{Array2, array};
use proptest::prelude::*;

use super::*;

fn subjects(n: usize) -> Vec<SubjectId> {
    (0..n).map(|k| SubjectId::new(format!("s{k:03}"))).collect()
}

fn groups(membership: &[u32], n_levels: u32) -> Groups {
    let levels = (0..n_levels).map(|level| level.to_string()).collect();
    Groups::new("g", levels, membership.iter().map(|group| Some(GroupId(*group))).collect()).unwrap()
}

const VALUES_ALONE: GapBoundSettings = GapBoundSettings { n_replicates: 0, n_permutations: 0, level: 0.95, seed: 1 };

#[test]
fn curves_that_cross_are_apart_on_both_sides() {
    // From 0.5 above to 0.5 below: two triangles, 0.25 on average; then 0.5 for as long.
    let found = distance(&[0.0, 2.0, 4.0], &[1.0, 0.25, 0.25], &[0.5, 0.75, 0.75]);
    assert!((found - 0.375).abs() < 1e-15, "{found}");
    let fine: Vec<f64> = (0..=1000).map(|k| f64::from(k) * 1e-3).collect();
    let of = |slope: f64| -> Vec<f64> { fine.iter().map(|t| 1.0 - slope * t).collect() };
    // The integral of |0.3 t - 0.6 t| from 0 to 1.
    assert!((distance(&fine, &of(0.3), &of(0.6)) - 0.15).abs() < 1e-12);
}

#[test]
fn groups_that_look_alike_have_the_disparity_of_chance() {
    let n = 60;
    let membership: Vec<u32> = (0..n).map(|k| k % 2).collect();
    let level = |k: usize, model: usize| 0.2 + 0.6 * ((k * 7 + model * 13) % 29) as f64 / 29.0;
    let curves = |shift: f64, model: usize| {
        let block = Array2::from_shape_fn((n as usize, 2), |(k, _)| {
            (level(k, model) + if k % 2 == 0 { shift } else { 0.0 }).clamp(0.0, 1.0)
        });
        SurvivalCurves::new(vec![0.0, 1.0], block).unwrap()
    };
    let settings = GapBoundSettings { n_replicates: 50, n_permutations: 99, ..VALUES_ALONE };
    let bound = |shift: f64| {
        let models = [curves(0.0, 0), curves(0.0, 1), curves(shift, 0)];
        gap_bound(&models, &curves(0.0, 2), &groups(&membership, 2), &subjects(n as usize), &settings).unwrap()
    };
    let (same, different) = (bound(0.0), bound(0.2));
    let (same, different) = (&same.pairs[0], &different.pairs[0]);
    assert!(same.by_chance.unwrap().p_value > 0.1, "{same:?}");
    // The third model is the first, 0.2 higher in group 0: they agree in group 1.
    assert!(different.disparity > 0.19 && different.by_chance.unwrap().p_value <= 0.02, "{different:?}");
    assert_eq!(different.most_different, (0, 2));
    let (low, high) = different.disparity_interval.unwrap();
    assert!(low > 0.15 && low <= different.disparity && high < 0.4, "{low} {high}");
    let (low, high) = different.eta_interval.unwrap();
    assert!(low <= different.eta && different.eta <= high + 0.05, "{low} {} {high}", different.eta);
}

#[test]
fn a_third_group_has_no_part_in_the_chance_of_two() {
    // In the third group all models agree, in the others they are up to 0.6 apart.
    let membership: Vec<u32> = (0..90).map(|k| k % 3).collect();
    let level = |k: usize, model: usize| if k % 3 == 2 { 0.5 } else { 0.2 + 0.02 * ((k * 7 + model * 13) % 31) as f64 };
    let settings = GapBoundSettings { n_replicates: 20, n_permutations: 99, ..VALUES_ALONE };
    let of = |rows: &[usize], n_levels: u32| {
        let curves = |model: usize| {
            let block = Array2::from_shape_fn((rows.len(), 2), |(row, _)| level(rows[row], model));
            SurvivalCurves::new(vec![0.0, 1.0], block).unwrap()
        };
        let groups = groups(&rows.iter().map(|row| membership[*row]).collect::<Vec<_>>(), n_levels);
        let all = subjects(90);
        let own: Vec<SubjectId> = rows.iter().map(|row| all[*row].clone()).collect();
        gap_bound(&[curves(0), curves(1), curves(2)], &curves(3), &groups, &own, &settings).unwrap()
    };
    let all: Vec<usize> = (0..90).collect();
    let two: Vec<usize> = all.iter().copied().filter(|row| row % 3 < 2).collect();
    let (of_three, of_two) = (of(&all, 3), of(&two, 2));
    assert_eq!(of_three.pairs[0].disparity, of_two.pairs[0].disparity);
    assert_eq!(of_three.pairs[0].by_chance, of_two.pairs[0].by_chance);
    // The third differs from each of them.
    assert!(of_three.pairs[1..].iter().all(|pair| pair.by_chance.unwrap().p_value <= 0.02), "{of_three:?}");
}

#[test]
fn a_subject_with_many_samples_is_drawn_as_one() {
    let block = |a: f64, b: f64| SurvivalCurves::new(vec![0.0, 1.0], array![[a, a], [a, a], [b, b], [b, b]]).unwrap();
    let groups = groups(&[0, 0, 1, 1], 2);
    let of = |names: [&str; 4]| {
        let subjects: Vec<SubjectId> = names.map(SubjectId::new).to_vec();
        let settings = GapBoundSettings { n_replicates: 200, ..VALUES_ALONE };
        gap_bound(&[block(0.5, 0.5), block(0.75, 0.5)], &block(0.5, 0.5), &groups, &subjects, &settings).unwrap()
    };
    // The same curves in all samples of a group: no draw changes a mean.
    assert_eq!(of(["a", "a", "b", "b"]).pairs[0].disparity_interval, Some((0.25, 0.25)));
    assert_eq!(of(["a", "b", "c", "d"]).pairs[0].n, (2, 2));
}

#[test]
fn what_cannot_be_compared_is_named() {
    let curves =
        |n: usize, grid: &[f64]| SurvivalCurves::new(grid.to_vec(), Array2::from_elem((n, grid.len()), 0.5)).unwrap();
    let (groups, subjects) = (groups(&[0, 1], 3), subjects(2));
    let message = |models: &[SurvivalCurves], fitted: SurvivalCurves| {
        gap_bound(models, &fitted, &groups, &subjects, &VALUES_ALONE).map(drop).unwrap_err().to_string()
    };
    let grid = [0.0, 1.0];
    assert!(message(&[curves(2, &grid)], curves(2, &grid)).contains("number of models"));
    assert!(message(&[curves(2, &grid), curves(2, &[0.0, 2.0])], curves(2, &grid)).contains("that of model 1"));
    assert!(message(&[curves(2, &[1.0]), curves(2, &[1.0])], curves(2, &[1.0])).contains("times of the grid"));
    assert!(message(&[curves(2, &grid), curves(3, &grid)], curves(2, &grid)).contains("survival curves: 3"));
    let found = gap_bound(&[curves(2, &grid), curves(2, &grid)], &curves(2, &grid), &groups, &subjects, &VALUES_ALONE);
    assert_eq!(found.unwrap().pairs.len(), 1, "the third level has no sample");
    for settings in [
        GapBoundSettings { n_replicates: usize::MAX, ..VALUES_ALONE },
        GapBoundSettings { n_permutations: usize::MAX, ..VALUES_ALONE },
    ] {
        let found = gap_bound(&[curves(2, &grid), curves(2, &grid)], &curves(2, &grid), &groups, &subjects, &settings);
        assert!(matches!(found, Err(MetricError::InvalidSetting { .. })), "{settings:?}");
    }
}

fn curves(n: usize) -> impl Strategy<Value = SurvivalCurves> {
    prop::collection::vec(prop::collection::vec(0.0..=1.0_f64, 3), n).prop_map(|rows| {
        let mut block = Array2::zeros((rows.len(), 4));
        for (mut line, mut row) in block.rows_mut().into_iter().zip(rows) {
            row.sort_by(|a, b| b.total_cmp(a));
            line[0] = 1.0;
            row.iter().enumerate().for_each(|(k, value)| line[k + 1] = *value);
        }
        SurvivalCurves::new(vec![0.0, 1.0, 3.0, 4.0], block).unwrap()
    })
}

proptest! {
    // For a finite set and any fitted curves the theorem is exact.
    #[test]
    fn no_gap_exceeds_the_bound(
        models in prop::collection::vec(curves(9), 2..6),
        fitted in curves(9),
        membership in prop::collection::vec(0..3_u32, 9),
    ) {
        let bound = gap_bound(&models, &fitted, &groups(&membership, 3), &subjects(9), &VALUES_ALONE).unwrap();
        for pair in &bound.pairs {
            for gap in &pair.gaps {
                prop_assert!(*gap <= pair.bound() + 1e-12, "{} > {} + {}", gap, pair.eta, pair.disparity);
            }
            // Both terms are what their definitions say, computed another way.
            let of = |model: &SurvivalCurves, other: &SurvivalCurves, group: GroupId| {
                let rows: Vec<usize> = (0..9).filter(|row| GroupId(membership[*row]) == group).collect();
                let sum: f64 = rows.iter().map(|row| distance(model.grid(), model.curve(*row), other.curve(*row))).sum();
                sum / rows.len() as f64
            };
            let (a, b) = pair.groups;
            let eta = models.iter().map(|h| of(&fitted, h, a) + of(&fitted, h, b)).fold(f64::INFINITY, f64::min);
            prop_assert!((eta - pair.eta).abs() < 1e-12);
            let mut widest = 0.0_f64;
            for one in &models {
                for other in &models {
                    widest = widest.max((of(one, other, a) - of(one, other, b)).abs());
                }
            }
            prop_assert!((widest - pair.disparity).abs() < 1e-12);
        }
    }
}
