//! Settings merged from files and arguments: later files take precedence over earlier ones, `--set` over all files. A
//! variant (data set, head, strategy) is chosen by the name of its table; naming another one later replaces the earlier
//! one. A wrong key is reported with its place and the nearest valid name.

mod explain;

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use self::explain::{explain, in_words, no_word, place};
use crate::CliError;

/// Tables in which the name of one sub-table is a choice, by their whole path: `[compare.strategy]` holds several.
const CHOICES: [&str; 9] = [
    "data",
    "head",
    "strategy",
    "estimator",
    "training.schedule",
    "evaluation.reading",
    "reading",
    "evaluation.sensitivity.model",
    "sensitivity.model",
];
/// The choices that are always tables, so that a plain word means the defaults of a table: `--set strategy=swad`.
pub(crate) const TABLES: [&str; 5] = ["data", "head", "strategy", "estimator", "training.schedule"];

/// Tables that a run file need not have.
const OPTIONAL: [&str; 6] = ["outcome", "pretrained", "shift", "estimator", "task.binary", "task.segmentation"];

/// The table that trains an estimator in place of a network.
pub(crate) const ESTIMATOR: &str = "estimator";
/// The tables about networks, which an estimator has none of.
pub(crate) const OF_NETWORKS: [&str; 8] =
    ["model", "pretrained", "head", "strategy", "optimiser", "training", "augmentation", "intensity"];

fn is_choice(path: &[&str]) -> bool {
    CHOICES.contains(&path.join(".").as_str())
}

/// Settings merged from files and arguments, with the texts in which the places of keys are searched.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    table: Table,
    sources: Vec<(String, String)>,
    sets: Vec<String>,
}

