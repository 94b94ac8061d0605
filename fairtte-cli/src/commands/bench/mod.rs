//! `fairtte bench`: how fast this machine trains and applies the networks, and how long a data set takes.

mod network;
mod words;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use fairtte_models::kernels::{Blocks, InstructionSet, survey};
use fairtte_models::{BackboneKind, Precision};
use serde::{Deserialize, Serialize};

use self::network::{Measured, Request, compare_threads};
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::Bench;
use crate::device;
use crate::exit::Exit;
use crate::progress::say;
use crate::run_folder::{read_json, write_json};

/// What the command measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Report {
    device: String,
    /// Threads of the pool on the host; the most, if several numbers were measured.
    threads: usize,
    /// Name of the processor of the host; absent where the system does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    processor: Option<String>,
    /// Instruction set of the kernels; absent on a device that does not use them.
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction_set: Option<String>,
    /// Sizes of the kernels' blocks; absent on a device that does not use them.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<BlockSizes>,
    /// Version of the program.
    version: String,
    networks: Vec<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Layers>,
}

/// Sizes of the kernels' blocks, which follow from the caches.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BlockSizes {
    /// L2 cache of a core in bytes.
    l2: usize,
    /// Rows and columns of a product that are packed at a time.
    rows: usize,
    columns: usize,
    /// Columns of a task of a dense convolution.
    task_columns: usize,
    /// Values in the transforms of a task of Winograd's convolution.
    transformed: usize,
}

impl BlockSizes {
    fn in_use() -> Self {
        let Blocks { l2, rows, columns, task_columns, transformed } = Blocks::in_use();
        Self { l2, rows, columns, task_columns, transformed }
    }
}

/// Types of layers of the kernels, forward pass and gradients.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Layers {
    /// Operations per second of multiply-adds in registers, on all threads.
    peak: f64,
    measured: Vec<Layer>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Layer {
    name: String,
    algorithm: String,
    seconds: f64,
    /// Share of the peak; absent of layers that memory limits. Above 1 is possible where an algorithm needs fewer operations
    /// than the sums that define the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_peak: Option<f64>,
}

impl Report {
    /// The report that `fairtte bench --output` wrote.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] naming the file if it cannot be read or is none.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        read_json(path)
    }

    /// Whether the rates are of such a device, whatever the number of the GPU.
    pub(super) fn is_of(&self, device: &str) -> bool {
        device::kind(&self.device) == device::kind(device)
    }

    /// The device in words: `flex, Intel(R) Xeon(R) Processor`.
    pub(super) fn device_words(&self) -> String {
        let processor = self.processor.iter().filter(|_| is_flex(&self.device));
        std::iter::once(&self.device).chain(processor).cloned().collect::<Vec<_>>().join(", ")
    }

    /// Samples per second in training and in inference of a network on samples of this shape; any shape of columns. On the number
    /// of threads that trains fastest. `None` if it was not measured.
    pub(super) fn rates(&self, kind: BackboneKind, sample: &[usize], precision: Precision) -> Option<(f64, f64)> {
        let is_it = |network: &&Measured| {
            let is_shape = kind.n_axes() == 0 || network.shape.get(1..) == Some(sample);
            network.backbone == kind.name() && network.precision == precision && is_shape
        };
        let rates = |network: &Measured| (network.training.samples_per_second, network.inference.samples_per_second);
        self.networks.iter().filter(is_it).map(rates).max_by(|one, other| one.0.total_cmp(&other.0))
    }
}

pub(super) fn run(arguments: &Bench) -> Result<(), CliError> {
    let requests = requests(arguments)?;
    let threads = numbers_of_threads(&arguments.threads)?;
    use_threads(threads.last().copied().unwrap_or_default())?;
    let networks = match (&requests[..], threads.len()) {
        ([alone], 1) => {
            let opened = device::open(&arguments.device)?;
            device::use_threads(&arguments.device);
            vec![rayon::scope(|_| alone.measure(&opened))?]
        }
        (several, _) => {
            // Each process opens it. This one would hold memory of a GPU, or all of a GPU that serves one process at a time.
            device::named(&arguments.device)?;
            let pairs = several.iter().flat_map(|request| threads.iter().map(move |threads| (request, *threads)));
            let measured = pairs.map(|(request, threads)| in_child(request, threads, arguments));
            let mut measured = measured.collect::<Result<Vec<_>, _>>()?;
            compare_threads(&mut measured);
            measured
        }
    };
    let on_flex = is_flex(&arguments.device);
    let report = Report {
        device: arguments.device.clone(),
        threads: rayon::current_num_threads(),
        processor: processor(),
        instruction_set: on_flex.then(|| InstructionSet::in_use().name().to_owned()),
        blocks: on_flex.then(BlockSizes::in_use),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        networks,
        layers: (on_flex && !arguments.no_layers).then(layers),
    };
    // Shown first, so that a file that cannot be written does not cost what took minutes to measure.
    if arguments.json {
        print_json(&report)?;
    } else {
        print(words::report(&report));
    }
    if let Some(path) = &arguments.output {
        write_json(path, &report)?;
        if !arguments.json {
            say(format!("written: {}", path.display()));
        }
    }
    Ok(())
}

