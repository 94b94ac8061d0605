//! Damaged, misnamed and unexpected image files: each gives a reason, never a crash.

use std::path::Path;

use approx::assert_abs_diff_eq;
use fairtte_data::ImageStore;
use fairtte_data::cohort::Reason;
use fairtte_data::image::{Fault, ImageConfig, Undecodable, decode_volume, prepare_image};

use crate::make;

fn films() -> ImageConfig {
    ImageConfig { size: vec![8, 8], channels: 1, ..ImageConfig::default() }
}

fn volumes() -> ImageConfig {
    ImageConfig { size: vec![4, 4, 4], channels: 1, ..ImageConfig::default() }
}

fn failure(path: &Path, config: &ImageConfig) -> Undecodable {
    prepare_image(path, config).unwrap_err()
}

#[test]
fn bad_pictures_are_named_exclusions_and_the_good_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    make::png(&at("good.png"), 3);
    std::fs::copy(at("good.png"), at("png_named.jpg")).unwrap();
    let good = std::fs::read(at("good.png")).unwrap();
    std::fs::write(at("truncated.png"), &good[..good.len() / 2]).unwrap();
    std::fs::write(at("zero.png"), b"").unwrap();
    std::fs::write(at("text.png"), "image,subject_id\na.png,1\n").unwrap();
    make::nifti(&at("volume.png"), [3, 5, 6, 7, 1, 1, 1, 1]);
    std::fs::create_dir(at("folder.png")).unwrap();
    let names =
        ["good.png", "truncated.png", "zero.png", "text.png", "gone.png", "volume.png", "folder.png", "png_named.jpg"];
    let cohort = make::cohort(folder.path(), &names);
    let (store, exclusions) = ImageStore::open_or_build(&cohort, &films(), folder.path(), &|_, _| {}).unwrap();
    let reasons: Vec<_> = exclusions.iter().map(|e| (e.sample_id.as_str(), e.reason.code())).collect();
    assert_eq!(
        reasons,
        [
            ("truncated.png", "image_unreadable"),
            ("zero.png", "image_empty"),
            ("text.png", "image_unreadable"),
            ("gone.png", "image_missing"),
            ("volume.png", "image_wrong_dimensions"),
            ("folder.png", "image_unopened"),
        ]
    );
    assert!(
        exclusions[2].source.ends_with("text.png: the file holds text, expected a JPEG, PNG, TIFF or DICOM picture")
    );
    let rest = cohort.without(&exclusions);
    let kept: Vec<_> = rest.samples.iter().map(|s| s.sample_id.as_str()).collect();
    assert_eq!(kept, ["good.png", "png_named.jpg"]);
    let pixels = |name: &str| store.pixels(store.position(&name.into()).unwrap());
    assert_eq!(pixels("good.png"), pixels("png_named.jpg"), "the content decides, not the name");
}

#[test]
fn a_cohort_without_one_readable_image_says_why_and_leaves_no_shard() {
    let folder = tempfile::tempdir().unwrap();
    let cohort = make::cohort(folder.path(), &["gone.png", "lost.png"]);
    let cache = folder.path().join("cache");
    let message = ImageStore::open_or_build(&cohort, &films(), &cache, &|_, _| {}).unwrap_err().to_string();
    assert!(message.starts_with("no sample is left after decoding the images"), "{message}");
    assert!(message.contains("image_missing 2"), "{message}");
    // The lock stays, because another process may wait for it; a second call has the same to say.
    let stores: Vec<_> = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    let left = stores.iter().flat_map(|store| std::fs::read_dir(store).unwrap());
    assert_eq!(left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), [".lock"]);
    let again = ImageStore::open_or_build(&cohort, &films(), &cache, &|_, _| {}).unwrap_err().to_string();
    assert_eq!(again, message);
}

