//! A restricted reader of pickles: values in an arena, built by a stack machine that calls nothing.
//!
//! Values refer to each other by index, so a pickle that nests a million lists or refers to itself costs neither stack nor
//! copies; every instruction makes at most one value, and their number is limited. The parts of torch that the machine
//! understands are in `torch.rs`.

mod machine;
mod torch;

use std::sync::Arc;

use torch::View;

pub(super) use machine::{Machine, Pickle};
pub(super) use torch::Declared;

/// Index of a value.
pub(super) type Id = usize;

/// Maximum number of values, and of entries of the memo, of one pickle. A checkpoint with optimiser state has tens of
/// thousands.
pub(super) const MOST_VALUES: usize = 4_000_000;

/// A value of a pickle.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits.
    Long,
    Float(f64),
    Text(String),
    /// Bytes, of which only the number matters.
    Bytes(usize),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Set(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A class or function, by module and name.
    Global(Arc<str>),
    /// What the named class or function would have given; it was not called.
    Opaque(Arc<str>),
    /// A view of a storage.
    Storage(View),
    /// Index into the tensors of the pickle.
    Tensor(usize),
}

impl Value {
    /// A description without the content.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(_) => "a truth value".to_owned(),
            Self::Int(_) | Self::Long => "an integer".to_owned(),
            Self::Float(_) => "a float".to_owned(),
            Self::Text(_) => "text".to_owned(),
            Self::Bytes(n) => format!("{n} bytes"),
            Self::Tuple(items) => format!("a tuple of {}", items.len()),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Set(items) => format!("a set of {}", items.len()),
            Self::Dict(items) => format!("a dictionary of {}", items.len()),
            Self::Global(name) => format!("{} by name", shown(name)),
            Self::Opaque(name) => format!("an object of {}, not built", shown(name)),
            Self::Storage(_) => "a storage".to_owned(),
            Self::Tensor(_) => "a tensor".to_owned(),
        }
    }
}

/// Text from a file in a printable form: control characters escaped, long text truncated.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut cut: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        cut.push_str("..");
    }
    cut
}
