//! DICOM files of one frame: pictures (gray with its rescaling and window, and colour), and slices of a volume.
//!
//! The data elements are found by `elements.rs`, which follows no length beyond the file and does not recurse, so that
//! a malicious file allocates no memory; embedded JPEG streams go through this crate's own JPEG path with its limits.
//!
//! Gray is converted to 8 bits as in PS3.3 C.7.6.3, C.11.1 and C.11.2: stored value, times slope plus intercept, then
//! the first window (linear, linear exact or sigmoid); without a window the range of the picture is mapped from black
//! to white. `MONOCHROME1` is inverted at the end. The stored samples are kept unchanged.
//!
//! Not read, and refused by name: several frames, palettes, JPEG 2000, JPEG-LS, video, modality look-up tables, and
//! look-up tables of gray levels (VOI) without a window.

mod elements;
mod rle;
mod slice;
mod window;

use self::elements::{Elements, PixelData, Tag};
pub(crate) use self::slice::{Slice, slice_samples};
use self::window::Window;
use super::eight_bits::Rendering;
use super::{Colour, DecodedPicture, PictureFormat, Samples, jpeg, jpeg_markers, unreadable, unsupported};
use crate::{Limits, Undecodable};

/// The layout of the pixels according to the header.
struct Layout {
    width: usize,
    height: usize,
    n_channels: usize,
    bits_allocated: u32,
    bits_stored: u32,
    high_bit: u32,
    is_signed: bool,
    is_planar: bool,
    photometric: String,
}

/// Decodes a DICOM file.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    let inflated;
    let mut file = elements::read_meta(bytes)?;
    if file.syntax.is_deflated {
        inflated = elements::inflate(file.data_set, limits)?;
        file.data_set = &inflated;
    }
    let elements = Elements::read(file.data_set, file.syntax)?;
    let (words, layout) = stored_words(&elements, file.syntax, limits)?;
    finish(words, &layout, &elements)
}

/// The stored samples, each in a word, and their layout after unpacking; their number matches the layout.
fn stored_words(
    elements: &Elements,
    syntax: elements::Syntax,
    limits: &Limits,
) -> Result<(Vec<u16>, Layout), Undecodable> {
    let layout = Layout::read(elements)?;
    // Stored samples, their copy in the byte order of the machine, and planes of a run-length stream.
    let bytes_per_pixel = layout.n_channels as u64 * u64::from(layout.bits_allocated / 8) * 3;
    limits.admit(&[layout.width as u64, layout.height as u64], bytes_per_pixel)?;
    let (words, layout) = match (&elements.pixels, syntax.coding) {
        (None, _) => return Err(unreadable("the DICOM file has no pixel data")),
        (Some(PixelData::Native(raw)), _) => (native(raw, &layout, syntax.is_big_endian)?, layout),
        (Some(PixelData::Fragments(_)), elements::Coding::Native) => {
            return Err(unreadable(
                "the DICOM pixel data is in fragments although its transfer syntax is uncompressed",
            ));
        }
        (Some(PixelData::Fragments(fragments)), elements::Coding::RunLength) => {
            let bytes = rle::decode(&fragments.concat(), &layout)?;
            (words(&bytes, &layout, false), layout)
        }
        (Some(PixelData::Fragments(fragments)), elements::Coding::Jpeg) => {
            from_jpeg(&fragments.concat(), layout, limits)?
        }
    };
    if words.len() != layout.n_samples() {
        let (n, expected) = (words.len(), layout.n_samples());
        return Err(unreadable(format!("the DICOM file holds {n} samples, expected {expected}")));
    }
    Ok((words, layout))
}

impl Layout {
    fn read(elements: &Elements) -> Result<Self, Undecodable> {
        let number = |tag: Tag, name: &str| {
            elements.number(tag).ok_or_else(|| unreadable(format!("the DICOM file has no {name}")))
        };
        let bits_allocated = number(Tag::BITS_ALLOCATED, "Bits Allocated")?;
        let bits_stored = elements.number(Tag::BITS_STORED).unwrap_or(bits_allocated);
        let layout = Self {
            width: number(Tag::COLUMNS, "Columns")? as usize,
            height: number(Tag::ROWS, "Rows")? as usize,
            n_channels: elements.number(Tag::SAMPLES_PER_PIXEL).unwrap_or(1) as usize,
            bits_allocated,
            bits_stored,
            high_bit: elements.number(Tag::HIGH_BIT).unwrap_or(bits_stored.saturating_sub(1)),
            is_signed: elements.number(Tag::PIXEL_REPRESENTATION) == Some(1),
            is_planar: elements.number(Tag::PLANAR_CONFIGURATION) == Some(1),
            photometric: elements.text(Tag::PHOTOMETRIC).unwrap_or_else(|| "MONOCHROME2".to_owned()),
        };
        layout.check(elements)?;
        Ok(layout)
    }

