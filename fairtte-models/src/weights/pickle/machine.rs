//! The stack machine of pickle protocols 0 to 5 (Python's `pickletools` describes every instruction).
//!
//! Differences from Python: nothing is imported or called (`torch.rs` has the short list of what is understood instead);
//! attributes that `BUILD` would set are dropped; extension codes and out-of-band buffers are refused.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::super::bytes::{Cursor, Malformed};
use super::torch::PickledTensor;
use super::{Declared, Id, MOST_VALUES, Value, shown};

/// Maximum number of arguments of a call that are read, one more than any known function needs.
const MOST_ARGUMENTS: usize = 8;
/// Longest name of a class and longest key of a storage, in bytes.
pub(super) const LONGEST_NAME: usize = 1000;

/// The contents of one pickle.
#[derive(Debug)]
pub(in super::super) struct Pickle {
    pub(in super::super) values: Vec<Value>,
    pub(in super::super) root: Id,
    pub(in super::super) storages: Vec<Declared>,
    pub(in super::super) tensors: Vec<PickledTensor>,
    /// Every class and function that is named and was neither built nor called.
    pub(in super::super) not_built: BTreeSet<String>,
}

/// The machine while it runs.
pub(in super::super) struct Machine<'a> {
    cursor: Cursor<'a>,
    /// Start of the current instruction.
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
    pub(super) storages: Vec<Declared>,
    pub(super) storages_by_key: HashMap<String, usize>,
    pub(super) tensors: Vec<PickledTensor>,
    names: HashSet<Arc<str>>,
    /// Number of items copied from existing values.
    n_copied: usize,
}

impl<'a> Machine<'a> {
    /// Runs the pickle at the cursor and leaves the cursor after it.
    pub(in super::super) fn run(cursor: &mut Cursor<'a>) -> Result<Pickle, Malformed> {
        let mut machine = Self {
            cursor: cursor.clone(),
            at: cursor.offset(),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            storages: Vec::new(),
            storages_by_key: HashMap::new(),
            tensors: Vec::new(),
            names: HashSet::new(),
            n_copied: 0,
        };
        let root = loop {
            machine.at = machine.cursor.offset();
            let instruction = machine.cursor.u8("a pickle (an instruction)")?;
            if instruction == b'.' {
                break machine.pop()?;
            }
            machine.step(instruction)?;
        };
        *cursor = machine.cursor.clone();
        Ok(machine.finish(root))
    }

    fn finish(self, root: Id) -> Pickle {
        let name = |value: &Value| match value {
            Value::Opaque(name) => Some(Arc::clone(name)), // copied below, once
            _ => None,
        };
        let not_built: BTreeSet<Arc<str>> = self.values.iter().filter_map(name).collect();
        let not_built = not_built.iter().map(ToString::to_string).collect();
        let Self { values, storages, tensors, .. } = self;
        Pickle { values, root, storages, tensors, not_built }
    }

