//! The gaps of one metric, attribute by attribute, beside the gaps that equal groups of these sizes would show by chance.

use fairtte_metrics::evaluation::{AttributeReport, MetricReport};

use super::super::ReportError;
use super::super::format::{elide, interval, known_ends, number, p_relation, percent};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, fitting, ticks,
};
use super::forest::{interval_line, superscript, written_value};

const WIDTH: f64 = 520.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 372.0;
const VALUES: f64 = 384.0;
const ROW: f64 = 30.0;
const TOP: f64 = 4.0;
/// From the axis to the legend, and to the lower edge.
const LEGEND: f64 = 52.0;
const BOTTOM: f64 = 62.0;
/// Half the height of the band and of the mark of chance.
const BAND: f64 = 8.0;
/// An interval that reaches further than this many times the largest value is cut.
const FURTHEST: f64 = 2.0;

/// The figure of `metric` with intervals of `level`, or `None` if no gap has a value; `id` is unique on the page.
pub(crate) fn gap_figure(metric: &MetricReport, level: f64, id: &str) -> Result<Option<String>, ReportError> {
    let attributes: Vec<&AttributeReport> = metric.attributes.iter().filter(|of| of.gap.value.is_some()).collect();
    if attributes.is_empty() {
        return Ok(None);
    }
    let bottom = TOP + ROW * attributes.len() as f64;
    let axes = Axes { left: LEFT, right: RIGHT, top: TOP, bottom, x: 0.0..end(&attributes), y: 0.0..1.0 };
    let has_chance = attributes.iter().any(|of| of.gap_by_chance.is_some());
    let figure = Figure {
        id,
        title: format!("Gaps of {} and what chance makes of equal groups", metric.label),
        description: attributes.iter().map(|of| describe(of)).collect::<Vec<_>>().join("; "),
        width: WIDTH,
        height: bottom + if has_chance { BOTTOM } else { LEGEND - 8.0 },
    };
    let svg = figure.draw(|canvas| {
        let title = format!("gap of {} (0 = equal)", superscript(&metric.label));
        axes.draw_x(canvas, &ticks(&axes.x, 6), &title)?;
        canvas.line(&[axes.at(0.0, 0.0), axes.at(0.0, 1.0)], AXIS, 1.0)?;
        for (k, attribute) in attributes.iter().enumerate() {
            row(canvas, &axes, attribute, TOP + ROW * (k as f64 + 0.5))?;
        }
        if has_chance { legend(canvas, level, bottom + LEGEND) } else { Ok(()) }
    })?;
    Ok(Some(svg))
}

/// The end of the axis: all gaps and what is rare by chance, and the intervals as far as they are not much longer.
fn end(attributes: &[&AttributeReport]) -> f64 {
    let largest = |values: &dyn Fn(&AttributeReport) -> [Option<f64>; 2]| {
        attributes.iter().flat_map(|of| values(of)).flatten().fold(0.0, f64::max)
    };
    let gaps = largest(&|of| [of.gap.value, of.gap_by_chance.as_ref().map(|by_chance| by_chance.upper)]);
    let intervals = largest(&|of| [of.gap.upper, None]);
    let end = intervals.min(FURTHEST * gaps).max(gaps) * 1.06;
    if end > 0.0 { end } else { 0.1 }
}

fn row(canvas: &Canvas<'_>, axes: &Axes, attribute: &AttributeReport, middle: f64) -> Result<(), DrawError> {
    let name = elide(&attribute.attribute, fitting(LEFT - 8.0, 12.5));
    canvas.text(&name, (2.0, middle), Anchor::Start, Ink::new(12.0, INK))?;
    if let Some(by_chance) = &attribute.gap_by_chance {
        band(canvas, (axes.left, axes.x_at(by_chance.upper)), axes.x_at(by_chance.mean), middle)?;
        let text = format!("chance {}, p {}", number(by_chance.mean), p_relation(by_chance.p_value));
        canvas.text(&text, (VALUES, middle + 7.0), Anchor::Start, Ink::new(10.0, MUTED))?;
    }
    if let Some(ends) = known_ends(&attribute.gap) {
        interval_line(canvas, axes, ends, middle, INK)?;
    }
    let Some(value) = attribute.gap.value else { return Ok(()) };
    canvas.square((axes.x_at(value), middle), 8.0, BLUE)?;
    let shift = if attribute.gap_by_chance.is_some() { 6.0 } else { 0.0 };
    written_value(canvas, (value, &attribute.gap), (VALUES, middle - shift), Ink::new(11.0, INK))
}

