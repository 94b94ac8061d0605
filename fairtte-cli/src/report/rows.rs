//! The rows that the table and the page show for one metric, with the remarks on each number.

use fairtte_metrics::evaluation::{
    AttributeReport, CAUTION_OF_DISTANCES, CLASS_METRICS, Estimate, EvaluatedCause, GapByChance, MaskMetric,
    MetricReport,
};
use fairtte_metrics::resampling::{IntervalMethod, Resample, Stratify};
use fairtte_metrics::{Direction, EvaluationReport, EvaluationSettings};

use super::evidence::{Evidence, Finding};
use super::format::{count, number, p_relation, short};

/// Share of replicates with fewer evaluation times than the value at or above which a remark is added.
const MANY_PARTIAL: f64 = 0.05;

/// One number of a metric.
pub(super) struct Row<'a> {
    pub(super) name: String,
    pub(super) is_group: bool,
    pub(super) estimate: &'a Estimate,
    /// Whether it is the group with the worst value.
    pub(super) is_worst: bool,
    /// A remark beside those of the estimate.
    pub(super) note: Option<String>,
}

impl<'a> Row<'a> {
    pub(super) fn of_samples(name: String, estimate: &'a Estimate) -> Self {
        Self { name, is_group: true, estimate, is_worst: false, note: None }
    }

    /// The remarks on the number, and the note.
    pub(super) fn remarks(&self, report: &EvaluationReport) -> Vec<String> {
        remarks(self.estimate, report).into_iter().chain(self.note.clone()).collect()
    }
}

/// The groups of `attribute`, then the differences between them. Groups with too few events to be compared are marked.
pub(super) fn attribute_rows<'a>(
    metric: &MetricReport,
    attribute: &'a AttributeReport,
    report: &EvaluationReport,
) -> Vec<Row<'a>> {
    let name = |level: &String| {
        let few = match () {
            () if is_of_class(metric) => "few of a class",
            () if is_of_masks(metric) => "few values",
            () => "few events",
        };
        if attribute.few_events.contains(level) { format!("{level} ({few})") } else { level.clone() }
    };
    let groups = attribute.groups.iter();
    let groups = groups.map(|group| Row {
        is_worst: attribute.worst_group.as_ref() == Some(&group.level),
        ..Row::of_samples(name(&group.level), &group.estimate)
    });
    let worst = match &attribute.worst_group {
        Some(level) => format!("worst group: {level}"),
        None => "worst group".to_owned(),
    };
    let gap = metric.gap_name.as_ref().map_or_else(|| "gap (0 = equal)".to_owned(), |name| format!("gap: {name}"));
    let mut summaries = vec![(gap, &attribute.gap, by_chance(metric, attribute, report))];
    if let Some(all) = &attribute.with_all_groups {
        summaries.push((
            if is_of_class(metric) || is_of_masks(metric) {
                "gap with the small groups too"
            } else {
                "gap with few events too"
            }
            .to_owned(),
            &all.gap,
            None,
        ));
    }
    if let Some(name) = &metric.ratio_name {
        summaries.push((format!("ratio: {name}"), &attribute.ratio, None));
    }
    if !metric.no_best {
        summaries.push((worst, &attribute.worst, None));
    }
    // A metric that is best at a target, or nowhere, has no equity scaling, and neither has a distance of masks.
    let is_distance = MaskMetric::ALL.iter().any(|of| of.is_distance() && of.is_of(&metric.name));
    if metric.target.is_none() && !metric.no_best && !is_distance {
        summaries.push(("equity scaling (1 = best)".to_owned(), &attribute.equity_scaling, None));
    }
    let summary = |(name, estimate, note)| Row { is_group: false, note, ..Row::of_samples(name, estimate) };
    let summaries = summaries.into_iter().map(summary);
    groups.chain(summaries).collect()
}

/// What chance makes of a gap.
pub(super) fn by_chance(
    metric: &MetricReport,
    attribute: &AttributeReport,
    report: &EvaluationReport,
) -> Option<String> {
    let GapByChance { mean, upper, p_value, p_holm, .. } = attribute.gap_by_chance.as_ref()?;
    let holm = p_holm.map_or_else(String::new, |p| format!(", Holm {}", p_relation(p)));
    let corrected = attribute.gap_corrected.map_or_else(String::new, |gap| format!("; corrected gap {}", number(gap)));
    let disagreement = disagreement(metric, attribute, report).map_or_else(String::new, |said| format!("; {said}"));
    Some(format!(
        "by chance {} on average, rarely above {} (p {}{holm}){corrected}{disagreement}",
        number(*mean),
        number(*upper),
        p_relation(*p_value)
    ))
}

