//! The people of the image list, and how rows of other tables are matched to them: by `PTID`, or by `RID` where `PTID`
//! is missing or unknown.
//!
//! `PTID` is `NNN_S_NNNN`: site and RID, the RID padded with zeros to four digits (ADNI4: five). A RID therefore
//! identifies one person, and the table of diagnoses may hold only the RID.

use std::collections::HashMap;

use super::cells::{Cells, NamedTable, present, whole_number};
use crate::DataError;

/// The people, in the order of their first scan.
#[derive(Clone, Debug, Default)]
pub(super) struct Subjects {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    by_rid: HashMap<u64, Vec<usize>>,
}

impl Subjects {
    /// The position of `ptid`, added if it is new. Upper and lower case are the same.
    pub(super) fn add(&mut self, ptid: &str) -> usize {
        let name = ptid.to_ascii_uppercase();
        if let Some(&position) = self.by_name.get(&name) {
            return position;
        }
        let position = self.names.len();
        if let Some(rid) = rid_of(&name) {
            self.by_rid.entry(rid).or_default().push(position);
        }
        self.by_name.insert(name.clone(), position);
        self.names.push(name);
        position
    }

    pub(super) fn n(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, position: usize) -> &str {
        &self.names[position]
    }

    pub(super) fn position(&self, ptid: &str) -> Option<usize> {
        self.by_name.get(&ptid.to_ascii_uppercase()).copied()
    }

    fn with_rid(&self, rid: u64) -> &[usize] {
        self.by_rid.get(&rid).map_or(&[], Vec::as_slice)
    }
}

/// `4` of `003_S_0004`.
fn rid_of(ptid: &str) -> Option<u64> {
    let (_, last) = ptid.rsplit_once('_')?;
    last.bytes().all(|byte| byte.is_ascii_digit()).then(|| last.parse().ok()).flatten()
}

/// The subjects of the rows of a table.
pub(super) struct People {
    ptid: Cells,
    rid: Cells,
    /// The subject of each row; `None` for a person without images or a row without a subject.
    subjects: Vec<Option<usize>>,
    /// Rows without `PTID` and without the number of a person.
    n_nobody: usize,
    /// Rows of a subject whose `PTID` differs from the one in the image list.
    n_by_rid: usize,
}

impl People {
    /// The columns `PTID` and `RID` of `table`, at least one of them.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] if there is neither, [`DataError::InvalidCell`] for a row without `PTID` whose RID
    /// two subjects share.
    pub(super) fn read(table: &NamedTable, subjects: &Subjects) -> Result<Self, DataError> {
        let ptid = table.optional("PTID")?;
        let rid = if table.first_of(&["PTID"]).is_some() { table.optional("RID")? } else { table.required("RID")? };
        let mut people = Self { ptid, rid, subjects: Vec::new(), n_nobody: 0, n_by_rid: 0 };
        people.subjects.reserve(table.n_rows());
        for index in 0..table.n_rows() {
            let subject = people.find(table, subjects, index)?;
            people.subjects.push(subject);
        }
        Ok(people)
    }

    fn find(&mut self, table: &NamedTable, subjects: &Subjects, index: usize) -> Result<Option<usize>, DataError> {
        let ptid = present(self.ptid[index].as_deref());
        if let Some(subject) = ptid.and_then(|ptid| subjects.position(ptid)) {
            return Ok(Some(subject));
        }
        let cell = present(self.rid[index].as_deref());
        let Some(rid) = cell.and_then(whole_number) else {
            self.n_nobody += usize::from(ptid.is_none());
            return Ok(None);
        };
        match (subjects.with_rid(rid), ptid) {
            ([one], ptid) => {
                self.n_by_rid += usize::from(ptid.is_some());
                Ok(Some(*one))
            }
            ([], _) | (_, Some(_)) => Ok(None),
            (_, None) => {
                const EXPECTED: &str = "a number that only one subject of the image list has, or a PTID beside it";
                Err(table.invalid("RID", self.display(index), cell.unwrap_or_default(), EXPECTED, index))
            }
        }
    }

    /// The name of the person of row `index` in messages.
    pub(super) fn display(&self, index: usize) -> String {
        let rid = || present(self.rid[index].as_deref()).map(|rid| format!("RID {rid}"));
        let ptid = present(self.ptid[index].as_deref()).map(str::to_owned);
        ptid.or_else(rid).unwrap_or_else(|| "without PTID and RID".to_owned())
    }

    /// The rows about people with images: row and subject.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        self.subjects.iter().enumerate().filter_map(|(index, subject)| Some((index, (*subject)?)))
    }

    /// Notes for the user about how the rows of `table` were matched to their subjects.
    pub(super) fn notes(&self, table: &NamedTable) -> Vec<String> {
        let file = table.file();
        let nobody = (self.n_nobody > 0)
            .then(|| format!("rows of {file} without PTID and RID, which are not used: {}", self.n_nobody));
        let by_rid = (self.n_by_rid > 0).then(|| {
            format!(
                "rows of {file} whose PTID is not in the image list and whose subject was found by RID: {}",
                self.n_by_rid
            )
        });
        nobody.into_iter().chain(by_rid).collect()
    }
}
