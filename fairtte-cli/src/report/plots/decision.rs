//! Decision curves: the net benefit over thresholds of every model, of treating all and of treating none.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{DecisionCurve, DecisionsReport};

use super::super::ReportError;
use super::super::format::{elide, number, percent};
use super::super::names::names;
use super::super::words::FEW_EVENTS;
use super::canvas::{
    AXIS, Anchor, Axes, Canvas, DrawError, Figure, INK, Ink, MUTED, Point, fitting, padded_range, ticks,
};
use super::marker::{self, Marker};

const WIDTH: f64 = 340.0;
/// Height without the lines of a legend of several models.
const HEIGHT: f64 = 250.0;
const ROW: f64 = 16.0;
const LEFT: f64 = 56.0;
/// The lowest net benefit shown, as a share of the highest.
const LOWEST: f64 = 0.3;
/// Dash and gap of treating all, and of treating none.
const TREAT_ALL: (f64, f64) = (6.0, 3.0);
const TREAT_NOBODY: (f64, f64) = (2.0, 3.0);

/// The curves of one sample, with the places and names of the models that have one.
struct Curves<'a> {
    sample: &'a DecisionCurve,
    n_models: usize,
    models: Vec<(usize, &'a str, &'a DecisionCurve)>,
    decisions: &'a DecisionsReport,
}

/// One figure for the whole sample, then one for every group that has a curve; those of groups with few events are second.
/// Every figure has the curves of all `models`, which are evaluated on the same samples.
pub(crate) fn decision_figures(models: &[(&str, &EvaluationReport)]) -> Result<[Vec<String>; 2], ReportError> {
    let Some((report, decisions)) = models.first().and_then(|(_, report)| Some((*report, report.decisions.as_ref()?)))
    else {
        return Ok([Vec::new(), Vec::new()]);
    };
    let drawn: Vec<Curves<'_>> = decisions.curves.iter().map(|sample| Curves::of(sample, models, decisions)).collect();
    let drawn: Vec<Curves<'_>> = drawn.into_iter().filter(|curves| !curves.models.is_empty()).collect();
    let titles: Vec<String> = drawn.iter().map(Curves::title).collect();
    let ids = names(titles.iter().map(String::as_str));
    let has_few = |curve: &DecisionCurve| {
        let of = report.curves.iter().find(|of| (&of.attribute, &of.level) == (&curve.attribute, &curve.level));
        curve.attribute.is_some() && of.is_some_and(|of| of.n_events < FEW_EVENTS)
    };
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    for (curves, id) in drawn.iter().zip(ids) {
        let place = if has_few(curves.sample) { &mut folded } else { &mut shown };
        place.push(curves.figure(&format!("decision-{id}"))?);
    }
    Ok([shown, folded])
}

impl<'a> Curves<'a> {
    fn of(
        sample: &'a DecisionCurve,
        models: &[(&'a str, &'a EvaluationReport)],
        decisions: &'a DecisionsReport,
    ) -> Self {
        let same = |curve: &&DecisionCurve| (&curve.attribute, &curve.level) == (&sample.attribute, &sample.level);
        let of_model = |(place, (name, report)): (usize, &(&'a str, &'a EvaluationReport))| {
            let curve = report.decisions.as_ref()?.curves.iter().find(same)?;
            (curve.thresholds.len() > 1).then_some((place, *name, curve))
        };
        let with_curve = models.iter().enumerate().filter_map(of_model).collect();
        Self { sample, n_models: models.len(), models: with_curve, decisions }
    }

    fn title(&self) -> String {
        match (&self.sample.attribute, &self.sample.level) {
            (Some(attribute), Some(level)) => format!("{attribute}: {level}"),
            _ => "all".to_owned(),
        }
    }

