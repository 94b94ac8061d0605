//! Maximum over windows of pictures and mean over whole planes, and their gradients.
//!
//! The place of each maximum is kept, as its gradient goes there. The first of equal values is taken, and NaN precedes
//! all numbers, as in `PyTorch`. The columns of a plane are sorted by their remainder modulo the stride, with minus
//! infinity around them, so that each place of the window is one pass over a row that the compiler can vectorise.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#![expect(clippy::too_many_arguments, reason = "arrays and sizes of one layer; a struct would only be taken apart")]

use rayon::prelude::*;

use crate::simd::lanes::{last_lanes, load_last, masked, total};
use crate::simd::{self, Kernel, Vectors, vectorized};
use crate::tasks::units_per_task;

/// Values per task.
const PIECE: usize = 1 << 14;
/// Number of values that are added in single precision.
const BLOCK: usize = 1 << 12;

/// Height and width of the result of [`maximum`].
///
/// # Panics
/// If the window does not fit into the padded picture or its stride is 0.
pub fn maximum_size(size: [usize; 2], kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> [usize; 2] {
    std::array::from_fn(|axis| {
        let padded = size[axis] + 2 * padding[axis];
        padded.checked_sub(kernel[axis]).expect("a window that fits into the padded picture") / stride[axis] + 1
    })
}

/// Maxima over windows of height and width `kernel`, `stride` apart, of `planes` pictures of `size`; `padding` at most half of
/// `kernel` along each axis.
/// `indices` receives the place of each maximum in its plane.
///
/// # Panics
/// If the sizes do not fit together.
pub fn maximum(
    x: &[f32],
    planes: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    y: &mut [f32],
    indices: Option<&mut [u32]>,
) {
    let output_size = maximum_size(size, kernel, stride, padding);
    let (input, output) = (size[0] * size[1], output_size[0] * output_size[1]);
    let fits = (0..2).all(|axis| 2 * padding[axis] <= kernel[axis]);
    assert!(fits, "padding {padding:?} of more than half a window of {kernel:?}");
    assert!(x.len() == planes * input && y.len() == planes * output, "lengths of input and output");
    assert!(indices.as_ref().is_none_or(|indices| indices.len() == y.len()), "length of the indices");
    let window = Window { size, output_size, kernel, stride, padding };
    let group = units_per_task(planes, input, PIECE);
    let compute = |room: &mut Room, task: usize, y: &mut [f32], indices: Option<&mut [u32]>| {
        let x = x[task * group * input..].chunks_exact(input);
        match indices {
            Some(indices) => {
                let results = y.chunks_exact_mut(output).zip(indices.chunks_exact_mut(output));
                for ((y, indices), x) in results.zip(x) {
                    vectorized!(maximum_plane(x, &window, room, y, indices));
                }
            }
            None => {
                for (y, x) in y.chunks_exact_mut(output).zip(x) {
                    vectorized!(maximum_plane(x, &window, room, y, &mut []));
                }
            }
        }
    };
    let results = y.par_chunks_mut(group * output).enumerate();
    let room = || Room::new(&window);
    match indices {
        Some(indices) => results
            .zip(indices.par_chunks_mut(group * output))
            .for_each_init(room, |room, ((task, y), indices)| compute(room, task, y, Some(indices))),
        None => results.for_each_init(room, |room, (task, y)| compute(room, task, y, None)),
    }
}

/// Gradient of [`maximum`]: `dx` receives the entry of `dy` at each of `indices`, and zero elsewhere.
/// `plane` is the length of a plane of `x` and `output_plane` of `y`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn maximum_gradient(dy: &[f32], indices: &[u32], plane: usize, output_plane: usize, dx: &mut [f32]) {
    assert_eq!(dy.len(), indices.len(), "lengths of gradient and indices");
    assert_eq!(dy.len() * plane, dx.len() * output_plane, "lengths of both gradients");
    if dy.is_empty() {
        return dx.fill(0.0);
    }
    let sources = dy.par_chunks(output_plane).zip(indices.par_chunks(output_plane));
    dx.par_chunks_mut(plane).zip(sources).for_each(|(dx, (dy, indices))| {
        dx.fill(0.0);
        for (&gradient, &index) in dy.iter().zip(indices) {
            dx[index as usize] += gradient;
        }
    });
}

/// Mean of each plane.
///
/// # Panics
/// If the lengths do not fit together.
pub fn average(x: &[f32], plane: usize, y: &mut [f32]) {
    assert_eq!(x.len(), plane * y.len(), "lengths of input and output");
    if plane == 0 {
        return y.fill(f32::NAN);
    }
    let group = units_per_task(y.len(), plane, PIECE);
    y.par_chunks_mut(group).zip(x.par_chunks(group * plane)).for_each(|(y, x)| average_here(x, plane, y));
}

/// As [`average`], on the calling thread, of planes that are not empty.
pub(crate) fn average_here(x: &[f32], plane: usize, y: &mut [f32]) {
    simd::run(Means { x, plane, y });
}

/// Gradient of [`average`]: each value of a plane receives the same share.
///
/// # Panics
/// If the lengths do not fit together.
pub fn average_gradient(dy: &[f32], plane: usize, dx: &mut [f32]) {
    assert_eq!(dx.len(), plane * dy.len(), "lengths of both gradients");
    if dx.is_empty() {
        return;
    }
    let group = units_per_task(dy.len(), plane, PIECE);
    dx.par_chunks_mut(group * plane).zip(dy.par_chunks(group)).for_each(|(dx, dy)| {
        for (dx, &gradient) in dx.chunks_exact_mut(plane).zip(dy) {
            dx.fill(gradient / plane as f32);
        }
    });
}

