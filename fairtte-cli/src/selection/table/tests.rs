//! The tables of an invented choice, compared exactly with `terminal.txt` and `document.md` in this folder.

use super::super::verdict::{Contrast, Network, NotTrained, OverSeeds, Scores};
use super::*;

#[test]
fn zero_has_no_sign() {
    assert_eq!(["+0.012", "-0.012", "0.000", "0.000"], [0.012, -0.012, 0.0004, -0.0004].map(|x| with_sign(x, 3)));
    assert_eq!(with_sign(-12.34, 1), "-12.3");
    assert_eq!([p_is(0.0204), p_is(0.000_999), p_is(0.001)], ["p = 0.020", "p < 0.001", "p = 0.001"]);
}

fn chosen(run: &str, weights: &str, test: [f64; 3]) -> Chosen {
    let [value, gap, difference] = test.map(Some);
    Chosen {
        run: run.to_owned(),
        epoch: 6,
        weights: weights.to_owned(),
        kept_by: "nll".to_owned(),
        validation: Scores::default(),
        test: Scores { value, gap, difference },
        weighted: None,
        change: None,
        difference_change: None,
        change_from_base: None,
        difference_change_from_base: None,
    }
}

/// A change by its value, lower and upper end; in percent a hundred times as much. `p`: the p value and Holm's.
fn changed(value: [f64; 3], p: Option<(f64, f64)>) -> Change {
    let [percent, percent_lower, percent_upper] = value.map(|value| Some(100.0 * value));
    let [value, lower, upper] = value.map(Some);
    let (p_value, p_holm) = p.unzip();
    let different = p_holm.is_some_and(|p| p <= 0.05);
    Change {
        value,
        lower,
        upper,
        percent,
        percent_lower,
        percent_upper,
        p_value,
        p_holm,
        different,
        ..Change::default()
    }
}

fn row(strategy: &str, role: Role, chosen: Option<Chosen>, spreads: [Option<[f64; 3]>; 2]) -> Standing {
    let spread = |of: [f64; 3]| Spread { n: 3, median: of[1], smallest: of[0], largest: of[2] };
    let [value, gap] = spreads.map(|of| of.map(spread));
    Standing {
        strategy: strategy.to_owned(),
        role,
        n_candidates: 4,
        none_because: chosen.is_none().then(|| "none is within the tolerated loss".to_owned()),
        chosen,
        seeds: Vec::new(),
        over_seeds: OverSeeds { value, gap, difference: None },
    }
}

fn block(label: &str, higher_is_better: bool, head: &str, rows: Vec<Standing>) -> Block {
    Block {
        attribute: "sex".to_owned(),
        metric: String::new(),
        label: label.to_owned(),
        higher_is_better,
        network: Network { head: head.to_owned(), backbone: "mlp".to_owned(), start: "scratch".to_owned() },
        groups: Vec::new(),
        contrast: Some(Contrast { first: "female".to_owned(), second: "male".to_owned() }),
        no_skill: None,
        warnings: Vec::new(),
        rows,
    }
}

fn with_every_cell() -> Block {
    let control = Chosen {
        change_from_base: Some(changed([-0.0123, -0.02, -0.001], None)),
        difference_change_from_base: Some(changed([0.0004, -0.01, 0.01], None)),
        ..chosen("sex/erm-seed2", "epoch 4", [0.6917, 0.021, -0.021])
    };
    let different = Chosen {
        change: Some(changed([0.0315, 0.01, 0.05], Some((0.0004, 0.0012)))),
        difference_change: Some(changed([-0.03, -0.05, 0.011], Some((0.0432, 0.0864)))),
        change_from_base: Some(changed([0.0192, -0.004, 0.04], None)),
        difference_change_from_base: Some(changed([-0.029, -0.05, 0.01], None)),
        ..chosen("sex/swad-seed1", "averaged over epochs 9 to 12", [0.714, 0.051, -0.051])
    };
    let mut undefined = chosen("sex/a|b-seed1", "epoch 2", [0.5, 0.0, 0.0]);
    undefined.test = Scores::default();
    undefined.change = Some(Change { undefined: Some("no comparable pair".to_owned()), ..Change::default() });
    let mut block = block(
        "C^td",
        true,
        "pmf",
        vec![
            row(
                "erm",
                Role::Base,
                Some(chosen("sex/erm-seed1", "epoch 6", [0.7003, 0.04, 0.02])),
                [Some([0.69, 0.7, 0.71]), Some([0.03, 0.04, 0.05])],
            ),
            row("erm", Role::Control, Some(control), [Some([0.68, 0.69, 0.7]), Some([0.01, 0.02, 0.03])]),
            row("a|b", Role::Strategy, Some(undefined), [None, None]),
            row("sam", Role::Strategy, None, [None, None]),
            row("swad", Role::Strategy, Some(different), [Some([0.7, 0.71, 0.72]), Some([0.04, 0.05, 0.06])]),
        ],
    );
    let mut one_seed = row("swad", Role::Strategy, None, [Some([0.6; 3]), Some([0.01; 3])]);
    one_seed.over_seeds.value = one_seed.over_seeds.value.map(|spread| Spread { n: 1, ..spread });
    one_seed.chosen = Some(chosen("sex/one-seed1", "epoch 1", [0.6, 0.01, 0.01]));
    block.rows.push(one_seed);
    block.warnings = vec![
        "group \"male\" has 3 events among 20 samples of the test part: too few to compare models in it".to_owned(),
    ];
    block
}

