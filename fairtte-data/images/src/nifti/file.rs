//! Opening a NIfTI file or pair, and the bytes of its voxels.
//!
//! A pair is `name.hdr` with `name.img`, or `name.hdr.gz` with `name.img.gz`; either member may be given. The content
//! determines whether a file is gzipped and whether it holds its own voxels; the name is only used to find the other
//! half of a pair.
//!
//! A header of a few bytes may claim any size. Before memory is allocated, the size is compared with the limits and
//! with what a file of that length can hold: its own length if plain, 1032 times its length if gzipped (the most that
//! deflate can do: 258 bytes in two bits). A gzip stream is read to its end, because its checksum is at the end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::gzip::Content;
use super::header::{HEADER_BYTES, Header};
use crate::{Fault, Limits, Undecodable};

/// Maximum expansion of a byte by deflate.
const MOST_EXPANSION: u64 = 1032;
const FIRST_HEADER_BYTES: usize = 348;

/// A header, and a stream positioned at the first voxel.
pub(crate) struct Opened<R: Read> {
    pub header: Header,
    /// Whether a file was gzipped.
    pub is_gzip: bool,
    voxels: Content<R>,
    /// Length of the file that holds the voxels, if known.
    n_packed: Option<u64>,
}

/// A part of the voxels, in bytes from the first one.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub begin: u64,
    pub n_bytes: u64,
}

impl Opened<File> {
    /// Opens the file at `path`, and the other half if it is one half of a pair.
    pub(crate) fn open(path: &Path) -> Result<Self, Undecodable> {
        let (mut content, n_packed) = open_file(path)?;
        let bytes = header_bytes(&mut content)?;
        let header = match Header::parse(&bytes) {
            Ok(header) if !header.is_pair => return Self::at_voxels(header, content, n_packed, bytes.len()),
            Ok(header) => header,
            // The voxel file of a pair has no header of its own.
            Err(refused) => return Self::open_by_voxels(path, refused),
        };
        let other = other_half(path, "hdr", "img").filter(|other| other.is_file()).ok_or_else(|| missing_half(path))?;
        Self::from_pair(header, content.is_gzip(), &other)
    }

    fn open_by_voxels(path: &Path, refused: Undecodable) -> Result<Self, Undecodable> {
        let Some(other) = other_half(path, "img", "hdr") else { return Err(refused) };
        if !other.is_file() {
            let detail = format!(
                "the file looks like the voxels of a pair, whose header {} is not there",
                other.file_name().unwrap_or_default().display()
            );
            return Err(Undecodable::new(Fault::Unreadable, detail));
        }
        let (mut content, _) = open_file(&other)?;
        let header = Header::parse(&header_bytes(&mut content)?)?;
        Self::from_pair(header, content.is_gzip(), path)
    }

    fn from_pair(header: Header, is_gzip: bool, voxels: &Path) -> Result<Self, Undecodable> {
        let (content, n_packed) = open_file(voxels)?;
        let mut opened = Self::at_voxels(header, content, n_packed, 0)?;
        opened.is_gzip |= is_gzip;
        Ok(opened)
    }
}

impl<R: Read> Opened<R> {
    /// Opens a stream that holds header and voxels.
    pub(crate) fn from_stream(stream: R) -> Result<Self, Undecodable> {
        let mut content = Content::open(stream).map_err(|error| damaged(&error))?.ok_or_else(empty)?;
        let bytes = header_bytes(&mut content)?;
        let header = Header::parse(&bytes)?;
        if header.is_pair {
            let detail = "the content is the header of a .hdr/.img pair, expected its path to find the voxels";
            return Err(Undecodable::new(Fault::Unsupported, detail));
        }
        Self::at_voxels(header, content, None, bytes.len())
    }

    fn at_voxels(
        header: Header,
        mut voxels: Content<R>,
        n_packed: Option<u64>,
        n_read: usize,
    ) -> Result<Self, Undecodable> {
        let is_gzip = voxels.is_gzip();
        let most = n_packed.map(|n| if is_gzip { n.saturating_mul(MOST_EXPANSION) } else { n });
        if most.is_some_and(|most| header.offset > most) {
            let detail = format!("vox_offset is {}, beyond the end of the file: it is truncated", header.offset);
            return Err(Undecodable::new(Fault::Unreadable, detail));
        }
        // Voxels that begin inside the header were refused when it was parsed.
        skip(&mut voxels, header.offset.saturating_sub(n_read as u64))?;
        Ok(Self { header, is_gzip, voxels, n_packed })
    }

