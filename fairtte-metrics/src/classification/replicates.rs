//! All metrics for many bootstrap replicates at once.
//!
//! Samples are sorted by probability once; a replicate is a vector of weights. [`LANES`] replicates go through the sorted
//! samples side by side, and every metric is read from the same running sums. Cost per block: O(n); the calibration lines take
//! O(number of cells) per Newton step (`logistic.rs`), with cells of [`CELL`] in the logit, narrower where slopes may be large.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set of the machine")]

use super::calibration::{check_logits, logit};
use super::logistic::{Cell, Positives, fit, mean_and_deviation};
use super::scores::{entropy_of, most_false, read_roc, square_of};
use super::{Bins, CalibrationError, ClassPredictions, Confusion, RocReading};
use crate::resampling::bootstrap::quantile;
use crate::resampling::lanes::{LANES, LaneWeights};

/// Width of the cells of the calibration lines in the logit at slope 1: the remainder of a probability is below 2e-11.
const CELL: f64 = 1.0 / 64.0;

/// The metrics, in the order of [`METRICS`](crate::evaluation::CLASS_METRICS).
pub(crate) const N_CLASS_METRICS: usize = 14;

pub(crate) type ClassValues = [Option<f64>; N_CLASS_METRICS];

type Lanes = [f64; LANES];

/// What the metrics are computed with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readings {
    pub(crate) threshold: f64,
    pub(crate) tnr: f64,
    pub(crate) error: CalibrationError,
}

/// One sample in sorted order.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "its class, and what ends with it")]
struct Row {
    sample: u32,
    positive: bool,
    /// Whether the next one has the same probability.
    is_tied: bool,
    /// Whether a bin or a cell ends here.
    ends_bin: bool,
    ends_cell: bool,
    entropy: f64,
    square: f64,
    p: f64,
    /// Logit and its distance from the centre of the cell; 0 without logits.
    x: f64,
    d: f64,
}

/// Sorted samples.
#[derive(Clone, Debug)]
pub(crate) struct SortedClasses {
    rows: Vec<Row>,
    /// Place of the first sample that is called negative.
    n_called: usize,
    readings: Readings,
    /// Of every run of samples in a bin: the bin, and whether the confidence is 1 - p.
    bins: Vec<(usize, bool)>,
    centres: Vec<f64>,
    has_logits: bool,
    /// Mean of the logits.
    origin: f64,
    /// The calibration line and intercept of the samples themselves, where replicates start.
    start: [[f64; 2]; 2],
}

impl SortedClasses {
    pub(crate) fn new(predictions: &ClassPredictions, readings: Readings, start: [[f64; 2]; 2]) -> Self {
        let order = predictions.falling();
        let has_logits = check_logits(predictions).is_ok();
        let error = readings.error;
        let bin_of = |p: f64| {
            let confidence = error.of(p, true).0;
            (error.equal_width(confidence), confidence > p)
        };
        let mut rows: Vec<Row> = Vec::with_capacity(order.len());
        for row in &order {
            let (p, positive) = (predictions.probability()[*row], predictions.positive()[*row]);
            rows.push(Row {
                sample: crate::ids::to_u32(*row),
                positive,
                is_tied: false,
                ends_bin: true,
                ends_cell: true,
                entropy: entropy_of(p, positive),
                square: square_of(p, positive),
                p,
                x: if has_logits { logit(p) } else { 0.0 },
                d: 0.0,
            });
        }
        let (origin, deviation) = mean_and_deviation(rows.iter().map(|row| row.x));
        let width = cell_width(start[0][1], deviation);
        let (mut bins, mut centres, mut first) = (Vec::new(), Vec::new(), 0);
        for k in 0..rows.len() {
            let next = rows.get(k + 1).copied();
            rows[k].is_tied = next.is_some_and(|next| next.p.total_cmp(&rows[k].p).is_eq());
            rows[k].ends_bin = next.is_none_or(|next| bin_of(next.p) != bin_of(rows[k].p));
            rows[k].ends_cell = next.is_none_or(|next| (next.x / width).floor() < (rows[k].x / width).floor());
            if rows[k].ends_bin {
                bins.push(bin_of(rows[k].p));
            }
            if rows[k].ends_cell {
                let centre = 0.5 * (rows[first].x + rows[k].x);
                rows[first..=k].iter_mut().for_each(|row| row.d = row.x - centre);
                centres.push(centre);
                first = k + 1;
            }
        }
        let n_called = rows.partition_point(|row| row.p >= readings.threshold);
        Self { rows, n_called, readings, bins, centres, has_logits, origin, start }
    }

