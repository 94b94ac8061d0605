//! A class that is made from times: the AUC of all samples with weights for censoring, beside the one that chooses.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::HorizonReport;

use super::candidates::Candidates;
use super::table::{number, with_sign};
use super::verdict::{Block, Horizon, Weighted};
use crate::CliError;
use crate::plural::counted;

/// Titles of the columns: the AUC, its difference from that of the class, and its gap.
pub(super) const TITLES: [&str; 3] = ["with weights", "AUC - with weights", "gap with weights"];

/// Both AUCs of these candidates in the test part; nothing unless the class is made from times.
pub(super) fn of_chosen(
    candidates: &Candidates,
    chosen: &BTreeSet<usize>,
    settings: &EvaluationSettings,
) -> Result<BTreeMap<usize, HorizonReport>, CliError> {
    let mut found = BTreeMap::new();
    for k in chosen {
        if let Some(report) = candidates.test_at_horizon(&candidates.all[*k], settings)? {
            found.insert(*k, report);
        }
    }
    Ok(found)
}

impl Horizon {
    pub(super) fn of(report: &HorizonReport) -> Option<Self> {
        let all = report.left_out.first()?;
        Some(Self { time: report.horizon, n: all.n, n_left_out: all.n_left_out })
    }
}

impl Weighted {
    pub(super) fn of(report: &HorizonReport, attribute: &str) -> Self {
        let metric = &report.weighted;
        let of_groups = metric.attributes.iter().find(|of| of.attribute == attribute);
        let difference = report.differences.first();
        Self {
            value: metric.overall.value,
            gap: of_groups.and_then(|of| of.gap.value),
            naive_minus_this: difference.and_then(|difference| difference.value),
            lower: difference.and_then(|difference| difference.lower),
            upper: difference.and_then(|difference| difference.upper),
            undefined: metric.overall.undefined.clone(),
        }
    }
}

impl Block {
    /// Whether a row has an AUC with weights.
    pub(super) fn has_weights(&self) -> bool {
        self.rows.iter().any(|row| row.chosen.as_ref().is_some_and(|chosen| chosen.weighted.is_some()))
    }
}

/// Which AUC chooses, and what the other one is.
pub(super) fn sentence(horizon: &Horizon) -> String {
    let Horizon { time, n, n_left_out } = *horizon;
    format!(
        "AUC: of the samples with a class, as in the validation part where models are chosen by it; changes, gaps and ranks are of this \
         AUC. {n_left_out} of {} of the test part are censored by the horizon {time} and left out of it. with weights: cumulative/dynamic AUC at the \
         horizon of all samples of the test part, with weights for censoring; models are not chosen, compared or ranked by it. AUC - with \
         weights: the effect of leaving samples out, with its interval.",
        counted(n, "sample")
    )
}

/// The AUC with weights, and how far the one of the class is above it.
pub(super) fn cells(weighted: Option<&Weighted>) -> [String; 2] {
    let Some(weighted) = weighted else { return ["-".to_owned(), "-".to_owned()] };
    let ends = weighted.lower.zip(weighted.upper);
    let ends = ends.map(|(lower, upper)| format!(" [{}, {}]", with_sign(lower, 3), with_sign(upper, 3)));
    let difference = weighted.naive_minus_this;
    let difference = difference.map_or_else(|| "undefined".to_owned(), |value| with_sign(value, 3));
    [number(weighted.value), difference + &ends.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_which_auc_chooses_and_who_is_left_out_of_it() {
        let text = sentence(&Horizon { time: 1095.0, n: 2198, n_left_out: 916 });
        assert!(
            text.starts_with(
                "AUC: of the samples with a class, as in the validation part where models are chosen by it;"
            ),
            "{text}"
        );
        assert!(text.contains("916 of 2198 samples of the test part are censored by the horizon 1095 and"), "{text}");
    }

    #[test]
    fn a_cell_has_the_interval_of_the_difference_where_there_is_one() {
        let weighted = Weighted {
            value: Some(0.8274),
            naive_minus_this: Some(0.0096),
            lower: Some(0.0061),
            upper: Some(0.0131),
            ..Weighted::default()
        };
        assert_eq!(cells(Some(&weighted)), ["0.827", "+0.010 [+0.006, +0.013]"]);
        let without = Weighted { lower: None, ..weighted };
        assert_eq!(cells(Some(&without)), ["0.827", "+0.010"]);
        assert_eq!(cells(Some(&Weighted::default())), ["undefined", "undefined"]);
        assert_eq!(cells(None), ["-", "-"]);
    }
}
