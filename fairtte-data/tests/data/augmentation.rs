//! Augmented batches: the same whatever the number of threads, the size of a batch or an interruption.

use approx::assert_abs_diff_eq;
use fairtte_data::loader::{
    Augmentation, AugmentationConfig, BlurConfig, CutoutConfig, ElasticConfig, Flip, Intensity, PixelTransform,
};
use fairtte_data::{HostBatch, ImageConfig, ImageStore, Loader, Sampling};

use crate::loader::{World, world_of};
use crate::make;

/// Twelve colour pictures of 80 x 96: a batch of all is large enough to be made by several threads.
fn world() -> World {
    world_of(12, 3, &[80, 96])
}

fn medfair(world: &World) -> Augmentation {
    let config = AugmentationConfig {
        crop: Some(vec![72, 80]),
        flip: Flip::Horizontal,
        rotation: 15.0,
        ..AugmentationConfig::default()
    };
    let image = ImageConfig { size: world.store.size().to_vec(), channels: 3, ..ImageConfig::default() };
    Augmentation::new(&config, &image, "generic").unwrap()
}

fn augmented(world: &World) -> Loader<'_> {
    world.plain().with_augmentation(medfair(world)).unwrap()
}

/// Row and pixels of every sample of an epoch, in its order.
fn epoch(loader: &Loader<'_>, batch_size: usize, sampling: &Sampling, epoch: u64) -> Vec<(usize, Vec<f32>)> {
    let rows: Vec<usize> = (0..12).collect();
    let batches = loader.batches(&rows, batch_size, sampling, 5, epoch).unwrap();
    let images = |batch: HostBatch| {
        let n_values = batch.pixels.len() / batch.rows.len();
        let pixels: Vec<Vec<f32>> = batch.pixels.chunks_exact(n_values).map(<[f32]>::to_vec).collect();
        batch.rows.into_iter().zip(pixels).collect::<Vec<_>>()
    };
    batches.flat_map(images).collect()
}

#[test]
fn threads_and_batch_sizes_change_no_bit_of_an_epoch() {
    let world = world();
    let reference = epoch(&augmented(&world), 12, &Sampling::Shuffled, 3);
    assert_eq!(reference[0].1.len(), 3 * 72 * 80);
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for batch_size in [1, 5, 12] {
            let again = pool.install(|| epoch(&augmented(&world), batch_size, &Sampling::Shuffled, 3));
            assert!(again == reference, "{threads} threads, batches of {batch_size}");
        }
    }
}

#[test]
fn a_run_resumed_at_any_epoch_or_batch_sees_the_same_images() {
    let world = world();
    let loader = augmented(&world);
    let epochs: Vec<_> = (0..4).map(|number| epoch(&loader, 4, &Sampling::Shuffled, number)).collect();
    for (number, expected) in (0..).zip(&epochs) {
        assert!(&epoch(&augmented(&world), 4, &Sampling::Shuffled, number) == expected, "epoch {number}");
    }
    assert_ne!(epochs[0][0].1, epochs[1].iter().find(|(row, _)| *row == epochs[0][0].0).unwrap().1);
    let rows: Vec<usize> = (0..12).collect();
    let batches = || loader.batches(&rows, 4, &Sampling::Shuffled, 5, 2).unwrap();
    assert!(batches().skip(2).collect::<Vec<_>>() == batches().collect::<Vec<_>>()[2..]);
}

#[test]
fn a_cohort_that_grows_does_not_change_what_an_epoch_does_to_a_sample() {
    let world = world();
    let first = epoch(&augmented(&world), 4, &Sampling::Shuffled, 1);
    let mut moved = world.cohort.clone();
    moved.samples.rotate_left(5);
    let loader = Loader::new(&world.store, &moved, vec![None; 12], &Intensity::none(3)).unwrap();
    let second = epoch(&loader.with_augmentation(medfair(&world)).unwrap(), 4, &Sampling::Shuffled, 1);
    for (row, pixels) in &first {
        let moved_row = (row + 12 - 5) % 12;
        assert!(second.iter().any(|(row, other)| *row == moved_row && other == pixels), "row {row}");
    }
}

#[test]
fn two_draws_of_one_sample_in_one_epoch_differ() {
    let world = world();
    let mut weights = vec![0.0; 12];
    weights[7] = 1.0;
    let draws = epoch(&augmented(&world), 4, &Sampling::Weighted(weights), 0);
    assert!(draws.iter().all(|(row, _)| *row == 7));
    assert_ne!(draws[0].1, draws[1].1);
}

