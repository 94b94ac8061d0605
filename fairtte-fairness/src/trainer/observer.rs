//! Who watches a training: progress bars and logs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;

use super::EpochReport;
use crate::FairnessError;
use crate::strategies::StepReport;

/// Is called at the events of a training. Every method does nothing by default.
pub trait Observer {
    /// A training starts, at epoch `first` (counted from 0) of at most `epochs` epochs with `n_steps` batches each.
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize) {
        let _ = (first, epochs, n_steps);
    }

    /// The training resumes within its first epoch, of which `n_done` batches are done.
    fn resumed_after(&mut self, n_done: usize) {
        let _ = n_done;
    }

    /// A batch of epoch `epoch` (counted from 0) is done.
    fn step_done(&mut self, epoch: usize, report: &StepReport) {
        let _ = (epoch, report);
    }

    /// A batch of epoch `epoch` made no step: no sample in it has a loss term, or its gradients overflowed in f16.
    fn batch_skipped(&mut self, epoch: usize) {
        let _ = epoch;
    }

    /// The checkpoint of the last of `epochs` is written: for logs that cover the whole training. Also called at the start
    /// of a training that resumes after a complete epoch, because a kill may have come between checkpoint and log.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a log cannot be written, which ends the training.
    fn epochs_saved(&mut self, epochs: &[EpochReport]) -> Result<(), FairnessError> {
        let _ = epochs;
        Ok(())
    }

    /// An epoch is done, and its checkpoint and logs are written.
    fn epoch_done(&mut self, report: &EpochReport) {
        let _ = report;
    }
}

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Several observers, called in the order in which they were added.
#[derive(Default)]
pub(super) struct Observers<'a>(pub(super) Vec<&'a mut dyn Observer>);

impl Observer for Observers<'_> {
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize) {
        self.0.iter_mut().for_each(|observer| observer.started(first, epochs, n_steps));
    }

    fn resumed_after(&mut self, n_done: usize) {
        self.0.iter_mut().for_each(|observer| observer.resumed_after(n_done));
    }

    fn step_done(&mut self, epoch: usize, report: &StepReport) {
        self.0.iter_mut().for_each(|observer| observer.step_done(epoch, report));
    }

    fn batch_skipped(&mut self, epoch: usize) {
        self.0.iter_mut().for_each(|observer| observer.batch_skipped(epoch));
    }

    fn epochs_saved(&mut self, epochs: &[EpochReport]) -> Result<(), FairnessError> {
        self.0.iter_mut().try_for_each(|observer| observer.epochs_saved(epochs))
    }

    fn epoch_done(&mut self, report: &EpochReport) {
        self.0.iter_mut().for_each(|observer| observer.epoch_done(report));
    }
}

/// Writes `steps.jsonl`, one line per epoch, anew after each epoch.
#[derive(Clone, Debug)]
pub struct StepsFile {
    path: PathBuf,
}

impl StepsFile {
    /// The file `steps.jsonl` of a run folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("steps.jsonl") }
    }
}

impl Observer for StepsFile {
    fn epochs_saved(&mut self, epochs: &[EpochReport]) -> Result<(), FairnessError> {
        write_atomically(&self.path, |file| {
            for epoch in epochs {
                serde_json::to_writer(&mut *file, epoch)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })?;
        Ok(())
    }
}
