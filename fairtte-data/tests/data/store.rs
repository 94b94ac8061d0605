//! The image store: equal to direct decoding, written once and reused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use fairtte_data::cohort::{Exclusion, Reason};
use fairtte_data::image::{Pixels, StoreOptions, StoredPixels, prepare_image};
use fairtte_data::{Cohort, ImageConfig, ImageStore};
use tempfile::TempDir;

use crate::make;

const SEVEN: StoreOptions = StoreOptions { images_per_shard: Some(7) };

fn films(channels: usize) -> ImageConfig {
    ImageConfig { size: vec![9, 7], channels, ..ImageConfig::default() }
}

/// Forty films and a file without bytes.
fn folder_of_films() -> (TempDir, Cohort) {
    let folder = tempfile::tempdir().unwrap();
    let mut names: Vec<String> = (0..40).map(|i| format!("{i}.png")).collect();
    for (i, name) in names.iter().enumerate() {
        make::png(&folder.path().join(name), i * 5);
    }
    std::fs::write(folder.path().join("empty.png"), b"").unwrap();
    names.insert(17, "empty.png".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cohort = make::cohort(folder.path(), &names);
    (folder, cohort)
}

/// Opens the store with seven images per shard and counts how many images were decoded for it.
fn open(cohort: &Cohort, config: &ImageConfig, folder: &TempDir) -> (ImageStore, Vec<Exclusion>, usize) {
    let calls = Mutex::new(Vec::new());
    let count = |done, total| {
        assert_eq!(total, cohort.n());
        calls.lock().unwrap().push(done);
    };
    let cache = folder.path().join("cache");
    let (store, exclusions) = ImageStore::open_or_build_with(cohort, config, &cache, &SEVEN, &count).unwrap();
    let mut calls = calls.into_inner().unwrap();
    calls.sort_unstable();
    let n_decoded = calls.len().saturating_sub(1);
    // From the files of the earlier build to all files, each number once.
    assert!(calls.is_empty() || calls == (cohort.n() - n_decoded..=cohort.n()).collect::<Vec<_>>(), "{calls:?}");
    (store, exclusions, n_decoded)
}

/// Name and content of every file of a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn the_store_equals_direct_decoding() {
    let (folder, cohort) = folder_of_films();
    for channels in [1, 3] {
        let (store, exclusions, _) = open(&cohort, &films(channels), &folder);
        let rest = cohort.without(&exclusions);
        assert_eq!((store.n(), rest.n()), (40, 40));
        for sample in &rest.samples {
            let stored = store.pixels(store.position(&sample.sample_id).unwrap());
            let Ok(Pixels::Picture(direct)) = prepare_image(&sample.image, &films(channels)) else { panic!("a film") };
            assert_eq!(stored, StoredPixels::Picture(&direct));
        }
        store.verify().unwrap();
    }
}

#[test]
fn programs_that_map_the_files_find_every_image_in_them() {
    let (folder, cohort) = folder_of_films();
    for channels in [1, 3] {
        let (store, _, _) = open(&cohort, &films(channels), &folder);
        assert_eq!(store.stored_shape(), [channels, 9, 7]);
        let size = channels * 9 * 7;
        let mut position = 0;
        for shard in store.shards() {
            assert!(shard.n > 0 && shard.n <= 7);
            let bytes = std::fs::read(shard.path).unwrap();
            for image in bytes[shard.begin..][..shard.n * size].chunks(size) {
                let StoredPixels::Picture(pixels) = store.pixels(position) else { panic!("a film") };
                assert_eq!(pixels, image);
                position += 1;
            }
        }
        assert_eq!((position, store.shards().count()), (40, 6));
        let samples: Vec<_> = store.samples().collect();
        assert_eq!(samples.len(), 40);
        for (place, sample) in samples.into_iter().enumerate() {
            assert_eq!(store.position(sample), Some(place));
        }
    }
}

#[test]
fn volumes_are_stored_once_whatever_the_number_of_channels() {
    let folder = tempfile::tempdir().unwrap();
    make::nifti(&folder.path().join("a.nii"), [3, 5, 6, 7, 1, 1, 1, 1]);
    make::nifti(&folder.path().join("b.nii.gz"), [3, 8, 6, 7, 1, 1, 1, 1]);
    let cohort = make::cohort(folder.path(), &["a.nii", "b.nii.gz"]);
    let config = ImageConfig { size: vec![4, 3, 2], channels: 3, ..ImageConfig::default() };
    let (store, _, _) = open(&cohort, &config, &folder);
    assert_eq!((store.n_channels(), store.size()), (3, [4, 3, 2].as_slice()));
    assert_eq!(store.stored_shape(), [1, 4, 3, 2]);
    for sample in &cohort.samples {
        let Ok(Pixels::Volume(direct)) = prepare_image(&sample.image, &config) else { panic!("a volume") };
        assert_eq!(direct.len(), 24);
        assert_eq!(store.pixels(store.position(&sample.sample_id).unwrap()), StoredPixels::Volume(&direct));
    }
}

