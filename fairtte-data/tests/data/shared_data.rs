//! Real files, if present beside the repository; no output is kept.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fairtte_data::cohort::Threshold;
use fairtte_data::image::{Limits, Undecodable, decode_picture};
use fairtte_data::{
    Adapter as _, AttributeConfig, Cohort, FittedAttributes, Generic, GenericConfig, ImageConfig, ImageStore,
    IntensityConfig, Loader, Part, Sampling, SplitConfig, build_cohort, split_by_subject,
};
use serde_json::Value;

/// `../shared/data/{name}` beside the repository, or a message that the test is skipped.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

fn cohort(table: &Path, attributes: &[AttributeConfig]) -> Cohort {
    let adapter = Generic::new(GenericConfig::new(table));
    let (cohort, exclusions) = build_cohort(adapter.read().unwrap(), attributes).unwrap();
    exclusions.check(cohort.n()).unwrap();
    eprintln!(
        "{}: {} rows read, {} samples, {} subjects, {} events, excluded: {}",
        table.display(),
        exclusions.n_read(),
        cohort.n(),
        cohort.n_subjects(),
        cohort.n_events(),
        exclusions.summary()
    );
    cohort
}

/// Decodes, splits and loads one epoch, and prints how long each took.
fn run_through(cohort: &Cohort, attributes: &[AttributeConfig], size: &[usize]) {
    let cache = tempfile::tempdir().unwrap();
    let config = ImageConfig { size: size.to_vec(), channels: 1, ..ImageConfig::default() };
    let start = Instant::now();
    let (store, exclusions) = ImageStore::open_or_build(cohort, &config, cache.path(), &|_, _| {}).unwrap();
    let decoding = start.elapsed();
    let start = Instant::now();
    ImageStore::open_or_build(cohort, &config, cache.path(), &|_, _| panic!("decoded twice")).unwrap();
    let reopening = start.elapsed();
    for exclusion in &exclusions {
        eprintln!("{}: {} ({})", exclusion.sample_id, exclusion.reason, exclusion.source);
    }
    assert!(exclusions.is_empty());
    let split = split_by_subject(cohort, &SplitConfig::default(), 1).unwrap();
    let train = split.rows(Part::Train);
    let fitted = FittedAttributes::fit(attributes, cohort, train).unwrap();
    for groups in fitted.all() {
        let sizes: Vec<_> = groups.ids().map(|id| groups.rows(id).len()).collect();
        eprintln!("{}: {:?} {sizes:?}", groups.attribute(), groups.levels());
        assert!(sizes.iter().all(|size| *size > 0));
    }
    fitted.ungrouped().iter().for_each(|value| eprintln!("{value}"));
    let intensity = IntensityConfig::Standardise.fit(&store, cohort, train).unwrap();
    let loader = Loader::new(&store, cohort, vec![None; cohort.n()], &intensity).unwrap();
    let start = Instant::now();
    let n: usize = loader.batches(train, 32, &Sampling::Shuffled, 1, 0).unwrap().map(|b| b.rows.len()).sum();
    eprintln!(
        "size {size:?}: decoding {decoding:.2?}, reopening {reopening:.2?}, one epoch of {n} samples {:.2?}, \
         mean {:.4?}, standard deviation {:.4?}",
        start.elapsed(),
        intensity.mean,
        intensity.standard_deviation
    );
    assert_eq!(n, train.len());
}

#[test]
fn grape_fundus_photographs() {
    let Some(table) = shared("grape/manifest.csv") else { return };
    let age = AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") };
    let attributes = [AttributeConfig::new("sex"), age];
    let cohort = cohort(&table, &attributes);
    assert_eq!((cohort.n(), cohort.n_subjects()), (443, 144));
    run_through(&cohort, &attributes, &[64, 64]);
}

#[test]
fn lgg_brain_volumes() {
    let Some(table) = shared("lgg_mri/manifest.csv") else { return };
    let age = AttributeConfig { threshold: Some(Threshold::Median), ..AttributeConfig::new("age") };
    let race = AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("race") };
    let attributes = [AttributeConfig::new("sex"), age, race];
    let cohort = cohort(&table, &attributes);
    assert_eq!((cohort.n_subjects(), cohort.n_events()), (110, 32));
    run_through(&cohort, &attributes, &[32, 48, 48]);
}

/// The listed cases of a folder, with `path`, `must` and the values that another program read.
fn cases(name: &str) -> Vec<(PathBuf, Value)> {
    let Some(folder) = shared(name) else { return Vec::new() };
    let index = std::fs::read(folder.join("index.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&index).unwrap();
    cases.into_iter().map(|case| (folder.join(case["path"].as_str().unwrap()), case)).collect()
}

/// Broken, unusual and misnamed pictures, with the values read by Pillow.
#[test]
fn collected_pictures_are_read_or_refused() {
    let mut wrong = Vec::new();
    for (path, case) in cases("image_cases") {
        let name = case["path"].as_str().unwrap();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let decoded = decode_picture(&bytes, &Limits::default());
        match (case["must"].as_str().unwrap(), &decoded) {
            ("decode" | "decode_by_content", Err(Undecodable { detail, .. })) => {
                wrong.push(format!("{name}: refused: {detail}"));
            }
            ("fail", Ok(_)) => wrong.push(format!("{name}: read although it is damaged")),
            (_, Ok(picture)) => {
                let size = case.get("oriented_size").and_then(Value::as_array);
                let extent = |i: usize, key: &str| size.map_or(&case[key], |size| &size[i]).as_u64();
                let expected = (extent(0, "width"), extent(1, "height"));
                let found = (Some(picture.width as u64), Some(picture.height as u64));
                if expected.0.is_some() && !name.contains("orientation") && found != expected {
                    wrong.push(format!("{name}: {found:?} pixels, expected {expected:?}"));
                }
                let mean = picture.pixels.iter().map(|p| f64::from(*p)).sum::<f64>() / picture.pixels.len() as f64;
                let comparable = matches!(case["mode"].as_str(), Some("L" | "RGB")) && case["max"] != Value::Null;
                let expected = case["mean"].as_f64().filter(|_| comparable && !name.contains("16"));
                if expected.is_some_and(|expected| (mean - expected).abs() > 1.0) {
                    wrong.push(format!("{name}: mean {mean:.2}, expected {expected:?}"));
                }
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
