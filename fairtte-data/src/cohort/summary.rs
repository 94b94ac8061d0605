//! Summary of a cohort: counts of images, people and events, for all samples and for every group, and its origin.
//!
//! It is written beside a cohort as JSON and is the input of [`compare_with_paper`](crate::cohort::compare_with_paper).
//! A number without any sample is absent, never NaN.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cohort::FittedAttributes;
use crate::cohort::Reason;
use crate::cohort::exclusions::Exclusions;
use crate::cohort::{Cohort, Sample};
use crate::cohort::{OutcomeKind, Provenance};

/// Summary statistics of a cohort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CohortSummary {
    /// Name of the data set.
    pub name: String,
    /// Unit of the times.
    pub time_unit: String,
    /// Rows read.
    pub n_read: usize,
    /// Rows left out, by reason.
    pub excluded: BTreeMap<Reason, usize>,
    /// Different people.
    pub n_subjects: usize,
    /// All samples.
    pub total: SamplesSummary,
    /// The samples of every group.
    pub attributes: Vec<AttributeSummary>,
    /// Rule, options and content hash, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// Summary statistics of some samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SamplesSummary {
    /// Samples.
    pub n: usize,
    /// Observed events.
    pub n_events: usize,
    /// Events of other causes; 0 where there is one kind of event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_competing: usize,
    /// Share of samples without observed event of any cause, in [0, 1]; absent without a sample.
    pub censoring_rate: Option<f64>,
    /// Mean time to event or censoring; absent without a sample.
    pub mean_time: Option<f64>,
    /// Mean time to event of the samples with an observed event; absent without an event.
    pub mean_event_time: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Summary statistics of the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AttributeSummary {
    /// Name of the attribute.
    pub name: String,
    /// Samples that belong to no group.
    pub n_without_group: usize,
    /// The groups, by number.
    pub groups: Vec<GroupSummary>,
}

/// Summary statistics of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GroupSummary {
    /// Name of the level: `> 60`.
    pub level: String,
    /// Its samples.
    pub samples: SamplesSummary,
}

/// Sums over some samples, added one after another.
#[derive(Clone, Copy, Default)]
struct Sums {
    n: usize,
    n_events: usize,
    n_competing: usize,
    time: f64,
    event_time: f64,
}

impl Sums {
    fn add(&mut self, sample: &Sample) {
        self.n += 1;
        self.time += sample.time;
        if sample.event {
            self.n_events += 1;
            self.event_time += sample.time;
        } else {
            self.n_competing += usize::from(sample.competing.is_some());
        }
    }

    fn summary(self) -> SamplesSummary {
        let mean = |sum: f64, n: usize| (n > 0).then(|| sum / n as f64);
        SamplesSummary {
            n: self.n,
            n_events: self.n_events,
            n_competing: self.n_competing,
            censoring_rate: mean((self.n - self.n_events - self.n_competing) as f64, self.n),
            mean_time: mean(self.time, self.n),
            mean_event_time: mean(self.event_time, self.n_events),
        }
    }
}

impl CohortSummary {
    /// The summary of `cohort`, of its exclusions, and of the groups of `attributes`.
    ///
    /// Cost: one pass over the samples per attribute.
    pub fn new(cohort: &Cohort, exclusions: &Exclusions, attributes: &FittedAttributes) -> Self {
        let attribute = |groups: &fairtte_metrics::Groups| {
            let mut sums = vec![Sums::default(); groups.levels().len()];
            let mut n_without_group = 0;
            for (sample, group) in cohort.samples.iter().zip(groups.membership()) {
                match group {
                    Some(group) => sums[group.index()].add(sample),
                    None => n_without_group += 1,
                }
            }
            let groups_in_numbers = groups.levels().iter().zip(sums);
            AttributeSummary {
                name: groups.attribute().to_owned(),
                n_without_group,
                groups: groups_in_numbers
                    .map(|(level, sums)| GroupSummary { level: level.clone(), samples: sums.summary() })
                    .collect(),
            }
        };
        let mut total = Sums::default();
        cohort.samples.iter().for_each(|sample| total.add(sample));
        Self {
            name: cohort.name.clone(),
            time_unit: cohort.time_unit.clone(),
            n_read: exclusions.n_read(),
            excluded: exclusions.counts().into_iter().collect(),
            n_subjects: cohort.n_subjects(),
            total: total.summary(),
            attributes: attributes.all().iter().map(attribute).collect(),
            provenance: cohort.provenance.clone(),
        }
    }
}

