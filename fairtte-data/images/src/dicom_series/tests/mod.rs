mod make;

use std::path::Path;

use proptest::prelude::*;

use self::make::{Series, Syntax, voxel};
use crate::{
    AffineSource, Fault, ImageConfig, Inspection, Limits, Pixels, Undecodable, VolumeConfig, decode_volume_file,
    inspect_file, prepare_image,
};

fn inspect(folder: &Path, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    inspect_file(folder, &Limits::default(), at)
}

fn refused(folder: &Path) -> Undecodable {
    let refused = inspect(folder, &[]).unwrap_err();
    let same = decode_volume_file(folder, &VolumeConfig::default(), &Limits::default()).unwrap_err();
    assert_eq!(refused, same, "ingestion gives the same error");
    refused
}

/// The error for a valid series after `change`.
fn sentence(change: impl FnOnce(&mut Series)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut series = Series::new();
    change(&mut series);
    series.write(folder.path());
    refused(folder.path()).detail
}

#[test]
fn slices_become_one_volume_whatever_their_names_say() {
    let folder = tempfile::tempdir().unwrap();
    let series = Series::new();
    series.write(folder.path());
    let all: Vec<Vec<usize>> =
        (0..3).flat_map(|z| (0..4).flat_map(move |y| (0..5).map(move |x| vec![x, y, z]))).collect();
    let found = inspect(folder.path(), &all).unwrap();
    assert_eq!((found.format.as_str(), found.n_slices, found.dtype.as_str()), ("dicom-series", Some(3), "int16"));
    assert_eq!(found.stored_size, [5, 4, 3]);
    assert_eq!((found.slope, found.intercept), (Some(2.0), Some(-7.0)));
    // Columns run to the left and rows to the back, as in DICOM: in RAS+ both are reversed.
    assert_eq!(found.axis_codes.as_deref(), Some("LPS"));
    assert_eq!(found.affine_source, Some(AffineSource::Slices));
    let affine = [[-0.5, 0.0, 0.0, 10.0], [0.0, -0.75, 0.0, -20.0], [0.0, 0.0, 2.0, 30.0], [0.0, 0.0, 0.0, 1.0]];
    assert_eq!(found.affine, Some(affine));
    for (value, index) in found.at.iter().zip(&all) {
        let expected = 2.0 * f64::from(voxel(index[0], index[1], index[2])) - 7.0;
        assert_eq!(value.stored.as_ref().unwrap().to_string(), expected.to_string(), "{index:?}");
        let turned = 2.0 * f64::from(voxel(4 - index[0], 3 - index[1], index[2])) - 7.0;
        assert_eq!(value.oriented.as_ref().unwrap().to_string(), turned.to_string(), "{index:?}");
    }
    let volume = decode_volume_file(folder.path(), &VolumeConfig::default(), &Limits::default()).unwrap();
    assert_eq!(volume.size, [3, 4, 5]);
    let (lowest, highest) = (found.min.unwrap(), found.max.unwrap());
    let first = 2.0 * f64::from(voxel(4, 3, 0)) - 7.0;
    assert!((f64::from(volume.voxels[0]) - (first - lowest) / (highest - lowest)).abs() < 1e-6);
}

#[test]
fn every_way_of_packing_gives_the_same_volume() {
    let volume = |change: &dyn Fn(&mut Series)| {
        let folder = tempfile::tempdir().unwrap();
        let mut series = Series::new();
        change(&mut series);
        series.write(folder.path());
        decode_volume_file(folder.path(), &VolumeConfig::default(), &Limits::default()).unwrap()
    };
    let plain = volume(&|_| {});
    for syntax in [Syntax::Implicit, Syntax::BigEndian, Syntax::RunLength, Syntax::Deflated] {
        assert_eq!(volume(&|series| series.syntax = syntax), plain, "{syntax:?}");
    }
    assert_eq!(volume(&|series| series.ending = ""), plain, "names without endings");
    assert_eq!(volume(&|series| series.slices.reverse()), plain, "names in the other order");
    // Headers of private elements may be longer than what is read at first.
    assert_eq!(volume(&|series| series.n_private_bytes = 100_000), plain, "a long header");
    // It says how values are shown, not what they are.
    assert_eq!(volume(&|series| series.each(|slice| slice.is_inverted = true)), plain, "MONOCHROME1 in all slices");
    // Rounded as scanners do, within 0.01 mm.
    assert_eq!(volume(&|series| series.slices[1].position[2] += 0.009), plain, "rounded positions");
}

