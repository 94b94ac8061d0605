//! `fairtte explain`: which parts of single inputs the risk that a run predicts depends on.

mod choose;
mod files;
mod maps;
mod page;
mod source;

use std::path::Path;
use std::time::Instant;

use fairtte_data::Part;
use fairtte_fairness::explain::RiskAt;
use fairtte_metrics::Groups;
use serde::Serialize;

use self::files::{MapRecord, Record, SampleRecord};
use self::maps::{Maps, Method, Plan};
use self::source::Source;
use super::predict::Member;
use super::predict::publish::check_horizons;
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Explain, ExplainPart};
use crate::plural::counted;
use crate::progress::say;
use crate::run_folder::{OpenRun, RunFolder, write_text};

/// Largest relative gap of integrated gradients that is not remarked on.
const TOLERATED_GAP: f64 = 0.05;

pub(super) fn run(arguments: &Explain) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    // On a thread of the pool, as a training.
    rayon::scope(|_| explain(arguments))
}

fn explain(arguments: &Explain) -> Result<(), CliError> {
    let started = Instant::now();
    let output = arguments.output.clone().unwrap_or_else(|| RunFolder::new(&arguments.run).explain());
    // Before any weights are read.
    let run = OpenRun::read(&arguments.run)?.file;
    run.require_curves("explain")?;
    run.require_one_kind("maps of a predicted risk are")?;
    let member = Member::open(&arguments.run, arguments.epoch.as_deref(), arguments.device.as_deref())?;
    check_horizons(&[arguments.horizon], member.network()?.times())?;
    let at = RiskAt { horizon: arguments.horizon, reading: member.run.evaluation.reading };
    let plan = Plan::new(arguments, &member)?;
    files::require_own(&output)?;

    let source = Source::open(arguments, &member, &output)?;
    let groups = source.groups(&member)?;
    let shown = shown_groups(&groups, arguments.attribute.as_deref())?;
    let membership = member.membership(&groups, source.cohort.n())?;
    let loader = member.loader(&source.inputs, &source.cohort, membership)?;
    let chosen = match arguments.worst {
        Some(n) => choose::worst(
            n,
            &source.cohort,
            shown.as_ref(),
            at,
            |rows| Ok(member.network()?.survival(&loader, rows)?),
            &member,
        )?,
        None => choose::named(&arguments.samples, &source)?,
    };

    let control = if arguments.randomised {
        let mut control = Member::open(&arguments.run, arguments.epoch.as_deref(), arguments.device.as_deref())?;
        control.network_mut()?.randomise(member.run.training_seed());
        Some(control)
    } else {
        None
    };
    let mut explained = Vec::with_capacity(chosen.len());
    for (index, row) in chosen.iter().enumerate() {
        let sample = source::input(&loader, *row)?;
        let id = &sample.sample_ids[0];
        say(format!("{} of {}: {id}", index + 1, chosen.len()));
        let maps = plan.maps(member.network()?, &sample, at)?;
        for map in maps.iter().filter(|map| map.relative_gap().is_some_and(|gap| gap > TOLERATED_GAP)) {
            let percent = 100.0 * map.relative_gap().unwrap_or_default();
            let help = "more --steps bring it nearer";
            say(format!(
                "note: the integrated gradients of {id} miss the difference of the risks by {percent:.0} %; {help}"
            ));
        }
        let controls = match &control {
            Some(control) => plan.maps(control.network()?, &sample, at)?,
            None => Vec::new(),
        };
        explained.push(Explained { row: *row, sample, maps, controls });
    }
    let view =
        View { arguments, member: &member, plan: &plan, source: &source, shown: shown.as_ref(), groups: groups.all() };
    publish(&view, &explained, &output, started)
}

/// A sample with its maps.
struct Explained {
    /// Of the cohort of the source.
    row: usize,
    sample: fairtte_data::HostBatch,
    maps: Vec<Maps>,
    /// Those of the network with random weights.
    controls: Vec<Maps>,
}

/// What page and record are about.
struct View<'a> {
    arguments: &'a Explain,
    member: &'a Member,
    plan: &'a Plan,
    source: &'a Source,
    shown: Option<&'a Groups>,
    groups: &'a [Groups],
}

/// The groups of the named attribute, or of the first; `None` if there are none.
fn shown_groups(groups: &fairtte_data::FittedAttributes, name: Option<&str>) -> Result<Option<Groups>, CliError> {
    let Some(name) = name else { return Ok(groups.all().first().cloned()) };
    crate::prepared::choose_groups(groups.all(), &[name], "--attribute")
}

fn part_of(part: ExplainPart) -> Part {
    match part {
        ExplainPart::Validation => Part::Validation,
        ExplainPart::Test => Part::Test,
    }
}

/// What is printed for machines.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Published<'a> {
    page: &'a Path,
    #[serde(flatten)]
    record: &'a Record,
}

fn publish(view: &View<'_>, explained: &[Explained], output: &Path, started: Instant) -> Result<(), CliError> {
    let record = files::write(view, explained, output)?;
    let html = page::render(view, explained, &record)?;
    let page = output.join(files::PAGE);
    write_text(&page, &html)?;
    if view.arguments.json {
        return print_json(&Published { page: &page, record: &record });
    }
    for sample in &record.samples {
        print(line(sample, view));
    }
    print(format!("page: {}", page.display()));
    print(format!("numbers: {}, {}", output.join("explain.json").display(), output.join("maps").display()));
    say(format!("done in {:.1} s", started.elapsed().as_secs_f64()));
    Ok(())
}

/// A sample on the terminal.
fn line(sample: &SampleRecord, view: &View<'_>) -> String {
    let (horizon, unit) = (view.arguments.horizon, &view.member.record.time_unit);
    let maps: Vec<String> = sample.maps.iter().map(MapRecord::words).collect();
    format!("{}: risk {:.3} at {horizon} {unit}; {}", sample.sample_id, sample.risk, maps.join("; "))
}

impl Method {
    /// Name of files and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Occlusion => "occlusion",
            Self::IntegratedGradients => "integrated-gradients",
        }
    }

    /// Name on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Occlusion => "occlusion",
            Self::IntegratedGradients => "integrated gradients",
        }
    }
}

/// `2 samples`, for messages.
fn samples(n: usize) -> String {
    counted(n, "sample")
}
