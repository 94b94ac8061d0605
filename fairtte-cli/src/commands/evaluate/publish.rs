//! The output of an evaluation: the numbers as JSON, the page, and the table on the terminal.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use fairtte_data::Part;
use fairtte_data::predictions::CurveRepairs;
use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::Coverage;
use fairtte_records::Warning;
use serde::Serialize;

use super::super::exports::{exported, write_exports};
use super::super::print;
use super::{Outputs, Shown};
use crate::CliError;
use crate::args::Exports;
use crate::baseline::Baseline;
use crate::progress::say;
use crate::report::{
    Page, Table, flat, render_baseline, render_page, render_sensitivity, render_table, tables_of_page,
};
use crate::run_file::RunFile;
use crate::run_folder::{RunFolder, write_text};
use crate::sensitivity::Sensitivity;

/// Columns of the table on the terminal, which fits the usual window.
pub(super) const TERMINAL_WIDTH: usize = 80;

/// The paths of the page and the numbers; the flat table is beside the numbers.
pub(super) struct Target {
    evaluation: PathBuf,
    report: PathBuf,
    /// Whether the numbers of every sample are written too, as only an evaluation of masks does.
    has_samples: bool,
    exports: Exports,
}

impl Target {
    /// The usual names for a part in a folder.
    pub(super) fn in_folder(folder: &RunFolder, part: Part) -> Self {
        Self::new(folder.evaluation(part), folder.report(part))
    }

    fn new(evaluation: PathBuf, report: PathBuf) -> Self {
        Self { evaluation, report, has_samples: false, exports: Exports::default() }
    }

    /// The paths for `--output`: a name ending in `.html` is the page itself, any other is a folder.
    pub(super) fn named(output: &Path, part: Part) -> Self {
        Self::page(output).unwrap_or_else(|| Self::in_folder(&RunFolder::new(output), part))
    }

    /// The same of the comparison of two cohorts, whose files in a folder are `external.html` and so on.
    pub(super) fn external(output: &Path) -> Self {
        let in_folder = || Self::new(output.join("external.json"), output.join("external.html"));
        Self::page(output).unwrap_or_else(in_folder)
    }

    /// The paths beside a page, if `output` names one.
    fn page(output: &Path) -> Option<Self> {
        let is_page = output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
        is_page.then(|| Self::new(output.with_extension("json"), output.to_owned()))
    }

    /// The same with the numbers of every sample.
    pub(super) fn with_samples(self) -> Self {
        Self { has_samples: true, ..self }
    }

    /// Refuses a file in place of the folder for the results.
    ///
    /// # Errors
    /// [`CliError::Config`] that names the file.
    pub(super) fn require_folder(&self) -> Result<(), CliError> {
        match self.evaluation.parent().filter(|folder| folder.is_file()) {
            Some(file) => {
                let message = format!("{} is a file, expected a folder or a name ending in .html", file.display());
                Err(CliError::setting("--output", message, None))
            }
            None => Ok(()),
        }
    }

    /// The same, if none of its files is one that the command reads.
    ///
    /// # Errors
    /// [`CliError::Config`] that names the file.
    pub(super) fn apart_from<'a>(self, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<Self, CliError> {
        self.require_folder()?;
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let written = self.files();
        let taken =
            |input: &&PathBuf| written.iter().any(|file| real(file).is_some_and(|file| real(input) == Some(file)));
        match inputs.into_iter().find(taken) {
            Some(input) => {
                let message = format!("{} is read and would be overwritten, expected another name", input.display());
                Err(CliError::setting("--output", message, None))
            }
            None => Ok(self),
        }
    }

    /// The same with the folders of figures and tables.
    pub(super) fn with_exports(self, exports: &Exports) -> Self {
        Self { exports: exports.clone(), ..self }
    }

    /// Writes the page, and its figures and tables where there are folders for them.
    ///
    /// # Errors
    /// [`CliError`] naming the file that cannot be written.
    pub(super) fn write_page(&self, html: &str, tables: impl FnOnce() -> Vec<Table>) -> Result<(), CliError> {
        write_text(&self.report, html)?;
        write_exports(&self.exports, html, tables)
    }

    /// The closing lines about the files.
    pub(super) fn written(&self) -> Vec<String> {
        let report = format!("report: {}", self.report.display());
        std::iter::once(report).chain(exported(&self.exports)).collect()
    }

    pub(super) fn evaluation(&self) -> &Path {
        &self.evaluation
    }

    /// The flat table beside the numbers.
    pub(super) fn csv(&self) -> PathBuf {
        self.evaluation.with_extension("csv")
    }

    /// The numbers of every sample: `samples.csv` in a folder, `NAME-samples.csv` beside a page.
    pub(super) fn samples(&self) -> PathBuf {
        let stem = self.evaluation.file_stem().unwrap_or_default().to_string_lossy();
        let name = if stem == "evaluation" { "samples.csv".to_owned() } else { format!("{stem}-samples.csv") };
        self.evaluation.with_file_name(name)
    }

    /// Every file that is written, except for those in the folders of figures and tables.
    fn files(&self) -> Vec<PathBuf> {
        let samples = self.has_samples.then(|| self.samples());
        [self.evaluation.clone(), self.csv(), self.report.clone()].into_iter().chain(samples).collect()
    }

    /// Name of the flat table, under which the page offers it.
    pub(super) fn csv_name(&self) -> String {
        self.csv().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn report(&self) -> &Path {
        &self.report
    }
}

