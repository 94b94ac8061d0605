//! Dropout and stochastic depth from our own random stream.
//!
//! burn's generator is global to a back end: two trainings in one process would disturb each other, and streams
//! differ between back ends. The masks here come from a `ChaCha` stream that the trainer opens for each step by name,
//! so a resumed run draws what the uninterrupted one would have drawn.

use burn::tensor::{Tensor, TensorData};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Source of the training noise of one forward pass.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Inference: nothing is dropped.
    Off,
    /// Training: masks are drawn from this stream.
    On(Box<ChaCha8Rng>),
}

impl Noise {
    /// Training noise from `stream`.
    pub fn on(stream: ChaCha8Rng) -> Self {
        Self::On(Box::new(stream))
    }

    /// Zeroes each entry of `x` with probability `p` in [0, 1) and scales the others by 1/(1-p)
    /// (Srivastava et al. 2014, in the inverted form of all current libraries).
    pub fn dropout<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let shape = x.dims();
        self.mask(x, shape, p)
    }

    /// Zeroes each sample of `x` (`[batch, ..]`) as a whole with probability `p` and scales the others by 1/(1-p):
    /// stochastic depth (Huang et al. 2016), mode `row`.
    pub fn drop_samples<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let mut shape = [1; D];
        shape[0] = x.dims()[0];
        self.mask(x, shape, p)
    }

    /// Independent draws from the standard normal distribution in shape, type and device of `like`; none in inference.
    pub fn standard_normal<const D: usize>(&mut self, like: &Tensor<D>) -> Option<Tensor<D>> {
        let Self::On(stream) = self else { return None };
        let shape = like.dims();
        let draws: Vec<f64> = (0..shape.iter().product()).map(|_| stream.sample(StandardNormal)).collect();
        Some(Tensor::from_data(TensorData::new(draws, shape), (&like.device(), like.dtype())))
    }

    fn mask<const D: usize>(&mut self, x: Tensor<D>, shape: [usize; D], p: f64) -> Tensor<D> {
        let Self::On(stream) = self else { return x };
        if p <= 0.0 {
            return x;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the scale is a small number near 1")]
        let keep = (1.0 / (1.0 - p)) as f32;
        let n = shape.iter().product();
        let mask: Vec<f32> = (0..n).map(|_| if stream.random::<f64>() < p { 0.0 } else { keep }).collect();
        let options = (&x.device(), x.dtype());
        x * Tensor::from_data(TensorData::new(mask, shape), options)
    }
}
