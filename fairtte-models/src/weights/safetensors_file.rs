//! safetensors: a header of JSON, then the tensors one after the other, little-endian and contiguous.
//!
//! The `safetensors` crate checks that the tensors of the header fill the rest of the file without gap or overlap.

use safetensors::{Dtype, SafeTensors};
use serde_json::{Map, Value, json};

use super::bytes::Malformed;
use super::contents::Contents;
use super::tensor::{Bytes, ElementType, Storage, StoredTensor};

/// Reads a whole file.
pub(super) fn read(file: &[u8]) -> Result<Contents, Malformed> {
    let unusable = |error: safetensors::SafeTensorError| Malformed::new(0, "a safetensors file", error.to_string());
    let (n, header) = SafeTensors::read_metadata(file).map_err(unusable)?;
    let start = n + 8;
    let mut metadata: Vec<(String, String)> =
        header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    metadata.sort();
    let mut contents = Contents { metadata, root: "a safetensors file".to_owned(), ..Contents::default() };
    for key in header.offset_keys() {
        let Some(info) = header.info(&key) else { continue }; // its own key
        let (from, to) = info.data_offsets;
        let element = element(info.dtype);
        contents.storages.push(Storage { element, bytes: Bytes::Plain(start + from..start + to), big_endian: false });
        contents.tensors.push(StoredTensor {
            group: Vec::new(),
            key,
            element,
            strides: row_major(&info.shape),
            shape: info.shape.clone(),
            offset: 0,
            storage: contents.storages.len() - 1,
        });
    }
    Ok(contents)
}

pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1)); // an empty tensor may declare any sizes
    }
    strides
}

/// The beginning of a file with tensors of `f32` of these names and shapes, in the order of their bytes: its length, then
/// JSON, filled up with spaces to a multiple of 8 bytes.
pub(super) fn header<'a>(
    metadata: Map<String, Value>,
    tensors: impl Iterator<Item = (&'a str, &'a [usize])>,
) -> Vec<u8> {
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), Value::Object(metadata));
    let mut end = 0;
    for (name, shape) in tensors {
        let start = end;
        end += 4 * shape.iter().product::<usize>();
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, end] });
        header.insert(name.to_owned(), entry);
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes
}

fn element(dtype: Dtype) -> ElementType {
    let other = |name, size| ElementType::Other { name, size };
    match dtype {
        Dtype::F64 => ElementType::F64,
        Dtype::F32 => ElementType::F32,
        Dtype::F16 => ElementType::F16,
        Dtype::BF16 => ElementType::BF16,
        Dtype::I64 => ElementType::I64,
        Dtype::I32 => ElementType::I32,
        Dtype::I16 => ElementType::I16,
        Dtype::I8 => ElementType::I8,
        Dtype::U8 => ElementType::U8,
        Dtype::BOOL => ElementType::Bool,
        Dtype::U16 => other("u16", 2),
        Dtype::U32 => other("u32", 4),
        Dtype::U64 => other("u64", 8),
        Dtype::C64 => other("complex64", 8),
        _ => other("an 8-bit or smaller float", 1),
    }
}
