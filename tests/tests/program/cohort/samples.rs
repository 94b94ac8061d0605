//! The page of pictures that `prepare` writes: the same bytes with any number of threads, and no page where there is none.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_tests::{SmallRun, fail, patients, succeed};

#[test]
fn the_page_has_the_pictures_asked_for_and_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("augmentation={ crop = [28, 28], rotation = 10.0 }");
    let page = run.output().join("samples.html");
    let prepare = |more: &[&str]| {
        let mut arguments = run.arguments("prepare");
        arguments.extend(more.iter().map(|text| (*text).to_owned()));
        succeed(arguments)
    };
    let told = prepare(&["--threads", "1"]);
    assert!(told.stdout.contains("pictures: "), "{}", told.stdout);
    let one = std::fs::read_to_string(&page).unwrap();
    prepare(&["--threads", "2"]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), one);
    // Two sexes; two samples of each in every part, those of the training part in three views.
    let n = |html: &str| html.matches("<img src=\"data:image/png;base64,").count();
    assert_eq!(n(&one), 2 * 2 * (3 + 1 + 1));
    assert!(!one.contains("<script") && !one.contains("http"), "the page needs nothing from elsewhere");
    prepare(&["--samples", "1"]);
    let fewer = std::fs::read_to_string(&page).unwrap();
    assert_eq!(n(&fewer), 2 * (3 + 1 + 1));
    let shown = prepare(&["--samples", "3", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(json["samples"].as_str(), page.to_str());
    let told = prepare(&["--samples", "0"]);
    assert!(!page.exists() && !told.stdout.contains("pictures: "), "a page of other pictures is removed");
}

#[test]
fn a_table_of_columns_has_no_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let run = patients(folder.path(), 30, |_, _| {});
    let mut arguments = run.arguments("prepare");
    succeed(&arguments);
    assert!(!run.output().join("samples.html").exists());
    arguments.extend(["--samples".to_owned(), "1".to_owned()]);
    fail(arguments, 3, "--samples: the inputs are columns of a table, so there are no decoded images to show");
}
