//! `weights export`: curves that are computed from the two exported files alone, in plain loops over numbers, are those of
//! `predictions.parquet`, for every head and every way in which networks are combined.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the numbers behind a bound are printed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairtte_data::predictions::Rising;
use fairtte_data::read_predictions;
use fairtte_data::table::Table;
use fairtte_tests::{SmallRun, fail, patients, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;

/// The two files of an export.
struct Exported {
    tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
    about: Value,
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

impl Exported {
    /// Exports `run` and reads what was written.
    fn of(run: &Path, further: &[&str]) -> Self {
        let path = run.join("m.safetensors");
        let arguments = ["weights", "export", run.to_str().unwrap(), "-o", path.to_str().unwrap()];
        succeed(arguments.iter().chain(further));
        let bytes = std::fs::read(&path).unwrap();
        let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
        let data = &bytes[8 + n..];
        let mut tensors = BTreeMap::new();
        for (name, entry) in header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__") {
            let place = |k: usize| usize::try_from(entry["data_offsets"][k].as_u64().unwrap()).unwrap();
            let values = data[place(0)..place(1)].chunks_exact(4);
            let values = values.map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()))).collect();
            let sizes = entry["shape"].as_array().unwrap().iter();
            let shape = sizes.map(|size| usize::try_from(size.as_u64().unwrap()).unwrap()).collect();
            tensors.insert(name.clone(), (shape, values));
        }
        let about = serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap();
        Self { tensors, about }
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (shape, weight) = &self.tensors[&format!("{name}weight")];
        assert_eq!(shape[1], x.len(), "{name}");
        let bias = self.tensors.get(&format!("{name}bias"));
        let product = |(k, row): (usize, &[f64])| {
            row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias.map_or(0.0, |(_, bias)| bias[k])
        };
        weight.chunks_exact(shape[1]).enumerate().map(product).collect()
    }

    /// The `mlp` and the projection below `prefix`.
    fn represent(&self, prefix: &str, x: Vec<f64>) -> Vec<f64> {
        self.linear(&format!("{prefix}projection."), &self.mlp(prefix, x))
    }

    /// The `mlp` below `prefix`.
    fn mlp(&self, prefix: &str, mut x: Vec<f64>) -> Vec<f64> {
        for layer in 0.. {
            let name = format!("{prefix}layers.{layer}.");
            if !self.tensors.contains_key(&format!("{name}dense.weight")) {
                assert!(layer > 0, "no layer below \"{prefix}\"");
                break;
            }
            x = self.linear(&format!("{name}dense."), &x).into_iter().map(|x| x.max(0.0)).collect();
            let of_norm = |part: &str| &self.tensors[&format!("{name}norm.{part}")].1;
            let (gamma, beta) = (of_norm("gamma"), of_norm("beta"));
            let (mean, variance) = (of_norm("running_mean"), of_norm("running_var"));
            for k in 0..x.len() {
                x[k] = (x[k] - mean[k]) / (variance[k] + 1e-5).sqrt() * gamma[k] + beta[k];
            }
        }
        x
    }

    /// Outputs of `network`, one per time of its baseline if the classifier reads times.
    fn outputs(&self, network: &Value, x: &[f64]) -> Vec<f64> {
        let mut z = self.represent(text(&network["encoder"]), x.to_vec());
        if let Some(code) = network["code"].as_str() {
            z = self.linear(code, &z);
        }
        let classifier = text(&network["classifier"]);
        let layers = |z: &[f64]| {
            let hidden = self.linear(&format!("{classifier}hidden."), z).into_iter().map(|x| x.max(0.0));
            self.linear(&format!("{classifier}output."), &hidden.collect::<Vec<_>>())
        };
        let scale = &self.about["layers"]["time-scale"];
        if scale.is_null() {
            return layers(&z);
        }
        let (mean, deviation) = (scale["mean"].as_f64().unwrap(), scale["deviation"].as_f64().unwrap());
        let at = |time: f64| {
            let value = if scale["log"] == true { time.ln_1p() } else { time };
            layers(&[&z[..], &[(value - mean) / deviation]].concat())[0]
        };
        numbers(&network["baseline"]["times"]).into_iter().map(at).collect()
    }

    /// The rule of the head: survival at the times of the grid.
    fn curve(&self, outputs: &[f64], baseline: &Value) -> Vec<f64> {
        let times = numbers(&self.about["grid"]["times"]);
        let cuts = numbers(&self.about["cut-points"]);
        let softplus = |x: f64| x.exp().ln_1p();
        let running = |terms: Vec<f64>| -> Vec<f64> {
            terms
                .into_iter()
                .scan(0.0, |sum, x| {
                    *sum += x;
                    Some(*sum)
                })
                .collect()
        };
        let last = |values: &[f64], time: f64| {
            let n = numbers(&baseline["times"]).iter().filter(|at| **at <= time).count();
            if n == 0 { 0.0 } else { values[n - 1] }
        };
        match text(&self.about["head"]["name"]) {
            "cox" => {
                let cumulative = numbers(&baseline["cumulative"]);
                times.iter().map(|time| (-last(&cumulative, *time) * outputs[0].exp()).exp()).collect()
            }
            "cox-time" => {
                let terms = numbers(&baseline["log-hazards"]).iter().zip(outputs).map(|(h, o)| (h + o).exp()).collect();
                let cumulative = running(terms);
                times.iter().map(|time| (-last(&cumulative, *time)).exp()).collect()
            }
            "pc-hazard" => {
                let terms = [0.0].into_iter().chain(outputs.iter().map(|o| softplus(*o))).collect();
                let cumulative = running(terms);
                times.iter().map(|time| (-line(&cuts, &cumulative, *time)).exp()).collect()
            }
            name => {
                let survival: Vec<f64> = if name == "nnet-survival" {
                    let terms = outputs.iter().map(|o| softplus(*o)).collect();
                    running(terms).into_iter().map(|h| (-h).exp()).collect()
                } else {
                    let whole = 1.0 + outputs.iter().map(|o| o.exp()).sum::<f64>();
                    let tail = |j: usize| (1.0 + outputs[j + 1..].iter().map(|o| o.exp()).sum::<f64>()) / whole;
                    (0..outputs.len()).map(tail).collect()
                };
                if self.about["grid"]["rule"] == "constant-hazard" {
                    let cumulative: Vec<f64> = survival.iter().map(|s| -s.ln()).collect();
                    return times.iter().map(|time| (-line(&cuts, &cumulative, *time)).exp()).collect();
                }
                times.iter().map(|time| line(&cuts, &survival, *time)).collect()
            }
        }
    }

    /// The prediction for inputs `x` and a level of the attribute.
    fn predict(&self, x: &[f64], level: &str) -> Vec<f64> {
        let networks = self.about["networks"].as_array().unwrap();
        let weight = |network: &Value| network["weight"].as_f64().unwrap();
        let mean = |of: &dyn Fn(&Value) -> Vec<f64>| {
            let parts = networks.iter().map(|network| of(network).into_iter().map(|v| v * weight(network)).collect());
            parts.reduce(|sum: Vec<f64>, part| sum.iter().zip(&part).map(|(a, b)| a + b).collect()).unwrap()
        };
        let of_network = |network: &Value| self.curve(&self.outputs(network, x), &network["baseline"]);
        let curve = match text(&self.about["combination"]["rule"]) {
            "one-network" => of_network(&networks[0]),
            "mean-of-outputs" => self.curve(&mean(&|network| self.outputs(network, x)), &networks[0]["baseline"]),
            "mean-of-curves" => mean(&of_network),
            "own-group" => of_network(networks.iter().find(|network| network["group"] == level).unwrap()),
            other => panic!("{other}"),
        };
        let maps = &self.about["recalibration"]["maps"];
        if maps.is_null() {
            return curve;
        }
        let levels = self.about["groups"]["levels"].as_array().unwrap();
        let map = &maps[levels.iter().position(|known| known == level).unwrap()];
        mapped(map, &curve)
    }
}

