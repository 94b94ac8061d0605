//! `fairtte` with one more strategy and one more head, which are not part of FairTTE: `[strategy.worst-group]` and
//! `[head.cloglog]` work in run files, `list`, `train`, `compare` and reports of this program.
//!
//! ```text
//! cargo run -p fairtte-outside -- train --config run.toml --set strategy.worst-group.weight=2 --set head=cloglog
//! ```

mod cloglog;
mod worst_group;

use std::process::ExitCode;

use cloglog::CloglogConfig;
use fairtte_cli::Extensions;
use worst_group::WorstGroupConfig;

fn main() -> ExitCode {
    fairtte_cli::main_with(Extensions::default().strategy::<WorstGroupConfig>().head::<CloglogConfig>())
}
