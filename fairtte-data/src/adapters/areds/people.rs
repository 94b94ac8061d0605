//! The enrolment tables: sex, race and age of every person; and the table that gives image directories their `ID2`.
//!
//! A person may be in both consent groups. An empty cell in one is filled from the other; if the two differ, the value
//! counts as missing and is counted, because neither can be preferred (the order of rows must not matter).

use std::collections::HashMap;
use std::path::Path;

use super::dbgap::{DbgapRow, DbgapTable, unpacked};
use crate::DataError;
use crate::adapters::codes::{parse_sex, present, whole_number};

/// The levels of race by their code, 1 to 5; `White` is the one the paper compares with the others.
pub(super) const RACES: [&str; 5] = ["White", "Black", "Hispanic", "Asian", "Other"];

/// The enrolment data of one person.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Person {
    sex: Known<&'static str>,
    race: Known<&'static str>,
    age: Known<f64>,
}

/// A value that may come from several rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Known<T> {
    #[default]
    Not,
    Value(T),
    Contradicted,
}

impl<T: Copy + PartialEq> Known<T> {
    fn add(&mut self, value: Option<T>) {
        *self = match (*self, value) {
            (known, None) => known,
            (Self::Not, Some(value)) => Self::Value(value),
            (Self::Value(known), Some(value)) if known == value => Self::Value(value),
            _ => Self::Contradicted,
        };
    }

    fn value(self) -> Option<T> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }
}

impl Person {
    /// `F` or `M`.
    pub fn sex(&self) -> Option<&'static str> {
        self.sex.value()
    }

    /// `White`, `Black`, `Hispanic`, `Asian` or `Other`.
    pub fn race(&self) -> Option<&'static str> {
        self.race.value()
    }

    /// Age at a visit, in years: age at enrolment plus half a year per count of `visit`.
    pub fn age_at(&self, visit: u8) -> Option<f64> {
        let age = self.age.value()? + f64::from(visit) / 2.0;
        // Six decimals: further digits are rounding errors of the sum, which would be printed.
        Some((age * 1e6).round() / 1e6)
    }

    fn n_contradictions(&self) -> usize {
        let contradicted =
            [self.sex == Known::Contradicted, self.race == Known::Contradicted, self.age == Known::Contradicted];
        contradicted.into_iter().filter(|is| *is).count()
    }
}

/// All people in the enrolment tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct People {
    by_id2: HashMap<String, Person>,
    /// Cells of SEX or RACE without a known code.
    pub n_unknown_codes: usize,
    /// Cells of ENROLLAGE with a word or code for a missing age.
    pub n_coded_ages: usize,
    /// Rows left out because ID2 is empty.
    pub n_unplaced: usize,
}

impl People {
    /// Collects the rows of `tables`, one or more consent groups.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`], and [`DataError::InvalidTable`] for an age that is not a number from 0 to 130.
    pub fn collect(tables: &[DbgapTable]) -> Result<Self, DataError> {
        let mut people = Self::default();
        for table in tables {
            let column = |name| table.column(name);
            let (id2, sex, race, age) = (column("ID2")?, column("SEX")?, column("RACE")?, column("ENROLLAGE")?);
            for row in table.rows() {
                let Some(id) = row.cell(id2) else {
                    people.n_unplaced += 1;
                    continue;
                };
                let (cell, age) = (row.cell(age), present(row.cell(age)));
                people.n_coded_ages += usize::from(cell.is_some() && age.is_none());
                let age = age.map(|text| parse_age(table, row, id, text)).transpose()?;
                let sex = row.cell(sex).map(parse_sex);
                let race = row.cell(race).map(parse_race);
                people.n_unknown_codes += usize::from(sex == Some(None)) + usize::from(race == Some(None));
                let person = people.by_id2.entry(id.to_owned()).or_default();
                person.sex.add(sex.flatten());
                person.race.add(race.flatten());
                person.age.add(age);
            }
        }
        Ok(people)
    }

    /// The person with this `ID2`; all values are missing for a person who is not in the tables.
    pub fn get(&self, id2: &str) -> Person {
        self.by_id2.get(id2).copied().unwrap_or_default()
    }

    /// The number of values that differ between rows of one person.
    pub fn n_contradictions(&self) -> usize {
        self.by_id2.values().map(Person::n_contradictions).sum()
    }
}

fn parse_race(text: &str) -> Option<&'static str> {
    RACES.get(whole_number::<usize>(text)?.checked_sub(1)?).copied()
}

