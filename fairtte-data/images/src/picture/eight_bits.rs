//! From stored samples to the 8-bit gray or RGB that models see.
//!
//! * 16 bits: divided by the depth in use (8, 12 or 16 bits, the smallest that holds the brightest sample), because
//!   radiographs often hold 12 bits in 16 and division by 65535 would make them black.
//! * Opacity is dropped; the colours are used as stored.
//! * CMYK without a profile: `red = (255 - black) - cyan * (255 - black) / 255`, the same for the others, as Pillow does.
//! * DICOM: by a table from stored value to gray, see `dicom/`.
//! * Colour to gray: luma of ITU-R BT.601 with Pillow's rounding, `(19595 R + 38470 G + 7471 B + 2^15) / 2^16`.

use super::{Colour, DecodedPicture, Picture, Samples};

/// How stored samples become 8-bit ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// Proportionally to the depth in use.
    DepthInUse,
    /// By a table: `levels[sample - lowest]`, samples outside take the nearest entry.
    #[cfg_attr(not(feature = "dicom"), expect(dead_code, reason = "only DICOM files bring such a table"))]
    Table { lowest: i32, levels: Vec<u8> },
}

impl DecodedPicture {
    /// The upright picture at 8 bits per channel, gray or RGB.
    ///
    /// # Cost
    /// One pass over the samples; none for upright 8-bit gray and RGB.
    pub fn into_picture(self) -> Picture {
        let Self { width, height, orientation, bit_depth, colour, samples, rendering, .. } = self;
        let levels = match (samples, &rendering) {
            (samples, Rendering::Table { lowest, levels }) => look_up(&samples, *lowest, levels),
            (Samples::U8(samples), Rendering::DepthInUse) if bit_depth == 1 && colour == Colour::Gray => {
                samples.into_iter().map(|bit| if bit == 0 { 0 } else { 255 }).collect()
            }
            (Samples::U8(samples), Rendering::DepthInUse) => samples,
            (Samples::U16(samples), Rendering::DepthInUse) => scale_16(&samples, colour),
            // Signed samples come with a table; without one, the only available scale is their own range.
            (Samples::I16(samples), Rendering::DepthInUse) => {
                let lowest = i32::from(samples.iter().copied().min().unwrap_or(0));
                let shifted = |sample: &i16| u16::try_from(i32::from(*sample) - lowest).unwrap_or(u16::MAX);
                scale_16(&samples.iter().map(shifted).collect::<Vec<_>>(), colour)
            }
        };
        let (channels, pixels) = match colour {
            Colour::Gray => (1, levels),
            Colour::GrayAlpha => (1, without_last(&levels, 2)),
            Colour::Rgb => (3, levels),
            Colour::Rgba => (3, without_last(&levels, 4)),
            Colour::Cmyk => (3, levels.chunks_exact(4).flat_map(rgb_of_ink).collect()),
        };
        Picture { width, height, channels, pixels }.upright(orientation)
    }
}

impl Picture {
    /// The picture with one channel: luma of the colours (ITU-R BT.601, rounded as in Pillow's `convert("L")`).
    ///
    /// ```
    /// use fairtte_images::Picture;
    ///
    /// let red = Picture { width: 1, height: 1, channels: 3, pixels: vec![255, 0, 0] };
    /// assert_eq!(red.into_gray().pixels, [76]);
    /// ```
    #[must_use]
    pub fn into_gray(mut self) -> Self {
        if self.channels == 3 {
            self.pixels = self.pixels.chunks_exact(3).map(|pixel| luma([pixel[0], pixel[1], pixel[2]])).collect();
            self.channels = 1;
        }
        self
    }
}

/// Luma of one RGB pixel.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let weighted = 19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue);
    u8::try_from((weighted + (1 << 15)) >> 16).expect("the weights sum to 2^16")
}

/// The pixels without their last channel of `n`.
pub(super) fn without_last<T: Copy>(pixels: &[T], n: usize) -> Vec<T> {
    pixels.chunks_exact(n).flat_map(|pixel| pixel[..n - 1].iter().copied()).collect()
}

fn rgb_of_ink(ink: &[u8]) -> [u8; 3] {
    let light = 255 - ink[3];
    [ink[0], ink[1], ink[2]].map(|amount| {
        let product = u32::from(amount) * u32::from(light) + 128;
        // (x + x / 256) / 256 is x / 255, rounded, for products of two bytes.
        let absorbed = u8::try_from((product + (product >> 8)) >> 8).expect("at most 255");
        light - absorbed
    })
}

