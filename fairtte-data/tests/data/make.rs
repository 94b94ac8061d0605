//! Made-up cohorts and image files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use fairtte_data::cohort::AttributeColumn;
use fairtte_data::{Adapter as _, Cohort, Generic, GenericConfig, Sample, build_cohort};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A cohort of the image files `images`, sample `i` of subject `i`, with times 1, 2, .. and an event in every second
/// sample.
pub fn cohort(folder: &Path, images: &[&str]) -> Cohort {
    let mut table = String::from("image,subject_id,time,event\n");
    for (i, image) in images.iter().enumerate() {
        writeln!(table, "{image},p{i},{},{}", i + 1, i % 2).unwrap();
    }
    std::fs::write(folder.join("cohort.csv"), table).unwrap();
    let adapter = Generic::new(GenericConfig::new(folder.join("cohort.csv")));
    build_cohort(adapter.read().unwrap(), &[]).unwrap().0
}

/// A cohort without files: `subjects[i]` is the subject of sample `i`.
pub fn cohort_of_subjects(subjects: &[String]) -> Cohort {
    let sample = |(i, subject): (usize, &String)| Sample {
        sample_id: format!("sample {i}").into(),
        subject_id: subject.as_str().into(),
        unit: None,
        image: format!("/nowhere/{i}.png").into(),
        time: i as f64 + 0.5,
        event: i % 3 == 0,
        competing: None,
        source_row: i + 2,
    };
    Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: subjects.iter().enumerate().map(sample).collect(),
        attributes: vec![AttributeColumn::new(
            "sex",
            (0..subjects.len()).map(|i| [Some("F"), None, Some("M")][i % 3].map(str::to_owned)).collect(),
        )],
        provenance: None,
        cause: None,
    }
}

/// A gray PNG of 20 x 16 pixels whose every pixel depends on `shade`.
pub fn png(path: &Path, shade: usize) {
    let gray = |x, y| u8::try_from((shade + x as usize * 7 + y as usize * 3) % 256).unwrap();
    let film = image::GrayImage::from_fn(20, 16, |x, y| image::Luma([gray(x, y)]));
    film.save(path).unwrap();
}

/// A NIfTI-1 file of 16-bit voxels 0, 1, 2, .. (column-major) with the given `dim` field; gzipped if `path` ends in gz.
pub fn nifti(path: &Path, dim: [i16; 8]) {
    let n: i64 = dim[1..].iter().take(usize::try_from(dim[0]).unwrap()).map(|extent| i64::from(*extent)).product();
    let voxels = (0..n).flat_map(|i| ((i % 30_000) as i16).to_le_bytes()).collect();
    write_maybe_gzipped(path, &nifti_bytes(dim, 4, 16, voxels));
}

/// The bytes of a NIfTI-1 file whose axes run to right, anterior, superior, without slope and intercept.
pub fn nifti_bytes(dim: [i16; 8], datatype: i16, bitpix: i16, voxels: Vec<u8>) -> Vec<u8> {
    let mut header = vec![0; 352];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &348_i32.to_le_bytes());
    for (i, extent) in dim.iter().enumerate() {
        put(40 + 2 * i, &extent.to_le_bytes());
    }
    put(70, &datatype.to_le_bytes());
    put(72, &bitpix.to_le_bytes());
    put(108, &352_f32.to_le_bytes());
    put(252, &1_i16.to_le_bytes()); // qform: a quaternion of no rotation
    put(344, b"n+1\0");
    header.extend(voxels);
    header
}

pub fn write_maybe_gzipped(path: &Path, bytes: &[u8]) {
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        std::fs::write(path, encoder.finish().unwrap()).unwrap();
    } else {
        std::fs::write(path, bytes).unwrap();
    }
}
