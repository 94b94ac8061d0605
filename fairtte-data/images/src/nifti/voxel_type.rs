//! The numbers a voxel can be: codes of the NIfTI field `datatype`, their size, and reading them in either byte order.
//!
//! Source: NIfTI-1 and NIfTI-2 standards (`nifti1.h`, `nifti2.h`: the codes are the same). The ten real types up to 64
//! bits are read; 128-bit floats, complex numbers, colours and single bits are named in the refusal. Every value
//! becomes an `f64`, exactly except for 64-bit integers beyond 2^53, which are rounded to the nearest.

use serde::Serialize;

use crate::{Fault, Undecodable};

/// Whether the lowest byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByteOrder {
    /// Lowest byte first (x86, ARM).
    Little,
    /// Highest byte first (older scanners and workstations).
    Big,
}

/// A real voxel type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoxelType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl VoxelType {
    pub(crate) fn from_code(code: i16) -> Result<Self, Undecodable> {
        let refused = |kind: &str| {
            let detail = format!("voxels are {kind} (datatype {code}), expected whole or floating-point numbers");
            Err(Undecodable::new(Fault::Unsupported, detail))
        };
        match code {
            2 => Ok(Self::U8),
            4 => Ok(Self::I16),
            8 => Ok(Self::I32),
            16 => Ok(Self::F32),
            64 => Ok(Self::F64),
            256 => Ok(Self::I8),
            512 => Ok(Self::U16),
            768 => Ok(Self::U32),
            1024 => Ok(Self::I64),
            1280 => Ok(Self::U64),
            1 => refused("single bits"),
            32 | 1792 | 2048 => refused("complex numbers"),
            128 => refused("RGB colours"),
            2304 => refused("RGBA colours"),
            1536 => refused("128-bit floats"),
            _ => {
                let detail = format!("datatype is {code}, expected a code of the NIfTI standard such as 4 (int16)");
                Err(Undecodable::new(Fault::Unreadable, detail))
            }
        }
    }

    /// The name of the type in numpy.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    pub(crate) fn n_bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Calls `take` with every value of `bytes` in turn; a remainder shorter than one value is ignored.
    pub(crate) fn for_each(self, order: ByteOrder, bytes: &[u8], mut take: impl FnMut(f64)) {
        macro_rules! read {
            ($number:ty) => {{
                let (values, _) = bytes.as_chunks();
                match order {
                    ByteOrder::Little => values.iter().for_each(|v| take(<$number>::from_le_bytes(*v).into_f64())),
                    ByteOrder::Big => values.iter().for_each(|v| take(<$number>::from_be_bytes(*v).into_f64())),
                }
            }};
        }
        match self {
            Self::U8 => read!(u8),
            Self::I8 => read!(i8),
            Self::U16 => read!(u16),
            Self::I16 => read!(i16),
            Self::U32 => read!(u32),
            Self::I32 => read!(i32),
            Self::U64 => read!(u64),
            Self::I64 => read!(i64),
            Self::F32 => read!(f32),
            Self::F64 => read!(f64),
        }
    }
}

/// Like `Into<f64>`, with rounding for the 64-bit integers.
trait IntoF64 {
    fn into_f64(self) -> f64;
}

macro_rules! exact {
    ($($number:ty),*) => { $(impl IntoF64 for $number { fn into_f64(self) -> f64 { self.into() } })* };
}
macro_rules! rounded {
    ($($number:ty),*) => { $(impl IntoF64 for $number { fn into_f64(self) -> f64 { self as f64 } })* };
}
exact!(u8, i8, u16, i16, u32, i32, f32, f64);
rounded!(u64, i64);

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_either_byte_order() {
        let values = |kind: VoxelType, order, bytes: &[u8]| {
            let mut values = Vec::new();
            kind.for_each(order, bytes, |value| values.push(value));
            values
        };
        assert_eq!(values(VoxelType::I16, ByteOrder::Little, &[0xfe, 0xff, 1, 0, 9]), [-2.0, 1.0]);
        assert_eq!(values(VoxelType::I16, ByteOrder::Big, &[0xff, 0xfe, 0, 1]), [-2.0, 1.0]);
        assert_eq!(values(VoxelType::U64, ByteOrder::Big, &u64::MAX.to_be_bytes()), [18_446_744_073_709_551_615.0]);
        assert_eq!(values(VoxelType::F64, ByteOrder::Big, &0.1_f64.to_be_bytes()), [0.1]);
        assert_eq!(values(VoxelType::I8, ByteOrder::Big, &[128]), [-128.0]);
    }

    #[test]
    fn what_is_no_real_number_is_named_in_the_refusal() {
        for (code, reason, part) in [
            (1792, Fault::Unsupported, "complex"),
            (128, Fault::Unsupported, "RGB"),
            (2304, Fault::Unsupported, "RGBA"),
            (1536, Fault::Unsupported, "128-bit"),
            (1, Fault::Unsupported, "bits"),
            (77, Fault::Unreadable, "datatype is 77"),
            (0, Fault::Unreadable, "datatype is 0"),
        ] {
            let refused = VoxelType::from_code(code).unwrap_err();
            assert_eq!(refused.fault, reason);
            assert!(refused.detail.contains(part), "{}", refused.detail);
        }
    }
}
