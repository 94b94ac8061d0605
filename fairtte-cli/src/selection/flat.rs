//! The choice as one flat table, for spreadsheets, R and pandas: `choice.csv`, a row per number.

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text};

use super::verdict::{Block, Change, Chosen, Role, Scores, Standing, Verdict};

/// One number of one strategy.
struct Row<'a> {
    block: &'a Block,
    strategy: &'a str,
    role: Role,
    /// The training seed of a choice within one seed.
    seed: Option<u64>,
    kind: &'static str,
    number: Change,
}

/// The text of the file; an absent number is an empty cell.
///
/// # Errors
/// [`DataError`] if it cannot be made.
pub(crate) fn csv(verdict: &Verdict) -> Result<String, DataError> {
    let rows: Vec<Row<'_>> =
        verdict.blocks.iter().flat_map(|block| block.rows.iter().flat_map(|row| of_standing(block, row))).collect();
    let text = |of: fn(&Row<'_>) -> String| {
        ColumnValues::Text(rows.iter().map(|row| Some(of(row)).filter(|text| !text.is_empty())).collect())
    };
    let number = |of: fn(&Row<'_>) -> Option<f64>| {
        ColumnValues::Text(rows.iter().map(|row| of(row).map(|value| value.to_string())).collect())
    };
    let columns = [
        ("attribute", text(|row| row.block.attribute.clone())),
        ("metric", text(|row| row.block.metric.clone())),
        ("head", text(|row| row.block.network.head.clone())),
        ("backbone", text(|row| row.block.network.backbone.clone())),
        ("start", text(|row| row.block.network.start.clone())),
        ("strategy", text(|row| row.strategy.to_owned())),
        ("role", text(|row| role(row.role).to_owned())),
        ("seed", text(|row| row.seed.map_or_else(String::new, |seed| seed.to_string()))),
        ("kind", text(|row| row.kind.to_owned())),
        ("value", number(|row| row.number.value)),
        ("lower", number(|row| row.number.lower)),
        ("upper", number(|row| row.number.upper)),
        ("p", number(|row| row.number.p_value)),
        ("p-holm", number(|row| row.number.p_holm)),
        ("reason", text(|row| row.number.undefined.clone().unwrap_or_default())),
    ];
    csv_text(columns.into_iter().map(|(name, values)| (name.to_owned(), values)).collect())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Base => "base",
        Role::Control => "control",
        Role::Strategy => "strategy",
    }
}

fn of_standing<'a>(block: &'a Block, row: &'a Standing) -> Vec<Row<'a>> {
    let with = |seed, kind, number| Row { block, strategy: &row.strategy, role: row.role, seed, kind, number };
    let scores = |seed: Option<u64>, kinds: [&'static str; 3], of: &Scores| {
        let values = [of.value, of.gap, of.difference];
        let number = |value| Change { value, ..Change::default() };
        kinds.into_iter().zip(values).map(|(kind, value)| with(seed, kind, number(value))).collect::<Vec<_>>()
    };
    let mut rows = match &row.chosen {
        None => vec![with(None, "test-value", Change { undefined: row.none_because.clone(), ..Change::default() })],
        Some(Chosen {
            validation,
            test,
            change,
            difference_change,
            change_from_base,
            difference_change_from_base,
            ..
        }) => {
            let mut rows = scores(None, ["test-value", "test-gap", "test-difference"], test);
            rows.extend(scores(None, ["validation-value", "validation-gap", "validation-difference"], validation));
            let changes = [
                ("change", change),
                ("difference-change", difference_change),
                ("change-from-base", change_from_base),
                ("difference-change-from-base", difference_change_from_base),
            ];
            rows.extend(changes.into_iter().filter_map(|(kind, of)| Some(with(None, kind, of.clone()?))));
            rows
        }
    };
    for seed in &row.seeds {
        rows.extend(scores(Some(seed.seed), ["seed-value", "seed-gap", "seed-difference"], &seed.test));
    }
    rows
}
