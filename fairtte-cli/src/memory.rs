//! An allocator for programs that train, and what they tell it when they start.
//!
//! A step of training makes and drops gigabytes of tensors. An allocator that gives each of them back to the kernel has all
//! pages zeroed again in the next step, which costs more than the arithmetic in them; glibc's `malloc` does so from 128 KiB
//! on, mimalloc after a second. So [`keep_free_memory`] tells both to keep what is free. And mimalloc, which is the quicker one
//! for many threads and small blocks, places no block across the border of two chunks of 32 MiB, so that tensors of 14 to 30
//! MiB leave holes: 0.15 to 0.25 GiB at the peak of a step. So [`Allocator`] takes large blocks from the system where that is
//! glibc. docs/src/performance.md has the measurements.
//!
//! A library leaves both to the program that uses it; another program that trains may use these.
#![expect(unsafe_code, reason = "an allocator hands out memory by pointers, and options are set by calls into C")]

use std::alloc::{GlobalAlloc, Layout, System};

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

/// Bytes from which on a block comes from the system.
const LARGE: usize = 1 << 20;

/// Whether the system's allocator is one that can be told to keep free memory.
const GLIBC: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Large blocks from glibc where there is one, all others from mimalloc: for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

fn of_system(size: usize) -> bool {
    GLIBC && size >= LARGE
}

// SAFETY: each block is given back to the allocator that made it, which the size in its layout tells; both allocators keep
// the contract of the trait.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract with this allocator.
        unsafe { if of_system(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { if of_system(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; `layout` is that of the allocation.
        unsafe {
            if of_system(layout.size()) { System.dealloc(block, layout) } else { MiMalloc.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; `size` with the alignment of `layout` is a layout by the contract. A block that changes its
        // allocator is copied as far as both reach.
        unsafe {
            match (of_system(layout.size()), of_system(size)) {
                (true, true) => System.realloc(block, layout, size),
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

/// Tells both allocators to keep free memory for the next step of training; to be called when the program starts.
///
/// A back end in C++ allocates with glibc's `malloc` too, so its tensors gain as well. What a user has asked of an allocator by its
/// environment variables (`MIMALLOC_PURGE_DELAY`; `GLIBC_TUNABLES`, `MALLOC_TRIM_THRESHOLD_` and the like) stays. The process
/// holds what it needed at its peak until it ends.
pub fn keep_free_memory() {
    keep_of_mimalloc();
    keep_of_system();
}

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which free memory goes back to the system; the crate does not
/// name it.
const PURGE_DELAY: mi_option_t = 15;
/// What mimalloc sets that option to. If it is anything else, it is another option in this version of mimalloc, and stays.
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
    // No block is a mapping of its own, whose pages go back with it; the heap is never cut at its end and grows by 64 MiB at
    // least; one arena serves all threads, since only the first can hold blocks of 64 MiB and more.
    let options =
        [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, -1), (libc::M_TOP_PAD, 64 << 20), (libc::M_ARENA_MAX, 1)];
    // SAFETY: takes two numbers by value, and may be called at any time.
    options.map(|(option, value)| unsafe { libc::mallopt(option, value) }) == [1; 4]
}

/// Whether an environment variable tells glibc's `malloc` what to do.
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
