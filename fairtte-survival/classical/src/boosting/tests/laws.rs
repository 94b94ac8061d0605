//! What holds for every fit.

#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::seeds::stream;
use ndarray::{Array2, Axis};
use proptest::prelude::*;
use rand::seq::SliceRandom as _;

use super::super::tree::TreeNode;
use super::super::*;
use crate::ColumnsPerSplit;

/// The first column says when the event comes, the last is constant.
fn samples(n: usize, seed: u64) -> (Array2<f64>, Outcomes) {
    let mut rng = stream(seed, "test", &[]);
    let columns = Array2::from_shape_fn((n, 3), |(_, column)| if column == 2 { 7.0 } else { rng.random::<f64>() });
    let time = columns.column(0).iter().map(|value| (8.0 * (value + rng.random::<f64>())).ceil()).collect();
    let event = (0..n).map(|row| row < 2 || rng.random::<f64>() < 0.7).collect();
    (columns, Outcomes::new(time, event).unwrap())
}

fn settings() -> impl Strategy<Value = BoostingSettings> {
    let columns = prop::sample::select(vec![ColumnsPerSplit::All, ColumnsPerSplit::Sqrt, ColumnsPerSplit::Count(2)]);
    let shares = (prop::sample::select(vec![0.5, 1.0]), prop::sample::select(vec![0.0, 0.3]));
    let sizes = (1..5_usize, 2..10_u32, 1..6_u32);
    (columns, shares, sizes, prop::sample::select(vec![0.1, 1.0]), any::<bool>(), any::<u64>()).prop_map(
        |(columns_per_split, (subsample, dropout), (max_depth, split, leaf), learning_rate, stops, seed)| {
            let stopping = EarlyStopping { share: 0.5, patience: 3, tolerance: 0.0 };
            BoostingSettings {
                trees: 15,
                learning_rate,
                max_depth,
                min_samples_split: split,
                min_samples_leaf: leaf,
                columns_per_split,
                subsample,
                dropout,
                early_stopping: stops.then_some(stopping),
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn curves_never_rise_and_nothing_is_not_a_number(settings in settings(), n in 4..80_usize) {
        let (columns, outcomes) = samples(n, settings.seed);
        let (model, trace) = GradientBoostedCox::fit(&columns, &outcomes, &settings).unwrap();
        let hazard = &model.baseline.log_hazard;
        prop_assert!(hazard.iter().all(|value| value.is_finite()));
        prop_assert!(hazard.windows(2).all(|pair| pair[0] < pair[1]), "every event adds hazard");
        let grid: Vec<f64> = (0..20).map(f64::from).collect();
        let curves = model.survival_curves(&columns, &grid).unwrap();
        for curve in curves.survival().rows() {
            prop_assert!((curve[0] - 1.0).abs() < 1e-15, "no event at time 0");
            prop_assert!(curve.iter().all(|s| (0.0..=1.0).contains(s)));
            prop_assert!(curve.iter().zip(curve.iter().skip(1)).all(|(before, after)| after <= before));
        }
        let held_out = trace.held_out.iter().flat_map(|held_out| &held_out.losses);
        prop_assert!(trace.losses.iter().chain(held_out).all(|loss| loss.is_finite()));
        prop_assert_eq!(trace.losses.len(), model.n_trees() + 1);
        let staged: Vec<Vec<f64>> = model.staged_risk(&columns).unwrap().collect();
        for (last, risk) in staged[model.n_trees() - 1].iter().zip(model.risk(&columns).unwrap()) {
            prop_assert!((last - risk).abs() < 1e-12);
        }
        // The last loss is that of the predictions, which the fit kept beside the trees.
        let is_held_out = |row: usize| trace.held_out.as_ref().is_some_and(|held| held.rows.contains(&row));
        let rows = (0..).zip(0..n).filter(|(_, row)| !is_held_out(*row)).map(|(row, _)| row).collect();
        let loss = partial_likelihood::PartialLikelihood::new(&outcomes, rows).loss(&model.risk(&columns).unwrap());
        prop_assert!((loss - trace.losses[model.n_trees()]).abs() < 1e-9 * loss.abs().max(1.0));
    }

    #[test]
    fn a_constant_column_is_never_chosen_and_leaves_are_large_enough(settings in settings()) {
        let (columns, outcomes) = samples(60, settings.seed);
        let whole = BoostingSettings { subsample: 1.0, early_stopping: None, ..settings };
        let (model, _) = GradientBoostedCox::fit(&columns, &outcomes, &whole).unwrap();
        for tree in &model.trees {
            let mut n = vec![0_u32; tree.nodes.len()];
            let mut depth = vec![0; tree.nodes.len()];
            for row in columns.rows() {
                let mut at = 0;
                n[0] += 1;
                while let TreeNode::Split { column, threshold, left } = tree.nodes[at] {
                    prop_assert!(column != 2);
                    let next = left as usize + usize::from(row[column as usize] > threshold);
                    depth[next] = depth[at] + 1;
                    at = next;
                    n[at] += 1;
                }
            }
            for (node, (n, depth)) in tree.nodes.iter().zip(n.iter().zip(depth)) {
                prop_assert!(*n >= whole.min_samples_leaf && depth <= whole.max_depth);
                let is_leaf = matches!(node, TreeNode::Leaf { .. });
                prop_assert!(is_leaf || *n >= whole.min_samples_split);
            }
        }
    }
}

#[test]
fn the_order_of_the_rows_is_nothing_to_a_fit() {
    for seed in 0..5 {
        let (columns, outcomes) = samples(150, seed);
        let settings = BoostingSettings { trees: 30, min_samples_leaf: 5, ..BoostingSettings::default() };
        let mut rows: Vec<usize> = (0..150).collect();
        rows.shuffle(&mut stream(seed, "test/rows", &[]));
        let risk = settings.fit(&columns, &outcomes).unwrap().risk(&columns).unwrap();
        let moved = settings.fit(&columns.select(Axis(0), &rows), &outcomes.select(&rows)).unwrap();
        for (found, expected) in moved.risk(&columns).unwrap().iter().zip(&risk) {
            assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        }
    }
}

#[test]
fn a_fit_is_the_same_with_any_number_of_threads_and_another_with_another_seed() {
    // Enough samples for columns to be walked in parallel.
    let (columns, outcomes) = samples(9000, 1);
    let settings = BoostingSettings {
        trees: 4,
        subsample: 0.8,
        columns_per_split: ColumnsPerSplit::Count(2),
        ..BoostingSettings::default()
    };
    let fit = |settings: &BoostingSettings| GradientBoostedCox::fit(&columns, &outcomes, settings).unwrap();
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let (model, trace) = pool(1).install(|| fit(&settings));
    assert_eq!(pool(3).install(|| fit(&settings)), (model.clone(), trace));
    assert_ne!(fit(&BoostingSettings { seed: 1, ..settings.clone() }).0.trees, model.trees);
    let all = BoostingSettings { columns_per_split: ColumnsPerSplit::All, ..settings.clone() };
    assert_ne!(fit(&all).0.trees, model.trees, "columns are drawn");
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(serde_json::from_str::<GradientBoostedCox>(&text).unwrap(), model);
}

#[test]
fn settings_and_data_that_cannot_be_are_named() {
    let (columns, outcomes) = samples(50, 1);
    let default = BoostingSettings::default;
    let stopping = |share, patience, tolerance| BoostingSettings {
        early_stopping: Some(EarlyStopping { share, patience, tolerance }),
        ..default()
    };
    let cases = [
        (
            BoostingSettings { trees: 1_000_001, ..default() },
            "trees is 1000001, expected a whole number from 1 to 1000000",
        ),
        (BoostingSettings { trees: 0, ..default() }, "trees is 0, expected a whole number from 1 to 1000000"),
        (
            BoostingSettings { learning_rate: 0.0, ..default() },
            "learning-rate is 0, expected a number above 0 and at most 1",
        ),
        (
            BoostingSettings { learning_rate: 1.5, ..default() },
            "learning-rate is 1.5, expected a number above 0 and at most 1",
        ),
        (BoostingSettings { max_depth: 0, ..default() }, "max-depth is 0, expected at least 1"),
        (BoostingSettings { min_samples_split: 1, ..default() }, "min-samples-split is 1, expected at least 2"),
        (BoostingSettings { min_samples_leaf: 0, ..default() }, "min-samples-leaf is 0, expected at least 1"),
        (
            BoostingSettings { columns_per_split: ColumnsPerSplit::Count(0), ..default() },
            "columns-per-split is 0, expected at least 1",
        ),
        (
            BoostingSettings { subsample: f64::NAN, ..default() },
            "subsample is NaN, expected a share above 0 and at most 1",
        ),
        (BoostingSettings { dropout: 1.0, ..default() }, "dropout is 1, expected a share from 0 to below 1"),
        (stopping(1.0, 3, 0.0), "early-stopping.share is 1, expected a share between 0 and 1"),
        (stopping(0.2, 0, 0.0), "early-stopping.patience is 0, expected at least 1"),
        (stopping(0.2, 3, -1.0), "early-stopping.tolerance is -1, expected a finite number, at least 0"),
        (stopping(0.001, 3, 0.0), "early-stopping.share is 0.001, expected a share that leaves events in both parts"),
    ];
    for (settings, expected) in cases {
        assert_eq!(settings.fit(&columns, &outcomes).unwrap_err().to_string(), expected);
    }
    let none = Outcomes::new(vec![1.0; 50], vec![false; 50]).unwrap();
    let message = default().fit(&columns, &none).unwrap_err().to_string();
    assert_eq!(message, "no sample has an event, expected at least one");
    let model = default().fit(&columns, &outcomes).unwrap();
    let message = model.risk(&Array2::zeros((1, 2))).unwrap_err().to_string();
    assert_eq!(message, "2 covariates, expected the 3 of the fit");
    let read = |text: &str| serde_json::from_str::<BoostingSettings>(text).map_err(|error| error.to_string());
    assert_eq!(read("{}").unwrap(), default());
    let own = read(r#"{"early-stopping": {"patience": 3}, "columns-per-split": "sqrt"}"#).unwrap();
    let expected = EarlyStopping { patience: 3, ..EarlyStopping::default() };
    assert_eq!(
        own,
        BoostingSettings { early_stopping: Some(expected), columns_per_split: ColumnsPerSplit::Sqrt, ..default() }
    );
    assert!(read(r#"{"early-stopping": {"patients": 3}}"#).unwrap_err().contains("unknown field `patients`"));
}
