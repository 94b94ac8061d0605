//! Masks beside images: read from a table, stored by the nearest neighbour, and moved by augmentation like their images.

use std::fmt::Write as _;

use fairtte_data::image::{check_mask_shapes, classes_of_values};
use fairtte_data::loader::{Augmentation, AugmentationConfig, ElasticConfig, Flip, Intensity};
use fairtte_data::{
    Adapter as _, Cohort, DataError, Generic, GenericConfig, HostBatch, ImageConfig, ImageStore, Loader, Sampling,
    build_cohort,
};
use tempfile::TempDir;

const SIDES: [usize; 2] = [48, 64];
const VALUES: [u8; 3] = [0, 3, 7];

struct World {
    folder: TempDir,
    cohort: Cohort,
    masks: Cohort,
    images: ImageStore,
    labels: ImageStore,
}

/// The class of a pixel of picture `n`: a disc with a cup that is not in its centre.
fn class(n: usize, x: u32, y: u32) -> usize {
    let (x, y) = (f64::from(x) - 20.0 - n as f64, f64::from(y) - 22.0);
    let disc = x * x + y * y < 196.0;
    usize::from(disc) + usize::from(disc && (x - 4.0) * (x - 4.0) + (y + 3.0) * (y + 3.0) < 36.0)
}

fn gray(path: &std::path::Path, of: impl Fn(u32, u32) -> u8) {
    let [height, width] = SIDES.map(|side| u32::try_from(side).unwrap());
    image::GrayImage::from_fn(width, height, |x, y| image::Luma([of(x, y)])).save(path).unwrap();
}

/// Pictures whose intensity is the class: 0, 100 and 200.
fn world(size: [usize; 2]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from("image,subject_id,outline,sex\n");
    for n in 0..5 {
        gray(&folder.path().join(format!("{n}.png")), |x, y| [0, 100, 200][class(n, x, y)]);
        gray(&folder.path().join(format!("{n}-mask.png")), |x, y| VALUES[class(n, x, y)]);
        writeln!(table, "{n}.png,p{n},{n}-mask.png,F").unwrap();
    }
    table.push_str("0.png,p9,,F\n");
    std::fs::write(folder.path().join("eyes.csv"), table.replace("0.png,p9", "extra.png,p9")).unwrap();
    let config =
        GenericConfig { mask: Some("outline".to_owned()), ..GenericConfig::new(folder.path().join("eyes.csv")) };
    let adapter = Generic::new(config);
    let (cohort, exclusions) = build_cohort(adapter.read().unwrap(), &[]).unwrap();
    assert_eq!((cohort.n(), exclusions.n(), cohort.mask()), (5, 1, Some("outline")));
    assert!(exclusions.summary().contains("missing_label"), "{}", exclusions.summary());
    assert!(matches!(cohort.outcomes(&[0]), Err(DataError::OnlyMasks { .. })));
    assert!(cohort.of_masks().outcomes(&[0]).is_ok());
    let masks = adapter.masks_of(&cohort).unwrap();
    let image = ImageConfig { size: size.to_vec(), ..ImageConfig::default() };
    let open = |cohort: &Cohort, config: &ImageConfig| {
        let (store, excluded) = ImageStore::open_or_build(cohort, config, folder.path(), &|_, _| {}).unwrap();
        assert!(excluded.is_empty(), "{excluded:?}");
        store
    };
    let (images, labels) = (open(&cohort, &image), open(&masks, &image.of_masks()));
    World { folder, cohort, masks, images, labels }
}

impl World {
    fn loader(&self) -> Loader<'_> {
        let classes = classes_of_values(&self.labels, &self.masks, &VALUES).unwrap();
        let loader = Loader::new(&self.images, &self.cohort, vec![None; 5], &Intensity::none(1)).unwrap();
        assert!(!loader.has_masks());
        loader.with_masks(&self.labels, classes).unwrap()
    }

    fn augmented(&self, config: &AugmentationConfig) -> Loader<'_> {
        let image = ImageConfig { size: self.images.size().to_vec(), ..ImageConfig::default() };
        let augmentation = Augmentation::new(config, &image, "generic").unwrap();
        self.loader().with_augmentation(augmentation).unwrap()
    }
}

fn batch(loader: &Loader<'_>, sampling: &Sampling, epoch: u64) -> HostBatch {
    loader.batches(&[0, 1, 2, 3, 4], 5, sampling, 9, epoch).unwrap().next().unwrap()
}

