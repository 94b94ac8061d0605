//! Choosing among finished runs by their validation part, and what the chosen ones are worth in the test part.
//!
//! The paper's rule (section 3, F.3): of the base strategy the weights with the best validation metric; of every other
//! strategy those with the smallest gap between the groups of an attribute among those that lose at most 5 % of the base
//! model's metric; once per metric and attribute. MEDFAIR's three (Zong et al. 2023, 3.3) treat every strategy alike. Every
//! epoch that a rule of the training kept takes part, so no model is trained again. Nothing of the test part is looked at
//! before the choice stands.

mod candidates;
mod choose;
mod table;

pub(crate) use candidates::Runs;
pub(crate) use choose::{NotTrained, Rule, Verdict, choose};
pub(crate) use table::{markdown, terminal};