/// The gaps by chance: a band up to what is rare, and a mark at the mean.
fn band(canvas: &Canvas<'_>, (from, to): (f64, f64), mean: f64, middle: f64) -> Result<(), DrawError> {
    let (upper, lower) = (middle - BAND, middle + BAND);
    let corners = [(from, upper), (to, upper), (to, lower), (from, lower)];
    canvas.polygon(&corners, AXIS, 0.35)?;
    canvas.line(&[corners[0], corners[1], corners[2], corners[3], corners[0]], AXIS, 1.0)?;
    canvas.line(&[(mean, upper), (mean, lower)], GROUP_COLOURS[1], 2.4)
}

fn legend(canvas: &Canvas<'_>, level: f64, middle: f64) -> Result<(), DrawError> {
    let text = format!("by chance in equal groups: mean, and {} of all such gaps", percent(level));
    canvas.text(&text, (LEFT + 36.0, middle), Anchor::Start, Ink::new(10.0, MUTED))?;
    band(canvas, (LEFT, LEFT + 28.0), LEFT + 12.0, middle)
}

fn describe(attribute: &AttributeReport) -> String {
    let value = attribute.gap.value.map_or_else(|| "undefined".to_owned(), number);
    let range = interval(&attribute.gap).map_or_else(String::new, |range| format!(", interval {range}"));
    let chance = attribute.gap_by_chance.as_ref().map_or_else(String::new, |by_chance| {
        format!(", by chance {} on average, rarely above {}", number(by_chance.mean), number(by_chance.upper))
    });
    format!("{}: gap {value}{range}{chance}", attribute.attribute)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn the_axis_contains_the_gaps_and_what_chance_makes_of_them_but_not_a_far_interval() {
        let mut metric = report().metrics.remove(0);
        let sex = &mut metric.attributes[0];
        (sex.gap.value, sex.gap.upper) = (Some(0.1), Some(0.15));
        sex.gap_by_chance.as_mut().unwrap().upper = 0.2;
        assert!((end(&[sex]) - 0.2 * 1.06).abs() < 1e-12);
        sex.gap.upper = Some(0.3);
        assert!((end(&[sex]) - 0.3 * 1.06).abs() < 1e-12);
        sex.gap.upper = Some(7.0);
        assert!((end(&[sex]) - 0.4 * 1.06).abs() < 1e-12);
    }

    #[test]
    fn large_numbers_are_written_smaller_so_that_the_figure_does_not_cut_them() {
        let mut metric = report().metrics.remove(0);
        metric.attributes.truncate(1);
        let size_of_gap = |metric: &MetricReport, text: &str| -> f64 {
            let svg = gap_figure(metric, 0.95, "gap").unwrap().unwrap();
            let (before, _) = svg.rsplit_once(&format!("\n{text}\n")).unwrap();
            let (_, size) = before.rsplit_once("font-size=\"").unwrap();
            size.split_once('"').unwrap().0.parse().unwrap()
        };
        let gap = &mut metric.attributes[0].gap;
        (gap.value, gap.lower, gap.upper) = (Some(0.05), Some(0.01), Some(0.1));
        let small = size_of_gap(&metric, "0.050 (0.010 to 0.100)");
        let gap = &mut metric.attributes[0].gap;
        (gap.value, gap.lower, gap.upper) = (Some(11.59), Some(8.043), Some(15.181));
        let large = size_of_gap(&metric, "11.590 (8.043 to 15.181)");
        assert!(large * 24.0 <= small * 22.0 + 1.0, "{large} {small}");
    }

    #[test]
    fn only_a_gap_that_was_compared_with_chance_has_a_band_and_a_legend() {
        let mut metric = report().metrics.remove(0);
        let with = gap_figure(&metric, 0.95, "gap").unwrap().unwrap();
        assert!(with.contains("by chance in equal groups: mean, and 95 % of all such gaps"), "{with}");
        assert!(with.contains("on average, rarely above"), "{with}");
        for attribute in &mut metric.attributes {
            attribute.gap_by_chance = None;
        }
        let without = gap_figure(&metric, 0.95, "gap").unwrap().unwrap();
        assert!(!without.contains("by chance"), "{without}");
        // The band of one attribute and that of the legend.
        assert_eq!(with.matches("<polygon").count(), without.matches("<polygon").count() + 2);
        for attribute in &mut metric.attributes {
            attribute.gap.value = None;
        }
        assert_eq!(gap_figure(&metric, 0.95, "gap").unwrap(), None);
    }
}
