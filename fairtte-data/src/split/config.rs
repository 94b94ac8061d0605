//! The `[split]` table of a run file: fractions, one fold of several, one site left out, or a file of the user.
//!
//! The methods are mutually exclusive and each has a separate table (or key), so a setting cannot be given to the wrong
//! one:
//!
//! | way | keys | parts |
//! |---|---|---|
//! | fractions (default) | `train`, `validation`, `test` | shares of all subjects |
//! | k-fold | `[split.k-fold] folds, fold` | test = the fold; the rest is shared in the proportion `train : validation` |
//! | leave-site-out | `[split.leave-site-out] site, leave-out` | test = the site; the rest likewise |
//! | file | `file` | as the file says |
//!
//! `stratify` and `repeat` apply to all methods except the file. Every method keeps all samples of a subject together.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cohort::Cohort;
use crate::{DataError, SettingsOf};

use super::site;

/// The word in `stratify` that means the outcome rather than an attribute.
pub(super) const EVENT: &str = "event";

/// Maximum number of folds; more are assumed to be a mistake.
const MOST_FOLDS: usize = 1000;

/// How subjects are divided into training, validation and test part.
///
/// ```
/// use fairtte_data::SplitConfig;
///
/// let text = "stratify = [\"event\", \"sex\"]\nk-fold = { folds = 5, fold = 2 }";
/// let config: SplitConfig = toml::from_str(text)?;
/// config.check()?;
/// assert_eq!(config.columns(), ["sex"]);
/// assert_eq!(config.to_string(), "fold 2 of 0..5 as test part, stratified by event, sex");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SplitConfig {
    /// Fraction for fitting, in (0, 1); 0.6 if not given. With folds or a site left out only `train : validation` is
    /// used.
    pub train: f64,
    /// Fraction for early stopping, in (0, 1); 0.2 if not given.
    pub validation: f64,
    /// Fraction for the reported numbers, in (0, 1); 0.2 if not given.
    pub test: f64,
    /// Variables that should have equal shares in every part: `event` and names of attributes; none if not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stratify: Vec<String>,
    /// Number of the repetition, another draw with the same seed: 0 (the default), 1, 2, ..
    #[serde(skip_serializing_if = "is_zero")]
    pub repeat: u32,
    /// A file with the columns `subject_id` or `sample_id`, and `part`; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// One fold of several is the test part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k_fold: Option<KFold>,
    /// The subjects of one site are the test part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_site_out: Option<LeaveSiteOut>,
}

/// `[split.k-fold]`: the subjects are divided into `folds` of equal size (to within one).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KFold {
    /// Number of folds, 2 to 1000.
    pub folds: usize,
    /// The fold that is the test part, 0 to `folds` - 1; 0 if not given.
    #[serde(default)]
    pub fold: usize,
}

/// `[split.leave-site-out]`: every subject seen at the site is in the test part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LeaveSiteOut {
    /// Column of the site.
    pub site: String,
    /// The site, as written in that column.
    pub leave_out: String,
}

