//! Measures single training steps and single operations on request, one request per line of standard input.
//!
//! `parity/step_time.py` starts it, asks it and a PyTorch process in turn, and prints the ratios; by hand:
//! `echo 'network efficientnet-b0 3;step 4 3 64 64' | tr ';' '\n' | cargo run --release -p fairtte-models --example step_time`
//!
//! | request | answer |
//! |---|---|
//! | `network NAME CHANNELS` | number of parameters of the network that `step` trains from now on |
//! | `step BATCH CHANNELS SIZE..` | seconds of forward pass, backward pass and `AdamW` update |
//! | `conv BATCH CHANNELS SIZE.. / OUT / KERNEL.. / STRIDE.. / PADDING.. / GROUPS` | seconds of forward and backward pass |
//! | `norm SHAPE..`, `relu SHAPE..`, `silu SHAPE..` | the same of batch norm (training mode) and activations |
//! | `memory` | largest resident memory so far, in bytes |

#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use burn::module::Module as _;
use burn::nn::BatchNormConfig;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::{relu, silu};
use burn::tensor::module::{conv2d, conv3d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::seeds::stream;
use fairtte_models::{Backbone, BackboneKind, Noise, Pixels, initialise};

type Answer = Result<Vec<f64>, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut worker = Worker { device: Device::flex().autodiff(), trained: None };
    for line in std::io::stdin().lock().lines() {
        let answer = worker.answer(&line?)?;
        println!("{}", answer.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
        std::io::stdout().flush()?;
    }
    Ok(())
}

struct Worker {
    device: Device,
    trained: Option<(Backbone, ModuleOptimizer)>,
}

impl Worker {
    fn answer(&mut self, line: &str) -> Answer {
        let (request, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match request {
            "network" => self.network(rest),
            "step" => self.step(&numbers(rest)?),
            "conv" => self.convolution(rest),
            "norm" | "relu" | "silu" => match *numbers(rest)? {
                [a, b, c, d] => self.pointwise(request, [a, b, c, d]),
                [a, b, c, d, e] => self.pointwise(request, [a, b, c, d, e]),
                _ => Err(format!("{line:?}: expected four or five sizes").into()),
            },
            "memory" => memory(),
            _ => Err(format!("{line:?} is no request").into()),
        }
    }

    fn network(&mut self, rest: &str) -> Answer {
        let (name, channels) = rest.split_once(' ').ok_or("network: expected a name and a number of channels")?;
        let kind = BackboneKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| format!("{name:?} is no backbone"))?;
        let net = initialise(kind.build(channels.parse()?, &self.device), stream(1, "weights", &[]));
        let n_parameters = net.num_params();
        self.trained = Some((net, AdamWConfig::new().init().into()));
        Ok(vec![n_parameters as f64])
    }

    fn step(&mut self, shape: &[usize]) -> Answer {
        let (net, mut optimiser) = self.trained.take().ok_or("step: name a network first")?;
        let pixels = match *shape {
            [a, b, c, d] => Pixels::Image(self.wave([a, b, c, d])),
            [a, b, c, d, e] => Pixels::Volume(self.wave([a, b, c, d, e])),
            _ => return Err("step: expected four or five sizes".into()),
        };
        let clock = Instant::now();
        let loss = net.forward(pixels, &mut Noise::on(stream(1, "noise", &[])))?.powi_scalar(2).mean();
        read(loss.clone().inner())?;
        let forward = clock.elapsed();
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        let backward = clock.elapsed();
        let net = optimiser.step(1e-4, net, gradients);
        let update = clock.elapsed();
        self.trained = Some((net, optimiser));
        Ok(vec![forward.as_secs_f64(), (backward - forward).as_secs_f64(), (update - backward).as_secs_f64()])
    }

    fn convolution(&self, rest: &str) -> Answer {
        let parts = rest.split('/').map(numbers).collect::<Result<Vec<_>, _>>()?;
        let [shape, out, kernel, stride, padding, groups] = parts.as_slice() else {
            return Err("conv: expected six lists of numbers".into());
        };
        let (out, groups) = (out[0], groups[0]);
        if let ([a, b, c, d], [k0, k1]) = (shape.as_slice(), kernel.as_slice()) {
            let weight = self.wave([out, b / groups, *k0, *k1]).require_grad();
            let options = ConvOptions::<2>::new([stride[0], stride[1]], [padding[0], padding[1]], [1, 1], groups);
            return passes(self.wave([*a, *b, *c, *d]).require_grad(), |x| {
                conv2d(x, weight.clone(), None, options.clone())
            });
        }
        if let ([a, b, c, d, e], [k0, k1, k2]) = (shape.as_slice(), kernel.as_slice()) {
            let weight = self.wave([out, b / groups, *k0, *k1, *k2]).require_grad();
            let (stride, padding) = ([stride[0], stride[1], stride[2]], [padding[0], padding[1], padding[2]]);
            let options = ConvOptions::<3>::new(stride, padding, [1, 1, 1], groups);
            let x = self.wave([*a, *b, *c, *d, *e]).require_grad();
            return passes(x, |x| conv3d(x, weight.clone(), None, options.clone()));
        }
        Err(format!("conv {rest:?}: expected a picture or a volume").into())
    }

    fn pointwise<const D: usize>(&self, request: &str, shape: [usize; D]) -> Answer {
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

    /// Deterministic values in [-1, 1].
    fn wave<const D: usize>(&self, shape: [usize; D]) -> Tensor<D> {
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| (i as f32 * 0.37).sin()).collect();
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }
}

/// Seconds of the forward and the backward pass of `run`. The sum that starts the backward pass is measured in
/// neither but for the constant gradient that it sends back.
fn passes<const D: usize, const E: usize>(x: Tensor<D>, run: impl Fn(Tensor<D>) -> Tensor<E>) -> Answer {
    let clock = Instant::now();
    let output = run(x);
    let forward = clock.elapsed();
    let sum = output.sum();
    let clock = Instant::now();
    let gradients = sum.backward();
    let backward = clock.elapsed();
    drop(gradients);
    Ok(vec![forward.as_secs_f64(), backward.as_secs_f64()])
}

/// Waits for the result.
fn read(tensor: Tensor<1>) -> Result<(), Box<dyn Error>> {
    let value: f32 = tensor.into_scalar();
    if value.is_finite() { Ok(()) } else { Err(format!("the loss is {value}").into()) }
}

fn numbers(text: &str) -> Result<Vec<usize>, Box<dyn Error>> {
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn memory() -> Answer {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(vec![1024.0 * kilobytes])
}
