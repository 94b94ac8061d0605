//! `fairtte compare`: strategies trained on the same data, split and network, and the choice among them.
//!
//! It is the smallest study: one data set, head and start, no search, and whole run folders. All trainings share `seed`, and with
//! it data and split; the seeds of the comparison are those of weights, order and noise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fairtte_fairness::{FairnessError, TOLERATED_LOSS};
use fairtte_models::ModelError;
use serde::Deserialize;
use serde_json::json;

use super::exports::exported;
use super::prepare::resolved;
use super::select::{check_share, refuse_run_folder, select, write};
use super::study::{Share, resolve, summary, train, write_report};
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Compare, Exports, Run};
use crate::merged::Merged;
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, read_json, remove_file};
use crate::selection::{Asked, LossOf, NotTrained, Rule, Runs, Verdict, terminal};
use crate::study::{Estimators, Plan, Refusal, Strategies, StudyFile};

/// Table `[compare]` of a run file.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CompareConfig {
    /// One training per `training-seed` and strategy.
    #[serde(default = "first_seed")]
    seeds: Vec<u64>,
    /// Folds of a cross-validation: every training is done once per fold, and the test parts of all folds are evaluated
    /// together. 1 = the split of the run file.
    #[serde(default = "one_fold")]
    folds: usize,
    /// The strategy that the others are compared with.
    #[serde(default = "erm")]
    base: String,
    /// Attributes on whose groups the strategies work, one after the other. Default: all of the run file.
    #[serde(default)]
    attributes: Vec<String>,
    /// Relative loss of the base's metric that is tolerated for the smallest gap.
    #[serde(default = "five_percent")]
    tolerated_loss: f64,
    /// What the tolerated loss is a share of: the base's `metric` (the paper) or its `skill`.
    #[serde(default)]
    tolerated_loss_of: LossOf,
    /// Settings by name of an estimator on columns, which is compared like a strategy.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    #[serde(default)]
    estimator: BTreeMap<String, toml::Table>,
    /// Settings by name of the strategy.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    #[serde(default)]
    strategy: BTreeMap<String, toml::Table>,
}

fn first_seed() -> Vec<u64> {
    vec![1]
}

fn one_fold() -> usize {
    1
}

fn erm() -> String {
    "erm".to_owned()
}

fn five_percent() -> f64 {
    TOLERATED_LOSS
}

pub(super) fn run(arguments: &Compare) -> Result<(), CliError> {
    let Compare { run: arguments, jobs, exports } = arguments;
    let config = read_config(arguments)?;
    let template = template(arguments)?;
    refuse_run_folder(&template.output)?;
    use_threads(arguments.common.threads.unwrap_or(template.threads))?;
    let settings = template.evaluation.clone();
    let mut plan = plan(&config, template)?;
    let planned = resolve(&plan)?;
    let mut seen = BTreeSet::new();
    let runs: Vec<&RunFile> =
        planned.iter().filter(|planned| seen.insert(&planned.id)).map(|planned| &planned.run).collect();
    let folder = plan.folder().path().to_owned();
    if arguments.common.dry_run && arguments.common.json {
        let resolved = runs.into_iter().map(resolved).collect::<Result<Vec<_>, _>>()?;
        let Exports { figures, tables } = exports;
        return print_json(&json!({
            "would": "train", "folder": folder, "figures": figures, "tables": tables, "run-files": resolved
        }));
    }
    if arguments.common.dry_run {
        say(format!("dry run: number of runs to train: {}, in {}", runs.len(), folder.display()));
        for run in runs {
            say(format!("  {}", run.output.display()));
        }
        exported(exports).into_iter().for_each(say);
        return Ok(());
    }
    for run in &runs {
        // A folder in which something else was trained is refused.
        OpenRun::finished(run, false)?;
    }
    for planned in &planned {
        // What could not be trained is tried again: what was wrong may have been mended.
        let folder = plan.folder().trial(&planned.id);
        remove_file(&folder.refused())?;
        remove_file(&folder.failed())?;
    }
    plan.write(&planned)?;
    let threads = arguments.common.threads.unwrap_or(planned[0].run.threads);
    train(&plan, &[], Share::of(jobs.get(), threads))?;
    summary(&plan)?;
    let asked = Asked {
        rule: Rule::Fairest,
        base: &config.base,
        tolerated_loss: config.tolerated_loss,
        tolerated_loss_of: config.tolerated_loss_of,
        attributes: &config.attributes,
        settings: &settings,
    };
    let not_trained = not_trained(&plan)?;
    let of_base =
        |run: &String| run.rsplit('/').next().is_some_and(|name| name.starts_with(&format!("{}-seed", config.base)));
    if let Some(NotTrained { because, .. }) = not_trained.iter().find(|of| of.runs.iter().any(of_base)) {
        let problem = format!("the base {} was not trained: {because}", config.base);
        return Err(CliError::RunFolder { path: folder, problem });
    }
    let folders: Vec<PathBuf> = runs.iter().map(|run| run.output.clone()).collect();
    let verdict = Verdict { not_trained, ..select(Runs::of(&folder, &folders)?, &asked)? };
    write(Some(&folder), exports, &verdict)?;
    write_report(&plan, 0)?;
    if arguments.common.json {
        return print_json(&verdict);
    }
    print(terminal(&verdict));
    Ok(())
}

