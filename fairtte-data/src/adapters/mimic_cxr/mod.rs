//! MIMIC-CXR-JPG with outcomes from MIMIC-IV: death after a chest film.
//!
//! | card | |
//! |---|---|
//! | modality | chest films, 8-bit gray JPEG, about 3056 x 2544 |
//! | subject, visit | `subject_id`; every image of every study is a visit |
//! | event, time origin | death (`patients.dod`, or deaths in hospital); whole days from `StudyDate` |
//! | censoring | 365 days after the last discharge, so never before day 365; 61.7 % in the paper |
//! | attributes | `age` (years at the study: `anchor_age + year - anchor_year`), `sex` (F, M), `race` (as written at admissions; White or Non-White) |
//! | expected folder | `mimic-cxr-2.0.0-metadata.csv(.gz)`, `patients.csv(.gz)` and `admissions.csv(.gz)` (in `hosp/`, `core/` or anywhere) below one root or two; images `files/p10/p10000032/s50414267/<dicom_id>.jpg` |
//! | web site | <https://physionet.org/content/mimic-cxr-jpg/>, <https://physionet.org/content/mimiciv/> |
//! | publication | Johnson et al. 2019 (arXiv:1901.07042); Johnson et al. 2023 (doi:10.1038/s41597-022-01899-x) |
//! | licence, access | PhysioNet Credentialed Health Data License; training and a signed agreement; redistribution is not allowed |

mod config;
mod race;
mod rule;
mod tables;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_metrics::SubjectId;
use rayon::prelude::*;

pub use config::{AfterDischarge, Death, MimicCxrConfig, RaceChoice, UnknownRace};
use race::Meaning;
use rule::{Course, MimicRule, REASONS};
use tables::{Evidence, Image, Patient, Stays};

use super::find::{CSV, Wanted, find_file};
use crate::cohort::AttributeColumn;
use crate::cohort::{Manifest, ManifestRow, Unlabelled};
use crate::cohort::{Reason, Threshold};
use crate::{Adapter, AttributeConfig, DataError};

pub(super) const NAME: &str = "mimic-cxr";

const RULE_VERSION: u32 = 1;

const METADATA: Wanted =
    Wanted { what: "the metadata of MIMIC-CXR-JPG", patterns: &["mimic-cxr-*-metadata"], endings: CSV, dated: false };
const PATIENTS: Wanted =
    Wanted { what: "the table of patients of MIMIC-IV", patterns: &["patients"], endings: CSV, dated: false };
const ADMISSIONS: Wanted =
    Wanted { what: "the table of admissions of MIMIC-IV", patterns: &["admissions"], endings: CSV, dated: false };

/// Adapter of MIMIC-CXR-JPG and MIMIC-IV; see the module documentation.
#[derive(Clone, Debug)]
pub struct MimicCxr {
    config: MimicCxrConfig,
}

impl MimicCxr {
    /// An adapter for the tables at the paths in `config`.
    pub fn new(config: MimicCxrConfig) -> Self {
        Self { config }
    }
}

impl Adapter for MimicCxr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self) -> Result<Unlabelled, DataError> {
        let config = &self.config;
        let metadata = find_file(config.cxr_root()?, &METADATA)?;
        let patients = find_file(config.iv_root()?, &PATIENTS)?;
        let admissions = find_file(config.iv_root()?, &ADMISSIONS)?;
        let Evidence { images, patients, stays, content, odd_times } =
            tables::read(&metadata, &patients, &admissions, config)?;
        let persons: Vec<Person> = patients.into_iter().zip(stays).map(|(p, s)| Person::new(p, s, config)).collect();
        let rule = MimicRule {
            after_discharge: config.after_discharge,
            file: metadata.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            films: images.iter().map(|image| image.film).collect(),
            courses: persons.iter().map(|person| person.course(config.death)).collect(),
        };
        let mut provenance = content.finish(NAME, self.sentence(), RULE_VERSION, config.options(), &self.reasons());
        provenance.notes = odd_times.note().into_iter().chain(unknown_races(&images, &persons)).collect();
        let manifest = self.manifest(metadata, images, &persons)?;
        Ok(Unlabelled { manifest, rule: Box::new(rule), provenance })
    }

    fn default_attributes(&self) -> Vec<AttributeConfig> {
        vec![
            AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") },
            AttributeConfig { levels: Some(vec!["F".to_owned(), "M".to_owned()]), ..AttributeConfig::new("sex") },
            AttributeConfig { reference: Some(race::WHITE.to_owned()), ..AttributeConfig::new("race") },
        ]
    }

    fn data_use(&self) -> Option<&'static str> {
        Some(
            "MIMIC is given out under the PhysioNet Credentialed Health Data Use Agreement: do not pass on the data or \
             anything from which a person could be recognised, and do not send them to services of others",
        )
    }
}

impl MimicCxr {
    fn reasons(&self) -> Vec<Reason> {
        let drops = [self.config.unknown_race, self.config.without_admission()].contains(&UnknownRace::Drop);
        REASONS.into_iter().chain(drops.then_some(Reason::UnknownRace)).collect()
    }

    fn sentence(&self) -> String {
        let death = match self.config.death {
            Death::Dod => "the date of death of the table of patients",
            Death::InHospital => "the first death during an admission",
        };
        let whose = match self.config.after_discharge {
            AfterDischarge::CensoredOnly => "who are censored",
            AfterDischarge::All => "of any outcome",
        };
        format!(
            "days from StudyDate to {death}, otherwise censored {} days after the last discharge; images after the last \
             discharge are left out for people {whose}",
            rule::FOLLOW_UP
        )
    }

