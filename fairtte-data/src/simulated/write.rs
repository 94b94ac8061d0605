//! Files of a simulation: pictures, tables, the record, and the rules for a folder that is not empty.
//!
//! Every file is written under a temporary name and renamed. `simulation.partial.json` is the first file and
//! `simulation.json` the last, so that an interrupted simulation is recognised and completed by the same call. The images
//! are synced when all are written: waiting for the disk after each of them would take longer than drawing it.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use serde::{Deserialize, Serialize};

use super::config::SimulationConfig;
use super::error::SimulationError;
use crate::atomic::{lock_folder, remove_unfinished, sync_folder, unfinished_name, write_and_rename, write_unsynced};

/// Changes whenever the same settings and seed would give different files.
pub(super) const GENERATOR_VERSION: u32 = 1;
pub(super) const RECORD: &str = "simulation.json";
pub(super) const PARTIAL_RECORD: &str = "simulation.partial.json";
/// Held while a simulation is written. Not the lock of a run or of a store, whose folders are refused.
pub const LOCK: &str = ".simulation.lock";
pub(super) const MANIFEST: &str = "manifest.csv";
pub(super) const TRUTH: &str = "truth.csv";
pub(super) const IMAGES: &str = "images";

/// Extent of a volume in millimetres along width, height and depth, whatever its number of voxels.
const FIELD_OF_VIEW_MM: [f64; 3] = [200.0, 200.0, 150.0];
/// Stored value of brightness 1 in a volume.
const VOLUME_UNIT: f64 = 1000.0;

/// The request; equal requests give equal files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub generator_version: u32,
    pub seed: u64,
    pub config: SimulationConfig,
}

/// The counts of the result; named as in the record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counts {
    pub n_subjects: usize,
    pub n_images: usize,
    /// Subjects whose event is observed.
    pub n_events: usize,
    /// The same as a share of the subjects.
    pub event_rate: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    request: Request,
    counts: Option<Counts>,
}

/// State of the output folder before a simulation.
pub(super) enum Folder {
    /// New, empty, or left by an interruption of the same simulation.
    Ready,
    /// The same simulation is finished.
    Finished(Counts),
}

/// Checks `out` and returns an error for a folder that holds anything but this simulation.
pub(super) fn inspect(out: &Path, request: &Request) -> Result<Folder, SimulationError> {
    let in_use = |found: String| SimulationError::FolderInUse { folder: out.to_owned(), found };
    if out.join(RECORD).exists() {
        let found = read_record(&out.join(RECORD))?;
        if !same(&found.request, request) {
            return Err(in_use(format!("another simulation ({})", differences(&found.request, request))));
        }
        if let Some(path) = [MANIFEST, TRUTH, IMAGES].map(|name| out.join(name)).into_iter().find(|path| !path.exists())
        {
            return Err(SimulationError::Incomplete { path });
        }
        return found.counts.map(Folder::Finished).ok_or_else(|| in_use("a record without counts".to_owned()));
    }
    if out.join(PARTIAL_RECORD).exists() {
        let found = read_record(&out.join(PARTIAL_RECORD))?.request;
        if same(&found, request) {
            return Ok(Folder::Ready);
        }
        return Err(in_use(format!("another, interrupted simulation ({})", differences(&found, request))));
    }
    match fs::read_dir(out) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Folder::Ready),
        Err(source) => Err(SimulationError::Io { action: "list", path: out.to_owned(), source }),
        Ok(mut entries) => {
            let is_foreign = |entry: &io::Result<fs::DirEntry>| match entry {
                Ok(entry) => !is_ours(&entry.file_name().to_string_lossy()),
                Err(_) => true,
            };
            match entries.find(is_foreign) {
                None => Ok(Folder::Ready),
                Some(Ok(entry)) => Err(in_use(format!("\"{}\"", entry.file_name().to_string_lossy()))),
                Some(Err(source)) => Err(SimulationError::Io { action: "list", path: out.to_owned(), source }),
            }
        }
    }
}

/// Whether a simulation has a file of this name before its first record: the lock, and the record while it is written, which
/// earlier versions named otherwise.
fn is_ours(name: &str) -> bool {
    let is_record = unfinished_name(name).or_else(|| name.strip_suffix(".part")) == Some(PARTIAL_RECORD);
    name == LOCK || is_record
}

