//! The Cox model of `cox.rs` for eight weight vectors side by side, so that every operation is one on vectors.
//!
//! Newton's method with full steps. A lane whose steps do not become shorter, or that has no maximum, is left to the
//! exact path in `cox.rs`, which halves its steps and knows the reason. Both end where Newton's decrement is below the
//! same tolerance, so that their coefficients agree to a millionth of a standard error.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set of the machine")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes of local arrays are what becomes vector code")]

use super::cox::{CoxDesign, MOST_COEFFICIENT, MOST_COVARIATES, TOLERANCE, Vector, is_short, moved, solve};
use crate::resampling::lanes::LaneWeights as BlockWeights;

/// Weight vectors side by side.
pub(crate) const WIDTH: usize = 8;

/// One number per weight vector.
pub(crate) type Lane = [f64; WIDTH];

const MOST_STEPS: usize = 12;
const ZERO: Lane = [0.0; WIDTH];

/// Sums over the samples at risk, or over tied events.
#[derive(Clone, Copy)]
struct Sums {
    risk: Lane,
    first: [Lane; MOST_COVARIATES],
    second: [Lane; 3],
}

const NO_SUMS: Sums = Sums { risk: ZERO, first: [ZERO; MOST_COVARIATES], second: [ZERO; 3] };

/// First and negative second derivatives of the log partial likelihood.
#[derive(Clone, Copy)]
struct Derivatives {
    gradient: [Lane; MOST_COVARIATES],
    information: [Lane; 3],
    /// The diagonal of the information without the means that are subtracted.
    scale: [Lane; MOST_COVARIATES],
}

/// The coefficients that fits begin with.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) coefficients: Vector,
    /// The risk of every row with them, in the order of the design.
    risks: Vec<f64>,
}

impl Start {
    pub(crate) fn new(design: &CoxDesign, coefficients: Vector) -> Self {
        let risk = |covariates: &Vector| covariates.iter().zip(coefficients).map(|(x, b)| x * b).sum::<f64>().exp();
        Self { coefficients, risks: design.covariates.iter().map(risk).collect() }
    }
}

/// The weights of eight samples in the order of a design.
pub(crate) struct LaneWeights<'a> {
    design: &'a CoxDesign,
    weights: Vec<Lane>,
}

impl<'a> LaneWeights<'a> {
    /// The lanes from `first` on of the weights of every row of the sample.
    pub(crate) fn new(design: &'a CoxDesign, rows: &[BlockWeights], first: usize) -> Self {
        Self { design, weights: design.order.iter().map(|row| lanes_from(&rows[*row as usize], first)).collect() }
    }

    /// The coefficients of every lane; `None` where the exact path is needed.
    pub(crate) fn fit(&self, Start { coefficients: start, risks }: &Start) -> [Option<Vector>; WIDTH] {
        let (mut coefficients, mut fitted) = ([*start; WIDTH], [None; WIDTH]);
        let mut first_risks = Some(risks.as_slice());
        let (mut running, mut previous) = (self.have_events(), [f64::INFINITY; WIDTH]);
        for _ in 0..MOST_STEPS {
            let here = self.derivatives(&coefficients, first_risks.take());
            for lane in (0..WIDTH).filter(|lane| running[*lane]).collect::<Vec<_>>() {
                let gradient = here.gradient.map(|of| of[lane]);
                let (information, scale) = (here.information.map(|of| of[lane]), here.scale.map(|of| of[lane]));
                let step = solve(information, scale, gradient, self.design.n_covariates);
                let decrement =
                    step.map(|step| step.iter().zip(gradient).map(|(step, gradient)| step * gradient).sum());
                let (Some(step), Some(decrement)) = (step, decrement.filter(|found: &f64| *found < previous[lane]))
                else {
                    running[lane] = false;
                    continue;
                };
                let next = moved(coefficients[lane], step, 1.0);
                if decrement <= TOLERANCE && is_short(step, coefficients[lane]) {
                    (fitted[lane], running[lane]) = (Some(next), false);
                }
                running[lane] &= next.iter().all(|coefficient| coefficient.abs() <= MOST_COEFFICIENT);
                (coefficients[lane], previous[lane]) = (next, decrement);
            }
            if running == [false; WIDTH] {
                break;
            }
        }
        fitted
    }

    fn have_events(&self) -> [bool; WIDTH] {
        let mut found = [false; WIDTH];
        for (weights, _) in self.weights.iter().zip(&self.design.event).filter(|(_, event)| **event) {
            for lane in 0..WIDTH {
                found[lane] |= weights[lane] > 0.0;
            }
        }
        found
    }

