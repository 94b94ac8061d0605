//! The schema of the run file accepts what the program accepts: all run files of the repository, every resolved one, every
//! documented key; and it refuses what the program refuses.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_tests::{run, succeed};
use serde_json::{Map, Value, json};

use super::distribution::root;

fn schema() -> Value {
    serde_json::from_str(&succeed(["schema"]).stdout).unwrap()
}

fn from_toml(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

/// What is wrong with a value, with its place; empty if the schema accepts it. Knows the keywords that occur, no others.
fn problems(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let Some(schema) = schema.as_object() else {
        let refused = (schema == &json!(false)).then(|| format!("{place}: not allowed"));
        return refused.into_iter().collect();
    };
    let mut found = Vec::new();
    let mut check = |holds: bool, what: &dyn std::fmt::Display| {
        if !holds {
            found.push(format!("{place}: {value} is not {what}"));
        }
    };
    for (keyword, expected) in schema {
        match keyword.as_str() {
            "type" => {
                let one = [expected.clone()];
                let names = expected.as_array().map_or(one.as_slice(), Vec::as_slice);
                check(names.iter().any(|name| is_of_type(value, name.as_str().unwrap())), expected);
            }
            "const" => check(value == expected, expected),
            "enum" => check(expected.as_array().unwrap().contains(value), expected),
            "minimum" => check(value.as_f64().is_none_or(|value| value >= expected.as_f64().unwrap()), expected),
            "maximum" => check(value.as_f64().is_none_or(|value| value <= expected.as_f64().unwrap()), expected),
            "minItems" => check(length(value).is_none_or(|n| n >= expected.as_u64().unwrap()), expected),
            "maxItems" => check(length(value).is_none_or(|n| n <= expected.as_u64().unwrap()), expected),
            "required" => {
                let has = |key: &Value| value.as_object().is_none_or(|value| value.contains_key(key.as_str().unwrap()));
                check(expected.as_array().unwrap().iter().all(has), &format!("with {expected}"));
            }
            "oneOf" | "anyOf" => {
                let n =
                    expected.as_array().unwrap().iter().filter(|one| problems(one, value, place).is_empty()).count();
                check(n == 1 || (n > 1 && keyword == "anyOf"), &format!("{keyword} of the forms, but {n}"));
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    let below = problems(expected, item, &format!("{place}[{i}]"));
                    check(below.is_empty(), &below.join("\n"));
                }
            }
            // The keys are checked in `problems_of_keys`.
            "$schema"
            | "title"
            | "description"
            | "default"
            | "x-taplo"
            | "properties"
            | "patternProperties"
            | "additionalProperties" => {}
            other => panic!("{place}: unknown keyword {other}"),
        }
    }
    found.extend(problems_of_keys(schema, value, place));
    found
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}

fn problems_of_keys(schema: &Map<String, Value>, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let named = schema.get("properties").and_then(|properties| properties.get(key));
        let pattern = schema.get("patternProperties").and_then(|patterns| patterns.get(format!("^{key}$")));
        if let Some(schema) = named.or(pattern).or_else(|| schema.get("additionalProperties")) {
            found.extend(problems(schema, value, &format!("{place}.{key}")));
        }
    }
    found
}

fn is_valid(schema: &Value, text: &str) -> bool {
    problems(schema, &from_toml(text), "").is_empty()
}

#[test]
fn every_run_file_and_its_resolved_form_are_valid() {
    let schema = schema();
    let mut n = 0;
    for entry in std::fs::read_dir(root().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(problems(&schema, &from_toml(&text), ""), [""; 0], "{}", path.display());
        n += 1;
        if !path.file_name().unwrap().to_string_lossy().starts_with("compare_") {
            let resolved = succeed(["train", "--dry-run", "--config", &path.display().to_string()]).stdout;
            assert_eq!(problems(&schema, &from_toml(&resolved), ""), [""; 0], "{} resolved", path.display());
        }
    }
    assert!(n >= 3, "{n}");
}

#[test]
fn every_strategy_and_head_with_its_defaults_is_valid() {
    let schema = schema();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml").display().to_string();
    std::fs::write(&file, "data = \"simulated\"\n[[attribute]]\nname = \"sex\"\n").unwrap();
    let of_masks = folder.path().join("masks.toml").display().to_string();
    let masks = "[data.generic]\ntable = \"a.csv\"\nmask = \"mask\"\n[image]\nsize = [32, 32]\n\
                 [task]\nkind = \"segmentation\"\nsegmentation = { classes = { disc = [1] } }\n";
    std::fs::write(&of_masks, masks).unwrap();
    for (what, key) in [("strategies", "strategy"), ("heads", "head")] {
        let list: Value = serde_json::from_str(&succeed(["list", what, "--json"]).stdout).unwrap();
        let listed: Vec<&String> = list[what].as_object().unwrap().keys().collect();
        assert!(listed.len() >= 6, "{list}");
        for name in listed {
            let set = format!("{key}={name}");
            let (file, task) = match set.as_str() {
                "head=binary" => (&file, "task={ kind = 'binary', binary = { horizon = 3 } }"),
                "head=segmentation" => (&of_masks, "seed=1"),
                _ => (&file, "seed=1"),
            };
            let resolved = succeed(["train", "--dry-run", "--config", file, "--set", &set, "--set", task]).stdout;
            assert!(resolved.contains(&format!("[{key}.{name}]")), "{resolved}");
            assert_eq!(problems(&schema, &from_toml(&resolved), ""), [""; 0], "{set}");
            let word = format!("{key} = \"{name}\"\n[data.simulated]\n");
            assert!(is_valid(&schema, &word), "{word}");
        }
    }
}

