//! Batch normalisation where planes are too small for vectors, such as `[batch, features]` with planes of one value.
//!
//! A sample is then a row of channels x plane columns, and vectors are along the columns of a group of channels: sums
//! over samples are sums of rows. The columns of a channel are combined at the end.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::activation::Curve;
use crate::norm::batch_norm::{Affine, Applied, Backward, Channel, Layer, Statistics};
use crate::norm::moments::{Moments, in_double_precision};
use crate::simd::lanes::{load_rest, store_rest};
use crate::simd::{self, Kernel, Vectors};
use crate::tasks::by_channels;

/// Planes of fewer values than this are small.
pub(in crate::norm) const LIMIT: usize = 16;
/// Columns of a group.
const COLUMNS: usize = 256;
/// Rows whose sums are taken in single precision.
const ROWS: usize = 64;

/// Columns `first..first + width` of rows of `length` numbers.
#[derive(Clone, Copy)]
struct Columns<'a> {
    x: &'a [f32],
    length: usize,
    first: usize,
    width: usize,
}

impl<'a> Columns<'a> {
    #[inline(always)]
    fn rows(self) -> impl Iterator<Item = &'a [f32]> + Clone {
        self.x.chunks_exact(self.length).map(move |row| &row[self.first..self.first + self.width])
    }
}

pub(super) fn forward<C: Curve>(x: &[f32], layer: &Layer, epsilon: f64, curve: C, y: &mut [f32]) -> Statistics {
    let (channels, plane) = (layer.channels(), layer.plane);
    let group = COLUMNS.div_ceil(plane);
    let mut measured = vec![Moments::default(); channels];
    let tasks = by_channels(y, channels, plane, group).into_par_iter().zip(measured.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut rows, measured))| {
        let first = task * group;
        let columns = Columns { x, length: layer.sample(), first: first * plane, width: measured.len() * plane };
        measure(columns, plane, epsilon, measured);
        let affine = Affine::of_channels(measured, &layer.gamma[first..], &layer.beta[first..], epsilon);
        let [mean, scale, shift] = [|a: &Affine| a.mean, |a: &Affine| a.scale, |a: &Affine| a.shift]
            .map(|part| per_column(&affine.iter().map(part).collect::<Vec<f32>>(), plane));
        for (x, y) in columns.rows().zip(&mut rows) {
            simd::run(Row { x, mean: &mean, scale: &scale, shift: &shift, curve, y });
        }
    });
    Statistics::from_moments(&measured, layer, epsilon)
}

/// y = activation((x - mean) scale + shift) over whole samples.
pub(super) fn repeat<C: Curve>(x: &[f32], plane: usize, applied: Applied, curve: C, y: &mut [f32]) {
    let [mean, scale, shift] = [applied.mean, applied.scale, applied.shift].map(|values| per_column(values, plane));
    let sample = mean.len().max(1);
    for (x, y) in x.chunks_exact(sample).zip(y.chunks_exact_mut(sample)) {
        simd::run(Row { x, mean: &mean, scale: &scale, shift: &shift, curve, y });
    }
}

/// Moments of the channels of some columns.
fn measure(columns: Columns, plane: usize, epsilon: f64, measured: &mut [Moments]) {
    let rows = columns.rows().count() as f64;
    let zeros = vec![0.0; columns.width];
    let [sums, _] = simd::run(ColumnSums { columns, about: &zeros });
    #[expect(clippy::cast_possible_truncation, reason = "any number near the mean will do")]
    let about: Vec<f32> = sums.iter().map(|sum| (sum / rows) as f32).collect();
    let [sums, squares] = simd::run(ColumnSums { columns, about: &about });
    for (channel, measured) in measured.iter_mut().enumerate() {
        let of_channel = channel * plane..(channel + 1) * plane;
        *measured = of_channel
            .clone()
            .map(|column| Moments::about(rows, f64::from(about[column]), sums[column], squares[column]))
            .fold(Moments::default(), Moments::merge);
        if !measured.is_ordinary(epsilon) {
            *measured = in_double_precision(columns.rows().flat_map(|row| row[of_channel.clone()].iter().copied()));
        }
    }
}

/// Sums of the differences from `about` and of their squares, per column.
struct ColumnSums<'a> {
    columns: Columns<'a>,
    about: &'a [f32],
}

impl Kernel for ColumnSums<'_> {
    type Output = [Vec<f64>; 2];

    #[inline(always)]
    fn run_on<S: Vectors>(self, _: S) -> Self::Output {
        let width = self.columns.width;
        let mut totals = [vec![0.0; width], vec![0.0; width]];
        let (mut sums, mut squares) = (vec![0.0; width], vec![0.0; width]);
        for (count, row) in self.columns.rows().enumerate() {
            let accumulators = sums.iter_mut().zip(&mut squares);
            for ((sum, square), (&x, &about)) in accumulators.zip(row.iter().zip(self.about)) {
                let difference = x - about;
                *sum += difference;
                *square += difference * difference;
            }
            if count % ROWS == ROWS - 1 {
                flush(&mut totals[0], &mut sums);
                flush(&mut totals[1], &mut squares);
            }
        }
        flush(&mut totals[0], &mut sums);
        flush(&mut totals[1], &mut squares);
        totals
    }
}

