//! Ranks, families, pairs and words against values that can be worked out by hand or are those of scipy; every refusal.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use super::*;

fn question(goal: Goal) -> Question {
    Question {
        base: None,
        level: 0.05,
        alternative: Alternative::TwoSided,
        all_pairs: false,
        family: Family::Metric,
        goals: ["m", "other"].map(|metric| (metric.to_owned(), goal)).into(),
    }
}

fn at(setting: &str, method: &str, trial: Option<&str>, value: f64) -> Observation {
    let [metric, setting, method] = ["m", setting, method].map(str::to_owned);
    Observation { metric, setting, method, trial: trial.map(str::to_owned), value }
}

/// Values by setting, for methods `a`, `b`, ..
fn table<R: AsRef<[f64]>>(rows: &[R]) -> Vec<Observation> {
    let methods = ["a", "b", "c", "d"];
    let of_row = |(row, values): (usize, &R)| {
        values.as_ref().iter().zip(methods).map(|(value, method)| (row, (*value, method))).collect::<Vec<_>>()
    };
    let cells = rows.iter().enumerate().flat_map(of_row);
    cells.map(|(row, (value, method))| at(&format!("s{row}"), method, None, value)).collect()
}

fn only(observations: &[Observation], question: &Question) -> MetricTests {
    compare(observations, question).unwrap().metrics.remove(0)
}

fn refusal(observations: &[Observation], question: &Question) -> String {
    compare(observations, question).unwrap_err().to_string()
}

// Ranks 1, 2, 3 in every setting: chi-square = N (k - 1) = 10 with 2 degrees, p = exp(-5).
#[test]
fn settings_that_agree_give_the_largest_statistic_and_no_finite_f() {
    let rows: [&[f64]; 5] = [&[1.0, 2.0, 3.0]; 5];
    let low = only(&table(&rows), &question(Goal::LowerIsBetter));
    assert_eq!(low.ranks.average_ranks, [1.0, 2.0, 3.0]);
    assert_eq!(low.ranks.means, [1.0, 2.0, 3.0]);
    let tested = low.ranks.tested.as_ref().unwrap();
    assert!((tested.friedman.chi_square - 10.0).abs() < 1e-12);
    assert!((tested.friedman.p_value - (-5_f64).exp()).abs() < 1e-12);
    assert!(tested.rejects && tested.iman_davenport.is_none() && tested.friedman_p_holm.is_none());
    // 3.314 sqrt(3 * 4 / (12 * 5)) = 1.482: neighbours are not apart.
    assert!((tested.critical_difference - 1.482).abs() < 5e-4, "{}", tested.critical_difference);
    assert_eq!(tested.cliques, [vec![0, 1], vec![1, 2]]);
    assert!(low.verdict[0].contains("at least two methods differ. Nemenyi's test: a ranks better than c (p = 0.00"));
    // The other end is best: ranks turn round, and so do better and worse.
    let high = only(&table(&rows), &question(Goal::HigherIsBetter));
    assert_eq!(high.ranks.average_ranks, [3.0, 2.0, 1.0]);
    assert!(high.verdict[0].contains("c ranks better than a"), "{}", high.verdict[0]);
    let sides = |tests: &MetricTests| tests.pairs.iter().map(|pair| (pair.n_better, pair.n_worse)).collect::<Vec<_>>();
    assert_eq!((sides(&low), sides(&high)), (vec![(0, 5); 2], vec![(5, 0); 2]));
}

