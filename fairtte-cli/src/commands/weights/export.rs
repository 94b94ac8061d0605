//! `fairtte weights export`: the trained model of a run as a safetensors file that torch reads, and a JSON file that says how
//! its numbers become curves.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use fairtte_fairness::Export;
use fairtte_models::weights::{sha256, write_export};
use serde_json::Value;

use super::description::{Description, FORMAT, WeightsFile};
use crate::CliError;
use crate::args::WeightsExport;
use crate::commands::predict::Member;
use crate::commands::{print, print_json, require_own_json};
use crate::run_folder::{OpenRun, write_json};

/// The device on which weights are read; nothing is computed.
const DEVICE: &str = "flex";
const EXTENSION: &str = "safetensors";

pub(super) fn run(arguments: &WeightsExport) -> Result<(), CliError> {
    let beside = description_path(&arguments.output)?;
    require_own(&beside)?;
    // Before any weights are read.
    OpenRun::read(&arguments.run)?.file.require_one_kind("the description of exported weights is")?;
    let member = Member::open(&arguments.run, arguments.epoch.as_deref(), Some(DEVICE))?;
    let export = member.network()?.export()?;
    let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = file(&member, &export, &file_name(&beside))?;
    let weights = WeightsFile::of(file_name(&arguments.output), sha256(&bytes), &export.tensors);
    let description = Description::new(&member, &export, weights)?;
    write_atomically(&arguments.output, |file| file.write_all(&bytes))?;
    write_json(&beside, &description)?; // last: it names the hash of the weights
    if arguments.json {
        return print_json(&description);
    }
    print(description.summary(&arguments.output, &beside));
    Ok(())
}

/// The name of the description, beside the weights.
fn description_path(output: &Path) -> Result<PathBuf, CliError> {
    if output.extension() == Some(OsStr::new(EXTENSION)) {
        return Ok(output.with_extension("json"));
    }
    let message = format!("\"{}\", expected a name that ends in .{EXTENSION}", output.display());
    Err(CliError::setting("--output", message, None))
}

/// Refuses to replace a file that no export wrote: the argument names the weights alone.
fn require_own(beside: &Path) -> Result<(), CliError> {
    let is_export = |content: &Value| content.get("format").is_some_and(|format| format == FORMAT);
    require_own_json(beside, "description of exported weights", is_export)
}

/// The bytes of the file of weights.
fn file(member: &Member, export: &Export, beside: &str) -> Result<Vec<u8>, CliError> {
    let backbone = member.run.model.backbone;
    let metadata = [
        ("fairtte.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("fairtte.channels", member.record.network(&member.path)?.channels.to_string()),
        ("fairtte.head", member.run.head.name().to_owned()),
        ("fairtte.strategy", member.run.strategy.name().to_owned()),
        ("fairtte.epoch", member.epoch.to_string()),
        ("fairtte.model", member.record.epochs[&member.epoch].hash()),
        ("fairtte.description", beside.to_owned()),
        ("fairtte.networks", export.networks.len().to_string()),
    ];
    let mut bytes = Vec::new();
    write_export(&export.tensors, backbone, &metadata, &mut bytes).map_err(fairtte_fairness::FairnessError::from)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    #[test]
    fn the_description_never_takes_the_place_of_the_weights() {
        let path = |name: &str| description_path(Path::new(name)).map_err(|error| error.to_string());
        assert_eq!(path("a/m.v2.safetensors").unwrap(), Path::new("a/m.v2.json"));
        let expected = "--output: \"m.json\", expected a name that ends in .safetensors";
        assert_eq!(path("m.json").unwrap_err(), expected);
        assert!(path("safetensors").is_err());
    }

    #[test]
    fn a_file_beside_the_weights_is_replaced_only_if_an_export_wrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("package.json");
        assert!(require_own(&beside).is_ok());
        std::fs::write(&beside, "{\"format\": \"fairtte-export\", \"version\": 1}").unwrap();
        assert!(require_own(&beside).is_ok());
        for other in
            ["{\"name\": \"site\"}", "{\"format\": \"pt\"}", "[\"fairtte-export\"]", "\"fairtte-export\"", "", "{"]
        {
            std::fs::write(&beside, other).unwrap();
            let error = require_own(&beside).unwrap_err().to_string();
            assert!(error.contains("package.json would be overwritten and is no description"), "{other}: {error}");
        }
    }
}
