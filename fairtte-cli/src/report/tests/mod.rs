//! The table and the page as a whole, on reports with known numbers.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod contrast;
mod layout;

use fairtte_metrics::EvaluationReport;
use fairtte_records::Warning;

use super::test_reports::{ODD_LEVEL, difference, estimate, report};
use super::{EpochPoint, FlowRow, Page, render_page, render_table};

pub(super) fn page<'a>(evaluation: &'a EvaluationReport, epochs: &'a [EpochPoint], flow: &'a [FlowRow]) -> Page<'a> {
    Page {
        baseline: None,
        sensitivity: None,
        bias: None,
        title: "Run <7> & more",
        subtitle: "evaluation on the test part",
        facts: &[],
        evaluation,
        time_unit: "years",
        censoring: "the training part",
        epochs,
        monitor: "validation NLL",
        flow,
        warnings: &[],
        notes: &[],
        csv: "scores.csv",
    }
}

fn epochs() -> Vec<EpochPoint> {
    let epoch = |(epoch, nll): (usize, f64)| EpochPoint {
        epoch,
        train_loss: 2.0 / epoch as f64,
        validation_nll: nll,
        validation_c_td: (epoch > 1).then_some(0.5 + 0.05 * epoch as f64),
        best: epoch == 3,
    };
    [(1, 1.9), (2, 1.4), (3, 1.2), (4, 1.3)].into_iter().map(epoch).collect()
}

fn flow() -> Vec<FlowRow> {
    let reasons = vec![("image <truncated>".to_owned(), 5), ("time is 0".to_owned(), 2)];
    vec![
        FlowRow { label: "cohort".to_owned(), n_kept: 603, n_excluded: 8, reasons },
        FlowRow { label: "test part".to_owned(), n_kept: 120, n_excluded: 0, reasons: Vec::new() },
    ]
}

#[test]
fn the_table_says_everything_beside_the_number_it_belongs_to() {
    let table = render_table(&report(), 90, false);
    assert!(!table.contains('\u{1b}'));
    let in_colour = render_table(&report(), 90, true);
    let worst: Vec<&str> = in_colour.lines().filter(|line| line.starts_with("\u{1b}[1;31m")).collect();
    assert!(worst[0].contains("  male ") && worst[0].ends_with("\u{1b}[0m"), "{worst:?}");
    assert_eq!(in_colour.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", ""), table);
    let expected = "\
120 samples of 118 subjects, 61 events
curves read       refined x10
intervals         95 %, percentile bootstrap, 1000 replicates of subjects, seed 0
evaluation times  100 times from 1.5 to 8.25
                  100 equally spaced times between the 0.1 and 0.9 quantiles of the 61
                  evaluated event times

C^td: higher is better (curves read refined x10)
                                          value  95 % interval        n  events subjects
all                                       0.720  0.670 to 0.780     120      61      118
sex; 3 samples are in no group (no value, or one that the training part or the list of
levels lacks)
  female                                  0.740  0.690 to 0.800      60      31       58
  male                                    0.690  0.640 to 0.750      57      29       57
  gap (0 = equal)                         0.050  0.000 to 0.173     117      60      115
    by chance 0.062 on average, rarely above 0.148 (p = 0.555); corrected gap 0.000
  worst group: male                       0.690  0.640 to 0.750     117      60      115
  equity scaling (1 = best)               0.674  0.601 to 0.743     117      60      115
  female minus male                       0.050  -0.140 to 0.130   p = 0.250
age
  young                                   0.770  0.720 to 0.830      79      49       78
  <b>old & \"frail\"</b>                    0.610  0.560 to 0.670      41      12       40
    no value in 37 of 1000 bootstrap replicates; interval from the others
  unknown                             undefined  -                    4       0        4
    none of 4 samples has an observed event
  gap (0 = equal)                         0.160  0.000 to 0.310     120      61      118
  worst group: <b>old & \"frail\"</b>       0.610  0.560 to 0.670     120      61      118
  equity scaling (1 = best)               0.612  0.533 to 0.689     120      61      118
  young minus <b>old & \"frail\"</b>        0.160  -0.030 to 0.240   p = 0.250

C^td (ties 1/2): higher is better (curves read refined x10)
  every number is that of C^td

AUC^td: higher is better (curves read refined x10, 100 times from 1.5 to 8.25)
";
    assert!(table.starts_with(expected), "{table}");
    assert!(table.contains("\nIBS: lower is better (curves read refined x10, 100 times from 1.5 to 8.25)\n"));
    assert!(table.ends_with('\n') && !table.ends_with("\n\n"));
}

#[test]
fn the_table_keeps_to_its_width_and_loses_no_name() {
    let mut report = report();
    let name = "a level whose name is longer than any column could ever be, \u{1b}[31mwith a colour code";
    for metric in &mut report.metrics {
        metric.attributes[1].groups[0].level = name.to_owned();
    }
    for width in [10, 72, 80, 100, 200] {
        let table = render_table(&report, width, false);
        let longest = table.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width.max(72), "{longest} columns of {width}:\n{table}");
        let words: Vec<&str> = table.split_whitespace().collect();
        assert!(name.split(' ').take(12).all(|word| words.contains(&word)), "{table}");
        assert!(!table.contains('\u{1b}'), "a control character reached the terminal");
    }
}

