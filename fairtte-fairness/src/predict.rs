//! Step 9: survival curves of any rows. burn ends here.

use burn::tensor::Device;
use fairtte_data::{Loader, Sampling};
use fairtte_models::Batch;
use fairtte_survival::SurvivalHead;
use ndarray::{Array2, Axis, concatenate};

use crate::FairnessError;
use crate::strategies::Strategy;

/// Fixed, so that a prediction does not depend on the batch size of the training.
const BATCH_SIZE: usize = 64;

/// Survival at the cut points, `[rows, n_intervals]`, in the order of `rows`; no state changes.
///
/// # Errors
/// [`FairnessError::Model`] if the backbone cannot read the pixels.
///
/// # Panics
/// Never: all blocks share one grid.
pub fn predict(
    strategy: &dyn Strategy,
    loader: &Loader<'_>,
    rows: &[usize],
    head: &dyn SurvivalHead,
    device: &Device,
) -> Result<Array2<f64>, FairnessError> {
    let mut blocks = Vec::with_capacity(rows.len().div_ceil(BATCH_SIZE));
    for host in loader.batches(rows, BATCH_SIZE, &Sampling::Sequential, 0, 0)? {
        blocks.push(strategy.predict(&Batch::from_host(host, device)?, head)?);
    }
    let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
    Ok(if views.is_empty() { Array2::zeros((0, 0)) } else { concatenate(Axis(0), &views).expect("one grid") })
}
