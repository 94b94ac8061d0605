//! `fairtte evaluate DIR --internal RUN`: external validation. One model in the test part of its run and in other data, at
//! the same times, with unpaired bootstrap intervals of every difference.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fairtte_data::predictions::Rising;
use fairtte_data::{Cohort, Part, Split, read_predictions};
use fairtte_metrics::evaluation::{CohortReports, Coverage, evaluate_cohorts};
use fairtte_metrics::{EvaluationReport, Groups};
use serde::Serialize;

use super::outside::Call;
use super::predicted::{CensoringSource, Predicted, TrainedOn, require_same_unit};
use super::prediction_record::PredictionRecord;
use super::publish::{CensoringSample, Target};
use super::{Outputs, Shown, facts_of_run, print, with_intersections};
use crate::CliError;
use crate::args::{CensoringOf, Evaluate};
use crate::case_mix::CaseMix;
use crate::plural::counted;
use crate::progress::say;
use crate::report::{
    ExternalPage, external_csv, external_verdict, render_external_page, render_external_table, tables_of_external,
};
use crate::run_file::TaskKind;
use crate::run_folder::{OpenRun, RunFolder, write_json, write_text};
use crate::scored::{Scored, check_given_times};

/// Width of the tables on a terminal.
const WIDTH: usize = 80;

/// The run whose test part is compared with.
pub(super) struct Internal {
    pub(super) open: OpenRun,
    trained_on: TrainedOn,
    /// The curves of the weights that predicted the other data, where they are known.
    predictions: PathBuf,
}

impl Internal {
    /// The run in `path`; what does not fit to `predicted` is added to its notes.
    ///
    /// # Errors
    /// [`CliError`] if it is no run, or has times in another unit.
    pub(super) fn read(path: &Path, predicted: &mut Predicted) -> Result<Self, CliError> {
        let open = read_run(path)?;
        require_task(&open, TaskKind::TimeToEvent, &predicted.folder)?;
        let trained_on = TrainedOn::read(&open.folder)?;
        require_same_unit(&predicted.cohort, &trained_on.cohort.time_unit, &path.display().to_string())?;
        let Predicted { record, notes, .. } = predicted;
        let predictions = predictions(&open.folder, record, "curves", notes)?;
        Ok(Self { open, trained_on, predictions })
    }

    /// The test part with its curves; its censoring curve is that of the training part.
    fn scored(&self) -> Result<Scored, CliError> {
        let TrainedOn { cohort, groups, split } = &self.trained_on;
        let groups = with_intersections(groups.clone(), &self.open.file)?;
        Scored::new(read_predictions(&self.predictions, Rising::Refuse)?, cohort, &groups, Some(split), Part::Test)
    }
}

/// The run whose test part is compared with.
///
/// # Errors
/// [`CliError`] if it is no run.
pub(super) fn read_run(path: &Path) -> Result<OpenRun, CliError> {
    let folder = RunFolder::new(path);
    if folder.prediction_record().exists() && !folder.run_file().exists() {
        let problem = "this is a folder of `fairtte predict`, expected the folder of the run itself".to_owned();
        return Err(CliError::RunFolder { path: path.to_owned(), problem });
    }
    OpenRun::read(path)
}

/// Refuses a run whose task is not `task`, that of the predictions in `folder`.
///
/// # Errors
/// [`CliError::Config`] naming both.
pub(super) fn require_task(run: &OpenRun, task: TaskKind, folder: &RunFolder) -> Result<(), CliError> {
    if run.file.task.kind == task {
        return Ok(());
    }
    let (run, kind, folder) = (run.folder.path().display(), run.file.task.kind.name(), folder.path().display());
    let message = format!(
        "{run} is of the task \"{kind}\", {folder} was predicted by one of \"{}\", expected a run of the same task",
        task.name()
    );
    Err(CliError::setting("--internal", message, None))
}

