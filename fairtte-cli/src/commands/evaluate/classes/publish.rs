//! The output of an evaluation of a class: numbers as JSON and CSV, the page, and the tables on the terminal.

use std::path::Path;

use fairtte_metrics::classification::DeLong;
use fairtte_metrics::evaluation::{
    AttributeParity, ClassGroups, ClassReport, ClassSettings, HorizonReport, MetricReport, ModelPair, ModelReports,
    TradeOff,
};
use fairtte_metrics::{EvaluationReport, EvaluationSettings};
use fairtte_records::{EQUAL_PREDICTIONS, NO_RANKING, Warning};
use serde::Serialize;

use super::super::super::print;
use super::super::models::read::SampleCounts;
use super::super::notes::censoring_sample;
use super::super::publish::{CensoringSample, TERMINAL_WIDTH, Target, colour_is_wanted};
use super::super::{Outputs, Shown};
use super::Evaluated;
use super::read::{Model, Tables};
use super::settings::{Settings, Threshold, shared};
use crate::CliError;
use crate::plural::counted;
use crate::progress::say;
use crate::report::{
    ClassNumbers, ClassPage, ClassSections, ModelsPage, class_models_csv, listed, number, of_level,
    render_class_models, render_class_page, render_class_table, render_models_page, render_models_table, short,
    tables_of_class, tables_of_models, threshold_sentence, write_class,
};
use crate::run_folder::write_text;

/// Name of the warning on groups that are not compared.
const FEW_OF_A_CLASS: &str = "few-of-a-class";
/// Name of the warning on probabilities of 0 and 1.
const CERTAIN: &str = "certain-probabilities";
/// Name of the warning on a threshold that calls everybody the same.
const ONE_DECISION: &str = "one-decision";
/// Name of the warning on samples on which the threshold was chosen too.
const SHARED_SAMPLES: &str = "shared-validation-samples";

/// `evaluation.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    task: &'static str,
    part: &'static str,
    threshold: &'a Threshold,
    has_subjects: bool,
    /// The sample that the censoring curve was fitted on, where the class is made from times.
    #[serde(skip_serializing_if = "Option::is_none")]
    censoring: Option<&'a CensoringSample>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    notes: &'a [String],
    class: &'a ClassSettings,
    #[serde(serialize_with = "shared")]
    settings: &'a EvaluationSettings,
    #[serde(flatten)]
    content: Content<'a>,
}

/// One model, or several.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    One(Box<OfModel<'a>>),
    #[serde(rename_all = "kebab-case")]
    Several {
        reference: &'a str,
        samples: &'a SampleCounts,
        models: Vec<OfModel<'a>>,
        /// Every model but the reference minus the reference.
        differences: &'a [ModelPair],
        trade_offs: &'a [TradeOff],
    },
}

/// The numbers of one model.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OfModel<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    predictions: &'a Path,
    ignored_columns: &'a [String],
    /// Probabilities that were outside [0, 1] by noise.
    n_noisy: usize,
    warnings: &'a [Warning],
    n: usize,
    n_positive: usize,
    n_subjects: usize,
    metrics: &'a [MetricReport],
    delong: Option<&'a DeLong>,
    tpr_at_tnr_step: Option<f64>,
    parity: &'a [AttributeParity],
    /// Where the class is made from times.
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon: Option<&'a HorizonReport>,
    groups: &'a ClassGroups,
}

/// What is evaluated, for its page.
pub(super) struct Source<'a> {
    /// Heading; a usual one if there is none.
    pub(super) title: Option<&'a str>,
    /// The part of a run, or `all`.
    pub(super) part: &'static str,
    /// What a training said of itself, and what is said of the sample of the censoring curve.
    pub(super) warnings: &'a [Warning],
}

