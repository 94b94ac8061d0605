//! `fairtte features`: the numbers inside a network that stand for each sample, for the sources of bias and for analyses
//! of the user's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use burn::tensor::Device;
use fairtte_data::cohort::Exclusions;
use fairtte_data::predictions::write_feature_blocks;
use fairtte_data::{Cohort, DataError, Loader, Part, Split, make_split};
use fairtte_fairness::{FairnessError, Freeze, Layer, Pretrained, PretrainedConfig, features, features_of};
use fairtte_metrics::seeds::stream;
use fairtte_models::initialise;
use fairtte_models::weights::{Gray, Layout, WeightFile, sha256};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::predict::blocks::Blocks;
use super::predict::member::Member;
use super::predict::other::{OtherData, Outcomes};
use super::{print, print_json, require_own_json, use_threads};
use crate::CliError;
use crate::args::{FeatureLayer, FeaturePart, Features};
use crate::plural::counted;
use crate::prepared::{Care, Inputs, decode, label};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{RunFolder, read_json, write_json};

/// What a file of features has, beside it under the same name with the ending `.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FeatureRecord {
    /// The run, or the file of pre-trained weights.
    network: PathBuf,
    /// Epoch of the weights, counted from 1; absent for pre-trained weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<usize>,
    /// Hash of the weights.
    weights: String,
    layer: Layer,
    /// The data: a part of the run's own, or another file.
    data: String,
    /// Hash of the inputs.
    inputs: String,
    n: usize,
    n_features: usize,
}

pub(super) fn run(arguments: &Features) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let started = Instant::now();
    arguments.output.as_deref().map_or(Ok(()), require_own)?;
    let (path, record) = rayon::scope(|_| match (&arguments.run, &arguments.pretrained) {
        (Some(run), _) => of_run(run, arguments),
        (None, Some(file)) => of_file(file, arguments),
        (None, None) => Err(CliError::setting("RUN", "no network, expected RUN or --pretrained".to_owned(), None)),
    })?;
    if arguments.json {
        return print_json(&record);
    }
    let features = counted(record.n_features, "feature");
    print(format!("{features} of {} ({}): {}", counted(record.n, "sample"), record.data, path.display()));
    say(format!("done in {:.1} s", started.elapsed().as_secs_f64()));
    Ok(())
}

/// The file of the features of all samples of a run at a layer, computed if it is not there or of other weights.
///
/// # Errors
/// [`CliError`] if the run has no trained model or its data cannot be read.
pub(super) fn all_of_run(run: &Path, layer: FeatureLayer) -> Result<PathBuf, CliError> {
    let arguments = Features { run: Some(run.to_owned()), layer, ..Features::default() };
    rayon::scope(|_| of_run(run, &arguments)).map(|(path, _)| path)
}

fn layer_of(layer: FeatureLayer) -> Layer {
    match layer {
        FeatureLayer::Backbone => Layer::Backbone,
        FeatureLayer::Representation => Layer::Representation,
    }
}

/// The features of a run, of its own data or of others.
fn of_run(path: &Path, arguments: &Features) -> Result<(PathBuf, FeatureRecord), CliError> {
    let member = Member::open(path, arguments.epoch.as_deref(), arguments.device.as_deref())?;
    let output = match (&arguments.output, arguments.other.is_given()) {
        (Some(output), _) => output.clone(),
        (None, false) => RunFolder::new(path).features_of(arguments.layer, arguments.part),
        (None, true) => {
            let message = "features of other data need a file".to_owned();
            return Err(CliError::setting("--output", message, None));
        }
    };
    let (other, rows) = if arguments.other.is_given() {
        let ignored = Outcomes { ignored: true, time_factor: None };
        let unit = &member.record.time_unit;
        let other = OtherData::read(&arguments.other, &output, &member.run, unit, &[], ignored)?;
        let OtherData { file, cohort, mut exclusions, source, .. } = other;
        let (cohort, inputs) = member.inputs(&file, cohort, &mut exclusions)?;
        (Sources { data: source.display().to_string(), cohort, inputs }, None)
    } else {
        arguments.other.require_none()?;
        own(&member, path, arguments.part)?
    };
    let rows = rows.unwrap_or_else(|| other.cohort.all_rows());
    let layer = layer_of(arguments.layer);
    let record = FeatureRecord {
        network: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        epoch: Some(member.epoch),
        weights: member.record.epochs[&member.epoch].hash(),
        layer,
        data: other.data.clone(),
        inputs: other.inputs.fingerprint(),
        n: rows.len(),
        n_features: 0,
    };
    let network = member.network()?;
    let loader = member.loader(&other.inputs, &other.cohort, vec![None; other.cohort.n()])?;
    let n = write(&output, &other.cohort, &rows, &record, |rows| Ok(network.features(&loader, rows, layer)?))?;
    Ok((output, FeatureRecord { n_features: n, ..record }))
}

