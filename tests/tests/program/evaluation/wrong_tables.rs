//! Tables of curves in every form that they are written in by mistake: one sentence each and nothing written; and tables
//! with columns and values of other names, which are read.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_tests::{Outcome, fail, files, succeed};
use serde_json::Value;

const USAGE: i32 = 2;
const CONFIG: i32 = 3;
const DATA: i32 = 4;
const N: usize = 30;

/// A made-up table of 30 samples as `sample,subject,time,event,sex,age,0,1,2` with some discrimination; `cell` may change
/// a cell by its row and column.
fn table(header: &str, cell: impl Fn(usize, &str, String) -> String) -> Vec<Vec<String>> {
    let row = |i: usize| {
        let survival = |time: f64| (-time * (0.1 + 0.03 * (i * 7 % 10) as f64)).exp();
        let sex = ["F", "M"][i % 2];
        let cells = [
            ("sample", format!("s{i}")),
            ("subject", format!("p{}", i / 2)),
            ("time", format!("{}", 3.5 - (i * 7 % 10) as f64 / 4.0)),
            ("event", format!("{}", usize::from(!i.is_multiple_of(3)))),
            ("sex", sex.to_owned()),
            ("age", format!("{}", 40 + i)),
            ("0", survival(0.0).to_string()),
            ("1", survival(1.0).to_string()),
            ("2", survival(2.0).to_string()),
        ];
        cells.into_iter().map(|(column, text)| cell(i, column, text)).collect()
    };
    std::iter::once(header.split(',').map(str::to_owned).collect()).chain((0..N).map(row)).collect()
}

const HEADER: &str = "sample,subject,time,event,sex,age,0,1,2";

fn unchanged(_: usize, _: &str, text: String) -> String {
    text
}

/// Changes survival and nothing else.
fn curves(change: impl Fn(f64) -> f64) -> impl Fn(usize, &str, String) -> String {
    move |_, column, text| match column {
        "0" | "1" | "2" => change(text.parse().unwrap()).to_string(),
        _ => text,
    }
}

fn text(cells: &[Vec<String>], separator: &str) -> String {
    cells.iter().map(|row| row.join(separator) + "\n").collect()
}

/// A folder with one file, and the arguments that evaluate it into `scores` with few replicates.
fn written(name: &str, bytes: &[u8], extra: &[&str]) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let (path, scores) = (path.display().to_string(), folder.path().join("scores").display().to_string());
    let fixed = ["evaluate", "--predictions", &path, "--output", &scores, "--set", "replicates=20"];
    let arguments = fixed.iter().chain(extra).map(|text| (*text).to_owned()).collect();
    (folder, arguments)
}

/// Requires that the evaluation of a file says `sentence`, one sentence, and writes nothing.
fn refused(name: &str, bytes: &[u8], extra: &[&str], code: i32, sentence: &str) -> Outcome {
    let (folder, arguments) = written(name, bytes, extra);
    let outcome = fail(arguments, code, sentence);
    assert_eq!(outcome.stdout, "", "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked") && !outcome.stderr.contains("bug in fairtte"), "{outcome:?}");
    assert_eq!(files(folder.path()), [name], "nothing is written");
    outcome
}

fn refused_csv(cells: &[Vec<String>], extra: &[&str], sentence: &str) -> Outcome {
    refused("curves.csv", text(cells, ",").as_bytes(), extra, DATA, sentence)
}

/// Evaluates a table and returns its output, with the numbers.
fn scored(cells: &[Vec<String>], extra: &[&str]) -> (Outcome, Value, String) {
    let (folder, arguments) = written("curves.csv", text(cells, ",").as_bytes(), extra);
    let outcome = succeed(arguments);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("scores").join(name)).unwrap();
    (outcome, serde_json::from_str(&read("evaluation.json")).unwrap(), read("report.html"))
}

