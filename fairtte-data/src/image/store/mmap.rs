//! The only unsafe code of this crate: a read-only memory map of a file this crate wrote.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps `file` into memory for reading.
#[expect(unsafe_code, reason = "a memory map is unsafe because another process could change the file under it")]
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: shards are written to a temporary name and renamed, so a file under its final name is complete, and this
    // crate never writes to it again. A rebuilt shard replaces the name; the mapped file itself stays as it was.
    unsafe { Mmap::map(file) }
}
