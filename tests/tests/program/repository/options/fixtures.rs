//! The files that the calls of the table read: tiny tables, a run of `demo --quick`, and weights.

use std::fmt::Write as _;
use std::path::Path;

use fairtte_tests::{fairtte, generic_table, uniform, validation};
use serde_json::json;

/// Writes all of them into `folder`.
pub fn write(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let file = |name: &str, content: &str| std::fs::write(folder.join(name), content).unwrap();
    file("taken", "a file where a folder is needed");
    run_files(&file);
    curves(&file);
    classes(&file);
    masks(folder, &file);
    methods(&file);
    biased(&file);
    images(folder);
    for (name, channels) in [("gray.safetensors", 1), ("rgb.safetensors", 3)] {
        std::fs::write(folder.join(name), weights(channels)).unwrap();
    }
    let table = generic_table(&folder.join("data"), 24, |_, _| None);
    let columns = std::fs::read_to_string(table).unwrap().replace("image,", "sample,").replace(".png", "");
    file("columns.csv", &columns);
    clinic(&file);
    for line in [
        "demo --quick --output demo --set training.epochs=1 --set evaluation.replicates=5",
        "prepare --config paper.toml --tables-only",
        "train --config class.toml",
        "predict class --table clinic-other.csv --output class-other",
        "train --config causes.toml",
        "simulate --kind discs --output eyes --set n-subjects=20 --set size=24",
        "train --config eyes.toml --output masks-run",
    ] {
        let output = fairtte().args(line.split_whitespace()).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::rename(folder.join("demo/run"), folder.join("runs")).unwrap();
    std::fs::create_dir(folder.join("several")).unwrap();
    std::fs::rename(folder.join("runs"), folder.join("several/run")).unwrap();
    // The cache stays: the names of its folders depend on the times of the files.
    let evaluation = std::fs::read(folder.join("several/run/evaluation.json")).unwrap();
    std::fs::create_dir(folder.join("other-hospital")).unwrap();
    std::fs::write(folder.join("other-hospital/evaluation.json"), evaluation).unwrap();
    let other = validation::people("other", 60, 1.0);
    study(folder, &file);
    validation::write_predicted(&folder.join("other"), &folder.join("several/run"), &other, "years");
}

/// Run files of a class, of one of several causes and of masks; the first two read patients of a clinic, of which there are
/// others too.
fn clinic(file: &dyn Fn(&str, &str)) {
    let table = |rows: std::ops::Range<usize>| {
        let mut text = "pid,time,event,cause,disease,sex,x0,x1\n".to_owned();
        for row in rows {
            let [x0, x1] = std::array::from_fn(|k| 3.4 * uniform(row, k as u64) - 1.7);
            let event = -uniform(row, 2).ln() / (0.3 * x0.exp());
            let time = event.min(1.0 + 7.0 * uniform(row, 3)).max(0.01);
            let positive = uniform(row, 4) < 1.0 / (1.0 + (-2.0 * x0).exp());
            let (disease, sex) = (["no", "yes"][usize::from(positive)], ["F", "M"][usize::from(uniform(row, 5) < 0.6)]);
            let cause = [0, 1, 1, 2][row % 4];
            writeln!(text, "p{row:03},{time:.3},{},{cause},{disease},{sex},{x0:.4},{x1:.4}", row % 2).unwrap();
        }
        text
    };
    file("clinic.csv", &table(0..120));
    file("clinic-other.csv", &table(200..260));
    let run = |name: &str, further: &str| {
        let text = format!(
            "output = \"{name}\"\ncache = \"cache\"\n[[attribute]]\nname = \"sex\"\n[evaluation]\nreplicates = 5\npermutations = 9\n\
             {further}"
        );
        file(&format!("{name}.toml"), &text);
    };
    let patients = "[data.tabular]\ntable = \"clinic.csv\"\nsubject = \"pid\"\ntime-unit = \"years\"\nnumeric = [\"x0\", \"x1\"]\n";
    let network = "[model]\nbackbone = \"mlp\"\nhidden = 0\n[model.mlp]\nwidths = [4]\n[training]\nepochs = 1\n";
    run(
        "class",
        &format!(
            "{patients}exclude = [\"disease\", \"cause\"]\nlabel = \"disease\"\nlabel-value = \"yes\"\n{network}[task]\n\
             kind = \"binary\"\n"
        ),
    );
    run(
        "causes",
        &format!(
            "{patients}exclude = [\"disease\"]\nevent = \"cause\"\n[time]\nintervals = 5\n[outcome]\ncause = 1\ncompeting = [2]\n\
             [estimator.cause-specific]\n"
        ),
    );
    run(
        "eyes",
        "min-events = 3\n[data.generic]\ntable = \"eyes/manifest.csv\"\nmask = \"mask\"\n[image]\nsize = [32, 32]\n[task]\n\
         kind = \"segmentation\"\nsegmentation = { classes = { disc = [1, 2], cup = [2] }, cup = \"cup\", disc = \"disc\" }\n\
         [training]\nepochs = 1\nbatch-size = 8\n",
    );
}

/// A study that is done, and one whose first trial failed for good.
fn study(folder: &Path, file: &dyn Fn(&str, &str)) {
    fairtte_tests::patients(&folder.join("people"), 120, |_, _| ());
    let run = std::fs::read_to_string(folder.join("people/run.toml")).unwrap().replace("small-2d", "mlp");
    file("people/run.toml", &run);
    file(
        "study.toml",
        "trials = 1\n[[data]]\nrun-file = \"people/run.toml\"\n[heads]\nnames = [\"pmf\"]\n[strategies]\n\
         names = [\"sam\"]\n[set.training]\nepochs = 1\n",
    );
    let rate = json!({ "first-seconds": 1.0, "seconds": 0.1, "batches": 3, "samples-per-second": 2.5 });
    let network = json!({
        "backbone": "mlp", "shape": [16, 4], "parameters": 1, "precision": "f32", "threads": 2, "training": rate, "inference": rate
    });
    let rates = json!({ "device": "flex", "threads": 2, "version": "0.1.0", "networks": [network] });
    file("rates.json", &rates.to_string());
    for line in ["study run study.toml --output study", "study plan study.toml --output failed-study"] {
        let output = fairtte().args(line.split_whitespace()).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let manifest = std::fs::read_to_string(folder.join("failed-study/manifest.csv")).unwrap();
    let id = manifest.lines().nth(1).unwrap().split(',').nth(1).unwrap();
    let failure = json!({ "class": "data", "message": "no table", "host": "n1", "attempts": 1 }).to_string();
    let trial = folder.join("failed-study/trials").join(&id[..2]).join(id);
    std::fs::create_dir_all(&trial).unwrap();
    std::fs::write(trial.join("failed.json"), failure).unwrap();
}

fn run_files(file: &dyn Fn(&str, &str)) {
    let settings = "[[attribute]]\nname = \"sex\"\n[image]\nsize = [32, 32]\n[time]\nintervals = 5\n[head.nnet-survival]\n\
                    [strategy.erm]\n";
    let run = |name: &str, data: &str, model: &str| {
        format!(
            "name = \"{name}\"\noutput = \"output\"\ncache = \"cache\"\n{data}\n{settings}[model]\nbackbone = \"{model}\"\n"
        )
    };
    let generic = |table: &str| format!("[data.generic]\ntable = \"{table}\"\ntime-unit = \"years\"");
    let images = run("images", &generic("data/table.csv"), "small-2d");
    file("images.toml", &images);
    file("other.toml", &format!("seed = 7\n{images}"));
    file("more.toml", "[evaluation]\nreplicates = 7\n");
    let absent = run("absent", &generic("data/absent.csv"), "small-2d");
    file("absent.toml", &absent);
    file("compare.toml", &format!("{absent}[compare]\n[compare.strategy.sam]\n"));
    let tabular = "[data.tabular]\ntable = \"columns.csv\"\nname = \"patients\"\nsubject = \"subject_id\"\n\
                   time-unit = \"years\"\nfeatures = \"all\"";
    file("columns.toml", &run("columns", tabular, "mlp"));
    let areds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairtte-data/tests/fixtures/areds");
    let areds = areds.canonicalize().unwrap();
    file("paper.toml", &format!("output = \"paper\"\n[data.areds]\nroot = '{}'\n", areds.display()));
    file("simulation.toml", "[bias]\nmi-time = 1\n");
    file("about.toml", "owner = \"A laboratory\"\n");
}

/// One table with everything, and the same in separate files: 40 samples, of which 20 are in the test part.
fn curves(file: &dyn Fn(&str, &str)) {
    let times = "0,0.5,1,2,4";
    let mut table = format!("sample,subject,time,event,sex,age,clone,person,later,status,{times}\n");
    // Another model, which knows every second sample worse, and 38 of the samples.
    let mut other = table.clone();
    let mut curves = format!("sample_id,{times}\n");
    // The incidence of cause 1; every fifth sample has cause 2.
    let (mut incidence, mut incidences) = (format!("sample,time,event,sex,{times}\n"), curves.clone());
    let mut cohort = "sample_id,subject_id,time,event,sex_group,age_group\n".to_owned();
    let mut features = "sample,f0,f1,f2,f3\n".to_owned();
    let (mut split, mut train) = ("subject_id,part\n".to_owned(), "time,event\n".to_owned());
    for i in 0..40 {
        let rank = (i * 7) % 40;
        let hazard = 0.2 + 1.5 * f64::from((rank * 11) % 40) / 40.0;
        let curve = [0.0, 0.5, 1.0, 2.0, 4.0].map(|time: f64| format!("{:.6}", (-hazard * time).exp())).join(",");
        let (time, event) = (3.0 - f64::from(rank) / 14.0, u8::from(i % 3 != 0));
        let (sex, age) = (["F", "M"][usize::from(i % 4 < 2)], 50 + i);
        let old = if age > 70 { "old" } else { "young" };
        let (person, later, status) = (i / 2, time + 1.0, ["alive", "dead"][usize::from(event)]);
        writeln!(table, "s{i},p{i},{time},{event},{sex},{age},c{i},q{person},{later},{status},{curve}").unwrap();
        let worse = [0.0, 0.5, 1.0, 2.0, 4.0]
            .map(|time: f64| format!("{:.6}", (-time * (1.0 + f64::from(i % 2) * hazard)).exp()));
        if i < 38 {
            writeln!(other, "s{i},p{i},{time},{event},{sex},{age},c{i},q{person},{later},{status},{}", worse.join(","))
                .unwrap();
        }
        writeln!(curves, "s{i},{curve}").unwrap();
        let rising = [0.0, 0.5, 1.0, 2.0, 4.0].map(|time: f64| format!("{:.6}", 0.9 * (1.0 - (-hazard * time).exp())));
        let (cause, rising) = (if i % 5 == 0 { 2 } else { event }, rising.join(","));
        writeln!(incidence, "s{i},{time},{cause},{sex},{rising}").unwrap();
        writeln!(incidences, "s{i},{rising}").unwrap();
        let wave = |k: i32| f64::from(i * k + k * k).sin() + f64::from(rank * k) / 40.0;
        writeln!(features, "s{i},{},{},{},{}", wave(1), wave(2), wave(3), wave(5)).unwrap();
        writeln!(cohort, "s{i},p{i},{time},{event},{sex},{old}").unwrap();
        writeln!(split, "p{i},{}", ["test", "train", "test", "validation"][usize::try_from(i % 4).unwrap()]).unwrap();
        writeln!(train, "{},{}", f64::from(i + 1) / 12.0, i % 2).unwrap();
    }
    let rising = ["rising.csv", "rising-curves.csv"].into_iter().zip([&table, &curves]);
    rising.for_each(|(name, text)| file(name, &with_a_rise(text)));
    for (name, text) in [
        ("table.csv", table),
        ("other.csv", other),
        ("curves.csv", curves),
        ("incidence.csv", incidence),
        ("incidences.csv", incidences),
        ("features.csv", features),
        ("cohort.csv", cohort),
        ("split.csv", split),
        ("train.csv", train),
    ] {
        file(name, &text);
    }
}

/// The same table with a curve that rises a little at its end.
fn with_a_rise(table: &str) -> String {
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let mut cells: Vec<String> = lines[1].split(',').map(str::to_owned).collect();
    let last = cells.len() - 1;
    cells[last] = format!("{:.6}", cells[last - 1].parse::<f64>().unwrap() + 0.004);
    lines[1] = cells.join(",");
    lines.join("\n") + "\n"
}

/// 40 eyes: a disc (1) with a cup (2), predicted with a shift, and drawn once more.
fn masks(folder: &Path, file: &dyn Fn(&str, &str)) {
    std::fs::create_dir_all(folder.join("masks")).unwrap();
    let write = |name: &str, shift: i32, cup: i32| {
        let pixel = |x: u32, y: u32| {
            let (x, y) = (x.cast_signed() - 8 - shift, y.cast_signed() - 9);
            image::Luma([u8::from(x * x + y * y <= 36) + u8::from(x * x + y * y <= cup)])
        };
        image::GrayImage::from_fn(18, 20, pixel).save(folder.join("masks").join(name)).unwrap();
    };
    let mut text = "sample,subject,truth,predicted,other,sex,age,clone,person\n".to_owned();
    // Eyes share masks, because every call of the test copies all files.
    (0..5).for_each(|k| write(&format!("t{k}.png"), 0, 6 + k));
    (0..12).for_each(|k| write(&format!("p{k}.png"), k % 4 - 1, 5 + 3 * (k % 3)));
    (0..4).for_each(|k| write(&format!("o{k}.png"), 1, 9 - k));
    for i in 0..40 {
        let (sex, age, person) = (["F", "M"][usize::from(i % 4 < 2)], 45 + i, i / 2);
        let masks = format!("masks/t{}.png,masks/p{}.png,masks/o{}.png", i % 5, i % 12, i % 4);
        writeln!(text, "s{i},p{i},{masks},{sex},{age},c{i},q{person}").unwrap();
    }
    file("masks.csv", &text);
    let first: Vec<&str> = text.lines().take(31).collect();
    file("other-masks.csv", &(first.join("\n") + "\n"));
}

/// Probabilities of a class of 40 samples, those of another model for 38 of them, and of 30 other samples.
fn classes(file: &dyn Fn(&str, &str)) {
    let header = "sample,subject,probability,chance,label,truth,dx,time,later,event,status,sex,age,clone,person\n";
    let row = |i: usize, prefix: &str, noise: usize| {
        let positive = (i * 7) % 10 < 4;
        let probability = (3 * usize::from(positive) + (i * (11 + noise)) % 7) as f64 / 10.0 + 0.05;
        let (chance, truth) = ((i % 8) as f64 / 8.0 + 0.01, u8::from((i * 3) % 10 < 5));
        let (time, event) = (0.2 + ((i * 13) % 40) as f64 / 10.0, u8::from(!i.is_multiple_of(3)));
        let (dx, status) = (["healthy", "sick"][usize::from(i % 5 < 2)], ["alive", "dead"][usize::from(i % 4 > 1)]);
        let (sex, age) = (["F", "M"][usize::from(i % 4 < 2)], 45 + i);
        format!(
            "{prefix}{i},p{prefix}{i},{probability},{chance},{},{truth},{dx},{time},{},{event},{status},{sex},{age},c{i},q{}\n",
            u8::from(positive),
            time + 0.7,
            i / 2
        )
    };
    let table = |n: usize, prefix: &str, noise: usize| {
        header.to_owned() + &(0..n).map(|i| row(i, prefix, noise)).collect::<String>()
    };
    file("classes.csv", &table(40, "s", 0));
    file("other-classes.csv", &table(38, "s", 5));
    file("validation.csv", &table(30, "v", 2));
}

/// Values of 3 methods in 6 settings, 2 metrics and 2 trials, with other names of everything beside them.
/// Tables whose first covariate orders the times.
fn biased(file: &dyn Fn(&str, &str)) {
    for (name, turn) in [("bias.csv", 7), ("other-bias.csv", 11)] {
        let mut table = "time,event,later,late,x,level\n".to_owned();
        for i in 0..240 {
            let rank = (i * turn) % 240;
            let x = f64::from((rank * 13) % 240) + 30.0 * f64::from(i % 5);
            let (event, late) = (u8::from(i % 4 != 0), u8::from(i % 5 != 0));
            writeln!(table, "{},{event},{},{late},{x},{}", 1 + rank, 1 + (rank * 3) % 241, i % 3).unwrap();
        }
        file(name, &table);
    }
}

fn methods(file: &dyn Fn(&str, &str)) {
    let mut long = "metric,kind,setting,place,method,model,trial,seed,value,score\n".to_owned();
    let mut wide = "metric,kind,setting,place,trial,seed,a,b,c\n".to_owned();
    for i in 0..24 {
        let (metric, setting, trial) = (1 + i / 12, 1 + i / 2 % 6, 1 + i % 2);
        let mut values = Vec::new();
        for (k, method) in ["a", "b", "c"].into_iter().enumerate() {
            let value = (i * 7 + k * 5 + i * k * 3) % 13 + 2 * k * metric;
            // The trials of one method have their seeds the other way round.
            let seed = if k == 1 { 3 - trial } else { trial };
            let (kind, place, model, score) = (3 - metric, setting + 10, ["x", "y", "z"][k], value * value + k);
            writeln!(long, "{metric},{kind},{setting},{place},{method},{model},{trial},{seed},{value},{score}")
                .unwrap();
            values.push(value.to_string());
        }
        writeln!(wide, "{metric},{},{setting},{},{trial},{},{}", 3 - metric, setting + 10, 3 - trial, values.join(","))
            .unwrap();
    }
    let fewer: Vec<&str> = long.lines().take(31).collect();
    for (name, text) in [("methods.csv", &long), ("wide.csv", &wide), ("fewer.csv", &fewer.join("\n"))] {
        file(name, text);
    }
}

fn images(folder: &Path) {
    for (name, shift) in [("one.png", 0), ("two.png", 9)] {
        let shade = |x: u32, y: u32| image::Luma([u8::try_from(7 * x + 3 * y + shift).unwrap()]);
        image::GrayImage::from_fn(8, 8, shade).save(folder.join(name)).unwrap();
    }
}

/// Weights of `small-2d` for images of `channels`, as `fairtte weights import` writes them.
fn weights(channels: usize) -> Vec<u8> {
    let widths = [channels, 16, 32, 64, 64];
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), json!({ "fairtte.backbone": "small-2d" }));
    let mut data: Vec<u8> = Vec::new();
    let mut add = |key: String, shape: &[usize]| {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        data.extend((0..n).flat_map(|i| (1.0 + 0.2 * (i as f32 * 0.7).sin()).to_le_bytes()));
        header.insert(key, json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    };
    for layer in 0..4 {
        add(format!("layers.{layer}.conv.weight"), &[widths[layer + 1], widths[layer], 3, 3]);
        for part in ["gamma", "beta", "running_mean", "running_var"] {
            add(format!("layers.{layer}.norm.{part}"), &[widths[layer + 1]]);
        }
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}
