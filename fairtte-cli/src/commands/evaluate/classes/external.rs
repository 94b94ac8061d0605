//! `fairtte evaluate DIR --internal RUN` of a class: one model in the test part of its run and in other data, at the threshold of
//! the run, with unpaired bootstrap intervals of every difference.

use std::path::{Path, PathBuf};

use fairtte_data::Part;
use fairtte_metrics::classification::DeLong;
use fairtte_metrics::evaluation::{
    AttributeParity, ClassCohort, ClassCohorts, ClassGroups, ClassReport, CohortReports, HorizonReport,
    describe_classes, evaluate_class_cohorts,
};
use serde::Serialize;

use super::super::Outputs;
use super::super::external::{InBothCohorts, notes_on_attributes, predictions, publish, read_run, require_task};
use super::super::facts_of_run;
use super::super::predicted::require_same_unit;
use super::super::prediction_record::PredictionRecord;
use super::super::publish::{CensoringSample, Target};
use super::at_horizon;
use super::of_predicted::of_sample;
use super::of_run::Saved;
use super::publish::{threshold_of, warnings};
use super::read::Tables;
use super::settings::{Settings, Threshold};
use crate::CliError;
use crate::case_mix::{CaseMix, WithClass};
use crate::report::{ExternalClass, ExternalPage, external_verdict};
use crate::run_file::TaskKind;
use crate::run_folder::{OpenRun, RunFolder};

/// The run whose test part is compared with.
pub(super) struct Internal {
    pub(super) open: OpenRun,
    /// The probabilities of the weights that predicted the other data, where they are known.
    pub(super) predictions: PathBuf,
}

impl Internal {
    /// The run in `path`; what does not fit to the predictions of `record` is added to `notes`.
    ///
    /// # Errors
    /// [`CliError`] if it is no run, or predicts something else.
    pub(super) fn open(
        path: &Path,
        record: &PredictionRecord,
        folder: &RunFolder,
        horizon: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<Self, CliError> {
        let open = read_run(path)?;
        require_task(&open, TaskKind::Binary, folder)?;
        let own = open.file.task.binary.map(|binary| binary.horizon);
        if own.map(f64::to_bits) != horizon.map(f64::to_bits) {
            let words = |at: Option<f64>| at.map_or_else(|| "read from a column".to_owned(), |at| format!("at {at}"));
            let message = format!(
                "the class of {} is {}, that of {} is {}, expected the same class",
                path.display(),
                words(own),
                folder.path().display(),
                words(horizon)
            );
            return Err(CliError::setting("--internal", message, None));
        }
        let predictions = predictions(&open.folder, record, "probabilities", notes)?;
        Ok(Self { open, predictions })
    }
}

/// What is compared.
pub(super) struct Compared<'a> {
    pub(super) open: &'a OpenRun,
    pub(super) saved: &'a Saved,
    pub(super) record: &'a PredictionRecord,
    /// Of the other data.
    pub(super) folder: &'a RunFolder,
    /// The other data.
    pub(super) tables: Tables,
}

/// `external.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    version: u32,
    task: &'static str,
    run: &'a Path,
    data: &'a Path,
    predicted_by: String,
    verdict: &'a [String],
    threshold: &'a Threshold,
    /// What the censoring curve of each cohort was fitted on, where the class is made from times.
    #[serde(skip_serializing_if = "Option::is_none")]
    internal_censoring: Option<&'a CensoringSample>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_censoring: Option<&'a CensoringSample>,
    in_both_cohorts: InBothCohorts,
    warnings: &'a [String],
    notes: &'a [String],
    case_mix: &'a CaseMix,
    #[serde(flatten)]
    reports: &'a CohortReports,
    /// What only a class has.
    internal_class: OfCohort<'a>,
    external_class: OfCohort<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OfCohort<'a> {
    delong: Option<&'a DeLong>,
    tpr_at_tnr_step: Option<f64>,
    parity: &'a [AttributeParity],
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon: Option<&'a HorizonReport>,
    groups: &'a ClassGroups,
}

/// One cohort with what is computed of it alone.
struct Side<'a> {
    tables: &'a Tables,
    groups: ClassGroups,
    horizon: Option<HorizonReport>,
}

impl<'a> Side<'a> {
    fn new(tables: &'a Tables, settings: &Settings) -> Result<Self, CliError> {
        let ClassCohort { subjects, predictions, groups } = cohort(tables);
        let groups = describe_classes(predictions, subjects, groups, &settings.class, settings.evaluation.level)?;
        let horizon = at_horizon(tables, &settings.evaluation)?.into_iter().next();
        Ok(Self { tables, groups, horizon })
    }

    fn with_class(&self) -> WithClass<'_> {
        let Tables { cohort, rows, groups, models, .. } = self.tables;
        WithClass { cohort, rows, predictions: &models[0].predictions, groups }
    }

    fn record<'b>(&'b self, report: &'b ClassReport) -> OfCohort<'b> {
        let (delong, tpr_at_tnr_step, parity) = (report.delong.as_ref(), report.tpr_at_tnr_step, &report.parity);
        OfCohort { delong, tpr_at_tnr_step, parity, horizon: self.horizon.as_ref(), groups: &self.groups }
    }

    fn censoring(&self) -> Option<&'a CensoringSample> {
        self.tables.times.as_ref().map(|times| &times.censoring_sample)
    }
}

