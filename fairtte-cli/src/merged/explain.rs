//! What serde and the parser say about a run file, in the words of its keys.

use toml::{Table, Value};

/// Least similarity of a name that is suggested for an unknown one, from 0 to 1.
const SIMILAR: f64 = 0.5;
/// Types of numbers and values as serde names them, and as a reader of a run file does.
const TYPES: [(&str, &str); 10] = [
    ("usize", "a whole number >= 0"),
    ("u64", "a whole number >= 0"),
    ("u32", "a whole number >= 0"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("a string", "a text"),
    ("path string", "a path"),
];
/// The same of what was found.
const FOUND: [(&str, &str); 2] =
    [("invalid type: sequence,", "invalid type: list,"), ("invalid type: map,", "invalid type: table,")];
/// What the parser says where a word is expected and the value is none.
const NO_WORD: &str = "invalid type: unit variant, expected string only";
/// A word that no setting has.
const UNKNOWN: &str = "?";

/// The key in question and advice, from serde's message.
pub(super) fn explain(path: &str, message: &str) -> (String, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field `compare`") {
        return ("compare".to_owned(), Some("run this file with `fairtte compare`".to_owned()));
    }
    if path == "data.tabular.features" && message == NO_WORD {
        return (path.to_owned(), Some("name single columns in \"numeric\" and \"categorical\"".to_owned()));
    }
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    match quoted.split_first() {
        Some((found, valid)) if unknown => {
            let already_named = path == *found || path.ends_with(&format!(".{found}"));
            let key = match path {
                "" | "." => (*found).to_owned(),
                path if already_named || message.starts_with("unknown variant") => path.to_owned(),
                path => format!("{path}.{found}"),
            };
            (key, advice(found, valid))
        }
        _ if path == "." => ("run file".to_owned(), None),
        _ => (path.to_owned(), None),
    }
}

/// The valid name that an unknown one probably means.
fn advice(found: &str, valid: &[&str]) -> Option<String> {
    if found == "evaluation" && valid.contains(&"replicates") {
        return Some("leave out \"evaluation.\": these settings are those of [evaluation]".to_owned());
    }
    let of_its_words =
        |name: &&&str| name.split('-').any(|word| word == found) || found.split('-').any(|word| word == **name);
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(found, name);
    let nearest = || {
        valid.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b))).filter(|name| similarity(name) >= SIMILAR)
    };
    let name = nearest().or_else(|| valid.iter().find(of_its_words))?;
    Some(format!("did you mean \"{name}\"?"))
}

/// The message in the words of a run file; `table` is what was read, `path` where.
pub(super) fn in_words(table: &Table, path: &str, message: &str) -> String {
    let mut message = message.replace('`', "\"").trim_end().to_owned();
    if message.starts_with("wanted exactly 1 element") {
        let mut table = table.clone();
        let chosen = value_at(&mut table, path).and_then(|value| value.as_table());
        let names: Vec<String> = chosen.into_iter().flat_map(Table::keys).map(|name| format!("\"{name}\"")).collect();
        if !names.is_empty() {
            return format!("there are {}, expected exactly one", names.join(" and "));
        }
    }
    // A number of the right type that is too large is another matter.
    let is_of_type = message.starts_with("invalid type") || message.contains("integer \"-");
    for (from, to) in TYPES.into_iter().filter(|_| is_of_type) {
        if let Some(before) = message.strip_suffix(&format!("expected {from}")) {
            message = format!("{before}expected {to}");
        }
    }
    if let Some((before, _)) = message.split_once("expected struct ") {
        message = format!("{before}expected a table");
    }
    FOUND.iter().fold(message, |message, (from, to)| message.replacen(from, to, 1))
}

/// Why the value at `path` of `table` is no word of those that are valid there, which the error of a table with an unknown word names;
/// `None` if `message` says something else.
pub(super) fn no_word(
    table: &Table,
    path: &str,
    message: &str,
    error_of: impl Fn(Table) -> Option<String>,
) -> Option<String> {
    // The latter is said of an empty table in place of a choice.
    if message != NO_WORD && !message.ends_with("found 0 elements") {
        return None;
    }
    let mut with_unknown = table.clone();
    let value = value_at(&mut with_unknown, path)?;
    let found = match &*value {
        Value::Array(_) => "list".to_owned(),
        Value::Table(table) if table.is_empty() => "empty table".to_owned(),
        Value::Table(_) => "table".to_owned(),
        value => format!("{} \"{value}\"", value.type_str()),
    };
    *value = Value::String(UNKNOWN.to_owned());
    let expected = error_of(with_unknown)
        .and_then(|error| Some(error.strip_prefix(&format!("unknown variant `{UNKNOWN}`, "))?.replace('`', "\"")))
        .unwrap_or_else(|| "expected a text".to_owned());
    Some(format!("invalid type: {found}, {expected}"))
}

