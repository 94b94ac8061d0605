//! `fairtte evaluate` with several `--predictions`: models compared on the same samples, at the same times, with the same
//! bootstrap draws.
//!
//! Every file is read and refused as if it were the only one (`read.rs`). Samples that a file lacks are left out for all
//! models, and counted. The Cox model of `--baseline` is one more model.

pub(super) mod read;

use std::collections::BTreeSet;

use fairtte_data::{AttributeConfig, Part};
use fairtte_metrics::competing::IncidenceCurves;
use fairtte_metrics::evaluation::{
    Coverage, ModelPair, ModelReports, TradeOff, evaluate_models, evaluate_models_of_cause,
};
use fairtte_metrics::{EvaluationReport, SurvivalCurves};
use fairtte_records::Warning;
use serde::Serialize;

use self::read::{Compared, Model, SampleCounts};
use super::super::print;
use super::Shown;
use super::notes::{censoring_sample, note_on_causes};
use super::outside::Call;
use super::publish::CensoringSample;
use crate::CliError;
use crate::args::Evaluate;
use crate::baseline::CoxModel;
use crate::progress::say;
use crate::report::{ModelsPage, models_csv, render_models_page, render_models_table, tables_of_models};
use crate::run_folder::write_text;
use crate::scored::{Scored, check_given_times};

/// Width of the tables on a terminal.
const WIDTH: usize = 80;

/// The names of several models in the order of their files; `None` for a single one.
///
/// # Errors
/// [`CliError::Config`] if there is not one name per file, or two are the same.
pub(super) fn names(arguments: &Evaluate) -> Result<Option<Vec<String>>, CliError> {
    let (files, given) = (&arguments.predictions, &arguments.models.names);
    let refused = |option: &str, message: String| Err(CliError::setting(option, message, None));
    if files.len() < 2 {
        return match (given.is_empty(), &arguments.models.reference_model) {
            (true, None) => Ok(None),
            (false, _) => refused("--names", "there is one model, expected two --predictions or more".to_owned()),
            (_, Some(_)) => {
                refused("--reference-model", "there is one model, expected two --predictions or more".to_owned())
            }
        };
    }
    if !given.is_empty() && given.len() != files.len() {
        let message = format!("number of names: {}, expected {}, one per --predictions", given.len(), files.len());
        return refused("--names", message);
    }
    let stem = |file: &std::path::PathBuf| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = if given.is_empty() { files.iter().map(stem).collect() } else { given.clone() };
    if let Some(empty) = names.iter().position(|name| name.trim().is_empty()) {
        return refused("--names", format!("name {} is empty, expected a text", empty + 1));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        let help = Some("give every model a name, for example --names CNN,Cox");
        return Err(CliError::setting("--names", format!("two models are named \"{twice}\""), help));
    }
    Ok(Some(names))
}

pub(super) fn run(
    arguments: &Evaluate,
    names: &[String],
    attributes: &[AttributeConfig],
    call: &Call<'_>,
) -> Result<(), CliError> {
    let reference = reference(arguments, names)?;
    let compared = match &arguments.cohort {
        Some(cohort) => read::with_cohort(arguments, (names, attributes), cohort, call)?,
        None => read::alone(arguments, names, attributes)?,
    };
    let any = compared.any()?;
    let cox = compared.baseline.as_ref().map(|inputs| inputs.cox(any, call.settings)).transpose()?;
    let reports = evaluate(&compared, cox.as_ref(), reference, call)?;
    publish(arguments, (&compared, cox.as_ref()), &reports, call)
}

/// The place of the model that the others are compared with.
pub(super) fn reference(arguments: &Evaluate, names: &[String]) -> Result<usize, CliError> {
    let Some(wanted) = &arguments.models.reference_model else { return Ok(0) };
    names.iter().position(|name| name == wanted).ok_or_else(|| {
        let message = format!("there is no model \"{wanted}\", expected one of {}", names.join(", "));
        CliError::setting("--reference-model", message, None)
    })
}

fn evaluate(
    compared: &Compared,
    cox: Option<&CoxModel>,
    reference: usize,
    call: &Call<'_>,
) -> Result<ModelReports, CliError> {
    compared.models.iter().try_for_each(|model| model.scored.check_units(call.settings.reading))?;
    let models = compared.models.iter().map(|model| (model.name.as_str(), &model.scored.curves));
    let models = models.chain(cox.map(|cox| (cox.name.as_str(), &cox.curves)));
    let any = compared.any()?;
    let Scored { cohort, rows, censoring, groups, .. } = any;
    let (subjects, settings) = (cohort.subjects(rows), call.settings);
    let found = if let Some(cause) = any.cause {
        let of = |(name, curves): (_, &SurvivalCurves)| (name, IncidenceCurves::of_survival(curves.clone()));
        let curves: Vec<(&str, IncidenceCurves)> = models.map(of).collect();
        let models: Vec<(&str, &IncidenceCurves)> = curves.iter().map(|(name, curves)| (*name, curves)).collect();
        let outcomes = cohort.competing_outcomes(rows, cause)?;
        evaluate_models_of_cause(&models, reference, &subjects, (&outcomes, cause), censoring, groups, settings)?
    } else {
        let models: Vec<(&str, &SurvivalCurves)> = models.collect();
        evaluate_models(&models, reference, &subjects, &cohort.outcomes(rows)?, censoring, groups, settings)?
    };
    found.models.first().map_or(Ok(()), |(_, report)| check_given_times(report))?;
    Ok(found)
}

