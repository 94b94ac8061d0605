//! Reading the masks of a table and comparing them, pair by pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_data::DataError;
use fairtte_data::image::{LabelMap, Limits, read_label_map};
use fairtte_data::predictions::MaskTable;
use fairtte_metrics::MetricError;
use fairtte_metrics::masks::{
    LabelPair, Labels, MaskClass, MaskGrid, PairScore, score_pair, vertical_cup_to_disc_error,
};
use rayon::prelude::*;

use super::settings::Settings;
use crate::CliError;
use crate::progress::Files;

/// A mask with more values is a picture, unless classes are named.
const MOST_VALUES: usize = 32;
/// The value of pixels of no class, where classes are not named.
pub(super) const BACKGROUND: i32 = 0;

/// The numbers of all samples.
pub(super) struct Scored {
    pub(super) classes: Vec<MaskClass>,
    /// By class and sample.
    pub(super) scores: Vec<Vec<PairScore>>,
    pub(super) cup_to_disc: Option<Vec<Result<f64, MetricError>>>,
    /// The unit of distances in words.
    pub(super) unit: String,
    /// Of every value, in how many true and in how many predicted masks it occurs.
    pub(super) values: BTreeMap<i32, [usize; 2]>,
}

/// The numbers of one sample.
struct OfSample {
    /// By the class of the settings, or by the values of [`MaskClass`] where there are none.
    scores: Vec<(MaskClass, PairScore)>,
    cup_to_disc: Option<Result<f64, MetricError>>,
    values: [BTreeSet<i32>; 2],
    is_volume: bool,
}

impl Scored {
    /// Reads and compares the masks of all samples, in parallel; memory: as many pairs as there are threads.
    ///
    /// # Errors
    /// [`DataError::Mask`] naming the first sample in the table whose masks cannot be read or compared; [`CliError::Config`] for a
    /// class that no mask has, unless the settings allow it, and for pictures and volumes in one table without `--spacing`.
    pub(super) fn new(table: &MaskTable, settings: &Settings) -> Result<Self, CliError> {
        let n = table.truth.len();
        let (done, progress) = (AtomicUsize::new(0), Files::new("masks"));
        let of_row = |row: usize| {
            let found = OfSample::read(table, row, settings);
            progress.update(done.fetch_add(1, Ordering::Relaxed) + 1, n);
            found
        };
        let found: Vec<Result<OfSample, CliError>> = (0..n).into_par_iter().map(of_row).collect();
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let values = count_values(&found);
        let classes = classes(settings, &values)?;
        let unit = unit(&found, settings)?;
        let of_class = |class: &MaskClass| {
            let score = |of: &OfSample| {
                // A class without pixels in both masks was not scored where classes are not named.
                of.scores.iter().find(|(scored, _)| scored == class).map(|(_, score)| *score).unwrap_or_default()
            };
            found.iter().map(score).collect()
        };
        let scores: Vec<Vec<PairScore>> = classes.iter().map(of_class).collect();
        if settings.needs_pixels {
            require_pixels(&classes, &scores)?;
        }
        Ok(Self { scores, cup_to_disc: found.iter().map(|of| of.cup_to_disc.clone()).collect(), classes, unit, values })
    }
}

impl OfSample {
    fn read(table: &MaskTable, row: usize, settings: &Settings) -> Result<Self, CliError> {
        let (true_path, predicted_path) = (&table.truth[row], &table.predicted[row]);
        let refused = |which: &'static str, path: &Path, detail: String| {
            let sample = table.cohort.samples[row].sample_id.as_str().to_owned();
            DataError::Mask { which, sample, detail, path: path.to_owned() }
        };
        let read = |which: &'static str, path: &Path| {
            read_label_map(path, &Limits::default()).map_err(|error| refused(which, path, error.detail))
        };
        let (truth, predicted) = (read("true", true_path)?, read("predicted", predicted_path)?);
        let wrong = |detail: String| refused("predicted", predicted_path, detail);
        let spacing = spacing_of(&truth, &predicted, settings).map_err(wrong)?;
        let grid = MaskGrid::new(&truth.extents, &spacing)?;
        let pair = LabelPair::new(grid, Labels { truth: &truth.labels, predicted: &predicted.labels })?;
        let values = pair.values(MOST_VALUES);
        let is_named = !settings.classes.is_empty();
        for (which, path, values) in [("true", true_path, &values[0]), ("predicted", predicted_path, &values[1])] {
            if !is_named && values.len() > MOST_VALUES {
                let detail = format!(
                    "it has more than {MOST_VALUES} values, as a picture has, expected one value per class, or --classes NAME=VALUE"
                );
                return Err(refused(which, path, detail).into());
            }
        }
        let score = |class: MaskClass| {
            let score = score_pair(&pair, &class, &settings.masks);
            (class, score)
        };
        let scores = if is_named {
            settings.classes.iter().cloned().map(score).collect()
        } else {
            let all = values[0].union(&values[1]).filter(|value| **value != BACKGROUND);
            all.map(|value| score(class_of_value(*value))).collect()
        };
        let is_volume = truth.volume.is_some();
        let cup_to_disc = match &settings.cup_and_disc {
            Some(_) if is_volume => {
                let detail =
                    "a volume has no vertical axis, expected PNG or TIFF masks for --cup and --disc".to_owned();
                return Err(refused("true", true_path, detail).into());
            }
            Some([cup, disc]) => Some(vertical_cup_to_disc_error(&pair, cup, disc)),
            None => None,
        };
        Ok(Self { scores, cup_to_disc, values, is_volume })
    }
}

