//! Made-up files of every version, byte order, type and compression, and malicious ones.

#[expect(clippy::needless_pass_by_value, reason = "a short test helper")]
mod cases;

use std::fs;
use std::path::Path;

use approx::assert_abs_diff_eq;

use super::make::{Made, gzip};
use super::{AffineSource, ByteOrder, Header, Version};
use crate::Fault;
use crate::{
    Inspection, Limits, NonFinite, PixelValue, Undecodable, Volume, VolumeConfig, VolumeRange, decode_volume,
    decode_volume_file, inspect_file,
};

/// Code, numpy's name, and the lowest and highest number that is tried.
const TYPES: [(i16, &str, f64, f64); 10] = [
    (2, "uint8", 0.0, 255.0),
    (256, "int8", -128.0, 127.0),
    (512, "uint16", 0.0, 65_535.0),
    (4, "int16", -32_768.0, 32_767.0),
    (768, "uint32", 0.0, 4_294_967_295.0),
    (8, "int32", -2_147_483_648.0, 2_147_483_647.0),
    (1280, "uint64", 0.0, 9_007_199_254_740_992.0),
    (1024, "int64", -9_007_199_254_740_992.0, 9_007_199_254_740_992.0),
    (16, "float32", -1.5e30, 2.5e30),
    (64, "float64", -1.5e300, 1.5e300),
];

fn value(found: &Option<PixelValue>) -> f64 {
    match found {
        Some(PixelValue::One(number)) => number.0,
        other => panic!("no single value: {other:?}"),
    }
}

fn inspected(path: &Path, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    inspect_file(path, &Limits::default(), at)
}

/// Writes `bytes` to a new file and describes it.
fn inspect_bytes(name: &str, bytes: &[u8], at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    inspected(&path, at)
}

fn refusal(bytes: &[u8]) -> String {
    let from_path = inspect_bytes("volume.nii", bytes, &[]).unwrap_err().detail;
    assert!(decode_volume(bytes).is_err(), "read although {from_path}");
    from_path
}

fn count(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

/// Writes the file or the pair, and returns the paths that must all give the same volume.
fn write(folder: &Path, made: &Made, values: &[f64], is_gzip: bool) -> Vec<std::path::PathBuf> {
    let (end, pack): (_, fn(&[u8]) -> Vec<u8>) = if is_gzip { (".gz", gzip) } else { ("", <[u8]>::to_vec) };
    let at = |name: &str| folder.join(format!("{name}{end}"));
    if made.is_pair {
        fs::write(at("scan.hdr"), pack(&made.header())).unwrap();
        fs::write(at("scan.img"), pack(&made.voxels(values))).unwrap();
        vec![at("scan.hdr"), at("scan.img")]
    } else {
        fs::write(at("scan.nii"), pack(&made.file(values))).unwrap();
        vec![at("scan.nii")]
    }
}

#[test]
fn every_type_order_version_and_packaging_gives_the_same_numbers() {
    let mut n_files = 0;
    for (code, dtype, low, high) in TYPES {
        for version in [Version::One, Version::Two] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                for (is_pair, is_gzip) in [(false, false), (false, true), (true, false), (true, true)] {
                    let folder = tempfile::tempdir().unwrap();
                    let made = Made { version, order, code, is_pair, ..Made::new(&[2, 3, 4]) };
                    let mut values = count(24);
                    (values[0], values[23]) = (low, high);
                    for path in write(folder.path(), &made, &values, is_gzip) {
                        let found = inspected(&path, &[vec![1, 2, 3], vec![1, 0, 0], vec![0, 1, 2]]).unwrap();
                        let shown = (found.format.as_str(), found.gzip, found.byte_order, found.dtype.as_str());
                        let format = if version == Version::One { "NIfTI-1" } else { "NIfTI-2" };
                        assert_eq!(shown, (format, is_gzip, Some(order), dtype));
                        assert_eq!(found.stored_size, [2, 3, 4]);
                        let (low, high) =
                            if code == 16 { (f64::from(low as f32), f64::from(high as f32)) } else { (low, high) };
                        assert_eq!((found.min, found.max), (Some(low), Some(high)));
                        assert_eq!(found.at.iter().map(|v| value(&v.stored)).collect::<Vec<_>>(), [high, 1.0, 14.0]);
                        // Without a matrix the first axis runs to the left, so it is reversed.
                        assert_eq!(found.axis_codes.as_deref(), Some("LAS"));
                        assert_eq!(value(&found.at[1].oriented), low);
                        let volume = decode_volume_file(&path, &VolumeConfig::default(), &Limits::default()).unwrap();
                        assert_eq!(volume.size, [4, 3, 2]);
                        assert_eq!((volume.voxels[1], volume.voxels[22]), (0.0, 1.0));
                        n_files += 1;
                    }
                }
            }
        }
    }
    assert_eq!(n_files, 10 * 2 * 2 * 6);
}

