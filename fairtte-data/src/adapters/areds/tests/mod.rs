//! The adapter on the made-up tables of `tests/fixtures/areds` (and of `../shared/fixtures`, if that folder exists),
//! and on small variations of them.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![expect(clippy::print_stdout, reason = "a test that skips says so")]

mod files;
mod laws;
mod second;

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::cohort::Exclusions;
use crate::{Cohort, FittedAttributes, build_cohort};

/// Outcome of one photograph: time and event with age and the groups by age, sex and race, or the reason code.
type Outcome = Result<(f64, bool, Option<f64>, [Option<u32>; 3]), String>;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/areds")
}

/// A copy of the tables without the answers, to be changed by a test.
fn copy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "txt") {
            fs::write(folder.path().join(path.file_name().unwrap()), fs::read(&path).unwrap()).unwrap();
        }
    }
    folder
}

const FUNDUS_1: &str = "phs000001.v3.pht000375.v2.p1.c1.fundus.EDO.txt";
const FUNDUS_2: &str = "phs000001.v3.pht000375.v2.p1.c2.fundus.GRU.txt";
const ENROLMENT_1: &str = "phs000001.v3.pht000373.v2.p1.c1.enrollment_randomization.EDO.txt";
const ENROLMENT_2: &str = "phs000001.v3.pht000373.v2.p1.c2.enrollment_randomization.GRU.txt";
const MAP: &str = "AREDS_Image_Mapping_ImageDir_ID2.txt";
const LIST: &str = "areds_images.txt";

fn built(config: &AredsConfig) -> (Cohort, Exclusions) {
    let adapter = Areds::new(config.clone());
    build_cohort(adapter.read().unwrap(), &adapter.default_attributes()).unwrap()
}

fn message(config: &AredsConfig) -> String {
    let Err(error) = Areds::new(config.clone()).read() else { panic!("expected an error") };
    error.to_string()
}

fn notes(config: &AredsConfig) -> Vec<String> {
    Areds::new(config.clone()).read().unwrap().provenance.notes
}

/// The outcome of every path; checks that every path has exactly one.
fn outcomes(config: &AredsConfig) -> BTreeMap<String, Outcome> {
    let (cohort, exclusions) = built(config);
    exclusions.check(cohort.n()).unwrap();
    let attributes = Areds::new(config.clone()).default_attributes();
    let groups = FittedAttributes::fit(&attributes, &cohort, &cohort.all_rows()).unwrap();
    let mut outcomes = BTreeMap::new();
    for (row, sample) in cohort.samples.iter().enumerate() {
        let group = |attribute: usize| groups.all()[attribute].membership()[row].map(|group| group.0);
        let age = cohort.attributes[0].values[row].as_ref().map(|age| age.parse().unwrap());
        let outcome = Ok((sample.time, sample.event, age, [group(0), group(1), group(2)]));
        assert_eq!(outcomes.insert(sample.sample_id.to_string(), outcome), None);
    }
    for exclusion in exclusions.list() {
        let outcome = Err(exclusion.reason.code().to_owned());
        assert_eq!(outcomes.insert(exclusion.sample_id.to_string(), outcome), None);
    }
    outcomes
}

/// The answers of `expected_areds.csv` in `folder`, under `stereo = "one"`, with the eye of every path.
fn expected(folder: &Path) -> (BTreeMap<String, Outcome>, BTreeMap<String, String>) {
    let text = fs::read_to_string(folder.join("expected_areds.csv")).unwrap();
    let mut outcomes = BTreeMap::new();
    let mut units = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [path, unit, _, keep, reason, time, event, age, age_group, sex, white] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let group = |text: &str| text.parse::<u32>().ok();
        let groups = [group(age_group), group(sex), group(white)];
        let outcome = match keep {
            "1" => Ok((time.parse().unwrap(), event == "1", age.parse().ok(), groups)),
            _ => Err(reason.to_owned()),
        };
        outcomes.insert(path.to_owned(), outcome);
        units.insert(path.to_owned(), unit.to_owned());
    }
    assert!(outcomes.len() > 20, "{} rows", outcomes.len());
    (outcomes, units)
}

/// The paths whose outcome differs from `expected`, with their outcome.
fn different(config: &AredsConfig, expected: &BTreeMap<String, Outcome>) -> BTreeMap<String, Outcome> {
    let found = outcomes(config);
    assert_eq!(found.len(), expected.len());
    found.into_iter().filter(|(path, outcome)| expected[path] != *outcome).collect()
}

fn one(root: &Path) -> AredsConfig {
    AredsConfig { stereo: Stereo::One, ..AredsConfig::new(root) }
}

fn excluded(paths: &[&str], reason: &str) -> BTreeMap<String, Outcome> {
    paths.iter().map(|path| ((*path).to_owned(), Err(reason.to_owned()))).collect()
}