#[test]
fn without_replicates_or_times_the_table_says_so() {
    let mut report = report();
    report.settings.replicates = 0;
    report.times = None;
    report.times_undefined = Some("no event in 5 samples".to_owned());
    let table = render_table(&report, 80, false);
    assert!(table.contains("intervals         none (0 bootstrap replicates)\n"), "{table}");
    assert!(table.contains("evaluation times  none: no event in 5 samples\n"), "{table}");
    assert!(!table.contains("95 %"), "{table}");
}

#[test]
fn the_page_holds_every_group_and_number() {
    let report = report();
    let html = render_page(&page(&report, &epochs(), &flow())).unwrap();
    for name in ["female", "male", "young", "unknown", "sex", "age", "AUC", "IBS", "refined x10"] {
        assert!(html.contains(name), "{name}");
    }
    let groups = report.metrics.iter().flat_map(|metric| &metric.attributes).flat_map(|attribute| {
        let groups = attribute.groups.iter().map(|group| &group.estimate);
        groups.chain([&attribute.gap, &attribute.worst, &attribute.equity_scaling])
    });
    for estimate in groups.chain(report.metrics.iter().map(|metric| &metric.overall)) {
        if let (Some(value), Some(lower), Some(upper)) = (estimate.value, estimate.lower, estimate.upper) {
            let cells = format!(
                "<td>{value:.3}</td><td>{lower:.3} to {upper:.3}</td><td>{}</td><td>{}</td><td>{}</td>",
                estimate.n, estimate.n_events, estimate.n_subjects
            );
            assert!(html.contains(&cells), "{cells}");
        }
    }
    assert!(html.contains("no value in 37 of 1000 bootstrap replicates"));
    assert!(html.contains("100 times from 1.5 to 8.25 years"));
    assert!(html.contains("left out: <b>8</b>") && html.contains("time is 0: <b>2</b>"));
    assert!(html.contains("no reason recorded: <b>1</b>") && html.contains("<b>n = 611</b>"));
    assert!(html.contains("The model is that of epoch 3, chosen by validation NLL"));
}

