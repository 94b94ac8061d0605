//! What the JSON Schema of the settings needs beyond the derived one.

use schemars::Schema;
use serde_json::{Value, json};

/// Accepts every key and every name of a variant with underscores too, as the aliases of serde do. The keys are patterns,
/// so that editors do not offer them.
pub(crate) fn underscores(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let spelt = properties.iter().filter(|(key, _)| key.contains('-'));
        let spelt: Value = spelt.map(|(key, value)| (format!("^{}$", key.replace('-', "_")), value.clone())).collect();
        schema.insert("patternProperties".to_owned(), spelt);
    }
    if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
        let names = variants.iter().flat_map(names).filter(|name| name.contains('-'));
        let spelt: Vec<Value> = names.map(|name| spelling(&name.replace('-', "_"), &name)).collect();
        variants.extend(spelt);
    }
}

/// Accepts `field2` for `field-2`.
pub(crate) fn field2(schema: &mut Schema) {
    underscores(schema);
    if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
        variants.push(spelling("field2", "field-2"));
    }
}

/// The names in a part of `oneOf`.
fn names(variant: &Value) -> Vec<String> {
    let listed = variant.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(variant.get("const")).filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn spelling(name: &str, of: &str) -> Value {
    json!({ "description": format!("The same as `{of}`."), "type": "string", "const": name })
}
