//! Step 5, second half: a host batch becomes tensors on a device. Ids travel with the pixels.

use burn::tensor::Device;
use fairtte_data::HostBatch;
use fairtte_data::loader::Stored;
use fairtte_metrics::{GroupId, SampleId};
use fairtte_models::{ModelError, Pixels};
use fairtte_survival::Masks;

/// The samples of one step: pixels on a device, outcomes and groups on the host.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Rows of the cohort, `[batch]`.
    pub rows: Vec<usize>,
    /// Identity of every sample, `[batch]`.
    pub sample_ids: Vec<SampleId>,
    /// What the backbone reads.
    pub pixels: Pixels,
    /// Observed times in the unit of the cohort, `[batch]`.
    pub time: Vec<f64>,
    /// `true` = event observed, `[batch]`.
    pub event: Vec<bool>,
    /// Other causes that ended the observation, `[batch]`: 0 = none, 2, 3, ..; all 0 where there is one kind of event.
    pub competing: Vec<usize>,
    /// Group of the attribute that the strategy works on, `[batch]`; `None` where it is missing.
    pub groups: Vec<Option<GroupId>>,
    /// The class of every pixel, if the loader has masks.
    pub masks: Option<Masks>,
}

impl Batch {
    /// Moves a host batch to `device`.
    ///
    /// # Errors
    /// As [`Pixels::from_host`].
    pub fn from_host(host: HostBatch, device: &Device) -> Result<Self, ModelError> {
        let HostBatch { rows, sample_ids, pixels, stored, shape, time, event, competing, groups, masks } = host;
        let n_pixels = shape.iter().skip(2).product();
        let masks = masks.map(|labels| Masks { labels, n_pixels });
        let pixels = match stored {
            None => Pixels::from_host(pixels, shape, device)?,
            Some(Stored { words, bits, n_channels, scale }) => {
                Pixels::from_stored(words, bits, shape, n_channels, &scale, device)?
            }
        };
        Ok(Self { rows, sample_ids, pixels, time, event, competing, groups, masks })
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.time.len()
    }
}
