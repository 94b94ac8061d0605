//! A number as a function of the hazard ratio of the censored, with its band and tipping points.

use fairtte_metrics::evaluation::Estimate;
use fairtte_metrics::sensitivity::{MetricSensitivity, SensitivityPoint, Verdict};

use super::super::ReportError;
use super::super::format::{interval, number, short};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, padded_range, ticks,
};
use super::forest::superscript;
use super::survival::BAND_OPACITY;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 286.0;
/// Hazard ratios that may be ticks, if they are inside the axis.
const RATIOS: [f64; 15] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0];
/// Ticks closer than this many pixels overlap.
const APART: f64 = 30.0;

/// The gap of a metric, or its value over all samples if there are no groups; `None` without any value. `id` is unique on the
/// page.
pub(crate) fn sensitivity_figure(
    metric: &MetricSensitivity,
    attribute: Option<&str>,
    id: &str,
) -> Result<Option<String>, ReportError> {
    let shown = |point: &SensitivityPoint| match attribute {
        Some(_) => point.gap.clone(),
        None => Some(point.overall.clone()),
    };
    let points: Vec<(f64, Estimate)> = metric
        .points
        .iter()
        .filter_map(|point| Some((point.delta, shown(point)?)).filter(|(_, found)| found.value.is_some()))
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(None) };
    let observed = if attribute.is_some() { metric.observed.gap } else { metric.observed.overall };
    let known = points.iter().flat_map(|(_, found)| [found.value, found.lower, found.upper]).flatten();
    // A gap is shown from 0 on, where the verdict turns.
    let zero = attribute.map(|_| 0.0);
    let y = padded_range(known.chain(observed).chain(zero), 0.05);
    let y = if attribute.is_some() { 0.0..y.end } else { y };
    let x = if points.len() > 1 { first.0..last.0 } else { first.0 - 0.5..first.0 + 0.5 };
    let axes = Axes { left: 56.0, right: 504.0, top: 30.0, bottom: 240.0, x, y };
    let what = what(metric, attribute);
    let turns: Vec<f64> =
        metric.tipping.iter().filter(|of| of.verdict != Verdict::SignChanges).map(|of| of.delta).collect();
    let title = format!("{what} by hazard ratio of the censored");
    let describe = |(delta, found): &(f64, Estimate)| {
        let range = interval(found).map_or_else(String::new, |range| format!(" ({range})"));
        format!("hazard ratio {}: {}{range}", short(delta.exp()), found.value.map_or_else(String::new, number))
    };
    let description = points.iter().map(describe).collect::<Vec<_>>().join("; ");
    let figure = Figure { id, title, description, width: WIDTH, height: HEIGHT };
    let svg = figure.draw(|canvas| {
        canvas.text(&superscript(&what), (axes.left, 12.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        axes.draw_y(canvas, &ticks(&axes.y, 6), "")?;
        draw_x(canvas, &axes)?;
        if let Some(observed) = observed {
            canvas.dashed(&[axes.at(axes.x.start, observed), axes.at(axes.x.end, observed)], MUTED, 1.2, (2.0, 3.0))?;
        }
        if axes.x.contains(&0.0) {
            canvas.line(&[axes.at(0.0, axes.y.start), axes.at(0.0, axes.y.end)], AXIS, 1.0)?;
        }
        band(canvas, &axes, &points)?;
        let line: Vec<Point> = points.iter().filter_map(|(delta, found)| Some(axes.at(*delta, found.value?))).collect();
        canvas.line(&line, BLUE, 1.8)?;
        line.iter().try_for_each(|point| canvas.circle(*point, 2.8, BLUE))?;
        turns.iter().try_for_each(|delta| tipping(canvas, &axes, *delta))
    })?;
    Ok(Some(svg))
}

/// `gap of C^td by race`.
fn what(metric: &MetricSensitivity, attribute: Option<&str>) -> String {
    match attribute {
        Some(attribute) => format!("gap of {} by {attribute}", metric.label),
        None => metric.label.clone(),
    }
}

/// The axis of hazard ratios, on the scale of their logarithms.
fn draw_x(canvas: &Canvas<'_>, axes: &Axes) -> Result<(), DrawError> {
    let mut at: Vec<f64> = vec![];
    // 1 first, so that it is always there.
    let mut candidates = RATIOS;
    candidates.sort_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
    for ratio in candidates.map(f64::ln).into_iter().chain([axes.x.start, axes.x.end]) {
        let inside = (axes.x.start..=axes.x.end).contains(&ratio);
        if inside && at.iter().all(|other| (axes.x_at(*other) - axes.x_at(ratio)).abs() >= APART) {
            at.push(ratio);
        }
    }
    canvas.line(&[(axes.left, axes.bottom), (axes.right, axes.bottom)], AXIS, 1.0)?;
    for ratio in at {
        let x = axes.x_at(ratio);
        canvas.line(&[(x, axes.bottom), (x, axes.bottom + 4.0)], AXIS, 1.0)?;
        canvas.text(&tick(ratio.exp()), (x, axes.bottom + 12.0), Anchor::Middle, Ink::new(11.0, MUTED))?;
    }
    let middle = f64::midpoint(axes.left, axes.right);
    let title = "hazard ratio of who drops out, after the drop-out";
    canvas.text(title, (middle, axes.bottom + 30.0), Anchor::Middle, Ink::new(12.0, INK))
}

/// A hazard ratio in at most two significant digits.
fn tick(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 2 } else { usize::from(ratio < 10.0) };
    let digits = if (0.1..1.0).contains(&ratio) { 2 } else { digits };
    let text = format!("{ratio:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The intervals as a band, as far as they exist.
fn band(canvas: &Canvas<'_>, axes: &Axes, points: &[(f64, Estimate)]) -> Result<(), DrawError> {
    let ends = |(delta, found): &(f64, Estimate)| Some((*delta, found.lower?, found.upper?));
    let known: Vec<(f64, f64, f64)> = points.iter().filter_map(ends).collect();
    if known.len() < 2 {
        return Ok(());
    }
    let upper = known.iter().map(|(delta, _, upper)| axes.at(*delta, *upper));
    let lower = known.iter().rev().map(|(delta, lower, _)| axes.at(*delta, *lower));
    canvas.polygon(&upper.chain(lower).collect::<Vec<_>>(), BLUE, BAND_OPACITY)
}

/// A tipping point: a line with its hazard ratio above it.
fn tipping(canvas: &Canvas<'_>, axes: &Axes, delta: f64) -> Result<(), DrawError> {
    let colour = GROUP_COLOURS[1];
    canvas.dashed(&[axes.at(delta, axes.y.start), axes.at(delta, axes.y.end)], colour, 1.8, (6.0, 4.0))?;
    let x = axes.x_at(delta);
    let near_the_end = x > axes.right - 84.0;
    let (anchor, x) = if near_the_end { (Anchor::End, x - 4.0) } else { (Anchor::Start, x + 4.0) };
    let text = format!("turns at {}", short_ratio(delta));
    // Letters in the colour of the line would be too pale to be read.
    canvas.text(&text, (x, axes.top + 6.0), anchor, Ink::new(11.0, INK).bold())
}

/// exp(delta) in two decimals.
fn short_ratio(delta: f64) -> String {
    format!("{:.2}", delta.exp())
}
