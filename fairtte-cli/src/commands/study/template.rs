//! `fairtte study template`: study files to start from.

use crate::CliError;
use crate::args::{StudyTemplate, TemplateKind};
use crate::commands::print;
use crate::progress::say;
use crate::run_folder::write_text;

/// Ends in minutes on two cores.
const DEMO: [(&str, &str); 3] = [
    ("study.toml", include_str!("demo.toml")),
    ("films-a.toml", include_str!("films-a.toml")),
    ("films-b.toml", include_str!("films-b.toml")),
];

/// The study of the paper; its run files are those of the data sets.
const PAPER: [(&str, &str); 1] = [("study.toml", include_str!("paper.toml"))];

pub(super) fn run(arguments: &StudyTemplate) -> Result<(), CliError> {
    let files = match arguments.kind {
        TemplateKind::Demo => &DEMO[..],
        TemplateKind::Paper => &PAPER[..],
    };
    let Some(folder) = &arguments.output else {
        print(files[0].1.trim_end());
        return Ok(());
    };
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).exists()) {
        let problem = "it exists already; choose another --output".to_owned();
        return Err(CliError::RunFolder { path: folder.join(name), problem });
    }
    let failed = |error: std::io::Error| CliError::RunFolder { path: folder.clone(), problem: error.to_string() };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, text) in files {
        write_text(&folder.join(name), text)?;
        say(format!("written: {}", folder.join(name).display()));
    }
    Ok(())
}
