//! Batches: their content and order, which depends only on seed and epoch.

use approx::assert_abs_diff_eq;
use fairtte_data::loader::{Augmentation, AugmentationConfig, Flip, Intensity};
use fairtte_data::{Cohort, HostBatch, ImageConfig, ImageStore, IntensityConfig, Loader, Sampling};
use fairtte_metrics::GroupId;
use tempfile::TempDir;

use crate::make;

pub struct World {
    _folder: TempDir,
    pub cohort: Cohort,
    pub store: ImageStore,
}

fn world(n: usize, channels: usize) -> World {
    world_of(n, channels, &[6, 5])
}

pub fn world_of(n: usize, channels: usize, size: &[usize]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..n).map(|i| format!("{i}.png")).collect();
    for (i, name) in names.iter().enumerate() {
        make::png(&folder.path().join(name), i * 9);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cohort = make::cohort(folder.path(), &names);
    let config = ImageConfig { size: size.to_vec(), channels, ..ImageConfig::default() };
    let (store, _) = ImageStore::open_or_build(&cohort, &config, folder.path(), &|_, _| {}).unwrap();
    World { _folder: folder, cohort, store }
}

impl World {
    pub fn loader(&self, intensity: &Intensity) -> Loader<'_> {
        let levels = [None, Some(GroupId(0)), Some(GroupId(1))];
        let groups = (0..self.cohort.n()).map(|row| levels[row % 3]).collect();
        Loader::new(&self.store, &self.cohort, groups, intensity).unwrap()
    }

    pub fn plain(&self) -> Loader<'_> {
        self.loader(&Intensity::none(self.store.n_channels()))
    }
}

fn order(loader: &Loader<'_>, rows: &[usize], sampling: &Sampling, seed: u64, epoch: u64) -> Vec<usize> {
    loader.batches(rows, 4, sampling, seed, epoch).unwrap().flat_map(|batch| batch.rows).collect()
}

#[test]
fn every_field_of_a_batch_is_about_the_same_samples() {
    let world = world(10, 3);
    let rows = [9, 2, 4, 7, 0];
    let batches: Vec<HostBatch> = world.plain().batches(&rows, 3, &Sampling::Sequential, 0, 0).unwrap().collect();
    assert_eq!(batches.iter().map(|b| b.rows.clone()).collect::<Vec<_>>(), [vec![9, 2, 4], vec![7, 0]]);
    for batch in &batches {
        assert_eq!(batch.shape, [batch.rows.len(), 3, 6, 5]);
        assert_eq!(batch.pixels.len(), batch.rows.len() * 90);
        for (i, &row) in batch.rows.iter().enumerate() {
            let sample = &world.cohort.samples[row];
            assert_eq!(
                (&batch.sample_ids[i], batch.time[i], batch.event[i]),
                (&sample.sample_id, sample.time, sample.event)
            );
            assert_eq!(batch.groups[i], [None, Some(GroupId(0)), Some(GroupId(1))][row % 3]);
            let fairtte_data::image::StoredPixels::Picture(stored) =
                world.store.pixels(world.store.position(&sample.sample_id).unwrap())
            else {
                panic!("a film")
            };
            for (pixel, stored) in batch.pixels[i * 90..(i + 1) * 90].iter().zip(stored) {
                assert_abs_diff_eq!(*pixel, f32::from(*stored) / 255.0, epsilon = 1e-7);
            }
        }
    }
}

