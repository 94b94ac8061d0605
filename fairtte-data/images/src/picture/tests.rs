//! Tests of the decoding of pictures as a whole: files of `tests/fixtures/pictures` (made for this crate; `index.json`
//! there holds the values that other programs read), pictures encoded here, and files with a false size in the header.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::image::{DynamicImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgba};
use serde_json::Value;

use super::*;
use crate::{ImageConfig, Pixels, prepare_image};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pictures")
}

fn index() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("index.json")).unwrap()).unwrap()
}

fn full(bytes: &[u8]) -> Result<DecodedPicture, Undecodable> {
    decode_picture_full(bytes, &Limits::default())
}

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn film(x: u32, y: u32) -> Luma<u8> {
    Luma([u8::try_from((x * 3 + y * 5) % 256).unwrap()])
}

fn mean_gray(picture: DecodedPicture) -> f64 {
    let gray = picture.into_picture().into_gray();
    gray.pixels.iter().map(|pixel| f64::from(*pixel)).sum::<f64>() / gray.pixels.len() as f64
}

/// The differences between a decoded picture and the values in `case` from another program.
fn differences(picture: &DecodedPicture, case: &Value, tolerance: f64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: &str, found: f64, allowed: f64| {
        if let Some(expected) = case[what].as_f64().filter(|expected| (expected - found).abs() > allowed) {
            wrong.push(format!("{what} {found}, expected {expected}"));
        }
    };
    differ("width", picture.width as f64, 0.0);
    differ("height", picture.height as f64, 0.0);
    differ("channels", picture.n_channels() as f64, 0.0);
    differ("orientation", picture.orientation.into(), 0.0);
    let statistics = picture.statistics();
    // Decoders round single pixels differently, and the extremes are single pixels.
    differ("min", statistics.min, 4.0 * tolerance);
    differ("max", statistics.max, 4.0 * tolerance);
    differ("mean", statistics.mean, tolerance + 1e-5);
    if case.get("mean_gray").is_some() {
        differ("mean_gray", mean_gray(picture.clone()), tolerance + 6e-4);
    }
    wrong
}

#[test]
fn every_fixture_comes_out_as_another_program_read_it_or_is_refused() {
    let (mut wrong, mut n_compared, mut n_refused) = (Vec::new(), 0, 0);
    for case in index()["cases"].as_array().unwrap() {
        let name = case["path"].as_str().unwrap();
        if cfg!(not(feature = "dicom")) && Path::new(name).extension().is_some_and(|ending| ending == "dcm") {
            continue;
        }
        match (case["must"].as_str().unwrap(), full(&std::fs::read(fixtures().join(name)).unwrap())) {
            ("decode", Ok(picture)) => {
                n_compared += 1;
                let dtype = case["dtype"].as_str().unwrap().replace(">u2", "uint16");
                if picture.format.name().to_lowercase() != case["format"].as_str().unwrap() || picture.dtype() != dtype
                {
                    wrong.push(format!("{name}: {:?} {}", picture.format, picture.dtype()));
                }
                let tolerance = case["tolerance"].as_f64().unwrap();
                wrong.extend(differences(&picture, case, tolerance).into_iter().map(|what| format!("{name}: {what}")));
                if let Some(levels) = case.get("levels").and_then(Value::as_array) {
                    let pixels = picture.into_picture().pixels;
                    for (pixel, level) in pixels.iter().zip(levels) {
                        if level.as_i64().unwrap().abs_diff((*pixel).into()) > 1 {
                            wrong.push(format!("{name}: level {pixel}, expected {level}"));
                        }
                    }
                }
            }
            ("refuse", Err(refused)) => {
                n_refused += 1;
                if !refused.detail.contains(case["says"].as_str().unwrap()) {
                    wrong.push(format!("{name}: refused with: {}", refused.detail));
                }
            }
            (must, result) => wrong.push(format!("{name}: {must}, but {:?}", result.map(|picture| picture.format))),
        }
    }
    println!("{n_compared} pictures compared, {n_refused} refused");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let expected = if cfg!(feature = "dicom") { (55, 15) } else { (36, 11) };
    assert_eq!((n_compared, n_refused), expected, "compared and refused");
}

/// The eight orientations of one picture are the same picture once upright.
#[test]
fn all_orientations_of_a_file_are_the_same_picture_upright() {
    let read = |orientation: u32| {
        let bytes = std::fs::read(fixtures().join(format!("orientation_{orientation}.jpg"))).unwrap();
        decode_picture(&bytes, &Limits::default()).unwrap()
    };
    let upright = read(1);
    for orientation in 2..=8 {
        let other = read(orientation);
        assert_eq!((other.width, other.height), (upright.width, upright.height), "{orientation}");
        let difference = other.pixels.iter().zip(&upright.pixels).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
        assert!(difference < 2 * upright.pixels.len() as u64, "{orientation}: {difference} in all");
    }
}

