//! The numbers of an explanation: `explain.json`, and every map as an array of `NumPy`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

use fairtte_data::{remove_unfinished, unfinished_name, write_atomically};
use fairtte_metrics::statistics::spearman;
use serde::Serialize;

use super::maps::{Maps, Parts};
use super::{Explained, View};
use crate::CliError;
use crate::args::Fill;
use crate::run_folder::{remove_file, write_json};

const RECORD: &str = "explain.json";
pub(super) const PAGE: &str = "explain.html";
const MAPS: &str = "maps";
/// What the folder of an explanation has, also of one that was killed before it wrote the record or the page.
const OWN: [&str; 4] = [RECORD, PAGE, MAPS, "cache"];

/// The content of `explain.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Record {
    fairtte: &'static str,
    pub(super) run: String,
    pub(super) name: String,
    /// Of the weights, counted from 1.
    pub(super) epoch: usize,
    /// One hash over the files of the weights.
    weights_blake3: String,
    pub(super) strategy: &'static str,
    pub(super) head: String,
    pub(super) data: String,
    pub(super) horizon: f64,
    pub(super) time_unit: String,
    pub(super) fill: Fill,
    /// Side of a hidden patch and distance of neighbours; absent for tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stride: Option<usize>,
    pub(super) steps: usize,
    /// Columns of a table, in the order of the maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) columns: Option<Vec<String>>,
    pub(super) samples: Vec<SampleRecord>,
}

/// A sample of `explain.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SampleRecord {
    pub(super) sample_id: String,
    subject_id: String,
    /// Of the run's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<bool>,
    /// Level of every attribute.
    pub(super) groups: BTreeMap<String, String>,
    /// Predicted risk at the horizon.
    pub(super) risk: f64,
    pub(super) maps: Vec<MapRecord>,
}

/// A map of `explain.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MapRecord {
    method: &'static str,
    /// Whether the network has random weights.
    pub(super) randomised: bool,
    /// Below the folder of the page.
    file: String,
    shape: Vec<usize>,
    risk: f64,
    min: f64,
    max: f64,
    sum: f64,
    /// Risk of the input where integrated gradients begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_risk: Option<f64>,
    /// |sum - (risk - baseline-risk)|.
    #[serde(skip_serializing_if = "Option::is_none")]
    completeness_gap: Option<f64>,
    /// Spearman's correlation of the absolute values with those of the trained network; absent if one of them is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rank_correlation: Option<f64>,
}

impl MapRecord {
    /// For the terminal.
    pub(super) fn words(&self) -> String {
        let control = if self.randomised { " of random weights" } else { "" };
        format!("{}{control} {:+.4} to {:+.4}", self.method.replace('-', " "), self.min, self.max)
    }
}

/// Refuses a folder with content that is no explanation.
pub(super) fn require_own(output: &Path) -> Result<(), CliError> {
    let is_own = |name: &OsStr| name.to_str().is_some_and(|name| OWN.contains(&unfinished_name(name).unwrap_or(name)));
    let is_taken = !output.join(RECORD).exists()
        && std::fs::read_dir(output)
            .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| !is_own(&entry.file_name()))));
    if is_taken {
        let problem = "it has other files and no explain.json; choose another --output".to_owned();
        return Err(CliError::RunFolder { path: output.to_owned(), problem });
    }
    Ok(())
}

/// Removes an earlier explanation: the page first, so that it is never beside the maps of another call, then the record and the maps
/// that it names.
fn remove_earlier(output: &Path) -> Result<(), CliError> {
    remove_file(&output.join(PAGE))?;
    remove_file(&output.join(RECORD))?;
    let maps = output.join(MAPS);
    let failed = |error: std::io::Error| CliError::RunFolder { path: maps.clone(), problem: error.to_string() };
    let is_map = |path: &Path| path.extension().is_some_and(|extension| extension == "npy");
    std::fs::create_dir_all(&maps).map_err(failed)?;
    for entry in std::fs::read_dir(&maps).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_map(&path) {
            remove_file(&path)?;
        }
    }
    remove_unfinished(&maps, |name| is_map(Path::new(name)));
    remove_unfinished(output, |name| OWN.contains(&name));
    Ok(())
}

