//! Settings of a forest, and the settings of packages under their names.
//!
//! | setting | `ranger` | `rfsrc` | `scikit-survival` |
//! |---|---|---|---|
//! | trees | 500 | 500 | 100 |
//! | columns per split | root of p, rounded up | root of p, rounded up | root of p, rounded down |
//! | a drawn column that is constant in the node | counts | counts, once | is replaced if all are |
//! | cuts per column | all | 10 at random | all |
//! | a node is split from | 4 samples | 30 samples | 6 samples |
//! | a child has at least | 3 samples | 1 sample | 3 samples |
//! | a sample that was drawn twice counts | twice | twice | once |
//! | sampling | with replacement | 0.632 n without | with replacement |
//!
//! Read in the manuals and sources of ranger 0.14.1 and 0.18.0, randomForestSRC 3.6.2 and scikit-survival 0.28.0. What they
//! call the size of a node differs:
//! - ranger 0.14.1: `min.node.size` 3. A node of at most 3 samples is a leaf, and every child has at least 3, so that the
//!   smallest node with a split has 6. From 0.14.2 the second limit has a name of its own, `min.bucket`, 3 for survival.
//! - ranger's manual says that the root of p is rounded down. That is so for classes; for survival the program rounds it up: the
//!   `mtry` of a forest on 7 columns is 3.
//! - randomForestSRC: `nodesize` 15. A node of at least 2 x 15 samples is split, whatever the size of its children: 15 is about
//!   the mean size of a leaf, not the least (so since 2.0.0; 15 for survival since 2.8.0).

use serde::{Deserialize, Serialize};

use crate::estimator::{EXPECTED_TREES, MOST_TREES};
use crate::{ClassicalError, ColumnsPerSplit};

/// What a tree is grown from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// As many samples as there are, drawn with replacement.
    Bootstrap,
    /// This share of the samples, drawn without replacement, in (0, 1).
    Subsample(f64),
    /// All samples: then nothing is out of bag.
    All,
}

/// What happens if a column that was drawn for a split is constant in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ConstantColumns {
    /// It counts as drawn; a node is a leaf if all of them are constant (ranger).
    Counted,
    /// The same, but it is not drawn again below the node (randomForestSRC).
    CountedOnce,
    /// Another is drawn in its place.
    Replaced,
    /// It counts as drawn, but if all are constant, others are drawn until one is not (scikit-survival).
    ReplacedIfAll,
}

/// What a sample that was drawn several times counts in the size of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeSizes {
    /// As often as it was drawn (ranger, randomForestSRC).
    Draws,
    /// Once (scikit-survival).
    Samples,
}

/// Settings of another package, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Those of R ranger 0.14.1.
    #[default]
    Ranger,
    /// Those of R randomForestSRC 3.6.2.
    Rfsrc,
    /// Those of scikit-survival 0.28.0.
    ScikitSurvival,
}

/// Settings of a forest.
///
/// In a file, `preset` chooses the settings of a package, and every other key replaces one of them:
///
/// ```
/// use fairtte_classical::ForestSettings;
///
/// let settings: ForestSettings = serde_json::from_str(r#"{"preset": "rfsrc", "trees": 1000}"#)?;
/// assert_eq!(settings, ForestSettings { trees: 1000, ..ForestSettings::rfsrc() });
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Settings are written one by one, without the preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", from = "Form")]
pub struct ForestSettings {
    /// Trees, at least 1.
    pub trees: usize,
    /// Columns that are drawn for a split.
    pub columns_per_split: ColumnsPerSplit,
    /// What happens if a drawn column is constant in the node.
    pub constant_columns: ConstantColumns,
    /// Cuts of a column that are drawn; 0 = all are compared.
    pub cuts_per_column: usize,
    /// What counts in the three sizes that follow.
    pub node_sizes: NodeSizes,
    /// Samples of a node that may be split, at least 2.
    pub min_samples_split: u32,
    /// Samples of a child, at least 1.
    pub min_samples_leaf: u32,
    /// Events of a child.
    pub min_events_leaf: u32,
    /// Splits on the way to a leaf, at least 1; `None` = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<usize>,
    /// What a tree is grown from.
    pub sampling: Sampling,
    /// Seed of samples, columns and cuts.
    pub seed: u64,
}

