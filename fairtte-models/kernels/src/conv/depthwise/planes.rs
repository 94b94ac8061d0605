//! Result of a depthwise convolution and gradient of its input, over planes in buffers (`frames.rs`).

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::conv::depthwise::Plane;
use crate::conv::depthwise::frames::{Frame, Room, fill_all, input_frame, output_frame};
use crate::simd::lanes::{LONGEST, load, store, store_rest};
use crate::simd::{Kernel, Vectors};

/// Rows of results computed at once.
const ROWS: usize = 4;

/// The taps of a kernel, in all lanes.
#[inline(always)]
fn splat<S: Vectors, const K: usize>(simd: S, w: &[f32], turned: bool) -> [[S::f32s; K]; K] {
    let mut taps = [[simd.splat_f32s(0.0); K]; K];
    for (row, taps) in taps.iter_mut().enumerate() {
        for (column, tap) in taps.iter_mut().enumerate() {
            let place = row * K + column;
            *tap = simd.splat_f32s(w[if turned { K * K - 1 - place } else { place }]);
        }
    }
    taps
}

/// y = x * w + bias, for a few planes. `x` begins with them and may be longer; `w` and `bias` are those of these
/// planes.
pub(super) struct Forward<'a, const K: usize, const STRIDE: usize> {
    pub(super) x: &'a [f32],
    pub(super) w: &'a [f32],
    pub(super) bias: Option<&'a [f32]>,
    pub(super) plane: Plane,
    pub(super) room: &'a mut Room,
    pub(super) y: &'a mut [f32],
}

impl<const K: usize, const STRIDE: usize> Kernel for Forward<'_, K, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, w, bias, plane, room, y } = self;
        let frame = input_frame(&plane);
        let size = [plane.output_height, plane.output_width];
        fill_all(simd, x, w.len() / (K * K), frame, &mut room.input);
        for (index, (w, buffer)) in w.chunks_exact(K * K).zip(room.input.chunks_exact(frame.length())).enumerate() {
            let taps = splat::<S, K>(simd, w, false);
            let bias = bias.map_or(0.0, |bias| bias[index]);
            correlate::<S, K, STRIDE>(
                simd,
                buffer,
                frame.pitch,
                &taps,
                bias,
                size,
                &mut y[index * size[0] * size[1]..],
            );
        }
    }
}

/// y = correlation of the buffer with the taps, + bias. Planes after that of y may be overwritten.
#[inline(always)]
fn correlate<S: Vectors, const K: usize, const STRIDE: usize>(
    simd: S,
    buffer: &[f32],
    pitch: usize,
    taps: &[[S::f32s; K]; K],
    bias: f32,
    [height, width]: [usize; 2],
    y: &mut [f32],
) {
    let whole = height / ROWS * ROWS;
    for row in (0..whole).step_by(ROWS) {
        let rows = &buffer[row * STRIDE * STRIDE * pitch..];
        rows_of_results::<S, K, STRIDE, ROWS>(simd, rows, pitch, taps, bias, width, &mut y[row * width..]);
    }
    let (rows, y) = (&buffer[whole * STRIDE * STRIDE * pitch..], &mut y[whole * width..]);
    match height - whole {
        1 => rows_of_results::<S, K, STRIDE, 1>(simd, rows, pitch, taps, bias, width, y),
        2 => rows_of_results::<S, K, STRIDE, 2>(simd, rows, pitch, taps, bias, width, y),
        3 => rows_of_results::<S, K, STRIDE, 3>(simd, rows, pitch, taps, bias, width, y),
        _ => {}
    }
}

/// The first `R` rows of y, which extends to the end of the plane.
#[inline(always)]
fn rows_of_results<S: Vectors, const K: usize, const STRIDE: usize, const R: usize>(
    simd: S,
    buffer: &[f32],
    pitch: usize,
    taps: &[[S::f32s; K]; K],
    bias: f32,
    width: usize,
    y: &mut [f32],
) {
    let mut column = 0;
    loop {
        let sums = vectors_of_results::<S, K, STRIDE, R>(simd, buffer, pitch, taps, bias, column);
        for (row, &sum) in sums.iter().enumerate() {
            let at = row * width + column;
            // A row shorter than a vector is followed by others, which overwrite the excess.
            if at + S::F32_LANES <= y.len() {
                store(simd, y, at, sum);
            } else {
                store_rest(simd, &mut y[at..at + width], sum);
            }
        }
        column += S::F32_LANES;
        if column >= width {
            break;
        }
        // The last vector ends with the row.
        column = column.min(width - S::F32_LANES);
    }
}

/// A vector of each of `R` rows, from `column` on.
#[inline(always)]
fn vectors_of_results<S: Vectors, const K: usize, const STRIDE: usize, const R: usize>(
    simd: S,
    buffer: &[f32],
    pitch: usize,
    taps: &[[S::f32s; K]; K],
    bias: f32,
    column: usize,
) -> [S::f32s; R] {
    let mut sums = [simd.splat_f32s(bias); R];
    for source in 0..STRIDE * (R - 1) + K {
        for phase in 0..STRIDE {
            let row = &buffer[(source * STRIDE + phase) * pitch + column..][..2 * LONGEST];
            for shift in 0..(K - phase).div_ceil(STRIDE) {
                let vector = load(simd, row, shift);
                for (result, sum) in sums.iter_mut().enumerate() {
                    if source >= STRIDE * result && source < STRIDE * result + K {
                        let tap = taps[source - STRIDE * result][shift * STRIDE + phase];
                        *sum = simd.multiply_add(vector, tap, *sum);
                    }
                }
            }
        }
    }
    sums
}

