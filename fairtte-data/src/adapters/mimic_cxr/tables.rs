//! The three tables of MIMIC, read into what the rule and the attributes need.
//!
//! Only people who have an image matter: rows of others are skipped once their subject is read. An invalid date
//! or number is an error; columns that do not affect the result are not read.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::config::{Death, MimicCxrConfig};
use super::race;
use super::rule::Film;
use crate::DataError;
use crate::adapters::columns::{Columns, WantedColumn, optional, required};
use crate::adapters::dates::{day_number, parse_clock, parse_compact_date, parse_date, parse_dicom_time};
use crate::cohort::ContentHasher;
use crate::table::repeats::repeats;

/// Positions of people by their number in the tables.
pub(super) type People = HashMap<u64, u32>;

/// The name of the table of images in the content hash.
const METADATA_NAME: &str = "metadata";

/// Rows that are read in one chunk.
const CHUNK_ROWS: usize = 8192;

const METADATA: [WantedColumn; 5] = [
    required(&["dicom_id"]),
    required(&["subject_id"]),
    required(&["study_id"]),
    required(&["StudyDate"]),
    optional(&["StudyTime"]),
];

const PATIENTS: [WantedColumn; 5] = [
    required(&["subject_id"]),
    required(&["gender"]),
    required(&["anchor_age"]),
    required(&["anchor_year"]),
    required(&["dod"]),
];

const ADMISSIONS: [WantedColumn; 5] = [
    required(&["subject_id"]),
    optional(&["hadm_id"]),
    required(&["admittime"]),
    required(&["dischtime"]),
    // v1.0 calls it ethnicity.
    required(&["race", "ethnicity"]),
];

const DEATHS: [WantedColumn; 2] = [required(&["deathtime"]), required(&["hospital_expire_flag"])];

/// The data of the tables, and the content that enters the hash of the cohort.
pub(super) struct Evidence {
    pub(super) images: Vec<Image>,
    pub(super) patients: Vec<Option<Patient>>,
    pub(super) stays: Vec<Stays>,
    pub(super) content: ContentHasher,
    pub(super) odd_times: OddTimes,
}

/// Cells of `StudyTime` that are not a time of day. They affect no label, so they are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OddTimes {
    n: usize,
    /// The first of them, and its row.
    first: Option<(String, usize)>,
}

impl OddTimes {
    fn count(&mut self, cell: &str, row: usize) {
        self.n += 1;
        self.first.get_or_insert_with(|| (cell.to_owned(), row));
    }

    /// Adds those of later rows.
    fn add(&mut self, later: Self) {
        self.n += later.n;
        self.first = self.first.take().or(later.first);
    }

    /// One sentence for the record; `None` without any.
    pub(super) fn note(&self) -> Option<String> {
        let (cell, row) = self.first.as_ref()?;
        Some(format!(
            "cells of StudyTime that are no time of day such as 213014.531: {} (the first is \"{cell}\" in row {row}); the time \
             of day does not affect the labels",
            self.n
        ))
    }
}

/// Reads the columns that are needed of the tables at these paths.
///
/// Unpacking is most of the work and a single table cannot be unpacked in parallel, so the three are read concurrently,
/// and the images are processed while other tables are still being unpacked.
pub(super) fn read(
    metadata: &Path,
    patients: &Path,
    admissions: &Path,
    config: &MimicCxrConfig,
) -> Result<Evidence, DataError> {
    let mut wanted = ADMISSIONS.to_vec();
    if config.death == Death::InHospital {
        wanted.extend(DEATHS);
    }
    let (films, clinical) = rayon::join(
        || images(&Columns::read(metadata, &METADATA)?),
        || rayon::join(|| Columns::read(admissions, &wanted), || Columns::read(patients, &PATIENTS)),
    );
    let (Films { images, people, mut content, odd_times }, admissions, table) = (films?, clinical.0?, clinical.1?);
    let (patients, stays) =
        rayon::join(|| self::patients(&table, &people), || self::stays(&admissions, &people, config));
    let ((patients, of_patients), (stays, of_stays)) = (patients?, stays?);
    content.append(of_patients);
    content.append(of_stays);
    Ok(Evidence { images, patients, stays, content, odd_times })
}

/// One image of the metadata.
pub(super) struct Image {
    pub(super) dicom: Option<String>,
    pub(super) subject: Option<u64>,
    pub(super) study: Option<u64>,
    /// Year of the study.
    pub(super) year: i16,
    pub(super) film: Film,
    pub(super) source_row: usize,
}

/// The content of the metadata.
struct Films {
    images: Vec<Image>,
    /// The people they are of, numbered in the order of their first image.
    people: People,
    content: ContentHasher,
    odd_times: OddTimes,
}

