//! Steps 1 to 4, shared by the commands that need data: from files to a cohort with a split, groups and inputs of a model.

mod features;
mod groups;
mod record;
mod samples;
#[cfg(feature = "train")]
mod unchanged;

use std::borrow::Cow;

use fairtte_data::cohort::{Classes, CohortSummary, Exclusions, FlowStep, Provenance};
use fairtte_data::features::{FeatureMatrix, TabularFeatures};
use fairtte_data::loader::Intensity;
use fairtte_data::shift::{ShiftRecord, ShiftedRows, apply_shift, image_blur, shifted_rows};
use fairtte_data::{Cohort, DataConfig, FittedAttributes, ImageStore, Loader, Part, Split, make_split};
use fairtte_metrics::{GroupId, Groups};

use self::features::{encoded, features};
use self::groups::{fit_groups, trained_levels};
use self::record::{write_left_out, write_record, write_split};
use self::samples::{decode_masks, refuse_or_report_identical};
use crate::plural::counted;
use crate::progress::say;
use crate::run_folder::{InputRecord, OpenRun, write_json};
use crate::{CliError, RunFile, design};

pub(crate) use self::groups::choose_groups;
pub(crate) use self::samples::{decode, label};
#[cfg(feature = "train")]
pub(crate) use self::unchanged::require_unchanged_tables;

/// A data set that is ready for training.
pub(crate) struct Prepared {
    /// The unchanged samples of the data.
    pub(crate) cohort: Cohort,
    pub(crate) exclusions: Exclusions,
    /// Without the training samples that a shift leaves out.
    pub(crate) split: Split,
    pub(crate) inputs: Inputs,
    pub(crate) attributes: FittedAttributes,
    /// The summary of the cohort, as written to its file.
    pub(crate) summary: CohortSummary,
    /// The samples as used for training, if the run has a distribution shift or predicts a class or masks.
    pub(crate) shifted: Option<Cohort>,
    /// The class of every sample, if the run predicts one; those without a class stay in the record, and are not trained on.
    pub(crate) classes: Option<Classes>,
    /// The masks of the images, if the run predicts masks.
    pub(crate) masks: Option<PreparedMasks>,
    /// Whose inputs the samples have in training.
    pub(crate) shifted_rows: ShiftedRows,
    /// Groups that the strategy works on, for every row of the cohort.
    pub(crate) training_groups: Option<Groups>,
}

/// The masks of the images of a cohort.
pub(crate) struct PreparedMasks {
    /// In the size of the images.
    pub(crate) store: ImageStore,
    /// The samples with the files of their masks.
    pub(crate) files: Cohort,
    /// Number of the class of every value of a pixel.
    pub(crate) classes: [u8; 256],
}

/// The inputs of a model.
pub(crate) enum Inputs {
    Images(ImageStore),
    /// Columns of a table, with the encodings that made them.
    Features {
        matrix: FeatureMatrix,
        encodings: TabularFeatures,
    },
}

impl Inputs {
    /// The encodings of the columns; `None` for images.
    pub(crate) fn encodings(&self) -> Option<&TabularFeatures> {
        match self {
            Self::Images(_) => None,
            Self::Features { encodings, .. } => Some(encodings),
        }
    }

