use fairtte_metrics::GroupId;

use super::*;

use crate::strategies::worked_cases::{
    Compared, cases, differences, gradient, name, numbers, tensor, values, whole_numbers,
};

#[test]
fn weights_are_those_of_the_worked_cases() {
    let mut compared = Compared::default();
    for case in cases(include_str!("../golden/febs.json")) {
        let (what, inputs, expected) = (name(&case), &case["inputs"], &case["expected"]);
        let means: Vec<Option<f64>> = serde_json::from_value(inputs["group_mean_loss"].clone()).unwrap();
        let counts = whole_numbers(&inputs["group_count"]);
        // Only the case on the effect of epsilon has one.
        let epsilon = inputs.get("epsilon").map_or(0.0, |epsilon| epsilon.as_f64().unwrap());
        let found = weights(&means, &counts, inputs["gamma"].as_f64().unwrap(), epsilon);
        let wanted: Vec<Option<f64>> = serde_json::from_value(expected["loss_weight"].clone()).unwrap();
        let absent = |weights: &[Option<f64>]| weights.iter().map(Option::is_none).collect::<Vec<_>>();
        assert_eq!(absent(&found), absent(&wanted), "{what}");
        let present = |weights: &[Option<f64>]| weights.iter().flatten().copied().collect::<Vec<_>>();
        compared.close(what, &present(&found), &present(&wanted));
        // W up to the factor that normalises: 1 / v in units of the group with the smallest loss, whose W is tanh(1).
        let scaled: Vec<Option<f64>> = serde_json::from_value(expected["W"].clone()).unwrap();
        let smallest = found.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let of_v: Vec<f64> = found.iter().flatten().map(|v| 1.0_f64.tanh() * smallest / v).collect();
        compared.close(what, &of_v, &present(&scaled));
        if let Some(mean) = expected.get("per_sample_weighted_mean") {
            let n = counts.iter().sum::<usize>() as f64;
            let of = |g: usize| counts[g] as f64 / n * means[g].unwrap();
            let weighted: f64 = (0..counts.len()).map(|g| of(g) * found[g].unwrap()).sum();
            compared.close(what, &[weighted], &numbers(mean));
            compared.close(what, &[(0..counts.len()).map(of).sum()], &numbers(&expected["unweighted_mean"]));
        }
        compared.cases += 1;
    }
    println!("febs: {} numbers of {} cases compared", compared.numbers, compared.cases);
    assert_eq!(compared, Compared { numbers: 44, cases: 7 });
}

fn febs(decay: f64) -> Febs {
    let config = FebsConfig { gamma: 1.0, decay, ..FebsConfig::default() };
    Febs { config, levels: ["a", "b", "c"].map(str::to_owned).to_vec(), running: vec![None; 3], of_masks: false }
}

fn of(codes: &[Option<u32>], counted: &[bool]) -> GroupMeans {
    let groups: Vec<Option<GroupId>> = codes.iter().map(|code| code.map(GroupId)).collect();
    GroupMeans::new(&groups, counted, 3)
}

