//! Heads, grids and settings of the survival model through the binary.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::predictions::Rising;
use fairtte_data::read_predictions;
use fairtte_tests::{SmallRun, fail, files};

const CONFIG: i32 = 3;

/// The times of the predictions of a run.
fn grid(run: &SmallRun) -> Vec<f64> {
    read_predictions(&run.output().join("predictions.parquet"), Rising::Refuse).unwrap().grid
}

fn small(folder: &Path, head: &str) -> SmallRun {
    SmallRun::new(folder).set(head).set("evaluation.replicates=0").set("training.epochs=1")
}

#[test]
fn every_head_predicts_on_a_finer_grid_of_quantiles() {
    let folder = tempfile::tempdir().unwrap();
    let heads = [
        "head.pmf={}",
        "head.deephit.ranking=\"paper\"",
        "head.nnet-survival={}",
        "head.cox.ties=\"breslow\"",
        "head.cox-time.controls=2",
        "head.pc-hazard={}",
    ];
    for (i, head) in heads.into_iter().enumerate() {
        let run = small(&folder.path().join(i.to_string()), head)
            .set("time.grid=quantile")
            .set("time.points-per-interval=4")
            .set("time.interpolation=constant-hazard");
        run.train();
        let mut times = grid(&run);
        if head.starts_with("head.cox") || head.starts_with("head.pc-hazard") {
            let early = times.remove(1); // the first event of the training part
            assert!(0.0 < early && early < times[1], "{head}: {early} before {}", times[1]);
        }
        assert_eq!((times.len(), times[0]), (9 * 4 + 1, 0.0), "{head}");
        let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((steps[0] - steps[3]).abs() < 1e-9, "{head}: even within an interval");
        assert!((steps[3] - steps[4]).abs() > 1e-6, "{head}: quantiles are not evenly spaced");
        let baseline = files(&run.output()).iter().any(|file| file.ends_with("network.baseline.json"));
        assert_eq!(baseline, head.starts_with("head.cox"), "{head}");
    }
}

#[test]
fn a_single_linear_layer_serves_every_head_but_the_one_that_reads_times() {
    let folder = tempfile::tempdir().unwrap();
    let run = small(&folder.path().join("cox"), "head.cox={}").set("model.hidden=0");
    run.train();
    assert_eq!(grid(&run).len(), 10 + 1, "the cut points and the first event of the training part");
    let refused = small(&folder.path().join("cox-time"), "head.cox-time={}").set("model.hidden=0");
    let sentence = "model.hidden is 0, expected at least 1 with head cox-time";
    fail(refused.arguments("train"), CONFIG, sentence);
}

#[test]
fn settings_of_heads_and_grids_outside_their_range_name_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |set: &str, sentence: &str| {
        fail(SmallRun::new(folder.path()).set(set).arguments("train"), CONFIG, sentence);
    };
    refused("head.cox-time.shrink=-1", "head.cox-time.shrink is -1, expected a finite number >= 0");
    refused("time.points-per-interval=0", "time.points-per-interval is 0, expected a whole number from 1 to 1000");
    refused("head.cox.ties=exact", "unknown variant \"exact\", expected \"efron\" or \"breslow\"");
    refused("head.deephit.ranking=sum", "unknown variant \"sum\", expected \"pycox\" or \"paper\"");
    refused("model.hidden=100000", "model.hidden is 100000, expected a whole number from 0 to 65536");
}
