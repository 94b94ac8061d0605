//! File names of AREDS photographs.
#![no_main]

use fairtte_data::adapters::areds::{ImageName, Side, View, parse_image_name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|path: &str| {
    let Ok(name) = parse_image_name(path) else { return };
    assert!(name.identity.chars().any(|c| c.is_ascii_digit()), "{name:?}");
    assert!(name.visit.is_none_or(|visit| visit < 100), "{name:?}");
    if let View::Field(2) = name.view {
        let again = parse_image_name(&documented(&name)).expect("the documented style is readable");
        let same = ImageName { ending: name.ending, n_other_words: name.n_other_words, ..again };
        assert_eq!(same, name);
    }
});

/// `ID VISIT F2 EYE SIDE.jpg`.
fn documented(name: &ImageName) -> String {
    let (visit, eye) = (name.visit.expect("field 2 has a visit"), name.eye.expect("field 2 has an eye"));
    let side = if name.side == Side::Unstated { String::new() } else { name.side.to_string() };
    format!("{} {visit:02} F2 {eye} {side}.jpg", name.identity)
}
