//! Tests that each knob has the documented effect and no other. Simple estimators of the five disparities of
//! `FairTTE` appendix F.4 over the hidden truth, 20,000 subjects; the limits were set from their sampling error
//! before the first run: noise below about 2.5 standard errors, a real effect well above twice that.

use super::super::causal::{CausalModel, Sample};
use super::super::config::{BiasKnobs, BiasedAttribute, SimulationConfig};

/// Disparities between group 1 and group 0.
#[derive(Debug)]
struct Disparities {
    /// Wasserstein-1 distance of `X_Z`, in its standard deviations.
    image_features: f64,
    /// Difference of normalised mutual information of `X_Z` and Y among events.
    mi_time: f64,
    /// Difference of normalised mutual information of `X_Z` and the event indicator.
    mi_censoring: f64,
    /// Wasserstein-1 distance of Y among events over the largest Y.
    time_distribution: f64,
    /// Difference of event rates over the mean event rate.
    censoring_rate: f64,
}

/// Largest disparity that counts as noise at 20,000 subjects, in the order of the fields.
const NOISE: [f64; 5] = [0.05, 0.015, 0.012, 0.012, 0.04];
/// Smallest disparity that a knob at 1 must cause in its own field.
const MOVED: [f64; 5] = [0.8, 0.035, 0.08, 0.07, 0.5];

fn draw(config: &SimulationConfig, n: u64, seed: u64) -> Vec<Sample> {
    let model = CausalModel::new(config, seed);
    (0..n).map(|subject| model.sample(subject, 0)).collect()
}

fn disparities(samples: &[Sample]) -> [f64; 5] {
    let group = |one: bool| -> Vec<&Sample> { samples.iter().filter(|s| s.person.group_one == one).collect() };
    let (zero, one) = (group(false), group(true));
    let largest = samples.iter().map(|s| s.time).fold(0.0, f64::max);
    let event_rate = |group: &[&Sample]| group.iter().filter(|s| s.event).count() as f64 / group.len() as f64;
    let severity = |group: &[&Sample]| -> Vec<f64> { group.iter().map(|s| s.x_z).collect() };
    let events = |group: &[&Sample]| -> (Vec<f64>, Vec<f64>) {
        group.iter().filter(|s| s.event).map(|s| (s.x_z, s.time)).unzip()
    };
    let mi_time = |group: &[&Sample]| {
        let (x_z, time) = events(group);
        normalised_mi(&quantile_bins(&x_z, 5), &quantile_bins(&time, 5))
    };
    let mi_censoring = |group: &[&Sample]| {
        let indicator: Vec<usize> = group.iter().map(|s| usize::from(s.event)).collect();
        normalised_mi(&quantile_bins(&severity(group), 5), &indicator)
    };
    let (rate_zero, rate_one) = (event_rate(&zero), event_rate(&one));
    let found = Disparities {
        image_features: wasserstein(&severity(&zero), &severity(&one)),
        mi_time: (mi_time(&one) - mi_time(&zero)).abs(),
        mi_censoring: (mi_censoring(&one) - mi_censoring(&zero)).abs(),
        time_distribution: wasserstein(&events(&zero).1, &events(&one).1) / largest,
        censoring_rate: (rate_one - rate_zero).abs() / event_rate(&samples.iter().collect::<Vec<_>>()),
    };
    [found.image_features, found.mi_time, found.mi_censoring, found.time_distribution, found.censoring_rate]
}

/// Mean distance of 1,000 equally spaced quantiles.
fn wasserstein(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let quantile = |values: &[f64], step: usize| values[(2 * step + 1) * values.len() / 2000];
    (0..1000).map(|step| (quantile(&a, step) - quantile(&b, step)).abs()).sum::<f64>() / 1000.0
}

/// Bin of each value when `n_bins` bins hold equally many.
fn quantile_bins(values: &[f64], n_bins: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut bins = vec![0; values.len()];
    for (rank, &index) in order.iter().enumerate() {
        bins[index] = rank * n_bins / values.len();
    }
    bins
}

/// 2 I(a; b) / (H(a) + H(b)) of two columns of bins.
fn normalised_mi(a: &[usize], b: &[usize]) -> f64 {
    const SIDE: usize = 5;
    let mut joint = [[0.0_f64; SIDE]; SIDE];
    for (&i, &j) in a.iter().zip(b) {
        joint[i][j] += 1.0 / a.len() as f64;
    }
    let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    let of_a: f64 = joint.iter().map(|row| entropy(row.iter().sum())).sum();
    let of_b: f64 = (0..SIDE).map(|j| entropy(joint.iter().map(|row| row[j]).sum())).sum();
    let of_both: f64 = joint.iter().flatten().map(|&p| entropy(p)).sum();
    2.0 * (of_a + of_b - of_both) / (of_a + of_b)
}

