//! The `fairtte` binary; everything it does is in the library beside it.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::keep_free_memory();
    fairtte_cli::main()
}
