//! The choice as an HTML page: per attribute and metric a figure of the metric against its gap over training seeds, and a
//! table. A gap changes in units of the metric: a percentage of a number near 0 says nothing.

use fairtte_metrics::evaluation::on_front;

use super::flat::csv;
use super::horizon;
use super::seeds::{Mean, gap_change, over_seeds};
use super::table::{Medium, RANKS, all_ranks, name, number, p_value, preamble, title, with_sign};
use super::verdict::{Block, Change, Scores, Standing, Verdict};
use crate::CliError;
use crate::report::{ChoiceBlock, ChoicePage, ChoiceRow, Place, listed};

/// What the page of a choice shows.
///
/// # Errors
/// [`DataError`](fairtte_data::DataError) if the flat table cannot be made, which no input should cause.
pub(crate) fn page(verdict: &Verdict) -> Result<ChoicePage<'static>, CliError> {
    let mut strategies: Vec<&str> = Vec::new();
    for row in verdict.blocks.iter().flat_map(|block| &block.rows) {
        if !strategies.contains(&row.strategy.as_str()) {
            strategies.push(&row.strategy);
        }
    }
    let others: Vec<&str> = strategies.into_iter().filter(|strategy| *strategy != verdict.base).collect();
    let named = if others.is_empty() {
        format!("Choice among trainings of {}", verdict.base)
    } else {
        format!("{} compared with {}", listed(&others), verdict.base)
    };
    let seeds = match verdict.n_seeds {
        1 => "1 training seed".to_owned(),
        n => format!("{n} training seeds"),
    };
    let folds = if verdict.n_folds > 1 { format!("; {} folds", verdict.n_folds) } else { String::new() };
    let not_trained = verdict.not_trained.iter().map(|run| format!("{}: {}", run.runs.join(", "), run.because));
    Ok(ChoicePage {
        title: named,
        subtitle: format!("{} test samples, {} events; {seeds}{folds}", verdict.n_test, verdict.n_test_events),
        paragraphs: preamble(verdict, Medium::Page),
        blocks: verdict.blocks.iter().map(|block| of_block(block, verdict)).collect(),
        about_ranks: RANKS,
        ranks: all_ranks(verdict),
        not_trained: not_trained.collect(),
        csv: csv(verdict)?,
    })
}

fn of_block(block: &Block, verdict: &Verdict) -> ChoiceBlock {
    let contrast = block.contrast.as_ref().map(|of| format!("{} - {}", of.first, of.second));
    ChoiceBlock {
        title: title(block, verdict),
        label: block.label.clone(),
        direction: if block.higher_is_better { "higher is better" } else { "lower is better" },
        attribute: block.attribute.clone(),
        contrast: contrast.unwrap_or_else(|| "difference".to_owned()),
        warnings: block.warnings.clone(),
        weights: block.has_weights().then_some(horizon::TITLES),
        rows: block.rows.iter().map(|row| of_row(block, row)).collect(),
        places: places(block),
    }
}

fn of_row(block: &Block, row: &Standing) -> ChoiceRow {
    let test = row.chosen.as_ref().map(|chosen| chosen.test).unwrap_or_default();
    let chosen = row.chosen.as_ref();
    let change = chosen.and_then(|chosen| chosen.change.as_ref());
    let of_groups = chosen.and_then(|chosen| chosen.difference_change.as_ref());
    let weighted = chosen.and_then(|chosen| chosen.weighted.as_ref());
    let [with_weights, naive_minus_weighted] = horizon::cells(weighted);
    ChoiceRow {
        name: name(row),
        value: number(test.value),
        with_weights,
        naive_minus_weighted,
        gap_with_weights: weighted.map_or_else(|| "-".to_owned(), |weighted| number(weighted.gap)),
        over_seeds: mean(over_seeds(row, |scores| scores.value), false),
        change: changed(change),
        holm: holm(change),
        gap: number(test.gap),
        gap_over_seeds: mean(over_seeds(row, |scores| scores.gap), false),
        gap_change: mean(gap_change(block, row), true),
        difference_change: changed(of_groups),
        difference_holm: holm(of_groups),
        about: match chosen {
            Some(chosen) => format!("{}, {}", chosen.run, chosen.weights),
            None => format!("none: {}", row.none_because.as_deref().unwrap_or_default()),
        },
    }
}

