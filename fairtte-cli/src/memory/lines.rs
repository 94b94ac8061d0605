//! Blocks of the system's allocator that begin at a cache line.
//!
//! An aligned request to the system would do the same, but Rust's `realloc` of one always copies, and glibc's leaves a small free
//! block in front of each. So a block has some bytes more than requested, and the distance from their start just in front of it.

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of a cache line, and of the longest vectors.
pub(super) const LINE: usize = 64;
/// Bytes in front of a block that contain the distance. Also the alignment of glibc's blocks.
const FRONT: usize = 16;

/// The system's allocator, with blocks at multiples of [`LINE`] or of the requested alignment, whichever is larger.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines;

fn alignment(layout: Layout) -> usize {
    layout.align().max(LINE)
}

/// The block of the system that contains one of `size` bytes; `None` where it would be larger than memory can be.
fn whole(size: usize, alignment: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(FRONT + alignment)?, FRONT).ok()
}

/// The distance of the block within one of the system that begins at `start`: at least [`FRONT`], and less than that and the
/// alignment together, by which the system's is longer.
fn place(start: *mut u8, alignment: usize) -> usize {
    (start.addr() + FRONT).next_multiple_of(alignment) - start.addr()
}

/// The block within one of the system that begins at `start`; null if that is null.
///
/// # Safety
/// `start` is null or has the layout that [`whole`] gives.
unsafe fn placed(start: *mut u8, alignment: usize) -> *mut u8 {
    if start.is_null() {
        return start;
    }
    let distance = place(start, alignment);
    // SAFETY: the block lies within the system's, at least `FRONT` bytes after its start, where a `usize` has room.
    unsafe {
        let block = start.add(distance);
        block.sub(size_of::<usize>()).cast::<usize>().write_unaligned(distance);
        block
    }
}

/// The distance of a block from the start of the system's.
///
/// # Safety
/// The block comes from [`placed`] and was not freed.
unsafe fn distance(block: *mut u8) -> usize {
    // SAFETY: `placed` wrote it there.
    unsafe { block.sub(size_of::<usize>()).cast::<usize>().read_unaligned() }
}

// SAFETY: a block is as long and aligned as requested, and belongs to one block of the system, whose start and layout follow from
// its own; null is passed on.
unsafe impl GlobalAlloc for Lines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let alignment = alignment(layout);
        let Some(whole) = whole(layout.size(), alignment) else { return std::ptr::null_mut() };
        // SAFETY: the layout is not empty.
        unsafe { placed(System.alloc(whole), alignment) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let alignment = alignment(layout);
        let Some(whole) = whole(layout.size(), alignment) else { return std::ptr::null_mut() };
        // SAFETY: as above.
        unsafe { placed(System.alloc_zeroed(whole), alignment) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(whole) = whole(layout.size(), alignment(layout)) else { return };
        // SAFETY: the block was made with this layout, so its start is that of a block with the whole one.
        unsafe { System.dealloc(block.sub(distance(block)), whole) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let alignment = alignment(layout);
        let (Some(before), Some(after)) = (whole(layout.size(), alignment), whole(size, alignment)) else {
            return std::ptr::null_mut();
        };
        // SAFETY: as above. The values are at the old distance in the moved block and belong at the new one; both lie within it.
        unsafe {
            let old = distance(block);
            let start = System.realloc(block.sub(old), before, after.size());
            if start.is_null() {
                return start;
            }
            let new = place(start, alignment);
            if new != old {
                std::ptr::copy(start.add(old), start.add(new), layout.size().min(size));
            }
            placed(start, alignment)
        }
    }
}
