use burn::tensor::Tensor;
use fairtte_metrics::Outcomes;
use fairtte_survival::CutPoints;

use super::discrepancy::median_squared_distance;
use super::*;
use crate::Outputs;
use crate::strategies::groups::on_host;
use crate::strategies::{Accumulation, Clock, StepContext};

use crate::strategies::worked_cases::{
    Compared, cases, device, differences, gradient, leaf, name, numbers, tensor, values, whole_numbers,
};

fn groups(codes: &[usize]) -> Vec<Option<(usize, u32)>> {
    codes.iter().map(|code| Some((0, u32::try_from(*code).unwrap()))).collect()
}

fn mean_of_block(kernels: &Tensor<2>, rows: &[usize], columns: &[usize]) -> f64 {
    let (n, values) = (kernels.dims()[0], &values(kernels));
    let sum: f64 = rows.iter().flat_map(|i| columns.iter().map(move |j| values[i * n + j])).sum();
    sum / (rows.len() * columns.len()) as f64
}

#[test]
fn terms_and_gradients_are_those_of_the_worked_cases() {
    let mut compared = Compared::default();
    for case in cases(include_str!("../golden/frl_mmd.json")) {
        let (what, inputs, expected) = (name(&case), &case["inputs"], &case["expected"]);
        let z = leaf(&inputs["z"]);
        let codes = whole_numbers(&inputs["group"]);
        let estimator: Estimator = serde_json::from_value(inputs["estimator"].clone()).unwrap();
        let distances = squared_distances(z.clone());
        let given = numbers(&inputs["gamma"]);
        let kernels = match given.len() {
            7 => Kernels::DomainBed,
            5 => Kernels::MedianScaled,
            _ => Kernels::Single,
        };
        let gammas = kernels.gammas(given[0], &distances);
        compared.close(what, &gammas, &given);
        if let Some(median) = expected.get("median_squared_distance") {
            let found = median_squared_distance(&values(&distances), codes.len()).unwrap();
            compared.close(what, &[found], &numbers(median));
        }
        let kernels = kernel_values(&distances, &gammas);
        let of = |group: usize| -> Vec<usize> { (0..codes.len()).filter(|i| codes[*i] == group).collect() };
        for (key, rows, columns) in [("mean_kxx", 0, 0), ("mean_kyy", 1, 1), ("mean_kxy", 0, 1)] {
            if let Some(mean) = expected.get(key) {
                compared.close(what, &[mean_of_block(&kernels, &of(rows), &of(columns))], &numbers(mean));
            }
        }
        // One case also contains the pairs with a group of one sample, which the strategy skips.
        let smallest = if expected.get("mean_over_pairs").is_some() { 1 } else { SMALLEST_GROUP };
        let contrast = Contrast::new(&groups(&codes), estimator, smallest);
        let term = contrast.of(kernels.clone());
        if let Some(pairs) = expected.get("mmd2_by_pair").and_then(serde_json::Value::as_object) {
            let mut sum = 0.0;
            for (pair, mmd) in pairs {
                let (a, b) = pair.split_once('-').unwrap();
                let members: Vec<usize> = [a, b].iter().map(|g| g.parse().unwrap()).collect();
                let cell = |code: &usize| members.contains(code).then(|| (0, u32::try_from(*code).unwrap()));
                let cells: Vec<_> = codes.iter().map(cell).collect();
                let of_pair = Contrast::new(&cells, estimator, smallest);
                assert_eq!(of_pair.n_used == 0, mmd.is_null(), "{what} {pair}");
                if !mmd.is_null() {
                    let found = values(&of_pair.of(kernels.clone()))[0];
                    compared.close(what, &[found], &numbers(mmd));
                    sum += found;
                }
            }
            compared.close(what, &[sum], &numbers(&expected["sum_over_pairs"]));
        }
        for key in ["mmd2", "mean_over_used_pairs", "mean_over_pairs"] {
            if let Some(mean) = expected.get(key) {
                compared.close(what, &values(&term), &numbers(mean));
            }
        }
        if let Some(used) = expected.get("used_pairs") {
            let skipped = 3 - contrast.n_used;
            compared.close(
                what,
                &[contrast.n_used as f64, skipped as f64],
                &[numbers(used)[0], numbers(&expected["skipped_pairs"])[0]],
            );
        }
        for key in ["d_mmd2_d_z", "d_sum_d_z"] {
            if let Some(slopes) = expected.get(key) {
                let total = term.clone() * contrast.n_used as f64;
                compared.close(what, &gradient(&total, &z), &numbers(slopes));
            }
        }
        compared.cases += 1;
    }
    println!("fair-representation: {} numbers of {} cases compared", compared.numbers, compared.cases);
    assert_eq!(compared, Compared { numbers: 154, cases: 9 });
}

