//! `fairtte compare`: strategies trained on the same data, split and network, and the choice among them.
//!
//! All share `seed`, and with it data and split; the seeds of the comparison are those of weights, order and noise.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairtte_fairness::{FairnessError, TOLERATED_LOSS};
use serde::Deserialize;
use serde_json::json;

use super::evaluate::Shown;
use super::prepare::resolved;
use super::select::{check_share, refuse_run_folder, select, write};
use super::train::train;
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::Run;
use crate::merged::Merged;
use crate::progress::say;
use crate::run_file::RunFile;
use crate::selection::{Asked, LossOf, NotTrained, Rule, Runs, Verdict, terminal};

/// Table `[compare]` of a run file.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CompareConfig {
    /// One training per `training-seed` and strategy.
    #[serde(default = "first_seed")]
    seeds: Vec<u64>,
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
    /// Settings by name of the strategy.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    strategy: BTreeMap<String, toml::Table>,
}

fn first_seed() -> Vec<u64> {
    vec![1]
}

fn erm() -> String {
    "erm".to_owned()
}

fn five_percent() -> f64 {
    TOLERATED_LOSS
}

pub(super) fn run(arguments: &Run) -> Result<(), CliError> {
    let config = read_config(arguments)?;
    let mut template = RunFile::read_without(&arguments.config, &arguments.common.set, &["compare"])?;
    if let Some(output) = &arguments.output {
        template.output.clone_from(output);
    }
    refuse_run_folder(&template.output)?;
    use_threads(arguments.common.threads.unwrap_or(template.threads))?;
    let runs = plan(arguments, &config, &template)?;
    for run in &runs {
        run.check()?;
    }
    if arguments.common.dry_run && arguments.common.json {
        let resolved = runs.iter().map(resolved).collect::<Result<Vec<_>, _>>()?;
        return print_json(&json!({ "would": "train", "folder": template.output, "run-files": resolved }));
    }
    if arguments.common.dry_run {
        say(format!("dry run: number of runs to train: {}, in {}", runs.len(), template.output.display()));
        for run in &runs {
            say(format!("  {}", run.output.display()));
        }
        return Ok(());
    }
    let mut not_trained = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        say(format!("run {} of {}", i + 1, runs.len()));
        match train(run, Shown::Nothing) {
            Err(CliError::Training(cause)) if i > 0 && is_about_the_method(&cause) => {
                say(format!("not trained: {cause}"));
                let below = run.output.strip_prefix(&template.output).unwrap_or(&run.output).display().to_string();
                not_trained.entry(cause.to_string()).or_insert_with(Vec::new).push(below);
            }
            other => other?,
        }
    }
    let asked = Asked {
        rule: Rule::Fairest,
        base: &config.base,
        tolerated_loss: config.tolerated_loss,
        tolerated_loss_of: config.tolerated_loss_of,
        attributes: &config.attributes,
        settings: &template.evaluation,
    };
    let not_trained = not_trained.into_iter().map(|(because, runs)| NotTrained { runs, because }).collect();
    let folders: Vec<PathBuf> = runs.iter().map(|run| run.output.clone()).collect();
    let verdict = Verdict { not_trained, ..select(Runs::of(&template.output, &folders)?, &asked)? };
    write(&template.output, &verdict)?;
    if arguments.common.json {
        return print_json(&verdict);
    }
    print(terminal(&verdict));
    Ok(())
}

/// Whether only this method fails on these data and the others may still work: a cell or group is too small, or a loss
/// is not finite.
pub(super) fn is_about_the_method(error: &FairnessError) -> bool {
    !matches!(error, FairnessError::Interrupted { .. } | FairnessError::Checkpoint { .. } | FairnessError::Data(_))
}

fn read_config(arguments: &Run) -> Result<CompareConfig, CliError> {
    let mut merged = Merged::default();
    for file in &arguments.config {
        merged.add_file(file)?;
    }
    merged.set_all(&arguments.common.set)?;
    let mut config: CompareConfig = merged.only("compare").into_config()?;
    config.strategy.entry(config.base.clone()).or_default();
    check_share("compare.tolerated-loss", config.tolerated_loss)?;
    if config.seeds.is_empty() {
        return Err(CliError::setting("compare.seeds", "expected at least one seed".to_owned(), None));
    }
    Ok(config)
}

/// Folder of the trainings that serve all attributes.
const ALL_ATTRIBUTES: &str = "all-attributes";

/// All runs, that of the base strategy and the first seed first. A strategy that reads no groups is trained once for all
/// attributes, and keeps the epochs that are best for the groups of each; the others are trained once per attribute.
fn plan(arguments: &Run, config: &CompareConfig, template: &RunFile) -> Result<Vec<RunFile>, CliError> {
    let known: Vec<&str> = template.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    if known.is_empty() {
        let message = "a comparison needs groups, but the run file has no [[attribute]]".to_owned();
        return Err(CliError::setting("attribute", message, None));
    }
    if !template.groups.train.is_empty() {
        let message = "compare.attributes sets the attributes whose groups strategies work on".to_owned();
        return Err(CliError::setting("groups.train", message, Some("write compare.attributes instead")));
    }
    if let Some(unknown) = config.attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute("compare.attributes", unknown, &known));
    }
    let all = || known.iter().map(|name| (*name).to_owned()).collect();
    let attributes: Vec<String> = if config.attributes.is_empty() { all() } else { config.attributes.clone() };
    let mut names: Vec<&String> = config.strategy.keys().collect();
    names.sort_by_key(|name| (**name != config.base, *name));
    let mut runs = Vec::new();
    for name in names {
        let settings = toml::Value::Table(config.strategy[name].clone());
        let strategy = format!("strategy.{name}={settings}");
        for seed in &config.seeds {
            let mut sets = arguments.common.set.clone();
            sets.extend([strategy.clone(), format!("training-seed={seed}")]);
            let mut run = RunFile::read_without(&arguments.config, &sets, &["compare"])?;
            super::override_run(&mut run, &arguments.common);
            run.cache = Some(template.cache());
            if run.serves_all_attributes() && attributes.len() > 1 {
                run.name = format!("{}: {name}, seed {seed}", template.name);
                run.output = template.output.join(ALL_ATTRIBUTES).join(format!("{name}-seed{seed}"));
                runs.push(run);
                continue;
            }
            for attribute in &attributes {
                let mut run = run.clone();
                run.name = format!("{}: {name}, seed {seed}, for {attribute}", template.name);
                run.groups.train = vec![attribute.clone()];
                run.output = template.output.join(attribute).join(format!("{name}-seed{seed}"));
                runs.push(run);
            }
        }
    }
    Ok(runs)
}
