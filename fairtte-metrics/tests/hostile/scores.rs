//! Brier scores, log scores, integrals over time, and the estimators they need.

use fairtte_metrics::estimators::{
    AtZeroCensoring, BeyondLastTime, CensoringLookup, KaplanMeier, NelsonAalen, TiedEvents,
};
use fairtte_metrics::scores::{
    BrierConvention, EventDensity, IntegratedScoreRule, IntegrationRule, PreparedBrier, ScoreWeights, SnlForm,
    TimeLoss, brier_score, brier_score_by, explained_residual_variation, integrated_brier_score,
    integrated_brier_score_by, integrated_nbll, kaplan_meier_curves, nbll, negative_log_likelihood, rcll, snl,
    survival_evaluator_curves, unique_times,
};
use fairtte_metrics::{CensoringCurve, CensoringTies};

use super::check::{assert_within, check, check_within};
use super::input::{Cohort, Input};

const BRIER: [BrierConvention; 6] = [
    BrierConvention::ScikitSurvival,
    BrierConvention::SurvivalEval,
    BrierConvention::SurvivalEvalUnweighted,
    BrierConvention::Pycox,
    BrierConvention::RiskRegression,
    BrierConvention::Mlr3proba,
];
const RULES: [IntegrationRule; 5] = [
    IntegrationRule::Trapezoid,
    IntegrationRule::Simpson,
    IntegrationRule::SimpsonAveraged,
    IntegrationRule::PlainMean,
    IntegrationRule::LeftStepsFromZero,
];

pub fn try_all(input: &mut Input<'_>) {
    let Some(cohort) = Cohort::new(input) else { return };
    curves(input, &cohort);
    estimators(input, &cohort);
    brier(input, &cohort);
    log_scores(input, &cohort);
    let (times, values) = (input.times(), (0..input.below(8)).map(|_| input.any_number()).collect::<Vec<_>>());
    for rule in RULES {
        let _ = check("IntegrationRule::average", || rule.average(&times, &values));
        let values = vec![0.5; cohort.times.len()];
        let _ = check("IntegrationRule::average of a constant", || rule.average(&cohort.times, &values));
    }
}

fn curves(input: &mut Input<'_>, cohort: &Cohort) {
    let (curves, reading) = (&cohort.curves, cohort.reading);
    check("SurvivalCurves", || curves.clone());
    check("mean curve", || curves.mean());
    let time = input.any_number();
    for survival in check("all_at", || curves.all_at(time, reading)) {
        assert_within("survival", survival, 0.0, 1.0);
    }
    for row in 0..curves.n() {
        assert_within("survival", curves.at(row, time, reading), 0.0, 1.0);
    }
    if let Ok(read) = check("survival_evaluator_curves", || survival_evaluator_curves(curves, &cohort.times)) {
        assert!(read.survival().iter().all(|survival| (0.0..=1.0).contains(survival)));
    }
    let _ = check("reading", || (reading.validate(), reading.to_string()));
}

fn estimators(input: &mut Input<'_>, cohort: &Cohort) {
    let outcomes = &cohort.outcomes;
    let time = input.any_number();
    let level = input.level();
    check("unique_times", || unique_times(outcomes));
    let beyond = input.pick(&[BeyondLastTime::Hold, BeyondLastTime::LinearToZero, BeyondLastTime::Refuse]);
    if let Ok(survival) = check("KaplanMeier", || KaplanMeier::fit(outcomes)) {
        assert_within("KaplanMeier::at", survival.at(time), 0.0, 1.0);
        assert_within("KaplanMeier::left_limit", survival.left_limit(time), 0.0, 1.0);
        check_within("at_or_beyond", 0.0, 1.0, || survival.at_or_beyond(time, beyond));
        for (low, high) in check("interval", || survival.interval(level)).into_iter().flatten().flatten() {
            assert_within("lower end of the Kaplan-Meier interval", low, 0.0, high);
            assert_within("upper end of the Kaplan-Meier interval", high, low, 1.0);
        }
        let _ = check("kaplan_meier_curves", || kaplan_meier_curves(&survival, &cohort.times, 2));
    }
    for ties in [TiedEvents::Together, TiedEvents::OneByOne] {
        if let Ok(hazard) = check("NelsonAalen", || NelsonAalen::fit(outcomes, ties)) {
            check("NelsonAalen::at", || hazard.at(time));
        }
    }
    for ties in [CensoringTies::EventsFirst, CensoringTies::Flipped] {
        let Ok(curve) = check("CensoringCurve", || CensoringCurve::fit(outcomes, ties)) else { continue };
        let curve = curve.with_beyond(beyond);
        check_within("CensoringCurve::at", 0.0, 1.0, || curve.at(time));
        check_within("CensoringCurve::left_limit", 0.0, 1.0, || curve.left_limit(time));
        for lookup in [CensoringLookup::RightContinuous, CensoringLookup::LeftLimit] {
            let floor = AtZeroCensoring::Floor(input.any_number());
            for at_zero in [AtZeroCensoring::Refuse, AtZeroCensoring::NoWeight, floor] {
                check_within("weight", 0.0, f64::MAX, || curve.weight(time, lookup, at_zero));
            }
        }
    }
}

