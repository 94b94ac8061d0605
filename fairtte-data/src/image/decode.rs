//! JPEG and PNG to 8-bit pixels, told apart by content and not by the name of the file.
//!
//! Transparency is dropped, EXIF orientation is applied, palettes are expanded. 16-bit pictures are brought to 8 bits by
//! the depth in use (8, 12 or 16 bits, the smallest that holds the brightest pixel): radiographs often hold 12 bits in
//! 16, and division by 65535 would make them black.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader};

use super::jpeg;
use super::prepare::{Undecodable, sniff};
use crate::Reason;

/// A decoded picture, 8 bits per channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// `[height, width, channels]`, row by row from the top left.
    pub pixels: Vec<u8>,
}

/// Memory a decoder may take for one picture; 512 MiB is four times the largest film in use (43 x 35 cm at 16 bits).
const MEMORY_LIMIT_BYTES: u64 = 512 << 20;

/// Decodes the content of a JPEG or PNG file.
///
/// # Errors
/// A reason code and a sentence: empty, not an image, truncated, of an unsupported kind, or a volume.
pub fn decode_picture(bytes: &[u8]) -> Result<Picture, Undecodable> {
    let unreadable = |detail: String| Undecodable::new(Reason::ImageUnreadable, detail);
    if bytes.is_empty() {
        return Err(Undecodable::new(Reason::ImageEmpty, "the file has no bytes"));
    }
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.map_err(|error| unreadable(error.to_string()))?;
    match reader.format() {
        Some(ImageFormat::Jpeg) if !jpeg::is_complete(bytes) => {
            return Err(unreadable(
                "the JPEG stream ends before its end-of-image marker: the file is truncated".into(),
            ));
        }
        Some(ImageFormat::Jpeg | ImageFormat::Png) => {}
        _ => return Err(not_a_picture(bytes)),
    }
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MEMORY_LIMIT_BYTES);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|error| unreadable(error.to_string()))?;
    limits.reserve(decoder.total_bytes()).map_err(|error| unreadable(error.to_string()))?;
    let orientation = decoder.orientation().map_err(|error| unreadable(error.to_string()))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| unreadable(error.to_string()))?;
    image.apply_orientation(orientation);
    let (width, height) = (image.width() as usize, image.height() as usize);
    if width == 0 || height == 0 {
        return Err(unreadable(format!("the picture has {width} x {height} pixels")));
    }
    let (channels, pixels) = eight_bits(image);
    Ok(Picture { width, height, channels, pixels })
}

fn not_a_picture(bytes: &[u8]) -> Undecodable {
    if let Some(kind) = sniff(bytes) {
        let detail = format!("the file is {kind}, expected a picture (JPEG or PNG) because image.size has two entries");
        return Undecodable::new(Reason::ImageWrongDimensions, detail);
    }
    if std::str::from_utf8(&bytes[..bytes.len().min(256)]).is_ok() {
        return Undecodable::new(Reason::ImageUnreadable, "the file holds text, expected a JPEG or PNG picture");
    }
    Undecodable::new(Reason::ImageUnreadable, "the content is neither JPEG nor PNG")
}

/// The channels (1 or 3) and the pixels at 8 bits.
fn eight_bits(image: DynamicImage) -> (usize, Vec<u8>) {
    match image {
        DynamicImage::ImageLuma8(image) => (1, image.into_raw()),
        DynamicImage::ImageRgb8(image) => (3, image.into_raw()),
        DynamicImage::ImageLumaA8(_) => (1, drop_last(image.as_bytes(), 2)),
        DynamicImage::ImageRgba8(_) => (3, drop_last(image.as_bytes(), 4)),
        DynamicImage::ImageLuma16(image) => (1, scale_16(&image.into_raw())),
        DynamicImage::ImageRgb16(image) => (3, scale_16(&image.into_raw())),
        DynamicImage::ImageLumaA16(image) => (1, scale_16(&drop_last(&image.into_raw(), 2))),
        DynamicImage::ImageRgba16(image) => (3, scale_16(&drop_last(&image.into_raw(), 4))),
        other => (3, other.into_rgb8().into_raw()),
    }
}

/// The pixels without their last channel of `n`.
fn drop_last<T: Copy>(pixels: &[T], n: usize) -> Vec<T> {
    pixels.chunks_exact(n).flat_map(|pixel| pixel[..n - 1].iter().copied()).collect()
}

