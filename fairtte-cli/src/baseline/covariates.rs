//! From the raw texts of a table to covariates.

use std::collections::BTreeSet;

use fairtte_classical::{ClassicalError, Column, CovariateValues, Covariates};
use fairtte_data::cohort::AttributeColumn;
use fairtte_data::table::is_missing;
use fairtte_metrics::Groups;

/// A column of numbers with more distinct values than this is a number; otherwise its values are levels.
const MOST_LEVELS: usize = 10;
/// Level of samples without a value.
const MISSING: &str = "missing";

/// One covariate as a table has it; `None` where it is missing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CovariateColumn {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<String>>,
}

impl CovariateColumn {
    /// The same column without the values `missing`, as tables are read ([`is_missing`]).
    pub(crate) fn without(mut self, missing: &[String]) -> Self {
        for value in &mut self.values {
            value.take_if(|value| is_missing(missing, value));
        }
        self
    }

    /// The groups of `rows`.
    pub(crate) fn of_groups(groups: &Groups, rows: &[usize]) -> Self {
        let level = |row: &usize| groups.membership()[*row].map(|group| groups.levels()[group.index()].clone());
        Self { name: groups.attribute().to_owned(), values: rows.iter().map(level).collect() }
    }

    /// The raw values of `rows`; where the column has the number of a group, the name of the group.
    pub(crate) fn of_rows(column: &AttributeColumn, groups: &[Groups], rows: &[usize]) -> Self {
        let groups =
            groups.iter().find(|groups| groups.attribute() == column.name && groups.n() == column.values.len());
        match groups {
            Some(groups) if !is_numeric(column.values.iter().flatten().map(String::as_str)) => {
                Self::of_groups(groups, rows)
            }
            _ => {
                Self { name: column.name.clone(), values: rows.iter().map(|row| column.values[*row].clone()).collect() }
            }
        }
    }
}

/// Whether a column is used as a number.
fn is_numeric<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    let mut distinct = BTreeSet::new();
    for value in values {
        if !value.parse::<f64>().is_ok_and(f64::is_finite) {
            return false;
        }
        distinct.insert(value);
    }
    distinct.len() > MOST_LEVELS
}

/// The covariates of the samples of `columns`, then of those of `more`. A missing number is replaced by the mean of `columns`,
/// and a further covariate says where; a missing level is a level of its own.
pub(super) fn covariates(
    columns: &[CovariateColumn],
    more: Option<&[CovariateColumn]>,
) -> Result<Covariates, ClassicalError> {
    let mut found = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let further = more.and_then(|more| more.get(place)).map_or(&[][..], |column| &column.values);
        let values: Vec<Option<&str>> = column.values.iter().chain(further).map(Option::as_deref).collect();
        if !is_numeric(values.iter().copied().flatten()) {
            let levels = values.iter().map(|value| value.unwrap_or(MISSING).to_owned()).collect();
            found.push((column.name.clone(), CovariateValues::Levels(levels)));
            continue;
        }
        let numbers: Vec<Option<f64>> = values.iter().map(|value| value.and_then(|text| text.parse().ok())).collect();
        let known: Vec<f64> = numbers[..column.values.len()].iter().copied().flatten().collect();
        if known.is_empty() {
            let (name, n) = (Some(column.name.clone()), column.values.len());
            return Err(ClassicalError::Constant { column: Column { place, name }, n });
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let filled = numbers.iter().map(|number| number.unwrap_or(mean)).collect();
        found.push((column.name.clone(), CovariateValues::Numbers(filled)));
        if numbers.iter().any(Option::is_none) {
            let is_missing = numbers.iter().map(|number| f64::from(u8::from(number.is_none()))).collect();
            found.push((format!("{} {MISSING}", column.name), CovariateValues::Numbers(is_missing)));
        }
    }
    Covariates::new(found)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::GroupId;

    use super::*;

    fn column(name: &str, values: &[&str]) -> CovariateColumn {
        let values = values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect();
        CovariateColumn { name: name.to_owned(), values }
    }

    #[test]
    fn many_numbers_are_numbers_and_few_are_levels() {
        let ages: Vec<String> = (0..12).map(|k| (40 + k).to_string()).collect();
        let mut ages: Vec<&str> = ages.iter().map(String::as_str).collect();
        ages[1] = "";
        let stages = ["1", "2", "", "1", "2", "3", "1", "1", "1", "2", "2", "2"];
        let found = covariates(&[column("age", &ages), column("stage", &stages)], None).unwrap();
        let mean = (40..52).filter(|age| *age != 41).map(f64::from).sum::<f64>() / 11.0;
        let mut expected: Vec<f64> = (40..52).map(f64::from).collect();
        expected[1] = mean;
        let is_missing: Vec<f64> = (0..12).map(|k| f64::from(u8::from(k == 1))).collect();
        let levels = stages.map(|stage| if stage.is_empty() { "missing" } else { stage }.to_owned()).to_vec();
        let by_hand = Covariates::new(vec![
            ("age".to_owned(), CovariateValues::Numbers(expected)),
            ("age missing".to_owned(), CovariateValues::Numbers(is_missing)),
            ("stage".to_owned(), CovariateValues::Levels(levels)),
        ]);
        assert_eq!(found, by_hand.unwrap());
    }

    #[test]
    fn values_that_stand_for_a_missing_one_are_none() {
        let found =
            column("race", &["White", "UNKNOWN", "", "other"]).without(&["unknown".to_owned(), "n/a".to_owned()]);
        assert_eq!(found, column("race", &["White", "", "", "other"]));
    }

    #[test]
    fn the_mean_is_that_of_the_samples_of_the_fit_and_groups_have_their_names() {
        let ages: Vec<String> = (0..11).map(|k| k.to_string()).collect();
        let train = column("age", &ages.iter().map(String::as_str).collect::<Vec<_>>());
        let found = covariates(&[train], Some(&[column("age", &["1000", ""])])).unwrap().select(&[11, 12]);
        let numbers = |name: &str, values: Vec<f64>| (name.to_owned(), CovariateValues::Numbers(values));
        let expected = vec![numbers("age", vec![1000.0, 5.0]), numbers("age missing", vec![0.0, 1.0])];
        assert_eq!(found, Covariates::new(expected).unwrap());
        let groups = Groups::new("sex", vec!["F".into(), "M".into()], vec![Some(GroupId(1)), None, Some(GroupId(0))]);
        let raw = AttributeColumn::new("sex", ["1", "", "0"].map(|text| Some(text.to_owned())).to_vec());
        let named = CovariateColumn::of_rows(&raw, &[groups.unwrap()], &[2, 0, 1]);
        assert_eq!(named, column("sex", &["F", "M", ""]));
    }
}
