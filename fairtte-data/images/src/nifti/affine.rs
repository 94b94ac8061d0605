//! The matrix from voxel indices to millimetres in a space whose axes point right, anterior and superior (RAS).
//!
//! A header may hold two matrices, one in full (`sform`, method 3 of the standard) and one as quaternion, spacing and
//! shift (`qform`, method 2). Like nibabel 5.4 the reader takes the first if its code is 1 to 5, else the second if its
//! code is, else one from spacing and size alone, with the first axis running to the left and the centre of the
//! volume at the origin (the ANALYZE convention). Difference from nibabel: a singular or non-finite matrix is ignored,
//! so the quaternion is used if its code allows; nibabel reads such a file and fails when reorienting it.
//!
//! Sources: NIfTI-1 standard (Cox et al. 2004, `nifti1.h`); the fourth part of the quaternion and its rounding follow
//! it.

use serde::Serialize;

use super::orientation::Orientation;

/// Four rows, the last of them `[0, 0, 0, 1]`.
pub type Matrix = [[f64; 4]; 4];

/// The source of the matrix of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AffineSource {
    /// The full matrix of the header.
    Sform,
    /// The quaternion of the header.
    Qform,
    /// Spacing and size, because the header holds neither.
    Spacing,
    /// Orientation and positions of DICOM slices.
    Slices,
}

/// A matrix whose three directions are independent and finite, and its orientation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Affine {
    pub matrix: Matrix,
    pub source: AffineSource,
    pub orientation: Orientation,
    /// The reason why a source other than the one of highest rank was used.
    pub note: Option<String>,
}

/// The fields of a header that give the positions of its voxels.
pub(crate) struct AffineFields {
    pub sform_code: i32,
    pub qform_code: i32,
    pub rows: [[f64; 4]; 3],
    /// The second to fourth part.
    pub quaternion: [f64; 3],
    pub shift: [f64; 3],
    /// `pixdim[0]`: -1 reverses the third axis, everything else counts as 1.
    pub qfac: f64,
    /// Millimetres, not negative.
    pub spacing: [f64; 3],
    /// Extents, missing ones 1.
    pub size: [usize; 3],
    /// Axes that the file has.
    pub n_axes: usize,
}

impl Affine {
    /// The matrix by the rules above, or a sentence why there is none.
    pub(crate) fn choose(fields: &AffineFields) -> Result<Self, String> {
        let is_known = |code: i32| (1..=5).contains(&code);
        let from_quaternion = || {
            let rows = quaternion_rows(fields).ok_or("the quaternion of the header (qform) is longer than 1")?;
            Self::new(rows, AffineSource::Qform)
                .ok_or("the matrix of the header's quaternion (qform) is not invertible")
        };
        if is_known(fields.sform_code) {
            if let Some(affine) = Self::new(fields.rows, AffineSource::Sform) {
                return Ok(affine);
            }
            let broken = "the matrix of the header (sform) is not invertible or not finite";
            if !is_known(fields.qform_code) {
                return Err(format!("{broken}, and there is no quaternion (qform)"));
            }
            let mut affine = from_quaternion().map_err(|second| format!("{broken}, and {second}"))?;
            affine.note = Some(format!("{broken}: the quaternion (qform) was taken"));
            return Ok(affine);
        }
        if is_known(fields.qform_code) {
            return from_quaternion().map_err(str::to_owned);
        }
        let rows = spacing_rows(fields);
        Self::new(rows, AffineSource::Spacing)
            .ok_or_else(|| format!("the spacing is {:?} mm, expected finite numbers", fields.spacing))
    }

    /// `None` if the directions are dependent or a number is not finite.
    pub(crate) fn new(rows: [[f64; 4]; 3], source: AffineSource) -> Option<Self> {
        let is_finite = rows.iter().flatten().all(|entry| entry.is_finite());
        let directions = rows.map(|row| [row[0], row[1], row[2]]);
        let orientation = Some(directions).filter(|_| is_finite).and_then(Orientation::of)?;
        let [x, y, z] = rows;
        Some(Self { matrix: [x, y, z, [0.0, 0.0, 0.0, 1.0]], source, orientation, note: None })
    }
}

/// Rotation of the quaternion times spacing, and the shift; `None` if the three given parts are clearly longer than 1.
fn quaternion_rows(fields: &AffineFields) -> Option<[[f64; 4]; 3]> {
    let rotation = rotation(fields.quaternion)?;
    let turned = if (fields.qfac + 1.0).abs() < f64::EPSILON { -1.0 } else { 1.0 };
    let [first, second, third] = fields.spacing;
    let row = |axis: usize| {
        let [x, y, z] = rotation[axis];
        [x * first, y * second, z * third * turned, fields.shift[axis]]
    };
    Some([row(0), row(1), row(2)])
}

