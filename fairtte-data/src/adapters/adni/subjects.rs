//! The people of the image list, and how rows of other tables find them: by `PTID`, or by `RID` where `PTID` is missing.
//!
//! `PTID` is `NNN_S_NNNN`: site and RID, the RID padded with zeros to four digits (ADNI4: five). A RID therefore names
//! one person, and the table of diagnoses may carry only that.

use std::collections::HashMap;

use super::cells::{Cells, NamedTable, present};
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

/// Who the rows of a table are about.
pub(super) struct People {
    ptid: Cells,
    rid: Cells,
}

impl People {
    /// The columns `PTID` and `RID` of `table`, at least one of them.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] if there is neither.
    pub(super) fn read(table: &NamedTable) -> Result<Self, DataError> {
        let ptid = table.optional("PTID")?;
        let rid = if table.first_of(&["PTID"]).is_some() { table.optional("RID")? } else { table.required("RID")? };
        Ok(Self { ptid, rid })
    }

    /// How messages call the person of row `index`.
    pub(super) fn display(&self, index: usize) -> String {
        let rid = || present(self.rid[index].as_deref()).map(|rid| format!("RID {rid}"));
        let ptid = present(self.ptid[index].as_deref()).map(str::to_owned);
        ptid.or_else(rid).unwrap_or_else(|| "without PTID and RID".to_owned())
    }

    /// The subject of row `index`; `None` for a person without images.
    ///
    /// # Errors
    /// [`DataError::InvalidCell`] for a row that names nobody, a RID that is no number, or one that two subjects share.
    pub(super) fn subject(
        &self,
        table: &NamedTable,
        subjects: &Subjects,
        index: usize,
    ) -> Result<Option<usize>, DataError> {
        if let Some(ptid) = present(self.ptid[index].as_deref()) {
            return Ok(subjects.position(ptid));
        }
        let cell = present(self.rid[index].as_deref()).unwrap_or_default();
        let whole = cell.strip_suffix(".0").unwrap_or(cell);
        let invalid = |expected| table.invalid("RID", self.display(index), cell, expected, index);
        let rid = whole.parse().map_err(|_| invalid("the number of a person, or a PTID beside it"))?;
        match subjects.with_rid(rid) {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            [..] => Err(invalid("a number that only one subject of the image list has, or a PTID beside it")),
        }
    }
}
