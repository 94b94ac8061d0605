//! The numbers of several models as one flat table: that of a single model with the columns `model` and `minus`. A row with
//! `minus` is a difference: the model's value minus that of the model in `minus`.

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text};
use fairtte_metrics::evaluation::{AttributeDifferences, Difference, ModelPair, ModelReports};

use super::super::flat::{FlatRow, columns, of_difference, rows};

/// The text of `evaluation.csv` of several models; an absent number is an empty cell.
///
/// # Errors
/// [`DataError`] if it cannot be made.
pub(crate) fn models_csv(reports: &ModelReports) -> Result<String, DataError> {
    let (mut model, mut minus, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |name, other, rows: Vec<FlatRow>| {
        for row in rows {
            model.push(Some(name));
            minus.push(other);
            all.push(row);
        }
    };
    for (name, report) in &reports.models {
        add(name.as_str(), None, rows(report));
    }
    for pair in &reports.pairs {
        add(pair.first.as_str(), Some(pair.second.as_str()), differences(pair));
    }
    let own = [("model", model), ("minus", minus)];
    let own = own.into_iter().map(|(name, cells)| (name.to_owned(), ColumnValues::Borrowed(cells)));
    csv_text(own.chain(columns(&all)).collect())
}

/// The kinds are those of the numbers that are subtracted.
pub(in super::super) fn differences(pair: &ModelPair) -> Vec<FlatRow> {
    let row = |attribute: &str, kind, level: &str, of: &Difference| {
        of_difference(&pair.metric, attribute, kind, level.to_owned(), of)
    };
    let of_attribute = |of: &AttributeDifferences| {
        let groups = of.groups.iter().map(|(level, difference)| row(&of.attribute, "group", level, difference));
        let compared = [
            ("gap", &of.gap),
            ("worst", &of.worst),
            ("gap-to-overall", &of.gap_to_overall),
            ("ratio", &of.ratio),
            ("ratio-to-overall", &of.ratio_to_overall),
            ("equity-scaling", &of.equity_scaling),
            ("equity-scaling-fair-seg", &of.equity_scaling_fair_seg),
        ];
        let compared = compared.map(|(kind, difference)| row(&of.attribute, kind, "", difference));
        groups.chain(compared).collect::<Vec<_>>()
    };
    std::iter::once(row("", "all", "", &pair.overall)).chain(pair.attributes.iter().flat_map(of_attribute)).collect()
}
