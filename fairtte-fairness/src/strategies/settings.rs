//! What a strategy says of itself to the registry, and how one from outside this crate joins it.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

use super::{ExpectedBatch, Strategy, StrategyConfig, TrainingCells};
use crate::{FairnessError, LearnerSpec, TrainingConfig};

/// The settings of a strategy: the table `[strategy.NAME]` of a run file, from which the strategy is built.
pub trait StrategySettings: Debug + Send + Sync {
    /// Name in run files, in kebab case.
    fn name(&self) -> &'static str;

    /// What the method does, in one line of at most 100 characters, with its source.
    fn summary(&self) -> &'static str;

    /// Whether training reads the groups of the samples.
    fn needs_groups(&self) -> bool {
        true
    }

    /// Checks the ranges, and that no setting is without effect.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting (`gamma`), its value and its range.
    fn validate(&self) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Refuses batches, or a head, with which the method cannot work. Called before the data are read and again before
    /// training, when the outcomes are known.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and what was expected.
    fn check_batches(&self, _expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// One sentence for each setting of `training` that is too short for the method to work as described; `n_steps` is the
    /// number of optimiser steps in an epoch.
    fn training_notes(&self, _training: &TrainingConfig, _n_steps: usize) -> Vec<String> {
        Vec::new()
    }

    /// Checks the settings and builds the strategy with freshly drawn weights.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if groups are needed and no
    /// training sample has one.
    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError>;
}

/// A strategy that another crate [registered](register), with its settings.
#[derive(Clone, Debug)]
pub struct Registered {
    pub(super) settings: Arc<dyn StrategySettings>,
    /// The settings as they are written, every default included.
    written: serde_json::Value,
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.settings.name() == other.settings.name() && self.written == other.written
    }
}

impl Serialize for Registered {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

/// One entry of the strategies from outside.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    summary: &'static str,
    read: fn(serde_json::Value) -> Result<Registered, serde_json::Error>,
}

static ENTRIES: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

fn entries() -> Vec<Entry> {
    ENTRIES.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Makes a strategy of another crate known: `[strategy.NAME]` with its settings is accepted in run files from now on, in
/// this process, and [`StrategyConfig::catalogue`] lists it. Registering the same settings again changes nothing.
///
/// # Errors
/// [`FairnessError::Setting`] if a strategy of this crate has the name.
pub fn register<S>() -> Result<(), FairnessError>
where
    S: StrategySettings + Default + Serialize + DeserializeOwned + 'static,
{
    let (name, summary) = (S::default().name(), S::default().summary());
    let is_new = StrategyConfig::NAMES.iter().all(|known| *known != name);
    crate::check("strategy", name, is_new, "a name that no strategy of fairtte-fairness has")?;
    let mut entries = ENTRIES.write().unwrap_or_else(PoisonError::into_inner);
    entries.retain(|entry| entry.name != name);
    entries.push(Entry { name, summary, read: read::<S> });
    Ok(())
}

fn read<S>(value: serde_json::Value) -> Result<Registered, serde_json::Error>
where
    S: StrategySettings + Serialize + DeserializeOwned + 'static,
{
    let settings: S = serde_json::from_value(value)?;
    Ok(Registered { written: serde_json::to_value(&settings)?, settings: Arc::new(settings) })
}

/// Names and summaries of the strategies from outside, in the order of their registration.
pub(super) fn registered() -> impl Iterator<Item = (&'static str, &'static str)> {
    entries().into_iter().map(|entry| (entry.name, entry.summary))
}

/// The strategy `name` from outside, with the settings that `variant` holds.
pub(super) fn from_outside<'de, A>(name: &str, variant: A) -> Result<Registered, A::Error>
where
    A: serde::de::VariantAccess<'de>,
{
    let entries = entries();
    let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
        let known = StrategyConfig::NAMES.into_iter().chain(entries.iter().map(|entry| entry.name));
        let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
        return Err(A::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", "))));
    };
    let settings = variant.newtype_variant::<serde_json::Value>()?;
    (entry.read)(settings).map_err(A::Error::custom)
}