#[test]
fn sixty_four_bit_integers_beyond_2_to_the_53_are_rounded_and_not_wrapped() {
    let made = Made { code: 1280, ..Made::new(&[2, 2, 2]) };
    let bytes = [made.header(), u64::MAX.to_le_bytes().to_vec(), vec![0; 56]].concat();
    let found = inspect_bytes("a.nii", &bytes, &[]).unwrap();
    assert_eq!(found.max, Some(18_446_744_073_709_551_615.0));
}

#[test]
fn slope_and_intercept_are_applied_unless_the_slope_is_none() {
    for version in [Version::One, Version::Two] {
        let scaled = |scaling| {
            let made = Made { version, scaling, ..Made::new(&[2, 2, 2]) };
            inspect_bytes("a.nii", &made.file(&count(8)), &[])
        };
        let found = scaled([0.5, -1024.0]).unwrap();
        assert_eq!((found.min, found.max, found.mean), (Some(-1024.0), Some(-1020.5), Some(-1022.25)));
        assert_eq!((found.slope, found.intercept), (Some(0.5), Some(-1024.0)));
        for none in [[0.0, 7.0], [f64::NAN, 7.0], [f64::INFINITY, 7.0], [1.0, 0.0]] {
            let found = scaled(none).unwrap();
            assert_eq!((found.slope, found.max), (None, Some(7.0)), "{none:?}");
        }
        let refused = scaled([2.0, f64::NAN]).unwrap_err();
        assert!(refused.detail.contains("scl_inter is NaN"), "{}", refused.detail);
    }
}

/// All 48 ways to store the axes of a body: permuted and flipped.
#[test]
fn every_axis_order_is_brought_to_right_anterior_superior() {
    let body = [3_usize, 4, 5];
    let number = |at: [usize; 3]| (at[0] + 10 * at[1] + 100 * at[2]) as f64;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for flips in 0..8 {
            let flipped = |axis: usize| flips >> axis & 1 == 1;
            let dim = order.map(|world| body[world] as i64);
            let mut rows = [[0.0; 4]; 3];
            for (stored, world) in order.into_iter().enumerate() {
                rows[world][stored] = if flipped(stored) { -1.0 } else { 1.0 };
                rows[world][3] = if flipped(stored) { body[world] as f64 - 1.0 } else { 0.0 };
            }
            let mut values = Vec::new();
            let extent = |axis: usize| body[order[axis]];
            for z in 0..extent(2) {
                for y in 0..extent(1) {
                    for x in 0..extent(0) {
                        let mut at = [0; 3];
                        for (axis, index) in [x, y, z].into_iter().enumerate() {
                            at[order[axis]] = if flipped(axis) { extent(axis) - 1 - index } else { index };
                        }
                        values.push(number(at));
                    }
                }
            }
            let made = Made { codes: [0, 1], rows, ..Made::new(&dim) };
            let found = inspect_bytes("a.nii", &made.file(&values), &[vec![1, 3, 4], vec![2, 0, 1]]).unwrap();
            assert_eq!(found.oriented_size.as_deref(), Some(&body[..]));
            assert_eq!(value(&found.at[0].oriented), number([1, 3, 4]), "{order:?} {flips}");
            assert_eq!(value(&found.at[1].oriented), number([2, 0, 1]), "{order:?} {flips}");
            let identity = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
            assert_eq!(found.canonical_affine, Some(identity));
            let volume = decode_volume(made.file(&values).as_slice()).unwrap();
            assert_eq!(volume.size, [5, 4, 3]);
            assert_abs_diff_eq!(
                f64::from(volume.voxels[(4 * 4 + 3) * 3 + 1]),
                number([1, 3, 4]) / 432.0,
                epsilon = 1e-6
            );
        }
    }
}

