#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::HashSet;

use approx::assert_abs_diff_eq;
use fairtte_metrics::seeds::stream;

use super::*;

fn pictures(height: usize, width: usize) -> ImageConfig {
    ImageConfig { size: vec![height, width], ..ImageConfig::default() }
}

fn augmentation(config: &AugmentationConfig, image: &ImageConfig) -> Augmentation {
    Augmentation::new(config, image, "generic").unwrap()
}

/// `[5, 6]` intensities (7 y + 3 x + (x y) mod 4) / 64.
fn pattern() -> Vec<f32> {
    let value = |y: usize, x: usize| (7 * y + 3 * x + (x * y) % 4) as f32 / 64.0;
    (0..5).flat_map(|y| (0..6).map(move |x| value(y, x))).collect()
}

fn turned(angle: f64, source: &[f32], image: &ImageConfig) -> Vec<f32> {
    let augmentation = augmentation(&AugmentationConfig::default(), image);
    let mut target = vec![f32::NAN; source.len()];
    augmentation.apply(&Draw { angle, ..augmentation.centre() }, source, &mut target);
    target
}

/// scipy 1.17.1, numpy 2.4.6: `scipy.ndimage.rotate(pattern, angle, reshape=False, order=1, mode="constant", cval=0.0,
/// prefilter=False)` in float64.
#[test]
fn a_rotated_picture_is_the_one_of_scipy() {
    let golden: [(f64, [f32; 30]); 2] = [
        (
            10.0,
            [
                0.0,
                0.0,
                0.0,
                0.172_995_9,
                0.235_998_5,
                0.0, //
                0.075_396_3,
                0.152_739_4,
                0.235_426_7,
                0.306_703_7,
                0.337_104_3,
                0.0, //
                0.173_977_7,
                0.264_950_3,
                0.306_3,
                0.398_202_2,
                0.434_290_3,
                0.535_415_2, //
                0.0,
                0.373_923_6,
                0.433_854_5,
                0.485_223_7,
                0.535_561,
                0.619_873_6, //
                0.0,
                0.446_560_8,
                0.506_791_8,
                0.0,
                0.0,
                0.0,
            ],
        ),
        (
            -15.0,
            [
                0.0,
                0.078_726_9,
                0.096_520_6,
                0.0,
                0.0,
                0.0, //
                0.0,
                0.210_310_6,
                0.233_888_6,
                0.265_148_8,
                0.252_994_2,
                0.264_547_8, //
                0.297_037_2,
                0.346_512_2,
                0.331_925_9,
                0.377_196_3,
                0.363_298_9,
                0.397_700_2, //
                0.417_535_1,
                0.455_41,
                0.469_604_5,
                0.475_986_5,
                0.487_537_7,
                0.0, //
                0.0,
                0.0,
                0.0,
                0.581_524_3,
                0.606_932_5,
                0.0,
            ],
        ),
    ];
    for (angle, expected) in golden {
        for (found, expected) in turned(angle, &pattern(), &pictures(5, 6)).iter().zip(expected) {
            assert_abs_diff_eq!(*found, expected, epsilon = 2e-7);
        }
    }
}

#[test]
fn every_channel_and_every_slice_turns_alike() {
    let plane = turned(10.0, &pattern(), &pictures(5, 6));
    let colour = turned(10.0, &pattern().repeat(3), &pictures(5, 6));
    assert_eq!(colour, plane.repeat(3));
    let volume = ImageConfig { size: vec![4, 5, 6], ..ImageConfig::default() };
    assert_eq!(turned(10.0, &pattern().repeat(4), &volume), plane.repeat(4));
}

#[test]
fn a_crop_is_a_window_and_a_flip_its_mirror_image() {
    let image = pictures(5, 6);
    let window = augmentation(&AugmentationConfig { crop: Some(vec![2, 3]), ..Default::default() }, &image);
    let mut target = vec![0.0; 6];
    let pixel = |y: usize, x: usize| pattern()[y * 6 + x];
    window.apply(&window.centre(), &pattern(), &mut target);
    assert_eq!(window.centre().begin, [1, 1]);
    assert_eq!(target, [pixel(1, 1), pixel(1, 2), pixel(1, 3), pixel(2, 1), pixel(2, 2), pixel(2, 3)]);
    let mirrored = Draw { begin: vec![3, 2], mirror_width: true, ..window.centre() };
    window.apply(&mirrored, &pattern(), &mut target);
    assert_eq!(target, [pixel(3, 4), pixel(3, 3), pixel(3, 2), pixel(4, 4), pixel(4, 3), pixel(4, 2)]);
    let upside_down = Draw { begin: vec![3, 2], mirror_height: true, ..window.centre() };
    window.apply(&upside_down, &pattern(), &mut target);
    assert_eq!(target, [pixel(4, 2), pixel(4, 3), pixel(4, 4), pixel(3, 2), pixel(3, 3), pixel(3, 4)]);
}

