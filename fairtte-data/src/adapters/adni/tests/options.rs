//! Every option on a small made-up table set, with manually derived labels.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::Path;

use super::super::*;
use super::fixtures::{cohort, fixtures, outcome};

const LIST_HEADER: &str = "Image Data ID,Subject,Sex,Age,Modality,Description,Acq Date\n";

/// A folder with an image list (without its header) and the other tables as given.
pub(super) fn folder(list: &str, tables: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scans.csv"), format!("{LIST_HEADER}{list}")).unwrap();
    for (name, text) in tables {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// `image time event` or `image reason`, in the order of the list.
pub(super) fn lines(config: &AdniConfig) -> Vec<String> {
    let line = |(image, is_kept, reason, time, event): (String, bool, String, String, String)| {
        if is_kept { format!("{image} {time} {event}") } else { format!("{image} {reason}") }
    };
    outcome(config.clone()).unwrap().into_iter().map(line).collect()
}

fn with(folder: &Path, change: impl FnOnce(&mut AdniConfig)) -> AdniConfig {
    let mut config = AdniConfig::new(folder);
    change(&mut config);
    config
}

#[test]
fn the_names_of_the_options_are_those_of_the_documentation() {
    let text = "root = 'a'\nfinal-visit = 'literal'\nrounding = 'visit-month'\ndementia-cause = 'alzheimer'\n\
                undated-diagnosis = 'ignored'\nunscheduled-visits = 'skipped'\nscan-of-day = 'best-description'\n\
                diagnosis-source = 'adnimerge'\nmissing-current = 'conversion'\nage = 'adnimerge'\n";
    let config: AdniConfig = toml::from_str(text).unwrap();
    let options = Adni::new(config.clone()).options();
    let values: Vec<&str> = options.iter().map(|(_, value)| value.as_str()).collect();
    let expected = ["literal", "visit-month", "alzheimer", "ignored", "skipped", "best-description", "adnimerge"];
    assert_eq!(values[..7], expected);
    assert_eq!(values[7..], ["conversion", "adnimerge"]);
    assert_eq!(toml::from_str::<AdniConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);

    let defaults = Adni::new(toml::from_str("root = 'a'").unwrap()).options();
    let values: Vec<&str> = defaults.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values[..5], ["rule", "days", "any", "record", "used"]);
    assert_eq!(values[5..], ["first-listed", "dxsum", "missing", "image-list"]);
    assert_eq!(toml::from_str::<AdniConfig>("root = 'a'").unwrap(), AdniConfig::new("a"));
}

#[test]
fn every_key_and_value_may_be_spelt_with_underscores() {
    let text = "root = 'a'\nimage-list = 'b'\nfinal-visit = 'literal'\nrounding = 'visit-month'\n\
                dementia-cause = 'alzheimer'\nundated-diagnosis = 'ignored'\nunscheduled-visits = 'skipped'\n\
                scan-of-day = 'best-description'\ndiagnosis-source = 'adnimerge'\nmissing-current = 'conversion'\n";
    let config: AdniConfig = toml::from_str(text).unwrap();
    assert_eq!(toml::from_str::<AdniConfig>(&text.replace('-', "_")).unwrap(), config);
    for (text, same) in [("scan_of_day = 'first_listed'", "scan-of-day = 'first-listed'"), ("age = 'image_list'", "")] {
        let [text, same] = [text, same].map(|line| toml::from_str::<AdniConfig>(&format!("root = 'a'\n{line}")));
        assert_eq!(text.unwrap(), same.unwrap());
    }
}

#[test]
fn what_is_no_mri_is_left_out_before_everything_else() {
    let list =
        "I1,1_S_1,F,70,MRI,x,1/1/2010\nI1,1_S_1,F,70,PET,x,1/1/2010\n,,F,70,PET,x,\nI2,1_S_1,F,70,MRI,x,1/1/2012\n";
    let folder = folder(list, &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    let expected = ["I1 4 0", "I1 not_mri", "row 4 not_mri", "I2 final_visit"];
    assert_eq!(lines(&AdniConfig::new(folder.path())), expected);
    let provenance = Adni::new(AdniConfig::new(folder.path())).read().unwrap().provenance;
    assert_eq!(provenance.reasons[0], Reason::NotMri);
}

#[test]
fn the_run_file_of_the_repository_writes_the_defaults_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/adni.toml");
    let run: toml::Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let config: AdniConfig = run["data"]["adni"].clone().try_into().unwrap();
    assert_eq!(config, AdniConfig::new("../../ADNI"));
    let attributes: Vec<AttributeConfig> = run["attribute"].clone().try_into().unwrap();
    assert_eq!(attributes, Adni::new(config).default_attributes());
}

#[test]
fn dementia_of_another_cause_is_an_event_only_by_default() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI2,1_S_1,F,72,MRI,x,1/1/2012\nI3,1_S_1,F,73,MRI,x,1/1/2013\n";
    let dxsum =
        "RID,VISCODE2,EXAMDATE,DIAGNOSIS,DXDDUE\n1,bl,2010-01-01,2,-4\n1,m24,2012-01-01,3,2\n1,m36,2013-01-01,3,1\n";
    let folder = folder(list, &[("DXSUM.csv", dxsum)]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 4 1", "I2 at_or_after_event", "I3 at_or_after_event"]);
    let strict = with(folder.path(), |config| config.dementia_cause = DementiaCause::Alzheimer);
    assert_eq!(lines(&strict), ["I1 6 1", "I2 2 1", "I3 at_or_after_event"]);
}

#[test]
fn a_diagnosis_without_a_date_is_a_record_but_dates_no_event() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI2,1_S_1,F,72,MRI,x,1/1/2012\n";
    let folder = folder(list, &[("dxsum.csv", "RID,VISCODE2,EXAMDATE,DIAGNOSIS\n1,m24,,3\n")]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 4 0", "I2 final_visit"]);
    let ignored = with(folder.path(), |config| config.undated_diagnosis = UndatedDiagnosis::Ignored);
    assert_eq!(lines(&ignored), ["I1 no_diagnosis", "I2 no_diagnosis"]);
    let provenance = Adni::new(AdniConfig::new(folder.path())).read().unwrap().provenance;
    assert!(provenance.rule.ends_with("1 without a date, of these 1 of dementia"), "{}", provenance.rule);

    // REGISTRY dates it and has priority over ADNIMERGE; of several rows the earliest is used.
    let add = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    add("ADNIMERGE.csv", "RID,VISCODE,EXAMDATE,DX\n1,m24,2011-07-02,MCI\n");
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 3 1", "I2 at_or_after_event"]);
    add("REGISTRY_12Oct2023.csv", "RID,VISCODE2,EXAMDATE\n1,M24,2011-02-01\n1,m24,2011-01-01\n1,m12,2010-06-01\n");
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 2 1", "I2 at_or_after_event"]);
}

#[test]
fn unscheduled_visits_are_used_unless_skipped_and_no_visits_never() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI2,1_S_1,F,72,MRI,x,1/1/2013\n";
    let dxsum = "RID,VISCODE,VISCODE2,EXAMDATE,DIAGNOSIS\n1,v02,bl,2010-01-01,2\n1,uns1,uns1,2011-01-01,3\n\
                 1,nv,,2010-02-01,3\n1,f,f,2010-02-01,3\n1,v,TAU,2010-02-01,3\n1,v41,m24,2012-01-01,3\n";
    let folder = folder(list, &[("DXSUM_20Nov2024.csv", dxsum)]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 2 1", "I2 at_or_after_event"]);
    let skipped = with(folder.path(), |config| config.unscheduled_visits = UnscheduledVisits::Skipped);
    assert_eq!(lines(&skipped), ["I1 4 1", "I2 at_or_after_event"]);
}

#[test]
fn the_scan_of_a_day_is_the_first_or_the_best() {
    let list = "I9,1_S_1,F,70,MRI,MPRAGE,1/1/2010\nI8,1_S_1,F,70,MRI,N3; Scaled_2,1/1/2010\n\
                I7,1_S_1,F,70,MRI,N3; Scaled,1/1/2010\nI6,1_S_1,F,70,PET,N3; Scaled,1/1/2010\nI5,1_S_1,F,70,MRI,x,1/1/2012\n";
    let folder = folder(list, &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    let repeat = "repeat_scan_same_visit";
    let first = ["I9 4 0", &format!("I8 {repeat}"), &format!("I7 {repeat}"), "I6 not_mri", "I5 final_visit"];
    assert_eq!(lines(&AdniConfig::new(folder.path())), first);
    let best = with(folder.path(), |config| config.scan_of_day = ScanOfDay::BestDescription);
    assert_eq!(lines(&best)[..3], [format!("I9 {repeat}"), format!("I8 {repeat}"), "I7 4 0".to_owned()]);
}

#[test]
fn visit_months_take_the_place_of_days() {
    // 80 days late to the scan and 80 days early to the exam: 2 half-years by plan, 1 by days.
    let list = "I1,1_S_1,F,70,MRI,x,2010-03-22\nI2,1_S_1,F,70,MRI,x,2013-01-01\n";
    let dxsum = "RID,VISCODE2,EXAMDATE,DIAGNOSIS\n1,bl,2010-01-01,2\n1,m12,2010-10-13,3\n";
    let folder = folder(list, &[("DXSUM.csv", dxsum)]);
    assert_eq!(lines(&AdniConfig::new(folder.path()))[0], "I1 1 1");
    let planned = with(folder.path(), |config| config.rounding = Rounding::VisitMonth);
    assert_eq!(lines(&planned)[0], "I1 2 1");
}

#[test]
fn adnimerge_is_a_source_of_diagnoses_in_all_its_words() {
    let list = "I1,1_S_0001,F,,MRI,x,1/1/2010\nI2,1_S_0001,F,,MRI,x,1/1/2013\nI3,2_S_10002,M,66,MRI,x,1/1/2010\n\
                I4,2_S_10002,M,,MRI,x,7/2/2010\nI5,3_S_0003,M,,MRI,x,1/1/2010\n";
    let merge = "RID,COLPROT,PTID,VISCODE,EXAMDATE,AGE,DX,EXAMDATE_bl,M\n1,ADNI1,1_S_0001,bl,2010-01-01,70.5,MCI,2010-01-01,0\n\
                 1,ADNI1,1_S_0001,m24,2012-01-01,70.5,MCI to Dementia,2010-01-01,24\n10002,ADNI4,,bl,2010-01-01,79.9,NL,,0\n\
                 3,ADNI1,3_S_0003,bl,2010-01-01,60,,2010-01-01,0\n77,ADNI1,7_S_0077,bl,2010-01-01,60,Dementia,2010-01-01,0\n";
    let folder = folder(list, &[("ADNIMERGE_20Nov2024.csv", merge), ("ADNIMERGE_DICT.csv", "a,b\n1,2\n")]);
    let config = with(folder.path(), |config| config.diagnosis_source = DiagnosisSource::Adnimerge);
    let expected = ["I1 4 1", "I2 at_or_after_event", "I3 1 0", "I4 final_visit", "I5 no_diagnosis"];
    assert_eq!(lines(&config), expected);

    // An empty age is filled; with `age = adnimerge` the list is not used. 182 days are 0.4983 of 365.25.
    let ages = |config: &AdniConfig| Adni::new(config.clone()).read().unwrap().manifest.attributes[0].values.clone();
    let text = |values: [&str; 5]| values.map(|value| Some(value.to_owned()));
    assert_eq!(ages(&config), text(["70.5", "73.5007", "66", "80.3983", "60"]));
    let from_merge = AdniConfig { age: AgeSource::Adnimerge, ..config.clone() };
    assert_eq!(ages(&from_merge), text(["70.5", "73.5007", "79.9", "80.3983", "60"]));

    let cause = AdniConfig { dementia_cause: DementiaCause::Alzheimer, ..config };
    let message = Adni::new(cause).read().err().unwrap().to_string();
    assert!(message.starts_with("dementia-cause is alzheimer, expected the default where"), "{message}");
}

#[test]
fn a_recorded_conversion_stands_for_a_missing_diagnosis_on_request() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2006\nI2,1_S_1,F,72,MRI,x,1/1/2010\n";
    let header = "RID,EXAMDATE,DXCURREN,DXCONV,DXCONTYP,DXREV\n";
    // The meaning of a row: conversion to MCI, to AD from NL and from MCI; reversions; no diagnosis.
    for (cells, is_event, is_record) in [
        ("1,1,-4", false, true),
        ("1,2,-4", true, true),
        ("1,3,-4", true, true),
        ("2,-4,1", false, true),
        ("2,-4,2", false, true),
        ("2,-4,3", false, true),
        ("0,-4,-4", false, false),
        ("1,-4,-4", false, false),
    ] {
        let folder = folder(list, &[("DXSUM.csv", &format!("{header}1,2008-01-01,-4,{cells}\n"))]);
        assert_eq!(lines(&AdniConfig::new(folder.path()))[0], "I1 no_diagnosis", "{cells}");
        let lifted = with(folder.path(), |config| config.missing_current = MissingCurrent::Conversion);
        let expected = match (is_event, is_record) {
            (true, _) => "I1 4 1",
            (_, true) => "I1 8 0",
            (_, false) => "I1 no_diagnosis",
        };
        assert_eq!(lines(&lifted)[0], expected, "{cells}");
    }
}

#[test]
fn the_hash_follows_what_decides_the_labels_and_nothing_else() {
    let hash = |config: AdniConfig| Adni::new(config).read().unwrap().provenance.content_hash;
    let first = hash(AdniConfig::new(fixtures()));
    assert_eq!(first.len(), 64);
    let changed = |from: &str, to: &str| {
        let folder = super::fixtures::changed_tables(|_, text| text.replace(from, to));
        hash(AdniConfig::new(folder.path()))
    };
    for (from, to) in [("\n", "\r\n"), ("\"ADNI2\"", "ADNI2"), ("2014-03-07 00:00:00.0", ""), ("\"I9000", "\"9000")] {
        assert_eq!(changed(from, to), first, "{from}");
    }
    let reversed = super::fixtures::changed_tables(|_, text| {
        let (header, rows) = text.split_once('\n').unwrap();
        // The two scans of one day keep their order: which of them is kept depends on it.
        let mut rows: Vec<&str> = rows.lines().collect();
        rows.sort_by_key(|row| row.len());
        format!("{header}\n{}\n", rows.join("\n"))
    });
    assert_eq!(hash(AdniConfig::new(reversed.path())), first);
    assert_ne!(changed("2007-07-19", "2007-07-20"), first);
    assert_ne!(changed("\"2009-01-25\",\"\",\"3\"", "\"2009-01-25\",\"\",\"2\""), first);
    assert_ne!(hash(with(&fixtures(), |config| config.final_visit = FinalVisit::Literal)), first);
}

#[test]
fn shuffled_rows_give_the_same_cohort_in_another_order() {
    let sorted = |config: AdniConfig| {
        let (cohort, exclusions) = cohort(config);
        let mut samples: Vec<String> = (0..cohort.n())
            .map(|row| {
                let (sample, age) = (&cohort.samples[row], &cohort.attributes[0].values[row]);
                format!("{} {} {} {} {age:?}", sample.sample_id, sample.subject_id, sample.time, sample.event)
            })
            .collect();
        samples.sort();
        (samples, exclusions.counts())
    };
    let before = sorted(AdniConfig::new(fixtures()));
    for seed in 0..20_u64 {
        let folder = super::fixtures::changed_tables(|_, text| {
            let (header, rows) = text.split_once('\n').unwrap();
            let mut rows: Vec<&str> = rows.lines().collect();
            let key = |row: &str| {
                row.bytes().fold(seed, |key, byte| (key ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) >> 7
            };
            // Two scans of one day keep their order: the first is kept.
            rows.sort_by_key(|row| if row.contains("7/12/2006") { seed << 50 } else { key(row) });
            format!("{header}\n{}\n", rows.join("\n"))
        });
        assert_eq!(sorted(AdniConfig::new(folder.path())), before, "seed {seed}");
    }
}

#[test]
fn without_outcomes_one_scan_per_day_is_kept_whatever_the_diagnoses() {
    let built = |folder: &Path| {
        let read = Adni::new(AdniConfig::new(folder)).read_without_outcomes().unwrap();
        let (cohort, exclusions) = crate::build_cohort(read, &[]).unwrap();
        (cohort.n(), exclusions.summary())
    };
    assert_eq!(built(&fixtures()), (17, "duplicate_image_id 1, repeat_scan_same_visit 1".to_owned()));
    // A scan without a day may be one that is listed with it, or of a visit of which another scan is kept.
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI1,1_S_1,F,70,MRI,x,\nI2,1_S_1,F,70,PET,x,1/1/2010\n";
    let folder = folder(list, &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    assert_eq!(built(folder.path()), (1, "missing_date 1, not_mri 1".to_owned()));
}