/// The note beside a gap whose p value and interval disagree.
pub(super) fn disagreement(
    metric: &MetricReport,
    attribute: &AttributeReport,
    report: &EvaluationReport,
) -> Option<&'static str> {
    let finding = Evidence::of(attribute, metric, report)?.finding;
    (finding == Finding::Disagree).then_some("the interval disagrees, so nothing can be said")
}

/// Why there is no value.
pub(super) fn reason(estimate: &Estimate) -> &str {
    estimate.undefined.as_deref().unwrap_or("no reason was recorded")
}

/// The remarks on a number: why it does not exist, or what it leaves out.
pub(super) fn remarks(estimate: &Estimate, report: &EvaluationReport) -> Vec<String> {
    if estimate.value.is_none() {
        return vec![reason(estimate).to_owned()];
    }
    let mut remarks = Vec::new();
    if estimate.n_subjects == 1 && estimate.lower.is_some() {
        remarks.push("a single subject: the interval cannot say how much others would differ".to_owned());
    }
    if estimate.undefined_times > 0 {
        let n_times = report.times.as_ref().map_or(0, |window| window.times.len());
        let times = estimate.undefined_times;
        remarks.push(format!("no value at {times} of {n_times} evaluation times; average over the others"));
    }
    // The rule of distances is stated once, with the metric.
    remarks.extend(estimate.caution.clone().filter(|caution| caution != CAUTION_OF_DISTANCES));
    let (without, replicates) = (estimate.undefined_replicates, report.settings.replicates);
    let fewer = estimate.partial_replicates;
    if fewer as f64 > MANY_PARTIAL * replicates as f64 {
        remarks.push(format!("average over fewer evaluation times in {fewer} of {replicates} bootstrap replicates"));
    }
    if let Some(reason) = &estimate.interval_undefined {
        let reason = reason.trim_start_matches("no BCa interval: ").trim_start_matches("no studentised interval: ");
        remarks.push(format!("no interval: {reason}"));
    } else if without > 0 {
        remarks.push(format!("no value in {without} of {replicates} bootstrap replicates; interval from the others"));
    }
    remarks
}

/// Why every interval of the metric may be too narrow, where there are intervals; that of few events is beside its number.
pub(super) fn caution(metric: &MetricReport) -> Option<&'static str> {
    let groups = metric.attributes.iter().flat_map(|attribute| &attribute.groups).map(|group| &group.estimate);
    let mut cautions =
        std::iter::once(&metric.overall).chain(groups).filter_map(|estimate| estimate.caution.as_deref());
    cautions.any(|caution| caution == CAUTION_OF_DISTANCES).then_some(CAUTION_OF_DISTANCES)
}

/// Number of comparable pairs of a value; empty where the metric does not count pairs.
pub(super) fn pairs_behind(estimate: &Estimate) -> String {
    estimate.n_comparable.map_or_else(String::new, |n| n.to_string())
}

/// What the table of a metric shows.
pub(super) fn caption(metric: &MetricReport) -> String {
    format!("{} overall and by group", metric.label)
}

/// The time of the risks with its unit, where there is one.
pub(super) fn horizon(report: &EvaluationReport, time_unit: &str) -> Option<String> {
    report.horizon.map(|time| with_unit(time, time_unit))
}

/// The horizon as a text, with how it was chosen if it is the default.
pub(super) fn with_rule(horizon: String, report: &EvaluationReport) -> String {
    match report.settings.horizon {
        Some(_) => horizon,
        None => format!("{horizon}, the default (the median of the event times, within the evaluation times)"),
    }
}

/// A time with its unit, which may be empty.
pub(super) fn with_unit(time: f64, unit: &str) -> String {
    format!("{} {unit}", short(time)).trim_end().to_owned()
}

/// What the best value is, in words.
pub(super) fn direction(metric: &MetricReport) -> String {
    if metric.no_best {
        return "no value is better than another".to_owned();
    }
    match (metric.target, metric.direction()) {
        (Some(target), _) => format!("closer to {target} is better"),
        (None, Direction::HigherIsBetter) => "higher is better".to_owned(),
        (None, Direction::LowerIsBetter) => "lower is better".to_owned(),
    }
}

/// What an event is called.
pub(super) fn event(report: &EvaluationReport) -> &'static str {
    match (&report.class, &report.masks) {
        (Some(_), _) => "positive sample",
        (_, Some(_)) => "sample with a value",
        _ => "event",
    }
}