#[test]
fn an_undefined_value_stands_with_its_reason_in_table_and_plots() {
    let html = render_page(&page(&report(), &[], &[])).unwrap();
    let reason = "none of 4 samples has an observed event";
    let cells = "<td class=\"undefined\">undefined</td><td class=\"undefined\">none</td><td>4</td><td>0</td>";
    assert!(html.contains(cells));
    assert!(html.contains(&format!("<td colspan=\"6\">{reason}</td>")));
    // Three plots; C^td (ties 1/2) repeats C^td and has none.
    assert_eq!(html.matches(&format!("\nundefined: {reason}\n")).count(), 3);
    assert!(
        html.contains(
            "age: unknown has no C<sup>td</sup>, C<sup>td</sup> (ties 1/2), AUC<sup>td</sup>, IBS: none of 4"
        )
    );
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_runs_nothing() {
    let html = render_page(&page(&report(), &epochs(), &flow())).unwrap();
    for forbidden in ["<script", "http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "onload", "xlink"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let targets = html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    // The numbers are embedded.
    for target in targets.filter(|target| !target.starts_with("data:text/csv;")) {
        let section = format!("id=\"{}\"", target.strip_prefix('#').expect("a place on this page"));
        assert!(html.contains(&section), "{section}");
    }
}

#[test]
fn what_comes_from_data_is_escaped_in_html_and_svg() {
    let facts = [("<i>name</i>".to_owned(), "a & \"b\"".to_owned())];
    let notes = ["<img>".to_owned()];
    let (report, epochs, flow) = (report(), epochs(), flow());
    let page = Page { facts: &facts, notes: &notes, time_unit: "<days>", ..page(&report, &epochs, &flow) };
    let html = render_page(&page).unwrap();
    for raw in [ODD_LEVEL, "<b>old", "<i>name", "<img>", "<days>", "<truncated>", "Run <7>", "& more"] {
        assert!(!html.contains(raw), "{raw}");
    }
    assert!(html.contains("Run &lt;7&gt; &amp; more"));
    assert!(html.contains("\n&lt;b&gt;old &amp; &quot;frail"), "the level inside a plot");
    assert!(html.contains("time (&lt;days&gt;)"));
}

#[test]
fn a_warning_stands_above_all_numbers_and_nowhere_without_one() {
    let report = report();
    let plain = render_page(&page(&report, &[], &[])).unwrap();
    assert!(!plain.contains("class=\"warnings\""));
    let warning = |text: &str| Warning { name: "part".to_owned(), text: text.to_owned() };
    let one = [warning("odr: C^td says nothing <here>.")];
    let html = render_page(&Page { warnings: &one, ..page(&report, &[], &[]) }).unwrap();
    let box_at = html.find("<b>Warning</b>\n<p>odr: C<sup>td</sup> says nothing &lt;here&gt;.</p>").expect("a box");
    assert!(box_at < html.find("<nav").unwrap(), "below the numbers");
    let two = [warning("first"), warning("second")];
    let html = render_page(&Page { warnings: &two, ..page(&report, &[], &[]) }).unwrap();
    assert!(html.contains("<b>Warnings</b>\n<p>first</p>\n<p>second</p>"), "{html}");
}

#[test]
fn every_element_of_the_page_is_closed_and_every_id_is_used_once() {
    let html = render_page(&page(&report(), &epochs(), &flow())).unwrap();
    for tag in ["svg", "div", "dl", "table", "tr", "figure", "section", "text", "p", "small"] {
        let opened = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let n_ids = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n_ids);
    // All samples, sex and age twice, the thirds of all samples, the AUC of all and by sex, three metrics with gaps and a bar
    // in their tile, three curves of the training.
    assert_eq!(html.matches("role=\"img\"").count(), 3 + 3 + 1 + 2 + 3 * 3 + 3);
}

#[test]
fn sections_without_content_are_left_out() {
    let report = report();
    let html = render_page(&page(&report, &[], &[])).unwrap();
    assert!(!html.contains("id=\"training\"") && !html.contains("#training"));
    assert!(!html.contains("id=\"flow\"") && !html.contains("#flow"));
    let html = render_page(&page(&report, &epochs(), &flow())).unwrap();
    assert!(html.contains("id=\"training\"") && html.contains("id=\"flow\""));
}

#[test]
fn an_evaluation_without_attributes_intervals_or_times_still_makes_a_page() {
    let mut report = report();
    report.settings.replicates = 0;
    report.times = None;
    report.times_undefined = Some("none of 4 samples has an observed event".to_owned());
    report.curves.truncate(1);
    for metric in &mut report.metrics {
        metric.attributes.clear();
        (metric.overall.lower, metric.overall.upper) = (None, None);
    }
    let html = render_page(&Page { time_unit: "", ..page(&report, &[], &[]) }).unwrap();
    assert!(html.contains("None were computed, so nothing on this page says how certain a number is."));
    assert!(html.contains("none: none of 4 samples has an observed event"));
    assert!(html.contains("\ntime\n"), "the time axis without a unit");
}

#[test]
fn more_than_three_groups_get_a_panel_each() {
    let mut report = report();
    let last = report.curves[5].clone();
    for level in ["four", "five"] {
        report.curves.push(fairtte_metrics::evaluation::GroupCurves { level: Some(level.to_owned()), ..last.clone() });
    }
    let empty = fairtte_metrics::evaluation::GroupCurves {
        level: Some("nobody".to_owned()),
        n: 0,
        kaplan_meier: fairtte_metrics::evaluation::BandedCurve::default(),
        predicted: fairtte_metrics::evaluation::Curve::default(),
        at_risk: fairtte_metrics::evaluation::NumbersAtRisk::default(),
        ..last
    };
    report.curves.push(empty);
    let html = render_page(&page(&report, &[], &[])).unwrap();
    assert_eq!(html.matches("id=\"survival-age_").count(), 6 * 2);
    assert!(html.contains("\nno samples\n"));
}

#[test]
fn the_page_says_when_two_groups_cannot_be_told_apart() {
    let mut report = report();
    let says = |report: &EvaluationReport| render_page(&page(report, &[], &[])).unwrap();
    let open = says(&report);
    assert!(open.contains(
        "The interval of female minus male, -0.140 to 0.130 (p = 0.250), contains 0. These data do not show a difference."
    ));
    let sex = &mut report.metrics[0].attributes[0];
    let mut clear = difference("female", "male", 0.2);
    clear.difference.p_value = Some(0.002);
    (sex.differences, sex.gap.lower) = (vec![clear], Some(0.01));
    sex.gap_by_chance.as_mut().unwrap().p_value = 0.01;
    let clear = says(&report);
    assert!(clear.contains("0.010 to 0.280 (p = 0.002), does not contain 0. Equal groups would rarely give that."));
}

/// In the verdict, in the sentences on the attribute, and beside the gap in the tables of page and terminal.
#[test]
fn where_exchanged_labels_and_the_bootstrap_disagree_every_place_says_so_and_none_names_a_finding() {
    let disagree = |p: f64, holm: f64, pair: f64, lower: f64, n_events: usize| {
        let mut report = report();
        // The IBS is shown beside C^td, and its tests are its own.
        report.metrics.truncate(1);
        let sex = &mut report.metrics[0].attributes[0];
        sex.groups[1].estimate.n_events = n_events;
        sex.gap.lower = Some(lower);
        let by_chance = sex.gap_by_chance.as_mut().unwrap();
        (by_chance.p_value, by_chance.p_holm) = (p, Some(holm));
        let difference = &mut sex.differences[0].difference;
        (difference.lower, difference.p_value) = (Some(if lower > 0.0 { lower } else { -0.01 }), Some(pair));
        let html = render_page(&page(&report, &[], &[])).unwrap();
        (html, render_table(&report, 100, false).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for ((p, pair, lower), how) in [((0.06, 0.04, 0.01), "often"), ((0.03, 0.06, 0.0), "rarely")] {
        for (n_events, few) in [(29, ""), (12, ", as can happen with few events (12 in the smallest group)")] {
            let (html, table) = disagree(p, 2.0 * p, pair, lower, n_events);
            let said = format!(
                "Groups whose labels are exchanged {how} have a gap as large (p = {p:.3}): the two tests disagree{few}, so nothing \
                 can be said about a difference."
            );
            assert_eq!(html.matches(&said).count(), 2, "verdict and sentences: {how} {n_events}");
            for contradiction in
                ["can be distinguished from chance", "does not explain the differences", "would rarely give"]
            {
                assert!(!html.contains(contradiction), "{contradiction}: {how} {n_events}");
            }
            let beside = "; the interval disagrees, so nothing can be said";
            assert!(html.contains(beside) && table.contains(beside), "{how} {n_events}: {table}");
        }
    }
    // Both reject, but not among two attributes: no disagreement, and both places name the adjusted p value.
    let (html, table) = disagree(0.03, 0.06, 0.04, 0.01, 29);
    assert!(html.contains("if no other attribute had been tested (p = 0.030)"), "{html}");
    assert!(
        html.contains("adjusted for their number, p = 0.060") && !table.contains("the interval disagrees"),
        "{html}"
    );
}

#[test]
fn every_comparison_of_groups_stands_on_the_page() {
    let report = report();
    let html = render_page(&page(&report, &[], &[])).unwrap();
    for (name, cells) in [
        ("female minus male", "<td>0.050</td><td>-0.140 to 0.130</td><td>0.250</td>"),
        ("largest distance from the whole sample (0 = equal)", "<td>0.030</td><td>0.001 to 0.100</td><td></td>"),
        ("smallest divided by largest value (1 = equal)", "<td>0.930</td><td>0.800 to 0.990</td><td></td>"),
        ("ratio to the whole sample (1 = equal)", "<td>0.950</td><td>0.850 to 0.990</td><td></td>"),
    ] {
        let line = format!("<th scope=\"row\">{name}</th>{cells}");
        // In each of the three metrics that are not a repetition.
        assert_eq!(html.matches(&line).count(), 3, "{line}");
    }
    let fair_seg = "<th scope=\"row\">equity scaling, form of FairSeg</th>";
    assert_eq!(html.matches(fair_seg).count(), 2, "for the two attributes of the IBS alone");
    assert!(html.contains("<th scope=\"col\">comparable pairs</th>") && html.contains("<td>58</td><td>1860</td>"));
}

#[test]
fn the_page_and_the_table_name_method_strata_and_the_sample_of_the_censoring_curve() {
    let mut report = report();
    report.settings.interval = fairtte_metrics::resampling::IntervalMethod::Bca;
    report.settings.stratify = fairtte_metrics::resampling::Stratify::Attribute("sex".to_owned());
    let bootstrap = "95 %, BCa bootstrap, 1000 replicates of subjects drawn within the levels of sex, seed 0";
    let html = render_page(&Page { censoring: "the evaluated sample", ..page(&report, &[], &[]) }).unwrap();
    assert!(html.contains(bootstrap) && html.contains("Better bootstrap confidence intervals"));
    assert!(html.contains("G fitted on the evaluated sample") && !html.contains("training sample"));
    assert!(render_table(&report, 120, false).contains(bootstrap));
}

#[test]
fn a_value_without_an_interval_says_why() {
    let mut report = report();
    let all = &mut report.metrics[0].overall;
    (all.lower, all.upper) = (None, None);
    all.interval_undefined = Some("no BCa interval: all replicates on one side".to_owned());
    let said = "no interval: all replicates on one side";
    assert!(render_table(&report, 100, false).contains(said));
    assert!(render_page(&page(&report, &[], &[])).unwrap().contains(said));
}

#[test]
fn comparable_pairs_stand_in_the_table_where_there_is_room() {
    let wide = render_table(&report(), 110, false);
    assert!(wide.contains("n  events subjects        pairs\n"), "{wide}");
    assert!(wide.contains("60      31       58         1860\n"), "{wide}");
    assert!(!render_table(&report(), 90, false).contains("pairs\n"));
}

#[test]
fn a_low_concordance_is_called_worse_than_guessing_only_if_ties_do_not_explain_it() {
    let mut report = report();
    let says = |report: &EvaluationReport| render_page(&page(report, &[], &[])).unwrap();
    assert!(says(&report).contains("Guessing gives 0.5, below the whole interval."));
    let low = estimate(0.2, 0.1, 0.3, [120, 61, 118]);
    (report.metrics[0].overall, report.metrics[1].overall) = (low.clone(), low);
    assert!(says(&report).contains("the model ranks worse than guessing"));
    report.metrics[1].overall = estimate(0.62, 0.55, 0.7, [120, 61, 118]);
    let tied = says(&report);
    assert!(!tied.contains("the model ranks worse than guessing"));
    assert!(tied.contains("count 0 in it; counting them 1/2 gives 0.620"));
}

#[test]
fn a_concordance_of_many_censored_samples_says_that_late_pairs_are_missing() {
    let mut report = report();
    let says = |report: &EvaluationReport| render_page(&page(report, &[], &[])).unwrap();
    // 61 of 120 have an event.
    assert_eq!((report.n, report.n_events), (120, 61));
    assert!(!says(&report).contains("pairs with late events are missing"));
    report.n_events = 60;
    assert!(
        says(&report).contains(
            "50\u{a0}% of the samples are censored, so that pairs with late events are missing. In simulations"
        )
    );
    report.n_events = 12;
    assert!(says(&report).contains("90\u{a0}% of the samples are censored"));
}

#[test]
fn a_gap_that_lacks_many_replicates_says_so() {
    let mut report = report();
    let says = |report: &EvaluationReport| render_page(&page(report, &[], &[])).unwrap();
    report.metrics[0].attributes[1].gap.undefined_replicates = 50;
    assert!(!says(&report).contains("may be too narrow"));
    report.metrics[0].attributes[1].gap.undefined_replicates = 51;
    assert!(says(&report).contains("In 51 of 1000 bootstrap replicates a group had no value"));
}

#[test]
fn the_page_contains_its_numbers_as_a_table() {
    let report = report();
    let page = render_page(&page(&report, &[], &[])).unwrap();
    let (_, after) = page.split_once("<a download=\"scores.csv\" href=\"data:text/csv;charset=utf-8,").unwrap();
    let encoded = after.split('"').next().unwrap();
    let mut bytes = Vec::new();
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: String = rest.by_ref().take(2).map(char::from).collect();
            bytes.push(u8::from_str_radix(&digits, 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    let expected = super::flat::text(&super::flat::rows(&report)).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    assert!(expected.starts_with("metric,attribute,kind,level,value,"));
}
