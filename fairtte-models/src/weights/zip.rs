//! The table of contents of a zip archive: just enough for the archives that torch writes and for repacked ones.
//!
//! Entries are stored or deflated; the table is at the end and is found from there, with the extension for archives
//! beyond 4 GB (APPNOTE.TXT 6.3.10, sections 4.3.7 to 4.3.16 and 4.5.3). Encrypted and split archives are refused. The
//! compressed bytes of all entries together fit into the file, so entries that overlap to claim more are refused, and what
//! is inflated is at most [`LARGEST_RATIO`] times the file.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::bytes::{Cursor, Malformed};
use super::pickle::shown;
use super::tensor::Bytes;

/// First bytes of an archive.
pub(super) const START: [u8; 4] = *b"PK\x03\x04";
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Size of the record at the end without its comment.
const END_SIZE: usize = 22;
/// Most inflated bytes per byte of the file. Deflated weights shrink to about nine tenths.
const LARGEST_RATIO: usize = 100;
/// Most entries; torch writes one per storage.
const MOST_ENTRIES: usize = 1_000_000;

/// Checksum of an entry whose writer computed none, as torch does on request.
const NO_CHECKSUM: u32 = 0;

/// One file in the archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Where its record in the table of contents begins.
    pub(super) at: usize,
    pub(super) bytes: Bytes,
    crc: u32,
}

impl Entry {
    /// Checks its bytes against their checksum, if it has one.
    pub(super) fn check(&self, name: &str, file: &[u8]) -> Result<(), Malformed> {
        let Bytes::Plain(range) = &self.bytes else { return Ok(()) }; // checked when it is inflated
        let mut crc = Crc::new();
        crc.update(&file[range.clone()]);
        if crc.sum() == self.crc || self.crc == NO_CHECKSUM {
            return Ok(());
        }
        let expected = format!("{} with checksum {:08x}", shown(name), self.crc);
        Err(Malformed::new(range.start, expected, format!("checksum {:08x}", crc.sum())))
    }
}

/// Entries by name.
pub(super) fn entries(file: &[u8]) -> Result<BTreeMap<String, Entry>, Malformed> {
    let (n, table) = find_table(file)?;
    let mut cursor = Cursor::new(&file[table.clone()], table.start);
    let mut entries = BTreeMap::new();
    let mut n_compressed = 0_usize;
    let mut n_inflated = 0_usize;
    for _ in 0..n {
        let (name, entry) = read_entry(&mut cursor, file)?;
        match &entry.bytes {
            Bytes::Plain(range) => n_compressed = n_compressed.saturating_add(range.len()),
            Bytes::Deflated { range, size, .. } => {
                n_compressed = n_compressed.saturating_add(range.len());
                n_inflated = n_inflated.saturating_add(*size);
            }
            Bytes::Held(_) => {} // of another container
        }
        let at = entry.at;
        if n_compressed > file.len() {
            return Err(Malformed::new(at, "entries that fit into the file", "entries that overlap"));
        }
        if n_inflated > file.len().saturating_mul(LARGEST_RATIO) {
            let found = format!("{n_inflated} bytes in a file of {}", file.len());
            return Err(Malformed::new(at, format!("at most {LARGEST_RATIO} inflated bytes per byte"), found));
        }
        if entries.len() >= MOST_ENTRIES {
            return Err(Malformed::new(at, format!("at most {MOST_ENTRIES} entries"), "more"));
        }
        if entries.insert(name.clone(), entry).is_some() {
            return Err(Malformed::new(at, "every entry once", format!("{} twice", shown(&name))));
        }
    }
    Ok(entries)
}

/// Number of entries and place of the table of contents.
fn find_table(file: &[u8]) -> Result<(u64, Range<usize>), Malformed> {
    let end = find_end(file)?;
    let mut cursor = Cursor::new(&file[end + 4..], end + 4);
    let [disk, disk_of_table, here] =
        [cursor.u16("a disk")?, cursor.u16("a disk")?, cursor.u16("a number of entries")?];
    let n = cursor.u16("a number of entries")?;
    let (size, start) = (cursor.u32("the size of the table")?, cursor.u32("the start of the table")?);
    let before = end.checked_sub(20).filter(|at| file[*at..].starts_with(&LOCATOR_64.to_le_bytes()));
    let (n, size, start) = match before {
        Some(locator) if n == u16::MAX || size == u32::MAX || start == u32::MAX => table_64(file, locator)?,
        _ if disk != 0 || disk_of_table != 0 || here != n => {
            return Err(Malformed::new(end, "an archive in one file", "an archive split over several"));
        }
        _ => (u64::from(n), u64::from(size), u64::from(start)),
    };
    let expected = format!("a table of contents before byte {end}");
    let found = || format!("{size} bytes at {start}");
    let range = range(start, size, end).ok_or_else(|| Malformed::new(end, expected, found()))?;
    Ok((n, range))
}

/// The record at the end: the last one whose comment reaches the end of the file.
fn find_end(file: &[u8]) -> Result<usize, Malformed> {
    let first = file.len().saturating_sub(END_SIZE + usize::from(u16::MAX));
    let last = file.len().checked_sub(END_SIZE);
    let fits = |at: &usize| {
        let comment = usize::from(u16::from_le_bytes([file[at + 20], file[at + 21]]));
        file[*at..].starts_with(&END.to_le_bytes()) && at + END_SIZE + comment == file.len()
    };
    let found = last.and_then(|last| (first..=last).rev().find(fits));
    found.ok_or_else(|| {
        Malformed::new(
            file.len(),
            "the end of a zip archive (its table of contents)",
            "the end of the file: it is cut short",
        )
    })
}

