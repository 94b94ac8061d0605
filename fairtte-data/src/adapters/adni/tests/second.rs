//! Two more made-up table sets, in the manner of ADNI1 and of ADNI4, with every label derived manually.
//!
//! A half-year has 182.625 days, halves up: 92 to 273 days are 1, 274 to 456 are 2, 457 to 639 are 3, 640 to 821 are 4.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use super::super::*;
use super::options::lines;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn notes(config: &AdniConfig) -> Vec<String> {
    Adni::new(config.clone()).read().unwrap().provenance.notes
}

const OLD_LIST: &str = r#""Image Data ID","Subject","Group","Sex","Age","Visit","Modality","Description","Type","Acq Date","Format","Downloaded"
"I910001","011_S_0011","MCI","M","80","sc","MRI","MPR; GradWarp; N3; Scaled","Processed","2/01/2006","NiFTI",""
"910002","011_S_0011","MCI","M","80","m06","MRI","MPR; GradWarp; N3; Scaled","Processed","8/1/2006","NiFTI",""
"I910002","011_S_0011","MCI","M","80","m06","MRI","MPR; GradWarp; N3; Scaled","Processed","8/1/2006","NiFTI",""
"I910003","011_S_0011","MCI","M","81","m12","MRI","MPR; GradWarp; N3; Scaled","Processed","2/5/2007","NiFTI",""
"I920001","012_S_0120","CN","F","-4","sc","MRI","MPR-R; N3; Scaled_2","Processed","1/1/2008","NiFTI",""
"920001","012_S_0120","CN","F","-4","sc","MRI","MPR-R; N3; Scaled_2","Processed","1/1/2008","NiFTI",""
"I920002","012_S_0120","CN","F","72","m24","MRI","MPR-R; N3; Scaled_2","Processed","1/5/2010","NiFTI",""

"I930001","013_S_1301","AD","F","66","sc","MRI","MPR","Original","2/20/2011","DCM",""
"I930002","013_S_1301","AD","F","66","m06","MRI","MPR","Original","9/1/2011","DCM",""
"I940001","014_S_0014","MCI","","70","sc","MRI","MPR","Original","7/1/2006","DCM",""
"I940002","014_S_0014","MCI","","71","m06","MRI","MPR","Original","3/31/2007","DCM",""
"I940003","014_S_0014","MCI","","71","m06","MRI","MPR","Original","4/1/2007","DCM",""
"D940004","014_S_0014","MCI","","71","m18","PET","FDG","Original","1/1/2008","DCM",""
"I950001","015_S_0015","CN","M","90","bl","MRI","MPRAGE","Original","6/6/2009","DCM",""
"I950002","015_S_0015","CN","M","90","bl","MRI","MPRAGE repeat","Original","6/6/2009","DCM",""
"I960001","016_S_0016","CN","M","60","bl","MRI","MPRAGE","Original","6/6/2009","DCM",""
"I970001","017_S_0017","MCI","F","77.5","bl","MRI","MPRAGE","Original","5/1/2009","DCM",""
,,,,,,,,,,,
"#;

/// No PTID and no DIAGNOSIS; one blank line, one row without a subject, one with surplus commas.
const OLD_DXSUM: &str = "\
Phase,ID,RID,SITEID,VISCODE,VISCODE2,USERDATE,USERDATE2,EXAMDATE,DXCHANGE,DXCURREN,DXCONV,DXCONTYP,DXREV
ADNI1,1,11,1,bl,bl,2006-02-10,,2006-02-10,,2,0,-4,-4
ADNI1,2,11,1,m06,m06,2006-08-10,,2006-08-10,-4,-4,-4,-4,-4
ADNI1,3,11,1,m12,m12,2007-02-10,,2007-02-10,,2,0,-4,-4,,,
ADNI1,4,11,1,m18,m18,2007-08-15,,2007-08-15,,3,1,3,-4

ADNI1,5,120,2,bl,bl,2008-01-15,,2008-01-15,0,1,0,-4,-4
ADNI2,6,1301,3,v03,bl,2011-03-01,,2011-03-01,3,,,,
ADNI2,7,1301,3,v05,m06,2011-09-10,,2011-09-10,9,,,,
ADNI1,8,14,4,bl,bl,2006-07-05,,2006-07-05,,2,0,-4,-4
ADNI1,9,14,4,m12,m12,2007-07-03,,,,3,1,3,-4
ADNI1,10,15,5,bl,bl,2009-06-10,,2009-06-10,,1,0,-4,-4
ADNI1,11,16,6,bl,bl,2009-06-10,,2009-06-10,-4,-1,NA,-4,-4
ADNI2,12,17,7,f,f,2009-04-01,,2009-04-01,3,,,,
ADNI2,13,17,7,bl,bl,2009-05-10,,2009-05-10,2,,,,
ADNI2,14,17,7,uns1,uns1,2010-01-10,,2010-01-10,5,,,,
ADNI2,15,,7,v11,m12,2010-05-10,,2010-05-10,3,,,,
";

