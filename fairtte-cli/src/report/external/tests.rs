//! Pages of external validations whose cohorts were evaluated here.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::evaluation::{CohortReports, ScoredCohort, evaluate_cohorts};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves,
};
use ndarray::Array2;

use super::*;
use crate::case_mix::{CaseMixCell, CaseMixKind, CaseMixLine};

const ODD: &str = "<b>old & \"frail\"</b>";

/// Reports of 120 and 90 samples; the external curves are as good as `worse` allows.
fn reports(worse: bool, replicates: usize) -> CohortReports {
    let grid = [0.0, 1.0, 2.0, 3.0, 4.0];
    let rank = |row: usize| ((row * 37) % 251) as f64 / 251.0;
    let part = |n: usize, worse: bool| {
        let time = (0..n).map(|row| 0.2 + 3.6 * (1.0 - rank(row))).collect();
        let outcomes = Outcomes::new(time, (0..n).map(|row| row % 4 != 0).collect()).unwrap();
        let rate = |row: usize| 0.1 + if worse { rank(row * 5 + 3) } else { rank(row) };
        let curves = Array2::from_shape_fn((n, 5), |(row, k)| (-rate(row) * grid[k]).exp());
        let level = |row: usize| Some(GroupId(u32::from(row.is_multiple_of(3))));
        let levels = vec!["young".to_owned(), ODD.to_owned()];
        Made {
            subjects: (0..n).map(|row| SubjectId::new(format!("p{row}"))).collect(),
            curves: SurvivalCurves::new(grid.to_vec(), curves).unwrap(),
            censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap(),
            outcomes,
            groups: [Groups::new("age", levels, (0..n).map(level).collect()).unwrap()],
        }
    };
    let (own, other) = (part(120, false), part(90, worse));
    let metrics = ["c-td", "c-td-half", "ibs", "ici", "observed-expected"].map(str::to_owned).to_vec();
    let settings = EvaluationSettings { replicates, n_times: 10, metrics, ..EvaluationSettings::default() };
    evaluate_cohorts(&own.scored(), &other.scored(), &settings).unwrap()
}

struct Made {
    subjects: Vec<SubjectId>,
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    groups: [Groups; 1],
}

impl Made {
    fn scored(&self) -> ScoredCohort<'_> {
        let Self { subjects, outcomes, curves, censoring, groups } = self;
        ScoredCohort { subjects, outcomes, curves, censoring, groups }
    }
}

fn case_mix() -> CaseMix {
    let line = |kind, name: &str, smd: Option<f64>, undefined: Option<&str>| CaseMixLine {
        kind,
        attribute: (kind == CaseMixKind::Level).then(|| "age".to_owned()),
        name: name.to_owned(),
        internal: CaseMixCell { n: Some(120), share: Some(0.25), value: Some(3.0), deviation: Some(1.0) },
        external: CaseMixCell { n: Some(90), share: None, value: None, deviation: None },
        smd,
        undefined: undefined.map(str::to_owned),
    };
    let lines = vec![
        line(CaseMixKind::Count, "samples", None, None),
        line(CaseMixKind::Time, "median follow-up", None, None),
        line(CaseMixKind::Number, "predicted risk at the horizon", Some(-0.3), None),
        line(CaseMixKind::Attribute, "age", None, Some("there is no standard deviation")),
        line(CaseMixKind::Level, ODD, Some(0.1), None),
    ];
    CaseMix { lines }
}