    /// A hash of the inputs.
    pub(crate) fn fingerprint(&self) -> String {
        let matrix = match self {
            Self::Images(store) => return store.fingerprint(),
            Self::Features { matrix, .. } => matrix,
        };
        let mut hasher = blake3::Hasher::new();
        for name in matrix.names() {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        }
        for value in matrix.values() {
            hasher.update(&value.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Prepared {
    /// The samples by which the parts are counted, and the parts: of a class that is made from times those that have one, with the class in
    /// place of the event.
    pub(crate) fn counted(&self) -> (Cow<'_, Cohort>, Cow<'_, Split>) {
        let Some(classes) = self.classes.as_ref().filter(|classes| classes.horizon.is_some()) else {
            return (Cow::Borrowed(&self.cohort), Cow::Borrowed(&self.split));
        };
        let of_class = |provenance: Provenance| Provenance { label: Some("class".to_owned()), ..provenance };
        let provenance = self.cohort.provenance.clone().map(of_class);
        let cohort = Cohort { provenance, ..self.cohort.of_classes(classes) };
        let left_out = classes.left_out().into_iter().collect();
        let without = |split: Split, part| split.without_rows(part, &left_out);
        (Cow::Owned(cohort), Cow::Owned(Part::ALL.into_iter().fold(self.split.clone(), without)))
    }

    /// The attributes for whose groups epochs are kept, if one training serves several.
    ///
    /// # Errors
    /// [`CliError`] if the groups of one cannot be renumbered.
    #[cfg(feature = "train")]
    pub(crate) fn kept_for(&self, run: &RunFile) -> Result<Vec<Groups>, CliError> {
        let kept = self.attributes.all().iter().filter(|groups| run.keeps_epochs_for(groups.attribute()));
        kept.map(|groups| trained_levels(groups, self.split.rows(Part::Train))).collect()
    }

    /// Group of every row of the cohort that the strategy works on.
    pub(crate) fn membership(&self) -> Vec<Option<GroupId>> {
        let none = || vec![None; self.cohort.n()];
        self.training_groups.as_ref().map_or_else(none, |groups| groups.membership().to_vec())
    }

    /// Rows of the validation part; where the class is made from times, those that have one.
    #[cfg(feature = "train")]
    pub(crate) fn validation(&self) -> Vec<usize> {
        let has_class = |row: &usize| self.classes.as_ref().is_none_or(|classes| classes.positive[*row].is_some());
        self.split.rows(Part::Validation).iter().copied().filter(has_class).collect()
    }

    /// The number of rows that each step kept and excluded.
    pub(crate) fn flow(&self, run: &RunFile) -> Vec<FlowStep> {
        if run.is_tabular() { self.exclusions.flow_of_tables() } else { self.exclusions.flow() }
    }

    /// The samples as used for training.
    pub(crate) fn training_cohort(&self) -> &Cohort {
        self.shifted.as_ref().unwrap_or(&self.cohort)
    }

    /// Batches of images, scaled by statistics of the training part and augmented as the run file says, with the scaling; or
    /// of columns of a table.
    ///
    /// # Errors
    /// [`CliError::Data`] for settings that do not fit the images.
    pub(crate) fn loader(
        &self,
        run: &RunFile,
        groups: Vec<Option<GroupId>>,
    ) -> Result<(Loader<'_>, Option<Intensity>), CliError> {
        let (cohort, train) = (self.training_cohort(), self.split.rows(Part::Train));
        let store = match &self.inputs {
            Inputs::Images(store) => store,
            Inputs::Features { matrix, .. } => {
                let loader = Loader::of_features(matrix, cohort, groups)?;
                return Ok((self.with_shifted_inputs(loader)?, None));
            }
        };
        let intensity = run.intensity.fit(store, cohort, train)?;
        let mut loader = self.with_shifted_inputs(Loader::new(store, cohort, groups, &intensity)?)?;
        if let Some(masks) = &self.masks {
            loader = loader.with_masks(&masks.store, masks.classes)?;
        }
        if let Some(shift) = &run.shift
            && let Some(blur) = image_blur(cohort, train, self.attributes.all(), shift)?
        {
            loader = loader.with_transform(Box::new(blur));
        }
        if let Some(augmentation) = run.augmentation()? {
            loader = loader.with_augmentation(augmentation)?;
        }
        Ok((loader, Some(intensity)))
    }

    /// The rows whose inputs these training rows have: of a shift that permutes, those of others.
    pub(crate) fn inputs_of(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|row| self.shifted_rows.giver(*row).unwrap_or(*row)).collect()
    }

    fn with_shifted_inputs<'a>(&self, loader: Loader<'a>) -> Result<Loader<'a>, CliError> {
        if self.shifted_rows.n_permuted() == 0 {
            return Ok(loader);
        }
        Ok(loader.with_inputs_of(self.shifted_rows.inputs(self.cohort.n()))?)
    }
}

/// How thoroughly the files are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// As much as training needs.
    Usual,
    /// Also searches for pictures that occur in two parts.
    Identical,
    /// Also compares the stored pixels with their checksums, and decodes damaged shards again.
    Verify,
}

