//! Which heads there are: one line each; and how one from outside this crate joins them.

use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    BinaryConfig, CoxConfig, CoxTimeConfig, DeepHitConfig, NnetSurvivalConfig, PcHazardConfig, PmfConfig,
    SegmentationConfig, SurvivalHead,
};
use crate::{Additions, SurvivalError};

/// The settings of a head: the table `[head.NAME]` of a run file, from which the head is built.
pub trait HeadSettings: Debug + Send + Sync {
    /// Name in run files, in kebab case; that of the head, too.
    fn name(&self) -> &'static str;

    /// What the outputs of the network mean, in one line of at most 100 characters, with its source.
    fn summary(&self) -> &'static str;

    /// Checks the settings and builds the head.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the setting, its value and its range.
    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError>;

    /// As [`build`](Self::build), for `n` causes of an event, at least 2; `None` of a head of one kind of event.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    fn build_for_causes(&self, _n: usize) -> Result<Option<Box<dyn SurvivalHead>>, SurvivalError> {
        Ok(None)
    }
}

/// The settings of a head or strategy that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

static ADDITIONS: Additions<dyn HeadSettings> = Additions::new();

crate::registry! {
    /// The registry of heads; in run files `[head.pmf]`, `[head.deephit]`, `[head.nnet-survival]`, ..
    HeadConfig: a "head" with HeadSettings, others in ADDITIONS;
    /// Probability mass over the intervals.
    "pmf" Pmf(PmfConfig),
    /// Probability mass with a ranking term.
    "deephit" DeepHit(DeepHitConfig),
    /// Hazard in each interval.
    "nnet-survival" NnetSurvival(NnetSurvivalConfig),
    /// Log risk with a baseline.
    "cox" Cox(CoxConfig),
    /// Log risk that depends on the time, with a baseline.
    "cox-time" CoxTime(CoxTimeConfig),
    /// Constant hazard within each interval.
    "pc-hazard" PcHazard(PcHazardConfig),
    /// Probability of a class.
    "binary" Binary(BinaryConfig),
    /// Class of every pixel.
    "segmentation" Segmentation(SegmentationConfig),
}

impl Default for HeadConfig {
    fn default() -> Self {
        Self::NnetSurvival(NnetSurvivalConfig::default())
    }
}

impl HeadConfig {
    /// As [`HeadSettings::build`].
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the setting, its value and its range.
    pub fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        self.settings().build()
    }

    /// The head for `n` causes of an event; 1 = one kind of event.
    ///
    /// # Errors
    /// As [`build`](Self::build); [`SurvivalError::OneKind`] of a head of one kind of event if `n` is above 1.
    pub fn build_for(&self, n: usize) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        if n < 2 {
            return self.build();
        }
        let one_kind = || SurvivalError::OneKind { head: self.name(), expected: Self::of_causes().join(", ") };
        self.settings().build_for_causes(n)?.ok_or_else(one_kind)
    }

    /// Names of the heads of this crate that model several causes.
    pub fn of_causes() -> Vec<&'static str> {
        let models = |name: &&str| {
            let head: Result<Self, _> = serde_json::from_value(serde_json::json!({ *name: {} }));
            head.is_ok_and(|head| matches!(head.settings().build_for_causes(2), Ok(Some(_))))
        };
        Self::NAMES.iter().copied().filter(models).collect()
    }
}

/// Makes a head of another crate known: `[head.NAME]` with its settings is accepted in run files from now on, in this
/// process, and [`HeadConfig::catalogue`] lists it. Registering the same settings again changes nothing.
///
/// # Errors
/// [`SurvivalError::HeadName`] if a head of this crate has the name.
pub fn register_head<S>() -> Result<(), SurvivalError>
where
    S: HeadSettings + Default + Serialize + DeserializeOwned + 'static,
{
    let (name, summary) = (S::default().name(), S::default().summary());
    if HeadConfig::NAMES.contains(&name) {
        return Err(SurvivalError::HeadName { name });
    }
    ADDITIONS.add(name, summary, |settings: S| Arc::new(settings));
    Ok(())
}
