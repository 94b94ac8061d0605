//! Depthwise convolution of small planes, with the channels in the lanes of the vectors.
//!
//! A plane of 4 x 4 fills a quarter of a vector, and most of what a kernel of 5 x 5 covers is padding. So the planes of
//! [`LONGEST`] channels of a sample are transposed to `[place, channel]` and copied into a buffer with zeros around them,
//! where an element of the kernel is a vector times a vector of weights, and rows of zeros are skipped (zeros next to
//! the values of a row are not: times an infinite weight they give NaN, as zeros of padding do). The gradient of the
//! input is the convolution of the gradient of the output, its places `stride` apart, with the turned kernel. The
//! gradient of the kernels is summed in single precision over a sample or a few and in double precision over those
//! sums.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::activation::{self, Activation};
use crate::conv::ConvShape;
use crate::conv::depthwise::{PIECE, Plane};
use crate::gemm::transpose;
use crate::simd::lanes::{LONGEST, load, store};
use crate::simd::{self, Kernel, Vectors};
use crate::tasks::{by_channels, units_per_task};

/// Largest side of an output that counts as small.
const NARROW: usize = 8;
/// Number of places whose products a lane adds in single precision. A lane has all places of its channel, so with many
/// more it would lose digits that a sum by several lanes keeps.
const PLACES: usize = 32;
/// Columns of results computed at once, and in planes of at most two columns.
const COLUMNS: [usize; 2] = [4, 2];

/// Whether the planes of a layer are computed here.
pub(super) fn is_narrow(plane: &Plane) -> bool {
    plane.stride <= 2 && plane.output_height.max(plane.output_width) <= NARROW
}

/// Planes in a buffer with zeros around them, `[row][column][channel]`.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Of a plane.
    size: [usize; 2],
    /// Zeros before the first row and column.
    margin: usize,
    /// Distance from one value of the plane to the next, with zeros between them.
    spacing: usize,
    /// Columns of the buffer.
    pitch: usize,
    rows: usize,
}

impl Frame {
    /// A frame for a correlation with a kernel of `taps` a side, which moves by `stride` and has results of size
    /// `results`.
    fn new(size: [usize; 2], margin: usize, spacing: usize, [taps, stride]: [usize; 2], results: [usize; 2]) -> Self {
        let inside = size.map(|extent| margin + (extent - 1) * spacing + 1);
        let columns = results[1].next_multiple_of(columns_at_once(results[1]));
        let reach = [results[0], columns].map(|extent| (extent - 1) * stride + taps);
        Self { size, margin, spacing, pitch: reach[1].max(inside[1]), rows: reach[0].max(inside[0]) }
    }

    fn length(&self) -> usize {
        self.rows * self.pitch * LONGEST
    }

    /// Whether a row contains values of the plane, rather than the zeros around or between its rows.
    fn has_numbers(&self, row: usize) -> bool {
        row.checked_sub(self.margin).is_some_and(|row| row % self.spacing == 0 && row / self.spacing < self.size[0])
    }

    /// Copies transposed planes to their places; the rest of the buffer is unchanged.
    fn fill(&self, planes: &[f32], buffer: &mut [f32]) {
        let [height, width] = self.size;
        for (row, source) in planes.chunks_exact(width * LONGEST).take(height).enumerate() {
            let first = (self.margin + row * self.spacing) * self.pitch + self.margin;
            for (column, source) in source.chunks_exact(LONGEST).enumerate() {
                buffer[(first + column * self.spacing) * LONGEST..][..LONGEST].copy_from_slice(source);
            }
        }
    }
}

fn columns_at_once(width: usize) -> usize {
    if width > COLUMNS[1] { COLUMNS[0] } else { COLUMNS[1] }
}

/// Kernels of all channels as `[block][tap][channel]`, in blocks of [`LONGEST`]; `turned` reverses the order of the taps.
fn blocks_of_kernels(w: &[f32], taps: usize, turned: bool) -> Vec<f32> {
    let mut blocks = vec![0.0; w.len().next_multiple_of(taps * LONGEST)];
    for (block, w) in blocks.chunks_exact_mut(taps * LONGEST).zip(w.chunks(taps * LONGEST)) {
        transpose(w, taps, taps, w.len() / taps, LONGEST, block);
        for tap in 0..if turned { taps / 2 } else { 0 } {
            let (before, behind) = block.split_at_mut((taps - 1 - tap) * LONGEST);
            before[tap * LONGEST..][..LONGEST].swap_with_slice(&mut behind[..LONGEST]);
        }
    }
    blocks
}

