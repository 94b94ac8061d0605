//! `fairtte` with one more strategy, which is not part of FairTTE: `[strategy.worst-group]` works in run files, `list`,
//! `train`, `compare` and reports of this program.
//!
//! ```text
//! cargo run -p fairtte-outside -- train --config run.toml --set strategy.worst-group.weight=2
//! ```

mod worst_group;

use std::process::ExitCode;

use fairtte_cli::Extensions;
use worst_group::WorstGroupConfig;

fn main() -> ExitCode {
    fairtte_cli::main_with(Extensions::default().strategy::<WorstGroupConfig>())
}