#[test]
fn a_broken_matrix_gives_way_to_the_quaternion_with_a_note_or_is_refused() {
    let made = Made { codes: [1, 1], rows: [[f64::NAN; 4]; 3], ..Made::new(&[2, 2, 2]) };
    let found = inspect_bytes("a.nii", &made.file(&count(8)), &[]).unwrap();
    assert_eq!((found.affine_source, found.axis_codes.as_deref()), (Some(AffineSource::Qform), Some("RAS")));
    assert!(found.notes[0].contains("sform"), "{:?}", found.notes);
    assert!(!serde_json::to_string(&found).unwrap().contains("NaN"));
    let alone = Made { codes: [0, 1], ..made };
    assert!(refusal(&alone.file(&count(8))).contains("not invertible"));
}

#[test]
fn headers_that_cannot_be_are_refused_in_one_sentence() {
    let refused = |made: Made| refusal(&made.file(&count(8)));
    let cube = || Made::new(&[2, 2, 2]);
    for version in [Version::One, Version::Two] {
        let cube = || Made { version, ..cube() };
        assert!(refused(Made { dim: vec![2, -5, 2], ..cube() }).contains("2 x -5 x 2"));
        assert!(refused(Made { dim: vec![2, 2, 2, 0], ..cube() }).contains("2 x 2 x 2 x 0"));
        assert!(refused(Made { dim: vec![], ..cube() }).contains("dim[0] is 0"));
        assert!(refused(Made { offset: 100, ..cube() }).contains("vox_offset is 100"));
        assert!(refused(Made { offset: -1, ..cube() }).contains("vox_offset is -1"));
        assert!(refused(Made { offset: 1 << 30, ..cube() }).contains("truncated"));
        assert!(refused(Made { code: 1792, ..cube() }).contains("complex"));
        assert!(refused(Made { intent: 3001, ..cube() }).contains("CIFTI"));
        assert!(refused(Made { dim: vec![2, 2, 200], ..cube() }).contains("it is truncated"));
        assert!(refused(Made { pixdim: [1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0, 1.0], ..cube() }).contains("spacing"));
    }
    let mut nine = cube().file(&count(8));
    nine[40..42].copy_from_slice(&9_i16.to_le_bytes());
    assert!(refusal(&nine).contains("dim[0] is 9,"));
    let mut without_magic = cube().file(&count(8));
    without_magic[344..348].fill(0);
    assert!(refusal(&without_magic).contains("ANALYZE"));
    let mut as_text = Made { version: Version::Two, ..cube() }.file(&count(8));
    as_text[8..12].copy_from_slice(b"\n\x1a\n\0");
    assert!(refusal(&as_text).contains("as text"));
    assert!(refusal(b"sample,time\n").contains("holds text"));
    assert!(refusal(&gzip(b"no volume")).contains("not NIfTI"));
}