// Differences b - a over 4 settings x 2 trials: 1, -1, 2, 2, 0, 3, -2, 4, with W+ = 22.5 and W- = 5.5.
// scipy 1.17.1: wilcoxon([1, -1, 2, 2, 0, 3, -2, 4], alternative = ..).pvalue, which enumerates all signs.
#[test]
fn trials_are_averaged_for_ranks_and_paired_for_signed_ranks() {
    let differences = [1.0, -1.0, 2.0, 2.0, 0.0, 3.0, -2.0, 4.0];
    let mut observations: Vec<Observation> = Vec::new();
    for (k, difference) in differences.iter().enumerate() {
        let (setting, trial) = (format!("s{}", k / 2), ["1", "2"][k % 2]);
        observations.push(at(&setting, "a", Some(trial), 5.0));
        observations.push(at(&setting, "b", Some(trial), 5.0 + difference));
    }
    // A trial of one method alone, and a setting of one method alone.
    observations.push(at("s0", "a", Some("3"), 9.0));
    observations.push(at("s9", "b", Some("1"), 9.0));
    for (alternative, expected) in
        [(Alternative::TwoSided, 0.203_125), (Alternative::Less, 0.945_312_5), (Alternative::Greater, 0.101_562_5)]
    {
        let found = only(&observations, &Question { alternative, ..question(Goal::HigherIsBetter) });
        let pair = &found.pairs[0];
        let test = pair.test.unwrap();
        assert_eq!((pair.first.as_str(), pair.second.as_str()), ("b", "a"));
        assert!((test.p_value - expected).abs() < 1e-12, "{}", test.p_value);
        assert_eq!((test.positive_rank_sum, test.negative_rank_sum), (22.5, 5.5));
        assert_eq!((pair.n_pairs, pair.n_zero, pair.n_better, pair.n_worse, pair.n_unpaired), (8, 1, 5, 2, 2));
        assert_eq!((pair.median_difference, pair.p_holm), (Some(1.5), Some(test.p_value)));
        assert_eq!(found.trials, Some((1, 3)));
        // Means: a (5 + 5 + 9) / 3 in s0; b 5, 7, 6.5, 6.
        let means: Vec<&[f64]> = found.settings.iter().map(|setting| &setting.means[..]).collect();
        assert!((means[0][0] - 19.0 / 3.0).abs() < 1e-10 && means[0][1..] == [5.0]);
        assert_eq!(means[1..], [&[5.0, 7.0][..], &[5.0, 6.5], &[5.0, 6.0]]);
        assert_eq!(found.ranks.average_ranks, [1.75, 1.25]);
        assert_eq!(found.left_out, [LeftOut { setting: "s9".to_owned(), lacks: vec!["a".to_owned()] }]);
    }
}

#[test]
fn values_that_differ_by_rounding_alone_tie() {
    // 0.1 + 0.2 and 0.3 differ in the last bit, and so do the differences 0.3 - 0.2 and 0.2 - 0.1.
    let trial = |setting: &str, method: &str, values: [f64; 2]| {
        ["1", "2"]
            .into_iter()
            .zip(values)
            .map(|(trial, value)| at(setting, method, Some(trial), value))
            .collect::<Vec<_>>()
    };
    let tied = [trial("s", "a", [0.1, 0.2]), trial("s", "b", [0.3, 0.0])].concat();
    let found = only(&tied, &question(Goal::LowerIsBetter));
    assert_eq!(found.settings[0].ranks, [1.5, 1.5]);
    let pairs = only(&table(&[&[0.2, 0.3], &[0.1, 0.2], &[0.7, 0.4]]), &question(Goal::LowerIsBetter));
    assert_eq!(pairs.pairs[0].test.unwrap().n_tied, 2);
    // Differences that are a billionth of the values are kept.
    let near = only(&table(&[&[1.0, 1.0 + 1e-9], &[1.0, 1.0 + 1e-9]]), &question(Goal::LowerIsBetter));
    assert_eq!((near.settings[0].ranks.clone(), near.pairs[0].n_zero), (vec![1.0, 2.0], 0));
    assert!(only(&table(&[&[0.0, 0.0]]), &question(Goal::Gap)).pairs[0].n_zero == 1);
    // A setting with large values does not hide the differences of others.
    let large = only(&table(&[&[0.01, 0.02], &[1e12, 2e12], &[0.03, 0.01]]), &question(Goal::LowerIsBetter));
    assert_eq!(large.settings[0].ranks, [1.0, 2.0]);
    assert_eq!((large.pairs[0].n_zero, large.pairs[0].test.unwrap().n_tied), (0, 0));
    // Rounding in it is no difference, whatever the others are.
    let beside = only(&table(&[&[0.01, 0.02], &[1e12, 1e12 + 0.1], &[0.03, 0.01]]), &question(Goal::LowerIsBetter));
    assert_eq!((beside.settings[1].ranks.clone(), beside.pairs[0].n_zero), (vec![1.5, 1.5], 1));
}