#[inline(always)]
fn flush(totals: &mut [f64], sums: &mut [f32]) {
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total += f64::from(*sum);
        *sum = 0.0;
    }
}

/// y = activation((x - mean) scale + shift), all per column.
struct Row<'a, C> {
    x: &'a [f32],
    mean: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    curve: C,
    y: &'a mut [f32],
}

impl<C: Curve> Kernel for Row<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let ((x, x_rest), (mean, mean_rest)) = (S::as_simd_f32s(self.x), S::as_simd_f32s(self.mean));
        let ((scale, scale_rest), (shift, shift_rest)) = (S::as_simd_f32s(self.scale), S::as_simd_f32s(self.shift));
        let (y, rest) = S::as_mut_simd_f32s(self.y);
        let parameters = mean.iter().zip(scale.iter().zip(shift));
        for (y, (&x, (&mean, (&scale, &shift)))) in y.iter_mut().zip(x.iter().zip(parameters)) {
            *y = self.curve.value(simd, simd.multiply_add(simd.sub_f32s(x, mean), scale, shift));
        }
        if !rest.is_empty() {
            let (x, mean) = (load_rest(simd, x_rest), load_rest(simd, mean_rest));
            let (scale, shift) = (load_rest(simd, scale_rest), load_rest(simd, shift_rest));
            let normalised = simd.multiply_add(simd.sub_f32s(x, mean), scale, shift);
            store_rest(simd, rest, self.curve.value(simd, normalised));
        }
    }
}

/// values = activation(values scale + shift) over whole samples, scale and shift per channel.
pub(super) fn apply<C: Curve>(layer: &Layer, curve: C, values: &mut [f32]) {
    let [scale, shift] = [layer.gamma, layer.beta].map(|values| per_column(values, layer.plane));
    for values in values.chunks_exact_mut(scale.len().max(1)) {
        simd::run(Apply { scale: &scale, shift: &shift, curve, values });
    }
}

fn per_column(channels: &[f32], plane: usize) -> Vec<f32> {
    channels.iter().flat_map(|&value| std::iter::repeat_n(value, plane)).collect()
}

struct Apply<'a, C> {
    scale: &'a [f32],
    shift: &'a [f32],
    curve: C,
    values: &'a mut [f32],
}

impl<C: Curve> Kernel for Apply<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let ((scale, scale_rest), (shift, shift_rest)) = (S::as_simd_f32s(self.scale), S::as_simd_f32s(self.shift));
        let (values, rest) = S::as_mut_simd_f32s(self.values);
        for (value, (&scale, &shift)) in values.iter_mut().zip(scale.iter().zip(shift)) {
            *value = self.curve.value(simd, simd.multiply_add(*value, scale, shift));
        }
        if !rest.is_empty() {
            let (scale, shift) = (load_rest(simd, scale_rest), load_rest(simd, shift_rest));
            let value = load_rest(simd, rest);
            store_rest(simd, rest, self.curve.value(simd, simd.multiply_add(value, scale, shift)));
        }
    }
}

/// Sums of q and of q h of each channel; `gradient` becomes that of x.
pub(super) fn gradients<C: Curve>(
    x: &[f32],
    plane: usize,
    layer: &[Channel],
    frozen: bool,
    curve: C,
    gradient: &mut [f32],
) -> Vec<[f64; 2]> {
    let channels = layer.len();
    let group = COLUMNS.div_ceil(plane);
    let count = (x.len() / channels) as f64;
    let mut sums = vec![[0.0; 2]; channels];
    let tasks = by_channels(gradient, channels, plane, group).into_par_iter().zip(sums.par_chunks_mut(group));
    tasks.zip(layer.par_chunks(group)).enumerate().for_each(|(task, ((mut rows, sums), layer))| {
        let width = layer.len() * plane;
        let columns = Columns { x, length: channels * plane, first: task * group * plane, width };
        let column = |part: fn(&Channel) -> f32| per_column(&layer.iter().map(part).collect::<Vec<_>>(), plane);
        let parameters = Parameters {
            mean: column(|channel| channel.mean),
            inverse_deviation: column(|channel| channel.inverse_deviation),
            offset: column(|channel| channel.offset),
            gamma: column(|channel| channel.gamma),
            beta: column(|channel| channel.beta),
        };
        let [constants, slopes] = backward_rows(columns, &parameters, curve, &mut rows);
        for (channel, sums) in sums.iter_mut().enumerate() {
            *sums = [&constants, &slopes].map(|totals| totals[channel * plane..(channel + 1) * plane].iter().sum());
        }
        let backward: Vec<Backward> =
            layer.iter().zip(&*sums).map(|(&channel, &sums)| Backward::new(channel, sums, count, frozen)).collect();
        let column = |part: fn(&Backward) -> f32| per_column(&backward.iter().map(part).collect::<Vec<_>>(), plane);
        let factor = column(|backward| backward.factor);
        let (slope, constant) = (column(|backward| backward.slope), column(|backward| backward.constant));
        for (x, q) in columns.rows().zip(&mut rows) {
            simd::run(Finish { x, parameters: &parameters, factor: &factor, slope: &slope, constant: &constant, q });
        }
    });
    sums
}

