//! The image store: equal to direct decoding, written once, found again.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_data::image::{Pixels, StoredPixels, prepare_image};
use fairtte_data::{Cohort, Exclusion, ImageConfig, ImageStore};
use tempfile::TempDir;

use crate::make;

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

/// Opens the store and counts how many images were decoded for it.
fn open(cohort: &Cohort, config: &ImageConfig, folder: &TempDir) -> (ImageStore, Vec<Exclusion>, usize) {
    let n_decoded = AtomicUsize::new(0);
    let count = |_done, total| {
        assert_eq!(total, cohort.n());
        n_decoded.fetch_add(1, Ordering::Relaxed);
    };
    let (store, exclusions) = ImageStore::open_or_build(cohort, config, &folder.path().join("cache"), &count).unwrap();
    (store, exclusions, n_decoded.into_inner())
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
fn volumes_are_stored_once_whatever_the_number_of_channels() {
    let folder = tempfile::tempdir().unwrap();
    make::nifti(&folder.path().join("a.nii"), [3, 5, 6, 7, 1, 1, 1, 1]);
    make::nifti(&folder.path().join("b.nii.gz"), [3, 8, 6, 7, 1, 1, 1, 1]);
    let cohort = make::cohort(folder.path(), &["a.nii", "b.nii.gz"]);
    let config = ImageConfig { size: vec![4, 3, 2], channels: 3, ..ImageConfig::default() };
    let (store, _, _) = open(&cohort, &config, &folder);
    assert_eq!((store.n_channels(), store.size()), (3, [4, 3, 2].as_slice()));
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
    let (other, _, n_decoded) =
        open(&cohort, &ImageConfig { size: vec![7, 9], channels: 1, ..ImageConfig::default() }, &folder);
    assert_eq!(n_decoded, 41);
    assert_ne!(first.path(), other.path());
    make::png(&folder.path().join("empty.png"), 200);
    let (changed, exclusions, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!((changed.n(), exclusions.len(), n_decoded), (41, 0, 41));
    assert_eq!(first.n(), 40, "a store in use stays as it was");
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let (folder, cohort) = folder_of_films();
    let mut contents = Vec::new();
    for threads in [1, 4] {
        let cache = folder.path().join(format!("cache {threads}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (store, _) = pool.install(|| ImageStore::open_or_build(&cohort, &films(1), &cache, &|_, _| {}).unwrap());
        contents.push(std::fs::read(store.path()).unwrap());
    }
    assert_eq!(contents[0], contents[1]);
}

#[test]
fn a_damaged_store_is_written_again() {
    let (folder, cohort) = folder_of_films();
    let (store, _, _) = open(&cohort, &films(1), &folder);
    let path = store.path().to_owned();
    let whole = std::fs::read(&path).unwrap();
    drop(store);
    let mut no_magic = whole.clone();
    no_magic[0] ^= 1;
    let mut bad_index = whole.clone();
    *bad_index.last_mut().unwrap() ^= 1;
    for damaged in [&whole[..50], &whole[..whole.len() - 10], &no_magic, &bad_index, b""] {
        std::fs::write(&path, damaged).unwrap();
        let (store, _, n_decoded) = open(&cohort, &films(1), &folder);
        assert_eq!((n_decoded, store.n()), (41, 40));
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
    // A flipped pixel is found on request only: the check reads everything.
    let mut bad_pixel = whole;
    bad_pixel[200] ^= 1;
    File::create(&path).unwrap().write_all(&bad_pixel).unwrap();
    let (store, _, n_decoded) = open(&cohort, &films(1), &folder);
    assert_eq!(n_decoded, 0);
    assert!(store.verify().unwrap_err().to_string().contains("the pixels do not have their checksum"));
}

#[test]
fn sizes_out_of_range_are_refused() {
    let (folder, cohort) = folder_of_films();
    for (size, channels) in [(vec![64], 1), (vec![0, 4], 1), (vec![9999, 4], 1), (vec![4, 4], 2), (vec![2; 4], 1)] {
        let config = ImageConfig { size, channels, ..ImageConfig::default() };
        let refused = ImageStore::open_or_build(&cohort, &config, folder.path(), &|_, _| {}).unwrap_err().to_string();
        assert!(refused.starts_with("image.") && refused.contains("expected"), "{refused}");
    }
}
