//! Occlusion: by how much does a number fall if a part of the input is hidden?

use crate::FairnessError;

/// The parts of an input that are hidden one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patches {
    /// Indices of the numbers of one channel that every patch covers.
    places: Vec<Vec<usize>>,
    /// Numbers of one channel.
    n: usize,
}

impl Patches {
    /// Squares (cuboids) of `patch` pixels along every axis of images of `size`, `[height, width]` or
    /// `[depth, height, width]`, at distances of `stride`; sides that are shorter are hidden whole. The last patch along an
    /// axis ends at the edge, so that every pixel is covered and all patches have one size.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a patch of 0 pixels, a stride of 0, or one longer than the patch, which would leave gaps.
    pub fn of_images(size: &[usize], patch: usize, stride: usize) -> Result<Self, FairnessError> {
        crate::check("patch", patch, patch > 0, "a number of pixels of at least 1")?;
        crate::check(
            "stride",
            stride,
            (1..=patch).contains(&stride),
            "a number of pixels from 1 to that of the patch",
        )?;
        let begins = |side: usize| {
            let last = side.saturating_sub(patch);
            let mut begins: Vec<usize> = (0..last).step_by(stride).collect();
            begins.push(last);
            begins
        };
        let mut places = vec![vec![0]];
        for &side in size {
            let (inner, patch) = (side, patch.min(side));
            let longer = |begin: usize| {
                let along =
                    move |place: &usize| (begin..begin + patch).map(move |at| place * inner + at).collect::<Vec<_>>();
                places
                    .iter()
                    .map(move |of_patch| of_patch.iter().flat_map(&along).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            };
            places = begins(side).into_iter().flat_map(longer).collect();
        }
        Ok(Self { places, n: size.iter().product() })
    }

    /// Any parts, by the indices of their numbers; `n` numbers in all.
    ///
    /// # Panics
    /// If an index is not below `n`.
    pub fn of_parts(places: Vec<Vec<usize>>, n: usize) -> Self {
        assert!(places.iter().flatten().all(|place| *place < n), "indices of the input");
        Self { places, n }
    }

    /// Their number.
    pub fn n(&self) -> usize {
        self.places.len()
    }
}

/// The result of an occlusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Occlusion {
    /// The number for the whole input.
    pub whole: f64,
    /// How much it falls where each patch is hidden; positive: the patch raises the number.
    pub drops: Vec<f64>,
    /// Mean of the drops of the patches that cover a pixel, in the order of the input, channels alike; 0 where there is none.
    pub map: Vec<f64>,
}

