//! What the presentation must keep: names escaped, widths, every number once, tests only where they were made.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;

use fairtte_metrics::statistics::Alternative;

use super::super::format::escape;
use super::*;
use crate::method_tests::{Family, Goal, Observation, Question, compare};

/// `k` methods in `n` settings, the first of which is the best everywhere.
fn tests(methods: &[&str], n: usize) -> MethodTests {
    let value =
        |setting: usize, method: usize| if method == 0 { 0.5 } else { ((setting * 7 + method * 3) % 11) as f64 + 1.25 };
    let of_setting = |setting: usize| {
        methods.iter().enumerate().map(move |(place, method)| Observation {
            metric: "C^td <b>".to_owned(),
            setting: format!("<i>{setting}</i>"),
            method: (*method).to_owned(),
            trial: None,
            value: value(setting, place),
        })
    };
    let observations: Vec<Observation> = (0..n).flat_map(of_setting).collect();
    let question = Question {
        base: None,
        level: 0.05,
        alternative: Alternative::TwoSided,
        all_pairs: false,
        family: Family::Metric,
        goals: BTreeMap::from([("C^td <b>".to_owned(), Goal::Gap)]),
    };
    compare(&observations, &question).unwrap()
}

fn page(tests: &MethodTests) -> String {
    let columns = TestColumns { setting: Some("<data>".to_owned()), ..TestColumns::default() };
    let notes = vec!["A <note>.".to_owned()];
    let report = TestReport { table: "t.csv".to_owned(), n_values: 3, columns: &columns, notes, tests };
    render_page(&report).unwrap()
}

const SHORT: [&str; 4] = ["<u>", "b", "c", "d"];