#[test]
fn an_epoch_depends_on_seed_and_epoch_only() {
    let world = world(23, 1);
    let loader = world.plain();
    let rows = world.cohort.all_rows();
    let weighted = Sampling::Weighted((0..23).map(|i| f64::from(i % 5)).collect());
    for sampling in [Sampling::Shuffled, weighted] {
        let first = order(&loader, &rows, &sampling, 7, 3);
        // Other epochs in between change nothing: a resumed run sees the same batches.
        order(&loader, &rows, &sampling, 7, 4);
        assert_eq!(order(&world.plain(), &rows, &sampling, 7, 3), first);
        assert_ne!(order(&loader, &rows, &sampling, 7, 4), first);
        assert_ne!(order(&loader, &rows, &sampling, 8, 3), first);
    }
    let mut shuffled = order(&loader, &rows, &Sampling::Shuffled, 7, 3);
    shuffled.sort_unstable();
    assert_eq!(shuffled, rows, "every row once");
    assert_eq!(order(&loader, &rows, &Sampling::Sequential, 1, 1), rows);
}

#[test]
fn skipped_batches_change_nothing_about_the_later_ones() {
    let world = world(11, 1);
    let loader = world.plain();
    let rows = world.cohort.all_rows();
    let batches = || loader.batches(&rows, 4, &Sampling::Shuffled, 2, 5).unwrap();
    assert_eq!(batches().len(), 3);
    assert_eq!(batches().skip(1).collect::<Vec<_>>(), batches().collect::<Vec<_>>()[1..]);
}

#[test]
fn a_lone_last_sample_joins_the_batch_before_it() {
    let world = world(9, 1);
    let sizes = |n: usize, batch_size| {
        let rows: Vec<usize> = (0..n).collect();
        let loader = world.plain();
        let batches = loader.batches(&rows, batch_size, &Sampling::Sequential, 0, 0).unwrap();
        batches.map(|batch| batch.rows.len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(9, 4), [4, 5]);
    assert_eq!(sizes(8, 4), [4, 4]);
    assert_eq!(sizes(7, 4), [4, 3]);
    assert_eq!(sizes(1, 4), [1]);
    assert_eq!(sizes(3, 1), [1, 1, 1]);
    assert_eq!(sizes(3, 2), [3]);
    assert!(sizes(0, 4).is_empty());
}

#[test]
fn weights_are_the_expected_shares() {
    let world = world(4, 1);
    let loader = world.plain();
    let sampling = Sampling::Weighted(vec![1.0, 0.0, 3.0, 4.0]);
    let mut counts = [0_usize; 4];
    for epoch in 0..1000 {
        for row in order(&loader, &[0, 1, 2, 3], &sampling, 5, epoch) {
            counts[row] += 1;
        }
    }
    assert_eq!(counts[1], 0, "a row of weight 0 is never drawn");
    for (count, share) in counts.into_iter().zip([0.125, 0.0, 0.375, 0.5]) {
        // 4000 draws: three standard deviations are at most 0.024.
        assert_abs_diff_eq!(count as f64 / 4000.0, share, epsilon = 0.024);
    }
}

#[test]
fn batches_within_groups_hold_one_group_each_and_every_row_of_a_group_once() {
    let world = world(14, 1);
    let loader = world.plain();
    let rows: Vec<usize> = (0..14).collect();
    let groups: Vec<Option<GroupId>> = rows.iter().map(|row| loader.groups()[*row]).collect();
    let sampling = Sampling::WithinGroups(groups.clone());
    let batches: Vec<Vec<usize>> = loader.batches(&rows, 2, &sampling, 3, 0).unwrap().map(|batch| batch.rows).collect();
    for batch in &batches {
        assert!(groups[batch[0]].is_some() && batch.iter().all(|row| groups[*row] == groups[batch[0]]), "{batch:?}");
    }
    // Five rows of one group and four of the other: a single last one is merged within its group.
    let mut sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 2, 2, 3]);
    let mut drawn: Vec<usize> = batches.concat();
    drawn.sort_unstable();
    let expected: Vec<usize> = rows.iter().copied().filter(|row| groups[*row].is_some()).collect();
    assert_eq!(drawn, expected);
    // The order of the groups and within them depends on seed and epoch.
    let orders: Vec<Vec<usize>> = (0..8).map(|epoch| order(&loader, &rows, &sampling, 3, epoch)).collect();
    assert_eq!(orders[0], order(&loader, &rows, &sampling, 3, 0));
    let first_groups = orders.iter().map(|order| groups[order[0]]);
    assert!(first_groups.clone().any(|group| group == Some(GroupId(0))));
    assert!(first_groups.clone().any(|group| group == Some(GroupId(1))));
    let short = loader.batches(&rows, 2, &Sampling::WithinGroups(vec![None]), 3, 0).unwrap_err().to_string();
    assert_eq!(short, "list of groups has length 1, expected 14");
}