#[test]
fn slope_and_intercept_of_each_slice_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut series = Series::new();
    series.slices[1].scaling = [0.25, 3.0];
    series.write(folder.path());
    let found = inspect(folder.path(), &[vec![2, 1, 1], vec![2, 1, 2]]).unwrap();
    assert_eq!((found.dtype.as_str(), found.slope), ("float64", None));
    assert!(found.notes[0].contains("change from slice to slice"), "{:?}", found.notes);
    let expected = [0.25 * f64::from(voxel(2, 1, 1)) + 3.0, 2.0 * f64::from(voxel(2, 1, 2)) - 7.0];
    for (value, expected) in found.at.iter().zip(expected) {
        assert_eq!(value.stored.as_ref().unwrap().to_string(), expected.to_string());
    }
}

#[test]
fn what_is_no_series_is_refused_with_the_slices_that_show_it() {
    for (said, part) in [
        (sentence(|s| s.slices[1].series = "1.2.4"), "differ in series (SeriesInstanceUID)"),
        (sentence(|s| s.slices[1].columns = 6), "differ in size"),
        (sentence(|s| s.slices[2].orientation = vec![0.0, 1.0, 0.0, 0.0, 0.0, -1.0]), "differ in orientation"),
        (sentence(|s| s.slices[2].pixel_spacing = vec![0.75, 0.6]), "differ in pixel spacing"),
        (sentence(|s| s.slices[2].is_signed = false), "differ in number type"),
        (sentence(|s| s.slices[2].is_inverted = true), "differ in photometric interpretation"),
        (sentence(|s| s.slices[2].position[2] = 32.0), "lie at the same place"),
        (sentence(|s| s.slices[2].position[0] += 0.5), "mm off the line"),
        (sentence(|s| s.slices[2].position = vec![f64::NAN; 3]), "Image Position (Patient) is `NaN`"),
        (sentence(|s| s.slices[0].position = vec![]), "slices without Image Position (Patient): 1 of 3"),
        (sentence(|s| s.slices.truncate(1)), "holds 1 DICOM slice, expected 2 or more"),
        (sentence(|s| s.slices.clear()), "holds no DICOM slices"),
        (sentence(|s| s.each(|slice| slice.n_frames = 3)), "3 frames (enhanced or multi-frame)"),
        (sentence(|s| s.slices[1].image_type = r"ORIGINAL\PRIMARY\M\MOSAIC"), "Siemens mosaic"),
        (sentence(|s| s.slices[1].image_type = r"ORIGINAL\PRIMARY\LOCALIZER"), "a localiser"),
        (sentence(|s| s.slices[1].scaling = [0.0, 0.0]), "Rescale Slope is 0"),
        (sentence(|s| s.each(|slice| slice.pixel_spacing = vec![0.0, 1.0])), "Pixel Spacing is 0 mm"),
        (sentence(|s| s.each(|slice| slice.orientation = vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0])), "two perpendicular"),
        (sentence(|s| s.each(|slice| slice.orientation = vec![])), "has no Image Orientation (Patient)"),
        (sentence(|s| s.each(|slice| slice.pixel_spacing = vec![])), "has no Pixel Spacing"),
        (sentence(|s| s.slices[1].n_missing_bytes = 3), "expected 40: it is truncated"),
    ] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn a_missing_slice_is_named_by_its_neighbours() {
    let change = |gap: f64| {
        sentence(|series| {
            series.slices.push(series.slices[2].clone());
            series.slices[3].position[2] = 34.0 + gap;
        })
    };
    assert_eq!(
        change(4.0),
        "a slice is missing: IM898.dcm and IM897.dcm are 4.000 mm apart, expected 2.000 mm as most neighbours"
    );
    assert!(change(2.03).starts_with("the slices are unevenly spaced"), "{}", change(2.03));
}

