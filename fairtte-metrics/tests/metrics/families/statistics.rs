//! Tests of models against each other: signed-rank, Friedman, Nemenyi, adjusted p values, cliques.

use fairtte_metrics::statistics::{
    Adjustment, Alternative, CliqueRule, RangeQuantile, RankTable, RankTies, SignedRankMethod, SignedRankSettings,
    SignedRankTest, ZeroDifferences, adjust_p_values, adjust_pairwise, cliques, critical_difference, friedman,
    iman_davenport, nemenyi, p_value_cliques, pairwise_wilcoxon, wilcoxon_signed_rank,
};
use fairtte_metrics::{Direction, MetricError};
use ndarray::Array2;
use serde_json::{Map, Value};

use crate::records::{matrix, numbers};
use crate::tally::{Tally, Verdict};

const CLOSE: f64 = 1e-12;
/// Rounding of the other packages that is no difference of convention: a few units in the last place of what they subtract.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Claims the three files of tests.
pub fn compare_table(name: &str, file: &Value, tally: &mut Tally) -> Verdict {
    let compare_case = match name {
        "t_wilcoxon" => wilcoxon_case,
        "t_friedman_nemenyi" => friedman_case,
        "t_holm" => holm_case,
        _ => return Verdict::NotMine,
    };
    let mut records = Records { tally, last: None };
    for (index, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let case_name = case["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
        compare_case(case, &format!("{name} {case_name}"), &mut records);
    }
    records.last.unwrap_or(Verdict::NotMine)
}

/// The records inside one file: all but the last are counted one by one; the last is the verdict on the file.
struct Records<'a> {
    tally: &'a mut Tally,
    last: Option<Verdict>,
}

