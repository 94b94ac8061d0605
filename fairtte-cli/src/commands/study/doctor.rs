//! `fairtte study doctor`: what keeps a study from finishing, and what helps.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::status::{now, queue};
use super::{planned, timing};
use crate::CliError;
use crate::args::StudyFolderArgument;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::shell::quoted_path;
use crate::study::{
    Failure, FailureClass, Plan, Queue, Sign, Submission, TaskState, TrialState, last_sign, submissions,
};

/// Number of failures at or above which a machine is named.
const MANY_FAILURES: usize = 3;

/// Names that are listed before the rest is counted.
const MOST_NAMED: usize = 5;

/// Bytes at the end of a log that are searched.
const END_OF_LOG: u64 = 16_384;

/// Words of SLURM and of the kernel about insufficient memory.
const OUT_OF_MEMORY: [&str; 4] = ["oom-kill", "oom_kill", "out of memory", "exceeded memory limit"];

/// Something that keeps the study from finishing.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Finding {
    what: String,
    help: String,
}

pub(super) fn run(arguments: &StudyFolderArgument) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    let submitted = submissions(plan.folder())?;
    let queue = queue(&submitted);
    let trials = Trials::of(&plan, now(&plan))?;
    let mut findings: Vec<Finding> = queue.iter().flat_map(held).collect();
    findings.extend(trials.machines());
    findings.extend(trials.memory(&short_of_memory(&plan.folder().logs(), &submitted)));
    findings.extend(trials.given_up(arguments.folder.as_path()));
    findings.extend(trials.gone(queue.as_ref(), timing(&plan).stale));
    if arguments.json {
        return print_json(&findings);
    }
    if findings.is_empty() {
        print("nothing keeps this study from finishing");
    }
    for Finding { what, help } in findings {
        print(format!("{what}\n  {help}"));
    }
    Ok(())
}

/// `a, b, c and 7 more`.
fn some(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Tasks that SLURM holds back until a person releases them, by reason.
fn held(queue: &Queue) -> Vec<Finding> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for task in queue.tasks.iter().filter(|task| task.state == TaskState::Held) {
        by_reason.entry(&task.reason).or_default().push(task.name());
    }
    let finding = |(reason, names): (&str, Vec<String>)| Finding {
        what: format!("{} held: {} ({reason})", counted(names.len(), "task"), some(&names)),
        help: format!("`scontrol release {}` lets them run", names.join(",")),
    };
    by_reason.into_iter().map(finding).collect()
}

/// What the folders of unfinished trials say.
struct Trials {
    /// Place in the manifest and failure.
    failed: Vec<(usize, Failure)>,
    /// Place in the manifest and last heartbeat of those that count as running.
    running: Vec<(usize, Sign)>,
    now: SystemTime,
}

impl Trials {
    fn of(plan: &Plan, now: SystemTime) -> Result<Self, CliError> {
        let stale = timing(plan).stale;
        let (mut failed, mut running) = (Vec::new(), Vec::new());
        for (place, id) in plan.trainings() {
            let folder = plan.folder().trial(id);
            match TrialState::of(&folder, now, stale)? {
                TrialState::Failed(failure) => failed.push((place, failure)),
                TrialState::Running => running.extend(last_sign(&folder)?.map(|sign| (place, sign))),
                _ => {}
            }
        }
        Ok(Self { failed, running, now })
    }

    /// Machines on which trials failed that are not to blame themselves.
    fn machines(&self) -> Vec<Finding> {
        let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
        let is_of_machine = |class| matches!(class, FailureClass::Killed | FailureClass::Unknown);
        for (_, failure) in self.failed.iter().filter(|(_, failure)| is_of_machine(failure.class)) {
            *by_host.entry(&failure.host).or_default() += failure.attempts;
        }
        let finding = |(host, n): (&str, usize)| Finding {
            what: format!("{} on {host}", counted(n, "failure")),
            help: format!("if it is the machine: `fairtte study submit FILE -- --exclude={host}`"),
        };
        by_host.into_iter().filter(|(_, n)| *n >= MANY_FAILURES).map(finding).collect()
    }

