//! From the values of a pickle to what a user sees: tensors by the keys of their dictionaries, and the outermost keys.

use std::collections::BTreeSet;

use super::bytes::Malformed;
use super::pickle::{Id, Pickle, Value, shown};
use super::tensor::{Storage, StoredTensor, misfit};

/// Deepest nesting of dictionaries and lists around a tensor.
const DEEPEST: usize = 16;
/// Most tensors, and most dictionaries and lists that are looked into.
const MOST_TENSORS: usize = 1_000_000;
/// Longest key in bytes.
const LONGEST_KEY: usize = 1000;

/// One of the outermost keys of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopLevel {
    /// The key.
    pub key: String,
    /// What lies under it, in words; short values are shown.
    pub content: String,
}

/// What a file holds, before its name is known.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The outermost keys that are not tensors.
    pub(super) top: Vec<TopLevel>,
    /// In the order of the file.
    pub(super) tensors: Vec<StoredTensor>,
    pub(super) storages: Vec<Storage>,
    pub(super) metadata: Vec<(String, String)>,
    /// Classes and functions that the file names and that were neither built nor called.
    pub(super) not_built: BTreeSet<String>,
    /// The outermost value, in words.
    pub(super) root: String,
}

impl Contents {
    /// Tensors and outermost keys of `pickle`, whose storages have been found.
    pub(super) fn of_pickle(pickle: &Pickle, storages: Vec<Storage>, at: usize) -> Result<Self, Malformed> {
        let mut walk = Walk { pickle, at, tensors: Vec::new(), n_visited: 0, storages: &storages };
        walk.visit(pickle.root, &mut Vec::new())?;
        let tensors = walk.tensors;
        let root = &pickle.values[pickle.root];
        let top = match root {
            Value::Dict(entries) => entries.iter().filter_map(|(key, value)| top(pickle, *key, *value)).collect(),
            _ => Vec::new(),
        };
        let (root, not_built) = (root.kind(), pickle.not_built.clone());
        Ok(Self { top, tensors, storages, metadata: Vec::new(), not_built, root })
    }
}

/// A line for an outermost entry; a tensor has its own.
fn top(pickle: &Pickle, key: Id, value: Id) -> Option<TopLevel> {
    let content = match &pickle.values[value] {
        Value::Tensor(_) => return None,
        Value::Text(text) => format!("\"{}\"", shown(text)),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.kind(),
    };
    Some(TopLevel { key: shown(&label(&pickle.values[key])), content })
}

/// A key as text.
fn label(key: &Value) -> String {
    match key {
        Value::Text(text) => text.clone(),
        Value::Int(key) => key.to_string(),
        other => other.kind(),
    }
}

struct Walk<'a> {
    pickle: &'a Pickle,
    at: usize,
    tensors: Vec<StoredTensor>,
    n_visited: usize,
    storages: &'a [Storage],
}

impl Walk<'_> {
    /// Takes the tensors at and below `id`, whose keys are `path`. Values may be shared, so it counts what it looks at.
    fn visit(&mut self, id: Id, path: &mut Vec<String>) -> Result<(), Malformed> {
        match &self.pickle.values[id] {
            Value::Tensor(index) => self.take(*index, path),
            Value::Dict(entries) => {
                self.enter(entries.len(), path)?;
                for (key, value) in entries {
                    self.below(label(&self.pickle.values[*key]), *value, path)?;
                }
                Ok(())
            }
            Value::List(items) | Value::Tuple(items) => {
                self.enter(items.len(), path)?;
                for (index, value) in items.iter().enumerate() {
                    self.below(index.to_string(), *value, path)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, key: String, value: Id, path: &mut Vec<String>) -> Result<(), Malformed> {
        if !matches!(self.pickle.values[value], Value::Tensor(_) | Value::Dict(_) | Value::List(_) | Value::Tuple(_)) {
            return Ok(());
        }
        if key.len() > LONGEST_KEY {
            let found = format!("{} bytes", key.len());
            return Err(Malformed::new(self.at, format!("keys of at most {LONGEST_KEY} bytes"), found));
        }
        path.push(key);
        let result = self.visit(value, path);
        path.pop();
        result
    }

    fn enter(&mut self, n: usize, path: &[String]) -> Result<(), Malformed> {
        self.n_visited = self.n_visited.saturating_add(n);
        if self.n_visited > MOST_TENSORS {
            return Err(Malformed::new(self.at, format!("at most {MOST_TENSORS} entries in all"), "more"));
        }
        if path.len() > DEEPEST {
            return Err(Malformed::new(self.at, format!("at most {DEEPEST} dictionaries inside each other"), "more"));
        }
        Ok(())
    }

    fn take(&mut self, index: usize, path: &[String]) -> Result<(), Malformed> {
        let tensor = &self.pickle.tensors[index];
        let storage = &self.storages[tensor.storage];
        let n_stored = storage.bytes.n() / storage.element.size();
        if let Some(found) = misfit(&tensor.shape, &tensor.strides, tensor.offset, n_stored) {
            let at = self.pickle.storages[tensor.storage].at;
            return Err(Malformed::new(at, "a tensor within the bytes that are there", found));
        }
        let (key, group) = match path.split_last() {
            Some((key, group)) => (key.clone(), group.to_vec()),
            None => (String::new(), Vec::new()),
        };
        self.tensors.push(StoredTensor {
            group,
            key,
            element: storage.element,
            shape: tensor.shape.clone(),
            strides: tensor.strides.clone(),
            offset: tensor.offset,
            storage: tensor.storage,
        });
        Ok(())
    }
}