// Mean losses 1 and 2, so W = tanh(1) and tanh(1/2); two samples of a, one of b: the mean of 1/W is their weighted mean.
#[test]
fn coefficients_worked_by_hand() {
    let counted = [true, true, true, true, false];
    let present = of(&[Some(0), None, Some(1), Some(0), Some(2)], &counted);
    let (found, weights) = febs(0.0).coefficients(&[0.5, 9.0, 2.0, 1.5, 0.0], &present, &counted);
    let inverse = [1.0 / 1.0_f64.tanh(), 1.0 / 0.5_f64.tanh()];
    let mean = (2.0 * inverse[0] + inverse[1]) / 3.0;
    let (a, b) = (inverse[0] / mean, inverse[1] / mean);
    for (found, expected) in found.iter().zip([a / 4.0, 0.25, b / 4.0, a / 4.0, 0.0]) {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
    assert_eq!(weights[2], None, "its only sample has no loss");
    assert_eq!(present.n_absent(), 1);
}

#[test]
fn a_batch_without_groups_or_without_losses_has_the_plain_mean() {
    let (found, _) = febs(0.0).coefficients(&[1.0, 3.0], &of(&[None, None], &[true; 2]), &[true; 2]);
    assert_eq!(found, [0.5, 0.5]);
    let (found, _) = febs(0.0).coefficients(&[0.0, 0.0], &of(&[Some(0), Some(1)], &[false; 2]), &[false; 2]);
    assert_eq!(found, [0.0, 0.0]);
}

#[test]
fn extreme_losses_leave_finite_weights_with_mean_1() {
    for gamma in [0.0, 1.0, 40.0, 100.0] {
        for losses in [[0.0, 0.0], [0.0, 1e30], [-3.0, 2.0], [1e-30, 1e-30]] {
            let found = weights(&losses.map(Some), &[3, 1], gamma, EPSILON);
            let mean: f64 = (3.0 * found[0].unwrap() + found[1].unwrap()) / 4.0;
            assert!((mean - 1.0).abs() < 1e-12, "{gamma} {losses:?}: {found:?}");
        }
    }
}

#[test]
fn earlier_batches_count_and_absent_groups_keep_theirs() {
    let mut febs = febs(0.9);
    assert_eq!(febs.with_past(vec![Some(1.0), None, Some(4.0)]), [Some(1.0), None, Some(4.0)]);
    let second = febs.with_past(vec![Some(2.0), Some(3.0), None]);
    assert!((second[0].unwrap() - 1.1).abs() < 1e-15);
    assert_eq!(second[1..], [Some(3.0), None]);
    let saved = febs.state();
    assert_eq!(saved, [1.0, second[0].unwrap(), 1.0, 3.0, 1.0, 4.0]);
    let mut resumed = self::febs(0.9);
    assert!(resumed.restore(&saved));
    let next = vec![None, Some(1.0), Some(1.0)];
    assert_eq!(resumed.with_past(next.clone()), febs.with_past(next));
    assert_eq!(self::febs(0.9).state(), [0.0; 6]);
    assert!(!resumed.restore(&saved[..4]));
}

// Weights carry no gradient: the slope of every loss is its coefficient at the present losses.
#[test]
fn gradients_are_those_of_the_losses_at_fixed_weights() {
    let (counted, losses) = ([true; 4], [0.5, 2.0, 1.5, 0.7]);
    let present = of(&[Some(0), Some(1), Some(2), None], &counted);
    let (coefficients, _) = febs(0.0).coefficients(&losses, &present, &counted);
    let value = |losses: Vec<f64>| weighted_sum(&tensor(losses, [4]), coefficients.clone());
    let leaf = tensor(losses.to_vec(), [4]).require_grad();
    let slopes = gradient(&weighted_sum(&leaf, coefficients.clone()), &leaf);
    assert_eq!(slopes, coefficients);
    for (slope, numeric) in slopes.iter().zip(differences(&losses, |losses| values(&value(losses))[0])) {
        assert!((slope - numeric).abs() < 1e-9);
    }
}

#[test]
fn settings_out_of_range_name_their_key() {
    let default = FebsConfig::default();
    assert!(default.validate().is_ok());
    let message = |config: FebsConfig| config.validate().unwrap_err().to_string();
    let gamma = message(FebsConfig { gamma: -1.0, ..default });
    assert_eq!(gamma, "gamma is -1, expected a number in [0, 100]");
    let decay = message(FebsConfig { decay: 1.0, ..default });
    assert_eq!(decay, "decay is 1, expected a number in [0, 1)");
}

mod of_masks {
    use burn::tensor::{Device, Tensor, TensorData};
    use fairtte_survival::{CutPoints, Masks, SegmentationConfig, SurvivalHead as _, Targets};

    use super::*;
    use crate::predict::Outputs;
    use crate::strategies::{Accumulation, Clock, StepContext};

    const PIXELS: usize = 6;

    /// Three samples of three classes; a sample without the attribute repeats the first.
    fn logits(n: usize) -> Tensor<2> {
        let value = |b: usize, at: usize| {
            let (b, c, p) = (b % 3, at / PIXELS, at % PIXELS);
            ((5 * b + 7 * c + 3 * p * p + b * c * p) % 13) as f32 / 4.0 - 1.5
        };
        let values: Vec<f32> = (0..n).flat_map(|b| (0..3 * PIXELS).map(move |at| value(b, at))).collect();
        Tensor::from_data(TensorData::new(values, [n, 3 * PIXELS]), &Device::flex().autodiff())
    }

    fn targets(n: usize) -> Targets {
        let labels = [0, 1, 1, 0, 1, 1, 1, 2, 2, 1, 2, 2, 0, 0, 0, 0, 0, 0];
        let labels = (0..n * PIXELS).map(|at| labels[at % labels.len()]).collect();
        let of_class = CutPoints::of_class().targets("test", &vec![1.0; n], &vec![true; n]).unwrap();
        Targets { masks: Some(Masks { labels, n_pixels: PIXELS }), ..of_class }
    }

    /// The objective with its gradient, and the weights of the groups by name.
    fn value(febs: &mut Febs, groups: &[Option<GroupId>]) -> (f64, Vec<f32>, Vec<(String, f64)>) {
        let head = Segmentation::new(&SegmentationConfig { pixel_classes: 3, ..Default::default() }).unwrap();
        let (cut_points, clock, targets) = (CutPoints::of_class(), Clock::default(), targets(groups.len()));
        let context = StepContext {
            outputs: Outputs { head: &head, cut_points: &cut_points },
            seed: 1,
            epoch: 0,
            step: 0,
            rate: 1.0,
            accumulation: Accumulation::default(),
            loss_scale: 1.0,
            clock: &clock,
        };
        let outputs = logits(groups.len()).require_grad();
        let representation = Tensor::<2>::zeros([groups.len(), 1], &outputs.device());
        let losses = head.subject_losses(outputs.clone(), &targets, &mut fairtte_metrics::seeds::stream(1, "x", &[]));
        let counted = vec![true; groups.len()];
        let terms = Terms {
            losses,
            counted: &counted,
            outputs: outputs.clone(),
            representation: representation.clone(),
            before_dropout: representation,
            targets: &targets,
            groups,
            context: &context,
        };
        let found = febs.value(&terms).unwrap();
        let gradient = outputs.grad(&found.objective.backward()).unwrap().into_data().try_to_vec().unwrap();
        (f64::from(found.objective.into_data().try_to_vec::<f32>().unwrap()[0]), gradient, found.terms)
    }

    fn febs_of(gamma: f64) -> Febs {
        let config = FebsConfig { gamma, ..FebsConfig::default() };
        Febs { config, of_masks: true, ..febs(0.0) }
    }

    /// torch 2.15.0, float64: `W = tanh((min(D) / D) ** gamma)` with `D` as in `fairtte-survival/tests/survival/segmentation.rs` under
    /// `no_grad`, the mean of the scaled losses there, and its gradient by autograd at the second pixel of every sample and class.
    #[test]
    fn it_is_the_published_scaling_by_torch() {
        let groups = [Some(GroupId(0)), Some(GroupId(1)), Some(GroupId(0))];
        #[rustfmt::skip]
        let golden = [
            (1.0, 0.604_521_055_452_367_8, 1.065_342_447_417, [
                0.004_632_016_108, -0.010_536_233_154, 0.005_904_217_046, 0.010_444_034_433, 0.003_092_982_966,
                -0.013_537_017_398, -0.026_496_289_956, 0.019_370_330_848, 0.007_125_959_108,
            ], 0.764_979_749_054),
            (2.0, 0.454_484_802_897_735_1, 1.074_367_976_361, [
                0.004_433_301_627, -0.010_104_895_862, 0.005_671_594_235, 0.010_444_034_433, 0.003_092_982_966,
                -0.013_537_017_398, -0.026_333_283_982, 0.019_251_156_846, 0.007_082_127_136,
            ], 0.754_632_913_123),
        ];
        for (gamma, weight, objective, at_pixel, total) in golden {
            let (found, gradient, weights) = value(&mut febs_of(gamma), &groups);
            let names: Vec<&str> = weights.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["weight of a", "weight of b"]);
            assert!((weights[0].1 - weight).abs() < 1e-6 && (weights[1].1 - LARGEST).abs() < 1e-9, "{weights:?}");
            assert!((found - objective).abs() < 1e-6, "{found} is not {objective}");
            for (found, expected) in gradient.chunks(PIXELS).map(|pixels| f64::from(pixels[1])).zip(at_pixel) {
                assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
            }
            let sum: f64 = gradient.iter().map(|slope| f64::from(slope.abs())).sum();
            assert!((sum - total).abs() < 1e-5, "{sum} is not {total}");
        }
    }

    /// A sample without the attribute is in the D of no group, and has the W of the best one.
    #[test]
    fn a_sample_without_the_attribute_changes_no_weight() {
        let groups = [Some(GroupId(0)), Some(GroupId(1)), Some(GroupId(0)), None];
        let (_, _, with) = value(&mut febs_of(1.0), &groups);
        let (_, _, without) = value(&mut febs_of(1.0), &groups[..3]);
        for ((_, with), (_, without)) in with.iter().zip(&without) {
            assert!((with - without).abs() < 1e-12);
        }
        let (alone, _, weights) = value(&mut febs_of(1.0), &[None, None, None]);
        let (one_group, _, _) = value(&mut febs_of(1.0), &[Some(GroupId(2)), Some(GroupId(2)), Some(GroupId(2))]);
        assert!(weights.is_empty() && (alone - one_group).abs() < 1e-9, "a single group has W = tanh(1)");
    }

    #[test]
    fn the_largest_weight_is_the_hyperbolic_tangent_of_1_and_extremes_stay_finite() {
        assert!((LARGEST - 1.0_f64.tanh()).abs() < 1e-16);
        for gamma in [0.0, 1.0, 100.0] {
            for losses in [[0.0, 0.0], [0.0, 3.0], [1e-9, 3.0]] {
                let found = published(&losses.map(Some), gamma);
                assert!(found.iter().flatten().all(|w| (0.0..=LARGEST).contains(w)), "{gamma} {losses:?}: {found:?}");
            }
        }
        assert_eq!(published(&[None, Some(1.0)], 1.0)[0], None);
    }
}
