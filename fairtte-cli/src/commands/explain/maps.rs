//! The maps of one sample by every method that was requested.

use fairtte_data::HostBatch;
use fairtte_data::features::TabularFeatures;
use fairtte_fairness::Predictor;
use fairtte_fairness::explain::{Patches, RiskAt};

use crate::CliError;
use crate::args::{Explain, ExplainBy, Fill};
use crate::commands::predict::Member;

/// How a map is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Occlusion,
    IntegratedGradients,
}

/// Numbers of single-precision inputs that a pass with gradients holds at once.
const BLOCK_VALUES: usize = 1 << 21;
const STEPS: usize = 64;
/// Most steps: each is a pass with gradients.
const MOST_STEPS: usize = 1_000_000;

/// What is computed of every sample.
pub(crate) struct Plan {
    pub(crate) methods: Vec<Method>,
    pub(crate) fill: Fill,
    pub(crate) steps: usize,
    pub(crate) parts: Parts,
}

/// What is hidden together.
pub(crate) enum Parts {
    /// Squares or cuboids of pixels.
    Pixels { patch: usize, stride: usize },
    /// The columns of a table, with the indices of their features.
    Columns(Vec<(String, Vec<usize>)>),
}

/// The map of a sample by one method.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Maps {
    pub(crate) method: Method,
    pub(crate) risk: f64,
    /// Risk of the input where integrated gradients begin.
    pub(crate) baseline: Option<f64>,
    /// Sizes of the axes: those of the image, or the number of columns.
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Maps {
    /// By how much integrated gradients miss the difference of the risks.
    pub(crate) fn gap(&self) -> Option<f64> {
        Some((self.values.iter().sum::<f64>() - (self.risk - self.baseline?)).abs())
    }

    /// As a share of the difference; `None` if there is hardly one.
    pub(crate) fn relative_gap(&self) -> Option<f64> {
        let difference = (self.risk - self.baseline?).abs();
        self.gap().filter(|_| difference > 1e-6).map(|gap| gap / difference)
    }

    /// The largest absolute value.
    pub(crate) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |largest, value| value.abs().max(largest))
    }
}

impl Plan {
    /// Checks the options of the methods.
    pub(crate) fn new(arguments: &Explain, member: &Member) -> Result<Self, CliError> {
        let refuse = |option: &str, message: &str| Err(CliError::setting(option, message.to_owned(), None));
        let occludes = arguments.method != ExplainBy::IntegratedGradients;
        for (option, is_given) in [("--patch", arguments.patch.is_some()), ("--stride", arguments.stride.is_some())] {
            if is_given && !occludes {
                return refuse(option, "integrated gradients have no patches, expected --method occlusion or both");
            }
            if is_given && member.run.is_tabular() {
                return refuse(option, "the inputs are columns of a table, which are hidden one after the other");
            }
        }
        if arguments.steps.is_some() && arguments.method == ExplainBy::Occlusion {
            return refuse("--steps", "occlusion has no steps, expected --method integrated-gradients or both");
        }
        if let Some(steps) = arguments.steps.filter(|steps| !(1..=MOST_STEPS).contains(steps)) {
            return refuse("--steps", &format!("{steps} steps, expected 1 to {MOST_STEPS}"));
        }
        if arguments.fill == Fill::ImageMean && member.run.is_tabular() {
            return refuse("--fill", "image-mean is about images, but the inputs are columns of a table");
        }
        let methods = match arguments.method {
            ExplainBy::Occlusion => vec![Method::Occlusion],
            ExplainBy::IntegratedGradients => vec![Method::IntegratedGradients],
            ExplainBy::Both => vec![Method::Occlusion, Method::IntegratedGradients],
        };
        let parts = match &member.record.features {
            Some(encodings) => Parts::Columns(columns(encodings)),
            None => Self::patches(arguments, member)?,
        };
        Ok(Self { methods, fill: arguments.fill, steps: arguments.steps.unwrap_or(STEPS), parts })
    }

