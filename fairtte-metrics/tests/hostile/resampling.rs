//! Bootstrap, jackknife, intervals and paired differences.

use fairtte_metrics::resampling::{
    Bootstrap, IntervalMethod, Jackknife, JackknifeValues, Replicated, Resample, Stratify, paired_difference,
    percentile_interval,
};

use super::check::{assert_within, check};
use super::input::Input;

const METHODS: [IntervalMethod; 3] = [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca];

pub fn try_all(input: &mut Input<'_>) {
    input.may_be_wild();
    draws(input);
    intervals(input);
}

fn draws(input: &mut Input<'_>) {
    let n = input.n();
    let subjects = input.subjects(n);
    let m = input.length(n);
    let strata = input.labels(m);
    let (n_replicates, seed) = (input.below(5), u64::from(input.byte()));
    let resample = input.pick(&[Resample::Subject, Resample::Sample]);
    let stratified =
        check("Bootstrap::stratified", || Bootstrap::stratified(&subjects, resample, &strata, n_replicates, seed));
    let plain = check("Bootstrap", || Bootstrap::new(&subjects, resample, n_replicates, seed));
    for bootstrap in stratified.into_iter().chain([plain]) {
        let replicate = input.count();
        let weights = check("weights", || bootstrap.weights(replicate));
        if resample == Resample::Sample {
            assert_eq!(weights.iter().sum::<u32>() as usize, n, "as many samples as before");
        }
        check("map", || bootstrap.map(<[u32]>::len));
        check("sizes", || (bootstrap.n(), bootstrap.n_units(), bootstrap.stratum_sizes().to_vec()));
        let (lanes, length) = (input.pick(&[0, 1, 3, usize::MAX]), input.below(130));
        let block = |draw: &dyn Fn(&mut [u16]) -> Result<(), fairtte_metrics::MetricError>| {
            let mut out = vec![0; if length < 100 { n.saturating_mul(lanes).min(200) } else { length }];
            draw(&mut out).map(|()| out)
        };
        let _ = check("weights_block", || block(&|out| bootstrap.weights_block(replicate, lanes, out)));
        let max_blocks = input.count();
        let jackknife = check("Jackknife", || Jackknife::new(&bootstrap, max_blocks));
        check("Jackknife::is_grouped", || jackknife.is_grouped());
        check("Jackknife::weights", || jackknife.weights(replicate));
        let _ = check("Jackknife::weights_block", || block(&|out| jackknife.weights_block(replicate, lanes, out)));
        let n_values = if length < 100 { jackknife.n_blocks() } else { length };
        let values: Vec<Option<f64>> = (0..n_values).map(|_| optional(input)).collect();
        if let Ok(values) = jackknife.collect(values) {
            let _ = check("acceleration", || values.acceleration());
        }
    }
    let (Some(outcomes), Some(groups)) = (input.outcomes(n), input.groups("a", m)) else { return };
    for stratify in [Stratify::None, Stratify::Event, Stratify::Attribute("a".to_owned())] {
        let _ = check("strata", || stratify.strata(&outcomes, std::slice::from_ref(&groups)));
    }
}

fn optional(input: &mut Input<'_>) -> Option<f64> {
    (input.below(8) > 0).then(|| input.number())
}

fn intervals(input: &mut Input<'_>) {
    let n = input.n();
    let m = input.length(n);
    let first: Vec<Option<f64>> = (0..n).map(|_| optional(input)).collect();
    let second: Vec<Option<f64>> = (0..m).map(|_| optional(input)).collect();
    let values: Vec<f64> = first.iter().flatten().copied().collect();
    let (value, other, level) = (input.number(), input.number(), input.level());
    if let Ok(Some((low, high))) = check("percentile_interval", || percentile_interval(&values, level)) {
        assert_within("lower end of an interval", low, f64::MIN, high);
    }
    let jackknife =
        [input.below(9), input.below(9)].map(|n| JackknifeValues::new((0..n).map(|_| optional(input)).collect()));
    for values in &jackknife {
        let _ = check("acceleration", || values.acceleration());
    }
    let _ = check("minus", || jackknife[0].minus(&jackknife[1]).and_then(|difference| difference.acceleration()));
    let (a, b) = (Replicated::new(value, &first), Replicated::new(other, &second));
    let with = (a.with_jackknife(&jackknife[0]), b.with_jackknife(&jackknife[1]));
    let _ = check("standard_error", || a.standard_error());
    for method in METHODS {
        for (a, b) in [(a, b), with] {
            if let Ok(interval) = check("interval", || a.interval(level, method)) {
                assert_within("lower end of an interval", interval.lower, f64::MIN, interval.upper);
            }
            if let Ok(difference) = check("paired_difference", || paired_difference(&a, &b, level, method)) {
                assert_within("p value of a difference", difference.p_value.unwrap_or(1.0), 0.0, 1.0);
            }
        }
    }
}
