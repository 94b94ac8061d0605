//! What `torch.save` writes since torch 1.6: a zip archive with `NAME/data.pkl` and one file `NAME/data/KEY` per storage.
//!
//! `NAME/byteorder` (since torch 2.0) says `little` or `big`. The checksum of every entry that is used is compared.

use std::collections::BTreeMap;

use super::bytes::{Cursor, Malformed};
use super::contents::Contents;
use super::pickle::{Declared, Machine, shown};
use super::tensor::{Bytes, Storage};
use super::zip::{self, Entry};

const PICKLE: &str = "data.pkl";

/// Reads a whole file.
pub(super) fn read(file: &[u8]) -> Result<Contents, Malformed> {
    let entries = zip::entries(file)?;
    let is_pickle = |name: &&String| name.as_str() == PICKLE || name.strip_suffix("/data.pkl").is_some();
    let mut pickles = entries.keys().filter(is_pickle);
    let name = pickles.next().ok_or_else(|| {
        let found = format!("{} other entries", entries.len());
        Malformed::new(0, "an archive of torch.save, with an entry NAME/data.pkl", found)
    })?;
    if let Some(second) = pickles.next() {
        let found = format!("{} and {}", shown(name), shown(second));
        return Err(Malformed::new(entries[second].at, "one entry NAME/data.pkl", found));
    }
    let folder = &name[..name.len() - PICKLE.len()];
    let entry = &entries[name];
    entry.check(name, file)?;
    let bytes = entry.bytes.read(file)?;
    let (start, inflated) = match &entry.bytes {
        Bytes::Plain(range) => (range.start, None),
        Bytes::Deflated { .. } | Bytes::Held(_) => (0, Some(name.clone())),
    };
    let within = |malformed: Malformed| Malformed { entry: inflated.clone(), ..malformed };
    let mut cursor = Cursor::new(&bytes, start);
    let pickle = Machine::run(&mut cursor).map_err(within)?;
    let big_endian = is_big_endian(&entries, folder, file)?;
    let find = |declared: &Declared| storage(&entries, folder, declared, file, big_endian);
    let storages = pickle.storages.iter().map(find).collect::<Result<_, _>>()?;
    Contents::of_pickle(&pickle, storages, start)
}

fn is_big_endian(entries: &BTreeMap<String, Entry>, folder: &str, file: &[u8]) -> Result<bool, Malformed> {
    let name = format!("{folder}byteorder");
    let Some(entry) = entries.get(&name) else { return Ok(false) };
    entry.check(&name, file)?;
    match &*entry.bytes.read(file)? {
        b"little" => Ok(false),
        b"big" => Ok(true),
        other => {
            let found = shown(&String::from_utf8_lossy(&other[..other.len().min(20)]));
            Err(Malformed::new(entry.at, format!("little or big in {}", shown(&name)), found))
        }
    }
}

fn storage(
    entries: &BTreeMap<String, Entry>,
    folder: &str,
    declared: &Declared,
    file: &[u8],
    big_endian: bool,
) -> Result<Storage, Malformed> {
    let name = format!("{folder}data/{}", declared.key);
    let Some(entry) = entries.get(&name) else {
        return Err(Malformed::new(declared.at, format!("an entry {}", shown(&name)), "an archive without it"));
    };
    let n_bytes = declared.n.checked_mul(declared.element.size());
    if n_bytes != Some(entry.bytes.n()) {
        let expected = format!("{} elements of {} in {}", declared.n, declared.element.name(), shown(&name));
        return Err(Malformed::new(entry.at, expected, format!("{} bytes", entry.bytes.n())));
    }
    entry.check(&name, file)?;
    Ok(Storage { element: declared.element, bytes: entry.bytes.clone(), big_endian })
}
