//! What each sample adds to the score, and the robust covariance that follows from it.

use std::collections::BTreeMap;

use fairtte_metrics::SubjectId;
use ndarray::{Array1, Array2, Axis};

use super::ordered::{Ordered, Steps, Sweep};

/// Score residuals in the order of `ordered`, `[n, p]`; their sum is the gradient.
///
/// Of a sample with time t and risk r: event (x - m(t)) minus the sum over the steps of the baseline hazard up to t of
/// r (x - mean of the samples at risk) times the step, where a tied event is at risk of a step of Efron's with the share that
/// is not taken out yet, and m(t) is the mean over the steps at t (Lin & Wei 1989; Therneau & Grambsch 2000, section 4.6). O(n p).
pub(super) fn score_residuals(ordered: &Ordered, sweep: &Sweep, steps: &Steps) -> Array2<f64> {
    let p = ordered.x.ncols();
    let mut residuals = Array2::zeros(ordered.x.dim());
    let (mut hazard, mut moment, mut stratum) = (0.0, Array1::<f64>::zeros(p), usize::MAX);
    let mut step = steps.block.len();
    for (place, block) in ordered.blocks.iter().enumerate().rev() {
        if block.stratum != stratum {
            (hazard, stratum) = (0.0, block.stratum);
            moment.fill(0.0);
        }
        let (mut of_event, mut moment_of_event) = (hazard, moment.clone());
        let mut mean = Array1::<f64>::zeros(p);
        while let Some(last) = step.checked_sub(1).filter(|last| steps.block[*last] == place) {
            let height = steps.count[last] / steps.at_risk[last];
            let (row, left) = (steps.means.row(last), 1.0 - steps.share[last]);
            hazard += height;
            moment.scaled_add(height, &row);
            of_event += left * height;
            moment_of_event.scaled_add(left * height, &row);
            mean.scaled_add(steps.count[last] / block.n_events as f64, &row);
            step = last;
        }
        for sample in block.start..block.end {
            let (x, risk) = (ordered.x.row(sample), sweep.risk[sample]);
            let mut residual = residuals.row_mut(sample);
            if ordered.event[sample] {
                residual.assign(&(&x - &mean));
                residual.scaled_add(-risk * of_event, &x);
                residual.scaled_add(risk, &moment_of_event);
            } else {
                residual.scaled_add(-risk * hazard, &x);
                residual.scaled_add(risk, &moment);
            }
        }
    }
    residuals
}

/// V (sum of u u') V of the covariance V and the residuals u, those of a subject added before.
pub(super) fn robust_covariance(
    ordered: &Ordered,
    sweep: &Sweep,
    steps: &Steps,
    covariance: &Array2<f64>,
    subjects: Option<&[SubjectId]>,
) -> Array2<f64> {
    let residuals = score_residuals(ordered, sweep, steps);
    let residuals = match subjects {
        None => residuals,
        Some(subjects) => {
            let mut number: BTreeMap<&SubjectId, usize> = BTreeMap::new();
            for subject in subjects {
                let next = number.len();
                number.entry(subject).or_insert(next);
            }
            let mut sums = Array2::zeros((number.len(), residuals.ncols()));
            for (residual, row) in residuals.axis_iter(Axis(0)).zip(&ordered.rows) {
                if let Some(place) = number.get(&subjects[*row]) {
                    sums.row_mut(*place).scaled_add(1.0, &residual);
                }
            }
            sums
        }
    };
    let moved = residuals.dot(covariance);
    moved.t().dot(&moved)
}
