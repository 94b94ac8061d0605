//! AREDS: colour fundus photographs with graded age-related macular degeneration (dbGaP phs000001).
//!
//! | card | |
//! |---|---|
//! | modality | colour fundus photographs of field 2 (the macula), stereo pairs |
//! | subject, visit, unit | the person (`ID2`); visits by half-years since baseline (`VISNO`); each eye is followed separately |
//! | event, time origin | first visit at which the eye is graded late AMD (severity 10 to 12); from the photograph, in years |
//! | censoring | at the last imaging visit of the eye |
//! | attributes | `age` (at enrolment + visit), `sex` (F, M), `race` (White, Black, Hispanic, Asian, Other) |
//! | expected folder | the tables `fundus` (pht000375) and `enrollment_randomization` (pht000373) of consent groups c1 and c2, the directory map, and the photographs or a list of their paths |
//! | web site | <https://www.ncbi.nlm.nih.gov/projects/gap/cgi-bin/study.cgi?study_id=phs000001.v3.p1> |
//! | publication | AREDS Research Group, Control Clin Trials 20 (1999) 573-600; grading: AREDS report 17, Arch Ophthalmol 123 (2005) 1484-1498 |
//! | licence, access | dbGaP data use certification, by application |
//!
//! The rule is that of the FairTTE paper, appendix C.1; where its text leaves a choice, [`AredsConfig`] has an option.

mod dbgap;
mod files;
mod grades;
mod images;
mod name;
mod people;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fairtte_metrics::SubjectId;
use serde::{Deserialize, Serialize};

pub use dbgap::{DbgapRow, DbgapTable};
pub use name::{Ending, Eye, ImageName, Side, UnreadableName, View, parse_image_name};

pub use super::final_visit::FinalVisit;
use crate::cohort::AttributeColumn;
use crate::cohort::Threshold;
use crate::cohort::{ContentHasher, Provenance};
use crate::cohort::{Manifest, ManifestRow, Unlabelled};
use crate::{Adapter, AttributeConfig, DataError, SettingsOf};
use files::{Files, consent_groups};
use grades::Grades;
use images::Listed;
use people::{DirectoryMap, People, RACES};
use rule::{AredsRule, Photographed, REASONS};

pub(super) const NAME: &str = "areds";

const RULE_VERSION: u32 = 1;

/// Which photographs of one eye and visit are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stereo {
    /// One of each stereo side.
    #[default]
    Both,
    /// One: the left side (`LS`) if there is one, else the right.
    One,
}

/// How an eye without a grade at any visit is treated, if its person is in the fundus tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EyeNeverGraded {
    /// It counts as free of late AMD until its last imaging visit.
    #[default]
    Censored,
    /// Its photographs are left out.
    Dropped,
}

/// Which pictures make a visit an imaging visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::field2))]
#[serde(rename_all = "kebab-case")]
pub enum LastImagingVisit {
    /// Photographs of field 2.
    #[default]
    #[serde(rename = "field-2", alias = "field_2", alias = "field2")]
    Field2,
    /// Pictures of the eye of any field, including reflex images.
    #[serde(alias = "any_field")]
    AnyField,
}

/// Settings of [`Areds`], the table `[data.areds]` of a run file.
///
/// ```
/// use fairtte_data::adapters::areds::{AredsConfig, Stereo};
///
/// let config: AredsConfig = toml::from_str("root = 'AREDS'\nstereo = 'one'")?;
/// assert_eq!(config, AredsConfig { stereo: Stereo::One, ..AredsConfig::new("AREDS") });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AredsConfig {
    /// Folder with the dbGaP tables, at any depth.
    pub root: PathBuf,
    /// Folder of the photographs, or a text file with one relative path per line; if not given, `areds_images.txt` in
    /// the root (or the one `.txt` there with `images` in its name), else every picture below the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Folder that the paths of a text file are relative to; the folder of the text file if not given.
    #[serde(default, alias = "image_root", skip_serializing_if = "Option::is_none")]
    pub image_root: Option<PathBuf>,
    /// Table from image directory to `ID2`; if not given, the one `.txt` below the root with `ImageDir` and `ID2` in
    /// its name, else directories are `ID2` already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<PathBuf>,
    /// Photographs kept per eye and visit: `both` stereo sides or `one`; `both` if not given.
    #[serde(default)]
    pub stereo: Stereo,
    /// Photographs of the last imaging visit: `rule` (left out unless late AMD follows) or `literal` (left out); `rule`
    /// if not given.
    #[serde(default, alias = "final_visit")]
    pub final_visit: FinalVisit,
    /// An eye without any grade: `censored` or `dropped`; `censored` if not given.
    #[serde(default, alias = "eye_never_graded")]
    pub eye_never_graded: EyeNeverGraded,
    /// The last imaging visit is that of `field-2` or of `any-field`; `field-2` if not given.
    #[serde(default, alias = "last_imaging_visit")]
    pub last_imaging_visit: LastImagingVisit,
}

