//! Arguments of `evaluate`, `compare` and `select` for figures and tables as files of their own.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

/// What of the page is written as files too, for papers.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "For papers")]
pub struct Exports {
    /// Folder for every figure of the page as an SVG file, for example `survival-sex.svg`
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<PathBuf>,
    /// Folder for every table of the page in Markdown and LaTeX, for example `metric-c-td.md` and `metric-c-td.tex`
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<PathBuf>,
}