/// Information on an evaluation besides its numbers.
pub(super) struct About<'a> {
    /// Absent where all samples are evaluated.
    pub(super) part: Option<Part>,
    /// Absent for an outside model.
    pub(super) run: Option<&'a RunFile>,
    /// Present for an outside model.
    pub(super) input: Option<&'a Input>,
    /// The samples outside the times of the curves.
    pub(super) coverage: Coverage,
}

/// Findings in the files of an outside model, and the changes made.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Input {
    /// Whether the files have subjects; without them every sample is its own subject.
    pub(super) has_subjects: bool,
    /// What the censoring curve was fitted on.
    pub(super) censoring: CensoringSample,
    /// Rule for rising curves.
    pub(super) repair: &'static str,
    /// Cells of the curves that were changed; noise counts too.
    pub(super) repairs: CurveRepairs,
    /// Columns that were not used.
    pub(super) ignored_columns: Vec<String>,
    /// Title of the page, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// The remarks of the page.
    pub(super) notes: Vec<String>,
}

/// The sample that the censoring curve was fitted on.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CensoringSample {
    /// `train` or `evaluated`.
    pub(super) fitted_on: &'static str,
    pub(super) n: usize,
    pub(super) n_events: usize,
}

/// `evaluation.json`: the report and the information on it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    part: &'a str,
    device: Option<&'a str>,
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Input>,
    #[serde(skip_serializing_if = "Coverage::is_complete")]
    coverage: Coverage,
    warnings: &'a [Warning],
    #[serde(flatten)]
    report: &'a EvaluationReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Baseline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<&'a Sensitivity>,
}

/// Writes the three files and shows the result.
pub(super) fn publish(target: &Target, page: &Page<'_>, about: &About<'_>, outputs: &Outputs) -> Result<(), CliError> {
    let text = write(target, page, about)?;
    show(target, page, &text, outputs);
    Ok(())
}

/// Writes the three files; returns the text of the JSON.
pub(super) fn write(target: &Target, page: &Page<'_>, about: &About<'_>) -> Result<String, CliError> {
    let record = Record {
        part: about.part.map_or("all", Part::name),
        device: about.run.map(|run| run.device.as_str()),
        seed: about.run.map(|run| run.seed),
        input: about.input,
        coverage: about.coverage,
        warnings: page.warnings,
        report: page.evaluation,
        baseline: page.baseline,
        sensitivity: page.sensitivity,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(&target.evaluation, &text)?;
    flat::write(&target.csv(), &flat::rows_of(page))?;
    target.write_page(&render_page(page)?, || tables_of_page(page))?;
    Ok(text)
}

/// Shows the result on the terminal.
pub(super) fn show(target: &Target, page: &Page<'_>, text: &str, outputs: &Outputs) {
    page.warnings.iter().for_each(|warning| say(format!("warning: {}", warning.text)));
    page.notes.iter().for_each(|note| say(format!("note: {note}")));
    if outputs.shown == Shown::Json {
        print(text);
        return;
    }
    if outputs.shown == Shown::Table {
        print(render_table(page.evaluation, TERMINAL_WIDTH, colour_is_wanted()));
        if let Some(baseline) = page.baseline {
            print(render_baseline(baseline, TERMINAL_WIDTH));
        }
        if let Some(sensitivity) = page.sensitivity {
            print(render_sensitivity(sensitivity, TERMINAL_WIDTH));
        }
        target.written().into_iter().for_each(print);
    }
    say(format!("done in {:.1} s", outputs.started.elapsed().as_secs_f64()));
}

/// Whether standard output is a terminal, and colours are not switched off (<https://no-color.org>).
pub(super) fn colour_is_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !refused
}