/// Sizes of a layer of maxima.
#[derive(Clone, Copy, Debug)]
struct Window {
    size: [usize; 2],
    output_size: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
}

impl Window {
    /// Columns of one remainder.
    fn pitch(&self) -> usize {
        (self.size[1] + 2 * self.padding[1]).div_ceil(self.stride[1]).max(self.output_size[1]) + self.kernel[1]
    }
}

/// Buffers for a plane with its columns sorted, in which values that are never written stay minus infinity, and for the
/// places of one row of maxima.
struct Room {
    sorted: Vec<f32>,
    places: Vec<u32>,
}

impl Room {
    fn new(window: &Window) -> Self {
        let columns = vec![f32::NEG_INFINITY; window.size[0] * window.stride[1] * window.pitch()];
        Self { sorted: columns, places: vec![0; window.output_size[1]] }
    }
}

#[inline(always)]
fn maximum_plane(x: &[f32], window: &Window, room: &mut Room, y: &mut [f32], indices: &mut [u32]) {
    let &Window { size: [height, width], output_size: [_, output_width], kernel, stride, padding } = window;
    // Along the height, and along the width.
    let ([tall, kernel], [down, stride], [above, padding]) = (kernel, stride, padding);
    let pitch = window.pitch();
    for (row, sorted) in x.chunks_exact(width).zip(room.sorted.chunks_exact_mut(stride * pitch)) {
        sort_columns(row, stride, padding, pitch, sorted);
    }
    for (row, y) in y.chunks_exact_mut(output_width).enumerate() {
        let top = (row * down).saturating_sub(above);
        let bottom = (row * down + tall - above).min(height);
        y.fill(f32::NEG_INFINITY);
        for (column, place) in room.places.iter_mut().enumerate() {
            *place = index(top * width + (column * stride).saturating_sub(padding));
        }
        for source in top..bottom {
            let sorted = &room.sorted[source * stride * pitch..][..stride * pitch];
            for tap in 0..kernel {
                let values = &sorted[tap % stride * pitch + tap / stride..][..output_width];
                // Wraps below zero where the tap is in the padding, which is never the maximum.
                let first = index(source * width + tap).wrapping_sub(index(padding));
                take_greater(values, first, index(stride), y, &mut room.places);
            }
        }
        if !indices.is_empty() {
            indices[row * output_width..][..output_width].copy_from_slice(&room.places);
        }
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "planes have fewer than 2^32 numbers")]
fn index(place: usize) -> u32 {
    place as u32
}

/// Column c goes to place (c + padding) / stride of the part of its remainder (c + padding) % stride.
#[inline(always)]
fn sort_columns(row: &[f32], stride: usize, padding: usize, pitch: usize, sorted: &mut [f32]) {
    for (phase, sorted) in sorted.chunks_exact_mut(pitch).enumerate() {
        let first = (phase + stride - padding % stride) % stride;
        let sorted = &mut sorted[(first + padding) / stride..];
        let Some(row) = row.get(first..) else { continue };
        if stride == 2 {
            for (sorted, &[value, _]) in sorted.iter_mut().zip(pulp::as_arrays::<2, _>(row).0) {
                *sorted = value;
            }
            if row.len() % 2 == 1 {
                sorted[row.len() / 2] = row[row.len() - 1];
            }
        } else {
            for (sorted, &value) in sorted.iter_mut().zip(row.iter().step_by(stride)) {
                *sorted = value;
            }
        }
    }
}

/// Replaces the entries of `greatest` that `values` exceed, and their places, which are `step` apart.
#[inline(always)]
fn take_greater(values: &[f32], first: u32, step: u32, greatest: &mut [f32], places: &mut [u32]) {
    let mut place = first;
    for ((&value, greatest), kept) in values.iter().zip(greatest).zip(places) {
        let wins = (value > *greatest) | value.is_nan();
        *greatest = if wins { value } else { *greatest };
        *kept = if wins { place } else { *kept };
        place = place.wrapping_add(step);
    }
}

struct Means<'a> {
    x: &'a [f32],
    plane: usize,
    y: &'a mut [f32],
}

impl Kernel for Means<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        for (x, y) in self.x.chunks_exact(self.plane).zip(self.y) {
            let mut sum = 0.0;
            if x.len() < S::F32_LANES {
                sum = f64::from(x.iter().sum::<f32>());
            }
            // A plane shorter than a vector is added already.
            let blocks = if x.len() < S::F32_LANES { &[] } else { x };
            for block in blocks.chunks(BLOCK) {
                let mut sums = [simd.splat_f32s(0.0); 2];
                let (pairs, last) = S::as_simd_f32s(block).0.as_chunks::<2>();
                for pair in pairs {
                    sums = [simd.add_f32s(sums[0], pair[0]), simd.add_f32s(sums[1], pair[1])];
                }
                for &vector in last {
                    sums[0] = simd.add_f32s(sums[0], vector);
                }
                let rest = block.len() % S::F32_LANES;
                if rest != 0 {
                    sums[0] = simd.add_f32s(sums[0], masked(simd, last_lanes(simd, rest), load_last(simd, block)));
                }
                sum += total(simd, simd.add_f32s(sums[0], sums[1]));
            }
            #[expect(clippy::cast_possible_truncation, reason = "the result is single precision")]
            let mean = (sum / self.plane as f64) as f32;
            *y = mean;
        }
    }
}

#[cfg(test)]
mod tests;
