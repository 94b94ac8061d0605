//! Regressions: do intervals of hazard ratios, incidence ratios and time ratios contain the truth, and do the tests of a regression
//! reject at 5 % where nothing is to be found?

use fairtte_classical::generator::{
    CensoringSettings, CovariateSettings, FollowUpSettings, GeneratorSettings, Hazard, LogLinear, Scale, generate,
};
use fairtte_classical::{
    AftSettings, CoxErrors, CoxModel, CoxSamples, CoxSettings, CoxTimeVaryingSettings, Estimate,
    SurvivalEstimator as _, TimeTransform,
};
use fairtte_metrics::{Outcomes, SubjectId};
use ndarray::{Array2, Axis, concatenate};
use rayon::prelude::*;

use crate::table::{Part, percent};

const COVERAGE: &str = "people | censored | Cox, plain | Cox, robust | every person twice: plain | robust by subject | \
                        Weibull, ratios of times";
const TESTS: &str = "people | censored | likelihood ratio | Wald | score | Schoenfeld, one covariate | all covariates | \
                     time-varying coefficients, all";
/// Log hazard ratios of three normal covariates; the second has none.
pub const EFFECTS: [f64; 3] = [std::f64::consts::LN_2, 0.0, -0.5];

pub fn parts() -> Vec<Part> {
    let sizes = [(100, 0.3), (100, 0.7), (500, 0.3), (500, 0.7)];
    let part = |kind: &'static str, columns: &'static str, row: fn(usize, f64, u64) -> String| {
        sizes.map(|(n, censored)| {
            let name = format!("estimators-{kind}-{n}-{:.0}", 100.0 * censored);
            Part::new(name, columns, 2_000, move |cohorts| vec![row(n, censored, cohorts)])
        })
    };
    part("coverage", COVERAGE, coverage).into_iter().chain(part("tests", TESTS, tests)).collect()
}

/// `n` people with the hazard exp(x b), and with a constant hazard of censoring that censors about so many.
fn draw(n: usize, effects: &[f64], censored: f64, seed: u64) -> (Array2<f64>, Outcomes) {
    let of =
        |rate: f64, covariates: Vec<f64>| Hazard::LogLinear(LogLinear { rate, covariates, ..LogLinear::default() });
    let settings = GeneratorSettings {
        n,
        covariates: CovariateSettings { count: effects.len(), correlation: 0.0, scale: Scale::None },
        hazard: of(1.0, effects.to_vec()),
        censoring: CensoringSettings {
            hazard: of(censored / (1.0 - censored), Vec::new()),
            ..CensoringSettings::default()
        },
        follow_up: FollowUpSettings { maximum: 1e9, ..FollowUpSettings::default() },
        ..GeneratorSettings::default()
    };
    let cohort = generate(&settings, seed).unwrap();
    (cohort.covariates, cohort.outcomes)
}

pub fn contains(estimate: &Estimate, truth: f64) -> Option<bool> {
    let (_, lower, upper) = estimate.ratio(0.95)?;
    Some(lower <= truth.exp() && truth.exp() <= upper)
}

/// Intervals of the three ratios of one cohort.
type Covered = [Option<bool>; 3];

fn of_cox(model: Option<CoxModel>) -> Covered {
    let Some(model) = model else { return [None; 3] };
    std::array::from_fn(|place| contains(&model.coefficients[place].estimate(), EFFECTS[place]))
}

fn coverage(n: usize, censored: f64, n_cohorts: u64) -> String {
    let robust = CoxSettings { errors: CoxErrors::Robust, ..CoxSettings::default() };
    let one = |seed: u64| -> [Covered; 5] {
        let (x, outcomes) = draw(n, &EFFECTS, censored, 1_000 + seed);
        let both = concatenate(Axis(0), &[x.view(), x.view()]).unwrap();
        let twice = outcomes.select(&(0..n).chain(0..n).collect::<Vec<_>>());
        let subjects: Vec<SubjectId> = (0..2 * n).map(|row| SubjectId::new(format!("{}", row % n))).collect();
        let (samples, repeated) = (CoxSamples::new(&x, &outcomes), CoxSamples::new(&both, &twice));
        let aft = AftSettings::default().fit(&x, &outcomes).ok();
        [
            of_cox(CoxSettings::default().fit_samples(&samples).ok()),
            of_cox(robust.fit_samples(&samples).ok()),
            of_cox(CoxSettings::default().fit_samples(&repeated).ok()),
            of_cox(robust.fit_samples(&repeated.of_subjects(&subjects)).ok()),
            // A constant hazard is that of a Weibull time with the shape 1, which the covariates shorten as they raise the hazard.
            std::array::from_fn(|place| contains(&aft.as_ref()?.coefficients[place], -EFFECTS[place])),
        ]
    };
    let found: Vec<[Covered; 5]> = (0..n_cohorts).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let of_effect = |place: usize| {
            let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[kind][place]).collect();
            100.0 * defined.iter().filter(|covered| **covered).count() as f64 / defined.len() as f64
        };
        (0..EFFECTS.len()).map(|place| format!("{:.1}", of_effect(place))).collect::<Vec<_>>().join(" / ")
    };
    format!("| {n} | {:.0} % | {} |", 100.0 * censored, (0..5).map(cell).collect::<Vec<_>>().join(" | "))
}

fn tests(n: usize, censored: f64, n_cohorts: u64) -> String {
    let one = |seed: u64| -> [Option<f64>; 6] {
        // Global tests where no covariate has an effect; those of proportional hazards where all have one that does not change.
        let (x, outcomes) = draw(n, &[0.0; 3], censored, 1_000 + seed);
        let null = CoxSettings::default().fit_samples(&CoxSamples::new(&x, &outcomes)).ok();
        let (x, outcomes) = draw(n, &EFFECTS, censored, 1_000 + seed);
        let samples = CoxSamples::new(&x, &outcomes);
        let model = CoxSettings::default().fit_samples(&samples).ok();
        let proportional =
            model.and_then(|model| model.proportionality_test(&samples, TimeTransform::KaplanMeier).ok());
        let varying = CoxTimeVaryingSettings::default().fit_samples(&samples).ok();
        [
            null.as_ref().and_then(CoxModel::likelihood_ratio_test).map(|test| test.p_value),
            null.as_ref().and_then(CoxModel::wald_test).map(|test| test.p_value),
            null.as_ref().and_then(CoxModel::score_test).map(|test| test.p_value),
            proportional.as_ref().map(|test| test.covariates[0].test.p_value),
            proportional.as_ref().map(|test| test.global.p_value),
            varying.and_then(|model| model.time_variation_test()).map(|test| test.p_value),
        ]
    };
    let found: Vec<[Option<f64>; 6]> = (0..n_cohorts).into_par_iter().map(one).collect();
    let cell = |kind: usize| {
        let defined: Vec<f64> = found.iter().filter_map(|cohort| cohort[kind]).collect();
        percent(defined.iter().filter(|p| **p <= 0.05).count(), defined.len())
    };
    format!("| {n} | {:.0} % | {} |", 100.0 * censored, (0..6).map(cell).collect::<Vec<_>>().join(" | "))
}
