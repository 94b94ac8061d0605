//! The weighted partial likelihood of Fine & Gray, with its derivatives, baseline and robust variance.

use fairtte_metrics::competing::CompetingOutcomes;
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// Samples in ascending order of time, with covariates of mean 0 and standard deviation 1.
pub(super) struct Samples {
    pub(super) x: Array2<f64>,
    kind: Vec<Kind>,
    /// By row, 1 / G(T-) of a competing event, otherwise 0.
    inverse: Vec<f64>,
    /// The different times, ascending.
    times: Vec<AtTime>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Censored,
    Event,
    Competing,
}

/// The rows `start..end` have one time.
struct AtTime {
    time: f64,
    start: usize,
    end: usize,
    n_events: usize,
    n_censored: usize,
    /// G just before the time.
    censoring: f64,
}

/// The log partial likelihood with its derivatives.
pub(super) struct Likelihood {
    pub(super) value: f64,
    pub(super) gradient: Array1<f64>,
    /// Negative second derivatives.
    pub(super) information: Array2<f64>,
}

/// Weighted sums over the samples at risk.
struct Sums {
    risk: f64,
    first: Array1<f64>,
    second: Array2<f64>,
}

impl Sums {
    fn zero(p: usize) -> Self {
        Self { risk: 0.0, first: Array1::zeros(p), second: Array2::zeros((p, p)) }
    }

    fn add(&mut self, x: &ArrayView1<'_, f64>, risk: f64) {
        self.risk += risk;
        self.first.scaled_add(risk, x);
        for (mut row, cell) in self.second.rows_mut().into_iter().zip(x) {
            row.scaled_add(risk * cell, x);
        }
    }

    fn add_times(&mut self, other: &Self, factor: f64) {
        self.risk += factor * other.risk;
        self.first.scaled_add(factor, &other.first);
        self.second.scaled_add(factor, &other.second);
    }
}

/// What the baseline and the variance need of one event time.
struct Step {
    /// Place among the different times.
    place: usize,
    /// Increment of the cumulative baseline hazard.
    hazard: f64,
    /// Weighted mean of the covariates at risk.
    mean: Array1<f64>,
}

impl Samples {
    /// `x` is `[n, p]`, standardised.
    pub(super) fn new(outcomes: &CompetingOutcomes, cause: u32, x: &Array2<f64>) -> Self {
        let mut order: Vec<usize> = (0..outcomes.n()).collect();
        order.sort_by(|a, b| outcomes.time()[*a].total_cmp(&outcomes.time()[*b]));
        let time: Vec<f64> = order.iter().map(|row| outcomes.time()[*row]).collect();
        let kind = |row: &usize| match outcomes.cause()[*row] {
            0 => Kind::Censored,
            found if found == cause => Kind::Event,
            _ => Kind::Competing,
        };
        let kind: Vec<Kind> = order.iter().map(kind).collect();
        let (mut times, mut start, mut censoring) = (Vec::new(), 0, 1.0);
        let mut inverse = vec![0.0; time.len()];
        for tied in time.chunk_by(|a, b| a.total_cmp(b).is_eq()) {
            let end = start + tied.len();
            let count = |wanted: Kind| kind[start..end].iter().filter(|found| **found == wanted).count();
            let (n_events, n_censored) = (count(Kind::Event), count(Kind::Censored));
            times.push(AtTime { time: tied[0], start, end, n_events, n_censored, censoring });
            for row in (start..end).filter(|row| kind[*row] == Kind::Competing) {
                // A sample is observed here, so G is above 0.
                inverse[row] = 1.0 / censoring;
            }
            censoring *= 1.0 - n_censored as f64 / (time.len() - start) as f64;
            start = end;
        }
        Self { x: x.select(Axis(0), &order), kind, inverse, times }
    }

    fn risks(&self, coefficients: &Array1<f64>) -> Vec<f64> {
        self.x.dot(coefficients).iter().map(|predictor| predictor.exp()).collect()
    }

    /// Calls `visit` for every time with an event of the cause, from the latest, with the sums over the samples at risk.
    fn for_each_event_time(&self, risks: &[f64], mut visit: impl FnMut(usize, &AtTime, &Sums)) {
        let p = self.x.ncols();
        // Those who had a competing event before the time: at first all of them.
        let mut retained: Vec<Sums> = Vec::new();
        let mut so_far = Sums::zero(p);
        for at in &self.times {
            if at.n_events > 0 {
                let mut here = Sums::zero(p);
                here.add_times(&so_far, at.censoring);
                retained.push(here);
            }
            for row in (at.start..at.end).filter(|row| self.inverse[*row] > 0.0) {
                so_far.add(&self.x.row(row), risks[row] * self.inverse[row]);
            }
        }
        let mut at_risk = Sums::zero(p);
        for (place, at) in self.times.iter().enumerate().rev() {
            (at.start..at.end).for_each(|row| at_risk.add(&self.x.row(row), risks[row]));
            if let Some(mut all) = (at.n_events > 0).then(|| retained.pop()).flatten() {
                all.add_times(&at_risk, 1.0);
                visit(place, at, &all);
            }
        }
    }

