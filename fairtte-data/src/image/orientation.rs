//! Which axis of a stored volume runs from left to right, back to front and bottom to top.
//!
//! Scanners store volumes in any axis order; the header gives a matrix from voxel indices to millimetres in a space
//! whose axes point right, anterior and superior (RAS). Every volume is brought to these axes by permuting and flipping
//! (never by interpolation), so that the same position means the same side of the body in all volumes of a cohort.
//!
//! Source of the fields: NIfTI-1 standard (Cox et al. 2004), `nifti1.h`, methods 2 (quaternion) and 3 (affine). Each
//! stored axis goes to the world axis with which its direction has the largest cosine, the most certain axis first.
//! Without any matrix (method 1) the stored order is taken as it is.

use nifti::NiftiHeader;

/// For each axis of the result (right, anterior, superior): the stored axis, and whether it runs the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orientation(pub [(usize, bool); 3]);

impl Orientation {
    /// The stored order taken as it is.
    const STORED: Self = Self([(0, false), (1, false), (2, false)]);

    /// The orientation that `header` gives: by its affine matrix, else by its quaternion, else the stored order.
    pub(super) fn of(header: &NiftiHeader) -> Self {
        let affine = (header.sform_code > 0).then_some([header.srow_x, header.srow_y, header.srow_z]);
        let affine = affine.map(|rows| rows.map(|row| [row[0], row[1], row[2]].map(f64::from)));
        let from_affine = affine.and_then(nearest_axes);
        let from_quaternion = || (header.qform_code > 0).then(|| rotation(header)).and_then(nearest_axes);
        from_affine.or_else(from_quaternion).unwrap_or(Self::STORED)
    }
}

/// Rotation matrix of the quaternion, its third column turned by `pixdim[0]` (`qfac`, -1 or 1; 0 counts as 1).
fn rotation(header: &NiftiHeader) -> [[f64; 3]; 3] {
    let [b, c, d] = [header.quatern_b, header.quatern_c, header.quatern_d].map(f64::from);
    let a = (1.0 - (b * b + c * c + d * d)).max(0.0).sqrt();
    let qfac = if header.pixdim[0] < 0.0 { -1.0 } else { 1.0 };
    [
        [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c) * qfac],
        [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b) * qfac],
        [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), (a * a + d * d - b * b - c * c) * qfac],
    ]
}

/// Assigns every column of `matrix` (stored axis) to a row (world axis); `None` if a column is zero or not finite.
fn nearest_axes(mut matrix: [[f64; 3]; 3]) -> Option<Orientation> {
    for stored in 0..3 {
        let norm = matrix.iter().map(|row| row[stored] * row[stored]).sum::<f64>().sqrt();
        if !(norm.is_finite() && norm > 0.0) {
            return None;
        }
        for row in &mut matrix {
            row[stored] /= norm;
        }
    }
    let mut axes = [None; 3];
    for _ in 0..3 {
        let free = |world: usize, stored: usize| {
            axes[world].is_none() && axes.iter().flatten().all(|(taken, _)| *taken != stored)
        };
        let pairs = (0..3).flat_map(|world| (0..3).map(move |stored| (world, stored)));
        let open = pairs.filter(|&(world, stored)| free(world, stored));
        let cosine = |&(world, stored): &(usize, usize)| matrix[world][stored].abs();
        let (world, stored) = open.max_by(|a, b| cosine(a).total_cmp(&cosine(b)))?;
        axes[world] = Some((stored, matrix[world][stored] < 0.0));
    }
    let [Some(right), Some(anterior), Some(superior)] = axes else { return None };
    Some(Orientation([right, anterior, superior]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sform(rows: [[f32; 4]; 3]) -> NiftiHeader {
        NiftiHeader {
            sform_code: 1,
            qform_code: 0,
            srow_x: rows[0],
            srow_y: rows[1],
            srow_z: rows[2],
            ..NiftiHeader::default()
        }
    }

    #[test]
    fn a_radiological_volume_is_flipped_from_left_to_right() {
        let header = sform([[-2.0, 0.0, 0.0, 90.0], [0.0, 2.0, 0.0, -126.0], [0.0, 0.0, 2.0, -72.0]]);
        assert_eq!(Orientation::of(&header), Orientation([(0, true), (1, false), (2, false)]));
    }

    #[test]
    fn a_sagittal_volume_is_permuted() {
        // Stored axes: anterior, superior, left.
        let header = sform([[0.0, 0.0, -1.0, 0.0], [0.9, 0.1, 0.0, 0.0], [-0.1, 0.9, 0.0, 0.0]]);
        assert_eq!(Orientation::of(&header), Orientation([(2, true), (0, false), (1, false)]));
    }

    #[test]
    fn the_quaternion_counts_where_the_matrix_does_not() {
        // b = c = d = 0 is no rotation; qfac -1 flips the third axis.
        let mut header = sform([[f32::NAN; 4], [0.0; 4], [0.0; 4]]);
        header.qform_code = 1;
        header.pixdim[0] = -1.0;
        assert_eq!(Orientation::of(&header), Orientation([(0, false), (1, false), (2, true)]));
        // c = 1 is half a turn about the anterior axis: right becomes left, superior becomes inferior.
        header.pixdim[0] = 1.0;
        header.quatern_c = 1.0;
        assert_eq!(Orientation::of(&header), Orientation([(0, true), (1, false), (2, true)]));
    }

    #[test]
    fn without_any_matrix_the_stored_order_stays() {
        let header = NiftiHeader { sform_code: 0, qform_code: 0, ..NiftiHeader::default() };
        assert_eq!(Orientation::of(&header), Orientation::STORED);
    }
}
