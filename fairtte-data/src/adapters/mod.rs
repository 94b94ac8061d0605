//! The data sets this crate can read: one file each, and the only registry of them.
//!
//! An adapter reads the files and columns of its data set and turns them into [`Unlabelled`] rows; all code specific to
//! a data set is in its file or folder. Adding a data set changes its file, [`DataConfig`] and [`catalogue`].

pub mod adni;
pub mod areds;
mod codes;
pub(crate) mod columns;
pub(crate) mod dates;
mod final_visit;
pub(crate) mod find;
mod generic;
mod mimic_cxr;
mod observed;
mod simulated;
mod tabular;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use adni::{Adni, AdniConfig};
pub use areds::{Areds, AredsConfig};
pub use generic::{Generic, GenericConfig};
pub use mimic_cxr::{AfterDischarge, Death, MimicCxr, MimicCxrConfig, RaceChoice, UnknownRace};
pub use simulated::Simulated;
pub use tabular::{Tabular, TabularConfig};

use crate::cohort::{OutcomeConfig, Unlabelled, WithoutOutcome};
use crate::simulated::SimulationConfig;
use crate::{AttributeConfig, DataError};

/// The label rule of rows without outcomes, in the words of a provenance.
const NO_OUTCOMES: &str = "no outcomes were read";

/// Reads the files of one data set.
pub trait Adapter {
    /// Name of the data set as the run file spells it, for example `generic`.
    fn name(&self) -> &'static str;

    /// Reads every row, and the evidence for the labels; nothing is dropped.
    ///
    /// # Errors
    /// A missing file or column, a table that cannot be parsed, or a cell that is not what its column should hold.
    fn read(&self) -> Result<Unlabelled, DataError>;

    /// As [`read`](Self::read), of events of several causes.
    ///
    /// # Errors
    /// [`DataError::NoCauses`] of a data set with one kind of event, and as [`read`](Self::read).
    fn read_causes(&self, outcome: &OutcomeConfig) -> Result<Unlabelled, DataError> {
        let _ = outcome;
        Err(DataError::NoCauses { data: self.name() })
    }

    /// Reads every row without its outcome, for predictions: the rule censors every row at time 0, so that nothing is known
    /// about it, and leaves out only the rows of [`WithoutOutcome`]. A table without columns of outcomes can be read this way.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_without_outcomes(&self) -> Result<Unlabelled, DataError> {
        let Unlabelled { manifest, rule, mut provenance } = self.read()?;
        NO_OUTCOMES.clone_into(&mut provenance.rule);
        provenance.reasons.retain(|reason| !reason.is_of_outcome());
        Ok(Unlabelled { manifest, rule: Box::new(WithoutOutcome(rule)), provenance })
    }

    /// The attributes to use when the run file names none.
    fn default_attributes(&self) -> Vec<AttributeConfig> {
        Vec::new()
    }

    /// One sentence on the terms of use of the data; `None` if there are no particular terms.
    fn data_use(&self) -> Option<&'static str> {
        None
    }
}

/// Which data set a run reads, chosen by the name of the table in the run file: `[data.generic]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DataConfig {
    /// A table with one row per image.
    Generic(GenericConfig),
    /// A cohort generated with known sources of bias.
    Simulated(SimulationConfig),
    /// Chest films of MIMIC-CXR-JPG with deaths from MIMIC-IV.
    MimicCxr(MimicCxrConfig),
    /// Brain MRI of ADNI.
    Adni(AdniConfig),
    /// Fundus photographs of AREDS with the tables of dbGaP.
    Areds(AredsConfig),
    /// A table with one row per sample, whose columns are the inputs of the model.
    Tabular(TabularConfig),
}