fn look_up(samples: &Samples, lowest: i32, levels: &[u8]) -> Vec<u8> {
    let last = levels.len() - 1;
    let level = |sample: i32| levels[usize::try_from(sample - lowest).unwrap_or(0).min(last)];
    match samples {
        Samples::U8(samples) => samples.iter().map(|sample| level((*sample).into())).collect(),
        Samples::U16(samples) => samples.iter().map(|sample| level((*sample).into())).collect(),
        Samples::I16(samples) => samples.iter().map(|sample| level((*sample).into())).collect(),
    }
}

/// 16-bit samples reduced to 8 bits; opacity is ignored when finding the depth in use.
fn scale_16(samples: &[u16], colour: Colour) -> Vec<u8> {
    let n = colour.n_channels();
    let n_coloured = if matches!(colour, Colour::GrayAlpha | Colour::Rgba) { n - 1 } else { n };
    let brightest = samples.chunks_exact(n).flat_map(|pixel| &pixel[..n_coloured]).copied().max().unwrap_or(0);
    let full_scale = [0xff, 0xfff].into_iter().find(|full| brightest <= *full).unwrap_or(u16::MAX);
    let full_scale = u32::from(full_scale);
    let scale = |sample: &u16| {
        let level = (u32::from(*sample) * 255 + full_scale / 2) / full_scale;
        u8::try_from(level).unwrap_or(u8::MAX)
    };
    samples.iter().map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::super::PictureFormat;
    use super::*;

    fn decoded(colour: Colour, bit_depth: u8, samples: Samples) -> DecodedPicture {
        let n = match &samples {
            Samples::U8(samples) => samples.len(),
            Samples::U16(samples) => samples.len(),
            Samples::I16(samples) => samples.len(),
        };
        let (width, rendering) = (n / colour.n_channels(), Rendering::DepthInUse);
        DecodedPicture {
            format: PictureFormat::Png,
            width,
            height: 1,
            orientation: 1,
            bit_depth,
            colour,
            samples,
            rendering,
        }
    }

    #[test]
    fn sixteen_bits_are_scaled_by_the_depth_in_use() {
        for (brightest, full) in [(200_u16, 255_u16), (4000, 4095), (60_000, 65_535)] {
            let picture = decoded(Colour::Gray, 16, Samples::U16(vec![brightest, brightest / 2])).into_picture();
            for (pixel, value) in picture.pixels.iter().zip([brightest, brightest / 2]) {
                let exact = f64::from(value) / f64::from(full) * 255.0;
                assert!((f64::from(*pixel) - exact).abs() <= 0.5, "{pixel} for {value}");
            }
        }
    }

    #[test]
    fn opacity_is_dropped_and_does_not_set_the_depth() {
        let samples = Samples::U16(vec![100, 65_535, 200, 65_535]);
        assert_eq!(decoded(Colour::GrayAlpha, 16, samples).into_picture().pixels, [100, 200]);
        let samples = Samples::U8(vec![10, 20, 30, 0]);
        assert_eq!(decoded(Colour::Rgba, 8, samples).into_picture().pixels, [10, 20, 30]);
    }

    #[test]
    fn one_bit_becomes_black_and_white() {
        assert_eq!(decoded(Colour::Gray, 1, Samples::U8(vec![0, 1])).into_picture().pixels, [0, 255]);
    }

    /// Values of Pillow 13.0.0: `Image.frombytes("CMYK", (4, 1), ..).convert("RGB").tobytes()`.
    #[test]
    fn ink_becomes_light_as_in_pillow() {
        let ink = vec![0, 0, 0, 0, 255, 0, 0, 0, 10, 100, 200, 50, 128, 128, 128, 255];
        let expected = [255, 255, 255, 0, 255, 255, 197, 125, 44, 0, 0, 0];
        assert_eq!(decoded(Colour::Cmyk, 8, Samples::U8(ink)).into_picture().pixels, expected);
    }

    /// Values of Pillow 13.0.0: `Image.frombytes("RGB", (5, 1), ..).convert("L").tobytes()`.
    #[test]
    fn luma_is_rounded_as_in_pillow() {
        let pixels = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 200, 77, 255, 255, 255];
        let picture = Picture { width: 5, height: 1, channels: 3, pixels };
        assert_eq!(picture.into_gray().pixels, [76, 150, 29, 129, 255]);
    }
}
