//! A run that was not trained, and folders as `fairtte predict` writes them, for tests of external validation.

use std::path::Path;

use fairtte_data::cohort::{AttributeColumn, Exclusions};
use fairtte_data::{AttributeConfig, Cohort, FittedAttributes, Sample, write_cohort, write_predictions};
use fairtte_metrics::{SampleId, SubjectId};
use ndarray::Array2;
use serde_json::json;

/// Times of all curves, in years.
pub const GRID: [f64; 7] = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0];

/// Smallest and largest predicted rate, per year.
const RATES: (f64, f64) = (0.05, 1.0);

/// A made-up person with a rate that the model knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Person {
    /// Identity of the person; that of the sample is `s-` and this.
    pub name: String,
    /// Follow-up in years.
    pub time: f64,
    /// Whether the event was observed.
    pub event: bool,
    /// Level of the attribute.
    pub sex: &'static str,
    /// In years.
    pub age: f64,
    /// Rate of the predicted curve exp(-rate t).
    pub predicted: f64,
}

impl Person {
    /// The same person, predicted the other way round: low rates are high ones.
    #[must_use]
    pub fn turned(&self) -> Self {
        Self { predicted: RATES.0 * RATES.1 / self.predicted, ..self.clone() }
    }
}

/// `n` people whose names begin with `prefix`; their events happen at `scale` times the predicted rate.
pub fn people(prefix: &str, n: usize, scale: f64) -> Vec<Person> {
    let spread = |row: usize, step: f64| ((row as f64 + 0.5) * step + prefix.len() as f64 * 0.37).fract();
    let person = |row: usize| {
        // From 0.05 to 1: a model that knows them ranks well.
        let rate = RATES.0 * (RATES.1 / RATES.0).powf(spread(row, 0.569_840_290_998));
        let event_time = -spread(row, 0.618_033_988_75).ln() / (rate * scale);
        let censored_at = 0.5 + 9.0 * spread(row, 0.754_877_666_25);
        Person {
            name: format!("{prefix}{row:03}"),
            time: event_time.min(censored_at).max(0.01),
            event: event_time <= censored_at,
            sex: if row % 5 < 2 { "F" } else { "M" },
            age: 40.0 + ((row * 11) % 37) as f64,
            predicted: rate,
        }
    };
    (0..n).map(person).collect()
}

/// The cohort of these people with groups by sex and by age, and its fitted groups.
fn cohort(name: &str, unit: &str, people: &[Person]) -> (Cohort, FittedAttributes) {
    let sample = |(row, person): (usize, &Person)| Sample {
        sample_id: SampleId::new(format!("s-{}", person.name)),
        subject_id: SubjectId::new(person.name.clone()),
        unit: None,
        image: std::path::PathBuf::new(),
        time: person.time,
        event: person.event,
        competing: None,
        source_row: row + 2,
    };
    let column = |name: &str, of: &dyn Fn(&Person) -> String| {
        AttributeColumn::new(name, people.iter().map(|person| Some(of(person))).collect())
    };
    let cohort = Cohort {
        name: name.to_owned(),
        time_unit: unit.to_owned(),
        source: "people.csv".into(),
        samples: people.iter().enumerate().map(sample).collect(),
        attributes: vec![column("sex", &|p| p.sex.to_owned()), column("age", &|p| p.age.to_string())],
        provenance: None,
        cause: None,
    };
    let mut age = AttributeConfig::new("age");
    age.threshold = Some(fairtte_data::cohort::Threshold::Value(60.0));
    let fitted = FittedAttributes::fit(&[AttributeConfig::new("sex"), age], &cohort, &cohort.all_rows());
    (cohort, fitted.expect("the attributes are complete"))
}

/// Writes the curves of these people.
///
/// # Panics
/// If the folder cannot be written.
pub fn write_curves(path: &Path, people: &[Person]) {
    let samples: Vec<SampleId> = people.iter().map(|person| SampleId::new(format!("s-{}", person.name))).collect();
    let survival =
        Array2::from_shape_fn((people.len(), GRID.len()), |(row, k)| (-people[row].predicted * GRID[k]).exp());
    write_predictions(path, &samples, &GRID, survival.view()).expect("a temporary folder can be written");
}

/// The part of the person at `row` of a made-up run: a third is the test part.
pub fn part(row: usize) -> &'static str {
    ["train", "test", "train", "train", "test", "validation"][row % 6]
}

/// Writes the files of a run that an evaluation reads; of every part but the training part there are curves.
///
/// # Panics
/// If the folder cannot be written.
pub fn write_run(folder: &Path, people: &[Person]) {
    std::fs::create_dir_all(folder).expect("a temporary folder can be written");
    let file = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("a temporary folder can be written");
    };
    file(
        "run.toml",
        "name = \"hearts\"\noutput = \"runs/hearts\"\n[data.simulated]\nn-subjects = 10\n[[attribute]]\nname = \"sex\"\n\
         [[attribute]]\nname = \"age\"\nthreshold = 60\n[evaluation]\nreplicates = 60\nn-times = 20\n",
    );
    let (cohort, fitted) = cohort("clinic A", "years", people);
    write_cohort(&folder.join("cohort.parquet"), &cohort, &fitted).expect("a temporary folder can be written");
    let parts: Vec<String> =
        people.iter().enumerate().map(|(row, person)| format!("{},{}\n", person.name, part(row))).collect();
    file("split.csv", &format!("subject_id,part\n{}", parts.concat()));
    let predicted: Vec<Person> =
        people.iter().enumerate().filter(|(row, _)| part(*row) != "train").map(|(_, person)| person.clone()).collect();
    write_curves(&folder.join("predictions.parquet"), &predicted);
    let none = Exclusions::new(people.len());
    none.write_csv(&folder.join("exclusions.csv")).expect("a temporary folder can be written");
}

/// Writes a folder as `fairtte predict` does, of other data predicted by the run in `run`; times are in `unit`.
///
/// # Panics
/// If the folder cannot be written.
pub fn write_predicted(folder: &Path, run: &Path, people: &[Person], unit: &str) {
    std::fs::create_dir_all(folder).expect("a temporary folder can be written");
    let (cohort, fitted) = cohort("clinic B", unit, people);
    write_cohort(&folder.join("cohort.parquet"), &cohort, &fitted).expect("a temporary folder can be written");
    write_curves(&folder.join("predictions.parquet"), people);
    let none = Exclusions::new(people.len());
    none.write_csv(&folder.join("exclusions.csv")).expect("a temporary folder can be written");
    let record = json!({
        "version": 1,
        "runs": [{ "path": run, "epoch": 7, "weights": "epoch 7", "weights-blake3": "00", "time-unit": unit }],
        "data": "other.toml",
        "n-predicted": people.len(),
        "n-labelled": people.len(),
        "prediction": "network",
        "a-field-of-later-versions": true,
    });
    std::fs::write(folder.join("predict.json"), record.to_string()).expect("a temporary folder can be written");
}
