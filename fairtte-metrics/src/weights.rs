//! Weights of samples: how often each one counts.

use crate::MetricError;

/// Checks that there is one weight for each of `n` samples.
pub(crate) fn check_weights(weights: &[u32], n: usize) -> Result<(), MetricError> {
    if weights.len() == n {
        return Ok(());
    }
    Err(MetricError::LengthMismatch { what: "weights", found: weights.len(), expected: n })
}

/// The weights of the samples in the order in which a prepared metric keeps them.
pub(crate) fn weights_in_order(weights: &[u32], order: &[u32]) -> Result<Vec<u32>, MetricError> {
    check_weights(weights, order.len())?;
    Ok(order.iter().map(|&row| weights[row as usize]).collect())
}
