//! Recorded values of MONAI, medpy and scipy, laws, and every rule for empty masks.

use approx::assert_abs_diff_eq;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::MetricError;

const GOLDEN: &str = include_str!("../../tests/golden/masks.json");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn numbers<T>(list: &Value, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    list.as_array().unwrap().iter().map(|value| read(value).unwrap()).collect()
}

fn grid_of(case: &Value) -> MaskGrid {
    let extents = numbers(&case["extents"], |n| n.as_u64().map(|n| usize::try_from(n).unwrap()));
    MaskGrid::new(&extents, &numbers(&case["spacing"], Value::as_f64)).unwrap()
}

/// From run lengths.
fn labels(runs: &Value) -> Vec<i32> {
    let run = |run: &Value| {
        let label = i32::try_from(run[0].as_i64().unwrap()).unwrap();
        std::iter::repeat_n(label, usize::try_from(run[1].as_u64().unwrap()).unwrap())
    };
    runs.as_array().unwrap().iter().flat_map(run).collect()
}

fn ones() -> MaskClass {
    MaskClass { name: "one".to_owned(), values: vec![1] }
}

fn score(grid: MaskGrid, truth: &[i32], predicted: &[i32], hausdorff: Hausdorff, tolerance: f64) -> PairScore {
    let pair = LabelPair::new(grid, Labels { truth, predicted }).unwrap();
    score_pair(&pair, &ones(), &MaskSettings { hausdorff, tolerance })
}

/// MONAI computes in single precision, medpy in double.
#[test]
fn values_are_those_of_monai_and_medpy() {
    let golden = golden();
    let mut n_compared = 0;
    for case in golden["cases"].as_array().unwrap() {
        let (name, grid) = (&case["name"], grid_of(case));
        let (truth, predicted) = (labels(&case["truth"]), labels(&case["predicted"]));
        let of = |hausdorff, tolerance| score(grid, &truth, &predicted, hausdorff, tolerance);
        let (medpy, monai) = (of(Hausdorff::Medpy, 1.0), of(Hausdorff::Monai, 1.0));
        let recorded = |package: &str, key: &str| case[package][key].as_f64();
        let mut compare = |key: &str, found: Result<f64, MetricError>, expected: Option<f64>, tolerance: f64| {
            let Some(expected) = expected else { return };
            let found = found.unwrap_or_else(|error| panic!("{name} {key}: {error}"));
            assert!((found - expected).abs() <= tolerance * expected.max(1.0), "{name} {key}: {found} {expected}");
            n_compared += 1;
        };
        compare("dice", Ok(medpy.dice()), recorded("medpy", "dice"), 1e-14);
        compare("iou", Ok(medpy.iou()), recorded("medpy", "iou"), 1e-14);
        compare("hd95", medpy.hd95(), recorded("medpy", "hd95"), 1e-13);
        compare("assd", medpy.asd(), recorded("medpy", "assd"), 1e-13);
        compare("hd95 of monai", monai.hd95(), recorded("monai", "hd95"), 3e-7);
        compare("asd of monai", monai.asd(), recorded("monai", "asd"), 3e-7);
        if medpy.n_truth > 0 {
            // Of an empty truth MONAI has NaN; of an empty prediction 0.
            compare("dice of monai", Ok(monai.dice()), recorded("monai", "dice"), 3e-7);
            compare("iou of monai", Ok(monai.iou()), recorded("monai", "iou"), 3e-7);
        }
        for of_tolerance in case["monai"]["nsd"].as_array().unwrap() {
            let found = of(Hausdorff::Medpy, of_tolerance[0].as_f64().unwrap());
            compare("nsd", Ok(found.nsd()), of_tolerance[1].as_f64(), 3e-7);
        }
    }
    assert_eq!(n_compared, 12 * 4 + 12 * 2 + 13 * 2 + 32, "every recorded number is compared");
    assert_eq!(golden["made-with"]["monai"], "1.6.1");
}

#[test]
fn the_distance_transform_is_that_of_scipy() {
    let golden = golden();
    let cases = golden["distance-transforms"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let sites: Vec<bool> = labels(&case["sites"]).into_iter().map(|label| label == 1).collect();
        let found = distance_transform(&grid_of(case), &sites).unwrap();
        let expected = numbers(&case["distance"], Value::as_f64);
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).for_each(|(found, expected)| assert_abs_diff_eq!(*found, expected, epsilon = 1e-12));
    }
}

#[test]
fn the_two_conventions_of_hd95_differ_by_hand() {
    // A column of pixels: the truth is the first, the prediction all 21. From the truth the distance is 0; from the prediction
    // 0, 1, .., 20. All pixels are surface. Percentile of the 21: 19; of all 22 (0, 0, 1, .., 20): 18.95.
    let grid = MaskGrid::new(&[21], &[1.0]).unwrap();
    let truth: Vec<i32> = (0..21).map(|k| i32::from(k == 0)).collect();
    let grid_2d = MaskGrid::new(&[21, 2], &[1.0, 1.0]).unwrap();
    let wide = |column: &[i32]| column.iter().flat_map(|label| [*label, 0]).collect::<Vec<_>>();
    let hd95 = |hausdorff| score(grid_2d, &wide(&truth), &wide(&[1; 21]), hausdorff, 1.0).hd95().unwrap();
    assert_abs_diff_eq!(hd95(Hausdorff::Medpy), 18.95, epsilon = 1e-12);
    assert_abs_diff_eq!(hd95(Hausdorff::Monai), 19.0, epsilon = 1e-12);
    // Alone on its axis, the surface of the prediction is its two ends.
    let line = score(grid, &truth, &[1; 21], Hausdorff::Monai, 1.0);
    assert_abs_diff_eq!(line.asd().unwrap(), 20.0 / 3.0, epsilon = 1e-12);
    assert_eq!((line.n_truth, line.n_predicted, line.n_common), (1, 21, 1));
}

