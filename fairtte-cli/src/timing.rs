//! Times of single steps of a backbone on a device: what `fairtte bench` and the example `step_time` measure.

use std::time::Instant;

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use fairtte_metrics::seeds::stream;
use fairtte_models::{
    Backbone, BackboneKind, ModelError, Noise, Pixels, Precision, UnetDecoder, adamw, initialise, reserved_memory,
};

use crate::CliError;

/// Seconds of the parts of a training step.
#[derive(Clone, Copy, Debug)]
pub struct StepSeconds {
    /// Forward pass, until the loss is in host memory.
    pub forward: f64,
    /// Gradients of all parameters.
    pub backward: f64,
    /// Update of `AdamW`.
    pub update: f64,
}

impl StepSeconds {
    /// Of the whole step.
    pub fn sum(&self) -> f64 {
        self.forward + self.backward + self.update
    }
}

/// A backbone, or a U-Net on it.
#[derive(Module, Debug)]
struct Network {
    backbone: Backbone,
    decoder: Option<UnetDecoder>,
}

impl Network {
    /// Features of every sample, or the logits of its pixels.
    fn forward(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let Some(decoder) = &self.decoder else { return self.backbone.forward(pixels, noise) };
        let (_, maps) = self.backbone.with_maps(pixels)?;
        Ok(decoder.forward(maps).flatten(1, 3))
    }
}

/// A network with random weights, trained and applied step by step; the loss is the mean square of what it computes.
pub struct Timed {
    plain: Device,
    /// `None` while a step computes.
    trained: Option<(Network, ModuleOptimizer)>,
    inference: Option<Network>,
    /// What the last call read, its shape, and whether it is on the device with gradients.
    batch: Option<(Pixels, Vec<usize>, bool)>,
    parameters: usize,
    precision: Precision,
}

impl Timed {
    /// A network of `kind` that reads `channels` channels, or columns, on `plain`, a device without gradients.
    pub fn new(kind: BackboneKind, channels: usize, plain: &Device) -> Self {
        let backbone = kind.build(channels, &plain.clone().autodiff());
        Self::of_network(Network { backbone, decoder: None }, plain)
    }

    /// The U-Net on `resnet18`, for pictures with `channels` channels and pixels of `n_classes` classes.
    pub fn unet(channels: usize, n_classes: usize, plain: &Device) -> Self {
        let device = plain.clone().autodiff();
        let backbone = BackboneKind::ResNet18.build(channels, &device);
        Self::of_network(Network { backbone, decoder: Some(UnetDecoder::new(n_classes, &device)) }, plain)
    }

    fn of_network(net: Network, plain: &Device) -> Self {
        let net = initialise(net, stream(1, "weights", &[]));
        let parameters = net.num_params();
        let trained = Some((net, adamw(1e-8, 1e-4)));
        Self { plain: plain.clone(), trained, inference: None, batch: None, parameters, precision: Precision::F32 }
    }

    /// The same network, trained with activations in `precision`; it predicts in single precision, as a trained network does.
    ///
    /// # Errors
    /// If the device does not compute in it.
    pub fn in_precision(self, precision: Precision) -> Result<Self, CliError> {
        precision.check(&self.plain)?;
        Ok(Self { precision, ..self })
    }

    /// Number of parameters of the network.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// A training step on a batch of this shape (`[batch, columns]`, `[batch, channels, height, width]`, `[batch, channels,
    /// depth, height, width]`); moving the batch to the device is not timed.
    ///
    /// # Errors
    /// If the network does not take the shape, or the device gives a loss that is not finite, or fails.
    pub fn step(&mut self, shape: &[usize]) -> Result<StepSeconds, CliError> {
        self.train(shape, true)
    }

    /// Seconds of a training step as [`step`](Self::step) computes it, without a wait between the gradients and the update: a device
    /// that works on its own computes the one while the other is sent to it, as in a training.
    ///
    /// # Errors
    /// As of [`step`](Self::step).
    pub fn whole_step(&mut self, shape: &[usize]) -> Result<f64, CliError> {
        Ok(self.train(shape, false)?.sum())
    }

    /// A step; the parts have their own times only if `in_parts`.
    fn train(&mut self, shape: &[usize], in_parts: bool) -> Result<StepSeconds, CliError> {
        self.inference = None;
        let pixels = self.pixels(shape, true)?.in_precision(self.precision);
        let Some((net, mut optimiser)) = self.trained.take() else {
            return Err(self.failed("has lost the network in a step that failed"));
        };
        self.wait()?;
        let clock = Instant::now();
        let loss = net.forward(pixels, &mut Noise::on(stream(1, "noise", &[])))?.powi_scalar(2).mean();
        let value: f32 = loss.clone().inner().into_scalar();
        let forward = clock.elapsed().as_secs_f64();
        if !value.is_finite() {
            return Err(self.failed(&format!("gives the loss {value}")));
        }
        let clock = Instant::now();
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        if in_parts {
            self.wait()?;
        }
        let backward = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let net = optimiser.step(1e-4, net, gradients);
        self.wait()?;
        let update = clock.elapsed().as_secs_f64();
        self.trained = Some((net, optimiser));
        Ok(StepSeconds { forward, backward, update })
    }

    /// Seconds of the forward pass of the copy for inference on a batch of this shape, until the features are in host memory.
    /// The first call after a step makes the copy; it and the batch are on the device before the clock starts.
    ///
    /// # Errors
    /// As of [`step`](Self::step).
    pub fn infer(&mut self, shape: &[usize]) -> Result<f64, CliError> {
        let pixels = self.pixels(shape, false)?;
        let Some((trained, _)) = &self.trained else {
            return Err(self.failed("has lost the network in a step that failed"));
        };
        let net = self.inference.take().unwrap_or_else(|| trained.valid());
        self.wait()?;
        let clock = Instant::now();
        let features = net.forward(pixels, &mut Noise::Off)?.into_data();
        let seconds = clock.elapsed().as_secs_f64();
        self.inference = Some(net);
        let finite = features.iter::<f32>().all(f32::is_finite);
        if finite { Ok(seconds) } else { Err(self.failed("gives features that are not finite")) }
    }

    /// Bytes that the pools of the device have reserved, in use or kept for reuse, where it says them.
    pub fn device_memory(&self) -> Option<u64> {
        reserved_memory(&self.plain)
    }

    /// Deterministic values in [-1, 1]. A batch stays on the device until another one is wanted: to make one takes longer than a step on
    /// a GPU, which would idle meanwhile.
    fn pixels(&mut self, shape: &[usize], gradients: bool) -> Result<Pixels, CliError> {
        if let Some((pixels, ..)) = self.batch.as_ref().filter(|(_, known, of)| known == shape && *of == gradients) {
            return Ok(pixels.clone());
        }
        self.batch = None;
        let device = if gradients { self.plain.clone().autodiff() } else { self.plain.clone() };
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| (i as f32 * 0.37).sin()).collect();
        let pixels = Pixels::from_host(values, shape.to_vec(), &device)?;
        self.batch = Some((pixels.clone(), shape.to_vec(), gradients));
        Ok(pixels)
    }

    /// Waits until the device has computed everything.
    fn wait(&self) -> Result<(), CliError> {
        self.plain.sync().map_err(|error| self.failed(&format!("failed: {error}")))
    }

    fn failed(&self, problem: &str) -> CliError {
        CliError::Device { device: format!("{:?}", self.plain), problem: problem.to_owned() }
    }
}

/// Largest resident memory of this process so far, in bytes; `None` where the system does not say it in `/proc`.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(1024 * kilobytes)
}
