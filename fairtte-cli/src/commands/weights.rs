//! `fairtte weights`: what a file of weights holds. Nothing in it is executed.

use fairtte_models::weights::{StoredTensor, WeightFile, sha256};
use serde_json::json;

use super::{print, print_json};
use crate::CliError;
use crate::args::{WeightsCommand, WeightsInspect};

pub(super) fn run(command: &WeightsCommand) -> Result<(), CliError> {
    match command {
        WeightsCommand::Inspect(arguments) => inspect(arguments),
    }
}

fn inspect(arguments: &WeightsInspect) -> Result<(), CliError> {
    let file = WeightFile::open(&arguments.file)?;
    if arguments.json {
        return print_json(&as_json(&file));
    }
    print(as_text(&file));
    Ok(())
}

fn as_json(file: &WeightFile) -> serde_json::Value {
    let tensor = |tensor: &StoredTensor| json!({ "group": tensor.group, "key": tensor.key, "type": tensor.element.name(), "shape": tensor.shape });
    json!({
        "file": file.path().display().to_string(),
        "bytes": file.bytes().len(),
        "sha256": sha256(file.bytes()),
        "container": file.container().name(),
        "root": file.root(),
        "top": file.top().iter().map(|top| json!({ "key": top.key, "content": top.content })).collect::<Vec<_>>(),
        "metadata": file.metadata().iter().map(|(key, value)| (key.clone(), json!(value))).collect::<serde_json::Map<_, _>>(),
        "not_built": file.not_built(),
        "tensors": file.tensors().iter().map(tensor).collect::<Vec<_>>(),
    })
}

fn as_text(file: &WeightFile) -> String {
    let mut lines = vec![
        file.path().display().to_string(),
        format!("container  {}, {} bytes", file.container().name(), file.bytes().len()),
        format!("sha256     {}", sha256(file.bytes())),
        format!("holds      {}", file.root()),
    ];
    let indented = |(key, value): &(String, String)| format!("  {key} = {value}");
    section(&mut lines, "metadata", file.metadata().iter().map(indented));
    section(&mut lines, "outermost keys", file.top().iter().map(|top| format!("  {}: {}", top.key, top.content)));
    let not_built = file.not_built().iter().map(|name| format!("  {}", name.escape_debug()));
    section(&mut lines, "classes and functions that were neither built nor called", not_built);
    let tensors = file.tensors();
    let n_numbers: usize = tensors.iter().map(StoredTensor::n).sum();
    lines.push(format!("{} tensors with {n_numbers} numbers", tensors.len()));
    let names: Vec<String> = tensors.iter().map(|tensor| tensor.name().escape_debug().to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(60);
    for (name, tensor) in names.iter().zip(tensors) {
        lines.push(format!("  {name:width$}  {:5} {:?}", tensor.element.name(), tensor.shape));
    }
    lines.join("\n")
}

/// A title with its lines, if there are any.
fn section(lines: &mut Vec<String>, title: &str, content: impl Iterator<Item = String>) {
    let mut content = content.peekable();
    if content.peek().is_some() {
        lines.push(title.to_owned());
        lines.extend(content);
    }
}
