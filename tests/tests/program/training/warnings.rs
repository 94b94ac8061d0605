//! Warnings that must be read before the numbers: on the terminal, in the run folder, on the page and in the JSON.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_tests::{SmallRun, patients, succeed};
use serde_json::Value;

fn names(path: &Path) -> Vec<String> {
    let json: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let list = json.get("warnings").unwrap_or(&json).as_array().unwrap();
    list.iter().map(|warning| warning["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_strategy_that_did_nothing_says_so_at_the_end_and_in_every_evaluation_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("strategy.group-dro.eta=1e-9");
    let outcome = succeed(run.arguments("train"));
    let said = "warning: group-dro: no weight of a group ever differed from equal weights by 5 %";
    assert!(
        outcome.stderr.contains(said) && outcome.stderr.contains("raise strategy.group-dro.eta"),
        "{}",
        outcome.stderr
    );
    let output = run.output();
    assert_eq!(names(&output.join("warnings.json")), ["unmoved-weights"]);
    // Two epochs on 120 films: the model is not shown to rank, which is reported too.
    assert_eq!(names(&output.join("evaluation.json")), ["unmoved-weights", "no-ranking"]);
    let page = std::fs::read_to_string(output.join("report.html")).unwrap();
    assert!(page.contains("class=\"warnings\"") && page.contains("<p>group-dro: no weight of a group"), "on the page");
    let steps = std::fs::read_to_string(output.join("steps.jsonl")).unwrap();
    for line in steps.lines() {
        let epoch: Value = serde_json::from_str(line).unwrap();
        let watched = epoch["watched"].as_array().unwrap();
        let of =
            |name: &str| watched.iter().find(|watched| watched["name"] == name).unwrap()["idle"].as_bool().unwrap();
        assert!(of("unmoved-weights") && !of("equal-predictions"), "{line}");
    }
    // From the saved files alone, and for the finished run.
    let elsewhere = folder.path().join("again").display().to_string();
    let outcome = succeed(["evaluate", &output.display().to_string(), "--output", &elsewhere]);
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert_eq!(names(&folder.path().join("again/evaluation.json")), ["unmoved-weights", "no-ranking"]);
    assert!(succeed(run.arguments("train")).stderr.contains(said));
}

// In the validation part x0 has the opposite sign, so that whatever is learnt makes its likelihood worse.
#[test]
fn a_run_that_uses_its_first_epoch_says_what_to_try() {
    let folder = tempfile::tempdir().unwrap();
    let part = |row: usize| ["train", "train", "train", "validation", "test"][row % 5];
    let changed = |row: usize, cells: &mut [String; 9]| {
        if part(row) == "validation" {
            cells[5] = (-cells[5].parse::<f64>().unwrap()).to_string();
        }
    };
    let parts = folder.path().join("parts.csv");
    let lines: Vec<String> = (0..200).map(|row| format!("p{row:04},{}", part(row))).collect();
    std::fs::write(&parts, format!("subject_id,part\n{}\n", lines.join("\n"))).unwrap();
    let run = patients(folder.path(), 200, changed)
        .set(&format!("split.file='{}'", parts.display()))
        .set("training.epochs=4")
        .set("optimiser.learning-rate=0.01");
    let said = succeed(run.arguments("train")).stderr;
    let steps = std::fs::read_to_string(run.output().join("steps.jsonl")).unwrap();
    let losses: Vec<f64> = steps
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["train_loss"].as_f64().unwrap())
        .collect();
    assert_eq!(losses.len(), 4);
    let sentence = "warning: erm: the first of 4 epochs is the best by nll, while the training loss went from ";
    let (first, rest) = said.split_once(sentence).and_then(|(_, rest)| rest.split_once(" to ")).unwrap();
    let (last, advice) = rest.split_once(": ").unwrap();
    for (said, loss) in [(first, losses[0]), (last, losses[3])] {
        assert!((said.parse::<f64>().unwrap() - loss).abs() < 1e-3, "{said} and {loss}");
    }
    assert!(advice.contains("try a lower optimiser.learning-rate"), "{advice}");
    assert_eq!(names(&run.output().join("warnings.json"))[0], "first-epoch");
    let page = std::fs::read_to_string(run.output().join("report.html")).unwrap();
    assert!(page.contains("<p>erm: the first of 4 epochs is the best by nll"), "on the page");
}

#[test]
fn a_run_that_did_something_warns_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = patients(folder.path(), 400, |_, _| ()).set("training.epochs=8").set("optimiser.learning-rate=0.01");
    let outcome = succeed(run.arguments("train"));
    assert!(!outcome.stderr.contains("warning:"), "{}", outcome.stderr);
    assert_eq!(names(&run.output().join("warnings.json")), [] as [String; 0]);
    assert_eq!(names(&run.output().join("evaluation.json")), [] as [String; 0]);
    assert!(!std::fs::read_to_string(run.output().join("report.html")).unwrap().contains("class=\"warnings\""));
}

