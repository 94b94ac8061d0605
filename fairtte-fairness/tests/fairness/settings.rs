//! The properties of every strategy in the registry, and the ranges of its settings: one table for each.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{Study, Table};
use fairtte_data::Sampling;
use fairtte_fairness::strategies::ExpectedBatch;
use fairtte_fairness::{Strategy, StrategyConfig, TrainingConfig};
use fairtte_metrics::GroupId;
use fairtte_survival::NnetSurvival;

fn study() -> Study {
    Study::new(Table::new(240, 13), 13)
}

/// A strategy as in a run file: `sam = { rho = 0.1 }`.
fn parsed(text: &str) -> StrategyConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn built(study: &Study, name: &str) -> Box<dyn Strategy> {
    parsed(&format!("{name} = {{}}")).build(&study.spec, &study.cells).unwrap()
}

/// The range of a setting.
#[derive(Clone, Copy)]
enum Range {
    NotNegative,
    Positive,
    /// Whole numbers from this one.
    From(usize),
    /// Whole numbers from the first to the second.
    Within(usize, usize),
}

impl Range {
    fn expected(self) -> String {
        match self {
            Self::NotNegative => "a finite number >= 0".to_owned(),
            Self::Positive => "a finite number > 0".to_owned(),
            Self::From(least) => format!("at least {least}"),
            Self::Within(least, most) => format!("a whole number from {least} to {most}"),
        }
    }

    /// Values outside the range, as written in a file, and the adjacent ones that are accepted.
    fn wrong_and_right(self) -> (Vec<String>, Vec<String>) {
        let text = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        match self {
            Self::NotNegative => (text(&["-1e-9", "-1.0", "inf", "nan"]), text(&["0.0", "1e-9", "2.5"])),
            Self::Positive => (text(&["0.0", "-1.0", "inf", "nan"]), text(&["1e-9", "2.5"])),
            Self::From(least) => (vec![(least - 1).to_string()], vec![least.to_string(), (least + 7).to_string()]),
            Self::Within(least, most) => {
                (vec![(least - 1).to_string(), (most + 1).to_string()], vec![least.to_string(), most.to_string()])
            }
        }
    }
}

/// Strategy, setting, its range and the settings without which it would have no effect.
const RANGES: [(&str, &str, Range, &str); 33] = [
    ("group-dro", "eta", Range::Positive, ""),
    ("group-dro", "adjustment", Range::NotNegative, ""),
    ("laftr", "gamma", Range::NotNegative, ""),
    ("laftr", "aud-steps", Range::From(1), ""),
    ("laftr", "adversary-learning-rate", Range::Positive, ""),
    ("cfair", "lambda", Range::NotNegative, ""),
    ("lnl", "lambda", Range::NotNegative, ""),
    ("lnl", "mu", Range::NotNegative, ""),
    ("lnl", "predictor-learning-rate", Range::Positive, ""),
    ("odr", "lambda-entropy", Range::NotNegative, ""),
    ("odr", "lambda-orthogonality", Range::NotNegative, ""),
    ("odr", "gamma-entropy", Range::Positive, ""),
    ("odr", "gamma-orthogonality", Range::Positive, ""),
    ("odr", "schedule-epochs", Range::Positive, "gamma-entropy = 1.5, "),
    ("odr", "classifier-learning-rate", Range::Positive, ""),
    ("odr", "code", Range::Within(2, 65_536), ""),
    ("fair-representation", "lambda", Range::NotNegative, ""),
    ("fair-representation", "gamma", Range::Positive, "kernels = \"single\", "),
    ("end", "alpha", Range::NotNegative, ""),
    ("end", "beta", Range::NotNegative, ""),
    ("sam", "rho", Range::Positive, ""),
    ("sam", "eta", Range::NotNegative, "adaptive = true, "),
    ("swad", "n-converge", Range::From(1), ""),
    ("swad", "n-tolerance", Range::From(1), ""),
    ("swad", "tolerance-ratio", Range::NotNegative, ""),
    ("recalibration", "prior", Range::Positive, ""),
    ("recalibration", "ridge", Range::Positive, "method = \"hazard-intercept\", "),
    ("recalibration", "min-events", Range::From(1), "method = \"quantile\", "),
    ("controlled-attribute", "min-events", Range::From(2), ""),
    ("laftr", "stratum.bins", Range::From(2), "mode = \"eqodd\", stratum.kind = \"event-x-bin\", "),
    ("cfair", "stratum.bins", Range::From(2), "stratum.kind = \"event-x-bin\", "),
    ("end", "stratum.bins", Range::From(2), "stratum.kind = \"event-x-bin\", "),
    ("fair-representation", "stratum.bins", Range::From(2), "conditional = true, stratum.kind = \"event-x-bin\", "),
];