const GROUPS: [usize; 7] = [0, 1, 0, 2, 1, 1, 2];

fn term(z: Vec<f64>, kernels: Kernels, estimator: Estimator, cells: &[Option<(usize, u32)>]) -> (Tensor<2>, Tensor<1>) {
    let z = tensor(z, [cells.len(), 2]).require_grad();
    let distances = squared_distances(z.clone());
    let term =
        Contrast::new(cells, estimator, SMALLEST_GROUP).of(kernel_values(&distances, &kernels.gammas(0.7, &distances)));
    (z, term)
}

#[test]
fn gradients_agree_with_differences() {
    let z: Vec<f64> = (0..14).map(|k| f64::from((k * 5) % 13) / 6.0 - 1.0).collect();
    // The median is held constant, so finite differences do not apply to its bank.
    for kernels in [Kernels::DomainBed, Kernels::Single] {
        for estimator in [Estimator::Biased, Estimator::Unbiased] {
            let (leaf, value) = term(z.clone(), kernels, estimator, &groups(&GROUPS));
            let analytic = gradient(&value, &leaf);
            let numeric = differences(&z, |z| values(&term(z, kernels, estimator, &groups(&GROUPS)).1)[0]);
            assert!(analytic.iter().any(|slope| slope.abs() > 1e-2));
            for (analytic, numeric) in analytic.iter().zip(&numeric) {
                // gamma = 1000 at a squared distance of 1/36 leaves a third derivative of about 1.
                assert!((analytic - numeric).abs() < 1e-8, "{kernels:?} {estimator:?}: {analytic} {numeric}");
            }
        }
    }
}

// k = exp(-gamma d^2) with gamma = ln 2: 2^-1 at distance 1, 2^-4 at distance 2, 2^-9 at 3.
#[test]
fn three_groups_worked_by_hand() {
    let z = tensor(vec![0.0, 1.0, 1.0, 2.0, 3.0, 0.0], [6, 1]);
    let kernels = kernel_values(&squared_distances(z), &[std::f64::consts::LN_2]);
    // Group 0 at 0 and 1, group 1 at 1 and 2, group 2 at 3 alone; the last sample has no group.
    let mut cells = groups(&[0, 0, 1, 1, 2, 0]);
    cells[5] = None;
    let biased = Contrast::new(&cells, Estimator::Biased, SMALLEST_GROUP);
    assert_eq!(biased.n_used, 1);
    let within = (2.0 + 2.0 * 0.5) / 4.0;
    let across = (0.5 + 1.0 + 0.0625 + 0.5) / 4.0;
    assert!((values(&biased.of(kernels.clone()))[0] - (2.0 * within - 2.0 * across)).abs() < 1e-15);
    let unbiased = Contrast::new(&cells, Estimator::Unbiased, SMALLEST_GROUP);
    assert!((values(&unbiased.of(kernels))[0] - (2.0 * 0.5 - 2.0 * across)).abs() < 1e-15);
}