/// The forward pass of planes that are narrow ([`is_narrow`]).
pub(super) struct Forward<'a> {
    /// As [`blocks_of_kernels`] gives them.
    kernels: Vec<f32>,
    bias: Option<&'a [f32]>,
    activation: Activation,
    plane: Plane,
    frame: Frame,
}

/// Buffers of [`Forward`] for the planes of a block of channels: transposed, with zeros around them, and the results.
pub(super) struct ForwardRoom {
    dense: Vec<f32>,
    staged: Vec<f32>,
    sums: Vec<f32>,
}

impl<'a> Forward<'a> {
    pub(super) fn new(w: &[f32], bias: Option<&'a [f32]>, activation: Activation, plane: Plane) -> Self {
        let results = [plane.output_height, plane.output_width];
        let frame = Frame::new([plane.height, plane.width], plane.padding, 1, [plane.side, plane.stride], results);
        Self { kernels: blocks_of_kernels(w, plane.taps(), false), bias, activation, plane, frame }
    }

    pub(super) fn room(&self) -> ForwardRoom {
        let [dense, sums] = self.plane.lengths().map(|length| vec![0.0; length * LONGEST]);
        ForwardRoom { dense, staged: vec![0.0; self.frame.length()], sums }
    }

    /// As [`depthwise::forward`](crate::conv::depthwise::forward).
    pub(super) fn forward(&self, x: &[f32], shape: &ConvShape, y: &mut [f32]) {
        let [input, output] = self.plane.lengths();
        let group = LONGEST * units_per_task(shape.inputs.div_ceil(LONGEST), LONGEST * input.max(output), PIECE);
        let samples = y.par_chunks_mut(shape.inputs * output).zip(x.par_chunks(shape.inputs * input));
        samples.for_each(|(y, x)| {
            let tasks = y.par_chunks_mut(group * output).zip(x.par_chunks(group * input)).enumerate();
            tasks.for_each_init(|| self.room(), |room, (task, (y, x))| self.channels(task * group, x, room, y));
        });
    }

    /// As many channels as `y` has planes, from `first` on, a multiple of [`LONGEST`]; `x` begins with their planes.
    pub(super) fn channels(&self, first: usize, x: &[f32], room: &mut ForwardRoom, y: &mut [f32]) {
        let ForwardRoom { dense, staged, sums } = room;
        let Plane { side, stride, output_height, output_width, .. } = self.plane;
        let ([input, output], taps) = (self.plane.lengths(), self.plane.taps());
        let blocks = y.chunks_mut(LONGEST * output).zip(x.chunks(LONGEST * input)).enumerate();
        for (block, (y, x)) in blocks {
            let first = first + block * LONGEST;
            let channels = y.len() / output;
            transpose(x, input, input, channels, LONGEST, dense);
            self.frame.fill(dense, staged);
            let mut start = [0.0; LONGEST];
            if let Some(bias) = self.bias {
                start[..channels].copy_from_slice(&bias[first..first + channels]);
            }
            let kernels = &self.kernels[first * taps..][..taps * LONGEST];
            let staged = Staged { staged, frame: self.frame };
            correlate([side, stride], &staged, kernels, &start, [output_height, output_width], sums);
            transpose(sums, LONGEST, channels, output, output, y);
        }
        activation::in_place(self.activation, y);
    }
}

/// As [`depthwise::gradients`](crate::conv::depthwise::gradients), for planes that are narrow ([`is_narrow`]).
pub(super) fn gradients(
    x: &[f32],
    w: &[f32],
    dy: &[f32],
    shape: &ConvShape,
    plane: &Plane,
    dx: Option<&mut [f32]>,
    dw: Option<&mut [f32]>,
) {
    let (input, taps) = (shape.input_plane(), shape.taps());
    let blocks = shape.inputs.div_ceil(LONGEST);
    let mut dx = dx.map(|dx| by_channels(dx, shape.inputs, input, LONGEST).into_iter());
    let mut dw = dw.map(|dw| dw.chunks_mut(LONGEST * taps));
    let kernels = blocks_of_kernels(w, taps, true);
    let layer = Layer::new(x, dy, &kernels, shape, *plane);
    let tasks = (0..blocks).map(|block| {
        let dx = dx.as_mut().and_then(Iterator::next);
        (block, dx, dw.as_mut().and_then(Iterator::next))
    });
    let tasks: Vec<_> = tasks.collect();
    tasks.into_par_iter().for_each_init(|| Room::new(&layer), |room, (block, dx, dw)| layer.run(block, room, dx, dw));
}

