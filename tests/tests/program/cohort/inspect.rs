//! `fairtte inspect` on pictures and volumes: its output for valid files, and its message and exit code for invalid
//! ones. The collected hard cases of `../shared/data` are tested too if they are available.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "a skipped test and the number of comparisons are reported")]

use std::path::{Path, PathBuf};

use fairtte_tests::{fail, run, succeed};
use serde_json::Value;

const DATA: i32 = 4;

fn json(arguments: &[&str], files: &[String]) -> (i32, Vec<Value>) {
    let outcome = run([&["inspect", "--json"], arguments].concat().into_iter().chain(files.iter().map(String::as_str)));
    let entries: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    (outcome.code, entries.as_array().unwrap().clone())
}

/// A NIfTI-1 volume of 16-bit numbers 0, 1, 2, .. whose x axis runs to the left.
fn volume(path: &Path) {
    let mut header = vec![0_u8; 352];
    header[..4].copy_from_slice(&348_i32.to_le_bytes());
    for (i, extent) in [3_i16, 4, 3, 2, 1, 1, 1, 1].iter().enumerate() {
        header[40 + 2 * i..42 + 2 * i].copy_from_slice(&extent.to_le_bytes());
    }
    header[70..72].copy_from_slice(&4_i16.to_le_bytes());
    header[72..74].copy_from_slice(&16_i16.to_le_bytes());
    header[76..80].copy_from_slice(&1_f32.to_le_bytes());
    for i in 0..3 {
        header[80 + 4 * i..84 + 4 * i].copy_from_slice(&2_f32.to_le_bytes());
    }
    header[108..112].copy_from_slice(&352_f32.to_le_bytes());
    header[254..256].copy_from_slice(&1_i16.to_le_bytes());
    for (at, value) in [(280, -2_f32), (292, 6.0), (300, 2.0), (320, 2.0)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    header[344..348].copy_from_slice(b"n+1\0");
    header.extend((0..24_i16).flat_map(i16::to_le_bytes));
    std::fs::write(path, header).unwrap();
}

fn picture(path: &Path) {
    image::GrayImage::from_fn(5, 4, |x, y| image::Luma([u8::try_from(10 * y + x).unwrap()])).save(path).unwrap();
}

/// Axial DICOM slices of 3 rows and 4 columns at these heights, explicit little endian; the values of a slice are 0, 1,
/// 2, ..
fn slices(folder: &Path, heights: &[&str]) {
    std::fs::create_dir(folder).unwrap();
    for (i, height) in heights.iter().enumerate() {
        let mut file = [vec![0; 128], b"DICM".to_vec()].concat();
        let mut add = |group: u16, element: u16, kind: &[u8; 2], value: &[u8]| {
            file.extend([group.to_le_bytes(), element.to_le_bytes(), *kind].concat());
            let n = u16::try_from(value.len() + value.len() % 2).unwrap();
            file.extend(if kind == b"OW" {
                [[0, 0], n.to_le_bytes(), [0, 0]].concat()
            } else {
                n.to_le_bytes().to_vec()
            });
            file.extend(value);
            file.extend(&b" "[..value.len() % 2]);
        };
        add(2, 0x10, b"UI", b"1.2.840.10008.1.2.1\0");
        add(0x20, 0xe, b"UI", b"1.2.3\0");
        add(0x20, 0x32, b"DS", format!(r"0\0\{height}").as_bytes());
        add(0x20, 0x37, b"DS", br"1\0\0\0\1\0");
        add(0x28, 0x10, b"US", &3_u16.to_le_bytes());
        add(0x28, 0x11, b"US", &4_u16.to_le_bytes());
        add(0x28, 0x30, b"DS", br"2\2");
        add(0x28, 0x100, b"US", &16_u16.to_le_bytes());
        add(0x7fe0, 0x10, b"OW", &(0..12_u16).flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
        std::fs::write(folder.join(format!("{}.dcm", 9 - i)), file).unwrap();
    }
}

#[test]
fn a_folder_of_dicom_slices_is_described_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (good, gap) = (folder.path().join("good"), folder.path().join("gap"));
    slices(&good, &["1.5", "3", "4.5"]);
    slices(&gap, &["1.5", "3", "6", "7.5"]);
    let (good, gap) = (good.display().to_string(), gap.display().to_string());
    let (code, entries) = json(&["--at", "1,0,2"], std::slice::from_ref(&good));
    let content = &entries[0]["content"];
    assert_eq!((code, &content["format"], &content["n-slices"]), (0, &"dicom-series".into(), &3.into()));
    assert_eq!(content["affine"][2], serde_json::json!([0.0, 0.0, 1.5, 1.5]));
    // x + 4 y, and the same place after reversing x and y.
    assert_eq!((content["at"][0]["stored"].as_f64(), content["at"][0]["oriented"].as_f64()), (Some(1.0), Some(10.0)));
    fail(["inspect", &gap], DATA, "a slice is missing: 8.dcm and 7.dcm are 3.000 mm apart, expected 1.500 mm");
}

#[test]
fn a_volume_and_a_picture_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let (scan, film) = (folder.path().join("scan.nii"), folder.path().join("film.png"));
    volume(&scan);
    picture(&film);
    let (code, entries) = json(&["--at", "0,1,1"], &[scan.display().to_string()]);
    assert_eq!((code, entries.len()), (0, 1));
    let content = &entries[0]["content"];
    assert_eq!((&content["format"], &content["dtype"]), (&"NIfTI-1".into(), &"int16".into()));
    assert_eq!(content["stored-size"], serde_json::json!([4, 3, 2]));
    assert_eq!(content["axis-codes"], "LAS");
    assert_eq!(
        (content["min"].as_f64(), content["max"].as_f64(), content["mean"].as_f64()),
        (Some(0.0), Some(23.0), Some(11.5))
    );
    // x + 4 y + 12 z, and the same place after reversing x.
    assert_eq!((content["at"][0]["stored"].as_f64(), content["at"][0]["oriented"].as_f64()), (Some(16.0), Some(19.0)));

    let (code, entries) = json(&["--at", "3,2"], &[film.display().to_string()]);
    let content = &entries[0]["content"];
    assert_eq!((code, &content["format"], content["channels"].as_u64()), (0, &"PNG".into(), Some(1)));
    assert_eq!(
        (content["stored-size"].clone(), content["at"][0]["stored"].as_f64()),
        (serde_json::json!([5, 4]), Some(23.0))
    );

    let text = succeed(["inspect", &scan.display().to_string(), &film.display().to_string()]).stdout;
    for word in ["scan.nii", "NIfTI-1", "4 x 3 x 2", "int16", "film.png", "PNG", "5 x 4"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
}

#[test]
fn a_refused_file_gets_one_sentence_and_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (film, cut) = (folder.path().join("film.png"), folder.path().join("cut.png"));
    picture(&film);
    let bytes = std::fs::read(&film).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let missing = folder.path().join("missing.nii").display().to_string();
    fail(["inspect", &missing], DATA, "there is no such file");
    let (film, cut) = (film.display().to_string(), cut.display().to_string());
    fail(["inspect", &film, &cut], DATA, "1 of 2 files");
    let (code, entries) = json(&[], &[film, cut]);
    assert_eq!(code, DATA);
    assert_eq!((&entries[0]["accepted"], &entries[1]["accepted"]), (&true.into(), &false.into()));
    assert_eq!(entries[1]["reason"], "image_unreadable");
    assert!(!entries[1]["sentence"].as_str().unwrap().contains('\n'));
}