#[test]
fn sizes_of_64_bits_are_no_way_to_take_all_memory() {
    for dim in [vec![1 << 40, 1 << 40, 1 << 40], vec![i64::MAX, 2, 2], vec![1 << 20, 1 << 20, 1 << 20]] {
        let bytes = Made { version: Version::Two, ..Made::new(&dim) }.file(&count(8));
        refusal(&bytes);
        let refused = inspect_bytes("a.nii.gz", &gzip(&bytes), &[]).unwrap_err();
        assert!(refused.detail.contains("more than a"), "{}", refused.detail);
    }
    // Without the length of the file, only the limit of memory applies.
    let bytes = Made { version: Version::Two, ..Made::new(&[1 << 13, 1 << 13, 1 << 13]) }.file(&count(8));
    assert!(decode_volume(bytes.as_slice()).unwrap_err().detail.contains("image.limits.max-pixels"));
    let small = Limits { max_bytes: 47, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nii");
    fs::write(&path, Made::new(&[2, 2, 2]).file(&count(8))).unwrap();
    // 8 voxels of 2 bytes, and 4 for each in the result.
    assert!(decode_volume_file(&path, &VolumeConfig::default(), &small).unwrap_err().detail.contains("48 bytes"));
    decode_volume_file(&path, &VolumeConfig::default(), &Limits { max_bytes: 48, ..small }).unwrap();
}

#[test]
fn the_magic_text_decides_the_version_and_the_offset_where_voxels_begin() {
    let mut bytes = Made::new(&[2, 2, 2]).file(&count(8));
    bytes[..4].copy_from_slice(&540_i32.to_le_bytes());
    assert_eq!(inspect_bytes("a.nii", &bytes, &[]).unwrap().format, "NIfTI-1");
    for version in [Version::One, Version::Two] {
        let made = Made { version, offset: 600, ..Made::new(&[2, 2, 2]) };
        let mut bytes = made.header();
        bytes.resize(600, 0xff);
        bytes.extend(made.voxels(&count(8)));
        assert_eq!(inspect_bytes("a.nii", &bytes, &[]).unwrap().max, Some(7.0));
        assert_eq!(inspect_bytes("misnamed", &gzip(&bytes), &[]).unwrap().max, Some(7.0));
    }
}

#[test]
fn damage_anywhere_in_a_gzip_stream_is_noticed_and_garbage_after_it_is_noted() {
    let made = Made::new(&[5, 6, 7]);
    let bytes = made.file(&count(210));
    let packed = gzip(&bytes);
    let trailing = [packed.clone(), b"garbage".to_vec()].concat();
    let found = inspect_bytes("a.nii.gz", &trailing, &[]).unwrap();
    assert!(found.notes[0].contains("ignored"));
    decode_volume(trailing.as_slice()).unwrap();
    for at in [packed.len() - 1, packed.len() - 5, packed.len() - 8] {
        let mut damaged = packed.clone();
        damaged[at] ^= 4;
        assert!(refusal(&damaged).contains("gzip stream is damaged"));
    }
    let members: Vec<u8> = bytes.chunks(100).flat_map(gzip).collect();
    assert_eq!(inspect_bytes("a.nii.gz", &members, &[]).unwrap().max, Some(209.0));
    // A stream of zeros that continues long after the voxels.
    let bomb = gzip(&[bytes, vec![0; 1 << 22]].concat());
    let limits = Limits { max_bytes: 1 << 20, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bomb.nii.gz"), bomb).unwrap();
    let refused = inspect_file(&folder.path().join("bomb.nii.gz"), &limits, &[]).unwrap_err();
    assert!(refused.detail.contains("follow the voxels"), "{}", refused.detail);
}

#[test]
fn half_a_pair_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made { is_pair: true, ..Made::new(&[2, 2, 2]) };
    let paths = write(folder.path(), &made, &count(8), false);
    fs::rename(&paths[1], folder.path().join("scan.img.gz")).unwrap();
    assert!(inspected(&paths[0], &[]).unwrap_err().detail.contains("scan.img are not there"));
    assert!(
        inspected(&folder.path().join("scan.img.gz"), &[]).unwrap_err().detail.contains("scan.hdr.gz is not there")
    );
    fs::write(folder.path().join("single.nii"), made.header()).unwrap();
    assert!(inspected(&folder.path().join("single.nii"), &[]).unwrap_err().detail.contains("name ending in .hdr"));
    assert!(decode_volume(made.header().as_slice()).unwrap_err().detail.contains(".hdr/.img pair"));
    assert_eq!(inspected(&folder.path().join("gone.nii"), &[]).unwrap_err().fault, Fault::Missing);
    assert_eq!(inspected(folder.path(), &[]).unwrap_err().fault, Fault::Unopened);
}

#[test]
fn one_volume_of_a_series_is_taken_when_the_settings_say_which() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<f64> = count(8).into_iter().chain(count(8).into_iter().rev()).chain([5.0; 8]).collect();
    for is_gzip in [false, true] {
        let path = &write(folder.path(), &Made::new(&[2, 2, 2, 3]), &values, is_gzip)[0];
        let frame =
            |frame| decode_volume_file(path, &VolumeConfig { frame, ..VolumeConfig::default() }, &Limits::default());
        assert!(frame(None).unwrap_err().detail.contains("image.volume.frame"));
        assert!(frame(Some(3)).unwrap_err().detail.contains("frame = 3, counted from 0"));
        let (first, second) = (frame(Some(0)).unwrap(), frame(Some(1)).unwrap());
        assert_eq!(first.voxels[1], 0.0);
        assert!(first.voxels.iter().zip(&second.voxels).all(|(a, b)| (a + b - 1.0).abs() < 1e-6));
        assert_eq!(frame(Some(2)).unwrap().voxels, [0.0; 8]);
        let found = inspected(path, &[vec![0, 1, 1, 1], vec![1, 1, 1]]).unwrap();
        assert_eq!(value(&found.at[0].stored), 1.0);
        assert_eq!(value(&found.at[0].oriented), 0.0);
        assert_eq!(value(&found.at[1].stored), 7.0);
        assert_eq!(found.oriented_size.as_deref(), Some(&[2, 2, 2, 3][..]));
    }
}

