//! Intensities of a model as pictures: the scaling undone, slices of volumes, PNG in a `data:` address; and their ranges.

use fairtte_data::loader::{HostBatch, Intensity};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use crate::CliError;
use crate::report::samples::{Numbers, Plane};

/// Side in pixels of the page up to which a small picture is magnified.
const MAGNIFIED: usize = 144;

/// Smallest and largest of some numbers, and their mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Range {
    n: usize,
    sum: f64,
    min: f64,
    max: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self { n: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };
        values.fold(none, |range, value| Self {
            n: range.n + 1,
            sum: range.sum + value,
            min: range.min.min(value),
            max: range.max.max(value),
        })
    }

    fn add(&mut self, other: &Self) {
        *self = Self {
            n: self.n + other.n,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        };
    }

    pub(super) fn numbers(&self) -> Numbers {
        Numbers { min: self.min, mean: self.sum / self.n.max(1) as f64, max: self.max }
    }
}

/// The values of some pictures as they enter the model, and with the scaling undone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranges {
    pub(super) n_pictures: usize,
    pub(super) model: Range,
    /// 0 = black, 1 = white; `None` where every picture has a scale of its own.
    pub(super) unit: Option<Range>,
}

impl Ranges {
    pub(super) fn add(&mut self, other: &Self) {
        self.n_pictures += other.n_pictures;
        self.model.add(&other.model);
        if let (Some(unit), Some(other)) = (&mut self.unit, &other.unit) {
            unit.add(other);
        }
    }
}

/// How intensities of a model become shades.
pub(crate) struct Display {
    intensity: Intensity,
    /// Side up to which a small picture is magnified.
    side: usize,
}

impl Display {
    pub(crate) fn new(intensity: &Intensity) -> Self {
        Self { intensity: intensity.clone(), side: MAGNIFIED }
    }

    /// The same with another side, in pixels of the page, up to which a small picture is magnified.
    pub(crate) fn magnified(self, side: usize) -> Self {
        Self { side, ..self }
    }

    /// What is black and what is white.
    pub(crate) fn words(&self) -> &'static str {
        if self.intensity.per_image {
            "Every picture is scaled by its own mean and standard deviation, so that its original scale is lost: black is the \
             smallest and white the largest value of the sample without augmentation."
        } else {
            "The scaling of the intensities is undone in the pictures: black is intensity 0 and white is 1, the range of the \
             stored images; what lies beyond is cut."
        }
    }

    /// The ranges of a batch of one sample.
    pub(crate) fn ranges(&self, batch: &HostBatch) -> Ranges {
        let n = n_per_channel(batch);
        let unit = |(at, value): (usize, &f32)| self.undone(at / n, f64::from(*value));
        Ranges {
            n_pictures: 1,
            model: Range::of(batch.pixels.iter().copied().map(f64::from)),
            unit: (!self.intensity.per_image).then(|| Range::of(batch.pixels.iter().enumerate().map(unit))),
        }
    }

    /// The intensity in \[0, 1\] of a value of a channel.
    fn undone(&self, channel: usize, value: f64) -> f64 {
        value.mul_add(self.intensity.standard_deviation[channel], self.intensity.mean[channel])
    }

    /// The shade of a value; `own` are the ranges of the sample without augmentation.
    fn shade(&self, channel: usize, value: f32, own: &Ranges) -> u8 {
        let value = f64::from(value);
        let unit = if self.intensity.per_image {
            let (min, max) = (own.model.min, own.model.max);
            // A constant picture is neither black nor white.
            if max > min { (value - min) / (max - min) } else { 0.5 }
        } else {
            self.undone(channel, value)
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number in [0, 255]")]
        let shade = (unit * 255.0).round().clamp(0.0, 255.0) as u8;
        shade
    }

    /// The picture of a batch of one sample, or the three middle slices of a volume.
    ///
    /// # Errors
    /// [`CliError::Bug`] if a picture cannot be encoded.
    pub(crate) fn planes(&self, batch: &HostBatch, own: &Ranges) -> Result<Vec<Plane>, CliError> {
        middle(&batch.shape)?.iter().map(|section| self.plane(batch, own, section)).collect()
    }

    /// One section of a batch of one sample.
    ///
    /// # Errors
    /// [`CliError::Bug`] if it cannot be encoded.
    pub(crate) fn plane(&self, batch: &HostBatch, own: &Ranges, section: &Section) -> Result<Plane, CliError> {
        let channels = shown_channels(&batch.shape);
        let shades = section.places.iter().flat_map(|place| (0..channels).map(move |channel| (channel, *place)));
        let shades: Vec<u8> = shades.map(|(channel, place)| self.shade_at(batch, own, channel, place)).collect();
        encoded(section, self.magnification(&batch.shape), &shades)
    }

    /// One section, tinted: `tint` gives for a place of the section the colour and its share, 0 to 1.
    ///
    /// # Errors
    /// [`CliError::Bug`] if it cannot be encoded.
    pub(crate) fn tinted(
        &self,
        batch: &HostBatch,
        own: &Ranges,
        section: &Section,
        tint: impl Fn(usize) -> ([u8; 3], f64),
    ) -> Result<Plane, CliError> {
        let channels = shown_channels(&batch.shape);
        let pixel = |place: &usize| {
            let (colour, share) = tint(*place);
            [0, 1, 2].map(|k| {
                let plain = f64::from(self.shade_at(batch, own, k.min(channels - 1), *place));
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
                let mixed = (plain + share.clamp(0.0, 1.0) * (f64::from(colour[k]) - plain)).round() as u8;
                mixed
            })
        };
        let shades: Vec<u8> = section.places.iter().flat_map(pixel).collect();
        encoded(section, self.magnification(&batch.shape), &shades)
    }

    /// A whole number, so that pixels can be counted, and the same for all slices of a volume.
    fn magnification(&self, shape: &[usize]) -> usize {
        (self.side / shape.iter().skip(2).copied().max().unwrap_or(1).max(1)).max(1)
    }

    fn shade_at(&self, batch: &HostBatch, own: &Ranges, channel: usize, place: usize) -> u8 {
        self.shade(channel, batch.pixels[channel * n_per_channel(batch) + place], own)
    }
}

