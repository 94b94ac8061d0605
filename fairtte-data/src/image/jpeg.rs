//! Whether a JPEG file is complete. The decoder fills what a truncated file lacks with gray and reports success; half a
//! film would then be a sample like any other.
//!
//! Marker structure after ITU-T T.81 (1992), annex B.

/// Whether the markers of a JPEG stream lead to its end-of-image marker (bytes after it do not matter).
///
/// Segments are skipped by their length, so the end marker of an embedded thumbnail is not mistaken for the end.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    const END_OF_IMAGE: u8 = 0xd9;
    const START_OF_SCAN: u8 = 0xda;
    let mut at = 2;
    while let Some(marker) = next_marker(bytes, &mut at) {
        match marker {
            END_OF_IMAGE => return true,
            // Markers without a segment: restart, start of image, temporary.
            0xd0..=0xd8 | 0x01 => {}
            _ => {
                let Some(length) = bytes.get(at..at + 2) else { return false };
                at += usize::from(u16::from_be_bytes([length[0], length[1]]));
            }
        }
        if marker == START_OF_SCAN {
            skip_entropy_coded(bytes, &mut at);
        }
    }
    false
}

/// The marker at or after `at` (fill bytes and garbage between segments are skipped); `at` moves behind it.
fn next_marker(bytes: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        let start = *at + bytes.get(*at..)?.iter().position(|byte| *byte == 0xff)?;
        let code = start + bytes[start..].iter().position(|byte| *byte != 0xff)?;
        *at = code + 1;
        if bytes[code] != 0 {
            return Some(bytes[code]);
        }
    }
}

/// Moves `at` to the next marker that is neither a stuffed byte (`ff 00`) nor a restart.
fn skip_entropy_coded(bytes: &[u8], at: &mut usize) {
    while let Some(pair) = bytes.get(*at..*at + 2) {
        if pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7 | 0xff) {
            return;
        }
        *at += 1;
    }
    *at = bytes.len();
}
