//! What holds for every forest.

#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use ndarray::Array2;
use proptest::prelude::*;
use rand::seq::SliceRandom as _;

use super::super::tree::TreeNode;
use super::super::*;
use crate::ColumnsPerSplit;

/// Samples with distinct times: the first column says when the event comes, the second takes four values, the last is constant.
fn samples(n: usize, seed: u64) -> (Array2<f64>, Outcomes) {
    let mut rng = stream(seed, "test", &[]);
    let columns = Array2::from_shape_fn((n, 4), |(_, column)| match column {
        1 => f64::from(rng.random_range(0..4_u8)),
        3 => 7.0,
        _ => rng.random::<f64>(),
    });
    let time = columns.column(0).iter().map(|value| (2.0 * value + rng.random::<f64>()).exp()).collect();
    let event = (0..n).map(|row| row == 0 || rng.random::<f64>() < 0.7).collect();
    (columns, Outcomes::new(time, event).unwrap())
}

fn settings() -> impl Strategy<Value = ForestSettings> {
    let preset = prop::sample::select(vec![Preset::Ranger, Preset::Rfsrc, Preset::ScikitSurvival]);
    let columns = prop::sample::select(vec![
        ColumnsPerSplit::Sqrt,
        ColumnsPerSplit::SqrtRoundedUp,
        ColumnsPerSplit::All,
        ColumnsPerSplit::Count(3),
    ]);
    (preset, columns, 1..6_u32, 0..3_u32, any::<u64>()).prop_map(|(preset, columns_per_split, leaf, events, seed)| {
        ForestSettings {
            trees: 7,
            columns_per_split,
            min_samples_leaf: leaf,
            min_events_leaf: events,
            seed,
            ..preset.settings()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn curves_start_at_most_at_one_and_never_rise(settings in settings(), n in 2..80_usize) {
        let (columns, outcomes) = samples(n, settings.seed);
        let (forest, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
        let mut grid: Vec<f64> = (0..40).map(|k| f64::from(k) * 0.5).collect();
        grid.push(1e6);
        // Before the curves are checked by their type, which would take a small rise away.
        let raw = forest.survival(&columns, &grid, |_, _| true);
        for curve in raw.rows() {
            prop_assert!(curve.iter().all(|s| (0.0..=1.0).contains(s)));
            prop_assert!(curve.iter().zip(curve.iter().skip(1)).all(|(before, after)| after <= before));
            prop_assert!(curve[0] > 1.0 - 1e-15, "no event at time 0");
        }
        let n_times = outcomes.event().iter().filter(|event| **event).count() as f64;
        for risk in forest.risk(&columns).unwrap() {
            prop_assert!(risk >= 0.0 && risk <= n_times * (1.0 + (n as f64).ln()), "{}", risk);
        }
        prop_assert!(out_of_bag.risk.iter().zip(&out_of_bag.n_trees).all(|(risk, n)| risk.is_some() == (*n > 0)));
    }

    #[test]
    fn a_constant_column_is_never_chosen(settings in settings()) {
        let (columns, outcomes) = samples(60, settings.seed);
        let (forest, _) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
        for node in forest.trees.iter().flat_map(|tree| &tree.nodes) {
            let is_chosen = matches!(node, TreeNode::Split { column: 3, .. });
            prop_assert!(!is_chosen);
        }
        let importance = forest.importance(&columns, &outcomes, 1).unwrap();
        prop_assert_eq!(importance.columns[3], ColumnImportance { value: 0.0, standard_error: 0.0 });
    }

    #[test]
    fn the_order_of_the_rows_is_nothing_to_a_tree(settings in settings(), n in 2..80_usize) {
        let (columns, outcomes) = samples(n, settings.seed);
        let mut rows: Vec<usize> = (0..n).collect();
        rows.shuffle(&mut stream(settings.seed, "test/rows", &[]));
        let grow = |columns: &Array2<f64>, outcomes: &Outcomes, drawn: &[u32]| {
            let training = Training::new(columns, outcomes).unwrap();
            let n_later = training.event_times_from();
            Grower::new(&training, &n_later, &settings).grow(drawn, &mut stream(settings.seed, "test/tree", &[]))
        };
        let mut drawn = Vec::new();
        draw(n, &Units::default(), settings.sampling, &mut drawn, &mut stream(settings.seed, "test/draw", &[]));
        let tree = grow(&columns, &outcomes, &drawn);
        let drawn: Vec<u32> = rows.iter().map(|row| drawn[*row]).collect();
        prop_assert_eq!(grow(&columns.select(Axis(0), &rows), &outcomes.select(&rows), &drawn), tree);
    }

    #[test]
    fn nodes_have_the_size_that_the_settings_say(settings in settings()) {
        let (columns, outcomes) = samples(150, settings.seed);
        let (forest, _) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
        for (place, tree) in forest.trees.iter().enumerate() {
            let mut drawn = Vec::new();
            draw(150, &Units::default(), settings.sampling, &mut drawn, &mut tree_stream(settings.seed, place));
            let counted: Vec<u32> = match settings.node_sizes {
                NodeSizes::Draws => drawn,
                NodeSizes::Samples => drawn.iter().map(|n| (*n).min(1)).collect(),
            };
            for (node, (size, n_events)) in tree.nodes.iter().zip(sizes(tree, &columns, &outcomes, &counted)) {
                if matches!(node, TreeNode::Split { .. }) {
                    prop_assert!(size >= settings.min_samples_split && size >= 2 * settings.min_samples_leaf);
                }
                if tree.nodes.len() > 1 {
                    prop_assert!(size >= settings.min_samples_leaf && n_events >= settings.min_events_leaf);
                }
            }
        }
    }
}

/// Samples and events of every node, by how often they were drawn.
fn sizes(tree: &Tree, columns: &Array2<f64>, outcomes: &Outcomes, drawn: &[u32]) -> Vec<(u32, u32)> {
    let mut sizes = vec![(0, 0); tree.nodes.len()];
    for (row, drawn) in drawn.iter().enumerate() {
        let mut at = 0;
        loop {
            sizes[at].0 += drawn;
            sizes[at].1 += if outcomes.event()[row] { *drawn } else { 0 };
            match tree.nodes[at] {
                TreeNode::Leaf { .. } => break,
                TreeNode::Split { column, threshold, right } => {
                    at = if columns[[row, column as usize]] <= threshold { at + 1 } else { right as usize };
                }
            }
        }
    }
    sizes
}

/// Mean size of the leaves.
fn mean_leaf(settings: &ForestSettings, columns: &Array2<f64>, outcomes: &Outcomes) -> f64 {
    let (forest, _) = RandomSurvivalForest::fit(columns, outcomes, settings).unwrap();
    let (mut sum, mut n) = (0, 0);
    for (place, tree) in forest.trees.iter().enumerate() {
        let mut drawn = Vec::new();
        draw(columns.nrows(), &Units::default(), settings.sampling, &mut drawn, &mut tree_stream(settings.seed, place));
        for (node, (size, _)) in tree.nodes.iter().zip(sizes(tree, columns, outcomes, &drawn)) {
            if matches!(node, TreeNode::Leaf { .. }) {
                sum += size;
                n += 1;
            }
        }
    }
    f64::from(sum) / f64::from(n)
}

#[test]
fn fifteen_is_about_the_mean_leaf_of_rfsrc_and_three_the_least_of_ranger() {
    let (columns, outcomes) = samples(2000, 5);
    let few = |settings: ForestSettings| ForestSettings { trees: 10, ..settings };
    let rfsrc = mean_leaf(&few(ForestSettings::rfsrc()), &columns, &outcomes);
    assert!((8.0..18.0).contains(&rfsrc), "{rfsrc}");
    let ranger = mean_leaf(&few(ForestSettings::ranger()), &columns, &outcomes);
    assert!((3.0..6.0).contains(&ranger), "{ranger}");
}

/// By tree, whether the root is split, and of those how many of its children are.
fn splits(constant_columns: ConstantColumns) -> (usize, usize) {
    let (mut columns, outcomes) = samples(200, 3);
    columns.column_mut(1).fill(0.0);
    columns.column_mut(2).fill(0.0);
    let settings = ForestSettings {
        trees: 300,
        columns_per_split: ColumnsPerSplit::Count(3),
        constant_columns,
        max_depth: Some(2),
        ..ForestSettings::ranger()
    };
    let (forest, _) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
    let mut n = (0, 0);
    for tree in &forest.trees {
        if let TreeNode::Split { right, .. } = tree.nodes[0] {
            n.0 += 1;
            let is_split = |node: usize| usize::from(matches!(tree.nodes[node], TreeNode::Split { .. }));
            n.1 += is_split(1) + is_split(right as usize);
        }
    }
    n
}

#[test]
fn constant_columns_count_as_drawn_or_not() {
    // Three of four columns are constant and three are drawn: the other one is among them in 3 of 4 nodes.
    let near = |found: usize, share: f64, of: usize| (found as f64 - share * of as f64).abs() < 0.1 * of as f64;
    let (roots, children) = splits(ConstantColumns::Counted);
    assert!(near(roots, 0.75, 300) && near(children, 0.75, 2 * roots), "{roots} {children}");
    // Below a root that drew two of the three, only one is left: all children are split but the few that are too small.
    let (roots, children) = splits(ConstantColumns::CountedOnce);
    assert!(near(roots, 0.75, 300) && children > 2 * roots - 10, "{roots} {children}");
    for policy in [ConstantColumns::Replaced, ConstantColumns::ReplacedIfAll] {
        let (roots, children) = splits(policy);
        assert!(roots == 300 && children > 590, "{roots} {children}");
    }
}
