//! Observed against predicted survival: the Kaplan-Meier curve of a group and the mean of its predicted curves. Groups in
//! one figure differ in colour and marker.

use fairtte_metrics::evaluation::{BandedCurve, Curve, GroupCurves};
use fairtte_metrics::{EvaluationReport, Reading};

use super::super::ReportError;
use super::super::format::{count, elide, number};
use super::super::words::FEW_EVENTS;
use super::below::{ROW, differences, numbers_at_risk};
use super::by_attribute::{GroupFigure, GroupPanels, by_attribute};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, fitting, ticks,
};
use super::marker::{along, sample};
use plotters::style::RGBColor;

pub(super) const BAND_OPACITY: f64 = 0.16;
/// Dash and gap of predicted curves.
const DASHES: (f64, f64) = (6.0, 4.0);

/// One figure for the whole sample, then one per attribute.
pub(crate) fn survival_figures(report: &EvaluationReport, time_unit: &str) -> Result<Vec<GroupFigure>, ReportError> {
    by_attribute("survival", &report.curves, &Style { end: end_of_times(report), time_unit, report })
}

/// Curves end where the observation does; a prediction beyond it could not be compared with anything.
pub(super) fn end_of_times(report: &EvaluationReport) -> f64 {
    let observed = report.curves.iter().flat_map(|curves| &curves.kaplan_meier.times);
    let end = observed.copied().fold(0.0, f64::max);
    if end > 0.0 { end } else { 1.0 }
}

struct Style<'a> {
    end: f64,
    time_unit: &'a str,
    report: &'a EvaluationReport,
}

