//! Writes made-up MIMIC tables of real size, or reads such tables into a cohort and prints how long it took.
//!
//! ```sh
//! cargo run --release -p fairtte-data --example mimic_tables -- write /tmp/mimic 1
//! cargo run --release -p fairtte-data --example mimic_tables -- read /tmp/mimic
//! ```
//!
//! Simulated data: every number is drawn. Sizes at scale 1 are those of MIMIC-CXR-JPG 2.1.0 and MIMIC-IV 3.1 (377,110
//! images of 65,379 people, 364,627 patients, 546,028 admissions of 16 columns), gzipped as `PhysioNet` distributes
//! them. `benches/mimic_tables.sh` reads the same tables with polars and pandas in Python beside this.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use fairtte_data::adapters::{MimicCxr, MimicCxrConfig};
use fairtte_data::cohort::CohortSummary;
use fairtte_data::{Adapter as _, FittedAttributes, build_cohort, write_cohort};
use mimalloc::MiMalloc;

/// The allocator of the program `fairtte`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const N_IMAGES: usize = 377_110;
const N_WITH_IMAGES: usize = 65_379;
const N_PATIENTS: usize = 364_627;
const N_ADMISSIONS: usize = 546_028;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", folder] => write(Path::new(folder), 1.0),
        ["write", folder, scale] => write(Path::new(folder), scale.parse()?),
        ["read", folder] => read(Path::new(folder)),
        _ => Err("expected: write FOLDER [SCALE], or read FOLDER".into()),
    }
}

/// Reads the files into a cohort with groups and writes its record, as `prepare --tables-only` does it.
fn read(folder: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let adapter = MimicCxr::new(MimicCxrConfig::new(folder));
    let attributes = adapter.default_attributes();
    let unlabelled = adapter.read()?;
    let read = start.elapsed();
    let (cohort, exclusions) = build_cohort(unlabelled, &attributes)?;
    let labelled = start.elapsed();
    let fitted = FittedAttributes::fit(&attributes, &cohort, &cohort.all_rows())?;
    let summary = CohortSummary::new(&cohort, &exclusions, &fitted);
    let grouped = start.elapsed();
    let output = folder.join("output");
    let (of_samples, of_others) = rayon::join(
        || write_cohort(&output.join("cohort.parquet"), &cohort, &fitted),
        || exclusions.write_csv(&output.join("exclusions.csv")),
    );
    of_samples.and(of_others)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{summary}")?;
    writeln!(
        out,
        "seconds: {:.2} read, {:.2} labelled, {:.2} grouped and counted, {:.2} written",
        read.as_secs_f64(),
        labelled.as_secs_f64(),
        grouped.as_secs_f64(),
        start.elapsed().as_secs_f64()
    )?;
    Ok(())
}

fn write(folder: &Path, scale: f64) -> Result<(), Box<dyn Error>> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "scales are small and positive")]
    let scaled = |n: usize| ((n as f64 * scale) as usize).max(10);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    std::fs::create_dir_all(folder.join("hosp"))?;
    let people = People::draw(scaled(N_PATIENTS), &mut random);
    people.write_patients(&mut table(&folder.join("hosp/patients.csv.gz"))?)?;
    people.write_admissions(&mut table(&folder.join("hosp/admissions.csv.gz"))?, scaled(N_ADMISSIONS), &mut random)?;
    let path = folder.join("mimic-cxr-2.0.0-metadata.csv.gz");
    people.write_metadata(&mut table(&path)?, scaled(N_IMAGES), scaled(N_WITH_IMAGES), &mut random)?;
    Ok(())
}

type Output = BufWriter<GzEncoder<File>>;

fn table(path: &Path) -> Result<Output, Box<dyn Error>> {
    Ok(BufWriter::new(GzEncoder::new(File::create(path)?, Compression::default())))
}

/// For every patient the number, and the month (from the year 2110) around which everything happens.
struct People(Vec<(usize, usize)>);

impl People {
    fn draw(n: usize, random: &mut ChaCha8Rng) -> Self {
        Self((0..n).map(|i| (10_000_000 + i * 27 + random.random_range(0..27), random.random_range(0..1000))).collect())
    }

    fn write_patients(&self, out: &mut Output) -> Result<(), Box<dyn Error>> {
        writeln!(out, "subject_id,gender,anchor_age,anchor_year,anchor_year_group,dod")?;
        for (i, (subject, month)) in self.0.iter().enumerate() {
            let dod = if subject % 5 < 2 { date(month + i % 30, i % 28) } else { String::new() };
            let gender = if i % 2 == 0 { "F" } else { "M" };
            writeln!(out, "{subject},{gender},{},{},2011 - 2013,{dod}", 18 + i % 74, 2110 + month / 12)?;
        }
        Ok(())
    }

    fn write_admissions(&self, out: &mut Output, n: usize, random: &mut ChaCha8Rng) -> Result<(), Box<dyn Error>> {
        const RACES: [&str; 8] = [
            "WHITE",
            "WHITE",
            "WHITE",
            "BLACK/AFRICAN AMERICAN",
            "WHITE - RUSSIAN",
            "ASIAN - CHINESE",
            "UNKNOWN",
            "HISPANIC/LATINO - PUERTO RICAN",
        ];
        writeln!(
            out,
            "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,admit_provider_id,admission_location,\
             discharge_location,insurance,language,marital_status,race,edregtime,edouttime,hospital_expire_flag"
        )?;
        for i in 0..n {
            let (subject, month) = self.0[random.random_range(0..self.0.len())];
            let (month, day) = (month + random.random_range(0..24), random.random_range(0..20));
            let clock = format!("{:02}:{:02}:00", i % 24, i % 60);
            let (from, to) = (date(month, day), date(month, day + i % 8));
            let race = RACES[(subject + usize::from(i % 40 == 0)) % RACES.len()];
            writeln!(
                out,
                "{subject},{},{from} {clock},{to} {clock},,EW EMER.,P{:05},EMERGENCY ROOM,HOME HEALTH CARE,Medicare,\
                 English,MARRIED,{race},{from} {clock},{from} {clock},0",
                20_000_000 + i,
                i % 99_999
            )?;
        }
        Ok(())
    }

    fn write_metadata(
        &self,
        out: &mut Output,
        n: usize,
        n_people: usize,
        random: &mut ChaCha8Rng,
    ) -> Result<(), Box<dyn Error>> {
        writeln!(
            out,
            "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime,\
             ProcedureCodeSequence_CodeMeaning,ViewCodeSequence_CodeMeaning,PatientOrientationCodeSequence_CodeMeaning"
        )?;
        for i in 0..n {
            // Every person once, then at random.
            let person = if i < n_people { i } else { random.random_range(0..n_people) };
            let (subject, month) = self.0[(person * 5) % self.0.len()];
            let day = date(month + random.random_range(0..24), random.random_range(0..28)).replace('-', "");
            let words: [u32; 5] = std::array::from_fn(|_| random.random());
            let dicom = words.map(|word| format!("{word:08x}")).join("-");
            writeln!(
                out,
                "{dicom},{subject},{},CHEST (PA AND LAT),PA,3056,2544,{day},{}.{:03},CHEST (PA AND LAT),postero-anterior,Erect",
                50_000_000 + i / 2,
                (i % 24) * 10_000 + (i % 60) * 101,
                i % 1000
            )?;
        }
        Ok(())
    }
}

fn date(month: usize, day: usize) -> String {
    format!("{}-{:02}-{:02}", 2110 + month / 12, 1 + month % 12, 1 + day)
}
