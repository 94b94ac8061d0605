//! Gradient norm over all parameters, and clipping by it (Pascanu et al. 2013).
//!
//! burn's own clipping works on one tensor at a time; a common norm keeps the direction of the step.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Scales all gradients by the same factor so that their joint L2 norm is at most `largest`, and gives the norm before.
pub(crate) fn clip_by_global_norm<M: Module>(module: &M, gradients: &mut GradientsParams, largest: Option<f64>) -> f64 {
    let mut sum = SquaredSum { gradients, value: 0.0 };
    module.visit(&mut sum);
    let norm = sum.value.sqrt();
    if let Some(largest) = largest
        && norm.is_finite()
        && norm > largest
    {
        module.visit(&mut Scale { gradients, factor: largest / norm });
    }
    norm
}

struct SquaredSum<'a> {
    gradients: &'a GradientsParams,
    value: f64,
}

impl ModuleVisitor for SquaredSum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            self.value += f64::from(gradient.square().sum().into_scalar::<f32>());
        }
    }
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register(param.id, gradient * self.factor);
        }
    }
}
