//! What the numbers of a class say, in sentences.

use fairtte_metrics::classification::{BinConfidence, Bins, Underdiagnosis};
use fairtte_metrics::evaluation::{ClassSettings, ClassSummary, LeftOut};

use super::super::format::{interval, list, number, of_level, percent, short, value};
use super::super::models::signed;
use super::super::verdict::{largest_difference, percent_of, ranking, some_of, with_ends};
use super::super::words::FEW_EVENTS;
use super::ClassNumbers;

/// How good the model is, whether groups differ, whether probabilities are right, what decisions do, and what leaving out the
/// censored does.
pub(in super::super) fn verdict(numbers: &ClassNumbers<'_>) -> Vec<String> {
    let mut said = vec![overall(numbers)];
    said.extend(numbers.evaluation.metrics.first().map(|metric| largest_difference(metric, numbers.evaluation)));
    said.extend(calibration(&numbers.groups.summary));
    said.extend(decisions(numbers));
    said.extend(left_out(numbers));
    said
}

fn overall(numbers: &ClassNumbers<'_>) -> String {
    let report = numbers.evaluation;
    let level = if report.settings.replicates > 0 {
        format!(" (in brackets: {} intervals)", percent(report.settings.level))
    } else {
        String::new()
    };
    let named = ["auc", "average-precision", "brier"].into_iter().filter_map(|name| report.metric(name));
    let numbers: Vec<String> = named.map(|metric| format!("{} {}", metric.label, with_ends(&metric.overall))).collect();
    match (report.metric("auc"), report.metrics.first()) {
        (Some(auc), _) => format!("{}: {}{level}.", ranking(&auc.overall), list(&numbers)),
        (None, Some(main)) => format!("Overall, {} is {}{level}.", main.label, with_ends(&main.overall)),
        (None, None) => "No metric was asked for.".to_owned(),
    }
}

/// Whether the mean probability is the share of positive samples, of all and by group; the intervals take samples as independent.
fn calibration(summary: &[ClassSummary]) -> Option<String> {
    let (all, groups) = summary.split_first()?;
    let (observed, predicted) = all.observed.zip(all.predicted)?;
    let side = |of: &ClassSummary| {
        let ((lower, upper), predicted) = of.observed_interval.zip(of.predicted)?;
        if predicted < lower { Some("low") } else { Some("high").filter(|_| predicted > upper) }
    };
    let ends = all.observed_interval.map(|(lower, upper)| format!(" ({} to {})", percent_of(lower), percent_of(upper)));
    let verdict = match (side(all), all.observed_interval) {
        (Some(side), _) => format!("the probabilities are too {side}"),
        (None, Some(_)) => "no miscalibration on average is shown".to_owned(),
        (None, None) => "whether that is chance was not tested".to_owned(),
    };
    let mut text = format!(
        "The mean probability is {}, the share of positive samples {}{}: {verdict}.",
        percent_of(predicted),
        percent_of(observed),
        ends.unwrap_or_default()
    );
    for wanted in ["low", "high"] {
        let enough = |of: &&ClassSummary| of.n_positive.min(of.n - of.n_positive) >= FEW_EVENTS;
        let found = groups.iter().filter(enough).filter(|of| side(of) == Some(wanted));
        let named: Vec<String> = found.map(name).collect();
        if !named.is_empty() {
            text = format!("{text} They are too {wanted} for {}.", some_of(&named));
        }
    }
    Some(text)
}

fn name(of: &ClassSummary) -> String {
    let level = of.level.as_deref().unwrap_or("all");
    of.attribute.as_ref().map_or_else(|| level.to_owned(), |attribute| of_level(attribute, level))
}

