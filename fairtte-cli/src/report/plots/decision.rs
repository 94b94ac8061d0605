//! Decision curves: the net benefit over thresholds of the model, of treating all and of treating none.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{DecisionCurve, DecisionsReport};

use super::super::ReportError;
use super::super::format::{number, percent};
use super::super::names::names;
use super::super::words::FEW_EVENTS;
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, fitting, padded_range, ticks,
};

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 250.0;

/// One figure for the whole sample, then one for every group that has a curve; those of groups with few events are second.
pub(crate) fn decision_figures(
    report: &EvaluationReport,
    decisions: &DecisionsReport,
) -> Result<[Vec<String>; 2], ReportError> {
    let drawn: Vec<&DecisionCurve> = decisions.curves.iter().filter(|curve| curve.thresholds.len() > 1).collect();
    let titles: Vec<String> = drawn.iter().map(|curve| title_of(curve)).collect();
    let ids = names(titles.iter().map(String::as_str));
    let has_few = |curve: &DecisionCurve| {
        let of = report.curves.iter().find(|of| (&of.attribute, &of.level) == (&curve.attribute, &curve.level));
        curve.attribute.is_some() && of.is_some_and(|of| of.n_events < FEW_EVENTS)
    };
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    for (curve, id) in drawn.into_iter().zip(ids) {
        let place = if has_few(curve) { &mut folded } else { &mut shown };
        place.push(figure(curve, decisions, &format!("decision-{id}"))?);
    }
    Ok([shown, folded])
}

fn title_of(curve: &DecisionCurve) -> String {
    match (&curve.attribute, &curve.level) {
        (Some(attribute), Some(level)) => format!("{attribute}: {level}"),
        _ => "all".to_owned(),
    }
}

fn figure(curve: &DecisionCurve, decisions: &DecisionsReport, id: &str) -> Result<String, ReportError> {
    let name = title_of(curve);
    // Treating all falls without bound as the threshold rises: only what is near the model is shown.
    let shown = curve.net_benefit.iter().copied().chain([0.0, curve.net_benefit_of_all[0]]);
    let x = padded_range(curve.thresholds.iter().copied(), 0.03);
    let y = padded_range(shown, 0.08);
    let axes = Axes { left: 56.0, right: WIDTH - 10.0, top: 48.0, bottom: HEIGHT - 44.0, x, y };
    let points = |values: &[f64]| -> Vec<Point> {
        let inside = curve.thresholds.iter().zip(values).filter(|(_, value)| **value >= axes.y.start);
        inside.map(|(threshold, value)| axes.at(*threshold, *value)).collect()
    };
    let figure = Figure {
        id,
        title: format!("Net benefit by threshold, {name}"),
        description: description(curve, decisions),
        width: WIDTH,
        height: HEIGHT,
    };
    figure.draw(|canvas| {
        let title: String = name.chars().take(fitting(WIDTH - axes.left, 12.0)).collect();
        canvas.text(&title, (axes.left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        let key = |x: f64, text: &str| canvas.text(text, (axes.left + x, 28.0), Anchor::Start, Ink::new(11.0, MUTED));
        canvas.line(&[(axes.left, 28.0), (axes.left + 18.0, 28.0)], BLUE, 2.0)?;
        key(22.0, "model")?;
        canvas.dashed(&[(axes.left + 72.0, 28.0), (axes.left + 90.0, 28.0)], GROUP_COLOURS[1], 1.6, (5.0, 3.0))?;
        key(94.0, "treat all")?;
        canvas.dashed(&[(axes.left + 154.0, 28.0), (axes.left + 172.0, 28.0)], AXIS, 1.4, (2.0, 3.0))?;
        key(176.0, "treat none")?;
        axes.draw_y(canvas, &ticks(&axes.y, 5), "")?;
        axes.draw_x(canvas, &ticks(&axes.x, 6), "threshold of the predicted risk")?;
        canvas.dashed(&[axes.at(axes.x.start, 0.0), axes.at(axes.x.end, 0.0)], AXIS, 1.4, (2.0, 3.0))?;
        canvas.dashed(&points(&curve.net_benefit_of_all), GROUP_COLOURS[1], 1.6, (5.0, 3.0))?;
        canvas.line(&points(&curve.net_benefit), BLUE, 2.0)
    })
}

/// The net benefit at the thresholds that were requested.
fn description(curve: &DecisionCurve, decisions: &DecisionsReport) -> String {
    let near = |threshold: f64| {
        let distance = |place: &usize| (curve.thresholds[*place] - threshold).abs();
        (0..curve.thresholds.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    let at = decisions.thresholds.iter().filter_map(|at| near(at.threshold));
    let at = at.map(|place| {
        let (model, all) = (number(curve.net_benefit[place]), number(curve.net_benefit_of_all[place]));
        format!("at {} the model has {model}, treating everybody {all}", percent(curve.thresholds[place]))
    });
    at.collect::<Vec<_>>().join("; ")
}
