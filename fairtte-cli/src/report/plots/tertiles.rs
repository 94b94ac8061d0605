//! Observed and predicted survival of the samples with low, middle and high predicted risk.

use fairtte_metrics::evaluation::{RiskTertile, RiskTertiles};
use fairtte_metrics::{EvaluationReport, Reading};

use super::super::ReportError;
use super::super::format::{count, elide, percent};
use super::super::words::FEW_EVENTS;
use super::by_attribute::{GroupFigure, GroupPanels, by_attribute};
use super::canvas::{Anchor, Axes, Canvas, DrawError, Figure, GROUP_COLOURS, INK, Ink, MUTED, fitting, ticks};
use super::marker::sample;
use super::survival::{curves_of, end_of_times, spread};

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 250.0;

/// One panel for the whole sample, then one for every group; those of groups with few events are folded.
pub(crate) fn tertile_figures(report: &EvaluationReport, time_unit: &str) -> Result<Vec<GroupFigure>, ReportError> {
    by_attribute("tertiles", &report.risk_tertiles, &Panels { report, end: end_of_times(report), time_unit })
}

struct Panels<'a> {
    report: &'a EvaluationReport,
    end: f64,
    time_unit: &'a str,
}

impl GroupPanels for Panels<'_> {
    type Group = RiskTertiles;

    fn attribute(group: &RiskTertiles) -> Option<&str> {
        group.attribute.as_deref()
    }

    fn name(group: &RiskTertiles) -> &str {
        group.level.as_deref().unwrap_or("all samples")
    }

    fn is_folded(group: &RiskTertiles) -> bool {
        n_events(group) < FEW_EVENTS && group.attribute.is_some()
    }

    /// Every panel has three curves already.
    fn has_small_panels(_: &[RiskTertiles]) -> bool {
        true
    }

    fn overlaid(&self, groups: &[RiskTertiles], id: &str) -> Result<String, ReportError> {
        groups.iter().map(|group| self.small(group, id)).collect()
    }

    fn small(&self, group: &RiskTertiles, id: &str) -> Result<String, ReportError> {
        panel(group, self.report, (self.end, self.time_unit), id)
    }
}

fn n_events(group: &RiskTertiles) -> usize {
    group.tertiles.iter().map(|third| third.n_events).sum()
}

fn panel(
    group: &RiskTertiles,
    report: &EvaluationReport,
    (end, time_unit): (f64, &str),
    id: &str,
) -> Result<String, ReportError> {
    let axes = Axes { left: 38.0, right: 232.0, top: 38.0, bottom: HEIGHT - 44.0, x: 0.0..end, y: 0.0..1.0 };
    let name = group.level.as_deref().unwrap_or("all samples");
    let n: usize = group.tertiles.iter().map(|third| third.n).sum();
    let what = report
        .cause
        .map_or_else(|| "Survival".to_owned(), |found| format!("Probability without cause {}", found.cause));
    let title = format!("{what} by third of the predicted risk: {name}");
    let description = group.tertiles.iter().map(describe).collect::<Vec<_>>().join("; ");
    Figure { id, title, description, width: WIDTH, height: HEIGHT }.draw(|canvas| {
        let shown = elide(name, fitting(WIDTH - axes.left, 12.5));
        canvas.text(&shown, (axes.left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let counts = format!("n = {n}, {}", count(n_events(group), "event"));
        canvas.text(&counts, (axes.left, 24.0), Anchor::Start, Ink::new(11.0, MUTED))?;
        axes.draw_y(canvas, &[0.0, 0.5, 1.0], "")?;
        let unit = if time_unit.is_empty() { String::new() } else { format!(" ({time_unit})") };
        axes.draw_x(canvas, &ticks(&axes.x, 5), &format!("time{unit}"))?;
        for (k, third) in group.tertiles.iter().enumerate() {
            let is_step = report.settings.reading == Reading::Step;
            let place = (k, group.tertiles.len());
            curves_of(canvas, &axes, (&third.kaplan_meier, &third.predicted), place, is_step)?;
        }
        labels(canvas, &axes, group)
    })
}

/// The names of the thirds from low to high, at the heights where their curves end.
fn labels(canvas: &Canvas<'_>, axes: &Axes, group: &RiskTertiles) -> Result<(), DrawError> {
    let end = |third: &RiskTertile| axes.y_at(third.kaplan_meier.survival.last().copied().unwrap_or(1.0));
    let mut wanted: Vec<f64> = group.tertiles.iter().map(end).collect();
    wanted.sort_by(f64::total_cmp);
    let heights = spread(&wanted, 34.0, axes.top + 8.0, axes.bottom - 20.0);
    for ((k, third), y) in group.tertiles.iter().enumerate().zip(heights) {
        let x = axes.right + 8.0;
        sample(canvas, (x, y), GROUP_COLOURS[k % GROUP_COLOURS.len()], (k, group.tertiles.len()))?;
        canvas.text(&third.name, (x + 21.0, y), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let counts = format!("{} of {}", third.n_events, third.n);
        canvas.text(&counts, (x + 21.0, y + 14.0), Anchor::Start, Ink::new(11.0, MUTED))?;
    }
    Ok(())
}

fn describe(third: &RiskTertile) -> String {
    let range = match (third.above, third.at_most) {
        (None, Some(at_most)) => format!("at most {}", percent(at_most)),
        (Some(above), Some(at_most)) => format!("above {} up to {}", percent(above), percent(at_most)),
        (Some(above), None) => format!("above {}", percent(above)),
        (None, None) => "any".to_owned(),
    };
    let last = third.kaplan_meier.survival.last();
    let last = last.map_or_else(String::new, |survival| format!(", observed survival falls to {}", percent(*survival)));
    format!("{} risk ({range}): {} of {} samples{last}", third.name, count(third.n_events, "event"), third.n)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::super::test_reports::report;
    use super::*;

    #[test]
    fn a_panel_says_the_risks_and_events_of_every_third() {
        let figures = tertile_figures(&report(), "").unwrap();
        assert_eq!((figures.len(), figures[0].panels.len()), (1, 1));
        let panel = &figures[0].panels[0];
        assert!(panel.contains(
            "low risk (at most 25 %): 20 events of 40 samples, observed survival falls to 75 %; middle risk (above 25 % up \
             to 50 %)"
        ));
        assert!(panel.contains("20 of 40") && panel.contains("n = 120, 60 events"), "{panel}");
    }

    #[test]
    fn the_legend_names_the_thirds_from_low_to_high_wherever_their_curves_end() {
        let mut report = report();
        // The curves of middle and high change places.
        let thirds = &mut report.risk_tertiles[0].tertiles;
        let (middle, high) = (thirds[1].kaplan_meier.clone(), thirds[2].kaplan_meier.clone());
        (thirds[1].kaplan_meier, thirds[2].kaplan_meier) = (high, middle);
        let figures = tertile_figures(&report, "").unwrap();
        // Every text follows the height that it is written at.
        let height = |name: &str| -> f64 {
            let (before, _) = figures[0].panels[0].rsplit_once(&format!("\n{name}\n")).unwrap();
            let (_, y) = before.rsplit_once(" y=\"").unwrap();
            y.split_once('"').unwrap().0.parse().unwrap()
        };
        let heights = ["low", "middle", "high"].map(height);
        assert!(heights.is_sorted(), "{heights:?}");
    }
}