/// The rotated path and the copying path agree where both apply: an angle too small to move anything.
#[test]
fn crop_and_flip_are_the_same_with_and_without_rotation() {
    let image = ImageConfig { size: vec![3, 5, 6], ..ImageConfig::default() };
    let source: Vec<f32> = (0..90_u8).map(|value| f32::from(value) / 90.0).collect();
    let window = augmentation(&AugmentationConfig { crop: Some(vec![2, 3, 4]), ..Default::default() }, &image);
    let straight = Draw { begin: vec![1, 1, 2], mirror_width: true, mirror_height: true, ..window.centre() };
    let (mut copied, mut sampled) = (vec![0.0; 24], vec![0.0; 24]);
    window.apply(&straight, &source, &mut copied);
    window.apply(&Draw { angle: 1e-9, ..straight }, &source, &mut sampled);
    for (copied, sampled) in copied.iter().zip(&sampled) {
        assert_abs_diff_eq!(*copied, *sampled, epsilon = 1e-6);
    }
    // Slice 1, last row and last column of the window first: (1 * 5 + 3) * 6 + 5.
    assert_abs_diff_eq!(copied[0], 53.0 / 90.0, epsilon = 1e-7);
}

#[test]
fn every_place_of_the_crop_and_both_directions_are_drawn() {
    let config = AugmentationConfig {
        crop: Some(vec![4, 6]),
        flip: Flip::Horizontal,
        rotation: 15.0,
        ..AugmentationConfig::default()
    };
    let augmentation = augmentation(&config, &pictures(6, 6));
    let draws: Vec<Draw> = (0..400).map(|epoch| augmentation.draw(&|name| stream(3, name, &[epoch]))).collect();
    let begins: HashSet<_> = draws.iter().map(|draw| draw.begin.clone()).collect();
    assert_eq!(begins, HashSet::from([vec![0, 0], vec![1, 0], vec![2, 0]]));
    // 400 draws with probability 1/2: four standard deviations are 40.
    let n_mirrored = draws.iter().filter(|draw| draw.mirror_width).count();
    assert!((160..=240).contains(&n_mirrored), "{n_mirrored}");
    assert!(draws.iter().all(|draw| draw.angle.abs() <= 15.0 && !draw.mirror_height));
    let mean = draws.iter().map(|draw| draw.angle).sum::<f64>() / 400.0;
    // Standard error of the mean of 400 uniform draws from -15 to 15: 15 / sqrt(3 * 400) = 0.43.
    assert_abs_diff_eq!(mean, 0.0, epsilon = 1.8);
    assert!(draws.iter().any(|draw| draw.angle > 10.0) && draws.iter().any(|draw| draw.angle < -10.0));
}

/// The stream in the order in which it was read when there were only crop, flip and rotation: runs of then stay the same.
#[test]
fn the_numbers_of_crop_flip_and_rotation_do_not_depend_on_the_other_settings() {
    let old = AugmentationConfig {
        crop: Some(vec![3, 4]),
        flip: Flip::Both,
        rotation: 15.0,
        ..AugmentationConfig::default()
    };
    let all = AugmentationConfig {
        brightness: 0.2,
        contrast: 0.2,
        blur: Some(BlurConfig { probability: 1.0, sigma: [0.5, 1.0] }),
        elastic: Some(ElasticConfig { alpha: 3.0, sigma: 2.0 }),
        cutout: Some(CutoutConfig { holes: 2, size: 0.25 }),
        ..old.clone()
    };
    for earlier in 0..4 {
        let mut rng = stream(7, "augmentation", &[4, 1, earlier]);
        let begin = vec![offset(rng.random_range(0..=6_u64)), offset(rng.random_range(0..=5_u64))];
        let (width, height, turn): (bool, bool, f64) = (rng.random(), rng.random(), rng.random());
        for config in [&old, &all] {
            let draw = augmentation(config, &pictures(9, 9)).draw(&|name| stream(7, name, &[4, 1, earlier]));
            assert_eq!((draw.begin, draw.mirror_width, draw.mirror_height), (begin.clone(), width, height));
            assert_eq!(draw.angle.to_bits(), ((2.0 * turn - 1.0) * 15.0).to_bits());
        }
    }
}

#[test]
fn a_setting_at_zero_is_the_identity() {
    let off = AugmentationConfig {
        blur: Some(BlurConfig { probability: 0.0, sigma: [0.5, 1.0] }),
        elastic: Some(ElasticConfig { alpha: 0.0, sigma: 2.0 }),
        cutout: Some(CutoutConfig { holes: 0, size: 0.25 }),
        ..AugmentationConfig::default()
    };
    let off = augmentation(&off, &pictures(9, 9));
    assert!(off.is_identity());
    assert_eq!(Draw { begin: vec![0, 0], ..off.draw(&|name| stream(1, name, &[])) }, off.centre());
    for text in [
        "brightness = 0.1",
        "contrast = 0.1",
        "blur = { probability = 0.1, sigma = [1.0, 1.0] }",
        "elastic = { alpha = 1.0, sigma = 1.0 }",
        "cutout = { holes = 1, size = 0.1 }",
    ] {
        assert!(!augmentation(&toml::from_str(text).unwrap(), &pictures(9, 9)).is_identity(), "{text}");
    }
}

