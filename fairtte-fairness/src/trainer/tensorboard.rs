//! The log of a training as a `TensorBoard` event file, `tensorboard/events.out.tfevents.fairtte` in the run folder.
//!
//! A file of `TFRecords`: length (8 bytes, little endian), its masked CRC-32C, the data, their masked CRC-32C; the data are
//! `Event` messages of `TensorBoard`'s `event.proto`, of which these fields are written: `wall_time` (1, double), `step` (2,
//! int64: the epoch), `file_version` (3) in the first record, `summary` (5) with values of `tag` (1) and `simple_value` (2,
//! float). Mask: the checksum rotated by 15 bits plus 0xa282ead8 (`TensorFlow`, `record_writer.cc`). CRC-32C: Castagnoli's
//! polynomial, reflected 0x82f63b78 (RFC 3720, B.4).
//!
//! The file is a function of the epoch reports: it is rebuilt in memory each time and only the missing part is
//! appended, so that a `TensorBoard` that has it open can keep reading; a file that a kill left too short or too long
//! is corrected by the next call.
//!
//! Verified with tensorboard 2.21.0 (Python): its `RecordWriter` gives the bytes of the test below, and its
//! `EventAccumulator` read 30 scalars back from a run of four epochs, 20 values of which were compared with `steps.jsonl`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::{DataError, write_atomically};

use super::{EpochReport, Observer};
use crate::FairnessError;
use crate::monitor::Monitor;

/// Writes a `TensorBoard` event file after each epoch.
#[derive(Clone, Debug)]
pub struct TensorBoard {
    path: PathBuf,
}

impl TensorBoard {
    /// The file `tensorboard/events.out.tfevents.fairtte` of a run folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("tensorboard").join("events.out.tfevents.fairtte") }
    }
}

impl Observer for TensorBoard {
    fn epochs_saved(&mut self, epochs: &[EpochReport]) -> Result<(), FairnessError> {
        let path = &self.path;
        let wanted = events(epochs);
        let found = std::fs::read(path).unwrap_or_default();
        let failed = |source| DataError::Write { path: path.clone(), source };
        if !found.is_empty() && wanted.starts_with(&found) {
            let append = || std::fs::OpenOptions::new().append(true).open(path)?.write_all(&wanted[found.len()..]);
            return Ok(append().map_err(failed)?);
        }
        if found.starts_with(&wanted) {
            let cut = || std::fs::OpenOptions::new().write(true).open(path)?.set_len(wanted.len() as u64);
            return Ok(cut().map_err(failed)?);
        }
        Ok(write_atomically(path, |file| file.write_all(&wanted))?)
    }
}

/// The whole file.
fn events(epochs: &[EpochReport]) -> Vec<u8> {
    let began = epochs.first().map_or(0.0, |epoch| epoch.ended - epoch.seconds);
    let later = epochs.iter().map(|epoch| numbers(epoch.ended, epoch.epoch as u64, &scalars(epoch)));
    std::iter::once(version(began)).chain(later).flatten().collect()
}

/// The record that every event file begins with.
fn version(time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, time);
    bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// The record of named numbers at a step.
fn numbers(time: f64, step: u64, scalars: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, number) in scalars {
        let mut value = Vec::new();
        bytes(&mut value, 1, tag.as_bytes());
        float(&mut value, 2, *number);
        bytes(&mut summary, 1, &value);
    }
    let mut event = Vec::new();
    double(&mut event, 1, time);
    key(&mut event, 2, 0);
    varint(&mut event, step);
    bytes(&mut event, 5, &summary);
    record(&event)
}

/// The scalars of an epoch, by name.
fn scalars(epoch: &EpochReport) -> Vec<(String, f64)> {
    let of = |folder: &str, name: &str, value: f64| (format!("{folder}/{name}"), value);
    let mut scalars = vec![
        of("train", "loss", epoch.train_loss),
        of("train", "objective", epoch.objective),
        of("train", "gradient-norm", epoch.gradient_norm),
        of("train", "rate", epoch.rate),
        of("train", "absent-groups", epoch.absent_groups as f64),
        of("seconds", "epoch", epoch.seconds),
        of("seconds", "data", epoch.data_seconds),
        of("seconds", "forward", epoch.forward_seconds),
        of("seconds", "backward", epoch.backward_seconds),
        of("seconds", "update", epoch.update_seconds),
        of("seconds", "validation", epoch.validation_seconds),
    ];
    scalars.extend(epoch.terms.iter().map(|(name, value)| of("terms", name, *value)));
    let predicted = epoch.validation.predicted();
    for metric in Monitor::of_task(predicted) {
        let (name, validation) = (metric.name(), &epoch.validation);
        scalars.extend(validation.value(metric).map(|value| of("validation", name, value)));
        scalars.extend(validation.gap(metric).map(|gap| of("gap", name, gap)));
    }
    for group in &epoch.validation.groups {
        let defined = Monitor::of_task(predicted).filter_map(|metric| Some((metric.name(), group.value(metric)?)));
        scalars.extend(defined.map(|(name, value)| (format!("validation-{name}/{}", group.level), value)));
    }
    scalars
}

/// One `TFRecord`.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

fn masked(data: &[u8]) -> [u8; 4] {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn crc32c(data: &[u8]) -> u32 {
    let bit = |rest: u32, _| if rest & 1 == 1 { (rest >> 1) ^ 0x82f6_3b78 } else { rest >> 1 };
    !data.iter().fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

/// The key of a field in protocol buffers: its number, and how its value is written.
fn key(message: &mut Vec<u8>, field: u64, wire: u64) {
    varint(message, field << 3 | wire);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return message.push(low);
        }
        message.push(low | 0x80);
    }
}

