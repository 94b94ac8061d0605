//! Groups, a metric in each of them, and the comparison of its values between groups.

pub(crate) mod comparison;
pub(crate) mod groups;
pub(crate) mod per_group;

pub use comparison::{Comparison, EquityScaling};
pub use groups::Groups;
pub use per_group::{Direction, EquityScaled, GroupValue, PerGroup};

#[cfg(test)]
mod tests;
