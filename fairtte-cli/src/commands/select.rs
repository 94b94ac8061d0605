//! `fairtte select`: which of many finished runs to keep, and what the kept ones are worth.

use std::path::Path;

use fairtte_metrics::EvaluationSettings;

use super::evaluate::settings;
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Criterion, Select};
use crate::progress::say;
use crate::run_folder::write_text;
use crate::selection::{Rule, Verdict, choose, find, markdown, terminal};

pub(super) fn run(arguments: &Select) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let settings = settings(None, &arguments.set)?;
    let asked = Asked {
        rule: match arguments.rule {
            Criterion::Fairest => Rule::Fairest,
            Criterion::Overall => Rule::Overall,
            Criterion::Minimax => Rule::Minimax,
            Criterion::Dto => Rule::Dto,
        },
        base: &arguments.base,
        tolerated_loss: arguments.tolerated_loss,
        attributes: &arguments.attributes,
        settings: &settings,
    };
    let verdict = select(&arguments.runs, &asked)?;
    if let Some(output) = &arguments.output {
        write(output, &verdict)?;
    }
    if arguments.json {
        return print_json(&verdict);
    }
    print(terminal(&verdict));
    Ok(())
}

/// What is asked of a folder of runs.
pub(super) struct Asked<'a> {
    pub(super) rule: Rule,
    pub(super) base: &'a str,
    pub(super) tolerated_loss: f64,
    pub(super) attributes: &'a [String],
    pub(super) settings: &'a EvaluationSettings,
}

/// Chooses among the finished runs in `folder`.
pub(super) fn select(folder: &Path, asked: &Asked<'_>) -> Result<Verdict, CliError> {
    if !(0.0..=1.0).contains(&asked.tolerated_loss) {
        let message = format!("{} is no share, expected a number from 0 to 1", asked.tolerated_loss);
        return Err(CliError::setting("--tolerated-loss", message, None));
    }
    let candidates = find(folder, asked.settings)?;
    say(format!("choosing among {} sets of weights in {}", candidates.all.len(), folder.display()));
    choose(&candidates, asked.rule, asked.base, asked.tolerated_loss, asked.attributes, asked.settings)
}

/// Writes `selection.json` and `selection.md` into `folder`.
pub(super) fn write(folder: &Path, verdict: &Verdict) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = serde_json::to_string_pretty(verdict).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(&folder.join("selection.json"), &format!("{text}\n"))?;
    write_text(&folder.join("selection.md"), &markdown(verdict))?;
    say(format!("written: {}", folder.join("selection.md").display()));
    Ok(())
}
