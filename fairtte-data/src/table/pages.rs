//! The counts of values that the pages of a Parquet file state.
//!
//! A reader reserves memory for that many values before it looks at them. A damaged count then ends the program, because a
//! failed reservation of memory is no panic. So the headers of all pages (Thrift's compact protocol; Apache Parquet format,
//! `PageHeader`) are read first. Only a count that cannot be true is an error: anything else is left to the reader.

use std::io::{BufRead, Read, Seek, SeekFrom};

/// Fields of `PageHeader` that are used, by their numbers; the first field of each kind of page is its count of values.
const COMPRESSED_SIZE: i64 = 3;
const PAGES: [i64; 3] = [5, 7, 8];
const N_VALUES: i64 = 1;
/// Structs in structs in a header; the format has two levels.
const DEEPEST: usize = 8;

/// Checks the pages in bytes `start` to `end`, which hold `n_values` values.
///
/// # Errors
/// A sentence on a count that is negative or above `n_values`. Cost: one small read per page.
pub(super) fn check_counts(
    file: &mut (impl BufRead + Seek),
    (start, end): (u64, u64),
    n_values: i64,
) -> Result<(), String> {
    let mut at = start;
    while at < end {
        if file.seek(SeekFrom::Start(at)).is_err() {
            return Ok(());
        }
        let mut header = Header { compressed_size: None, n_values: None };
        if read_struct(file, None, 0, &mut header).is_none() {
            return Ok(());
        }
        if let Some(n) = header.n_values.filter(|n| !(0..=n_values).contains(n)) {
            return Err(format!("it is damaged: a page states {n} values, expected 0 to {n_values}"));
        }
        let Ok(body) = file.stream_position() else { return Ok(()) };
        let size = header.compressed_size.and_then(|size| u64::try_from(size).ok());
        let Some(next) = size.and_then(|size| body.checked_add(size)) else { return Ok(()) };
        at = next;
    }
    Ok(())
}

struct Header {
    compressed_size: Option<i64>,
    n_values: Option<i64>,
}

/// Reads the fields of a struct that is field `within` of the header, or the header itself; `None` if it cannot be read.
fn read_struct(file: &mut impl BufRead, within: Option<i64>, depth: usize, header: &mut Header) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    let mut field = 0_i64;
    loop {
        let first = byte(file)?;
        if first == 0 {
            return Some(());
        }
        let (step, kind) = (i64::from(first >> 4), first & 15);
        field = if step == 0 { signed(file)? } else { field.checked_add(step)? };
        match (kind, within) {
            (4..=6, None) if field == COMPRESSED_SIZE => header.compressed_size = Some(signed(file)?),
            (4..=6, Some(page)) if field == N_VALUES && depth == 1 && PAGES.contains(&page) => {
                header.n_values = Some(signed(file)?);
            }
            (12, _) => read_struct(file, Some(field), depth + 1, header)?,
            _ => skip(file, kind, depth, header)?,
        }
    }
}

/// Skips a value of a type that has no use here.
fn skip(file: &mut impl BufRead, kind: u8, depth: usize, header: &mut Header) -> Option<()> {
    match kind {
        1 | 2 => Some(()),
        3 => byte(file).map(drop),
        4..=6 => unsigned(file).map(drop),
        7 => skip_bytes(file, 8),
        8 => {
            let length = unsigned(file)?;
            skip_bytes(file, length)
        }
        12 => read_struct(file, Some(0), depth + 1, header),
        _ => None, // lists and maps are in no header of a page
    }
}

fn skip_bytes(file: &mut impl BufRead, n: u64) -> Option<()> {
    let skipped = std::io::copy(&mut file.by_ref().take(n), &mut std::io::sink()).ok()?;
    (skipped == n).then_some(())
}

fn byte(file: &mut impl BufRead) -> Option<u8> {
    let mut byte = [0];
    file.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

/// Seven bits per byte, the lowest first.
fn unsigned(file: &mut impl BufRead) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(file)?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

/// 0, -1, 1, -2, .. are written as 0, 1, 2, 3, ..
fn signed(file: &mut impl BufRead) -> Option<i64> {
    let value = unsigned(file)?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A data page (type 0, sizes 4 and 4) that states `count` in its first field, with statistics, and 4 bytes.
    fn page(count: &[u8]) -> Vec<u8> {
        let header = [&[0x15, 0, 0x15, 8, 0x15, 8, 0x2c, 0x15][..], count, &[0x15, 0, 0x3c, 0x18, 2, 9, 9, 0, 0, 0]];
        [header.concat(), vec![7; 4]].concat()
    }

    fn checked(pages: &[Vec<u8>], n_values: i64) -> Result<(), String> {
        let bytes = pages.concat();
        let end = bytes.len() as u64;
        check_counts(&mut Cursor::new(bytes), (0, end), n_values)
    }

    #[test]
    fn a_count_that_cannot_be_true_is_refused_in_any_page() {
        assert_eq!(checked(&[page(&[6]), page(&[0])], 3), Ok(()));
        let message = |n: i64| Err(format!("it is damaged: a page states {n} values, expected 0 to 3"));
        assert_eq!(checked(&[page(&[6]), page(&[8])], 3), message(4));
        assert_eq!(checked(&[page(&[6]), page(&[1])], 3), message(-1));
        assert_eq!(checked(&[page(&[0x80, 4])], 3), message(256));
    }

    #[test]
    fn what_is_no_header_is_left_to_the_reader() {
        for bytes in [&[0x15][..], &[0xff; 40], &[0x19, 0xf5], &[], &[0x1c; 30]] {
            assert_eq!(checked(&[bytes.to_vec()], 3), Ok(()), "{bytes:?}");
        }
    }
}
