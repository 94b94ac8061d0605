//! `evaluate-masks`: masks from files, by group; every number that is compared is recomputed here from the pixels, by double loops.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_tests::{Outcome, fail, files, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// A mask, row by row.
#[derive(Clone)]
struct Mask {
    width: usize,
    labels: Vec<u8>,
}

impl Mask {
    /// From rows of digits; a point is 0.
    fn drawn(rows: &[&str]) -> Self {
        let labels =
            rows.iter().flat_map(|row| row.chars().map(|c| u8::try_from(c.to_digit(10).unwrap_or(0)).unwrap()));
        Self { width: rows[0].len(), labels: labels.collect() }
    }

    fn save(&self, path: &Path) {
        let height = self.labels.len() / self.width;
        let size = |n: usize| u32::try_from(n).unwrap();
        image::GrayImage::from_raw(size(self.width), size(height), self.labels.clone()).unwrap().save(path).unwrap();
    }

    fn is(&self, x: i32, y: i32, values: &[u8]) -> bool {
        let width = i32::try_from(self.width).unwrap();
        let place = y * width + x;
        let inside =
            x >= 0 && x < width && y >= 0 && usize::try_from(place).is_ok_and(|place| place < self.labels.len());
        inside && values.contains(&self.labels[usize::try_from(place).unwrap()])
    }

    fn pixels(&self, values: &[u8]) -> Vec<(i32, i32)> {
        let width = i32::try_from(self.width).unwrap();
        let all = (0..i32::try_from(self.labels.len()).unwrap()).map(|k| (k % width, k / width));
        all.filter(|(x, y)| self.is(*x, *y, values)).collect()
    }

    fn border(&self, values: &[u8]) -> Vec<(i32, i32)> {
        let is_border = |&(x, y): &(i32, i32)| {
            [(1, 0), (-1, 0), (0, 1), (0, -1)].iter().any(|(dx, dy)| !self.is(x + dx, y + dy, values))
        };
        self.pixels(values).into_iter().filter(is_border).collect()
    }
}

/// Dice, `IoU`, HD95, ASD and NSD at 1 by the definitions; the last three without a value if a mask is empty.
fn by_definition(truth: &Mask, predicted: &Mask, values: &[u8], [dx, dy]: [f64; 2]) -> [Option<f64>; 5] {
    let (a, b) = (truth.pixels(values), predicted.pixels(values));
    let common = a.iter().filter(|pixel| b.contains(pixel)).count() as f64;
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let overlap = if n_a + n_b > 0.0 { [2.0 * common / (n_a + n_b), common / (n_a + n_b - common)] } else { [1.0; 2] };
    let (a, b) = (truth.border(values), predicted.border(values));
    if a.is_empty() || b.is_empty() {
        return [Some(overlap[0]), Some(overlap[1]), None, None, Some(overlap[0])];
    }
    let between = |p: &(i32, i32), q: &(i32, i32)| (dx * f64::from(p.0 - q.0)).hypot(dy * f64::from(p.1 - q.1));
    let nearest = |p: &(i32, i32), to: &[(i32, i32)]| to.iter().map(|q| between(p, q)).fold(f64::INFINITY, f64::min);
    let mut all: Vec<f64> = a.iter().map(|p| nearest(p, &b)).chain(b.iter().map(|q| nearest(q, &a))).collect();
    all.sort_by(f64::total_cmp);
    // 0.95 of the last place, in twentieths.
    let place = 19 * (all.len() - 1);
    let (low, high) = (all[place / 20], all[place.div_ceil(20)]);
    let hd95 = low + (high - low) * (place % 20) as f64 / 20.0;
    let n = all.len() as f64;
    let near = all.iter().filter(|distance| **distance <= 1.0 + 1e-9).count() as f64;
    [Some(overlap[0]), Some(overlap[1]), Some(hd95), Some(all.iter().sum::<f64>() / n), Some(near / n)]
}

/// An eye of 22 x 20 pixels: a disc of 1 with a cup of 2 at a place and with squared radii.
fn eye(at: (i32, i32), disc: i32, cup: i32) -> Mask {
    let label = |k: i32| {
        let (x, y) = (k % 22 - at.0, k / 22 - at.1);
        let r = x * x + y * y;
        u8::from(r <= disc) + u8::from(r <= cup)
    };
    Mask { width: 22, labels: (0..22 * 20).map(label).collect() }
}

