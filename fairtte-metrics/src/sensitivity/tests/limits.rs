//! What is known exactly: the ends of the scale, and data without drop-outs.

use approx::assert_relative_eq;

use super::cohort::{Cohort, Design, END, settings, values};
use crate::sensitivity::{ImputationModel, SensitivitySettings, TiltedGroup, sensitivity};
use crate::{EvaluationSettings, MetricError, Outcomes};

const METRICS: [&str; 7] = ["c-td", "c-td-half", "auc-td", "ibs", "d-calibration", "observed-expected", "brier@0.3"];
const MODELS: [ImputationModel; 4] = [
    ImputationModel::Cox,
    ImputationModel::RiskStrata { n: 3 },
    ImputationModel::KaplanMeier,
    ImputationModel::Predicted,
];

/// Everyone who drops out does so early, so that every draw has later events in every stratum.
fn early_dropouts() -> Cohort {
    let cohort = Design { n: 400, dropout: 0.5, delta: [0.0; 2], noise: [0.5; 2] }.draw(3);
    let (time, event) = (cohort.observed.time(), cohort.observed.event());
    let early = |(time, event): (&f64, &bool)| if *event || *time >= END { *time } else { 0.1 * time };
    let observed = Outcomes::new(time.iter().zip(event).map(early).collect(), event.to_vec()).unwrap();
    Cohort { observed, ..cohort }
}

fn few(deltas: &[f64], model: ImputationModel) -> SensitivitySettings {
    SensitivitySettings { deltas: deltas.to_vec(), model, imputations: 3, replicates: 0, ..Default::default() }
}

/// The cohort with its drop-outs as events at once, or as event-free to the end.
fn replaced(cohort: &Cohort, as_events: bool) -> Cohort {
    let rows = cohort.observed.time().iter().zip(cohort.observed.event());
    let outcome = |(time, event): (&f64, &bool)| match (event, *time < END) {
        (false, true) if as_events => (*time, true),
        (false, true) => (END, false),
        (event, _) => (*time, *event),
    };
    let (time, event) = rows.map(outcome).unzip();
    Cohort {
        complete: Outcomes::new(time, event).unwrap(),
        observed: cohort.observed.clone(),
        curves: cohort.curves.clone(),
        groups: cohort.groups.clone(),
        subjects: cohort.subjects.clone(),
    }
}

#[test]
fn the_ends_of_the_scale_are_an_event_at_once_and_no_event_to_the_end() {
    let cohort = early_dropouts();
    let (at_once, never) = (replaced(&cohort, true).truth(&METRICS), replaced(&cohort, false).truth(&METRICS));
    for model in MODELS {
        let found = cohort.analyse(&METRICS, &few(&[-50.0, 0.0, 50.0], model));
        let attribute = &found.attributes[0];
        assert!(attribute.follow_up[0].n_dropouts > 50);
        for (metric, (at_once, never)) in attribute.metrics.iter().zip(at_once.iter().zip(&never)) {
            for k in 0..3 {
                assert_relative_eq!(values(metric, 0)[k], never[k], max_relative = 1e-12);
                assert_relative_eq!(values(metric, 2)[k], at_once[k], max_relative = 1e-12);
            }
            assert!((at_once[0] - never[0]).abs() > 1e-3, "{} does not tell the ends apart", metric.name);
        }
    }
}

#[test]
fn without_drop_outs_every_delta_gives_the_metrics_of_the_report() {
    let cohort = Design { n: 200, dropout: 1e-9, delta: [0.0; 2], noise: [0.5; 2] }.draw(4);
    let truth = cohort.truth(&METRICS);
    let found = cohort.analyse(&METRICS, &SensitivitySettings { replicates: 20, ..few(&[-1.0, 0.0, 1.0], MODELS[0]) });
    let follow_up = &found.attributes[0].follow_up;
    assert_eq!((follow_up[0].n, follow_up[0].n_dropouts), (200, 0));
    assert_eq!(follow_up[0].n_administrative, cohort.observed.event().iter().filter(|event| !**event).count());
    for (metric, truth) in found.attributes[0].metrics.iter().zip(&truth) {
        for place in 0..3 {
            for (value, truth) in values(metric, place).iter().zip(truth) {
                assert_relative_eq!(*value, *truth, max_relative = 1e-12);
            }
            assert_eq!(metric.points[place].imputation_share, Some(0.0));
        }
        assert_relative_eq!(metric.observed.overall.unwrap(), truth[0], max_relative = 1e-12);
        assert_relative_eq!(metric.observed.gap.unwrap(), (truth[1] - truth[2]).abs(), max_relative = 1e-9);
        assert!(metric.points[0].overall.lower < metric.points[0].overall.upper);
    }
}