fn mean(mean: Option<Mean>, is_change: bool) -> String {
    let text = |value: f64| if is_change { with_sign(value, 3) } else { format!("{value:.3}") };
    match mean {
        None => "-".to_owned(),
        Some(Mean { value, standard_error: Some(error), n }) => {
            format!("{} \u{b1} {error:.3} ({n})", text(value))
        }
        Some(Mean { value, .. }) => format!("{} (1)", text(value)),
    }
}

/// The change in units of the metric, with its interval.
fn changed(change: Option<&Change>) -> String {
    let Some(value) = change.and_then(|change| change.value) else { return "-".to_owned() };
    let ends = change.and_then(|change| change.lower.zip(change.upper));
    let ends = ends.map(|(lower, upper)| format!(" ({} to {})", with_sign(lower, 3), with_sign(upper, 3)));
    with_sign(value, 3) + &ends.unwrap_or_default()
}

fn holm(change: Option<&Change>) -> String {
    let Some(p) = change.and_then(|change| change.p_holm) else { return "-".to_owned() };
    let mark = if change.is_some_and(|change| change.different) { " *" } else { "" };
    p_value(p) + mark
}

/// Metric and gap of every row: means over seeds with their standard errors, and each seed.
fn places(block: &Block) -> Vec<Place> {
    let n_seeds = block.rows.iter().map(|row| row.seeds.len()).max().unwrap_or(0);
    let of_row = |row: &Standing| {
        let (value, gap) = (over_seeds(row, |scores| scores.value), over_seeds(row, |scores| scores.gap));
        let single = |scores: &Scores| scores.value.zip(scores.gap);
        Place {
            name: name(row),
            at: value.zip(gap).map(|(value, gap)| (value.value, gap.value)),
            across: value.and_then(Mean::bar),
            along: gap.and_then(Mean::bar),
            on_front: false,
            remark: no_candidate(row, value, n_seeds),
            single: if row.seeds.len() > 1 {
                row.seeds.iter().filter_map(|s| single(&s.test)).collect()
            } else {
                Vec::new()
            },
        }
    };
    let mut places: Vec<Place> = block.rows.iter().map(of_row).collect();
    let sign = if block.higher_is_better { 1.0 } else { -1.0 };
    let candidate = |place: &Place| place.at.filter(|_| place.remark.is_empty());
    let scores: Vec<Option<(f64, f64)>> =
        places.iter().map(|place| candidate(place).map(|(value, gap)| (sign * value, gap))).collect();
    places.iter_mut().zip(on_front(&scores)).for_each(|(place, is_on)| place.on_front = is_on);
    places
}

