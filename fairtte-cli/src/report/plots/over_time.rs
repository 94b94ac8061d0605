//! AUC and Brier score over time, with pointwise bands.

use fairtte_metrics::evaluation::{OverTime, OverTimeCurve};
use fairtte_metrics::{Direction, EvaluationReport};
use plotters::style::RGBColor;

use super::super::ReportError;
use super::super::format::{count, elide, number, short};
use super::super::words::FEW_EVENTS;
use super::by_attribute::{GroupFigure, GroupPanels, by_attribute};
use super::calibration::DASHES;
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, fitting, padded_range,
    ticks,
};
use super::survival::BAND_OPACITY;

/// One figure for the whole sample, then one per attribute, with the panels of all metrics.
pub(crate) fn over_time_figures(report: &EvaluationReport, time_unit: &str) -> Result<Vec<GroupFigure>, ReportError> {
    let mut figures: Vec<GroupFigure> = Vec::new();
    for metric in &report.over_time {
        let prefix = format!("{}-over-time", metric.metric);
        for found in by_attribute(&prefix, &metric.curves, &Style { metric, time_unit, y: range_of(metric) })? {
            match figures.iter_mut().find(|figure| figure.attribute == found.attribute) {
                Some(figure) => {
                    figure.panels.extend(found.panels);
                    figure.folded.extend(found.folded);
                }
                None => figures.push(found),
            }
        }
    }
    Ok(figures)
}

/// Of the values, and of the intervals of groups with enough events: those of few events would squeeze all others.
fn range_of(metric: &OverTime) -> std::ops::Range<f64> {
    let values = metric.curves.iter().flat_map(|curve| curve.value.iter().flatten());
    let enough = metric.curves.iter().filter(|curve| curve.n_events >= FEW_EVENTS);
    let ends = enough.flat_map(|curve| curve.lower.iter().chain(&curve.upper).flatten());
    let neutral = if metric.higher_is_better { 0.5 } else { 0.0 };
    let padded = padded_range(values.chain(ends).copied().chain([neutral]), 0.04);
    padded.start.max(0.0)..padded.end.min(1.0)
}

struct Style<'a> {
    metric: &'a OverTime,
    time_unit: &'a str,
    y: std::ops::Range<f64>,
}

