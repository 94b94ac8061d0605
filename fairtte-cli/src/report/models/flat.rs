//! The numbers of several models as one flat table: that of a single model with the columns `model` and `minus`. A row with
//! `minus` is a difference: the model's value minus that of the model in `minus`.

use fairtte_data::table::ColumnValues;
use fairtte_metrics::evaluation::{AttributeDifferences, ModelPair, ModelReports};

use super::super::flat::{FlatRow, columns, of_difference, rows};

/// The columns of `evaluation.csv`.
pub(crate) fn models_rows(reports: &ModelReports) -> Vec<(String, ColumnValues<'static>)> {
    let of_model = reports.models.iter().flat_map(|(name, report)| rows(report).into_iter().map(move |row| (name, "", row)));
    let of_pair = reports.pairs.iter().flat_map(|pair| {
        differences(pair).into_iter().map(move |row| (&pair.first, pair.second.as_str(), row))
    });
    let (mut models, mut minus, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (model, other, row) in of_model.chain(of_pair) {
        models.push(Some(model.clone()));
        minus.push(Some(other.to_owned()).filter(|name| !name.is_empty()));
        all.push(row);
    }
    let own = [("model", models), ("minus", minus)].map(|(name, cells)| (name.to_owned(), ColumnValues::Text(cells)));
    own.into_iter().chain(owned(columns(&all))).collect()
}

fn owned(columns: Vec<(String, ColumnValues<'_>)>) -> Vec<(String, ColumnValues<'static>)> {
    let owned = |values| match values {
        ColumnValues::Borrowed(cells) => {
            ColumnValues::Text(cells.into_iter().map(|cell| cell.map(str::to_owned)).collect())
        }
        ColumnValues::Text(cells) => ColumnValues::Text(cells),
        _ => ColumnValues::Text(Vec::new()),
    };
    columns.into_iter().map(|(name, values)| (name, owned(values))).collect()
}

fn differences(pair: &ModelPair) -> Vec<FlatRow> {
    let row = |attribute: &str, kind, level: &str, of| of_difference(&pair.metric, attribute, kind, level.to_owned(), of);
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
