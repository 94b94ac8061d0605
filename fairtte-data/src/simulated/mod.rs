//! Simulated cohorts whose every source of bias is known: chest-film-like pictures and brain-like volumes.
//!
//! The causal graph of "The Boundaries of Fair AI in Medical Image Prognosis: A Causal Perspective" (section 2.2,
//! Figure 2): A -> `X_A`, Z -> `X_Z`, Z -> T, X = render(`X_Z`, `X_A`, noise), Y = min(T, C), event = T <= C. Knobs
//! open arrows from A. Group 1 of the biased attribute (sex: `F`; age: over 60; race: not `White`) is the one a knob
//! acts on, group 0 never changes. With beta = 1.02, shape k = 2, scale s = 4.5 years and knobs in [0, 1]:
//!
//! ```text
//! Z      ~ N(0, 1), independent of A
//! T      = s 2^(-t) (E / exp(beta Z))^(1/k)              E ~ Exp(1), t = time-distribution in group 1, else 0
//! C      = s 2^(-t) (F / exp(h - 2 beta m Z))^(1/k)      F ~ Exp(1), m = mi-censoring in group 1, else 0
//!          h solves P(T > C) = p per group               logit p = logit(base) + 1.5 c, c = censoring-rate in group 1
//! X_Z    = r Z + sqrt(1 - r^2) N(0, 1) + i               i = image-features in group 1, else 0
//!          r = signal (1 - 0.73 u)                       u = mi-time in group 1, else 0
//! risk   = exp(beta Z) 2^(k t)                           the hazard relative to Z = 0 in group 0
//! ```
//!
//! Because both times share one shape, P(event | Z) = logistic((1 + 2 m) beta Z - h) in closed form. T and C are
//! independent given (Z, A), so censoring is non-informative for a model that sees Z, whatever the knobs.
//!
//! | knob at 1 | in group 1 | what else it moves |
//! |---|---|---|
//! | `image-features` | pictures look one standard deviation sicker | nothing inside a group; risks of the two groups are no longer comparable |
//! | `mi-time` | corr(`X_Z`, Z) falls from 1 to 0.27, Harrell's C of `X_Z` from 0.74 to 0.56 | I(`X_Z`; event) falls too, because the event depends on Z through T; P(`X_Z`) stays |
//! | `mi-censoring` | the healthy leave early: slope of logit P(event) on Z triples; rate unchanged | censored times are shorter; observed events come from sicker people, so Y given event and I(`X_Z`; Y) change somewhat; without Z, censoring is informative |
//! | `time-distribution` | T and C halve | nothing else: a common factor changes neither the censoring indicators nor any mutual information |
//! | `censoring-rate` | log odds of censoring rise by 1.5 (40 % becomes 75 %) | Y gets shorter, also among events, so the time distribution and both mutual informations shift |
//!
//! Later images of a subject share Z and A; image j of m is taken after a share (j - 1 + U) / (m - 1) of 80 % of the
//! follow-up Y, U uniform, and its times are counted from there. Follow-up is thus spread evenly over the images, and
//! remaining times keep their shape; visits at fixed dates would instead exclude people with an earlier event.
//!
//! Attributes: sex F/M (1/2 each), age 21 to 89 (half over 60), race White 60, Black 20, Asian 12, Other 8 %; the
//! biased attribute has `group-share` in group 1. They affect only `X_A` unless a knob is set; with `traces = false` not even
//! that: the body in a picture has the attributes of another person, drawn from the same distribution.
//!
//! A folder holds `images/`, `manifest.csv` (image, `subject_id`, time, event, sex, age, race), `truth.csv` (what
//! the manifest hides) and, last, `simulation.json`. The same config and seed give the same bytes with any number of
//! threads on one platform.

mod causal;
mod config;
mod discs;
mod error;
mod write;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_images::drawn;
use fairtte_metrics::seeds::stream;
use rayon::prelude::*;

use causal::{CausalModel, Sample, drawn_attributes};
use write::{Counts, Folder, Request};

