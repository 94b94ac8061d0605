//! Converts the values of a pickle to what users see: tensors by the keys of their dictionaries, and the outermost
//! keys.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::bytes::Malformed;
use super::pickle::{Id, Pickle, Value, shown};
use super::tensor::{Storage, StoredTensor, misfit};

/// Deepest nesting of dictionaries and lists around a tensor.
const DEEPEST: usize = 16;
/// Maximum number of tensors, and of dictionaries and lists that are searched.
const MOST_TENSORS: usize = 1_000_000;
/// Longest key in bytes.
const LONGEST_KEY: usize = 1000;
/// Most bytes of keys and shapes in all: with shared dictionaries a short file can name one tensor many times.
const MOST_KEY_BYTES: usize = 64 << 20;

/// One of the outermost keys of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopLevel {
    /// The key.
    pub key: String,
    /// A description of its value; short values are shown.
    pub content: String,
}

/// The contents of a file whose name is not known yet.
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
        let mut walk = Walk { pickle, at, tensors: Vec::new(), n_visited: 0, key_bytes: 0, storages: &storages };
        walk.visit(pickle.root, &mut Vec::new())?;
        let root = &pickle.values[pickle.root];
        let mut top = Vec::new();
        if let Value::Dict(entries) = root {
            for (key, value) in entries {
                let Some(line) = top_level(pickle, *key, *value) else { continue };
                walk.charge(size_of::<TopLevel>() + line.key.len() + line.content.len())?;
                top.push(line);
            }
        }
        let tensors = walk.tensors;
        let (root, not_built) = (root.kind(), pickle.not_built.clone());
        Ok(Self { top, tensors, storages, metadata: Vec::new(), not_built, root })
    }
}

/// A line for an outermost entry; `None` for a tensor, which is listed with the tensors.
fn top_level(pickle: &Pickle, key: Id, value: Id) -> Option<TopLevel> {
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
fn label(key: &Value) -> Cow<'_, str> {
    match key {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Int(key) => Cow::Owned(key.to_string()),
        other => Cow::Owned(other.kind()),
    }
}

struct Walk<'a> {
    pickle: &'a Pickle,
    at: usize,
    tensors: Vec<StoredTensor>,
    n_visited: usize,
    key_bytes: usize,
    storages: &'a [Storage],
}

impl<'a> Walk<'a> {
    /// Collects the tensors at and below `id`, whose keys are `path`. Values may be shared, so it counts the entries
    /// that it visits.
    fn visit(&mut self, id: Id, path: &mut Vec<Cow<'a, str>>) -> Result<(), Malformed> {
        let pickle = self.pickle;
        match &pickle.values[id] {
            Value::Tensor(index) => self.take(*index, path),
            Value::Dict(entries) => {
                self.enter(entries.len(), path)?;
                for (key, value) in entries {
                    self.below(label(&pickle.values[*key]), *value, path)?;
                }
                Ok(())
            }
            Value::List(items) | Value::Tuple(items) => {
                self.enter(items.len(), path)?;
                for (index, value) in items.iter().enumerate() {
                    self.below(Cow::Owned(index.to_string()), *value, path)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, key: Cow<'a, str>, value: Id, path: &mut Vec<Cow<'a, str>>) -> Result<(), Malformed> {
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

    fn enter(&mut self, n: usize, path: &[Cow<'a, str>]) -> Result<(), Malformed> {
        self.n_visited = self.n_visited.saturating_add(n);
        if self.n_visited > MOST_TENSORS {
            return Err(Malformed::new(self.at, format!("at most {MOST_TENSORS} entries in all"), "more"));
        }
        if path.len() > DEEPEST {
            return Err(Malformed::new(self.at, format!("at most {DEEPEST} dictionaries inside each other"), "more"));
        }
        Ok(())
    }

    /// Counts bytes that are kept for keys and shapes.
    fn charge(&mut self, n: usize) -> Result<(), Malformed> {
        self.key_bytes = self.key_bytes.saturating_add(n);
        if self.key_bytes > MOST_KEY_BYTES {
            let expected = format!("at most {MOST_KEY_BYTES} bytes of keys and shapes in all");
            return Err(Malformed::new(self.at, expected, "more"));
        }
        Ok(())
    }

    fn take(&mut self, index: usize, path: &[Cow<'a, str>]) -> Result<(), Malformed> {
        let tensor = &self.pickle.tensors[index];
        let storage = &self.storages[tensor.storage];
        let n_stored = storage.bytes.n() / storage.element.size();
        if let Some(found) = misfit(&tensor.shape, &tensor.strides, tensor.offset, n_stored) {
            let at = self.pickle.storages[tensor.storage].at;
            return Err(Malformed::new(at, "a tensor within the bytes that are there", found));
        }
        let of_keys: usize = path.iter().map(|key| size_of::<String>() + key.len()).sum();
        self.charge(of_keys + 2 * tensor.shape.len() * size_of::<usize>())?;
        let (key, group) = match path.split_last() {
            Some((key, group)) => (key.to_string(), group.iter().map(ToString::to_string).collect()),
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