impl Preset {
    /// The settings of the package.
    pub fn settings(self) -> ForestSettings {
        let ranger = ForestSettings {
            trees: 500,
            columns_per_split: ColumnsPerSplit::SqrtRoundedUp,
            constant_columns: ConstantColumns::Counted,
            cuts_per_column: 0,
            node_sizes: NodeSizes::Draws,
            min_samples_split: 4,
            min_samples_leaf: 3,
            min_events_leaf: 0,
            max_depth: None,
            sampling: Sampling::Bootstrap,
            seed: 0,
        };
        match self {
            Self::Ranger => ranger,
            Self::Rfsrc => ForestSettings {
                constant_columns: ConstantColumns::CountedOnce,
                cuts_per_column: 10,
                min_samples_split: 30,
                min_samples_leaf: 1,
                sampling: Sampling::Subsample(0.632),
                ..ranger
            },
            Self::ScikitSurvival => ForestSettings {
                trees: 100,
                columns_per_split: ColumnsPerSplit::Sqrt,
                constant_columns: ConstantColumns::ReplacedIfAll,
                node_sizes: NodeSizes::Samples,
                min_samples_split: 6,
                ..ranger
            },
        }
    }
}

impl Default for ForestSettings {
    /// Those of [`Preset::Ranger`].
    fn default() -> Self {
        Preset::default().settings()
    }
}

impl ForestSettings {
    /// The settings of [`Preset::Ranger`].
    pub fn ranger() -> Self {
        Preset::Ranger.settings()
    }

    /// The settings of [`Preset::Rfsrc`].
    pub fn rfsrc() -> Self {
        Preset::Rfsrc.settings()
    }

    /// Checks the ranges.
    pub(super) fn check_ranges(&self) -> Result<(), ClassicalError> {
        let wrong = |setting: &'static str, value: String, expected: &'static str| {
            Err(ClassicalError::Setting { setting, value, expected })
        };
        if !(1..=MOST_TREES).contains(&self.trees) {
            return wrong("trees", self.trees.to_string(), EXPECTED_TREES);
        }
        if self.columns_per_split == ColumnsPerSplit::Count(0) {
            return wrong("columns-per-split", "0".to_owned(), "at least 1");
        }
        if self.min_samples_split < 2 {
            return wrong("min-samples-split", self.min_samples_split.to_string(), "at least 2");
        }
        if self.min_samples_leaf == 0 {
            return wrong("min-samples-leaf", "0".to_owned(), "at least 1");
        }
        if self.max_depth == Some(0) {
            // No limit in ranger; here no tree would split, and everybody would have the same curve.
            return wrong("max-depth", "0".to_owned(), "at least 1, or not given for no limit");
        }
        match self.sampling {
            Sampling::Subsample(share) if !(share > 0.0 && share < 1.0) => {
                wrong("sampling.subsample", share.to_string(), "a share between 0 and 1")
            }
            _ => Ok(()),
        }
    }
}

/// What a file says: a preset, and what differs from it.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Form {
    /// The package whose settings hold where no other key says otherwise. Default: `ranger`.
    preset: Option<Preset>,
    /// Trees, at least 1.
    trees: Option<usize>,
    /// Columns that are drawn for a split.
    columns_per_split: Option<ColumnsPerSplit>,
    /// What happens if a drawn column is constant in the node.
    constant_columns: Option<ConstantColumns>,
    /// Cuts of a column that are drawn; 0 = all are compared.
    cuts_per_column: Option<usize>,
    /// What counts in the three sizes that follow.
    node_sizes: Option<NodeSizes>,
    /// Samples of a node that may be split, at least 2.
    min_samples_split: Option<u32>,
    /// Samples of a child, at least 1.
    min_samples_leaf: Option<u32>,
    /// Events of a child.
    min_events_leaf: Option<u32>,
    /// Splits on the way to a leaf, at least 1; no limit if not given.
    max_depth: Option<usize>,
    /// What a tree is grown from.
    sampling: Option<Sampling>,
    /// Added to the seed of the training.
    seed: Option<u64>,
}

