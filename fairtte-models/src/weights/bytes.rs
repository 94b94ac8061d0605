//! Reading bytes of a file that may be damaged or hostile: every length is checked before it is used.

use std::path::Path;

use crate::ModelError;

/// A problem of a file whose name is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Byte at which the problem was noticed.
    pub(super) offset: u64,
    /// The inflated entry in which the byte is counted; `None` for the file itself.
    pub(super) entry: Option<String>,
    /// What was expected there.
    pub(super) expected: String,
    /// What was found there.
    pub(super) found: String,
}

impl Malformed {
    pub(super) fn new(offset: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { offset: offset as u64, entry: None, expected: expected.into(), found: found.into() }
    }

    /// The error with the name of the file.
    pub(super) fn of(self, path: &Path) -> ModelError {
        let place = match self.entry {
            Some(entry) => format!("byte {} of the inflated {entry}", self.offset),
            None => format!("byte {}", self.offset),
        };
        ModelError::DamagedWeights { path: path.to_owned(), place, expected: self.expected, found: self.found }
    }
}

/// A reading position in `bytes`, the first of which is byte `start` of the file.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    start: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], start: usize) -> Self {
        Self { bytes, at: 0, start }
    }

    /// Byte of the file that is read next.
    pub(super) fn offset(&self) -> usize {
        self.start + self.at
    }

    /// Number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> Malformed {
        Malformed::new(self.offset(), expected, found)
    }

    /// The next `n` bytes, which hold `what`.
    pub(super) fn take(&mut self, n: u64, what: &str) -> Result<&'a [u8], Malformed> {
        let left = self.left();
        match usize::try_from(n) {
            Ok(n) if n <= left => {
                let taken = &self.bytes[self.at..self.at + n];
                self.at += n;
                Ok(taken)
            }
            _ => Err(self.error(format!("{n} bytes of {what}"), format!("{left} bytes to the end"))),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Text up to the next line feed, which is taken too.
    pub(super) fn line(&mut self, what: &str) -> Result<&'a str, Malformed> {
        let rest = &self.bytes[self.at..];
        let Some(n) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(self.error(format!("a line with {what}"), "no end of the line"));
        };
        let line = std::str::from_utf8(&rest[..n]).map_err(|_| self.error(what, "bytes that are not text"))?;
        self.at += n + 1;
        Ok(line.strip_suffix('\r').unwrap_or(line))
    }

    /// `n` bytes of UTF-8.
    pub(super) fn text(&mut self, n: u64) -> Result<&'a str, Malformed> {
        let before = self.offset();
        let bytes = self.take(n, "text")?;
        std::str::from_utf8(bytes)
            .map_err(|error| Malformed::new(before + error.valid_up_to(), "text in UTF-8", "another byte"))
    }
}
