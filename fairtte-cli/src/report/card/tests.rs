//! The card of a made-up run with known numbers.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::evaluation::GroupSummary;

use super::super::test_reports::{ODD_LEVEL, report};
use super::*;

/// What a card shows; every test changes a field.
struct MadeUp {
    about: About,
    attributes: Vec<Attribute>,
    parts: Vec<(Part, Who)>,
    flow: Vec<FlowRow>,
    evaluation: EvaluationReport,
    warnings: Vec<Warning>,
    externals: Vec<External>,
}

fn summary(group: Option<(&str, &str)>, [n, n_subjects, n_events]: [usize; 3], follow_up: Option<f64>) -> GroupSummary {
    GroupSummary {
        attribute: group.map(|(attribute, _)| attribute.to_owned()),
        level: group.map(|(_, level)| level.to_owned()),
        n,
        n_subjects,
        n_events,
        n_competing: None,
        censored: (n > 0).then(|| (n - n_events) as f64 / n as f64),
        median_follow_up: follow_up,
        at_horizon: None,
        at_horizon_undefined: None,
    }
}

fn attribute(name: &str, levels: &[&str], is_intersection: bool) -> Attribute {
    Attribute {
        name: name.to_owned(),
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        made: "levels named in the run file".to_owned(),
        n_missing: 7,
        is_intersection,
    }
}

impl MadeUp {
    fn new() -> Self {
        let train = vec![
            summary(None, [361, 350, 150], Some(4.25)),
            summary(Some(("se|x`", "<F>")), [200, 190, 90], Some(4.0)),
            summary(Some(("se|x`", "M")), [154, 151, 60], None),
            summary(Some(("se|x`", "X")), [0, 0, 0], None),
        ];
        let reasons = vec![("missing_time".to_owned(), 5), ("image_empty".to_owned(), 2)];
        Self {
            about: About { licence: Some("CC BY 4.0".to_owned()), ..About::default() },
            attributes: vec![
                attribute("sex", &["female", "male"], false),
                attribute("age", &["young", ODD_LEVEL], false),
            ],
            parts: vec![(Part::Train, Who::Curves(train))],
            flow: vec![
                FlowRow { label: "rows read".to_owned(), n_kept: 610, n_excluded: 0, reasons: Vec::new() },
                FlowRow { label: "with time and event".to_owned(), n_kept: 603, n_excluded: 7, reasons },
            ],
            evaluation: report(),
            warnings: Vec::new(),
            externals: Vec::new(),
        }
    }

    fn markdown(&self) -> String {
        Card {
            name: "Films *with* a bias",
            about: &self.about,
            model: &[("backbone", "small_2d: <quick>".to_owned())],
            data: &[("data set", "films".to_owned())],
            attributes: &self.attributes,
            split: "train 0.6, seed 1",
            flow: &self.flow,
            parts: &self.parts,
            shift: None,
            evaluation: &self.evaluation,
            class: None,
            time_unit: "years",
            coverage: &[],
            warnings: &self.warnings,
            externals: &self.externals,
        }
        .markdown()
    }
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "no line\n{line}\nin\n{text}");
}

/// The text of a section, without its title.
fn section<'a>(text: &'a str, title: &str) -> &'a str {
    let rest = text.split(&format!("\n{title}\n")).nth(1).unwrap();
    let level = title.split(' ').next().unwrap();
    let end = rest.find(&format!("\n{level} ")).unwrap_or(rest.len());
    &rest[..end]
}

#[test]
fn the_sections_are_those_of_mitchell_in_their_order() {
    let card = MadeUp::new().markdown();
    let titles: Vec<&str> = card.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        titles,
        [
            "# Model card: Films \\*with\\* a bias",
            "## Model details",
            "## Intended use",
            "## Factors",
            "## Metrics",
            "## Evaluation data",
            "## Training data",
            "## Quantitative analyses",
            "### Unitary results",
            "### Intersectional results",
            "## Ethical considerations",
            "## Caveats and recommendations",
        ]
    );
}

