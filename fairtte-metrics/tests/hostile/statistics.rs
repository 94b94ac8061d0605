//! Comparisons of models over data sets.

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::{
    Adjustment, Alternative, CliqueRule, RangeQuantile, RankTable, RankTies, SignedRankMethod, SignedRankSettings,
    ZeroDifferences, adjust_p_values, adjust_pairwise, cliques, critical_difference, friedman, iman_davenport, nemenyi,
    p_value_cliques, pairwise_wilcoxon, wilcoxon_of_differences, wilcoxon_signed_rank,
};

use super::check::{assert_within, check, check_within};
use super::input::Input;

const ADJUSTMENTS: [Adjustment; 4] =
    [Adjustment::Holm, Adjustment::HolmUnclipped, Adjustment::Bonferroni, Adjustment::BenjaminiHochberg];
const ALPHAS: [f64; 9] = [0.05, 0.01, 0.1, 0.999, 1.0 - f64::EPSILON, 1e-100, 0.0, 1.0, f64::NAN];

pub fn try_all(input: &mut Input<'_>) {
    input.may_be_wild();
    signed_ranks(input);
    tables(input);
    let p_values: Vec<f64> = (0..input.below(9)).map(|_| input.share()).collect();
    for adjustment in ADJUSTMENTS {
        let adjusted = check("adjust_p_values", || adjust_p_values(&p_values, adjustment));
        if adjustment != Adjustment::HolmUnclipped {
            for p in adjusted.into_iter().flatten() {
                assert_within("adjusted p value", p, 0.0, 1.0);
            }
        }
    }
    // The range of many variables is slow to compute.
    if input.below(16) == 0 {
        let (models, sets, alpha) = (input.pick(&[2, 3, 40, 1, 0, usize::MAX]), input.count(), input.pick(&ALPHAS));
        for quantile in [RangeQuantile::Exact, RangeQuantile::Gleason] {
            check_within("critical_difference", 0.0, f64::MAX, || critical_difference(models, sets, alpha, quantile));
        }
    }
}

fn signed_ranks(input: &mut Input<'_>) {
    let n = input.n();
    let (first, m) = (input.numbers(n), input.length(n));
    let second = input.numbers(m);
    for zeros in [ZeroDifferences::Drop, ZeroDifferences::Pratt, ZeroDifferences::Split] {
        let methods = [
            SignedRankMethod::Exact,
            SignedRankMethod::UntiedTable,
            SignedRankMethod::Normal { continuity_correction: true },
            SignedRankMethod::Normal { continuity_correction: false },
        ];
        let alternative = input.pick(&[Alternative::TwoSided, Alternative::Greater, Alternative::Less]);
        for method in methods {
            let settings = SignedRankSettings { alternative, zeros, method };
            let paired = check("wilcoxon_signed_rank", || wilcoxon_signed_rank(&first, &second, &settings));
            let single = check("wilcoxon_of_differences", || wilcoxon_of_differences(&first, &settings));
            for test in paired.into_iter().chain(single) {
                assert_within("p value of the signed-rank test", test.p_value, 0.0, 1.0);
                check("smaller_rank_sum", || test.smaller_rank_sum());
            }
        }
    }
}

fn tables(input: &mut Input<'_>) {
    let (sets, models) = (input.below(7), input.below(6));
    let values = input.matrix(sets, models);
    let direction = input.pick(&[Direction::HigherIsBetter, Direction::LowerIsBetter]);
    let Ok(table) = check("RankTable", || RankTable::new(values.clone(), direction)) else { return };
    check("ranks", || (table.average_ranks(), table.by_rank()));
    for ties in [RankTies::Corrected, RankTies::Uncorrected] {
        if let Ok(test) = check("friedman", || friedman(&table, ties)) {
            assert_within("p value of Friedman's test", test.p_value, 0.0, 1.0);
        }
        if let Ok(test) = check("iman_davenport", || iman_davenport(&table, ties)) {
            assert_within("p value of Iman and Davenport", test.p_value, 0.0, 1.0);
        }
    }
    let alpha = input.pick(&ALPHAS);
    let zeros = input.pick(&[ZeroDifferences::Drop, ZeroDifferences::Pratt, ZeroDifferences::Split]);
    let pairwise = check("pairwise_wilcoxon", || pairwise_wilcoxon(&table, zeros, SignedRankMethod::Exact));
    if let Ok(p_values) = pairwise {
        for adjustment in ADJUSTMENTS {
            let _ = check("adjust_pairwise", || adjust_pairwise(&p_values, adjustment));
        }
    }
    let other = input.matrix(models, input_square(models));
    let _ = check("p_value_cliques", || p_value_cliques(&table, &other, alpha));
    let _ = check("adjust_pairwise", || adjust_pairwise(&other, Adjustment::Holm));
    let _ = check("cliques", || cliques(&table, alpha, CliqueRule::WidenedWilcoxonHolm));
    if input.below(16) == 0 {
        let p_values = check("nemenyi", || nemenyi(&table));
        assert!(p_values.iter().all(|p| (0.0..=1.0).contains(p)), "p values of Nemenyi's test");
        for rule in [CliqueRule::NemenyiCliques, CliqueRule::RankInterval(RangeQuantile::Exact)] {
            let _ = check("cliques", || cliques(&table, alpha, rule));
        }
    }
}

/// Five models come with a matrix of another shape.
fn input_square(models: usize) -> usize {
    if models == 5 { 4 } else { models }
}
