//! `fairtte evaluate`: step 10 from saved files alone, for our runs and for the curves of any other model.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fairtte_data::{Cohort, Exclusions, Part, Split, match_predictions, read_cohort, read_predictions};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Groups, SurvivalCurves, evaluate,
};
use ndarray::{Array2, Axis};
use serde::Serialize;

use super::{print, use_threads};
use crate::CliError;
use crate::args::{Evaluate, EvaluatedPart};
use crate::prepare::choose_groups;
use crate::progress::say;
use crate::report::{EpochPoint, FlowRow, Page, render_page, render_table};
use crate::run_file::{Merged, RunFile};
use crate::run_folder::{RunFolder, write_text};

/// How results are shown.
pub(super) struct Outputs {
    pub(super) json: bool,
    pub(super) part: Part,
    pub(super) started: Instant,
}

pub(super) fn run(arguments: &Evaluate) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let part = match arguments.part {
        Some(EvaluatedPart::Validation) => Part::Validation,
        Some(EvaluatedPart::Test) | None => Part::Test,
    };
    let outputs = Outputs { json: arguments.json, part, started: Instant::now() };
    match &arguments.run {
        Some(path) => {
            let folder = RunFolder::new(path);
            let mut run = RunFile::read(&[folder.run_file()], &[])?;
            run.evaluation = settings(Some(&run.evaluation), &arguments.set)?;
            if arguments.dry_run {
                say(format!("dry run: would evaluate the {} part of {}", part.name(), path.display()));
                return Ok(());
            }
            let target = arguments.output.as_ref().map_or_else(|| folder.clone(), |output| RunFolder::new(output));
            evaluate_into(&folder, &target, &run, &outputs)
        }
        None => outside(arguments, &outputs),
    }
}

fn settings(base: Option<&EvaluationSettings>, sets: &[String]) -> Result<EvaluationSettings, CliError> {
    let mut merged = Merged::default();
    if let Some(base) = base {
        let text = toml::to_string(base).map_err(|error| CliError::Bug(error.to_string()))?;
        merged.add_text(&text, "run.toml")?;
    }
    merged.set_all(sets)?;
    let settings: EvaluationSettings = merged.into_config()?;
    settings.validate()?;
    Ok(settings)
}

/// Evaluates a run folder from its saved files and writes `evaluation.json` and `report.html` into it.
pub(super) fn evaluate_run(folder: &RunFolder, run: &RunFile, outputs: &Outputs) -> Result<(), CliError> {
    evaluate_into(folder, folder, run, outputs)
}

fn evaluate_into(folder: &RunFolder, target: &RunFolder, run: &RunFile, outputs: &Outputs) -> Result<(), CliError> {
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let groups = with_intersections(groups, run)?;
    let scored = Scored::read(&folder.predictions(), &cohort, &groups, Some(&split), outputs.part)?;
    let report = scored.evaluate(&run.evaluation)?;
    let exclusions = Exclusions::read_csv(&folder.exclusions(), cohort.n())?;
    let epochs = folder.epochs()?;
    let mut facts = facts_of_run(run);
    facts.extend(facts_of_parts(&cohort, &split));
    if !epochs.is_empty() {
        let (total, data) = epochs.iter().fold((0.0, 0.0), |(t, d), e| (t + e.seconds, d + e.data_seconds));
        let share = 100.0 * data / total.max(f64::MIN_POSITIVE);
        facts.push(("training time".to_owned(), format!("{total:.1} s, {share:.1} % of it making batches")));
    }
    let chosen = epochs.iter().rev().find(|epoch| epoch.best).map(|epoch| epoch.epoch);
    let epochs: Vec<EpochPoint> = epochs
        .iter()
        .map(|epoch| EpochPoint {
            epoch: epoch.epoch,
            train_loss: epoch.train_loss,
            validation_nll: epoch.validation.nll,
            validation_c_td: epoch.validation.c_td,
            best: Some(epoch.epoch) == chosen,
        })
        .collect();
    let flow: Vec<FlowRow> = exclusions
        .flow()
        .into_iter()
        .map(|step| FlowRow {
            label: step.label,
            n_kept: step.n_kept,
            n_excluded: step.n_excluded,
            reasons: step.reasons.into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect(),
        })
        .collect();
    let page = Page {
        title: &run.name,
        subtitle: &format!("{} part of {}", outputs.part.name(), cohort.name),
        facts: &facts,
        evaluation: &report,
        time_unit: &cohort.time_unit,
        epochs: &epochs,
        monitor: run.training.monitor.name(),
        flow: &flow,
        notes: &scored.notes,
    };
    publish(target, &page, Some(run), Some(outputs.part), outputs)
}

/// Scores the curves of a model that was trained elsewhere.
fn outside(arguments: &Evaluate, outputs: &Outputs) -> Result<(), CliError> {
    let missing = || CliError::Bug("clap let evaluate through without its files".to_owned());
    let predictions = arguments.predictions.as_ref().ok_or_else(missing)?;
    let cohort_file = arguments.cohort.as_ref().ok_or_else(missing)?;
    let target = RunFolder::new(arguments.output.as_ref().ok_or_else(missing)?);
    let settings = settings(None, &arguments.set)?;
    if arguments.part.is_some() && arguments.split.is_none() {
        let message = "there are no parts without --split".to_owned();
        return Err(CliError::setting("--part", message, None));
    }
    if arguments.dry_run {
        say(format!("dry run: would evaluate {} into {}", predictions.display(), target.path().display()));
        return Ok(());
    }
    let (cohort, groups) = read_cohort(cohort_file)?;
    let split = arguments.split.as_ref().map(|path| Split::read_csv(path, &cohort)).transpose()?;
    let scored = Scored::read(predictions, &cohort, &groups, split.as_ref(), outputs.part)?;
    let report = scored.evaluate(&settings)?;
    let file = |path: &PathBuf| path.display().to_string();
    let mut facts = vec![("predictions".to_owned(), file(predictions)), ("cohort".to_owned(), file(cohort_file))];
    facts.extend(split.iter().flat_map(|split| facts_of_parts(&cohort, split)));
    let page = Page {
        title: "Evaluation of saved predictions",
        subtitle: &cohort.name,
        facts: &facts,
        evaluation: &report,
        time_unit: &cohort.time_unit,
        epochs: &[],
        monitor: "",
        flow: &[],
        notes: &scored.notes,
    };
    publish(&target, &page, None, split.as_ref().map(|_| outputs.part), outputs)
}