/// The value at `x` on the line through the points (`at`, `values`).
fn line(at: &[f64], values: &[f64], x: f64) -> f64 {
    let k = at.iter().filter(|point| **point <= x).count().clamp(1, at.len() - 1);
    let share = (x - at[k - 1]) / (at[k] - at[k - 1]);
    values[k - 1] + (values[k] - values[k - 1]) * share
}

/// A recalibrated curve on the cut points.
fn mapped(map: &Value, curve: &[f64]) -> Vec<f64> {
    if let Some(exponent) = map["exponent"].as_f64() {
        return curve.iter().map(|s| s.powf(exponent)).collect();
    }
    if let Some(knots) = map["knots"].as_array() {
        let knots: Vec<Vec<f64>> = knots.iter().map(numbers).collect();
        let column = |k: usize| knots.iter().map(|knot| knot[k]).collect::<Vec<_>>();
        return curve.iter().map(|s| 1.0 - line(&column(0), &column(1), 1.0 - s)).collect();
    }
    let shifts = numbers(&map["shifts"]);
    let before = [1.0].into_iter().chain(curve.iter().copied());
    let hazards = curve.iter().zip(before).map(|(now, before)| 1.0 - now / before);
    let shifted = hazards.zip(&shifts).map(|(h, b)| 1.0 / (1.0 + (-((h / (1.0 - h)).ln() + b)).exp()));
    shifted
        .scan(1.0, |s, h| {
            *s *= 1.0 - h;
            Some(*s)
        })
        .collect()
}

