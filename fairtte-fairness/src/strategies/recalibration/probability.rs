//! The maps of the probability of a class, one per group: pure, without a network.
//!
//! `platt` (Platt 1999): p' = sigmoid(a + b logit p), a and b the largest of the likelihood of his targets (`N_+` + 1) / (`N_+` + 2) of
//! a positive and 1 / (`N_-` + 2) of a negative sample, which keep them finite in groups that the model separates. Newton's method
//! with halved steps. Equal probabilities have no slope: b = 0. Probabilities of 0 and 1 enter with logits of -/+ 36.7 (2^-53).
//! `isotonic` (Zadrozny & Elkan 2002): the non-decreasing map of least squares (pool adjacent violators; equal probabilities are one
//! point), a line between its points and constant outside them, as in scikit-learn.
//! Golden values: scikit-learn 1.9.1 and scipy 1.17.1 (`golden/class_recalibration.json`, made by `parity/class_recalibration.py`).

/// The largest absolute logit: that of 2^-53.
const LARGEST_LOGIT: f64 = 36.736_800_569_677_1;

/// log(p / (1 - p)), within the range.
fn logit(p: f64) -> f64 {
    (p.ln() - (-p).ln_1p()).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
}

fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

/// p' of one probability.
pub(super) fn platt_of((intercept, slope): (f64, f64), p: f64) -> f64 {
    sigmoid(intercept + slope * logit(p))
}

/// Intercept and slope of one group; (0, 1) without a row.
pub(super) fn platt(probability: &[f64], positive: &[bool]) -> (f64, f64) {
    let n_positive = positive.iter().filter(|positive| **positive).count() as f64;
    let n_negative = positive.len() as f64 - n_positive;
    if positive.is_empty() {
        return (0.0, 1.0);
    }
    let x: Vec<f64> = probability.iter().map(|p| logit(*p)).collect();
    let of_class =
        |positive: &bool| if *positive { (n_positive + 1.0) / (n_positive + 2.0) } else { 1.0 / (n_negative + 2.0) };
    let target: Vec<f64> = positive.iter().map(of_class).collect();
    let mean = target.iter().sum::<f64>() / target.len() as f64;
    let start = (logit(mean), 0.0);
    if x.iter().all(|value| value.total_cmp(&x[0]).is_eq()) {
        return start;
    }
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let loss =
        |(a, b): (f64, f64)| -> f64 { x.iter().zip(&target).map(|(x, t)| softplus(a + b * x) - t * (a + b * x)).sum() };
    let mut at = start;
    for _ in 0..200 {
        // Gradient and Hessian of the loss.
        let (mut ga, mut gb, mut haa, mut hab, mut hbb) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (x, t) in x.iter().zip(&target) {
            let p = sigmoid(at.0 + at.1 * x);
            let (error, weight) = (p - t, p * (1.0 - p));
            ga += error;
            gb += error * x;
            haa += weight;
            hab += weight * x;
            hbb += weight * x * x;
        }
        let determinant = haa * hbb - hab * hab;
        if determinant <= 0.0 {
            break;
        }
        let step = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant);
        let (before, mut share) = (loss(at), 1.0_f64);
        let moved = |share: f64| (at.0 - share * step.0, at.1 - share * step.1);
        while loss(moved(share)) > before && share > 1e-10 {
            share /= 2.0;
        }
        at = moved(share);
        if step.0.abs() + step.1.abs() < 1e-13 * (1.0 + at.0.abs() + at.1.abs()) {
            break;
        }
    }
    at
}

/// Points (p, p') of the isotonic map of one group, ascending in both.
pub(super) fn isotonic(probability: &[f64], positive: &[bool]) -> Vec<(f64, f64)> {
    let mut rows: Vec<(f64, bool)> = probability.iter().copied().zip(positive.iter().copied()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Blocks: smallest and largest p, positives, samples.
    let mut blocks: Vec<(f64, f64, f64, f64)> = Vec::new();
    for tied in rows.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let n_positive = tied.iter().filter(|(_, positive)| *positive).count() as f64;
        let mut block = (tied[0].0, tied[0].0, n_positive, tied.len() as f64);
        while let Some(last) = blocks.last().copied()
            && last.2 * block.3 >= block.2 * last.3
        {
            blocks.pop();
            block = (last.0, block.1, last.2 + block.2, last.3 + block.3);
        }
        blocks.push(block);
    }
    let mut points = Vec::with_capacity(2 * blocks.len());
    for (first, last, n_positive, n) in blocks {
        points.push((first, n_positive / n));
        if last > first {
            points.push((last, n_positive / n));
        }
    }
    points
}

/// p' of one probability on the lines between the points.
pub(super) fn isotonic_of(points: &[(f64, f64)], p: f64) -> f64 {
    let after = points.partition_point(|(at, _)| *at <= p);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (None, None) => p,
        (None, Some((_, first))) => *first,
        (Some((_, last)), None) => last,
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * ((p - x0) / (x1 - x0)),
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/class_recalibration.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