#[test]
fn fewer_than_five_settings_have_ranks_alone() {
    let rows: Vec<&[f64]> = vec![&[1.0, 2.0, 3.0]; 5];
    let few = only(&table(&rows[..4]), &question(Goal::LowerIsBetter));
    assert_eq!((few.ranks.untested, &few.ranks.average_ranks[..]), (Some(Untested::FewSettings), &[1.0, 2.0, 3.0][..]));
    assert!(few.ranks.tested.is_none() && few.verdict[0].contains("(4, expected at least 5)"), "{:?}", few.verdict);
    let five = only(&table(&rows), &question(Goal::LowerIsBetter));
    assert!(five.ranks.tested.is_some() && five.ranks.untested.is_none());
}

#[test]
fn settings_that_lack_a_method_are_left_out_by_name() {
    let mut rows = table(&[&[1.0, 2.0, 3.0]; 6]);
    rows.retain(|row| !(row.setting == "s2" && row.method != "c"));
    let found = only(&rows, &question(Goal::LowerIsBetter));
    let lacks = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(found.left_out, [LeftOut { setting: "s2".to_owned(), lacks }]);
    assert_eq!((found.ranks.n_settings, found.settings.len()), (5, 5));
    assert!(found.question.ends_with("over 5 of 6 settings (lower is better)?"), "{}", found.question);
    // No setting is complete: pairs are tested all the same.
    let halves = [at("s0", "a", None, 1.0), at("s0", "b", None, 2.0), at("s1", "c", None, 1.0)];
    let none = only(&halves, &question(Goal::LowerIsBetter));
    assert_eq!((none.ranks.untested, none.settings.len(), none.left_out.len()), (Some(Untested::NoSetting), 0, 2));
    assert_eq!((none.pairs[0].n_pairs, none.pairs[1].n_pairs), (1, 0));
    assert!(none.pairs[1].test.is_none() && none.pairs[1].p_holm.is_none());
    assert!(none.verdict[0].starts_with("No setting has a value of all 3 methods"), "{:?}", none.verdict);
}

#[test]
fn methods_that_all_tie_are_not_tested() {
    let found = only(&table(&[&[1.0, 1.0, 1.0]; 5]), &question(Goal::LowerIsBetter));
    assert_eq!((found.ranks.untested, &found.ranks.average_ranks[..]), (Some(Untested::AllTied), &[2.0; 3][..]));
    assert!(found.verdict[0].contains("All methods tie in every one of 5 settings"), "{:?}", found.verdict);
    assert_eq!(found.pairs[0].test.map(|test| test.p_value), Some(1.0));
}

/// Two metrics over the same settings: `m` with the given rows, `other` without any difference of ranks on average.
fn two_metrics(rows: &[&[f64]]) -> Vec<Observation> {
    let balanced: [&[f64]; 6] =
        [&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0], &[2.0, 3.0, 1.0], &[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0], &[2.0, 3.0, 1.0]];
    let other = table(&balanced).into_iter().map(|row| Observation { metric: "other".to_owned(), ..row });
    table(rows).into_iter().chain(other).collect()
}

