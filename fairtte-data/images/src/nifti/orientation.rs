//! The axes of a stored volume that run from left to right, back to front and bottom to top.
//!
//! Scanners store volumes in any axis order. Every volume is brought to right, anterior, superior (RAS) by permuting
//! and flipping axes, never by interpolation, so that the same position means the same side of the body in all volumes
//! of a cohort.
//!
//! Source: `io_orientation` of nibabel 5.4. The directions of the matrix are brought to length 1 and to the nearest
//! rotation or mirrored rotation (the orthogonal part of its polar decomposition, here by Newton's iteration of Higham,
//! SIAM J. Sci. Stat. Comput. 7, 1986). Then every stored axis takes the free body axis with which its direction has
//! the largest cosine, the most certain stored axis first.

use super::affine::Matrix;

type Square = [[f64; 3]; 3];

/// For each axis of the result (right, anterior, superior): the stored axis, and whether it is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation(pub [(usize, bool); 3]);

/// Volume spanned by the unit directions below which they count as dependent.
const SMALLEST_DETERMINANT: f64 = 1e-12;

impl Orientation {
    /// The orientation of a volume that is stored in RAS order.
    pub(crate) const RAS: Self = Self([(0, false), (1, false), (2, false)]);

    /// The orientation given by the directions (columns) of `matrix`; `None` if they are dependent or not finite.
    pub(crate) fn of(matrix: Square) -> Option<Self> {
        let rotation = nearest_rotation(with_unit_columns(matrix)?)?;
        let certainty = |stored: usize| (0..3).map(|world| rotation[world][stored].abs()).fold(0.0, f64::max);
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| certainty(*b).total_cmp(&certainty(*a)));
        let mut axes = [None; 3];
        for stored in order {
            let free = (0..3).filter(|world| axes[*world].is_none());
            let cosine = |world: usize| rotation[world][stored].abs();
            // The first of equal values, as in the source.
            let world = free.reduce(|best, other| if cosine(other) > cosine(best) { other } else { best })?;
            axes[world] = Some((stored, rotation[world][stored] < 0.0));
        }
        let [Some(right), Some(anterior), Some(superior)] = axes else { return None };
        Some(Self([right, anterior, superior]))
    }

    /// Three letters for the stored axes, each the direction it runs in: `LAS` runs to the left, anterior, superior.
    pub(crate) fn codes(self) -> String {
        const SIDES: [[char; 2]; 3] = [['R', 'L'], ['A', 'P'], ['S', 'I']];
        let side = |stored: usize| {
            let sides = self.0.iter().zip(SIDES).find(|((axis, _), _)| *axis == stored);
            sides.map_or('?', |((_, flipped), sides)| sides[usize::from(*flipped)])
        };
        (0..3).map(side).collect()
    }

    /// Extents along right, anterior, superior.
    pub(crate) fn size(self, stored: [usize; 3]) -> [usize; 3] {
        self.0.map(|(axis, _)| stored[axis])
    }

    /// The stored index of the voxel at `index` of the reoriented volume.
    pub(crate) fn stored_index(self, index: [usize; 3], stored_size: [usize; 3]) -> [usize; 3] {
        let mut stored = [0; 3];
        for ((axis, flipped), position) in self.0.into_iter().zip(index) {
            stored[axis] = if flipped { stored_size[axis] - 1 - position } else { position };
        }
        stored
    }

    /// The matrix of the reoriented volume.
    pub(crate) fn reorient(self, matrix: &Matrix, stored_size: [usize; 3]) -> Matrix {
        let mut reoriented = *matrix;
        for (row, source) in reoriented.iter_mut().zip(matrix) {
            for (world, (axis, flipped)) in self.0.into_iter().enumerate() {
                row[world] = if flipped { -source[axis] } else { source[axis] };
                if flipped {
                    row[3] += source[axis] * (stored_size[axis] as f64 - 1.0);
                }
            }
        }
        reoriented
    }
}

fn with_unit_columns(mut matrix: Square) -> Option<Square> {
    for column in 0..3 {
        let length = matrix.iter().fold(0.0_f64, |length, row| length.hypot(row[column]));
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        for row in &mut matrix {
            row[column] /= length;
        }
    }
    Some(matrix)
}

