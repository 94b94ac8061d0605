//! Initial weights drawn from our own stream, so that a seed means the same weights on every back end.
//!
//! | weights | distribution | source |
//! |---|---|---|
//! | convolutions | normal, variance 2 / `fan_out` (output channels x kernel volume, not divided by the groups) | He et al. 2015, eq. 14; torchvision's EfficientNet and `ResNet`, `MedicalNet` |
//! | linear layers | uniform on +-1/sqrt(`fan_in`) | default of `torch.nn.Linear` |
//! | linear layers of [`Mlp`](crate::Mlp) | normal, variance 2 / `fan_in` | `MLPVanilla` of pycox 0.3.0 |
//! | patches of a [`VisionTransformer`](crate::VisionTransformer) | uniform on +-sqrt(6 / (`fan_in` + width)) | masked autoencoders (arXiv 2111.06377, appendix A.1) |
//! | its class token and positions | normal, deviation 0.02 | Vision Transformer of timm |
//!
//! Biases start at 0, batch and layer norm at (1, 0), as the modules are built.

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
    module.map(&mut Redraw { stream, inside: Vec::new() })
}

struct Redraw {
    stream: ChaCha8Rng,
    /// Types of the modules around the current weight, as burn names them: `Struct:Mlp`.
    inside: Vec<String>,
}

impl Redraw {
    fn is_inside(&self, module: &str) -> bool {
        self.inside.iter().any(|container| container == module)
    }

    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
    fn normal(&mut self, n: usize, variance: f64) -> Vec<f32> {
        let deviation = variance.sqrt();
        (0..n).map(|_| (deviation * self.stream.sample::<f64, _>(StandardNormal)) as f32).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
    fn uniform(&mut self, n: usize, bound: f64) -> Vec<f32> {
        (0..n).map(|_| self.stream.random_range(-bound..bound) as f32).collect()
    }

    fn draw(&mut self, shape: &[usize]) -> Vec<f32> {
        let n = shape.iter().product();
        match shape {
            [fan_in, _] if self.is_inside("Struct:Mlp") => self.normal(n, 2.0 / *fan_in as f64),
            [fan_in, _] => self.uniform(n, 1.0 / (*fan_in as f64).sqrt()),
            [1, _, _] => self.normal(n, 0.02 * 0.02),
            // [out, in / groups, kernel..]
            [width, fan_in @ ..] if self.is_inside("Struct:VisionTransformer") => {
                let fan_in: usize = fan_in.iter().product();
                self.uniform(n, (6.0 / (fan_in + width) as f64).sqrt())
            }
            _ => {
                let fan_out = shape[0] * shape[2..].iter().product::<usize>();
                self.normal(n, 2.0 / fan_out as f64)
            }
        }
    }
}

impl ModuleMapper for Redraw {
    fn enter_module(&mut self, _name: &str, container_type: &str) {
        self.inside.push(container_type.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.inside.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D < 2 {
            return param;
        }
        let (id, tensor, mapper) = param.consume();
        let shape = tensor.dims();
        let drawn = TensorData::new(self.draw(&shape), shape);
        let drawn = Tensor::from_data(drawn, &tensor.device());
        Param::from_mapped_value(id, drawn.set_require_grad(tensor.is_require_grad()), mapper)
    }
}
