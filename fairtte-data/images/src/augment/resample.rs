//! The pixels of an augmented image: rotated about the centre of the stored one, cropped, mirrored.
//!
//! A rotated pixel is the bilinear mean of its four neighbours; outside the image it is 0, black, as the background of
//! films, scans and photographs. This is `scipy.ndimage.rotate(.., reshape=False, order=1, mode="constant", cval=0)`:
//! positive angles rotate counterclockwise on the screen. Rotation is in pixel coordinates, so a picture that was
//! stored with a changed aspect ratio is also slightly sheared. Volumes rotate slice by slice in the plane of height
//! and width.

use super::{Augmentation, Draw, extent};

/// The source of one pixel of the target.
#[derive(Clone, Copy)]
struct Tap {
    /// Begin of the upper and of the lower row of neighbours.
    rows: [usize; 2],
    /// Left and right neighbour.
    columns: [usize; 2],
    /// Weight of the lower row and of the right column; `None` for a pixel from outside the image.
    weights: Option<(f32, f32)>,
}

impl Augmentation {
    /// Fills `target`, `[channels, ..]` in the size of the model, from `source`, `[channels, ..]` as stored.
    pub(crate) fn apply(&self, draw: &Draw, source: &[f32], target: &mut [f32]) {
        let (from, to) = (extent(&self.stored), extent(&self.size));
        let [from_depth, from_height, from_width] = from;
        let [depth, height, width] = to;
        let first = slices_begin(&draw.begin);
        let n_channels = source.len() / (from_depth * from_height * from_width);
        let turn = Turn::new([from_height, from_width], draw.angle);
        if let Some(displacement) = &draw.displacement {
            let source_of = |row: usize, column: usize| {
                let row = if draw.mirror_height { height - 1 - row } else { row };
                let column = if draw.mirror_width { width - 1 - column } else { column };
                [first[1] + row, first[2] + column]
            };
            return displacement.apply([from, to], first[0], &source_of, &turn, source, target);
        }
        if draw.angle == 0.0 {
            return self.apply_straight(draw, source, target);
        }
        let mut taps = Vec::with_capacity(width);
        for row in 0..height {
            let from_row = first[1] + if draw.mirror_height { height - 1 - row } else { row };
            let columns =
                (0..width).map(|column| first[2] + if draw.mirror_width { width - 1 - column } else { column });
            taps.clear();
            taps.extend(columns.map(|column| turn.tap(from_row, column)));
            for (channel, slice) in (0..n_channels).flat_map(|channel| (0..depth).map(move |slice| (channel, slice))) {
                let begin = (channel * from_depth + first[0] + slice) * from_height * from_width;
                let plane = &source[begin..begin + from_height * from_width];
                let at = ((channel * depth + slice) * height + row) * width;
                let line = &mut target[at..at + width];
                line.iter_mut().zip(&taps).for_each(|(value, tap)| *value = tap.value(plane));
            }
        }
    }

    /// As [`apply`](Self::apply) for a draw that only cuts and mirrors, of values of any type.
    pub(crate) fn apply_straight<T: Copy>(&self, draw: &Draw, source: &[T], target: &mut [T]) {
        let [from_depth, from_height, from_width] = extent(&self.stored);
        let [depth, height, width] = extent(&self.size);
        let first = slices_begin(&draw.begin);
        for (index, line) in target.chunks_exact_mut(width).enumerate() {
            let (row, slice) = (index % height, index / height);
            let (channel, slice) = (slice / depth, slice % depth);
            let from_row = first[1] + if draw.mirror_height { height - 1 - row } else { row };
            let begin = ((channel * from_depth + first[0] + slice) * from_height + from_row) * from_width + first[2];
            line.copy_from_slice(&source[begin..begin + width]);
            if draw.mirror_width {
                line.reverse();
            }
        }
    }
}

