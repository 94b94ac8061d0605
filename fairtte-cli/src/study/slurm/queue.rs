//! The commands of SLURM, each called at most once, and the record of what was submitted.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::deal::Limits;
use super::script::Call;
use crate::CliError;
use crate::run_folder::{read_json, write_json};
use crate::study::StudyFolder;

/// An array that was submitted; a line of `submitted.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Submission {
    /// Number of the array.
    pub(crate) job: String,
    /// Its list in `todo/`.
    pub(crate) list: String,
    pub(crate) tasks: usize,
    pub(crate) trials: usize,
}

/// What was submitted for a study.
///
/// # Errors
/// [`CliError::RunFolder`] if `submitted.json` cannot be read.
pub(crate) fn submissions(folder: &StudyFolder) -> Result<Vec<Submission>, CliError> {
    let path = folder.submitted();
    if path.exists() { read_json(&path) } else { Ok(Vec::new()) }
}

/// Records what was submitted for a study.
///
/// # Errors
/// [`CliError::Data`] if the file cannot be written.
pub(crate) fn write_submissions(folder: &StudyFolder, all: &[Submission]) -> Result<(), CliError> {
    write_json(&folder.submitted(), all)
}

/// The output of a command of SLURM; `None` if there is no such command.
fn ask(program: &str, arguments: &[String]) -> Option<Result<String, String>> {
    match Command::new(program).args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
        Ok(output) if output.status.success() => Some(Ok(String::from_utf8_lossy(&output.stdout).into_owned())),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().lines().collect::<Vec<_>>().join("; ");
            Some(Err(if said.is_empty() { output.status.to_string() } else { said }))
        }
    }
}

fn refused(program: &str, message: String) -> CliError {
    CliError::RunFolder { path: program.into(), problem: message }
}

fn absent(program: &str) -> CliError {
    let problem = "there is no such command on this machine; `study submit --print` shows the script, and `study commands` \
                   prints lines for other engines";
    refused(program, problem.to_owned())
}

/// The limits of the cluster, by one call of `scontrol`; `None` if there is none.
///
/// # Errors
/// [`CliError::RunFolder`] if `scontrol` fails, or the cluster has no arrays.
pub(crate) fn limits() -> Result<Option<Limits>, CliError> {
    let Some(said) = ask("scontrol", &["show".to_owned(), "config".to_owned()]) else { return Ok(None) };
    let limits = Limits::parse(&said.map_err(|message| refused("scontrol show config", message))?);
    if limits.max_array_size == 0 {
        let problem =
            "MaxArraySize is 0: this cluster has no job arrays; `study commands` prints lines for other engines";
        return Err(refused("scontrol show config", problem.to_owned()));
    }
    Ok(Some(limits))
}

/// Submits an array; returns its number.
///
/// # Errors
/// [`CliError::RunFolder`] if there is no `sbatch`, or it refuses.
pub(crate) fn submit(call: &Call) -> Result<String, CliError> {
    let said = ask("sbatch", &call.arguments()).ok_or_else(|| absent("sbatch"))?;
    let said = said.map_err(|message| refused("sbatch", message))?;
    // `17`, or `17;cluster`.
    let job = said.trim().lines().next_back().and_then(|line| line.split(';').next()).unwrap_or_default();
    if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused("sbatch", format!("it printed {said:?}, expected the number of a job")));
    }
    Ok(job.to_owned())
}

impl Limits {
    /// The limits of the cluster, or why nothing can be submitted.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if there is no SLURM.
    pub(crate) fn of_cluster() -> Result<Self, CliError> {
        limits()?.ok_or_else(|| absent("sbatch"))
    }
}

/// The state of a task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TaskState {
    Pending,
    /// Pending until a person releases it.
    Held,
    Running,
}

/// A task in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Task {
    pub(crate) job: String,
    pub(crate) index: usize,
    pub(crate) state: TaskState,
    /// Why it is pending.
    pub(crate) reason: String,
}

impl Task {
    /// `17_3`, as SLURM names it.
    pub(crate) fn name(&self) -> String {
        format!("{}_{}", self.job, self.index)
    }
}

/// The tasks of a study that SLURM knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) tasks: Vec<Task>,
}

