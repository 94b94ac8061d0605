//! ROC curves: the true against the false positive rate of every threshold, with the one that decides as a marker.

use fairtte_metrics::evaluation::RocCurve;
use plotters::style::RGBColor;

use super::super::ReportError;
use super::super::format::{elide, number};
use super::by_attribute::{GroupFigure, GroupPanels, by_attribute};
use super::calibration::{OVERLAID, legend, line, marker};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, fitting, ticks,
};

/// One figure for the whole sample, then one per attribute.
pub(crate) fn roc_figures(curves: &[RocCurve]) -> Result<Vec<GroupFigure>, ReportError> {
    by_attribute("roc", curves, &Roc)
}

struct Roc;

impl GroupPanels for Roc {
    type Group = RocCurve;

    fn attribute(group: &RocCurve) -> Option<&str> {
        group.attribute.as_deref()
    }

    fn name(group: &RocCurve) -> &str {
        name_of(group)
    }

    /// A group without one of the classes.
    fn is_folded(group: &RocCurve) -> bool {
        group.false_positive.is_empty()
    }

    fn overlaid(&self, groups: &[RocCurve], id: &str) -> Result<String, ReportError> {
        overlaid(groups, id)
    }

    fn small(&self, group: &RocCurve, id: &str) -> Result<String, ReportError> {
        small_panel(group, id)
    }
}

fn name_of(group: &RocCurve) -> &str {
    group.level.as_deref().unwrap_or("all samples")
}

fn overlaid(groups: &[RocCurve], id: &str) -> Result<String, ReportError> {
    let (left, right, top, bottom) = (52.0, 312.0, 12.0, 272.0);
    let axes = Axes { left, right, top, bottom, x: 0.0..1.0, y: 0.0..1.0 };
    let of = groups[0].attribute.as_ref().map_or_else(String::new, |attribute| format!(" by {attribute}"));
    let title = format!("ROC curve{of}");
    Figure { id, title, description: describe(groups), width: OVERLAID, height: 316.0 }.draw(|canvas| {
        frame(canvas, &axes, 6, "true positive rate")?;
        for (k, (group, colour)) in groups.iter().zip(GROUP_COLOURS).enumerate() {
            draw(canvas, &axes, group, colour, k)?;
        }
        let entries = groups.iter().map(|group| (name_of(group), |_| facts(group)));
        legend(canvas, (right + 14.0, top + 10.0), entries)
    })
}

fn small_panel(group: &RocCurve, id: &str) -> Result<String, ReportError> {
    let (left, right, top, bottom) = (38.0, 206.0, 38.0, 206.0);
    let axes = Axes { left, right, top, bottom, x: 0.0..1.0, y: 0.0..1.0 };
    let title = format!("ROC curve: {}", name_of(group));
    let description = describe(std::slice::from_ref(group));
    Figure { id, title, description, width: 252.0, height: 248.0 }.draw(|canvas| {
        let name = elide(name_of(group), fitting(right - left, 12.5));
        canvas.text(&name, (left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let counts = format!("{} positive, {} negative", group.n_positive, group.n_negative);
        canvas.text(&counts, (left, 24.0), Anchor::Start, Ink::new(11.0, MUTED))?;
        frame(canvas, &axes, 4, "")?;
        draw(canvas, &axes, group, BLUE, 0)
    })
}

/// The axes and the diagonal of guessing.
fn frame(canvas: &Canvas<'_>, axes: &Axes, n_ticks: usize, y_title: &str) -> Result<(), DrawError> {
    let ticks = ticks(&axes.x, n_ticks);
    axes.draw_y(canvas, &ticks, y_title)?;
    axes.draw_x(canvas, &ticks, "false positive rate")?;
    canvas.line(&[axes.at(0.0, 0.0), axes.at(1.0, 1.0)], AXIS, 1.0)
}

fn draw(canvas: &Canvas<'_>, axes: &Axes, group: &RocCurve, colour: RGBColor, place: usize) -> Result<(), DrawError> {
    let points: Vec<Point> =
        group.false_positive.iter().zip(&group.true_positive).map(|(&x, &y)| axes.at(x, y)).collect();
    if points.len() > 1 {
        line(canvas, &points, colour, place)?;
    }
    group.at_threshold.map_or(Ok(()), |(x, y)| marker(canvas, axes.at(x, y), colour, place))
}

/// Numbers beside the name of a curve.
fn facts(group: &RocCurve) -> Vec<String> {
    let counts = vec![format!("{} positive", group.n_positive), format!("{} negative", group.n_negative)];
    let at = group.at_threshold.map(|(false_positive, true_positive)| {
        [format!("FPR {}", number(false_positive)), format!("TPR {}", number(true_positive))]
    });
    counts.into_iter().chain(at.into_iter().flatten()).collect()
}

fn describe(groups: &[RocCurve]) -> String {
    let say = |group: &RocCurve| match group.at_threshold {
        Some((false_positive, true_positive)) => format!(
            "{}: at the threshold false positive rate {}, true positive rate {}",
            name_of(group),
            number(false_positive),
            number(true_positive)
        ),
        None => format!("{}: no curve without both classes", name_of(group)),
    };
    groups.iter().map(say).collect::<Vec<_>>().join("; ")
}