    /// `risks` are those of every lane at these coefficients, if they are known.
    fn derivatives(&self, coefficients: &[Vector; WIDTH], risks: Option<&[f64]>) -> Derivatives {
        let coefficients = by_covariate(coefficients);
        pulp::Arch::new().dispatch(Differentiate { weights: self, coefficients, risks })
    }

    /// The cumulative baseline hazards up to and including `time`, of covariates 0.
    pub(crate) fn baseline(&self, coefficients: &[Vector; WIDTH], time: f64) -> Lane {
        pulp::Arch::new().dispatch(Baseline { weights: self, coefficients: by_covariate(coefficients), time })
    }
}

/// The weights of one row in the lanes from `first` on.
#[inline(always)]
pub(crate) fn lanes_from(weights: &BlockWeights, first: usize) -> Lane {
    let mut lanes = ZERO;
    for (lane, weight) in lanes.iter_mut().zip(&weights[first..]) {
        *lane = f64::from(*weight);
    }
    lanes
}

/// From the coefficients of every lane to the lanes of every coefficient.
pub(crate) fn by_covariate(coefficients: &[Vector; WIDTH]) -> [Lane; MOST_COVARIATES] {
    std::array::from_fn(|k| std::array::from_fn(|lane| coefficients[lane][k]))
}

/// The linear predictors of one sample.
#[inline(always)]
pub(crate) fn predictors([x, y]: Vector, [b, c]: &[Lane; MOST_COVARIATES]) -> Lane {
    let mut predictors = ZERO;
    for lane in 0..WIDTH {
        predictors[lane] = x * b[lane] + y * c[lane];
    }
    predictors
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, [x, y]: Vector, risk: Lane) {
        let (cells, at) = ([x, y], [x * x, x * y, y * y]);
        for lane in 0..WIDTH {
            self.risk[lane] += risk[lane];
        }
        for k in 0..MOST_COVARIATES {
            for lane in 0..WIDTH {
                self.first[k][lane] += risk[lane] * cells[k];
            }
        }
        for k in 0..3 {
            for lane in 0..WIDTH {
                self.second[k][lane] += risk[lane] * at[k];
            }
        }
    }
}

/// Weights of the events at one time, and of the samples at risk there.
struct AtTime<'a> {
    at_risk: &'a Sums,
    events: &'a Sums,
    n_events: &'a Lane,
}

impl AtTime<'_> {
    /// Calls `visit` with the share of the tied events that have left (Efron) and with the inverse of the risk that
    /// remains; 0 in lanes with fewer ties.
    #[inline(always)]
    fn for_each_tie(&self, mut visit: impl FnMut(&Lane, &Lane)) {
        let most = self.n_events.iter().copied().fold(0.0, f64::max);
        let (mut tie, mut one_of) = (0.0, ZERO);
        for lane in 0..WIDTH {
            one_of[lane] = 1.0 / self.n_events[lane].max(1.0);
        }
        while tie < most {
            let (mut share, mut inverse) = (ZERO, ZERO);
            for lane in 0..WIDTH {
                share[lane] = tie * one_of[lane];
                let remaining = self.at_risk.risk[lane] - share[lane] * self.events.risk[lane];
                inverse[lane] = if tie < self.n_events[lane] { 1.0 / remaining } else { 0.0 };
            }
            visit(&share, &inverse);
            tie += 1.0;
        }
    }
}

impl LaneWeights<'_> {
    /// Calls `at_time` for every time with an event in the sample, from the latest, and `of_event` for every event.
    #[inline(always)]
    fn walk(
        &self,
        coefficients: &[Lane; MOST_COVARIATES],
        risks: Option<&[f64]>,
        mut of_event: impl FnMut(&Vector, &Lane),
        mut at_time: impl FnMut(f64, &AtTime<'_>),
    ) {
        let CoxDesign { time, event, covariates, .. } = self.design;
        let (mut at_risk, mut first) = (NO_SUMS, 0);
        while first < time.len() {
            let (mut events, mut n_events, mut any) = (NO_SUMS, ZERO, false);
            let mut place = first;
            // In descending order, equal times are neighbours.
            while place < time.len() && time[place] >= time[first] {
                let (of_row, weights) = (&covariates[place], &self.weights[place]);
                let mut risk = match risks {
                    Some(risks) => [risks[place]; WIDTH],
                    None => exp(predictors(*of_row, coefficients)),
                };
                for lane in 0..WIDTH {
                    risk[lane] *= weights[lane];
                }
                at_risk.add(*of_row, risk);
                if event[place] {
                    events.add(*of_row, risk);
                    for lane in 0..WIDTH {
                        n_events[lane] += weights[lane];
                    }
                    of_event(of_row, weights);
                    any = true;
                }
                place += 1;
            }
            if any {
                at_time(time[first], &AtTime { at_risk: &at_risk, events: &events, n_events: &n_events });
            }
            first = place;
        }
    }
}