impl Merged {
    /// Adds a file; returns whether it names a data set.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<bool, CliError> {
        let failed = |source| {
            // The folders of runs and studies have the file that they were made of.
            let named = ["run.toml", "study.toml"].into_iter().find(|name| path.join(name).is_file());
            let source = match named {
                Some(name) => std::io::Error::other(format!("it is a folder, expected a file such as its {name}")),
                None if path.is_dir() => std::io::Error::other("it is a folder, expected a TOML file"),
                None => source,
            };
            CliError::ReadRunFile { path: path.to_owned(), source }
        };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        self.add_text(&text, &path.display().to_string())
    }

    /// Adds a text; returns whether it names a data set.
    pub(crate) fn add_text(&mut self, text: &str, origin: &str) -> Result<bool, CliError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map_or_else(String::new, |line| format!(", line {line}"));
            // The message alone does not say which key.
            let is_twice = error.message() == "duplicate key";
            let named = error.span().filter(|_| is_twice).and_then(|span| text.get(span));
            let named = named.map_or_else(String::new, |key| format!(" \"{}\"", key.trim()));
            CliError::Toml { origin: format!("{origin}{place}"), message: format!("{}{named}", error.message()) }
        })?;
        let names_data = table.contains_key("data");
        merge(&mut self.table, table);
        self.sources.push((origin.to_owned(), text.to_owned()));
        Ok(names_data)
    }

    pub(crate) fn set_all(&mut self, sets: &[String]) -> Result<(), CliError> {
        self.sets.extend(sets.iter().cloned());
        sets.iter().try_for_each(|set| self.set(set))
    }

    fn set(&mut self, set: &str) -> Result<(), CliError> {
        let malformed = |problem: &str| CliError::Config {
            key: format!("--set {set}"),
            message: problem.to_owned(),
            place: String::new(),
            help: Some("write --set key.path=value, for example --set training.epochs=3".to_owned()),
        };
        let (path, text) = set.split_once('=').ok_or_else(|| malformed("there is no = in it"))?;
        // A bare word is text, so that --set device='"flex"' is not needed.
        let value = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        let keys: Vec<&str> = path.split('.').collect();
        let (last, parents) = keys.split_last().filter(|_| !path.is_empty()).ok_or_else(|| malformed("no key"))?;
        let value = match value {
            Value::String(word) if TABLES.contains(&path) => chosen_by_name(&word),
            value => value,
        };
        let mut node = &mut self.table;
        let mut keys = parents.iter().peekable();
        let mut walked = Vec::new();
        while let Some(key) = keys.next() {
            walked.push(*key);
            let entry = node.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Array(items) = entry {
                let n = items.len();
                let index = keys.next().and_then(|key| key.parse::<usize>().ok());
                let item = index.and_then(|index| items.get_mut(index)).and_then(Value::as_table_mut);
                let problem = format!("{key} has {n} entries, expected {key}.0 to {key}.{}", n.saturating_sub(1));
                node = item.ok_or_else(|| malformed(&problem))?;
                continue;
            }
            if is_choice(&walked) && entry.is_str() {
                *entry = Value::Table(Table::new()); // another choice was written as a plain word
            }
            if !entry.is_table() {
                return Err(malformed(&format!("{key} is a value, not a table")));
            }
            if is_choice(&walked) {
                let chosen = keys.peek().map_or(*last, |next| **next);
                keep_only(entry.as_table_mut().expect("checked above"), chosen);
            }
            node = entry.as_table_mut().expect("checked above");
        }
        node.insert((*last).to_owned(), value);
        Ok(())
    }

    /// Adds a table that is no file.
    pub(crate) fn add_table(&mut self, table: Table, origin: &str) {
        merge(&mut self.table, table);
        self.sources.push((origin.to_owned(), String::new()));
    }

    /// Whether a key may apply: none of the choices in its path is another one. `strategy.sam.rho` does only with the strategy
    /// `sam`, and `pretrained.path` only where weights are given.
    pub(crate) fn has_in_use(&self, key: &str) -> bool {
        let keys: Vec<&str> = key.split('.').collect();
        if self.table.contains_key(ESTIMATOR) && OF_NETWORKS.contains(&keys[0]) {
            return false;
        }
        let mut node = &self.table;
        for (i, name) in keys.iter().enumerate() {
            match node.get(*name) {
                Some(Value::Table(table)) => node = table,
                found => {
                    return found.is_some()
                        || !(is_choice(&keys[..i]) || OPTIONAL.contains(&keys[..=i].join(".").as_str()));
                }
            }
        }
        true
    }

    /// Whether a key of the first level is given.
    #[cfg(feature = "train")]
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether a key of the first level is given and is a table.
    #[cfg(feature = "train")]
    pub(crate) fn has_table(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(Value::is_table)
    }

    /// Names a run without a name after its file.
    pub(crate) fn name_after_file(&mut self) {
        self.name_after_file_below("runs");
    }

    /// The same with another folder for results.
    pub(crate) fn name_after_file_below(&mut self, results: &str) {
        let stem = self.sources.last().map(|(origin, _)| Path::new(origin)).and_then(Path::file_stem);
        let stem = stem.map_or_else(|| "run".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let folder = Path::new(results).join(&stem).display().to_string();
        self.table.entry("name").or_insert(Value::String(stem));
        self.table.entry("output").or_insert(Value::String(folder));
    }

    /// Sets the sizes and backbones of the paper for the kind of input, if the run file has none.
    pub(crate) fn choose_by_data(&mut self) {
        let table = |table: &Table, key: &str| table.get(key).and_then(Value::as_table).cloned().unwrap_or_default();
        let data = table(&self.table, "data");
        let volumes = |data: &Table| table(data, "simulated").get("kind").and_then(Value::as_str) == Some("volumes");
        let (size, channels): (&[i64], _) = match data.keys().next().map(String::as_str) {
            Some("mimic-cxr" | "areds") => (&[224, 224], 3),
            Some("adni") => (&[96, 128, 128], 1),
            Some("simulated") if volumes(&data) => (&[32, 32, 32], 1),
            _ => (&[64, 64], 1),
        };
        let image = self.table.entry("image").or_insert_with(|| Value::Table(Table::new()));
        if let Some(image) = image.as_table_mut() {
            let size = size.iter().copied().map(Value::Integer).collect();
            image.entry("size").or_insert(Value::Array(size));
            image.entry("channels").or_insert(Value::Integer(channels));
        }
        let n_axes = table(&self.table, "image").get("size").and_then(Value::as_array).map(Vec::len);
        let kind = if data.contains_key("tabular") {
            "mlp"
        } else if n_axes == Some(3) {
            "resnet18-3d"
        } else {
            "efficientnet-b0"
        };
        let model = self.table.entry("model").or_insert_with(|| Value::Table(Table::new()));
        if let Some(model) = model.as_table_mut() {
            model.entry("backbone").or_insert_with(|| Value::String(kind.to_owned()));
        }
    }

    /// Sets the head, the monitor and the map of `recalibration` of a class, if the run file predicts one and names none.
    pub(crate) fn choose_by_task(&mut self) {
        let kind = self.table.get("task").and_then(|task| task.get("kind")).and_then(Value::as_str);
        if self.table.contains_key(ESTIMATOR) {
            return;
        }
        if kind == Some("segmentation") {
            return self.choose_for_masks();
        }
        if kind != Some("binary") {
            return;
        }
        let empty = || Value::Table(Table::new());
        self.table.entry("head").or_insert_with(|| chosen_by_name("binary"));
        if let Some(training) = self.table.entry("training").or_insert_with(empty).as_table_mut() {
            training.entry("monitor").or_insert_with(|| Value::String("bce".to_owned()));
        }
        let strategy = self.table.get_mut("strategy").and_then(Value::as_table_mut);
        if let Some(recalibration) = strategy.and_then(|one| one.get_mut("recalibration")).and_then(Value::as_table_mut)
        {
            recalibration.entry("method").or_insert_with(|| Value::String("platt".to_owned()));
        }
    }

    /// Sets the network, head and monitor of masks where the run file names none: a U-Net on `resnet18`, without the layers between
    /// representation and curves.
    fn choose_for_masks(&mut self) {
        let empty = || Value::Table(Table::new());
        let classes = self.table.get("task").and_then(|task| task.get("segmentation")).and_then(|of| of.get("classes"));
        let of_classes = classes.and_then(Value::as_table).into_iter().flat_map(Table::values);
        let values = of_classes.filter_map(Value::as_array).flatten().filter_map(Value::as_integer);
        let n_values = values.chain([0]).collect::<BTreeSet<i64>>().len();
        let head = self.table.entry("head").or_insert_with(|| chosen_by_name("segmentation"));
        if let Some(head) = head.get_mut("segmentation").and_then(Value::as_table_mut)
            && let Ok(n) = i64::try_from(n_values)
        {
            head.entry("pixel-classes").or_insert(Value::Integer(n));
        }
        if let Some(training) = self.table.entry("training").or_insert_with(empty).as_table_mut() {
            training.entry("monitor").or_insert_with(|| Value::String("dice-ce".to_owned()));
        }
        if let Some(model) = self.table.entry("model").or_insert_with(empty).as_table_mut() {
            model.entry("backbone").or_insert_with(|| Value::String("resnet18".to_owned()));
            model.entry("representation").or_insert(Value::Integer(0));
            model.entry("hidden").or_insert(Value::Integer(0));
            model.entry("dropout").or_insert(Value::Float(0.0));
        }
    }

    /// Refuses tables about networks beside an estimator: they would have no effect.
    ///
    /// # Errors
    /// [`CliError::Config`] naming the first of them.
    pub(crate) fn check_estimator(&self) -> Result<(), CliError> {
        let Some(estimator) = self.table.get(ESTIMATOR) else { return Ok(()) };
        let Some(key) = OF_NETWORKS.into_iter().find(|key| self.table.contains_key(*key)) else { return Ok(()) };
        let name = estimator.as_table().and_then(|table| table.keys().next());
        let table = name.map_or_else(|| ESTIMATOR.to_owned(), |name| format!("{ESTIMATOR}.{name}"));
        let message = format!("it has no effect beside [{table}], which trains no network");
        Err(CliError::setting(key, message, Some("remove it, or the table of the estimator")))
    }

    /// Removes the tables about networks.
    #[cfg(feature = "train")]
    pub(crate) fn without_networks(self) -> Self {
        OF_NETWORKS.iter().fold(self, |merged, key| merged.without(key))
    }

    /// Removes the table `key`, which is read elsewhere.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.table.remove(key);
        self
    }

    /// Keeps only the table `key`; an empty table if it is missing.
    pub(crate) fn only(mut self, key: &str) -> Self {
        let table = self.table.remove(key).and_then(|value| value.as_table().cloned());
        Self { table: table.unwrap_or_default(), ..self }
    }

    /// Checks names and types of all keys.
    pub(crate) fn into_config<T: DeserializeOwned>(self) -> Result<T, CliError> {
        let Self { table, sources, sets, .. } = self;
        serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
            let path = error.path().to_string();
            let message = error.inner().message().to_owned();
            let (key, help) = explain(&path, &message);
            let from_set = sets.iter().rev().find(|set| set.split('=').next().is_some_and(|path| path == key));
            let from_file = || sources.iter().rev().find_map(|(origin, text)| place(origin, text, &key));
            // A key that is missing is on no line.
            let files = || {
                let names: Vec<&str> = sources.iter().map(|(origin, _)| origin.as_str()).collect();
                if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
            };
            let place = from_set.map(|set| format!(" (--set {set})")).or_else(from_file).unwrap_or_else(files);
            let error_of = |table| {
                let error = serde_path_to_error::deserialize::<_, T>(Value::Table(table)).err()?;
                Some(error.inner().message().to_owned())
            };
            let message =
                no_word(&table, &path, &message, error_of).unwrap_or_else(|| in_words(&table, &path, &message));
            CliError::Config { key, message, place, help }
        })
    }
}