#[test]
fn the_schema_accepts_and_refuses_what_the_program_does() {
    let schema = schema();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml").display().to_string();
    let simulated = "[data.simulated]\n";
    let age = "[[attribute]]\nname = \"age\"\n";
    let tabular = "[data.tabular]\ntable = \"a.csv\"\nnumeric = [\"x\"]\n";
    let shifted = "[[attribute]]\nname = \"sex\"\n[shift]\nattribute = \"sex\"\nblur = 2\n";
    let valid = [
        simulated.to_owned(),
        "data = \"simulated\"\nhead = \"cox\"\nstrategy = \"swad\"\nintensity = \"unit\"".to_owned(),
        format!("{simulated}size = [32, 32]\n[training]\nschedule = \"cosine\"\nmonitor = \"c-td\""),
        format!("{simulated}[evaluation]\nreading = \"step\"\nstratify = {{ attribute = \"sex\" }}"),
        format!("{simulated}[evaluation.reading.refined]\nfactor = 20"),
        format!("{simulated}{age}threshold = 60"),
        format!("{simulated}{age}threshold = \"median\""),
        format!("{simulated}{age}threshold = [40, 60.5]"),
        format!("{simulated}{shifted}group = 0"),
        format!("{simulated}{shifted}group = \"F\"\ntime-noise = {{ fraction = [-0.2, 0.2] }}"),
        "[data.adni]\nroot = \"/data\"\nimage-list = \"a.csv\"\n[image]\nsize = [16, 16, 16]".to_owned(),
        "[data.adni]\nroot = \"/data\"\nimage_list = [\"a.csv\"]\nscan-of-day = \"best_description\"\n[image]\nsize = [16, 16, 16]"
            .to_owned(),
        "[data.areds]\nroot = \"/data\"\nlast_imaging_visit = \"field2\"".to_owned(),
        "[data.mimic-cxr]\nroot = \"/data\"\nafter_discharge = \"censored_only\"".to_owned(),
        format!("{simulated}[strategy.sam]\nadaptive = true"),
        format!("{simulated}[model]\ndropout = 0"),
        format!("{tabular}label = \"disease\"\n[task]\nkind = \"binary\"\n[head.binary]\nfocal-gamma = 2"),
        format!("{simulated}{age}threshold = 60\n[task]\nkind = \"binary\"\nbinary = {{ horizon = 3 }}\n[strategy.recalibration]\nmethod = \"isotonic\""),
        format!("estimator = \"fine-gray\"\n{tabular}[outcome]\ncause = 2\ncompeting = [1, 3]"),
        format!("{tabular}[outcome]\ncause = 1\ncompeting = [2]\ncensored = [9]\n[estimator.cause-specific]\nties = \"breslow\""),
    ];
    let invalid = [
        String::new(),
        "data = \"areds\"".to_owned(),
        "data = \"unknown\"".to_owned(),
        "[data.simulated]\n[data.areds]\nroot = \"/data\"".to_owned(),
        format!("sead = 1\n{simulated}"),
        format!("seed = -1\n{simulated}"),
        format!("estimator = \"fine-gray\"\n{tabular}[outcome]\ncause = 1"),
        format!("estimator = \"fine-gray\"\n{tabular}[outcome]\ncause = -1\ncompeting = [2]"),
        format!("estimator = \"fine-gray\"\n{tabular}[outcome]\ncause = 1\ncompeting = [2]\nother = [3]"),
        format!("{tabular}[outcome]\ncause = 1\ncompeting = [2]\n[estimator.fine-gray]\ncause = 1"),
        format!("{simulated}[task]\nkind = \"class\""),
        format!("{simulated}[task]\nkind = \"binary\"\nbinary = {{ time = 3 }}"),
        format!("seed = 1.5\n{simulated}"),
        format!("{simulated}subjects = 3"),
        format!("{simulated}[data.simulated.bias]\nmi = 1"),
        format!("{simulated}[training]\nepoch = 3"),
        format!("{simulated}[training]\nmonitor = \"loss\""),
        format!("{simulated}[training.schedule.cosine]\nwarmup = 3"),
        format!("{simulated}[strategy.sam]\nradius = 3"),
        format!("{simulated}[strategy.unknown]"),
        format!("{simulated}[strategy.laftr.stratum]\nbin = 3"),
        format!("{simulated}[head.cox]\nties = \"exact\""),
        format!("{simulated}[model]\nbackbone = \"resnet\""),
        format!("{simulated}[model.mlp]\nwidth = [3]"),
        format!("{simulated}[evaluation]\nreading = \"refined\""),
        format!("{simulated}[evaluation.reading.refined]\nfactors = 20"),
        format!("{simulated}{age}threshold = \"mean\""),
        format!("{simulated}{age}threshold = []"),
        format!("{simulated}{age}threshold = [40, \"median\"]"),
        format!("{simulated}{shifted}group = -1"),
        format!("{simulated}{shifted}"),
        "[data.generic]\ntable = \"t.csv\"\nimage_root = \"images\"".to_owned(),
        format!("{simulated}[split.k-fold]\nfold = 1"),
    ];
    for (texts, expected) in [(valid.as_slice(), true), (invalid.as_slice(), false)] {
        for text in texts {
            std::fs::write(&file, text).unwrap();
            let outcome = run(["train", "--dry-run", "--config", &file]);
            assert_eq!(outcome.code == 0, expected, "{text}\n{}", outcome.stderr);
            assert_eq!(is_valid(&schema, text), expected, "{text}\n{:?}", problems(&schema, &from_toml(text), ""));
        }
    }
    let compare =
        format!("{simulated}[compare]\nseeds = [1, 2]\n[compare.strategy.erm]\n[compare.strategy.group-dro]\n");
    assert!(is_valid(&schema, &format!("{compare}eta = 0.1")));
    assert!(!is_valid(&schema, &format!("{compare}etta = 0.1")));
}

