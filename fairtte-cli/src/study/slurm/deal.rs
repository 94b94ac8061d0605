//! Which trials a task runs, and which tasks an array has.

use crate::CliError;

/// Limits of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Tasks that an array may have: the highest index is one less.
    pub(crate) max_array_size: usize,
    /// Jobs that the controller holds at a time; each task of an array is one.
    pub(crate) max_job_count: usize,
}

impl Default for Limits {
    /// The defaults of `man slurm.conf`.
    fn default() -> Self {
        Self { max_array_size: 1001, max_job_count: 10_000 }
    }
}

impl Limits {
    /// From the text of `scontrol show config`; what it does not name has its default.
    pub(crate) fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let line = |line: &str| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == name).then(|| value.trim().parse().ok()).flatten()
            };
            text.lines().find_map(line)
        };
        let default = Self::default();
        Self {
            max_array_size: value("MaxArraySize").unwrap_or(default.max_array_size),
            max_job_count: value("MaxJobCount").unwrap_or(default.max_job_count),
        }
    }
}

/// An open trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    /// Place in the manifest.
    pub(crate) place: usize,
    /// Expected seconds, if a trial has finished.
    pub(crate) seconds: Option<f64>,
}

/// How long tasks should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Packing {
    /// Expected minutes of a task, which takes precedence over `pack`.
    pub(crate) minutes: Option<f64>,
    /// Trials per task.
    pub(crate) pack: Option<usize>,
    /// Most tasks; packs are made larger if there would be more.
    pub(crate) most_tasks: Option<usize>,
}

/// Trials per task if nothing is known of their time.
const USUAL_PACK: usize = 4;

impl Packing {
    /// The number of tasks for `trials`, at least one for at least one trial.
    fn n_tasks(&self, trials: &[Trial], limits: Limits) -> usize {
        let total: Option<f64> = trials.iter().map(|trial| trial.seconds).sum();
        let by_minutes = |total: f64, minutes: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; limited below")]
            let n = (total / (minutes * 60.0)).ceil() as usize;
            n
        };
        let n = match (self.minutes, self.pack, total) {
            (Some(minutes), _, Some(total)) => by_minutes(total, minutes),
            (_, Some(pack), _) => trials.len().div_ceil(pack),
            (_, None, _) => trials.len().div_ceil(USUAL_PACK),
        };
        // One job is left for others.
        let most = limits.max_job_count.saturating_sub(1).min(self.most_tasks.unwrap_or(usize::MAX));
        n.clamp(1, most.max(1)).min(trials.len())
    }
}

/// The places of every task. The longest trials come first in each task and are dealt round robin, so that tasks take about
/// the same time, and trials of one length keep the order of the manifest.
pub(crate) fn deal(trials: &[Trial], packing: &Packing, limits: Limits) -> Vec<Vec<usize>> {
    let mut sorted = trials.to_vec();
    let seconds = |trial: &Trial| trial.seconds.unwrap_or(0.0);
    sorted.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)).then(a.place.cmp(&b.place)));
    let n = packing.n_tasks(trials, limits);
    (0..n).map(|task| sorted.iter().skip(task).step_by(n).map(|trial| trial.place).collect()).collect()
}

/// How many tasks of each of `n_arrays` arrays run at a time, so that together they are `max_running`.
///
/// # Errors
/// [`CliError::Config`] if there are more arrays.
pub(crate) fn shares(max_running: usize, n_arrays: usize, limits: Limits) -> Result<Vec<usize>, CliError> {
    if max_running < n_arrays {
        let message = format!(
            "{max_running}, expected at least {n_arrays}: the tasks are {n_arrays} arrays, because this cluster allows {} \
             per array",
            limits.max_array_size
        );
        let help = "raise execute.slurm.pack, so that there are fewer tasks, or pass --max-tasks";
        return Err(CliError::setting("execute.slurm.max-running", message, Some(help)));
    }
    let share = |array: usize| max_running / n_arrays + usize::from(array < max_running % n_arrays);
    Ok((0..n_arrays).map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_controller() {
        let text = "Configuration data as of 2026-11-24T04:00:00\nMaxArraySize            = 51\nMaxDBDMsgs              = 20008\n\
                    MaxJobCount             = 7000\nMaxJobId                = 67043328\n";
        assert_eq!(Limits::parse(text), Limits { max_array_size: 51, max_job_count: 7000 });
        assert_eq!(Limits::parse("MaxJobCount = many"), Limits::default());
    }

    fn trials(seconds: &[Option<f64>]) -> Vec<Trial> {
        seconds.iter().enumerate().map(|(place, seconds)| Trial { place, seconds: *seconds }).collect()
    }

    fn sizes(trials: &[Trial], packing: Packing, limits: Limits) -> Vec<usize> {
        deal(trials, &packing, limits).iter().map(Vec::len).collect()
    }

    #[test]
    fn the_longest_come_first_and_are_dealt_round_robin() {
        let trials = trials(&[Some(1.0), Some(5.0), Some(3.0), Some(5.0), Some(2.0)]);
        let packing = Packing { pack: Some(3), ..Packing::default() };
        // By length: 1 and 3 (5 s), 2 (3 s), 4 (2 s), 0 (1 s).
        assert_eq!(deal(&trials, &packing, Limits::default()), [vec![1, 2, 0], vec![3, 4]]);
    }

    #[test]
    fn packs_follow_from_time_or_number() {
        let limits = Limits::default();
        // 100 trials of a minute: 100 / 40 -> 3 tasks.
        let minute = trials(&[Some(60.0); 100]);
        let usual = Packing { minutes: Some(40.0), ..Packing::default() };
        assert_eq!(sizes(&minute, usual, limits), [34, 33, 33]);
        let ten = Packing { minutes: Some(10.0), pack: Some(2), most_tasks: None };
        assert_eq!(sizes(&minute, ten, limits), [10; 10]);
        // A trial longer than the task is a task.
        assert_eq!(sizes(&trials(&[Some(36_000.0); 3]), usual, limits), [1; 3]);
        let unknown = trials(&[None; 10]);
        assert_eq!(sizes(&unknown, usual, limits), [4, 3, 3]);
        assert_eq!(sizes(&unknown, Packing { pack: Some(3), ..Packing::default() }, limits), [3, 3, 2, 2]);
        assert_eq!(sizes(&unknown, Packing { pack: Some(30), ..Packing::default() }, limits), [10]);
        let two = Packing { pack: Some(1), most_tasks: Some(2), ..Packing::default() };
        assert_eq!(sizes(&unknown, two, limits), [5, 5]);
        let few_jobs = Limits { max_job_count: 4, ..limits };
        assert_eq!(sizes(&unknown, Packing { pack: Some(1), ..Packing::default() }, few_jobs), [4, 3, 3]);
        assert!(sizes(&[], Packing::default(), limits).is_empty());
        // Every trial is in one task.
        let mut all = deal(&minute, &ten, limits).concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn arrays_share_the_tasks_that_may_run() {
        assert_eq!(shares(8, 3, Limits::default()).ok(), Some(vec![3, 3, 2]));
        assert_eq!(shares(3, 3, Limits::default()).ok(), Some(vec![1, 1, 1]));
        assert!(shares(2, 3, Limits::default()).is_err());
    }
}
