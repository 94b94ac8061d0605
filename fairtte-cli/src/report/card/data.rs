//! The data of a card: who is in each part, which rows were left out, and where else the model was evaluated.

use fairtte_data::Part;
use fairtte_metrics::evaluation::GroupSummary;

use super::super::format::{count, short};
use super::super::groups_table::{GroupLine, lines_of};
use super::super::rows;
use super::super::tables::markdown::escape;
use super::super::tables::{Line, Table};
use super::super::verdict::percent_of;
use super::{Card, External, facts};

/// Who is in a part: all samples, then every group.
#[derive(Clone, Debug)]
pub(crate) enum Who {
    /// Where curves are predicted.
    Curves(Vec<GroupSummary>),
    /// Where a class is predicted.
    Class(Vec<ClassCount>),
}

/// The classes of one group (or of all: no attribute, no level).
#[derive(Clone, Debug)]
pub(crate) struct ClassCount {
    pub(crate) attribute: Option<String>,
    pub(crate) level: Option<String>,
    pub(crate) n: usize,
    pub(crate) n_subjects: usize,
    pub(crate) n_positive: usize,
    /// Censored by the horizon, without a class.
    pub(crate) n_without: usize,
}

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
        let Some((_, who)) = self.parts.iter().find(|(found, _)| *found == part) else { return String::new() };
        let use_of_part = match part {
            Part::Train => "train part, on which the model was fitted",
            Part::Validation => "validation part, on which the epoch was chosen",
            Part::Test => "test part, on which the model was evaluated",
        };
        let name = part.name().to_owned();
        let (header, lines, about) = match who {
            Who::Curves(groups) => {
                let mut header =
                    ["group", "n", "subjects", "events", "censored", "median follow-up"].map(str::to_owned).to_vec();
                if !self.time_unit.is_empty() {
                    header[5] = format!("{} ({})", header[5], self.time_unit);
                }
                let lines = lines_of(groups).into_iter().map(line);
                let counts: Vec<_> = groups.iter().map(|of| (of.attribute.as_deref(), of.n)).collect();
                (header, lines.chain(missing(&counts)).collect(), " Median follow-up: reverse Kaplan-Meier.")
            }
            Who::Class(groups) => {
                let header = ["group", "n", "subjects", "positive", "negative", "no class", "share positive"];
                let counts: Vec<_> = groups.iter().map(|of| (of.attribute.as_deref(), of.n)).collect();
                let lines = lines_of_class(groups).into_iter().chain(missing(&counts)).collect();
                (header.map(str::to_owned).to_vec(), lines, " Share positive: of the samples with a class.")
            }
        };
        let caption = format!("Who is in the {use_of_part}.{about}");
        format!("\n{}", Table { name, caption, header, lines }.markdown())
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

/// The whole part, then every attribute with its groups.
fn lines_of_class(groups: &[ClassCount]) -> Vec<Line> {
    let mut lines = Vec::new();
    for groups in groups.chunk_by(|a, b| a.attribute == b.attribute) {
        lines.extend(groups[0].attribute.clone().map(Line::Heading));
        lines.extend(groups.iter().map(|of| {
            let n_known = of.n - of.n_without;
            let share = (n_known > 0).then(|| percent_of(of.n_positive as f64 / n_known as f64));
            let counts = [of.n, of.n_subjects, of.n_positive, n_known - of.n_positive, of.n_without];
            let name = of.level.clone().unwrap_or_else(|| "all".to_owned());
            let cells = std::iter::once(name).chain(counts.map(|n| n.to_string()));
            let cells = cells.chain([share.unwrap_or_else(|| "none".to_owned())]).collect();
            Line::Cells { cells, indented: of.attribute.is_some(), remarks: Vec::new() }
        }));
    }
    lines
}

/// A note for every attribute that some samples do not have; attribute and number of samples of all, then of every group.
fn missing(counts: &[(Option<&str>, usize)]) -> Vec<Line> {
    let Some(((_, n_all), groups)) = counts.split_first() else { return Vec::new() };
    let of_attribute = groups.chunk_by(|a, b| a.0 == b.0);
    let note = |groups: &[(Option<&str>, usize)]| {
        let n = n_all - groups.iter().map(|(_, n)| n).sum::<usize>().min(*n_all);
        let attribute = groups[0].0?;
        (n > 0).then(|| Line::Note(format!("Samples in no group of {attribute}: {n}.")))
    };
    of_attribute.filter_map(note).collect()
}

fn about(external: &External) -> String {
    let report = &external.report;
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let part = if external.part == "all" { String::new() } else { format!("{} part, ", external.part) };
    let horizon = report.horizon.map_or_else(|| "no horizon".to_owned(), |time| format!("horizon {}", short(time)));
    let at = match &report.class {
        Some(class) => format!("threshold: {}", short(class.threshold)),
        None => format!("evaluation times: {}; {horizon}", rows::window(report, "")),
    };
    format!(
        "{part}{samples} of {subjects}, {}; {at}; intervals: {}{}",
        rows::events(report),
        rows::bootstrap(&report.settings),
        external.shown_by.as_ref().map_or_else(String::new, |by| format!("; {by}"))
    )
}