fn levels(numbers: &Value, attribute: usize) -> Vec<String> {
    let groups = numbers["metrics"][0]["attributes"][attribute]["groups"].as_array().unwrap();
    groups.iter().map(|group| group["level"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn risk_percent_and_hazards_are_named_and_never_repaired() {
    for repair in [&[][..], &["--repair", "monotone"], &["--repair", "monotone:all"]] {
        let looks_like = |change: fn(f64) -> f64, sentence: &str| {
            refused_csv(&table(HEADER, curves(change)), repair, sentence);
        };
        looks_like(|s| 1.0 - s, "curves.csv look like risk (cumulative incidence) (30 of 30 rows): write 1 - value");
        looks_like(|s| 100.0 * s, "curves.csv look like percent (30 of 30 rows): divide by 100");
        looks_like(
            |s| -3.0 * s.ln(),
            "look like cumulative hazards or risk in percent (30 of 30 rows): write exp(-value)",
        );
    }
}

/// A page brings `NAME.csv` and `NAME.json` beside it.
#[test]
fn a_file_that_is_read_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name).display().to_string();
    let curves = text(&table(HEADER, unchanged), ",");
    let classes = "sample,probability,label\na,0.2,0\nb,0.7,1\n";
    let masks = "sample,truth,predicted\na,a.png,b.png\n";
    std::fs::create_dir(of("pairs")).unwrap();
    for (name, bytes) in [("curves.csv", curves.as_str()), ("classes.csv", classes), ("masks.csv", masks)] {
        std::fs::write(of(name), bytes).unwrap();
    }
    for name in ["pairs/samples.csv", "pairs-samples.csv"] {
        std::fs::write(of(name), masks).unwrap();
    }
    std::fs::write(of("other.csv"), &curves).unwrap();
    let before = files(folder.path());
    let outcomes = |table: &str, page: &str, extra: &[&str]| {
        let [table, page] = [table, page].map(of);
        let command = match extra {
            ["masks"] => vec!["evaluate-masks", "--table", &table, "--classes", "disc=1", "--output", &page],
            _ => [&["evaluate", "--predictions", &table, "--output", &page], extra].concat(),
        };
        fail(&command, CONFIG, "is read and would be overwritten, expected another name");
    };
    let train = of("other.csv");
    outcomes("curves.csv", "curves.html", &[]);
    outcomes("curves.csv", "other.html", &["--train", &train]);
    outcomes("curves.csv", "other.html", &["--predictions", &train]);
    outcomes("classes.csv", "./classes.html", &["--task", "binary"]);
    outcomes("masks.csv", "masks.html", &["masks"]);
    // The numbers of every sample stand in a file of their own, in a folder and beside a page.
    outcomes("pairs/samples.csv", "pairs", &["masks"]);
    outcomes("pairs-samples.csv", "pairs.html", &["masks"]);
    assert_eq!(files(folder.path()), before);
    assert_eq!(std::fs::read_to_string(of("pairs/samples.csv")).unwrap(), masks);
    assert_eq!(std::fs::read_to_string(of("curves.csv")).unwrap(), curves);
}

#[test]
fn curves_in_a_file_of_their_own_are_checked_too() {
    let cells: Vec<Vec<String>> =
        table(HEADER, curves(|s| 1.0 - s)).into_iter().map(|row| [&row[..1], &row[6..]].concat()).collect();
    let (folder, arguments) = written("curves.csv", text(&cells, ",").as_bytes(), &[]);
    let cohort = folder.path().join("cohort.csv");
    let row = |i: usize| format!("s{i},p{i},{},1,{}", i + 1, ["F", "female"][i % 2]);
    let header = "sample_id,subject_id,time,event,sex_group".to_owned();
    let lines: Vec<String> = std::iter::once(header).chain((0..N).map(row)).collect();
    std::fs::write(&cohort, lines.join("\n")).unwrap();
    let with_cohort = |extra: &[&str]| -> Vec<String> {
        let cohort = ["--cohort".to_owned(), cohort.display().to_string()];
        arguments.iter().cloned().chain(cohort).chain(extra.iter().map(|text| (*text).to_owned())).collect()
    };
    fail(with_cohort(&[]), DATA, "look like risk (cumulative incidence) (30 of 30 rows): write 1 - value");
    for option in ["--sample", "--subject", "--time", "--event", "--event-value"] {
        fail(with_cohort(&[option, "x"]), USAGE, "cannot be used with");
    }
    assert_eq!(files(folder.path()), ["cohort.csv", "curves.csv"]);
    let survival: Vec<Vec<String>> =
        table(HEADER, unchanged).into_iter().map(|row| [&row[..1], &row[6..]].concat()).collect();
    std::fs::write(folder.path().join("curves.csv"), text(&survival, ",")).unwrap();
    let outcome = succeed(with_cohort(&["--title", "My model", "--time-unit", "weeks"]));
    let note = "sex has the values \"F\", \"female\", which differ by case or are initials of each other";
    assert!(outcome.stderr.contains(note), "{outcome:?}");
    let page = std::fs::read_to_string(folder.path().join("scores/report.html")).unwrap();
    assert!(page.contains("<h1>My model</h1>") && page.contains("time (weeks)"), "{page}");
}

#[test]
fn a_repair_of_many_cells_has_to_be_asked_for() {
    // Every third row rises at the last time by 0.05: 10 of 90 cells, more than 5 %.
    let rising = |i: usize, column: &str, text: String| match column {
        "1" if i.is_multiple_of(3) => "0.5".to_owned(),
        "2" if i.is_multiple_of(3) => "0.55".to_owned(),
        _ => text,
    };
    let cells = table(HEADER, rising);
    let outcome = refused_csv(&cells, &[], "survival of sample \"s0\" rises from 0.5 at time 1 to 0.55 at time 2");
    assert!(outcome.stderr.contains("--repair monotone"), "{outcome:?}");
    let sentence = "the running minimum would change 10 of 90 cells of survival in ";
    let outcome = refused_csv(&cells, &["--repair", "monotone"], sentence);
    assert!(outcome.stderr.contains("by more than 0.01, expected at most 5 %"), "{outcome:?}");
    assert!(outcome.stderr.contains("--repair monotone:all changes them nevertheless"), "{outcome:?}");
    let (outcome, numbers, page) = scored(&cells, &["--repair", "monotone:all"]);
    assert!(outcome.stderr.contains("--repair monotone:all made every curve its running minimum."), "{outcome:?}");
    assert_eq!(
        (&numbers["input"]["repair"], &numbers["input"]["repairs"]["n-cells"]),
        (&"monotone:all".into(), &10.into())
    );
    assert!(page.contains("monotone:all: changed cells 10, rows 10"));
    let rarely = table(HEADER, |i, column, text| if i < 12 { rising(i, column, text) } else { text });
    let (_, numbers, _) = scored(&rarely, &["--repair", "monotone"]);
    assert_eq!(numbers["input"]["repairs"]["n-cells"], 4, "4 of 90 cells");
}

#[test]
fn files_of_other_separators_and_types_are_refused_by_name() {
    let cells = table(HEADER, unchanged);
    let with_commas = |columns: &'static [&str]| {
        table(HEADER, move |_, column, text| if columns.contains(&column) { text.replace('.', ",") } else { text })
    };
    let not_a_table = |name: &str, bytes: &[u8], sentence: &str| {
        refused(name, bytes, &[], DATA, &format!("{name} cannot be read as a table: {sentence}"));
    };
    let semicolons = "its columns are separated by semicolons, expected commas";
    not_a_table("curves.csv", text(&cells, ";").as_bytes(), semicolons);
    let points = format!("{semicolons} and decimal points instead of decimal commas");
    not_a_table("curves.csv", text(&with_commas(&["time", "0", "1", "2"]), ";").as_bytes(), &points);
    let tabs = "its columns are separated by tabs, expected commas, or a name ending in .tsv";
    not_a_table("curves.csv", text(&cells, "\t").as_bytes(), tabs);
    let float16 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairtte-data/tests/fixtures/tables/float16.parquet");
    let bytes = std::fs::read(float16).unwrap();
    not_a_table(
        "half.parquet",
        &bytes,
        "column \"0\" has the type Float16, expected text, true or false, whole numbers",
    );
    not_a_table("half.parquet", &bytes[..bytes.len() - 9], "");
    not_a_table("text.parquet", text(&cells, ",").as_bytes(), "");

    let comma = |cells: &[Vec<String>], sentence: &str| {
        refused("curves.tsv", text(cells, "\t").as_bytes(), &[], DATA, sentence);
    };
    let expected = "expected a number with a decimal point, not a comma (";
    comma(&with_commas(&["time"]), &format!("time of sample \"s0\" is 3,5, {expected}"));
    comma(&with_commas(&["2"]), "survival at time 2 of sample \"s0\" is 0,");
    comma(&with_commas(&["2"]), expected);
    let in_names = table(&HEADER.replace(",1,2", ",0.5,2"), unchanged);
    let in_names = text(&in_names, "\t").replacen("0.5", "0,5", 1);
    let name = "column \"0,5\" of ";
    let outcome = refused("curves.tsv", in_names.as_bytes(), &[], DATA, name);
    assert!(outcome.stderr.contains("its name is a number with a decimal comma, not a point"), "{outcome:?}");
}

