//! What is known up to chance: estimates under censoring at random, and under a known dependence.

use super::cohort::{Cohort, Design, END, values};
use crate::sensitivity::{ImputationModel, SensitivitySettings, TiltedGroup, Verdict};

const METRICS: [&str; 3] = ["auc-td", "ibs", "observed-expected"];

fn at(deltas: &[f64], model: ImputationModel) -> SensitivitySettings {
    SensitivitySettings { deltas: deltas.to_vec(), model, imputations: 10, replicates: 0, ..Default::default() }
}

/// Largest distance of the values at `place` from the metrics of the complete outcomes, by metric.
fn errors(cohort: &Cohort, found: &crate::sensitivity::SensitivityReport, place: usize) -> Vec<f64> {
    let truth = cohort.truth(&METRICS);
    let of_metric = |(metric, truth): (&crate::sensitivity::MetricSensitivity, &[f64; 3])| {
        values(metric, place).iter().zip(truth).map(|(found, truth)| (found - truth).abs()).fold(0.0, f64::max)
    };
    found.attributes[0].metrics.iter().zip(&truth).map(of_metric).collect()
}

#[test]
fn without_a_tilt_the_estimates_are_those_of_censoring_weights() {
    // Drop-out does not depend on anything, so the weights are right; 3 in 10 drop out.
    let cohort = Design { n: 6_000, dropout: 0.7, delta: [0.0; 2], noise: [0.4, 1.0] }.draw(11);
    for model in [ImputationModel::Cox, ImputationModel::RiskStrata { n: 12 }] {
        let found = cohort.analyse(&METRICS, &at(&[-1.0, 0.0, 1.0], model));
        for metric in &found.attributes[0].metrics {
            // Standard errors at this size are about 0.01, 0.003 and 0.025 in a group; both use the same samples.
            let tolerance = match metric.name.as_str() {
                "auc_td" => 0.01,
                "ibs" => 0.003,
                _ => 0.025,
            };
            let observed = [metric.observed.overall, metric.observed.groups[0], metric.observed.groups[1]];
            for (found, observed) in values(metric, 1).iter().zip(observed) {
                assert!((found - observed.unwrap()).abs() < tolerance, "{}: {found} {observed:?}", metric.name);
            }
        }
        // A tilt would be seen.
        let of_ratio = &found.attributes[0].metrics[2];
        assert!((values(of_ratio, 0)[0] - of_ratio.observed.overall.unwrap()).abs() > 0.06);
        assert!((values(of_ratio, 2)[0] - of_ratio.observed.overall.unwrap()).abs() > 0.06);
    }
}

#[test]
fn kaplan_meier_within_groups_reproduces_survival_but_not_discrimination() {
    let cohort = Design { n: 6_000, dropout: 0.7, delta: [0.0; 2], noise: [0.4; 2] }.draw(12);
    let found = cohort.analyse(&METRICS, &at(&[0.0], ImputationModel::KaplanMeier));
    let of = |place: usize| &found.attributes[0].metrics[place];
    for k in 0..2 {
        let observed = of(2).observed.groups[k].unwrap();
        assert!((values(of(2), 0)[k + 1] - observed).abs() < 0.01, "{} {observed}", values(of(2), 0)[k + 1]);
    }
    assert!(of(0).observed.overall.unwrap() - values(of(0), 0)[0] > 0.03);
}

#[test]
fn the_known_dependence_is_recovered_and_ignoring_it_is_biased() {
    for delta in [-1.0, 1.0] {
        let cohort = Design { n: 6_000, dropout: 0.9, delta: [delta; 2], noise: [0.4, 0.9] }.draw(13);
        for model in [ImputationModel::Cox, ImputationModel::RiskStrata { n: 12 }] {
            let deltas = if delta < 0.0 { [delta, 0.0, 1.0] } else { [-1.0, 0.0, delta] };
            let found = cohort.analyse(&METRICS, &at(&deltas, model));
            let (right, wrong) = if delta < 0.0 { (0, 2) } else { (2, 0) };
            let [known, ignored, reversed] = [right, 1, wrong].map(|place| errors(&cohort, &found, place));
            // The event probability: within its chance at delta, off by much more at 0 and most with the wrong sign.
            assert!(known[2] < 0.035, "{delta} {model:?} {known:?}");
            assert!(
                ignored[2] > 2.5 * known[2] && reversed[2] > 1.5 * ignored[2],
                "{known:?} {ignored:?} {reversed:?}"
            );
            assert!(known[1] < 0.005 && ignored[1] > 2.0 * known[1], "{known:?} {ignored:?}");
            assert!(known[0] < 0.01 && ignored[0] > known[0], "{known:?} {ignored:?}");
        }
    }
}

#[test]
fn censoring_that_is_informative_in_one_group_makes_a_gap_that_the_tilt_of_this_group_removes() {
    // The model is right for both groups, but who leaves in group b is about to have the event.
    let design = |delta| Design { n: 6_000, dropout: 0.9, delta: [0.0, delta], noise: [0.4; 2] };
    let cohort = design(1.0).draw(14);
    let group = Some(TiltedGroup { attribute: "group".to_owned(), level: "b".to_owned() });
    let tilt = SensitivitySettings { group, replicates: 60, ..at(&[-2.0, -1.0, 0.0, 1.0, 2.0], ImputationModel::Cox) };
    let found = cohort.analyse(&["observed-expected"], &tilt);
    let metric = &found.attributes[0].metrics[0];
    let truth = cohort.truth(&["observed-expected"])[0];
    let difference = |values: [f64; 3]| values[1] - values[2];
    let at_truth = values(metric, 3);
    assert!((difference(at_truth) - difference(truth)).abs() < 0.04, "{at_truth:?} {truth:?}");
    assert!((difference(values(metric, 2)) - difference(truth)).abs() > 0.1);
    // Observed events of group b rise with delta: the gap that is there at delta = 1 vanishes on the way down.
    let margins: Vec<f64> = metric.points.iter().map(|point| point.gap_margin.unwrap()).collect();
    for (point, margin) in metric.points.iter().zip(&margins) {
        let gap = point.gap.as_ref().unwrap();
        assert_eq!(gap.lower > Some(0.0), *margin > 0.0);
        assert_eq!(point.differences[0].difference.value, Some(difference(values_of(point))));
    }
    assert!(margins[4] > 0.0 && margins[0] > 0.0, "{margins:?}");
    let zero_is_excluded = margins[2] > 0.0;
    let verdict = if zero_is_excluded { Verdict::GapVanishes } else { Verdict::GapAppears };
    let turns: Vec<_> = metric.tipping.iter().filter(|point| point.groups.is_none()).collect();
    assert!(!turns.is_empty() && turns.iter().all(|point| point.verdict == verdict), "{turns:?}");
    for point in &metric.tipping {
        assert!((point.hazard_ratio.ln() - point.delta).abs() < 1e-12);
    }
    assert_eq!(found.attributes[0].end, END);
}

fn values_of(point: &crate::sensitivity::SensitivityPoint) -> [f64; 3] {
    let group = |k: usize| point.groups[k].estimate.value.unwrap();
    [point.overall.value.unwrap(), group(0), group(1)]
}