/// The run file of all trainings.
fn template(arguments: &Run) -> Result<RunFile, CliError> {
    let mut run = RunFile::read_without(&arguments.config, &arguments.common.set, &["compare"])?;
    run.require_no_masks("compare")?;
    if let Some(output) = &arguments.output {
        run.output.clone_from(output);
    }
    super::override_run(&mut run, &arguments.common);
    if run.attribute.is_empty() {
        let message = "a comparison needs groups, but the run file has no [[attribute]]".to_owned();
        return Err(CliError::setting("attribute", message, None));
    }
    if !run.groups.train.is_empty() {
        let message = "compare.attributes sets the attributes whose groups strategies work on".to_owned();
        return Err(CliError::setting("groups.train", message, Some("write compare.attributes instead")));
    }
    Ok(run)
}

/// The comparison as a study: its strategies on one data set, with one head and start and without a search; a trial per seed. A
/// strategy that reads no groups is trained once for all attributes, and keeps the epochs that are best for the groups of each;
/// the others are trained once per attribute.
fn plan(config: &CompareConfig, template: RunFile) -> Result<Plan, CliError> {
    let known: Vec<&str> = template.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    if let Some(unknown) = config.attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute("compare.attributes", unknown, &known));
    }
    let study = StudyFile {
        trials: config.seeds.len(),
        seeds: config.seeds.clone(),
        folds: config.folds,
        tolerated_loss: config.tolerated_loss,
        strategies: Strategies {
            base: config.base.clone(),
            names: config.strategy.keys().filter(|name| **name != config.base).cloned().collect(),
            settings: config.strategy.clone(),
            search: BTreeMap::new(),
        },
        estimators: Estimators {
            names: config.estimator.keys().cloned().collect(),
            settings: config.estimator.clone(),
        },
        ..StudyFile::of_run(&template, &config.attributes)
    };
    study.check().map_err(in_compare)?;
    Plan::of_comparison(study, template)
}

/// Says where in `[compare]` the setting of the study is that is wrong.
fn in_compare(error: CliError) -> CliError {
    match error {
        CliError::Config { key, message, place, help } => {
            let key = match key.as_str() {
                "strategies.base" => "compare.base".to_owned(),
                "strategies.names" => "compare.strategy".to_owned(),
                key => match key.strip_prefix("estimators.settings.") {
                    Some(name) => format!("compare.estimator.{name}"),
                    None if key == "estimators.names" => "compare.estimator".to_owned(),
                    None => format!("compare.{key}"),
                },
            };
            CliError::Config { key, message, place, help }
        }
        other => other,
    }
}

/// The trainings that the data or the method do not allow, by reason.
fn not_trained(plan: &Plan) -> Result<Vec<NotTrained>, CliError> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for id in plan.ids() {
        let path = plan.folder().trial(id).refused();
        if path.exists() {
            let refusal: Refusal = read_json(&path)?;
            found.entry(refusal.because).or_default().insert(id.clone());
        }
    }
    let of = |(because, runs): (String, BTreeSet<String>)| NotTrained { runs: runs.into_iter().collect(), because };
    Ok(found.into_iter().map(of).collect())
}

/// Whether only this method fails on these data and the others may still work: a cell or group is too small, or a loss
/// is not finite. Files that cannot be read or written say nothing about it.
pub(super) fn is_about_the_method(error: &FairnessError) -> bool {
    !matches!(
        error,
        FairnessError::Interrupted { .. }
            | FairnessError::Checkpoint { .. }
            | FairnessError::Data(_)
            | FairnessError::Model(ModelError::ReadWeights { .. } | ModelError::DamagedWeights { .. })
    )
}

fn read_config(arguments: &Run) -> Result<CompareConfig, CliError> {
    let mut merged = Merged::default();
    for file in &arguments.config {
        merged.add_file(file)?;
    }
    merged.set_all(&arguments.common.set)?;
    if !merged.is_given("compare") {
        let message =
            "not given, expected a table [compare] with a table [compare.strategy.NAME] per strategy".to_owned();
        return Err(CliError::setting("compare", message, Some("`fairtte train` runs this file")));
    }
    let mut config: CompareConfig = merged.only("compare").into_config()?;
    if config.strategy.is_empty() && config.estimator.is_empty() {
        let message =
            "nothing to compare, expected a table [compare.strategy.NAME] or [compare.estimator.NAME]".to_owned();
        return Err(CliError::setting("compare", message, None));
    }
    config.strategy.entry(config.base.clone()).or_default();
    check_share("compare.tolerated-loss", config.tolerated_loss)?;
    if config.folds == 0 {
        let message = "0 folds, expected 1 for the split of the run file, or at least 2".to_owned();
        return Err(CliError::setting("compare.folds", message, None));
    }
    if config.seeds.is_empty() {
        return Err(CliError::setting("compare.seeds", "expected at least one seed".to_owned(), None));
    }
    Ok(config)
}