/// Of all pixels those whose class is that of their intensity, and those whose intensity is between two classes.
fn compared(batch: &HostBatch) -> [usize; 2] {
    let masks = batch.masks.as_ref().unwrap();
    assert_eq!(masks.len(), batch.pixels.len());
    let mut counts = [0; 2];
    for (intensity, class) in batch.pixels.iter().zip(masks) {
        let classes = intensity * 255.0 / 100.0;
        if (classes - classes.round()).abs() < 1e-4 {
            assert!((classes - f32::from(*class)).abs() < 1e-3, "intensity of class {classes}, mask {class}");
            counts[0] += 1;
        } else {
            counts[1] += 1;
        }
    }
    counts
}

#[test]
fn masks_of_a_batch_are_those_of_its_images() {
    let world = world(SIDES);
    let found = batch(&world.loader(), &Sampling::Shuffled, 0);
    assert_eq!(compared(&found), [5 * 48 * 64, 0]);
    assert!((0..3).all(|class| found.masks.as_ref().unwrap().contains(&class)));
}

#[test]
fn flips_and_crops_move_a_mask_exactly_like_its_image() {
    let world = world(SIDES);
    let config = AugmentationConfig { flip: Flip::Both, crop: Some(vec![40, 50]), ..Default::default() };
    let loader = world.augmented(&config);
    let plain = batch(&loader, &Sampling::Sequential, 0);
    let mut n_different = 0;
    for epoch in 0..4 {
        let found = batch(&loader, &Sampling::Shuffled, epoch);
        assert_eq!(compared(&found), [5 * 40 * 50, 0]);
        n_different += usize::from(found.masks != plain.masks);
    }
    assert_eq!(n_different, 4, "the masks move");
}

/// Between two classes the interpolated intensity says nothing of the nearest pixel.
#[test]
fn rotation_and_deformation_move_a_mask_like_its_image() {
    let world = world(SIDES);
    let turned = AugmentationConfig { flip: Flip::Horizontal, rotation: 15.0, ..Default::default() };
    let deformed = AugmentationConfig { elastic: Some(ElasticConfig { alpha: 60.0, sigma: 6.0 }), ..turned.clone() };
    for config in [turned, deformed] {
        let loader = world.augmented(&AugmentationConfig { brightness: 0.0, ..config });
        for epoch in 0..4 {
            let [same, between] = compared(&batch(&loader, &Sampling::Shuffled, epoch));
            assert!(same > 8 * between, "{same} and {between}");
        }
    }
}

#[test]
fn what_changes_intensities_leaves_the_mask() {
    let world = world(SIDES);
    let config = AugmentationConfig { brightness: 0.5, contrast: 0.5, ..Default::default() };
    let found = batch(&world.augmented(&config), &Sampling::Shuffled, 1);
    let plain = batch(&world.loader(), &Sampling::Shuffled, 1);
    assert_eq!(found.masks, plain.masks);
    assert_ne!(found.pixels, plain.pixels);
}

#[test]
fn a_smaller_mask_has_no_new_classes() {
    let world = world([32, 32]);
    let masks = batch(&world.loader(), &Sampling::Sequential, 0).masks.unwrap();
    assert_eq!(masks.len(), 5 * 32 * 32);
    // Pixel (row 13, column 12) of the first: the centre is row 20.25 and column 25 of the file.
    assert_eq!(usize::from(masks[13 * 32 + 12]), class(0, 25, 20));
    assert_eq!(batch(&world.loader(), &Sampling::Sequential, 0).shape, [5, 1, 32, 32]);
}

#[test]
fn another_value_and_other_proportions_are_errors_that_name_the_sample() {
    let world = world(SIDES);
    let message = classes_of_values(&world.labels, &world.masks, &[0, 3]).unwrap_err().to_string();
    assert!(
        message.starts_with("the true mask of sample \"0.png\" cannot be used: a pixel is 7, expected one of 0, 3")
    );
    let image = ImageConfig { size: SIDES.to_vec(), ..ImageConfig::default() };
    assert!(check_mask_shapes(&world.cohort, &world.masks, &image).is_ok());
    let path = world.folder.path().join("3-mask.png");
    image::GrayImage::new(64, 64).save(&path).unwrap();
    let message = check_mask_shapes(&world.cohort, &world.masks, &image).unwrap_err().to_string();
    assert!(message.contains("\"3.png\"") && message.contains("64 x 64 pixels and its image 48 x 64"), "{message}");
    image::GrayImage::new(128, 96).save(&path).unwrap();
    assert!(check_mask_shapes(&world.cohort, &world.masks, &image).is_ok(), "a finer mask");
}