/// The file of `run` with the predictions (`what`: curves or probabilities) of the weights that predicted the other data; notes
/// where it is not certain.
pub(super) fn predictions(
    run: &RunFolder,
    record: &PredictionRecord,
    what: &str,
    notes: &mut Vec<String>,
) -> Result<PathBuf, CliError> {
    let same = |path: &Path| match (path.canonicalize(), run.path().canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => path == run.path(),
    };
    let (usual, shown) = (run.predictions(), run.path().display());
    let Some(by) = record.runs.iter().find(|by| same(&by.path)) else {
        notes.push(format!("{shown} is not the run that predicted the external data, which is {}.", record.by()));
        return Ok(usual);
    };
    if record.runs.len() > 1 {
        let how = &record.prediction;
        notes.push(format!("The internal {what} are those of {shown} alone, the external ones: {how}."));
    }
    let chosen = run.epochs()?.iter().rev().find(|epoch| epoch.best).map(|epoch| epoch.epoch);
    let (Some(epoch), Some(chosen)) = (by.epoch, chosen) else { return Ok(usual) };
    if epoch == chosen {
        return Ok(usual);
    }
    let of_epoch = run.predictions_of(epoch);
    if of_epoch.exists() {
        notes.push(format!("Both cohorts are predicted with the weights of epoch {epoch}."));
        return Ok(of_epoch);
    }
    notes.push(format!(
        "The external {what} are of epoch {epoch}, the internal ones of epoch {chosen}: {shown} has no {what} of epoch {epoch}."
    ));
    Ok(usual)
}

/// Subjects and samples of both data sets with the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct InBothCohorts {
    /// Subjects of the external data that are in the test part of the run.
    test_subjects: usize,
    /// Subjects that are in its training or validation part.
    training_subjects: usize,
    /// Samples that are anywhere in the run.
    samples: usize,
}

impl InBothCohorts {
    /// Those of the external data in the cohort of a run with its split.
    pub(super) fn count(external: &Cohort, internal: &Cohort, split: &Split) -> Self {
        let subjects: HashSet<_> = external.samples.iter().map(|sample| &sample.subject_id).collect();
        let in_part = |part: Part| subjects.iter().filter(|subject| split.part(subject) == Some(part)).count();
        let known: HashSet<_> = internal.samples.iter().map(|sample| &sample.sample_id).collect();
        Self {
            test_subjects: in_part(Part::Test),
            training_subjects: in_part(Part::Train) + in_part(Part::Validation),
            samples: external.samples.iter().filter(|sample| known.contains(&sample.sample_id)).count(),
        }
    }

    pub(super) fn note(self) -> Option<String> {
        let Self { test_subjects, training_subjects, samples } = self;
        (test_subjects + training_subjects + samples > 0).then(|| {
            format!(
                "Identities that occur in both data sets: {} in the test part of the run, {} in its training and \
                 validation parts, {}. If these are the same people, the data are not external, and the intervals of \
                 differences, which take the cohorts as independent, are wrong.",
                counted(test_subjects, "subject"),
                counted(training_subjects, "subject"),
                counted(samples, "sample"),
            )
        })
    }
}

/// `external.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    version: u32,
    run: &'a Path,
    data: &'a Path,
    predicted_by: String,
    time_unit: &'a str,
    verdict: &'a [String],
    /// What the censoring curve of each cohort was fitted on.
    internal_censoring: CensoringSample,
    external_censoring: CensoringSample,
    in_both_cohorts: InBothCohorts,
    internal_coverage: Coverage,
    external_coverage: Coverage,
    warnings: &'a [String],
    notes: &'a [String],
    case_mix: &'a CaseMix,
    #[serde(flatten)]
    reports: &'a CohortReports,
}

/// Compares the other data with the test part of the run, writes the files and shows the result.
pub(super) fn run(
    arguments: &Evaluate,
    predicted: &Predicted,
    internal: &Internal,
    call: &Call<'_>,
) -> Result<(), CliError> {
    let source = predicted.censoring(arguments.external.censoring, Some(&internal.trained_on))?;
    let (own, other) = (internal.scored()?, predicted.scored(&source)?);
    other.check_units(call.settings.reading)?;
    let reports = evaluate(&own, &other, call)?;
    let case_mix = CaseMix::of(&own, &other, &reports)?;
    let TrainedOn { cohort: own_cohort, split, .. } = &internal.trained_on;
    let both = InBothCohorts::count(&predicted.cohort, own_cohort, split);
    let (own_coverage, coverage) = (own.coverage(call.settings.reading)?, other.coverage(call.settings.reading)?);
    let mut notes = predicted.notes.clone();
    notes.extend(both.note());
    notes.extend(notes_on_attributes(&own.groups, &other.groups));
    for (name, coverage) in [("Internal", own_coverage), ("External", coverage)] {
        let sentences = coverage.sentences(call.settings.reading);
        notes.extend(sentences.into_iter().map(|sentence| format!("{name}: {sentence}")));
    }
    let of_cohort = |scored: &Scored, report: &EvaluationReport, name: &str| -> Vec<String> {
        let of_samples = Scored::with_censoring(report, Vec::new()).into_iter();
        let of_samples = of_samples.map(|warning| format!("In the {name}: {}", warning.text));
        scored.with_warning(Vec::new(), name).into_iter().map(|warning| warning.text).chain(of_samples).collect()
    };
    let warnings = [
        of_cohort(&own, &reports.internal, "internal test part"),
        of_cohort(&other, &reports.external, "external data"),
    ]
    .concat();
    let page = ExternalPage {
        title: &format!("{} on external data", internal.open.file.name),
        internal: &format!("test part of {}", internal.trained_on.cohort.name),
        external: &predicted.cohort.name,
        facts: &facts(predicted, internal, &source),
        reports: &reports,
        case_mix: &case_mix,
        time_unit: &predicted.cohort.time_unit,
        censoring: source.words,
        warnings: &warnings,
        notes: &notes,
        class: None,
        csv: &call.target.csv_name(),
    };
    let record = Record {
        version: 1,
        run: internal.open.folder.path(),
        data: predicted.folder.path(),
        predicted_by: predicted.record.by(),
        time_unit: &predicted.cohort.time_unit,
        verdict: &external_verdict(&page),
        internal_censoring: internal.censoring()?.about(),
        external_censoring: source.about(),
        in_both_cohorts: both,
        internal_coverage: own_coverage,
        external_coverage: coverage,
        warnings: &warnings,
        notes: &notes,
        case_mix: &case_mix,
        reports: &reports,
    };
    publish(&page, &record, call.target, call.outputs)
}

