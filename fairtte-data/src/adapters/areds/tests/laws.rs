//! Laws of the label rule on generated histories, against a second rule that compares every pair of rows.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use proptest::prelude::*;

use super::super::images::Listed;
use super::super::people::DirectoryMap;
use super::super::rule::AredsRule;
use super::super::*;
use crate::cohort::{Label, LabelRule as _};

/// One row of a fundus table: person, visit, grades of the right and the left eye.
type GradeRow = (u8, u8, &'static str, &'static str);

/// One picture: person, visit, eye, view, side, ending.
type Picture = (u8, u8, &'static str, &'static str, &'static str, &'static str);

const GRADES: [&str; 8] = ["", "1", "9", "10", "11", "12", "88", "?"];
const SIDES: [&str; 3] = ["LS", "RS", ""];
const ENDINGS: [&str; 3] = ["jpg", "TIF", "dng"];

fn grade_rows() -> impl Strategy<Value = Vec<GradeRow>> {
    let grade = || prop::sample::select(&GRADES[..]);
    prop::collection::vec((0_u8..3, 0_u8..7, grade(), grade()), 0..12)
}

fn pictures() -> impl Strategy<Value = Vec<Picture>> {
    let eye = prop::sample::select(vec!["RE", "LE"]);
    let view = prop::sample::select(vec!["F2", "F2", "F2", "F1", "REF"]);
    let side = prop::sample::select(&SIDES[..]);
    prop::collection::vec((0_u8..4, 0_u8..7, eye, view, side, prop::sample::select(&ENDINGS[..])), 1..24)
}

fn configs() -> impl Strategy<Value = AredsConfig> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(one, literal, dropped, any_field)| {
        let mut config = AredsConfig::new("");
        config.stereo = if one { Stereo::One } else { Stereo::Both };
        config.final_visit = if literal { FinalVisit::Literal } else { FinalVisit::Rule };
        config.eye_never_graded = if dropped { EyeNeverGraded::Dropped } else { EyeNeverGraded::Censored };
        config.last_imaging_visit = if any_field { LastImagingVisit::AnyField } else { LastImagingVisit::Field2 };
        config
    })
}

fn path((person, visit, eye, view, side, ending): Picture) -> String {
    format!("7{person}/{visit:02}/7{person} {visit:02} {view} {eye} {side}.{ending}")
}

/// The outcome of each picture according to the adapter.
fn labels(config: &AredsConfig, grades: &[GradeRow], pictures: &[Picture]) -> Vec<Result<(f64, bool), &'static str>> {
    let rows = grades.iter().map(|(person, visit, right, left)| format!("x\t7{person}\t{visit:02}\t{right}\t{left}\n"));
    let text = format!("dbGaP SubjID\tID2\tVISNO\tAMDSEVRE\tAMDSEVLE\n{}", rows.collect::<String>());
    let table = DbgapTable::parse(Path::new("fundus.txt"), text.as_bytes()).unwrap();
    let grades = Grades::collect(&[table]).unwrap();
    let listed = |(row, picture): (usize, &Picture)| Listed { path: path(*picture), row: row + 1 };
    let listed: Vec<Listed> = pictures.iter().enumerate().map(listed).collect();
    let (rule, _) = AredsRule::new(config, &listed, &DirectoryMap::default(), &grades);
    let row = |entry: &Listed| ManifestRow {
        sample_id: Some(entry.path.clone()),
        subject_id: None,
        unit: None,
        image: None,
        source_row: entry.row,
    };
    let manifest = Manifest {
        name: String::new(),
        source: PathBuf::new(),
        time_unit: String::new(),
        rows: listed.iter().map(row).collect(),
        attributes: Vec::new(),
        roles: Vec::new(),
    };
    let label = |index| match rule.label(&manifest, index).unwrap() {
        Label::Kept { time, event } => Ok((time, event)),
        Label::Competing { .. } => unreachable!("one kind of event"),
        Label::Excluded { reason, .. } => Err(reason.code()),
    };
    (0..listed.len()).map(label).collect()
}

/// Grades of one eye: visit and text.
fn history(grades: &[GradeRow], person: u8, eye: &str) -> Vec<(u8, &'static str)> {
    let of_person = grades.iter().filter(|row| row.0 == person);
    of_person.map(|row| (row.1, if eye == "RE" { row.2 } else { row.3 })).collect()
}

