//! One network: what is measured, and the measurement.

use std::time::Instant;

use burn::tensor::Device;
use fairtte_models::{BackboneKind, ModelError, Precision};
use serde::{Deserialize, Serialize};

use crate::CliError;
use crate::args::Bench;
use crate::timing::{Timed, peak_memory};

/// Steps that are timed at least, after the first.
const AT_LEAST: usize = 3;

/// A network, its input and how long it is measured.
#[derive(Clone, Debug)]
pub(super) struct Request {
    kind: BackboneKind,
    /// Channels and size of a sample, or its columns.
    sample: Vec<usize>,
    batch: usize,
    precision: Precision,
    seconds: f64,
    samples: Option<u64>,
    epochs: u64,
}

/// The result for one network.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Measured {
    pub backbone: String,
    /// Batch, channels and size.
    pub shape: Vec<usize>,
    pub parameters: usize,
    /// Of the activations in training; inference is in `f32`.
    pub precision: Precision,
    /// Threads of the pool on the host.
    pub threads: usize,
    pub training: Rate,
    pub inference: Rate,
    /// Largest resident memory of the process on the host, in bytes; absent where the system does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// The most memory that the device's pools had reserved after a batch, in bytes; absent where it does not say it. They keep
    /// pages for reuse, so this is at least what a batch needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}

/// How fast batches are computed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Rate {
    /// Seconds of the first batch, which on some devices compiles and chooses its kernels.
    pub first_seconds: f64,
    /// Median of the batches after it.
    pub seconds: f64,
    /// Number of these batches.
    pub batches: usize,
    pub samples_per_second: f64,
    /// Speed relative to that of the fewest threads that were measured, divided by how many times as many threads there are;
    /// absent if only one number of threads was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
}

impl Rate {
    /// Sets the efficiency on `threads` threads from the rate on the fewest.
    fn compare(&mut self, threads: usize, (fewest, rate): (usize, f64)) {
        self.efficiency = Some(self.samples_per_second / rate * fewest as f64 / threads as f64);
    }
}

impl Measured {
    /// What identifies a measurement but for its threads.
    fn case(&self) -> (&str, &[usize]) {
        (&self.backbone, &self.shape)
    }
}

/// Sets the efficiencies of networks that were measured on several numbers of threads, each relative to the fewest.
pub(super) fn compare_threads(networks: &mut [Measured]) {
    let fewest: Vec<Option<(usize, f64, f64)>> = networks
        .iter()
        .map(|network| {
            let same = networks.iter().filter(|other| other.case() == network.case());
            let (n, first) = same.fold((0, None), |(n, first): (usize, Option<&Measured>), other| {
                (n + 1, Some(first.filter(|first| first.threads <= other.threads).unwrap_or(other)))
            });
            let rates = |first: &Measured| {
                (first.threads, first.training.samples_per_second, first.inference.samples_per_second)
            };
            first.filter(|_| n > 1).map(rates)
        })
        .collect();
    for (network, fewest) in networks.iter_mut().zip(fewest) {
        if let Some((threads, training, inference)) = fewest {
            network.training.compare(network.threads, (threads, training));
            network.inference.compare(network.threads, (threads, inference));
        }
    }
}

/// How long a data set takes at these rates.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Estimate {
    pub samples: u64,
    pub epochs: u64,
    pub training_hours: f64,
    pub inference_hours: f64,
}

impl Estimate {
    /// The hours at these samples per second, in training and in inference. The product of two counts
    /// may exceed `u64`.
    fn new(samples: u64, epochs: u64, [training, inference]: [f64; 2]) -> Self {
        let hours = |n: f64, per_second: f64| n / per_second / 3600.0;
        let (n, n_epochs) = (samples as f64, epochs as f64);
        Self { samples, epochs, training_hours: hours(n * n_epochs, training), inference_hours: hours(n, inference) }
    }
}

/// Most values of a batch: 16 GiB in single precision.
const MOST_VALUES: usize = 1 << 32;

