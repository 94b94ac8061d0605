//! The exact Euclidean distance of every pixel from the nearest of some pixels, with a spacing per axis.
//!
//! Squared distances are separable: D(p) = min over sites s of sum over axes (spacing (p - s))^2 is computed along one axis
//! after the other, each time as the lower envelope of parabolas along every line, in time linear in the number of pixels.
//!
//! Source: Felzenszwalb and Huttenlocher (2012), Distance transforms of sampled functions, Theory of Computing 8, 415-428,
//! doi:10.4086/toc.2012.v008a019, Algorithm 1, with the spacing. Lines without a site stay infinite and are in no envelope, so
//! that infinities are never subtracted. Differences of places are taken before they are multiplied by the spacing, and axes in
//! order from the first, as scipy does: 5 steps of 0.4 are 2, not more.

use super::MaskGrid;
use crate::MetricError;

/// The distance of every pixel from the nearest pixel of `sites`, in the unit of the spacing; infinite without any site.
///
/// `sites` and the result are `[n_pixels]`, last axis fastest. Cost: O(number of pixels x axes).
///
/// ```
/// use fairtte_metrics::masks::{MaskGrid, distance_transform};
///
/// // One site at the left of a row of pixels that are 2 apart.
/// let grid = MaskGrid::new(&[1, 3], &[1.0, 2.0])?;
/// assert_eq!(distance_transform(&grid, &[true, false, false])?, [0.0, 2.0, 4.0]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] unless there is a site or none for every pixel.
pub fn distance_transform(grid: &MaskGrid, sites: &[bool]) -> Result<Vec<f64>, MetricError> {
    if sites.len() != grid.n_pixels() {
        let what = "sites";
        return Err(MetricError::LengthMismatch { what, found: sites.len(), expected: grid.n_pixels() });
    }
    Ok(distances(grid, sites))
}

/// The same of sites that fit the grid.
pub(super) fn distances(grid: &MaskGrid, sites: &[bool]) -> Vec<f64> {
    let mut squared: Vec<f64> = sites.iter().map(|site| if *site { 0.0 } else { f64::INFINITY }).collect();
    let (extents, strides, spacing) = (grid.all_extents(), grid.strides(), grid.all_spacing());
    let longest = extents.into_iter().max().unwrap_or(1);
    let mut envelope = Envelope::with_capacity(longest);
    let mut line = vec![0.0; longest];
    for axis in 0..3 {
        let (extent, stride) = (extents[axis], strides[axis]);
        if extent == 1 {
            continue;
        }
        for start in (0..squared.len()).filter(|place| place / stride % extent == 0) {
            for (k, value) in line[..extent].iter_mut().enumerate() {
                *value = squared[start + k * stride];
            }
            envelope.fill(&line[..extent], spacing[axis]);
            envelope.read(extent, |k, value| squared[start + k * stride] = value);
        }
    }
    squared.iter().map(|squared| squared.sqrt()).collect()
}

/// The lower envelope of the parabolas of one line.
struct Envelope {
    /// Place (in pixels) and height of the vertices, and the place where each parabola begins to be the lowest.
    parabolas: Vec<(f64, f64, f64)>,
    spacing: f64,
}

impl Envelope {
    fn with_capacity(n: usize) -> Self {
        Self { parabolas: Vec::with_capacity(n), spacing: 1.0 }
    }

    fn fill(&mut self, heights: &[f64], spacing: f64) {
        self.spacing = spacing;
        self.parabolas.clear();
        for (k, &height) in heights.iter().enumerate().filter(|(_, height)| height.is_finite()) {
            let place = k as f64;
            let mut begin = f64::NEG_INFINITY;
            while let Some(&(other, other_height, other_begin)) = self.parabolas.last() {
                // Where the two parabolas have the same height; written so that equal heights give the exact middle.
                begin = 0.5 * ((height - other_height) / (spacing * spacing * (place - other)) + place + other);
                if begin > other_begin {
                    break;
                }
                self.parabolas.pop();
                begin = f64::NEG_INFINITY;
            }
            self.parabolas.push((place, height, begin));
        }
    }

    /// Passes the lowest height at every pixel; nothing without any parabola.
    fn read(&self, n: usize, mut take: impl FnMut(usize, f64)) {
        let mut lowest = 0;
        if self.parabolas.is_empty() {
            return;
        }
        for k in 0..n {
            let place = k as f64;
            while self.parabolas.get(lowest + 1).is_some_and(|next| next.2 < place) {
                lowest += 1;
            }
            let (vertex, height, _) = self.parabolas[lowest];
            let distance = (place - vertex) * self.spacing;
            take(k, distance * distance + height);
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use proptest::prelude::*;

    use super::*;

    /// The definition: the shortest of all distances.
    fn direct(extents: [usize; 3], spacing: [f64; 3], sites: &[bool]) -> Vec<f64> {
        let place = |k: usize| [k / (extents[1] * extents[2]), k / extents[2] % extents[1], k % extents[2]];
        let between = |a: usize, b: usize| {
            let (a, b) = (place(a), place(b));
            (0..3).map(|axis| (spacing[axis] * (a[axis] as f64 - b[axis] as f64)).powi(2)).sum::<f64>().sqrt()
        };
        let nearest = |k: usize| {
            (0..sites.len()).filter(|site| sites[*site]).map(|site| between(k, site)).fold(f64::INFINITY, f64::min)
        };
        (0..sites.len()).map(nearest).collect()
    }

    proptest! {
        #[test]
        fn it_is_the_shortest_distance_in_two_and_three_dimensions(
            extents in prop::array::uniform3(1_usize..7),
            spacing in prop::array::uniform3(0.05_f64..5.0),
            seeds in prop::collection::vec(0_u8..100, 216),
            share in 1_u8..60,
        ) {
            let n = extents.iter().product();
            let sites: Vec<bool> = seeds[..n].iter().map(|seed| *seed < share).collect();
            let grid = MaskGrid::new(&extents, &spacing).unwrap();
            let (found, expected) = (distance_transform(&grid, &sites).unwrap(), direct(extents, spacing, &sites));
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!(
                    (found - expected).abs() <= 1e-12 * expected.max(1.0) || (found.is_infinite() && expected.is_infinite()),
                    "{} {}", found, expected
                );
            }
        }
    }

    #[test]
    fn one_corner_and_no_site_by_hand() {
        let grid = MaskGrid::new(&[2, 3], &[3.0, 4.0]).unwrap();
        let found = distance_transform(&grid, &[true, false, false, false, false, false]).unwrap();
        for (found, expected) in found.iter().zip([0.0, 4.0, 8.0, 3.0, 5.0, 73.0_f64.sqrt()]) {
            assert_relative_eq!(*found, expected, epsilon = 1e-15);
        }
        assert!(distance_transform(&grid, &[false; 6]).unwrap().iter().all(|distance| distance.is_infinite()));
        assert!(distance_transform(&grid, &[true]).is_err());
    }
}
