//! Laws that hold for any tables.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::*;
use super::{FILES, cohort_of};

/// Tables of a few people with a few images and stays each; dates around two turns of the century.
fn tables() -> impl Strategy<Value = [Vec<String>; 3]> {
    let day = || (2199_i16..2202, 1_i8..13, 1_i8..29);
    let stay = (0_u32..6, day(), prop::option::of(day()), 0_usize..4);
    let images = prop::collection::vec((0_u32..8, 0_u32..6, day()), 1..25);
    let patients = prop::collection::btree_map(0_u32..6, prop::option::of(day()), 0..6);
    (images, patients, prop::collection::vec(stay, 0..12)).prop_map(|(images, patients, stays)| {
        let races = ["WHITE", "ASIAN", "UNKNOWN", ""];
        let iso = |(y, m, d): (i16, i8, i8)| format!("{y}-{m:02}-{d:02}");
        let compact = |(y, m, d): (i16, i8, i8)| format!("{y}{m:02}{d:02}");
        [
            images
                .into_iter()
                .map(|(dicom, subject, day)| format!("{dicom}-{subject},{subject},5,{}", compact(day)))
                .collect(),
            patients
                .into_iter()
                .map(|(subject, dod)| format!("{subject},F,60,2200,{}", dod.map(iso).unwrap_or_default()))
                .collect(),
            stays
                .into_iter()
                .map(|(subject, from, to, race)| {
                    let to = to.map(|to| format!("{} 10:00:00", iso(to))).unwrap_or_default();
                    format!("{subject},{} 08:00:00,{to},{}", iso(from), races[race])
                })
                .collect(),
        ]
    })
}

fn written(tables: &[Vec<String>; 3], order: &dyn Fn(&[String]) -> Vec<String>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let headers = [
        "dicom_id,subject_id,study_id,StudyDate",
        "subject_id,gender,anchor_age,anchor_year,dod",
        "subject_id,admittime,dischtime,race",
    ];
    for ((name, header), rows) in FILES.into_iter().zip(headers).zip(tables) {
        let mut text = format!("{header}\n");
        for row in order(rows) {
            writeln!(text, "{row}").unwrap();
        }
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_row_vanishes_and_every_time_obeys_the_rule(tables in tables(), all in any::<bool>()) {
        let folder = written(&tables, &<[String]>::to_vec);
        let after_discharge = if all { AfterDischarge::All } else { AfterDischarge::CensoredOnly };
        let config = MimicCxrConfig { after_discharge, ..MimicCxrConfig::new(folder.path()) };
        match cohort_of(config) {
            Err(error) => prop_assert!(false, "{}", error),
            Ok((cohort, exclusions)) => {
                prop_assert_eq!(cohort.n() + exclusions.n(), tables[0].len());
                for sample in &cohort.samples {
                    let least = if sample.event { 0.0 } else { 365.0 };
                    prop_assert!(sample.time >= least);
                }
            }
        }
    }

    #[test]
    fn the_order_of_rows_changes_neither_labels_nor_hash(tables in tables()) {
        // Two different lines with one identity cannot both be right; the outcome then depends on which comes first.
        let mut tables = tables;
        tables[0].sort();
        tables[0].dedup_by_key(|line| line.split(',').next().map(str::to_owned));
        let outcome = |folder: &tempfile::TempDir| match cohort_of(MimicCxrConfig::new(folder.path())) {
            Ok((cohort, exclusions)) => {
                let hash = cohort.provenance.clone().map(|provenance| provenance.content_hash);
                let mut lines: Vec<String> = cohort
                    .samples
                    .iter()
                    .enumerate()
                    .map(|(row, s)| {
                        let race = &cohort.attributes[2];
                        format!("{} {} {} {:?} {:?}", s.sample_id, s.time, s.event, race.values[row], race.coded.as_ref().unwrap()[row])
                    })
                    .chain(exclusions.list().iter().map(|e| format!("{} {}", e.sample_id, e.reason)))
                    .collect();
                lines.sort();
                (lines, hash)
            }
            Err(error) => (vec![error.to_string().split(" left ").next().unwrap().to_owned()], None),
        };
        let forward = outcome(&written(&tables, &<[String]>::to_vec));
        let backward = outcome(&written(&tables, &|rows| rows.iter().rev().cloned().collect()));
        prop_assert_eq!(forward, backward);
    }
}