    fn manifest(&self, metadata: PathBuf, images: Vec<Image>, persons: &[Person]) -> Result<Manifest, DataError> {
        let person = |image: &Image| image.film.person.map(|person| &persons[person as usize]);
        let age = |image: &Image| person(image)?.age(image.year).filter(|_| image.film.day.is_some());
        // A million small texts: the only slow step after reading, and images are independent.
        let (age, (sex, race)) = rayon::join(
            || images.par_iter().map(|image| age(image).map(|age| age.to_string())).collect(),
            || {
                let sex = |image| person(image)?.patient.as_ref()?.gender.clone();
                let race = |image| person(image)?.stays.race.clone().filter(|race| !race.is_empty());
                (images.par_iter().map(sex).collect(), images.par_iter().map(race).collect())
            },
        );
        let attributes = vec![
            AttributeColumn::new("age", age),
            AttributeColumn::new("sex", sex),
            AttributeColumn {
                name: "race".to_owned(),
                values: race,
                coded: Some(images.iter().map(|image| person(image)?.race.level).collect()),
                known: &race::LEVELS,
            },
        ];
        let folder = self.image_folder(&metadata)?;
        let row = |image: Image| {
            let subject = image.subject.map(|subject| subject.to_string());
            ManifestRow {
                image: subject.as_deref().and_then(|subject| image_path(&folder, subject, &image)),
                subject_id: subject.map(SubjectId::new),
                sample_id: image.dicom,
                unit: None,
                source_row: image.source_row,
            }
        };
        Ok(Manifest {
            name: "MIMIC-CXR".to_owned(),
            source: metadata,
            time_unit: "days".to_owned(),
            rows: images.into_par_iter().map(row).collect(),
            attributes,
            roles: Vec::new(),
        })
    }

    /// The folder with the folders `p10`, `p11`, ..: `files` beside the metadata or in the given folder, or the given
    /// folder itself.
    fn image_folder(&self, metadata: &Path) -> Result<PathBuf, DataError> {
        let folder = self.config.images.as_deref().or(metadata.parent()).unwrap_or(Path::new(""));
        let folder = std::path::absolute(folder).map_err(|source| DataError::read(folder, source))?;
        let is_files = folder.file_name().is_some_and(|name| name == "files") && !folder.join("files").is_dir();
        Ok(if is_files { folder } else { folder.join("files") })
    }
}

/// `p10/p10000032/s50414267/<dicom_id>.jpg` below `folder`; `None` if a part of it is not known.
fn image_path(folder: &Path, subject: &str, image: &Image) -> Option<PathBuf> {
    let (study, dicom) = (image.study?, image.dicom.as_deref()?);
    let start = &subject[..subject.len().min(2)];
    // One allocation per image, because there are half a million images.
    let mut path = OsString::with_capacity(folder.as_os_str().len() + dicom.len() + 40);
    path.push(folder);
    write!(path, "/p{start}/p{subject}/s{study}/{dicom}.jpg").ok()?;
    Some(path.into())
}

/// All data about one person.
struct Person {
    patient: Option<Patient>,
    stays: Stays,
    race: Meaning,
}

impl Person {
    fn new(patient: Option<Patient>, stays: Stays, config: &MimicCxrConfig) -> Self {
        let race = race::meaning(stays.race.as_deref(), config);
        Self { patient, stays, race }
    }

    fn course(&self, death: Death) -> Course {
        let death = match death {
            Death::Dod => self.patient.as_ref().and_then(|patient| patient.dod),
            Death::InHospital => self.stays.death,
        };
        let last_discharge = self.stays.last_discharge;
        Course { is_patient: self.patient.is_some(), death, last_discharge, is_dropped: self.race.is_dropped }
    }

    /// Age in the year of a study, as MIMIC's own code computes it; may differ from the true age by one year.
    fn age(&self, year: i16) -> Option<i32> {
        let (age, anchor_year) = self.patient.as_ref()?.anchor?;
        Some(age + i32::from(year) - i32::from(anchor_year))
    }
}

/// The number of images of people whose race is not known, and how they are treated.
fn unknown_races(images: &[Image], persons: &[Person]) -> Option<String> {
    let is_unknown = |image: &&Image| {
        let person = image.film.person.map(|person| &persons[person as usize]);
        person.is_some_and(|person| person.patient.is_some() && person.race.is_unknown)
    };
    let unknown: Vec<&Image> = images.iter().filter(is_unknown).collect();
    let dropped = |image: &&&Image| image.film.person.is_some_and(|person| persons[person as usize].race.is_dropped);
    let grouped =
        |image: &&&Image| image.film.person.is_some_and(|person| persons[person as usize].race.level.is_some());
    if unknown.is_empty() {
        return None;
    }
    let (n_dropped, n_grouped) = (unknown.iter().filter(dropped).count(), unknown.iter().filter(grouped).count());
    Some(format!(
        "images of people whose race is not known: {} (counted as {}: {n_grouped}, in no group: {}, \
         left out: {n_dropped})",
        unknown.len(),
        race::NON_WHITE,
        unknown.len() - n_grouped - n_dropped
    ))
}
