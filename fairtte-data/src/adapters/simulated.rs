//! Simulated cohorts: generated into a folder of the cache, then read like any other table.
//!
//! | card | |
//! |---|---|
//! | modality | chest-film-like pictures (PNG) or brain-like volumes (NIfTI-1), see [`crate::simulated`] |
//! | subject, visit | simulated people; `images-per-subject` visits each |
//! | event, time origin | simulated event; time runs from the image |
//! | censoring | simulated, depends on the knobs |
//! | attributes | `sex` (F, M), `age` (years), `race` (White, Black, Asian, Other) |
//! | expected folder | none: a folder `simulated-..` is made in the cache, and reused if it already holds this simulation |
//! | source, licence, access | generated, free |

use std::path::{Path, PathBuf};

use super::generic::{Generic, GenericConfig};
use crate::cohort::Unlabelled;
use crate::simulated::{SimulationConfig, TimeUnit, simulate};
use crate::{Adapter, DataError};

pub(super) const NAME: &str = "simulated";

/// Adapter of simulated cohorts; see the module documentation.
#[derive(Clone, Debug)]
pub struct Simulated {
    config: SimulationConfig,
    seed: u64,
    folder: PathBuf,
    table: Generic,
}

impl Simulated {
    /// An adapter for the cohort that `config` and `seed` define, kept in a separate folder inside `cache_dir`.
    #[expect(clippy::missing_panics_doc, reason = "numbers and names always become JSON")]
    pub fn new(config: SimulationConfig, seed: u64, cache_dir: &Path) -> Self {
        // Settings and seed are in the name, so two simulations never share a folder.
        let request = serde_json::to_string(&(&config, seed)).expect("numbers and names always become JSON");
        let fingerprint = blake3::hash(request.as_bytes()).to_hex();
        let folder = cache_dir.join(format!("simulated-{}", &fingerprint[..16]));
        let mut table = GenericConfig::new(folder.join("manifest.csv"));
        table.name = Some(NAME.to_owned());
        let time_unit = match config.time_unit {
            TimeUnit::Years => "years",
            TimeUnit::Months => "months",
            TimeUnit::Days => "days",
        };
        time_unit.clone_into(&mut table.time_unit);
        Self { config, seed, folder, table: Generic::new(table) }
    }

    /// Where the pictures and tables are, or will be.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Adapter for Simulated {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Generates the cohort first if its folder does not already hold all of it.
    fn read(&self) -> Result<Unlabelled, DataError> {
        simulate(&self.config, self.seed, &self.folder, &|_, _| {})?;
        let mut read = self.table.read()?;
        NAME.clone_into(&mut read.provenance.adapter);
        Ok(read)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_is_generated_once_and_read_like_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let config = SimulationConfig { n_subjects: 5, size: vec![16, 16], ..SimulationConfig::default() };
        let adapter = Simulated::new(config.clone(), 3, folder.path());
        let manifest = adapter.read().unwrap().manifest;
        assert_eq!((manifest.rows.len(), manifest.time_unit.as_str()), (5, "years"));
        assert_eq!(manifest.attribute_names(), ["sex", "age", "race"]);
        let image = manifest.rows[0].image.clone().unwrap();
        let written = std::fs::metadata(&image).unwrap().modified().unwrap();
        assert_eq!(Simulated::new(config.clone(), 3, folder.path()).read().unwrap().manifest, manifest);
        assert_eq!(std::fs::metadata(&image).unwrap().modified().unwrap(), written, "not generated again");
        let other = Simulated::new(config, 4, folder.path());
        assert_ne!(other.folder(), adapter.folder());
    }
}
