//! Decodes the images of a table into a store and measures one epoch of batches from it.
//!
//! `cargo run --release -p fairtte-data --example ingest -- COHORT.csv CACHE [SIDE [CHANNELS [augment]]]`
//!
//! The table has the columns of the `generic` data set (`image, subject_id, time, event`). After an interruption at any
//! moment, the same command resumes. `dataloader.py` beside this file does the same epoch with PyTorch and Pillow.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fairtte_data::loader::{Augmentation, AugmentationConfig, Flip};
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
}

impl Arguments {
    fn read() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        let (table, cache) = (words.next()?.into(), words.next()?.into());
        let mut number = |default: usize| words.next().map_or(Some(default), |word| word.parse().ok());
        let (side, channels) = (number(224)?, number(3)?);
        Some(Self { table, cache, side, channels, augment: words.next().is_some_and(|word| word == "augment") })
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::read() else {
        eprintln!("usage: ingest COHORT.csv CACHE [SIDE [CHANNELS [augment]]]");
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
    epochs(&cohort.without(&undecodable), &store, Augmentation::new(&settings, &image, adapter.name())?)
}

/// Three epochs of shuffled batches; the first also brings the store into memory.
fn epochs(cohort: &Cohort, store: &ImageStore, augmentation: Augmentation) -> Result<(), DataError> {
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
    Ok(())
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
