//! Sources of bias and their parts.

use fairtte_metrics::bias::{
    BiasSettings, ContingencyTable, Distribution, KMeansSettings, LabelPermutations, Normalisation, NullCorrected,
    PermutationTest, Quantisation, bias_sources, energy_distance, equal_frequency_bins, equal_width_bins, k_means,
    ksg_mutual_information, ksg_mutual_information_discrete, ksg_per_dimension, ksg_per_dimension_discrete,
    permutation_test, principal_components, seeded_projections, separability, sliced_wasserstein, wasserstein_1,
    wasserstein_p, wasserstein_p_power,
};
use fairtte_metrics::resampling::Resample;

use super::check::{assert_within, check, check_within};
use super::input::Input;

pub fn try_all(input: &mut Input<'_>) {
    input.may_be_wild();
    match input.below(3) {
        0 => distances(input),
        1 => information(input),
        _ => sources(input),
    }
}

fn distances(input: &mut Input<'_>) {
    let p = input.pick(&[1.0, 2.0, 1.5, 1e300, f64::NAN, 0.5, 700.0]);
    distances_on_the_line(input, p);
    sliced(input, p);
    let n = input.n();
    let (values, n_bins) = (input.numbers(n), input.count());
    for bins in [equal_frequency_bins, equal_width_bins] {
        let labels = check("bins", || bins(&values, n_bins));
        assert!(labels.into_iter().flatten().all(|label| (label as usize) < n_bins), "a label per bin");
    }
}

fn distances_on_the_line(input: &mut Input<'_>, p: f64) {
    let (n_first, n_second) = (input.n(), input.n());
    let (first, second) = (input.numbers(n_first), input.numbers(n_second));
    let weights: Vec<f64> = (0..input.length(n_first)).map(|_| input.time()).collect();
    let weighted = check("Distribution::weighted", || Distribution::weighted(&first, &weights));
    let plain = check("Distribution", || Distribution::new(&first));
    let (Ok(first), Ok(second)) = (weighted.or(plain), check("Distribution", || Distribution::new(&second))) else {
        return;
    };
    check("range", || first.range());
    for (u, v) in [(&first, &second), (&second, &first), (&first, &first)] {
        check_within("wasserstein_1", 0.0, f64::MAX, || wasserstein_1(u, v));
        check_within("energy_distance", 0.0, f64::MAX, || energy_distance(u, v));
        check_within("wasserstein_p_power", 0.0, f64::MAX, || wasserstein_p_power(u, v, p));
        check_within("wasserstein_p", 0.0, f64::MAX, || wasserstein_p(u, v, p));
    }
}

fn sliced(input: &mut Input<'_>, p: f64) {
    let (d, k) = (input.below(4), input.below(4));
    let n_projections = if input.flag() { k } else { input.count() };
    let seed = u64::from(input.byte());
    let projections = check("seeded_projections", || seeded_projections(d, n_projections, seed));
    let projections = projections.unwrap_or_else(|_| input.matrix(d, k));
    let (n_first, n_second) = (input.below(7), input.below(7));
    let (first, second) = (input.matrix(n_first, d), input.matrix(n_second, d));
    let _ = check("sliced_wasserstein", || sliced_wasserstein(&first, &second, &projections, p));
}

fn information(input: &mut Input<'_>) {
    let n = input.n();
    let m = input.length(n);
    let (a, b) = (input.numbers(n), input.numbers(m));
    let (labels, others) = (input.labels(n), input.labels(m));
    let neighbours = input.count();
    check_within("ksg_mutual_information", 0.0, f64::MAX, || ksg_mutual_information(&a, &b, neighbours));
    check_within("ksg of labels", 0.0, f64::MAX, || ksg_mutual_information_discrete(&a, &others, neighbours));
    let matrix = input.matrix(n, 3);
    let _ = check("ksg_per_dimension", || ksg_per_dimension(&matrix, &a, neighbours));
    let _ = check("ksg_per_dimension_discrete", || ksg_per_dimension_discrete(&matrix, &labels, neighbours));
    if let Ok(table) = check("ContingencyTable", || ContingencyTable::new(&labels, &others)) {
        check("entropies", || table.entropies());
        check_within("mutual_information", 0.0, f64::MAX, || Ok(table.mutual_information()));
        check_within("expected_mutual_information", 0.0, f64::MAX, || Ok(table.expected_mutual_information()));
        for mean in [Normalisation::Arithmetic, Normalisation::Geometric, Normalisation::Min, Normalisation::Max] {
            check_within("normalised", 0.0, 1.0, || Ok(table.normalised(mean)));
            check("adjusted", || table.adjusted(mean));
        }
    }
    let (raw, chance) = (input.any_number(), input.any_number());
    let _ = check("NullCorrected", || NullCorrected::new(raw, chance));
    let settings = KMeansSettings {
        n_clusters: input.count(),
        n_starts: input.below(3),
        max_iterations: input.pick(&[1, 5, 0, usize::MAX]),
        seed: 1,
    };
    if let Ok(found) = check("k_means", || k_means(&matrix, &settings)) {
        assert!(found.labels.iter().all(|label| (*label as usize) < found.centres.nrows()), "a label per centre");
    }
}

