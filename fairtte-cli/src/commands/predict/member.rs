//! One run with the samples that it predicts, as its network reads them.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use fairtte_classical::{ClassicalError, FittedEstimator, SurvivalModel as _};
use fairtte_data::adapters::Tabular;
use fairtte_data::cohort::{Exclusions, RenamedLevel};
use fairtte_data::features::{FeatureTable, TabularFeatures};
use fairtte_data::{Cohort, DataConfig, FittedAttributes, Loader};
use fairtte_fairness::{ModelSettings, Predictor, of_cause};
use fairtte_metrics::GroupId;
use ndarray::Array2;

use super::other::groups_of;
use crate::prepared::{Care, Inputs, choose_groups, decode};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{EstimatorModel, FittedKind, ModelRecord, OpenRun, is_training_input, no_network};
use crate::{CliError, design};

/// A trained run.
pub(crate) struct Member {
    pub(crate) path: PathBuf,
    pub(crate) run: RunFile,
    pub(crate) record: ModelRecord,
    /// The epoch of its weights, counted from 1.
    pub(crate) epoch: usize,
    model: Model,
    folder: crate::run_folder::RunFolder,
    /// Levels that values of the other data have in the run.
    levels: Vec<RenamedLevel>,
}

/// What predicts.
enum Model {
    Network(Predictor),
    Estimator { fitted: FittedEstimator, columns: Vec<String>, times: Vec<f64> },
}

impl Member {
    /// The trained model of the run in `path` with the weights of `epoch`, an epoch or a selection rule.
    ///
    /// # Errors
    /// [`CliError`] if the folder has no trained model, the epoch was not kept, or a file has changed.
    pub(crate) fn open(path: &Path, epoch: Option<&str>, device: Option<&str>) -> Result<Self, CliError> {
        let OpenRun { file: run, folder } = OpenRun::read(path)?;
        run.require_no_masks("prediction with a trained model")?;
        let record = folder.model_record()?;
        let epoch = record.chosen_epoch(epoch)?;
        let device = device.unwrap_or(&run.device);
        let device: Device = crate::device::open(device)?;
        let kept = &record.epochs[&epoch];
        let model = match &record.fitted {
            FittedKind::Network(fitted) => {
                let settings = ModelSettings { encoder: &run.model, head: &run.head, strategy: &run.strategy };
                let weights = folder.weights_of(epoch);
                Model::Network(Predictor::load(&settings, fitted, &weights, &kept.files, &device)?)
            }
            FittedKind::Estimator(EstimatorModel { columns, grid, .. }) => {
                let fitted = folder.estimator_of(epoch, kept)?;
                Model::Estimator { fitted, columns: columns.clone(), times: grid.times().to_vec() }
            }
        };
        Ok(Self { path: path.to_owned(), run, record, epoch, model, folder, levels: Vec::new() })
    }

    /// The same for data some of whose values are levels of the run under another name.
    pub(crate) fn with_levels(self, levels: &[RenamedLevel]) -> Self {
        Self { levels: levels.to_vec(), ..self }
    }