#[test]
fn impossible_requests_are_refused() {
    let world = world(3, 1);
    let loader = world.plain();
    let rows = [0, 1, 2];
    let message =
        |batch_size, sampling: &Sampling| loader.batches(&rows, batch_size, sampling, 0, 0).unwrap_err().to_string();
    assert_eq!(message(0, &Sampling::Shuffled), "batch-size is 0, expected a whole number >= 1");
    assert!(message(2, &Sampling::Weighted(vec![1.0])).contains("has length 1, expected 3"));
    assert!(message(2, &Sampling::Weighted(vec![1.0, -1.0, 1.0])).contains("weights is -1"));
    assert!(message(2, &Sampling::Weighted(vec![1.0, f64::NAN, 1.0])).contains("weights is NaN"));
    assert!(message(2, &Sampling::Weighted(vec![0.0; 3])).contains("sum > 0"));
    let short = Loader::new(&world.store, &world.cohort, vec![None], &Intensity::none(1)).unwrap_err().to_string();
    assert_eq!(short, "list of groups has length 1, expected 3");
    let mut stranger = world.cohort.clone();
    stranger.samples[1].sample_id = "unknown".into();
    let message = Loader::new(&world.store, &stranger, vec![None; 3], &Intensity::none(1)).unwrap_err().to_string();
    assert!(message.starts_with("sample \"unknown\" has no decoded image"), "{message}");
}

#[test]
fn intensities_have_mean_0_and_deviation_1_over_the_training_images() {
    let world = world(12, 3);
    let train = [0, 3, 4, 5, 9];
    let intensity = IntensityConfig::Standardise.fit(&world.store, &world.cohort, &train).unwrap();
    let loader = world.loader(&intensity);
    let pixels: Vec<f64> = loader
        .batches(&train, 2, &Sampling::Sequential, 0, 0)
        .unwrap()
        .flat_map(|batch| batch.pixels)
        .map(f64::from)
        .collect();
    let n = pixels.len() as f64;
    let mean = pixels.iter().sum::<f64>() / n;
    let variance = pixels.iter().map(|pixel| (pixel - mean).powi(2)).sum::<f64>() / n;
    assert_abs_diff_eq!(mean, 0.0, epsilon = 1e-6);
    assert_abs_diff_eq!(variance, 1.0, epsilon = 1e-5);
    let other = Intensity::fit(&world.store, &world.cohort, &[0, 3]).unwrap();
    assert_ne!(intensity, other, "only the given rows are used");
    for config in [IntensityConfig::None, IntensityConfig::Unit] {
        assert_eq!(config.fit(&world.store, &world.cohort, &train).unwrap(), Intensity::none(3));
    }
}

