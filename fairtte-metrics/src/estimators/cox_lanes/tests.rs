use approx::assert_relative_eq;
use proptest::prelude::*;

use super::*;
use crate::Outcomes;

/// The first lane in the tests, a multiple of [`WIDTH`].
const FIRST: usize = 16;

#[test]
fn exponentials_are_those_of_the_standard_library() {
    for k in -7_000..7_000 {
        let x = f64::from(k) * 0.1;
        let found = exp([x, -x, x * 1e-3, x + 0.34, x - 0.34, 0.0, 1e-300, x * 1e-9]);
        for (found, x) in found.iter().zip([x, -x, x * 1e-3, x + 0.34, x - 0.34, 0.0, 1e-300, x * 1e-9]) {
            assert_relative_eq!(*found, x.clamp(-700.0, 700.0).exp(), max_relative = 1e-14);
        }
    }
}

proptest! {
    #[test]
    fn every_lane_is_the_model_of_its_weights(
        rows in prop::collection::vec((0_u8..20, any::<bool>(), -20_i8..20, 0_i8..20), 10..60),
        weights in prop::collection::vec(0_u16..4, 60 * WIDTH),
        n_covariates in 0_usize..3,
        horizon in 0_u8..25,
    ) {
        let (time, event) = rows.iter().map(|row| (f64::from(row.0), row.1)).unzip();
        let outcomes = Outcomes::new(time, event).unwrap();
        let covariates = |row: usize| {
            let (x, y) = (f64::from(rows[row].2) / 10.0, f64::from(rows[row].3) / 10.0);
            if n_covariates > 1 { [x, y] } else { [x, 0.0] }
        };
        let design = CoxDesign::new(&outcomes, n_covariates, covariates);
        let block: Vec<BlockWeights> = (0..rows.len())
            .map(|row| std::array::from_fn(|lane| if lane < FIRST { 9 } else { weights[row * WIDTH + lane % WIDTH] }))
            .collect();
        let lanes = LaneWeights::new(&design, &block, FIRST);
        let start = [0.1, -0.1];
        let start = std::array::from_fn(|k| if k < n_covariates { start[k] } else { 0.0 });
        let found = lanes.fit(&Start::new(&design, start));
        let hazards = lanes.baseline(&found.map(Option::unwrap_or_default), f64::from(horizon));
        for lane in 0..WIDTH {
            let Some(fitted) = found[lane] else { continue };
            let weights: Vec<u32> = (0..rows.len()).map(|row| weights[row * WIDTH + lane].into()).collect();
            let exact = design.fit(&weights, start);
            prop_assert!(exact.is_ok(), "{} {:?}", lane, exact);
            let exact = exact.unwrap();
            // Both end within a millionth of a standard error of the maximum, by other steps.
            let apart = design.standard_errors_between(&weights, exact, fitted);
            prop_assert!(apart < 2e-6, "{} {:?} {:?} {}", lane, fitted, exact, apart);
            let exact = design.baseline(&weights, fitted, f64::from(horizon)).unwrap();
            prop_assert!((hazards[lane] - exact).abs() <= 1e-9 * (1.0 + exact), "{} {}", hazards[lane], exact);
        }
    }
}

#[test]
fn lanes_are_fitted_and_those_without_a_maximum_are_left_out() {
    let outcomes = Outcomes::new((1..=40).map(f64::from).collect(), vec![true; 40]).unwrap();
    let design = CoxDesign::new(&outcomes, 1, |row| [(row as f64 * 0.7).sin(), 0.0]);
    let drawn = |row: usize| std::array::from_fn(|lane| u16::from(lane != 3 && row % 8 != lane));
    let block: Vec<BlockWeights> = (0..40).map(drawn).collect();
    let lanes = LaneWeights::new(&design, &block, 0);
    let found = lanes.fit(&Start::new(&design, [0.0; MOST_COVARIATES]));
    for (lane, fitted) in found.iter().enumerate() {
        assert_eq!(fitted.is_some(), lane != 3, "{lane}");
    }
    let separated = CoxDesign::new(&outcomes, 1, |row| [-(row as f64), 0.0]);
    let found = LaneWeights::new(&separated, &[[1; _]; 40], 0).fit(&Start::new(&separated, [0.0; MOST_COVARIATES]));
    assert_eq!(found, [None; WIDTH]);
}
