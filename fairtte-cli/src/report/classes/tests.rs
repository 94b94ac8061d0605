//! The page, the terminal and the flat table on a small cohort.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
