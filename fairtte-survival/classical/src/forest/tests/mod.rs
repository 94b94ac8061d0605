#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

mod laws;
mod out_of_bag;

use ndarray::Array2;
use serde::Deserialize;

use super::tree::TreeNode;
use super::*;
use crate::ColumnsPerSplit;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Golden {
    x: Vec<Vec<f64>>,
    time: Vec<f64>,
    event: Vec<bool>,
    trees: Vec<GoldenTree>,
}

/// A tree of scikit-survival: arrays by node, -1 for no child.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct GoldenTree {
    min_samples_leaf: u32,
    min_samples_split: u32,
    max_depth: Option<usize>,
    feature: Vec<i64>,
    threshold: Vec<f64>,
    left: Vec<i64>,
    right: Vec<i64>,
    times: Vec<f64>,
    risk: Vec<f64>,
    hazard_of_first_rows: Vec<Vec<f64>>,
}

fn golden() -> (Golden, Array2<f64>, Outcomes) {
    let golden: Golden = serde_json::from_str(include_str!("../../../tests/golden/tree.json")).unwrap();
    let x = Array2::from_shape_fn((golden.x.len(), golden.x[0].len()), |(row, column)| golden.x[row][column]);
    let outcomes = Outcomes::new(golden.time.clone(), golden.event.clone()).unwrap();
    (golden, x, outcomes)
}

/// One tree of all samples and all columns.
fn single(of: &GoldenTree) -> ForestSettings {
    ForestSettings {
        trees: 1,
        columns_per_split: ColumnsPerSplit::All,
        constant_columns: ConstantColumns::Replaced,
        cuts_per_column: 0,
        node_sizes: NodeSizes::Samples,
        min_samples_split: of.min_samples_split,
        min_samples_leaf: of.min_samples_leaf,
        min_events_leaf: 0,
        max_depth: of.max_depth,
        sampling: Sampling::All,
        seed: 0,
    }
}

#[test]
fn one_tree_is_that_of_scikit_survival_node_by_node() {
    let (golden, x, outcomes) = golden();
    for of in &golden.trees {
        let (forest, out_of_bag) = RandomSurvivalForest::fit(&x, &outcomes, &single(of)).unwrap();
        assert!(out_of_bag.risk.iter().all(Option::is_none), "all samples are in the bag");
        let nodes = &forest.trees[0].nodes;
        assert_eq!(nodes.len(), of.feature.len());
        for (place, node) in nodes.iter().enumerate() {
            match node {
                TreeNode::Split { column, threshold, right } => {
                    assert_eq!(i64::from(*column), of.feature[place], "node {place}");
                    assert!((threshold - of.threshold[place]).abs() < 1e-6, "node {place}: {threshold}");
                    let next = i64::try_from(place + 1).unwrap();
                    assert_eq!((next, i64::from(*right)), (of.left[place], of.right[place]), "node {place}");
                }
                TreeNode::Leaf { .. } => assert_eq!(of.left[place], -1, "node {place}"),
            }
        }
        for (found, expected) in forest.risk(&x).unwrap().iter().zip(&of.risk) {
            assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{found} for {expected}");
        }
        let curves = forest.survival_curves(&x, &of.times).unwrap();
        for (row, expected) in of.hazard_of_first_rows.iter().enumerate() {
            for (found, expected) in curves.survival().row(row).iter().zip(expected) {
                assert!((found - (-expected).exp()).abs() < 1e-12, "{found} for {expected}");
            }
        }
    }
}

#[derive(Deserialize)]
struct GoldenDrawn {
    trees: Vec<DrawnTree>,
}

/// A tree of samples that are drawn several times or not at all.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DrawnTree {
    min_samples_split: u32,
    min_samples_leaf: u32,
    drawn: Vec<u32>,
    feature: Vec<i64>,
    threshold: Vec<f64>,
    right: Vec<i64>,
    risk: Vec<f64>,
}

#[test]
fn a_tree_of_drawn_samples_is_that_of_scikit_survival_node_by_node() {
    let (_, x, outcomes) = golden();
    let golden: GoldenDrawn = serde_json::from_str(include_str!("../../../tests/golden/tree_drawn.json")).unwrap();
    let training = Training::new(&x, &outcomes).unwrap();
    let n_later = training.event_times_from();
    for of in golden.trees {
        let settings = ForestSettings {
            columns_per_split: ColumnsPerSplit::All,
            min_samples_split: of.min_samples_split,
            min_samples_leaf: of.min_samples_leaf,
            ..Preset::ScikitSurvival.settings()
        };
        let tree = Grower::new(&training, &n_later, &settings).grow(&of.drawn, &mut stream(0, "test", &[]));
        assert_eq!(tree.nodes.len(), of.feature.len());
        for (place, node) in tree.nodes.iter().enumerate() {
            if let TreeNode::Split { column, threshold, right } = node {
                assert_eq!(i64::from(*column), of.feature[place], "node {place}");
                assert!((threshold - of.threshold[place]).abs() < 1e-6, "node {place}: {threshold}");
                assert_eq!(i64::from(*right), of.right[place], "node {place}");
            } else {
                assert!(of.feature[place] < 0, "node {place}");
            }
        }
        for (row, expected) in of.risk.iter().enumerate() {
            let found = tree.leaf(|column| x[[row, column]]).mortality;
            assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{found} for {expected}");
        }
    }
}

