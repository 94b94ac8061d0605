use ndarray::Array2;

use super::*;
use crate::CensoringTies;
use crate::estimators::BeyondLastTime;

struct Cohort {
    subjects: Vec<SubjectId>,
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    groups: Groups,
}

/// Exponential times with known rates, a third censored, and the true curves; 40 % in the group F.
fn cohort(n: usize) -> Cohort {
    let mut rng = stream(5, "test/power", &[]);
    let rates: Vec<f64> = (0..n).map(|_| (3.0 * rng.random::<f64>() - 1.5).exp()).collect();
    let mut waited = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
    let both: Vec<(f64, f64)> = rates.iter().map(|rate| (waited(*rate), waited(0.5))).collect();
    let times = both.iter().map(|(event, censored)| event.min(*censored)).collect();
    let events = both.iter().map(|(event, censored)| event <= censored).collect();
    let outcomes = Outcomes::new(times, events).unwrap();
    let grid: Vec<f64> = (0..20).map(|k| 0.15 * f64::from(k)).collect();
    let survival = Array2::from_shape_fn((n, 20), |(row, k)| (-rates[row] * grid[k]).exp());
    let censoring =
        CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap().with_beyond(BeyondLastTime::Hold);
    let membership = (0..n).map(|row| Some(GroupId(u32::from(row % 5 > 1)))).collect();
    Cohort {
        subjects: (0..n).map(|row| SubjectId::new(format!("{row:04}"))).collect(),
        outcomes,
        curves: SurvivalCurves::new(grid, survival).unwrap(),
        censoring,
        groups: Groups::new("sex", vec!["F".into(), "M".into()], membership).unwrap(),
    }
}

fn power<'a>(
    cohort: &'a Cohort,
    evaluation: &EvaluationSettings,
    settings: &PowerSettings,
) -> Result<Power<'a>, MetricError> {
    Power::new(
        (&cohort.subjects, &cohort.outcomes),
        (&cohort.curves, &cohort.censoring),
        (&cohort.groups, "F"),
        evaluation,
        settings,
    )
}

fn evaluation() -> EvaluationSettings {
    EvaluationSettings {
        replicates: 60,
        permutations: 39,
        metrics: ["c-td", "ibs", "observed-expected"].map(str::to_owned).to_vec(),
        n_times: 20,
        ..EvaluationSettings::default()
    }
}

#[test]
fn without_degradation_few_repeats_find_a_gap_and_with_all_curves_exchanged_most_do() {
    let cohort = cohort(300);
    let settings = PowerSettings { shares: vec![0.0, 1.0], repeats: 80, ..PowerSettings::default() };
    let power = power(&cohort, &evaluation(), &settings).unwrap();
    let at: Vec<_> = power.shares().iter().map(|share| power.at(*share).unwrap()).collect();
    let curves = power.curves(&at);
    let [c, ibs, means] = [&curves[0], &curves[1], &curves[2]];
    assert_eq!((c.name.as_str(), means.name.as_str()), ("c_td_antolini_strict", "observed-expected"));
    for metric in &curves {
        // The permutation test has its level whatever the metric: at most 5 % in the mean, four standard errors are 10 points.
        let rate = metric.shares[0].by_permutation.unwrap();
        assert!(rate.rate <= 0.15 && rate.n == 80 && rate.lower <= rate.rate && rate.rate <= rate.upper, "{metric:?}");
        // An interval that reaches 0 excludes nothing. Of 60 replicates it is narrower than of many: twice 5 % and four standard errors.
        let rate = metric.shares[0].by_interval.unwrap();
        assert!(rate.rate <= 0.25 && rate.n == 80 && rate.n_undefined == 0, "{metric:?}");
        // Labels that stand for nothing do have a gap.
        assert!(metric.shares[0].mean_gap.unwrap() > 0.0);
    }
    // C of the exchanged group is 1/2 in the mean, that of the others about 0.7.
    for rate in [c.shares[1].by_permutation, c.shares[1].by_interval] {
        assert!(rate.unwrap().rate > 0.9, "{c:?}");
    }
    assert!(c.shares[1].mean_gap.unwrap() > c.shares[0].mean_gap.unwrap() + 0.1);
    assert!(ibs.shares[1].by_permutation.unwrap().rate > 0.5, "{ibs:?}");
    // The mean prediction of the group stays, and so does what compares it with the observed risk.
    assert!(means.shares[1].by_permutation.unwrap().rate <= 0.2, "{means:?}");
    assert_eq!((c.smallest_by_permutation, means.smallest_by_permutation), (Some(1.0), None));
    assert_eq!((c.smallest_by_interval, means.smallest_by_interval), (Some(1.0), None));
}

