//! Bootstrap intervals: how much a number would vary if other subjects had been sampled.
//!
//! A replicate draws as many units (subjects, or single samples) with replacement as there are and is represented by
//! how often each sample was drawn, so that metrics can share their sorting between replicates. The same replicates
//! serve every metric, group and gap, which makes differences paired.
//! Within strata, every replicate keeps the number of units of each stratum.
//! Source: Efron (1979), percentile interval; resampling whole clusters and strata: Davison & Hinkley (1997), sections
//! 3.8 and 3.2. The quantile rule is linear interpolation, as in `numpy.quantile`; golden values in `tests/metrics/golden.rs`.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::estimators::kaplan_meier::check_level;
use crate::finite::finite;
use crate::ids::to_u32;
use crate::{MetricError, SubjectId, parallel, seeds};

/// The maximum number of replicates or permutations of one evaluation: far more than precision requires, few enough to
/// be kept in memory.
pub(crate) const MAX_REPLICATES: usize = 1_000_000;

/// What is drawn with replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Resample {
    /// Subjects, each with all of its samples: samples of one person are not independent.
    #[default]
    Subject,
    /// Samples, as if every one were a different person.
    Sample,
}

/// A fixed set of bootstrap replicates of `n` samples.
///
/// ```
/// use fairtte_metrics::SubjectId;
/// use fairtte_metrics::resampling::{Bootstrap, Resample, percentile_interval};
///
/// let subjects: Vec<SubjectId> = (0..50).map(|k| SubjectId::new(format!("s{k:02}"))).collect();
/// let bootstrap = Bootstrap::new(&subjects, Resample::Subject, 200, 7);
/// // The mean row number, recomputed in every replicate.
/// let means = bootstrap.map(|weights| {
///     let sum: u32 = weights.iter().zip(0..).map(|(weight, row): (&u32, u32)| weight * row).sum();
///     f64::from(sum) / 50.0
/// });
/// let (lower, upper) = percentile_interval(&means, 0.95)?.expect("there are replicates");
/// assert!(lower < 24.5 && 24.5 < upper);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Unit of every row.
    unit_of_row: Vec<u32>,
    /// Number of units in every stratum; the units of a stratum have consecutive numbers.
    strata: Vec<u32>,
    n_replicates: usize,
    seed: u64,
}

impl Bootstrap {
    /// Fixes the replicates; row `i` belongs to `subjects[i]`.
    ///
    /// Units are kept in the order of their names, so with [`Resample::Subject`] the replicates do not depend on the
    /// order of the samples.
    pub fn new(subjects: &[SubjectId], resample: Resample, n_replicates: usize, seed: u64) -> Self {
        let units = match resample {
            Resample::Sample => (0..subjects.len()).map(|row| vec![to_u32(row)]).collect(),
            Resample::Subject => rows_of_subjects(subjects).into_values().collect(),
        };
        Self::from_units(subjects.len(), &[units], n_replicates, seed)
    }

    /// As [`new`](Self::new), but units are drawn within strata (for example the levels of an attribute, or event
    /// status), so that every replicate has as many units of each stratum as the sample.
    ///
    /// Row `i` belongs to `strata[i]`. A single stratum gives the replicates of [`new`](Self::new). The interval is
    /// then conditional on the sizes of the strata: right where the design fixed them, too narrow where they are
    /// random.
    /// Source: Davison & Hinkley (1997), section 3.2.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] unless there is one stratum for each row; [`MetricError::SubjectInTwoStrata`] if
    /// subjects are drawn and one has samples in two strata.
    pub fn stratified<S: Ord>(
        subjects: &[SubjectId],
        resample: Resample,
        strata: &[S],
        n_replicates: usize,
        seed: u64,
    ) -> Result<Self, MetricError> {
        if strata.len() != subjects.len() {
            let what = "strata";
            return Err(MetricError::LengthMismatch { what, found: strata.len(), expected: subjects.len() });
        }
        let mut units: BTreeMap<&S, Vec<Vec<u32>>> = BTreeMap::new();
        match resample {
            Resample::Sample => {
                for (row, stratum) in strata.iter().enumerate() {
                    units.entry(stratum).or_default().push(vec![to_u32(row)]);
                }
            }
            Resample::Subject => {
                for (subject, rows) in rows_of_subjects(subjects) {
                    let stratum = &strata[rows[0] as usize];
                    if rows.iter().any(|&row| strata[row as usize] != *stratum) {
                        return Err(MetricError::SubjectInTwoStrata { subject: subject.clone() });
                    }
                    units.entry(stratum).or_default().push(rows);
                }
            }
        }
        let units: Vec<_> = units.into_values().collect();
        Ok(Self::from_units(subjects.len(), &units, n_replicates, seed))
    }

