//! Settings of a simulation: the raw settings of a run file, their defaults, and their check.

use serde::{Deserialize, Serialize};

use super::error::SimulationError;

/// Settings of a simulated cohort; every key is optional in a run file.
///
/// | key | default | range | meaning |
/// |---|---|---|---|
/// | `kind` | `films` | `films`, `volumes` | chest-film-like pictures (PNG) or brain-like volumes (`.nii.gz`) |
/// | `n-subjects` | 400 | 2 to 1,000,000 | people |
/// | `images-per-subject` | 1 | 1 to 50 | images of each person, at growing elapsed times |
/// | `size` | `[64, 64]`, `[24, 32, 32]` | 16 to 1024 (films), 12 to 256 (volumes) | `[height, width]` or `[depth, height, width]` |
/// | `biased-attribute` | `sex` | `sex`, `age`, `race` | attribute whose group 1 the knobs of `bias` act on |
/// | `group-share` | 0.5 | 0.01 to 0.99 | share of group 1 of the biased attribute |
/// | `censoring-rate-base` | 0.4 | 0.05 to 0.9 | expected share of censored subjects before the knobs |
/// | `time-unit` | `years` | `years`, `months`, `days` | unit of every time written |
/// | `signal` | 1 | 0 to 1 | correlation of severity in the picture with the health condition; 0 = the picture is uninformative |
/// | `traces` | true | | whether a picture shows the attributes of its person; false: those of another person |
/// | `bias` | all 0 | each 0 to 1 | the five knobs, see [`BiasKnobs`] |
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(!from, default, deny_unknown_fields))]
#[serde(rename_all = "kebab-case", from = "RawConfig")]
pub struct SimulationConfig {
    /// Films or volumes.
    pub kind: PictureKind,
    /// Number of people, 2 to 1,000,000.
    pub n_subjects: usize,
    /// Images of each person, 1 to 50.
    pub images_per_subject: usize,
    /// `[height, width]` of films (16 to 1024) or `[depth, height, width]` of volumes (12 to 256), in pixels.
    #[cfg_attr(feature = "schema", schemars(transform = by_kind))]
    pub size: Vec<usize>,
    /// The attribute whose group 1 the knobs act on.
    pub biased_attribute: BiasedAttribute,
    /// Share of group 1 of the biased attribute, 0.01 to 0.99.
    pub group_share: f64,
    /// Expected share of censored subjects while no knob acts on censoring, 0.05 to 0.9.
    pub censoring_rate_base: f64,
    /// Unit of all times.
    pub time_unit: TimeUnit,
    /// Correlation between the severity drawn into the picture and the health condition Z, 0 to 1.
    pub signal: f64,
    /// Whether the body in a picture is one of the person's sex, age and race. If not, it is one of attributes drawn for it
    /// alone: pictures are as varied, and say nothing about the attributes but what the knobs make them say.
    #[serde(skip_serializing_if = "is_true")]
    pub traces: bool,
    /// The five knobs.
    pub bias: BiasKnobs,
}

/// Simulations with the default keep the name that they had before the setting existed.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// One knob per source of bias, each from 0 (unbiased) to 1 (maximal).
///
/// The formulas, and what else a knob moves, are in the header of the module `simulated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BiasKnobs {
    /// Disparity in P(`X_Z` | A): the pictures of group 1 look sicker than the people are.
    pub image_features: f64,
    /// Disparity in I(`X_Z`; Y): the pictures of group 1 show less of Z.
    pub mi_time: f64,
    /// Disparity in I(`X_Z`; event): in group 1 the healthy people are lost to follow-up.
    pub mi_censoring: f64,
    /// Disparity in P(T | A): group 1 has the event earlier.
    pub time_distribution: f64,
    /// Disparity in the censoring rate: more of group 1 are censored.
    pub censoring_rate: f64,
}

/// The kind of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// Chest-film-like pictures: 8-bit grey PNG files.
    #[default]
    Films,
    /// Brain-like volumes: 16-bit `NIfTI` files, compressed.
    Volumes,
}

