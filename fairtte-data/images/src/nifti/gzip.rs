//! The content of a file, unpacked if it is gzip, which is recognised by its first two bytes and never by its name.
//!
//! A gzip file may consist of several members one after another (RFC 1952, section 2.2), as bgzip and pigz write them;
//! all are read, and the checksum and length at the end of each are compared (by `flate2`). Bytes after the last member
//! that do not begin another one are ignored, as gzip itself does, and reported by [`Content::has_trailing_bytes`].

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// A plain or gzipped stream.
pub(super) enum Content<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<GzipMembers<R>>),
}

const SIGNATURE: [u8; 2] = [0x1f, 0x8b];

impl<R: Read> Content<R> {
    /// `None` if there is not a single byte.
    pub(super) fn open(stream: R) -> io::Result<Option<Self>> {
        let mut reader = BufReader::with_capacity(1 << 17, stream);
        let start = reader.fill_buf()?;
        if start.is_empty() {
            return Ok(None);
        }
        let is_gzip = start.starts_with(&SIGNATURE);
        Ok(Some(if is_gzip { Self::Gzip(Box::new(GzipMembers::new(reader))) } else { Self::Plain(reader) }))
    }

    pub(super) fn is_gzip(&self) -> bool {
        matches!(self, Self::Gzip(_))
    }

    /// Whether bytes that are not a gzip member followed the last one; known once the stream has been read to its end.
    pub(super) fn has_trailing_bytes(&self) -> bool {
        matches!(self, Self::Gzip(members) if members.has_trailing_bytes)
    }
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Gzip(members) => members.read(buffer),
        }
    }
}

/// The content of all members of a gzip stream.
pub(super) struct GzipMembers<R: Read> {
    /// `None` after the end.
    member: Option<GzDecoder<Ahead<R>>>,
    has_trailing_bytes: bool,
}

impl<R: Read> GzipMembers<R> {
    fn new(reader: BufReader<R>) -> Self {
        Self { member: Some(GzDecoder::new(Ahead { seen: [0; 2], n_seen: 0, reader })), has_trailing_bytes: false }
    }
}

impl<R: Read> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            // The member is at its end and its checksum has been verified.
            let Some(mut rest) = self.member.take().map(GzDecoder::into_inner) else { break };
            match rest.peek_two()? {
                [] => {}
                start if start == SIGNATURE => self.member = Some(GzDecoder::new(rest)),
                _ => self.has_trailing_bytes = true,
            }
        }
        Ok(0)
    }
}

/// A reader with a two-byte lookahead, even across a refill of the buffer.
struct Ahead<R: Read> {
    seen: [u8; 2],
    /// The last `n_seen` of `seen` come before the bytes of `reader`.
    n_seen: usize,
    reader: BufReader<R>,
}

impl<R: Read> Ahead<R> {
    /// The next two bytes, fewer at the end; called between members only, when no byte is buffered here.
    fn peek_two(&mut self) -> io::Result<&[u8]> {
        let mut next = Vec::with_capacity(2);
        self.take(2).read_to_end(&mut next)?;
        self.n_seen = next.len();
        self.seen[2 - next.len()..].copy_from_slice(&next);
        Ok(&self.seen[2 - self.n_seen..])
    }
}

impl<R: Read> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buffer)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.n_seen > 0 { Ok(&self.seen[2 - self.n_seen..]) } else { self.reader.fill_buf() }
    }

    fn consume(&mut self, n: usize) {
        if self.n_seen > 0 {
            self.n_seen -= n;
        } else {
            self.reader.consume(n);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// One byte at a time, the worst case of a reader.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(1);
            self.0.read(&mut buffer[..n])
        }
    }

    fn unpacked(bytes: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let mut content = Vec::new();
        let mut stream = Content::open(bytes)?.unwrap();
        stream.read_to_end(&mut content)?;
        Ok((content, stream.has_trailing_bytes()))
    }

    #[test]
    fn several_members_are_one_content() {
        let bytes = [gzip(b"heart"), gzip(b""), gzip(b" and lung")].concat();
        assert_eq!(unpacked(&bytes).unwrap(), (b"heart and lung".to_vec(), false));
        let mut slowly = Vec::new();
        Content::open(bytes.as_slice()).unwrap().unwrap().read_to_end(&mut slowly).unwrap();
        let mut members = GzipMembers::new(BufReader::with_capacity(1, Drip(&bytes)));
        let mut dripped = Vec::new();
        members.read_to_end(&mut dripped).unwrap();
        assert_eq!(slowly, dripped);
    }

    #[test]
    fn bytes_after_the_last_member_are_ignored_and_reported() {
        for tail in [&b"garbage"[..], &[0; 512], &[0x1f]] {
            let bytes = [gzip(b"heart"), tail.to_vec()].concat();
            assert_eq!(unpacked(&bytes).unwrap(), (b"heart".to_vec(), true));
        }
    }

    #[test]
    fn a_wrong_checksum_or_length_of_any_member_is_an_error() {
        let (first, second) = (gzip(b"heart"), gzip(b"lung"));
        for member in [0, 1] {
            for from_end in 1..=8 {
                let mut members = [first.clone(), second.clone()];
                let at = members[member].len() - from_end;
                members[member][at] ^= 1;
                assert!(unpacked(&members.concat()).is_err(), "member {member}, byte {from_end} from its end");
            }
        }
        assert!(unpacked(&first[..first.len() - 1]).is_err());
    }

    #[test]
    fn what_is_not_gzip_passes_unchanged() {
        assert_eq!(unpacked(b"plain").unwrap(), (b"plain".to_vec(), false));
        assert!(Content::open(&b""[..]).unwrap().is_none());
    }
}
