//! The fused operations on `LibTorch`. On a GPU those of [`aten`]. On the CPU those of [`host`], but for the forward pass of some
//! dense convolutions, which `LibTorch` computes faster; their gradients are those of [`host`] too.

use std::sync::{Once, mpsc};
use std::thread;

use burn::backend::{LibTorch, TensorMetadata as _};
use burn::tensor::Shape;
use burn_tch::TchTensor;
use tch::{Device, Kind, Tensor};

use super::aten::{self, integer};
use super::host::{self, Host};
use super::operation::{Convolution, Forward, Kernels, Operation};
use super::{adamw, is_on_host, slices};
use crate::kernels;
use crate::kernels::adamw::Settings;
use crate::kernels::conv::ConvKind;

impl Kernels for LibTorch {
    fn forward(operation: Operation, inputs: Vec<TchTensor>, keep: bool) -> Forward<Self> {
        if !is_on_host(inputs[0].device()) {
            return aten::forward(operation, &inputs, keep);
        }
        give_way();
        match (operation, inputs.as_slice()) {
            (Operation::Conv(settings), [x, weight, bias @ ..]) if is_faster_here(settings, x, weight) => {
                let bias = bias.first().map(|bias| &bias.tensor);
                let output = TchTensor::new(aten::conv(settings, [&x.tensor, &weight.tensor], bias));
                let saved = if keep { vec![x.clone(), weight.clone()] } else { vec![] };
                Forward { output, statistics: None, saved }
            }
            _ => host::forward(operation, inputs, keep),
        }
    }

    fn repeat(operation: Operation, saved: &[TchTensor]) -> TchTensor {
        host::repeat::<Self>(operation, saved)
    }

    fn backward(
        operation: Operation,
        saved: Vec<TchTensor>,
        gradient: TchTensor,
        needed: &[bool],
    ) -> Vec<Option<TchTensor>> {
        if !is_on_host(gradient.device()) {
            return aten::backward(operation, &saved, gradient, needed);
        }
        host::backward::<Self>(operation, saved, gradient, needed)
    }

    fn adamw(tensors: [TchTensor; 4], settings: &Settings, time: usize) -> [TchTensor; 3] {
        if !is_on_host(tensors[0].device()) {
            return aten::adamw(tensors, settings, time);
        }
        adamw::on_host::<Self>(tensors, settings, time)
    }
}

impl Host for LibTorch {
    fn contiguous(tensor: TchTensor) -> TchTensor {
        if tensor.tensor.is_contiguous() { tensor } else { TchTensor::new(tensor.tensor.contiguous()) }
    }

    fn values(tensor: &TchTensor) -> &[f32] {
        slices::slice(tensor)
    }

    fn values_mut(tensor: &mut TchTensor) -> Option<&mut [f32]> {
        slices::slice_mut(tensor)
    }

    fn blank(shape: Shape) -> TchTensor {
        blank(&shape, Kind::Float)
    }

    fn of_indices(shape: Shape, fill: impl FnOnce(&mut [u32])) -> TchTensor {
        let mut indices = blank(&shape, Kind::Int);
        fill(slices::slice_mut(&mut indices).expect("a new tensor"));
        indices
    }

    fn indices(tensor: &TchTensor) -> &[u32] {
        slices::slice(tensor)
    }
}

fn blank(shape: &Shape, kind: Kind) -> TchTensor {
    TchTensor::new(Tensor::empty(integers(&shape.to_vec()), (kind, Device::Cpu)))
}

/// Lets `LibTorch` compute with `n` threads, in the whole process and from now on; the kernels' are those of rayon.
pub fn use_threads(n: usize) {
    let n = n.try_into().unwrap_or(i32::MAX);
    tch::set_num_threads(n.max(tch::get_num_threads()));
    give_way();
    tch::set_num_threads(n);
}

/// Makes the threads of `LibTorch` leave the processors to those of the kernels when they have nothing to do.
///
/// Those of GNU's OpenMP keep spinning for some milliseconds after an operation: a step of EfficientNet-B0 took 1.4 times as
/// long and up to twice the processor time (docs/src/performance/changes.md). They give up soon where OpenMP counts more threads than processors. It counts by teams, one for each thread that
/// calls it, so a thread that sleeps ever after has one made for itself, of as many threads as `LibTorch` takes for itself,
/// which is one for each processor. Another OpenMP may not look at the number, and loses nothing by it.
fn give_way() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let n_threads = i64::from(tch::get_num_threads());
        if n_threads < 2 {
            return;
        }
        let (made, wait) = mpsc::channel();
        let asleep = thread::Builder::new().name("openmp".to_owned()).spawn(move || {
            // Numbers for every thread of the team.
            let numbers = Tensor::ones([n_threads << 16], (Kind::Float, Device::Cpu));
            let _ = made.send(numbers.exp().numel());
            drop(numbers);
            loop {
                thread::park();
            }
        });
        // Without the thread all is the same, only slower.
        if asleep.is_ok() {
            let _ = wait.recv();
        }
    });
}

/// Whether the forward pass of a convolution is left to `LibTorch`: that of a dense one which [`host`] does not compute with
/// fewer products. Not the convolution of the pictures themselves: that of [`host`] is as fast, and a network without other
/// such convolutions then does not wake `LibTorch`'s threads, with which inference took 1.3 times as long in some processes.
fn is_faster_here(settings: Convolution, x: &TchTensor, weight: &TchTensor) -> bool {
    /// Channels of a picture, at most.
    const FEW: usize = 4;
    let [of_x, of_weight] = [x, weight].map(|tensor| tensor.shape().to_vec());
    let shape = settings.shape(&of_x, &of_weight);
    shape.kind() == Some(ConvKind::Dense) && shape.inputs > FEW && !kernels::conv::has_fewer_products(&shape)
}

fn integers(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().copied().map(integer).collect()
}