#[test]
fn a_second_opening_decodes_nothing_and_remembers_what_was_left_out() {
    let (folder, cohort) = folder_of_films();
    let (first, first_exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!((n_decoded, first_exclusions.len()), (41, 1));
    let (second, second_exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!((n_decoded, second.path()), (0, first.path()));
    assert_eq!(second_exclusions, first_exclusions);
    assert_eq!(std::fs::read_dir(folder.path().join("cache")).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn another_size_or_a_changed_image_is_another_store() {
    let (folder, cohort) = folder_of_films();
    let (first, _, _) = open(&cohort, &films(1), &folder);
    let (other, _, n_decoded) = open(&cohort, &ImageConfig { size: vec![7, 9], ..ImageConfig::default() }, &folder);
    assert_eq!(n_decoded, 41);
    assert_ne!(first.path(), other.path());
    make::png(&folder.path().join("empty.png"), 200);
    let (changed, exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    // Last by its path: the five earlier shards are those of the first store.
    assert_eq!((changed.n(), exclusions.len(), n_decoded), (41, 0, 6));
    assert_eq!(first.n(), 40, "a store in use stays unchanged");
}

/// A socket has no bytes and cannot be opened, whoever asks: it stands for a file of a network folder that was away.
#[test]
#[cfg(unix)]
fn a_file_that_could_not_be_read_is_tried_again_and_decoded_when_it_can_be() {
    let (folder, cohort) = folder_of_films();
    let path = folder.path().join("39.png");
    std::fs::remove_file(&path).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let reasons = |exclusions: &[Exclusion]| exclusions.iter().map(|excluded| excluded.reason).collect::<Vec<_>>();
    let (first, exclusions, _) = open(&cohort, &films(1), &folder);
    assert_eq!(reasons(&exclusions), [Reason::ImageEmpty, Reason::ImageUnopened]);
    let (second, exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!(n_decoded, 0, "it still cannot be read");
    assert_eq!(exclusions.len(), 2);
    drop(second);
    // A file of the same size and time.
    std::fs::remove_file(&path).unwrap();
    std::fs::File::create(&path).unwrap().set_modified(time).unwrap();
    let (third, exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!(reasons(&exclusions), [Reason::ImageEmpty, Reason::ImageEmpty]);
    assert_eq!((third.path(), n_decoded), (first.path(), 7), "its shard alone is written again");
    assert_eq!(open(&cohort, &films(1), &folder).2, 0);
}

#[test]
fn changed_voxels_of_a_pair_are_another_store_whichever_half_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut header = make::nifti_bytes([3, 2, 2, 2, 1, 1, 1, 1], 2, 8, Vec::new());
    header[108..112].copy_from_slice(&0_f32.to_le_bytes());
    header[344..348].copy_from_slice(b"ni1\0");
    std::fs::write(at("a.hdr"), &header).unwrap();
    std::fs::write(at("a.img"), [1_u8, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let config = ImageConfig { size: vec![2, 2, 2], ..ImageConfig::default() };
    let first = |cohort: &Cohort| {
        let (store, _, _) = open(cohort, &config, &folder);
        let StoredPixels::Volume(voxels) = store.pixels(0) else { panic!("a volume") };
        voxels[0]
    };
    // The size stays, so that the time alone says that the file changed.
    let change = |name: &str, bytes: &[u8]| {
        std::fs::write(at(name), bytes).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::options().write(true).open(at(name)).unwrap().set_modified(later).unwrap();
    };
    let cohort = make::cohort(folder.path(), &["a.hdr"]);
    assert_eq!(first(&cohort), 0);
    change("a.img", &[8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(first(&cohort), u16::MAX);
    let cohort = make::cohort(folder.path(), &["a.img"]);
    assert_eq!(first(&cohort), u16::MAX);
    // A slope of -1 turns dark into bright.
    header[112..116].copy_from_slice(&(-1_f32).to_le_bytes());
    change("a.hdr", &header);
    assert_eq!(first(&cohort), 0);
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let (folder, cohort) = folder_of_films();
    let mut stores = Vec::new();
    for threads in [1, 2, 4] {
        let cache = folder.path().join(format!("cache {threads}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let build = || ImageStore::open_or_build_with(&cohort, &films(1), &cache, &SEVEN, &|_, _| {}).unwrap();
        let (store, _) = pool.install(build);
        stores.push(contents(store.path()));
    }
    assert_eq!(stores[0], stores[1]);
    assert_eq!(stores[0], stores[2]);
    let names: Vec<&str> = stores[0].keys().map(String::as_str).collect();
    // 41 files in shards of seven.
    let shards: Vec<String> = (0..6).map(|number| format!("shard-0000{number}.bin")).collect();
    assert_eq!(names[2..], shards);
    assert_eq!(names[..2], [".lock", "index.json"]);
}

#[test]
fn a_shard_says_how_it_was_made_and_its_voxels_are_little_endian() {
    let folder = tempfile::tempdir().unwrap();
    make::nifti(&folder.path().join("a.nii"), [3, 5, 6, 7, 1, 1, 1, 1]);
    let cohort = make::cohort(folder.path(), &["a.nii"]);
    let config = ImageConfig { size: vec![7, 6, 5], ..ImageConfig::default() };
    let (store, _, _) = open(&cohort, &config, &folder);
    let bytes = std::fs::read(store.path().join("shard-00000.bin")).unwrap();
    let number = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&bytes[72..72 + number(8)]).unwrap();
    assert_eq!(header["layout"]["element"], "u16");
    assert_eq!(header["layout"]["shape"], serde_json::json!([1, 7, 6, 5]));
    assert_eq!(header["layout"]["recipe"], store.recipe());
    assert!(store.recipe().contains(env!("CARGO_PKG_VERSION")), "{}", store.recipe());
    let (begin, end) = (number(16), number(24));
    assert_eq!((begin % 4096, end - begin), (0, 420));
    let StoredPixels::Volume(voxels) = store.pixels(0) else { panic!("a volume") };
    let stored: Vec<u16> =
        bytes[begin..end].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!(voxels, stored);
    let footer: serde_json::Value = serde_json::from_slice(&bytes[end..end + number(32)]).unwrap();
    assert_eq!(footer["images"][0]["sample"], "a.nii");
    assert_eq!(footer["images"][0]["blake3"], blake3::hash(&bytes[begin..end]).to_hex().as_str());
}

#[test]
fn the_order_of_the_rows_changes_nothing() {
    let (folder, cohort) = folder_of_films();
    let (first, _, _) = open(&cohort, &films(1), &folder);
    let mut reversed = cohort.clone();
    reversed.samples.reverse();
    let (second, _, n_decoded) = open(&reversed, &films(1), &folder);
    assert_eq!((second.path(), n_decoded), (first.path(), 0));
}

#[test]
fn images_added_behind_the_others_leave_the_full_shards_as_they_are() {
    let (folder, cohort) = folder_of_films();
    let (first, _, _) = open(&cohort, &films(1), &folder);
    make::png(&folder.path().join("z.png"), 3);
    let mut names: Vec<&str> = cohort.samples.iter().map(|sample| sample.sample_id.as_str()).collect();
    names.push("z.png");
    let grown = make::cohort(folder.path(), &names);
    let (second, _, n_decoded) = open(&grown, &films(1), &folder);
    // Five full shards of seven stay, the sixth now has seven files.
    assert_eq!((n_decoded, second.n()), (7, 41));
    for sample in &cohort.samples {
        let stored =
            |store: &ImageStore| store.position(&sample.sample_id).map(|at| store.pixels(at) == first.pixels(at));
        assert_eq!(stored(&second), stored(&first));
    }
}

/// Two stores of one cache may share the file of a shard; damage to it must not spread back.
#[test]
fn a_damaged_shard_is_not_taken_from_the_store_beside_it() {
    let (folder, cohort) = folder_of_films();
    let (first, _, _) = open(&cohort, &films(1), &folder);
    make::png(&folder.path().join("z.png"), 3);
    let mut names: Vec<&str> = cohort.samples.iter().map(|sample| sample.sample_id.as_str()).collect();
    names.push("z.png");
    let grown = make::cohort(folder.path(), &names);
    let (second, _, _) = open(&grown, &films(1), &folder);
    for store in [&first, &second] {
        let path = store.path().join("shard-00001.bin");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096] = 0x5a;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    drop(second);
    let (second, _, _) = open(&grown, &films(1), &folder);
    assert_eq!(second.discard_damaged().unwrap().len(), 1);
    let (second, _, n_decoded) = open(&grown, &films(1), &folder);
    assert_eq!(n_decoded, 7);
    second.verify().unwrap();
}

#[test]
fn a_damaged_shard_is_written_again_alone() {
    let (folder, cohort) = folder_of_films();
    let (store, _, _) = open(&cohort, &films(1), &folder);
    let path = store.path().to_owned();
    let whole = contents(&path);
    drop(store);
    let shard = &whole["shard-00002.bin"];
    let mut no_magic = shard.clone();
    no_magic[0] ^= 1;
    let mut bad_header = shard.clone();
    bad_header[100] ^= 1;
    let mut bad_footer = shard.clone();
    *bad_footer.last_mut().unwrap() ^= 1;
    let other = &whole["shard-00003.bin"];
    for damaged in [&shard[..50], &shard[..shard.len() - 10], &no_magic, &bad_header, &bad_footer, b"", other] {
        std::fs::write(path.join("shard-00002.bin"), damaged).unwrap();
        let (store, _, n_decoded) = open(&cohort, &films(1), &folder);
        assert_eq!((n_decoded, store.n()), (7, 40));
        assert_eq!(contents(&path), whole);
    }
    for index in [&whole["index.json"][..40], b"", b"{}"] {
        std::fs::write(path.join("index.json"), index).unwrap();
        assert_eq!(open(&cohort, &films(1), &folder).2, 0, "the shards are still good");
        assert_eq!(contents(&path), whole);
    }
}

#[test]
fn a_flipped_bit_is_found_and_its_shard_written_again_alone() {
    let (folder, cohort) = folder_of_films();
    let (store, _, _) = open(&cohort, &films(1), &folder);
    assert_eq!(store.damaged_images(), []);
    let path = store.path().to_owned();
    drop(store);
    let whole = contents(&path);
    let mut shard = whole["shard-00002.bin"].clone();
    // A shard begins its pixels at a page, and an image has 63 of them: this is in the fourth.
    shard[4096 + 3 * 63 + 5] ^= 0x10;
    std::fs::write(path.join("shard-00002.bin"), &shard).unwrap();
    let (store, _, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!(n_decoded, 0, "pixels are checked on request only");
    let footer = String::from_utf8_lossy(&shard).into_owned();
    let sample = footer.split("\"sample\":\"").nth(4).unwrap().split('"').next().unwrap();
    let message = store.verify().unwrap_err().to_string();
    assert!(message.contains("shard-00002.bin is damaged: the pixels of sample"), "{message}");
    assert!(message.contains(&format!("sample \"{sample}\" (image 3 of this shard)")), "{message}");
    let damaged = store.discard_damaged().unwrap();
    assert_eq!(damaged.len(), 1);
    assert_eq!((damaged[0].sample_id.as_str(), damaged[0].slot), (sample, 3));
    let (store, _, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!(n_decoded, 7);
    store.verify().unwrap();
    assert_eq!(contents(&path), whole);
}

#[test]
fn what_a_killed_run_left_half_written_is_removed() {
    let (folder, cohort) = folder_of_films();
    let (store, _, _) = open(&cohort, &films(1), &folder);
    let path = store.path().to_owned();
    drop(store);
    let whole = contents(&path);
    std::fs::remove_file(path.join("index.json")).unwrap();
    std::fs::rename(path.join("shard-00004.bin"), path.join(".shard-00004.bin.Ab3x.tmp")).unwrap();
    assert_eq!(open(&cohort, &films(1), &folder).2, 7);
    assert_eq!(contents(&path), whole);
}

#[test]
fn the_size_is_known_before_anything_is_decoded() {
    let (folder, cohort) = folder_of_films();
    let cache = folder.path().join("cache");
    let estimate = ImageStore::estimate(&cohort, &films(3), &cache).unwrap();
    assert!(!estimate.folder.exists());
    assert_eq!((estimate.n_images, estimate.n_bytes, estimate.n_shards), (41, 41 * 3 * 63, 1));
    assert_eq!((estimate.n_shards_kept, estimate.n_bytes_missing), (0, estimate.n_bytes));
    assert!(estimate.to_string().starts_with("41 images, 0.0 MB, number of shards: 1"), "{estimate}");
    let (store, _) = ImageStore::open_or_build(&cohort, &films(3), &cache, &|_, _| {}).unwrap();
    assert_eq!(store.path(), estimate.folder);
    let estimate = ImageStore::estimate(&cohort, &films(3), &cache).unwrap();
    assert_eq!((estimate.n_shards_kept, estimate.n_bytes_missing), (1, 0));
}

#[test]
fn sizes_out_of_range_are_refused() {
    let (folder, cohort) = folder_of_films();
    for (size, channels) in [(vec![64], 1), (vec![0, 4], 1), (vec![9999, 4], 1), (vec![4, 4], 2), (vec![2; 4], 1)] {
        let config = ImageConfig { size, channels, ..ImageConfig::default() };
        let refused = ImageStore::open_or_build(&cohort, &config, folder.path(), &|_, _| {}).unwrap_err().to_string();
        let named = ["size is ", "channels is "].iter().any(|start| refused.starts_with(start));
        assert!(named && refused.contains("expected"), "{refused}");
    }
}
