//! A drawing area in CSS pixels over the SVG back end of `plotters`, and an axis box on it.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, RGBAColor, RGBColor, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontStyle, FontTransform, IntoFont, ShapeStyle, TextStyle};

use super::super::ReportError;
use super::super::format::{escape, short};

pub(super) type Point = (f64, f64);
/// The error of `plotters`.
pub(crate) type DrawError = DrawingAreaErrorKind<std::io::Error>;
type Drawn = Result<(), DrawError>;

/// Text and main lines. The style sheet of the page knows the four neutral colours by their code.
pub(super) const INK: RGBColor = RGBColor(0x1f, 0x24, 0x30);
/// Secondary text.
pub(super) const MUTED: RGBColor = RGBColor(0x5b, 0x64, 0x70);
/// Axes, reference lines and bands: 3.6 times as dark as the page, so that they can be seen (WCAG 2.2, 1.4.11).
pub(super) const AXIS: RGBColor = RGBColor(0x7d, 0x87, 0x94);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xe6, 0xe9, 0xed);
pub(super) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
/// Colours of groups drawn over each other.
pub(super) const GROUP_COLOURS: [RGBColor; 4] =
    [BLUE, RGBColor(0xd5, 0x5e, 0x00), RGBColor(0x00, 0x9e, 0x73), RGBColor(0xcc, 0x79, 0xa7)];

/// `plotters` rounds positions to whole units, so a CSS pixel is this many units.
const UNITS: f64 = 4.0;
/// The SVG back end divides font sizes by this.
const FONT_FACTOR: f64 = 1.24;
const FONT: &str = "system-ui, sans-serif";
/// Mean width of a character of a proportional font, as a share of its size.
const CHARACTER_WIDTH: f64 = 0.56;

/// How many characters of text of this size fit into `width`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
pub(super) fn fitting(width: f64, size: f64) -> usize {
    (width / (size * CHARACTER_WIDTH)).max(1.0) as usize
}

/// The point at which a text is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Look of a text: size in CSS pixels, colour, weight.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    pub(super) size: f64,
    pub(super) colour: RGBColor,
    pub(super) style: FontStyle,
}

impl Ink {
    pub(super) fn new(size: f64, colour: RGBColor) -> Self {
        Self { size, colour, style: FontStyle::Normal }
    }

    pub(super) fn bold(self) -> Self {
        Self { style: FontStyle::Bold, ..self }
    }

    pub(super) fn italic(self) -> Self {
        Self { style: FontStyle::Italic, ..self }
    }
}

/// Size and texts of a figure; the texts are for screen readers.
pub(super) struct Figure<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Figure<'_> {
    /// Draws the figure with `paint`; the result is an `<svg>` element that scales with its container.
    pub(super) fn draw(&self, paint: impl FnOnce(&Canvas<'_>) -> Drawn) -> Result<String, ReportError> {
        let mut svg = String::new();
        let size = (size_in_units(self.width), size_in_units(self.height));
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let canvas = Canvas { area };
        let drawn = paint(&canvas).and_then(|()| canvas.area.present());
        drawn.map_err(|source| ReportError::Plot { figure: self.title.clone(), source })?;
        drop(canvas);
        // The opening tag of the back end has a fixed size in units and no texts.
        let body = svg.split_once('>').map_or("", |(_, body)| body);
        let (id, title, description) = (self.id, escape(&self.title), escape(&self.description));
        Ok(format!(
            "<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" style=\"max-width:{}px\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\
             <title id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{description}</desc>{body}",
            size.0, size.1, self.width, self.height, self.width
        ))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures are a few thousand units wide")]
fn size_in_units(pixels: f64) -> u32 {
    (pixels * UNITS).round() as u32
}

#[expect(clippy::cast_possible_truncation, reason = "figures are a few thousand units wide")]
fn units(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

fn point((x, y): Point) -> (i32, i32) {
    (units(x), units(y))
}

fn stroke(colour: RGBAColor, width: f64) -> ShapeStyle {
    ShapeStyle { color: colour, filled: false, stroke_width: size_in_units(width) }
}

fn font(ink: Ink) -> FontDesc<'static> {
    (FONT, ink.size * UNITS * FONT_FACTOR, ink.style).into_font()
}

/// A drawing area; positions are CSS pixels from the upper left corner.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    pub(super) fn line(&self, points: &[Point], colour: RGBColor, width: f64) -> Drawn {
        let points: Vec<_> = points.iter().copied().map(point).collect();
        self.area.draw(&PathElement::new(points, stroke(colour.to_rgba(), width)))
    }

    /// A line of dashes of `dash` and gaps of `gap` pixels.
    pub(super) fn dashed(&self, points: &[Point], colour: RGBColor, width: f64, (dash, gap): (f64, f64)) -> Drawn {
        let points: Vec<_> = points.iter().copied().map(point).collect();
        let style = stroke(colour.to_rgba(), width);
        self.area.draw(&DashedPathElement::new(points, units(dash), units(gap), style))
    }

    pub(super) fn polygon(&self, points: &[Point], colour: RGBColor, opacity: f64) -> Drawn {
        let points: Vec<_> = points.iter().copied().map(point).collect();
        self.area.draw(&Polygon::new(points, colour.mix(opacity).filled()))
    }

    pub(super) fn square(&self, (x, y): Point, side: f64, colour: RGBColor) -> Drawn {
        let corners = [point((x - side / 2.0, y - side / 2.0)), point((x + side / 2.0, y + side / 2.0))];
        self.area.draw(&Rectangle::new(corners, colour.filled()))
    }

    pub(super) fn circle(&self, centre: Point, radius: f64, colour: RGBColor) -> Drawn {
        self.area.draw(&Circle::new(point(centre), size_in_units(radius), colour.filled()))
    }

    /// Text whose middle line is at the height of `at`.
    pub(super) fn text(&self, text: &str, at: Point, anchor: Anchor, ink: Ink) -> Drawn {
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle::from(font(ink)).color(&ink.colour).pos(Pos::new(horizontal, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), point(at), style))
    }

    /// Text that runs upwards, centred on `at`.
    pub(super) fn upward_text(&self, text: &str, at: Point, ink: Ink) -> Drawn {
        let font = font(ink).transform(FontTransform::Rotate270);
        let style = TextStyle::from(font).color(&ink.colour).pos(Pos::new(HPos::Center, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), point(at), style))
    }
}

