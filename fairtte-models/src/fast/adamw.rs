//! `AdamW` (Loshchilov & Hutter 2019, arXiv 1711.05101) with the update of a parameter in one pass over its values.
//!
//! burn's optimiser makes about fifteen tensors of the size of a parameter in every step. On a device with kernels this one
//! reads parameter, gradient and moments once and changes the parameter in place, so that parameters keep their place
//! in memory while the layers' tensors are allocated and freed; a parameter shared with a copy of the module is copied
//! first. Every operation rounds as burn's on `flex`. On other devices, and for types other than single precision,
//! burn's own update is called. States and records are burn's in either case.

use burn::optim::{AdamW, AdamWConfig, AdamWState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};

use super::has_kernels;
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
    /// All but the learning rate, which is given at each step.
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
        let known = state.as_ref().is_none_or(|AdamWState { momentum }| {
            let moments = [&momentum.moment_1, &momentum.moment_2];
            momentum.max_moment_2.is_none() && moments.into_iter().all(has_kernels)
        });
        let covered = [&parameter, &gradient].into_iter().all(has_kernels) && !parameter.device().is_autodiff();
        if !known || !covered {
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

#[cfg(any(feature = "flex", feature = "tch"))]
use on_host::update;

#[cfg(any(feature = "flex", feature = "tch"))]
mod on_host {
    use burn::backend::tensor::FloatTensor;
    use burn::backend::{Backend, Dispatch, backend_extension};
    use burn::tensor::Tensor;

    use super::super::host::{Host, overwritten};
    use crate::kernels::adamw::{self, Settings};

    /// The update as an operation of the back ends with kernels.
    #[backend_extension(Flex: cfg(feature = "flex"), LibTorch: cfg(feature = "tch"))]
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

    impl<B: Host> Update for B {
        fn adamw(
            parameter: FloatTensor<B>,
            gradient: FloatTensor<B>,
            first_moment: FloatTensor<B>,
            second_moment: FloatTensor<B>,
            settings: Settings,
            time: usize,
        ) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
            let gradient = B::contiguous(gradient);
            let (mut first, mut second) = (None, None);
            let parameter = overwritten::<B>(parameter, |parameter| {
                first = Some(overwritten::<B>(first_moment, |first| {
                    second = Some(overwritten::<B>(second_moment, |second| {
                        adamw::update(parameter, B::values(&gradient), first, second, &settings, time);
                    }));
                }));
            });
            (parameter, first.expect("was written"), second.expect("was written"))
        }
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

/// Placeholder for the update in a build without kernels; [`has_kernels`] prevents it from being called.
#[cfg(not(any(feature = "flex", feature = "tch")))]
fn update<const D: usize>(_: Tensor<D>, _: Tensor<D>, _: [Tensor<D>; 2], _: Settings, _: usize) -> [Tensor<D>; 3] {
    unreachable!("no device has this kernel in this build")
}
