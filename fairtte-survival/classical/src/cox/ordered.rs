//! Samples in the order of their risk sets, and the partial likelihood with its derivatives.
//!
//! With the risk r = exp(x b) of a sample and the cumulative baseline hazard H up to its time, the gradient is the sum over
//! samples of (event - r H) x, and the information is the sum of r H x x' minus, over the steps of the baseline, the sum of m m'
//! with the mean m of the samples at risk: two matrix products in place of a matrix that is carried from time to time.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

use super::newton::{Concave, Derivatives};

/// The approximation for events at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CoxTies {
    /// As if tied events happened in every order (default).
    #[default]
    Efron,
    /// As if every tied event had all of them at risk.
    Breslow,
}

impl CoxTies {
    /// The steps of the baseline hazard at `n_events` tied events: the share of the events that is no longer at risk, and how
    /// many steps are like it.
    pub(super) fn steps(self, n_events: usize) -> impl Iterator<Item = (f64, f64)> {
        let (n_steps, count) = match self {
            Self::Efron => (n_events, 1.0),
            Self::Breslow => (n_events.min(1), n_events as f64),
        };
        (0..n_steps).map(move |k| (k as f64 / n_events as f64, count))
    }
}

/// Samples of one stratum with the same time; those with an event come first.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) stratum: usize,
    pub(super) time: f64,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) n_events: usize,
}

/// Samples by stratum, in descending order of time.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// Row numbers before they were ordered.
    pub(super) rows: Vec<usize>,
    pub(super) event: Vec<bool>,
    /// `[n, p]`.
    pub(super) x: Array2<f64>,
    pub(super) blocks: Vec<Block>,
    pub(super) ties: CoxTies,
}

/// Risks of all samples with the sums over the samples at risk.
pub(super) struct Sweep {
    /// exp of the linear predictor, `[n]`.
    pub(super) risk: Vec<f64>,
    /// By block, the sum over the samples at risk.
    at_risk: Vec<f64>,
    /// By block, the sum over its events.
    tied: Vec<f64>,
    /// Log partial likelihood.
    pub(super) value: f64,
}

/// The steps of the baseline hazard, from the last time of the first stratum on.
pub(super) struct Steps {
    /// Place of the block.
    pub(super) block: Vec<usize>,
    /// Share of the tied events that is no longer at risk.
    pub(super) share: Vec<f64>,
    /// Steps like it.
    pub(super) count: Vec<f64>,
    /// Sum of the risks.
    pub(super) at_risk: Vec<f64>,
    /// Mean of the covariates, weighted by the risks, `[n_steps, p]`.
    pub(super) means: Array2<f64>,
}

/// Numbers of which two can be multiplied without an overflow.
const MODERATE: Range<f64> = 1e-150..1e150;

