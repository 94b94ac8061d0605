//! Rows that did not become samples: their identities, reasons and counts. Rows read = rows kept + rows excluded,
//! always.

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_metrics::SampleId;
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::Reason;
use crate::cohort::reason::Step;
use crate::table::{ColumnValues, Table, write_csv};

/// One row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Identity of the sample, or `row 17` if it has none.
    pub sample_id: SampleId,
    /// The reason.
    pub reason: Reason,
    /// One sentence with the place (file and row) or the message of the decoder.
    pub source: String,
}

/// All rows left out of a cohort, and how many rows were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusions {
    n_read: usize,
    list: Vec<Exclusion>,
    expected: Vec<Reason>,
}

/// One box of the exclusion flow: what remains after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowStep {
    /// The property of the kept rows, for example `with time and event`.
    pub label: String,
    /// Rows that remain after this step.
    pub n_kept: usize,
    /// Rows left out at this step.
    pub n_excluded: usize,
    /// Reason codes of this step with their counts, none of them 0.
    pub reasons: Vec<(&'static str, usize)>,
}

impl Exclusions {
    /// An empty list for `n_read` rows.
    pub fn new(n_read: usize) -> Self {
        Self { n_read, list: Vec::new(), expected: Vec::new() }
    }

    /// The same list for a data set that leaves out rows for `reasons`, given in the order in which they are checked:
    /// their steps are in the flow in this order, even if no row was lost.
    #[must_use]
    pub fn expecting(mut self, reasons: &[Reason]) -> Self {
        self.expected = reasons.to_vec();
        self
    }

    /// Adds one row.
    pub fn push(&mut self, exclusion: Exclusion) {
        self.list.push(exclusion);
    }

    /// Adds the rows of a later step.
    pub fn extend(&mut self, exclusions: impl IntoIterator<Item = Exclusion>) {
        self.list.extend(exclusions);
    }

    /// Rows read.
    pub fn n_read(&self) -> usize {
        self.n_read
    }

    /// Rows excluded.
    pub fn n(&self) -> usize {
        self.list.len()
    }

    /// The rows, in the order in which they were excluded.
    pub fn list(&self) -> &[Exclusion] {
        &self.list
    }