impl Records<'_> {
    fn compare(&mut self, line: &str, name: String, verdict: impl FnOnce(&mut Tally) -> Verdict) {
        if let Some(verdict) = self.last.take() {
            self.tally.book([verdict]);
        }
        self.tally.begin(line, name);
        self.last = Some(verdict(self.tally));
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn wilcoxon_case(case: &Value, name: &str, records: &mut Records<'_>) {
    let (first, second) = (numbers(&case["x"]), numbers(&case["y"]));
    for record in case["outputs"]["scipy"].as_array().unwrap() {
        let args = &record["args"];
        let settings = scipy_settings(args);
        let found = wilcoxon_signed_rank(&first, &second, &settings);
        let two_sided = settings.alternative == Alternative::TwoSided;
        let others = |test: &SignedRankTest, tally: &mut Tally| {
            let statistic = if two_sided { test.smaller_rank_sum() } else { test.positive_rank_sum };
            tally.at("statistic", statistic, record["statistic"].as_f64().unwrap(), CLOSE);
            match (record["zstatistic"].as_f64(), test.z) {
                (Some(expected), Some(z)) => tally.at("z", if two_sided { -z.abs() } else { z }, expected, CLOSE),
                (Some(_), None) => tally.mismatch("no z"),
                // scipy shows z only if the normal approximation was requested by name.
                (None, _) => {}
            }
        };
        records.compare("scipy.stats.wilcoxon", format!("{name} scipy {args}"), |tally| {
            signed_rank_record(&found, record["pvalue"].as_f64(), tally, others)
        });
    }
    for record in case["outputs"]["R"]["results"].as_array().unwrap() {
        let (corrected, exact) = (record["correct"].as_bool().unwrap(), record["exact"].as_bool());
        let method = match exact {
            Some(true) => SignedRankMethod::ExactUnlessTied { continuity_correction: corrected },
            Some(false) => SignedRankMethod::Normal { continuity_correction: corrected },
            None => SignedRankMethod::RDefault { continuity_correction: corrected },
        };
        let alternative = alternative(text(record, "alternative"));
        let settings = SignedRankSettings { alternative, zeros: ZeroDifferences::Drop, method };
        let found = wilcoxon_signed_rank(&first, &second, &settings);
        records.compare("R wilcox.test(paired = TRUE)", format!("{name} R {record}"), |tally| {
            signed_rank_record(&found, record["p"].as_f64(), tally, |test, tally| {
                tally.at("V", test.positive_rank_sum, record["V"].as_f64().unwrap(), CLOSE);
            })
        });
    }
}

fn signed_rank_record(
    found: &Result<SignedRankTest, MetricError>,
    p_value: Option<f64>,
    tally: &mut Tally,
    others: impl Fn(&SignedRankTest, &mut Tally),
) -> Verdict {
    match (found, p_value) {
        (Ok(test), Some(expected)) => {
            tally.at("p", test.p_value, expected, CLOSE);
            others(test, tally);
            Verdict::Compared
        }
        // Nothing but zeros, corrected for continuity on one side: the statistic is as far below as it can be.
        (Ok(test), None) if test.positive_rank_sum + test.negative_rank_sum <= 0.0 && test.p_value >= 1.0 => {
            Verdict::Refused("p 1 of differences that are all 0".to_owned())
        }
        (Ok(test), None) => {
            tally.mismatch(&format!("found p {}, expected none", test.p_value));
            Verdict::Compared
        }
        (Err(error), None) => Verdict::Refused(error.to_string()),
        (Err(error), Some(expected)) => {
            tally.mismatch(&format!("{error}, expected p {expected}"));
            Verdict::Compared
        }
    }
}

fn alternative(name: &str) -> Alternative {
    match name {
        "two-sided" | "two.sided" => Alternative::TwoSided,
        "greater" => Alternative::Greater,
        "less" => Alternative::Less,
        other => panic!("unknown alternative {other}"),
    }
}

fn scipy_settings(args: &Value) -> SignedRankSettings {
    let continuity_correction = args["correction"].as_bool().unwrap();
    SignedRankSettings {
        alternative: alternative(text(args, "alternative")),
        zeros: match text(args, "zero_method") {
            "wilcox" => ZeroDifferences::Drop,
            "pratt" => ZeroDifferences::Pratt,
            "zsplit" => ZeroDifferences::Split,
            other => panic!("unknown zero method {other}"),
        },
        method: match text(args, "method") {
            "auto" => SignedRankMethod::ScipyAuto { continuity_correction },
            "exact" => SignedRankMethod::UntiedTable,
            "asymptotic" => SignedRankMethod::Normal { continuity_correction },
            other => panic!("unknown method {other}"),
        },
    }
}

fn friedman_case(case: &Value, name: &str, records: &mut Records<'_>) {
    let table = RankTable::new(matrix(&case["X"]), Direction::LowerIsBetter).unwrap();
    let outputs = case["outputs"].as_object().unwrap();
    for (key, expected) in outputs {
        // The others are remarks.
        if expected.is_array() || expected.is_object() {
            let compare = |tally: &mut Tally| friedman_output(&table, key, expected, outputs, tally);
            records.compare(&format!("t_friedman_nemenyi {key}"), format!("{name} {key}"), compare);
        }
    }
}

fn friedman_output(
    table: &RankTable,
    key: &str,
    expected: &Value,
    outputs: &Map<String, Value>,
    tally: &mut Tally,
) -> Verdict {
    match key {
        "average_ranks" => {
            tally.all_close(key, &table.average_ranks(), &numbers(expected), CLOSE);
            Verdict::Compared
        }
        "friedman_scipy" => friedman_record(table, RankTies::Corrected, expected, "statistic", tally),
        "friedman_R" => friedman_record(table, RankTies::Corrected, expected, "chisq", tally),
        "friedman_no_tie_correction" => friedman_record(table, RankTies::Uncorrected, expected, "statistic", tally),
        "iman_davenport" => iman_davenport_record(table, expected, tally),
        "critical_difference" => critical_difference_record(table, expected, tally),
        _ if key.starts_with("cliques_") => clique_record(table, key, expected, outputs, tally),
        _ => pair_record(table, key, expected, tally),
    }
}

fn friedman_record(table: &RankTable, ties: RankTies, expected: &Value, statistic: &str, tally: &mut Tally) -> Verdict {
    let (found, p) = (friedman(table, ties), expected["p"].as_f64());
    let (Ok(test), Some(p)) = (&found, p) else { return refused(found.map(|test| test.p_value), p, tally) };
    let expected = expected[statistic].as_f64().unwrap();
    // The others subtract 3 N (k + 1) from a sum of that size.
    let subtracted = 3.0 * table.n_data_sets() as f64 * (table.n_models() as f64 + 1.0);
    let tolerance = CLOSE + ROUNDING * subtracted / expected.clamp(f64::MIN_POSITIVE, 1.0);
    tally.at("statistic", test.chi_square, expected, tolerance);
    tally.at("p", test.p_value, p, CLOSE + ROUNDING * subtracted);
    Verdict::Compared
}

fn iman_davenport_record(table: &RankTable, expected: &Value, tally: &mut Tally) -> Verdict {
    let (found, p) = (iman_davenport(table, RankTies::Uncorrected), expected["p"].as_f64());
    let (Ok(test), Some(p)) = (&found, p) else { return refused(found.map(|test| test.p_value), p, tally) };
    let expected_f = expected["F"].as_f64().unwrap();
    // The others divide by N (k - 1) - chi^2, which is small when data sets agree; F is about the ratio of the two, and a
    // relative error of F moves p by up to (k - 1) (N - 1) / 2 times as much.
    let tolerance = CLOSE + ROUNDING * (1.0 + expected_f);
    tally.at("F", test.f, expected_f, tolerance);
    let degrees = (expected["df1"].as_f64().unwrap(), expected["df2"].as_f64().unwrap());
    tally.at("df1", test.degrees.0 as f64, degrees.0, 0.0);
    tally.at("df2", test.degrees.1 as f64, degrees.1, 0.0);
    tally.at("p", test.p_value, p, CLOSE + ROUNDING * (1.0 + expected_f) * degrees.1 / 2.0);
    Verdict::Compared
}

/// The other package has no number, or we have none.
fn refused(found: Result<f64, MetricError>, expected: Option<f64>, tally: &mut Tally) -> Verdict {
    match (found, expected) {
        (Err(error), None) => Verdict::Refused(error.to_string()),
        (Ok(p), None) => Verdict::Skipped(format!("p {p} with nothing to compare it with")),
        (found, Some(expected)) => {
            tally.mismatch(&format!("{found:?}, expected p {expected}"));
            Verdict::Compared
        }
    }
}

fn critical_difference_record(table: &RankTable, expected: &Value, tally: &mut Tally) -> Verdict {
    for (alpha, values) in expected.as_object().unwrap() {
        for (package, quantile) in [("scipy", RangeQuantile::Exact), ("autorank", RangeQuantile::Gleason)] {
            let alpha: f64 = alpha.parse().unwrap();
            match critical_difference(table.n_models(), table.n_data_sets(), alpha, quantile) {
                Ok(found) => tally.at(package, found, values[package].as_f64().unwrap(), CLOSE),
                Err(error) => return Verdict::Skipped(error.to_string()),
            }
        }
    }
    Verdict::Compared
}

fn pair_record(table: &RankTable, key: &str, expected: &Value, tally: &mut Tally) -> Verdict {
    let scipy_auto = SignedRankMethod::ScipyAuto { continuity_correction: false };
    let auto = || pairwise_wilcoxon(table, ZeroDifferences::Drop, scipy_auto);
    let pratt = || pairwise_wilcoxon(table, ZeroDifferences::Pratt, SignedRankMethod::UntiedTable);
    let adjusted = |p: Result<Array2<f64>, _>, adjustment| adjust_pairwise(&p?, adjustment);
    let found = match key {
        "nemenyi_p" => Ok(nemenyi(table)),
        "wilcoxon_pairwise_exact_pratt" => pratt(),
        "holm_statsmodels_of_exact_pratt" => adjusted(pratt(), Adjustment::Holm),
        "holm_unclipped_as_critdd" => adjusted(pratt(), Adjustment::HolmUnclipped),
        "wilcoxon_pairwise_auto" => auto(),
        "holm_of_auto" => adjusted(auto(), Adjustment::Holm),
        _ => return Verdict::NotMine,
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return Verdict::Skipped(error.to_string()),
    };
    // scipy forms upper tails as 1 - sum, and Holm multiplies the rounding by up to the number of pairs.
    let n_pairs = (table.n_models() * (table.n_models() - 1) / 2) as f64;
    let factor = if key.starts_with("holm") { n_pairs } else { 1.0 };
    let mut at = |(i, j): (usize, usize), expected: &Value| {
        let expected = expected.as_f64().unwrap();
        let tolerance = CLOSE + ROUNDING * factor / expected.max(f64::MIN_POSITIVE);
        tally.at(&format!("pair {i}, {j}"), found[[i, j]], expected, tolerance);
    };
    let rows = expected.as_array().unwrap();
    let below = (0..table.n_models()).flat_map(|i| (0..i).map(move |j| (i, j)));
    for (place, (i, j)) in below.enumerate() {
        at((i, j), if rows[0].is_array() { &rows[i][j] } else { &rows[place] });
        if key == "nemenyi_p" {
            at((j, i), &rows[j][i]);
        }
    }
    Verdict::Compared
}

fn clique_record(
    table: &RankTable,
    key: &str,
    expected: &Value,
    outputs: &Map<String, Value>,
    tally: &mut Tally,
) -> Verdict {
    let Some((rule_name, level)) = key.rsplit_once('_') else { return Verdict::NotMine };
    // "005" is 0.05.
    let alpha = format!("0.{}", &level[1..]).parse().unwrap();
    let rule = match rule_name {
        "cliques_autorank_cd" => CliqueRule::RankInterval(RangeQuantile::Gleason),
        "cliques_scikit_posthocs_nemenyi" => CliqueRule::NemenyiCliques,
        "cliques_critdd_formula" => CliqueRule::WidenedWilcoxonHolm,
        _ => return Verdict::NotMine,
    };
    let expected: Vec<Vec<usize>> = expected.as_array().unwrap().iter().map(crate::records::rows).collect();
    let mut found = match cliques(table, alpha, rule) {
        Ok(found) => vec![found],
        Err(error) => return Verdict::Skipped(error.to_string()),
    };
    if rule == CliqueRule::NemenyiCliques {
        // The same from the recorded p values alone.
        found.push(p_value_cliques(table, &matrix(&outputs["nemenyi_p"]), alpha).unwrap());
    }
    let alone = expected.iter().any(|group| group.len() == 1);
    for found in found {
        tally.at("number of groups", sets(&found, alone).len() as f64, sets(&expected, alone).len() as f64, 0.0);
        if sets(&found, alone) != sets(&expected, alone) {
            tally.mismatch(&format!("found {found:?}, expected {expected:?}"));
        }
    }
    Verdict::Compared
}

/// Groups as sorted sets; those of one model only if the record lists such.
fn sets(groups: &[Vec<usize>], alone: bool) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = groups.iter().filter(|group| alone || group.len() > 1).cloned().collect();
    for set in &mut sets {
        set.sort_unstable();
    }
    sets.sort();
    sets
}

