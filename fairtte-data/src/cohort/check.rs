//! Compares a cohort with Table A1 of the paper (images, censoring rate and mean time, for all samples and every
//! group).
//!
//! The paper's "Mean TTE" is the mean over observed events, not over all images: of MIMIC-CXR, the means of the groups
//! (503.3 and 484.2 days by age) give the 488.6 days of the total only if weighted by their events, and likewise by sex
//! and race. A count agrees if it is the same; a rate or a mean agrees if it rounds to the printed decimal.
//! ADNI's times are half-years and are compared in months.

use std::fmt;

use serde::Serialize;

use crate::cohort::{CohortSummary, SamplesSummary};

/// One row of Table A1: the attribute and the number of its group (none for the total), images, censoring rate in
/// percent, mean time to event.
type Row = (Option<(&'static str, usize)>, usize, f64, f64);

/// One data set of Table A1.
struct Published {
    /// Name of the adapter.
    adapter: &'static str,
    /// Unit of the mean times.
    time_unit: &'static str,
    rows: &'static [Row],
}

const TABLE_A1: [Published; 3] = [
    Published {
        adapter: "areds",
        time_unit: "years",
        rows: &[
            (None, 129_708, 83.9, 4.4),
            (Some(("age", 0)), 44_224, 83.1, 5.1),
            (Some(("age", 1)), 85_484, 84.4, 3.9),
            (Some(("sex", 0)), 71_837, 83.0, 4.4),
            (Some(("sex", 1)), 57_871, 85.1, 4.3),
            (Some(("race", 0)), 4_888, 99.2, 3.1),
            (Some(("race", 1)), 124_820, 83.3, 4.4),
        ],
    },
    Published {
        adapter: "mimic-cxr",
        time_unit: "days",
        rows: &[
            (None, 269_360, 61.7, 488.6),
            (Some(("age", 0)), 103_437, 77.3, 503.3),
            (Some(("age", 1)), 165_923, 52.0, 484.2),
            (Some(("sex", 0)), 125_742, 63.9, 514.4),
            (Some(("sex", 1)), 143_618, 59.7, 468.4),
            (Some(("race", 0)), 83_234, 66.7, 487.2),
            (Some(("race", 1)), 186_126, 59.4, 489.1),
        ],
    },
    Published {
        adapter: "adni",
        time_unit: "months",
        rows: &[
            (None, 2_227, 63.2, 35.9),
            (Some(("age", 0)), 1_597, 62.2, 37.1),
            (Some(("age", 1)), 630, 65.7, 32.6),
            (Some(("sex", 0)), 986, 64.7, 38.5),
            (Some(("sex", 1)), 1_241, 62.0, 33.9),
        ],
    },
];

/// The quantity compared in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Number of images.
    Images,
    /// Images without observed event, in percent.
    CensoringRate,
    /// Mean time of the images with an observed event.
    MeanTime,
}

/// One number of the paper and that of the cohort.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CheckLine {
    /// `total`, or attribute and level: `age > 60`.
    pub group: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The number in the paper.
    pub expected: f64,
    /// The number of the cohort; absent if the cohort has no such group or no sample for it.
    pub found: Option<f64>,
    /// Found minus expected.
    pub difference: Option<f64>,
    /// Whether the numbers agree to the last printed digit.
    pub agrees: bool,
}

/// The comparison of a cohort with Table A1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CohortCheck {
    /// Name of the data set.
    pub name: String,
    /// Unit of the mean times.
    pub time_unit: String,
    /// Every number that the paper gives.
    pub lines: Vec<CheckLine>,
}

/// Compares `summary` with Table A1; `None` if its data set is not in the table.
///
/// The data set is identified by the adapter that made the cohort.
///
/// ```
/// # fn check(summary: fairtte_data::cohort::CohortSummary) {
/// if let Some(check) = fairtte_data::cohort::compare_with_paper(&summary) {
///     println!("{check}");
/// }
/// # }
/// ```
pub fn compare_with_paper(summary: &CohortSummary) -> Option<CohortCheck> {
    let adapter = &summary.provenance.as_ref()?.adapter;
    let published = TABLE_A1.iter().find(|published| published.adapter == adapter)?;
    // Half a year is six months; the other sets are in the unit of the table.
    let factor = if published.time_unit == "months" && summary.time_unit != "months" { 6.0 } else { 1.0 };
    let lines = published.rows.iter().flat_map(|row| lines(summary, row, factor)).collect();
    Some(CohortCheck { name: summary.name.clone(), time_unit: published.time_unit.to_owned(), lines })
}

fn lines(summary: &CohortSummary, row: &Row, factor: f64) -> [CheckLine; 3] {
    let (group, n, rate, mean) = *row;
    let (name, samples): (String, Option<&SamplesSummary>) = match group {
        None => ("total".to_owned(), Some(&summary.total)),
        Some((attribute, number)) => {
            let found = summary.attributes.iter().find(|other| other.name == attribute);
            let found = found.and_then(|attribute| attribute.groups.get(number));
            let level = found.map_or_else(|| format!("group {number}"), |group| group.level.clone());
            (format!("{attribute} {level}"), found.map(|group| &group.samples))
        }
    };
    let line = |quantity, expected: f64, found: Option<f64>| {
        let difference = found.map(|found| found - expected);
        // Half a unit of the printed decimal, plus the rounding error of a sum.
        let slack = if quantity == Quantity::Images { 0.0 } else { 0.05 + 1e-9 };
        let agrees = difference.is_some_and(|difference| difference.abs() <= slack);
        CheckLine { group: name.clone(), quantity, expected, found, difference, agrees }
    };
    [
        line(Quantity::Images, n as f64, samples.map(|samples| samples.n as f64)),
        line(Quantity::CensoringRate, rate, samples.and_then(|s| s.censoring_rate).map(|rate| 100.0 * rate)),
        line(Quantity::MeanTime, mean, samples.and_then(|s| s.mean_event_time).map(|mean| factor * mean)),
    ]
}

