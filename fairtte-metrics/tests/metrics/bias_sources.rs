//! The five sources of bias on simulated people: the simulated difference is found, and only that.

#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test may panic, and its values are exact in binary")]

use fairtte_metrics::bias::{
    BiasSettings, BiasSource, BiasSources, ContingencyTable, DisparityEstimate, GroupSummary, Normalisation,
    Quantisation, bias_sources, equal_frequency_bins,
};
use fairtte_metrics::{GroupId, Groups, MetricError, Outcomes, SubjectId, seeds};
use ndarray::Array2;
use rand::RngExt as _;

/// What is different about group 1.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    Source(BiasSource),
}

struct People {
    subjects: Vec<SubjectId>,
    representation: Array2<f64>,
    outcomes: Outcomes,
    groups: Groups,
}

const N_DIMENSIONS: usize = 4;

/// `n` people, a third of them in group 1. Dimension 0 of the representation is the logarithm of the time plus noise;
/// dimension 1 tells whether the event is observed (seven in ten), unless the censoring rate is what differs.
fn people(n: usize, samples_per_person: usize, planted: Planted, seed: u64) -> People {
    let mut rng = seeds::stream(seed, "people", &[]);
    let is = |source| planted == Planted::Source(source);
    let (mut rows, mut times, mut events, mut membership, mut subjects) = (vec![], vec![], vec![], vec![], vec![]);
    for person in 0..n {
        let in_one = rng.random::<f64>() < 1.0 / 3.0;
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let (log_time, other_log_time) = (normal(), normal());
        let event_rate = if in_one && is(BiasSource::CensoringRate) { 0.4 } else { 0.7 };
        let mut row: Vec<f64> = (0..N_DIMENSIONS).map(|_| normal()).collect();
        let (event, other_event) = (rng.random::<f64>() < event_rate, rng.random::<f64>() < event_rate);
        let seen_log_time = if in_one && is(BiasSource::MiTime) { other_log_time } else { log_time };
        let seen_event = if in_one && is(BiasSource::MiCensoring) { other_event } else { event };
        row[0] = 2.0 * seen_log_time + 0.3 * row[0];
        if !is(BiasSource::CensoringRate) && seen_event {
            row[1] += 3.0;
        }
        if in_one && is(BiasSource::ImageFeatures) {
            row[2] += 1.0;
        }
        let delay = if in_one && is(BiasSource::TimeDistribution) { 0.7 } else { 0.0 };
        for _ in 0..samples_per_person {
            rows.extend_from_slice(&row);
            times.push((log_time + delay).exp());
            events.push(event);
            membership.push(Some(GroupId(u32::from(in_one))));
            subjects.push(SubjectId::new(format!("person {person:05}")));
        }
    }
    People {
        representation: Array2::from_shape_vec((n * samples_per_person, N_DIMENSIONS), rows).unwrap(),
        outcomes: Outcomes::new(times, events).unwrap(),
        groups: Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap(),
        subjects,
    }
}

fn quick() -> BiasSettings {
    BiasSettings {
        n_projections: 20,
        n_permutations: 99,
        n_replicates: 0,
        n_clusters: 6,
        n_bins: 4,
        ..BiasSettings::default()
    }
}

fn measure(people: &People, settings: &BiasSettings) -> BiasSources {
    let People { subjects, representation, outcomes, groups } = people;
    bias_sources(subjects, representation, outcomes, groups, settings).unwrap()
}

fn estimate(sources: &BiasSources, source: BiasSource) -> &DisparityEstimate {
    sources.source(source).estimate.as_ref().unwrap()
}