/// Writes the three files and shows the result.
pub(super) fn publish(
    source: &Source<'_>,
    tables: &Tables,
    found: &Evaluated,
    settings: &Settings,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let n_shared = settings.threshold.validation.as_ref().map_or(0, |validation| validation.n_shared);
    let warnings: Vec<Vec<Warning>> = found
        .models
        .models
        .iter()
        .zip(&found.groups)
        .map(|((_, report), groups)| [source.warnings.to_vec(), warnings(report, groups, n_shared)].concat())
        .collect();
    let threshold = threshold_of(settings);
    let record = Record {
        task: "binary",
        part: source.part,
        threshold: &settings.threshold,
        has_subjects: tables.has_subjects,
        censoring: tables.times.as_ref().map(|times| &times.censoring_sample),
        title: source.title,
        notes: &tables.notes,
        class: &settings.class,
        settings: &settings.evaluation,
        content: content(tables, found, &warnings),
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(target.evaluation(), &text)?;
    let mut facts = tables.facts.clone();
    facts.push(("threshold".to_owned(), threshold.clone()));
    let shown = Shared { title: source.title, tables, facts: &facts, threshold: &threshold, warnings: &warnings };
    let terminal = match &found.models.models[..] {
        [(_, report)] => one(&shown, found, report, target)?,
        _ => several(&shown, found, target)?,
    };
    let named = found.models.models.iter().zip(&warnings).flat_map(|((name, _), warnings)| {
        let is_one = warnings_of_one(found);
        warnings
            .iter()
            .map(move |warning| if is_one { warning.text.clone() } else { format!("{name}: {}", warning.text) })
    });
    named.for_each(|warning| say(format!("warning: {warning}")));
    tables.notes.iter().for_each(|note| say(format!("note: {note}")));
    match outputs.shown {
        Shown::Json => {
            print(text);
            return Ok(());
        }
        Shown::Table => {
            print(terminal);
            target.written().into_iter().for_each(print);
        }
        _ => {}
    }
    say(format!("done in {:.1} s", outputs.started.elapsed().as_secs_f64()));
    Ok(())
}

/// Where the threshold comes from, in a sentence.
pub(super) fn threshold_of(settings: &Settings) -> String {
    let Threshold { value, chosen, validation } = &settings.threshold;
    let files = validation.as_ref().map(|of| (of.file.display().to_string(), of.f1, of.n, of.n_positive));
    let from = files.as_ref().map(|(file, f1, n, n_positive)| (file.as_str(), *f1, *n, *n_positive));
    threshold_sentence(*value, *chosen == "given", from)
}

fn warnings_of_one(found: &Evaluated) -> bool {
    found.models.models.len() == 1
}

fn content<'a>(tables: &'a Tables, found: &'a Evaluated, warnings: &'a [Vec<Warning>]) -> Content<'a> {
    let of_model = |place: usize, name: Option<&'a str>| {
        let Model { path, n_noisy, ignored, .. } = &tables.models[place];
        let ClassReport { n, n_positive, n_subjects, metrics, delong, tpr_at_tnr_step, parity, .. } =
            &found.models.models[place].1;
        OfModel {
            name,
            predictions: path,
            ignored_columns: ignored,
            n_noisy: *n_noisy,
            warnings: &warnings[place],
            n: *n,
            n_positive: *n_positive,
            n_subjects: *n_subjects,
            metrics,
            delong: delong.as_ref(),
            tpr_at_tnr_step: *tpr_at_tnr_step,
            parity,
            horizon: found.horizon.get(place),
            groups: &found.groups[place],
        }
    };
    if warnings_of_one(found) {
        return Content::One(Box::new(of_model(0, None)));
    }
    let names = found.models.models.iter().enumerate();
    Content::Several {
        reference: &found.models.reference,
        samples: &tables.samples,
        models: names.map(|(place, (name, _))| of_model(place, Some(name))).collect(),
        differences: &found.models.pairs,
        trade_offs: &found.models.trade_offs,
    }
}

/// What the page of one model and that of several have in common.
struct Shared<'a> {
    title: Option<&'a str>,
    tables: &'a Tables,
    facts: &'a [(String, String)],
    threshold: &'a str,
    warnings: &'a [Vec<Warning>],
}