fn brier(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, curves, censoring, reading, times } = cohort;
    let weights = input.weights(outcomes.n());
    let _ = check("brier_score", || brier_score(outcomes, curves, censoring, *reading, times));
    check_within("integrated_brier_score", 0.0, f64::MAX, || {
        integrated_brier_score(outcomes, curves, censoring, *reading, times)
    });
    if let Ok(prepared) = check("PreparedBrier", || PreparedBrier::new(outcomes, curves, censoring, *reading, times)) {
        check_within("weighted Brier score", 0.0, f64::MAX, || prepared.weighted(&weights));
    }
    check("survival_evaluator", || BrierConvention::survival_evaluator(outcomes));
    let rule = input.pick(&RULES);
    for convention in BRIER {
        let of_own_ties = convention.censoring_curve(outcomes);
        let censoring = of_own_ties.as_ref().unwrap_or(censoring);
        let score =
            check("brier_score_by", || brier_score_by(convention, outcomes, curves, censoring, *reading, times));
        for value in score.iter().flat_map(|score| &score.values) {
            assert_within("Brier score", *value, 0.0, f64::MAX);
        }
        let _ = check("integrated_brier_score_by", || {
            integrated_brier_score_by(convention, rule, outcomes, curves, censoring, *reading, times)
        });
        let prepared =
            check("PreparedBrier::by", || PreparedBrier::by(convention, outcomes, curves, censoring, *reading, times));
        if let Ok(prepared) = prepared {
            let _ = check("weighted Brier score", || prepared.weighted(&weights));
        }
    }
}

fn log_scores(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, curves, censoring, reading, times } = cohort;
    let flipped = CensoringCurve::fit(outcomes, CensoringTies::Flipped);
    let censoring = if input.flag() { censoring } else { flipped.as_ref().unwrap_or(censoring) };
    let rule = input.pick(&RULES);
    let _ = check("nbll", || nbll(outcomes, curves, censoring, *reading, times));
    let _ = check("integrated_nbll", || integrated_nbll(outcomes, curves, censoring, *reading, rule, times));
    for density in [EventDensity::LinearDensity, EventDensity::ExactMass, EventDensity::IntervalMass] {
        let _ = check("rcll", || rcll(outcomes, curves, density));
        let _ = check("negative_log_likelihood", || negative_log_likelihood(outcomes, curves, density));
        for form in [SnlForm::Documented, SnlForm::Mlr3proba] {
            let _ = check("snl", || snl(outcomes, curves, censoring, density, form));
        }
    }
    for loss in [TimeLoss::Brier, TimeLoss::Log, TimeLoss::Absolute] {
        for weights in [ScoreWeights::PerTime, ScoreWeights::PerSubject] {
            let score_rule = IntegratedScoreRule::new(loss, weights).averaged_by(rule);
            let _ = check("integrated score", || score_rule.score(outcomes, curves, censoring, *reading, times));
        }
    }
    if let Ok(baseline) = KaplanMeier::fit(outcomes).and_then(|km| kaplan_meier_curves(&km, curves.grid(), curves.n()))
    {
        let _ = check("explained_residual_variation", || {
            explained_residual_variation(curves, &baseline, |curves| {
                Ok(IntegratedScoreRule::RSBS.score(outcomes, curves, censoring, *reading, times)?.value)
            })
        });
    }
    let (model, baseline) = (input.any_number(), input.any_number());
    let _ = check("explained_residual_variation", || {
        explained_residual_variation(curves, &curves.select(&[]), |scored| {
            Ok(if scored.n() == curves.n() { model } else { baseline })
        })
    });
}
