#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

mod laws;

use ndarray::Array2;
use serde::Deserialize;

use super::stages::Draws;
use super::tree::TreeNode;
use super::*;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Golden {
    x: Vec<Vec<f64>>,
    time: Vec<f64>,
    event: Vec<bool>,
    x_new: Vec<Vec<f64>>,
    cases: Vec<Case>,
    subsample: Subsampled,
    dropout: DroppedCase,
    early_stopping: Stopped,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Shape {
    learning_rate: f64,
    n_estimators: usize,
    max_depth: usize,
    min_samples_split: u32,
    min_samples_leaf: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    #[serde(flatten)]
    shape: Shape,
    after: Vec<usize>,
    risk: Vec<Vec<f64>>,
    risk_new: Vec<Vec<f64>>,
    losses: Vec<f64>,
    times: Vec<f64>,
    survival_new: Vec<Vec<f64>>,
    first_column: u32,
    first_threshold: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Subsampled {
    #[serde(flatten)]
    shape: Shape,
    subsample: f64,
    masks: Vec<Vec<u8>>,
    risk: Vec<f64>,
    risk_new: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DroppedCase {
    #[serde(flatten)]
    shape: Shape,
    dropout_rate: f64,
    dropped: Vec<Vec<usize>>,
    scale: Vec<f64>,
    risk: Vec<f64>,
    risk_new: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Stopped {
    #[serde(flatten)]
    shape: Shape,
    validation_fraction: f64,
    patience: usize,
    tolerance: f64,
    held_out: Vec<u32>,
    trees: usize,
    risk: Vec<f64>,
    risk_new: Vec<f64>,
}

impl Shape {
    fn settings(&self) -> BoostingSettings {
        BoostingSettings {
            trees: self.n_estimators,
            learning_rate: self.learning_rate,
            max_depth: self.max_depth,
            min_samples_split: self.min_samples_split,
            min_samples_leaf: self.min_samples_leaf,
            ..BoostingSettings::default()
        }
    }
}

/// Draws that were recorded.
#[derive(Default)]
struct Recorded {
    in_bag: Vec<Vec<u32>>,
    dropped: Vec<Vec<usize>>,
}

impl Draws for Recorded {
    fn in_bag(&mut self, tree: usize, _: &[u32]) -> Vec<u32> {
        self.in_bag[tree].clone()
    }

    fn dropped(&mut self, tree: usize) -> Vec<usize> {
        self.dropped[tree - 1].clone()
    }
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column])
}

fn golden() -> (Golden, Array2<f64>, Array2<f64>, Outcomes) {
    let golden: Golden = serde_json::from_str(include_str!("../../../tests/golden/boosting.json")).unwrap();
    let (x, new) = (matrix(&golden.x), matrix(&golden.x_new));
    let outcomes = Outcomes::new(golden.time.clone(), golden.event.clone()).unwrap();
    (golden, x, new, outcomes)
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-10, "{found} for {expected}");
    }
}

#[test]
fn predictions_after_every_number_of_trees_are_those_of_scikit_survival() {
    let (golden, x, new, outcomes) = golden();
    for case in &golden.cases {
        let (model, trace) = GradientBoostedCox::fit(&x, &outcomes, &case.shape.settings()).unwrap();
        let TreeNode::Split { column, threshold, .. } = model.trees[0].nodes[0] else { panic!("the root is a leaf") };
        assert_eq!(column, case.first_column);
        assert!((threshold - case.first_threshold).abs() < 1e-6, "{threshold}");
        let staged: Vec<Vec<f64>> = model.staged_risk(&x).unwrap().collect();
        let staged_new: Vec<Vec<f64>> = model.staged_risk(&new).unwrap().collect();
        for (i, after) in case.after.iter().enumerate() {
            close(&staged[after - 1], &case.risk[i]);
            close(&staged_new[after - 1], &case.risk_new[i]);
        }
        close(&model.risk(&new).unwrap(), staged_new.last().unwrap());
        assert_eq!(trace.losses.len(), case.losses.len() + 1);
        for (found, expected) in trace.losses[1..].iter().zip(&case.losses) {
            assert!((found - expected).abs() < 1e-8, "{found} for {expected}");
        }
        let curves = model.survival_curves(&new, &case.times).unwrap();
        for (row, expected) in case.survival_new.iter().enumerate() {
            close(&curves.survival().row(row).to_vec(), expected);
        }
    }
}