fn parse_age(table: &DbgapTable, row: &DbgapRow, id: &str, text: &str) -> Result<f64, DataError> {
    text.parse::<f64>().ok().filter(|age| (0.0..=130.0).contains(age)).ok_or_else(|| {
        let detail =
            format!("ENROLLAGE of subject \"{id}\" is \"{text}\", expected years from 0 to 130 (row {})", row.line);
        DataError::invalid_table(table.path(), detail)
    })
}

/// The `ID2` of image directories, from a text table of two columns separated by blanks: directory, then `ID2`.
///
/// Where the header calls them `ID2` and `ImageDir`, the names determine the columns; other names, or no header, keep
/// this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryMap {
    id2: HashMap<String, String>,
    /// Rows without an `ID2` for the directory.
    pub n_without_id2: usize,
}

impl DirectoryMap {
    /// Reads the table at `path`, plain or gzipped.
    ///
    /// # Errors
    /// [`DataError::Read`]; [`DataError::InvalidTable`] if a row has more than two words, or a directory belongs to two
    /// people.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = std::fs::read(path).and_then(unpacked).map_err(|source| DataError::read(path, source))?;
        Self::parse(path, &String::from_utf8_lossy(&bytes))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, DataError> {
        let invalid = |detail: String| DataError::invalid_table(path, detail);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let mut lines = lines.peekable();
        let header = lines.next_if(|(_, line)| is_header(line)).map(|(_, line)| line).unwrap_or_default();
        let position = |name: &str| header.split_whitespace().position(|word| word.eq_ignore_ascii_case(name));
        let is_reversed = (position("ID2"), position("ImageDir")) == (Some(0), Some(1));
        let mut map = Self::default();
        for (row, line) in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (directory, id2) = match words.as_slice() {
                [id2, directory] if is_reversed => (*directory, present(Some(id2))),
                [directory, id2] => (*directory, present(Some(id2))),
                [directory] => (*directory, None),
                _ => {
                    let n = words.len();
                    return Err(invalid(format!("row {row} has {n} words, expected an image directory and its ID2")));
                }
            };
            let Some(id2) = id2 else {
                map.n_without_id2 += 1;
                continue;
            };
            let before = map.id2.insert(directory.to_owned(), id2.to_owned());
            if let Some(before) = before.filter(|before| before != id2) {
                let detail =
                    format!("directory \"{directory}\" belongs to ID2 \"{before}\" and to \"{id2}\" (row {row})");
                return Err(invalid(format!("{detail}, expected one")));
            }
        }
        Ok(map)
    }

    /// Whether the table has no directory or does not exist.
    pub fn is_empty(&self) -> bool {
        self.id2.is_empty()
    }

    /// Every directory with its `ID2`, in arbitrary order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.id2.iter().map(|(directory, id2)| (directory.as_str(), id2.as_str()))
    }

    /// The `ID2` of the directory `identity`; the identity itself if it is not in the table, as some are `ID2` already.
    pub fn id2<'a>(&'a self, identity: &'a str) -> &'a str {
        self.id2.get(identity).map_or(identity, String::as_str)
    }
}

