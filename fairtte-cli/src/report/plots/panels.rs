//! Figures of several panels below each other or side by side: dots in named rows, and points or lines between two axes.
//!
//! Narrow, so that texts stay readable where a figure is shrunk to the width of a phone.

use std::ops::Range;

use serde::Serialize;

use super::super::ReportError;
use super::super::format::{elide, short};
use super::canvas::{
    AXIS, Anchor, Axes, Canvas, DrawError, Figure, GRID, INK, Ink, MUTED, fitting, padded_range, ticks,
};
use super::forest::superscript;
use super::marker::Marker;

const WIDTH: f64 = 460.0;
const TEXT: f64 = 12.0;
const SMALL: f64 = 11.0;
/// Height of a line of text.
const LINE: f64 = 16.0;

/// A figure of a study.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// Stem of its file, unique on the page.
    pub(crate) name: String,
    pub(crate) title: String,
    /// What is shown, with the numbers of trials, pairs and events behind it.
    pub(crate) caption: String,
    /// What colour and shape of a mark mean; marks name them by place.
    pub(crate) series: Vec<String>,
    pub(crate) panels: Panels,
}

/// The name of its file.
impl Serialize for Chart {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

/// The panels of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Panels {
    /// Marks in named rows over one axis.
    Rows { axis: String, zero: bool, panels: Vec<RowPanel> },
    /// Marks between two axes.
    Plane { diagonal: bool, lines: bool, panels: Vec<PlanePanel> },
}

/// Rows under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowPanel {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, Vec<Dot>)>,
}

/// A value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) series: usize,
    pub(crate) value: f64,
    /// Ends of its interval.
    pub(crate) interval: Option<(f64, f64)>,
}

/// Points between two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlanePanel {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    /// Place of the series, and the point.
    pub(crate) points: Vec<(usize, (f64, f64))>,
}

/// The figure; `None` if there is no value.
///
/// # Errors
/// [`ReportError`] if it cannot be drawn.
pub(crate) fn chart(chart: &Chart) -> Result<Option<String>, ReportError> {
    if chart.n_marks() == 0 {
        return Ok(None);
    }
    let legend = legend_height(chart);
    let height = match &chart.panels {
        Panels::Rows { panels, .. } => rows_height(panels),
        Panels::Plane { panels, .. } => panels.len().div_ceil(COLUMNS) as f64 * PLANE,
    };
    let figure = Figure {
        id: &chart.name,
        title: chart.title.clone(),
        description: describe(chart),
        width: WIDTH,
        height: height + legend,
    };
    let drawn = figure.draw(|canvas| {
        draw_legend(canvas, chart)?;
        match &chart.panels {
            Panels::Rows { axis, zero, panels } => draw_rows(canvas, legend, (axis, *zero), panels),
            Panels::Plane { diagonal, lines, panels } => panels
                .iter()
                .enumerate()
                .try_for_each(|(k, panel)| draw_plane(canvas, (k, legend), (*diagonal, *lines), panel)),
        }
    })?;
    Ok(Some(drawn))
}

impl Chart {
    /// Marks that are drawn.
    pub(crate) fn n_marks(&self) -> usize {
        match &self.panels {
            Panels::Rows { panels, .. } => {
                panels.iter().flat_map(|panel| &panel.rows).map(|(_, dots)| dots.len()).sum()
            }
            Panels::Plane { panels, .. } => panels.iter().map(|panel| panel.points.len()).sum(),
        }
    }
}

fn describe(chart: &Chart) -> String {
    let name = |series: usize| chart.series.get(series).map(|name| format!("{name} ")).unwrap_or_default();
    let found: Vec<String> = match &chart.panels {
        Panels::Rows { panels, .. } => panels
            .iter()
            .flat_map(|panel| panel.rows.iter().map(move |row| (panel, row)))
            .map(|(panel, (row, dots))| {
                let interval = |dot: &Dot| {
                    let said = |(low, high)| format!(" ({} to {})", short(low), short(high));
                    dot.interval.map(said).unwrap_or_default()
                };
                let value = |dot: &Dot| format!("{}{}{}", name(dot.series), short(dot.value), interval(dot));
                let values: Vec<String> = dots.iter().map(value).collect();
                format!("{} {row}: {}", panel.title, values.join(", "))
            })
            .collect(),
        Panels::Plane { panels, .. } => panels
            .iter()
            .map(|panel| {
                let point =
                    |(series, (x, y)): &(usize, (f64, f64))| format!("{}{} to {}", name(*series), short(*x), short(*y));
                format!("{}: {}", panel.title, panel.points.iter().map(point).collect::<Vec<_>>().join(", "))
            })
            .collect(),
    };
    found.join("; ")
}