fn sources(input: &mut Input<'_>) {
    let n = input.n();
    let m = input.length(n);
    let subjects = input.subjects(n);
    let (Some(outcomes), Some(groups)) = (input.outcomes(n), input.groups("a", m)) else { return };
    let d = input.below(4);
    let representation = input.matrix(n, d);
    let settings = BiasSettings {
        n_clusters: input.pick(&[2, 3, 1000, 1]),
        quantisation: input.pick(&[Quantisation::KMeans, Quantisation::EqualFrequency]),
        n_bins: input.pick(&[2, 3, 1000, 1]),
        n_projections: input.pick(&[1, 2, 3, 0]),
        n_permutations: input.pick(&[1, 2, 3, 0, usize::MAX]),
        n_replicates: input.pick(&[0, 1, 2, 3, usize::MAX]),
        resample: input.pick(&[Resample::Subject, Resample::Sample]),
        level: input.level(),
        min_group_size: input.pick(&[1, 2, 1, 10, usize::MAX]),
        seed: 3,
        ..BiasSettings::default()
    };
    let found = check("bias_sources", || bias_sources(&subjects, &representation, &outcomes, &groups, &settings));
    for source in found.iter().flat_map(|found| &found.sources) {
        for value in source.pairs.iter().flat_map(|pair| &pair.value) {
            assert_within("disparity of a pair", *value, 0.0, 1.0);
        }
        if let Ok(estimate) = &source.estimate {
            assert_within("disparity", estimate.value, 0.0, 1.0);
            assert_within("p value", estimate.permutation.p_value, 0.0, 1.0);
            assert_within("disparity without chance", estimate.null_corrected, 0.0, 1.0);
            if let Some((low, high)) = estimate.interval {
                assert_within("lower end", low, 0.0, high);
                assert_within("upper end", high, low, 1.0);
            }
        }
    }
    let n_components = input.pick(&[1, 2, 64, 0, usize::MAX]);
    if let Ok(found) = check("principal_components", || principal_components(&representation, n_components)) {
        assert_within("explained variance", found.reduction.explained_variance, 0.0, 1.0);
    }
    let told = check("separability", || separability(&subjects, &representation, &groups, &settings));
    for level in told.iter().flat_map(|found| &found.levels) {
        if let Ok(auc) = level.auc {
            assert_within("AUC", auc, 0.0, 1.0);
        }
        if let Some((low, high)) = level.interval {
            assert_within("lower end of an AUC", low, 0.0, high);
            assert_within("upper end of an AUC", high, low, 1.0);
        }
    }
    permutations(input, &subjects, &groups, m);
}

fn permutations(
    input: &mut Input<'_>,
    subjects: &[fairtte_metrics::SubjectId],
    groups: &fairtte_metrics::Groups,
    m: usize,
) {
    let strata = input.flag().then(|| input.labels(m));
    let n_permutations = input.pick(&[1, 3, 0, usize::MAX]);
    let made = check("LabelPermutations", || {
        LabelPermutations::new(subjects, groups.membership(), strata.as_deref(), n_permutations, 1)
    });
    if let Ok(permutations) = made {
        check("labels", || permutations.labels(usize::MAX));
        check("units", || (permutations.n_units(), permutations.n_split_subjects()));
    }
    let values = [input.any_number(), input.any_number()];
    let tested = check("permutation_test", || {
        permutation_test(subjects, groups, strata.as_deref(), n_permutations, 1, |labels| {
            Ok(values[labels.iter().take(2).flatten().map(|label| label.index()).sum::<usize>() % 2])
        })
    });
    if let Ok((_, test)) = tested {
        assert_within("p value of a permutation test", test.p_value, 0.0, 1.0);
    }
    let null: Vec<Option<f64>> = (0..input.below(5)).map(|_| input.flag().then(|| input.any_number())).collect();
    let _ = check("PermutationTest", || PermutationTest::new(values[0], &null));
}
