//! The models of a trial with folds: what a rule kept in every fold, with means over the folds.
//!
//! The gap is that of the groups' means and not the mean of the folds' gaps: a gap is a largest difference, so that noise makes
//! it larger, and a fold has more noise than all of them.

use std::collections::BTreeSet;

use fairtte_metrics::Direction;
use fairtte_metrics::fairness::{Comparison, EquityScaling};

use super::super::measures::{Measures, N_MEASURES};
use super::super::scores::Scores;
use super::{Point, Values, point, serves};

/// A model per rule that serves `attribute`; rules that kept the same epochs are one model.
pub(super) fn points(measures: Measures, folds: &[Scores], attribute: &str) -> Vec<Point> {
    let rules: BTreeSet<&String> = folds[0].kept.iter().flat_map(|kept| &kept.rules).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for rule in rules.into_iter().filter(|rule| serves(rule, attribute)) {
        let of_fold = |fold: &'_ Scores| fold.kept.iter().position(|kept| kept.rules.contains(rule));
        let Some(places) = folds.iter().map(of_fold).collect::<Option<Vec<usize>>>() else { continue };
        if seen.insert(places.clone()) {
            let of_fold = |(fold, place): (&Scores, usize)| point(measures, &fold.kept[place], attribute, rule);
            let of_folds: Vec<Point> = folds.iter().zip(places).map(of_fold).collect();
            found.push(mean_point(measures, &of_folds));
        }
    }
    found
}

fn mean_point(measures: Measures, folds: &[Point]) -> Point {
    let mean = |of: fn(&Point) -> &[Values; N_MEASURES]| {
        std::array::from_fn(|metric| {
            mean_values(measures.direction(metric), &folds.iter().map(|fold| &of(fold)[metric]).collect::<Vec<_>>())
        })
    };
    let weighted = folds.iter().map(|fold| &fold.weighted).collect::<Vec<_>>();
    Point {
        epoch: folds[0].epoch,
        rule: folds[0].rule.clone(),
        validation: mean(|point| &point.validation),
        test: mean(|point| &point.test),
        weighted: mean_values(Direction::HigherIsBetter, &weighted),
    }
}

/// Means over the folds; a value that is undefined in a fold stays undefined.
fn mean_values(direction: Direction, folds: &[&Values]) -> Values {
    let n = folds.len() as f64;
    let mean = |values: Vec<Option<f64>>| {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / n)
    };
    let overall = mean(folds.iter().map(|fold| fold.overall).collect());
    let n_groups = folds.iter().map(|fold| fold.groups.len()).min().unwrap_or_default();
    let groups: Vec<Option<f64>> =
        (0..n_groups).map(|group| mean(folds.iter().map(|fold| fold.groups[group]).collect())).collect();
    let defined: Vec<f64> = groups.iter().flatten().copied().collect();
    let compared = |comparison: Comparison, overall: f64| {
        let is_enough = defined.len() >= comparison.n_needed();
        is_enough.then(|| comparison.of(&defined, overall, direction)).flatten()
    };
    let spread = |overall: f64| {
        let squares = folds.iter().filter_map(|fold| fold.overall).map(|value| (value - overall).powi(2)).sum::<f64>();
        (squares / (n - 1.0) / n).sqrt()
    };
    Values {
        overall,
        gap: compared(Comparison::Gap, 0.0),
        equity_scaling: overall
            .and_then(|overall| compared(Comparison::EquityScaling(EquityScaling::FairTte), overall)),
        groups,
        standard_error: overall.map(spread),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::super::super::scores::{AttributeScores, GroupScores, KeptScores, MetricScores, Number, PartScores};
    use super::*;

    fn number(value: f64) -> Number {
        Number { value: value.is_finite().then_some(value), undefined: None }
    }

    /// What a fold kept: an epoch by its rules, with C^td of all, of women and of men; validation is 0.1 higher.
    fn kept(epoch: usize, rules: &[&str], [all, f, m]: [f64; 3]) -> KeptScores {
        let group =
            |level: &str, value: f64| GroupScores { level: level.to_owned(), n: 9, n_events: 3, value: number(value) };
        let part = |part: &str, more: f64| {
            let of = AttributeScores {
                attribute: "sex".to_owned(),
                gap: number((f - m).abs()),
                worst: number(f.min(m)),
                equity_scaling: number(f64::NAN),
                groups: vec![group("F", f + more), group("M", m + more)],
            };
            let (metric, overall) = ("c-td".to_owned(), number(all + more));
            let metric = MetricScores { metric, overall, counts: None, attributes: vec![of] };
            PartScores { part: part.to_owned(), n: 18, n_events: 6, metrics: vec![metric] }
        };
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        KeptScores { epoch, weights: String::new(), rules, parts: vec![part("validation", 0.1), part("test", 0.0)] }
    }

    fn scores(kept: Vec<KeptScores>) -> Scores {
        Scores { fairtte: String::new(), reads_groups: false, n_epochs: 9, warnings: Vec::new(), kept }
    }

    #[test]
    fn a_rule_is_a_model_and_its_values_are_means_over_the_folds() {
        let folds = [
            scores(vec![kept(3, &["nll", "gap-c-td@sex"], [0.6, 0.5, 0.7]), kept(7, &["c-td"], [0.62, 0.6, 0.6])]),
            scores(vec![
                kept(5, &["nll", "gap-c-td@sex"], [0.7, 0.8, 0.6]),
                kept(2, &["c-td", "gap-c-td@age"], [0.66, 0.6, 0.65]),
            ]),
        ];
        let found = points(Measures::Curves, &folds, "sex");
        assert_eq!(found.len(), 2, "nll and gap-c-td@sex kept the same epochs; gap-c-td@age is of another attribute");
        let [by_c_td, by_gap] = &found[..] else { panic!("{found:?}") };
        assert_eq!((by_c_td.epoch, by_gap.epoch), (7, 3));
        assert_eq!((by_c_td.rule.as_str(), by_gap.rule.as_str()), ("c-td", "gap-c-td@sex"));
        let test = &by_gap.test[0];
        let close = |value: Option<f64>, expected: f64| assert!((value.unwrap() - expected).abs() < 1e-12, "{value:?}");
        close(test.overall, 0.65);
        close(test.standard_error, 0.05);
        assert_eq!(test.groups.len(), 2);
        close(test.groups[0], 0.65);
        close(test.gap, 0.0);
        // 0.64 / (1 + 0.04 + 0.015) by hand.
        close(by_c_td.test[0].equity_scaling, 0.64 / 1.055);
        close(by_gap.validation[0].overall, 0.75);
        assert_eq!(by_gap.test[1], Values { standard_error: None, ..Values::default() }, "AUC^td is in no fold");
    }

    #[test]
    fn what_a_fold_lacks_is_undefined() {
        let folds = [
            scores(vec![kept(3, &["nll"], [0.6, f64::NAN, 0.7])]),
            scores(vec![kept(5, &["nll"], [0.7, 0.8, 0.6]), kept(6, &["ibs"], [0.7, 0.8, 0.6])]),
        ];
        let found = points(Measures::Curves, &folds, "sex");
        assert_eq!(found.len(), 1, "no fold but the second kept an epoch by the IBS");
        let test = &found[0].test[0];
        assert_eq!((test.groups[0], test.gap), (None, None), "one group with a value has no gap");
        assert!(test.groups[1].is_some() && test.overall.is_some());
    }
}