/// Inputs and level of every patient, by the encodings of the export.
fn inputs(folder: &Path, about: &Value) -> BTreeMap<String, (Vec<f64>, String)> {
    let table = std::fs::read_to_string(folder.join("patients.csv")).unwrap();
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = rows.next().unwrap();
    let place = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let encode = |row: &[&str], column: &Value| -> Vec<f64> {
        let cell = row[place(text(&column["column"]))];
        let numeric = &column["encoding"]["numeric"];
        if let Some(mean) = numeric["mean"].as_f64() {
            let deviation = numeric["standard-deviation"].as_f64().or(numeric["standard_deviation"].as_f64()).unwrap();
            return vec![(cell.parse::<f64>().unwrap() - mean) / deviation];
        }
        let levels = column["encoding"]["categorical"]["levels"].as_array().unwrap();
        levels.iter().map(|level| f64::from(u8::from(level == cell))).collect()
    };
    let encodings = about["input"]["encodings"]["columns"].as_array().unwrap();
    let row = |row: Vec<&str>| {
        let x: Vec<f64> = encodings.iter().flat_map(|column| encode(&row, column)).collect();
        (row[place("pid")].to_owned(), (x, row[place("sex")].to_owned()))
    };
    rows.map(row).collect()
}

/// The largest difference between curves recomputed from the export of `run` and those of its predictions.
fn largest_difference(run: &SmallRun, further: &[&str], predictions: &Path) -> (f64, Exported) {
    let exported = Exported::of(&run.output(), further);
    let inputs = inputs(&run.folder, &exported.about);
    let table = read_predictions(predictions, Rising::Refuse).unwrap();
    assert_eq!(table.grid, numbers(&exported.about["grid"]["times"]));
    let mut largest = 0.0_f64;
    for (sample, row) in table.samples.iter().zip(table.survival.rows()) {
        let (x, level) = &inputs[&sample.to_string()];
        for (found, expected) in exported.predict(x, level).into_iter().zip(row) {
            assert!(found.is_finite());
            largest = largest.max((found - expected).abs());
        }
    }
    (largest, exported)
}

fn trained(folder: &Path, sets: &[&str]) -> SmallRun {
    let run = patients(folder, 160, |_, _| ());
    let run = sets.iter().fold(run, |run, set| run.set(set));
    run.set("optimiser.learning-rate=0.01").set("time.intervals=6")
}

