//! Dot plot of the sources of bias of one attribute on [0, 1], with intervals and the values expected by chance.

use super::super::ReportError;
use super::super::bias::{AttributeBias, Found, Line};
use super::super::format::{list, number, p_relation, wrap};
use super::canvas::{
    AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, GRID, GROUP_COLOURS, INK, Ink, MUTED, fitting,
};

const WIDTH: f64 = 520.0;
const LEFT: f64 = 132.0;
const RIGHT: f64 = 352.0;
const VALUES: f64 = 364.0;
const ROW: f64 = 30.0;
const LINE: f64 = 13.5;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 44.0;
const TICKS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The figure of `attribute`; `id` is unique on the page.
pub(crate) fn bias_figure(attribute: &AttributeBias, id: &str) -> Result<String, ReportError> {
    let lines = attribute.lines();
    let bottom = TOP + lines.iter().map(height).sum::<f64>();
    let axes = Axes { left: LEFT, right: RIGHT, top: TOP, bottom, x: 0.0..1.0, y: 0.0..1.0 };
    let figure = Figure {
        id,
        title: format!("Sources of bias by {}", attribute.name()),
        description: list(&lines.iter().map(describe).collect::<Vec<_>>()),
        width: WIDTH,
        height: bottom + BOTTOM,
    };
    figure.draw(|canvas| {
        axes.draw_x(canvas, &TICKS, "largest difference between groups (AUC: last row)")?;
        let mut top = TOP;
        for line in &lines {
            draw(canvas, &axes, line, top)?;
            top += height(line);
        }
        Ok(())
    })
}

fn height(line: &Line) -> f64 {
    ROW + LINE * (reason_lines(line).len().max(1) - 1) as f64
}

/// Why there is no value, in lines that fit right of the name.
fn reason_lines(line: &Line) -> Vec<String> {
    let reason = |text: &String| wrap(&format!("undefined: {text}"), fitting(WIDTH - LEFT - 10.0, 10.5));
    line.found.as_ref().err().map(reason).unwrap_or_default()
}

fn draw(canvas: &Canvas<'_>, axes: &Axes, line: &Line, top: f64) -> Result<(), DrawError> {
    let middle = top + ROW / 2.0;
    canvas.text(line.name, (2.0, middle), Anchor::Start, Ink::new(12.0, INK))?;
    if let Ok(found) = &line.found {
        return row(canvas, axes, found, (top, middle));
    }
    for (k, text) in reason_lines(line).iter().enumerate() {
        let at = (LEFT + 6.0, middle + LINE * k as f64);
        canvas.text(text, at, Anchor::Start, Ink::new(11.0, MUTED).italic())?;
    }
    Ok(())
}

fn row(canvas: &Canvas<'_>, axes: &Axes, found: &Found, (top, middle): (f64, f64)) -> Result<(), DrawError> {
    for tick in TICKS {
        let x = axes.x_at(tick);
        canvas.line(&[(x, top), (x, top + ROW)], if tick == 0.0 { AXIS } else { GRID }, 1.0)?;
    }
    let chance = axes.x_at(found.chance);
    canvas.line(&[(chance, middle - 8.0), (chance, middle + 8.0)], GROUP_COLOURS[1], 3.0)?;
    if let Some((lower, upper)) = found.interval {
        let (lower, upper) = (axes.x_at(lower), axes.x_at(upper));
        canvas.line(&[(lower, middle), (upper, middle)], INK, 1.4)?;
        for end in [lower, upper] {
            canvas.line(&[(end, middle - 3.0), (end, middle + 3.0)], INK, 1.4)?;
        }
    }
    canvas.circle((axes.x_at(found.value), middle), 4.0, BLUE)?;
    let ends = found.interval.map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
    let text = number(found.value) + &ends.unwrap_or_default();
    canvas.text(&text, (VALUES, middle - 6.0), Anchor::Start, Ink::new(11.0, INK))?;
    let p = found.p.map(|p| format!(", p {}", p_relation(p))).unwrap_or_default();
    let below = format!("chance {}{p}", number(found.chance));
    canvas.text(&below, (VALUES, middle + 6.0), Anchor::Start, Ink::new(10.0, MUTED))
}

fn describe(line: &Line) -> String {
    match &line.found {
        Ok(found) => {
            let ends = found.interval.map(|(low, high)| format!(", interval {} to {}", number(low), number(high)));
            let (value, chance) = (number(found.value), number(found.chance));
            format!("{} {value}{}, by chance {chance}", line.name, ends.unwrap_or_default())
        }
        Err(_) => format!("{} undefined", line.name),
    }
}