#[test]
fn what_nobody_said_is_visible_and_counted_and_what_was_said_is_shown_as_it_is() {
    let mut run = MadeUp::new();
    let card = run.markdown();
    has(&card, "- **licence**: CC BY 4.0");
    has(&card, "- **contact**: *not stated*");
    has(section(&card, "## Intended use"), "**Out-of-scope uses.** *not stated*");
    assert!(card.contains("\nNot stated (15 of 16): `owner`, `contact`, `citation`, "), "{card}");
    run.about.out_of_scope_use = Some("Not for *children*.\n\nNor for screening.".to_owned());
    run.about.owner = Some("A\n- hospital".to_owned());
    let card = run.markdown();
    assert!(card.contains("**Out-of-scope uses.** Not for *children*.\n\nNor for screening.\n"), "{card}");
    has(&card, "- **person or organisation**: A - hospital");
    assert!(card.contains("\nNot stated (13 of 16): `contact`, "), "{card}");
}

#[test]
fn table_1_has_counts_censoring_and_follow_up_of_every_group() {
    let card = MadeUp::new().markdown();
    let training = section(&card, "## Training data");
    has(training, "| group | n | subjects | events | censored | median follow-up (years) |");
    has(training, "| all | 361 | 350 | 150 | 58.4 % | 4.25 |");
    has(training, "| **se\\|x\\`** |  |  |  |  |  |");
    has(training, "| &emsp;&lt;F&gt; | 200 | 190 | 90 | 55.0 % | 4.00 |");
    has(training, "| &emsp;M | 154 | 151 | 60 | 61.0 % | not reached |");
    has(training, "| &emsp;X | 0 | 0 | 0 | none | none |");
    has(training, "Samples in no group of se\\|x\\`: 7.");
    assert!(!training.contains("validation part, on which"), "that part is not given");
}

#[test]
fn excluded_rows_have_their_reasons() {
    let card = MadeUp::new().markdown();
    has(&card, "| with time and event | 603 | 7 | missing\\_time 5, image\\_empty 2 |");
}

#[test]
fn results_have_value_interval_and_events_by_group_and_gaps_stand_beside_chance() {
    let card = MadeUp::new().markdown();
    let unitary = section(&card, "### Unitary results");
    let header = "| group | n | events | C<sup>td</sup> | AUC<sup>td</sup> | IBS |";
    has(unitary, header);
    let all = "| all | 120 | 61 | 0.720 (0.670 to 0.780) | 0.730 (0.680 to 0.790) | 0.220 (0.170 to 0.280) |";
    has(unitary, all);
    let female =
        "| &emsp;female | 60 | 31 | 0.740 (0.690 to 0.800) | 0.750 (0.700 to 0.810) | 0.240 (0.190 to 0.300) |";
    has(unitary, female);
    // A level that looks like HTML, with the same remark on its three values.
    let old = "| &emsp;&lt;b&gt;old &amp; \"frail\"&lt;/b&gt;<sup>a</sup> | 41 | 12 | 0.610 (0.560 to 0.670) | ";
    assert!(unitary.contains(old), "{unitary}");
    has(
        unitary,
        "<sup>a</sup> C<sup>td</sup>, AUC<sup>td</sup>, IBS: no value in 37 of 1000 bootstrap replicates; interval from the others",
    );
    has(unitary, "| &emsp;unknown<sup>b</sup> | 4 | 0 | undefined | undefined | undefined |");
    has(unitary, "<sup>b</sup> C<sup>td</sup>, AUC<sup>td</sup>, IBS: none of 4 samples has an observed event");
    has(unitary, "| **C<sup>td</sup> (higher is better)** |  |  |  |  |  |  |  |");
    has(unitary, "| &emsp;sex | 0.050 | 0.000 to 0.173 | 0.062 | 0.148 | 0.555 | none | male |");
    has(
        section(&card, "## Factors"),
        "- **sex** (levels named in the run file): female, male; samples in none of them: 7.",
    );
}

#[test]
fn crossed_attributes_are_apart_from_single_ones() {
    let mut run = MadeUp::new();
    assert!(section(&run.markdown(), "### Intersectional results").contains("No intersections of attributes"));
    run.attributes[1].is_intersection = true;
    let card = run.markdown();
    let (unitary, crossed) = (section(&card, "### Unitary results"), section(&card, "### Intersectional results"));
    assert!(unitary.contains("female") && !unitary.contains("young"), "{unitary}");
    assert!(crossed.contains("| &emsp;young | 79 | ") && !crossed.contains("female"), "{crossed}");
    has(
        crossed,
        "| &emsp;age | 0.160 | 0.000 to 0.310 | none | none | none | none | &lt;b&gt;old &amp; \"frail\"&lt;/b&gt; |",
    );
}

