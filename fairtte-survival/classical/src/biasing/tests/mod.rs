#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a failed test may panic, and its values are exact")]

use std::sync::Mutex;

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array2, Axis};
use rand::RngExt as _;

use super::folds::{folds, halves};
use super::method::bias;
use super::*;
use crate::{ForestSettings, SurvivalEstimator, SurvivalModel};

mod published;

/// An estimator that predicts the Kaplan-Meier curve of its samples and has a column, negated, as the risk. It records what it is
/// fitted to.
#[derive(Default)]
struct Recorder {
    fits: Mutex<Vec<(Array2<f64>, Outcomes)>>,
}

struct Settings<'a>(&'a Recorder);

struct Model {
    curve: KaplanMeier,
    n_columns: usize,
}

impl SurvivalEstimator for Settings<'_> {
    type Model = Model;

    fn check(&self) -> Result<(), ClassicalError> {
        Ok(())
    }

    fn fit_until(&self, covariates: &Array2<f64>, outcomes: &Outcomes, _: &Stop) -> Result<Model, ClassicalError> {
        self.0.fits.lock().unwrap().push((covariates.clone(), outcomes.clone()));
        Ok(Model { curve: KaplanMeier::fit(outcomes)?, n_columns: covariates.ncols() })
    }
}

impl SurvivalModel for Model {
    fn n_covariates(&self) -> usize {
        self.n_columns
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let curve = |(_, k): (usize, usize)| self.curve.at(grid[k]);
        Ok(SurvivalCurves::new(grid.to_vec(), Array2::from_shape_fn((covariates.nrows(), grid.len()), curve))?)
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        Ok(covariates.column(0).iter().map(|value| -value).collect())
    }
}

/// Every sample's time is its first covariate plus 1, so that a permuted sample is recognised; the second and third encode one covariate.
fn table(n: usize, is_event: impl Fn(usize) -> bool) -> BiasingTable {
    let covariates = Array2::from_shape_fn((n, 3), |(row, column)| (row + 1000 * column) as f64);
    let times = (0..n).map(|row| row as f64 + 1.0).collect();
    let outcomes = Outcomes::new(times, (0..n).map(is_event).collect()).unwrap();
    BiasingTable::new("table", covariates, vec![0, 1, 1], outcomes).unwrap()
}

fn settings() -> BiasingSettings {
    BiasingSettings { measures: Measure::ALL.to_vec(), ..BiasingSettings::default() }
}

fn cell(method: Biasing, share: f64) -> Cell {
    Cell { method, share, repeat: 0 }
}

/// The halves as they were trained on: of each half, every sample's covariates and time.
fn trained(recorder: &Recorder) -> [Vec<(Vec<f64>, f64)>; 2] {
    let fits = recorder.fits.lock().unwrap();
    assert_eq!(fits.len(), 6, "three folds in both halves");
    [&fits[..3], &fits[3..]].map(|fits| {
        let samples = fits.iter().flat_map(|(covariates, outcomes)| {
            covariates.axis_iter(Axis(0)).zip(outcomes.time()).map(|(row, time)| (row.to_vec(), *time))
        });
        let mut samples: Vec<_> = samples.collect();
        samples.sort_by(|a, b| a.1.total_cmp(&b.1));
        // Every sample is in two of three training sets, each time with the same covariates.
        let pairs: Vec<_> = samples.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        assert!(pairs.iter().all(|(a, b)| a == b));
        pairs.into_iter().map(|(a, _)| a).collect()
    })
}

fn own(sample: &(Vec<f64>, f64)) -> bool {
    sample.0[0] == sample.1 - 1.0
}

