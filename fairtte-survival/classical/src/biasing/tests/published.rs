//! The analysis of the paper's own numbers: its Table 1 from the rows of its Table 2.

use super::*;

const MEASURES: [Measure; 8] = [
    Measure::Rsbs,
    Measure::Risl,
    Measure::Snl,
    Measure::Rcll,
    Measure::HarrellC,
    Measure::UnoC,
    Measure::CalibrationAlpha,
    Measure::DCalibration,
];

/// Sonabend et al. (2022), Table 2, in the order of `MEASURES`.
const PERMUTATION: [[f64; 10]; 8] = [
    [0.054, 0.054, 0.061, 0.072, 0.075, 0.098, 0.096, 0.105, 0.116, 0.113],
    [0.049, 0.049, 0.054, 0.064, 0.065, 0.085, 0.085, 0.091, 0.098, 0.096],
    [0.017, 0.018, 0.017, 0.020, 0.017, 0.019, 0.017, 0.019, 0.018, 0.019],
    [0.019, 0.020, 0.017, 0.022, 0.022, 0.025, 0.024, 0.025, 0.025, 0.027],
    [0.034, 0.036, 0.046, 0.054, 0.073, 0.089, 0.102, 0.118, 0.131, 0.138],
    [0.038, 0.043, 0.054, 0.060, 0.076, 0.096, 0.109, 0.120, 0.132, 0.141],
    [0.028, 0.027, 0.030, 0.029, 0.030, 0.034, 0.036, 0.036, 0.036, 0.036],
    [2.679, 2.676, 2.647, 2.961, 2.832, 3.062, 3.154, 3.014, 3.027, 3.005],
];
const UNDERSAMPLING: [[f64; 10]; 8] = [
    [0.047, 0.053, 0.051, 0.046, 0.055, 0.052, 0.061, 0.079, 0.091, 0.117],
    [0.042, 0.049, 0.046, 0.043, 0.051, 0.048, 0.055, 0.070, 0.085, 0.104],
    [0.017, 0.022, 0.030, 0.037, 0.045, 0.055, 0.066, 0.075, 0.081, 0.086],
    [0.026, 0.030, 0.039, 0.045, 0.055, 0.063, 0.075, 0.086, 0.093, 0.101],
    [0.032, 0.034, 0.034, 0.037, 0.039, 0.040, 0.047, 0.070, 0.090, 0.116],
    [0.040, 0.037, 0.040, 0.044, 0.045, 0.044, 0.055, 0.073, 0.094, 0.116],
    [0.028, 0.028, 0.027, 0.033, 0.041, 0.043, 0.055, 0.079, 0.133, 0.270],
    [2.853, 2.957, 3.049, 3.363, 3.066, 2.928, 3.041, 3.042, 3.409, 3.811],
];

/// Table 1: alpha, beta, rho under permutation, then under undersampling.
const TABLE_1: [[f64; 6]; 8] = [
    [0.049, 0.078, 0.976, 0.035, 0.066, 0.855],
    [0.045, 0.063, 0.976, 0.033, 0.058, 0.891],
    [0.018, 0.001, 0.248, 0.014, 0.083, 1.000],
    [0.018, 0.009, 0.879, 0.022, 0.088, 1.000],
    [0.024, 0.129, 1.000, 0.017, 0.083, 1.000],
    [0.031, 0.124, 1.000, 0.024, 0.078, 0.976],
    [0.027, 0.011, 0.891, -0.015, 0.197, 0.952],
    [2.686, 0.487, 0.721, 2.861, 0.646, 0.612],
];

/// Results whose differences are the rows of Table 2, as if one table had made them.
fn results() -> Vec<CellResult> {
    let of = |method: Biasing, rows: &'static [[f64; 10]; 8]| {
        (0..10).map(move |tenth: u8| CellResult {
            table: "mean".to_owned(),
            cell: Cell { method, share: f64::from(tenth) / 10.0, repeat: 0 },
            n_half: 100,
            n_drawn: 10 * usize::from(tenth),
            losses: MEASURES
                .iter()
                .zip(rows)
                .map(|(measure, row)| HalfLosses {
                    measure: *measure,
                    biased: Some(1.0 - row[usize::from(tenth)]),
                    unbiased: Some(1.0),
                    reason: None,
                })
                .collect(),
        })
    };
    of(Biasing::Permutation, &PERMUTATION).chain(of(Biasing::Undersampling, &UNDERSAMPLING)).collect()
}

