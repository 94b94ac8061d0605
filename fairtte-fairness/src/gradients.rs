//! Arithmetic on the gradients of a module: norm over all parameters, and clipping by it (Pascanu et al. 2013), sums.
//!
//! burn's own clipping works on one tensor at a time; a common norm keeps the direction of the step.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Sum of the squares of all gradients, `[1]`, on their device; `None` if no parameter has one.
pub(crate) fn squared_norm<M: Module>(module: &M, gradients: &GradientsParams) -> Option<Tensor<1>> {
    let mut sum = SquaredSum { gradients, value: None };
    module.visit(&mut sum);
    sum.value
}

/// Multiplies all gradients by `factor`.
pub(crate) fn scale<M: Module>(module: &M, gradients: &mut GradientsParams, factor: f64) {
    module.visit(&mut Scale { gradients, factor });
}

/// Adds `others` to `gradients`; a parameter without a gradient in one of them has that of the other.
pub(crate) fn add<M: Module>(module: &M, gradients: &mut GradientsParams, others: GradientsParams) {
    module.visit(&mut Add { gradients, others });
}

struct SquaredSum<'a> {
    gradients: &'a GradientsParams,
    value: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredSum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let sum = gradient.square().sum();
            self.value = Some(match self.value.take() {
                Some(value) => value + sum,
                None => sum,
            });
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

struct Add<'a> {
    gradients: &'a mut GradientsParams,
    others: GradientsParams,
}

impl ModuleVisitor for Add<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(other) = self.others.remove::<D>(param.id) {
            let sum = match self.gradients.remove::<D>(param.id) {
                Some(gradient) => gradient + other,
                None => other,
            };
            self.gradients.register(param.id, sum);
        }
    }
}