/// The box in which values are drawn, with its scales.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Range<f64>,
    pub(super) y: Range<f64>,
}

impl Axes {
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        (self.x_at(x), self.y_at(y))
    }

    pub(super) fn x_at(&self, x: f64) -> f64 {
        self.left + (x - self.x.start) / (self.x.end - self.x.start) * (self.right - self.left)
    }

    pub(super) fn y_at(&self, y: f64) -> f64 {
        self.bottom - (y - self.y.start) / (self.y.end - self.y.start) * (self.bottom - self.top)
    }

    /// The x axis with about `n` ticks and its title below.
    pub(super) fn draw_x(&self, canvas: &Canvas<'_>, ticks: &[f64], title: &str) -> Drawn {
        canvas.line(&[(self.left, self.bottom), (self.right, self.bottom)], AXIS, 1.0)?;
        for &tick in ticks {
            let x = self.x_at(tick);
            canvas.line(&[(x, self.bottom), (x, self.bottom + 4.0)], AXIS, 1.0)?;
            canvas.text(&short(tick), (x, self.bottom + 12.0), Anchor::Middle, Ink::new(11.0, MUTED))?;
        }
        let middle = f64::midpoint(self.left, self.right);
        canvas.text(title, (middle, self.bottom + 30.0), Anchor::Middle, Ink::new(12.0, INK))
    }

    /// Horizontal grid lines with their values, and the title of the y axis running upwards.
    pub(super) fn draw_y(&self, canvas: &Canvas<'_>, ticks: &[f64], title: &str) -> Drawn {
        for &tick in ticks {
            let y = self.y_at(tick);
            canvas.line(&[(self.left, y), (self.right, y)], GRID, 1.0)?;
            canvas.text(&short(tick), (self.left - 6.0, y), Anchor::End, Ink::new(11.0, MUTED))?;
        }
        let middle = f64::midpoint(self.top, self.bottom);
        let longest = ticks.iter().map(|tick| short(*tick).chars().count()).max().unwrap_or(0);
        let beside = 6.0 + 11.0 * CHARACTER_WIDTH * longest as f64 + 9.0;
        canvas.upward_text(title, (self.left - beside.max(40.0), middle), Ink::new(12.0, INK))
    }
}

/// Round values inside `range`, at most `n`.
pub(super) fn ticks(range: &Range<f64>, n: usize) -> Vec<f64> {
    let inside = |tick: &f64| (range.start..=range.end).contains(tick);
    RangedCoordf64::from(range.clone()).key_points(n).into_iter().filter(inside).collect()
}

/// The range of `values`, widened by `margin` of its length on both sides; never empty.
pub(super) fn padded_range(values: impl Iterator<Item = f64>, margin: f64) -> Range<f64> {
    let bounds = values.fold(None, |bounds: Option<(f64, f64)>, value| {
        Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    let (low, high) = bounds.unwrap_or((0.0, 1.0));
    let length = high - low;
    let pad = if length > 0.0 { length * margin } else { (low.abs() * 0.1).max(0.05) };
    low - pad..high + pad
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_never_empty_and_ticks_are_round_and_inside() {
        assert_eq!(padded_range([0.0, 1.0].into_iter(), 0.1), -0.1..1.1);
        let single = padded_range([2.0].into_iter(), 0.1);
        assert!(single.start < 2.0 && 2.0 < single.end);
        assert_eq!(padded_range(std::iter::empty(), 0.0), 0.0..1.0);
        let ticks = ticks(&(0.03..9.7), 6);
        assert_eq!(ticks, [2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn a_figure_scales_says_its_texts_and_escapes_what_it_is_given() {
        let (title, description) = ("<script>".to_owned(), "a & b".to_owned());
        let figure = Figure { id: "f1", title, description, width: 100.0, height: 50.0 };
        let svg = figure.draw(|canvas| canvas.text("<b> & c", (5.0, 5.0), Anchor::Start, Ink::new(10.0, INK)));
        let svg = svg.expect("the texts are plain");
        assert!(
            svg.starts_with(
                "<svg viewBox=\"0 0 400 200\" width=\"100\" height=\"50\" style=\"max-width:100px\" role=\"img\""
            ),
            "{svg}"
        );
        assert!(svg.contains("<title id=\"f1-title\">&lt;script&gt;</title>"), "{svg}");
        assert!(svg.contains("&lt;b&gt; &amp; c"), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(!svg.contains("<script"), "{svg}");
    }
}
