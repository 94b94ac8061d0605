//! Box plots of values at several places, with a line through them: one panel per quantity, two side by side.
//!
//! A box reaches from the first to the third quartile (linear interpolation, as `numpy.quantile`), the line in it is the median, and the
//! whiskers end at the last values within 1.5 lengths of the box (Tukey 1977); values beyond are dots.

use std::ops::Range;

use super::super::ReportError;
use super::super::format::{elide, short};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, INK, Ink, MUTED, fitting, padded_range, ticks,
};
use super::marker::Marker;

const WIDTH: f64 = 460.0;
const COLUMNS: usize = 2;
const HEIGHT: f64 = 232.0;
const TEXT: f64 = 12.0;

/// Values of one quantity.
pub(in super::super) struct BoxPanel {
    pub(in super::super) title: String,
    /// Place along the axis, and the values there.
    pub(in super::super) boxes: Vec<(f64, Vec<f64>)>,
    /// Intercept and slope of a line.
    pub(in super::super) line: Option<(f64, f64)>,
}

/// The figure `id`; `None` without a value.
///
/// # Errors
/// [`ReportError`] if it cannot be drawn.
pub(in super::super) fn box_figure(
    id: &str,
    title: &str,
    (x, y): (&str, &str),
    panels: &[BoxPanel],
) -> Result<Option<String>, ReportError> {
    if panels.iter().all(|panel| panel.boxes.iter().all(|(_, values)| values.is_empty())) {
        return Ok(None);
    }
    let figure = Figure {
        id,
        title: title.to_owned(),
        description: panels.iter().map(describe).collect::<Vec<_>>().join("; "),
        width: WIDTH,
        height: panels.len().div_ceil(COLUMNS) as f64 * HEIGHT,
    };
    let draw = |canvas: &Canvas<'_>| {
        panels.iter().enumerate().try_for_each(|(place, panel)| draw_panel(canvas, place, (x, y), panel))
    };
    figure.draw(draw).map(Some)
}

fn describe(panel: &BoxPanel) -> String {
    let medians = panel.boxes.iter().filter(|(_, values)| !values.is_empty());
    let medians: Vec<String> =
        medians.map(|(at, values)| format!("{} at {}", short(Quartiles::of(values).median), short(*at))).collect();
    format!("{}: medians {}", panel.title, medians.join(", "))
}

fn draw_panel(canvas: &Canvas<'_>, place: usize, (x, y): (&str, &str), panel: &BoxPanel) -> Result<(), DrawError> {
    let (column, row) = ((place % COLUMNS) as f64, (place / COLUMNS) as f64);
    let (left, top) = (column * WIDTH / COLUMNS as f64, row * HEIGHT);
    let values = panel.boxes.iter().flat_map(|(_, values)| values.iter().copied());
    let axes = Axes {
        left: left + 56.0,
        right: left + WIDTH / COLUMNS as f64 - 10.0,
        top: top + 26.0,
        bottom: top + 184.0,
        x: padded_range(panel.boxes.iter().map(|(at, _)| *at), 0.1),
        y: padded_range(values.chain([0.0]), 0.04),
    };
    let title = elide(&panel.title, fitting(WIDTH / COLUMNS as f64 - 14.0, TEXT));
    canvas.text(&title, (left + 12.0, top + 12.0), Anchor::Start, Ink::new(TEXT, INK).bold())?;
    axes.draw_y(canvas, &ticks(&axes.y, 5), y)?;
    axes.draw_x(canvas, &ticks(&axes.x, 5), x)?;
    let half = 0.32 * (axes.right - axes.left) / panel.boxes.len().max(2) as f64;
    for (at, values) in panel.boxes.iter().filter(|(_, values)| !values.is_empty()) {
        draw_box(canvas, &axes, (axes.x_at(*at), half), values)?;
    }
    if let Some(ends) = panel.line.and_then(|line| inside(line, &axes.x, &axes.y)) {
        canvas.line(&ends.map(|(x, y)| axes.at(x, y)), BLUE, 1.6)?;
    }
    if panel.boxes.is_empty() {
        let middle = (f64::midpoint(axes.left, axes.right), f64::midpoint(axes.top, axes.bottom));
        canvas.text("no value", middle, Anchor::Middle, Ink::new(11.0, MUTED).italic())?;
    }
    Ok(())
}

