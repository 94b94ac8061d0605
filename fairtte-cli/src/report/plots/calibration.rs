//! Calibration at the horizon: predicted against observed risk, smooth and in bins.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::CalibrationCurve;
use plotters::style::RGBColor;

use super::super::ReportError;
use super::super::format::{count, elide, number, wrap};
use super::by_attribute::{GroupFigure, GroupPanels, by_attribute};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, fitting, ticks,
};

/// Dash and gap of the curves of groups drawn over each other; the first is solid.
pub(super) const DASHES: [Option<(f64, f64)>; 3] = [None, Some((7.0, 3.5)), Some((2.0, 3.0))];

/// Width of a figure of groups drawn over each other, with the legend beside the axes.
pub(super) const OVERLAID: f64 = 520.0;

/// One figure for the whole sample, then one per attribute; none without a horizon.
pub(crate) fn calibration_figures(report: &EvaluationReport) -> Result<Vec<GroupFigure>, ReportError> {
    by_attribute("calibration", &report.calibration, &scale_of(std::iter::once(report)))
}

/// What is on the axes, and what the events are.
struct Words {
    title: &'static str,
    predicted: &'static str,
    observed: &'static str,
    event: &'static str,
}

const AT_HORIZON: Words = Words {
    title: "Predicted and observed risk at the horizon",
    predicted: "predicted risk",
    observed: "observed risk",
    event: "event",
};

const OF_CLASS: Words = Words {
    title: "Predicted probability and observed share of positive samples",
    predicted: "predicted probability",
    observed: "share of positive samples",
    event: "positive",
};

/// The figures of several cohorts or models, each with a name that begins its ids, all with the same axes: those of one attribute
/// belong side by side.
pub(crate) fn calibration_side_by_side(
    reports: &[(String, &EvaluationReport)],
) -> Result<Vec<Vec<GroupFigure>>, ReportError> {
    let scale = scale_of(reports.iter().map(|(_, report)| *report));
    let figures = |(name, report): &(String, &EvaluationReport)| {
        by_attribute(&format!("calibration-{name}"), &report.calibration, &scale)
    };
    reports.iter().map(figures).collect()
}

/// The whole sample, over each other for several models of it; `None` where no model has a curve or reason.
pub(crate) fn calibration_of_models(models: &[(&str, &EvaluationReport)]) -> Result<Option<GroupFigure>, ReportError> {
    let of_model = |(name, report): &(&str, &EvaluationReport)| {
        let curve = report.calibration.iter().find(|curve| curve.attribute.is_none())?;
        Some(CalibrationCurve { attribute: Some("model".to_owned()), level: Some((*name).to_owned()), ..curve.clone() })
    };
    let curves: Vec<CalibrationCurve> = models.iter().filter_map(of_model).collect();
    let scale = scale_of(models.iter().map(|(_, report)| *report));
    Ok(by_attribute("calibration", &curves, &scale)?.pop())
}

/// The axes and words that all reports share.
fn scale_of<'a>(reports: impl Iterator<Item = &'a EvaluationReport>) -> UpTo {
    let (mut end, mut words) = (0.0_f64, &AT_HORIZON);
    for report in reports {
        end = end.max(end_of_risks(&report.calibration));
        words = words_of(report);
    }
    UpTo { end, words }
}

fn words_of(report: &EvaluationReport) -> &'static Words {
    if report.class.is_some() { &OF_CLASS } else { &AT_HORIZON }
}

/// Both axes go from 0 to `end`.
struct UpTo {
    end: f64,
    words: &'static Words,
}

impl GroupPanels for UpTo {
    type Group = CalibrationCurve;

    fn attribute(group: &CalibrationCurve) -> Option<&str> {
        group.attribute.as_deref()
    }

    fn name(group: &CalibrationCurve) -> &str {
        name_of(group)
    }

    /// A group without a curve.
    fn is_folded(group: &CalibrationCurve) -> bool {
        group.ici.is_none()
    }

    fn overlaid(&self, groups: &[CalibrationCurve], id: &str) -> Result<String, ReportError> {
        overlaid(groups, self, id)
    }

    fn small(&self, group: &CalibrationCurve, id: &str) -> Result<String, ReportError> {
        small_panel(group, self, id)
    }
}

