//! The tensors of the files that a strategy saves, read and written without its code.

use std::collections::BTreeMap;
use std::path::Path;

use burn_pack::{Bytes, DType, Reader, Tensor, Writer};
use serde::Deserialize;

/// Weight i is shift + scale * v(seed, i).
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Formula {
    seed: u32,
    scale: f64,
    shift: f64,
}

impl Formula {
    fn values(self, n: usize) -> Vec<f64> {
        (0..n).map(|i| self.shift + self.scale * v(self.seed, i)).collect()
    }
}

/// Entry i of stream `seed`, in [-1, 1) in steps of 2^-12: the formula of `fairtte-models/parity/gradients.py`.
pub fn v(seed: u32, i: usize) -> f64 {
    let mut x = u32::try_from(i).unwrap().wrapping_add(seed.wrapping_mul(0x9E37_79B9));
    x ^= x >> 16;
    x = x.wrapping_mul(0x7FEB_352D);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846C_A68B);
    x ^= x >> 16;
    f64::from(x >> 19) / 4096.0 - 1.0
}

/// All numbers of one file by the name of the tensor.
pub type Numbers = BTreeMap<String, Vec<f64>>;

fn tensors(path: &Path) -> Vec<Tensor> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Reader::from_bytes(Bytes::from_bytes_vec(bytes)).unwrap().into_tensors().unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    let bytes = tensor.to_bytes().unwrap();
    bytes.chunks_exact(4).map(|four| f64::from(f32::from_le_bytes(four.try_into().unwrap()))).collect()
}

/// The content of `FOLDER/FILE.weights.bpk`.
pub fn read(folder: &Path, file: &str) -> Numbers {
    let all = tensors(&folder.join(format!("{file}.weights.bpk")));
    all.iter().filter(|tensor| tensor.dtype == DType::F32).map(|tensor| (tensor.name.clone(), values(tensor))).collect()
}

/// Replaces every tensor of the file by the values of its formula; every tensor must have one.
pub fn rewrite(folder: &Path, file: &str, formulas: &BTreeMap<String, Formula>) {
    let path = folder.join(format!("{file}.weights.bpk"));
    let mut found = Vec::new();
    let written = tensors(&path).into_iter().map(|tensor| {
        if tensor.dtype != DType::F32 {
            return tensor;
        }
        found.push(tensor.name.clone());
        let formula = formulas.get(&tensor.name).unwrap_or_else(|| panic!("{file} {} has no formula", tensor.name));
        let numbers = formula.values(tensor.byte_len() / 4);
        #[expect(clippy::cast_possible_truncation, reason = "the formula gives numbers that f32 holds exactly")]
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
        Tensor::new(
            tensor.name.clone(),
            tensor.dtype,
            tensor.shape.clone(),
            tensor.param_id,
            Bytes::from_bytes_vec(bytes),
        )
    });
    let bytes = Writer::new(written.collect()).into_bytes().unwrap();
    std::fs::write(&path, &bytes[..]).unwrap();
    found.sort();
    assert_eq!(found, formulas.keys().cloned().collect::<Vec<_>>(), "{file}: names of the tensors");
}
