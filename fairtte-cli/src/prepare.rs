//! Steps 1 to 4, shared by `prepare` and `train`: from files to a cohort with a split, groups and inputs of a model.

use std::collections::{BTreeSet, HashMap, HashSet};

use fairtte_data::adapters::Tabular;
use fairtte_data::cohort::{Classes, CohortSummary, Exclusions, FlowStep};
use fairtte_data::features::{FeatureMatrix, FeatureTable, TabularFeatures, leak_warnings};
use fairtte_data::image::{check_mask_shapes, classes_of_values};
use fairtte_data::loader::Intensity;
use fairtte_data::shift::{ShiftRecord, ShiftedRows, apply_shift, image_blur, shifted_rows};
use fairtte_data::split::{SplitRecord, check_identical_files};
use fairtte_data::{
    AttributeConfig, Cohort, DataConfig, FittedAttributes, Generic, ImageStore, Loader, Part, Split, build_cohort,
    make_split, write_cohort,
};
use fairtte_metrics::{GroupId, Groups, SampleId};

use crate::plural::counted;
use crate::progress::{Files, say};
use crate::run_folder::{InputRecord, OpenRun, RunFolder, remove_file, write_json};
use crate::{CliError, RunFile, design};

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
        refuse_or_tell_identical(run, &cohort, &split)?;
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

/// The masks of the images, if the run predicts masks: decoded, of known values, and in the proportions of their images. Samples
/// whose masks cannot be decoded leave the cohort.
fn decode_masks(
    run: &RunFile,
    cohort: Cohort,
    exclusions: &mut Exclusions,
    care: Care,
) -> Result<(Cohort, Option<PreparedMasks>), CliError> {
    let (DataConfig::Generic(config), Some(task)) = (&run.data, &run.task.segmentation) else {
        return Ok((cohort, None));
    };
    let files = Generic::new(config.clone()).masks_of(&cohort)?;
    let settings = run.image.of_masks();
    if ImageStore::estimate(&files, &settings, &run.cache())?.n_bytes_missing > 0 || care != Care::Usual {
        check_mask_shapes(&cohort, &files, &settings)?;
    }
    let of_masks = RunFile { image: settings, ..run.clone() };
    let (files, store) = decode(&of_masks, files, exclusions, care)?;
    let classes = classes_of_values(&store, &files, &task.values())?;
    let kept: HashSet<&SampleId> = files.samples.iter().map(|sample| &sample.sample_id).collect();
    let rows: Vec<usize> = (0..cohort.n()).filter(|row| kept.contains(&cohort.samples[*row].sample_id)).collect();
    Ok((cohort.select(&rows), Some(PreparedMasks { store, files, classes })))
}

