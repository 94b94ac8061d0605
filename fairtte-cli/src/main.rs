//! The `fairtte` binary; everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairtte_cli::main()
}