/// Hides every patch of `input`, `[channels, ..]`, by the numbers of `fill` at its place. `of` computes the number of every
/// input of a block; it is called with at most `block` of them.
///
/// # Errors
/// Those of `of`.
///
/// # Panics
/// If `fill` is not as long as `input`, or its length no multiple of that of a channel.
pub fn occlude(
    input: &[f32],
    fill: &[f32],
    patches: &Patches,
    block: usize,
    mut of: impl FnMut(Vec<Vec<f32>>) -> Result<Vec<f64>, FairnessError>,
) -> Result<Occlusion, FairnessError> {
    assert!(input.len() == fill.len() && input.len().is_multiple_of(patches.n), "an input of channels and its filling");
    let hidden = |places: &Vec<usize>| {
        let mut hidden = input.to_vec();
        for (channel, fill) in hidden.chunks_exact_mut(patches.n).zip(fill.chunks_exact(patches.n)) {
            for &place in places {
                channel[place] = fill[place];
            }
        }
        hidden
    };
    let whole = of(vec![input.to_vec()])?[0];
    let mut drops = Vec::with_capacity(patches.n());
    for patches in patches.places.chunks(block.max(1)) {
        drops.extend(of(patches.iter().map(hidden).collect())?.into_iter().map(|value| whole - value));
    }
    let mut sums = vec![(0.0, 0_usize); patches.n];
    for (places, drop) in patches.places.iter().zip(&drops) {
        for &place in places {
            sums[place] = (sums[place].0 + drop, sums[place].1 + 1);
        }
    }
    let map = sums.into_iter().map(|(sum, n)| sum / n.max(1) as f64).collect();
    Ok(Occlusion { whole, drops, map })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    /// A linear function: the drop of a patch is the sum of weight x (input - fill) over it.
    #[test]
    fn the_drops_of_a_linear_function_are_known() {
        let weights: Vec<f64> = (0..2 * 12).map(|i| f64::from((i * 7) % 11) - 4.0).collect();
        let input: Vec<f32> = (0_u8..24).map(|i| f32::from((i * 5) % 13) / 4.0).collect();
        let fill: Vec<f32> = (0..24).map(|i| if i < 12 { 0.5 } else { -1.0 }).collect();
        let linear = |x: &Vec<f32>| x.iter().zip(&weights).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + 3.0;
        // Two channels of 3 x 4: patches of 2 x 2 at stride 2 begin in rows 0, 1 and columns 0, 2.
        let patches = Patches::of_images(&[3, 4], 2, 2).unwrap();
        let mut blocks = Vec::new();
        let found = occlude(&input, &fill, &patches, 3, |inputs| {
            blocks.push(inputs.len());
            Ok(inputs.iter().map(linear).collect())
        });
        let found = found.unwrap();
        assert_eq!(blocks, [1, 3, 1]);
        let lost = |place: usize| weights[place] * f64::from(input[place] - fill[place]);
        let mut covering = vec![Vec::new(); 12];
        let corners = [(0, 0), (1, 0), (0, 2), (1, 2)];
        for (row, column) in corners {
            let places = [(row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)];
            let drop: f64 = places.iter().map(|(y, x)| lost(y * 4 + x) + lost(12 + y * 4 + x)).sum();
            assert!(found.drops.iter().any(|found| (found - drop).abs() < 1e-9), "{drop} of {:?}", found.drops);
            for (y, x) in places {
                covering[y * 4 + x].push(drop);
            }
        }
        assert_eq!(found.drops.len(), 4);
        assert_abs_diff_eq!(found.whole, linear(&input), epsilon = 1e-9);
        for (found, drops) in found.map.iter().zip(covering) {
            assert_abs_diff_eq!(*found, drops.iter().sum::<f64>() / drops.len() as f64, epsilon = 1e-9);
        }
    }

    #[test]
    fn patches_cover_every_pixel_of_a_volume_and_have_one_size() {
        let patches = Patches::of_images(&[5, 2, 7], 3, 2).unwrap();
        // Depth begins at 0, 2; height is hidden whole; width begins at 0, 2, 4.
        assert_eq!(patches.n(), 2 * 3);
        let mut covered = vec![0; 70];
        for places in &patches.places {
            assert_eq!(places.len(), 3 * 2 * 3);
            for place in places {
                covered[*place] += 1;
            }
        }
        assert!(covered.iter().all(|n| *n > 0));
        let first: Vec<usize> =
            (0..3).flat_map(|z| (0..2).flat_map(move |y| (0..3).map(move |x| (z * 2 + y) * 7 + x))).collect();
        assert!(patches.places.contains(&first));
    }

    #[test]
    fn patches_that_leave_gaps_are_refused() {
        for (patch, stride, expected) in [
            (0, 1, "patch is 0, expected a number of pixels of at least 1"),
            (2, 0, "stride is 0, expected a number of pixels from 1 to that of the patch"),
            (2, 3, "stride is 3, expected a number of pixels from 1 to that of the patch"),
        ] {
            assert_eq!(Patches::of_images(&[4, 4], patch, stride).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn parts_of_a_table_are_its_columns() {
        let patches = Patches::of_parts(vec![vec![0], vec![1, 2]], 3);
        let found = occlude(&[1.0, 2.0, 3.0], &[0.0; 3], &patches, 8, |inputs| {
            Ok(inputs.iter().map(|x| f64::from(x[0] + 10.0 * x[1] + 100.0 * x[2])).collect())
        });
        assert_eq!(found.unwrap().map, [1.0, 320.0, 320.0]);
    }
}
