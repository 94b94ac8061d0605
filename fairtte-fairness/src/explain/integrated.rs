//! Integrated gradients (Sundararajan, Taly & Yan 2017): attributions that add up to the difference from a baseline.

use crate::FairnessError;

/// The result of integrated gradients.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// The number for the input.
    pub whole: f64,
    /// The number for the baseline.
    pub baseline: f64,
    /// One value per number of the input: positive raises the number.
    pub values: Vec<f64>,
}

impl Attribution {
    /// By how much the sum of the values misses `whole - baseline`, the axiom of completeness: the error of the sum over
    /// steps.
    pub fn gap(&self) -> f64 {
        (self.values.iter().sum::<f64>() - (self.whole - self.baseline)).abs()
    }

    /// The gap as a share of `whole - baseline`; `None` if the two are equal to 1e-9.
    pub fn relative_gap(&self) -> Option<f64> {
        let difference = (self.whole - self.baseline).abs();
        (difference > 1e-9).then(|| self.gap() / difference)
    }
}

/// `(x - x0)_i * mean over k of df/dx_i at x0 + (k + 1/2) / steps * (x - x0)`: eq. 1 of the paper by the midpoint rule, which
/// is exact for linear and quadratic functions (the paper's eq. 3 takes the right ends). `of` computes the number and the
/// gradient of every input of a block, which has at most `block` of them.
///
/// # Errors
/// [`FairnessError::Setting`] for 0 steps; those of `of`.
///
/// # Panics
/// If `baseline` is not as long as `input`.
pub fn integrated_gradients(
    input: &[f32],
    baseline: &[f32],
    steps: usize,
    block: usize,
    mut of: impl FnMut(Vec<Vec<f32>>) -> Result<(Vec<f64>, Vec<f32>), FairnessError>,
) -> Result<Attribution, FairnessError> {
    assert_eq!(input.len(), baseline.len(), "a baseline of the same size");
    crate::check("steps", steps, steps > 0, "at least 1")?;
    let at = |share: f64| -> Vec<f32> {
        let between = |(x, x0): (&f32, &f32)| f64::from(*x0) + share * (f64::from(*x) - f64::from(*x0));
        #[expect(clippy::cast_possible_truncation, reason = "inputs are f32")]
        input.iter().zip(baseline).map(|pair| between(pair) as f32).collect()
    };
    let (ends, _) = of(vec![input.to_vec(), baseline.to_vec()])?;
    let mut sums = vec![0.0; input.len()];
    let shares: Vec<f64> = (0..steps).map(|k| (k as f64 + 0.5) / steps as f64).collect();
    for shares in shares.chunks(block.max(1)) {
        let (_, gradients) = of(shares.iter().map(|share| at(*share)).collect())?;
        for gradient in gradients.chunks_exact(input.len().max(1)) {
            sums.iter_mut().zip(gradient).for_each(|(sum, slope)| *sum += f64::from(*slope));
        }
    }
    let value = |(sum, (x, x0)): (f64, (&f32, &f32))| sum / steps as f64 * (f64::from(*x) - f64::from(*x0));
    let values = sums.into_iter().zip(input.iter().zip(baseline)).map(value).collect();
    Ok(Attribution { whole: ends[0], baseline: ends[1], values })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    const INPUT: [f32; 3] = [1.0, -2.0, 0.5];
    const BASELINE: [f32; 3] = [0.5, 1.0, 0.5];

    fn attribution(steps: usize, f: impl Fn(&[f32]) -> (f64, [f32; 3])) -> Attribution {
        let of = |inputs: Vec<Vec<f32>>| {
            assert!(inputs.len() <= 2, "blocks of two");
            let found: Vec<_> = inputs.iter().map(|input| f(input)).collect();
            Ok((found.iter().map(|found| found.0).collect(), found.iter().flat_map(|found| found.1).collect()))
        };
        integrated_gradients(&INPUT, &BASELINE, steps, 2, of).unwrap()
    }

    #[test]
    fn values_of_a_linear_function_are_exact_with_one_step() {
        let weights = [3.0_f32, 0.25, -7.0];
        let linear = |x: &[f32]| (x.iter().zip(weights).map(|(x, w)| f64::from(x * w)).sum::<f64>() + 1.0, weights);
        let found = attribution(1, linear);
        assert_eq!(found.values, [1.5, -0.75, 0.0]);
        assert_eq!((found.whole, found.baseline, found.gap()), (0.0 + 1.0 - 1.0, 1.5 + 0.25 - 3.5 + 1.0, 0.0));
        assert_eq!(found.relative_gap(), Some(0.0));
    }

    /// f = x0 x1: on the line x0 = 0.5 + 0.5 a, x1 = 1 - 3 a, the integral of df/dx0 = x1 is -0.5 and of df/dx1 = x0 is 0.75.
    #[test]
    fn values_of_a_product_are_those_worked_by_hand() {
        let product = |x: &[f32]| (f64::from(x[0] * x[1]), [x[1], x[0], 0.0]);
        for steps in [1, 3, 8] {
            let found = attribution(steps, product);
            for (found, expected) in found.values.iter().zip([-0.25, -2.25, 0.0]) {
                assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
            }
            assert_abs_diff_eq!(found.gap(), 0.0, epsilon = 1e-6);
        }
    }

    /// f = x1^4 misses completeness with few steps, by 81 (1/(12 n^2)) 4 .. in the leading order, and reports it.
    #[test]
    fn the_gap_of_a_curved_function_falls_with_the_square_of_the_steps() {
        let curved = |x: &[f32]| (f64::from(x[1]).powi(4), [0.0, 4.0 * x[1].powi(3), 0.0]);
        let [two, four, eight] = [2, 4, 8].map(|steps| attribution(steps, curved).gap());
        assert!(two > 1e-3, "{two}");
        for (coarse, fine) in [(two, four), (four, eight)] {
            assert!((coarse / fine - 4.0).abs() < 0.6, "{coarse} {fine}");
        }
    }

    #[test]
    fn equal_ends_have_no_share_and_no_steps_are_refused() {
        let constant = |_: &[f32]| (0.3, [0.0; 3]);
        assert_eq!(attribution(2, constant).relative_gap(), None);
        let refused = integrated_gradients(&INPUT, &BASELINE, 0, 2, |_| Ok((vec![], vec![]))).unwrap_err();
        assert_eq!(refused.to_string(), "steps is 0, expected at least 1");
    }
}
