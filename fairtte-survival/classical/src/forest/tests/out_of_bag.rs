#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use ndarray::Array2;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use super::super::*;
use crate::ColumnsPerSplit;

/// The hazard rises with the first column; the second and third say nothing.
fn samples(n: usize, seed: u64) -> (Array2<f64>, Outcomes) {
    let mut rng = stream(seed, "test", &[]);
    let columns = Array2::from_shape_fn((n, 3), |_| rng.random::<f64>());
    let mut waited = |rate: f64| (-(1.0 - rng.random::<f64>()).ln() / rate * 20.0).ceil();
    let (mut time, mut event) = (Vec::new(), Vec::new());
    for row in columns.rows() {
        let (own, censored) = (waited((3.0 * row[0]).exp()), waited(1.0));
        time.push(own.min(censored));
        event.push(own <= censored);
    }
    (columns, Outcomes::new(time, event).unwrap())
}

/// Harrell's C by a double loop.
fn concordance_by_definition(outcomes: &Outcomes, risk: &[f64]) -> f64 {
    let (time, event) = (outcomes.time(), outcomes.event());
    let (mut sum, mut n) = (0.0, 0.0);
    for i in (0..risk.len()).filter(|i| event[*i]) {
        for j in (0..risk.len()).filter(|j| time[*j] > time[i] || (time[*j] >= time[i] && !event[*j])) {
            n += 1.0;
            sum += if risk[i] > risk[j] + 1e-8 {
                1.0
            } else if (risk[i] - risk[j]).abs() <= 1e-8 {
                0.5
            } else {
                0.0
            };
        }
    }
    sum / n
}

