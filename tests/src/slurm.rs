//! Two nodes of SLURM on this machine, without root, services, cgroups or a database, for tests of what runs on a cluster.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Folders that hold the daemons where the path of a user lacks them.
const SBIN: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Seconds until both nodes are idle, or the cluster counts as broken.
const STARTS_WITHIN: Duration = Duration::from_mins(1);

/// A running cluster; dropped, its processes are killed.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
}

/// The path of a program.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SBIN.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

/// A word that a program prints.
fn word(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Three ports without a listener.
fn ports() -> Result<[u16; 3], String> {
    let listen = || TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string());
    let all = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&all) {
        *port = listener.local_addr().map_err(|error| error.to_string())?.port();
    }
    Ok(ports)
}

impl Cluster {
    /// Starts two nodes with two cores each.
    ///
    /// # Errors
    /// Why there can be no cluster here: a program is missing, or it does not start.
    pub fn start() -> Result<Self, String> {
        let names = ["slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "sinfo"];
        if let Some(missing) = names.iter().find(|name| program(name).is_none()) {
            return Err(format!("{missing} is not installed"));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cluster = Self { folder };
        cluster.configure().map_err(|error| format!("the cluster cannot be configured: {error}"))?;
        let munge = cluster.path().join("munge");
        let at = |option: &str, file: &str| format!("--{option}={}", munge.join(file).display());
        cluster.daemon(
            "munged",
            &[
                "--force".to_owned(),
                at("key-file", "key"),
                at("socket", "socket"),
                at("pid-file", "pid"),
                at("log-file", "log"),
                at("seed-file", "seed"),
            ],
        )?;
        cluster.daemon("slurmctld", &[])?;
        cluster.start_node("n1")?;
        cluster.start_node("n2")?;
        let began = Instant::now();
        while cluster.call("sinfo", &["-h", "-N", "-o", "%t"]).lines().filter(|state| *state == "idle").count() < 2 {
            if began.elapsed() > STARTS_WITHIN {
                return Err(format!("its nodes are not idle after {} s", STARTS_WITHIN.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(cluster)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration, by which every program of SLURM finds the cluster: `SLURM_CONF`.
    pub fn configuration(&self) -> PathBuf {
        self.path().join("slurm.conf")
    }

    fn configure(&self) -> Result<(), String> {
        let path = self.path().display();
        let (user, [control, n1, n2]) = (word("id", &["-un"])?, ports()?);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| error.to_string())?;
        let host = host.trim().split('.').next().unwrap_or_default().to_owned();
        for name in ["state", "log", "run", "spool/n1", "spool/n2", "munge"] {
            std::fs::create_dir_all(self.path().join(name)).map_err(|error| error.to_string())?;
        }
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\nAuthType=auth/munge\n\
             AuthInfo=socket={path}/munge/socket\nCredType=cred/munge\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SchedulerParameters=batch_sched_delay=1,sched_interval=2\nMaxArraySize=5\nMaxJobCount=1000\nMinJobAge=300\n\
             JobRequeue=1\nKillWait=5\nReturnToService=2\nSlurmctldTimeout=30\nSlurmdTimeout=30\nSlurmctldPort={control}\n\
             SlurmctldPidFile={path}/run/slurmctld.pid\nSlurmctldLogFile={path}/log/slurmctld.log\n\
             SlurmdPidFile={path}/run/slurmd-%n.pid\nSlurmdLogFile={path}/log/slurmd-%n.log\nSlurmdSpoolDir={path}/spool/%n\n\
             StateSaveLocation={path}/state\nAccountingStorageType=accounting_storage/none\nSlurmdParameters=config_overrides\n"
        );
        for (node, port) in [("n1", n1), ("n2", n2)] {
            let cores = "CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000";
            writeln!(text, "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {cores}")
                .map_err(|error| error.to_string())?;
        }
        text.push_str("PartitionName=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP\n");
        // A key of munge has at least 32 bytes; this one guards a cluster of a few minutes on this machine.
        let key: Vec<u8> =
            (0..128).map(|i| (u32::from(control) * 31 + std::process::id() + i * 7).to_le_bytes()[0]).collect();
        std::fs::write(self.configuration(), text).map_err(|error| error.to_string())?;
        std::fs::write(self.path().join("munge/key"), key).map_err(|error| error.to_string())?;
        word("chmod", &["600", &self.path().join("munge/key").display().to_string()])?;
        word("chmod", &["700", &self.path().join("munge").display().to_string()]).map(|_| ())
    }

    /// Starts a daemon, which goes to the background itself.
    fn daemon(&self, name: &str, arguments: &[String]) -> Result<(), String> {
        let path = program(name).ok_or_else(|| format!("{name} is not installed"))?;
        let log = self.path().join("log").join(format!("{name}.start"));
        let said = std::fs::File::create(&log).map_err(|error| error.to_string())?;
        let output = said.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(path);
        command
            .args(arguments)
            .env("SLURM_CONF", self.configuration())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(said);
        let status = command.status().map_err(|error| format!("{name}: {error}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{name} ended with {status}: {}", std::fs::read_to_string(&log).unwrap_or_default().trim()))
    }

    /// Starts a node, also one that was killed.
    ///
    /// # Errors
    /// What its daemon says.
    pub fn start_node(&self, node: &str) -> Result<(), String> {
        self.daemon("slurmd", &["-N".to_owned(), node.to_owned()])
    }

    /// Kills the controller and starts it again; it knows its jobs from its files.
    ///
    /// # Errors
    /// What it says.
    pub fn restart_controller(&self) -> Result<(), String> {
        kill(&self.pids(&["slurmctld.pid"]));
        self.daemon("slurmctld", &[])
    }

    /// Kills a node at once with all that runs on it, as if its power failed.
    pub fn kill_node(&self, node: &str) {
        // The processes of a task are children of a step daemon, which says its node in its name or the name of its spool.
        let tree = descendants(&self.pids(&[&format!("slurmd-{node}.pid")]));
        let steps = processes(|line| line.contains("slurmstepd") && self.is_ours(line));
        let on_node = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&format!("SLURMD_NODENAME={node}"))
        };
        let mut all = tree;
        all.extend(descendants(&steps).into_iter().filter(on_node));
        kill(&all);
    }

    /// Whether the command line is of a process of this cluster.
    fn is_ours(&self, line: &str) -> bool {
        line.contains(&self.path().display().to_string()) || line.contains("slurmstepd: [")
    }

    /// Runs a program of SLURM; returns what it prints, and errors with it.
    pub fn call(&self, name: &str, arguments: &[&str]) -> String {
        let Some(path) = program(name) else { return format!("{name} is not installed") };
        let output = Command::new(path).args(arguments).env("SLURM_CONF", self.configuration()).output();
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    }

    /// Waits until no task is in the queue; `false` if some still are after `limit`.
    pub fn wait_until_empty(&self, limit: Duration) -> bool {
        let began = Instant::now();
        while !self.call("squeue", &["-h"]).trim().is_empty() {
            if began.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        true
    }

    fn pids(&self, names: &[&str]) -> Vec<u32> {
        let files = names.iter().map(|name| match *name {
            "munge" => self.path().join("munge/pid"),
            name => self.path().join("run").join(name),
        });
        files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.call("scancel", &["--me"]);
        let daemons = self.pids(&["slurmd-n1.pid", "slurmd-n2.pid", "slurmctld.pid", "munge"]);
        kill(&descendants(&daemons));
    }
}

/// Processes whose command line `is_meant`.
pub fn processes(is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().ok();
    let line = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_meant = |pid: &u32| is_meant(&String::from_utf8_lossy(&line(pid)).replace('\0', " "));
    entries.filter_map(pid).filter(|pid| *pid != std::process::id()).filter(is_meant).collect()
}

/// These processes with all below them.
fn descendants(pids: &[u32]) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may contain blanks.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = processes(|_| true);
    let mut found = pids.to_vec();
    let mut n = 0;
    while found.len() > n {
        n = found.len();
        let below =
            all.iter().filter(|pid| !found.contains(pid) && parent(**pid).is_some_and(|of| found.contains(&of)));
        let below: Vec<u32> = below.copied().collect();
        found.extend(below);
    }
    found
}

/// Kills processes so that they can do nothing more.
pub fn kill(pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let words: Vec<String> = std::iter::once("-9".to_owned()).chain(pids.iter().map(u32::to_string)).collect();
    // Some may have ended by themselves.
    let _ = Command::new("kill").args(words).stderr(Stdio::null()).status();
}
