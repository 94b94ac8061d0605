//! The parts of torch that the machine understands: storages by persistent id, and tensors as views of them.
//!
//! torch writes a storage as the persistent id `("storage", class, key, device, n)`, before 1.6 with a sixth field, `None`
//! or `(view key, offset, n of the view)`; a tensor as `torch._utils._rebuild_tensor_v2(storage, offset, shape, strides,
//! requires_grad, hooks, ..)`, a parameter as `_rebuild_parameter(tensor, requires_grad, hooks)` around it.

use std::sync::Arc;

use super::super::bytes::Malformed;
use super::super::tensor::{ElementType, misfit};
use super::machine::LONGEST_NAME;
use super::{Id, Machine, Value, shown};

/// Most axes of a tensor; torch allows 64 and no weights have more than 5.
const MOST_AXES: usize = 16;

/// Part of a declared storage.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct View {
    /// Index into the declared storages.
    storage: usize,
    offset: usize,
    n: usize,
}

/// A storage as the pickle declares it; the container checks whether the file contains it.
#[derive(Clone, Debug)]
pub(in super::super) struct Declared {
    pub(in super::super) key: String,
    pub(in super::super) element: ElementType,
    /// Number of elements.
    pub(in super::super) n: usize,
    /// Byte of the file at which it is declared.
    pub(in super::super) at: usize,
}

/// A tensor of a pickle.
#[derive(Clone, Debug)]
pub(in super::super) struct PickledTensor {
    pub(in super::super) storage: usize,
    pub(in super::super) offset: usize,
    pub(in super::super) shape: Vec<usize>,
    pub(in super::super) strides: Vec<usize>,
}

/// Element type of a storage class of torch.
fn parse_element(class: &str) -> Option<ElementType> {
    let other = |name, size| ElementType::Other { name, size };
    let name = class.strip_prefix("torch.").map(|name| name.strip_prefix("cuda.").unwrap_or(name))?;
    Some(match name {
        "DoubleStorage" => ElementType::F64,
        "FloatStorage" => ElementType::F32,
        "HalfStorage" => ElementType::F16,
        "BFloat16Storage" => ElementType::BF16,
        "LongStorage" => ElementType::I64,
        "IntStorage" => ElementType::I32,
        "ShortStorage" => ElementType::I16,
        "CharStorage" => ElementType::I8,
        "ByteStorage" => ElementType::U8,
        "BoolStorage" => ElementType::Bool,
        "ComplexDoubleStorage" => other("complex128", 16),
        "ComplexFloatStorage" => other("complex64", 8),
        "QUInt8Storage" => other("quint8", 1),
        "QInt8Storage" => other("qint8", 1),
        "QInt32Storage" => other("qint32", 4),
        _ => return None,
    })
}

