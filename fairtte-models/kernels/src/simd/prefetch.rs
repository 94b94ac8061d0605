//! Requests for values that are read soon.
#![expect(unsafe_code, reason = "the instruction takes a pointer; it accesses nothing, whatever that is")]

/// Values in a cache line.
pub(crate) const LINE: usize = 16;
/// Rows of a matrix, or planes, by which a copy of a piece of each runs ahead with its requests. Processors do so by themselves
/// only for a few rows at a time.
pub(crate) const ROWS_AHEAD: usize = 8;

/// Requests `count` values from `from` on, as far as there are such.
#[expect(clippy::inline_always, reason = "a few instructions")]
#[inline(always)]
pub(crate) fn prefetch_run(values: &[f32], from: usize, count: usize) {
    (0..count).step_by(LINE).for_each(|index| prefetch(values, from + index));
}

/// Requests the cache line of `values[index]`, if there is such a value, without waiting for it.
#[expect(clippy::inline_always, reason = "it is an instruction")]
#[inline(always)]
pub(crate) fn prefetch(values: &[f32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the caches, and every processor of the target has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}
