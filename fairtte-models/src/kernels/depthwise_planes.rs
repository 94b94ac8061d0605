//! The loops of `depthwise.rs` over one plane.
//!
//! A buffer holds a plane with zeros around it. Its rows are `pitch` numbers apart; at stride 2 there are two for each row of
//! the picture, of the even and of the odd columns. Behind the width of a row there is room for a whole vector and the
//! side of the kernel, all zeros, so that no load needs a mask and no product reads a number of another row.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use super::depthwise::Plane;
use super::isa::{Kernel, Vectors};
use super::lanes::{LONGEST, first_lanes, load, load_rest, masked, store, store_rest};

/// Rows of results computed at once.
const ROWS: usize = 4;
/// Numbers in the buffers of the planes that are copied before the first of them is computed: half a first-level cache.
const AHEAD: usize = 1 << 12;
/// Most of them.
const PLANES: usize = 16;

/// Where a plane lies in a buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Of the plane.
    height: usize,
    width: usize,
    /// Zeros before the first row and column.
    margin: usize,
    /// Numbers from one row of the buffer to the next.
    pitch: usize,
    /// Rows of the buffer for each row of the plane.
    phases: usize,
}

impl Frame {
    /// For a plane of which vectors are loaded that begin at columns below `reach` of a phase.
    fn new([height, width]: [usize; 2], margin: usize, phases: usize, reach: usize) -> Self {
        let columns = reach.max((width + margin).div_ceil(phases));
        Self { height, width, margin, pitch: columns.next_multiple_of(LONGEST) + 2 * LONGEST, phases }
    }

    /// Length of the buffer, with the rows below the plane that kernels reach.
    fn length(&self) -> usize {
        (self.height + 2 * self.margin + 8) * self.phases * self.pitch + 2 * LONGEST
    }
}

/// Buffers for one thread, zero where no plane will be written. They hold a few planes, as a number that has just been
/// written to the buffer cannot be loaded at once as part of another vector.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// How many planes there is room for.
    pub(super) planes: usize,
    input: Vec<f32>,
    output: Vec<f32>,
    even: Vec<f32>,
    odd: Vec<f32>,
}

/// The padded input of the forward pass and of the gradient of the kernel.
fn input_frame(plane: &Plane) -> Frame {
    Frame::new([plane.height, plane.width], plane.padding, plane.stride.min(2), plane.output_width + plane.side)
}

/// The padded gradient of the output.
fn output_frame(plane: &Plane) -> Frame {
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

/// Copies as many planes from the beginning of `x` as the room has been asked for, each into its part of the buffer.
#[inline(always)]
fn fill_all<S: Vectors>(simd: S, x: &[f32], planes: usize, frame: Frame, buffer: &mut [f32]) {
    for (index, buffer) in buffer.chunks_exact_mut(frame.length()).take(planes).enumerate() {
        fill(simd, &x[index * frame.height * frame.width..], frame, buffer);
    }
}

/// Copies the plane that `x` begins with into its frame.
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

/// Writes the numbers at even places to one slice and those at odd places to the other.
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

/// y = x * w + bias, for a few planes. `x` begins with them and may go on; `w` and `bias` are those of these planes.
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

/// y = correlation of the buffer with the taps, + bias. Planes behind that of y may be overwritten.
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

/// The first `R` rows of y, which goes on to the end of the plane.
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
            // A row shorter than a vector is followed by others, which overwrite what is too much.
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

/// Gradient of the input of a few planes. It is a function of its own, as the compiler keeps the sums of both gradients out
/// of registers if they are computed in one. It leaves the gradient of the output in the room for [`PullTaps`].
pub(super) struct PullInput<'a, const K: usize, const STRIDE: usize> {
    pub(super) w: &'a [f32],
    pub(super) dy: &'a [f32],
    pub(super) plane: Plane,
    pub(super) room: &'a mut Room,
    pub(super) dx: Option<&'a mut [f32]>,
}

impl<const K: usize, const STRIDE: usize> Kernel for PullInput<'_, K, STRIDE> {
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

/// Gradient of the kernels of a few planes, added to the lanes of `sums`, `[planes, K * K, LONGEST]`, of which a set with
/// shorter vectors uses the first.
pub(super) struct PullTaps<'a, const K: usize, const STRIDE: usize> {
    pub(super) x: &'a [f32],
    pub(super) plane: Plane,
    pub(super) room: &'a mut Room,
    pub(super) sums: &'a mut [f32],
}

