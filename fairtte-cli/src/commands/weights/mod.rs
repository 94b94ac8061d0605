//! `fairtte weights`: the contents of a file of weights, its conversion to our own format, and the export of the model of a
//! run. Nothing in a file is executed.

mod description;
mod export;
mod inputs;
mod inspect;
mod rules;

use fairtte_data::write_atomically;
use fairtte_models::BackboneKind;
use fairtte_models::weights::{Fit, Gray, MOST_CHANNELS, NamedHash, WeightFile, sha256};
use serde_json::json;

use super::{print, print_json};
use crate::args::{WeightsCommand, WeightsImport};
use crate::progress::say;
use crate::{CliError, device};

pub(super) fn run(command: &WeightsCommand) -> Result<(), CliError> {
    match command {
        WeightsCommand::Inspect(arguments) => inspect::run(arguments),
        WeightsCommand::Export(arguments) => export::run(arguments),
        WeightsCommand::Import(arguments) => import(arguments),
    }
}

/// Text of a file with control characters of terminals escaped; quotes are kept.
fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\'' | '"' | '\\' => printed.push(letter),
            other => printed.extend(other.escape_debug()),
        }
    }
    printed
}

/// Whether the tensor is a running statistic of batch norm, which is not trained.
fn is_statistic(name: &str) -> bool {
    name.ends_with("running_mean") || name.ends_with("running_var")
}

/// Maximum number of keys of one kind that are printed; `--json` has all.
const MOST_SHOWN: usize = 20;

fn import(arguments: &WeightsImport) -> Result<(), CliError> {
    let file = WeightFile::open(&arguments.file)?;
    let kind = arguments.arch;
    if kind == BackboneKind::Mlp {
        let problem = "mlp has no published weights: its shape is that of a table".to_owned();
        return Err(CliError::setting("--arch", problem, None));
    }
    let channels = match (arguments.channels, arguments.gray) {
        (Some(channels), _) if (1..=MOST_CHANNELS).contains(&channels) => channels,
        (Some(channels), _) => {
            let problem = format!("{channels}, expected a whole number from 1 to {MOST_CHANNELS}");
            return Err(CliError::setting("--channels", problem, None));
        }
        (None, Gray::Sum | Gray::Mean) => 1,
        (None, Gray::Replicate) => {
            let problem = "replicate needs --channels, the number of channels of the images".to_owned();
            return Err(CliError::setting("--gray", problem, None));
        }
        (None, Gray::Auto) => Fit::channels_of(&file, kind, arguments.layout)?.unwrap_or(1),
    };
    refuse_idle_gray(&file, arguments, channels)?;
    let backbone = kind.build(channels, &device::open("flex")?);
    let fit = Fit::new(&file, &backbone, arguments.layout, arguments.gray)?;
    let hash = sha256(file.bytes());
    let named = NamedHash::of(file.path(), &hash);
    let provenance = fit.provenance(&backbone);
    if arguments.json {
        print_json(&import_as_json(&fit, &named, &provenance, fit.require().is_ok()))?;
    } else {
        print(import_as_text(&fit, &named, &provenance));
    }
    fit.require()?;
    if let Some(output) = &arguments.output {
        write_atomically(output, |file| fit.write(&backbone, file).map_err(std::io::Error::other))?;
        say(format!("wrote {} with {} tensors for {} input channels", output.display(), fit.matched().len(), channels));
    }
    Ok(())
}

/// Refuses a rule for another number of channels where the file has the number that is to be written.
fn refuse_idle_gray(file: &WeightFile, arguments: &WeightsImport, channels: usize) -> Result<(), CliError> {
    let idle =
        arguments.gray != Gray::Auto && Fit::channels_of(file, arguments.arch, arguments.layout)? == Some(channels);
    if !idle {
        return Ok(());
    }
    let (rule, path) = (arguments.gray.name(), arguments.file.display());
    let problem = format!("{rule} has nothing to adapt: the first convolution of {path} has {channels} input channels");
    Err(CliError::setting("--gray", problem, Some("leave --gray out, or give another number of --channels")))
}

