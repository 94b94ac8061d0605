//! Measures single training steps, inference and single operations on request, one request per line of standard input.
//!
//! The first argument is the device: `flex` (default), or `tch` in a build with `--features tch`.
//! `parity/step_time.py` starts it, sends requests to it and a PyTorch process in turn, and prints the ratios; by
//! hand:
//! `echo 'network efficientnet-b0 3;step 4 3 64 64' | tr ';' '\n' | cargo run --release -p fairtte-cli --example step_time`
//!
//! | request | answer |
//! |---|---|
//! | `network NAME CHANNELS` | number of parameters of the network that `step` trains from now on; `unet` is that of masks, with three classes |
//! | `step BATCH CHANNELS SIZE..` | seconds of forward pass, backward pass and `AdamW` update |
//! | `infer BATCH CHANNELS SIZE..` | seconds of a forward pass of the copy for inference, which the first request after a step makes |
//! | `conv BATCH CHANNELS SIZE.. / OUT / KERNEL.. / STRIDE.. / PADDING.. / GROUPS` | seconds of forward and backward pass |
//! | `norm SHAPE..`, `relu SHAPE..`, `silu SHAPE..` | the same of batch norm (training mode) and activations |
//! | `memory` | largest resident memory so far, in bytes |
//!
//! The instruction set of the kernels is printed on standard error. Memory is allocated as in the program `fairtte`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]
#![cfg_attr(
    feature = "tch",
    expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")
)]

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use burn::nn::BatchNormConfig;
use burn::tensor::activation::{relu, silu};
use burn::tensor::module::{conv2d, conv3d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_cli::memory::{Allocator, keep_free_memory};
use fairtte_cli::timing::{StepSeconds, Timed, peak_memory};
use fairtte_models::BackboneKind;
use fairtte_models::kernels::InstructionSet;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Classes of pixels of the U-Net.
const N_CLASSES: usize = 3;

type Problem = Box<dyn Error + Send + Sync>;
type Answer = Result<Vec<f64>, Problem>;

fn main() -> Result<(), Problem> {
    keep_free_memory();
    let device = match std::env::args().nth(1).as_deref() {
        None | Some("flex") => Device::flex(),
        #[cfg(feature = "tch")]
        Some("tch") => Device::libtorch(),
        Some(other) => return Err(format!("device {other:?} is not in this build").into()),
    };
    fairtte_models::check_environment()?;
    eprintln!("instruction set: {}", InstructionSet::in_use().name());
    let mut worker = Worker { plain: device.clone(), device: device.autodiff(), network: None };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        // On a thread of the pool, as the training of `fairtte`.
        let answer = rayon::scope(|_| worker.answer(&line))?;
        println!("{}", answer.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
        std::io::stdout().flush()?;
    }
    Ok(())
}

struct Worker {
    plain: Device,
    /// The device with gradients.
    device: Device,
    network: Option<Timed>,
}

impl Worker {
    fn answer(&mut self, line: &str) -> Answer {
        let (request, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match request {
            "network" => self.network(rest),
            "step" => self.step(&numbers(rest)?),
            "infer" => self.infer(&numbers(rest)?),
            "conv" => self.convolution(rest),
            "norm" | "relu" | "silu" => match sizes(&numbers(rest)?)? {
                Sizes::Picture(shape) => Ok(self.pointwise(request, shape)),
                Sizes::Volume(shape) => Ok(self.pointwise(request, shape)),
            },
            "memory" => memory(),
            _ => Err(format!("{line:?} is not a request").into()),
        }
    }

    fn network(&mut self, rest: &str) -> Answer {
        let (name, channels) = rest.split_once(' ').ok_or("network: expected a name and a number of channels")?;
        let channels = channels.parse()?;
        let timed = if name == "unet" {
            Timed::unet(channels, N_CLASSES, &self.plain)
        } else {
            let kind = BackboneKind::ALL.into_iter().find(|kind| kind.name() == name);
            Timed::new(kind.ok_or_else(|| format!("{name:?} is not a backbone"))?, channels, &self.plain)
        };
        Ok(vec![self.network.insert(timed).parameters() as f64])
    }

    fn step(&mut self, shape: &[usize]) -> Answer {
        let StepSeconds { forward, backward, update } =
            self.network.as_mut().ok_or("step: name a network first")?.step(shape)?;
        Ok(vec![forward, backward, update])
    }

    fn infer(&mut self, shape: &[usize]) -> Answer {
        Ok(vec![self.network.as_mut().ok_or("infer: name a network first")?.infer(shape)?])
    }

    fn convolution(&self, rest: &str) -> Answer {
        let parts = rest.split('/').map(numbers).collect::<Result<Vec<_>, _>>()?;
        let [shape, out, kernel, stride, padding, groups] = parts.as_slice() else {
            return Err("conv: expected six lists of numbers".into());
        };
        let (out, groups) = (out[0], groups[0]);
        match sizes(shape)? {
            Sizes::Picture(shape) => {
                let [high, wide] = kernel.as_slice().try_into()?;
                let weight = self.wave([out, shape[1] / groups, high, wide]).require_grad();
                let (stride, padding) = (stride.as_slice().try_into()?, padding.as_slice().try_into()?);
                let options = ConvOptions::<2>::new(stride, padding, [1; 2], groups);
                let x = self.wave(shape).require_grad();
                Ok(passes(x, |x| conv2d(x, weight.clone(), None, options.clone())))
            }
            Sizes::Volume(shape) => {
                let [deep, high, wide] = kernel.as_slice().try_into()?;
                let weight = self.wave([out, shape[1] / groups, deep, high, wide]).require_grad();
                let (stride, padding) = (stride.as_slice().try_into()?, padding.as_slice().try_into()?);
                let options = ConvOptions::<3>::new(stride, padding, [1; 3], groups);
                let x = self.wave(shape).require_grad();
                Ok(passes(x, |x| conv3d(x, weight.clone(), None, options.clone())))
            }
        }
    }

    fn pointwise<const D: usize>(&self, request: &str, shape: [usize; D]) -> Vec<f64> {
        let x = self.wave(shape).require_grad();
        match request {
            "relu" => passes(x, relu),
            "silu" => passes(x, silu),
            _ => {
                let norm = BatchNormConfig::new(shape[1]).init(&self.device);
                passes(x, |x| norm.forward(x))
            }
        }
    }

    fn wave<const D: usize>(&self, shape: [usize; D]) -> Tensor<D> {
        wave(shape, &self.device)
    }
}

/// Deterministic values in [-1, 1].
fn wave<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| (i as f32 * 0.37).sin()).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Seconds of the forward and the backward pass of `run`. The sum that starts the backward pass is included in neither,
/// except for the constant gradient that it passes back.
fn passes<const D: usize, const E: usize>(x: Tensor<D>, run: impl Fn(Tensor<D>) -> Tensor<E>) -> Vec<f64> {
    let clock = Instant::now();
    let output = run(x);
    let forward = clock.elapsed();
    let sum = output.sum();
    let clock = Instant::now();
    let gradients = sum.backward();
    let backward = clock.elapsed();
    drop(gradients);
    vec![forward.as_secs_f64(), backward.as_secs_f64()]
}

/// Sizes of a batch of pictures or of volumes.
enum Sizes {
    Picture([usize; 4]),
    Volume([usize; 5]),
}

fn sizes(shape: &[usize]) -> Result<Sizes, Problem> {
    match shape.len() {
        4 => Ok(Sizes::Picture(shape.try_into()?)),
        5 => Ok(Sizes::Volume(shape.try_into()?)),
        n => Err(format!("expected four or five sizes, found {n}").into()),
    }
}

fn numbers(text: &str) -> Result<Vec<usize>, Problem> {
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn memory() -> Answer {
    Ok(vec![peak_memory().ok_or("no VmHWM in /proc/self/status")? as f64])
}
