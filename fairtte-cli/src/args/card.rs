//! Arguments of `card`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `card`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Card {
    /// Folder of a finished run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// File to write, replaced if it exists, instead of `model-card.md` in the run folder
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// TOML file with what a program cannot know, for example `licence` and `intended-use`; every key may be absent
    #[arg(long, value_name = "FILE")]
    pub about: Option<PathBuf>,
    /// Folder with the `evaluation.json` of the same model on other data, as `fairtte evaluate` writes it; may be repeated.
    /// Its name on the card is its title or the name of the folder, or NAME
    #[arg(long, value_name = "[NAME=]DIR")]
    pub external: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  the card of a run
    fairtte card runs/films
  with statements of the owner and the evaluation in another hospital
    fairtte card runs/films --about about.toml --external 'Hospital B=runs/films-in-b'
Keys of --about, each a text:
  owner, contact, licence, citation, intended-use, intended-users, out-of-scope-use, relevant-factors, evaluation-data,
  training-data, sensitive-data, human-life, mitigations, risks-and-harms, fraught-uses, caveats";