/// Both axes end at the largest risk of a curve or bin; intervals may be cut there.
fn end_of_risks(curves: &[CalibrationCurve]) -> f64 {
    let of_curves = curves.iter().flat_map(|curve| curve.predicted.iter().chain(&curve.observed)).copied();
    let of_bins = curves.iter().flat_map(|curve| &curve.bins).flat_map(|bin| [bin.predicted, bin.observed]);
    let end = of_curves.chain(of_bins).fold(0.0, f64::max);
    if end > 0.0 { (end * 1.05).min(1.0) } else { 1.0 }
}

fn overlaid(groups: &[CalibrationCurve], &UpTo { end, words }: &UpTo, id: &str) -> Result<String, ReportError> {
    let (left, right, top, bottom) = (52.0, 336.0, 12.0, 272.0);
    let axes = Axes { left, right, top, bottom, x: 0.0..end, y: 0.0..end };
    let of = groups[0].attribute.as_ref().map_or_else(String::new, |attribute| format!(" by {attribute}"));
    let title = format!("{}{of}", words.title);
    Figure { id, title, description: describe(groups), width: OVERLAID, height: 316.0 }.draw(|canvas| {
        box_of(canvas, &axes, 6, words, words.observed)?;
        for (k, (group, colour)) in groups.iter().zip(GROUP_COLOURS).enumerate() {
            draw(canvas, &axes, group, colour, k)?;
        }
        let entries = groups.iter().map(|group| (name_of(group), |width| facts(group, words, width)));
        legend(canvas, (right + 14.0, top + 10.0), entries)
    })
}