#[test]
fn an_index_outside_the_volume_is_an_error_that_shows_both() {
    let bytes = Made::new(&[2, 3, 4]).file(&count(24));
    for index in [vec![2, 0, 0], vec![0, 0, 0, 1], vec![0, 3]] {
        let refused = inspect_bytes("a.nii", &bytes, &[index]).unwrap_err();
        assert!(refused.detail.contains("lies outside the image of 2 x 3 x 4"), "{}", refused.detail);
    }
    // Permuted axes: an index may be inside only one of the two.
    let rows = [[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]];
    let bytes = Made { codes: [0, 1], rows, ..Made::new(&[2, 3, 4]) }.file(&count(24));
    let found = inspect_bytes("a.nii", &bytes, &[vec![3, 0, 1]]).unwrap();
    assert_eq!((found.at[0].stored.is_none(), value(&found.at[0].oriented)), (true, 19.0));
}

fn with_settings(values: &[f64], config: VolumeConfig) -> Result<Volume, Undecodable> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nii");
    let made = Made { code: 16, codes: [1, 0], ..Made::new(&[10, 10, values.len() as i64 / 100]) };
    fs::write(&path, made.file(values)).unwrap();
    decode_volume_file(&path, &config, &Limits::default())
}

#[test]
fn percentiles_are_those_of_numpy_and_clip_what_lies_outside() {
    let mut values: Vec<f64> = (0..1000).map(|i| f64::from(i * 37 % 1000)).collect();
    values[500] = 1e9;
    let config = VolumeConfig { range: VolumeRange::Percentile, ..VolumeConfig::default() };
    let volume = with_settings(&values, config).unwrap();
    // numpy.percentile([0, .., 999 without 500, 1e9], [0.5, 99.5]): numpy 2.3 gives 4.995 and 995.005.
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let percentile = |position: f64| {
        sorted[position as usize] + (sorted[position as usize + 1] - sorted[position as usize]) * position.fract()
    };
    let (low, high) = (percentile(4.995), percentile(994.005));
    for (voxel, value) in volume.voxels.iter().zip(&values) {
        assert_abs_diff_eq!(f64::from(*voxel), ((value - low) / (high - low)).clamp(0.0, 1.0), epsilon = 1e-6);
    }
    assert_eq!(volume.voxels.iter().filter(|voxel| **voxel == 1.0).count(), 5);
}

