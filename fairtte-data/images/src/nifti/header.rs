//! The header of a NIfTI-1 or NIfTI-2 file: the fields that the reader needs, checked.
//!
//! Source: NIfTI-1 standard (Cox et al. 2004, `nifti1.h`), NIfTI-2 standard (2011, `nifti2.h`). The magic text decides
//! the version, so that a wrong `sizeof_hdr` is harmless. NIfTI-1 is parsed by the `nifti` crate; NIfTI-2 is parsed
//! here. Repairs and refusals follow nibabel 5.4 (`nifti1.py`, `analyze.py`): spacings of 0 count as 1 and negative
//! ones by their magnitude, a slope of 0 or NaN means no scaling, unknown transform codes count as 0, an offset of the
//! voxels inside the header is refused (0 means "directly after it"). Refused beyond that: sizes below 1, CIFTI
//! matrices (no image), and ANALYZE 7.5 headers, which do not define the left side of the body.

use nifti::{Endianness, NiftiHeader};

use super::affine::{Affine, AffineFields};
use super::voxel_type::{ByteOrder, VoxelType};
use crate::{Fault, Undecodable};

/// Bytes of a NIfTI-2 header, the longer of the two.
pub(super) const HEADER_BYTES: usize = BYTES_2;
const BYTES_1: usize = 348;
const ANNOUNCED_BYTES_1: i32 = 348;
const BYTES_2: usize = 540;

/// Which standard the file follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// A checked header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub version: Version,
    /// Whether the voxels are in another file (`.hdr/.img`).
    pub is_pair: bool,
    /// Where the voxels begin in the file that holds them.
    pub offset: u64,
    pub grid: Grid,
}

/// Type, extents and positions of stored voxels, for every format.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub byte_order: ByteOrder,
    /// Extents, `[x, y, z, ..]`, 1 to 7 of them, each at least 1.
    pub shape: Vec<usize>,
    pub voxel_type: VoxelType,
    /// Distance of neighbours along each axis: millimetres, and usually seconds along the fourth.
    pub spacing: Vec<f64>,
    /// Slope and intercept, if the stored numbers are to be scaled.
    pub scaling: Option<[f64; 2]>,
    /// From voxel indices to millimetres, or the sentence why there is no usable matrix.
    pub affine: Result<Affine, String>,
}

/// The common fields of both versions.
struct Fields {
    dim: [i64; 8],
    datatype: i16,
    intent_code: i32,
    pixdim: [f64; 8],
    offset: i64,
    slope: f64,
    intercept: f64,
    codes: [i32; 2],
    quaternion: [f64; 3],
    shift: [f64; 3],
    rows: [[f64; 4]; 3],
}

impl Header {
    /// Parses the first bytes of a file (at least [`HEADER_BYTES`] of them unless the file is shorter).
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Undecodable> {
        let (version, is_pair) = magic(bytes)?;
        let (byte_order, fields) = match version {
            Version::One => first_version(bytes)?,
            Version::Two => second_version(bytes)?,
        };
        let shape = shape(&fields.dim)?;
        if (3000..3100).contains(&fields.intent_code) {
            let detail = "the file is a CIFTI matrix in a NIfTI-2 container, expected a volume";
            return Err(Undecodable::new(Fault::Unsupported, detail));
        }
        let voxel_type = VoxelType::from_code(fields.datatype)?;
        let spacing = spacing(&fields.pixdim);
        let affine = Affine::choose(&AffineFields {
            sform_code: fields.codes[1],
            qform_code: fields.codes[0],
            rows: fields.rows,
            quaternion: fields.quaternion,
            shift: fields.shift,
            qfac: fields.pixdim[0],
            spacing: [spacing[0], spacing[1], spacing[2]],
            size: std::array::from_fn(|axis| shape.get(axis).copied().unwrap_or(1)),
            n_axes: shape.len(),
        });
        let offset = offset(fields.offset, version, is_pair)?;
        let spacing = spacing[..shape.len()].to_vec();
        let scaling = scaling(fields.slope, fields.intercept)?;
        Ok(Self { version, is_pair, offset, grid: Grid { byte_order, shape, voxel_type, spacing, scaling, affine } })
    }
}

