//! Smallest, largest and mean sample of a decoded picture, over all channels.

use serde::{Deserialize, Serialize};

use super::{DecodedPicture, Samples};

/// Summary of the stored samples of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Mean sample.
    pub mean: f64,
}

impl DecodedPicture {
    /// Smallest, largest and mean sample over all channels, opacity included, as stored.
    pub fn statistics(&self) -> Statistics {
        match &self.samples {
            Samples::U8(samples) => summarise(samples),
            Samples::U16(samples) => summarise(samples),
            Samples::I16(samples) => summarise(samples),
        }
    }
}

/// Exact: the sum of 2^31 samples of 16 bits fits into 64 bits.
fn summarise<T: Copy + Into<i64>>(samples: &[T]) -> Statistics {
    let (mut min, mut max, mut sum) = (i64::MAX, i64::MIN, 0_i64);
    for sample in samples {
        let sample: i64 = (*sample).into();
        (min, max, sum) = (min.min(sample), max.max(sample), sum + sample);
    }
    if samples.is_empty() {
        return Statistics { min: 0.0, max: 0.0, mean: 0.0 };
    }
    Statistics { min: min as f64, max: max as f64, mean: sum as f64 / samples.len() as f64 }
}