    /// The network.
    ///
    /// # Errors
    /// [`CliError::Config`] if the run fitted an estimator.
    pub(crate) fn network(&self) -> Result<&Predictor, CliError> {
        match &self.model {
            Model::Network(predictor) => Ok(predictor),
            Model::Estimator { .. } => Err(no_network(&self.path)),
        }
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// As [`network`](Self::network).
    pub(crate) fn network_mut(&mut self) -> Result<&mut Predictor, CliError> {
        match &mut self.model {
            Model::Network(predictor) => Ok(predictor),
            Model::Estimator { .. } => Err(no_network(&self.path)),
        }
    }

    /// Whether the run fitted an estimator in place of a network.
    pub(crate) fn is_estimator(&self) -> bool {
        matches!(self.model, Model::Estimator { .. })
    }

    /// Times of the curves.
    pub(crate) fn times(&self) -> &[f64] {
        match &self.model {
            Model::Network(predictor) => predictor.times(),
            Model::Estimator { times, .. } => times,
        }
    }

    /// Whether curves depend on the group of a sample.
    pub(crate) fn needs_group(&self) -> bool {
        match &self.model {
            Model::Network(predictor) => predictor.needs_group(),
            Model::Estimator { .. } => false,
        }
    }

    /// Survival of `rows` at [`times`](Self::times), `[rows, n_times]`; `loader` is that of `inputs`.
    ///
    /// # Errors
    /// As [`Predictor::survival`].
    pub(crate) fn survival(
        &self,
        inputs: &Inputs,
        loader: &Loader<'_>,
        rows: &[usize],
    ) -> Result<Array2<f64>, CliError> {
        Ok(of_cause(&self.curves(inputs, loader, rows)?, 0, self.times().len()))
    }

    /// As [`survival`](Self::survival), of all causes that the model predicts, `[rows, n_causes n_times]`.
    ///
    /// # Errors
    /// As [`Predictor::curves`].
    pub(crate) fn curves(&self, inputs: &Inputs, loader: &Loader<'_>, rows: &[usize]) -> Result<Array2<f64>, CliError> {
        match (&self.model, inputs) {
            (Model::Network(predictor), _) => Ok(predictor.curves(loader, rows)?),
            (Model::Estimator { fitted, columns, times }, Inputs::Features { matrix, .. }) => {
                let covariates = design::columns(matrix, columns, rows)?;
                let of_samples = |error: ClassicalError| error.with_samples(&loader.cohort().sample_ids(rows));
                Ok(fitted.survival_curves(&covariates, times).map_err(of_samples)?.into_survival())
            }
            (Model::Estimator { .. }, Inputs::Images(_)) => Err(CliError::Bug("an estimator on images".to_owned())),
        }
    }

    /// Whether the images of this run are decoded as those of `other`, so that one store serves both.
    pub(crate) fn decodes_as(&self, other: &Self) -> bool {
        let on_images = |member: &Self| !member.run.reads_columns();
        on_images(self) && on_images(other) && self.run.image == other.run.image
    }

    /// The samples of `cohort`, whose run file is `file`, as this network reads them; those whose image cannot be decoded leave
    /// the cohort.
    ///
    /// # Errors
    /// [`CliError`] if no image can be decoded, a column is missing, or a sample is in a stratum that an estimator does not know.
    pub(crate) fn inputs(
        &self,
        file: &RunFile,
        cohort: Cohort,
        exclusions: &mut Exclusions,
    ) -> Result<(Cohort, Inputs), CliError> {
        if let DataConfig::Tabular(config) = &file.data {
            let table = Tabular::new(config.clone()).features()?.aligned(&cohort)?;
            return Ok((cohort, self.features(table, self.encodings()?)?));
        }
        if self.is_estimator() {
            let encodings = self.encodings()?;
            let groups = groups_of(&cohort, &self.record.attributes, &self.levels)?;
            let table = design::covariates_as_fitted(&self.run.covariates(), &cohort, &groups, &encodings)?;
            return Ok((cohort, self.features(table, encodings)?));
        }
        let decoding = RunFile { cache: file.cache.clone(), ..self.run.clone() };
        let (cohort, store) = decode(&decoding, cohort, exclusions, Care::Usual)?;
        Ok((cohort, Inputs::Images(store)))
    }

    fn encodings(&self) -> Result<TabularFeatures, CliError> {
        self.record.features.clone().ok_or_else(|| CliError::Bug("columns without encodings".to_owned()))
    }

    /// The columns of `table` as the model reads them.
    fn features(&self, table: FeatureTable, encodings: TabularFeatures) -> Result<Inputs, CliError> {
        let matrix = encodings.encode(&table)?;
        matrix.notes().for_each(|note| say(format!("note: {note}")));
        if let Model::Estimator { fitted, .. } = &self.model {
            let rows: Vec<usize> = (0..table.n()).collect();
            design::require_known_strata(fitted.strata(), (&matrix, &encodings), &rows, || Ok(table))?;
        }
        Ok(Inputs::Features { matrix, encodings })
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
        let FittedKind::Network(fitted) = &self.record.fitted else { return Ok(vec![None; n]) };
        let trained = &fitted.cells;
        let names = self.run.training_attributes();
        let known: Vec<&str> = groups.all().iter().map(fairtte_metrics::Groups::attribute).collect();
        if let Some(absent) = names.iter().find(|name| !known.contains(name)) {
            if self.needs_group() {
                let strategy = self.network()?.strategy();
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
        if self.needs_group() && n_without > 0 {
            let (strategy, attribute) = (self.network()?.strategy(), chosen.attribute());
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
