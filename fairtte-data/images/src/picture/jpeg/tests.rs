//! Tests of the rule by which JPEG files are shrunk, and of reading their markers.

use super::*;
use crate::Fault;

fn markers(width: u16, height: u16) -> Markers {
    let (coding, space) = (Coding::Baseline, Space::Gray);
    Markers { width, height, precision: 8, coding, space, space_is_told: true, orientation: 1 }
}

#[test]
fn shrinking_leaves_at_least_twice_the_wanted_size() {
    assert_eq!(divisor(&markers(2544, 3056), 224, 224), 4);
    assert_eq!(divisor(&markers(1000, 1000), 224, 224), 2);
    assert_eq!(divisor(&markers(4000, 4000), 224, 224), 8);
    assert_eq!(divisor(&markers(4000, 447), 224, 224), 1);
    assert_eq!(divisor(&markers(896, 896), 224, 224), 2);
    // Stored rotated by 90 degrees: 100 wide and 400 high once upright.
    assert_eq!(divisor(&Markers { orientation: 6, ..markers(400, 100) }, 100, 25), 2);
}

fn stream(segments: &[&[u8]]) -> Vec<u8> {
    [&[0xff, 0xd8][..], &segments.concat(), &[0xff, 0xd9]].concat()
}

fn frame(marker: u8, precision: u8, components: &[u8]) -> Vec<u8> {
    let n = u8::try_from(components.len() / 3).expect("a few components");
    [&[0xff, marker, 0, 8 + 3 * n, precision, 0, 8, 0, 8, n][..], components].concat()
}

const SCAN: &[u8] = &[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 1, 2, 0xff, 0, 3];

#[test]
fn the_colour_space_follows_the_rule_of_libjpeg() {
    let space = |segment: &[u8], components: &[u8]| {
        jpeg_markers::read(&stream(&[segment, &frame(0xc0, 8, components), SCAN])).expect("a whole stream").space
    };
    let adobe = |transform: u8| [&[0xff, 0xee, 0, 14][..], b"Adobe", &[0, 100, 0, 0, 0, 0, transform]].concat();
    let jfif = [&[0xff, 0xe0, 0, 16][..], b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]].concat();
    let (one, three) = ([1, 0x11, 0], [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    let four = [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0];
    let named = [b'R', 0x11, 0, b'G', 0x11, 0, b'B', 0x11, 0];
    assert_eq!(space(&[], &one), Space::Gray);
    assert_eq!(space(&[], &three), Space::YCbCr);
    assert_eq!(space(&[], &named), Space::Rgb);
    assert_eq!(space(&jfif, &named), Space::YCbCr);
    assert_eq!(space(&adobe(0), &three), Space::Rgb);
    assert_eq!(space(&adobe(1), &three), Space::YCbCr);
    assert_eq!(space(&[], &four), Space::Cmyk);
    assert_eq!(space(&adobe(0), &four), Space::Cmyk);
    assert_eq!(space(&adobe(2), &four), Space::Ycck);
}

#[test]
fn kinds_that_are_not_read_are_refused_by_name() {
    for (marker, precision, name) in [(0xc1, 12, "12 bits"), (0xc9, 8, "arithmetic"), (0xc5, 8, "hierarchical")] {
        let bytes = stream(&[&frame(marker, precision, &[1, 0x11, 0]), SCAN]);
        let refused = jpeg_markers::read(&bytes).expect_err(name);
        assert_eq!(refused.fault, Fault::Unsupported);
        assert!(refused.detail.contains(name), "{}", refused.detail);
    }
}

#[test]
fn thousands_of_scans_are_refused() {
    let scans: Vec<&[u8]> = vec![SCAN; jpeg_markers::MAX_SCANS + 1];
    let frame = frame(0xc2, 8, &[1, 0x11, 0]);
    let bytes = stream(&[&[frame.as_slice()], scans.as_slice()].concat());
    assert!(jpeg_markers::read(&bytes).expect_err("too many").detail.contains("scans"));
}