#[test]
fn equal_curves_of_any_model_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cohort =
        write("cohort.csv", "sample_id,subject_id,time,event,sex_group\na,1,1,1,F\nb,2,2,1,F\nc,3,3,0,M\nd,4,4,1,M\n");
    let evaluate = |name: &str, curve_of_d: &str| {
        let text = format!("sample_id,0,1,2,3\na,1,0.8,0.4,0.3\nb,1,0.8,0.4,0.3\nc,1,0.8,0.4,0.3\nd,{curve_of_d}\n");
        let predictions = write(&format!("{name}.csv"), &text);
        let output = folder.path().join(name);
        let arguments = ["evaluate", "--predictions", &predictions, "--cohort", &cohort, "--output"];
        let arguments = arguments.into_iter().map(str::to_owned).chain([output.display().to_string()]);
        let stderr = succeed(arguments).stderr;
        let page = std::fs::read_to_string(output.join("report.html")).unwrap();
        (stderr, page, names(&output.join("evaluation.json")))
    };
    let sentence = "All 4 curves of the evaluated sample are equal: the model does not distinguish any samples.";
    let (stderr, page, found) = evaluate("equal", "1,0.8,0.4,0.3");
    assert!(stderr.contains(&format!("warning: {sentence}")), "{stderr}");
    assert!(page.contains(sentence));
    assert_eq!(found, ["equal-predictions"]);
    // The rounding of a table does not count as a difference.
    assert_eq!(evaluate("rounded", "1,0.8,0.4,0.3000001").2, ["equal-predictions"]);
    let (stderr, page, found) = evaluate("different", "1,0.8,0.4,0.2");
    assert!(!stderr.contains("warning:") && !page.contains("class=\"warnings\""), "{stderr}");
    assert_eq!(found, [] as [String; 0]);
}

#[test]
fn groups_that_are_censored_differently_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let evaluate = |name: &str, censored: [u32; 2]| {
        // 200 people in turns of two groups, of which so many in ten are censored; the curves are right.
        let mut table = "sample,subject,0,2,4,6,8,10,time,event,sex\n".to_owned();
        for k in 0..200_u32 {
            let time = 1.0 + f64::from(k * 37 % 101) / 10.0;
            let is_censored = (k / 2 * 7) % 10 < censored[(k % 2) as usize];
            let curve: Vec<String> = (0..6).map(|at| (-2.0 * f64::from(at) / time).exp().to_string()).collect();
            let sex = if k % 2 == 0 { "F" } else { "M" };
            let line = format!("a{k},p{k},{},{time},{},{sex}\n", curve.join(","), u8::from(!is_censored));
            table.push_str(&line);
        }
        let predictions = folder.path().join(format!("{name}.csv"));
        std::fs::write(&predictions, table).unwrap();
        let (file, output) = (predictions.display().to_string(), folder.path().join(name));
        let target = output.display().to_string();
        let words = ["evaluate", "--predictions", &file, "--attributes", "sex", "--output", &target];
        let stderr = succeed(words.into_iter().chain(["--set", "replicates=0", "--permutations", "0"])).stderr;
        (stderr, names(&output.join("evaluation.json")))
    };
    let (stderr, found) = evaluate("unequal", [6, 2]);
    assert_eq!(found, ["unequal-censoring"], "{stderr}");
    let said = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    // Of F 60 are censored where 41.156 are expected by the log-rank test, of M 20 where 38.844 are (summed by hand, events first).
    assert!(said.contains("The groups of sex are censored differently: F is censored 2.8"), "{said}");
    assert!(
        said.contains("times as fast as M (log-rank test p < 0.001). One censoring curve weighs all groups"),
        "{said}"
    );
    assert_eq!(evaluate("equal", [4, 4]).1, [] as [String; 0]);
}