impl From<Form> for ForestSettings {
    fn from(form: Form) -> Self {
        let preset = form.preset.unwrap_or_default().settings();
        Self {
            trees: form.trees.unwrap_or(preset.trees),
            columns_per_split: form.columns_per_split.unwrap_or(preset.columns_per_split),
            constant_columns: form.constant_columns.unwrap_or(preset.constant_columns),
            cuts_per_column: form.cuts_per_column.unwrap_or(preset.cuts_per_column),
            node_sizes: form.node_sizes.unwrap_or(preset.node_sizes),
            min_samples_split: form.min_samples_split.unwrap_or(preset.min_samples_split),
            min_samples_leaf: form.min_samples_leaf.unwrap_or(preset.min_samples_leaf),
            min_events_leaf: form.min_events_leaf.unwrap_or(preset.min_events_leaf),
            max_depth: form.max_depth.or(preset.max_depth),
            sampling: form.sampling.unwrap_or(preset.sampling),
            seed: form.seed.unwrap_or(preset.seed),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    fn read(text: &str) -> Result<ForestSettings, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_preset_is_replaced_key_by_key() {
        assert_eq!(read("{}").unwrap(), ForestSettings::ranger());
        for (name, preset) in
            [("ranger", Preset::Ranger), ("rfsrc", Preset::Rfsrc), ("scikit-survival", Preset::ScikitSurvival)]
        {
            assert_eq!(read(&format!("{{\"preset\": \"{name}\"}}")).unwrap(), preset.settings());
        }
        let all = r#"{"preset": "rfsrc", "trees": 7, "columns-per-split": 2, "constant-columns": "replaced", "cuts-per-column": 0,
            "node-sizes": "samples", "min-samples-split": 9, "min-samples-leaf": 4, "min-events-leaf": 1, "max-depth": 5, "sampling": {"subsample": 0.5},
            "seed": 3}"#;
        let expected = ForestSettings {
            trees: 7,
            columns_per_split: ColumnsPerSplit::Count(2),
            constant_columns: ConstantColumns::Replaced,
            cuts_per_column: 0,
            node_sizes: NodeSizes::Samples,
            min_samples_split: 9,
            min_samples_leaf: 4,
            min_events_leaf: 1,
            max_depth: Some(5),
            sampling: Sampling::Subsample(0.5),
            seed: 3,
        };
        assert_eq!(read(all).unwrap(), expected);
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        let deep = ForestSettings { max_depth: Some(3), sampling: Sampling::All, ..ForestSettings::ranger() };
        for settings in [ForestSettings::ranger(), ForestSettings::rfsrc(), Preset::ScikitSurvival.settings(), deep] {
            let text = serde_json::to_string(&settings).unwrap();
            assert!(!text.contains("preset") && !text.contains("null"), "{text}");
            assert_eq!(read(&text).unwrap(), settings);
        }
    }

    #[test]
    fn the_presets_are_those_of_the_packages() {
        let ranger = ForestSettings::ranger();
        // `ranger(Surv(time, event) ~ ., data)$mtry` of ranger 0.14.1 with 7 columns is 3.
        assert_eq!((ranger.trees, ranger.columns_per_split.of(7), ranger.cuts_per_column), (500, 3, 0));
        assert_eq!((ranger.min_samples_split, ranger.min_samples_leaf, ranger.sampling), (4, 3, Sampling::Bootstrap));
        let rfsrc = ForestSettings::rfsrc();
        assert_eq!((rfsrc.trees, rfsrc.columns_per_split.of(8), rfsrc.cuts_per_column), (500, 3, 10));
        assert_eq!(
            (rfsrc.min_samples_split, rfsrc.min_samples_leaf, rfsrc.sampling),
            (30, 1, Sampling::Subsample(0.632))
        );
        assert_eq!(Preset::ScikitSurvival.settings().columns_per_split.of(8), 2);
    }

    #[test]
    fn what_is_not_a_setting_is_named() {
        for (text, part) in [
            (r#"{"tree": 3}"#, "unknown field `tree`"),
            (r#"{"preset": "mlr3"}"#, "unknown variant `mlr3`, expected one of `ranger`, `rfsrc`, `scikit-survival`"),
            (r#"{"sampling": "some"}"#, "unknown variant `some`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let message = |settings: ForestSettings| settings.check_ranges().unwrap_err().to_string();
        let ranger = ForestSettings::ranger;
        let cases = [
            (
                ForestSettings { trees: 1_000_001, ..ranger() },
                "trees is 1000001, expected a whole number from 1 to 1000000",
            ),
            (ForestSettings { trees: 0, ..ranger() }, "trees is 0, expected a whole number from 1 to 1000000"),
            (
                ForestSettings { columns_per_split: ColumnsPerSplit::Count(0), ..ranger() },
                "columns-per-split is 0, expected at least 1",
            ),
            (ForestSettings { min_samples_split: 1, ..ranger() }, "min-samples-split is 1, expected at least 2"),
            (ForestSettings { min_samples_leaf: 0, ..ranger() }, "min-samples-leaf is 0, expected at least 1"),
            (
                ForestSettings { max_depth: Some(0), ..ranger() },
                "max-depth is 0, expected at least 1, or not given for no limit",
            ),
        ];
        for (settings, expected) in cases {
            assert_eq!(message(settings), expected);
        }
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            let settings = ForestSettings { sampling: Sampling::Subsample(share), ..ranger() };
            assert_eq!(message(settings), format!("sampling.subsample is {share}, expected a share between 0 and 1"));
        }
    }
}
