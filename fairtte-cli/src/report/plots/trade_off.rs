//! Scatter of a metric against its gap between groups: one marker per model with its intervals as a cross, fainter marks
//! for single trainings, and a line through the models on the Pareto front.

use super::super::ReportError;
use super::super::format::{elide, number, wrap};
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
/// Height of a further line of an entry of the legend.
const LINE: f64 = 14.0;
/// Where the entries of the legend begin.
const MARK: f64 = 2.0;
const LONGEST_NAME: usize = 90;

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
    /// Said in the legend, for example why it cannot be on the front; may be empty.
    pub(crate) remark: String,
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
        height: BOTTOM + LEGEND + legend_height(places),
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
        legend(canvas, places)
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

fn legend(canvas: &Canvas<'_>, places: &[Place]) -> Result<(), DrawError> {
    // Separates the legend from the axis title above.
    let mut top = BOTTOM + LEGEND - 4.0;
    canvas.line(&[(MARK, top - 3.0), (RIGHT, top - 3.0)], AXIS, 0.5)?;
    for (k, place) in places.iter().enumerate() {
        Marker::of(k).draw(canvas, (MARK + 6.0, top + ROW / 2.0), 9.0, 1.0)?;
        let lines = legend_lines(place);
        for (n, line) in lines.iter().enumerate() {
            let at = (MARK + 18.0, top + ROW / 2.0 + LINE * n as f64);
            canvas.text(line, at, Anchor::Start, Ink::new(12.0, INK))?;
        }
        top += entry_height(&lines);
    }
    Ok(())
}

/// The name of a model and what is said about it, in full.
fn legend_lines(place: &Place) -> Vec<String> {
    let remark = match (place.at, place.on_front) {
        (None, _) => "undefined",
        (_, true) => "on the front",
        _ => &place.remark,
    };
    let about = if remark.is_empty() { String::new() } else { format!(" ({remark})") };
    wrap(&format!("{}{about}", elide(&place.name, LONGEST_NAME)), fitting(WIDTH - MARK - 18.0, 12.5))
}

fn entry_height(lines: &[String]) -> f64 {
    ROW + LINE * lines.len().saturating_sub(1) as f64
}

fn legend_height(places: &[Place]) -> f64 {
    places.iter().map(|place| entry_height(&legend_lines(place))).sum()
}

fn describe(places: &[Place]) -> String {
    let say = |place: &Place| match place.at {
        Some((value, gap)) => {
            let front = if place.on_front { ", on the front" } else { "" };
            let remark = if place.remark.is_empty() { String::new() } else { format!(", {}", place.remark) };
            format!("{}: metric {}, gap {}{front}{remark}", place.name, number(value), number(gap))
        }
        None => format!("{}: undefined", place.name),
    };
    places.iter().map(say).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn the_legend_names_every_model_in_full_and_says_what_holds_of_it() {
        let place = |name: &str, on_front, remark: &str| Place {
            name: name.to_owned(),
            at: Some((0.7, 0.1)),
            across: None,
            along: None,
            on_front,
            remark: remark.to_owned(),
            single: Vec::new(),
        };
        let long = "a strategy with a long name of the settings that it was trained with";
        let places = [
            place("erm, chosen like the others", true, ""),
            place("cox", false, "not chosen"),
            Place { at: None, ..place(long, false, "") },
        ];
        assert_eq!(legend_lines(&places[0]), ["erm, chosen like the others (on the front)"]);
        assert_eq!(legend_lines(&places[1]), ["cox (not chosen)"]);
        let of_long = legend_lines(&places[2]);
        assert_eq!((of_long.len(), of_long.join(" ")), (2, format!("{long} (undefined)")));
        let svg = trade_off(&places, &Labels { metric: "C^td", direction: "", attribute: "sex" }, "id").unwrap();
        assert!(!svg.contains('…') && svg.contains("cox: metric 0.700, gap 0.100, not chosen"), "{svg}");
    }
}