impl Shared<'_> {
    fn censoring(&self) -> &'static str {
        self.tables.times.as_ref().map_or("", |times| censoring_sample(times.censoring_sample.fitted_on, None))
    }

    fn time_unit(&self) -> &str {
        if self.tables.times.is_some() { &self.tables.cohort.time_unit } else { "" }
    }

    /// The page of the model at this place, with its report in both forms.
    fn page<'a>(
        &'a self,
        found: &'a Evaluated,
        place: usize,
        (report, evaluation): (&'a ClassReport, &'a EvaluationReport),
        csv: &'a str,
    ) -> ClassPage<'a> {
        ClassPage {
            title: self.title.unwrap_or("Evaluation of the probabilities of a class"),
            subtitle: &self.tables.cohort.name,
            facts: self.facts,
            numbers: ClassNumbers {
                report,
                evaluation,
                groups: &found.groups[place],
                horizon: found.horizon.get(place),
                time_unit: self.time_unit(),
            },
            censoring: self.censoring(),
            threshold: self.threshold,
            warnings: &self.warnings[place],
            notes: &self.tables.notes,
            csv,
        }
    }
}

/// Writes the page and the flat table of one model; returns what the terminal shows.
fn one(shared: &Shared<'_>, found: &Evaluated, report: &ClassReport, target: &Target) -> Result<String, CliError> {
    let evaluation = EvaluationReport::of_class(report, &found.groups[0]);
    let csv = target.csv_name();
    let page = shared.page(found, 0, (report, &evaluation), &csv);
    write_class(&target.csv(), &page)?;
    target.write_page(&render_class_page(&page)?, || tables_of_class(&page))?;
    Ok(render_class_table(&page, TERMINAL_WIDTH, colour_is_wanted()))
}

/// The same of several models.
fn several(shared: &Shared<'_>, found: &Evaluated, target: &Target) -> Result<String, CliError> {
    let reports = ModelReports::of_classes(&found.models, &found.groups);
    let names: Vec<&str> = found.models.models.iter().map(|(name, _)| name.as_str()).collect();
    let by_names = format!("Comparison of {}", listed(&names));
    let warnings: Vec<String> = names
        .iter()
        .zip(shared.warnings)
        .flat_map(|(name, warnings)| warnings.iter().map(move |warning| format!("{name}: {}", warning.text)))
        .collect();
    let csv_name = target.csv_name();
    let of_models = found.models.models.iter().zip(&reports.models).enumerate();
    let pages: Vec<ClassPage<'_>> = of_models
        .map(|(place, ((_, report), (_, evaluation)))| shared.page(found, place, (report, evaluation), &csv_name))
        .collect();
    let sections = ClassSections::of(&pages, &found.models, &found.horizon);
    let csv = class_models_csv(&found.models, &reports, &found.groups, &found.horizon)?;
    let page = ModelsPage {
        title: shared.title.unwrap_or(&by_names),
        subtitle: "",
        facts: shared.facts,
        reports: &reports,
        time_unit: shared.time_unit(),
        censoring: shared.censoring(),
        warnings: &warnings,
        notes: &shared.tables.notes,
        csv: (&csv_name, &csv),
        class: Some(&sections),
    };
    write_text(&target.csv(), &csv)?;
    let of_papers = || tables_of_models(&page).into_iter().chain(sections.sheets()).collect();
    target.write_page(&render_models_page(&page)?, of_papers)?;
    let table = render_models_table(&reports, TERMINAL_WIDTH);
    let own = render_class_models(&found.models, &found.horizon, TERMINAL_WIDTH);
    Ok(format!("{}\n{table}{own}", shared.threshold))
}

