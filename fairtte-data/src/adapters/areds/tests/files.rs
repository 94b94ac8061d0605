//! How the files are found, and the messages if they are missing or invalid.

use std::io::Write as _;

use super::*;

/// The table text with its rows in reverse, CRLF ends and a header of a newer release.
fn rewritten(text: &str) -> String {
    let (head, rows): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| !line.starts_with(|c: char| c.is_ascii_digit()));
    let head = head.into_iter().map(|line| line.replace("dbGaP SubjID", "dbGaP_Subject_ID"));
    let rows = rows.into_iter().rev().map(str::to_owned);
    head.chain(rows).map(|line| line + "\r\n").collect()
}

pub(super) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn order_of_rows_line_ends_gzip_and_folders_change_nothing_but_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("PhenoGenotypeFiles/RootStudyConsentSet_phs000001.AREDS.v3.p1.c1.EDO/PhenotypeFiles");
    fs::create_dir_all(&deep).unwrap();
    for file in [FUNDUS_1, FUNDUS_2, ENROLMENT_1, ENROLMENT_2] {
        let text = rewritten(&fs::read_to_string(fixtures().join(file)).unwrap());
        fs::write(deep.join(format!("{file}.gz")), gzip(&text)).unwrap();
    }
    for file in [MAP, LIST] {
        let text = fs::read_to_string(fixtures().join(file)).unwrap();
        fs::write(folder.path().join(file), rewritten(&text)).unwrap();
    }
    let config = AredsConfig::new(folder.path());
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new());
    let hash = |config: &AredsConfig| Areds::new(config.clone()).read().unwrap().provenance.content_hash;
    assert_eq!(hash(&config), hash(&AredsConfig::new(fixtures())));
    assert_ne!(hash(&config), hash(&one(folder.path())));
    append(&folder, MAP, "59999 9001\n");
    assert_ne!(hash(&config), hash(&AredsConfig::new(fixtures())));
}

#[test]
fn a_person_may_stand_in_both_consent_groups_and_one_group_alone_is_read() {
    let folder = copy();
    append(&folder, FUNDUS_2, "1\t9001\t00\t3\t4\n1\t9001\t06\t5\t10\n");
    append(&folder, ENROLMENT_2, "1\t9001\tF\t1\t68\tY\n");
    let config = AredsConfig::new(folder.path());
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new());
    let rule = |config: &AredsConfig| Areds::new(config.clone()).read().unwrap().provenance.rule;
    let severities = "severity cells other than 1 to 12, which are no grades: 2";
    assert_eq!(notes(&config), [severities]);
    let both = "fundus tables of consent group c1, c2 with 6 people, enrolment tables of c1, c2";
    assert!(rule(&config).contains(both), "{}", rule(&config));
    for file in [FUNDUS_2, ENROLMENT_2] {
        fs::remove_file(folder.path().join(file)).unwrap();
    }
    let one = "fundus tables of consent group c1 with 5 people, enrolment tables of c1";
    assert!(rule(&config).contains(one), "{}", rule(&config));
    let without = ["9007/9007_26_F2_LE_LS.jpg", "9007_00_LE_F2_LS.jpg"];
    let both = outcomes(&AredsConfig::new(fixtures()));
    assert_eq!(different(&config, &both), excluded(&without, "no_phenotype"));
}

#[test]
fn a_missing_or_encrypted_table_says_what_to_do() {
    let folder = copy();
    let path = |file: &str| folder.path().join(file);
    let config = AredsConfig::new(folder.path());
    fs::rename(path(FUNDUS_2), path(&format!("{FUNDUS_2}.ncbi_enc"))).unwrap();
    let expected = "it is encrypted and no decrypted copy is there, run vdb-decrypt on it first";
    let name = path(&format!("{FUNDUS_2}.ncbi_enc"));
    assert_eq!(message(&config), format!("{} cannot be read as a table: {expected}", name.display()));
    fs::write(path(&format!("{FUNDUS_2}.gz")), gzip(&fs::read_to_string(fixtures().join(FUNDUS_2)).unwrap())).unwrap();
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new(), "decrypted beside it");
    for file in [ENROLMENT_1, ENROLMENT_2] {
        fs::remove_file(path(file)).unwrap();
    }
    let pattern = "phs000001.*.pht000373.*.c{1,2}.enrollment_randomization.*.txt(.gz)";
    let expected = "the enrolment table of AREDS was not found";
    let place = folder.path().display();
    assert_eq!(message(&config), format!("{expected}: looked for {pattern} in {place} and the folders below"));
    let nowhere = AredsConfig::new(folder.path().join("nowhere"));
    assert!(message(&nowhere).starts_with(&format!("cannot read {}", nowhere.root.display())), "{}", message(&nowhere));
}