/// Samples with the inputs of a network.
pub(super) struct Sources {
    data: String,
    pub(super) cohort: Cohort,
    pub(super) inputs: Inputs,
}

/// The run's own data, and the rows of a part of them.
pub(super) fn own(member: &Member, path: &Path, part: FeaturePart) -> Result<(Sources, Option<Vec<usize>>), CliError> {
    let (cohort, mut exclusions) = label(&member.run)?;
    let file = RunFile { cache: Some(member.run.cache()), ..member.run.clone() };
    let (cohort, inputs) = member.inputs(&file, cohort, &mut exclusions)?;
    let split = Split::read_csv(&RunFolder::new(path).split(), &cohort)?;
    let rows = part_of(part).map(|part| split.rows(part).to_vec());
    let name = part_of(part).map_or_else(|| "all samples".to_owned(), |part| format!("{} part", part.name()));
    Ok((Sources { data: name, cohort, inputs }, rows))
}

fn part_of(part: FeaturePart) -> Option<Part> {
    match part {
        FeaturePart::All => None,
        FeaturePart::Train => Some(Part::Train),
        FeaturePart::Validation => Some(Part::Validation),
        FeaturePart::Test => Some(Part::Test),
    }
}

/// Features of a backbone with the weights of a file, which no training has changed.
fn of_file(file: &Path, arguments: &Features) -> Result<(PathBuf, FeatureRecord), CliError> {
    if arguments.layer == FeatureLayer::Representation {
        let message = "a file of pre-trained weights has no representation, expected --layer backbone".to_owned();
        return Err(CliError::setting("--layer", message, None));
    }
    let other = &arguments.other;
    let given = [("--data", other.data.is_some()), ("--table", other.table.is_some())];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = "the data of --pretrained are those of --config, expected no other data".to_owned();
        return Err(CliError::setting(option, message, None));
    }
    let mut run = RunFile::read(&arguments.config, &other.set)?;
    run.cache = Some(other.cache.clone().unwrap_or_else(|| run.cache()));
    let Some(output) = &arguments.output else {
        return Err(CliError::setting("--output", "features of a file of weights need a file".to_owned(), None));
    };
    if run.is_tabular() {
        let message = "pre-trained weights read images, the data are columns of a table".to_owned();
        return Err(CliError::setting("data", message, None));
    }
    let device = crate::device::open(arguments.device.as_deref().unwrap_or(&run.device))?;
    let (encoder, weights) = encoder_of(file, &run, &device)?;
    let (cohort, mut exclusions): (Cohort, Exclusions) = label(&run)?;
    let (cohort, store) = decode(&run, cohort, &mut exclusions, Care::Usual)?;
    let (split, _) = make_split(&cohort, &run.split, &run.attribute, run.seed)?;
    let intensity = run.intensity.fit(&store, &cohort, split.rows(Part::Train))?;
    let rows = part_of(arguments.part).map_or_else(|| cohort.all_rows(), |part| split.rows(part).to_vec());
    let record = FeatureRecord {
        network: file.to_owned(),
        epoch: None,
        weights,
        layer: Layer::Backbone,
        data: part_of(arguments.part).map_or("all samples", Part::name).to_owned(),
        inputs: format!("{} {intensity:?}{}", store.fingerprint(), cropped(&run)),
        n: rows.len(),
        n_features: 0,
    };
    let mut loader = Loader::new(&store, &cohort, vec![None; cohort.n()], &intensity)?;
    if let Some(augmentation) = run.augmentation()? {
        loader = loader.with_augmentation(augmentation)?; // of which a sequential pass only crops
    }
    let n = write(output, &cohort, &rows, &record, |rows| {
        let of_batch = |batch: &fairtte_fairness::Batch| features_of(&encoder, batch, Layer::Backbone);
        Ok(features(&loader, rows, &device, of_batch)?)
    })?;
    Ok((output.clone(), FeatureRecord { n_features: n, ..record }))
}

