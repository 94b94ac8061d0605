//! Sensitivity to informative censoring in sentences.

use fairtte_metrics::sensitivity::{
    AttributeSensitivity, FollowUp, ImputationModel, MetricSensitivity, SensitivityPoint, SensitivityReport,
    TippingPoint, Verdict,
};

use super::super::format::{count, interval, list, number, percent, short, value};

/// A hazard ratio in two decimals.
pub(super) fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// What was done, in one paragraph.
pub(super) fn method(report: &SensitivityReport) -> String {
    let settings = &report.settings;
    let model = match settings.model {
        ImputationModel::Cox => "a Cox model of the predicted risk in every group".to_owned(),
        ImputationModel::RiskStrata { n } => {
            format!("Kaplan-Meier in every group and {n} strata of the predicted risk")
        }
        ImputationModel::KaplanMeier => {
            "Kaplan-Meier in every group, which ignores the prediction: rank metrics and scores come out too poor"
                .to_owned()
        }
        ImputationModel::Predicted => {
            "the evaluated model itself, which is taken as true: metrics come out too good".to_owned()
        }
    };
    let tilted = match &settings.group {
        Some(group) => format!("the hazard of the drop-outs of {} {}", group.attribute, group.level),
        None => "the hazard of the drop-outs".to_owned(),
    };
    let intervals = match settings.replicates {
        0 => "no intervals".to_owned(),
        n => format!("{} intervals from {n} bootstrap draws, each imputed twice", percent(report.level)),
    };
    format!(
        "The time after a drop-out is imputed from {model}, with {tilted} multiplied by a hazard ratio; 1 is censoring at \
         random. {} imputations; {intervals}.",
        settings.imputations
    )
}

/// How the samples of every level left.
pub(super) fn follow_up(attribute: &AttributeSensitivity, time_unit: &str) -> Vec<String> {
    let unit = if time_unit.is_empty() { String::new() } else { format!(" {time_unit}") };
    let of = |found: &FollowUp| {
        let name = found.level.as_deref().unwrap_or("all");
        let share = if found.n == 0 { 0.0 } else { 100.0 * found.n_dropouts as f64 / found.n as f64 };
        let tilted = match found.n_dropouts - found.n_tilted {
            0 => String::new(),
            untilted => format!(", {untilted} of them with the hazard of those who stay"),
        };
        let pooled = if found.pooled { "; imputed by the model of all samples" } else { "" };
        format!(
            "{name}: {}, {}, {} ({share:.0} %{tilted}), {} followed to the end{pooled}",
            count(found.n, "sample"),
            count(found.n_events, "event"),
            count(found.n_dropouts, "drop-out"),
            found.n_administrative
        )
    };
    let end = format!("Follow-up up to time {}{unit}", short(attribute.end));
    let redrawn = (attribute.n_redrawn > 0).then(|| {
        format!("{} without an imputation model replaced by others", count(attribute.n_redrawn, "bootstrap draw"))
    });
    std::iter::once(end).chain(attribute.follow_up.iter().map(of)).chain(redrawn).collect()
}

/// What the hazard ratio does to the verdict of one metric.
pub(super) fn verdict(attribute: &AttributeSensitivity, metric: &MetricSensitivity) -> String {
    let Some(at_random) = metric.points.iter().find(|point| point.delta.abs() <= 0.0) else { return String::new() };
    let (Some(first), Some(last)) = (metric.points.first(), metric.points.last()) else { return String::new() };
    let ends = format!("{} to {}", ratio(first.hazard_ratio), ratio(last.hazard_ratio));
    if attribute.attribute.is_none() {
        return format!(
            "{} at random; {} for hazard ratios from {ends}.",
            with_interval(&at_random.overall),
            range(metric, |point| point.overall.value)
        );
    }
    let Some(gap) = &at_random.gap else { return String::new() };
    if gap.value.is_none() {
        return format!("No gap: {}.", gap.undefined.as_deref().unwrap_or("no reason was recorded"));
    }
    let values = range(metric, |point| point.gap.as_ref().and_then(|gap| gap.value));
    let start = format!("Gap {} at random, {values} for hazard ratios from {ends}", with_interval(gap));
    if at_random.gap_margin.is_none() {
        return format!("{start}; without intervals there is no verdict.");
    }
    let turns: Vec<String> =
        metric.tipping.iter().filter(|of| of.verdict != Verdict::SignChanges).map(|of| turn(of, metric)).collect();
    let shows = if at_random.gap_margin > Some(0.0) { "shows a gap" } else { "shows none" };
    let signs = signs(&metric.tipping);
    if turns.is_empty() {
        return format!(
            "{start}. The interval {shows} at random, and no hazard ratio in this range changes that{signs}."
        );
    }
    format!("{start}. The interval {shows} at random; {}{signs}.", turns.join("; "))
}

/// `0.041 (0.002 to 0.080)`.
fn with_interval(estimate: &fairtte_metrics::evaluation::Estimate) -> String {
    let ends = interval(estimate).map_or_else(String::new, |ends| format!(" ({ends})"));
    format!("{}{ends}", value(estimate))
}

/// `0.031 to 0.052`, the least and the largest value.
fn range(metric: &MetricSensitivity, of: impl Fn(&SensitivityPoint) -> Option<f64>) -> String {
    let values = metric.points.iter().filter_map(of);
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    ends.map_or_else(|| "undefined".to_owned(), |(low, high)| format!("{} to {}", number(low), number(high)))
}

fn turn(point: &TippingPoint, metric: &MetricSensitivity) -> String {
    let side = if point.delta < 0.0 { "below" } else { "above" };
    let what = if point.verdict == Verdict::GapVanishes { "the gap is no longer shown" } else { "a gap appears" };
    // Exactly at random, the interval touches 0.
    if point.delta.abs() <= 0.0 {
        return format!("{what} as soon as censoring is not at random ({})", metric.label);
    }
    format!("{what} {side} a hazard ratio of {}", ratio(point.hazard_ratio))
}

/// Where differences change their sign; empty if none does.
fn signs(tipping: &[TippingPoint]) -> String {
    let of = |point: &TippingPoint| {
        let (first, second) = point.groups.as_ref()?;
        (point.verdict == Verdict::SignChanges)
            .then(|| format!("{first} minus {second} at {}", ratio(point.hazard_ratio)))
    };
    let found: Vec<String> = tipping.iter().filter_map(of).collect();
    match found.len() {
        0 => String::new(),
        1..=4 => format!("; sign changes of {}", list(&found)),
        n => format!("; {n} differences of groups change their sign"),
    }
}
