//! `AdamW` (Loshchilov & Hutter 2019, arXiv 1711.05101) with the update of a parameter in one pass over its values.
//!
//! burn's optimiser makes about fifteen tensors of the size of a parameter in every step. On `flex` this one reads parameter,
//! gradient and moments once and changes the parameter in place, so that parameters do not wander through the memory that
//! the layers' tensors come and go in; where a copy of the module still holds the parameter, the new one takes the buffer of
//! the gradient. Rounding is burn's, operation by operation. Elsewhere, and for other types than single
//! precision, burn's own is called. States and records are burn's either way.

use burn::optim::{AdamW, AdamWConfig, AdamWState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};

use crate::kernels::adamw::Settings;

/// `AdamW` with decay rates 0.9 and 0.999 for a whole module; weight decay and step size as in burn.
pub fn adamw(epsilon: f32, weight_decay: f32) -> ModuleOptimizer {
    let (beta_1, beta_2) = (0.9, 0.999);
    let config = AdamWConfig::new().with_beta_1(beta_1).with_beta_2(beta_2);
    let burn = config.with_epsilon(epsilon).with_weight_decay(weight_decay).build();
    let settings = Settings { learning_rate: 0.0, beta_1, beta_2, epsilon, weight_decay };
    ModuleOptimizer::from(FusedAdamW { burn, settings })
}

#[derive(Clone)]
struct FusedAdamW {
    burn: AdamW,
    /// All but the learning rate, which comes with each step.
    settings: Settings,
}

impl Optimizer for FusedAdamW {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        learning_rate: LearningRate,
        parameter: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        let plain = state.as_ref().is_none_or(|state| state.momentum.max_moment_2.is_none());
        if !plain || !has_kernel(&parameter) || !has_kernel(&gradient) {
            return self.burn.step(learning_rate, parameter, gradient, state);
        }
        let (n_steps, moments) = match state {
            Some(AdamWState { momentum }) => (momentum.time, [momentum.moment_1, momentum.moment_2]),
            None => (0, [parameter.zeros_like(), parameter.zeros_like()]),
        };
        let settings = Settings { learning_rate, ..self.settings };
        let [parameter, first, second] = update(parameter, gradient, moments, settings, n_steps + 1);
        (parameter, Some(AdamWState::new(AdaptiveMomentumState::new(n_steps + 1, first, second))))
    }

    fn to_device<const D: usize>(state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        AdamW::to_device(state, device)
    }
}

#[cfg(feature = "flex")]
use on_flex::{has_kernel, update};

#[cfg(feature = "flex")]
mod on_flex {
    use burn::backend::tensor::FloatTensor;
    use burn::backend::{Backend, Dispatch, DispatchDevice, Flex, TensorMetadata as _, backend_extension};
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::flex::{overwritten, values};
    use super::super::has_kernels;
    use crate::kernels::adamw::{self, Settings};

    /// The update as an operation of `flex` alone.
    #[backend_extension(Flex)]
    pub(crate) trait Update: Backend {
        fn adamw(
            parameter: FloatTensor<Self>,
            gradient: FloatTensor<Self>,
            first_moment: FloatTensor<Self>,
            second_moment: FloatTensor<Self>,
            settings: Settings,
            time: usize,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
    }

    impl Update for Flex {
        fn adamw(
            parameter: FlexTensor,
            gradient: FlexTensor,
            first_moment: FlexTensor,
            second_moment: FlexTensor,
            settings: Settings,
            time: usize,
        ) -> (FlexTensor, FlexTensor, FlexTensor) {
            let n = parameter.shape().num_elements();
            let mut parameter = if parameter.is_contiguous() { parameter } else { parameter.to_contiguous() };
            let alone = parameter.try_storage_mut::<f32>().is_some_and(|values| values.len() == n);
            let mut new = None;
            let mut second = None;
            let first = overwritten(first_moment, |first_values| {
                second = Some(overwritten(second_moment, |second_values| {
                    new = Some(if alone {
                        let gradient = gradient.to_contiguous();
                        overwritten(parameter, |parameter| {
                            let gradient = values(&gradient);
                            adamw::update(parameter, gradient, first_values, second_values, &settings, time);
                        })
                    } else {
                        overwritten(gradient, |gradient| {
                            let parameter = values(&parameter);
                            adamw::update_shared(parameter, gradient, first_values, second_values, &settings, time);
                        })
                    });
                }));
            });
            (new.expect("was written"), first, second.expect("was written"))
        }
    }

    pub(in super::super) fn has_kernel<const D: usize>(tensor: &Tensor<D>) -> bool {
        matches!(tensor.device().as_dispatch(), DispatchDevice::Flex(_)) && has_kernels(tensor)
    }

    /// The parameter and its moments after step `time`, from 1.
    pub(in super::super) fn update<const D: usize>(
        parameter: Tensor<D>,
        gradient: Tensor<D>,
        [first, second]: [Tensor<D>; 2],
        settings: Settings,
        time: usize,
    ) -> [Tensor<D>; 3] {
        let [parameter, gradient] = [parameter, gradient].map(Tensor::into_dispatch);
        let (parameter, first, second) =
            Dispatch::adamw(parameter, gradient, first.into_dispatch(), second.into_dispatch(), settings, time);
        [parameter, first, second].map(Tensor::from_dispatch)
    }
}

#[cfg(not(feature = "flex"))]
fn has_kernel<const D: usize>(_: &Tensor<D>) -> bool {
    false
}

#[cfg(not(feature = "flex"))]
fn update<const D: usize>(_: Tensor<D>, _: Tensor<D>, _: [Tensor<D>; 2], _: Settings, _: usize) -> [Tensor<D>; 3] {
    unreachable!("no device has this kernel in this build")
}