impl Machine<'_> {
    /// The value that a persistent id stands for.
    pub(super) fn persistent(&mut self, id: Id) -> Result<Value, Malformed> {
        let Value::Tuple(fields) = self.value(id) else {
            return Err(self.error("a persistent id of a storage", self.value(id).kind()));
        };
        if let [tag, class, _, _] = fields.as_slice()
            && matches!(self.value(*tag), Value::Text(tag) if tag == "module")
        {
            // torch before 1.6 saved the source code of classes with their names.
            return match self.value(*class) {
                Value::Global(name) => Ok(Value::Global(Arc::clone(name))),
                Value::Opaque(name) => Ok(Value::Opaque(Arc::clone(name))),
                other => Err(self.error("the class of a module", other.kind())),
            };
        }
        let ([tag, class, key, _, n] | [tag, class, key, _, n, _]) = fields.as_slice() else {
            return Err(self.error("a persistent id of 5 or 6 fields", format!("{} fields", fields.len())));
        };
        let (tag, class, key, n, view) = (*tag, *class, *key, *n, fields.get(5).copied());
        match self.value(tag) {
            Value::Text(tag) if tag == "storage" => {}
            other => return Err(self.error("the persistent id of a storage", other.kind())),
        }
        let element = match self.value(class) {
            Value::Global(name) => parse_element(name)
                .ok_or_else(|| self.error("a storage class of torch, as torch.FloatStorage", shown(name)))?,
            other => return Err(self.error("a storage class", other.kind())),
        };
        let key = match self.value(key) {
            Value::Text(key) if key.len() <= LONGEST_NAME => key.clone(),
            Value::Int(key) => key.to_string(),
            other => return Err(self.error("the key of a storage", other.kind())),
        };
        let n = self.count(n, "the number of elements of a storage")?;
        let storage = self.declare(key, element, n)?;
        let (offset, n) = match view.map(|view| self.value(view)) {
            None | Some(Value::None) => (0, n),
            Some(Value::Tuple(fields)) if fields.len() == 3 => {
                let (offset, size) = (fields[1], fields[2]);
                let (offset, size) = (self.count(offset, "an offset")?, self.count(size, "a number of elements")?);
                if offset.checked_add(size).is_none_or(|end| end > n) {
                    let found = format!("elements {offset} to {offset} + {size}");
                    return Err(self.error(format!("a view of a storage of {n} elements"), found));
                }
                (offset, size)
            }
            Some(other) => return Err(self.error("None or a view of a storage", other.kind())),
        };
        Ok(Value::Storage(View { storage, offset, n }))
    }

    fn declare(&mut self, key: String, element: ElementType, n: usize) -> Result<usize, Malformed> {
        if let Some(index) = self.storages_by_key.get(&key) {
            let known = &self.storages[*index];
            if known.element == element && known.n == n {
                return Ok(*index);
            }
            let expected = format!("storage {} of {} {} as before", shown(&key), known.n, known.element.name());
            return Err(self.error(expected, format!("{n} {}", element.name())));
        }
        let index = self.storages.len();
        self.storages_by_key.insert(key.clone(), index);
        self.storages.push(Declared { key, element, n, at: self.offset() });
        Ok(index)
    }

    /// The result of a call of one of the few known functions; all others give an opaque value.
    pub(super) fn call(&mut self, function: Id, arguments: &[Id]) -> Result<Value, Malformed> {
        let name = match self.value(function) {
            Value::Global(name) => Arc::clone(name),
            Value::Opaque(name) => return Ok(Value::Opaque(Arc::clone(name))),
            other => return Err(self.error("a class or function", other.kind())),
        };
        match (&*name, arguments) {
            ("torch._utils._rebuild_tensor_v2", [storage, offset, shape, strides, _, _, ..])
            | ("torch._utils._rebuild_tensor", [storage, offset, shape, strides]) => {
                self.tensor(*storage, *offset, *shape, *strides)
            }
            ("torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state", [tensor, _, _, ..]) => {
                match self.value(*tensor) {
                    Value::Tensor(index) => Ok(Value::Tensor(*index)),
                    Value::Opaque(name) => Ok(Value::Opaque(Arc::clone(name))),
                    other => Err(self.error("a tensor in a parameter", other.kind())),
                }
            }
            ("torch.Size", [sizes]) => match self.value(*sizes) {
                Value::Tuple(sizes) | Value::List(sizes) if sizes.len() <= MOST_AXES => Ok(Value::Tuple(sizes.clone())),
                other => Err(self.error("sizes", other.kind())),
            },
            ("collections.OrderedDict" | "builtins.dict" | "__builtin__.dict" | "collections.defaultdict", [])
            | ("collections.defaultdict", [_]) => Ok(Value::Dict(Vec::new())),
            ("collections.OrderedDict", [pairs]) => self.dictionary(*pairs),
            ("torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_parameter", _) => {
                Err(self.error(format!("the arguments of {name}"), format!("{} arguments", arguments.len())))
            }
            _ => Ok(Value::Opaque(Arc::clone(&name))),
        }
    }

    /// `OrderedDict([(key, value), ..])`, as Python 2 wrote it.
    fn dictionary(&mut self, pairs: Id) -> Result<Value, Malformed> {
        if let Value::List(pairs) | Value::Tuple(pairs) = self.value(pairs) {
            self.charge(pairs.len())?;
        }
        let pairs = match self.value(pairs) {
            Value::List(pairs) | Value::Tuple(pairs) => pairs,
            other => return Err(self.error("pairs of a dictionary", other.kind())),
        };
        let pair = |pair: &Id| match self.value(*pair) {
            Value::List(pair) | Value::Tuple(pair) if pair.len() == 2 => Ok((pair[0], pair[1])),
            other => Err(self.error("a key with its value", other.kind())),
        };
        Ok(Value::Dict(pairs.iter().map(pair).collect::<Result<_, _>>()?))
    }

    fn tensor(&mut self, storage: Id, offset: Id, shape: Id, strides: Id) -> Result<Value, Malformed> {
        let view = match self.value(storage) {
            Value::Storage(view) => *view,
            other => return Err(self.error("the storage of a tensor", other.kind())),
        };
        let offset = self.count(offset, "the offset of a tensor")?;
        let (shape, strides) = (self.counts(shape, "a shape")?, self.counts(strides, "strides")?);
        if let Some(found) = misfit(&shape, &strides, offset, view.n) {
            return Err(self.error("a tensor within its storage", found));
        }
        self.charge(shape.len() + strides.len())?;
        // An empty tensor may have any offset, since it refers to no element.
        let offset = if shape.contains(&0) { 0 } else { view.offset + offset };
        self.tensors.push(PickledTensor { storage: view.storage, offset, shape, strides });
        Ok(Value::Tensor(self.tensors.len() - 1))
    }

    fn count(&self, id: Id, what: &str) -> Result<usize, Malformed> {
        let expected = || format!("{what}, a whole number >= 0");
        match self.value(id) {
            Value::Int(n) => usize::try_from(*n).map_err(|_| self.error(expected(), n.to_string())),
            other => Err(self.error(expected(), other.kind())),
        }
    }

    fn counts(&self, id: Id, what: &str) -> Result<Vec<usize>, Malformed> {
        match self.value(id) {
            Value::Tuple(items) | Value::List(items) if items.len() <= MOST_AXES => {
                items.iter().map(|item| self.count(*item, what)).collect()
            }
            other => Err(self.error(format!("{what} of at most {MOST_AXES} axes"), other.kind())),
        }
    }
}