impl GroupPanels for Style<'_> {
    type Group = OverTimeCurve;

    fn attribute(group: &OverTimeCurve) -> Option<&str> {
        group.attribute.as_deref()
    }

    fn name(group: &OverTimeCurve) -> &str {
        name_of(group)
    }

    fn is_folded(group: &OverTimeCurve) -> bool {
        group.n_events < FEW_EVENTS
    }

    fn overlaid(&self, groups: &[OverTimeCurve], id: &str) -> Result<String, ReportError> {
        let axes = self.axes([52.0, 356.0, 30.0, 230.0]);
        let of = groups[0].attribute.as_ref().map_or_else(String::new, |attribute| format!(" by {attribute}"));
        let figure =
            Figure { id, title: self.title(&of), description: self.describe(groups), width: 520.0, height: 274.0 };
        figure.draw(|canvas| {
            canvas.text(&self.label(), (axes.left, 12.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
            self.draw_axes(canvas, &axes, 6)?;
            for (group, colour) in groups.iter().zip(GROUP_COLOURS) {
                band(canvas, &axes, &self.metric.times, group, colour)?;
            }
            for (k, (group, colour)) in groups.iter().zip(GROUP_COLOURS).enumerate() {
                self.line(canvas, &axes, group, colour, k)?;
                let (x, y) = (axes.right + 10.0, axes.top + 10.0 + 38.0 * k as f64);
                stroke(canvas, &[(x, y), (x + 20.0, y)], colour, k)?;
                let name = elide(name_of(group), fitting(520.0 - x - 26.0, 12.5));
                canvas.text(&name, (x + 26.0, y), Anchor::Start, Ink::new(12.0, INK).bold())?;
                canvas.text(&counts(group), (x + 26.0, y + 15.0), Anchor::Start, Ink::new(11.0, MUTED))?;
            }
            Ok(())
        })
    }

    /// One group, with the whole sample in grey behind it.
    fn small(&self, group: &OverTimeCurve, id: &str) -> Result<String, ReportError> {
        let axes = self.axes([38.0, 232.0, 54.0, 170.0]);
        let description = self.describe(std::slice::from_ref(group));
        let title = self.title(&format!(": {}", name_of(group)));
        Figure { id, title, description, width: 252.0, height: 214.0 }.draw(|canvas| {
            let name = elide(name_of(group), fitting(axes.right - axes.left, 12.5));
            canvas.text(&name, (axes.left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
            canvas.text(&counts(group), (axes.left, 24.0), Anchor::Start, Ink::new(11.0, MUTED))?;
            canvas.text(&self.label(), (axes.left, 39.0), Anchor::Start, Ink::new(11.0, MUTED))?;
            self.draw_axes(canvas, &axes, 4)?;
            for run in runs(&axes, &self.metric.times, &self.metric.curves[0].value) {
                canvas.line(&run, AXIS, 1.2)?;
            }
            band(canvas, &axes, &self.metric.times, group, BLUE)?;
            self.line(canvas, &axes, group, BLUE, 0)
        })
    }
}

impl Style<'_> {
    fn axes(&self, [left, right, top, bottom]: [f64; 4]) -> Axes {
        let times = &self.metric.times;
        let x = match times[..] {
            [only] => padded_range([only].into_iter(), 0.1),
            _ => times[0]..times[times.len() - 1],
        };
        Axes { left, right, top, bottom, x, y: self.y.clone() }
    }

    fn label(&self) -> String {
        let better = if self.direction() == Direction::HigherIsBetter { "higher" } else { "lower" };
        format!("{}(t), {better} is better", self.metric.label)
    }

    fn direction(&self) -> Direction {
        if self.metric.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter }
    }

    fn title(&self, of: &str) -> String {
        format!("{} over time{of}", self.metric.label)
    }

    fn draw_axes(&self, canvas: &Canvas<'_>, axes: &Axes, n_ticks: usize) -> Result<(), DrawError> {
        axes.draw_y(canvas, &ticks(&axes.y, n_ticks), "")?;
        let unit = if self.time_unit.is_empty() { String::new() } else { format!(" ({})", self.time_unit) };
        axes.draw_x(canvas, &ticks(&axes.x, n_ticks + 1), &format!("time{unit}"))?;
        if self.metric.higher_is_better {
            canvas.dashed(&[axes.at(axes.x.start, 0.5), axes.at(axes.x.end, 0.5)], AXIS, 1.2, (2.0, 3.0))?;
        }
        Ok(())
    }

    fn line(
        &self,
        canvas: &Canvas<'_>,
        axes: &Axes,
        group: &OverTimeCurve,
        colour: RGBColor,
        place: usize,
    ) -> Result<(), DrawError> {
        runs(axes, &self.metric.times, &group.value).iter().try_for_each(|run| match run[..] {
            [only] => canvas.circle(only, 2.5, colour),
            _ => stroke(canvas, run, colour, place),
        })
    }

    /// Every group at the first and the last time.
    fn describe(&self, groups: &[OverTimeCurve]) -> String {
        let value = |value: Option<&Option<f64>>| value.and_then(|v| *v).map_or_else(|| "undefined".to_owned(), number);
        let (first, last) = (self.metric.times[0], self.metric.times[self.metric.times.len() - 1]);
        let say = |group: &OverTimeCurve| {
            let ends = (value(group.value.first()), value(group.value.last()));
            format!(
                "{} ({}): {} at time {}, {} at {}",
                name_of(group),
                counts(group),
                ends.0,
                short(first),
                ends.1,
                short(last)
            )
        };
        groups.iter().map(say).collect::<Vec<_>>().join("; ")
    }
}

fn stroke(canvas: &Canvas<'_>, points: &[Point], colour: RGBColor, place: usize) -> Result<(), DrawError> {
    match DASHES[place % DASHES.len()] {
        None => canvas.line(points, colour, 1.8),
        Some(dashes) => canvas.dashed(points, colour, 1.8, dashes),
    }
}

/// The values that exist at neighbouring times, inside the axes.
fn runs(axes: &Axes, times: &[f64], values: &[Option<f64>]) -> Vec<Vec<Point>> {
    let known: Vec<(f64, Option<f64>)> = times.iter().copied().zip(values.iter().copied()).collect();
    let of_run = |run: &[(f64, Option<f64>)]| -> Vec<Point> {
        run.iter()
            .filter_map(|(time, value)| Some(axes.at(*time, value.as_ref()?.clamp(axes.y.start, axes.y.end))))
            .collect()
    };
    known.chunk_by(|a, b| a.1.is_some() == b.1.is_some()).map(of_run).filter(|run| !run.is_empty()).collect()
}

fn band(
    canvas: &Canvas<'_>,
    axes: &Axes,
    times: &[f64],
    group: &OverTimeCurve,
    colour: RGBColor,
) -> Result<(), DrawError> {
    // An end is missing where the other is, so that the runs are the same.
    let (lower, upper) = (runs(axes, times, &group.lower), runs(axes, times, &group.upper));
    lower.into_iter().zip(upper).filter(|(lower, _)| lower.len() > 1).try_for_each(|(lower, upper)| {
        let outline: Vec<Point> = upper.into_iter().chain(lower.into_iter().rev()).collect();
        canvas.polygon(&outline, colour, BAND_OPACITY)
    })
}

fn name_of(group: &OverTimeCurve) -> &str {
    group.level.as_deref().unwrap_or("all samples")
}

fn counts(group: &OverTimeCurve) -> String {
    format!("n = {}, {}", group.n, count(group.n_events, "event"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn a_figure_says_the_values_of_every_group_at_the_ends() {
        let figures = over_time_figures(&report(), "years").unwrap();
        assert_eq!(
            figures.iter().map(|f| (f.attribute.as_deref(), f.small, f.panels.len())).collect::<Vec<_>>(),
            [(None, false, 1), (Some("sex"), false, 1)]
        );
        let sex = &figures[1].panels[0];
        assert!(sex.contains("female (n = 60, 30 events): 0.800 at time 2, 0.750 at 4"), "{sex}");
        assert!(sex.contains("male (n = 60, 30 events): undefined at time 2, 0.700 at 4"), "{sex}");
        assert!(sex.contains("time (years)"), "{sex}");
    }

    #[test]
    fn a_line_is_broken_where_there_is_no_value_and_stays_inside_the_axes() {
        let axes = Axes { left: 0.0, right: 3.0, top: 0.0, bottom: 1.0, x: 0.0..3.0, y: 0.0..1.0 };
        let found = runs(&axes, &[0.0, 1.0, 2.0, 3.0], &[Some(0.5), None, Some(0.25), Some(7.0)]);
        assert_eq!(found, [vec![(0.0, 0.5)], vec![(2.0, 0.75), (3.0, 0.0)]]);
        assert!(runs(&axes, &[0.0], &[None]).is_empty());
    }
}
