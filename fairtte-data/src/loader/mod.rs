//! Batches of pixels, or of features of a table, with the identities, outcomes and groups of their samples.
//!
//! The order of an epoch depends only on seed and epoch (the `order` stream), and the augmentation of a sample only on
//! seed, epoch, sample and the number of its earlier draws in the epoch (the `augmentation` stream). So a run that is
//! interrupted and resumed at any epoch or batch sees the same batches, whatever the number of threads. A last batch of
//! one sample is merged with the previous batch, because batch normalisation needs two.

mod ahead;
mod batches;
pub(crate) mod intensity;

pub use ahead::Ahead;
pub use batches::Batches;
pub use fairtte_images::augment::{Augmentation, AugmentationConfig, BlurConfig, CutoutConfig, ElasticConfig, Flip};
pub use intensity::{Intensity, IntensityConfig};

mod draws;
mod making;
mod order;
mod stored;

pub use order::draw_rows;
pub use stored::Stored;

use std::fmt;

use fairtte_images::Conversion;
use fairtte_metrics::{GroupId, SampleId};

use self::intensity::store_position;
use self::order::{earlier_draws, epoch_runs, runs_ranges};
use crate::cohort::Cohort;
use crate::features::FeatureMatrix;
use crate::image::ImageStore;
use crate::{DataError, SettingsOf};

/// The order in which an epoch visits the rows of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    /// In the given order and without random augmentation; for prediction.
    Sequential,
    /// Every row once, in random order.
    Shuffled,
    /// As many draws as there are rows, with replacement, row `i` with probability proportional to weight `i`
    /// (finite, >= 0, not all 0; one per row).
    Weighted(Vec<f64>),
    /// Every row with a group once: the groups one after the other in random order, their rows in random order; a batch
    /// never mixes two groups. One entry per row; rows with `None` are left out.
    WithinGroups(Vec<Option<GroupId>>),
    /// Oversampling of every cell (one entry per row) to the size of the largest: full copies of all its rows and, for
    /// the remainder, rows drawn without replacement, all in random order. A row without a cell occurs once. This makes
    /// an epoch longer.
    Oversampled(Vec<Option<usize>>),
}

impl Sampling {
    /// `rows` in the order in which an epoch visits them; it depends only on the arguments. Cost O(its length).
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for weights out of range, [`DataError::ShapeMismatch`] if weights, groups or
    /// cells are not one per row.
    pub fn order(&self, rows: &[usize], seed: u64, epoch: u64) -> Result<Vec<usize>, DataError> {
        Ok(epoch_runs(rows, self, seed, epoch)?.concat())
    }
}

/// A transformation of the intensities of single images, for example of those of one group.
///
/// It must depend only on its own settings and the arguments: batches are made on several threads, and a resumed run
/// must see the same batches.
pub trait PixelTransform: fmt::Debug + Send + Sync {
    /// Changes the image of `row` of the cohort in `epoch`, before augmentation and normalisation.
    ///
    /// `intensities` are in \[0, 1\], in the order of `shape`: `[channels, height, width]`, or
    /// `[1, depth, height, width]` for a volume, which is repeated for a model that wants more channels. Features of a
    /// table are as fitted, and `shape` is `[n_features]`.
    fn apply(&self, row: usize, epoch: u64, intensities: &mut [f32], shape: &[usize]);

    /// Whether it may change the image of `row`. An image without any change is scaled as if there were no
    /// transformation, so that the result is bit-identical.
    fn concerns(&self, row: usize) -> bool {
        let _ = row;
        true
    }
}

/// One batch in host memory; entry `i` of every field belongs to the same sample.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Rows of the cohort.
    pub rows: Vec<usize>,
    /// Identities.
    pub sample_ids: Vec<SampleId>,
    /// Intensities after the transformation, or features, in the order of [`shape`](Self::shape); empty if they are
    /// [`stored`](Self::stored) values.
    pub pixels: Vec<f32>,
    /// Stored values, if they were [asked for](Batches::as_stored) and nothing else is done to the images than to cut and mirror
    /// them.
    pub stored: Option<Stored>,
    /// `[batch, channels, height, width]`, `[batch, channels, depth, height, width]` or `[batch, n_features]`.
    pub shape: Vec<usize>,
    /// Time to event or censoring, in the time unit of the cohort.
    pub time: Vec<f64>,
    /// `true` = event observed.
    pub event: Vec<bool>,
    /// Other causes that ended the observation, as in [`Cohort::competing`]; all 0 where there is one kind of event.
    pub competing: Vec<usize>,
    /// Group of each sample; `None` where it belongs to none.
    pub groups: Vec<Option<GroupId>>,
    /// The class of every pixel, `[batch, height, width]`, changed like the pixels; `None` of a loader without masks.
    pub masks: Option<Vec<u8>>,
}

