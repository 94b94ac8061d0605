//! A value against another value of the same things, with the diagonal on which both are equal.

use super::super::ReportError;
use super::super::format::{elide, number};
use super::canvas::{AXIS, Anchor, Axes, Canvas, DrawError, Figure, INK, Ink, fitting, padded_range, ticks};
use super::forest::superscript;
use super::marker::Marker;

const WIDTH: f64 = 340.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 330.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 240.0;
const LEGEND: f64 = 48.0;
const LINE: f64 = 18.0;
const SIZE: f64 = 12.0;

/// What is drawn, and its texts.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    /// Name and both values.
    pub(crate) points: Vec<(String, Option<(f64, f64)>)>,
}

/// The figure; `id` is unique on the page.
///
/// # Errors
/// [`ReportError::Plot`] if it cannot be drawn.
pub(crate) fn scatter(about: &Scatter, id: &str) -> Result<String, ReportError> {
    let values = about.points.iter().filter_map(|point| point.1);
    // One scale for both axes, so that the diagonal is one.
    let range = padded_range(values.flat_map(|(x, y)| [x, y]), 0.08);
    let axes = Axes { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM, x: range.clone(), y: range.clone() };
    let figure = Figure {
        id,
        title: about.title.clone(),
        description: describe(about),
        width: WIDTH,
        height: BOTTOM + LEGEND + LINE * about.points.len() as f64,
    };
    figure.draw(|canvas| {
        axes.draw_y(canvas, &ticks(&axes.y, 5), &superscript(&about.y))?;
        axes.draw_x(canvas, &ticks(&axes.x, 5), &superscript(&about.x))?;
        let ends = [axes.at(range.start, range.start), axes.at(range.end, range.end)];
        canvas.dashed(&ends, AXIS, 1.2, (5.0, 3.0))?;
        for (k, (_, point)) in about.points.iter().enumerate() {
            if let Some((x, y)) = point {
                Marker::of(k).draw(canvas, axes.at(*x, *y), 10.0, 1.0)?;
            }
        }
        about.points.iter().enumerate().try_for_each(|(k, point)| legend(canvas, k, point))
    })
}

fn legend(canvas: &Canvas<'_>, k: usize, (name, point): &(String, Option<(f64, f64)>)) -> Result<(), DrawError> {
    let y = BOTTOM + LEGEND + LINE * (k as f64 + 0.5) - 4.0;
    Marker::of(k).draw(canvas, (LEFT + 4.0, y), 9.0, 1.0)?;
    let about = if point.is_none() { ": undefined" } else { "" };
    let name = elide(name, fitting(RIGHT - LEFT - 18.0, SIZE) - about.len());
    canvas.text(&format!("{name}{about}"), (LEFT + 16.0, y), Anchor::Start, Ink::new(SIZE, INK))
}

fn describe(about: &Scatter) -> String {
    let say = |(name, point): &(String, Option<(f64, f64)>)| match point {
        Some((x, y)) => format!("{name}: {} and {}", number(*x), number(*y)),
        None => format!("{name}: undefined"),
    };
    about.points.iter().map(say).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_axes_have_one_scale_and_undefined_points_are_said() {
        let about = Scatter {
            title: "C^td".to_owned(),
            x: "unshifted".to_owned(),
            y: "shifted".to_owned(),
            points: vec![("erm".to_owned(), Some((0.7, 0.6))), ("sam".to_owned(), None)],
        };
        let svg = scatter(&about, "s").expect("the texts are plain");
        assert!(svg.contains("erm: 0.700 and 0.600; sam: undefined"), "{svg}");
        assert_eq!(svg.matches("<polygon").count(), 3, "a point and two entries of the legend");
    }
}
