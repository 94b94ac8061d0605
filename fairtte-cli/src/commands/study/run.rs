//! `fairtte study run`: the open trials of a study as child processes of this one.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use fairtte_data::DataConfig;

use super::plan::resolve;
use super::{read, timing};
use crate::args::StudyRun;
use crate::plural::counted;
use crate::prepared::{Care, decode, label};
use crate::progress::{Files, say};
use crate::study::{Ladder, Plan, Pool, Progress, TrialState, may_run, time_of_server};
use crate::{CliError, interrupt};

pub(super) fn run(arguments: &StudyRun) -> Result<(), CliError> {
    let mut plan = read(&arguments.study)?;
    let planned = resolve(&plan)?;
    if let Some(index) = arguments.only.iter().find(|index| **index >= plan.n()) {
        let message = format!("{index} is not in the manifest, which has the places 0 to {}", plan.n() - 1);
        return Err(CliError::setting("--only", message, None));
    }
    plan.write(&planned)?;
    let share =
        Share::of(arguments.jobs.map_or(plan.study().execute.jobs, NonZeroUsize::get), arguments.threads.unwrap_or(0));
    if arguments.dry_run {
        let open = open(&plan, &arguments.only)?;
        say(share.sentence(&plan, &open));
        for (index, id) in &open {
            say(format!("  {index} {id} {}", planned[*index].run.name));
        }
        return Ok(());
    }
    train(&plan, &arguments.only, share)?;
    summary(&plan)
}

/// How a machine is shared among trials.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Share {
    /// Trials at a time.
    jobs: usize,
    /// Threads of each.
    threads: usize,
}

impl Share {
    /// `jobs` trials at a time; `threads` each, 0 = the cores of the machine divided by `jobs`.
    pub(in crate::commands) fn of(jobs: usize, threads: usize) -> Self {
        let jobs = jobs.max(1);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { jobs, threads: if threads > 0 { threads } else { (cores / jobs).max(1) } }
    }

    fn sentence(self, plan: &Plan, open: &[(usize, String)]) -> String {
        let trainings = counted(plan.ids().iter().collect::<BTreeSet<_>>().len(), "training");
        let Self { jobs, threads } = self;
        format!("{} of {trainings} to run, {jobs} at a time with {} each", open.len(), counted(threads, "thread"))
    }
}

/// Prepares the data and runs the trials that are open, of `only` these places if there are any. With halving rung after rung.
///
/// # Errors
/// The errors of preparation; [`CliError::Training`] if a stop was requested, once all trials have saved their state.
pub(in crate::commands) fn train(plan: &Plan, only: &[usize], share: Share) -> Result<(), CliError> {
    let mut open = open(plan, only)?;
    say(share.sentence(plan, &open));
    if open.is_empty() {
        return Ok(());
    }
    try_devices(plan, &open)?;
    prepare(plan)?;
    let pool = Pool { folder: plan.folder(), jobs: share.jobs, threads: share.threads, timing: timing(plan) };
    loop {
        run_all(&pool, &open)?;
        if plan.study().halving.is_none() {
            return Ok(());
        }
        // The trials that continue are known once all of a rung have stopped.
        open = self::open(plan, only)?;
        if open.is_empty() {
            return Ok(());
        }
        say(share.sentence(plan, &open));
    }
}

/// Opens the device of every data set among `open` trials. One that does not work here is said, because its trials will fail.
///
/// # Errors
/// [`CliError`] of the first device if none works.
fn try_devices(plan: &Plan, open: &[(usize, String)]) -> Result<(), CliError> {
    let (mut data_sets, mut devices, mut errors) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (place, _) in open {
        if data_sets.insert(plan.cells()[plan.place(*place).0].data) {
            let run = plan.resolve(*place)?.run;
            if devices.insert(run.device.clone()) {
                errors.extend(run.open_device().err());
            }
        }
    }
    if errors.len() == devices.len() {
        return errors.into_iter().next().map_or(Ok(()), Err);
    }
    for error in &errors {
        say(format!("note: {}; its trials will fail here", crate::error::sentence(error)));
    }
    Ok(())
}

/// Runs trials, with progress; an error if a stop was requested.
fn run_all(pool: &Pool<'_>, open: &[(usize, String)]) -> Result<(), CliError> {
    let (bar, n, mut done) = (Files::new("training"), open.len(), 0);
    bar.update(0, n);
    interrupt::stoppable(|_| {
        pool.run(open, &mut |progress: &Progress| {
            done += 1;
            if let Some(line) = line(progress) {
                bar.note(&line);
            }
            bar.update(done, n);
        })
    })?;
    if interrupt::is_wanted() {
        say("stopped; the same command resumes the study");
        return Err(CliError::Training(fairtte_fairness::FairnessError::Interrupted { epoch: 0, step: 0, n_steps: 0 }));
    }
    Ok(())
}

/// What a trial came to, if it is not done.
fn line(Progress { id, state, took }: &Progress) -> Option<String> {
    let what = match state {
        TrialState::Done | TrialState::AtRung(_) => return None,
        TrialState::Refused(refusal) => format!("not trained: {}", refusal.because),
        TrialState::Failed(failure) => {
            let last = failure.message.lines().next_back().unwrap_or_default();
            format!("failed ({}): {last}", failure.class.name())
        }
        TrialState::Running => "another process works on it".to_owned(),
        TrialState::ToDo => "stopped".to_owned(),
    };
    Some(format!("{id}, {:.1} s: {what}", took.as_secs_f64()))
}

/// The trials that a process may take, each once, by the first place that has it.
pub(super) fn open(plan: &Plan, only: &[usize]) -> Result<Vec<(usize, String)>, CliError> {
    let path = plan.folder().path();
    let failed = |error: std::io::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    std::fs::create_dir_all(path).map_err(failed)?;
    let ladder = Ladder::climb(plan)?;
    let (now, stale) = (time_of_server(path)?, timing(plan).stale);
    let mut seen = BTreeSet::new();
    let mut open = Vec::new();
    for (index, id) in plan.ids().iter().enumerate() {
        let is_asked = only.is_empty() || only.contains(&index);
        let found = || TrialState::of(&plan.folder().trial(id), now, stale);
        if is_asked && seen.insert(id) && may_run(ladder.as_ref(), &found()?, id) {
            open.push((index, id.clone()));
        }
    }
    Ok(open)
}

/// Simulates cohorts and decodes images once, before trials that would all do so at the same time.
pub(super) fn prepare(plan: &Plan) -> Result<(), CliError> {
    for run in plan.data()? {
        say(format!("preparing {}", run.name));
        let (cohort, mut exclusions) = label(&run)?;
        if !matches!(run.data, DataConfig::Tabular(_)) {
            decode(&run, cohort, &mut exclusions, Care::Usual)?;
        }
    }
    Ok(())
}

/// What the study came to; an error if a trial failed.
pub(in crate::commands) fn summary(plan: &Plan) -> Result<(), CliError> {
    let counts = super::status::Counts::of(plan)?;
    say(counts.sentence());
    if counts.failed > 0 {
        let problem = format!("{} failed; `fairtte study status` says why", counted(counts.failed, "trial"));
        return Err(CliError::RunFolder { path: plan.folder().path().to_owned(), problem });
    }
    Ok(())
}