/// Why a row cannot be on the front: a mean over some seeds is not to be compared with one over all, and what was not chosen is
/// no choice. Empty if it can.
fn no_candidate(row: &Standing, value: Option<Mean>, n_seeds: usize) -> String {
    let few = value.filter(|mean| mean.n < n_seeds).map(|mean| format!("{} of {n_seeds} seeds", mean.n));
    let not_chosen = row.chosen.is_none().then(|| "none chosen".to_owned());
    not_chosen.into_iter().chain(few).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::table::tests::verdict;
    use super::super::verdict::OfSeed;
    use super::*;
    use crate::report::render_choice;

    /// Metric and gap in two seeds.
    fn seeds(values: [(f64, f64); 2]) -> Vec<OfSeed> {
        let of = |(seed, (value, gap)): (u64, (f64, f64))| {
            let test = Scores { value: Some(value), gap: Some(gap), difference: None };
            OfSeed { seed, run: None, weights: None, test }
        };
        (1..).zip(values).map(of).collect()
    }

    fn with_seeds() -> Verdict {
        let mut verdict = verdict();
        let rows = &mut verdict.blocks[0].rows;
        rows[0].seeds = seeds([(0.70, 0.05), (0.72, 0.07)]);
        rows[1].seeds = seeds([(0.69, 0.02), (0.71, 0.06)]);
        rows[4].seeds = seeds([(0.66, 0.01), (0.70, 0.01)]);
        verdict
    }

    #[test]
    fn a_gap_changes_in_its_own_units_within_every_seed() {
        let verdict = with_seeds();
        let block = of_block(&verdict.blocks[0], &verdict);
        let row = &block.rows[4];
        assert_eq!((row.name.as_str(), row.over_seeds.as_str()), ("swad", "0.680 \u{b1} 0.020 (2)"));
        // 0.01 - 0.02 and 0.01 - 0.06.
        assert_eq!(row.gap_change, "-0.030 \u{b1} 0.020 (2)");
        assert_eq!((block.rows[0].gap_change.as_str(), block.rows[1].gap_change.as_str()), ("-", "-"));
        assert_eq!(row.change, "+0.032 (+0.010 to +0.050)");
        assert_eq!((row.holm.as_str(), row.difference_holm.as_str()), ("0.001 *", "0.086"));
        assert_eq!(block.rows[3].about, "none: none is within the tolerated loss");
    }

    #[test]
    fn the_figure_has_the_mean_its_error_and_every_seed() {
        let verdict = with_seeds();
        let places = places(&verdict.blocks[0]);
        let (x, y) = places[0].at.unwrap();
        assert!((x - 0.71).abs() < 1e-12 && (y - 0.06).abs() < 1e-12);
        let (lower, upper) = places[0].across.unwrap();
        assert!((lower - 0.70).abs() < 1e-12 && (upper - 0.72).abs() < 1e-12);
        assert_eq!(places[0].single, [(0.70, 0.05), (0.72, 0.07)]);
        // erm is best in the metric, swad in the gap, and "chosen like the others" lies between.
        let on_front: Vec<bool> = places.iter().map(|place| place.on_front).collect();
        assert_eq!(on_front, [true, true, false, false, true, false]);
        assert_eq!(places[3].at, None, "nothing was chosen");
    }

    #[test]
    fn what_was_not_chosen_or_not_in_every_seed_is_not_on_the_front() {
        let mut verdict = with_seeds();
        let rows = &mut verdict.blocks[0].rows;
        // No other has a gap as small.
        rows[3].seeds = seeds([(0.468, 0.0), (0.5, 0.0)]);
        rows[3].seeds[1].test = Scores::default();
        rows[4].seeds[0].test = Scores::default();
        let places = places(&verdict.blocks[0]);
        let of = |k: usize| (places[k].at.is_some(), places[k].on_front, places[k].remark.as_str());
        assert_eq!(of(3), (true, false, "none chosen, 1 of 2 seeds"));
        assert_eq!(of(4), (true, false, "1 of 2 seeds"));
        assert_eq!(of(0), (true, true, ""));
    }

    #[test]
    fn the_page_names_what_is_compared_and_is_accessible() {
        let html = render_choice(&page(&with_seeds()).unwrap()).unwrap();
        assert!(html.contains("<h1>a|b, sam and swad compared with erm</h1>"), "{html}");
        assert!(html.contains("over seeds: mean \u{b1} standard error") && !html.contains("percent of that row"));
        assert_eq!(html.matches("<svg").count(), 2);
        assert_eq!(html.matches("<svg").count(), html.matches("role=\"img\"").count());
        assert_eq!(html.matches("<table").count(), html.matches("<caption").count());
        assert!(!html.contains("<th>"), "every heading has a scope");
        assert!(html.contains("3 events among 20 samples") && html.contains("needs 10 training samples"));
    }
}
