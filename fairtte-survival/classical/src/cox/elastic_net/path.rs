//! Coefficients along a path of penalties.
//!
//! At every lambda the search starts at the point to which the previous solutions lead, and uses the curvature of an earlier
//! lambda for as long as that makes steps much shorter: a gradient costs O(n p), the curvature of a columns in play O(n a^2). The
//! steps end at the same conditions of the optimum whatever the curvature is; where they do not get shorter, quadratic
//! approximations with a check of the criterion take over.

use fairtte_metrics::evaluation::Stop;
use ndarray::{Array1, Array2};

use super::criterion::{Criterion, SLACK};
use crate::ClassicalError;
use crate::cox::newton::Concave as _;
use crate::cox::ordered::Ordered;

/// Below it the share of absolute values counts as this much where a largest lambda is computed.
const SMALLEST_L1_RATIO: f64 = 1e-3;
/// The search ends where what is left is expected to be below this, in standard errors of a sample.
const CLOSE: f64 = 1e-9;
/// What the first step at a lambda is taken to leave of itself, and what any step leaves at least.
const FIRST_CONTRACTION: f64 = 0.1;
const LEAST_CONTRACTION: f64 = 1e-3;
/// A step has at least the length that it has with this curvature: where the likelihood is flat, as far outside, no step is short.
const LEAST_CURVATURE: f64 = 0.01;
/// Steps at one lambda before approximations with a check take over.
const MOST_STEPS: usize = 30;
/// The curvature is computed again if a step is not shorter than the one before by this factor.
const SLOW: f64 = 0.05;
/// As many columns are always in play: their curvature costs little.
const FEW: usize = 128;
/// Columns join that the gradient is expected to move at the next lambdas, as many.
const AHEAD: f64 = 4.0;
/// Solutions that tell where the next one is.
const MOST_SOLUTIONS: usize = 4;

/// Penalties in descending order.
#[derive(Clone, Copy)]
pub(super) struct Penalty<'a> {
    pub(super) lambdas: &'a [f64],
    pub(super) l1_ratio: f64,
}

/// The smallest lambda at which all coefficients are 0; for less than 0.001 of absolute values that of 0.001.
pub(super) fn largest_lambda(ordered: &Ordered, l1_ratio: f64) -> f64 {
    let search = Search::new(ordered);
    let gradient = search.gradient_at(&Array1::zeros(ordered.x.ncols()));
    let largest = gradient.iter().fold(0.0, |largest: f64, cell| largest.max(cell.abs()));
    // Where no covariate says anything, any lambda does.
    if largest > 0.0 { largest / l1_ratio.max(SMALLEST_L1_RATIO) } else { 1.0 }
}

/// The coefficients of standardised covariates at every lambda, each started from those before.
///
/// # Errors
/// [`ClassicalError::NotConverged`]; once `stop` is set.
pub(super) fn path(ordered: &Ordered, penalty: Penalty<'_>, stop: &Stop) -> Result<Vec<Array1<f64>>, ClassicalError> {
    let mut search = Search::new(ordered);
    let mut of_lambda = |lambda: &f64| {
        stop.check()?;
        search.advance(&Criterion { lambda: *lambda, l1_ratio: penalty.l1_ratio })?;
        Ok(search.coefficients.clone())
    };
    penalty.lambdas.iter().map(&mut of_lambda).collect()
}

/// Where the search is.
struct Search<'a> {
    ordered: &'a Ordered,
    /// The covariates column by column, `[p, n]`.
    columns: Array2<f64>,
    /// At the last lambda, `[p]`.
    coefficients: Array1<f64>,
    /// Those of the last lambdas, the last one first.
    solutions: Vec<Array1<f64>>,
    /// The gradient at the last of them, as long as columns are out of play, `[p]`.
    gradient: Option<Array1<f64>>,
    /// Columns of which the minimum is sought; one outside that the gradient moves joins them.
    in_play: Vec<usize>,
    /// The samples with these columns.
    part: Ordered,
    /// Their information at earlier coefficients, divided by the number of samples.
    curvature: Option<Array2<f64>>,
    last_lambda: f64,
}

impl<'a> Search<'a> {
    fn new(ordered: &'a Ordered) -> Self {
        let p = ordered.x.ncols();
        let coefficients = Array1::zeros(p);
        let in_play: Vec<usize> = if p <= FEW { (0..p).collect() } else { Vec::new() };
        Self {
            ordered,
            columns: ordered.x.t().as_standard_layout().into_owned(),
            solutions: vec![coefficients.clone()],
            coefficients,
            gradient: None,
            part: ordered.with_columns(&in_play),
            in_play,
            curvature: None,
            last_lambda: f64::INFINITY,
        }
    }

    /// Goes to the minimum at the next lambda.
    fn advance(&mut self, criterion: &Criterion) -> Result<(), ClassicalError> {
        let p = self.coefficients.len();
        let n_idle = self.in_play.iter().filter(|place| self.coefficients[**place].abs() <= 0.0).count();
        if self.in_play.len() > FEW && 4 * n_idle > 3 * self.in_play.len() {
            self.in_play.retain(|place| self.coefficients[*place].abs() > 0.0);
            self.take_columns();
        }
        if self.in_play.len() < p {
            let gradient = self.gradient.take().unwrap_or_else(|| self.gradient_at(&self.coefficients));
            let ahead = if self.last_lambda.is_finite() { AHEAD * (self.last_lambda - criterion.lambda) } else { 0.0 };
            self.let_join(criterion, ahead, &gradient);
        }
        self.last_lambda = criterion.lambda;
        self.coefficients = self.predicted();
        loop {
            self.settle(criterion)?;
            if self.in_play.len() == p {
                break;
            }
            let gradient = self.gradient_at(&self.coefficients);
            let has_joined = self.let_join(criterion, 0.0, &gradient);
            self.gradient = Some(gradient);
            if !has_joined {
                break;
            }
        }
        self.solutions.insert(0, self.coefficients.clone());
        self.solutions.truncate(MOST_SOLUTIONS);
        Ok(())
    }