impl Grid {
    /// The first three extents, missing ones 1.
    pub(crate) fn space(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.shape.get(axis).copied().unwrap_or(1))
    }

    /// Like `5 x 6 x 7`.
    pub(crate) fn shown_shape(&self) -> String {
        self.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
    }

    /// Voxels of the whole array, `None` beyond 2^64.
    pub(crate) fn n_voxels(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |n, extent| n.checked_mul(*extent as u64))
    }

    /// The value that a stored number stands for.
    pub(crate) fn scaled(&self, stored: f64) -> f64 {
        self.scaling.map_or(stored, |[slope, intercept]| stored * slope + intercept)
    }
}

fn unreadable(detail: impl Into<String>) -> Undecodable {
    Undecodable::new(Fault::Unreadable, detail)
}

/// Version and whether the voxels are in another file, by the magic text.
fn magic(bytes: &[u8]) -> Result<(Version, bool), Undecodable> {
    let at = |from: usize, n: usize| bytes.get(from..from + n);
    match at(344, 4) {
        Some(b"n+1\0") => return Ok((Version::One, false)),
        Some(b"ni1\0") => return Ok((Version::One, true)),
        _ => {}
    }
    let size = at(0, 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).unwrap_or_default();
    let announces = |n: i32| [i32::from_le_bytes(size), i32::from_be_bytes(size)].contains(&n);
    let second = match at(4, 4) {
        Some(b"n+2\0") => Some(false),
        Some(b"ni2\0") => Some(true),
        _ => None,
    };
    match second.filter(|_| announces(540)) {
        // The four bytes after the text reveal a transfer that changed line ends; all zero if the writer omitted them.
        Some(_) if !matches!(at(8, 4), None | Some(b"\r\n\x1a\n" | b"\0\0\0\0")) => {
            Err(unreadable("bytes 9 to 12 of the NIfTI-2 header are changed: the file was transferred as text"))
        }
        Some(is_pair) => Ok((Version::Two, is_pair)),
        None if announces(ANNOUNCED_BYTES_1) && bytes.len() < BYTES_1 => Err(too_short(bytes, BYTES_1, 1)),
        None if announces(ANNOUNCED_BYTES_1) => Err(Undecodable::new(
            Fault::Unsupported,
            "the header has no NIfTI magic text: an ANALYZE 7.5 volume does not say which side is left, expected NIfTI",
        )),
        None => Err(unreadable(format!("the content is not NIfTI{}", other_content(bytes)))),
    }
}

/// A guess at what the bytes are, for the end of a sentence.
fn other_content(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(&[0, 0, 0, 1]) {
        return ", perhaps a FreeSurfer volume (.mgh), expected .nii, .nii.gz or .hdr/.img";
    }
    let start = &bytes[..bytes.len().min(256)];
    let is_text = !start.is_empty() && start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    if is_text { ", the file holds text" } else { "" }
}

fn too_short(bytes: &[u8], expected: usize, version: usize) -> Undecodable {
    unreadable(format!("the file holds {} bytes, a NIfTI-{version} header alone has {expected}", bytes.len()))
}

fn first_version(bytes: &[u8]) -> Result<(ByteOrder, Fields), Undecodable> {
    let header = NiftiHeader::from_reader(bytes).map_err(|error| unreadable(error.to_string()))?;
    if header.sizeof_hdr.swap_bytes() == ANNOUNCED_BYTES_1 {
        // `dim[0]` outside its range would be interpreted as the other byte order; the size of the header is decisive.
        let detail = format!("dim[0] is {}, expected 1 to 7 dimensions", header.dim[0].swap_bytes().cast_signed());
        return Err(unreadable(detail));
    }
    let is_big = header.endianness == Endianness::Big;
    let fields = Fields {
        dim: header.dim.map(|extent| i64::from(extent.cast_signed())),
        datatype: header.datatype,
        intent_code: i32::from(header.intent_code),
        pixdim: header.pixdim.map(f64::from),
        offset: whole(header.vox_offset)?,
        slope: f64::from(header.scl_slope),
        intercept: f64::from(header.scl_inter),
        codes: [header.qform_code, header.sform_code].map(i32::from),
        quaternion: [header.quatern_b, header.quatern_c, header.quatern_d].map(f64::from),
        shift: [header.quatern_x, header.quatern_y, header.quatern_z].map(f64::from),
        rows: [header.srow_x, header.srow_y, header.srow_z].map(|row| row.map(f64::from)),
    };
    Ok((if is_big { ByteOrder::Big } else { ByteOrder::Little }, fields))
}