struct Case {
    truth: Mask,
    predicted: Mask,
    sex: &'static str,
}

/// 48 eyes of 24 people; of men the prediction is shifted further, and of every eighth eye no cup is found.
fn cases() -> Vec<Case> {
    let of = |k: i32| {
        let man = k % 4 > 1;
        let shift = if man { 1 + k % 3 } else { k % 2 };
        let predicted_cup = if k % 8 == 7 { -1 } else { 4 + k % 6 };
        Case {
            truth: eye((10, 9), 30 + k % 7, 5 + k % 5),
            predicted: eye((10 + shift, 9 - k % 2), 31 + k % 4, predicted_cup),
            sex: if man { "M" } else { "F" },
        }
    };
    (0..48).map(of).collect()
}

/// Writes masks and table into `folder`.
fn write(folder: &Path, cases: &[Case]) -> String {
    let mut text = "sample,subject,truth,predicted,sex,note\n".to_owned();
    for (k, case) in cases.iter().enumerate() {
        case.truth.save(&folder.join(format!("t{k}.png")));
        case.predicted.save(&folder.join(format!("p{k}.png")));
        writeln!(text, "e{k:02},s{},t{k}.png,p{k}.png,{},x", k / 2, case.sex).unwrap();
    }
    table(folder, &text)
}

fn table(folder: &Path, text: &str) -> String {
    let path = folder.join("pairs.csv");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn arguments(folder: &Path, table: &str, extra: &[&str]) -> Vec<String> {
    let page = folder.join("out/masks.html").display().to_string();
    let fixed =
        ["evaluate-masks", "--table", table, "--output", &page, "--set", "replicates=40", "--set", "permutations=19"];
    fixed.iter().chain(extra).map(|text| (*text).to_owned()).collect()
}

fn evaluate(folder: &Path, table: &str, extra: &[&str]) -> (Value, Outcome) {
    let outcome = succeed(arguments(folder, table, extra));
    (serde_json::from_str(&read(folder, "masks.json")).unwrap(), outcome)
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join("out").join(name)).unwrap()
}

fn refused(folder: &Path, table: &str, extra: &[&str], code: i32) -> String {
    let found = fail(arguments(folder, table, extra), code, "");
    assert!(!folder.join("out").exists(), "nothing is written");
    found.stderr
}

fn metric<'a>(numbers: &'a Value, name: &str) -> &'a Value {
    numbers["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap()
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{found} {expected}");
}

const NAMES: [&str; 5] = ["dice", "iou", "hd95", "asd", "nsd"];

