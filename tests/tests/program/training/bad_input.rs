//! Bad input: one clear sentence that names file, row or key and what was expected, the documented exit code, and
//! nothing half-written.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_tests::{SmallRun, fail, files, generic_data, generic_table, report, succeed};

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// Trains on a table of 40 rows that `cell` may change, and requires the given failure.
fn table_fails(cell: impl Fn(usize, &str) -> Option<String>, sentence: &str) {
    let folder = tempfile::tempdir().unwrap();
    let table = generic_table(&folder.path().join("data"), 40, cell);
    let run = SmallRun::with_data(folder.path(), &generic_data(&table));
    fail(run.arguments("train"), DATA, sentence);
    assert_eq!(files(&run.output()), [".lock", "run.toml"], "only the run file is left");
}

fn in_row(row: usize, column: &str, text: &str) -> impl Fn(usize, &str) -> Option<String> {
    move |r, c| (r == row && c == column).then(|| text.to_owned())
}

#[test]
fn a_missing_column_is_named_with_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    let table = generic_table(&folder.path().join("data"), 10, |_, _| None);
    let data = generic_data(&table) + "subject = \"subject\"\n";
    let run = SmallRun::with_data(folder.path(), &data);
    fail(run.arguments("train"), DATA, "column \"subject\" is not in ");
    let outcome = fail(run.arguments("train"), DATA, "subject_id");
    assert!(outcome.stderr.contains("table.csv"), "{}", outcome.stderr);
}

#[test]
fn an_unparsable_number_is_named() {
    table_fails(in_row(6, "time", "soon"), "time of sample \"6.png\" is soon, expected a finite number > 0");
}

#[test]
fn negative_and_zero_times_are_named() {
    table_fails(in_row(0, "time", "-3"), "time of sample \"0.png\" is -3, expected a finite number > 0");
    table_fails(in_row(39, "time", "0"), "time of sample \"39.png\" is 0, expected a finite number > 0");
}

#[test]
fn the_row_is_counted_as_a_spreadsheet_does() {
    table_fails(in_row(0, "time", "-3"), "table.csv, row 2)");
}

#[test]
fn an_event_other_than_0_and_1_is_named() {
    table_fails(in_row(3, "event", "2"), "event of sample \"3.png\" is 2, expected 1 (observed) or 0 (censored)");
}

#[test]
fn a_duplicate_sample_is_named() {
    table_fails(in_row(5, "image", "4.png"), "sample \"4.png\" appears twice");
}

#[test]
fn a_validation_part_without_an_event_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let table = generic_table(&folder.path().join("data"), 40, |row, column| {
        // Only the events of the training part are kept; the split is that of seed 1.
        (column == "event" && !is_train(row)).then(|| "0".to_owned())
    });
    let run = SmallRun::with_data(folder.path(), &generic_data(&table));
    let sentence = "the validation part has no observed event (samples: 8), expected at least one";
    fail(run.arguments("train"), DATA, sentence);
    assert!(!run.output().join("steps.jsonl").exists());
    assert!(!run.output().join("predictions.parquet").exists());
}

/// Whether subject `p<row>` of 40 is in the training part under seed 1.
fn is_train(row: usize) -> bool {
    use fairtte_data::{Cohort, Part, Sample, SplitConfig, split_by_subject};
    let sample = |row: usize| Sample {
        sample_id: format!("{row}.png").into(),
        subject_id: format!("p{row}").into(),
        unit: None,
        image: std::path::PathBuf::new(),
        time: 1.0,
        event: true,
        competing: None,
        source_row: row,
    };
    let cohort = Cohort {
        name: String::new(),
        time_unit: String::new(),
        source: std::path::PathBuf::new(),
        samples: (0..40).map(sample).collect(),
        attributes: Vec::new(),
        provenance: None,
        cause: None,
    };
    split_by_subject(&cohort, &SplitConfig::default(), 1).unwrap().rows(Part::Train).contains(&row)
}