/// The method chosen by a checked configuration.
pub(super) enum Way<'a> {
    Fractions,
    KFold(KFold),
    LeaveSiteOut(&'a LeaveSiteOut),
    File(&'a Path),
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self {
            train: 0.6,
            validation: 0.2,
            test: 0.2,
            stratify: Vec::new(),
            repeat: 0,
            file: None,
            k_fold: None,
            leave_site_out: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(repeat: &u32) -> bool {
    *repeat == 0
}

impl SplitConfig {
    /// Checks the ranges, and that at most one method is chosen.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), DataError> {
        self.check_fractions()?;
        self.check_stratify()?;
        let chosen = [
            ("k-fold", self.k_fold.is_some()),
            ("leave-site-out", self.leave_site_out.is_some()),
            ("file", self.file.is_some()),
        ];
        let chosen: Vec<&str> = chosen.into_iter().filter(|(_, is_chosen)| *is_chosen).map(|(name, _)| name).collect();
        if chosen.len() > 1 {
            return invalid("split", chosen.join(" and "), "at most one of k-fold, leave-site-out and file");
        }
        match self.way() {
            Way::Fractions => Ok(()),
            Way::KFold(folds) => self.check_folds(folds),
            Way::LeaveSiteOut(left_out) => left_out.check(),
            Way::File(path) => self.check_beside_file(path),
        }
    }

    fn check_fractions(&self) -> Result<(), DataError> {
        let fractions = [("train", self.train), ("validation", self.validation), ("test", self.test)];
        for (field, value) in fractions {
            if !(value > 0.0 && value < 1.0) {
                return invalid(field, value, "a number in (0, 1)");
            }
        }
        let sum = self.train + self.validation + self.test;
        if (sum - 1.0).abs() > 1e-9 {
            // Rounded: 0.5 + 0.2 + 0.2 is not 0.8999999999999999 to a reader.
            let sum = (sum * 1e9).round() / 1e9;
            let value = format!("{} + {} + {} = {sum}", self.train, self.validation, self.test);
            return invalid("split", value, "fractions that add up to 1");
        }
        Ok(())
    }

    fn check_stratify(&self) -> Result<(), DataError> {
        for (i, name) in self.stratify.iter().enumerate() {
            if name.trim().is_empty() || self.stratify[..i].contains(name) {
                let expected = "\"event\" and names of attributes, each once";
                return invalid("stratify", format!("{:?}", self.stratify), expected);
            }
        }
        Ok(())
    }

    fn check_folds(&self, KFold { folds, fold }: KFold) -> Result<(), DataError> {
        if !(2..=MOST_FOLDS).contains(&folds) {
            return invalid("k-fold.folds", folds, "a whole number from 2 to 1000");
        }
        if fold >= folds {
            return invalid("k-fold.fold", fold, "a whole number from 0 to folds - 1");
        }
        // The default fractions are allowed with any number of folds; others must be consistent with it.
        let default = Self::default();
        let is_default = (self.train, self.validation, self.test) == (default.train, default.validation, default.test);
        if !is_default && (self.test - 1.0 / folds as f64).abs() > 1e-6 {
            return invalid("test", self.test, "1 / folds beside k-fold, whose test part is one fold");
        }
        Ok(())
    }

    fn check_beside_file(&self, path: &Path) -> Result<(), DataError> {
        if path.as_os_str().is_empty() {
            return invalid("file", "\"\"", "the path of a table");
        }
        let alone = Self { file: self.file.clone(), ..Self::default() };
        if *self == alone {
            return Ok(());
        }
        invalid("file", path.display(), "no fractions, stratify or repeat beside a file that gives the parts")
    }

    /// The chosen method; the first in the order of the errors of [`check`](Self::check) if there are several.
    pub(super) fn way(&self) -> Way<'_> {
        match (self.k_fold, &self.leave_site_out, &self.file) {
            (Some(folds), ..) => Way::KFold(folds),
            (_, Some(left_out), _) => Way::LeaveSiteOut(left_out),
            (.., Some(path)) => Way::File(path),
            _ => Way::Fractions,
        }
    }

    /// Columns that the cohort must have as attributes: those of `stratify` except `event`, and the site.
    pub fn columns(&self) -> Vec<&str> {
        let stratify = self.stratify.iter().map(String::as_str).filter(|name| *name != EVENT);
        let mut columns: Vec<&str> = stratify.collect();
        if let Some(left_out) = &self.leave_site_out
            && !columns.contains(&left_out.site.as_str())
        {
            columns.push(&left_out.site);
        }
        columns
    }

    /// Makes a relative `file` relative to `base`, the folder of the run file.
    pub fn resolve_paths(&mut self, base: &Path) {
        self.file = self.file.as_ref().map(|path| base.join(path));
    }

    /// Share of the validation part among the subjects that are not in the test part.
    pub(super) fn validation_of_rest(&self) -> f64 {
        self.validation / (self.train + self.validation)
    }

    /// Every split of a sweep: all folds (or all sites of `cohort`, or the one split by fractions), for each of the
    /// repeats 0 to `n_repeats` - 1; the repeats are the outer loop. `fold`, `leave-out` and `repeat` of `self` are
    /// ignored. A split by file is one split, whatever `n_repeats`.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] as in [`check`](Self::check), [`DataError::UnknownAttribute`] if the cohort lacks
    /// the column of the site.
    pub fn sweep(&self, cohort: &Cohort, n_repeats: u32) -> Result<Vec<Self>, DataError> {
        self.check()?;
        let one_repeat: Vec<Self> = match self.way() {
            Way::File(_) => return Ok(vec![self.clone()]),
            Way::Fractions => vec![self.clone()],
            Way::KFold(KFold { folds, .. }) => {
                let with = |fold| Self { k_fold: Some(KFold { folds, fold }), ..self.clone() };
                (0..folds).map(with).collect()
            }
            Way::LeaveSiteOut(LeaveSiteOut { site, .. }) => {
                let values = site::column(cohort, site)?.values.iter().flatten();
                let sites: BTreeSet<&String> = values.collect();
                let left_out = |name: &String| LeaveSiteOut { site: site.clone(), leave_out: name.clone() };
                let with = |name| Self { leave_site_out: Some(left_out(name)), ..self.clone() };
                sites.into_iter().map(with).collect()
            }
        };
        let repeated = |repeat| one_repeat.iter().map(move |config| Self { repeat, ..config.clone() });
        Ok((0..n_repeats).flat_map(repeated).collect())
    }
}

impl LeaveSiteOut {
    fn check(&self) -> Result<(), DataError> {
        if self.site.trim().is_empty() {
            return invalid("leave-site-out.site", "\"\"", "the name of a column");
        }
        if self.leave_out.trim().is_empty() {
            return invalid("leave-site-out.leave-out", "\"\"", "a value of the column of the site");
        }
        Ok(())
    }
}

fn invalid(field: &'static str, value: impl fmt::Display, expected: &'static str) -> Result<(), DataError> {
    Err(DataError::setting(SettingsOf::Split, field, value, expected))
}

impl fmt::Display for SplitConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way() {
            Way::Fractions => {
                write!(f, "train {}, validation {}, test {} of the subjects", self.train, self.validation, self.test)?;
            }
            Way::KFold(KFold { folds, fold }) => write!(f, "fold {fold} of 0..{folds} as test part")?,
            Way::LeaveSiteOut(LeaveSiteOut { site, leave_out }) => {
                write!(f, "subjects with {site} \"{leave_out}\" as test part")?;
            }
            Way::File(path) => write!(f, "parts of {}", path.display())?,
        }
        if !self.stratify.is_empty() {
            write!(f, ", stratified by {}", self.stratify.join(", "))?;
        }
        if self.repeat > 0 {
            write!(f, ", repeat {}", self.repeat)?;
        }
        Ok(())
    }
}