#[test]
fn slices_without_positions_are_refused_because_their_direction_is_unknown() {
    let all = sentence(|series| series.each(|slice| slice.position.clear()));
    assert_eq!(all, "slices without Image Position (Patient): 3 of 3; the direction of the stack is unknown");
}

#[test]
fn a_leaning_stack_keeps_its_shear_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut series = Series::new();
    for (slice, lean) in series.slices.iter_mut().zip([0.0, 0.5, 1.0]) {
        slice.position[1] += lean;
    }
    series.write(folder.path());
    let found = inspect(folder.path(), &[]).unwrap();
    assert_eq!(found.affine.unwrap()[1], [0.0, -0.75, -0.5, -20.0]);
    assert!(found.notes[0].contains("shifted by 0.500 mm in their plane"), "{:?}", found.notes);
}

#[test]
fn what_else_lies_in_the_folder_is_passed_over_or_named() {
    let folder = tempfile::tempdir().unwrap();
    Series::new().write(folder.path());
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    for name in ["notes.txt", "series.xml", "._IM900.dcm", "DICOMDIR", "README"] {
        put(name, b"no slice");
    }
    std::fs::create_dir(folder.path().join("more.dcm")).unwrap();
    assert!(inspect(folder.path(), &[]).is_ok());
    put("IM001.dcm", b"no slice");
    assert_eq!(refused(folder.path()).detail, "IM001.dcm: the content is not DICOM");
    put("IM001.dcm", b"");
    assert_eq!(refused(folder.path()).fault, Fault::Empty);
}

#[cfg(unix)]
#[test]
fn links_to_slices_are_followed_and_no_link_leads_in_circles() {
    use std::os::unix::fs::symlink;

    let (folder, links) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Series::new().write(folder.path());
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), links.path().join(entry.file_name())).unwrap();
    }
    symlink(links.path(), links.path().join("loop.dcm")).unwrap();
    assert_eq!(inspect(links.path(), &[]).unwrap().n_slices, Some(3));
    symlink(links.path().join("nothing"), links.path().join("z.dcm")).unwrap();
    let refused = refused(links.path());
    assert_eq!((refused.fault, refused.detail.as_str()), (Fault::Missing, "z.dcm: there is no such file"));
}

#[test]
fn limits_count_the_whole_series_and_many_files_are_no_series() {
    let folder = tempfile::tempdir().unwrap();
    Series::new().write(folder.path());
    let with = |limits| inspect_file(folder.path(), &limits, &[]).map(|found| found.stored_size);
    // 2 bytes stored and 4 decoded for each of 60 voxels.
    let exact = Limits { max_pixels: 60, max_bytes: 1 << 20 };
    assert_eq!(with(exact), Ok(vec![5, 4, 3]));
    let said = with(Limits { max_pixels: 59, ..exact }).unwrap_err().detail;
    assert!(said.contains("5 x 4 x 3 pixels, more than image.limits.max-pixels = 59"), "{said}");
    let said = with(Limits { max_bytes: 359, ..exact }).unwrap_err().detail;
    assert!(said.contains("more than image.limits.max-bytes = 359"), "{said}");
    for i in 0..10_001 {
        std::fs::write(folder.path().join(format!("{i}.dcm")), "").unwrap();
    }
    assert!(refused(folder.path()).detail.contains("10004 DICOM files, expected one series of at most 10000"));
}

#[test]
fn a_folder_is_prepared_as_a_volume_and_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    Series::new().write(folder.path());
    let config = ImageConfig { size: vec![3, 4, 5], ..ImageConfig::default() };
    let Ok(Pixels::Volume(voxels)) = prepare_image(folder.path(), &config) else { panic!("a volume is expected") };
    assert_eq!((voxels.len(), *voxels.iter().min().unwrap(), *voxels.iter().max().unwrap()), (60, 0, 65_535));
    let refused = prepare_image(folder.path(), &ImageConfig::default()).unwrap_err();
    assert_eq!(refused.detail, "the path is a folder, expected a picture because image.size has two entries");
}

