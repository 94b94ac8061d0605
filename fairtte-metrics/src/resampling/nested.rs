//! Values of bootstrap replicates with a part of their draws left out, for studentised intervals.
//!
//! The n draws of a replicate are put into g blocks in turn. Leaving out one block at a time gives g values of the replicate,
//! whose spread is the jackknife estimate of the standard error in that replicate (delete-a-block: Shao & Wu 1989,
//! doi:10.1214/aos/1176347263), as the blocks of units do for the sample itself ([`Jackknife`]). *Draws* are put into blocks, not units: the copies
//! of a unit that was drawn twice are two units of the replicate, and a block that held both would make the error too large by
//! up to sqrt(2). Strata keep blocks of their own.
//! Source of the interval: Efron & Tibshirani (1993), section 12.5; Davison & Hinkley (1997), section 5.2.1.

use crate::MetricError;
use crate::resampling::bootstrap::check_block;
use crate::resampling::jackknife::{blocks_in_turn, standard_error};
use crate::resampling::{Bootstrap, Jackknife, JackknifeValues};

/// The leave-out samples of every replicate of a [`Bootstrap`], by replicate and block.
#[derive(Clone, Debug)]
pub struct Nested<'a> {
    bootstrap: &'a Bootstrap,
    /// Block of the first, second, .. draw of a replicate.
    block_of_draw: Vec<u32>,
    /// Number of blocks of every stratum.
    strata: Vec<u32>,
}

impl<'a> Nested<'a> {
    /// A number of blocks with which a standard error is known to about a sixth, for 20 times the cost of the replicates.
    pub const DEFAULT_BLOCKS: usize = 20;

    /// At most `max_blocks` blocks of draws (at least two in every stratum, which may add to them).
    pub fn new(bootstrap: &'a Bootstrap, max_blocks: usize) -> Self {
        let (strata, block_of_draw) = blocks_in_turn(bootstrap, max_blocks);
        Self { bootstrap, block_of_draw, strata }
    }

    /// The same number of blocks of the sample itself.
    pub fn of_sample(bootstrap: &Bootstrap, max_blocks: usize) -> Jackknife {
        Jackknife::new(bootstrap, max_blocks)
    }

    /// Number of blocks of a replicate.
    pub fn n_blocks(&self) -> usize {
        self.strata.iter().map(|&n_blocks| n_blocks as usize).sum()
    }

    /// Number of leave-out samples of all replicates.
    pub fn n(&self) -> usize {
        self.n_blocks() * self.bootstrap.n_replicates()
    }

    /// The weights of `n_lanes` leave-out samples from `first` on, side by side: sample k is replicate k / g without block k % g.
    /// As [`Bootstrap::weights_block`]; one beyond the last is valid too.
    ///
    /// # Errors
    /// Those of [`Bootstrap::weights_block`].
    pub fn weights_block(&self, first: usize, n_lanes: usize, out: &mut [u16]) -> Result<(), MetricError> {
        check_block(self.bootstrap.n(), n_lanes, out.len())?;
        let n_blocks = self.n_blocks();
        if out.is_empty() || n_blocks == 0 {
            out.fill(0);
            return Ok(());
        }
        let mut counts = vec![0_u16; self.bootstrap.n_units() * n_lanes]; // [units, lanes]
        let mut lane = 0;
        while lane < n_lanes {
            let (replicate, block) = ((first + lane) / n_blocks, (first + lane) % n_blocks);
            let end = n_lanes.min(lane + n_blocks - block);
            let mut overflow = false;
            self.bootstrap.draw_in_turn(replicate, |place, unit| {
                let left_out = self.block_of_draw[place] as usize;
                let counts = &mut counts[unit * n_lanes..][lane..end];
                for (count, _) in counts.iter_mut().zip(block..).filter(|(_, block)| *block != left_out) {
                    overflow |= *count == u16::MAX;
                    *count = count.wrapping_add(1);
                }
            });
            if overflow {
                return Err(MetricError::TooManyDraws { replicate });
            }
            lane = end;
        }
        for (lanes, &unit) in out.chunks_exact_mut(n_lanes).zip(self.bootstrap.unit_of_row()) {
            lanes.copy_from_slice(&counts[unit as usize * n_lanes..][..n_lanes]);
        }
        Ok(())
    }

