//! Hostile values from bytes: extreme and special numbers, many ties, empty lists, lengths that do not fit.

use fairtte_metrics::estimators::BeyondLastTime;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, GroupId, Groups, Outcomes, Reading, Risk, SubjectId, SurvivalCurves,
};
use ndarray::Array2;

const MAX_SAMPLES: usize = 40;
const MAX_TIMES: usize = 8;

/// Special numbers of floating point; the last three are refused nearly everywhere.
const SPECIAL: [f64; 20] = [
    0.0,
    -0.0,
    5e-324,
    1e-323,
    1e-310,
    f64::MIN_POSITIVE,
    1e-160,
    1e-9,
    1.0 - f64::EPSILON,
    1.0,
    1.0 + f64::EPSILON,
    1.0 + 1e-9,
    1e15,
    1e160,
    f64::MAX / 2.0,
    f64::MAX,
    f64::MIN,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

/// Counts from 0 to the maximum.
const COUNTS: [usize; 6] = [0, 1, 2, 3, 10, usize::MAX];

/// Bytes that are read from front to back; there are zeros beyond their end.
pub struct Input<'a> {
    bytes: &'a [u8],
    /// Numbers need not be finite, nor lengths fit.
    wild: bool,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, wild: false }
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    pub fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    pub fn count(&mut self) -> usize {
        self.pick(&COUNTS)
    }

    /// One case in sixteen is wild.
    pub fn may_be_wild(&mut self) {
        self.wild = self.byte() % 16 == 15;
    }

    /// Any number at all.
    pub fn any_number(&mut self) -> f64 {
        match self.byte() {
            byte @ 0..40 => SPECIAL[usize::from(byte) % SPECIAL.len()],
            byte @ 40..=200 => (f64::from(byte) - 100.0) / 4.0,
            _ => f64::from_bits((0..8).fold(0, |bits, _| bits << 8 | u64::from(self.byte()))),
        }
    }

    /// A finite number, unless the case is wild.
    pub fn number(&mut self) -> f64 {
        let number = self.any_number();
        if self.wild || number.is_finite() { number } else { 0.25 }
    }

    pub fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }

    pub fn time(&mut self) -> f64 {
        let number = self.number();
        // Negative zero is a valid time.
        if self.wild || number == 0.0 { number } else { number.abs() }
    }

    pub fn share(&mut self) -> f64 {
        let number = self.number();
        if self.wild { number } else { number.abs().clamp(0.0, 1.0) }
    }

    pub fn n(&mut self) -> usize {
        let n = self.below(4 * MAX_SAMPLES);
        if n > MAX_SAMPLES { n % 7 } else { n }
    }

    /// A strictly increasing grid, unless the case is wild.
    pub fn times(&mut self) -> Vec<f64> {
        let n = self.below(MAX_TIMES) + usize::from(!self.wild);
        let mut times: Vec<f64> = (0..n).map(|_| self.time()).collect();
        if !self.wild {
            times.sort_by(f64::total_cmp);
            times.dedup();
        }
        times
    }

    pub fn outcomes(&mut self, n: usize) -> Option<Outcomes> {
        let time = (0..n).map(|_| self.time()).collect();
        Outcomes::new(time, (0..n).map(|_| self.flag()).collect()).ok()
    }

    pub fn curves(&mut self, n: usize) -> Option<SurvivalCurves> {
        let grid = self.times();
        let mut values = Vec::with_capacity(n * grid.len());
        for _ in 0..n {
            let mut survival = 1.0;
            for _ in 0..grid.len() {
                survival = if self.wild { self.any_number() } else { survival * self.share_of_the_rest() };
                values.push(survival);
            }
        }
        SurvivalCurves::new(grid.clone(), Array2::from_shape_vec((n, grid.len()), values).ok()?).ok()
    }

    fn share_of_the_rest(&mut self) -> f64 {
        match self.byte() {
            0..80 => 1.0,
            80..90 => 0.0,
            90..100 => 1.0 - 1e-9,
            100..110 => 1e-300,
            byte => f64::from(byte % 8) / 8.0,
        }
    }

    pub fn risk(&mut self, n: usize) -> Option<Risk> {
        Risk::new(self.numbers(n)).ok()
    }

    pub fn groups(&mut self, name: &str, n: usize) -> Option<Groups> {
        let n_levels = self.below(5);
        let membership = (0..n).map(|_| self.below(5)).map(|level| u32::try_from(level).ok().map(GroupId));
        let known = membership.map(|level| level.filter(|level| level.index() < n_levels)).collect();
        Groups::new(name, (0..n_levels).map(|level| level.to_string()).collect(), known).ok()
    }

    pub fn subjects(&mut self, n: usize) -> Vec<SubjectId> {
        let n_subjects = self.below(MAX_SAMPLES) + 1;
        (0..n).map(|_| SubjectId::new(self.below(n_subjects).to_string())).collect()
    }

    pub fn weights(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.pick(&[0, 1, 1, 2, 3, 70_000, u32::MAX / 64, u32::MAX])).collect()
    }

    pub fn labels(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.pick(&[0, 1, 1, 2, 3, u32::MAX])).collect()
    }

    pub fn matrix(&mut self, n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |_| self.number())
    }

    pub fn reading(&mut self) -> Reading {
        let factor = self.pick(&[1, 2, 10, 1000, usize::MAX, 0]);
        self.pick(&[
            Reading::Step,
            Reading::Refined { factor },
            Reading::default(),
            Reading::Linear,
            Reading::ConstantHazard,
            Reading::NextGridPoint,
            Reading::LinearFromOne,
        ])
    }

    /// A censoring curve of other outcomes, or of the same.
    pub fn censoring(&mut self, own: &Outcomes) -> Option<CensoringCurve> {
        let n = self.n();
        let train = if self.flag() { self.outcomes(n)? } else { own.clone() };
        let ties = self.pick(&[CensoringTies::EventsFirst, CensoringTies::Flipped]);
        let beyond = self.pick(&[BeyondLastTime::Hold, BeyondLastTime::LinearToZero, BeyondLastTime::Refuse]);
        Some(CensoringCurve::fit(&train, ties).ok()?.with_beyond(beyond))
    }

    pub fn level(&mut self) -> f64 {
        self.pick(&[0.95, 0.5, 1e-300, 1.0 - f64::EPSILON, 0.999, 0.0, 1.0, f64::NAN])
    }

    /// As many as `n`, unless the case is wild.
    pub fn length(&mut self, n: usize) -> usize {
        if self.wild { self.n() } else { n }
    }
}

/// Everything that a score needs.
pub struct Cohort {
    pub outcomes: Outcomes,
    pub curves: SurvivalCurves,
    pub censoring: CensoringCurve,
    pub reading: Reading,
    pub times: Vec<f64>,
}

impl Cohort {
    /// `None` if a constructor refuses the values made from the bytes.
    pub fn new(input: &mut Input<'_>) -> Option<Self> {
        input.may_be_wild();
        let n = input.n();
        let reading = input.reading();
        let outcomes = input.outcomes(n)?;
        let n = input.length(n);
        let curves = input.curves(n)?;
        let censoring = input.censoring(&outcomes)?;
        // Now and then the times of the sample itself: ties with events are where rules differ.
        let times = match input.below(3) {
            0 => {
                let mut times = fairtte_metrics::scores::unique_times(&outcomes);
                times.truncate(MAX_TIMES);
                times
            }
            1 => curves.grid().to_vec(),
            _ => input.times(),
        };
        Some(Self { outcomes, curves, censoring, reading, times })
    }
}