#[test]
fn a_training_part_without_an_event_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let all_censored = |_: usize, column: &str| (column == "event").then(|| "0".to_owned());
    let table = generic_table(&folder.path().join("data"), 40, all_censored);
    let run = SmallRun::with_data(folder.path(), &generic_data(&table));
    let sentence = "the training part has no observed event (samples: 24), expected at least one";
    fail(run.arguments("train"), DATA, sentence);
}

#[test]
fn undecodable_images_are_named_exclusions_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let table = generic_table(&data, 60, |_, _| None);
    std::fs::remove_file(data.join("0.png")).unwrap();
    std::fs::write(data.join("1.png"), b"").unwrap();
    std::fs::write(data.join("2.png"), "time,event\n1,0\n").unwrap();
    let whole = std::fs::read(data.join("3.png")).unwrap();
    std::fs::write(data.join("3.png"), &whole[..whole.len() / 2]).unwrap();
    let run = SmallRun::with_data(folder.path(), &generic_data(&table));
    let outcome = succeed(run.arguments("train"));
    assert!(outcome.stdout.contains("with a readable image  (-4: "), "{}", outcome.stdout);
    let exclusions = std::fs::read_to_string(run.output().join("exclusions.csv")).unwrap();
    let reasons: Vec<&str> = exclusions.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(reasons, ["image_missing", "image_empty", "image_unreadable", "image_unreadable"]);
    let page = std::fs::read_to_string(run.output().join("report.html")).unwrap();
    assert!(page.contains("image_unreadable") || page.contains("image unreadable"), "the report shows the exclusions");
}

/// A `NIfTI`-1 file of 32-bit floats with these extents, without compression.
fn nifti(extents: &[i16]) -> Vec<u8> {
    let mut bytes = vec![0_u8; 352];
    bytes[..4].copy_from_slice(&348_i32.to_le_bytes());
    let mut put = |at: usize, value: i16| bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    put(40, i16::try_from(extents.len()).unwrap());
    (1..8).for_each(|axis| put(40 + 2 * axis, extents.get(axis - 1).copied().unwrap_or(1)));
    put(70, 16); // float32
    put(72, 32);
    (76..108).step_by(4).for_each(|at| bytes[at..at + 4].copy_from_slice(&1_f32.to_le_bytes()));
    bytes[108..112].copy_from_slice(&352_f32.to_le_bytes());
    bytes[344..348].copy_from_slice(b"n+1\0");
    let n: usize = extents.iter().map(|extent| usize::try_from(*extent).unwrap()).product();
    bytes.extend((0..n).flat_map(|i| ((i % 17) as f32).to_le_bytes()));
    bytes
}

#[test]
fn a_4d_nifti_is_a_named_exclusion() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let volume = |row: usize, column: &str| (column == "image").then(|| format!("{row}.nii"));
    let table = generic_table(&data, 30, volume);
    for row in 0..30 {
        let extents: &[i16] = if row == 7 { &[12, 12, 12, 5] } else { &[12, 12, 12] };
        std::fs::write(data.join(format!("{row}.nii")), nifti(extents)).unwrap();
    }
    let run = SmallRun::with_data(folder.path(), &generic_data(&table))
        .set("image.size=[12, 12, 12]")
        .set("model.backbone=small-3d");
    succeed(run.arguments("prepare"));
    let exclusions = std::fs::read_to_string(run.output().join("exclusions.csv")).unwrap();
    let rows: Vec<&str> = exclusions.lines().skip(1).collect();
    assert_eq!(rows.len(), 1, "{exclusions}");
    assert!(rows[0].starts_with("7.nii,image_wrong_dimensions,"), "{exclusions}");
}