proptest! {
    /// Cut off or changed anywhere, a slice is read or refused, never a panic; what is read has the size of the header.
    #[test]
    fn damaged_slices_never_stop_the_program(at in 0_usize..900, byte: u8, cut: bool) {
        let folder = tempfile::tempdir().unwrap();
        Series::new().write(folder.path());
        let path = folder.path().join("IM899.dcm");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        std::fs::write(&path, bytes).unwrap();
        match super::read(folder.path(), &Limits::default()) {
            Ok(series) => prop_assert_eq!(series.stored.len(), series.grid.shape.iter().product::<usize>() * series.grid.voxel_type.n_bytes()),
            Err(refused) => prop_assert!(!refused.detail.is_empty()),
        }
    }
}

/// The made-up series of the recorded values: oblique, rows and columns of different spacing, run-length encoded.
fn oblique() -> Series {
    let mut series = Series::new();
    series.syntax = Syntax::RunLength;
    let normal = [0.28, -0.576, 0.768];
    for (z, slice) in series.slices.iter_mut().enumerate() {
        slice.orientation = vec![0.96, 0.168, -0.224, 0.0, 0.8, 0.6];
        slice.position = normal.iter().zip([-31.5, 12.25, 7.0]).map(|(n, at)| at + 1.5 * z as f64 * n).collect();
        slice.scaling = [0.5, 3.25];
    }
    series
}

/// Recorded from the files that these series write: geometry and voxels by `SimpleITK` 2.5.7
/// (`ImageSeriesReader().SetFileNames(GetGDCMSeriesFileNames(folder))`, its run lengths unpacked by pydicom 3.0.2
/// before), brought to RAS+ by `nibabel.as_closest_canonical`, nibabel 5.4.2.
#[test]
fn series_lie_where_simpleitk_and_nibabel_put_them() {
    let mut sagittal = Series::new();
    sagittal.syntax = Syntax::BigEndian;
    for (z, slice) in sagittal.slices.iter_mut().enumerate() {
        slice.orientation = vec![0.0, 1.0, 0.0, 0.0, 0.0, -1.0];
        slice.position = vec![40.0 - 1.25 * z as f64, -80.0, 60.0];
    }
    let last = [0.0, 0.0, 0.0, 1.0];
    let recorded = [
        (
            oblique(),
            "LPS",
            [[0.48, 0.0, -0.42, 29.58], [0.084, 0.6, 0.864, -14.386], [0.112, -0.45, 1.152, 7.902], last],
            [([0, 0, 0], 3503.75), ([1, 2, 0], 1379.25), ([2, 0, 1], 1251.25), ([1, 1, 2], -1624.25)],
        ),
        (
            sagittal,
            "PIR",
            [[1.25, 0.0, 0.0, -40.0], [0.0, 0.5, 0.0, 78.0], [0.0, 0.0, 0.75, 57.75], last],
            [([0, 0, 0], 13_995.0), ([1, 2, 0], 4985.0), ([2, 0, 1], -6015.0), ([1, 1, 2], -2509.0)],
        ),
    ];
    for (series, codes, matrix, values) in recorded {
        let folder = tempfile::tempdir().unwrap();
        series.write(folder.path());
        let at: Vec<Vec<usize>> = values.iter().map(|(index, _)| index.to_vec()).collect();
        let found = inspect(folder.path(), &at).unwrap();
        assert_eq!(found.axis_codes.as_deref(), Some(codes));
        let canonical = found.canonical_affine.unwrap();
        for (entry, expected) in canonical.as_flattened().iter().zip(matrix.as_flattened()) {
            assert!((entry - expected).abs() < 1e-9, "{canonical:?}");
        }
        for (value, (index, expected)) in found.at.iter().zip(values) {
            assert_eq!(value.oriented.as_ref().unwrap().to_string(), expected.to_string(), "{codes} {index:?}");
        }
    }
}