#[test]
fn every_photograph_of_the_fixtures_gets_its_label_or_reason_under_every_option() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures");
    let mut folders = vec![fixtures()];
    if shared.is_dir() {
        folders.push(shared);
    } else {
        println!("{} is not there: only the copy in the crate was tested", shared.display());
    }
    for folder in folders {
        let (expected, units) = expected(&folder);
        let base = one(&folder);
        assert_eq!(different(&base, &expected), BTreeMap::new());
        let both = AredsConfig { stereo: Stereo::Both, ..base.clone() };
        let right_side = "59011/00/59011 00 F2 RE RS.jpg";
        let kept = Ok((5.0, false, Some(68.0), [Some(0), Some(0), Some(1)]));
        assert_eq!(different(&both, &expected), BTreeMap::from([(right_side.to_owned(), kept)]));
        let literal = AredsConfig { final_visit: FinalVisit::Literal, ..base.clone() };
        let last = [
            "59011/10/59011 10 F2 LE LS.jpg",
            "59012/00/59012 00 F2 LE LS.jpg",
            "59013/10/59013 10 F2 RE LS.jpg",
            "59016/06/59016 06 F2 RE LS.jpg",
            "9007/9007_26_F2_LE_LS.jpg",
        ];
        assert_eq!(different(&literal, &expected), excluded(&last, "final_visit"));
        for same in [
            AredsConfig { eye_never_graded: EyeNeverGraded::Dropped, ..base.clone() },
            AredsConfig { last_imaging_visit: LastImagingVisit::AnyField, ..base.clone() },
        ] {
            assert_eq!(different(&same, &expected), BTreeMap::new(), "nothing in these tables depends on it");
        }
        for row in Areds::new(base).read().unwrap().manifest.rows {
            assert_eq!(row.unit.as_ref(), units.get(&row.sample_id.clone().unwrap()));
            assert_eq!(row.subject_id.unwrap().as_str(), row.unit.unwrap().split('-').next().unwrap());
        }
    }
}

/// Adds lines to a file of a copy.
fn append(folder: &TempDir, file: &str, lines: &str) {
    let path = folder.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text + lines).unwrap();
}

#[test]
fn an_eye_that_is_never_graded_is_censored_or_dropped() {
    let folder = copy();
    append(&folder, FUNDUS_2, "8\t9008\t00\t\t1\n8\t9008\t10\t88\t1\n");
    append(&folder, LIST, "9008 00 F2 RE LS.jpg\n9008 04 F2 RE LS.jpg\n9008 04 F2 LE LS.jpg\n");
    let mut config = AredsConfig::new(folder.path());
    let found = outcomes(&config);
    assert_eq!(found["9008 00 F2 RE LS.jpg"], Ok((2.0, false, None, [None; 3])), "no enrolment row: no attributes");
    assert_eq!(found["9008 04 F2 RE LS.jpg"], Err("final_visit".to_owned()));
    config.eye_never_graded = EyeNeverGraded::Dropped;
    let never = ["9008 00 F2 RE LS.jpg", "9008 04 F2 RE LS.jpg"];
    assert_eq!(different(&config, &found), excluded(&never, "never_graded"));
}

#[test]
fn the_last_imaging_visit_may_be_that_of_any_picture_of_the_eye() {
    let folder = copy();
    append(
        &folder,
        LIST,
        "59014/06/59014 06 F1 RE LS.jpg\n59014/08/59014 08 REF RE.tif\n59012/06/59012 06 F3 LE RS.jpg\n",
    );
    let mut config = AredsConfig::new(folder.path());
    let found = outcomes(&config);
    assert_eq!(found["59014/00/59014 00 F2 RE LS.jpg"], Err("final_visit".to_owned()));
    config.last_imaging_visit = LastImagingVisit::AnyField;
    let kept = Ok((4.0, false, Some(60.0), [Some(0), Some(1), Some(1)]));
    let expected = BTreeMap::from([("59014/00/59014 00 F2 RE LS.jpg".to_owned(), kept)]);
    assert_eq!(different(&config, &found), expected, "the third picture is of the other eye");
}

#[test]
fn an_event_after_the_last_photograph_counts_unless_the_final_visit_goes_literally() {
    let folder = copy();
    append(&folder, FUNDUS_1, "4\t9004\t09\t12\t2\n");
    let mut config = AredsConfig::new(folder.path());
    let path = "59014/00/59014 00 F2 RE LS.jpg";
    assert_eq!(outcomes(&config)[path], Ok((4.5, true, Some(60.0), [Some(0), Some(1), Some(1)])));
    config.final_visit = FinalVisit::Literal;
    assert_eq!(outcomes(&config)[path], Err("final_visit".to_owned()));
}