/// An error message contains the value of the file; numbers are formatted as Rust does.
fn refused(study: &Study, text: &str, value: &str, message: &str) {
    let config = parsed(text);
    let message = message.replace("VALUE", &value.parse::<f64>().map_or(value.to_owned(), |value| value.to_string()));
    assert_eq!(config.validate().unwrap_err().to_string(), message, "{text}");
    // Building without prior validation is rejected too.
    assert_eq!(config.build(&study.spec, &study.cells).err().unwrap().to_string(), message, "{text}");
}

#[test]
fn settings_outside_their_range_are_refused_by_key_and_those_at_its_ends_are_taken() {
    let study = study();
    for (strategy, setting, range, with) in RANGES {
        let text = |value: &str| format!("{strategy} = {{ {with}{setting} = {value} }}");
        let (wrong, right) = range.wrong_and_right();
        for value in wrong {
            let message = format!("{setting} is VALUE, expected {}", range.expected());
            refused(&study, &text(&value), &value, &message);
        }
        for value in right {
            let text = text(&value);
            parsed(&text).validate().unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }
}

#[test]
fn intervals_have_closed_and_open_ends() {
    let study = study();
    for (setting, expected, wrong, right) in [
        ("febs.gamma", "a number in [0, 100]", ["-0.001", "100.001", "nan"], ["0.0", "100.0"]),
        ("febs.decay", "a number in [0, 1)", ["-0.001", "1.0", "nan"], ["0.0", "0.999"]),
        ("dro-chi-square.alpha", "a number > 0 and <= 1", ["0.0", "1.001", "nan"], ["0.01", "1.0"]),
    ] {
        for value in wrong {
            let field = setting.split('.').next_back().unwrap();
            let message = format!("{field} is VALUE, expected {expected}");
            refused(&study, &format!("{setting} = {value}"), value, &message);
        }
        for value in right {
            parsed(&format!("{setting} = {value}")).validate().unwrap();
        }
    }
    // An alpha so small that the radius is infinite.
    let message = "alpha is VALUE, expected a number > 0 and <= 1";
    refused(&study, "dro-chi-square.alpha = 1e-300", "1e-300", message);
}

#[test]
fn settings_without_effect_are_refused() {
    let study = study();
    for (text, value, message) in [
        ("sam = { eta = 0.5 }", "0.5", "eta is VALUE, expected no value without adaptive = true"),
        (
            "fair-representation = { gamma = 3.0 }",
            "3",
            "gamma is VALUE, expected no value without kernels = \"single\"",
        ),
        (
            "fair-representation = { stratum.kind = \"event\" }",
            "event",
            "stratum is VALUE, expected no value without conditional = true",
        ),
        (
            "laftr = { mode = \"dp\", stratum.kind = \"event\" }",
            "event",
            "stratum is VALUE, expected no value with mode = \"dp\", which reads no stratum",
        ),
        (
            "laftr = { mode = \"eqopp1\", stratum = { kind = \"event-x-bin\", bins = 2 } }",
            "eqopp1",
            "mode is VALUE, expected dp or eqodd with stratum.kind = \"event-x-bin\": equal opportunity is within \
             one of two strata",
        ),
        (
            "laftr = { mode = \"eqopp0\", stratum.kind = \"event-x-bin\" }",
            "eqopp0",
            "mode is VALUE, expected dp or eqodd with stratum.kind = \"event-x-bin\": equal opportunity is within \
             one of two strata",
        ),
        (
            "laftr = { mode = \"eqodd\", stratum.bins = 3 }",
            "3",
            "stratum.bins is VALUE, expected no value without kind = \"event-x-bin\"",
        ),
        ("cfair.stratum.bins = 3", "3", "stratum.bins is VALUE, expected no value without kind = \"event-x-bin\""),
        ("end.stratum.bins = 3", "3", "stratum.bins is VALUE, expected no value without kind = \"event-x-bin\""),
        (
            "recalibration = { method = \"quantile\", prior = 2.0 }",
            "2",
            "prior is VALUE, expected no value without method = \"oe\"",
        ),
        (
            "recalibration = { ridge = 2.0 }",
            "2",
            "ridge is VALUE, expected no value without method = \"hazard-intercept\"",
        ),
        (
            "recalibration = { shared = true }",
            "true",
            "shared is VALUE, expected no value without method = \"hazard-intercept\"",
        ),
        (
            "recalibration = { min-events = 7 }",
            "7",
            "min-events is VALUE, expected no value without method = \"quantile\"",
        ),
        (
            "domain-independent = { missing-attribute = \"refuse\" }",
            "refuse",
            "missing-attribute is VALUE, expected average, unless inference = \"own-group\"",
        ),
        (
            "subgroup-rebalancing = { mode = \"reweigh\", by = \"group-x-event\" }",
            "group-x-event",
            "by is VALUE, expected no value with mode = \"reweigh\", whose weights are those of \
             group and event",
        ),
    ] {
        refused(&study, text, value, message);
    }
}

/// Name, whether training and prediction read groups, and the names of its watches.
const ABOUT: [(&str, bool, bool, &[&str]); 16] = [
    ("erm", false, false, &[]),
    ("subgroup-rebalancing", true, false, &[]),
    ("group-dro", true, false, &["unmoved-weights"]),
    ("domain-independent", true, false, &[]),
    ("controlled-attribute", true, false, &[]),
    ("sam", false, false, &[]),
    ("swad", false, false, &["no-valley"]),
    ("recalibration", true, true, &[]),
    ("laftr", true, false, &["idle-adversary"]),
    ("cfair", true, false, &["idle-adversary"]),
    ("lnl", true, false, &["idle-adversary"]),
    ("odr", true, false, &["empty-code", "idle-adversary"]),
    ("fair-representation", true, false, &["no-discrepancy"]),
    ("end", true, false, &[]),
    ("dro-chi-square", false, false, &[]),
    ("febs", true, false, &["unmoved-weights"]),
];

#[test]
fn every_strategy_says_what_it_is_and_what_it_reads() {
    let study = study();
    let names: Vec<&str> = StrategyConfig::catalogue().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ABOUT.map(|(name, ..)| name));
    for (name, needs_groups, needs_group_to_predict, watched) in ABOUT {
        let strategy = built(&study, name);
        assert_eq!(strategy.name(), name);
        assert_eq!(parsed(&format!("{name} = {{}}")).needs_groups(), needs_groups, "{name}");
        assert_eq!(strategy.needs_group_to_predict(), needs_group_to_predict, "{name}");
        assert_eq!(strategy.watches().iter().map(|watch| watch.name).collect::<Vec<_>>(), watched, "{name}");
        assert_eq!(strategy.validation_interval(), None, "{name}");
        assert!(!strategy.wants_to_stop(), "{name}");
        let has_terms = ["swad", "controlled-attribute"].contains(&name);
        assert_eq!(strategy.log_terms().is_empty(), !has_terms, "{name}");
        let weights = match name {
            "controlled-attribute" => "by group, the best epoch of its own network",
            "recalibration" => "epoch 3, recalibrated by group",
            _ => "epoch 3", // before training
        };
        assert_eq!(strategy.describe_weights(3), weights, "{name}");
        let short = TrainingConfig { epochs: 1, patience: 1, ..TrainingConfig::default() };
        let notes = parsed(&format!("{name} = {{}}")).training_notes(&short, 10);
        assert_eq!(notes.len(), if name == "swad" { 2 } else { 0 }, "{name}: {notes:?}");
    }
    let terms: Vec<String> = built(&study, "swad").log_terms().into_iter().map(|(name, _)| name).collect();
    assert_eq!(terms, ["swad: valley found", "swad: first segment", "swad: last segment", "swad: iterations"]);
}

