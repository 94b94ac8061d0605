//! The values of one attribute, one per sample, as the source gives them.

/// The raw values of one attribute, one per sample.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeColumn {
    /// Name of the attribute.
    pub name: String,
    /// Value of every sample as the source gives it; `None` where it is missing.
    pub values: Vec<Option<String>>,
    /// Level of every sample, if the rules of the data set code the values (`WHITE - RUSSIAN` is `White`); a
    /// reference is compared with these levels.
    pub coded: Option<Vec<Option<&'static str>>>,
    /// Levels defined by the rules of the data set, whether or not any sample has one: a reference among them is valid
    /// even if no sample has it. Empty if there are no such rules.
    pub known: &'static [&'static str],
}

impl AttributeColumn {
    /// A column whose values are their own levels.
    pub fn new(name: impl Into<String>, values: Vec<Option<String>>) -> Self {
        Self { name: name.into(), values, coded: None, known: &[] }
    }

    /// The same column with the `levels` of the rules of its data set.
    #[must_use]
    pub fn knowing(mut self, levels: &'static [&'static str]) -> Self {
        self.known = levels;
        self
    }

    /// The column at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below the number of values.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            name: self.name.clone(),
            values: rows.iter().map(|&row| self.values[row].clone()).collect(),
            coded: self.coded.as_ref().map(|coded| rows.iter().map(|&row| coded[row]).collect()),
            known: self.known,
        }
    }

    /// Keeps the rows for which `keep` returns `true`.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let mut kept = keep.iter();
        self.values.retain(|_| kept.next().is_some_and(|keep| *keep));
        if let Some(coded) = &mut self.coded {
            let mut kept = keep.iter();
            coded.retain(|_| kept.next().is_some_and(|keep| *keep));
        }
    }
}