/// Writes maps and record; those of an earlier call are removed with their page.
pub(super) fn write(view: &View<'_>, explained: &[Explained], output: &Path) -> Result<Record, CliError> {
    remove_earlier(output)?;
    let samples = explained.iter().enumerate().map(|(index, one)| sample(view, index, one, output));
    let record = Record { samples: samples.collect::<Result<_, _>>()?, ..without_samples(view) };
    write_json(&output.join(RECORD), &record)?;
    Ok(record)
}

fn without_samples(view: &View<'_>) -> Record {
    let View { arguments, member, plan, source, .. } = view;
    let (patch, stride, columns) = match &plan.parts {
        Parts::Pixels { patch, stride } => (Some(*patch), Some(*stride), None),
        Parts::Columns(columns) => (None, None, Some(columns.iter().map(|(name, _)| name.clone()).collect())),
    };
    Record {
        fairtte: env!("CARGO_PKG_VERSION"),
        run: std::path::absolute(&arguments.run).unwrap_or_else(|_| arguments.run.clone()).display().to_string(),
        name: member.run.name.clone(),
        epoch: member.epoch,
        weights_blake3: member.record.epochs[&member.epoch].hash(),
        strategy: member.run.strategy.name(),
        head: member.run.head.name().to_owned(),
        data: source.name.clone(),
        horizon: arguments.horizon,
        time_unit: member.record.time_unit.clone(),
        fill: plan.fill,
        patch,
        stride,
        steps: plan.steps,
        columns,
        samples: Vec::new(),
    }
}

fn sample(view: &View<'_>, index: usize, one: &Explained, output: &Path) -> Result<SampleRecord, CliError> {
    let sample = &view.source.cohort.samples[one.row];
    let id = sample.sample_id.as_str();
    let mut maps = Vec::new();
    for (of, is_control) in [(&one.maps, false), (&one.controls, true)] {
        for (place, map) in of.iter().enumerate() {
            let control = if is_control { "-randomised" } else { "" };
            let file = format!("{MAPS}/{:03}-{}-{}{control}.npy", index + 1, plain(id), map.method.name());
            let bytes = npy(&map.shape, &map.values);
            write_atomically(&output.join(&file), |file| file.write_all(&bytes))?;
            let rank_correlation =
                if is_control { rank_correlation(&one.maps[place].values, &map.values) } else { None };
            maps.push(record(map, file, is_control, rank_correlation));
        }
    }
    let level = |groups: &fairtte_metrics::Groups| {
        let group = groups.membership()[one.row]?;
        Some((groups.attribute().to_owned(), groups.levels()[group.index()].clone()))
    };
    let known = view.source.has_outcomes;
    Ok(SampleRecord {
        sample_id: id.to_owned(),
        subject_id: sample.subject_id.to_string(),
        part: view.source.part(one.row).map(str::to_owned),
        time: known.then_some(sample.time),
        event: known.then_some(sample.event),
        groups: view.groups.iter().filter_map(level).collect(),
        risk: one.maps.first().map_or(0.0, |map| map.risk),
        maps,
    })
}

fn record(map: &Maps, file: String, randomised: bool, rank_correlation: Option<f64>) -> MapRecord {
    let bound = |first: f64, of: fn(f64, f64) -> f64| map.values.iter().copied().fold(first, of);
    let (min, max) =
        if map.values.is_empty() { (0.0, 0.0) } else { (bound(f64::MAX, f64::min), bound(f64::MIN, f64::max)) };
    MapRecord {
        method: map.method.name(),
        randomised,
        file,
        shape: map.shape.clone(),
        risk: map.risk,
        min,
        max,
        sum: map.values.iter().sum(),
        baseline_risk: map.baseline,
        completeness_gap: map.gap(),
        rank_correlation,
    }
}