#[test]
fn trees_of_recorded_subsamples_are_those_of_scikit_survival() {
    let (golden, x, new, outcomes) = golden();
    let case = &golden.subsample;
    let rows = |mask: &Vec<u8>| (0..).zip(mask).filter(|(_, drawn)| **drawn == 1).map(|(row, _)| row).collect();
    let in_bag: Vec<Vec<u32>> = case.masks.iter().map(rows).collect();
    let settings = BoostingSettings { subsample: case.subsample, ..case.shape.settings() };
    let mut draws = Recorded { in_bag: in_bag.clone(), ..Recorded::default() };
    let (model, _) = GradientBoostedCox::from_draws(&x, &outcomes, &settings, Vec::new(), &mut draws, &NEVER).unwrap();
    close(&model.risk(&x).unwrap(), &case.risk);
    close(&model.risk(&new).unwrap(), &case.risk_new);
    let all: Vec<u32> = (0..120).collect();
    let own = stages::Seeded(&settings, &Units::default()).in_bag(0, &all);
    assert_eq!(own.len(), in_bag[0].len(), "as many are drawn");
    assert_ne!(stages::Seeded(&settings, &Units::default()).in_bag(1, &all), own);
}

#[test]
fn trees_fitted_without_recorded_others_are_those_of_scikit_survival() {
    let (golden, x, new, outcomes) = golden();
    let case = &golden.dropout;
    let settings = BoostingSettings { dropout: case.dropout_rate, ..case.shape.settings() };
    let mut draws = Recorded { dropped: case.dropped.clone(), ..Recorded::default() };
    let (model, trace) =
        GradientBoostedCox::from_draws(&x, &outcomes, &settings, Vec::new(), &mut draws, &NEVER).unwrap();
    let scale: Vec<f64> = model.factors.iter().map(|factor| factor / settings.learning_rate).collect();
    close(&scale, &case.scale);
    close(&model.risk(&x).unwrap(), &case.risk);
    close(&model.risk(&new).unwrap(), &case.risk_new);
    assert_eq!(trace.losses.len(), settings.trees + 1);
    let own: Vec<Vec<usize>> =
        (1..200).map(|tree| stages::Seeded(&settings, &Units::default()).dropped(tree)).collect();
    assert!(own.iter().zip(1..).all(|(dropped, n)| !dropped.is_empty() && dropped.iter().all(|tree| *tree < n)));
    let share = own.iter().map(Vec::len).sum::<usize>() as f64 / (199.0 * 100.0);
    assert!((share - 0.3).abs() < 0.02, "{share}");
}

#[test]
fn a_fit_stops_at_the_tree_at_which_scikit_survival_stops() {
    let (golden, x, new, outcomes) = golden();
    let case = &golden.early_stopping;
    let stopping =
        EarlyStopping { share: case.validation_fraction, patience: case.patience, tolerance: case.tolerance };
    let settings = BoostingSettings { early_stopping: Some(stopping.clone()), ..case.shape.settings() };
    let held_out = case.held_out.clone();
    let (model, trace) =
        GradientBoostedCox::from_draws(&x, &outcomes, &settings, held_out.clone(), &mut Recorded::default(), &NEVER)
            .unwrap();
    assert_eq!(model.n_trees(), case.trees);
    close(&model.risk(&x).unwrap(), &case.risk);
    close(&model.risk(&new).unwrap(), &case.risk_new);
    let watched = trace.held_out.unwrap();
    let held_out: Vec<usize> = held_out.into_iter().map(|row| row as usize).collect();
    assert_eq!((watched.rows, watched.losses.len()), (held_out, case.trees));
    // The same share of those with and without event is held out.
    let own = stages::held_out(&outcomes, &Units::default(), &stopping, 0).unwrap();
    let n_events = own.iter().filter(|row| outcomes.event()[**row as usize]).count();
    let is_quarter = |part: usize, n: usize| (part as f64 - 0.25 * n as f64).abs() <= 0.5;
    assert!(is_quarter(n_events, outcomes.n_events()), "{n_events}");
    assert!(is_quarter(own.len() - n_events, outcomes.n() - outcomes.n_events()), "{}", own.len());
    assert_ne!(stages::held_out(&outcomes, &Units::default(), &stopping, 1).unwrap(), own);
}