fn scale_16(pixels: &[u16]) -> Vec<u8> {
    let brightest = pixels.iter().copied().max().unwrap_or(0);
    let full_scale = [0xff, 0xfff, 0xffff].into_iter().find(|full| brightest <= *full).unwrap_or(u16::MAX);
    let full_scale = u32::from(full_scale);
    let scale = |pixel: &u16| (u32::from(*pixel) * 255 + full_scale / 2) / full_scale;
    pixels.iter().map(|pixel| u8::try_from(scale(pixel)).expect("at most 255")).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};

    use super::*;

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn film(x: u32, y: u32) -> Luma<u8> {
        Luma([u8::try_from((x * 3 + y * 5) % 256).unwrap()])
    }

    #[test]
    fn a_gray_png_keeps_every_pixel() {
        let image = ImageBuffer::from_fn(17, 13, film);
        let picture = decode_picture(&encoded(image.clone(), ImageFormat::Png)).unwrap();
        assert_eq!((picture.width, picture.height, picture.channels), (17, 13, 1));
        assert_eq!(picture.pixels, image.into_raw());
    }

    #[test]
    fn transparency_is_dropped() {
        let image = ImageBuffer::from_pixel(2, 1, Rgba([10_u8, 20, 30, 0]));
        assert_eq!(decode_picture(&encoded(image, ImageFormat::Png)).unwrap().pixels, [10, 20, 30, 10, 20, 30]);
        let image = ImageBuffer::from_pixel(2, 1, LumaA([10_u8, 7]));
        assert_eq!(decode_picture(&encoded(image, ImageFormat::Png)).unwrap().pixels, [10, 10]);
    }

    #[test]
    fn sixteen_bits_are_scaled_by_the_depth_in_use() {
        for (brightest, full) in [(200_u16, 255_u16), (4000, 4095), (60_000, 65_535)] {
            let image = ImageBuffer::from_fn(2, 1, |x, _| Luma([if x == 0 { brightest } else { brightest / 2 }]));
            let pixels = decode_picture(&encoded(image, ImageFormat::Png)).unwrap().pixels;
            for (pixel, value) in pixels.iter().zip([brightest, brightest / 2]) {
                let exact = f64::from(value) / f64::from(full) * 255.0;
                assert!((f64::from(*pixel) - exact).abs() <= 0.5, "{pixel} for {value}");
            }
        }
        let image = ImageBuffer::from_pixel(1, 1, Rgb([65_535_u16, 0, 257]));
        assert_eq!(decode_picture(&encoded(image, ImageFormat::Png)).unwrap().pixels, [255, 0, 1]);
    }

    #[test]
    fn what_is_no_picture_has_a_reason() {
        let reason = |bytes: &[u8]| decode_picture(bytes).unwrap_err().reason;
        assert_eq!(reason(b""), Reason::ImageEmpty);
        assert_eq!(reason(b"sample,time\na,1\n"), Reason::ImageUnreadable);
        assert!(decode_picture(b"sample,time\n").unwrap_err().detail.contains("holds text"));
        assert_eq!(reason(&[0x80, 1, 2, 3]), Reason::ImageUnreadable);
        assert_eq!(reason(&[0x1f, 0x8b, 8, 0]), Reason::ImageWrongDimensions);
    }

    #[test]
    fn a_truncated_file_is_refused_wherever_it_is_cut() {
        let image = ImageBuffer::from_fn(64, 48, film);
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let bytes = encoded(image.clone(), format);
            decode_picture(&bytes).unwrap();
            for tenth in 1..10 {
                let cut = &bytes[..bytes.len() * tenth / 10];
                assert_eq!(decode_picture(cut).unwrap_err().reason, Reason::ImageUnreadable, "{format:?} {tenth}/10");
            }
        }
    }

    #[test]
    fn bytes_after_the_end_of_a_jpeg_do_not_matter() {
        let mut bytes = encoded(ImageBuffer::from_fn(16, 16, film), ImageFormat::Jpeg);
        let picture = decode_picture(&bytes).unwrap();
        bytes.extend(b"appended by a scanner");
        assert_eq!(decode_picture(&bytes).unwrap(), picture);
    }

    /// An EXIF segment with orientation 6 (rotate by 90 degrees clockwise) turns the picture.
    #[test]
    fn exif_orientation_is_applied() {
        let image = ImageBuffer::from_fn(32, 16, |x, _| Luma([if x < 16 { 0_u8 } else { 255 }]));
        let bytes = encoded(image, ImageFormat::Jpeg);
        let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0];
        let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
        exif.extend(entry);
        exif.extend([0; 4]);
        let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
        let segment: Vec<u8> = [0xff, 0xe1].into_iter().chain(length).chain(exif).collect();
        let turned = [&bytes[..2], &segment, &bytes[2..]].concat();
        let picture = decode_picture(&turned).unwrap();
        assert_eq!((picture.width, picture.height), (16, 32));
        assert!(picture.pixels[0] < 20 && picture.pixels[31 * 16] > 235, "the dark left side is now at the top");
    }
}
