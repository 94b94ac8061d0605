//! Values with one unit left out at a time, for the acceleration of `BCa` intervals.
//!
//! The acceleration is a = sum(u^3) / (6 sum(u^2)^(3/2)), where u = (m - 1) (mean - v(i)) / m for the m values v(i)
//! that leave out one unit of a stratum each, mean their mean, and the sums run over all strata (Efron & Tibshirani
//! 1993, equation 14.15; for several strata as `scipy.stats.bootstrap` 1.17.1, which is the golden reference, does for
//! several samples).
//!
//! Grouped jackknife: a metric of 20,000 subjects need not be computed 20,000 times. With more units than `max_blocks`
//! each of g blocks of about n / g units is left out as a whole (delete-a-block: Shao & Wu 1989,
//! doi:10.1214/aos/1176347263; Efron & Tibshirani 1993, section 11.5). The u of a block is the sum of those of its
//! units to first order, and independent centred terms have additive second and third moments, so the same formula
//! estimates the same acceleration without a factor. It is noisier: the standard error is 0.41 / g (that of the
//! skewness of g normal numbers, sqrt(6 / g), divided by 6 sqrt(g)), which at g = 200 moves the ends of a 95 % interval
//! by about 0.4 % of its half-width. Units are assigned to the blocks at random, and the blocks of a stratum are
//! equally large up to one unit.

use rand::seq::SliceRandom as _;

use crate::ids::to_u32;
use crate::resampling::Bootstrap;
use crate::resampling::bootstrap::check_block;
use crate::{MetricError, finite::finite};

/// The block of rows that are never left out.
const NO_BLOCK: u32 = u32::MAX;

/// The leave-out samples of the units (subjects or samples) that a [`Bootstrap`] draws.
///
/// ```
/// use fairtte_metrics::SubjectId;
/// use fairtte_metrics::resampling::{Bootstrap, Jackknife, Resample};
///
/// let subjects = ["a", "b", "a", "c"].map(SubjectId::from);
/// let bootstrap = Bootstrap::new(&subjects, Resample::Subject, 100, 1);
/// let jackknife = Jackknife::new(&bootstrap, Jackknife::DEFAULT_BLOCKS);
/// assert_eq!(jackknife.n_blocks(), 3);
/// assert_eq!(jackknife.weights(0), [0, 1, 0, 1]); // without subject a
/// ```
#[derive(Clone, Debug)]
pub struct Jackknife {
    /// Block of every row.
    block_of_row: Vec<u32>,
    /// Number of blocks in every stratum; the blocks of a stratum have consecutive numbers.
    strata: Vec<u32>,
    n_units: usize,
}

impl Jackknife {
    /// A number of blocks that costs a fifth of 1,000 replicates and moves an interval by less than 1 % of its width.
    pub const DEFAULT_BLOCKS: usize = 200;

    /// One unit per block if there are at most `max_blocks` units, else at most `max_blocks` blocks of equal size (at least two in
    /// every stratum, which may add to them), to which units are assigned at random, by the seed of `bootstrap`. A unit that is a
    /// stratum of its own carries no information about spread and is never left out, unless it is the only stratum.
    pub fn new(bootstrap: &Bootstrap, max_blocks: usize) -> Self {
        let n_units = bootstrap.n_units();
        let (strata, mut block_of_unit) = blocks_in_turn(bootstrap, max_blocks);
        let mut rest = block_of_unit.as_mut_slice();
        for (stratum, (&size, &n_blocks)) in bootstrap.stratum_sizes().iter().zip(&strata).enumerate() {
            let (of_stratum, after) = rest.split_at_mut(size as usize);
            // Units are in the order of their names. Where names follow the outcomes, blocks in turn would resemble each other more
            // than blocks drawn by chance, and the standard error would be far too small.
            if n_blocks < size {
                of_stratum.shuffle(&mut bootstrap.stream("jackknife", stratum));
            }
            rest = after;
        }
        let block_of_row = bootstrap.unit_of_row().iter().map(|&unit| block_of_unit[unit as usize]).collect();
        Self { block_of_row, strata, n_units }
    }

