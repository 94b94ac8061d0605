//! From stored gray values to 8 bits by the rescaling and the first window of a DICOM header.
//!
//! With x = slope * stored + intercept, centre c, width w (PS3.3 C.11.2.1.2 and C.11.2.1.3):
//!
//! * `LINEAR`: ((x - (c - 1/2)) / (w - 1) + 1/2) * 255, between 0 and 255
//! * `LINEAR_EXACT`: ((x - c) / w + 1/2) * 255, between 0 and 255
//! * `SIGMOID`: 255 / (1 + exp(-4 (x - c) / w))
//!
//! A header without a window gets one from the smallest to the largest value of the picture. One that has a table of gray
//! levels (VOI LUT Sequence, PS3.3 C.11.2.1.1) in place of a window is refused: its picture looks otherwise. With both the
//! window is used, because the standard leaves the choice to the program.

use super::super::{Samples, unreadable, unsupported};
use super::Rendering;
use super::elements::{Elements, Tag};
use crate::Undecodable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Linear,
    LinearExact,
    Sigmoid,
}

/// Rescaling and window of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    slope: f64,
    intercept: f64,
    /// Centre and width.
    bounds: Option<(f64, f64)>,
    function: Function,
}

/// Slope and intercept, 1 and 0 if the header has none.
pub(super) fn rescaling(elements: &Elements) -> Result<[f64; 2], Undecodable> {
    let slope = elements.decimal(Tag::RESCALE_SLOPE, "Rescale Slope")?.unwrap_or(1.0);
    let intercept = elements.decimal(Tag::RESCALE_INTERCEPT, "Rescale Intercept")?.unwrap_or(0.0);
    if slope == 0.0 {
        return Err(unreadable("the DICOM Rescale Slope is 0, expected another number"));
    }
    Ok([slope, intercept])
}

impl Window {
    /// The rescaling and window of the header; unreadable numbers are an error, because black and white would be
    /// guesses.
    pub(super) fn read(elements: &Elements) -> Result<Self, Undecodable> {
        let [slope, intercept] = rescaling(elements)?;
        let function = match elements.text(Tag::VOI_LUT_FUNCTION).as_deref() {
            Some("SIGMOID") => Function::Sigmoid,
            Some("LINEAR_EXACT") => Function::LinearExact,
            _ => Function::Linear,
        };
        let centre = elements.decimal(Tag::WINDOW_CENTER, "Window Center")?;
        let width = elements.decimal(Tag::WINDOW_WIDTH, "Window Width")?;
        let least = if function == Function::Linear { 1.0 } else { f64::MIN_POSITIVE };
        // Some machines write a width below the minimum for "no window".
        let window = centre.zip(width).filter(|(_, width)| *width >= least);
        if window.is_none() && elements.has(Tag::VOI_LUT_SEQUENCE) {
            return Err(unsupported(
                "the DICOM picture needs a table of gray levels (VOI LUT Sequence), expected a window",
            ));
        }
        Ok(Self { slope, intercept, bounds: window, function })
    }

    /// The level of every value between the smallest and the largest of `samples`.
    pub(super) fn table(&self, samples: &Samples, is_inverted: bool) -> Rendering {
        let (lowest, highest) = match samples {
            Samples::U8(samples) => range(samples),
            Samples::U16(samples) => range(samples),
            Samples::I16(samples) => range(samples),
        };
        let rescaled = |stored: i32| self.slope * f64::from(stored) + self.intercept;
        let level = |stored: i32| {
            let share = match self.bounds {
                Some((centre, width)) => self.function.share(rescaled(stored), centre, width),
                None if lowest == highest => 0.0,
                None => {
                    let (first, last) = (rescaled(lowest), rescaled(highest));
                    (rescaled(stored) - first.min(last)) / (first - last).abs()
                }
            };
            let share = if is_inverted { 1.0 - share } else { share };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 255")]
            let level = (share * 255.0).round() as u8;
            level
        };
        Rendering::Table { lowest, levels: (lowest..=highest).map(level).collect() }
    }
}

impl Function {
    /// Between 0 (black) and 1 (white).
    fn share(self, x: f64, centre: f64, width: f64) -> f64 {
        match self {
            Self::Linear if width <= 1.0 => f64::from(x > centre - 0.5),
            Self::Linear => ((x - (centre - 0.5)) / (width - 1.0) + 0.5).clamp(0.0, 1.0),
            Self::LinearExact => ((x - centre) / width + 0.5).clamp(0.0, 1.0),
            Self::Sigmoid => 1.0 / (1.0 + (-4.0 * (x - centre) / width).exp()),
        }
    }
}

fn range<T: Copy + Ord + Into<i32>>(samples: &[T]) -> (i32, i32) {
    let lowest = samples.iter().min().map_or(0, |sample| (*sample).into());
    let highest = samples.iter().max().map_or(0, |sample| (*sample).into());
    (lowest, highest)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::{Fault, Limits, decode_picture_full};

    /// A picture of the fixtures with a table of gray levels before its pixels.
    fn with_voi_lut(name: &str) -> [Vec<u8>; 2] {
        let path = format!("{}/tests/fixtures/pictures/{name}", env!("CARGO_MANIFEST_DIR"));
        let before = std::fs::read(path).unwrap();
        let pixels = before.windows(6).position(|window| window == b"\xe0\x7f\x10\x00OW").unwrap();
        let sequence = b"\x28\x00\x10\x30SQ\x00\x00\xff\xff\xff\xff";
        let empty_item_and_end = b"\xfe\xff\x00\xe0\x00\x00\x00\x00\xfe\xff\xdd\xe0\x00\x00\x00\x00";
        let after = [&before[..pixels], sequence, empty_item_and_end, &before[pixels..]].concat();
        [before, after]
    }

    #[test]
    fn a_table_of_gray_levels_is_refused_unless_there_is_a_window() {
        let read = |bytes: &[u8]| decode_picture_full(bytes, &Limits::default());
        let [without, with] = with_voi_lut("mono2_12_no_window.dcm");
        read(&without).unwrap();
        let refused = read(&with).unwrap_err();
        assert_eq!(refused.fault, Fault::Unsupported);
        assert!(refused.detail.contains("VOI LUT Sequence"), "{}", refused.detail);
        let [without, with] = with_voi_lut("mono2_12_window.dcm");
        assert_eq!(read(&with).unwrap(), read(&without).unwrap());
    }

    #[test]
    fn a_window_is_black_below_gray_in_its_centre_and_white_above() {
        for function in [Function::Linear, Function::LinearExact, Function::Sigmoid] {
            let share = |x| function.share(x, 100.0, 50.0);
            assert!(share(0.0) < 0.01 && share(200.0) > 0.99, "{function:?}");
            assert!((share(100.0) - 0.5).abs() < 0.02, "{function:?}");
        }
        assert_eq!((Function::Linear.share(99.0, 100.0, 1.0), Function::Linear.share(100.0, 100.0, 1.0)), (0.0, 1.0));
    }

    #[test]
    fn without_a_window_the_range_is_spread_and_a_constant_is_black() {
        let window = Window { slope: 1.0, intercept: 0.0, bounds: None, function: Function::Linear };
        let table = |samples: Vec<u16>, inverted| window.table(&Samples::U16(samples), inverted);
        assert_eq!(table(vec![10, 12], false), Rendering::Table { lowest: 10, levels: vec![0, 128, 255] });
        assert_eq!(table(vec![10, 12], true), Rendering::Table { lowest: 10, levels: vec![255, 128, 0] });
        assert_eq!(table(vec![7, 7], false), Rendering::Table { lowest: 7, levels: vec![0] });
    }
}