/// The spacing in the order of the extents, or why the masks cannot be compared.
fn spacing_of(truth: &LabelMap, predicted: &LabelMap, settings: &Settings) -> Result<Vec<f64>, String> {
    let kind = |map: &LabelMap| if map.volume.is_some() { "a volume" } else { "a picture" };
    if kind(truth) != kind(predicted) {
        return Err(format!("it is {}, expected {} like the true mask", kind(predicted), kind(truth)));
    }
    // A volume is shown as it is stored, x first.
    let shown = |map: &LabelMap| {
        let mut extents: Vec<String> = map.extents.iter().map(usize::to_string).collect();
        if map.volume.is_some() {
            extents.reverse();
        }
        extents.join(" x ")
    };
    if truth.extents != predicted.extents {
        return Err(format!("it has {} pixels, expected {} like the true mask", shown(predicted), shown(truth)));
    }
    if !settings.spacing.is_empty() {
        if settings.spacing.len() != truth.extents.len() {
            let (found, n) = (settings.spacing.len(), truth.extents.len());
            return Err(format!("it has {n} axes, and --spacing {found} distances, expected one per axis"));
        }
        let mut spacing = settings.spacing.clone();
        if truth.volume.is_some() {
            spacing.reverse();
        }
        return Ok(spacing);
    }
    match truth.volume.iter().zip(&predicted.volume).next() {
        None => Ok(vec![1.0; truth.extents.len()]),
        Some((of_truth, of_predicted)) if of_truth.agrees_with(of_predicted) => Ok(of_truth.spacing.clone()),
        Some(_) => Err(
            "its header places voxels elsewhere than that of the true mask, expected the same spacing and matrix (or \
                        --spacing, with which voxels are compared by their indices alone)"
                .to_owned(),
        ),
    }
}

fn class_of_value(value: i32) -> MaskClass {
    MaskClass { name: value.to_string(), values: vec![value] }
}

fn count_values(found: &[OfSample]) -> BTreeMap<i32, [usize; 2]> {
    let mut values: BTreeMap<i32, [usize; 2]> = BTreeMap::new();
    for of in found {
        for (place, of_mask) in of.values.iter().enumerate() {
            for value in of_mask {
                values.entry(*value).or_default()[place] += 1;
            }
        }
    }
    values
}

/// The classes that were named, or one for every value but 0.
fn classes(settings: &Settings, values: &BTreeMap<i32, [usize; 2]>) -> Result<Vec<MaskClass>, CliError> {
    if settings.classes.is_empty() {
        let found: Vec<MaskClass> =
            values.keys().filter(|value| **value != BACKGROUND).map(|value| class_of_value(*value)).collect();
        if found.is_empty() {
            let message = "every pixel of every mask is 0, expected a value for each class".to_owned();
            return Err(CliError::setting("--table", message, None));
        }
        return Ok(found);
    }
    Ok(settings.classes.clone())
}

/// Refuses a class that is in no mask: two empty masks have an overlap of 1.
fn require_pixels(classes: &[MaskClass], scores: &[Vec<PairScore>]) -> Result<(), CliError> {
    let is_absent = |scores: &&Vec<PairScore>| scores.iter().all(|score| score.n_truth + score.n_predicted == 0);
    let Some(place) = scores.iter().position(|scores| is_absent(&scores)) else { return Ok(()) };
    let MaskClass { name, values } = &classes[place];
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let message =
        format!("no mask has a pixel of class \"{name}\" ({}), expected values of the masks", values.join("+"));
    Err(CliError::setting("--classes", message, Some("fairtte inspect FILE shows the values of a picture or volume")))
}

fn unit(found: &[OfSample], settings: &Settings) -> Result<String, CliError> {
    let n_volumes = found.iter().filter(|of| of.is_volume).count();
    match (settings.spacing.is_empty(), n_volumes) {
        (false, _) => Ok(settings.unit.clone().unwrap_or_else(|| "units of --spacing".to_owned())),
        (true, 0) => Ok("pixels".to_owned()),
        (true, n) if n == found.len() => Ok("mm".to_owned()),
        (true, n) => {
            let message = format!(
                "{n} of {} samples are volumes and the others pictures, whose distances have no common unit, expected one kind of masks",
                found.len()
            );
            Err(CliError::setting("--table", message, None))
        }
    }
}