/// The offset of the voxels, a float in NIfTI-1; a fraction is truncated.
fn whole(offset: f32) -> Result<i64, Undecodable> {
    if !(offset.is_finite() && offset.abs() <= 9e15) {
        return Err(unreadable(format!("vox_offset is {offset}, expected a number of bytes")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
    let whole = offset as i64;
    Ok(whole)
}

fn second_version(bytes: &[u8]) -> Result<(ByteOrder, Fields), Undecodable> {
    let header = bytes.first_chunk::<BYTES_2>().ok_or_else(|| too_short(bytes, BYTES_2, 2))?;
    let byte_order = if header[..4] == 540_i32.to_be_bytes() { ByteOrder::Big } else { ByteOrder::Little };
    let fields = Reader { header, byte_order };
    let reader = &fields;
    Ok((
        byte_order,
        Fields {
            dim: std::array::from_fn(|i| reader.i64(16 + 8 * i)),
            datatype: reader.i16(12),
            intent_code: reader.i32(504),
            pixdim: reader.f64s(104),
            offset: reader.i64(168),
            slope: reader.f64(176),
            intercept: reader.f64(184),
            codes: [reader.i32(344), reader.i32(348)],
            quaternion: reader.f64s(352),
            shift: reader.f64s(376),
            rows: [reader.f64s(400), reader.f64s(432), reader.f64s(464)],
        },
    ))
}

/// Numbers at byte positions of a NIfTI-2 header.
struct Reader<'a> {
    header: &'a [u8; BYTES_2],
    byte_order: ByteOrder,
}

impl Reader<'_> {
    /// The bytes of a number, lowest first.
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes: [u8; N] = std::array::from_fn(|i| self.header[at + i]);
        if self.byte_order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }

    fn i16(&self, at: usize) -> i16 {
        i16::from_le_bytes(self.bytes(at))
    }

    fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(self.bytes(at))
    }

    fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(self.bytes(at))
    }

    fn f64(&self, at: usize) -> f64 {
        f64::from_le_bytes(self.bytes(at))
    }

    fn f64s<const N: usize>(&self, at: usize) -> [f64; N] {
        std::array::from_fn(|i| self.f64(at + 8 * i))
    }
}

fn shape(dim: &[i64; 8]) -> Result<Vec<usize>, Undecodable> {
    let n = usize::try_from(dim[0]).ok().filter(|n| (1..=7).contains(n));
    let n = n.ok_or_else(|| unreadable(format!("dim[0] is {}, expected 1 to 7 dimensions", dim[0])))?;
    let extents = &dim[1..=n];
    let extent = |extent: &i64| usize::try_from(*extent).ok().filter(|extent| *extent > 0);
    extents.iter().map(extent).collect::<Option<Vec<_>>>().ok_or_else(|| {
        let shown = extents.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
        unreadable(format!("the header holds a size of {shown}, expected at least 1 along each axis"))
    })
}

/// `pixdim[1..]`: along the spatial axes 0 counts as 1 and negative distances by their magnitude.
fn spacing(pixdim: &[f64; 8]) -> [f64; 7] {
    std::array::from_fn(|axis| match pixdim[axis + 1] {
        0.0 if axis < 3 => 1.0,
        distance if axis < 3 => distance.abs(),
        distance => distance,
    })
}

fn offset(offset: i64, version: Version, is_pair: bool) -> Result<u64, Undecodable> {
    let least = match (version, is_pair) {
        (_, true) => 0,
        // The header and the four bytes that say whether an extension follows.
        (Version::One, false) => BYTES_1 as u64 + 4,
        (Version::Two, false) => BYTES_2 as u64 + 4,
    };
    match u64::try_from(offset) {
        Ok(0) => Ok(least),
        Ok(offset) if offset >= least => Ok(offset),
        _ => Err(unreadable(format!("vox_offset is {offset}, expected 0 or at least {least}"))),
    }
}

fn scaling(slope: f64, intercept: f64) -> Result<Option<[f64; 2]>, Undecodable> {
    if slope == 0.0 || !slope.is_finite() {
        return Ok(None);
    }
    if !intercept.is_finite() {
        return Err(unreadable(format!("scl_inter is {intercept}, expected a finite number")));
    }
    let changes_nothing = slope - 1.0 == 0.0 && intercept == 0.0;
    Ok((!changes_nothing).then_some([slope, intercept]))
}
