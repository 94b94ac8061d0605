//! The entry point of pictures on hostile bytes: JPEG, PNG, TIFF and, with the feature, DICOM.
//!
//! What is read must have as many samples as it states; memory and time follow the bytes and never the header, so the
//! limits are small and libFuzzer's `-timeout=1 -rss_limit_mb=512` must hold.
#![no_main]

use fairtte_data::image::{Limits, Samples, decode_picture_full};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_pixels: 1 << 22, max_bytes: 1 << 26 };
    match decode_picture_full(bytes, &limits) {
        Ok(picture) => {
            let n_samples = match &picture.samples {
                Samples::U8(samples) => samples.len(),
                Samples::U16(samples) => samples.len(),
                Samples::I16(samples) => samples.len(),
            };
            assert_eq!(n_samples, picture.width * picture.height * picture.n_channels());
            let [width, height] = picture.oriented_size();
            let upright = picture.into_picture();
            assert_eq!((upright.width, upright.height), (width, height));
            assert_eq!(upright.pixels.len(), width * height * upright.channels);
        }
        Err(refused) => assert!(!refused.detail.is_empty()),
    }
});