#[test]
fn non_finite_voxels_exclude_a_volume_or_become_its_darkest() {
    let mut values = vec![5.0; 200];
    (values[0], values[1], values[2], values[3]) = (f64::NAN, f64::INFINITY, 9.0, f64::NEG_INFINITY);
    let refused = with_settings(&values, VolumeConfig::default()).unwrap_err();
    assert_eq!(
        (refused.fault, refused.detail.as_str()),
        (Fault::NonFinite, "voxels that are not finite numbers: 3 of 200")
    );
    let config = VolumeConfig { non_finite: NonFinite::Zero, ..VolumeConfig::default() };
    let volume = with_settings(&values, config).unwrap();
    assert_eq!(volume.voxels[..5], [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(with_settings(&[f64::NAN; 200], config).unwrap_err().fault, Fault::NonFinite);
}

#[test]
fn the_widest_range_of_f64_does_not_overflow() {
    let made = Made { code: 64, codes: [1, 0], ..Made::new(&[2, 2, 2]) };
    let volume = decode_volume(made.file(&[-1.7e308, 1.7e308, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).as_slice()).unwrap();
    assert_eq!(volume.voxels[..3], [0.0, 1.0, 0.5]);
}

#[test]
fn text_and_json_hold_every_fact() {
    let made = Made {
        codes: [1, 0],
        scaling: [2.0, 1.0],
        pixdim: [1.0, 2.0, 2.5, 3.0, 0.0, 0.0, 0.0, 0.0],
        ..Made::new(&[2, 2, 2])
    };
    let mut found = inspect_bytes("a.nii", &made.file(&count(8)), &[vec![1, 0, 0]]).unwrap();
    found.path = "scan.nii".into();
    let expected = "\
path              scan.nii
format            NIfTI-1, little endian
stored size       2 x 2 x 2
oriented size     2 x 2 x 2 (right, anterior, superior)
dtype             int16
channels          1
slope, intercept  2, 1
min               1
max               15
mean              8
non-finite values 0
spacing           2 x 2.5 x 3
stored axes       run to RAS
affine            [2, 0, 0, 0] [0, 2.5, 0, 0] [0, 0, 3, 0] (from qform)
affine of RAS+    [2, 0, 0, 0] [0, 2.5, 0, 0] [0, 0, 3, 0]
at 1,0,0          stored 3, RAS+ 3
";
    assert_eq!(found.to_string(), expected);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["stored-size"], serde_json::json!([2, 2, 2]));
    assert_eq!(json["at"], serde_json::json!([{"index": [1, 0, 0], "stored": 3.0, "oriented": 3.0}]));
    assert_eq!(json["byte-order"], "little");
    assert_eq!(json["affine-source"], "qform");
}

#[test]
fn any_bytes_are_a_header_or_a_refusal() {
    let bytes = Made { version: Version::Two, codes: [1, 1], ..Made::new(&[2, 2, 2]) }.header();
    for at in 0..bytes.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            let _ = Header::parse(&changed).map(|header| header.grid.n_voxels());
        }
        let _ = Header::parse(&bytes[..at]).map(|header| header.grid.space());
    }
}