/// The title of a column with numbers of events.
pub(super) fn events_column(report: &EvaluationReport) -> &'static str {
    match (&report.class, &report.masks) {
        (Some(_), _) => "positive",
        (_, Some(_)) => "with value",
        _ => "events",
    }
}

/// Whether the metric is about the probability of a class.
pub(super) fn is_of_class(metric: &MetricReport) -> bool {
    metric.horizon.is_none() && CLASS_METRICS.iter().any(|of| of.name == metric.name)
}

/// What a group needs to be compared, in words.
pub(super) fn enough(metric: &MetricReport) -> &'static str {
    if is_of_class(metric) { "enough samples of both classes" } else { "enough events" }
}

/// Whether the metric is about masks.
pub(super) fn is_of_masks(metric: &MetricReport) -> bool {
    MaskMetric::is_named(&metric.name)
}

/// The events of all samples in words: `61 events`, or `61 events of cause 1, 30 of other causes`.
pub(super) fn events(report: &EvaluationReport) -> String {
    let events = count(report.n_events, event(report));
    report.cause.map_or_else(
        || events.clone(),
        |EvaluatedCause { cause, n_competing, .. }| format!("{events} of cause {cause}, {n_competing} of other causes"),
    )
}

/// Whether the metric is an average over the evaluation times.
pub(super) fn uses_window(metric: &MetricReport) -> bool {
    let without = ["c_td", "c-td", "cause-c-td", "d-calibration", "calibration-alpha", "rcll", "snl"];
    metric.horizon.is_none()
        && !is_of_class(metric)
        && !is_of_masks(metric)
        && !without.iter().any(|name| metric.name.starts_with(name))
}

/// Whether random guessing has the value 0.5.
pub(super) fn has_chance_level(metric: &MetricReport) -> bool {
    let ranks =
        ["balanced-accuracy", "c_td", "c-td", "auc", "harrell-c", "uno-c", "cause-c-td", "cause-c@", "cause-auc"];
    metric.name == "cause-c" || ranks.iter().any(|name| metric.name.starts_with(name))
}

/// The evaluation times in words, for example `100 times from 1.2 to 9.8 years`.
pub(super) fn window(report: &EvaluationReport, time_unit: &str) -> String {
    match (&report.times, &report.times_undefined) {
        (Some(window), _) => {
            let (n, lower, upper) = (count(window.times.len(), "time"), short(window.lower), short(window.upper));
            format!("{n} from {lower} to {upper} {time_unit}").trim_end().to_owned()
        }
        (None, Some(reason)) => format!("none: {reason}"),
        (None, None) => "none".to_owned(),
    }
}

/// Fewer replicates than this leave the ends of a 95 % interval to five values on each side (Efron & Tibshirani 1993, section 13.3, advise
/// 1,000).
const FEW_REPLICATES: usize = 200;

/// How intervals were made, in words.
pub(super) fn bootstrap(settings: &EvaluationSettings) -> String {
    if settings.replicates == 0 {
        return "none (0 bootstrap replicates)".to_owned();
    }
    let unit = match settings.resample {
        Resample::Subject => "subjects",
        Resample::Sample => "samples",
    };
    let method = match settings.interval {
        IntervalMethod::Percentile => "percentile",
        IntervalMethod::Basic => "basic",
        IntervalMethod::Bca => "BCa",
        IntervalMethod::Studentised => "studentised",
    };
    let strata = match &settings.stratify {
        Stratify::None => String::new(),
        Stratify::Event => " drawn within event status".to_owned(),
        Stratify::Attribute(name) => format!(" drawn within the levels of {name}"),
    };
    let (level, n) = (super::format::percent(settings.level), settings.replicates);
    let few = if n < FEW_REPLICATES { ", too few for ends that another seed would not move" } else { "" };
    format!("{level}, {method} bootstrap, {n} replicates of {unit}{strata}, seed {}{few}", settings.seed)
}

/// The metric before `metric` with identical numbers, if any, so that one of the two is enough.
pub(super) fn same_as<'a>(report: &'a EvaluationReport, metric: &MetricReport) -> Option<&'a MetricReport> {
    if report.class.is_some() || report.masks.is_some() {
        return None;
    }
    let before = report.metrics.iter().take_while(|other| other.name != metric.name);
    before.into_iter().find(|other| other.overall == metric.overall && other.attributes == metric.attributes)
}