impl GroupPanels for Style<'_> {
    type Group = GroupCurves;

    fn attribute(group: &GroupCurves) -> Option<&str> {
        group.attribute.as_deref()
    }

    fn name(group: &GroupCurves) -> &str {
        name_of(group)
    }

    fn is_folded(group: &GroupCurves) -> bool {
        group.n_events < FEW_EVENTS
    }

    /// Up to three groups over each other, with their names on the right.
    fn overlaid(&self, groups: &[GroupCurves], id: &str) -> Result<String, ReportError> {
        let (left, right, top, bottom) = (52.0, 356.0, 12.0, 256.0);
        let axes = Axes { left, right, top, bottom, x: 0.0..self.end, y: 0.0..1.0 };
        let of = groups[0].attribute.as_ref().map_or_else(String::new, |attribute| format!(" by {attribute}"));
        let title = format!("Observed and predicted {}{of}", self.shown());
        let at_risk = bottom + 52.0;
        let below = at_risk + ROW * (groups.len() + 1) as f64;
        let height = below + 90.0;
        let figure = Figure { id, title, description: self.describe(groups), width: 520.0, height };
        figure.draw(|canvas| {
            axes.draw_y(canvas, &ticks(&axes.y, 6), &self.y_title())?;
            self.mark_window(canvas, &axes)?;
            axes.draw_x(canvas, &self.time_ticks(groups, 7), &self.time_title())?;
            numbers_at_risk(canvas, &axes, groups, &GROUP_COLOURS, (at_risk, 520.0))?;
            let panel = Axes { top: below, bottom: height - 8.0, ..axes.clone() };
            differences(canvas, &panel, groups, &GROUP_COLOURS, self.is_step())?;
            for (group, colour) in groups.iter().zip(GROUP_COLOURS) {
                band(canvas, &axes, &group.kaplan_meier, colour)?;
            }
            for (k, group) in groups.iter().enumerate() {
                self.curves(canvas, &axes, group, (k, groups.len()))?;
            }
            labels(canvas, &axes, groups)
        })
    }

    /// One group in a small panel, with the whole sample in grey behind it.
    fn small(&self, group: &GroupCurves, id: &str) -> Result<String, ReportError> {
        let whole = self.report.curves.iter().find(|curves| curves.attribute.is_none());
        let (left, right, top, bottom) = (38.0, 232.0, 38.0, 170.0);
        let axes = Axes { left, right, top, bottom, x: 0.0..self.end, y: 0.0..1.0 };
        let level = name_of(group);
        let title = format!("Observed and predicted {}: {level}", self.shown());
        let description = self.describe(std::slice::from_ref(group));
        let figure = Figure { id, title, description, width: 252.0, height: 246.0 };
        figure.draw(|canvas| {
            let name = elide(level, fitting(right - left, 12.5));
            canvas.text(&name, (left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
            canvas.text(&counts(group), (left, 24.0), Anchor::Start, Ink::new(11.0, MUTED))?;
            let ticks_y = [0.0, 0.5, 1.0];
            axes.draw_y(canvas, &ticks_y, "")?;
            self.mark_window(canvas, &axes)?;
            axes.draw_x(canvas, &self.time_ticks(std::slice::from_ref(group), 5), &self.time_title())?;
            numbers_at_risk(canvas, &axes, std::slice::from_ref(group), &[BLUE], (bottom + 48.0, 252.0))?;
            if let Some(whole) = whole {
                canvas.line(&steps(&whole.kaplan_meier.times, &whole.kaplan_meier.survival, &axes), AXIS, 1.2)?;
            }
            if group.n == 0 {
                let middle = (f64::midpoint(left, right), f64::midpoint(top, bottom));
                return canvas.text("no samples", middle, Anchor::Middle, Ink::new(12.0, MUTED).italic());
            }
            band(canvas, &axes, &group.kaplan_meier, BLUE)?;
            self.curves(canvas, &axes, group, (0, 1))
        })
    }
}

impl Style<'_> {
    /// What the curves are.
    fn shown(&self) -> String {
        self.report
            .cause
            .map_or_else(|| "survival".to_owned(), |evaluated| format!("probability without cause {}", evaluated.cause))
    }

    fn y_title(&self) -> String {
        match self.report.cause {
            None => "survival probability".to_owned(),
            Some(evaluated) => format!("1 - incidence of cause {}", evaluated.cause),
        }
    }

    fn time_title(&self) -> String {
        if self.time_unit.is_empty() { "time".to_owned() } else { format!("time ({})", self.time_unit) }
    }

    /// The times of the numbers at risk, where a report has them.
    fn time_ticks(&self, groups: &[GroupCurves], n: usize) -> Vec<f64> {
        match groups.first().map(|group| group.at_risk.times.as_slice()) {
            None | Some([]) => ticks(&(0.0..self.end), n),
            Some(times) => times.to_vec(),
        }
    }

    /// Both curves of the group at `place` of several in the figure.
    fn curves(
        &self,
        canvas: &Canvas<'_>,
        axes: &Axes,
        group: &GroupCurves,
        place: (usize, usize),
    ) -> Result<(), DrawError> {
        curves_of(canvas, axes, (&group.kaplan_meier, &group.predicted), place, self.is_step())
    }

    /// Whether a predicted curve keeps each value until its next time.
    fn is_step(&self) -> bool {
        self.report.settings.reading == Reading::Step
    }

    /// The evaluation times of AUC and Brier score, as a bar on the time axis.
    fn mark_window(&self, canvas: &Canvas<'_>, axes: &Axes) -> Result<(), DrawError> {
        let Some(window) = &self.report.times else { return Ok(()) };
        let [from, to] = [window.lower, window.upper].map(|t| axes.x_at(t.clamp(0.0, self.end)));
        let (upper, lower) = (axes.bottom - 5.0, axes.bottom);
        canvas.polygon(&[(from, upper), (to, upper), (to, lower), (from, lower)], AXIS, 1.0)
    }

    fn describe(&self, groups: &[GroupCurves]) -> String {
        let last = |times: &[f64], survival: &[f64], is_step: bool| {
            let (_, survival) = up_to(times, survival, self.end, is_step);
            survival.last().map_or_else(|| "nothing".to_owned(), |value| number(*value))
        };
        let say = |group: &GroupCurves| {
            let observed = last(&group.kaplan_meier.times, &group.kaplan_meier.survival, true);
            let predicted = last(&group.predicted.times, &group.predicted.survival, self.is_step());
            format!(
                "{} ({}): observed {} falls to {observed}, predicted mean to {predicted}",
                name_of(group),
                counts(group),
                self.shown()
            )
        };
        groups.iter().map(say).collect::<Vec<_>>().join("; ")
    }
}

