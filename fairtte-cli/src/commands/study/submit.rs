//! `fairtte study submit`: what is missing of a study as job arrays of SLURM.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::plan::resolve;
use super::read;
use super::run::{open, prepare};
use crate::CliError;
use crate::args::StudySubmit;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::progress::say;
use crate::run_folder::write_text;
use crate::shell::quoted_path;
use crate::study::{
    Call, Limits, Packing, Plan, Queue, Seconds, Slurm, Submission, Trial, check_options, deal, limits, next_list,
    script, shares, submissions, submit, write_submissions,
};

/// The places of the trials of every task.
type Tasks = Vec<Vec<usize>>;

/// Minutes that a task lasts where the length of trials is known, by default.
const USUAL_MINUTES: f64 = 40.0;

/// An array that is submitted or shown.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Array {
    /// The number of the job, once it is submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    tasks: usize,
    trials: usize,
    /// The line of sbatch.
    call: String,
}

/// What a call of the command came to.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Submitted {
    /// `submit` if nothing was submitted, because the script was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    /// Open trials that tasks in the queue will run.
    queued: usize,
    arrays: Vec<Array>,
}

pub(super) fn run(arguments: &StudySubmit) -> Result<(), CliError> {
    let mut plan = read(&arguments.study)?;
    check_options("SBATCH", &arguments.options)?;
    let planned = resolve(&plan)?;
    plan.write(&planned)?;
    let mut known = submissions(plan.folder())?;
    let open = open(&plan, &[])?;
    let queue = Queue::of(&known).map_err(|problem| CliError::RunFolder { path: "squeue".into(), problem })?;
    let taken = queue.map_or_else(|| Ok(BTreeSet::new()), |queue| queue.places(plan.folder(), &known))?;
    let trials = missing(&plan, open.iter().map(|(place, _)| *place).filter(|place| !taken.contains(place)))?;
    let queued = open.len() - trials.len();
    if trials.is_empty() {
        let waiting = if queued > 0 { format!("; {} in the queue", counted(queued, "trial")) } else { String::new() };
        say(format!("nothing to submit{waiting}"));
        let would = arguments.print.then_some("submit");
        return if arguments.json { print_json(&Submitted { would, queued, arrays: Vec::new() }) } else { Ok(()) };
    }
    // Without a controller the script can still be looked at.
    let shown = || {
        limits().unwrap_or_else(|problem| {
            say(format!("{problem}; shown for the usual limits of a cluster"));
            None
        })
    };
    let limits = if arguments.print { shown().unwrap_or_default() } else { Limits::of_cluster()? };
    let calls = calls(&plan, arguments, &trials, limits)?;
    let text = script(&plan.study().execute.slurm, &plan.study().name, &absolute(plan.folder().path()))?;
    if arguments.print {
        return show(arguments, &text, &calls, queued);
    }
    prepare(&plan)?;
    std::fs::create_dir_all(plan.folder().logs())
        .map_err(|error| CliError::RunFolder { path: plan.folder().logs(), problem: error.to_string() })?;
    write_text(&plan.folder().todo().join("task.sh"), &text)?;
    let mut arrays = Vec::new();
    for (call, tasks) in calls {
        write_text(&call.list, &lines(&tasks))?;
        let job = submit(&call)?;
        let trials = tasks.iter().map(Vec::len).sum();
        let list = call.list.file_name().unwrap_or_default().to_string_lossy().into_owned();
        known.push(Submission { job: job.clone(), list, tasks: tasks.len(), trials });
        // After every array: a call that fails must not make those before it unknown.
        write_submissions(plan.folder(), &known)?;
        say(format!("array {job}: {} in {}", counted(trials, "trial"), counted(tasks.len(), "task")));
        arrays.push(Array { job: Some(job), tasks: tasks.len(), trials, call: call.line() });
    }
    if arguments.json {
        return print_json(&Submitted { would: None, queued, arrays });
    }
    let folder = quoted_path(plan.folder().path());
    say(format!("`fairtte study status {folder}` says how far they are"));
    Ok(())
}