/// Makes batches of a cohort.
#[derive(Debug)]
pub struct Loader<'a> {
    input: Input<'a>,
    cohort: &'a Cohort,
    groups: Vec<Option<GroupId>>,
    /// As [`Cohort::causes`].
    causes: Vec<u32>,
    /// The row whose inputs every row has; empty = its own.
    inputs: Vec<usize>,
    transforms: Vec<Box<dyn PixelTransform + 'a>>,
    augmentation: Option<Augmentation>,
    masks: Option<MaskInput<'a>>,
}

/// The source of the masks of a batch.
#[derive(Debug)]
struct MaskInput<'a> {
    store: &'a ImageStore,
    /// Position in the store of every row of the cohort.
    positions: Vec<usize>,
    /// The class of every stored value.
    classes: [u8; 256],
}

/// The source of the values of a batch.
#[derive(Debug)]
enum Input<'a> {
    Images {
        store: &'a ImageStore,
        /// Position in the store of every row of the cohort.
        positions: Vec<usize>,
        conversion: Conversion,
    },
    /// One row per row of the cohort.
    Features(&'a FeatureMatrix),
}

/// Below this many values a batch is made by one thread: handing out the work would take longer.
const PARALLEL_VALUES: usize = 1 << 16;

impl<'a> Loader<'a> {
    /// A loader over the samples of `cohort`, with one group per row of the cohort.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if `groups` or `intensity` do not fit, [`DataError::ImageNotStored`] for a sample
    /// without pixels.
    pub fn new(
        store: &'a ImageStore,
        cohort: &'a Cohort,
        groups: Vec<Option<GroupId>>,
        intensity: &Intensity,
    ) -> Result<Self, DataError> {
        for (what, found, expected) in [
            ("list of groups", groups.len(), cohort.n()),
            ("list of channel means", intensity.mean.len(), store.n_channels()),
            ("list of channel deviations", intensity.standard_deviation.len(), store.n_channels()),
        ] {
            if found != expected {
                return Err(DataError::ShapeMismatch { what, found, expected });
            }
        }
        let positions = (0..cohort.n()).map(|row| store_position(store, cohort, row));
        let positions = positions.collect::<Result<_, _>>()?;
        let Intensity { mean, standard_deviation, per_image } = intensity;
        let conversion = Conversion::new(store.stored_shape(), mean, standard_deviation, *per_image);
        let input = Input::Images { store, positions, conversion };
        Ok(Self::over(input, cohort, groups))
    }

    /// A loader over the features of the samples of `cohort`, one row of `features` and one group per row of the
    /// cohort.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if `features` or `groups` are not one per sample.
    pub fn of_features(
        features: &'a FeatureMatrix,
        cohort: &'a Cohort,
        groups: Vec<Option<GroupId>>,
    ) -> Result<Self, DataError> {
        let expected = cohort.n();
        for (what, found) in [("matrix of features", features.n()), ("list of groups", groups.len())] {
            if found != expected {
                return Err(DataError::ShapeMismatch { what, found, expected });
            }
        }
        let input = Input::Features(features);
        Ok(Self::over(input, cohort, groups))
    }

    fn over(input: Input<'a>, cohort: &'a Cohort, groups: Vec<Option<GroupId>>) -> Self {
        let (inputs, transforms, causes) = (Vec::new(), Vec::new(), cohort.causes());
        Self { input, cohort, groups, causes, inputs, transforms, augmentation: None, masks: None }
    }

    /// Gives every row the pixels or features of another: row `i` those of row `inputs[i]`. Identities, outcomes and groups stay, and
    /// transformations and augmentation remain those of the row.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] unless there is one row of the cohort per row.
    pub fn with_inputs_of(mut self, inputs: Vec<usize>) -> Result<Self, DataError> {
        let expected = self.cohort.n();
        let found = inputs.iter().filter(|row| **row < expected).count();
        if found != expected || inputs.len() != expected {
            return Err(DataError::ShapeMismatch { what: "list of rows whose inputs are used", found, expected });
        }
        self.inputs = inputs;
        Ok(self)
    }

