//! The orientation tag of an EXIF block: tag 274 of the first directory (EXIF 2.3, JEITA CP-3451C, table 4).
//!
//! Cameras write it as a 16-bit number; some programs as 32 bits or as a byte, which is accepted as well. A damaged
//! or absent tag means upright, as in every viewer.

const TAG: u16 = 274;

/// Orientation 1 to 8 in `block`, which may begin with `Exif\0\0`.
pub(super) fn orientation(block: &[u8]) -> Option<u8> {
    let tiff = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let big = match tiff.get(..4)? {
        b"II\x2a\0" => false,
        b"MM\0\x2a" => true,
        _ => return None,
    };
    let half = |at: usize| {
        let bytes = [*tiff.get(at)?, *tiff.get(at + 1)?];
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let word = |at: usize| {
        let (first, second) = (u32::from(half(at)?), u32::from(half(at + 2)?));
        Some(if big { first << 16 | second } else { second << 16 | first })
    };
    let directory = usize::try_from(word(4)?).ok()?;
    for index in 0..usize::from(half(directory)?) {
        let entry = directory + 2 + 12 * index;
        if half(entry)? != TAG {
            continue;
        }
        let value = match half(entry + 2)? {
            1 | 6 => u32::from(*tiff.get(entry + 8)?),
            3 | 8 => u32::from(half(entry + 8)?),
            4 | 9 => word(entry + 8)?,
            _ => return None,
        };
        return u8::try_from(value).ok().filter(|value| (1..=8).contains(value));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(big: bool, kind: u16, value: u32) -> Vec<u8> {
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut block = if big { b"Exif\0\0MM".to_vec() } else { b"Exif\0\0II".to_vec() };
        block.extend(half(42));
        block.extend(word(8));
        block.extend(half(1));
        block.extend(half(TAG));
        block.extend(half(kind));
        block.extend(word(1));
        let short = u16::try_from(value).unwrap_or_default();
        if kind == 3 {
            block.extend([half(short), [0, 0]].concat());
        } else {
            block.extend(word(value));
        }
        block
    }

    #[test]
    fn the_tag_is_read_in_either_byte_order_and_as_a_short_or_long_number() {
        for value in 1..=8 {
            for (big, kind) in [(false, 3), (true, 3), (false, 4), (true, 4)] {
                assert_eq!(orientation(&block(big, kind, value)).map(u32::from), Some(value));
            }
        }
    }

    #[test]
    fn values_out_of_range_and_damaged_blocks_mean_none() {
        assert_eq!(orientation(&block(true, 3, 0)), None);
        assert_eq!(orientation(&block(true, 3, 9)), None);
        let whole = block(false, 3, 6);
        for length in 0..whole.len() - 4 {
            assert_eq!(orientation(&whole[..length]), None, "cut to {length} bytes");
        }
    }
}
