//! `fairtte weights inspect`: what a file of weights, or the folder of a run, holds.

use std::path::Path;

use fairtte_models::weights::{Container, StoredTensor, WeightFile, sha256};
use serde_json::{Value, json};

use super::{is_counter, is_statistic, printable};
use crate::CliError;
use crate::args::WeightsInspect;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::run_folder::{KeptEpoch, ModelRecord, OpenRun};

pub(super) fn run(arguments: &WeightsInspect) -> Result<(), CliError> {
    if arguments.file.is_dir() {
        return of_run(&arguments.file, arguments.json);
    }
    let file = WeightFile::open(&arguments.file)?;
    if arguments.json {
        return print_json(&as_json(&file));
    }
    print(as_text(&file));
    Ok(())
}

fn as_json(file: &WeightFile) -> Value {
    let tensor = |tensor: &StoredTensor| json!({ "group": tensor.group, "key": tensor.key, "type": tensor.element.name(), "shape": tensor.shape });
    let Numbers { all, parameters } = Numbers::of(file);
    json!({
        "file": file.path().display().to_string(),
        "bytes": file.bytes().len(),
        "sha256": sha256(file.bytes()),
        "container": file.container().name(),
        "is": what(file),
        "root": file.root(),
        "top": file.top().iter().map(|top| json!({ "key": top.key, "content": top.content })).collect::<Vec<_>>(),
        "metadata": file.metadata().iter().map(|(key, value)| (key.clone(), json!(value))).collect::<serde_json::Map<_, _>>(),
        "not_built": file.not_built(),
        "numbers": all,
        "parameters": parameters,
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
    lines.extend(what(file).map(|what| format!("is         {what}")));
    let indented = |(key, value): &(String, String)| format!("  {} = {}", printable(key), printable(value));
    section(&mut lines, "metadata", file.metadata().iter().map(indented));
    section(&mut lines, "outermost keys", file.top().iter().map(|top| format!("  {}: {}", top.key, top.content)));
    let not_built = file.not_built().iter().map(|name| format!("  {}", name.escape_debug()));
    section(&mut lines, "classes and functions that were neither built nor called", not_built);
    let tensors = file.tensors();
    lines.push(format!("tensors: {}, {}", tensors.len(), Numbers::of(file).words()));
    let names: Vec<String> = tensors.iter().map(|tensor| tensor.name().escape_debug().to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(60);
    for (name, tensor) in names.iter().zip(tensors) {
        lines.push(format!("  {name:width$}  {:5} {:?}", tensor.element.name(), tensor.shape));
    }
    lines.join("\n")
}

/// How many numbers a file has, and how many of them are trained if it is one of our own.
struct Numbers {
    all: usize,
    parameters: Option<usize>,
}

impl Numbers {
    fn of(file: &WeightFile) -> Self {
        let is_trained = |tensor: &&StoredTensor| !is_statistic(&tensor.key) && !is_counter(&tensor.key);
        let parameters = || file.tensors().iter().filter(is_trained).map(StoredTensor::n).sum();
        Self { all: file.tensors().iter().map(StoredTensor::n).sum(), parameters: what(file).map(|_| parameters()) }
    }

    fn words(&self) -> String {
        match self.parameters {
            Some(parameters) => {
                format!(
                    "numbers: {}, parameters: {parameters}, running statistics: {}",
                    self.all,
                    self.all - parameters
                )
            }
            None => format!("numbers: {}", self.all),
        }
    }
}

/// What a file of this program is; `None` for files of others.
fn what(file: &WeightFile) -> Option<String> {
    let metadata = |key: &str| file.metadata().iter().find(|(name, _)| name == key).map(|(_, value)| printable(value));
    if file.container() == Container::Burnpack {
        return Some(
            "weights in the folder of a run of fairtte; `fairtte weights export` writes them for others".to_owned(),
        );
    }
    if let Some(backbone) = metadata("fairtte.export") {
        let of = |key: &str| metadata(key).unwrap_or_else(|| "?".to_owned());
        let [layout, head, strategy, epoch, beside] =
            ["layout", "head", "strategy", "epoch", "description"].map(|key| of(&format!("fairtte.{key}")));
        return Some(format!(
            "a trained model exported by fairtte: {backbone} in the layout {layout}, head {head}, strategy {strategy}, epoch \
             {epoch}; {beside} says how to compute its curves{}",
            agreement(file.path(), &beside, file.bytes())
        ));
    }
    metadata("fairtte.backbone").map(|backbone| format!("weights of {backbone} imported by fairtte"))
}

/// Whether the description beside an exported file is that of this file.
fn agreement(path: &Path, beside: &str, bytes: &[u8]) -> &'static str {
    // Only a plain name: the metadata of a file must not lead anywhere else.
    let Some(name) = Path::new(beside).file_name().filter(|name| *name == beside) else { return "" };
    let Ok(text) = std::fs::read(path.with_file_name(name)) else { return ", but is not here" };
    let written: Option<Value> = serde_json::from_slice(&text).ok();
    let hash = written.as_ref().and_then(|written| written["weights"]["sha256"].as_str());
    if hash == Some(&sha256(bytes)) { "" } else { ", but is that of another file" }
}

/// The trained model of a run.
fn of_run(path: &Path, as_json: bool) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = if path.join("run.toml").exists() {
        OpenRun::read(path)?
    } else {
        let problem = "it is a folder without run.toml, expected a file of weights or the folder of a run".to_owned();
        return Err(CliError::RunFolder { path: path.to_owned(), problem });
    };
    let record = folder.model_record()?;
    let what = format!(
        "a run of fairtte {}: {}, head {}, strategy {}",
        record.fairtte,
        run.model.backbone.name(),
        run.head.name(),
        run.strategy.name()
    );
    let mut epochs = Vec::new();
    for (epoch, kept) in &record.epochs {
        epochs.push((*epoch, kept, files_of(&folder.weights_of(*epoch), kept)?));
    }
    if as_json {
        return print_json(&run_as_json(path, &what, &record, &epochs));
    }
    let mut lines = vec![path.display().to_string(), format!("is  {what}")];
    for (epoch, kept, files) in &epochs {
        let predicts = if *epoch == record.epoch { ", that of predictions.parquet" } else { "" };
        let rules = if kept.rules.is_empty() { "no rule".to_owned() } else { kept.rules.join(", ") };
        lines.push(format!("epoch {epoch}: {}, chosen by {rules}{predicts}", kept.weights));
        lines.push(format!("  blake3 {}", kept.hash()));
        lines.extend(files.iter().map(ModelFile::line));
    }
    print(lines.join("\n"));
    Ok(())
}

type EpochFiles<'a> = (usize, &'a KeptEpoch, Vec<ModelFile>);