fn small_panel(group: &CalibrationCurve, &UpTo { end, words }: &UpTo, id: &str) -> Result<String, ReportError> {
    let (left, right, top, bottom) = (38.0, 232.0, 38.0, 206.0);
    let axes = Axes { left, right, top, bottom, x: 0.0..end, y: 0.0..end };
    let title = format!("{}: {}", words.title, name_of(group));
    let description = describe(std::slice::from_ref(group));
    Figure { id, title, description, width: 252.0, height: 248.0 }.draw(|canvas| {
        let name = elide(name_of(group), fitting(right - left, 12.5));
        canvas.text(&name, (left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let lines = facts(group, words, fitting(right - left, 11.0));
        let shown = if group.ici.is_some() { lines.join(", ") } else { count(group.n_events, words.event) };
        canvas.text(&shown, (left, 24.0), Anchor::Start, Ink::new(11.0, MUTED))?;
        box_of(canvas, &axes, 4, words, "")?;
        if group.ici.is_none() {
            for (k, text) in wrap(reason(group), fitting(right - left - 12.0, 11.0)).iter().enumerate() {
                let at = (left + 6.0, top + 14.0 + 14.0 * k as f64);
                canvas.text(text, at, Anchor::Start, Ink::new(11.0, MUTED).italic())?;
            }
        }
        draw(canvas, &axes, group, BLUE, 0)
    })
}

/// The axes and the diagonal of perfect calibration.
fn box_of(canvas: &Canvas<'_>, axes: &Axes, n_ticks: usize, words: &Words, y_title: &str) -> Result<(), DrawError> {
    let ticks = ticks(&axes.x, n_ticks);
    axes.draw_y(canvas, &ticks, y_title)?;
    axes.draw_x(canvas, &ticks, words.predicted)?;
    canvas.line(&[axes.at(0.0, 0.0), axes.at(axes.x.end, axes.x.end)], AXIS, 1.0)
}

fn draw(
    canvas: &Canvas<'_>,
    axes: &Axes,
    group: &CalibrationCurve,
    colour: RGBColor,
    place: usize,
) -> Result<(), DrawError> {
    let end = axes.y.end;
    for bin in &group.bins {
        if let Some((lower, upper)) = bin.lower.zip(bin.upper) {
            let ends = [axes.at(bin.predicted, lower), axes.at(bin.predicted, upper.min(end))];
            canvas.line(&ends, colour, 1.0)?;
        }
    }
    let points: Vec<Point> = group.predicted.iter().zip(&group.observed).map(|(&p, &o)| axes.at(p, o)).collect();
    if points.len() > 1 {
        line(canvas, &points, colour, place)?;
    }
    group.bins.iter().try_for_each(|bin| marker(canvas, axes.at(bin.predicted, bin.observed), colour, place))
}

pub(super) fn line(canvas: &Canvas<'_>, points: &[Point], colour: RGBColor, place: usize) -> Result<(), DrawError> {
    match DASHES[place % DASHES.len()] {
        None => canvas.line(points, colour, 1.8),
        Some(dashes) => canvas.dashed(points, colour, 1.8, dashes),
    }
}

/// A circle, a square or a triangle, so that groups differ without colour.
pub(super) fn marker(canvas: &Canvas<'_>, (x, y): Point, colour: RGBColor, place: usize) -> Result<(), DrawError> {
    match place % 3 {
        0 => canvas.circle((x, y), 3.2, colour),
        1 => canvas.square((x, y), 6.0, colour),
        _ => canvas.polygon(&[(x - 4.0, y + 3.2), (x + 4.0, y + 3.2), (x, y - 4.0)], colour, 1.0),
    }
}

/// Line, marker and name of every group, with lines of facts that fit a width in characters below it; from `(x, y)` down.
pub(super) fn legend<'a>(
    canvas: &Canvas<'_>,
    (x, mut y): Point,
    entries: impl Iterator<Item = (&'a str, impl FnOnce(usize) -> Vec<String>)>,
) -> Result<(), DrawError> {
    for (k, ((name, facts), colour)) in entries.zip(GROUP_COLOURS).enumerate() {
        line(canvas, &[(x, y), (x + 24.0, y)], colour, k)?;
        marker(canvas, (x + 12.0, y), colour, k)?;
        let name = elide(name, fitting(OVERLAID - x - 30.0, 12.5));
        canvas.text(&name, (x + 30.0, y), Anchor::Start, Ink::new(12.0, INK).bold())?;
        for text in facts(fitting(OVERLAID - x - 30.0, 11.0)) {
            y += 15.0;
            canvas.text(&text, (x + 30.0, y), Anchor::Start, Ink::new(11.0, MUTED))?;
        }
        y += 26.0;
    }
    Ok(())
}

fn name_of(group: &CalibrationCurve) -> &str {
    group.level.as_deref().unwrap_or("all samples")
}

fn reason(group: &CalibrationCurve) -> &str {
    group.undefined.as_deref().unwrap_or("no reason was recorded")
}

/// Index and events by the horizon, or why there is no index.
fn facts(group: &CalibrationCurve, words: &Words, width: usize) -> Vec<String> {
    match group.ici {
        Some(ici) => vec![format!("ICI {}", number(ici)), count(group.n_events, words.event)],
        None => wrap(&format!("no curve: {}", reason(group)), width),
    }
}

fn describe(groups: &[CalibrationCurve]) -> String {
    let say = |group: &CalibrationCurve| match (group.ici, group.predicted.first(), group.predicted.last()) {
        (Some(ici), Some(low), Some(high)) => {
            let [from, to] = [group.observed.first(), group.observed.last()].map(|o| number(o.copied().unwrap_or(0.0)));
            let (low, high) = (number(*low), number(*high));
            format!(
                "{}: ICI {}; where {low} is predicted, {from} is observed, where {high}, {to}",
                name_of(group),
                number(ici)
            )
        }
        _ => format!("{}: no curve, {}", name_of(group), reason(group)),
    };
    groups.iter().map(say).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn the_axes_end_at_the_largest_risk() {
        assert!((end_of_risks(&report().calibration) - 0.85 * 1.05).abs() < 1e-12);
        assert_eq!(end_of_risks(&[]).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn every_attribute_has_a_figure_that_names_index_and_reason() {
        let figures = calibration_figures(&report()).expect("the texts are plain");
        assert_eq!(figures.iter().map(|figure| figure.panels.len()).collect::<Vec<_>>(), [1, 1, 1]);
        assert!(figures[1].panels[0].contains("female: ICI 0.080; where 0.100 is predicted, 0.150 is observed"));
        assert!(figures[2].panels[0].contains("unknown: no curve, none of 4 samples has an observed event"));
    }
}