#[test]
fn table_1_of_the_paper_follows_from_its_table_2() {
    let mut results = results();
    results.reverse();
    let analysis = analyse(&results).unwrap();
    assert_eq!((analysis.n_cells, analysis.measures.len()), (20, 16));
    for (at, method) in [(0, Biasing::Permutation), (3, Biasing::Undersampling)] {
        for (measure, (row, table_1)) in MEASURES.iter().zip(PERMUTATION.iter().zip(&TABLE_1)) {
            let found = analysis.measures.iter().find(|of| of.method == method && of.measure == *measure).unwrap();
            let trend = found.of_means.unwrap();
            let [alpha, beta, rho] = [table_1[at], table_1[at + 1], table_1[at + 2]];
            // Both tables are rounded to three digits.
            assert!((trend.line.intercept - alpha).abs() < 1e-3, "{measure:?} {method:?} {trend:?}");
            assert!((trend.line.slope - beta).abs() < 1e-3, "{measure:?} {method:?} {trend:?}");
            // Rounding makes ties among the means of Table 2; where it makes none, the order is that of the paper.
            let means: Vec<f64> = found.shares.iter().map(|of| of.mean.unwrap()).collect();
            let mut different: Vec<String> = means.iter().map(|mean| format!("{mean:.3}")).collect();
            different.sort_unstable();
            different.dedup();
            let tolerance = if different.len() == 10 { 5e-4 } else { 0.14 };
            assert!((trend.rho.unwrap() - rho).abs() < tolerance, "{measure:?} {method:?} {trend:?}");
            if method == Biasing::Permutation {
                assert!(means.iter().zip(row).all(|(mean, expected)| (mean - expected).abs() < 1e-12));
            }
        }
    }
}

#[test]
fn p_values_are_adjusted_within_a_method() {
    let analysis = analyse(&results()).unwrap();
    let p = |measure, method| {
        let of = analysis.measures.iter().find(|of| of.measure == measure && of.method == method);
        of.unwrap().of_means.unwrap()
    };
    // scipy 1.17.1 linregress of the rows of Table 2: p 0.033974 of CalD and 0.007917 of CalA are the two largest of undersampling,
    // which Holm multiplies by 1 and 2.
    let largest = p(Measure::DCalibration, Biasing::Undersampling);
    assert!((largest.slope_p_holm - 0.033_974).abs() < 1e-5, "{largest:?}");
    let second = p(Measure::CalibrationAlpha, Biasing::Undersampling);
    assert!((second.slope_p_holm - 2.0 * 0.007_917).abs() < 1e-5, "{second:?}");
    // SNL does not notice permuted covariates.
    assert!((p(Measure::Snl, Biasing::Permutation).slope_p_holm - 0.321_256).abs() < 1e-5);
    // Ten means in order: 2 / 10! = 5.5e-7, eight times at most.
    let ordered = p(Measure::HarrellC, Biasing::Permutation).rho_p_holm.unwrap();
    assert!(ordered > 5e-7 && ordered < 8.0 * 5.6e-7, "{ordered}");
}

#[test]
fn tables_weigh_the_same_and_what_is_undefined_is_counted() {
    let result = |table: &str, share: f64, repeat: usize, value: Option<f64>| CellResult {
        table: table.to_owned(),
        cell: Cell { method: Biasing::Undersampling, share, repeat },
        n_half: 10,
        n_drawn: 0,
        losses: vec![HalfLosses { measure: Measure::Snl, biased: value, unbiased: Some(0.0), reason: None }],
    };
    let shares = [0.0, 0.25, 0.5];
    let mut results: Vec<CellResult> = Vec::new();
    for (place, share) in shares.into_iter().enumerate() {
        let place = place as f64;
        results.push(result("a", share, 0, Some(1.0 + place)));
        results.push(result("a", share, 1, Some(3.0 + place)));
        results.push(result("b", share, 0, Some(6.0 - 3.0 * place)));
        results.push(result("b", share, 1, None));
    }
    let analysis = analyse(&results).unwrap();
    let of = &analysis.measures[0];
    // Table a: 2, 3, 4; table b: 6, 3, 0.
    let means: Vec<Option<f64>> = of.shares.iter().map(|of| of.mean).collect();
    assert_eq!(means, [Some(4.0), Some(3.0), Some(2.0)]);
    assert_eq!(of.shares[0].values, [("a".to_owned(), 2.0), ("b".to_owned(), 6.0)]);
    assert!(of.shares.iter().all(|of| of.n_undefined == 1));
    let line = of.of_means.unwrap().line;
    assert_eq!((line.intercept, line.slope, line.n), (4.0, -4.0, 3));
    assert_eq!(of.of_tables.unwrap().line.n, 6);
    assert_eq!(of.of_tables.unwrap().line.slope, -4.0);
    assert_eq!(of.tables.iter().map(|of| of.rho).collect::<Vec<_>>(), [Some(1.0), Some(-1.0)]);
    // One share has no trend, no result no measure.
    let one = analyse(&results[..4]).unwrap();
    assert_eq!((one.measures[0].of_means, one.measures[0].tables[0].rho), (None, None));
    assert_eq!(analyse(&[]).unwrap().measures, []);
}
