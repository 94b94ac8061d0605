//! The section on a small analysis with known numbers.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fairtte_metrics::evaluation::GroupReport;
use fairtte_metrics::sensitivity::{
    AttributeSensitivity, FollowUp, ImputationModel, MetricSensitivity, ObservedValues, SensitivityPoint,
    SensitivityReport, SensitivitySettings, TippingPoint, Verdict,
};

use super::super::test_reports::{ODD_LEVEL, difference, estimate, report as evaluation};
use super::super::{render_page, tables_of_page};
use super::*;

/// The gap is 0.1 at random and shown, and no longer below a hazard ratio of 0.5.
fn analysis() -> SensitivityReport {
    let counts = [100, 40, 100];
    let point = |delta: f64, gap: f64| {
        let group = |level: &str, value| GroupReport {
            level: level.to_owned(),
            estimate: estimate(value, value - 0.05, value + 0.05, counts),
        };
        SensitivityPoint {
            delta,
            hazard_ratio: delta.exp(),
            overall: estimate(0.7 + delta / 10.0, 0.6, 0.8, counts),
            groups: vec![group("female", 0.7), group(ODD_LEVEL, 0.7 - gap)],
            gap: Some(estimate(gap, (gap - 0.06).max(0.0), gap + 0.06, counts)),
            gap_margin: Some(gap - 0.06),
            worst_group: Some(ODD_LEVEL.to_owned()),
            worst: Some(estimate(0.7 - gap, 0.5, 0.7, counts)),
            differences: vec![difference("female", ODD_LEVEL, gap)],
            imputation_share: Some(0.1),
        }
    };
    let half = 0.5_f64.ln();
    let metric = MetricSensitivity {
        name: "c_td_antolini_strict".to_owned(),
        label: "C^td".to_owned(),
        higher_is_better: true,
        target: None,
        no_best: false,
        observed: ObservedValues { overall: Some(0.71), groups: vec![Some(0.7), Some(0.61)], gap: Some(0.09) },
        points: vec![point(-1.5, 0.02), point(0.0, 0.1), point(1.5, 0.16)],
        tipping: vec![TippingPoint { verdict: Verdict::GapVanishes, groups: None, delta: half, hazard_ratio: 0.5 }],
    };
    let follow_up = |level: Option<&str>, n, n_events, n_dropouts, n_tilted| FollowUp {
        level: level.map(str::to_owned),
        n,
        n_events,
        n_dropouts,
        n_tilted,
        n_administrative: n - n_events - n_dropouts,
        pooled: level == Some(ODD_LEVEL),
    };
    let half_reading = MetricSensitivity { name: "c_td_half".to_owned(), ..metric.clone() };
    SensitivityReport {
        settings: SensitivitySettings { deltas: vec![-1.5, 0.0, 1.5], ..SensitivitySettings::default() },
        level: 0.95,
        n: 100,
        attributes: vec![AttributeSensitivity {
            attribute: Some("sex".to_owned()),
            end: 8.25,
            times: Some((1.5, 8.0, 100)),
            horizon: Some(4.0),
            n_redrawn: 0,
            follow_up: vec![
                follow_up(None, 100, 40, 30, 10),
                follow_up(Some("female"), 60, 25, 20, 0),
                follow_up(Some(ODD_LEVEL), 40, 15, 10, 10),
            ],
            metrics: vec![metric, half_reading],
        }],
    }
}

#[test]
fn the_terminal_says_where_the_verdict_turns_and_lists_every_hazard_ratio() {
    let expected = "
if censoring is informative
  The time after a drop-out is imputed from a Cox model of the predicted risk in
  every group, with the hazard of the drop-outs multiplied by a hazard ratio; 1
  is censoring at random. 20 imputations; 95 % intervals from 200 bootstrap
  draws, each imputed twice.
sex
  Follow-up up to time 8.25
  all: 100 samples, 40 events, 30 drop-outs (30 %, 20 of them with the hazard of
  those who stay), 30 followed to the end
  female: 60 samples, 25 events, 20 drop-outs (33 %, 20 of them with the hazard
  of those who stay), 15 followed to the end
  <b>old & \"frail\"</b>: 40 samples, 15 events, 10 drop-outs (25 %), 15 followed
  to the end; imputed by the model of all samples
  C^td
    Gap 0.100 (0.040 to 0.160) at random, 0.020 to 0.160 for hazard ratios from
    0.22 to 4.48. The interval shows a gap at random; the gap is no longer shown
    below a hazard ratio of 0.50.
  hazard ratio       all  interval            gap  interval         worst
          0.22     0.550  0.600 to 0.800    0.020  0.000 to 0.080   <b>old & \"fr
          1.00     0.700  0.600 to 0.800    0.100  0.040 to 0.160   <b>old & \"fr
          4.48     0.850  0.600 to 0.800    0.160  0.100 to 0.220   <b>old & \"fr
";
    assert_eq!(render_sensitivity(&Sensitivity::Report(analysis()), 80), expected);
    let none = render_sensitivity(&Sensitivity::Undefined("no horizon".to_owned()), 80);
    assert_eq!(none, "\nif censoring is informative\n  no analysis: no horizon\n");
}