    /// The bytes of all voxels, checked against what the file can hold.
    pub(crate) fn n_voxel_bytes(&self) -> Result<u64, Undecodable> {
        let n_voxels = self.header.grid.n_voxels();
        let n_bytes = n_voxels.and_then(|n| n.checked_mul(self.header.grid.voxel_type.n_bytes() as u64));
        let n_bytes = n_bytes.ok_or_else(|| {
            let detail =
                format!("the header announces {} voxels, more than any file holds", self.header.grid.shown_shape());
            Undecodable::new(Fault::Unreadable, detail)
        })?;
        let Some(n_packed) = self.n_packed else { return Ok(n_bytes) };
        let n_held = n_packed.saturating_sub(self.header.offset);
        if self.is_packed() {
            let most = n_packed.saturating_mul(MOST_EXPANSION);
            if n_bytes > most {
                let detail = format!(
                    "the header announces {n_bytes} bytes of voxels, more than a gzip file of {n_packed} bytes can hold"
                );
                return Err(Undecodable::new(Fault::Unreadable, detail));
            }
        } else if n_bytes > n_held {
            return Err(truncated(n_held, n_bytes));
        }
        Ok(n_bytes)
    }

    fn is_packed(&self) -> bool {
        self.voxels.is_gzip()
    }

    /// The bytes of `span`, and whether bytes that are not gzip followed the stream, which is read to its end if
    /// gzipped.
    ///
    /// Memory: `span.n_bytes`, which the caller has compared with the limits.
    pub(crate) fn read(mut self, span: Span, limits: &Limits) -> Result<(Vec<u8>, bool), Undecodable> {
        let n_all = self.n_voxel_bytes()?;
        skip(&mut self.voxels, span.begin)?;
        let mut bytes = Vec::new();
        if self.n_packed.is_some() {
            let n = usize::try_from(span.n_bytes).unwrap_or(usize::MAX);
            bytes.try_reserve_exact(n).map_err(|_| {
                let detail = format!("there is no memory for the {n} bytes of voxels");
                Undecodable::new(Fault::Unreadable, detail)
            })?;
        }
        (&mut self.voxels).take(span.n_bytes).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
        if bytes.len() as u64 != span.n_bytes {
            return Err(truncated(span.begin + bytes.len() as u64, n_all));
        }
        let has_trailing_bytes = self.finish(n_all - span.begin - span.n_bytes, limits)?;
        Ok((bytes, has_trailing_bytes))
    }

    /// Calls `take` with all voxels in chunks of whole numbers; returns the same as [`Opened::read`].
    ///
    /// Memory: a quarter of a megabyte, however many they are.
    pub(crate) fn for_each_piece(mut self, limits: &Limits, mut take: impl FnMut(&[u8])) -> Result<bool, Undecodable> {
        const PIECE: u64 = 1 << 18;
        let n_all = self.n_voxel_bytes()?;
        let mut piece = Vec::new();
        let mut n_done = 0;
        while n_done < n_all {
            let n = PIECE.min(n_all - n_done);
            piece.clear();
            (&mut self.voxels).take(n).read_to_end(&mut piece).map_err(|error| damaged(&error))?;
            n_done += piece.len() as u64;
            if piece.len() as u64 != n {
                return Err(truncated(n_done, n_all));
            }
            take(&piece);
        }
        self.finish(0, limits)
    }

    /// Reads a gzip stream to its end; returns whether bytes that are not gzip followed it.
    fn finish(mut self, n_voxels_left: u64, limits: &Limits) -> Result<bool, Undecodable> {
        if !self.is_packed() {
            return Ok(false);
        }
        let most = n_voxels_left.saturating_add(limits.max_bytes);
        let n = io::copy(&mut (&mut self.voxels).take(most), &mut io::sink()).map_err(|error| damaged(&error))?;
        if n < n_voxels_left {
            let detail =
                format!("the gzip stream ends {} bytes before its last voxel: it is truncated", n_voxels_left - n);
            return Err(Undecodable::new(Fault::Unreadable, detail));
        }
        if n == most && most > 0 && self.voxels.read(&mut [0]).map_err(|error| damaged(&error))? > 0 {
            let detail = format!("more than {} bytes follow the voxels in the gzip stream", limits.max_bytes);
            return Err(Undecodable::new(Fault::Unreadable, detail));
        }
        Ok(self.voxels.has_trailing_bytes())
    }
}

fn open_file(path: &Path) -> Result<(Content<File>, Option<u64>), Undecodable> {
    let unopened = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Undecodable::new(Fault::Missing, "there is no such file"),
        _ => Undecodable::new(Fault::Unopened, error.to_string()),
    };
    let file = File::open(path).map_err(unopened)?;
    let metadata = file.metadata().map_err(unopened)?;
    // A pipe has no length.
    let n_packed = metadata.is_file().then_some(metadata.len());
    let content = Content::open(file).map_err(unopened)?.ok_or_else(empty)?;
    Ok((content, n_packed))
}

/// As many bytes as the header of this version has, fewer if the content ends earlier.
fn header_bytes<R: Read>(content: &mut Content<R>) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    content.take(FIRST_HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    let is_first_version = matches!(bytes.get(344..348), Some(b"n+1\0" | b"ni1\0"));
    if !is_first_version && bytes.len() == FIRST_HEADER_BYTES {
        let n_more = (HEADER_BYTES - FIRST_HEADER_BYTES) as u64;
        content.take(n_more).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    }
    Ok(bytes)
}