impl PictureKind {
    /// The size used when a run file names none.
    pub fn default_size(self) -> Vec<usize> {
        match self {
            Self::Films => vec![64, 64],
            Self::Volumes => vec![24, 32, 32],
        }
    }

    /// Ending of the files of this kind, without the leading dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Films => "png",
            Self::Volumes => "nii.gz",
        }
    }
}

/// The attribute whose group 1 the knobs act on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BiasedAttribute {
    /// Group 1: `F`.
    #[default]
    Sex,
    /// Group 1: older than 60 years.
    Age,
    /// Group 1: every level but `White`.
    Race,
}

/// Unit of the times written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// Years.
    #[default]
    Years,
    /// Twelfths of a year.
    Months,
    /// 365.25 to a year.
    Days,
}

impl TimeUnit {
    /// Number of these units in a year.
    pub fn per_year(self) -> f64 {
        match self {
            Self::Years => 1.0,
            Self::Months => 12.0,
            Self::Days => 365.25,
        }
    }
}

/// The default depends on `kind`.
#[cfg(feature = "schema")]
fn by_kind(schema: &mut schemars::Schema) {
    schema.remove("default");
}

/// The settings as a run file states them: `size` may be absent, its default depends on `kind`.
#[derive(Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct RawConfig {
    kind: PictureKind,
    n_subjects: usize,
    images_per_subject: usize,
    size: Option<Vec<usize>>,
    biased_attribute: BiasedAttribute,
    group_share: f64,
    censoring_rate_base: f64,
    time_unit: TimeUnit,
    signal: f64,
    traces: bool,
    bias: BiasKnobs,
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            kind: PictureKind::default(),
            n_subjects: 400,
            images_per_subject: 1,
            size: None,
            biased_attribute: BiasedAttribute::default(),
            group_share: 0.5,
            censoring_rate_base: 0.4,
            time_unit: TimeUnit::default(),
            signal: 1.0,
            traces: true,
            bias: BiasKnobs::default(),
        }
    }
}

impl From<RawConfig> for SimulationConfig {
    fn from(raw: RawConfig) -> Self {
        Self {
            kind: raw.kind,
            n_subjects: raw.n_subjects,
            images_per_subject: raw.images_per_subject,
            size: raw.size.unwrap_or_else(|| raw.kind.default_size()),
            biased_attribute: raw.biased_attribute,
            group_share: raw.group_share,
            censoring_rate_base: raw.censoring_rate_base,
            time_unit: raw.time_unit,
            signal: raw.signal,
            traces: raw.traces,
            bias: raw.bias,
        }
    }
}

impl Default for SimulationConfig {
    fn default() -> Self {
        RawConfig::default().into()
    }
}

impl SimulationConfig {
    /// The defaults for `kind`, with its own default size.
    pub fn of_kind(kind: PictureKind) -> Self {
        RawConfig { kind, ..RawConfig::default() }.into()
    }

