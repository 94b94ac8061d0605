//! Critical-difference diagram: the average ranks of several methods on one axis, with bars over those that Nemenyi's test
//! does not find apart (Demšar, Journal of Machine Learning Research 7 (2006) 1-30, figure 1).

use super::super::ReportError;
use super::super::format::{count, elide, list, number, p_relation, short, wrap};
use super::canvas::{AXIS, Anchor, Axes, BLUE, Canvas, DrawError, Figure, INK, Ink, MUTED, fitting, ticks};
use super::forest::superscript;
use crate::method_tests::{MetricTests, Tested};

/// Narrow, so that its texts stay readable where it is shrunk to the width of a phone.
const WIDTH: f64 = 460.0;
/// Room for names on either side.
const NAMES: (f64, f64) = (70.0, 146.0);
/// Size of a name: 20 letters fit into the most room.
const NAME: f64 = 11.5;
/// The axis below the bar of the critical difference, and without one.
const AXIS_Y: (f64, f64) = (74.0, 38.0);
/// Height of a bar over methods that are not apart, of a method, and of a line of text.
const BAR: f64 = 9.0;
const ROW: f64 = 32.0;
const LINE: f64 = 14.0;

/// The figure of one metric; `id` is unique on the page. `None` if nothing is ranked.
pub(crate) fn critical_difference(metric: &MetricTests, level: f64, id: &str) -> Result<Option<String>, ReportError> {
    let diagram = Diagram::new(metric, level);
    if diagram.ranks.is_empty() {
        return Ok(None);
    }
    let figure = Figure {
        id,
        title: format!("Average ranks of {} in {}", count(diagram.ranks.len(), "method"), metric.metric),
        description: diagram.describe(),
        width: WIDTH,
        height: diagram.height(),
    };
    figure.draw(|canvas| diagram.draw(canvas)).map(Some)
}

struct Diagram<'a> {
    metric: &'a MetricTests,
    level: f64,
    /// Name and average rank from the best to the worst.
    ranks: Vec<(&'a str, f64)>,
    /// Lowest and highest average rank of methods that are not apart, of at least two.
    bars: Vec<(f64, f64)>,
    axes: Axes,
}

impl<'a> Diagram<'a> {
    fn new(metric: &'a MetricTests, level: f64) -> Self {
        let average = &metric.ranks.average_ranks;
        let mut ranks: Vec<(&str, f64)> =
            metric.methods.iter().map(String::as_str).zip(average.iter().copied()).collect();
        ranks.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ends = |clique: &Vec<usize>| Some((average[*clique.first()?], average[*clique.last()?]));
        let tested = metric.ranks.tested.as_ref();
        let cliques = tested.map_or(&[][..], |tested| &tested.cliques);
        let bars = cliques.iter().filter(|clique| clique.len() > 1).filter_map(ends).collect();
        let top = if tested.is_some() { AXIS_Y.0 } else { AXIS_Y.1 };
        let left = width_of_names(&ranks);
        let axes = Axes { left, right: WIDTH - left, top, bottom: top, x: 1.0..ranks.len().max(2) as f64, y: 0.0..1.0 };
        Self { metric, level, ranks, bars, axes }
    }