#[test]
fn every_mean_is_that_of_the_definitions_overall_and_by_group_and_every_sample_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let path = write(folder.path(), &cases);
    let extra = ["--classes", "disc=1+2,cup=2", "--attributes", "sex", "--spacing", "0.5,0.8", "--unit", "mm"];
    let (numbers, _) = evaluate(folder.path(), &path, &extra);
    let samples = read(folder.path(), "masks-samples.csv");
    let rows: Vec<Vec<&str>> = samples.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 96);
    for (place, (class, values)) in [("disc", &[1, 2][..]), ("cup", &[2])].into_iter().enumerate() {
        let all: Vec<[Option<f64>; 5]> =
            cases.iter().map(|case| by_definition(&case.truth, &case.predicted, values, [0.8, 0.5])).collect();
        for (k, name) in NAMES.iter().enumerate() {
            let found = metric(&numbers, &format!("{name}-{class}"));
            let mean = |is_in: &dyn Fn(&Case) -> bool| {
                let of = cases.iter().zip(&all).filter(|(case, _)| is_in(case)).filter_map(|(_, values)| values[k]);
                let of: Vec<f64> = of.collect();
                (of.iter().sum::<f64>() / of.len() as f64, of.len())
            };
            let overall = mean(&|_| true);
            near(&found["overall"]["value"], overall.0);
            assert_eq!(found["overall"]["n-events"], overall.1, "samples with a value");
            let mut values = Vec::new();
            for (level, sex) in ["F", "M"].iter().enumerate() {
                let group = &found["attributes"][0]["groups"][level];
                let expected = mean(&|case| case.sex == *sex);
                near(&group["estimate"]["value"], expected.0);
                assert!(group["estimate"]["lower"].as_f64().unwrap() <= expected.0 + 1e-12);
                values.push(expected.0);
            }
            near(&found["attributes"][0]["gap"]["value"], (values[0] - values[1]).abs());
            let scaled = overall.0 / (1.0 + values.iter().map(|value| (value - overall.0).abs()).sum::<f64>());
            let equity = &found["attributes"][0]["equity-scaling-fair-seg"];
            if *name == "hd95" || *name == "asd" {
                assert!(equity["value"].is_null() && equity["undefined"].is_string());
            } else {
                near(&equity["value"], scaled);
            }
            for (sample, values) in all.iter().enumerate() {
                let cell = rows[2 * sample + place][6 + k];
                assert_eq!(cell.is_empty(), values[k].is_none());
                if let Some(value) = values[k] {
                    assert!((cell.parse::<f64>().unwrap() - value).abs() < 1e-12);
                }
            }
        }
        assert_eq!(metric(&numbers, &format!("dice-{class}"))["attributes"][0]["worst-group"], "M");
    }
    assert_eq!(rows[15][11], "the predicted mask has no pixels");
    let empty = numbers["empty"].as_array().unwrap().iter().find(|of| of["class"] == "cup").unwrap();
    assert_eq!((&empty["n-predicted"], &empty["n-both"], &numbers["unit"]), (&6.into(), &0.into(), &"mm".into()));
    let page = read(folder.path(), "masks.html");
    for text in ["In 6 of 48 samples", "Equity-scaled overlap", "Empty masks", "Dice over samples", "e07"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("NaN") && !page.contains(" events"), "masks have no events");
    let csv = read(folder.path(), "masks.csv");
    assert!(csv.lines().any(|line| line.starts_with("predicted-empty-cup,,all,,6")), "{csv}");
    assert!(csv.contains("dice-cup,sex,equity-scaling-fairseg-deviation,"));
}

#[test]
fn the_example_of_the_documentation_has_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let rim = ["..111..", ".11111.", ".11111.", ".11111.", ".11111.", "..111.."];
    let mut truth = rim;
    (truth[2], truth[3]) = (".12211.", ".12211.");
    let mut smaller = truth;
    smaller[2] = ".11211.";
    let cases = [
        Case { truth: Mask::drawn(&truth), predicted: Mask::drawn(&smaller), sex: "F" },
        Case { truth: Mask::drawn(&truth), predicted: Mask::drawn(&rim), sex: "M" },
    ];
    write(folder.path(), &cases);
    let path = table(folder.path(), "sample,subject,truth,predicted\na,p1,t0.png,p0.png\nb,p2,t1.png,p1.png\n");
    let extra = ["--classes", "disc=1+2,cup=2", "--cup", "cup", "--disc", "disc", "--set", "replicates=0"];
    let (numbers, outcome) = evaluate(folder.path(), &path, &extra);
    near(&metric(&numbers, "dice-disc")["overall"]["value"], 1.0);
    near(&metric(&numbers, "dice-cup")["overall"]["value"], (6.0 / 7.0) / 2.0);
    near(&metric(&numbers, "iou-cup")["overall"]["value"], 0.375);
    near(&metric(&numbers, "hd95-cup")["overall"]["value"], 0.7);
    near(&metric(&numbers, "asd-cup")["overall"]["value"], 1.0 / 7.0);
    near(&metric(&numbers, "nsd-cup")["overall"]["value"], 0.5);
    near(&metric(&numbers, "cup-to-disc-error")["overall"]["value"], 1.0 / 6.0);
    let (numbers, _) = evaluate(folder.path(), &path, &[&extra[..], &["--hausdorff", "monai"]].concat());
    near(&metric(&numbers, "hd95-cup")["overall"]["value"], 0.85);
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/masks.md")).unwrap();
    let shown = docs.split("```text").find(|block| block.contains("Dice (cup)")).unwrap().split("```").next().unwrap();
    for line in shown.lines().filter(|line| !line.is_empty()) {
        assert!(outcome.stdout.lines().any(|found| found == line), "{line}\n{}", outcome.stdout);
    }
}