/// The trials with the seconds that finished ones of their kind took.
fn missing(plan: &Plan, places: impl Iterator<Item = usize>) -> Result<Vec<Trial>, CliError> {
    let mut seconds = Seconds::default();
    for (place, id) in plan.trainings() {
        let folder = plan.folder().trial(id);
        if folder.scores().exists() {
            seconds.add(plan, place, &folder)?;
        }
    }
    Ok(places.map(|place| Trial { place, seconds: seconds.expected(plan, place) }).collect())
}

/// The calls of sbatch, one per array, with the places of the tasks of each.
fn calls(
    plan: &Plan,
    arguments: &StudySubmit,
    trials: &[Trial],
    limits: Limits,
) -> Result<Vec<(Call, Tasks)>, CliError> {
    let slurm = &plan.study().execute.slurm;
    let packing = Packing {
        minutes: minutes(slurm, arguments.minutes)?,
        pack: slurm.pack,
        most_tasks: arguments.max_tasks.map(NonZeroUsize::get),
    };
    let tasks = deal(trials, &packing, limits);
    let chunks: Vec<&[Vec<usize>]> = tasks.chunks(limits.max_array_size.max(1)).collect();
    let running = slurm.max_running.map(|n| shares(n, chunks.len(), limits)).transpose()?;
    let todo = absolute(&plan.folder().todo());
    let first = next_list(&todo);
    let call = |(i, chunk): (usize, &&[Vec<usize>])| {
        let call = Call {
            n: chunk.len(),
            max_running: running.as_ref().map(|shares| shares[i]),
            options: arguments.options.clone(),
            script: todo.join("task.sh"),
            list: todo.join(format!("{:04}.txt", first + i)),
            logs: absolute(&plan.folder().logs()),
        };
        (call, chunk.to_vec())
    };
    Ok(chunks.iter().enumerate().map(call).collect())
}

/// Minutes of a task: those requested, or the usual ones as far as the limit of a task allows; `None` = by the number of trials.
fn minutes(slurm: &Slurm, asked: Option<u32>) -> Result<Option<f64>, CliError> {
    let limit = slurm.minutes().unwrap_or(f64::INFINITY);
    match asked.map(f64::from) {
        Some(asked) if asked > limit => {
            let message = format!("{asked} minutes, expected at most the {limit} of execute.slurm.time");
            Err(CliError::setting("--minutes", message, None))
        }
        Some(asked) => Ok(Some(asked)),
        // A fifth of the limit is left, because lengths differ.
        None if slurm.pack.is_none() => Ok(Some(USUAL_MINUTES.min(0.8 * limit))),
        None => Ok(None),
    }
}

/// A line of places per task.
fn lines(tasks: &[Vec<usize>]) -> String {
    let line = |task: &Vec<usize>| task.iter().map(usize::to_string).collect::<Vec<_>>().join(" ") + "\n";
    tasks.iter().map(line).collect()
}

fn show(arguments: &StudySubmit, text: &str, calls: &[(Call, Tasks)], queued: usize) -> Result<(), CliError> {
    if arguments.json {
        let array = |(call, tasks): &(Call, Tasks)| Array {
            job: None,
            tasks: tasks.len(),
            trials: tasks.iter().map(Vec::len).sum(),
            call: call.line(),
        };
        return print_json(&Submitted { would: Some("submit"), queued, arrays: calls.iter().map(array).collect() });
    }
    print(text);
    for (call, tasks) in calls {
        print(format!("# {}, a line per task", call.list.display()));
        print(lines(tasks).trim_end());
        print(format!("\n{}", call.line()));
    }
    Ok(())
}

/// Tasks run in another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_task_lasts_no_longer_than_its_limit() {
        let with = |time: &str| Slurm { time: Some(time.to_owned()), ..Slurm::default() };
        assert_eq!(minutes(&Slurm::default(), None).unwrap(), Some(40.0));
        assert_eq!(minutes(&with("30"), None).unwrap(), Some(24.0));
        assert_eq!(minutes(&with("4:00:00"), Some(60)).unwrap(), Some(60.0));
        assert_eq!(minutes(&Slurm { pack: Some(3), ..Slurm::default() }, None).unwrap(), None);
        let error = minutes(&with("30"), Some(31)).unwrap_err().to_string();
        assert!(error.contains("--minutes: 31 minutes, expected at most the 30"), "{error}");
    }

    #[test]
    fn a_line_is_a_task() {
        assert_eq!(lines(&[vec![3, 14], vec![15]]), "3 14\n15\n");
    }
}