fn is_flex(device: &str) -> bool {
    device::kind(device) == "flex"
}

/// The numbers of threads to be measured. Among others 0, which is all, becomes their number, so that none is measured twice and the
/// last is the most.
fn numbers_of_threads(given: &[usize]) -> Result<BTreeSet<usize>, CliError> {
    let mut numbers: BTreeSet<usize> = given.iter().copied().collect();
    if numbers.len() > 1 && numbers.remove(&0) {
        let all = rayon::ThreadPoolBuilder::new().build();
        let all =
            all.map_err(|error| CliError::setting("threads", format!("cannot start the threads: {error}"), None))?;
        numbers.insert(all.current_num_threads());
    }
    Ok(numbers)
}

/// What is to be measured.
///
/// # Errors
/// [`CliError::Setting`] naming the argument that cannot be.
fn requests(arguments: &Bench) -> Result<Vec<Request>, CliError> {
    let refused = |key: &str, value: String, expected: &str| CliError::Setting {
        key: key.to_owned(),
        value,
        expected: expected.to_owned(),
    };
    if !(arguments.seconds.is_finite() && arguments.seconds > 0.0) {
        return Err(refused("--seconds", arguments.seconds.to_string(), "a number above 0"));
    }
    let batch = arguments.batch.map(|batch| batch as u64);
    for (key, given) in [("--samples", arguments.samples), ("--epochs", Some(arguments.epochs)), ("--batch", batch)] {
        if given == Some(0) {
            return Err(refused(key, "0".to_owned(), "at least 1"));
        }
    }
    let kind = |name: &String| {
        let found = BackboneKind::ALL.into_iter().find(|kind| kind.name() == name);
        let known = || format!("one of {}", BackboneKind::ALL.map(BackboneKind::name).join(", "));
        found.ok_or_else(|| refused("--backbone", format!("\"{name}\""), &known()))
    };
    arguments.backbone.iter().map(|name| Request::new(kind(name)?, arguments)).collect()
}

/// Measures a network in a process of its own, so that its memory is not that of the networks before it.
fn in_child(request: &Request, threads: usize, arguments: &Bench) -> Result<Measured, CliError> {
    let name = request.kind().name();
    let on = if arguments.threads.len() > 1 { format!(", {threads} threads") } else { String::new() };
    say(format!("{name}, {}{on}", request.batch_words()));
    let failed = |problem: String| CliError::Device { device: arguments.device.clone(), problem };
    let program = std::env::current_exe().map_err(|error| failed(format!("cannot start a process: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "--json", "--no-layers", "--device", &arguments.device, "--backbone", name]);
    command.args(["--threads", &threads.to_string(), "--seconds", &arguments.seconds.to_string()]);
    command.args(["--precision", &arguments.precision]);
    command.args(["--shape", &request.shape_words(), "--batch", &request.batch().to_string()]);
    if let Some(samples) = arguments.samples {
        command.args(["--samples", &samples.to_string(), "--epochs", &arguments.epochs.to_string()]);
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| failed(format!("cannot start a process: {error}")))?;
    if !output.status.success() {
        let problem = format!("did not measure {name} ({}, {})", request.batch_words(), output.status);
        return Err(CliError::NotMeasured {
            device: arguments.device.clone(),
            problem,
            exit: meaning(output.status.code()),
        });
    }
    let report: Report =
        serde_json::from_slice(&output.stdout).map_err(|error| CliError::Bug(format!("bench {name}: {error}")))?;
    report.networks.into_iter().next().ok_or_else(|| CliError::Bug(format!("bench {name} measured nothing")))
}

/// What the exit code of a process of this program means; one that the system ended, often because memory is short, has none.
fn meaning(code: Option<i32>) -> Exit {
    let known = [Exit::Bug, Exit::Config, Exit::Data, Exit::TryAgain, Exit::Interrupted];
    known.into_iter().find(|exit| code == Some(i32::from(*exit as u8))).unwrap_or(Exit::Training)
}

fn layers() -> Layers {
    let peak = rayon::scope(|_| survey::peak());
    let measured = rayon::scope(|_| survey::layers());
    let entry = |layer: survey::Layer| {
        let share_of_peak = layer.operations.map(|operations| operations / layer.seconds / peak);
        let (name, algorithm) = (layer.name.to_owned(), layer.algorithm.to_owned());
        Layer { name, algorithm, seconds: layer.seconds, share_of_peak }
    };
    Layers { peak, measured: measured.into_iter().map(entry).collect() }
}

/// The name of the processor, where Linux says it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_a_child_keeps_its_meaning() {
        let of = [Exit::Bug, Exit::Config, Exit::Data, Exit::Training, Exit::TryAgain, Exit::Interrupted];
        for exit in of {
            assert_eq!(meaning(Some(i32::from(exit as u8))), exit);
        }
        assert_eq!(meaning(None), Exit::Training, "the system ended it");
    }
}