#[test]
fn the_planted_source_is_significant_and_no_other() {
    // 600 people, 10 seeds: the simulated source always has the smallest possible p value (1/100); for each other
    // source p <= 0.05 happens 4 times or more with probability 0.001. One other source does differ: among events, dimension 1 varies in
    // group 1 only if it does not tell the event there, so that clusters of that group know less of the time (p <= 0.05 in 13 to 16 of
    // 40 other seeds, by the starts of k-means).
    let also = |planted, source| planted == BiasSource::MiCensoring && source == BiasSource::MiTime;
    for planted in BiasSource::ALL {
        let mut n_significant = [0; 5];
        for seed in 0..10 {
            let found = measure(&people(600, 1, Planted::Source(planted), seed), &quick());
            for (n, source) in n_significant.iter_mut().zip(BiasSource::ALL) {
                let p_value = estimate(&found, source).permutation.p_value;
                *n += usize::from(p_value <= if source == planted { 0.01 } else { 0.05 });
            }
        }
        for (n, source) in n_significant.iter().zip(BiasSource::ALL) {
            let right = if source == planted { *n == 10 } else { *n <= 3 || also(planted, source) && *n <= 9 };
            assert!(right, "{planted:?} planted: {source:?} significant in {n} of 10 seeds ({n_significant:?})");
        }
    }
}

#[test]
fn without_any_difference_p_values_are_uniform() {
    // 200 simulations of 90 people with two equal samples each: the mean of a uniform p is 0.5 with standard error
    // 0.02, and 10 of 200 are <= 0.05 with standard deviation 3.1; 3 of each are allowed. Information is cut at 0 and a
    // censoring rate takes few values, so that permutations often equal the data: their p may only be larger.
    let settings = BiasSettings { n_clusters: 3, n_bins: 2, n_projections: 5, ..quick() };
    let mut p_values = [const { Vec::new() }; 5];
    for seed in 0..200 {
        let found = measure(&people(90, 2, Planted::Nothing, 1_000 + seed), &settings);
        for (p_values, source) in p_values.iter_mut().zip(BiasSource::ALL) {
            p_values.push(estimate(&found, source).permutation.p_value);
        }
    }
    for (p_values, source) in p_values.iter().zip(BiasSource::ALL) {
        let mean = p_values.iter().sum::<f64>() / 200.0;
        let n_small = p_values.iter().filter(|p| **p <= 0.05).count();
        let continuous = matches!(source, BiasSource::ImageFeatures | BiasSource::TimeDistribution);
        let (at_least, upper) = if continuous { (1, 0.561) } else { (0, 0.65) };
        assert!((at_least..=19).contains(&n_small), "{source:?}: {n_small} of 200 p values are <= 0.05");
        assert!((0.439..upper).contains(&mean), "{source:?}: the mean p value is {mean}");
    }
}

#[test]
fn values_and_intervals_are_those_of_the_planted_difference() {
    // The logarithm of time is 0.7 later, so event times are exp(0.7) = 2.01 times as long; censoring is the same.
    let people = people(2_000, 1, Planted::Source(BiasSource::TimeDistribution), 5);
    let found = measure(&people, &BiasSettings { n_replicates: 200, ..quick() });
    let time = estimate(&found, BiasSource::TimeDistribution);
    let longest = people.outcomes.time().iter().copied().fold(0.0, f64::max);
    // W1 of a scaled distribution: (2.01 - 1) E[exp(N(0, 1))]; the standard error of both means is about 0.1.
    let expected = (0.7_f64.exp() - 1.0) * 0.5_f64.exp();
    assert!((time.value * longest - expected).abs() < 0.5, "{} {expected}", time.value * longest);
    let (lower, upper) = time.interval.unwrap();
    assert!(lower <= expected / longest && expected / longest <= upper, "{lower} {upper}");
    assert_eq!(time.n_undefined_replicates, 0);
    assert!(time.null_corrected < time.value && time.null_corrected > 0.5 * time.value);
    // Nothing else differs: the interval of the censoring rate covers values near 0.
    let (lower, upper) = estimate(&found, BiasSource::CensoringRate).interval.unwrap();
    assert!(lower < 0.02 && upper < 0.12, "{lower} {upper}");
    let uncorrected = estimate(&found, BiasSource::MiTime).uncorrected.unwrap();
    assert!((0.0..=1.0).contains(&uncorrected) && time.uncorrected.is_none());
}

