//! A weight file of any container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::bytes::Malformed;
use super::contents::{Contents, TopLevel};
use super::pickle::shown;
use super::tensor::{ElementType, StoredTensor, values};
use super::{burnpack, legacy, safetensors_file, zip, zip_pickle};
use crate::ModelError;

/// How the tensors are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// A header of JSON, then the tensors.
    Safetensors,
    /// `torch.save` since torch 1.6.
    ZipPickle,
    /// `torch.save` before torch 1.6.
    LegacyPickle,
    /// What a run of this program keeps: burn's `burnpack`.
    Burnpack,
}

impl Container {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::ZipPickle => "zip pickle (torch 1.6 or newer)",
            Self::LegacyPickle => "legacy pickle (before torch 1.6)",
            Self::Burnpack => "burnpack",
        }
    }

    /// Recognises the container by its first bytes.
    fn detect(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.starts_with(&zip::START) || bytes.starts_with(b"PK\x05\x06") {
            return Ok(Self::ZipPickle);
        }
        if bytes.starts_with(&legacy::START) {
            return Ok(Self::LegacyPickle);
        }
        if bytes.starts_with(&burnpack::START) {
            return Ok(Self::Burnpack);
        }
        if bytes.len() >= 9 && bytes[8] == b'{' {
            return Ok(Self::Safetensors);
        }
        let expected = "safetensors, or what torch.save writes (a zip archive or a pickle with torch's magic number)";
        Err(Malformed::new(0, expected, first_bytes(bytes)))
    }
}

/// Describes the first bytes of a file, for users who chose a wrong one.
fn first_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "an empty file".to_owned(),
        [0x80, protocol @ 0..=5, ..] => format!("a plain pickle of protocol {protocol}, which holds no torch tensors"),
        [b'<', ..] => "text that begins with <, as a web page does".to_owned(),
        _ if bytes.starts_with(b"version https://git-lfs") => {
            "a pointer of Git LFS in place of the file; fetch the file itself".to_owned()
        }
        _ if bytes.starts_with(b"\x89HDF") => "an HDF5 file".to_owned(),
        [0x1f, 0x8b, ..] => "a gzip file; unpack it first".to_owned(),
        _ => {
            let shown: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("bytes {}", shown.join(" "))
        }
    }
}

/// A weight file, read and checked; the values of a tensor are converted on request.
pub struct WeightFile {
    path: PathBuf,
    container: Container,
    bytes: Vec<u8>,
    contents: Contents,
}

impl std::fmt::Debug for WeightFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("WeightFile");
        shown.field("path", &self.path).field("container", &self.container);
        shown.field("n_tensors", &self.contents.tensors.len()).finish_non_exhaustive() // not the bytes
    }
}

impl WeightFile {
    /// Reads `path`, whose container is recognised by its first bytes. Nothing in it is executed. Needs little more
    /// memory than the size of the file.
    ///
    /// # Errors
    /// [`ModelError::ReadWeights`] if it cannot be read, [`ModelError::DamagedWeights`] with place and expectation if it
    /// is damaged or none of the containers.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let unreadable =
            |error: std::io::Error| ModelError::ReadWeights { path: path.to_owned(), reason: error.to_string() };
        Self::parse(path, std::fs::read(path).map_err(unreadable)?)
    }

    /// As [`open`](Self::open), from the bytes of the file `path`.
    ///
    /// # Errors
    /// As there.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, ModelError> {
        let read = || {
            let container = Container::detect(&bytes)?;
            let contents = match container {
                Container::Safetensors => safetensors_file::read(&bytes)?,
                Container::ZipPickle => zip_pickle::read(&bytes)?,
                Container::LegacyPickle => legacy::read(&bytes)?,
                Container::Burnpack => burnpack::read(&bytes)?,
            };
            Ok((container, contents))
        };
        let (container, contents) = read().map_err(|malformed: Malformed| malformed.of(path))?;
        Ok(Self { path: path.to_owned(), container, bytes, contents })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the tensors are packed.
    pub fn container(&self) -> Container {
        self.container
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The tensors in the order of the file.
    pub fn tensors(&self) -> &[StoredTensor] {
        &self.contents.tensors
    }

    /// The outermost keys that are not tensors; none for safetensors.
    pub fn top(&self) -> &[TopLevel] {
        &self.contents.top
    }

    /// The outermost value in words.
    pub fn root(&self) -> &str {
        &self.contents.root
    }

    /// Metadata of a safetensors file, by key.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.contents.metadata
    }

    /// Classes and functions that a pickle names and that were neither built nor called.
    pub fn not_built(&self) -> &BTreeSet<String> {
        &self.contents.not_built
    }

    /// The elements of `tensor`, one of [`tensors`](Self::tensors), in row-major order. `f64` is rounded to `f32`.
    ///
    /// # Errors
    /// [`ModelError::DamagedWeights`] for an element type that is not read, or deflated bytes that are damaged.
    pub fn values(&self, tensor: &StoredTensor) -> Result<Vec<f32>, ModelError> {
        let read = || {
            let storage = self.contents.storages.get(tensor.storage);
            let storage = storage.ok_or_else(|| Malformed::new(0, "a tensor of this file", "another"))?;
            if let ElementType::Other { name, .. } = tensor.element {
                let expected = format!("numbers in {}", shown(&tensor.name()));
                return Err(Malformed::new(0, expected, format!("elements of type {name}, which are not read")));
            }
            values(&self.bytes, tensor, storage)
        };
        read().map_err(|malformed: Malformed| malformed.of(&self.path))
    }
}
