//! Markers that differ in shape and colour, so that models can be told apart in grey too.

use std::f64::consts::PI;

use plotters::prelude::RGBColor;

use super::canvas::{Canvas, DrawError, GROUP_COLOURS, Point};

/// The marker of one of several models.
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
    fn every_shape_is_centred_and_as_wide_as_its_size() {
        for shape in SHAPES {
            let outline = shape.outline();
            let (low, high) =
                outline.iter().fold((0.0_f64, 0.0_f64), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
            assert!((low + high).abs() < 1e-12 && (0.8..=1.3).contains(&(high - low)), "{shape:?}");
        }
    }
}
