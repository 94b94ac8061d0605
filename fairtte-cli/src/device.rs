//! The only place that names burn's back ends.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;

use crate::CliError;

/// The device that was opened last, unless it computes in this process without a driver.
static IN_USE: Mutex<Option<String>> = Mutex::new(None);

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
/// [`CliError::Device`] if the name is unknown or its back end was not compiled in, and an error of the settings if an
/// environment variable of the kernels has an invalid value.
#[cfg_attr(
    any(feature = "ndarray", feature = "tch"),
    expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")
)]
pub(crate) fn open(name: &str) -> Result<Device, CliError> {
    fairtte_models::check_environment()?;
    *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) = (name != "flex").then(|| name.to_owned());
    let (back_end, index) = match name.split_once(':') {
        Some((back_end, index)) => (back_end, index.parse::<usize>().map_err(|_| unknown(name))?),
        None => (name, 0),
    };
    match (back_end, index) {
        #[cfg(feature = "flex")]
        ("flex", 0) => Ok(Device::flex()),
        #[cfg(feature = "ndarray")]
        ("ndarray", 0) => Ok(Device::ndarray()),
        #[cfg(feature = "tch")]
        ("tch", 0) => Ok(Device::libtorch()),
        #[cfg(feature = "tch")]
        ("tch-cuda", index) => Ok(Device::libtorch_cuda(index)),
        #[cfg(feature = "cuda")]
        ("cuda", index) => Ok(Device::cuda(index)),
        #[cfg(feature = "wgpu")]
        ("wgpu", 0) => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        _ => Err(absent(name, back_end)),
    }
}

/// Gives a back end with threads of its own as many threads as the pool, which has the number set by `threads`.
#[cfg_attr(not(feature = "tch"), expect(unused_variables, reason = "no other back end has threads of its own"))]
pub(crate) fn use_threads(name: &str) {
    #[cfg(feature = "tch")]
    if name.starts_with("tch") {
        fairtte_models::use_threads(rayon::current_num_threads());
    }
}

/// The error that a panic stands for, if a device with a driver was in use: burn has no errors for a device that runs out of
/// memory or is lost, but panics. `None` if everything was computed by `flex`, whose panics are bugs.
pub(crate) fn failure(panic: &(dyn Any + Send)) -> Option<CliError> {
    let device = IN_USE.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    Some(CliError::DeviceFailed { device, problem: problem(message(panic)) })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.and_then(|text| text.lines().find(|line| !line.trim().is_empty())).unwrap_or("no message").trim()
}

/// What the message of a panic says, with advice if it is about memory.
fn problem(message: &str) -> String {
    let lower = message.to_lowercase();
    let signs = ["out of memory", "outofmemory", "out_of_memory", "not enough memory", "buffer size", "allocat"];
    if signs.iter().any(|sign| lower.contains(sign)) {
        let advice = "a smaller training.batch-size with training.accumulate for the rest of it needs less memory";
        format!("{message}; {advice}")
    } else {
        message.to_owned()
    }
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
    fn a_device_that_has_no_memory_left_is_told_from_other_failures() {
        let of = |text: &str| problem(message(&text.to_owned()));
        let advice = "a smaller training.batch-size";
        assert!(of("CUDA_ERROR_OUT_OF_MEMORY\n at line 3").starts_with("CUDA_ERROR_OUT_OF_MEMORY; a smaller"));
        assert!(of("\nRequested buffer size 6442450944 exceeds the maximum").contains(advice));
        assert_eq!(of("device lost\nbacktrace"), "device lost");
        assert_eq!(message(&7_usize), "no message");
    }

    #[test]
    fn a_panic_of_the_portable_back_end_is_a_bug() {
        open("flex").unwrap();
        assert!(failure(&"index out of bounds").is_none());
        *IN_USE.lock().unwrap() = Some("wgpu".to_owned());
        let error = failure(&"device lost").unwrap();
        assert_eq!(error.exit(), crate::Exit::Training);
        let text = error.to_string();
        assert!(text.contains("wgpu") && text.contains("device lost") && text.contains("resumes"), "{text}");
    }
}