    /// The metrics in the first `n_draws` lanes of the weights of the samples; `None` where undefined.
    pub(crate) fn values(&self, weights: &[LaneWeights], n_draws: usize) -> Vec<ClassValues> {
        let sorted: Vec<LaneWeights> = self.rows.iter().map(|row| weights[row.sample as usize]).collect();
        let mut sums = Sums::new(self, &sorted);
        pulp::Arch::new().dispatch(|| sums.walk(self, &sorted));
        (0..n_draws.min(LANES)).map(|lane| self.values_of(&sums, &sorted, lane)).collect()
    }

    fn values_of(&self, sums: &Sums, sorted: &[LaneWeights], lane: usize) -> ClassValues {
        let of = |lanes: &Lanes| lanes[lane];
        let (positive, negative) = (of(&sums.totals[1]), of(&sums.totals[0]));
        let n = positive + negative;
        let both = positive > 0.0 && negative > 0.0;
        let Readings { tnr, error, .. } = self.readings;
        let counts = Confusion {
            true_positive: of(&sums.called[1]),
            false_positive: of(&sums.called[0]),
            false_negative: positive - of(&sums.called[1]),
            true_negative: negative - of(&sums.called[0]),
        };
        let any = |value: f64| (n > 0.0).then_some(value);
        let tpr = both.then(|| {
            let (last, next) = ([of(&sums.last[0]), of(&sums.last[1])], [of(&sums.next[0]), of(&sums.next[1])]);
            if next[1] <= last[1] {
                return 1.0;
            }
            read_roc(last, next, (tnr, RocReading::Interpolated), [positive, negative])
        });
        let (slope, intercept) = if both && self.has_logits { self.lines(sums, lane) } else { (None, None) };
        let ece = match error.bins {
            Bins::EqualWidth => any(self.error_of_width(sums, lane) / n),
            Bins::EqualMass => self.error_of_mass(sorted, lane),
        };
        [
            both.then(|| of(&sums.twice) / (2.0 * positive * negative)),
            (positive > 0.0).then(|| of(&sums.precision) / positive),
            any(of(&sums.entropy) / n),
            any(of(&sums.square) / n),
            ece,
            slope,
            intercept,
            counts.accuracy().ok(),
            counts.balanced_accuracy().ok(),
            counts.f1().ok(),
            counts.false_positive_rate().ok(),
            counts.false_negative_rate().ok(),
            tpr,
            counts.selection_rate().ok(),
        ]
    }

    /// Slope of the calibration line, and the calibration intercept.
    fn lines(&self, sums: &Sums, lane: usize) -> (Option<f64>, Option<f64>) {
        let cell = |(centre, moments): (&f64, &[Lanes; 4])| Cell { centre: *centre, moments: moments.map(|m| m[lane]) };
        let cells: Vec<Cell> = self.centres.iter().zip(&sums.cells).map(cell).collect();
        let positives = Positives { weight: sums.totals[1][lane], number: sums.logits[lane], origin: self.origin };
        // Pairs in which the positive sample is higher, and lower: without either, the likelihood has no maximum.
        let pairs = sums.totals[0][lane] * sums.totals[1][lane];
        let higher = 0.5 * (sums.twice[lane] - sums.ties[lane]);
        let lower = pairs - higher - sums.ties[lane];
        let overlap = higher > 0.0 && lower > 0.0;
        let fitted = if overlap { fit(&cells, positives, self.start[0], false) } else { None };
        (fitted.map(|found| found[1]), fit(&cells, positives, self.start[1], true).map(|found| found[0]))
    }

