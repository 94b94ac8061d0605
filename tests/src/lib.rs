//! What the end-to-end tests share: the binary, run files on simulated cohorts, and the numbers of a report.

pub mod classes;
pub mod slurm;
pub mod validation;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fairtte_metrics::EvaluationReport;

/// The `fairtte` binary beside the test, as `cargo test --workspace` builds it.
///
/// # Panics
/// If it has not been built.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in <target>/<profile>/deps");
    let binary = folder.join(format!("fairtte{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is missing: run `cargo build -p fairtte-cli` first", binary.display());
    binary
}

/// A call of the binary that does not depend on the environment of the caller.
pub fn fairtte() -> Command {
    let mut command = Command::new(binary());
    command.env_remove("FAIRTTE_DEVICE").env_remove("COLUMNS").stdin(std::process::Stdio::null());
    command
}

/// What a finished call gave.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the binary with `arguments`.
///
/// # Panics
/// If it cannot be started.
pub fn run<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Outcome {
    fairtte().args(arguments).output().expect("the binary starts").into()
}

/// Runs the binary and requires that it succeeds.
///
/// # Panics
/// If it does not.
pub fn succeed<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Outcome {
    let outcome = run(arguments);
    assert_eq!(outcome.code, 0, "{}\n{}", outcome.stdout, outcome.stderr);
    outcome
}

/// Runs the binary and requires that it fails with `code` and says `sentence` in one line of standard error.
///
/// # Panics
/// If it does not.
pub fn fail<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>, code: i32, sentence: &str) -> Outcome {
    let outcome = run(arguments);
    assert_eq!(outcome.code, code, "{}\n{}", outcome.stdout, outcome.stderr);
    assert!(
        outcome.stderr.lines().any(|line| line.contains(sentence)),
        "expected one line with\n  {sentence}\nin\n{}",
        outcome.stderr
    );
    outcome
}

/// A small run on simulated films; every test changes what it is about with `set`.
#[derive(Clone, Debug)]
pub struct SmallRun {
    /// Folder of the run file, the cache and the run.
    pub folder: PathBuf,
    sets: Vec<String>,
}

impl SmallRun {
    /// A run of 120 simulated films of 32 x 32 in `folder`.
    ///
    /// # Panics
    /// If the run file cannot be written.
    pub fn new(folder: &Path) -> Self {
        let data = "[data.simulated]\nn-subjects = 120\nsize = [32, 32]\n";
        Self::with_data(folder, data)
    }

    /// A run on the data set described by `data`, the text of its table in the run file.
    ///
    /// # Panics
    /// If the run file cannot be written.
    pub fn with_data(folder: &Path, data: &str) -> Self {
        let mut text = format!(
            "name = \"small\"\noutput = '{}'\ncache = '{}'\n{data}\n",
            folder.join("run").display(),
            folder.join("cache").display()
        );
        text.push_str(
            "[[attribute]]\nname = \"sex\"\n[image]\nsize = [32, 32]\n[time]\nintervals = 10\ngrid = \"equidistant\"\n\
             [model]\nbackbone = \"small-2d\"\ndropout = 0.1\n[head.nnet-survival]\n[strategy.erm]\n\
             [training]\nepochs = 2\n[evaluation]\nreplicates = 20\n",
        );
        std::fs::create_dir_all(folder).expect("a temporary folder can be written");
        std::fs::write(folder.join("run.toml"), text).expect("a temporary folder can be written");
        Self { folder: folder.to_owned(), sets: Vec::new() }
    }

    /// Changes a setting.
    #[must_use]
    pub fn set(mut self, set: &str) -> Self {
        self.sets.push(set.to_owned());
        self
    }

