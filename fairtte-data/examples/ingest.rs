//! Decodes the images of a table into a store and measures one epoch of batches from it.
//!
//! `cargo run --release -p fairtte-data --example ingest -- COHORT.csv CACHE [SIDE [CHANNELS [augment [RATE]]]]`
//!
//! With a RATE the last epochs feed a device that does not exist: it takes RATE images per second, during which this
//! thread only sleeps, as a training that waits for a GPU. The share of the time in which it waits for batches is printed, for
//! batches that are made in turn, ahead, and ahead as stored values.
//!
//! The table has the columns of the `generic` data set (`image, subject_id, time, event`). After an interruption at any
//! moment, the same command resumes. `dataloader.py` beside this file does the same epoch with PyTorch and Pillow.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fairtte_data::loader::{Ahead, Augmentation, AugmentationConfig, Batches, Flip};
use fairtte_data::{
    Adapter as _, Cohort, DataError, Generic, GenericConfig, ImageConfig, ImageStore, IntensityConfig, Loader,
    Sampling, build_cohort,
};
use mimalloc::MiMalloc;

/// The allocator of the program `fairtte`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const BATCH_SIZE: usize = 64;

struct Arguments {
    table: PathBuf,
    cache: PathBuf,
    side: usize,
    channels: usize,
    augment: bool,
    /// Images per second that a device takes.
    rate: Option<f64>,
}

impl Arguments {
    fn read() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        let (table, cache) = (words.next()?.into(), words.next()?.into());
        let mut number = |default: usize| words.next().map_or(Some(default), |word| word.parse().ok());
        let (side, channels) = (number(224)?, number(3)?);
        let augment = words.next().is_some_and(|word| word == "augment");
        let rate = words.next().and_then(|word| word.parse().ok()).filter(|rate| *rate > 0.0);
        Some(Self { table, cache, side, channels, augment, rate })
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::read() else {
        eprintln!("usage: ingest COHORT.csv CACHE [SIDE [CHANNELS [augment|as-it-is [RATE]]]]");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), DataError> {
    let adapter = Generic::new(GenericConfig::new(&arguments.table));
    let (cohort, _) = build_cohort(adapter.read()?, &[])?;
    let side = arguments.side;
    let image = ImageConfig { size: vec![side, side], channels: arguments.channels, ..ImageConfig::default() };
    println!("{}", ImageStore::estimate(&cohort, &image, &arguments.cache)?);
    let begin = Instant::now();
    let progress = Progress::default();
    let (store, undecodable) =
        ImageStore::open_or_build(&cohort, &image, &arguments.cache, &|done, total| progress.update(done, total))?;
    println!("{} images stored or found in {:.2?}", store.n(), begin.elapsed());
    for exclusion in &undecodable {
        println!("left out: {} {} ({})", exclusion.sample_id, exclusion.reason, exclusion.source);
    }
    let begin = Instant::now();
    store.verify()?;
    println!("every checksum compared in {:.2?}", begin.elapsed());
    let settings = AugmentationConfig {
        crop: Some(vec![side * 7 / 8; 2]),
        flip: Flip::Horizontal,
        rotation: 15.0,
        ..AugmentationConfig::default()
    };
    let settings = if arguments.augment { settings } else { AugmentationConfig::default() };
    let augmentation = Augmentation::new(&settings, &image, adapter.name())?;
    epochs(&cohort.without(&undecodable), &store, augmentation, arguments.rate)
}

/// Three epochs of shuffled batches; the first also brings the store into memory.
fn epochs(cohort: &Cohort, store: &ImageStore, augmentation: Augmentation, rate: Option<f64>) -> Result<(), DataError> {
    let rows = cohort.all_rows();
    let intensity = IntensityConfig::Standardise.fit(store, cohort, &rows)?;
    let loader = Loader::new(store, cohort, vec![None; cohort.n()], &intensity)?.with_augmentation(augmentation)?;
    for epoch in 0..3 {
        let begin = Instant::now();
        // Every value is read, so that every batch is really made.
        let sum: f64 = loader
            .batches(&rows, BATCH_SIZE, &Sampling::Shuffled, 1, epoch)?
            .map(|batch| batch.pixels.iter().step_by(997).map(|value| f64::from(*value)).sum::<f64>())
            .sum();
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "epoch {epoch}: {:.3} s, {:.0} images per second (sum {sum:.3})",
            seconds,
            rows.len() as f64 / seconds
        );
    }
    let Some(rate) = rate else { return Ok(()) };
    for (name, n_ahead, as_stored) in
        [("in turn", 0, false), ("2 ahead", 2, false), ("2 ahead, as stored values", 2, true)]
    {
        let batches = loader.batches(&rows, BATCH_SIZE, &Sampling::Shuffled, 1, 3)?;
        let batches = if as_stored { batches.as_stored() } else { batches };
        let (waited, whole) = fed(batches, n_ahead, rate);
        println!(
            "a device of {rate:.0} images per second, batches {name}: {:.0} images per second, {:.1} % of the time without a batch",
            rows.len() as f64 / whole,
            100.0 * waited / whole
        );
    }
    Ok(())
}

/// Seconds without a batch, and all seconds, of a device that takes `rate` images per second. Time that the host needs
/// for the first batch counts.
fn fed(batches: Batches<'_>, n_ahead: usize, rate: f64) -> (f64, f64) {
    let n = batches.len();
    std::thread::scope(|scope| {
        let begin = Instant::now();
        let (mut waited, mut made) = (Duration::ZERO, Ahead::new(batches, 0..n, n_ahead, scope));
        loop {
            let asked = Instant::now();
            let Some(batch) = made.next() else { break };
            waited += asked.elapsed();
            std::thread::sleep(Duration::from_secs_f64(batch.rows.len() as f64 / rate));
        }
        (waited.as_secs_f64(), begin.elapsed().as_secs_f64())
    })
}

/// Time left, from the images decoded since the first call: shards of an earlier run cost nothing.
#[derive(Default)]
struct Progress(Mutex<Option<(Instant, usize, Instant)>>);

impl Progress {
    fn update(&self, done: usize, total: usize) {
        let Ok(mut state) = self.0.lock() else { return };
        let (begin, first, said) = state.get_or_insert_with(|| (Instant::now(), done, Instant::now()));
        if said.elapsed() < Duration::from_secs(2) || done <= *first {
            return;
        }
        let left = begin.elapsed().mul_f64((total - done) as f64 / (done - *first) as f64);
        *said = Instant::now();
        eprintln!("{done} of {total} images, {:.0} s left", left.as_secs_f64());
    }
}
