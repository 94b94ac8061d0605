//! The minimum of the criterion at one lambda, and of its quadratic approximations.

use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, Axis};

use crate::ClassicalError;
use crate::cox::newton::{Concave, Derivatives};
use crate::cox::ordered::Ordered;

const MOST_STEPS: usize = 200;
const MOST_PASSES: usize = 100_000;
/// A step of the coefficients ends the search if its squared length, in standard errors of a sample, is below this.
pub(super) const TOLERANCE: f64 = 1e-20;
/// Passes of coordinate descent before its signs are treated as those of the minimum.
const PASSES_BEFORE_SOLVING: usize = 10;
/// Share of a covariate's curvature that the others must leave unexplained where equations are solved.
const INDEPENDENT: f64 = 1e-10;
/// Rounding may raise the criterion near its minimum by this share.
const ROUNDING: f64 = 1e-13;
/// A gradient beyond the penalty by this share moves a coefficient that is 0.
pub(super) const SLACK: f64 = 1e-9;

/// What is minimised at one lambda.
pub(super) struct Criterion {
    pub(super) lambda: f64,
    pub(super) l1_ratio: f64,
}

impl Criterion {
    fn penalty(&self, b: &Array1<f64>) -> f64 {
        let absolute = b.iter().map(|b| b.abs()).sum::<f64>();
        self.lambda * (self.l1_ratio * absolute + 0.5 * (1.0 - self.l1_ratio) * b.dot(b))
    }

    /// The minimum by quadratic approximations of their own, none of which may raise the criterion, from `start`.
    ///
    /// # Errors
    /// [`ClassicalError::NotConverged`].
    pub(super) fn minimum(&self, ordered: &Ordered, start: Array1<f64>) -> Result<Array1<f64>, ClassicalError> {
        let n = ordered.event.len() as f64;
        let value = |here: &Derivatives, b: &Array1<f64>| -here.value / n + self.penalty(b);
        let mut b = start;
        let mut here = ordered.derivatives(&b);
        for _ in 0..MOST_STEPS {
            let curvature = &here.information / n;
            let target = self.of_approximation(&b, &(&here.gradient / -n), &curvature);
            let step = &target - &b;
            let length: f64 = step.iter().zip(curvature.diag()).map(|(step, cell)| step * step * cell).sum();
            if length <= TOLERANCE {
                return Ok(target);
            }
            let most = value(&here, &b);
            let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(40);
            let moved = shares.map(|share| {
                // The whole step keeps coefficients that became exactly 0.
                let next = if share < 1.0 { &b + &(&step * share) } else { target.clone() };
                let there = ordered.derivatives(&next);
                (next, there)
            });
            let is_lower = |next: &Array1<f64>, there: &Derivatives| {
                let value = value(there, next);
                value.is_finite() && value <= most + ROUNDING * most.abs()
            };
            match moved.into_iter().find(|(next, there)| is_lower(next, there)) {
                Some(found) => (b, here) = found,
                // Nothing is lower than here but for rounding.
                None => return Ok(b),
            }
        }
        Err(ClassicalError::NotConverged {
            what: "coefficients of the elastic net",
            n_steps: MOST_STEPS,
            instead: "let the penalty be larger (smallest, or choice = { fixed = .. })",
        })
    }

    /// The minimum of gradient (z - b) + (z - b)' curvature (z - b) / 2 + penalty of z: by the signs of `b` if they are those of the
    /// minimum, otherwise one coordinate after the other.
    pub(super) fn of_approximation(
        &self,
        b: &Array1<f64>,
        gradient: &Array1<f64>,
        curvature: &Array2<f64>,
    ) -> Array1<f64> {
        self.solve_for_signs(b, b, gradient, curvature)
            .unwrap_or_else(|| self.coordinate_descent(b, gradient, curvature))
    }

    fn coordinate_descent(&self, b: &Array1<f64>, gradient: &Array1<f64>, curvature: &Array2<f64>) -> Array1<f64> {
        let (absolute, square) = (self.lambda * self.l1_ratio, self.lambda * (1.0 - self.l1_ratio));
        let mut z = b.clone();
        // Gradient of the quadratic part at z.
        let mut slope = gradient.clone();
        for pass in 1..=MOST_PASSES {
            let mut most = 0.0_f64;
            for place in 0..z.len() {
                let own = curvature[[place, place]];
                if own + square <= 0.0 {
                    continue;
                }
                let pull = own * z[place] - slope[place];
                let next = pull.signum() * (pull.abs() - absolute).max(0.0) / (own + square);
                let change = next - z[place];
                if change.abs() > 0.0 {
                    z[place] = next;
                    slope.scaled_add(change, &curvature.row(place));
                    most = most.max(change * change * (own + square));
                }
            }
            if most <= 0.01 * TOLERANCE {
                break;
            }
            // Signs settle long before values do.
            if pass % PASSES_BEFORE_SOLVING == 0
                && let Some(solved) = self.solve_for_signs(&z, b, gradient, curvature)
            {
                return solved;
            }
        }
        z
    }

    /// The minimum if the coefficients that are not 0, with their signs, are those of `z`; `None` if it has others.
    fn solve_for_signs(
        &self,
        z: &Array1<f64>,
        b: &Array1<f64>,
        gradient: &Array1<f64>,
        curvature: &Array2<f64>,
    ) -> Option<Array1<f64>> {
        let (absolute, square) = (self.lambda * self.l1_ratio, self.lambda * (1.0 - self.l1_ratio));
        let kept: Vec<usize> = (0..z.len()).filter(|place| z[*place].abs() > 0.0).collect();
        let mut matrix = curvature.select(Axis(0), &kept).select(Axis(1), &kept);
        matrix.diag_mut().map_inplace(|cell| *cell += square);
        let target: Array1<f64> = kept
            .iter()
            .map(|place| curvature.row(*place).dot(b) - gradient[*place] - absolute * z[*place].signum())
            .collect();
        let lower = cholesky(matrix, INDEPENDENT).ok()?;
        let values = solve_lower(&lower, &target);
        let mut found = Array1::zeros(z.len());
        for (place, value) in kept.iter().zip(&values) {
            if value * z[*place] <= 0.0 {
                return None;
            }
            found[*place] = *value;
        }
        let slope = gradient + &curvature.dot(&(&found - b));
        let is_minimum = |place: usize| found[place].abs() > 0.0 || slope[place].abs() <= absolute * (1.0 + SLACK);
        (0..z.len()).all(is_minimum).then_some(found)
    }
}
