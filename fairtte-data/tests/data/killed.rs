//! Ingestion that is killed, runs twice at the same time, or fills the disk.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fairtte_data::image::StoreOptions;
use fairtte_data::{Cohort, ImageConfig, ImageStore};
use fairtte_metrics::seeds::stream;
use rand::RngExt as _;

use crate::make;

/// Tell the child process below what to do.
const CACHE: &str = "FAIRTTE_TEST_CACHE";
const IMAGES: &str = "FAIRTTE_TEST_IMAGES";

const N_IMAGES: usize = 24;
const THREE: StoreOptions = StoreOptions { images_per_shard: Some(3) };
const N_SHARDS: u64 = 8;

fn image() -> ImageConfig {
    ImageConfig { size: vec![40, 48], channels: 3, ..ImageConfig::default() }
}

fn cohort(folder: &Path) -> Cohort {
    let names: Vec<String> = (0..=N_IMAGES).map(|i| format!("{i:02}.png")).collect();
    make::cohort(folder, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Pictures that take a while to decode; the last file is empty.
fn folder_of_pictures() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..u32::try_from(N_IMAGES).unwrap() {
        let film = image::RgbImage::from_fn(200, 150, |x, y| {
            let value = |factor: u32| u8::try_from((x * factor + y * (i + 3) + x * y / 7) % 256).unwrap();
            image::Rgb([value(1), value(3), value(5)])
        });
        film.save(folder.path().join(format!("{i:02}.png"))).unwrap();
    }
    std::fs::write(folder.path().join(format!("{N_IMAGES:02}.png")), b"").unwrap();
    folder
}

/// Not a test but the process that the tests below start, kill and limit; without its variables it does nothing.
#[test]
fn child_process() {
    let (Some(cache), Some(images)) = (std::env::var_os(CACHE), std::env::var_os(IMAGES)) else { return };
    let adapter = fairtte_data::Generic::new(fairtte_data::GenericConfig::new(Path::new(&images).join("cohort.csv")));
    let read = fairtte_data::Adapter::read(&adapter).unwrap();
    let (cohort, _) = fairtte_data::build_cohort(read, &[]).unwrap();
    match ImageStore::open_or_build_with(&cohort, &image(), Path::new(&cache), &THREE, &|_, _| {}) {
        Ok((store, exclusions)) => assert_eq!((store.n(), exclusions.len()), (N_IMAGES, 1)),
        Err(error) => panic!("{error}"),
    }
}

const CHILD: [&str; 3] = ["--exact", "killed::child_process", "--nocapture"];

fn child(images: &Path, cache: &Path, threads: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(CHILD).stdout(Stdio::null()).stderr(Stdio::null());
    command.env(CACHE, cache).env(IMAGES, images).env("RAYON_NUM_THREADS", threads.to_string());
    command
}

/// The only store of a cache.
fn store_folder(cache: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(cache).ok()?.map(|entry| entry.unwrap().path());
    entries.next()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn contents(cache: &Path) -> BTreeMap<String, Vec<u8>> {
    let folder = store_folder(cache).unwrap();
    names(&folder).into_iter().map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

fn n_shards(cache: &Path) -> usize {
    let names = store_folder(cache).map(|folder| names(&folder)).unwrap_or_default();
    names.iter().filter(|name| name.starts_with("shard-")).count()
}

fn is_finished(cache: &Path) -> bool {
    store_folder(cache).is_some_and(|folder| folder.join("index.json").exists())
}

fn resume(cohort: &Cohort, cache: &Path, threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let build = || ImageStore::open_or_build_with(cohort, &image(), cache, &THREE, &|_, _| {}).unwrap();
    let (store, exclusions) = pool.install(build);
    assert_eq!((store.n(), exclusions.len()), (N_IMAGES, 1));
}

/// Twenty moments: after a random number of shards and a random part of the time that one takes here, be the disk fast or slow.
#[test]
fn a_build_killed_at_any_moment_ends_with_the_same_bytes() {
    let images = folder_of_pictures();
    let cohort = cohort(images.path());
    let caches = tempfile::tempdir().unwrap();
    let undisturbed = caches.path().join("undisturbed");
    let begin = Instant::now();
    resume(&cohort, &undisturbed, 2);
    let of_shard = u64::try_from(begin.elapsed().as_micros()).unwrap() / N_SHARDS;
    let expected = contents(&undisturbed);
    let mut rng = stream(20, "kill", &[]);
    let mut n_unfinished = 0;
    for moment in 0..20 {
        let cache = caches.path().join(moment.to_string());
        let (shards, pause) = (rng.random_range(0..N_SHARDS), rng.random_range(0..=of_shard));
        let mut process = child(images.path(), &cache, [1, 2, 4][moment % 3]).spawn().unwrap();
        let begin = Instant::now();
        while (n_shards(&cache) as u64) < shards && process.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_mins(2), "the child makes no progress");
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(pause));
        process.kill().unwrap();
        process.wait().unwrap();
        n_unfinished += usize::from(!is_finished(&cache));
        let kept = n_shards(&cache);
        resume(&cohort, &cache, [4, 1, 2][moment % 3]);
        assert!(contents(&cache) == expected, "moment {moment}: killed after {kept} shards");
    }
    assert!(n_unfinished >= 10, "only {n_unfinished} of 20 builds were killed before their end");
}

#[test]
fn three_builds_at_once_make_one_store() {
    let images = folder_of_pictures();
    let cohort = cohort(images.path());
    let caches = tempfile::tempdir().unwrap();
    let (alone, together) = (caches.path().join("alone"), caches.path().join("together"));
    resume(&cohort, &alone, 2);
    let processes: Vec<_> = (1..=3).map(|threads| child(images.path(), &together, threads).spawn().unwrap()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert!(contents(&together) == contents(&alone));
}

/// A limit on the size of a file stands for a full disk. Signal 25 would end the process instead of the write.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_names_the_file_and_the_bytes_that_are_missing() {
    let images = folder_of_pictures();
    let cohort = cohort(images.path());
    let cache = images.path().join("cache");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    command.args(CHILD).env(CACHE, &cache).env(IMAGES, images.path());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!status.success());
    assert!(said.contains("shard-00000.bin: ") && said.contains("bytes of images are still to be written"), "{said}");
    // All 25 files of 40 x 48 x 3 bytes.
    assert!(said.contains("144000 bytes"), "{said}");
    assert_eq!(n_shards(&cache), 0);
    resume(&cohort, &cache, 2);
}
