//! What the page of an external validation has of a class: the threshold, probabilities against shares, criteria of fairness, and
//! who was left out at a horizon.

use fairtte_metrics::evaluation::{CalibrationCurve, ClassGroups, ClassReport, ClassSummary, HorizonReport};
use fairtte_metrics::{EvaluationReport, MetricError};

use super::super::classes::{ClassTable, criteria_of_reports, horizon_table};
use super::super::format::number;
use super::super::models::signed;
use super::super::rows;
use super::super::verdict::percent_of;
use super::ExternalPage;
use super::page::{RiskLine, RiskSide};
use super::verdict::clear_difference;

/// What only a class has, internal first.
pub(crate) struct ExternalClass<'a> {
    /// Where the threshold comes from, in a sentence.
    pub(crate) threshold: &'a str,
    pub(crate) reports: [&'a ClassReport; 2],
    pub(crate) groups: [&'a ClassGroups; 2],
    /// Where the class is made from times.
    pub(crate) horizon: Option<[&'a HorizonReport; 2]>,
}

const COHORTS: [&str; 2] = ["internal", "external"];

impl ExternalClass<'_> {
    /// Who was left out in each cohort, then the criteria of both.
    pub(in super::super) fn tables(&self, time_unit: &str) -> Vec<ClassTable> {
        let mut tables = Vec::new();
        for (name, found) in COHORTS.into_iter().zip(self.horizon.into_iter().flatten()) {
            let table = horizon_table(found, time_unit);
            let stem = if name == COHORTS[0] { "horizon-internal" } else { "horizon-external" };
            tables.push(ClassTable { name: stem, caption: format!("{name}: {}", table.caption), ..table });
        }
        let named = COHORTS.into_iter().zip(self.reports).collect::<Vec<_>>();
        tables.extend(criteria_of_reports(&named, self.shared_attributes()));
        tables
    }

    /// The attributes with criteria in both cohorts.
    fn shared_attributes(&self) -> impl Fn(&str) -> bool {
        let [_, external] = self.reports;
        let names: Vec<String> = external.parity.iter().map(|parity| parity.attribute.clone()).collect();
        move |attribute| names.iter().any(|name| name == attribute)
    }

    /// What leaving out the censored does to the AUC in each cohort.
    pub(super) fn left_out(&self, time_unit: &str) -> Vec<String> {
        let sentence = |(name, found): (&str, &HorizonReport)| {
            let all = found.left_out.first()?;
            let by = rows::with_unit(found.horizon, time_unit);
            let mut text = format!(
                "{name}: {} of {} samples are censored by {by}, have no class and are left out",
                all.n_left_out, all.n
            );
            let between = found.differences.first().and_then(|between| between.value);
            if let (Some(naive), Some(weighted), Some(between)) =
                (found.naive.overall.value, found.weighted.overall.value, between)
            {
                let (naive, weighted, between) = (number(naive), number(weighted), signed(between));
                text = format!("{text}; AUC of the class {naive}, with weights for censoring {weighted} ({between})");
            }
            Some(format!("{text}."))
        };
        COHORTS.into_iter().zip(self.horizon.into_iter().flatten()).filter_map(sentence).collect()
    }

    /// All samples, then the groups of either cohort: shares of positive samples and mean probabilities.
    pub(super) fn shares(&self, reports: [&EvaluationReport; 2]) -> Vec<RiskLine> {
        let [internal, external] = self.groups.map(|groups| groups.summary.as_slice());
        let is_shared = |attribute: &Option<String>| external.iter().any(|other| other.attribute == *attribute);
        let own: Vec<&ClassSummary> = internal.iter().filter(|of| is_shared(&of.attribute)).collect();
        let mut lines = Vec::new();
        for groups in own.chunk_by(|a, b| a.attribute == b.attribute) {
            let attribute = &groups[0].attribute;
            if let Some(name) = attribute {
                lines.push(RiskLine { kind: "attribute", name: name.clone(), sides: Default::default() });
            }
            let of_other = external.iter().filter(|other| other.attribute == *attribute);
            let more = of_other.filter(|other| groups.iter().all(|own| own.level != other.level));
            let levels = groups.iter().copied().chain(more).map(|group| &group.level);
            lines.extend(levels.map(|level| RiskLine {
                kind: if attribute.is_some() { "group" } else { "all" },
                name: level.clone().unwrap_or_else(|| "all".to_owned()),
                sides: [0, 1].map(|side| {
                    let is_it = |a: &Option<String>, l: &Option<String>| a == attribute && l == level;
                    let found = self.groups[side].summary.iter().find(|of| is_it(&of.attribute, &of.level));
                    let curve = reports[side].calibration.iter().find(|of| is_it(&of.attribute, &of.level));
                    found.map_or_else(RiskSide::absent, |found| side_of(found, curve))
                }),
            }));
        }
        lines
    }

    /// Whether the mean probability is the share of positive samples in the external data, and in the internal ones.
    pub(super) fn calibration(&self, page: &ExternalPage<'_>) -> Option<String> {
        let [internal, external] = self.groups.map(|groups| groups.summary.first());
        let external = external?;
        let (observed, predicted) = external.observed.zip(external.predicted)?;
        let ends = external.observed_interval;
        let finding = match ends {
            Some((lower, _)) if predicted < lower => "the probabilities are too low",
            Some((_, upper)) if predicted > upper => "the probabilities are too high",
            Some(_) => "no miscalibration on average is shown",
            None => "whether that is chance was not tested",
        };
        let range = ends
            .map_or_else(String::new, |(lower, upper)| format!(" ({} to {})", percent_of(lower), percent_of(upper)));
        let of_internal = internal
            .and_then(|of| of.predicted.zip(of.observed))
            .map_or_else(String::new, |(p, o)| format!("; internal {} and {}", percent_of(p), percent_of(o)));
        let slope = clear_difference(page, "calibration-slope").map_or_else(String::new, |(both, text)| {
            let [own, other] = [&both.internal, &both.external].map(super::super::format::value);
            format!("; the calibration slope goes from {own} to {other} (change {text})")
        });
        Some(format!(
            "In the external data the mean probability is {} and the share of positive samples {}{range}: \
             {finding}{of_internal}{slope}.",
            percent_of(predicted),
            percent_of(observed)
        ))
    }
}

fn side_of(found: &ClassSummary, curve: Option<&CalibrationCurve>) -> RiskSide {
    let none = || "none".to_owned();
    let ratio = found.observed.zip(found.predicted).filter(|(_, predicted)| *predicted > 0.0);
    let reason = (found.n == 0).then(|| MetricError::NoSamples.to_string());
    RiskSide {
        events: found.n_positive.to_string(),
        observed: found.observed.map_or_else(none, percent_of),
        predicted: found.predicted.map_or_else(none, percent_of),
        ratio: ratio.map_or_else(none, |(observed, predicted)| number(observed / predicted)),
        ratio_interval: None,
        ici: curve.and_then(|curve| curve.ici).map_or_else(none, number),
        remark: reason,
    }
}