#[test]
fn the_drawn_samples_of_one_half_exchange_their_covariates() {
    let table = table(601, |row| row % 3 > 0);
    for method in [Biasing::Permutation, Biasing::ColumnPermutation] {
        let recorder = Recorder::default();
        let result = run_cell(&table, cell(method, 0.5), &settings(), |_| Settings(&recorder)).unwrap();
        let [biased, unbiased] = trained(&recorder);
        assert_eq!((result.n_half, biased.len(), unbiased.len()), (300, 300, 301));
        assert!(unbiased.iter().all(own));
        let mut all: Vec<f64> = biased.iter().chain(&unbiased).map(|sample| sample.1).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, table.outcomes().time(), "the halves are the table");
        // 150 are drawn in the mean, with a standard deviation of 8.7; of them one in the mean keeps its own covariates.
        let moved = biased.iter().filter(|sample| !own(sample)).count();
        assert!((110..190).contains(&result.n_drawn) && (result.n_drawn - 8..=result.n_drawn).contains(&moved));
        // Covariates change places and are neither lost nor doubled.
        for column in 0..3 {
            let mut values: Vec<f64> = biased.iter().map(|sample| sample.0[column]).collect();
            values.sort_by(f64::total_cmp);
            let expected: Vec<f64> = biased.iter().map(|sample| sample.1 - 1.0 + 1000.0 * column as f64).collect();
            assert_eq!(values, expected);
        }
        let together = |a: usize, b: usize| {
            biased.iter().filter(|sample| sample.0[b] - sample.0[a] == 1000.0 * (b - a) as f64).count()
        };
        assert_eq!(together(1, 2), 300, "columns of one covariate stay together");
        if method == Biasing::Permutation {
            assert_eq!(together(0, 1), 300, "rows stay together");
        } else {
            assert!(together(0, 1) < 300 - moved + 9, "covariates do not");
        }
    }
}

#[test]
fn undersampling_deletes_the_drawn_samples_of_one_half() {
    let table = table(601, |row| row % 3 > 0);
    let recorder = Recorder::default();
    let result = run_cell(&table, cell(Biasing::Undersampling, 0.75), &settings(), |_| Settings(&recorder)).unwrap();
    let fits = recorder.fits.lock().unwrap();
    let sizes: Vec<usize> = fits.iter().map(|(covariates, _)| covariates.nrows()).collect();
    let left = 300 - result.n_drawn;
    // 225 are drawn in the mean, with a standard deviation of 7.5.
    assert!((195..255).contains(&result.n_drawn));
    assert_eq!(sizes[..3].iter().sum::<usize>(), 2 * left);
    assert_eq!(sizes[3..].iter().sum::<usize>(), 2 * 301);
    assert!(fits.iter().all(|(x, outcomes)| x.column(0).iter().zip(outcomes.time()).all(|(x, t)| *x == t - 1.0)));
}

#[test]
fn without_a_share_nothing_is_biased() {
    let table = table(90, |_| true);
    for method in Biasing::ALL {
        let recorder = Recorder::default();
        let result = run_cell(&table, cell(method, 0.0), &settings(), |_| Settings(&recorder)).unwrap();
        assert_eq!(result.n_drawn, 0);
        assert!(trained(&recorder).iter().flatten().all(own));
    }
}

#[test]
fn the_kaplan_meier_prediction_explains_nothing_and_a_perfect_risk_is_concordant() {
    let table = table(400, |row| row % 4 > 0);
    let recorder = Recorder::default();
    let result = run_cell(&table, cell(Biasing::Permutation, 0.0), &settings(), |_| Settings(&recorder)).unwrap();
    for losses in &result.losses {
        let (biased, unbiased) = (losses.biased.unwrap(), losses.unbiased.unwrap());
        match losses.measure {
            Measure::HarrellC | Measure::UnoC => assert_eq!((biased, unbiased), (1.0, 1.0)),
            // Observed over expected by a curve of other samples of the same distribution: 1 up to chance.
            Measure::CalibrationAlpha => assert!((biased - 1.0).abs() < 0.3 && (unbiased - 1.0).abs() < 0.3),
            Measure::DCalibration => assert!(biased > 0.0 && unbiased > 0.0),
            _ => assert_eq!((biased, unbiased), (0.0, 0.0), "{:?}", losses.measure),
        }
        assert_eq!(losses.difference(), Some((biased - unbiased).abs()));
    }
}

#[test]
fn a_share_of_permuted_samples_lowers_concordance_as_theory_says() {
    // Without censoring a pair is concordant with probability 1 if neither was drawn (0.16), 2/3 if one was (0.48), and 1/2 if both
    // were (0.36): 0.66. The direct double loop over the samples of the half is the same without folds.
    let table = table(3000, |_| true);
    let recorder = Recorder::default();
    let result = run_cell(&table, cell(Biasing::Permutation, 0.6), &settings(), |_| Settings(&recorder)).unwrap();
    let c = result.losses.iter().find(|losses| losses.measure == Measure::HarrellC).unwrap();
    let [biased, _] = trained(&recorder);
    let mut concordant = 0_u32;
    for (i, a) in biased.iter().enumerate() {
        concordant += u32::try_from(biased[i + 1..].iter().filter(|b| a.0[0] < b.0[0]).count()).unwrap();
    }
    let pairs = biased.len() * (biased.len() - 1) / 2;
    let expected = f64::from(concordant) / pairs as f64;
    assert!((c.biased.unwrap() - expected).abs() < 0.02, "{} for {expected}", c.biased.unwrap());
    assert!((expected - 0.66).abs() < 0.02, "{expected}");
    assert_eq!(c.unbiased, Some(1.0));
}