    /// Trials that were killed or whose device failed, and tasks whose log speaks of memory.
    fn memory(&self, tasks: &[String]) -> Vec<Finding> {
        let of = |class| {
            let is_it = |(_, failure): &&(usize, Failure)| failure.class == class;
            self.failed.iter().filter(is_it).map(|(place, _)| place.to_string()).collect::<Vec<_>>()
        };
        let (killed, of_device) = (of(FailureClass::Killed), of(FailureClass::Device));
        let mut found = Vec::new();
        if !of_device.is_empty() {
            found.push(Finding {
                what: format!("the device failed in {}: places {}", counted(of_device.len(), "trial"), some(&of_device)),
                help: "`fairtte study status` shows what it reported; where its memory is short, lower training.batch-size \
                       with training.accumulate raised"
                    .to_owned(),
            });
        }
        if !tasks.is_empty() {
            found.push(Finding {
                what: format!("{} ran out of memory: {}", counted(tasks.len(), "task"), some(tasks)),
                help: "raise execute.slurm.mem, or lower training.batch-size with training.accumulate raised"
                    .to_owned(),
            });
        }
        if !killed.is_empty() {
            found.push(Finding {
                what: format!("{} killed: places {}", counted(killed.len(), "trial"), some(&killed)),
                help: "insufficient memory is the usual reason; fewer trials at a time, or more memory for each"
                    .to_owned(),
            });
        }
        found
    }

    /// Trials that are not tried again unless a person asks.
    fn given_up(&self, folder: &Path) -> Vec<Finding> {
        let is_final = |(_, failure): &&(usize, Failure)| failure.is_final();
        let places: Vec<String> = self.failed.iter().filter(is_final).map(|(place, _)| place.to_string()).collect();
        if places.is_empty() {
            return Vec::new();
        }
        vec![Finding {
            what: format!("{} failed for good: places {}", counted(places.len(), "trial"), some(&places)),
            help: format!("`fairtte study trial {} {} --again` tries the first again", quoted_path(folder), places[0]),
        }]
    }

    /// Trials that count as running, but whose task is not in the queue, or that gave no heartbeat for half of the limit.
    fn gone(&self, queue: Option<&Queue>, stale: Duration) -> Vec<Finding> {
        let is_queued = |task: &String| queue.is_none_or(|queue| queue.tasks.iter().any(|known| known.name() == *task));
        let age = |sign: &Sign| self.now.duration_since(sign.at).unwrap_or_default();
        let is_gone = |(_, sign): &&(usize, Sign)| {
            sign.holder.task.as_ref().is_some_and(|task| !is_queued(task)) || age(sign) > stale / 2
        };
        let finding = |(place, sign): &(usize, Sign)| {
            let left = stale.saturating_sub(age(sign)).as_secs();
            let of = sign.holder.task.as_ref().map_or_else(String::new, |task| format!(" of task {task}"));
            Finding {
                what: format!(
                    "place {place} is held by process {}{of} on {}, without a heartbeat for {} s or in no queue",
                    sign.holder.process,
                    sign.holder.machine(),
                    age(sign).as_secs()
                ),
                help: format!("it is free in {left} s; the next `study submit` or `study run` takes it"),
            }
        };
        self.running.iter().filter(is_gone).map(finding).collect()
    }
}

/// Tasks whose log ends with words about insufficient memory.
fn short_of_memory(logs: &Path, submitted: &[Submission]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(logs).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(task) = name.strip_suffix(".log") else { continue };
        let is_ours = task.split_once('_').is_some_and(|(job, _)| submitted.iter().any(|known| known.job == job));
        let end = end_of(&entry.path()).to_ascii_lowercase();
        if is_ours && OUT_OF_MEMORY.iter().any(|words| end.contains(words)) {
            found.push(task.to_owned());
        }
    }
    found.sort();
    found
}

