//! Simulated fundus pictures with the masks of optic disc and cup, whose only difference between groups is planted.
//!
//! A disc is an ellipse of brightness 0.35 above a shaded background, the cup a smaller ellipse in it that is brighter by
//! `cup-contrast`, in group 1 (sex `F`) by `cup-contrast` times 1 - `lower-contrast`. Everything else has one distribution: the place
//! of the disc, its radius (0.20 to 0.30 of the side), the ratio of the vertical diameters of cup and disc (0.35 to 0.7), the place of
//! the cup, the shading, and normal noise in every pixel. So a network has less to see of the cup of group 1, and nothing less of
//! the disc. The mask is 1 in the rim, 2 in the cup.
//!
//! A folder holds `images/`, `masks/`, `manifest.csv` (image, mask, `subject_id`, sex) and, last, `simulation.json`. The same
//! settings and seed give the same bytes. An interrupted simulation is completed by the same call.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use rand_distr::StandardNormal;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::SimulationError;
use super::write::{LOCK, write_alone};
use crate::image::write_mask;
use crate::{DataError, remove_unfinished, unfinished_name, write_atomically};

const GENERATOR_VERSION: u32 = 1;
const RECORD: &str = "simulation.json";
const MANIFEST: &str = "manifest.csv";
const FOLDERS: [&str; 2] = ["images", "masks"];

/// Settings of the simulation of discs and cups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DiscsConfig {
    /// Number of people, one picture each, 1 to 1,000,000.
    pub n_subjects: usize,
    /// Side of a picture in pixels, 16 to 1024.
    pub size: usize,
    /// Share of the people in group 1, in [0, 1].
    pub group_share: f64,
    /// Brightness of the cup above that of the rim, in [0, 0.4].
    pub cup_contrast: f64,
    /// Share of this contrast that group 1 lacks, in [0, 1]; 0 = the groups do not differ.
    pub lower_contrast: f64,
    /// Standard deviation of the noise of a pixel, in [0, 1].
    pub noise: f64,
}

impl Default for DiscsConfig {
    fn default() -> Self {
        let (group_share, cup_contrast, lower_contrast, noise) = (0.5, 0.2, 0.75, 0.1);
        Self { n_subjects: 400, size: 64, group_share, cup_contrast, lower_contrast, noise }
    }
}

