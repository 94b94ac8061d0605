//! The image collection list of the archive: one row per image, in a file whose name the user chose.
//!
//! Read by name: `Image Data ID` (`I118671`, in older exports `118671`), `Subject` (PTID), `Modality`, `Acq Date`, and,
//! if present, `Description`, `Age` and `Sex`. `Group` is the diagnosis at enrolment, not at the scan, and `Visit` is
//! coded differently from export to export: neither is used. No scan is left out by its description: the only test for
//! "T1" is the modality `MRI`. Several lists (ADNI1, ADNI2, ..) are read one after the other. If several rows are about
//! one image, the first is used.

use std::collections::HashMap;

use jiff::civil::Date;

use super::cells::{EXPECTED_DATE, NamedTable, parse_date, parse_sex, present, whole_number};
use super::subjects::Subjects;
use super::visits::{EXPECTED_AGE, parse_age};
use crate::DataError;
use crate::error::Place;

pub(super) const ID: &str = "Image Data ID";
pub(super) const SUBJECT: &str = "Subject";
pub(super) const MODALITY: &str = "Modality";
pub(super) const DATE: &str = "Acq Date";

const EXPECTED_ID: &str = "a number, with or without I before it";

/// One row of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedImage {
    /// File, and row as a spreadsheet counts it.
    pub place: Place,
    /// `I118671`; in a row of another modality the unchanged cell if it is not such a number. `None` if it is empty.
    pub name: Option<String>,
    /// The number of the image; `None` if the cell is empty or the row is of another modality.
    pub id: Option<u64>,
    /// Position among the subjects.
    pub subject: Option<usize>,
    /// Day of acquisition.
    pub date: Option<Date>,
    /// The cell of the modality.
    pub modality: Option<String>,
    /// 0 for `Scaled`, 1 for `Scaled_2`, 2 for everything else.
    pub preference: u8,
    /// Age in years as the cell gives it.
    pub age: Option<String>,
    /// `F` or `M`.
    pub sex: Option<&'static str>,
}

impl ListedImage {
    /// Magnetic resonance, and neither functional nor diffusion, which the archive lists under other names.
    pub(super) fn is_mri(&self) -> bool {
        self.modality
            .as_deref()
            .is_some_and(|modality| ["MRI", "MR"].into_iter().any(|known| known.eq_ignore_ascii_case(modality)))
    }
}

/// Every row of every list, and the people in them.
///
/// # Errors
/// [`DataError::MissingColumn`]; [`DataError::InvalidCell`] for an invalid identity, date or age of a
/// magnetic resonance image.
pub(super) fn read_image_lists(lists: &[NamedTable]) -> Result<(Vec<ListedImage>, Subjects), DataError> {
    let (mut images, mut subjects) = (Vec::new(), Subjects::default());
    for list in lists {
        read_image_list(list, &mut images, &mut subjects)?;
    }
    Ok((images, subjects))
}

fn read_image_list(
    table: &NamedTable,
    images: &mut Vec<ListedImage>,
    subjects: &mut Subjects,
) -> Result<(), DataError> {
    let (ids, people) = (table.required(ID)?, table.required(SUBJECT)?);
    let (modalities, dates) = (table.required(MODALITY)?, table.required(DATE)?);
    let (descriptions, ages) = (table.optional("Description")?, table.optional("Age")?);
    let sexes = table.optional("Sex")?;
    images.reserve(table.n_rows());
    for index in 0..table.n_rows() {
        let cell = present(ids[index].as_deref());
        let id = cell.and_then(parse_id);
        let mut image = ListedImage {
            place: table.place(index),
            name: id.map(|id| format!("I{id}")).or(cell.map(str::to_owned)),
            id: None,
            subject: present(people[index].as_deref()).map(|ptid| subjects.add(ptid)),
            date: None,
            modality: modalities[index].clone(),
            preference: preference(descriptions[index].as_deref().unwrap_or_default()),
            age: None,
            sex: sexes[index].as_deref().and_then(parse_sex),
        };
        // Rows of other modalities are not checked.
        if image.is_mri() {
            let who = || image.name.clone().unwrap_or_else(|| format!("row {}", image.place.row));
            let invalid = |name, cell, expected| table.invalid(name, who(), cell, expected, index);
            if let (Some(cell), None) = (cell, id) {
                return Err(invalid(ID, cell, EXPECTED_ID));
            }
            let date = present(dates[index].as_deref());
            let date = date.map(|cell| parse_date(cell).ok_or_else(|| invalid(DATE, cell, EXPECTED_DATE)));
            let age = present(ages[index].as_deref());
            let age = age
                .map(|cell| parse_age(cell).map(|_| cell.to_owned()).ok_or_else(|| invalid("Age", cell, EXPECTED_AGE)));
            (image.id, image.date, image.age) = (id, date.transpose()?, age.transpose()?);
        }
        images.push(image);
    }
    Ok(())
}

/// The number of rows that disagree about subject or day with the first row of their image, which is the one used.
pub(super) fn n_contradictions(images: &[ListedImage]) -> usize {
    let mut first_rows: HashMap<u64, (usize, Date)> = HashMap::with_capacity(images.len());
    let contradicts = |image: &&ListedImage| {
        let (Some(id), Some(subject), Some(date)) = (image.id, image.subject, image.date) else { return false };
        *first_rows.entry(id).or_insert((subject, date)) != (subject, date)
    };
    images.iter().filter(contradicts).count()
}

/// `118671` of `I118671` or `118671`.
fn parse_id(cell: &str) -> Option<u64> {
    let digits = cell.strip_prefix(['I', 'i']).unwrap_or(cell);
    whole_number(digits)
}

/// The rank of a description by the last processing step that it names.
fn preference(description: &str) -> u8 {
    let description = description.trim().to_ascii_lowercase();
    if description.ends_with("scaled_2") {
        1
    } else if description.ends_with("scaled") {
        0
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_same_with_and_without_the_letter() {
        assert_eq!(["I900001", "900001", "i900001", "900001.0"].map(parse_id), [Some(900_001); 4]);
        assert!(["", "I", "II9", "9.5", "-9", "+9", "I 9", "D9"].into_iter().all(|cell| parse_id(cell).is_none()));
    }

    #[test]
    fn the_last_step_of_processing_decides_the_preference() {
        assert_eq!(preference("MPR; GradWarp; B1 Correction; N3; Scaled"), 0);
        assert_eq!(preference("MPR; GradWarp; B1 Correction; N3; Scaled_2"), 1);
        assert_eq!(preference("MPR__GradWarp__N3__Scaled "), 0);
        assert_eq!((preference("MPRAGE GRAPPA2"), preference(""), preference("Scaled; N3")), (2, 2, 2));
    }
}
