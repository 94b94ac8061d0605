//! `fairtte evaluate --predictions`: the curves of a model that was trained elsewhere.
//!
//! Either one table contains curves, outcomes and attributes, or the curves are in one file and the samples in another
//! (`--cohort`). Assumptions and changes are reported as notes on the terminal, on the page and in the JSON.

use std::path::{Path, PathBuf};

use fairtte_data::cohort::read_cohort_of_cause;
use fairtte_data::predictions::{OutsideTable as _, Rising, read_outcomes, read_scored_table};
use fairtte_data::{AttributeConfig, Cohort, DataError, Part, Split, read_cohort};
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Groups, SurvivalCurves};
use fairtte_records::Warning;

use super::cohort_attributes::{Asked, Predicted};
use super::notes::{
    about_censoring, censoring_fact, censoring_sample, fact_of_cause, grid_fact, note_on_causes, note_on_repairs,
    notes_on_table, repair_fact,
};
use super::publish::{About, Input, Target, publish};
use super::{Outputs, dry_run, facts_of_parts, settings};
use super::{baseline, classes, models, own_table};
use crate::CliError;
use crate::args::{Evaluate, Repair};
use crate::baseline::{Baseline, CovariateColumn};
use crate::report::Page;
use crate::scored::Scored;
use crate::sensitivity::Sensitivity;
use crate::training_sample::about_training;

pub(super) fn run(arguments: &Evaluate, outputs: &Outputs) -> Result<(), CliError> {
    if arguments.classes.is_binary() {
        return classes::run(arguments, outputs);
    }
    if let Some(option) = arguments.classes.first_given() {
        let message = "it is about the probability of a class, expected --task binary".to_owned();
        return Err(CliError::setting(option, message, None));
    }
    let missing = || CliError::Bug("clap let evaluate through without its files".to_owned());
    let predictions = arguments.predictions.first().ok_or_else(missing)?;
    let names = models::names(arguments)?;
    let target = Target::named(arguments.output.as_ref().ok_or_else(missing)?, outputs.part);
    let target = target.apart_from(arguments.tables())?.with_exports(&arguments.exports);
    let settings = settings(None, &arguments.set, Some(&arguments.scores))?;
    let settings = if arguments.cause.is_some() { settings.of_cause() } else { settings };
    if arguments.part.is_some() && arguments.split.is_none() {
        let message = "there are no parts without --split".to_owned();
        return Err(CliError::setting("--part", message, None));
    }
    // Without a list, the attributes are those of the cohort.
    let pairs_of_list = arguments.intersections && (arguments.cohort.is_none() || !arguments.attributes.is_empty());
    let attributes = attributes_to_compare(&arguments.attributes, pairs_of_list)?;
    if settings.sensitivity.is_some() && arguments.cause.is_some() {
        let message = "the time to one kind of event is imputed after a drop-out, expected no --cause".to_owned();
        return Err(CliError::setting("--sensitivity", message, None));
    }
    if names.is_some() && settings.sensitivity.is_some() {
        let message =
            "sensitivity to informative censoring is computed for one model, expected one --predictions".to_owned();
        return Err(CliError::setting("--sensitivity", message, None));
    }
    if arguments.dry_run {
        let files: Vec<String> = arguments.predictions.iter().map(|file| file.display().to_string()).collect();
        return dry_run(&files.join(", "), arguments, &target, &settings);
    }
    if let Some(names) = names {
        return models::run(arguments, &names, &attributes, &Call { target: &target, settings: &settings, outputs });
    }
    match &arguments.cohort {
        Some(cohort) => {
            let call = Call { target: &target, settings: &settings, outputs };
            with_cohort(arguments, &attributes, (predictions, cohort), &call)
        }
        None => alone(arguments, &attributes, predictions, &target, &settings, outputs),
    }
}

/// Where the results of a call go, and how they are computed.
pub(super) struct Call<'a> {
    pub(super) target: &'a Target,
    pub(super) settings: &'a EvaluationSettings,
    pub(super) outputs: &'a Outputs,
}

/// The attributes of a list, each named once, and at least two for `intersections`.
pub(in super::super) fn attributes_to_compare(
    list: &[AttributeConfig],
    intersections: bool,
) -> Result<Vec<AttributeConfig>, CliError> {
    let attributes = own_table::attributes(list)?;
    let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    if let Some(k) = (1..names.len()).find(|&k| names[..k].contains(&names[k])) {
        return Err(CliError::setting("--attributes", format!("\"{}\" is named twice, expected once", names[k]), None));
    }
    if intersections && names.len() < 2 {
        let message = format!("number of --attributes: {}, expected at least two", names.len());
        return Err(CliError::setting("--intersections", message, None));
    }
    Ok(attributes)
}

