//! Step 5, second half: a host batch becomes tensors on a device. Ids travel with the pixels.

use burn::tensor::{Device, Tensor, TensorData};
use fairtte_data::HostBatch;
use fairtte_metrics::{GroupId, SampleId};

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
    /// Sizes of all axes, batch first.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Table(columns) => columns.dims().to_vec(),
            Self::Image(pixels) => pixels.dims().to_vec(),
            Self::Volume(pixels) => pixels.dims().to_vec(),
        }
    }
}

/// The samples of one step: pixels on a device, outcomes and groups on the host.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Rows of the cohort, `[batch]`.
    pub rows: Vec<usize>,
    /// Identity of every sample, `[batch]`.
    pub sample_ids: Vec<SampleId>,
    /// What the backbone reads.
    pub pixels: Pixels,
    /// Observed times in the unit of the cohort, `[batch]`.
    pub time: Vec<f64>,
    /// `true` = event observed, `[batch]`.
    pub event: Vec<bool>,
    /// Group of the attribute that the strategy works on, `[batch]`; `None` where it is missing.
    pub groups: Vec<Option<GroupId>>,
}

impl Batch {
    /// Moves a host batch to `device`.
    ///
    /// # Errors
    /// [`ModelError::WrongInput`] unless the shape has 2, 4 or 5 axes, [`ModelError::IncompleteBatch`] if the pixels do
    /// not fill it.
    pub fn from_host(host: HostBatch, device: &Device) -> Result<Self, ModelError> {
        let HostBatch { rows, sample_ids, pixels, shape, time, event, groups } = host;
        if shape.iter().product::<usize>() != pixels.len() {
            return Err(ModelError::IncompleteBatch { shape, found: pixels.len() });
        }
        let data = TensorData::new(pixels, shape.clone());
        let pixels = match shape.len() {
            2 => Pixels::Table(Tensor::from_data(data, device)),
            4 => Pixels::Image(Tensor::from_data(data, device)),
            5 => Pixels::Volume(Tensor::from_data(data, device)),
            _ => {
                let expected =
                    "[batch, columns], [batch, channels, height, width] or [batch, channels, depth, height, width]";
                return Err(ModelError::WrongInput { backbone: "(any)", shape, expected });
            }
        };
        Ok(Self { rows, sample_ids, pixels, time, event, groups })
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.time.len()
    }
}