#[test]
fn prediction_sees_the_centre_whatever_the_epoch() {
    let world = world();
    let loader = augmented(&world);
    let whole = epoch(&world.plain(), 12, &Sampling::Sequential, 0);
    for number in [0, 9] {
        let centre = epoch(&loader, 5, &Sampling::Sequential, number);
        for ((_, centre), (_, whole)) in centre.iter().zip(&whole) {
            for (at, pixel) in centre.iter().enumerate() {
                let (channel, y, x) = (at / (72 * 80), at / 80 % 72, at % 80);
                assert_abs_diff_eq!(*pixel, whole[(channel * 80 + y + 4) * 96 + x + 8], epsilon = 1e-7);
            }
        }
    }
    assert_eq!(loader.size(), [72, 80]);
}

#[test]
fn settings_that_change_nothing_change_no_bit() {
    let world = world();
    let image = ImageConfig { size: vec![80, 96], channels: 3, ..ImageConfig::default() };
    let nothing = Augmentation::new(&AugmentationConfig::default(), &image, "mimic-cxr").unwrap();
    let loader = world.plain().with_augmentation(nothing).unwrap();
    assert!(epoch(&loader, 4, &Sampling::Shuffled, 2) == epoch(&world.plain(), 4, &Sampling::Shuffled, 2));
    let other = ImageConfig { size: vec![80, 80], channels: 3, ..ImageConfig::default() };
    let other = Augmentation::new(&AugmentationConfig::default(), &other, "generic").unwrap();
    let refused = world.plain().with_augmentation(other).unwrap_err().to_string();
    assert_eq!(refused, "side of the augmentation's images has length 80, expected 96");
}

fn with<'a>(world: &'a World, settings: &AugmentationConfig) -> Loader<'a> {
    let image = ImageConfig { size: world.store.size().to_vec(), channels: 3, ..ImageConfig::default() };
    world.plain().with_augmentation(Augmentation::new(settings, &image, "generic").unwrap()).unwrap()
}

/// Every change alone: it differs between epochs, samples and seeds, not between threads, and prediction does not see it.
#[test]
fn every_change_depends_on_seed_epoch_and_sample_only() {
    let world = world();
    let none = AugmentationConfig::default;
    let plain = epoch(&world.plain(), 12, &Sampling::Sequential, 0);
    for settings in [
        AugmentationConfig { brightness: 0.4, ..none() },
        AugmentationConfig { contrast: 0.4, ..none() },
        AugmentationConfig { blur: Some(BlurConfig { probability: 1.0, sigma: [0.5, 2.0] }), ..none() },
        AugmentationConfig { elastic: Some(ElasticConfig { alpha: 60.0, sigma: 4.0 }), ..none() },
        AugmentationConfig { cutout: Some(CutoutConfig { holes: 1, size: 0.3 }), ..none() },
    ] {
        let loader = with(&world, &settings);
        let pixels = |seed, number| {
            let mut batches = loader.batches(&[3], 1, &Sampling::Shuffled, seed, number).unwrap();
            batches.next().unwrap().pixels
        };
        assert!(pixels(1, 1) == pixels(1, 1) && pixels(1, 1) != pixels(2, 1), "{settings:?}");
        let reference = epoch(&loader, 12, &Sampling::Shuffled, 3);
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| epoch(&loader, 5, &Sampling::Shuffled, 3)) == reference, "{settings:?}");
        }
        let other = epoch(&loader, 12, &Sampling::Shuffled, 4);
        for (row, pixels) in &reference {
            let again = &other.iter().find(|(other, _)| other == row).unwrap().1;
            assert!(pixels != again && *pixels != plain[*row].1, "row {row}: {settings:?}");
        }
        for ((_, seen), (_, plain)) in epoch(&loader, 12, &Sampling::Sequential, 3).iter().zip(&plain) {
            for (seen, plain) in seen.iter().zip(plain) {
                assert_abs_diff_eq!(*seen, *plain, epsilon = 1e-6);
            }
        }
    }
}

/// The same picture under two names.
#[test]
fn two_samples_with_the_same_pixels_are_changed_differently() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.nii", "b.nii"] {
        make::nifti(&folder.path().join(name), [3, 8, 9, 7, 1, 1, 1, 1]);
    }
    let cohort = make::cohort(folder.path(), &["a.nii", "b.nii"]);
    let image = ImageConfig { size: vec![7, 9, 8], channels: 1, ..ImageConfig::default() };
    let (store, _) = ImageStore::open_or_build(&cohort, &image, folder.path(), &|_, _| {}).unwrap();
    for text in ["brightness = 0.3", "elastic = { alpha = 20.0, sigma = 2.0 }", "cutout = { holes = 1, size = 0.4 }"] {
        let settings: AugmentationConfig = toml::from_str(text).unwrap();
        let augmentation = Augmentation::new(&settings, &image, "generic").unwrap();
        let loader = Loader::new(&store, &cohort, vec![None; 2], &Intensity::none(1)).unwrap();
        let loader = loader.with_augmentation(augmentation).unwrap();
        let draw = |seed| loader.batches(&[0, 1], 2, &Sampling::Shuffled, seed, 0).unwrap().next().unwrap();
        let (first, second) = (draw(1), draw(2));
        assert_ne!(first.pixels[..504], first.pixels[504..], "{text}");
        assert_ne!(first.pixels, second.pixels, "{text}");
        assert!(first.pixels.iter().all(|value| (0.0..=1.0).contains(value)), "{text}");
    }
}