#[test]
fn an_all_censored_group_and_a_group_of_one_stay_visible_with_their_reason() {
    let folder = tempfile::tempdir().unwrap();
    let cell = |row: usize, column: &str| match column {
        "sex" if row == 0 => Some("X".to_owned()),
        "event" if (row / 2).is_multiple_of(2) => Some("0".to_owned()), // all F are censored
        "event" => Some("1".to_owned()),
        _ => None,
    };
    let table = generic_table(&folder.path().join("data"), 80, cell);
    let run = SmallRun::with_data(folder.path(), &generic_data(&table)).set("attribute.0.levels=[\"F\", \"M\", \"X\"]");
    let report = run.train();
    let metric = report.metric("c_td_antolini_strict").unwrap();
    let group = |level: &str| {
        let groups = &metric.attributes[0].groups;
        groups.iter().find(|group| group.level == level).unwrap().estimate.clone()
    };
    assert!(group("M").value.is_some());
    for level in ["F", "X"] {
        let estimate = group(level);
        assert_eq!((estimate.value, estimate.undefined.is_some()), (None, true), "{level}: {estimate:?}");
    }
    assert!(metric.attributes[0].gap.value.is_none(), "one group has no gap");
    assert!(metric.attributes[0].gap.undefined.is_some());
}

#[test]
fn a_subject_in_two_parts_of_a_split_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    run.train();
    let output = run.output();
    let split = output.join("split.csv");
    let text = std::fs::read_to_string(&split).unwrap();
    let first = text.lines().nth(1).unwrap();
    let (subject, part) = first.split_once(',').unwrap();
    let other = if part == "train" { "test" } else { "train" };
    std::fs::write(&split, format!("{text}{subject},{other}\n")).unwrap();
    let evaluate = ["evaluate".to_owned(), output.display().to_string()];
    let sentence = format!("subject \"{subject}\" is in the {other} part and in the {part} part, expected one part");
    fail(evaluate, DATA, &sentence);
}

#[test]
fn a_misspelt_key_names_the_nearest_valid_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("training.epochss=3");
    let outcome = fail(run.arguments("train"), CONFIG, "training.epochss: unknown field \"epochss\"");
    assert!(outcome.stderr.contains("did you mean \"epochs\"?"), "{}", outcome.stderr);
    assert!(!run.output().exists());
    let run = SmallRun::new(folder.path()).set("strategy.group-droo.eta=0.1");
    let outcome = fail(run.arguments("train"), CONFIG, "unknown variant \"group-droo\"");
    assert!(outcome.stderr.contains("did you mean \"group-dro\"?"), "{}", outcome.stderr);
}

#[test]
fn a_misspelt_key_in_a_file_is_found_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    let file = folder.path().join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("epochs = 2", "epoch = 2");
    std::fs::write(&file, &text).unwrap();
    let line = text.lines().position(|line| line == "epoch = 2").unwrap() + 1;
    let outcome = fail(run.arguments("train"), CONFIG, &format!("run.toml, line {line})"));
    assert!(outcome.stderr.contains("did you mean \"epochs\"?"), "{}", outcome.stderr);
}

#[test]
fn values_outside_their_range_name_the_key() {
    let folder = tempfile::tempdir().unwrap();
    for (set, sentence) in [
        ("training.batch-size=1", "training.batch-size is 1, expected at least 2"),
        ("optimiser.learning-rate=-1", "optimiser.learning-rate is -1, expected a finite number > 0"),
        ("model.dropout=1.5", "model.dropout is 1.5, expected a number in [0, 1)"),
        ("strategy.group-dro.eta=0", "strategy.group-dro.eta is 0, expected a finite number > 0"),
        (
            "strategy.dro-chi-square.alpha=0.1",
            "strategy.dro-chi-square.alpha is 0.1, expected an alpha with 2 (1/alpha",
        ),
        ("head.deephit.alpha=2", "head.deephit.alpha is 2, expected a number in [0, 1]"),
        ("time.intervals=1", "time.intervals is 1, expected 2 to 10000 cut points"),
        ("image.size=[8, 8, 8]", "has 3 axes, but backbone small-2d reads 2"),
        ("device=tpu", "device \"tpu\" is unknown, expected flex"),
        ("training.epochs=few", "training.epochs: invalid type: string \"few\""),
    ] {
        let run = SmallRun::new(&folder.path().join(set.split('=').next().unwrap())).set(set);
        fail(run.arguments("train"), CONFIG, sentence);
    }
}

