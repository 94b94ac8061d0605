//! The buffers of `planes.rs` and `taps.rs`: planes with zeros around them.
//!
//! The rows of a buffer are `pitch` numbers apart; at stride 2 there are two for each row of the picture, of the even and of
//! the odd columns. After the width of a row there are zeros for a whole vector and the side of the kernel, so that no
//! load needs a mask and no product reads a value of another row.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::conv::depthwise::Plane;
use crate::simd::Vectors;
use crate::simd::lanes::{LONGEST, first_lanes, load, load_rest, masked, store};

/// Number of values in the buffers of the planes that are copied before the first of them is computed: half a
/// first-level cache.
const AHEAD: usize = 1 << 12;
/// Maximum number of these planes.
const PLANES: usize = 16;

/// The location of a plane in a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// Of the plane.
    height: usize,
    width: usize,
    /// Zeros before the first row and column.
    pub(super) margin: usize,
    /// Distance from one row of the buffer to the next.
    pub(super) pitch: usize,
    /// Rows of the buffer for each row of the plane.
    phases: usize,
}

impl Frame {
    /// For a plane of which vectors are loaded that begin at columns below `reach` of a phase.
    fn new([height, width]: [usize; 2], margin: usize, phases: usize, reach: usize) -> Self {
        let columns = reach.max((width + margin).div_ceil(phases));
        Self { height, width, margin, pitch: columns.next_multiple_of(LONGEST) + 2 * LONGEST, phases }
    }

    /// Length of the buffer, including the rows below the plane that kernels cover.
    pub(super) fn length(&self) -> usize {
        (self.height + 2 * self.margin + 8) * self.phases * self.pitch + 2 * LONGEST
    }
}

/// Buffers for one thread, zero where no plane is written. They hold several planes, because a value that has just been
/// written to the buffer cannot be loaded at once as part of another vector.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Number of planes that fit.
    pub(super) planes: usize,
    pub(super) input: Vec<f32>,
    pub(super) output: Vec<f32>,
    pub(super) even: Vec<f32>,
    pub(super) odd: Vec<f32>,
    /// Planes of the input before they are copied, where these are computed first.
    pub(super) scratch: Vec<f32>,
}

/// The padded input of the forward pass and of the gradient of the kernel.
pub(super) fn input_frame(plane: &Plane) -> Frame {
    Frame::new([plane.height, plane.width], plane.padding, plane.stride.min(2), plane.output_width + plane.side)
}

/// The padded gradient of the output.
pub(super) fn output_frame(plane: &Plane) -> Frame {
    let margin = if plane.stride == 1 { plane.side - 1 - plane.padding } else { plane.side };
    let reach = plane.width.div_ceil(plane.stride) + plane.side + margin;
    Frame::new([plane.output_height, plane.output_width], margin, 1, reach)
}

impl Room {
    pub(super) fn for_forward(plane: &Plane) -> Self {
        let length = input_frame(plane).length();
        let planes = (AHEAD / length).clamp(1, PLANES);
        Self { planes, input: vec![0.0; planes * length], ..Self::default() }
    }

    pub(super) fn for_gradients(plane: &Plane) -> Self {
        let room = Self::for_forward(plane);
        let half = vec![0.0; output_frame(plane).pitch];
        let output = vec![0.0; room.planes * output_frame(plane).length()];
        Self { output, even: half.clone(), odd: half, ..room }
    }
}

/// Copies the requested number of planes from the beginning of `x`, each into its part of the buffer.
#[inline(always)]
pub(super) fn fill_all<S: Vectors>(simd: S, x: &[f32], planes: usize, frame: Frame, buffer: &mut [f32]) {
    for (index, buffer) in buffer.chunks_exact_mut(frame.length()).take(planes).enumerate() {
        fill(simd, &x[index * frame.height * frame.width..], frame, buffer);
    }
}

/// Copies the first plane of `x` into its frame.
#[inline(always)]
fn fill<S: Vectors>(simd: S, x: &[f32], frame: Frame, buffer: &mut [f32]) {
    let Frame { height, width, margin, pitch, phases } = frame;
    if phases == 2 {
        for row in 0..height {
            let (even, odd) = buffer[(row + margin) * 2 * pitch..][..2 * pitch].split_at_mut(pitch);
            let row = &x[row * width..][..width];
            let (first, second) = if margin % 2 == 0 { (even, odd) } else { (odd, even) };
            deinterleave(row, &mut first[margin / 2..], &mut second[margin.div_ceil(2)..]);
        }
    } else if width >= S::F32_LANES {
        for row in 0..height {
            let target = &mut buffer[(row + margin) * pitch + margin..][..width];
            let row = &x[row * width..][..width];
            for (target, &vector) in S::as_mut_simd_f32s(target).0.iter_mut().zip(S::as_simd_f32s(row).0) {
                *target = vector;
            }
            let last = width - S::F32_LANES;
            store(simd, target, last, load(simd, row, last));
        }
    } else {
        let mask = first_lanes(simd, width);
        for row in 0..height {
            let rest = &x[row * width..];
            let vector = if rest.len() >= S::F32_LANES {
                masked(simd, mask, load(simd, rest, 0))
            } else {
                load_rest(simd, &rest[..width])
            };
            store(simd, buffer, (row + margin) * pitch + margin, vector);
        }
    }
}

/// Writes the values at even places to one slice and those at odd places to the other.
#[inline(always)]
fn deinterleave(values: &[f32], even: &mut [f32], odd: &mut [f32]) {
    let (pairs, rest) = pulp::as_arrays::<2, _>(values);
    for ((even, odd), &[first, second]) in even.iter_mut().zip(odd.iter_mut()).zip(pairs) {
        (*even, *odd) = (first, second);
    }
    if let [last] = rest {
        even[pairs.len()] = *last;
    }
}
