//! Tables of a report with known numbers, and texts that mean something in Markdown or LaTeX.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use super::super::test_reports::report;
use super::super::tests::page;
use super::*;

fn named(name: &str) -> Table {
    tables_of_page(&page(&report(), &[], &[])).into_iter().find(|table| table.name == name).unwrap()
}

#[test]
fn every_metric_has_a_table_and_one_of_differences_below_the_table_of_groups() {
    let tables = tables_of_page(&page(&report(), &[], &[]));
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    // C^td (ties 1/2) repeats C^td.
    let of_metrics =
        ["metric-c-td", "differences-c-td", "metric-auc-td", "differences-auc-td", "metric-ibs", "differences-ibs"];
    assert_eq!(names[0], "groups");
    assert_eq!(names[1..], of_metrics);
    for table in tables {
        let n_columns = table.header.len();
        for line in &table.lines {
            assert!(!matches!(line, Line::Cells { cells, .. } if cells.len() != n_columns), "{}: {line:?}", table.name);
        }
    }
}

#[test]
fn a_table_has_the_numbers_of_the_page_in_markdown_and_latex() {
    let table = named("groups");
    let markdown = table.markdown();
    assert!(
        markdown.starts_with("**Who was evaluated, and the risk by 4 years.**\n\n| group | n | subjects |"),
        "{markdown}"
    );
    let all = "| all | 120 | 118 | 61 | 49.2 % | 6.5 | 50.0 % | 42.0 to 58.0 % | 40.0 % | 1.250 (1.050 to 1.450) |\n";
    assert!(markdown.contains(all), "{markdown}");
    assert!(markdown.contains("<sup>a</sup> no risk: no sample is followed to time 4\n"), "{markdown}");
    let latex = table.latex();
    let all = "all & 120 & 118 & 61 & 49.2 \\% & 6.5 & 50.0 \\% & 42.0 to 58.0 \\% & 40.0 \\% & 1.250 (1.050 to 1.450) \\\\\n";
    assert!(latex.contains(all), "{latex}");
    assert!(latex.contains("\\textsuperscript{a} no risk: no sample is followed to time 4"), "{latex}");
    assert!(latex.contains("\\begin{tabular}{lrrrrrrrrr}\n\\toprule\n"), "{latex}");
}

#[test]
fn texts_of_data_are_escaped() {
    let odd = "\\a_b {c} 100 % & #1 ~ ^ <x> | [y] * $ -- C^td -0.5 \u{1b}";
    let cells = |name: &str| Line::Cells {
        cells: vec![name.to_owned(), "-1.5".to_owned()],
        indented: false,
        remarks: Vec::new(),
    };
    let header = vec!["group".to_owned(), "value".to_owned()];
    let table = Table { name: "odd".to_owned(), caption: String::new(), header, lines: vec![cells(odd)] };
    let latex = "\\textbackslash{}a\\_b \\{c\\} 100 \\% \\& \\#1 \\textasciitilde{} \\textasciicircum{} \\textless{}x\\textgreater{} \
                 \\textbar{} {[}y{]} {*} \\$ -{}- C\\textsuperscript{td} $-$0.5 \u{fffd} & $-$1.5 \\\\\n";
    assert!(table.latex().contains(latex), "{}", table.latex());
    let markdown = "| \\\\a\\_b {c} 100 % &amp; \\#1 \\~ \\^ &lt;x&gt; \\| \\[y\\] \\* \\$ -- C<sup>td</sup> -0.5 \u{fffd} | -1.5 |\n";
    assert!(table.markdown().contains(markdown), "{}", table.markdown());
}

#[test]
fn remarks_become_footnotes_each_once() {
    let line = |name: &str, remarks: &[&str]| Line::Cells {
        cells: vec![name.to_owned()],
        indented: true,
        remarks: remarks.iter().map(|remark| (*remark).to_owned()).collect(),
    };
    let lines = vec![line("a", &["few"]), line("b", &["none", "few"]), Line::Note("of three".to_owned())];
    let table = Table { name: "t".to_owned(), caption: "T".to_owned(), header: vec!["group".to_owned()], lines };
    let expected = "**T**\n\n| group |\n| :--- |\n| &emsp;a<sup>a</sup> |\n| &emsp;b<sup>b,a</sup> |\n\n<sup>a</sup> few\n\n\
                    <sup>b</sup> none\n\nof three\n";
    assert_eq!(table.markdown(), expected);
    assert_eq!([letter(0), letter(25), letter(26)], ["a", "z", "a2"]);
}
