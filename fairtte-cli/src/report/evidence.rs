//! What the two tests of a gap say together.
//!
//! Whether the groups of an attribute differ is tested twice: by exchanged labels (`gap_by_chance`: how often relabelled groups
//! have a gap as large) and by the bootstrap (the interval of the gap, which contains 0 or not). The constructions differ, so
//! near the error level, and most of all with few events, one can reject equal groups and the other not. Then neither is the
//! answer, and every sentence about the gap says so. Without exchanged labels the smallest p value of two groups, adjusted
//! for the pairs, takes their place; without intervals exchanged labels answer alone.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeReport, GroupDifference, MetricReport};

use super::format::p_relation;
use super::words::{FEW_EVENTS, carried_by};

/// Whether the groups of one attribute differ in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Both tests say so, the p value also after adjustment for the attributes.
    Differ,
    /// Both tests say so of this attribute alone, the p value no longer after adjustment for all attributes.
    OnlyUnadjusted,
    /// Neither test says so.
    NotShown,
    /// The tests disagree, so nothing can be said.
    Disagree,
}

/// The p value of a gap with what follows from it and from the interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    pub(super) finding: Finding,
    /// Of this attribute alone.
    pub(super) p: f64,
    /// Adjusted for the attributes of the metric by Holm's method.
    pub(super) p_adjusted: f64,
    /// Events (or what else carries a value) of the compared group with the fewest.
    fewest: usize,
}

impl Evidence {
    /// That on an attribute of `metric`; `None` if no p value belongs to the gap.
    pub(super) fn of(attribute: &AttributeReport, metric: &MetricReport, report: &EvaluationReport) -> Option<Self> {
        attribute.gap.value?;
        let rejects = |p: f64| is_small(p, 1.0 - report.settings.level);
        let (p, p_adjusted) = if let Some(by_chance) = &attribute.gap_by_chance {
            (by_chance.p_value, by_chance.p_holm.unwrap_or(by_chance.p_value))
        } else {
            let p = attribute.differences.iter().filter_map(p_of_pair).min_by(f64::total_cmp)?;
            (p, (p * metric.attributes.len() as f64).min(1.0))
        };
        let excludes_0 = attribute.gap.lower.map_or(rejects(p), |lower| lower > 0.0);
        let finding = match (rejects(p), excludes_0) {
            (true, true) if rejects(p_adjusted) => Finding::Differ,
            (true, true) => Finding::OnlyUnadjusted,
            (false, false) => Finding::NotShown,
            (true, false) | (false, true) => Finding::Disagree,
        };
        let compared = attribute.groups.iter().filter(|group| !attribute.few_events.contains(&group.level));
        let (n_of, _) = carried_by(report);
        let defined = compared.filter(|group| group.estimate.value.is_some());
        let fewest = defined.map(|group| n_of(&group.estimate)).min().unwrap_or(0);
        Some(Self { finding, p, p_adjusted, fewest })
    }

    /// The p value that is shown beside the finding: the adjusted one, of a disagreement that which disagrees.
    pub(super) fn p_shown(&self) -> f64 {
        if self.finding == Finding::Disagree { self.p } else { self.p_adjusted }
    }

    /// What follows from both tests, in a sentence to be read after the one on the interval.
    pub(super) fn conclusion(&self, attribute: &AttributeReport, report: &EvaluationReport) -> String {
        match self.finding {
            Finding::Differ => "Equal groups would rarely give that.".to_owned(),
            Finding::OnlyUnadjusted => format!(
                "Equal groups would rarely give that by one attribute, but several were tested: adjusted for their number, p {}.",
                p_relation(self.p_adjusted)
            ),
            Finding::NotShown => "These data do not show a difference.".to_owned(),
            Finding::Disagree => self.disagreement(attribute, report),
        }
    }

    fn disagreement(&self, attribute: &AttributeReport, report: &EvaluationReport) -> String {
        let (p, excludes_0) = (p_relation(self.p), attribute.gap.lower.is_some_and(|lower| lower > 0.0));
        let other = match (&attribute.gap_by_chance, excludes_0) {
            (Some(_), true) => format!("Groups whose labels are exchanged often have a gap as large (p {p})"),
            (Some(_), false) => format!("Groups whose labels are exchanged rarely have a gap as large (p {p})"),
            (None, true) => format!("No two groups differ by themselves (smallest p {p}, adjusted for the pairs)"),
            (None, false) => format!("Two groups differ by themselves (p {p}, adjusted for the pairs)"),
        };
        let few = if self.fewest < FEW_EVENTS {
            format!(", as can happen with few {1} ({0} in the smallest group)", self.fewest, carried_by(report).1)
        } else {
            String::new()
        };
        format!("{other}: the two tests disagree{few}, so nothing can be said about a difference.")
    }
}

/// Whether a p value rejects at the error level: at most that level, so that every sentence of a page follows one rule. A level such as
/// 0.9 has no exact error level: 1 - 0.9 is a little below 0.1.
pub(super) fn is_small(p: f64, error: f64) -> bool {
    p <= error + 1e-9
}

/// Adjusted for the pairs of the attribute.
pub(super) fn p_of_pair(pair: &GroupDifference) -> Option<f64> {
    pair.difference.p_holm.or(pair.difference.p_value)
}
