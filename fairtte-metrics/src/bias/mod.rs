//! Sources of bias in the data: distances and dependence between groups, with the values expected by chance alone.

mod components;
mod disparity;
mod gap_bound;
mod information;
mod ksg;
mod measure;
mod mutual_information;
mod permutation;
mod quantise;
mod ridge_logistic;
mod separability;
mod sources;
mod symmetric_eigen;
mod wasserstein;

pub use components::{Components, Reduction, principal_components, principal_components_fitted};
pub use gap_bound::{GapBound, GapBoundSettings, PairBound, curve_distances, gap_bound};
pub use ksg::{
    DEFAULT_NEIGHBOURS, DimensionInformation, ksg_mutual_information, ksg_mutual_information_discrete,
    ksg_per_dimension, ksg_per_dimension_discrete,
};
pub use mutual_information::{ContingencyTable, Normalisation, NullCorrected};
pub use permutation::{LabelPermutations, PermutationTest, permutation_test};
pub use quantise::{KMeans, KMeansSettings, equal_frequency_bins, equal_width_bins, k_means};
pub use separability::{LevelSeparability, Separability, separability};
pub use sources::{
    BiasSettings, BiasSource, BiasSources, DisparityEstimate, GroupSummary, PairDisparity, Quantisation,
    SourceDisparity, SourceGroup, bias_sources,
};
pub use wasserstein::{
    Distribution, SlicedWasserstein, energy_distance, seeded_projections, sliced_wasserstein, wasserstein_1,
    wasserstein_p, wasserstein_p_power,
};
