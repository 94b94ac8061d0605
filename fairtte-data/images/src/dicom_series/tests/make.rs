//! A writer of small DICOM series for the tests.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Explicit,
    Implicit,
    BigEndian,
    RunLength,
    Deflated,
}

impl Syntax {
    fn uid(self) -> &'static str {
        match self {
            Self::Explicit => "1.2.840.10008.1.2.1",
            Self::Implicit => "1.2.840.10008.1.2",
            Self::BigEndian => "1.2.840.10008.1.2.2",
            Self::RunLength => "1.2.840.10008.1.2.5",
            Self::Deflated => "1.2.840.10008.1.2.1.99",
        }
    }
}

/// One slice; an empty list is an element left out.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub series: &'static str,
    pub image_type: &'static str,
    pub rows: usize,
    pub columns: usize,
    pub is_signed: bool,
    pub is_inverted: bool,
    pub n_frames: usize,
    pub position: Vec<f64>,
    pub orientation: Vec<f64>,
    pub pixel_spacing: Vec<f64>,
    pub scaling: [f64; 2],
    pub instance: Option<i64>,
    /// Bytes cut off at the end of the file.
    pub n_missing_bytes: usize,
    pub samples: Vec<i16>,
}

/// A series, one file per slice, named by their order in this list.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub slices: Vec<Slice>,
    pub syntax: Syntax,
    pub ending: &'static str,
    /// Length of a private element before the pixels.
    pub n_private_bytes: usize,
}

impl Series {
    /// Three axial slices of 4 rows and 5 columns, 2 mm apart, from the lowest up; the first stored file is the highest
    /// slice.
    pub(super) fn new() -> Self {
        let slice = |z: usize| Slice {
            series: "1.2.3",
            image_type: r"ORIGINAL\PRIMARY\M\ND",
            rows: 4,
            columns: 5,
            is_signed: true,
            is_inverted: false,
            n_frames: 1,
            position: vec![-10.0, 20.0, 30.0 + 2.0 * z as f64],
            orientation: vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            pixel_spacing: vec![0.75, 0.5],
            scaling: [2.0, -7.0],
            instance: Some(z as i64 + 11),
            n_missing_bytes: 0,
            samples: (0..20).map(|i| voxel(i % 5, i / 5, z)).collect(),
        };
        let slices = (0..3).map(slice).collect();
        Self { slices, syntax: Syntax::Explicit, ending: ".dcm", n_private_bytes: 0 }
    }

    pub(super) fn each(&mut self, change: impl Fn(&mut Slice)) {
        self.slices.iter_mut().for_each(change);
    }

    pub(super) fn write(&self, folder: &Path) {
        for (i, slice) in self.slices.iter().enumerate() {
            let mut bytes = self.file(slice);
            bytes.truncate(bytes.len() - slice.n_missing_bytes);
            std::fs::write(folder.join(format!("IM{:03}{}", 900 - i, self.ending)), bytes).unwrap();
        }
    }

    fn file(&self, slice: &Slice) -> Vec<u8> {
        let mut file = vec![0; 128];
        file.extend(b"DICM");
        let meta = Elements { syntax: Syntax::Explicit, bytes: Vec::new() };
        file.extend(meta.with((2, 0x10), *b"UI", self.syntax.uid().as_bytes()).bytes);
        let data_set = self.data_set(slice);
        if self.syntax == Syntax::Deflated {
            let mut deflated = DeflateEncoder::new(file, Compression::fast());
            deflated.write_all(&data_set).unwrap();
            return deflated.finish().unwrap();
        }
        file.extend(data_set);
        file
    }