#[test]
fn a_small_group_does_not_look_informative() {
    // Group 1 has 30 people, group 0 has 3,000; the representation carries no information about the time in either.
    let mut rng = seeds::stream(3, "small", &[]);
    let n = 3_030;
    let mut random = || rng.random::<f64>();
    let representation = Array2::from_shape_fn((n, 2), |_| random());
    let outcomes = Outcomes::new((0..n).map(|_| random()).collect(), vec![true; n]).unwrap();
    let membership = (0..n).map(|row| Some(GroupId(u32::from(row >= 3_000)))).collect();
    let groups = Groups::new("race", vec!["a".to_owned(), "b".to_owned()], membership).unwrap();
    let subjects = (0..n).map(|row| SubjectId::new(format!("{row:05}"))).collect();
    let found = measure(&People { subjects, representation, outcomes, groups }, &quick());
    let time = estimate(&found, BiasSource::MiTime);
    assert!(time.uncorrected.unwrap() > 0.1, "{time:?}");
    assert!(time.value < 0.08 && time.permutation.p_value > 0.05, "{time:?}");
    let Ok(GroupSummary::Information(small)) = found.source(BiasSource::MiTime).groups[1].summary else { panic!() };
    assert!((small.raw - small.null_mean).abs() < 0.08 && small.corrected <= small.raw);
}

#[test]
fn the_number_of_threads_does_not_change_the_sources() {
    let people = people(120, 2, Planted::Source(BiasSource::MiTime), 2);
    let settings = BiasSettings { n_replicates: 30, ..quick() };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| measure(&people, &settings))
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn levels_that_are_too_small_are_named_and_the_others_compared() {
    let mut people = people(60, 1, Planted::Nothing, 4);
    let mut membership: Vec<Option<GroupId>> = (0..60).map(|row| Some(GroupId(row % 2))).collect();
    membership[0] = None;
    membership[1] = Some(GroupId(2));
    let levels = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    people.groups = Groups::new("race", levels, membership).unwrap();
    let found = measure(&people, &quick());
    assert_eq!((found.n, found.n_missing, found.n_split_subjects), (59, 1, 0));
    for source in &found.sources {
        assert_eq!((source.groups.len(), source.pairs.len()), (4, 6));
        assert_eq!(source.estimate.as_ref().unwrap().pair, (GroupId(0), GroupId(1)));
        let reason = |n| MetricError::GroupTooSmall { level: "d".to_owned(), n, expected: 10 };
        assert_eq!(source.pairs[2].value, Err(reason(0)));
        assert!(matches!(source.pairs[1].value, Err(MetricError::GroupTooSmall { .. })));
        assert_eq!(source.pairs[0].value, Ok(source.estimate.as_ref().unwrap().value));
        assert_eq!(source.groups.iter().map(|group| group.n).sum::<usize>(), source.n);
    }
}

#[test]
fn a_group_without_events_has_a_censoring_rate_but_no_event_times() {
    let mut people = people(60, 1, Planted::Nothing, 4);
    let membership = (0..60).map(|row| Some(GroupId(row % 2))).collect();
    people.groups = Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap();
    let event = (0..60).map(|row| row % 2 == 0).collect();
    people.outcomes = Outcomes::new(people.outcomes.time().to_vec(), event).unwrap();
    let found = measure(&people, &quick());
    assert_eq!(estimate(&found, BiasSource::CensoringRate).value, 1.0);
    assert_eq!(found.relative_event_rate_gap, Ok(2.0));
    for source in [BiasSource::MiTime, BiasSource::TimeDistribution] {
        let expected = MetricError::TooFewGroups { attribute: "sex".to_owned(), n_defined: 1, n_levels: 2 };
        assert_eq!(found.source(source).estimate, Err(expected));
    }
    // The event indicator is constant in both groups: there is no information about it in either.
    assert_eq!(estimate(&found, BiasSource::MiCensoring).value, 0.0);

    people.outcomes = Outcomes::new(vec![0.0; 60], vec![false; 60]).unwrap();
    let found = measure(&people, &quick());
    assert_eq!(found.relative_event_rate_gap, Err(MetricError::NoEvents { n: 60 }));
    people.outcomes = Outcomes::new(vec![0.0; 60], vec![true; 60]).unwrap();
    let found = measure(&people, &quick());
    let time = estimate(&found, BiasSource::TimeDistribution);
    assert_eq!((time.value, time.permutation.p_value), (0.0, 1.0)); // all times are 0
}

