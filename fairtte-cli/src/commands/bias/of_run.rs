//! The sources of bias of a run: its data, grouped as in the run, with the features of its network.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fairtte_data::features::read_numeric_features;
use fairtte_data::{Part, Split, read_cohort};
use fairtte_metrics::bias::BiasSettings;

use super::super::evaluate::{Outputs, Shown, evaluate_run, with_intersections};
use super::Measured;
use crate::CliError;
use crate::args::{Bias, FeatureLayer, FeaturePart};
use crate::report::bias::{BiasReport, BiasSection};
use crate::run_folder::{OpenRun, write_json};

/// What of a run is measured.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct OfRun {
    pub(in crate::commands) layer: FeatureLayer,
    pub(in crate::commands) part: FeaturePart,
    /// Principal components that are kept.
    pub(in crate::commands) components: usize,
}

/// The sources of bias of the data of a run, by the features of its network.
///
/// # Errors
/// [`CliError`] if the run has no attribute, no trained model, or its data cannot be read.
pub(in crate::commands) fn measure(run: &Path, what: OfRun, settings: BiasSettings) -> Result<BiasReport, CliError> {
    let OfRun { layer, part, components } = what;
    let open = OpenRun::read(run)?;
    open.file.require_curves("bias")?;
    let (cohort, groups) = read_cohort(&open.folder.cohort())?;
    if groups.is_empty() {
        let message = format!("{} has no [[attribute]] to compare by", run.display());
        return Err(CliError::setting("bias", message, None));
    }
    let split = Split::read_csv(&open.folder.split(), &cohort)?;
    let rows = match part {
        FeaturePart::All => cohort.all_rows(),
        FeaturePart::Train => split.rows(Part::Train).to_vec(),
        FeaturePart::Validation => split.rows(Part::Validation).to_vec(),
        FeaturePart::Test => split.rows(Part::Test).to_vec(),
    };
    // Directions of the training part are of use where it is compared too.
    let fitted_on = if part == FeaturePart::All { split.rows(Part::Train).to_vec() } else { rows.clone() };
    let file = features_of(run, &open, layer)?;
    let features = read_numeric_features(&file, None, &[])?;
    let what = match part {
        FeaturePart::All => "all samples".to_owned(),
        part => format!("the {} part", part.name()),
    };
    let measured = Measured {
        features: format!("the {} of the network", layer.name()),
        file: format!("{what} of {}", cohort.name),
        columns: None,
        notes: notes(&open, part, split.rows(Part::Train).len()),
        groups: with_intersections(groups, &open.file)?,
        cohort: &cohort,
        rows,
        fitted_on,
    };
    measured.report(&features, components, settings)
}

/// What a reader must know of the features.
fn notes(open: &OpenRun, part: FeaturePart, n_train: usize) -> Vec<String> {
    let has_seen = matches!(part, FeaturePart::All | FeaturePart::Train);
    let note = format!(
        "The network of \"{}\" was trained on the outcomes of {n_train} of these samples: its features may know more of their \
         times and events than those of other samples (--part test has none of them).",
        open.file.name
    );
    if has_seen { vec![note] } else { Vec::new() }
}

/// The file of the features of all samples, computed if it is not there.
#[cfg(feature = "train")]
fn features_of(run: &Path, _open: &OpenRun, layer: FeatureLayer) -> Result<PathBuf, CliError> {
    super::super::features::all_of_run(run, layer)
}

/// The file of the features of all samples, which a build that trains has written.
#[cfg(not(feature = "train"))]
fn features_of(run: &Path, open: &OpenRun, layer: FeatureLayer) -> Result<PathBuf, CliError> {
    let path = open.folder.features_of(layer, FeaturePart::All);
    if path.exists() {
        return Ok(path);
    }
    let (run, layer) = (crate::shell::quoted_path(run), layer.name());
    let problem = format!(
        "there are no features here, and this build of fairtte has no networks; `fairtte features {run} --layer {layer}` of a full build writes them"
    );
    Err(CliError::RunFolder { path, problem })
}

/// Shows the sources in the report of the run too.
pub(super) fn add_to_report(report: &BiasReport, arguments: &Bias, started: Instant) -> Result<(), CliError> {
    let Some(run) = &arguments.run else { return Ok(()) };
    let open = OpenRun::read(run)?;
    write_json(&open.folder.bias_section(), &BiasSection::new(report)?)?;
    evaluate_run(&open, &Outputs { shown: Shown::Nothing, part: Part::Test, started })
}