/// The constants as published, on a picture whose stored bytes are known.
#[test]
fn constants_of_pretrained_weights_are_applied_per_channel() {
    let world = world(4, 3);
    let unit: Vec<HostBatch> = world.plain().batches(&[2], 1, &Sampling::Sequential, 0, 0).unwrap().collect();
    for (config, mean, deviation) in [
        (IntensityConfig::ImageNet, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        (IntensityConfig::Kinetics, [0.43216, 0.394_666, 0.37645], [0.22803, 0.22145, 0.216_989]),
        (IntensityConfig::Symmetric, [0.5; 3], [0.5; 3]),
    ] {
        let intensity = config.fit(&world.store, &world.cohort, &[0]).unwrap();
        let batch = world.loader(&intensity).batches(&[2], 1, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
        for (at, (pixel, unit)) in batch.pixels.iter().zip(&unit[0].pixels).enumerate() {
            let channel = at / 30;
            let expected = (f64::from(*unit) - mean[channel]) / deviation[channel];
            assert_abs_diff_eq!(f64::from(*pixel), expected, epsilon = 1e-6);
        }
    }
}

#[test]
fn constants_of_three_channels_are_refused_for_gray_images() {
    let gray = ImageConfig::default();
    for (config, name) in [(IntensityConfig::ImageNet, "imagenet"), (IntensityConfig::Kinetics, "kinetics")] {
        let refused = config.check(&gray).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("intensity is \"{name}\" with image.channels = 1, expected")),
            "{refused}"
        );
        config.check(&ImageConfig { channels: 3, ..gray.clone() }).unwrap();
        let read: IntensityConfig = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!(read, config);
    }
    IntensityConfig::PerImage.check(&gray).unwrap();
}

#[test]
fn every_image_has_mean_0_and_deviation_1_by_itself_if_asked() {
    let world = world(5, 3);
    let intensity = IntensityConfig::PerImage.fit(&world.store, &world.cohort, &[0]).unwrap();
    let loader = world.loader(&intensity);
    for batch in loader.batches(&[0, 3, 4], 2, &Sampling::Sequential, 0, 0).unwrap() {
        for channel in batch.pixels.chunks_exact(30) {
            let mean = channel.iter().map(|value| f64::from(*value)).sum::<f64>() / 30.0;
            let variance = channel.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / 30.0;
            assert_abs_diff_eq!(mean, 0.0, epsilon = 1e-6);
            assert_abs_diff_eq!(variance, 1.0, epsilon = 1e-5);
        }
    }
}

