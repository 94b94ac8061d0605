//! The fused operations on `flex`: those of [`host`].

use burn::backend::Flex;
use burn::tensor::{Shape, TensorData};
use burn_flex::FlexTensor;

use super::host::{self, Host};
use super::operation::{Forward, Kernels, Operation};
use super::{adamw, unspecified};
use crate::kernels::adamw::Settings;

impl Kernels for Flex {
    fn forward(operation: Operation, inputs: Vec<FlexTensor>, keep: bool) -> Forward<Self> {
        host::forward(operation, inputs, keep)
    }

    fn repeat(operation: Operation, saved: &[FlexTensor]) -> FlexTensor {
        host::repeat::<Self>(operation, saved)
    }

    fn backward(
        operation: Operation,
        saved: Vec<FlexTensor>,
        gradient: FlexTensor,
        needed: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        host::backward::<Self>(operation, saved, gradient, needed)
    }

    fn adamw(tensors: [FlexTensor; 4], settings: &Settings, time: usize) -> [FlexTensor; 3] {
        adamw::on_host::<Self>(tensors, settings, time)
    }
}

impl Host for Flex {
    fn contiguous(tensor: FlexTensor) -> FlexTensor {
        if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
    }

    fn values(tensor: &FlexTensor) -> &[f32] {
        tensor.as_slice().expect("contiguous single precision, seen to before the kernels are called")
    }

    fn values_mut(tensor: &mut FlexTensor) -> Option<&mut [f32]> {
        let n = tensor.layout().num_elements();
        let whole = tensor.is_contiguous();
        tensor.try_storage_mut().filter(|values| whole && values.len() == n)
    }

    // Not `FlexTensor::zeros`, which allocates bytes and then copies them to memory aligned for numbers.
    fn blank(shape: Shape) -> FlexTensor {
        FlexTensor::from_data(TensorData::new(unspecified::values(shape.num_elements()), shape))
    }

    // A tensor of `flex` knows its type at run time, so indices can be saved together with the other tensors.
    fn of_indices(shape: Shape, fill: impl FnOnce(&mut [u32])) -> FlexTensor {
        let mut indices = vec![0; shape.num_elements()];
        fill(&mut indices);
        FlexTensor::from_data(TensorData::new(indices, shape))
    }

    fn indices(tensor: &FlexTensor) -> &[u32] {
        tensor.as_slice().expect("contiguous indices, as they were written")
    }
}
