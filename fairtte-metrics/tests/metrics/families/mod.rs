//! One file per family of metrics: each claims the records of the conventions it offers and compares them.

mod auc;
mod bias;
mod brier;
mod calibration;
mod definitions;
mod estimators;
mod groups;
mod rank;
mod scores;
mod statistics;

use fairtte_metrics::Outcomes;
use serde_json::Value;

use crate::records::{Case, Record, Subset};
use crate::tally::{Tally, Verdict};

/// One record of another package about one subset whose outcomes this crate accepts.
pub struct Item<'a> {
    pub case: &'a Case,
    pub subset: &'a Subset,
    pub outcomes: &'a Outcomes,
    pub record: &'a Record<'a>,
}

/// Ours is a number where the other package gives none, and there is no second definition to compare with: listed, and
/// not counted.
fn unchecked(item: &Item<'_>) -> Verdict {
    let (case, subset) = (&item.case.name, &item.subset.name);
    Verdict::Skipped(format!("{case} {subset}: no usable value there, and nothing else to compare ours with"))
}

/// Compares a record in every family.
pub fn compare(item: &Item<'_>, tally: &mut Tally) {
    type Family = fn(&Item<'_>, &mut Tally) -> Verdict;
    const FAMILIES: &[Family] =
        &[calibration::compare, brier::compare, scores::compare, auc::compare, estimators::compare, rank::compare];
    let verdicts: Vec<Verdict> = FAMILIES.iter().map(|family| family(item, tally)).collect();
    tally.book(verdicts);
}

/// Compares the gaps that were derived from a case's records.
pub fn compare_derived(case: &Case, tally: &mut Tally) {
    let verdicts = groups::compare_derived(case, tally);
    tally.book(verdicts);
}

/// Compares a file of tests, distances or intervals, named like `t_wilcoxon`, in every family.
pub fn compare_table(name: &str, file: &Value, tally: &mut Tally) {
    type Family = fn(&str, &Value, &mut Tally) -> Verdict;
    const FAMILIES: &[Family] = &[bias::compare_table, groups::compare_table, statistics::compare_table];
    let verdicts: Vec<Verdict> = FAMILIES.iter().map(|family| family(name, file, tally)).collect();
    tally.book(verdicts);
}
