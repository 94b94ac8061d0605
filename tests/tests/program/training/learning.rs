//! Models learn from a signal but not from noise, and a planted bias is detected.
//!
//! Bounds stated before the first run: each head must reach nine tenths of the C of the risk that the times were drawn
//! from (about 0.74), and with shuffled outcomes it must stay within 0.5 +- 0.12. The first runs had 1,000 films and
//! early stopping by the likelihood, which starts so close to its best value that the second epoch was chosen, and
//! `pmf` reached 0.896 of the true risk. The bound was kept; the test now uses 2,000 films (1,200 for training, 400 for
//! testing) and the epoch of the best C^td.
//! Volumes have the same bound. The first trials (1,000 volumes, step 3e-3, no weight decay) reached 0.75 to 0.85: the
//! training loss halved while C^td of the validation part did not change, and a linear model of the voxels showed that
//! there is a signal. 3,000 volumes of 12 x 16 x 16 with mirror images, weight decay and a smaller step gave 0.897 with
//! `pmf`; the test now uses 4,000.
//! With the knob `mi-time` at 1 the films of group F lose most of their signal (C of the drawn severity 0.56 instead of
//! 0.74): over 5 seeds of 2,000 films, paired by seed, the mean of C^td(M) - C^td(F) must grow by at least 0.06.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the numbers behind a bound are printed")]

use std::collections::HashMap;
use std::path::Path;

use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
use fairtte_metrics::{EvaluationReport, Outcomes, Risk};
use fairtte_tests::{SmallRun, c_td, c_td_of, files, generic_data, patients, succeed};

/// Settings of all runs here; with batch norm and 300 films a larger step than in practice is fastest.
fn training(run: SmallRun) -> SmallRun {
    run.set("training.epochs=8")
        .set("training.patience=8")
        .set("optimiser.learning-rate=3e-3")
        .set("evaluation.replicates=0")
}

fn simulated(folder: &Path, sets: &[&str]) -> SmallRun {
    let run = SmallRun::new(folder).set("data.simulated.n-subjects=1000");
    training(sets.iter().fold(run, |run, set| run.set(set)))
}

const HEADS: [&str; 6] = [
    "head.pmf={}",
    "head.deephit.alpha=0.5",
    "head.nnet-survival={}",
    "head.cox={}",
    "head.cox-time={}",
    "head.pc-hazard={}",
];

/// Harrell's C of the risk that the simulation drew the times from, in the test part of a run: an upper limit for every
/// model.
fn of_true_risk(run: &SmallRun) -> f64 {
    let cache = run.folder.join("cache");
    let table = |name: &str| {
        let file = files(&cache).into_iter().find(|file| file.ends_with(name)).unwrap();
        columns(&cache.join(file))
    };
    let (truth, manifest) = (table("truth.csv"), table("manifest.csv"));
    let split = columns(&run.output().join("split.csv"));
    let parts: HashMap<&String, &String> = split["subject_id"].iter().zip(&split["part"]).collect();
    assert_eq!(truth["image"], manifest["image"]);
    let rows = || (0..truth["image"].len()).filter(|row| parts[&truth["subject_id"][*row]] == "test");
    let numbers = |cells: &[String]| -> Vec<f64> { rows().map(|row| cells[row].parse().unwrap()).collect() };
    let event = rows().map(|row| manifest["event"][row] == "1").collect();
    let outcomes = Outcomes::new(numbers(&manifest["time"]), event).unwrap();
    let risk = Risk::new(numbers(&truth["true_risk"])).unwrap();
    harrell_concordance(&outcomes, &risk, TieTest::Exact, TiedPairs::Predictions).unwrap().value
}

#[test]
fn every_head_reaches_nine_tenths_of_the_true_risk_on_volumes() {
    let folder = tempfile::tempdir().unwrap();
    for (i, head) in HEADS.into_iter().enumerate() {
        let sets = [
            head,
            "data.simulated.kind=volumes",
            "data.simulated.n-subjects=4000",
            "data.simulated.size=[12, 16, 16]",
            "image.size=[12, 16, 16]",
            "augmentation.flip=horizontal",
            "model.backbone=small-3d",
            "training.monitor=c-td",
            "optimiser.weight-decay=0.3",
        ];
        let run = simulated(&folder.path().join(i.to_string()), &sets).set("optimiser.learning-rate=1e-3");
        let (c_td, best) = (c_td(&run.train()), of_true_risk(&run));
        println!("{head}: C^td {c_td:.3}, true risk {best:.3}, ratio {:.3}", c_td / best);
        assert!(c_td >= 0.9 * best, "{head}: C^td {c_td:.3}, true risk {best:.3}");
    }
}

