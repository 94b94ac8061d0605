//! The sizes of a convolution.

/// Sizes of a convolution over volumes `[batch, inputs, depth, height, width]`; a picture is a volume of depth 1, with kernel
/// 1, stride 1 and padding 0 along it. No dilation; padding is the same on both sides and adds zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Samples.
    pub batch: usize,
    /// Input channels.
    pub inputs: usize,
    /// Output channels.
    pub outputs: usize,
    /// Depth, height and width of the input.
    pub size: [usize; 3],
    /// Depth, height and width of the kernel.
    pub kernel: [usize; 3],
    /// Steps between two places of the kernel.
    pub stride: [usize; 3],
    /// Zeros added at each end.
    pub padding: [usize; 3],
    /// Number of groups of channels; an output only depends on the inputs of its group.
    pub groups: usize,
}

/// The kinds of kernels of convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvKind {
    /// 1 x 1 (x 1) at stride 1: a matrix product for each sample.
    Pointwise,
    /// A square kernel of side 3 or 5 over pictures, one for each channel; [`ConvShape::kind`] says of which stride and padding.
    Depthwise,
    /// Any other kernel over all input channels.
    Dense,
}

impl ConvShape {
    /// The kernels that compute this convolution; `None` where there are none: a kernel that does not fit into the padded input, an extent
    /// of 0, or several groups, unless it is depthwise with all of the following.
    ///
    /// - As many groups as inputs and as outputs.
    /// - A picture: depth, kernel and stride 1 along the depth, and no padding along it.
    /// - A kernel as high as wide, of side 3 or 5.
    /// - The same stride along height and width, and the same padding, which is less than the side.
    pub fn kind(&self) -> Option<ConvKind> {
        let Self { batch, inputs, outputs, size, kernel, stride, padding, groups } = *self;
        let extents = [batch, inputs, outputs, groups].into_iter().chain(size).chain(kernel).chain(stride);
        let fits = (0..3).all(|axis| kernel[axis] <= size[axis] + 2 * padding[axis]);
        if extents.into_iter().any(|extent| extent == 0) || !fits {
            return None;
        }
        if groups > 1 {
            let flat = size[0] == 1 && kernel[0] == 1 && stride[0] == 1 && padding[0] == 0;
            let square = kernel[1] == kernel[2] && stride[1] == stride[2] && padding[1] == padding[2];
            let known = matches!(kernel[1], 3 | 5) && padding[1] < kernel[1];
            let depthwise = groups == inputs && groups == outputs && flat && square && known;
            return depthwise.then_some(ConvKind::Depthwise);
        }
        let point = kernel == [1; 3] && stride == [1; 3] && padding == [0; 3];
        Some(if point { ConvKind::Pointwise } else { ConvKind::Dense })
    }

    /// Depth, height and width of the output.
    ///
    /// # Panics
    /// If the kernel does not fit into the padded input, or a stride is 0.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            let padded = self.size[axis] + 2 * self.padding[axis];
            let last = padded.checked_sub(self.kernel[axis]).expect("a kernel that fits into the padded input");
            last / self.stride[axis] + 1
        })
    }

    /// The convolution that maps the gradient of the output to that of the input, with the kernel reversed and the
    /// channels exchanged; `None` without a [`kind`](Self::kind), at a stride above 1, and where a place of the output
    /// depends on padding only.
    pub fn transposed(&self) -> Option<Self> {
        let Self { inputs, outputs, kernel, stride, padding, .. } = *self;
        let inside = stride == [1; 3] && (0..3).all(|axis| padding[axis] < kernel[axis]);
        self.kind().filter(|_| inside).map(|_| {
            let padding = std::array::from_fn(|axis| kernel[axis] - 1 - padding[axis]);
            Self { inputs: outputs, outputs: inputs, size: self.output(), padding, ..*self }
        })
    }

    /// Elements of one channel of the input.
    pub fn input_plane(&self) -> usize {
        self.size.iter().product()
    }

    /// Elements of one channel of the output.
    ///
    /// # Panics
    /// As [`output`](Self::output).
    pub fn output_plane(&self) -> usize {
        self.output().iter().product()
    }

    /// Elements of the kernel of one pair of channels.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Elements of the whole input, of all weights `[outputs, inputs / groups, kernel..]`, and of the whole output.
    ///
    /// # Panics
    /// As [`output`](Self::output), or if there are no groups.
    pub fn lengths(&self) -> [usize; 3] {
        let input = self.batch * self.inputs * self.input_plane();
        let weights = self.outputs * (self.inputs / self.groups) * self.taps();
        [input, weights, self.batch * self.outputs * self.output_plane()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::has_fewer_products;

    const SHAPE: ConvShape = ConvShape {
        batch: 4,
        inputs: 64,
        outputs: 64,
        size: [1, 56, 56],
        kernel: [1, 3, 3],
        stride: [1; 3],
        padding: [0, 1, 1],
        groups: 1,
    };

    #[test]
    #[should_panic(expected = "a kernel that fits into the padded input")]
    fn a_kernel_that_is_larger_than_the_padded_input_has_no_output() {
        let _ = ConvShape { kernel: [1, 3, 59], ..SHAPE }.output();
    }

    #[test]
    fn a_convolution_without_kernels_has_no_fewer_products() {
        assert!(has_fewer_products(&SHAPE));
        for other in [
            ConvShape { size: [1, 1, 1], padding: [0; 3], ..SHAPE },
            ConvShape { stride: [1, 0, 0], ..SHAPE },
            ConvShape { kernel: [2, 3, 3], ..SHAPE },
        ] {
            assert!(other.kind().is_none() && !has_fewer_products(&other), "{other:?}");
        }
    }

    #[test]
    fn depthwise_kernels_are_those_of_the_documentation() {
        let depthwise = ConvShape { groups: 64, ..SHAPE };
        assert_eq!(depthwise.kind(), Some(ConvKind::Depthwise));
        for other in [
            ConvShape { groups: 32, ..depthwise },
            ConvShape { outputs: 128, ..depthwise },
            ConvShape { size: [2, 56, 56], ..depthwise },
            ConvShape { kernel: [1, 7, 7], ..depthwise },
            ConvShape { kernel: [1, 3, 5], ..depthwise },
            ConvShape { stride: [1, 1, 2], ..depthwise },
            ConvShape { padding: [0, 1, 0], ..depthwise },
            ConvShape { padding: [0, 3, 3], ..depthwise },
        ] {
            assert_eq!(other.kind(), None, "{other:?}");
        }
    }
}
