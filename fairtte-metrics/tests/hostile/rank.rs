//! Concordance and AUC.

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::rank::{
    AucConvention, AucTd, ConcordanceTd, ConventionTd, TieTest, TiedPairs, TiedPredictions, UnoConvention, auc_td,
    auc_td_with, concordance_td, concordance_td_ipcw, concordance_td_with, harrell_concordance, harrell_variance,
    uno_concordance,
};

use super::check::{assert_within, check, check_within};
use super::input::{Cohort, Input};

const TIED_PAIRS: [TiedPairs; 4] = [TiedPairs::Dropped, TiedPairs::Predictions, TiedPairs::Times, TiedPairs::All];

pub fn try_all(input: &mut Input<'_>) {
    let Some(cohort) = Cohort::new(input) else { return };
    concordance_of_curves(input, &cohort);
    concordance_of_risks(input, &cohort);
    auc(input, &cohort);
}

fn concordance_of_curves(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, curves, censoring, reading, .. } = cohort;
    let weights = input.weights(outcomes.n());
    for ties in [TiedPredictions::Strict, TiedPredictions::Half] {
        if let Ok(c) = check("concordance_td", || concordance_td(outcomes, curves, *reading, ties)) {
            assert_within("concordance_td", c.value, 0.0, 1.0);
            assert_within("value_with", c.value_with(ties), c.value, c.value);
            let prepared = ConcordanceTd::prepare(outcomes, curves, *reading).expect("computed before");
            let same = prepared.weighted(&vec![1; outcomes.n()], ties);
            assert_eq!(same, Ok(c), "prepared and direct concordance");
        }
        if let Ok(prepared) = ConcordanceTd::prepare(outcomes, curves, *reading) {
            check_within("weighted concordance", 0.0, 1.0, || Ok(prepared.weighted(&weights, ties)?.value));
        }
    }
    let tau = input.flag().then(|| input.any_number());
    for ties in TIED_PAIRS {
        let reading = *reading;
        let convention = input.pick(&[
            ConventionTd::Antolini(TiedPredictions::Strict),
            ConventionTd::Antolini(TiedPredictions::Half),
            ConventionTd::Adjusted,
            ConventionTd::SurvivalEval(ties),
        ]);
        let with = check("concordance_td_with", || concordance_td_with(outcomes, curves, reading, convention));
        let ipcw =
            check("concordance_td_ipcw", || concordance_td_ipcw(outcomes, curves, reading, censoring, tau, ties));
        for sums in with.into_iter().chain(ipcw) {
            assert_within("concordance_td_with or _ipcw", sums.value, 0.0, 1.0);
        }
    }
}

fn concordance_of_risks(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, censoring, .. } = cohort;
    let n = input.length(outcomes.n());
    let Some(risk) = input.risk(n) else { return };
    let tau = input.flag().then(|| input.any_number());
    for test in [TieTest::Near, TieTest::Exact] {
        for ties in TIED_PAIRS {
            if let Ok(c) = check("harrell_concordance", || harrell_concordance(outcomes, &risk, test, ties)) {
                assert_within("harrell_concordance", c.value, 0.0, 1.0);
                for ties in TIED_PAIRS {
                    check_within("HarrellC::value_with", 0.0, 1.0, || c.value_with(ties));
                    let _ = check("HarrellC::share", || c.share(ties));
                }
            }
        }
        check_within("harrell_variance", 0.0, f64::MAX, || harrell_variance(outcomes, &risk, test));
    }
    for convention in [UnoConvention::ScikitSurvival, UnoConvention::SurvivalEval, UnoConvention::R] {
        let uno = check("uno_concordance", || uno_concordance(outcomes, &risk, censoring, tau, convention));
        if let Ok(c) = uno {
            assert_within("uno_concordance", c.value, 0.0, 1.0);
            check("weighted_comparable", || c.weighted_comparable());
        }
    }
}

fn auc(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, curves, censoring, reading, times } = cohort;
    let weights = input.weights(outcomes.n());
    let survival = KaplanMeier::fit(outcomes);
    let promised = |auc: &AucTd| {
        for value in auc.values.iter().chain([&auc.time_average]).flatten() {
            assert_within("AUC", *value, 0.0, 1.0);
        }
        if let Ok(survival) = &survival {
            check_within("drop_weighted_mean", 0.0, 1.0, || auc.drop_weighted_mean(survival));
        }
        check("n_undefined", || auc.n_undefined());
    };
    if let Ok(found) = check("auc_td", || auc_td(outcomes, curves, censoring, *reading, times)) {
        promised(&found);
    }
    for convention in [
        AucConvention::ScikitSurvival,
        AucConvention::SurvivalEval,
        AucConvention::SurvivalEvalNaive,
        AucConvention::RiskRegression,
    ] {
        let direct = check("auc_td_with", || auc_td_with(outcomes, curves, censoring, *reading, times, convention));
        if let Ok(auc) = direct {
            promised(&auc);
        }
        let prepared = AucTd::prepare_with(outcomes, curves, censoring, *reading, times, convention);
        if let Ok(auc) = prepared.and_then(|prepared| check("weighted AUC", || prepared.weighted(&weights))) {
            promised(&auc);
        }
        let time = input.any_number();
        let _ = check("case_weight", || convention.case_weight(censoring, time));
        check("is_control", || convention.is_control(time, true, 1.0));
    }
    // Public fields set to arbitrary values.
    if let Ok(survival) = &survival {
        let values = (0..input.below(4)).map(|_| Ok(input.any_number())).collect();
        let times = (0..input.below(4)).map(|_| input.any_number()).collect();
        let auc = AucTd { times, values, time_average: Ok(0.5) };
        let _ = check("drop_weighted_mean", || auc.drop_weighted_mean(survival));
    }
}