/// Data shared by the blocks of a layer's gradients.
struct Layer<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    /// Turned, as [`blocks_of_kernels`] gives them.
    kernels: &'a [f32],
    shape: &'a ConvShape,
    plane: Plane,
    /// Of the input, and of the gradient of the output.
    frames: [Frame; 2],
}

struct Room {
    /// Planes of the input and of the output, transposed.
    dense: [Vec<f32>; 2],
    staged: [Vec<f32>; 2],
    /// Sums of dw by tap and channel.
    short: Vec<f32>,
    long: Vec<f64>,
}

impl Room {
    fn new(layer: &Layer) -> Self {
        let sums = layer.shape.taps() * LONGEST;
        Self {
            dense: [layer.shape.input_plane(), layer.shape.output_plane()].map(|plane| vec![0.0; plane * LONGEST]),
            staged: layer.frames.map(|frame| vec![0.0; frame.length()]),
            short: vec![0.0; sums],
            long: vec![0.0; sums],
        }
    }
}

impl<'a> Layer<'a> {
    fn new(x: &'a [f32], dy: &'a [f32], kernels: &'a [f32], shape: &'a ConvShape, plane: Plane) -> Self {
        let (size, results) = ([plane.height, plane.width], [plane.output_height, plane.output_width]);
        let of_input = Frame::new(size, plane.padding, 1, [plane.side, plane.stride], results);
        let of_output = Frame::new(results, plane.side - 1 - plane.padding, plane.stride, [plane.side, 1], size);
        Self { x, dy, kernels, shape, plane, frames: [of_input, of_output] }
    }

    /// The gradients of one block of channels; `dx` is that of each sample.
    fn run(&self, block: usize, room: &mut Room, mut dx: Option<Vec<&mut [f32]>>, dw: Option<&mut [f32]>) {
        let (input, output, taps) = (self.shape.input_plane(), self.shape.output_plane(), self.shape.taps());
        let first = block * LONGEST;
        let channels = LONGEST.min(self.shape.inputs - first);
        let size = [self.plane.height, self.plane.width];
        let Room { dense: [dense_input, dense_output], staged: [staged_input, staged_output], short, long } = room;
        long.fill(0.0);
        let samples_per_flush = (PLACES / output).max(1);
        for sample in 0..self.shape.batch {
            let place = sample * self.shape.inputs + first;
            transpose(&self.dy[place * output..], output, output, channels, LONGEST, dense_output);
            if dw.is_some() {
                transpose(&self.x[place * input..], input, input, channels, LONGEST, dense_input);
                self.frames[0].fill(dense_input, staged_input);
                let staged = Staged { staged: staged_input, frame: self.frames[0] };
                backward(&self.plane, &staged, dense_output, short);
                if sample % samples_per_flush == samples_per_flush - 1 || sample + 1 == self.shape.batch {
                    long.iter_mut().zip(&*short).for_each(|(long, &short)| *long += f64::from(short));
                    short.fill(0.0);
                }
            }
            if let Some(dx) = &mut dx {
                self.frames[1].fill(dense_output, staged_output);
                let staged = Staged { staged: staged_output, frame: self.frames[1] };
                let kernels = &self.kernels[first * taps..][..taps * LONGEST];
                correlate([self.plane.side, 1], &staged, kernels, &[0.0; LONGEST], size, dense_input);
                transpose(dense_input, LONGEST, channels, input, input, dx[sample]);
            }
        }
        for (channel, dw) in dw.into_iter().flat_map(|dw| dw.chunks_exact_mut(taps)).enumerate() {
            for (tap, dw) in dw.iter_mut().enumerate() {
                #[expect(clippy::cast_possible_truncation, reason = "gradients are single precision")]
                let sum = long[tap * LONGEST + channel] as f32;
                *dw = sum;
            }
        }
    }
}

/// Planes in their frame.
struct Staged<'a> {
    staged: &'a [f32],
    frame: Frame,
}

/// Correlation with the kernels, `[tap][channel]`, starting from one value for each channel, as `[place][channel]`.
fn correlate(
    [taps, stride]: [usize; 2],
    source: &Staged,
    kernels: &[f32],
    start: &[f32; LONGEST],
    size: [usize; 2],
    sums: &mut [f32],
) {
    macro_rules! choose {
        ($($side:literal $stride:literal)*) => {
            match (taps, stride) {
                $(($side, $stride) => {
                    if columns_at_once(size[1]) == COLUMNS[0] {
                        simd::run(Correlate::<$side, $stride, { COLUMNS[0] }> { source, kernels, start, size, sums });
                    } else {
                        simd::run(Correlate::<$side, $stride, { COLUMNS[1] }> { source, kernels, start, size, sums });
                    }
                })*
                _ => unreachable!("a kernel of 3 or 5 at stride 1 or 2, not {taps} at {stride}"),
            }
        };
    }
    choose!(3 1 3 2 5 1 5 2);
}

