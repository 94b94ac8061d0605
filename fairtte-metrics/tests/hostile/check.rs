//! What must hold of every result.

use std::fmt::Debug;

use fairtte_metrics::MetricError;

/// The result of `compute`: every number in it is finite, apart from those in errors, and a second call gives the same.
pub fn check<T: Debug>(what: &str, compute: impl Fn() -> T) -> T {
    let value = compute();
    let text = format!("{value:?}");
    assert!(is_finite(&text), "{what} returns a number that is not finite: {text}");
    assert_eq!(text, format!("{:?}", compute()), "{what} gives two answers");
    value
}

/// [`check`] of a number that lies in [`low`, `high`] if it exists.
pub fn check_within(what: &str, low: f64, high: f64, compute: impl Fn() -> Result<f64, MetricError>) {
    if let Ok(value) = check(what, compute) {
        assert_within(what, value, low, high);
    }
}

pub fn assert_within(what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{what} is {value}, promised in [{low}, {high}]");
}

/// Whether a value written by `Debug` holds neither NaN nor an infinity outside of errors and texts.
fn is_finite(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            byte if is_word(byte) => {
                let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                match &bytes[at..at + length] {
                    b"NaN" | b"inf" => return false,
                    b"Err" => at = end_of_error(bytes, at + length),
                    _ => at += length,
                }
            }
            _ => at += 1,
        }
    }
    true
}

/// After the closing quote of the text that begins at `at`.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// After the bracket that closes the one at `at`.
fn end_of_error(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_text(bytes, at);
                continue;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[test]
fn the_reader_of_debug_texts_finds_what_it_must() {
    let result = |value: f64| -> Result<f64, MetricError> { Ok(value) };
    let error = |value: f64| -> Result<f64, MetricError> { Err(MetricError::NotFinite { what: "inf)", value }) };
    assert!(!is_finite(&format!("{:?}", (1.0, vec![result(f64::NAN)]))));
    assert!(!is_finite(&format!("{:?}", (error(f64::NAN), Some(f64::NEG_INFINITY)))));
    assert!(is_finite(&format!("{:?}", (error(f64::NAN), "NaN \" inf", result(0.5)))));
}
