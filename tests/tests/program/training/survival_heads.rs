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

const BASELINE: &str = "network.baseline.json";

/// The event times of the training part, where the curves of a run with a Cox head step.
fn times_of_baseline(run: &SmallRun) -> Vec<f64> {
    let name = files(&run.output()).into_iter().find(|file| file.ends_with(BASELINE)).unwrap();
    let text = std::fs::read_to_string(run.output().join(name)).unwrap();
    let baseline: serde_json::Value = serde_json::from_str(&text).unwrap();
    baseline["times"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
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
    let mut cuts: Vec<f64> = Vec::new();
    for (i, head) in heads.into_iter().enumerate() {
        let run = small(&folder.path().join(i.to_string()), head)
            .set("time.grid=quantile")
            .set("time.points-per-interval=4")
            .set("time.interpolation=constant-hazard");
        run.train();
        let mut times = grid(&run);
        if head.starts_with("head.pc-hazard") {
            let early = times.remove(1); // the first event of the training part
            assert!(0.0 < early && early < times[1], "{head}: {early} before {}", times[1]);
        }
        if head.starts_with("head.cox") {
            let steps = times_of_baseline(&run);
            assert!(
                steps.len() > 20 && steps.iter().all(|step| times.contains(step)),
                "{head}: {steps:?} in {times:?}"
            );
            assert!(times.iter().all(|time| steps.contains(time) || cuts.contains(time)), "{head}: {times:?}");
            times.retain(|time| cuts.contains(time));
        }
        assert_eq!((times.len(), times[0]), (9 * 4 + 1, 0.0), "{head}");
        cuts.clone_from(&times);
        let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((steps[0] - steps[3]).abs() < 1e-9, "{head}: even within an interval");
        assert!((steps[3] - steps[4]).abs() > 1e-6, "{head}: quantiles are not evenly spaced");
        let baseline = files(&run.output()).iter().any(|file| file.ends_with(BASELINE));
        assert_eq!(baseline, head.starts_with("head.cox"), "{head}");
    }
}

#[test]
fn curves_of_a_cox_head_have_no_added_times_where_a_metric_depends_on_the_times() {
    let folder = tempfile::tempdir().unwrap();
    let times = |metrics: &str, n: usize| {
        let run = small(&folder.path().join(n.to_string()), "head.cox={}").set(metrics);
        run.train();
        grid(&run).len()
    };
    let alone = times("evaluation.metrics=[\"c-td\",\"rcll\"]", 0);
    assert_eq!(alone, 10 + 1, "the cut points and the first event of the training part");
    assert!(times("evaluation.metrics=[\"c-td\"]", 1) > alone + 20);
}

#[test]
fn a_single_linear_layer_serves_every_head_but_the_one_that_reads_times() {
    let folder = tempfile::tempdir().unwrap();
    let run = small(&folder.path().join("cox"), "head.cox={}").set("model.hidden=0");
    run.train();
    assert!(times_of_baseline(&run).iter().all(|step| grid(&run).contains(step)));
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
    refused("head.cox.ties=1", "head.cox.ties: invalid type: integer \"1\", expected \"efron\" or \"breslow\"");
    refused("head={}", "head: invalid type: empty table, expected one of ");
    refused("evaluation.level=2", "evaluation.level is 2, expected a number between 0 and 1");
    refused("evaluation.times=[]", "evaluation.times: the time grid is empty, expected at least one time");
    refused("evaluation.metrics=[\"q\"]", "evaluation.metrics: metric \"q\" does not exist, expected one of");
    refused("data.simulated.signal=3", "data.simulated.signal is 3, expected a number from 0 to 1");
    refused("head=[1]", "head: invalid type: list, expected one of ");
    refused("head.deephit.ranking=sum", "unknown variant \"sum\", expected \"pycox\" or \"paper\"");
    refused("model.hidden=100000", "model.hidden is 100000, expected a whole number from 0 to 65536");
}