    fn error_of_width(&self, sums: &Sums, lane: usize) -> f64 {
        let mut by_bin = vec![0.0; self.readings.error.n_bins];
        for ((bin, flipped), distance) in self.bins.iter().zip(&sums.bins) {
            // 1 - p less the negative samples is the positive ones less p.
            by_bin[*bin] += if *flipped { -distance[lane] } else { distance[lane] };
        }
        by_bin.into_iter().map(f64::abs).sum()
    }

    fn error_of_mass(&self, sorted: &[LaneWeights], lane: usize) -> Option<f64> {
        let error = self.readings.error;
        let drawn = self.rows.iter().zip(sorted).filter(|(_, weights)| weights[lane] > 0);
        let drawn = drawn.map(|(row, weights)| (error.of(row.p, row.positive), weights[lane]));
        let mut drawn: Vec<((f64, bool), u16)> = drawn.collect();
        drawn.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
        let all: Vec<f64> =
            drawn.iter().flat_map(|((p, _), weight)| std::iter::repeat_n(*p, usize::from(*weight))).collect();
        if all.is_empty() {
            return None;
        }
        let edges: Vec<f64> = (1..error.n_bins).map(|k| quantile(&all, k as f64 / error.n_bins as f64)).collect();
        let mut by_bin = vec![0.0; error.n_bins];
        for ((confidence, right), weight) in drawn {
            let bin = edges.partition_point(|edge| *edge < confidence);
            by_bin[bin] += f64::from(weight) * (confidence - f64::from(u8::from(right)));
        }
        Some(by_bin.into_iter().map(f64::abs).sum::<f64>() / all.len() as f64)
    }
}

/// The sums of one block, by lane; of two, the first is of negative and the second of positive samples.
struct Sums {
    totals: [Lanes; 2],
    most_false: Lanes,
    /// Twice the pairs in which the positive sample is higher, ties counting 1/2.
    twice: Lanes,
    ties: Lanes,
    precision: Lanes,
    entropy: Lanes,
    square: Lanes,
    called: [Lanes; 2],
    /// True and false positives at the last threshold with the true negative rate, and at the next.
    last: [Lanes; 2],
    next: [Lanes; 2],
    /// By run of samples in a bin: sum of p less positive samples.
    bins: Vec<Lanes>,
    cells: Vec<[Lanes; 4]>,
    /// Sum of the logits of positive samples, less their origin.
    logits: Lanes,
}

const ZERO: Lanes = [0.0; LANES];

