//! Every collected or generated file of `../shared/data/nifti_cases`, if present, against the values that nibabel 5.4.2
//! reads: shape, type, byte order, spacing, matrix, axes, codes, values as stored and after reorientation, lowest,
//! highest and mean value; or the refusal.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{ByteOrder, Inspection, Limits, NonFinite, PixelValue, VolumeConfig, decode_volume_file, inspect_file};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/nifti_cases")
}

/// The index entry of one file, and the differences found.
struct Case<'a> {
    entry: &'a Value,
    wrong: Vec<String>,
    n_compared: usize,
}

impl Case<'_> {
    fn name(&self) -> &str {
        self.entry["path"].as_str().unwrap()
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, expected: T) {
        self.n_compared += 1;
        if found != expected {
            self.wrong.push(format!("{}: {what} is {found:?}, expected {expected:?}", self.name()));
        }
    }

    fn near(&mut self, what: &str, found: f64, expected: &Value, relative: f64) {
        self.n_compared += 1;
        let expected = match expected.as_str() {
            Some("nan") => f64::NAN,
            Some("inf") => f64::INFINITY,
            Some("-inf") => f64::NEG_INFINITY,
            _ => expected.as_f64().unwrap(),
        };
        let is_near = found == expected
            || (found.is_nan() && expected.is_nan())
            || (found - expected).abs() <= relative * expected.abs().max(1.0);
        if !is_near {
            self.wrong.push(format!("{}: {what} is {found}, expected {expected}", self.name()));
        }
    }

    fn extents(&self, key: &str) -> Option<Vec<usize>> {
        let extents = self.entry[key].as_array()?.iter();
        extents.map(|extent| usize::try_from(extent.as_u64()?).ok()).collect()
    }

    fn voxels(&self, key: &str) -> Vec<(Vec<usize>, Value)> {
        let voxels = self.entry[key].as_array().into_iter().flatten();
        let index = |voxel: &Value| voxel[0].as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize).collect();
        voxels.map(|voxel| (index(voxel), voxel[1].clone())).collect()
    }

    fn matrix(&mut self, key: &str, found: Option<[[f64; 4]; 4]>) {
        let Some(rows) = self.entry[key].as_array() else { return };
        let Some(found) = found else {
            self.wrong.push(format!("{}: {key} is missing", self.name()));
            return;
        };
        for (i, row) in rows.clone().iter().enumerate() {
            for (j, expected) in row.as_array().unwrap().iter().enumerate() {
                self.near(&format!("{key} [{i}, {j}]"), found[i][j], expected, 1e-5);
            }
        }
    }

    fn check(&mut self, found: &Inspection) {
        let entry = self.entry;
        self.same("shape", Some(found.stored_size.clone()), self.extents("shape"));
        if let Some(dtype) = entry["dtype"].as_str() {
            let expected = match dtype.trim_start_matches(['<', '>']) {
                "f4" => "float32",
                "f8" => "float64",
                "i4" => "int32",
                "i8" => "int64",
                "u2" => "uint16",
                "u4" => "uint32",
                other => other,
            };
            self.same("dtype", found.dtype.as_str(), expected);
        }
        let order = if entry["endian"] == ">" { ByteOrder::Big } else { ByteOrder::Little };
        self.same("byte order", found.byte_order, Some(order));
        let zooms = entry["zooms"].as_array().unwrap();
        for (spacing, zoom) in found.spacing.as_ref().unwrap().iter().zip(zooms) {
            self.near("spacing", spacing.0, zoom, 1e-6);
        }
        if !self.name().contains("sform_") {
            self.matrix("affine", found.affine);
            self.same("axes", found.axis_codes.as_deref(), entry["axcodes"].as_str());
        }
        self.matrix("canonical_affine", found.canonical_affine);
        if let Some(size) = self.extents("canonical_shape") {
            self.same("oriented size", found.oriented_size.clone(), Some(size));
        }
        if let Some(n) = entry["n_nonfinite"].as_u64() {
            self.same("values that are not finite", found.n_non_finite, n);
        }
        for (what, value) in [("min", found.min), ("max", found.max), ("mean", found.mean)] {
            if entry[what].is_number() {
                self.near(what, value.unwrap_or(f64::NAN), &entry[what], 1e-9);
            } else {
                self.same(what, value, None);
            }
        }
        for (key, is_stored) in [("voxels", true), ("canonical_voxels", false)] {
            for (index, expected) in self.voxels(key) {
                let value = found.at.iter().find(|value| value.index == index).unwrap();
                let value = if is_stored { &value.stored } else { &value.oriented };
                let Some(PixelValue::One(value)) = value else {
                    self.wrong.push(format!("{}: no value of {key} at {index:?}", self.name()));
                    continue;
                };
                self.near(&format!("{key} at {index:?}"), value.0, &expected, 1e-12);
            }
        }
    }

    /// The input of a model agrees with the reoriented values, scaled to \[0, 1\].
    fn check_decoded(&mut self, path: &Path) {
        let frame = self.extents("shape").filter(|shape| shape.len() > 3).map(|_| 0);
        let config = VolumeConfig { frame, non_finite: NonFinite::Zero, ..VolumeConfig::default() };
        let shape = self.extents("shape").unwrap();
        let decoded = decode_volume_file(path, &config, &Limits::default());
        let is_volume = shape.len() >= 3 && shape[..3].iter().all(|extent| *extent > 1);
        let (low, high) = (self.entry["min"].as_f64(), self.entry["max"].as_f64());
        let Some((low, high)) = low.zip(high).filter(|_| is_volume) else {
            self.same("decoded", decoded.is_ok(), false);
            return;
        };
        let volume = match decoded {
            Ok(volume) => volume,
            Err(refused) => return self.wrong.push(format!("{}: refused: {}", self.name(), refused.detail)),
        };
        if shape[3..].iter().any(|extent| *extent > 1) {
            return;
        }
        for (index, expected) in self.voxels("canonical_voxels") {
            let [_, height, width] = volume.size;
            let found = volume.voxels[(index[2] * height + index[1]) * width + index[0]];
            let expected =
                expected.as_f64().map_or(0.0, |value| if high > low { (value - low) / (high - low) } else { 0.0 });
            self.near(&format!("intensity at {index:?}"), f64::from(found), &Value::from(expected), 1e-6);
        }
    }
}