impl AredsConfig {
    /// The defaults for the files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            images: None,
            image_root: None,
            mapping: None,
            stereo: Stereo::default(),
            final_visit: FinalVisit::default(),
            eye_never_graded: EyeNeverGraded::default(),
            last_imaging_visit: LastImagingVisit::default(),
        }
    }

    pub(super) fn resolve_paths(&mut self, base: &Path) {
        self.root = base.join(&self.root);
        for path in [&mut self.images, &mut self.image_root, &mut self.mapping] {
            *path = path.as_ref().map(|path| base.join(path));
        }
    }

    fn options(&self) -> Vec<(String, String)> {
        let text = |value: serde_json::Result<serde_json::Value>| {
            value.ok().and_then(|value| value.as_str().map(str::to_owned)).expect("the options are unit variants")
        };
        [
            ("stereo", text(serde_json::to_value(self.stereo))),
            ("final-visit", text(serde_json::to_value(self.final_visit))),
            ("eye-never-graded", text(serde_json::to_value(self.eye_never_graded))),
            ("last-imaging-visit", text(serde_json::to_value(self.last_imaging_visit))),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

/// Adapter of AREDS; see the module documentation.
#[derive(Clone, Debug)]
pub struct Areds {
    config: AredsConfig,
}

/// The photographs and the folder that their paths are relative to.
struct Listing {
    source: PathBuf,
    root: PathBuf,
    listed: Vec<Listed>,
    /// Folders that cannot be listed.
    unlisted: Vec<PathBuf>,
}

impl Areds {
    /// An adapter for the files that `config` names.
    pub fn new(config: AredsConfig) -> Self {
        Self { config }
    }

    fn listing(&self, files: &Files) -> Result<Listing, DataError> {
        let source = self.config.images.as_ref().or(files.image_list.as_ref()).unwrap_or(&self.config.root);
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| DataError::read(path, error));
        if !source.is_dir() {
            let root = self.config.image_root.as_deref().or(source.parent()).unwrap_or(Path::new(""));
            let listed = images::read_list(source)?;
            let root = absolute(&root.join(""))?;
            return Ok(Listing { source: source.clone(), root, listed, unlisted: Vec::new() });
        }
        if let Some(root) = &self.config.image_root {
            let expected = "no value where the photographs are those of a folder";
            return Err(DataError::setting(SettingsOf::Areds, "image-root", root.display(), expected));
        }
        let (listed, unlisted) = images::walk(source)?;
        if listed.is_empty() {
            return Err(DataError::FileNotFound {
                what: "a photograph of AREDS",
                looked_for: "areds_images.txt, *.jpg, *.png, *.tif or *.dng".to_owned(),
                root: source.clone(),
            });
        }
        Ok(Listing { source: source.clone(), root: absolute(source)?, listed, unlisted })
    }

    fn provenance(
        &self,
        files: &Files,
        listed: &[Listed],
        map: &DirectoryMap,
        about: String,
    ) -> Result<Provenance, DataError> {
        let mut hasher = ContentHasher::new();
        for (name, tables, columns) in [
            ("fundus", &files.fundus, ["ID2", "VISNO", "AMDSEVRE", "AMDSEVLE"]),
            ("enrolment", &files.enrolment, ["ID2", "SEX", "RACE", "ENROLLAGE"]),
        ] {
            hasher = hasher.table(name);
            for table in tables {
                let [a, b, c, d] = columns.map(|column| table.column(column));
                let columns = [a?, b?, c?, d?];
                for row in table.rows() {
                    hasher.row(columns.map(|column| row.cell(column)));
                }
            }
        }
        hasher = hasher.table("directories");
        for (directory, id2) in map.entries() {
            hasher.row([Some(directory), Some(id2)]);
        }
        hasher = hasher.table("images");
        for entry in listed {
            hasher.row([Some(entry.path.as_str())]);
        }
        Ok(hasher.finish(NAME, about, RULE_VERSION, self.config.options(), &REASONS))
    }
}

/// The rule and its input tables, for the record.
fn sentence(files: &Files, grades: &Grades) -> String {
    format!(
        "years from the photograph to the first visit at which its eye is graded late AMD (severity 10 to 12), else to \
         the last imaging visit of the eye; fundus tables of consent group {} with {} people, enrolment tables of {}",
        consent_groups(&files.fundus),
        grades.n_people(),
        consent_groups(&files.enrolment),
    )
}

/// Notes for the user about the rows and folders read.
fn notes(files: &Files, grades: &Grades, people: &People, map: &DirectoryMap, unlisted: &[PathBuf]) -> Vec<String> {
    let n_padded = |tables: &[DbgapTable]| tables.iter().map(DbgapTable::n_padded).sum::<usize>();
    let counts = [
        (n_padded(&files.fundus), "rows of the fundus tables with missing trailing cells, which are taken as empty"),
        (
            n_padded(&files.enrolment),
            "rows of the enrolment tables with missing trailing cells, which are taken as empty",
        ),
        (grades.unknown_texts.values().sum(), "severity cells other than 1 to 12, which are no grades"),
        (grades.n_unplaced, "rows of the fundus tables without ID2 or VISNO, which are not used"),
        (people.n_unplaced, "rows of the enrolment tables without ID2, which are not used"),
        (people.n_unknown_codes, "cells of SEX or RACE without a known code, which count as missing"),
        (people.n_coded_ages, "cells of ENROLLAGE that hold a code for missing"),
        (people.n_contradictions(), "contradictory values of one person, which count as missing"),
        (map.n_without_id2, "rows of the directory map without an ID2, whose directory is taken for the ID2"),
    ];
    let counts = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {n}"));
    let folders: BTreeSet<&PathBuf> = files.unlisted.iter().chain(unlisted).collect();
    let folders =
        folders.into_iter().map(|path| format!("files below {} are not found: it cannot be listed", path.display()));
    counts.chain(folders).collect()
}

fn attributes(photographed: &[Option<Photographed>], people: &People) -> Vec<AttributeColumn> {
    let column = |name: &str, value: &dyn Fn(&Photographed) -> Option<String>| {
        AttributeColumn::new(name, photographed.iter().map(|who| who.as_ref().and_then(value)).collect())
    };
    vec![
        column("age", &|who| people.get(&who.id2).age_at(who.visit?).map(|age| age.to_string())),
        column("sex", &|who| people.get(&who.id2).sex().map(str::to_owned)),
        column("race", &|who| people.get(&who.id2).race().map(str::to_owned)).knowing(&RACES),
    ]
}

impl Adapter for Areds {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self) -> Result<Unlabelled, DataError> {
        let files = Files::find(&self.config)?;
        let grades = Grades::collect(&files.fundus)?;
        let people = People::collect(&files.enrolment)?;
        let map = files.map.as_deref().map(DirectoryMap::read).transpose()?.unwrap_or_default();
        let Listing { source, root, listed, unlisted } = self.listing(&files)?;
        let mut provenance = self.provenance(&files, &listed, &map, sentence(&files, &grades))?;
        provenance.notes = notes(&files, &grades, &people, &map, &unlisted);
        let (rule, photographed) = AredsRule::new(&self.config, &listed, &map, &grades);
        let attributes = attributes(&photographed, &people);
        let row = |(entry, who): (Listed, &Option<Photographed>)| ManifestRow {
            subject_id: who.as_ref().map(|who| SubjectId::from(who.id2.as_str())),
            unit: who.as_ref().and_then(Photographed::unit),
            image: Some(root.join(&entry.path)),
            source_row: entry.row,
            sample_id: Some(entry.path),
        };
        let manifest = Manifest {
            name: "AREDS".to_owned(),
            source,
            time_unit: "years".to_owned(),
            rows: listed.into_iter().zip(&photographed).map(row).collect(),
            attributes,
            roles: Vec::new(),
        };
        Ok(Unlabelled { manifest, rule: Box::new(rule), provenance })
    }

    fn default_attributes(&self) -> Vec<AttributeConfig> {
        vec![
            AttributeConfig { threshold: Some(Threshold::Value(70.0)), ..AttributeConfig::new("age") },
            AttributeConfig { levels: Some(vec!["F".to_owned(), "M".to_owned()]), ..AttributeConfig::new("sex") },
            AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("race") },
        ]
    }

    fn data_use(&self) -> Option<&'static str> {
        Some(
            "AREDS is given out by dbGaP (phs000001) to people whose application was approved: keep tables, photographs \
             and what is derived from single people where the data use certification allows it",
        )
    }
}