    /// Treating all at the thresholds of all models, which may reach to other risks.
    fn treat_all(&self) -> Vec<(f64, f64)> {
        let of_model = |(_, _, curve): &(_, _, &DecisionCurve)| -> Vec<(f64, f64)> {
            curve.thresholds.iter().copied().zip(curve.net_benefit_of_all.iter().copied()).collect()
        };
        let mut points: Vec<(f64, f64)> = self.models.iter().flat_map(of_model).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0.to_bits() == b.0.to_bits());
        points
    }

    fn figure(&self, id: &str) -> Result<String, ReportError> {
        let (name, n) = (self.title(), self.n_models);
        let treat_all = self.treat_all();
        let of_models = self.models.iter().flat_map(|(_, _, curve)| &curve.net_benefit).copied();
        let shown: Vec<f64> = of_models.chain([0.0]).chain(treat_all.first().map(|(_, value)| *value)).collect();
        // A net benefit falls without bound as the threshold rises; what is far below treating none is not shown.
        let lowest = -LOWEST * shown.iter().copied().fold(0.0, f64::max);
        let shown = shown.into_iter().map(|value| value.max(lowest));
        let (x, y) = (padded_range(treat_all.iter().map(|(t, _)| *t), 0.03), padded_range(shown, 0.08));
        let legend = if n > 1 { ROW * self.models.len() as f64 } else { 0.0 };
        let (top, bottom) = (48.0 + legend, HEIGHT + legend - 44.0);
        let axes = Axes { left: LEFT, right: WIDTH - 10.0, top, bottom, x, y };
        let runs = |curve: &[(f64, f64)]| -> Vec<Vec<Point>> {
            let on_axes =
                |run: Vec<(f64, f64)>| run.into_iter().map(|(threshold, value)| axes.at(threshold, value)).collect();
            runs_above(curve, axes.y.start).into_iter().map(on_axes).collect()
        };
        let title = format!("Net benefit by threshold, {name}");
        let figure = Figure { id, title, description: self.description(), width: WIDTH, height: HEIGHT + legend };
        figure.draw(|canvas| {
            let name = elide(&name, fitting(WIDTH - LEFT, 12.5));
            canvas.text(&name, (LEFT, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
            self.legend(canvas)?;
            axes.draw_y(canvas, &ticks(&axes.y, 5), "")?;
            axes.draw_x(canvas, &ticks(&axes.x, 6), "threshold of the predicted risk")?;
            canvas.dashed(&[axes.at(axes.x.start, 0.0), axes.at(axes.x.end, 0.0)], AXIS, 1.4, TREAT_NOBODY)?;
            for line in runs(&treat_all) {
                canvas.dashed(&line, MUTED, 1.6, TREAT_ALL)?;
            }
            for (place, _, curve) in &self.models {
                let of_model: Vec<(f64, f64)> =
                    curve.thresholds.iter().copied().zip(curve.net_benefit.iter().copied()).collect();
                for line in runs(&of_model) {
                    canvas.line(&line, Marker::of(*place).colour, 2.0)?;
                    marker::along(canvas, &axes, &line, (*place, n))?;
                }
            }
            Ok(())
        })
    }

    /// A single model in the row of the two references, several above it.
    fn legend(&self, canvas: &Canvas<'_>) -> Result<(), DrawError> {
        let n = self.n_models;
        let text = |at: Point, text: &str| canvas.text(text, at, Anchor::Start, Ink::new(11.0, MUTED));
        for (row, (place, name, _)) in self.models.iter().enumerate() {
            let y = 28.0 + ROW * row as f64;
            marker::sample(canvas, (LEFT, y), Marker::of(*place).colour, (*place, n))?;
            text((LEFT + 22.0, y), &elide(name, fitting(WIDTH - LEFT - 30.0, 11.0)))?;
        }
        let (x, y) = if n > 1 { (LEFT, 28.0 + ROW * self.models.len() as f64) } else { (LEFT + 72.0, 28.0) };
        canvas.dashed(&[(x, y), (x + 18.0, y)], MUTED, 1.6, TREAT_ALL)?;
        text((x + 22.0, y), "treat all")?;
        canvas.dashed(&[(x + 82.0, y), (x + 100.0, y)], AXIS, 1.4, TREAT_NOBODY)?;
        text((x + 104.0, y), "treat none")
    }

    /// The net benefits at the thresholds that were asked for.
    fn description(&self) -> String {
        let of_model = |(_, name, curve): &(usize, &str, &DecisionCurve)| {
            let near = |threshold: f64| {
                let distance = |place: &usize| (curve.thresholds[*place] - threshold).abs();
                (0..curve.thresholds.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
            };
            let at = self.decisions.thresholds.iter().filter_map(|at| near(at.threshold));
            let name = if self.n_models > 1 { (*name).to_owned() } else { "the model".to_owned() };
            let say = |place: usize| {
                let (model, all) = (number(curve.net_benefit[place]), number(curve.net_benefit_of_all[place]));
                format!("at {} {name} has {model}, treating all {all}", percent(curve.thresholds[place]))
            };
            at.map(say).collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of_model).collect::<Vec<_>>().join("; ")
    }
}

/// The parts of a line of points (from left to right) that are not below `lowest`. Each ends where the line crosses `lowest`, so that the
/// points on both sides of a harm that is not shown are not joined.
fn runs_above(line: &[(f64, f64)], lowest: f64) -> Vec<Vec<(f64, f64)>> {
    let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for &(x, y) in line {
        let is_above = y >= lowest;
        let crossed = before.filter(|before| (before.1 >= lowest) != is_above);
        let crossing = crossed.map(|(left, value)| (left + (x - left) * (lowest - value) / (y - value), lowest));
        if is_above && (before.is_none() || crossing.is_some()) {
            runs.push(Vec::new());
        }
        if let Some(run) = runs.last_mut() {
            run.extend(crossing);
            run.extend(is_above.then_some((x, y)));
        }
        before = Some((x, y));
    }
    runs
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::evaluation::{Decided, ThresholdReport};

    use super::super::super::test_reports::report;
    use super::*;

    /// A report with a curve from `first` on in steps of 10 %, whose net benefit is `net_benefit` everywhere.
    fn with_curve(first: f64, net_benefit: f64) -> EvaluationReport {
        let thresholds: Vec<f64> = (0..3).map(|k| first + 0.1 * f64::from(k)).collect();
        let curve = DecisionCurve {
            attribute: None,
            level: None,
            net_benefit: vec![net_benefit; 3],
            net_benefit_of_all: thresholds.iter().map(|t| 0.5 - t).collect(),
            thresholds,
            undefined: None,
        };
        let overall = Decided {
            n: 120,
            n_positive: Some(60),
            n_unknown: Some(0),
            weight: Some(1.0),
            event_rate: Some(0.5),
            net_benefit_of_all: Some(0.2),
            undefined: None,
        };
        let at = ThresholdReport { threshold: 0.3, overall, attributes: Vec::new() };
        EvaluationReport { decisions: Some(DecisionsReport { thresholds: vec![at], curves: vec![curve] }), ..report() }
    }

    #[test]
    fn a_figure_has_the_curves_of_all_models_at_the_thresholds_of_all() {
        let (own, other) = (with_curve(0.1, 0.2), with_curve(0.2, 0.25));
        let [shown, folded] = decision_figures(&[("Cox", &own), ("CNN", &other)]).unwrap();
        assert_eq!((shown.len(), folded.len()), (1, 0));
        let said = "at 30 % Cox has 0.200, treating all 0.200; at 30 % CNN has 0.250, treating all 0.200";
        assert!(shown[0].contains(said), "{}", shown[0]);
        let [alone, _] = decision_figures(&[("model", &own)]).unwrap();
        assert!(alone[0].contains("at 30 % the model has 0.200, treating all 0.200<"), "{}", alone[0]);
        let without = report();
        assert_eq!(decision_figures(&[("model", &without)]).unwrap().map(|figures| figures.len()), [0, 0]);
    }

    #[test]
    fn a_curve_that_falls_below_the_axis_is_interrupted_where_it_crosses_it() {
        // From 0.1 to -0.5 the line is at -0.2 half way, from -0.5 to 0 after three fifths.
        let found = runs_above(&[(0.1, 0.1), (0.2, -0.5), (0.3, 0.0)], -0.2);
        let expected = [[(0.1, 0.1), (0.15, -0.2)], [(0.26, -0.2), (0.3, 0.0)]];
        assert_eq!(found.len(), 2);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(runs_above(&[(0.1, -0.5), (0.2, -0.4)], -0.2), Vec::<Vec<(f64, f64)>>::new());
        let whole = [(0.1, 0.3), (0.2, -0.2), (0.3, 0.1)];
        assert_eq!(runs_above(&whole, -0.2), [whole.to_vec()]);
        // In the figure the model has one line more; its colour is that of the first marker.
        let lines = |net_benefit: [f64; 3]| {
            let mut report = with_curve(0.1, 0.1);
            if let Some(decisions) = &mut report.decisions {
                decisions.curves[0].net_benefit = net_benefit.to_vec();
            }
            let [shown, _] = decision_figures(&[("model", &report)]).unwrap();
            shown[0].matches("stroke=\"#0072B2\"").count()
        };
        assert_eq!(lines([0.1, -0.5, 0.0]), lines([0.1, 0.1, 0.0]) + 1);
    }
}