/// A table without quotation marks, by the names of its columns.
fn columns(path: &Path) -> HashMap<String, Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let column = |c: usize| rows.iter().map(|row| row[c].to_owned()).collect();
    names.iter().enumerate().map(|(c, name)| ((*name).to_owned(), column(c))).collect()
}

#[test]
fn every_head_reaches_nine_tenths_of_the_true_risk_on_films() {
    let folder = tempfile::tempdir().unwrap();
    for (i, head) in HEADS.into_iter().enumerate() {
        let sets = [head, "data.simulated.n-subjects=2000", "training.monitor=c-td"];
        let run = simulated(&folder.path().join(i.to_string()), &sets);
        let (c_td, best) = (c_td(&run.train()), of_true_risk(&run));
        println!("{head}: C^td {c_td:.3}, true risk {best:.3}, ratio {:.3}", c_td / best);
        assert!(c_td >= 0.9 * best, "{head}: C^td {c_td:.3}, true risk {best:.3}");
    }
}

/// Simulates films and permutes the outcomes: the pair (time, event) of row i goes to row 7 i + 3 (mod n).
fn shuffled(folder: &Path) -> SmallRun {
    let films = folder.join("films");
    let output = films.display().to_string();
    succeed(["simulate", "--output", &output, "--set", "n-subjects=1000", "--set", "size=[32, 32]"]);
    let table = films.join("manifest.csv");
    let text = std::fs::read_to_string(&table).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    let columns: Vec<&str> = header.split(',').collect();
    let mut dealt = header.to_owned() + "\n";
    for (i, row) in rows.iter().enumerate() {
        let from = &rows[(7 * i + 3) % rows.len()];
        let cell = |c: usize| if ["time", "event"].contains(&columns[c]) { from[c] } else { row[c] };
        let cells: Vec<&str> = (0..row.len()).map(cell).collect();
        dealt += &cells.join(",");
        dealt.push('\n');
    }
    std::fs::write(films.join("shuffled.csv"), dealt).unwrap();
    training(SmallRun::with_data(folder, &generic_data(&films.join("shuffled.csv"))))
}

#[test]
fn no_head_learns_from_films_with_other_peoples_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    for (i, head) in HEADS.into_iter().enumerate() {
        let c_td = c_td(&shuffled(&folder.path().join(i.to_string())).set(head).train());
        println!("{head}, shuffled: C^td {c_td:.3}");
        assert!((c_td - 0.5).abs() < 0.12, "{head}: C^td {c_td:.3}");
    }
}

#[test]
fn a_planted_bias_widens_the_gap_over_five_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let gap = |report: &EvaluationReport| c_td_of(report, "sex", "M") - c_td_of(report, "sex", "F");
    let mut growth = Vec::new();
    for seed in 1..=5 {
        let of_knob = |knob: &str| {
            let name = format!("{seed}-{knob}");
            let knob = format!("data.simulated.bias.mi-time={knob}");
            let sets = [format!("seed={seed}"), knob, "data.simulated.n-subjects=2000".to_owned()];
            let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
            gap(&simulated(&folder.path().join(name), &sets).train())
        };
        let (without, with) = (of_knob("0"), of_knob("1"));
        println!("seed {seed}: C^td(M) - C^td(F) {without:.3} without bias, {with:.3} with it");
        growth.push(with - without);
    }
    let mean = growth.iter().sum::<f64>() / 5.0;
    println!("mean growth {mean:.3}");
    assert!(mean > 0.06, "the gap grows by {mean:.3} on average: {growth:?}");
}

/// Bound stated before the first run: over three seeds the mean C^td in half precision must not differ from that in single by more than
/// the range of the latter over the seeds, or by 0.01 if that is smaller.
#[test]
fn every_head_learns_in_half_precision_what_it_learns_in_single() {
    let folder = tempfile::tempdir().unwrap();
    for (i, head) in HEADS.into_iter().enumerate() {
        let of = |precision: &str| -> Vec<f64> {
            let of_seed = |seed: usize| {
                let run = training(patients(&folder.path().join(format!("{i}-{precision}-{seed}")), 600, |_, _| ()));
                let run = run.set(head).set(&format!("seed={seed}")).set("training.monitor=c-td");
                c_td(&run.set(&format!("training.precision={precision}")).train())
            };
            (1..=3).map(of_seed).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let single = of("f32");
        let range = single.iter().copied().fold(0.0, f64::max) - single.iter().copied().fold(1.0, f64::min);
        for precision in ["bf16", "f16"] {
            let half = of(precision);
            println!("{head}: f32 {single:.3?}, {precision} {half:.3?}");
            assert!(single != half, "{head}: {precision} has no effect");
            assert!(
                (mean(&half) - mean(&single)).abs() <= range.max(0.01),
                "{head}: f32 {single:?}, {precision} {half:?}"
            );
        }
    }
}
