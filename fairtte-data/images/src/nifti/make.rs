//! Made-up NIfTI files for the tests, written byte by byte from the standards.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{ByteOrder, Version};

/// A file to be written; the defaults are a little-endian NIfTI-1 file of 16-bit numbers without any matrix.
#[derive(Clone)]
pub(crate) struct Made {
    pub version: Version,
    pub order: ByteOrder,
    pub code: i16,
    pub is_pair: bool,
    pub dim: Vec<i64>,
    pub pixdim: [f64; 8],
    pub scaling: [f64; 2],
    /// `qform_code`, `sform_code`.
    pub codes: [i16; 2],
    pub quaternion: [f64; 3],
    pub shift: [f64; 3],
    pub rows: [[f64; 4]; 3],
    pub offset: i64,
    pub intent: i16,
}

impl Made {
    pub(crate) fn new(dim: &[i64]) -> Self {
        Self {
            version: Version::One,
            order: ByteOrder::Little,
            code: 4,
            is_pair: false,
            dim: dim.to_vec(),
            pixdim: [1.0; 8],
            scaling: [0.0; 2],
            codes: [0; 2],
            quaternion: [0.0; 3],
            shift: [0.0; 3],
            rows: [[0.0; 4]; 3],
            offset: 0,
            intent: 0,
        }
    }

    /// The header, and for single files the four bytes for "no extension".
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = match self.version {
            Version::One => self.first(),
            Version::Two => self.second(),
        };
        if !self.is_pair {
            header.extend([0; 4]);
        }
        header
    }

    /// Header and voxels in one.
    pub(crate) fn file(&self, values: &[f64]) -> Vec<u8> {
        [self.header(), self.voxels(values)].concat()
    }

    pub(crate) fn voxels(&self, values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| self.number(*value)).collect()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values chosen to fit their type")]
    fn number(&self, value: f64) -> Vec<u8> {
        let mut bytes = match self.code {
            2 => (value as u8).to_le_bytes().to_vec(),
            256 => (value as i8).to_le_bytes().to_vec(),
            512 => (value as u16).to_le_bytes().to_vec(),
            4 => (value as i16).to_le_bytes().to_vec(),
            768 => (value as u32).to_le_bytes().to_vec(),
            8 => (value as i32).to_le_bytes().to_vec(),
            1280 => (value as u64).to_le_bytes().to_vec(),
            1024 => (value as i64).to_le_bytes().to_vec(),
            16 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }

    fn put(&self, header: &mut [u8], at: usize, low_first: &[u8]) {
        let place = &mut header[at..at + low_first.len()];
        place.copy_from_slice(low_first);
        if self.order == ByteOrder::Big {
            place.reverse();
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the older header has smaller numbers")]
    fn first(&self) -> Vec<u8> {
        let mut header = vec![0; 348];
        let put = |header: &mut [u8], at: usize, bytes: &[u8]| self.put(header, at, bytes);
        let float = |header: &mut [u8], at: usize, value: f64| self.put(header, at, &(value as f32).to_le_bytes());
        put(&mut header, 0, &348_i32.to_le_bytes());
        put(&mut header, 40, &(self.dim.len() as i16).to_le_bytes());
        for (i, extent) in self.dim.iter().enumerate() {
            put(&mut header, 42 + 2 * i, &(*extent as i16).to_le_bytes());
        }
        put(&mut header, 68, &self.intent.to_le_bytes());
        put(&mut header, 70, &self.code.to_le_bytes());
        for (i, distance) in self.pixdim.into_iter().enumerate() {
            float(&mut header, 76 + 4 * i, distance);
        }
        float(&mut header, 108, self.offset as f64);
        float(&mut header, 112, self.scaling[0]);
        float(&mut header, 116, self.scaling[1]);
        put(&mut header, 252, &self.codes[0].to_le_bytes());
        put(&mut header, 254, &self.codes[1].to_le_bytes());
        for (i, value) in
            self.quaternion.into_iter().chain(self.shift).chain(self.rows.into_iter().flatten()).enumerate()
        {
            float(&mut header, 256 + 4 * i, value);
        }
        header[344..348].copy_from_slice(if self.is_pair { b"ni1\0" } else { b"n+1\0" });
        header
    }

    fn second(&self) -> Vec<u8> {
        let mut header = vec![0; 540];
        let put = |header: &mut [u8], at: usize, bytes: &[u8]| self.put(header, at, bytes);
        let float = |header: &mut [u8], at: usize, value: f64| self.put(header, at, &value.to_le_bytes());
        put(&mut header, 0, &540_i32.to_le_bytes());
        header[4..12].copy_from_slice(if self.is_pair { b"ni2\0\r\n\x1a\n" } else { b"n+2\0\r\n\x1a\n" });
        put(&mut header, 12, &self.code.to_le_bytes());
        put(&mut header, 16, &(self.dim.len() as u64).to_le_bytes());
        for (i, extent) in self.dim.iter().enumerate() {
            put(&mut header, 24 + 8 * i, &extent.to_le_bytes());
        }
        for (i, distance) in self.pixdim.into_iter().enumerate() {
            float(&mut header, 104 + 8 * i, distance);
        }
        put(&mut header, 168, &self.offset.to_le_bytes());
        float(&mut header, 176, self.scaling[0]);
        float(&mut header, 184, self.scaling[1]);
        put(&mut header, 344, &i32::from(self.codes[0]).to_le_bytes());
        put(&mut header, 348, &i32::from(self.codes[1]).to_le_bytes());
        for (i, value) in
            self.quaternion.into_iter().chain(self.shift).chain(self.rows.into_iter().flatten()).enumerate()
        {
            float(&mut header, 352 + 8 * i, value);
        }
        put(&mut header, 504, &i32::from(self.intent).to_le_bytes());
        header
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}