impl fmt::Display for CohortSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_excluded: usize = self.excluded.values().sum();
        writeln!(f, "{}: {} rows read, {n_excluded} left out, {} people", self.name, self.n_read, self.n_subjects)?;
        let kind = self.provenance.as_ref().map(Provenance::outcome_kind).unwrap_or_default();
        match kind {
            OutcomeKind::Masks => writeln!(f, "{:<24} {:>9}", "", "samples")?,
            OutcomeKind::Class => writeln!(f, "{:<24} {:>9} {:>9}", "", "samples", "positive")?,
            OutcomeKind::Times => {
                let mean_of = format!("mean time ({})", self.time_unit);
                writeln!(f, "{:<24} {:>9} {:>9} {:>10} {:>20}", "", "samples", "events", "censored", mean_of)?;
            }
        }
        let line = |f: &mut fmt::Formatter<'_>, name: &str, samples| line(f, name, samples, kind);
        line(f, "all", &self.total)?;
        for attribute in &self.attributes {
            for group in &attribute.groups {
                line(f, &format!("{} {}", attribute.name, group.level), &group.samples)?;
            }
            if attribute.n_without_group > 0 {
                writeln!(f, "{:<24} {:>9}", format!("{} not known", attribute.name), attribute.n_without_group)?;
            }
        }
        if let Some(provenance) = &self.provenance {
            writeln!(f, "rule: {}", provenance.rule)?;
            for (key, value) in &provenance.options {
                writeln!(f, "  {key} = {value}")?;
            }
            writeln!(f, "content hash: {}", provenance.content_hash)?;
        }
        Ok(())
    }
}

/// One row of samples; a class has no times, and a mask neither times nor events.
fn line(f: &mut fmt::Formatter<'_>, name: &str, samples: &SamplesSummary, kind: OutcomeKind) -> fmt::Result {
    let SamplesSummary { n, n_events, .. } = samples;
    match kind {
        OutcomeKind::Masks => writeln!(f, "{name:<24} {n:>9}"),
        OutcomeKind::Class => writeln!(f, "{name:<24} {n:>9} {n_events:>9}"),
        OutcomeKind::Times => {
            let rate = samples.censoring_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", 100.0 * rate));
            let mean = samples.mean_time.map_or_else(|| "-".to_owned(), time_in_words);
            writeln!(f, "{name:<24} {n:>9} {n_events:>9} {rate:>10} {mean:>20}")
        }
    }
}

/// `3.4`; a number of more digits than the column has with its power of ten.
fn time_in_words(mean: f64) -> String {
    if mean.abs() < 1e9 { format!("{mean:.1}") } else { format!("{mean:.1e}") }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
pub(crate) mod tests {
    use super::*;
    use crate::cohort::Threshold;
    use crate::{Adapter as _, AttributeConfig, Generic, GenericConfig, build_cohort};

    pub(crate) fn summary() -> CohortSummary {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("films.csv");
        let rows = "a,1,2,1,60,F\nb,1,4,0,61,F\nc,2,6,1,61,\nd,3,,1,61,F\n";
        std::fs::write(&path, format!("image,subject_id,time,event,age,sex\n{rows}")).unwrap();
        let configs = [
            AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") },
            AttributeConfig { levels: Some(vec!["F".to_owned(), "M".to_owned()]), ..AttributeConfig::new("sex") },
        ];
        let read = Generic::new(GenericConfig::new(&path)).read().unwrap();
        let (cohort, exclusions) = build_cohort(read, &configs).unwrap();
        let fitted = FittedAttributes::fit(&configs, &cohort, &cohort.all_rows()).unwrap();
        CohortSummary::new(&cohort, &exclusions, &fitted)
    }

    #[test]
    fn everybody_and_every_group_is_counted() {
        let summary = summary();
        assert_eq!((summary.n_read, summary.n_subjects), (4, 2));
        assert_eq!(summary.excluded.into_iter().collect::<Vec<_>>(), [(Reason::MissingTime, 1)]);
        let total = SamplesSummary {
            n: 3,
            n_events: 2,
            n_competing: 0,
            censoring_rate: Some(1.0 / 3.0),
            mean_time: Some(4.0),
            mean_event_time: Some(4.0),
        };
        assert_eq!(summary.total, total);
        let [age, sex] = summary.attributes.as_slice() else { panic!("two attributes") };
        assert_eq!(age.groups[1].samples.mean_time, Some(5.0));
        assert_eq!(age.groups[1].samples.mean_event_time, Some(6.0));
        assert_eq!((sex.n_without_group, sex.groups[1].samples.n), (1, 0));
        assert_eq!(sex.groups[1].samples.mean_time, None, "an empty group has no mean");
    }

    #[test]
    fn the_summary_survives_json_and_is_shown_as_a_table() {
        let summary = summary();
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<CohortSummary>(&text).unwrap(), summary);
        assert!(text.contains("\"missing_time\":1") && text.contains("\"content-hash\":\""), "{text}");
        let shown = summary.to_string();
        assert!(shown.starts_with("films: 4 rows read, 1 left out, 2 people\n"), "{shown}");
        assert!(
            shown.contains("age > 60                         2         1     50.0 %                  5.0"),
            "{shown}"
        );
        assert!(shown.contains("sex not known                    1\n"), "{shown}");
    }
}