impl DiscsConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`SimulationError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), SimulationError> {
        let check = |key, value: String, fits: bool, expected| {
            if fits { Ok(()) } else { Err(SimulationError::Setting { key, value, expected }) }
        };
        let Self { n_subjects, size, group_share, cup_contrast, lower_contrast, noise } = *self;
        let fits = (1..=1_000_000).contains(&n_subjects);
        check("n-subjects", n_subjects.to_string(), fits, "a whole number from 1 to 1000000")?;
        check("size", size.to_string(), (16..=1024).contains(&size), "a number of pixels from 16 to 1024")?;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        check("group-share", group_share.to_string(), share(group_share), "a number from 0 to 1")?;
        let fits = (0.0..=0.4).contains(&cup_contrast);
        check("cup-contrast", cup_contrast.to_string(), fits, "a number from 0 to 0.4")?;
        check("lower-contrast", lower_contrast.to_string(), share(lower_contrast), "a number from 0 to 1")?;
        check("noise", noise.to_string(), share(noise), "a number from 0 to 1")
    }
}

/// A finished simulation of discs and cups on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discs {
    /// The table in the generic layout: image, mask, `subject_id`, sex.
    pub manifest: PathBuf,
    /// People in group 1.
    pub n_of_group: usize,
    /// Whether the folder was already complete and nothing was written.
    pub reused: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    kind: String,
    generator_version: u32,
    seed: u64,
    settings: DiscsConfig,
}

/// Simulates pictures with masks into the folder `out`; `on_progress(done, total)` is called once per picture, from several threads.
///
/// # Errors
/// [`SimulationError::Setting`] for a value out of range, [`SimulationError::FolderInUse`] for a folder with other content, and
/// [`SimulationError::Io`] for a file that cannot be written.
pub fn simulate_discs(
    config: &DiscsConfig,
    seed: u64,
    out: &Path,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Discs, SimulationError> {
    config.validate()?;
    let record =
        Record { kind: "discs".to_owned(), generator_version: GENERATOR_VERSION, seed, settings: config.clone() };
    let manifest = out.join(MANIFEST);
    let is_of_group: Vec<bool> = (0..config.n_subjects).map(|n| Eye::draw(config, seed, n).is_of_group).collect();
    let n_of_group = is_of_group.iter().filter(|of_group| **of_group).count();
    let finished = || Ok(is_finished(out, &record)?.then_some(()));
    let ((), reused) = write_alone(out, finished, |is_locked| {
        begin(out, is_locked)?;
        draw_all(config, seed, out, on_progress)?;
        let mut table = String::from("image,mask,subject_id,sex\n");
        for (n, of_group) in is_of_group.iter().enumerate() {
            let (name, sex) = (name(n), if *of_group { "F" } else { "M" });
            let _ = writeln!(table, "images/{name},masks/{name},p{n:06},{sex}");
        }
        write(&manifest, &table)?;
        let text = serde_json::to_string_pretty(&record).unwrap_or_default();
        write(&out.join(RECORD), &text)
    })?;
    Ok(Discs { manifest, n_of_group, reused })
}

/// Draws and writes all pictures with their masks.
fn draw_all(
    config: &DiscsConfig,
    seed: u64,
    out: &Path,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(), SimulationError> {
    let done = AtomicUsize::new(0);
    (0..config.n_subjects).into_par_iter().try_for_each(|n| {
        let (picture, mask) = Eye::draw(config, seed, n).render(config, seed, n);
        let side = [config.size; 2];
        for (folder, labels) in FOLDERS.into_iter().zip([picture, mask]) {
            let path = out.join(folder).join(name(n));
            write_mask(&path, &labels, side).map_err(|error| of_data(&path, error))?;
        }
        on_progress(done.fetch_add(1, Ordering::Relaxed) + 1, config.n_subjects);
        Ok(())
    })
}

/// Creates the folders; the holder of the lock removes what a killed simulation left half-written.
fn begin(out: &Path, is_locked: bool) -> Result<(), SimulationError> {
    for folder in FOLDERS.map(|name| out.join(name)) {
        let failed = |source| SimulationError::Io { action: "create", path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        if is_locked {
            remove_unfinished(&folder, |_| true);
        }
    }
    if is_locked {
        remove_unfinished(out, |name| [MANIFEST, RECORD].contains(&name));
    }
    Ok(())
}

fn name(n: usize) -> String {
    format!("{n:06}.png")
}

fn write(path: &Path, text: &str) -> Result<(), SimulationError> {
    let written = write_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()));
    written.map_err(|error| of_data(path, error))
}

fn of_data(path: &Path, error: DataError) -> SimulationError {
    let source = match error {
        DataError::Write { source, .. } => source,
        other => std::io::Error::other(other.to_string()),
    };
    SimulationError::Io { action: "write", path: path.to_owned(), source }
}

/// Whether `out` holds this simulation; an error for any other content.
fn is_finished(out: &Path, record: &Record) -> Result<bool, SimulationError> {
    let in_use = |found: &str| SimulationError::FolderInUse { folder: out.to_owned(), found: found.to_owned() };
    if let Ok(text) = std::fs::read_to_string(out.join(RECORD)) {
        let found: Option<Record> = serde_json::from_str(&text).ok();
        return if found.as_ref() == Some(record) { Ok(true) } else { Err(in_use("another simulation")) };
    }
    let known = |name: &str| {
        let unfinished = unfinished_name(name).is_some_and(|name| [MANIFEST, RECORD].contains(&name));
        FOLDERS.contains(&name) || [MANIFEST, LOCK].contains(&name) || unfinished
    };
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.find(|name| !known(name)) {
        Some(other) => Err(in_use(&format!("\"{other}\""))),
        None => Ok(false),
    }
}

/// Disc and cup of one picture, in shares of its side.
struct Eye {
    is_of_group: bool,
    /// Centres: row, column.
    disc: [f64; 2],
    cup: [f64; 2],
    /// Radii: vertical, horizontal.
    disc_radii: [f64; 2],
    cup_radii: [f64; 2],
    /// Change of the brightness of the background from one side to the other, downwards and to the right.
    shading: [f64; 2],
}

impl Eye {
    fn draw(config: &DiscsConfig, seed: u64, n: usize) -> Self {
        let mut rng = stream(seed, "simulate-discs", &[n as u64]);
        let mut between = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
        let is_of_group = between(0.0, 1.0) < config.group_share;
        let disc = [between(0.4, 0.6), between(0.4, 0.6)];
        let (radius, oval) = (between(0.2, 0.3), between(0.9, 1.1));
        let ratio = between(0.35, 0.7);
        let disc_radii = [radius, radius * oval];
        let cup_radii = [radius * ratio, radius * ratio * between(0.9, 1.1)];
        // So far from the centre that the cup stays inside the disc.
        let free = 0.6 * (radius * oval.min(1.0) - radius * ratio * 1.1).max(0.0);
        let (angle, far) = (between(0.0, std::f64::consts::TAU), between(0.0, free));
        let cup = [disc[0] + far * angle.sin(), disc[1] + far * angle.cos()];
        let shading = [between(-0.1, 0.1), between(-0.1, 0.1)];
        Self { is_of_group, disc, cup, disc_radii, cup_radii, shading }
    }

    /// Gray levels and labels, row by row.
    fn render(&self, config: &DiscsConfig, seed: u64, n: usize) -> (Vec<u8>, Vec<u8>) {
        let mut noise = stream(seed, "simulate-discs-noise", &[n as u64]);
        let lack = if self.is_of_group { config.lower_contrast } else { 0.0 };
        let contrast = config.cup_contrast * (1.0 - lack);
        let side = config.size;
        let inside = |[row, column]: [f64; 2], centre: [f64; 2], radii: [f64; 2]| {
            ((row - centre[0]) / radii[0]).powi(2) + ((column - centre[1]) / radii[1]).powi(2) <= 1.0
        };
        let (mut picture, mut mask) = (Vec::with_capacity(side * side), Vec::with_capacity(side * side));
        for at in 0..side * side {
            let place = [at / side, at % side].map(|pixel| (pixel as f64 + 0.5) / side as f64);
            let in_disc = inside(place, self.disc, self.disc_radii);
            let in_cup = in_disc && inside(place, self.cup, self.cup_radii);
            let shade = 0.2 + self.shading[0] * (place[0] - 0.5) + self.shading[1] * (place[1] - 0.5);
            let bright = shade + if in_disc { 0.35 } else { 0.0 } + if in_cup { contrast } else { 0.0 };
            let value = bright + config.noise * noise.sample::<f64, _>(StandardNormal);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255")]
            picture.push((value * 255.0).round().clamp(0.0, 255.0) as u8);
            mask.push(u8::from(in_disc) + u8::from(in_cup));
        }
        (picture, mask)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let read = |name: &str| (name.to_owned(), std::fs::read(folder.join(name)).unwrap());
        [MANIFEST, "images/000003.png", "masks/000003.png", RECORD].map(read).to_vec()
    }

    #[test]
    fn the_same_settings_give_the_same_files_and_a_folder_is_not_used_twice() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = DiscsConfig { n_subjects: 5, size: 32, ..DiscsConfig::default() };
        let first = simulate_discs(&config, 1, a.path(), &|_, _| {}).unwrap();
        simulate_discs(&config, 1, b.path(), &|_, _| {}).unwrap();
        assert_eq!(files(a.path()), files(b.path()));
        let again = simulate_discs(&config, 1, a.path(), &|_, _| {}).unwrap();
        assert!(!first.reused && again.reused && first.n_of_group == again.n_of_group);
        let other = simulate_discs(&config, 2, a.path(), &|_, _| {}).unwrap_err().to_string();
        assert!(other.contains("another simulation"), "{other}");
        let refused = DiscsConfig { noise: -1.0, ..config }.validate().unwrap_err().to_string();
        assert_eq!(refused, "noise is -1, expected a number from 0 to 1");
    }

    #[test]
    fn an_interrupted_simulation_is_completed_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let config = DiscsConfig { n_subjects: 4, size: 16, ..DiscsConfig::default() };
        let simulate = || simulate_discs(&config, 1, folder.path(), &|_, _| {});
        simulate().unwrap();
        let whole = files(folder.path());
        let at = |name: &str| folder.path().join(name);
        // The state after a kill during the last file but one, and during a picture.
        std::fs::remove_file(at(RECORD)).unwrap();
        std::fs::remove_file(at(MANIFEST)).unwrap();
        let left = [".manifest.csv.x7Qp2k.tmp", ".simulation.json.x7Qp2k.tmp", "images/.000003.png.x7Qp2k.tmp", LOCK];
        for name in left {
            std::fs::write(at(name), "half").unwrap();
        }
        assert!(!simulate().unwrap().reused);
        assert_eq!(files(folder.path()), whole);
        assert!(left.iter().all(|name| !at(name).exists()));
        std::fs::remove_file(at(RECORD)).unwrap();
        std::fs::write(at(".thesis.tex.x7Qp2k.tmp"), "").unwrap();
        let refused = simulate().unwrap_err().to_string();
        assert!(refused.contains(".thesis.tex.x7Qp2k.tmp"), "{refused}");
    }

    /// The contrast of the cup is the planted one in each group, and of the disc the same in both.
    #[test]
    fn only_the_contrast_of_the_cup_differs_between_groups() {
        let config = DiscsConfig { n_subjects: 200, size: 64, ..DiscsConfig::default() };
        let mut sums = [[(0.0, 0.0); 3]; 2];
        for n in 0..config.n_subjects {
            let eye = Eye::draw(&config, 7, n);
            let (picture, mask) = eye.render(&config, 7, n);
            for (gray, label) in picture.iter().zip(&mask) {
                let (sum, n) = &mut sums[usize::from(eye.is_of_group)][usize::from(*label)];
                *sum += f64::from(*gray) / 255.0;
                *n += 1.0;
            }
        }
        let [usual, lower] = sums.map(|of| of.map(|(sum, n)| sum / n));
        for (found, expected) in [
            (usual[1] - usual[0], 0.35),
            (lower[1] - lower[0], 0.35),
            (usual[2] - usual[1], 0.2),
            (lower[2] - lower[1], 0.05),
        ] {
            assert!((found - expected).abs() < 0.02, "{found} is not {expected}");
        }
        let of_group = sums[1].iter().map(|(_, n)| n).sum::<f64>() / (200.0 * 64.0 * 64.0);
        assert!((of_group - 0.5).abs() < 0.12, "{of_group}");
    }
}