#[test]
fn the_error_is_one_minus_c_of_the_samples_with_a_risk() {
    let (columns, outcomes) = samples(80, 1);
    let settings = ForestSettings { trees: 4, ..ForestSettings::ranger() };
    let (_, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
    let rows: Vec<usize> = (0..80).filter(|row| out_of_bag.risk[*row].is_some()).collect();
    assert!(rows.len() < 80, "some sample is in every bag");
    let risk: Vec<f64> = out_of_bag.risk.iter().flatten().copied().collect();
    let expected = 1.0 - concordance_by_definition(&outcomes.select(&rows), &risk);
    let found = out_of_bag.error(&outcomes).unwrap();
    assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
    let (_, others) = samples(81, 1);
    assert_eq!(out_of_bag.error(&others).unwrap_err().to_string(), "outcomes of 81 samples, expected those of 80");
}

#[test]
fn out_of_bag_curves_are_those_of_the_forest_of_the_trees_without_the_sample() {
    let (columns, outcomes) = samples(60, 2);
    let settings = ForestSettings { trees: 5, ..ForestSettings::ranger() };
    let forest = settings.fit(&columns, &outcomes).unwrap();
    let grid: Vec<f64> = (0..30).map(f64::from).collect();
    let found = forest.out_of_bag_curves(&columns, &grid).unwrap();
    let mut rows = Vec::new();
    for row in 0..60 {
        let is_out = |tree: usize| {
            let mut drawn = Vec::new();
            draw(60, &Units::default(), settings.sampling, &mut drawn, &mut tree_stream(settings.seed, tree));
            drawn[row] == 0
        };
        let trees: Vec<Tree> = (0..5).filter(|tree| is_out(*tree)).map(|tree| forest.trees[tree].clone()).collect();
        if trees.is_empty() {
            continue;
        }
        let part = RandomSurvivalForest { trees, ..forest.clone() };
        let expected = part.survival_curves(&columns.select(Axis(0), &[row]), &grid).unwrap();
        let survival = found.curves.survival();
        let own = survival.row(rows.len());
        for (found, expected) in own.iter().zip(expected.survival()) {
            assert!((found - expected).abs() < 1e-14, "{found} for {expected}");
        }
        rows.push(row);
    }
    assert_eq!(found.rows, rows);
    assert!(rows.len() < 60, "some sample is in every bag");
}

#[test]
fn nothing_is_out_of_the_bag_of_all_samples() {
    let (columns, outcomes) = samples(40, 3);
    let settings = ForestSettings { trees: 3, sampling: Sampling::All, ..ForestSettings::ranger() };
    let (forest, out_of_bag) = RandomSurvivalForest::fit(&columns, &outcomes, &settings).unwrap();
    let expected = "no out-of-bag samples, expected a sampling that leaves some out and more than one tree";
    assert_eq!(out_of_bag.error(&outcomes).unwrap_err().to_string(), expected);
    assert_eq!(forest.out_of_bag_curves(&columns, &[1.0]).unwrap_err().to_string(), expected);
    assert_eq!(forest.importance(&columns, &outcomes, 0).unwrap_err().to_string(), expected);
    let (others, _) = samples(41, 3);
    let message = forest.out_of_bag(&others).unwrap_err().to_string();
    assert_eq!(message, "covariates of 41 samples, expected those of 40");
}

#[test]
fn the_column_that_acts_is_the_most_important_and_noise_is_nearly_nothing() {
    let (columns, outcomes) = samples(400, 4);
    let settings = ForestSettings { trees: 200, ..ForestSettings::ranger() };
    let forest = settings.fit(&columns, &outcomes).unwrap();
    let importance = forest.importance(&columns, &outcomes, 9).unwrap();
    assert_eq!(importance.n_trees, 200);
    let [causal, noise, other] = [0, 1, 2].map(|column| importance.columns[column]);
    assert!(causal.value > 0.05 && causal.value > 10.0 * causal.standard_error, "{causal:?}");
    for noise in [noise, other] {
        assert!(noise.value.abs() < 0.015 && noise.value < causal.value / 5.0, "{noise:?}");
        assert!(noise.standard_error > 0.0 && noise.standard_error < 0.005, "{noise:?}");
    }
    assert_eq!(forest.importance(&columns, &outcomes, 9).unwrap(), importance, "the same seed");
    assert_ne!(forest.importance(&columns, &outcomes, 10).unwrap(), importance, "another seed");
}

#[test]
fn importance_is_the_mean_fall_of_c_over_trees() {
    // With one column, its permutation among samples permutes their risks.
    let (columns, outcomes) = samples(50, 5);
    let columns = columns.select(Axis(1), &[0]);
    let settings = ForestSettings { trees: 6, columns_per_split: ColumnsPerSplit::All, ..ForestSettings::ranger() };
    let forest = settings.fit(&columns, &outcomes).unwrap();
    let found = forest.importance(&columns, &outcomes, 3).unwrap();
    let fall = |tree: usize| {
        let mut drawn = Vec::new();
        draw(50, &Units::default(), settings.sampling, &mut drawn, &mut tree_stream(settings.seed, tree));
        let rows: Vec<usize> = (0..50).filter(|row| drawn[*row] == 0).collect();
        let mut permuted = rows.clone();
        permuted.shuffle(&mut stream(3, "classical/forest/importance", &[tree as u64, 0]));
        let risk = |rows: &[usize]| -> Vec<f64> {
            rows.iter().map(|row| forest.trees[tree].leaf(|_| columns[[*row, 0]]).mortality).collect()
        };
        let c = |risk: Vec<f64>| concordance_by_definition(&outcomes.select(&rows), &risk);
        c(risk(&rows)) - c(risk(&permuted))
    };
    let falls: Vec<f64> = (0..6).map(fall).collect();
    let mean = falls.iter().sum::<f64>() / 6.0;
    let variance = falls.iter().map(|fall| (fall - mean).powi(2)).sum::<f64>() / 5.0;
    let own = found.columns[0];
    assert!((own.value - mean).abs() < 1e-12, "{} for {mean}", own.value);
    assert!((own.standard_error - (variance / 6.0).sqrt()).abs() < 1e-12, "{}", own.standard_error);
}