    /// Number of leave-out samples.
    pub fn n_blocks(&self) -> usize {
        self.strata.iter().map(|&n_blocks| n_blocks as usize).sum()
    }

    /// Whether more than one unit is left out at a time.
    pub fn is_grouped(&self) -> bool {
        self.n_blocks() < self.n_units
    }

    /// 0 for the samples of `block`, 1 for all others, `[n]`.
    pub fn weights(&self, block: usize) -> Vec<u32> {
        self.block_of_row.iter().map(|&own| u32::from(own as usize != block)).collect()
    }

    /// The weights without blocks `first_block`, `first_block + 1`, .. side by side: `out[row * n_lanes + lane]`
    /// becomes `weights(first_block + lane)[row]`. Lanes beyond the last block are all 1. As
    /// [`Bootstrap::weights_block`].
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] if `out` is not `n * n_lanes` long.
    pub fn weights_block(&self, first_block: usize, n_lanes: usize, out: &mut [u16]) -> Result<(), MetricError> {
        check_block(self.block_of_row.len(), n_lanes, out.len())?;
        out.fill(1);
        if n_lanes == 0 {
            return Ok(());
        }
        for (lanes, &block) in out.chunks_exact_mut(n_lanes).zip(&self.block_of_row) {
            let lane = (block as usize).checked_sub(first_block);
            if let Some(weight) = lane.and_then(|lane| lanes.get_mut(lane)).filter(|_| block != NO_BLOCK) {
                *weight = 0;
            }
        }
        Ok(())
    }

    /// The jackknife values of one number from its values without block 0, 1, ..; `None` where it does not exist.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] unless there is one value for each block.
    pub fn collect(&self, values: Vec<Option<f64>>) -> Result<JackknifeValues, MetricError> {
        if values.len() != self.n_blocks() {
            let what = "jackknife values";
            return Err(MetricError::LengthMismatch { what, found: values.len(), expected: self.n_blocks() });
        }
        Ok(JackknifeValues { values, strata: self.strata.clone() })
    }
}

/// Number of blocks of every stratum, and the block of the first, second, .. unit of the strata, counted through them.
pub(super) fn blocks_in_turn(bootstrap: &Bootstrap, max_blocks: usize) -> (Vec<u32>, Vec<u32>) {
    let (n_units, sizes) = (bootstrap.n_units(), bootstrap.stratum_sizes());
    let blocks_of = |&size: &u32| -> u32 {
        let size = size as usize;
        if size < 2 && sizes.len() > 1 {
            return 0;
        }
        let share = if n_units <= max_blocks { size } else { (size * max_blocks / n_units).max(2) };
        to_u32(share.min(size))
    };
    let strata: Vec<u32> = sizes.iter().map(blocks_of).collect();
    let mut block_of_unit = Vec::with_capacity(n_units);
    let mut first = 0;
    for (&size, &n_blocks) in sizes.iter().zip(&strata) {
        let in_turn = (0..size).map(|unit| unit.checked_rem(n_blocks).map_or(NO_BLOCK, |block| first + block));
        block_of_unit.extend(in_turn);
        first += n_blocks;
    }
    (strata, block_of_unit)
}

/// The jackknife values of one number.
#[derive(Clone, Debug, PartialEq)]
pub struct JackknifeValues {
    values: Vec<Option<f64>>,
    /// Number of values of every stratum, in order.
    strata: Vec<u32>,
}

impl JackknifeValues {
    /// The values of a single stratum; `None` where the number does not exist.
    pub fn new(values: Vec<Option<f64>>) -> Self {
        Self { strata: vec![to_u32(values.len())], values }
    }