/// Who is called positive, and how unequal the errors are.
fn decisions(numbers: &ClassNumbers<'_>) -> Option<String> {
    let all = numbers.groups.summary.first()?;
    let counts = all.decisions?;
    let rate =
        |rate: Result<f64, _>| rate.map_or_else(|_: fairtte_metrics::MetricError| "undefined".to_owned(), percent_of);
    let mut text = format!(
        "At the threshold {}, {:.0} of {} samples are called positive; {} of the positive samples are missed (FNR), {} of the negative \
         ones are called positive (FPR).",
        short(numbers.report.class.threshold),
        counts.true_positive + counts.false_positive,
        all.n,
        rate(counts.false_negative_rate()),
        rate(counts.false_positive_rate())
    );
    let of_underdiagnosis = match numbers.report.class.underdiagnosis {
        Underdiagnosis::MissedDisease => "FNR",
        Underdiagnosis::CalledNoFinding => "FPR",
    };
    for parity in &numbers.report.parity {
        let gap = &parity.underdiagnosis_difference;
        let Some(_) = gap.value else { continue };
        let range = interval(gap).map_or_else(String::new, |ends| format!(" (interval {ends})"));
        text = format!(
            "{text} Underdiagnosis ({of_underdiagnosis}) differs by {}{range} between the groups of {}.",
            value(gap),
            parity.attribute
        );
    }
    Some(text)
}

/// What leaving out the censored does to the AUC.
pub(super) fn left_out(numbers: &ClassNumbers<'_>) -> Option<String> {
    let found = numbers.horizon?;
    let LeftOut { n, n_left_out, .. } = *found.left_out.first()?;
    let by = format!("{} {}", short(found.horizon), numbers.time_unit);
    let by = by.trim_end();
    if n_left_out == 0 {
        return Some(format!("No sample is censored by {by}: all {n} samples have a class."));
    }
    let share = percent_of(n_left_out as f64 / n.max(1) as f64);
    let mut text =
        format!("{n_left_out} of {n} samples ({share}) are censored by {by}, have no class and are left out.");
    let between = found.differences.first()?;
    if let (Some(naive), Some(weighted), Some(value)) =
        (found.naive.overall.value, found.weighted.overall.value, between.value)
    {
        let ends = between.lower.zip(between.upper);
        let range = ends.map_or_else(String::new, |(a, b)| format!(", interval {} to {}", number(a), number(b)));
        text = format!(
            "{text} The AUC of the others is {}; that of all samples, with weights for censoring, is {} (difference {}{range}).",
            number(naive),
            number(weighted),
            signed(value)
        );
    }
    let shares = found.left_out[1..].iter().filter(|of| of.n > 0);
    let shares = shares.map(|of| (of.n_left_out as f64 / of.n as f64, of));
    let mut most: Option<(f64, &LeftOut)> = None;
    let mut least = most;
    for of in shares {
        most = most.filter(|most| most.0 >= of.0).or(Some(of));
        least = least.filter(|least| least.0 <= of.0).or(Some(of));
    }
    if let (Some((high, a)), Some((low, b))) = (most, least)
        && high > low
    {
        let group = |of: &LeftOut| of_level(of.attribute.as_deref().unwrap_or(""), of.level.as_deref().unwrap_or(""));
        text = format!(
            "{text} By group, between {} ({}) and {} ({}) are left out.",
            percent_of(low),
            group(b),
            percent_of(high),
            group(a)
        );
    }
    Some(text)
}

/// Where a threshold comes from; `validation` is the file, the F1 on it, and its samples with their positive ones.
pub(crate) fn threshold_sentence(
    threshold: f64,
    is_given: bool,
    validation: Option<(&str, f64, usize, usize)>,
) -> String {
    let threshold = short(threshold);
    match validation {
        Some((file, f1, n, n_positive)) => format!(
            "Threshold {threshold}: the highest F1 ({}) on {n} samples of {file}, {n_positive} of them positive; the same for all groups.",
            number(f1)
        ),
        None if is_given => format!("Threshold {threshold}, as given; the same for all groups."),
        None => format!("Threshold {threshold}, the default; the same for all groups."),
    }
}

/// The bins of the expected calibration error, in words.
pub(in super::super) fn bins(class: &ClassSettings) -> String {
    let error = class.calibration_error;
    let kind = match error.bins {
        Bins::EqualWidth => "equal width",
        Bins::EqualMass => "equal size",
    };
    let of = match error.confidence {
        BinConfidence::Positive => "the probability of the positive class",
        BinConfidence::Predicted => "the probability of the predicted class",
    };
    format!("{} bins of {kind} of {of}", error.n_bins)
}
