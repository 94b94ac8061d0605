//! Distribution shift between training and testing: the training samples of one group are degraded, all others stay
//! unchanged.
//!
//! Source: FairTTE, F.5 and H.6. Three changes, alone or together, all in the training part and in one group only:
//! X: the images are blurred by a Gaussian; Y: uniform noise is added to the observed time, of events and of censored
//! samples alike; Delta: 90 % of the events become censored, at the time they had.
//!
//! Two more are the biases of Sonabend et al. (2022), <https://doi.org/10.48550/arXiv.2206.03256>, appendix A. Permuted: the
//! inputs (film or features) of some samples are exchanged among them, as if the films of patients had been mixed up. Identity,
//! outcome and groups stay, the inputs are those of another sample of the group. Undersampled: some samples leave the training part.
//!
//! Assumptions where the paper is silent:
//! - The group is named by the user, because the disadvantaged group cannot be computed.
//! - Times stay positive: if the range of the noise would reach below 0, the noise is drawn uniformly from the part
//!   of the range that keeps the time above 0. The number of such samples is in the record.
//! - The flip changes exactly `round(share x events)` samples: those whose identities come first in the order of a
//!   keyed hash. Adding a sample therefore moves at most one other in or out, and changes no other draw.
//! - The noise of a sample depends only on the seed, its identity and the range (with `fraction`, also the largest
//!   training time).
//!
//! Samples of the validation and test parts, and samples in no group of the attribute, are unchanged to the last bit.

mod config;
mod group_blur;
mod permute;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use fairtte_metrics::seeds::stream;
use fairtte_metrics::{GroupId, Groups, SampleId};
use rand::Rng as _;

pub use config::{ShiftConfig, ShiftGroup, TimeNoise};
pub use fairtte_images::GaussianBlur;
pub use group_blur::GroupBlur;
pub use permute::{ShiftedRows, shifted_rows};
pub use record::{ChangedSample, ShiftRecord};

use crate::cohort::attributes::same_ignoring_case;
use crate::cohort::{Cohort, Sample};
use crate::nearest::nearest;
use crate::{DataError, SettingsOf};

/// Changes the samples of `cohort` at `train_rows` that are in the group that `config` names.
///
/// `groups` holds the groups of every sample of the cohort, one entry per attribute
/// ([`FittedAttributes::all`](crate::FittedAttributes::all)). The order of `train_rows` does not matter. The images are
/// not changed here: their blur is returned by [`image_blur`], whose inputs a sample has and which samples leave the training
/// part by [`shifted_rows`].
///
/// Cost: n log n in the events of the group.
///
/// # Errors
/// [`DataError::InvalidSetting`] for settings out of range, [`DataError::InvalidAttribute`] for an attribute or level
/// that does not exist or has no training sample, [`DataError::ShapeMismatch`] if the groups are not one per sample.
///
/// # Panics
/// If a row is not below the number of samples.
pub fn apply_shift(
    cohort: &Cohort,
    train_rows: &[usize],
    groups: &[Groups],
    config: &ShiftConfig,
    seed: u64,
) -> Result<(Cohort, ShiftRecord), DataError> {
    let target = Target::find(cohort, train_rows, groups, config)?;
    let mut shifted = cohort.clone();
    let mut record = ShiftRecord {
        settings: config.clone(),
        seed,
        group: target.name.clone(),
        n_train: train_rows.iter().collect::<HashSet<_>>().len(),
        n_group: target.rows.len(),
        n_group_events: target.rows.iter().filter(|&&row| cohort.samples[row].event).count(),
        noise_range: None,
        n_blurred: if config.blur.is_some() { target.rows.len() } else { 0 },
        n_times_changed: 0,
        n_ranges_cut: 0,
        n_flipped: 0,
        n_permuted: 0,
        n_left_out: 0,
        changed: Vec::new(),
    };
    if let Some(noise) = config.time_noise {
        let largest = train_rows.iter().map(|&row| cohort.samples[row].time).fold(0.0, f64::max);
        let range = noise.scaled(largest);
        if !(range[0].is_finite() && (largest + range[1]).is_finite()) {
            let (value, expected) = (format!("{:?}", noise.bounds()), "noise that leaves every time finite");
            return Err(DataError::setting(SettingsOf::Shift, "time-noise", value, expected));
        }
        let key = key(seed, "shift-noise");
        for &row in &target.rows {
            let (time, is_cut) = noisy_time(&cohort.samples[row], range, &key);
            shifted.samples[row].time = time;
            record.n_ranges_cut += usize::from(is_cut);
        }
        record.noise_range = Some(range);
    }
    if let Some(share) = config.censoring_flip {
        for row in events_to_flip(cohort, &target.rows, share, &key(seed, "shift-censoring")) {
            shifted.samples[row].event = false;
            record.n_flipped += 1;
        }
    }
    let rows = permute::of_target(cohort, &target.rows, config, seed);
    (record.n_permuted, record.n_left_out) = (rows.n_permuted(), rows.left_out.len());
    for &row in &target.rows {
        let (before, after) = (&cohort.samples[row], &shifted.samples[row]);
        let inputs_of = rows.giver(row).map(|giver| cohort.samples[giver].sample_id.clone());
        let is_left_out = rows.left_out.contains(&row);
        record.changed.extend(changed(before, after, config.blur.is_some(), inputs_of, is_left_out));
    }
    record.n_times_changed =
        record.changed.iter().filter(|sample| sample.time.to_bits() != sample.time_before.to_bits()).count();
    Ok((shifted, record))
}