#[test]
fn settings_change_what_a_strategy_reads() {
    let study = study();
    let needs = |text: &str| parsed(text).needs_groups();
    assert!(needs("swad = { criterion = \"worst-group-nll\" }"));
    assert!(!needs("subgroup-rebalancing = { by = \"event\" }"));
    assert!(needs("subgroup-rebalancing = { by = \"group-x-event\" }"));
    assert!(needs("subgroup-rebalancing = { mode = \"reweigh\" }"));
    let own = parsed("domain-independent = { inference = \"own-group\" }").build(&study.spec, &study.cells).unwrap();
    assert!(own.needs_group_to_predict());
    let swad = parsed("swad = { interval = 3 }").build(&study.spec, &study.cells).unwrap();
    assert_eq!(swad.validation_interval(), Some(3));
    let reweigh = parsed("subgroup-rebalancing = { mode = \"reweigh\" }").build(&study.spec, &study.cells).unwrap();
    assert!(matches!(reweigh.sampling(), Sampling::Shuffled));
    assert!(matches!(built(&study, "subgroup-rebalancing").sampling(), Sampling::Weighted(_)));
}

#[test]
fn strategies_of_groups_refuse_a_training_part_without_any() {
    let mut table = Table::new(240, 13);
    table.groups.fill(None);
    let mut study = Study::new(table, 13);
    study.cells.levels = vec!["level 0".to_owned(), "level 1".to_owned()];
    for (name, needs_groups, ..) in ABOUT {
        let built = parsed(&format!("{name} = {{}}")).build(&study.spec, &study.cells);
        let expected =
            format!("strategy {name} needs groups, but no training sample has a value of attribute \"group\"");
        assert_eq!(built.err().map(|error| error.to_string()), needs_groups.then_some(expected), "{name}");
    }
}

