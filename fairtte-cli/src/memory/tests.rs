//! The allocator keeps the content of its blocks, from either allocator, and its options are the intended ones.

use super::lines::LINE;
use super::*;

#[test]
fn blocks_keep_their_contents_when_they_change_sides() {
    for align in [4, 64, 4096] {
        let sizes = [64, LARGE - 1, LARGE, 3 * LARGE, LARGE + 1, LARGE - 1, 100];
        let layout = |size| Layout::from_size_align(size, align).expect("a size and an alignment");
        // SAFETY: every layout is that of its block, and no more than its size is read or written.
        unsafe {
            let mut block = Allocator.alloc_zeroed(layout(sizes[0]));
            assert!((0..sizes[0]).all(|place| *block.add(place) == 0));
            let mut written = 0_usize;
            for pair in sizes.windows(2) {
                (written..pair[0]).for_each(|place| *block.add(place) = mark(place));
                block = Allocator.realloc(block, layout(pair[0]), pair[1]);
                assert!(!block.is_null() && block.addr() % align == 0, "{pair:?} at {align}");
                assert!(!of_system(pair[1]) || block.addr().is_multiple_of(LINE), "{pair:?} at {align}");
                written = pair[0].min(pair[1]);
                assert!((0..written).all(|place| *block.add(place) == mark(place)), "{pair:?} at {align}");
            }
            Allocator.dealloc(block, layout(100));
        }
    }
}

/// A byte that depends on its place, with a period that divides no power of two.
fn mark(place: usize) -> u8 {
    u8::try_from(place % 251).expect("less than 256")
}

#[test]
fn large_blocks_that_are_asked_for_zeroed_are_zero() {
    let layout = Layout::from_size_align(2 * LARGE, 4).expect("a size and an alignment");
    for _ in 0..3 {
        // SAFETY: the block is read and written within its size and freed with its layout.
        unsafe {
            let block = Allocator.alloc_zeroed(layout);
            assert!(!GLIBC || block.addr().is_multiple_of(LINE));
            let values = std::slice::from_raw_parts_mut(block, layout.size());
            assert!(values.iter().all(|&value| value == 0));
            values.fill(1);
            Allocator.dealloc(block, layout);
        }
    }
}

#[test]
fn the_options_are_those_of_this_version_of_the_allocators() {
    keep_free_memory();
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: as in `keep_of_mimalloc`.
        let delay = unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay, -1, "the default of another option is {PURGE_DELAY_BEFORE}, or none");
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    assert_ne!(keep_of_system(), asked_of_malloc());
}

#[test]
fn a_block_keeps_its_values_wherever_the_system_moves_it() {
    // Blocks between those that grow, so that the system cannot extend them in place.
    let layout = |size| Layout::from_size_align(size, 8).expect("a size and an alignment");
    let mut size = 1000;
    // SAFETY: as above.
    unsafe {
        let mut block = Lines.alloc(layout(size));
        (0..size).for_each(|place| *block.add(place) = mark(place));
        let mut between = Vec::new();
        for step in 0..200 {
            between.push(Lines.alloc(layout(16 + step)));
            let grown = size + 24 * (step % 7) + 8;
            block = Lines.realloc(block, layout(size), grown);
            assert!(
                block.addr().is_multiple_of(LINE) && (0..size).all(|place| *block.add(place) == mark(place)),
                "{size}"
            );
            (size..grown).for_each(|place| *block.add(place) = mark(place));
            size = grown;
        }
        between.into_iter().enumerate().for_each(|(step, block)| Lines.dealloc(block, layout(16 + step)));
        Lines.dealloc(block, layout(size));
        assert!(Lines.alloc(Layout::from_size_align_unchecked(isize::MAX.unsigned_abs() - 64, 8)).is_null());
    }
}
