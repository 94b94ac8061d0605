//! The page of a comparison of strategies: per attribute and metric a figure and a table.

use serde::Serialize;

use super::ReportError;
use super::download::Download;
use super::names::names;
use super::plots::{Labels, Place, trade_off};
use super::tables::{Line, Table};
use super::template::{environment, fill_in};

const TEMPLATE: &str = include_str!("choice.html");

/// Everything that the page shows.
#[derive(Serialize)]
pub(crate) struct ChoicePage<'a> {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    /// How the choice was made, and the meaning of the columns.
    pub(crate) paragraphs: Vec<String>,
    pub(crate) blocks: Vec<ChoiceBlock>,
    pub(crate) about_ranks: &'a str,
    pub(crate) ranks: Vec<String>,
    pub(crate) not_trained: Vec<String>,
    /// Text of the flat table.
    #[serde(skip)]
    pub(crate) csv: String,
}

/// All strategies in one attribute and metric.
#[derive(Serialize)]
pub(crate) struct ChoiceBlock {
    pub(crate) title: String,
    /// Short name of the metric.
    pub(crate) label: String,
    pub(crate) direction: &'static str,
    pub(crate) attribute: String,
    /// The two groups of the signed difference.
    pub(crate) contrast: String,
    pub(crate) warnings: Vec<String>,
    /// Titles of the columns of the AUC with weights for censoring, where there is one.
    pub(crate) weights: Option<[&'static str; 3]>,
    pub(crate) rows: Vec<ChoiceRow>,
    #[serde(skip)]
    pub(crate) places: Vec<Place>,
}

/// One strategy.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ChoiceRow {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Shown with [`ChoiceBlock::weights`] only, like the next and `gap_with_weights`.
    pub(crate) with_weights: String,
    pub(crate) naive_minus_weighted: String,
    pub(crate) over_seeds: String,
    pub(crate) change: String,
    pub(crate) holm: String,
    pub(crate) gap: String,
    pub(crate) gap_with_weights: String,
    pub(crate) gap_over_seeds: String,
    pub(crate) gap_change: String,
    pub(crate) difference_change: String,
    pub(crate) difference_holm: String,
    /// The run and weights that were chosen, or why there are none.
    pub(crate) about: String,
}

#[derive(Serialize)]
struct Context<'a> {
    page: &'a ChoicePage<'a>,
    /// One per block.
    figures: Vec<String>,
    csv: Download<'static>,
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub(crate) fn render_choice(page: &ChoicePage<'_>) -> Result<String, ReportError> {
    let figure = |(k, block): (usize, &ChoiceBlock)| {
        let labels = Labels { metric: &block.label, direction: block.direction, attribute: &block.attribute };
        trade_off(&block.places, &labels, &format!("trade-off-{k}"))
    };
    let figures = page.blocks.iter().enumerate().map(figure).collect::<Result<_, _>>()?;
    let context = Context { page, figures, csv: Download::new("choice.csv", &page.csv) };
    fill_in(&environment(TEMPLATE)?, &context)
}

/// The tables of the page as files of their own: of every block the metric and the differences between groups.
pub(crate) fn tables_of_choice(page: &ChoicePage<'_>) -> Vec<Table> {
    let ids = names(page.blocks.iter().map(|block| block.title.as_str()));
    let of_block = |(block, id): (&ChoiceBlock, String)| {
        let table = |kind: &str, caption: String, header: [&str; 6], cells: fn(&ChoiceRow) -> [&String; 6]| Table {
            name: format!("{kind}-{id}"),
            caption,
            header: header.map(str::to_owned).to_vec(),
            lines: block
                .rows
                .iter()
                .map(|row| Line::Cells {
                    cells: cells(row).map(String::clone).to_vec(),
                    indented: false,
                    remarks: Vec::new(),
                })
                .collect(),
        };
        let contrast = format!("change of {}", block.contrast);
        [
            table(
                "metric",
                format!("{}: mean over seeds with its standard error, and the change from the base.", block.title),
                ["strategy", &block.label, "over seeds", "change", "Holm", "chosen"],
                |row| [&row.name, &row.value, &row.over_seeds, &row.change, &row.holm, &row.about],
            ),
            table(
                "groups",
                format!("{}: difference between groups of {}.", block.title, block.attribute),
                ["strategy", "gap", "gap over seeds", "change of the gap over seeds", &contrast, "Holm"],
                |row| {
                    let changes = [&row.gap_change, &row.difference_change, &row.difference_holm];
                    [&row.name, &row.gap, &row.gap_over_seeds, changes[0], changes[1], changes[2]]
                },
            ),
        ]
    };
    page.blocks.iter().zip(ids).flat_map(of_block).collect()
}
