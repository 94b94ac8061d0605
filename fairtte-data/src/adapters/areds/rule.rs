//! The label rule: from names and grades to time and event of every photograph.
//!
//! An eye is followed from the photograph to the first visit with late AMD (event), or to its last imaging visit
//! (censored). With half-years counted from baseline, time = (end - visit) / 2 years, and a photograph is kept iff its
//! time is > 0. Only the photographed eye matters; the fellow eye has its own outcome.
//!
//! Reasons are given in this order: unreadable name, path listed twice, not field 2, repeat, no row in the fundus
//! tables, eye never graded (if such eyes are dropped), last visit, at or after the event.

use std::collections::HashMap;

use super::grades::{EyeGrades, Grades};
use super::images::Listed;
use super::name::{Ending, Eye, ImageName, Side, UnreadableName, View, parse_image_name};
use super::people::DirectoryMap;
use super::{AredsConfig, EyeNeverGraded, FinalVisit, LastImagingVisit, Stereo};
use crate::DataError;
use crate::cohort::Manifest;
use crate::cohort::Reason;
use crate::cohort::{Label, LabelRule};

/// Every reason of the rule, in the order of the steps.
pub(super) const REASONS: [Reason; 8] = [
    Reason::UnreadableName,
    Reason::DuplicateImageId,
    Reason::NotField2,
    Reason::StereoOrRepeat,
    Reason::NoPhenotype,
    Reason::NeverGraded,
    Reason::AtOrAfterEvent,
    Reason::FinalVisit,
];

/// The person, visit and eye of a listed file, according to its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Photographed {
    /// The person.
    pub id2: String,
    /// Half-years since baseline.
    pub visit: Option<u8>,
    /// The eye.
    pub eye: Option<Eye>,
}

impl Photographed {
    /// `9001-RE`.
    pub fn unit(&self) -> Option<String> {
        self.eye.map(|eye| format!("{}-{eye}", self.id2))
    }
}

/// The evidence about one listed file, without its label.
#[derive(Clone, Debug, PartialEq)]
enum Evidence {
    Unreadable(UnreadableName),
    /// The same path is in the row with this index.
    Duplicate(usize),
    OtherView(View),
    /// The photograph in the row with this index is kept instead of this one.
    Repeat(usize),
    Photograph {
        visit: u8,
        /// Index of the eye.
        eye: usize,
    },
}

/// One eye with photographs of field 2.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FollowedEye {
    /// `9001-RE`.
    pub unit: String,
    /// The summary of its grades; `None` if no fundus table has a row of this person.
    pub grades: Option<EyeGrades>,
    /// Last imaging visit, in half-years.
    pub last_visit: u8,
}

/// The outcome of a photograph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Followed for this many half-years, >= 1.
    Kept {
        half_years: u8,
        event: bool,
    },
    NoPhenotype,
    NeverGraded,
    FinalVisit,
    /// Late AMD was first graded at this visit.
    AtOrAfterEvent(u8),
}

/// The follow-up of `eye` from a photograph at `visit`.
pub(super) fn follow_up(visit: u8, eye: &FollowedEye, config: &AredsConfig) -> FollowUp {
    let Some(grades) = eye.grades else { return FollowUp::NoPhenotype };
    if !grades.is_graded && config.eye_never_graded == EyeNeverGraded::Dropped {
        return FollowUp::NeverGraded;
    }
    let is_last = visit >= eye.last_visit;
    if is_last && config.final_visit == FinalVisit::Literal {
        return FollowUp::FinalVisit;
    }
    match grades.first_late {
        Some(first) if visit >= first => FollowUp::AtOrAfterEvent(first),
        Some(first) => FollowUp::Kept { half_years: first - visit, event: true },
        None if is_last => FollowUp::FinalVisit,
        None => FollowUp::Kept { half_years: eye.last_visit - visit, event: false },
    }
}

/// The label rule of AREDS with its evidence; see the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AredsRule {
    config: AredsConfig,
    rows: Vec<Evidence>,
    eyes: Vec<FollowedEye>,
    has_map: bool,
}