/// A picture, or a slice of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    rows: usize,
    columns: usize,
    /// Indices in a channel, row by row from above.
    pub(crate) places: Vec<usize>,
}

/// The whole picture of a batch of this shape, or the three middle slices of a volume: anterior and superior up, the left of
/// the subject on the left.
///
/// # Errors
/// [`CliError::Bug`] for a shape that is neither.
pub(crate) fn middle(shape: &[usize]) -> Result<Vec<Section>, CliError> {
    match *shape {
        [_, _, height, width] => {
            Ok(vec![Section { name: "", rows: height, columns: width, places: (0..height * width).collect() }])
        }
        [_, _, depth, height, width] => Ok(vec![
            axial("axial", [depth, height, width], depth / 2),
            slice("coronal", [depth, width], |d, w| (d * height + height / 2) * width + w),
            slice("sagittal", [depth, height], |d, h| (d * height + h) * width + width / 2),
        ]),
        _ => Err(CliError::Bug(format!("a batch of shape {shape:?} has no pictures"))),
    }
}

/// Slice `d` of a volume, from above.
pub(crate) fn axial(name: &'static str, [_, height, width]: [usize; 3], d: usize) -> Section {
    slice(name, [height, width], |h, w| (d * height + h) * width + w)
}

/// A slice whose first row is at the bottom.
fn slice(name: &'static str, [rows, columns]: [usize; 2], place: impl Fn(usize, usize) -> usize) -> Section {
    let upwards = (0..rows).rev().flat_map(|row| (0..columns).map(move |column| (row, column)));
    Section { name, rows, columns, places: upwards.map(|(row, column)| place(row, column)).collect() }
}

/// Red, green and blue of a picture; anything else is shown by its first channel, and all channels of a volume are equal.
fn shown_channels(shape: &[usize]) -> usize {
    if matches!(shape, [_, 3, _, _]) { 3 } else { 1 }
}

fn n_per_channel(batch: &HostBatch) -> usize {
    batch.shape.iter().skip(2).product::<usize>().max(1)
}

