//! Coefficients along a path of penalties.

use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, Axis};

use crate::ClassicalError;
use crate::cox::newton::{Concave, Derivatives};
use crate::cox::ordered::Ordered;

const MOST_STEPS: usize = 200;
const MOST_PASSES: usize = 100_000;
/// A step of the coefficients ends the search if its squared length, in standard errors of a sample, is below this.
const TOLERANCE: f64 = 1e-20;
/// Passes of coordinate descent before its signs are taken for those of the minimum.
const PASSES_BEFORE_SOLVING: usize = 10;
/// Share of a covariate's curvature that the others must leave unexplained where equations are solved.
const INDEPENDENT: f64 = 1e-10;
/// Rounding may raise the criterion near its minimum by this share.
const ROUNDING: f64 = 1e-13;
/// A gradient beyond the penalty by this share moves a coefficient that is 0.
const SLACK: f64 = 1e-9;
/// Below it the share of absolute values counts as this much where a largest lambda is computed.
const SMALLEST_L1_RATIO: f64 = 1e-3;

/// Penalties in descending order.
#[derive(Clone, Copy)]
pub(super) struct Penalty<'a> {
    pub(super) lambdas: &'a [f64],
    pub(super) l1_ratio: f64,
}

/// The smallest lambda at which all coefficients are 0; for less than 0.001 of absolute values that of 0.001.
pub(super) fn largest_lambda(ordered: &Ordered, l1_ratio: f64) -> f64 {
    let p = ordered.x.ncols();
    let gradient = gradient_of(ordered, &Array1::zeros(p));
    let largest = gradient.iter().fold(0.0, |largest: f64, cell| largest.max(cell.abs()));
    // Where no covariate says anything, any lambda does.
    if largest > 0.0 { largest / l1_ratio.max(SMALLEST_L1_RATIO) } else { 1.0 }
}

/// The coefficients of standardised covariates at every lambda, each started from those before.
///
/// # Errors
/// [`ClassicalError::NotConverged`].
pub(super) fn path(ordered: &Ordered, penalty: Penalty<'_>) -> Result<Vec<Array1<f64>>, ClassicalError> {
    let p = ordered.x.ncols();
    let mut coefficients = Array1::<f64>::zeros(p);
    let mut found = Vec::with_capacity(penalty.lambdas.len());
    for lambda in penalty.lambdas {
        let criterion = Criterion { lambda: *lambda, l1_ratio: penalty.l1_ratio };
        // Columns of which the minimum is known; a column outside that the gradient moves joins them.
        let mut in_play: Vec<usize> = Vec::new();
        loop {
            let gradient = gradient_of(ordered, &coefficients);
            let limit = criterion.lambda * criterion.l1_ratio * (1.0 + SLACK);
            let joins = |place: &usize| coefficients[*place].abs() > 0.0 || gradient[*place].abs() > limit;
            let more: Vec<usize> = (0..p).filter(|place| joins(place) && !in_play.contains(place)).collect();
            if more.is_empty() {
                break;
            }
            in_play.extend(more);
            let start = in_play.iter().map(|place| coefficients[*place]).collect();
            let minimum = criterion.minimum(&ordered.with_columns(&in_play), start)?;
            for (place, value) in in_play.iter().zip(&minimum) {
                coefficients[*place] = *value;
            }
        }
        found.push(coefficients.clone());
    }
    Ok(found)
}

/// Gradient of the log partial likelihood divided by the number of samples, `[p]`. O(n p).
fn gradient_of(ordered: &Ordered, coefficients: &Array1<f64>) -> Array1<f64> {
    let all = ordered.all();
    let sweep = ordered.sweep(&ordered.x.dot(coefficients), &all);
    // The hazards need the sums of risks alone.
    let steps = ordered.with_columns(&[]).steps(&sweep, &all);
    let hazards = ordered.hazards(&steps, &all);
    let residual = |((event, risk), hazard): ((&bool, &f64), &f64)| f64::from(u8::from(*event)) - risk * hazard;
    let residuals: Array1<f64> = ordered.event.iter().zip(&sweep.risk).zip(&hazards).map(residual).collect();
    ordered.x.t().dot(&residuals) / ordered.event.len() as f64
}

/// What is minimised at one lambda.
struct Criterion {
    lambda: f64,
    l1_ratio: f64,
}

impl Criterion {
    fn penalty(&self, b: &Array1<f64>) -> f64 {
        let absolute = b.iter().map(|b| b.abs()).sum::<f64>();
        self.lambda * (self.l1_ratio * absolute + 0.5 * (1.0 - self.l1_ratio) * b.dot(b))
    }

    /// The minimum by quadratic approximations, from `start`.
    fn minimum(&self, ordered: &Ordered, start: Array1<f64>) -> Result<Array1<f64>, ClassicalError> {
        let n = ordered.event.len() as f64;
        let value = |here: &Derivatives, b: &Array1<f64>| -here.value / n + self.penalty(b);
        let mut b = start;
        let mut here = ordered.derivatives(&b);
        for _ in 0..MOST_STEPS {
            let curvature = &here.information / n;
            let target = self.coordinate_descent(&b, &(&here.gradient / -n), &curvature);
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
        Err(ClassicalError::NotConverged { what: "coefficients of the elastic net", n_steps: MOST_STEPS })
    }

    /// The minimum of gradient (z - b) + (z - b)' curvature (z - b) / 2 + penalty of z, one coordinate after the other.
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
                    slope.scaled_add(change, &curvature.column(place));
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
