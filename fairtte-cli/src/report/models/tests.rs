#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeSet;

use fairtte_data::table::Table;
use fairtte_metrics::evaluation::evaluate_models;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves,
};
use ndarray::Array2;

use super::*;

const N: usize = 80;
const ODD: &str = "<b>a model with quite a long name & \"more\"</b>";

fn curves(turn: usize) -> SurvivalCurves {
    // No two are equal.
    let rate = |row: usize| 0.1 + 0.02 * ((row * 7) % N) as f64 + 0.031 * (turn * (row % 5)) as f64;
    let survival = Array2::from_shape_fn((N, 6), |(row, time)| (-rate(row) * time as f64).exp());
    SurvivalCurves::new((0..6).map(f64::from).collect(), survival).unwrap()
}

/// Three models, of which the third is a copy of the first; one group has few events.
fn reports(replicates: usize) -> ModelReports {
    reports_of(replicates, Vec::new())
}

/// The same with decisions at these thresholds.
fn reports_of(replicates: usize, thresholds: Vec<f64>) -> ModelReports {
    let time = (0..N).map(|row| 0.5 + 4.0 * (1.0 - ((row * 7) % N) as f64 / N as f64)).collect();
    let outcomes = Outcomes::new(time, (0..N).map(|row| row % 4 != 0).collect()).unwrap();
    let subjects: Vec<SubjectId> = (0..N).map(|row| SubjectId::new(format!("p{row}"))).collect();
    let group = |row: usize| Some(GroupId(if row < 6 { 2 } else { u32::from(row.is_multiple_of(2)) }));
    let levels = ["F", "M", "few"].map(str::to_owned).to_vec();
    let sex = Groups::new("sex", levels, (0..N).map(group).collect()).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let metrics = ["c-td", "c-td-half", "ibs", "observed-expected@2"].map(str::to_owned).to_vec();
    let settings = EvaluationSettings { replicates, metrics, thresholds, ..EvaluationSettings::default() };
    let all = [curves(0), curves(3), curves(0)];
    let models = [("CNN", &all[0]), (ODD, &all[1]), ("copy", &all[2])];
    evaluate_models(&models, 0, &subjects, &outcomes, &censoring, &[sex], &settings).unwrap()
}

fn html(reports: &ModelReports) -> String {
    let (facts, notes) = ([("file".to_owned(), "a.csv".to_owned())], ["a <note>".to_owned()]);
    let page = ModelsPage {
        title: "Three models",
        subtitle: "",
        facts: &facts,
        reports,
        time_unit: "years",
        censoring: "the training sample",
        warnings: &[],
        notes: &notes,
        csv: ("scores.csv", "model,value\n"),
        class: None,
    };
    render_models_page(&page).unwrap()
}

#[test]
fn every_figure_and_table_of_the_page_is_accessible_and_escaped() {
    let html = html(&reports(30));
    // C^td repeats as its second version, so there are three metrics, each with a forest and a scatter. Calibration: all models
    // over each other, and every model by sex.
    let n_svg = html.matches("<svg").count();
    assert_eq!(n_svg, 3 * 2 + (1 + 3));
    for part in ["role=\"img\"", "<title id=", "<desc id="] {
        assert_eq!(html.matches(part).count(), n_svg, "{part}");
    }
    let ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert_eq!(html.matches("<table").count(), html.matches("<caption").count());
    // Who was evaluated, a summary, and per metric two models beside the reference.
    assert_eq!(html.matches("<table").count(), 1 + 1 + 3 * 2);
    assert!(!html.contains("<th>") && !html.contains("<b>a model") && !html.contains("<note>"));
    assert!(!html.contains("http") && !html.contains("<script"), "nothing from elsewhere");
}

