//! Scatter of a metric against its gap between groups: one marker per model with its intervals as a cross, fainter marks
//! for single trainings, and a line through the models on the Pareto front.

use super::super::ReportError;
use super::super::format::{elide, number};
use super::canvas::{AXIS, Anchor, Axes, Canvas, DrawError, Figure, INK, Ink, MUTED, fitting, padded_range, ticks};
use super::forest::superscript;
use super::marker::Marker;

const WIDTH: f64 = 340.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 330.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 218.0;
/// From the axis to the first line of the legend.
const LEGEND: f64 = 52.0;
const ROW: f64 = 18.0;

/// One model in the figure.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// The metric and the gap; `None` if one of them does not exist.
    pub(crate) at: Option<(f64, f64)>,
    /// Ends of the bar of the metric.
    pub(crate) across: Option<(f64, f64)>,
    /// Ends of the bar of the gap.
    pub(crate) along: Option<(f64, f64)>,
    pub(crate) on_front: bool,
    /// Metric and gap of single trainings.
    pub(crate) single: Vec<(f64, f64)>,
}

/// Texts of the figure.
pub(crate) struct Labels<'a> {
    /// Short name of the metric.
    pub(crate) metric: &'a str,
    /// `higher is better`, ..
    pub(crate) direction: &'a str,
    pub(crate) attribute: &'a str,
}

/// The figure; `id` is unique on the page.
pub(crate) fn trade_off(places: &[Place], labels: &Labels<'_>, id: &str) -> Result<String, ReportError> {
    let Labels { metric, direction, attribute } = labels;
    let xs =
        places.iter().flat_map(|place| ends(place.at.map(|at| at.0), place.across, place.single.iter().map(|s| s.0)));
    let ys =
        places.iter().flat_map(|place| ends(place.at.map(|at| at.1), place.along, place.single.iter().map(|s| s.1)));
    let y = padded_range(ys.chain([0.0]), 0.06);
    let axes = Axes {
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: BOTTOM,
        x: padded_range(xs, 0.08),
        y: y.start.max(0.0)..y.end,
    };
    let figure = Figure {
        id,
        title: format!("{metric} against its gap by {attribute}"),
        description: describe(places),
        width: WIDTH,
        height: BOTTOM + LEGEND + ROW * places.len() as f64,
    };
    figure.draw(|canvas| {
        axes.draw_y(canvas, &ticks(&axes.y, 5), &format!("gap by {} (0 = equal)", elide(attribute, 22)))?;
        axes.draw_x(canvas, &ticks(&axes.x, 5), &format!("{} ({direction})", superscript(metric)))?;
        front(canvas, &axes, places)?;
        for (k, place) in places.iter().enumerate() {
            for (x, y) in &place.single {
                Marker::of(k).draw(canvas, axes.at(*x, *y), 7.0, 0.35)?;
            }
        }
        for (k, place) in places.iter().enumerate() {
            cross(canvas, &axes, place, Marker::of(k))?;
        }
        places.iter().enumerate().try_for_each(|(k, place)| legend(canvas, k, place))
    })
}

fn ends(value: Option<f64>, bar: Option<(f64, f64)>, single: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    value.into_iter().chain(bar.into_iter().flat_map(|(lower, upper)| [lower, upper])).chain(single)
}

/// The line through the models on the front, from left to right.
fn front(canvas: &Canvas<'_>, axes: &Axes, places: &[Place]) -> Result<(), DrawError> {
    let mut points: Vec<(f64, f64)> =
        places.iter().filter(|place| place.on_front).filter_map(|place| place.at).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let points: Vec<_> = points.into_iter().map(|(x, y)| axes.at(x, y)).collect();
    if points.len() > 1 { canvas.dashed(&points, MUTED, 1.4, (5.0, 3.0)) } else { Ok(()) }
}

fn cross(canvas: &Canvas<'_>, axes: &Axes, place: &Place, marker: Marker) -> Result<(), DrawError> {
    let Some((x, y)) = place.at else { return Ok(()) };
    if let Some((lower, upper)) = place.across {
        canvas.line(&[axes.at(lower, y), axes.at(upper, y)], marker.colour, 1.2)?;
    }
    if let Some((lower, upper)) = place.along {
        canvas.line(&[axes.at(x, lower.max(0.0)), axes.at(x, upper)], marker.colour, 1.2)?;
    }
    marker.draw(canvas, axes.at(x, y), 11.0, 1.0)
}

fn legend(canvas: &Canvas<'_>, k: usize, place: &Place) -> Result<(), DrawError> {
    let y = BOTTOM + LEGEND + ROW * (k as f64 + 0.5) - 4.0;
    Marker::of(k).draw(canvas, (LEFT + 6.0, y), 9.0, 1.0)?;
    let about = match (place.at, place.on_front) {
        (None, _) => ": undefined",
        (_, true) => " (on the front)",
        _ => "",
    };
    let name = elide(&place.name, fitting(RIGHT - LEFT - 24.0, 12.5) - about.len());
    canvas.text(&format!("{name}{about}"), (LEFT + 18.0, y), Anchor::Start, Ink::new(12.0, INK))?;
    // Separates the legend from the axis title above.
    if k == 0 { canvas.line(&[(LEFT, y - ROW / 2.0 - 3.0), (RIGHT, y - ROW / 2.0 - 3.0)], AXIS, 0.5) } else { Ok(()) }
}

fn describe(places: &[Place]) -> String {
    let say = |place: &Place| match place.at {
        Some((value, gap)) => {
            let front = if place.on_front { ", on the front" } else { "" };
            format!("{}: metric {}, gap {}{front}", place.name, number(value), number(gap))
        }
        None => format!("{}: undefined", place.name),
    };
    places.iter().map(say).collect::<Vec<_>>().join("; ")
}
