//! Predicted masks against true ones, pixel by pixel: overlap, distances of the surfaces, the cup-to-disc ratio.
//!
//! A mask is the set of pixels of one class. Its surface is the pixels with a neighbour outside the mask along an axis (4
//! neighbours in 2D, 6 in 3D); what is beyond the image is outside. Distances are those of the centres of pixels, in the
//! unit of the spacing.
//!
//! | metric | formula | both masks empty | one empty |
//! |---|---|---|---|
//! | Dice | 2 \|A and B\| / (\|A\| + \|B\|) | 1 | 0 |
//! | `IoU` | \|A and B\| / \|A or B\| | 1 | 0 |
//! | `NSD` | share of both surfaces that is within the tolerance of the other surface | 1 | 0 |
//! | `HD95` | 95th percentile of the distances to the other surface | undefined | undefined |
//! | `ASD` | mean of these distances, of both surfaces together | undefined | undefined |
//!
//! Where packages compute different numbers under one name:
//!
//! | | medpy 0.5.2 | MONAI 1.6.1 | here |
//! |---|---|---|---|
//! | HD95 | percentile of the distances of both surfaces together | the larger of the percentiles of each surface | [`Hausdorff`] |
//! | ASD | mean of both together (`assd`); of one surface (`asd`) | of the predicted surface, or of both together (`symmetric`) | both together |
//! | NSD | none | counted in pixels, or weighted by area (`use_subvoxels`) | counted in pixels |
//! | empty masks | an error, or Dice 0 of two empty masks | NaN, or Dice 1 of two empty masks (`ignore_empty`) | the table above |
//!
//! Sources: Taha and Hanbury (2015), doi:10.1186/s12880-015-0068-x (overlap, HD95, ASD); Nikolov et al. (2021),
//! doi:10.2196/26151 (NSD); Maier-Hein et al. (2024), doi:10.1038/s41592-023-02151-z (empty masks). Percentiles interpolate
//! linearly. Golden values: MONAI 1.6.1, medpy 0.5.2, scipy 1.17.1 (`tests/golden/masks.json`).

mod cup_to_disc;
mod distance_transform;
mod grid;
mod pair;
mod settings;
mod surface;

pub use cup_to_disc::{vertical_cup_to_disc_error, vertical_diameter};
pub use distance_transform::distance_transform;
pub use grid::{LabelPair, Labels, MaskGrid};
pub use pair::{PairScore, SurfaceScore, score_pair};
pub use settings::{Hausdorff, MaskClass, MaskSettings};

#[cfg(test)]
mod tests;