/// Whether the first line of a directory map names columns: directories are numbers, column names are not.
fn is_header(line: &str) -> bool {
    !line.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn table(rows: &str) -> DbgapTable {
        let text = format!("dbGaP_Subject_ID\tENROLLAGE\tRACE\tSEX\tID2\n{rows}");
        DbgapTable::parse("enrol.txt".as_ref(), text.as_bytes()).unwrap()
    }

    #[test]
    fn codes_become_levels_and_the_age_grows_with_the_visits() {
        let people = People::collect(&[table("1\t69.9\t2\tF\ta\n2\t70\t1.0\tm\tb\n3\t\t\t\tc\n")]).unwrap();
        let person = people.get("a");
        assert_eq!((person.sex(), person.race()), (Some("F"), Some("Black")));
        assert_eq!((person.age_at(0), person.age_at(5)), (Some(69.9), Some(72.4)));
        assert_eq!((people.get("b").sex(), people.get("b").race()), (Some("M"), Some("White")));
        assert_eq!((people.get("c"), people.get("nobody")), (Person::default(), Person::default()));
        let all: Vec<_> = ["1", "2", "3", "4", "5", "0", "6", "White"].map(parse_race).into_iter().flatten().collect();
        assert_eq!(all, RACES);
    }

    #[test]
    fn an_age_is_printed_without_what_adding_leaves_behind() {
        let people = People::collect(&[table("1\t58.3\t\t\ta\n")]).unwrap();
        for visit in 0..=26 {
            let text = people.get("a").age_at(visit).unwrap().to_string();
            assert!(text.len() <= 4, "{text}");
        }
    }

    #[test]
    fn two_consent_groups_fill_each_other_and_contradictions_are_missing_and_counted() {
        let groups = [table("1\t60\t\tF\ta\n1\t60.0\t3\tF\tb\n"), table("1\t\t1\tF\ta\n1\t60\t3\tM\tb\n")];
        let people = People::collect(&groups).unwrap();
        let a = people.get("a");
        assert_eq!((a.sex(), a.race(), a.age_at(0)), (Some("F"), Some("White"), Some(60.0)));
        assert_eq!((people.get("b").sex(), people.get("b").race()), (None, Some("Hispanic")));
        assert_eq!(people.n_contradictions(), 1);
        let [first, second] = groups;
        assert_eq!(People::collect(&[second, first]).unwrap(), people);
        let thrice = People::collect(&[table("1\t\t\tF\ta\n1\t\t\tM\ta\n1\t\t\tF\ta\n")]).unwrap();
        assert_eq!(thrice.get("a").sex(), None, "a majority decides nothing");
    }

    #[test]
    fn unknown_codes_are_missing_and_counted_but_an_age_that_is_no_number_is_refused() {
        let coded =
            People::collect(&[table("1\t.\t1\tF\ta\n1\t?\t\t\tb\n1\tNA\t\t\tc\n1\t-4\t\t\td\n1\t\t\t\te\n")]).unwrap();
        assert!(["a", "b", "c", "d", "e"].iter().all(|id| coded.get(id).age_at(0).is_none()));
        assert_eq!((coded.n_coded_ages, coded.get("a").sex()), (4, Some("F")));
        let people = People::collect(&[table("1\t60\t9\tX\ta\n1\t60\t?\tF\t\n")]).unwrap();
        assert_eq!((people.get("a").sex(), people.get("a").race()), (None, None));
        assert_eq!((people.n_unknown_codes, people.n_unplaced), (2, 1));
        for age in ["sixty", "-2", "131", "inf"] {
            let message = People::collect(&[table(&format!("1\t{age}\t1\tF\ta\n"))]).unwrap_err().to_string();
            assert_eq!(
                message,
                format!(
                    "enrol.txt cannot be read as a table: ENROLLAGE of subject \"a\" is \"{age}\", \
                     expected years from 0 to 130 (row 2)"
                )
            );
        }
    }

    fn map(text: &str) -> Result<DirectoryMap, DataError> {
        DirectoryMap::parse(Path::new("map.txt"), text)
    }

    #[test]
    fn directories_get_their_id2_and_others_stay_as_they_are() {
        for text in [
            "ImageDir\tID2\r\n59011\t0007\r\n\r\n",
            "\u{feff}# map\nid2   imagedir\n0007 59011\n0007 59011",
            "RC_ID person\n59011 0007\n",
            "the directory\tand its person\n59011\t0007\n",
            "59011 0007\n59011\t0007",
        ] {
            let map = map(text).unwrap();
            assert_eq!((map.id2("59011"), map.id2("7"), map.id2("ImageDir")), ("0007", "7", "ImageDir"), "{text}");
            assert_eq!((map.entries().count(), map.n_without_id2), (1, 0), "{text}");
        }
        assert_eq!(map("ImageDir ID2\n").unwrap(), DirectoryMap::default());
        assert_eq!(map("").unwrap(), DirectoryMap::default());
    }

    #[test]
    fn a_directory_without_id2_is_counted_and_stays_as_it_is() {
        let map = map("ImageDir\tID2\n59011\t\n59012\t0008\n59013\n59014\tNA\n").unwrap();
        assert_eq!((map.n_without_id2, map.entries().count()), (3, 1));
        assert_eq!((map.id2("59011"), map.id2("59012"), map.id2("59014")), ("59011", "0008", "59014"));
    }

    #[test]
    fn a_damaged_map_names_the_row() {
        for (text, expected) in [
            ("ImageDir ID2\n1 2 3\n", "row 2 has 3 words, expected an image directory and its ID2"),
            ("59011 9001 x\n", "row 1 has 3 words, expected an image directory and its ID2"),
            ("ImageDir ID2\n1 a\n1 b\n", "directory \"1\" belongs to ID2 \"a\" and to \"b\" (row 3), expected one"),
        ] {
            let message = map(text).unwrap_err().to_string();
            assert_eq!(message, format!("map.txt cannot be read as a table: {expected}"));
        }
    }
}