    /// The values of a number that is computed from this one and another of the same blocks; `None` where either is.
    pub(crate) fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.values.iter().zip(&other.values);
        let values = pairs.map(|(first, second)| Some(of((*first)?, (*second)?))).collect();
        Self { values, strata: self.strata.clone() }
    }

    /// The values, in the order of the blocks.
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    /// The jackknife values of the difference of two numbers of the same leave-out samples.
    ///
    /// # Errors
    /// [`MetricError::NotAligned`] if the two do not come from the same jackknife.
    pub fn minus(&self, other: &Self) -> Result<Self, MetricError> {
        if self.strata != other.strata {
            let (first, second) = (self.values.len(), other.values.len());
            return Err(MetricError::NotAligned { what: "jackknife values", first, second });
        }
        let pairs = self.values.iter().zip(&other.values);
        Ok(Self { values: pairs.map(|(a, b)| Some((*a)? - (*b)?)).collect(), strata: self.strata.clone() })
    }

    /// The jackknife values of the difference of two numbers of independent samples, each given with its value: one sample
    /// is left as it is while a block of the other is left out, so that the blocks of each are strata of their own.
    pub(crate) fn unpaired((first, own): (f64, &Self), (second, other): (f64, &Self)) -> Self {
        let of_first = own.values.iter().map(|value| Some((*value)? - second));
        let of_second = other.values.iter().map(|value| Some(first - (*value)?));
        let strata = own.strata.iter().chain(&other.strata).copied().collect();
        Self { values: of_first.chain(of_second).collect(), strata }
    }

    /// The jackknife estimate of the standard error: the root of the sum over strata of (g - 1) / g times the sum of the squared
    /// distances of the g values from their mean (Shao & Wu 1989). `None` where a value does not exist, with fewer than two
    /// values, or if all values of every stratum are equal.
    pub fn standard_error(&self) -> Option<f64> {
        standard_error(&self.values, &self.strata)
    }

    /// Number of values of every stratum.
    pub(super) fn strata(&self) -> &[u32] {
        &self.strata
    }

    /// The acceleration of `BCa`, between -1/6 and 1/6; 0 if all values of every stratum are equal.
    ///
    /// # Errors
    /// [`MetricError::BcaUndefined`] with fewer than two values, [`MetricError::JackknifeUndefined`] if one does not
    /// exist, [`MetricError::NotFinite`] if one is not a finite number.
    pub fn acceleration(&self) -> Result<f64, MetricError> {
        let n_undefined = self.values.iter().filter(|value| value.is_none()).count();
        if n_undefined > 0 {
            return Err(MetricError::JackknifeUndefined { n_undefined, n_blocks: self.values.len() });
        }
        let values = self.values.iter().flatten().map(|&value| finite("jackknife value", value));
        let values: Vec<f64> = values.collect::<Result<_, _>>()?;
        if values.len() < 2 {
            return Err(MetricError::BcaUndefined { reason: "fewer than 2 jackknife values" });
        }
        let mut influences: Vec<f64> = Vec::with_capacity(values.len());
        let mut rest = values.as_slice();
        for &n_blocks in &self.strata {
            let (stratum, others) = rest.split_at(n_blocks as usize);
            rest = others;
            // Rounding of the mean would give equal values a skewness.
            let differs = |first: &&f64| stratum.iter().any(|value| (value - *first).abs() > 0.0);
            let Some(first) = stratum.first().filter(differs) else { continue };
            let n = stratum.len() as f64;
            let mean = first + stratum.iter().map(|value| value - first).sum::<f64>() / n;
            influences.extend(stratum.iter().map(|value| (n - 1.0) / n * (mean - value)));
        }
        // In units of the largest, because the cubes of tiny numbers would underflow.
        let largest = influences.iter().fold(0.0_f64, |largest, influence| largest.max(influence.abs()));
        if largest == 0.0 {
            return Ok(0.0);
        }
        let sum_of = |power: i32| influences.iter().map(|influence| (influence / largest).powi(power)).sum::<f64>();
        let squares = sum_of(2);
        finite("acceleration of the interval", sum_of(3) / (6.0 * squares * squares.sqrt()))
    }
}

