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
pub(crate) mod convention_td;
pub(crate) mod curves_read;
pub(crate) mod fenwick;
pub(crate) mod tied_pairs;
pub(crate) mod uno;

pub use auc_convention::AucConvention;
pub use auc_td::{AucTd, PreparedAucTd, TIE_TOLERANCE, auc_of_risks, auc_td, auc_td_with};
pub use concordance::{HarrellC, harrell_concordance, harrell_variance};
pub use concordance_td::{ConcordanceTd, PreparedConcordanceTd, TiedPredictions, concordance_td};
pub use concordance_td_variants::{ConcordanceTdSums, concordance_td_ipcw, concordance_td_with};
pub use convention_td::ConventionTd;
pub use tied_pairs::{TieTest, TiedPairs};
pub use uno::{UnoC, UnoConvention, uno_concordance};
