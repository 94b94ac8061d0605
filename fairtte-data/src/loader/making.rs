//! How one batch is made: pixels or features, masks, identities.

use fairtte_images::augment::Draw;
use fairtte_images::{Scratch, StoredPixels, StoredValue, Transform, map_labels};
use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSliceMut as _;

use super::{Augmentation, HostBatch, Input, Loader, MaskInput, PARALLEL_VALUES, Stored, draws, stored};

impl Loader<'_> {
    /// `draws` holds for every row the number of its earlier draws in the epoch; `None` for prediction.
    pub(super) fn batch(&self, rows: &[usize], draws: Option<&[u64]>, seed: u64, epoch: u64) -> HostBatch {
        let n_values = self.n_channels() * self.size().iter().product::<usize>();
        let mut pixels = vec![0.0; rows.len() * n_values];
        let fill = |scratch: &mut Scratch, (at, values): (usize, &mut [f32])| {
            let row = rows[at];
            let giver = self.inputs.get(row).copied().unwrap_or(row);
            let (store, position, conversion) = match &self.input {
                Input::Images { store, positions, conversion } => (store, positions[giver], conversion),
                Input::Features(features) => {
                    values.copy_from_slice(features.row(giver));
                    self.transforms.iter().for_each(|transform| transform.apply(row, epoch, values, &[n_values]));
                    return;
                }
            };
            let change = self.drawn(row, draws.map(|draws| draws[at]), seed, epoch);
            let augmentation = change.as_ref().map(|(augmentation, draw)| (*augmentation, draw));
            let transform = |intensities: &mut [f32], shape: &[usize]| {
                self.transforms.iter().for_each(|transform| transform.apply(row, epoch, intensities, shape));
            };
            let is_concerned = self.transforms.iter().any(|transform| transform.concerns(row));
            let transform: Option<Transform<'_>> = if is_concerned { Some(&transform) } else { None };
            conversion.convert(store.pixels(position), transform, augmentation, scratch, values);
        };
        if pixels.len() < PARALLEL_VALUES {
            let mut scratch = Scratch::default();
            pixels.chunks_exact_mut(n_values).enumerate().for_each(|image| fill(&mut scratch, image));
        } else {
            pixels.par_chunks_exact_mut(n_values).enumerate().for_each_init(Scratch::default, fill);
        }
        let masks = self.masks.as_ref().map(|masks| self.masks_of(masks, rows, draws, seed, epoch));
        HostBatch { pixels, masks, ..self.identities(rows) }
    }

    /// As [`batch`](Self::batch), but the values as they are stored.
    pub(super) fn stored_batch(
        &self,
        rows: &[usize],
        draws: Option<&[u64]>,
        seed: u64,
        epoch: u64,
    ) -> Option<HostBatch> {
        let Input::Images { store, conversion, .. } = &self.input else { return None };
        let keeps_values = self.augmentation.as_ref().is_none_or(Augmentation::keeps_values);
        if !(keeps_values && self.transforms.is_empty() && !conversion.is_per_image()) {
            return None;
        }
        let change = |at: usize| self.drawn(rows[at], draws.map(|draws| draws[at]), seed, epoch);
        let (words, bits) = match store.size().len() {
            3 => (self.words::<u16>(rows, change)?, u16::BITS as usize),
            _ => (self.words::<u8>(rows, change)?, u8::BITS as usize),
        };
        let (n_channels, scale) = (store.n_stored_channels(), conversion.scale_of_stored().to_vec());
        let masks = self.masks.as_ref().map(|masks| self.masks_of(masks, rows, draws, seed, epoch));
        Some(HostBatch { stored: Some(Stored { words, bits, n_channels, scale }), masks, ..self.identities(rows) })
    }

    /// Stored values of some rows, cut and mirrored, `[rows, stored channels, ..]`, in words.
    fn words<'s, V: StoredValue>(
        &'s self,
        rows: &[usize],
        change: impl Fn(usize) -> Option<(&'s Augmentation, Draw)> + Sync,
    ) -> Option<Vec<i32>> {
        let Input::Images { store, positions, .. } = &self.input else { return None };
        let n_values = store.n_stored_channels() * self.size().iter().product::<usize>();
        let fill = |(at, target): (usize, &mut [V])| {
            let giver = self.inputs.get(rows[at]).copied().unwrap_or(rows[at]);
            let Some(source) = V::of(store.pixels(positions[giver])) else { return false };
            match change(at) {
                Some((augmentation, draw)) => V::cut(augmentation, &draw, source, target),
                None => target.copy_from_slice(source),
            }
            true
        };
        stored::words(rows.len() * n_values, |values| {
            if values.len() < PARALLEL_VALUES {
                values.chunks_exact_mut(n_values).enumerate().all(fill)
            } else {
                values.par_chunks_exact_mut(n_values).enumerate().all(fill)
            }
        })
    }

    /// The change of the image of a row, which `earlier` draws of it precede in the epoch; `None` for prediction.
    fn drawn(&self, row: usize, earlier: Option<u64>, seed: u64, epoch: u64) -> Option<(&Augmentation, Draw)> {
        let augmentation = self.augmentation.as_ref()?;
        let sample = &self.cohort.samples[row].sample_id;
        let draw = earlier.map(|earlier| draws::draw(augmentation, seed, epoch, sample, earlier));
        Some((augmentation, draw.unwrap_or_else(|| augmentation.centre())))
    }

    /// The batch of these rows without images, features and masks.
    fn identities(&self, rows: &[usize]) -> HostBatch {
        let samples = || rows.iter().map(|&row| &self.cohort.samples[row]);
        HostBatch {
            rows: rows.to_vec(),
            sample_ids: samples().map(|sample| sample.sample_id.clone()).collect(),
            pixels: Vec::new(),
            stored: None,
            shape: [rows.len(), self.n_channels()].iter().chain(self.size()).copied().collect(),
            time: samples().map(|sample| sample.time).collect(),
            event: samples().map(|sample| sample.event).collect(),
            competing: samples().map(|sample| sample.place_of_competing(&self.causes)).collect(),
            groups: rows.iter().map(|&row| self.groups[row]).collect(),
            masks: None,
        }
    }

    /// The classes of the pixels of a batch, `[batch, height, width]`.
    fn masks_of(&self, masks: &MaskInput<'_>, rows: &[usize], draws: Option<&[u64]>, seed: u64, epoch: u64) -> Vec<u8> {
        let n_pixels: usize = self.size().iter().product();
        let mut labels = vec![0; rows.len() * n_pixels];
        for (at, mask) in labels.chunks_exact_mut(n_pixels).enumerate() {
            let row = rows[at];
            let giver = self.inputs.get(row).copied().unwrap_or(row);
            let StoredPixels::Picture(stored) = masks.store.pixels(masks.positions[giver]) else {
                unreachable!("masks are stored as pictures")
            };
            match self.drawn(row, draws.map(|draws| draws[at]), seed, epoch) {
                Some((augmentation, draw)) => augmentation.apply_to_labels(&draw, stored, mask),
                None => mask.copy_from_slice(stored),
            }
            map_labels(mask, &masks.classes);
        }
        labels
    }
}
