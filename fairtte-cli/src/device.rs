//! The only place that names burn's back ends.

use burn::tensor::Device;

use crate::CliError;

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