/// The same rule, implemented from the documentation row by row.
fn expected(
    config: &AredsConfig,
    grades: &[GradeRow],
    pictures: &[Picture],
    index: usize,
) -> Result<(f64, bool), &'static str> {
    let picture @ (person, visit, eye, view, side, ending) = pictures[index];
    if pictures[..index].contains(&picture) {
        return Err("duplicate_image_id");
    }
    if view != "F2" {
        return Err("not_field2");
    }
    let of_eye = || pictures.iter().filter(move |other| other.0 == person && other.2 == eye);
    let preference = |side: &str, ending: &str| {
        (SIDES.iter().position(|known| *known == side), ENDINGS.iter().position(|known| *known == ending))
    };
    let same_place = |other: &&Picture| other.1 == visit && other.3 == "F2";
    let same_side = |other: &&Picture| config.stereo == Stereo::One || other.4 == side;
    let mut rivals = of_eye().filter(same_place).filter(same_side);
    if rivals.any(|other| preference(other.4, other.5) < preference(side, ending)) {
        return Err("stereo_or_repeat");
    }
    let history = history(grades, person, eye);
    if !grades.iter().any(|row| row.0 == person) {
        return Err("no_phenotype");
    }
    let is_grade = |text: &str| ["1", "9", "10", "11", "12"].contains(&text);
    if config.eye_never_graded == EyeNeverGraded::Dropped && !history.iter().any(|(_, text)| is_grade(text)) {
        return Err("never_graded");
    }
    let any_field = config.last_imaging_visit == LastImagingVisit::AnyField;
    let last = of_eye().filter(|other| any_field || other.3 == "F2").map(|other| other.1).max().unwrap();
    if config.final_visit == FinalVisit::Literal && visit == last {
        return Err("final_visit");
    }
    let late = history.iter().filter(|(_, text)| ["10", "11", "12"].contains(text)).map(|(at, _)| *at).min();
    let end = late.unwrap_or(last);
    if end > visit {
        return Ok((f64::from(end - visit) / 2.0, late.is_some()));
    }
    Err(if late.is_some() { "at_or_after_event" } else { "final_visit" })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_picture_gets_what_the_documentation_says(config in configs(), grades in grade_rows(), pictures in pictures()) {
        for (index, label) in labels(&config, &grades, &pictures).into_iter().enumerate() {
            let expected = expected(&config, &grades, &pictures, index);
            prop_assert_eq!(label, expected, "{} of {:?} with {:?}", path(pictures[index]), pictures, grades);
        }
    }

    #[test]
    fn shuffling_rows_of_either_table_changes_no_label(
        config in configs(),
        (grades, other_grades) in grade_rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        (pictures, other_pictures) in pictures().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
    ) {
        let sorted = |grades: &[GradeRow], pictures: &[Picture]| {
            let labels = labels(&config, grades, pictures);
            let mut pairs: Vec<_> = pictures.iter().map(|p| path(*p)).zip(labels.iter().map(|l| format!("{l:?}"))).collect();
            pairs.sort();
            pairs
        };
        prop_assert_eq!(sorted(&grades, &pictures), sorted(&other_grades, &other_pictures));
    }

    #[test]
    fn a_kept_photograph_is_of_an_eye_free_of_late_amd_and_its_end_is_on_record(
        config in configs(),
        grades in grade_rows(),
        pictures in pictures(),
    ) {
        for (label, picture) in labels(&config, &grades, &pictures).into_iter().zip(&pictures) {
            let Ok((time, event)) = label else { continue };
            let (person, visit, eye, ..) = *picture;
            prop_assert!(time >= 0.5 && (time * 2.0).fract() == 0.0);
            let end = f64::from(visit) + time * 2.0;
            let history = history(&grades, person, eye);
            let late_at = |at: u8| history.iter().any(|(visit, text)| *visit == at && ["10", "11", "12"].contains(text));
            let at_end = |at: u8| (f64::from(at) - end).abs() < 1e-9;
            prop_assert!((0..=visit).all(|at| !late_at(at)), "late AMD at or before the photograph");
            if event {
                prop_assert!((0..7).any(|at| at_end(at) && late_at(at)), "no late AMD at the event");
                prop_assert!((0..7).all(|at| !late_at(at) || f64::from(at) >= end), "late AMD before the event");
            } else {
                prop_assert!((0..7).all(|at| !late_at(at)), "censored although late AMD was graded");
                let seen = |other: &Picture| other.0 == person && other.2 == eye && at_end(other.1);
                prop_assert!(pictures.iter().any(seen), "censored at a visit without a picture");
            }
        }
    }
}
