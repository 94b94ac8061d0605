//! Every public function of `fairtte-metrics` on hostile input; the cases are shared with `tests/hostile.rs`.
#![no_main]

#[path = "../../tests/hostile/mod.rs"]
mod cases;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Cases are too small to be worth more than one thread.
static POOL: LazyLock<ThreadPool> = LazyLock::new(|| ThreadPoolBuilder::new().num_threads(1).build().expect("a thread"));

fuzz_target!(|bytes: &[u8]| POOL.install(|| cases::try_everything(bytes)));