#[test]
fn two_copies_of_a_table_must_hold_the_same() {
    let folder = copy();
    let text = fs::read_to_string(fixtures().join(FUNDUS_1)).unwrap();
    let packed = folder.path().join(format!("{FUNDUS_1}.gz"));
    fs::write(&packed, gzip(&text)).unwrap();
    let config = AredsConfig::new(folder.path());
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new());
    fs::write(&packed, gzip(&text.replace("\t10\t6\t12", "\t10\t6\t9"))).unwrap();
    let first = folder.path().join(FUNDUS_1);
    let expected = format!("{} has the same name and different rows, expected one of them", first.display());
    assert_eq!(message(&config), format!("{} cannot be read as a table: {expected}", packed.display()));
}

#[test]
fn photographs_come_from_a_folder_a_list_or_the_root() {
    let folder = copy();
    let list = fs::read_to_string(folder.path().join(LIST)).unwrap();
    let photographs = folder.path().join("photographs");
    for line in list.lines() {
        fs::create_dir_all(photographs.join(line).parent().unwrap()).unwrap();
        fs::write(photographs.join(line), "").unwrap();
    }
    fs::write(photographs.join("readme.txt"), "no picture").unwrap();
    let from_list = outcomes(&AredsConfig::new(folder.path()));
    let mut config = AredsConfig::new(folder.path());
    config.images = Some(photographs.clone());
    assert_eq!(different(&config, &from_list), BTreeMap::new());
    let (cohort, _) = built(&config);
    assert!(cohort.samples.iter().all(|sample| sample.image.is_file()));
    config.image_root = Some(photographs.clone());
    let expected = "expected no value where the photographs are those of a folder";
    assert_eq!(message(&config), format!("image-root is {}, {expected}", photographs.display()));
    config.images = Some(folder.path().join(LIST));
    assert!(built(&config).0.samples.iter().all(|sample| sample.image.is_file()), "paths start at image-root");
    fs::rename(folder.path().join(LIST), folder.path().join("areds_images_old.txt")).unwrap();
    assert_eq!(outcomes(&AredsConfig::new(folder.path())), from_list, "another name with images in it");
    fs::write(folder.path().join("images.txt"), "x\n").unwrap();
    let [first, second] = ["areds_images_old.txt", "images.txt"].map(|file| folder.path().join(file));
    let expected = format!("{} or {}, expected one file: remove or name one", first.display(), second.display());
    let found = message(&AredsConfig::new(folder.path()));
    assert_eq!(found, format!("the list of photographs (key images) could be {expected}"));
    fs::copy(&first, folder.path().join(LIST)).unwrap();
    assert_eq!(outcomes(&AredsConfig::new(folder.path())), from_list, "the usual name is preferred");
    for file in ["areds_images_old.txt", "images.txt", LIST] {
        fs::remove_file(folder.path().join(file)).unwrap();
    }
    let from_root = outcomes(&AredsConfig::new(folder.path()));
    assert_eq!(from_root.len(), from_list.len());
    assert!(from_root.keys().all(|path| path.starts_with("photographs/")));
    fs::remove_dir_all(&photographs).unwrap();
    let looked_for = "areds_images.txt, *.jpg, *.png, *.tif or *.dng";
    let expected = format!("looked for {looked_for} in {} and the folders below", folder.path().display());
    let found = message(&AredsConfig::new(folder.path()));
    assert_eq!(found, format!("a photograph of AREDS was not found: {expected}"));
}

#[test]
fn without_a_directory_map_directories_are_taken_for_id2() {
    let folder = copy();
    let map = folder.path().join("elsewhere.tsv");
    fs::rename(folder.path().join(MAP), &map).unwrap();
    let mut config = AredsConfig::new(folder.path());
    let (cohort, exclusions) = built(&config);
    let unknown = exclusions.list().iter().filter(|exclusion| exclusion.reason.code() == "no_phenotype");
    assert_eq!((cohort.n(), unknown.count()), (1, 25), "two names carry ID2");
    assert_eq!(cohort.samples[0].sample_id.as_str(), "9007_00_LE_F2_LS.jpg");
    let hint = "59011-RE; there is no map from image directories to ID2";
    assert!(exclusions.list()[0].source.ends_with(hint), "{}", exclusions.list()[0].source);
    config.mapping = Some(map);
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new());
}

