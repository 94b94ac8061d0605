//! Forest plot of one metric: the whole sample and every group, each with its interval.

use std::ops::Range;

use fairtte_metrics::evaluation::{Estimate, GroupReport, MetricReport};
use plotters::prelude::RGBColor;

use super::super::ReportError;
use super::super::format::{elide, interval, known_ends, list, number, wrap};
use super::super::rows::{direction, has_chance_level, reason};
use super::super::words::FEW_EVENTS;
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, INK, Ink, MUTED, Point, fitting, padded_range, ticks,
};

const WIDTH: f64 = 520.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 372.0;
const VALUES: f64 = 384.0;
/// Letters of a value with its interval that fit at full size.
const LONGEST: f64 = 22.0;
const ROW: f64 = 21.0;
/// Height of a further line of text in a row.
const LINE: f64 = 13.5;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 44.0;
/// Sides of the square of a group without events and of the whole sample.
const SQUARES: (f64, f64) = (4.0, 10.0);

/// More groups than this, usually intersections, are sorted by their value.
const MOST_IN_ORDER: usize = 8;

enum Line<'a> {
    Heading(&'a str),
    Row { name: &'a str, indented: bool, estimate: &'a Estimate },
}

/// The figure of `metric`; `id` is unique on the page.
pub(crate) fn forest(metric: &MetricReport, id: &str) -> Result<String, ReportError> {
    let mut lines = vec![Line::Row { name: "all", indented: false, estimate: &metric.overall }];
    for attribute in &metric.attributes {
        lines.push(Line::Heading(&attribute.attribute));
        let mut groups: Vec<&GroupReport> = attribute.groups.iter().collect();
        if groups.len() > MOST_IN_ORDER {
            groups.sort_by(|a, b| sort_key(b).total_cmp(&sort_key(a)));
        }
        lines.extend(groups.into_iter().map(|g| Line::Row { name: &g.level, indented: true, estimate: &g.estimate }));
    }
    let height = TOP + lines.iter().map(Line::height).sum::<f64>() + BOTTOM;
    let bottom = height - BOTTOM;
    let axes = Axes { left: LEFT, right: RIGHT, top: TOP, bottom, x: range([metric]), y: 0.0..1.0 };
    let figure = Figure {
        id,
        title: format!("{} overall and in every group", metric.label),
        description: describe(metric),
        width: WIDTH,
        height,
    };
    figure.draw(|canvas| {
        axes.draw_x(canvas, &ticks(&axes.x, 6), &format!("{} ({})", superscript(&metric.label), direction(metric)))?;
        let mut top = TOP;
        for line in &lines {
            line.draw(canvas, &axes, metric, top)?;
            top += line.height();
        }
        Ok(())
    })
}

/// The value; groups without one come last.
fn sort_key(group: &GroupReport) -> f64 {
    group.estimate.value.unwrap_or(f64::NEG_INFINITY)
}

/// `C^td` with raised letters.
pub(super) fn superscript(label: &str) -> String {
    label.replace("^td", "\u{1d57}\u{1d48}")
}

/// The last words of `text` that fit into `width` characters, after an ellipsis; the first ones if not even one does.
fn ending(text: &str, width: usize) -> String {
    let starts = text.match_indices(' ').map(|(at, _)| &text[at..]);
    let fits = |tail: &&str| tail.chars().count() < width;
    starts.filter(fits).map(|tail| format!("…{tail}")).next().unwrap_or_else(|| elide(text, width))
}

impl Line<'_> {
    fn height(&self) -> f64 {
        match self {
            Self::Heading(_) => ROW + 3.0,
            Self::Row { estimate, .. } if estimate.value.is_some() => ROW + LINE * (self.name().len() - 1) as f64,
            Self::Row { estimate, .. } => ROW + LINE * (self.name().len().max(reason_lines(estimate).len()) - 1) as f64,
        }
    }

    /// The name in at most two lines. What a longer one ends with is kept, because intersections begin alike.
    fn name(&self) -> Vec<String> {
        let (name, indent) = match self {
            Self::Heading(name) => (name, 8.0),
            Self::Row { name, indented, .. } => (name, if *indented { 20.0 } else { 8.0 }),
        };
        let width = fitting(LEFT - indent, 12.5);
        let mut lines = wrap(name, width);
        if lines.len() > 2 {
            lines = vec![lines[0].clone(), ending(&lines[1..].join(" "), width)];
        }
        lines
    }

    fn draw(&self, canvas: &Canvas<'_>, axes: &Axes, metric: &MetricReport, top: f64) -> Result<(), DrawError> {
        match self {
            Self::Heading(_) => {
                references(canvas, axes, metric, (top, top + self.height()))?;
                let label = elide(&self.name().join(" "), fitting(LEFT - 8.0, 12.5));
                canvas.text(&label, (2.0, top + ROW / 2.0 + 3.0), Anchor::Start, Ink::new(12.0, INK).bold())
            }
            Self::Row { indented, estimate, .. } => {
                let middle = top + ROW / 2.0;
                let left = if *indented { 14.0 } else { 2.0 };
                for (k, line) in self.name().iter().enumerate() {
                    let at = (left, middle + LINE * k as f64);
                    canvas.text(line, at, Anchor::Start, Ink::new(12.0, INK))?;
                }
                // A line through the text would make it hard to read.
                if estimate.value.is_some() {
                    references(canvas, axes, metric, (top, top + self.height()))?;
                }
                row(canvas, axes, estimate, metric, middle)
            }
        }
    }
}

