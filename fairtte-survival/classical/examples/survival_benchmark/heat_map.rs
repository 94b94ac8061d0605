//! Models x scenarios: heat maps as an SVG, and the values as CSV. A panel per part of the follow-up, dark where the error is large.

use std::fmt::Write as _;

const CELL: (f64, f64) = (58.0, 22.0);
const LEFT: f64 = 190.0;
const TOP: f64 = 130.0;

/// Panels with a title and values by scenario and model; the colour is the logarithm of the value between 0.1 and 5.
pub fn drawn(panels: &[(&str, &Vec<Vec<f64>>)], scenarios: &[String], models: &[String]) -> String {
    let panel_width = models.len() as f64 * CELL.0 + 24.0;
    let width = LEFT + panels.len() as f64 * panel_width;
    let height = TOP + scenarios.len() as f64 * CELL.1 + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (row, name) in scenarios.iter().enumerate() {
        text(&mut svg, (LEFT - 8.0, middle(row)), "end", name);
    }
    for (panel, (title, values)) in panels.iter().enumerate() {
        let left = LEFT + panel as f64 * panel_width;
        text(&mut svg, (left + 4.0, 16.0), "start", &format!("MALE, {title}"));
        for (column, name) in models.iter().enumerate() {
            let x = left + (column as f64 + 0.6) * CELL.0;
            let place = format!("transform=\"translate({x:.1} {:.1}) rotate(-55)\"", TOP - 8.0);
            let _ = writeln!(svg, "<text {place}>{name}</text>");
        }
        for (row, values) in values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let (x, y) = (left + column as f64 * CELL.0, TOP + row as f64 * CELL.1);
                let share = ((value / 0.1).ln() / 50.0_f64.ln()).clamp(0.0, 1.0);
                let colour = |light: f64, dark: f64| (light + share * (dark - light)).round();
                let (red, green, blue) = (colour(247.0, 8.0), colour(251.0, 48.0), colour(255.0, 107.0));
                let ink = if share > 0.55 { "white" } else { "black" };
                let (w, h) = (CELL.0 - 1.0, CELL.1 - 1.0);
                let fill = format!("fill=\"rgb({red},{green},{blue})\"");
                let _ = writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w}\" height=\"{h}\" {fill}/>");
                let place = format!("x=\"{:.1}\" y=\"{:.1}\"", x + 0.5 * CELL.0, middle(row));
                let _ = writeln!(svg, "<text {place} text-anchor=\"middle\" fill=\"{ink}\">{value:.2}</text>");
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The values as a table of `fairtte test`: a line per panel, scenario and model.
pub fn table(panels: &[(&str, &Vec<Vec<f64>>)], scenarios: &[String], models: &[String]) -> String {
    let mut text = "metric,setting,method,value\n".to_owned();
    for (panel, values) in panels {
        for (scenario, values) in scenarios.iter().zip(*values) {
            for (model, value) in models.iter().zip(values) {
                let _ = writeln!(text, "MALE {panel},{scenario},\"{model}\",{value}");
            }
        }
    }
    text
}

/// Base line of the text of a row.
fn middle(row: usize) -> f64 {
    TOP + (row as f64 + 0.68) * CELL.1
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}
