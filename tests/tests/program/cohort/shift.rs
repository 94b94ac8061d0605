//! The direction of the paper's Figure 7: models trained with one group of the training part degraded, tested on
//! unchanged samples.
//!
//! The paper (section 4.4, F.5) reports: noise on the times hurts IBS most, flipped censoring hurts C^td and AUC^td,
//! blurred images hurt everything. It states neither the width of the blur nor of the noise. Here: simulated films of
//! 32 x 32, `[shift]` on the women, `nnet-survival`, paired with the training on the unshifted part by seed. "Hurts" =
//! worse on average over the seeds; relative changes (the change over the unshifted value) are compared.
//!
//! First statement, for 600 films, seeds 1 to 5, a blur of 4 pixels and the epoch of the best likelihood: noise of
//! +-0.5 of the largest time hurts IBS most, a flip of 90 % hurts C^td and AUC^td, blur hurts all. C^td, AUC^td and IBS
//! were worse by 0.06, 0.10, 0.07 of their value under noise, 0.07, 0.11, 0.09 under the flip, -0.05, -0.03, 0.03 under
//! blur: only the direction of the flip was found. The likelihood chose epochs in which little had been learnt
//! (`learning.rs` explains why), and the simulated signs of severity remain visible after a narrow blur. On seeds 101
//! and 102, with 1,500 films, a blur of 16 pixels and the epoch of the best C^td, all directions were found (0.02,
//! 0.02, 0.22; 0.04, 0.04, 0.06; 0.02, 0.03, 0.08).
//!
//! Second statement, with the settings of that trial, before the run on seeds 11 to 13: the same three. Again only that
//! of the flip was found: C^td and AUC^td worse in all three seeds, by 0.03 and 0.03. Noise: 0.03, 0.03, -0.04; blur:
//! -0.03, -0.04, -0.06. IBS varied by 0.1 in both directions between seeds, regardless of the shift: an epoch chosen by
//! its ranking may be calibrated or not.
//!
//! Third statement, before the run on seeds 21 to 23: the same three, with the epoch of the best IBS, as in the current
//! test. All were found: noise 0.05, 0.06, 0.11; flip 0.05, 0.06, 0.16; blur 0.05, 0.06, 0.12. The flip also hurts IBS,
//! and IBS most, which the paper does not report; in one seed of three C^td and AUC^td were unchanged. With epochs
//! chosen by ranking or likelihood the directions of the figure for noise and blur were not found at this size.
//!
//! Three seeds are few: after a change of the operations of the layers that only affects rounding, the same seeds gave
//! 0.06, 0.06, 0.04 under noise, so IBS was not hurt most. Fourth statement: the same three over seeds 21 to 28, of
//! which 24 to 28 were new. All were found: noise 0.07, 0.07, 0.09 (the new five alone 0.07, 0.07, 0.12); flip 0.07,
//! 0.08, 0.15; blur 0.03, 0.04, 0.08.
#![expect(clippy::print_stdout, reason = "the numbers behind a direction are printed")]

use std::path::Path;

use fairtte_metrics::EvaluationReport;
use fairtte_tests::SmallRun;

const METRICS: [&str; 3] = ["c_td_antolini_strict", "auc_td", "ibs"];
const SHIFTS: [&str; 3] = ["time-noise={ fraction = [-0.5, 0.5] }", "censoring-flip=0.9", "blur=16"];
const SEEDS: [u64; 8] = [21, 22, 23, 24, 25, 26, 27, 28];

/// The relative deterioration of each metric of `shifted`.
fn harm(plain: &EvaluationReport, shifted: &EvaluationReport) -> [f64; 3] {
    let value = |report: &EvaluationReport, name| report.metric(name).and_then(|metric| metric.overall.value);
    METRICS.map(|name| {
        let (before, after) = value(plain, name).zip(value(shifted, name)).expect("it is defined on 300 films");
        let change = (after - before) / before;
        if name == "ibs" { change } else { -change }
    })
}

fn train(folder: &Path, cache: &Path, seed: u64, shift: Option<&str>) -> EvaluationReport {
    let run = SmallRun::new(folder)
        .set(&format!("cache={}", cache.display()))
        .set(&format!("seed={seed}"))
        .set("data.simulated.n-subjects=1500")
        .set("training.epochs=8")
        .set("training.patience=8")
        .set("training.monitor=ibs")
        .set("optimiser.learning-rate=3e-3")
        .set("evaluation.replicates=0");
    let run = match shift {
        Some(shift) => run.set("shift.attribute=sex").set("shift.group=F").set(&format!("shift.{shift}")),
        None => run,
    };
    run.train()
}

#[test]
fn shifts_of_the_training_part_hurt_as_figure_7_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut mean = [[0.0; 3]; 3];
    for seed in SEEDS {
        let place = |name: &str| folder.path().join(format!("{seed}-{name}"));
        let cache = place("cache");
        let plain = train(&place("plain"), &cache, seed, None);
        for (kind, shift) in SHIFTS.into_iter().enumerate() {
            let found = harm(&plain, &train(&place(&kind.to_string()), &cache, seed, Some(shift)));
            println!("seed {seed}, {shift}: C^td, AUC^td, IBS worse by {found:.3?} of their value");
            (0..3).for_each(|metric| mean[kind][metric] += found[metric] / SEEDS.len() as f64);
        }
    }
    for (shift, mean) in SHIFTS.iter().zip(mean) {
        println!("mean, {shift}: C^td, AUC^td, IBS worse by {mean:.3?} of their value");
    }
    let [noise, flip, blur] = mean;
    assert!(noise[2] > 0.0 && noise[2] > noise[0].max(noise[1]), "noise: {noise:?}");
    assert!(flip[0] > 0.0 && flip[1] > 0.0, "flip: {flip:?}");
    assert!(blur.iter().all(|harm| *harm > 0.0), "blur: {blur:?}");
}
