//! The infimum that defines the objective, with the weights of the losses in it.

/// The position of the infimum, and the contribution of every loss.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Optimum {
    /// The optimal eta; `None` for the plain mean, whose infimum is at minus infinity.
    pub(super) eta: Option<f64>,
    /// Derivative of the value by every loss, `[n]`, summing to 1; the value is the sum of losses times these.
    pub(super) weights: Vec<f64>,
}

/// The infimum over eta of C sqrt(mean (l - eta)_+^2) + eta for C^2 = `squared_radius` and at least one loss.
///
/// Left of the largest loss the derivative by eta rises with eta: it is not positive at a loss exactly if
/// (C^2 k/n - 1) (m - loss)^2 >= v, with m and v mean and variance of the k losses above it. So the first such loss from
/// above bounds eta = m - sqrt(v / (C^2 k/n - 1)) from below. Cost O(n log n).
pub(super) fn optimum(losses: &[f64], squared_radius: f64) -> Optimum {
    let n = losses.len() as f64;
    let mut sorted = losses.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let largest = sorted[0];
    let n_largest = sorted.iter().take_while(|loss| **loss >= largest).count();
    if squared_radius * n_largest as f64 >= n {
        let share = 1.0 / n_largest as f64;
        let weights = losses.iter().map(|loss| if *loss >= largest { share } else { 0.0 }).collect();
        return Optimum { eta: Some(largest), weights };
    }
    let (mut mean, mut squares) = (0.0, 0.0); // of the k largest: mean and sum of squared deviations (Welford)
    for (k, loss) in sorted.iter().enumerate() {
        let count = (k + 1) as f64;
        let deviation = loss - mean;
        mean += deviation / count;
        squares += deviation * (loss - mean);
        let below = sorted.get(k + 1).copied().unwrap_or(f64::NEG_INFINITY);
        let (excess, variance) = (squared_radius * count / n - 1.0, squares / count);
        if below >= *loss || excess <= 0.0 || (mean - below).powi(2) * excess < variance {
            continue;
        }
        let eta = (mean - (variance / excess).sqrt()).clamp(below, *loss);
        let above: Vec<f64> = losses.iter().map(|loss| (loss - eta).max(0.0)).collect();
        let total: f64 = above.iter().sum();
        if total > 0.0 {
            return Optimum { eta: Some(eta), weights: above.iter().map(|a| a / total).collect() };
        }
    }
    Optimum { eta: None, weights: vec![1.0 / n; losses.len()] } // C = 1
}