#[test]
fn every_verdict_has_its_sentence() {
    let report = analysis();
    let attribute = &report.attributes[0];
    let sentence = |change: &dyn Fn(&mut MetricSensitivity)| {
        let mut metric = attribute.metrics[0].clone();
        change(&mut metric);
        words::verdict(attribute, &metric)
    };
    let none = sentence(&|metric| metric.tipping.clear());
    assert!(none.ends_with("shows a gap at random, and no hazard ratio in this range changes that."), "{none}");
    let appears = sentence(&|metric| {
        metric.points[1].gap_margin = Some(-0.01);
        metric.tipping[0] =
            TippingPoint { verdict: Verdict::GapAppears, delta: 1.0, hazard_ratio: 1_f64.exp(), groups: None };
        let groups = Some(("female".to_owned(), "male".to_owned()));
        metric.tipping.push(TippingPoint { verdict: Verdict::SignChanges, groups, delta: -1.0, hazard_ratio: 0.37 });
    });
    let expected =
        "shows none at random; a gap appears above a hazard ratio of 2.72; sign changes of female minus male at 0.37.";
    assert!(appears.ends_with(expected), "{appears}");
    let without = sentence(&|metric| metric.points[1].gap_margin = None);
    assert!(without.ends_with("without intervals there is no verdict."), "{without}");
    let methods = [
        (ImputationModel::RiskStrata { n: 4 }, "4 strata of the predicted risk"),
        (ImputationModel::KaplanMeier, "ignores the prediction"),
        (ImputationModel::Predicted, "which is taken as true"),
    ];
    for (model, words) in methods {
        let mut report = analysis();
        report.settings.model = model;
        assert!(words::method(&report).contains(words), "{}", words::method(&report));
    }
}

#[test]
fn the_page_has_a_section_with_a_figure_per_metric_and_the_tables_their_files() {
    let (evaluation, found) = (evaluation(), Sensitivity::Report(analysis()));
    let page = super::super::Page { sensitivity: Some(&found), ..super::super::tests::page(&evaluation, &[], &[]) };
    let html = render_page(&page).unwrap();
    assert!(html.contains("<a href=\"#sensitivity\">Informative censoring</a>"));
    assert!(html.contains("<h2>If censoring is informative</h2>"));
    assert!(html.contains("id=\"sensitivity-c-td_sex-title\""), "the figure");
    assert!(!html.contains("sensitivity-c-td_sex-2"), "the second reading has no figure");
    assert!(html.contains("turns at 0.50"), "the tipping point");
    assert!(html.contains("gap of C\u{1d57}\u{1d48} by sex"));
    assert!(!html.contains("<b>old"), "names are escaped");
    let tables = tables_of_page(&page);
    let table = tables.iter().find(|table| table.name == "sensitivity-c-td_sex").unwrap();
    let markdown = table.markdown();
    assert!(
        markdown.contains("| hazard ratio of the censored | all | 95 % interval | gap | 95 % interval | worst group |"),
        "{markdown}"
    );
    assert!(markdown.contains("| 4.48 | 0.850 | 0.600 to 0.800 | 0.160 | 0.100 to 0.220 |"), "{markdown}");
    let plain = render_page(&super::super::tests::page(&evaluation, &[], &[])).unwrap();
    assert!(!plain.contains("informative"), "only where it was asked for");
}

#[test]
fn the_flat_table_has_every_number_with_its_delta() {
    let rows = flat_rows(&Sensitivity::Report(analysis()));
    // Per metric and delta: all, two groups, gap, worst, difference; and a tipping point.
    assert_eq!(rows.len(), 2 * (3 * 6 + 1));
    let text = super::super::flat::text(&rows).unwrap();
    assert!(text.contains("c_td_antolini_strict,sex,sensitivity-gap,delta=-1.5,0.02,0,0.08"), "{text}");
    assert!(text.contains("c_td_antolini_strict,sex,sensitivity-group,delta=0: female,0.7,"), "{text}");
    assert!(text.contains("c_td_antolini_strict,sex,sensitivity-tipping-delta,gap-vanishes,-0.69314718"), "{text}");
    assert!(flat_rows(&Sensitivity::Undefined(String::new())).is_empty());
}
