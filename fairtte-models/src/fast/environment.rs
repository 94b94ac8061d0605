//! The environment variables that the kernels read.

use std::ffi::OsString;

use super::VARIABLE;
use crate::ModelError;
use crate::kernels::{InstructionSet, blocks, simd};

/// Checks the values that `read` has for the names of the variables.
pub(super) fn check(read: impl Fn(&'static str) -> Option<OsString>) -> Result<(), ModelError> {
    let check = |key, expected, is_known: fn(&str) -> bool| match read(key) {
        // What is not Unicode becomes a character that no valid value has.
        Some(value) if !is_known(&value.to_string_lossy()) => {
            Err(ModelError::Setting { key, value: value.to_string_lossy().into_owned(), expected })
        }
        _ => Ok(()),
    };
    check(VARIABLE, "on or off", |value| matches!(value, "on" | "off"))?;
    check(blocks::VARIABLE, "the L2 cache of a core as 512K or 2M", |value| blocks::bytes(value).is_some())?;
    check(simd::VARIABLE, "avx512, avx2 or baseline, and no more than this CPU has", |value| {
        InstructionSet::requested(value).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about one variable with this value, the others not being set.
    fn found(key: &str, value: impl Into<OsString>) -> Option<String> {
        let value = value.into();
        check(|asked| (asked == key).then(|| value.clone())).err().map(|error| error.to_string())
    }

    #[test]
    fn values_that_mean_something_pass_and_others_are_named() {
        for (key, value) in
            [(VARIABLE, "on"), (VARIABLE, "off"), (blocks::VARIABLE, "512K"), (simd::VARIABLE, "baseline")]
        {
            assert_eq!(found(key, value), None, "{key}={value}");
        }
        for key in [VARIABLE, blocks::VARIABLE, simd::VARIABLE] {
            let found = found(key, "of").expect("no value of any variable");
            assert!(found.starts_with(&format!("{key} is of, expected ")), "{found}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_unicode_is_not_passed_over() {
        use std::os::unix::ffi::OsStringExt as _;

        for key in [VARIABLE, blocks::VARIABLE, simd::VARIABLE] {
            let found = found(key, OsString::from_vec(b"off\xff".to_vec())).expect("no value of any variable");
            assert!(found.starts_with(&format!("{key} is off\u{fffd}, expected ")), "{found}");
        }
    }
}