/// [`LaneWeights::derivatives`] as a value, so that it can be compiled for several instruction sets.
struct Differentiate<'a> {
    weights: &'a LaneWeights<'a>,
    coefficients: [Lane; MOST_COVARIATES],
    risks: Option<&'a [f64]>,
}

impl pulp::WithSimd for Differentiate<'_> {
    type Output = Derivatives;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Derivatives {
        let (mut of_events, mut expected) = ([ZERO; MOST_COVARIATES], [ZERO; MOST_COVARIATES]);
        let (mut information, mut scale) = ([ZERO; 3], [ZERO; MOST_COVARIATES]);
        let of_event = |covariates: &Vector, weights: &Lane| {
            for k in 0..MOST_COVARIATES {
                for lane in 0..WIDTH {
                    of_events[k][lane] += weights[lane] * covariates[k];
                }
            }
        };
        let at_time = |_, at: &AtTime<'_>| {
            at.for_each_tie(|share, inverse| {
                let mut means = [ZERO; MOST_COVARIATES];
                for k in 0..MOST_COVARIATES {
                    for lane in 0..WIDTH {
                        let remaining = at.at_risk.first[k][lane] - share[lane] * at.events.first[k][lane];
                        means[k][lane] = remaining * inverse[lane];
                        expected[k][lane] += means[k][lane];
                    }
                }
                for (k, [i, j]) in [[0, 0], [0, 1], [1, 1]].into_iter().enumerate() {
                    for lane in 0..WIDTH {
                        let remaining = at.at_risk.second[k][lane] - share[lane] * at.events.second[k][lane];
                        let moment = remaining * inverse[lane];
                        information[k][lane] += moment - means[i][lane] * means[j][lane];
                        if i == j {
                            scale[i][lane] += moment;
                        }
                    }
                }
            });
        };
        self.weights.walk(&self.coefficients, self.risks, of_event, at_time);
        let gradient = std::array::from_fn(|k| std::array::from_fn(|lane| of_events[k][lane] - expected[k][lane]));
        Derivatives { gradient, information, scale }
    }
}

/// [`LaneWeights::baseline`] as a value.
struct Baseline<'a> {
    weights: &'a LaneWeights<'a>,
    coefficients: [Lane; MOST_COVARIATES],
    time: f64,
}

impl pulp::WithSimd for Baseline<'_> {
    type Output = Lane;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Lane {
        let mut hazard = ZERO;
        let at_time = |time: f64, at: &AtTime<'_>| {
            if time <= self.time {
                at.for_each_tie(|_, inverse| {
                    for lane in 0..WIDTH {
                        hazard[lane] += inverse[lane];
                    }
                });
            }
        };
        self.weights.walk(&self.coefficients, None, |_, _| (), at_time);
        hazard
    }
}

/// The largest exponent of [`exp`], whose result is finite.
pub(crate) const LARGEST: f64 = 700.0;

/// e^x, lane by lane, with a relative error below 1e-14; x beyond [`LARGEST`] or its negative is moved there.
///
/// x = k ln 2 + r with |r| <= ln(2)/2; e^r by its Taylor polynomial of degree 12, whose next term is below 2e-16.
#[inline(always)]
pub(crate) fn exp(x: Lane) -> Lane {
    // Adding it rounds to a whole number, which is then in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let mut result = ZERO;
    for lane in 0..WIDTH {
        let x = x[lane].clamp(-LARGEST, LARGEST);
        let rounded = x * std::f64::consts::LOG2_E + ROUND;
        let k = rounded - ROUND;
        let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
        // Estrin's scheme: short chains of dependent operations.
        let [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12] = INVERSE_FACTORIALS;
        let (r2, r4) = (r * r, (r * r) * (r * r));
        let low = (c0 + c1 * r) + (c2 + c3 * r) * r2;
        let middle = (c4 + c5 * r) + (c6 + c7 * r) * r2;
        let high = (c8 + c9 * r) + (c10 + c11 * r) * r2;
        let sum = low + (middle + (high + c12 * r4) * r4) * r4;
        result[lane] = sum * f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    }
    result
}

/// 1 / k! for k = 0, 1, ..
const INVERSE_FACTORIALS: [f64; 13] = {
    let (mut inverse, mut factorial, mut k) = ([1.0; 13], 1.0, 1);
    while k < 13 {
        factorial *= k as f64;
        inverse[k] = 1.0 / factorial;
        k += 1;
    }
    inverse
};

#[cfg(test)]
mod tests;