fn double(message: &mut Vec<u8>, field: u64, value: f64) {
    key(message, field, 1);
    message.extend(value.to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "the field has 32 bits")]
fn float(message: &mut Vec<u8>, field: u64, value: f64) {
    key(message, field, 5);
    // Larger numbers would become infinite.
    message.extend((value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).to_le_bytes());
}

fn bytes(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(message, field, 2);
    varint(message, value.len() as u64);
    message.extend(value);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use crate::monitor::{GroupValidation, Validation, metrics_of};

    fn report(epoch: usize) -> EpochReport {
        let c_td = |value| metrics_of([(Monitor::CTd, Some(value))]);
        let group = |level: &str, value| GroupValidation {
            level: level.to_owned(),
            metrics: c_td(value),
            nll: 1.5,
            ..Default::default()
        };
        let groups = vec![group("F", 0.5), group("M", 0.75)];
        let validation = Validation { nll: 1.25, metrics: c_td(0.625), groups, ..Validation::default() };
        EpochReport {
            epoch,
            n_steps: 3,
            train_loss: 2.0,
            batches_without_loss: 0,
            objective: 2.5,
            gradient_norm: 0.25,
            rate: 1.0,
            validation,
            best: true,
            absent_groups: 0,
            terms: [("weight F".to_owned(), 0.5)].into(),
            watched: Vec::new(),
            ended: 1_700_000_000.5 + epoch as f64,
            seconds: 0.5,
            data_seconds: 0.0,
            forward_seconds: 0.25,
            backward_seconds: 0.125,
            update_seconds: 0.0,
            validation_seconds: 0.125,
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283); // the check value of CRC-32C
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    // tensorboard 2.21.0 (Python): RecordWriter.write of Event(wall_time=1700000000.5, file_version="brain.Event:2") and of
    // Event(wall_time=1700000001.25, step=300, summary=..) with train/loss 0.625 and validation/c-td 1.5.
    #[test]
    fn records_have_the_bytes_that_tensorboard_writes() {
        let golden = "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110\
                      39000000000000008b0737f10900005040fc54d94110ac022a2b0a110a0a747261696e2f6c6f7373150000203f\
                      0a160a0f76616c69646174696f6e2f632d7464150000c03feb185afa";
        let scalars = [("train/loss".to_owned(), 0.625), ("validation/c-td".to_owned(), 1.5)];
        let file = [version(1_700_000_000.5), numbers(1_700_000_001.25, 300, &scalars)].concat();
        let hex: Vec<String> = file.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex.concat(), golden);
    }

    #[test]
    fn an_epoch_is_shown_by_name_with_what_its_validation_has() {
        let mut report = report(1);
        report.validation.groups[0].metrics.extend(metrics_of([(Monitor::Ibs, Some(0.125))]));
        let expected = [
            ("train/loss", 2.0),
            ("train/objective", 2.5),
            ("train/gradient-norm", 0.25),
            ("train/rate", 1.0),
            ("train/absent-groups", 0.0),
            ("seconds/epoch", 0.5),
            ("seconds/data", 0.0),
            ("seconds/forward", 0.25),
            ("seconds/backward", 0.125),
            ("seconds/update", 0.0),
            ("seconds/validation", 0.125),
            ("terms/weight F", 0.5),
            ("validation/nll", 1.25),
            ("gap/nll", 0.0),
            ("validation/c-td", 0.625),
            ("gap/c-td", 0.25),
            ("validation/worst-group-c-td", 0.5),
            ("validation-nll/F", 1.5),
            ("validation-c-td/F", 0.5),
            ("validation-ibs/F", 0.125),
            ("validation-nll/M", 1.5),
            ("validation-c-td/M", 0.75),
        ];
        assert_eq!(scalars(&report), expected.map(|(name, value)| (name.to_owned(), value)));
        // The first record is of the beginning of the first epoch.
        assert!(events(&[report]).starts_with(&version(1_700_000_001.0)));
    }

    #[test]
    fn numbers_are_written_as_protocol_buffers_write_them() {
        let mut message = Vec::new();
        for value in [0, 1, 127, 128, 300, u64::MAX] {
            varint(&mut message, value);
        }
        let expected = [&[0, 1, 0x7f, 0x80, 1, 0xac, 2][..], &[0xff; 9], &[1]].concat();
        assert_eq!(message, expected);
        let mut large = Vec::new();
        float(&mut large, 2, 1e300);
        assert_eq!(large[1..], f32::MAX.to_le_bytes());
    }

    #[test]
    fn the_file_is_brought_to_what_the_reports_say_from_any_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensorboard/events.out.tfevents.fairtte");
        let reports: Vec<EpochReport> = (1..=4).map(report).collect();
        let wanted = |n: usize| events(&reports[..n]);
        let mut log = TensorBoard::in_folder(folder.path());
        for n in 1..=4 {
            log.epochs_saved(&reports[..n]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), wanted(n), "appended");
        }
        log.epochs_saved(&reports[..2]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), wanted(2), "records of epochs that are to be done again are cut off");
        std::fs::write(&path, &wanted(3)[..wanted(3).len() - 5]).unwrap();
        log.epochs_saved(&reports[..3]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), wanted(3), "half a record is completed");
        std::fs::write(&path, b"something else").unwrap();
        log.epochs_saved(&reports[..1]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), wanted(1));
    }
}
