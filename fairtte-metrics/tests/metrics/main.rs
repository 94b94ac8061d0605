//! Tests of metrics through the public interface, as one program: recorded values of other packages, laws, whole evaluations, and
//! hostile input.

#![expect(clippy::unwrap_used, reason = "a recording that cannot be read fails the test")]

mod bias_laws;
mod bias_sources;
mod competing;
mod evaluation;
mod evaluation_by_hand;
mod families;
mod golden;
mod hostile;
mod laws;
mod laws_groups;
mod laws_pairs;
mod laws_rank;
mod medfair;
mod records;
mod scores_laws;
mod tally;