impl Augmentation {
    /// Fills `target`, `[height, width]` in the size of the model, from the labels of a picture as stored: every pixel has the label
    /// nearest to the place that it shows, and 0, the background, outside of the stored picture.
    pub fn apply_to_labels(&self, draw: &Draw, source: &[u8], target: &mut [u8]) {
        let ([_, from_height, from_width], [_, height, width]) = (extent(&self.stored), extent(&self.size));
        let first = slices_begin(&draw.begin);
        let turn = Turn::new([from_height, from_width], draw.angle);
        for (at, label) in target.iter_mut().enumerate() {
            let (row, column) = (at / width, at % width);
            let row = first[1] + if draw.mirror_height { height - 1 - row } else { row };
            let column = first[2] + if draw.mirror_width { width - 1 - column } else { column };
            let [row, column] = match &draw.displacement {
                Some(displacement) => displacement.place([1, from_height, from_width], [0, row, column], &turn),
                None => turn.place(row as f64, column as f64),
            };
            let nearest = nearest(row, from_height).zip(nearest(column, from_width));
            *label = nearest.map_or(0, |(row, column)| source[row * from_width + column]);
        }
    }
}

/// The pixel nearest to `at`, of two the second; `None` where [`neighbours`] finds none.
fn nearest(at: f64, extent: usize) -> Option<usize> {
    neighbours(at, extent).map(|(pixels, weight)| pixels[usize::from(weight >= 0.5)])
}

fn slices_begin(begin: &[usize]) -> [usize; 3] {
    if let [depth, height, width] = *begin { [depth, height, width] } else { [0, begin[0], begin[1]] }
}

/// A rotation of a plane about its centre.
pub(super) struct Turn {
    extent: [usize; 2],
    centre: [f64; 2],
    sine: f64,
    cosine: f64,
}

impl Turn {
    fn new(extent: [usize; 2], degrees: f64) -> Self {
        let (sine, cosine) = degrees.to_radians().sin_cos();
        Self { extent, centre: extent.map(|extent| (extent as f64 - 1.0) / 2.0), sine, cosine }
    }

    /// The row and the column of the stored plane that a place of the rotated one shows.
    pub(super) fn place(&self, row: f64, column: f64) -> [f64; 2] {
        let (down, right) = (row - self.centre[0], column - self.centre[1]);
        [
            self.cosine * down + self.sine * right + self.centre[0],
            self.cosine * right - self.sine * down + self.centre[1],
        ]
    }

    fn tap(&self, row: usize, column: usize) -> Tap {
        let [row, column] = self.place(row as f64, column as f64);
        match (neighbours(row, self.extent[0]), neighbours(column, self.extent[1])) {
            (Some((rows, lower)), Some((columns, further))) => {
                Tap { rows: rows.map(|row| row * self.extent[1]), columns, weights: Some((lower, further)) }
            }
            _ => Tap { rows: [0; 2], columns: [0; 2], weights: None },
        }
    }
}

/// The two pixels around `at` and the weight of the second; `None` outside of 0..=extent - 1.
pub(super) fn neighbours(at: f64, extent: usize) -> Option<([usize; 2], f32)> {
    /// Sine and cosine are rounded: a pixel that stays at the border must not fall outside.
    const ROUNDING: f64 = 1e-9;
    let last = extent as f64 - 1.0;
    if !(-ROUNDING..=last + ROUNDING).contains(&at) {
        return None;
    }
    let at = at.clamp(0.0, last);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the side of an image")]
    let first = at.floor() as usize;
    #[expect(clippy::cast_possible_truncation, reason = "intensities are f32")]
    let weight = (at - first as f64) as f32;
    Some(([first, (first + 1).min(extent - 1)], weight))
}

impl Tap {
    fn value(&self, plane: &[f32]) -> f32 {
        let Some((lower, further)) = self.weights else { return 0.0 };
        let row = |begin: usize| {
            let (left, right) = (plane[begin + self.columns[0]], plane[begin + self.columns[1]]);
            left + (right - left) * further
        };
        let (upper, below) = (row(self.rows[0]), row(self.rows[1]));
        upper + (below - upper) * lower
    }
}