impl Ordered {
    /// Samples with covariates `x` `[n, p]`, times, events and strata `[n]`.
    pub(super) fn new((time, event): (&[f64], &[bool]), stratum: &[usize], x: &Array2<f64>, ties: CoxTies) -> Self {
        // Bits of numbers >= 0 have the order of the numbers.
        let key = |row: usize| (stratum[row], !time[row].to_bits(), !event[row], row);
        let mut keys: Vec<(usize, u64, bool, usize)> = (0..time.len()).map(key).collect();
        keys.sort_unstable();
        let rows: Vec<usize> = keys.into_iter().map(|(_, _, _, row)| row).collect();
        let mut blocks: Vec<Block> = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            match blocks.last_mut() {
                Some(block) if block.stratum == stratum[*row] && block.time.total_cmp(&time[*row]).is_eq() => {
                    block.end = place + 1;
                    block.n_events += usize::from(event[*row]);
                }
                _ => blocks.push(Block {
                    stratum: stratum[*row],
                    time: time[*row],
                    start: place,
                    end: place + 1,
                    n_events: usize::from(event[*row]),
                }),
            }
        }
        let event = rows.iter().map(|row| event[*row]).collect();
        let p = x.ncols();
        let mut sorted = Vec::with_capacity(x.len());
        for row in &rows {
            sorted.extend(x.row(*row));
        }
        let x = Array2::from_shape_vec((rows.len(), p), sorted).expect("a row per sample");
        Self { rows, event, x, blocks, ties }
    }

    /// Samples in the blocks up to the end of a window.
    pub(super) fn n_until(&self, window: &Range<usize>) -> usize {
        window.end.checked_sub(1).and_then(|last| self.blocks.get(last)).map_or(0, |block| block.end)
    }

    /// All blocks.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.blocks.len()
    }

    /// The same samples with these columns of the covariates.
    pub(super) fn with_columns(&self, columns: &[usize]) -> Self {
        let (rows, event, blocks) = (self.rows.clone(), self.event.clone(), self.blocks.clone());
        Self { rows, event, x: columns_of(&self.x, columns), blocks, ties: self.ties }
    }

    /// The log partial likelihood of linear predictors, as far as it is that of events in the blocks `window`; predictors of
    /// samples after it are not read. O(n).
    pub(super) fn sweep(&self, predictor: &Array1<f64>, window: &Range<usize>) -> Sweep {
        let risk: Vec<f64> = predictor.iter().map(|eta| eta.exp()).collect();
        let n = window.end;
        let (mut at_risk, mut tied) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut value, mut sum, mut stratum) = (0.0, 0.0, usize::MAX);
        // The product of sums whose logarithm is still to be taken: one logarithm for many of them.
        let mut product = 1.0_f64;
        for (place, block) in self.blocks[..window.end].iter().enumerate() {
            if block.stratum != stratum {
                (sum, stratum) = (0.0, block.stratum);
            }
            let first_censored = block.start + block.n_events;
            let of_events: f64 = risk[block.start..first_censored].iter().sum();
            sum += of_events + risk[first_censored..block.end].iter().sum::<f64>();
            if window.contains(&place) {
                value += (block.start..first_censored).map(|place| predictor[place]).sum::<f64>();
                for (share, count) in self.ties.steps(block.n_events) {
                    let at_risk = sum - share * of_events;
                    if count > 1.0 || !MODERATE.contains(&at_risk) {
                        value -= count * at_risk.ln();
                        continue;
                    }
                    product *= at_risk;
                    if !MODERATE.contains(&product) {
                        value -= product.ln();
                        product = 1.0;
                    }
                }
            }
            at_risk.push(sum);
            tied.push(of_events);
        }
        Sweep { risk, at_risk, tied, value: value - product.ln() }
    }

    /// The log partial likelihoods at several coefficients. O(n p) for each.
    pub(super) fn likelihoods(&self, coefficients: &[Array1<f64>]) -> Vec<f64> {
        /// Coefficients whose predictors are computed at a time: one matrix product, and little memory.
        const AT_A_TIME: usize = 16;
        let p = self.x.ncols();
        let of_chunk = |chunk: &[Array1<f64>]| {
            let chosen = Array2::from_shape_fn((p, chunk.len()), |(row, column)| chunk[column][row]);
            let predictors = self.x.dot(&chosen);
            let value = |predictor: ArrayView1<'_, f64>| self.sweep(&predictor.to_owned(), &self.all()).value;
            predictors.columns().into_iter().map(value).collect::<Vec<f64>>()
        };
        coefficients.chunks(AT_A_TIME).flat_map(of_chunk).collect()
    }

    /// The steps of the baseline hazard in the blocks `window`, with the means of the samples at risk. O(n p).
    pub(super) fn steps(&self, sweep: &Sweep, window: &Range<usize>) -> Steps {
        let p = self.x.ncols();
        let steps_of = |block: &Block| self.ties.steps(block.n_events).count();
        let n_steps = self.blocks[window.clone()].iter().map(steps_of).sum();
        let mut found = Steps {
            block: Vec::with_capacity(n_steps),
            share: Vec::with_capacity(n_steps),
            count: Vec::with_capacity(n_steps),
            at_risk: Vec::with_capacity(n_steps),
            means: Array2::zeros((0, p)),
        };
        let mut means = Vec::with_capacity(n_steps * p);
        let (mut first, mut of_events, mut stratum) = (vec![0.0; p], vec![0.0; p], usize::MAX);
        for (place, block) in self.blocks[..window.end].iter().enumerate() {
            if block.stratum != stratum {
                first.fill(0.0);
                stratum = block.stratum;
            }
            let n_events = if window.contains(&place) { block.n_events } else { 0 };
            if n_events > 1 {
                of_events.fill(0.0);
                for row in block.start..block.start + n_events {
                    add_scaled(&mut of_events, sweep.risk[row], self.row(row));
                }
            }
            for row in block.start..block.end {
                add_scaled(&mut first, sweep.risk[row], self.row(row));
            }
            for (share, count) in self.ties.steps(n_events) {
                let at_risk = sweep.at_risk[place] - share * sweep.tied[place];
                let inverse = at_risk.recip();
                if share > 0.0 {
                    means.extend(first.iter().zip(&of_events).map(|(all, tied)| (all - share * tied) * inverse));
                } else {
                    means.extend(first.iter().map(|all| all * inverse));
                }
                found.block.push(place);
                found.share.push(share);
                found.count.push(count);
                found.at_risk.push(at_risk);
            }
        }
        found.means = Array2::from_shape_vec((n_steps, p), means).expect("a mean per step");
        found
    }

    /// Covariates of a sample.
    fn row(&self, row: usize) -> &[f64] {
        let p = self.x.ncols();
        &self.x.as_slice().expect("rows lie one after the other")[row * p..(row + 1) * p]
    }

    /// Of every sample up to the end of `window` the baseline hazard of these steps up to its time, as far as it was at risk of
    /// it, `[n]`. O(n).
    pub(super) fn hazards(&self, steps: &Steps, window: &Range<usize>) -> Vec<f64> {
        let mut hazards = vec![0.0; self.n_until(window)];
        let (mut sum, mut stratum, mut step) = (0.0, usize::MAX, steps.block.len());
        for (place, block) in self.blocks[..window.end].iter().enumerate().rev() {
            if block.stratum != stratum {
                (sum, stratum) = (0.0, block.stratum);
            }
            let mut of_events = sum;
            while let Some(last) = step.checked_sub(1).filter(|last| steps.block[*last] == place) {
                let height = steps.count[last] / steps.at_risk[last];
                sum += height;
                of_events += (1.0 - steps.share[last]) * height;
                step = last;
            }
            hazards[block.start..block.start + block.n_events].fill(of_events);
            hazards[block.start + block.n_events..block.end].fill(sum);
        }
        hazards
    }

    /// The gradient by the linear predictors: of every sample its event minus its risk times the baseline hazard up to its time, `[n]`.
    /// O(n).
    pub(super) fn residuals(&self, mut predictor: Array1<f64>) -> Array1<f64> {
        predictor.mapv_inplace(f64::exp);
        let values = predictor.as_slice_mut().expect("numbers lie one after the other");
        let mut sums = Vec::with_capacity(self.blocks.len());
        let (mut at_risk, mut stratum) = (0.0, usize::MAX);
        for block in &self.blocks {
            if block.stratum != stratum {
                (at_risk, stratum) = (0.0, block.stratum);
            }
            let tied: f64 = values[block.start..block.start + block.n_events].iter().sum();
            at_risk += tied + values[block.start + block.n_events..block.end].iter().sum::<f64>();
            sums.push((at_risk, tied));
        }
        let (mut hazard, mut stratum) = (0.0, usize::MAX);
        for (block, (at_risk, tied)) in self.blocks.iter().zip(sums).rev() {
            if block.stratum != stratum {
                (hazard, stratum) = (0.0, block.stratum);
            }
            let mut of_events = hazard;
            for (share, count) in self.ties.steps(block.n_events) {
                let height = count / (at_risk - share * tied);
                hazard += height;
                of_events += (1.0 - share) * height;
            }
            let (events, others) = values[block.start..block.end].split_at_mut(block.n_events);
            for value in events {
                *value = 1.0 - *value * of_events;
            }
            for value in others {
                *value *= -hazard;
            }
        }
        predictor
    }

    /// By stratum with events its number, its event times, ascending, and the cumulative hazard after each.
    pub(super) fn baselines(&self, steps: &Steps) -> Vec<(usize, Vec<f64>, Vec<f64>)> {
        let mut found: Vec<(usize, Vec<f64>, Vec<f64>)> = Vec::new();
        for (step, place) in steps.block.iter().enumerate().rev() {
            let block = &self.blocks[*place];
            let height = steps.count[step] / steps.at_risk[step];
            match found.last_mut() {
                Some((stratum, times, hazard)) if *stratum == block.stratum => {
                    let before = hazard.last().copied().unwrap_or(0.0);
                    if step + 1 < steps.block.len() && steps.block[step + 1] == *place {
                        hazard.pop();
                    } else {
                        times.push(block.time);
                    }
                    hazard.push(before + height);
                }
                _ => found.push((block.stratum, vec![block.time], vec![height])),
            }
        }
        found.reverse();
        found
    }

    /// The part of the log partial likelihood of the events in the blocks `window`, with its derivatives. O(n p^2).
    pub(super) fn derivatives_within(&self, coefficients: &Array1<f64>, window: &Range<usize>) -> Derivatives {
        let x = self.x.slice(s![..self.n_until(window), ..]);
        let sweep = self.sweep(&x.dot(coefficients), window);
        let steps = self.steps(&sweep, window);
        let weights: Vec<f64> =
            sweep.risk.iter().zip(self.hazards(&steps, window)).map(|(risk, hazard)| risk * hazard).collect();
        let mut residuals: Vec<f64> = weights.iter().map(|weight| -weight).collect();
        for block in &self.blocks[window.clone()] {
            residuals[block.start..block.start + block.n_events].iter_mut().for_each(|residual| *residual += 1.0);
        }
        Derivatives {
            value: sweep.value,
            gradient: x.t().dot(&Array1::from_vec(residuals)),
            information: weighted_products(&x, &weights) - weighted_products(&steps.means.view(), &steps.count),
        }
    }
}