/// Writes the three files of a comparison with its `record` and shows the result.
pub(super) fn publish(
    page: &ExternalPage<'_>,
    record: &impl Serialize,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    write_json(target.evaluation(), record)?;
    write_text(&target.csv(), &external_csv(page)?)?;
    target.write_page(&render_external_page(page)?, || tables_of_external(page))?;
    page.warnings.iter().for_each(|warning| say(format!("warning: {warning}")));
    page.notes.iter().for_each(|note| say(format!("note: {note}")));
    if outputs.shown == Shown::Json {
        return super::print_json(record);
    }
    if outputs.shown == Shown::Table {
        print(render_external_table(page, WIDTH));
        target.written().into_iter().for_each(print);
    }
    say(format!("done in {:.1} s", outputs.started.elapsed().as_secs_f64()));
    Ok(())
}

impl Internal {
    fn censoring(&self) -> Result<CensoringSource, CliError> {
        let outcomes = self.trained_on.outcomes(Part::Train)?;
        Ok(CensoringSource { of: CensoringOf::Train, outcomes, words: "the training part of the run" })
    }
}

fn evaluate(own: &Scored, other: &Scored, call: &Call<'_>) -> Result<CohortReports, CliError> {
    let (subjects, outcomes) = (own.cohort.subjects(&own.rows), own.cohort.outcomes(&own.rows)?);
    let (other_subjects, other_outcomes) = (other.cohort.subjects(&other.rows), other.cohort.outcomes(&other.rows)?);
    let found = evaluate_cohorts(
        &own.with(&subjects, &outcomes),
        &other.with(&other_subjects, &other_outcomes),
        call.settings,
    )?;
    check_given_times(&found.external)?;
    Ok(found)
}

/// Attributes and levels that only one of the cohorts has.
pub(super) fn notes_on_attributes(internal: &[Groups], external: &[Groups]) -> Vec<String> {
    let missing = |own: &[Groups], other: &[Groups]| -> Vec<String> {
        let has = |name: &str| other.iter().any(|groups| groups.attribute() == name);
        own.iter().map(Groups::attribute).filter(|name| !has(name)).map(str::to_owned).collect()
    };
    let sentence = |names: Vec<String>, here: &str| {
        let (names, noun) = (names.join(", "), if names.len() == 1 { "attribute" } else { "attributes" });
        (!names.is_empty()).then(|| format!("Only the {here} cohort has the {noun} {names}: not compared."))
    };
    let only = [sentence(missing(internal, external), "internal"), sentence(missing(external, internal), "external")];
    only.into_iter().flatten().collect()
}

fn facts(predicted: &Predicted, internal: &Internal, source: &CensoringSource) -> Vec<(String, String)> {
    let mut facts = vec![
        ("run".to_owned(), internal.open.folder.path().display().to_string()),
        ("internal curves".to_owned(), internal.predictions.display().to_string()),
    ];
    facts.extend(predicted.facts());
    facts.push(("censoring curve of the external data".to_owned(), source.fact()));
    let of_run = facts_of_run(&internal.open.file);
    let wanted = ["backbone", "head", "strategy", "time intervals"];
    facts.extend(of_run.into_iter().filter(|(name, _)| wanted.contains(&name.as_str())));
    facts
}