/// Gradient of the input of a few planes. It is a separate function, because the compiler would not keep the sums of
/// both gradients in registers if one function computed both. It leaves the gradient of the output in the buffers for
/// [`BackwardFilter`](crate::conv::depthwise::taps::BackwardFilter).
pub(super) struct BackwardInput<'a, const K: usize, const STRIDE: usize> {
    pub(super) w: &'a [f32],
    pub(super) dy: &'a [f32],
    pub(super) plane: Plane,
    pub(super) room: &'a mut Room,
    pub(super) dx: Option<&'a mut [f32]>,
}

impl<const K: usize, const STRIDE: usize> Kernel for BackwardInput<'_, K, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { w, dy, plane, room, dx } = self;
        let frame = output_frame(&plane);
        fill_all(simd, dy, w.len() / (K * K), frame, &mut room.output);
        let Some(dx) = dx else { return };
        let size = [plane.height, plane.width];
        let Room { output, even, odd, .. } = room;
        for (index, (w, buffer)) in w.chunks_exact(K * K).zip(output.chunks_exact(frame.length())).enumerate() {
            let dx = &mut dx[index * size[0] * size[1]..];
            let taps = splat::<S, K>(simd, w, STRIDE == 1);
            if STRIDE == 1 {
                correlate::<S, K, 1>(simd, buffer, frame.pitch, &taps, 0.0, size, dx);
            } else {
                spread::<S, K>(simd, plane, &taps, buffer, frame, [&mut *even, &mut *odd], dx);
            }
        }
    }
}

/// dx at stride 2: a row of it takes the even or the odd rows of the kernel, an even column the even columns of the kernel.
#[inline(always)]
fn spread<S: Vectors, const K: usize>(
    simd: S,
    plane: Plane,
    taps: &[[S::f32s; K]; K],
    output: &[f32],
    frame: Frame,
    [even, odd]: [&mut [f32]; 2],
    dx: &mut [f32],
) {
    for (row, dx) in dx.chunks_exact_mut(plane.width).take(plane.height).enumerate() {
        let padded = row + plane.padding;
        let columns = (plane.padding + plane.width).div_ceil(2);
        // Row `padded` of the padded picture is tap `padded % 2` of row `padded / 2` of the output.
        let source = &output[(padded / 2 + frame.margin - (K - 1) / 2) * frame.pitch + frame.margin - (K - 1) / 2..];
        if padded.is_multiple_of(2) {
            half_rows::<S, K, 0>(simd, source, frame.pitch, taps, columns, even, odd);
        } else {
            half_rows::<S, K, 1>(simd, source, frame.pitch, taps, columns, even, odd);
        }
        interleave(even, odd, plane.padding, dx);
    }
}

/// The even and the odd columns of one row of the padded dx. `source` begins (K - 1) / 2 rows and columns before the
/// value at the first tap.
#[inline(always)]
fn half_rows<S: Vectors, const K: usize, const PARITY: usize>(
    simd: S,
    source: &[f32],
    pitch: usize,
    taps: &[[S::f32s; K]; K],
    columns: usize,
    even: &mut [f32],
    odd: &mut [f32],
) {
    let before = (K - 1) / 2;
    for column in (0..columns).step_by(S::F32_LANES) {
        let mut sums = [simd.splat_f32s(0.0); 2];
        for back in 0..(K - PARITY).div_ceil(2) {
            let row = &source[(before - back) * pitch + column..][..2 * LONGEST];
            for shift in 0..=before {
                let vector = load(simd, row, before - shift);
                for (parity, sum) in sums.iter_mut().enumerate() {
                    if 2 * shift + parity < K {
                        *sum = simd.multiply_add(vector, taps[2 * back + PARITY][2 * shift + parity], *sum);
                    }
                }
            }
        }
        store(simd, even, column, sums[0]);
        store(simd, odd, column, sums[1]);
    }
}

/// The values from `first` on of a row whose even and odd places are given separately.
#[inline(always)]
fn interleave(even: &[f32], odd: &[f32], first: usize, row: &mut [f32]) {
    let (first_half, second_half) = if first.is_multiple_of(2) {
        (&even[first / 2..], &odd[first / 2..])
    } else {
        (&odd[first / 2..], &even[first / 2 + 1..])
    };
    let (pairs, rest) = pulp::as_arrays_mut::<2, _>(row);
    let whole = pairs.len();
    for (pair, (&first, &second)) in pairs.iter_mut().zip(first_half.iter().zip(second_half)) {
        *pair = [first, second];
    }
    if let [last] = rest {
        *last = first_half[whole];
    }
}