fn ranked(of: Ranked) -> RankComparison {
    RankComparison {
        metric: String::new(),
        label: "C^td".to_owned(),
        of,
        n_blocks: 6,
        n_incomplete: 0,
        left_out: Vec::new(),
        methods: ["erm", "sam", "swad"].map(str::to_owned).to_vec(),
        average_ranks: vec![3.0, 1.25, 1.75],
        friedman_chi_square: Some(10.33),
        friedman_p: Some(0.0057),
        nemenyi_p: Some(vec![vec![1.0, 0.0071, 0.05], vec![0.0071, 1.0, 0.66], vec![0.05, 0.66, 1.0]]),
        note: "Friedman's test rejects".to_owned(),
    }
}

pub(in super::super) fn verdict() -> Verdict {
    let rows =
        vec![row("erm", Role::Base, Some(chosen("sex/deep-seed1", "epoch 6", [0.18, 0.01, 0.01])), [None, None])];
    let mut of_ibs = block("IBS", false, "deephit", rows);
    of_ibs.contrast = None;
    let no_pairs = RankComparison {
        nemenyi_p: None,
        friedman_chi_square: None,
        friedman_p: None,
        n_incomplete: 2,
        ..ranked(Ranked::Metric)
    };
    let equal = RankComparison {
        nemenyi_p: Some(vec![vec![1.0; 3]; 3]),
        n_incomplete: 1,
        left_out: vec!["laftr".to_owned()],
        ..ranked(Ranked::Gap)
    };
    Verdict {
        rule: Rule::Fairest,
        tolerated_loss: 0.05,
        tolerated_loss_of: LossOf::Metric,
        base: "erm".to_owned(),
        level: 0.95,
        replicates: 1000,
        n_seeds: 3,
        n_folds: 1,
        n_test: 1776,
        n_test_events: 1212,
        horizon: None,
        blocks: vec![with_every_cell(), of_ibs],
        ranks: vec![ranked(Ranked::Gap), no_pairs, equal],
        not_trained: vec![NotTrained {
            runs: vec!["sex/laftr-seed1".to_owned(), "sex/laftr-seed2".to_owned()],
            because: "strategy laftr needs 10 training samples".to_owned(),
        }],
    }
}

#[test]
fn a_terminal_gets_every_number_with_its_sign_unit_and_interval() {
    let text = terminal(&verdict());
    assert_eq!(text, include_str!("terminal.txt").trim_end());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "it fits a terminal");
}

#[test]
fn a_document_gets_the_same_in_markdown() {
    assert_eq!(markdown(&verdict()), include_str!("document.md"));
    let mut small = verdict();
    small.ranks.clear();
    small.not_trained.clear();
    small.blocks.truncate(1);
    let text = markdown(&small);
    assert!(!text.contains("Ranks over blocks") && !text.contains("Not trained"), "{text}");
    assert!(text.contains("\n### sex, C^td (higher is better)\n"), "one network needs no name: {text}");
}

#[test]
fn the_sentences_before_the_tables_follow_the_rule_the_seeds_and_the_draws() {
    let lines = |change: &dyn Fn(&mut Verdict)| {
        let mut verdict = verdict();
        change(&mut verdict);
        preamble(&verdict, Medium::Text).join("\n")
    };
    let overall = lines(&|verdict| verdict.rule = Rule::Overall);
    assert!(overall.starts_with("Chosen in the validation part: the weights with the best metric over all samples."));
    assert!(overall.contains("from the row \"erm\", so that") && !overall.contains("from erm: the same"), "{overall}");
    assert!(
        lines(&|verdict| verdict.rule = Rule::Minimax).contains("best worst group among those on the Pareto front")
    );
    assert!(lines(&|verdict| verdict.rule = Rule::Dto).contains("nearest to the best value of every group"));
    let skill = lines(&|verdict| verdict.tolerated_loss_of = LossOf::Skill);
    assert!(skill.contains("at most 5 % of the skill of erm (its metric above 0.5, or below the IBS"), "{skill}");
    let fine = lines(&|verdict| (verdict.tolerated_loss, verdict.level) = (0.025, 0.995));
    for part in ["lose at most 2.5 % of the metric of erm", "In brackets: 99.5 % percentile", "at most 0.005. Only"] {
        assert!(fine.contains(part), "{part}: {fine}");
    }
    for n_seeds in [0, 1] {
        let one = lines(&|verdict| verdict.n_seeds = n_seeds);
        assert!(one.contains("There is one training seed:") && !one.contains("A draw has"), "{one}");
    }
    let none = lines(&|verdict| verdict.replicates = 0);
    assert!(!none.contains("In brackets") && !none.contains("p: two-sided"), "{none}");
    // Two changes with a p value: with 39 draws the smallest adjusted p is 2 / 40 = 0.05, with 38 it is above.
    let few = |replicates| lines(&|verdict| verdict.replicates = replicates);
    assert!(!few(39).contains("no change can be called different"), "{}", few(39));
    let sentence = "With 38 draws and 2 changes no adjusted p can be below 0.051: no change can be called different. Set \
                    evaluation.replicates to at least 40.";
    assert!(few(38).contains(sentence), "{}", few(38));
}

#[test]
fn pairs_differ_at_the_level_of_friedmans_test() {
    let comparison = ranked(Ranked::Gap);
    let at = |alpha| ranks(&comparison, alpha);
    assert!(at(0.05).ends_with("tells apart erm and sam (p = 0.007), erm and swad (p = 0.050)."), "{}", at(0.05));
    assert!(at(0.01).ends_with("tells apart erm and sam (p = 0.007)."), "{}", at(0.01));
    assert!(at(0.001).ends_with("Nemenyi's test tells no pair apart."), "{}", at(0.001));
}
