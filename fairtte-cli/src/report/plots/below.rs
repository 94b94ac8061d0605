//! What stands below a figure of survival curves: the numbers at risk, and predicted minus observed survival.

use fairtte_metrics::evaluation::GroupCurves;
use plotters::style::RGBColor;

use super::super::format::{elide, short};
use super::canvas::{AXIS, Anchor, Axes, Canvas, DrawError, GRID, INK, Ink, MUTED, Point, fitting, padded_range};
use super::marker::{along, sample};
use super::survival::{name_of, predicted_at};

/// Height of a row of numbers.
pub(super) const ROW: f64 = 15.0;
/// The difference is drawn as long as this many samples are at risk; after that the observed curve says little.
const ENOUGH_AT_RISK: usize = 10;

/// A heading and one row of numbers per group below `top`, aligned with the time axis of `axes`; names stand right of it.
pub(super) fn numbers_at_risk(
    canvas: &Canvas<'_>,
    axes: &Axes,
    groups: &[GroupCurves],
    colours: &[RGBColor],
    (top, width): Point,
) -> Result<(), DrawError> {
    canvas.text("at risk", (axes.left, top), Anchor::Start, Ink::new(11.0, MUTED))?;
    for (k, (group, colour)) in groups.iter().zip(colours).enumerate() {
        let y = top + ROW * (k + 1) as f64;
        for (time, n) in group.at_risk.times.iter().zip(&group.at_risk.n_at_risk) {
            canvas.text(&n.to_string(), (axes.x_at(*time), y), Anchor::Middle, Ink::new(11.0, INK))?;
        }
        let x = axes.right + 10.0;
        if width - x > 60.0 {
            sample(canvas, (x, y), *colour, (k, groups.len()))?;
            let name = elide(name_of(group), fitting(width - x - 22.0, 11.5));
            canvas.text(&name, (x + 22.0, y), Anchor::Start, Ink::new(11.0, INK))?;
        }
    }
    Ok(())
}

/// Mean prediction minus Kaplan-Meier of every group, with a line at 0; above it too much survival is predicted.
pub(super) fn differences(
    canvas: &Canvas<'_>,
    axes: &Axes,
    groups: &[GroupCurves],
    colours: &[RGBColor],
    is_step: bool,
) -> Result<(), DrawError> {
    let lines: Vec<Vec<Point>> = groups.iter().map(|group| difference(group, is_step)).collect();
    let values = lines.iter().flatten().map(|point| point.1).chain([-0.02, 0.02]);
    let axes = Axes { y: padded_range(values, 0.08), ..axes.clone() };
    let largest = axes.y.start.abs().max(axes.y.end.abs());
    let step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|step| largest / step < 3.0).unwrap_or(0.5);
    for tick in (-3..=3).map(|k| f64::from(k) * step).filter(|tick| axes.y.contains(tick)) {
        let y = axes.y_at(tick);
        let colour = if tick.abs() < step / 2.0 { AXIS } else { GRID };
        canvas.line(&[(axes.left, y), (axes.right, y)], colour, 1.0)?;
        canvas.text(&short(tick), (axes.left - 6.0, y), Anchor::End, Ink::new(11.0, MUTED))?;
    }
    for (k, (line, colour)) in lines.iter().zip(colours).enumerate() {
        let points: Vec<Point> = line.iter().map(|(time, value)| axes.at(*time, *value)).collect();
        if points.len() > 1 {
            canvas.line(&points, *colour, 1.5)?;
            along(canvas, &axes, &points, (k, lines.len()))?;
        }
    }
    let x = axes.right + 10.0;
    canvas.text("predicted minus", (x, axes.top + 8.0), Anchor::Start, Ink::new(11.0, INK))?;
    canvas.text("observed", (x, axes.top + 22.0), Anchor::Start, Ink::new(11.0, INK))?;
    canvas.text("above 0: predicted", (x, axes.top + 40.0), Anchor::Start, Ink::new(11.0, MUTED))?;
    canvas.text("risk too low", (x, axes.top + 54.0), Anchor::Start, Ink::new(11.0, MUTED))
}

/// Times and differences just before and after every step of the observed curve.
fn difference(group: &GroupCurves, is_step: bool) -> Vec<Point> {
    let observed = &group.kaplan_meier;
    let enough = |k: &usize| observed.n_at_risk[*k] >= ENOUGH_AT_RISK;
    let mut points = Vec::new();
    for k in (0..observed.times.len()).take_while(enough) {
        let time = observed.times[k];
        let Some(predicted) = predicted_at(&group.predicted, time, is_step) else { continue };
        if k > 0 {
            points.push((time, predicted - observed.survival[k - 1]));
        }
        points.push((time, predicted - observed.survival[k]));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn the_difference_is_taken_on_both_sides_of_a_step_and_ends_where_few_are_left() {
        // Kaplan-Meier 1, 0.75 from 2, 0 from 5 with one at risk; predicted 1, 0.7 at 3, 0.2 at 6.
        let group = &report().curves[0];
        let points = difference(group, false);
        let expected = [(0.0, 0.0), (2.0, -0.2), (2.0, 0.05)];
        assert_eq!(points.len(), 3);
        for (found, expected) in points.iter().zip(expected) {
            assert!((found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12, "{points:?}");
        }
        assert!((difference(group, true)[2].1 - 0.25).abs() < 1e-12, "a step curve is still 1 at 2");
    }
}