    fn tested(&self) -> Option<&'a Tested> {
        self.metric.ranks.tested.as_ref()
    }

    /// Middle of the first row of names.
    fn rows_from(&self) -> f64 {
        self.axes.bottom + 10.0 + BAR * self.bars.len() as f64 + ROW / 2.0
    }

    fn n_rows(&self) -> usize {
        self.ranks.len().div_ceil(2)
    }

    fn height(&self) -> f64 {
        self.rows_from() + ROW * self.n_rows() as f64 + LINE * self.below().len() as f64
    }

    /// The test, in lines.
    fn below(&self) -> Vec<String> {
        let settings = count(self.metric.ranks.n_settings, "setting");
        let text = match self.tested() {
            Some(tested) => {
                let rejected = if tested.rejects { "rejected" } else { "not rejected" };
                let p = p_relation(tested.friedman.p_value);
                format!("{settings}; equal ranks are {rejected} (Friedman, p {p})")
            }
            None => format!("{settings}; no test of the ranks"),
        };
        wrap(&text, fitting(WIDTH - 8.0, 11.5))
    }

    fn draw(&self, canvas: &Canvas<'_>) -> Result<(), DrawError> {
        let title = format!("average rank in {} (1 = best)", superscript(&self.metric.metric));
        let title = elide(&title, fitting(self.axes.right, 12.0));
        canvas.text(&title, (self.axes.left, 10.0), Anchor::Start, Ink::new(12.0, INK))?;
        self.scale(canvas)?;
        for (k, (low, high)) in self.bars.iter().enumerate() {
            let y = self.axes.bottom + 10.0 + BAR * k as f64;
            let (start, end) = (self.axes.x_at(*low) - 4.0, self.axes.x_at(*high) + 4.0);
            canvas.line(&[(start, y), (end, y)], BLUE, 4.0)?;
        }
        // The better half on the left from the best downwards, the others on the right from the worst downwards.
        let n_left = self.n_rows();
        for (k, (name, rank)) in self.ranks.iter().enumerate() {
            let is_left = k < n_left;
            let row = if is_left { k } else { self.ranks.len() - 1 - k };
            self.method(canvas, (name, *rank), is_left, self.rows_from() + ROW * row as f64)?;
        }
        let from = self.height() - LINE * self.below().len() as f64 + 4.0;
        for (k, line) in self.below().iter().enumerate() {
            canvas.text(line, (4.0, from + LINE * k as f64), Anchor::Start, Ink::new(11.0, MUTED))?;
        }
        Ok(())
    }

    /// The axis with its values above it, and above them the critical difference.
    fn scale(&self, canvas: &Canvas<'_>) -> Result<(), DrawError> {
        let (left, right, y) = (self.axes.left, self.axes.right, self.axes.bottom);
        canvas.line(&[(left, y), (right, y)], AXIS, 1.2)?;
        let marks = ticks(&self.axes.x, 7).into_iter().filter(|mark| mark.fract() == 0.0);
        for mark in marks {
            let x = self.axes.x_at(mark);
            canvas.line(&[(x, y - 4.0), (x, y)], AXIS, 1.0)?;
            canvas.text(&short(mark), (x, y - 11.0), Anchor::Middle, Ink::new(11.0, MUTED))?;
        }
        let Some(tested) = self.tested() else { return Ok(()) };
        let length = tested.critical_difference;
        let y = y - 36.0;
        let end = self.axes.x_at((1.0 + length).min(self.axes.x.end));
        canvas.line(&[(left, y), (end, y)], INK, 1.6)?;
        for x in [left, end] {
            canvas.line(&[(x, y - 4.0), (x, y + 4.0)], INK, 1.6)?;
        }
        let is_cut = 1.0 + length > self.axes.x.end;
        let text = format!("CD = {}{}", short(length), if is_cut { " (longer than the axis)" } else { "" });
        canvas.text(&text, (end + 8.0, y), Anchor::Start, Ink::new(11.5, INK))
    }

    /// A line from the rank on the axis to name and rank beside it.
    fn method(&self, canvas: &Canvas<'_>, (name, rank): (&str, f64), is_left: bool, y: f64) -> Result<(), DrawError> {
        let x = self.axes.x_at(rank);
        let Axes { left, right, .. } = self.axes;
        let (end, text, anchor) =
            if is_left { (left - 6.0, left - 10.0, Anchor::End) } else { (right + 6.0, right + 10.0, Anchor::Start) };
        canvas.line(&[(x, self.axes.bottom), (x, y), (end, y)], MUTED, 1.0)?;
        let name = elide(name, fitting(left - 12.0, NAME));
        canvas.text(&name, (text, y - 3.0), anchor, Ink::new(NAME, INK))?;
        canvas.text(&number(rank), (text, y + 10.0), anchor, Ink::new(10.5, MUTED))
    }

    fn describe(&self) -> String {
        let ranks: Vec<String> = self.ranks.iter().map(|(name, rank)| format!("{name} {}", number(*rank))).collect();
        let mut said = vec![list(&ranks)];
        if let Some(tested) = self.tested() {
            let cliques = tested.cliques.iter().filter(|clique| clique.len() > 1);
            let names = |clique: &Vec<usize>| {
                let names: Vec<String> = clique.iter().map(|method| self.metric.methods[*method].clone()).collect();
                format!("not apart: {}", list(&names))
            };
            let cliques: Vec<String> = cliques.map(names).collect();
            let (cd, level) = (short(tested.critical_difference), short(self.level));
            said.push(format!("critical difference {cd} at {level}"));
            said.extend(cliques);
        }
        said.push(self.below().join(" "));
        said.join("; ")
    }
}

/// Room for the longest name.
fn width_of_names(ranks: &[(&str, f64)]) -> f64 {
    let longest = ranks.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    (16.0 + 6.5 * longest as f64).clamp(NAMES.0, NAMES.1)
}