/// Merges `later` into `earlier`; where the name of a table is a choice, the later choice replaces the earlier one.
fn merge(earlier: &mut Table, later: Table) {
    merge_below(&mut Vec::new(), earlier, later);
}

fn merge_below(path: &mut Vec<String>, earlier: &mut Table, later: Table) {
    for (key, value) in later {
        path.push(key.clone());
        let place: Vec<&str> = path.iter().map(String::as_str).collect();
        let value = match value {
            Value::String(word) if TABLES.contains(&place.join(".").as_str()) => chosen_by_name(&word),
            value => value,
        };
        match (earlier.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => {
                if is_choice(&place)
                    && let Some(chosen) = new.keys().next().cloned()
                {
                    keep_only(old, &chosen);
                }
                merge_below(path, old, new);
            }
            // A plain word may be below a table that no earlier file has.
            (_, Value::Table(new)) => {
                let mut table = Table::new();
                merge_below(path, &mut table, new);
                earlier.insert(key, Value::Table(table));
            }
            (_, value) => {
                earlier.insert(key, value);
            }
        }
        path.pop();
    }
}

/// `swad` as `{ swad = {} }`.
fn chosen_by_name(word: &str) -> Value {
    Value::Table(Table::from_iter([(word.to_owned(), Value::Table(Table::new()))]))
}

fn keep_only(table: &mut Table, chosen: &str) {
    table.retain(|name, _| name == chosen);
}