#[test]
fn resized_pictures_differ_from_pillow_by_a_fraction_of_a_gray_level_in_the_mean() {
    let index = index();
    for (name, case) in index["resized"].as_object().unwrap() {
        let size = vec![9, 12];
        let n_channels = usize::try_from(case["channels"].as_u64().unwrap()).unwrap();
        for (channels, key) in [(n_channels, "pixels"), (1, "gray")] {
            for exact in [true, false] {
                let config = ImageConfig { size: size.clone(), channels, exact, ..ImageConfig::default() };
                let Ok(Pixels::Picture(pixels)) = prepare_image(&fixtures().join(name), &config) else {
                    panic!("{name}")
                };
                let expected = case[key].as_array().unwrap();
                assert_eq!(pixels.len(), expected.len());
                let difference = |(pixel, expected): (&u8, &Value)| expected.as_f64().unwrap() - f64::from(*pixel);
                let sum: f64 = pixels.iter().zip(expected).map(|pair| difference(pair).abs()).sum();
                let mean = sum / pixels.len() as f64;
                println!("{name} {key} exact = {exact}: mean difference {mean:.3}");
                // Photographs differ by 0.1; here every channel of a tiny picture is rounded alike by the colour
                // conversion.
                let most = if name.ends_with("colour.jpg") { 0.6 } else { 0.3 };
                assert!(mean < most, "{name} {key} exact = {exact}: {mean}");
            }
        }
    }
}

#[test]
fn a_gray_png_keeps_every_pixel() {
    let image = ImageBuffer::from_fn(17, 13, film);
    let picture = full(&encoded(image.clone(), ImageFormat::Png)).unwrap();
    assert_eq!((picture.width, picture.height, picture.colour, picture.dtype()), (17, 13, Colour::Gray, "uint8"));
    assert_eq!(picture.into_picture().pixels, image.into_raw());
}

#[test]
fn transparency_is_kept_as_stored_and_dropped_from_the_picture() {
    let picture = full(&encoded(ImageBuffer::from_pixel(2, 1, Rgba([10_u8, 20, 30, 0])), ImageFormat::Png)).unwrap();
    assert_eq!((picture.colour, picture.statistics().min), (Colour::Rgba, 0.0));
    assert_eq!(picture.into_picture().pixels, [10, 20, 30, 10, 20, 30]);
    let picture = full(&encoded(ImageBuffer::from_pixel(2, 1, LumaA([10_u8, 7])), ImageFormat::Png)).unwrap();
    assert_eq!(picture.into_picture().pixels, [10, 10]);
}

/// A PNG file of one chunk of data with the given header, palette and rows (each with its filter byte).
fn png_file(width: u32, height: u32, depth: u8, colour_type: u8, palette: &[u8], rows: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(kind);
        sum.update(content);
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&length, kind.as_slice(), content, &sum.sum().to_be_bytes()].concat()
    };
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour_type, 0, 0, 0]].concat();
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packer, rows).unwrap();
    let mut file = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header)].concat();
    if !palette.is_empty() {
        file.extend(chunk(b"PLTE", palette));
    }
    file.extend(chunk(b"IDAT", &packer.finish().unwrap()));
    file.extend(chunk(b"IEND", &[]));
    file
}

#[test]
fn every_bit_depth_of_png_gives_its_samples() {
    let gray = |depth, row: &[u8]| full(&png_file(2, 1, depth, 0, &[], row)).unwrap();
    assert_eq!(gray(1, &[0, 0b0100_0000]).samples, Samples::U8(vec![0, 1]));
    assert_eq!(gray(2, &[0, 0b0111_0000]).samples, Samples::U8(vec![85, 255]));
    assert_eq!(gray(4, &[0, 0x3f]).samples, Samples::U8(vec![51, 255]));
    assert_eq!(gray(8, &[0, 7, 9]).samples, Samples::U8(vec![7, 9]));
    assert_eq!(gray(16, &[0, 1, 2, 3, 4]).samples, Samples::U16(vec![0x0102, 0x0304]));
    assert_eq!(gray(1, &[0, 0b0100_0000]).into_picture().pixels, [0, 255]);
    let palette = full(&png_file(2, 1, 4, 3, &[1, 2, 3, 40, 50, 60], &[0, 0x10])).unwrap();
    assert_eq!((palette.colour, palette.bit_depth), (Colour::Rgb, 4));
    assert_eq!(palette.samples, Samples::U8(vec![40, 50, 60, 1, 2, 3]));
}

