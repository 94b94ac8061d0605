//! `fairtte experiment power`: how large a degradation of a group's predictions must be before the evaluation finds it.

use fairtte_data::predictions::{OutsideTable as _, Rising, read_outcomes, read_scored_table};
use fairtte_data::{AttributeConfig, Part, Split, read_cohort, read_predictions};
use fairtte_metrics::evaluation::{MetricPower, Power, PowerSettings};
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Groups, SurvivalCurves};
use serde::Serialize;

use super::super::evaluate::own_table::{options, with_help};
use super::super::evaluate::{attributes_to_compare, settings};
use super::super::{print, print_json, use_threads};
use super::write_page;
use crate::CliError;
use crate::args::{OwnTable, PowerExperiment};
use crate::plural::counted;
use crate::progress::{Files, say};
use crate::report::experiment::plain;
use crate::report::experiment::power::page;
use crate::run_folder::write_json;
use crate::scored::Scored;
use crate::training_sample::about_training;

/// Bootstrap replicates of an evaluation, of which there is one per share and repeat.
const REPLICATES: usize = 200;

/// The content of `power.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Found<'a> {
    arguments: &'a PowerExperiment,
    settings: &'a PowerSettings,
    evaluation: &'a EvaluationSettings,
    attribute: &'a str,
    level: &'a str,
    n: usize,
    n_events: usize,
    n_group: usize,
    metrics: &'a [MetricPower],
}