/// The schemas at a path: below keys, the forms of a choice and the items of a list.
fn at<'a>(schema: &'a Value, path: &[&str]) -> Vec<&'a Value> {
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|form| schema.get(form)?.as_array()).flatten();
    let within = forms.chain(schema.get("items")).flat_map(|schema| at(schema, path));
    let here = match path.split_first() {
        None => vec![schema],
        Some((key, below)) => {
            schema.get("properties").and_then(|keys| keys.get(key)).map_or_else(Vec::new, |schema| at(schema, below))
        }
    };
    here.into_iter().chain(within).collect()
}

/// The words in backticks.
fn words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The keys in the tables of a page by path, with the words of the column of their range. `place` gives the path of a
/// section by its heading.
fn documented(page: &str, place: impl Fn(&str) -> Option<String>) -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(root().join("docs/src").join(page)).unwrap();
    let (mut section, mut columns, mut found) = (None, Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = place(heading);
        }
        if !line.starts_with('|') {
            columns.clear();
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if columns.is_empty() {
            columns = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        let cell = |names: &[&str]| cells.get(columns.iter().position(|name| names.contains(&name.as_str()))?).copied();
        let (Some(section), Some(keys)) = (&section, cell(&["key", "setting"])) else { continue };
        let of_head = cell(&["head", "estimator"]).map(words).unwrap_or_default();
        let range = cell(&["range", "choices", "values"]).map(words).unwrap_or_default();
        for key in words(keys) {
            let path = [section.as_str()].into_iter().chain(of_head.iter().copied()).chain([key]);
            let path: Vec<&str> = path.filter(|part| !part.is_empty()).collect();
            found.push((path.join("."), range.iter().map(|word| (*word).to_owned()).collect()));
        }
    }
    found
}

#[test]
fn every_documented_key_is_in_the_schema() {
    let schema = schema();
    let of_run_files = |heading: &str| match heading.split('`').nth(1) {
        _ if heading == "Top level" => Some(String::new()),
        Some("[head.NAME]") => Some("head".to_owned()),
        Some("[estimator.NAME]") => Some("estimator".to_owned()),
        Some(table) if table.starts_with('[') => Some(table.trim_matches(['[', ']']).to_owned()),
        _ => None,
    };
    let of_strategies = |heading: &str| Some(format!("strategy.{}", heading.strip_prefix('`')?.strip_suffix('`')?));
    let of_pretraining = |heading: &str| (heading == "`[pretrained]`").then(|| "pretrained".to_owned());
    let pages = [
        documented("run-files.md", of_run_files),
        documented("strategies.md", of_strategies),
        documented("pretraining.md", of_pretraining),
    ];
    let all: Vec<_> = pages.into_iter().flatten().collect();
    assert!(all.len() > 180, "{}", all.len());
    for (path, range) in all {
        let parts: Vec<&str> = path.split('.').collect();
        let schemas = at(&schema, &parts);
        assert!(!schemas.is_empty(), "{path} is not in the schema");
        let names: Vec<&str> = schemas
            .iter()
            .filter_map(|schema| schema.get("enum")?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for word in range.iter().filter(|word| !names.is_empty() && word.starts_with(char::is_alphanumeric)) {
            assert!(names.contains(&word.as_str()), "{path}: {word} is not one of {names:?}");
        }
        assert!(schemas.iter().any(|schema| schema.get("description").is_some()), "{path} has no description");
    }
}

#[test]
fn the_schema_is_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-file.json");
    assert_eq!(succeed(["schema", "--output", &path.display().to_string()]).stdout, "");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(written, schema());
    assert_eq!(written["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(written["required"], json!(["data"]));
    assert_eq!(written["properties"]["seed"]["default"], json!(1));
    assert_eq!(written["properties"]["image"]["properties"]["size"].get("default"), None);
}