#[test]
fn curves_from_the_exported_numbers_are_those_of_the_run() {
    let cases: [&[&str]; 13] = [
        &["head.nnet-survival={}"],
        &["head.pmf={}", "time.points-per-interval=3"],
        &["head.deephit={}", "time.points-per-interval=2", "time.interpolation=constant-hazard"],
        &["head.pc-hazard={}", "time.points-per-interval=2"],
        &["head.cox={}"],
        &["head.cox-time.log-time=true"],
        &["strategy.controlled-attribute.min-events=2", "head.cox={}"],
        &["strategy.domain-independent={}"],
        &["strategy.domain-independent.inference=own-group", "head.cox-time={}"],
        &["strategy.odr.code=5"],
        &["strategy.recalibration={}"],
        &["strategy.recalibration.method=hazard-intercept"],
        &["strategy.recalibration={ method = \"quantile\", min-events = 1 }"],
    ];
    let mut rules = Vec::new();
    for sets in cases {
        let folder = tempfile::tempdir().unwrap();
        let run = trained(folder.path(), sets);
        run.train();
        let (largest, exported) = largest_difference(&run, &[], &run.output().join("predictions.parquet"));
        println!("{sets:?}: largest difference {largest:.1e}");
        assert!(largest < 2e-6, "{sets:?}: {largest}");
        let is_training_only = |name: &&String| name.contains("adversar") || name.contains("group-classifier");
        assert_eq!(exported.tensors.keys().find(is_training_only), None);
        rules.push(text(&exported.about["combination"]["rule"]).to_owned());
    }
    let [one, curves, outputs, own] = ["one-network", "mean-of-curves", "mean-of-outputs", "own-group"];
    assert_eq!(rules, [one, one, one, one, one, one, curves, outputs, own, one, one, one, one]);
}

#[test]
fn an_epoch_is_chosen_as_predict_chooses_it_and_only_prediction_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), &["strategy.laftr={}", "training.epochs=4"]);
    run.train();
    let output = run.output();
    let text_of = |path: &Path| path.to_str().unwrap().to_owned();
    let (largest, exported) = largest_difference(&run, &[], &output.join("predictions.parquet"));
    assert!(largest < 2e-6, "{largest}");
    assert_eq!(exported.tensors.keys().filter(|name| name.contains("adversary")).count(), 0);
    let record: Value = serde_json::from_slice(&std::fs::read(output.join("model/model.json")).unwrap()).unwrap();
    let epochs = record["epochs"].as_object().unwrap();
    assert!(epochs.len() > 1, "rules chose several epochs: {epochs:?}");
    for (epoch, kept) in epochs {
        let by_rule = Exported::of(&output, &["--epoch", text(&kept["rules"][0])]);
        assert_eq!(by_rule.about["run"]["epoch"].to_string(), *epoch);
        assert_eq!(by_rule.about["run"]["files"], kept["files"]);
        assert_eq!(by_rule.about, Exported::of(&output, &["--epoch", epoch]).about);
        let is_default = by_rule.about["weights"]["sha256"] == exported.about["weights"]["sha256"];
        assert_eq!(is_default, record["epoch"] == epoch.parse::<u64>().unwrap());
    }

    let path = text_of(&output.join("m.safetensors"));
    let sentence = "--epoch: \"99\" is no epoch whose weights were kept, expected one of ";
    fail(["weights", "export", &text_of(&output), "-o", &path, "--epoch", "99"], CONFIG, sentence);
    let sentence = "expected a name that ends in .safetensors";
    fail(["weights", "export", &text_of(&output), "-o", "m.pt"], CONFIG, sentence);
}

/// The folder of the weights of the epoch of the predictions.
fn weights_of(run: &Path) -> PathBuf {
    let record: Value = serde_json::from_slice(&std::fs::read(run.join("model/model.json")).unwrap()).unwrap();
    run.join(format!("model/epoch-{:05}", record["epoch"].as_u64().unwrap()))
}

