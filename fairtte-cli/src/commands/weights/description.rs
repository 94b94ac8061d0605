//! The JSON file beside exported weights: everything else that is needed to compute the curves of the run.

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_data::cohort::FittedAttribute;
use fairtte_fairness::strategies::RecalibrationMaps;
use fairtte_fairness::{Combination, Export, ExportedNetwork, StrategyConfig};
use fairtte_metrics::Reading;
use fairtte_models::weights::NamedTensor;
use fairtte_survival::{CutPoints, PredictionGrid, TimeScale};
use serde::Serialize;

use super::inputs::Input;
use super::rules::{BackboneRule, CURVE_BETWEEN, HeadRule, RECALIBRATION};
use crate::CliError;
use crate::commands::predict::Member;
use crate::plural::counted;
use crate::run_file::training::PretrainedConfig;

/// What marks the file.
pub(super) const FORMAT: &str = "fairtte-export";
/// Incremented when the content changes its meaning.
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Description<'a> {
    format: &'static str,
    version: u32,
    /// Version of the program that exported.
    fairtte: &'static str,
    run: RunPart<'a>,
    weights: WeightsFile,
    input: Input<'a>,
    backbone: BackboneRule,
    layers: Layers,
    networks: Vec<Network<'a>>,
    combination: Combined,
    head: Head<'a>,
    cut_points: &'a CutPoints,
    grid: &'a PredictionGrid,
    curve_between: &'static str,
    /// How the evaluation reads a curve between the times of the grid.
    reading: Reading,
    time_unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    recalibration: Option<Recalibration<'a>>,
    groups: Groups<'a>,
    attributes: &'a [FittedAttribute],
}

/// Where the model comes from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct RunPart<'a> {
    name: &'a str,
    /// Version of the program that trained.
    trained_by: &'a str,
    strategy: &'a StrategyConfig,
    /// Counted from 1.
    epoch: usize,
    /// The epoch in words; some strategies average several.
    weights: &'a str,
    /// The selection rules that chose it.
    rules: &'a [String],
    /// BLAKE3 of the files of the weights in the run folder.
    files: &'a BTreeMap<String, String>,
    /// BLAKE3 of all of them.
    hash: String,
    /// The file that the training started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pretrained: Option<&'a PretrainedConfig>,
}

/// The file of weights.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct WeightsFile {
    file: String,
    sha256: String,
    tensors: usize,
    /// Trained numbers.
    parameters: usize,
    /// Numbers of the running statistics of batch norm.
    running_statistics: usize,
}

impl WeightsFile {
    pub(super) fn of(file: String, sha256: String, tensors: &[NamedTensor]) -> Self {
        let numbers = |is_wanted: bool| {
            let chosen = tensors.iter().filter(|tensor| super::is_statistic(&tensor.name) == is_wanted);
            chosen.map(|tensor| tensor.values.len()).sum()
        };
        Self { file, sha256, tensors: tensors.len(), parameters: numbers(false), running_statistics: numbers(true) }
    }
}

/// The layers of a network after the backbone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Layers {
    order: &'static str,
    linear: &'static str,
    features: usize,
    /// Length of the representation; 0 if the classifier reads the features themselves.
    representation: usize,
    /// Width of the hidden layer of the classifier; 0 without one.
    hidden: usize,
    outputs: usize,
    /// Scale of the time that the classifier reads, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_scale: Option<Scaled>,
}

/// The scale of times, with the place where the time enters.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Scaled {
    #[serde(flatten)]
    scale: TimeScale,
    formula: &'static str,
    enters: &'static str,
}

const ORDER: &str = "backbone; projection (if representation > 0); the linear layer `code` of the network (if it has one); \
classifier.hidden, then ReLU (if hidden > 0); classifier.output. Dropout is not applied in prediction.";
const LINEAR: &str = "y = weight x + bias, weight [out, in]; a layer without a bias has no tensor of that name";
const TIME_FORMULA: &str = "u = (v - mean) / deviation, v = log(1 + t) if log, else t, t in the time unit";
const TIME_ENTERS: &str = "u is the last input of classifier.hidden, after the representation; one output per event time of \
the baseline";

/// A network with its baseline.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Network<'a> {
    /// Level of the attribute that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    encoder: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    classifier: &'a str,
    weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<BaselinePart<'a>>,
}