#[test]
fn the_terminal_has_eighty_columns_whatever_the_names_and_their_number() {
    let long = ["controlled-attribute-with-a-long-name", "fair-representation-of-another-kind", "b\u{1b}[2J"];
    let many: Vec<String> = (0..14).map(|k| format!("method-{k}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (methods, matrix) in [(&SHORT[..], true), (&long[..], true), (&many[..7], true), (&many[..], false)] {
        let tests = tests(methods, 8);
        let text = render_table(&tests, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let has_matrix = text.lines().any(|line| line.starts_with("  p (Nemenyi) ") && !line.contains("below"));
        assert_eq!(has_matrix, matrix, "{text}");
        assert!(matrix || text.contains("p (Nemenyi) below 0.05: "), "{text}");
    }
}

#[test]
fn long_names_of_pairs_keep_both_methods() {
    let mut tests = tests(&["controlled-attribute", "b", "fair-representation"], 6);
    let mut other = tests.metrics[0].pairs[0].clone();
    (other.first, other.second) = ("fair-representation".to_owned(), "controlled-attribute".to_owned());
    tests.metrics[0].pairs.push(other);
    let text = render_table(&tests, 80);
    assert!(
        text.contains("\n  fair-repre… minus controlled…") && text.contains("\n  b minus controlled-attribute "),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_terminal_shows_every_p_value_and_rank() {
    let tests = tests(&SHORT, 8);
    let text = render_table(&tests, 80);
    let metric = &tests.metrics[0];
    let tested = metric.ranks.tested.as_ref().unwrap();
    let row = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).collect::<Vec<_>>();
    for (place, method) in SHORT.iter().enumerate() {
        let rows = row(&format!("{method} "));
        let rank = super::super::format::number(metric.ranks.average_ranks[place]);
        assert!(rows[0].contains(&rank), "{rows:?}");
        for (other, p) in tested.nemenyi_p[place].iter().enumerate().filter(|(other, _)| *other != place) {
            assert!(rows[1].contains(&super::super::format::p_value(*p)), "{method}, {other}: {rows:?}");
        }
    }
    let header = text.lines().position(|line| line.starts_with("  minus <u> ")).unwrap();
    let of_b = text.lines().nth(header + 1).unwrap();
    assert_eq!(of_b.split_whitespace().take(5).collect::<Vec<_>>(), ["b", "8", "0", "8", "0"]);
    assert!(text.contains(&format!("critical difference at 0.05: {:.3}", tested.critical_difference)), "{text}");
}

#[test]
fn the_page_escapes_names_and_shows_the_test_beside_the_matrix() {
    let tests = tests(&SHORT, 8);
    let html = page(&tests);
    for (raw, escaped) in [
        ("<u>", "&lt;u&gt;"),
        ("<i>0", "&lt;i&gt;0"),
        ("td <b>", "<sup>td</sup> &lt;b&gt;"),
        ("<note>", "&lt;note&gt;"),
        ("<data>", "setting = &lt;data&gt;"),
    ] {
        assert!(!html.contains(raw) && html.contains(escaped), "{escaped}");
    }
    assert_eq!(html.matches("<svg ").count(), 1);
    assert!(!html.contains("<script"));
    let test = tests.metrics[0].ranks.tested.as_ref().unwrap();
    let chi_square = format!("Friedman: chi-square(3) = {:.3}, p", test.friedman.chi_square);
    assert!(test.rejects && html.contains(&chi_square), "{chi_square}");
    // The best method has + in its row and − in its column, and a shade where it is apart.
    assert!(html.contains("\">+ ") && html.contains("\">− ") && html.contains("class=\"p"), "{html}");
    assert!(!html.contains("are no findings."), "Friedman rejects");
    for sentence in &tests.metrics[0].verdict {
        let start: String = sentence.chars().take(30).collect();
        assert!(html.contains(&escape(&start)), "{sentence}");
    }
}

#[test]
fn where_friedman_does_not_reject_pairs_have_no_shade_and_a_sentence() {
    // Values that follow no method: the first is not the best here.
    let tests = tests(&["a", "b"], 5);
    let mut equal = tests;
    let tested = equal.metrics[0].ranks.tested.as_mut().unwrap();
    tested.rejects = false;
    let html = page(&equal);
    assert!(
        html.contains("the p values of pairs below are shown for comparison with other reports and are no findings")
    );
    let matrix = html.split("<table class=\"matrix\">").nth(1).unwrap().split("</table>").next().unwrap();
    assert!(!matrix.contains("class=\"p"), "{matrix}");
    assert!(html.contains("equal ranks are not rejected"), "the figure says so too");
}

#[test]
fn few_settings_have_a_figure_without_a_critical_difference_and_no_matrix() {
    let tests = tests(&SHORT, 3);
    let html = page(&tests);
    assert!(!html.contains("CD = ") && !html.contains("<table class=\"matrix\">"));
    assert!(html.contains("no test of the ranks") && html.contains("not meant for so few settings"), "{html}");
    let text = render_table(&tests, 80);
    assert!(!text.contains("Nemenyi") && !text.contains("critical difference"), "{text}");
    let names: Vec<String> = sheets(&tests).into_iter().map(|sheet| sheet.name).collect();
    assert_eq!(names, ["friedman", "ranks-c-td-b", "signed-rank-c-td-b", "values-c-td-b"]);
}

#[test]
fn bars_and_the_critical_difference_are_drawn_to_scale() {
    let tests = tests(&SHORT, 8);
    let [(name, svg)] = &figures(&tests).unwrap()[..] else { panic!("one figure") };
    assert_eq!(name, "cd-c-td-b");
    let tested = tests.metrics[0].ranks.tested.as_ref().unwrap();
    // Lines as plotters writes them: x from the first to the last point in quarters of a pixel.
    let lines = |colour: &str, width: u32| -> Vec<(f64, f64)> {
        let of = format!("stroke=\"{colour}\" stroke-width=\"{width}\"");
        let found = svg.split("<polyline ").skip(1).filter(|line| line.split("/>").next().unwrap().contains(&of));
        let xs = |line: &str| -> Vec<f64> {
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            points
                .split_whitespace()
                .map(|point| point.split(',').next().unwrap().parse::<f64>().unwrap() / 4.0)
                .collect()
        };
        found.map(xs).map(|xs| (xs[0], xs[xs.len() - 1])).collect()
    };
    let axis = lines("#7D8794", 5)[0];
    let per_rank = (axis.1 - axis.0) / 3.0;
    let difference = lines("#1F2430", 6).into_iter().find(|(start, end)| end > start).unwrap();
    assert!((difference.1 - difference.0 - per_rank * tested.critical_difference).abs() < 0.5, "{difference:?}");
    let bars = lines("#0072B2", 16);
    let expected: Vec<&Vec<usize>> = tested.cliques.iter().filter(|clique| clique.len() > 1).collect();
    assert_eq!(bars.len(), expected.len(), "{svg}");
    let ranks = &tests.metrics[0].ranks.average_ranks;
    for ((start, end), clique) in bars.iter().zip(expected) {
        let width = (ranks[*clique.last().unwrap()] - ranks[clique[0]]) * per_rank + 8.0;
        assert!((end - start - width).abs() < 0.5, "{clique:?}: {start} to {end}, expected {width}");
    }
    for method in ["&lt;u&gt;", "b", "c", "d"] {
        assert!(svg.contains(&format!("\n{method}\n")), "{method} in {svg}");
    }
}

#[test]
fn tables_keep_all_digits_in_csv_and_round_elsewhere() {
    // A method with the name of the first column.
    let tests = tests(&["setting", "method", "c"], 7);
    let metric = &tests.metrics[0];
    for sheet in sheets(&tests) {
        let path = std::path::PathBuf::from(format!("{}.csv", sheet.name));
        let table = fairtte_data::table::Table::parse(&path, sheet.csv().unwrap().into_bytes()).unwrap();
        assert_eq!(table.n_rows(), sheet.table().lines.len() - sheet_notes(&sheet), "{}", sheet.name);
        if sheet.name.starts_with("nemenyi") {
            let p: Vec<f64> = table.numbers("c").unwrap().into_iter().map(Result::unwrap).collect();
            let expected: Vec<f64> = metric.ranks.tested.as_ref().unwrap().nemenyi_p.iter().map(|row| row[2]).collect();
            assert_eq!(p, expected);
            assert_eq!(table.names(), ["method", "setting", "method_", "c"]);
            assert!(sheet.table().markdown().contains("Friedman"), "the test stands beside the pairs");
        }
        if sheet.name.starts_with("signed-rank") {
            let p: Vec<f64> = table.numbers("p-holm").unwrap().into_iter().map(Result::unwrap).collect();
            assert_eq!(p, metric.pairs.iter().map(|pair| pair.p_holm.unwrap()).collect::<Vec<_>>());
        }
        if sheet.name.starts_with("values") {
            let values: Vec<f64> = table.numbers("c").unwrap().into_iter().map(Result::unwrap).collect();
            assert_eq!(values, metric.settings.iter().map(|setting| setting.means[2]).collect::<Vec<_>>());
        }
        if sheet.name.starts_with("ranks") {
            let first = table.text("method").unwrap()[0].clone();
            assert_eq!(first.as_deref(), Some("setting"), "the best is first");
        }
    }
}

fn sheet_notes(sheet: &Sheet) -> usize {
    let is_note = |line: &&super::super::tables::Line| matches!(line, super::super::tables::Line::Note(_));
    sheet.table().lines.iter().filter(is_note).count()
}