impl<const K: usize, const STRIDE: usize> Kernel for PullTaps<'_, K, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, plane, room, sums } = self;
        let frames = [input_frame(&plane), output_frame(&plane)];
        fill_all(simd, x, sums.len() / (K * K * LONGEST), frames[0], &mut room.input);
        let inputs = room.input.chunks_exact(frames[0].length());
        let outputs = room.output.chunks_exact(frames[1].length());
        for (sums, (input, output)) in sums.chunks_exact_mut(K * K * LONGEST).zip(inputs.zip(outputs)) {
            let buffers = Buffers { input, output, plane, frames };
            if K == 5 && S::REGISTER_COUNT < 32 {
                // The sums of one row of the kernel fit into the registers.
                buffers.pull_taps::<S, K, STRIDE, 0, 1>(simd, sums);
                buffers.pull_taps::<S, K, STRIDE, 1, 1>(simd, sums);
                buffers.pull_taps::<S, K, STRIDE, 2, 1>(simd, sums);
                buffers.pull_taps::<S, K, STRIDE, 3, 1>(simd, sums);
                buffers.pull_taps::<S, K, STRIDE, 4, 1>(simd, sums);
            } else {
                buffers.pull_taps::<S, K, STRIDE, 0, K>(simd, sums);
            }
        }
    }
}

/// Adds the sums of the lanes to `dw` and makes them zero.
pub(super) fn flush(sums: &mut [f32], dw: &mut [f64]) {
    for (dw, sums) in dw.iter_mut().zip(sums.chunks_exact_mut(LONGEST)) {
        *dw += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        sums.fill(0.0);
    }
}

/// Length of the sums of a kernel of so many taps.
pub(super) fn lanes_of(taps: usize) -> usize {
    taps * LONGEST
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

/// The even and the odd columns of one row of the padded dx. `source` begins (K - 1) / 2 rows and columns before the number
/// that meets the first tap.
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

/// The numbers from `first` on of a row of which even and odd places are given apart.
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

/// A plane and the gradient of its result, both with zeros around them.
struct Buffers<'a> {
    input: &'a [f32],
    output: &'a [f32],
    plane: Plane,
    frames: [Frame; 2],
}

impl Buffers<'_> {
    /// Adds to rows `FIRST..FIRST + COUNT` of dw.
    #[inline(always)]
    fn pull_taps<S: Vectors, const K: usize, const STRIDE: usize, const FIRST: usize, const COUNT: usize>(
        &self,
        simd: S,
        lanes: &mut [f32],
    ) {
        let mut sums = [[simd.splat_f32s(0.0); K]; COUNT];
        for (tap, sum) in sums.as_flattened_mut().iter_mut().enumerate() {
            *sum = load(simd, lanes, (FIRST * K + tap) * LONGEST);
        }
        let Plane { height, padding, .. } = self.plane;
        for row in padding..padding + height {
            if STRIDE == 1 || row % 2 == 0 {
                self.pull_row::<S, K, STRIDE, FIRST, COUNT, 0>(simd, row, &mut sums);
            } else {
                self.pull_row::<S, K, STRIDE, FIRST, COUNT, 1>(simd, row, &mut sums);
            }
        }
        for (tap, &sum) in sums.as_flattened().iter().enumerate() {
            store(simd, lanes, (FIRST * K + tap) * LONGEST, sum);
        }
    }

    /// Products of one row of the padded input, of which the number is `PARITY` modulo the stride.
    #[inline(always)]
    fn pull_row<
        S: Vectors,
        const K: usize,
        const STRIDE: usize,
        const FIRST: usize,
        const COUNT: usize,
        const PARITY: usize,
    >(
        &self,
        simd: S,
        row: usize,
        sums: &mut [[S::f32s; K]; COUNT],
    ) {
        let [input, output] = self.frames;
        let inputs = &self.input[row * STRIDE * input.pitch..][..STRIDE * input.pitch];
        for column in (0..self.plane.output_width).step_by(S::F32_LANES) {
            let mut vectors = [simd.splat_f32s(0.0); K];
            for phase in 0..STRIDE {
                let row = &inputs[phase * input.pitch + column..][..2 * LONGEST];
                for shift in 0..(K - phase).div_ceil(STRIDE) {
                    vectors[shift * STRIDE + phase] = load(simd, row, shift);
                }
            }
            for (tap, sums) in sums.iter_mut().enumerate() {
                let tap = tap + FIRST;
                if tap % STRIDE == PARITY {
                    // The margin holds zeros for rows before the first and behind the last.
                    let row = row / STRIDE + output.margin - tap / STRIDE;
                    let gradient = load(simd, self.output, row * output.pitch + output.margin + column);
                    for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                        *sum = simd.multiply_add(gradient, vector, *sum);
                    }
                }
            }
        }
    }
}