#[test]
fn of_repeats_the_preferred_side_and_file_type_stay_whatever_the_order() {
    let lines = [
        "59011/00/59011 00 F2 RE LS.dng",
        "59011/00/59011 00 F2 RE LS.tif",
        "59011/00/59011 00 F2 RE LS 2.JPG",
        "9001/9001_00_RE_F2_LS.jpeg",
        "59011/00/59011 00 F2 RE.jpg",
    ];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let folder = copy();
        let list = fs::read_to_string(folder.path().join(LIST)).unwrap();
        let added = order.map(|line| lines[line]).join("\n");
        fs::write(folder.path().join(LIST), added + "\n" + &list).unwrap();
        let left = "59011/00/59011 00 F2 RE LS.jpg";
        let found = outcomes(&one(folder.path()));
        for path in lines.iter().chain(&["59011/00/59011 00 F2 RE RS.jpg"]) {
            assert_eq!(found[*path], Err("stereo_or_repeat".to_owned()), "{path}");
        }
        assert!(found[left].is_ok());
        let found = outcomes(&AredsConfig::new(folder.path()));
        let kept: Vec<_> =
            found.iter().filter(|(path, outcome)| path.contains(" 00 F2 RE") && outcome.is_ok()).collect();
        let kept: Vec<_> =
            kept.iter().map(|(path, _)| path.as_str()).filter(|path| path.starts_with("59011")).collect();
        let unstated = "59011/00/59011 00 F2 RE.jpg";
        assert_eq!(kept, [left, "59011/00/59011 00 F2 RE RS.jpg", unstated], "one of each side");
    }
}

#[test]
fn a_path_listed_twice_and_names_that_cannot_be_read_are_exclusions_with_their_row() {
    let folder = copy();
    append(
        &folder,
        LIST,
        "notes\n59011/00/59011 00 F2 RE LS.jpg\n59011/00/._59011 00 F2 RE LS.jpg\n59011/xx F2 RE.jpg\n",
    );
    let (cohort, exclusions) = built(&AredsConfig::new(folder.path()));
    let place = |row| format!("({}, row {row})", folder.path().join(LIST).display());
    let details: Vec<_> = exclusions.list().iter().rev().take(4).map(|e| (e.reason.code(), e.source.clone())).collect();
    let hidden = "the file name starts with a dot, expected the name of a photograph";
    let expected = [
        ("unreadable_name", format!("the file name does not start with a word that holds a digit {}", place(33))),
        ("unreadable_name", format!("{hidden} {}", place(32))),
        ("duplicate_image_id", format!("the path is also in row 1 {}", place(31))),
        (
            "unreadable_name",
            format!("the file name does not end in .jpg, .jpeg, .png, .tif, .tiff, .bmp or .dng {}", place(30)),
        ),
    ];
    assert_eq!(details, expected);
    assert_eq!(cohort.n() + exclusions.n(), 33);
    assert!(cohort.samples.iter().any(|sample| sample.sample_id.as_str() == "59011/00/59011 00 F2 RE LS.jpg"));
}

#[test]
fn every_exclusion_says_what_decided_it() {
    let (_, exclusions) = built(&one(&fixtures()));
    let source = |path: &str| {
        let exclusion = exclusions.list().iter().find(|exclusion| exclusion.sample_id.as_str() == path).unwrap();
        exclusion.source.clone()
    };
    for (path, expected) in [
        ("59011/00/59011 00 F1 LE LS.jpg", "the file name says F1, only F2 shows the macula"),
        ("59016/06/59016 06 REF RE.jpg", "the file name says REF, only F2 shows the macula"),
        ("59011/00/59011 00 F2 RE RS.jpg", "\"59011/00/59011 00 F2 RE LS.jpg\" is kept of this eye and visit"),
        ("59999/00/59999 00 F2 RE LS.jpg", "no row of the fundus tables is about the person of eye 59999-RE"),
        ("59013/10/59013 10 F2 LE LS.jpg", "visit 10 is the last imaging visit of eye 9003-LE"),
        (
            "59016/06/59016 06 F2 RE LS.jpg",
            "late AMD of eye 9006-RE was graded at visit 04, the photograph is of visit 06",
        ),
    ] {
        assert_eq!(source(path), expected);
    }
}

#[test]
fn without_outcomes_other_fields_and_repeats_are_left_out_and_every_visit_is_kept() {
    let read = Areds::new(one(&fixtures())).read_without_outcomes().unwrap();
    let reasons = read.provenance.reasons.clone();
    let (cohort, exclusions) = build_cohort(read, &[]).unwrap();
    // The 13 with an outcome, 7 at or after the event, 5 of the last visit and 1 of a person without a row.
    assert_eq!((cohort.n(), exclusions.summary().as_str()), (26, "not_field2 2, stereo_or_repeat 1"));
    assert_eq!(reasons, REASONS[..4]);
    assert!(cohort.samples.iter().all(|sample| sample.time == 0.0 && !sample.event));
}