    /// The values of one number: those of the sample without each block of units, and of every replicate without each block of
    /// draws, in the order of [`weights_block`](Self::weights_block).
    ///
    /// # Errors
    /// [`MetricError::NotAligned`] unless there are as many values as leave-out samples, and as many blocks in `own`.
    pub fn collect(&self, own: JackknifeValues, values: Vec<Option<f64>>) -> Result<NestedValues, MetricError> {
        let what = "leave-out values of replicates";
        if values.len() != self.n() {
            return Err(MetricError::NotAligned { what, first: values.len(), second: self.n() });
        }
        if own.strata() != self.strata {
            return Err(MetricError::NotAligned { what, first: own.values().len(), second: self.n_blocks() });
        }
        Ok(NestedValues { parts: vec![Part { own, values }] })
    }
}

/// The leave-out values of one number in the sample and in every replicate.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedValues {
    /// One per sample: a difference of two cohorts has two, whose variances are added.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    own: JackknifeValues,
    /// By replicate and block.
    values: Vec<Option<f64>>,
}

impl NestedValues {
    /// The values of a number that is computed from this one and another of the same leave-out samples; `None` where either is.
    ///
    /// # Errors
    /// [`MetricError::NotAligned`] if the two do not come from the same leave-out samples.
    pub(crate) fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Result<Self, MetricError> {
        let aligned =
            |own: &Part, other: &Part| own.own.strata() == other.own.strata() && own.values.len() == other.values.len();
        let parts = || self.parts.iter().zip(&other.parts);
        if self.parts.len() != other.parts.len() || !parts().all(|(own, other)| aligned(own, other)) {
            let n = |of: &Self| of.parts.iter().map(|part| part.values.len()).sum();
            return Err(MetricError::NotAligned {
                what: "leave-out values of replicates",
                first: n(self),
                second: n(other),
            });
        }
        let of_part = |(own, other): (&Part, &Part)| Part {
            own: own.own.with(&other.own, &of),
            values: own.values.iter().zip(&other.values).map(|(a, b)| Some(of((*a)?, (*b)?))).collect(),
        };
        Ok(Self { parts: parts().map(of_part).collect() })
    }

    /// Those of the difference of two numbers from the same leave-out samples.
    ///
    /// # Errors
    /// [`MetricError::NotAligned`] if the two do not come from the same leave-out samples.
    pub fn minus(&self, other: &Self) -> Result<Self, MetricError> {
        self.with(other, |first, second| first - second)
    }

    /// Those of the difference of two numbers of independent samples, of which replicate b of the first goes with replicate b + 1
    /// of the second (`unpaired.rs`).
    pub(crate) fn unpaired(&self, other: &Self) -> Self {
        let next = |part: &Part| {
            let mut values = part.values.clone();
            values.rotate_left(part.own.values().len().min(part.values.len()));
            Part { own: part.own.clone(), values }
        };
        Self { parts: self.parts.iter().cloned().chain(other.parts.iter().map(next)).collect() }
    }

    /// The standard error of the number itself.
    pub(super) fn standard_error(&self) -> Option<f64> {
        combined(self.parts.iter().map(|part| part.own.standard_error()))
    }

    /// The standard error in every one of `n` replicates; `None` where a leave-out value does not exist or all are equal.
    pub(super) fn standard_errors(&self, n: usize) -> Vec<Option<f64>> {
        let in_replicate = |replicate: usize| {
            combined(self.parts.iter().map(|part| {
                let n_blocks = part.own.values().len();
                let values = part.values.get(replicate * n_blocks..(replicate + 1) * n_blocks)?;
                standard_error(values, part.own.strata())
            }))
        };
        (0..n).map(in_replicate).collect()
    }
}