/// An observed curve and the dashed mean of predicted ones, read as a step function or along lines, with the colour and
/// marker of the one at `place` of several.
pub(super) fn curves_of(
    canvas: &Canvas<'_>,
    axes: &Axes,
    (observed, predicted): (&BandedCurve, &Curve),
    place: (usize, usize),
    is_step: bool,
) -> Result<(), DrawError> {
    let colour = GROUP_COLOURS[place.0 % GROUP_COLOURS.len()];
    let observed = steps(&observed.times, &observed.survival, axes);
    if observed.len() > 1 {
        canvas.line(&observed, colour, 1.8)?;
        along(canvas, axes, &observed, place)?;
    }
    let (times, survival) = up_to(&predicted.times, &predicted.survival, axes.x.end, is_step);
    let predicted = if is_step {
        steps(&times, &survival, axes)
    } else {
        times.iter().zip(&survival).map(|(&t, &s)| axes.at(t, s)).collect()
    };
    if predicted.len() > 1 {
        canvas.dashed(&predicted, colour, 1.8, DASHES)?;
        along(canvas, axes, &predicted, place)?;
    }
    Ok(())
}

pub(super) fn name_of(group: &GroupCurves) -> &str {
    group.level.as_deref().unwrap_or("all samples")
}

fn counts(group: &GroupCurves) -> String {
    format!("n = {}, {}", group.n, count(group.n_events, "event"))
}

/// A function that keeps each value until the next time.
fn steps(times: &[f64], survival: &[f64], axes: &Axes) -> Vec<Point> {
    let mut points = Vec::with_capacity(2 * times.len());
    for (k, (&time, &value)) in times.iter().zip(survival).enumerate() {
        if k > 0 {
            points.push(axes.at(time, survival[k - 1]));
        }
        points.push(axes.at(time, value));
    }
    points
}

/// A mean curve at `time`: that before a step, otherwise on the line between neighbours; `None` outside its grid.
pub(super) fn predicted_at(curve: &Curve, time: f64, is_step: bool) -> Option<f64> {
    let after = curve.times.partition_point(|known| *known <= time);
    let before = after.checked_sub(1)?;
    let value = curve.survival[before];
    match curve.times.get(after) {
        Some(next) if !is_step => {
            let share = (time - curve.times[before]) / (next - curve.times[before]);
            Some(value + share * (curve.survival[after] - value))
        }
        Some(_) => Some(value),
        None => (time <= curve.times[before]).then_some(value),
    }
}

/// The part of a curve that is not after `end`: its last value there is that before it of a step curve, otherwise on the line
/// between neighbours.
fn up_to(times: &[f64], survival: &[f64], end: f64, is_step: bool) -> (Vec<f64>, Vec<f64>) {
    let inside = times.partition_point(|time| *time <= end);
    let (mut kept_times, mut kept) = (times[..inside].to_vec(), survival[..inside].to_vec());
    if let (1.., Some(&after)) = (inside, times.get(inside)) {
        let (before, from, to) = (times[inside - 1], survival[inside - 1], survival[inside]);
        kept_times.push(end);
        kept.push(if is_step { from } else { from + (to - from) * (end - before) / (after - before) });
    }
    (kept_times, kept)
}

/// The interval of a step curve, wherever it is known.
fn band(canvas: &Canvas<'_>, axes: &Axes, curve: &BandedCurve, colour: RGBColor) -> Result<(), DrawError> {
    let known: Vec<Option<(f64, f64)>> = curve.lower.iter().zip(&curve.upper).map(|(l, u)| (*l).zip(*u)).collect();
    let mut start = 0;
    for run in known.chunk_by(|a, b| a.is_some() == b.is_some()) {
        // The last value of a run holds until the next time.
        let end = (start + run.len() + 1).min(curve.times.len());
        let (mut lower, mut upper): (Vec<f64>, Vec<f64>) = run.iter().copied().flatten().unzip();
        let times = &curve.times[start..end];
        if let (Some(&l), Some(&u)) = (lower.last(), upper.last()) {
            lower.resize(times.len(), l);
            upper.resize(times.len(), u);
            let outline = steps(times, &upper, axes).into_iter();
            let outline: Vec<Point> = outline.chain(steps(times, &lower, axes).into_iter().rev()).collect();
            canvas.polygon(&outline, colour, BAND_OPACITY)?;
        }
        start += run.len();
    }
    Ok(())
}

