//! `evaluate --cohort` with `--attributes`: columns of the cohort and of the predictions.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_tests::{fail, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// Attributes of the first metric with their levels.
fn groups(folder: &Path) -> Vec<(String, Vec<String>)> {
    let numbers: Value = serde_json::from_slice(&std::fs::read(folder.join("scores.json")).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let levels = |a: &Value| a["groups"].as_array().unwrap().iter().map(|group| text(&group["level"])).collect();
    let attributes = numbers["metrics"][0]["attributes"].as_array().unwrap();
    attributes.iter().map(|a| (text(&a["attribute"]), levels(a))).collect()
}

#[test]
fn attributes_of_a_cohort_may_be_chosen_cut_and_joined_from_the_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (mut cohort, mut curves) = ("sample_id,subject_id,time,event,sex_group,age\n".to_owned(), String::new());
    let mut others = "sample,site,0,2,4\n".to_owned();
    for i in 0..40 {
        let (sex, age, site) = (["F", "M"][i % 2], 50 + i, ["a", "b", "c"][i % 3]);
        writeln!(cohort, "s{i},p{i},{},{},{sex},{age}", 1 + i % 4, u8::from(i % 3 > 0)).unwrap();
        writeln!(curves, "s{i},{site},{age}.0,1,0.{},0.2", 30 + i).unwrap();
        writeln!(others, "s{i},{site},1,0.{},0.1", 20 + i).unwrap();
    }
    let curves = format!("sample,site,age,0,2,4\n{curves}");
    let (cohort, predictions) = (write("cohort.csv", &cohort), write("curves.csv", &curves));
    let (output, others) = (folder.path().join("scores.html").display().to_string(), write("others.csv", &others));
    let base = ["evaluate", "--predictions", &predictions, "--cohort", &cohort, "--output", &output];
    let with = |extra: &[&str]| -> Vec<String> {
        base.iter().chain(&["--set", "replicates=5"]).chain(extra).map(|text| (*text).to_owned()).collect()
    };
    // A grouping of the cohort, a number of both files, which agree, and a column of the predictions only.
    succeed(with(&["--attributes", "sex,age:69,site", "--intersections"]));
    let found = groups(folder.path());
    let levels = |of: &[&str]| of.iter().map(|level| (*level).to_owned()).collect::<Vec<_>>();
    assert_eq!(found[0], ("sex".to_owned(), levels(&["F", "M"])));
    assert_eq!(found[1], ("age".to_owned(), levels(&["<= 69", "> 69"])));
    assert_eq!(found[2], ("site".to_owned(), levels(&["a", "b", "c"])));
    assert_eq!(found.len(), 6);
    succeed(with(&["--attributes", "site,age:69", "--predictions", &others]));
    // Without the list a column beside the curves is refused, as ever.
    fail(with(&[]), DATA, "column \"site\"");
    fail(with(&["--attributes", "region"]), DATA, "column \"site\"");
    fail(with(&["--attributes", "site,age"]), CONFIG, "attribute \"age\" has 40 different values");
    write("curves.csv", &curves.replace("s3,a,53.0", "s3,a,54.0"));
    let message =
        format!("age of sample \"s3\" is 54 ({predictions}, row 5) and 53 in {cohort}, expected the same in both");
    fail(with(&["--attributes", "site,age:69"]), DATA, &message);
}