#[test]
fn strata_are_compared_apart_and_samples_without_one_not_at_all() {
    let z: Vec<f64> = (0..16).map(|k| f64::from((k * 5) % 13) / 6.0 - 1.0).collect();
    let cells = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (1, 1), (1, 0)].map(Some);
    let of =
        |cells: &[Option<(usize, u32)>]| values(&term(z.clone(), Kernels::DomainBed, Estimator::Biased, cells).1)[0];
    let only = |stratum: usize| cells.map(|cell| cell.filter(|(y, _)| *y == stratum));
    let (first, second) = (of(&only(0)), of(&only(1)));
    assert!(first > 0.0 && second > 0.0 && (first - second).abs() > 1e-3);
    assert!((of(&cells) - f64::midpoint(first, second)).abs() < 1e-14);
    let contrast = Contrast::new(&cells, Estimator::Biased, SMALLEST_GROUP);
    assert_eq!(contrast.n_used, 2, "never a group of one stratum with a group of the other");
}

#[test]
fn a_batch_without_a_pair_has_no_term() {
    for cells in [groups(&[0, 0, 0, 1]), groups(&[2, 2]), vec![None; 3], groups(&[0, 1, 2])] {
        let contrast = Contrast::new(&cells, Estimator::Unbiased, SMALLEST_GROUP);
        assert_eq!(contrast.n_used, 0);
        assert!(contrast.coefficients.iter().all(|coefficient| coefficient.abs() <= 0.0), "no pair divides by 0");
    }
}

// Two groups far from the origin and close to each other: |x|^2 + |y|^2 - 2 x.y in f32 would be off by 1 and below 0.
#[test]
fn distances_in_single_precision_keep_their_digits_far_from_the_origin() {
    let offsets: [f32; 4] = [0.0, 0.25, 0.5, 1.0];
    let z: Vec<f32> = offsets.iter().flat_map(|offset| vec![4096.0 + offset; 64]).collect();
    let z = Tensor::<2>::from_data(burn::tensor::TensorData::new(z, [4, 64]), &device());
    let distances = on_host(&squared_distances(z).flatten(0, 1));
    for (at, found) in distances.iter().enumerate() {
        let difference = f64::from(offsets[at / 4] - offsets[at % 4]);
        assert!((found - 64.0 * difference * difference).abs() <= 0.0, "{at}: {found}");
    }
}

#[test]
fn equal_representations_have_a_term_of_0_and_no_gradient() {
    for kernels in [Kernels::DomainBed, Kernels::MedianScaled, Kernels::Single] {
        let (leaf, value) = term(vec![0.5; 14], kernels, Estimator::Biased, &groups(&GROUPS));
        assert!(values(&value)[0].abs() < 1e-12);
        assert_eq!(gradient(&value, &leaf), [0.0; 14]);
    }
}

// Of the ten pairs of two samples six are 0: the median of the others, 1, 1, 4 and 9, replaces it.
#[test]
fn a_median_of_0_gives_way_to_that_of_the_positive_distances() {
    let median = |z: Vec<f64>| {
        let n = z.len();
        median_squared_distance(&on_host(&squared_distances(tensor(z, [n, 1])).flatten(0, 1)), n)
    };
    assert_eq!(median(vec![0.0, 0.0, 0.0, 0.0, 3.0]), Some(9.0));
    assert_eq!(median(vec![0.0, 1.0, 3.0]), Some(4.0));
    assert_eq!(median(vec![0.0, 1.0, 3.0, 3.0]), Some(4.0), "0, 1, 4, 4, 9, 9");
    assert_eq!(median(vec![2.0, 2.0, 2.0]), None);
    assert_eq!(median(vec![2.0]), None);
}

#[test]
fn settings_out_of_range_or_without_effect_name_their_key() {
    let default = FairRepresentationConfig::default();
    assert!(default.validate().is_ok());
    assert!(FairRepresentationConfig { kernels: Kernels::Single, gamma: 0.3, ..default }.validate().is_ok());
    let message = |config: FairRepresentationConfig| config.validate().unwrap_err().to_string();
    let lambda = message(FairRepresentationConfig { lambda: -1.0, ..default });
    assert_eq!(lambda, "lambda is -1, expected a finite number >= 0");
    let gamma = message(FairRepresentationConfig { gamma: 0.3, ..default });
    assert_eq!(gamma, "gamma is 0.3, expected no value without kernels = \"single\"");
    let stratum = StratumConfig { kind: crate::strategies::StratumKind::Event, ..StratumConfig::default() };
    let stratum = message(FairRepresentationConfig { stratum, ..default });
    assert_eq!(stratum, "stratum is event, expected no value without conditional = true");
}