/// Harrell's C: share of comparable pairs in which the higher score has the earlier event; ties count one half.
fn concordance<'a>(samples: impl Iterator<Item = &'a Sample>, score: fn(&Sample) -> f64) -> f64 {
    let samples: Vec<&Sample> = samples.collect();
    let (mut concordant, mut comparable) = (0.0, 0.0);
    for first in samples.iter().filter(|s| s.event) {
        for second in samples.iter().filter(|s| s.time > first.time) {
            comparable += 1.0;
            let (a, b) = (score(first), score(second));
            concordant += if a > b { 1.0 } else { f64::from(u8::from(a.to_bits() == b.to_bits())) / 2.0 };
        }
    }
    concordant / comparable
}

fn with_knob(knob: usize) -> SimulationConfig {
    let mut bias = BiasKnobs::default();
    match knob {
        0 => bias.image_features = 1.0,
        1 => bias.mi_time = 1.0,
        2 => bias.mi_censoring = 1.0,
        3 => bias.time_distribution = 1.0,
        _ => bias.censoring_rate = 1.0,
    }
    SimulationConfig { bias, ..SimulationConfig::default() }
}

#[test]
fn without_bias_all_five_disparities_are_noise_for_every_attribute() {
    for attribute in [BiasedAttribute::Sex, BiasedAttribute::Age, BiasedAttribute::Race] {
        let config = SimulationConfig { biased_attribute: attribute, ..SimulationConfig::default() };
        let found = disparities(&draw(&config, 20_000, 1));
        assert!(found.iter().zip(NOISE).all(|(found, limit)| *found < limit), "{attribute:?}: {found:?}");
    }
}

#[test]
fn every_knob_at_one_moves_its_target_and_leaves_alone_what_the_header_says() {
    // For each knob, the disparities it must leave at noise level.
    let untouched: [&[usize]; 5] = [&[1, 2, 3, 4], &[0, 3, 4], &[0, 4], &[0, 1, 2, 4], &[0]];
    for (knob, untouched) in untouched.iter().enumerate() {
        let found = disparities(&draw(&with_knob(knob), 20_000, 1));
        assert!(found[knob] > MOVED[knob], "knob {knob}: {found:?}");
        assert!(untouched.iter().all(|&other| found[other] < NOISE[other]), "knob {knob}: {found:?}");
    }
}

#[test]
fn knobs_act_by_degrees() {
    let censored = |knob: f64| {
        let mut config = SimulationConfig::default();
        config.bias.censoring_rate = knob;
        let samples = draw(&config, 20_000, 4);
        let one: Vec<_> = samples.iter().filter(|s| s.person.group_one).collect();
        one.iter().filter(|s| !s.event).count() as f64 / one.len() as f64
    };
    // logit(0.4) + 1.5 knob.
    for (knob, expected) in [(0.0, 0.4), (0.5, 0.585_259), (1.0, 0.749_239)] {
        let found = censored(knob);
        assert!((found - expected).abs() < 0.015, "knob {knob}: {found}");
    }
}

#[test]
fn true_risk_ranks_2000_subjects_with_a_concordance_of_074() {
    let samples = draw(&SimulationConfig::default(), 2000, 1);
    let found = concordance(samples.iter(), |s| s.person.true_risk);
    assert!((found - 0.74).abs() < 0.01, "{found}");
    let censored = samples.iter().filter(|s| !s.event).count() as f64 / 2000.0;
    assert!((censored - 0.4).abs() < 0.03, "{censored}");
    assert!(samples.iter().all(|s| s.time > 0.0 && s.time < 15.0));
    let shortest = samples.iter().map(|s| s.time).fold(f64::INFINITY, f64::min);
    assert!((0.02..0.5).contains(&shortest), "{shortest}");
}

#[test]
fn mi_time_takes_the_concordance_of_the_picture_from_074_to_056_in_group_one() {
    let samples = draw(&with_knob(1), 4000, 1);
    let group = |one: bool| concordance(samples.iter().filter(|s| s.person.group_one == one), |s| s.x_z);
    let (zero, one) = (group(false), group(true));
    assert!((zero - 0.74).abs() < 0.02, "{zero}");
    assert!((one - 0.56).abs() < 0.02, "{one}");
}

#[test]
fn without_signal_the_picture_says_nothing_but_looks_the_same() {
    let config = SimulationConfig { signal: 0.0, ..SimulationConfig::default() };
    let samples = draw(&config, 3000, 1);
    let found = concordance(samples.iter(), |s| s.x_z);
    assert!((found - 0.5).abs() < 0.02, "{found}");
    let with_signal: Vec<f64> = draw(&SimulationConfig::default(), 3000, 1).iter().map(|s| s.x_z).collect();
    let without: Vec<f64> = samples.iter().map(|s| s.x_z).collect();
    assert!(wasserstein(&with_signal, &without) < 0.1);
}
