//! The page of a comparison of strategies: per attribute and metric a figure and a table.

use serde::Serialize;

use super::ReportError;
use super::plots::{Labels, Place, trade_off};
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
    let context = Context { page, figures };
    fill_in(&environment(TEMPLATE)?, &context)
}