/// The rows that are scored, with everything their metrics need.
struct Scored {
    rows: Vec<usize>,
    cohort: Cohort,
    groups: Vec<Groups>,
    grid: Vec<f64>,
    survival: Array2<f64>,
    censoring: CensoringCurve,
    notes: Vec<String>,
}

impl Scored {
    fn read(
        path: &Path,
        cohort: &Cohort,
        groups: &[Groups],
        split: Option<&Split>,
        part: Part,
    ) -> Result<Self, CliError> {
        let (samples, grid, survival) = read_predictions(path)?;
        let rows = split.map_or_else(|| cohort.all_rows(), |split| split.rows(part).to_vec());
        let order = match_predictions(cohort, &rows, &samples)?;
        let mut notes = Vec::new();
        let fitted_on = if let Some(split) = split {
            split.rows(Part::Train).to_vec()
        } else {
            notes.push(
                "There is no split: all samples are evaluated, and the censoring curve is fitted on them too."
                    .to_owned(),
            );
            cohort.all_rows()
        };
        let censoring = CensoringCurve::fit(&cohort.outcomes(&fitted_on)?, CensoringTies::EventsFirst)?;
        Ok(Self {
            groups: groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?,
            rows,
            cohort: cohort.clone(),
            grid,
            survival: survival.select(Axis(0), &order),
            censoring,
            notes,
        })
    }

    fn evaluate(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, CliError> {
        let subjects = self.cohort.subjects(&self.rows);
        let outcomes = self.cohort.outcomes(&self.rows)?;
        let curves = SurvivalCurves::new(self.grid.clone(), self.survival.clone())?;
        Ok(evaluate(&subjects, &outcomes, &curves, &self.censoring, &self.groups, settings)?)
    }
}

fn restrict(groups: &Groups, rows: &[usize]) -> Result<Groups, CliError> {
    let membership = rows.iter().map(|row| groups.membership()[*row]).collect();
    Ok(Groups::new(groups.attribute(), groups.levels().to_vec(), membership)?)
}

fn with_intersections(mut groups: Vec<Groups>, run: &RunFile) -> Result<Vec<Groups>, CliError> {
    let single = groups.clone();
    for names in &run.groups.intersections {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        groups.extend(choose_groups(&single, &names, "groups.intersections")?);
    }
    Ok(groups)
}

fn facts_of_run(run: &RunFile) -> Vec<(String, String)> {
    let variant = |value: Result<toml::Value, toml::ser::Error>| match value {
        Ok(toml::Value::Table(table)) => table
            .into_iter()
            .map(|(name, settings)| {
                let settings = settings.as_table().map(std::string::ToString::to_string).unwrap_or_default();
                let settings: Vec<&str> = settings.lines().collect();
                if settings.is_empty() { name } else { format!("{name} ({})", settings.join(", ")) }
            })
            .collect::<String>(),
        _ => String::new(),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("backbone", run.model.backbone.name().to_owned()),
        fact("image size", run.image.size.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")),
        fact("head", variant(toml::Value::try_from(&run.head))),
        fact("strategy", variant(toml::Value::try_from(&run.strategy))),
        fact("time intervals", run.time.intervals.to_string()),
        fact("seed", run.seed.to_string()),
        fact("device", run.device.clone()),
        fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

fn facts_of_parts(cohort: &Cohort, split: &Split) -> Vec<(String, String)> {
    Part::ALL
        .into_iter()
        .map(|part| {
            let rows = split.rows(part);
            let events = rows.iter().filter(|row| cohort.samples[**row].event).count();
            let text = format!("{} samples of {} subjects, {events} events", rows.len(), split.n_subjects(part));
            (format!("{} part", part.name()), text)
        })
        .collect()
}

/// `evaluation.json`: the report and what it is about.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    part: &'a str,
    device: Option<&'a str>,
    seed: Option<u64>,
    #[serde(flatten)]
    report: &'a EvaluationReport,
}

/// Writes the two files and shows the result; `run` is absent for an outside model.
fn publish(
    target: &RunFolder,
    page: &Page<'_>,
    run: Option<&RunFile>,
    part: Option<Part>,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let record = Record {
        part: part.map_or("all", Part::name),
        device: run.map(|run| run.device.as_str()),
        seed: run.map(|run| run.seed),
        report: page.evaluation,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    let part = part.unwrap_or(Part::Test);
    write_text(&target.evaluation(part), &text)?;
    write_text(&target.report(part), &render_page(page)?)?;
    if outputs.json {
        print(text);
        return Ok(());
    }
    print(render_table(page.evaluation, 100));
    page.notes.iter().for_each(|note| say(format!("note: {note}")));
    print(format!("report: {}", target.report(part).display()));
    say(format!("done in {:.1} s", outputs.started.elapsed().as_secs_f64()));
    Ok(())
}