#[test]
fn bad_volumes_have_a_reason_and_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let check = |name: &str, reason: Reason, part: &str| {
        let failed = failure(&at(name), &volumes());
        assert_eq!(Reason::from(failed.fault), reason, "{name}: {}", failed.detail);
        assert!(failed.detail.contains(part), "{name}: {}", failed.detail);
    };
    let write = |name: &str, bytes: &[u8]| make::write_maybe_gzipped(&at(name), bytes);
    let cube = [3, 5, 6, 7, 1, 1, 1, 1];
    let voxels = || vec![7_u8; 5 * 6 * 7 * 2];

    make::nifti(&at("series.nii.gz"), [4, 5, 6, 7, 3, 1, 1, 1]);
    check("series.nii.gz", Reason::ImageWrongDimensions, "5 x 6 x 7 x 3 voxels, expected three dimensions (a series");
    make::nifti(&at("slice.nii"), [3, 5, 6, 1, 1, 1, 1, 1]);
    check("slice.nii", Reason::ImageWrongDimensions, "5 x 6 x 1 voxels, expected at least 2 along each axis");
    make::nifti(&at("plane.nii"), [2, 5, 6, 1, 1, 1, 1, 1]);
    check("plane.nii", Reason::ImageWrongDimensions, "5 x 6 voxels, expected three dimensions");
    make::png(&at("picture.nii.png"), 1);
    check("picture.nii.png", Reason::ImageWrongDimensions, "PNG picture, expected a NIfTI volume");
    write("truncated.nii", &make::nifti_bytes(cube, 4, 16, voxels()[..100].to_vec()));
    check("truncated.nii", Reason::ImageUnreadable, "100 bytes of voxels, expected 420");
    write("header.nii", &make::nifti_bytes(cube, 4, 16, vec![])[..200]);
    check("header.nii", Reason::ImageUnreadable, "200 bytes, a NIfTI-1 header alone has 348");
    write("text.nii.gz", "no volume at all".repeat(50).as_bytes());
    check("text.nii.gz", Reason::ImageUnreadable, "");
    write("zero.nii", b"");
    check("zero.nii", Reason::ImageEmpty, "no bytes");
    write("negative.nii", &make::nifti_bytes([3, -5, 6, 7, 1, 1, 1, 1], 4, 16, voxels()));
    check("negative.nii", Reason::ImageUnreadable, "-5 x 6 x 7, expected at least 1");
    write("zeroes.nii", &make::nifti_bytes([3, 0, 6, 7, 1, 1, 1, 1], 4, 16, voxels()));
    check("zeroes.nii", Reason::ImageUnreadable, "0 x 6 x 7, expected at least 1");
    write("huge.nii", &make::nifti_bytes([3, 32767, 32767, 32767, 1, 1, 1, 1], 4, 16, voxels()));
    check("huge.nii", Reason::ImageUnreadable, "it is truncated");
    write("large.nii", &make::nifti_bytes([3, 1000, 1000, 1000, 1, 1, 1, 1], 4, 16, voxels()));
    check("large.nii", Reason::ImageUnreadable, "it is truncated");
    write("colour.nii", &make::nifti_bytes(cube, 128, 24, vec![0; 630]));
    check("colour.nii", Reason::ImageUnsupported, "RGB");
    write("unknown.nii", &make::nifti_bytes(cube, 77, 16, voxels()));
    check("unknown.nii", Reason::ImageUnreadable, "datatype");
    let mut nan: Vec<u8> = (0..210).flat_map(|_| 1_f32.to_le_bytes()).collect();
    nan[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    nan[8..12].copy_from_slice(&f32::INFINITY.to_le_bytes());
    write("nan.nii", &make::nifti_bytes(cube, 16, 32, nan));
    check("nan.nii", Reason::ImageNonFinite, "voxels that are not finite numbers: 2 of 210");
    let mut bytes = make::nifti_bytes(cube, 4, 16, voxels());
    bytes[344..348].copy_from_slice(b"ni1\0");
    write("pair.hdr", &bytes);
    check("pair.hdr", Reason::ImageUnreadable, "whose voxels pair.img are not there");
}

#[test]
fn a_flipped_bit_in_a_gzip_stream_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume.nii.gz");
    make::nifti(&path, [3, 9, 9, 9, 1, 1, 1, 1]);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 0x40;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(failure(&path, &volumes()).fault, Fault::Unreadable);
}

#[test]
fn any_prefix_of_a_volume_is_refused_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume.nii.gz");
    make::nifti(&path, [3, 5, 6, 7, 1, 1, 1, 1]);
    let bytes = std::fs::read(&path).unwrap();
    for n in 0..bytes.len() {
        assert!(decode_volume(&bytes[..n]).is_err(), "{n} of {} bytes", bytes.len());
    }
    decode_volume(bytes.as_slice()).unwrap();
}

#[test]
fn a_fourth_dimension_of_one_is_no_series() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume.nii");
    make::nifti(&path, [5, 5, 6, 7, 1, 1, 1, 1]);
    let volume = decode_volume(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(volume.size, [7, 6, 5]);
    // Voxel (x, y, z) holds x + 5 y + 30 z of at most 209, and the axes run to right, anterior, superior.
    assert_abs_diff_eq!(volume.voxels[(2 * 6 + 3) * 5 + 4], (4.0 + 15.0 + 60.0) / 209.0, epsilon = 1e-6);
}

#[test]
fn slope_intercept_and_flips_of_the_header_are_applied() {
    let mut bytes = make::nifti_bytes([3, 2, 2, 2, 1, 1, 1, 1], 2, 8, vec![10, 20, 30, 40, 50, 60, 70, 90]);
    bytes[112..116].copy_from_slice(&(-2_f32).to_le_bytes()); // slope
    bytes[116..120].copy_from_slice(&5_f32.to_le_bytes()); // intercept
    bytes[254..256].copy_from_slice(&1_i16.to_le_bytes()); // sform: x runs to the left
    for (axis, edge) in [-1_f32, 1.0, 1.0].into_iter().enumerate() {
        bytes[280 + 20 * axis..284 + 20 * axis].copy_from_slice(&edge.to_le_bytes());
    }
    let volume = decode_volume(bytes.as_slice()).unwrap();
    // A negative slope inverts the intensities: (90 - v) / 80, and each pair along x is swapped.
    let expected = [20.0, 10.0, 40.0, 30.0, 60.0, 50.0, 90.0, 70.0].map(|v: f32| (90.0 - v) / 80.0);
    for (found, expected) in volume.voxels.iter().zip(expected) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
    }
}

#[test]
fn a_constant_volume_is_zero_and_not_nan() {
    let bytes = make::nifti_bytes([3, 2, 2, 2, 1, 1, 1, 1], 2, 8, vec![9; 8]);
    assert_eq!(decode_volume(bytes.as_slice()).unwrap().voxels, [0.0; 8]);
}