    fn check(&self, elements: &Elements) -> Result<(), Undecodable> {
        let n_frames = elements.text(Tag::NUMBER_OF_FRAMES).and_then(|text| text.parse::<i64>().ok()).unwrap_or(1);
        if n_frames > 1 {
            return Err(unsupported(format!("the DICOM file has {n_frames} frames, expected one")));
        }
        let (allocated, stored, high) = (self.bits_allocated, self.bits_stored, self.high_bit);
        if !matches!(allocated, 8 | 16) {
            return Err(unsupported(format!("the DICOM file has Bits Allocated {allocated}, expected 8 or 16")));
        }
        if !(1..=allocated).contains(&stored) || high >= allocated || high + 1 < stored {
            let detail = format!(
                "the DICOM file has Bits Stored {stored} and High Bit {high}, which do not fit Bits Allocated {allocated}"
            );
            return Err(unreadable(detail));
        }
        let expected = match self.photometric.as_str() {
            "MONOCHROME1" | "MONOCHROME2" => 1,
            "RGB" | "YBR_FULL" | "YBR_FULL_422" => 3,
            other => {
                return Err(unsupported(format!(
                    "the DICOM picture is {other}, expected MONOCHROME1, MONOCHROME2, RGB or YBR_FULL"
                )));
            }
        };
        if self.n_channels != expected {
            let (n, photometric) = (self.n_channels, &self.photometric);
            return Err(unreadable(format!(
                "the number of samples per pixel of the DICOM picture is {n}, expected {expected} for {photometric}"
            )));
        }
        if expected == 3 && (allocated != 8 || self.is_signed) {
            return Err(unsupported(format!(
                "the DICOM colours have {allocated} bits, expected unsigned ones of 8 bits"
            )));
        }
        if elements.has(Tag::MODALITY_LUT_SEQUENCE) {
            return Err(unsupported("the DICOM picture needs a modality look-up table, expected a rescale slope"));
        }
        Ok(())
    }

    fn n_samples(&self) -> usize {
        self.width * self.height * self.n_channels
    }
}

/// Uncompressed samples as words.
fn native(raw: &[u8], layout: &Layout, is_big_endian: bool) -> Result<Vec<u16>, Undecodable> {
    let is_halved = layout.photometric == "YBR_FULL_422";
    let n_samples = if is_halved { layout.width * layout.height * 2 } else { layout.n_samples() };
    let n_bytes = n_samples * layout.bits_allocated as usize / 8;
    let Some(raw) = raw.get(..n_bytes) else {
        return Err(unreadable(format!(
            "the DICOM pixel data has {} bytes, expected {n_bytes}: it is truncated",
            raw.len()
        )));
    };
    let samples = words(raw, layout, is_big_endian);
    if !is_halved {
        return Ok(samples);
    }
    // Two neighbours share their chroma: Y1 Y2 Cb Cr.
    Ok(samples.chunks_exact(4).flat_map(|pair| [pair[0], pair[2], pair[3], pair[1], pair[2], pair[3]]).collect())
}

fn words(bytes: &[u8], layout: &Layout, is_big_endian: bool) -> Vec<u16> {
    if layout.bits_allocated == 8 {
        return bytes.iter().copied().map(u16::from).collect();
    }
    let word = |pair: &[u8]| {
        if is_big_endian { u16::from_be_bytes([pair[0], pair[1]]) } else { u16::from_le_bytes([pair[0], pair[1]]) }
    };
    bytes.chunks_exact(2).map(word).collect()
}