#[test]
fn losses_are_the_means_over_folds_of_the_training_folds_baseline() {
    // C of the two samples of a fold is 1 or 0 by fold, so that a mean over folds differs from a pooled value.
    let covariates = Array2::from_shape_fn((4, 1), |(row, _)| [0.0, 1.0, 2.0, 3.0][row]);
    let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true; 4]).unwrap();
    let table = BiasingTable::new("small", covariates, vec![0], outcomes).unwrap();
    let settings = BiasingSettings { folds: 2, measures: vec![Measure::HarrellC], ..settings() };
    let recorder = Recorder::default();
    let result = run_cell(&table, cell(Biasing::Permutation, 0.0), &settings, |_| Settings(&recorder)).unwrap();
    // A fold of one sample has no pair, and says so.
    let losses = &result.losses[0];
    assert_eq!((losses.biased, losses.unbiased, losses.difference()), (None, None, None));
    let reason = losses.reason.as_deref().unwrap();
    assert!(reason.contains("pair"), "{reason}");
}

#[test]
fn a_cell_depends_on_nothing_but_itself_and_repeats_differ() {
    let table = forest_table(120);
    let settings = BiasingSettings { repeats: 3, shares: vec![0.0, 0.5], ..settings() };
    let forest = |seed| ForestSettings { trees: 4, min_samples_leaf: 5, seed, ..ForestSettings::default() };
    let all: Vec<CellResult> =
        cells(&settings).into_iter().map(|cell| run_cell(&table, cell, &settings, forest).unwrap()).collect();
    assert_eq!(all.len(), 2 * 2 * 3);
    let alone = run_cell(&table, all[7].cell, &settings, forest).unwrap();
    assert_eq!(alone, all[7]);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| run_cell(&table, all[7].cell, &settings, forest).unwrap()), all[7]);
    let c = |result: &CellResult| result.losses[4].biased;
    assert!(c(&all[0]) != c(&all[1]) && c(&all[1]) != c(&all[2]));
    let other = BiasingSettings { seed: 1, ..settings.clone() };
    assert_ne!(run_cell(&table, all[7].cell, &other, forest).unwrap().losses, all[7].losses);
    let json = serde_json::to_string(&all[7]).unwrap();
    assert_eq!(serde_json::from_str::<CellResult>(&json).unwrap(), all[7]);
}

/// Exponential times that the first of two covariates decides, a quarter censored.
fn forest_table(n: usize) -> BiasingTable {
    let mut rng = stream(3, "test/biasing", &[]);
    let covariates = Array2::from_shape_fn((n, 2), |_| rng.random::<f64>());
    let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
    let both: Vec<(f64, f64)> = covariates.column(0).iter().map(|x| (waited((4.0 * x).exp()), waited(2.0))).collect();
    let times = both.iter().map(|(event, censored)| event.min(*censored)).collect();
    let events = both.iter().map(|(event, censored)| event <= censored).collect();
    BiasingTable::new("exponential", covariates, vec![0, 1], Outcomes::new(times, events).unwrap()).unwrap()
}

#[test]
fn concordance_notices_permuted_covariates_of_a_forest() {
    let table = forest_table(300);
    let settings = BiasingSettings {
        methods: vec![Biasing::Permutation],
        shares: vec![0.0, 0.3, 0.6, 0.9],
        repeats: 3,
        ..settings()
    };
    let forest = |seed| ForestSettings { trees: 25, seed, ..ForestSettings::default() };
    let results: Vec<CellResult> =
        cells(&settings).into_iter().map(|cell| run_cell(&table, cell, &settings, forest).unwrap()).collect();
    let analysis = analyse(&results).unwrap();
    let of = |measure| analysis.measures.iter().find(|of| of.measure == measure).unwrap();
    let c = of(Measure::HarrellC);
    assert!(c.of_means.unwrap().line.slope > 0.15, "{:?}", c.of_means);
    assert!(c.shares[3].mean.unwrap() > c.shares[0].mean.unwrap() + 0.15);
    assert!(of(Measure::Rsbs).of_means.unwrap().line.slope > 0.1, "{:?}", of(Measure::Rsbs).of_means);
}

