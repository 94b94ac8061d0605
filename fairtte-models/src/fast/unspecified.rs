//! Memory for results that is not zeroed first.
#![expect(
    unsafe_code,
    reason = "uninitialised memory is declared to contain numbers, all of which are written before one is read"
)]

/// A vector of `n` unspecified values, for a caller that writes all of them before it reads any.
///
/// Zeros would be written by one thread and overwritten by all: that took a fifth of a training step of EfficientNet-B0
/// (docs/src/performance/changes.md).
pub(super) fn values(n: usize) -> Vec<f32> {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut values = Vec::<f32>::with_capacity(n);
        // SAFETY: the capacity is `n`, and any bits are a number. That the memory contains some, rather than nothing at all, is what
        // the empty assembly code stands for: it may write whatever the pointer reaches, so the compiler takes what is there for
        // written, and no optimisation may assume anything about it.
        unsafe {
            std::arch::asm!("/* {} */", in(reg) values.as_mut_ptr(), options(nostack, preserves_flags));
            values.set_len(n);
        }
        values
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    vec![0.0; n]
}