pub(super) fn run(arguments: &PowerExperiment) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let mut base = EvaluationSettings { replicates: REPLICATES, over_time: 0, ..EvaluationSettings::default() };
    if !arguments.metrics.is_empty() {
        base.metrics.clone_from(&arguments.metrics);
    }
    let evaluation = settings(Some(&base), &arguments.set, None)?;
    let default = PowerSettings::default();
    let power_settings = PowerSettings {
        shares: if arguments.shares.is_empty() { default.shares } else { arguments.shares.clone() },
        repeats: arguments.repeats,
        target: arguments.target,
        seed: arguments.seed,
    };
    power_settings.validate()?;
    let scored = read(arguments)?;
    scored.check_units(evaluation.reading)?;
    let name = &arguments.attribute.name;
    let groups = find(&scored.groups, name)?;
    let level = level(groups, &arguments.level)?;
    let subjects = scored.cohort.subjects(&scored.rows);
    let outcomes = scored.cohort.outcomes(&scored.rows)?;
    let curves = (&scored.curves, &scored.censoring);
    let power = Power::new((&subjects, &outcomes), curves, (groups, &level), &evaluation, &power_settings)?;
    let (progress, n) = (Files::new("shares"), power.shares().len());
    let mut at = Vec::with_capacity(n);
    for share in power.shares() {
        at.push(power.at(*share)?);
        progress.update(at.len(), n);
    }
    let metrics = power.curves(&at);
    let n_group = groups.ids().zip(groups.levels()).find(|(_, known)| **known == level);
    let n_group = n_group.map_or(0, |(group, _)| groups.rows(group).len());
    let found = Found {
        arguments,
        settings: &power_settings,
        evaluation: &evaluation,
        attribute: groups.attribute(),
        level: &level,
        n: outcomes.n(),
        n_events: outcomes.n_events(),
        n_group,
        metrics: &metrics,
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let facts = vec![
        fact("predictions", arguments.predictions.display().to_string()),
        fact("samples", format!("{}, {}", counted(outcomes.n(), "sample"), counted(outcomes.n_events(), "event"))),
        fact("degraded group", format!("{} {level}: {}", groups.attribute(), counted(n_group, "sample"))),
        fact("repeats of a share", power_settings.repeats.to_string()),
        fact("replicates, permutations", format!("{}, {}", evaluation.replicates, evaluation.permutations)),
        fact("level of the evaluation", evaluation.level.to_string()),
        fact("seed", power_settings.seed.to_string()),
        fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let title = format!("{} {level}", groups.attribute());
    let shown = page(&metrics, &title, &power_settings, &evaluation, facts);
    if let Some(folder) = &arguments.output {
        write_json(&folder.join("power.json"), &found)?;
        write_page(folder, "power", &shown)?;
    }
    if arguments.json {
        return print_json(&found);
    }
    for section in &shown.sections {
        section.verdict.iter().for_each(print);
        section.sheets.iter().for_each(|sheet| print(format!("\n{}", plain(sheet))));
    }
    if let Some(folder) = &arguments.output {
        print(format!("report: {}", folder.join("power.html").display()));
    }
    Ok(())
}

/// Curves, outcomes and groups, as `evaluate --predictions` reads them.
fn read(arguments: &PowerExperiment) -> Result<Scored, CliError> {
    if let Some(path) = &arguments.cohort {
        require_plain(&arguments.attribute)?;
        let (cohort, groups) = read_cohort(path)?;
        let split = arguments.split.as_ref().map(|path| Split::read_csv(path, &cohort)).transpose()?;
        let predictions = read_predictions(&arguments.predictions, Rising::Refuse)?;
        return Scored::new(predictions, &cohort, &groups, split.as_ref(), Part::Test);
    }
    let own = OwnTable {
        sample: arguments.sample.clone(),
        subject: arguments.subject.clone(),
        time: arguments.time.clone(),
        event: arguments.event.clone(),
        event_value: arguments.event_value.clone(),
        ..OwnTable::default()
    };
    let configs = attributes_to_compare(std::slice::from_ref(&arguments.attribute), false)?;
    let options = options(&own, Rising::Refuse)?;
    let help = |error| with_help(error, &own);
    let name = arguments.attribute.name.as_str();
    let table = read_scored_table(&arguments.predictions, &[name], &options).map_err(help)?;
    let fitted = table.fit_attributes(&configs)?;
    let rows = table.cohort.all_rows();
    let evaluated = table.cohort.outcomes(&rows)?;
    let train =
        arguments.train.as_deref().map(|path| read_outcomes(path, &options.columns)).transpose().map_err(help)?;
    let training = about_training(train.as_ref(), &evaluated)?;
    if let Some(warning) = &training {
        say(format!("warning: {}", warning.text));
    }
    Ok(Scored {
        cause: None,
        rows,
        groups: fitted.all().to_vec(),
        curves: SurvivalCurves::new(table.grid.clone(), table.survival)?,
        censoring: CensoringCurve::fit(train.as_ref().unwrap_or(&evaluated), CensoringTies::EventsFirst)?,
        cohort: table.cohort,
    })
}

/// Refuses a grouping beside a cohort, whose attributes are grouped already: only its name would be read.
fn require_plain(attribute: &AttributeConfig) -> Result<(), CliError> {
    if attribute.is_plain() {
        return Ok(());
    }
    let name = &attribute.name;
    let message = format!("the groups of \"{name}\" are those of --cohort, expected its name alone");
    Err(CliError::setting("--attribute", message, None))
}

fn find<'a>(all: &'a [Groups], name: &str) -> Result<&'a Groups, CliError> {
    all.iter().find(|groups| groups.attribute() == name).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(Groups::attribute).collect();
        let message = format!("\"{name}\" is no grouped attribute of the cohort, expected one of {}", known.join(", "));
        CliError::setting("--attribute", message, None)
    })
}

/// The level of this name, also in another case.
fn level(groups: &Groups, name: &str) -> Result<String, CliError> {
    let levels = groups.levels();
    let same = |level: &&String| level.to_lowercase() == name.to_lowercase();
    let found = levels.iter().find(|level| *level == name).or_else(|| levels.iter().find(same));
    found.cloned().ok_or_else(|| {
        let message = format!("\"{name}\" is no level of {}, expected one of {levels:?}", groups.attribute());
        CliError::setting("--level", message, None)
    })
}
