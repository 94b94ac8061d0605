//! Tests of the files: readable by other programs, independent of the threads, never overwritten, completed after an
//! interruption; and tests that the pictures show the severity.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairtte_metrics::seeds::stream;
use nifti::{NiftiObject as _, NiftiVolume as _, ReaderOptions};

use fairtte_images::drawn::{Attributes, Race};

use super::super::causal::{CausalModel, Sample};
use super::super::*;

const ADULT: Attributes = Attributes { female: false, age: 50, race: Race::White };

fn small(kind: PictureKind) -> SimulationConfig {
    SimulationConfig { n_subjects: 6, images_per_subject: 2, ..SimulationConfig::of_kind(kind) }
}

fn write(config: &SimulationConfig, seed: u64, out: &Path) -> Result<Simulation, SimulationError> {
    simulate(config, seed, out, &|_, _| ())
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn with_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

#[test]
fn one_and_two_threads_write_the_same_bytes_and_another_seed_does_not() {
    for kind in [PictureKind::Films, PictureKind::Volumes] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("cohort");
        let write_with = |threads: usize, seed: u64| {
            with_threads(threads, || write(&small(kind), seed, &out)).unwrap();
            let found = contents(&out);
            fs::remove_dir_all(&out).unwrap();
            found
        };
        let one = write_with(1, 9);
        assert_eq!(one.len(), 12 + 3, "12 images, two tables, one record");
        assert!(one == write_with(2, 9));
        assert!(one != write_with(2, 10));
    }
}

#[test]
fn the_manifest_has_the_generic_columns_and_every_image_of_every_subject() {
    let folder = tempfile::tempdir().unwrap();
    let done = write(&small(PictureKind::Films), 1, folder.path()).unwrap();
    assert_eq!((done.n_subjects, done.n_images, done.reused), (6, 12, false));
    let text = fs::read_to_string(&done.manifest).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "image,subject_id,time,event,sex,age,race");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 12);
    for pair in rows.chunks(2) {
        assert_eq!(pair[0][1], pair[1][1], "images of a subject follow each other");
        assert_eq!(pair[0][3..], pair[1][3..], "event and attributes are the subject's");
        let times: Vec<f64> = pair.iter().map(|row| row[2].parse().unwrap()).collect();
        assert!(times[0] >= times[1] && times[1] > 0.0);
    }
    for row in &rows {
        let picture = image::open(folder.path().join(row[0])).unwrap();
        assert_eq!(picture.color(), image::ColorType::L8);
        assert_eq!((picture.width(), picture.height()), (64, 64));
    }
    let events = rows.iter().step_by(2).filter(|row| row[3] == "1").count();
    assert_eq!(events, done.n_events);
}

#[test]
fn the_truth_table_agrees_with_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let done = write(&small(PictureKind::Films), 1, folder.path()).unwrap();
    let rows = |path: &Path| -> Vec<Vec<String>> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    for (seen, hidden) in rows(&done.manifest).iter().zip(rows(&done.truth)) {
        assert_eq!(seen[..2], hidden[..2]);
        assert_eq!(seen[4..], hidden[10..]);
        let [event_time, censoring_time]: [f64; 2] = [7, 8].map(|column: usize| hidden[column].parse().unwrap());
        assert!((event_time.min(censoring_time) - seen[2].parse::<f64>().unwrap()).abs() < 6e-4);
        assert_eq!(seen[3] == "1", event_time <= censoring_time);
        let [z, risk]: [f64; 2] = [4, 6].map(|column: usize| hidden[column].parse().unwrap());
        assert!((risk.ln() - causal::BETA * z).abs() < 1e-5, "without bias the risk is exp(beta z)");
    }
}

