//! The fused operations on LibTorch: dense convolutions by those of ATen, all others by [`host`], which is faster.
//!
//! The receiver of a gradient function of the crate tch is the argument of the forward pass, and the gradient its argument.

#![expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")]

use std::sync::{Once, mpsc};
use std::thread;

use burn::backend::LibTorch;
use burn::tensor::Shape;
use burn_tch::TchTensor;
use tch::{Device, Kind, Tensor};

use super::host::{self, Host};
use super::operation::{Convolution, Forward, Kernels, Operation};
use super::shim;
use crate::kernels::{Activation, ConvKind};

impl Kernels for LibTorch {
    fn forward(operation: Operation, inputs: Vec<TchTensor>, keep: bool) -> Forward<Self> {
        share_processors();
        match (operation, inputs.as_slice()) {
            (Operation::Conv(settings), [x, weight, bias @ ..]) if is_dense(settings, x, weight) => {
                let output = TchTensor::new(conv(settings, [x, weight], bias.first()));
                let saved = if keep { vec![x.clone(), weight.clone()] } else { vec![] };
                Forward { output, statistics: None, saved }
            }
            _ => host::forward(operation, inputs, keep),
        }
    }

    fn backward(
        operation: Operation,
        saved: Vec<TchTensor>,
        gradient: TchTensor,
        needed: &[bool],
    ) -> Vec<Option<TchTensor>> {
        match (operation, saved.as_slice()) {
            (Operation::Conv(settings), [x, weight]) if is_dense(settings, x, weight) => {
                let (stride, padding) = spatial(settings, &x.tensor);
                let tensors = [&gradient.tensor, &x.tensor, &weight.tensor];
                let found = shim::convolution_gradients(tensors, &stride, &padding, needed);
                found.into_iter().map(|gradient| gradient.map(TchTensor::new)).collect()
            }
            _ => host::backward::<Self>(operation, saved, gradient, needed),
        }
    }
}

impl Host for LibTorch {
    fn contiguous(tensor: TchTensor) -> TchTensor {
        if tensor.tensor.is_contiguous() { tensor } else { TchTensor::new(tensor.tensor.contiguous()) }
    }

    fn values(tensor: &TchTensor) -> &[f32] {
        shim::slice(&tensor.tensor)
    }

    fn values_mut(tensor: &mut TchTensor) -> Option<&mut [f32]> {
        (tensor.can_mut() && tensor.tensor.is_contiguous()).then(|| shim::slice_mut(&mut tensor.tensor))
    }

    fn blank(shape: Shape) -> TchTensor {
        TchTensor::new(blank(&shape, Kind::Float))
    }

    fn of_indices(shape: Shape, fill: impl FnOnce(&mut [u32])) -> TchTensor {
        let mut indices = blank(&shape, Kind::Int);
        fill(shim::slice_mut(&mut indices));
        TchTensor::new(indices)
    }

    fn indices(tensor: &TchTensor) -> &[u32] {
        shim::slice(&tensor.tensor)
    }
}

fn blank(shape: &Shape, kind: Kind) -> Tensor {
    Tensor::empty(integers(&shape.to_vec()), (kind, Device::Cpu))
}

/// Gives LibTorch as many threads as the kernels have, and keeps the ones from being in the way of the others.
///
/// The threads of GNU's OpenMP, which LibTorch computes with, go on spinning for some milliseconds after an operation, on the
/// processors that the kernels want: a step of EfficientNet-B0 took 1.7 times as long. They give way soon where OpenMP counts
/// more threads than processors. It counts by teams, one for each thread that calls it, so a thread that sleeps ever after
/// has one made for itself. Another OpenMP may not look at the number, and loses nothing by it.
fn share_processors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let n_threads = i32::try_from(rayon::current_num_threads()).unwrap_or(i32::MAX);
        tch::set_num_threads(n_threads);
        let (made, wait) = mpsc::channel();
        let asleep = thread::Builder::new().name("openmp".to_owned()).spawn(move || {
            // Numbers for every thread of the team.
            let numbers = Tensor::ones([i64::from(n_threads) << 16], (Kind::Float, Device::Cpu));
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

fn is_dense(settings: Convolution, x: &TchTensor, weight: &TchTensor) -> bool {
    host::conv_shape::<LibTorch>(settings, x, weight).kind() == Some(ConvKind::Dense)
}

fn conv(settings: Convolution, [x, weight]: [&TchTensor; 2], bias: Option<&TchTensor>) -> Tensor {
    let (stride, padding) = spatial(settings, &x.tensor);
    let (ones, zeros) = (vec![1; stride.len()], vec![0; stride.len()]);
    let bias = bias.map(|bias| &bias.tensor);
    let mut y = x.tensor.convolution(&weight.tensor, bias, stride, padding, ones, false, zeros, 1);
    match settings.activation {
        Activation::Identity => y,
        Activation::Relu => y.relu_(),
        Activation::Silu => y.silu_(),
        Activation::Gelu => y.gelu_("none"),
        Activation::Sigmoid => y.sigmoid_(),
    }
}

/// Stride and padding of as many axes as `x` has in space.
fn spatial(settings: Convolution, x: &Tensor) -> (Vec<i64>, Vec<i64>) {
    let from = 5 - x.dim();
    (integers(&settings.stride[from..]), integers(&settings.padding[from..]))
}

fn integers(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|&size| size.try_into().unwrap_or(i64::MAX)).collect()
}