fn with_page<T>(reports: &CohortReports, of: impl FnOnce(&ExternalPage<'_>) -> T) -> T {
    let facts = [("run".to_owned(), "runs/<films>".to_owned())];
    let notes = ["A note.".to_owned()];
    of(&ExternalPage {
        title: "films & more",
        internal: "test part of clinic A",
        external: "clinic <B>",
        facts: &facts,
        reports,
        case_mix: &case_mix(),
        time_unit: "years",
        censoring: "the other data",
        warnings: &[],
        notes: &notes,
        class: None,
        csv: "external.csv",
    })
}

#[test]
fn the_page_has_both_cohorts_side_by_side_and_escapes_what_it_is_given() {
    let reports = reports(true, 60);
    let html = with_page(&reports, |page| render_external_page(page).unwrap());
    assert!(html.contains("films &amp; more") && html.contains("clinic &lt;B&gt;") && !html.contains("<b>old"));
    assert!(html.contains("G of the external data on the other data"), "the censoring curve is named");
    for id in ["calibration-internal-all", "calibration-external-all", "forest-c-td", "forest-ibs"] {
        assert_eq!(html.matches(&format!("id=\"{id}-title\"")).count(), 1, "{id}");
    }
    assert!(html.contains("no SMD: there is no standard deviation"));
    assert!(html.contains("<td class=\"large\">-0.300</td>") && html.contains("<td>0.100</td>"), "0.1 is small");
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an id occurs twice");
    assert!(html.contains("Every number is that of C<sup>td</sup>"));
    assert_eq!(html.matches("<table").count(), html.matches("<caption").count(), "every table has its caption");
    assert!(!html.contains("<th>"), "every heading has a scope");
}

#[test]
fn without_replicates_nothing_is_called_a_change() {
    let reports = reports(true, 0);
    let said = with_page(&reports, external_verdict);
    assert!(said[0].ends_with("whether that is chance was not tested."), "{}", said[0]);
    assert!(said[1].starts_with("Whether C^td changes more for one group"), "{}", said[1]);
    let html = with_page(&reports, |page| render_external_page(page).unwrap());
    assert!(html.contains("No intervals were computed."));
}

#[test]
fn a_change_is_stated_only_if_its_adjusted_p_value_is_small() {
    let mut reports = reports(true, 60);
    let said = |reports: &CohortReports| with_page(reports, external_verdict);
    let overall = &mut reports.metrics[0].overall.difference;
    (overall.value, overall.lower, overall.upper) = (Some(-0.2), Some(-0.3), Some(-0.1));
    (overall.p_value, overall.p_holm) = (Some(0.01), Some(0.04));
    let text = said(&reports)[0].clone();
    assert!(
        text.starts_with("C^td falls from ") && text.ends_with("-0.200 (interval -0.300 to -0.100; Holm p = 0.040)."),
        "{text}"
    );
    reports.metrics[0].overall.difference.p_holm = Some(0.06);
    let text = said(&reports)[0].clone();
    assert!(text.starts_with("C^td over all samples goes from") && text.contains("which may be chance"), "{text}");
    // At the error level it is small, as in an evaluation: 1 - 0.9 is a little below 0.1.
    reports.internal.settings.level = 0.9;
    reports.metrics[0].overall.difference.p_holm = Some(0.1);
    assert!(said(&reports)[0].starts_with("C^td falls from "), "{}", said(&reports)[0]);
    reports.metrics[0].overall.difference.value = None;
    reports.metrics[0].overall.difference.undefined = Some("no events".to_owned());
    assert_eq!(said(&reports)[0], "Whether C^td changes in the external data cannot be said: no events.");
}

#[test]
fn the_group_that_lost_more_is_named_whichever_way_round_the_pair_is() {
    let mut reports = reports(true, 60);
    let said = |reports: &CohortReports| with_page(reports, external_verdict)[1].clone();
    let mut set = |value: f64, p: f64| {
        let change = &mut reports.metrics[0].attributes[0].changes[0];
        let difference = &mut change.difference;
        (difference.value, difference.p_value, difference.p_holm) = (Some(value), Some(p), None);
        difference.undefined = None;
        said(&reports)
    };
    assert!(set(-0.2, 0.01).starts_with("age = young fares worse in the external data than age = <b>old"));
    assert!(
        set(0.2, 0.01).starts_with("age = <b>old & \"frail\"</b> fares worse in the external data than age = young")
    );
    assert_eq!(set(0.2, 0.06), "No group is shown to change more in C^td than another.");
    reports.metrics[0].attributes.clear();
    assert!(said(&reports).starts_with("No groups are in both cohorts"));
}

#[test]
fn the_terminal_has_80_columns_and_every_number_a_line() {
    let reports = reports(true, 60);
    let text = with_page(&reports, |page| render_external_table(page, 80));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("internal: test part of clinic A, 120 samples of 120 subjects, 90 events"), "{text}");
    assert!(unwrapped.contains("censoring curve of the external data: the other data"), "{text}");
    assert!(unwrapped.contains("every number is that of C^td"), "{text}");
    assert_eq!(text.matches("gap by age").count(), 4, "{text}");
    assert!(unwrapped.contains("median follow-up, years 3 not reached"), "{text}");
}

#[test]
fn what_the_common_times_cut_is_said() {
    let mut reports = reports(false, 0);
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the path of the method has one lifetime, the closure any"
    )]
    let cut = |reports: &CohortReports| with_page(reports, |page| page.cut());
    let common = reports.internal.times.clone().unwrap();
    (reports.internal_times, reports.external_times) = (Some(common.clone()), Some(common.clone()));
    assert!(cut(&reports).is_empty());
    let (lower, upper) = (0.25, common.upper);
    reports.external_times = Some(fairtte_metrics::evaluation::TimeWindow { lower, ..common });
    let to = super::super::format::short(upper);
    assert_eq!(cut(&reports), [format!("By itself, the external cohort would be evaluated from 0.25 to {to} years")]);
}
