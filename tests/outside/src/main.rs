//! `fairtte` with one more strategy, head and metric, which are not part of FairTTE: `[strategy.worst-group]`,
//! `[head.cloglog]` and `--metrics mae-uncensored` work in run files, `list`, `train`, `compare`, `evaluate` and reports of
//! this program.
//!
//! ```text
//! cargo run -p fairtte-outside -- train --config run.toml --set strategy.worst-group.weight=2 --set head=cloglog
//! ```

mod cloglog;
mod lost_device;
mod mae_uncensored;
mod worst_group;

use std::process::ExitCode;

use cloglog::CloglogConfig;
use fairtte_cli::Extensions;
use lost_device::LostDeviceConfig;
use mae_uncensored::MaeUncensored;
use worst_group::WorstGroupConfig;

fn main() -> ExitCode {
    let extensions = Extensions::default().strategy::<WorstGroupConfig>().strategy::<LostDeviceConfig>();
    fairtte_cli::main_with(extensions.head::<CloglogConfig>().metric(&MaeUncensored))
}
