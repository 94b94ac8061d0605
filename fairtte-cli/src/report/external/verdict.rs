//! The verdict of an external validation: at most three sentences on whether the model is worse in the external data, more so
//! for a group, and whether its risks are right there.
//!
//! A change is stated only if its p value, adjusted by Holm's method for all numbers of the metric, is at most the error level
//! of the intervals; whether one group lost more than another only if that difference of changes is, adjusted likewise; a
//! wrong risk only if the bootstrap interval of observed / expected excludes 1.

use fairtte_metrics::Direction;
use fairtte_metrics::evaluation::{CohortMetric, Difference, GroupDifference, InBoth, MetricReport};

use super::super::differences::ends;
use super::super::evidence::is_small;
use super::super::format::{of_level, p_relation, value};
use super::super::models::signed;
use super::super::rows;
use super::super::verdict::{Ratio, Side, is_tested, side};
use super::ExternalPage;

/// At most three sentences.
pub(crate) fn external_verdict(page: &ExternalPage<'_>) -> Vec<String> {
    let mut verdict = Vec::new();
    let reports = page.reports;
    if let (Some(found), Some(metric)) = (reports.metrics.first(), reports.internal.metrics.first()) {
        let error = 1.0 - reports.internal.settings.level;
        verdict.push(change(found, metric, error));
        verdict.push(change_of_groups(found, metric, error));
    }
    verdict.extend(match &page.class {
        Some(class) => class.calibration(page),
        None => calibration(page),
    });
    verdict
}

/// The p value that decides.
fn p_of(difference: &Difference) -> Option<f64> {
    difference.p_holm.or(difference.p_value)
}

/// `Holm p = 0.004`, or `p = 0.004` of a single test.
fn with_name(difference: &Difference, p: f64) -> String {
    format!("{}p {}", if difference.p_holm.is_some() { "Holm " } else { "" }, p_relation(p))
}

/// `-0.080 (interval -0.130 to -0.030; Holm p = 0.004)`.
fn with_ends(difference: &Difference) -> String {
    let value = difference.value.map_or_else(|| "undefined".to_owned(), signed);
    let ends = ends(difference).map(|ends| format!("interval {ends}"));
    let p = p_of(difference).map(|p| with_name(difference, p));
    let about: Vec<String> = ends.into_iter().chain(p).collect();
    if about.is_empty() { value } else { format!("{value} ({})", about.join("; ")) }
}

fn change(found: &CohortMetric, metric: &MetricReport, error: f64) -> String {
    let InBoth { internal, external, difference } = &found.overall;
    let label = &metric.label;
    let Some(size) = difference.value else {
        let reason = difference.undefined.as_deref().unwrap_or("no reason was recorded");
        return format!("Whether {label} changes in the external data cannot be said: {reason}.");
    };
    let from_to =
        format!("from {} in the internal test part to {} in the external data", value(internal), value(external));
    match p_of(difference) {
        Some(p) if is_small(p, error) => {
            let verb = if size < 0.0 { "falls" } else { "rises" };
            format!("{label} {verb} {from_to}, which chance does not explain: {}.", with_ends(difference))
        }
        Some(_) => {
            let groups = clear_groups(found, error).map_or_else(String::new, |groups| format!("; {groups}"));
            let found = with_ends(difference);
            format!("{label} over all samples goes {from_to}, which may be chance: {found}{groups}.")
        }
        None => format!("{label} goes {from_to}; whether that is chance was not tested."),
    }
}

/// The group whose change is the largest of those that chance does not explain, and the number of others.
fn clear_groups(found: &CohortMetric, error: f64) -> Option<String> {
    let all = found.attributes.iter().flat_map(|by| by.groups.iter().map(move |group| (&by.attribute, group)));
    let is_clear =
        |(_, (_, both)): &(&String, &(String, InBoth))| p_of(&both.difference).is_some_and(|p| is_small(p, error));
    let clear: Vec<_> = all.filter(is_clear).collect();
    let size = |both: &InBoth| both.difference.value.map_or(0.0, f64::abs);
    let (attribute, (level, both)) = clear.iter().max_by(|(_, a), (_, b)| size(&a.1).total_cmp(&size(&b.1)))?;
    let verb = if both.difference.value.is_some_and(|value| value < 0.0) { "falls" } else { "rises" };
    let others = match clear.len() - 1 {
        0 => String::new(),
        1 => ", and changes for another group".to_owned(),
        n => format!(", and changes for {n} other groups"),
    };
    Some(format!("it {verb} for {}, {}{others}", of_level(attribute, level), with_ends(&both.difference)))
}