fn holm_case(case: &Value, name: &str, records: &mut Records<'_>) {
    let p = numbers(&case["p"]);
    let adjusted = |adjustment| adjust_p_values(&p, adjustment).unwrap();
    for (key, expected) in case.as_object().unwrap() {
        let (adjustment, expected) = match key.as_str() {
            "holm" => (Adjustment::Holm, numbers(expected)),
            "R_holm" => (Adjustment::Holm, numbers(&expected["p"])),
            "bonferroni" => (Adjustment::Bonferroni, numbers(expected)),
            "fdr_bh" => (Adjustment::BenjaminiHochberg, numbers(expected)),
            "reject_005" => {
                let one_if = |flag: bool| f64::from(u8::from(flag));
                let rejected: Vec<f64> = adjusted(Adjustment::Holm).iter().map(|&p| one_if(p <= 0.05)).collect();
                let flags = expected.as_array().unwrap().iter();
                let expected: Vec<f64> = flags.map(|flag| one_if(flag.as_bool().unwrap())).collect();
                records.compare("t_holm reject_005", name.to_owned(), |tally| {
                    tally.all_close(key, &rejected, &expected, 0.0);
                    Verdict::Compared
                });
                continue;
            }
            _ => continue,
        };
        records.compare(&format!("t_holm {key}"), name.to_owned(), |tally| {
            tally.all_close(key, &adjusted(adjustment), &expected, CLOSE);
            Verdict::Compared
        });
    }
}
