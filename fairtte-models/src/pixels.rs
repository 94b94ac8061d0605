//! What a backbone reads, on a device.

use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::ModelError;

/// What a backbone reads.
#[derive(Clone, Debug)]
pub enum Pixels {
    /// Columns of a table, `[batch, columns]`.
    Table(Tensor<2>),
    /// Pictures, `[batch, channels, height, width]`.
    Image(Tensor<4>),
    /// Volumes, `[batch, channels, depth, height, width]`.
    Volume(Tensor<5>),
}

impl Pixels {
    /// Moves numbers in row-major order to `device`; the number of axes says what they are.
    ///
    /// # Errors
    /// [`ModelError::WrongInput`] unless the shape has 2, 4 or 5 axes, [`ModelError::IncompleteBatch`] if the numbers do not
    /// fill it.
    pub fn from_host(values: Vec<f32>, shape: Vec<usize>, device: &Device) -> Result<Self, ModelError> {
        if shape.iter().product::<usize>() != values.len() {
            return Err(ModelError::IncompleteBatch { shape, found: values.len() });
        }
        let data = TensorData::new(values, shape.clone());
        match shape.len() {
            2 => Ok(Self::Table(Tensor::from_data(data, device))),
            4 => Ok(Self::Image(Tensor::from_data(data, device))),
            5 => Ok(Self::Volume(Tensor::from_data(data, device))),
            _ => {
                let expected =
                    "[batch, columns], [batch, channels, height, width] or [batch, channels, depth, height, width]";
                Err(ModelError::WrongInput { backbone: "(any)", shape, expected })
            }
        }
    }

    /// Sizes of all axes, batch first.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Table(columns) => columns.dims().to_vec(),
            Self::Image(pixels) => pixels.dims().to_vec(),
            Self::Volume(pixels) => pixels.dims().to_vec(),
        }
    }

    /// The same numbers, with respect to which gradients are taken; they must be on a device with autodiff.
    #[must_use]
    pub fn require_grad(self) -> Self {
        match self {
            Self::Table(columns) => Self::Table(columns.require_grad()),
            Self::Image(pixels) => Self::Image(pixels.require_grad()),
            Self::Volume(pixels) => Self::Volume(pixels.require_grad()),
        }
    }

    /// Their gradient in host memory, in row-major order; `None` if nothing depends on them or they do not
    /// [require it](Self::require_grad).
    pub fn gradient(&self, gradients: &Gradients) -> Option<Vec<f32>> {
        let data = match self {
            Self::Table(columns) => columns.grad(gradients)?.into_data(),
            Self::Image(pixels) => pixels.grad(gradients)?.into_data(),
            Self::Volume(pixels) => pixels.grad(gradients)?.into_data(),
        };
        Some(data.iter::<f32>().collect())
    }
}