#[test]
fn an_attribute_that_is_no_column_names_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("attribute.0.name=sexx");
    let outcome = fail(run.arguments("train"), CONFIG, "attribute \"sexx\" is not among the columns");
    assert!(outcome.stderr.contains("sex"), "{}", outcome.stderr);
}

#[test]
fn wrong_arguments_end_with_code_2() {
    fail(["train"], 2, "--config <FILE>");
    fail(["trian"], 2, "unrecognized subcommand 'trian'");
}

#[test]
fn a_run_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // A file where a folder is needed fails for every user, also for root, who may write anywhere.
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "a file").unwrap();
    let run = SmallRun::new(folder.path()).set(&format!("output={:?}", blocked.join("run").display().to_string()));
    fail(run.arguments("train"), DATA, &format!("cannot write {}", blocked.join("run").join(".lock").display()));
}

/// Files of at most `kib` kilobytes can be written: the same failure as a disk that fills up in the middle of a file.
#[cfg(target_os = "linux")]
fn with_small_files(run: &SmallRun, kib: usize) -> fairtte_tests::Outcome {
    let script = format!("ulimit -f {kib}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("bash");
    command.arg("-c").arg(script).arg(fairtte_tests::binary()).args(run.arguments("train"));
    command.output().unwrap().into()
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_up_leaves_nothing_half_written_and_the_run_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    // The decoded pictures (120 KB) do not fit in 64 KB; the weights of a checkpoint (about 280 KB) not in 200.
    for kib in [64, 200] {
        let outcome = with_small_files(&run, kib);
        assert_eq!(outcome.code, DATA, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("cannot write"), "{}", outcome.stderr);
        let found = files(folder.path());
        assert!(found.iter().all(|file| !file.contains(".tmp") && !file.ends_with("done")), "{found:?}");
        assert!(!run.output().join("predictions.parquet").exists());
    }
    run.train();
    assert!(run.output().join("done").exists());
}

#[test]
fn a_corrected_run_file_goes_on_in_the_same_folder_while_nothing_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    let wrong = run.clone().set("attribute.0.reference=Z");
    fail(wrong.arguments("train"), CONFIG, "attribute \"sex\"");
    assert!(run.output().join("run.toml").exists());
    run.train();
}

#[test]
fn names_of_groups_are_checked_before_any_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (set, sentence) in [
        (
            "groups.intersections=[[\"sex\", \"agee\"]]",
            "groups.intersections: \"agee\" is not an [[attribute]] of this run",
        ),
        ("groups.intersections=[[\"sex\"]]", "is not an intersection, expected two or more different attributes"),
        ("groups.train=[\"zz\"]", "groups.train: \"zz\" is not an [[attribute]] of this run, expected one of sex"),
    ] {
        let run = SmallRun::new(folder.path()).set(set);
        fail(run.arguments("train"), CONFIG, sentence);
        assert!(!run.output().exists());
    }
}

#[test]
fn another_run_in_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    run.train();
    let before = report(&run.output());
    let other = run.clone().set("training.batch-size=16").set("seed=2");
    let sentence =
        "holds a run with other settings: seed is 1 there and 2 here; training.batch-size is 32 there and 16 here";
    let outcome = fail(other.arguments("train"), CONFIG, sentence);
    assert!(outcome.stderr.contains("choose another --output"), "{}", outcome.stderr);
    let longer = run.clone().set("training.epochs=3");
    let sentence = "holds a run with other settings: training.epochs is 2 there and 3 here";
    let outcome = fail(longer.arguments("train"), CONFIG, sentence);
    assert!(outcome.stderr.contains("give --resume-from"), "{}", outcome.stderr);
    assert_eq!(report(&run.output()), before);
}