#[test]
fn a_forest_is_the_same_with_any_number_of_threads_and_another_with_another_seed() {
    let (_, x, outcomes) = golden();
    let settings = ForestSettings { trees: 20, min_samples_leaf: 3, ..ForestSettings::default() };
    let fit = |settings: &ForestSettings| RandomSurvivalForest::fit(&x, &outcomes, settings).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (forest, out_of_bag) = fit(&settings);
    assert_eq!(pool.install(|| fit(&settings)), (forest.clone(), out_of_bag.clone()));
    assert_ne!(fit(&ForestSettings { seed: 1, ..settings.clone() }).0.trees, forest.trees);
    // A bootstrap sample leaves out (1 - 1/n)^n = 37 % of the samples.
    let share = f64::from(out_of_bag.n_trees.iter().sum::<u32>()) / (20.0 * outcomes.n() as f64);
    assert!((share - 0.366).abs() < 0.03, "{share}");
    let text = serde_json::to_string(&forest).unwrap();
    assert_eq!(serde_json::from_str::<RandomSurvivalForest>(&text).unwrap(), forest);
}

#[test]
fn out_of_bag_risks_are_of_the_trees_without_the_sample() {
    let (_, x, outcomes) = golden();
    let settings =
        ForestSettings { trees: 3, min_samples_leaf: 3, sampling: Sampling::Subsample(0.5), ..Default::default() };
    let (forest, out_of_bag) = RandomSurvivalForest::fit(&x, &outcomes, &settings).unwrap();
    let mut seen = 0;
    for row in 0..outcomes.n() {
        let drawn = |tree: usize| {
            let mut drawn = Vec::new();
            draw(outcomes.n(), &Units::default(), settings.sampling, &mut drawn, &mut tree_stream(settings.seed, tree));
            drawn
        };
        let risks: Vec<f64> = (0..3)
            .filter(|tree| drawn(*tree)[row] == 0)
            .map(|tree| forest.trees[tree].leaf(|column| x[[row, column]]).mortality)
            .collect();
        assert_eq!(out_of_bag.n_trees[row] as usize, risks.len());
        let mean = (!risks.is_empty()).then(|| risks.iter().sum::<f64>() / risks.len() as f64);
        assert_eq!(out_of_bag.risk[row].map(f64::to_bits), mean.map(f64::to_bits));
        seen += risks.len();
    }
    assert_eq!(seen, 3 * 100, "half of the samples are left out of every tree");
}

#[test]
fn the_size_of_a_forest_is_that_of_its_nodes_and_jumps() {
    let (_, x, outcomes) = golden();
    let grow = |trees: usize| ForestSettings { trees, ..ForestSettings::ranger() }.fit(&x, &outcomes).unwrap();
    let forest = grow(40);
    let n_nodes: usize = forest.trees.iter().map(|tree| tree.nodes.len()).sum();
    // A node has 24 bytes, a jump 4 and 8; every leaf has at most as many jumps as events, of which 200 were drawn in all.
    let (size, least) = (forest.size_in_bytes(), n_nodes * 24);
    assert!(size > least && size < least + 40 * (200 * 12 + size_of::<Tree>()) + 5000, "{size} for {n_nodes} nodes");
    let double = grow(80).size_in_bytes() as f64 / size as f64;
    assert!((1.9..2.1).contains(&double), "{double}");
}

#[test]
fn settings_and_data_that_cannot_be_are_named() {
    let (_, x, outcomes) = golden();
    let message = |settings: ForestSettings| {
        RandomSurvivalForest::fit(&x, &outcomes, &settings).map(drop).unwrap_err().to_string()
    };
    let default = ForestSettings::default;
    assert_eq!(
        message(ForestSettings { trees: 0, ..default() }),
        "trees is 0, expected a whole number from 1 to 1000000"
    );
    let share = ForestSettings { sampling: Sampling::Subsample(1.5), ..default() };
    assert_eq!(message(share), "sampling.subsample is 1.5, expected a share between 0 and 1");
    let fit = |x: &Array2<f64>, outcomes: &Outcomes| {
        RandomSurvivalForest::fit(x, outcomes, &default()).map(drop).unwrap_err().to_string()
    };
    let mut missing = x.clone();
    missing[[3, 1]] = f64::NAN;
    assert_eq!(fit(&missing, &outcomes), "covariate 1 of row 3 is NaN, expected a finite number");
    let none = Outcomes::new(vec![1.0; 200], vec![false; 200]).unwrap();
    assert_eq!(fit(&x, &none), "no sample has an event, expected at least one");
    assert_eq!(fit(&Array2::zeros((0, 4)), &outcomes), "covariates of 0 samples, expected those of 200");
    let (forest, _) = RandomSurvivalForest::fit(&x, &outcomes, &ForestSettings { trees: 1, ..default() }).unwrap();
    let narrow = forest.risk(&Array2::zeros((1, 2))).unwrap_err().to_string();
    assert_eq!(narrow, "2 covariates, expected the 4 of the fit");
}