    /// `units`: rows of every unit, by stratum.
    fn from_units(n: usize, units: &[Vec<Vec<u32>>], n_replicates: usize, seed: u64) -> Self {
        let mut unit_of_row = vec![0; n];
        for (rows, unit) in units.iter().flatten().zip(0..) {
            for &row in rows {
                unit_of_row[row as usize] = unit;
            }
        }
        Self { unit_of_row, strata: units.iter().map(|stratum| to_u32(stratum.len())).collect(), n_replicates, seed }
    }

    /// Number of replicates.
    pub fn n_replicates(&self) -> usize {
        self.n_replicates
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.unit_of_row.len()
    }

    /// Number of units that are drawn.
    pub fn n_units(&self) -> usize {
        self.strata.iter().map(|&size| size as usize).sum()
    }

    /// Number of units in every stratum; one number without stratification.
    pub fn stratum_sizes(&self) -> &[u32] {
        &self.strata
    }

    /// The unit (subject or sample) of every row, `[n]`; the units of a stratum have consecutive numbers.
    pub(crate) fn unit_of_row(&self) -> &[u32] {
        &self.unit_of_row
    }

    /// The random numbers of `what` in one stratum.
    pub(super) fn stream(&self, what: &str, stratum: usize) -> ChaCha8Rng {
        seeds::stream(self.seed, what, &[stratum as u64])
    }

    /// Calls `draw` with every unit that `replicate` draws.
    fn draw(&self, replicate: usize, mut draw: impl FnMut(usize)) {
        self.draw_in_turn(replicate, |_, unit| draw(unit));
    }

    /// Calls `draw` with the place of every draw, counted through the strata, and the unit drawn.
    pub(super) fn draw_in_turn(&self, replicate: usize, mut draw: impl FnMut(usize, usize)) {
        let mut rng = seeds::stream(self.seed, "bootstrap", &[replicate as u64]);
        let mut first = 0;
        for &size in &self.strata {
            for place in 0..size as usize {
                // usize, because `random_range` gives the same numbers for it on every platform; fixed since the first
                // version.
                draw(first + place, first + rng.random_range(0..size as usize));
            }
            first += size as usize;
        }
    }

    /// How often every sample occurs in `replicate`, `[n]`. Replicate k is the same whatever their total number.
    pub fn weights(&self, replicate: usize) -> Vec<u32> {
        let mut counts = vec![0_u32; self.n_units()];
        self.draw(replicate, |unit| counts[unit] += 1);
        self.unit_of_row.iter().map(|&unit| counts[unit as usize]).collect()
    }

