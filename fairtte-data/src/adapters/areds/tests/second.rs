//! A second made-up table set in the layout of dbGaP: 50 columns, newer header, gzipped, with every label derived
//! manually.

use super::files::gzip;
use super::*;

const EYE_COLUMNS: [&str; 21] = [
    "DRUSF2", "NDRUF2", "SSRF2", "HDEXF2", "SUBHF2", "SUBFF2", "PHCOF2", "GEOACT", "GEOACS", "GEOAWI", "RPEDCI",
    "RPEDWI", "INCPCI", "INCPWI", "DRSZWI", "DRSOFT", "DRARWI", "DRRETI", "DRCALC", "ELICAT", "PHTIME",
];

/// A fundus table with `rows` of ID2, VISNO, AMDSEVRE and AMDSEVLE; the other 46 columns hold gradings without effect.
fn fundus(rows: &[[&str; 4]]) -> String {
    let eyes = ["RE", "LE"].into_iter().flat_map(|eye| EYE_COLUMNS.map(|column| format!("{eye}{column}")));
    let names: Vec<String> = ["dbGaP_Subject_ID", "ID2", "VISNO", "AMDSEVRE", "AMDSEVLE", "SCALE"]
        .map(str::to_owned)
        .into_iter()
        .chain(eyes)
        .chain(["RESTAT", "LESTAT"].map(str::to_owned))
        .collect();
    assert_eq!(names.len(), 50);
    let row = |[id2, visit, right, left]: &[&str; 4]| {
        let gradings = "\t88\t12\t".to_owned() + &"\t".repeat(42);
        format!("44{id2}\t{id2}\t{visit}\t{right}\t{left}{gradings}\n")
    };
    let comments = "# Study accession: phs000001.v3.p1\n# one more\n# and a third\n\n##\tphv00053747.v2.p1.c2\n";
    format!("{comments}{}\n{}", names.join("\t"), rows.iter().map(row).collect::<String>())
}

const ENROLMENT: &str = "# comment\n\ndbGaP_Subject_ID\tID2\tAMDCAT\tSEX\tRACE\tENROLLAGE\tSCHOOL\n\
                         441001\t1001\t4\tF\t1\t70.5\t6\n441002\t1002\t1\tM\t2\t.\t\n441004\t1004\t3\tM\t5\t69\n";

const SECOND_MAP: &str = "directory person\n51001 1001\n51002 1002\n51003\n52001 2001\n";

const PICTURES: [&str; 22] = [
    "51001/00/51001 00 F2 RE LS.jpg",
    "51001/00/51001 00 F2 RE LS.tif",
    "51001/00/51001 00 F2 RE RS.jpg",
    "51001/00/51001 00 F2 LE LS.JPG",
    "51001/04/51001 04 f2 le ls.jpg",
    "51001/04/51001 04 ref RE.jpg",
    "51001/05/51001 05 F2 RE LS.jpg",
    "51002/00/51002 00 F2 LE LS.jpg",
    "51002/06/51002 06 F2 LE LS.dng",
    "51002/07/51002 07 F2 LE LS.jpg",
    "51002/00/51002 00 F2 RE LS.jpg",
    "51002/10/51002 10 F2 RE LS.jpg",
    "51003/00/51003 00 F2 RE LS.jpg",
    "1003/1003_00_F2_RE_LS.jpg",
    "1003/1003_04_F2_RE_LS.jpg",
    "1004/00/1004 00 F2 RE LS.jpg",
    "1004/25/1004 25 F2 LE RS.jpg",
    "1004/00/1004 00 F3 LE LS.jpg",
    "1004_02_LE_F2_LS.png",
    "52001/00/52001 00 F2 RE LS.jpg",
    "52001/00/52001 00 F2 LE LS.jpg",
    "52001/00/52001 00 F2.jpg",
];

