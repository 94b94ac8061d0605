//! The data of a card: who is in each part, which rows were left out, and where else the model was evaluated.

use fairtte_data::Part;
use fairtte_metrics::evaluation::GroupSummary;

use super::super::format::{count, short};
use super::super::groups_table::{GroupLine, lines_of};
use super::super::rows;
use super::super::tables::markdown::escape;
use super::super::tables::{Line, Table};
use super::{Card, External, facts};

impl Card<'_> {
    pub(super) fn evaluation_data(&self) -> String {
        let mut text = "## Evaluation data\n\n".to_owned();
        text += &self.paragraphs(&[("Motivation", "evaluation-data")]);
        text.extend([format!(
            "\n**Internal validation.** The test part of the data described below under training data ({}). Nothing was fitted \
             or chosen on it.\n",
            escape(self.split)
        )]);
        text += &self.who(Part::Test);
        if self.externals.is_empty() {
            return text + "\n**External validation.** None was given to this card.\n";
        }
        text += "\n**External validation.** Evaluations on other data:\n\n";
        for external in self.externals {
            text.extend([format!("- **{}**: {}\n", escape(&external.name), escape(&about(external)))]);
        }
        text
    }

    pub(super) fn training_data(&self) -> String {
        let mut text = "## Training data\n\n".to_owned();
        text += &self.paragraphs(&[("Source", "training-data")]);
        text.extend([format!("\n{}", facts(self.data))]);
        text.extend([format!("- **parts**: {}\n", escape(self.split))]);
        if let Some(shift) = self.shift {
            text.extend([format!(
                "\n**Distribution shift.** Training samples were changed on purpose: {}. The tables below are without this \
                 change.\n",
                escape(shift.trim_end_matches('.'))
            )]);
        }
        text += &self.who(Part::Train);
        text += &self.who(Part::Validation);
        if !self.flow.is_empty() {
            text.extend([format!("\n{}", self.flow_table().markdown())]);
        }
        text
    }

    /// The table of one part.
    fn who(&self, part: Part) -> String {
        let Some((_, groups)) = self.parts.iter().find(|(found, _)| *found == part) else { return String::new() };
        let use_of_part = match part {
            Part::Train => "train part, on which the model was fitted",
            Part::Validation => "validation part, on which the epoch was chosen",
            Part::Test => "test part, on which the model was evaluated",
        };
        let mut header =
            ["group", "n", "subjects", "events", "censored", "median follow-up"].map(str::to_owned).to_vec();
        if !self.time_unit.is_empty() {
            header[5] = format!("{} ({})", header[5], self.time_unit);
        }
        let lines = lines_of(groups).into_iter().map(line).chain(missing(groups)).collect();
        let caption = format!("Who is in the {use_of_part}. Median follow-up: reverse Kaplan-Meier.");
        format!("\n{}", Table { name: part.name().to_owned(), caption, header, lines }.markdown())
    }

    fn flow_table(&self) -> Table {
        let line = |step: &super::FlowRow| {
            let reasons: Vec<String> = step.reasons.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
            let cells = vec![
                step.label.clone(),
                step.n_kept.to_string(),
                step.n_excluded.to_string(),
                if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") },
            ];
            Line::Cells { cells, indented: false, remarks: Vec::new() }
        };
        Table {
            name: "flow".to_owned(),
            caption: "From the rows read to the samples of all parts.".to_owned(),
            header: ["step", "kept", "left out", "reasons"].map(str::to_owned).to_vec(),
            lines: self.flow.iter().map(line).collect(),
        }
    }
}

fn line(line: GroupLine) -> Line {
    if line.kind == "attribute" {
        return Line::Heading(line.name);
    }
    let numbers = [line.n, line.subjects, line.events].map(|n| n.to_string());
    let cells = std::iter::once(line.name).chain(numbers).chain([line.censored, line.follow_up]).collect();
    Line::Cells { cells, indented: line.kind == "group", remarks: Vec::new() }
}

/// A note for every attribute that some samples do not have.
fn missing(groups: &[GroupSummary]) -> Vec<Line> {
    let Some((all, groups)) = groups.split_first() else { return Vec::new() };
    let of_attribute = groups.chunk_by(|a, b| a.attribute == b.attribute);
    let note = |groups: &[GroupSummary]| {
        let n = all.n - groups.iter().map(|group| group.n).sum::<usize>().min(all.n);
        let attribute = groups[0].attribute.as_deref()?;
        (n > 0).then(|| Line::Note(format!("Samples in no group of {attribute}: {n}.")))
    };
    of_attribute.filter_map(note).collect()
}

fn about(external: &External) -> String {
    let report = &external.report;
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let part = if external.part == "all" { String::new() } else { format!("{} part, ", external.part) };
    let horizon = report.horizon.map_or_else(|| "no horizon".to_owned(), |time| format!("horizon {}", short(time)));
    format!(
        "{part}{samples} of {subjects}, {}; evaluation times: {}; {horizon}; intervals: {}{}",
        count(report.n_events, "event"),
        rows::window(report, ""),
        rows::bootstrap(&report.settings),
        external.shown_by.as_ref().map_or_else(String::new, |by| format!("; {by}"))
    )
}