#[test]
fn a_missing_column_is_named_with_the_usual_name_of_it_and_the_option() {
    for (column, own, help) in [
        ("time", "os_days", "name it with --time os_days"),
        ("event", "fustat", "name it with --event fustat"),
        ("sample", "image_id", "name it with --sample image_id"),
        ("sample", "patient id", "name it with --sample 'patient id'"),
    ] {
        let header = HEADER.replacen(column, own, 1);
        let outcome = refused_csv(&table(&header, unchanged), &[], &format!("column \"{column}\" is not in "));
        assert!(outcome.stderr.contains(&format!("nearest is \"{own}\"")), "{outcome:?}");
        assert!(outcome.stderr.contains(help), "{outcome:?}");
    }
    let outcome = refused_csv(&table(&HEADER.replace("time", "centre"), unchanged), &[], "column \"time\" is not in ");
    assert!(!outcome.stderr.contains("nearest"), "no absurd suggestion: {outcome:?}");
    assert!(outcome.stderr.contains("name it with --time COLUMN"), "{outcome:?}");
    let dead = |i: usize, column: &str, text: String| match column {
        "event" => ["alive", "dead"][usize::from(!i.is_multiple_of(3))].to_owned(),
        _ => text,
    };
    let sentence = "event of sample \"s0\" is alive, expected 1 (observed) or 0 (censored) (";
    let outcome = refused_csv(&table(HEADER, dead), &[], sentence);
    assert!(outcome.stderr.contains("name the value of an event, as in --event-value alive"), "{outcome:?}");
    let bytes = text(&table(HEADER, dead), ",");
    let sentence = "curves.csv is \"Dead\", nearest is \"dead\"";
    refused("curves.csv", bytes.as_bytes(), &["--event-value", "Dead"], CONFIG, sentence);
    let same = "--event: \"time\" is also the column of --time, expected another one";
    refused("curves.csv", bytes.as_bytes(), &["--time", "time", "--event", "time"], CONFIG, same);
}

