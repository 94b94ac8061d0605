//! Generated visit histories, written as tables in every spelling, against a rule written independently of the adapter.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fmt::Write as _;

use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::super::AdniConfig;
use super::options::lines;

fn day(days: i64) -> Date {
    date(2005, 1, 1).saturating_add(jiff::SignedDuration::from_hours(24 * days))
}

/// One of the documented forms.
fn written(days: i64, form: u8) -> String {
    let day = day(days);
    match form % 3 {
        0 => day.to_string(),
        1 => format!("{}/{}/{}", day.month(), day.day(), day.year()),
        _ => day.to_string().replace('-', "/"),
    }
}

/// A scan: day, modality 0 = PET, listed again without its letter, form of the date.
type ScanRow = (i64, u8, bool, u8);
/// An exam: day, finding 0 = none to 3 = dementia, phase, form of the date.
type ExamRow = (i64, u8, u8, u8);

fn people() -> impl Strategy<Value = Vec<(Vec<ScanRow>, Vec<ExamRow>)>> {
    let day = || prop_oneof![0..4000_i64, (0..40_i64).prop_map(|step| step * 91)];
    let scans = prop::collection::vec((day(), 0..6_u8, prop::bool::weighted(0.2), any::<u8>()), 1..7);
    let exams = prop::collection::vec((day(), 0..4_u8, 0..3_u8, any::<u8>()), 0..6);
    prop::collection::vec((scans, exams), 1..6)
}

/// `DXCHANGE, DXCURREN, DIAGNOSIS` of a finding in the manner of a phase.
fn codes(found: u8, phase: u8, spelling: u8) -> [String; 3] {
    let missing = ["", "-4", "-1", "NA", "?"][usize::from(spelling) % 5].to_owned();
    let change = [["", "", ""], ["1", "7", "9"], ["2", "4", "8"], ["3", "5", "6"]][usize::from(found)];
    let change = change[usize::from(spelling) % 3].to_owned();
    let code = if found == 0 { missing.clone() } else { found.to_string() };
    match phase {
        0 => [missing.clone(), code, missing],
        1 => [if found == 0 { missing.clone() } else { change }, missing.clone(), missing],
        _ => [missing, String::new(), code],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_in_every_spelling_get_the_labels_of_the_rule(
        people in people(), with_ptid: bool, crlf: bool, reverse_exams: bool,
    ) {
        let mut list = "Acq Date,Modality,Subject,Image Data ID\n".to_owned();
        let mut exam_rows = Vec::new();
        let mut expected = Vec::new();
        let mut n_images = 0;
        for (subject, (scans, exams)) in people.iter().enumerate() {
            let name = format!("9{subject:02}_S_{:04}", 41 * subject + 9990);
            let is_mri = |scan: &ScanRow| scan.1 > 0;
            let last = scans.iter().filter(|scan| is_mri(scan)).map(|scan| scan.0).max();
            let event = exams.iter().filter(|exam| exam.1 == 3).map(|exam| exam.0).min();
            for (position, scan) in scans.iter().enumerate() {
                n_images += 1;
                let modality = if is_mri(scan) { "MRI" } else { "PET" };
                let taken = written(scan.0, scan.3);
                writeln!(list, "{taken},{modality},{name},I{n_images}").unwrap();
                let is_repeat = scans[..position].iter().any(|other| is_mri(other) && other.0 == scan.0);
                let end = event.or(last).unwrap_or_default();
                let half_years = ((end - scan.0) as f64 / 182.625 + 0.5).floor();
                let fate = if !is_mri(scan) {
                    "not_mri".to_owned()
                } else if is_repeat {
                    "repeat_scan_same_visit".to_owned()
                } else if exams.iter().all(|exam| exam.1 == 0) {
                    "no_diagnosis".to_owned()
                } else if half_years >= 1.0 {
                    format!("{half_years} {}", u8::from(event.is_some()))
                } else {
                    (if event.is_some() { "at_or_after_event" } else { "final_visit" }).to_owned()
                };
                expected.push(format!("I{n_images} {fate}"));
                if scan.2 {
                    writeln!(list, "{taken},{modality},{name},{n_images}").unwrap();
                    let again = if is_mri(scan) { "duplicate_image_id" } else { "not_mri" };
                    expected.push(format!("I{n_images} {again}"));
                }
            }
            for &(days, found, phase, form) in exams {
                let [change, current, state] = codes(found, phase, form);
                let who = if with_ptid { name.clone() } else { (41 * subject + 9990).to_string() };
                exam_rows.push(format!("{who},{},{change},{current},{state}\n", written(days, form)));
            }
        }
        // A person without images, who is in the table too.
        exam_rows.push(format!("{},2006-01-01,,3,\n", if with_ptid { "999_S_0001" } else { "1" }));
        if reverse_exams {
            exam_rows.reverse();
        }
        let who = if with_ptid { "PTID" } else { "RID" };
        let dxsum = format!("{who},EXAMDATE,DXCHANGE,DXCURREN,DIAGNOSIS\n{}", exam_rows.concat());
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("list.csv", list), ("DXSUM.csv", dxsum)] {
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found = lines(&AdniConfig::new(folder.path()));
        prop_assert_eq!(found.len(), expected.len(), "rows read = kept + excluded");
        prop_assert_eq!(found, expected);
    }
}
