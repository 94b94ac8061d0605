//! `fairtte select`: chooses among finished runs, and evaluates the chosen ones in the test part.

use std::path::Path;

use super::evaluate::settings;
use super::exports::{exported, write_exports};
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Exports, Select};
use crate::progress::say;
use crate::report::{render_choice, tables_of_choice};
use crate::run_folder::{RunFolder, write_json, write_text};
use crate::selection::{Asked, Rule, Runs, Verdict, choose, markdown, page, terminal};

/// Largest relative loss of the base's metric, if none is given.
const TOLERATED_LOSS: f64 = 0.05;
/// Settings of an evaluation without effect on a choice: its metrics are fixed, and it has neither gaps by chance nor curves over time.
const WITHOUT_EFFECT: [&str; 4] = ["metrics", "permutations", "over-time", "thresholds"];

pub(super) fn run(arguments: &Select) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    check_tolerance(arguments)?;
    arguments.output.as_deref().map_or(Ok(()), refuse_run_folder)?;
    refuse_without_effect(&arguments.set)?;
    let runs = Runs::below(&arguments.runs)?;
    let settings = settings(Some(runs.evaluation()), &arguments.set, None)?;
    let asked = Asked {
        rule: arguments.rule,
        base: &arguments.base,
        tolerated_loss: arguments.tolerated_loss.unwrap_or(TOLERATED_LOSS),
        tolerated_loss_of: arguments.tolerated_loss_of.unwrap_or_default(),
        attributes: &arguments.attributes,
        settings: &settings,
    };
    let verdict = select(runs, &asked)?;
    write(arguments.output.as_deref(), &arguments.exports, &verdict)?;
    if arguments.json {
        return print_json(&verdict);
    }
    print(terminal(&verdict));
    Ok(())
}

/// Refuses settings that a choice does not use.
fn refuse_without_effect(settings: &[String]) -> Result<(), CliError> {
    for setting in settings {
        // Of `sensitivity.tilt`, the table.
        let key = setting.split(['=', '.']).next().unwrap_or_default().trim();
        let message = match key {
            "sensitivity" => "sensitivity to informative censoring stands beside one evaluation: fairtte evaluate RUN",
            key if WITHOUT_EFFECT.contains(&key) => {
                "it has no effect on a choice, expected a setting that has, such as replicates, level or seed"
            }
            _ => continue,
        };
        return Err(CliError::setting(key, message.to_owned(), None));
    }
    Ok(())
}

/// Checks the tolerated loss, which only the rule `fairest` reads.
fn check_tolerance(arguments: &Select) -> Result<(), CliError> {
    let given = [
        ("--tolerated-loss", arguments.tolerated_loss.is_some()),
        ("--tolerated-loss-of", arguments.tolerated_loss_of.is_some()),
    ];
    if arguments.rule != Rule::Fairest
        && let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given)
    {
        return Err(CliError::setting(option, "only --rule fairest tolerates a loss".to_owned(), None));
    }
    arguments.tolerated_loss.map_or(Ok(()), |share| check_share("--tolerated-loss", share))
}

/// Chooses among finished runs.
pub(super) fn select(runs: Runs, asked: &Asked<'_>) -> Result<Verdict, CliError> {
    let candidates = runs.candidates(asked.settings)?;
    say(format!("sets of weights to choose from: {}", candidates.all.len()));
    choose(&candidates, asked)
}

pub(super) fn check_share(key: &str, share: f64) -> Result<(), CliError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(CliError::setting(key, format!("{share} is no share, expected a number from 0 to 1"), None))
}

/// Refuses the folder of a run, since it contains one run only: a comparison of several, or the choice among them,
/// needs another folder.
pub(super) fn refuse_run_folder(folder: &Path) -> Result<(), CliError> {
    if !RunFolder::new(folder).run_file().exists() {
        return Ok(());
    }
    let problem = "this is the folder of a run; choose another --output".to_owned();
    Err(CliError::RunFolder { path: folder.to_owned(), problem })
}

/// Writes `choice.json`, `choice.csv`, `choice.md` and `choice.html` into `folder`, where there is one, and the figures and tables
/// of the page into theirs.
pub(super) fn write(folder: Option<&Path>, exports: &Exports, verdict: &Verdict) -> Result<(), CliError> {
    if folder.is_none() && *exports == Exports::default() {
        return Ok(());
    }
    let page = page(verdict)?;
    let html = render_choice(&page)?;
    if let Some(folder) = folder {
        let failed =
            |error: std::io::Error| CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() };
        std::fs::create_dir_all(folder).map_err(failed)?;
        write_json(&folder.join("choice.json"), verdict)?;
        write_text(&folder.join("choice.csv"), &page.csv)?;
        write_text(&folder.join("choice.md"), &markdown(verdict))?;
        write_text(&folder.join("choice.html"), &html)?;
        for name in ["choice.md", "choice.html"] {
            say(format!("written: {}", folder.join(name).display()));
        }
    }
    write_exports(exports, &html, || tables_of_choice(&page))?;
    exported(exports).into_iter().for_each(say);
    Ok(())
}