#[test]
fn a_constant_channel_does_not_divide_by_zero() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "b.png"] {
        image::GrayImage::from_pixel(8, 8, image::Luma([77])).save(folder.path().join(name)).unwrap();
    }
    let cohort = make::cohort(folder.path(), &["a.png", "b.png"]);
    let config = ImageConfig { size: vec![4, 4], channels: 1, ..ImageConfig::default() };
    let (store, _) = ImageStore::open_or_build(&cohort, &config, folder.path(), &|_, _| {}).unwrap();
    let intensity = Intensity::fit(&store, &cohort, &[0, 1]).unwrap();
    assert_eq!(intensity.standard_deviation, [1.0]);
    let own = IntensityConfig::PerImage.fit(&store, &cohort, &[0]).unwrap();
    let own = Loader::new(&store, &cohort, vec![None; 2], &own).unwrap();
    let batch = own.batches(&[0, 1], 2, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
    assert!(batch.pixels.iter().all(|pixel| pixel.abs() < 1e-6), "{:?}", batch.pixels);
    let loader = Loader::new(&store, &cohort, vec![None; 2], &intensity).unwrap();
    let batch = loader.batches(&[0, 1], 2, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
    assert!(batch.pixels.iter().all(|pixel| pixel.abs() < 1e-6), "{:?}", batch.pixels);
}

#[test]
fn volumes_are_scaled_and_repeated_for_every_channel() {
    let folder = tempfile::tempdir().unwrap();
    make::nifti(&folder.path().join("a.nii"), [3, 5, 6, 7, 1, 1, 1, 1]);
    let cohort = make::cohort(folder.path(), &["a.nii"]);
    let config = ImageConfig { size: vec![7, 6, 5], channels: 3, ..ImageConfig::default() };
    let (store, _) = ImageStore::open_or_build(&cohort, &config, folder.path(), &|_, _| {}).unwrap();
    let intensity = Intensity::of(vec![0.5, 0.0, 0.25], vec![0.5, 1.0, 2.0]);
    let loader = Loader::new(&store, &cohort, vec![None], &intensity).unwrap();
    let batch = loader.batches(&[0], 1, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
    assert_eq!(batch.shape, [1, 3, 7, 6, 5]);
    for (channel, (mean, deviation)) in [(0.5, 0.5), (0.0, 1.0), (0.25, 2.0)].into_iter().enumerate() {
        for voxel in 0..210 {
            let expected = (voxel as f32 / 209.0 - mean) / deviation;
            assert_abs_diff_eq!(batch.pixels[channel * 210 + voxel], expected, epsilon = 4e-5);
        }
    }
}

/// The intensities of stored values by their definition.
fn scaled(batch: &HostBatch) -> Vec<f32> {
    let stored = batch.stored.as_ref().unwrap();
    let (n_model, plane) = (batch.shape[1], batch.shape[2..].iter().product::<usize>());
    let value = |index: usize| {
        let (per_word, mask) = (32 / stored.bits, (1_u32 << stored.bits) - 1);
        let word = stored.words[index / per_word].cast_unsigned();
        f64::from(word >> (stored.bits * (index % per_word)) & mask)
    };
    let mut found = Vec::new();
    for sample in 0..batch.rows.len() {
        for channel in 0..n_model {
            let (factor, offset) = stored.scale[channel];
            let from = (sample * stored.n_channels + channel % stored.n_channels) * plane;
            let intensity = |at: usize| value(from + at) * f64::from(factor) + f64::from(offset);
            #[expect(clippy::cast_possible_truncation, reason = "intensities are in single precision")]
            found.extend((0..plane).map(|at| intensity(at) as f32));
        }
    }
    found
}

#[test]
fn a_batch_of_stored_values_is_the_batch_of_intensities_before_they_are_scaled() {
    let world = world_of(7, 3, &[11, 9]);
    let intensity = IntensityConfig::Standardise.fit(&world.store, &world.cohort, &[0, 1, 2]).unwrap();
    let cut = AugmentationConfig { crop: Some(vec![7, 5]), flip: Flip::Horizontal, ..AugmentationConfig::default() };
    let image = ImageConfig { size: vec![11, 9], channels: 3, ..ImageConfig::default() };
    let cut = Augmentation::new(&cut, &image, "generic").unwrap();
    for augmentation in [None, Some(cut)] {
        let loader = world.loader(&intensity);
        let loader = augmentation.into_iter().fold(loader, |loader, cut| loader.with_augmentation(cut).unwrap());
        for sampling in [Sampling::Shuffled, Sampling::Sequential] {
            let batches = || loader.batches(&[6, 2, 4, 1, 0], 3, &sampling, 5, 2).unwrap();
            for (stored, plain) in batches().as_stored().zip(batches()) {
                assert!(stored.pixels.is_empty() && plain.stored.is_none());
                // Four bytes in a word, where single precision has one value.
                assert_eq!(stored.stored.as_ref().unwrap().words.len(), plain.pixels.len().div_ceil(4));
                for (one, other) in scaled(&stored).iter().zip(&plain.pixels) {
                    assert_abs_diff_eq!(one, other, epsilon = 2e-6);
                }
                assert_eq!(HostBatch { pixels: plain.pixels.clone(), stored: None, ..stored }, plain);
            }
        }
    }
}

#[test]
fn images_that_are_changed_before_they_are_scaled_are_sent_as_intensities() {
    let world = world_of(4, 3, &[11, 9]);
    let image = ImageConfig { size: vec![11, 9], channels: 3, ..ImageConfig::default() };
    let turned = AugmentationConfig { rotation: 10.0, ..AugmentationConfig::default() };
    let turned = Augmentation::new(&turned, &image, "generic").unwrap();
    let per_image = IntensityConfig::PerImage.fit(&world.store, &world.cohort, &[0]).unwrap();
    for loader in [world.plain().with_augmentation(turned).unwrap(), world.loader(&per_image)] {
        let batches = || loader.batches(&[0, 1, 2, 3], 2, &Sampling::Shuffled, 5, 2).unwrap();
        assert!(batches().as_stored().eq(batches()));
    }
}
