//! Numbers of an image, which may be NaN or infinite, as text and as JSON.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number as an image holds it. In JSON a number if finite, else the text `nan`, `inf` or `-inf`.
///
/// ```
/// use fairtte_images::Number;
///
/// assert_eq!(serde_json::to_string(&[Number(1.5), Number(f64::NAN)])?, r#"[1.5,"nan"]"#);
/// assert_eq!(Number(9300.0).to_string(), "9300");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

/// The values of one pixel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PixelValue {
    /// Of a volume or a gray picture.
    One(Number),
    /// One per channel.
    Several(Vec<Number>),
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(self) }
    }
}

impl fmt::Display for Number {
    /// The shortest text that reads back as the same number, whole numbers without a point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = *self;
        match number {
            _ if number.is_nan() => f.write_str("nan"),
            f64::INFINITY => f.write_str("inf"),
            f64::NEG_INFINITY => f.write_str("-inf"),
            _ if number.abs() < 1e15 && number.fract() == 0.0 => write!(f, "{number:.0}"),
            _ => write!(f, "{number:?}"),
        }
    }
}

impl fmt::Display for PixelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(number) => number.fmt(f),
            Self::Several(numbers) => {
                let shown = numbers.iter().map(Number::to_string).collect::<Vec<_>>().join(", ");
                write!(f, "({shown})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact() {
        let shown = |number: f64| Number(number).to_string();
        assert_eq!(shown(-1568.0), "-1568");
        assert_eq!(shown(0.1), "0.1");
        assert_eq!(shown(1e300), "1e300");
        assert_eq!(shown(f64::NEG_INFINITY), "-inf");
        assert_eq!(shown(f64::NAN), "nan");
    }

    #[test]
    fn json_has_no_nan() {
        let pixel = PixelValue::Several(vec![Number(2.0), Number(f64::INFINITY)]);
        assert_eq!(serde_json::to_string(&pixel).expect("numbers"), r#"[2.0,"inf"]"#);
        assert_eq!(serde_json::to_string(&PixelValue::One(Number(0.5))).expect("a number"), "0.5");
    }
}
