//! The partial likelihood with coefficients that change with time.

use std::ops::Range;

use ndarray::{Array1, Array2};

use super::{Term, TimeFunction};
use crate::cox::newton::{Concave, Derivatives, MOST_COEFFICIENT};
use crate::cox::ordered::Ordered;

/// Event times at which all functions are the same.
struct Segment {
    /// Blocks of these times.
    blocks: Range<usize>,
    /// Values of the functions, each divided by its scale.
    functions: Vec<f64>,
}

/// The partial likelihood of coefficients of standardised terms.
pub(super) struct VaryingLikelihood<'a> {
    ordered: &'a Ordered,
    segments: Vec<Segment>,
    terms: &'a [Term],
    /// By term, the size of its coefficient beyond which it separates the samples.
    most: Vec<f64>,
}

impl<'a> VaryingLikelihood<'a> {
    pub(super) fn new(ordered: &'a Ordered, function: &TimeFunction, scale: &[f64], terms: &'a [Term]) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        for (place, block) in ordered.blocks.iter().enumerate().filter(|(_, block)| block.n_events > 0) {
            let functions: Vec<f64> =
                function.at(block.time).into_iter().zip(scale).map(|(value, scale)| value / scale).collect();
            match segments.last_mut() {
                Some(segment) if segment.functions == functions => segment.blocks.end = place + 1,
                _ => segments.push(Segment { blocks: place..place + 1, functions }),
            }
        }
        let most = most_coefficients(&segments, terms);
        Self { ordered, segments, terms, most }
    }

    fn factor(term: &Term, segment: &Segment) -> f64 {
        term.function.map_or(1.0, |function| segment.functions[function])
    }

    /// Coefficients of the covariates in a segment.
    fn in_segment(&self, coefficients: &Array1<f64>, segment: &Segment) -> Array1<f64> {
        let mut found = Array1::zeros(self.ordered.x.ncols());
        for (term, coefficient) in self.terms.iter().zip(coefficients) {
            found[term.covariate] += coefficient * Self::factor(term, segment);
        }
        found
    }

    /// Event times, ascending, and the steps of the baseline hazard of a sample with the means of all covariates.
    pub(super) fn baseline(&self, coefficients: &Array1<f64>) -> (Vec<f64>, Vec<f64>) {
        let (mut times, mut heights) = (Vec::new(), Vec::new());
        for segment in self.segments.iter().rev() {
            let x = self.ordered.x.slice(ndarray::s![..self.ordered.n_until(&segment.blocks), ..]);
            let predictor = x.dot(&self.in_segment(coefficients, segment));
            let sweep = self.ordered.sweep(&predictor, &segment.blocks);
            let steps = self.ordered.steps(&sweep, &segment.blocks);
            for (_, of_segment, hazard) in self.ordered.baselines(&steps) {
                let before = std::iter::once(&0.0).chain(&hazard);
                heights.extend(hazard.iter().zip(before).map(|(after, before)| after - before));
                times.extend(of_segment);
            }
        }
        (times, heights)
    }
}

/// By term, the size of its coefficient beyond which it separates the samples.
///
/// What is limited is the coefficient b + c g of a covariate at every event time. Far from 0 a function hardly varies beside its size (the
/// logarithm of ages above 60 divided by its deviation is about 40), so that b has to take c g back: where |b + c g| <= 30 at all of
/// them, |c| is at most 30, because g varies by at least two of its deviations, and |b| at most 30 (1 + |g|).
fn most_coefficients(segments: &[Segment], terms: &[Term]) -> Vec<f64> {
    let functions = segments.iter().flat_map(|segment| &segment.functions);
    let largest = functions.fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let varies = |covariate| terms.iter().any(|term| term.covariate == covariate && term.function.is_some());
    let most = |term: &Term| {
        let takes_back = term.function.is_none() && varies(term.covariate);
        MOST_COEFFICIENT * if takes_back { 1.0 + largest } else { 1.0 }
    };
    terms.iter().map(most).collect()
}

impl Concave for VaryingLikelihood<'_> {
    fn most(&self, term: usize) -> f64 {
        self.most.get(term).copied().unwrap_or(MOST_COEFFICIENT)
    }

    fn derivatives(&self, coefficients: &Array1<f64>) -> Derivatives {
        let q = self.terms.len();
        let mut found = Derivatives { value: 0.0, gradient: Array1::zeros(q), information: Array2::zeros((q, q)) };
        for segment in &self.segments {
            let here = self.ordered.derivatives_within(&self.in_segment(coefficients, segment), &segment.blocks);
            found.value += here.value;
            for (row, term) in self.terms.iter().enumerate() {
                let factor = Self::factor(term, segment);
                found.gradient[row] += factor * here.gradient[term.covariate];
                for (column, other) in self.terms.iter().enumerate() {
                    let information = here.information[[term.covariate, other.covariate]];
                    found.information[[row, column]] += factor * Self::factor(other, segment) * information;
                }
            }
        }
        found
    }
}