fn table_64(file: &[u8], locator: usize) -> Result<(u64, u64, u64), Malformed> {
    let mut cursor = Cursor::new(&file[locator + 8..], locator + 8);
    let place = cursor.u64("the place of the end record")?;
    let at = usize::try_from(place).ok().filter(|at| *at < locator);
    let at =
        at.ok_or_else(|| cursor.error(format!("the place of a record before byte {locator}"), place.to_string()))?;
    let mut cursor = Cursor::new(&file[at..locator], at);
    if cursor.u32("the end record")? != END_64 {
        return Err(Malformed::new(at, "the end record of a large archive", "another record"));
    }
    cursor.take(20, "the end record")?; // its size, versions and disks
    cursor.u64("a number of entries")?;
    Ok((
        cursor.u64("a number of entries")?,
        cursor.u64("the size of the table")?,
        cursor.u64("the start of the table")?,
    ))
}

fn range(start: u64, size: u64, end: usize) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    let stop = start.checked_add(usize::try_from(size).ok()?)?;
    (stop <= end).then_some(start..stop)
}

fn read_entry(cursor: &mut Cursor<'_>, file: &[u8]) -> Result<(String, Entry), Malformed> {
    let at = cursor.offset();
    if cursor.u32("an entry of the table of contents")? != CENTRAL {
        return Err(Malformed::new(at, "an entry of the table of contents", "another record"));
    }
    cursor.take(4, "versions")?;
    let (flags, method) = (cursor.u16("flags")?, cursor.u16("a method")?);
    cursor.take(4, "a time")?;
    let crc = cursor.u32("a checksum")?;
    let (packed, size) = (cursor.u32("a size")?, cursor.u32("a size")?);
    let [n_name, n_extra, n_comment] = [cursor.u16("a length")?, cursor.u16("a length")?, cursor.u16("a length")?];
    cursor.take(8, "attributes")?;
    let start = cursor.u32("the place of an entry")?;
    let name = cursor.text(u64::from(n_name))?.to_owned();
    let extra_at = cursor.offset();
    let extra = cursor.take(u64::from(n_extra), "extra fields")?;
    cursor.take(u64::from(n_comment), "a comment")?;
    let mut wide = wide_fields(extra, extra_at)?;
    let mut widened = |narrow: u32| match narrow {
        u32::MAX => wide.next().ok_or_else(|| Malformed::new(extra_at, "a 64-bit size", "none")),
        narrow => Ok(u64::from(narrow)),
    };
    let (size, packed, start) = (widened(size)?, widened(packed)?, widened(start)?);
    if flags & 1 != 0 {
        return Err(Malformed::new(at, "entries that are not encrypted", format!("{} encrypted", shown(&name))));
    }
    let range = data(file, start, packed).ok_or_else(|| {
        let expected = format!("{packed} bytes of {} at byte {start}", shown(&name));
        Malformed::new(at, expected, format!("a file of {} bytes", file.len()))
    })?;
    let whole =
        || usize::try_from(size).map_err(|_| Malformed::new(at, "a size that fits into memory", size.to_string()));
    let bytes = match method {
        0 if size == packed => Bytes::Plain(range),
        0 => return Err(Malformed::new(at, format!("{packed} stored bytes"), format!("a size of {size}"))),
        8 => Bytes::Deflated { range, size: whole()?, crc },
        other => return Err(Malformed::new(at, "a stored or deflated entry", format!("method {other}"))),
    };
    Ok((name, Entry { at, bytes, crc }))
}

/// Bytes of an entry, after its own header at `start`.
fn data(file: &[u8], start: u64, n: u64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    let header = file.get(start..start.checked_add(30)?)?;
    if !header.starts_with(&LOCAL.to_le_bytes()) {
        return None;
    }
    let length = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    range(start as u64 + 30 + length(26) + length(28), n, file.len())
}

/// The 64-bit sizes in the extra fields of an entry.
fn wide_fields(extra: &[u8], at: usize) -> Result<std::vec::IntoIter<u64>, Malformed> {
    let mut cursor = Cursor::new(extra, at);
    let mut wide = Vec::new();
    while cursor.left() >= 4 {
        let (kind, n) = (cursor.u16("an extra field")?, cursor.u16("an extra field")?);
        let field = cursor.take(u64::from(n), "an extra field")?;
        if kind == 1 {
            wide = field.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        }
    }
    Ok(wide.into_iter())
}

/// The `size` bytes that `range` of the file inflates to.
pub(super) fn inflate(file: &[u8], range: &Range<usize>, size: usize, crc: u32) -> Result<Vec<u8>, Malformed> {
    // The size comes from a header and is not trusted: at most one byte more than it is read.
    let mut bytes = Vec::new();
    let limit = (size as u64).saturating_add(1);
    let read = DeflateDecoder::new(&file[range.clone()]).take(limit).read_to_end(&mut bytes);
    let found = match read {
        Err(error) => format!("{error} after {} bytes", bytes.len()),
        Ok(n) if n < size => format!("{n} bytes"),
        Ok(n) if n > size => "more bytes".to_owned(),
        Ok(_) => {
            let mut sum = Crc::new();
            sum.update(&bytes);
            if sum.sum() == crc {
                return Ok(bytes);
            }
            format!("checksum {:08x} in place of {crc:08x}", sum.sum())
        }
    };
    Err(Malformed::new(range.start, format!("{size} deflated bytes"), found))
}