/// The value of the whole sample, and the value of random guessing or the best value where that is known, next to one row.
fn references(canvas: &Canvas<'_>, axes: &Axes, metric: &MetricReport, (top, bottom): Point) -> Result<(), DrawError> {
    if let Some(reference) = reference(metric).filter(|reference| axes.x.contains(reference)) {
        let x = axes.x_at(reference);
        canvas.line(&[(x, top), (x, bottom)], AXIS, 1.0)?;
    }
    let Some(value) = metric.overall.value else { return Ok(()) };
    let x = axes.x_at(value);
    canvas.dashed(&[(x, top), (x, bottom)], BLUE, 1.0, (4.0, 4.0))
}

fn row(
    canvas: &Canvas<'_>,
    axes: &Axes,
    estimate: &Estimate,
    metric: &MetricReport,
    middle: f64,
) -> Result<(), DrawError> {
    let Some(value) = estimate.value else {
        for (k, line) in reason_lines(estimate).iter().enumerate() {
            let at = (LEFT + 6.0, middle + LINE * k as f64);
            canvas.text(line, at, Anchor::Start, Ink::new(11.0, MUTED).italic())?;
        }
        return Ok(());
    };
    if let Some(ends) = known_ends(estimate) {
        interval_line(canvas, axes, ends, middle, INK)?;
    }
    let share = (estimate.n_events as f64 / metric.overall.n_events.max(1) as f64).min(1.0);
    let side = SQUARES.0 + (SQUARES.1 - SQUARES.0) * share.sqrt();
    if axes.x.contains(&value) {
        canvas.square((axes.x_at(value), middle), side, BLUE)?;
    }
    written_value(canvas, (value, estimate), (VALUES, middle), Ink::new(11.0, INK))
}

/// A value with its interval at `at`, in the room that three numbers below 10 need; larger ones, as of distances, are written
/// smaller.
pub(super) fn written_value(
    canvas: &Canvas<'_>,
    (value, estimate): (f64, &Estimate),
    at: Point,
    ink: Ink,
) -> Result<(), DrawError> {
    let range = interval(estimate).unwrap_or_else(|| "no interval".to_owned());
    let text = format!("{} ({range})", number(value));
    let size = ink.size * (LONGEST / text.chars().count() as f64).min(1.0);
    canvas.text(&text, at, Anchor::Start, Ink { size, ..ink })
}

/// An interval with marks at its ends, or arrows where it extends beyond the axis.
pub(super) fn interval_line(
    canvas: &Canvas<'_>,
    axes: &Axes,
    (lower, upper): (f64, f64),
    middle: f64,
    colour: RGBColor,
) -> Result<(), DrawError> {
    let inside = |end: f64| axes.x_at(end.clamp(axes.x.start, axes.x.end));
    canvas.line(&[(inside(lower), middle), (inside(upper), middle)], colour, 1.4)?;
    for (end, back) in [(lower, 5.0), (upper, -5.0)] {
        let x = inside(end);
        if axes.x.start <= end && end <= axes.x.end {
            canvas.line(&[(x, middle - 3.0), (x, middle + 3.0)], colour, 1.4)?;
        } else {
            canvas.polygon(&[(x, middle), (x + back, middle - 3.5), (x + back, middle + 3.5)], colour, 1.0)?;
        }
    }
    Ok(())
}

/// Why there is no value, in lines that fit right of the name.
fn reason_lines(estimate: &Estimate) -> Vec<String> {
    let reason = reason(estimate);
    let text = if reason.starts_with("undefined") { reason.to_owned() } else { format!("undefined: {reason}") };
    wrap(&text, fitting(WIDTH - LEFT - 10.0, 10.5))
}