#[test]
fn intervals_of_an_external_evaluation_that_are_not_those_of_the_caption_are_named() {
    let heading = |change: fn(&mut EvaluationReport)| {
        let (mut run, mut other) = (MadeUp::new(), report());
        change(&mut other);
        let (name, part, warnings) = ("D".to_owned(), "all".to_owned(), Vec::new());
        run.externals = vec![External { name, part, report: other, warnings, shown_by: None }];
        let card = run.markdown();
        let results = section(&card, "### External results");
        results.lines().find(|line| line.starts_with("| **D")).unwrap().to_owned()
    };
    for (found, expected) in [
        (heading(|_| ()), "| **D** |"),
        (heading(|report| report.settings.level = 0.9), "| **D (90 % intervals)** |"),
        (heading(|report| report.settings.replicates = 0), "| **D (no intervals)** |"),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn external_evaluations_stand_beside_the_test_part_in_the_same_metrics() {
    let mut run = MadeUp::new();
    has(&run.markdown(), "**External validation.** None was given to this card.");
    let mut other = report();
    (other.n, other.n_events, other.n_subjects) = (80, 1, 79);
    other.metrics.retain(|metric| metric.name != "auc_td");
    other.metrics[0].overall.value = Some(0.655);
    let external = |name: &str, shown_by: Option<&str>| External {
        name: name.to_owned(),
        part: "all".to_owned(),
        report: other.clone(),
        warnings: vec!["all_equal".to_owned()],
        shown_by: shown_by.map(str::to_owned),
    };
    run.externals = vec![external("B|2", None), external("C", Some("curves of the weights of epoch 5"))];
    let card = run.markdown();
    assert!(
        card.contains("\n- **B\\|2**: 80 samples of 79 subjects, 1 event; evaluation times: 100 times from "),
        "{card}"
    );
    let results = section(&card, "### External results");
    let [test, external] = [0, 1].map(|k| results.split("| **B\\|2** |").nth(k).unwrap());
    assert!(
        test.contains("| **test part of this run** |") && test.contains("| &emsp;all | 120 | 61 | 0.720 "),
        "{test}"
    );
    let external = external.split("| **C** |").next().unwrap();
    has(external, "| &emsp;all | 80 | 1 | 0.655 (0.670 to 0.780) | not evaluated | 0.220 (0.170 to 0.280) |");
    assert!(
        external.contains("| &emsp;sex: female | 60 | 31 | 0.740 (0.690 to 0.800) | not evaluated | "),
        "{external}"
    );
    assert!(external.contains("| &emsp;gap by sex<sup>"), "{external}");
    assert!(results.contains("gaps by chance: C<sup>td</sup> p = 0.555, IBS p = 0.555\n"), "{results}");
    let caveats = section(&card, "## Caveats and recommendations");
    has(caveats, "- Warning of B\\|2: all\\_equal");
    // Only of the second do the files say whose curves it has.
    assert!(caveats.contains("; their files do not show it: B\\|2.\n"), "{caveats}");
    let of_c = card.lines().find(|line| line.starts_with("- **C**")).unwrap();
    assert!(of_c.ends_with("; curves of the weights of epoch 5"), "{of_c}");
}

#[test]
fn caveats_name_warnings_small_groups_and_what_is_undefined() {
    let mut run = MadeUp::new();
    run.warnings = vec![Warning { name: "idle-adversary".to_owned(), text: "The adversary did nothing.".to_owned() }];
    let card = run.markdown();
    let caveats = section(&card, "## Caveats and recommendations");
    has(caveats, "- Warning: The adversary did nothing.");
    assert!(
        caveats.contains("- This is a small sample: a common rule of thumb asks for at least 100 events"),
        "61 events"
    );
    assert!(caveats.contains("\n- Small groups: ") && caveats.contains("\"frail\"&lt;/b&gt; (12)"), "{caveats}");
    assert!(caveats.contains("\n- Not computed: age: unknown has no C<sup>td</sup>, "), "{caveats}");
    assert!(caveats.contains("How it does in other hospitals"), "{caveats}");
    run.evaluation.n_events = 100;
    assert!(!run.markdown().contains("This is a small sample"));
}
