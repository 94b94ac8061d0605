//! What a backbone reads, on a device.

use burn::tensor::{DType, Device, FloatDType, Gradients, Int, Tensor, TensorData};

use crate::{ModelError, Precision};

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

    /// Moves stored values to `device`, which scales them: `value * factor + offset`, with a `(factor, offset)` per channel.
    ///
    /// `words` holds the values one after the other, several of `bits` bits (8 or 16) in each, the first in the lowest bits.
    /// `shape` is that of the result, `[batch, channels, ..]`, of which `n_channels` are stored; one is repeated for all. The
    /// device needs no type of this width, and gets a quarter or half of the bytes of single precision.
    ///
    /// # Errors
    /// As [`from_host`](Self::from_host); [`ModelError::IncompleteBatch`] also for a wrong number of channels or scales.
    pub fn from_stored(
        words: Vec<i32>,
        bits: usize,
        shape: Vec<usize>,
        n_channels: usize,
        scale: &[(f32, f32)],
        device: &Device,
    ) -> Result<Self, ModelError> {
        let incomplete = |found| ModelError::IncompleteBatch { shape: shape.clone(), found };
        let [batch, of_model, ref size @ ..] = shape[..] else { return Err(incomplete(words.len())) };
        let (plane, per_word) = (size.iter().product::<usize>(), 32 / bits.clamp(1, 32));
        let n = batch * n_channels * plane;
        let fits = matches!(bits, 8 | 16) && (n_channels == of_model || n_channels == 1) && scale.len() == of_model;
        if !fits || words.len() != n.div_ceil(per_word) {
            return Err(incomplete(words.len() * per_word));
        }
        let n_words = words.len();
        let words: Tensor<2, Int> = Tensor::from_data(TensorData::new(words, [n_words, 1]), (device, DType::I32));
        let mask = (1_i32 << bits) - 1;
        let value = |shift| words.clone().bitwise_right_shift_scalar(shift).bitwise_and_scalar(mask);
        let values = Tensor::cat((0..32).step_by(bits).map(value).collect(), 1); // [words, values of a word]
        let values = values.reshape([n_words * per_word]).narrow(0, 0, n).reshape([batch, n_channels, plane]);
        let of_channels = |numbers: Vec<f32>| -> Tensor<3> {
            Tensor::from_data(TensorData::new(numbers, [1, of_model, 1]), (device, DType::F32))
        };
        let [factors, offsets] = [
            of_channels(scale.iter().map(|(factor, _)| *factor).collect()),
            of_channels(scale.iter().map(|(_, offset)| *offset).collect()),
        ];
        let pixels = values.float().cast(FloatDType::F32).expand([batch, of_model, plane]) * factors + offsets;
        match *size {
            [height, width] => Ok(Self::Image(pixels.reshape([batch, of_model, height, width]))),
            [depth, height, width] => Ok(Self::Volume(pixels.reshape([batch, of_model, depth, height, width]))),
            _ => {
                let expected = "[batch, channels, height, width] or [batch, channels, depth, height, width]";
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

    /// The same numbers in another precision, in which a network then computes.
    #[must_use]
    pub fn in_precision(self, precision: Precision) -> Self {
        match self {
            Self::Table(columns) => Self::Table(columns.cast(precision.float())),
            Self::Image(pixels) => Self::Image(pixels.cast(precision.float())),
            Self::Volume(pixels) => Self::Volume(pixels.cast(precision.float())),
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
