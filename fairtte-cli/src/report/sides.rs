//! Calibration of several cohorts or models: their figures of one attribute beside each other, with the same axes.

use fairtte_metrics::EvaluationReport;
use serde::Serialize;

use super::ReportError;
use super::names::names;
use super::page::{FEW_EVENTS, FEW_OF_A_CLASS};
use super::plots::{GroupFigure, calibration_of_models, calibration_side_by_side};

/// The figures of one attribute.
#[derive(Serialize)]
pub(super) struct SideBySide {
    title: String,
    /// Whether every group has its own small panel.
    small: bool,
    sides: Vec<Side>,
    /// What the groups are called whose panels are folded.
    few: &'static str,
}

/// One cohort or model; all models over each other have no name.
#[derive(Serialize)]
struct Side {
    name: String,
    shown: Vec<String>,
    folded: Vec<String>,
}

impl Side {
    fn of(name: &str, figure: GroupFigure) -> Self {
        Self { name: name.to_owned(), shown: figure.panels, folded: figure.folded }
    }
}

/// The same words as on the page of one model.
fn few(reports: &[(&str, &EvaluationReport)]) -> &'static str {
    let is_class = reports.iter().any(|(_, report)| report.class.is_some());
    if is_class { FEW_OF_A_CLASS } else { FEW_EVENTS }
}

/// Two cohorts, for every attribute that both have.
pub(super) fn calibration_of_cohorts(cohorts: &[(&str, &EvaluationReport)]) -> Result<Vec<SideBySide>, ReportError> {
    let of_cohorts: Vec<(String, &EvaluationReport)> =
        cohorts.iter().map(|(name, report)| ((*name).to_owned(), *report)).collect();
    Ok(paired(cohorts, calibration_side_by_side(&of_cohorts)?))
}

/// Several models: the whole sample in one figure, then every attribute with the models beside each other.
pub(super) fn calibration_of(models: &[(&str, &EvaluationReport)]) -> Result<Vec<SideBySide>, ReportError> {
    let of_models: Vec<(String, &EvaluationReport)> = names(models.iter().map(|(name, _)| *name))
        .into_iter()
        .zip(models)
        .map(|(name, (_, report))| (format!("{name}_by"), *report))
        .collect();
    let together = calibration_of_models(models)?.map(|figure| SideBySide {
        title: "All samples".to_owned(),
        small: figure.small,
        sides: vec![Side::of("", figure)],
        few: few(models),
    });
    let by_attribute = calibration_side_by_side(&of_models)?.into_iter();
    let by_attribute = by_attribute.map(|figures| figures.into_iter().filter(|of| of.attribute.is_some()).collect());
    Ok(together.into_iter().chain(paired(models, by_attribute.collect())).collect())
}

/// The figures of the attributes that all have, in the order of the first.
fn paired(reports: &[(&str, &EvaluationReport)], figures: Vec<Vec<GroupFigure>>) -> Vec<SideBySide> {
    let mut others = figures.into_iter();
    let Some(first) = others.next() else { return Vec::new() };
    let mut others: Vec<Vec<GroupFigure>> = others.collect();
    let pair = |own: GroupFigure| {
        let same = |other: &mut Vec<GroupFigure>| {
            let place = other.iter().position(|figure| figure.attribute == own.attribute)?;
            Some(other.remove(place))
        };
        let found: Vec<GroupFigure> = others.iter_mut().map(same).collect::<Option<_>>()?;
        let title = own.attribute.as_ref().map_or_else(|| "All samples".to_owned(), |name| format!("By {name}"));
        let small = own.small || found.iter().any(|figure| figure.small);
        let all = reports.iter().zip(std::iter::once(own).chain(found));
        let sides = all.map(|((name, _), figure)| Side::of(name, figure)).collect();
        Some(SideBySide { title, small, sides, few: few(reports) })
    };
    first.into_iter().filter_map(pair).collect()
}
