//! Properties of every head, and curves and counts computed by hand.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{assert_close, gradient, losses};
use approx::assert_abs_diff_eq;
use burn::tensor::{Device, Tensor};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    CoxTime, CoxTimeConfig, CutPoints, DeepHit, DeepHitConfig, HeadConfig, PcHazard, Pmf, PredictionGrid,
    SurvivalError, SurvivalHead,
};
use ndarray::{Array2, array};

/// Cut points at 0, 1, 2, 3.
fn cuts() -> CutPoints {
    CutPoints::equidistant(&outcomes(), 4).unwrap()
}

/// An event at each of 1, 2, 3.
fn outcomes() -> Outcomes {
    Outcomes::new(vec![1.0, 2.0, 3.0], vec![true; 3]).unwrap()
}

#[test]
fn every_head_of_the_catalogue_says_what_it_needs_and_what_its_loss_rests_on() {
    // Name, outputs with 4 cut points, other samples of the batch in the loss, baseline, curve of 1 at 0, reads the time.
    let expected = [
        ("pmf", 4, false, false, false, false),
        ("deephit", 4, true, false, false, false),
        ("nnet-survival", 4, false, false, false, false),
        ("cox", 1, true, true, true, false),
        ("cox-time", 1, true, true, true, true),
        ("pc-hazard", 3, false, false, true, false),
        ("binary", 1, false, false, true, false),
        ("segmentation", 2, false, false, false, false),
    ];
    assert_eq!(HeadConfig::NAMES, expected.map(|(name, ..)| name));
    for (name, expected) in HeadConfig::NAMES.into_iter().zip(expected) {
        let config: HeadConfig = serde_json::from_value(serde_json::json!({ name: {} })).unwrap();
        let head = config.build().unwrap();
        let (n_outputs, scale) = (head.n_outputs(&cuts()), head.time_scale(&outcomes()).unwrap());
        let (others, baseline, one) = (head.depends_on_batch(), head.needs_baseline(), head.starts_at_one());
        assert_eq!(config.name(), name);
        assert_eq!((head.name(), n_outputs, others, baseline, one, scale.is_some()), expected);
        assert_eq!(head.baseline_fit(&outcomes()).is_some(), baseline, "{name}");
        // Without a baseline a constant output means something, and training starts there; the decoder of masks has no such start.
        let start = head.starting_outputs(&[0.1, 0.2, 0.3, 0.4]).as_deref().map(<[f64]>::len);
        assert_eq!(start, (!baseline && name != "segmentation").then_some(n_outputs), "{name}");
        assert_eq!(head.of_masks().is_some(), name == "segmentation");
        assert!(head.check_hidden(1).is_ok(), "{name}");
        assert_eq!(head.predicts_class(), name == "binary");
        let linear = head.check_hidden(0);
        if name == "cox-time" {
            assert!(matches!(linear, Err(SurvivalError::Setting { key: "hidden", .. })), "{linear:?}");
        } else {
            assert!(linear.is_ok(), "{name}");
        }
    }
}

#[test]
fn the_hazards_of_a_cox_time_curve_are_added_up_once_each() {
    // With equal outputs the baseline hazards are 1 / 3, 1 / 2 and 1 (at risk: 3, 2, 1).
    let head = CoxTime::new(&CoxTimeConfig::default()).unwrap();
    let mut fit = head.baseline_fit(&outcomes()).unwrap();
    fit.add(&Array2::zeros((3, 3)).view(), outcomes().time(), outcomes().event());
    let baseline = fit.finish().unwrap();
    // Relative risks 1, 2 and 1, then 1, 1 and 4: hazards 1/3, 1, 1 and 1/3, 1/2, 4.
    let x = array![[0.0, 2.0_f32.ln(), 0.0], [0.0, 0.0, 4.0_f32.ln()]];
    let survival = head.survival(x.view(), &PredictionGrid::at_cut_points(&cuts()), Some(&baseline)).unwrap();
    let cumulative: [f64; 8] = [0.0, 1.0 / 3.0, 4.0 / 3.0, 7.0 / 3.0, 0.0, 1.0 / 3.0, 5.0 / 6.0, 29.0 / 6.0];
    assert_eq!(survival.dim(), (2, 4));
    for (found, cumulative) in survival.iter().zip(cumulative) {
        assert_abs_diff_eq!(*found, (-cumulative).exp(), epsilon = 1e-7);
    }
}

#[test]
fn a_deephit_curve_is_that_of_its_masses_whatever_the_ranking() {
    // Outputs 0: five equal masses, the last of them beyond the grid. Outputs log 1, .., log 4 beside a mass of 1: of 11.
    let x = array![[0.0, 0.0, 0.0, 0.0], [0.0, 2.0_f32.ln(), 3.0_f32.ln(), 4.0_f32.ln()]];
    let expected = [0.8, 0.6, 0.4, 0.2, 10.0 / 11.0, 8.0 / 11.0, 5.0 / 11.0, 1.0 / 11.0];
    let deephit = DeepHit::new(&DeepHitConfig::default()).unwrap();
    for head in [&deephit as &dyn SurvivalHead, &Pmf] {
        let survival = head.survival(x.view(), &PredictionGrid::at_cut_points(&cuts()), None).unwrap();
        assert_eq!(survival.dim(), (2, 4), "{}", head.name());
        for (found, expected) in survival.iter().zip(expected) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-7);
        }
    }
}

// An event at the end of the second interval, whose hazard softplus(x) is that of the second output: softplus(x) - log
// softplus(x). For x far below 0 it is -x, with slope -1; for x = 60 it is 60 - log 60.
#[test]
fn the_loss_of_a_pc_hazard_event_is_right_where_its_hazard_leaves_single_precision() {
    let targets = cuts().targets("test", &[2.0; 4], &[true; 4]).unwrap();
    let x = array![[-90.0, -14.0, 0.0], [-90.0, -30.0, 0.0], [-90.0, -90.0, 0.0], [-90.0, 60.0, 0.0]];
    let own = losses(&PcHazard, &x, &targets);
    assert_close(&own, &[14.000_001_247, 30.0, 90.0, 60.0 - 60.0_f64.ln()], 1e-6, "loss");
    let slopes: Vec<f32> = gradient(&PcHazard, &x, &targets).chunks(3).map(|row| 4.0 * row[1]).collect();
    assert_close(&slopes, &[-0.999_998_753, -1.0, -1.0, 1.0 - 1.0 / 60.0], 1e-5, "slope");
}

#[test]
fn a_pc_hazard_sample_at_time_zero_has_no_term_and_is_not_counted() {
    let targets = cuts().targets("test", &[0.0, 2.0], &[false, false]).unwrap();
    assert_eq!(PcHazard.counted(&targets), [false, true]);
    let outputs = Tensor::zeros([2, 3], &Device::flex());
    let losses = PcHazard.subject_losses(outputs, &targets, &mut stream(1, "controls", &[]));
    let found: Vec<f32> = losses.into_data().try_to_vec().unwrap();
    // Two intervals with softplus(0) = log 2.
    assert_abs_diff_eq!(found[0], 0.0);
    assert_abs_diff_eq!(found[1], 2.0 * std::f32::consts::LN_2, epsilon = 1e-6);
}
