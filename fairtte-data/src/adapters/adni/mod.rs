//! ADNI: T1-weighted brain MRI, time to the first dementia diagnosis.
//!
//! | card | |
//! |---|---|
//! | modality | 3D magnetic resonance, NIfTI or DICOM series |
//! | subject, visit | participant (`PTID`); a visit is a day with scans, the next day is another visit |
//! | event, time origin | first recorded dementia diagnosis (later reversion is ignored); time in half-years from the scan |
//! | censoring | no such diagnosis: the last imaging visit |
//! | attributes | `age` (years at the scan; groups at 80), `sex` (F, M; anything else is missing) |
//! | expected folder | one folder with the image lists (any name), `DXSUM..csv`, optionally `REGISTRY..csv` and `ADNIMERGE..csv`; images below it |
//! | web site | <https://adni.loni.usc.edu>, files from the LONI Image and Data Archive |
//! | publication | Petersen et al. 2010, Neurology 74(3):201-209; label rule: FairTTE, appendix C.3 |
//! | licence, access | ADNI Data Use Agreement, free of charge after application; the data must not be passed on |
//!
//! The authors of this adapter do not have the data: it was tested on made-up tables in the published layout.

mod cells;
mod config;
mod diagnoses;
mod image_files;
mod image_list;
mod rule;
mod subjects;
mod tables;
mod visits;

#[cfg(test)]
mod tests;

use std::path::Path;

use fairtte_metrics::SubjectId;

pub use config::{
    AdniConfig, AgeSource, DementiaCause, DiagnosisSource, FinalVisit, MissingCurrent, Rounding, ScanOfDay,
    UndatedDiagnosis, UnscheduledVisits,
};

use self::cells::NamedTable;
use self::image_files::{ImageFiles, InTwoFiles};
use self::image_list::{DATE, ID, ListedImage, MODALITY, SUBJECT};
use self::rule::{Fate, History, RuleOptions, Scan, label_scans};
use self::subjects::Subjects;
use self::tables::Tables;
use self::visits::{AdniMerge, DiagnosisCounts, Visit};
use crate::cohort::AttributeColumn;
use crate::cohort::{ContentHasher, Provenance};
use crate::cohort::{Label, LabelRule, Reason};
use crate::cohort::{Manifest, ManifestRow, Unlabelled};
use crate::error::Place;
use crate::{Adapter, AttributeConfig, DataError};

pub(super) const NAME: &str = "adni";

/// Incremented whenever the same tables would get different labels.
const RULE_VERSION: u32 = 2;

/// In the order in which they are applied: a row that is not an MRI is not examined further.
const REASONS: [Reason; 9] = [
    Reason::NotMri,
    Reason::MissingSample,
    Reason::MissingSubject,
    Reason::MissingDate,
    Reason::DuplicateImageId,
    Reason::RepeatScanSameVisit,
    Reason::NoDiagnosis,
    Reason::AtOrAfterEvent,
    Reason::FinalVisit,
];

/// Adapter of ADNI; see the module documentation.
#[derive(Clone, Debug)]
pub struct Adni {
    config: AdniConfig,
}

impl Adni {
    /// An adapter for the files that `config` names.
    pub fn new(config: AdniConfig) -> Self {
        Self { config }
    }

    fn options(&self) -> Vec<(String, String)> {
        let config = serde_json::to_value(&self.config).unwrap_or_default();
        let keys = [
            "final-visit",
            "rounding",
            "dementia-cause",
            "undated-diagnosis",
            "unscheduled-visits",
            "scan-of-day",
            "diagnosis-source",
            "missing-current",
            "age",
        ];
        let value = |key: &str| config[key].as_str().unwrap_or_default().to_owned();
        keys.map(|key| (key.to_owned(), value(key))).to_vec()
    }
}

impl Adapter for Adni {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self) -> Result<Unlabelled, DataError> {
        let config = &self.config;
        let mut notes = Vec::new();
        let tables = Tables::find(config)?;
        let lists = tables.read_image_lists(&mut notes)?;
        let (images, subjects) = image_list::read_image_lists(&lists)?;
        let n_contradictions = image_list::n_contradictions(&images);
        if n_contradictions > 0 {
            notes.push(format!(
                "rows of the image list that contradict the first row of their image about subject or day: {n_contradictions}; \
                 the first row is used"
            ));
        }
        let evidence = Evidence::read(&tables, &subjects, config, &mut notes)?;
        let fates = fates(&images, &evidence.histories, config);
        let wording = Wording { images: &images, subjects: &subjects, diagnoses: &tables.diagnoses };
        let labels = fates.iter().enumerate().map(|(index, fate)| wording.label(index, *fate)).collect();
        let ages = ages(&images, &evidence.merge, config);
        let mut provenance = evidence.provenance(self, &images, &subjects, &ages, &fates);
        let source = match lists.as_slice() {
            [list] => list.path().to_owned(),
            _ => config.root.clone(),
        };
        let rows = self.rows(&images, &subjects, &mut notes)?;
        provenance.notes = notes;
        let manifest = Manifest {
            name: config.name.clone(),
            source,
            time_unit: "half-years".to_owned(),
            rows,
            attributes: vec![
                AttributeColumn::new("age", ages),
                AttributeColumn::new("sex", images.iter().map(|image| image.sex.map(str::to_owned)).collect()),
            ],
            roles: Vec::new(),
        };
        Ok(Unlabelled { manifest, rule: Box::new(AdniRule { labels }), provenance })
    }

    fn default_attributes(&self) -> Vec<AttributeConfig> {
        let mut age = AttributeConfig::new("age");
        age.threshold = Some(crate::cohort::Threshold::Value(80.0));
        let mut sex = AttributeConfig::new("sex");
        sex.levels = Some(vec!["F".to_owned(), "M".to_owned()]);
        vec![age, sex]
    }

    fn data_use(&self) -> Option<&'static str> {
        Some(
            "ADNI data are given out under the ADNI Data Use Agreement: do not pass them on, do not try to identify \
             participants, and cite ADNI as the agreement asks (https://adni.loni.usc.edu)",
        )
    }
}