/// The entries of the index in `folder`; `None`, with a note, if it is missing.
fn cases(folder: &str) -> Option<(PathBuf, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(folder);
    let Ok(text) = std::fs::read_to_string(folder.join("index.json")) else {
        println!("skipped: {} is missing", folder.display());
        return None;
    };
    Some((folder, serde_json::from_str(&text).unwrap()))
}

/// Inspects all files of `cases` and returns every entry with the result of its inspection.
fn inspected(folder: &str) -> Vec<(Value, Value)> {
    let Some((folder, entries)) = cases(folder) else { return Vec::new() };
    let files: Vec<String> =
        entries.iter().map(|entry| folder.join(entry["path"].as_str().unwrap()).display().to_string()).collect();
    let (code, said) = json(&[], &files);
    assert_eq!((code, said.len()), (DATA, files.len()), "some of them must be refused");
    entries.into_iter().zip(said).collect()
}

fn count(said: &[(Value, Value)], n_compared: usize) {
    let n_accepted = said.iter().filter(|(_, said)| said["accepted"] == true).count();
    println!("{} files, {n_accepted} accepted, {n_compared} numbers compared", said.len());
}

#[test]
fn the_collected_pictures_come_out_as_their_index_says() {
    let said = inspected("image_cases");
    let mut n_compared = 0;
    for (entry, said) in &said {
        let name = entry["path"].as_str().unwrap();
        let accepted = said["accepted"] == true;
        match entry["must"].as_str().unwrap() {
            "decode" | "decode_by_content" => assert!(accepted, "{name}: {said}"),
            "fail" | "fail_or_limit" | "fail_or_flag" => assert!(!accepted, "{name}: {said}"),
            _ => {}
        }
        if !accepted {
            assert!(!said["sentence"].as_str().unwrap().is_empty(), "{name}");
            continue;
        }
        if entry["format"].is_null() {
            continue;
        }
        let content = &said["content"];
        assert_eq!(content["format"], entry["format"], "{name}");
        assert_eq!(content["stored-size"], serde_json::json!([entry["width"], entry["height"]]), "{name}");
        if !entry["oriented_size"].is_null() {
            assert_eq!(content["oriented-size"], entry["oriented_size"], "{name}");
        }
        n_compared += 2;
    }
    count(&said, n_compared);
}

#[test]
fn the_collected_volumes_come_out_as_their_index_says() {
    let said = inspected("nifti_cases");
    let mut n_compared = 0;
    for (entry, said) in &said {
        let name = entry["path"].as_str().unwrap();
        let accepted = said["accepted"] == true;
        match entry["must"].as_str().unwrap() {
            "ok" => assert!(accepted, "{name}: {said}"),
            "fail" | "fail_strict" => assert!(!accepted, "{name}: {said}"),
            _ => {}
        }
        if !accepted {
            assert!(!said["sentence"].as_str().unwrap().is_empty(), "{name}");
            continue;
        }
        let content = &said["content"];
        if let Some(shape) = entry["shape"].as_array() {
            assert_eq!(content["stored-size"].as_array().unwrap(), shape, "{name}");
            n_compared += 1;
        }
        for key in ["min", "max", "mean"] {
            let Some(expected) = entry[key].as_f64() else { continue };
            let found = content[key].as_f64().unwrap();
            assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{name}: {key} {found}, {expected}");
            n_compared += 1;
        }
    }
    count(&said, n_compared);
}
