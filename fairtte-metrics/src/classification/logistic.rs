//! Logistic regression of a class on one number, from cells of samples with nearly equal numbers.
//!
//! Newton steps, halved while the log-likelihood falls. A cell has the sums of w d^k, k = 0 .. 3, of its samples, w their
//! weights and d their distances from its centre; the function of a sample is then its Taylor polynomial at the centre. Of
//! samples in cells of their own (d = 0) nothing is approximated; of cells of width h the error is of the order of
//! (slope h / 2)^4 / 24. Numbers are counted from their mean: intercept and slope of numbers that are nearly equal and far from 0
//! would be known from each other but for their last digits.

const MOST_STEPS: usize = 60;

/// Samples with nearly equal numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) centre: f64,
    /// Sums of w d^k, k = 0 .. 3.
    pub(super) moments: [f64; 4],
}

/// The positive samples: sums of their weights, and of weights times numbers less `origin`, a number among them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positives {
    pub(super) weight: f64,
    pub(super) number: f64,
    pub(super) origin: f64,
}

impl Positives {
    /// The same with numbers less `origin`.
    fn less(self, origin: f64) -> Self {
        Self { weight: self.weight, number: self.number + (self.origin - origin) * self.weight, origin }
    }
}

/// What Newton needs at one line.
struct At {
    log_likelihood: f64,
    gradient: [f64; 2],
    /// Information: [intercept, both, slope].
    information: [f64; 3],
}

fn at(cells: &[Cell], positives: Positives, [intercept, slope]: [f64; 2]) -> At {
    let mut found = At {
        log_likelihood: intercept * positives.weight + slope * positives.number,
        gradient: [positives.weight, positives.number],
        information: [0.0; 3],
    };
    for Cell { centre, moments: [m0, m1, m2, m3] } in cells {
        if *m0 <= 0.0 {
            continue;
        }
        let eta = intercept + slope * centre;
        let tail = (-eta.abs()).exp();
        let s = if eta >= 0.0 { 1.0 / (1.0 + tail) } else { tail / (1.0 + tail) };
        let s1 = tail / ((1.0 + tail) * (1.0 + tail));
        let (s2, s3) = (s1 * (1.0 - 2.0 * s), s1 * (1.0 - 6.0 * s1));
        let (b, b2, b3) = (slope, slope * slope / 2.0, slope * slope * slope / 6.0);
        found.log_likelihood -= m0 * (eta.max(0.0) + tail.ln_1p()) + m1 * b * s + m2 * b2 * s1 + m3 * b3 * s2;
        let mean = m0 * s + m1 * b * s1 + m2 * b2 * s2 + m3 * b3 * s3;
        let mean_of_d = m1 * s + m2 * b * s1 + m3 * b2 * s2;
        found.gradient[0] -= mean;
        found.gradient[1] -= centre * mean + mean_of_d;
        let curve = m0 * s1 + m1 * b * s2 + m2 * b2 * s3;
        let curve_of_d = m1 * s1 + m2 * b * s2;
        found.information[0] += curve;
        found.information[1] += centre * curve + curve_of_d;
        found.information[2] += centre * centre * curve + 2.0 * centre * curve_of_d + m2 * s1;
    }
    found
}

/// Intercept and slope of highest likelihood from `start`; with `slope_is_fixed` the intercept alone. `None` if it is not
/// found.
pub(super) fn fit(
    cells: &[Cell],
    positives: Positives,
    [intercept, slope]: [f64; 2],
    slope_is_fixed: bool,
) -> Option<[f64; 2]> {
    let n: f64 = cells.iter().map(|cell| cell.moments[0]).sum();
    let mean = cells.iter().map(|cell| cell.moments[0] * cell.centre + cell.moments[1]).sum::<f64>() / n;
    let centred: Vec<Cell> = cells.iter().map(|cell| Cell { centre: cell.centre - mean, ..*cell }).collect();
    let [at_mean, slope] = climb(&centred, positives.less(mean), [intercept + slope * mean, slope], slope_is_fixed)?;
    Some([at_mean - slope * mean, slope])
}

/// The mean of some numbers (0 of none) and their standard deviation.
pub(super) fn mean_and_deviation(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = numbers.clone().count().max(1) as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    (mean, (numbers.map(|number| (number - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// The same of numbers around 0.
fn climb(cells: &[Cell], positives: Positives, start: [f64; 2], slope_is_fixed: bool) -> Option<[f64; 2]> {
    let n: f64 = cells.iter().map(|cell| cell.moments[0]).sum();
    let (mut line, mut now) = (start, at(cells, positives, start));
    for _ in 0..MOST_STEPS {
        let [g0, g1] = now.gradient;
        let [a, b, c] = now.information;
        let determinant = a * c - b * b;
        let step = if slope_is_fixed {
            [g0 / a, 0.0]
        } else {
            [(c * g0 - b * g1) / determinant, (a * g1 - b * g0) / determinant]
        };
        if !step.iter().all(|step| step.is_finite()) {
            return None;
        }
        // Of nearly equal numbers the slope is large, and so are its last digits.
        if step.iter().zip(line).all(|(step, line)| step.abs() <= 1e-11 * (1.0 + line.abs())) {
            return Some([line[0] + step[0], line[1] + step[1]]);
        }
        let mut share = 1.0;
        loop {
            let next = [line[0] + share * step[0], line[1] + share * step[1]];
            let found = at(cells, positives, next);
            if found.log_likelihood >= now.log_likelihood - 1e-12 * n {
                (line, now) = (next, found);
                break;
            }
            share *= 0.5;
            if share < 1e-6 {
                return None;
            }
        }
    }
    None
}
