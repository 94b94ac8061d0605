//! Activations and their gradients.

use burn_tch::TchTensor;
use tch::Tensor;

use crate::kernels::Activation;

/// `activation(z)`, and what [`through`] needs of it.
pub(super) fn activated(activation: Activation, z: Tensor, keep: bool) -> (TchTensor, Option<TchTensor>) {
    match activation {
        Activation::Identity => (TchTensor::new(z), None),
        Activation::Relu | Activation::Sigmoid => {
            let y = TchTensor::new(in_place(activation, z));
            (y.clone(), keep.then_some(y))
        }
        Activation::Silu | Activation::Gelu if keep => {
            (TchTensor::new(activate(activation, &z)), Some(TchTensor::new(z)))
        }
        Activation::Silu | Activation::Gelu => (TchTensor::new(in_place(activation, z)), None),
    }
}

pub(super) fn activate(activation: Activation, z: &Tensor) -> Tensor {
    match activation {
        Activation::Identity => z.copy(),
        Activation::Relu => z.relu(),
        Activation::Silu => z.silu(),
        Activation::Gelu => z.gelu("none"),
        Activation::Sigmoid => z.sigmoid(),
    }
}

/// As [`activate`], of a tensor whose memory no other one shares.
pub(super) fn in_place(activation: Activation, mut z: Tensor) -> Tensor {
    match activation {
        Activation::Identity => z,
        Activation::Relu => z.relu_(),
        Activation::Silu => z.silu_(),
        Activation::Gelu => z.gelu_("none"),
        Activation::Sigmoid => z.sigmoid_(),
    }
}

/// The gradient before an activation from that after it; `read` is its output (ReLU, sigmoid) or its input (SiLU, GELU).
pub(super) fn through(activation: Activation, gradient: TchTensor, read: &[TchTensor]) -> TchTensor {
    let [read] = read else { return gradient };
    let (dy, read) = (&gradient.tensor, &read.tensor);
    TchTensor::new(match activation {
        Activation::Identity => return gradient,
        Activation::Relu => read.threshold_backward(dy, 0),
        Activation::Sigmoid => Tensor::sigmoid_backward(dy, read),
        Activation::Silu => read.silu_backward(dy),
        Activation::Gelu => read.gelu_backward(dy, "none"),
    })
}
