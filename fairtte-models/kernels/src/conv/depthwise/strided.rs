//! Depthwise convolution at any stride, by plain loops: for strides that no common network has.

use crate::conv::depthwise::Plane;

/// Calls `visit(output place, input place, tap)` for every product.
fn products(plane: &Plane, mut visit: impl FnMut(usize, usize, usize)) {
    let Plane { height, width, output_height, output_width, padding, stride, side } = *plane;
    for row in 0..output_height {
        for column in 0..output_width {
            for tap in 0..side * side {
                let (y, x) = (row * stride + tap / side, column * stride + tap % side);
                let inside = (padding..padding + height).contains(&y) && (padding..padding + width).contains(&x);
                if inside {
                    visit(row * output_width + column, (y - padding) * width + x - padding, tap);
                }
            }
        }
    }
}

/// For as many planes as there are kernels; `x` may be longer.
pub(super) fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, plane: &Plane, y: &mut [f32]) {
    let [input, output] = plane.lengths();
    let planes = x.chunks_exact(input).zip(w.chunks_exact(plane.taps()));
    let results = y.chunks_exact_mut(output);
    for (index, (y, (x, w))) in results.zip(planes).enumerate() {
        y.fill(bias.map_or(0.0, |bias| bias[index]));
        products(plane, |output, input, tap| y[output] += x[input] * w[tap]);
    }
}

/// For as many planes as there are kernels; `x` and `dy` may be longer.
pub(super) fn gradients(
    x: &[f32],
    w: &[f32],
    dy: &[f32],
    plane: &Plane,
    mut dx: Option<&mut [f32]>,
    mut dw: Option<&mut [f64]>,
) {
    let ([input_length, output_length], taps) = (plane.lengths(), plane.taps());
    for (index, w) in w.chunks_exact(taps).enumerate() {
        let (x, dy) = (&x[index * input_length..], &dy[index * output_length..]);
        if let Some(dx) = &mut dx {
            let dx = &mut dx[index * input_length..][..input_length];
            dx.fill(0.0);
            products(plane, |output, input, tap| dx[input] += dy[output] * w[tap]);
        }
        if let Some(dw) = &mut dw {
            let dw = &mut dw[index * taps..][..taps];
            products(plane, |output, input, tap| dw[tap] += f64::from(dy[output]) * f64::from(x[input]));
        }
    }
}