/// The orthogonal part of the polar decomposition: `r` becomes the mean of itself and its inverse transposed, until it
/// converges.
fn nearest_rotation(mut r: Square) -> Option<Square> {
    const MOST_STEPS: usize = 100;
    if determinant(&r).abs() < SMALLEST_DETERMINANT {
        return None;
    }
    for _ in 0..MOST_STEPS {
        let det = determinant(&r);
        let cofactors = cofactors(&r);
        let mut change = 0.0_f64;
        for (row, cofactors) in r.iter_mut().zip(cofactors) {
            for (entry, cofactor) in row.iter_mut().zip(cofactors) {
                let next = f64::midpoint(*entry, cofactor / det);
                change = change.max((next - *entry).abs());
                *entry = next;
            }
        }
        if change < 1e-15 {
            break;
        }
    }
    Some(r)
}

/// The inverse transposed, times the determinant.
fn cofactors(m: &Square) -> Square {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let [up, down] = [(i + 1) % 3, (i + 2) % 3];
            let [left, right] = [(j + 1) % 3, (j + 2) % 3];
            m[up][left] * m[down][right] - m[up][right] * m[down][left]
        })
    })
}

fn determinant(m: &Square) -> f64 {
    m[0].iter().zip(cofactors(m)[0]).map(|(entry, cofactor)| entry * cofactor).sum()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_radiological_volume_is_flipped_from_left_to_right() {
        let orientation = Orientation::of([[-2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]).unwrap();
        assert_eq!(orientation, Orientation([(0, true), (1, false), (2, false)]));
        assert_eq!(orientation.codes(), "LAS");
    }

    #[test]
    fn a_sagittal_volume_is_permuted() {
        // Stored axes: anterior, superior, left.
        let orientation = Orientation::of([[0.0, 0.0, -1.0], [0.9, 0.1, 0.0], [-0.1, 0.9, 0.0]]).unwrap();
        assert_eq!(orientation, Orientation([(2, true), (0, false), (1, false)]));
        assert_eq!(orientation.codes(), "ASL");
        assert_eq!(orientation.size([20, 30, 40]), [40, 20, 30]);
        assert_eq!(orientation.stored_index([0, 1, 2], [20, 30, 40]), [1, 2, 39]);
    }

    /// Recorded from `nibabel.orientations.aff2axcodes`, nibabel 5.4.2: sheared and oblique matrices, where the cosines
    /// of the matrix itself would choose differently from those of its rotation.
    #[test]
    fn oblique_and_sheared_volumes_go_where_nibabel_puts_them() {
        for (matrix, codes) in RECORDED {
            assert_eq!(Orientation::of(*matrix).unwrap().codes(), *codes, "{matrix:?}");
        }
    }

    const RECORDED: &[(Square, &str)] = &[
        ([[-0.802, -1.324, -0.248], [0.42, 1.136, 0.11], [-0.553, -0.785, 0.749]], "LAS"),
        ([[1.635, 0.273, -1.233], [-0.958, 1.6, 0.203], [-1.732, -0.084, -1.163]], "IAL"),
        ([[-0.629, -0.488, -0.713], [0.553, -0.063, -0.589], [0.41, 0.83, -1.643]], "ASL"),
        ([[-0.257, -0.981, -0.173], [-1.289, 0.021, -0.038], [-0.304, -1.048, -0.396]], "PLI"),
        ([[-1.091, -1.355, 0.225], [-1.109, 1.17, 0.717], [-1.998, 0.272, -1.102]], "PLI"),
        ([[0.033, 0.044, -1.988], [-0.233, -0.256, 0.962], [-1.181, 0.738, -1.099]], "IPL"),
        ([[-0.331, -0.84, 1.449], [0.568, 2.432, 0.642], [0.845, 0.841, -0.607]], "SAR"),
        ([[-0.07, 1.35, -0.397], [0.189, -0.021, 0.609], [-0.365, -0.152, 0.242]], "IRA"),
        ([[0.103, -0.865, 0.896], [-1.298, -1.201, -1.282], [0.967, -0.361, -0.971]], "SLP"),
        ([[-0.054, 1.339, -0.517], [-1.259, -1.837, -0.205], [-0.352, 0.265, -0.464]], "PRI"),
        ([[-0.479, -0.721, -0.52], [0.16, -0.38, 0.1], [1.901, 0.479, -1.576]], "ALI"),
        ([[1.734, 0.348, -0.941], [0.907, 0.018, -0.615], [-0.634, -0.993, 0.048]], "RIP"),
        ([[-0.015, 0.434, -0.532], [0.054, 0.722, 0.297], [0.869, 0.461, 0.488]], "SAL"),
        ([[1.827, 0.623, 0.129], [0.71, -0.919, -0.338], [0.793, 0.631, 1.548]], "RPS"),
        ([[0.01, -1.462, 1.947], [1.093, -1.059, 1.376], [0.032, -1.814, -0.42]], "AIR"),
        ([[-0.509, 1.591, -0.792], [-0.254, -0.277, -0.379], [-0.914, 0.219, 1.077]], "IRP"),
        ([[-0.095, -0.86, 0.006], [-0.082, 2.774, -0.193], [1.271, 1.32, -0.186]], "SLP"),
        ([[-0.595, -1.51, 1.062], [-1.065, 1.195, -0.054], [-0.698, -0.64, 0.462]], "IAR"),
        ([[-0.047, -0.689, 0.317], [-1.079, 1.61, -0.377], [-1.543, 1.791, 0.971]], "PLS"),
        ([[0.224, 2.009, 0.832], [1.309, -1.19, -0.647], [0.837, 0.906, -0.056]], "ASR"),
        ([[0.07, 0.231, -0.177], [0.267, 0.456, -1.012], [0.416, -0.251, -0.946]], "SRP"),
        ([[-0.94, -2.027, 0.17], [0.26, -1.977, -1.043], [-0.744, -0.026, 0.244]], "ILP"),
        ([[-1.979, -1.859, 0.731], [0.342, -0.296, -0.413], [-1.726, 0.371, 1.034]], "ILP"),
        ([[-1.093, 0.016, -0.085], [0.792, 1.001, -0.877], [0.907, -0.107, 0.113]], "LIP"),
    ];

    #[test]
    fn dependent_directions_have_no_orientation() {
        assert_eq!(Orientation::of([[0.0; 3]; 3]), None);
        assert_eq!(Orientation::of([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), None);
        assert_eq!(Orientation::of([[f64::NAN, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), None);
        assert_eq!(Orientation::of([[f64::INFINITY, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), None);
    }

    proptest! {
        /// A voxel is at the same place of the body before and after, and the result runs right, anterior, superior.
        #[test]
        fn reorienting_moves_no_voxel(
            directions in prop::array::uniform3(prop::array::uniform3(-3.0_f64..3.0)),
            shift in prop::array::uniform3(-100.0_f64..100.0),
            index in prop::array::uniform3(0_usize..4),
        ) {
            let size = [4, 5, 6];
            let Some(orientation) = Orientation::of(directions) else { return Ok(()) };
            let row = |i: usize| [directions[i][0], directions[i][1], directions[i][2], shift[i]];
            let matrix = [row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]];
            let reoriented = orientation.reorient(&matrix, size);
            let place = |matrix: &Matrix, index: [usize; 3]| -> [f64; 3] {
                std::array::from_fn(|i| matrix[i][3] + (0..3).map(|j| matrix[i][j] * index[j] as f64).sum::<f64>())
            };
            let stored = orientation.stored_index(index, size);
            for (before, after) in place(&matrix, stored).into_iter().zip(place(&reoriented, index)) {
                assert_abs_diff_eq!(before, after, epsilon = 1e-9);
            }
            let columns: Square = std::array::from_fn(|i| [reoriented[i][0], reoriented[i][1], reoriented[i][2]]);
            prop_assert_eq!(Orientation::of(columns).unwrap().codes(), "RAS");
        }
    }
}
