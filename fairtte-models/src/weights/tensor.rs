//! A tensor of a file: element type, shape, strides and the storage that it is a view of.
//!
//! Element `(i, j, ..)` is at `offset + i stride_0 + j stride_1 + ..` of its storage, counted in elements. Several
//! tensors may share one storage. A tensor has no more elements than its storage, so the size of the file bounds what
//! is allocated; torch's expanded tensors (stride 0) are refused by this rule, and no state dictionary has them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{bf16, f16};

use super::bytes::Malformed;

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float (IEEE half).
    F16,
    /// 16-bit float with the range of `f32`.
    BF16,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// A type that no weights here have (complex, quantised, 8-bit floats): listed, not read.
    Other {
        /// Its name.
        name: &'static str,
        /// Bytes per element.
        size: usize,
    },
}

impl ElementType {
    /// Short name, as in `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::Other { name, .. } => name,
        }
    }

    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::Other { size, .. } => size,
        }
    }

    /// The element in `bytes` (little-endian) as `f32`: `f64` is rounded to the nearest, integers beyond 2^24 too.
    #[expect(clippy::cast_possible_truncation, reason = "weights are computed with in f32")]
    #[expect(clippy::many_single_char_names, reason = "eight bytes in a row")]
    fn to_f32(self, bytes: &[u8]) -> f32 {
        match *bytes {
            [a] => match self {
                Self::I8 => f32::from(a.cast_signed()),
                Self::Bool => f32::from(u8::from(a != 0)),
                _ => f32::from(a),
            },
            [a, b] => match self {
                Self::BF16 => bf16::from_le_bytes([a, b]).to_f32(),
                Self::I16 => f32::from(i16::from_le_bytes([a, b])),
                _ => f16::from_le_bytes([a, b]).to_f32(),
            },
            [a, b, c, d] if self == Self::I32 => i32::from_le_bytes([a, b, c, d]) as f32,
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
            [a, b, c, d, e, f, g, h] if self == Self::I64 => i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            _ => f32::NAN, // not reached: `values` refuses all other types
        }
    }
}

/// The location of the bytes of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Uncompressed, in these bytes of the file.
    Plain(Range<usize>),
    /// Deflated in these bytes of the file, `size` of them when inflated.
    Deflated {
        range: Range<usize>,
        size: usize,
        /// CRC-32 of the inflated bytes.
        crc: u32,
    },
    /// A copy of them, where a container does not tell their place.
    Held(Arc<[u8]>),
}

impl Bytes {
    pub(super) fn n(&self) -> usize {
        match self {
            Self::Plain(range) => range.len(),
            Self::Deflated { size, .. } => *size,
            Self::Held(bytes) => bytes.len(),
        }
    }

    /// Returns the bytes, given the whole file.
    pub(super) fn read<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, Malformed> {
        match self {
            Self::Plain(range) => Ok(Cow::Borrowed(&file[range.clone()])),
            Self::Deflated { range, size, crc } => super::zip::inflate(file, range, *size, *crc).map(Cow::Owned),
            Self::Held(bytes) => Ok(Cow::Owned(bytes.to_vec())),
        }
    }
}

/// The elements that tensors are views of.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) element: ElementType,
    pub(super) bytes: Bytes,
    pub(super) big_endian: bool,
}

/// A tensor of a weight file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    /// Keys of the dictionaries that contain it, from the outermost; empty for a plain state dictionary.
    pub group: Vec<String>,
    /// Its own key.
    pub key: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Sizes of its axes; empty for a single number.
    pub shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) offset: usize,
    pub(super) storage: usize,
}

impl StoredTensor {
    /// Number of elements.
    pub fn n(&self) -> usize {
        self.shape.iter().product()
    }

    /// Keys joined by `/`.
    pub fn name(&self) -> String {
        self.group.iter().chain([&self.key]).map(String::as_str).collect::<Vec<_>>().join("/")
    }

    /// Whether elements are contiguous in row-major order.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1_usize;
        self.shape.iter().zip(&self.strides).rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == expected;
            expected = expected.saturating_mul(*size);
            fits
        })
    }
}

/// The elements in row-major order, as `f32`.
pub(super) fn values(file: &[u8], tensor: &StoredTensor, storage: &Storage) -> Result<Vec<f32>, Malformed> {
    let bytes = storage.bytes.read(file)?;
    let size = storage.element.size();
    let mut element = [0_u8; 8];
    let mut read = |index: usize| {
        let element = &mut element[..size];
        element.copy_from_slice(&bytes[index * size..(index + 1) * size]);
        if storage.big_endian {
            element.reverse();
        }
        storage.element.to_f32(element)
    };
    let n = tensor.n();
    if tensor.is_contiguous() {
        return Ok((tensor.offset..tensor.offset + n).map(read).collect());
    }
    let mut values = Vec::with_capacity(n); // at most the number in the storage
    let mut index = vec![0_usize; tensor.shape.len()];
    for _ in 0..n {
        let place: usize = index.iter().zip(&tensor.strides).map(|(i, stride)| i * stride).sum();
        values.push(read(tensor.offset + place));
        for (i, size) in index.iter_mut().zip(&tensor.shape).rev() {
            *i += 1;
            if *i < *size {
                break;
            }
            *i = 0;
        }
    }
    Ok(values)
}

/// The reason why a tensor of this shape cannot be a view of `n_stored` elements, if there is one.
pub(super) fn misfit(shape: &[usize], strides: &[usize], offset: usize, n_stored: usize) -> Option<String> {
    if shape.len() != strides.len() {
        return Some(format!("{} sizes and {} strides", shape.len(), strides.len()));
    }
    let Some(n) = shape.iter().try_fold(1_usize, |n, size| n.checked_mul(*size)) else {
        return Some(format!("shape {shape:?} with more elements than can be counted"));
    };
    if n == 0 {
        return None; // an empty tensor refers to no element
    }
    if n > n_stored {
        return Some(format!("shape {shape:?} with more elements than the {n_stored} of its storage"));
    }
    let last = shape.iter().zip(strides).try_fold(offset, |last, (size, stride)| {
        (size - 1).checked_mul(*stride).and_then(|step| last.checked_add(step))
    });
    match last {
        Some(last) if last < n_stored => None,
        _ => Some(format!("a view of shape {shape:?} that leaves its storage of {n_stored} elements")),
    }
}
