use approx::assert_abs_diff_eq;
use ndarray::array;

use super::*;

// Probability-mass curve of `pycox` 0.3.0 on cuts 0..3, and its `interpolate(2)` values.
const PMF: [f64; 4] = [0.855_447_1, 0.823_193, 0.175_351_7, 0.087_675_9];
const PMF_REFINED: [f64; 7] = [0.855_447_1, 0.839_32, 0.823_193, 0.499_272_3, 0.175_351_7, 0.131_513_8, 0.087_675_9];
// Logistic-hazard curve of the same package, with linear and with constant-hazard interpolation.
const HAZARD: [f64; 4] = [0.377_540_7, 0.276_004_5, 0.032_900_6, 0.016_450_3];
const HAZARD_LINEAR: [f64; 7] =
    [0.377_540_7, 0.326_772_6, 0.276_004_5, 0.154_452_5, 0.032_900_6, 0.024_675_4, 0.016_450_3];
const HAZARD_CONSTANT: [f64; 7] =
    [0.377_540_6, 0.322_804_7, 0.276_004_4, 0.095_292_7, 0.032_900_6, 0.023_264_2, 0.016_450_3];

fn curve(values: [f64; 4]) -> SurvivalCurves {
    SurvivalCurves::new(vec![0.0, 1.0, 2.0, 3.0], array![values]).unwrap()
}

#[test]
fn refined_and_constant_hazard_readings_match_pycox() {
    let cases = [
        (PMF, Reading::Refined { factor: 2 }, PMF_REFINED),
        (HAZARD, Reading::Refined { factor: 2 }, HAZARD_LINEAR),
        (HAZARD, Reading::ConstantHazard, HAZARD_CONSTANT),
    ];
    for (values, reading, expected) in cases {
        for (k, expected) in expected.into_iter().enumerate() {
            assert_abs_diff_eq!(curve(values).at(0, k as f64 / 2.0, reading), expected, epsilon = 2e-7);
        }
    }
}

#[test]
fn a_refined_reading_with_one_part_is_a_step_and_with_many_approaches_the_line() {
    let curves = curve(PMF);
    for t in [0.0, 0.3, 1.0, 1.7, 2.999, 3.0, 8.0] {
        assert_eq!(curves.at(0, t, Reading::Refined { factor: 1 }), curves.at(0, t, Reading::Step));
        let fine = curves.at(0, t, Reading::Refined { factor: 1_000_000 });
        assert_abs_diff_eq!(fine, curves.at(0, t, Reading::Linear), epsilon = 1e-6);
    }
}

#[test]
fn selected_rows_are_those_of_the_source_and_share_its_memory() {
    let values = Array2::from_shape_fn((7, 3), |(row, k)| 0.9 / (1.0 + 0.37 * row as f64 + k as f64));
    let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0], values.clone()).unwrap();
    let some = curves.select(&[5, 1, 1, 6]);
    let expected = SurvivalCurves::new(vec![0.0, 1.0, 2.0], values.select(Axis(0), &[5, 1, 1, 6])).unwrap();
    assert_eq!(some.n(), 4);
    assert!(std::ptr::eq(some.curve(1).as_ptr(), curves.curve(1).as_ptr()));
    assert_eq!(some, expected);
    assert_ne!(some, curves.select(&[5, 1, 6, 1]));
    assert_ne!(some, curves.select(&[5, 1, 1]));
    // The same operations in the same order: equal to the last bit.
    assert_eq!((some.mean(), some.spread()), (expected.mean(), expected.spread()));
    assert_eq!(some.all_at(1.5, Reading::Linear), expected.all_at(1.5, Reading::Linear));
    let again = some.select(&[3, 0]);
    assert_eq!(again.survival(), values.select(Axis(0), &[6, 5]));
    assert_eq!(again.clone().into_survival(), values.select(Axis(0), &[6, 5]));
    assert_eq!((curves.survival(), curves.clone().into_survival()), (values.view(), values.clone()));
    assert_eq!(again.survival().as_ptr(), again.survival().as_ptr());
}

#[test]
fn one_owner_gives_its_probabilities_away_without_a_copy() {
    let curves = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.5], [0.9, 0.25]]).unwrap();
    let place = curves.survival().as_ptr();
    let shared = curves.clone();
    assert_ne!(shared.into_survival().as_ptr(), place);
    let owned = curves.into_survival();
    assert_eq!((owned.as_ptr(), owned), (place, array![[1.0, 0.5], [0.9, 0.25]]));
}

#[test]
#[should_panic(expected = "row 2 of 2 curves")]
fn a_row_that_does_not_exist_is_not_selected() {
    let _ = SurvivalCurves::new(vec![1.0], array![[0.9], [0.5]]).unwrap().select(&[2]);
}

#[test]
fn one_column_of_selected_rows_has_the_mean_of_a_copy() {
    let values = Array2::from_shape_fn((40, 1), |(row, _)| 1.0 / (1.0 + 0.1 * row as f64));
    let rows: Vec<usize> = (0..40).rev().step_by(3).collect();
    let copied = SurvivalCurves::new(vec![1.0], values.select(Axis(0), &rows)).unwrap();
    assert_eq!(SurvivalCurves::new(vec![1.0], values).unwrap().select(&rows).mean(), copied.mean());
}