impl AredsRule {
    /// Gathers the evidence for every file of `listed`, and the person, visit and eye of each (`None` for unreadable
    /// names).
    pub fn new(
        config: &AredsConfig,
        listed: &[Listed],
        map: &DirectoryMap,
        grades: &Grades,
    ) -> (Self, Vec<Option<Photographed>>) {
        let mut eyes = Eyes { map, grades, list: Vec::new(), index: HashMap::new() };
        let mut first_rows: HashMap<&str, usize> = HashMap::with_capacity(listed.len());
        let mut best: HashMap<Slot, (Rank, usize)> = HashMap::new();
        let mut slots: Vec<Option<Slot>> = vec![None; listed.len()];
        let mut rows = Vec::with_capacity(listed.len());
        let mut photographed = Vec::with_capacity(listed.len());
        for (row, path) in listed.iter().map(|entry| entry.path.as_str()).enumerate() {
            let name = match parse_image_name(path) {
                Ok(name) => name,
                Err(why) => {
                    rows.push(Evidence::Unreadable(why));
                    photographed.push(None);
                    continue;
                }
            };
            let id2 = map.id2(&name.identity).to_owned();
            photographed.push(Some(Photographed { id2, visit: name.visit, eye: name.eye }));
            let first = *first_rows.entry(path).or_insert(row);
            if first != row {
                rows.push(Evidence::Duplicate(first));
                continue;
            }
            let place = eyes.place(&name, config.last_imaging_visit);
            let (View::Field(2), Some((eye, visit))) = (name.view, place) else {
                rows.push(Evidence::OtherView(name.view));
                continue;
            };
            rows.push(Evidence::Photograph { visit, eye });
            let slot = (eye, visit, (config.stereo == Stereo::Both).then_some(name.side));
            slots[row] = Some(slot);
            let rank = (name.side, name.ending, name.n_other_words, path);
            let best = best.entry(slot).or_insert((rank, row));
            if rank < best.0 {
                *best = (rank, row);
            }
        }
        for (row, slot) in slots.iter().enumerate() {
            if let Some((_, kept)) = slot.as_ref().map(|slot| best[slot]).filter(|(_, kept)| *kept != row) {
                rows[row] = Evidence::Repeat(kept);
            }
        }
        (Self { config: config.clone(), rows, eyes: eyes.list, has_map: !map.is_empty() }, photographed)
    }
}

/// Eye, visit, and the side if both sides are kept: one photograph is kept for each combination.
type Slot = (usize, u8, Option<Side>);

/// Order of preference in a slot; it does not depend on the order of the list.
type Rank<'a> = (Side, Ending, usize, &'a str);

/// Collects the eyes in the order of their first photograph.
struct Eyes<'a> {
    map: &'a DirectoryMap,
    grades: &'a Grades,
    list: Vec<FollowedEye>,
    index: HashMap<(String, Eye), usize>,
}

impl Eyes<'_> {
    /// Index of the eye and visit of a picture that counts for the last imaging visit; `None` for others.
    fn place(&mut self, name: &ImageName, counts: LastImagingVisit) -> Option<(usize, u8)> {
        let (visit, eye) = (name.visit?, name.eye?);
        if name.view != View::Field(2) && counts == LastImagingVisit::Field2 {
            return None;
        }
        let id2 = self.map.id2(&name.identity);
        let index = *self.index.entry((id2.to_owned(), eye)).or_insert_with(|| {
            let grades = self.grades.eye(id2, eye);
            self.list.push(FollowedEye { unit: format!("{id2}-{eye}"), grades, last_visit: visit });
            self.list.len() - 1
        });
        let followed = &mut self.list[index];
        followed.last_visit = followed.last_visit.max(visit);
        Some((index, visit))
    }
}

impl LabelRule for AredsRule {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        let name_of = |row: usize| manifest.rows[row].display_id();
        let excluded = |reason, detail: String| Ok(Label::excluded(reason, detail));
        let (visit, eye) = match &self.rows[index] {
            Evidence::Unreadable(why) => {
                let detail = format!("{why} ({})", manifest.place(index));
                return excluded(Reason::UnreadableName, detail);
            }
            Evidence::Duplicate(first) => {
                let first = manifest.rows[*first].source_row;
                let detail = format!("the path is also in row {first} ({})", manifest.place(index));
                return excluded(Reason::DuplicateImageId, detail);
            }
            Evidence::OtherView(view) => {
                return excluded(Reason::NotField2, format!("the file name says {view}, only F2 shows the macula"));
            }
            Evidence::Repeat(kept) => {
                let what = if self.config.stereo == Stereo::Both { "eye, visit and side" } else { "eye and visit" };
                return excluded(Reason::StereoOrRepeat, format!("\"{}\" is kept of this {what}", name_of(*kept)));
            }
            Evidence::Photograph { visit, eye } => (*visit, &self.eyes[*eye]),
        };
        let unit = &eye.unit;
        match follow_up(visit, eye, &self.config) {
            FollowUp::Kept { half_years, event } => Ok(Label::Kept { time: f64::from(half_years) / 2.0, event }),
            FollowUp::NoPhenotype => {
                let hint = if self.has_map { "" } else { "; there is no map from image directories to ID2" };
                let detail = format!("no row of the fundus tables is about the person of eye {unit}{hint}");
                excluded(Reason::NoPhenotype, detail)
            }
            FollowUp::NeverGraded => {
                excluded(Reason::NeverGraded, format!("eye {unit} has no grade in 1 to 12 at any visit"))
            }
            FollowUp::FinalVisit => {
                excluded(Reason::FinalVisit, format!("visit {visit:02} is the last imaging visit of eye {unit}"))
            }
            FollowUp::AtOrAfterEvent(first) => {
                let detail = format!(
                    "late AMD of eye {unit} was graded at visit {first:02}, the photograph is of visit {visit:02}"
                );
                excluded(Reason::AtOrAfterEvent, detail)
            }
        }
    }
}