    /// The weights of `n_lanes` replicates from `first_replicate` on, side by side: `out[row * n_lanes + lane]`
    /// becomes `weights(first_replicate + lane)[row]`.
    ///
    /// For code that evaluates several replicates in one pass over the samples. A replicate beyond
    /// [`n_replicates`](Self::n_replicates) is valid too, so the last block may be filled up.
    ///
    /// Cost: O(units + n) per lane, without a pass over the samples for each lane.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] if `out` is not `n * n_lanes` long, [`MetricError::TooManyDraws`] if a sample
    /// occurs more than 65,535 times in a replicate (which takes a stratum with more units than that).
    pub fn weights_block(&self, first_replicate: usize, n_lanes: usize, out: &mut [u16]) -> Result<(), MetricError> {
        check_block(self.n(), n_lanes, out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let mut counts = vec![0_u16; self.n_units() * n_lanes]; // [units, lanes]
        for lane in 0..n_lanes {
            let replicate = first_replicate.wrapping_add(lane);
            let mut overflow = false;
            self.draw(replicate, |unit| {
                let count = &mut counts[unit * n_lanes + lane];
                overflow |= *count == u16::MAX;
                *count = count.wrapping_add(1);
            });
            if overflow {
                return Err(MetricError::TooManyDraws { replicate });
            }
        }
        for (lanes, &unit) in out.chunks_exact_mut(n_lanes).zip(&self.unit_of_row) {
            lanes.copy_from_slice(&counts[unit as usize * n_lanes..][..n_lanes]);
        }
        Ok(())
    }

    /// Applies `statistic` to the weights of every replicate, in parallel; results are in the order of replicates and
    /// do not depend on the number of threads.
    pub fn map<T: Send>(&self, statistic: impl Fn(&[u32]) -> T + Sync) -> Vec<T> {
        parallel::map(0..self.n_replicates, |replicate| statistic(&self.weights(replicate)))
    }
}

/// Checks the length of a block of weights.
pub(crate) fn check_block(n: usize, n_lanes: usize, found: usize) -> Result<(), MetricError> {
    if n.checked_mul(n_lanes) == Some(found) {
        return Ok(());
    }
    let (setting, expected) = ("length of a block of weights", "the number of samples times that of lanes");
    Err(MetricError::InvalidSetting { setting, value: found.to_string(), expected })
}

/// Rows of every subject, in the order of their names.
fn rows_of_subjects(subjects: &[SubjectId]) -> BTreeMap<&SubjectId, Vec<u32>> {
    let mut rows: BTreeMap<&SubjectId, Vec<u32>> = BTreeMap::new();
    for (row, subject) in subjects.iter().enumerate() {
        rows.entry(subject).or_default().push(to_u32(row));
    }
    rows
}

/// The percentile interval of `level` (for example 0.95) of `values`; `None` without values.
///
/// # Errors
/// [`MetricError::InvalidSetting`] if `level` is not in (0, 1), [`MetricError::NotFinite`] if a value is not a finite
/// number.
pub fn percentile_interval(values: &[f64], level: f64) -> Result<Option<(f64, f64)>, MetricError> {
    check_level(level)?;
    if values.is_empty() {
        return Ok(None);
    }
    values.iter().try_for_each(|&value| finite("bootstrap value", value).map(drop))?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(Some((quantile(&sorted, 0.5 - level / 2.0), quantile(&sorted, 0.5 + level / 2.0))))
}

/// Quantile `p` in [0, 1] of ascending, non-empty `sorted` by linear interpolation (the default of `numpy.quantile`).
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = p * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "place lies in [0, last]")]
    let below = (place.floor() as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    let share = place - below as f64;
    let step = high - low;
    // The ends of the range of f64 are further apart than its largest number.
    if step.is_finite() { low + step * share } else { low * (1.0 - share) + high * share }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn subjects(n: usize, per_subject: usize) -> Vec<SubjectId> {
        (0..n).map(|row| SubjectId::new(format!("{:05}", row / per_subject))).collect()
    }

    #[test]
    fn all_samples_of_a_subject_are_drawn_together_and_units_add_up() {
        let bootstrap = Bootstrap::new(&subjects(30, 3), Resample::Subject, 20, 1);
        for replicate in 0..20 {
            let weights = bootstrap.weights(replicate);
            assert!(weights.chunks(3).all(|unit| unit[0] == unit[1] && unit[1] == unit[2]));
            assert_eq!(weights.iter().sum::<u32>(), 30);
        }
        let by_sample = Bootstrap::new(&subjects(30, 3), Resample::Sample, 1, 1).weights(0);
        assert!(by_sample.chunks(3).any(|unit| unit[0] != unit[1]));
        assert_eq!(by_sample.iter().sum::<u32>(), 30);
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_replicates() {
        let bootstrap = Bootstrap::new(&subjects(40, 1), Resample::Subject, 64, 9);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap.map(<[u32]>::to_vec))
        };
        assert_eq!(run(1), run(3));
        assert_ne!(run(1)[0], Bootstrap::new(&subjects(40, 1), Resample::Subject, 64, 10).weights(0));
    }

    #[test]
    fn the_spread_of_a_mean_is_the_one_of_theory() {
        // Bootstrap variance of a mean = population variance / number of units; with 2 equal samples per subject the
        // units are the subjects.
        let values: Vec<f64> = (0..100).map(|row| f64::from(row / 2)).collect();
        let mean = values.iter().sum::<f64>() / 100.0;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 100.0;
        let bootstrap = Bootstrap::new(&subjects(100, 2), Resample::Subject, 4_000, 3);
        let means = bootstrap
            .map(|weights| values.iter().zip(weights).map(|(value, w)| value * f64::from(*w)).sum::<f64>() / 100.0);
        let centre = means.iter().sum::<f64>() / 4_000.0;
        let spread = means.iter().map(|m| (m - centre) * (m - centre)).sum::<f64>() / 4_000.0;
        assert_abs_diff_eq!(spread / (variance / 50.0), 1.0, epsilon = 0.07); // 3 standard errors of a variance
        assert_abs_diff_eq!(centre, mean, epsilon = 0.1);
    }

    #[test]
    fn quantiles_interpolate_like_numpy() {
        // numpy.quantile([1, 2, 4, 8], [0.025, 0.975]) = [1.075, 7.7]
        let (lower, upper) = percentile_interval(&[8.0, 1.0, 4.0, 2.0], 0.95).unwrap().unwrap();
        assert_abs_diff_eq!(lower, 1.075, epsilon = 1e-12);
        assert_abs_diff_eq!(upper, 7.7, epsilon = 1e-12);
        assert_eq!(percentile_interval(&[], 0.95), Ok(None));
        assert!(percentile_interval(&[1.0], 1.5).is_err());
        assert!(matches!(percentile_interval(&[1.0, f64::NAN], 0.5), Err(MetricError::NotFinite { .. })));
        let (lower, upper) = percentile_interval(&[f64::MIN, f64::MAX], 0.5).unwrap().unwrap();
        // A quarter and three quarters of the way.
        assert_abs_diff_eq!(lower / f64::MIN, 0.5, epsilon = 1e-15);
        assert_abs_diff_eq!(upper / f64::MAX, 0.5, epsilon = 1e-15);
    }

    #[test]
    fn the_replicates_of_a_seed_are_fixed_for_ever() {
        // Recorded from the first version of this crate: a change here would alter every published interval.
        let weights = Bootstrap::new(&subjects(8, 1), Resample::Subject, 1, 1).weights(0);
        assert_eq!(weights, [1, 1, 1, 2, 0, 3, 0, 0]);
    }

    #[test]
    fn a_block_holds_the_same_numbers_as_single_replicates() {
        let shuffled: Vec<SubjectId> = (0..60).map(|row| SubjectId::new(format!("{}", row * 7 % 23))).collect();
        let strata: Vec<bool> = (0..60).map(|row| row * 7 % 23 < 9).collect();
        let plain = Bootstrap::new(&shuffled, Resample::Subject, 20, 5);
        let by_sample = Bootstrap::new(&shuffled, Resample::Sample, 20, 5);
        let stratified = Bootstrap::stratified(&shuffled, Resample::Subject, &strata, 20, 5).unwrap();
        for bootstrap in [plain, by_sample, stratified] {
            let mut block = vec![9; 60 * 6];
            bootstrap.weights_block(3, 6, &mut block).unwrap();
            for lane in 0..6 {
                let found: Vec<u32> = (0..60).map(|row| u32::from(block[row * 6 + lane])).collect();
                assert_eq!(found, bootstrap.weights(3 + lane));
            }
            assert!(matches!(bootstrap.weights_block(0, 5, &mut block), Err(MetricError::InvalidSetting { .. })));
        }
    }

    #[test]
    fn a_stratum_keeps_its_number_of_units_and_a_subject_lies_in_one() {
        let event: Vec<bool> = (0..30).map(|row| row / 3 % 4 == 0).collect();
        let bootstrap = Bootstrap::stratified(&subjects(30, 3), Resample::Subject, &event, 50, 2).unwrap();
        assert_eq!(bootstrap.stratum_sizes(), [7, 3]);
        for replicate in 0..50 {
            let weights = bootstrap.weights(replicate);
            let with_event: u32 = weights.iter().zip(&event).filter(|(_, event)| **event).map(|(w, _)| w).sum();
            assert_eq!((with_event, weights.iter().sum::<u32>()), (9, 30));
        }
        let split: Vec<bool> = (0..30).map(|row| row == 4).collect();
        let found = Bootstrap::stratified(&subjects(30, 3), Resample::Subject, &split, 50, 2).unwrap_err();
        assert_eq!(found, MetricError::SubjectInTwoStrata { subject: SubjectId::new("00001") });
        assert!(Bootstrap::stratified(&subjects(30, 3), Resample::Sample, &split, 50, 2).is_ok());
        let short = Bootstrap::stratified(&subjects(30, 3), Resample::Sample, &split[1..], 50, 2);
        assert!(matches!(short, Err(MetricError::LengthMismatch { what: "strata", found: 29, expected: 30 })));
    }

    #[test]
    fn one_stratum_gives_the_replicates_without_strata() {
        let plain = Bootstrap::new(&subjects(30, 2), Resample::Subject, 5, 4);
        let one = Bootstrap::stratified(&subjects(30, 2), Resample::Subject, &[(); 30], 5, 4).unwrap();
        assert_eq!(plain.map(<[u32]>::to_vec), one.map(<[u32]>::to_vec));
    }
}
