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

/// The protocol of MEDFAIR, with the run files of its data sets.
const MEDFAIR: [(&str, &str); 11] = [
    ("study.toml", include_str!("medfair/study.toml")),
    ("chexpert.toml", include_str!("medfair/chexpert.toml")),
    ("mimic-cxr.toml", include_str!("medfair/mimic-cxr.toml")),
    ("ham10000.toml", include_str!("medfair/ham10000.toml")),
    ("papila.toml", include_str!("medfair/papila.toml")),
    ("fitzpatrick17k.toml", include_str!("medfair/fitzpatrick17k.toml")),
    ("ol3i.toml", include_str!("medfair/ol3i.toml")),
    ("oct.toml", include_str!("medfair/oct.toml")),
    ("covid-ct-md.toml", include_str!("medfair/covid-ct-md.toml")),
    ("adni-1.5t.toml", include_str!("medfair/adni-1.5t.toml")),
    ("adni-3t.toml", include_str!("medfair/adni-3t.toml")),
];

pub(super) fn run(arguments: &StudyTemplate) -> Result<(), CliError> {
    let files = match arguments.kind {
        TemplateKind::Demo => &DEMO[..],
        TemplateKind::Paper => &PAPER[..],
        TemplateKind::Medfair => &MEDFAIR[..],
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