/// Scores one table with curves, outcomes and attributes.
fn alone(
    arguments: &Evaluate,
    configs: &[AttributeConfig],
    path: &Path,
    target: &Target,
    settings: &EvaluationSettings,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let covariates = baseline::named(&arguments.scores.baseline)?;
    let mut names: Vec<&str> = configs.iter().map(|attribute| attribute.name.as_str()).collect();
    names.extend(covariates.iter().filter(|name| configs.iter().all(|attribute| attribute.name != **name)));
    let own = &arguments.own;
    let mut options = own_table::options(own, rising(arguments))?;
    options.columns.cause = arguments.cause;
    let help = |error| own_table::with_help(error, own);
    let mut table = read_scored_table(path, &names, &options).map_err(help)?;
    own_table::name_unit(&mut table.cohort, own)?;
    own_table::require_cause(&table.cohort, arguments.cause)?;
    let fitted = table.fit_attributes(configs).map_err(with_help)?;
    let rows = table.cohort.all_rows();
    let evaluated = table.cohort.outcomes_of_any_cause(&rows)?;
    let train =
        arguments.train.as_deref().map(|path| read_outcomes(path, &options.columns)).transpose().map_err(help)?;
    let training = about_training(train.as_ref(), &evaluated)?;
    let fitted_on = train.as_ref().unwrap_or(&evaluated);

    let mut notes = notes_on_table(&table, configs, arguments.repair);
    notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
    notes.extend(own_table::notes(&table));
    if train.is_none() {
        notes.push(
            "There is no --train: the censoring curve is fitted on the evaluated sample itself, and not, as recommended, \
             on the sample that the model was trained on."
                .to_owned(),
        );
    }
    let covariates: Vec<CovariateColumn> =
        covariates.iter().map(|name| baseline::column(&table.cohort, name, &rows)).collect();
    let scored = Scored {
        cause: arguments.cause,
        rows,
        groups: with_pairs(fitted.all(), arguments.intersections)?,
        curves: SurvivalCurves::new(table.grid.clone(), table.survival)?,
        censoring: CensoringCurve::fit(fitted_on, CensoringTies::EventsFirst)?,
        cohort: table.cohort,
    };
    let report = scored.evaluate_outside(settings)?;
    let sensitivity = Sensitivity::required(&scored, settings)?;
    let baseline = baseline::of_table(
        covariates,
        (arguments.train.as_deref(), train.clone(), &own.missing),
        &scored,
        settings,
        &mut notes,
    )?;
    notes.extend(note_on_causes(&report));
    notes.extend(scored.coverage(settings.reading)?.sentences(settings.reading));
    let input = Input {
        has_subjects: table.has_subjects,
        censoring: about_censoring(fitted_on, if train.is_some() { "train" } else { "evaluated" }),
        repair: repair_name(arguments),
        repairs: table.repairs,
        ignored_columns: table.ignored,
        title: own.title.clone(),
        notes,
    };
    let mut facts = vec![("predictions".to_owned(), path.display().to_string()), grid_fact(&table.grid)];
    facts.push(("censoring curve fitted on".to_owned(), censoring_fact(&input.censoring, arguments.train.as_ref())));
    facts.extend(repair_fact(arguments, &input.repairs));
    facts.extend(own_table::fact(own));
    facts.extend(fact_of_cause(&report));
    let beside = Beside { baseline: baseline.as_ref(), sensitivity: sensitivity.as_ref(), training: training.as_ref() };
    publish_outside(&scored, (&report, &beside), &facts, &input, None, target, outputs)
}

/// Scores curves of the samples in a cohort file.
fn with_cohort(
    arguments: &Evaluate,
    attributes: &[AttributeConfig],
    (path, cohort_file): (&PathBuf, &Path),
    call: &Call<'_>,
) -> Result<(), CliError> {
    let Call { target, settings, outputs } = *call;
    let (mut cohort, groups) = match arguments.cause {
        None => read_cohort(cohort_file)?,
        Some(cause) => read_cohort_of_cause(cohort_file, cause)?,
    };
    own_table::name_unit(&mut cohort, &arguments.own)?;
    let split = arguments.split.as_ref().map(|path| Split::read_csv(path, &cohort)).transpose()?;
    refuse_causes_without_option(&cohort, arguments)?;
    own_table::require_cause(&cohort, arguments.cause)?;
    let predicted = Predicted::read(path, arguments, attributes)?;
    let fitted_on = split.as_ref().map_or_else(|| cohort.all_rows(), |split| split.rows(Part::Train).to_vec());
    let asked = Asked::of(&mut cohort, groups, attributes, &[(path, &predicted)], &fitted_on)?;
    let (predictions, groups) = (predicted.table, asked.groups);
    let (grid, repairs) = (predictions.grid.clone(), predictions.repairs);
    let mut notes: Vec<String> =
        note_on_repairs(&repairs, arguments.repair, predictions.samples.len()).into_iter().collect();
    notes.extend(asked.notes);
    if split.is_none() {
        notes.push(
            "There is no split: all samples are evaluated, and the censoring curve is fitted on them too.".to_owned(),
        );
    }
    notes.extend(own_table::notes_on_groups(&groups));
    let all_groups = with_pairs(&groups, arguments.intersections)?;
    let scored = Scored::new(predictions, &cohort, &all_groups, split.as_ref(), outputs.part)?;
    let report = scored.evaluate_outside(settings)?;
    let sensitivity = Sensitivity::required(&scored, settings)?;
    let baseline = if baseline::named(&arguments.scores.baseline)?.is_empty() {
        None
    } else {
        let data = (&cohort, all_groups.as_slice(), split.as_ref());
        baseline::of_cohort(&arguments.scores.baseline, None, data, &scored, settings)?
    };
    notes.extend(note_on_causes(&report));
    notes.extend(scored.coverage(settings.reading)?.sentences(settings.reading));
    let input = Input {
        has_subjects: true,
        censoring: about_censoring(
            &cohort.outcomes_of_any_cause(&fitted_on)?,
            if split.is_some() { "train" } else { "evaluated" },
        ),
        repair: repair_name(arguments),
        repairs,
        ignored_columns: Vec::new(),
        title: arguments.own.title.clone(),
        notes,
    };
    let mut facts = vec![
        ("predictions".to_owned(), path.display().to_string()),
        ("cohort".to_owned(), cohort_file.display().to_string()),
        grid_fact(&grid),
    ];
    facts.extend(split.iter().flat_map(|split| facts_of_parts(&cohort, split)));
    facts.extend(repair_fact(arguments, &repairs));
    facts.extend(fact_of_cause(&report));
    let beside = Beside { baseline: baseline.as_ref(), sensitivity: sensitivity.as_ref(), training: None };
    publish_outside(&scored, (&report, &beside), &facts, &input, split.map(|_| outputs.part), target, outputs)
}

