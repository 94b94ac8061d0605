//! `fairtte study status` and `fairtte study commands`: what is done and what is open, from files alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use serde::Serialize;

use super::run::open;
use super::{planned, timing};
use crate::CliError;
use crate::args::{StudyCommands, StudyFolderArgument};
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::progress::say;
use crate::shell::quoted_path;
use crate::study::{Ladder, Next, Plan, Queue, Submission, TaskState, TrialState, submissions, time_of_server};

/// Places in the manifest, and machines.
type Where = (Vec<usize>, BTreeSet<String>);

/// Numbers of trainings by state.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Counts {
    pub(super) done: usize,
    /// The method cannot be trained on the data.
    pub(super) refused: usize,
    /// Of them, those whose loss left the range of numbers.
    pub(super) diverged: usize,
    /// Stopped permanently by successive halving.
    pub(super) stopped: usize,
    pub(super) running: usize,
    pub(super) failed: usize,
    pub(super) to_do: usize,
    /// Reasons of refusals and failures, with their numbers and the first places in the manifest.
    pub(super) reasons: Vec<Reason>,
}

/// A reason and the trials that have it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Reason {
    what: &'static str,
    because: String,
    n: usize,
    places: Vec<usize>,
    /// Machines on which it happened.
    hosts: BTreeSet<String>,
}

impl Reason {
    fn line(&self) -> String {
        let Self { what, because, n, places, hosts } = self;
        let places = places.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let more = if *n > MOST_PLACES { ", .." } else { "" };
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let on = if hosts.is_empty() { String::new() } else { format!(" on {}", hosts.join(", ")) };
        format!("{what}: {} ({places}{more}){on}: {because}", counted(*n, "trial"))
    }
}

/// Places that are named per reason.
const MOST_PLACES: usize = 5;

impl Counts {
    pub(super) fn of(plan: &Plan) -> Result<Self, CliError> {
        let (now, stale) = (now(plan), timing(plan).stale);
        let ladder = Ladder::read(plan)?;
        let is_stopped = |id: &str| ladder.as_ref().is_some_and(|ladder| ladder.next(id) == Next::Stopped);
        let mut counts = Self::default();
        let mut reasons: BTreeMap<(&'static str, String), Where> = BTreeMap::new();
        for (index, id) in plan.trainings() {
            match TrialState::of(&plan.folder().trial(id), now, stale)? {
                TrialState::Done => counts.done += 1,
                TrialState::Running => counts.running += 1,
                TrialState::AtRung(_) if is_stopped(id) => counts.stopped += 1,
                TrialState::ToDo | TrialState::AtRung(_) => counts.to_do += 1,
                TrialState::Refused(refusal) => {
                    counts.refused += 1;
                    counts.diverged += usize::from(refusal.diverged);
                    let what = if refusal.diverged { "diverged" } else { "not trained" };
                    reasons.entry((what, refusal.because)).or_default().0.push(index);
                }
                TrialState::Failed(failure) => {
                    counts.failed += 1;
                    let because = failure.message.lines().next_back().unwrap_or_default().to_owned();
                    let entry = reasons.entry((failure.class.name(), because)).or_default();
                    entry.0.push(index);
                    entry.1.insert(failure.host);
                }
            }
        }
        let reason = |((what, because), (places, hosts)): ((&'static str, String), Where)| Reason {
            what,
            because,
            n: places.len(),
            places: places.into_iter().take(MOST_PLACES).collect(),
            hosts,
        };
        counts.reasons = reasons.into_iter().map(reason).collect();
        Ok(counts)
    }

    /// Different trainings.
    pub(super) fn n(&self) -> usize {
        self.done + self.refused + self.stopped + self.running + self.failed + self.to_do
    }

    /// Whether every training ended with a result.
    pub(super) fn is_finished(&self) -> bool {
        self.running + self.failed + self.to_do == 0
    }

    /// Every reason in one line.
    pub(super) fn lines(&self) -> Vec<String> {
        self.reasons.iter().map(Reason::line).collect()
    }

    /// `12 done, 2 not trained, 1 running, 3 failed, 18 to do`.
    pub(super) fn sentence(&self) -> String {
        let Self { done, refused, stopped, running, failed, to_do, .. } = self;
        let named = [
            (done, "done"),
            (refused, "not trained"),
            (stopped, "stopped early"),
            (running, "running"),
            (failed, "failed"),
            (to_do, "to do"),
        ];
        let words: Vec<String> = named
            .iter()
            .filter(|(n, name)| **n > 0 || *name == "done")
            .map(|(n, name)| format!("{n} {name}"))
            .collect();
        words.join(", ")
    }
}

/// The time of the file server. The folder of another person may not be written to: then the clock of this machine must do.
pub(super) fn now(plan: &Plan) -> SystemTime {
    time_of_server(plan.folder().path()).unwrap_or_else(|_| SystemTime::now())
}

/// The state of the submitted jobs in SLURM; a failure is reported, and the rest is read from the files.
pub(super) fn queue(submitted: &[Submission]) -> Option<Queue> {
    Queue::of(submitted).unwrap_or_else(|problem| {
        say(problem);
        None
    })
}

/// States, and what SLURM knows about the tasks that were submitted.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Status {
    #[serde(flatten)]
    counts: Counts,
    /// Absent if nothing was submitted, or the machine has no `squeue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Tasks>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Tasks {
    running: usize,
    pending: usize,
    held: usize,
}

impl Tasks {
    fn of(queue: &Queue) -> Self {
        let [running, pending, held] =
            [TaskState::Running, TaskState::Pending, TaskState::Held].map(|state| queue.count(state));
        Self { running, pending, held }
    }

    fn sentence(&self) -> String {
        let Self { running, pending, held } = self;
        let held = if *held > 0 { format!(", {held} held (`fairtte study doctor` says why)") } else { String::new() };
        format!("SLURM: {running} running, {pending} pending{held}")
    }
}

pub(super) fn run(arguments: &StudyFolderArgument) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    let counts = Counts::of(&plan)?;
    let queue = queue(&submissions(plan.folder())?);
    let status = Status { counts, tasks: queue.as_ref().map(Tasks::of) };
    if arguments.json {
        return print_json(&status);
    }
    print(status.counts.sentence());
    status.counts.lines().iter().for_each(|line| print(format!("  {line}")));
    if let Some(tasks) = &status.tasks {
        print(tasks.sentence());
    }
    Ok(())
}

/// One line per pack of open trials.
pub(super) fn commands(arguments: &StudyCommands) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    let open = open(&plan, &[])?;
    let folder = std::path::absolute(plan.folder().path()).unwrap_or_else(|_| plan.folder().path().to_owned());
    for pack in open.chunks(usize::from(arguments.pack)) {
        let places: Vec<String> = pack.iter().map(|(index, _)| index.to_string()).collect();
        print(format!("fairtte study trial {} {}", quoted_path(&folder), places.join(" ")));
    }
    Ok(())
}