#[test]
fn inspect_reads_a_run_its_weights_and_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), &["head.cox={}"]);
    run.train();
    let output = run.output();
    let inspect = |path: &Path| -> Value {
        serde_json::from_str(&succeed(["weights", "inspect", path.to_str().unwrap(), "--json"]).stdout).unwrap()
    };
    let of_run = inspect(&output);
    assert!(text(&of_run["is"]).ends_with("mlp, head cox, strategy erm"), "{}", of_run["is"]);
    let record = weights_of(&output).join("network.weights.bpk");
    let of_record = inspect(&record);
    assert_eq!(of_record["container"], "burnpack");
    let exported = Exported::of(&output, &[]);
    let of_export = inspect(&output.join("m.safetensors"));
    assert_eq!(of_export["sha256"], exported.about["weights"]["sha256"]);
    assert!(
        text(&of_export["is"]).starts_with("a trained model exported by fairtte: mlp in the layout native, head cox")
    );
    assert!(text(&of_export["is"]).ends_with("m.json says how to compute its curves"));
    // 5 inputs, 32, 32, 64, 16, 1; two batch norms of 32 with 2 running statistics each; no bias of the output.
    let n_inputs = exported.about["input"]["names"].as_array().unwrap().len();
    let parameters = (n_inputs + 1) * 32 + 33 * 32 + 4 * 32 + 33 * 64 + 65 * 16 + 16;
    for found in [&of_export["parameters"], &of_record["parameters"], &exported.about["weights"]["parameters"]] {
        assert_eq!(found.as_u64().unwrap(), parameters as u64);
    }
    assert_eq!(of_record["numbers"].as_u64().unwrap(), (parameters + 4 * 32) as u64);
    let shapes = |of: &Value| -> usize { of["tensors"].as_array().unwrap().len() };
    assert_eq!(shapes(&of_record), shapes(&of_export));
    let file = &of_run["epochs"][0]["files"];
    let network = file.as_array().unwrap().iter().find(|file| file["file"] == "network.weights.bpk").unwrap();
    assert_eq!(network["parameters"].as_u64().unwrap(), parameters as u64);

    let other = folder.path().join("other.safetensors");
    std::fs::copy(output.join("m.safetensors"), &other).unwrap();
    assert!(text(&inspect(&other)["is"]).ends_with("m.json says how to compute its curves, but is not here"));
    let import = ["weights", "import", record.to_str().unwrap(), "--arch", "small-2d"];
    fail(import, 4, "it is a record of a run, which `fairtte weights export` makes a file of weights of");
    let nowhere = "it is a folder without run.toml, expected a file of weights or the folder of a run";
    fail(
        ["weights", "inspect", folder.path().join("cache").parent().unwrap().join("run/model").to_str().unwrap()],
        4,
        nowhere,
    );

    let (package, own) = (folder.path().join("package.safetensors"), folder.path().join("package.json"));
    std::fs::write(&own, "{\"name\": \"site\"}").unwrap();
    let export = ["weights", "export", output.to_str().unwrap(), "-o", package.to_str().unwrap()];
    fail(export, CONFIG, "package.json would be overwritten and is no description of exported weights");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "{\"name\": \"site\"}");
    assert!(!package.exists());

    let mut bytes = std::fs::read(&record).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&record, bytes).unwrap();
    fail(["weights", "inspect", output.to_str().unwrap()], 4, "its content has changed since it was written (BLAKE3)");
    let export = ["weights", "export", output.to_str().unwrap(), "-o", other.to_str().unwrap()];
    fail(export, 4, "its content has changed since it was written (BLAKE3)");
}

