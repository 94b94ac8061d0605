//! Tables of features from file to matrix: real ones if present beside the repository, and made-up ones.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::adapters::{Tabular, TabularConfig};
use fairtte_data::cohort::Exclusions;
use fairtte_data::features::{FeatureMatrix, TabularFeatures, leak_warnings};
use fairtte_data::features::{FeatureTable, LeakSign, LeakWarning};
use fairtte_data::shift::{ShiftConfig, apply_shift};
use fairtte_data::{
    Adapter as _, AttributeConfig, Cohort, DataConfig, FittedAttributes, Loader, Part, Sampling, Split, SplitConfig,
    build_cohort, split_by_subject,
};
use fairtte_metrics::GroupId;

/// All steps between the file and the model.
struct Loaded {
    cohort: Cohort,
    exclusions: Exclusions,
    split: Split,
    attributes: FittedAttributes,
    table: FeatureTable,
    fitted: TabularFeatures,
    matrix: FeatureMatrix,
    warnings: Vec<LeakWarning>,
}

fn load(tabular: &Tabular, attributes: &[AttributeConfig]) -> Result<Loaded, fairtte_data::DataError> {
    let (cohort, exclusions) = build_cohort(tabular.read()?, attributes)?;
    exclusions.check(cohort.n())?;
    let split = split_by_subject(&cohort, &SplitConfig::default(), 1)?;
    let train = split.rows(Part::Train);
    let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    let attributes = FittedAttributes::fit(attributes, &cohort, train)?;
    let table = tabular.features()?.aligned(&cohort)?;
    let fitted = TabularFeatures::fit(&table, train, &tabular.config().feature_config(), &names)?;
    let matrix = fitted.encode(&table)?;
    assert!(matrix.values().iter().all(|value| value.is_finite()));
    assert_eq!((matrix.n(), matrix.n_features()), (cohort.n(), fitted.n_features()));
    let warnings = leak_warnings(&fitted, &table, &cohort, train)?;
    Ok(Loaded { cohort, exclusions, split, attributes, table, fitted, matrix, warnings })
}

fn load_text(text: &str, settings: &str, attributes: &[AttributeConfig]) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), text).unwrap();
    let data = format!("[tabular]\ntable = 'patients.csv'\n{settings}");
    let mut data: DataConfig = toml::from_str(&data).map_err(|error| error.to_string())?;
    data.resolve_paths(folder.path());
    let loaded = load(&data.tabular().unwrap(), attributes);
    loaded.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

/// Data and attributes of a run file of this repository.
fn run_file(name: &str) -> (Tabular, Vec<AttributeConfig>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let file: toml::Table = toml::from_str(&text).unwrap();
    let mut data: DataConfig = file["data"].clone().try_into().unwrap();
    data.resolve_paths(&folder);
    (data.tabular().unwrap(), file["attribute"].clone().try_into().unwrap())
}

fn group_sizes(loaded: &Loaded) -> Vec<(String, usize)> {
    let all = loaded.attributes.all().iter();
    let sizes = all.flat_map(|groups| {
        groups
            .ids()
            .map(|id| (format!("{} {}", groups.attribute(), groups.levels()[id.index()]), groups.rows(id).len()))
    });
    sizes.collect()
}