#[test]
fn rows_without_their_trailing_tabs_directories_without_id2_and_ages_in_codes_are_read_and_counted() {
    let folder = copy();
    append(&folder, FUNDUS_1, "4\t9004\t04\t\n4\t9004\t06\n1\t9001\t02\t5\t5\t\t\n");
    append(&folder, ENROLMENT_2, "8\t9008\tF\t1\t.\n");
    append(&folder, MAP, "59020\n59021\t\n");
    let config = AredsConfig::new(folder.path());
    assert_eq!(different(&config, &outcomes(&AredsConfig::new(fixtures()))), BTreeMap::new());
    let expected = [
        "rows of the fundus tables with missing trailing cells, which are taken as empty: 2",
        "rows of the enrolment tables with missing trailing cells, which are taken as empty: 1",
        "severity cells other than 1 to 12, which are no grades: 2",
        "cells of ENROLLAGE that hold a code for missing: 1",
        "rows of the directory map without an ID2, whose directory is taken for the ID2: 2",
    ];
    assert_eq!(notes(&config), expected);
}

#[test]
fn hostile_tables_are_refused_with_their_row() {
    for (file, added, expected) in [
        (FUNDUS_1, "1\t9001\t00\t1\t1\t1\n", "row 24 has 6 fields, expected 5 as in the header, row 7"),
        (
            FUNDUS_2,
            "7\t9007\tBL\t1\t1\n",
            "VISNO of subject \"9007\" is \"BL\", expected whole half-years since baseline, 00 to 99 (row 10)",
        ),
        (
            ENROLMENT_2,
            "7\t9007\tF\t1\told\tN\n",
            "ENROLLAGE of subject \"9007\" is \"old\", expected years from 0 to 130 (row 9)",
        ),
        (MAP, "59011 9001 9002\n", "row 8 has 3 words, expected an image directory and its ID2"),
    ] {
        let folder = copy();
        append(&folder, file, added);
        let path = folder.path().join(file);
        let expected = format!("{} cannot be read as a table: {expected}", path.display());
        assert_eq!(message(&AredsConfig::new(folder.path())), expected);
    }
    for file in [FUNDUS_1, FUNDUS_2, ENROLMENT_1, ENROLMENT_2] {
        let folder = copy();
        fs::write(folder.path().join(file), "").unwrap();
        let expected = "the file is empty, expected a header that starts with \"dbGaP SubjID\" or \"dbGaP_Subject_ID\"";
        assert!(message(&AredsConfig::new(folder.path())).ends_with(expected), "{file}");
    }
}

#[test]
fn the_keys_of_the_run_file_are_those_of_the_documentation() {
    let text = "root = 'a'\nimages = 'b'\nimage-root = 'c'\nmapping = '/d'\nstereo = 'one'\nfinal-visit = 'literal'\n\
                eye-never-graded = 'dropped'\nlast-imaging-visit = 'any-field'\n";
    let mut config: AredsConfig = toml::from_str(text).unwrap();
    assert_eq!(toml::from_str::<AredsConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
    config.resolve_paths(Path::new("/runs"));
    let expected = AredsConfig {
        root: "/runs/a".into(),
        images: Some("/runs/b".into()),
        image_root: Some("/runs/c".into()),
        mapping: Some("/d".into()),
        stereo: Stereo::One,
        final_visit: FinalVisit::Literal,
        eye_never_graded: EyeNeverGraded::Dropped,
        last_imaging_visit: LastImagingVisit::AnyField,
    };
    assert_eq!(config, expected);
    let options =
        |config: &AredsConfig| config.options().into_iter().map(|(key, value)| key + "=" + &value).collect::<Vec<_>>();
    let expected = ["stereo=one", "final-visit=literal", "eye-never-graded=dropped", "last-imaging-visit=any-field"];
    assert_eq!(options(&config), expected);
    let expected = ["stereo=both", "final-visit=rule", "eye-never-graded=censored", "last-imaging-visit=field-2"];
    assert_eq!(options(&toml::from_str("root = 'a'").unwrap()), expected);
    let with_underscores = text.replace('-', "_");
    let mut again: AredsConfig = toml::from_str(&with_underscores).unwrap();
    again.resolve_paths(Path::new("/runs"));
    assert_eq!(again, config, "{with_underscores}");
    let field_2 = toml::from_str::<AredsConfig>("root = 'a'\nlast_imaging_visit = 'field_2'").unwrap();
    assert_eq!(field_2, AredsConfig::new("a"));
    let error = toml::from_str::<AredsConfig>("root = 'a'\nsterio = 'one'").unwrap_err().to_string();
    assert!(error.contains("sterio") && error.contains("stereo"), "{error}");
}