/// Every image, and the people they are of. Rows are read in parallel; people and repetitions are
/// identified afterwards, in row order.
fn images(table: &Columns) -> Result<Films, DataError> {
    let n_chunks = table.n_rows().div_ceil(CHUNK_ROWS);
    let rows = |chunk: usize| chunk * CHUNK_ROWS..table.n_rows().min((chunk + 1) * CHUNK_ROWS);
    let chunks: Vec<_> = (0..n_chunks).into_par_iter().map(|chunk| image_rows(table, rows(chunk))).collect();
    let mut films = Films {
        images: Vec::with_capacity(table.n_rows()),
        people: People::new(),
        content: ContentHasher::new().table(METADATA_NAME),
        odd_times: OddTimes::default(),
    };
    for chunk in chunks {
        let (images, content, odd_times) = chunk?;
        films.images.extend(images);
        films.content.more_rows(content);
        films.odd_times.add(odd_times);
    }
    let dicoms: Vec<Option<&str>> = films.images.iter().map(|image| image.dicom.as_deref()).collect();
    let (repeats, people) = rayon::join(|| repeats(&dicoms), || number_people(&films.images));
    drop(dicoms);
    for (image, person) in films.images.iter_mut().zip(&people.of_images) {
        image.film.person = *person;
    }
    for (first, again) in repeats {
        films.images[again].film.repeats = Some(films.images[first].source_row);
    }
    films.people = people.numbers;
    Ok(films)
}

/// The images of some rows, still without person and repetition.
fn image_rows(table: &Columns, rows: Range<usize>) -> Result<(Vec<Image>, ContentHasher, OddTimes), DataError> {
    let mut content = ContentHasher::new().table(METADATA_NAME);
    let mut odd_times = OddTimes::default();
    let mut images = Vec::with_capacity(rows.len());
    for index in rows {
        let cells: [Option<&str>; METADATA.len()] = std::array::from_fn(|position| table.cell(position, index));
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let dicom = cells[0];
        let invalid = |position, expected| {
            let whose = dicom.map_or_else(|| format!("row {}", Columns::row(index)), str::to_owned);
            table.invalid(position, index, &whose, expected)
        };
        let number = |position: usize, expected| {
            cells[position].map(|cell| whole_number(cell).ok_or_else(|| invalid(position, expected))).transpose()
        };
        let subject = number(1, "a subject number such as 10000032")?;
        let study = number(2, "a study number such as 50414267")?;
        let date = cells[3].map(|cell| parse_compact_date(cell).ok_or_else(|| invalid(3, "a date such as 21500110")));
        let date = date.transpose()?;
        if let Some(cell) = cells[4].filter(|cell| parse_dicom_time(cell).is_none()) {
            odd_times.count(cell, Columns::row(index));
        }
        // The time of day does not affect the labels.
        content.row(cells[..4].iter().copied());
        images.push(Image {
            dicom: dicom.map(str::to_owned),
            subject,
            study,
            year: date.map_or(0, jiff::civil::Date::year),
            film: Film { person: None, day: date.map(day_number), repeats: None },
            source_row: Columns::row(index),
        });
    }
    Ok((images, content, odd_times))
}

/// The people of the images, numbered in the order of their first image.
struct Numbered {
    numbers: People,
    of_images: Vec<Option<u32>>,
}

fn number_people(images: &[Image]) -> Numbered {
    let mut numbers = People::new();
    let mut next = 0;
    let of_images = images.iter().map(|image| {
        Some(*numbers.entry(image.subject?).or_insert_with(|| {
            next += 1;
            next - 1
        }))
    });
    let of_images = of_images.collect();
    Numbered { numbers, of_images }
}

/// One person of the table of patients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patient {
    pub(super) gender: Option<String>,
    /// Age in `anchor_year`; 91 stands for every age above 89.
    pub(super) anchor: Option<(i32, i16)>,
    /// Date of death in days since 1970.
    pub(super) dod: Option<i32>,
}