/// A NIfTI-1 file of bytes with a diagonal matrix.
fn nifti(path: &Path, shape: [usize; 3], matrix: [f32; 3], labels: &[u8]) {
    let mut bytes = vec![0_u8; 352];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &348_i32.to_le_bytes());
    put(40, &3_i16.to_le_bytes());
    for axis in 0..3 {
        put(42 + 2 * axis, &i16::try_from(shape[axis]).unwrap().to_le_bytes());
        put(80 + 4 * axis, &matrix[axis].abs().to_le_bytes());
        put(280 + 20 * axis, &matrix[axis].to_le_bytes());
    }
    (3..7).for_each(|axis| put(42 + 2 * axis, &1_i16.to_le_bytes()));
    put(70, &2_i16.to_le_bytes());
    put(72, &8_i16.to_le_bytes());
    put(108, &352_f32.to_le_bytes());
    put(254, &1_i16.to_le_bytes());
    put(344, b"n+1\0");
    bytes.extend_from_slice(labels);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn volumes_have_the_spacing_of_their_header_and_have_to_lie_at_the_same_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |x: usize, y: usize, z: usize| {
        let mut labels = vec![0; 4 * 3 * 2];
        labels[x + 4 * (y + 3 * z)] = 1;
        labels
    };
    let file = |name: &str| folder.path().join(name);
    nifti(&file("t.nii"), [4, 3, 2], [2.0, 0.5, 3.0], &at(0, 0, 0));
    nifti(&file("x.nii"), [4, 3, 2], [2.0, 0.5, 3.0], &at(3, 0, 0));
    nifti(&file("y.nii"), [4, 3, 2], [2.0, 0.5, 3.0], &at(0, 2, 1));
    let text = "sample,truth,predicted\na,t.nii,x.nii\nb,t.nii,y.nii\n";
    let path = table(folder.path(), text);
    let (numbers, _) = evaluate(folder.path(), &path, &[]);
    near(&metric(&numbers, "hd95-1")["overall"]["value"], 0.5 * (6.0 + 10.0_f64.sqrt()));
    assert_eq!(numbers["unit"], "mm");
    let (numbers, _) = evaluate(folder.path(), &path, &["--spacing", "1,10,100"]);
    near(&metric(&numbers, "hd95-1")["overall"]["value"], 0.5 * (3.0 + 10_400.0_f64.sqrt()));
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    // The prediction of b is turned: its first axis runs to the other side.
    nifti(&file("y.nii"), [4, 3, 2], [-2.0, 0.5, 3.0], &at(0, 2, 1));
    let message = refused(folder.path(), &path, &[], DATA);
    assert!(
        message.contains("the predicted mask of sample \"b\" cannot be used: its header places voxels elsewhere"),
        "{message}"
    );
    evaluate(folder.path(), &path, &["--spacing", "1,1,1"]);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let message = refused(folder.path(), &path, &["--spacing", "1,1"], DATA);
    assert!(message.contains("it has 3 axes, and --spacing 2 distances"), "{message}");
    let message = refused(
        folder.path(),
        &path,
        &["--classes", "cup=1,disc=1", "--cup", "cup", "--disc", "disc", "--spacing", "1,1,1"],
        DATA,
    );
    assert!(message.contains("a volume has no vertical axis"), "{message}");
    let picture = Mask::drawn(&["0110", "0110"]);
    picture.save(&file("a.png"));
    picture.save(&file("b.png"));
    let message = refused(
        folder.path(),
        &table(folder.path(), "sample,truth,predicted\na,t.nii,x.nii\nb,a.png,b.png\n"),
        &[],
        CONFIG,
    );
    assert!(message.contains("1 of 2 samples are volumes and the others pictures"), "{message}");
    let message = refused(folder.path(), &table(folder.path(), "sample,truth,predicted\na,t.nii,b.png\n"), &[], DATA);
    assert!(message.contains("it is a picture, expected a volume like the true mask"), "{message}");
}

