//! One run with the samples that it predicts, as its network reads them.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use fairtte_data::adapters::Tabular;
use fairtte_data::cohort::Exclusions;
use fairtte_data::{Cohort, DataConfig, FittedAttributes, Loader};
use fairtte_fairness::{ModelSettings, Predictor};
use fairtte_metrics::GroupId;

use super::other::OtherData;
use crate::CliError;
use crate::prepare::{Care, Inputs, choose_groups, decode};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{ModelRecord, OpenRun, is_training_input};

/// A trained run.
pub(crate) struct Member {
    pub(crate) path: PathBuf,
    pub(crate) run: RunFile,
    pub(crate) record: ModelRecord,
    /// The epoch of its weights, counted from 1.
    pub(crate) epoch: usize,
    pub(crate) predictor: Predictor,
    folder: crate::run_folder::RunFolder,
}

impl Member {
    /// The trained model of the run in `path` with the weights of `epoch`, an epoch or a selection rule.
    ///
    /// # Errors
    /// [`CliError`] if the folder has no trained model, the epoch was not kept, or a file has changed.
    pub(crate) fn open(path: &Path, epoch: Option<&str>, device: Option<&str>) -> Result<Self, CliError> {
        let OpenRun { file: run, folder } = OpenRun::read(path)?;
        let record = folder.model_record()?;
        let epoch = record.chosen_epoch(epoch)?;
        let device = device.unwrap_or(&run.device);
        let device: Device = crate::device::open(device)?;
        let settings = ModelSettings { encoder: &run.model, head: &run.head, strategy: &run.strategy };
        let kept = &record.epochs[&epoch];
        let weights = folder.weights_of(epoch);
        let predictor = Predictor::load(&settings, &record.fitted, &weights, &kept.files, &device)?;
        Ok(Self { path: path.to_owned(), run, record, epoch, predictor, folder })
    }

    /// The images of `other` as this network reads them; those that cannot be decoded leave `cohort`.
    ///
    /// # Errors
    /// [`CliError`] if no image can be decoded, or a column is missing.
    pub(crate) fn inputs(
        &self,
        other: &OtherData,
        cohort: Cohort,
        exclusions: &mut Exclusions,
    ) -> Result<(Cohort, Inputs), CliError> {
        if let DataConfig::Tabular(config) = &other.file.data {
            let encodings = self.record.features.clone();
            let encodings = encodings.ok_or_else(|| CliError::Bug("a table without encodings".to_owned()))?;
            let matrix = encodings.encode(&Tabular::new(config.clone()).features()?.aligned(&cohort)?)?;
            matrix.unknown().iter().for_each(|unknown| say(format!("note: {unknown}")));
            return Ok((cohort, Inputs::Features { matrix, encodings }));
        }
        let decoding = RunFile { cache: other.file.cache.clone(), ..self.run.clone() };
        let (cohort, store) = decode(&decoding, &cohort, exclusions, Care::Usual)?;
        Ok((cohort, Inputs::Images(store)))
    }

    /// Samples whose image is one that this run was trained on.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the list of the training images cannot be read.
    pub(crate) fn trained_on(&self, inputs: &Inputs, cohort: &Cohort) -> Result<Vec<String>, CliError> {
        let Inputs::Images(store) = inputs else { return Ok(Vec::new()) };
        let trained = self.folder.training_inputs()?;
        let known = cohort.samples.iter().map(|sample| &sample.sample_id).collect::<std::collections::HashSet<_>>();
        let hashes = store.pixel_hashes().filter(|(sample, _)| known.contains(sample));
        let mut found: Vec<String> = hashes
            .filter(|(_, hash)| is_training_input(&trained, hash))
            .map(|(sample, _)| sample.to_string())
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The group of every sample as the strategy knows it; `None` where there is none.
    ///
    /// # Errors
    /// [`CliError::Config`] if predictions depend on a group and the data have no column of the attribute.
    pub(crate) fn membership(&self, groups: &FittedAttributes, n: usize) -> Result<Vec<Option<GroupId>>, CliError> {
        let trained = &self.record.fitted.cells;
        let names = self.run.training_attributes();
        let known: Vec<&str> = groups.all().iter().map(fairtte_metrics::Groups::attribute).collect();
        if let Some(absent) = names.iter().find(|name| !known.contains(name)) {
            if self.predictor.needs_group() {
                let strategy = self.predictor.strategy();
                let message = format!(
                    "{strategy} predicts by the group of a sample (needs_group_to_predict), and the data have no column \"{absent}\""
                );
                return Err(CliError::setting("data", message, None));
            }
            return Ok(vec![None; n]);
        }
        let Some(chosen) = choose_groups(groups.all(), &names, "groups.train")?.filter(|_| !trained.levels.is_empty())
        else {
            return Ok(vec![None; n]);
        };
        let of_level = |level: &String| trained.levels.iter().position(|known| known == level);
        let places: Vec<Option<usize>> = chosen.levels().iter().map(of_level).collect();
        let place = |group: &Option<GroupId>| {
            let place = group.and_then(|group| places[group.index()])?;
            u32::try_from(place).ok().map(GroupId)
        };
        let membership: Vec<Option<GroupId>> = chosen.membership().iter().map(place).collect();
        let n_without = membership.iter().filter(|group| group.is_none()).count();
        if self.predictor.needs_group() && n_without > 0 {
            let (strategy, attribute) = (self.predictor.strategy(), chosen.attribute());
            say(format!(
                "note: {strategy} predicts by \"{attribute}\", which {n_without} of {n} samples do not have; missing-attribute says what it does"
            ));
        }
        Ok(membership)
    }

    /// Batches of the samples, scaled as in the training and cropped to the centre, if it crops.
    ///
    /// # Errors
    /// [`CliError`] if inputs and network do not fit.
    pub(crate) fn loader<'a>(
        &self,
        inputs: &'a Inputs,
        cohort: &'a Cohort,
        groups: Vec<Option<GroupId>>,
    ) -> Result<Loader<'a>, CliError> {
        let store = match inputs {
            Inputs::Images(store) => store,
            Inputs::Features { matrix, .. } => return Ok(Loader::of_features(matrix, cohort, groups)?),
        };
        let intensity = self.record.intensity.as_ref();
        let intensity = intensity.ok_or_else(|| CliError::Bug("images without a scale of intensities".to_owned()))?;
        let loader = Loader::new(store, cohort, groups, intensity)?;
        match self.run.augmentation()? {
            Some(augmentation) => Ok(loader.with_augmentation(augmentation)?),
            None => Ok(loader),
        }
    }
}