/// Whether one group lost more than another, in the metric whose direction is known.
fn change_of_groups(found: &CohortMetric, metric: &MetricReport, error: f64) -> String {
    let label = &metric.label;
    if found.attributes.is_empty() {
        return "No groups are in both cohorts, so that nothing can be said about differences between them.".to_owned();
    }
    let all =
        found.attributes.iter().flat_map(|by| by.changes.iter().map(move |change| (by.attribute.as_str(), change)));
    let tested: Vec<(&str, &GroupDifference, f64)> =
        all.filter_map(|(attribute, change)| Some((attribute, change, p_of(&change.difference)?))).collect();
    if tested.is_empty() {
        let enough = rows::enough(metric);
        return format!(
            "Whether {label} changes more for one group than for another cannot be said: no two groups have {enough} in \
             both cohorts and an interval."
        );
    }
    let size = |change: &GroupDifference| change.difference.value.map_or(0.0, f64::abs);
    let clear = tested.iter().filter(|(.., p)| is_small(*p, error)).max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
    let Some((attribute, change, _)) = clear else {
        return format!("No group is shown to change more in {label} than another.");
    };
    let value = change.difference.value.unwrap_or(0.0);
    let is_worse = match (metric.no_best || metric.target.is_some(), metric.direction()) {
        (true, _) => None,
        (false, Direction::HigherIsBetter) => Some(value < 0.0),
        (false, Direction::LowerIsBetter) => Some(value > 0.0),
    };
    let (first, second) = (&change.first, &change.second);
    let (loser, other) = if is_worse == Some(false) { (second, first) } else { (first, second) };
    let verb = if is_worse.is_none() { "changes differently" } else { "fares worse" };
    format!(
        "{} {verb} in the external data than {}: the change of {label} for {first} minus that for {second} is {}.",
        of_level(attribute, loser),
        of_level(attribute, other),
        with_ends(&change.difference)
    )
}

/// Observed against predicted risk of the external data.
fn calibration(page: &ExternalPage<'_>) -> Option<String> {
    let reports = page.reports;
    let (own, all) = (reports.internal.groups_summary.first()?, reports.external.groups_summary.first()?);
    let by = rows::horizon(&reports.external, page.time_unit)?;
    let Some(ratio) = Ratio::of(all, &reports.external) else {
        if side(all, &reports.external) == Some(Side::Under) {
            return Some(format!(
                "By {by}, the model underestimates the risk in the external data: every predicted risk is 0."
            ));
        }
        let reason = all.at_horizon_undefined.as_deref().unwrap_or("every predicted risk is 0");
        return Some(format!(
            "Whether the predicted risks by {by} are right in the external data cannot be said: {reason}."
        ));
    };
    let internal = Ratio::of(own, &reports.internal).map_or_else(|| "undefined".to_owned(), |ratio| ratio.to_string());
    let finding = match (side(all, &reports.external), is_tested(all, &reports.external)) {
        (Some(Side::Under), _) => "the model underestimates the risk",
        (Some(Side::Over), _) => "the model overestimates the risk",
        (None, true) => "no miscalibration on average is shown",
        (None, false) => "whether the risk is right on average was not tested",
    };
    let [ratios, index] = ["observed-expected", "ici"].map(|name| clear_difference(page, name));
    let ratios = ratios.map_or_else(String::new, |(_, text)| format!(" (change {text})"));
    let index = index.map_or_else(String::new, |(both, text)| {
        let (own, other) = (value(&both.internal), value(&both.external));
        format!("; the integrated calibration index goes from {own} to {other} (change {text})")
    });
    Some(format!(
        "By {by}, {finding} in the external data: observed / expected {ratio}, internal {internal}{ratios}{index}."
    ))
}

/// The change of a metric over all samples that chance does not explain.
pub(super) fn clear_difference<'a>(page: &ExternalPage<'a>, name: &str) -> Option<(&'a InBoth, String)> {
    let reports = page.reports;
    let both = &reports.metrics.iter().find(|metric| metric.name == name)?.overall;
    let p = p_of(&both.difference).filter(|p| is_small(*p, 1.0 - reports.internal.settings.level))?;
    Some((both, format!("{}; {}", signed(both.difference.value?), with_name(&both.difference, p))))
}
