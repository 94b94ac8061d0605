//! Models of outcomes with several causes, which predict the cumulative incidence of each.

mod cause_specific;
mod cause_specific_cox;
mod fine_gray;
mod subdistribution;

pub use cause_specific::CauseSpecific;
pub use cause_specific_cox::{CauseSpecificCox, CauseSpecificSettings};
pub(crate) use fine_gray::of_one_kind;
pub use fine_gray::{FineGrayCoefficient, FineGrayModel, FineGraySettings};

#[cfg(test)]
mod tests;