/// The ends of the part of a line (intercept and slope) that lies in the ranges; `None` if no part does. Its ends are moved along the line,
/// which would have another slope otherwise.
fn inside((intercept, slope): (f64, f64), x: &Range<f64>, y: &Range<f64>) -> Option<[(f64, f64); 2]> {
    let (mut from, mut to) = (x.start, x.end);
    if slope != 0.0 {
        let at = [y.start, y.end].map(|value| (value - intercept) / slope);
        (from, to) = (from.max(at[0].min(at[1])), to.min(at[0].max(at[1])));
    } else if !(y.start..=y.end).contains(&intercept) {
        return None;
    }
    (from < to).then(|| [from, to].map(|x| (x, (intercept + slope * x).clamp(y.start, y.end))))
}

fn draw_box(canvas: &Canvas<'_>, axes: &Axes, (centre, half): (f64, f64), values: &[f64]) -> Result<(), DrawError> {
    let found = Quartiles::of(values);
    let (low, high) = (axes.y_at(found.first), axes.y_at(found.third));
    let corners = [(centre - half, low), (centre + half, low), (centre + half, high), (centre - half, high)];
    canvas.polygon(&corners, AXIS, 0.35)?;
    canvas.line(&[corners[0], corners[1], corners[2], corners[3], corners[0]], AXIS, 1.0)?;
    let median = axes.y_at(found.median);
    canvas.line(&[(centre - half, median), (centre + half, median)], INK, 1.6)?;
    for (from, to) in [(low, axes.y_at(found.whiskers.0)), (high, axes.y_at(found.whiskers.1))] {
        canvas.line(&[(centre, from), (centre, to)], AXIS, 1.0)?;
    }
    let beyond = values.iter().filter(|value| **value < found.whiskers.0 || **value > found.whiskers.1);
    for value in beyond {
        Marker::of(0).draw(canvas, (centre, axes.y_at(*value)), 3.5, 0.7)?;
    }
    Ok(())
}

/// What a box shows.
#[derive(Debug, PartialEq)]
struct Quartiles {
    first: f64,
    median: f64,
    third: f64,
    whiskers: (f64, f64),
}

impl Quartiles {
    /// Of at least one finite value.
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let quantile = |share: f64| {
            let place = share * last as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the last place")]
            let below = (place.floor() as usize).min(last);
            let above = (below + 1).min(last);
            sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
        };
        let [first, median, third] = [0.25, 0.5, 0.75].map(quantile);
        let reach = 1.5 * (third - first);
        let within = || sorted.iter().copied().filter(|value| (first - reach..=third + reach).contains(value));
        let whiskers = (within().fold(first, f64::min), within().fold(third, f64::max));
        Self { first, median, third, whiskers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_numpy_and_whiskers_end_at_values() {
        // numpy.quantile([1, 2, 3, 4, 5, 20], [0.25, 0.5, 0.75]) = [2.25, 3.5, 4.75]; 20 is beyond 4.75 + 1.5 * 2.5.
        let found = Quartiles::of(&[20.0, 1.0, 3.0, 2.0, 5.0, 4.0]);
        assert_eq!(found, Quartiles { first: 2.25, median: 3.5, third: 4.75, whiskers: (1.0, 5.0) });
        let one = Quartiles::of(&[0.5]);
        assert_eq!(one, Quartiles { first: 0.5, median: 0.5, third: 0.5, whiskers: (0.5, 0.5) });
    }

    #[test]
    fn a_line_keeps_its_slope_where_it_leaves_the_axes() {
        let (x, y) = (0.0..4.0, 0.0..1.0);
        assert_eq!(inside((0.25, 0.125), &x, &y), Some([(0.0, 0.25), (4.0, 0.75)]));
        // y = x - 1 enters at 1 and leaves at 2; y = 3 - x does so at 2 and 3.
        assert_eq!(inside((-1.0, 1.0), &x, &y), Some([(1.0, 0.0), (2.0, 1.0)]));
        assert_eq!(inside((3.0, -1.0), &x, &y), Some([(2.0, 1.0), (3.0, 0.0)]));
        assert_eq!(inside((0.5, 0.0), &x, &y), Some([(0.0, 0.5), (4.0, 0.5)]));
        assert_eq!([inside((2.0, 0.0), &x, &y), inside((2.0, 1.0), &x, &y)], [None, None]);
    }

    #[test]
    fn a_figure_tells_the_medians_and_nothing_is_drawn_of_nothing() {
        let panel = |boxes| BoxPanel { title: "C <x>".to_owned(), boxes, line: Some((0.1, 0.2)) };
        let draw = |boxes| box_figure("boxes", "F", ("sigma", "F"), &[panel(boxes)]).expect("plain texts");
        let svg = draw(vec![(0.0, vec![0.25, 0.75]), (0.5, vec![])]).expect("two values");
        assert!(svg.contains("C &lt;x&gt;: medians 0.5 at 0"), "{svg}");
        assert_eq!(draw(vec![(0.0, vec![])]), None);
    }
}