/// A JPEG stream inside of a DICOM file.
fn from_jpeg(stream: &[u8], layout: Layout, limits: &Limits) -> Result<(Vec<u16>, Layout), Undecodable> {
    if !stream.starts_with(&[0xff, 0xd8, 0xff]) {
        return Err(unreadable("the DICOM pixel data does not begin like a JPEG stream"));
    }
    let mut markers = jpeg_markers::read(stream)?;
    if (usize::from(markers.width), usize::from(markers.height)) != (layout.width, layout.height) {
        let detail = format!(
            "the JPEG stream has {} x {} pixels, the DICOM header {} x {}",
            markers.width, markers.height, layout.width, layout.height
        );
        return Err(unreadable(detail));
    }
    // The colour space of a stream that names none is that of the header, not the guess of libjpeg.
    if !markers.space_is_told && markers.space == jpeg_markers::Space::YCbCr && layout.photometric == "RGB" {
        markers.space = jpeg_markers::Space::Rgb;
    }
    jpeg::admit(&markers, limits)?;
    let pixels = jpeg::decode_pixels(stream, &markers, limits)?;
    if pixels.colour.n_channels() != layout.n_channels {
        let (found, expected) = (pixels.colour.n_channels(), layout.n_channels);
        return Err(unreadable(format!(
            "the number of channels is {found} in the JPEG stream, but {expected} in the DICOM header"
        )));
    }
    let words = match pixels.samples {
        Samples::U8(samples) => samples.into_iter().map(u16::from).collect(),
        Samples::U16(samples) => samples,
        Samples::I16(_) => return Err(unreadable("a JPEG stream has no signed samples")),
    };
    // Colours are RGB once decoded, except from a lossless stream, which keeps its input.
    let is_converted = markers.coding != jpeg_markers::Coding::Lossless;
    let photometric = if is_converted && layout.n_channels == 3 { "RGB".to_owned() } else { layout.photometric };
    Ok((words, Layout { photometric, is_planar: false, ..layout }))
}

/// Converts words to the picture: sign, order of channels, colours, window.
fn finish(words: Vec<u16>, layout: &Layout, elements: &Elements) -> Result<DecodedPicture, Undecodable> {
    let (colour, samples, rendering) = if layout.n_channels == 3 {
        let mut samples: Vec<u8> = words.into_iter().map(|word| u8::try_from(word & 0xff).unwrap_or(0)).collect();
        if layout.is_planar {
            let n = layout.width * layout.height;
            samples = (0..n).flat_map(|i| [samples[i], samples[n + i], samples[2 * n + i]]).collect();
        }
        if layout.photometric.starts_with("YBR") {
            samples.chunks_exact_mut(3).for_each(ybr_to_rgb);
        }
        (Colour::Rgb, Samples::U8(samples), Rendering::DepthInUse)
    } else {
        let samples = gray(&words, layout);
        let rendering = Window::read(elements)?.table(&samples, layout.photometric == "MONOCHROME1");
        (Colour::Gray, samples, rendering)
    };
    Ok(DecodedPicture {
        format: PictureFormat::Dicom,
        width: layout.width,
        height: layout.height,
        orientation: 1,
        // Shown as bits even if only one is stored: such files still have 8 allocated.
        bit_depth: u8::try_from(layout.bits_stored.max(2)).unwrap_or(16),
        colour,
        samples,
        rendering,
    })
}

/// The stored bits of each word, with their sign.
fn gray(words: &[u16], layout: &Layout) -> Samples {
    let shift = layout.high_bit + 1 - layout.bits_stored;
    let mask = if layout.bits_stored == 16 { u16::MAX } else { (1 << layout.bits_stored) - 1 };
    let stored = words.iter().map(|word| (word >> shift) & mask);
    if layout.is_signed {
        let unused = 16 - layout.bits_stored;
        // Shifted to the top and back: the right shift extends the sign.
        return Samples::I16(stored.map(|word| (word << unused).cast_signed() >> unused).collect());
    }
    if layout.bits_allocated == 8 {
        return Samples::U8(stored.map(|word| u8::try_from(word).unwrap_or(u8::MAX)).collect());
    }
    Samples::U16(stored.collect())
}

/// PS3.3 C.7.6.3.1.2, inverted: the full-range transform of ITU-R BT.601.
fn ybr_to_rgb(pixel: &mut [u8]) {
    let [luma, blue, red] = [pixel[0], pixel[1], pixel[2]].map(f64::from);
    let (blue, red) = (blue - 128.0, red - 128.0);
    let rgb = [luma + 1.402 * red, luma - 0.344_136 * blue - 0.714_136 * red, luma + 1.772 * blue];
    for (channel, value) in pixel.iter_mut().zip(rgb) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255")]
        let value = value.round().clamp(0.0, 255.0) as u8;
        *channel = value;
    }
}