fn training_cells(n_groups: u32) -> TrainingCells {
    TrainingCells {
        attribute: "sex".to_owned(),
        levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        groups: (0..120).map(|i| Some(fairtte_metrics::GroupId(i % n_groups))).collect(),
        event: (0..120).map(|i: u32| !i.is_multiple_of(5)).collect(),
        interval: (0..120).map(|i| i / 3 % 6).collect(),
        n_cut_points: 6,
    }
}

#[test]
fn the_objective_adds_the_term_of_the_chosen_representation_and_counts_skipped_pairs() {
    let (head, clock) = (fairtte_survival::Pmf, Clock::default());
    let train = Outcomes::new(vec![0.5, 3.0], vec![true, false]).unwrap();
    let cut_points = CutPoints::equidistant(&train, 4).unwrap();
    let accumulation = Accumulation::default();
    let context = StepContext {
        outputs: Outputs { head: &head, cut_points: &cut_points },
        seed: 1,
        epoch: 0,
        step: 0,
        rate: 1.0,
        accumulation,
        loss_scale: 1.0,
        clock: &clock,
    };
    let targets = cut_points.targets("test", &[1.0; 5], &[true; 5]).unwrap();
    let after = tensor(vec![0.0, 1.0, 1.0, 2.0, 3.0], [5, 1]);
    let before = tensor(vec![0.0, 3.0, 1.0, 5.0, 3.0], [5, 1]);
    let value = |representation, codes: [Option<u32>; 5]| {
        let kernels = Kernels::Single;
        let config =
            FairRepresentationConfig { lambda: 0.5, representation, kernels, ..FairRepresentationConfig::default() };
        let groups = codes.map(|code| code.map(fairtte_metrics::GroupId));
        let terms = Terms {
            losses: tensor(vec![1.0, 2.0, 3.0, 4.0, 5.0], [5]),
            counted: &[true; 5],
            outputs: tensor(vec![0.0; 5], [5, 1]),
            representation: after.clone(),
            before_dropout: before.clone(),
            targets: &targets,
            groups: &groups,
            context: &context,
        };
        FairRepresentation::new(&config, &training_cells(3)).unwrap().value(&terms).unwrap()
    };
    let codes = [Some(0), Some(0), Some(1), Some(1), None];
    let k = |distance: f64| (-distance * distance).exp();
    let mmd = |z: [f64; 4]| {
        let across = k(z[0] - z[2]) + k(z[0] - z[3]) + k(z[1] - z[2]) + k(z[1] - z[3]);
        (2.0 + 2.0 * k(z[0] - z[1])) / 4.0 + (2.0 + 2.0 * k(z[2] - z[3])) / 4.0 - across / 2.0
    };
    for (representation, z) in
        [(Representation::AfterDropout, [0.0, 1.0, 1.0, 2.0]), (Representation::BeforeDropout, [0.0, 3.0, 1.0, 5.0])]
    {
        let found = value(representation, codes);
        assert!((values(&found.objective)[0] - (3.0 + 0.5 * mmd(z))).abs() < 1e-14);
        assert!((values(&found.unread[0].1)[0] - mmd(z)).abs() < 1e-14);
        assert_eq!(found.terms, [("pairs skipped".to_owned(), 2.0)], "both pairs with the absent group");
        assert_eq!(found.absent_groups, 1);
    }
    let found = value(Representation::AfterDropout, [Some(0), Some(1), Some(2), None, None]);
    assert_eq!(values(&found.objective), [3.0], "the task alone");
    assert_eq!(found.terms, [("pairs skipped".to_owned(), 3.0), ("mmd2".to_owned(), 0.0)]);
}

#[test]
fn one_group_is_nothing_to_compare() {
    let error = FairRepresentation::new(&FairRepresentationConfig::default(), &training_cells(1)).unwrap_err();
    assert!(
        error.to_string().contains("all training samples with a value of attribute \"sex\" are in group a"),
        "{error}"
    );
}