/// Of the second to fourth part of a quaternion of length 1, whose first part is not negative.
fn rotation([mut b, mut c, mut d]: [f64; 3]) -> Option<[[f64; 3]; 3]> {
    let rest = 1.0 - (b * b + c * c + d * d);
    if rest < -0.01 {
        return None;
    }
    let a = if rest < 1e-7 {
        // Half a turn, up to rounding: the three parts are brought to length 1.
        let length = (b * b + c * c + d * d).sqrt();
        (b, c, d) = (b / length, c / length, d / length);
        0.0
    } else {
        rest.sqrt()
    };
    Some([
        [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
        [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b)],
        [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - b * b - c * c],
    ])
}

fn spacing_rows(fields: &AffineFields) -> [[f64; 4]; 3] {
    std::array::from_fn(|axis| {
        let spacing = if axis < fields.n_axes { fields.spacing[axis] } else { 1.0 };
        let step = if axis == 0 { -spacing } else { spacing };
        let mut row = [0.0; 4];
        row[axis] = step;
        row[3] = -step * (fields.size[axis] as f64 - 1.0) / 2.0;
        row
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn fields() -> AffineFields {
        AffineFields {
            sform_code: 0,
            qform_code: 0,
            rows: [[2.0, 0.0, 0.0, 1.0], [0.0, 3.0, 0.0, 2.0], [0.0, 0.0, 4.0, 3.0]],
            quaternion: [0.0; 3],
            shift: [7.0, 8.0, 9.0],
            qfac: 1.0,
            spacing: [1.0, 2.0, 3.0],
            size: [5, 7, 1],
            n_axes: 3,
        }
    }

    #[test]
    fn the_full_matrix_comes_before_the_quaternion_and_both_before_the_spacing() {
        let chosen = |sform_code, qform_code| {
            let affine = Affine::choose(&AffineFields { sform_code, qform_code, ..fields() }).unwrap();
            (affine.source, affine.matrix[0], affine.matrix[1][3])
        };
        assert_eq!(chosen(1, 1), (AffineSource::Sform, [2.0, 0.0, 0.0, 1.0], 2.0));
        assert_eq!(chosen(0, 2), (AffineSource::Qform, [1.0, 0.0, 0.0, 7.0], 8.0));
        // Codes outside the standard count as 0.
        assert_eq!(chosen(-1, 6), (AffineSource::Spacing, [-1.0, 0.0, 0.0, 2.0], -6.0));
    }

    #[test]
    fn an_axis_that_the_file_does_not_have_counts_as_one_millimetre() {
        let affine = Affine::choose(&AffineFields { n_axes: 2, ..fields() }).unwrap();
        assert_eq!((affine.matrix[1][1], affine.matrix[2][2]), (2.0, 1.0));
    }

    #[test]
    fn a_quaternion_turns_and_qfac_mirrors() {
        let matrix = |quaternion, qfac| {
            Affine::choose(&AffineFields { qform_code: 1, quaternion, qfac, ..fields() }).unwrap().matrix
        };
        // c = 1 is half a turn about the anterior axis; with rounding error, slightly more than 1.
        let half_turn = matrix([0.0, 1.000_000_1, 0.0], 1.0);
        assert_abs_diff_eq!(half_turn[0][0], -1.0, epsilon = 1e-12);
        assert_abs_diff_eq!(half_turn[2][2], -3.0, epsilon = 1e-12);
        // A quarter turn about the superior axis turns the first axis to anterior.
        let quarter = matrix([0.0, 0.0, 0.5_f64.sqrt()], -1.0);
        assert_abs_diff_eq!(quarter[1][0], 1.0, epsilon = 1e-12);
        assert_abs_diff_eq!(quarter[0][1], -2.0, epsilon = 1e-12);
        assert_abs_diff_eq!(quarter[2][2], -3.0, epsilon = 1e-12);
        assert_abs_diff_eq!(matrix([0.0; 3], 0.0)[2][2], 3.0, epsilon = 0.0);
    }

    #[test]
    fn a_broken_matrix_is_replaced_by_the_quaternion_and_said_or_refused() {
        for rows in
            [[[0.0; 4]; 3], [[f64::NAN; 4]; 3], [[1.0, 1.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]
        {
            let affine = Affine::choose(&AffineFields { sform_code: 2, qform_code: 1, rows, ..fields() }).unwrap();
            assert_eq!(affine.source, AffineSource::Qform);
            assert!(affine.note.unwrap().contains("sform"));
            let refused = Affine::choose(&AffineFields { sform_code: 2, rows, ..fields() }).unwrap_err();
            assert!(refused.contains("there is no quaternion"), "{refused}");
        }
        let long = AffineFields { qform_code: 1, quaternion: [1.0, 1.0, 0.0], ..fields() };
        assert!(Affine::choose(&long).unwrap_err().contains("longer than 1"));
        let no_number = AffineFields { qform_code: 1, quaternion: [f64::NAN, 0.0, 0.0], ..fields() };
        assert!(Affine::choose(&no_number).unwrap_err().contains("not invertible"));
        let no_spacing = AffineFields { spacing: [1.0, f64::INFINITY, 1.0], ..fields() };
        assert!(Affine::choose(&no_spacing).unwrap_err().contains("spacing"));
    }
}