#[test]
fn a_damaged_checksum_is_refused() {
    let mut bytes = png_file(2, 1, 8, 0, &[], &[0, 7, 9]);
    let data = bytes.windows(4).position(|window| window == b"IDAT").unwrap();
    bytes[data + 8] ^= 0x10;
    assert_eq!(full(&bytes).unwrap_err().fault, Fault::Unreadable);
    bytes[data + 8] ^= 0x10;
    full(&bytes).unwrap();
    // The checksum is in the four bytes before the last chunk.
    let end = bytes.windows(4).position(|window| window == b"IEND").unwrap();
    bytes[end - 5] ^= 1;
    let refused = full(&bytes).unwrap_err();
    assert_eq!(refused.fault, Fault::Unreadable);
    assert!(refused.detail.contains("a checksum of the PNG file is wrong"), "{}", refused.detail);
}

#[test]
fn what_is_no_picture_has_a_reason() {
    let reason = |bytes: &[u8]| full(bytes).unwrap_err().fault;
    assert_eq!(reason(b""), Fault::Empty);
    assert_eq!(reason(b"sample,time\na,1\n"), Fault::Unreadable);
    assert!(full(b"sample,time\n").unwrap_err().detail.contains("holds text"));
    assert_eq!(reason(&[0x80, 1, 2, 3]), Fault::Unreadable);
    assert_eq!(reason(&[0x1f, 0x8b, 8, 0]), Fault::WrongDimensions);
}

#[test]
fn a_truncated_file_is_refused_wherever_it_is_cut() {
    let image = ImageBuffer::from_fn(64, 48, film);
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Tiff] {
        let bytes = encoded(image.clone(), format);
        full(&bytes).unwrap();
        for tenth in 1..10 {
            let cut = &bytes[..bytes.len() * tenth / 10];
            assert_eq!(full(cut).unwrap_err().fault, Fault::Unreadable, "{format:?} {tenth}/10");
        }
    }
}

#[test]
fn bytes_after_the_end_of_a_jpeg_do_not_matter() {
    let mut bytes = encoded(ImageBuffer::from_fn(16, 16, film), ImageFormat::Jpeg);
    let picture = full(&bytes).unwrap();
    bytes.extend(b"appended by a scanner");
    assert_eq!(full(&bytes).unwrap(), picture);
}

/// Whether a file is refused for its size, too quickly for a gigabyte to be touched.
fn is_refused_quickly(bytes: &[u8], limits: &Limits) -> String {
    let begin = Instant::now();
    let refused = decode_picture_full(bytes, limits).unwrap_err();
    assert!(begin.elapsed().as_millis() < 200, "{} after {:?}", refused.detail, begin.elapsed());
    refused.detail
}

#[test]
fn files_of_a_few_bytes_that_announce_gigabytes_are_refused_at_once() {
    let limits = Limits::default();
    let png = png_file(65_500, 65_500, 8, 0, &[], &[0; 20]);
    assert!(is_refused_quickly(&png, &limits).contains("image.limits.max-pixels"));
    // Within the limits, but too few bytes for the pixels.
    let png = png_file(16_000, 16_000, 8, 0, &[], &[0; 20]);
    assert!(is_refused_quickly(&png, &limits).contains("cannot hold"));

    let jpeg = encoded(ImageBuffer::from_fn(16, 16, film), ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|window| window == [0xff, 0xc0]).unwrap();
    let sized = |side: u16| {
        let mut bytes = jpeg.clone();
        bytes[frame + 5..frame + 7].copy_from_slice(&side.to_be_bytes());
        bytes[frame + 7..frame + 9].copy_from_slice(&side.to_be_bytes());
        bytes
    };
    let detail = is_refused_quickly(&sized(65_535), &limits);
    assert!(detail.contains("cannot hold"), "{detail}");
    assert!(is_refused_quickly(&sized(10_000), &limits).contains("cannot hold"));
    assert!(is_refused_quickly(&jpeg, &Limits { max_pixels: 255, ..limits }).contains("image.limits.max-pixels = 255"));

    let tiff = encoded(ImageBuffer::from_fn(16, 16, film), ImageFormat::Tiff);
    let sized = |side: u32| {
        let mut bytes = tiff.clone();
        let directory = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
        for entry in (directory + 2..bytes.len() - 12).step_by(12) {
            if matches!(bytes[entry..entry + 2], [0 | 1, 1]) {
                bytes[entry + 2..entry + 4].copy_from_slice(&[4, 0]);
                bytes[entry + 8..entry + 12].copy_from_slice(&side.to_le_bytes());
            }
        }
        bytes
    };
    assert!(is_refused_quickly(&sized(u32::MAX), &limits).contains("image.limits.max-pixels"));
    assert!(is_refused_quickly(&sized(16_000), &limits).contains("cannot hold"));
}

