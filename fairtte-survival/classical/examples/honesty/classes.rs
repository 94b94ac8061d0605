//! Probabilities of a class: coverage of the intervals of their metrics, and `DeLong`'s interval and test.

use fairtte_metrics::classification::{ClassPredictions, delong, delong_test};
use fairtte_metrics::evaluation::{CLASS_METRICS, ClassSettings, evaluate_classes};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::statistics::normal_quantile;
use fairtte_metrics::{EvaluationSettings, GroupId, Groups, SubjectId};
use rand::RngExt as _;
use rayon::prelude::*;

use crate::design::normal;
use crate::intervals::{KIND_NAMES, KINDS, numbers};
use crate::table::{Part, covered, percent, shares};

const DELONG: &str =
    "n | positive | DeLong's interval of the AUC contains it | DeLong's test of two equal models rejects";
/// Errors of the logit in the two groups.
const NOISE: [f64; 2] = [0.6, 1.2];
/// Intercept of the logit, and the threshold at or above which a person is called positive.
const RARE: [(f64, f64, &str); 2] = [(0.0, 0.5, "50 %"), (-3.1, 0.2, "10 %")];

pub fn parts() -> Vec<Part> {
    let columns = format!("n | positive | metric of a class | {KIND_NAMES}");
    let sizes: Vec<(usize, usize)> = [200, 1_000].into_iter().flat_map(|n| [(n, 0), (n, 1)]).collect();
    let metrics = sizes.iter().map(|&(n, rare)| {
        Part::new(format!("classes-{n}-{rare}"), columns.clone(), 200, move |cohorts| rows(n, RARE[rare], cohorts))
    });
    let tests = sizes.iter().map(|&(n, rare)| {
        let row = move |cohorts| vec![of_delong(n, RARE[rare], cohorts)];
        Part::new(format!("delong-{n}-{rare}"), DELONG, 2_000, row)
    });
    metrics.chain(tests).collect()
}

/// Classes of people with the logit a + 1.5 x, x from N(0, 1), and probabilities of it with the error `noise` e in turn.
fn draw(n: usize, intercept: f64, noise: [f64; 2], seed: u64, model: &str) -> ClassPredictions {
    let one = |row: usize| {
        let mut rng = stream(seed, "honesty/classes", &[row as u64]);
        let logit = intercept + 1.5 * normal(&mut rng);
        let of = |logit: f64| 1.0 / (1.0 + (-logit).exp());
        let is_positive = rng.random::<f64>() < of(logit);
        let error = noise[row % 2] * normal(&mut stream(seed, model, &[row as u64]));
        (of(logit + error), is_positive)
    };
    let (probability, positive) = (0..n).map(one).unzip();
    ClassPredictions::new(probability, positive).unwrap()
}

fn rows(n: usize, (intercept, threshold, positive): (f64, f64, &str), n_cohorts: u64) -> Vec<String> {
    let class = ClassSettings { threshold, ..ClassSettings::default() };
    let report = |n: usize, seed: u64, replicates: usize| {
        let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("{row:06}"))).collect();
        let membership = (0..n).map(|row| Some(GroupId(u32::from(row % 2 == 1)))).collect();
        let groups = Groups::new("group", vec!["0".to_owned(), "1".to_owned()], membership).unwrap();
        let settings =
            EvaluationSettings { replicates, permutations: 0, min_events: 0, ..EvaluationSettings::default() };
        let predictions = draw(n, intercept, NOISE, seed, "honesty/one");
        evaluate_classes(&predictions, &subjects, &[groups], &class, &settings).ok()
    };
    let large = report(200_000, 7, 0).unwrap();
    let truth: Vec<[Option<f64>; KINDS]> =
        large.metrics.iter().map(|metric| numbers(metric).map(|number| number.0)).collect();
    let one = |seed: u64| {
        let report = report(n, 1_000 + seed, 300)?;
        let pairs = report.metrics.iter().zip(&truth);
        Some(pairs.map(|(metric, truth)| covered(&numbers(metric), truth)).collect::<Vec<_>>())
    };
    let found: Vec<Vec<[Option<bool>; KINDS]>> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let row = |place: usize| {
        let name = CLASS_METRICS[place].name;
        format!("| {n} | {positive} | {name} | {} |", shares(found.iter().map(|cohort| cohort[place])))
    };
    (0..CLASS_METRICS.len()).map(row).collect()
}

fn of_delong(n: usize, (intercept, _, positive): (f64, f64, &str), n_cohorts: u64) -> String {
    let noise = [0.9, 0.9];
    let truth = delong(&draw(500_000, intercept, noise, 7, "honesty/one")).unwrap().auc;
    let reach = normal_quantile(0.975);
    let one = |seed: u64| {
        let [first, second] =
            ["honesty/one", "honesty/other"].map(|model| draw(n, intercept, noise, 1_000 + seed, model));
        let found = delong(&first).ok()?;
        let test = delong_test(&first, &second).ok()?;
        Some(((found.auc - truth).abs() <= reach * found.variance.sqrt(), test.p_value <= 0.05))
    };
    let found: Vec<(bool, bool)> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let (contains, rejects) = (found.iter().filter(|of| of.0).count(), found.iter().filter(|of| of.1).count());
    format!("| {n} | {positive} | {} | {} |", percent(contains, found.len()), percent(rejects, found.len()))
}