/// Consent group c2 with all files beside its tables, and the photographs as files.
fn second() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("RootStudyConsentSet_phs000001.AREDS.v3.p1.c2.GRU/PhenotypeFiles");
    fs::create_dir_all(&tables).unwrap();
    let rows = [
        ["1001", "00", "3", "9"],
        ["1001", "04", "4", "10"],
        ["1001", "06", "11", "12"],
        ["1002", "00", "1", "1"],
        ["1002", "07", "1", "12"],
        ["1002", "10", "1", "3"],
        ["1003", "00", "", "88"],
        ["1003", "04", "", ""],
        ["1004", "00", "9", "9"],
        ["1004", "26", "12", "9"],
    ];
    let other = "dbGaP_Subject_ID\tID2\tAMDSTAT\tBMI00\n441001\t1001\t4\t30\n";
    for (name, text) in [
        ("phs000001.v3.pht000375.v2.p1.c2.fundus.GRU.txt.gz", fundus(&rows)),
        ("phs000001.v3.pht000373.v2.p1.c2.enrollment_randomization.GRU.txt.gz", ENROLMENT.to_owned()),
        ("phs000001.v3.pht000001.v2.p1.c2.genspecphenotype.GRU.txt.gz", other.to_owned()),
        ("phs000001.v3.pht002477.v1.p1.AREDS_Subject.MULTI.txt.gz", "an unknown table".to_owned()),
    ] {
        fs::write(tables.join(name), gzip(&text)).unwrap();
    }
    fs::write(folder.path().join(MAP).with_extension("txt.gz"), gzip(SECOND_MAP)).unwrap();
    for path in PICTURES {
        let path = folder.path().join("images").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

fn config(folder: &TempDir) -> AredsConfig {
    AredsConfig { images: Some(folder.path().join("images")), ..AredsConfig::new(folder.path()) }
}

/// `years event` or the reason of every picture, in the order of [`PICTURES`].
fn fates(config: &AredsConfig) -> Vec<String> {
    let found = outcomes(config);
    let fate = |path: &str| match &found[path] {
        Ok((years, event, ..)) => format!("{years} {}", u8::from(*event)),
        Err(reason) => reason.clone(),
    };
    assert_eq!(found.len(), PICTURES.len());
    PICTURES.map(fate).to_vec()
}

const BY_HAND: [&str; 22] = [
    // 1001: right eye late at 06, left at 04. Both sides are kept, the second file of one side is not.
    "3 1",
    "stereo_or_repeat",
    "3 1",
    "2 1",
    "at_or_after_event",
    "not_field2",
    "0.5 1",
    // 1002: left eye late at 07, an odd visit; the grade 3 at 10 does not undo it. Right eye censored at 10.
    "3.5 1",
    "0.5 1",
    "at_or_after_event",
    "5 0",
    "final_visit",
    // 51003 has no ID2 and is not one.
    "no_phenotype",
    // 1003: the directory is the ID2; never graded, censored at 04.
    "2 0",
    "final_visit",
    // 1004: right eye late at 26; left eye censored at 25, field 3 does not count.
    "13 1",
    "final_visit",
    "not_field2",
    "11.5 0",
    // 2001 is in consent group c1.
    "no_phenotype",
    "no_phenotype",
    "unreadable_name",
];

#[test]
fn one_consent_group_in_the_layout_of_a_newer_release_gets_the_labels_made_by_hand() {
    let folder = second();
    let config = config(&folder);
    assert_eq!(fates(&config), BY_HAND);
    let found = outcomes(&config);
    let attributes = |path: &str| {
        let (_, _, age, groups) = found[path].clone().unwrap();
        (age, groups)
    };
    assert_eq!(attributes("51001/05/51001 05 F2 RE LS.jpg"), (Some(73.0), [Some(1), Some(0), Some(1)]));
    assert_eq!(attributes("51002/00/51002 00 F2 RE LS.jpg"), (None, [None, Some(1), Some(0)]), "age is a dot");
    assert_eq!(attributes("1004_02_LE_F2_LS.png"), (Some(70.0), [Some(0), Some(1), Some(0)]), "70 is not above 70");
    assert_eq!(attributes("1003/1003_00_F2_RE_LS.jpg"), (None, [None; 3]), "no enrolment row");
    let expected = [
        "rows of the enrolment tables with missing trailing cells, which are taken as empty: 1",
        "severity cells other than 1 to 12, which are no grades: 1",
        "cells of ENROLLAGE that hold a code for missing: 1",
        "rows of the directory map without an ID2, whose directory is taken for the ID2: 1",
    ];
    assert_eq!(notes(&config), expected);
    let stereo = AredsConfig { stereo: Stereo::One, ..config };
    let mut by_hand = BY_HAND;
    by_hand[2] = "stereo_or_repeat";
    assert_eq!(fates(&stereo), by_hand);
}

#[test]
fn the_other_consent_group_adds_its_people_and_repeats_change_nothing() {
    let folder = second();
    let rows =
        [["1001", "00", "3", "9"], ["1001", "06", "11", "12"], ["2001", "00", "10", "2"], ["2001", "06", "9", "2"]];
    let table = |name: &str| folder.path().join(format!("phs000001.v3.{name}.txt"));
    // The tabs at the ends of the rows are missing.
    let text: String = fundus(&rows).lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    fs::write(table("pht000375.v2.p1.c1.fundus.EDO"), text).unwrap();
    let enrolment = "dbGaP SubjID\tID2\tSEX\tRACE\tENROLLAGE\n1\t1001\tF\t1\t70.5\n2\t2001\tM\t3\t\n";
    fs::write(table("pht000373.v2.p1.c1.enrollment_randomization.EDO"), enrolment).unwrap();
    fs::write(folder.path().join(MAP), SECOND_MAP).unwrap();
    let mut by_hand = BY_HAND;
    // 2001: late in the right eye from the start; the left one has a single visit.
    by_hand[19] = "at_or_after_event";
    by_hand[20] = "final_visit";
    assert_eq!(fates(&config(&folder)), by_hand);
    assert_eq!(
        notes(&config(&folder))[0],
        "rows of the fundus tables with missing trailing cells, which are taken as empty: 4"
    );
}