#[test]
fn point_masses_at_both_ends_are_the_maximal_bias() {
    let n = 40;
    let group = |row: usize| row % 2;
    let representation = Array2::from_shape_fn((n, 3), |(row, _)| if group(row) == 0 { -1.0 } else { 4.0 });
    let time = (0..n).map(|row| if group(row) == 0 { 0.0 } else { 9.0 }).collect();
    let membership = (0..n).map(|row| Some(GroupId(u32::try_from(group(row)).unwrap()))).collect();
    let people = People {
        subjects: (0..n).map(|row| SubjectId::new(format!("{row}"))).collect(),
        representation,
        outcomes: Outcomes::new(time, vec![true; n]).unwrap(),
        groups: Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap(),
    };
    let found = measure(&people, &BiasSettings { n_replicates: 50, ..quick() });
    for source in [BiasSource::ImageFeatures, BiasSource::TimeDistribution] {
        let found = estimate(&found, source);
        assert!((found.value - 1.0).abs() < 1e-12);
        assert!(found.permutation.p_value <= 0.01);
        let (lower, upper) = found.interval.unwrap();
        assert!(lower > 0.999 && upper <= 1.0);
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let people = people(30, 1, Planted::Nothing, 4);
    let People { subjects, representation, outcomes, groups } = &people;
    let run = |representation: &Array2<f64>, settings: &BiasSettings| {
        bias_sources(subjects, representation, outcomes, groups, settings).unwrap_err()
    };
    let mut bad = representation.clone();
    bad[[7, 1]] = f64::INFINITY;
    assert!(matches!(run(&bad, &quick()), MetricError::InvalidNumber { row: 7, .. }));
    bad[[7, 1]] = f64::MAX;
    assert!(matches!(run(&bad, &quick()), MetricError::NotFinite { .. } | MetricError::InvalidNumber { .. }));
    assert!(matches!(run(&Array2::zeros((29, 2)), &quick()), MetricError::LengthMismatch { .. }));
    assert_eq!(run(&Array2::zeros((30, 0)), &quick()), MetricError::NoSamples);
    for settings in [
        BiasSettings { n_clusters: 1, ..quick() },
        BiasSettings { n_bins: 1001, ..quick() },
        BiasSettings { n_projections: 0, ..quick() },
        BiasSettings { n_permutations: 0, ..quick() },
        BiasSettings { min_group_size: 0, ..quick() },
        BiasSettings { level: 1.0, ..quick() },
    ] {
        assert!(matches!(run(representation, &settings), MetricError::InvalidSetting { .. }));
    }
}

#[test]
fn settings_are_read_in_kebab_case_and_misspelt_keys_are_refused() {
    let settings: BiasSettings = serde_json::from_str(r#"{"n-clusters": 5, "resample": "sample"}"#).unwrap();
    assert_eq!(settings.n_clusters, 5);
    assert_eq!(settings.n_permutations, 1000);
    assert!(serde_json::from_str::<BiasSettings>(r#"{"n-cluster": 5}"#).is_err());
    assert!(BiasSettings::default().validate().is_ok());
}

#[test]
fn equal_frequency_bins_find_what_is_planted_in_one_dimension_and_see_no_monotone_change() {
    let people = people(600, 1, Planted::Source(BiasSource::MiTime), 3);
    let settings = BiasSettings { quantisation: Quantisation::EqualFrequency, ..quick() };
    let found = measure(&people, &settings);
    let time = estimate(&found, BiasSource::MiTime);
    assert!(time.value > 0.0 && time.permutation.p_value <= 0.01, "{time:?}");
    assert!(estimate(&found, BiasSource::MiCensoring).permutation.p_value > 0.01);
    // Bins are places in the order of the group: another scale, shift or curve for a group changes nothing.
    let mut bent = People { representation: people.representation.clone(), ..people };
    for (row, mut values) in bent.representation.rows_mut().into_iter().enumerate() {
        let in_one = bent.groups.membership()[row] == Some(GroupId(1));
        values.mapv_inplace(|value| if in_one { 5.0 + value.exp() } else { 3.0 * value });
    }
    let again = measure(&bent, &settings);
    for source in [BiasSource::MiTime, BiasSource::MiCensoring] {
        assert_eq!(again.source(source), found.source(source));
    }
    let by_clusters = measure(&bent, &quick());
    assert_ne!(estimate(&by_clusters, BiasSource::MiTime).value, time.value);
}

#[test]
fn the_information_of_equal_frequency_bins_is_the_mean_over_dimensions() {
    let people = people(300, 1, Planted::Nothing, 5);
    let settings = BiasSettings { quantisation: Quantisation::EqualFrequency, ..quick() };
    let found = measure(&people, &settings);
    for group in &found.source(BiasSource::MiTime).groups {
        let rows = people.groups.rows(group.group);
        let is_event = |row: &usize| people.outcomes.event()[*row];
        let times: Vec<f64> = rows.iter().filter(|row| is_event(row)).map(|&row| people.outcomes.time()[row]).collect();
        let time_bins = equal_frequency_bins(&times, settings.n_bins).unwrap();
        let of_dimension = |dimension: usize| {
            let values: Vec<f64> = rows.iter().map(|&row| people.representation[[row, dimension]]).collect();
            let bins = equal_frequency_bins(&values, settings.n_clusters).unwrap();
            let of_events: Vec<u32> =
                rows.iter().zip(bins).filter(|(row, _)| is_event(row)).map(|(_, bin)| bin).collect();
            ContingencyTable::new(&of_events, &time_bins).unwrap().normalised(Normalisation::Arithmetic)
        };
        let expected = (0..N_DIMENSIONS).map(of_dimension).sum::<f64>() / N_DIMENSIONS as f64;
        let Ok(GroupSummary::Information(information)) = group.summary else { panic!("{group:?}") };
        assert!((information.raw - expected).abs() < 1e-13, "{information:?} {expected}");
    }
}

#[test]
fn sources_are_written_with_values_and_reasons_told_apart() {
    let mut people = people(60, 1, Planted::Nothing, 6);
    let membership = (0..60).map(|row| Some(GroupId(u32::from(row < 3)))).collect();
    people.groups = Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap();
    let settings: BiasSettings =
        serde_json::from_str(r#"{"quantisation": "equal-frequency", "n-replicates": 0}"#).unwrap();
    assert_eq!(settings.quantisation, Quantisation::EqualFrequency);
    let json = serde_json::to_value(measure(&people, &settings)).unwrap();
    let rates = &json["sources"][BiasSource::CensoringRate as usize];
    assert_eq!(rates["source"], "censoring-rate");
    assert!(rates["groups"][0]["summary"]["value"]["censoring-rate"].is_number(), "{rates}");
    let reason = rates["groups"][1]["summary"]["undefined"].as_str().unwrap();
    assert!(reason.contains('3') && rates["estimate"]["undefined"].is_string(), "{rates}");
    // Without the small group everything has a value.
    people.groups =
        Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], (0..60).map(|row| Some(GroupId(row % 2))).collect())
            .unwrap();
    let json = serde_json::to_value(measure(&people, &settings)).unwrap();
    let estimate = &json["sources"][0]["estimate"]["value"];
    let read: DisparityEstimate = serde_json::from_value(estimate.clone()).unwrap();
    assert!(read.permutation.p_value > 0.0 && estimate["null-corrected"].is_number(), "{estimate}");
}