#[test]
fn every_collected_file_is_read_as_nibabel_reads_it_or_refused() {
    let Ok(text) = std::fs::read_to_string(folder().join("index.json")) else {
        eprintln!("skipped: {} is not there", folder().display());
        return;
    };
    let index: Value = serde_json::from_str(&text).unwrap();
    let (mut n_files, mut n_compared, mut wrong) = (0, 0, Vec::new());
    for entry in index.as_array().unwrap() {
        let mut case = Case { entry, wrong: Vec::new(), n_compared: 0 };
        let path = folder().join(case.name());
        let at: Vec<_> =
            ["voxels", "canonical_voxels"].iter().flat_map(|key| case.voxels(key)).map(|(at, _)| at).collect();
        let at = if entry["must"] == "reject_or_documented" { Vec::new() } else { at };
        let found = inspect_file(&path, &Limits::default(), &at);
        let outcome = match &found {
            Ok(found) => format!("read {}", found.notes.join("; ")),
            Err(refused) => format!("refused: {}", refused.detail),
        };
        match (entry["must"].as_str().unwrap(), &found) {
            ("ok", Ok(found)) => {
                case.check(found);
                case.check_decoded(&path);
            }
            ("either" | "reject_or_documented", found) => {
                eprintln!("{} ({}): {outcome}", case.name(), entry["note"].as_str().unwrap_or_default());
                if let Ok(found) = found
                    && entry["min"].is_number()
                {
                    case.check(found);
                }
            }
            ("fail" | "fail_strict", Err(refused)) => {
                eprintln!("{}: {outcome}", case.name());
                let is_sentence = refused.detail.len() > 10 && !refused.detail.contains('\n');
                case.same("one sentence", is_sentence, true);
                let decoded = decode_volume_file(&path, &VolumeConfig::default(), &Limits::default());
                case.same("decoded", decoded.is_ok(), false);
            }
            (must, _) => case.wrong.push(format!("{}: must {must}, but {outcome}", case.name())),
        }
        n_files += 1;
        n_compared += case.n_compared;
        wrong.extend(case.wrong);
    }
    eprintln!("{n_files} files, {n_compared} facts compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_files >= 76 && n_compared > 2000, "{n_files} files, {n_compared} facts");
}