/// Reads, labels, decodes, splits and groups, and writes the first files of the run folder.
///
/// # Errors
/// [`CliError`] from the data or the run file.
pub(crate) fn prepare(open: &OpenRun, care: Care) -> Result<Prepared, CliError> {
    let OpenRun { file: run, folder } = open;
    let (cohort, mut exclusions) = label(run)?;
    cohort.require_samples("after labelling", &exclusions)?;
    let (cohort, store) = match &run.data {
        DataConfig::Tabular(_) => (cohort, None),
        _ => decode(run, cohort, &mut exclusions, care).map(|(cohort, store)| (cohort, Some(store)))?,
    };
    let (cohort, masks) = decode_masks(run, cohort, &mut exclusions, care)?;
    let (split, record) = make_split(&cohort, &run.split, &run.attribute, run.seed)?;
    record.notes.iter().for_each(|note| say(format!("note: {note}")));
    if store.is_some() && (care != Care::Usual || run.split.file.is_some()) {
        refuse_or_report_identical(run, &cohort, &split)?;
    }
    let attributes = fit_groups(run, &cohort, split.rows(Part::Train))?;
    let shifted_rows = match &run.shift {
        Some(shift) => shifted_rows(&cohort, split.rows(Part::Train), attributes.all(), shift, run.seed)?,
        None => ShiftedRows::default(),
    };
    let mut trained = split.without_rows(Part::Train, &shifted_rows.left_out);
    let classes = run.classes(&cohort)?;
    let of_masks = masks.as_ref().map(|_| cohort.of_masks());
    let of_classes = classes.as_ref().map(|classes| cohort.of_classes(classes)).or(of_masks);
    if let Some(classes) = &classes {
        trained = trained.without_rows(Part::Train, &classes.left_out().into_iter().collect());
        require_both(classes, &trained)?;
    }
    let training_groups = choose_groups(attributes.all(), &run.training_attributes(), "groups.train")?;
    let training_groups =
        training_groups.map(|groups| trained_levels(&groups, trained.rows(Part::Train))).transpose()?;
    let inputs = match store {
        Some(store) if run.estimator.is_none() => Inputs::Images(store),
        // The same samples as of a network: those whose images can be decoded.
        Some(_) => {
            let table = design::covariates(&run.covariates(), &cohort, &attributes)?;
            let encodings = design::encode_covariates(&table, trained.rows(Part::Train))?;
            encoded(&table, encodings)?
        }
        None => features(run, of_classes.as_ref().unwrap_or(&cohort), &trained)?,
    };
    let fingerprint = match &masks {
        None => inputs.fingerprint(),
        Some(masks) => {
            let both = [inputs.fingerprint(), masks.store.fingerprint()].concat();
            blake3::hash(both.as_bytes()).to_hex().to_string()
        }
    };
    #[cfg(feature = "train")]
    if folder.is_trained()? {
        folder.require_same_data(&cohort, &split, &attributes, &fingerprint)?;
    }
    let summary = write_record(folder, &cohort, &exclusions, &attributes)?;
    write_split(folder, &split, &record)?;
    if let Some(fitted) = inputs.encodings() {
        write_json(&folder.features(), fitted)?;
    }
    write_json(&folder.inputs(), &InputRecord { fingerprint })?;
    let shifted = shift(open, &cohort, &split, &attributes)?.or(of_classes);
    let split = trained;
    write_left_out(folder, classes.as_ref(), &cohort)?;
    exclusions.extend(classes.iter().flat_map(|classes| classes.exclusions(&cohort)));
    Ok(Prepared {
        cohort,
        exclusions,
        split,
        inputs,
        attributes,
        summary,
        shifted,
        classes,
        masks,
        shifted_rows,
        training_groups,
    })
}

/// Reads and labels the tables alone and writes the record of the cohort: no image is opened, nothing is split, and
/// attributes are grouped over all samples. A cohort without samples is written like any other, since its exclusions
/// give the reasons.
///
/// # Errors
/// [`CliError`] from the data or the run file.
pub(crate) fn prepare_tables(
    open: &OpenRun,
) -> Result<(Cohort, Exclusions, FittedAttributes, CohortSummary), CliError> {
    let OpenRun { file: run, folder } = open;
    if folder.split().exists() {
        let problem = "there is already a split of the data with their images; choose another --output".to_owned();
        return Err(CliError::RunFolder { path: folder.split(), problem });
    }
    let (cohort, exclusions, attributes) = read_tables(run)?;
    let summary = write_record(folder, &cohort, &exclusions, &attributes)?;
    Ok((cohort, exclusions, attributes, summary))
}

/// Reads and labels the tables and groups the attributes over all samples; writes nothing.
///
/// # Errors
/// [`CliError`] from the data or the run file.
pub(crate) fn read_tables(run: &RunFile) -> Result<(Cohort, Exclusions, FittedAttributes), CliError> {
    let (cohort, exclusions) = label(run)?;
    let attributes = fit_groups(run, &cohort, &cohort.all_rows())?;
    Ok((cohort, exclusions, attributes))
}

/// Training and validation need samples of both classes.
fn require_both(classes: &Classes, split: &Split) -> Result<(), CliError> {
    for part in [Part::Train, Part::Validation] {
        let known: Vec<bool> = split.rows(part).iter().filter_map(|row| classes.positive[*row]).collect();
        let n_positive = known.iter().filter(|positive| **positive).count();
        if n_positive == 0 || n_positive == known.len() {
            let n = counted(known.len(), "sample");
            let message = format!(
                "{n_positive} of {n} with a class in the {} part are positive, expected both classes",
                part.name()
            );
            let key = if classes.horizon.is_some() { "task.binary.horizon" } else { "task" };
            return Err(CliError::setting(key, message, None));
        }
    }
    Ok(())
}

/// Applies the distribution shift of the run file and writes its record into the run folder.
fn shift(
    open: &OpenRun,
    cohort: &Cohort,
    split: &Split,
    attributes: &FittedAttributes,
) -> Result<Option<Cohort>, CliError> {
    let OpenRun { file: run, folder } = open;
    let Some(config) = &run.shift else { return Ok(None) };
    let (shifted, record) = apply_shift(cohort, split.rows(Part::Train), attributes.all(), config, run.seed)?;
    say(&record);
    record.write_csv(&folder.shift_table())?;
    // The changed samples are in the table.
    write_json(&folder.shift(), &ShiftRecord { changed: Vec::new(), ..record })?;
    Ok(Some(shifted))
}