    /// Where the last solutions lead, lambdas being in equal steps of their logarithm: a polynomial through those in which a
    /// coefficient has its last sign.
    fn predicted(&self) -> Array1<f64> {
        let of_column = |place: usize| {
            let last = self.solutions[0][place];
            let known: Vec<f64> =
                self.solutions.iter().map(|of| of[place]).take_while(|value| value * last > 0.0).collect();
            let next = match known[..] {
                [a, b] => 2.0 * a - b,
                [a, b, c] => 3.0 * (a - b) + c,
                [a, b, c, d] => 4.0 * (a + c) - 6.0 * b - d,
                _ => last,
            };
            if next * last > 0.0 { next } else { last }
        };
        (0..self.coefficients.len()).map(of_column).collect()
    }

    /// Lets columns join that the gradient moves, and with the first of them those that it would move at a lambda smaller by `ahead`:
    /// columns that join one by one would need a new curvature each.
    fn let_join(&mut self, criterion: &Criterion, ahead: f64, gradient: &Array1<f64>) -> bool {
        let out_of_play: Vec<usize> = (0..gradient.len()).filter(|place| !self.in_play.contains(place)).collect();
        let joins = |limit: f64| {
            let limit = limit * criterion.l1_ratio * (1.0 + SLACK);
            out_of_play.iter().copied().filter(move |place| gradient[*place].abs() > limit)
        };
        let has_joined = joins(criterion.lambda).next().is_some();
        if has_joined {
            let more = joins(criterion.lambda - ahead);
            self.in_play.extend(more);
            self.take_columns();
        }
        has_joined
    }

    fn take_columns(&mut self) {
        self.part = self.ordered.with_columns(&self.in_play);
        self.curvature = None;
    }

    /// Goes to the minimum of the columns in play.
    fn settle(&mut self, criterion: &Criterion) -> Result<(), ClassicalError> {
        if self.in_play.is_empty() {
            return Ok(());
        }
        let of = |coefficients: &Array1<f64>| self.in_play.iter().map(|place| coefficients[*place]).collect();
        let (mut b, begin): (Array1<f64>, Array1<f64>) = (of(&self.coefficients), of(&self.solutions[0]));
        let mut before: Option<f64> = None;
        for _ in 0..MOST_STEPS {
            let (slope, curvature) = self.derivatives(&b);
            let target = criterion.of_approximation(&b, &slope, &curvature);
            let squares = target
                .iter()
                .zip(&b)
                .zip(curvature.diag())
                .map(|((to, from), cell)| (to - from).powi(2) * cell.max(LEAST_CURVATURE));
            let length = squares.sum::<f64>().sqrt();
            let share = before.map(|before| length / before);
            // What is left after a step is about as much shorter than the step as it was than the one before. One step alone, or a short
            // one by chance, says little.
            let expected = share.map_or(FIRST_CONTRACTION, |share| share.max(LEAST_CONTRACTION));
            if expected * length <= CLOSE {
                self.curvature = Some(curvature);
                self.keep(&target);
                return Ok(());
            }
            if length.is_nan() || length > 1.0 || share.is_some_and(|share| share > 1.0) {
                break;
            }
            self.curvature = share.is_none_or(|share| share <= SLOW).then_some(curvature);
            (b, before) = (target, Some(length));
        }
        self.curvature = None;
        let minimum = criterion.minimum(&self.part, begin)?;
        self.keep(&minimum);
        Ok(())
    }

    fn keep(&mut self, in_play: &Array1<f64>) {
        self.in_play.iter().zip(in_play).for_each(|(place, value)| self.coefficients[*place] = *value);
    }

    /// Minus the gradient at coefficients of the columns in play, divided by the number of samples, with the curvature at hand or, if
    /// there is none, that at these coefficients.
    fn derivatives(&mut self, b: &Array1<f64>) -> (Array1<f64>, Array2<f64>) {
        let n = self.ordered.event.len() as f64;
        if let Some(curvature) = self.curvature.take() {
            let residuals = self.residuals(self.in_play.iter().copied().zip(b.iter().copied()));
            let slope = self.in_play.iter().map(|place| -self.columns.row(*place).dot(&residuals) / n).collect();
            return (slope, curvature);
        }
        let here = self.part.derivatives(b);
        (here.gradient / -n, here.information / n)
    }

    /// Gradient of the log partial likelihood divided by the number of samples, `[p]`. O(n p).
    fn gradient_at(&self, coefficients: &Array1<f64>) -> Array1<f64> {
        let residuals = self.residuals(coefficients.iter().copied().enumerate());
        self.columns.dot(&residuals) / self.ordered.event.len() as f64
    }

    /// The gradient by the linear predictors, at coefficients with their columns, `[n]`.
    fn residuals(&self, coefficients: impl Iterator<Item = (usize, f64)>) -> Array1<f64> {
        let mut predictor = Array1::zeros(self.ordered.event.len());
        for (place, b) in coefficients.filter(|(_, b)| b.abs() > 0.0) {
            predictor.scaled_add(b, &self.columns.row(place));
        }
        self.ordered.residuals(predictor)
    }
}