#[test]
fn times_follow_their_unit() {
    let days = SimulationConfig { time_unit: TimeUnit::Days, ..SimulationConfig::default() };
    let years = SimulationConfig::default();
    for subject in 0..50 {
        let (a, b) = (CausalModel::new(&days, 2).sample(subject, 0), CausalModel::new(&years, 2).sample(subject, 0));
        assert!((a.time - 365.25 * b.time).abs() < 0.5);
        assert_eq!(a.event, b.event);
    }
}

#[test]
fn nifti_files_are_read_back_by_an_independent_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head.nii.gz");
    let size = [12, 14, 18];
    let volume = drawn::volume(size, ADULT, 0.0, &mut stream(1, "body", &[]), &mut stream(1, "image", &[]));
    write::write_nifti(&path, size, &volume.brightness).unwrap();

    let object = ReaderOptions::new().read_file(&path).unwrap();
    let header = object.header();
    assert_eq!(header.dim, [3, 18, 14, 12, 1, 1, 1, 1], "width runs fastest");
    assert_eq!((header.datatype, header.bitpix, header.sform_code), (4, 16, 1));
    let expected = [200.0 / 18.0, 200.0 / 14.0, 150.0 / 12.0];
    assert!(header.pixdim[1..4].iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4));
    // The centre of the volume, voxel ((n - 1) / 2), is at the origin.
    assert!((header.srow_x[0] * 8.5 + header.srow_x[3]).abs() < 1e-3);
    assert!((header.srow_y[1] * 6.5 + header.srow_y[3]).abs() < 1e-3);
    assert!((header.srow_z[2] * 5.5 + header.srow_z[3]).abs() < 1e-3);
    let voxels = object.into_volume();
    assert_eq!(voxels.dim(), [18, 14, 12]);
    for (z, y, x) in [(0, 0, 0), (6, 7, 9), (3, 2, 16), (11, 13, 17)] {
        let drawn = volume.brightness[(z * 14 + y) * 18 + x];
        let coordinates = [x, y, z].map(|c| u16::try_from(c).unwrap());
        let read = nifti::RandomAccessNiftiVolume::get_f64(&voxels, &coordinates).unwrap();
        assert!((read / 1000.0 - drawn).abs() < 5.1e-4, "{read} for {drawn} at {z}, {y}, {x}");
    }
}

#[test]
fn a_finished_simulation_is_returned_untouched_and_nothing_is_ever_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(PictureKind::Films);
    config.bias.mi_time = 0.1 + 0.2; // 0.30000000000000004: needs all its digits
    let first = write(&config, 1, folder.path()).unwrap();
    let image = folder.path().join("images/s000001_v0.png");
    fs::write(&image, "marked").unwrap();
    let second = write(&config, 1, folder.path()).unwrap();
    assert_eq!(second, Simulation { reused: true, ..first });
    assert_eq!(fs::read(&image).unwrap(), b"marked");

    let refused = write(&config, 2, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another simulation (of seed 1, not 2)"), "{refused}");
    let refused = write(&small(PictureKind::Films), 1, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another simulation (of other settings)"), "{refused}");
    fs::remove_file(folder.path().join("truth.csv")).unwrap();
    let refused = write(&config, 1, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("truth.csv is missing"), "{refused}");
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
    let refused = write(&small(PictureKind::Films), 1, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("holds \"thesis.tex\""), "{refused}");
    assert_eq!(contents(folder.path()).len(), 1);
    // The folder of a run, in which a training may hold the lock of runs, and that of another simulation.
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let lock = fs::File::create(run.join(".lock")).unwrap();
    lock.lock().unwrap();
    fs::write(run.join("run.toml"), "").unwrap();
    write(&small(PictureKind::Films), 1, &run).unwrap_err();
    let other = folder.path().join("other");
    write(&small(PictureKind::Films), 1, &other).unwrap();
    let before = contents(&other);
    let refused = write(&small(PictureKind::Films), 2, &other).unwrap_err().to_string();
    assert!(refused.contains("another simulation (of seed 1, not 2)"), "{refused}");
    assert!(contents(&other) == before);
    // A record that was not finished is of a killed simulation, whichever version named it.
    for left in [".simulation.partial.json.x7Qp2k.tmp", "simulation.partial.json.part"] {
        let killed = folder.path().join(left);
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(left), "{").unwrap();
        assert!(!write(&small(PictureKind::Films), 1, &killed).unwrap().reused);
    }
    let refused = write(&small(PictureKind::Films), 1, &folder.path().join("thesis.tex")).unwrap_err();
    assert!(matches!(refused, SimulationError::Io { .. }), "{refused}");
}

