//! The results of a study as one long table: a row per place of the manifest, epoch, part, metric and group.
//!
//! It is a function of the manifest and of the scores alone: no times, no machines, no order of arrival.

use std::path::Path;

use fairtte_data::table::{ColumnValues, write_parquet};

use super::cells::AXES;
use super::plan::{Plan, Planned};
use super::scores::{MetricScores, Number, Scores};
use crate::CliError;
use crate::run_folder::read_json;

/// The table, by column.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Place in the manifest of every row.
    place: Vec<usize>,
    epoch: Vec<i64>,
    rules: Vec<String>,
    part: Vec<String>,
    metric: Vec<String>,
    of: Vec<String>,
    group: Vec<String>,
    value: Vec<f64>,
    n: Vec<Option<i64>>,
    n_events: Vec<Option<i64>>,
    reason: Vec<String>,
    /// The columns of the manifest, by place.
    manifest: Vec<(String, Vec<Option<String>>)>,
    ids: Vec<String>,
    trials: Vec<i64>,
}

impl Results {
    /// Reads the scores of all finished trials. A training that several places share has rows for each of them.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if scores cannot be read.
    pub(crate) fn gather(plan: &Plan, planned: &[Planned]) -> Result<Self, CliError> {
        let mut results = Self { manifest: manifest(plan, planned), ..Self::default() };
        for (place, Planned { id, .. }) in planned.iter().enumerate() {
            results.ids.push(id.clone());
            results.trials.push(whole(plan.place(place).1 + 1));
            let path = plan.folder().trial(id).scores();
            if path.exists() {
                let attribute = &plan.cells()[plan.place(place).0].attribute;
                results.add(place, attribute, &read_json(&path)?);
            }
        }
        Ok(results)
    }

    /// Number of rows.
    pub(crate) fn n(&self) -> usize {
        self.place.len()
    }

    /// The rows of a trial: everybody, and the groups of the cell's attribute.
    fn add(&mut self, place: usize, attribute: &str, scores: &Scores) {
        for kept in &scores.kept {
            for part in &kept.parts {
                for metric in &part.metrics {
                    let at =
                        |of: &'static str, group: &str| Row { place, epoch: kept.epoch, of, group: group.to_owned() };
                    let context = (kept.rules.join(" "), part.part.as_str(), metric);
                    self.push(at("all", ""), &context, &metric.overall, Some((part.n, part.n_events)));
                    let Some(of) = metric.attributes.iter().find(|of| of.attribute == attribute) else { continue };
                    for group in &of.groups {
                        self.push(at("group", &group.level), &context, &group.value, Some((group.n, group.n_events)));
                    }
                    self.push(at("gap", ""), &context, &of.gap, None);
                    self.push(at("worst", ""), &context, &of.worst, None);
                    self.push(at("equity-scaling", ""), &context, &of.equity_scaling, None);
                }
            }
        }
    }

    fn push(
        &mut self,
        row: Row,
        (rules, part, metric): &(String, &str, &MetricScores),
        number: &Number,
        counts: Option<(usize, usize)>,
    ) {
        self.place.push(row.place);
        self.epoch.push(whole(row.epoch));
        self.rules.push(rules.clone());
        self.part.push((*part).to_owned());
        self.metric.push(metric.metric.clone());
        self.of.push(row.of.to_owned());
        self.group.push(row.group);
        // An undefined value is written as a missing one; NaN marks it until then.
        self.value.push(number.value.unwrap_or(f64::NAN));
        self.n.push(counts.map(|(n, _)| whole(n)));
        self.n_events.push(counts.map(|(_, n_events)| whole(n_events)));
        self.reason.push(number.undefined.clone().unwrap_or_default());
    }

    /// Writes the table as Parquet.
    ///
    /// # Errors
    /// [`CliError::Data`] if the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let words = |all: &'_ [String]| ColumnValues::Text(all.iter().map(|word| Some(word.clone())).collect());
        let mut columns = vec![
            ("index".to_owned(), ColumnValues::Integer(self.place.iter().map(|place| whole(*place)).collect())),
            (
                "id".to_owned(),
                ColumnValues::Text(self.place.iter().map(|place| Some(self.ids[*place].clone())).collect()),
            ),
            ("trial".to_owned(), ColumnValues::Integer(self.place.iter().map(|place| self.trials[*place]).collect())),
        ];
        for (name, values) in &self.manifest {
            let of_rows = self.place.iter().map(|place| values[*place].clone()).collect();
            columns.push((name.clone(), ColumnValues::Text(of_rows)));
        }
        columns.extend([
            ("epoch".to_owned(), ColumnValues::Integer(self.epoch.clone())),
            ("kept-by".to_owned(), words(&self.rules)),
            ("part".to_owned(), words(&self.part)),
            ("metric".to_owned(), words(&self.metric)),
            ("of".to_owned(), words(&self.of)),
            ("group".to_owned(), words(&self.group)),
            (
                "value".to_owned(),
                ColumnValues::OptionalNumber(self.value.iter().map(|v| v.is_finite().then_some(*v)).collect()),
            ),
            ("n".to_owned(), ColumnValues::OptionalInteger(self.n.clone())),
            ("n-events".to_owned(), ColumnValues::OptionalInteger(self.n_events.clone())),
            ("reason".to_owned(), words(&self.reason)),
        ]);
        Ok(write_parquet(path, columns, &[])?)
    }
}

struct Row {
    place: usize,
    epoch: usize,
    of: &'static str,
    group: String,
}

#[expect(clippy::cast_possible_wrap, reason = "counts are far smaller")]
fn whole(n: usize) -> i64 {
    n as i64
}

/// The axes and the searched keys, by place.
fn manifest(plan: &Plan, planned: &[Planned]) -> Vec<(String, Vec<Option<String>>)> {
    let cell = |place: usize| &plan.cells()[plan.place(place).0];
    let axis = |axis: &&str| {
        let words = (0..planned.len()).map(|place| cell(place).word(axis, plan.study()));
        ((*axis).to_owned(), words.collect())
    };
    let key = |key: &String| {
        let drawn = |planned: &Planned| planned.draws.iter().find(|(name, _)| name == key).map(|(_, v)| v.to_string());
        (key.clone(), planned.iter().map(drawn).collect())
    };
    AXES.iter().map(axis).chain(plan.study().search.keys().map(key)).collect()
}