    fn data_set(&self, slice: &Slice) -> Vec<u8> {
        let texts = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join("\\");
        let elements = Elements { syntax: self.syntax, bytes: Vec::new() }
            .text((8, 8), *b"CS", slice.image_type)
            .with((9, 0x1001), *b"OB", &vec![7; self.n_private_bytes])
            .text((0x18, 0x50), *b"DS", "3")
            .text((0x20, 0xe), *b"UI", slice.series)
            .text((0x20, 0x13), *b"IS", &slice.instance.map(|number| number.to_string()).unwrap_or_default())
            .text((0x20, 0x32), *b"DS", &texts(&slice.position))
            .text((0x20, 0x37), *b"DS", &texts(&slice.orientation))
            .number((0x28, 2), 1)
            .text((0x28, 4), *b"CS", if slice.is_inverted { "MONOCHROME1" } else { "MONOCHROME2" })
            .text((0x28, 8), *b"IS", &slice.n_frames.to_string())
            .number((0x28, 0x10), slice.rows as u16)
            .number((0x28, 0x11), slice.columns as u16)
            .text((0x28, 0x30), *b"DS", &texts(&slice.pixel_spacing))
            .number((0x28, 0x100), 16)
            .number((0x28, 0x101), 16)
            .number((0x28, 0x102), 15)
            .number((0x28, 0x103), u16::from(slice.is_signed))
            .text((0x28, 0x1052), *b"DS", &slice.scaling[1].to_string())
            .text((0x28, 0x1053), *b"DS", &slice.scaling[0].to_string());
        elements.pixels(&slice.samples)
    }
}

/// The value stored at column x, row y of the slice z, counted from the lowest.
pub(super) fn voxel(x: usize, y: usize, z: usize) -> i16 {
    // Distinct, also in both bytes, some negative.
    x as i16 * 251 + y as i16 * 1999 - z as i16 * 4003
}

struct Elements {
    syntax: Syntax,
    bytes: Vec<u8>,
}

impl Elements {
    fn half(&self, number: u16) -> [u8; 2] {
        if self.syntax == Syntax::BigEndian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn word(&self, number: u32) -> [u8; 4] {
        if self.syntax == Syntax::BigEndian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// Group and element number, representation, length; undefined length if `None`.
    fn header(&mut self, (group, element): (u16, u16), kind: [u8; 2], n: Option<usize>) {
        let n = n.map_or(u32::MAX, |n| n as u32);
        self.bytes.extend(self.half(group));
        self.bytes.extend(self.half(element));
        if self.syntax == Syntax::Implicit || group == 0xfffe {
            return self.bytes.extend(self.word(n));
        }
        self.bytes.extend(kind);
        if matches!(&kind, b"OB" | b"OW") {
            self.bytes.extend([0, 0]);
            return self.bytes.extend(self.word(n));
        }
        self.bytes.extend(self.half(n as u16));
    }

    fn with(mut self, tag: (u16, u16), kind: [u8; 2], value: &[u8]) -> Self {
        let n_padding = value.len() % 2;
        self.header(tag, kind, Some(value.len() + n_padding));
        self.bytes.extend(value);
        self.bytes.extend(vec![0; n_padding]);
        self
    }

    /// Left out if empty.
    fn text(self, tag: (u16, u16), kind: [u8; 2], value: &str) -> Self {
        if value.is_empty() { self } else { self.with(tag, kind, value.as_bytes()) }
    }

    fn number(self, tag: (u16, u16), number: u16) -> Self {
        let value = self.half(number);
        self.with(tag, *b"US", &value)
    }

    fn pixels(mut self, samples: &[i16]) -> Vec<u8> {
        const PIXELS: (u16, u16) = (0x7fe0, 0x10);
        const ITEM: (u16, u16) = (0xfffe, 0xe000);
        if self.syntax != Syntax::RunLength {
            let bytes: Vec<u8> = samples.iter().flat_map(|sample| self.half(sample.cast_unsigned())).collect();
            return self.with(PIXELS, *b"OW", &bytes).bytes;
        }
        let segment = |shift: u32| {
            let bytes = samples.iter().map(|sample| (sample.cast_unsigned() >> shift) as u8);
            // Each byte is a separate literal.
            bytes.flat_map(|byte| [0, byte]).collect::<Vec<u8>>()
        };
        let (high, low) = (segment(8), segment(0));
        let mut offsets = [0_u32; 16];
        offsets[..3].copy_from_slice(&[2, 64, 64 + high.len() as u32]);
        let stream = [offsets.map(u32::to_le_bytes).concat(), high, low].concat();
        self.header(PIXELS, *b"OB", None);
        let mut fragments = self.with(ITEM, *b"  ", &[]).with(ITEM, *b"  ", &stream);
        fragments.header((0xfffe, 0xe0dd), *b"  ", Some(0));
        fragments.bytes
    }
}