/// The baseline hazard of a Cox head.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct BaselinePart<'a> {
    /// Event times of the training part, ascending.
    times: &'a [f64],
    /// Logarithms of the increments of the cumulative baseline hazard.
    log_hazards: &'a [f64],
    /// Cumulative baseline hazard.
    cumulative: Vec<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Combined {
    #[serde(flatten)]
    rule: Combination,
    words: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Head<'a> {
    name: &'static str,
    settings: &'a crate::run_file::training::HeadConfig,
    #[serde(flatten)]
    rule: HeadRule,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Recalibration<'a> {
    words: &'static str,
    #[serde(flatten)]
    maps: &'a RecalibrationMaps,
}

/// The groups that the strategy knows, in the order of their indices.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Groups<'a> {
    attribute: &'a str,
    levels: &'a [String],
    /// Whether a prediction depends on the group of the sample.
    read_by_prediction: bool,
}

impl<'a> Description<'a> {
    /// # Errors
    /// [`CliError`] for a head that is not one of this program's own.
    pub(super) fn new(member: &'a Member, export: &'a Export, weights: WeightsFile) -> Result<Self, CliError> {
        let (run, record) = (&member.run, &member.record);
        let fitted = record.network(&member.path)?;
        let kept = &record.epochs[&member.epoch];
        let classifier = &fitted.classifier;
        let levels = &fitted.cells.levels;
        Ok(Self {
            format: FORMAT,
            version: VERSION,
            fairtte: env!("CARGO_PKG_VERSION"),
            run: RunPart {
                name: &run.name,
                trained_by: &record.fairtte,
                strategy: &run.strategy,
                epoch: member.epoch,
                weights: &kept.weights,
                rules: &kept.rules,
                files: &kept.files,
                hash: kept.hash(),
                pretrained: run.pretrained.as_ref(),
            },
            weights,
            input: Input::new(run, record, fitted.channels)?,
            backbone: BackboneRule::of(&run.model, fitted.channels),
            layers: Layers {
                order: ORDER,
                linear: LINEAR,
                features: run.model.n_features(),
                representation: run.model.representation,
                hidden: classifier.hidden,
                outputs: classifier.n_outputs,
                time_scale: classifier.time_scale.map(|scale| Scaled {
                    scale,
                    formula: TIME_FORMULA,
                    enters: TIME_ENTERS,
                }),
            },
            networks: export.networks.iter().map(|network| of_network(network, levels)).collect(),
            combination: Combined { rule: export.combination, words: export.combination.sentence() },
            head: Head { name: run.head.name(), settings: &run.head, rule: HeadRule::of(&run.head)? },
            cut_points: &fitted.cut_points,
            grid: &fitted.grid,
            curve_between: CURVE_BETWEEN,
            reading: run.evaluation.reading,
            time_unit: &record.time_unit,
            recalibration: export.recalibration.as_ref().map(|maps| Recalibration { words: RECALIBRATION, maps }),
            groups: Groups { attribute: &fitted.cells.attribute, levels, read_by_prediction: member.needs_group() },
            attributes: &record.attributes,
        })
    }

    /// What was written, for the terminal.
    pub(super) fn summary(&self, output: &Path, beside: &Path) -> String {
        let WeightsFile { sha256, tensors, parameters, .. } = &self.weights;
        let (head, networks) = (self.head.name, counted(self.networks.len(), "network"));
        let (backbone, library, epoch) = (self.backbone.name(), self.backbone.library(), self.run.epoch);
        let (output, beside) = (output.display(), beside.display());
        format!(
            "{output}  {tensors} tensors, {parameters} parameters, sha256 {sha256}\n\
             {beside}  {networks} of backbone {backbone} in the names of {library}, head {head}, epoch {epoch}"
        )
    }
}

fn of_network<'a>(network: &'a ExportedNetwork, levels: &'a [String]) -> Network<'a> {
    let baseline = network.baseline.as_ref().map(|baseline| BaselinePart {
        times: baseline.times(),
        log_hazards: baseline.log_hazards(),
        cumulative: baseline.cumulative(),
    });
    Network {
        group: network.group.and_then(|g| levels.get(g)).map(String::as_str),
        encoder: &network.encoder,
        code: network.code.as_deref(),
        classifier: &network.classifier,
        weight: network.weight,
        baseline,
    }
}
