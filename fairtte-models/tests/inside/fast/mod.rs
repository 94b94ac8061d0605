//! The fused operations against burn's own on the same device, their fall-back, and the independence of the results
//! from threads and instruction set.

mod adamw;
mod against_burn;
mod chain;
mod fall_back;
mod golden;
mod gradients;
#[cfg(any(feature = "flex", feature = "tch"))]
mod host;
mod inverted_residual;
mod networks;
mod patches;

use std::cell::Cell;
use std::process::Command;

use burn::tensor::{Device, Tensor, TensorData};

use crate::kernels::{InstructionSet, simd};

thread_local! {
    static WITHOUT_KERNELS: Cell<bool> = const { Cell::new(false) };
}

/// Read by [`super::place`].
pub(crate) fn without_kernels() -> bool {
    WITHOUT_KERNELS.get()
}

/// Runs `compute` with burn's own operations only.
pub(crate) fn by_burn<T>(compute: impl FnOnce() -> T) -> T {
    WITHOUT_KERNELS.set(true);
    let result = compute();
    WITHOUT_KERNELS.set(false);
    result
}

/// Whether the test device is `aten`: `LibTorch` on the CPU, with the operations that it has for a GPU.
#[cfg(feature = "tch")]
pub(crate) fn as_on_a_gpu() -> bool {
    static IS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IS.get_or_init(|| std::env::var("FAIRTTE_TEST_DEVICE").as_deref() == Ok("aten"))
}

/// `flex`, or the device that `FAIRTTE_TEST_DEVICE` names in a build with its feature: `tch`, `aten` ([`as_on_a_gpu`]), `tch-cuda`, `wgpu` or `cuda`.
pub(crate) fn plain_device() -> Device {
    match std::env::var("FAIRTTE_TEST_DEVICE").as_deref() {
        #[cfg(feature = "tch")]
        Ok("tch" | "aten") => Device::libtorch(),
        #[cfg(feature = "tch")]
        Ok("tch-cuda") => Device::libtorch_cuda(0),
        #[cfg(feature = "cuda")]
        Ok("cuda") => Device::cuda(0),
        #[cfg(feature = "wgpu")]
        Ok("wgpu") => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        Ok(other) => panic!("FAIRTTE_TEST_DEVICE is {other:?}, which is not in this build"),
        Err(_) => Device::flex(),
    }
}

fn device() -> Device {
    plain_device().autodiff()
}

/// Numbers in [-1, 1) that look drawn at random, the same for the same `salt`.
fn numbers(n: usize, salt: u32) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f64::from(state >> 8) / f64::from(1 << 23) - 1.0
    };
    #[expect(clippy::cast_possible_truncation, reason = "24 bits fit into single precision")]
    (0..n).map(|_| next() as f32).collect()
}

fn tensor<const D: usize>(shape: [usize; D], salt: u32, device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(numbers(shape.iter().product(), salt), shape), device)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("single precision")
}

/// Largest difference, relative to the largest magnitude of the `expected` values.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    difference_of_scale(1e-6, found, expected)
}

/// As [`difference`], of values that would be of this magnitude at least if they did not happen to cancel.
fn difference_of_scale(least: f32, found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(least, |largest, value| largest.max(value.abs()));
    let gap = |(a, b): (&f32, &f32)| if a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() };
    found
        .iter()
        .zip(expected)
        .map(gap)
        .fold(0.0, |a: f32, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) })
        / scale
}

#[track_caller]
fn assert_close(what: &str, found: &[f32], expected: &[f32], bound: f32) {
    let difference = difference(found, expected);
    assert!(difference <= bound, "{what}: {difference:e} apart, expected at most {bound:e}");
}

/// Repeats every test of kernels and fused operations on each lower instruction set, in separate processes.
#[test]
fn everything_holds_on_every_instruction_set() {
    if std::env::var_os(simd::VARIABLE).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("the test binary knows its path");
    for set in InstructionSet::ALL {
        if !set.is_available() || set == InstructionSet::best() {
            continue;
        }
        let run = Command::new(&program)
            .args(["kernels::", "fast::", "--skip", "everything_holds_on_every_instruction_set"])
            .env(simd::VARIABLE, set.name())
            .output()
            .expect("the test binary starts");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "on {}:\n{text}", set.name());
        assert!(!text.contains("running 0 tests"), "no test ran on {}", set.name());
        eprintln!("{}: {}", set.name(), text.lines().last().unwrap_or_default());
    }
}

/// A silent fallback to the baseline is six times slower; the CPU is queried in a different way than in the kernels.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_best_instruction_set_of_this_cpu_is_in_use() {
    let flags = (std::is_x86_feature_detected!("avx512f"), std::is_x86_feature_detected!("fma"));
    let best = match flags {
        (true, _) => InstructionSet::Avx512,
        (_, true) => InstructionSet::Avx2,
        _ => InstructionSet::Baseline,
    };
    let expected = match std::env::var(simd::VARIABLE) {
        Ok(name) => InstructionSet::requested(&name).expect("a set of this CPU"),
        Err(_) => best,
    };
    assert_eq!(InstructionSet::best(), best);
    assert_eq!(InstructionSet::in_use(), expected);
}
