//! Initial weights drawn from our own stream, so that a seed means the same weights on every back end.
//!
//! Convolutions: normal with variance 2 / `fan_out` (He et al. 2015, eq. 14; what torchvision does for EfficientNet and
//! the video `ResNet`; `fan_out` = output channels x kernel volume, not divided by the groups, as there). Linear layers:
//! uniform on +-1/sqrt(`fan_in`), the default of `torch.nn.Linear` for weights; biases start at 0 and batch norm at
//! (1, 0), as the modules are built.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Initializer;
use burn::tensor::{Tensor, TensorData};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Placeholder with which every layer is built: nothing is drawn from the back end's global stream.
pub(crate) const UNDRAWN: Initializer = Initializer::Zeros;

/// Redraws every weight of rank 2 and above from `stream`, in the order of the module's fields.
#[must_use]
pub fn initialise<M: Module>(module: M, stream: ChaCha8Rng) -> M {
    module.map(&mut Redraw { stream })
}

struct Redraw {
    stream: ChaCha8Rng,
}

impl ModuleMapper for Redraw {
    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D < 2 {
            return param;
        }
        let (id, tensor, mapper) = param.consume();
        let shape = tensor.dims();
        let n = shape.iter().product();
        let stream = &mut self.stream;
        let values: Vec<f32> = if D == 2 {
            let bound = 1.0 / (shape[0] as f64).sqrt(); // [fan_in, fan_out]
            (0..n).map(|_| stream.random_range(-bound..bound) as f32).collect()
        } else {
            let fan_out: usize = shape[0] * shape[2..].iter().product::<usize>(); // [out, in / groups, kernel..]
            let deviation = (2.0 / fan_out as f64).sqrt();
            (0..n).map(|_| (deviation * stream.sample::<f64, _>(StandardNormal)) as f32).collect()
        };
        let drawn = Tensor::from_data(TensorData::new(values, shape), &tensor.device());
        Param::from_mapped_value(id, drawn.set_require_grad(tensor.is_require_grad()), mapper)
    }
}
