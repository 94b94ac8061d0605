//! The NIfTI reader on hostile bytes: as they are, and packed with gzip so that its checksum does not hide the header.
//!
//! What is read must have the size it states and intensities in [0, 1]; memory follows the bytes and never the header.
#![no_main]

use std::io::Write as _;

use fairtte_data::image::decode_volume;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("memory takes every byte");
    check(&packed.finish().expect("memory takes every byte"));
});

fn check(bytes: &[u8]) {
    match decode_volume(bytes) {
        Ok(volume) => {
            assert_eq!(volume.voxels.len(), volume.size.iter().product::<usize>());
            assert!(volume.voxels.iter().all(|voxel| (0.0..=1.0).contains(voxel)));
        }
        Err(refused) => assert!(!refused.detail.is_empty()),
    }
}
