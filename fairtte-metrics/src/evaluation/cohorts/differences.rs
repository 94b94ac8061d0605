//! The differences of one metric between two cohorts, external minus internal.

use super::{CohortAttribute, CohortMetric, InBoth, Shared, SharedLevel, Side, SideAttribute};
use crate::evaluation::evaluated::Sampled;
use crate::evaluation::report::{Difference, Estimate, GroupDifference};
use crate::evaluation::simultaneous::p_by_bisection;
use crate::evaluation::summary::{Samples, difference_of, holm, judged, to_adjust};
use crate::resampling::recovered_interval;
use crate::{EvaluationSettings, MetricError};

/// One metric of both cohorts, internal first.
pub(super) fn compare(
    [internal, external]: [&Side; 2],
    shared: &[Shared],
    settings: &EvaluationSettings,
) -> CohortMetric {
    let estimates = (internal.report.overall.clone(), external.report.overall.clone());
    let overall = difference_of(&external.overall, &internal.overall, Samples::Independent, settings);
    let attributes = shared.iter().enumerate().map(|(place, shared)| {
        let (own, other) = (&internal.attributes[place], &external.attributes[place]);
        attribute([own, other], shared, settings)
    });
    let mut found = CohortMetric {
        name: internal.report.name.clone(),
        overall: InBoth { internal: estimates.0, external: estimates.1, difference: overall },
        attributes: attributes.collect(),
    };
    holm(found.tested_mut().filter_map(to_adjust));
    let changes = found.attributes.iter_mut().flat_map(|attribute| &mut attribute.changes);
    holm(changes.filter_map(|change| to_adjust(&mut change.difference)));
    found
}

impl CohortMetric {
    /// The differences whose p values are adjusted together.
    fn tested_mut(&mut self) -> impl Iterator<Item = &mut Difference> {
        let of_attributes = self.attributes.iter_mut().flat_map(|attribute| {
            let groups = attribute.groups.iter_mut().map(|(_, both)| &mut both.difference);
            groups.chain([&mut attribute.gap.difference])
        });
        std::iter::once(&mut self.overall.difference).chain(of_attributes)
    }
}

fn attribute(sides: [&SideAttribute; 2], shared: &Shared, settings: &EvaluationSettings) -> CohortAttribute {
    let [internal, external] = sides;
    let groups = shared.levels.iter().enumerate().map(|(place, level)| {
        let both = in_both([&internal.groups[place], &external.groups[place]], (shared, level), settings);
        (level.level.clone(), both)
    });
    let compared = shared.levels.iter().filter(|level| level.is_compared);
    CohortAttribute {
        attribute: shared.attribute.clone(),
        groups: groups.collect(),
        compared: compared.map(|level| level.level.clone()).collect(),
        gap: InBoth {
            internal: internal.gap.clone(),
            external: external.gap.clone(),
            difference: difference_of_gaps(sides, shared, settings),
        },
        changes: changes(sides, shared, settings),
    }
}

fn in_both(
    [internal, external]: [&Option<(Estimate, Sampled)>; 2],
    (shared, level): (&Shared, &SharedLevel),
    settings: &EvaluationSettings,
) -> InBoth {
    let absent = |cohort| MetricError::NoSuchGroup { level: level.level.clone(), cohort };
    let estimate = |found: &Option<(Estimate, Sampled)>, cohort| match found {
        Some((estimate, _)) => estimate.clone(),
        None => no_estimate(&absent(cohort)),
    };
    let difference = match (internal, external) {
        (Some((_, internal)), Some((_, external))) => {
            let found = difference_of(external, internal, Samples::Independent, settings);
            judged(found, shared.counted, level.n_events, settings.min_events)
        }
        (None, _) => no_difference(absent("internal").to_string()),
        (_, None) => no_difference(absent("external").to_string()),
    };
    InBoth { internal: estimate(internal, "internal"), external: estimate(external, "external"), difference }
}