    /// Images the simulation will write.
    pub fn n_images(&self) -> usize {
        self.n_subjects.saturating_mul(self.images_per_subject)
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    ///
    /// [`SimulationError::Setting`] for the first key out of range, with its value and the range.
    pub fn validate(&self) -> Result<(), SimulationError> {
        let whole = |key, value: usize, low, high, expected| {
            if (low..=high).contains(&value) { Ok(()) } else { Err(setting(key, &value, expected)) }
        };
        let real = |key, value: f64, low, high, expected| {
            // NaN is not inside any range.
            if (low..=high).contains(&value) { Ok(()) } else { Err(setting(key, &value, expected)) }
        };
        whole("n-subjects", self.n_subjects, 2, 1_000_000, "a whole number from 2 to 1000000")?;
        whole("images-per-subject", self.images_per_subject, 1, 50, "a whole number from 1 to 50")?;
        let (n_sides, sides, expected) = match self.kind {
            PictureKind::Films => (2, 16..=1024, "[height, width] with each from 16 to 1024 for films"),
            PictureKind::Volumes => (3, 12..=256, "[depth, height, width] with each from 12 to 256 for volumes"),
        };
        if self.size.len() != n_sides || !self.size.iter().all(|side| sides.contains(side)) {
            return Err(SimulationError::Setting { key: "size", value: format!("{:?}", self.size), expected });
        }
        real("group-share", self.group_share, 0.01, 0.99, "a number from 0.01 to 0.99")?;
        real("censoring-rate-base", self.censoring_rate_base, 0.05, 0.9, "a number from 0.05 to 0.9")?;
        real("signal", self.signal, 0.0, 1.0, "a number from 0 to 1")?;
        let knobs = [
            ("bias.image-features", self.bias.image_features),
            ("bias.mi-time", self.bias.mi_time),
            ("bias.mi-censoring", self.bias.mi_censoring),
            ("bias.time-distribution", self.bias.time_distribution),
            ("bias.censoring-rate", self.bias.censoring_rate),
        ];
        knobs.into_iter().try_for_each(|(key, knob)| real(key, knob, 0.0, 1.0, "a number from 0 to 1"))
    }
}

fn setting(key: &'static str, value: &dyn ToString, expected: &'static str) -> SimulationError {
    SimulationError::Setting { key, value: value.to_string(), expected }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_the_default_and_size_follows_kind() {
        let empty: SimulationConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(empty, SimulationConfig::default());
        assert_eq!(empty.size, [64, 64]);
        let volumes: SimulationConfig = serde_json::from_str(r#"{"kind": "volumes"}"#).unwrap();
        assert_eq!(volumes.size, [24, 32, 32]);
        assert_eq!(volumes, SimulationConfig::of_kind(PictureKind::Volumes));
    }

    #[test]
    fn written_settings_are_read_back_and_misspelt_keys_are_named() {
        let mut config = SimulationConfig { time_unit: TimeUnit::Months, ..SimulationConfig::default() };
        config.bias.mi_time = 0.25;
        let text = serde_json::to_string(&config).unwrap();
        assert!(text.contains(r#""mi-time":0.25"#), "{text}");
        assert!(!text.contains("traces"), "{text}");
        assert_eq!(serde_json::from_str::<SimulationConfig>(&text).unwrap(), config);
        config.traces = false;
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<SimulationConfig>(&text).unwrap(), config);
        for text in [r#"{"n-subject": 3}"#, r#"{"bias": {"mi-tme": 1}}"#] {
            let error = serde_json::from_str::<SimulationConfig>(text).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{error}");
        }
    }

    #[test]
    fn every_setting_out_of_range_is_refused_by_name() {
        let wrong = |change: fn(&mut SimulationConfig)| {
            let mut config = SimulationConfig::default();
            config.validate().unwrap();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        let cases = [
            ("n-subjects", wrong(|c| c.n_subjects = 1)),
            ("images-per-subject", wrong(|c| c.images_per_subject = 0)),
            ("size", wrong(|c| c.size = vec![64, 64, 64])),
            ("size", wrong(|c| c.size = vec![64, 4])),
            ("size", wrong(|c| c.kind = PictureKind::Volumes)),
            ("group-share", wrong(|c| c.group_share = 0.0)),
            ("censoring-rate-base", wrong(|c| c.censoring_rate_base = f64::NAN)),
            ("signal", wrong(|c| c.signal = 1.5)),
            ("bias.image-features", wrong(|c| c.bias.image_features = -0.1)),
            ("bias.mi-time", wrong(|c| c.bias.mi_time = 2.0)),
            ("bias.mi-censoring", wrong(|c| c.bias.mi_censoring = f64::INFINITY)),
            ("bias.time-distribution", wrong(|c| c.bias.time_distribution = 1.01)),
            ("bias.censoring-rate", wrong(|c| c.bias.censoring_rate = -1.0)),
        ];
        for (key, message) in cases {
            assert!(message.starts_with(&format!("{key} is ")) && message.contains("expected"), "{message}");
        }
    }
}
