//! `AdamW` (Loshchilov & Hutter 2019, arXiv 1711.05101) with the update of a parameter in one pass over its values.
//!
//! burn's optimiser makes about fifteen tensors of the size of a parameter in every step. On a device with kernels this one
//! reads parameter, gradient and moments once and changes the parameter in place, so that parameters keep their place
//! in memory while the layers' tensors are allocated and freed; a parameter shared with a copy of the module is copied
//! first. Every operation rounds as burn's on `flex`. On other devices, and for types other than single precision,
//! burn's own update is called. Records are burn's in either case.

use burn::optim::{
    AdamW, AdamWConfig, AdamWState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer, RecordState,
    StateSink, StateSource,
};
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

/// burn's state. Its record is read into the memory of the host, from which the next step takes it to the device of the parameter. burn
/// reads it on the default device instead, a GPU in a build for one, which need not be there when another device trains.
#[derive(Clone)]
struct State<const D: usize>(AdamWState<D>);

impl<const D: usize> RecordState for State<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.0.state_flatten(prefix, out);
    }

    fn state_unflatten(prefix: &str, source: &mut StateSource, device: &Device) -> Option<Self> {
        #[cfg(feature = "flex")]
        let device = &{
            let _ = device;
            Device::flex()
        };
        AdamWState::state_unflatten(prefix, source, device).map(Self)
    }
}

impl Optimizer for FusedAdamW {
    type State<const D: usize> = State<D>;

    fn step<const D: usize>(
        &self,
        learning_rate: LearningRate,
        parameter: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<State<D>>,
    ) -> (Tensor<D>, Option<State<D>>) {
        let state = state.map(|State(state)| state);
        let known = state.as_ref().is_none_or(|AdamWState { momentum }| {
            let moments = [&momentum.moment_1, &momentum.moment_2];
            momentum.max_moment_2.is_none() && moments.into_iter().all(has_kernels)
        });
        let covered = [&parameter, &gradient].into_iter().all(has_kernels) && !parameter.device().is_autodiff();
        if !known || !covered {
            let (parameter, state) = self.burn.step(learning_rate, parameter, gradient, state);
            return (parameter, state.map(State));
        }
        let (n_steps, moments) = match state {
            Some(AdamWState { momentum }) => (momentum.time, [momentum.moment_1, momentum.moment_2]),
            None => (0, [parameter.zeros_like(), parameter.zeros_like()]),
        };
        let settings = Settings { learning_rate, ..self.settings };
        let [parameter, first, second] = update(parameter, gradient, moments, settings, n_steps + 1);
        (parameter, Some(State(AdamWState::new(AdaptiveMomentumState::new(n_steps + 1, first, second)))))
    }

    fn to_device<const D: usize>(State(state): State<D>, device: &Device) -> State<D> {
        State(AdamW::to_device(state, device))
    }
}

#[cfg(any(feature = "flex", feature = "tch"))]
pub(super) use routed::on_host;
#[cfg(any(feature = "flex", feature = "tch"))]
use routed::update;

#[cfg(any(feature = "flex", feature = "tch"))]
mod routed {
    use burn::backend::tensor::FloatTensor;
    use burn::backend::{Backend, Dispatch, backend_extension};
    use burn::tensor::Tensor;

    use super::super::host::{Host, overwritten};
    use super::super::operation::Kernels;
    use crate::kernels::adamw::{self, Settings};

    /// The update as an operation of the back ends with kernels.
    #[backend_extension(Flex: cfg(feature = "flex"), LibTorch: cfg(feature = "tch"))]
    pub(crate) trait Update: Backend {
        fn adamw_step(
            parameter: FloatTensor<Self>,
            gradient: FloatTensor<Self>,
            first_moment: FloatTensor<Self>,
            second_moment: FloatTensor<Self>,
            settings: Settings,
            time: usize,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
    }

    impl<B: Kernels> Update for B {
        fn adamw_step(
            parameter: FloatTensor<B>,
            gradient: FloatTensor<B>,
            first_moment: FloatTensor<B>,
            second_moment: FloatTensor<B>,
            settings: Settings,
            time: usize,
        ) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
            B::adamw([parameter, gradient, first_moment, second_moment], &settings, time).into()
        }
    }

    /// The update by [`kernels`](crate::kernels).
    pub(in super::super) fn on_host<B: Host>(
        [parameter, gradient, first_moment, second_moment]: [FloatTensor<B>; 4],
        settings: &Settings,
        time: usize,
    ) -> [FloatTensor<B>; 3] {
        let gradient = B::contiguous(gradient);
        let (mut first, mut second) = (None, None);
        let parameter = overwritten::<B>(parameter, |parameter| {
            first = Some(overwritten::<B>(first_moment, |first| {
                second = Some(overwritten::<B>(second_moment, |second| {
                    adamw::update(parameter, B::values(&gradient), first, second, settings, time);
                }));
            }));
        });
        [parameter, first.expect("was written"), second.expect("was written")]
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
            Dispatch::adamw_step(parameter, gradient, first.into_dispatch(), second.into_dispatch(), settings, time);
        [parameter, first, second].map(Tensor::from_dispatch)
    }
}

/// Placeholder for the update in a build without kernels; [`has_kernels`] prevents it from being called.
#[cfg(not(any(feature = "flex", feature = "tch")))]
fn update<const D: usize>(_: Tensor<D>, _: Tensor<D>, _: [Tensor<D>; 2], _: Settings, _: usize) -> [Tensor<D>; 3] {
    unreachable!("no device has this kernel in this build")
}
