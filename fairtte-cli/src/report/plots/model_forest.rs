//! Forest plot of one metric of several models, or of two cohorts: under the whole sample and every group, one line per model
//! or cohort.

use fairtte_metrics::evaluation::{CohortMetric, Estimate, InBoth, MetricReport};

use super::super::ReportError;
use super::super::format::{count, elide, interval, known_ends, list, number};
use super::super::rows::{direction, is_of_class};
use super::canvas::{AXIS, Anchor, Axes, Canvas, DrawError, Figure, INK, Ink, MUTED, fitting, ticks};
use super::forest::{interval_line, range, reference, superscript, written_value};
use super::marker::Marker;

const WIDTH: f64 = 520.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 372.0;
const VALUES: f64 = 384.0;
const HEADING: f64 = 25.0;
const ROW: f64 = 18.0;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 44.0;
const MARKER: f64 = 9.0;

/// The whole sample or one group, with name and estimate of every model or cohort.
struct Block<'a> {
    name: String,
    rows: Vec<(String, &'a Estimate)>,
}

/// The figure of one metric; `models` has name and report of every model, `id` is unique on the page.
pub(crate) fn model_forest(models: &[(&str, &MetricReport)], id: &str) -> Result<String, ReportError> {
    let Some((_, metric)) = models.first() else { return Ok(String::new()) };
    let metrics: Vec<&MetricReport> = models.iter().map(|(_, metric)| *metric).collect();
    let title = format!("{} of every model, overall and in every group", metric.label);
    draw(&metrics, &blocks(models), title, id)
}

/// The figure of one metric of an internal and an external cohort, whose reports are `metrics`.
pub(crate) fn cohort_forest<'a>(
    metrics: [&MetricReport; 2],
    found: &'a CohortMetric,
    id: &str,
) -> Result<String, ReportError> {
    let events = if is_of_class(metrics[0]) { "positive" } else { "events" };
    let block = |name: String, both: &InBoth| {
        let (internal, external) = (both.internal.n_events, both.external.n_events);
        format!("{name} ({events}: {internal} internal, {external} external)")
    };
    let rows =
        |both: &'a InBoth| vec![("internal".to_owned(), &both.internal), ("external".to_owned(), &both.external)];
    let mut blocks = vec![Block { name: block("all".to_owned(), &found.overall), rows: rows(&found.overall) }];
    for by in &found.attributes {
        blocks.extend(
            by.groups.iter().map(|(level, both)| Block {
                name: block(format!("{}: {level}", by.attribute), both),
                rows: rows(both),
            }),
        );
    }
    let title = format!("{} of both cohorts, overall and in every group", metrics[0].label);
    draw(&metrics, &blocks, title, id)
}

fn draw(metrics: &[&MetricReport], blocks: &[Block<'_>], title: String, id: &str) -> Result<String, ReportError> {
    let metric = metrics[0];
    let block_height = HEADING + ROW * blocks.first().map_or(0, |block| block.rows.len()) as f64;
    let height = TOP + block_height * blocks.len() as f64 + BOTTOM;
    let x = range(metrics.iter().copied());
    let axes = Axes { left: LEFT, right: RIGHT, top: TOP, bottom: height - BOTTOM, x, y: 0.0..1.0 };
    Figure { id, title, description: describe(blocks), width: WIDTH, height }.draw(|canvas| {
        axes.draw_x(canvas, &ticks(&axes.x, 6), &format!("{} ({})", superscript(&metric.label), direction(metric)))?;
        let reference = reference(metric).filter(|reference| axes.x.contains(reference)).map(|value| axes.x_at(value));
        for (k, block) in blocks.iter().enumerate() {
            let top = TOP + block_height * k as f64;
            let name = elide(&block.name, fitting(WIDTH - 8.0, 12.5));
            canvas.text(&name, (2.0, top + HEADING - 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
            // Beside the rows only: a line through the heading would make it hard to read.
            if let Some(x) = reference {
                canvas.line(&[(x, top + HEADING), (x, top + block_height)], AXIS, 1.0)?;
            }
            for (place, (name, estimate)) in block.rows.iter().enumerate() {
                row(canvas, &axes, (place, name), estimate, top + HEADING + ROW * (place as f64 + 0.5))?;
            }
        }
        Ok(())
    })
}

fn blocks<'a>(models: &[(&str, &'a MetricReport)]) -> Vec<Block<'a>> {
    let event = if is_of_class(models[0].1) { "positive" } else { "event" };
    let sized =
        |name: String, estimate: &Estimate| format!("{name} (n = {}, {})", estimate.n, count(estimate.n_events, event));
    let rows = |of: &dyn Fn(&'a MetricReport) -> &'a Estimate| -> Vec<(String, &'a Estimate)> {
        models.iter().map(|(name, metric)| ((*name).to_owned(), of(metric))).collect()
    };
    let of_all = rows(&|metric| &metric.overall);
    let mut blocks = vec![Block { name: sized("all".to_owned(), of_all[0].1), rows: of_all }];
    for (place, attribute) in models[0].1.attributes.iter().enumerate() {
        for (level, group) in attribute.groups.iter().enumerate() {
            let name = sized(format!("{}: {}", attribute.attribute, group.level), &group.estimate);
            blocks.push(Block { name, rows: rows(&|metric| &metric.attributes[place].groups[level].estimate) });
        }
    }
    blocks
}

fn row(
    canvas: &Canvas<'_>,
    axes: &Axes,
    (place, name): (usize, &str),
    estimate: &Estimate,
    middle: f64,
) -> Result<(), DrawError> {
    let marker = Marker::of(place);
    marker.draw(canvas, (18.0, middle), MARKER, 1.0)?;
    let name = elide(name, fitting(LEFT - 38.0, 12.5));
    canvas.text(&name, (30.0, middle), Anchor::Start, Ink::new(12.0, INK))?;
    let Some(value) = estimate.value else {
        let at = (LEFT + 6.0, middle);
        return canvas.text("undefined", at, Anchor::Start, Ink::new(11.0, MUTED).italic());
    };
    if let Some(ends) = known_ends(estimate) {
        interval_line(canvas, axes, ends, middle, marker.colour)?;
    }
    if axes.x.contains(&value) {
        marker.draw(canvas, (axes.x_at(value), middle), MARKER, 1.0)?;
    }
    written_value(canvas, (value, estimate), (VALUES, middle), Ink::new(10.5, MUTED))
}

fn describe(blocks: &[Block<'_>]) -> String {
    let say = |(name, estimate): &(String, &Estimate)| match (estimate.value, interval(estimate)) {
        (Some(value), Some(interval)) => format!("{name} {}, interval {interval}", number(value)),
        (Some(value), None) => format!("{name} {}, no interval", number(value)),
        (None, _) => format!("{name} undefined"),
    };
    let of_block = |block: &Block<'_>| {
        let values: Vec<String> = block.rows.iter().map(say).collect();
        format!("{}: {}", block.name, list(&values))
    };
    blocks.iter().map(of_block).collect::<Vec<_>>().join("; ")
}
