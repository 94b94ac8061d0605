//! `fairtte schema`: a JSON Schema of the run file, generated from the types that read it.
//!
//! The derived schema states what serde accepts. Here it becomes what a run file may say: choices by a plain word, the
//! table `[compare]`, no defaults that depend on other keys. What TOML or an editor has no use for is removed in `plain.rs`.

mod plain;

use std::io::Write as _;

use fairtte_data::write_atomically;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::print;
use crate::CliError;
use crate::args::Schema;
use crate::merged::TABLES;
use crate::progress::say;
use crate::run_file::RunFile;

/// Keys whose derived default is replaced when a run file is read: it depends on the data.
const DEPENDENT: [&str; 4] = ["attribute", "image", "image.size", "image.channels"];

/// Prints the schema or writes it to a file.
pub(super) fn run(arguments: &Schema) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(&of_run_file()).map_err(|error| CliError::Bug(error.to_string()))?;
    let Some(path) = &arguments.output else {
        print(text);
        return Ok(());
    };
    write_atomically(path, |file| writeln!(file, "{text}"))?;
    say(format!("wrote {}", path.display()));
    Ok(())
}

/// All schemas are inline: editors ignore the description of a key beside a reference to another schema.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true)
}

fn of_run_file() -> Value {
    let mut schema = settings().into_generator().into_root_schema_for::<RunFile>().to_value();
    schema["title"] = json!("Run file of FairTTE");
    schema["properties"]["compare"] = compare(&schema["properties"]["strategy"], &schema["properties"]["estimator"]);
    plain::simplify(&mut schema);
    for path in DEPENDENT {
        if let Some(Value::Object(key)) = at(&mut schema, path) {
            key.remove("default");
        }
    }
    for path in TABLES {
        if let Some(choice) = at(&mut schema, path) {
            accept_names(choice);
        }
    }
    schema
}

/// The schema of a key by its path.
fn at<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(schema, |schema, key| schema.get_mut("properties")?.get_mut(key))
}

/// Accepts the plain name of a choice that needs no settings, and any name where the choices are not known.
fn accept_names(choice: &mut Value) {
    let Some(choice) = choice.as_object_mut() else { return };
    match choice.get_mut("oneOf") {
        Some(Value::Array(variants)) => {
            let names: Vec<String> = variants.iter().filter_map(named_without_settings).collect();
            variants.push(json!({ "description": "With its default settings.", "type": "string", "enum": names }));
        }
        _ => {
            choice.insert("type".to_owned(), json!(["object", "string"]));
        }
    }
}

fn named_without_settings(variant: &Value) -> Option<String> {
    let (name, settings) = variant.get("properties")?.as_object()?.iter().next()?;
    settings.get("required").is_none().then(|| name.clone())
}

/// Table `[compare]`, in which `[compare.strategy]` holds the settings of several strategies by name.
#[cfg(feature = "train")]
fn compare(strategy: &Value, estimator: &Value) -> Value {
    let mut schema = settings().into_generator().into_root_schema_for::<super::compare::CompareConfig>().to_value();
    for (key, choice) in [("strategy", strategy), ("estimator", estimator)] {
        schema["properties"][key]["properties"] = Value::Object(settings_by_name(choice));
        schema["properties"][key]["additionalProperties"] = json!(false);
    }
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
    }
    schema
}

/// The settings of every variant of a choice, by its name; the choice may be optional.
#[cfg(feature = "train")]
fn settings_by_name(choice: &Value) -> serde_json::Map<String, Value> {
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|form| choice[form].as_array()).flatten();
    let mut found = serde_json::Map::new();
    for form in forms {
        let own = form["properties"].as_object().into_iter().flatten();
        found.extend(own.map(|(name, settings)| (name.clone(), settings.clone())));
        found.extend(settings_by_name(form));
    }
    found
}

/// Table `[compare]`, which is not read without the feature `train`.
#[cfg(not(feature = "train"))]
fn compare(_: &Value, _: &Value) -> Value {
    json!({ "description": "Table of `fairtte compare`.", "type": "object" })
}
