//! The only place that names burn's back ends.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use burn::tensor::{Device, Tensor};

use crate::CliError;

/// The device that was opened last.
static IN_USE: Mutex<Option<String>> = Mutex::new(None);

/// What the drivers write, in lower case, where the memory of a device does not suffice: CUDA, Vulkan, wgpu 30, `CubeCL`
/// 0.11 and `LibTorch` 2.9, of a GPU and of the host.
const NO_MEMORY: [&str; 11] = [
    "out of memory",
    "out_of_memory",
    "out_of_device_memory",
    "out_of_host_memory",
    "out of device memory",
    "can't allocate buffer of size",
    "every page size the memory tracks still holds live allocations",
    "couldn't map storage for a deferred allocation",
    "is greater than the maximum buffer size",
    "exceeds `max_*_buffer_binding_size` limit",
    "defaultcpuallocator: ",
];

/// What helps where the memory of a device does not suffice.
const LESS_MEMORY: &str = "; a smaller training.batch-size with training.accumulate for the rest of it needs less memory, \
                           for bench a smaller --batch";

/// What they write where a device fails otherwise.
const FAILED: [&str; 2] = ["cuda error: ", "cudnn error: "];

/// What they write where the device is gone, or its context is unusable after an error.
const LOST: [&str; 8] = [
    "device is lost",
    "device lost",
    "device was lost",
    "device is poisoned",
    "illegal memory access",
    "unspecified launch failure",
    "launch timed out",
    "ecc error",
];

/// Names and conditions of all devices, for `fairtte list devices`.
pub(crate) const CATALOGUE: [(&str, &str, bool); 5] = [
    ("flex", "portable CPU back end, nothing to install", cfg!(feature = "flex")),
    ("ndarray", "CPU through burn-ndarray (build with --features ndarray)", cfg!(feature = "ndarray")),
    ("tch", "CPU through LibTorch 2.9; tch-cuda:0 is its first GPU (build with --features tch)", cfg!(feature = "tch")),
    ("cuda:0", "first NVIDIA GPU through CubeCL (build with --features cuda)", cfg!(feature = "cuda")),
    ("wgpu", "default GPU through WebGPU (build with --features wgpu)", cfg!(feature = "wgpu")),
];

/// Opens a device by the name that `--device` and run files use.
///
/// # Errors
/// As of [`named`]; [`CliError::DeviceUnusable`] if the device cannot compute a number.
pub(crate) fn open(name: &str) -> Result<Device, CliError> {
    let device = named(name)?;
    *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
    tried(name, device)
}

/// The device of this name, which was not tried yet.
///
/// # Errors
/// [`CliError::Device`] if the name is unknown or its back end was not compiled in; an error of the settings if an environment
/// variable of the kernels has an invalid value.
#[cfg_attr(
    any(feature = "ndarray", feature = "tch"),
    expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")
)]
pub(crate) fn named(name: &str) -> Result<Device, CliError> {
    fairtte_models::check_environment()?;
    let (back_end, index) = match name.split_once(':') {
        Some((back_end, index)) => (back_end, index.parse::<usize>().map_err(|_| unknown(name))?),
        None => (name, 0),
    };
    Ok(match (back_end, index) {
        #[cfg(feature = "flex")]
        ("flex", 0) => Device::flex(),
        #[cfg(feature = "ndarray")]
        ("ndarray", 0) => Device::ndarray(),
        #[cfg(feature = "tch")]
        ("tch", 0) => Device::libtorch(),
        #[cfg(feature = "tch")]
        ("tch-cuda", index) => Device::libtorch_cuda(index),
        #[cfg(feature = "cuda")]
        ("cuda", index) => Device::cuda(index),
        #[cfg(feature = "wgpu")]
        ("wgpu", 0) => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        _ => return Err(absent(name, back_end)),
    })
}

/// The kind of a device, which is its name without the number: `cuda` of `cuda:1`.
pub(crate) fn kind(name: &str) -> &str {
    name.split_once(':').map_or(name, |(kind, _)| kind)
}

/// Gives a back end with threads of its own as many threads as the pool, which has the number set by `threads`.
#[cfg_attr(not(feature = "tch"), expect(unused_variables, reason = "no other back end has threads of its own"))]
pub(crate) fn use_threads(name: &str) {
    #[cfg(feature = "tch")]
    if name.starts_with("tch") {
        fairtte_models::use_threads(rayon::current_num_threads());
    }
}