#[test]
fn a_hole_is_zero_after_the_scaling() {
    let world = world();
    let image = ImageConfig { size: vec![80, 96], channels: 3, ..ImageConfig::default() };
    let settings = AugmentationConfig { cutout: Some(CutoutConfig { holes: 1, size: 0.5 }), ..Default::default() };
    let per_image = Intensity { per_image: true, ..Intensity::none(3) };
    for intensity in [Intensity::of(vec![0.3; 3], vec![0.01; 3]), per_image] {
        let plain = epoch(&world.loader(&intensity), 12, &Sampling::Sequential, 0);
        let augmentation = Augmentation::new(&settings, &image, "generic").unwrap();
        let loader = world.loader(&intensity).with_augmentation(augmentation).unwrap();
        for (row, pixels) in epoch(&loader, 12, &Sampling::Shuffled, 1) {
            let changed = pixels.iter().zip(&plain[row].1).filter(|(new, old)| (*new - *old).abs() > 1e-3);
            let changed: Vec<_> = changed.collect();
            assert!(changed.len() > 3 * 20 * 24 / 2 && changed.iter().all(|(new, _)| **new == 0.0), "row {row}");
        }
    }
}

/// Records its arguments.
#[derive(Debug)]
struct Stamp {
    row: usize,
}

impl PixelTransform for Stamp {
    fn apply(&self, row: usize, epoch: u64, intensities: &mut [f32], shape: &[usize]) {
        assert_eq!(intensities.len(), shape.iter().product::<usize>());
        assert!(intensities.iter().all(|intensity| (0.0..=1.0).contains(intensity)));
        if row == self.row {
            intensities.fill(0.25 + epoch as f32 / 8.0);
        }
    }
}

#[test]
fn a_transformation_sees_intensities_before_they_are_normalised() {
    let world = world();
    let intensity = Intensity::of(vec![0.5; 3], vec![0.5; 3]);
    let plain = epoch(&world.loader(&intensity), 4, &Sampling::Sequential, 2);
    let loader = world.loader(&intensity).with_transform(Box::new(Stamp { row: 3 }));
    for ((row, changed), (_, plain)) in epoch(&loader, 4, &Sampling::Sequential, 2).iter().zip(&plain) {
        for (changed, plain) in changed.iter().zip(plain) {
            // 0.25 + 2 / 8 is the mean.
            assert_abs_diff_eq!(*changed, if *row == 3 { 0.0 } else { *plain }, epsilon = 1e-6);
        }
    }
}

#[test]
fn a_volume_is_transformed_once_and_then_repeated() {
    let folder = tempfile::tempdir().unwrap();
    make::nifti(&folder.path().join("a.nii"), [3, 5, 6, 7, 1, 1, 1, 1]);
    let cohort = make::cohort(folder.path(), &["a.nii"]);
    let image = ImageConfig { size: vec![7, 6, 5], channels: 3, ..ImageConfig::default() };
    let (store, _) = ImageStore::open_or_build(&cohort, &image, folder.path(), &|_, _| {}).unwrap();
    let config = AugmentationConfig { crop: Some(vec![3, 2, 3]), ..AugmentationConfig::default() };
    let augmentation = Augmentation::new(&config, &image, "adni").unwrap();
    let intensity = Intensity::of(vec![0.0, 0.5, 0.0], vec![1.0, 1.0, 2.0]);
    let loader = Loader::new(&store, &cohort, vec![None], &intensity).unwrap().with_augmentation(augmentation).unwrap();
    let batch = loader.batches(&[0], 1, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
    assert_eq!(batch.shape, [1, 3, 3, 2, 3]);
    // Voxel (z, y, x) holds (x + 5 y + 30 z) / 209; the centre begins at slice 2, row 2, column 1.
    for at in 0..18 {
        let (z, y, x) = (at / 6 + 2, at / 3 % 2 + 2, at % 3 + 1);
        let unit = (x + 5 * y + 30 * z) as f32 / 209.0;
        for (channel, expected) in [unit, unit - 0.5, unit / 2.0].into_iter().enumerate() {
            assert_abs_diff_eq!(batch.pixels[channel * 18 + at], expected, epsilon = 4e-5);
        }
    }
}