/// The size to which the images are cropped around their centre, for the hash of the inputs; nothing where they are not.
fn cropped(run: &RunFile) -> String {
    run.augmentation.crop.as_ref().map_or_else(String::new, |crop| format!(" cropped to {crop:?}"))
}

/// An encoder whose backbone has the weights of `file`, and the hash of the file.
fn encoder_of(file: &Path, run: &RunFile, device: &Device) -> Result<(fairtte_models::ImageEncoder, String), CliError> {
    let content = WeightFile::open(file)?;
    let hash = sha256(content.bytes());
    let config = PretrainedConfig {
        path: file.to_owned(),
        sha256: None,
        layout: Layout::default(),
        gray: Gray::default(),
        freeze: Freeze::default(),
        head_learning_rate: None,
    };
    let pretrained = Pretrained { file: Arc::new(content), config };
    let encoder = initialise(run.model.build(run.image.channels, device), stream(0, "weights/features", &[]));
    let fit = pretrained.fit(encoder.backbone())?;
    fit.require()?;
    fit.notes().iter().for_each(|note| say(format!("note: {note}")));
    let encoder = encoder.try_map_backbone(|backbone| fit.load(backbone).map_err(FairnessError::from))?;
    Ok((encoder, hash))
}

/// Refuses a file that is not Parquet by its name, and one beside which a JSON file of something else would be overwritten.
fn require_own(output: &Path) -> Result<(), CliError> {
    let refused = |message: String| Err(CliError::setting("--output", message, None));
    if output.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("parquet")) {
        return refused(format!("\"{}\", expected a name that ends in .parquet", output.display()));
    }
    let is_record = |content: &Value| ["layer", "weights", "inputs"].iter().all(|key| content.get(key).is_some());
    require_own_json(&output.with_extension("json"), "record of features", is_record)
}

/// Writes the features of `rows` and their record; nothing to do if both are there already. Returns the number of
/// features.
fn write(
    output: &Path,
    cohort: &Cohort,
    rows: &[usize],
    record: &FeatureRecord,
    compute: impl Fn(&[usize]) -> Result<Array2<f32>, CliError>,
) -> Result<usize, CliError> {
    let beside = output.with_extension("json");
    if output.exists()
        && let Ok(kept) = read_json::<FeatureRecord>(&beside)
        && (FeatureRecord { n_features: kept.n_features, ..record.clone() }) == kept
    {
        return Ok(kept.n_features);
    }
    let name = output.file_stem().unwrap_or_default().to_string_lossy();
    let work = output.with_file_name(format!(".{name}.work"));
    let samples = cohort.sample_ids(rows);
    let key = serde_json::to_string(&(record, &samples)).map_err(|error| CliError::Bug(error.to_string()))?;
    let blocks = Blocks::open(&work, blake3::hash(key.as_bytes()).to_hex().as_str(), rows.len())?;
    blocks.fill("features", |range| Ok(compute(&rows[range])?.mapv(f64::from)))?;
    let n = blocks.iter().next().transpose()?.map_or(0, |block| block.ncols());
    let names: Vec<String> = (0..n).map(|k| format!("f{k}")).collect();
    write_feature_blocks(output, &samples, &names, blocks.iter())?;
    write_json(&beside, &FeatureRecord { n_features: n, ..record.clone() })?;
    std::fs::remove_dir_all(&work).map_err(|source| DataError::Write { path: work, source })?;
    Ok(n)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn a_file_beside_the_features_is_replaced_only_if_it_is_their_record() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["cohort.csv", "cohort.json", "cohort"] {
            let error = require_own(&at(name)).unwrap_err().to_string();
            assert!(error.ends_with("expected a name that ends in .parquet"), "{error}");
        }
        assert!(require_own(&at("cohort.parquet")).is_ok());
        let record = FeatureRecord {
            network: "runs/films".into(),
            epoch: Some(3),
            weights: "0a".to_owned(),
            layer: Layer::Backbone,
            data: "all samples".to_owned(),
            inputs: "1b".to_owned(),
            n: 2,
            n_features: 4,
        };
        write_json(&at("cohort.json"), &record).unwrap();
        assert!(require_own(&at("cohort.parquet")).is_ok());
        for other in ["{\"name\": \"site\"}", "[]", "", "{\"layer\": \"roof\"}"] {
            std::fs::write(at("cohort.json"), other).unwrap();
            let error = require_own(&at("cohort.parquet")).unwrap_err().to_string();
            assert!(error.contains("cohort.json would be overwritten and is no record"), "{other}: {error}");
        }
    }
}
