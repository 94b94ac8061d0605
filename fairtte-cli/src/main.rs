//! The `fairtte` binary; its code is in the library of this crate.

use std::process::ExitCode;

use fairtte_cli::memory::{Allocator, keep_free_memory};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    keep_free_memory();
    fairtte_cli::main()
}