/// What must be read before the numbers of one model; the threshold was chosen on `n_shared` of the evaluated samples.
pub(crate) fn warnings(report: &ClassReport, groups: &ClassGroups, n_shared: usize) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |name: &str, text: String| found.push(Warning { name: name.to_owned(), text });
    let all = &groups.summary[0];
    let auc = report.metric("auc").map(|metric| &metric.overall);
    if groups.roc[0].false_positive.len() == 2 {
        warn(
            EQUAL_PREDICTIONS,
            format!(
                "All {} probabilities are equal: the model does not distinguish any samples. AUC and its gaps between groups are \
                 those of random guessing and say nothing about fairness.",
                report.n
            ),
        );
    } else if let Some((value, lower, upper)) = auc.and_then(|auc| Some((auc.value?, auc.lower?, auc.upper?))) {
        if upper < 0.5 {
            warn(
                NO_RANKING,
                format!(
                    "The AUC is {} ({} to {}), below 0.5: the model ranks worse than guessing. The probabilities may be those of the \
                     other class.",
                    number(value),
                    number(lower),
                    number(upper)
                ),
            );
        } else if lower <= 0.5 {
            warn(
                NO_RANKING,
                format!(
                    "The AUC is {} ({} to {}): it is not shown to be better than 0.5, the value of random guessing, and gaps between groups of a \
                     model that guesses say nothing about fairness.",
                    number(value),
                    number(lower),
                    number(upper)
                ),
            );
        }
    }
    if all.n_certain == all.n {
        warn(
            CERTAIN,
            "All probabilities are 0 or 1: they look like decisions. Calibration slope and intercept are undefined, and ROC and \
             calibration have a single point."
                .to_owned(),
        );
    } else if all.n_certain > 0 {
        let of_groups: Vec<String> = groups.summary[1..]
            .iter()
            .filter(|of| of.n_certain > 0)
            .map(|of| {
                let name = of.attribute.as_deref().zip(of.level.as_deref());
                let (attribute, level) = name.unwrap_or_default();
                format!("{} ({})", of_level(attribute, level), of.n_certain)
            })
            .collect();
        let of_groups =
            if of_groups.is_empty() { String::new() } else { format!(", also of {}", of_groups.join(", ")) };
        warn(
            CERTAIN,
            format!(
                "Probabilities of 0 or 1, which have no logit: {} of {}. Calibration slope and intercept are undefined{of_groups}. BCE \
                 takes them as 2^-52 away from their end.",
                all.n_certain, all.n
            ),
        );
    }
    if let Some(counts) = all.decisions {
        let called = counts.true_positive + counts.false_positive;
        let who = if called <= 0.0 { "nobody" } else { "everybody" };
        if called <= 0.0 || called >= all.n as f64 {
            let threshold = short(report.class.threshold);
            warn(
                ONE_DECISION,
                format!("At the threshold {threshold} {who} is called positive: decisions say nothing about groups."),
            );
        }
    }
    let few = few_of_a_class(groups, report.settings.min_events);
    if !few.is_empty() {
        let needed = report.settings.min_events;
        warn(
            FEW_OF_A_CLASS,
            format!("Groups with fewer than {needed} samples of a class are in no comparison: {}.", few.join("; ")),
        );
    }
    if n_shared > 0 {
        let n = counted(n_shared, "sample");
        warn(
            SHARED_SAMPLES,
            format!(
                "The threshold was chosen on {n} that are evaluated too, or of subjects that are: decisions look better than they are."
            ),
        );
    }
    found
}

/// The groups with too few positive or negative samples, with both numbers.
fn few_of_a_class(groups: &ClassGroups, min_events: usize) -> Vec<String> {
    let of_groups = groups.summary[1..].iter().filter(|of| of.n > 0);
    let few = of_groups.filter(|of| of.n_positive.min(of.n - of.n_positive) < min_events);
    let name = |of: &fairtte_metrics::evaluation::ClassSummary| {
        let (attribute, level) = (of.attribute.as_deref().unwrap_or(""), of.level.as_deref().unwrap_or(""));
        let group = of_level(attribute, level);
        format!("{group} ({} positive, {} negative)", of.n_positive, of.n - of.n_positive)
    };
    few.map(name).collect()
}