/// What is shown beside the report.
struct Beside<'a> {
    baseline: Option<&'a Baseline>,
    sensitivity: Option<&'a Sensitivity>,
    /// A warning about the sample of the censoring curve.
    training: Option<&'a Warning>,
}

fn publish_outside(
    scored: &Scored,
    (report, beside): (&EvaluationReport, &Beside<'_>),
    facts: &[(String, String)],
    input: &Input,
    part: Option<Part>,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let censoring = censoring_sample(input.censoring.fitted_on, part);
    let name = part.map_or_else(|| "evaluated sample".to_owned(), |part| format!("{} part", part.name()));
    let warnings =
        Scored::with_censoring(report, scored.with_warning(beside.training.cloned().into_iter().collect(), &name));
    let page = Page {
        title: input.title.as_deref().unwrap_or("Evaluation of saved predictions"),
        subtitle: &scored.cohort.name,
        facts,
        evaluation: report,
        baseline: beside.baseline,
        sensitivity: beside.sensitivity,
        bias: None,
        time_unit: &scored.cohort.time_unit,
        censoring,
        epochs: &[],
        monitor: "",
        flow: &[],
        warnings: &warnings,
        notes: &input.notes,
        csv: &target.csv_name(),
    };
    let coverage = scored.coverage(report.settings.reading)?;
    publish(target, &page, &About { part, run: None, input: Some(input), coverage }, outputs)
}

/// Refuses a cohort of events of several causes without `--cause`: the curves could be of any of them.
pub(super) fn refuse_causes_without_option(cohort: &Cohort, arguments: &Evaluate) -> Result<(), CliError> {
    let (Some(cause), None) = (cohort.cause, arguments.cause) else { return Ok(()) };
    let message =
        format!("events of {} have several causes, expected the cause whose risk the curves are", cohort.name);
    Err(CliError::setting(
        "--cause",
        message,
        Some(&format!("--cause {cause} is the one that the cohort was made for")),
    ))
}

/// Returns `groups` and, if requested, the intersection of every two of them.
pub(in super::super) fn with_pairs(groups: &[Groups], intersections: bool) -> Result<Vec<Groups>, CliError> {
    let mut all = groups.to_vec();
    if !intersections {
        return Ok(all);
    }
    if groups.len() < 2 {
        let message = format!("number of grouped attributes of the cohort: {}, expected at least two", groups.len());
        return Err(CliError::setting("--intersections", message, None));
    }
    for (k, first) in groups.iter().enumerate() {
        for second in &groups[k + 1..] {
            all.push(Groups::intersection(&[first, second])?);
        }
    }
    Ok(all)
}

pub(super) fn rising(arguments: &Evaluate) -> Rising {
    match arguments.repair {
        None => Rising::Refuse,
        Some(Repair::Monotone) => Rising::RunningMinimum,
        Some(Repair::MonotoneAll) => Rising::RunningMinimumOfAll,
    }
}

pub(super) fn repair_name(arguments: &Evaluate) -> &'static str {
    arguments.repair.map_or("none", Repair::name)
}

/// Adds the argument that solves the problem to the error.
pub(in super::super) fn with_help(error: DataError) -> CliError {
    let help = match &error {
        DataError::RisingSurvival { .. } => {
            "--repair monotone replaces each value by the lowest of its row up to that time, and counts the changes"
                .to_owned()
        }
        DataError::TooManyRepairs { .. } => {
            "curves that rise this much are seldom survival curves; --repair monotone:all changes them nevertheless"
                .to_owned()
        }
        DataError::TooManyLevels { attribute, .. } => {
            format!("split the number into two groups: --attributes {attribute}:median, or a threshold of your choice")
        }
        _ => return error.into(),
    };
    CliError::Curves { source: Box::new(error), help }
}
