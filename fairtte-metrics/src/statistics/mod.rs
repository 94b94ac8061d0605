//! Statistical comparison of models: two on paired values, or several over many data sets; and of two samples.
//!
//! Two models: [`wilcoxon_signed_rank`]. Several: a [`RankTable`], then [`friedman`] or [`iman_davenport`] (is there any
//! difference?), [`nemenyi`] or [`pairwise_wilcoxon`] with [`adjust_pairwise`] (between whom?), and [`cliques`] for the
//! bars of a critical-difference diagram. Procedure: Demšar, "Statistical Comparisons of Classifiers over Multiple Data
//! Sets", Journal of Machine Learning Research 7 (2006) 1-30.
//!
//! Two samples of subjects: [`standardised_difference_of_means`] and its relatives, which say how far apart they are and do
//! not grow with their size, as a p value does.
//!
//! A trend: [`linear_fit`], and [`spearman`] with [`spearman_p_value`].

mod adjustment;
mod cliques;
mod friedman;
mod nemenyi;
mod pairwise;
mod proportion;
mod rank_correlation;
mod rank_table;
mod ranks;
mod regression;
mod signed_rank;
mod signed_rank_distribution;
mod signed_rank_settings;
mod standardised_difference;
mod studentized_range;
mod tails;

pub use crate::chi_square::chi_square_upper_tail;
pub use crate::normal::normal_quantile;
pub use adjustment::{Adjustment, adjust_p_values};
pub use cliques::{CliqueRule, cliques, p_value_cliques};
pub use friedman::{FriedmanTest, ImanDavenportTest, RankTies, friedman, iman_davenport};
pub use nemenyi::{RangeQuantile, critical_difference, nemenyi};
pub use pairwise::{adjust_pairwise, pairwise_wilcoxon};
pub use proportion::wilson_interval;
pub use rank_correlation::spearman;
pub use rank_table::RankTable;
pub use regression::{LinearFit, linear_fit, spearman_p_value};
pub use signed_rank::{SignedRankTest, wilcoxon_of_differences, wilcoxon_signed_rank};
pub use signed_rank_distribution::MAX_EXACT_DIFFERENCES;
pub use signed_rank_settings::{Alternative, SignedRankMethod, SignedRankNull, SignedRankSettings, ZeroDifferences};
pub use standardised_difference::{
    standardised_difference_of_levels, standardised_difference_of_means, standardised_difference_of_shares,
};
pub use tails::normal_upper;

use crate::MetricError;

/// A significance level that every function here can work with.
fn check_alpha(alpha: f64) -> Result<(), MetricError> {
    if (1e-100..1.0).contains(&alpha) {
        return Ok(());
    }
    let expected = "a significance level in [1e-100, 1)";
    Err(MetricError::InvalidSetting { setting: "alpha", value: alpha.to_string(), expected })
}

/// How many standard errors an interval of `level` in (0, 1) reaches to each side.
fn normal_interval_quantile(level: f64) -> f64 {
    normal_quantile(0.5 + level / 2.0)
}
