//! Rank metrics: concordance of scores and of curves, cumulative/dynamic AUC.

pub(crate) mod auc_convention;
pub(crate) mod auc_td;
pub(crate) mod auc_walk;
pub(crate) mod comparable_pairs;
pub(crate) mod concordance;
pub(crate) mod concordance_bins;
pub(crate) mod concordance_direct;
pub(crate) mod concordance_td;
pub(crate) mod concordance_td_variants;
pub(crate) mod fenwick;
pub(crate) mod reading_td;
pub(crate) mod tied_pairs;
pub(crate) mod uno;