/// Wide enough for all values, for the intervals of groups with enough events and, where it has a meaning, for 0.5 or the
/// best value; not below 0 if none is, and not far above 1 if none is. `metrics` has one metric of one or several models.
pub(super) fn range<'a>(metrics: impl IntoIterator<Item = &'a MetricReport>) -> Range<f64> {
    let ends: Vec<f64> = metrics.into_iter().flat_map(ends).collect();
    let range = padded_range(ends.iter().copied(), 0.05);
    let start = if ends.iter().all(|end| *end >= 0.0) { range.start.max(0.0) } else { range.start };
    start..if ends.iter().all(|end| *end <= 1.0) { range.end.min(1.02) } else { range.end }
}

/// All values, ends of intervals that are shown in full, and what they are compared with.
fn ends(metric: &MetricReport) -> impl Iterator<Item = f64> {
    let groups = metric.attributes.iter().flat_map(|attribute| &attribute.groups).map(|group| &group.estimate);
    let ends = std::iter::once(&metric.overall).chain(groups).flat_map(|estimate| {
        // The interval of a few events would squeeze all others; it is clipped instead.
        let shown = estimate.n_events >= FEW_EVENTS || metric.overall.n_events < FEW_EVENTS;
        let (lower, upper) = known_ends(estimate).filter(|_| shown).unzip();
        [estimate.value, lower, upper]
    });
    ends.flatten().chain(reference(metric))
}

/// A value to compare with: that of random guessing, or the best one of a metric with a target.
pub(super) fn reference(metric: &MetricReport) -> Option<f64> {
    metric.target.or_else(|| has_chance_level(metric).then_some(0.5))
}

fn describe(metric: &MetricReport) -> String {
    let say = |name: &str, estimate: &Estimate| match (estimate.value, interval(estimate)) {
        (Some(value), Some(interval)) => format!("{name} {}, interval {interval}", number(value)),
        (Some(value), None) => format!("{name} {}, no interval", number(value)),
        (None, _) => format!("{name} undefined"),
    };
    let mut parts = vec![say("all samples", &metric.overall)];
    for attribute in &metric.attributes {
        let groups = attribute.groups.iter();
        let groups: Vec<String> = groups.map(|group| say(&group.level, &group.estimate)).collect();
        parts.push(format!("{}: {}", attribute.attribute, list(&groups)));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn a_long_name_keeps_what_distinguishes_it() {
        assert_eq!(ending("Pacific Islander & > 50 to 65", 20), "… & > 50 to 65");
        assert_eq!(ending("Hawaiian or Pacific Islander & <= 50", 12), "… & <= 50");
        assert_eq!(ending("one-very-long-word-without-spaces", 8), "one-ver…");
    }

    #[test]
    fn the_axis_of_a_distance_starts_at_0() {
        let mut metric = report().metrics.remove(0);
        metric.attributes.clear();
        (metric.overall.value, metric.overall.lower, metric.overall.upper) = (Some(0.0), Some(0.0), Some(0.4));
        assert_eq!(range([&metric]), 0.0..0.525);
        metric.overall.lower = Some(-0.1);
        assert!(range([&metric]).start < -0.1);
    }

    #[test]
    fn one_subject_has_a_value_without_an_interval() {
        let mut metric = report().metrics.remove(0);
        let few = &mut metric.attributes[1].groups[1].estimate;
        (few.value, few.lower, few.upper, few.n_subjects) = (Some(4.922), Some(4.922), Some(4.922), 1);
        let svg = forest(&metric, "plain").unwrap();
        assert!(svg.contains("4.922 (no interval)") && !svg.contains("4.922 to 4.922"), "{svg}");
    }

    #[test]
    fn the_interval_of_a_few_events_does_not_widen_the_axis_and_ends_in_an_arrow() {
        let mut metric = report().metrics.remove(0);
        let (usual, plain) = (range([&metric]), forest(&metric, "plain").unwrap());
        let few = &mut metric.attributes[1].groups[1].estimate;
        (few.lower, few.upper) = (Some(0.01), Some(0.99));
        assert_eq!(few.n_events, 12);
        assert_eq!(range([&metric]), usual);
        let clipped = forest(&metric, "plain").unwrap();
        let n_polygons = |svg: &str| svg.matches("<polygon").count();
        assert_eq!(n_polygons(&clipped), n_polygons(&plain) + 2);
        metric.attributes[1].groups[1].estimate.n_events = 20;
        assert!(range([&metric]).end > 0.99);
    }
}