#[test]
fn columns_of_other_names_give_the_same_numbers() {
    let attributes = ["--attributes", "sex"];
    let (_, usual, _) = scored(&table(HEADER, unchanged), &attributes);
    let own = table("id,patient,duration,status,sex,age,0,1,2", |_, column, text| match column {
        "event" => ["alive", "dead"][usize::from(text == "1")].to_owned(),
        _ => text,
    });
    let train = tempfile::tempdir().unwrap();
    let outcomes = train.path().join("train.csv");
    let options = [
        "--sample",
        "id",
        "--subject",
        "patient",
        "--time",
        "duration",
        "--event",
        "status",
        "--event-value",
        "dead",
        "--time-unit",
        "days",
        "--title",
        "Model <A>",
        "--attributes",
        "sex",
    ];
    let (_, numbers, page) = scored(&own, &options);
    assert_eq!(numbers["metrics"], usual["metrics"]);
    assert_eq!(numbers["n-subjects"], 15);
    assert_eq!(numbers["input"]["title"], "Model <A>");
    assert!(page.contains("<h1>Model &lt;A&gt;</h1>") && page.contains("time (days)"), "{page}");
    assert!(page.contains("time is &quot;duration&quot;"), "the columns are on the page: {page}");
    let on_train = |text: &str| {
        std::fs::write(&outcomes, text).unwrap();
        let path = outcomes.display().to_string();
        let (_, numbers, _) = scored(&own, &[&options[..], &["--train", &path]].concat());
        numbers["input"]["censoring"].clone()
    };
    let expected = serde_json::json!({"fitted-on": "train", "n": 3, "n-events": 2});
    assert_eq!(on_train("duration,status\n1,dead\n3,alive\n4,dead\n"), expected);
    assert_eq!(on_train("time,event\n1,1\n3,0\n4,1\n"), expected, "the usual names");
}

#[test]
fn an_ignored_column_that_may_name_the_subjects_is_noted() {
    let (outcome, _, _) = scored(&table(&HEADER.replace("subject", "patient_id"), unchanged), &[]);
    let note = "Column \"patient_id\" may name the subjects; if it does: --subject patient_id.";
    assert!(outcome.stderr.contains(note), "{outcome:?}");
    let (outcome, _, _) = scored(&table(HEADER, unchanged), &[]);
    assert!(!outcome.stderr.contains("may name the subjects"), "{outcome:?}");
}

