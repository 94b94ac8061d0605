//! Times the conversion of picture files to 8-bit pixels on one thread, for comparison with other programs.
//!
//! `pictures SIZE CHANNELS exact|scaled OUT FILE..` prepares every file once, writes the pixels of all of them to OUT
//! one after the other (`-` for nowhere) and prints the milliseconds it took. `examples/pictures.py` runs it in turn
//! with Pillow and prints the ratios.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use fairtte_data::image::{ImageConfig, Pixels, prepare_image, recipe};
use mimalloc::MiMalloc;

/// The allocator of the program `fairtte`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, channels, mode, out, files @ ..] = arguments.as_slice() else {
        eprintln!("usage: pictures SIZE CHANNELS exact|scaled OUT FILE..");
        return ExitCode::from(2);
    };
    let (Ok(size), Ok(channels)) = (size.parse::<usize>(), channels.parse::<usize>()) else {
        eprintln!("SIZE and CHANNELS must be numbers");
        return ExitCode::from(2);
    };
    let config = ImageConfig { size: vec![size, size], channels, exact: mode == "exact", ..ImageConfig::default() };
    eprintln!("{}", recipe(&config));
    let mut prepared = Vec::new();
    let begin = Instant::now();
    for file in files {
        match prepare_image(Path::new(file), &config) {
            Ok(Pixels::Picture(pixels)) => prepared.extend(pixels),
            Ok(Pixels::Volume(_)) => eprintln!("{file}: a volume"),
            Err(refused) => eprintln!("{file}: {}", refused.detail),
        }
    }
    let elapsed = begin.elapsed();
    if out != "-"
        && let Err(error) = std::fs::write(out, &prepared)
    {
        eprintln!("{out}: {error}");
        return ExitCode::FAILURE;
    }
    match writeln!(std::io::stdout(), "{:.3}", elapsed.as_secs_f64() * 1e3) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