/// The places of the entries of the legend, which continue in the next line where one does not fit.
fn legend_places(chart: &Chart) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (4.0, LINE / 2.0 + 2.0);
    let mut places = Vec::new();
    for name in &chart.series {
        let width = 22.0 + TEXT * 0.56 * name.chars().count().min(fitting(WIDTH - 40.0, TEXT)) as f64 + 12.0;
        if x > 4.0 && x + width > WIDTH {
            (x, y) = (4.0, y + LINE);
        }
        places.push((x, y));
        x += width;
    }
    places
}

fn legend_height(chart: &Chart) -> f64 {
    legend_places(chart).last().map_or(0.0, |(_, y)| y + LINE / 2.0 + 4.0)
}

fn draw_legend(canvas: &Canvas<'_>, chart: &Chart) -> Result<(), DrawError> {
    for (k, (name, (x, y))) in chart.series.iter().zip(legend_places(chart)).enumerate() {
        Marker::of(k).draw(canvas, (x + 6.0, y), 9.0, 1.0)?;
        let name = elide(name, fitting(WIDTH - 40.0, TEXT));
        canvas.text(&name, (x + 16.0, y), Anchor::Start, Ink::new(TEXT, INK))?;
    }
    Ok(())
}

/// Room for the names of rows.
const NAMES: f64 = 156.0;
/// Height of a row with one mark; every further series needs more.
const ROW: f64 = 22.0;
const MARK: f64 = 7.0;
/// Below the last row, for the axis.
const BELOW: f64 = 46.0;

fn row_height(dots: &[Dot]) -> f64 {
    let n = lanes(dots);
    ROW + MARK * n.saturating_sub(1) as f64
}

/// Heights at which marks are drawn, one per series of the row.
fn lanes(dots: &[Dot]) -> usize {
    let mut series: Vec<usize> = dots.iter().map(|dot| dot.series).collect();
    series.sort_unstable();
    series.dedup();
    series.len()
}

fn rows_height(panels: &[RowPanel]) -> f64 {
    let panel = |panel: &RowPanel| {
        let title = if panel.title.is_empty() { 0.0 } else { LINE + 6.0 };
        title + panel.rows.iter().map(|(_, dots)| row_height(dots)).sum::<f64>()
    };
    panels.iter().map(panel).sum::<f64>() + BELOW
}

fn draw_rows(canvas: &Canvas<'_>, top: f64, (title, zero): (&str, bool), panels: &[RowPanel]) -> Result<(), DrawError> {
    let bottom = top + rows_height(panels) - BELOW + 4.0;
    let dots = || panels.iter().flat_map(|panel| &panel.rows).flat_map(|(_, dots)| dots);
    let ends = |dot: &Dot| [dot.value].into_iter().chain(dot.interval.into_iter().flat_map(|(a, b)| [a, b]));
    let values = dots().flat_map(ends).chain(zero.then_some(0.0));
    let axes = Axes { left: NAMES, right: WIDTH - 12.0, top, bottom, x: padded_range(values, 0.05), y: 0.0..1.0 };
    let round = ticks(&axes.x, 6);
    for tick in &round {
        canvas.line(&[axes.at(*tick, 0.0), axes.at(*tick, 1.0)], GRID, 1.0)?;
    }
    if zero {
        canvas.line(&[axes.at(0.0, 0.0), axes.at(0.0, 1.0)], AXIS, 1.2)?;
    }
    axes.draw_x(canvas, &round, &superscript(title))?;
    let mut y = top;
    for panel in panels {
        if !panel.title.is_empty() {
            let title = elide(&superscript(&panel.title), fitting(NAMES, TEXT) * 3);
            canvas.text(&title, (2.0, y + LINE / 2.0 + 4.0), Anchor::Start, Ink::new(TEXT, INK).bold())?;
            y += LINE + 6.0;
        }
        for (name, dots) in &panel.rows {
            let height = row_height(dots);
            let shown = elide(name, fitting(NAMES - 14.0, TEXT));
            canvas.text(&shown, (8.0, y + height / 2.0), Anchor::Start, Ink::new(TEXT, INK))?;
            draw_row(canvas, &axes, dots, (y, height))?;
            y += height;
        }
    }
    Ok(())
}

fn draw_row(canvas: &Canvas<'_>, axes: &Axes, dots: &[Dot], (y, height): (f64, f64)) -> Result<(), DrawError> {
    let mut series: Vec<usize> = dots.iter().map(|dot| dot.series).collect();
    series.sort_unstable();
    series.dedup();
    let first = y + height / 2.0 - MARK * series.len().saturating_sub(1) as f64 / 2.0;
    for dot in dots {
        let lane = series.iter().position(|one| *one == dot.series).unwrap_or_default();
        let middle = first + MARK * lane as f64;
        let marker = Marker::of(dot.series);
        if let Some((low, high)) = dot.interval {
            canvas.line(&[(axes.x_at(low), middle), (axes.x_at(high), middle)], marker.colour, 1.2)?;
        }
        marker.draw(canvas, (axes.x_at(dot.value), middle), 8.5, 0.85)?;
    }
    Ok(())
}

