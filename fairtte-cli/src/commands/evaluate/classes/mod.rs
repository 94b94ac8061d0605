//! `fairtte evaluate --task binary`: the probabilities of a class that any model predicted.
//!
//! One table has probabilities, classes (or times and events, with `--horizon`) and attributes. What has no meaning for a class is
//! refused (`settings.rs`); files are read and refused as those of curves are (`read.rs`).

mod external;
mod of_predicted;
mod of_run;
mod publish;
mod read;
mod settings;
mod trained;

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{
    ClassGroups, ClassModels, ClassReport, HorizonReport, MetricReport, describe_classes, evaluate_at_horizon,
    evaluate_class_models, evaluate_classes,
};

pub(super) use self::of_predicted::run_of_predicted;
pub(super) use self::of_run::{evaluate_run, run_of_arguments};
use self::publish::Source;
pub(crate) use self::publish::warnings as warnings_of_class;
use self::read::Tables;
pub(crate) use self::settings::SHARED as SETTINGS_OF_CLASSES;
use self::settings::Settings;
pub(super) use self::settings::some_of;
use super::outside::attributes_to_compare;
use super::publish::Target;
use super::{Outputs, dry_run, models};
use crate::CliError;
use crate::args::Evaluate;

pub(super) fn run(arguments: &Evaluate, outputs: &Outputs) -> Result<(), CliError> {
    settings::refuse_what_is_of_curves(arguments)?;
    let missing = || CliError::Bug("clap let evaluate through without its files".to_owned());
    let names = models::names(arguments)?;
    let target = Target::named(arguments.output.as_ref().ok_or_else(missing)?, outputs.part);
    let target = target.apart_from(arguments.tables())?.with_exports(&arguments.exports);
    let attributes = attributes_to_compare(&arguments.attributes, arguments.intersections)?;
    let mut settings = Settings::new(arguments)?;
    let reference = names.as_deref().map_or(Ok(0), |names| models::reference(arguments, names))?;
    if arguments.dry_run {
        let files: Vec<String> = arguments.predictions.iter().map(|file| file.display().to_string()).collect();
        return dry_run(&files.join(", "), arguments, &target, &settings);
    }
    let tables = Tables::read(arguments, names, &attributes)?;
    if let Some(path) = &arguments.classes.validation {
        settings.threshold = read::threshold_of(arguments, path, &tables)?;
        settings.class.threshold = settings.threshold.value;
    }
    let evaluated = Evaluated::new(&tables, &settings, reference)?;
    let of_training: Vec<_> = tables.times.iter().filter_map(|times| times.training.clone()).collect();
    let source = Source { title: arguments.own.title.as_deref(), part: "all", warnings: &of_training };
    publish::publish(&source, &tables, &evaluated, &settings, &target, outputs)
}

/// The numbers of every model.
struct Evaluated {
    /// With the metrics that were requested; of one model there are neither pairs nor trade-offs.
    models: ClassModels,
    groups: Vec<ClassGroups>,
    /// One per model where the class is made from times, otherwise none.
    horizon: Vec<HorizonReport>,
}

impl Evaluated {
    fn new(tables: &Tables, settings: &Settings, reference: usize) -> Result<Self, CliError> {
        let (subjects, groups) = (&tables.subjects, &tables.groups);
        let predictions: Vec<(&str, &ClassPredictions)> =
            tables.models.iter().map(|model| (model.name.as_str(), &model.predictions)).collect();
        let models = match &predictions[..] {
            [(name, only)] => {
                let report = evaluate_classes(only, subjects, groups, &settings.class, &settings.evaluation)?;
                let (pairs, trade_offs) = (Vec::new(), Vec::new());
                ClassModels {
                    reference: (*name).to_owned(),
                    models: vec![((*name).to_owned(), report)],
                    pairs,
                    trade_offs,
                }
            }
            several => {
                let (class, evaluation) = (&settings.class, &settings.evaluation);
                evaluate_class_models(several, reference, subjects, groups, class, evaluation)?
            }
        };
        let describe = |(_, model): &(&str, &ClassPredictions)| {
            describe_classes(model, subjects, groups, &settings.class, settings.evaluation.level)
        };
        let described = predictions.iter().map(describe).collect::<Result<_, _>>()?;
        let horizon = at_horizon(tables, &settings.evaluation)?;
        Ok(Self { models: chosen(models, &settings.metrics), groups: described, horizon })
    }
}

/// The AUC of the class beside that with weights, of every model.
fn at_horizon(tables: &Tables, settings: &EvaluationSettings) -> Result<Vec<HorizonReport>, CliError> {
    let Some(times) = &tables.times else { return Ok(Vec::new()) };
    let subjects = tables.cohort.subjects(&tables.cohort.all_rows());
    // The gaps by chance are those of the metrics of the class.
    let settings = EvaluationSettings { permutations: 0, ..settings.clone() };
    let of_model = |model: &read::Model| {
        let (outcomes, censoring, horizon) = (&times.outcomes, &times.censoring, times.horizon);
        evaluate_at_horizon(&model.probability, outcomes, censoring, horizon, &subjects, &times.groups, &settings)
    };
    Ok(tables.models.iter().map(of_model).collect::<Result<_, _>>()?)
}

/// The metrics of these names, in their order.
fn chosen(models: ClassModels, names: &[String]) -> ClassModels {
    let of_report = |report: ClassReport| {
        let metrics: Vec<MetricReport> = names.iter().filter_map(|name| report.metric(name).cloned()).collect();
        ClassReport { metrics, ..report }
    };
    let ClassModels { reference, models, pairs, trade_offs } = models;
    let is_chosen = |name: &String| names.contains(name);
    ClassModels {
        reference,
        models: models.into_iter().map(|(name, report)| (name, of_report(report))).collect(),
        pairs: pairs.into_iter().filter(|pair| is_chosen(&pair.metric)).collect(),
        trade_offs: trade_offs.into_iter().filter(|of| is_chosen(&of.metric)).collect(),
    }
}