const REGISTRY: &str = "RID,VISCODE,VISCODE2,EXAMDATE\n14,m12,m12,7/1/2007\n14,m24,m24,\n";

#[test]
fn tables_in_the_manner_of_adni1_get_the_labels_made_by_hand() {
    let crlf = OLD_DXSUM.replace('\n', "\r\n");
    let folder = folder(&[
        ("my scans 4_12_2023.csv", OLD_LIST),
        ("DXSUM_PDXCONV_ADNIALL.csv", &crlf),
        ("REGISTRY.csv", REGISTRY),
    ]);
    let config = AdniConfig::new(folder.path());
    let expected = [
        // Dementia on 2007-08-15, after the last scan: 560, 379 and 191 days.
        "I910001 3 1",
        "I910002 2 1",
        "I910002 duplicate_image_id",
        "I910003 1 1",
        // DXCHANGE 0 is not a code, DXCURREN 1 is: normal; censored at the last scan, 735 days.
        "I920001 4 0",
        "I920001 duplicate_image_id",
        "I920002 final_visit",
        // Dementia on 2011-03-01; the reversion in September changes nothing.
        "I930001 at_or_after_event",
        "I930002 at_or_after_event",
        // Dementia at m12, dated 2007-07-01 by the registry: 365, 92 and 91 days; a PET scan is not a visit.
        "I940001 2 1",
        "I940002 1 1",
        "I940003 at_or_after_event",
        "D940004 not_mri",
        // One visit, twice scanned; no follow-up.
        "I950001 final_visit",
        "I950002 repeat_scan_same_visit",
        // -4 and -1 only.
        "I960001 no_diagnosis",
        // Dementia at an unscheduled visit on 2010-01-10, 254 days; the failed screening (f) is not a visit.
        "I970001 1 1",
    ];
    assert_eq!(lines(&config), expected);
    let manifest = Adni::new(config.clone()).read().unwrap().manifest;
    let [ages, sexes] = manifest.attributes.as_slice() else { panic!("age and sex") };
    assert_eq!((ages.values[4].as_deref(), ages.values[16].as_deref()), (None, Some("77.5")));
    assert_eq!((sexes.values[9].as_deref(), sexes.values[16].as_deref()), (None, Some("F")));
    assert_eq!(manifest.rows[7].source_row, 10, "the blank line is counted");
    let expected = [
        "rows of DXSUM_PDXCONV_ADNIALL.csv without PTID and RID, which are not used: 1",
        "cells of column DXCHANGE of DXSUM_PDXCONV_ADNIALL.csv without a known value, which count as missing: 1, \
         the first is \"0\" in row 7",
    ];
    assert_eq!(notes(&config), expected);
    let scheduled = AdniConfig { unscheduled_visits: UnscheduledVisits::Skipped, ..config.clone() };
    assert_eq!(lines(&scheduled)[16], "I970001 final_visit");
    let best = AdniConfig { scan_of_day: ScanOfDay::BestDescription, ..config };
    assert_eq!(lines(&best)[13..15], ["I950001 final_visit", "I950002 repeat_scan_same_visit"], "the lower number");
}

const NEW_LIST: &str = "\
Image Data ID,Subject,Group,Sex,Age,Visit,Modality,Description,Type,Acq Date,Format,Downloaded
I990001,021_S_10021,CN,F,70.4,1,MRI,Accelerated Sag IR-FSPGR,Original,1/10/2021,DCM,,
990002,021_S_10021,CN,F,71.4,2,MRI,Accelerated Sag IR-FSPGR,Original,1/15/2022,DCM,,
I990003,021_S_10021,CN,F,72.5,3,MRI,Accelerated Sag IR-FSPGR,Original,2/1/2023,DCM,,
I990004,022_S_10022,MCI,M,80,1,MRI,Sagittal 3D Accelerated MPRAGE,Original,5/5/2021,DCM,
I990005,022_S_10022,MCI,M,82,3,MRI,Sagittal 3D Accelerated MPRAGE,Original,6/1/2023,DCM,
I990006,023_S_10023,CN,male,66,1,MRI,MPRAGE,Original,2022-03-01,DCM,
I990007,023_S_10023,CN,male,66,1,MRI,MPRAGE,Original,2022/08/30,DCM,
I990008,024_S_10024,CN,M,66,1,MRI,MPRAGE,Original,3/1/2022,DCM,
I990009,025_S_10025,CN,M,66,1,MRI,MPRAGE,Original,1/1/2022,DCM,
I990010,025_S_10025,CN,M,67,1,MRI,MPRAGE,Original,12/31/2022,DCM,
";

