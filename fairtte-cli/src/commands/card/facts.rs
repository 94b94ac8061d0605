//! What the files of a run say of how it was trained and on what, as names and values. Paths are cut to the names of the
//! files: a card is published.

use std::path::Path;

use fairtte_data::cohort::Threshold;
use fairtte_data::features::TabularFeatures;
use fairtte_data::split::SplitRecord;
use fairtte_data::{AttributeConfig, Cohort};
use fairtte_records::{EpochReport, Monitor};

use crate::CliError;
use crate::plural::counted;
use crate::report::short;
use crate::run_file::{RunFile, TaskKind, Written};
use crate::run_folder::{Kept, Methods, RunFolder, read_json};

type Facts = Vec<(&'static str, String)>;

/// What is predicted.
const CURVES: &str = "for every sample a curve: the probability that the event has not occurred by each time";
const PROBABILITY: &str = "for every sample the probability of the positive class";
/// Shown for what earlier versions did not write into the run folder.
const NOT_RECORDED: &str = "not recorded by the version that trained it";

/// What was trained and how.
///
/// # Errors
/// [`CliError::RunFolder`] if a file is missing or has other content.
pub(super) fn of_model(run: &RunFile, folder: &RunFolder) -> Result<Facts, CliError> {
    let (kept, epochs, written) = (folder.kept()?, folder.epochs()?, run.written());
    let about =
        |of: fn(&Methods) -> &String| kept.methods.as_ref().map_or(NOT_RECORDED, |methods| of(methods).as_str());
    if let Some(estimator) = kept.methods.as_ref().and_then(|methods| methods.estimator.as_ref()) {
        return of_estimator(run, folder, &kept, &written, estimator);
    }
    let (backbone, head) = (written.word("model.backbone"), written.choice_with_settings("head"));
    let (prediction, times) = if run.task.kind == TaskKind::Binary {
        let class = run.task.binary.map(|binary| ("class", format!("an event by time {}", short(binary.horizon))));
        (PROBABILITY, class)
    } else {
        (
            CURVES,
            Some(("times", format!("{} cut points, {}", written.word("time.intervals"), written.word("time.grid")))),
        )
    };
    let strategy = written.choice_with_settings("strategy");
    let mut facts = vec![
        ("trained", trained_on(&epochs)),
        ("trained with", kept.fairtte.clone().map_or_else(|| NOT_RECORDED.to_owned(), |v| format!("fairtte {v}"))),
        ("prediction", prediction.to_owned()),
        ("input", input(run, folder)?),
        ("backbone", format!("{backbone}: {}", about(|methods| &methods.backbone))),
        ("head", format!("{head}: {}", about(|methods| &methods.head))),
    ];
    facts.extend(times);
    facts.extend([
        ("training strategy", format!("{strategy}: {}", about(|methods| &methods.strategy))),
        ("attributes in the training", used_attributes(run, &kept)),
        ("initial weights", initial_weights(run, &written)),
        ("epochs", chosen_epoch(&kept, &epochs, &written)),
        ("optimiser", optimiser(&written)),
        ("seed", seeds(run)),
        ("device", run.device.clone()),
    ]);
    Ok(facts)
}

/// The same of an estimator.
fn of_estimator(
    run: &RunFile,
    folder: &RunFolder,
    kept: &Kept,
    written: &Written,
    summary: &str,
) -> Result<Facts, CliError> {
    let version = kept.fairtte.clone().map_or_else(|| NOT_RECORDED.to_owned(), |version| format!("fairtte {version}"));
    Ok(vec![
        ("trained with", version),
        ("prediction", CURVES.to_owned()),
        ("input", input(run, folder)?),
        ("estimator", format!("{}: {summary}", written.choice_with_settings("estimator"))),
        ("times", format!("{} cut points, {}", written.word("time.intervals"), written.word("time.grid"))),
        ("attributes in the training", "none: an estimator reads no groups".to_owned()),
        ("seed", seeds(run)),
    ])
}

/// The day on which the last epoch ended.
fn trained_on(epochs: &[EpochReport]) -> String {
    // Runs of earlier versions have 0.
    let ended = epochs.last().map(|epoch| epoch.ended).filter(|ended| *ended > 0.0);
    #[expect(clippy::cast_possible_truncation, reason = "a number out of range is no time, which jiff refuses")]
    let at = ended.and_then(|ended| jiff::Timestamp::from_second(ended as i64).ok());
    at.map_or_else(|| NOT_RECORDED.to_owned(), |at| format!("{} (UTC)", at.strftime("%Y-%m-%d")))
}

fn input(run: &RunFile, folder: &RunFolder) -> Result<String, CliError> {
    let path = folder.features();
    if run.reads_columns() && path.exists() {
        let features: TabularFeatures = read_json(&path)?;
        let names: Vec<&str> = features.columns.iter().map(|column| column.column.as_str()).collect();
        let left_out: Vec<String> = features.left_out.iter().map(|c| format!("{} ({})", c.column, c.reason)).collect();
        let without = if left_out.is_empty() { String::new() } else { format!("; left out: {}", left_out.join(", ")) };
        let of = if run.is_tabular() { "a table" } else { "the attributes of the images" };
        return Ok(format!("{} of {of}: {}{without}", counted(names.len(), "column"), names.join(", ")));
    }
    if run.is_tabular() {
        return Ok("columns of a table".to_owned());
    }
    let sides = |size: &[usize]| size.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
    let stored = sides(&run.image.size);
    let size = match &run.augmentation.crop {
        Some(crop) => {
            format!("{}, cropped from {stored} (in the training at random, otherwise the centre)", sides(crop))
        }
        None => stored,
    };
    let kind = if run.image.size.len() == 3 { "volumes" } else { "pictures" };
    let written = run.written();
    let channels = counted(run.image.channels, "channel");
    let augmentation = match run.augmentation()? {
        Some(augmentation) if !augmentation.is_identity() => written.settings("augmentation"),
        _ => "none".to_owned(),
    };
    Ok(format!(
        "{kind} of {size}, {channels}, intensities: {}; augmentation: {augmentation}",
        written.word("intensity")
    ))
}

/// The attributes that the training reads.
fn used_attributes(run: &RunFile, kept: &Kept) -> String {
    let names = run.training_attributes();
    match (kept.reads_groups.unwrap_or_else(|| run.strategy_reads_groups()), names.is_empty()) {
        (true, false) => format!("{}: the strategy reads the groups", names.join(" x ")),
        _ => "none: the strategy reads no groups".to_owned(),
    }
}

fn initial_weights(run: &RunFile, written: &Written) -> String {
    if run.pretrained.is_none() {
        return "random".to_owned();
    }
    let path = written.word("pretrained.path");
    let file = Path::new(&path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
    match written.word("pretrained.sha256").as_str() {
        "" => format!("{file} (hash {NOT_RECORDED})"),
        hash => format!("{file}, SHA-256 {hash}"),
    }
}

fn chosen_epoch(kept: &Kept, epochs: &[EpochReport], written: &Written) -> String {
    let (epoch, monitor) = (kept.epoch, &kept.monitor);
    let about = Monitor::ALL.into_iter().find(|known| known.name() == monitor);
    let about = about.map_or_else(String::new, |known| format!(", {}", known.summary()));
    let value = epochs.iter().find(|found| found.epoch == epoch).map(|found| found.validation.monitored);
    let value = value.map_or_else(String::new, |value| format!(": {value:.4}"));
    let (n, most) = (epochs.len(), written.word("training.epochs"));
    let weights = kept.weights.clone().unwrap_or_else(|| format!("epoch {epoch}"));
    format!(
        "trained for {n} of at most {most}; the weights are those of {weights}, chosen on the validation part by {monitor}{about}{value}"
    )
}

fn optimiser(written: &Written) -> String {
    let (rate, decay) = (written.word("optimiser.learning-rate"), written.word("optimiser.weight-decay"));
    let batch = written.word("training.batch-size");
    let schedule = written.choice_with_settings("training.schedule");
    format!("AdamW, learning rate {rate}, weight decay {decay}, batches of {batch}, schedule {schedule}")
}

fn seeds(run: &RunFile) -> String {
    match run.training_seed {
        Some(training) if training != run.seed => format!("{}, of the training {training}", run.seed),
        _ => run.seed.to_string(),
    }
}

/// Where samples and labels come from.
pub(super) fn of_data(cohort: &Cohort, record: &SplitRecord, is_class_of_column: bool) -> Facts {
    let samples = counted(cohort.n(), "sample");
    let subjects = counted(cohort.n_subjects(), "subject");
    let (event, rule) = if is_class_of_column { ("positive sample", "class") } else { ("event", "event and time") };
    let mut facts = vec![
        ("data set", cohort.name.clone()),
        ("size", format!("{samples} of {subjects}, {}", counted(cohort.n_events(), event))),
    ];
    if !cohort.time_unit.is_empty() && !is_class_of_column {
        facts.push(("unit of time", cohort.time_unit.clone()));
    }
    if let Some(provenance) = &cohort.provenance {
        facts.push(("reader", provenance.adapter.clone()));
        facts.push((rule, format!("{} (rule version {})", provenance.rule, provenance.rule_version)));
        let options: Vec<String> = provenance.options.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if !options.is_empty() {
            facts.push(("options of the rule", options.join(", ")));
        }
        facts.push(("content hash (BLAKE3)", provenance.content_hash.clone()));
        facts.extend(provenance.notes.iter().map(|note| ("note", note.clone())));
    }
    facts.extend(record.notes.iter().map(|note| ("note", note.clone())));
    facts
}

/// How the samples were divided into parts.
pub(super) fn of_split(record: &SplitRecord) -> String {
    let method = match record.config.file.as_deref().and_then(Path::file_name) {
        Some(file) => format!("parts of {}", file.to_string_lossy()),
        None => record.method.clone(),
    };
    let counts = record.subjects;
    format!(
        "{method}, seed {}: {} train, {} validation, {} test",
        record.seed, counts.train, counts.validation, counts.test
    )
}

/// How an attribute becomes groups.
pub(super) fn of_attribute(config: &AttributeConfig) -> String {
    match (&config.threshold, &config.reference, &config.levels) {
        (Some(Threshold::Value(value)), ..) => format!("cut at {value}"),
        (Some(Threshold::Values(values)), ..) => {
            format!("cut at {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        (Some(Threshold::Median), ..) => "cut at the median of the training part".to_owned(),
        (None, Some(reference), _) => format!("{reference} against all others"),
        (None, None, Some(_)) => "levels named in the run file".to_owned(),
        (None, None, None) => "levels found in the training part".to_owned(),
    }
}
