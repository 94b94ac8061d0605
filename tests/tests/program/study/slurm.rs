//! A study on a cluster of two nodes that the test starts itself, where SLURM is installed.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic, and a skipped one says why")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairtte_tests::slurm::{Cluster, kill, processes};
use fairtte_tests::{Outcome, fairtte, small_study, succeed};

const LIMIT: Duration = Duration::from_mins(4);

/// A study on a cluster.
struct OnCluster<'a> {
    cluster: &'a Cluster,
    file: PathBuf,
    output: PathBuf,
}

impl OnCluster<'_> {
    fn run(&self, arguments: &[&str]) -> Outcome {
        fairtte().args(arguments).env("SLURM_CONF", self.cluster.configuration()).output().unwrap().into()
    }

    fn submit(&self, options: &[&str]) -> Outcome {
        let (file, output) = (self.file.display().to_string(), self.output.display().to_string());
        let fixed = ["study", "submit", &file, "--output", &output];
        // Two cores of four, and trials that are free again soon after their process is gone.
        let sets = [
            "execute.slurm.cpus=1",
            "execute.slurm.pack=3",
            "execute.heartbeat-seconds=2",
            "execute.stale-minutes=0.5",
        ];
        let sets: Vec<&str> = sets.into_iter().flat_map(|set| ["--set", set]).collect();
        let outcome = self.run(&[&fixed[..], &sets[..], options].concat());
        assert_eq!(outcome.code, 0, "{}\n{}", outcome.stdout, outcome.stderr);
        outcome
    }

    fn status(&self) -> String {
        self.run(&["study", "status", &self.output.display().to_string()]).stdout
    }

    fn results(&self) -> Vec<u8> {
        results(&self.output)
    }
}

fn results(output: &Path) -> Vec<u8> {
    succeed(["study", "collect", &output.display().to_string()]);
    std::fs::read(output.join("results.parquet")).unwrap()
}

#[test]
fn a_study_on_two_nodes_gives_the_bytes_of_this_machine_also_when_it_is_killed() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return println!("skipped: {why}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = small_study(folder.path());
    let local = folder.path().join("local");
    succeed(["study", "run", &file.display().to_string(), "--output", &local.display().to_string(), "--jobs", "2"]);
    let expected = results(&local);

    let whole = OnCluster { cluster: &cluster, file: file.clone(), output: folder.path().join("whole") };
    submitted_whole(&whole);
    assert_eq!(whole.results(), expected, "as on this machine");

    let killed = OnCluster { cluster: &cluster, file, output: folder.path().join("killed") };
    killed_and_submitted_again(&killed);
    assert_eq!(killed.results(), expected, "also after kills");
}

/// One submission, in arrays of at most five tasks, as the cluster allows.
fn submitted_whole(study: &OnCluster<'_>) {
    let shown = study.submit(&["--print"]).stdout;
    assert!(shown.contains("#SBATCH --cpus-per-task=1") && shown.contains("--array=0-4"), "{shown}");
    assert!(study.cluster.call("squeue", &["-h"]).trim().is_empty(), "--print submits nothing");
    let said = study.submit(&[]).stderr;
    assert_eq!(said.matches("array ").count(), 2, "24 trainings by 3 are 8 tasks, 5 of them per array: {said}");
    assert!(study.status().contains("SLURM: "), "{}", study.status());
    let again = study.submit(&[]).stderr;
    assert!(again.contains("nothing to submit; ") && again.contains(" in the queue"), "{again}");
    let is_empty = study.cluster.wait_until_empty(LIMIT);
    assert!(is_empty, "{}\n{}", study.cluster.call("squeue", &[]), study.status());
    assert!(study.status().starts_with("24 done"), "{}", study.status());
    assert!(study.submit(&[]).stderr.contains("nothing to submit"));
    let doctor = study.run(&["study", "doctor", &study.output.display().to_string()]).stdout;
    assert_eq!(doctor.trim(), "nothing keeps this study from finishing");
}

/// Trials and tasks are killed, stopped and cancelled, a node and the controller die; each time the rest is submitted.
fn killed_and_submitted_again(study: &OnCluster<'_>) {
    let trials = || {
        let output = study.output.display().to_string();
        processes(|line| line.contains("study trial") && line.contains(&output) && !line.contains("bash"))
    };
    let wait_for_one = || {
        for _ in 0..100 {
            if !trials().is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    // Kills: the task counts them and runs the rest of its pack.
    study.submit(&[]);
    for _ in 0..3 {
        wait_for_one();
        kill(&trials());
        std::thread::sleep(Duration::from_millis(400));
    }
    // The warning before the end of the time: the trial saves its state and its task is requeued by itself, alone.
    wait_for_one();
    study.cluster.call("scancel", &["--me", "--state=RUNNING", "--signal=USR1", "--batch"]);
    std::thread::sleep(Duration::from_secs(2));
    // The machine of the controller dies.
    study.cluster.restart_controller().unwrap();
    wait_for_one();
    // A node dies with its tasks, and a person cancels what is left.
    study.cluster.kill_node("n2");
    study.cluster.call("scancel", &["--me"]);
    study.cluster.start_node("n2").unwrap();
    // The controller would notice it after minutes by itself.
    study.cluster.call("scontrol", &["update", "NodeName=n2", "State=DOWN", "Reason=killed"]);
    study.cluster.call("scontrol", &["update", "NodeName=n2", "State=RESUME"]);
    assert!(study.cluster.wait_until_empty(LIMIT), "{}", study.cluster.call("squeue", &[]));
    // Every later submission does what is missing.
    for _ in 0..20 {
        if study.submit(&[]).stderr.contains("nothing to submit") {
            if !study.status().lines().next().is_some_and(|line| line.contains("running")) {
                break;
            }
            // A process was killed before it could say who it is: its trial is free after half a minute.
            std::thread::sleep(Duration::from_secs(5));
        }
        assert!(study.cluster.wait_until_empty(LIMIT), "{}", study.cluster.call("squeue", &[]));
    }
    let doctor = study.run(&["study", "doctor", &study.output.display().to_string()]).stdout;
    assert!(study.status().starts_with("24 done"), "{}\n{doctor}", study.status());
    assert!(n_second_attempts(&study.output.join("trials")) > 0, "no kill has hit a trial");
}

/// Trials that were begun at least twice.
fn n_second_attempts(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .map(|path| if path.is_dir() { n_second_attempts(&path) } else { usize::from(path.ends_with("lease.1")) })
        .sum()
}