/// Writes the samples without a class, or removes the file of an earlier call.
fn write_left_out(folder: &RunFolder, classes: Option<&Classes>, cohort: &Cohort) -> Result<(), CliError> {
    let path = folder.without_class();
    let Some(classes) = classes.filter(|classes| classes.horizon.is_some()) else { return remove_file(&path) };
    let mut left_out = Exclusions::new(cohort.n());
    left_out.extend(classes.exclusions(cohort));
    Ok(left_out.write_csv(&path)?)
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

/// Steps 1 and 2. A gated data set is named with its terms first.
pub(crate) fn label(run: &RunFile) -> Result<(Cohort, Exclusions), CliError> {
    let adapter = run.data.adapter(run.seed, &run.cache());
    if let Some(terms) = adapter.data_use() {
        say(format!("data use: {terms}"));
    }
    let mut columns = run.attribute.clone();
    for name in run.split.columns() {
        if columns.iter().all(|column| column.name != name) {
            columns.push(AttributeConfig::new(name));
        }
    }
    let read = match &run.outcome {
        Some(outcome) => adapter.read_causes(outcome)?,
        None => adapter.read()?,
    };
    let (cohort, exclusions) = build_cohort(read, &columns)?;
    let notes = cohort.provenance.iter().flat_map(|provenance| &provenance.notes);
    notes.for_each(|note| say(format!("note: {note}")));
    Ok((cohort, exclusions))
}

/// Step 5, first half: every image into the store; samples whose images cannot be decoded leave the cohort.
pub(crate) fn decode(
    run: &RunFile,
    cohort: Cohort,
    exclusions: &mut Exclusions,
    care: Care,
) -> Result<(Cohort, ImageStore), CliError> {
    let estimate = ImageStore::estimate(&cohort, &run.image, &run.cache())?;
    if estimate.n_bytes_missing > 0 {
        say(format!("decoding {estimate}"));
    }
    let open = || {
        let files = Files::new("decoding images");
        ImageStore::open_or_build(&cohort, &run.image, &run.cache(), &|done, total| files.update(done, total))
    };
    let (mut store, mut undecodable) = open()?;
    if care == Care::Verify {
        let damaged = store.discard_damaged()?;
        for image in &damaged {
            say(format!("note: {image}"));
        }
        (store, undecodable) = open()?;
        let again = if damaged.is_empty() { "" } else { "; damaged shards were decoded again" };
        say(format!("verified: {} images have their checksums{again}", store.n()));
    }
    // Not copied where nothing leaves: a cohort of 100,000 images is large.
    let cohort = if undecodable.is_empty() { cohort } else { cohort.without(&undecodable) };
    exclusions.extend(undecodable);
    exclusions.check(cohort.n())?;
    cohort.require_samples("after decoding", exclusions)?;
    Ok((cohort, store))
}

/// The same picture in two parts is a leak: an error for a split made by the user, a note for a split made here.
fn refuse_or_tell_identical(run: &RunFile, cohort: &Cohort, split: &Split) -> Result<(), CliError> {
    let identical = check_identical_files(cohort, split);
    if let Some(path) = &run.split.file {
        identical.refuse_leaks(path)?;
    }
    if !identical.sets.is_empty() {
        say(format!("note: {identical}"));
    }
    Ok(())
}

fn fit_groups(run: &RunFile, cohort: &Cohort, rows: &[usize]) -> Result<FittedAttributes, CliError> {
    let attributes = FittedAttributes::fit(&run.attribute, cohort, rows)?;
    attributes.ungrouped().iter().for_each(|value| say(format!("note: {value}")));
    Ok(attributes)
}

/// The groups with a training sample, which are those that a strategy can work on: an intersection of attributes has cells
/// without samples. The samples of the others count as without the attribute.
fn trained_levels(groups: &Groups, train: &[usize]) -> Result<Groups, CliError> {
    let (all, membership) = (groups.levels(), groups.membership());
    let trained: BTreeSet<usize> = train.iter().filter_map(|row| membership[*row]).map(GroupId::index).collect();
    for (level, name) in all.iter().enumerate().filter(|(level, _)| !trained.contains(level)) {
        let n = membership.iter().flatten().filter(|group| group.index() == level).count();
        let attribute = groups.attribute();
        say(format!(
            "note: no training sample has {attribute} {name}; samples whose attribute counts as missing for the strategy: {n}"
        ));
    }
    let place: HashMap<usize, u32> = trained.iter().copied().zip(0..).collect();
    let renumbered = |group: &Option<GroupId>| group.and_then(|group| Some(GroupId(*place.get(&group.index())?)));
    let levels = trained.iter().map(|level| all[*level].clone()).collect();
    Ok(Groups::new(groups.attribute(), levels, membership.iter().map(renumbered).collect())?)
}

fn write_record(
    folder: &RunFolder,
    cohort: &Cohort,
    exclusions: &Exclusions,
    attributes: &FittedAttributes,
) -> Result<CohortSummary, CliError> {
    // In parallel, because most of the time is spent waiting until the files are on the disk.
    let (of_samples, of_others) = rayon::join(
        || write_cohort(&folder.cohort(), cohort, attributes),
        || exclusions.write_csv(&folder.exclusions()),
    );
    of_samples.and(of_others)?;
    let summary = CohortSummary::new(cohort, exclusions, attributes);
    write_json(&folder.summary(), &summary)?;
    Ok(summary)
}

fn write_split(folder: &RunFolder, split: &Split, record: &SplitRecord) -> Result<(), CliError> {
    write_json(&folder.split_record(), record)?;
    Ok(split.write_csv(&folder.split())?)
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

/// The columns of a table as inputs, fitted on the training part.
fn features(run: &RunFile, cohort: &Cohort, split: &Split) -> Result<Inputs, CliError> {
    let DataConfig::Tabular(config) = &run.data else {
        return Err(CliError::Bug("features of a data set of images".to_owned()));
    };
    let table = Tabular::new(config.clone()).features()?.aligned(cohort)?;
    let train = split.rows(Part::Train);
    let attributes: Vec<&str> = run.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    let fitted = TabularFeatures::fit(&table, train, &config.feature_config(), &attributes)?;
    for column in &fitted.left_out {
        say(format!("note: {column}"));
    }
    for warning in leak_warnings(&fitted, &table, cohort, train)? {
        say(format!("warning: {warning}"));
    }
    encoded(&table, fitted)
}

/// The features of a table by these encodings.
fn encoded(table: &FeatureTable, encodings: TabularFeatures) -> Result<Inputs, CliError> {
    let matrix = encodings.encode(table)?;
    matrix.unknown().iter().for_each(|unknown| say(format!("note: {unknown}")));
    Ok(Inputs::Features { matrix, encodings })
}

/// The groups of the named attributes, crossed if there is more than one; `None` for no name.
///
/// # Errors
/// [`CliError::Config`] naming `key` if a name is not among the attributes.
pub(crate) fn choose_groups(all: &[Groups], names: &[&str], key: &str) -> Result<Option<Groups>, CliError> {
    let find = |name: &&str| {
        all.iter().find(|groups| groups.attribute() == *name).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(Groups::attribute).collect();
            CliError::unknown_attribute(key, name, &known)
        })
    };
    let chosen: Vec<&Groups> = names.iter().map(find).collect::<Result<_, _>>()?;
    Ok(match chosen.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(Groups::intersection(several)?),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    #[test]
    fn a_level_without_a_training_sample_is_no_group_of_a_strategy() {
        let group = |level| Some(GroupId(level));
        let levels = ["a", "b", "c"].map(str::to_owned).to_vec();
        let groups = Groups::new("x", levels, vec![group(2), group(1), None, group(0), group(2)]).unwrap();
        let trained = trained_levels(&groups, &[0, 2, 3]).unwrap();
        assert_eq!(trained.levels(), ["a", "c"]);
        assert_eq!(trained.membership(), [group(1), None, None, group(0), group(1)]);
    }
}