#[test]
fn halves_and_folds_are_even() {
    let mut rng = stream(0, "test", &[]);
    for n in [2, 7, 100] {
        let [first, second] = halves(n, &mut rng);
        assert_eq!((first.len(), second.len()), (n / 2, n - n / 2));
        let mut all = [first, second].concat();
        all.sort_unstable();
        assert_eq!(all, (0..n).collect::<Vec<_>>());
        let folds = folds(n, 3, &mut rng);
        let size = |fold| folds.iter().filter(|of| **of == fold).count();
        assert!((0..3).all(|fold| (n / 3..=n.div_ceil(3)).contains(&size(fold))));
    }
    assert_ne!(halves(100, &mut rng), halves(100, &mut rng));
}

#[test]
fn the_share_of_drawn_samples_is_the_probability() {
    let covariates = Array2::zeros((10_000, 1));
    let rows: Vec<usize> = (0..10_000).collect();
    let mut rng = stream(0, "test", &[]);
    for share in [0.0, 0.1, 0.9] {
        let drawn = bias(Biasing::Permutation, &rows, share, &covariates, &[0], &mut rng).n_drawn;
        // Four standard deviations of at most 50.
        assert!((drawn as f64 - 10_000.0 * share).abs() <= 4.0 * (10_000.0 * share * (1.0 - share)).sqrt(), "{drawn}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let message = |settings: BiasingSettings| settings.check().unwrap_err().to_string();
    let default = BiasingSettings::default;
    assert_eq!(default().check(), Ok(()));
    assert_eq!(message(BiasingSettings { shares: vec![1.0], ..default() }), "shares is 1, expected numbers in [0, 1)");
    let twice = BiasingSettings { shares: vec![0.5, 0.5], ..default() };
    assert_eq!(message(twice), "shares is 0.5, expected each share once");
    assert_eq!(message(BiasingSettings { shares: vec![], ..default() }), "shares is empty, expected at least one");
    let methods = vec![Biasing::Permutation; 2];
    assert_eq!(message(BiasingSettings { methods, ..default() }), "methods is permutation, expected each method once");
    let measures = vec![Measure::Snl; 2];
    assert_eq!(message(BiasingSettings { measures, ..default() }), "measures is snl, expected each measure once");
    let expected = "a whole number from 1 to 100000";
    for repeats in [0, 100_001] {
        let said = message(BiasingSettings { repeats, ..default() });
        assert_eq!(said, format!("repeats is {repeats}, expected {expected}"));
    }
    assert_eq!(message(BiasingSettings { folds: 1, ..default() }), "folds is 1, expected at least 2");
    let bad = run_cell(&forest_table(30), cell(Biasing::Permutation, 0.1), &default(), |seed| ForestSettings {
        trees: 0,
        seed,
        ..ForestSettings::default()
    });
    assert_eq!(bad.unwrap_err().to_string(), "trees is 0, expected a whole number from 1 to 1000000");
}

#[test]
fn a_table_that_cannot_be_used_is_named() {
    let outcomes = || Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
    let new = |covariates: Array2<f64>, variables: Vec<usize>| {
        BiasingTable::new("t", covariates, variables, outcomes()).map(drop).unwrap_err().to_string()
    };
    assert_eq!(new(Array2::zeros((2, 0)), vec![]), "no covariates, expected at least one");
    assert_eq!(new(Array2::zeros((3, 1)), vec![0]), "covariates of 3 samples, expected those of 2");
    assert_eq!(new(Array2::zeros((2, 1)), vec![0, 1]), "2 covariates, expected the 1 of the fit");
}

#[test]
fn names_are_read_back() {
    for method in Biasing::ALL {
        assert_eq!(Biasing::from_name(method.name()), Some(method));
        assert_eq!(serde_json::to_value(method).unwrap(), method.name());
    }
    for measure in Measure::ALL {
        assert_eq!(Measure::from_name(measure.name()), Some(measure));
        assert_eq!(serde_json::to_value(measure).unwrap(), measure.name());
    }
    assert_eq!((Biasing::from_name("none"), Measure::from_name("auc")), (None, None));
}