fn import_as_json(fit: &Fit<'_>, named: &NamedHash, provenance: &[(String, String)], fits: bool) -> serde_json::Value {
    let missing =
        |(name, key, allowed): &(String, String, bool)| json!({ "name": name, "key": key, "allowed": allowed });
    let wrong = fit.wrong_shape().iter();
    let wrong = wrong
        .map(|wrong| json!({ "key": wrong.key, "name": wrong.name, "found": wrong.found, "expected": wrong.expected }));
    json!({
        "fits": fits,
        "layout": fit.layout().name(),
        "group": fit.group(),
        "hash_in_name": match named {
            NamedHash::None => "none",
            NamedHash::Agrees(_) => "agrees",
            NamedHash::Differs(_) => "differs",
        },
        "matched": fit.matched(),
        "missing": fit.missing().iter().map(missing).collect::<Vec<_>>(),
        "unexpected": fit.unexpected(),
        "wrong_shape": wrong.collect::<Vec<_>>(),
        "left_out": fit.left_out(),
        "notes": fit.notes(),
        "provenance": provenance.iter().map(|(key, value)| (key.clone(), json!(value))).collect::<serde_json::Map<_, _>>(),
    })
}

fn import_as_text(fit: &Fit<'_>, named: &NamedHash, provenance: &[(String, String)]) -> String {
    let line = |(key, value): &(String, String)| format!("{:17}  {}", printable(key), printable(value));
    let mut lines: Vec<String> = provenance.iter().filter(|(key, _)| key != "notes").map(line).collect();
    lines.push(match named {
        NamedHash::None => "hash in the name   none".to_owned(),
        NamedHash::Agrees(digits) => format!("hash in the name   {digits}, matches the file"),
        NamedHash::Differs(digits) => {
            format!("hash in the name   {digits}: NOT that of this file, which was changed, damaged or renamed")
        }
    });
    lines.extend(fit.notes().iter().map(|note| format!("note               {note}")));
    lines.push(String::new());
    let (may, must): (Vec<_>, Vec<_>) = fit.missing().iter().partition(|(_, _, allowed)| *allowed);
    let pair = |(name, key, _): &&(String, String, bool)| format!("{key}  for {name}");
    let wrong = |wrong: &fairtte_models::weights::WrongShape| {
        format!("{}  {} in place of {}", wrong.key, wrong.found, wrong.expected)
    };
    lines.push(format!("matched              {}", fit.matched().len()));
    listed(&mut lines, "missing", must.iter().map(pair).collect());
    listed(&mut lines, "missing, as allowed", may.iter().map(pair).collect());
    listed(&mut lines, "unexpected", fit.unexpected().to_vec());
    listed(&mut lines, "wrong shape", fit.wrong_shape().iter().map(wrong).collect());
    listed(&mut lines, "left out", fit.left_out().iter().filter(|key| !is_counter(key)).cloned().collect());
    let n_counters = fit.left_out().iter().filter(|key| is_counter(key)).count();
    if n_counters > 0 {
        lines.push(format!("counters left out    {n_counters}"));
    }
    lines.join("\n")
}

/// Whether the key is the number of batches that a batch norm has seen; with a fixed momentum nothing depends on it.
fn is_counter(key: &str) -> bool {
    key.ends_with(".num_batches_tracked")
}

/// A row of the table with its keys below.
fn listed(lines: &mut Vec<String>, title: &str, keys: Vec<String>) {
    let n = keys.len();
    lines.push(format!("{title:19}  {n}"));
    lines.extend(keys.into_iter().take(MOST_SHOWN).map(|key| format!("  {}", key.escape_debug())));
    if n > MOST_SHOWN {
        lines.push(format!("  and {} more; --json lists all", n - MOST_SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_file_cannot_steer_a_terminal() {
        assert_eq!(printable("ImageNet's \"a\\b\"\u{1b}[2J\r\n"), "ImageNet's \"a\\b\"\\u{1b}[2J\\r\\n");
    }

    /// What the import of a file with one empty tensor says.
    fn imported(channels: Option<usize>, gray: Gray) -> String {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let file = folder.path().join("w.safetensors");
        let header = br#"{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}} "#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header].concat();
        std::fs::write(&file, bytes).unwrap_or_else(|error| panic!("{error}"));
        let (arch, layout) = (BackboneKind::ResNet18, fairtte_models::weights::Layout::Torchvision);
        let arguments = WeightsImport { file, arch, layout, channels, gray, output: None, json: false };
        import(&arguments).map_or_else(|error| error.to_string(), |()| "none".to_owned())
    }

    #[test]
    fn a_replicated_channel_needs_a_number_of_channels() {
        let error = imported(None, Gray::Replicate);
        assert!(error.contains("replicate needs --channels"), "{error}");
    }

    #[test]
    fn a_number_of_channels_is_checked_before_a_network_is_built() {
        for channels in [0, MOST_CHANNELS + 1, usize::MAX] {
            let error = imported(Some(channels), Gray::Auto);
            assert_eq!(error, format!("--channels: {channels}, expected a whole number from 1 to 1024"));
        }
    }
}