/// The blur of the images according to `config`, for the loader; `None` without blur.
///
/// # Errors
/// As [`apply_shift`].
///
/// # Panics
/// If a row is not below the number of samples.
pub fn image_blur(
    cohort: &Cohort,
    train_rows: &[usize],
    groups: &[Groups],
    config: &ShiftConfig,
) -> Result<Option<GroupBlur>, DataError> {
    let target = Target::find(cohort, train_rows, groups, config)?;
    let Some(sigma) = config.blur else { return Ok(None) };
    let blur = GaussianBlur::new(sigma)?;
    Ok(Some(GroupBlur::new(blur, target.groups.membership(), target.group, train_rows)))
}

/// The group that is changed and its training samples.
struct Target<'a> {
    groups: &'a Groups,
    group: GroupId,
    name: String,
    /// Ascending, each once.
    rows: Vec<usize>,
}

impl<'a> Target<'a> {
    fn find(
        cohort: &Cohort,
        train_rows: &[usize],
        groups: &'a [Groups],
        config: &ShiftConfig,
    ) -> Result<Self, DataError> {
        config.check()?;
        let invalid = |problem: String| DataError::InvalidAttribute { attribute: config.attribute.clone(), problem };
        let groups = groups.iter().find(|groups| groups.attribute() == config.attribute).ok_or_else(|| {
            let names: Vec<&str> = groups.iter().map(Groups::attribute).collect();
            invalid(format!("the attribute of the shift is none of the attributes {names:?}"))
        })?;
        if groups.n() != cohort.n() {
            let (found, expected) = (groups.n(), cohort.n());
            return Err(DataError::ShapeMismatch { what: "list of groups", found, expected });
        }
        let levels = groups.levels();
        let index = match &config.group {
            ShiftGroup::Index(index) => Some(*index).filter(|index| *index < levels.len()),
            ShiftGroup::Level(name) => {
                let exact = levels.iter().position(|level| level == name);
                exact.or_else(|| levels.iter().position(|level| same_ignoring_case(level, name)))
            }
        };
        let index = index.ok_or_else(|| {
            let hint = match &config.group {
                ShiftGroup::Level(name) => nearest(name, levels.iter().map(String::as_str)),
                ShiftGroup::Index(_) => None,
            };
            let hint = hint.map(|name| format!(", nearest is \"{name}\"")).unwrap_or_default();
            invalid(format!("the group of the shift is {}, expected one of the levels {levels:?}{hint}", config.group))
        })?;
        let group = GroupId(u32::try_from(index).expect("an attribute has fewer than 2^32 levels"));
        let mut rows: Vec<usize> =
            train_rows.iter().copied().filter(|&row| groups.membership()[row] == Some(group)).collect();
        rows.sort_unstable();
        rows.dedup();
        if rows.is_empty() {
            return Err(invalid(format!("no training sample is in the group \"{}\" of the shift", levels[index])));
        }
        Ok(Self { groups, group, name: levels[index].clone(), rows })
    }
}

fn key(seed: u64, name: &str) -> [u8; blake3::KEY_LEN] {
    let mut key = [0_u8; blake3::KEY_LEN];
    stream(seed, name, &[]).fill_bytes(&mut key);
    key
}

fn hash(key: &[u8; blake3::KEY_LEN], sample: &SampleId) -> [u8; 32] {
    *blake3::keyed_hash(key, sample.as_str().as_bytes()).as_bytes()
}

/// The time of `sample` with noise from the part of the range that keeps it above 0, and whether the range was cut.
fn noisy_time(sample: &Sample, [low, high]: [f64; 2], key: &[u8; blake3::KEY_LEN]) -> (f64, bool) {
    let (lowest, highest) = (sample.time + low, sample.time + high);
    // The draw leaves out the lower end, so a lower end of 0 still gives a time above 0.
    let from = lowest.max(0.0);
    if highest <= from {
        // Only a time of 0 with a range that ends at 0 cannot be moved.
        return (sample.time, false);
    }
    let hash = hash(key, &sample.sample_id);
    let bytes = *hash.first_chunk().expect("a hash has 32 bytes");
    // The upper 53 bits, one added: uniform on (0, 1] in steps of 2^-53.
    let draw = ((u64::from_le_bytes(bytes) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    ((highest - from).mul_add(draw, from), lowest < 0.0)
}

/// The first `round(share x events)` events of `rows` in the order of their hashes.
fn events_to_flip(cohort: &Cohort, rows: &[usize], share: f64, key: &[u8; blake3::KEY_LEN]) -> Vec<usize> {
    let events: Vec<usize> = rows.iter().copied().filter(|&row| cohort.samples[row].event).collect();
    first_by_hash(cohort, &events, share, key)
}

/// The first `round(share x n)` of `rows` in the order of their hashes.
fn first_by_hash(cohort: &Cohort, rows: &[usize], share: f64, key: &[u8; blake3::KEY_LEN]) -> Vec<usize> {
    let mut ordered: Vec<_> = rows.iter().map(|&row| (hash(key, &cohort.samples[row].sample_id), row)).collect();
    ordered.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of rows")]
    let n = (share * ordered.len() as f64).round() as usize;
    ordered.into_iter().take(n).map(|(_, row)| row).collect()
}

/// The differences between `before` and `after`; `None` if there are none.
fn changed(
    before: &Sample,
    after: &Sample,
    blurred: bool,
    inputs_of: Option<SampleId>,
    left_out: bool,
) -> Option<ChangedSample> {
    let is_other = blurred || left_out || inputs_of.is_some();
    let sample = ChangedSample {
        sample_id: after.sample_id.clone(),
        subject_id: after.subject_id.clone(),
        blurred,
        time_before: before.time,
        time: after.time,
        event_before: before.event,
        event: after.event,
        inputs_of,
        left_out,
    };
    let same = before.time.to_bits() == after.time.to_bits() && before.event == after.event;
    (is_other || !same).then_some(sample)
}