/// Runs `write` while no other process simulates in `out`, unless `finished` finds its result before or after waiting for them; returns
/// the result and whether it was found. `write` is given whether the file system has locks, so that nobody else writes there.
///
/// [`LOCK`] is removed unless `write` fails.
///
/// # Errors
/// Those of `finished` and `write`; [`SimulationError::Io`] if folder or lock cannot be created.
///
/// ```
/// use fairtte_data::simulated::{LOCK, SimulationError, write_alone};
///
/// let folder = tempfile::tempdir()?;
/// let number = folder.path().join("number");
/// let finished = || Ok::<_, SimulationError>(std::fs::read_to_string(&number).ok());
/// let write = |_| Ok(std::fs::write(&number, "7").map_or_else(|error| error.to_string(), |()| "7".to_owned()));
/// for is_found in [false, true] {
///     assert_eq!(write_alone(folder.path(), finished, write)?, ("7".to_owned(), is_found));
/// }
/// assert!(!folder.path().join(LOCK).exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_alone<T, E: From<SimulationError>>(
    out: &Path,
    finished: impl Fn() -> Result<Option<T>, E>,
    write: impl FnOnce(bool) -> Result<T, E>,
) -> Result<(T, bool), E> {
    if let Some(found) = finished()? {
        return Ok((found, true));
    }
    let path = out.join(LOCK);
    fs::create_dir_all(out).map_err(|source| SimulationError::Io { action: "create", path: out.to_owned(), source })?;
    let lock =
        lock_folder(out, LOCK).map_err(|source| SimulationError::Io { action: "write", path: path.clone(), source })?;
    let found = match finished().transpose() {
        Some(found) => found.map(|found| (found, true)),
        None => Ok((write(lock.is_some())?, false)),
    };
    // Whoever waits for the lock finds the result; a file that stays is harmless.
    let _ = fs::remove_file(path);
    found
}

/// Records the request and creates the folder of the images; the holder of the lock removes what a killed simulation left
/// half-written there.
pub(super) fn begin(out: &Path, request: &Request, is_locked: bool) -> Result<(), SimulationError> {
    let images = out.join(IMAGES);
    if is_locked {
        remove_unfinished(out, |name| [PARTIAL_RECORD, MANIFEST, TRUTH, RECORD].contains(&name));
        remove_unfinished(&images, |_| true);
    }
    write_record(&out.join(PARTIAL_RECORD), request, None)?;
    fs::create_dir_all(&images).map_err(|source| SimulationError::Io { action: "create", path: images, source })
}

/// Writes the record that makes the simulation finished; every image is synced by then.
pub(super) fn finish(out: &Path, request: &Request, counts: Counts) -> Result<(), SimulationError> {
    sync_folder(&out.join(IMAGES));
    write_record(&out.join(RECORD), request, Some(counts))?;
    let partial = out.join(PARTIAL_RECORD);
    fs::remove_file(&partial).map_err(|source| SimulationError::Io { action: "remove", path: partial, source })
}

/// Compares both requests after a round trip through text, so that a digit lost in parsing makes no difference.
fn same(stored: &Request, asked: &Request) -> bool {
    serde_json::to_string(asked)
        .and_then(|text| serde_json::from_str::<Request>(&text))
        .is_ok_and(|asked| *stored == asked)
}

/// Describes the differences between two requests.
fn differences(stored: &Request, asked: &Request) -> String {
    let mut parts = Vec::new();
    if stored.generator_version != asked.generator_version {
        parts.push(format!("of generator version {}, not {}", stored.generator_version, asked.generator_version));
    }
    if stored.seed != asked.seed {
        parts.push(format!("of seed {}, not {}", stored.seed, asked.seed));
    }
    if stored.config != asked.config {
        parts.push("of other settings".to_owned());
    }
    parts.join(", ")
}

fn read_record(path: &Path) -> Result<Record, SimulationError> {
    let text = fs::read_to_string(path).map_err(|source| SimulationError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|source| SimulationError::Record { path: path.to_owned(), source })
}

fn write_record(path: &Path, request: &Request, counts: Option<Counts>) -> Result<(), SimulationError> {
    let mut text = serde_json::to_string_pretty(&Record { request: request.clone(), counts })
        .map_err(|source| SimulationError::Record { path: path.to_owned(), source })?;
    text.push('\n');
    write_file(path, text.as_bytes())
}

/// Writes a table or a record, which is on the disk afterwards; no half of it is left if that fails.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), SimulationError> {
    write_and_rename(path, |writer| writer.write_all(bytes)).map_err(|source| unwritten(path, source))
}