#[test]
fn doubtful_levels_are_noted_everywhere_and_missing_ones_can_be_left_out() {
    let spelt = |i: usize, column: &str, text: String| match column {
        "sex" => ["F", "female", "Female", "M", "Unknown"][i % 5].to_owned(),
        "age" if i.is_multiple_of(10) => "not reported".to_owned(),
        _ => text,
    };
    let cells = table(HEADER, spelt);
    let (outcome, numbers, page) = scored(&cells, &["--attributes", "sex"]);
    let alike = "sex has the values \"F\", \"Female\", \"female\", which differ by case or are initials of each other";
    let unknown = "sex has the value \"Unknown\", which may stand for a missing value and is compared like any other: \
                   --missing leaves its samples out of the comparison.";
    let notes: Vec<&str> =
        numbers["input"]["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    for note in [alike, unknown] {
        assert!(outcome.stderr.contains(note), "{outcome:?}");
        assert!(notes.iter().any(|text| text.contains(note)), "{notes:?}");
        assert!(page.contains(&note.replace('"', "&quot;")), "{note} is missing on the page");
    }
    assert_eq!(levels(&numbers, 0), ["F", "Female", "M", "Unknown", "female"]);

    let missing = ["--attributes", "sex,age:50,60", "--missing", "unknown,not reported"];
    let (outcome, numbers, _) = scored(&cells, &missing);
    assert_eq!(levels(&numbers, 0), ["F", "Female", "M", "female"]);
    assert_eq!(levels(&numbers, 1), ["<= 50", "> 50 to 60", "> 60"]);
    let n_missing = |k: usize| numbers["metrics"][0]["attributes"][k]["n-missing"].clone();
    assert_eq!((n_missing(0), n_missing(1)), (6.into(), 3.into()));
    assert!(outcome.stderr.contains("samples without sex, in no group: 6."), "{outcome:?}");
    assert!(!outcome.stderr.contains("may stand for a missing value"), "{outcome:?}");
    let sentence = "curves.csv has the value \"unkown\", nearest is \"Unknown\"";
    let bytes = text(&cells, ",");
    refused("curves.csv", bytes.as_bytes(), &["--attributes", "sex", "--missing", "unkown"], CONFIG, sentence);
    refused("curves.csv", bytes.as_bytes(), &["--missing", "unknown"], USAGE, "--attributes");
    let list = "--attributes: thresholds of \"age\" are [60.0, 40.0], expected ascending numbers";
    refused("curves.csv", bytes.as_bytes(), &["--attributes", "age:60,40"], CONFIG, list);
}

#[test]
fn a_path_that_is_no_run_and_a_file_in_place_of_a_folder_are_named() {
    let (folder, arguments) = written("curves.csv", text(&table(HEADER, unchanged), ",").as_bytes(), &[]);
    let of = |name: &str| folder.path().join(name).display().to_string();
    let (file, absent, empty) = (of("curves.csv"), of("absent"), of("empty"));
    std::fs::create_dir(&empty).unwrap();
    for (call, sentence) in [
        (vec!["evaluate", &file], "this is a file, expected the folder of a run; `fairtte evaluate --predictions"),
        (vec!["evaluate", &absent], "there is no such folder"),
        (vec!["evaluate", &empty], "this is not the folder of a run: it has no run.toml"),
        (vec!["card", &file], "this is a file, expected the folder of a run"),
        (vec!["bias", &absent], "there is no such folder"),
        (vec!["select", &absent], "there is no such folder"),
        (vec!["select", &file], "this is a file, expected a folder"),
        (vec!["cohort", "check", &absent], "there is no such folder"),
    ] {
        fail(&call, DATA, sentence);
    }
    // Only one of RUN and --predictions is needed, and --output with the latter alone.
    let alone = fail(["evaluate"], USAGE, "<RUN>");
    assert!(!alone.stderr.contains("--output <PATH>\n"), "{}", alone.stderr);
    fail(["evaluate", "--predictions", &file], USAGE, "--output <PATH>");
    let mut onto = arguments;
    let place = onto.iter().position(|word| word == "--output").unwrap();
    onto[place + 1] = file;
    fail(&onto, CONFIG, "is a file, expected a folder or a name ending in .html");
}