#[test]
fn an_interrupted_simulation_is_completed_by_the_same_call_only() {
    let folder = tempfile::tempdir().unwrap();
    let config = small(PictureKind::Films);
    write(&config, 1, folder.path()).unwrap();
    let complete = contents(folder.path());
    // The state after a kill between two images: no record, no tables, images missing, one half-written.
    fs::rename(folder.path().join("simulation.json"), folder.path().join("simulation.partial.json")).unwrap();
    for name in ["manifest.csv", "truth.csv", "images/s000002_v0.png"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("images/.s000002_v0.png.x7Qp2k.tmp"), "half").unwrap();

    let refused = write(&config, 2, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another, interrupted simulation"), "{refused}");
    assert!(!write(&config, 1, folder.path()).unwrap().reused);
    assert!(contents(folder.path()) == complete);
}

/// A file system without locks lets two processes write the same files.
#[test]
fn one_image_may_be_written_twice_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images/s000001_v0.png");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| write::write_image(&path, b"the same bytes").unwrap()));
        }
    });
    write::sync(&path).unwrap();
    assert_eq!(contents(folder.path()), BTreeMap::from([(path.clone(), b"the same bytes".to_vec())]));
}

#[test]
fn of_several_that_simulate_in_one_folder_one_does_and_the_others_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (config, out) = (small(PictureKind::Films), folder.path().join("new"));
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let reused = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| pool().install(|| write(&config, 1, &out)).unwrap().reused)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(reused.iter().filter(|reused| !**reused).count(), 1, "{reused:?}");
    let alone = folder.path().join("alone");
    write(&config, 1, &alone).unwrap();
    let relative = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let found = contents(folder).into_iter();
        found.map(|(path, bytes)| (path.strip_prefix(folder).unwrap().to_owned(), bytes)).collect()
    };
    assert!(relative(&out) == relative(&alone));
}

#[test]
fn a_bad_setting_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let config = SimulationConfig { signal: 3.0, ..SimulationConfig::default() };
    let refused = write(&config, 1, &folder.path().join("new")).unwrap_err().to_string();
    assert_eq!(refused, "signal is 3, expected a number from 0 to 1");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn progress_is_reported_once_per_image() {
    let folder = tempfile::tempdir().unwrap();
    let calls = std::sync::Mutex::new(Vec::new());
    simulate(&small(PictureKind::Films), 1, folder.path(), &|done, total| calls.lock().unwrap().push((done, total)))
        .unwrap();
    let mut calls = calls.into_inner().unwrap();
    calls.sort_unstable();
    assert_eq!(calls, (1..=12).map(|done| (done, 12)).collect::<Vec<_>>());
}

/// Mean brightness of a region in each of `n` pictures, and the severity of each.
fn hand_feature(n: u64, draw: impl Fn(&Sample) -> (Vec<f64>, Vec<f64>)) -> (Vec<f64>, Vec<f64>) {
    let config = SimulationConfig::default();
    let model = CausalModel::new(&config, 1);
    (0..n)
        .map(|subject| {
            let sample = model.sample(subject, 0);
            let (brightness, region) = draw(&sample);
            let inside: f64 = brightness.iter().zip(&region).map(|(value, weight)| value * weight).sum();
            (inside / region.iter().sum::<f64>(), sample.x_z)
        })
        .unzip()
}