pub use config::{BiasKnobs, BiasedAttribute, PictureKind, SimulationConfig, TimeUnit};
pub use discs::{Discs, DiscsConfig, simulate_discs};
pub use error::SimulationError;
pub use write::{LOCK, write_alone};

/// A finished simulation on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The folder of all files; image paths in the tables are relative to it.
    pub folder: PathBuf,
    /// The table in the generic layout: image, `subject_id`, time, event, sex, age, race.
    pub manifest: PathBuf,
    /// The table of hidden values: Z, `X_Z`, true risk, T, C and A of every image.
    pub truth: PathBuf,
    /// Number of people.
    pub n_subjects: usize,
    /// Number of pictures.
    pub n_images: usize,
    /// Number of people whose event is observed.
    pub n_events: usize,
    /// Whether the folder was already complete and nothing was written.
    pub reused: bool,
}

/// Simulates a cohort into the folder `out`.
///
/// `on_progress(done, total)` is called from several threads, once per image. A folder that already holds the same
/// simulation is returned unchanged; an interrupted one is completed. About 1 to 2 ms of one core per film of 64 x 64,
/// 4 ms per volume of 24 x 32 x 32.
///
/// # Errors
///
/// A setting out of range, a folder that holds anything else, or a file that cannot be written.
pub fn simulate(
    config: &SimulationConfig,
    seed: u64,
    out: &Path,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Simulation, SimulationError> {
    config.validate()?;
    let request = Request { generator_version: write::GENERATOR_VERSION, seed, config: config.clone() };
    let finished = || {
        // A process that finishes meanwhile replaces one record by the other: what is seen between them is not seen twice.
        match write::inspect(out, &request).or_else(|_| write::inspect(out, &request))? {
            Folder::Finished(counts) => Ok(Some(counts)),
            Folder::Ready => Ok(None),
        }
    };
    let write = |is_locked| draw_all(&request, out, is_locked, on_progress);
    let (counts, reused) = write_alone(out, finished, write)?;
    Ok(describe(out, counts, reused))
}

/// Draws and writes all images, then the tables and the record.
fn draw_all(
    request: &Request,
    out: &Path,
    is_locked: bool,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Counts, SimulationError> {
    let Request { seed, config, .. } = request;
    let seed = *seed;
    write::begin(out, request, is_locked)?;
    let model = CausalModel::new(config, seed);
    let visits = config.images_per_subject as u64;
    let (done, total) = (AtomicUsize::new(0), config.n_images());
    let samples: Vec<Sample> = (0..total as u64)
        .into_par_iter()
        .map(|index| {
            let sample = model.sample(index / visits, index % visits);
            write_image(config, seed, out, &sample)?;
            on_progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            Ok(sample)
        })
        .collect::<Result<_, SimulationError>>()?;

    let n_events = samples.iter().filter(|sample| sample.visit == 0 && sample.event).count();
    let event_rate = n_events as f64 / config.n_subjects as f64;
    let counts = Counts { n_subjects: config.n_subjects, n_images: samples.len(), n_events, event_rate };
    write::write_file(&out.join(write::MANIFEST), manifest(config, &samples).as_bytes())?;
    write::write_file(&out.join(write::TRUTH), truth(config, &samples).as_bytes())?;
    samples.par_iter().try_for_each(|sample| write::sync(&out.join(image_name(config, sample))))?;
    write::finish(out, request, counts)?;
    Ok(counts)
}

fn describe(out: &Path, counts: Counts, reused: bool) -> Simulation {
    Simulation {
        folder: out.to_owned(),
        manifest: out.join(write::MANIFEST),
        truth: out.join(write::TRUTH),
        n_subjects: counts.n_subjects,
        n_images: counts.n_images,
        n_events: counts.n_events,
        reused,
    }
}

/// Where the disease is in an image of a simulation: what it adds to the attenuation (films) or brightness of tissue
/// (volumes) of every pixel, >= 0, before exposure and noise, in row-major order of `config.size`. `subject` and `visit`
/// count from 0: image `s000007_v1` is visit 1 of subject 6. An explanation of a model can be compared with it.
///
/// ```
/// use fairtte_data::simulated::{SimulationConfig, disease};
///
/// let config = SimulationConfig { size: vec![32, 32], ..SimulationConfig::default() };
/// let added = disease(&config, 1, 6, 0)?;
/// assert!(added.len() == 32 * 32 && added.iter().all(|value| *value >= 0.0));
/// # Ok::<(), fairtte_data::simulated::SimulationError>(())
/// ```
///
/// # Errors
/// A setting out of range.
pub fn disease(config: &SimulationConfig, seed: u64, subject: u64, visit: u64) -> Result<Vec<f64>, SimulationError> {
    config.validate()?;
    let sample = CausalModel::new(config, seed).sample(subject, visit);
    Ok(match draw(config, seed, &sample) {
        Drawn::Film(_, film) => film.disease,
        Drawn::Volume(_, volume) => volume.disease,
    })
}

/// An image before it is written, with its size.
enum Drawn {
    Film([usize; 2], drawn::Film),
    Volume([usize; 3], drawn::Volume),
}

fn draw(config: &SimulationConfig, seed: u64, sample: &Sample) -> Drawn {
    let mut body = stream(seed, "simulate-body", &[sample.subject]);
    let mut rng = stream(seed, "simulate-image", &[sample.subject, sample.visit]);
    let who = drawn_attributes(config, seed, sample.subject, sample.person.attributes);
    match (config.kind, config.size.as_slice()) {
        (PictureKind::Films, &[height, width]) => {
            let size = [height, width];
            Drawn::Film(size, drawn::film(size, who, sample.x_z, &mut body, &mut rng))
        }
        (PictureKind::Volumes, &[depth, height, width]) => {
            let size = [depth, height, width];
            Drawn::Volume(size, drawn::volume(size, who, sample.x_z, &mut body, &mut rng))
        }
        _ => unreachable!("a validated config has one size per axis"),
    }
}

fn write_image(config: &SimulationConfig, seed: u64, out: &Path, sample: &Sample) -> Result<(), SimulationError> {
    let path = out.join(image_name(config, sample));
    match draw(config, seed, sample) {
        Drawn::Film(size, film) => write::write_png(&path, size, &film.brightness),
        Drawn::Volume(size, volume) => write::write_nifti(&path, size, &volume.brightness),
    }
}

/// Path of an image relative to the folder; also its sample id.
fn image_name(config: &SimulationConfig, sample: &Sample) -> String {
    format!("{}/s{:06}_v{}.{}", write::IMAGES, sample.subject + 1, sample.visit, config.kind.extension())
}

fn subject_name(sample: &Sample) -> String {
    format!("s{:06}", sample.subject + 1)
}

fn manifest(config: &SimulationConfig, samples: &[Sample]) -> String {
    let mut text = String::from("image,subject_id,time,event,sex,age,race\n");
    for sample in samples {
        let who = sample.person.attributes;
        let (image, subject) = (image_name(config, sample), subject_name(sample));
        let (event, sex, race) = (u8::from(sample.event), who.sex(), who.race.as_str());
        let _ = writeln!(text, "{image},{subject},{:.3},{event},{sex},{},{race}", sample.time, who.age);
    }
    text
}

fn truth(config: &SimulationConfig, samples: &[Sample]) -> String {
    let mut text = String::from(
        "image,subject_id,visit,elapsed,z,x_z,true_risk,event_time,censoring_time,group_one,sex,age,race\n",
    );
    for sample in samples {
        let (person, who) = (&sample.person, sample.person.attributes);
        let _ = writeln!(
            text,
            "{},{},{},{:.6},{:.6},{:.6},{:.6e},{:.6},{:.6},{},{},{},{}",
            image_name(config, sample),
            subject_name(sample),
            sample.visit,
            sample.elapsed,
            person.z,
            sample.x_z,
            person.true_risk,
            sample.event_time,
            sample.censoring_time,
            u8::from(person.group_one),
            who.sex(),
            who.age,
            who.race.as_str(),
        );
    }
    text
}