// Ranks of `m` in 6 settings: 1, 2, 3 four times, 2, 3, 1 and 2, 1, 3 once: rank sums 8, 12, 16.
// chi-square = 12 * (16 + 0 + 16) / (6 * 3 * 4) = 16 / 3, p = exp(-8 / 3) = 0.0695; Holm over two: 0.139.
#[test]
fn the_family_decides_what_is_adjusted_together() {
    let rows: [&[f64]; 6] =
        [&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], &[2.0, 3.0, 1.0], &[2.0, 1.0, 3.0]];
    let observations = two_metrics(&rows);
    let p = (-8_f64 / 3.0).exp();
    for (family, rejects) in [(Family::Metric, true), (Family::Table, false)] {
        let asked = Question { family, level: 0.1, ..question(Goal::LowerIsBetter) };
        let found = compare(&observations, &asked).unwrap();
        let [m, other] = &found.metrics[..] else { panic!("two metrics") };
        let tested = m.ranks.tested.as_ref().unwrap();
        assert!((tested.friedman.p_value - p).abs() < 1e-12);
        assert!((tested.friedman_p_holm.unwrap() - 2.0 * p).abs() < 1e-12);
        assert_eq!(tested.rejects, rejects, "{family:?}");
        assert!(!other.ranks.tested.as_ref().unwrap().rejects);
        // b minus a: 1, 1, 1, 1, 1, -1: W- = 3.5, p = 2 * 7 / 64. c minus a: 2, 2, 2, 2, -1, 1: W- = 1.5, p = 2 * 3 / 64.
        let p_values = [14.0 / 64.0, 6.0 / 64.0];
        for (pair, p_value) in m.pairs.iter().zip(p_values) {
            assert!((pair.test.unwrap().p_value - p_value).abs() < 1e-12, "{pair:?}");
        }
        let n = if family == Family::Table { 4.0 } else { 2.0 };
        assert!((m.pairs[1].p_holm.unwrap() - n * p_values[1]).abs() < 1e-12);
        let said = m.verdict.join(" ");
        assert!(said.contains(&format!("Holm over {n} tests")), "{said}");
        if family == Family::Metric {
            assert!(said.contains("Holm's adjustment for the 2 metrics of the table gives p = 0.139: it no longer"));
        } else {
            assert!(said.contains("(p = 0.069, after Holm's adjustment for 2 metrics p = 0.139, 6 settings"), "{said}");
        }
    }
}

#[test]
fn all_pairs_are_those_with_the_base_and_then_the_others() {
    let rows: [&[f64]; 5] = [&[1.0, 2.0, 3.0, 4.0]; 5];
    let mut observations = table(&rows);
    let names = |found: &MetricTests| {
        found.pairs.iter().map(|pair| format!("{}-{}", pair.first, pair.second)).collect::<Vec<_>>()
    };
    let all = Question { all_pairs: true, base: Some("c".to_owned()), ..question(Goal::LowerIsBetter) };
    let found = only(&observations, &all);
    assert_eq!(names(&found), ["a-c", "b-c", "d-c", "b-a", "d-a", "d-b"]);
    // p = 2 / 2^5 for each; Holm over 6.
    assert!(found.pairs.iter().all(|pair| (pair.p_holm.unwrap() - 6.0 / 16.0).abs() < 1e-12));
    let said = found.verdict.last().unwrap();
    assert!(said.starts_with("Signed-rank tests of all pairs, Holm over 6 tests: none differs"), "{said}");
    assert!(said.contains("With 5 pairs no p can be below 0.0625, which is more than 0.05 after"), "{said}");
    // The base is the first method, or one with the name erm.
    assert_eq!(only(&observations, &question(Goal::Gap)).base, "a");
    for row in observations.iter_mut().filter(|row| row.method == "b") {
        row.method = "erm".to_owned();
    }
    assert_eq!(only(&observations, &question(Goal::Gap)).base, "erm");
}

#[test]
fn pairs_without_a_difference_do_not_count_for_what_can_be_found() {
    // Eight pairs, of which three differ: p is at least 2 / 2^3.
    let rows: Vec<Vec<f64>> = (0..8).map(|k| vec![1.0, if k < 3 { 2.0 } else { 1.0 }]).collect();
    let said = only(&table(&rows), &question(Goal::LowerIsBetter)).verdict.pop().unwrap();
    assert!(said.contains(" With 3 pairs whose values differ no p can be below 0.25, which is more than"), "{said}");
}

#[test]
fn a_difference_is_named_and_reach_is_not_mentioned_where_it_is_there() {
    let rows: Vec<Vec<f64>> = (1..=8).map(|k| vec![f64::from(k), 0.5 * f64::from(k)]).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let said = only(&table(&rows), &question(Goal::Gap)).verdict.pop().unwrap();
    // Differences -0.5 to -4, median -2.25; p = 2 / 2^8.
    let expected = "Signed-rank tests against a, Holm over 1 test: b minus a has the median -2.25 (p = 0.008, after Holm p = 0.008).";
    assert_eq!(said, expected);
    let greater = Question { alternative: Alternative::Greater, ..question(Goal::Gap) };
    let said = only(&table(&rows), &greater).verdict.pop().unwrap();
    assert!(said.ends_with("none differs (smallest, b minus a: p = 1.000, after Holm p = 1.000)."), "{said}");
}

