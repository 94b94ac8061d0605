//! The layers from the representation to the outputs that the head reads (paper, Table A2: `Linear(64, 16)`,
//! `Linear(16, n_class)`).
//!
//! With `hidden = 0` there is only the output layer. It may start at given outputs: if these are the marginal
//! distribution of the training part, the first epochs need not learn it. This matters for the heads with a mass at
//! time 0 (`pmf`, `deephit`): if training starts from equal masses and is short, the small mass that remains at time 0
//! ranks early events in the wrong order. The Cox heads have no output bias, because a constant cancels from their
//! losses and curves.
//!
//! For `cox-time` the scaled time is one more input of the hidden layer. Its weights for representation and time are
//! applied separately, so that `[batch, n_times, hidden]` is the largest tensor.
//!
//! Table A2 lists no activation; a `ReLU` is placed between the two layers, which would otherwise be equivalent to one.

use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use serde::{Deserialize, Serialize};

use crate::{
    CutPoints, Segmentation, SurvivalError, SurvivalHead, Targets, TimeScale, marginal_hazard, marginal_hazards,
};

/// The shape and the initial outputs of a classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClassifierConfig {
    /// Width of the hidden layer; 0 = none. Paper: 16.
    pub hidden: usize,
    /// Number of outputs.
    pub n_outputs: usize,
    /// Whether the output layer has a bias.
    pub bias: bool,
    /// The initial outputs, `[n_outputs]`; 0 if not given.
    pub start: Option<Vec<f64>>,
    /// How times are scaled, if the classifier reads them.
    pub time_scale: Option<TimeScale>,
    /// Classes of a pixel, if masks are predicted: then the decoder of a U-Net takes the place of the classifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixel_classes: Option<usize>,
}

impl ClassifierConfig {
    /// Returns the configuration for `head`, fitted on `train`: number of outputs, their initial values, and the scale
    /// of times.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] for a head that reads the time without a hidden layer (the time would cancel from its
    /// loss), [`SurvivalError::TimesAllEqual`] if training times cannot be scaled.
    pub fn for_head(
        head: &dyn SurvivalHead,
        cut_points: &CutPoints,
        train: &Outcomes,
        hidden: usize,
    ) -> Result<Self, SurvivalError> {
        let targets = cut_points.targets("training", train.time(), train.event())?;
        Self::for_head_and_targets(head, cut_points, (train, &targets), hidden)
    }

    /// As [`for_head`](Self::for_head), with the targets of the training part, which say more than `train` does if events have
    /// several causes.
    ///
    /// # Errors
    /// As [`for_head`](Self::for_head).
    pub fn for_head_and_targets(
        head: &dyn SurvivalHead,
        cut_points: &CutPoints,
        (train, targets): (&Outcomes, &Targets),
        hidden: usize,
    ) -> Result<Self, SurvivalError> {
        head.check_hidden(hidden)?;
        let n = cut_points.n();
        let start = match head.n_causes() {
            1 => head.starting_outputs(&marginal_hazard(&targets.intervals, n)),
            n_causes => head.starting_outputs_of_causes(&marginal_hazards(targets, n_causes, n)),
        };
        Ok(Self {
            hidden,
            n_outputs: head.n_outputs(cut_points),
            bias: start.is_some(),
            start,
            time_scale: head.time_scale(train)?,
            pixel_classes: head.of_masks().map(Segmentation::n_classes),
        })
    }
}

/// Numbers of the hidden layer that are computed at once for a classifier that reads times: 16 MiB.
const AT_ONCE: usize = 1 << 22;

/// One or two linear layers, with a `ReLU` between them.
#[derive(Module, Debug)]
pub struct Classifier {
    hidden: Option<Linear>,
    output: Linear,
    #[module(skip)]
    time_scale: Option<TimeScale>,
}

impl Classifier {
    /// Builds the layers for a representation of length `representation`; the weights are not initialised yet.
    pub fn new(config: &ClassifierConfig, representation: usize, device: &Device) -> Self {
        let linear = |from, to, bias| {
            LinearConfig::new(from, to).with_bias(bias).with_initializer(Initializer::Zeros).init(device)
        };
        let ClassifierConfig { hidden, n_outputs, bias, ref start, time_scale, .. } = *config;
        let inputs = representation + usize::from(time_scale.is_some());
        let (hidden, width) = if hidden == 0 { (None, inputs) } else { (Some(linear(inputs, hidden, true)), hidden) };
        let output = linear(width, n_outputs, bias);
        let output = match start {
            Some(outputs) => starting_at(output, outputs),
            None => output,
        };
        Self { hidden, output, time_scale }
    }

    /// Representation `[batch, representation]` -> outputs: `[batch, n_outputs]`, or `[batch, n_times]` at the times `query`
    /// (in the unit of the cohort) if the classifier reads them. `query` is not read otherwise.
    ///
    /// # Panics
    /// If the classifier reads times and `query` is empty.
    pub fn forward(&self, representation: Tensor<2>, query: &[f64]) -> Tensor<2> {
        match (&self.time_scale, &self.hidden) {
            (Some(scale), Some(hidden)) => self.at_times(hidden, scale, representation, query),
            (_, Some(hidden)) => self.output.forward(relu(hidden.forward(representation))),
            (_, None) => self.output.forward(representation),
        }
    }

    fn at_times(&self, hidden: &Linear, scale: &TimeScale, representation: Tensor<2>, query: &[f64]) -> Tensor<2> {
        assert!(!query.is_empty(), "a classifier that reads times needs at least one query time");
        let (batch, device) = (representation.dims()[0], representation.device());
        let [inputs, width] = hidden.weight.dims();
        let weight = hidden.weight.val();
        let of_representation = representation.matmul(weight.clone().slice([0..inputs - 1, 0..width]));
        let of_time = weight.slice([inputs - 1..inputs, 0..width]); // [1, hidden]
        #[expect(clippy::cast_possible_truncation, reason = "inputs are f32")]
        let times: Vec<f32> = query.iter().map(|time| scale.scale(*time) as f32).collect();
        let at = |times: &[f32]| {
            let n_times = times.len();
            let times = Tensor::<2>::from_data(TensorData::new(times.to_vec(), [n_times, 1]), &device);
            let mut of_time = times.matmul(of_time.clone()); // [n_times, hidden]
            if let Some(bias) = &hidden.bias {
                of_time = of_time + bias.val().unsqueeze();
            }
            let sum = of_representation.clone().reshape([batch, 1, width]) + of_time.reshape([1, n_times, width]);
            self.output.forward(relu(sum)).reshape([batch, n_times])
        };
        // A large training part has thousands of event times: all at once would need batch x times x hidden numbers.
        let n_at_once = (AT_ONCE / (batch * width).max(1)).max(1);
        Tensor::cat(times.chunks(n_at_once).map(at).collect(), 1)
    }
}

/// Returns the layer with its bias set to `outputs`.
fn starting_at(mut layer: Linear, outputs: &[f64]) -> Linear {
    layer.bias = layer.bias.map(|bias: Param<Tensor<1>>| {
        #[expect(clippy::cast_possible_truncation, reason = "biases are f32")]
        let values: Vec<f32> = outputs.iter().map(|output| *output as f32).collect();
        let shape = [values.len()];
        bias.map(|old| {
            let start = Tensor::from_data(TensorData::new(values, shape), &old.device());
            start.set_require_grad(old.is_require_grad())
        })
    });
    layer
}
