//! The batches of one epoch.

use std::ops::Range;

use super::{HostBatch, Loader};

/// The batches of one epoch, see [`Loader::batches`]. Skipping batches does not read them.
#[derive(Debug)]
pub struct Batches<'l> {
    pub(super) loader: &'l Loader<'l>,
    pub(super) order: Vec<usize>,
    /// How often each entry of `order` was drawn before; `None` without random augmentation.
    pub(super) draws: Option<Vec<u64>>,
    pub(super) seed: u64,
    pub(super) epoch: u64,
    pub(super) ranges: std::vec::IntoIter<Range<usize>>,
    pub(super) as_stored: bool,
}

impl Batches<'_> {
    /// The same batches with the values of images as they are stored, where nothing else is done to them than to cut and mirror
    /// them; the others are intensities as before.
    #[must_use]
    pub fn as_stored(self) -> Self {
        Self { as_stored: true, ..self }
    }

    /// The rows of the epoch in their order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The rows of every remaining batch, in order, without making the batches.
    pub fn rows(&self) -> impl Iterator<Item = &[usize]> {
        self.ranges.as_slice().iter().map(|range| &self.order[range.clone()])
    }
}

impl Iterator for Batches<'_> {
    type Item = HostBatch;

    fn next(&mut self) -> Option<HostBatch> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<HostBatch> {
        let range = self.ranges.nth(n)?;
        let draws = self.draws.as_ref().map(|draws| &draws[range.clone()]);
        let (rows, Self { loader, seed, epoch, .. }) = (&self.order[range], &*self);
        let stored = if self.as_stored { loader.stored_batch(rows, draws, *seed, *epoch) } else { None };
        Some(stored.unwrap_or_else(|| loader.batch(rows, draws, *seed, *epoch)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranges.size_hint()
    }
}

impl ExactSizeIterator for Batches<'_> {}