#[test]
fn a_copy_of_the_reference_differs_by_nothing_and_a_small_group_says_why_it_has_no_interval() {
    let reports = reports(30);
    let html = html(&reports);
    assert!(html.contains("copy minus CNN: 0.000 (0.000 to 0.000), p = 1.000, Holm p = 1.000."), "{html}");
    let lines = lines::of_metric(&reports, "ibs");
    let few = lines[0].lines.iter().find(|line| line.name == "sex: few").unwrap();
    assert_eq!((few.interval.as_str(), few.p.as_str(), few.holm.as_str()), ("none", "", ""));
    assert!(few.remarks[0].starts_with("no interval: "), "{few:?}");
    let report = &reports.models[1].1;
    let gap = lines[0].lines.iter().find(|line| line.name == "gap by sex").unwrap();
    let gap_of = |report: &fairtte_metrics::EvaluationReport| report.metric("ibs").unwrap().attributes[0].gap.value;
    let expected = gap_of(report).unwrap() - gap_of(&reports.models[0].1).unwrap();
    assert_eq!(gap.value, lines::signed(expected));
}

#[test]
fn the_page_says_of_every_model_what_its_own_page_says() {
    let reports = reports_of(30, vec![0.3]);
    let html = html(&reports);
    let verdicts: Vec<&str> = html.split("<div class=\"verdict\">").skip(1).collect();
    assert_eq!(verdicts.len(), 3);
    for (said, (_, report)) in verdicts.iter().zip(&reports.models) {
        let expected = super::super::verdict::verdict(report, "years");
        assert_eq!(said.split("</div>").next().unwrap().matches("<p>").count(), expected.len());
        let plain = said.replace("C<sup>td</sup>", "C^td").replace('\u{a0}', " ");
        let first = super::super::format::escape(&expected[0]);
        assert!(plain.contains(&first), "{first}\n{plain}");
    }
    for part in
        ["calibration-model", "calibration-cnn_by-sex", "calibration-copy_by-sex", "decision-all", "decision-sex_f"]
    {
        assert!(html.contains(&format!("<title id=\"{part}-title\">")), "{part}");
    }
    let who = html.split("<table class=\"numbers who\">").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!((who.matches(" class=\"model next\"").count(), who.matches(">predicted risk<").count()), (3, 3));
}

#[test]
fn without_replicates_there_are_values_and_no_intervals() {
    let html = html(&reports(0));
    assert!(html.contains("No intervals were computed.") && !html.contains("Holm p"), "{html}");
}

#[test]
fn the_tables_of_a_terminal_fit_their_width_and_have_every_difference() {
    let reports = reports(30);
    let text = render_models_table(&reports, 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("models: CNN, ") && unwrapped.contains("differences are from CNN"), "{text}");
    assert!(text.contains("every number is that of C^td"), "{text}");
    // Three metrics with two differences, each with a line for all samples, three groups and a gap.
    assert_eq!(text.matches("  Holm").count(), 3 * 2, "{text}");
    assert_eq!(text.matches("  gap by sex  ").count(), 3 * 2, "{text}");
}

#[test]
fn the_flat_table_has_every_model_and_every_difference() {
    let reports = reports(10);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evaluation.csv");
    std::fs::write(&path, models_csv(&reports).unwrap()).unwrap();
    let table = Table::read(&path).unwrap();
    let column =
        |name: &str| -> Vec<String> { table.text(name).unwrap().into_iter().map(Option::unwrap_or_default).collect() };
    let (model, minus, metric) = (column("model"), column("minus"), column("metric"));
    let (kind, value) = (column("kind"), column("value"));
    let find = |name: &str, other: &str| -> f64 {
        let row = (0..model.len())
            .find(|&row| model[row] == name && minus[row] == other && metric[row] == "ibs" && kind[row] == "gap");
        value[row.unwrap()].parse().unwrap()
    };
    assert!((find(ODD, "CNN") - (find(ODD, "") - find("CNN", ""))).abs() < 1e-12);
    // Per metric everybody, three groups and seven comparisons.
    let n_differences = minus.iter().filter(|other| *other == "CNN").count();
    assert_eq!(n_differences, 2 * 4 * (1 + 3 + 7));
}