    fn patches(arguments: &Explain, member: &Member) -> Result<Parts, CliError> {
        let stored = member.run.image.size.clone();
        let size = member.run.augmentation()?.map_or(stored, |augmentation| augmentation.size().to_vec());
        let longest = size.iter().copied().max().unwrap_or(1);
        let patch = arguments.patch.unwrap_or_else(|| longest.div_ceil(8));
        if patch == 0 || patch > longest {
            let message =
                format!("{patch} is no side of a patch, expected 1 to {longest}, the longest side of the image");
            return Err(CliError::setting("--patch", message, None));
        }
        // A volume has a patch for every cube of pixels: half a patch would be eight times the time.
        let usual = if size.len() == 3 { patch } else { patch.div_ceil(2) };
        let stride = arguments.stride.unwrap_or(usual);
        if stride == 0 || stride > patch {
            let message =
                format!("{stride} leaves gaps between patches or none moves, expected 1 to {patch}, the patch");
            return Err(CliError::setting("--stride", message, None));
        }
        Ok(Parts::Pixels { patch, stride })
    }

    /// The maps of the one sample of a batch, in the order of the methods.
    pub(crate) fn maps(&self, predictor: &Predictor, sample: &HostBatch, at: RiskAt) -> Result<Vec<Maps>, CliError> {
        self.methods.iter().map(|method| self.map(*method, predictor, sample, at)).collect()
    }

    fn map(&self, method: Method, predictor: &Predictor, sample: &HostBatch, at: RiskAt) -> Result<Maps, CliError> {
        let size = &sample.shape[2.min(sample.shape.len())..];
        // Numbers of a channel; a table has none.
        let n = if size.is_empty() { sample.pixels.len() } else { size.iter().product() };
        let fill = self.filling(sample, n);
        let (risk, baseline, values) = match method {
            Method::Occlusion => {
                let patches = match &self.parts {
                    Parts::Pixels { patch, stride } => Patches::of_images(size, *patch, *stride)?,
                    Parts::Columns(columns) => {
                        Patches::of_parts(columns.iter().map(|(_, features)| features.clone()).collect(), n)
                    }
                };
                let found = predictor.occlusion(sample, &fill, &patches, at)?;
                let is_table = matches!(self.parts, Parts::Columns(_));
                (found.whole, None, if is_table { found.drops } else { found.map })
            }
            Method::IntegratedGradients => {
                let block = (BLOCK_VALUES / sample.pixels.len().max(1)).clamp(2, 32);
                let found = predictor.integrated_gradients(sample, &fill, self.steps, block, at)?;
                // The share of a pixel is that of all its channels, that of a column of all its features.
                let values = match &self.parts {
                    Parts::Pixels { .. } => {
                        (0..n).map(|place| found.values.iter().skip(place).step_by(n).sum()).collect()
                    }
                    Parts::Columns(columns) => {
                        let sum = |features: &Vec<usize>| features.iter().map(|feature| found.values[*feature]).sum();
                        columns.iter().map(|(_, features)| sum(features)).collect()
                    }
                };
                (found.whole, Some(found.baseline), values)
            }
        };
        let shape = if size.is_empty() { vec![values.len()] } else { size.to_vec() };
        Ok(Maps { method, risk, baseline, shape, values })
    }

    /// What hides a patch: as long as the input, whose channels have `n` numbers.
    fn filling(&self, sample: &HostBatch, n: usize) -> Vec<f32> {
        match self.fill {
            Fill::Zero => vec![0.0; sample.pixels.len()],
            Fill::ImageMean => {
                #[expect(clippy::cast_possible_truncation, reason = "intensities are f32")]
                let mean = |channel: &[f32]| {
                    let mean = channel.iter().copied().map(f64::from).sum::<f64>() / n.max(1) as f64;
                    vec![mean as f32; channel.len()]
                };
                sample.pixels.chunks(n.max(1)).flat_map(mean).collect()
            }
        }
    }
}

/// The columns of a table and the indices of their features.
fn columns(encodings: &TabularFeatures) -> Vec<(String, Vec<usize>)> {
    let mut next = 0;
    let column = |column: &fairtte_data::features::FittedColumn| {
        let features = (next..next + column.n_features()).collect();
        next += column.n_features();
        (column.column.clone(), features)
    };
    encodings.columns.iter().map(column).collect()
}
