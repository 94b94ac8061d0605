//! Masks: the class of every pixel of a PNG or TIFF picture, or of every voxel of a NIfTI volume, as stored.
//!
//! A class is a whole number. What changes numbers is refused: JPEG files, colours and palettes (a picture of three equal
//! channels is gray), turned pictures, and voxels that are no whole numbers. Gray of 2 and 4 bits is widened to 8 (times 85
//! and 17), as other programs read it. A volume is not brought to body axes: two masks are compared voxel by voxel, so that
//! their matrices have to agree.

use std::io::Read as _;
use std::path::Path;

use super::nifti::{Grid, Matrix, Opened, Span};
use super::picture::Kind;
use super::{Colour, DecodedPicture, Limits, PictureFormat, Samples, Undecodable, decode_picture_full};
use crate::Fault;

/// A value may differ from a whole number by this, from a slope and intercept of single precision.
const WHOLE: f64 = 1e-4;
/// Matrices may differ by this share of the spacing, which is less than programs lose by writing them.
const SAME: f64 = 1e-3;

/// The class of every pixel.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelMap {
    /// `[height, width]` of a picture; of a volume the extents in the order of `labels`, the first stored axis (x) last.
    pub extents: Vec<usize>,
    /// As many as the extents say, the last axis running fastest.
    pub labels: Vec<i32>,
    /// Of a volume.
    pub volume: Option<VolumePlace>,
}

/// Where the voxels of a volume are.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumePlace {
    /// Distance of neighbours in millimetres, in the order of the extents.
    pub spacing: Vec<f64>,
    /// From indices of voxels to millimetres, where the header has a usable matrix.
    pub matrix: Option<Matrix>,
}

impl VolumePlace {
    /// Whether voxels of the same indices are at the same place; also where one of the two has no matrix, if the spacings agree.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64, size: f64| (a - b).abs() <= SAME * size;
        let spacing = self.spacing.iter().zip(&other.spacing).all(|(a, b)| near(*a, *b, *a));
        let smallest = self.spacing.iter().copied().fold(f64::INFINITY, f64::min);
        let matrices = self
            .matrix
            .iter()
            .zip(&other.matrix)
            .all(|(a, b)| a.as_flattened().iter().zip(b.as_flattened()).all(|(a, b)| near(*a, *b, smallest)));
        spacing && matrices
    }
}

/// Reads the mask at `path`.
///
/// # Errors
/// A reason code and a sentence: no such file, not a mask (see above), damaged, larger than `limits`, or a series of volumes.
pub fn read_label_map(path: &Path, limits: &Limits) -> Result<LabelMap, Undecodable> {
    if path.is_dir() {
        return Err(unsupported("the path is a folder, expected a PNG, TIFF or NIfTI file"));
    }
    let mut start = [0; 16];
    let opened = std::fs::File::open(path).and_then(|mut file| file.read(&mut start));
    match opened {
        Ok(n) if Kind::announced(&start[..n]).is_some() => picture(path, limits),
        // The reader of volumes says why a file cannot be opened.
        _ => volume(path, limits),
    }
}

fn unsupported(detail: impl Into<String>) -> Undecodable {
    Undecodable::new(Fault::Unsupported, detail)
}

fn picture(path: &Path, limits: &Limits) -> Result<LabelMap, Undecodable> {
    let bytes = std::fs::read(path).map_err(|error| Undecodable::new(Fault::Unopened, error.to_string()))?;
    match Kind::announced(&bytes) {
        Some(Kind::Jpeg) => return Err(unsupported("JPEG changes the values of pixels, expected PNG, TIFF or NIfTI")),
        Some(Kind::Dicom) => return Err(unsupported("the file is a DICOM picture, expected PNG, TIFF or NIfTI")),
        _ => {}
    }
    let decoded = decode_picture_full(&bytes, limits)?;
    debug_assert!(matches!(decoded.format, PictureFormat::Png | PictureFormat::Tiff));
    if decoded.orientation != 1 {
        let detail =
            format!("the picture is to be turned (orientation {}), expected an upright one", decoded.orientation);
        return Err(unsupported(detail));
    }
    let labels = match &decoded.samples {
        Samples::U8(samples) => gray(&decoded, samples, u8::MAX)?,
        Samples::U16(samples) => gray(&decoded, samples, u16::MAX)?,
        Samples::I16(samples) => samples.iter().map(|sample| i32::from(*sample)).collect(),
    };
    Ok(LabelMap { extents: vec![decoded.height, decoded.width], labels, volume: None })
}

