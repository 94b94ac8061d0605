//! Settings from JSON, refused in terms of the caller's arguments: name, value, and what was expected.

use pyo3::PyResult;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::errors::metric_error;

/// Settings from JSON.
///
/// # Errors
/// `MetricError` that names the first setting that is refused, its value and what was expected.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        let sentence = of_one_setting::<T>(json);
        metric_error(sentence.unwrap_or_else(|| in_words(without_place(&error.to_string()))))
    })
}

/// A message of serde without the place in the JSON, which the caller did not write.
pub(crate) fn without_place(message: &str) -> &str {
    message.split(" at line ").next().unwrap_or(message)
}

/// The error of the first setting that is refused alone; serde does not say which one it read.
fn of_one_setting<T: DeserializeOwned>(json: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(json).ok()?;
    fields.into_iter().find_map(|(key, value)| {
        let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())])).to_string();
        let error = serde_json::from_str::<T>(&alone).err()?.to_string();
        Some(refusal(&argument(&key), &key, &value, without_place(&error)))
    })
}

/// The sentence on the argument `name`, whose setting `key` has a `value` that serde refuses with a `message`.
pub(crate) fn refusal(name: &str, key: &str, value: &Value, message: &str) -> String {
    if let Some(others) = message.strip_prefix(&format!("unknown field `{key}`, expected ")) {
        return format!("{name} is no argument, expected {}", others.replace('-', "_").replace('`', ""));
    }
    let expected = message.split_once(", expected ").map(|(_, expected)| in_words(expected));
    expected.map_or_else(
        || format!("{name} is {value}: {}", in_words(message)),
        |expected| format!("{name} is {value}, expected {expected}"),
    )
}

/// The argument of a setting.
pub(crate) fn argument(setting: &str) -> String {
    match setting {
        "times" => "eval_times".to_owned(),
        "n-permutations" => "permutations".to_owned(),
        "n-replicates" => "replicates".to_owned(),
        "confidence level" => "level".to_owned(),
        other => other.replace('-', "_"),
    }
}

/// Types of Rust in words, and words in quotes.
fn in_words(expected: &str) -> String {
    match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number >= 0".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a map" => "a dict".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" => "text".to_owned(),
        "a boolean" => "True or False".to_owned(),
        other if other.starts_with("struct ") => "a dict of its settings".to_owned(),
        other if other.contains(" enum ") || other.starts_with("enum ") => "a word or a dict".to_owned(),
        other => other.replace('`', "\""),
    }
}
