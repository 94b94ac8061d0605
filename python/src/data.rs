//! Cohorts of `fairtte-data`: adapters by name, samples and exclusions, splits, stores of decoded images.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairtte_data::cohort::Exclusions;
use fairtte_data::image::{StoreOptions, StoredPixels};
use fairtte_data::predictions::Rising;
use fairtte_data::{
    AttributeConfig, DataConfig, DataError, FittedAttributes, ImageConfig, ImageStore, Part, Split, SplitConfig,
    build_cohort, make_split, read_cohort, read_predictions,
};
use fairtte_metrics::SampleId;
use numpy::{IntoPyArray as _, PyArray1, PyArray2};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::errors::data_error;
use crate::pool::{Progress, Threads, compute, compute_showing, detached};
use crate::settings::{argument, refusal, without_place};

/// A column of text.
type Text = Vec<Option<String>>;
/// A run folder: its samples, the level of every sample by attribute, and the part of every sample.
type RunParts = (Cohort, Vec<(String, Text)>, Vec<&'static str>);
/// Of an excluded row: its sample, the reason, and the place or the message of the decoder.
type Excluded = (String, String, String);

/// Of a step of the flow: its name, rows kept and left out, and the reasons with their counts.
type Step = (String, usize, usize, Vec<(&'static str, usize)>);

/// The samples of a data set, and the rows that were left out.
#[pyclass(frozen)]
pub(crate) struct Cohort {
    data: Arc<fairtte_data::Cohort>,
    exclusions: Exclusions,
    attributes: Vec<AttributeConfig>,
    /// Whether the samples have images.
    has_images: bool,
}

/// Reads the data set `name` with `options`, the table of a run file as JSON, and `attributes`, a list of `AttributeConfig` as
/// JSON (`None`: those of the data set).
///
/// # Errors
/// `DataError` for an unknown option, a missing file or column, and cells that are not what they should be.
#[pyfunction]
#[pyo3(signature = (name, options, attributes=None, threads=None))]
pub(crate) fn read_data(
    py: Python<'_>,
    name: &str,
    options: &str,
    attributes: Option<&str>,
    threads: Option<Threads>,
) -> PyResult<Cohort> {
    let options: Map<String, Value> = read("options", options)?;
    let config: DataConfig = read_table("options", &options, |options| json!({ name: options }))?;
    let attributes = match attributes {
        Some(attributes) => read("attributes", attributes)?,
        None => config.default_attributes(),
    };
    let has_images = config.tabular().is_none();
    let found = compute(py, threads, move |_| -> Result<_, DataError> {
        let (cohort, exclusions) = build_cohort(config.adapter(0, Path::new("")).read()?, &attributes)?;
        Ok((cohort, exclusions, attributes))
    })?;
    let (cohort, exclusions, attributes) = found.map_err(|error| refused(&error))?;
    Ok(Cohort { data: Arc::new(cohort), exclusions, attributes, has_images })
}

/// The samples of a run folder, the level of every sample by attribute, and the part of every sample.
///
/// # Errors
/// `DataError` for a file that is missing or damaged.
#[pyfunction]
pub(crate) fn read_run(py: Python<'_>, folder: PathBuf) -> PyResult<RunParts> {
    compute(py, None, move |_| of_folder(&folder))?.map_err(data_error)
}

/// What [`read_run`] returns, or a sentence.
fn of_folder(folder: &Path) -> Result<RunParts, String> {
    let failed = |error: DataError| error.to_string();
    let (mut cohort, groups) = read_cohort(&folder.join("cohort.parquet")).map_err(failed)?;
    let path = folder.join("cohort.json");
    let damaged = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let record = std::fs::read_to_string(&path).map_err(|error| damaged(&error))?;
    let record: Value = serde_json::from_str(&record).map_err(|error| damaged(&error))?;
    cohort.provenance = serde_json::from_value(record["provenance"].clone()).map_err(|error| damaged(&error))?;
    for (field, key) in [(&mut cohort.name, "name"), (&mut cohort.time_unit, "time-unit")] {
        record[key].as_str().unwrap_or_default().clone_into(field);
    }
    let reasons = cohort.provenance.as_ref().map_or(&[][..], |provenance| &provenance.reasons);
    let exclusions = Exclusions::read_csv(&folder.join("exclusions.csv"), cohort.n(), reasons).map_err(failed)?;
    let split = Split::read_csv(&folder.join("split.csv"), &cohort).map_err(failed)?;
    let parts = parts_of(&split, cohort.n());
    let attributes = cohort.attributes.iter().map(|column| AttributeConfig::new(column.name.clone())).collect();
    let has_images = cohort.samples.iter().any(|sample| !sample.image.as_os_str().is_empty());
    let levels = groups.iter().map(levels).collect();
    Ok((Cohort { data: Arc::new(cohort), exclusions, attributes, has_images }, levels, parts))
}

/// Samples, times `[k]` and survival `[n, k]` of a file of predictions.
///
/// # Errors
/// `DataError` for a file that has none.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the package takes them apart")]
pub(crate) fn read_curves(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Vec<String>, Bound<'_, PyArray1<f64>>, Bound<'_, PyArray2<f64>>)> {
    let found = compute(py, None, move |_| read_predictions(&path, Rising::Refuse))?;
    let table = found.map_err(|error| refused(&error))?;
    let samples = table.samples.iter().map(SampleId::to_string).collect();
    Ok((samples, table.grid.into_pyarray(py), table.survival.into_pyarray(py)))
}

fn levels(groups: &fairtte_metrics::Groups) -> (String, Text) {
    let level = |group: &Option<fairtte_metrics::GroupId>| group.map(|g| groups.levels()[g.index()].clone());
    (groups.attribute().to_owned(), groups.membership().iter().map(level).collect())
}

fn parts_of(split: &Split, n: usize) -> Vec<&'static str> {
    let mut parts = vec![Part::Train.name(); n];
    for part in Part::ALL {
        split.rows(part).iter().for_each(|row| parts[*row] = part.name());
    }
    parts
}

fn refused(error: &DataError) -> PyErr {
    data_error(error.to_string())
}

fn read<T: DeserializeOwned>(name: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| data_error(format!("{name}: {}", without_place(&error.to_string()))))
}

/// What `around` makes of a table of a run file.
///
/// # Errors
/// `DataError` that names the setting that is refused, its value and what was expected.
fn read_table<T: DeserializeOwned>(
    name: &str,
    table: &Map<String, Value>,
    around: impl Fn(Map<String, Value>) -> Value,
) -> PyResult<T> {
    let read = |table: Map<String, Value>| serde_json::from_value::<T>(around(table));
    read(table.clone()).map_err(|error| {
        let message = error.to_string();
        // Serde does not say which setting it read: it is the one without which there is another message or none. Settings are removed
        // one after the other, because two may be refused with the same words.
        let mut rest = table.clone();
        let refused = table.iter().find(|(key, _)| {
            rest.remove(*key);
            read(rest.clone()).err().is_none_or(|other| other.to_string() != message)
        });
        let sentence = |(key, value): (&String, &Value)| refusal(&argument(key), key, value, &message);
        data_error(refused.map_or_else(|| format!("{name}: {message}"), sentence))
    })
}

#[pymethods]
impl Cohort {
    /// Name of the data set.
    #[getter]
    fn name(&self) -> &str {
        &self.data.name
    }

    /// Unit of the times.
    #[getter]
    fn time_unit(&self) -> &str {
        &self.data.time_unit
    }

    /// The table that the samples came from.
    #[getter]
    fn source(&self) -> PathBuf {
        self.data.source.clone()
    }

    /// Names of the attributes.
    #[getter]
    fn attributes(&self) -> Vec<String> {
        self.data.attributes.iter().map(|column| column.name.clone()).collect()
    }

    /// Samples, events and subjects.
    #[getter]
    fn counts(&self) -> (usize, usize, usize) {
        (self.data.n(), self.data.n_events(), self.data.n_subjects())
    }

    /// Rows of the source.
    #[getter]
    fn n_read(&self) -> usize {
        self.exclusions.n_read()
    }

    /// Origin of the labels (rule, options, content hash, notes) as JSON.
    fn provenance(&self) -> PyResult<String> {
        serde_json::to_string(&self.data.provenance).map_err(|error| data_error(error.to_string()))
    }

    /// `sample_id`, `subject_id`, `unit`, `image` and the attributes as the source gives them, by name.
    fn texts(&self) -> Vec<(String, Text)> {
        let samples = &self.data.samples;
        let mut columns = vec![
            ("sample_id".to_owned(), samples.iter().map(|sample| Some(sample.sample_id.to_string())).collect()),
            ("subject_id".to_owned(), samples.iter().map(|sample| Some(sample.subject_id.to_string())).collect()),
        ];
        if samples.iter().any(|sample| sample.unit.is_some()) {
            columns.push(("unit".to_owned(), samples.iter().map(|sample| sample.unit.clone()).collect()));
        }
        if self.has_images {
            let image = |path: &Path| (!path.as_os_str().is_empty()).then(|| path.display().to_string());
            columns.push(("image".to_owned(), samples.iter().map(|sample| image(&sample.image)).collect()));
        }
        columns.extend(self.data.attributes.iter().map(|column| (column.name.clone(), column.values.clone())));
        columns
    }

    /// Times, events, and rows of the source as a spreadsheet counts them.
    #[expect(clippy::type_complexity, reason = "three arrays of one length")]
    fn outcomes<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<u64>>) {
        let samples = &self.data.samples;
        let time: Vec<f64> = samples.iter().map(|sample| sample.time).collect();
        let event: Vec<bool> = samples.iter().map(|sample| sample.event).collect();
        let row: Vec<u64> = samples.iter().map(|sample| sample.source_row as u64).collect();
        (time.into_pyarray(py), event.into_pyarray(py), row.into_pyarray(py))
    }

    /// The level of every sample by attribute; thresholds at medians are those of the samples at `rows`.
    ///
    /// # Errors
    /// `DataError` for an attribute that cannot be divided into levels.
    fn groups(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Vec<(String, Text)>> {
        self.check_rows(&rows)?;
        let (data, attributes) = (Arc::clone(&self.data), self.attributes.clone());
        let found = compute(py, None, move |_| -> Result<Vec<(String, Text)>, DataError> {
            let fitted = FittedAttributes::fit(&attributes, &data, &rows)?;
            Ok(fitted.all().iter().map(levels).collect())
        })?;
        found.map_err(|error| refused(&error))
    }

    /// The rows that were left out.
    fn exclusions(&self) -> Vec<Excluded> {
        self.exclusions.list().iter().map(excluded).collect()
    }

    /// The flow from rows read to rows kept: step, rows kept, rows left out, and the reasons with their counts.
    fn flow(&self) -> Vec<Step> {
        let steps = self.exclusions.flow_of_tables().into_iter();
        steps.map(|step| (step.label, step.n_kept, step.n_excluded, step.reasons)).collect()
    }

    /// The part (`train`, `validation`, `test`) of every sample by `settings` (`SplitConfig` as JSON), and the record as JSON.
    ///
    /// # Errors
    /// `DataError` for settings out of range, unknown attributes, parts without a subject, and files with leaks.
    fn split(&self, py: Python<'_>, settings: &str, seed: u64) -> PyResult<(Vec<&'static str>, String)> {
        let settings: SplitConfig = read("split", settings)?;
        let (data, attributes) = (Arc::clone(&self.data), self.attributes.clone());
        let found = compute(py, None, move |_| make_split(&data, &settings, &attributes, seed))?;
        let (split, record) = found.map_err(|error| refused(&error))?;
        let parts = parts_of(&split, self.data.n());
        let record = serde_json::to_string(&record).map_err(|error| data_error(error.to_string()))?;
        Ok((parts, record))
    }

    /// The samples at `rows`, in this order; the exclusions stay.
    ///
    /// # Errors
    /// `DataError` for a row that does not exist.
    fn select(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Self> {
        self.check_rows(&rows)?;
        Ok(Self {
            data: Arc::new(detached(py, || self.data.select(&rows))?),
            exclusions: self.exclusions.clone(),
            attributes: self.attributes.clone(),
            has_images: self.has_images,
        })
    }

    /// Opens the store of decoded images in `cache`, or decodes them; `settings` is `ImageConfig` as JSON, `show(done, total)` is
    /// called meanwhile.
    ///
    /// # Errors
    /// `DataError` for settings out of range, if no image can be decoded, and for files that cannot be written.
    #[pyo3(signature = (settings, cache, images_per_shard=None, show=None, threads=None))]
    fn images(
        &self,
        py: Python<'_>,
        settings: &str,
        cache: PathBuf,
        images_per_shard: Option<usize>,
        show: Option<Py<PyAny>>,
        threads: Option<Threads>,
    ) -> PyResult<Store> {
        if !self.has_images {
            return Err(data_error("the cohort is a table without images, expected a column of images"));
        }
        let settings: Map<String, Value> = read("image", settings)?;
        let settings: ImageConfig = read_table("image", &settings, Value::Object)?;
        let cohort = Arc::clone(&self.data);
        let options = StoreOptions { images_per_shard };
        let build = move |stop: &fairtte_metrics::evaluation::Stop, progress: &Progress| {
            let on_progress = |done, total| {
                progress.set(done, total);
                if stop.is_set() {
                    // Ends the build without the message of a panic; complete shards stay and are found again.
                    std::panic::resume_unwind(Box::new("stopped"));
                }
            };
            ImageStore::open_or_build_with(&cohort, &settings, &cache, &options, &on_progress)
        };
        let found = compute_showing(py, threads, show.as_ref(), build)?;
        let (store, left_out) = found.map_err(|error| refused(&error))?;
        Ok(Store { store, excluded: left_out.iter().map(excluded).collect() })
    }
}

impl Cohort {
    fn check_rows(&self, rows: &[usize]) -> PyResult<()> {
        let n = self.data.n();
        match rows.iter().find(|row| **row >= n) {
            Some(row) => Err(data_error(format!("row {row} does not exist, expected rows from 0 to below {n}"))),
            None => Ok(()),
        }
    }
}

fn excluded(exclusion: &fairtte_data::cohort::Exclusion) -> Excluded {
    (exclusion.sample_id.to_string(), exclusion.reason.code().to_owned(), exclusion.source.clone())
}

/// Decoded images on disk.
#[pyclass(frozen)]
pub(crate) struct Store {
    store: ImageStore,
    excluded: Vec<Excluded>,
}

#[pymethods]
impl Store {
    /// Files in the order of the images: path, byte at which the pixels begin, images.
    fn shards(&self) -> Vec<(PathBuf, usize, usize)> {
        self.store.shards().map(|shard| (shard.path.to_owned(), shard.begin, shard.n)).collect()
    }

    /// Samples in the order of the images.
    fn samples(&self) -> Vec<String> {
        self.store.samples().map(SampleId::to_string).collect()
    }

    /// Images that could not be decoded.
    fn excluded(&self) -> Vec<Excluded> {
        self.excluded.clone()
    }

    /// Shape of one image, and the type of its values in the words of `NumPy`.
    #[getter]
    fn layout(&self) -> (Vec<usize>, &'static str) {
        let is_volume = self.store.n() > 0 && matches!(self.store.pixels(0), StoredPixels::Volume(_));
        (self.store.stored_shape().to_vec(), if is_volume { "<u2" } else { "|u1" })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.store.path().to_owned()
    }

    /// Decoder, scaling rule, filter and versions.
    #[getter]
    fn recipe(&self) -> &str {
        self.store.recipe()
    }

    /// Hash of samples and pixels.
    fn fingerprint(&self) -> String {
        self.store.fingerprint()
    }
}
