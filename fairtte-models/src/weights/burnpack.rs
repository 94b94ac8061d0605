//! The records of this program's own runs (`network.weights.bpk`): burn's container `burnpack`, a header of CBOR and the
//! tensors one after the other, little-endian and contiguous.
//!
//! The `burn-pack` crate limits the size of the header and checks that every tensor lies within the file.

use std::sync::Arc;

use burn::tensor::{Bytes as BurnBytes, DType};
use burn_pack::Reader;

use super::bytes::Malformed;
use super::contents::Contents;
use super::safetensors_file::row_major;
use super::tensor::{Bytes, ElementType, Storage, StoredTensor};

/// `BURN`, little-endian.
pub(super) const START: [u8; 4] = *b"NRUB";

/// Reads a whole file. The bytes of the tensors are copied.
pub(super) fn read(file: &[u8]) -> Result<Contents, Malformed> {
    let unusable = |error: burn_pack::Error| Malformed::new(0, "a burnpack file", error.to_string());
    let reader = Reader::from_bytes(BurnBytes::from_bytes_vec(file.to_vec())).map_err(unusable)?;
    let metadata = reader.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let root = "a record of a run of fairtte".to_owned();
    let mut contents = Contents { metadata, root, ..Contents::default() };
    let tensors = reader.into_tensors().map_err(unusable)?;
    let n_bytes = tensors.iter().fold(0_usize, |n, tensor| n.saturating_add(tensor.byte_len()));
    if n_bytes > file.len() {
        return Err(Malformed::new(0, "tensors that fit into the file", format!("{n_bytes} bytes that overlap")));
    }
    for tensor in tensors {
        let (key, dtype, shape, _, bytes) = tensor.into_parts().map_err(unusable)?;
        let (element, shape, bytes) = (element(dtype), shape.to_vec(), Bytes::Held(Arc::from(&bytes[..])));
        contents.storages.push(Storage { element, bytes, big_endian: false });
        contents.tensors.push(StoredTensor {
            group: Vec::new(),
            key,
            element,
            strides: row_major(&shape),
            shape,
            offset: 0,
            storage: contents.storages.len() - 1,
        });
    }
    Ok(contents)
}

fn element(dtype: DType) -> ElementType {
    match dtype {
        DType::F64 => ElementType::F64,
        DType::F32 => ElementType::F32,
        DType::F16 => ElementType::F16,
        DType::BF16 => ElementType::BF16,
        DType::I64 => ElementType::I64,
        DType::I32 => ElementType::I32,
        DType::I16 => ElementType::I16,
        DType::I8 => ElementType::I8,
        DType::U8 => ElementType::U8,
        other => ElementType::Other { name: "a type of burn without a counterpart", size: other.size() },
    }
}