const COLUMNS: usize = 2;
/// Height of a panel between two axes, with its texts.
const PLANE: f64 = 232.0;

fn draw_plane(
    canvas: &Canvas<'_>,
    (place, legend): (usize, f64),
    (is_diagonal, is_joined): (bool, bool),
    panel: &PlanePanel,
) -> Result<(), DrawError> {
    let (column, row) = ((place % COLUMNS) as f64, (place / COLUMNS) as f64);
    let (left, top) = (column * WIDTH / COLUMNS as f64, legend + row * PLANE);
    let (across, along) = panel.points.iter().map(|(_, point)| *point).unzip::<f64, f64, Vec<f64>, Vec<f64>>();
    let (x, y): (Range<f64>, Range<f64>) = if is_diagonal {
        // The same scale on both, so that the distance from the diagonal can be read.
        let both = padded_range(across.into_iter().chain(along), 0.08);
        (both.clone(), both)
    } else {
        (padded_range(across.into_iter(), 0.06), padded_range(along.into_iter(), 0.1))
    };
    let axes = Axes {
        left: left + 56.0,
        right: left + WIDTH / COLUMNS as f64 - 10.0,
        top: top + 26.0,
        bottom: top + 184.0,
        x,
        y,
    };
    let title = elide(&superscript(&panel.title), fitting(WIDTH / COLUMNS as f64 - 14.0, TEXT));
    canvas.text(&title, (left + 12.0, top + 12.0), Anchor::Start, Ink::new(TEXT, INK).bold())?;
    axes.draw_y(canvas, &ticks(&axes.y, 5), &panel.y)?;
    axes.draw_x(canvas, &ticks(&axes.x, 4), &panel.x)?;
    if panel.points.is_empty() {
        let middle = (f64::midpoint(axes.left, axes.right), f64::midpoint(axes.top, axes.bottom));
        return canvas.text("no value", middle, Anchor::Middle, Ink::new(SMALL, MUTED).italic());
    }
    if is_diagonal {
        let ends = [axes.at(axes.x.start, axes.y.start), axes.at(axes.x.end, axes.y.end)];
        canvas.dashed(&ends, AXIS, 1.2, (5.0, 3.0))?;
    }
    if is_joined {
        let mut series: Vec<usize> = panel.points.iter().map(|(series, _)| *series).collect();
        series.sort_unstable();
        series.dedup();
        for one in series {
            let points: Vec<(f64, f64)> =
                panel.points.iter().filter(|(series, _)| *series == one).map(|(_, (x, y))| axes.at(*x, *y)).collect();
            canvas.line(&points, Marker::of(one).colour, 1.4)?;
        }
    }
    panel.points.iter().try_for_each(|(series, (x, y))| Marker::of(*series).draw(canvas, axes.at(*x, *y), 8.5, 0.85))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Chart {
        let dot = |series, value| Dot { series, value, interval: None };
        let row = |name: &str, dots| (name.to_owned(), dots);
        let with = Dot { interval: Some((0.4, 0.9)), ..dot(1, 0.7) };
        let panel = RowPanel {
            title: "films <sex>: 3 and 4 events".to_owned(),
            rows: vec![row("pmf", vec![dot(0, 0.5), with]), row("deephit", Vec::new())],
        };
        Chart {
            name: "groups-c-td".to_owned(),
            title: "C^td".to_owned(),
            caption: String::new(),
            series: vec!["F".to_owned(), "M".to_owned()],
            panels: Panels::Rows { axis: "C^td".to_owned(), zero: false, panels: vec![panel] },
        }
    }

    #[test]
    fn every_value_is_a_mark_and_is_told() {
        let svg = chart(&rows()).expect("plain texts").expect("two values");
        assert_eq!(svg.matches("<polygon").count(), 2 + 2, "two values, two entries of the legend");
        assert!(svg.contains("films &lt;sex&gt;: 3 and 4 events pmf: F 0.5, M 0.7"), "{svg}");
        assert!(svg.contains("deephit") && svg.contains("id=\"groups-c-td-title\""), "{svg}");
    }

    #[test]
    fn the_diagonal_has_one_scale_and_nothing_is_drawn_of_nothing() {
        let panel = PlanePanel { points: vec![(0, (0.1, 0.9)), (1, (0.3, 0.2))], ..PlanePanel::default() };
        let plane = |diagonal, points| {
            let panel = PlanePanel { points, ..panel.clone() };
            Chart { panels: Panels::Plane { diagonal, lines: false, panels: vec![panel] }, ..rows() }
        };
        let with = chart(&plane(true, panel.points.clone())).expect("plain").expect("points");
        let without = chart(&plane(false, panel.points.clone())).expect("plain").expect("points");
        assert!(
            with.matches("<line").count() + with.matches("<polyline").count()
                > without.matches("<line").count() + without.matches("<polyline").count(),
            "dashes"
        );
        assert_eq!(chart(&plane(true, Vec::new())).expect("plain"), None);
    }
}