impl CohortCheck {
    /// Whether every number agrees.
    pub fn agrees(&self) -> bool {
        self.lines.iter().all(|line| line.agrees)
    }
}

impl fmt::Display for CohortCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} beside Table A1 of the paper", self.name)?;
        writeln!(f, "{:<18} {:<22} {:>9} {:>9} {:>10}", "", "", "paper", "here", "difference")?;
        for line in &self.lines {
            let (what, decimals) = match line.quantity {
                Quantity::Images => ("images".to_owned(), 0),
                Quantity::CensoringRate => ("censored (%)".to_owned(), 1),
                Quantity::MeanTime => (format!("mean time ({})", self.time_unit), 1),
            };
            let number =
                |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"));
            let difference = match line.difference {
                _ if line.agrees => "same".to_owned(),
                Some(difference) => format!("{difference:+.decimals$}"),
                None => "-".to_owned(),
            };
            let (expected, found) = (number(Some(line.expected)), number(line.found));
            writeln!(f, "{:<18} {what:<22} {expected:>9} {found:>9} {difference:>10}", line.group)?;
        }
        let n_other = self.lines.iter().filter(|line| !line.agrees).count();
        match n_other {
            0 => writeln!(f, "all {} numbers agree", self.lines.len()),
            _ => writeln!(f, "{n_other} of {} numbers differ", self.lines.len()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::cohort::summary::tests::summary;
    use crate::cohort::{AttributeSummary, GroupSummary};

    /// A summary that has the numbers of the table.
    fn published(adapter: &str, time_unit: &str, factor: f64) -> CohortSummary {
        let mut summary = summary();
        summary.provenance.as_mut().unwrap().adapter = adapter.to_owned();
        time_unit.clone_into(&mut summary.time_unit);
        summary.attributes.clear();
        for &(group, n, rate, mean) in TABLE_A1.iter().find(|p| p.adapter == adapter).unwrap().rows {
            let samples = SamplesSummary {
                n,
                n_events: 0,
                n_competing: 0,
                censoring_rate: Some(rate / 100.0),
                mean_time: None,
                mean_event_time: Some(mean / factor),
            };
            let Some((attribute, number)) = group else {
                summary.total = samples;
                continue;
            };
            if number == 0 {
                let attribute = AttributeSummary { name: attribute.to_owned(), n_without_group: 0, groups: Vec::new() };
                summary.attributes.push(attribute);
            }
            let level = format!("level {number}");
            summary.attributes.last_mut().unwrap().groups.push(GroupSummary { level, samples });
        }
        summary
    }

    #[test]
    fn the_numbers_of_the_paper_agree_with_themselves() {
        for (adapter, unit, factor, n) in [
            ("areds", "years", 1.0, 21),
            ("mimic-cxr", "days", 1.0, 21),
            ("adni", "half-years", 6.0, 15),
            ("adni", "months", 1.0, 15),
        ] {
            let check = compare_with_paper(&published(adapter, unit, factor)).unwrap();
            assert!(check.agrees() && check.lines.len() == n, "{check}");
            assert!(check.to_string().ends_with(&format!("all {n} numbers agree\n")));
        }
    }

    #[test]
    fn the_groups_of_every_attribute_add_up_to_the_total_of_the_paper() {
        for published in &TABLE_A1 {
            let (_, n, rate, mean) = published.rows[0];
            for attribute in ["age", "sex", "race"] {
                let groups = published.rows.iter().filter(|row| row.0.is_some_and(|(name, _)| name == attribute));
                let groups: Vec<&Row> = groups.collect();
                if groups.is_empty() {
                    continue;
                }
                assert_eq!(groups.iter().map(|row| row.1).sum::<usize>(), n, "{attribute}");
                let events = |row: &&Row| row.1 as f64 * (1.0 - row.2 / 100.0);
                let n_events: f64 = groups.iter().map(events).sum();
                assert!((100.0 * (1.0 - n_events / n as f64) - rate).abs() < 0.11, "{attribute}");
                let sum: f64 = groups.iter().map(|row| events(row) * row.3).sum();
                assert!(
                    (sum / n_events - mean).abs() < 0.1,
                    "{} by {attribute}: {}",
                    published.adapter,
                    sum / n_events
                );
            }
        }
    }

    #[test]
    fn what_differs_is_shown_with_its_difference() {
        let mut summary = published("mimic-cxr", "days", 1.0);
        summary.total.n = 269_300;
        summary.attributes[0].groups[1].samples.censoring_rate = Some(0.523);
        summary.attributes.pop();
        let check = compare_with_paper(&summary).unwrap();
        assert_eq!(check.lines.iter().filter(|line| !line.agrees).count(), 2 + 6);
        let shown = check.to_string();
        assert!(
            shown.contains("total              images                    269360    269300        -60\n"),
            "{shown}"
        );
        assert!(
            shown.contains("age level 1        censored (%)                52.0      52.3       +0.3\n"),
            "{shown}"
        );
        assert!(
            shown.contains("race group 1       images                    186126         -          -\n"),
            "{shown}"
        );
        assert!(shown.ends_with("8 of 21 numbers differ\n"), "{shown}");
    }

    #[test]
    fn other_data_sets_are_not_in_the_table() {
        assert_eq!(compare_with_paper(&summary()), None);
    }
}