#[test]
fn noise_is_cleaned_and_errors_name_row_and_column() {
    let noisy = SurvivalCurves::new(vec![0.0, 1.0, 2.0], array![[1.000_000_5, 0.5, 0.500_000_9]]).unwrap();
    assert_eq!(noisy.survival(), array![[1.0, 0.5, 0.5]]);
    let tiny = SurvivalCurves::new(vec![1.0], array![[-1e-9]]).unwrap();
    assert!(tiny.survival()[[0, 0]].is_sign_positive());
    let rising = SurvivalCurves::new(vec![0.0, 1.0], array![[0.5, 0.4], [0.5, 0.6]]);
    assert_eq!(rising, Err(MetricError::RisingSurvival { row: 1, column: 1, before: 0.5, value: 0.6 }));
    let above = SurvivalCurves::new(vec![0.0, 1.0], array![[0.5, 0.4], [1.5, 0.6]]);
    assert_eq!(above, Err(MetricError::InvalidSurvival { row: 1, column: 0, value: 1.5 }));
    let nan = SurvivalCurves::new(vec![0.0], array![[f64::NAN]]);
    assert!(matches!(nan, Err(MetricError::InvalidSurvival { row: 0, column: 0, .. })));
}

#[test]
fn a_grid_must_be_finite_and_increasing_and_fit_the_columns() {
    let build = |grid: Vec<f64>| SurvivalCurves::new(grid, array![[0.5, 0.4]]).unwrap_err();
    assert_eq!(build(vec![]), MetricError::EmptyGrid);
    assert_eq!(build(vec![1.0, 1.0]), MetricError::InvalidGrid { index: 1, time: 1.0 });
    assert_eq!(build(vec![-1.0, 1.0]), MetricError::InvalidGrid { index: 0, time: -1.0 });
    assert_eq!(build(vec![1.0]), MetricError::GridMismatch { columns: 2, n_times: 1 });
}

#[test]
fn the_mean_curve_averages_rows_and_is_none_without_rows() {
    let curves = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.5], [1.0, 0.25]]).unwrap();
    assert_eq!(curves.mean(), Some(vec![1.0, 0.375]));
    assert_eq!(curves.select(&[]).mean(), None);
}

#[test]
fn shared_memory_is_read_where_it_lies_and_gives_what_a_copy_gives() {
    let values = Array2::from_shape_fn((7, 3), |(row, k)| 0.9 / (1.0 + 0.37 * row as f64 + k as f64));
    let owner = Arc::new(values.clone().into_raw_vec_and_offset().0);
    let shared = SurvivalCurves::of_shared(vec![0.0, 1.0, 2.0], 7, owner.clone()).unwrap();
    let copied = SurvivalCurves::new(vec![0.0, 1.0, 2.0], values.clone()).unwrap();
    assert_eq!((shared.survival().as_ptr(), shared.n()), (owner.as_ptr(), 7));
    assert_eq!((shared.survival(), &shared), (values.view(), &copied));
    assert_eq!((shared.mean(), shared.spread()), (copied.mean(), copied.spread()));
    let rows = [5, 1, 1, 6];
    let (some, expected) = (shared.select(&rows), copied.select(&rows));
    assert_eq!(some.curve(0).as_ptr(), owner[15..].as_ptr());
    assert_eq!((some.survival(), some.mean()), (expected.survival(), expected.mean()));
    assert_eq!(format!("{shared:?}"), format!("{copied:?}"));
    assert_eq!(some.into_survival(), values.select(Axis(0), &rows));
    // What is given away is a copy: the owner keeps its memory.
    let given = shared.into_survival();
    assert_ne!(given.as_ptr(), owner.as_ptr());
    assert_eq!((given, Arc::strong_count(&owner)), (values, 1));
}

#[test]
fn noise_in_shared_memory_is_removed_from_a_copy() {
    let clean = [1.0, 0.5, 0.5, 0.25];
    for (place, noise) in [(0, 1.000_000_5), (1, -0.0), (3, 0.500_000_9)] {
        let mut values = clean.to_vec();
        values[place] = noise;
        let owner = Arc::new(values.clone());
        let shared = SurvivalCurves::of_shared(vec![0.0, 1.0], 2, owner.clone()).unwrap();
        let expected = SurvivalCurves::new(vec![0.0, 1.0], Array2::from_shape_vec((2, 2), values).unwrap()).unwrap();
        let bits = |curves: &SurvivalCurves| curves.survival().map(|value| value.to_bits());
        assert_eq!(bits(&shared), bits(&expected));
        assert_eq!((Arc::strong_count(&owner), owner[place].to_bits()), (1, noise.to_bits()));
    }
}

#[test]
fn shared_memory_is_checked_as_a_matrix_is() {
    let build = |grid: &[f64], n: usize, values: &[f64]| {
        SurvivalCurves::of_shared(grid.to_vec(), n, Arc::new(values.to_vec())).unwrap_err()
    };
    let wrong_length =
        |found, expected| MetricError::LengthMismatch { what: "survival probabilities", found, expected };
    assert_eq!(build(&[0.0, 1.0], 2, &[1.0, 0.5, 1.0]), wrong_length(3, 4));
    assert_eq!(build(&[0.0, 1.0], usize::MAX, &[1.0]), wrong_length(1, usize::MAX));
    assert_eq!(build(&[1.0, 1.0], 1, &[1.0, 0.5]), MetricError::InvalidGrid { index: 1, time: 1.0 });
    let rising = MetricError::RisingSurvival { row: 1, column: 1, before: 0.5, value: 0.75 };
    assert_eq!(build(&[0.0, 1.0], 2, &[1.0, 0.5, 0.5, 0.75]), rising);
    let above = MetricError::InvalidSurvival { row: 1, column: 0, value: 1.5 };
    assert_eq!(build(&[0.0, 1.0], 2, &[1.0, 0.5, 1.5, 0.75]), above);
}
