//! Samples in the order of their risk sets, and the partial likelihood with its derivatives.
//!
//! With r_i = exp(x_i b) and H_i the cumulative baseline hazard of sample i up to its time, the gradient is the sum of
//! (event_i - r_i H_i) x_i and the information is the sum of r_i H_i x_i x_i' minus, over the steps of the baseline, m m' with
//! the mean m of the samples at risk: two matrix products in place of a matrix that is carried from time to time.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
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

impl Ordered {
    /// Samples with covariates `x` `[n, p]`, times, events and strata `[n]`.
    pub(super) fn new((time, event): (&[f64], &[bool]), stratum: &[usize], x: &Array2<f64>, ties: CoxTies) -> Self {
        let mut rows: Vec<usize> = (0..time.len()).collect();
        rows.sort_by(|a, b| {
            let by_time = || time[*b].total_cmp(&time[*a]);
            stratum[*a].cmp(&stratum[*b]).then_with(by_time).then_with(|| event[*b].cmp(&event[*a]))
        });
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
        Self { event, x: x.select(Axis(0), &rows), rows, blocks, ties }
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
        Self { rows, event, x: self.x.select(Axis(1), columns), blocks, ties: self.ties }
    }

    /// The log partial likelihood of linear predictors, as far as it is that of events in the blocks `window`; predictors of
    /// samples after it are not read. O(n).
    pub(super) fn sweep(&self, predictor: &Array1<f64>, window: &Range<usize>) -> Sweep {
        let risk: Vec<f64> = predictor.iter().map(|eta| eta.exp()).collect();
        let n = window.end;
        let (mut at_risk, mut tied) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut value, mut sum, mut stratum) = (0.0, 0.0, usize::MAX);
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
                    value -= count * (sum - share * of_events).ln();
                }
            }
            at_risk.push(sum);
            tied.push(of_events);
        }
        Sweep { risk, at_risk, tied, value }
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
            means: Array2::zeros((n_steps, p)),
        };
        let (mut first, mut of_events, mut stratum) = (vec![0.0; p], vec![0.0; p], usize::MAX);
        for (place, block) in self.blocks[..window.end].iter().enumerate() {
            if block.stratum != stratum {
                first.fill(0.0);
                stratum = block.stratum;
            }
            of_events.fill(0.0);
            for row in block.start..block.start + block.n_events {
                add_scaled(&mut of_events, sweep.risk[row], self.x.row(row).iter());
            }
            add_scaled(&mut first, 1.0, of_events.iter());
            for row in block.start + block.n_events..block.end {
                add_scaled(&mut first, sweep.risk[row], self.x.row(row).iter());
            }
            let n_events = if window.contains(&place) { block.n_events } else { 0 };
            for (share, count) in self.ties.steps(n_events) {
                let at_risk = sweep.at_risk[place] - share * sweep.tied[place];
                let step = found.block.len();
                for (mean, (all, tied)) in found.means.row_mut(step).iter_mut().zip(first.iter().zip(&of_events)) {
                    *mean = (all - share * tied) / at_risk;
                }
                found.block.push(place);
                found.share.push(share);
                found.count.push(count);
                found.at_risk.push(at_risk);
            }
        }
        found
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
        let mut residuals: Array1<f64> = weights.iter().map(|weight| -weight).collect();
        for block in &self.blocks[window.clone()] {
            residuals.slice_mut(s![block.start..block.start + block.n_events]).map_inplace(|residual| *residual += 1.0);
        }
        Derivatives {
            value: sweep.value,
            gradient: x.t().dot(&residuals),
            information: weighted_products(&x, &weights) - weighted_products(&steps.means.view(), &steps.count),
        }
    }
}

impl Concave for Ordered {
    fn derivatives(&self, coefficients: &Array1<f64>) -> Derivatives {
        self.derivatives_within(coefficients, &self.all())
    }
}

fn add_scaled<'a>(sum: &mut [f64], factor: f64, x: impl Iterator<Item = &'a f64>) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

/// x' diag(weights) x, for weights >= 0.
pub(super) fn weighted_products(x: &ArrayView2<'_, f64>, weights: &[f64]) -> Array2<f64> {
    let mut scaled = x.to_owned();
    for (mut row, weight) in scaled.rows_mut().into_iter().zip(weights) {
        row *= weight.sqrt();
    }
    scaled.t().dot(&scaled)
}