/// The value at a path as `attribute[0].threshold`, in which a key may have points of its own.
fn value_at<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Value> {
    let begins = |key: &&String| {
        path.strip_prefix(key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let key = table.keys().filter(begins).max_by_key(|key| key.len())?.clone();
    let mut value = table.get_mut(&key)?;
    let mut rest = &path[key.len()..];
    while let Some((place, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        value = value.get_mut(place.parse::<usize>().ok()?)?;
        rest = after;
    }
    match rest.strip_prefix('.') {
        Some(below) => value_at(value.as_table_mut()?, below),
        None => Some(value),
    }
}

/// File and line of a key: the line that assigns it below the header of its table, or the header itself.
pub(super) fn place(origin: &str, text: &str, key: &str) -> Option<String> {
    let mut table = String::new();
    let stands_on = |line: &str| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            header.trim_matches(['[', ']', ' ']).clone_into(&mut table);
            return table == key;
        }
        let name = line.split('=').next().unwrap_or_default().trim();
        let path = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
        path == key
    };
    let line = text.lines().position(stands_on)? + 1;
    Some(format!(" ({origin}, line {line})"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_may_be_meant_is_suggested() {
        let of = |found: &str, valid: &[&str]| advice(found, valid);
        let heads = ["pmf", "cox", "nnet-survival", "mtlr"];
        assert_eq!(of("nnet", &heads).unwrap(), "did you mean \"nnet-survival\"?");
        assert_eq!(of("cxo", &heads).unwrap(), "did you mean \"cox\"?");
        assert_eq!(of("learning-rate", &["accumulate", "epochs"]), None);
        assert_eq!(of("intensity", &["event", "time"]), None);
        assert!(of("evaluation", &["replicates", "permutations"]).unwrap().starts_with("leave out \"evaluation.\""));
    }

    #[test]
    fn messages_have_the_words_of_a_run_file() {
        let table: Table = "[data.generic]\ntable = 'a.csv'\n[data.tabular]\n".parse().unwrap();
        let said = in_words(&table, "data", "wanted exactly 1 element, more than 1 element");
        assert_eq!(said, "there are \"generic\" and \"tabular\", expected exactly one");
        let said = in_words(&table, "epochs", "invalid type: string \"ten\", expected usize");
        assert_eq!(said, "invalid type: string \"ten\", expected a whole number >= 0");
        let said = in_words(&table, "cause", "invalid value: integer `5000000000`, expected u32");
        assert_eq!(said, "invalid value: integer \"5000000000\", expected u32");
        let said = in_words(&table, "cause", "invalid value: integer `-1`, expected u32");
        assert_eq!(said, "invalid value: integer \"-1\", expected a whole number >= 0");
        let said = in_words(&table, "name", "invalid type: map, expected a string");
        assert_eq!(said, "invalid type: table, expected a text");
        let said = in_words(&table, "optimiser", "invalid type: integer `1`, expected struct OptimiserConfig");
        assert_eq!(said, "invalid type: integer \"1\", expected a table");
        let said = in_words(&table, "attribute[0].threshold", "wanted exactly 1 element, more than 1 element");
        assert_eq!(said, "wanted exactly 1 element, more than 1 element");
    }

    #[test]
    fn a_value_that_is_no_word_is_shown_with_the_words_that_are_valid() {
        let table: Table = "a = [{ b = 3 }]\nc = [1]\n[d]\n'e.f' = true\n".parse().unwrap();
        let of = |path: &str, error: &str| {
            no_word(&table, path, NO_WORD, |changed| {
                assert!(changed.to_string().contains(UNKNOWN), "{changed}");
                Some(error.to_owned())
            })
        };
        let said = of("a[0].b", "unknown variant `?`, expected `x` or `y`").unwrap();
        assert_eq!(said, "invalid type: integer \"3\", expected \"x\" or \"y\"");
        assert_eq!(of("c", "something else").unwrap(), "invalid type: list, expected a text");
        assert_eq!(of("d.e.f", "").unwrap(), "invalid type: boolean \"true\", expected a text");
        assert_eq!(of("c[1]", ""), None);
        assert_eq!(no_word(&table, "c", "invalid type: sequence, expected a list", |_| None), None);
    }
}
