//! From the raw texts of a table to covariates.

use std::collections::BTreeSet;

use fairtte_classical::{ClassicalError, CovariateValues, Covariates};
use fairtte_data::cohort::AttributeColumn;
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
    /// The groups of `rows`.
    pub(crate) fn of_groups(groups: &Groups, rows: &[usize]) -> Self {
        let level = |row: &usize| groups.membership()[*row].map(|group| groups.levels()[group.index()].clone());
        Self { name: groups.attribute().to_owned(), values: rows.iter().map(level).collect() }
    }

    /// The raw values of `rows`; where the values of the column are levels, the names of their groups.
    pub(crate) fn of_rows(column: &AttributeColumn, groups: &[Groups], rows: &[usize]) -> Self {
        let kind = CovariateKind::of(column.values.iter().flatten().map(String::as_str));
        Self::of_kind(kind, column, groups, rows)
    }

    /// The same, where other samples have decided what the column is: those of the fit.
    pub(crate) fn of_kind(kind: CovariateKind, column: &AttributeColumn, groups: &[Groups], rows: &[usize]) -> Self {
        let groups =
            groups.iter().find(|groups| groups.attribute() == column.name && groups.n() == column.values.len());
        match groups {
            Some(groups) if kind == CovariateKind::Levels => Self::of_groups(groups, rows),
            _ => {
                Self { name: column.name.clone(), values: rows.iter().map(|row| column.values[*row].clone()).collect() }
            }
        }
    }
}

/// What a column is used as. The samples of the fit decide it for all others: of few samples a number has few values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CovariateKind {
    /// Numbers with more than 10 distinct values.
    Numbers,
    /// Anything else.
    Levels,
}

impl CovariateKind {
    /// What these values are used as.
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut distinct = BTreeSet::new();
        for value in values {
            if number(value).is_none() {
                return Self::Levels;
            }
            distinct.insert(value);
        }
        if distinct.len() > MOST_LEVELS { Self::Numbers } else { Self::Levels }
    }

    /// What the values of `rows` are used as.
    pub(crate) fn of_rows(column: &AttributeColumn, rows: &[usize]) -> Self {
        Self::of(rows.iter().filter_map(|row| column.values[*row].as_deref()))
    }
}

/// The finite number that a text is.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The covariates of the samples of `columns`, those of the fit, then of those of `more`. `columns` decide what is a number. A missing
/// number, or a text in `more` that is none, is replaced by the mean of `columns`, and a further covariate says where; a missing level is
/// a level of its own.
pub(super) fn covariates(
    columns: &[CovariateColumn],
    more: Option<&[CovariateColumn]>,
) -> Result<Covariates, ClassicalError> {
    let mut found = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let further = more.and_then(|more| more.get(place)).map_or(&[][..], |column| &column.values);
        let values: Vec<Option<&str>> = column.values.iter().chain(further).map(Option::as_deref).collect();
        let of_fit = &values[..column.values.len()];
        if CovariateKind::of(of_fit.iter().copied().flatten()) == CovariateKind::Levels {
            let levels = values.iter().map(|value| value.unwrap_or(MISSING).to_owned()).collect();
            found.push((column.name.clone(), CovariateValues::Levels(levels)));
            continue;
        }
        let numbers: Vec<Option<f64>> = values.iter().map(|value| value.and_then(number)).collect();
        // There are some, because their values make the column one of numbers.
        let known: Vec<f64> = numbers[..column.values.len()].iter().copied().flatten().collect();
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
    fn the_samples_of_the_fit_decide_what_is_a_number() {
        let many: Vec<String> = (0..12).map(|k| k.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        // Numbers of the fit stay numbers beside a text, which counts as missing.
        let fit = [column("age", &many)];
        let found = covariates(&fit, Some(&[column("age", &["3", "unknown"])])).unwrap().select(&[12, 13]);
        let numbers = |name: &str, values: Vec<f64>| (name.to_owned(), CovariateValues::Numbers(values));
        let expected = vec![numbers("age", vec![3.0, 5.5]), numbers("age missing", vec![0.0, 1.0])];
        assert_eq!(found, Covariates::new(expected).unwrap());
        // Levels of the fit stay levels, however many numbers others have.
        let found = covariates(&[column("stage", &["1", "2", "1"])], Some(&[column("stage", &many)])).unwrap();
        let levels: Vec<String> = ["1", "2", "1"].iter().chain(&many).map(|level| (*level).to_owned()).collect();
        let expected = Covariates::new(vec![("stage".to_owned(), CovariateValues::Levels(levels))]);
        assert_eq!(found, expected.unwrap());
        // A cohort with few values of a number has groups of it, which its fit did not read.
        let raw = AttributeColumn::new("age", ["50", "70"].map(|text| Some(text.to_owned())).to_vec());
        let groups = Groups::new("age", vec!["<= 60".into(), "> 60".into()], vec![Some(GroupId(0)), Some(GroupId(1))]);
        let groups = [groups.unwrap()];
        let of_kind = |kind| CovariateColumn::of_kind(kind, &raw, &groups, &[0, 1]);
        assert_eq!(of_kind(CovariateKind::Numbers), column("age", &["50", "70"]));
        assert_eq!(of_kind(CovariateKind::Levels), column("age", &["<= 60", "> 60"]));
        assert_eq!(CovariateKind::of_rows(&raw, &[0, 1]), CovariateKind::Levels);
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
