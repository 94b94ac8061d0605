//! Laws of distances, mutual information and the sources of bias, on random and on extreme input.

use fairtte_metrics::bias::{
    BiasSettings, ContingencyTable, Distribution, KMeansSettings, Normalisation, bias_sources, energy_distance,
    equal_frequency_bins, equal_width_bins, k_means, ksg_mutual_information, ksg_mutual_information_discrete,
    wasserstein_1, wasserstein_p, wasserstein_p_power,
};
use fairtte_metrics::{GroupId, Groups, MetricError, Outcomes, SubjectId};
use ndarray::Array2;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const NORMALISATIONS: [Normalisation; 4] =
    [Normalisation::Arithmetic, Normalisation::Geometric, Normalisation::Min, Normalisation::Max];

/// Values with many ties.
fn sample() -> impl Strategy<Value = Distribution> {
    vec((-8_i32..8, 0_u32..4), 1..30).prop_filter_map("some weight", |pairs| {
        let values: Vec<f64> = pairs.iter().map(|(value, _)| f64::from(*value) / 4.0).collect();
        let weights: Vec<f64> = pairs.iter().map(|(_, weight)| f64::from(*weight)).collect();
        Distribution::weighted(&values, &weights).ok()
    })
}

/// Any `f64`, including NaN and infinity.
fn anything() -> impl Strategy<Value = f64> {
    prop_oneof![30 => -10.0..10.0, 1 => proptest::num::f64::ANY, 1 => Just(0.0), 1 => Just(f64::MAX), 1 => Just(f64::MIN)]
}