/// A section in shades of grey (one number per pixel) or colour (three), `scale` times as large on the page.
fn encoded(section: &Section, scale: usize, shades: &[u8]) -> Result<Plane, CliError> {
    let Section { name, rows: height, columns: width, .. } = *section;
    let failed = |error: String| CliError::Bug(format!("a picture of {height} x {width} cannot be encoded: {error}"));
    let side = |side: usize| u32::try_from(side).map_err(|error| failed(error.to_string()));
    let colour = if shades.len() == height * width { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut png = Vec::new();
    let encoder = PngEncoder::new(&mut png);
    encoder.write_image(shades, side(width)?, side(height)?, colour).map_err(|error| failed(error.to_string()))?;
    let uri = format!("data:image/png;base64,{}", base64(&png));
    Ok(Plane { name, height: height * scale, width: width * scale, uri })
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            // Of one byte the first two letters are known, of two the first three.
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        let known =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (text, expected) in known {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    fn batch(shape: &[usize], pixels: Vec<f32>) -> HostBatch {
        HostBatch {
            rows: vec![0],
            sample_ids: vec!["a".into()],
            pixels,
            stored: None,
            shape: shape.to_vec(),
            time: vec![1.0],
            event: vec![true],
            competing: vec![0],
            groups: vec![None],
            masks: None,
        }
    }

    fn decoded(plane: &Plane) -> image::DynamicImage {
        let text = plane.uri.strip_prefix("data:image/png;base64,").unwrap();
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let six = |letter| format!("{:06b}", letters.find(letter).unwrap());
        let bits = text.trim_end_matches('=').chars().map(six).collect::<Vec<_>>().concat();
        let whole = bits.len() / 8 * 8;
        let bytes = (0..whole).step_by(8).map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap());
        image::load_from_memory(&bytes.collect::<Vec<u8>>()).unwrap()
    }

    #[test]
    fn the_scaling_is_undone_by_channel() {
        // Intensities 0.2 and 0.6, 0.5 and 0.5, 1.2 (cut) and -0.2 (cut) of red, green and blue.
        let display = Display::new(&Intensity::of(vec![0.2, 0.5, 0.2], vec![0.4, 0.1, 0.5]));
        let batch = batch(&[1, 3, 1, 2], vec![0.0, 1.0, 0.0, 0.0, 2.0, -0.8]);
        let ranges = display.ranges(&batch);
        let planes = display.planes(&batch, &ranges).unwrap();
        assert_eq!((planes.len(), planes[0].name, planes[0].height, planes[0].width), (1, "", 72, 144));
        assert_eq!(decoded(&planes[0]).to_rgb8().into_raw(), [51, 128, 255, 153, 128, 0]);
        let (model, unit) = (ranges.model.numbers(), ranges.unit.unwrap().numbers());
        assert!((model.min + 0.8).abs() < 1e-6 && (model.max - 2.0).abs() < 1e-6, "{model:?}");
        assert!((model.mean - 2.2 / 6.0).abs() < 1e-6, "{model:?}");
        assert!((unit.min + 0.2).abs() < 1e-6 && (unit.max - 1.2).abs() < 1e-6, "{unit:?}");
        assert!((unit.mean - 2.8 / 6.0).abs() < 1e-6, "{unit:?}");
    }

    #[test]
    fn a_picture_with_a_scale_of_its_own_is_shown_by_the_range_of_its_sample() {
        let intensity = Intensity { per_image: true, ..Intensity::none(1) };
        let display = Display::new(&intensity);
        let plain = batch(&[1, 1, 1, 3], vec![-1.0, 0.0, 3.0]);
        let own = display.ranges(&plain);
        assert_eq!(own.unit, None);
        assert_eq!(decoded(&display.planes(&plain, &own).unwrap()[0]).to_luma8().into_raw(), [0, 64, 255]);
        let draw = batch(&[1, 1, 1, 3], vec![-2.0, 1.0, 1.0]);
        assert_eq!(decoded(&display.planes(&draw, &own).unwrap()[0]).to_luma8().into_raw(), [0, 128, 128]);
        let constant = batch(&[1, 1, 1, 1], vec![0.0]);
        let own = display.ranges(&constant);
        assert_eq!(decoded(&display.planes(&constant, &own).unwrap()[0]).to_luma8().into_raw(), [128]);
    }

    #[test]
    fn the_slices_of_a_volume_are_its_middle_with_anterior_and_superior_up() {
        // Voxel (d, h, w) has the shade 100 d + 10 h + w; 2 x 3 x 4, so that the middle is 1, 1, 2.
        let voxels =
            (0..2).flat_map(|d| (0..3).flat_map(move |h| (0..4).map(move |w| (100 * d + 10 * h + w) as f32 / 255.0)));
        let volume: Vec<f32> = voxels.collect();
        // A second channel repeats the first.
        let batch = batch(&[1, 2, 2, 3, 4], [volume.clone(), volume].concat());
        let display = Display::new(&Intensity::none(2));
        let planes = display.planes(&batch, &display.ranges(&batch)).unwrap();
        let names: Vec<(&str, usize, usize)> =
            planes.iter().map(|plane| (plane.name, plane.height, plane.width)).collect();
        assert_eq!(names, [("axial", 108, 144), ("coronal", 72, 144), ("sagittal", 72, 108)]);
        let shades = |at: usize| decoded(&planes[at]).to_luma8().into_raw();
        assert_eq!(shades(0), [120, 121, 122, 123, 110, 111, 112, 113, 100, 101, 102, 103]);
        assert_eq!(shades(1), [110, 111, 112, 113, 10, 11, 12, 13]);
        assert_eq!(shades(2), [102, 112, 122, 2, 12, 22]);
    }
}