#[test]
fn masks_that_cannot_be_compared_are_refused_by_sample_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    Mask::drawn(&["0110", "0220"]).save(&file("t.png"));
    Mask::drawn(&["01100", "02200"]).save(&file("wide.png"));
    Mask::drawn(&["0000", "0000"]).save(&file("none.png"));
    Mask::drawn(&["0000", "0000"]).save(&file("none-too.png"));
    Mask { width: 8, labels: (0..40).collect() }.save(&file("photo.png"));
    Mask { width: 8, labels: (1..41).collect() }.save(&file("photo-too.png"));
    Mask::drawn(&["0110", "0220"]).save(&file("t.jpg"));
    let of = |truth: &str, predicted: &str, extra: &[&str], code: i32| {
        let path = table(folder.path(), &format!("sample,truth,predicted\na,{truth},{predicted}\n"));
        refused(folder.path(), &path, extra, code)
    };
    let message = of("t.png", "wide.png", &[], DATA);
    assert!(
        message.contains("it has 2 x 5 pixels, expected 2 x 4 like the true mask") && message.contains("wide.png"),
        "{message}"
    );
    assert!(of("t.png", "absent.png", &[], DATA).contains("there is no such file"));
    assert!(of("t.jpg", "t.png", &[], DATA).contains("the true mask of sample \"a\" cannot be used: JPEG changes"));
    assert!(of("t.png", "t.png", &[], DATA).contains("it is the file of the true mask"));
    assert!(of("photo.png", "photo-too.png", &[], DATA).contains("more than 32 values"));
    assert!(of("none.png", "none-too.png", &[], CONFIG).contains("every pixel of every mask is 0"));
    let refused = [
        (&["--classes", "cup=7"][..], "no mask has a pixel of class \"cup\" (7)"),
        (&["--classes", "cup=2,cup=1"], "\"cup\" is named twice"),
        (&["--metrics", "dice,dice"], "\"dice\" is named twice"),
        (&["--metrics", "cup-to-disc-error"], "needs --cup and --disc"),
        (&["--classes", "cup=2,disc=1", "--cup", "cup", "--disc", "disc"], "does not contain the values of the cup"),
        (&["--cup", "cup", "--disc", "disc"], "there is no class \"cup\""),
        (&["--classes", "cup=2,disc=1+2", "--cup", "cup", "--disc", "disc", "--metrics", "dice"], "it has no effect"),
        (&["--tolerance", "-1"], "-1 is not a finite number >= 0"),
        (&["--spacing", "1,0"], "0 is not a finite number > 0"),
        (&["--set", "n-times=7"], "it has no effect on masks"),
        (&["--set", "stratify=event"], "masks have no events"),
    ];
    for (extra, expected) in refused {
        let message = of("t.png", "none.png", extra, CONFIG);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn values_that_differ_between_true_and_predicted_masks_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    Mask { width: 2, labels: vec![0, 255, 255, 0] }.save(&file("t.png"));
    Mask { width: 2, labels: vec![0, 1, 1, 0] }.save(&file("p.png"));
    let path = table(folder.path(), "sample,truth,predicted\na,t.png,p.png\n");
    let (numbers, outcome) = evaluate(folder.path(), &path, &[]);
    near(&metric(&numbers, "dice-255")["overall"]["value"], 0.0);
    assert!(
        outcome.stderr.contains("No predicted mask has a pixel of 255, which true masks have"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("No true mask has a pixel of 1, which predicted masks have"));
    assert!(read(folder.path(), "masks.html").contains("No predicted mask has a pixel of 255"));
    let (numbers, outcome) = evaluate(folder.path(), &path, &["--classes", "disc=1+255"]);
    near(&metric(&numbers, "dice-disc")["overall"]["value"], 1.0);
    assert!(!outcome.stderr.contains("No predicted mask"));
    let (_, outcome) = evaluate(folder.path(), &path, &["--classes", "disc=255"]);
    assert!(
        outcome
            .stderr
            .contains("Values that no class has count as background (masks with them): 1 (0 true, 1 predicted)")
    );
}

#[test]
fn a_folder_has_four_files_and_the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &cases());
    let run = |threads: &str| {
        let output = folder.path().join(threads);
        let line =
            ["evaluate-masks", "--table", &path, "--attributes", "sex", "--set", "replicates=20", "--threads", threads];
        let line =
            line.iter().map(|text| (*text).to_owned()).chain(["--output".to_owned(), output.display().to_string()]);
        succeed(line.collect::<Vec<String>>());
        let names = files(&output);
        (names.iter().map(|name| std::fs::read(output.join(name)).unwrap()).collect::<Vec<_>>(), names)
    };
    let (one, names) = run("1");
    assert_eq!(names, ["evaluation.csv", "evaluation.json", "report.html", "samples.csv"]);
    assert_eq!(run("3").0, one);
}
