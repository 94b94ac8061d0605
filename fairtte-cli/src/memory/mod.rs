//! An allocator for programs that train, and its configuration at the start of a program.
//!
//! A step of training makes and drops gigabytes of tensors. If an allocator returns each of them to the kernel, all
//! pages are zeroed again in the next step, which costs more than the arithmetic on them; glibc's `malloc` does so from
//! 128 KiB on, mimalloc after a second. [`keep_free_memory`] therefore configures both to keep free memory. mimalloc,
//! which is faster for many threads and small blocks, places no block across the border of two chunks of 32 MiB, so
//! tensors of 14 to 30 MiB leave gaps: 0.15 to 0.25 GiB at the peak of a step. [`Allocator`] therefore takes large
//! blocks from the system if that is glibc, and places them at the start of a cache line (`memory/lines.rs`): glibc's own begin 16
//! bytes after one, so that every vector of 64 bytes spans two. The measurements are in docs/src/performance/changes.md.
//!
//! A library leaves both to the program that uses it; other programs that train can use these functions.
#![expect(unsafe_code, reason = "an allocator returns pointers to memory, and options are set by calls into C")]

mod lines;

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};
use lines::Lines;
use mimalloc::MiMalloc;

/// Size in bytes from which blocks come from the system.
const LARGE: usize = 1 << 20;

/// Whether the system's allocator can be configured to keep free memory.
const GLIBC: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Takes large blocks from glibc if available, all others from mimalloc; for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

fn of_system(size: usize) -> bool {
    GLIBC && size >= LARGE
}

// SAFETY: each block is returned to the allocator that made it, which follows from the size in its layout; both
// allocators keep the contract of the trait.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract with this allocator.
        unsafe { if of_system(layout.size()) { Lines.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { if of_system(layout.size()) { Lines.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; `layout` is that of the allocation.
        unsafe { if of_system(layout.size()) { Lines.dealloc(block, layout) } else { MiMalloc.dealloc(block, layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; `size` with the alignment of `layout` is a layout by the contract. A block that changes its
        // allocator is copied as far as both reach.
        unsafe {
            match (of_system(layout.size()), of_system(size)) {
                (true, true) => Lines.realloc(block, layout, size),
                (false, false) => MiMalloc.realloc(block, layout, size),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !moved.is_null() {
                        std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

/// Configures both allocators to keep free memory for the next step of training; to be called when the program starts.
///
/// A back end in C++ allocates with glibc's `malloc` too, so its tensors benefit as well. Settings of an allocator by
/// its environment variables (`MIMALLOC_PURGE_DELAY`; `GLIBC_TUNABLES`, `MALLOC_TRIM_THRESHOLD_` and similar) take
/// precedence. The process keeps its peak memory until it ends.
pub fn keep_free_memory() {
    keep_of_mimalloc();
    keep_of_system();
}

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which free memory is returned to the system; the crate has
/// no name for it.
const PURGE_DELAY: mi_option_t = 15;
/// The default of that option in mimalloc. Any other value means that it is another option in this version of mimalloc,
/// which is not changed.
const PURGE_DELAY_BEFORE: std::ffi::c_long = 1000;

fn keep_of_mimalloc() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    // SAFETY: both take an option and a whole number by value, and may be called at any time; the index is one of mimalloc's
    // options in every version of it (it has more than 30).
    unsafe {
        if mi_option_get(PURGE_DELAY) == PURGE_DELAY_BEFORE {
            mi_option_set(PURGE_DELAY, -1);
        }
    }
}

/// Whether glibc's `malloc` keeps free memory from now on because of this call.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_of_system() -> bool {
    if asked_of_malloc() {
        return false;
    }
    // No block has a mapping of its own, whose pages would be returned with it; the heap is never trimmed at its end
    // and grows by at least 64 MiB; one arena serves all threads, since only the first one can contain blocks of 64 MiB
    // and more.
    let options =
        [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, -1), (libc::M_TOP_PAD, 64 << 20), (libc::M_ARENA_MAX, 1)];
    // SAFETY: takes two numbers by value, and may be called at any time.
    options.map(|(option, value)| unsafe { libc::mallopt(option, value) }) == [1; 4]
}

/// Whether an environment variable configures glibc's `malloc`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn asked_of_malloc() -> bool {
    let named = |name: &str| {
        let with_end = name.starts_with("MALLOC_") && name.ends_with('_');
        with_end || ["GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST"].contains(&name)
    };
    std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(named))
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_of_system() -> bool {
    false
}

#[cfg(test)]
mod tests;
