//! `[shift] permute` and `undersample` from the run file to the fitted model: the training part is changed, and nothing else.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::cohort::read_cohort;
use fairtte_data::{Part, Split};
use fairtte_tests::succeed;
use serde_json::Value;

const N: usize = 900;

/// A uniform number of row and stream (splitmix64).
fn uniform(row: usize, stream: u64) -> f64 {
    let mut state =
        (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (((state ^ (state >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The hazard is exp(1.2 x) for both sexes; every fourth is censored at its time.
fn config(folder: &Path) -> String {
    let mut text = "pid,time,event,sex,x\n".to_owned();
    for row in 0..N {
        let x = 3.4 * uniform(row, 0) - 1.7;
        let time = -uniform(row, 1).ln() / (1.2 * x).exp() + 1e-3;
        let (sex, event) = (if row % 2 == 0 { "F" } else { "M" }, u8::from(row % 4 != 3));
        writeln!(text, "p{row:03},{time:.5},{event},{sex},{x:.5}").unwrap();
    }
    let table = folder.join("people.csv");
    std::fs::write(&table, text).unwrap();
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.tabular]\ntable = '{1}'\nsubject = \"pid\"\ntime-unit = \"years\"\n\
         numeric = [\"x\"]\n[[attribute]]\nname = \"sex\"\n[estimator.cox]\n[evaluation]\nreplicates = 0\npermutations = 0\n",
        folder.display(),
        table.display()
    );
    let path = folder.join("people.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

struct Fit {
    output: PathBuf,
    stderr: String,
}

impl Fit {
    fn new(config: &str, folder: &Path, name: &str, sets: &[&str]) -> Self {
        let output = folder.join(name);
        let words = output.display().to_string();
        let mut arguments = vec!["train", "--config", config, "--output", &words];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        Self { stderr: succeed(arguments).stderr, output }
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.output.join(file)).unwrap()).unwrap()
    }

    /// Of x, per standard deviation.
    fn coefficient(&self) -> f64 {
        self.json("model/epoch-00001/estimator.json")["cox"]["coefficients"][0]["value"].as_f64().unwrap()
    }
}

#[test]
fn permuted_and_left_out_rows_change_the_training_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path());
    let of_women = ["shift.attribute=sex", "shift.group=F"];
    let plain = Fit::new(&path, folder.path(), "plain", &[]);
    let permuted = Fit::new(&path, folder.path(), "permuted", &[&of_women[..], &["shift.permute=1.0"]].concat());
    let fewer = Fit::new(&path, folder.path(), "fewer", &[&of_women[..], &["shift.undersample=0.5"]].concat());
    let (cohort, groups) = read_cohort(&plain.output.join("cohort.parquet")).unwrap();
    let split = Split::read_csv(&plain.output.join("split.csv"), &cohort).unwrap();
    let train = split.rows(Part::Train);
    let female = groups[0].levels().iter().position(|level| level == "F").unwrap();
    let n_women =
        train.iter().filter(|row| groups[0].membership()[**row].is_some_and(|group| group.index() == female)).count();
    assert!(n_women > 200, "{n_women}");

    // Half of the people have the x of another person: the hazard ratio is that of a mixture with none.
    let (whole, mixed) = (plain.coefficient(), permuted.coefficient());
    assert!(whole > 0.9, "{whole}");
    assert!((0.25..0.75).contains(&(mixed / whole)), "{mixed} of {whole}");
    assert_eq!(permuted.json("shift.json")["n-permuted"], n_women);

    // Those who are left out are not fitted to; the hazard is the same among those who stay.
    let n_left_out = n_women.div_ceil(2); // the share, rounded to the nearest number, a half upwards
    assert_eq!(fewer.json("shift.json")["n-left-out"], n_left_out);
    let fitted =
        |fit: &Fit, n: usize| assert!(fit.stderr.contains(&format!("fitting cox to {n} samples")), "{}", fit.stderr);
    fitted(&plain, train.len());
    fitted(&permuted, train.len());
    fitted(&fewer, train.len() - n_left_out);
    assert!((fewer.coefficient() - whole).abs() < 0.3 && (fewer.coefficient() - whole).abs() > 1e-6);

    // Record and split are those of the data.
    let said = [
        format!("{n_women} samples have the inputs of another (share 1)"),
        format!("{n_left_out} samples left out of training (share 0.5)"),
    ];
    for (fit, sentence) in [&permuted, &fewer].into_iter().zip(said) {
        assert_eq!(read_cohort(&fit.output.join("cohort.parquet")).unwrap().0.samples, cohort.samples);
        let [own, other] = [&plain, fit].map(|fit| std::fs::read_to_string(fit.output.join("split.csv")).unwrap());
        assert_eq!(own, other);
        let report = std::fs::read_to_string(fit.output.join("report.html")).unwrap();
        assert!(report.contains(&sentence), "the page says it: {sentence}");
    }
}