#[cfg(feature = "dicom")]
#[test]
fn dicom_files_that_announce_more_than_they_hold_are_refused_at_once() {
    let limits = Limits::default();
    let gray = std::fs::read(fixtures().join("mono2_8_implicit.dcm")).unwrap();
    let element = |tag: [u8; 4]| gray.windows(4).position(|window| window == tag).unwrap() + 8;
    let mut large = gray.clone();
    for tag in [[0x28, 0, 0x10, 0], [0x28, 0, 0x11, 0]] {
        large[element(tag)..element(tag) + 2].copy_from_slice(&[0xff, 0xff]);
    }
    assert!(is_refused_quickly(&large, &limits).contains("image.limits.max-pixels"));
    // A length of four gigabytes, and sequences nested a hundred thousand deep.
    let mut long = gray.clone();
    let length = element([0x28, 0, 0x04, 0]) - 4;
    long[length..length + 4].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff]);
    assert!(is_refused_quickly(&long, &limits).contains("beyond the end"));
    let level = [0x08, 0, 0x18, 0x22, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0, 0xe0, 0xff, 0xff, 0xff, 0xff];
    let deep = [&gray[..element([0x28, 0, 0x02, 0]) - 8], &level.repeat(100_000)].concat();
    is_refused_quickly(&deep, &limits);
    for tenth in 1..10 {
        is_refused_quickly(&gray[..gray.len() * tenth / 10], &limits);
    }
}

#[cfg(not(feature = "dicom"))]
#[test]
fn without_the_feature_a_dicom_file_is_refused_and_the_feature_named() {
    let refused = full(&std::fs::read(fixtures().join("mono2_8_implicit.dcm")).unwrap()).unwrap_err();
    assert!(refused.detail.contains("feature `dicom`"), "{}", refused.detail);
}

/// Broken, unusual and misnamed files from the tests of other programs, with the values read by Pillow. The folder is
/// optional.
#[test]
fn the_collected_pictures_are_read_or_refused_as_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/image_cases");
    let Ok(index) = std::fs::read(folder.join("index.json")) else {
        println!("skipped: no {}", folder.display());
        return;
    };
    let cases: Vec<Value> = serde_json::from_slice(&index).unwrap();
    let (mut wrong, mut n_compared, mut n_refused) = (Vec::new(), 0, 0);
    for case in &cases {
        let name = case["path"].as_str().unwrap();
        let must = case["must"].as_str().unwrap();
        match full(&std::fs::read(folder.join(name)).unwrap()) {
            Ok(_) if must == "fail" => wrong.push(format!("{name}: read although it is damaged")),
            Err(refused) => {
                n_refused += 1;
                if matches!(must, "decode" | "decode_by_content") {
                    wrong.push(format!("{name}: refused: {}", refused.detail));
                }
            }
            Ok(picture) => {
                n_compared += usize::from(case.get("mean").is_some());
                wrong.extend(compare_to_index(picture, case).into_iter().map(|what| format!("{name}: {what}")));
            }
        }
    }
    println!("{} files: {n_compared} compared, {n_refused} refused", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pillow does not support 16-bit colours: it keeps the high byte of each sample, and shows gray with opacity as
/// colour.
fn compare_to_index(mut picture: DecodedPicture, case: &Value) -> Vec<String> {
    if case["mode"] != "I;16"
        && let Samples::U16(samples) = &picture.samples
    {
        let bytes: Vec<u8> = samples.iter().map(|sample| sample.to_be_bytes()[0]).collect();
        picture.samples = Samples::U8(if case["mode"] == "RGBA" && picture.colour == Colour::GrayAlpha {
            picture.colour = Colour::Rgba;
            bytes.chunks_exact(2).flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect()
        } else {
            bytes
        });
    }
    let is_jpeg = picture.format == PictureFormat::Jpeg;
    let mut case = case.clone();
    case["mean_gray"] = case["mean_L"].clone();
    let mut wrong = differences(&picture, &case, if is_jpeg { 1.0 } else { 1e-4 });
    let orientation = case["exif_orientation"].as_u64().unwrap_or(1);
    let format = picture.format.name();
    if u64::from(picture.orientation) != orientation || case["format"].as_str().is_some_and(|name| name != format) {
        wrong.push(format!("{:?} with orientation {}", picture.format, picture.orientation));
    }
    if let Some(size) = case.get("oriented_size").and_then(Value::as_array) {
        // The index has the stored size turned by the tag; sides as `exif_transpose` leaves them.
        let found = picture.oriented_size().map(|side| side as u64);
        if size.iter().map(Value::as_u64).ne(found.map(Some)) {
            wrong.push(format!("{found:?} upright, expected {size:?}"));
        }
    }
    wrong
}
