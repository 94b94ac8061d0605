#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
use super::*;
use crate::cohort::Label;

fn table(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn columns_are_mapped_by_name_and_the_rest_are_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "age\tfilm\tpid\tyears\tdied\n61\ta/1.png\t007\t2.5\t1\n\t\"b 2.png\"\t8\t\t0\n";
    let mut config = GenericConfig::new(table(folder.path(), "films.tsv", text));
    config.image = "film".to_owned();
    config.subject = "pid".to_owned();
    config.time = "years".to_owned();
    config.event = "died".to_owned();
    config.time_unit = "years".to_owned();
    let Unlabelled { manifest, rule, .. } = Generic::new(config).read().unwrap();
    assert_eq!(manifest.name, "films");
    assert_eq!(manifest.time_unit, "years");
    assert_eq!(manifest.attribute_names(), ["age"]);
    let [first, second] = manifest.rows.as_slice() else { panic!("two rows") };
    assert_eq!(first.subject_id, Some(SubjectId::from("007")), "leading zeros belong to a name");
    assert_eq!(first.image, Some(folder.path().join("a/1.png")));
    assert_eq!(first.sample_id.as_deref(), Some("a/1.png"));
    assert_eq!(manifest.attributes[0].values, [Some("61".to_owned()), None]);
    assert_eq!((first.source_row, second.source_row), (2, 3));
    assert_eq!(second.sample_id.as_deref(), Some("b 2.png"));
    assert_eq!(rule.label(&manifest, 0).unwrap(), Label::Kept { time: 2.5, event: true });
    let detail = format!("column \"years\" is empty ({}, row 3)", manifest.source.display());
    assert_eq!(rule.label(&manifest, 1).unwrap(), Label::excluded(Reason::MissingTime, detail));
}

#[test]
fn numbers_of_causes_are_labels_and_part_of_the_content_hash() {
    let folder = tempfile::tempdir().unwrap();
    let text = "image,subject_id,time,event\na.png,1,2,0\nb.png,2,3,1\nc.png,3,4,5\nd.png,4,5,8\n";
    let generic = Generic::new(GenericConfig::new(table(folder.path(), "films.csv", text)));
    let outcome = |censored: &[u32]| OutcomeConfig { cause: 1, competing: vec![5], censored: censored.to_vec() };
    let Unlabelled { manifest, rule, provenance } = generic.read_causes(&outcome(&[8])).unwrap();
    let labels: Vec<Label> = (0..4).map(|row| rule.label(&manifest, row).unwrap()).collect();
    let kept = |time: f64, event: bool| Label::Kept { time, event };
    let expected = [kept(2.0, false), kept(3.0, true), Label::Competing { time: 4.0, cause: 5 }, kept(5.0, false)];
    assert_eq!((labels.as_slice(), rule.cause()), (expected.as_slice(), Some(1)));
    assert!(provenance.rule.ends_with(": 0 or 8 (censored), 1 (the event) or 5 (competing)"), "{}", provenance.rule);
    let other = generic.read_causes(&OutcomeConfig { cause: 5, competing: vec![1], ..outcome(&[8]) }).unwrap();
    assert_ne!(other.provenance.content_hash, provenance.content_hash);
    let Unlabelled { manifest, rule, .. } = generic.read_causes(&outcome(&[])).unwrap();
    let said = rule.label(&manifest, 3).unwrap_err().to_string();
    let expected =
        "event of sample \"d.png\" is 8, expected 0 (censored), 1 (the event) or 5 (competing) as in [outcome]";
    assert!(said.starts_with(expected) && said.ends_with("films.csv, row 5)"), "{said}");
    // A data set with one kind of event says so.
    let said = crate::adapters::Simulated::new(crate::simulated::SimulationConfig::default(), 1, folder.path())
        .read_causes(&outcome(&[]));
    let expected = "[data.simulated] knows one kind of event, expected [data.tabular] or [data.generic] with [outcome]";
    assert_eq!(said.err().unwrap().to_string(), expected);
}

#[test]
fn a_missing_column_is_named_with_the_file_and_the_nearest_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "cohort.csv", "image,subject_id,tiem,event\na.png,1,2,0\n");
    let message = Generic::new(GenericConfig::new(&path)).read().err().unwrap().to_string();
    assert_eq!(message, format!("column \"time\" is not in {}, nearest is \"tiem\"", path.display()));
}

#[test]
fn a_misspelt_key_is_refused() {
    let message = toml::from_str::<GenericConfig>("table = 'a.csv'\ntime-unti = 'days'").unwrap_err().to_string();
    assert!(message.contains("time-unti") && message.contains("time-unit"), "{message}");
}

#[test]
fn relative_paths_of_a_run_file_are_relative_to_its_folder() {
    let mut config = GenericConfig::new("cohort.csv");
    config.image_root = Some(PathBuf::from("/absolute"));
    config.resolve_paths(Path::new("/runs"));
    assert_eq!(config.table, Path::new("/runs/cohort.csv"));
    assert_eq!(config.image_root.as_deref(), Some(Path::new("/absolute")));
}

#[test]
fn the_words_for_missing_cells_of_other_programs_are_no_values() {
    let folder = tempfile::tempdir().unwrap();
    let text = "image,subject_id,time,event,sex\na.png,1,2,0,F\nb.png,2,NA,1,NA\nc.png,3,4,1,nan\nNA,4,4,1,unknown\n";
    let mut config = GenericConfig::new(table(folder.path(), "films.csv", text));
    let Unlabelled { manifest, rule, .. } = Generic::new(config.clone()).read().unwrap();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(manifest.attributes[0].values, [some("F"), None, None, some("unknown")]);
    assert_eq!(manifest.rows[3].image, None);
    let detail = format!("column \"time\" is empty ({}, row 3)", manifest.source.display());
    assert_eq!(rule.label(&manifest, 1).unwrap(), Label::excluded(Reason::MissingTime, detail));
    // Other words are named, and replace these.
    config.missing_values = vec!["Unknown".to_owned()];
    let Unlabelled { manifest, .. } = Generic::new(config).read().unwrap();
    assert_eq!(manifest.attributes[0].values, [some("F"), some("NA"), some("nan"), None]);
}
