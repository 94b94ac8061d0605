//! Markers that differ in shape and colour, so that models and groups can be distinguished in grey too.

use std::f64::consts::PI;

use plotters::prelude::RGBColor;

use super::canvas::{Axes, Canvas, DrawError, GROUP_COLOURS, Point};

/// Width of the markers along a line.
const ALONG: f64 = 7.5;
/// Markers along one line.
const N_ALONG: usize = 4;

/// The marker of one of several models or groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    shape: Shape,
    pub(super) colour: RGBColor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Cross,
}

const SHAPES: [Shape; 6] =
    [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond, Shape::TriangleDown, Shape::Cross];

impl Marker {
    /// The marker of the model at this place; shapes repeat after 6 models, shape and colour together after 12.
    pub(super) fn of(place: usize) -> Self {
        Self { shape: SHAPES[place % SHAPES.len()], colour: GROUP_COLOURS[place % GROUP_COLOURS.len()] }
    }

    /// Draws the marker `size` pixels wide.
    pub(super) fn draw(self, canvas: &Canvas<'_>, at: Point, size: f64, opacity: f64) -> Result<(), DrawError> {
        let points: Vec<Point> =
            self.shape.outline().into_iter().map(|(x, y)| (at.0 + x * size, at.1 + y * size)).collect();
        canvas.polygon(&points, self.colour, opacity)
    }
}

/// Draws markers along the lines of the group at `place` of `n`, not above those of the other groups; none of a single
/// group, which needs no distinction. `points` run from left to right.
pub(super) fn along(
    canvas: &Canvas<'_>,
    axes: &Axes,
    points: &[Point],
    (place, n): (usize, usize),
) -> Result<(), DrawError> {
    if n < 2 {
        return Ok(());
    }
    let step = (axes.right - axes.left) / N_ALONG as f64;
    let places = (0..N_ALONG).map(|k| axes.left + step * (k as f64 + (place + 1) as f64 / (n + 1) as f64));
    let mut marks = places.filter_map(|x| Some((x, height_at(points, x)?)));
    marks.try_for_each(|at| Marker::of(place).draw(canvas, at, ALONG, 1.0))
}

/// A line with the marker of its group, for a legend.
pub(super) fn sample(
    canvas: &Canvas<'_>,
    (x, y): Point,
    colour: RGBColor,
    (place, n): (usize, usize),
) -> Result<(), DrawError> {
    canvas.line(&[(x, y), (x + 16.0, y)], colour, if n < 2 { 3.0 } else { 2.0 })?;
    if n < 2 { Ok(()) } else { Marker::of(place).draw(canvas, (x + 8.0, y), ALONG + 1.0, 1.0) }
}

/// The height of a line at `x`, or `None` outside it.
fn height_at(points: &[Point], x: f64) -> Option<f64> {
    let after = points.partition_point(|point| point.0 <= x);
    let (before, after) = (points.get(after.checked_sub(1)?)?, points.get(after)?);
    Some(before.1 + (after.1 - before.1) * (x - before.0) / (after.0 - before.0))
}

impl Shape {
    /// Corners around (0, 0); all shapes have about the same area.
    fn outline(self) -> Vec<Point> {
        let triangle = [(0.0, -0.62), (0.6, 0.42), (-0.6, 0.42)];
        match self {
            Self::Circle => (0..24).map(|k| f64::from(k) * PI / 12.0).map(|a| (0.5 * a.cos(), 0.5 * a.sin())).collect(),
            Self::Square => vec![(-0.45, -0.45), (0.45, -0.45), (0.45, 0.45), (-0.45, 0.45)],
            Self::Triangle => triangle.to_vec(),
            Self::TriangleDown => triangle.map(|(x, y)| (x, -y)).to_vec(),
            Self::Diamond => vec![(0.0, -0.64), (0.64, 0.0), (0.0, 0.64), (-0.64, 0.0)],
            Self::Cross => {
                let (arm, half) = (0.58, 0.18);
                let quarter = [(-half, -arm), (half, -arm), (half, -half)];
                let turned = |k: usize| quarter.map(|(x, y)| (0..k).fold((x, y), |(x, y), _| (-y, x)));
                (0..4).flat_map(turned).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_models_have_different_markers_and_six_different_shapes() {
        let key = |place| format!("{:?}", Marker::of(place));
        let all: std::collections::BTreeSet<String> = (0..12).map(key).collect();
        assert_eq!(all.len(), 12);
        assert!((0..6).all(|one| (0..one).all(|other| Marker::of(one).shape != Marker::of(other).shape)));
    }

    #[test]
    fn a_marker_lies_on_its_line() {
        let step = [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (4.0, 7.0)];
        assert_eq!([1.0, 2.0, 3.0].map(|x| height_at(&step, x)), [Some(1.0), Some(5.0), Some(6.0)]);
        assert_eq!([-1.0, 4.0].map(|x| height_at(&step, x)), [None, None]);
    }

    #[test]
    fn every_shape_is_centred_and_as_wide_as_its_size() {
        for shape in SHAPES {
            let outline = shape.outline();
            let (low, high) =
                outline.iter().fold((0.0_f64, 0.0_f64), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
            assert!((low + high).abs() < 1e-12 && (0.8..=1.3).contains(&(high - low)), "{shape:?}");
        }
    }
}