/// As [`JackknifeValues::standard_error`], of `values` in the order of `strata`.
pub(super) fn standard_error(values: &[Option<f64>], strata: &[u32]) -> Option<f64> {
    let mut rest = values;
    let mut variance = 0.0;
    for &n_blocks in strata {
        let (stratum, others) = rest.split_at(n_blocks as usize);
        rest = others;
        let Some(Some(first)) = stratum.first() else { continue };
        let n = stratum.len() as f64;
        let distances = stratum.iter().map(|value| Some((*value)? - first)).collect::<Option<Vec<f64>>>()?;
        let mean = distances.iter().sum::<f64>() / n;
        variance += (n - 1.0) / n * distances.iter().map(|distance| (distance - mean).powi(2)).sum::<f64>();
    }
    let exists = values.iter().all(Option::is_some) && variance > 0.0;
    Some(variance.sqrt()).filter(|error| exists && error.is_finite())
}

#[cfg(test)]
mod tests {
    use approx::{assert_abs_diff_eq, assert_relative_eq};

    use super::*;
    use crate::SubjectId;
    use crate::resampling::Resample;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn subjects(n: usize) -> Vec<SubjectId> {
        (0..n).map(|row| SubjectId::new(format!("{row:05}"))).collect()
    }

    /// Jackknife values of the mean of `values`, one per subject.
    fn of_mean(jackknife: &Jackknife, values: &[f64]) -> JackknifeValues {
        let mean = |weights: Vec<u32>| {
            let sum: f64 = values.iter().zip(&weights).map(|(value, weight)| value * f64::from(*weight)).sum();
            Some(sum / f64::from(weights.iter().sum::<u32>()))
        };
        jackknife.collect((0..jackknife.n_blocks()).map(|block| mean(jackknife.weights(block))).collect()).unwrap()
    }

    #[test]
    fn the_acceleration_of_a_mean_is_its_skewness() {
        // a = sum((x - mean)^3) / (6 sum((x - mean)^2)^1.5); x = 0, 0, 3: (-1 - 1 + 8) / (6 * 6^1.5) = 6^-1.5.
        let jackknife = Jackknife::new(&Bootstrap::new(&subjects(3), Resample::Subject, 1, 0), 3);
        let found = of_mean(&jackknife, &[0.0, 0.0, 3.0]).acceleration().unwrap();
        assert_relative_eq!(found, 6.0_f64.powf(-1.5), max_relative = 1e-14);
        // scipy 1.17.1, _bca_interval of the mean of [1, 2, 4, 8, 16].
        let found = JackknifeValues::new(some(&[7.5, 7.25, 6.75, 5.75, 3.75])).acceleration().unwrap();
        assert_relative_eq!(found, 0.066_265_735_490_670_26, max_relative = 1e-14);
    }

    #[test]
    fn the_acceleration_of_two_strata_matches_scipy_with_two_samples() {
        // scipy 1.17.1, _bca_interval of mean([1, 2, 4, 8, 16]) - mean([3, 5, 4, 10]).
        let strata = [0, 0, 0, 0, 0, 1, 1, 1, 1];
        let bootstrap = Bootstrap::stratified(&subjects(9), Resample::Subject, &strata, 1, 0).unwrap();
        let jackknife = Jackknife::new(&bootstrap, 9);
        let values = [2.0, 1.75, 1.25, 0.25, -1.75, -0.4 / 3.0, 1.6 / 3.0, 0.2, 2.2];
        let found = jackknife.collect(some(&values)).unwrap().acceleration().unwrap();
        assert_relative_eq!(found, 0.035_808_467_745_946_62, max_relative = 1e-13);
    }

    #[test]
    fn blocks_of_one_unit_are_the_full_jackknife_and_larger_blocks_come_close() {
        let n = 3_000;
        // Quantiles of the exponential distribution, skewness 2, in an order that the blocks do not follow.
        let at = |row: usize| -(1.0 - ((row * 1_009 % n) as f64 + 0.5) / n as f64).ln();
        let values: Vec<f64> = (0..n).map(at).collect();
        let bootstrap = Bootstrap::new(&subjects(n), Resample::Subject, 1, 0);
        let full = Jackknife::new(&bootstrap, n);
        let grouped = Jackknife::new(&bootstrap, 300);
        assert!(!full.is_grouped() && grouped.is_grouped());
        assert_eq!((full.n_blocks(), grouped.n_blocks()), (n, 300));
        let full = of_mean(&full, &values).acceleration().unwrap();
        let grouped = of_mean(&grouped, &values).acceleration().unwrap();
        // The closed form is skewness / (6 sqrt(n)) = 0.0061; 3 standard errors of the grouped one are 1.2 / 300.
        assert_abs_diff_eq!(full, 2.0 / (6.0 * 3_000.0_f64.sqrt()), epsilon = 1e-4);
        assert_abs_diff_eq!(grouped, full, epsilon = 1.2 / 300.0);
        assert_ne!(grouped, full);
    }