/// The root of the sum of squares.
fn combined(errors: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let squares = errors.map(|error| Some(error?.powi(2))).collect::<Option<Vec<f64>>>()?;
    Some(squares.iter().sum::<f64>().sqrt()).filter(|error| *error > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubjectId;
    use crate::resampling::{IntervalMethod, Replicated, Resample};

    fn bootstrap(n: usize, n_replicates: usize) -> Bootstrap {
        let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("{row:05}"))).collect();
        Bootstrap::new(&subjects, Resample::Subject, n_replicates, 3)
    }

    fn mean(values: &[f64], weights: &[u16], lanes: usize, lane: usize) -> f64 {
        let weights = || weights.iter().skip(lane).step_by(lanes).map(|weight| f64::from(*weight));
        values.iter().zip(weights()).map(|(value, weight)| value * weight).sum::<f64>() / weights().sum::<f64>()
    }

    /// The replicates of a mean with its leave-out values.
    fn of_mean(values: &[f64], n_replicates: usize, max_blocks: usize) -> (Vec<Option<f64>>, NestedValues) {
        let (n, bootstrap) = (values.len(), bootstrap(values.len(), n_replicates));
        let nested = Nested::new(&bootstrap, max_blocks);
        let lanes = nested.n();
        let mut weights = vec![0; n * lanes];
        nested.weights_block(0, lanes, &mut weights).unwrap();
        let left_out = (0..lanes).map(|lane| Some(mean(values, &weights, lanes, lane))).collect();
        let jackknife = Nested::of_sample(&bootstrap, max_blocks);
        let without = (0..jackknife.n_blocks()).map(|block| {
            let weights: Vec<u16> =
                jackknife.weights(block).into_iter().map(|weight| weight.try_into().unwrap()).collect();
            Some(mean(values, &weights, 1, 0))
        });
        let own = jackknife.collect(without.collect()).unwrap();
        let mut of_replicates = vec![0; n * n_replicates];
        bootstrap.weights_block(0, n_replicates, &mut of_replicates).unwrap();
        let replicates = (0..n_replicates).map(|lane| Some(mean(values, &of_replicates, n_replicates, lane))).collect();
        (replicates, nested.collect(own, left_out).unwrap())
    }

    #[test]
    fn every_draw_of_a_replicate_is_left_out_once_wherever_lanes_begin() {
        let bootstrap = bootstrap(11, 4);
        let nested = Nested::new(&bootstrap, 3);
        assert_eq!((nested.n_blocks(), nested.n()), (3, 12));
        let mut all = vec![0; 11 * 12];
        nested.weights_block(0, 12, &mut all).unwrap();
        for replicate in 0..4 {
            let drawn = bootstrap.weights(replicate);
            for (row, drawn) in drawn.iter().enumerate() {
                let kept: u16 = (0..3).map(|block| all[row * 12 + replicate * 3 + block]).sum();
                assert_eq!(u32::from(kept), 2 * drawn);
            }
            let left: Vec<u16> =
                (0..3).map(|block| (0..11).map(|row| all[row * 12 + replicate * 3 + block]).sum()).collect();
            assert_eq!(left, [7, 7, 8]);
        }
        let mut some = vec![0; 11 * 5];
        nested.weights_block(4, 5, &mut some).unwrap();
        for (some, all) in some.chunks(5).zip(all.chunks(12)) {
            assert_eq!(some, &all[4..9]);
        }
    }

    #[test]
    fn with_a_block_per_draw_the_error_of_a_mean_in_a_replicate_is_the_textbook_one() {
        let values: Vec<f64> = (0..9).map(|row| f64::from(row * row % 7)).collect();
        let (_, nested) = of_mean(&values, 5, 9);
        let bootstrap = bootstrap(9, 5);
        for (replicate, error) in nested.standard_errors(5).into_iter().enumerate() {
            let drawn: Vec<f64> = bootstrap
                .weights(replicate)
                .iter()
                .zip(&values)
                .flat_map(|(n, value)| vec![*value; *n as usize])
                .collect();
            let mean = drawn.iter().sum::<f64>() / 9.0;
            let squares: f64 = drawn.iter().map(|value| (value - mean).powi(2)).sum();
            assert!((error.unwrap() - (squares / 72.0).sqrt()).abs() < 1e-12);
        }
    }

    /// Exponential values, whose mean is skewed: studentised intervals contain it about as often as they say, percentile
    /// intervals do not (Davison & Hinkley 1997, example 5.1 and table 5.8, find the same order).
    #[test]
    fn studentised_intervals_of_a_skewed_mean_contain_it_more_often_than_percentile_intervals() {
        use rand::RngExt as _;
        let n_trials = 300;
        let mut contained = [0; 2];
        for trial in 0..n_trials {
            let mut rng = crate::seeds::stream(trial, "test/nested", &[]);
            let values: Vec<f64> = (0..20).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
            let (replicates, nested) = of_mean(&values, 199, 20);
            let value = values.iter().sum::<f64>() / 20.0;
            let number = Replicated::new(value, &replicates).with_nested(&nested);
            for (n, method) in contained.iter_mut().zip([IntervalMethod::Studentised, IntervalMethod::Percentile]) {
                let interval = number.interval(0.9, method).unwrap();
                *n += usize::from(interval.lower <= 1.0 && 1.0 <= interval.upper);
            }
        }
        // 90 % is 270 of 300, with a standard error of 5.2.
        assert!(contained[0].abs_diff(270) < 16 && contained[1] < contained[0], "{contained:?}");
    }

    #[test]
    fn the_interval_whose_level_is_its_p_value_ends_at_0_and_what_does_not_exist_is_said() {
        let values: Vec<f64> = (0..30).map(|row| f64::from(row * 7 % 30) - 13.0).collect();
        let (replicates, nested) = of_mean(&values, 400, 10);
        let value = values.iter().sum::<f64>() / 30.0;
        let number = Replicated::new(value, &replicates).with_nested(&nested);
        let p = number.p_value(0.95, IntervalMethod::Studentised).unwrap().unwrap();
        assert!(p < 0.5);
        let interval = number.interval(1.0 - p, IntervalMethod::Studentised).unwrap();
        assert!(interval.lower.abs() < 1e-9 && interval.upper > value, "{interval:?}");
        let error = nested.standard_error().unwrap();
        // A plain t interval is near: the mean of 30 even numbers is hardly skewed.
        let wide = number.interval(0.9, IntervalMethod::Studentised).unwrap();
        assert!((wide.upper - value - 1.83 * error).abs() < 0.25 * error, "{wide:?} {value} {error}");
        let undefined = |number: &Replicated<'_>| {
            matches!(number.interval(0.9, IntervalMethod::Studentised), Err(MetricError::StudentisedUndefined { .. }))
        };
        assert!(undefined(&Replicated::new(value, &replicates)));
        let (replicates, nested) = of_mean(&[1.0; 8], 20, 8);
        assert!(undefined(&Replicated::new(1.0, &replicates).with_nested(&nested)));
    }

    #[test]
    fn errors_of_independent_samples_add_as_squares_and_other_shapes_are_refused() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let (_, nested) = of_mean(&values, 6, 4);
        let both = nested.unpaired(&nested);
        let own = nested.standard_error().unwrap();
        assert!((both.standard_error().unwrap() - own * 2.0_f64.sqrt()).abs() < 1e-12);
        let (single, both) = (nested.standard_errors(6), both.standard_errors(6));
        for b in 0..6 {
            let expected = single[b].unwrap().hypot(single[(b + 1) % 6].unwrap());
            assert!((both[b].unwrap() - expected).abs() < 1e-12);
        }
        assert!(nested.minus(&of_mean(&values, 6, 3).1).is_err());
        assert_eq!(nested.minus(&nested).unwrap().standard_error(), None);
        let bootstrap = bootstrap(12, 6);
        let blocks = Nested::new(&bootstrap, 4);
        let own = JackknifeValues::new(vec![Some(1.0); 4]);
        assert!(blocks.collect(own.clone(), vec![None; 23]).is_err());
        assert!(Nested::new(&bootstrap, 3).collect(own, vec![None; 18]).is_err());
        assert!(blocks.weights_block(0, 2, &mut [0; 3]).is_err());
    }
}
