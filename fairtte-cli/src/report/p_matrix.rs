//! The p values of all pairs of groups of one attribute as a square table: raw below the diagonal, adjusted above it.

use fairtte_metrics::evaluation::{AttributeReport, Difference, GroupDifference, MetricReport};
use serde::Serialize;

use super::format::p_value;

/// Fewer groups than this have so few pairs that a list is easier to read.
const FEWEST_GROUPS: usize = 4;
/// A p value below one of these is shaded, the darker the smaller it is.
const SHADES: [(f64, &str); 4] = [(0.001, "p4"), (0.01, "p3"), (0.05, "p2"), (0.1, "p1")];

/// The table of one attribute.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PMatrix {
    pub(super) attribute: String,
    pub(super) caption: String,
    /// Names of the columns, the groups in their order.
    pub(super) groups: Vec<String>,
    /// The same groups as rows.
    pub(super) rows: Vec<MatrixRow>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct MatrixRow {
    pub(super) name: String,
    pub(super) cells: Vec<MatrixCell>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct MatrixCell {
    /// The p value, a dash on the diagonal, or `none`.
    pub(super) text: String,
    /// Class of the shading, `self` on the diagonal; may be empty.
    pub(super) shade: &'static str,
}

/// What the tables show, for their captions.
pub(super) const ABOUT: &str = "below the diagonal raw, above it adjusted by Holm's method for all pairs";

/// One table per attribute with p values between four groups or more.
pub(super) fn p_matrices(metric: &MetricReport) -> Vec<PMatrix> {
    metric.attributes.iter().filter_map(|attribute| p_matrix(metric, attribute)).collect()
}

/// The table of an attribute; `None` where a list of its pairs is enough.
pub(super) fn p_matrix(metric: &MetricReport, attribute: &AttributeReport) -> Option<PMatrix> {
    let tested: Vec<&GroupDifference> =
        attribute.differences.iter().filter(|pair| pair.difference.p_value.is_some()).collect();
    let groups: Vec<&str> = attribute.groups.iter().map(|group| group.level.as_str()).collect();
    let groups: Vec<&str> = groups
        .into_iter()
        .filter(|group| tested.iter().any(|pair| pair.first == *group || pair.second == *group))
        .collect();
    if groups.len() < FEWEST_GROUPS {
        return None;
    }
    let cell = |row: usize, column: usize| {
        if row == column {
            return MatrixCell { text: "–".to_owned(), shade: "self" };
        }
        let p = between(&tested, groups[row], groups[column]);
        MatrixCell::new(p.and_then(|of| if row > column { of.p_value } else { of.p_holm.or(of.p_value) }))
    };
    let row = |k: usize| MatrixRow {
        name: groups[k].to_owned(),
        cells: (0..groups.len()).map(|column| cell(k, column)).collect(),
    };
    Some(PMatrix {
        attribute: attribute.attribute.clone(),
        caption: format!("{}: p values of all pairs by {}", metric.label, attribute.attribute),
        rows: (0..groups.len()).map(row).collect(),
        groups: groups.into_iter().map(str::to_owned).collect(),
    })
}

/// The difference of two groups, in whichever order it was taken.
fn between<'a>(pairs: &[&'a GroupDifference], one: &str, other: &str) -> Option<&'a Difference> {
    let is = |pair: &&&GroupDifference| {
        (pair.first == one && pair.second == other) || (pair.first == other && pair.second == one)
    };
    pairs.iter().find(is).map(|pair| &pair.difference)
}

/// The class of the shading of a p value; may be empty.
pub(super) fn shade(p: f64) -> &'static str {
    SHADES.into_iter().find(|(limit, _)| p < *limit).map_or("", |(_, class)| class)
}

impl MatrixCell {
    fn new(p: Option<f64>) -> Self {
        Self { text: p.map_or_else(|| "none".to_owned(), p_value), shade: p.map_or("", shade) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_reports::{difference, report};
    use super::*;

    /// An attribute with the groups `a` to `d` and the pairs of the first three with each other and of `a` with `d`.
    fn metric() -> MetricReport {
        let mut metric = report().metrics.remove(0);
        let attribute = &mut metric.attributes[0];
        let group = attribute.groups[0].clone();
        attribute.groups = ["a", "b", "c", "d"]
            .map(|level| fairtte_metrics::evaluation::GroupReport { level: level.to_owned(), ..group.clone() })
            .to_vec();
        let pair = |(first, second, p, holm): (&str, &str, f64, f64)| {
            let mut pair = difference(first, second, 0.1);
            (pair.difference.p_value, pair.difference.p_holm) = (Some(p), Some(holm));
            pair
        };
        let pairs =
            [("a", "b", 0.02, 0.08), ("c", "a", 0.0002, 0.0008), ("b", "c", 0.5, 1.0), ("a", "d", 0.007, 0.021)];
        attribute.differences = pairs.map(pair).to_vec();
        metric
    }

    #[test]
    fn raw_values_stand_below_the_diagonal_and_adjusted_ones_above() {
        let metric = metric();
        let matrix = p_matrix(&metric, &metric.attributes[0]).expect("four groups");
        assert_eq!(matrix.groups, ["a", "b", "c", "d"]);
        let texts = |k: usize| matrix.rows[k].cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>();
        assert_eq!(texts(0), ["–", "0.080", "0.001", "0.021"]);
        assert_eq!(texts(1), ["0.020", "–", "1.000", "none"]);
        assert_eq!(texts(2), ["< 0.001", "0.500", "–", "none"]);
        let shades = |k: usize| matrix.rows[k].cells.iter().map(|cell| cell.shade).collect::<Vec<_>>();
        assert_eq!(shades(0), ["self", "p1", "p4", "p2"]);
        assert_eq!(shades(3), ["p3", "", "", "self"]);
    }

    #[test]
    fn three_groups_have_a_list_and_no_table() {
        let mut metric = metric();
        metric.attributes[0].differences.pop();
        assert_eq!(p_matrices(&metric), []);
    }
}
