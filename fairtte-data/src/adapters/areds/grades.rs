//! The fundus tables: from one row per person and visit to what happened to each eye.
//!
//! `AMDSEVRE` and `AMDSEVLE` hold the severity of both eyes: 1 to 9 on the nine-step scale, 10 to 12 late AMD. Anything
//! else (empty, 88, 99, `?`) is not a grade. `VISNO` counts half-years since baseline. The order of rows, and a row
//! that is in both consent groups, change nothing: only the earliest late grade of an eye matters, and whether it has
//! any grade.

use std::collections::{BTreeMap, HashMap};

use super::dbgap::{DbgapRow, DbgapTable};
use super::name::Eye;
use crate::DataError;
use crate::adapters::codes::{present, whole_number};

/// Lowest grade of late AMD.
const LATE: u8 = 10;
/// Highest grade.
const HIGHEST: u8 = 12;

/// The summary of the grades of one eye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EyeGrades {
    /// Whether the eye has a grade in 1 to 12 at any visit.
    pub is_graded: bool,
    /// First visit with late AMD, in half-years; later grades do not undo it.
    pub first_late: Option<u8>,
}

/// Both eyes of every person of the fundus tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grades {
    people: HashMap<String, [EyeGrades; 2]>,
    /// Texts that are not a grade, with their number of cells; empty cells are not included.
    pub unknown_texts: BTreeMap<String, usize>,
    /// Rows left out because ID2 or VISNO is missing.
    pub n_unplaced: usize,
}

impl Grades {
    /// Collects the grades of `tables`, one or more consent groups.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`], and [`DataError::InvalidTable`] for an invalid VISNO.
    pub fn collect(tables: &[DbgapTable]) -> Result<Self, DataError> {
        let mut grades = Self::default();
        for table in tables {
            let (id2, visno) = (table.column("ID2")?, table.column("VISNO")?);
            let eyes = [table.column(column(Eye::Right))?, table.column(column(Eye::Left))?];
            for row in table.rows() {
                let (Some(person), Some(visit)) = (row.cell(id2), present(row.cell(visno))) else {
                    grades.n_unplaced += 1;
                    continue;
                };
                let visit = parse_visit(table, row, person, visit)?;
                grades.add(person, visit, eyes.map(|column| row.cell(column)));
            }
        }
        Ok(grades)
    }

    fn add(&mut self, person: &str, visit: u8, cells: [Option<&str>; 2]) {
        if !self.people.contains_key(person) {
            self.people.insert(person.to_owned(), <[EyeGrades; 2]>::default());
        }
        let eyes = self.people.get_mut(person).expect("just inserted");
        for (eye, cell) in eyes.iter_mut().zip(cells) {
            let Some(cell) = cell else { continue };
            let Some(grade) = whole_number(cell).filter(|grade: &u8| (1..=HIGHEST).contains(grade)) else {
                *self.unknown_texts.entry(cell.to_owned()).or_default() += 1;
                continue;
            };
            eye.is_graded = true;
            if grade >= LATE {
                eye.first_late = Some(eye.first_late.map_or(visit, |first| first.min(visit)));
            }
        }
    }

    /// The eye of `person`; `None` if no fundus table has a row of this person.
    pub fn eye(&self, person: &str, eye: Eye) -> Option<EyeGrades> {
        self.people.get(person).map(|eyes| eyes[usize::from(eye == Eye::Left)])
    }

    /// Number of people.
    pub fn n_people(&self) -> usize {
        self.people.len()
    }
}

fn column(eye: Eye) -> &'static str {
    match eye {
        Eye::Right => "AMDSEVRE",
        Eye::Left => "AMDSEVLE",
    }
}

fn parse_visit(table: &DbgapTable, row: &DbgapRow, person: &str, text: &str) -> Result<u8, DataError> {
    whole_number(text).filter(|visit| *visit < 100).ok_or_else(|| {
        let expected = "expected whole half-years since baseline, 00 to 99";
        DataError::invalid_table(
            table.path(),
            format!("VISNO of subject \"{person}\" is \"{text}\", {expected} (row {})", row.line),
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn table(rows: &str) -> DbgapTable {
        let text = format!("dbGaP SubjID\tID2\tVISNO\tAMDSEVRE\tAMDSEVLE\n{rows}");
        DbgapTable::parse("fundus.txt".as_ref(), text.as_bytes()).unwrap()
    }

    fn eyes(grades: &Grades, person: &str) -> [(bool, Option<u8>); 2] {
        [Eye::Right, Eye::Left].map(|eye| grades.eye(person, eye).map(|e| (e.is_graded, e.first_late)).unwrap())
    }

    #[test]
    fn the_first_late_grade_counts_whatever_the_order_and_whatever_comes_later() {
        let rows = ["1\ta\t06\t9\t5\n", "1\ta\t04\t10\t5\n", "1\ta\t08\t12\t9\n", "1\ta\t00\t5\t\n"];
        let forward = Grades::collect(&[table(&rows.concat())]).unwrap();
        assert_eq!(eyes(&forward, "a"), [(true, Some(4)), (true, None)]);
        let groups = [table(&[rows[3], rows[2]].concat()), table(&[rows[1], rows[0], rows[3]].concat())];
        assert_eq!(Grades::collect(&groups).unwrap(), forward);
    }

    #[test]
    fn what_is_outside_1_to_12_is_no_grade_and_is_counted() {
        let rows = "1\ta\t00\t?\t88\n1\ta\t02\t0\t13\n1\ta\t04\t10.5\t-4\n1\ta\t06\tlate\t\n1\ta\t08\t88\t256\n";
        let grades = Grades::collect(&[table(rows)]).unwrap();
        assert_eq!(eyes(&grades, "a"), [(false, None), (false, None)]);
        assert_eq!(grades.unknown_texts.values().sum::<usize>(), 9);
        assert_eq!(grades.unknown_texts["88"], 2);
    }

    #[test]
    fn numbers_that_other_software_rewrote_are_the_same_numbers() {
        let grades = Grades::collect(&[table("1\ta\t4.0\t010\t11.00\n")]).unwrap();
        assert_eq!(eyes(&grades, "a"), [(true, Some(4)), (true, Some(4))]);
    }

    #[test]
    fn a_visit_that_is_no_number_names_file_row_and_subject() {
        for visit in ["two", "-2", "4.5", "100", "F2"] {
            let error = Grades::collect(&[table(&format!("1\ta\t00\t1\t1\n1\ta\t{visit}\t1\t1\n"))]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "fundus.txt cannot be read as a table: VISNO of subject \"a\" is \"{visit}\", \
                     expected whole half-years since baseline, 00 to 99 (row 3)"
                )
            );
        }
    }

    #[test]
    fn rows_without_person_or_visit_are_counted_and_a_person_without_rows_is_unknown() {
        let grades =
            Grades::collect(&[table("1\t\t00\t11\t1\n1\ta\t\t11\t1\n1\ta\tNA\t11\n1\tb\t00\t1\t1\n")]).unwrap();
        assert_eq!((grades.n_unplaced, grades.n_people()), (3, 1));
        assert_eq!(grades.eye("a", Eye::Left), None);
    }

    #[test]
    fn a_table_without_grades_of_one_eye_is_refused() {
        let text = "dbGaP SubjID\tID2\tVISNO\tAMDSEVRE\n";
        let error = Grades::collect(&[DbgapTable::parse("f.txt".as_ref(), text.as_bytes()).unwrap()]).unwrap_err();
        assert_eq!(error.to_string(), "column \"AMDSEVLE\" is not in f.txt, nearest is \"AMDSEVRE\"");
    }
}