/// Writes an image, which [`sync`] brings to the disk; no half of it is left if that fails.
pub(super) fn write_image(path: &Path, bytes: &[u8]) -> Result<(), SimulationError> {
    write_unsynced(path, bytes).map_err(|source| unwritten(path, source))
}

/// Waits until an image is on the disk: after a power failure a record must not stand beside images without bytes.
pub(super) fn sync(path: &Path) -> Result<(), SimulationError> {
    // Some systems sync no file that is open for reading only.
    let synced = fs::File::options().write(true).open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| unwritten(path, source))
}

fn unwritten(path: &Path, source: io::Error) -> SimulationError {
    SimulationError::Io { action: "write", path: path.to_owned(), source }
}

/// Writes a film as an 8-bit grey PNG; `brightness` is `[height, width]`, 0 black to 1 white, clipped.
pub(super) fn write_png(path: &Path, [height, width]: [usize; 2], brightness: &[f64]) -> Result<(), SimulationError> {
    let pixels: Vec<u8> = brightness.iter().map(|&value| grey_level(value)).collect();
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(&pixels, side(width), side(height), ExtendedColorType::L8)
        .map_err(|source| SimulationError::Encode { path: path.to_owned(), source })?;
    write_image(path, &bytes)
}

/// Writes a volume as compressed NIfTI-1 with 16-bit values; `brightness` is `[depth, height, width]`, 1 is stored
/// as 1000.
pub(super) fn write_nifti(path: &Path, size: [usize; 3], brightness: &[f64]) -> Result<(), SimulationError> {
    let mut bytes = nifti_header(size).to_vec();
    bytes.extend(brightness.iter().flat_map(|&value| stored_level(value).to_le_bytes()));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder
        .write_all(&bytes)
        .and_then(|()| encoder.finish())
        .map_err(|source| SimulationError::Io { action: "compress", path: path.to_owned(), source })?;
    write_image(path, &compressed)
}

/// The 348 bytes of a NIfTI-1 header and the 4 bytes for "no extension" (nifti1.h, `nifti_1_header`).
///
/// Width runs to the person's right, height forwards, depth up; the volume's centre is the origin.
fn nifti_header([depth, height, width]: [usize; 3]) -> [u8; 352] {
    let mut header = [0_u8; 352];
    let mut put = |offset: usize, bytes: &[u8]| header[offset..offset + bytes.len()].copy_from_slice(bytes);
    let sides = [width, height, depth];
    let edges = [0, 1, 2].map(|axis| FIELD_OF_VIEW_MM[axis] / sides[axis] as f64);

    put(0, &348_i32.to_le_bytes());
    put(38, b"r");
    put(40, &3_i16.to_le_bytes());
    for axis in 0..7 {
        let n = sides.get(axis).map_or(1, |&n| short(n));
        put(42 + 2 * axis, &n.to_le_bytes());
        put(80 + 4 * axis, &single(edges.get(axis).copied().unwrap_or(1.0)).to_le_bytes());
    }
    put(70, &4_i16.to_le_bytes()); // datatype: signed 16-bit
    put(72, &16_i16.to_le_bytes()); // bits per voxel
    put(76, &1_f32.to_le_bytes()); // qfac
    put(108, &352_f32.to_le_bytes()); // first byte of the voxels
    put(112, &1_f32.to_le_bytes()); // slope
    put(123, &[2]); // millimetres
    put(148, b"simulated head");
    put(254, &1_i16.to_le_bytes()); // sform: scanner coordinates
    for (axis, (&n, &edge)) in sides.iter().zip(&edges).enumerate() {
        let row = 280 + 16 * axis;
        put(row + 4 * axis, &single(edge).to_le_bytes());
        put(row + 12, &single(-0.5 * edge * (n - 1) as f64).to_le_bytes());
    }
    put(344, b"n+1\0");
    header
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255 just before")]
fn grey_level(brightness: f64) -> u8 {
    (255.0 * brightness).round().clamp(0.0, 255.0) as u8
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the range of i16 just before")]
fn stored_level(brightness: f64) -> i16 {
    (VOLUME_UNIT * brightness).round().clamp(0.0, f64::from(i16::MAX)) as i16
}

#[expect(clippy::cast_possible_truncation, reason = "a length in millimetres needs no more than single precision")]
fn single(x: f64) -> f32 {
    x as f32
}

fn short(n: usize) -> i16 {
    i16::try_from(n).expect("sides of a volume are at most 256")
}

fn side(n: usize) -> u32 {
    u32::try_from(n).expect("sides of a film are at most 1024")
}