impl Queue {
    /// Asks `squeue` once, if something was submitted and there is a `squeue`. A failure comes as a sentence: the files of a
    /// study say what is done without it.
    pub(crate) fn of(submissions: &[Submission]) -> Result<Option<Self>, String> {
        if submissions.is_empty() {
            return Ok(None);
        }
        let arguments = ["--me", "--array", "--noheader", "--format=%F|%K|%t|%r"].map(str::to_owned);
        let Some(said) = ask("squeue", &arguments) else { return Ok(None) };
        said.map(|text| Some(Self::parse(&text, submissions))).map_err(|message| format!("squeue: {message}"))
    }

    /// Reads lines `array|index|state|reason`.
    fn parse(text: &str, submissions: &[Submission]) -> Self {
        let task = |line: &str| {
            let mut words = line.splitn(4, '|').map(str::trim);
            let (job, index) = (words.next()?, words.next()?.parse().ok()?);
            let (state, reason) = (words.next()?, words.next()?);
            if !submissions.iter().any(|submission| submission.job == job) {
                return None;
            }
            let is_held = state == "RH" || (state == "PD" && reason.to_ascii_lowercase().contains("held"));
            let state = match state {
                _ if is_held => TaskState::Held,
                "PD" | "RQ" | "RD" => TaskState::Pending,
                _ => TaskState::Running,
            };
            Some(Task { job: job.to_owned(), index, state, reason: reason.to_owned() })
        };
        Self { tasks: text.lines().filter_map(task).collect() }
    }

    pub(crate) fn count(&self, state: TaskState) -> usize {
        self.tasks.iter().filter(|task| task.state == state).count()
    }

    /// The places of the manifest that tasks in the queue will run.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a list cannot be read.
    pub(crate) fn places(&self, folder: &StudyFolder, submissions: &[Submission]) -> Result<BTreeSet<usize>, CliError> {
        let mut places = BTreeSet::new();
        for submission in submissions {
            let tasks = self.tasks.iter().filter(|task| task.job == submission.job);
            let indices: BTreeSet<usize> = tasks.map(|task| task.index).collect();
            if indices.is_empty() {
                continue;
            }
            let path = folder.todo().join(&submission.list);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| CliError::RunFolder { path: path.clone(), problem: error.to_string() })?;
            let lines = text.lines().enumerate().filter(|(index, _)| indices.contains(index));
            places.extend(
                lines.flat_map(|(_, line)| line.split_whitespace().filter_map(|place| place.parse::<usize>().ok())),
            );
        }
        Ok(places)
    }
}

/// The next free name of a list in `todo/`.
pub(crate) fn next_list(todo: &Path) -> usize {
    let number = |name: String| name.strip_suffix(".txt").and_then(|stem| stem.parse::<usize>().ok());
    let entries = std::fs::read_dir(todo).into_iter().flatten().flatten();
    entries.filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned())).max().unwrap_or(0) + 1
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_queue_knows_which_places_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let study = StudyFolder::new(folder.path());
        std::fs::create_dir_all(study.todo()).unwrap();
        assert_eq!(next_list(&study.todo()), 1);
        std::fs::write(study.todo().join("0001.txt"), "0 4\n1 5\n2\n3\n").unwrap();
        std::fs::write(study.todo().join("0009.txt"), "7 8\n").unwrap();
        assert_eq!(next_list(&study.todo()), 10);
        let of = |job: &str, list: &str| Submission { job: job.to_owned(), list: list.to_owned(), tasks: 4, trials: 6 };
        let submissions = [of("17", "0001.txt"), of("3", "0009.txt")];
        // 18 is of another study, `N/A` no array; what has ended is not listed.
        let text =
            "17|1|R|None\n17|2|PD|launch failed requeued held\n17|3|PD|BeginTime\n18|0|PD|Priority\n17|N/A|R|None\n\n";
        let queue = Queue::parse(text, &submissions);
        let states: Vec<_> = queue.tasks.iter().map(|task| (task.name(), task.state)).collect();
        let named = |name: &str, state| (name.to_owned(), state);
        let expected =
            [named("17_1", TaskState::Running), named("17_2", TaskState::Held), named("17_3", TaskState::Pending)];
        assert_eq!(states, expected);
        assert_eq!(queue.count(TaskState::Pending), 1);
        assert_eq!(queue.places(&study, &submissions).unwrap(), BTreeSet::from([1, 5, 2, 3]));
    }
}