/// Names right of the curves, at the height where the observed curve ends as far as they do not collide.
fn labels(canvas: &Canvas<'_>, axes: &Axes, groups: &[GroupCurves]) -> Result<(), DrawError> {
    const HEIGHT: f64 = 36.0;
    let end = |group: &GroupCurves| axes.y_at(group.kaplan_meier.survival.last().copied().unwrap_or(1.0));
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| end(&groups[a]).total_cmp(&end(&groups[b])));
    let wanted: Vec<f64> = order.iter().map(|&k| end(&groups[k])).collect();
    let heights = spread(&wanted, HEIGHT, axes.top + 10.0, axes.bottom - 24.0);
    for (&k, y) in order.iter().zip(heights) {
        let (group, x) = (&groups[k], axes.right + 10.0);
        sample(canvas, (x, y), GROUP_COLOURS[k % GROUP_COLOURS.len()], (k, groups.len()))?;
        let name = elide(name_of(group), fitting(520.0 - x - 22.0, 12.5));
        canvas.text(&name, (x + 22.0, y), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let text = if group.n == 0 { "no samples".to_owned() } else { counts(group) };
        canvas.text(&text, (x + 22.0, y + 15.0), Anchor::Start, Ink::new(11.0, MUTED))?;
    }
    Ok(())
}

/// Moves ascending positions apart so that neighbours are at least `gap` from each other, inside `[low, high]` as far
/// as they fit.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.iter().map(|y| y.clamp(low, high.max(low))).collect();
    for k in 1..places.len() {
        places[k] = places[k].max(places[k - 1] + gap);
    }
    let overflow = places.last().map_or(0.0, |last| (last - high).max(0.0));
    if let Some(last) = places.last_mut() {
        *last -= overflow;
    }
    for k in (1..places.len()).rev() {
        places[k - 1] = places[k - 1].min(places[k] - gap);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_apart_only_as_far_as_needed() {
        assert_eq!(spread(&[10.0, 50.0], 20.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[10.0, 12.0, 90.0], 20.0, 0.0, 100.0), [10.0, 30.0, 90.0]);
        assert_eq!(spread(&[95.0, 99.0], 20.0, 0.0, 100.0), [80.0, 100.0]);
        assert_eq!(spread(&[-5.0], 20.0, 0.0, 100.0), [0.0]);
    }

    #[test]
    fn a_prediction_is_cut_where_the_observation_ends() {
        let cut = |is_step| up_to(&[0.0, 2.0, 4.0], &[1.0, 0.5, 0.25], 3.0, is_step);
        assert_eq!(cut(false), (vec![0.0, 2.0, 3.0], vec![1.0, 0.5, 0.375]));
        assert_eq!(cut(true), (vec![0.0, 2.0, 3.0], vec![1.0, 0.5, 0.5]), "nothing falls between two steps");
        assert_eq!(up_to(&[0.0, 2.0], &[1.0, 0.5], 9.0, false).0, [0.0, 2.0]);
        assert_eq!(up_to(&[5.0], &[0.5], 3.0, true).0.len(), 0);
    }

    #[test]
    fn a_step_curve_keeps_its_value_until_the_next_time() {
        let axes = Axes { left: 0.0, right: 10.0, top: 0.0, bottom: 10.0, x: 0.0..10.0, y: 0.0..1.0 };
        let points = steps(&[0.0, 4.0], &[1.0, 0.5], &axes);
        assert_eq!(points, [(0.0, 0.0), (4.0, 0.0), (4.0, 5.0)]);
    }
}