/// A second collection with an image of the first one, a PET scan and a scan without its day.
const MORE: &str = "\
\"Image Data ID\",\"Subject\",\"Sex\",\"Age\",\"Modality\",\"Description\",\"Acq Date\"
\"990001\",\"021_S_10021\",\"F\",\"70.4\",\"MRI\",\"Accelerated Sag IR-FSPGR\",\"1/10/2021\"
\"I990011\",\"021_S_10021\",\"F\",\"75\",\"PET\",\"AV45\",\"1/10/2026\"
\"I990012\",\"021_S_10021\",\"F\",\"75\",\"MRI\",\"MPRAGE\",\"\"
";

const NEW_DXSUM: &str = "\
PHASE,PTID,RID,VISCODE,VISCODE2,EXAMDATE,DIAGNOSIS,DXDDUE,update_stamp
ADNI4,021_S_10021,10021,4_bl,bl,2021-01-12,1,,2024-05-01
ADNI4,021_S_10021,10021,4_m12,m12,2022-01-20,2,,2024-05-01
ADNI4,021_S_10021,10021,4_m24,m24,2023-02-10,2.0,,2024-05-01
ADNI4,021_S_10021,10021,4_m30,m30,2023-08-01,-1,,2024-05-01
ADNI4,022_S_10022,10022,4_bl,bl,2021/05/06,2,,2024-05-01
ADNI4,022_S_10022,10022,4_m24,m24,2023/05/05,3,2,2024-05-01
ADNI4,123_S_10023,10023,4_bl,bl,3/2/2022,1,,2024-05-01
ADNI4,024_S_10024,10024,4_bl,bl,2022-03-02,2|3,,2024-05-01
ADNI4,025_S_10025,10025,4_bl,bl,2022-01-03,2,,2024-05-01
ADNI4,025_S_10025,10025,4_m12,m12,,3,1,2024-05-01
ADNI4,777_S_10777,10777,4_bl,bl,some day,8,,2024-05-01
";

#[test]
fn tables_in_the_manner_of_adni4_get_the_labels_made_by_hand() {
    let folder = folder(&[("ADNI4.csv", NEW_LIST), ("ADNI4_more.csv", MORE), ("DXSUM_01May2024.csv", NEW_DXSUM)]);
    let config = AdniConfig::new(folder.path());
    let expected = [
        // No dementia: censored at the last scan on 2023-02-01, 752 and 382 days.
        "I990001 4 0",
        "I990002 2 0",
        "I990003 final_visit",
        // Dementia on 2023-05-05, 730 days.
        "I990004 4 1",
        "I990005 at_or_after_event",
        // The PTID has a different site, but the RID matches: normal, censored after 182 days.
        "I990006 1 0",
        "I990007 final_visit",
        // Two answers in one cell count as no answer.
        "I990008 no_diagnosis",
        // The dementia has no date: a record, but no event; 364 days to the last scan.
        "I990009 2 0",
        "I990010 final_visit",
        "I990001 duplicate_image_id",
        "I990011 not_mri",
        "I990012 missing_date",
    ];
    assert_eq!(lines(&config), expected);
    let expected = [
        "rows of DXSUM_01May2024.csv whose PTID is not in the image list and whose subject was found by RID: 1",
        "cells of column DIAGNOSIS of DXSUM_01May2024.csv without a known value, which count as missing: 1, the first is \
         \"2|3\" in row 9",
    ];
    assert_eq!(notes(&config), expected);
    let rule = Adni::new(config.clone()).read().unwrap().provenance.rule;
    assert!(rule.ends_with("1 without a date, of these 1 of dementia"), "{rule}");
    // Dementia of another cause is not due to Alzheimer's disease: censored at the last scan, 757 days.
    let alzheimer = AdniConfig { dementia_cause: DementiaCause::Alzheimer, ..config };
    assert_eq!(lines(&alzheimer)[3..5], ["I990004 4 0", "I990005 final_visit"]);
}