/// A file of the weights of an epoch.
struct ModelFile {
    name: String,
    blake3: String,
    /// Number of tensors, and of their numbers, of a file of weights.
    weights: Option<(usize, Numbers)>,
}

impl ModelFile {
    fn line(&self) -> String {
        let Self { name, blake3, weights } = self;
        let holds = match weights {
            Some((tensors, numbers)) => format!("{}, {}", counted(*tensors, "tensor"), numbers.words()),
            None => "numbers of the strategy or a baseline".to_owned(),
        };
        format!("  {name}  {holds}, blake3 {blake3}")
    }
}

fn files_of(folder: &Path, kept: &KeptEpoch) -> Result<Vec<ModelFile>, CliError> {
    let mut files = Vec::with_capacity(kept.files.len());
    for (name, blake3) in &kept.files {
        let path = folder.join(name);
        let unusable = |problem: String| CliError::RunFolder { path: path.clone(), problem };
        let bytes = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
        if blake3::hash(&bytes).to_hex().as_str() != blake3 {
            return Err(unusable("its content has changed since it was written (BLAKE3)".to_owned()));
        }
        let is_network = path.extension().is_some_and(|extension| extension == "bpk");
        let file = is_network.then(|| WeightFile::parse(&path, bytes)).transpose()?;
        let weights = file.map(|file| (file.tensors().len(), Numbers::of(&file)));
        files.push(ModelFile { name: name.clone(), blake3: blake3.clone(), weights });
    }
    Ok(files)
}

fn run_as_json(path: &Path, what: &str, record: &ModelRecord, epochs: &[EpochFiles<'_>]) -> Value {
    let file = |file: &ModelFile| {
        let weights = file.weights.as_ref();
        json!({
            "file": file.name,
            "blake3": file.blake3,
            "tensors": weights.map(|(tensors, _)| tensors),
            "numbers": weights.map(|(_, numbers)| numbers.all),
            "parameters": weights.and_then(|(_, numbers)| numbers.parameters),
        })
    };
    let epoch = |(epoch, kept, files): &EpochFiles<'_>| {
        let files: Vec<Value> = files.iter().map(file).collect();
        json!({ "epoch": epoch, "weights": kept.weights, "rules": kept.rules, "blake3": kept.hash(), "files": files })
    };
    json!({
        "run": path.display().to_string(),
        "is": what,
        "epoch": record.epoch,
        "epochs": epochs.iter().map(epoch).collect::<Vec<_>>(),
    })
}

/// A title with its lines, if there are any.
fn section(lines: &mut Vec<String>, title: &str, content: impl Iterator<Item = String>) {
    let mut content = content.peekable();
    if content.peek().is_some() {
        lines.push(title.to_owned());
        lines.extend(content);
    }
}