#[test]
fn only_the_drop_outs_of_the_named_group_are_tilted() {
    let cohort = Design { n: 300, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(5);
    let group = Some(TiltedGroup { attribute: "group".to_owned(), level: "b".to_owned() });
    let tilt = SensitivitySettings { group, ..few(&[-2.0, 0.0, 2.0], ImputationModel::Cox) };
    let found = cohort.analyse(&["observed-expected"], &tilt);
    let attribute = &found.attributes[0];
    assert_eq!(attribute.follow_up[0].n_tilted, attribute.follow_up[2].n_dropouts);
    assert_eq!(attribute.follow_up[1].n_tilted, 0);
    let of = |place: usize| values(&attribute.metrics[0], place);
    assert_eq!([of(0)[1], of(2)[1]], [of(1)[1]; 2]);
    // Observed divided by expected rises with the hazard.
    assert!(of(0)[2] < of(1)[2] && of(1)[2] < of(2)[2]);
    let both = cohort.analyse(&["observed-expected"], &few(&[-2.0, 0.0, 2.0], ImputationModel::Cox));
    let of = |place: usize| values(&both.attributes[0].metrics[0], place);
    assert!(of(0)[1] < of(1)[1] && of(1)[1] < of(2)[1]);
}

#[test]
fn nothing_is_imputed_beyond_the_administrative_end() {
    let cohort = Design { n: 300, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(6);
    let tilt = SensitivitySettings { administrative: Some(0.4), ..few(&[0.0, 50.0], ImputationModel::KaplanMeier) };
    let groups = std::slice::from_ref(&cohort.groups);
    let evaluation = EvaluationSettings { times: Some(vec![0.1, 0.3]), ..settings(&["brier@0.3"]) };
    let analyse = |evaluation: &EvaluationSettings, tilt: &SensitivitySettings| {
        let Cohort { subjects, observed, curves, .. } = &cohort;
        sensitivity(subjects, observed, curves, &cohort.censoring(), groups, evaluation, tilt)
    };
    let found = analyse(&evaluation, &tilt).unwrap();
    let (time, event) = (cohort.observed.time(), cohort.observed.event());
    let early = (0..300).filter(|&row| !event[row] && time[row] < 0.4).count();
    let (attribute, events) = (&found.attributes[0], (0..300).filter(|&row| event[row] && time[row] <= 0.4).count());
    assert_eq!(
        (attribute.end, attribute.follow_up[0].n_dropouts, attribute.follow_up[0].n_events),
        (0.4, early, events)
    );
    assert_eq!(attribute.follow_up[0].n_administrative, 300 - early - events);
    // Of the drop-outs, those before 0.3 are events at once; the others are known to be without one at 0.3.
    let survival = cohort.curves.all_at(0.3, evaluation.reading);
    let squares = (0..300).map(|row| {
        let has_event = time[row] <= 0.3;
        if has_event { survival[row].powi(2) } else { (1.0 - survival[row]).powi(2) }
    });
    let expected = squares.sum::<f64>() / 300.0;
    assert_relative_eq!(attribute.metrics[0].points[1].overall.value.unwrap(), expected, max_relative = 1e-9);
    let late = analyse(&settings(&["brier@0.4"]), &tilt);
    let times = EvaluationSettings { times: None, horizon: None, ..settings(&["brier@0.4"]) };
    assert_eq!(late.unwrap_err(), MetricError::NotBeforeEnd { time: 0.4, end: 0.4 });
    assert_eq!(analyse(&times, &tilt).unwrap_err(), MetricError::NotBeforeEnd { time: 0.4, end: 0.4 });
}