fn finite(result: Result<f64, MetricError>) -> bool {
    result.map_or(true, f64::is_finite)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn transport_is_a_metric_and_both_formulas_agree(u in sample(), v in sample(), w in sample()) {
        let distance = |a, b| wasserstein_1(a, b).unwrap_or(f64::NAN);
        prop_assert!((distance(&u, &v) - distance(&v, &u)).abs() < 1e-13);
        prop_assert!(distance(&u, &u).abs() < 1e-13);
        prop_assert!(distance(&u, &w) <= distance(&u, &v) + distance(&v, &w) + 1e-12);
        let by_quantiles = wasserstein_p_power(&u, &v, 1.0).unwrap_or(f64::NAN);
        prop_assert!((distance(&u, &v) - by_quantiles).abs() < 1e-12);
        // W_p grows with p, up to the range of the values.
        let second = wasserstein_p(&u, &v, 2.0).unwrap_or(f64::NAN);
        prop_assert!(distance(&u, &v) <= second + 1e-12 && second <= 4.0);
    }

    #[test]
    fn information_is_symmetric_bounded_and_blind_to_names(pairs in vec((0_u32..5, 0_u32..4), 1..60)) {
        let (a, b): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
        let renamed: Vec<u32> = a.iter().map(|label| 1_000_003 * (7 - label)).collect();
        let table = |a: &[u32], b: &[u32]| ContingencyTable::new(a, b).expect("as many labels");
        let (there, back, other) = (table(&a, &b), table(&b, &a), table(&renamed, &b));
        prop_assert!((there.mutual_information() - back.mutual_information()).abs() < 1e-13);
        prop_assert!((there.expected_mutual_information() - back.expected_mutual_information()).abs() < 1e-12);
        for normalisation in NORMALISATIONS {
            let value = there.normalised(normalisation);
            prop_assert!((0.0..=1.0).contains(&value));
            prop_assert!((value - other.normalised(normalisation)).abs() < 1e-13);
            prop_assert!(there.adjusted(normalisation) <= 1.0 + 1e-9);
        }
        let (h_a, h_b) = there.entropies();
        prop_assert!(there.mutual_information() <= h_a.min(h_b) + 1e-13);
    }

    #[test]
    fn absurd_numbers_give_finite_values_or_errors(
        values in vec((anything(), anything(), 0_u32..3), 0..25),
        p in anything(),
        n in 0_usize..5,
    ) {
        let (x, y): (Vec<f64>, Vec<f64>) = values.iter().map(|(x, y, _)| (*x, *y)).unzip();
        let labels: Vec<u32> = values.iter().map(|(_, _, label)| *label).collect();
        for (u, v) in [(Distribution::new(&x), Distribution::new(&y)), (Distribution::weighted(&x, &y), Distribution::new(&x))] {
            if let (Ok(u), Ok(v)) = (u, v) {
                prop_assert!(finite(wasserstein_1(&u, &v)) && finite(energy_distance(&u, &v)));
                prop_assert!(finite(wasserstein_p(&u, &v, p)) && finite(wasserstein_p_power(&u, &v, p)));
            }
        }
        prop_assert!(finite(ksg_mutual_information(&x, &y, n)));
        prop_assert!(finite(ksg_mutual_information_discrete(&x, &labels, n)));
        for bins in [equal_frequency_bins(&x, n), equal_width_bins(&x, n)].into_iter().flatten() {
            prop_assert!(bins.iter().all(|bin| (*bin as usize) < n));
        }
        let rows = Array2::from_shape_fn((x.len(), 2), |(row, column)| if column == 0 { x[row] } else { y[row] });
        let settings = KMeansSettings { n_clusters: n, n_starts: 2, max_iterations: 5, seed: 1 };
        if let Ok(found) = k_means(&rows, &settings) {
            prop_assert!(found.inertia.is_finite() && found.centres.iter().all(|value| value.is_finite()));
            prop_assert!(found.labels.iter().all(|label| (*label as usize) < found.centres.nrows()));
        }
    }

    #[test]
    fn sources_lie_between_none_and_maximal_whatever_the_data(
        rows in vec((-10.0..10.0, 0.0..5.0, any::<bool>(), 0_u32..4, 0_u32..12), 0..40),
        min_group_size in 1_usize..4,
        absurd in prop_oneof![9 => Just(None), 1 => anything().prop_map(Some)],
    ) {
        let n = rows.len();
        let mut representation = Array2::from_elem((n, 2), 1.0);
        representation.column_mut(0).iter_mut().zip(&rows).for_each(|(value, row)| *value = row.0);
        if let (Some(value), Some(absurd)) = (representation.first_mut(), absurd) {
            *value = absurd;
        }
        let outcomes = Outcomes::new(rows.iter().map(|row| row.1).collect(), rows.iter().map(|row| row.2).collect());
        let membership = rows.iter().map(|row| (row.3 > 0).then(|| GroupId(row.3 - 1))).collect();
        let groups = Groups::new("a", ["x", "y", "z"].map(str::to_owned).to_vec(), membership);
        let subjects: Vec<SubjectId> = rows.iter().map(|row| SubjectId::new(row.4.to_string())).collect();
        let settings = BiasSettings {
            n_clusters: 3, n_bins: 2, n_projections: 2, n_permutations: 9, n_replicates: 9, min_group_size,
            ..BiasSettings::default()
        };
        let (outcomes, groups) = (outcomes.expect("finite times"), groups.expect("three levels"));
        let found = bias_sources(&subjects, &representation, &outcomes, &groups, &settings);
        let usual = absurd.is_none() && groups.membership().iter().any(Option::is_some);
        prop_assert!(found.is_ok() || !usual, "{:?}", found);
        for source in found.iter().flat_map(|found| &found.sources) {
            prop_assert!(source.pairs.iter().all(|pair| pair.value.as_ref().is_ok_and(|v| *v <= 1.0) || pair.value.is_err()));
            let Ok(estimate) = &source.estimate else { continue };
            let unit = |value: f64| (0.0..=1.0).contains(&value);
            prop_assert!(unit(estimate.value) && unit(estimate.permutation.p_value) && unit(estimate.null_corrected));
            let (lower, upper) = estimate.interval.unwrap_or((0.0, 1.0));
            prop_assert!(unit(lower) && unit(upper) && lower <= upper);
            prop_assert!(unit(estimate.uncorrected.unwrap_or(0.0)));
        }
    }
}