    #[test]
    fn the_standard_error_of_a_mean_is_the_textbook_one_also_of_strata() {
        // sqrt(sum((x - mean)^2) / (n (n - 1))) of 1, 2, 4, 8, 16 and of 3, 5, 4, 10.
        let jackknife = Jackknife::new(&Bootstrap::new(&subjects(5), Resample::Subject, 1, 0), 5);
        let found = of_mean(&jackknife, &[1.0, 2.0, 4.0, 8.0, 16.0]).standard_error().unwrap();
        assert_relative_eq!(found, (148.8_f64 / 20.0).sqrt(), max_relative = 1e-14);
        let strata = [0, 0, 0, 0, 0, 1, 1, 1, 1];
        let bootstrap = Bootstrap::stratified(&subjects(9), Resample::Subject, &strata, 1, 0).unwrap();
        let values = [2.0, 1.75, 1.25, 0.25, -1.75, -0.4 / 3.0, 1.6 / 3.0, 0.2, 2.2];
        let difference = Jackknife::new(&bootstrap, 9).collect(some(&values)).unwrap();
        let expected = (148.8_f64 / 20.0 + 29.0 / 12.0).sqrt();
        assert_relative_eq!(difference.standard_error().unwrap(), expected, max_relative = 1e-14);
        assert_eq!(JackknifeValues::new(some(&[0.1; 7])).standard_error(), None);
        assert_eq!(JackknifeValues::new(vec![Some(0.1), None, Some(0.2)]).standard_error(), None);
        assert_eq!(JackknifeValues::new(some(&[0.1])).standard_error(), None);
    }