    /// The run folder.
    pub fn output(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// Arguments of `command` on this run.
    pub fn arguments(&self, command: &str) -> Vec<String> {
        let mut arguments = vec![command.to_owned(), "--config".to_owned()];
        arguments.push(self.folder.join("run.toml").display().to_string());
        arguments.extend(self.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        arguments
    }

    /// Trains and evaluates.
    ///
    /// # Panics
    /// If that fails.
    pub fn train(&self) -> EvaluationReport {
        succeed(self.arguments("train"));
        report(&self.output())
    }
}

/// The report in a run folder.
///
/// # Panics
/// If there is none.
pub fn report(folder: &Path) -> EvaluationReport {
    let text = std::fs::read_to_string(folder.join("evaluation.json")).expect("there is an evaluation");
    serde_json::from_str(&text).expect("an evaluation is valid JSON")
}

/// A run on a made-up table of `n` patients (columns pid, time, event, sex, age, x0 .. x3) with an `mlp`: `x0` raises the
/// risk, `x1` that of women only. `change` may replace the cells of a row, in the order of the columns.
///
/// # Panics
/// If the folder cannot be written.
pub fn patients(folder: &Path, n: usize, change: impl Fn(usize, &mut [String; 9])) -> SmallRun {
    std::fs::create_dir_all(folder).expect("a temporary folder can be written");
    let spread = |row: usize, step: f64| ((row as f64 + 0.5) * step).fract();
    let mut text = "pid,time,event,sex,age,x0,x1,x2,x3\n".to_owned();
    for row in 0..n {
        let x: [f64; 4] = std::array::from_fn(|k| ((row as f64) * (0.7 + 0.31 * k as f64) + k as f64).sin());
        let is_woman = row % 5 < 2;
        let risk = 1.3 * x[0] + if is_woman { 1.3 * x[1] } else { 0.0 };
        let event_time = -spread(row, 0.618_033_988_75).ln() * (-risk).exp() * 3.0;
        let censored_at = 0.5 + 9.0 * spread(row, 0.754_877_666_25);
        let time = event_time.min(censored_at).max(0.01);
        let mut cells = [
            format!("p{row:04}"),
            format!("{time:.4}"),
            u8::from(event_time <= censored_at).to_string(),
            if is_woman { "F" } else { "M" }.to_owned(),
            (40 + (row * 11) % 37).to_string(),
            format!("{:.6}", x[0]),
            format!("{:.6}", x[1]),
            format!("{:.6}", x[2]),
            format!("{:.6}", x[3]),
        ];
        change(row, &mut cells);
        writeln!(text, "{}", cells.join(",")).expect("text grows");
    }
    let table = folder.join("patients.csv");
    std::fs::write(&table, text).expect("a temporary folder can be written");
    let data = format!(
        "[data.tabular]\ntable = '{}'\nname = \"patients\"\nsubject = \"pid\"\ntime-unit = \"years\"\n\
         features = \"all\"\n",
        table.display()
    );
    SmallRun::with_data(folder, &data).set("model.backbone=mlp")
}

/// Overall C^td (ties count 0).
///
/// # Panics
/// If it is undefined.
pub fn c_td(report: &EvaluationReport) -> f64 {
    let metric = report.metric("c_td_antolini_strict").expect("it is always reported");
    metric.overall.value.expect("there are comparable pairs")
}

/// C^td of one group.
///
/// # Panics
/// If it is undefined.
pub fn c_td_of(report: &EvaluationReport, attribute: &str, level: &str) -> f64 {
    let metric = report.metric("c_td_antolini_strict").expect("it is always reported");
    let attribute = metric.attributes.iter().find(|a| a.attribute == attribute).expect("the attribute is reported");
    let group = attribute.groups.iter().find(|g| g.level == level).expect("the group is reported");
    group.estimate.value.expect("there are comparable pairs")
}

/// Every file below `folder`, relative to it, sorted.
///
/// # Panics
/// If the folder cannot be read.
pub fn files(folder: &Path) -> Vec<String> {
    fn visit(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                visit(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).expect("it lies below").display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    if folder.exists() {
        visit(folder, folder, &mut found);
    }
    found.sort();
    found
}

/// A uniform number in (0, 1) of a row and a stream (splitmix64).
pub fn uniform(row: usize, stream: u64) -> f64 {
    let mut state =
        (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (((state ^ (state >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A table in the generic layout with `n` small gray PNG pictures beside it; `cell(row, column)` may change any cell.
///
/// # Panics
/// If the folder cannot be written.
pub fn generic_table(folder: &Path, n: usize, cell: impl Fn(usize, &str) -> Option<String>) -> PathBuf {
    let columns = ["image", "subject_id", "time", "event", "sex"];
    let mut text = columns.join(",") + "\n";
    std::fs::create_dir_all(folder).expect("a temporary folder can be written");
    for row in 0..n {
        let name = format!("{row}.png");
        let shift = u32::try_from(row).expect("few rows") * 11;
        let shade = |x: u32, y: u32| image::Luma([u8::try_from((x * 7 + y * 3 + shift) % 256).expect("below 256")]);
        image::GrayImage::from_fn(32, 32, shade).save(folder.join(&name)).expect("a picture can be written");
        let default = |column: &str| match column {
            "image" => name.clone(),
            "subject_id" => format!("p{row}"),
            "time" => format!("{}", 1.0 + (row * 7 % 13) as f64),
            "event" => (row % 2).to_string(),
            _ => ["F", "M"][row / 2 % 2].to_owned(),
        };
        let cells: Vec<String> =
            columns.iter().map(|column| cell(row, column).unwrap_or_else(|| default(column))).collect();
        writeln!(text, "{}", cells.join(",")).expect("text grows");
    }
    let table = folder.join("table.csv");
    std::fs::write(&table, text).expect("a temporary folder can be written");
    table
}

/// The text of a `[data.generic]` table for a run file.
pub fn generic_data(table: &Path) -> String {
    format!("[data.generic]\ntable = '{}'\ntime-unit = \"years\"\n", table.display())
}

const SMALL_STUDY: &str = "
trials = 2
[[data]]
run-file = \"run.toml\"
[heads]
names = [\"nnet-survival\", \"pmf\"]
[strategies]
names = [\"group-dro\", \"laftr\"]
[search]
\"optimiser.learning-rate\" = { log-uniform = [1e-3, 1e-2] }
\"strategy.group-dro.eta\" = { log-uniform = [1e-3, 1e-1] }
[shifts.censoring]
censoring-flip = [0.5]
[shift-group]
sex = \"F\"
age = 0
[set.training]
epochs = 2
";

/// The study file of a small study of patients in a table, which ends in seconds: two attributes, two heads, three strategies,
/// a shift, two trials.
///
/// # Panics
/// If the folder cannot be written.
pub fn small_study(folder: &Path) -> PathBuf {
    patients(folder, 160, |_, _| ());
    let run_file = folder.join("run.toml");
    let text =
        std::fs::read_to_string(&run_file).expect("a temporary folder can be written").replace("small-2d", "mlp");
    let age = "[[attribute]]\nname = \"age\"\nthreshold = 57\n[image]\n";
    std::fs::write(&run_file, text.replace("[image]\n", age)).expect("a temporary folder can be written");
    let path = folder.join("study.toml");
    std::fs::write(&path, SMALL_STUDY).expect("a temporary folder can be written");
    path
}