/// A layer per column.
struct Parameters {
    mean: Vec<f32>,
    inverse_deviation: Vec<f32>,
    offset: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
}

/// Turns the gradients of the rows into q and returns the sums of q and of q h, per column.
fn backward_rows<C: Curve>(
    columns: Columns,
    parameters: &Parameters,
    curve: C,
    rows: &mut [&mut [f32]],
) -> [Vec<f64>; 2] {
    let width = columns.width;
    let mut totals = [vec![0.0; width], vec![0.0; width]];
    let (mut constants, mut slopes) = (vec![0.0; width], vec![0.0; width]);
    for (count, (x, q)) in columns.rows().zip(rows).enumerate() {
        simd::run(BackwardRow { x, parameters, curve, q, constants: &mut constants, slopes: &mut slopes });
        if count % ROWS == ROWS - 1 {
            flush(&mut totals[0], &mut constants);
            flush(&mut totals[1], &mut slopes);
        }
    }
    flush(&mut totals[0], &mut constants);
    flush(&mut totals[1], &mut slopes);
    totals
}

struct BackwardRow<'a, C> {
    x: &'a [f32],
    parameters: &'a Parameters,
    curve: C,
    q: &'a mut [f32],
    constants: &'a mut [f32],
    slopes: &'a mut [f32],
}

impl<C: Curve> Kernel for BackwardRow<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Parameters { mean, inverse_deviation, offset, gamma, beta } = self.parameters;
        let (x, x_rest) = S::as_simd_f32s(self.x);
        let parameters = [mean, inverse_deviation, offset, gamma, beta].map(|column| S::as_simd_f32s(column));
        let (q, q_rest) = S::as_mut_simd_f32s(self.q);
        let (constants, constants_rest) = S::as_mut_simd_f32s(self.constants);
        let (slopes, slopes_rest) = S::as_mut_simd_f32s(self.slopes);
        for place in 0..x.len() {
            let of_column = parameters.map(|(column, _)| column[place]);
            let sums = [constants[place], slopes[place]];
            [q[place], constants[place], slopes[place]] =
                backward(simd, self.curve, x[place], of_column, q[place], sums);
        }
        if !q_rest.is_empty() {
            let x = load_rest(simd, x_rest);
            let of_column = parameters.map(|(_, rest)| load_rest(simd, rest));
            let sums = [load_rest(simd, constants_rest), load_rest(simd, slopes_rest)];
            let q = load_rest(simd, q_rest);
            let [q, constant, slope] = backward(simd, self.curve, x, of_column, q, sums);
            store_rest(simd, q_rest, q);
            store_rest(simd, constants_rest, constant);
            store_rest(simd, slopes_rest, slope);
        }
    }
}

/// Computes q, and adds to the sums of q and of q h.
#[inline(always)]
fn backward<S: Vectors, C: Curve>(
    simd: S,
    curve: C,
    x: S::f32s,
    [mean, inverse_deviation, offset, gamma, beta]: [S::f32s; 5],
    gradient: S::f32s,
    [constant, slope]: [S::f32s; 2],
) -> [S::f32s; 3] {
    let h = simd.multiply_add(simd.sub_f32s(x, mean), inverse_deviation, offset);
    let q = curve.backward(simd, simd.multiply_add(h, gamma, beta), gradient);
    [q, simd.add_f32s(constant, q), simd.multiply_add(q, h, slope)]
}

/// q becomes dx.
struct Finish<'a> {
    x: &'a [f32],
    parameters: &'a Parameters,
    factor: &'a [f32],
    slope: &'a [f32],
    constant: &'a [f32],
    q: &'a mut [f32],
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, _: S) {
        let Parameters { mean, inverse_deviation, offset, .. } = self.parameters;
        let normalised = self.x.iter().zip(mean).zip(inverse_deviation.iter().zip(offset));
        let backward = self.factor.iter().zip(self.slope.iter().zip(self.constant));
        for (q, (((&x, &mean), (&inverse, &offset)), (&factor, (&slope, &constant)))) in
            self.q.iter_mut().zip(normalised.zip(backward))
        {
            *q = *q * factor + (((x - mean) * inverse + offset) * slope + constant);
        }
    }
}