/// The patients among `people`, by position.
fn patients(table: &Columns, people: &People) -> Result<(Vec<Option<Patient>>, ContentHasher), DataError> {
    let mut content = ContentHasher::new().table("patients");
    let mut patients: Vec<Option<Patient>> = vec![None; people.len()];
    for index in (0..table.n_rows()).filter(|&index| !table.is_blank(index)) {
        let Some(person) = person(table, index, people)? else { continue };
        let whose = table.cell(0, index).unwrap_or_default();
        let invalid = |position, expected| table.invalid(position, index, whose, expected);
        let number = |position: usize, expected| {
            let cell = table.cell(position, index);
            cell.map(|cell| small_number(cell).ok_or_else(|| invalid(position, expected))).transpose()
        };
        let age = number(2, "a whole number of years in [0, 150]")?;
        if age.is_some_and(|age| !(0..=150).contains(&age)) {
            return Err(invalid(2, "a whole number of years in [0, 150]"));
        }
        let year = number(3, "a year such as 2150")?.map(i16::try_from).transpose();
        let year = year.map_err(|_| invalid(3, "a year such as 2150"))?;
        let dod =
            table.cell(4, index).map(|cell| parse_date(cell).ok_or_else(|| invalid(4, "a date such as 2150-01-31")));
        let patient = Patient {
            gender: table.cell(1, index).map(str::to_owned),
            anchor: age.zip(year),
            dod: dod.transpose()?.map(day_number),
        };
        match &patients[person as usize] {
            // A repeated line adds nothing; two different lines about one person cannot both be true.
            Some(first) if *first == patient => continue,
            Some(_) => return Err(invalid(0, "each subject once, or the same line again")),
            None => patients[person as usize] = Some(patient),
        }
        content.row((0..5).map(|position| table.cell(position, index)));
    }
    Ok((patients, content))
}

/// The admissions data of one person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stays {
    /// Date of the last discharge in days since 1970.
    pub(super) last_discharge: Option<i32>,
    /// Date of the first death recorded during an admission, if deaths in hospital are the event.
    pub(super) death: Option<i32>,
    /// The race that is used; `None` without an admission, empty if no admission has one.
    pub(super) race: Option<String>,
}

/// One admission, to be ordered by time; ties are broken by the number and the race, so that the order of the
/// rows does not matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stay<'a> {
    person: u32,
    /// Days and milliseconds of the admission; without a time, after all others.
    admitted: (i32, u32),
    number: &'a str,
    race: &'a str,
}

/// The admissions data of `people`, by position.
fn stays(table: &Columns, people: &People, config: &MimicCxrConfig) -> Result<(Vec<Stays>, ContentHasher), DataError> {
    let mut content = ContentHasher::new().table("admissions");
    let mut found = vec![Stays::default(); people.len()];
    let mut list = Vec::new();
    let n_columns = if config.death == Death::InHospital { ADMISSIONS.len() + DEATHS.len() } else { ADMISSIONS.len() };
    for index in (0..table.n_rows()).filter(|&index| !table.is_blank(index)) {
        let Some(person) = person(table, index, people)? else { continue };
        let whose = table.cell(0, index).unwrap_or_default();
        let day = |position: usize| {
            let invalid = || table.invalid(position, index, whose, "a date and time such as 2150-01-31 23:59:00");
            table.cell(position, index).map(|cell| parse_date(cell).map(day_number).ok_or_else(invalid)).transpose()
        };
        let admitted = day(2)?.map_or((i32::MAX, 0), |day| (day, clock(table.cell(2, index))));
        let stay = &mut found[person as usize];
        stay.last_discharge = stay.last_discharge.max(day(3)?);
        if config.death == Death::InHospital {
            let flag = match table.cell(6, index) {
                None | Some("0" | "0.0") => false,
                Some("1" | "1.0") => true,
                Some(_) => return Err(table.invalid(6, index, whose, "1 (died) or 0")),
            };
            let death = day(5)?.filter(|_| flag);
            stay.death = [stay.death, death].into_iter().flatten().min();
        }
        let (number, race) = (table.cell(1, index).unwrap_or_default(), table.cell(4, index).unwrap_or_default());
        list.push(Stay { person, admitted, number, race });
        content.row((0..n_columns).map(|position| table.cell(position, index)));
    }
    list.sort_unstable();
    for stays in list.chunk_by(|a, b| a.person == b.person) {
        let races: Vec<&str> = stays.iter().map(|stay| stay.race).collect();
        found[stays[0].person as usize].race = race::choose(&races, config.race).map(str::to_owned);
    }
    Ok((found, content))
}

/// Time of day of a cell that is known to hold a date and perhaps a time.
fn clock(cell: Option<&str>) -> u32 {
    cell.and_then(|cell| cell.get(11..)).and_then(|time| parse_clock(time.trim_start())).unwrap_or(0)
}

/// Position of the person of row `index`; `None` for people without an image.
fn person(table: &Columns, index: usize, people: &People) -> Result<Option<u32>, DataError> {
    let row = || format!("row {}", Columns::row(index));
    let invalid = || table.invalid(0, index, &row(), "a subject number such as 10000032");
    let subject = table.cell(0, index).and_then(whole_number).ok_or_else(invalid)?;
    Ok(people.get(&subject).copied())
}

/// A number without sign; `7.0`, as other software rewrites whole numbers, is 7.
fn whole_number(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(".0").unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn small_number(text: &str) -> Option<i32> {
    whole_number(text).and_then(|number| i32::try_from(number).ok())
}
