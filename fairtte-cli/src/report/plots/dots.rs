//! Markers of several series in a row per category, with intervals: groups by head, settings by strategy.

use super::super::ReportError;
use super::super::format::{elide, number};
use super::canvas::{AXIS, Anchor, Axes, Canvas, DrawError, Figure, INK, Ink, MUTED, fitting, padded_range, ticks};
use super::forest::superscript;
use super::marker::Marker;

const WIDTH: f64 = 360.0;
const RIGHT: f64 = 348.0;
const TOP: f64 = 8.0;
/// Widest column of categories.
const WIDEST: f64 = 132.0;
const SIZE: f64 = 12.0;
/// Height that a series takes of a row, and of a row of one series.
const PER_SERIES: f64 = 10.0;
const ROW: f64 = 22.0;
/// From the axis to the first line of the legend, and between its lines.
const LEGEND: f64 = 48.0;
const LINE: f64 = 18.0;

/// A value with its interval, if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

/// Values of the categories, in their order; `None` where there is none.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) dots: Vec<Option<Dot>>,
}

/// What is drawn, and its texts.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    pub(crate) title: String,
    /// Title of the axis of values.
    pub(crate) axis: String,
    pub(crate) categories: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// A value that means no difference, drawn as a line.
    pub(crate) reference: Option<f64>,
}

/// The figure; `id` is unique on the page.
///
/// # Errors
/// [`ReportError::Plot`] if it cannot be drawn.
pub(crate) fn dots(about: &Dots, id: &str) -> Result<String, ReportError> {
    let longest = about.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let column = (SIZE * 0.56 * longest as f64).min(WIDEST);
    let row = ROW.max(PER_SERIES * about.series.len() as f64 + 8.0);
    let all = about.series.iter().flat_map(|series| series.dots.iter().flatten());
    let ends = all.flat_map(|dot| [Some(dot.value), dot.interval.map(|of| of.0), dot.interval.map(|of| of.1)]);
    let axes = Axes {
        left: column + 16.0,
        right: RIGHT,
        top: TOP,
        bottom: TOP + row * about.categories.len() as f64,
        x: padded_range(ends.flatten().chain(about.reference), 0.06),
        y: 0.0..1.0,
    };
    let n_legend = if about.series.len() > 1 { about.series.len() } else { 0 };
    let figure = Figure {
        id,
        title: about.title.clone(),
        description: describe(about),
        width: WIDTH,
        height: axes.bottom + if n_legend > 0 { LEGEND + LINE * n_legend as f64 } else { LEGEND - 6.0 },
    };
    figure.draw(|canvas| {
        axes.draw_x(canvas, &ticks(&axes.x, 5), &superscript(&about.axis))?;
        if let Some(reference) = about.reference {
            let x = axes.x_at(reference);
            canvas.dashed(&[(x, axes.top), (x, axes.bottom)], AXIS, 1.0, (4.0, 3.0))?;
        }
        for (c, category) in about.categories.iter().enumerate() {
            let middle = TOP + row * (c as f64 + 0.5);
            let name = elide(category, fitting(WIDEST, SIZE));
            canvas.text(&name, (axes.left - 8.0, middle), Anchor::End, Ink::new(SIZE, INK))?;
            if c > 0 {
                let y = TOP + row * c as f64;
                canvas.line(&[(axes.left, y), (axes.right, y)], super::canvas::GRID, 1.0)?;
            }
            values(canvas, &axes, about, c, middle)?;
        }
        (0..n_legend).try_for_each(|k| legend(canvas, &axes, k, &about.series[k].name))
    })
}

/// The markers of a category, one below the other.
fn values(canvas: &Canvas<'_>, axes: &Axes, about: &Dots, category: usize, middle: f64) -> Result<(), DrawError> {
    let n = about.series.len() as f64;
    for (k, series) in about.series.iter().enumerate() {
        let y = middle + PER_SERIES * (k as f64 - (n - 1.0) / 2.0);
        let Some(Some(dot)) = series.dots.get(category) else { continue };
        if let Some((lower, upper)) = dot.interval {
            canvas.line(&[(axes.x_at(lower), y), (axes.x_at(upper), y)], Marker::of(k).colour, 1.4)?;
        }
        Marker::of(k).draw(canvas, (axes.x_at(dot.value), y), 9.0, 1.0)?;
    }
    Ok(())
}

fn legend(canvas: &Canvas<'_>, axes: &Axes, k: usize, name: &str) -> Result<(), DrawError> {
    let y = axes.bottom + LEGEND + LINE * (k as f64 + 0.5) - 4.0;
    Marker::of(k).draw(canvas, (axes.left + 4.0, y), 9.0, 1.0)?;
    let name = elide(name, fitting(RIGHT - axes.left - 18.0, SIZE));
    canvas.text(&name, (axes.left + 16.0, y), Anchor::Start, Ink::new(SIZE, MUTED))
}

fn describe(about: &Dots) -> String {
    let say = |(c, category): (usize, &String)| {
        let of = |series: &Series| {
            let dot = series.dots.get(c).copied().flatten();
            let value = dot.map_or_else(|| "undefined".to_owned(), |dot| number(dot.value));
            let interval = dot.and_then(|dot| dot.interval);
            let interval = interval.map_or_else(String::new, |(a, b)| format!(" ({} to {})", number(a), number(b)));
            format!("{} {value}{interval}", series.name)
        };
        format!("{category}: {}", about.series.iter().map(of).collect::<Vec<_>>().join(", "))
    };
    about.categories.iter().enumerate().map(say).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_marker_and_every_interval_a_line() {
        let dot = |value: f64, interval| Some(Dot { value, interval });
        let series = |name: &str, dots: [Option<Dot>; 2]| Series { name: name.to_owned(), dots: dots.to_vec() };
        let mut about = Dots {
            title: "C^td by head".to_owned(),
            axis: "C^td".to_owned(),
            categories: vec!["pmf".to_owned(), "<deephit>".to_owned()],
            series: vec![
                series("F", [dot(0.6, Some((0.5, 0.7))), dot(0.55, None)]),
                series("M", [dot(0.7, None), None]),
            ],
            reference: None,
        };
        let svg = dots(&about, "groups-c-td").expect("the texts are plain");
        assert!(svg.contains("pmf: F 0.600 (0.500 to 0.700), M 0.700; &lt;deephit&gt;: F 0.550, M undefined"), "{svg}");
        // Three values and two entries of the legend.
        assert_eq!(svg.matches("<polygon").count(), 5, "{svg}");
        let intervals = |svg: &str| svg.matches("stroke=\"#0072B2\"").count();
        assert_eq!(intervals(&svg), 1, "{svg}");
        about.series[0].dots[0] = dot(0.6, None);
        let without = dots(&about, "groups-c-td").expect("the texts are plain");
        assert_eq!(intervals(&without), 0);
        about.reference = Some(0.5);
        let with = dots(&about, "groups-c-td").expect("the texts are plain");
        assert!(with.len() > without.len(), "the reference");
    }
}
