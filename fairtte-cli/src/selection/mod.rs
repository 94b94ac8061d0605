//! The choice among finished runs by their validation part, and the results of the chosen ones in the test part.
//!
//! The paper's rule (section 3, F.3): for the base strategy, the weights with the best validation metric; for every
//! other strategy, those with the smallest gap between the groups of an attribute among those that lose at most 5 % of
//! the base model's metric; once per metric and attribute. MEDFAIR's three (Zong et al. 2023, 3.3) treat every strategy
//! alike. Every epoch that a rule of the training kept is a candidate, so no model is trained again. The test part is
//! not used before the choice is final.
//!
//! Strategies are compared with the base strategy *under their own rule* (the control row): the base of the paper has the
//! best metric, so a strategy that does nothing would seem to lose utility for fairness.
//!
//! `trainings.rs` finds the weights that runs kept, `candidates.rs` scores them, `pick.rs` chooses, `rows.rs` chooses for every seed and draw, `choose.rs`, `worth.rs` and `change.rs`
//! evaluate the test part, `horizon.rs` with weights for censoring where a class is made from times, `ranks.rs` compares over blocks,
//! `verdict.rs` is the result, which `table.rs` and `page.rs` show, the latter with means over seeds (`seeds.rs`); `flat.rs` has every
//! number in one table.

mod candidates;
mod change;
mod choose;
mod flat;
mod horizon;
mod page;
mod pick;
mod ranks;
mod rows;
mod scored_part;
mod seeds;
mod table;
mod trainings;
mod verdict;
mod worth;

pub(crate) use candidates::Runs;
#[cfg(feature = "train")]
pub(crate) use change::change;
pub(crate) use choose::{Asked, choose};
pub(crate) use page::page;
#[cfg(feature = "train")]
pub(crate) use scored_part::OfClass;
pub(crate) use table::{markdown, terminal};
pub(crate) use verdict::{LossOf, NotTrained, Rule, Verdict};