fn skip<R: Read>(content: &mut Content<R>, n: u64) -> Result<(), Undecodable> {
    let skipped = io::copy(&mut content.take(n), &mut io::sink()).map_err(|error| damaged(&error))?;
    if skipped == n {
        return Ok(());
    }
    let detail = "the file ends before its first voxel: it is truncated";
    Err(Undecodable::new(Fault::Unreadable, detail))
}

/// Header and voxels of the pair that the file at `path` may be one half of, by its name alone: `name.hdr` with `name.img`,
/// or `name.hdr.gz` with `name.img.gz`, in the case of the given half. `None` for another name. The other half need not
/// exist, and a file of this name may hold header and voxels alike.
pub fn halves_of_pair(path: &Path) -> Option<[PathBuf; 2]> {
    let header = other_half(path, "hdr", "img").map(|voxels| [path.to_owned(), voxels]);
    header.or_else(|| other_half(path, "img", "hdr").map(|header| [header, path.to_owned()]))
}

/// `name.hdr` -> `name.img`, also with `.gz`, keeping the case of the name; `None` if the name does not end in `from`.
fn other_half(path: &Path, from: &str, to: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let is_suffix = |end: &str| end.eq_ignore_ascii_case(".gz");
    let cut = name.len().checked_sub(3).filter(|cut| name.is_char_boundary(*cut));
    let (stem, suffix) = cut.map(|cut| name.split_at(cut)).filter(|(_, end)| is_suffix(end)).unwrap_or((name, ""));
    let (stem, ending) = stem.rsplit_once('.')?;
    if !ending.eq_ignore_ascii_case(from) {
        return None;
    }
    let is_upper = ending.chars().all(char::is_uppercase);
    let ending = if is_upper { to.to_uppercase() } else { to.to_owned() };
    Some(path.with_file_name(format!("{stem}.{ending}{suffix}")))
}

fn missing_half(path: &Path) -> Undecodable {
    let detail = match other_half(path, "hdr", "img") {
        Some(other) => format!(
            "the file is the header of a pair, whose voxels {} are not there",
            other.file_name().unwrap_or_default().display()
        ),
        None => "the file is the header of a .hdr/.img pair, expected a name ending in .hdr or .hdr.gz".to_owned(),
    };
    Undecodable::new(Fault::Unreadable, detail)
}

fn truncated(n_held: u64, n_expected: u64) -> Undecodable {
    let detail = format!("the file holds {n_held} bytes of voxels, expected {n_expected}: it is truncated");
    Undecodable::new(Fault::Unreadable, detail)
}

fn empty() -> Undecodable {
    Undecodable::new(Fault::Empty, "the file has no bytes")
}

fn damaged(error: &io::Error) -> Undecodable {
    let detail = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the gzip stream ends early: the file is truncated".to_owned(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => format!("the gzip stream is damaged: {error}"),
        _ => error.to_string(),
    };
    // What the operating system says is no property of the content: a network folder may be away in the middle of a file.
    let fault = if error.raw_os_error().is_some() { Fault::Unopened } else { Fault::Unreadable };
    Undecodable::new(fault, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_half_of_a_pair_keeps_ending_and_case() {
        let other = |name: &str| other_half(Path::new(name), "hdr", "img").map(|path| path.display().to_string());
        assert_eq!(other("a/b.hdr").as_deref(), Some("a/b.img"));
        assert_eq!(other("a/b.c.hdr.gz").as_deref(), Some("a/b.c.img.gz"));
        assert_eq!(other("a/B.HDR").as_deref(), Some("a/B.IMG"));
        assert_eq!(other("a/ü.hdr").as_deref(), Some("a/ü.img"));
        assert_eq!(other("a/b.nii"), None);
        assert_eq!(other("a/hdr"), None);
        assert_eq!(other("ü"), None);
    }

    #[test]
    fn an_error_of_the_system_is_no_damage() {
        let fault = |error: io::Error| damaged(&error).fault;
        // 5 is EIO, the error of a disk or a network folder.
        assert_eq!(fault(io::Error::from_raw_os_error(5)), Fault::Unopened);
        assert_eq!(fault(io::ErrorKind::UnexpectedEof.into()), Fault::Unreadable);
        assert_eq!(fault(io::Error::other("corrupt deflate stream")), Fault::Unreadable);
    }

    #[test]
    fn either_half_gives_the_header_first() {
        let halves =
            |name: &str| halves_of_pair(Path::new(name)).map(|halves| halves.map(|half| half.display().to_string()));
        let pair = Some(["a/b.hdr.gz".to_owned(), "a/b.img.gz".to_owned()]);
        assert_eq!(halves("a/b.hdr.gz"), pair);
        assert_eq!(halves("a/b.img.gz"), pair);
        assert_eq!(halves("a/b.nii"), None);
    }
}