/// The gray levels, if all colours of a pixel are equal and it is opaque.
fn gray<T: Copy + PartialEq + Into<i32>>(
    decoded: &DecodedPicture,
    samples: &[T],
    opaque: T,
) -> Result<Vec<i32>, Undecodable> {
    let (n_colours, has_opacity) = match decoded.colour {
        Colour::Gray => return Ok(samples.iter().map(|sample| (*sample).into()).collect()),
        Colour::GrayAlpha => (1, true),
        Colour::Rgb => (3, false),
        Colour::Rgba => (3, true),
        Colour::Cmyk => return Err(unsupported("the picture has the colours of print, expected gray levels")),
    };
    let pixels = samples.chunks_exact(decoded.n_channels());
    let is_gray = |pixel: &[T]| pixel[..n_colours].iter().all(|colour| *colour == pixel[0]);
    if !pixels.clone().all(is_gray) {
        return Err(unsupported("the picture has colours or a palette, expected gray levels, which are the classes"));
    }
    if has_opacity && !pixels.clone().all(|pixel| pixel[n_colours] == opaque) {
        return Err(unsupported("the picture has transparent pixels, expected gray levels, which are the classes"));
    }
    Ok(pixels.map(|pixel| pixel[0].into()).collect())
}

fn volume(path: &Path, limits: &Limits) -> Result<LabelMap, Undecodable> {
    let opened = Opened::open(path)?;
    let grid = opened.header.grid.clone();
    let axes = grid.shape.len().min(3);
    if grid.shape[axes..].iter().any(|extent| *extent > 1) {
        let detail = format!("the volume has {} voxels, expected up to three dimensions", grid.shown_shape());
        return Err(Undecodable::new(Fault::WrongDimensions, detail));
    }
    let n_bytes = opened.n_voxel_bytes()?;
    limits.admit(&grid.space().map(|extent| extent as u64), grid.voxel_type.n_bytes() as u64 + 4)?;
    let (stored, _) = opened.read(Span { begin: 0, n_bytes }, limits)?;
    let labels = labels_of(&grid, &stored)?;
    let reversed = |values: &[f64]| values[..axes].iter().rev().copied().collect();
    Ok(LabelMap {
        extents: grid.shape[..axes].iter().rev().copied().collect(),
        labels,
        volume: Some(VolumePlace {
            spacing: reversed(&grid.spacing),
            matrix: grid.affine.as_ref().ok().map(|affine| affine.matrix),
        }),
    })
}