impl DataConfig {
    /// The adapter of this data set. Simulated data are generated from `seed` into a folder of `cache_dir`.
    pub fn adapter(&self, seed: u64, cache_dir: &Path) -> Box<dyn Adapter> {
        match self {
            Self::Generic(config) => Box::new(Generic::new(config.clone())),
            Self::Simulated(config) => Box::new(Simulated::new(config.clone(), seed, cache_dir)),
            Self::MimicCxr(config) => Box::new(MimicCxr::new(config.clone())),
            Self::Adni(config) => Box::new(Adni::new(config.clone())),
            Self::Areds(config) => Box::new(Areds::new(config.clone())),
            Self::Tabular(config) => Box::new(Tabular::new(config.clone())),
        }
    }

    /// Name of the data set as the run file spells it, for example `generic`.
    pub fn name(&self) -> &'static str {
        self.adapter(0, Path::new("")).name()
    }

    /// The attributes to use when the run file names none.
    pub fn default_attributes(&self) -> Vec<AttributeConfig> {
        self.adapter(0, Path::new("")).default_attributes()
    }

    /// The adapter of the table whose columns are the features; `None` for a data set of images.
    pub fn tabular(&self) -> Option<Tabular> {
        match self {
            Self::Tabular(config) => Some(Tabular::new(config.clone())),
            _ => None,
        }
    }

    /// Resolves relative paths against `base` (the folder of the run file).
    pub fn resolve_paths(&mut self, base: &Path) {
        match self {
            Self::Generic(config) => config.resolve_paths(base),
            Self::Simulated(_) => {}
            Self::MimicCxr(config) => config.resolve_paths(base),
            Self::Adni(config) => config.resolve_paths(base),
            Self::Areds(config) => config.resolve_paths(base),
            Self::Tabular(config) => config.resolve_paths(base),
        }
    }
}

/// One line of `fairtte list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Name in the run file.
    pub name: &'static str,
    /// Its description, in one sentence.
    pub about: &'static str,
}

/// Every data set that a run file can name, in the order of [`DataConfig`].
pub fn catalogue() -> Vec<CatalogueEntry> {
    vec![
        CatalogueEntry {
            name: generic::NAME,
            about: "a CSV, TSV or Parquet table: image path, subject, time, event and attribute columns, mapped by name",
        },
        CatalogueEntry {
            name: simulated::NAME,
            about: "chest-film-like pictures or brain-like volumes, generated with one knob per source of bias",
        },
        CatalogueEntry {
            name: mimic_cxr::NAME,
            about: "chest films of MIMIC-CXR-JPG with deaths from MIMIC-IV (gated: PhysioNet)",
        },
        CatalogueEntry {
            name: adni::NAME,
            about: "ADNI: brain MRI, half-years to the first dementia diagnosis, from the image list and DXSUM",
        },
        CatalogueEntry {
            name: areds::NAME,
            about: "AREDS: fundus photographs and the tables of dbGaP phs000001, each eye until late macular degeneration",
        },
        CatalogueEntry {
            name: tabular::NAME,
            about: "a CSV, TSV or Parquet table whose columns are the features: numbers and categories instead of images",
        },
    ]
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn the_data_set_is_chosen_by_the_name_of_the_table() {
        let config = "[generic]\ntable = 'cohort.csv'";
        let config: DataConfig = toml::from_str(config).unwrap();
        assert_eq!(config, DataConfig::Generic(GenericConfig::new("cohort.csv")));
        let config: DataConfig = toml::from_str("[simulated]\nn-subjects = 7").unwrap();
        assert_eq!(config.adapter(0, Path::new("cache")).name(), "simulated");
        let error = toml::from_str::<DataConfig>("[generc]\ntable = 'cohort.csv'").unwrap_err().to_string();
        assert!(error.contains("generc") && error.contains("generic"), "{error}");
    }

    #[test]
    fn every_name_of_the_catalogue_is_known_to_the_run_file() {
        for entry in catalogue() {
            let error = toml::from_str::<DataConfig>(&format!("[{}]\nno-such-key = 1", entry.name)).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("no-such-key"), "{}: {message}", entry.name);
        }
    }
}