/// Spearman's rank correlation of values without ties.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| values.iter().filter(|other| *other < value).count() as f64).collect()
    };
    let squared: f64 = ranks(a).iter().zip(ranks(b)).map(|(a, b)| (a - b) * (a - b)).sum();
    let n = a.len() as f64;
    1.0 - 6.0 * squared / (n * (n * n - 1.0))
}

#[test]
fn brightness_of_the_lungs_and_of_the_brain_follows_the_severity() {
    let (lungs, x_z) = hand_feature(300, |s| {
        let (mut body, mut rng) = (stream(1, "body", &[s.subject]), stream(1, "image", &[s.subject]));
        let film = drawn::film([64, 64], s.person.attributes, s.x_z, &mut body, &mut rng);
        (film.brightness, film.lungs)
    });
    let found = rank_correlation(&lungs, &x_z);
    assert!(found > 0.8, "{found}");

    let (brain, x_z) = hand_feature(100, |s| {
        let (mut body, mut rng) = (stream(1, "body", &[s.subject]), stream(1, "image", &[s.subject]));
        let volume = drawn::volume([24, 32, 32], s.person.attributes, s.x_z, &mut body, &mut rng);
        (volume.brightness, volume.brain)
    });
    let found = rank_correlation(&brain, &x_z);
    assert!(found > 0.6, "{found}");
}

/// The same person and pose with almost no disease: brightness differs by the disease, and nowhere else.
#[test]
fn the_stated_disease_is_where_the_picture_of_a_healthy_person_differs() {
    let config = SimulationConfig { size: vec![48, 40], images_per_subject: 2, ..SimulationConfig::default() };
    for (subject, visit) in [(0, 0), (4, 1), (7, 0)] {
        let sample = CausalModel::new(&config, 3).sample(subject, visit);
        let draw = |x_z: f64| {
            let (mut body, mut rng) =
                (stream(3, "simulate-body", &[subject]), stream(3, "simulate-image", &[subject, visit]));
            drawn::film([48, 40], sample.person.attributes, x_z, &mut body, &mut rng)
        };
        let (own, healthy) = (draw(sample.x_z), draw(-12.0));
        let stated = disease(&config, 3, subject, visit).unwrap();
        let mut n_diseased = 0;
        assert_eq!(stated.len(), 48 * 40);
        for (pixel, (added, (own, healthy))) in
            stated.into_iter().zip(own.brightness.into_iter().zip(healthy.brightness)).enumerate()
        {
            let brighter = own - healthy;
            if added == 0.0 {
                assert!(brighter.abs() < 1e-3, "{brighter} at {pixel}");
            } else if added > 0.05 {
                // The film saturates: a tenth of the attenuation, and the side marker may cover it.
                assert!((0.5..1.2).contains(&(brighter / added)), "{brighter} of {added} at {pixel}");
                n_diseased += 1;
            }
        }
        assert!(n_diseased > 0);
    }
}

#[test]
fn severity_and_attributes_change_only_their_own_part_of_a_picture() {
    let draw = |who: Attributes, x_z: f64| {
        drawn::film([64, 64], who, x_z, &mut stream(1, "body", &[]), &mut stream(1, "image", &[]))
    };
    let (mild, severe) = (draw(ADULT, -1.0), draw(ADULT, 1.0));
    assert!(mild.lungs == severe.lungs);
    let outside = |film: &drawn::Film| -> Vec<u64> {
        film.brightness.iter().zip(&film.lungs).filter(|(_, lung)| **lung <= 0.0).map(|(b, _)| b.to_bits()).collect()
    };
    assert!(outside(&mild) == outside(&severe), "the disease is inside the lungs");
    assert!(mild.brightness != severe.brightness);
    for who in [
        Attributes { female: true, ..ADULT },
        Attributes { age: 70, ..ADULT },
        Attributes { race: Race::Other, ..ADULT },
    ] {
        assert!(outside(&draw(who, -1.0)) != outside(&mild), "{who:?} leaves a trace");
    }
}
