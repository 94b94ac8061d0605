//! Where the fused operations of a tensor are computed, if its device has them.

use std::sync::OnceLock;

#[cfg(any(feature = "flex", feature = "tch"))]
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor};

use super::VARIABLE;

/// Whether the device of `x` has kernels for its type.
pub(super) fn has_kernels<const D: usize>(x: &Tensor<D>) -> bool {
    let serves = |place| match place {
        Place::Host => x.dtype() == DType::F32,
        Place::Gpu => matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16),
    };
    switched_on() && of_device(&x.device()).is_some_and(serves)
}

/// As [`has_kernels`], and they are those of this crate.
pub(super) fn has_kernels_on_host<const D: usize>(x: &Tensor<D>) -> bool {
    has_kernels(x) && computes_on_host(&x.device())
}

/// Whether the device of `x` has kernels for its type and records no graph: what operations of inference need.
pub(super) fn infers_on_kernels<const D: usize>(x: &Tensor<D>) -> bool {
    has_kernels(x) && !x.device().is_autodiff()
}

/// Whether the kernels are switched on.
fn switched_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    #[cfg(test)]
    if super::tests::without_kernels() {
        return false;
    }
    *ON.get_or_init(|| std::env::var(VARIABLE).as_deref() != Ok("off"))
}

/// Whether the kernels of this crate serve `device`, so that it computes with the processors and in the memory of the host.
pub fn computes_on_host(device: &Device) -> bool {
    of_device(device) == Some(Place::Host)
}

/// The most bytes of a GPU that its allocator had reserved since the program began; `None` of a device that does not tell.
pub fn reserved_memory(device: &Device) -> Option<u64> {
    #[cfg(feature = "tch")]
    if let DispatchDevice::LibTorch(burn_tch::LibTorchDevice::Cuda(index)) = without_autodiff(device) {
        return super::aten::reserved(*index);
    }
    device.memory_pool_usage().map(|usage| usage.bytes_reserved)
}

/// Whose operations compute the fused ones.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "tch"), expect(dead_code, reason = "LibTorch alone has operations for a GPU"))]
pub(super) enum Place {
    /// The kernels of this crate, which read the memory of this process.
    Host,
    /// The back end's own.
    Gpu,
}

/// Where the fused operations of a device are computed; `None` of one without them.
#[cfg(any(feature = "flex", feature = "tch"))]
pub(super) fn of_device(device: &Device) -> Option<Place> {
    match without_autodiff(device) {
        #[cfg(feature = "flex")]
        DispatchDevice::Flex(_) => Some(Place::Host),
        #[cfg(feature = "tch")]
        DispatchDevice::LibTorch(device) => Some(if is_on_host(*device) { Place::Host } else { Place::Gpu }),
        #[allow(unreachable_patterns, reason = "which other devices there are is up to the features of burn")]
        _ => None,
    }
}

#[cfg(any(feature = "flex", feature = "tch"))]
fn without_autodiff(device: &Device) -> &DispatchDevice {
    let device = device.as_dispatch();
    if let DispatchDevice::Autodiff(inner) = device { inner } else { device }
}

#[cfg(not(any(feature = "flex", feature = "tch")))]
pub(super) fn of_device(_: &Device) -> Option<Place> {
    None
}

/// Whether tensors on a device of `LibTorch` are in the memory of this process.
#[cfg(feature = "tch")]
pub(super) fn is_on_host(device: burn_tch::LibTorchDevice) -> bool {
    #[cfg(test)]
    if super::tests::as_on_a_gpu() {
        return false;
    }
    device == burn_tch::LibTorchDevice::Cpu
}