#[test]
fn flips_that_no_anatomy_survives_are_refused_unless_forced() {
    let refused = |data_set: &str, flip, force| {
        let config = AugmentationConfig { flip, force, ..AugmentationConfig::default() };
        Augmentation::new(&config, &pictures(8, 8), data_set).err().map(|error| error.to_string())
    };
    let heart = refused("mimic-cxr", Flip::Horizontal, false).unwrap();
    assert!(heart.starts_with("flip is \"horizontal\" for mimic-cxr, expected \"none\", because"), "{heart}");
    assert!(heart.contains("heart on the wrong side"), "{heart}");
    for (data_set, flip) in [("mimic-cxr", Flip::Vertical), ("adni", Flip::Both), ("areds", Flip::Vertical)] {
        assert!(refused(data_set, flip, false).unwrap().contains("because"));
        assert_eq!(refused(data_set, flip, true), None);
    }
    for (data_set, flip) in
        [("adni", Flip::Horizontal), ("areds", Flip::Horizontal), ("mimic-cxr", Flip::None), ("generic", Flip::Both)]
    {
        assert_eq!(refused(data_set, flip, false), None, "{data_set} {flip}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let message =
        |config: &AugmentationConfig| Augmentation::new(config, &pictures(8, 8), "generic").unwrap_err().to_string();
    for crop in [vec![9, 8], vec![8], vec![0, 8], vec![8, 8, 8]] {
        let refused = message(&AugmentationConfig { crop: Some(crop), ..Default::default() });
        assert!(refused.starts_with("crop is [") && refused.contains("image.size = [8, 8]"), "{refused}");
    }
    for (text, expected) in [
        ("brightness = 1.1", "brightness is 1.1, expected a number from 0 to 1"),
        ("contrast = -0.1", "contrast is -0.1, expected a number from 0 to 1"),
        (
            "blur = { probability = 2.0, sigma = [1.0, 2.0] }",
            "blur.probability is 2, expected a probability from 0 to 1",
        ),
        ("blur = { probability = 0.5, sigma = [2.0, 1.0] }", "blur.sigma is [2, 1], expected the smallest"),
        ("blur = { probability = 0.5, sigma = [0.0, 1.0] }", "blur.sigma is [0, 1], expected the smallest"),
        ("blur = { probability = 0.5, sigma = [1.0, 101.0] }", "blur.sigma is [1, 101], expected"),
        ("elastic = { alpha = -1.0, sigma = 1.0 }", "elastic.alpha is -1, expected a number of pixels"),
        ("elastic = { alpha = inf, sigma = 1.0 }", "elastic.alpha is inf, expected a number of pixels"),
        ("elastic = { alpha = 1.0, sigma = 0.0 }", "elastic.sigma is 0, expected a number of pixels"),
        ("elastic = { alpha = 1.0, sigma = nan }", "elastic.sigma is NaN, expected a number of pixels"),
        ("cutout = { holes = 17, size = 0.1 }", "cutout.holes is 17, expected a whole number from 0 to 16"),
        ("cutout = { holes = 1, size = 1.0 }", "cutout.size is 1, expected a share of the side"),
        ("cutout = { holes = 1, size = 0.0 }", "cutout.size is 0, expected a share of the side"),
    ] {
        let refused = message(&toml::from_str(text).unwrap());
        assert!(refused.starts_with(expected), "{refused}");
    }
    for rotation in [-1.0, 15.5, f64::NAN, f64::INFINITY] {
        let refused = message(&AugmentationConfig { rotation, ..Default::default() });
        assert!(refused.starts_with("rotation is "), "{refused}");
    }
}

#[test]
fn the_settings_are_read_from_a_run_file_and_the_defaults_change_nothing() {
    let text = "crop = [224, 224]\nflip = \"horizontal\"\nrotation = 15.0";
    let config: AugmentationConfig = toml::from_str(text).unwrap();
    assert_eq!((config.crop, config.flip, config.rotation), (Some(vec![224, 224]), Flip::Horizontal, 15.0));
    assert!(toml::from_str::<AugmentationConfig>("rotate = 3").is_err());
    let default: AugmentationConfig = toml::from_str("").unwrap();
    assert!(augmentation(&default, &pictures(3, 4)).is_identity());
    assert!(!augmentation(&AugmentationConfig { rotation: 1.0, ..Default::default() }, &pictures(3, 4)).is_identity());
}