impl Request {
    /// What the arguments ask of a network.
    ///
    /// # Errors
    /// [`CliError::Setting`] for a shape that is none of this network.
    pub(super) fn new(kind: BackboneKind, arguments: &Bench) -> Result<Self, CliError> {
        let (usual, batch): (&[usize], _) = match kind.n_axes() {
            0 => (&[16], 256),
            2 => (&[3, 224, 224], 16),
            _ => (&[3, 96, 128, 128], 2),
        };
        let sample = match &arguments.shape {
            None => usual.to_vec(),
            Some(text) => {
                let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.parse().ok()).collect();
                let fits = |sizes: &Vec<usize>| sizes.len() == kind.n_axes() + 1 && !sizes.contains(&0);
                sizes.filter(fits).ok_or_else(|| {
                    let example = usual.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
                    let expected = format!("sizes of {} as {example}", kind.name());
                    CliError::Setting { key: "--shape".to_owned(), value: format!("\"{text}\""), expected }
                })?
            }
        };
        let batch = arguments.batch.unwrap_or(batch);
        let (seconds, samples, epochs) = (arguments.seconds, arguments.samples, arguments.epochs);
        let named = Precision::ALL.into_iter().find(|precision| precision.name() == arguments.precision);
        let precision = named.ok_or_else(|| CliError::Setting {
            key: "--precision".to_owned(),
            value: format!("\"{}\"", arguments.precision),
            expected: format!("one of {}", Precision::ALL.map(Precision::name).join(", ")),
        })?;
        let request = Self { kind, sample, batch, precision, seconds, samples, epochs };
        request.check_size()?;
        Ok(request)
    }

    fn check_size(&self) -> Result<(), CliError> {
        let n_values = self.sample.iter().try_fold(self.batch, |n, size| n.checked_mul(*size));
        if n_values.is_some_and(|n| n <= MOST_VALUES) {
            return Ok(());
        }
        let expected = format!("a batch of at most {MOST_VALUES} values with the shape {}", self.shape_words());
        Err(CliError::Setting { key: "--batch".to_owned(), value: self.batch.to_string(), expected })
    }

    pub(super) fn kind(&self) -> BackboneKind {
        self.kind
    }

    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// `3x224x224`.
    pub(super) fn shape_words(&self) -> String {
        self.sample.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
    }

    /// `batches of 16 x 3x224x224`.
    pub(super) fn batch_words(&self) -> String {
        format!("batches of {} x {}", self.batch, self.shape_words())
    }

    /// Trains, then predicts, batch after batch.
    ///
    /// # Errors
    /// If the network does not take the shape, or the device fails.
    pub(super) fn measure(&self, device: &Device) -> Result<Measured, CliError> {
        self.precision.check(device).map_err(refused_precision)?;
        let mut network = Timed::new(self.kind, self.sample[0], device).in_precision(self.precision)?;
        let shape: Vec<usize> = std::iter::once(self.batch).chain(self.sample.iter().copied()).collect();
        let mut device_memory = None;
        let training = self.rate(|| {
            let seconds = network.whole_step(&shape)?;
            device_memory = device_memory.max(network.device_memory());
            Ok(seconds)
        })?;
        let inference = self.rate(|| network.infer(&shape))?;
        let rates = [&training, &inference].map(|rate| rate.samples_per_second);
        let estimate = self.samples.map(|samples| Estimate::new(samples, self.epochs, rates));
        Ok(Measured {
            backbone: self.kind.name().to_owned(),
            parameters: network.parameters(),
            precision: self.precision,
            threads: rayon::current_num_threads(),
            shape,
            training,
            inference,
            peak_memory: peak_memory(),
            device_memory: device_memory.max(network.device_memory()),
            estimate,
        })
    }

    fn rate(&self, mut batch: impl FnMut() -> Result<f64, CliError>) -> Result<Rate, CliError> {
        let first_seconds = batch()?;
        let mut found = Vec::new();
        let clock = Instant::now();
        while found.len() < AT_LEAST || clock.elapsed().as_secs_f64() < self.seconds {
            found.push(batch()?);
        }
        let (seconds, batches) = (median(&mut found), found.len());
        let samples_per_second = self.batch as f64 / seconds;
        Ok(Rate { first_seconds, seconds, batches, samples_per_second, efficiency: None })
    }
}

/// The median of at least one number: of an even number of them, the mean of the two in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let (below, above) = ((values.len() - 1) / 2, values.len() / 2);
    f64::midpoint(values[below], values[above])
}

/// A precision in which the device does not compute is an argument that is out of range.
fn refused_precision(error: ModelError) -> CliError {
    match error {
        ModelError::Precision { precision, supported } => CliError::Setting {
            key: "--precision".to_owned(),
            value: format!("\"{precision}\""),
            expected: format!("one in which the device computes: {supported}"),
        },
        other => other.into(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    fn measured(backbone: &str, threads: usize, training: f64, inference: f64) -> Measured {
        let rate = |samples_per_second: f64| Rate {
            first_seconds: 1.0,
            seconds: 1.0 / samples_per_second,
            batches: 3,
            samples_per_second,
            efficiency: None,
        };
        Measured {
            backbone: backbone.to_owned(),
            shape: vec![1, 3],
            parameters: 1,
            precision: Precision::F32,
            threads,
            training: rate(training),
            inference: rate(inference),
            peak_memory: None,
            device_memory: None,
            estimate: None,
        }
    }

    #[test]
    fn hours_of_more_samples_than_a_count_holds_are_a_number() {
        let found = Estimate::new(u64::MAX, 2, [1e15, 1e15]);
        // 2^64 samples of an epoch at 10^15 per second.
        assert!((found.inference_hours - 5.124_095_576).abs() < 1e-9, "{found:?}");
        assert!((found.training_hours - 10.248_191_152).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        let found = |mut values: Vec<f64>| median(&mut values).to_bits();
        assert_eq!(found(vec![3.0, 1.0, 2.0]), 2.0_f64.to_bits());
        assert_eq!(found(vec![5.0, 1.0, 2.0, 3.0]), 2.5_f64.to_bits());
        assert_eq!(found(vec![7.0]), 7.0_f64.to_bits());
    }

    #[test]
    fn a_precision_without_the_device_for_it_is_a_wrong_argument() {
        let supported = "f32, f16".to_owned();
        let error = refused_precision(ModelError::Precision { precision: Precision::Bf16, supported });
        assert_eq!(error.exit(), crate::Exit::Config);
        assert_eq!(error.to_string(), "--precision is \"bf16\", expected one in which the device computes: f32, f16");
    }

    #[test]
    fn efficiency_is_the_speed_per_thread_relative_to_the_fewest_threads() {
        let mut networks = vec![measured("a", 4, 30.0, 80.0), measured("a", 2, 20.0, 40.0), measured("b", 2, 7.0, 7.0)];
        compare_threads(&mut networks);
        let close = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-12);
        close(networks[0].training.efficiency, 0.75);
        close(networks[0].inference.efficiency, 1.0);
        close(networks[1].training.efficiency, 1.0);
        assert_eq!(networks[2].training.efficiency, None, "there is nothing to compare it with");
    }
}