impl Concave for Ordered {
    fn derivatives(&self, coefficients: &Array1<f64>) -> Derivatives {
        self.derivatives_within(coefficients, &self.all())
    }
}

/// These columns, rows one after the other.
pub(super) fn columns_of(x: &Array2<f64>, columns: &[usize]) -> Array2<f64> {
    let mut chosen = Vec::with_capacity(x.nrows() * columns.len());
    for row in x.rows() {
        chosen.extend(columns.iter().map(|column| row[*column]));
    }
    Array2::from_shape_vec((x.nrows(), columns.len()), chosen).expect("a number per row and column")
}

fn add_scaled(sum: &mut [f64], factor: f64, x: &[f64]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

/// Rows that are multiplied at a time, so that they stay in the cache.
const ROWS: usize = 512;
/// Columns that are multiplied at a time.
const COLUMNS: usize = 32;

/// x' diag(weights) x, for weights >= 0.
pub(super) fn weighted_products(x: &ArrayView2<'_, f64>, weights: &[f64]) -> Array2<f64> {
    let p = x.ncols();
    let mut products = Array2::zeros((p, p));
    let mut scaled = Array2::zeros((ROWS.min(x.nrows()), p));
    for (rows, weights) in x.axis_chunks_iter(Axis(0), ROWS).zip(weights.chunks(ROWS)) {
        for ((row, weight), mut scaled) in rows.rows().into_iter().zip(weights).zip(scaled.rows_mut()) {
            scaled.iter_mut().zip(row).for_each(|(scaled, x)| *scaled = weight * x);
        }
        // Blocks of columns with the rows above them: the rest is their mirror image.
        for from in (0..p).step_by(COLUMNS) {
            let to = p.min(from + COLUMNS);
            let (left, right) = (rows.slice(s![.., ..to]), scaled.slice(s![..weights.len(), from..to]));
            general_mat_mul(1.0, &left.t(), &right, 1.0, &mut products.slice_mut(s![..to, from..to]));
        }
    }
    // The upper triangle, so that rounding does not make it asymmetric.
    for row in 0..p {
        for column in 0..row {
            products[[row, column]] = products[[column, row]];
        }
    }
    products
}