#[test]
fn exported_weights_start_another_training_with_the_same_backbone() {
    let folder = tempfile::tempdir().unwrap();
    let first = SmallRun::new(&folder.path().join("first")).set("training.epochs=1");
    first.train();
    let exported = Exported::of(&first.output(), &[]);
    let path = first.output().join("m.safetensors");
    let second = SmallRun::new(&folder.path().join("second"))
        .set("training.epochs=1")
        .set("seed=9")
        .set(&format!("pretrained.path='{}'", path.display()))
        .set("pretrained.freeze=all-but-head");
    second.train();
    let frozen = Exported::of(&second.output(), &[]);
    let mut n = 0;
    for (name, tensor) in exported.tensors.iter().filter(|(name, _)| name.starts_with("layers.")) {
        assert_eq!(&frozen.tensors[name], tensor, "{name}");
        n += 1;
    }
    assert_eq!(n, 20, "four layers of a convolution and four vectors of a norm");
    assert_ne!(frozen.tensors["projection.weight"], exported.tensors["projection.weight"]);
    assert_eq!(frozen.about["run"]["pretrained"]["sha256"], exported.about["weights"]["sha256"]);
}

/// Features by sample.
fn features(path: &Path) -> BTreeMap<String, Vec<f64>> {
    let table = Table::read(path).unwrap();
    let names = table.names().into_iter().filter(|name| *name != "sample_id");
    let columns: Vec<Vec<Result<f64, String>>> = names.map(|name| table.numbers(name).unwrap()).collect();
    let row = |row: usize| columns.iter().map(|column| column[row].clone().unwrap()).collect();
    let samples = table.text("sample_id").unwrap().into_iter().enumerate();
    samples.map(|(at, sample)| (sample.unwrap(), row(at))).collect()
}

#[test]
fn features_are_those_of_the_exported_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), &["model.representation=7"]);
    succeed(run.arguments("train"));
    let exported = Exported::of(&run.output(), &[]);
    let prefix = text(&exported.about["networks"][0]["encoder"]).to_owned();
    let inputs = inputs(&run.folder, &exported.about);
    for layer in ["backbone", "representation"] {
        let expected = |x: &[f64]| match layer {
            "backbone" => exported.mlp(&prefix, x.to_vec()),
            _ => exported.represent(&prefix, x.to_vec()),
        };
        succeed(["features", &run.output().display().to_string(), "--layer", layer]);
        let found = features(&run.output().join(format!("features-{layer}.parquet")));
        assert_eq!(found.len(), inputs.len(), "{layer}");
        for (sample, (x, _)) in &inputs {
            let expected = expected(x);
            assert_eq!(found[sample].len(), expected.len(), "{layer}");
            for (found, expected) in found[sample].iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                    "{layer} of {sample}: {found}, {expected}"
                );
            }
        }
    }
}

// The exported backbone is that of the run, so its features are too; the crop to the centre of both is part of the inputs.
#[test]
fn features_of_a_file_of_weights_are_those_of_the_run_that_exported_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("augmentation.crop=[24, 24]").set("augmentation.flip=\"horizontal\"");
    succeed(run.arguments("train"));
    let (of_run, weights) = (run.output().display().to_string(), folder.path().join("weights.safetensors"));
    let (weights, config) = (weights.display().to_string(), run.output().join("run.toml").display().to_string());
    succeed(["weights", "export", &of_run, "--output", &weights]);
    succeed(["features", &of_run]);
    let call = |name: &str, more: &[&str]| {
        let output = folder.path().join(name);
        let shown = output.display().to_string();
        let arguments = ["features", "--pretrained", &weights, "--config", &config, "--output", &shown];
        succeed(arguments.iter().chain(more));
        features(&output)
    };
    let (expected, found) = (features(&run.output().join("features-backbone.parquet")), call("a.parquet", &[]));
    assert_eq!((expected.len(), &expected), (120, &found));
    let test = call("test.parquet", &["--part", "test"]);
    assert_eq!(test.len(), 24);
    // In batches of other samples the sums of a convolution may be rounded otherwise.
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * (1.0 + a.abs());
    assert!(test.iter().all(|(sample, values)| expected[sample].iter().zip(values).all(is_close)));
    let whole = call("whole.parquet", &["--set", "augmentation={}"]);
    assert!(whole != expected, "without the crop the images are others");
    // The file of another crop is written anew.
    assert_eq!(call("a.parquet", &["--set", "augmentation={}"]), whole);
}
