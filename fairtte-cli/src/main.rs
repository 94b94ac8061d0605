//! The `fairtte` binary; everything it does is in the library beside it.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Tables, images and tensors come and go in large pieces; the system's allocator gives each of them back to the kernel,
/// and filling fresh pages costs more than the arithmetic in them (docs/src/data.md has the measurements).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    fairtte_cli::main()
}