/// The last bytes of a file as text; nothing of one that cannot be read.
fn end_of(path: &Path) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut bytes = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let length = file.metadata().map_or(0, |about| about.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(END_OF_LOG)));
        let _ = file.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use crate::study::{Holder, Task};

    fn failure(class: FailureClass, host: &str, attempts: usize) -> Failure {
        Failure { class, message: String::new(), host: host.to_owned(), process: 7, attempts }
    }

    fn task(index: usize, state: TaskState, reason: &str) -> Task {
        Task { job: "17".to_owned(), index, state, reason: reason.to_owned() }
    }

    #[test]
    fn what_helps_is_said_beside_what_is_wrong() {
        let now = SystemTime::now();
        let sign = |task: Option<&str>, age: u64| Sign {
            holder: Holder {
                host: "n2".to_owned(),
                process: 7,
                task: task.map(str::to_owned),
                restart: None,
                node: None,
            },
            at: now - Duration::from_secs(age),
        };
        let trials = Trials {
            failed: vec![
                (3, failure(FailureClass::Killed, "n1", 3)),
                (4, failure(FailureClass::Unknown, "n2", 2)),
                (5, failure(FailureClass::Data, "n1", 1)),
            ],
            running: vec![
                (6, sign(Some("17_1"), 1)),
                (7, sign(Some("17_9"), 1)),
                (8, sign(None, 400)),
                (9, sign(None, 1)),
            ],
            now,
        };
        let of = |findings: Vec<Finding>| findings.into_iter().map(|finding| finding.what).collect::<Vec<_>>();
        assert_eq!(of(trials.machines()), ["3 failures on n1"], "n2 has two; a data error is not the machine's");
        assert_eq!(of(trials.memory(&[])), ["1 trial killed: places 3"]);
        assert_eq!(of(trials.given_up(Path::new("s"))), ["2 trials failed for good: places 3, 5"]);
        let found = trials.given_up(Path::new("my studies/a"));
        assert_eq!(found[0].help, "`fairtte study trial 'my studies/a' 3 --again` tries the first again");
        let queue = Queue { tasks: vec![task(1, TaskState::Running, "None"), task(2, TaskState::Held, "JobHeldUser")] };
        let stale = Duration::from_mins(10);
        let gone = trials.gone(Some(&queue), stale);
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(gone[0].what.starts_with("place 7 ") && gone[1].what.starts_with("place 8 "), "{gone:?}");
        assert_eq!(trials.gone(None, stale).len(), 1, "without a queue only the clock speaks");
        assert_eq!(of(held(&queue)), ["1 task held: 17_2 (JobHeldUser)"]);
    }

    #[test]
    fn a_device_that_failed_is_no_fault_of_the_machine_and_its_memory_has_advice() {
        let failed = vec![(4, failure(FailureClass::Device, "n1", 3)), (6, failure(FailureClass::Device, "n1", 1))];
        let trials = Trials { failed, running: Vec::new(), now: SystemTime::now() };
        assert!(trials.machines().is_empty());
        let found = trials.memory(&[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].what, "the device failed in 2 trials: places 4, 6");
        assert!(found[0].help.contains("lower training.batch-size"), "{found:?}");
    }

    #[test]
    fn logs_of_this_study_are_searched_for_memory() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("17_0.log", "epoch 3\nslurmstepd: error: Detected 1 oom_kill event in StepId=17.batch.\n");
        write("17_1.log", "all well\n");
        write("18_0.log", "Out of memory\n");
        let submitted = [Submission { job: "17".to_owned(), list: "0001.txt".to_owned(), tasks: 2, trials: 2 }];
        assert_eq!(short_of_memory(folder.path(), &submitted), ["17_0"]);
        let many: Vec<String> = (0..7).map(|n| n.to_string()).collect();
        assert_eq!(some(&many), "0, 1, 2, 3, 4 and 2 more");
    }
}
