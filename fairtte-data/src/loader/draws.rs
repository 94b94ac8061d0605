//! The random change of an image in an epoch.

use fairtte_images::augment::{Augmentation, Draw};
use fairtte_metrics::SampleId;
use fairtte_metrics::seeds::stream;

/// The random change of the `earlier + 1`-th draw of `sample` in `epoch`, from streams of its own: neither other samples nor the
/// number of threads have an effect on it.
pub(super) fn draw(augmentation: &Augmentation, seed: u64, epoch: u64, sample: &SampleId, earlier: u64) -> Draw {
    let keys = [epoch, identity(sample), earlier];
    augmentation.draw(&|name| stream(seed, name, &keys))
}

/// A number for the identity of a sample: row numbers change when a cohort grows, identities do not.
fn identity(sample: &SampleId) -> u64 {
    let hash = blake3::hash(sample.as_str().as_bytes());
    u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageConfig;
    use crate::loader::AugmentationConfig;

    #[test]
    fn a_draw_depends_on_seed_epoch_sample_and_earlier_draws_only() -> Result<(), crate::DataError> {
        let config = AugmentationConfig { rotation: 15.0, ..AugmentationConfig::default() };
        let image = ImageConfig { size: vec![6, 6], ..ImageConfig::default() };
        let augmentation = Augmentation::new(&config, &image, "generic")?;
        let of = |seed, epoch, sample: &str, earlier| draw(&augmentation, seed, epoch, &sample.into(), earlier);
        let first = of(1, 2, "a", 0);
        assert_eq!(of(1, 2, "a", 0), first);
        for other in [of(2, 2, "a", 0), of(1, 3, "a", 0), of(1, 2, "b", 0), of(1, 2, "a", 1)] {
            assert_ne!(other, first);
        }
        Ok(())
    }
}
