//! Convolution and pooling.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::{Convolution, Forward, Pooling};
use super::{Host, made, made_if, vector};
use crate::kernels::{self, ConvShape};

pub(super) fn conv<B: Host>(
    settings: Convolution,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    bias: Option<&FloatTensor<B>>,
) -> FloatTensor<B> {
    let shape = conv_shape::<B>(settings, x, weight);
    let mut sizes = x.shape().to_vec();
    sizes[1] = shape.outputs;
    let space = sizes.len() - 2;
    sizes[2..].copy_from_slice(&shape.output()[3 - space..]);
    let activation = settings.activation;
    made::<B>(Shape::from(sizes), |y| {
        kernels::conv::forward(B::values(x), B::values(weight), bias.map(B::values), activation, &shape, y);
    })
}

pub(super) fn conv_gradients<B: Host>(
    settings: Convolution,
    [x, weight]: [FloatTensor<B>; 2],
    gradient: &FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    let shape = conv_shape::<B>(settings, &x, &weight);
    let (of_x, of_weight) = (x.shape(), weight.shape());
    let [x, weight, dy] = [&x, &weight, gradient].map(B::values);
    let mut d_weight = None;
    let dx = made_if::<B>(needed[0], of_x, |dx| {
        d_weight = made_if::<B>(needed[1], of_weight, |d_weight| {
            kernels::conv::gradients(x, weight, dy, &shape, dx, d_weight);
        });
    });
    let d_bias = needed.get(2).is_some_and(|&needed| needed).then(|| {
        let mut d_bias = vec![0.0; shape.outputs];
        kernels::bias::gradient(dy, shape.outputs, shape.output_plane(), &mut d_bias);
        vector::<B>(&d_bias)
    });
    vec![dx, d_weight, d_bias]
}

pub(super) fn maximum<B: Host>(settings: Pooling, x: &FloatTensor<B>, keep: bool) -> Forward<B> {
    let sizes = x.shape().to_vec();
    let planes = sizes[0] * sizes[1];
    let Pooling { size, kernel, stride, padding } = settings;
    let [height, width] = kernels::pooling::maximum_size(size, kernel, stride, padding);
    let shape = Shape::from([sizes[0], sizes[1], height, width]);
    let maxima = |indices: Option<&mut [u32]>| {
        made::<B>(shape.clone(), |y| {
            kernels::pooling::maximum(B::values(x), planes, size, kernel, stride, padding, y, indices);
        })
    };
    if !keep {
        return Forward { output: maxima(None), statistics: None, saved: vec![] };
    }
    let mut output = None;
    let indices = B::of_indices(shape.clone(), |indices| {
        #[cfg(test)]
        indices.fill(u32::MAX);
        output = Some(maxima(Some(indices)));
    });
    Forward { output: output.expect("was made"), statistics: None, saved: vec![indices] }
}

pub(super) fn maximum_gradient<B: Host>(
    size: [usize; 2],
    [indices]: [FloatTensor<B>; 1],
    gradient: &FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let of_output = indices.shape().to_vec();
    let shape = Shape::from([of_output[0], of_output[1], size[0], size[1]]);
    let (plane, output_plane) = (size[0] * size[1], of_output[2] * of_output[3]);
    vec![Some(made::<B>(shape, |dx| {
        kernels::pooling::maximum_gradient(B::values(gradient), B::indices(&indices), plane, output_plane, dx);
    }))]
}

/// The shape that the kernels go by.
pub(in super::super) fn conv_shape<B: Host>(
    settings: Convolution,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
) -> ConvShape {
    let [x, weight] = [x, weight].map(|tensor| tensor.shape().to_vec());
    let Convolution { stride, padding, groups, .. } = settings;
    let space = |sizes: &[usize]| {
        let mut space = [1; 3];
        let from = 5 - sizes.len();
        space[from..].copy_from_slice(&sizes[2..]);
        space
    };
    let (size, kernel) = (space(&x), space(&weight));
    ConvShape { batch: x[0], inputs: x[1], outputs: weight[0], size, kernel, stride, padding, groups }
}
