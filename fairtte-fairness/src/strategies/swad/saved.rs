//! The state of the averaging in a checkpoint: numbers in `swad.json`, and the weights of every mean in a file.

use std::path::Path;

use burn::module::Module as _;
use burn::store::ModuleRecord;
use fairtte_data::write_atomically;
use serde::{Deserialize, Serialize};

use super::valley::{Counters, Mean, Valley};
use super::weights::Weights;
use crate::strategies::saved::{read_state, write_state};
use crate::trainable::read;
use crate::{FairnessError, SurvivalNetwork};

const STATE: &str = "swad";

/// The valley of the weights of a network.
pub(super) type NetworkValley = Valley<Weights<SurvivalNetwork>>;

type NetworkMean = Mean<Weights<SurvivalNetwork>>;

/// A segment mean in a checkpoint; its weights are in a file next to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMean {
    file: String,
    n: u64,
}

/// The state without the weights.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedValley {
    counters: Counters,
    open: Option<SavedMean>,
    recent: Vec<SavedMean>,
    running: Option<SavedMean>,
    pending: Option<SavedMean>,
}

fn save_mean(mean: &NetworkMean, folder: &Path, name: &str) -> Result<SavedMean, FairnessError> {
    let file = format!("swad-{name}.weights.bpk");
    let path = folder.join(&file);
    let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
    let bytes = mean.weights.module().clone().into_record().into_bytes().map_err(|e| unusable(e.to_string()))?;
    write_atomically(&path, |out| std::io::Write::write_all(out, &bytes))?;
    Ok(SavedMean { file, n: mean.n })
}

fn load_mean(saved: &SavedMean, folder: &Path, shape: &SurvivalNetwork) -> Result<NetworkMean, FairnessError> {
    let path = folder.join(&saved.file);
    let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
    let record = ModuleRecord::from_bytes(read(&path)?).map_err(|e| unusable(e.to_string()))?;
    let network = shape.valid().try_load_record(record).map_err(|e| unusable(e.to_string()))?;
    Ok(Mean { weights: Weights::of(&network), n: saved.n })
}

/// Writes the state with all means.
pub(super) fn save_valley(valley: &NetworkValley, folder: &Path) -> Result<(), FairnessError> {
    let save = |mean: &NetworkMean, name: &str| save_mean(mean, folder, name);
    let save_one = |mean: &Option<NetworkMean>, name| mean.as_ref().map(|mean| save(mean, name)).transpose();
    let recent = valley.recent.iter().enumerate().map(|(k, mean)| save(mean, &format!("recent-{k}")));
    let saved = SavedValley {
        counters: valley.counters.clone(),
        open: save_one(&valley.open, "open")?,
        recent: recent.collect::<Result<_, _>>()?,
        running: save_one(&valley.running, "running")?,
        pending: save_one(&valley.pending, "pending")?,
    };
    write_state(folder, STATE, &saved)
}

/// Reads what [`save_valley`] wrote; `shape` is a network of the same shape.
pub(super) fn load_valley(
    valley: &mut NetworkValley,
    folder: &Path,
    shape: &SurvivalNetwork,
) -> Result<(), FairnessError> {
    let saved = read_state(folder, STATE, |saved: &SavedValley| {
        let (means, losses) = (saved.recent.len(), saved.counters.recent_losses.len());
        let problem = || format!("{means} means and {losses} losses, expected as many of both");
        if means == losses { Ok(()) } else { Err(problem()) }
    })?;
    let load_one = |mean: &Option<SavedMean>| mean.as_ref().map(|m| load_mean(m, folder, shape)).transpose();
    let recent = saved.recent.iter().map(|mean| load_mean(mean, folder, shape)).collect::<Result<_, _>>()?;
    let (open, running) = (load_one(&saved.open)?, load_one(&saved.running)?);
    let pending = load_one(&saved.pending)?;
    valley.counters = saved.counters;
    valley.recent = recent;
    (valley.open, valley.running, valley.pending) = (open, running, pending);
    Ok(())
}
