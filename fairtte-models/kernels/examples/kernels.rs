//! Prints a table of the instruction set that the kernels use on this machine, and of the time that each set takes.
//!
//! `cargo run --release -p fairtte-kernels --example kernels`. The table shows the factor that a silent fallback from
//! the best set to the baseline costs; a test asserts that the best set is in use. Each set runs in a process of its
//! own, because it is chosen once, by the environment variable `FAIRTTE_ISA`. With `--caches` the table is of block sizes, by the
//! L2 cache that `FAIRTTE_L2` states.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::process::Command;

use fairtte_kernels::{Blocks, InstructionSet, blocks, simd, survey};

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--measure") {
        for layer in survey::layers() {
            println!("{}\t{}", layer.name, layer.seconds);
        }
        return Ok(());
    }
    if std::env::args().nth(1).as_deref() == Some("--caches") {
        return table(blocks::VARIABLE, &["256K", "512K", "1M", "2M", "4M"]);
    }
    let sets: Vec<_> = InstructionSet::ALL.into_iter().filter(|set| set.is_available()).collect();
    println!("in use: {}, best of this CPU: {}", InstructionSet::in_use().name(), InstructionSet::best().name());
    println!("{:?}\n", Blocks::in_use());
    table(simd::VARIABLE, &sets.iter().map(|set| set.name()).collect::<Vec<_>>())
}

/// Times of the kernels with every value of an environment variable.
fn table(variable: &str, values: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut columns = Vec::new();
    for value in values {
        let run = Command::new(std::env::current_exe()?).arg("--measure").env(variable, value).output()?;
        let text = String::from_utf8(run.stdout)?;
        columns.push(text.lines().map(parsed).collect::<Result<Vec<_>, _>>()?);
    }
    let best = columns.first().ok_or("no instruction set")?;
    let heads: Vec<_> = values.iter().map(|value| format!("{value} (ms)")).collect();
    println!("| kernel | {} | slowest / fastest |\n|---|{}---|", heads.join(" | "), "---|".repeat(values.len()));
    for (row, (name, _)) in best.iter().enumerate() {
        let times: Vec<f64> = columns.iter().map(|column| column[row].1).collect();
        let cells: Vec<_> = times.iter().map(|seconds| format!("{:.2}", 1e3 * seconds)).collect();
        let (fastest, slowest) =
            (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
        println!("| {name} | {} | {:.1} |", cells.join(" | "), slowest / fastest);
    }
    Ok(())
}

fn parsed(line: &str) -> Result<(String, f64), Box<dyn Error>> {
    let (name, seconds) = line.split_once('\t').ok_or("a line of two columns")?;
    Ok((name.to_owned(), seconds.parse()?))
}