    /// Adds a transformation of every image (or row of features) of every batch, applied after those added before.
    #[must_use]
    pub fn with_transform(mut self, transform: Box<dyn PixelTransform + 'a>) -> Self {
        self.transforms.push(transform);
        self
    }

    /// Augments the images of epochs in random order; other images are only cropped to the centre, if it crops.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if it was made for images of another size, or the inputs are not images.
    pub fn with_augmentation(mut self, augmentation: Augmentation) -> Result<Self, DataError> {
        let (made_for, stored) = (augmentation.stored_size(), self.input.image_size());
        if made_for.len() != stored.len() {
            let (found, expected) = (made_for.len(), stored.len());
            return Err(DataError::ShapeMismatch { what: "image size of the augmentation", found, expected });
        }
        if let Some((&found, &expected)) = made_for.iter().zip(stored).find(|(found, expected)| found != expected) {
            return Err(DataError::ShapeMismatch { what: "side of the augmentation's images", found, expected });
        }
        self.augmentation = Some(augmentation).filter(|augmentation| !augmentation.is_identity());
        Ok(self)
    }

    /// Adds the masks of the images to every batch, whose stored values are the `classes` given. Augmentation moves them with their
    /// images, by the nearest pixel; changes of intensities, and holes, do not touch them.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] unless masks and images are pictures of one size, [`DataError::ImageNotStored`] for a sample without a
    /// mask.
    pub fn with_masks(mut self, store: &'a ImageStore, classes: [u8; 256]) -> Result<Self, DataError> {
        let (stored, expected) = (store.size(), self.input.image_size());
        if stored != expected || stored.len() != 2 || store.n_stored_channels() != 1 {
            let (found, expected) = (stored.iter().product(), expected.iter().product());
            return Err(DataError::ShapeMismatch { what: "mask", found, expected });
        }
        let positions = (0..self.cohort.n()).map(|row| store_position(store, self.cohort, row));
        let positions = positions.collect::<Result<_, _>>()?;
        self.masks = Some(MaskInput { store, positions, classes });
        Ok(self)
    }

    /// Whether batches have masks.
    pub fn has_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// `[height, width]` or `[depth, height, width]` of the images in a batch, as stored or as cropped; `[]` for
    /// features.
    pub fn size(&self) -> &[usize] {
        self.augmentation.as_ref().map_or(self.input.image_size(), Augmentation::size)
    }

    /// Values of the input of a sample: pixels times channels, or features.
    pub fn n_values(&self) -> usize {
        self.n_channels() * self.size().iter().product::<usize>()
    }

    /// The samples.
    pub fn cohort(&self) -> &'a Cohort {
        self.cohort
    }

    /// Group of every row of the cohort.
    pub fn groups(&self) -> &[Option<GroupId>] {
        &self.groups
    }

    /// Channels of an image, or number of features.
    fn n_channels(&self) -> usize {
        match &self.input {
            Input::Images { store, .. } => store.n_channels(),
            Input::Features(features) => features.n_features(),
        }
    }

    /// The batches of one epoch over `rows` of the cohort, each of `batch_size` samples except for the last (of each
    /// group, with [`Sampling::WithinGroups`]), which has between 1 and `batch_size + 1`: a single last sample is
    /// merged with the previous batch.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for a batch size of 0 or weights out of range, [`DataError::ShapeMismatch`] if the
    /// weights, groups or cells are not one per row.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn batches(
        &self,
        rows: &[usize],
        batch_size: usize,
        sampling: &Sampling,
        seed: u64,
        epoch: u64,
    ) -> Result<Batches<'_>, DataError> {
        if batch_size == 0 {
            return Err(DataError::setting(SettingsOf::Batches, "batch-size", batch_size, "a whole number >= 1"));
        }
        let runs = epoch_runs(rows, sampling, seed, epoch)?;
        let ranges = runs_ranges(&runs, batch_size);
        let order = runs.concat();
        let draws = match (sampling, &self.augmentation) {
            (Sampling::Sequential, _) | (_, None) => None,
            _ => Some(earlier_draws(&order)),
        };
        Ok(Batches { loader: self, order, draws, seed, epoch, ranges: ranges.into_iter(), as_stored: false })
    }
}

impl Input<'_> {
    /// Size of the stored images; empty for features.
    fn image_size(&self) -> &[usize] {
        match self {
            Self::Images { store, .. } => store.size(),
            Self::Features(_) => &[],
        }
    }
}