#[test]
fn a_distance_that_exceeds_the_tolerance_by_rounding_alone_is_within_it() {
    // Two pixels five steps of 0.4 apart; in single precision 0.4 is 0.4 + 6e-9.
    let grid = MaskGrid::new(&[6, 2], &[f64::from(0.4_f32), 1.0]).unwrap();
    let (mut truth, mut predicted) = ([0; 12], [0; 12]);
    (truth[0], predicted[10]) = (1, 1);
    assert_eq!(score(grid, &truth, &predicted, Hausdorff::Medpy, 2.0).nsd(), 1.0);
    assert_eq!(score(grid, &truth, &predicted, Hausdorff::Medpy, 1.9999).nsd(), 0.0);
}

#[test]
fn overlap_of_empty_masks_is_by_rule_and_distances_say_which_is_empty() {
    let grid = MaskGrid::new(&[2, 2], &[1.0; 2]).unwrap();
    let of = |truth, predicted| score(grid, truth, predicted, Hausdorff::Medpy, 1.0);
    let overlaps = |score: PairScore| [score.dice(), score.iou(), score.nsd()];
    let reasons = |score: PairScore| {
        assert_eq!(score.hd95(), score.asd());
        score.hd95().unwrap_err().to_string()
    };
    let (none, some) = (&[0; 4], &[0, 1, 0, 0]);
    assert_eq!(overlaps(of(none, none)), [1.0; 3]);
    assert_eq!(overlaps(of(some, none)), [0.0; 3]);
    assert_eq!(overlaps(of(none, some)), [0.0; 3]);
    assert_eq!(reasons(of(none, none)), "both masks have no pixels");
    assert_eq!(reasons(of(some, none)), "the predicted mask has no pixels");
    assert_eq!(reasons(of(none, some)), "the true mask has no pixels");
    assert_eq!(overlaps(of(some, some)), [1.0; 3]);
}

#[test]
fn a_tolerance_that_is_no_distance_is_refused() {
    for tolerance in [-0.5, f64::NAN, f64::INFINITY] {
        let error = MaskSettings { tolerance, ..MaskSettings::default() }.validate().unwrap_err();
        assert!(matches!(error, MetricError::InvalidSetting { setting: "tolerance", .. }));
    }
    assert_eq!(MaskSettings { tolerance: 0.0, ..MaskSettings::default() }.validate(), Ok(()));
}

proptest! {
    /// Exchanged masks have the same values; twice the spacing and tolerance has twice the distances and the same NSD; a margin
    /// around the image changes nothing but what touched its edge, which is surface either way.
    #[test]
    fn symmetry_scale_and_margin(
        extents in prop::array::uniform2(2_usize..9),
        seeds in prop::collection::vec(0_u8..4, 128),
        tolerance in 0.0_f64..3.0,
    ) {
        let n = extents[0] * extents[1];
        let truth: Vec<i32> = seeds[..n].iter().map(|seed| i32::from(*seed > 0)).collect();
        let predicted: Vec<i32> = seeds[64..64 + n].iter().map(|seed| i32::from(*seed > 1)).collect();
        let of = |spacing: f64, truth: &[i32], predicted: &[i32]| {
            let grid = MaskGrid::new(&extents, &[spacing, 0.5 * spacing]).unwrap();
            score(grid, truth, predicted, Hausdorff::Medpy, tolerance * spacing)
        };
        let (found, exchanged) = (of(1.0, &truth, &predicted), of(1.0, &predicted, &truth));
        prop_assert_eq!(found.dice(), exchanged.dice());
        prop_assert!(found.iou() <= found.dice() + 1e-15 && (0.0..=1.0).contains(&found.nsd()));
        let doubled = of(2.0, &truth, &predicted);
        prop_assert_eq!(found.nsd(), doubled.nsd());
        if let (Some(a), Some(b), Some(c)) = (found.surface, doubled.surface, exchanged.surface) {
            prop_assert!((2.0 * a.hd95 - b.hd95).abs() < 1e-12 && (2.0 * a.asd - b.asd).abs() < 1e-12);
            prop_assert!((a.hd95 - c.hd95).abs() < 1e-12 && (a.asd - c.asd).abs() < 1e-12);
        }
        let padded = |labels: &[i32]| {
            let mut wide = vec![0; (extents[0] + 2) * (extents[1] + 2)];
            for (k, label) in labels.iter().enumerate() {
                wide[(k / extents[1] + 1) * (extents[1] + 2) + k % extents[1] + 1] = *label;
            }
            wide
        };
        let grid = MaskGrid::new(&[extents[0] + 2, extents[1] + 2], &[1.0, 0.5]).unwrap();
        prop_assert_eq!(score(grid, &padded(&truth), &padded(&predicted), Hausdorff::Medpy, tolerance), found);
    }
}