    #[test]
    fn names_in_the_order_of_the_values_leave_the_standard_error_as_it_is() {
        // Two classes, named one after the other: of blocks in turn each would have the share of the whole sample.
        let values: Vec<f64> =
            (0..400).map(|row| f64::from(u8::from(row >= 100)) * 4.0 + f64::from(row) / 400.0).collect();
        let mean = values.iter().sum::<f64>() / 400.0;
        let expected = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (400.0 * 399.0)).sqrt();
        let ratios = [0, 1, 2, 3, 4].map(|seed| {
            let bootstrap = Bootstrap::new(&subjects(400), Resample::Subject, 1, seed);
            of_mean(&Jackknife::new(&bootstrap, 20), &values).standard_error().unwrap() / expected
        });
        // The standard error of one is known to 1 / sqrt(2 * 19), 16 %.
        assert!(ratios.iter().all(|ratio| (0.5..1.5).contains(ratio)), "{ratios:?}");
        assert_abs_diff_eq!(ratios.iter().sum::<f64>() / 5.0, 1.0, epsilon = 0.25);
        assert!(ratios.windows(2).all(|pair| pair[0] != pair[1]), "the seed has no effect: {ratios:?}");
        let names: Vec<u32> = (0..400).map(|row| u32::from(row >= 100)).collect();
        let bootstrap = Bootstrap::stratified(&subjects(400), Resample::Subject, &names, 1, 0).unwrap();
        let jackknife = Jackknife::new(&bootstrap, 20);
        // Blocks of a stratum have units of this stratum only.
        for block in 0..jackknife.n_blocks() {
            let left_out = jackknife
                .weights(block)
                .iter()
                .zip(&names)
                .filter(|(w, _)| **w == 0)
                .map(|(_, n)| *n)
                .collect::<Vec<_>>();
            assert!(left_out.len() == 20 && left_out.iter().all(|stratum| *stratum == left_out[0]), "{left_out:?}");
        }
    }

    #[test]
    fn every_unit_is_left_out_once_with_all_its_samples() {
        let named = ["a", "b", "a", "c", "d", "e", "e"].map(SubjectId::from);
        let strata = [0, 0, 0, 0, 1, 2, 2];
        for max_blocks in [100, 2] {
            let bootstrap = Bootstrap::stratified(&named, Resample::Subject, &strata, 1, 0).unwrap();
            let jackknife = Jackknife::new(&bootstrap, max_blocks);
            let left_out: Vec<u32> = (0..7)
                .map(|row| (0..jackknife.n_blocks()).map(|block| 1 - jackknife.weights(block)[row]).sum())
                .collect();
            // Subjects d and e are strata of their own.
            assert_eq!(left_out, [1, 1, 1, 1, 0, 0, 0]);
            let mut block = vec![7; 7 * 4];
            jackknife.weights_block(1, 4, &mut block).unwrap();
            for lane in 0..4 {
                let found: Vec<u32> = (0..7).map(|row| u32::from(block[row * 4 + lane])).collect();
                assert_eq!(found, jackknife.weights(1 + lane));
            }
            assert!(jackknife.weights_block(0, 3, &mut block).is_err());
        }
        let few = Jackknife::new(&Bootstrap::new(&subjects(10), Resample::Subject, 1, 0), 3);
        let sizes: Vec<u32> = (0..3).map(|block| 10 - few.weights(block).iter().sum::<u32>()).collect();
        assert_eq!(sizes, [4, 3, 3]);
    }

    #[test]
    fn equal_values_have_no_acceleration_and_undefined_ones_are_named() {
        assert_eq!(JackknifeValues::new(some(&[0.1; 7])).acceleration(), Ok(0.0));
        let undefined = JackknifeValues::new(vec![Some(0.1), None, Some(0.2)]).acceleration();
        assert_eq!(undefined, Err(MetricError::JackknifeUndefined { n_undefined: 1, n_blocks: 3 }));
        assert!(matches!(JackknifeValues::new(some(&[0.1])).acceleration(), Err(MetricError::BcaUndefined { .. })));
        let infinite = JackknifeValues::new(some(&[0.1, f64::INFINITY])).acceleration();
        assert!(matches!(infinite, Err(MetricError::NotFinite { .. })));
        // As 1, 1, 4: (1 + 1 - 8) / (6 * 6^1.5), up to rounding.
        let tiny = JackknifeValues::new(some(&[1e-200, 1e-200, 4e-200])).acceleration().unwrap();
        assert_relative_eq!(tiny, -(6.0_f64.powf(-1.5)), max_relative = 1e-12);
        let jackknife = Jackknife::new(&Bootstrap::new(&subjects(3), Resample::Subject, 1, 0), 3);
        assert!(jackknife.collect(some(&[0.1])).is_err());
    }

    #[test]
    fn a_difference_is_taken_value_by_value() {
        let first = JackknifeValues::new(vec![Some(0.5), None, Some(0.75)]);
        let second = JackknifeValues::new(some(&[0.25, 0.5, 0.5]));
        assert_eq!(first.minus(&second).unwrap().values(), [Some(0.25), None, Some(0.25)]);
        let short = JackknifeValues::new(some(&[0.25]));
        assert!(matches!(first.minus(&short), Err(MetricError::NotAligned { first: 3, second: 1, .. })));
    }

    #[test]
    fn a_stratum_of_two_units_says_something_about_spread_and_one_of_one_does_not() {
        let n_blocks = |strata: [u32; 5]| {
            let bootstrap = Bootstrap::stratified(&subjects(5), Resample::Subject, &strata, 1, 0).unwrap();
            Jackknife::new(&bootstrap, 5).n_blocks()
        };
        assert_eq!(n_blocks([0, 0, 1, 1, 1]), 5);
        assert_eq!(n_blocks([0, 1, 1, 1, 1]), 4);
    }
}
