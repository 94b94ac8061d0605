//! Splitting of arrays `[batch, channels, plane]` among tasks, by shape only.

/// For each group of `group` consecutive channels, its part `[group, plane]` of every sample; the last group may be
/// smaller.
pub(crate) fn by_channels(values: &mut [f32], channels: usize, plane: usize, group: usize) -> Vec<Vec<&mut [f32]>> {
    let batch = values.len() / (channels * plane).max(1);
    let mut groups: Vec<Vec<&mut [f32]>> = (0..channels.div_ceil(group)).map(|_| Vec::with_capacity(batch)).collect();
    for sample in values.chunks_exact_mut((channels * plane).max(1)) {
        for (group, part) in groups.iter_mut().zip(sample.chunks_mut(group * plane)) {
            group.push(part);
        }
    }
    groups
}

/// The number of units of `size` values, of `count` in all, that make a task of about `wanted` values.
pub(crate) fn units_per_task(count: usize, size: usize, wanted: usize) -> usize {
    (wanted / size.max(1)).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests;