    /// O(n p^2).
    pub(super) fn likelihood(&self, coefficients: &Array1<f64>) -> Likelihood {
        let p = self.x.ncols();
        let mut found = Likelihood { value: 0.0, gradient: Array1::zeros(p), information: Array2::zeros((p, p)) };
        let predictor = self.x.dot(coefficients);
        let risks: Vec<f64> = predictor.iter().map(|predictor| predictor.exp()).collect();
        self.for_each_event_time(&risks, |_, at, sums| {
            let n_events = at.n_events as f64;
            let mean = &sums.first / sums.risk;
            found.value -= n_events * sums.risk.ln();
            found.gradient.scaled_add(-n_events, &mean);
            found.information.scaled_add(n_events / sums.risk, &sums.second);
            for (mut row, cell) in found.information.rows_mut().into_iter().zip(&mean) {
                row.scaled_add(-n_events * cell, &mean);
            }
            for row in (at.start..at.end).filter(|row| self.kind[*row] == Kind::Event) {
                found.value += predictor[row];
                found.gradient += &self.x.row(row);
            }
        });
        found
    }

    /// The event times of the cause, ascending.
    fn steps(&self, coefficients: &Array1<f64>) -> Vec<Step> {
        let mut steps = Vec::new();
        self.for_each_event_time(&self.risks(coefficients), |place, at, sums| {
            steps.push(Step { place, hazard: at.n_events as f64 / sums.risk, mean: &sums.first / sums.risk });
        });
        steps.reverse();
        steps
    }

    /// Event times of the cause, ascending, with the cumulative hazard of the subdistribution after each, of a sample at the
    /// mean of all covariates.
    pub(super) fn cumulative_hazard(&self, coefficients: &Array1<f64>) -> (Vec<f64>, Vec<f64>) {
        let sums = self.steps(coefficients).into_iter().scan(0.0, |sum, step| {
            *sum += step.hazard;
            Some((self.times[step.place].time, *sum))
        });
        sums.unzip()
    }

    /// Sum over the samples of the squares of what each adds to the score, with the estimation of the censoring weights:
    /// the middle of the sandwich. O(n p^2).
    pub(super) fn score_products(&self, coefficients: &Array1<f64>) -> Array2<f64> {
        let (steps, risks) = (self.steps(coefficients), self.risks(coefficients));
        let mut scores = self.scores(&steps, &risks);
        self.add_censoring(&steps, &risks, &mut scores);
        scores.t().dot(&scores)
    }

    /// By row, the integral of (x - mean) against the weighted martingale of its events.
    fn scores(&self, steps: &[Step], risks: &[f64]) -> Array2<f64> {
        let (p, after) = (self.x.ncols(), self.after(steps));
        let mut scores = Array2::zeros(self.x.raw_dim());
        let (mut hazard, mut means, mut next) = (0.0, Array1::<f64>::zeros(p), 0);
        for (place, at) in self.times.iter().enumerate() {
            let step = steps.get(next).filter(|step| step.place == place);
            if let Some(step) = step {
                hazard += step.hazard;
                means.scaled_add(step.hazard, &step.mean);
                next += 1;
            }
            for (row, risk) in risks.iter().enumerate().take(at.end).skip(at.start) {
                let mut score = scores.row_mut(row);
                let x = self.x.row(row);
                // What is expected until its time and, of a competing event, with falling weight after it.
                let (mut expected, mut of_means) = (hazard, means.clone());
                if self.inverse[row] > 0.0 {
                    expected += self.inverse[row] * after[next].0;
                    of_means.scaled_add(self.inverse[row], &after[next].1);
                }
                score.scaled_add(-risk * expected, &x);
                score.scaled_add(*risk, &of_means);
                if let (Kind::Event, Some(step)) = (self.kind[row], step) {
                    score += &x;
                    score -= &step.mean;
                }
            }
        }
        scores
    }

    /// By number of steps passed: the sums of G h and of G h mean over the later ones.
    fn after(&self, steps: &[Step]) -> Vec<(f64, Array1<f64>)> {
        let mut after = vec![(0.0, Array1::zeros(self.x.ncols()))];
        for step in steps.iter().rev() {
            let (hazard, means) = &after[after.len() - 1];
            let weighted = self.times[step.place].censoring * step.hazard;
            let mut next = means.clone();
            next.scaled_add(weighted, &step.mean);
            after.push((hazard + weighted, next));
        }
        after.reverse();
        after
    }

    /// Adds by row what the estimation of G adds to its score: the integral of q / r against its martingale of censoring.
    fn add_censoring(&self, steps: &[Step], risks: &[f64], scores: &mut Array2<f64>) {
        let (p, n) = (self.x.ncols(), self.x.nrows());
        let after = self.after(steps);
        // Sums of risk / G(T-), and of it times x, over the competing events so far.
        let (mut retained, mut of_x, mut passed) = (0.0, Array1::<f64>::zeros(p), 0);
        let mut expected = Array1::<f64>::zeros(p);
        for (place, at) in self.times.iter().enumerate() {
            passed += usize::from(steps.get(passed).is_some_and(|step| step.place == place));
            for row in (at.start..at.end).filter(|row| self.inverse[*row] > 0.0) {
                let weight = risks[row] * self.inverse[row];
                retained += weight;
                of_x.scaled_add(weight, &self.x.row(row));
            }
            let mut of_censored = Array1::zeros(p);
            if at.n_censored > 0 {
                let n_at_risk = (n - at.start) as f64;
                of_censored = (&of_x * after[passed].0 - &after[passed].1 * retained) / n_at_risk;
                expected.scaled_add(at.n_censored as f64 / n_at_risk, &of_censored);
            }
            for row in at.start..at.end {
                let mut score = scores.row_mut(row);
                score -= &expected;
                if self.kind[row] == Kind::Censored {
                    score += &of_censored;
                }
            }
        }
    }
}
