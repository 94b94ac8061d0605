//! Files of weights of any container.
#![no_main]

use std::path::Path;

use fairtte_models::weights::WeightFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = WeightFile::parse(Path::new("w"), bytes.to_vec()) else { return };
    for tensor in file.tensors() {
        if let Ok(values) = file.values(tensor) {
            assert_eq!(values.len(), tensor.n(), "{}", tensor.name());
        }
    }
});
