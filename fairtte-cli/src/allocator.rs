//! The allocator of the program, and how long it keeps memory that is free.
#![expect(unsafe_code, reason = "an option of mimalloc is read and set by calls into C that take whole numbers only")]

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

/// Tables, images and tensors come and go in large pieces; the system's allocator gives each of them back to the kernel,
/// and filling fresh pages costs more than the arithmetic in them (docs/src/data.md has the measurements).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which free memory goes back to the system; the crate does not
/// name it.
const PURGE_DELAY: mi_option_t = 15;
/// What mimalloc sets that option to.
const DEFAULT: std::ffi::c_long = 1000;

/// Keeps free memory for the next step of training instead of giving it back after a second.
///
/// A step of a second or more loses its pages otherwise and has them zeroed again by the kernel: 1.0 s of 8 s for a step of
/// `vit-base/16`, 0.3 s for `resnet18-3d`, for 3 to 7 % more memory at the peak. The user's `MIMALLOC_PURGE_DELAY` wins. If the
/// option does not have its default, it is another one in this version of mimalloc, and stays.
pub(crate) fn keep_free_memory() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    // SAFETY: both take an option and a whole number by value, and may be called at any time; the index is one of mimalloc's
    // options in every version of it (it has more than 30).
    unsafe {
        if mi_option_get(PURGE_DELAY) == DEFAULT {
            mi_option_set(PURGE_DELAY, -1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_delay_of_this_version_of_mimalloc() {
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
            return;
        }
        keep_free_memory();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, -1, "the default of another option is {DEFAULT}, or none");
    }
}