/// With one group they would train as `erm`, or on resampled data, without a word. Maps of `recalibration` are of use there
/// too, and cells of group and event are two.
#[test]
fn strategies_that_compare_groups_refuse_a_training_part_of_one() {
    let mut table = Table::new(240, 13);
    table.groups.fill(Some(GroupId(0)));
    let study = Study::new(table, 13);
    for (name, needs_groups, ..) in ABOUT {
        let built = parsed(&format!("{name} = {{}}")).build(&study.spec, &study.cells);
        let expected = format!(
            "strategy {name} needs at least two groups, but all training samples with a value of attribute \"group\" \
             are in group level 0"
        );
        let is_refused = needs_groups && name != "recalibration";
        assert_eq!(built.err().map(|error| error.to_string()), is_refused.then_some(expected), "{name}");
    }
    let of_both = parsed("subgroup-rebalancing = { by = \"group-x-event\" }");
    assert!(of_both.build(&study.spec, &study.cells).is_ok());
}

/// Two samples of a batch of eight in the worst quarter are too few.
#[test]
fn batches_with_which_a_method_cannot_work_are_refused() {
    let expected = ExpectedBatch { size: 8, head: &NnetSurvival, share_with_loss: 1.0 };
    let checked = |text: &str| parsed(text).check_batches(&expected).map_err(|error| error.to_string());
    assert!(checked("dro-chi-square = { alpha = 0.05 }").unwrap_err().starts_with("alpha is 0.05"));
    assert_eq!(checked("dro-chi-square = { alpha = 1.0 }"), Ok(()));
    for (name, ..) in ABOUT.iter().filter(|(name, ..)| *name != "dro-chi-square") {
        assert_eq!(checked(&format!("{name} = {{}}")), Ok(()), "{name}");
    }
}
