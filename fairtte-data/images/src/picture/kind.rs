//! The kind of a file, recognised by its first bytes.

use super::{unreadable, unsupported};
use crate::prepare::sniff;
use crate::{Fault, Undecodable};

/// The formats that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Jpeg,
    Png,
    Tiff,
    Dicom,
}

impl Kind {
    /// The format of `bytes`, or a sentence why the file is not a readable picture.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, Undecodable> {
        if bytes.is_empty() {
            return Err(Undecodable::new(Fault::Empty, "the file has no bytes"));
        }
        Self::announced(bytes).ok_or_else(|| not_a_picture(bytes))
    }

    /// The format of the signature in `bytes`.
    pub(crate) fn announced(bytes: &[u8]) -> Option<Self> {
        let starts = |signature: &[u8]| bytes.starts_with(signature);
        let little_tiff = starts(b"II\x2a\0") || starts(b"II\x2b\0");
        match bytes {
            _ if starts(b"\x89PNG\r\n\x1a\n") => Some(Self::Png),
            _ if starts(b"\xff\xd8\xff") => Some(Self::Jpeg),
            _ if little_tiff || starts(b"MM\0\x2a") || starts(b"MM\0\x2b") => Some(Self::Tiff),
            _ if is_dicom(bytes) => Some(Self::Dicom),
            _ => None,
        }
    }

    /// For sentences like "the file is a PNG picture".
    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::Jpeg => "a JPEG picture",
            Self::Png => "a PNG picture",
            Self::Tiff => "a TIFF picture",
            Self::Dicom => "a DICOM picture",
        }
    }
}

/// With its preamble, or without it; then the file begins with an element of group 2 (explicit) or 8 (either).
fn is_dicom(bytes: &[u8]) -> bool {
    let preamble = bytes.get(128..132).is_some_and(|magic| magic == b"DICM");
    let group_2 = bytes.starts_with(&[2, 0]) && bytes.get(4..6).is_some_and(|kind| kind == b"UL");
    let group_8 =
        bytes.starts_with(&[8, 0]) && bytes.get(4..6).is_some_and(|kind| matches!(kind, b"UI" | b"CS" | b"DA" | b"UL"));
    preamble || group_2 || group_8
}

fn not_a_picture(bytes: &[u8]) -> Undecodable {
    if let Some(name) = other_format(bytes) {
        return unsupported(format!("the file is {name}, expected JPEG, PNG, TIFF or DICOM"));
    }
    if let Some(kind) = sniff(bytes) {
        let detail = format!("the file is {kind}, expected a picture because image.size has two entries");
        return Undecodable::new(Fault::WrongDimensions, detail);
    }
    if bytes.starts_with(b"\x89PNG") || bytes.get(1..4).is_some_and(|name| name == b"PNG") {
        return unreadable("the file begins almost like a PNG picture, but its signature is damaged");
    }
    let beginning = &bytes[..bytes.len().min(256)];
    let is_text = match std::str::from_utf8(beginning) {
        Ok(text) => !text.contains('\0'),
        // A character that is cut off at the end of the sample.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    if is_text {
        return unreadable("the file holds text, expected a JPEG, PNG, TIFF or DICOM picture");
    }
    unreadable("the content is neither JPEG nor PNG nor TIFF nor DICOM")
}

/// Formats that are recognised but not supported.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let at = |begin: usize, signature: &[u8]| bytes.get(begin..begin + signature.len()) == Some(signature);
    let brand = |name: &[u8; 4]| at(4, b"ftyp") && at(8, name);
    Some(match bytes {
        _ if at(0, b"GIF8") => "a GIF picture",
        _ if at(0, b"BM") && at(6, &[0; 4]) => "a BMP picture",
        _ if at(0, b"RIFF") && at(8, b"WEBP") => "a WebP picture",
        _ if at(0, b"\0\0\0\x0cjP  ") || at(0, b"\xff\x4f\xff\x51") => "a JPEG 2000 picture",
        _ if at(0, b"\0\0\0\x0cJXL ") || at(0, b"\xff\x0a") => "a JPEG XL picture",
        _ if brand(b"avif") => "an AVIF picture",
        _ if brand(b"heic") || brand(b"heix") || brand(b"mif1") => "a HEIC picture",
        _ if at(0, b"P") && bytes.get(1).is_some_and(|kind| (b'1'..=b'7').contains(kind)) && at(2, b"\n") => {
            "a portable anymap (PNM)"
        }
        _ if at(0, b"8BPS") => "a Photoshop document",
        _ if at(0, b"%PDF") => "a PDF document",
        _ if at(0, b"\x89HDF") => "an HDF5 file",
        _ if at(0, b"PK\x03\x04") => "a ZIP archive",
        _ if at(0, b"\x93NUMPY") => "a NumPy array",
        _ if at(0, b"<svg") => "an SVG drawing",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_that_are_not_read_are_refused_by_name() {
        for (bytes, name) in [
            (&b"GIF89a\x01\0"[..], "a GIF picture"),
            (b"BM\x36\x10\0\0\0\0\0\0\x36\0", "a BMP picture"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP picture"),
            (b"\0\0\0\x20ftypheic\0\0", "a HEIC picture"),
            (b"P5\n16 16\n", "PNM"),
        ] {
            let refused = Kind::of(bytes).expect_err(name);
            assert_eq!(refused.fault, Fault::Unsupported);
            assert!(refused.detail.contains(name), "{}", refused.detail);
        }
    }

    #[test]
    fn a_damaged_png_signature_is_named() {
        let refused = Kind::of(b"\x89PNG\n\r\x1a\n").expect_err("damaged");
        assert!(refused.detail.contains("signature is damaged"), "{}", refused.detail);
    }
}
