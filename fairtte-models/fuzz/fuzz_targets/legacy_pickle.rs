//! The object of a legacy file: what precedes it and one storage of four numbers are given, so that every input reaches the
//! stack machine.
#![no_main]

use std::path::Path;

use fairtte_models::weights::WeightFile;
use libfuzzer_sys::fuzz_target;

const BEFORE: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}X\x0d\0\0\0little_endian\x88s.";
const AFTER: &[u8] = b"\x80\x02](U\x010e.\x04\0\0\0\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@";

fuzz_target!(|object: &[u8]| {
    let Ok(file) = WeightFile::parse(Path::new("w"), [BEFORE, object, AFTER].concat()) else { return };
    for tensor in file.tensors() {
        let Ok(values) = file.values(tensor) else { continue }; // complex and quantised numbers are not read
        assert_eq!(values.len(), tensor.n(), "{}", tensor.name());
    }
});