#[test]
fn a_sentence_names_five_findings_and_counts_the_rest() {
    for (n_methods, n_named, end) in [(7, 6, "(p = 0.031, after Holm p = 0.188)."), (8, 5, " and 2 more.")] {
        let names: Vec<String> = (0..n_methods).map(|k| format!("m{k}")).collect();
        let values = |setting: u32| names.iter().enumerate().map(move |(k, name)| (setting, k, name));
        let row = |(setting, k, name): (u32, usize, &String)| {
            at(&setting.to_string(), name, None, k as f64 * f64::from(1 + setting))
        };
        let rows: Vec<Observation> = (0..6).flat_map(values).map(row).collect();
        let said = only(&rows, &Question { level: 0.4, ..question(Goal::Gap) }).verdict.pop().unwrap();
        assert!(said.ends_with(end) && said.matches(" minus ").count() == n_named, "{said}");
    }
}

#[test]
fn more_than_a_thousand_differences_have_the_normal_approximation() {
    let rows: Vec<Vec<f64>> = (0..1_001).map(|k| vec![0.0, if k % 3 == 0 { 2.0 } else { -1.0 }]).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let test = only(&table(&rows), &question(Goal::LowerIsBetter)).pairs[0].test.unwrap();
    assert!(test.z.is_some(), "{test:?}");
    let test = only(&table(&rows[..1_000]), &question(Goal::LowerIsBetter)).pairs[0].test.unwrap();
    assert!(test.z.is_none(), "{test:?}");
}

#[test]
fn every_refusal_names_the_value() {
    let gap = question(Goal::Gap);
    let good = table(&[&[1.0, 2.0]; 2]);
    let with = |change: fn(&mut Vec<Observation>)| {
        let mut rows = good.clone();
        change(&mut rows);
        refusal(&rows, &gap)
    };
    assert_eq!(with(|rows| rows[1].value = f64::NAN), "m of \"b\" in setting \"s0\" is NaN, expected a finite number");
    assert!(
        with(|rows| rows[3].value = -0.5).starts_with("m of \"b\" in setting \"s1\" is -0.5, expected a number >= 0")
    );
    let repeated = with(|rows| rows.push(rows[2].clone()));
    assert_eq!(repeated, "m of \"a\" in setting \"s1\" appears twice, expected one value");
    let some = with(|rows| rows[2].trial = Some("1".to_owned()));
    assert!(some.starts_with("1 of 4 values have a trial, expected all or none: the first without one is m of \"a\""));
    assert_eq!(with(|rows| rows.retain(|row| row.method == "a")), "m has one method, a, expected at least two");
    assert_eq!(with(Vec::clear), "there is no value, expected those of at least two methods");
    let repeated_trial = with(|rows| {
        for row in rows.iter_mut() {
            row.trial = Some("t".to_owned());
        }
        rows.push(rows[0].clone());
    });
    assert_eq!(repeated_trial, "m of \"a\" in setting \"s0\", trial \"t\" appears twice, expected one value");
    let base = Question { base: Some("x".to_owned()), ..question(Goal::Gap) };
    assert_eq!(refusal(&good, &base), "the base is \"x\", which has no value of m, expected one of a, b");
    for level in [0.0, -1.0, 0.95, f64::NAN, f64::INFINITY] {
        let found = refusal(&good, &Question { level, ..question(Goal::Gap) });
        assert!(found.starts_with(&format!("the level is {level}, expected")), "{found}");
    }
    let none = Question { goals: BTreeMap::new(), ..question(Goal::Gap) };
    assert!(refusal(&good, &none).starts_with("m has no direction"));
    // Values at the end of the range are no panic.
    let large = table(&[&[f64::MAX, -f64::MAX]]);
    assert!(refusal(&large, &question(Goal::LowerIsBetter)).contains("inf"));
    assert!(compare(&table(&[&[f64::MIN_POSITIVE, 0.0], &[5e-324, 0.0]]), &gap).is_ok());
}