fn no_estimate(reason: &MetricError) -> Estimate {
    Estimate {
        value: None,
        undefined: Some(reason.to_string()),
        lower: None,
        upper: None,
        interval_undefined: None,
        caution: None,
        n: 0,
        n_events: 0,
        n_subjects: 0,
        n_comparable: None,
        undefined_replicates: 0,
        partial_replicates: 0,
        undefined_times: 0,
    }
}

fn no_difference(reason: String) -> Difference {
    Difference { undefined: Some(reason), ..Difference::none() }
}

/// The gap of the external cohort minus that of the internal one.
fn difference_of_gaps(
    [internal, external]: [&SideAttribute; 2],
    shared: &Shared,
    settings: &EvaluationSettings,
) -> Difference {
    let only = |own: &SideAttribute, other: &SideAttribute| {
        own.behind_gap.iter().copied().find(|level| !other.behind_gap.contains(level))
    };
    // A gap of other groups is another number.
    for (place, cohort) in [(only(internal, external), "external"), (only(external, internal), "internal")] {
        if let Some(place) = place {
            let level = &shared.levels[place].level;
            return no_difference(format!("group \"{level}\" has no value in the {cohort} cohort"));
        }
    }
    let (own, other) = (&external.sampled_gap, &internal.sampled_gap);
    let found = difference_of(own, other, Samples::Independent, settings);
    let (Some(value), Some(gap), Some(other_gap)) = (found.value, external.gap.value, internal.gap.value) else {
        return found;
    };
    let bounds = |level: f64| {
        let settings = EvaluationSettings { level, ..settings.clone() };
        let (lower, upper) = external.gap_interval(&settings)?;
        let (other_lower, other_upper) = internal.gap_interval(&settings)?;
        Some(recovered_interval((gap, lower, upper), (other_gap, other_lower, other_upper)))
    };
    let Some((lower, upper)) = bounds(settings.level) else {
        return Difference { lower: None, upper: None, p_value: None, ..found };
    };
    let p_value = found.p_value.is_some().then(|| {
        let n_replicates = (own.replicates.len() - found.undefined_replicates) as f64;
        p_by_bisection(|level| bounds(level).is_none_or(|(lower, upper)| lower <= 0.0 && upper >= 0.0))
            .max(1.0 / (n_replicates + 1.0))
    });
    let p_value = if value.abs() > 0.0 { p_value } else { p_value.map(|_| 1.0) };
    Difference { lower: Some(lower), upper: Some(upper), p_value, ..found }
}

/// Whether groups changed differently from one cohort to the other.
fn changes(
    [internal, external]: [&SideAttribute; 2],
    shared: &Shared,
    settings: &EvaluationSettings,
) -> Vec<GroupDifference> {
    let has_value = |place: usize| {
        let of = |side: &SideAttribute| side.groups[place].as_ref().is_some_and(|(_, sampled)| sampled.value.is_ok());
        of(internal) && of(external)
    };
    let defined: Vec<usize> = (0..shared.levels.len()).filter(|place| has_value(*place)).collect();
    let pairs: Vec<(usize, usize)> = if let Some(reference) = settings.reference.get(&shared.attribute) {
        let place = defined.iter().copied().find(|place| shared.levels[*place].level == *reference);
        let others = |place| defined.iter().copied().filter(move |k| *k != place).map(move |k| (k, place));
        place.into_iter().flat_map(others).collect()
    } else {
        let later = |k: usize| defined[k + 1..].iter().map(move |second| (k, *second));
        (0..defined.len()).flat_map(|k| later(k).map(|(k, second)| (defined[k], second))).collect()
    };
    let of_pair = |(first, second): (usize, usize)| {
        let within = |side: &SideAttribute| -> Option<Sampled> {
            Some(side.groups[first].as_ref()?.1.minus(&side.groups[second].as_ref()?.1))
        };
        let found = difference_of(&within(external)?, &within(internal)?, Samples::Independent, settings);
        let (first, second) = (&shared.levels[first], &shared.levels[second]);
        let n = first.n_events.min(second.n_events);
        let difference = judged(found, shared.counted, n, settings.min_events);
        Some(GroupDifference { first: first.level.clone(), second: second.level.clone(), difference })
    };
    pairs.into_iter().filter_map(of_pair).collect()
}