struct Correlate<'a, const K: usize, const STRIDE: usize, const WIDTH: usize> {
    source: &'a Staged<'a>,
    kernels: &'a [f32],
    start: &'a [f32; LONGEST],
    size: [usize; 2],
    sums: &'a mut [f32],
}

impl<const K: usize, const STRIDE: usize, const WIDTH: usize> Kernel for Correlate<'_, K, STRIDE, WIDTH> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Staged { staged, frame } = *self.source;
        let [height, width] = self.size;
        for lane in (0..LONGEST).step_by(S::F32_LANES) {
            for row in 0..height {
                for column in (0..width).step_by(WIDTH) {
                    let mut sums = [load(simd, self.start, lane); WIDTH];
                    for tap in 0..K {
                        let source = row * STRIDE + tap;
                        if !frame.has_numbers(source) {
                            continue;
                        }
                        let line = &staged[(source * frame.pitch + column * STRIDE) * LONGEST..];
                        let line = &line[..((WIDTH - 1) * STRIDE + K) * LONGEST];
                        let kernels = &self.kernels[tap * K * LONGEST..][..K * LONGEST];
                        // A row of the kernel is summed separately, which accumulates fewer rounding errors.
                        let mut of_row = [simd.splat_f32s(0.0); WIDTH];
                        for shift in 0..K {
                            let weights = load(simd, kernels, shift * LONGEST + lane);
                            for (result, sum) in of_row.iter_mut().enumerate() {
                                let value = load(simd, line, (result * STRIDE + shift) * LONGEST + lane);
                                *sum = simd.multiply_add(value, weights, *sum);
                            }
                        }
                        for (sum, of_row) in sums.iter_mut().zip(of_row) {
                            *sum = simd.add_f32s(*sum, of_row);
                        }
                    }
                    for (result, &sum) in sums.iter().enumerate().take(width - column) {
                        store(simd, self.sums, (row * width + column + result) * LONGEST + lane, sum);
                    }
                }
            }
        }
    }
}

/// Adds the products of the input and of the gradient of the output, `[place][channel]`, to the sums, `[tap][channel]`.
fn backward(plane: &Plane, source: &Staged, dy: &[f32], sums: &mut [f32]) {
    let size = [plane.output_height, plane.output_width];
    match (plane.side, plane.stride) {
        (3, 1) => simd::run(Backward::<3, 1> { source, dy, size, sums }),
        (3, 2) => simd::run(Backward::<3, 2> { source, dy, size, sums }),
        (5, 1) => simd::run(Backward::<5, 1> { source, dy, size, sums }),
        (5, 2) => simd::run(Backward::<5, 2> { source, dy, size, sums }),
        (taps, stride) => unreachable!("a kernel of 3 or 5 at stride 1 or 2, not {taps} at {stride}"),
    }
}

struct Backward<'a, const K: usize, const STRIDE: usize> {
    source: &'a Staged<'a>,
    dy: &'a [f32],
    size: [usize; 2],
    sums: &'a mut [f32],
}

impl<const K: usize, const STRIDE: usize> Kernel for Backward<'_, K, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Staged { staged, frame } = *self.source;
        let [height, width] = self.size;
        for lane in (0..LONGEST).step_by(S::F32_LANES) {
            for tap in 0..K {
                let kernels = &mut self.sums[tap * K * LONGEST..][..K * LONGEST];
                let mut sums: [S::f32s; K] = std::array::from_fn(|shift| load(simd, kernels, shift * LONGEST + lane));
                for row in (0..height).filter(|row| frame.has_numbers(row * STRIDE + tap)) {
                    let line = &staged[(row * STRIDE + tap) * frame.pitch * LONGEST..][..frame.pitch * LONGEST];
                    for column in 0..width {
                        let gradient = load(simd, self.dy, (row * width + column) * LONGEST + lane);
                        for (shift, sum) in sums.iter_mut().enumerate() {
                            let value = load(simd, line, (column * STRIDE + shift) * LONGEST + lane);
                            *sum = simd.multiply_add(gradient, value, *sum);
                        }
                    }
                }
                for (shift, &sum) in sums.iter().enumerate() {
                    store(simd, kernels, shift * LONGEST + lane, sum);
                }
            }
        }
    }
}