#[test]
fn the_run_file_of_support_loads_8873_patients_by_race_and_sex() {
    let (tabular, attributes) = run_file("support.toml");
    if !tabular.config().table.exists() {
        return eprintln!("skipped: {} is not there", tabular.config().table.display());
    }
    let loaded = load(&tabular, &attributes).unwrap();
    assert_eq!((loaded.cohort.n(), loaded.cohort.n_subjects(), loaded.cohort.n_events()), (8873, 8873, 6036));
    assert_eq!(loaded.exclusions.n(), 0);
    let sizes = group_sizes(&loaded);
    let expected = [("race Non-white", 1834), ("race white", 6998), ("sex female", 3878), ("sex male", 4995)];
    assert_eq!(sizes, expected.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(loaded.attributes.ungrouped()[0].n_samples, 41, "patients whose race is not known");
    let names = [
        "age",
        "num_co",
        "diabetes",
        "dementia",
        "cancer=metastatic",
        "cancer=no",
        "cancer=yes",
        "meanbp",
        "hr",
        "rr",
        "temp",
        "sodium",
        "wbc",
        "creatinine",
    ];
    assert_eq!(loaded.matrix.names(), names);
    assert!(loaded.warnings.is_empty() && loaded.matrix.unknown().is_empty(), "{:?}", loaded.warnings);
    let shift =
        "attribute = 'race'\ngroup = 'Non-white'\ntime-noise = { fraction = [-0.2, 0.2] }\ncensoring-flip = 0.9";
    let shift: ShiftConfig = toml::from_str(shift).unwrap();
    let train = loaded.split.rows(Part::Train);
    let (shifted, record) = apply_shift(&loaded.cohort, train, loaded.attributes.all(), &shift, 1).unwrap();
    eprintln!("{record}");
    assert_eq!(loaded.cohort.n_events() - shifted.n_events(), record.n_flipped);
    assert!(record.n_group > 1000 && record.n_times_changed == record.n_group);
}

/// The same on 300 made-up patients with the irregularities of real tables: blanks, mixed case, texts for missing
/// values.
#[test]
fn a_made_up_table_becomes_a_cohort_with_features() {
    let mut text = "time,event,age,sex,race,lab,ward,smoker,visit id\n".to_owned();
    for i in 0..300 {
        let race = ["white", "White", "black", "missing"][i % 4];
        let lab = if i % 10 == 0 { "NA".to_owned() } else { format!("{}", (i * 7 % 31) as f64 / 2.0) };
        let ward = ["A", " b ", "B", "A", "C1"][i % 5];
        let (sex, smoker) = (["F", "M"][i / 2 % 2], ["True", "FALSE"][i / 3 % 2]);
        let time = if i == 17 { String::new() } else { format!("{}.5", (i * 53) % 299) };
        writeln!(text, "{time},{},{},{sex},{race},{lab},{ward},{smoker},v{i}", i32::from(i % 3 == 0), 40 + i % 37)
            .unwrap();
    }
    let race = AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("race") };
    let attributes = [race, AttributeConfig::new("sex")];
    let settings = "features = 'all'\nmissing-values = ['missing', 'na']";
    let loaded = load_text(&text, settings, &attributes).unwrap();
    assert_eq!((loaded.cohort.n(), loaded.cohort.n_subjects(), loaded.cohort.n_events()), (299, 299, 100));
    assert_eq!(loaded.exclusions.summary(), "missing_time 1");
    assert_eq!(loaded.exclusions.list()[0].sample_id.as_str(), "row 19");
    let expected = [("race Non-White", 75), ("race White", 149), ("sex F", 149), ("sex M", 150)];
    assert_eq!(group_sizes(&loaded), expected.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(loaded.attributes.ungrouped()[0].n_samples, 75, "whose race is missing");
    assert_eq!(loaded.matrix.names(), ["age", "lab", "lab:missing", "ward=A", "ward=b", "ward=C1", "smoker"]);
    assert_eq!(loaded.fitted.left_out[0].column, "visit id");
    assert_eq!(loaded.matrix.newly_missing(), []);
    // Every row of the matrix belongs to the sample of its row: age and ward match the cohort.
    for (row, sample) in loaded.cohort.samples.iter().enumerate() {
        let i = sample.source_row - 2;
        let ward = [3, 4, 4, 3, 5][i % 5];
        assert_eq!(loaded.matrix.row(row)[ward].to_bits(), 1.0_f32.to_bits(), "row {row}");
        assert_eq!(loaded.table.columns()[0].cells[row], Some(format!("{}", 40 + i % 37)));
    }
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn batches_of_features_are_about_the_same_samples_as_those_of_images() {
    let mut text = "time,event,x,c\n".to_owned();
    (0..30).for_each(|i| writeln!(text, "{},{},{},{}", i + 1, i % 2, i * i, ["a", "b"][i / 3 % 2]).unwrap());
    let table = load_text(&text, "features = 'all'", &[]).unwrap();
    let groups: Vec<_> = (0..30).map(|row| Some(GroupId(row % 2))).collect();
    let loader = Loader::of_features(&table.matrix, &table.cohort, groups.clone()).unwrap();
    let train = table.split.rows(Part::Train);
    let turned: Vec<usize> = (0..30).map(|row| (row + 1) % 30).collect();
    let other =
        Loader::of_features(&table.matrix, &table.cohort, groups.clone()).unwrap().with_inputs_of(turned).unwrap();
    for batch in other.batches(train, 4, &Sampling::Sequential, 1, 1).unwrap() {
        for (i, &row) in batch.rows.iter().enumerate() {
            assert_eq!(&batch.pixels[i * 3..(i + 1) * 3], table.matrix.row((row + 1) % 30));
            assert_eq!(batch.time[i].to_bits(), table.cohort.samples[row].time.to_bits());
        }
    }
    let epoch = |seed| loader.batches(train, 4, &Sampling::Shuffled, seed, 1).unwrap();
    assert_eq!(epoch(1).collect::<Vec<_>>(), epoch(1).collect::<Vec<_>>());
    assert_ne!(epoch(1).order(), epoch(2).order());
    let mut seen = Vec::new();
    for batch in epoch(1) {
        assert_eq!(batch.shape, [batch.rows.len(), 3], "the number, and two categories");
        for (i, &row) in batch.rows.iter().enumerate() {
            let sample = &table.cohort.samples[row];
            assert_eq!(&batch.pixels[i * 3..(i + 1) * 3], table.matrix.row(row));
            assert_eq!(
                (batch.time[i], batch.event[i], &batch.sample_ids[i]),
                (sample.time, sample.event, &sample.sample_id)
            );
            assert_eq!(batch.groups[i], groups[row]);
            seen.push(row);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, train);
    let too_few = Loader::of_features(&table.matrix, &table.cohort, groups[1..].to_vec()).unwrap_err();
    assert_eq!(too_few.to_string(), "list of groups has length 29, expected 30");
}

#[test]
fn identities_come_from_their_columns_or_from_the_rows() {
    let text = "time,event,x,pid,visit\n1,1,1,p1,a\n2,0,2,p2,b\n3,1,3,p3,c\n4,1,4,p4,d\n5,0,5,p5,e\n";
    let repeated = "time,event,x,pid,visit\n1,1,1,p1,a\n2,0,2,p2,b\n3,1,3,p3,c\n4,1,4,p1,d\n5,0,5,p5,e\n";
    for (text, settings, ids, n_subjects) in [
        (text, "", ["row 2", "row 3"], 5),
        (text, "subject = 'pid'", ["p1", "p2"], 5),
        (text, "subject = 'pid'\nsample = 'visit'", ["a", "b"], 5),
        (repeated, "subject = 'pid'", ["row 2", "row 3"], 4),
        (repeated, "subject = 'pid'\nsample = 'visit'", ["a", "b"], 4),
    ] {
        let split = SplitConfig { train: 0.4, validation: 0.3, test: 0.3, ..SplitConfig::default() };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), text).unwrap();
        let config = format!("table = 't.csv'\nnumeric = ['x']\n{settings}");
        let mut config: TabularConfig = toml::from_str(&config).unwrap();
        config.table = folder.path().join("t.csv");
        let tabular = Tabular::new(config);
        let (cohort, _) = build_cohort(tabular.read().unwrap(), &[]).unwrap();
        assert_eq!(cohort.n_subjects(), n_subjects, "{settings}");
        let found: Vec<&str> = cohort.samples[..2].iter().map(|sample| sample.sample_id.as_str()).collect();
        assert_eq!(found, ids, "{settings}");
        assert!(cohort.samples.iter().all(|sample| sample.image.as_os_str().is_empty()));
        let table = tabular.features().unwrap().aligned(&cohort).unwrap();
        assert_eq!(table.columns().iter().find(|column| column.name == "x").unwrap().cells[4], Some("5".to_owned()));
        assert!(split_by_subject(&cohort, &split, 1).is_ok());
    }
}

#[test]
fn what_is_wrong_with_a_table_is_named() {
    let rows = |cells: &str| {
        let rest = (2..12).map(|i| format!("{i},{},{i},p{i}", i % 2)).collect::<Vec<_>>().join("\n");
        format!("time,event,x,pid\n{cells}\n{rest}\n")
    };
    for (text, settings, expected) in [
        (
            rows("1,1,1,p1"),
            "numeric = ['x', 'time']",
            "column \"time\" of patients.csv: it holds the time and cannot be a feature",
        ),
        (
            rows("1,1,1,p1"),
            "subject = 'pid'\ncategorical = ['pid']",
            "column \"pid\" of patients.csv: it holds the subject and cannot be a feature",
        ),
        (rows("1,1,1,p1"), "event = 'died'\nfeatures = 'all'", "column \"died\" is not in patients.csv"),
        (rows("1,1,1,p1"), "", "features is not given"),
        (rows("1,2,1,p1"), "numeric = ['x']", "event of sample \"row 2\" is 2, expected 1 (observed) or 0 (censored)"),
        (rows("0,1,1,p1"), "numeric = ['x']", "time of sample \"row 2\" is 0, expected a finite number > 0"),
        (
            rows("1,1,one,p1"),
            "numeric = ['x']",
            "x of sample \"row 2\" is \"one\", expected a finite number, because the column is numeric (patients.csv, row 2)",
        ),
        (rows("1,1,1,p3"), "sample = 'pid'\nnumeric = ['x']", "sample \"p3\" appears twice"),
        (rows("1,1,1,p1"), "feature = 'all'", "unknown field `feature`"),
    ] {
        let message = load_text(&text, settings, &[]).err().unwrap();
        assert!(message.contains(expected), "{settings}: {message}");
    }
    let loaded = load_text(&rows("1,1,1,"), "subject = 'pid'\nnumeric = ['x']", &[]).unwrap();
    assert_eq!(loaded.exclusions.summary(), "missing_subject 1");
    let loaded = load_text(&rows("n/a,.,1,p1"), "numeric = ['x']", &[]).unwrap();
    assert_eq!(loaded.exclusions.summary(), "missing_time 1");
}

/// `../shared/data/{folder}` beside the repository, or a message that the test is skipped.
fn tables(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(folder);
    let Ok(entries) = std::fs::read_dir(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return Vec::new();
    };
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    tables.sort();
    tables
}

#[test]
fn every_survival_table_becomes_features() {
    for path in [tables("tabular"), tables("tabular_fairness")].concat() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut config = TabularConfig::new(&path);
        if name.starts_with("hnscc") {
            config.time = "Follow up duration (day)".to_owned();
            config.event = "Overall Survival Censor".to_owned();
            config.subject = Some("TCIA code".to_owned());
        }
        let loaded = load(&Tabular::new(config), &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        eprintln!(
            "{name}: {} samples, {} events, {} features, excluded {}, left out {:?}, unknown {}",
            loaded.cohort.n(),
            loaded.cohort.n_events(),
            loaded.matrix.n_features(),
            loaded.exclusions.n(),
            loaded.fitted.left_out.iter().map(|column| column.column.as_str()).collect::<Vec<_>>(),
            loaded.matrix.unknown().iter().map(|unknown| unknown.n_samples).sum::<usize>(),
        );
        loaded.warnings.iter().for_each(|warning| eprintln!("    {warning}"));
        if name.starts_with("CarpenterFdaData") {
            let sign = loaded.warnings.iter().find(|warning| warning.column == "X_d").map(|warning| &warning.sign);
            assert!(matches!(sign, Some(LeakSign::DeterminesEvent { n_values: 2, .. })), "{:?}", loaded.warnings);
        }
    }
}