fn labels_of(grid: &Grid, stored: &[u8]) -> Result<Vec<i32>, Undecodable> {
    let mut labels = Vec::with_capacity(stored.len() / grid.voxel_type.n_bytes());
    let mut wrong = None;
    grid.voxel_type.for_each(grid.byte_order, stored, |number| {
        let value = grid.scaled(number);
        let whole = value.round();
        let is_whole = (value - whole).abs() <= WHOLE && whole >= f64::from(i32::MIN) && whole <= f64::from(i32::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of i32")]
        if is_whole {
            labels.push(whole as i32);
        } else {
            wrong = wrong.or(Some(value));
        }
    });
    match wrong {
        None => Ok(labels),
        Some(value) => {
            let detail = format!("a voxel is {value}, expected whole numbers, which are the classes");
            Err(unsupported(detail))
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn written(folder: &Path, name: &str, colour: image::ExtendedColorType, samples: &[u8], size: [u32; 2]) -> PathBuf {
        let path = folder.join(name);
        image::save_buffer(&path, samples, size[0], size[1], colour).unwrap();
        path
    }

    fn read(path: &Path) -> Result<LabelMap, String> {
        read_label_map(path, &Limits::default()).map_err(|refused| refused.detail)
    }

    #[test]
    fn gray_levels_are_classes_row_by_row_and_equal_channels_are_gray() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), "a.png", image::ExtendedColorType::L8, &[0, 1, 2, 255, 128, 7], [3, 2]);
        let found = read(&path).unwrap();
        assert_eq!((found.extents, found.labels), (vec![2, 3], vec![0, 1, 2, 255, 128, 7]));
        assert_eq!(found.volume, None);
        let path = written(folder.path(), "b.tiff", image::ExtendedColorType::Rgb8, &[4, 4, 4, 9, 9, 9], [1, 2]);
        assert_eq!(read(&path).unwrap().labels, [4, 9]);
        let wide: Vec<u8> = [300_u16, 7].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let path = written(folder.path(), "c.png", image::ExtendedColorType::L16, &wide, [2, 1]);
        assert_eq!(read(&path).unwrap().labels, [300, 7]);
    }

    #[test]
    fn what_changes_values_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, colour, samples: &[u8], size| {
            read(&written(folder.path(), name, colour, samples, size)).unwrap_err()
        };
        assert!(of("a.jpg", image::ExtendedColorType::L8, &[0, 1], [2, 1]).starts_with("JPEG changes"));
        assert!(of("a.png", image::ExtendedColorType::Rgb8, &[1, 2, 1], [1, 1]).contains("colours or a palette"));
        assert!(of("b.png", image::ExtendedColorType::La8, &[1, 254], [1, 1]).contains("transparent"));
        assert_eq!(read(&folder.path().join("none.png")).unwrap_err(), "there is no such file");
        assert!(read(folder.path()).unwrap_err().contains("folder"));
        let text = folder.path().join("x.txt");
        std::fs::write(&text, "not a mask at all").unwrap();
        assert!(read(&text).unwrap_err().contains("not NIfTI"));
    }

    /// A NIfTI-1 file of unsigned bytes or floats with a diagonal matrix.
    fn nifti(folder: &Path, name: &str, shape: &[i16], spacing: [f32; 3], datatype: i16, voxels: &[u8]) -> PathBuf {
        let mut bytes = vec![0_u8; 352];
        bytes[0..4].copy_from_slice(&348_i32.to_le_bytes());
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(40, &i16::try_from(shape.len()).unwrap().to_le_bytes());
        for axis in 0..7 {
            put(42 + 2 * axis, &shape.get(axis).copied().unwrap_or(1).to_le_bytes());
        }
        put(70, &datatype.to_le_bytes());
        put(72, &(if datatype == 2 { 8_i16 } else { 32 }).to_le_bytes());
        for (axis, distance) in spacing.iter().enumerate() {
            put(80 + 4 * axis, &distance.to_le_bytes());
            put(280 + 16 * axis + 4 * axis, &distance.to_le_bytes());
        }
        put(108, &352_f32.to_le_bytes());
        put(254, &1_i16.to_le_bytes());
        put(344, b"n+1\0");
        bytes.extend_from_slice(voxels);
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_volume_keeps_its_stored_order_with_x_last_and_its_spacing() {
        let folder = tempfile::tempdir().unwrap();
        let voxels: Vec<u8> = (0..24).collect();
        let found = read(&nifti(folder.path(), "a.nii", &[2, 3, 4], [0.5, 0.75, 3.0], 2, &voxels)).unwrap();
        assert_eq!((found.extents, found.labels), (vec![4, 3, 2], (0..24).collect::<Vec<i32>>()));
        let place = found.volume.unwrap();
        assert_eq!((place.spacing.as_slice(), place.matrix.unwrap()[2][2]), (&[3.0, 0.75, 0.5][..], 3.0));
        let flat = read(&nifti(folder.path(), "b.nii", &[2, 3], [1.0; 3], 2, &voxels[..6])).unwrap();
        assert_eq!(flat.extents, [3, 2]);
        let series = read(&nifti(folder.path(), "c.nii", &[2, 2, 1, 2], [1.0; 3], 2, &voxels[..8])).unwrap_err();
        assert!(series.contains("up to three dimensions"), "{series}");
    }

    #[test]
    fn voxels_that_are_no_whole_numbers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let of =
            |name: &str, values: &[f32]| read(&nifti(folder.path(), name, &[2, 1, 1], [1.0; 3], 16, &floats(values)));
        assert_eq!(of("a.nii", &[-2.0, 1.0]).unwrap().labels, [-2, 1]);
        assert!(of("b.nii", &[0.0, 0.5]).unwrap_err().starts_with("a voxel is 0.5"));
        assert!(of("c.nii", &[f32::NAN, 1.0]).unwrap_err().starts_with("a voxel is NaN"));
        assert!(of("d.nii", &[1e10, 1.0]).unwrap_err().contains("whole numbers"));
    }

    #[test]
    fn matrices_that_place_voxels_elsewhere_do_not_agree() {
        let matrix = |x: f64| [[x, 0.0, 0.0, 10.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
        let place = |x: f64| VolumePlace { spacing: vec![1.0, 1.0, x.abs()], matrix: Some(matrix(x)) };
        assert!(place(0.5).agrees_with(&place(0.500_01)));
        assert!(!place(0.5).agrees_with(&place(-0.5)), "turned");
        assert!(!place(0.5).agrees_with(&place(0.6)));
        let none = VolumePlace { matrix: None, ..place(0.5) };
        assert!(place(0.5).agrees_with(&none) && !place(0.6).agrees_with(&none));
    }
}
