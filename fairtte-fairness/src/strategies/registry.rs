//! Which strategies there are: one line each.

use std::fmt;

use fairtte_survival::NoSettings;
use serde::de::{EnumAccess, VariantAccess as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::settings::{Registered, from_outside, registered};
use super::{
    CfairConfig, ControlledAttributeConfig, DomainIndependentConfig, DroChiSquareConfig, EndConfig, ExpectedBatch,
    FairRepresentationConfig, FebsConfig, GroupDroConfig, LaftrConfig, LnlConfig, OdrConfig, RecalibrationConfig,
    SamConfig, Strategy, StrategySettings, SubgroupRebalancingConfig, SwadConfig, TrainingCells,
};
use crate::{FairnessError, LearnerSpec, TrainingConfig};

/// The enum of all strategies with what serde and the catalogue need of it.
macro_rules! strategies {
    ($($name:literal $variant:ident($settings:ty)),+ $(,)?) => {
        /// The registry of strategies; in run files `[strategy.erm]`, `[strategy.group-dro]`, ..
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum StrategyConfig {
            $(#[doc = concat!("`", $name, "`")] $variant($settings),)+
            /// One that another crate registered with [`register`](super::register).
            Registered(Registered),
        }

        impl StrategyConfig {
            /// Names of the strategies of this crate.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The settings, whichever strategy they are of.
            pub fn settings(&self) -> &dyn StrategySettings {
                match self {
                    $(Self::$variant(settings) => settings,)+
                    Self::Registered(registered) => registered.settings.as_ref(),
                }
            }

            /// The strategies of this crate with their default settings.
            fn defaults() -> Vec<Self> {
                vec![$(Self::$variant(<$settings>::default())),+]
            }
        }

        impl Serialize for StrategyConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = self.name();
                match self {
                    $(Self::$variant(settings) => {
                        serializer.serialize_newtype_variant("StrategyConfig", 0, name, settings)
                    })+
                    Self::Registered(settings) => {
                        serializer.serialize_newtype_variant("StrategyConfig", 0, name, settings)
                    }
                }
            }
        }

        /// A table with one key, the name of a strategy; the settings of a strategy of another crate may be any table.
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for StrategyConfig {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "StrategyConfig".into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut choices =
                    vec![$(choice($name, <$settings>::default().summary(), &generator.subschema_for::<$settings>())),+];
                let any = || schemars::json_schema!({ "type": "object" });
                choices.extend(registered().map(|(name, summary)| choice(name, summary, &any())));
                schemars::json_schema!({ "oneOf": choices })
            }
        }

        impl<'de> Visitor<'de> for Named {
            type Value = StrategyConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a strategy with a table of its settings")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<StrategyConfig, A::Error> {
                let (name, variant) = data.variant::<String>()?;
                match name.as_str() {
                    $($name => variant.newtype_variant().map(StrategyConfig::$variant),)+
                    other => from_outside(other, variant).map(StrategyConfig::Registered),
                }
            }
        }
    };
}

strategies! {
    "erm" Erm(NoSettings),
    "subgroup-rebalancing" SubgroupRebalancing(SubgroupRebalancingConfig),
    "group-dro" GroupDro(GroupDroConfig),
    "domain-independent" DomainIndependent(DomainIndependentConfig),
    "controlled-attribute" ControlledAttribute(ControlledAttributeConfig),
    "sam" Sam(SamConfig),
    "swad" Swad(SwadConfig),
    "recalibration" Recalibration(RecalibrationConfig),
    "laftr" Laftr(LaftrConfig),
    "cfair" Cfair(CfairConfig),
    "lnl" Lnl(LnlConfig),
    "odr" Odr(OdrConfig),
    "fair-representation" FairRepresentation(FairRepresentationConfig),
    "end" End(EndConfig),
    "dro-chi-square" DroChiSquare(DroChiSquareConfig),
    "febs" Febs(FebsConfig),
}

/// A table with the key `name` alone.
#[cfg(feature = "schema")]
fn choice(name: &str, summary: &str, settings: &schemars::Schema) -> schemars::Schema {
    schemars::json_schema!({
        "description": summary,
        "type": "object",
        "properties": { name: settings },
        "required": [name],
        "additionalProperties": false
    })
}

/// Reads a strategy by its name.
struct Named;

impl<'de> Deserialize<'de> for StrategyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("StrategyConfig", &Self::NAMES, Named)
    }
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Self::Erm(NoSettings::default())
    }
}

impl StrategyConfig {
    /// Name in run files.
    pub fn name(&self) -> &'static str {
        self.settings().name()
    }

    /// Name and one-line summary of every strategy, those of other crates last.
    pub fn catalogue() -> Vec<(&'static str, &'static str)> {
        let defaults = Self::defaults();
        let own = defaults.iter().map(|strategy| (strategy.name(), strategy.settings().summary()));
        own.chain(registered()).collect()
    }

    /// Whether training reads the groups of the samples.
    pub fn needs_groups(&self) -> bool {
        self.settings().needs_groups()
    }

    /// As [`StrategySettings::validate`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        self.settings().validate()
    }

    /// As [`StrategySettings::check_batches`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and what was expected.
    pub fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.settings().check_batches(expected)
    }

    /// As [`StrategySettings::training_notes`].
    pub fn training_notes(&self, training: &TrainingConfig, n_steps: usize) -> Vec<String> {
        self.settings().training_notes(training, n_steps)
    }

    /// As [`StrategySettings::build`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if groups are needed and no
    /// training sample has one.
    pub fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        self.settings().build(spec, cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_the_registry_is_the_name_of_the_settings() {
        let names: Vec<&str> = StrategyConfig::defaults().iter().map(StrategyConfig::name).collect();
        assert_eq!(names, StrategyConfig::NAMES);
    }
}
