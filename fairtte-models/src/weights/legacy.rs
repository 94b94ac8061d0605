//! What `torch.save` wrote before torch 1.6, and writes with `_use_new_zipfile_serialization=False`.
//!
//! Five pickles one after the other: a magic number, the protocol 1001, the machine it was written on, the object, and
//! the keys of the storages in the order in which they follow; then, for each, the number of elements (8 bytes,
//! little-endian) and the elements. Storages carry their element type only in the object.

use super::bytes::{Cursor, Malformed};
use super::contents::Contents;
use super::pickle::{Id, Machine, Pickle, Value, shown};
use super::tensor::{Bytes, Storage};

/// First bytes of such a file: a pickle of protocol 2 that holds 0x1950a86a20f9469cfc6c.
pub(super) const START: [u8; 14] = [0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL: i64 = 1001;

/// Reads a whole file.
pub(super) fn read(file: &[u8]) -> Result<Contents, Malformed> {
    let mut cursor = Cursor::new(file, 0);
    Machine::run(&mut cursor)?; // the magic number, which chose this reader
    let at = cursor.offset();
    let protocol = Machine::run(&mut cursor)?;
    match &protocol.values[protocol.root] {
        Value::Int(PROTOCOL) => {}
        Value::Int(other) => {
            return Err(Malformed::new(at, format!("protocol {PROTOCOL}"), format!("protocol {other}")));
        }
        other => return Err(Malformed::new(at, format!("protocol {PROTOCOL}"), other.kind())),
    }
    let at = cursor.offset();
    let big_endian = !little_endian(&Machine::run(&mut cursor)?, at)?;
    let object = cursor.offset();
    let pickle = Machine::run(&mut cursor)?;
    let storages = storages(&mut cursor, &pickle, big_endian)?;
    if cursor.left() > 0 {
        return Err(cursor.error("the end of the file after the last storage", format!("{} more bytes", cursor.left())));
    }
    Contents::of_pickle(&pickle, storages, object)
}

/// The byte order in the record of the machine.
fn little_endian(system: &Pickle, at: usize) -> Result<bool, Malformed> {
    let expected = "the record of a machine with its byte order";
    let Value::Dict(entries) = &system.values[system.root] else {
        return Err(Malformed::new(at, expected, system.values[system.root].kind()));
    };
    let is_order = |key: &Id| matches!(&system.values[*key], Value::Text(key) if key == "little_endian");
    match entries.iter().find(|(key, _)| is_order(key)).map(|(_, value)| &system.values[*value]) {
        Some(Value::Bool(little)) => Ok(*little),
        _ => Err(Malformed::new(at, expected, "a record without it")),
    }
}

/// Finds every storage that the object declared.
fn storages(cursor: &mut Cursor<'_>, pickle: &Pickle, big_endian: bool) -> Result<Vec<Storage>, Malformed> {
    let at = cursor.offset();
    let keys = Machine::run(cursor)?;
    let Value::List(order) = &keys.values[keys.root] else {
        return Err(Malformed::new(at, "the list of storages", keys.values[keys.root].kind()));
    };
    let announced: std::collections::HashMap<&str, usize> =
        pickle.storages.iter().enumerate().map(|(index, storage)| (storage.key.as_str(), index)).collect();
    let mut found: Vec<Option<Storage>> = vec![None; pickle.storages.len()];
    for key in order {
        let Value::Text(key) = &keys.values[*key] else {
            return Err(Malformed::new(at, "keys of storages", keys.values[*key].kind()));
        };
        let Some(index) = announced.get(key.as_str()) else {
            let expected = "storages that a tensor refers to";
            return Err(Malformed::new(at, expected, format!("storage {} without one", shown(key))));
        };
        if found[*index].is_some() {
            return Err(Malformed::new(at, "every storage once", format!("storage {} twice", shown(key))));
        }
        let storage = &pickle.storages[*index];
        let (n, before) = (storage.n, cursor.offset());
        let n_written = cursor.u64("the number of elements of a storage")?;
        if n_written != n as u64 {
            let expected = format!("{n} elements of storage {}", shown(key));
            return Err(Malformed::new(before, expected, n_written.to_string()));
        }
        let start = cursor.offset();
        let Some(n_bytes) = n.checked_mul(storage.element.size()) else {
            return Err(Malformed::new(before, "a storage that fits into memory", format!("{n} elements")));
        };
        cursor.take(n_bytes as u64, &format!("storage {}", shown(key)))?;
        let bytes = Bytes::Plain(start..start + n_bytes);
        found[*index] = Some(Storage { element: storage.element, bytes, big_endian });
    }
    let present = |(storage, announced): (Option<Storage>, &super::pickle::Declared)| {
        storage.ok_or_else(|| {
            Malformed::new(
                at,
                format!("storage {} in the list of storages", shown(&announced.key)),
                "a list without it",
            )
        })
    };
    found.into_iter().zip(&pickle.storages).map(present).collect()
}