impl Adni {
    fn rows(
        &self,
        images: &[ListedImage],
        subjects: &Subjects,
        notes: &mut Vec<String>,
    ) -> Result<Vec<ManifestRow>, DataError> {
        let folder = self.config.images.as_ref().unwrap_or(&self.config.root);
        let folder = std::path::absolute(folder).map_err(|source| DataError::read(folder, source))?;
        let files = ImageFiles::find(&folder);
        notes.extend(files.notes());
        let mut n_in_two = 0;
        let mut first_in_two = None;
        let mut row = |image: &ListedImage| {
            let subject = image.subject.map(|subject| subjects.name(subject));
            let mut path = |id| {
                // If no file or more than one was found, the path shows the name that was searched for.
                let sought = || folder.join(subject.unwrap_or_default()).join(format!("*_I{id}.*"));
                match files.path(id) {
                    Ok(found) => found.map_or_else(sought, Path::to_path_buf),
                    Err(in_two) => {
                        n_in_two += 1;
                        first_in_two.get_or_insert((id, in_two));
                        sought()
                    }
                }
            };
            ManifestRow {
                sample_id: image.name.clone(),
                subject_id: subject.map(SubjectId::from),
                unit: None,
                image: image.id.map(&mut path),
                source_row: image.place.row,
            }
        };
        let rows = images.iter().map(&mut row).collect();
        if let Some((id, InTwoFiles { first, second })) = first_in_two {
            notes.push(format!(
                "images that count as missing because each was found in two different files: {n_in_two}; image I{id} is in {} \
                 and in {}; keep one, or set the key images to the folder of the right ones",
                first.display(),
                second.display()
            ));
        }
        Ok(rows)
    }
}

/// The label rule in words, with the counts of its input.
fn rule_sentence(counts: DiagnosisCounts) -> String {
    let DiagnosisCounts { n_rows, n_diagnoses, n_dated_elsewhere, n_undated, n_undated_events } = counts;
    format!(
        "half-years from the scan to the first dementia diagnosis, else to the last imaging visit; kept if at least 1; \
         {n_diagnoses} diagnoses in {n_rows} rows about people with images, {n_dated_elsewhere} dated by another table, \
         {n_undated} without a date, of these {n_undated_events} of dementia"
    )
}

/// The content of the tables other than the image list.
struct Evidence {
    histories: Vec<History>,
    counts: DiagnosisCounts,
    diagnosed: Vec<Visit>,
    registry: Vec<Visit>,
    merge: AdniMerge,
}

impl Evidence {
    fn read(
        tables: &Tables,
        subjects: &Subjects,
        config: &AdniConfig,
        notes: &mut Vec<String>,
    ) -> Result<Self, DataError> {
        let from_merge = config.diagnosis_source == DiagnosisSource::Adnimerge;
        let registry = match &tables.registry {
            Some(source) => source.read(notes, |table| visits::read_registry(table, subjects))?,
            None => Vec::new(),
        };
        let merge = match &tables.adnimerge {
            Some(source) => source.read(notes, |table| visits::read_adnimerge(table, subjects, from_merge))?,
            None => AdniMerge::default(),
        };
        let diagnosed = if from_merge {
            merge.visits.clone()
        } else {
            let (visits, more) = diagnoses::read_dxsum(&NamedTable::read(&tables.diagnoses)?, subjects, config)?;
            notes.extend(more);
            visits
        };
        let (histories, counts) = visits::histories(&diagnosed, &[&registry, &merge.visits], subjects.n(), config);
        Ok(Self { histories, counts, diagnosed, registry, merge })
    }

