//! Settings of the MIMIC-CXR adapter: the paths of the tables, and every choice that the text of the paper leaves open.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{DataError, SettingsOf};

/// Settings of [`MimicCxr`](super::MimicCxr), the table `[data.mimic-cxr]` of a run file.
///
/// Keys and values may also be spelt with underscores, as in the option tables of papers.
///
/// ```
/// let config: fairtte_data::adapters::MimicCxrConfig = toml::from_str(r#"
///     root = "/data/physionet.org"
///     death = "in-hospital"
/// "#)?;
/// assert!(!config.portuguese_white);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MimicCxrConfig {
    /// Folder that holds MIMIC-CXR-JPG and MIMIC-IV, at any depth up to six; not needed if both folders below are
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// Folder of MIMIC-CXR-JPG (or the file of its metadata); `root` if not given.
    #[serde(alias = "cxr_root", skip_serializing_if = "Option::is_none")]
    pub cxr_root: Option<PathBuf>,
    /// Folder of MIMIC-IV; `root` if not given.
    #[serde(alias = "iv_root", skip_serializing_if = "Option::is_none")]
    pub iv_root: Option<PathBuf>,
    /// Folder that holds the image folder `files`; the folder of the metadata if not given. Need not exist for tables
    /// only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Which death is the event.
    pub death: Death,
    /// The people whose images after the last discharge are left out.
    #[serde(alias = "after_discharge")]
    pub after_discharge: AfterDischarge,
    /// Which of several recorded races is used.
    pub race: RaceChoice,
    /// How a person is treated whose race is not known (`UNKNOWN`, declined, unable to obtain, `?`, empty).
    #[serde(alias = "unknown_race")]
    pub unknown_race: UnknownRace,
    /// How a person without any admission, hence without a record of race, is treated; as `unknown-race` if not given.
    #[serde(alias = "race_without_admission", skip_serializing_if = "Option::is_none")]
    pub race_without_admission: Option<UnknownRace>,
    /// Whether `PORTUGUESE` counts as White; `false` if not given.
    #[serde(alias = "portuguese_white")]
    pub portuguese_white: bool,
}

/// Which death is the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum Death {
    /// The date of death in the table of patients: in hospital, and outside up to a year after the last discharge.
    #[default]
    Dod,
    /// Deaths during an admission only (`hospital_expire_flag` 1 and a `deathtime`).
    #[serde(alias = "in_hospital")]
    InHospital,
}

/// The people whose images after the last discharge are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum AfterDischarge {
    /// Images of people who are censored.
    #[default]
    #[serde(alias = "censored_only")]
    CensoredOnly,
    /// Images of all people, another reading of the paper's sentence.
    All,
}

/// Which of several recorded races is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RaceChoice {
    /// The first informative one by time of admission.
    #[default]
    First,
    /// The last informative one.
    Last,
    /// The most frequent informative one; ties go to the first.
    Mode,
}

/// How a person whose race is not known is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownRace {
    /// The person counts as Non-White.
    #[default]
    #[serde(alias = "non_white")]
    NonWhite,
    /// The person belongs to no group of race.
    Missing,
    /// The person is left out.
    Drop,
}

impl MimicCxrConfig {
    /// The defaults for tables below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: Some(root.into()), ..Self::default() }
    }

    /// How a person without any admission is treated.
    pub(super) fn without_admission(&self) -> UnknownRace {
        self.race_without_admission.unwrap_or(self.unknown_race)
    }

    pub(super) fn cxr_root(&self) -> Result<&Path, DataError> {
        Self::chosen(self.cxr_root.as_ref(), self.root.as_ref(), "cxr-root")
    }

    pub(super) fn iv_root(&self) -> Result<&Path, DataError> {
        Self::chosen(self.iv_root.as_ref(), self.root.as_ref(), "iv-root")
    }

    fn chosen<'a>(
        own: Option<&'a PathBuf>,
        root: Option<&'a PathBuf>,
        field: &'static str,
    ) -> Result<&'a Path, DataError> {
        let missing = || DataError::setting(SettingsOf::MimicCxr, field, "not given", "a folder, here or as root");
        own.or(root).map(PathBuf::as_path).ok_or_else(missing)
    }

    pub(in crate::adapters) fn resolve_paths(&mut self, base: &Path) {
        for path in [&mut self.root, &mut self.cxr_root, &mut self.iv_root, &mut self.images].into_iter().flatten() {
            *path = base.join(&*path);
        }
    }

    /// Every option with its value as the run file spells it.
    pub fn options(&self) -> Vec<(String, String)> {
        fn word(value: impl Serialize) -> String {
            let value = serde_json::to_value(value).expect("names of variants always become text");
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        }
        let options = [
            ("death", word(self.death)),
            ("after-discharge", word(self.after_discharge)),
            ("race", word(self.race)),
            ("unknown-race", word(self.unknown_race)),
            ("race-without-admission", word(self.without_admission())),
            ("portuguese-white", word(self.portuguese_white)),
        ];
        options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn options_are_spelt_as_in_the_run_file() {
        let text = "root = '/r'\ndeath = 'in-hospital'\nafter-discharge = 'all'\nrace = 'mode'\nunknown-race = 'drop'\nportuguese-white = true";
        let config: MimicCxrConfig = toml::from_str(text).unwrap();
        let shown: Vec<String> = config.options().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = "death=in-hospital after-discharge=all race=mode unknown-race=drop race-without-admission=drop portuguese-white=true";
        assert_eq!(shown.join(" "), expected);
        let again: MimicCxrConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
        for wrong in ["deaht = 'dod'", "death = 'hospital'", "race = 'any'"] {
            assert!(toml::from_str::<MimicCxrConfig>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn underscores_are_read_as_hyphens() {
        let text = "cxr-root = '/c'\niv-root = '/i'\ndeath = 'in-hospital'\nafter-discharge = 'censored-only'\n\
                    unknown-race = 'non-white'\nrace-without-admission = 'non-white'\nportuguese-white = true";
        let expected: MimicCxrConfig = toml::from_str(text).unwrap();
        assert_eq!(toml::from_str::<MimicCxrConfig>(&text.replace('-', "_")).unwrap(), expected);
        assert_ne!(expected, MimicCxrConfig::default());
        let written = toml::to_string(&expected).unwrap();
        assert!(!written.contains('_'), "hyphens are written: {written}");
        assert!(toml::from_str::<MimicCxrConfig>("iv-root = '/i'\niv_root = '/j'").is_err(), "one key, two values");
    }

    #[test]
    fn one_common_folder_or_two_separate_ones_are_enough() {
        let mut config = MimicCxrConfig::new("all");
        config.iv_root = Some("iv".into());
        config.resolve_paths(Path::new("/base"));
        assert_eq!(config.cxr_root().unwrap(), Path::new("/base/all"));
        assert_eq!(config.iv_root().unwrap(), Path::new("/base/iv"));
        let error = MimicCxrConfig::default().iv_root().unwrap_err().to_string();
        assert_eq!(error, "iv-root is not given, expected a folder, here or as root");
    }
}
