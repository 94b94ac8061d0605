//! Signed-rank tests of two methods.

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::{
    MAX_EXACT_DIFFERENCES, SignedRankMethod, SignedRankSettings, ZeroDifferences, wilcoxon_of_differences,
};

use super::arrange::Arranged;
use super::{PairTest, Question, TestsError};

/// Every method against the base, then all other pairs if they are requested, the later method minus the earlier one.
pub(super) fn pair_tests(
    arranged: &Arranged<'_>,
    base: usize,
    question: &Question,
) -> Result<Vec<PairTest>, TestsError> {
    let others: Vec<usize> = (0..arranged.methods.len()).filter(|method| *method != base).collect();
    let mut pairs: Vec<(usize, usize)> = others.iter().map(|other| (*other, base)).collect();
    if question.all_pairs {
        for (place, second) in others.iter().enumerate() {
            pairs.extend(others[place + 1..].iter().map(|first| (*first, *second)));
        }
    }
    pairs.into_iter().map(|pair| pair_test(arranged, pair, question)).collect()
}

fn pair_test(
    arranged: &Arranged<'_>,
    (first, second): (usize, usize),
    question: &Question,
) -> Result<PairTest, TestsError> {
    let (differences, n_unpaired) = arranged.differences(first, second);
    let count = |of: fn(f64) -> bool| differences.iter().filter(|difference| of(**difference)).count();
    let (n_higher, n_lower) = (count(|difference| difference > 0.0), count(|difference| difference < 0.0));
    let (n_better, n_worse) = match arranged.goal.direction() {
        Direction::HigherIsBetter => (n_higher, n_lower),
        Direction::LowerIsBetter => (n_lower, n_higher),
    };
    let exact = n_higher + n_lower <= MAX_EXACT_DIFFERENCES;
    let method =
        if exact { SignedRankMethod::Exact } else { SignedRankMethod::Normal { continuity_correction: false } };
    let settings = SignedRankSettings { alternative: question.alternative, zeros: ZeroDifferences::Drop, method };
    let has_pairs = !differences.is_empty();
    Ok(PairTest {
        first: arranged.methods[first].to_owned(),
        second: arranged.methods[second].to_owned(),
        n_pairs: differences.len(),
        n_unpaired,
        n_better,
        n_worse,
        n_zero: differences.len() - n_higher - n_lower,
        test: has_pairs.then(|| wilcoxon_of_differences(&differences, &settings)).transpose()?,
        median_difference: median(differences),
        p_holm: None,
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| f64::midpoint(values[(n - 1) / 2], values[n / 2]))
}