    fn provenance(
        &self,
        adapter: &Adni,
        images: &[ListedImage],
        subjects: &Subjects,
        ages: &[Option<String>],
        fates: &[Option<Fate>],
    ) -> Provenance {
        let mut hasher = ContentHasher::new().table("images");
        for ((image, age), fate) in images.iter().zip(ages).zip(fates) {
            let subject = image.subject.map(|subject| subjects.name(subject));
            let date = image.date.map(|date| date.to_string());
            // The scan of a day that is kept may depend on the order of rows, which is not part of the hash.
            let is_repeat = match fate {
                Some(Fate::Repeat { .. }) => Some("repeat"),
                Some(Fate::Duplicate { .. }) => Some("duplicate"),
                _ => None,
            };
            let (name, modality) = (image.name.as_deref(), image.modality.as_deref());
            hasher.row([name, subject, modality, date.as_deref(), age.as_deref(), image.sex, is_repeat]);
        }
        for (name, visits) in
            [("diagnoses", &self.diagnosed), ("registry", &self.registry), ("adnimerge", &self.merge.visits)]
        {
            hasher = hasher.table(name);
            for visit in visits {
                hasher.row([Some(subjects.name(visit.subject)), Some(&visit.evidence())]);
            }
        }
        hasher.finish(NAME, rule_sentence(self.counts), RULE_VERSION, adapter.options(), &REASONS)
    }
}

/// The fate of every row that is a magnetic resonance image with an identity, a subject and a date.
fn fates(images: &[ListedImage], histories: &[History], config: &AdniConfig) -> Vec<Option<Fate>> {
    let scan = |(index, image): (usize, &ListedImage)| {
        let (id, subject, date) = (image.id?, image.subject?, image.date?);
        Some(Scan { index, id, subject, date, preference: image.preference })
    };
    let scans: Vec<Scan> = images.iter().enumerate().filter_map(scan).collect();
    let options =
        RuleOptions { final_visit: config.final_visit, rounding: config.rounding, scan_of_day: config.scan_of_day };
    let mut fates = vec![None; images.len()];
    for (scan, fate) in scans.iter().zip(label_scans(&scans, histories, options)) {
        fates[scan.index] = Some(fate);
    }
    fates
}

/// The age of every row as text.
fn ages(images: &[ListedImage], merge: &AdniMerge, config: &AdniConfig) -> Vec<Option<String>> {
    let from_merge = |image: &ListedImage| {
        let age = merge.baselines.get(&image.subject?)?.age_on(image.date?);
        // Four decimals resolve one hour and hide that a year is not a whole number of days.
        Some(((age * 1e4).round() / 1e4).to_string())
    };
    let age = |image: &ListedImage| match config.age {
        AgeSource::ImageList => image.age.clone().or_else(|| from_merge(image)),
        AgeSource::Adnimerge => from_merge(image),
    };
    images.iter().map(age).collect()
}

/// The labels, made when the tables were read.
struct AdniRule {
    labels: Vec<Label>,
}

impl LabelRule for AdniRule {
    fn label(&self, _: &Manifest, index: usize) -> Result<Label, DataError> {
        Ok(self.labels[index].clone())
    }
}

/// The outcome of every row, with a sentence that names the evidence.
struct Wording<'a> {
    images: &'a [ListedImage],
    subjects: &'a Subjects,
    diagnoses: &'a Path,
}

impl Wording<'_> {
    fn label(&self, index: usize, fate: Option<Fate>) -> Label {
        let image = &self.images[index];
        let place = &image.place;
        let excluded = |reason, sentence: String| Label::excluded(reason, format!("{sentence} ({place})"));
        let empty = |reason, column: &str| excluded(reason, format!("column \"{column}\" is empty"));
        let date = image.date.map(|date| date.to_string()).unwrap_or_default();
        let Some(fate) = fate else {
            return if !image.is_mri() {
                let modality = image.modality.as_deref().unwrap_or_default();
                excluded(Reason::NotMri, format!("{MODALITY} is \"{modality}\""))
            } else if image.id.is_none() {
                empty(Reason::MissingSample, ID)
            } else if image.subject.is_none() {
                empty(Reason::MissingSubject, SUBJECT)
            } else {
                empty(Reason::MissingDate, DATE)
            };
        };
        match fate {
            Fate::Kept { half_years, event } => Label::Kept { time: f64::from(half_years), event },
            Fate::Duplicate { first } => {
                let Place { file, row } = &self.images[first].place;
                let elsewhere = if *file == place.file { String::new() } else { format!(" of {}", file.display()) };
                excluded(Reason::DuplicateImageId, format!("the same image is in row {row}{elsewhere}"))
            }
            Fate::Repeat { kept } => {
                let kept = self.images[kept].name.as_deref().unwrap_or_default();
                excluded(Reason::RepeatScanSameVisit, format!("{kept} of the same subject and day is kept"))
            }
            Fate::NoDiagnosis => {
                let subject = image.subject.map(|subject| self.subjects.name(subject)).unwrap_or_default();
                let diagnoses = self.diagnoses.display();
                excluded(Reason::NoDiagnosis, format!("{subject} has no usable diagnosis in {diagnoses}"))
            }
            Fate::FinalVisit { last } => {
                excluded(Reason::FinalVisit, format!("taken {date}, the last imaging visit is {last}"))
            }
            Fate::AtOrAfterEvent { event } => {
                excluded(Reason::AtOrAfterEvent, format!("taken {date}, the first dementia diagnosis is {event}"))
            }
        }
    }
}