/// A name for a file: letters, digits, dots, hyphens and underscores.
fn plain(id: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let name: String = id.chars().map(kept).collect();
    // Names of files are limited; the number in front keeps them apart.
    name.chars().take(100).collect()
}

/// An array of `f64` in C order in `NumPy`'s format 1.0: magic, version, length of the header, the header padded to a multiple of
/// 64 bytes, the values (numpy/lib/format.py).
fn npy(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if sides.len() == 1 { "," } else { "" };
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}{comma}), }}", sides.join(", "));
    let begin = 10;
    while (begin + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes();
    let values = values.iter().flat_map(|value| value.to_le_bytes());
    b"\x93NUMPY\x01\x00".iter().chain(&length).chain(header.as_bytes()).copied().chain(values).collect()
}

/// Spearman's correlation of absolute values; `None` if one of them is constant.
fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let absolute = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
    // Undefined values would be a reason for none too.
    spearman(&absolute(a), &absolute(b)).ok().flatten()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    /// numpy 2.4.6: `np.save(f, np.array([[1.5, -2.0, 0.0]]))`, and of shape (2,).
    #[test]
    fn arrays_have_the_bytes_of_numpy() {
        let found = npy(&[1, 3], &[1.5, -2.0, 0.0]);
        assert_eq!(found.len(), 128 + 24);
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }";
        let text = String::from_utf8_lossy(&found[10..128]).into_owned();
        assert_eq!(text.trim_end(), header);
        assert_eq!(found[..10], [0x93, b'N', b'U', b'M', b'P', b'Y', 1, 0, 118, 0]);
        assert_eq!(found[127], b'\n');
        assert_eq!(found[128..136], 1.5_f64.to_le_bytes());
        assert!(String::from_utf8_lossy(&npy(&[2], &[0.0, 1.0])).contains("'shape': (2,), }"));
    }

    #[test]
    fn rank_correlation_ignores_signs_and_shares_tied_ranks() {
        assert!((rank_correlation(&[1.0, -2.0, 3.0], &[0.1, 0.2, -0.3]).unwrap() - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(rank_correlation(&[1.0, -1.0], &[1.0, 2.0]), None);
        // scipy 1.17.1: spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) = 0.9486832980505139.
        let found = rank_correlation(&[1.0, 2.0, 2.0, 4.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((found - 0.948_683_298_050_513_9).abs() < 1e-12, "{found}");
    }

    #[test]
    fn an_explanation_without_its_record_is_our_own_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        std::fs::create_dir(output.join(MAPS)).unwrap();
        // As a killed call leaves it: no record, the old page, and what it was about to write.
        for name in [PAGE, ".explain.json.x7Qp2k.tmp"] {
            std::fs::write(output.join(name), "").unwrap();
        }
        assert!(require_own(output).is_ok());
        for name in ["notes.txt", ".notes.txt.x7Qp2k.tmp"] {
            std::fs::write(output.join(name), "").unwrap();
            assert!(require_own(output).is_err(), "{name}");
            std::fs::remove_file(output.join(name)).unwrap();
        }
    }

    #[test]
    fn no_page_is_left_beside_maps_of_another_call() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        std::fs::create_dir(output.join(MAPS)).unwrap();
        let files = [PAGE, "maps/001-a-occlusion.npy", "maps/.001-a-occlusion.npy.x7Qp2k.tmp", "maps/notes.txt"];
        for name in files {
            std::fs::write(output.join(name), "").unwrap();
        }
        // A record that cannot be removed stops the call, as a kill would; the page is gone before.
        std::fs::create_dir(output.join(RECORD)).unwrap();
        assert!(remove_earlier(output).is_err());
        assert_eq!(files.map(|name| output.join(name).exists()), [false, true, true, true]);
        std::fs::remove_dir(output.join(RECORD)).unwrap();
        remove_earlier(output).unwrap();
        assert_eq!(files.map(|name| output.join(name).exists()), [false, false, false, true]);
    }

    #[test]
    fn a_name_of_a_file_has_no_folder() {
        assert_eq!(plain("images/s1 \u{fc}.png"), "images_s1__.png");
    }
}
