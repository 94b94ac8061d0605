//! A derived schema without what TOML has no value for and what editors have no use for.

use serde_json::{Map, Value, json};

/// Removes null, formats of numbers and the defaults of whole tables, lists the names of an enum in one place, and turns
/// documentation into plain text, in a schema and all schemas in it.
pub(super) fn simplify(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["properties", "patternProperties"] {
        if let Some(Value::Object(schemas)) = object.get_mut(key) {
            schemas.values_mut().for_each(simplify);
        }
    }
    for key in ["oneOf", "anyOf", "prefixItems"] {
        if let Some(Value::Array(schemas)) = object.get_mut(key) {
            schemas.iter_mut().for_each(simplify);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(schema) = object.get_mut(key) {
            simplify(schema);
        }
    }
    object.remove("format");
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = plain_text(text);
    }
    without_null(object);
    list_names(object);
    describe_choices(object);
    if object.get("default").is_some_and(|default| default.is_object() && object.contains_key("properties")) {
        object.remove("default");
    }
}

/// TOML has no null: an optional key is left out.
fn without_null(object: &mut Map<String, Value>) {
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(names)) = object.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    let Some(Value::Array(schemas)) = object.get_mut("anyOf") else { return };
    schemas.retain(|schema| schema.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = schemas.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// An enum of documented names as one list, so that an editor offers its key once, with the default.
fn list_names(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("oneOf") else { return };
    let (mut names, mut about) = (Vec::new(), Vec::new());
    for variant in variants {
        let description = variant.get("description").unwrap_or(&Value::Null);
        let listed = variant.get("enum").and_then(Value::as_array);
        if listed.is_none() && variant.get("const").is_none() {
            return;
        }
        for name in listed.into_iter().flatten().chain(variant.get("const")) {
            names.push(name.clone());
            about.push(description.clone());
        }
    }
    object.remove("oneOf");
    object.insert("type".to_owned(), json!("string"));
    object.insert("enum".to_owned(), Value::Array(names));
    // The place where taplo looks for the documentation of each name.
    object.insert("x-taplo".to_owned(), json!({ "docs": { "enumValues": about } }));
}

/// Gives the key of a choice the description of the choice if it has none of its own.
fn describe_choices(object: &mut Map<String, Value>) {
    for choice in object.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let about = choice.get("description").cloned();
        let keys = choice.get_mut("properties").and_then(Value::as_object_mut);
        let settings = keys.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
        for (settings, about) in settings.zip(about) {
            settings.entry("description").or_insert(about);
        }
    }
}

/// The paragraphs of a documentation before its first example or table, without links.
fn plain_text(documentation: &str) -> String {
    let mut paragraphs = vec![String::new()];
    for line in documentation.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with('|') {
            break;
        }
        match paragraphs.last_mut() {
            Some(paragraph) if !line.is_empty() => {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    without_links(&paragraphs.join("\n\n")).replace("\\[", "[").replace("\\]", "]")
}

/// `` [`Name`](path) `` and `` [`Name`] `` as `` `Name` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, linked)) = rest.split_once("[`") {
        let Some((name, after)) = linked.split_once("`]") else { break };
        plain.extend([before, "`", name, "`"]);
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}