/// The error that a panic stands for if it says that a device has no memory left or is lost: burn has no errors for these, but
/// panics. `None` of every other panic, which is a bug on any device.
pub(crate) fn failure(panic: &(dyn Any + Send)) -> Option<CliError> {
    let device = IN_USE.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    problem(message(panic)).map(|(problem, is_lost)| CliError::DeviceFailed { device, problem, is_lost })
}

/// The result of `compute`, or what its panic stands for: a device that [failed](failure), or a bug. The message of the panic is
/// printed where it happens.
///
/// # Errors
/// Those of `compute`; [`CliError::DeviceFailed`] and [`CliError::Bug`] in place of a panic.
pub(crate) fn caught(compute: impl FnOnce() -> Result<(), CliError>) -> Result<(), CliError> {
    catch_unwind(AssertUnwindSafe(compute))
        .unwrap_or_else(|panic| Err(failure(&*panic).unwrap_or_else(|| CliError::Bug(message(&*panic).to_owned()))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message")
}

/// What the message of a panic says of the device, with advice if it is about memory, and whether the device is lost; `None` if it is
/// about something else. The cause is often not in the first line.
fn problem(message: &str) -> Option<(String, bool)> {
    let with = |signs: &[&str]| {
        lines(message).find(|line| {
            let line = line.to_lowercase();
            // An index out of range in a kernel of LibTorch is a bug.
            signs.iter().any(|sign| line.contains(sign)) && !line.contains("device-side assert")
        })
    };
    let (short, lost) = (with(&NO_MEMORY), with(&LOST));
    let advice = if short.is_some() { LESS_MEMORY } else { "" };
    let found = short.or(lost).or_else(|| with(&FAILED))?;
    Some((format!("{}{advice}", cause(found).trim_end_matches('.')), short.is_none() && lost.is_some()))
}

/// The lines of the message of a panic, also of a `Debug` text in it, where ends of lines are escaped.
fn lines(message: &str) -> impl Iterator<Item = &str> {
    message.split('\n').flat_map(|line| line.split("\\n")).map(str::trim).filter(|line| !line.is_empty())
}

/// A line without the words of `Result::unwrap`.
fn cause(line: &str) -> &str {
    line.rsplit("`Err` value: ").next().unwrap_or(line)
}

/// Computes one number on a device, so that one that does not work is reported before the data are read.
///
/// # Errors
/// [`CliError::DeviceUnusable`] with the first line of what the back end says.
fn tried(name: &str, device: Device) -> Result<Device, CliError> {
    let compute = || Tensor::<1>::ones([1], &device).into_data().iter::<f32>().sum::<f32>();
    match problem_of_one(quietly(compute)) {
        None => Ok(device),
        Some(problem) => Err(CliError::DeviceUnusable { device: name.to_owned(), problem }),
    }
}

/// What is wrong with a device that computed this for 1, or whose back end said this.
fn problem_of_one(found: Result<f32, String>) -> Option<String> {
    match found {
        Ok(1.0) => None,
        Ok(other) => Some(format!("computes 1 as {other}, expected 1")),
        Err(message) => {
            Some(format!("cannot be used: {}", shortened(cause(lines(&message).next().unwrap_or(&message)))))
        }
    }
}

/// The result of `compute`, or the message of the first panic of any thread in the meantime, of which nothing is printed: the devices
/// of burn compute on threads of their own, and the panic of their caller says only that one of them failed.
fn quietly<T>(compute: impl FnOnce() -> T) -> Result<T, String> {
    let first = Arc::new(OnceLock::new());
    let before = panic::take_hook();
    let of_hook = Arc::clone(&first);
    panic::set_hook(Box::new(move |info| {
        of_hook.get_or_init(|| message(info.payload()).to_owned());
    }));
    let outcome = catch_unwind(AssertUnwindSafe(compute));
    panic::set_hook(before);
    outcome.map_err(|panic| first.get().cloned().unwrap_or_else(|| message(&*panic).to_owned()))
}

/// At most 200 characters of a line.
fn shortened(line: &str) -> String {
    let cut: String = line.chars().take(200).collect();
    if cut.len() < line.len() { format!("{cut} ..") } else { cut }
}

fn absent(name: &str, back_end: &str) -> CliError {
    let feature = back_end.trim_end_matches("-cuda");
    let compiled_in = CATALOGUE.iter().find(|(known, ..)| known.trim_end_matches(":0") == feature);
    match compiled_in {
        Some((_, _, false)) => {
            let problem = format!("is not in this build, expected one built with --features {feature}");
            CliError::Device { device: name.to_owned(), problem }
        }
        _ => unknown(name),
    }
}

fn unknown(name: &str) -> CliError {
    let problem = "is unknown, expected flex, ndarray, tch, tch-cuda:N, cuda:N or wgpu".to_owned();
    CliError::Device { device: name.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    #[test]
    fn a_device_without_memory_is_told_from_a_lost_one_and_from_a_bug() {
        let advice = "; a smaller training.batch-size";
        // As cubecl-runtime 0.11.3, wgpu 30.0.1 and LibTorch 2.9.0 write them.
        let memory = [
            (
                "An error happened during execution\nCaused by:\n  out of device memory allocating 64 bytes\n",
                "out of device",
            ),
            (
                "An IO error happened\nCaused by:\n  can't allocate buffer of size: 6442450944\n",
                "can't allocate buffer",
            ),
            ("wgpu error: Out of Memory", "wgpu error: Out of Memory;"),
            (
                "called `Result::unwrap()` on an `Err` value: Torch(\"CUDA out of memory. Tried to allocate 20 MiB\\nat c10\")",
                "Torch(\"CUDA out of memory",
            ),
            (
                "Torch(\"[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory\")",
                "Torch(",
            ),
            (
                "wgpu error: Validation Error\n\nCaused by:\n  Buffer size 9 is greater than the maximum buffer size (8)\n",
                "Buffer size 9",
            ),
        ];
        for (message, start) in memory {
            let (found, is_lost) = problem(message).unwrap();
            assert!(
                !is_lost && found.starts_with(start) && found.contains(advice) && !found.contains("\\n"),
                "{found}"
            );
        }
        let lost = [
            "Parent device is lost",
            "x\n  The device is poisoned: Unknown: reset",
            "CUDA error: unspecified launch failure",
        ];
        let unsupported = "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED";
        assert_eq!(problem(unsupported), Some((unsupported.to_owned(), false)));
        for message in lost {
            let (found, is_lost) = problem(message).unwrap();
            assert!(is_lost && !found.contains(advice) && message.contains(&found), "{found}");
        }
        for message in [
            "index out of bounds: the len is 3 but the index is 3",
            "allocated 3 buffers of size 4 and used 5",
            "wgpu error: Validation Error\n\nCaused by:\n  binding 2 is missing",
            "CUDA error: device-side assert triggered",
            "no message",
        ] {
            assert_eq!(problem(message), None, "{message}");
        }
    }

    #[test]
    fn the_kind_of_a_device_has_no_number() {
        assert_eq!(["flex", "flex:0", "cuda:11", "tch-cuda:1"].map(kind), ["flex", "flex", "cuda", "tch-cuda"]);
        assert!(named("flex:0").is_ok() && named("flex:1").is_err());
    }

    #[test]
    fn of_a_device_that_cannot_be_opened_one_short_line_is_shown() {
        let text = "called `Result::unwrap()` on an `Err` value: Torch(\"Found no NVIDIA driver\\nframe #0: c10\")";
        let problem = problem_of_one(Err(text.to_owned())).unwrap();
        assert_eq!(problem, "cannot be used: Torch(\"Found no NVIDIA driver");
        assert_eq!(problem_of_one(Ok(0.5)).unwrap(), "computes 1 as 0.5, expected 1");
        assert_eq!(problem_of_one(Ok(1.0)), None);
        let error = CliError::DeviceUnusable { device: "tch-cuda:1".to_owned(), problem };
        assert_eq!(error.exit(), crate::Exit::Config);
        let long = format!("Unable to load {}", "libcuda, ".repeat(50));
        assert!(shortened(&long).len() == 203 && shortened(&long).ends_with(" .."));
        assert_eq!(shortened("no driver"), "no driver");
    }

    #[test]
    fn a_panic_is_a_bug_unless_it_says_that_the_device_failed() {
        open("flex").unwrap();
        assert!(failure(&"index out of bounds").is_none());
        assert!(failure(&7_usize).is_none());
        let error = failure(&"device lost".to_owned()).unwrap();
        assert_eq!(error.exit(), crate::Exit::Training);
        let text = error.to_string();
        assert!(text.contains("\"flex\" failed: device lost.") && text.contains("resumes"), "{text}");
    }
}