#[test]
fn the_smallest_share_is_one_from_which_on_the_target_is_reached() {
    let cohort = cohort(60);
    let settings = PowerSettings { repeats: 1, ..PowerSettings::default() };
    let power = power(&cohort, &evaluation(), &settings).unwrap();
    let at = |share: f64, rate: f64| {
        let rate = Rate { n_found: 0, n: 1, n_undefined: 0, rate, lower: 0.0, upper: 1.0 };
        vec![(
            "c".to_owned(),
            "C".to_owned(),
            PowerAt { share, mean_gap: None, by_interval: None, by_permutation: Some(rate) },
        )]
    };
    let smallest = |rates: &[f64]| {
        let at: Vec<_> = rates.iter().zip(0..).map(|(rate, place)| at(f64::from(place), *rate)).collect();
        power.curves(&at)[0].smallest_by_permutation
    };
    assert_eq!(smallest(&[0.0, 0.85, 0.7, 0.8, 0.95]), Some(3.0));
    assert_eq!(smallest(&[0.0, 0.85, 0.7]), None);
    assert_eq!(smallest(&[0.9, 0.85]), Some(0.0));
    assert_eq!(power.curves(&[at(0.0, 1.0)])[0].smallest_by_interval, None);
    assert_eq!(power.curves(&[]), []);
}

#[test]
fn a_share_depends_on_nothing_but_itself_and_the_seed() {
    let cohort = cohort(80);
    let settings = PowerSettings { repeats: 6, ..PowerSettings::default() };
    let evaluation = EvaluationSettings { replicates: 0, metrics: vec!["c-td".to_owned()], ..evaluation() };
    let run = |settings: &PowerSettings| power(&cohort, &evaluation, settings).unwrap().at(0.5).unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| run(&settings)), run(&settings));
    assert_eq!(run(&settings), run(&PowerSettings { shares: vec![0.5], ..settings.clone() }));
    assert_ne!(run(&settings), run(&PowerSettings { seed: 1, ..settings.clone() }));
    assert_eq!(run(&settings)[0].2.by_interval, None);
}

#[test]
fn settings_and_groups_that_cannot_be_are_named() {
    let cohort = cohort(40);
    let message = |settings: PowerSettings| power(&cohort, &evaluation(), &settings).map(drop).unwrap_err().to_string();
    let default = PowerSettings::default;
    assert!(message(PowerSettings { shares: vec![1.5], ..default() }).contains("shares is 1.5"));
    assert!(message(PowerSettings { shares: vec![0.5, 0.5], ..default() }).contains("ascending"));
    assert!(message(PowerSettings { shares: vec![], ..default() }).contains("shares is empty"));
    assert!(message(PowerSettings { repeats: 0, ..default() }).contains("repeats is 0"));
    assert!(message(PowerSettings { target: 1.0, ..default() }).contains("target is 1"));
    let of = |groups: &Groups, level: &str, evaluation: EvaluationSettings| {
        Power::new(
            (&cohort.subjects, &cohort.outcomes),
            (&cohort.curves, &cohort.censoring),
            (groups, level),
            &evaluation,
            &default(),
        )
        .map(drop)
        .unwrap_err()
        .to_string()
    };
    assert!(of(&cohort.groups, "X", evaluation()).contains("level is X"));
    let levels = vec!["F".to_owned(), "M".to_owned()];
    let one = Groups::new("sex", levels, vec![Some(GroupId(0)); 40]).unwrap();
    assert!(of(&one, "M", evaluation()).contains("a level with samples"));
    assert!(of(&one, "F", evaluation()).contains("two groups"));
    let neither = EvaluationSettings { replicates: 0, permutations: 0, ..evaluation() };
    assert!(of(&cohort.groups, "F", neither).contains("replicates or permutations"));
}
