//! Rows of the flat table.

use fairtte_metrics::sensitivity::{MetricSensitivity, SensitivityPoint, TippingPoint, Verdict};

use super::super::flat::{FlatRow, of_difference, of_named, of_number};
use crate::sensitivity::Sensitivity;

/// Every number of the analysis; the level starts with `delta=..`.
pub(in super::super) fn flat_rows(sensitivity: &Sensitivity) -> Vec<FlatRow> {
    let Sensitivity::Report(report) = sensitivity else { return vec![] };
    let of_attribute = |attribute: &fairtte_metrics::sensitivity::AttributeSensitivity| {
        let name = attribute.attribute.clone().unwrap_or_default();
        let metrics = attribute.metrics.iter();
        metrics.flat_map(move |metric| of_metric(&name, metric)).collect::<Vec<_>>()
    };
    report.attributes.iter().flat_map(of_attribute).collect()
}

fn of_metric(attribute: &str, metric: &MetricSensitivity) -> Vec<FlatRow> {
    let points = metric.points.iter().flat_map(|point| of_point(attribute, &metric.name, point));
    let tipping = metric.tipping.iter().map(|point| of_tipping(attribute, &metric.name, point));
    points.chain(tipping).collect()
}

fn of_point(attribute: &str, metric: &str, point: &SensitivityPoint) -> Vec<FlatRow> {
    let delta = format!("delta={}", point.delta);
    let row = |kind, level: &str, of| of_named(metric, attribute, kind, level, of);
    let mut rows = vec![row("sensitivity-all", &delta, &point.overall)];
    let named = |level: &str| format!("{delta}: {level}");
    rows.extend(point.groups.iter().map(|group| row("sensitivity-group", &named(&group.level), &group.estimate)));
    rows.extend(point.gap.iter().map(|gap| row("sensitivity-gap", &delta, gap)));
    let worst = point.worst_group.as_deref().map_or_else(|| delta.clone(), named);
    rows.extend(point.worst.iter().map(|of| row("sensitivity-worst", &worst, of)));
    rows.extend(point.differences.iter().map(|pair| {
        let level = named(&format!("{} minus {}", pair.first, pair.second));
        of_difference(metric, attribute, "sensitivity-difference", level, &pair.difference)
    }));
    rows
}

/// A tipping point; the value is delta.
fn of_tipping(attribute: &str, metric: &str, point: &TippingPoint) -> FlatRow {
    let level = match (&point.groups, point.verdict) {
        (Some((first, second)), _) => format!("sign-changes: {first} minus {second}"),
        (None, Verdict::GapVanishes) => "gap-vanishes".to_owned(),
        (None, _) => "gap-appears".to_owned(),
    };
    of_number(metric, (attribute, &level), "sensitivity-tipping-delta", Some(point.delta), None)
}