fn cohort(tables: &Tables) -> ClassCohort<'_> {
    let Tables { subjects, groups, models, .. } = tables;
    ClassCohort { subjects, predictions: &models[0].predictions, groups }
}

/// Compares the other data with the test part of the run, writes the files and shows the result.
pub(super) fn run(
    compared: &Compared<'_>,
    settings: &Settings,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let Compared { open, saved, record, folder, tables: other } = compared;
    require_same_unit_of_times(saved, other)?;
    let own = saved.tables(open, Part::Test)?;
    let found = evaluate_class_cohorts(&cohort(&own), &cohort(other), &settings.class, &settings.evaluation)?;
    let (internal, external) = (Side::new(&own, settings)?, Side::new(other, settings)?);
    let reports = CohortReports::of_classes(&found, [&internal.groups, &external.groups]);
    let reports = chosen(reports, &settings.metrics);
    let case_mix = CaseMix::of_classes(&internal.with_class(), &external.with_class());
    let both = InBothCohorts::count(&other.cohort, &saved.cohort, &saved.split);
    let mut notes = other.notes.clone();
    notes.extend(both.note());
    notes.extend(notes_on_attributes(&own.groups, &other.groups));
    let threshold = threshold_of(settings);
    let warnings = all_warnings(&found, [&internal, &external], settings);
    let horizon = internal.horizon.as_ref().zip(external.horizon.as_ref());
    let page = ExternalPage {
        title: &format!("{} on external data", open.file.name),
        internal: &format!("test part of {}", saved.cohort.name),
        external: &other.cohort.name,
        facts: &facts(compared, &threshold),
        reports: &reports,
        case_mix: &case_mix,
        time_unit: if horizon.is_some() { &other.cohort.time_unit } else { "" },
        censoring: external.censoring().map_or("", |sample| of_sample(sample.fitted_on)),
        warnings: &warnings,
        notes: &notes,
        class: Some(ExternalClass {
            threshold: &threshold,
            reports: [&found.internal, &found.external],
            groups: [&internal.groups, &external.groups],
            horizon: horizon.map(|(own, other)| [own, other]),
        }),
        csv: &target.csv_name(),
    };
    let record = Record {
        version: 1,
        task: "binary",
        run: open.folder.path(),
        data: folder.path(),
        predicted_by: record.by(),
        verdict: &external_verdict(&page),
        threshold: &settings.threshold,
        internal_censoring: internal.censoring(),
        external_censoring: external.censoring(),
        in_both_cohorts: both,
        warnings: &warnings,
        notes: &notes,
        case_mix: &case_mix,
        reports: &reports,
        internal_class: internal.record(&found.internal),
        external_class: external.record(&found.external),
    };
    publish(&page, &record, target, outputs)
}

/// Times of both cohorts need one unit, where the class is made from them.
fn require_same_unit_of_times(saved: &Saved, other: &Tables) -> Result<(), CliError> {
    if other.times.is_none() {
        return Ok(());
    }
    require_same_unit(&other.cohort, &saved.cohort.time_unit, "the run")
}

/// The metrics of these names, in their order.
fn chosen(reports: CohortReports, names: &[String]) -> CohortReports {
    let CohortReports { mut internal, mut external, metrics, internal_times, external_times } = reports;
    for report in [&mut internal, &mut external] {
        report.metrics = names.iter().filter_map(|name| report.metric(name).cloned()).collect();
    }
    let of_name = |name: &String| metrics.iter().find(|metric| metric.name == *name).cloned();
    CohortReports {
        metrics: names.iter().filter_map(of_name).collect(),
        internal,
        external,
        internal_times,
        external_times,
    }
}

fn all_warnings(found: &ClassCohorts, [internal, external]: [&Side<'_>; 2], settings: &Settings) -> Vec<String> {
    let n_shared = settings.threshold.validation.as_ref().map_or(0, |validation| validation.n_shared);
    let of_cohort = |name: &str, report: &ClassReport, side: &Side<'_>, n_shared: usize| -> Vec<String> {
        let found = warnings(report, &side.groups, n_shared).into_iter();
        found.map(|warning| format!("In the {name}: {}", warning.text)).collect()
    };
    let own = of_cohort("internal test part", &found.internal, internal, 0);
    [own, of_cohort("external data", &found.external, external, n_shared)].concat()
}

fn facts(compared: &Compared<'_>, threshold: &str) -> Vec<(String, String)> {
    let Compared { open, saved, tables, .. } = compared;
    let mut facts = vec![
        ("run".to_owned(), open.folder.path().display().to_string()),
        ("internal probabilities".to_owned(), saved.path.display().to_string()),
    ];
    facts.extend(tables.facts.iter().cloned());
    facts.push(("threshold".to_owned(), threshold.to_owned()));
    let of_run = facts_of_run(&open.file);
    let wanted = ["backbone", "head", "strategy"];
    facts.extend(of_run.into_iter().filter(|(name, _)| wanted.contains(&name.as_str())));
    facts
}