    /// Number of rows per reason, in the order of the steps; reasons without a row are absent.
    pub fn counts(&self) -> Vec<(Reason, usize)> {
        let mut counts = BTreeMap::new();
        for exclusion in &self.list {
            *counts.entry(exclusion.reason).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The reasons with their counts as text, for example `missing_time 2, image_empty 1`; `none` if there are none.
    pub fn summary(&self) -> String {
        let counts: Vec<String> = self.counts().iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    }

    /// Checks that `n_kept` rows kept and the rows excluded make up the rows read.
    ///
    /// # Errors
    /// [`DataError::RowsUnaccounted`] if they do not.
    pub fn check(&self, n_kept: usize) -> Result<(), DataError> {
        if n_kept + self.n() == self.n_read {
            return Ok(());
        }
        Err(DataError::RowsUnaccounted { n_read: self.n_read, n_kept, n_excluded: self.n() })
    }

    /// The flow from rows read to rows kept: `rows read`, then one entry per step of this data set, in the order of
    /// the expected reasons, even if no row was lost. Unexpected steps follow in the order of [`Reason`].
    /// Decoding images is the last step of every data set; where the class is made from times, leaving out those without one
    /// comes after it.
    pub fn flow(&self) -> Vec<FlowStep> {
        let counts = self.counts();
        let seen = counts.iter().map(|(reason, _)| *reason);
        let mut steps: Vec<Step> = Vec::new();
        for step in self.expected.iter().copied().chain(seen).map(Reason::step) {
            if !matches!(step, Step::Image | Step::Class) && !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps.push(Step::Image);
        steps.extend(counts.iter().any(|(reason, _)| reason.step() == Step::Class).then_some(Step::Class));
        let mut n_kept = self.n_read;
        let start = FlowStep { label: "rows read".to_owned(), n_kept, n_excluded: 0, reasons: Vec::new() };
        let mut flow = vec![start];
        for step in steps {
            let here = counts.iter().filter(|(reason, _)| reason.step() == step);
            let reasons: Vec<_> = here.map(|(reason, n)| (reason.code(), *n)).collect();
            let n_excluded: usize = reasons.iter().map(|(_, n)| n).sum();
            n_kept = n_kept.saturating_sub(n_excluded);
            flow.push(FlowStep { label: step.label().to_owned(), n_kept, n_excluded, reasons });
        }
        flow
    }

    /// The flow of data without images, or of tables read alone: it has no step for decoding images.
    pub fn flow_of_tables(&self) -> Vec<FlowStep> {
        let mut flow = self.flow();
        flow.retain(|step| step.label != Step::Image.label() || step.n_excluded > 0);
        for step in flow.iter_mut().filter(|step| step.label == Step::Identity.label()) {
            "with sample and subject".clone_into(&mut step.label);
        }
        flow
    }

    /// Writes `sample_id,reason,source`, one line per row, atomically.
    ///
    /// # Errors
    /// [`DataError::Write`] naming `path`.
    pub fn write_csv<'a>(&'a self, path: &Path) -> Result<(), DataError> {
        let column = |text: &dyn Fn(&'a Exclusion) -> &'a str| {
            ColumnValues::Borrowed(self.list.iter().map(|exclusion| Some(text(exclusion))).collect())
        };
        let columns = vec![
            ("sample_id".to_owned(), column(&|e| e.sample_id.as_str())),
            ("reason".to_owned(), column(&|e| e.reason.code())),
            ("source".to_owned(), column(&|e| &e.source)),
        ];
        write_csv(path, columns)
    }

    /// Reads what [`write_csv`](Self::write_csv) wrote beside a cohort of `n_kept` samples, of a data set that leaves
    /// out rows for `expected`, according to the provenance of the cohort.
    ///
    /// # Errors
    /// [`DataError::InvalidCell`] for an unknown reason, and what [`Table::read`] returns.
    pub fn read_csv(path: &Path, n_kept: usize, expected: &[Reason]) -> Result<Self, DataError> {
        let table = Table::read(path)?;
        let cells = table.text("sample_id")?.into_iter().zip(table.text("reason")?).zip(table.text("source")?);
        let mut list = Vec::with_capacity(table.n_rows());
        for (index, ((sample, reason), source)) in cells.enumerate() {
            let (sample, code) = (sample.unwrap_or_default(), reason.unwrap_or_default());
            let reason = Reason::ALL.into_iter().find(|reason| reason.code() == code);
            let reason = reason.ok_or_else(|| DataError::InvalidCell {
                column: "reason".to_owned(),
                sample: sample.clone(),
                value: format!("\"{code}\""),
                expected: "a reason code",
                place: table.place(index),
            })?;
            list.push(Exclusion { sample_id: sample.into(), reason, source: source.unwrap_or_default() });
        }
        Ok(Self { n_read: n_kept + list.len(), list, expected: expected.to_vec() })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn exclusion(sample: &str, reason: Reason) -> Exclusion {
        Exclusion { sample_id: sample.into(), reason, source: format!("why, \"{sample}\"") }
    }

    fn three_of_ten() -> Exclusions {
        let mut exclusions = Exclusions::new(10).expecting(&[Reason::MissingSubject, Reason::MissingTime]);
        exclusions.extend([
            exclusion("c", Reason::ImageEmpty),
            exclusion("a", Reason::MissingTime),
            exclusion("b", Reason::MissingTime),
        ]);
        exclusions
    }

    #[test]
    fn the_flow_counts_every_row_once_in_the_order_of_the_steps() {
        let flow = three_of_ten().flow();
        let kept: Vec<_> = flow.iter().map(|step| (step.n_kept, step.n_excluded)).collect();
        assert_eq!(kept, [(10, 0), (10, 0), (8, 2), (7, 1)]);
        assert_eq!(flow[2].reasons, [("missing_time", 2)]);
        assert_eq!(three_of_ten().summary(), "missing_time 2, image_empty 1");
    }

    #[test]
    fn a_row_that_vanished_is_an_error() {
        three_of_ten().check(7).unwrap();
        let message = three_of_ten().check(6).unwrap_err().to_string();
        assert_eq!(message, "10 rows were read but 6 kept and 3 excluded, expected kept + excluded = read");
    }

    #[test]
    fn the_list_is_written_with_quotes_where_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exclusions.csv");
        three_of_ten().write_csv(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().next(), Some("sample_id,reason,source"));
        assert_eq!(text.lines().nth(1), Some("c,image_empty,\"why, \"\"c\"\"\""));
    }

    #[test]
    fn codes_in_json_are_the_codes_in_the_table() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{}\"", reason.code()));
        }
    }

    #[test]
    fn the_order_of_the_reasons_is_the_order_of_their_steps() {
        let steps: Vec<Step> = Reason::ALL.into_iter().map(Reason::step).collect();
        assert!(steps.is_sorted());
        let reasons: std::collections::BTreeSet<Reason> = Reason::ALL.into_iter().collect();
        assert!(reasons.into_iter().eq(Reason::ALL), "every reason is in the list once");
    }

    #[test]
    fn a_data_set_shows_its_own_steps_only() {
        let labels =
            |exclusions: Exclusions| -> Vec<String> { exclusions.flow().into_iter().map(|s| s.label).collect() };
        let chest = [Reason::DuplicateDicomId, Reason::AfterDeath, Reason::NoPatient];
        let expected =
            ["rows read", "listed once", "taken before death", "of a subject with records", "with a readable image"];
        assert_eq!(labels(Exclusions::new(3).expecting(&chest)), expected, "in the order given");
        let brain = [Reason::ImageMissing, Reason::NotMri, Reason::MissingSubject, Reason::MissingDate];
        let mut exclusions = Exclusions::new(3).expecting(&brain);
        exclusions.extend([exclusion("a", Reason::FinalVisit), exclusion("b", Reason::DuplicateImageId)]);
        let expected = [
            "rows read",
            "of the kind that is studied",
            "with sample, subject and image path",
            "listed once",
            "before the event and with follow-up",
            "with a readable image",
        ];
        assert_eq!(labels(exclusions), expected, "then the unexpected ones; images come last");
        assert_eq!(labels(Exclusions::new(3)), ["rows read", "with a readable image"]);
        assert_eq!(Exclusions::new(3).flow_of_tables().len(), 1, "no step for images");
    }

    #[test]
    fn a_written_list_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exclusions.csv");
        for exclusions in [three_of_ten(), Exclusions::new(10)] {
            exclusions.write_csv(&path).unwrap();
            let read = Exclusions::read_csv(&path, 10 - exclusions.n(), &exclusions.expected).unwrap();
            assert_eq!((read.flow(), &read), (exclusions.flow(), &exclusions));
        }
        std::fs::write(&path, "sample_id,reason,source\nx,bad_luck,\n").unwrap();
        let error = Exclusions::read_csv(&path, 1, &[]).unwrap_err().to_string();
        assert!(error.starts_with("reason of sample \"x\" is \"bad_luck\", expected a reason code ("), "{error}");
    }
}