impl Sums {
    fn new(classes: &SortedClasses, sorted: &[LaneWeights]) -> Self {
        let mut counts = [[0_u64; LANES]; 2];
        for (row, weights) in classes.rows.iter().zip(sorted) {
            let of_class = &mut counts[usize::from(row.positive)];
            of_class.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += u64::from(*weight));
        }
        let totals = counts.map(|of_class| of_class.map(|count| count as f64));
        Self {
            totals,
            most_false: totals[0].map(|negative| most_false(classes.readings.tnr, negative)),
            twice: ZERO,
            ties: ZERO,
            precision: ZERO,
            entropy: ZERO,
            square: ZERO,
            called: [ZERO; 2],
            last: [ZERO; 2],
            next: [ZERO; 2],
            bins: Vec::with_capacity(classes.bins.len()),
            cells: Vec::with_capacity(classes.centres.len()),
            logits: ZERO,
        }
    }

    #[inline(always)]
    fn walk(&mut self, classes: &SortedClasses, sorted: &[LaneWeights]) {
        // Negative and positive samples above the run of equal probabilities, and in it.
        let (mut above, mut run) = ([ZERO; 2], [ZERO; 2]);
        let (mut bin, mut cell) = (ZERO, [ZERO; 4]);
        let mut holds = [false; 2];
        for (place, (row, weights)) in classes.rows.iter().zip(sorted).enumerate() {
            if place == classes.n_called {
                self.called = above;
            }
            let weight = weights.map(f64::from);
            let class = usize::from(row.positive);
            holds[class] = true;
            let observed = f64::from(u8::from(row.positive));
            add(&mut run[class], &weight, 1.0);
            add(&mut self.entropy, &weight, row.entropy);
            add(&mut self.square, &weight, row.square);
            add(&mut bin, &weight, row.p - observed);
            if classes.has_logits {
                add(&mut cell[0], &weight, 1.0);
                add(&mut cell[1], &weight, row.d);
                add(&mut cell[2], &weight, row.d * row.d);
                add(&mut cell[3], &weight, row.d * row.d * row.d);
                if row.positive {
                    add(&mut self.logits, &weight, row.x - classes.origin);
                }
            }
            if !row.is_tied {
                self.end_run(&mut above, &run, holds);
                (run, holds) = ([ZERO; 2], [false; 2]);
            }
            if row.ends_bin {
                self.bins.push(std::mem::replace(&mut bin, ZERO));
            }
            if row.ends_cell {
                self.cells.push(std::mem::replace(&mut cell, [ZERO; 4]));
            }
        }
        if classes.n_called == classes.rows.len() {
            self.called = above;
        }
    }

    #[inline(always)]
    fn end_run(&mut self, above: &mut [Lanes; 2], run: &[Lanes; 2], [has_negative, has_positive]: [bool; 2]) {
        if has_negative {
            let mut n_crossing = 0_u32;
            for lane in 0..LANES {
                self.twice[lane] += run[0][lane] * (2.0 * above[1][lane] + run[1][lane]);
                self.ties[lane] += run[0][lane] * run[1][lane];
                let most = self.most_false[lane];
                n_crossing += u32::from(above[0][lane] <= most && above[0][lane] + run[0][lane] > most);
            }
            if n_crossing > 0 {
                self.cross(above, run);
            }
        }
        for class in 0..2 {
            add(&mut above[class], &run[class], 1.0);
        }
        if has_positive {
            for lane in 0..LANES {
                let called = (above[0][lane] + above[1][lane]).max(1.0);
                self.precision[lane] += run[1][lane] * above[1][lane] / called;
            }
        }
    }

    /// Keeps the thresholds between which the true negative rate is passed.
    #[inline(never)]
    fn cross(&mut self, above: &[Lanes; 2], run: &[Lanes; 2]) {
        for lane in 0..LANES {
            let (before, after) = (above[0][lane], above[0][lane] + run[0][lane]);
            if before <= self.most_false[lane] && after > self.most_false[lane] {
                (self.last[0][lane], self.last[1][lane]) = (above[1][lane], before);
                (self.next[0][lane], self.next[1][lane]) = (above[1][lane] + run[1][lane], after);
            }
        }
    }
}

/// Width of the cells of logits with this standard deviation, the slope of whose line is `slope`: what a line changes within a cell
/// is as small as at slope 1. Slopes of replicates are spread by 1 / `deviation` times a number below 1.
fn cell_width(slope: f64, deviation: f64) -> f64 {
    let spread = if deviation > 0.0 { deviation.recip() } else { 1.0 };
    CELL / slope.abs().max(spread).max(1.0)
}

/// Adds `weight` times `factor`, lane by lane.
#[inline(always)]
fn add(sums: &mut Lanes, weight: &Lanes, factor: f64) {
    let (mut result, weight) = (*sums, *weight);
    for lane in 0..LANES {
        result[lane] += factor * weight[lane];
    }
    *sums = result;
}