/// `evaluation.json` of several models.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    part: &'a str,
    reference: &'a str,
    samples: &'a SampleCounts,
    has_subjects: bool,
    censoring: &'a CensoringSample,
    repair: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    notes: &'a [String],
    models: Vec<OfModel<'a>>,
    /// Every model but the reference minus the reference.
    differences: &'a [ModelPair],
    trade_offs: &'a [TradeOff],
}

/// One model: what `evaluation.json` has for a single one, with its name and file.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OfModel<'a> {
    name: &'a str,
    /// Absent of the Cox model of the covariates.
    #[serde(flatten)]
    model: Option<&'a Model>,
    /// What the Cox model of the covariates was fitted on: `train`, or `evaluated`, then every sample is predicted by models of
    /// the other folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    fitted_on: Option<&'static str>,
    #[serde(skip_serializing_if = "Coverage::is_complete")]
    coverage: Coverage,
    warnings: Vec<Warning>,
    #[serde(flatten)]
    report: &'a EvaluationReport,
}

/// Writes the three files and shows the result.
fn publish(
    arguments: &Evaluate,
    (compared, cox): (&Compared, Option<&CoxModel>),
    reports: &ModelReports,
    call: &Call<'_>,
) -> Result<(), CliError> {
    let part = compared.has_parts.then_some(call.outputs.part);
    let sample = part.map_or_else(|| "evaluated sample".to_owned(), |part| format!("{} part", part.name()));
    let of_model = |(model, (name, report)): (&'_ Model, &'_ (String, EvaluationReport))| -> Result<_, CliError> {
        let warnings = model.scored.with_warning(Vec::new(), &sample);
        Ok((name.clone(), warnings, model.scored.coverage(call.settings.reading)?, report.n))
    };
    let found = compared.models.iter().zip(&reports.models).map(of_model).collect::<Result<Vec<_>, CliError>>()?;
    let mut notes = compared.notes.clone();
    notes.extend(reports.models.first().and_then(|(_, report)| note_on_causes(report)));
    for (name, _, coverage, _) in &found {
        let sentences = coverage.sentences(call.settings.reading);
        notes.extend(sentences.into_iter().map(|sentence| format!("{name}: {sentence}")));
    }
    // All models have the same samples.
    let of_training: Vec<Warning> = compared.training.iter().cloned().collect();
    let of_samples = match reports.models.first() {
        Some((_, report)) => Scored::with_censoring(report, of_training),
        None => of_training,
    };
    let of_models = found
        .iter()
        .flat_map(|(name, warnings, ..)| warnings.iter().map(move |warning| format!("{name}: {}", warning.text)));
    let warnings: Vec<String> = of_models.chain(of_samples.iter().map(|warning| warning.text.clone())).collect();
    let any = compared.any()?;
    let title = arguments.own.title.as_deref();
    let names: Vec<&str> = reports.models.iter().map(|(name, _)| name.as_str()).collect();
    let by_names = format!("Comparison of {}", crate::report::listed(&names));
    let of_cox = cox.map(|cox| (cox.name.clone(), cox.fit()));
    let facts: Vec<(String, String)> = compared.facts.iter().cloned().chain(of_cox).collect();
    let (csv_name, csv) = (call.target.csv_name(), models_csv(reports)?);
    let page = ModelsPage {
        title: title.unwrap_or(&by_names),
        // Without a cohort, its name is that of the first file.
        subtitle: if arguments.cohort.is_some() { &any.cohort.name } else { "" },
        facts: &facts,
        reports,
        time_unit: &any.cohort.time_unit,
        censoring: censoring_sample(compared.censoring.fitted_on, part),
        warnings: &warnings,
        notes: &notes,
        csv: (&csv_name, &csv),
        class: None,
    };
    let mut models: Vec<OfModel<'_>> = Vec::new();
    for (((_, warnings, coverage, _), model), (name, report)) in found.iter().zip(&compared.models).zip(&reports.models)
    {
        let warnings = warnings.iter().chain(&of_samples).cloned().collect();
        models.push(OfModel { name, model: Some(model), fitted_on: None, coverage: *coverage, warnings, report });
    }
    if let (Some(cox), Some((name, report))) = (cox, reports.models.get(models.len())) {
        let (coverage, warnings) = (any.coverage(call.settings.reading)?, of_samples.clone());
        models.push(OfModel { name, model: None, fitted_on: Some(cox.fitted_on), coverage, warnings, report });
    }
    let record = Record {
        part: part.map_or("all", Part::name),
        reference: &reports.reference,
        samples: &compared.samples,
        has_subjects: compared.has_subjects,
        censoring: &compared.censoring,
        repair: super::outside::repair_name(arguments),
        title,
        notes: &notes,
        models,
        differences: &reports.pairs,
        trade_offs: &reports.trade_offs,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    let target = call.target;
    write_text(target.evaluation(), &text)?;
    write_text(&target.csv(), &csv)?;
    target.write_page(&render_models_page(&page)?, || tables_of_models(&page))?;
    for warning in &warnings {
        say(format!("warning: {warning}"));
    }
    for note in &notes {
        say(format!("note: {note}"));
    }
    if call.outputs.shown == Shown::Json {
        print(text);
        return Ok(());
    }
    if call.outputs.shown == Shown::Table {
        print(render_models_table(reports, WIDTH));
        target.written().into_iter().for_each(print);
    }
    say(format!("done in {:.1} s", call.outputs.started.elapsed().as_secs_f64()));
    Ok(())
}