    pub(super) fn value(&self, id: Id) -> &Value {
        &self.values[id] // every id was returned by `push`
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> Malformed {
        Malformed::new(self.at, expected, found)
    }

    fn push(&mut self, value: Value) -> Result<(), Malformed> {
        if self.values.len() >= MOST_VALUES {
            return Err(self.error(format!("a pickle of at most {MOST_VALUES} values"), "more"));
        }
        self.push_id(self.values.len())?;
        self.values.push(value);
        Ok(())
    }

    /// Pushes an existing value, which takes one byte in a pickle and creates no new value.
    fn push_id(&mut self, id: Id) -> Result<(), Malformed> {
        if self.stack.len() >= MOST_VALUES {
            return Err(self.error(format!("a stack of at most {MOST_VALUES} values"), "more"));
        }
        self.stack.push(id);
        Ok(())
    }

    fn push_mark(&mut self) -> Result<(), Malformed> {
        if self.marks.len() >= MOST_VALUES {
            return Err(self.error(format!("at most {MOST_VALUES} marks on the stack"), "more"));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn pop(&mut self) -> Result<Id, Malformed> {
        if self.marks.last().is_some_and(|mark| *mark == self.stack.len()) {
            return Err(self.error("a value on the stack", "a mark"));
        }
        self.stack.pop().ok_or_else(|| self.error("a value on the stack", "an empty stack"))
    }

    fn top(&self) -> Result<Id, Malformed> {
        let base = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(id) if self.stack.len() > base => Ok(*id),
            _ => Err(self.error("a value on the stack", "an empty stack")),
        }
    }

    /// What was pushed since the last mark.
    fn since_mark(&mut self) -> Result<Vec<Id>, Malformed> {
        let mark = self.marks.pop().ok_or_else(|| self.error("a mark on the stack", "none"))?;
        Ok(self.stack.split_off(mark))
    }

    fn step(&mut self, instruction: u8) -> Result<(), Malformed> {
        match instruction {
            0x80 => match self.cursor.u8("the protocol")? {
                0..=5 => Ok(()),
                other => Err(self.error("a pickle protocol from 0 to 5", other.to_string())),
            },
            0x95 => match self.cursor.u64("the length of a frame")? {
                n if n <= self.cursor.left() as u64 => Ok(()),
                n => {
                    Err(self.error(format!("a frame of {n} bytes"), format!("{} bytes to the end", self.cursor.left())))
                }
            },
            b'(' => self.push_mark(),
            b'0' if self.marks.last().is_some_and(|mark| *mark == self.stack.len()) => self.since_mark().map(|_| ()),
            b'0' => self.pop().map(|_| ()),
            b'1' => self.since_mark().map(|_| ()),
            b'2' => {
                let top = self.top()?;
                self.push_id(top)
            }
            b'N' | 0x88 | 0x89 | b'I' | b'L' | b'J' | b'K' | b'M' | 0x8a | 0x8b | b'F' | b'G' => {
                let number = self.number(instruction)?;
                self.push(number)
            }
            b'S' | b'T' | b'U' | b'V' | b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e | 0x96 => {
                let text = self.text(instruction)?;
                self.push(text)
            }
            b')' | b't' | 0x85..=0x87 | b']' | b'l' | b'}' | b'd' | 0x8f | 0x91 => {
                let container = self.container(instruction)?;
                self.push(container)
            }
            b'a' | b'e' | b's' | b'u' | 0x90 => self.extend(instruction),
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.remember(instruction),
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'o' | b'i' | b'b' => self.object(instruction),
            b'P' => {
                let line = self.cursor.line("a persistent id")?;
                Err(self.error("a persistent id of a storage", shown(line)))
            }
            b'Q' => {
                let id = self.pop()?;
                let storage = self.persistent(id)?;
                self.push(storage)
            }
            0x82..=0x84 => Err(self.error("an instruction without the extension registry", "an extension code")),
            0x97 | 0x98 => Err(self.error("data inside the pickle", "an out-of-band buffer")),
            other => Err(self.error("an instruction of the pickle protocol", format!("byte 0x{other:02x}"))),
        }
    }

    fn number(&mut self, instruction: u8) -> Result<Value, Malformed> {
        let cursor = &mut self.cursor;
        Ok(match instruction {
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'J' => Value::Int(i64::from(cursor.u32("an integer")?.cast_signed())),
            b'K' => Value::Int(i64::from(cursor.u8("an integer")?)),
            b'M' => Value::Int(i64::from(cursor.u16("an integer")?)),
            0x8a => {
                let n = cursor.u8("the length of an integer")?;
                integer(cursor.take(u64::from(n), "an integer")?)
            }
            0x8b => {
                let n = cursor.u32("the length of an integer")?;
                integer(cursor.take(u64::from(n), "an integer")?)
            }
            b'G' => Value::Float(f64::from_be_bytes(cursor.array("a float")?)),
            b'F' => {
                let line = cursor.line("a float")?;
                Value::Float(line.parse().map_err(|_| self.error("a float", shown(line)))?)
            }
            _ => match cursor.line("an integer")? {
                "00" if instruction == b'I' => Value::Bool(false),
                "01" if instruction == b'I' => Value::Bool(true),
                line => {
                    let digits = line.strip_suffix('L').unwrap_or(line);
                    Value::Int(digits.parse().map_err(|_| self.error("an integer of 64 bits", shown(line)))?)
                }
            },
        })
    }

    fn text(&mut self, instruction: u8) -> Result<Value, Malformed> {
        let cursor = &mut self.cursor;
        let what = "the length of text";
        let n = match instruction {
            b'S' | b'V' => {
                let line = cursor.line("text")?;
                let inner = ['\'', '"'].iter().find_map(|quote| line.strip_prefix(*quote)?.strip_suffix(*quote));
                return match inner {
                    _ if instruction == b'V' => Ok(Value::Text(line.to_owned())),
                    Some(inner) => Ok(Value::Text(inner.to_owned())),
                    None => Err(self.error("text between two quotes", shown(line))),
                };
            }
            b'U' | 0x8c | b'C' => u64::from(cursor.u8(what)?),
            b'T' | b'X' | b'B' => u64::from(cursor.u32(what)?),
            _ => cursor.u64(what)?,
        };
        match instruction {
            b'X' | 0x8c | 0x8d => Ok(Value::Text(cursor.text(n)?.to_owned())),
            // Python 2 wrote keys as bytes.
            b'T' | b'U' => {
                let bytes = cursor.take(n, "a string")?;
                Ok(std::str::from_utf8(bytes).map_or(Value::Bytes(bytes.len()), |text| Value::Text(text.to_owned())))
            }
            _ => Ok(Value::Bytes(cursor.take(n, "bytes")?.len())),
        }
    }

    fn container(&mut self, instruction: u8) -> Result<Value, Malformed> {
        Ok(match instruction {
            b')' => Value::Tuple(Vec::new()),
            b']' => Value::List(Vec::new()),
            b'}' => Value::Dict(Vec::new()),
            0x8f => Value::Set(Vec::new()),
            0x85..=0x87 => {
                let n = usize::from(instruction - 0x84);
                let mut items = (0..n).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                Value::Tuple(items)
            }
            b't' => Value::Tuple(self.since_mark()?),
            b'l' => Value::List(self.since_mark()?),
            0x91 => Value::Set(self.since_mark()?),
            _ => {
                let items = self.since_mark()?;
                Value::Dict(self.pairs(&items)?)
            }
        })
    }

    fn pairs(&self, items: &[Id]) -> Result<Vec<(Id, Id)>, Malformed> {
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err(self.error("a value for every key", "a key without a value"));
        };
        Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
    }

    /// Adds to the list, set or dictionary on top of the stack.
    fn extend(&mut self, instruction: u8) -> Result<(), Malformed> {
        let items = match instruction {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let in_pairs = matches!(instruction, b's' | b'u');
        let pairs = if in_pairs { self.pairs(&items)? } else { Vec::new() };
        let top = self.top()?;
        match &mut self.values[top] {
            Value::Dict(entries) if in_pairs => entries.extend(pairs),
            Value::List(list) if matches!(instruction, b'a' | b'e') => list.extend(items),
            Value::Set(set) if instruction == 0x90 => set.extend(items),
            Value::Opaque(_) => {} // the contents of an unknown class are ignored
            other => {
                let found = other.kind();
                return Err(self.error("a list, set or dictionary to add to", found));
            }
        }
        Ok(())
    }

    /// Puts the top of the stack into the memo, or pushes an entry of the memo.
    fn remember(&mut self, instruction: u8) -> Result<(), Malformed> {
        let what = "a place of the memo";
        let place = match instruction {
            b'p' | b'g' => {
                let line = self.cursor.line(what)?;
                line.parse().map_err(|_| self.error(what, shown(line)))?
            }
            b'q' | b'h' => u64::from(self.cursor.u8(what)?),
            b'r' | b'j' => u64::from(self.cursor.u32(what)?),
            _ => self.memo.len() as u64,
        };
        if matches!(instruction, b'g' | b'h' | b'j') {
            let known = self.memo.get(&place).copied();
            let known = known.ok_or_else(|| self.error("a place of the memo that was filled", place.to_string()))?;
            return self.push_id(known);
        }
        let top = self.top()?;
        self.memo.insert(place, top);
        if self.memo.len() > MOST_VALUES {
            return Err(self.error(format!("a memo of at most {MOST_VALUES} values"), "more"));
        }
        Ok(())
    }

    /// Handles the instructions that make Python import, call or build something.
    fn object(&mut self, instruction: u8) -> Result<(), Malformed> {
        let value = match instruction {
            b'c' => Value::Global(self.global()?),
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (self.value(module), self.value(name)) {
                    (Value::Text(module), Value::Text(name)) => {
                        let (module, name) = (module.clone(), name.clone());
                        Value::Global(self.class(&module, &name)?)
                    }
                    (module, _) => return Err(self.error("module and name of a class", module.kind())),
                }
            }
            b'i' => {
                let name = self.global()?;
                self.since_mark()?;
                Value::Opaque(name)
            }
            b'o' => {
                let items = self.since_mark()?;
                let class = items.first().ok_or_else(|| self.error("a class", "nothing after the mark"))?;
                self.call(*class, &items[1..])?
            }
            b'b' => {
                self.pop()?; // attributes, as `_metadata` of a state dictionary
                self.top()?;
                return Ok(());
            }
            _ => {
                if instruction == 0x92 {
                    self.pop()?; // keyword arguments
                }
                let (arguments, function) = (self.pop()?, self.pop()?);
                let arguments = match self.value(arguments) {
                    // No known function reads more.
                    Value::Tuple(arguments) => arguments.iter().take(MOST_ARGUMENTS).copied().collect::<Vec<_>>(),
                    other => return Err(self.error("a tuple of arguments", other.kind())),
                };
                self.call(function, &arguments)?
            }
        };
        self.push(value)
    }

    /// Counts `n` copied items or bytes: a short pickle can request copies of one long list many times.
    pub(super) fn charge(&mut self, n: usize) -> Result<(), Malformed> {
        self.n_copied = self.n_copied.saturating_add(n);
        if self.n_copied > MOST_VALUES {
            return Err(self.error(format!("a pickle that copies at most {MOST_VALUES} values"), "more"));
        }
        Ok(())
    }

    /// The name of a class, stored once for all its uses.
    fn class(&mut self, module: &str, name: &str) -> Result<Arc<str>, Malformed> {
        if module.len() + name.len() > LONGEST_NAME {
            return Err(self.error(format!("the name of a class, at most {LONGEST_NAME} bytes"), "a longer one"));
        }
        let name = format!("{module}.{name}");
        if let Some(known) = self.names.get(name.as_str()) {
            return Ok(Arc::clone(known));
        }
        self.charge(name.len())?; // two lists of memoised parts can form many names
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        Ok(name)
    }

    fn global(&mut self) -> Result<Arc<str>, Malformed> {
        let module = self.cursor.line("the module of a class")?;
        let name = self.cursor.line("the name of a class")?;
        self.class(module, name)
    }
}

/// A little-endian integer in two's complement.
fn integer(bytes: &[u8]) -> Value {
    if bytes.len() > 8 {
        return Value::Long;
    }
    let fill = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(wide))
}
